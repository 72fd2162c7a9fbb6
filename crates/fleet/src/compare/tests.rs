//! Two documents of a fleet: what is paired, what is said, what is left out.

use super::*;
use crate::figures::tests::run;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::result::TargetKind;

/// Boards pi01, pi02, … with a run each, slower by these factors.
pub fn document(slower: &[f64]) -> Document {
    let board = |(at, slower): (usize, &f64)| BoardRuns {
        name: format!("pi{:02}", at + 1),
        failure: None,
        runs: vec![run(*slower)],
        history: vec![Some(at as i64 + 1)],
    };
    Document { command: "bench".into(), boards: slower.iter().enumerate().map(board).collect() }
}

pub fn between(before: &Document, after: &Document) -> FleetComparison {
    let fleet = |name, document| Fleet { name, document };
    compare(fleet("before.json", before), fleet("after.json", after))
}

fn named(comparison: &FleetComparison, word: Word) -> Vec<&str> {
    let has = |row: &&Row| row.figures.iter().flatten().any(|one| one.word == word);
    let rows = comparison.rows.iter().filter(has);
    rows.map(|row| row.board.as_str()).collect()
}

fn reasons(comparison: &FleetComparison) -> Vec<String> {
    let words = |one: &Missing| format!("{} {:?}: {}", one.board, one.obstacle, one.reason);
    comparison.missing.iter().map(words).collect()
}

#[test]
fn the_board_that_became_slower_is_named_and_no_other() {
    let before = document(&[1.0; 20]);
    let mut slower = [1.0; 20];
    slower[6] = 2.5;
    slower[9] = 0.4;
    let found = between(&before, &document(&slower));
    assert_eq!((found.rows.len(), found.comparisons), (20, 100));
    assert_eq!(named(&found, Word::Slower), ["pi07"]);
    assert_eq!(named(&found, Word::Faster), ["pi10"]);
    assert_eq!(found.rows[6].history, [Some(7), Some(7)]);
    assert!(found.missing.is_empty() && found.changes.is_empty());
    assert_eq!(found.overall.len(), 5);
    assert!(found.overall.iter().all(|one| one.word == Word::NoEvidence));
    assert!((found.confidence - 0.99975).abs() < 1e-9);
    assert!((found.overall_confidence - 0.995).abs() < 1e-9);
}

#[test]
fn a_regression_is_beyond_the_tolerance_over_its_whole_interval() {
    let found = between(&document(&[1.0; 4]), &document(&[1.0, 1.0, 3.0, 1.0]));
    let all = found.regressions(0.0);
    assert!(all.len() >= 3, "{all:?}");
    assert!(all.iter().all(|one| one.board == Some("pi03")));
    assert!(found.regressions(0.7).is_empty());
    let faster = between(&document(&[3.0; 4]), &document(&[1.0; 4]));
    assert_eq!(faster.regressions(0.0), []);
    // All boards a little: no board surely, the fleet as a whole.
    let all = between(&document(&[1.0; 40]), &document(&[1.15; 40]));
    let found = all.regressions(0.0);
    assert!(!found.is_empty() && found.iter().all(|one| one.board.is_none()), "{found:?}");
}

#[test]
fn the_ratio_is_that_of_a_comparison_of_two_runs_with_a_wider_interval() {
    let (before, after) = (document(&[1.0; 5]), document(&[1.2; 5]));
    let found = between(&before, &after);
    let subjects = [&before, &after].map(|of| Subject::of_run("x", &of.boards[0].runs[0]));
    let two = compare_runs(&subjects);
    let job = key_job(&before.boards[0].runs[0]);
    let row = two.rows.iter().find(|row| row.jobs[0].as_deref() == Some(job)).unwrap();
    let single = row.throughput.ratios[1].as_ref().unwrap().figure.estimate().unwrap();
    let wide = found.rows[0].figures[0].unwrap().ratio;
    assert!((wide.value - single.value).abs() < 1e-12);
    assert!(wide.low < single.low && wide.high > single.high);
}

