//! The model against figures that others published of small boards.
//!
//! Each case takes its stages from some of the published figures and predicts another one. Nothing was measured for it, so
//! a miss says as much of what an article leaves out as of the model; every case says why it agrees or why not.

mod disks;
mod links;
mod processor;

use rubus_runs::reference;

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::published::{Reference, figures::ASIDES};
use serde::Serialize;

use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step};
use crate::predict::{Bend, Operation};

/// Figures agree when they differ by less than this share of the published one, or when the prediction's interval holds it.
pub const AGREES_WITHIN: f64 = 0.25;

/// A published figure and what the model makes of its neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedCase {
    /// What was predicted, on which board.
    pub what: String,
    /// What the stages were taken from.
    pub stages: String,
    /// What the model gives.
    pub predicted: Estimate,
    /// What was published.
    pub published: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// Where and when it was published.
    pub source: &'static str,
    /// Why it agrees, or why not.
    pub why: &'static str,
}

impl SeedCase {
    /// How far the prediction is from the figure, as a share of the figure; negative when it is too low.
    pub fn error(&self) -> f64 {
        self.predicted.value / self.published - 1.0
    }

    /// Whether the two agree ([`AGREES_WITHIN`]).
    pub fn agrees(&self) -> bool {
        let holds = (self.predicted.low..=self.predicted.high).contains(&self.published);
        holds || self.error().abs() < AGREES_WITHIN
    }
}

/// Every case, by subject.
pub fn cases() -> Vec<SeedCase> {
    let mut cases = disks::cases();
    cases.extend(links::cases());
    cases.extend(processor::cases());
    cases
}

/// A figure of a reference, in bytes per second.
///
/// # Panics
/// If there is none of that name: that is a programming error.
fn published(id: &str, job: &str) -> f64 {
    let reference = reference(id);
    let figure = reference.figures.iter().find(|figure| figure.job == job);
    figure.unwrap_or_else(|| panic!("{id} has no {job}")).bytes_per_second
}

fn reference(id: &str) -> &'static Reference {
    reference::by_id(id).unwrap_or_else(|| panic!("no reference is called {id}"))
}

/// A figure that no job of a suite measures, in its own unit, and its source.
///
/// # Panics
/// If there is none: that is a programming error.
fn aside(board: &str, what: &str) -> (f64, &'static str) {
    let mut all = ASIDES.iter();
    let found = all.find(|aside| aside.board == board && aside.what == what);
    let found = found.unwrap_or_else(|| panic!("no figure of {what} on {board}"));
    (found.value, found.source)
}

fn exact(value: f64) -> Estimate {
    Estimate::exact(value)
}

/// A stage with a resource of its own name that has nothing but a rate.
fn rate(kind: Kind, resource: Resource, bytes_per_second: Estimate) -> Step {
    Step::Stage(Stage { kind, resource: Some(resource), cost: Cost::rate(bytes_per_second) })
}

/// `depth` operations in flight of `bytes` each.
fn operation(bytes: u64, depth: u32) -> Operation {
    Operation { bytes, depth, bend: Bend::Stations }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(cases: &'a [SeedCase], part: &str) -> Vec<&'a SeedCase> {
        let found: Vec<_> = cases.iter().filter(|case| case.what.contains(part)).collect();
        assert!(!found.is_empty(), "no case of {part}");
        found
    }

    #[test]
    fn each_case_is_told_in_full_and_once() {
        let cases = cases();
        for (i, case) in cases.iter().enumerate() {
            for text in [case.what.as_str(), &case.stages, case.why, case.source] {
                assert!(text.len() > 8, "{case:?}");
            }
            assert!(case.predicted.value > 0.0 && case.published > 0.0);
            assert!(cases[..i].iter().all(|other| other.what != case.what));
        }
    }

    #[test]
    fn zeros_are_limited_by_the_processor_and_not_by_the_link() {
        let cases = cases();
        let zeros = of(&cases, "zeros")[0];
        assert!(zeros.agrees(), "{zeros:?}");
        assert!(
            zeros.predicted.value > 2.0 * 31e6 / 1e6,
            "more than the link carries as it is: {zeros:?}"
        );
    }

    #[test]
    fn a_card_on_another_bus_is_predicted_to_a_tenth() {
        let cases = cases();
        let cards = of(&cases, "from the Pi 4's figures");
        assert_eq!(cards.len(), 8);
        for card in cards {
            assert!(card.error().abs() < 0.11, "{card:?}");
        }
    }

    #[test]
    fn a_size_between_two_is_predicted_but_for_a_card_s_random_writes() {
        let cases = cases();
        let sizes = of(&cases, "512 KiB");
        assert_eq!(sizes.len(), 12);
        let missed: Vec<_> = sizes.iter().filter(|case| !case.agrees()).collect();
        assert_eq!(missed.len(), 1, "{missed:?}");
        assert!(missed[0].what.contains("random-write"));
        let near = sizes.iter().filter(|case| case.error().abs() < 0.16);
        assert_eq!(near.count(), 11);
    }

    #[test]
    fn more_sticks_on_one_hub_gain_nothing() {
        let cases = cases();
        let sticks = of(&cases, "on one hub");
        for several in &sticks {
            assert!((several.predicted.value - 35.0).abs() < 0.1, "{several:?}");
        }
    }

    #[test]
    fn one_queue_gains_nothing_from_depth() {
        let cases = cases();
        let bridge = of(&cases, "bridge")[0];
        assert!((bridge.predicted.value - 1.0).abs() < 1e-9, "{bridge:?}");
    }

    #[test]
    fn what_is_faster_than_its_wire_is_not_explained_away() {
        let cases = cases();
        let reads = of(&cases, "sequential-read over 100 Mbit/s")[0];
        assert!(!reads.agrees(), "{reads:?}");
        let port = of(&cases, "1 Gbit/s")[0];
        assert!(port.agrees() && port.predicted.value < 16_000.0, "{port:?}");
    }

    #[test]
    fn most_agree_and_every_miss_is_named() {
        let cases = cases();
        let missed: Vec<_> = cases.iter().filter(|case| !case.agrees()).collect();
        assert!(cases.len() >= 30, "{} cases", cases.len());
        assert!(missed.len() <= 4, "{missed:#?}");
        for miss in missed {
            assert!(miss.why.starts_with("Misses:"), "{miss:?}");
        }
        for case in cases.iter().filter(|case| case.agrees()) {
            assert!(!case.why.starts_with("Misses:"), "{case:?}");
        }
    }
}
