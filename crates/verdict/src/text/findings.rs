//! What results say together, in sentences with the numbers that justify them.

mod special;

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::{
    Bend, Capacity, Cliff, Compression, Finding, Knee, Recovery, SharedPipe, SpeedClass, Threshold,
};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::spec::{Direction, Pattern};
use rubus_vocabulary::units::{bytes_iec, bytes_si, duration_ns, iops, percent, rate_si};

use rubus_draw::text::listed;
use rubus_draw::words::{block, plus_minus};

/// A curve that misses a point by more than this is said to fit badly.
const MISFIT: f64 = 0.25;
/// Where the curve misses a point by more than this, its knee is not told.
const NO_KNEE: f64 = 0.10;
/// Zeros this much faster than other data are compressed on the way.
const COMPRESSES: f64 = 1.15;

/// The sentences of what the results say together, in order; the classes of a run are two or three sentences together.
pub fn sentences(run: &Run) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut classes = Vec::new();
    for finding in &run.findings {
        match finding {
            Finding::SpeedClass(class) => classes.push(class),
            // They are a list of their own.
            Finding::Rule(_) => {}
            other => sentences.push(sentence(other)),
        }
    }
    if !classes.is_empty() {
        sentences.extend(class_sentences(&classes));
    }
    sentences.extend(special::sentences(run));
    sentences
}

/// What the run says first of all, if it has a finding; for the lists of runs.
pub fn headline(run: &Run) -> Option<String> {
    sentences(run).into_iter().next()
}

/// One finding in one to three sentences.
pub fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Knee(found) => knee(found),
        Finding::Bend(found) => bend(found),
        Finding::Cliff(found) => cliff(found),
        Finding::SpeedClass(found) => class_sentences(&[found]).join(" "),
        Finding::Compression(found) => compression(found),
        Finding::Capacity(found) => capacity(found),
        Finding::SharedPipe(found) => shared_pipe(found),
        Finding::Rule(found) => rubus_machine::rules_text::statement(found),
    }
}

/// "4 KiB random reads".
pub fn what(block_bytes: u32, direction: Direction, pattern: Pattern) -> String {
    let pattern = match pattern {
        Pattern::Random => "random",
        Pattern::Sequential => "sequential",
    };
    format!("{} {pattern} {}", block(block_bytes), verbs(direction))
}

fn verbs(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}

/// A depth: "6.0", "57", and "more" without an end.
pub fn depth(value: f64) -> String {
    match value {
        v if !v.is_finite() => "more".into(),
        v if v < 19.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// "5.6 to 6.4".
pub fn range(estimate: &Estimate, words: impl Fn(f64) -> String) -> String {
    if estimate.high.is_finite() {
        format!("{} to {}", words(estimate.low), words(estimate.high))
    } else {
        format!("{} or more", words(estimate.low))
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.2}"),
        r => format!("{r:.0}"),
    }
}

fn knee(knee: &Knee) -> String {
    let what = what(knee.block_bytes, knee.direction, knee.pattern);
    let alone = duration_ns(knee.service_ns.value as u64);
    let ceiling = iops(knee.ceiling_iops.value);
    let gain = times(knee.gain.value);
    let mut text = if knee.is_one_at_a_time && knee.is_polled {
        format!(
            "{what} gain nothing from queueing (×{gain}, {}) on this machine. One takes {alone}; the ceiling is {ceiling} \
             per second.{}",
            range(&knee.gain, times),
            processor(knee)
        )
    } else if knee.is_one_at_a_time && knee.is_cpu_bound {
        format!(
            "{what} gain nothing from queueing (×{gain}, {}) on this machine: {}, so the processor is the \
             limit. It says nothing about how many requests the device handles at a time. One takes {alone}; the \
             ceiling is {ceiling} per second.{}",
            range(&knee.gain, times),
            busy(knee),
            more_lanes(knee)
        )
    } else if knee.is_one_at_a_time {
        format!(
            "{what} gain nothing from queueing (×{gain}, {}): the device, or a bridge before it, handles one request at a \
             time. One takes {alone}; the ceiling is {ceiling} per second.",
            range(&knee.gain, times)
        )
    } else if knee.is_reached && knee.misfit > NO_KNEE {
        return format!(
            "{what} gain from queueing, but no curve of a queue fits (a point is off by {}), so no knee is told. One alone takes {alone}.{}{}",
            percent(knee.misfit),
            enough(knee),
            processor(knee)
        );
    } else if knee.is_reached {
        format!(
            "{what}: the knee is at about {} requests in flight ({}). One alone takes {alone}; the ceiling is {ceiling} per \
             second, {gain} times the rate of one at a time.{}",
            depth(knee.depth.value),
            range(&knee.depth, depth),
            enough(knee)
        )
    } else {
        format!(
            "{what} still gain at the deepest queue tried (×{gain}): the knee is at {} or more requests in flight. \
             One alone takes {alone}.",
            depth(knee.depth.low)
        )
    };
    if !knee.is_one_at_a_time {
        text.push_str(&processor(knee));
    }
    text.push_str(&misfit(knee.misfit));
    text
}

/// Whose limit was reached, where the processor was busy; empty where it was not.
fn processor(knee: &Knee) -> String {
    if knee.is_polled {
        let more = more_lanes(knee);
        return format!(
            " Completions were polled for, so a core was always busy: the device may do more.{more}"
        );
    }
    if !knee.is_cpu_bound {
        return String::new();
    }
    let whose = if knee.is_reached {
        "the ceiling is the processor's, and the device may do more"
    } else {
        "the device may do more"
    };
    let (busy, more) = (busy(knee), more_lanes(knee));
    format!(" At the deepest queues {busy}: {whose}.{more}")
}

/// What was busy: "one core was busy", "the cores of all 4 lanes were busy".
fn busy(knee: &Knee) -> String {
    match knee.lanes_at_limit {
        None => "a core was busy".into(),
        Some(1) => "one core was busy".into(),
        Some(lanes) => format!("the cores of all {lanes} lanes were busy"),
    }
}

/// How to ask with more cores; empty where there are none.
fn more_lanes(knee: &Knee) -> &'static str {
    match knee.lanes_at_limit {
        None => "",
        Some(1) => " `--lanes N` asks with more cores.",
        Some(_) => " More `--lanes` ask with more cores.",
    }
}

