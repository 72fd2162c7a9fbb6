//! A control group that limits memory, of version 1 or 2: made, limited, looked at, removed.
//!
//! Sources: Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of the kernel.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::files::hands::WriteError;

/// How long the kernel may take to let a group go whose processes were killed: what waits for a slow disk is let go
/// only when its turn comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A control group, given by its directories, so that all of it can be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGroup {
    /// Version of control groups: 1 or 2.
    pub version: u32,
    /// The group itself.
    pub directory: PathBuf,
    /// Where this process was, and where it is meanwhile, where it had to step aside so that the first may have
    /// groups below it.
    pub aside: Option<(PathBuf, PathBuf)>,
}

impl MemoryGroup {
    /// A group that is still to be made below `parent`. `is_own`: this process is in `parent` itself.
    pub fn planned(version: u32, parent: &Path, is_own: bool) -> Self {
        let number = std::process::id();
        let aside = (version == 2 && is_own)
            .then(|| (parent.to_path_buf(), parent.join(format!("rubus-aside-{number}"))));
        MemoryGroup { version, directory: parent.join(format!("rubus-memory-{number}")), aside }
    }

    /// Makes it, without a limit.
    ///
    /// # Errors
    /// If this user may not, or the kernel does not delegate the memory controller here.
    pub fn make(&self) -> Result<(), WriteError> {
        if self.version == 2 {
            self.hand_on()?;
        }
        make_directory(&self.directory)
    }

    /// Lets groups below the parent have the control of memory.
    fn hand_on(&self) -> Result<(), WriteError> {
        let Some(parent) = self.directory.parent() else {
            return Err(WriteError::of("make a group in", &self.directory, Errno::INVAL));
        };
        let control = parent.join("cgroup.subtree_control");
        if names(&control).iter().any(|name| name == "memory") {
            return Ok(());
        }
        if let Some((from, to)) = &self.aside {
            make_directory(to)?;
            let own = i32::try_from(std::process::id()).ok();
            let is_ours = |process: Pid| {
                let number = process.as_raw_nonzero().get();
                Some(number) == own || parent_of(number) == own
            };
            move_all(from, to, is_ours)?;
        }
        write("hand the control of memory on in", &control, "+memory")
    }

    /// Puts a process into the group.
    ///
    /// # Errors
    /// When this user may not, or the process is gone.
    pub fn take(&self, process: u32) -> Result<(), WriteError> {
        let list = self.directory.join("cgroup.procs");
        write("move a process to", &list, &process.to_string())
    }

    /// The most memory that its processes may have, swap not counted. A lower limit than before makes the kernel swap
    /// at once, for as long as it takes.
    ///
    /// # Errors
    /// When the kernel cannot take so much away.
    pub fn limit(&self, bytes: u64) -> Result<(), WriteError> {
        let file = self.directory.join(match self.version {
            1 => "memory.limit_in_bytes",
            _ => "memory.max",
        });
        write("limit the memory in", &file, &bytes.to_string())
    }

    /// The same group may not swap at all.
    ///
    /// # Errors
    /// When the kernel has no switch for that.
    pub fn forbid_swap(&self) -> Result<(), WriteError> {
        let file = self.directory.join(match self.version {
            1 => "memory.swappiness",
            _ => "memory.swap.max",
        });
        write("forbid swap in", &file, "0")
    }

    /// The most memory that zswap may take for the group's pages (version 2); 0 turns it off for them.
    ///
    /// # Errors
    /// When the kernel has no such limit.
    pub fn limit_zswap(&self, bytes: u64) -> Result<(), WriteError> {
        let file = self.directory.join("memory.zswap.max");
        write("limit zswap in", &file, &bytes.to_string())
    }

    /// Whether the kernel counts what zswap takes for the group's pages to the group, and can limit it.
    pub fn counts_zswap(&self) -> bool {
        self.version == 2 && self.directory.join("memory.zswap.current").exists()
    }

