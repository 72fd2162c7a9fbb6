//! Whatever a name leads to, a verb that reads a file ends, with an error, a few hundred megabytes and no waiting: for input
//! without end, a directory, a pipe without a writer, and a file far over the limit.

use std::fs::File;
use std::path::Path;

use assert_cmd::Command;
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// All verbs that read a file that a user names.
const VERBS: [&[&str]; 21] = [
    &["compare", "FILE", "FILE"],
    &["history", "import", "FILE"],
    &["gallery", "FILE"],
    &["survey", "--kernel-log", "FILE"],
    &["survey", "--machine", "FILE"],
    &["survey", "--on", "@FILE"],
    &["checkup", "--on", "@FILE"],
    &["advise", "--on", "@FILE"],
    &["advise", "--machine", "FILE"],
    &["advise", "--from", "FILE"],
    &["boot", "FILE"],
    &["bench", "--fio-job", "FILE"],
    &["bench", "--on", "@FILE", "."],
    &["survey", "--on", "localhost", "--binary", "FILE"],
    &["plan", "FILE.toml"],
    &["apply", "FILE.json"],
    &["plan", "desktop", "--image", "FILE"],
    &["watch", "--replay", "FILE"],
    &["writers", "FILE"],
    &["cluster", "size", "--file", "FILE"],
    &["serve", "FILE.toml"],
];
/// Those that read standard input for `-`.
const OF_STANDARD_INPUT: [&[&str]; 3] =
    [&["compare", "-", "-"], &["history", "import", "-"], &["bench", "--fio-job", "-", "."]];
/// Far more than any takes: an address space in KiB, and seconds.
const MEMORY: &str = "1500000";
const PATIENCE: &str = "60";

/// The program with bounds of its own, in a place of its own, with this standard input.
fn bounded(place: &Path, arguments: &[String], input: &str) -> Command {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v \"$0\" && exec timeout -k 1 \"$@\" < {input}");
    command.args(["-c", &limited, MEMORY, PATIENCE]);
    command.arg(assert_cmd::cargo::cargo_bin("rubus"));
    command.args(arguments).current_dir(place).env("XDG_DATA_HOME", place);
    command
}

/// Runs it; nothing when it ended by itself, with an error that is one of its own and about what was named.
fn fault(mut command: Command, named: &str) -> Option<String> {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_own = output.status.code().is_some_and(|status| [1, 2].contains(&status));
    let is_well = is_own && said.contains(named) && !said.contains("out of memory");
    (!is_well).then(|| format!("{}: {said}", output.status))
}

/// What the error is about. What kind of program a file is matters once another machine has said its own kind.
fn named_by(verb: &[&str], kind: &str) -> String {
    let is_of_another = verb.contains(&"--binary") && kind == "long";
    if is_of_another { "localhost".into() } else { kind.into() }
}

/// What each verb does wrong with the file `kind`.
fn faults(place: &Path, kind: &str) -> Vec<String> {
    for ending in ["toml", "json"] {
        let link = place.join(format!("{kind}.{ending}"));
        std::os::unix::fs::symlink(kind, link).expect("a link");
    }
    let mut faults = Vec::new();
    for verb in VERBS {
        let arguments: Vec<String> = verb.iter().map(|word| word.replace("FILE", kind)).collect();
        let command = bounded(place, &arguments, "/dev/null");
        let fault = fault(command, &named_by(verb, kind));
        faults.extend(fault.map(|fault| format!("{}: {fault}", arguments.join(" "))));
    }
    faults
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn input_without_end_ends_every_verb() {
    let place = place();
    std::os::unix::fs::symlink("/dev/zero", place.path().join("endless")).expect("a link");
    assert_eq!(faults(place.path(), "endless"), Vec::<String>::new());
}

#[test]
fn a_directory_ends_every_verb() {
    let place = place();
    std::fs::create_dir(place.path().join("directory")).expect("a directory");
    assert_eq!(faults(place.path(), "directory"), Vec::<String>::new());
}

#[test]
fn a_pipe_without_a_writer_ends_every_verb() {
    let place = place();
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, place.path().join("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
    assert_eq!(faults(place.path(), "pipe"), Vec::<String>::new());
}

#[test]
fn a_file_far_over_the_limit_ends_every_verb() {
    let place = place();
    // Holes: it takes no room.
    let long = File::create(place.path().join("long"));
    long.and_then(|file| file.set_len(20 << 30)).expect("a long file");
    assert_eq!(faults(place.path(), "long"), Vec::<String>::new());
}

#[test]
fn standard_input_without_end_ends_every_verb() {
    let place = place();
    let mut faults = Vec::new();
    for verb in OF_STANDARD_INPUT {
        let arguments: Vec<String> = verb.iter().map(ToString::to_string).collect();
        let command = bounded(place.path(), &arguments, "/dev/zero");
        let fault = fault(command, "standard input");
        faults.extend(fault.map(|fault| format!("{}: {fault}", arguments.join(" "))));
    }
    assert_eq!(faults, Vec::<String>::new());
}
