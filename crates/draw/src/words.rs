//! The plain words and short figures that all texts and pages share.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Throttling;
use rubus_vocabulary::result::{
    Access, Accesses, CpuShares, JobResult, Outcome, RemoteFacts, Run, StallCause, TargetKind,
};
pub use rubus_vocabulary::title::{job_title, spec_title};
pub use rubus_vocabulary::units::block;
use rubus_vocabulary::units::{bytes_si, duration_ns, percent, rate_si};

/// A job by its name, in plain words; the name itself if the run has no such job.
pub fn job_title_by_name(run: &Run, name: &str) -> String {
    run.job(name).map_or_else(|| name.to_string(), job_title)
}

/// The larger distance to an end of the interval as a share of the value: "2.0 %", ">100 %", "?" when it is
/// unbounded.
pub fn half_width(estimate: &Estimate) -> String {
    match estimate.largest_deviation() {
        share if !share.is_finite() => "?".into(),
        share if share > 1.0 => ">100 %".into(),
        share => percent(share),
    }
}

/// The half-width behind a value: "±2.0 %", ">±100 %", "±?".
pub fn plus_minus(estimate: &Estimate) -> String {
    let half_width = half_width(estimate);
    match half_width.strip_prefix('>') {
        Some(share) => format!(">±{share}"),
        None => format!("±{half_width}"),
    }
}

/// Bytes per second of a job; a dash where its operations move none, as the deleting of files.
pub fn rate(result: &JobResult) -> String {
    match result.block_bytes {
        0 => "–".into(),
        _ => rate_si(result.bytes_per_second.value),
    }
}

/// Share of all cores that were busy, in whole percent.
pub fn busy(cpu: &CpuShares) -> String {
    let share = cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal;
    if share > 0.0 && share < 0.005 { "<1 %".into() } else { format!("{:.0} %", share * 100.0) }
}

/// How a machine was reached that was measured from another one: "measured on pi@attic over ssh, 0.84
/// ms away; the machine that asked was 3 % busy meanwhile".
pub fn elsewhere(on: &RemoteFacts) -> String {
    let away = on.round_trip_ms.map(|ms| format!(", {} away", round_trip(ms)));
    let here = on.local_cpu.as_ref().map(|cpu| {
        let busy = busy(cpu);
        format!("; the machine that asked was {busy} busy meanwhile")
    });
    format!(
        "measured on {} over ssh{}{}",
        on.destination,
        away.unwrap_or_default(),
        here.unwrap_or_default()
    )
}

/// How the queues of a run were kept full, where that is not as usual: "queues shared by up to 4 lanes
/// (io_uring rings, each with a thread of its own); completions polled in 8 of 10 jobs".
pub fn queues(run: &Run) -> Option<String> {
    let lanes = run.results.iter().filter_map(|result| result.lanes).max();
    let shared = lanes.map(|lanes| {
        format!(
            "queues shared by up to {lanes} lanes (io_uring rings, each with a thread of its own)"
        )
    });
    let polled = run.results.iter().filter(|result| result.polled).count();
    let of = run.results.len();
    let polled = (polled > 0).then(|| format!("completions polled in {polled} of {of} jobs"));
    let parts: Vec<String> = [shared, polled].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A way there and back: "840 µs", "12.3 ms".
pub fn round_trip(ms: f64) -> String {
    duration_ns((ms.max(0.0) * 1e6) as u64)
}

/// A demand in seconds, short: "0.4 s", "12 s", "3.20 ms".
pub fn seconds(demand_s: f64) -> String {
    match demand_s {
        s if s >= 9.95 => format!("{s:.0} s"),
        s if s >= 0.095 => format!("{s:.1} s"),
        s => duration_ns((s.max(0.0) * 1e9) as u64),
    }
}

/// A time to two or three digits: "3.20 ms", "0.4 s", "74 s", "3.4 min", "17 min", "2.5 h"; "an unknown time" where it is unbounded.
pub fn roughly(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    match seconds {
        s if !s.is_finite() => "an unknown time".into(),
        s if s < 99.5 => self::seconds(s),
        s if s < 9.95 * MINUTE => format!("{:.1} min", s / MINUTE),
        s if s < 99.5 * MINUTE => format!("{:.0} min", s / MINUTE),
        s => format!("{:.1} h", s / MINUTE / 60.0),
    }
}

/// An interval of times: "11 min to 17 min"; "11 min or longer" where the longest time is not known.
pub fn between(low_s: f64, high_s: f64) -> String {
    if high_s.is_finite() {
        format!("{} to {}", roughly(low_s), roughly(high_s))
    } else {
        format!("{} or longer", roughly(low_s))
    }
}

/// A time that a person waits for: "4.2 s", "74 s", "3 min 20 s", "1 h 05 min".
pub fn waited(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..=9 => format!("{seconds:.1} s"),
        10..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// What happened to a job, in one word or two.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Converged => "settled",
        Outcome::Capped => "imprecise",
        Outcome::Inconclusive => "did not settle",
    }
}

