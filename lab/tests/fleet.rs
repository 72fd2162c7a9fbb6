//! Twenty boards at once, each behind an ssh server of its own: the slow ones are named, and those
//! that hang, refuse, pretend or are of another kind cost only themselves.

use std::process::Stdio;

use serde_json::Value;

use crate::common::program::{Answer, Home};
use crate::common::shelf::{Fault, Shelf};
use crate::common::{can_run, sshd, take_turns};
use rubus_lab::devices::needs::Need;

/// Reads a second of a good board, and of a slow one.
pub(crate) const GOOD: u64 = 600;
const SLOW: u64 = GOOD / 2;
const SLOW_BOARDS: [&str; 2] = ["pi05", "pi12"];

/// A measurement that takes six seconds of waiting and little else: long enough for a narrow
/// interval on a busy machine.
pub(crate) const JOB: &str =
    "[reads]\nrw=randread\nbs=4k\nsize=4m\ndirect=1\nruntime=6\ntime_based\n";

/// The shelf, a home on this side, and what a run of the program takes.
pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) shelf: Shelf,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Lab {
    pub(crate) fn start(test: &str) -> Option<Lab> {
        let needs = [&sshd::NEEDS[..], &[Need::Loop, Need::BlockThrottle]].concat();
        if !can_run(test, &needs) {
            return None;
        }
        Some(Lab { home: Home::new(), shelf: Shelf::new(), _turn: take_turns() })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Answer {
        let (inventory, config) = self.shelf.files();
        let mut command = self.home.command();
        command.args(arguments);
        command.arg(format!("--on=@{}", inventory.display()));
        command.arg("--ssh-config").arg(config);
        command.stdin(Stdio::null());
        Answer::of(command.output().expect("the program starts"))
    }
}

fn named<'a>(document: &'a Value, name: &str) -> &'a Value {
    let boards = document["boards"].as_array().expect("boards");
    let mut of_name = boards.iter().filter(|board| board["name"] == name);
    of_name.next().unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn of_twenty_boards_the_slow_ones_are_named_and_broken_ones_cost_only_themselves() {
    let Some(mut lab) = Lab::start("a fleet") else {
        return;
    };
    let good: Vec<String> = (1..=16).map(|number| format!("pi{number:02}")).collect();
    for name in &good {
        let is_slow = SLOW_BOARDS.contains(&name.as_str());
        lab.shelf.add(name, if is_slow { SLOW } else { GOOD });
    }
    let broken = [
        ("hangs", Fault::Hangs, "timed out"),
        ("refuses", Fault::Refuses, "Permission denied"),
        ("pretends", Fault::HasAnotherKey, "Host key verification failed"),
        ("vax", Fault::IsOfAnotherKind, "a machine of the kind 'vax'"),
    ];
    for (name, fault, _) in broken {
        lab.shelf.add_broken(name, fault);
    }
    let job = lab.home.path().join("reads.fio");
    std::fs::write(&job, JOB).expect("a file");
    let (job, json) = (job.display().to_string(), lab.home.path().join("fleet.json"));
    let file = json.display().to_string();
    let bench = ["bench", "disk", "--fio-job", &job, "--no-html", "--at-once", "16"];
    let answer = lab.run(&[&bench[..], &["--json", &file]].concat());
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stdout.starts_with("Bench: 20 boards, 4 without a result"), "{answer}");
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{answer}");
    let text = std::fs::read_to_string(&json).expect("the document");
    let document: Value = serde_json::from_str(&text).expect("JSON");

    // The slow ones and no others, with intervals that hold the truth.
    let outliers = document["outliers"]["outliers"].as_array().expect("a list");
    let names: Vec<_> = outliers.iter().map(|one| one["board"].as_str().expect("a name")).collect();
    assert_eq!(names, SLOW_BOARDS, "{answer}");
    for outlier in outliers {
        let bound = |end: &str| outlier["ratio"][end].as_f64().expect("a bound");
        assert!(bound("low") < 0.5 && bound("high") > 0.5, "{outlier}");
        assert_eq!(outlier["boards"], 16);
    }
    for name in &good {
        let board = named(&document, name);
        assert_eq!((&board["status"], &board["failure"]), (&0.into(), &Value::Null));
        assert_eq!(board["runs"][0]["on"]["destination"], name.as_str());
        assert_eq!(board["groups"], serde_json::json!(["shelf"]));
    }

    // The broken ones, each with its reason, in the table and in the document.
    for (name, _, words) in broken {
        let board = named(&document, name);
        assert_eq!(board["status"], 2, "{board}");
        assert_eq!(board["runs"], serde_json::json!([]));
        let reason = board["failure"].as_str().expect("a reason");
        assert!(reason.contains(words), "{reason}");
        let row =
            answer.stdout.lines().find(|line| line.starts_with(&format!("{name}  no result: ")));
        assert!(row.is_some(), "no row of {name}: {answer}");
    }
    assert_eq!(lab.home.runs(), 16);
    let history = lab.home.run(&["history", "--json", "-n", "1000"]);
    assert_eq!(history.status, Some(0), "{history}");
}

#[test]
fn surveys_and_advice_of_a_fleet_are_one_table_each() {
    let Some(mut lab) = Lab::start("surveys of a fleet") else {
        return;
    };
    for name in ["attic", "cellar", "shed"] {
        lab.shelf.add_broken(name, Fault::HasAnotherKey);
    }
    for name in ["one", "two"] {
        lab.shelf.add(name, GOOD);
    }
    let answer = lab.run(&["survey"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stdout.starts_with("Survey: 5 boards, 3 without a result"), "{answer}");
    let answer = lab.run(&["advise", "--for", "server", "--json"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    let document = answer.json();
    assert_eq!(document["command"], "advise");
    for name in ["one", "two"] {
        let advice = &named(&document, name)["advice"];
        assert!(advice["candidates"].is_array(), "{advice}");
    }
    assert!(named(&document, "shed")["advice"].is_null());
}

#[test]
fn a_board_that_is_listed_twice_is_reached_once_and_one_of_two_names_not_at_all() {
    let Some(mut lab) = Lab::start("duplicates") else {
        return;
    };
    lab.shelf.add("pi01", GOOD);
    let (inventory, _) = lab.shelf.files();
    let text = std::fs::read_to_string(&inventory).expect("the inventory");
    let on = |name: &str, text: String| {
        let path = lab.shelf.path().join(name);
        std::fs::write(&path, text).expect("a file");
        format!("@{}", path.display())
    };
    let twice = on("twice", text.replace("[shelf]\n", "[shelf]\npi01\n"));
    let answer = lab.home.run(&["survey", "--on", &twice, "--json"]);
    assert_eq!(answer.json()["boards"].as_array().map(Vec::len), Some(1), "{answer}");
    let own = text.lines().find(|line| line.starts_with("pi01 ")).expect("the board");
    let other_name = own.replacen("pi01", "pi02", 1);
    let two_names = on("two-names", text.replace("[shelf]\n", &format!("[shelf]\n{other_name}\n")));
    let answer = lab.home.run(&["survey", "--on", &two_names]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("have the same address"), "{answer}");
    let answer = lab.home.run(&["survey", "--on", &format!("@{}:attic", inventory.display())]);
    assert!(answer.stderr.contains("no board is in the group attic"), "{answer}");
}
