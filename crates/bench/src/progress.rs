//! What lives on standard error while something is measured: a line, or the growing answer of a checkup; and the quiet
//! alternative.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use rubus_command::Terminal;
use rubus_command::progress::{Region, target, terminal_columns};
use rubus_command::signals::LongestStall;
use rubus_draw::Style;
use rubus_host::clock;
use rubus_measure::{Event, Observer};
use rubus_runs::record::{self, Record};
use rubus_tune::cli::Shown;
use rubus_verdict::text::{progress, so_far};
use rubus_verdict::verdict::so_far::Running;
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::spec::Job;

/// Shows a session's events: a line that lives on a terminal, records for another rubus, nothing
/// elsewhere.
pub struct LiveLine {
    face: Face,
    /// The run as far as it has come, where it grows to a verdict.
    growing: Option<Growing>,
    started: Instant,
    title: String,
    is_of_files: bool,
    left_out: Vec<String>,
    /// When an operation completed last, as far as this was told.
    moved: Instant,
    stalls: LongestStall,
}

/// A run that grows, and the job in it that gives its first figures.
struct Growing {
    run: Run,
    running: Option<Running>,
    style: Style,
    region: Region,
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
            growing: None,
            started: clock::now(),
            title: String::new(),
            is_of_files: false,
            left_out: Vec::new(),
            moved: clock::now(),
            stalls: LongestStall::default(),
        }
    }

    /// Shows the answer as it grows, where a terminal can: `run` is the run before its first result.
    pub fn growing(mut self, run: Run, terminal: Terminal) -> Self {
        if let (Face::Terminal(bar), true) = (&self.face, terminal.live) {
            bar.finish_and_clear();
            let style = Style { colour: false, ..terminal.style() };
            self.growing = Some(Growing { run, running: None, style, region: Region::default() });
        }
        self
    }

    /// The jobs that could not be run, with the reasons.
    pub fn take_left_out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    fn say(&mut self, line: &progress::Progress) {
        let columns = usize::from(terminal_columns());
        match (&self.face, &mut self.growing) {
            (Face::Records, _) => record::send(&Record::Live(line.clone())),
            (Face::Terminal(_), Some(growing)) => growing.draw(line, columns),
            // The spinner and the space after it take two columns.
            (Face::Terminal(bar), None) => {
                bar.set_message(progress::line(line, columns.saturating_sub(3)));
            }
        }
    }

    /// Leaves a line above the one that lives.
    fn leave(&mut self, line: String) {
        match (&self.face, &mut self.growing) {
            (Face::Records, _) => record::send(&Record::Line(line)),
            (Face::Terminal(_), Some(growing)) => growing.region.leave(&line),
            (Face::Terminal(bar), None) => bar.println(line),
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

    /// Takes a finished job into the answer, or leaves a line of it.
    fn finished(&mut self, index: usize, of: usize, result: &JobResult) {
        match &mut self.growing {
            Some(growing) => {
                growing.run.results.push(result.clone());
                growing.running = None;
                self.say(&progress::Progress {
                    job_number: number(index),
                    jobs: count(of),
                    ..self.plain(progress::Phase::Flushing)
                });
            }
            None => self.leave(progress::done(number(index), count(of), result)),
        }
    }

    fn goes_on(&mut self, at: &rubus_measure::Progress<'_>) {
        if let Some(growing) = &mut self.growing {
            growing.running = running(at);
        }
        self.stalls.saw(self.moved.elapsed());
        if at.iops_now > 0.0 {
            self.moved = clock::now();
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

impl Growing {
    fn draw(&mut self, at: &progress::Progress, columns: usize) {
        // A terminal breaks a line that is as wide as it is.
        let columns = columns.saturating_sub(1);
        self.region.draw(so_far::screen(&self.run, self.running.as_ref(), at, columns, self.style));
    }
}

fn running(at: &rubus_measure::Progress<'_>) -> Option<Running> {
    Some(Running {
        job: at.job.to_string(),
        bytes_per_second: at.bytes_per_second?,
        operations_per_second: at.iops?,
    })
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        if let Face::Terminal(bar) = &self.face {
            bar.finish_and_clear();
        }
        if let Some(growing) = &mut self.growing {
            growing.region.clear();
        }
    }
}

impl Observer for LiveLine {
    fn event(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Progress(_)) {
            self.moved = clock::now();
        }
        match event {
            Event::Preparing { .. } => self.say(&self.plain(progress::Phase::Filling)),
            Event::JobStarted { index, of, job, .. } => self.started(*index, *of, job),
            Event::Progress(at) => self.goes_on(at),
            Event::JobFinished { index, of, result } => {
                self.stalls.saw(Duration::from_nanos(result.latency_ns.max.unwrap_or(0)));
                self.finished(*index, *of, result);
            }
            Event::JobSkipped { job, reason, .. } => {
                self.left_out.push(format!("{}: {reason}", job.name));
                self.leave(format!("left out: {} ({reason})", progress::job_title(job)));
            }
        }
    }
}

impl Shown for LiveLine {
    fn stalls(&self) -> LongestStall {
        self.stalls.clone()
    }
}

fn number(index: usize) -> u32 {
    count(index) + 1
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
