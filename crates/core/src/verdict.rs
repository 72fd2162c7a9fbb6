//! From a run to a verdict in sentences: which pipe is the narrowest, why, and what follows.
//!
//! The yardstick is *one second of application work*: what the SD Association's class A1 says an
//! application host needs per second (1500 random reads, 500 random writes, 10 MB written in
//! order), with the same 10 MB read and [`COMMITS_PER_SECOND`] commits, since neither is in A1 and
//! every desktop and logger does both. The time that each kind of operation takes for its share of that work is its
//! *demand* D_i = V_i · S_i (visits times service time at queue depth 1; Denning & Buzen, "The
//! Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3), 1978). The narrowest
//! pipe is the one with the largest demand. Demands are seconds: they add up and can be checked by
//! hand.

use serde::{Deserialize, Serialize};

use crate::application_class::{A1, A2, ApplicationClass, Met, met};
use crate::doubt::Doubt;
use crate::estimate::Estimate;
use crate::machine::{BlockDevice, BlockKind, Hop, HopKind};
use crate::result::{Access, JobResult, Outcome, Run, StallCause};
use crate::units::{bytes_iec, duration_ns, iops, percent, rate_si};

/// Commits in one second of application work. The rate of a busy desktop session or a package
/// installation on one core, not of a database.
pub const COMMITS_PER_SECOND: f64 = 20.0;

/// A measured rate at or above this share of a hop's usable rate means that the hop is the limit.
const BUS_IS_THE_LIMIT: f64 = 0.80;

/// A measured rate above this multiple of what a hop can carry cannot have come through it.
const IMPOSSIBLE: f64 = 1.25;

/// A core this busy with the test is the limit.
const CPU_IS_THE_LIMIT: f64 = 0.90;

/// Names of the quick suite's jobs, by which the verdict finds its figures.
pub mod job {
    /// Sequential write, 1 MiB.
    pub const SEQUENTIAL_WRITE: &str = "sequential-write";
    /// Sequential read, 1 MiB.
    pub const SEQUENTIAL_READ: &str = "sequential-read";
    /// Random read, 4 KiB, queue depth 1.
    pub const RANDOM_READ: &str = "random-read";
    /// Random read, 4 KiB, queue depth 32.
    pub const RANDOM_READ_DEEP: &str = "random-read-deep";
    /// Random write, 4 KiB, queue depth 1.
    pub const RANDOM_WRITE: &str = "random-write";
    /// Random write, 4 KiB, queue depth 32.
    pub const RANDOM_WRITE_DEEP: &str = "random-write-deep";
    /// Random write, 16 KiB, queue depth 1.
    pub const RANDOM_WRITE_16K: &str = "random-write-16k";
    /// Commits: 4 KiB appended and made durable.
    pub const COMMIT: &str = "commit";
    /// The small reader beside a sequential writer.
    pub const BYSTANDER_READ: &str = "bystander-read";
    /// That writer.
    pub const BYSTANDER_WRITE: &str = "bystander-write";
}

/// What a run means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The narrowest pipe and why, in one or two sentences.
    pub headline: String,
    /// Every stage with its capacity: first the path of buses, then the kinds of operation.
    pub pipes: Vec<Pipe>,
    /// What else there is to say, the most important first.
    pub sentences: Vec<String>,
    /// What the device is good for.
    pub good_for: Vec<Suitability>,
    /// What disturbed the run or limits what it says, with the remedy.
    pub disturbances: Vec<Disturbance>,
    /// How sure all this is, in one sentence.
    pub certainty: String,
}

/// One stage of the storage path, with its capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipe {
    /// For people: "USB 2 bus", "4 KiB random writes".
    pub name: String,
    /// Bus or operation.
    pub kind: PipeKind,
    /// Capacity in bytes per second, where that is its measure.
    pub bytes_per_second: Option<Estimate>,
    /// Capacity in operations per second, where that is its measure.
    pub operations_per_second: Option<Estimate>,
    /// Seconds that it needs for its part of one second of application work.
    pub demand_s: Option<f64>,
    /// True if the capacity was measured here, false if it is what such a bus usually carries.
    pub measured: bool,
    /// True for exactly one pipe of a verdict, or for none if nothing was measured.
    pub narrowest: bool,
    /// Where the capacity comes from or what limits it.
    pub note: String,
}

