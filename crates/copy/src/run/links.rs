//! Which files with several names were met already.
//!
//! Only files with more than one name are kept, and each only until its last name was met. One takes about 60 bytes and
//! its path.

use std::collections::HashMap;

use rubus_host::files::copy_io::Meta;

/// What is known about a file with several names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct First {
    /// The first name that was met, as a path relative to the root.
    pub(super) path: Box<[u8]>,
    /// The number it has in the target, when it was there already.
    pub(super) inode: Option<u64>,
    /// Names that are still to come.
    left: u32,
}

/// What tells a file from all others: each subvolume of a btrfs numbers its own from the same number on.
pub(super) type Identity = ((u32, u32), u64);

/// The identity of an entry.
pub(super) fn identity(meta: &Meta) -> Identity {
    (meta.device, meta.inode)
}

/// The files with several names, by their identity in the source.
#[derive(Debug, Default)]
pub(super) struct Links {
    firsts: HashMap<Identity, First>,
}

impl Links {
    /// Notes another name of a file with `names` hard links. Returns the first name, if this is not
    /// it.
    pub(super) fn meet(
        &mut self,
        file: Identity,
        names: u32,
        path: &[u8],
        target_inode: Option<u64>,
    ) -> Option<First> {
        if let Some(first) = self.firsts.get_mut(&file) {
            first.left = first.left.saturating_sub(1);
            let first = first.clone();
            if first.left == 0 {
                self.firsts.remove(&file);
            }
            return Some(first);
        }
        let first = First { path: path.into(), inode: target_inode, left: names - 1 };
        self.firsts.insert(file, first);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_forgotten_with_its_last_name() {
        let mut links = Links::default();
        let seven = ((0, 30), 7);
        assert_eq!(links.meet(seven, 3, b"a", None), None);
        assert_eq!(&*links.meet(seven, 3, b"b", None).unwrap().path, b"a");
        let in_another_subvolume = ((0, 31), 7);
        assert_eq!(links.meet(in_another_subvolume, 2, b"s/a", None), None);
        assert_eq!(&*links.meet(seven, 3, b"c", None).unwrap().path, b"a");
        assert_eq!(links.meet(seven, 2, b"d", None), None);
    }
}
