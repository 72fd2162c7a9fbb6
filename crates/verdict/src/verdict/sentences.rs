//! The headline and what else there is to say about a run.

use super::pipes::{KINDS, disk, rivals};
use super::{NARROW_ABOVE_S, Pipe};
use rubus_draw::text::capitalized;
use rubus_draw::words::{between, roughly};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::application_class::{A1, A2, ApplicationClass, Met};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, HopKind};
use rubus_vocabulary::result::{JobResult, Outcome, Run, StallCause};
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

/// Everything but the headline, the most important first.
pub(super) fn all(run: &Run) -> Vec<String> {
    [
        class_sentences(run),
        stall_sentence(run),
        bystander_sentence(run),
        queueing_sentence(run),
        block_size_sentence(run),
        power_sentences(run),
        read_only_sentence(run),
    ]
    .concat()
}

pub(super) fn headline(run: &Run, pipes: &[Pipe]) -> String {
    let so_far = headline_of_all(run, pipes);
    if run.doubts.contains(&Doubt::Interrupted) {
        return format!("Stopped before the end; so far: {so_far}");
    }
    so_far
}

fn headline_of_all(run: &Run, pipes: &[Pipe]) -> String {
    let device = device_in_words(run);
    let Some(pipe) = pipes.iter().find(|pipe| pipe.narrowest) else {
        return format!("Nothing could be measured on {device}.");
    };
    let rate = match (&pipe.bytes_per_second, &pipe.operations_per_second) {
        (Some(bytes), _) => rate_si(bytes.value),
        (_, Some(operations)) => format!("{} per second", iops(operations.value)),
        _ => String::new(),
    };
    let figures = format!("{rate}, {}", pipe.note);
    let operations = || pipes.iter().filter(|pipe| pipe.demand_s.is_some());
    let work = if operations().count() == KINDS.len() {
        "The reference work"
    } else {
        "What was measured of the reference work"
    };
    let total_s: f64 = operations().filter_map(|pipe| pipe.demand_s).sum();
    let (low_s, high_s) = operations()
        .filter_map(Pipe::demand_range)
        .fold((0.0, 0.0), |(low, high), (short, long)| (low + short, high + long));
    let keeps_busy =
        format!("{work} keeps it busy for up to {} ({})", roughly(total_s), between(low_s, high_s));
    let rivals = rivals(pipe, pipes);
    let which = if rivals.is_empty() {
        format!("{}: {figures}.", pipe.name)
    } else {
        format!(
            "{}: {figures}. Within the intervals it may as well be {}.",
            pipe.name,
            either(&rivals)
        )
    };
    if high_s <= NARROW_ABOVE_S {
        return format!("No pipe is narrow on {device}. {keeps_busy}. The tightest is {which}");
    }
    if low_s <= NARROW_ABOVE_S {
        return format!(
            "Perhaps no pipe is narrow on {device}. {keeps_busy}. The tightest is {which}"
        );
    }
    let share = roughly(pipe.demand_s.unwrap_or(0.0));
    if rivals.is_empty() {
        format!(
            "The narrowest pipe is {} on {device}: {figures}. {keeps_busy}, {share} of it in this pipe.",
            pipe.name
        )
    } else {
        format!(
            "The narrowest pipe on {device} is {} or {}: the intervals do not tell which. {}: {figures}. {keeps_busy}.",
            pipe.name,
            either(&rivals),
            capitalized(&pipe.name)
        )
    }
}

/// "commits", "commits or sequential writes".
fn either(pipes: &[&Pipe]) -> String {
    let names: Vec<&str> = pipes.iter().map(|pipe| pipe.name.as_str()).collect();
    names.join(" or ")
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
    // The device itself or, of a partition, its disk: what the user sees, not what lies below it.
    let whole = run
        .machine
        .device(device)
        .map(|d| d.parent.as_deref().and_then(|parent| run.machine.device(parent)).unwrap_or(d));
    let Some(whole) = whole else {
        return device.to_string();
    };
    let kind = kind_in_words(whole);
    let model = whole.model.text().map(str::trim).filter(|model| !model.is_empty());
    match (model, disk(run)) {
        (Some(model), _) => format!("{kind} {} ({model})", whole.name),
        (None, Some(below)) if below.name != whole.name => {
            format!("{kind} {} (on {})", whole.name, below.name)
        }
        (None, _) => format!("{kind} {}", whole.name),
    }
}

fn kind_in_words(device: &BlockDevice) -> &'static str {
    match device.kind {
        BlockKind::Disk => match device.path.last().map(|hop| hop.kind) {
            _ if device.mmc.as_ref().and_then(|mmc| mmc.kind.text()) == Some("SD") => "the SD card",
            _ if device.mmc.is_some() => "the eMMC",
            Some(HopKind::UsbDevice | HopKind::UsbHub | HopKind::UsbController) => "the USB disk",
            Some(HopKind::Nvme) => "the NVMe disk",
            Some(HopKind::Virtio) => "the virtual disk",
            _ => "the disk",
        },
        BlockKind::Loop => "the loop device",
        BlockKind::Md => "the array",
        BlockKind::Dm => "the mapped device",
        BlockKind::Nbd => "the network disk",
        BlockKind::Zram => "compressed memory",
        _ => "the device",
    }
}

