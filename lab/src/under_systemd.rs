//! A machine in namespaces whose first process is systemd, for what only that can show: that units start, with the
//! rights that they name.
//!
//! It has this machine's programs and kernel, a network of its own with nothing but loopback, and what it writes is in memory. It is
//! there within a second or two, other than on a board.

use std::path::Path;
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

/// Runs a shell script (`sh -eux`) under systemd, with these files beside it in `/run/lab`, and with these devices of this machine.
///
/// # Errors
/// When the machine does not come up, or does not end.
pub fn run(script: &str, files: &[(&str, &Path)], devices: &[&Path]) -> Result<Ran> {
    let share = TempDir::with_prefix("rubus-lab-systemd-")?;
    let at = |name: &str| share.path().join(name);
    for (name, file) in files {
        let cannot = || format!("cannot copy {}", file.display());
        std::fs::copy(file, at(name)).with_context(cannot)?;
    }
    std::fs::write(at("script"), script)?;
    std::fs::write(at("set-up"), SET_UP)?;
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
        Ok(status) => Ok(Ran {
            status,
            output: read("output"),
        }),
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
