//! A capture that may be shared gives the findings and the plans that the machine gives, up to pseudonyms and what was left out.

use std::path::{Path, PathBuf};

use rubus_change::plan::Plan;
use rubus_host::Files;
use rubus_host::capture::{self, Captured, Identities};
use rubus_host::simulated::recorder::Recorder;
use rubus_machine::probe::survey;
use rubus_machine::rules;
use rubus_recipes::sight;
use rubus_recipes::{Facts, Recipe, Wishes, surveyed_disk};
use rubus_vocabulary::machine::{Machine, Origin};
use serde_json::Value;

const WHEN: &str = "2026-11-21T00:58:12Z";

/// The repository's captured machines, and those in a directory that `RUBUS_CAPTURES` names.
fn captures() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures");
    let given = std::env::var_os("RUBUS_CAPTURES").map(PathBuf::from);
    let mut all = Vec::new();
    for directory in std::iter::once(own).chain(given) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.join("manifest.json").exists() {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

fn plan(
    recipe: &Recipe,
    files: &dyn Files,
    machine: &Machine,
    wishes: &Wishes,
) -> Result<Plan, String> {
    let look_at = (recipe.look_at)(machine, wishes);
    let disks = look_at.disks.iter().map(|path| (path.clone(), surveyed_disk(machine, path)));
    let mut facts = Facts {
        seen: sight::look(files, &look_at.paths),
        disks: disks.collect(),
        volatile_root: sight::volatile_root(files, machine),
        ..Facts::default()
    };
    facts.next_start = sight::next_start(files, machine, &facts.seen);
    recipe.plan(machine, &facts, wishes, WHEN).map_err(|error| error.to_string())
}

/// The rules that speak, and how much each matters.
fn findings(machine: &Machine) -> Value {
    let found = rules::of_machine(machine);
    let each = found.into_iter().map(|finding| (finding.rule, finding.weight));
    serde_json::to_value(each.collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_shareable_capture_gives_the_same_findings_and_plans() {
    let mut differing = Vec::new();
    let mut compared = 0;
    for path in captures() {
        let captured = Captured::open(&path).unwrap();
        let recorder = Recorder::new(&captured);
        let machine = survey(&recorder, WHEN, Origin::Live);
        sight::look_for_plans(&recorder, &machine);
        let _ = sight::volatile_root(&recorder, &machine);
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy.tar");
        capture::save(&recorder, &copy, "for a test", WHEN, Identities::Replace).unwrap();
        let shareable = Captured::open(&copy).unwrap();
        let machine_of_copy = survey(&shareable, WHEN, Origin::Live);
        let at = path.display().to_string();
        let [one, other] = [&machine, &machine_of_copy].map(findings);
        differences(&one, &other, &at, &mut differing);
        for (recipe, wishes) in sight::usual_wishes(&machine) {
            let one = plan(recipe, &captured, &machine, &wishes);
            let other = plan(recipe, &shareable, &machine_of_copy, &wishes);
            let [one, other] = [one, other].map(|plan| serde_json::to_value(plan).unwrap());
            compared += 1;
            let at = format!("{} {} {wishes:?}", path.display(), recipe.name);
            differences(&one, &other, &at, &mut differing);
        }
    }
    assert!(compared > 60, "{compared}");
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn differences(one: &Value, other: &Value, at: &str, out: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(x), Value::Object(y)) if x.keys().eq(y.keys()) => {
            for (field, value) in x {
                differences(value, &y[field], &format!("{at}.{field}"), out);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (number, (value, other)) in x.iter().zip(y).enumerate() {
                differences(value, other, &format!("{at}[{number}]"), out);
            }
        }
        (Value::String(x), Value::String(y)) if is_same_text(x, y) => {}
        (one, other) if one == other => {}
        (one, other) => out.push(format!("{at}:\n  {one}\n  {other}")),
    }
}

fn is_same_text(one: &str, other: &str) -> bool {
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<String>>();
    let (one, other) = (lines(one), lines(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| is_same_line(one, other))
}

/// A line that was left out whole is a comment then; otherwise each word is the same but for pseudonyms, or left out.
fn is_same_line(one: &str, other: &str) -> bool {
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<String>>();
    let (ones, others) = (words(one), words(other));
    let is_same = |(one, other): (&String, &String)| is_same_word(one, other);
    other.trim() == "#" || ones.len() == others.len() && ones.iter().zip(&others).all(is_same)
}

fn is_same_word(one: &str, other: &str) -> bool {
    let is_gap = |c: char| "=,:/@\"'()".contains(c);
    let pieces = |word: &str| word.split(is_gap).map(str::to_string).collect::<Vec<String>>();
    let (ones, others) = (pieces(one), pieces(other));
    let is_same = |(one, other): (&String, &String)| {
        one == other || other.starts_with("left-out") || is_pseudonym(one, other)
    };
    other.trim_start_matches('#').starts_with("left-out")
        || ones.len() == others.len() && ones.iter().zip(&others).all(is_same)
}

/// As long as what it stands for, and counted.
fn is_pseudonym(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && (other.contains("host-")
            || other.contains("serial-")
            || other.to_lowercase().contains("5ec0")
            || other.len() < 5 && other.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[test]
fn a_lost_line_and_another_number_are_differences() {
    assert!(is_same_text("a 7c8f1d94 b", "a 5ec00001 b"));
    assert!(is_same_text("# mine\nx=1", "#\nx=1"));
    assert!(!is_same_text("initramfs a\nx=1", "x=1"));
    assert!(!is_same_text("12000 GB", "13000 GB"));
    assert!(!is_same_text("/dev/sda1x", "/dev/sdb1x"));
}
