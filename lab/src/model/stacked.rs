//! The emulated board on which the kernel stacks devices, and what each of them does there alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubus_advise::{Cost, Kind as Pipe, Resource, Stage, Step, Stripe};
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{by_size, less, longer, name, operation, pairs, size};
use super::rig::{Job, Measured, Rig, job, job_file, results_of};
use crate::board::Board;
use crate::cache::Cache;
use crate::session::{Options, Session};

const STACK: &str = "stack";
const STACK_TEXT: &str = include_str!("../../board/stack");
/// For what takes minutes.
pub(super) const LONG: Duration = Duration::from_secs(1200);
/// Of every operation, in bytes.
pub(super) const SIZES: [u64; 2] = [4 << 10, 64 << 10];
/// Operations in flight that are predicted.
pub(super) const DEPTHS: [u32; 3] = [1, 8, 64];
/// Where the ends of a device's curve are taken from.
pub(super) const ENDS: [u32; 2] = [1, 64];
/// The board has one.
pub(super) const PROCESSOR: &str = "processor";

/// How often everything of a target is measured until nothing stood still.
const TRIES: u32 = 3;
/// What md takes when it is told to.
const CHUNK: u32 = 64 << 10;

/// Something to measure: how it is made, and whether it is written.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Shell that leaves the node in `$stacked`.
    pub(super) make: &'static str,
    pub(super) writes: bool,
    /// How long each job takes, where it is longer than most.
    seconds: Option<u32>,
}

impl Target {
    /// What is read.
    pub(super) const fn read(make: &'static str) -> Target {
        Target { make, writes: false, seconds: None }
    }

    /// What is written.
    pub(super) const fn written(make: &'static str) -> Target {
        Target { writes: true, ..Target::read(make) }
    }

    /// The same target with jobs of `seconds` each.
    pub(super) const fn lasting(self, seconds: u32) -> Target {
        Target { seconds: Some(seconds), ..self }
    }
}

/// A set-up of which the model says what it gives, from what these stages did alone.
pub(super) struct SetUp<S> {
    pub(super) title: &'static str,
    pub(super) target: Target,
    pub(super) path: fn(&S) -> Vec<Step>,
    /// Which of its operations, by bytes and depth, something of the model was learnt from.
    pub(super) looked_at: fn(u64, u32) -> bool,
}

impl<S> SetUp<S> {
    /// One of which nothing was learnt.
    pub(super) const fn new(
        title: &'static str,
        target: Target,
        path: fn(&S) -> Vec<Step>,
    ) -> SetUp<S> {
        SetUp { title, target, path, looked_at: |_, _| false }
    }

    fn forecast(&self, subject: Subject, path: &[Step], (bytes, depth): (u64, u32)) -> Forecast {
        let verb = if self.target.writes { "writes" } else { "reads" };
        let forecast = Forecast::new(
            subject,
            Kind::Blind,
            format!("{}, {} {verb}, {depth} in flight", self.title, size(bytes)),
            format!("{} {verb}, {depth} in flight", size(bytes)),
            Unit::Iops,
            (path, operation(bytes, depth)),
        );
        if (self.looked_at)(bytes, depth) { forecast.chosen() } else { forecast }
    }
}

/// What something does alone, by size.
pub(super) struct Alone {
    /// One at a time.
    pub(super) lone: Vec<Measured>,
    /// As many as there may be in flight.
    pub(super) many: Vec<Measured>,
}

impl Alone {
    /// A device that takes its time, and of the processor what an instant one takes of it; or what was counted, where that is more
    /// because the processor moves the bytes.
    pub(super) fn device(&self, name: &str, instant: &Alone) -> Vec<Step> {
        let instant = Cost::measured(&by_size(&instant.many));
        let own = |one: &Measured| {
            let least = instant.at(one.block_bytes as f64);
            let counted = Estimate::exact(one.processors_s);
            let is_more = counted.value > least.value;
            (one.block_bytes, if is_more { counted } else { least })
        };
        let own = Stage {
            kind: Pipe::Processor,
            resource: Some(Resource::one(PROCESSOR)),
            cost: Cost::seconds(self.many.iter().map(own)),
        };
        let mut path = Stage::of_pair(
            Pipe::Device,
            Resource::one(name),
            &by_size(&self.lone),
            &by_size(&self.many),
        );
        path.push(Step::Beside(own));
        path
    }

    /// Something that nothing but the processor does.
    pub(super) fn of_the_processor(&self, kind: Pipe) -> Vec<Step> {
        let (lone, many) = (by_size(&self.lone), by_size(&self.many));
        Stage::of_pair(kind, Resource::one(PROCESSOR), &lone, &many)
    }

    /// A layer that spends the processor: what it takes longer than what it lies on.
    pub(super) fn beyond(&self, below: &Alone, kind: Pipe) -> Vec<Step> {
        let busy = longer(&self.many, &below.many);
        let lone = longer(&self.lone, &below.lone);
        let rest = SIZES.map(|bytes| {
            let (lone, busy) = (lone.at(bytes as f64), busy.at(bytes as f64));
            (bytes, less(lone, busy))
        });
        vec![
            Step::Stage(Stage { kind, resource: Some(Resource::one(PROCESSOR)), cost: busy }),
            Step::Stage(Stage { kind, resource: None, cost: Cost::seconds(rest) }),
        ]
    }
}

/// Each operation is cut over two.
pub(super) fn stripe(members: [Vec<Step>; 2]) -> Vec<Step> {
    vec![Step::Stripe(Stripe { chunk_bytes: CHUNK, members: members.into() })]
}

/// The board with its devices. Dropping it cuts its power.
pub(super) struct StackBoard {
    pub(super) session: Session,
    /// Its clock counts instructions, so that this machine's load changes nothing.
    counts_instructions: bool,
}

