//! A machine in namespaces whose first process is systemd, for what only that can show: that units start, with the
//! rights that they name.
//!
//! It has this machine's programs and kernel, a network of its own with nothing but loopback, and what it writes is in memory. It is
//! there within a second or two, other than on a board.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::devices::programs;

const SET_UP: &str = include_str!("../board/under-systemd");
/// How long a script may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What became of a script.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status.
    pub status: i32,
    /// Each line of it as it was run, and what it printed.
    pub output: String,
}

/// How a machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its services are stopped in their order.
    Stop,
    /// As when the power fails: nothing is stopped.
    Cut,
}

/// A machine that starts several times and keeps some directories meanwhile; a start begins all that belongs to basic.target.
#[derive(Debug)]
pub struct Machine {
    share: TempDir,
}

impl Machine {
    /// A machine that keeps these directories, which are empty at its first start, with these files in `/run/lab`.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn keeping(kept: &[&str], files: &[(&str, &Path)]) -> Result<Machine> {
        let share = share(files)?;
        std::fs::write(share.path().join("kept"), format!("{}\n", kept.join("\n")))?;
        Ok(Machine { share })
    }

    /// Starts it, runs a shell script (`sh -eux`) and ends it.
    ///
    /// # Errors
    /// When the machine does not come up, or does not end.
    pub fn start(&self, script: &str, end: End) -> Result<Ran> {
        let cut = self.share.path().join("cut");
        match end {
            End::Cut => std::fs::write(cut, "")?,
            End::Stop if cut.exists() => std::fs::remove_file(cut)?,
            End::Stop => {}
        }
        start(&self.share, script, &[])
    }

    /// Where a path in a kept directory is while the machine is off.
    pub fn disk(&self, path: &str) -> PathBuf {
        self.share.path().join("disk").join(path.trim_start_matches('/'))
    }
}

/// Runs a shell script (`sh -eux`) under systemd, with these files beside it in `/run/lab`, and with these devices of this machine.
///
/// # Errors
/// When the machine does not come up, or does not end.
pub fn run(script: &str, files: &[(&str, &Path)], devices: &[&Path]) -> Result<Ran> {
    start(&share(files)?, script, devices)
}

/// A directory for a machine's `/run/lab`.
fn share(files: &[(&str, &Path)]) -> Result<TempDir> {
    let share = TempDir::with_prefix("rubus-lab-systemd-")?;
    let at = |name: &str| share.path().join(name);
    for (name, file) in files {
        let cannot = || format!("cannot copy {}", file.display());
        std::fs::copy(file, at(name)).with_context(cannot)?;
    }
    std::fs::write(at("set-up"), SET_UP)?;
    Ok(share)
}

fn start(share: &TempDir, script: &str, devices: &[&Path]) -> Result<Ran> {
    let at = |name: &str| share.path().join(name);
    for old in ["status", "output"].map(at) {
        if old.exists() {
            std::fs::remove_file(old)?;
        }
    }
    std::fs::write(at("script"), script)?;
    let root = TempDir::with_prefix("rubus-lab-root-")?;
    let mut command = programs::command("unshare");
    command
        .args(["--mount", "--pid", "--fork", "--kill-child", "--net"])
        .args(["--uts", "--ipc", "--cgroup", "sh"])
        .arg(at("set-up"))
        .args([root.path(), share.path()])
        .args(devices);
    let said = finish(&mut command, &at("said"))?;
    let read = |name| std::fs::read_to_string(at(name)).unwrap_or_default();
    match read("status").trim().parse() {
        Ok(status) => Ok(Ran { status, output: read("output") }),
        Err(_) => bail!("systemd did not come so far: {said}\n{}", read("output")),
    }
}

/// Waits for the end of a command and gives what it wrote.
fn finish(command: &mut Command, said: &Path) -> Result<String> {
    let out = std::fs::File::create(said)?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?);
    let mut child = command.stderr(out).spawn().context("cannot run unshare")?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            // The whole machine goes with its first process.
            let _ = child.kill();
            let _ = child.wait();
            bail!("it did not end within {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(std::fs::read_to_string(said).unwrap_or_default())
}
