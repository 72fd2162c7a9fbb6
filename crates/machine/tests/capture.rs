//! A capture gives the survey that the machine gave.

use rubus_host::capture::{self, Captured, Identities};
use rubus_host::simulated::recorder::Recorder;
use rubus_host::{Files, Live};
use rubus_vocabulary::machine::{Machine, Origin};

const WHEN: &str = "2026-11-21T00:58:12Z";

fn survey(files: &dyn Files) -> Machine {
    rubus_machine::probe::survey(files, WHEN, Origin::Live)
}

/// This machine's survey, and that of a capture made on the way.
fn both(name: &str, identities: Identities) -> (Machine, Machine) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let recorder = Recorder::new(&Live);
    let live = survey(&recorder);
    capture::save(&recorder, &path, "for a test", WHEN, identities).unwrap();
    let captured = survey(&Captured::open(&path).unwrap());
    (live, captured)
}

/// The lines of one survey that the other has not; a diff of the whole is too long to read.
fn difference(left: &Machine, right: &Machine) -> String {
    let lines = |machine| serde_json::to_string_pretty(machine).unwrap();
    let (left, right) = (lines(left), lines(right));
    left.lines()
        .zip(right.lines())
        .filter(|(left, right)| left != right)
        .take(5)
        .map(|(left, right)| format!("{left}\n{right}\n"))
        .collect()
}

#[test]
fn a_capture_of_this_machine_gives_the_same_survey() {
    for name in ["a.tar", "a.tar.gz", "a/"] {
        let (live, captured) = both(name, Identities::Keep);
        assert_eq!(difference(&live, &captured), "", "{name}");
        assert_eq!(live, captured, "{name}");
    }
}

#[test]
fn a_redacted_capture_answers_every_question() {
    let (live, captured) = both("a.tar", Identities::Replace);
    let json = serde_json::to_string_pretty(&captured).unwrap();
    let unanswered: Vec<&str> =
        json.lines().filter(|line| line.contains("not in the capture")).collect();
    assert!(unanswered.is_empty(), "{unanswered:#?}");
    // Facts that identify no machine are the same.
    assert_eq!(live.cpu, captured.cpu);
    assert_eq!(live.vm, captured.vm);
    assert_eq!(live.kernel_config, captured.kernel_config);
    let names = |machine: &Machine| -> Vec<String> {
        let devices = machine.block_devices.iter();
        devices.map(|device| device.name.clone()).collect()
    };
    assert_eq!(names(&live), names(&captured));
}
