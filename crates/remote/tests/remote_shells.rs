//! Quoting and the remote shell texts, tried on the shells that are here: every machine has `sh`; bash,
//! busybox ash, fish and tcsh are tried where they are installed.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proptest::prelude::*;
use rubus_draw::quote::quote;
use rubus_remote::answer::{KeeperAnswer, Place, Taken, Useless};
use rubus_remote::script;

/// Shells that may be a user's login shell, as commands to which a text is added.
const SHELLS: [(&str, &[&str]); 5] = [
    ("sh", &["-c"]),
    ("bash", &["-c"]),
    ("busybox", &["sh", "-c"]),
    ("fish", &["-c"]),
    ("tcsh", &["-f", "-c"]),
];

/// The POSIX shells, which run the texts themselves.
const POSIX: [(&str, &[&str]); 3] =
    [("sh", &["-c"]), ("bash", &["--posix", "-c"]), ("busybox", &["sh", "-c"])];

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

fn shells(all: &'static [(&'static str, &'static [&'static str])]) -> Vec<Shell> {
    let there = all.iter().filter(|(program, _)| is_installed(program));
    let found: Vec<Shell> = there.map(|(program, before)| Shell { program, before }).collect();
    assert!(found.iter().any(|shell| shell.program == "sh"));
    found
}

#[derive(Clone, Copy)]
struct Shell {
    program: &'static str,
    before: &'static [&'static str],
}

impl Shell {
    fn run(&self, command: &str, input: &[u8], environment: &[(&str, &Path)]) -> Output {
        let mut shell = Command::new(self.program);
        shell.args(self.before).arg(command);
        for (name, value) in environment {
            shell.env(name, value);
        }
        let piped = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the shell starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A shell that ends at once does not read it.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("the shell ends")
    }

    fn echo(&self, words: &[String]) -> Vec<u8> {
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let command = format!("printf '%s|' {}", quoted.join(" "));
        let output = self.run(&command, b"", &[]);
        assert!(output.stderr.is_empty(), "{}: {output:?}", self.program);
        output.stdout
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_shell_reads_back_what_was_quoted(
        words in proptest::collection::vec(r#"[ -~äß€"'\\!$`*?~#&;|<>(){}\[\]=%^-]{0,12}"#, 1..6)
    ) {
        let expected: String = words.iter().map(|word| format!("{word}|")).collect();
        for shell in shells(&SHELLS) {
            let echoed = String::from_utf8(shell.echo(&words)).expect("it is text");
            prop_assert_eq!(&echoed, &expected, "{}", shell.program);
        }
    }

    #[test]
    fn line_feeds_and_control_characters_pass_posix_shells(word in r"[a\n\t\r\x01\x7f'\\]{0,12}") {
        for shell in shells(&POSIX) {
            let echoed = String::from_utf8(shell.echo(std::slice::from_ref(&word))).expect("it is text");
            prop_assert_eq!(&echoed, &format!("{}|", word), "{}", shell.program);
        }
    }
}

/// A keeper that is told to end at once, in directories of our own.
fn keep(shell: &Shell, needed: u64, runtime: &Path, home: &Path) -> Place {
    let nowhere = home.join("nowhere");
    let environment = [("XDG_RUNTIME_DIR", runtime), ("TMPDIR", &nowhere), ("HOME", home)];
    let output = shell.run(&script::keeper(needed), b"", &environment);
    assert!(output.stderr.is_empty(), "{}: {output:?}", shell.program);
    let text = String::from_utf8(output.stdout).expect("it is text");
    let mut answer = KeeperAnswer::default();
    let place = text.lines().find_map(|line| answer.line(line));
    place.unwrap_or_else(|| panic!("{}: no answer in {text:?}", shell.program))
}

#[test]
fn the_keeper_makes_a_place_and_removes_it_in_every_shell() {
    // The login shell may be any; it starts a POSIX one.
    for shell in shells(&SHELLS).iter().chain(&shells(&POSIX)) {
        let home = tempfile::tempdir().expect("a directory");
        let runtime = home.path().join("run time");
        std::fs::create_dir(&runtime).expect("a directory");
        let place = keep(shell, 100_000, &runtime, home.path());
        let directory = place.directory.expect("a place was found");
        assert!(directory.starts_with(runtime.to_str().expect("text")), "{directory}");
        assert!(!Path::new(&directory).exists(), "{directory} is left");
        assert_eq!(std::fs::read_dir(&runtime).expect("there").count(), 0);
        assert!(!place.machine.is_empty());
        assert_eq!(place.system, "Linux");
    }
}

#[test]
fn the_keeper_passes_over_what_is_absent_or_full() {
    for shell in shells(&POSIX) {
        let home = tempfile::tempdir().expect("a directory");
        let absent = home.path().join("absent");
        let place = keep(&shell, 1 << 60, &absent, home.path());
        assert_eq!(place.directory, None);
        let expected = [(absent.display().to_string(), Useless::Absent)];
        assert_eq!(place.tried[..1], expected, "{}", shell.program);
        let own = home.path().display().to_string();
        assert!(place.tried.contains(&(own, Useless::Full)), "{:?}", place.tried);
        // What does not exist costs nothing but a line.
        let place = keep(&shell, 1, &absent, home.path());
        assert!(place.directory.is_some());
    }
}

#[test]
fn a_file_is_taken_whole_and_can_be_run() {
    for shell in shells(&POSIX) {
        let directory = tempfile::tempdir().expect("a directory");
        let strange = directory.path().join("it's a $(place)");
        std::fs::create_dir(&strange).expect("a directory");
        let path = strange.to_str().expect("text");
        let contents = b"#!/bin/sh\necho \"$@\"; exit 7\n";
        let output = shell.run(&script::take(path, "rubus"), contents, &[]);
        assert!(output.status.success(), "{}: {output:?}", shell.program);
        let taken = Taken::parse(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(taken.bytes, Some(contents.len() as u64));
        let back = shell.run(&script::give(path, "rubus"), b"", &[]);
        assert_eq!(back.stdout, contents);
        let program = format!("{path}/rubus");
        let run = shell.run(&script::run(path, &[&program, "a  b", "c"]), b"", &[]);
        assert_eq!(run.status.code(), Some(7));
        assert_eq!(run.stdout, b"a  b c\n");
        assert!(strange.exists());
    }
}

#[test]
fn a_run_that_was_abandoned_clears_its_place() {
    for shell in shells(&POSIX) {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("rubus.x");
        std::fs::create_dir(&place).expect("a directory");
        let path = place.to_str().expect("text");
        let run = shell.run(&script::run(path, &["sh", "-c", "exit 75"]), b"", &[]);
        assert_eq!(run.status.code(), Some(75));
        assert!(!place.exists());
    }
}