impl StackBoard {
    /// Starts a board that also has what `options` say, and prepares its devices.
    pub(super) fn boot(rig: &Rig, options: Options) -> Result<StackBoard> {
        let stack = rig.directory().join(STACK);
        std::fs::write(&stack, STACK_TEXT).context("could not write the board's script")?;
        let counts_instructions = options.counts_instructions;
        // For timers of less than a tick. In real time a board with them now and then stood still.
        let kernel_words =
            if counts_instructions { "highres=on nohz=on".into() } else { String::new() };
        let options =
            Options { push: vec![stack, rig.program_for_a_board()?], kernel_words, ..options };
        let mut session = Session::boot(&Cache::of_this_machine(), Board::Pc, &options)?;
        session.must(&script("prepare_disks"), "root", LONG)?;
        Ok(StackBoard { session, counts_instructions })
    }

    /// Says of each set-up what it gives, and then measures it.
    pub(super) fn wholes<S>(
        &mut self,
        rig: &Rig,
        ledger: &Ledger,
        subject: Subject,
        set_ups: &[SetUp<S>],
        stages: &S,
    ) -> Result<Vec<Whole>> {
        let mut wholes = Vec::new();
        for set_up in set_ups {
            let path = (set_up.path)(stages);
            let forecasts: Vec<Forecast> =
                pairs(&SIZES, &DEPTHS).map(|pair| set_up.forecast(subject, &path, pair)).collect();
            ledger.write(&forecasts)?;
            let found = self.measure(rig, set_up.target, &DEPTHS)?;
            for (forecast, (bytes, depth)) in forecasts.iter().zip(pairs(&SIZES, &DEPTHS)) {
                wholes.push(forecast.whole(job(&found, &name(bytes, depth))?));
            }
        }
        Ok(wholes)
    }

    /// What a target does one at a time and with many in flight.
    pub(super) fn alone(&mut self, rig: &Rig, target: Target) -> Result<Alone> {
        let found = self.measure(rig, target, &ENDS)?;
        ensure!(
            found.iter().all(|one| one.iops.value > 0.0),
            "{:?} stood still each time",
            target.make
        );
        let at = |depth: u32| found.iter().filter(move |one| one.depth == depth).cloned();
        Ok(Alone { lone: at(ENDS[0]).collect(), many: at(ENDS[1]).collect() })
    }

    /// Makes the target, measures it at every size and these depths, and takes it apart.
    pub(super) fn measure(
        &mut self,
        rig: &Rig,
        target: Target,
        depths: &[u32],
    ) -> Result<Vec<Measured>> {
        let rw = if target.writes { "randwrite" } else { "randread" };
        let jobs: Vec<Job> = pairs(&SIZES, depths)
            .map(|(bytes, depth)| {
                let job = Job::timed(name(bytes, depth), rw, bytes, depth);
                match target.seconds {
                    Some(seconds) => job.with("runtime", seconds),
                    None => job,
                }
            })
            .collect();
        let text = job_file(&jobs);
        let lose = if target.writes { "--i-will-lose-everything-on=$stacked" } else { "" };
        let script = script(&format!(
            "set -e\n{}\ncat >/run/jobs.fio <<'END'\n{text}\nEND\nsync\n\
             rubus bench $stacked --fio-job /run/jobs.fio {lose} --quiet --no-history --no-html --json -\ntake_apart >&2",
            target.make
        ));
        let mut found = Vec::new();
        for again in 0..TRIES {
            let once = || {
                let text = self.session.must(&script, "root", LONG)?;
                let run = serde_json::from_str(&text)
                    .with_context(|| format!("{:?} gave no JSON: {text}", target.make))?;
                results_of(&run, &jobs)
            };
            found = if self.counts_instructions {
                rig.fastest(1, once)?
            } else {
                rig.undisturbed(once)?
            };
            for one in &mut found {
                one.again += again;
            }
            // The emulator now and then loses a timer's interrupt, and nothing goes on until something else happens.
            if !found.iter().any(stood_still) {
                break;
            }
        }
        Ok(found)
    }
}

/// Whether the device stalled for long enough that its rate may as well be zero.
fn stood_still(found: &Measured) -> bool {
    found.iops.low <= 0.0
}

/// A script for the board that can make and take apart what is stacked.
pub(super) fn script(what: &str) -> String {
    format!(". /run/lab/push/{STACK}\n{what}")
}

/// A device with these rates in operations per second at each block size, at the least and the greatest depth.
#[cfg(test)]
pub(super) fn of_rates(lone: f64, many: f64) -> Alone {
    let of = |iops: f64, depth: u32| {
        let one = |block_bytes| Measured {
            block_bytes,
            depth,
            ..Measured::of_rate("", Estimate::exact(iops))
        };
        SIZES.map(one).into()
    };
    Alone { lone: of(lone, ENDS[0]), many: of(many, ENDS[1]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_advise::predict;

    #[test]
    fn a_device_that_keeps_the_processor_busy_is_no_faster_than_that() {
        let instant = of_rates(50_000.0, 100_000.0);
        let deep = |processors_s: f64| {
            let mut device = of_rates(1000.0, 4000.0);
            for one in &mut device.many {
                one.processors_s = processors_s;
            }
            let two = stripe(["a", "b"].map(|name| device.device(name, &instant)));
            predict(&two, &operation(SIZES[0], 4096)).iops.value
        };
        // Two devices of 4000, and a processor that spends this much time on each operation.
        assert!((deep(0.0) / 8000.0 - 1.0).abs() < 0.02, "{}", deep(0.0));
        assert!((deep(2e-4) / 5000.0 - 1.0).abs() < 0.02, "{}", deep(2e-4));
    }
}
