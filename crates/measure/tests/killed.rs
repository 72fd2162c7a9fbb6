//! A session that is killed leaves nothing behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rubus_fixtures::skipped;

/// The example beside this test; cargo builds the examples of a package for its tests.
fn example() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    let target = test.ancestors().nth(2).expect("target/debug/deps/killed");
    target.join("examples/session")
}

#[test]
fn a_killed_session_leaves_no_file() {
    let here = tempfile::tempdir().expect("a directory");
    let program = example();
    if !program.exists() {
        // Only this test was asked for, without the examples.
        return skipped("a killed session", &format!("{} was not built", program.display()));
    }
    let mut session = Command::new(program)
        .arg(here.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the example starts");
    // Killed at several moments of the fill and of the jobs after it.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        let names: Vec<_> = std::fs::read_dir(here.path()).expect("the directory").collect();
        // A filesystem without nameless files shows one for the blink of an eye.
        assert!(names.len() <= 1, "{names:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    session.kill().expect("it still runs");
    session.wait().expect("it ended");
    let left: Vec<_> = std::fs::read_dir(here.path()).expect("the directory").collect();
    assert!(left.is_empty(), "{left:?}");
}
