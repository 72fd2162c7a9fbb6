//! What was measured before and is worth more than any table.

use std::collections::BTreeMap;

use super::{Bases, Basis, Figures};
use rubus_recipes::{TogetherSpeed, measured_together, runs_of_disks};
use rubus_runs::history::RunId;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::compression_speed::CompressionSpeed;
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory;
use rubus_vocabulary::processor::{Ciphers, compression};
use rubus_vocabulary::result::{JobResult, Outcome, Run};

/// Everything that was measured on a machine and that advice can use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Disks by the kernel's current names.
    pub disks: BTreeMap<String, MeasuredDisk>,
    /// Network disks by their address.
    pub exports: BTreeMap<String, MeasuredDisk>,
    /// Several disks at once.
    pub together: Vec<TogetherSpeed>,
    /// How this processor compresses the data that is here.
    pub compression: Vec<CompressionSpeed>,
    /// What `rubus bench cpu` measured of this processor.
    pub processor: Option<KnownProcessor>,
    /// Pages under memory pressure by page compressed, where `rubus bench memory` saw it.
    pub page_ratio: Option<f64>,
    /// Seconds of one core for a page into compressed memory or out of it, as programs saw it there.
    pub page_s: Option<f64>,
    /// What `rubus bench memory` found that set-ups carry, the newest first.
    pub carried: Vec<Carried>,
}

/// What a set-up of swap was found to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Zram, zswap, a disk.
    pub kind: memory::SetUpKind,
    /// Share of the memory that compressed pages could take, where that was limited.
    pub pool_share: Option<f64>,
    /// As many times the memory: from what was still quick to what was not.
    pub times: Estimate,
}

/// What the newest runs of `rubus bench cpu` say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownProcessor {
    /// Ciphers, in the kernel where it was measured there.
    pub ciphers: Option<Ciphers>,
    /// Compression of the files that are here, else of made ones.
    pub compression: Option<compression::Sample>,
    /// When, in words.
    pub source: String,
}

/// What was measured of one disk; of several runs the newest that knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredDisk {
    /// 4 KiB random reads per second, one at a time.
    pub random_read: Option<Estimate>,
    /// The same with 32 in flight.
    pub random_read_deep: Option<Estimate>,
    /// 4 KiB random writes per second, one at a time.
    pub random_write: Option<Estimate>,
    /// The same with 32 in flight.
    pub random_write_deep: Option<Estimate>,
    /// Reading in order, bytes per second.
    pub sequential_read: Option<Estimate>,
    /// Writing in order, bytes per second.
    pub sequential_write: Option<Estimate>,
    /// Commits per second.
    pub commits: Option<Estimate>,
    /// Processor seconds of all cores per small operation.
    pub cpu_s: Option<f64>,
    /// When, in words.
    pub source: String,
    /// Figures that did not settle: wide, but what they exclude is excluded.
    pub unsettled: Option<Box<MeasuredDisk>>,
}

impl Known {
    /// What runs say of a machine's disks; of several the first one given counts, so give the newest first.
    pub fn of(machine: &Machine, runs: &[(RunId, Run)]) -> Known {
        let mut known = Known { together: measured_together(machine, runs), ..Known::default() };
        for (disk, id, run) in runs_of_disks(machine, runs) {
            known.disks.entry(disk).or_default().add(id, run);
        }
        for (id, run) in runs.iter().filter(|(_, run)| run.on.is_none()) {
            if run.target.network.is_some() {
                let export = known.exports.entry(run.target.named.clone());
                export.or_default().add(*id, run);
            }
            known.add_processor(machine, *id, run);
            for pressure in run.memory().into_iter().flat_map(|memory| &memory.pressure) {
                known.page_ratio = known.page_ratio.or(pressure.measured_ratio);
                known.page_s = known.page_s.or_else(|| page_s(pressure));
                known.carried.extend(carried(pressure));
            }
        }
        known
    }

    /// Of the processor that the machine has, a newer run's parts before an older one's.
    fn add_processor(&mut self, machine: &Machine, id: RunId, run: &Run) {
        let is_same = run.machine.cpu.model.text() == machine.cpu.model.text();
        let Some(part) = run.processor().filter(|_| is_same) else {
            return;
        };
        let known = self.processor.get_or_insert_default();
        let samples = part.compression.iter().flat_map(|part| &part.samples);
        let is_made = |sample: &&compression::Sample| sample.source == compression::Source::Corpus;
        let sample = samples.min_by_key(is_made).cloned();
        let is_new = known.ciphers.is_none() && part.ciphers.is_some()
            || known.compression.is_none() && sample.is_some();
        known.ciphers = known.ciphers.take().or_else(|| part.ciphers.clone());
        known.compression = known.compression.take().or(sample);
        if is_new {
            let when = when(id, run);
            known.source =
                if known.source.is_empty() { when } else { format!("{}; {when}", known.source) };
        }
    }
}

