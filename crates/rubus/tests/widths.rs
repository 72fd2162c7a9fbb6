//! What the verbs print on terminals of three widths: no line is wider, so that the terminal breaks no word.

use std::path::Path;
use std::process::{Command, Stdio};

use rubus_vocabulary::next_step::READ_CAPTURES;

const CAPTURES: [&str; 3] = ["pi4b-usb3-ssd", "emulated-pi3", "pi5-nvme"];

/// Verbs that need no more than a captured machine.
const LINES: [&str; 23] = [
    "advise",
    "advise swap",
    "advise --verbose",
    "boot",
    "boot --verbose",
    "cluster compare --nodes 4 --disk 1TB",
    "compare --list-references",
    "explain usb3-disk-at-usb2",
    "help",
    "history",
    "plan desktop device=/dev/sda",
    "plan logs-to-memory",
    "plan swap",
    "plan zswap",
    "recipes",
    "recipes desktop",
    "suites",
    "survey",
    "survey --rules",
    "survey --serials",
    "survey --verbose",
    "zswap",
    "--help",
];

/// Those of them that refuse one.
const READ_NO_MACHINE: [&str; 6] = ["cluster", "compare", "help", "history", "recipes", "suites"];

/// The help of each verb that the program lists.
fn helps() -> Vec<String> {
    let program = assert_cmd::cargo::cargo_bin("rubus");
    let output = Command::new(program).arg("help").output().expect("rubus runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().take_while(|line| *line != "Options:").filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        name.starts_with(|first: char| first.is_ascii_lowercase()).then_some(name)
    });
    names.map(|name| format!("{name} --help")).collect()
}

/// What a command line prints on a terminal of `columns` columns.
fn on_terminal(home: &Path, columns: usize, line: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin("rubus");
    let script = format!("stty cols {columns} rows 50; {} {line}", program.display());
    let output = Command::new("script")
        .args(["-q", "-c", &script, "/dev/null"])
        .env("XDG_DATA_HOME", home)
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::null())
        .output()
        .expect("script (bsdutils) runs");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

/// A path or a bar longer than a line has no place to be broken at, and a command to be typed is not broken.
fn can_be_broken(line: &str, columns: usize) -> bool {
    let is_alone = |words: &str| {
        let programs = ["sudo ", "rubus "];
        programs.iter().any(|program| words.starts_with(program)) && !words.contains('(')
    };
    let is_command = line.strip_prefix("To do: ").is_some_and(is_alone)
        || line.strip_prefix("  sudo rubus apply ").is_some();
    !is_command && line.split_whitespace().all(|word| rubus_draw::text::width(word) < columns / 2)
}

#[test]
fn no_verb_prints_wider_than_its_terminal() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let helps = helps();
    assert!(helps.len() > 30, "the verbs were not found: {helps:?}");
    for columns in [60, 80, 120] {
        for line in &helps {
            fits(home.path(), columns, line);
        }
        for capture in CAPTURES {
            for line in LINES {
                let verb = line.split(' ').next().unwrap_or_default();
                let line = if READ_NO_MACHINE.contains(&verb) || line.starts_with('-') {
                    line.to_string()
                } else {
                    format!("--machine captures/{capture} {line}")
                };
                fits(home.path(), columns, &line);
            }
        }
    }
}

fn fits(home: &Path, columns: usize, line: &str) {
    let text = on_terminal(home, columns, line);
    assert!(!text.trim().is_empty(), "{line}");
    for printed in text.lines().filter(|printed| can_be_broken(printed, columns)) {
        let width = rubus_draw::text::width(printed);
        assert!(width <= columns, "{line}: {width} of {columns}: {printed}");
    }
}

#[test]
fn every_verb_that_reads_a_capture_is_tried() {
    for verb in READ_CAPTURES {
        assert!(LINES.iter().any(|line| line.split(' ').next() == Some(verb)), "{verb}");
    }
}

/// What is for programs keeps its lines.
#[test]
fn a_document_keeps_its_lines() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let text = on_terminal(home.path(), 60, "--machine captures/pi5-nvme survey --json");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(value["board"].is_object());
    let whole = on_terminal(home.path(), 60, "completions bash");
    assert!(whole.lines().any(|line| line.len() > 200), "a script is one");
}