fn key_job(run: &Run) -> &str {
    let first = rubus_runs::history::key_results(run)[0];
    &first.expect("it reads in order").job
}

#[test]
fn settings_that_changed_are_listed_once() {
    let before = document(&[1.0; 3]);
    let mut after = document(&[1.0; 3]);
    for board in &mut after.boards[..2] {
        board.runs[0].machine.system.kernel_release = Fact::known("6.99".into(), "a test");
    }
    let found = between(&before, &after);
    let [kernel] = &found.changes[..] else {
        panic!("{:?}", found.changes);
    };
    assert_eq!((kernel.what.as_str(), kernel.after.as_deref()), ("kernel", Some("6.99")));
    assert_eq!(kernel.boards, ["pi01", "pi02"]);
}

#[test]
fn what_has_no_counterpart_is_said_in_words() {
    let mut before = document(&[1.0; 8]);
    let mut after = document(&[1.0; 8]);
    before.boards[0].name = "old".into();
    after.boards[0].name = "new".into();
    after.boards[1].runs.clear();
    after.boards[1].failure = Some("Connection refused".into());
    before.boards[2].failure = Some("given up".into());
    after.boards[3].runs[0].suite = "journal".into();
    after.boards[4].runs[0].target.named = "/elsewhere".into();
    after.boards[5].runs[0].target.kind = TargetKind::Device;
    after.boards[6].runs.clear();
    let found = between(&before, &after);
    let boards: Vec<&str> = found.rows.iter().map(|row| row.board.as_str()).collect();
    assert_eq!(boards, ["pi03", "pi08"]);
    let suite = &before.boards[3].runs[0].suite;
    let target = place_of(&before.boards[3].runs[0]);
    assert_eq!(
        reasons(&found),
        [
            "old OnlyBefore: only in before.json".to_string(),
            "pi02 FailedAfter: failed in after.json: Connection refused".into(),
            "pi03 FailedBefore: failed in before.json: given up".into(),
            format!(
                "pi04 NoCounterpart: {target}: suite {suite} in before.json, suite journal in \
                 after.json"
            ),
            format!("pi05 NoCounterpart: {target} (suite {suite}) only in before.json"),
            format!("pi05 NoCounterpart: /elsewhere (suite {suite}) only in after.json"),
            format!(
                "pi06 NoCounterpart: {target}: a test file in before.json, the device in after.json"
            ),
            "pi07 NoCounterpart: no run in after.json".into(),
            "new OnlyAfter: only in after.json".into(),
        ]
    );
}

fn place_of(run: &Run) -> String {
    figures::target(run).unwrap_or_else(|| "the home directory".into())
}

#[test]
fn runs_of_a_board_are_paired_by_their_target_in_any_order() {
    let mut before = document(&[1.0; 1]);
    before.boards[0].runs.push(run(1.0));
    before.boards[0].runs[1].target.named = "/srv".into();
    let mut after = before.clone();
    after.boards[0].runs.reverse();
    let found = between(&before, &after);
    let targets: Vec<_> = found.rows.iter().map(|row| row.target.as_deref()).collect();
    assert_eq!(targets.len(), 2);
    assert_eq!(targets[1], Some("/srv"));
    assert!(found.missing.is_empty());
    // One number for the second run was not given.
    assert_eq!(found.rows[1].history, [None, Some(1)]);
    assert!(found.overall.is_empty());
}

#[test]
fn documents_without_runs_have_nothing_to_compare() {
    let text = r#"{"command":"survey","boards":[{"name":"a","status":0,"runs":[]}]}"#;
    let document: Document = serde_json::from_str(text).expect("a document");
    let found = between(&document, &document);
    assert_eq!((found.rows.len(), found.comparisons), (0, 0));
    assert_eq!(found.missing.len(), 2);
}
