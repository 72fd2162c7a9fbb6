//! The line that lives while something is measured: pure formatting of simple values. Who
//! redraws it, and when, is decided on the roof.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::{JobResult, Outcome};
use rubus_vocabulary::units::{bytes_iec, iops, rate_si};
use serde::{Deserialize, Serialize};

use rubus_draw::text::{clean, pad_right, shorten, width};
use rubus_draw::words::job_title as job_title_of;
pub use rubus_draw::words::spec_title as job_title;
use rubus_draw::words::{plus_minus, span};

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The test file is being made.
    Filling,
    /// A job runs, but nothing counts yet.
    WarmUp,
    /// A job is measured.
    Measuring,
    /// What was written is being made durable.
    Flushing,
}

/// Everything that a live line shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is going on.
    pub phase: Phase,
    /// The job in plain words; empty while filling.
    pub job: String,
    /// Number of the job, from 1.
    pub job_number: u32,
    /// How many jobs there are.
    pub jobs: u32,
    /// Rate of the last moment, in bytes per second.
    pub live_bytes_per_second: Option<f64>,
    /// The estimate so far, in bytes per second.
    pub so_far: Option<Estimate>,
    /// Files of the last moment per second, of a job whose operations are files; in place of the bytes.
    pub live_files_per_second: Option<f64>,
    /// The estimate so far, in files per second.
    pub files_so_far: Option<Estimate>,
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// Seconds that the run may still take, at most.
    pub left_s: Option<f64>,
    /// Bytes written since the run began.
    pub bytes_written: u64,
}

/// The line, at most `columns` wide; what matters least is left out first.
pub fn line(progress: &Progress, columns: usize) -> String {
    let head = match progress.phase {
        Phase::Filling => "making the test file".to_string(),
        _ => format!("[{}/{}] {}", progress.job_number, progress.jobs, clean(&progress.job)),
    };
    let phase = match progress.phase {
        Phase::WarmUp => Some("warming up".to_string()),
        Phase::Flushing => Some("flushing".to_string()),
        Phase::Filling | Phase::Measuring => None,
    };
    let live = progress
        .live_bytes_per_second
        .map(|rate| format!("now {}", rate_si(rate)))
        .or_else(|| Some(format!("now {}", files(progress.live_files_per_second?))));
    let so_far = progress
        .so_far
        .map(|estimate| format!("{} {}", rate_si(estimate.value), plus_minus(&estimate)))
        .or_else(|| {
            let estimate = progress.files_so_far?;
            Some(format!("{} {}", files(estimate.value), plus_minus(&estimate)))
        });
    let left = progress.left_s.map(|left| format!("at most {} left", span(left)));
    let written = (progress.bytes_written > 0)
        .then(|| format!("{} written", bytes_iec(progress.bytes_written)));
    let elapsed = Some(span(progress.elapsed_s));
    // The order on the line, with how dispensable each is.
    let mut parts: Vec<(u8, String)> =
        [(0, phase), (0, so_far), (1, live), (0, left), (3, elapsed), (2, written)]
            .into_iter()
            .filter_map(|(rank, part)| Some((rank, part?)))
            .collect();
    let render = |parts: &[(u8, String)]| {
        let tail: Vec<&str> = parts.iter().map(|(_, part)| part.as_str()).collect();
        if tail.is_empty() {
            head.clone()
        } else {
            format!("{}  {}", pad_right(&head, 33), tail.join(" · "))
        }
    };
    while width(&render(&parts)) > columns {
        let Some(worst) = (0..parts.len()).max_by_key(|&i| parts[i].0) else {
            break;
        };
        parts.remove(worst);
    }
    shorten(&render(&parts), columns)
}

