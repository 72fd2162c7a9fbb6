//! Writing "newc" cpio archives, the form of an initial RAM filesystem. Archives may stand one
//! after the other in one file: the kernel unpacks all of them in order.
//!
//! Format: Documentation/driver-api/early-userspace/buffer-format.rst of the Linux kernel.

use std::collections::BTreeSet;

const TYPE_DIRECTORY: u32 = 0o040_000;
const TYPE_FILE: u32 = 0o100_000;

/// An archive being written. Everything in it belongs to root.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    inode: u32,
}

impl Archive {
    /// An empty archive.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory and those above it, unless they are there.
    pub fn directory(&mut self, path: &str) {
        let mut end = 0;
        while end < path.len() {
            end = path[end + 1..].find('/').map_or(path.len(), |at| end + 1 + at);
            let prefix = &path[..end];
            if self.directories.insert(prefix.to_owned()) {
                self.member(prefix, TYPE_DIRECTORY | 0o755, &[]);
            }
        }
    }

    /// Adds a file and the directories above it. `permissions` as in `chmod`, below 0o10000.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
        self.member(path, TYPE_FILE | permissions, content);
    }

    /// The whole archive, padded so that another one may follow.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.member("TRAILER!!!", 0, &[]);
        self.pad(512);
        self.bytes
    }

    fn member(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        debug_assert_ne!(size, u32::MAX, "a file of 4 GiB does not fit the format");
        let name_size = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        // Inode, mode, owner, group, links, time, size, device and special device (two numbers
        // each), length of the name, checksum.
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
        self.bytes.extend_from_slice(content);
        self.pad(4);
    }

    fn pad(&mut self, alignment: usize) {
        let padded = self.bytes.len().next_multiple_of(alignment);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Stdio;

    #[test]
    fn cpio_reads_back_what_was_written() {
        if crate::tools::find("cpio").is_none() {
            return rubus_fixtures::skipped("reading an archive", "cpio is not installed");
        }
        let mut archive = Archive::new();
        archive.file("init", 0o755, b"#!/bin/sh\n");
        archive.file("lab/push/tool", 0o755, &[7; 1001]);
        archive.directory("lab/push");
        archive.file("lab/time", 0o644, b"");
        let directory = tempfile::tempdir().unwrap();
        let mut reader = crate::tools::command("cpio")
            .args(["-i", "--quiet", "-d", "-m"])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        reader.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        assert!(reader.wait().unwrap().success());
        let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
        assert_eq!(read("init"), b"#!/bin/sh\n");
        assert_eq!(read("lab/push/tool"), [7; 1001]);
        assert_eq!(read("lab/time"), b"");
    }

    #[test]
    fn archives_end_on_a_block_so_that_they_can_be_joined() {
        let mut archive = Archive::new();
        archive.file("a", 0o644, b"x");
        assert_eq!(archive.finish().len() % 512, 0);
    }
}