fn class_sentences(run: &Run) -> Vec<String> {
    let Some(sequential) = run.job(job_names::SEQUENTIAL_WRITE).map(|r| r.bytes_per_second) else {
        return Vec::new();
    };
    let depths = [
        (32, job_names::RANDOM_READ_DEEP, job_names::RANDOM_WRITE_DEEP),
        (1, job_names::RANDOM_READ, job_names::RANDOM_WRITE),
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

pub(super) fn class_in_words(
    reads: &Estimate,
    writes: &Estimate,
    sequential: &Estimate,
) -> &'static str {
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
    let (Some(one), Some(many)) =
        (run.job(job_names::RANDOM_READ), run.job(job_names::RANDOM_READ_DEEP))
    else {
        return Vec::new();
    };
    if one.iops.value <= 0.0 {
        return Vec::new();
    }
    let gain = many.iops.value / one.iops.value;
    // A core that polls is busy in any case, so a missing gain says nothing.
    if many.polled && many.iops.low <= one.iops.high * 1.5 {
        return vec![format!(
            "32 in flight give {gain:.2} times the random reads of one; a core polled for them all the time, so this \
             says nothing about the device's queue.{}",
            more_lanes(run, many)
        )];
    }
    // Where a core is busy, a missing gain is the processor's.
    if many.is_cpu_bound() && many.iops.low <= one.iops.high * 1.5 {
        return vec![format!(
            "32 in flight give {gain:.2} times the random reads of one, but a core was busy: this is the \
             processor's limit and says nothing about the device's queue.{}",
            more_lanes(run, many)
        )];
    }
    if many.iops.low > one.iops.high * 1.5 {
        return vec![format!(
            "It works on several requests at once: 32 in flight give {gain:.1} times the random reads of one.{}",
            if many.is_cpu_bound() {
                format!(" A core was busy then: the device may do more.{}", more_lanes(run, many))
            } else {
                String::new()
            }
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

/// How to ask with more cores than a result did; empty where that cannot be.
fn more_lanes(run: &Run, result: &JobResult) -> &'static str {
    match run.lanes_below_cores(result) {
        Some(_) => " `rubus bench --lanes N` asks with more cores.",
        None => "",
    }
}

/// Some cards collapse at 16 KiB although 4 KiB looks fine.
fn block_size_sentence(run: &Run) -> Vec<String> {
    let (Some(small), Some(large)) =
        (run.job(job_names::RANDOM_WRITE), run.job(job_names::RANDOM_WRITE_16K))
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
    let settled = |name| run.job(name).filter(|r| r.outcome != Outcome::Inconclusive);
    let (Some(alone), Some(beside)) =
        (settled(job_names::RANDOM_READ), settled(job_names::BYSTANDER_READ))
    else {
        return Vec::new();
    };
    // At depth 1 the mean wait is the inverse of the rate; a median would hide that a tenth of the
    // reads waits for a second.
    let (Some(quiet), Some(busy)) = (mean_wait_ns(alone), mean_wait_ns(beside)) else {
        return Vec::new();
    };
    let worst = beside.latency_ns.max.unwrap_or(busy);
    vec![format!(
        "While something writes, a small read waits {} on average (at worst {}) instead of {}{}.",
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

fn mean_wait_ns(result: &JobResult) -> Option<u64> {
    (result.iops.value > 0.0).then(|| (1e9 / result.iops.value) as u64)
}

fn stall_sentence(run: &Run) -> Vec<String> {
    let measured_s: f64 = run.results.iter().map(|result| result.elapsed_s).sum();
    let stalls = run.results.iter().flat_map(|result| &result.stalls);
    let device: Vec<f64> =
        stalls.clone().filter(|s| s.cause == StallCause::Device).map(|s| s.length_ms).collect();
    let others = stalls.filter(|s| s.cause != StallCause::Device).count();
    let mut sentence = match device.iter().copied().reduce(f64::max) {
        None if measured_s > 0.0 => format!(
            "No stalls in {measured_s:.0} s of measuring (95 % confidence: fewer than one per {:.0} s)",
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
        sentence.push_str(&format!("; {others} more had a cause outside the device"));
    }
    sentence.push('.');
    vec![sentence]
}

fn times(count: usize) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

fn power_sentences(run: &Run) -> Vec<String> {
    let power = &run.machine.power;
    let mut sentences = Vec::new();
    if let Some(throttling) = power.throttling.get() {
        if throttling.undervoltage_now || throttling.undervoltage_seen {
            let when =
                if throttling.undervoltage_now { "is" } else { "was, at some time since boot," };
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
    let wrote = run.results.iter().any(|r| r.direction == rubus_vocabulary::spec::Direction::Write);
    if wrote || run.results.is_empty() {
        return Vec::new();
    }
    vec!["Only reads were measured: nothing is said about writing.".into()]
}

fn latency(nanoseconds: Option<u64>) -> String {
    nanoseconds.map(duration_ns).unwrap_or_else(|| "an unknown time".into())
}
