//! The house rules that a machine can check: which room may know which, headers, lengths, and the
//! one caller of the constructor that gives a writable device.

use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms a room may use. Tests may use more.
const MAY_USE: [(&str, &[&str]); 11] = [
    ("stats", &[]),
    ("core", &["stats"]),
    ("host", &[]),
    ("probe", &["core", "host"]),
    ("bench", &["core", "host"]),
    ("apply", &["core", "host"]),
    ("model", &["core"]),
    ("nbd", &["core", "host"]),
    ("store", &["core"]),
    ("show", &["core"]),
    (
        "rubus",
        &[
            "core", "host", "probe", "bench", "apply", "nbd", "model", "store", "show",
        ],
    ),
];

/// A file is longer only if it is a table.
const MOST_LINES: usize = 800;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust files of the product and the lab, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut todo = vec![workspace().join("crates"), workspace().join("lab")];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the workspace") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

#[test]
fn rooms_use_only_what_is_below_them() {
    for (room, allowed) in MAY_USE {
        let manifest = workspace().join("crates").join(room).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).expect("a room has a manifest");
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        for line in dependencies.lines() {
            let Some(used) = line
                .strip_prefix("rubus-")
                .and_then(|l| l.split([' ', '.', '=']).next())
            else {
                continue;
            };
            assert!(allowed.contains(&used), "{room} may not use {used}");
        }
    }
}

#[test]
fn every_file_opens_with_what_lives_there() {
    let without: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|s| s.0)
        .collect();
    assert!(without.is_empty(), "no header: {without:?}");
}

/// Reading a crate for examples takes as long as checking it, so only crates that have some are read.
#[test]
fn examples_in_documentation_are_compiled() {
    for (path, text) in sources() {
        let mut is_open = false;
        let fences = text.lines().filter_map(|line| {
            let line = line.trim_start();
            let words = line.strip_prefix("//!").or(line.strip_prefix("///"))?;
            words.trim_start().strip_prefix("```")
        });
        for language in fences {
            is_open = !is_open;
            if !is_open || matches!(language.trim(), "text" | "toml" | "sh" | "json") {
                continue;
            }
            let mut rooms = path.ancestors().map(|room| room.join("Cargo.toml"));
            let manifest = rooms.find(|file| file.exists()).expect("a room");
            let manifest = fs::read_to_string(manifest).expect("a manifest");
            assert!(
                !manifest.contains("doctest = false"),
                "the example in {} is not compiled: remove `doctest = false` from its manifest",
                path.display()
            );
        }
    }
}

#[test]
fn files_have_one_subject_and_so_are_short() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| text.lines().count() > MOST_LINES)
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "too long: {long:#?}");
}

#[test]
fn only_the_guard_makes_a_writable_device() {
    // Written in two parts so that this file does not find itself.
    let constructor = concat!("claim_for", "_the_guard(");
    let callers: Vec<_> = sources()
        .into_iter()
        .filter(|(_, text)| text.contains(constructor))
        .map(|(path, _)| {
            path.strip_prefix(workspace())
                .map(Path::to_path_buf)
                .unwrap_or(path)
        })
        .collect();
    for caller in &callers {
        let allowed = caller.starts_with("crates/apply/src/guard")
            || caller.ends_with("crates/host/src/blockdev.rs");
        assert!(
            allowed,
            "{} opens a device past the guard",
            caller.display()
        );
    }
    assert!(
        callers.len() >= 2,
        "the constructor was renamed; rename it here too"
    );
}

#[test]
fn no_markers_are_left_behind() {
    let markers = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
    ];
    for (path, text) in sources() {
        for marker in markers {
            assert!(!text.contains(marker), "{} has a {marker}", path.display());
        }
    }
}
