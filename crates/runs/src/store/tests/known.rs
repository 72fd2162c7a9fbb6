//! What an import looks up of the runs that are there already.

use super::{run, scratch};
use crate::store::history::{History, insert};
use crate::store::known::Known;
use rubus_vocabulary::result::Run;

#[test]
fn the_records_of_one_moment_are_read_once_for_all_runs_of_it() {
    const RUNS: u64 = 40;
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    history.add(&run(1), "").unwrap();
    let mut known = Known::default();
    let added = history.in_one(|transaction| {
        known.begin(transaction)?;
        let mut added = 0;
        for seed in 1..=RUNS {
            let run = Run { seed, started: run(1).started, ..run(1) };
            if known.is_new(transaction, &run)? {
                let json = run.to_json_text().unwrap();
                insert(transaction, &run, "", None, &json)?;
                added += 1;
            }
        }
        Ok(added)
    });
    assert!(added.unwrap() >= RUNS - 1);
    assert_eq!(known.records_read, 1);
}

#[test]
fn what_another_program_added_meanwhile_is_known() {
    let (_directory, path) = scratch();
    let mut history = History::open(&path).unwrap();
    let mut known = Known::default();
    let is_new = |history: &mut History, known: &mut Known| {
        let asked = history.in_one(|transaction| {
            known.begin(transaction)?;
            known.is_new(transaction, &run(1))
        });
        asked.unwrap()
    };
    let other = Run { seed: 99, started: run(1).started, ..run(1) };
    history
        .in_one(|t| {
            known.begin(t)?;
            known.is_new(t, &other)
        })
        .unwrap();
    History::open(&path).unwrap().add(&run(1), "").unwrap();
    assert!(!is_new(&mut history, &mut known));
}
