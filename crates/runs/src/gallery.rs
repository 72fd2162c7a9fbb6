//! Many runs in one table: boards, cards and disks side by side, from files that their owners share.

#![deny(clippy::disallowed_methods)]

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::history::{doubt_count, key_results, measurement_key};
use rubus_draw::text::capitalized;
use rubus_draw::words;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::{JobResult, Outcome, Run, TargetKind};
use rubus_vocabulary::units::iops;

/// What the runs of a gallery are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Large blocks in order, bytes per second.
    SequentialRead,
    /// The same, writing.
    SequentialWrite,
    /// 4 KiB at random places, one at a time, per second.
    RandomRead,
    /// The same, writing.
    RandomWrite,
    /// 4 KiB appended and made durable, per second.
    Commit,
}

impl Quantity {
    /// All, in the order of [`Entry::figures`].
    pub const ALL: [Quantity; 5] = [
        Quantity::SequentialRead,
        Quantity::SequentialWrite,
        Quantity::RandomRead,
        Quantity::RandomWrite,
        Quantity::Commit,
    ];

    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Quantity::SequentialRead => "Sequential read",
            Quantity::SequentialWrite => "Sequential write",
            Quantity::RandomRead => "Random read, 4 KiB",
            Quantity::RandomWrite => "Random write, 4 KiB",
            Quantity::Commit => "Commits, 4 KiB",
        }
    }

    /// Whether it is a rate of bytes; else of operations.
    pub fn is_in_bytes(self) -> bool {
        matches!(self, Quantity::SequentialRead | Quantity::SequentialWrite)
    }

    fn of(self, result: &JobResult) -> Estimate {
        if self.is_in_bytes() { result.bytes_per_second } else { result.iops }
    }
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// In bytes or operations per second.
    pub rate: Estimate,
    /// Whether it settled: its interval became as narrow as was asked for.
    pub is_settled: bool,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// What its owner calls it.
    pub label: Option<String>,
    /// Model of the board, or of the processor where the board does not say.
    pub board: String,
    /// The disks below the target, with model and size.
    pub disk: String,
    /// How the first disk is connected ("USB 2, 480 Mbit/s"); empty where that is not known.
    pub link: String,
    /// Filesystem of the target; absent for a whole device.
    pub filesystem: Option<String>,
    /// When it was measured, RFC 3339, UTC.
    pub started: String,
    /// Name of the suite.
    pub suite: String,
    /// Version of the program that measured.
    pub rubus_version: String,
    /// How many doubts the run has, those of its jobs included.
    pub doubts: u32,
    /// In the order of [`Quantity::ALL`]; absent where it was not measured.
    pub figures: [Option<Shown>; 5],
}

impl Entry {
    /// The entry of a run; none where it has no figure that a gallery shows, as a run of memory.
    pub fn of(run: &Run, label: Option<&str>) -> Option<Entry> {
        let results = key_results(run);
        let figures = std::array::from_fn(|at| {
            results[at].map(|result| Shown {
                rate: Quantity::ALL[at].of(result),
                is_settled: result.outcome != Outcome::Inconclusive,
            })
        });
        if figures.iter().all(Option::is_none) {
            return None;
        }
        let device = run.target.device.as_deref();
        let disks = device.map(|name| run.machine.disks_below(name));
        let link = disks.iter().flatten().find_map(|disk| {
            let hops = disk.path.iter().rev();
            hops.map(|hop| hop.link.clone()).find(|link| !link.is_empty())
        });
        Some(Entry {
            label: label.map(str::to_string),
            board: board(run),
            disk: disk(run),
            link: link.unwrap_or_default(),
            filesystem: run.target.filesystem.clone(),
            started: run.started.clone(),
            suite: run.suite.clone(),
            rubus_version: run.rubus_version.clone(),
            doubts: doubt_count(run),
            figures,
        })
    }

    /// By what it is told from the others: its label, else its disk.
    pub fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.disk)
    }

    pub fn figure(&self, quantity: Quantity) -> Option<Shown> {
        self.figures[quantity as usize]
    }
}

fn board(run: &Run) -> String {
    let model = run.machine.board.model.text();
    let named = model.or(run.machine.cpu.model.text()).unwrap_or_default().trim();
    if named.is_empty() { "unknown board".into() } else { named.into() }
}

fn disk(run: &Run) -> String {
    let known = words::measured_device(run);
    match run.target.kind {
        _ if !known.is_empty() => known,
        TargetKind::Ram => "memory".into(),
        _ if run.target.network.is_some() => "network disk".into(),
        _ => "unknown disk".into(),
    }
}

/// The entries of runs with their labels, each measurement once, the fastest random writes first: that is what small
/// computers wait for. Runs without that figure come last, in the order given.
pub fn entries(runs: &[(Option<String>, Run)]) -> Vec<Entry> {
    let mut known = HashSet::new();
    let once = runs.iter().filter(|(_, run)| known.insert(measurement_key(run)));
    let mut entries: Vec<Entry> =
        once.filter_map(|(label, run)| Entry::of(run, label.as_deref())).collect();
    fastest_first(&mut entries, Quantity::RandomWrite);
    entries
}

