//! What a move of the root leaves out. The copy, the sample whose compression is measured and the size that is expected all
//! take it from here.

use std::path::{Path, PathBuf};

use rubus_vocabulary::machine::{Machine, SwapArea};

/// Directories whose contents belong to the running system alone, or are recreated.
const CONTENTS_OF: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/tmp"];
/// What only an ext4 has.
const LOST_AND_FOUND: &str = "/lost+found";

/// Paths on the root that a move leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotCopied {
    /// Left out with everything below.
    pub paths: Vec<PathBuf>,
    /// Directories that are recreated empty.
    pub contents_of: Vec<PathBuf>,
}

impl NotCopied {
    /// Of a machine: its swap files, active or only configured, and what only lives while it runs.
    pub fn of(machine: &Machine) -> Self {
        let mut paths = swap_files(machine);
        paths.push(LOST_AND_FOUND.into());
        paths.sort();
        paths.dedup();
        NotCopied { paths, contents_of: CONTENTS_OF.map(PathBuf::from).to_vec() }
    }

    /// The same, and files that were changed for the new root.
    pub fn and(mut self, changed: Vec<PathBuf>) -> Self {
        self.paths.extend(changed);
        self.paths.sort();
        self.paths.dedup();
        self
    }

    /// Whether the file or the directory at this path is left out.
    pub fn has(&self, path: &Path) -> bool {
        self.paths.iter().any(|left_out| left_out == path)
    }

    /// Whether what is in this directory is left out.
    pub fn has_contents_of(&self, directory: &Path) -> bool {
        let mut all = self.contents_of.iter().chain(&self.paths);
        all.any(|left_out| left_out == directory)
    }
}

/// Bytes of active swap files on the root: in use there, and not copied.
pub fn swap_file_bytes(machine: &Machine) -> u64 {
    let is_on_root = |area: &&SwapArea| {
        let mount = machine.mount_holding(Path::new(&area.path));
        mount.is_some_and(|mount| mount.point == "/")
    };
    let areas = machine.swap.areas.iter();
    let files = areas.filter(|area| area.kind == "file").filter(is_on_root);
    files.map(|area| area.size_bytes).fold(0, u64::saturating_add)
}

fn swap_files(machine: &Machine) -> Vec<PathBuf> {
    let swap = &machine.swap;
    let areas = swap.areas.iter().filter(|area| area.kind == "file");
    let mut files: Vec<PathBuf> = areas.map(|area| (&area.path).into()).collect();
    for manager in &swap.managers {
        let settings = manager.settings.value().map(Vec::as_slice).unwrap_or_default();
        let values = settings.iter().filter_map(|line| {
            let (name, value) = line.split_once(" = ")?;
            matches!(name, "CONF_SWAPFILE" | "[File] Path").then_some(value)
        });
        files.extend(values.filter(|path| path.starts_with('/')).map(Into::into));
        if matches!(manager.name.as_str(), "rpi-swap" | "dphys-swapfile") {
            files.push("/var/swap".into());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    fn file(path: &str) -> SwapArea {
        SwapArea {
            path: path.into(),
            kind: "file".into(),
            size_bytes: 100 << 20,
            used_bytes: 0,
            priority: -2,
            device: Fact::known("mmcblk0p2".into(), "test"),
        }
    }

    #[test]
    fn swap_files_and_what_only_lives_while_the_system_runs_are_left_out() {
        let mut machine = fixture::pi3_with_usb_ssd();
        machine.swap.areas.push(file("/swapfile"));
        let left_out = NotCopied::of(&machine);
        assert!(left_out.has(Path::new("/swapfile")), "{left_out:?}");
        assert!(!left_out.has(Path::new("/swapfile2")));
        assert!(left_out.has_contents_of(Path::new("/proc")));
        assert!(!left_out.has_contents_of(Path::new("/var")));
        // A device is no file of the root.
        assert!(!left_out.has(Path::new("/dev/zram0")));
    }

    #[test]
    fn only_swap_files_on_the_root_take_room_there() {
        let mut machine = fixture::pi3_with_usb_ssd();
        assert_eq!(swap_file_bytes(&machine), 0);
        machine.swap.areas.push(file("/var/swap"));
        machine.swap.areas.push(file("/srv/data/swap"));
        assert_eq!(swap_file_bytes(&machine), 100 << 20);
    }
}
