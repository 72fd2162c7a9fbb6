//! A disk's runs over time: what changed, when, and whether a known event came with it.

#![deny(clippy::disallowed_methods)]

use rubus_stats::change_point::{self, Change};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::{BlockDevice, Mount};
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::units::{bytes_iec, bytes_si, counted, percent};

use crate::history::{RunId, key_results};

/// A key figure's name, and which number of a result it is.
type Figure = (&'static str, fn(&JobResult) -> Estimate);

/// The key figures of a run in the order of [`key_results`].
const FIGURES: [Figure; 5] = [
    ("sequential reads", |result| result.bytes_per_second),
    ("sequential writes", |result| result.bytes_per_second),
    ("random reads", |result| result.iops),
    ("random writes", |result| result.iops),
    ("commits", |result| result.iops),
];
/// A filesystem that became fuller by this much is an event.
const FILL_STEP: f64 = 0.2;

/// What changed in one figure of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    /// Name of the figure: "sequential reads".
    pub figure: &'static str,
    /// How it changed.
    pub what: What,
    /// What else changed with the first run after it: "kernel 6.6.20 → 6.12.47".
    pub events: Vec<String>,
}

/// What happened to a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A change over many runs; for a step and a spike the run where it is.
    Changed { change: Change, run: Option<RunId> },
    /// The last run looks different; more runs decide.
    LooksDifferent { ratio: f64 },
}

/// A run and its number.
pub type Numbered<'a> = (RunId, &'a Run);

/// Which runs are of one disk, measured in one way: its serial number, or its model and size, the suite and the board. A loop
/// device, an array or an encrypted volume is a disk of its own, not the one below.
pub fn series_of(run: &Run) -> Option<String> {
    let disk = run.machine.measured_device(run.target.device.as_deref()?)?;
    let size = disk.size_bytes.get().map(bytes_si).unwrap_or_default();
    let name = match (disk.serial.text(), disk.model.text()) {
        (Some(serial), _) => serial.to_string(),
        (None, Some(model)) => format!("{model} {size}"),
        (None, None) => format!("{} {size}", disk.name),
    };
    let board = run.machine.board.model.text().unwrap_or_default();
    Some(format!("{name} / {} / {board}", run.suite))
}