/// Sorts by a figure; what does not have it comes last.
pub fn fastest_first(entries: &mut [Entry], quantity: Quantity) {
    let rate = |entry: &Entry| entry.figure(quantity).map_or(-1.0, |shown| shown.rate.value);
    entries.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
}

/// Which run does best at what people wait for most: commits, else small writes at random places. Two whose intervals overlap are
/// not told apart.
pub fn answer(entries: &[Entry]) -> String {
    let (mut what, mut ranked) = ("commits", settled(entries, Quantity::Commit));
    if ranked.is_empty() {
        (what, ranked) = ("random writes", settled(entries, Quantity::RandomWrite));
    }
    let [(best, rate), others @ ..] = &ranked[..] else {
        return "No answer: neither commits nor random writes settled in any of these runs.".into();
    };
    let (best, figure) = (best.name(), format!("{} per second", iops(rate.value)));
    let (Some((second, next)), Some((_, slowest))) = (others.first(), others.last()) else {
        return match entries.len() {
            1 => format!("{}: {figure} on {best}.", capitalized(what)),
            _ => format!("Only {best} settled at {what}: {figure}."),
        };
    };
    let slowest = iops(slowest.value);
    let alike =
        if next.high >= rate.low { format!(" or {}", second.name()) } else { String::new() };
    format!("Fastest at {what}: {best}{alike}, {figure}; the slowest {slowest}.")
}

/// The entries of which this figure settled, the fastest first.
fn settled(entries: &[Entry], quantity: Quantity) -> Vec<(&Entry, Estimate)> {
    let figure = |entry: &Entry| entry.figure(quantity).filter(|shown| shown.is_settled);
    let figures = entries.iter().filter_map(|entry| Some((entry, figure(entry)?.rate)));
    let mut settled: Vec<(&Entry, Estimate)> = figures.collect();
    settled.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    settled
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    fn faster(seed: u64, factor: f64) -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.seed = seed;
        for result in &mut run.results {
            result.iops = result.iops.scaled(factor);
            result.bytes_per_second = result.bytes_per_second.scaled(factor);
        }
        run
    }

    #[test]
    fn the_fastest_comes_first_and_each_measurement_once() {
        let runs: Vec<_> = [(1, 1.0), (2, 3.0), (1, 1.0), (3, 0.5)]
            .map(|(seed, factor)| (None, faster(seed, factor)))
            .into();
        let entries = entries(&runs);
        let rates: Vec<f64> = entries
            .iter()
            .map(|entry| entry.figure(Quantity::RandomWrite).unwrap().rate.value)
            .collect();
        assert_eq!(rates.len(), 3);
        assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
        assert!(entries[0].board.starts_with("Raspberry Pi"), "{}", entries[0].board);
    }

    #[test]
    fn the_answer_names_the_best_and_no_winner_where_intervals_overlap() {
        let labelled =
            |label: &str, seed: u64, factor: f64| (Some(label.into()), faster(seed, factor));
        let apart = answer(&entries(&[labelled("a", 1, 1.0), labelled("b", 2, 30.0)]));
        assert!(apart.starts_with("Fastest at commits: b, "), "{apart}");
        assert!(apart.ends_with("; the slowest 23.0."), "{apart}");
        let alike = answer(&entries(&[labelled("a", 1, 1.0), labelled("b", 2, 1.01)]));
        assert!(alike.starts_with("Fastest at commits: b or a, "), "{alike}");
        let mut unsettled = faster(3, 1.0);
        for result in &mut unsettled.results {
            result.outcome = Outcome::Inconclusive;
        }
        let none = answer(&entries(&[(None, unsettled)]));
        assert!(none.starts_with("No answer: "), "{none}");
    }

    #[test]
    fn a_figure_that_did_not_settle_is_shown_and_marked() {
        let mut run = fixture::slow_sd_card_run();
        let writes = run.results.iter_mut().find(|result| result.job == "random-write");
        writes.unwrap().outcome = Outcome::Inconclusive;
        let entry = Entry::of(&run, Some("mine")).unwrap();
        let write = entry.figure(Quantity::RandomWrite).unwrap();
        assert!(!write.is_settled && write.rate.low < write.rate.high);
        assert!(entry.figure(Quantity::SequentialRead).unwrap().is_settled);
        assert_eq!(entry.label.as_deref(), Some("mine"));
    }

    #[test]
    fn a_run_without_figures_of_a_disk_is_left_out() {
        assert_eq!(Entry::of(&fixture::failed_run(), None), None);
        assert!(entries(&[(None, fixture::failed_run())]).is_empty());
    }
}
