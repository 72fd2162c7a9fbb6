//! The house rules that a machine can check: which room may know which, circles, headers, lengths, and the
//! one caller of the constructor that gives a writable device.

#[path = "house/modules.rs"]
mod modules;

use std::fs;
use std::path::{Path, PathBuf};

/// The floors, from the ground up. A room may use those on lower floors; rooms on one floor do not know each other. Tests may use more.
const FLOORS: [&[&str]; 11] = [
    &["stats"],
    &["vocabulary"],
    &["host", "draw", "boot"],
    &["machine", "nbd"],
    &["command"],
    &["verdict", "measure", "fio", "processor", "memory", "copy", "remote", "boot-check"],
    &["runs", "change", "tune", "nbd-tools"],
    &["watch", "recipes"],
    &["advise", "cluster", "fleet"],
    &["page"],
    &["bench"],
];

/// On no floor: only tests may use it, and features for tests, so nothing of it is in a product.
const ONLY_FOR_TESTS: &str = "fixtures";

/// Where unsafe code may be: what reaches the kernel, and what measures.
const MAY_BE_UNSAFE: [&str; 4] = ["host", "measure", "processor", "memory"];

/// A file is longer only if it is a table.
const MAX_LINES: usize = 700;

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
    let floor = |room: &str| FLOORS.iter().position(|floor| floor.contains(&room));
    let mut seen = 0;
    for room in fs::read_dir(workspace().join("crates")).expect("the rooms") {
        let room = room.expect("a room").path();
        let name = room.file_name().expect("a name").to_string_lossy().into_owned();
        if name == ONLY_FOR_TESTS {
            continue;
        }
        let text = fs::read_to_string(room.join("Cargo.toml")).expect("a room has a manifest");
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        let shared = format!("rubus-{ONLY_FOR_TESTS} ");
        let is_product =
            |line: &&str| line.starts_with(&shared) && !line.contains("optional = true");
        let has_fixtures = dependencies.lines().find(is_product);
        assert_eq!(has_fixtures, None, "{name} is a product, and may not use what tests share");
        if name == "rubus" {
            continue;
        }
        let own = floor(&name).unwrap_or_else(|| panic!("{name} is on no floor"));
        for line in dependencies.lines() {
            let Some(used) =
                line.strip_prefix("rubus-").and_then(|l| l.split([' ', '.', '=']).next())
            else {
                continue;
            };
            if used == ONLY_FOR_TESTS {
                continue;
            }
            seen += 1;
            let below = floor(used).is_some_and(|floor| floor < own);
            assert!(below, "{name} may not use {used}, which is not below it");
        }
    }
    assert!(seen > 30, "the manifests were not read");
}

#[test]
fn the_page_has_the_floors_of_this_file() {
    let page = fs::read_to_string(workspace().join("ARCHITECTURE.md")).expect("the page");
    let cells = |row: &str| -> Vec<String> {
        row.split('|').map(|cell| cell.trim().trim_matches('`').to_string()).collect()
    };
    let rows = page.lines().filter(|line| line.starts_with("| ")).map(cells);
    let printed: Vec<(usize, String)> =
        rows.filter_map(|row| Some((row.get(1)?.parse().ok()?, row.get(2)?.clone()))).collect();
    let rooms = |(floor, rooms): (usize, &&[&str])| -> Vec<(usize, String)> {
        rooms.iter().map(|room| (floor, (*room).to_string())).collect()
    };
    let held: Vec<(usize, String)> = FLOORS.iter().enumerate().rev().flat_map(rooms).collect();
    assert_eq!(printed, held, "the table of floors in ARCHITECTURE.md");
}

#[test]
fn unsafe_code_is_only_where_the_kernel_is_reached() {
    for room in fs::read_dir(workspace().join("crates")).expect("the rooms") {
        let room = room.expect("a room").path();
        let name = room.file_name().expect("a name").to_string_lossy().into_owned();
        let root = ["src/lib.rs", "src/main.rs"].map(|file| room.join(file));
        let text = root.iter().find_map(|file| fs::read_to_string(file).ok());
        let text = text.expect("a root file");
        let is_forbidden = text.contains("#![forbid(unsafe_code)]");
        assert_ne!(
            is_forbidden,
            MAY_BE_UNSAFE.contains(&name.as_str()),
            "{name}: `#![forbid(unsafe_code)]` is there: {is_forbidden}"
        );
    }
}

#[test]
fn every_file_opens_with_what_lives_there() {
    let without: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|s| s.0).collect();
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
        .filter(|(_, text)| text.lines().count() > MAX_LINES)
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
        .map(|(path, _)| path.strip_prefix(workspace()).map(Path::to_path_buf).unwrap_or(path))
        .collect();
    for caller in &callers {
        let allowed = caller.starts_with("crates/change/src/guard")
            || caller.ends_with("crates/host/src/block/blockdev.rs");
        assert!(allowed, "{} opens a device past the guard", caller.display());
    }
    assert!(callers.len() >= 2, "the constructor was renamed; rename it here too");
}

#[test]
fn no_markers_are_left_behind() {
    let markers = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    for (path, text) in sources() {
        for marker in markers {
            assert!(!text.contains(marker), "{} has a {marker}", path.display());
        }
    }
}

/// The standard library's macros panic when the output is closed: a change would end in its middle.
#[test]
fn nothing_is_printed_in_a_way_that_panics() {
    let is_product = |path: &Path| {
        let inside = path.strip_prefix(workspace()).expect("it is in the workspace");
        let text = inside.to_string_lossy();
        text.starts_with("crates/") && text.contains("/src/") && !text.contains("test")
    };
    let mut seen = 0;
    for (path, text) in sources().into_iter().filter(|(path, _)| is_product(path)) {
        let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in own.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            seen += usize::from(code.contains("message!(") || code.contains("prompt!("));
            assert!(
                !["println!(", "print!(", "dbg!("].iter().any(|call| code.contains(call)),
                "{}:{}: it panics where standard output or error cannot be written; use `places::say`, or \
                 `rubus_command::message!`: {line}",
                path.display(),
                number + 1
            );
        }
    }
    assert!(seen > 30, "the program's own messages were not found");
}
