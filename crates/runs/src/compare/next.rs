//! What to do next about a comparison.

use rubus_vocabulary::next_step::NextStep;

use super::subject::Source;
use super::{Comparison, Row, Word};

/// The kind of a doubt that explains nothing: what was not looked at may have been calm.
const NOT_WATCHED: &str = "not_watched";

/// About the first subject that is slower than the baseline, else that nothing is to be done.
pub(super) fn next(comparison: &Comparison) -> NextStep {
    if comparison.rows.is_empty() {
        // Surveys have no jobs; runs have some, and none in common.
        let have_no_jobs = comparison.alone.is_empty();
        return match (have_no_jobs, comparison.differences.is_empty()) {
            (true, true) => NextStep::by_hand("nothing: they are the same, as far as known"),
            (true, false) => NextStep::by_hand(
                "run `rubus checkup DIR --json > RUN.json` on each, and compare those",
            ),
            (false, _) => {
                NextStep::by_hand("measure both with the same suite: they have no job in common")
            }
        };
    }
    if comparison.rows.iter().all(|row| row.throughput.ratios.iter().all(Option::is_none)) {
        return NextStep::by_hand(
            "run the jobs again, for some seconds each: those in common have no rate",
        );
    }
    let words = |wanted: Word| {
        (1..comparison.subjects.len()).find(|place| {
            let rows = comparison.rows.iter();
            let measures = rows.flat_map(|row| [&row.throughput, &row.p50_ns, &row.p99_ns]);
            let mut ratios = measures.filter_map(|measure| measure.ratios.get(*place)?.as_ref());
            ratios.any(|ratio| ratio.word == wanted)
        })
    };
    if let Some(place) = words(Word::Slower) {
        return about_slower(comparison, place);
    }
    let baseline = &comparison.subjects[0].name;
    NextStep::by_hand(&match (words(Word::Faster), words(Word::NoEvidence)) {
        (Some(_), _) => format!("nothing: nothing became slower than {baseline}"),
        (None, Some(_)) if comparison.interleaved => {
            "nothing: no difference is larger than its interval".into()
        }
        (None, Some(_)) => {
            "nothing, unless a smaller difference matters: `rubus bench DIR --against OTHER-DIR` measures both in turns".into()
        }
        (None, None) => without_intervals(comparison).into(),
    })
}

/// Published figures have none and get none; a result of fio has some where it ran long enough.
fn without_intervals(comparison: &Comparison) -> &'static str {
    let is = |wanted: Source| comparison.subjects.iter().any(|subject| subject.source == wanted);
    if is(Source::Published) {
        "nothing: published figures have no intervals, so only a large difference says something"
    } else if is(Source::Fio) {
        "let fio run for 10 s or longer (--time_based --runtime=10): these figures have no intervals"
    } else {
        "measure both again, for longer: these figures have no intervals"
    }
}

/// What may explain it, the likeliest first: a disturbance, then a setting that differs.
fn about_slower(comparison: &Comparison, place: usize) -> NextStep {
    let mut doubts = comparison.doubts.iter();
    let of_one = doubts.find(|doubt| {
        let is_its = doubt.subject == 0 || doubt.subject == place;
        is_its && !doubt.is_of_all && doubt.kind != NOT_WATCHED
    });
    if let Some(doubt) = of_one {
        let name = &comparison.subjects[doubt.subject].name;
        let words = format!("measure {name} again without what disturbed it: {}", doubt.what);
        return NextStep::by_hand(&words);
    }
    let mut differences = comparison.differences.iter();
    let known = differences.find_map(|difference| {
        let value = |place: usize| difference.values.get(place)?.as_ref();
        let (before, after) = (value(0)?, value(place)?);
        (before != after).then(|| format!("{} ({before} against {after})", difference.what))
    });
    match known {
        Some(known) => NextStep::by_hand(&format!("look first at what differs: {known}")),
        None => match remark_of_slower(comparison, place) {
            Some(remark) => NextStep::by_hand(&format!("measure the same job in both: {remark}")),
            None => {
                let words = "nothing that is known differs: the findings say what slows a disk";
                NextStep::command(&["rubus", "survey"], words)
            }
        },
    }
}

/// In what a job that became slower is not quite the job of the baseline.
fn remark_of_slower(comparison: &Comparison, place: usize) -> Option<&str> {
    let is_slower = |row: &&Row| {
        let mut measures = [&row.throughput, &row.p50_ns, &row.p99_ns].into_iter();
        measures.any(|measure| {
            let ratio = measure.ratios.get(place).and_then(Option::as_ref);
            ratio.is_some_and(|ratio| ratio.word == Word::Slower)
        })
    };
    // With more subjects than two, a remark may be about another one.
    if comparison.subjects.len() != 2 {
        return None;
    }
    // What is known of one alone explains nothing.
    let explains =
        |remark: &&String| !remark.ends_with("known of one only") && !remark.starts_with("no rate");
    let slower = comparison.rows.iter().filter(is_slower);
    slower.flat_map(|row| &row.remarks).find(explains).map(String::as_str)
}
