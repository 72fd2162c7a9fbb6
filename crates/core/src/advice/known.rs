//! What was measured before and is worth more than any table.

use std::collections::BTreeMap;

use crate::estimate::Estimate;
use crate::history::RunId;
use crate::machine::Machine;
use crate::memory;
use crate::recipe::{CompressionSpeed, TogetherSpeed, measured_together, runs_of_disks};
use crate::result::{JobResult, Outcome, Run};
use crate::verdict::job;

/// Everything that was measured on a machine and that advice can use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Disks by the kernel's names of now.
    pub disks: BTreeMap<String, MeasuredDisk>,
    /// Network disks by their address.
    pub exports: BTreeMap<String, MeasuredDisk>,
    /// Several disks at once.
    pub together: Vec<TogetherSpeed>,
    /// How this processor compresses the data that is here.
    pub compression: Vec<CompressionSpeed>,
    /// Pages under memory pressure by page compressed, where `rubus bench memory` saw it.
    pub page_ratio: Option<f64>,
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
}

impl Known {
    /// What runs say of a machine's disks; of several the first one given counts, so give the newest first.
    pub fn of(machine: &Machine, runs: &[(RunId, Run)]) -> Known {
        let mut known = Known {
            together: measured_together(machine, runs),
            ..Known::default()
        };
        for (disk, id, run) in runs_of_disks(machine, runs) {
            known.disks.entry(disk).or_default().add(id, run);
        }
        for (id, run) in runs.iter().filter(|(_, run)| run.on.is_none()) {
            if run.target.network.is_some() {
                let export = known.exports.entry(run.target.named.clone());
                export.or_default().add(*id, run);
            }
            let pressures = run.memory.iter().flat_map(|memory| &memory.pressure);
            let ratio = |pressure: &memory::Pressure| pressure.measured_ratio;
            known.page_ratio = known.page_ratio.or(pressures.filter_map(ratio).next());
        }
        known
    }
}

impl MeasuredDisk {
    /// Adds what a run knows and a newer one did not.
    fn add(&mut self, id: RunId, run: &Run) {
        let rate = |result: &JobResult| result.bytes_per_second;
        let operations = |result: &JobResult| result.iops;
        let found = |name: &str, of: fn(&JobResult) -> Estimate| {
            let result = run.job(name).filter(|result| is_sound(result))?;
            Some(of(result)).filter(|estimate| estimate.low > 0.0)
        };
        let pairs = [
            (&mut self.random_read, found(job::RANDOM_READ, operations)),
            (
                &mut self.random_read_deep,
                found(job::RANDOM_READ_DEEP, operations),
            ),
            (&mut self.random_write, found(job::RANDOM_WRITE, operations)),
            (
                &mut self.random_write_deep,
                found(job::RANDOM_WRITE_DEEP, operations),
            ),
            (&mut self.sequential_read, found(job::SEQUENTIAL_READ, rate)),
            (
                &mut self.sequential_write,
                found(job::SEQUENTIAL_WRITE, rate),
            ),
            (&mut self.commits, found(job::COMMIT, operations)),
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
            let day = run.started.get(..10).unwrap_or(&run.started);
            let when = match id.0 {
                0 => format!("measured on {day}"),
                _ => format!("measured on {day}, run {id}"),
            };
            match self.source.is_empty() {
                true => self.source = when,
                false => self.source = format!("{}; {when}", self.source),
            }
        }
    }

    /// Whether all that ranks was measured.
    pub fn is_whole(&self) -> bool {
        let needed = [
            self.random_read,
            self.random_write,
            self.sequential_read,
            self.sequential_write,
            self.commits,
        ];
        needed.iter().all(Option::is_some)
    }
}

fn is_sound(result: &JobResult) -> bool {
    result.operations > 0 && result.outcome != Outcome::Inconclusive
}

/// What a small operation costs all cores together, interrupts included.
fn cpu_per_operation(run: &Run) -> Option<f64> {
    let result = run
        .job(job::RANDOM_READ)
        .filter(|result| is_sound(result))?;
    let busy: f64 = result.cpu.per_core_busy.iter().sum();
    (busy > 0.0 && result.iops.value > 0.0).then(|| busy / result.iops.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_run_on_the_card_is_what_is_known_of_the_card() {
        let run = fixture::slow_sd_card_run();
        let machine = run.machine.clone();
        let known = Known::of(&machine, &[(RunId(7), run.clone())]);
        let card = &known.disks["mmcblk0"];
        let writes = run.job(job::RANDOM_WRITE).map(|result| result.iops);
        assert_eq!(card.random_write, writes);
        assert!(card.source.ends_with("run 7"), "{}", card.source);
        assert!(card.is_whole());
        assert!(Known::of(&machine, &[]).disks.is_empty());
    }

    #[test]
    fn what_did_not_settle_is_not_known() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.outcome = Outcome::Inconclusive;
        }
        let machine = run.machine.clone();
        let known = Known::of(&machine, &[(RunId(7), run)]);
        assert_eq!(known.disks["mmcblk0"].random_write, None);
        assert!(!known.disks["mmcblk0"].is_whole());
    }
}
