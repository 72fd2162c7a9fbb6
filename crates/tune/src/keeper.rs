//! The process that restores the settings when the trial is killed.
//!
//! It is this program once more, with a session of its own, which ignores the signals that end others. The end of the
//! pipe from the trial is what it waits for: a kill ends that as surely as an orderly exit. What is to be restored is in
//! the record, so that nothing depends on what was last said on the pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::time::Duration;

use anyhow::{Context, ensure};
use rubus_host::live::hands::{LiveHands, Lock, lock};
use rubus_host::process::{programs, signals, standard_error};
use rubus_host::{Hands, clock};
use serde::{Deserialize, Serialize};

use crate::live::restore_left;
use crate::record::{self, Record};
use crate::words::fates;

/// The hidden option that makes this program a keeper.
pub const ARGUMENT: &str = "--keeper";
/// How long the lock of a killed trial may take to be released.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the keeper has to know.
#[derive(Serialize, Deserialize)]
struct Order {
    directory: PathBuf,
    session: String,
}

/// A trial's hold on this machine: the lock, and the keeper that restores what the trial leaves.
pub struct Held {
    session: String,
    lock: Option<Lock>,
    child: Child,
    line: Option<ChildStdin>,
}

impl Held {
    /// Starts the keeper of a session. The lock is released before the keeper is told to restore, since it takes it itself.
    ///
    /// # Errors
    /// When this program cannot be started once more: then nothing may be changed.
    pub fn start(lock: Lock, directory: &Path, session: &str) -> anyhow::Result<Held> {
        let tried = "cannot start the process that restores settings after a kill";
        let mut child = programs::this_one_again(&["tune", ARGUMENT]).context(tried)?;
        let line = child.stdin.take().context("it has no input")?;
        let answers = child.stdout.take().context("it has no output")?;
        let mut held = Held { session: session.into(), lock: Some(lock), child, line: Some(line) };
        let order = Order { directory: directory.into(), session: session.into() };
        let text = serde_json::to_string(&order).context("cannot write JSON")?;
        let line = held.line.as_mut().context("it has no input")?;
        writeln!(line, "{text}").context(tried)?;
        // Until it says so, a signal to all processes of the terminal would still end it.
        let mut answer = String::new();
        BufReader::new(answers).read_line(&mut answer).context(tried)?;
        ensure!(answer.trim() == "kept", tried);
        Ok(held)
    }

    /// Tells this trial from every other one.
    pub fn session(&self) -> &str {
        &self.session
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.lock.take());
        drop(self.line.take());
        // It says itself what it could not restore.
        let _ = self.child.wait();
    }
}

/// What the keeper does. False when a setting could not be restored.
pub fn serve() -> bool {
    // Fails where it leads a session already.
    let _ = rustix::process::setsid();
    signals::ignore(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE]);
    // The directory that it was started in may be wanted for unmounting.
    let _ = rustix::process::chdir("/");
    let mut lines = std::io::stdin().lock().lines();
    let Some(Ok(line)) = lines.next() else {
        return true;
    };
    let Ok(order) = serde_json::from_str::<Order>(&line) else {
        return true;
    };
    let mut out = std::io::stdout();
    let _ = writeln!(out, "kept").and_then(|()| out.flush());
    while let Some(Ok(_)) = lines.next() {}
    restore(&order)
}

fn restore(order: &Order) -> bool {
    let hands = &mut LiveHands::new();
    let give_up = clock::now() + PATIENCE;
    let _held = loop {
        let is_left = match Record::load(&order.directory, hands.files()) {
            Ok(record) => record.is_some_and(|record| record.session == order.session),
            Err(_) => true,
        };
        if !is_left {
            // The trial has restored all, or another one after it has.
            return true;
        }
        match lock(&record::lock(&order.directory)) {
            Ok(None) if clock::now() < give_up => clock::sleep(Duration::from_millis(100)),
            Ok(held) => break held,
            Err(_) => break None,
        }
    };
    // A trial that holds the lock has restored this record before it began, so this one is ours alone.
    match restore_left(&order.directory, Some(&order.session), hands) {
        Ok(restored) => {
            for words in fates(&restored) {
                standard_error::write_line(&format!("rubus: {words}"));
            }
            restored.iter().all(|one| !matches!(one.fate, crate::live::Fate::Failed(_)))
        }
        Err(error) => {
            standard_error::write_line(&format!("rubus: {error}"));
            false
        }
    }
}