/// What kind of pipe it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PipeKind {
    /// A hop on the path of buses.
    Bus,
    /// A kind of operation on the device.
    Operation,
}

/// Whether the device suits a purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suitability {
    /// "logging", "desktop", "swap", "storage node".
    pub purpose: String,
    /// The answer.
    pub grade: Grade,
    /// The numbers behind it.
    pub reason: String,
}

/// An answer about a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// It suits.
    Good,
    /// It works, with the limits in the reason.
    Limited,
    /// It does not suit.
    Poor,
    /// Not measured, or too uncertain to say.
    Unknown,
}

/// One doubt with the jobs that it concerns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// What happened.
    pub what: String,
    /// Which jobs; empty for the whole run.
    pub jobs: Vec<String>,
    /// What to do.
    pub remedy: String,
}

/// Adds the doubts that only the machine's facts can raise: results above what the path can carry.
/// Called once, before the run is stored.
pub fn doubt_the_impossible(run: &mut Run) {
    let Some((ceiling, what)) = lowest_ceiling(run).map(|(hop, rate)| (rate, hop.link.clone()))
    else {
        return;
    };
    for result in &mut run.results {
        let rate = result.bytes_per_second.low;
        if rate > ceiling * IMPOSSIBLE {
            let what = what.clone();
            result.doubts.push(Doubt::AboveCeiling {
                bytes_per_second: rate,
                ceiling,
                what,
            });
        }
    }
}

/// What a run means.
pub fn verdict(run: &Run) -> Verdict {
    let mut pipes = bus_pipes(run);
    pipes.extend(operation_pipes(run));
    mark_narrowest(&mut pipes);
    let sentences = [
        class_sentences(run),
        queueing_sentence(run),
        block_size_sentence(run),
        bystander_sentence(run),
        stall_sentence(run),
        power_sentences(run),
        read_only_sentence(run),
    ]
    .concat();
    Verdict {
        headline: headline(run, &pipes),
        good_for: suitability(run),
        disturbances: disturbances(run),
        certainty: certainty(run),
        sentences,
        pipes,
    }
}

// ---------------------------------------------------------------------------------------------
// Pipes

fn bus_pipes(run: &Run) -> Vec<Pipe> {
    path(run)
        .iter()
        .filter_map(|hop| {
            let usable = hop.usable_bytes_per_second.get()?;
            Some(Pipe {
                name: format!("{}: {}", kind_of_bus(hop.kind), hop.link),
                kind: PipeKind::Bus,
                bytes_per_second: Some(Estimate::exact(usable)),
                operations_per_second: None,
                demand_s: None,
                measured: false,
                narrowest: false,
                note: hop.usable_bytes_per_second.source().to_string(),
            })
        })
        .collect()
}

fn kind_of_bus(kind: HopKind) -> &'static str {
    match kind {
        HopKind::Soc => "chip",
        HopKind::Pcie => "PCIe",
        HopKind::UsbController | HopKind::UsbHub | HopKind::UsbDevice => "USB",
        HopKind::MmcHost => "card slot",
        HopKind::Scsi => "SATA/SCSI",
        HopKind::Nvme => "NVMe",
        HopKind::Virtio => "virtual",
        HopKind::Network => "network",
    }
}

/// The kinds of operation in one second of application work: job, name, visits.
const APPLICATION_SECOND: [(&str, &str, f64); 5] = [
    (job::SEQUENTIAL_READ, "sequential reads", 10e6),
    (job::SEQUENTIAL_WRITE, "sequential writes", 10e6),
    (job::RANDOM_READ, "4 KiB random reads", A1.read_iops),
    (job::RANDOM_WRITE, "4 KiB random writes", A1.write_iops),
    (job::COMMIT, "commits", COMMITS_PER_SECOND),
];