/// Who is to blame for a stall.
pub fn stall_cause(cause: StallCause) -> &'static str {
    match cause {
        StallCause::Device => "the device",
        StallCause::CpuStarvation => "no free processor",
        StallCause::Throttling => "throttling or low voltage",
        StallCause::OtherWriters => "other programs on the device",
        StallCause::Stopped => "rubus itself was stopped",
    }
}

/// How the jobs of a run reached the target.
pub fn accesses(run: &Run) -> &'static str {
    match run.accesses() {
        Accesses::All(Access::Direct) => "direct I/O (no page cache)",
        Accesses::All(Access::Buffered) => "through the page cache",
        Accesses::Both => "some jobs with direct I/O, some through the page cache",
    }
}

/// What kind of thing was measured.
pub fn target_kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "a test file",
        TargetKind::File => "the file",
        TargetKind::Device => "the device",
        TargetKind::Ram => "memory",
        TargetKind::Network => "the network disk",
        TargetKind::Pool => "the pool",
    }
}

/// The bits of the firmware's throttling word in words: the current ones, or those that stick since
/// boot.
pub fn throttling(t: &Throttling, since_boot: bool) -> String {
    let (voltage, capped, throttled, soft) = if since_boot {
        (t.undervoltage_seen, t.capped_seen, t.throttled_seen, t.soft_limit_seen)
    } else {
        (t.undervoltage_now, t.capped_now, t.throttled_now, t.soft_limit_now)
    };
    let was = if since_boot { "was" } else { "is" };
    let states = [
        voltage.then(|| format!("the supply voltage {was} too low: supply or cable too weak")),
        capped.then(|| format!("the clock {was} capped")),
        throttled.then(|| format!("the clock {was} throttled by heat or low voltage")),
        soft.then(|| format!("the soft temperature limit {was} active: the board {was} hot")),
    ];
    let list: Vec<String> = states.into_iter().flatten().collect();
    match (list.is_empty(), since_boot) {
        (false, _) => list.join("; "),
        (true, true) => "never throttled".into(),
        (true, false) => "not throttled".into(),
    }
}

/// A moment for people: "2026-11-21 01:02 UTC" of "2026-11-21T01:02:03Z"; other forms as they are.
pub fn moment(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(11..16), rfc3339.ends_with('Z')) {
        (Some(day), Some(time), true) => format!("{day} {time} UTC"),
        _ => crate::text::clean(rfc3339),
    }
}

