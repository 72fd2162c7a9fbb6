//! What the tests with real devices share: taking turns, saying what is missing, running the built
//! program and fio, and looking for what they left behind.

// Each test file uses its own part of this.
#![allow(dead_code)]

pub mod cluster;
pub mod desktop;
pub mod fio;
pub mod leftovers;
pub mod nasty_tree;
pub mod network_root;
pub mod packages;
pub mod packages_on_board;
pub mod pressure;
pub mod program;
pub mod raspi_firmware;
pub mod run;
pub mod served;
pub mod server_machine;
pub mod shelf;
pub mod sshd;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rubus_fixtures::skipped;
use rubus_lab::devices::needs::{Need, first_missing};

/// Lets the tests of one file run one after the other, whatever `--test-threads` says: what runs
/// beside a measurement is measured too. Files run one after the other anyway.
pub fn take_turns() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has cleaned up by its guards: the next one may run.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether everything is there. When not, says so loudly; with `RUBUS_REQUIRE_ALL=1` a test that
/// cannot run fails.
pub fn can_run(test: &str, needs: &[Need]) -> bool {
    let Some(reason) = first_missing(needs) else {
        return true;
    };
    skipped(test, &reason);
    false
}

/// A shell script that can be run.
pub fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a file");
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("permissions");
}

/// Prints a note of a test without the capturing of the test harness, so that the tables are seen.
pub fn report(text: &str) {
    use std::io::Write;
    let mut error = std::io::stderr().lock();
    let _ = writeln!(error, "{text}");
}
