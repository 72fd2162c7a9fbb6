//! What is compared: runs of ours, results of fio, published figures and bare machines, all in one
//! form.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::modes::{self, Modes};
use super::stages::{Start, stages};
use super::{facts, latency};
use rubus_fio::job_file::Asked;
use rubus_fio::job_file::stated::stated_here;
use rubus_verdict::pipes::Picture;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::figure::{Figure, Named, Unit};
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::paired::PairedJob;
use rubus_vocabulary::result::{Against, Figures, JobResult, Run};
use rubus_vocabulary::spec::Direction;
pub use rubus_vocabulary::subject_job::{Scope, SubjectDoubt, SubjectJob, WriteSync};
use rubus_vocabulary::title::job_title;
use rubus_vocabulary::units::{duration_ns, percent};

/// One thing that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// How it is called in tables: "run 12", "before.json".
    pub name: String,
    /// Where its figures come from.
    pub source: Source,
    /// When it was measured, RFC 3339 in UTC, where that is known.
    pub when: Option<String>,
    /// Board, device, settings and versions, by name, in the order in which they are shown.
    pub facts: Vec<Named>,
    /// What was measured.
    pub jobs: Vec<SubjectJob>,
    /// Doubts about the whole.
    pub doubts: Vec<SubjectDoubt>,
    /// What a reader must know about these figures, in words.
    pub note: Option<String>,
    /// The rounds in which it was measured in turns with another run.
    pub against: Option<Against>,
    /// The stages of its pipe.
    pub picture: Option<Picture>,
    /// True when it was measured in a virtual machine.
    pub is_of_guest: bool,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A run of this program.
    Run,
    /// fio's JSON.
    Fio,
    /// Printed in an article.
    Published,
    /// The facts of a machine, without any measurement.
    Machine,
}

impl Subject {
    /// A run of ours.
    pub fn of_run(name: &str, run: &Run) -> Self {
        Subject {
            name: name.into(),
            source: Source::Run,
            when: Some(run.started.clone()),
            facts: facts::of_run(run),
            jobs: match &run.figures {
                Figures::Memory(memory) => memory.jobs(),
                Figures::Processor(processor) => processor.jobs(),
                Figures::Disk => {
                    let beside = beside(run);
                    let jobs = run.results.iter().map(|result| SubjectJob {
                        beside: beside_of(run, result, &beside),
                        ..job(run, result)
                    });
                    distinct(jobs.collect())
                }
            },
            doubts: run.doubts.iter().map(SubjectDoubt::of).collect(),
            note: None,
            against: run.against.clone(),
            picture: Picture::of(run),
            is_of_guest: is_guest(&run.machine),
        }
    }

    /// A machine without any measurement.
    pub fn of_machine(name: &str, machine: &Machine) -> Self {
        Subject {
            name: name.into(),
            source: Source::Machine,
            when: Some(machine.read_at.clone()),
            facts: facts::of_machine(machine),
            jobs: Vec::new(),
            doubts: Vec::new(),
            note: None,
            against: None,
            picture: None,
            is_of_guest: is_guest(machine),
        }
    }

    /// The rounds in which this one and `baseline` were measured in turns, whichever of the two has
    /// them; empty if they were not.
    pub fn rounds_against(&self, baseline: &Subject) -> Vec<PairedJob> {
        let meant = |against: &Against, other: &Subject| {
            other.when.as_deref() == Some(against.started.as_str())
                && other.fact("target").is_none_or(|target| target == against.target)
        };
        if let Some(against) = self.against.as_ref().filter(|a| meant(a, baseline)) {
            return against.jobs.clone();
        }
        match baseline.against.as_ref().filter(|a| meant(a, self)) {
            Some(against) => against.jobs.iter().map(PairedJob::turned).collect(),
            None => Vec::new(),
        }
    }

    /// A fact by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.facts.iter().find(|fact| fact.name == name)?;
        found.value.as_deref()
    }
}

/// The jobs of a job file with titles that differ: those that do the same have their names behind,
/// and copies of one name their numbers.
pub(super) fn distinct(mut jobs: Vec<SubjectJob>) -> Vec<SubjectJob> {
    let keys: Vec<(String, String)> =
        jobs.iter().map(|job| (job.title.clone(), job.name.clone())).collect();
    for (index, job) in jobs.iter_mut().enumerate().filter(|(_, job)| job.section.is_some()) {
        let (title, name) = &keys[index];
        if keys.iter().filter(|(other, _)| other == title).count() == 1 {
            continue;
        }
        let is_like = |other: &&(String, String)| *other == &keys[index];
        let number = match keys.iter().filter(is_like).count() {
            1 => String::new(),
            _ => format!(" #{}", keys[..=index].iter().filter(is_like).count()),
        };
        job.title = format!("{title} ({name}{number})");
    }
    jobs
}

/// Whether a hypervisor or an emulator was seen.
fn is_guest(machine: &Machine) -> bool {
    let seen = machine.system.virtualization.value();
    seen.is_some_and(|seen| seen != "none")
}

