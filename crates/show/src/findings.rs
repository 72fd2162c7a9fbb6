//! What results say together, in sentences with the numbers that justify them.

pub mod rules;
mod special;

use rubus_core::estimate::Estimate;
use rubus_core::finding::{
    Bend, Capacity, Cliff, Compression, Finding, Knee, Recovery, SharedPipe, SpeedClass, Threshold,
};
use rubus_core::result::Run;
use rubus_core::spec::{Direction, Pattern};
use rubus_core::units::{bytes_iec, bytes_si, duration_ns, iops, percent, rate_si};

use crate::words::{block, plus_minus};

/// A curve that misses a point by more than this is said to fit badly.
const MISFIT: f64 = 0.25;
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
        Finding::Rule(found) => rules::statement(found),
    }
}

/// "4 KiB random reads".
pub(crate) fn what(block_bytes: u32, direction: Direction, pattern: Pattern) -> String {
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
pub(crate) fn depth(value: f64) -> String {
    match value {
        v if !v.is_finite() => "more".into(),
        v if v < 19.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// "5.6 to 6.4".
pub(crate) fn range(estimate: &Estimate, words: impl Fn(f64) -> String) -> String {
    match estimate.high.is_finite() {
        true => format!("{} to {}", words(estimate.low), words(estimate.high)),
        false => format!("{} or more", words(estimate.low)),
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
    let mut text = if knee.is_one_at_a_time {
        format!(
            "{what} gain nothing from queueing (×{gain}, {}): the device, or a bridge before it, takes one at a time. \
             One takes {alone}, {ceiling} per second is all there is.",
            range(&knee.gain, times)
        )
    } else if knee.is_reached {
        format!(
            "{what} have their knee at {} at once ({}): one alone takes {alone}, never more than {ceiling} per second \
             get done, {gain} times what one at a time gives. More at once only wait longer.",
            depth(knee.depth.value),
            range(&knee.depth, depth)
        )
    } else {
        format!(
            "{what} still gain at the deepest queue that was tried (×{gain}): the knee is at {} or more at once. \
             One alone takes {alone}.",
            depth(knee.depth.low)
        )
    };
    text.push_str(&misfit(knee.misfit));
    text
}

fn bend(bend: &Bend) -> String {
    let way = match bend.is_direct {
        true => "past the page cache",
        false => "through the page cache, each made durable",
    };
    let size = |bytes: f64| bytes_iec(bytes as u64);
    let mut text = format!(
        "{} {way}: an operation costs {} {} whatever its size, bytes come at {} {}. The curve bends at {} ({}): below, \
         operations count, above, bytes.",
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
    format!(
        " (The curve misses a point by {}: read this as a rough picture.)",
        percent(share)
    )
}

fn cliff(cliff: &Cliff) -> String {
    let burst = &cliff.burst_bytes_per_second;
    let (Some(bytes), Some(after)) = (&cliff.burst_bytes, &cliff.sustained_bytes_per_second) else {
        return format!(
            "No cliff within the {} that were written, at {} {}. A larger --budget looks further.",
            bytes_si(cliff.written_bytes),
            rate_si(burst.value),
            plus_minus(burst)
        );
    };
    let size = |bytes: f64| bytes_si(bytes as u64);
    let mut text = format!(
        "The first {} ({}) are written at {} {}, what follows at {} {}: {} times slower once the write cache is used up.",
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
    let rest = crate::words::span(recovery.rest_s);
    match recovery.share {
        share if share < 0.02 => format!("A rest of {rest} gave nothing of it back."),
        share if share > 0.98 => format!("A rest of {rest} gave all of it back."),
        share => format!(
            "A rest of {rest} gave {} of it back ({}).",
            percent(share),
            bytes_si(recovery.burst_bytes)
        ),
    }
}

/// The classes together: what it behaves like, what not and by which figure, what is open.
fn class_sentences(classes: &[&SpeedClass]) -> Vec<String> {
    let named = |is_met: Option<bool>| -> Vec<&str> {
        let of = classes.iter().filter(|class| class.is_met == is_met);
        of.map(|class| class.class.as_str()).collect()
    };
    let (met, open) = (named(Some(true)), named(None));
    let mut sentences = Vec::new();
    if !met.is_empty() {
        sentences.push(format!("Behaves like {} here.", list(&met)));
    } else if open.is_empty() && classes.len() > 1 {
        sentences.push("Behaves like no class here.".to_string());
    }
    if !open.is_empty() {
        sentences.push(format!(
            "Undecided: {}. The interval holds a threshold; measure again with --precision 2%.",
            list(&open)
        ));
    }
    for class in classes.iter().filter(|class| class.is_met == Some(false)) {
        let missed = class.thresholds.iter().find(|t| t.measured.high < t.least);
        let Some(missed) = missed else { continue };
        sentences.push(format!(
            "Not like {}: {}.",
            class.class,
            missed_words(missed)
        ));
        // The classes above ask for more of the same.
        if !class.class.starts_with('A') {
            break;
        }
    }
    sentences
}

fn missed_words(threshold: &Threshold) -> String {
    format!(
        "{} gave {} where {} is asked for",
        threshold.what,
        value(threshold, threshold.measured.value),
        value(threshold, threshold.least)
    )
}

/// A value in the unit of a threshold.
pub(crate) fn value(threshold: &Threshold, value: f64) -> String {
    match threshold.unit.as_str() {
        "bytes per second" => rate_si(value),
        _ => format!("{} /s", iops(value)),
    }
}

/// "A1, U1 and V30".
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
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
            "Zeros go {value} times as fast ({between}) as data that does not compress, {rates}: something on the way \
             compresses, and a test with zeros (dd if=/dev/zero) flatters this disk."
        );
    }
    if found.ratio.high < COMPRESSES {
        return format!(
            "Zeros are no faster than data that does not compress (×{value}, {between}): nothing on the way compresses."
        );
    }
    if !found.ratio.high.is_finite() {
        return format!(
            "Zeros go ×{value} as fast as data that does not compress, {rates}, but there were too few passes to be \
             sure: a smaller --size gives more."
        );
    }
    format!(
        "Zeros go ×{value} ({between}) as fast as data that does not compress: too uncertain to say whether something \
         compresses."
    )
}

fn capacity(found: &Capacity) -> String {
    let tested = bytes_si(found.tested_bytes);
    let announced = bytes_si(found.announced_bytes);
    if !found.is_short() {
        return match found.tested_bytes >= found.announced_bytes {
            true => {
                format!("All {tested} came back as they were written: it is as big as it says.")
            }
            false if found.is_sample => format!(
                "All {tested} that were tried all over its {announced} came back as they were written: no sign of \
                 missing memory."
            ),
            false => format!(
                "All {tested} that were tried of {announced} came back as they were written."
            ),
        };
    }
    let real = match (
        found.wraps_at_bytes,
        found.first_bad_offset,
        found.last_good_offset,
    ) {
        (Some(bytes), _, _) => format!(
            "It says {announced} and has {}: what is written beyond that is written over the start. ",
            bytes_si(bytes)
        ),
        (None, Some(bad), Some(good)) if good < bad && bad - good > 4096 => format!(
            "It says {announced} and keeps only the first {} to {}. ",
            bytes_si(good + 4096),
            bytes_si(bad)
        ),
        (None, Some(bad), Some(good)) if good < bad => {
            format!(
                "It says {announced} and keeps only the first {}. ",
                bytes_si(bad)
            )
        }
        _ => String::new(),
    };
    let kinds = [
        (found.overwritten_bytes, "as another place's data"),
        (
            found.corrupted_bytes,
            "as something that was never written there",
        ),
        (found.unreadable_bytes, "not at all"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, how)| format!("{} came back {how}", bytes_si(*bytes)))
        .collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    format!(
        "{real}Of {tested} that were tried, {}. Keep no data on it.",
        list(&kinds)
    )
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
            format!("{} share a pipe{suspect}; {share}.", list(&names))
        }
        Some(false) => format!("{} do not disturb one another; {share}.", list(&names)),
        None => format!("It is open whether {} share a pipe; {share}.", list(&names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_core::fixture;

    #[test]
    fn every_finding_has_its_sentence() {
        let said: Vec<String> = fixture::every_finding().iter().map(sentence).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn classes_are_told_together() {
        let mut run = fixture::slow_sd_card_run();
        run.findings = fixture::every_finding()
            .into_iter()
            .filter(|finding| matches!(finding, Finding::SpeedClass(_)))
            .collect();
        insta::assert_snapshot!(sentences(&run).join("\n"));
        assert_eq!(headline(&run).as_ref(), sentences(&run).first());
        run.findings.clear();
        assert_eq!(headline(&run), None);
    }
}
