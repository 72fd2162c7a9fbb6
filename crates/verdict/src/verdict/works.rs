//! How long each piece of the reference work keeps the disk busy, and with what.

use rubus_machine::reference_work::{WORKS, Work};
use rubus_stats::estimate::Estimate;

use super::pipes::KINDS;
use super::{Pipe, WorkTime};

/// The pieces of the reference work, if everything that they ask for was measured.
pub(super) fn works(pipes: &[Pipe]) -> Vec<WorkTime> {
    let times: Option<Vec<WorkTime>> = WORKS.iter().map(|work| time_for(work, pipes)).collect();
    times.unwrap_or_default()
}

/// The operations of a piece one after the other: each kind's amount by its rate, and the sum of the kinds.
fn time_for(work: &Work, pipes: &[Pipe]) -> Option<WorkTime> {
    let mut busy_s = Estimate::exact(0.0);
    let mut longest: Option<(&Pipe, f64)> = None;
    for (what, _, _) in KINDS.iter().filter(|(what, _, _)| work.amount(*what) > 0.0) {
        let pipe = pipes.iter().find(|pipe| pipe.what() == Some(*what))?;
        let time = pipe.time_for(work.amount(*what))?;
        busy_s.value += time.value;
        busy_s.low += time.low;
        busy_s.high += time.high;
        if longest.is_none_or(|(_, most)| time.value > most) {
            longest = Some((pipe, time.value));
        }
    }
    let (pipe, mostly_s) = longest?;
    Some(WorkTime {
        work: work.name.into(),
        doing: work.doing.into(),
        busy_s,
        mostly: pipe.name.clone(),
        mostly_s,
    })
}

#[cfg(test)]
mod tests {
    use crate::verdict::verdict;
    use rubus_fixtures::slow_sd_card_run;
    use rubus_vocabulary::job_names;

    #[test]
    fn the_pieces_are_the_whole_and_each_is_its_amounts_by_the_rates() {
        let verdict = verdict(&slow_sd_card_run());
        let pieces: f64 = verdict.works.iter().map(|work| work.busy_s.value).sum();
        let whole: f64 = verdict.pipes.iter().filter_map(|pipe| pipe.demand_s).sum();
        assert!((pieces / whole - 1.0).abs() < 1e-9, "{pieces} is not {whole}");
        for work in &verdict.works {
            let (low, high) = (work.busy_s.low, work.busy_s.high);
            assert!(low < work.busy_s.value && work.busy_s.value < high, "{work:?}");
        }
        let logger = verdict.works.iter().find(|work| work.work.contains("SQLite"));
        assert_eq!(logger.expect("it is listed").mostly, "commits");
        let start = verdict.works.iter().find(|work| work.work.contains("board"));
        assert_eq!(start.expect("it is listed").mostly, "sequential reads");
    }

    #[test]
    fn without_a_kind_that_they_ask_for_no_piece_has_a_time() {
        let mut run = slow_sd_card_run();
        run.results.retain(|result| result.job != job_names::COMMIT);
        assert_eq!(verdict(&run).works, []);
    }
}