    /// What zswap takes for the group's pages, as the kernel counts it to the group.
    pub fn zswap_bytes(&self) -> Option<u64> {
        let file = self.directory.join("memory.zswap.current");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// Memory that the group has now.
    pub fn usage_bytes(&self) -> Option<u64> {
        let file = self.directory.join(match self.version {
            1 => "memory.usage_in_bytes",
            _ => "memory.current",
        });
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// How often the kernel ended a process of the group for want of memory.
    pub fn ended_for_want(&self) -> Option<u64> {
        let file = self.directory.join(match self.version {
            1 => "memory.oom_control",
            _ => "memory.events",
        });
        let text = std::fs::read_to_string(file).ok()?;
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }

    /// Ends what runs in it, removes it, and puts this process back where it was. What is not there is no trouble.
    ///
    /// # Errors
    /// When the kernel does not let it go.
    pub fn remove(&self) -> Result<(), WriteError> {
        remove_directory(&self.directory, true)?;
        let Some((from, to)) = &self.aside else {
            return Ok(());
        };
        if !to.exists() {
            return Ok(());
        }
        // A group that has processes hands nothing on: first this, then they may come back.
        let control = from.join("cgroup.subtree_control");
        write("take the control of memory back in", &control, "-memory")?;
        move_all(to, from, |_| true)?;
        remove_directory(to, false)
    }
}

fn make_directory(path: &Path) -> Result<(), WriteError> {
    match rustix::fs::mkdir(path, rustix::fs::Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(WriteError::of("make the control group", path, errno)),
    }
}

fn remove_directory(path: &Path, end_processes: bool) -> Result<(), WriteError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::rmdir(path) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(errno) if Instant::now() > give_up => {
                return Err(WriteError::of("remove the control group", path, errno));
            }
            Err(_) => {}
        }
        if end_processes {
            for process in processes(path) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn processes(group: &Path) -> Vec<Pid> {
    let list = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let numbers = list.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// Who started a process.
fn parent_of(process: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    crate::process::process_stat::parent(&text)
}

/// Moves processes of ours. While others are left, the kernel refuses what comes next.
fn move_all(from: &Path, to: &Path, is_ours: impl Fn(Pid) -> bool) -> Result<(), WriteError> {
    let list = to.join("cgroup.procs");
    for process in processes(from).into_iter().filter(|process| is_ours(*process)) {
        let number = process.as_raw_nonzero().to_string();
        match write("move a process to", &list, &number) {
            Ok(()) => {}
            // It ended meanwhile.
            Err(_) if !Path::new("/proc").join(&number).exists() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn names(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_string).collect()
}

fn write(tried: &'static str, file: &Path, text: &str) -> Result<(), WriteError> {
    std::fs::write(file, text).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let advice = match errno {
            Errno::NOENT => "; the kernel does not control memory here",
            Errno::BUSY => "; other processes are in the group, or memory cannot be reclaimed",
            _ => return WriteError::of(tried, file, errno),
        };
        WriteError::advised(tried, file.display(), errno, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a group of version 2; the files of a real one are made by the kernel.
    #[test]
    fn a_group_of_version_2_is_limited_through_its_files() {
        let top = tempfile::tempdir().expect("a directory");
        std::fs::write(top.path().join("cgroup.subtree_control"), "cpu memory\n").expect("a file");
        let group = MemoryGroup::planned(2, top.path(), false);
        group.make().expect("it is made");
        for name in ["memory.max", "memory.swap.max", "memory.zswap.max", "cgroup.procs"] {
            std::fs::write(group.directory.join(name), "").expect("a file");
        }
        let text =
            |name: &str| std::fs::read_to_string(group.directory.join(name)).expect("a file");
        group.limit(1 << 20).expect("limited");
        assert_eq!(text("memory.max"), "1048576");
        group.forbid_swap().expect("forbidden");
        assert_eq!(text("memory.swap.max"), "0");
        group.limit_zswap(4096).expect("limited");
        assert_eq!(text("memory.zswap.max"), "4096");
        assert!(!group.counts_zswap());
        std::fs::write(group.directory.join("memory.events"), "max 7\noom 1\noom_kill 3\n")
            .expect("a file");
        assert_eq!(group.ended_for_want(), Some(3));
        std::fs::write(group.directory.join("memory.current"), "42\n").expect("a file");
        assert_eq!(group.usage_bytes(), Some(42));
    }

    #[test]
    fn what_is_not_there_is_removed_at_once() {
        let top = tempfile::tempdir().expect("a directory");
        let group = MemoryGroup::planned(1, top.path(), true);
        assert_eq!(group.aside, None, "version 1 lets groups be anywhere");
        group.remove().expect("nothing to do");
        assert!(group.limit(1).expect_err("there is none").to_string().contains("control memory"));
    }
}
