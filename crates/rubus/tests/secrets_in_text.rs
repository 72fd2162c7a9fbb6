//! What the program prints on a terminal: people paste it in public, so no secret in a machine, a run or a recording
//! may be left in it, in any spelling.
//!
//! One machine has every secret in every place that has room for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../host/src/shareable/planted.rs"]
#[allow(dead_code)]
mod planted;

use planted::{Text, planted, values};

fn rubus(home: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rubus"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .env("XDG_DATA_HOME", home)
        .output()
        .expect("it runs");
    let status = output.status.code();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("a text");
    assert!(matches!(status, Some(0 | 1)), "{arguments:?}: {status:?}: {text}");
    text
}

/// The secrets that a text has, each with what stands around it.
fn found_in(text: &str) -> Vec<String> {
    let text = Text::of(text);
    let found = values().into_iter().filter_map(|secret| {
        let spelling = text.has(secret)?;
        Some(format!("{secret}: {:?}", text.around(&spelling)))
    });
    found.collect()
}

fn add(files: &Path, path: &str, text: &str) {
    let path = files.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, before.trim_end_matches('\n').to_string() + text).expect("written");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        let kind = entry.file_type().expect("a kind");
        if kind.is_symlink() {
            let target = fs::read_link(entry.path()).expect("a link");
            std::os::unix::fs::symlink(target, to).expect("a link");
        } else if kind.is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}

/// A Raspberry Pi 4 with secrets wherever people, servers or makers may put them. Which of them is the last on the command line
/// decides what it starts from; every text is in each place of one of the two.
fn machine(at: &Path, is_forwards: bool) {
    copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/pi4b-usb3-ssd")), at);
    let files = at.join("files");
    let mut texts: Vec<String> = planted().into_iter().map(|one| one.text).collect();
    if !is_forwards {
        texts.reverse();
    }
    let columns: Vec<String> = texts.iter().map(|text| text.replace(' ', "\\040")).collect();
    let line = format!(" {}\n", texts.join(" "));
    add(&files, "proc/cmdline", &line);
    add(&files, "boot/firmware/cmdline.txt", &line);
    for (at, column) in columns.iter().enumerate() {
        let text = &texts[at];
        // The other half is in the other machine.
        if at % 2 == 1 {
            continue;
        }
        add(
            &files,
            "etc/fstab",
            &format!(
                "\n{column} /mnt/d{at} ext4 defaults 0 0\n/dev/sda1 /mnt/{column} cifs rw,{column} 0 0\n# {text}\n"
            ),
        );
        let (id, minor) = (100 + at, 50 + at);
        add(
            &files,
            "proc/self/mountinfo",
            &format!(
                "\n{id} 1 0:{minor} /{column} /mnt/{column} rw,{column} shared:9 - cifs {column} rw,{column}\n\
                 {id}1 1 8:2 / /media/{column} rw shared:9 - ext4 /dev/sda2 rw,{column}\n"
            ),
        );
        add(&files, "proc/swaps", &format!("\n{column} file 1000 0 -2\n"));
        add(
            &files,
            "etc/crypttab",
            &format!("\n{column} {column} {column} luks,{column}\n# {text}\n"),
        );
        add(
            &files,
            "boot/firmware/config.txt",
            &format!(
                "\n# {text}\n[{text}]\nkernel={text}\n{text}=1\ndtoverlay={text}\n{text}\n[all]\n"
            ),
        );
        let is_interface = !text.contains(['/', ' ', ':', '=']) && text.len() <= 15;
        if is_interface {
            add(&files, &format!("sys/class/net/{text}/operstate"), "up\n");
        }
    }
}

struct Place {
    home: tempfile::TempDir,
    capture: PathBuf,
}

fn place(is_forwards: bool) -> Place {
    let home = tempfile::tempdir().expect("a directory");
    let capture = home.path().join("board");
    machine(&capture, is_forwards);
    Place { home, capture }
}