/// What changed over the runs of one series, in the order of time.
pub fn of_runs(runs: &[Numbered<'_>]) -> Vec<Aged> {
    (0..FIGURES.len()).filter_map(|figure| of_figure(runs, figure)).collect()
}

fn of_figure(runs: &[Numbered<'_>], figure: usize) -> Option<Aged> {
    let (name, number) = FIGURES[figure];
    let settled: Vec<(Numbered<'_>, Estimate)> = runs
        .iter()
        .filter_map(|numbered| {
            let estimate = number(key_results(numbered.1)[figure]?);
            (estimate.value > 0.0 && estimate.value.is_finite()).then_some((*numbered, estimate))
        })
        .collect();
    let logs: Vec<f64> = settled.iter().map(|(_, estimate)| estimate.value.ln()).collect();
    let events_at = |at: usize| events(settled[at - 1].0.1, settled[at].0.1);
    // Known events first: a split that is given has no penalty for a search.
    let by_event = (1..settled.len()).find_map(|at| {
        let events = events_at(at);
        let change = if events.is_empty() { None } else { change_point::at_event(&logs, at) };
        change.map(|change| (change, events))
    });
    if let Some((change, events)) = by_event {
        return Some(Aged { figure: name, what: changed(change, &settled), events });
    }
    if let Some(change) = change_point::find(&logs) {
        let events = match change {
            Change::Step { at, .. } | Change::Spike { at, .. } if at > 0 => events_at(at),
            Change::Step { .. }
            | Change::Spike { .. }
            | Change::Drift { .. }
            | Change::TwoModes { .. } => Vec::new(),
        };
        return Some(Aged { figure: name, what: changed(change, &settled), events });
    }
    let (_, last) = settled.last()?;
    let half_width = last.largest_deviation().ln_1p();
    let ratio = change_point::looks_different(&logs, half_width)?;
    let events = events_at(settled.len() - 1);
    Some(Aged { figure: name, what: What::LooksDifferent { ratio }, events })
}

fn changed(change: Change, settled: &[(Numbered<'_>, Estimate)]) -> What {
    let run = match change {
        Change::Step { at, .. } | Change::Spike { at, .. } => settled.get(at).map(|one| one.0.0),
        Change::Drift { .. } | Change::TwoModes { .. } => None,
    };
    What::Changed { change, run }
}

/// What is known to have changed between two runs.
fn events(before: &Run, after: &Run) -> Vec<String> {
    let pairs = [
        ("kernel", kernel(before), kernel(after)),
        ("firmware", firmware(before), firmware(after)),
        ("connection", connection(before), connection(after)),
        ("governor", governor(before), governor(after)),
        ("I/O scheduler", scheduler(before), scheduler(after)),
        ("write cache", write_cache(before), write_cache(after)),
        ("filesystem", filesystem(before), filesystem(after)),
        ("mount options", mount_options(before), mount_options(after)),
        ("swap", Some(swap(before)), Some(swap(after))),
        ("directory", Some(before.place()), Some(after.place())),
        ("test region", region(before), region(after)),
        ("rubus", Some(before.rubus_version.clone()), Some(after.rubus_version.clone())),
    ];
    let differ = pairs.into_iter().filter_map(|(what, before, after)| {
        let (before, after) = (before?, after?);
        (before != after).then(|| format!("{what} {before} → {after}"))
    });
    // A plan comes first: it says why the others changed.
    let mut events = plans(before, after);
    events.extend(differ);
    if let (Some(a), Some(b)) = (fill(before), fill(after))
        && (a - b).abs() >= FILL_STEP
    {
        events.push(format!("filesystem {} → {} full", percent(a), percent(b)));
    }
    events
}

/// "plan swap applied", "plan zswap undone".
fn plans(before: &Run, after: &Run) -> Vec<String> {
    let (Some(before), Some(after)) = (&before.plans, &after.plans) else {
        return Vec::new();
    };
    let of = |plans: &[String], others: &[String], what: &str| -> Vec<String> {
        let gone = plans.iter().filter(|plan| !others.contains(plan));
        gone.map(|plan| format!("plan {plan} {what}")).collect()
    };
    [of(after, before, "applied"), of(before, after, "undone")].concat()
}

/// How much of the disk was measured: in a larger part a cache and short ways help less.
fn region(run: &Run) -> Option<String> {
    Some(bytes_iec(run.target.region_bytes))
}

fn firmware(run: &Run) -> Option<String> {
    run.machine.board.firmware.text().map(str::to_string)
}

fn kernel(run: &Run) -> Option<String> {
    run.machine.system.kernel_release.text().map(str::to_string)
}

fn governor(run: &Run) -> Option<String> {
    run.machine.cpu.clocks.first()?.governor.text().map(str::to_string)
}

/// The port and speed of the disk.
fn connection(run: &Run) -> Option<String> {
    let hop = disk(run)?.path.last()?;
    Some(format!("{} {}", hop.id, hop.link))
}

fn disk(run: &Run) -> Option<&BlockDevice> {
    run.machine.disks_below(run.target.device.as_deref()?).first().copied()
}

fn scheduler(run: &Run) -> Option<String> {
    disk(run)?.scheduler.text().map(str::to_string)
}

fn write_cache(run: &Run) -> Option<String> {
    disk(run)?.write_cache.text().map(str::to_string)
}

fn swap(run: &Run) -> String {
    let places: Vec<&str> = run.machine.swap.areas.iter().map(|area| area.path.as_str()).collect();
    if places.is_empty() { "none".into() } else { places.join(" and ") }
}

fn mount(run: &Run) -> Option<&Mount> {
    let device = run.target.device.as_deref()?;
    run.machine.mounts.iter().find(|mount| mount.device.as_deref() == Some(device))
}

fn filesystem(run: &Run) -> Option<String> {
    mount(run).map(|mount| mount.filesystem.clone())
}

/// Those of one filesystem that are in force, in the order in which the kernel tells them.
fn mount_options(run: &Run) -> Option<String> {
    mount(run).map(|mount| mount.options.join(","))
}

fn fill(run: &Run) -> Option<f64> {
    let mount = mount(run)?;
    let (size, free) = (mount.size_bytes.get()?, mount.available_bytes.get()?);
    (size > 0).then(|| 1.0 - free as f64 / size as f64)
}

impl Aged {
    /// "random reads: 31 % slower since run 14 (2026-03-01), when kernel 6.6.20 → 6.12.47".
    pub fn words(&self, day_of: impl Fn(RunId) -> String) -> String {
        let since = |run: Option<RunId>| {
            run.map_or(String::new(), |run| format!(" run {run} ({})", day_of(run)))
        };
        let what = match self.what {
            What::Changed { change: Change::Step { ratio, .. }, run } => {
                format!("{} since{}", faster(ratio), since(run))
            }
            What::Changed { change: Change::Spike { ratio, .. }, run } => {
                format!("one run apart,{}: {}", since(run), faster(ratio))
            }
            What::Changed { change: Change::Drift { ratio }, .. } => {
                format!("drifting: {} at the end than at the beginning", faster(ratio))
            }
            What::Changed { change: Change::TwoModes { low, high, low_runs }, .. } => format!(
                "two modes: {} in {}, else {:.1} times that",
                figure(self.figure, low.exp()),
                counted(low_runs as u64, "run", "runs"),
                (high - low).exp()
            ),
            What::LooksDifferent { ratio } => {
                let ratio = faster(ratio);
                format!("perhaps {ratio} in the last run, no evidence yet; two more runs decide")
            }
        };
        let events = match self.events.as_slice() {
            [] => String::new(),
            events => format!("; at that run also changed: {}", events.join(", ")),
        };
        format!("{}: {what}{events}", self.figure)
    }
}

fn figure(name: &str, value: f64) -> String {
    if name.starts_with("sequential") {
        rubus_vocabulary::units::rate_si(value)
    } else {
        format!("{value:.0}/s")
    }
}

fn faster(ratio: f64) -> String {
    if ratio < 1.0 {
        format!("{:.0} % slower", (1.0 - ratio) * 100.0)
    } else {
        format!("{:.0} % faster", (ratio - 1.0) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;

    use super::*;

    /// Runs whose random reads are the fixture's, scaled by these factors.
    fn runs(factors: &[f64]) -> Vec<Run> {
        let scaled = |factor: &f64| {
            let mut run = fixture::slow_sd_card_run();
            for result in &mut run.results {
                let e = result.iops;
                result.iops = Estimate::new(e.value * factor, e.low * factor, e.high * factor);
            }
            run
        };
        factors.iter().map(scaled).collect()
    }

    fn words(runs: &[Run]) -> Vec<String> {
        let numbered: Vec<Numbered<'_>> =
            runs.iter().enumerate().map(|(at, run)| (RunId(at as i64 + 1), run)).collect();
        of_runs(&numbered).iter().map(|aged| aged.words(|_| "2026-03-01".into())).collect()
    }

    const LEVEL: [f64; 8] = [1.0, 1.03, 0.98, 1.01, 0.97, 1.02, 1.0, 0.99];

    #[test]
    fn a_fall_is_found_with_its_run_and_a_steady_disk_has_none() {
        assert_eq!(words(&runs(&LEVEL)), [] as [&str; 0]);
        let fallen: Vec<f64> = LEVEL.into_iter().chain([0.7, 0.69, 0.71]).collect();
        assert_eq!(words(&runs(&fallen))[0], "random reads: 30 % slower since run 9 (2026-03-01)");
        let again = &words(&runs(&[1.0, 1.02, 0.6]))[0];
        assert_eq!(
            again,
            "random reads: perhaps 41 % slower in the last run, no evidence yet; two more runs decide"
        );
    }

    #[test]
    fn a_known_event_is_named_with_fewer_runs() {
        let mut all = runs(&[1.0, 1.03, 0.98, 1.01, 0.97, 0.7, 0.69, 0.71]);
        for run in &mut all[5..] {
            run.machine.system.kernel_release = Fact::known("6.99.1".into(), "uname");
        }
        let said = &words(&all)[0];
        assert!(said.starts_with("random reads: 30 % slower since run 6"), "{said}");
        assert!(said.ends_with("→ 6.99.1"), "{said}");
    }

    #[test]
    fn each_known_event_is_named_once() {
        type Change = fn(&mut Run);
        let fact = |text: &str| Fact::known(text.to_owned(), "test");
        let before = {
            let mut run = fixture::slow_sd_card_run();
            run.plans = Some(vec!["zswap".into()]);
            let device = run.target.device.clone().expect("a device");
            let disk = run.machine.disks_below(&device)[0].name.clone();
            let disk = run.machine.block_devices.iter_mut().find(|one| one.name == disk);
            let disk = disk.expect("the disk");
            disk.scheduler = fact("bfq");
            disk.write_cache = fact("write back");
            run.machine.board.firmware = fact("2024-01-01");
            run
        };
        let disk = |run: &mut Run, change: fn(&mut BlockDevice)| {
            let name = super::disk(run).expect("the disk").name.clone();
            let mut disks = run.machine.block_devices.iter_mut();
            change(disks.find(|one| one.name == name).expect("the disk"));
        };
        let mounted = |run: &mut Run, change: fn(&mut Mount)| {
            let device = run.target.device.clone();
            let mut mounts = run.machine.mounts.iter_mut();
            change(mounts.find(|mount| mount.device == device).expect("a mount"));
        };
        assert_eq!(events(&before, &before), [] as [&str; 0]);
        let mut after = before.clone();
        after.plans = Some(vec!["swap".into()]);
        assert_eq!(events(&before, &after), ["plan swap applied", "plan zswap undone"]);
        after.plans = None;
        assert_eq!(events(&before, &after), [] as [&str; 0]);

        let simple: [(&str, Change); 6] = [
            ("test region", |run| run.target.region_bytes *= 2),
            ("kernel", |run| run.machine.system.kernel_release = Fact::known("7.0".into(), "test")),
            ("firmware", |run| run.machine.board.firmware = Fact::known("2025".into(), "test")),
            ("swap", |run| run.machine.swap.areas.clear()),
            ("directory", |run| run.target.path = "/elsewhere".into()),
            ("rubus", |run| run.rubus_version = "9.9.9".into()),
        ];
        for (name, change) in simple {
            let mut after = before.clone();
            change(&mut after);
            let found = events(&before, &after);
            assert!(found.len() == 1 && found[0].starts_with(name), "{name}: {found:?}");
        }
        let mut after = before.clone();
        disk(&mut after, |disk| disk.scheduler = Fact::known("none".into(), "test"));
        assert_eq!(events(&before, &after), ["I/O scheduler bfq → none"]);
        let mut after = before.clone();
        disk(&mut after, |disk| disk.write_cache = Fact::known("write through".into(), "test"));
        assert_eq!(events(&before, &after), ["write cache write back → write through"]);
        let mut after = before.clone();
        mounted(&mut after, |mount| mount.options.push("commit=60".into()));
        let found = events(&before, &after);
        assert!(found.len() == 1 && found[0].ends_with("commit=60"), "{found:?}");
    }

    #[test]
    fn runs_of_another_disk_or_suite_are_another_series() {
        let run = fixture::slow_sd_card_run();
        let mut other = run.clone();
        other.suite = "deep".into();
        assert_ne!(series_of(&run), series_of(&other));
        assert_eq!(series_of(&run), series_of(&run.clone()));
    }
}
