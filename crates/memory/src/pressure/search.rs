//! The search for the largest working set that still answers in time.
//!
//! Upwards in even steps, in one program that grows, until touches are slow with every access or nothing larger is
//! possible; then each answer is narrowed by halving, each time with a fresh program: one that shrank would find its
//! pages where the larger one had put them. Pure: it says what to measure next and is told what came out.

use rubus_vocabulary::memory::{Access, Carries, End, Rung};

use crate::cliff;

/// Where the search begins.
const FIRST: f64 = 0.8;
/// From one working set to the next on the way up.
const STEP: f64 = 0.2;
/// As near as the answer is narrowed.
pub const RESOLUTION: f64 = 0.05;

/// What to measure next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Size of the working set over memory.
    pub overcommit: f64,
    /// In a program that has touched nothing yet.
    pub fresh: bool,
}

/// The search under one set-up.
#[derive(Clone, Debug)]
pub struct Search {
    most: f64,
    accesses: Vec<Access>,
    rungs: Vec<Rung>,
    /// The way up is over.
    is_narrowing: bool,
    is_over: bool,
}

impl Search {
    /// A search up to `most` times memory.
    pub fn new(most: f64, accesses: &[Access]) -> Self {
        Search {
            most,
            accesses: accesses.to_vec(),
            rungs: Vec::new(),
            is_narrowing: false,
            is_over: false,
        }
    }

    /// What to measure next; nothing when everything is known.
    pub fn ask(&mut self) -> Option<Ask> {
        if self.is_over {
            return None;
        }
        if !self.is_narrowing {
            let next = self.rungs.last().map_or(FIRST, |rung| rung.overcommit + STEP);
            let next = (next * 100.0).round() / 100.0;
            let wanted = self.carries().iter().any(|found| found.beyond.is_none());
            if wanted && next <= self.most + 1e-9 {
                let fresh = self.rungs.is_empty();
                return Some(Ask { overcommit: next, fresh });
            }
            self.is_narrowing = true;
        }
        let carries = self.carries();
        let middles = carries.iter().filter_map(|found| {
            let beyond = found.beyond?;
            let within = found.within?;
            let middle = ((within + beyond) / 2.0 * 1000.0).round() / 1000.0;
            (beyond - within > RESOLUTION * 1.01).then_some(middle)
        });
        // The lower one first: it may decide the other.
        let overcommit = middles.min_by(f64::total_cmp)?;
        Some(Ask { overcommit, fresh: true })
    }

    /// Takes what came out.
    pub fn tell(&mut self, rung: Rung) {
        match &rung.ended_by {
            Some(end) if end.is_answer() => self.is_narrowing = true,
            Some(End::Budget | End::Interrupted | End::Unsafe { .. } | End::Failed { .. }) => {
                self.is_over = true;
            }
            _ => {}
        }
        self.rungs.push(rung);
    }

    /// What is known so far.
    pub fn carries(&self) -> Vec<Carries> {
        cliff::find(&self.rungs, &self.accesses)
    }

    /// Everything that was measured.
    pub fn into_rungs(self) -> Vec<Rung> {
        self.rungs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::memory::Phase;
    use rubus_vocabulary::memory::{Counters, TOUCHES_PER_SLOW};

    /// A machine whose touches are slow beyond these multiples of its memory, and that has nothing beyond
    /// `all`.
    fn rung(ask: Ask, uniform: f64, zipf: f64, all: f64) -> Rung {
        let phase = |access: Access, from: f64| Phase {
            access,
            write_share: 0.5,
            touches: 1000,
            elapsed_s: 1.0,
            latency_ns: Default::default(),
            read_mean_ns: None,
            write_mean_ns: None,
            slow: if ask.overcommit > from { 1000 / TOUCHES_PER_SLOW + 1 } else { 3 },
            major_faults: 0,
            counters: Counters::default(),
        };
        let is_over = ask.overcommit > all;
        Rung {
            overcommit: ask.overcommit,
            working_set_bytes: (ask.overcommit * 1e6) as u64,
            grown_s: 0.1,
            pool_bytes: 0,
            stored_bytes: 0,
            phases: if is_over {
                Vec::new()
            } else {
                vec![phase(Access::Uniform, uniform), phase(Access::Zipf, zipf)]
            },
            ended_by: is_over.then_some(End::OutOfMemory),
        }
    }

    fn searched(most: f64, uniform: f64, zipf: f64, all: f64) -> (Vec<Carries>, Vec<Rung>) {
        let mut search = Search::new(most, &Access::ALL);
        let mut asks = 0;
        while let Some(ask) = search.ask() {
            search.tell(rung(ask, uniform, zipf, all));
            asks += 1;
            assert!(asks < 40, "it ends");
        }
        (search.carries(), search.into_rungs())
    }

    #[test]
    fn both_answers_are_narrowed_around_the_truth() {
        for (uniform, zipf) in [(1.38, 1.71), (1.02, 2.9), (0.9, 0.95), (1.6, 1.6)] {
            let (carries, _) = searched(4.0, uniform, zipf, 9.0);
            for (found, truth) in carries.iter().zip([uniform, zipf]) {
                let (within, beyond) = (found.within.unwrap(), found.beyond.unwrap());
                assert!(within <= truth + 1e-9 && truth < beyond + 1e-9, "{found:?} {truth}");
                assert!(beyond - within <= 0.051, "{found:?}");
            }
        }
    }

    #[test]
    fn without_swap_it_carries_itself() {
        let (carries, rungs) = searched(4.0, 9.0, 9.0, 1.0);
        for found in carries {
            assert_eq!((found.within, found.beyond), (Some(1.0), Some(1.05)));
            assert_eq!(found.because, Some(End::OutOfMemory));
        }
        assert!(rungs.len() <= 6);
    }

    #[test]
    fn what_has_no_end_is_only_known_to_be_more() {
        let (carries, _) = searched(2.0, 9.0, 9.0, 9.0);
        assert_eq!(carries[0].within, Some(2.0));
        assert_eq!(carries[0].beyond, None);
    }

    #[test]
    fn a_machine_that_is_slow_from_the_start_carries_less() {
        let (carries, rungs) = searched(2.0, 0.1, 0.1, 9.0);
        assert_eq!((carries[0].within, carries[0].beyond), (None, Some(0.8)));
        assert_eq!(rungs.len(), 1);
    }

    #[test]
    fn the_limit_of_what_may_be_written_ends_it() {
        let mut search = Search::new(2.0, &Access::ALL);
        let ask = search.ask().unwrap();
        search.tell(rung(ask, 9.0, 9.0, 9.0));
        let ask = search.ask().unwrap();
        let mut last = rung(ask, 9.0, 9.0, 9.0);
        last.ended_by = Some(End::Budget);
        last.phases.truncate(1);
        search.tell(last);
        assert_eq!(search.ask(), None);
        let carries = search.carries();
        assert_eq!((carries[0].within, carries[0].beyond), (Some(1.0), None));
        assert_eq!((carries[1].within, carries[1].beyond), (Some(0.8), None));
        assert_eq!(carries[1].because, Some(End::Budget));
    }
}
