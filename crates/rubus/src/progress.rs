//! The live line on standard error while something is measured, and the quiet alternative.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rubus_command::Terminal;
use rubus_command::progress::{target, terminal_columns};
use rubus_command::signals::LongestStall;
use rubus_measure::{Event, Observer};
use rubus_verdict::text::progress;
use rubus_vocabulary::spec::Job;

use crate::record::{self, Record};

/// Shows a session's events: a line that lives on a terminal, records for another rubus, nothing
/// elsewhere.
pub struct LiveLine {
    face: Face,
    started: Instant,
    title: String,
    is_of_files: bool,
    left_out: Vec<String>,
    /// When an operation completed last, as far as this was told.
    moved: Instant,
    stalls: LongestStall,
}

enum Face {
    Terminal(ProgressBar),
    Records,
}

impl LiveLine {
    /// A line on standard error, if there is a terminal to live on.
    pub fn new(terminal: Terminal) -> Self {
        let face = if terminal.records {
            Face::Records
        } else {
            let bar = ProgressBar::with_draw_target(None, target(terminal));
            // The template is a constant without fields that could be wrong.
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}").expect("a constant template"),
            );
            bar.enable_steady_tick(Duration::from_millis(250));
            Face::Terminal(bar)
        };
        LiveLine {
            face,
            started: Instant::now(),
            title: String::new(),
            is_of_files: false,
            left_out: Vec::new(),
            moved: Instant::now(),
            stalls: LongestStall::default(),
        }
    }

    /// The longest time in which nothing was done, as it is seen.
    pub fn stalls(&self) -> LongestStall {
        self.stalls.clone()
    }

    /// The jobs that could not be run, with the reasons.
    pub fn take_left_out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    fn say(&self, line: &progress::Progress) {
        match &self.face {
            Face::Terminal(bar) => {
                // The spinner and the space after it take two columns.
                let columns = usize::from(terminal_columns()).saturating_sub(3);
                bar.set_message(progress::line(line, columns));
            }
            Face::Records => record::send(&Record::Live(line.clone())),
        }
    }

    /// Leaves a line above the one that lives.
    fn leave(&self, line: String) {
        match &self.face {
            Face::Terminal(bar) => bar.println(line),
            Face::Records => record::send(&Record::Line(line)),
        }
    }

    fn plain(&self, phase: progress::Phase) -> progress::Progress {
        progress::Progress {
            phase,
            job: self.title.clone(),
            job_number: 0,
            jobs: 0,
            live_bytes_per_second: None,
            so_far: None,
            live_files_per_second: None,
            files_so_far: None,
            elapsed_s: self.started.elapsed().as_secs_f64(),
            left_s: None,
            bytes_written: 0,
        }
    }

    fn started(&mut self, index: usize, of: usize, job: &Job) {
        self.title = progress::job_title(job);
        self.is_of_files = job.operation.is_of_file();
        self.say(&progress::Progress {
            job_number: number(index),
            jobs: count(of),
            ..self.plain(progress::Phase::WarmUp)
        });
    }

    fn goes_on(&mut self, at: &rubus_measure::Progress<'_>) {
        self.stalls.saw(self.moved.elapsed());
        if at.iops_now > 0.0 {
            self.moved = Instant::now();
        }
        let phase = match at.phase {
            rubus_measure::Phase::WarmUp => progress::Phase::WarmUp,
            rubus_measure::Phase::Measuring => progress::Phase::Measuring,
            rubus_measure::Phase::Finishing => progress::Phase::Flushing,
        };
        self.say(&progress::Progress {
            job_number: number(at.index),
            jobs: count(at.of),
            live_bytes_per_second: Some(at.bytes_per_second_now).filter(|_| !self.is_of_files),
            so_far: at.bytes_per_second.filter(|_| !self.is_of_files),
            live_files_per_second: Some(at.iops_now).filter(|_| self.is_of_files),
            files_so_far: at.iops.filter(|_| self.is_of_files),
            left_s: Some(at.left_s),
            bytes_written: at.bytes_written,
            ..self.plain(phase)
        });
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if let Face::Terminal(bar) = &self.face {
            bar.finish_and_clear();
        }
    }
}

impl Observer for LiveLine {
    fn event(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Progress(_)) {
            self.moved = Instant::now();
        }
        match event {
            Event::Preparing { .. } => self.say(&self.plain(progress::Phase::Filling)),
            Event::JobStarted { index, of, job, .. } => self.started(*index, *of, job),
            Event::Progress(at) => self.goes_on(at),
            Event::JobFinished { index, of, result } => {
                self.stalls.saw(Duration::from_nanos(result.latency_ns.max.unwrap_or(0)));
                self.leave(progress::done(number(*index), count(*of), result));
            }
            Event::JobSkipped { job, reason, .. } => {
                self.left_out.push(format!("{}: {reason}", job.name));
                self.leave(format!("left out: {} ({reason})", progress::job_title(job)));
            }
        }
    }
}

fn number(index: usize) -> u32 {
    count(index) + 1
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