/// Whether the job had the target to share: it is half of a mix, or ran beside another job.
fn is_shared(run: &Run, result: &JobResult) -> bool {
    let is_bystander =
        [job_names::BYSTANDER_READ, job_names::BYSTANDER_WRITE].contains(&result.job.as_str());
    let mut others = run.results.iter();
    let is_half = |other: &JobResult| {
        other.job == result.job && other.on == result.on && other.direction != result.direction
    };
    is_bystander || others.any(is_half)
}

/// Of each job of a job file, how many others that began with it have results: they ran at the same time.
fn beside(run: &Run) -> BTreeMap<&str, u32> {
    let jobs = || run.job_file.iter().flat_map(|file| &file.jobs);
    let global = run.job_file.iter().flat_map(|file| &file.global_options);
    let stages = stages(jobs().map(|job| {
        let all = global.clone().chain(&job.options);
        Start::of(job.group.into(), all.map(|(name, value)| (name.as_str(), value.as_str())))
    }));
    let stages: BTreeMap<&str, u64> =
        jobs().zip(stages).filter_map(|(job, stage)| Some((job.name.as_str(), stage?))).collect();
    let done: BTreeSet<&str> = run.results.iter().map(|result| result.job.as_str()).collect();
    let mut sizes: BTreeMap<u64, u32> = BTreeMap::new();
    for stage in done.iter().filter_map(|name| stages.get(name)) {
        *sizes.entry(*stage).or_default() += 1;
    }
    let others = |stage: &u64| sizes.get(stage)?.checked_sub(1);
    done.into_iter().filter_map(|name| Some((name, others(stages.get(name)?)?))).collect()
}

/// The jobs of a suite run one after the other, unless they are of several targets.
fn beside_of(run: &Run, result: &JobResult, beside: &BTreeMap<&str, u32>) -> Option<u32> {
    match run.job_file {
        Some(_) => beside.get(result.job.as_str()).copied(),
        None => result.on.is_none().then_some(0),
    }
}

/// The section of a job file that a result is of, and what it asked for.
struct OfJobFile {
    section: String,
    asked: Asked,
    stated: BTreeMap<String, String>,
}

impl OfJobFile {
    fn of(run: &Run, result: &JobResult) -> Option<OfJobFile> {
        let file = run.job_file.as_ref()?;
        let job = file.jobs.iter().find(|job| job.name == result.job)?;
        let options = || {
            let all = file.global_options.iter().chain(&job.options);
            all.map(|(name, value)| (name.as_str(), value.as_str()))
        };
        Some(OfJobFile {
            section: job.section.clone(),
            asked: Asked::of(options()),
            stated: stated_here(options()),
        })
    }
}

fn sync(result: &JobResult, asked: Option<&Asked>) -> Option<WriteSync> {
    match (result.direction, asked) {
        (Direction::Read, _) => None,
        (Direction::Write, Some(asked)) => Some(asked.sync),
        (Direction::Write, None) => Some(if result.commit {
            WriteSync::Flush { writes: 1, metadata_too: false }
        } else {
            WriteSync::Never
        }),
    }
}

fn job(run: &Run, result: &JobResult) -> SubjectJob {
    // How precise a figure is, its interval says.
    let disturbs = |doubt: &&Doubt| !matches!(doubt, Doubt::NotPrecise { .. });
    let doubts = result.doubts.iter().filter(disturbs).map(SubjectDoubt::of);
    let modes = result.latency_bins.as_ref().and_then(modes::of);
    let measured = result.operations > 0;
    let unit = if result.operation.is_of_file() {
        Unit::OperationsPerSecond
    } else {
        Unit::BytesPerSecond
    };
    let of_file = OfJobFile::of(run, result);
    let sync = sync(result, of_file.as_ref().map(|of_file| &of_file.asked));
    let (section, stated) = of_file.map(|of_file| (of_file.section, of_file.stated)).unzip();
    SubjectJob {
        name: result.job.clone(),
        section,
        title: job_title(result),
        direction: result.direction,
        pattern: result.pattern,
        block_bytes: Some(result.block_bytes),
        queue_depth: Some(result.queue_depth),
        copies: result.copies.unwrap_or(1).max(1),
        commit: result.commit || sync.is_some_and(WriteSync::is_each),
        sync,
        access: Some(run.access_of(result)),
        content: result.content.clone(),
        on: result.on.clone(),
        is_shared: is_shared(run, result),
        beside: None,
        operation: result.operation,
        scope: Scope::OneDirection,
        stated,
        throughput: match unit {
            Unit::BytesPerSecond => Figure::of(result.bytes_per_second),
            Unit::OperationsPerSecond | Unit::TimesMemory => Figure::of(result.iops),
        },
        unit,
        // A median that may be of either mode is no figure to compare.
        p50_ns: (measured && modes.is_none()).then(|| latency::p50(result)).flatten(),
        p99_ns: measured.then(|| latency::p99(result)).flatten(),
        doubts: doubts.chain(modes.map(of_modes)).collect(),
    }
}

fn of_modes(modes: Modes) -> SubjectDoubt {
    SubjectDoubt {
        kind: "two_latency_modes".into(),
        what: format!(
            "latencies have two modes, {} ({}) and {}; their median is not compared",
            duration_ns(modes.fast_ns),
            percent(modes.fast_share),
            duration_ns(modes.slow_ns)
        ),
    }
}