/// Half of what touching a page took that had to come back from compressed memory, since another one had to go there for it. Of
/// the largest working set that was still quick, since there most of the touches are such.
fn page_s(pressure: &memory::Pressure) -> Option<f64> {
    use memory::SetUpKind::{Zram, Zswap};
    /// Fewer say nothing.
    const MIN: u64 = 200;
    let within = pressure.carried(memory::Access::Uniform)?.within?;
    let is_it = |rung: &&memory::Rung| rung.overcommit == within;
    let rung = pressure.rungs.iter().find(is_it)?;
    let is_uniform = |phase: &&memory::Phase| phase.access == memory::Access::Uniform;
    let phase = rung.phases.iter().find(is_uniform)?;
    let came_back = match pressure.set_up.kind {
        Zram => phase.counters.swapped_in?,
        Zswap => phase.counters.zswap_in?,
        _ => return None,
    };
    (came_back >= MIN && phase.elapsed_s > 0.0).then(|| phase.elapsed_s / came_back as f64 / 2.0)
}

fn carried(pressure: &memory::Pressure) -> Option<Carried> {
    let found = pressure.carried(memory::Access::Uniform)?;
    let (within, beyond) = (found.within?, found.beyond?);
    (within <= beyond).then(|| Carried {
        kind: pressure.set_up.kind,
        pool_share: pressure.set_up.pool_share,
        times: Estimate::new((within + beyond) / 2.0, within, beyond),
    })
}

/// "measured on 2026-11-21, run 12".
fn when(id: RunId, run: &Run) -> String {
    let day = run.started.get(..10).unwrap_or(&run.started);
    match id.0 {
        0 => format!("measured on {day}"),
        _ => format!("measured on {day}, run {id}"),
    }
}

impl MeasuredDisk {
    /// Adds what a run knows and a newer one did not.
    fn add(&mut self, id: RunId, run: &Run) {
        self.add_those(id, run, is_sound);
        let unsettled = self.unsettled.get_or_insert_default();
        unsettled.add_those(id, run, is_unsettled);
    }

    fn add_those(&mut self, id: RunId, run: &Run, counts: fn(&JobResult) -> bool) {
        let rate = |result: &JobResult| result.bytes_per_second;
        let operations = |result: &JobResult| result.iops;
        let found = |name: &str, of: fn(&JobResult) -> Estimate| {
            let result = run.job(name).filter(|result| counts(result))?;
            Some(of(result)).filter(|estimate| estimate.value > 0.0 && estimate.high.is_finite())
        };
        let pairs = [
            (&mut self.random_read, found(job_names::RANDOM_READ, operations)),
            (&mut self.random_read_deep, found(job_names::RANDOM_READ_DEEP, operations)),
            (&mut self.random_write, found(job_names::RANDOM_WRITE, operations)),
            (&mut self.random_write_deep, found(job_names::RANDOM_WRITE_DEEP, operations)),
            (&mut self.sequential_read, found(job_names::SEQUENTIAL_READ, rate)),
            (&mut self.sequential_write, found(job_names::SEQUENTIAL_WRITE, rate)),
            (&mut self.commits, found(job_names::COMMIT, operations)),
        ];
        let mut is_new = false;
        for (own, other) in pairs {
            is_new |= own.is_none() && other.is_some();
            *own = own.or(other);
        }
        if self.cpu_s.is_none() {
            self.cpu_s = cpu_per_operation(run);
        }
        if is_new {
            let when = when(id, run);
            if self.source.is_empty() {
                self.source = when
            } else {
                self.source = format!("{}; {when}", self.source)
            }
        }
    }

    /// When it was measured, in words, with what did not settle named so.
    pub fn when(&self) -> String {
        let mut words = self.source.clone();
        if let Some(unsettled) = &self.unsettled {
            let pairs = self.figures().into_iter().zip(unsettled.figures());
            let mut only = pairs.filter(|(own, other)| own.is_none() && other.is_some());
            if only.next().is_some() {
                if !words.is_empty() {
                    words.push_str("; ");
                }
                words += &format!("{}, not settled", unsettled.source);
            }
        }
        words
    }

    fn figures(&self) -> [Option<Estimate>; 7] {
        [
            self.random_read,
            self.random_read_deep,
            self.random_write,
            self.random_write_deep,
            self.sequential_read,
            self.sequential_write,
            self.commits,
        ]
    }

