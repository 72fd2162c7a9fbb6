//! A card as a file, whose files are changed from outside: those of its boot partition with mtools, those of its root with debugfs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rubus_lab::firmware::partition_starts;
use rubus_lab::tools;

/// A card's image.
pub struct Card {
    image: PathBuf,
    boot: String,
    root: String,
    work: tempfile::TempDir,
}

impl Card {
    /// The card in a file.
    pub fn of(image: &Path) -> Card {
        let (boot, root) = partition_starts(image).expect("a card with both partitions");
        Card {
            boot: format!("{}@@{boot}", image.display()),
            root: format!("{}?offset={root}", image.display()),
            image: image.into(),
            work: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// A file of the boot partition.
    pub fn boot_file(&self, name: &str) -> Vec<u8> {
        let mut copy = tools::command("mcopy");
        tools::run(copy.args(["-n", "-i", &self.boot]).arg(format!("::{name}")).arg("-"))
            .expect("the file is there")
    }

    /// A text of the boot partition.
    pub fn boot_text(&self, name: &str) -> String {
        String::from_utf8(self.boot_file(name)).expect("a text")
    }

    /// Writes a file of the boot partition, in place of one that is there.
    pub fn write_boot(&self, name: &str, content: impl AsRef<[u8]>) {
        let local = self.work.path().join("file");
        fs::write(&local, content).expect("a file");
        let mut copy = tools::command("mcopy");
        tools::run(copy.args(["-o", "-i", &self.boot]).arg(&local).arg(format!("::{name}")))
            .expect("it is written");
    }

    /// Removes a file of the boot partition.
    pub fn remove_boot(&self, name: &str) {
        tools::run(tools::command("mdel").args(["-i", &self.boot]).arg(format!("::{name}")))
            .expect("it is removed");
    }

    /// Changes a text of the boot partition.
    pub fn edit_boot(&self, name: &str, change: impl FnOnce(&str) -> String) {
        let text = self.boot_text(name);
        let changed = change(&text);
        assert_ne!(text, changed, "nothing was changed in {name}");
        self.write_boot(name, changed);
    }

    /// Runs a command of debugfs(8) on the root.
    pub fn on_root(&self, command: &str) -> String {
        let said = tools::run(tools::command("debugfs").args(["-w", "-R", command, &self.root]));
        String::from_utf8_lossy(&said.expect("debugfs runs")).into_owned()
    }

    /// Changes `/etc/fstab`.
    pub fn edit_fstab(&self, change: impl FnOnce(&str) -> String) {
        let text = self.on_root("cat /etc/fstab");
        let local = self.work.path().join("fstab");
        fs::write(&local, change(&text)).expect("a file");
        self.on_root("rm /etc/fstab");
        self.on_root(&format!("write {} /etc/fstab", local.display()));
        assert_ne!(self.on_root("cat /etc/fstab"), text, "nothing was changed");
    }

    /// Runs tune2fs on the root, which it wants to be checked before.
    pub fn tune_root(&self, options: &[&str]) {
        let checked = Command::new("e2fsck").args(["-f", "-y", &self.root]).output();
        let code = checked.expect("e2fsck runs").status.code();
        assert!(matches!(code, Some(0 | 1)), "e2fsck: {code:?}");
        tools::run(tools::command("tune2fs").args(options).arg(&self.root)).expect("it is tuned");
    }

    /// Writes bytes at a place of the card.
    pub fn write_at(&self, place: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(&self.image).expect("the card");
        file.write_all_at(bytes, place).expect("it is written");
    }

    /// Where the root begins, in bytes.
    pub fn root_at(&self) -> u64 {
        partition_starts(&self.image).expect("both partitions").1
    }

    /// The identifier of the root's filesystem.
    pub fn root_uuid(&self) -> String {
        let said = self.on_root("show_super_stats -h");
        let line = said.lines().find_map(|line| line.strip_prefix("Filesystem UUID:"));
        line.expect("it has one").trim().to_owned()
    }
}
