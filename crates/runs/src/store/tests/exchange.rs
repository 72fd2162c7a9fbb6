//! Labels, filters, deletion, export and import, and a history of the first schema.

use super::{filled, run, scratch};
use crate::history::RunId;
use rubus_fixtures as fixture;
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::result::{Figures, Run};
use rusqlite::Connection;

use crate::store::error::StoreError;
use crate::store::history::{Filter, History};

/// A history as version 1 of the schema left it.
const VERSION_1: &str = include_str!("../data/version-1.sql");
/// A run of a disk, of memory and of the processor, as version 0.2.0 exported them.
const EXPORT_0_2: &str = include_str!("../data/export-0.2.0.jsonl");

#[test]
fn a_history_of_the_first_schema_is_brought_up_with_everything_in_it() {
    let (_directory, path) = scratch();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(VERSION_1).unwrap();
    drop(old);
    let mut history = History::open(&path).unwrap();
    let version: i64 =
        history.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
    let lines = history.list(10, 0).unwrap();
    // Run 1 began later than run 2.
    assert_eq!(lines.iter().map(|l| l.id.0).collect::<Vec<_>>(), [1, 2]);
    assert!(lines.iter().all(|line| line.label.is_none()));
    let stored = history.get(RunId(2)).unwrap();
    assert_eq!(stored.summary.headline, "The card is slow.");
    assert_eq!(stored.run.results.len(), 10);
    assert_eq!(stored.run.seed, 7);
    // Run 3 had been deleted, and its number stays its own.
    assert_eq!(history.add(&run(9), "").unwrap(), RunId(4));
    history.label(RunId(2), Some("old")).unwrap();
    drop(history);
    let again = History::open(&path).unwrap();
    assert_eq!(again.get(RunId(2)).unwrap().summary.label.as_deref(), Some("old"));
}

#[test]
fn the_run_measured_last_is_first_whatever_its_number() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    for started in ["2026-03-01T00:00:00Z", "2026-05-01T00:00:00Z", "2026-04-01T00:00:00Z"] {
        let run = Run { started: started.into(), ..run(1) };
        history.add(&run, "").unwrap();
    }
    let ids: Vec<i64> = history.list(9, 0).unwrap().iter().map(|l| l.id.0).collect();
    assert_eq!(ids, [2, 3, 1]);
}

#[test]
fn filters_find_by_part_and_in_any_case() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.add(&run(1), "").unwrap();
    history.add(&fixture::failed_run(), "").unwrap();
    let mut full = run(2);
    full.suite = "full".into();
    full.started = "2026-01-01T00:00:00Z".into();
    history.add_labelled(&full, "", Some("before")).unwrap();
    let found = |filter: Filter| -> Vec<i64> {
        let lines = history.list_of(&filter, 10, 0).unwrap();
        lines.iter().map(|line| line.id.0).collect()
    };
    let some = |text: &str| Some(text.to_string());
    let all = Filter::default();
    assert_eq!(found(Filter { suite: some("full"), ..all.clone() }), [3]);
    assert_eq!(found(Filter { target: some("sc64g"), ..all.clone() }), [1, 3]);
    assert_eq!(found(Filter { target: some("/mnt/<b>"), ..all.clone() }), [2]);
    assert_eq!(found(Filter { board: some("PI 3"), ..all.clone() }), [1, 3]);
    assert_eq!(found(Filter { label: some("before"), ..all.clone() }), [3]);
    assert_eq!(found(Filter { label: some("befor"), ..all.clone() }), [] as [i64; 0]);
    assert_eq!(found(Filter { since: some("2026-11"), ..all.clone() }), [2, 1]);
    let both = Filter { target: some("mmcblk0"), since: some("2026-02-01"), ..all };
    assert_eq!(found(both), [1]);
}

#[test]
fn labels_come_and_go() {
    let (_directory, path) = scratch();
    filled(&path, 2);
    let mut history = History::open(&path).unwrap();
    history.label(RunId(1), Some("before; the \"old\" cable")).unwrap();
    let label = |history: &History| history.get(RunId(1)).unwrap().summary.label;
    assert_eq!(label(&history).as_deref(), Some("before; the \"old\" cable"));
    history.label(RunId(1), None).unwrap();
    assert_eq!(label(&history), None);
    let error = history.label(RunId(5), Some("x")).unwrap_err();
    assert!(matches!(error, StoreError::NoSuchRun { .. }), "{error}");
}