/// From which depth on more adds little; empty where that was not seen.
fn enough(knee: &Knee) -> String {
    match knee.enough_depth {
        Some(depth) => format!(
            " With {depth} in flight, 90 % of the most that was measured is reached; more than that mostly adds waiting time."
        ),
        None => String::new(),
    }
}

fn bend(bend: &Bend) -> String {
    let way = if bend.is_direct {
        "past the page cache"
    } else {
        "through the page cache, each made durable"
    };
    let size = |bytes: f64| bytes_iec(bytes as u64);
    let mut text = format!(
        "{} {way}: each operation costs {} {} whatever its size, and its bytes move at {} {}. Below about {} ({}), \
         per-operation cost dominates; above it, bandwidth.",
        match bend.direction {
            Direction::Read => "Reads",
            Direction::Write => "Writes",
        },
        duration_ns(bend.setup_ns.value as u64),
        plus_minus(&bend.setup_ns),
        rate_si(bend.bytes_per_second.value),
        plus_minus(&bend.bytes_per_second),
        size(bend.block_bytes.value),
        range(&bend.block_bytes, size),
    );
    text.push_str(&misfit(bend.misfit));
    text
}

fn misfit(share: f64) -> String {
    if share <= MISFIT {
        return String::new();
    }
    format!(" (The curve misses a point by {}: treat this as a rough estimate.)", percent(share))
}

fn cliff(cliff: &Cliff) -> String {
    let burst = &cliff.burst_bytes_per_second;
    let (Some(bytes), Some(after)) = (&cliff.burst_bytes, &cliff.sustained_bytes_per_second) else {
        return format!(
            "No cliff within the {} written, at {} {}. A larger --budget looks further.",
            bytes_si(cliff.written_bytes),
            rate_si(burst.value),
            plus_minus(burst)
        );
    };
    let size = |bytes: f64| bytes_si(bytes as u64);
    let mut text = format!(
        "The first {} ({}) are written at {} {}, the rest at {} {}: {} times slower once the write cache is full.",
        size(bytes.value),
        range(bytes, size),
        rate_si(burst.value),
        plus_minus(burst),
        rate_si(after.value),
        plus_minus(after),
        times(burst.value / after.value)
    );
    if let Some(recovery) = &cliff.recovery {
        text.push(' ');
        text.push_str(&recovery_words(recovery));
    }
    text
}

fn recovery_words(recovery: &Recovery) -> String {
    let rest = rubus_draw::words::span(recovery.rest_s);
    match recovery.share {
        share if share < 0.02 => format!("A rest of {rest} recovered nothing."),
        share if share > 0.98 => format!("A rest of {rest} recovered all of it."),
        share => format!(
            "A rest of {rest} recovered {} of it ({}).",
            percent(share),
            bytes_si(recovery.burst_bytes)
        ),
    }
}