    /// Puts what was measured in the place of what is usual. Of what did not settle the range counts, if it has a lower end;
    /// else it only bounds from above.
    pub fn lay_over(&self, figures: &mut Figures, bases: &mut Bases) {
        if let Some(unsettled) = &self.unsettled {
            let mut own = Bases::all(Basis::Published);
            unsettled.lay_over(figures, &mut own);
            bases.unsettle(&own);
        }
        let all = [
            (self.random_read, &mut figures.random_read, &mut bases.random_read),
            (self.random_read_deep, &mut figures.random_read_deep, &mut bases.random_read_deep),
            (self.random_write, &mut figures.random_write, &mut bases.random_write),
            (self.random_write_deep, &mut figures.random_write_deep, &mut bases.random_write_deep),
            (self.sequential_read, &mut figures.sequential_read, &mut bases.sequential_read),
            (self.sequential_write, &mut figures.sequential_write, &mut bases.sequential_write),
            (self.commits, &mut figures.commits, &mut bases.commits),
        ];
        for (measured, figure, basis) in all {
            match measured {
                Some(measured) if measured.low > 0.0 => {
                    (*figure, *basis) = (measured, Basis::Measured);
                }
                Some(bound) => *figure = at_most(*figure, bound.high),
                None => {}
            }
        }
    }
}

/// What is usual, as far as it is possible.
fn at_most(usual: Estimate, most: f64) -> Estimate {
    Estimate::new(usual.value.min(most), usual.low.min(most), usual.high.min(most))
}

fn is_unsettled(result: &JobResult) -> bool {
    result.operations > 0 && result.outcome == Outcome::Inconclusive
}

fn is_sound(result: &JobResult) -> bool {
    result.operations > 0 && result.outcome != Outcome::Inconclusive
}

/// What a small operation costs all cores together, interrupts included.
fn cpu_per_operation(run: &Run) -> Option<f64> {
    let result = run.job(job_names::RANDOM_READ).filter(|result| is_sound(result))?;
    let busy: f64 = result.cpu.per_core_busy.iter().sum();
    (busy > 0.0 && result.iops.value > 0.0).then(|| busy / result.iops.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn a_run_on_the_card_is_what_is_known_of_the_card() {
        let run = fixture::slow_sd_card_run();
        let machine = run.machine.clone();
        let known = Known::of(&machine, &[(RunId(7), run.clone())]);
        let card = &known.disks["mmcblk0"];
        let writes = run.job(job_names::RANDOM_WRITE).map(|result| result.iops);
        assert_eq!(card.random_write, writes);
        assert!(card.source.ends_with("run 7"), "{}", card.source);
        assert_eq!(laid_over(card).commits, Basis::Measured);
        assert!(Known::of(&machine, &[]).disks.is_empty());
    }

    /// The advice must not say that a card may do 4000 writes per second after it has just done at most 300.
    #[test]
    fn what_did_not_settle_still_bounds_what_is_possible() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.outcome = Outcome::Inconclusive;
        }
        let machine = run.machine.clone();
        let known = Known::of(&machine, &[(RunId(7), run.clone())]);
        let card = &known.disks["mmcblk0"];
        assert_eq!(card.random_write, None);
        let seen = run.job(job_names::RANDOM_WRITE).map(|result| result.iops);
        let mut figures = usual();
        card.lay_over(&mut figures, &mut Bases::all(Basis::Assumed));
        assert_eq!(Some(figures.random_write), seen);
        assert!(card.when().ends_with("run 7, not settled"), "{}", card.when());
    }

    #[test]
    fn a_range_without_a_lower_end_bounds_from_above() {
        let bound = Estimate::new(50.0, 0.0, 120.0);
        let card = MeasuredDisk {
            unsettled: Some(Box::new(MeasuredDisk {
                random_write: Some(bound),
                ..MeasuredDisk::default()
            })),
            ..MeasuredDisk::default()
        };
        let (mut figures, mut bases) = (usual(), Bases::all(Basis::Assumed));
        assert!(figures.random_write.high > 120.0);
        card.lay_over(&mut figures, &mut bases);
        assert_eq!(figures.random_write.high, 120.0);
        assert_eq!(bases.random_write, Basis::Assumed);
    }

    #[test]
    fn a_settled_figure_counts_before_a_newer_one_that_is_not() {
        let settled = fixture::slow_sd_card_run();
        let mut newer = settled.clone();
        for result in &mut newer.results {
            result.outcome = Outcome::Inconclusive;
            result.iops = Estimate::new(1.0, 0.5, 2.0);
        }
        let machine = settled.machine.clone();
        let seen = settled.job(job_names::RANDOM_WRITE).map(|result| result.iops);
        let known = Known::of(&machine, &[(RunId(8), newer), (RunId(7), settled)]);
        let mut figures = usual();
        known.disks["mmcblk0"].lay_over(&mut figures, &mut Bases::all(Basis::Assumed));
        assert_eq!(Some(figures.random_write), seen);
    }

    fn usual() -> Figures {
        let card = crate::device_classes::DeviceClass::by_id("card").expect("a kind");
        Figures::of_class(card)
    }

    /// How figures are known of which none was, with what was measured over them.
    fn laid_over(measured: &MeasuredDisk) -> Bases {
        let card = crate::device_classes::DeviceClass::by_id("card").expect("a kind");
        let mut figures = Figures::of_class(card);
        let mut bases = Bases::all(Basis::Assumed);
        measured.lay_over(&mut figures, &mut bases);
        bases
    }
}