#[test]
fn all_are_deleted_or_none_and_no_number_is_given_again() {
    let (_directory, path) = scratch();
    filled(&path, 4);
    let mut history = History::open(&path).unwrap();
    let error = history.delete(&[RunId(2), RunId(9)]).unwrap_err();
    assert!(matches!(error, StoreError::NoSuchRun { id: RunId(9), .. }));
    assert_eq!(history.count().unwrap(), 4);
    history.delete(&[RunId(2), RunId(4)]).unwrap();
    let records: i64 =
        history.connection.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!((history.count().unwrap(), records), (2, 2));
    assert_eq!(history.add(&run(7), "").unwrap(), RunId(5));
}

fn exported(history: &History, ids: Option<&[RunId]>) -> Vec<u8> {
    let mut out = Vec::new();
    history.export(ids, false, &mut out).unwrap();
    out
}

#[test]
fn what_is_exported_is_imported_once() {
    let (_directory, path) = scratch();
    filled(&path, 3);
    let mut from = History::open(&path).unwrap();
    from.label(RunId(2), Some("µ \"quoted\"")).unwrap();
    let lines = exported(&from, None);
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 3);

    let (_other, path) = scratch();
    let mut to = History::open(&path).unwrap();
    to.add(&fixture::failed_run(), "").unwrap();
    let first = to.import(&mut lines.as_slice()).unwrap();
    assert_eq!((first.added.len(), first.known), (3, 0));
    let second = to.import(&mut lines.as_slice()).unwrap();
    assert_eq!((second.added.len(), second.known), (0, 3));
    // And into the history that they came from, none.
    assert_eq!(from.import(&mut lines.as_slice()).unwrap().known, 3);
    assert_eq!(to.count().unwrap(), 4);
    for (there, here) in [(1, 2), (2, 3), (3, 4)] {
        let (a, b) = (from.get(RunId(there)).unwrap(), to.get(RunId(here)).unwrap());
        assert_eq!(a.run, b.run);
        assert_eq!(a.summary.label, b.summary.label);
        assert_eq!(a.summary.headline, b.summary.headline);
        assert_eq!(a.summary.figures, b.summary.figures);
    }
}

#[test]
fn an_export_holds_nothing_that_a_terminal_would_obey() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let mut hostile = run(1);
    hostile.target.named = "a\u{9b}31m\u{202e}b\u{1b}".into();
    history.add(&hostile, "").unwrap();
    let line = String::from_utf8(exported(&history, None)).unwrap();
    assert!(!line.contains(['\u{9b}', '\u{202e}', '\u{1b}']), "{line:?}");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["run"]["target"]["named"], hostile.target.named);
}

#[test]
fn what_version_0_2_exported_is_read_and_written_as_it_was() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let added = history.import(&mut EXPORT_0_2.as_bytes()).unwrap().added;
    assert_eq!(added.len(), 3);
    let is_kind = [
        |figures: &Figures| *figures == Figures::Disk,
        |figures: &Figures| matches!(figures, Figures::Memory(memory) if !memory.pressure.is_empty()),
        |figures: &Figures| matches!(figures, Figures::Processor(processor) if processor.linpack.is_some()),
    ];
    for ((id, line), is_kind) in added.into_iter().zip(EXPORT_0_2.lines()).zip(is_kind) {
        let run = history.get(id).unwrap().run;
        assert!(is_kind(&run.figures), "{id:?}");
        let before: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&run).unwrap(), before["run"]);
    }
}

#[test]
fn chosen_runs_are_exported_and_a_missing_one_is_named() {
    let (_directory, path) = scratch();
    filled(&path, 3);
    let history = History::open(&path).unwrap();
    let lines = exported(&history, Some(&[RunId(3)]));
    let value: serde_json::Value = serde_json::from_slice(&lines).unwrap();
    assert_eq!((value["id"].as_i64(), value["run"]["seed"].as_u64()), (Some(3), Some(3)));
    let error = history.export(Some(&[RunId(8)]), false, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, StoreError::NoSuchRun { id: RunId(8), .. }));
}