/// The classes together: what it behaves like, what not and by which figure, what is open.
fn class_sentences(classes: &[&SpeedClass]) -> Vec<String> {
    let cannot_be = |class: &SpeedClass| {
        let mut thresholds = class.thresholds.iter();
        class.is_met.is_none() && thresholds.any(|t| t.measured.high < t.least)
    };
    let named = |is_met: Option<bool>| -> Vec<&str> {
        let of = classes.iter().filter(|class| class.is_met == is_met);
        let of = of.filter(|class| !cannot_be(class));
        of.map(|class| class.class.as_str()).collect()
    };
    let (met, open) = (named(Some(true)), named(None));
    let undecidable: Vec<&str> =
        classes.iter().filter(|class| cannot_be(class)).map(|class| class.class.as_str()).collect();
    let mut sentences = Vec::new();
    if !met.is_empty() {
        sentences.push(format!("Behaves like {} here.", listed(&met)));
    } else if open.is_empty() && classes.len() > 1 {
        sentences.push("Behaves like no class here.".to_string());
    }
    if !open.is_empty() {
        sentences.push(format!(
            "Undecided: {}. The interval contains a threshold; measure again with --precision 2%.",
            listed(&open)
        ));
    }
    if !undecidable.is_empty() {
        sentences.push(format!(
            "Undecidable here: {}. It asks for queued commands, and many requests in flight gave no more than one.",
            listed(&undecidable)
        ));
    }
    for class in classes.iter().filter(|class| class.is_met == Some(false)) {
        let missed = class.thresholds.iter().find(|t| t.measured.high < t.least);
        let Some(missed) = missed else { continue };
        sentences.push(format!("Not like {}: {}.", class.class, missed_words(missed)));
        // The classes above ask for more of the same.
        if !class.class.starts_with('A') {
            break;
        }
    }
    sentences
}

fn missed_words(threshold: &Threshold) -> String {
    format!(
        "{} reached {}; {} is required",
        threshold.what,
        value(threshold, threshold.measured.value),
        value(threshold, threshold.least)
    )
}

/// A value in the unit of a threshold.
pub fn value(threshold: &Threshold, value: f64) -> String {
    match threshold.unit.as_str() {
        "bytes per second" => rate_si(value),
        _ => format!("{} /s", iops(value)),
    }
}

fn compression(found: &Compression) -> String {
    let (value, between) = (times(found.ratio.value), range(&found.ratio, times));
    let rates = format!(
        "{} against {}",
        rate_si(found.zeros_bytes_per_second.value),
        rate_si(found.incompressible_bytes_per_second.value)
    );
    if found.ratio.low > COMPRESSES {
        return format!(
            "Zeros are {value} times as fast ({between}) as incompressible data, {rates}: something on the path \
             compresses, and a test with zeros (dd if=/dev/zero) flatters this disk."
        );
    }
    if found.ratio.high < COMPRESSES {
        return format!(
            "Zeros are no faster than incompressible data (×{value}, {between}): nothing on the path compresses."
        );
    }
    if !found.ratio.high.is_finite() {
        return format!(
            "Zeros are ×{value} as fast as incompressible data, {rates}, but there were too few passes to be \
             sure: a smaller --size gives more."
        );
    }
    format!(
        "Zeros are ×{value} ({between}) as fast as incompressible data: too uncertain to say whether something \
         compresses."
    )
}

fn capacity(found: &Capacity) -> String {
    let tested = bytes_si(found.tested_bytes);
    let announced = bytes_si(found.announced_bytes);
    if !found.is_short() {
        return if found.tested_bytes >= found.announced_bytes {
            format!("All {tested} came back as they were written: it is as big as it claims.")
        } else if found.is_sample {
            format!(
                "All {tested} that were tried all over its {announced} came back as they were written: no sign of \
                 missing memory."
            )
        } else {
            format!("All {tested} that were tried of {announced} came back as they were written.")
        };
    }
    let real = match (found.wraps_at_bytes, found.first_bad_offset, found.last_good_offset) {
        (Some(bytes), _, _) => format!(
            "It claims {announced} but has {}: data beyond that overwrites the start. ",
            bytes_si(bytes)
        ),
        (None, Some(bad), Some(good)) if good < bad && bad - good > 4096 => format!(
            "It claims {announced} but keeps only the first {} to {}. ",
            bytes_si(good + 4096),
            bytes_si(bad)
        ),
        (None, Some(bad), Some(good)) if good < bad => {
            format!("It claims {announced} but keeps only the first {}. ", bytes_si(bad))
        }
        _ => String::new(),
    };
    let kinds = [
        (found.overwritten_bytes, "as another place's data"),
        (found.corrupted_bytes, "as something that was never written there"),
        (found.unreadable_bytes, "not at all"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, how)| format!("{} came back {how}", bytes_si(*bytes)))
        .collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    format!("{real}Of {tested} that were tried, {}. Keep no data on it.", listed(&kinds))
}