/// How far a run is, where its figures stand in a table: the job, the time that is left, and what was written; what matters least
/// is left out first.
pub fn status(progress: &Progress, columns: usize) -> String {
    let head = match progress.phase {
        Phase::Filling => "making the test file".to_string(),
        _ => format!("[{}/{}] {}", progress.job_number, progress.jobs, clean(&progress.job)),
    };
    let left = progress.left_s.map(|left| format!("at most {} left", span(left)));
    let written = (progress.bytes_written > 0)
        .then(|| format!("{} written", bytes_iec(progress.bytes_written)));
    let mut parts: Vec<String> = [Some(head), left, written].into_iter().flatten().collect();
    while parts.len() > 1 && width(&parts.join(" · ")) > columns {
        parts.pop();
    }
    shorten(&parts.join(" · "), columns)
}

/// What is printed once a job is done, where the live line was: "[3/10] 4 KiB random reads  …".
pub fn done(job_number: u32, jobs: u32, result: &JobResult) -> String {
    let verdict = match result.outcome {
        Outcome::Inconclusive => "  did not settle",
        Outcome::Converged | Outcome::Capped => "",
    };
    let rate = if result.operation.is_of_file() {
        files(result.iops.value)
    } else {
        rate_si(result.bytes_per_second.value)
    };
    let head = format!("[{job_number}/{jobs}] {}", clean(&job_title_of(result)));
    format!("{}  {rate} {}{verdict}", pad_right(&head, 33), plus_minus(&result.iops))
}

fn files(per_second: f64) -> String {
    format!("{} files/s", iops(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measuring() -> Progress {
        Progress {
            phase: Phase::Measuring,
            job: "4 KiB random writes ×32".into(),
            job_number: 6,
            jobs: 10,
            live_bytes_per_second: Some(312e3),
            so_far: Some(Estimate::new(356e3, 298e3, 414e3)),
            live_files_per_second: None,
            files_so_far: None,
            elapsed_s: 41.3,
            left_s: Some(48.0),
            bytes_written: 301 << 20,
        }
    }

    #[test]
    fn what_matters_least_goes_first_when_the_terminal_is_narrow() {
        let lines: Vec<String> =
            [140, 110, 90, 70, 60, 40, 20].map(|c| line(&measuring(), c)).into();
        insta::assert_snapshot!(lines.join("\n"), @r"
        [6/10] 4 KiB random writes ×32     356 kB/s ±16 % · now 312 kB/s · at most 48 s left · 41 s · 301 MiB written
        [6/10] 4 KiB random writes ×32     356 kB/s ±16 % · now 312 kB/s · at most 48 s left · 41 s · 301 MiB written
        [6/10] 4 KiB random writes ×32     356 kB/s ±16 % · now 312 kB/s · at most 48 s left
        [6/10] 4 KiB random writes ×32     356 kB/s ±16 % · at most 48 s left
        [6/10] 4 KiB random writes ×32     356 kB/s ±16 %
        [6/10] 4 KiB random writes ×32
        [6/10] 4 KiB random…
        ");
    }

    #[test]
    fn every_phase_says_what_it_is() {
        let phases = [Phase::Filling, Phase::WarmUp, Phase::Flushing];
        let lines: Vec<String> = phases
            .map(|phase| line(&Progress { phase, so_far: None, left_s: None, ..measuring() }, 80))
            .into();
        insta::assert_snapshot!(lines.join("\n"), @r"
        making the test file               now 312 kB/s · 41 s · 301 MiB written
        [6/10] 4 KiB random writes ×32     warming up · now 312 kB/s · 301 MiB written
        [6/10] 4 KiB random writes ×32     flushing · now 312 kB/s · 301 MiB written
        ");
    }

    #[test]
    fn never_wider_than_the_terminal() {
        for columns in 0..150 {
            assert!(width(&line(&measuring(), columns)) <= columns);
        }
    }

    #[test]
    fn a_finished_job_leaves_a_line() {
        let mut result = rubus_fixtures::slow_sd_card_run().results.remove(0);
        assert_eq!(done(6, 10, &result), "[6/10] 1 MiB sequential reads      22.6 MB/s ±1.0 %");
        result.outcome = Outcome::Inconclusive;
        assert!(done(6, 10, &result).ends_with("did not settle"));
        result.operation = rubus_vocabulary::spec::Operation::DeleteFile;
        assert!(done(6, 10, &result).contains("21.6 files/s"));
    }
}
