//! Devices that report more than they have: writes beyond their memory wrap around, are discarded or fail.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Result;

use super::mark;
use super::nbd_file::NbdFile;

/// What happens to what lies beyond the real size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It is written over the start.
    Wraps,
    /// It is discarded, and reads return zeros.
    Vanishes,
    /// It fails with EIO.
    Fails,
}

/// A file that says that it has `size_bytes`.
#[derive(Debug)]
pub struct FakeDevice {
    file: NbdFile,
    memory: PathBuf,
}

impl FakeDevice {
    /// A file that says `size_bytes` and keeps `real_bytes`, both whole MiB.
    ///
    /// # Errors
    /// When the servers cannot be started.
    pub fn new(size_bytes: u64, real_bytes: u64, beyond: Beyond) -> Result<Self> {
        let directory = mark::directory()?;
        let memory = directory.path().join("memory");
        File::create(&memory)?.set_len(real_bytes)?;
        let path = memory.display();
        let from = "iflag=skip_bytes,count_bytes,fullblock bs=256k status=none";
        let to = "oflag=seek_bytes iflag=fullblock conv=notrunc bs=256k status=none";
        // The server calls them with the length as third argument and the offset as fourth.
        let (before, offset) = match beyond {
            Beyond::Wraps => ("true".to_string(), format!("$(($4 % {real_bytes}))")),
            Beyond::Vanishes | Beyond::Fails => (format!("[ $4 -lt {real_bytes} ]"), "$4".into()),
        };
        let (else_read, else_write) = match beyond {
            Beyond::Fails => ("echo EIO >&2; exit 1", "cat >/dev/null; echo EIO >&2; exit 1"),
            _ => ("head -c $3 /dev/zero", "cat >/dev/null"),
        };
        let calls = [
            format!("get_size=echo {size_bytes}"),
            format!(
                "pread=if {before}; then dd if={path} {from} skip={offset} count=$3; else {else_read}; fi"
            ),
            format!(
                "pwrite=if {before}; then dd of={path} {to} seek={offset}; else {else_write}; fi"
            ),
            "can_write=exit 0".into(),
            "can_flush=exit 0".into(),
            "flush=exit 0".into(),
        ];
        let mut arguments = vec!["eval".to_string()];
        arguments.extend(calls);
        let file = NbdFile::serve_with(&arguments, directory)?;
        Ok(FakeDevice { file, memory })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Flips one bit of what it keeps.
    ///
    /// # Errors
    /// When its memory cannot be changed.
    pub fn flip_a_bit_at(&self, offset: u64) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let memory = File::options().read(true).write(true).open(&self.memory)?;
        let mut byte = [0];
        memory.read_exact_at(&mut byte, offset)?;
        memory.write_all_at(&[byte[0] ^ 1], offset)?;
        Ok(())
    }
}
