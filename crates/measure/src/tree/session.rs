//! A session on small files: phase after phase, each on the files that the one before left.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_stats::Rng;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, JobResult, TargetKind};
use rubus_vocabulary::spec::{Direction, Job, Operation, Pattern, Suite};
use rubus_vocabulary::title::spec_title;
use rustix::fs::{Mode, OFlags, open};

use crate::error::{BenchError, advice};
use crate::event::{Event, Observer};
use crate::filesystem::{self, Filesystem};
use crate::frame::{
    Done, Frame, Jobs, Measured, MeasuredTarget, Session, SessionOutcome, run_jobs,
};
use crate::lanes::Queueing;
use crate::live::LiveRig;
use crate::measure::measure;
use crate::measurement::{Measurement, Place, expected_s};
use crate::outcome::content_name;
use crate::passes::{Kind, Pass, join};
use crate::runner::Task;
use crate::target::Target;
use crate::tree::rig::TreeRig;
use crate::tree::work::Phase;
use crate::tree::{FILES_PER_DIRECTORY, Group, Tree};
use crate::work::{Engine, Work};
use rubus_host::ticks::now_ns;

/// Files that are made to find out how many a pass may have.
const TRIAL_FILES: u64 = 256;
/// A pass shall take about this long, in seconds, its flush included.
const PASS_S: f64 = 2.5;
/// Passes that say something.
const MIN_PASSES: usize = 3;
/// The warm-up of a phase that is judged by its own course.
const WARM_UP_NS: u64 = 500_000_000;
/// A phase warms up with at most this part of its files.
const WARM_UP_PART: u64 = 10;
/// Share of contents in memory from which reading is not cold.
const CACHED: f64 = 0.05;
/// What any phase costs besides its own time, in seconds.
const AROUND_JOB_S: f64 = 1.0;

/// Runs a suite of phases on small files.
///
/// # Errors
/// As for [`crate::run`].
pub(crate) fn run(
    session: Session<'_>,
    observer: &mut dyn Observer,
) -> Result<SessionOutcome, BenchError> {
    let start_ns = now_ns();
    let Target::Directory { path } = &session.target else {
        return Err(BenchError::Target {
            path: session.target.path().display().to_string(),
            reason: "small files need a directory; name one on the disk to be measured".into(),
        });
    };
    let trouble = |tried: &str, errno| BenchError::Target {
        path: path.display().to_string(),
        reason: format!("cannot {tried}: {}{}", std::io::Error::from(errno), advice(errno)),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory =
        open(path, flags, Mode::empty()).map_err(|errno| trouble("open the directory", errno))?;
    let filesystem = filesystem::of(directory.as_fd());
    let tree = Tree::make(directory.as_fd())
        .map_err(|errno| trouble("make a directory for the test in it", errno))?;
    let mut watch = session.watch;
    let is_virtual = filesystem.as_ref().is_some_and(Filesystem::has_no_device);
    if is_virtual {
        watch.device = None;
    }
    let absolute = std::path::absolute(path);
    let target = MeasuredTarget {
        kind: TargetKind::Directory,
        path: absolute.as_ref().unwrap_or(path).display().to_string(),
        filesystem: filesystem.as_ref().map(|filesystem| filesystem.name.clone()),
        region_bytes: 0,
        access: Access::Buffered,
        content: content_name(session.suite.content),
        network: None,
    };
    let (frame, watcher) = Frame::begin(start_ns, target, watch, observer);
    let live = LiveRig::new(watcher, TargetKind::Directory, Queueing::THREADS);
    let mut tree_session = TreeSession {
        rig: TreeRig::new(live, Arc::clone(tree.root())),
        tree: &tree,
        suite: session.suite,
        cancel: session.cancel,
        start_ns,
        in_memory: filesystem.filter(|_| is_virtual),
        pass_files: 0,
        groups: Vec::new(),
        next_group: 0,
        max_files: 0,
        bytes_written: 0,
        results: Vec::new(),
    };
    let ended_by = run_jobs(session.suite, session.cancel, &mut tree_session, observer).err();
    let (results, bytes_written) = (tree_session.results, tree_session.bytes_written);
    let region_bytes = tree_session.max_files * file_bytes(session.suite);
    observer.event(&Event::Preparing { what: "removing the test files" });
    drop(tree);
    let done = Done { results, findings: Vec::new(), bytes_written, region_bytes, ended_by };
    Ok(frame.end(done, None))
}

/// Size of the files of a suite.
fn file_bytes(suite: &Suite) -> u64 {
    let sizes = suite.jobs.iter().map(|job| u64::from(job.block_bytes));
    sizes.max().unwrap_or(0)
}

fn makes_files(job: &Job) -> bool {
    matches!(job.operation, Operation::CreateFile | Operation::CreateFileDurably)
}

/// Runs the phases on one tree.
struct TreeSession<'a> {
    rig: TreeRig,
    tree: &'a Tree,
    suite: &'a Suite,
    cancel: &'a AtomicBool,
    start_ns: u64,
    /// The filesystem, if it has no disk below.
    in_memory: Option<Filesystem>,
    pass_files: u64,
    /// The groups of files that exist.
    groups: Vec<Arc<Group>>,
    next_group: u32,
    /// The most files that existed at a time.
    max_files: u64,
    bytes_written: u64,
    results: Vec<JobResult>,
}