/// A whole number of seconds as a person says it: "74 s", "3 min 20 s", "1 h 5 min".
pub fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match (whole / 3600, whole % 3600 / 60, whole % 60) {
        _ if whole < 120 => format!("{whole} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// The device that a run measured: "mmcblk0 (SC64G, 63.9 GB)", "loop1 (268 MB, on vda)"; empty where there is none.
pub fn measured_device(run: &Run) -> String {
    let name = run.target.device.as_deref();
    let Some(device) = name.and_then(|name| run.machine.measured_device(name)) else {
        return String::new();
    };
    let model = device.model.text().map(|model| model.trim().to_string());
    let size = device.size_bytes.get().map(bytes_si);
    let below = run.machine.disks_below(&device.name).into_iter();
    let below: Vec<&str> = below.map(|disk| disk.name.as_str()).collect();
    let is_on_others = !device.below.is_empty() && !below.is_empty();
    let on = is_on_others.then(|| format!("on {}", below.join(" + ")));
    let about: Vec<String> = [model, size, on].into_iter().flatten().collect();
    if about.is_empty() {
        device.name.clone()
    } else {
        format!("{} ({})", device.name, about.join(", "))
    }
}

/// A known fact through `words`, or why it is not known.
pub fn fact<T>(fact: &Fact<T>, words: impl FnOnce(&T) -> String) -> String {
    match fact {
        Fact::Known { value, .. } => words(value),
        Fact::Unknown { unknown, .. } => format!("unknown ({unknown})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn every_title_fits_its_column() {
        let run = fixture::slow_sd_card_run();
        let titles: Vec<String> = run.results.iter().map(job_title).collect();
        insta::assert_snapshot!(titles.join("\n"), @r"
        1 MiB sequential reads
        1 MiB sequential writes
        4 KiB random reads
        4 KiB random reads ×32
        4 KiB random writes
        4 KiB random writes ×32
        16 KiB random writes
        4 KiB commits
        1 MiB background writes
        4 KiB reads while writing
        ");
        assert!(titles.iter().all(|title| crate::text::width(title) <= 25));
    }

    #[test]
    fn several_lanes_are_told_and_one_is_not() {
        let mut run = fixture::queue_depth_run();
        assert_eq!(queues(&run), None);
        for result in &mut run.results {
            result.lanes = Some(result.queue_depth.min(4)).filter(|&lanes| lanes > 1);
        }
        let told = queues(&run).expect("there are four");
        assert_eq!(
            told,
            "queues shared by up to 4 lanes (io_uring rings, each with a thread of its own)"
        );
        run.results[0].polled = true;
        let both = queues(&run).expect("there is more to tell");
        assert_eq!(both, format!("{told}; completions polled in 1 of 18 jobs"));
    }

    #[test]
    fn a_run_is_headed_by_what_its_jobs_did() {
        let mut run = fixture::slow_sd_card_run();
        assert_eq!(accesses(&run), "direct I/O (no page cache)");
        run.results[0].access = Some(Access::Buffered);
        assert_eq!(accesses(&run), "some jobs with direct I/O, some through the page cache");
        run.results.iter_mut().for_each(|result| result.access = Some(Access::Buffered));
        assert_eq!(accesses(&run), "through the page cache");
        run.results.clear();
        assert_eq!(accesses(&run), "direct I/O (no page cache)");
    }

    #[test]
    fn every_throttling_bit_has_words() {
        let all = Throttling::decode(0xf_000f);
        insta::assert_snapshot!(format!("{}\n{}", throttling(&all, false), throttling(&all, true)), @r"
        the supply voltage is too low: supply or cable too weak; the clock is capped; the clock is throttled by heat or low voltage; the soft temperature limit is active: the board is hot
        the supply voltage was too low: supply or cable too weak; the clock was capped; the clock was throttled by heat or low voltage; the soft temperature limit was active: the board was hot
        ");
        let none = Throttling::decode(0);
        assert_eq!(throttling(&none, false), "not throttled");
        assert_eq!(throttling(&none, true), "never throttled");
    }

    #[test]
    fn spans_and_moments_read_like_a_person_says_them() {
        assert_eq!(span(74.2), "74 s");
        assert_eq!(span(200.0), "3 min 20 s");
        assert_eq!(span(180.0), "3 min");
        assert_eq!(span(3900.0), "1 h 5 min");
        assert_eq!(moment("2026-11-21T01:02:03Z"), "2026-11-21 01:02 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }

    #[test]
    fn an_unbounded_interval_is_a_question_mark() {
        assert_eq!(plus_minus(&Estimate::new(1.0, 0.0, f64::INFINITY)), "±?");
        assert_eq!(plus_minus(&Estimate::new(10.0, 9.0, 11.0)), "±10 %");
        assert_eq!(half_width(&Estimate::new(10.0, 0.0, 99.0)), ">100 %");
        assert_eq!(plus_minus(&Estimate::new(10.0, 0.0, 99.0)), ">±100 %");
    }
}
