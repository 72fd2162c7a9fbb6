//! What else there is to say about a run than the answer.

use super::pipes::disk;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::application_class::{A1, A2, ApplicationClass, Met};
use rubus_vocabulary::job_names;
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