impl Jobs for TreeSession<'_> {
    fn run(&mut self, index: usize, observer: &mut dyn Observer) -> Result<Measured, BenchError> {
        let suite = self.suite;
        let job = &suite.jobs[index];
        if self.pass_files == 0 {
            self.find_pass_size(job, observer)?;
        }
        if let Some(reason) = self.prepare(job, observer)? {
            return Ok(Err(reason));
        }
        observer.event(&Event::JobStarted {
            index,
            of: suite.jobs.len(),
            job,
            engine: engine(job).name(),
        });
        Ok(Ok(self.run_job(job, index, observer)?))
    }

    fn results(&mut self) -> &mut Vec<JobResult> {
        &mut self.results
    }
}

impl TreeSession<'_> {
    /// Makes a few files to find out how many take as long as a pass shall.
    fn find_pass_size(&mut self, job: &Job, observer: &mut dyn Observer) -> Result<(), BenchError> {
        observer.event(&Event::Preparing { what: "finding out how many files to use" });
        let in_job = |job: &Job| job.stop.max_bytes / u64::from(job.block_bytes.max(1));
        let creating = self.suite.jobs.iter().find(|job| makes_files(job));
        let most = creating.map_or(TRIAL_FILES, in_job);
        self.sync(job)?;
        let trial = TRIAL_FILES.min(most.max(1));
        let group = self.new_group(trial);
        let phase = Phase {
            operation: Operation::CreateFile,
            groups: vec![group],
            order: Arc::default(),
            file_bytes: file_bytes(self.suite) as u32,
            content: self.suite.content,
            seed: Rng::stream(self.suite.seed, u64::MAX).next_u64(),
            goes_round: false,
            workers: 1,
            max_files: trial,
            warm_up_ns: u64::MAX,
            warm_up_files: u64::MAX,
        };
        let begun_ns = now_ns();
        let mut workers =
            phase.start().map_err(|error| BenchError::Engine { job: spec_title(job), error })?;
        while !workers.poll(std::time::Duration::from_millis(50)) {
            if self.cancel.load(Ordering::Relaxed) {
                workers.stop();
            }
        }
        if let Some(error) = workers.completions()[0].failure() {
            return Err(BenchError::TargetFailed { job: spec_title(job), error: error.into() });
        }
        self.sync(job)?;
        let per_file_s = (now_ns() - begun_ns) as f64 / 1e9 / trial as f64;
        self.bytes_written += trial * file_bytes(self.suite);
        let directory = u64::from(FILES_PER_DIRECTORY);
        let fitting = (PASS_S / per_file_s) as u64 / directory * directory;
        self.pass_files = fitting.max(TRIAL_FILES).min(most);
        self.clear(job)
    }

    /// Brings the tree into the state that the job is to find; gives why it cannot run, if it
    /// cannot.
    fn prepare(
        &mut self,
        job: &Job,
        observer: &mut dyn Observer,
    ) -> Result<Option<String>, BenchError> {
        if let Some(most_s) = self.suite.max_seconds {
            let spent_s = (now_ns() - self.start_ns) as f64 / 1e9;
            if spent_s + job.stop.min_seconds > most_s {
                return Ok(Some("the time for the suite is over".into()));
            }
        }
        if makes_files(job) {
            if !self.groups.is_empty() {
                observer.event(&Event::Preparing { what: "removing the test files" });
                self.clear(job)?;
            }
            return Ok(None);
        }
        if self.groups.iter().all(|group| group.files().is_empty()) {
            return Ok(Some("there are no files left to do it with".into()));
        }
        if job.drop_caches {
            self.drop_caches(job, observer)?;
        }
        Ok(None)
    }

    /// Empties all caches of the kernel for files.
    fn drop_caches(&mut self, job: &Job, observer: &mut dyn Observer) -> Result<(), BenchError> {
        observer.event(&Event::Preparing { what: "emptying the caches of the machine" });
        self.sync(job)?;
        // 3: contents as well as names and attributes (kernel documentation, admin-guide/sysctl/vm).
        std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|error| BenchError::Engine {
            job: spec_title(job),
            error: format!("cannot empty the caches of the machine: {error}; only root can"),
        })
    }

    fn new_group(&mut self, files: u64) -> Arc<Group> {
        let group = Group::new(Arc::clone(self.tree.root()), self.next_group, files);
        self.next_group += 1;
        let group = Arc::new(group);
        self.groups.push(Arc::clone(&group));
        group
    }

    /// Removes all files and waits until that is on the disk.
    fn clear(&mut self, job: &Job) -> Result<(), BenchError> {
        self.tree.clear();
        self.groups.clear();
        self.sync(job)
    }

    fn sync(&mut self, job: &Job) -> Result<(), BenchError> {
        match self.rig.sync(self.cancel) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(BenchError::Interrupted { job: spec_title(job) }),
            Err(error) => Err(BenchError::TargetFailed { job: spec_title(job), error }),
        }
    }

    fn run_job(
        &mut self,
        job: &Job,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, BenchError> {
        let measurement = match job.passes {
            0 | 1 => {
                let mut doubts = self.make_cold(job, observer);
                doubts.extend(self.memory_doubt());
                let group =
                    if makes_files(job) { Some(self.new_group(self.files_of(job))) } else { None };
                self.one(job, index, group.as_ref(), doubts, observer)
            }
            _ => self.passes(job, index, observer)?,
        };
        let exist: u64 = self.groups.iter().map(|g| g.files().len() as u64).sum();
        self.max_files = self.max_files.max(exist);
        self.bytes_written += measurement.bytes_written;
        Ok(measurement)
    }

    /// Repeats a job on new files, or on one group of files after the other, until the passes agree.
    fn passes(
        &mut self,
        job: &Job,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, BenchError> {
        let begun_ns = now_ns();
        let mut passes: Vec<Pass> = Vec::new();
        let mut doubts: Vec<Doubt> = self.memory_doubt().into_iter().collect();
        let ready: Vec<Arc<Group>> =
            if makes_files(job) { Vec::new() } else { std::mem::take(&mut self.groups) };
        let mut ready = ready.into_iter();
        while passes.len() < job.passes as usize {
            let group = if makes_files(job) {
                Some(self.new_group(self.files_of(job)))
            } else {
                ready.next()
            };
            let Some(group) = group else { break };
            let pass_ns = now_ns();
            let doubts = std::mem::take(&mut doubts);
            let measurement = self.one(job, index, Some(&group), doubts, observer);
            let failed = measurement.failure.is_some();
            passes.push(Pass {
                started_s: (pass_ns - begun_ns) as f64 / 1e9,
                lasted_s: (now_ns() - pass_ns) as f64 / 1e9,
                measurement,
            });
            let elapsed_s = (now_ns() - begun_ns) as f64 / 1e9;
            let next_s = elapsed_s / passes.len() as f64;
            let is_precise = passes.len() >= MIN_PASSES
                && Pass::rate(&passes)
                    .is_some_and(|rate| rate.relative_half_width() <= job.stop.relative_half_width);
            if failed || is_precise || elapsed_s + next_s > job.stop.max_seconds {
                break;
            }
        }
        // What was not deleted stays for the clean-up.
        self.groups.extend(ready);
        Ok(join(job, Kind::Repetitions, passes))
    }

    fn files_of(&self, job: &Job) -> u64 {
        let most = job.stop.max_bytes / u64::from(job.block_bytes.max(1));
        match job.passes {
            0 | 1 => most,
            _ => most.min(self.pass_files),
        }
    }

    /// Runs a job once, on one group or on all files that exist.
    fn one(
        &mut self,
        job: &Job,
        index: usize,
        group: Option<&Arc<Group>>,
        doubts: Vec<Doubt>,
        observer: &mut dyn Observer,
    ) -> Measurement {
        let phase = self.phase(job, index, group);
        let work = self.work(job, &phase);
        self.rig.set_phase(phase);
        let task = Task {
            job,
            work,
            access: Access::Buffered,
            title: None,
            unusual_access: None,
            is_switched: false,
            on: None,
            doubts,
        };
        let left = self
            .suite
            .jobs
            .iter()
            .skip(index + 1)
            .map(|job| expected_s(job.stop.min_seconds, job.stop.max_seconds) + AROUND_JOB_S);
        let place = Place {
            index,
            of: self.suite.jobs.len(),
            session_start_ns: self.start_ns,
            written_before: self.bytes_written,
            left_after_s: left.sum(),
        };
        measure(&mut self.rig, &task, &[], place, self.cancel, observer)
    }

    fn phase(&self, job: &Job, index: usize, group: Option<&Arc<Group>>) -> Phase {
        let mut rng = Rng::stream(self.suite.seed, index as u64);
        let seed = rng.next_u64().wrapping_add(u64::from(self.next_group) << 44);
        // Phases that look take all files that exist; the groups differ only in their names.
        let looked_at: Vec<Arc<Group>> = match group {
            Some(group) => vec![Arc::clone(group)],
            None => self.groups.clone(),
        };
        let mut order = Vec::new();
        if job.direction == Direction::Read {
            for (number, group) in (0_u32..).zip(&looked_at) {
                let files = group.files().into_iter();
                order.extend(files.map(|(directory, file)| (number, directory, file)));
            }
            if job.pattern == Pattern::Random {
                rng.shuffle(&mut order);
            }
        }
        // What is in memory anyhow stays there; what was cold is cold only once.
        let goes_round = job.operation == Operation::StatFile && !job.drop_caches;
        let max_files = match (group, makes_files(job)) {
            _ if goes_round && !order.is_empty() => u64::MAX,
            (_, true) => self.files_of(job),
            (Some(group), false) => group.files().len() as u64,
            (None, false) => order.len() as u64,
        };
        let whole_pass = job.passes > 1;
        Phase {
            operation: job.operation,
            groups: looked_at,
            order: Arc::new(order),
            file_bytes: job.block_bytes,
            content: job.content.unwrap_or(self.suite.content),
            seed,
            goes_round,
            workers: job.queue_depth.max(1),
            max_files,
            warm_up_ns: if whole_pass { u64::MAX } else { WARM_UP_NS },
            warm_up_files: if whole_pass { u64::MAX } else { max_files / WARM_UP_PART },
        }
    }

    /// The little of the work that the measuring wants to know.
    fn work(&self, job: &Job, phase: &Phase) -> Work {
        Work {
            file: Arc::clone(self.tree.root()),
            remote: None,
            engine: engine(job),
            direction: job.direction,
            pattern: job.pattern,
            block_bytes: job.block_bytes,
            queue_depth: phase.workers,
            durability: job.durability,
            region_bytes: phase.max_files * u64::from(job.block_bytes),
            append_from: None,
            settles: false,
            content: phase.content,
            seed: phase.seed,
            max_operations: phase.max_files,
            warm_up_ns: phase.warm_up_ns,
            warm_up_operations: phase.warm_up_files,
            is_buffered: true,
            one_at_a_time: false,
            is_mapped: false,
            trial_from: None,
            delay_ns: 0,
            general: None,
        }
    }

    fn memory_doubt(&self) -> Option<Doubt> {
        let why = self.in_memory.as_ref().and_then(Filesystem::hidden_cache)?;
        Some(Doubt::StillInMemory { what: why })
    }

    /// Makes what is to be looked at cold, as far as that is possible without disturbing others;
    /// gives the doubts that remain.
    fn make_cold(&mut self, job: &Job, observer: &mut dyn Observer) -> Vec<Doubt> {
        let looks = matches!(job.operation, Operation::StatFile | Operation::ReadFile);
        if !looks || self.in_memory.is_some() || job.drop_caches {
            return Vec::new();
        }
        let mut what = "names and attributes of the files".to_string();
        if job.operation == Operation::ReadFile {
            observer.event(&Event::Preparing { what: "letting the kernel forget the files" });
            let shares = self.groups.iter();
            let shares: Vec<f64> = shares
                .filter_map(|group| self.rig.forget_contents(group, job.block_bytes))
                .collect();
            let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
            if share > CACHED {
                what = format!("{:.0} % of the contents, {what}", share * 100.0);
            }
        }
        vec![Doubt::StillInMemory { what }]
    }
}

fn engine(job: &Job) -> Engine {
    match job.queue_depth {
        0 | 1 => Engine::Positional,
        _ => Engine::Threads,
    }
}
