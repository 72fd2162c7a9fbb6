//! How many jobs one of fio's results is the sum of, and whether they are all of one section.
//!
//! With `group_reporting`, the result of a group carries the name and the options of its first
//! section only. How many jobs ran is in `job_runtime`, the sum of the times of all of them.

use rubus_fio::job_file::Asked;
use serde_json::Value;

use super::part::{Part, number};

/// The jobs behind one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// At least 1.
    pub(super) copies: u32,
    /// More of them ran than the first section asked for, so others are in the figures.
    pub(super) is_of_several_sections: bool,
}

/// Of an entry with what its section asked for, where that is known. `like_it` entries of the result,
/// this one included, are of the same section.
pub(super) fn group(
    entry: &Value,
    parts: &[Part<'_>],
    asked: Option<&Asked>,
    like_it: usize,
) -> Group {
    let ran = jobs_by_time(entry, parts, asked);
    let Some(asked) = asked else {
        return Group { copies: ran, is_of_several_sections: false };
    };
    // Copies that are reported apart are all there.
    let apart =
        asked.is_grouped == Some(false) || (asked.copies > 1 && like_it >= asked.copies as usize);
    if apart {
        return Group { copies: 1, is_of_several_sections: false };
    }
    let stated = asked.copies;
    let is_of_several_sections = ran > stated && is_borne_out(parts, asked, stated, ran);
    Group { copies: if is_of_several_sections { ran } else { stated }, is_of_several_sections }
}

/// How many jobs together took `job_runtime`; 1 where it does not tell.
fn jobs_by_time(entry: &Value, parts: &[Part<'_>], asked: Option<&Asked>) -> u32 {
    let all_s = number(&entry["job_runtime"]).unwrap_or(0.0) / 1e3;
    let times = parts.iter().map(Part::seconds);
    // What verifies first writes and then reads; the halves of a mix run at the same time.
    let one_s = if asked.is_some_and(|asked| asked.verifies) {
        times.sum()
    } else {
        times.fold(0.0, f64::max)
    };
    let jobs = all_s / one_s;
    if jobs.is_finite() && one_s >= MIN_S { (jobs.round() as u32).max(1) } else { 1 }
}

/// Times are whole milliseconds: shorter ones do not tell how many jobs there were.
const MIN_S: f64 = 0.02;

/// Whether another figure says as well that more jobs ran than one section started: the samples of
/// the rate, or the operations that were in flight (Little's law).
fn is_borne_out(parts: &[Part<'_>], asked: &Asked, stated: u32, ran: u32) -> bool {
    let halfway = f64::from(stated + ran) / 2.0;
    let in_flight: f64 =
        parts.iter().map(|part| part.per_second() * part.mean_latency_s().unwrap_or(0.0)).sum();
    let by_samples = parts.iter().any(|part| {
        let count = part.samples("iops").and_then(|samples| samples.count);
        let per_job = part.seconds() / SAMPLE_S;
        per_job >= MIN_SAMPLES && count.is_some_and(|count| count / per_job > halfway)
    });
    by_samples || in_flight > f64::from(stated * asked.depth) * (1.0 + MARGIN)
}

/// fio's distance between samples, in seconds.
const SAMPLE_S: f64 = 0.5;
const MIN_SAMPLES: f64 = 4.0;
/// What is in flight is never more than asked for; this is for rounding.
const MARGIN: f64 = 0.1;