fn operation_pipes(run: &Run) -> Vec<Pipe> {
    let mut pipes = Vec::new();
    for (name, title, visits) in APPLICATION_SECOND {
        let Some(result) = run.job(name).filter(|result| result.operations > 0) else {
            continue;
        };
        let in_bytes = name == job::SEQUENTIAL_READ || name == job::SEQUENTIAL_WRITE;
        let capacity = if in_bytes {
            result.bytes_per_second
        } else {
            result.iops
        };
        if capacity.value <= 0.0 {
            continue;
        }
        pipes.push(Pipe {
            name: title.to_string(),
            kind: PipeKind::Operation,
            bytes_per_second: in_bytes.then_some(capacity),
            operations_per_second: (!in_bytes).then_some(capacity),
            demand_s: Some(visits / capacity.value),
            measured: true,
            narrowest: false,
            note: limit(run, result).words(),
        });
    }
    pipes
}

fn mark_narrowest(pipes: &mut [Pipe]) {
    let demand = |pipe: &Pipe| pipe.demand_s.unwrap_or(f64::NEG_INFINITY);
    let widest_demand = pipes.iter().map(demand).fold(f64::NEG_INFINITY, f64::max);
    if let Some(pipe) = pipes.iter_mut().find(|p| p.demand_s == Some(widest_demand)) {
        pipe.narrowest = true;
    }
}

/// What holds a job's rate down.
enum Limit {
    /// A hop of the path is full.
    Bus { link: String, share: f64 },
    /// The processor is busy with it.
    Processor,
    /// Each operation waits for the one before, and the device takes its time.
    ServiceTime { each_ns: u64 },
    /// The device's own rate.
    Device,
}

impl Limit {
    fn words(&self) -> String {
        match self {
            Limit::Bus { link, share } => {
                format!(
                    "the bus is the limit: {} of what {link} carries",
                    percent(*share)
                )
            }
            Limit::Processor => "the processor is the limit".into(),
            Limit::ServiceTime { each_ns } => format!("each takes {}", duration_ns(*each_ns)),
            Limit::Device => "the device itself is the limit".into(),
        }
    }
}

fn limit(run: &Run, result: &JobResult) -> Limit {
    if let Some((hop, ceiling)) = lowest_ceiling(run) {
        let share = result.bytes_per_second.value / ceiling;
        if share >= BUS_IS_THE_LIMIT {
            return Limit::Bus {
                link: hop.link.clone(),
                share,
            };
        }
    }
    let cpu_bound =
        |doubt: &Doubt| matches!(doubt, Doubt::CpuBound { share } if *share >= CPU_IS_THE_LIMIT);
    if result.doubts.iter().any(cpu_bound) {
        return Limit::Processor;
    }
    match (
        result.queue_depth,
        result.block_bytes < 1 << 20,
        result.iops.value > 0.0,
    ) {
        (1, true, true) => Limit::ServiceTime {
            each_ns: (1e9 / result.iops.value) as u64,
        },
        _ => Limit::Device,
    }
}

/// The hops between the processor and the (single) disk under the target.
fn path(run: &Run) -> &[Hop] {
    disk(run).map(|disk| disk.path.as_slice()).unwrap_or(&[])
}

