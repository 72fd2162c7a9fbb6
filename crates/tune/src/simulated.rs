//! A kernel with settings that reset one another, for tests: it can be left by its program at any operation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rubus_host::files::hands::Twin;
use rubus_host::files::not_kept;
use rubus_host::{Files, Hands, ReadError, Space, WriteError};

/// Where the tests keep the record.
pub const RECORD: &str = "/var/lib/rubus/tune";
pub const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";
pub const REQUESTS: &str = "/sys/block/sda/queue/nr_requests";
pub const AHEAD: &str = "/sys/block/sda/queue/read_ahead_kb";

/// A machine with the disk `sda`.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub files: BTreeMap<PathBuf, String>,
    pub directories: BTreeSet<PathBuf>,
    /// Settings that refuse every value.
    pub stuck: BTreeSet<PathBuf>,
    /// Operations left before the program is killed; absent: it lives.
    pub lives_for: Option<usize>,
    /// Operations so far.
    pub operations: usize,
}

impl Kernel {
    pub fn new() -> Kernel {
        let mut kernel = Kernel::default();
        for (path, text) in [
            (crate::record::BOOT_ID, "boot-1"),
            ("/sys/block/sda/dev", "8:0"),
            ("/sys/block/sda/diskseq", "7"),
            ("/sys/block/sda/size", "1000000"),
            ("/sys/block/sda/device/wwid", "naa.1"),
            (SCHEDULER, "none [mq-deadline] bfq"),
            (REQUESTS, "100"),
            ("/sys/block/sda/queue/iosched/read_expire", "77"),
            (AHEAD, "128"),
        ] {
            kernel.put(path, text);
        }
        kernel.directories.insert("/var/lib".into());
        kernel
    }

    /// Changes a file as another program does.
    pub fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.into(), text.into());
        for above in Path::new(path).ancestors().skip(1) {
            self.directories.insert(above.into());
        }
    }

    /// Unplugs the disk.
    pub fn unplug(&mut self) {
        self.files.retain(|path, _| !path.starts_with("/sys/block/sda"));
        self.directories.retain(|path| !path.starts_with("/sys/block/sda"));
    }

    pub fn value(&self, path: &str) -> Option<&str> {
        self.files.get(Path::new(path)).map(String::as_str)
    }

    pub fn has_record(&self) -> bool {
        self.value("/var/lib/rubus/tune/record.json").is_some()
    }

    /// Every setting of the disk.
    pub fn settings(&self) -> BTreeMap<PathBuf, String> {
        let all = self.files.iter().filter(|(path, _)| path.starts_with("/sys"));
        all.map(|(path, text)| (path.clone(), text.clone())).collect()
    }

    fn operate(&mut self, tried: &'static str, path: &Path) -> Result<(), WriteError> {
        self.operations += 1;
        match &mut self.lives_for {
            Some(0) => refuse(tried, path, "killed"),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn refuse<T>(tried: &'static str, path: &Path, reason: &str) -> Result<T, WriteError> {
    Err(WriteError { tried, path: path.display().to_string(), reason: reason.into() })
}

impl Files for Kernel {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        let text = self.files.get(path).ok_or(ReadError::Absent)?;
        Ok(text.bytes().take(limit).collect())
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        if !self.directories.contains(path) {
            return Err(ReadError::Absent);
        }
        let names = self.files.keys().filter(|file| file.parent() == Some(path));
        Ok(names
            .filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()))
            .collect())
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let is_there = self.files.contains_key(path) || self.directories.contains(path);
        if is_there { Ok(path.into()) } else { Err(ReadError::Absent) }
    }

    fn space(&self, _: &Path) -> Result<Space, ReadError> {
        Err(ReadError::Absent)
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        self.real_path(path).map(|_| 0o644)
    }

    fn keeps_modes(&self, _: &Path) -> bool {
        true
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        not_kept(self, path)
    }

    fn ask(&self, _: &str, _: &[&str]) -> Result<String, ReadError> {
        Err(ReadError::Absent)
    }

    fn firmware_word(&self, _: u32) -> Result<u32, ReadError> {
        Err(ReadError::Absent)
    }
}

impl Hands for Kernel {
    fn files(&self) -> &dyn Files {
        self
    }

    fn make_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        self.operate("make the directory", path)?;
        self.directories.insert(path.into());
        Ok(())
    }

    fn remove_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        refuse("remove the directory", path, "no test does that")
    }

    fn write_new(
        &mut self,
        path: &Path,
        bytes: &[u8],
        _: u32,
        _: Option<&Path>,
    ) -> Result<(), WriteError> {
        self.operate("make", path)?;
        self.put(&path.to_string_lossy(), &String::from_utf8_lossy(bytes));
        Ok(())
    }

    fn make_link(&mut self, path: &Path, _: &Path) -> Result<(), WriteError> {
        refuse("make the link", path, "no test does that")
    }

    fn append(&mut self, path: &Path, _: u64, _: &[u8]) -> Result<(), WriteError> {
        refuse("write", path, "no test does that")
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), WriteError> {
        self.operate("replace", to)?;
        match self.files.remove(from) {
            Some(text) => {
                self.files.insert(to.into(), text);
                Ok(())
            }
            None => refuse("replace", to, "no such file"),
        }
    }

    fn remove(&mut self, path: &Path) -> Result<(), WriteError> {
        self.operate("remove", path)?;
        match self.files.remove(path) {
            Some(_) => Ok(()),
            None => refuse("remove", path, "no such file"),
        }
    }

    fn twin(&self, _: &Path) -> Option<Twin> {
        None
    }

    fn sync_directory(&mut self, path: &Path) -> Result<(), WriteError> {
        self.operate("make durable what is in", path)
    }

    fn set_knob(&mut self, path: &Path, value: &str) -> Result<(), WriteError> {
        self.operate("set", path)?;
        if self.stuck.contains(path) {
            return refuse("set", path, "Invalid argument (os error 22)");
        }
        let Some(now) = self.files.get(path).cloned() else {
            return refuse("set", path, "No such file or directory (os error 2)");
        };
        let text = if now.contains('[') {
            let names = now.split_whitespace().map(|name| name.trim_matches(['[', ']']));
            let marked =
                names.map(|name| if name == value { format!("[{name}]") } else { name.to_owned() });
            // As the kernel does when a disk gets another scheduler.
            self.put(REQUESTS, "256");
            let tunables = "/sys/block/sda/queue/iosched/read_expire";
            self.files.remove(Path::new(tunables));
            if value == "mq-deadline" {
                self.put(tunables, "500");
            }
            marked.collect::<Vec<_>>().join(" ")
        } else {
            value.to_owned()
        };
        self.files.insert(path.into(), text);
        Ok(())
    }
}