fn check(place: &Place, arguments: &[&str]) -> Vec<String> {
    let text = rubus(place.home.path(), arguments);
    let lines: Vec<&str> = text.lines().filter(|line| !is_on_purpose(line)).collect();
    let found = found_in(&lines.join("\n"));
    found.iter().map(|found| format!("{}: {found}", arguments.join(" "))).collect()
}

/// Texts alone: JSON is for the machine's owner.
const OF_A_MACHINE: &[&[&str]] = &[
    &["survey", "--verbose"],
    &["boot", "--verbose"],
    &["advise", "server", "--pipes"],
    &["zswap"],
];

/// The other verbs, and why no machine's secret can be in their text, or why it may be.
const OTHERS: &[(&str, &str)] = &[
    ("explain", "in a test of its own, for each finding"),
    ("plan", "the exact change is shown, to be agreed to"),
    ("apply", "as plan"),
    ("undo", "as plan"),
    ("resume", "as plan"),
    ("status", "what a plan did, on this machine alone"),
    ("verify", "as status"),
    ("tune", "the directory that was named, and settings by the kernel's names"),
    ("watch", "the running machine, to its owner"),
    ("writers", "as watch"),
    ("checkup", "the directory that was named"),
    ("bench", "as checkup"),
    ("enough", "as checkup"),
    ("compression", "as checkup"),
    ("copy", "what was named"),
    ("serve", "as copy"),
    ("nbd", "as copy"),
    ("attach", "as copy"),
    ("detach", "as copy"),
    ("compare", "reads no machine"),
    ("history", "the reader's own runs"),
    ("share", "a file, which other tests look through"),
    ("gallery", "files that were shared"),
    ("cluster", "what was typed"),
    ("suites", "reads no machine"),
    ("recipes", "reads no machine"),
    ("help", "reads no machine"),
    ("completions", "reads no machine"),
    ("manual", "reads no machine"),
];

/// What `root=` names has to be compared and typed, so it is shown as it is.
fn is_on_purpose(line: &str) -> bool {
    line.contains("root=LABEL=")
}

#[test]
fn no_secret_of_a_machine_is_printed() {
    for is_forwards in [true, false] {
        let place = place(is_forwards);
        let capture = place.capture.display().to_string();
        let mut left = Vec::new();
        for arguments in OF_A_MACHINE {
            left.extend(check(&place, &[&["--machine", &capture], *arguments].concat()));
        }
        assert!(left.is_empty(), "{} are left:\n{}", left.len(), left.join("\n"));
    }
}

#[test]
fn no_secret_is_in_the_explanation_of_what_is_found() {
    let place = place(true);
    let capture = place.capture.display().to_string();
    let survey = rubus(place.home.path(), &["--machine", &capture, "survey", "--json"]);
    let survey: serde_json::Value = serde_json::from_str(&survey).expect("JSON");
    let found = survey["findings"].as_array().expect("findings");
    let codes: BTreeSet<&str> = found.iter().filter_map(|one| one["rule"].as_str()).collect();
    // Each takes as long as a survey of this machine, of which everything is there hundreds of times.
    let codes: Vec<&str> = codes.into_iter().step_by(8).collect();
    assert!(codes.len() > 1, "{codes:?}");
    let explain = |code| check(&place, &["--machine", &capture, "explain", code]);
    let left: Vec<String> = codes.into_iter().flat_map(explain).collect();
    assert!(left.is_empty(), "{} are left:\n{}", left.len(), left.join("\n"));
}

#[test]
fn every_verb_is_looked_at_or_has_its_reason() {
    let place = place(true);
    let help = rubus(place.home.path(), &["help"]);
    let help = help.split("\nOptions:").next().unwrap_or_default();
    let named = |line: &str| {
        line.strip_prefix("  ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    let verbs: BTreeSet<&str> = help
        .lines()
        .filter(|line| named(line))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let known = OF_A_MACHINE.iter().map(|line| line[0]).chain(OTHERS.iter().map(|(verb, _)| *verb));
    assert_eq!(
        verbs,
        known.collect(),
        "a verb whose text shows a machine belongs into OF_A_MACHINE"
    );
}