/// The physical disk under the target, where there is exactly one.
fn disk(run: &Run) -> Option<&BlockDevice> {
    let disks = run.machine.disks_below(run.target.device.as_deref()?);
    match disks[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn lowest_ceiling(run: &Run) -> Option<(&Hop, f64)> {
    path(run)
        .iter()
        .filter_map(|hop| Some((hop, hop.usable_bytes_per_second.get()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

// ---------------------------------------------------------------------------------------------
// Sentences

fn headline(run: &Run, pipes: &[Pipe]) -> String {
    let device = device_in_words(run);
    let Some(pipe) = pipes.iter().find(|pipe| pipe.narrowest) else {
        return format!("Nothing could be measured on {device}.");
    };
    let demand = pipe.demand_s.unwrap_or(0.0);
    let rate = match (&pipe.bytes_per_second, &pipe.operations_per_second) {
        (Some(bytes), _) => rate_si(bytes.value),
        (_, Some(operations)) => format!("{} per second", iops(operations.value)),
        _ => String::new(),
    };
    let total: f64 = pipes.iter().filter_map(|pipe| pipe.demand_s).sum();
    if total <= 1.0 {
        return format!(
            "No pipe is narrow on {device}: it needs {} for what applications want in one second. \
             The tightest is {}: {rate}, {}.",
            seconds(total),
            pipe.name,
            pipe.note
        );
    }
    format!(
        "The narrowest pipe is {} on {device}: {rate}, {}. It needs {} for what applications want \
         in one second; {} of that go there.",
        pipe.name,
        pipe.note,
        seconds(total),
        seconds(demand)
    )
}

fn seconds(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0} s")
    } else {
        format!("{value:.1} s")
    }
}

/// "the SD card mmcblk0", "the USB disk sda (Intel SSD 730)", "memory (tmpfs)".
fn device_in_words(run: &Run) -> String {
    let Some(device) = run.target.device.as_deref() else {
        return match run.target.filesystem.as_deref() {
            Some("tmpfs" | "ramfs") => "memory (tmpfs), which is not a disk".into(),
            Some(filesystem) => format!("this {filesystem} filesystem"),
            None => run.target.named.clone(),
        };
    };
    let Some(disk) = disk(run) else {
        return device.to_string();
    };
    let kind = match disk.kind {
        BlockKind::Disk => match disk.path.last().map(|hop| hop.kind) {
            _ if disk.mmc.as_ref().and_then(|mmc| mmc.kind.text()) == Some("SD") => "the SD card",
            _ if disk.mmc.is_some() => "the eMMC",
            Some(HopKind::UsbDevice | HopKind::UsbHub | HopKind::UsbController) => "the USB disk",
            Some(HopKind::Nvme) => "the NVMe disk",
            Some(HopKind::Virtio) => "the virtual disk",
            _ => "the disk",
        },
        BlockKind::Loop => "the loop device",
        BlockKind::Nbd => "the network disk",
        BlockKind::Zram => "compressed memory",
        _ => "the device",
    };
    match disk
        .model
        .text()
        .map(str::trim)
        .filter(|model| !model.is_empty())
    {
        Some(model) => format!("{kind} {} ({model})", disk.name),
        None => format!("{kind} {}", disk.name),
    }
}

fn class_sentences(run: &Run) -> Vec<String> {
    let Some(sequential) = run.job(job::SEQUENTIAL_WRITE).map(|r| r.bytes_per_second) else {
        return Vec::new();
    };
    let depths = [
        (32, job::RANDOM_READ_DEEP, job::RANDOM_WRITE_DEEP),
        (1, job::RANDOM_READ, job::RANDOM_WRITE),
    ];
    let mut parts = Vec::new();
    for (depth, read, write) in depths {
        let (Some(read), Some(write)) = (run.job(read), run.job(write)) else {
            continue;
        };
        let words = class_in_words(&read.iops, &write.iops, &sequential);
        parts.push(format!(
            "{words} at depth {depth} ({} reads/s, {} writes/s)",
            iops(read.iops.value),
            iops(write.iops.value)
        ));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    let mut sentence = format!("Here it behaves {}.", parts.join(", "));
    if let Some(promise) = promised_class(run) {
        sentence.push_str(&format!(" The card itself promises A{promise}."));
    }
    vec![sentence]
}

fn class_in_words(reads: &Estimate, writes: &Estimate, sequential: &Estimate) -> &'static str {
    let judge = |class: &ApplicationClass| class.judge(reads, writes, sequential);
    match (judge(&A2), judge(&A1)) {
        (Met::Yes, _) => "like A2 or better",
        (Met::Inconclusive, Met::Yes) => "like A1, perhaps A2,",
        (_, Met::Yes) => "like A1",
        (_, Met::Inconclusive) => "perhaps like A1",
        (_, Met::No) => "below A1",
    }
}

fn promised_class(run: &Run) -> Option<u8> {
    let promises = disk(run)?.mmc.as_ref()?.promises.get()?;
    (promises.application_class > 0).then_some(promises.application_class)
}

/// Whether more requests in flight help, which tells a device that works on one command at a time.
fn queueing_sentence(run: &Run) -> Vec<String> {
    let (Some(one), Some(many)) = (run.job(job::RANDOM_READ), run.job(job::RANDOM_READ_DEEP))
    else {
        return Vec::new();
    };
    if one.iops.value <= 0.0 {
        return Vec::new();
    }
    let gain = many.iops.value / one.iops.value;
    if many.iops.low > one.iops.high * 1.5 {
        return vec![format!(
            "It works on several requests at once: 32 in flight give {gain:.1} times the random reads of one."
        )];
    }
    if many.iops.high < one.iops.low * 1.3 {
        return vec![format!(
            "It takes one request at a time: 32 in flight give {gain:.2} times the random reads of one, \
             and each then waits {} instead of {}.",
            latency(many.latency_ns.p50),
            latency(one.latency_ns.p50)
        )];
    }
    Vec::new()
}

/// Some cards collapse at 16 KiB although 4 KiB looks fine.
fn block_size_sentence(run: &Run) -> Vec<String> {
    let (Some(small), Some(large)) = (run.job(job::RANDOM_WRITE), run.job(job::RANDOM_WRITE_16K))
    else {
        return Vec::new();
    };
    if large.bytes_per_second.high < small.bytes_per_second.low {
        return vec![format!(
            "Random writes of 16 KiB are slower than of 4 KiB ({} against {}): the card's mapping \
             cannot keep up, and 4 KiB figures alone would flatter it.",
            rate_si(large.bytes_per_second.value),
            rate_si(small.bytes_per_second.value)
        )];
    }
    Vec::new()
}

fn bystander_sentence(run: &Run) -> Vec<String> {
    let (Some(alone), Some(beside)) = (run.job(job::RANDOM_READ), run.job(job::BYSTANDER_READ))
    else {
        return Vec::new();
    };
    let (Some(quiet), Some(busy)) = (alone.latency_ns.p50, beside.latency_ns.p50) else {
        return Vec::new();
    };
    let worst = beside.latency_ns.max.unwrap_or(busy);
    vec![format!(
        "While something writes, a small read waits {} (at worst {}) instead of {}{}.",
        duration_ns(busy),
        duration_ns(worst),
        duration_ns(quiet),
        if busy > 50_000_000 || worst > 500_000_000 {
            ": this is what a frozen desktop feels like"
        } else {
            ""
        }
    )]
}

fn stall_sentence(run: &Run) -> Vec<String> {
    let measured_s: f64 = run.results.iter().map(|result| result.elapsed_s).sum();
    let stalls = run.results.iter().flat_map(|result| &result.stalls);
    let device: Vec<f64> = stalls
        .clone()
        .filter(|s| s.cause == StallCause::Device)
        .map(|s| s.length_ms)
        .collect();
    let others = stalls.filter(|s| s.cause != StallCause::Device).count();
    let mut sentence = match device.iter().copied().reduce(f64::max) {
        None if measured_s > 0.0 => format!(
            "It did not stall in {measured_s:.0} s of measuring (so it stalls less than once in {:.0} s, at 95 %)",
            measured_s / 3.0
        ),
        None => return Vec::new(),
        Some(longest) => format!(
            "It stalled {} in {measured_s:.0} s, at worst for {}",
            times(device.len()),
            duration_ns((longest * 1e6) as u64)
        ),
    };
    if others > 0 {
        sentence.push_str(&format!(
            "; {} more had causes outside the device",
            times(others)
        ));
    }
    sentence.push('.');
    vec![sentence]
}

fn times(count: usize) -> String {
    if count == 1 {
        "once".into()
    } else {
        format!("{count} times")
    }
}

fn power_sentences(run: &Run) -> Vec<String> {
    let power = &run.machine.power;
    let mut sentences = Vec::new();
    if let Some(throttling) = power.throttling.get() {
        if throttling.undervoltage_now || throttling.undervoltage_seen {
            let when = if throttling.undervoltage_now {
                "is"
            } else {
                "was, at some time since boot,"
            };
            sentences.push(format!(
                "The supply voltage {when} too low: use a stronger supply or a shorter, thicker cable."
            ));
        }
        if throttling.throttled_seen || throttling.soft_limit_seen {
            sentences.push(
                "The clock has been held down by heat since boot: a heat sink or a fan helps."
                    .into(),
            );
        }
    } else if power.undervoltage_alarm.get() == Some(true) {
        sentences.push(
            "The kernel reports that the supply voltage was too low since boot: use a stronger supply."
                .into(),
        );
    }
    sentences
}

fn read_only_sentence(run: &Run) -> Vec<String> {
    let wrote = run
        .results
        .iter()
        .any(|r| r.direction == crate::spec::Direction::Write);
    if wrote || run.results.is_empty() {
        return Vec::new();
    }
    vec!["Only reads were measured: nothing is said about writing.".into()]
}

fn latency(nanoseconds: Option<u64>) -> String {
    nanoseconds
        .map(duration_ns)
        .unwrap_or_else(|| "an unknown time".into())
}

// ---------------------------------------------------------------------------------------------
// Good for

fn suitability(run: &Run) -> Vec<Suitability> {
    vec![logging(run), desktop(run), swap(run), storage_node(run)]
}

/// A figure that a purpose needs, with its threshold and how to say it.
struct Need<'a> {
    estimate: Option<&'a Estimate>,
    good: f64,
    limited: f64,
    words: String,
}

/// The worst need decides; its words are the reason.
fn grade(purpose: &str, needs: Vec<Need>) -> Suitability {
    let mut worst = (Grade::Good, String::new());
    for need in needs {
        let grade = match need.estimate {
            None => Grade::Unknown,
            Some(e) if met(e, need.good) == Met::Yes => Grade::Good,
            Some(e) if e.value >= need.limited => Grade::Limited,
            Some(_) => Grade::Poor,
        };
        let rank = |grade: Grade| match grade {
            Grade::Good => 0,
            Grade::Limited => 1,
            Grade::Unknown => 2,
            Grade::Poor => 3,
        };
        if worst.1.is_empty() || rank(grade) > rank(worst.0) {
            worst = (grade, need.words);
        }
    }
    Suitability {
        purpose: purpose.into(),
        grade: worst.0,
        reason: worst.1,
    }
}

fn rate_need<'a>(run: &'a Run, name: &str, good: f64, limited: f64, what: &str) -> Need<'a> {
    let estimate = run.job(name).map(|result| &result.iops);
    let words = match estimate {
        Some(e) => format!(
            "{} {what} per second; {good:.0} are comfortable",
            iops(e.value)
        ),
        None => format!("{what} were not measured"),
    };
    Need {
        estimate,
        good,
        limited,
        words,
    }
}

/// Longest wait of a job against two limits in seconds, worded as a rate so that more is better.
fn capped_by_stalls(
    run: &Run,
    jobs: &[&str],
    good_s: f64,
    mut suitability: Suitability,
) -> Suitability {
    let longest_ns = jobs
        .iter()
        .filter_map(|name| run.job(name)?.latency_ns.max)
        .max()
        .unwrap_or(0);
    if longest_ns as f64 > good_s * 1e9 && suitability.grade == Grade::Good {
        suitability.grade = Grade::Limited;
        suitability.reason = format!("one operation took {}", duration_ns(longest_ns));
    }
    suitability
}

fn logging(run: &Run) -> Suitability {
    // One entry per second is the seed of all Pi loggers; ten times that is comfortable.
    let needs = vec![rate_need(run, job::COMMIT, 10.0, 2.0, "commits")];
    capped_by_stalls(run, &[job::COMMIT], 1.0, grade("logging", needs))
}

fn desktop(run: &Run) -> Suitability {
    let needs = vec![
        rate_need(run, job::RANDOM_READ, A1.read_iops, 700.0, "random reads"),
        rate_need(
            run,
            job::RANDOM_WRITE,
            A1.write_iops,
            200.0,
            "random writes",
        ),
        rate_need(run, job::COMMIT, 50.0, 15.0, "commits"),
    ];
    capped_by_stalls(
        run,
        &[job::BYSTANDER_READ, job::RANDOM_WRITE],
        0.5,
        grade("desktop", needs),
    )
}

fn swap(run: &Run) -> Suitability {
    let flash_card = disk(run).is_some_and(|disk| disk.mmc.is_some());
    let needs = vec![
        rate_need(run, job::RANDOM_READ, 2000.0, 1000.0, "random reads"),
        rate_need(run, job::RANDOM_WRITE, 2000.0, 500.0, "random writes"),
    ];
    let mut suitability = capped_by_stalls(
        run,
        &[job::RANDOM_READ, job::RANDOM_WRITE],
        0.2,
        grade("swap", needs),
    );
    if flash_card && matches!(suitability.grade, Grade::Good | Grade::Limited) {
        suitability.grade = Grade::Limited;
        suitability
            .reason
            .push_str("; swapping wears a flash card out");
    }
    suitability
}

fn storage_node(run: &Run) -> Suitability {
    // A 1 Gbit/s port carries about 117 MB/s or 16 000 requests of 8 KiB per second.
    let sequential = run
        .job(job::SEQUENTIAL_READ)
        .map(|result| &result.bytes_per_second);
    let words = match sequential {
        Some(e) => format!(
            "{} in order; a 1 Gbit/s port carries 117 MB/s",
            rate_si(e.value)
        ),
        None => "sequential reads were not measured".into(),
    };
    let needs = vec![
        rate_need(
            run,
            job::RANDOM_READ_DEEP,
            8000.0,
            3000.0,
            "random reads at depth 32",
        ),
        rate_need(
            run,
            job::RANDOM_WRITE_DEEP,
            4000.0,
            1000.0,
            "random writes at depth 32",
        ),
        Need {
            estimate: sequential,
            good: 117e6,
            limited: 40e6,
            words,
        },
    ];
    grade("storage node", needs)
}

// ---------------------------------------------------------------------------------------------
// How sure

fn disturbances(run: &Run) -> Vec<Disturbance> {
    let mut list: Vec<Disturbance> = Vec::new();
    for doubt in &run.doubts {
        push_disturbance(&mut list, doubt, None);
    }
    for result in &run.results {
        for doubt in &result.doubts {
            push_disturbance(&mut list, doubt, Some(&result.job));
        }
    }
    list
}

fn push_disturbance(list: &mut Vec<Disturbance>, doubt: &Doubt, job: Option<&str>) {
    let what = doubt.what();
    match list.iter_mut().find(|known| known.what == what) {
        Some(known) => known.jobs.extend(job.map(str::to_string)),
        None => list.push(Disturbance {
            what,
            jobs: job.map(str::to_string).into_iter().collect(),
            remedy: doubt.remedy().to_string(),
        }),
    }
}

fn certainty(run: &Run) -> String {
    if run.results.is_empty() {
        return "Nothing was measured.".into();
    }
    let inconclusive: Vec<&str> = run
        .results
        .iter()
        .filter(|result| result.outcome == Outcome::Inconclusive)
        .map(|result| result.job.as_str())
        .collect();
    let widest = run
        .results
        .iter()
        .filter(|result| result.outcome != Outcome::Inconclusive)
        .map(|result| result.iops.relative_half_width())
        .fold(0.0_f64, f64::max);
    let mut sentence = if inconclusive.len() == run.results.len() {
        "No figure settled in the time given.".to_string()
    } else {
        format!(
            "The figures hold within ±{} or better (95 % confidence)",
            percent(widest)
        )
    };
    if !inconclusive.is_empty() && inconclusive.len() < run.results.len() {
        sentence.push_str(&format!(
            ", except {}, which did not settle",
            inconclusive.join(", ")
        ));
    }
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    if run.target.access == Access::Buffered {
        sentence.push_str(" They include the page cache.");
    }
    if run.bytes_written > 0 {
        sentence.push_str(&format!(" {} were written.", bytes_iec(run.bytes_written)));
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_slow_card_is_narrowest_at_its_random_writes() {
        let verdict = verdict(&fixture::slow_sd_card_run());
        assert_eq!(
            verdict.headline,
            "The narrowest pipe is 4 KiB random writes on the SD card mmcblk0 (SC64G): 83.3 per \
             second, each takes 12.0 ms. It needs 9.1 s for what applications want in one second; \
             6.0 s of that go there."
        );
        let narrowest: Vec<&str> = verdict
            .pipes
            .iter()
            .filter(|p| p.narrowest)
            .map(|p| p.name.as_str())
            .collect();
        assert_eq!(narrowest, ["4 KiB random writes"]);
    }

    #[test]
    fn a_rate_near_the_slots_is_the_slots_limit() {
        let verdict = verdict(&fixture::slow_sd_card_run());
        let reads = verdict.pipes.iter().find(|p| p.name == "sequential reads");
        assert!(
            reads.is_some_and(|p| p.note.starts_with("the bus is the limit: 98 %")),
            "{reads:?}"
        );
    }

    #[test]
    fn a_fast_device_has_no_narrow_pipe() {
        let mut run = fixture::slow_sd_card_run();
        for result in &mut run.results {
            result.iops = Estimate::exact(100_000.0);
            result.bytes_per_second = Estimate::exact(100_000.0 * f64::from(result.block_bytes));
        }
        let verdict = verdict(&run);
        assert!(
            verdict.headline.starts_with("No pipe is narrow"),
            "{}",
            verdict.headline
        );
    }

    #[test]
    fn nothing_measured_gives_no_figures_and_no_claims() {
        let mut run = fixture::slow_sd_card_run();
        run.results.clear();
        let verdict = verdict(&run);
        assert!(
            verdict.headline.starts_with("Nothing could be measured"),
            "{}",
            verdict.headline
        );
        assert!(verdict.good_for.iter().all(|s| s.grade == Grade::Unknown));
        assert_eq!(verdict.certainty, "Nothing was measured.");
    }

    #[test]
    fn more_than_the_slot_can_carry_is_doubted() {
        let mut run = fixture::slow_sd_card_run();
        run.results[0].bytes_per_second = Estimate::exact(200e6);
        doubt_the_impossible(&mut run);
        let doubted = |r: &JobResult| {
            r.doubts
                .iter()
                .any(|d| matches!(d, Doubt::AboveCeiling { .. }))
        };
        assert!(doubted(&run.results[0]));
        assert!(!run.results[1..].iter().any(doubted));
    }

    #[test]
    fn a_wide_interval_across_a_threshold_says_perhaps() {
        let fine = Estimate::exact(20e6);
        let across = Estimate::new(1600.0, 1200.0, 2000.0);
        assert_eq!(
            class_in_words(&across, &Estimate::exact(900.0), &fine),
            "perhaps like A1"
        );
        assert_eq!(
            class_in_words(&across, &Estimate::exact(90.0), &fine),
            "below A1"
        );
    }

    #[test]
    fn the_worst_need_decides_about_a_purpose() {
        let mut run = fixture::slow_sd_card_run();
        run.results.retain(|r| r.job != job::COMMIT);
        let logging = logging(&run);
        assert_eq!(
            (logging.grade, logging.reason.as_str()),
            (Grade::Unknown, "commits were not measured")
        );
    }
}