#[test]
fn the_json_of_a_bench_is_imported_too() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let list = serde_json::to_string_pretty(&vec![run(1), run(2)]).unwrap();
    let one = serde_json::to_string_pretty(&run(3)).unwrap();
    let text = format!("{list}\n{one}");
    assert_eq!(history.import(&mut text.as_bytes()).unwrap().added.len(), 3);
    let stored = history.get(RunId(3)).unwrap();
    assert_eq!(stored.run, run(3));
    assert_eq!(stored.summary.headline, verdict(&run(3)).headline);
}

#[test]
fn what_a_newer_version_wrote_into_a_record_survives_both_ways() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let mut value = serde_json::to_value(run(1)).unwrap();
    value["of_the_future"] = serde_json::json!([1, 2.5]);
    history.import(&mut value.to_string().as_bytes()).unwrap();
    let lines = String::from_utf8(exported(&history, None)).unwrap();
    assert!(lines.contains("\"of_the_future\":[1,2.5]"), "it was dropped");
}

#[test]
fn a_bad_run_is_named_and_left_out_and_the_others_are_imported() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let good = |seed| {
        let run = Run { started: format!("2026-03-01T00:00:{seed:02}Z"), ..run(seed) };
        serde_json::to_value(run).unwrap()
    };
    let list = serde_json::json!([good(3), { "name": "y" }, good(4)]);
    let text = format!("{}\n{{\"name\": \"x\"}}\n{}\n{list}\n", good(1), good(2));
    let done = history.import(&mut text.as_bytes()).unwrap();
    assert_eq!((done.added.len(), history.count().unwrap()), (4, 4));
    let numbers: Vec<u64> = done.left_out.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [2, 4]);
    assert!(done.left_out[0].1.contains("missing field"), "{:?}", done.left_out);
}

#[test]
fn an_import_of_something_else_says_what_and_where() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let good = serde_json::to_string(&run(1)).unwrap();
    let text = format!("{good}\n{{\"name\": \"x");
    let error = history.import(&mut text.as_bytes()).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("value 2") && words.contains("1 runs before it"), "{words}");
    assert_eq!(history.count().unwrap(), 1);
    let error = history.import(&mut "{\"name\": \"x\"}".as_bytes()).unwrap_err();
    assert!(error.to_string().contains("value 1"), "{error}");
    let error = history.import(&mut "eggs\nmilk".as_bytes()).unwrap_err();
    assert!(error.to_string().contains("value 1"), "{error}");
    let error = history.import(&mut "{\"rubus_history\": 7, \"run\": {}}".as_bytes()).unwrap_err();
    assert!(error.to_string().contains("newer rubus"), "{error}");
}

/// What another program sees of the history while an import goes on.
struct Watched<'a> {
    input: &'a [u8],
    path: &'a std::path::Path,
    max_seen: u64,
}

impl std::io::Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let seen = History::open(self.path).and_then(|history| history.count());
        self.max_seen = self.max_seen.max(seen.map_err(std::io::Error::other)?);
        self.input.read(buffer)
    }
}

/// Each transaction is a flush of the disk; 100 000 runs took 500 of them.
#[test]
fn an_import_is_one_transaction_unless_it_holds_up_others() {
    use std::time::Duration;
    let (_directory, path) = scratch();
    let mut source = History::open(&path).unwrap();
    for seed in 0..30 {
        let run = Run { started: format!("2026-03-01T00:00:{seed:02}Z"), ..run(seed) };
        source.add(&run, "").unwrap();
    }
    let mut exported = Vec::new();
    source.export(None, false, &mut exported).unwrap();
    for (max_held, is_split) in [(Duration::MAX, false), (Duration::ZERO, true)] {
        let (_directory, path) = scratch();
        let mut history = History::open(&path).unwrap();
        let watched = Watched { input: &exported, path: &path, max_seen: 0 };
        let mut input = std::io::BufReader::with_capacity(32 << 10, watched);
        let done = history.import_within(&mut input, max_held).unwrap();
        assert_eq!(done.added.len(), 30);
        assert_eq!(history.count().unwrap(), 30);
        // The last look is at the end of the input, before the last transaction ends.
        let max_seen = input.get_ref().max_seen;
        assert_eq!(max_seen > 0, is_split, "{max_seen}");
    }
}
