//! The process that removes what a measurement makes: groups, swap, zram devices, settings.
//!
//! It is started before anything is made, is told each thing before that is made, and undoes all of them, the last one
//! first, when the line to it is cut: by the end of the measurement or by a kill, which makes no difference to it. It
//! has a session of its own and ignores what ends others politely.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Duration;

use anyhow::{Context, ensure};
use rubus_host::WriteError;
use rubus_host::clock;
use rubus_host::files::mounting::swap_off;
use rubus_host::files::own_files;
use rubus_host::process::memory_group::MemoryGroup;
use rubus_host::process::standard_error;
use serde::{Deserialize, Serialize};

/// The hidden argument that makes this program a keeper.
pub const ARGUMENT: &str = "--keeper";

/// How long the kernel may refuse to let a device go.
const PATIENCE: Duration = Duration::from_secs(20);

/// Something that is to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A control group was made.
    Group {
        /// Version of control groups.
        version: u32,
        /// Directory of the group.
        directory: PathBuf,
        /// See [`MemoryGroup::aside`].
        aside: Option<(PathBuf, PathBuf)>,
    },
    /// An area is used as swap.
    Swap(PathBuf),
    /// A zram device was made.
    Zram(u32),
    /// A setting of the kernel was changed.
    Knob {
        /// Path of the setting.
        path: PathBuf,
        /// Value before.
        value: String,
    },
}

impl Deed {
    /// That of a group.
    pub fn group(group: &MemoryGroup) -> Self {
        Deed::Group {
            version: group.version,
            directory: group.directory.clone(),
            aside: group.aside.clone(),
        }
    }

    /// Undoes it. What was not done in the end is no trouble.
    fn undo(&self) -> anyhow::Result<()> {
        match self {
            Deed::Group { version, directory, aside } => MemoryGroup {
                version: *version,
                directory: directory.clone(),
                aside: aside.clone(),
            }
            .remove()
            .map_err(Into::into),
            Deed::Swap(path) if !is_swap(path) => Ok(()),
            Deed::Swap(path) => swap_off(path).map_err(WriteError::into),
            Deed::Zram(number) => remove_zram(*number),
            Deed::Knob { path, value } => {
                let now = own_files::text(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                if now.trim() == value {
                    return Ok(());
                }
                own_files::write(path, value)
                    .with_context(|| format!("cannot put {value} back into {}", path.display()))
            }
        }
    }
}

fn is_swap(path: &Path) -> bool {
    let text = own_files::text(Path::new("/proc/swaps")).unwrap_or_default();
    let mut lines = text.lines().skip(1);
    lines.any(|line| line.split_whitespace().next().map(Path::new) == Some(path))
}

fn remove_zram(number: u32) -> anyhow::Result<()> {
    if !Path::new(&format!("/sys/block/zram{number}")).exists() {
        return Ok(());
    }
    // Programs that look at new devices (above all udev) may have it open for a moment.
    let give_up = clock::now() + PATIENCE;
    loop {
        let removed =
            own_files::write(Path::new("/sys/class/zram-control/hot_remove"), &number.to_string());
        if removed.is_ok() || clock::now() > give_up {
            return removed.with_context(|| format!("cannot remove zram{number}"));
        }
        clock::sleep(Duration::from_millis(50));
    }
}

/// The line to a keeper.
pub struct Keeper {
    child: Child,
    line: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts a keeper process.
    ///
    /// # Errors
    /// When this program cannot be started once more.
    pub fn start() -> anyhow::Result<Keeper> {
        let tried = "cannot start the process that cleans up after a kill";
        let (child, line, answers) = super::start_own(ARGUMENT, tried)?;
        let mut keeper = Keeper { child, line: Some(line), answers: BufReader::new(answers) };
        // Until it says so, a signal to the terminal's processes would still end it.
        keeper.hear()?;
        Ok(keeper)
    }

    /// Tells it what is about to be made.
    ///
    /// # Errors
    /// When it does not answer: then nothing may be made.
    pub fn promise(&mut self, deed: &Deed) -> anyhow::Result<()> {
        let text = serde_json::to_string(deed).context("cannot write JSON")?;
        let line = self.line.as_mut().context("the keeper was let go")?;
        writeln!(line, "{text}").context("the process that cleans up is gone")?;
        self.hear()
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(answer.trim() == "kept", "the process that cleans up is gone");
        Ok(())
    }

    /// Has everything undone, and waits for it.
    ///
    /// # Errors
    /// When something could not be undone; the keeper has said what on standard error.
    pub fn finish(mut self) -> anyhow::Result<()> {
        drop(self.line.take());
        let status = self.child.wait().context("cannot wait for the keeper")?;
        ensure!(
            status.success(),
            "not everything that was made could be removed again; standard error says what"
        );
        Ok(())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.line.take().is_some() {
            // It says itself what it could not undo.
            let _ = self.child.wait();
        }
    }
}

/// What the keeper does: from the first line to the end of the last.
pub fn serve() -> bool {
    // Fails where it leads a session already.
    let _ = rustix::process::setsid();
    rubus_host::process::signals::ignore(&[
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGPIPE,
    ]);
    // The directory that it was started in may be wanted for unmounting.
    let _ = rustix::process::chdir("/");
    let mut deeds: Vec<Deed> = Vec::new();
    let kept = || {
        // If the pipe has no reader any more, it is about to be closed.
        let mut out = std::io::stdout();
        let _ = writeln!(out, "kept").and_then(|()| out.flush());
    };
    kept();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        // A line that was cut in its middle is of something that was never made.
        let Ok(deed) = serde_json::from_str(&line) else {
            break;
        };
        deeds.push(deed);
        kept();
    }
    let mut is_clean = true;
    for deed in deeds.iter().rev() {
        if let Err(error) = deed.undo() {
            let words = format!("rubus: taking away what was made for measuring: {error:#}");
            standard_error::write_line(&words);
            is_clean = false;
        }
    }
    is_clean
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use super::*;

    #[test]
    fn deeds_go_over_the_line_and_what_was_not_done_needs_no_undoing() {
        let deeds = [
            Deed::group(&MemoryGroup::planned(2, Path::new("/nowhere"), true)),
            Deed::Swap("/dev/nothing".into()),
            Deed::Zram(123_456),
        ];
        for deed in deeds {
            let line = serde_json::to_string(&deed).unwrap();
            assert_eq!(serde_json::from_str::<Deed>(&line).unwrap(), deed);
            deed.undo().unwrap();
        }
    }

    #[test]
    fn a_setting_is_put_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Y\n").unwrap();
        let deed = Deed::Knob { path: file.path().into(), value: "N".into() };
        deed.undo().unwrap();
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "N");
    }
}
