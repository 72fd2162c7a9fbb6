//! Which files with several names were met already.
//!
//! Only files with more than one name are kept, and each only until its last name was met. One takes about 60 bytes and
//! its path.

use std::collections::HashMap;

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

/// The files with several names, by their number in the source.
#[derive(Debug, Default)]
pub(super) struct Links {
    firsts: HashMap<u64, First>,
}

impl Links {
    /// Notes one more name of a file that has so many. Gives the first name, if this is not it.
    pub(super) fn meet(
        &mut self,
        inode: u64,
        names: u32,
        path: &[u8],
        target_inode: Option<u64>,
    ) -> Option<First> {
        if let Some(first) = self.firsts.get_mut(&inode) {
            first.left = first.left.saturating_sub(1);
            let first = first.clone();
            if first.left == 0 {
                self.firsts.remove(&inode);
            }
            return Some(first);
        }
        let first = First {
            path: path.into(),
            inode: target_inode,
            left: names - 1,
        };
        self.firsts.insert(inode, first);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_forgotten_with_its_last_name() {
        let mut links = Links::default();
        assert_eq!(links.meet(7, 3, b"a", None), None);
        assert_eq!(&*links.meet(7, 3, b"b", None).unwrap().path, b"a");
        assert_eq!(&*links.meet(7, 3, b"c", None).unwrap().path, b"a");
        assert_eq!(links.meet(7, 2, b"d", None), None);
    }
}