fn shared_pipe(found: &SharedPipe) -> String {
    let names: Vec<&str> = found.targets.iter().map(String::as_str).collect();
    let share = format!(
        "in {}s together they give {} of what they give alone ({})",
        found.job.replace("-deep", "").replace('-', " "),
        percent(found.share.value),
        range(&found.share, percent)
    );
    match found.is_shared {
        Some(true) => {
            let suspect = match &found.suspect {
                Some(suspect) => format!(": {suspect}"),
                None => String::new(),
            };
            format!("{} share a pipe{suspect}; {share}.", listed(&names))
        }
        Some(false) => format!("{} do not disturb one another; {share}.", listed(&names)),
        None => format!("It is open whether {} share a pipe; {share}.", listed(&names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn every_finding_has_its_sentence() {
        let said: Vec<String> = crate::fixture::every_finding().iter().map(sentence).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn where_a_core_is_busy_the_device_is_not_judged() {
        let findings = crate::fixture::every_finding();
        let mut says = Vec::new();
        for finding in findings {
            if let Finding::Knee(knee) = finding {
                says.push(sentence(&Finding::Knee(Knee {
                    is_cpu_bound: true,
                    misfit: 0.01,
                    ..knee
                })));
            }
        }
        let alone = |text: &&String| text.contains("gain nothing from queueing");
        let alone = says.iter().find(alone).expect("there is one");
        assert!(alone.contains("the processor is the limit"), "{alone}");
        assert!(!alone.contains("a bridge before it"), "{alone}");
        let reached = |text: &&String| text.contains("the knee is at about");
        let reached = says.iter().find(reached).expect("there is one");
        assert!(reached.contains("the ceiling is the processor's"), "{reached}");
        let rising = |text: &&String| text.contains("still gain at the deepest queue");
        let rising = says.iter().find(rising).expect("there is one");
        assert!(rising.contains("the device may do more"), "{rising}");
        assert!(!says.iter().any(|text| text.contains("--lanes")));
    }

    #[test]
    fn of_what_was_polled_for_the_device_is_not_judged() {
        for finding in crate::fixture::every_finding() {
            if let Finding::Knee(knee) = finding {
                let polled = sentence(&Finding::Knee(Knee { is_polled: true, ..knee }));
                let told = polled.contains("a core was always busy: the device may do more");
                assert!(told, "{polled}");
                assert!(!polled.contains("handles one request"), "{polled}");
            }
        }
    }

    #[test]
    fn where_one_core_was_the_limit_more_lanes_are_proposed() {
        let knees = crate::fixture::every_finding().into_iter();
        let knees = knees.filter_map(|finding| match finding {
            Finding::Knee(knee) => Some(knee),
            _ => None,
        });
        for knee in knees {
            let says = |lanes, misfit| {
                sentence(&Finding::Knee(Knee {
                    is_cpu_bound: true,
                    lanes_at_limit: Some(lanes),
                    misfit,
                    ..knee.clone()
                }))
            };
            for misfit in [0.01, 0.5] {
                let one = says(1, misfit);
                assert!(one.contains("one core was busy"), "{one}");
                assert!(one.contains("`--lanes N` asks with more cores."), "{one}");
                let four = says(4, misfit);
                assert!(four.contains("the cores of all 4 lanes were busy"), "{four}");
            }
        }
    }

    #[test]
    fn classes_are_told_together() {
        let mut run = fixture::slow_sd_card_run();
        run.findings = crate::fixture::every_finding()
            .into_iter()
            .filter(|finding| matches!(finding, Finding::SpeedClass(_)))
            .collect();
        insta::assert_snapshot!(sentences(&run).join("\n"));
        assert_eq!(headline(&run).as_ref(), sentences(&run).first());
        run.findings.clear();
        assert_eq!(headline(&run), None);
    }
}
