//! Measuring with the program's engine, and again when something else on the machine disturbed it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use rubus_stats::estimate::Estimate;
use serde_json::Value;
use tempfile::TempDir;

use crate::devices::{BlockGroup, mark, programs};
use crate::tools;

/// Share of the time in which some program waited for a processor from which a measurement that hardly needs one counts as disturbed.
const BUSY: f64 = 0.25;
/// How long a job of a job file lasts, and how long it runs before that, in milliseconds. The throttle of the control groups works in
/// slices of 100 ms.
const RUN_MS: u32 = 2000;
const RAMP_MS: u32 = 500;

/// What one job gave.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The job's name.
    pub job: String,
    /// When measuring began; long ago when that was not noted.
    pub began: SystemTime,
    /// Bytes per operation.
    pub block_bytes: u64,
    /// Operations in flight.
    pub depth: u32,
    /// Operations per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub bytes_per_second: Estimate,
    /// Processor time for each operation in seconds, of programs, the kernel and interrupts together.
    pub processors_s: f64,
    /// Share of the time in which programs waited for a processor meanwhile.
    pub starved: f64,
    /// How often it was measured again.
    pub again: u32,
    /// True when the last time was disturbed, too.
    pub is_disturbed: bool,
}

impl Measured {
    /// One rate of whatever is counted.
    pub fn of_rate(job: &str, per_second: Estimate) -> Measured {
        Measured {
            job: job.into(),
            began: UNIX_EPOCH,
            block_bytes: 1,
            depth: 1,
            iops: per_second,
            bytes_per_second: per_second,
            processors_s: 0.0,
            starved: 0.0,
            again: 0,
            is_disturbed: false,
        }
    }
}

/// A job of a job file.
#[derive(Clone, Debug)]
pub struct Job {
    name: String,
    lines: String,
}

impl Job {
    /// A job that runs for its time: `rw` as fio calls it.
    pub fn timed(name: impl Into<String>, rw: &str, bytes: u64, depth: u32) -> Job {
        let name = name.into();
        let lines = format!(
            "rw={rw}\nbs={bytes}\niodepth={depth}\nioengine=io_uring\ndirect=1\nramp_time={RAMP_MS}ms\ntime_based\nruntime={RUN_MS}ms\n"
        );
        Job { name, lines }
    }

    /// A job that goes once over `size_bytes` bytes, through the page cache.
    pub fn once(name: impl Into<String>, rw: &str, bytes: u64, size_bytes: u64) -> Job {
        let name = name.into();
        let lines = format!("rw={rw}\nbs={bytes}\nsize={size_bytes}\nioengine=psync\ndirect=0\n");
        Job { name, lines }
    }

    /// One more line, or another value for one that is there.
    pub fn with(mut self, option: &str, value: impl std::fmt::Display) -> Job {
        let _ = writeln!(self.lines, "{option}={value}");
        self
    }
}

/// Where the program is, and a home of its own.
#[derive(Debug)]
pub struct Rig {
    rubus: PathBuf,
    home: TempDir,
    again: u32,
}

impl Rig {
    /// A rig that measures with this program and repeats a disturbed measurement up to `again` times.
    ///
    /// # Errors
    /// When the program is not there or there is no room for its home.
    pub fn new(rubus: &Path, again: u32) -> Result<Rig> {
        let rubus =
            rubus.canonicalize().with_context(|| format!("no program at {}", rubus.display()))?;
        let home = mark::directory()?;
        // Servers that are started later are as first among programs as what measures them. Who may not is as quick as he may be.
        let _ = rustix::process::nice(-20);
        Ok(Rig { rubus, home, again })
    }

    /// Path of the measured `rubus` program.
    pub fn program(&self) -> &Path {
        &self.rubus
    }

    /// A copy of the program under the name by which it is found on a board.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub fn program_for_a_board(&self) -> Result<PathBuf> {
        let copy = self.directory().join("rubus");
        std::fs::copy(&self.rubus, &copy).context("could not copy the program")?;
        Ok(copy)
    }

    /// A directory of its own, gone at the end.
    pub fn directory(&self) -> &Path {
        self.home.path()
    }

    /// The program, first among ordinary ones, which ends with the thread that starts it; inside a control group when there is one.
    pub fn command(&self, group: Option<&BlockGroup>) -> Command {
        let keeper = tools::KEEPER.program;
        let mut command = match group {
            Some(group) => group.command(keeper),
            None => programs::command(keeper),
        };
        command
            .args(["--pdeathsig", "KILL", "nice", "-n", "-20"])
            .arg(&self.rubus)
            .env("HOME", self.home.path())
            .env("XDG_DATA_HOME", self.home.path())
            .env("NO_COLOR", "1")
            .current_dir(self.home.path());
        command
    }

    /// Runs jobs one after the other on `target`; what is on a device is lost.
    ///
    /// # Errors
    /// When the program fails or one of the jobs was not run.
    pub fn jobs(
        &self,
        group: Option<&BlockGroup>,
        target: Option<&Path>,
        jobs: &[Job],
    ) -> Result<Vec<Measured>> {
        let file = self.home.path().join("jobs.fio");
        std::fs::write(&file, job_file(jobs))?;
        let mut command = self.command(group);
        command.args(["bench", "--no-html", "--fio-job"]).arg(&file);
        if let Some(target) = target {
            command.arg(target);
            if !target.is_dir() {
                let lose = format!("--i-will-lose-everything-on={}", target.display());
                command.arg(lose);
            }
        }
        results_of(&bench(command)?, jobs)
    }

    /// What a suite reads of a network disk; again when programs waited for a processor.
    ///
    /// # Errors
    /// When the program fails.
    pub fn sweep(&self, address: &str, suite: &str, more: &[&str]) -> Result<Vec<Measured>> {
        self.undisturbed(|| self.reads(address, suite, more))
    }

    /// The same, but once: for servers that need the processors as much as their client, so that processes wait for one
    /// in any sweep.
    ///
    /// # Errors
    /// When the program fails.
    pub fn sweep_once(&self, address: &str, suite: &str, more: &[&str]) -> Result<Vec<Measured>> {
        once(|| timed(|| self.reads(address, suite, more)))
    }

    fn reads(&self, address: &str, suite: &str, more: &[&str]) -> Result<Vec<Measured>> {
        let mut command = self.command(None);
        command.args(["bench", address, "--suite", suite, "--read-only", "--no-html"]);
        command.args(["--precision", "25%"]).args(more);
        read_results(&bench(command)?)
    }

    /// Measures, and again when programs waited for a processor: for what hardly needs one itself. The calmest time counts.
    ///
    /// # Errors
    /// When measuring fails.
    pub fn undisturbed(
        &self,
        mut measure: impl FnMut() -> Result<Vec<Measured>>,
    ) -> Result<Vec<Measured>> {
        calmest(self.again, || {
            let found = timed(&mut measure)?;
            if found.starved > BUSY {
                std::thread::sleep(Duration::from_secs(1));
            }
            Ok(found)
        })
    }

    /// Measures `times` times and takes the fastest result of each job: for work that is bound by the processors, which
    /// other programs can only slow down.
    ///
    /// # Errors
    /// When measuring fails.
    pub fn fastest(
        &self,
        times: u32,
        mut measure: impl FnMut() -> Result<Vec<Measured>>,
    ) -> Result<Vec<Measured>> {
        let mut best: Vec<Measured> = Vec::new();
        for _ in 0..times {
            for (i, one) in once(|| timed(&mut measure))?.into_iter().enumerate() {
                match best.get_mut(i) {
                    Some(kept) if kept.iops.value < one.iops.value => *kept = one,
                    Some(_) => {}
                    None => best.push(one),
                }
            }
        }
        Ok(best)
    }
}

/// One time that something was measured.
struct Time {
    began: SystemTime,
    /// Share of the time in which programs waited for a processor.
    starved: f64,
    found: Vec<Measured>,
}

impl Time {
    fn mark(self, again: u32, is_disturbed: bool) -> Vec<Measured> {
        let mut found = self.found;
        for one in &mut found {
            one.began = self.began;
            one.starved = self.starved;
            one.again = again;
            one.is_disturbed = is_disturbed;
        }
        found
    }
}

fn timed(measure: impl FnOnce() -> Result<Vec<Measured>>) -> Result<Time> {
    let (began, since) = (SystemTime::now(), Waiting::now());
    let found = measure()?;
    Ok(Time { began, starved: since.share(), found })
}

/// Measures once, however busy the processors are: waiting for one is no disturbance.
fn once(time: impl FnOnce() -> Result<Time>) -> Result<Vec<Measured>> {
    Ok(time()?.mark(0, false))
}

/// The first time in which hardly anybody waited for a processor, or else the calmest of those that there may be.
fn calmest(again: u32, mut time: impl FnMut() -> Result<Time>) -> Result<Vec<Measured>> {
    let mut best: Option<(u32, Time)> = None;
    for number in 0..=again {
        let time = time()?;
        let is_calm = time.starved <= BUSY;
        if best.as_ref().is_none_or(|(_, kept)| time.starved < kept.starved) {
            best = Some((number, time));
        }
        if is_calm {
            break;
        }
    }
    Ok(best.map_or_else(Vec::new, |(number, time)| {
        let is_disturbed = time.starved > BUSY;
        time.mark(number, is_disturbed)
    }))
}

/// Jobs as a job file: they run one after the other.
pub(super) fn job_file(jobs: &[Job]) -> String {
    let mut text = String::new();
    for job in jobs {
        let _ = write!(text, "[{}]\nstonewall\n{}\n", job.name, job.lines);
    }
    text
}

/// What a run gave for each of these jobs.
///
/// # Errors
/// When one of them was not run.
pub(super) fn results_of(run: &Value, jobs: &[Job]) -> Result<Vec<Measured>> {
    let found = read_results(run)?;
    let is_there = |wanted: &&Job| found.iter().any(|one| one.job == wanted.name);
    if let Some(job) = jobs.iter().find(|job| !is_there(job)) {
        bail!("the job {} was not measured", job.name);
    }
    Ok(found)
}

/// Adds what every measurement has, runs it, and gives the run.
///
/// # Errors
/// When the program fails.
pub(super) fn bench(mut command: Command) -> Result<Value> {
    command.args(["--json", "-", "--no-history", "--quiet"]);
    let output = command.output().context("could not start the program")?;
    if !output.status.success() {
        bail!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("its JSON")
}

fn read_results(run: &Value) -> Result<Vec<Measured>> {
    let results = run["results"].as_array().context("a run without results")?;
    results.iter().map(read_result).collect()
}

fn read_result(result: &Value) -> Result<Measured> {
    let estimate = |field: &str| -> Result<Estimate> {
        serde_json::from_value(result[field].clone())
            .with_context(|| format!("{field} in {result}"))
    };
    let iops = estimate("iops")?;
    Ok(Measured {
        job: result["job"].as_str().unwrap_or_default().into(),
        began: UNIX_EPOCH,
        block_bytes: result["block_bytes"].as_u64().unwrap_or(1),
        depth: result["queue_depth"]
            .as_u64()
            .and_then(|depth| u32::try_from(depth).ok())
            .unwrap_or(1),
        processors_s: busy_processors(&result["cpu"]) / iops.value,
        iops,
        bytes_per_second: estimate("bytes_per_second")?,
        starved: 0.0,
        again: 0,
        is_disturbed: false,
    })
}

/// How many processors worked, on the average, by the shares that a result gives of the time of all; 0 when it gives none.
fn busy_processors(cpu: &Value) -> f64 {
    let share = |field: &str| cpu[field].as_f64().unwrap_or(0.0);
    let shares: f64 = ["user", "system", "irq", "softirq"].map(share).iter().sum();
    let processors = cpu["per_core_busy"].as_array().map_or(0, Vec::len);
    shares * processors as f64
}

/// The job of that name.
///
/// # Errors
/// When there is none.
pub fn job<'a>(found: &'a [Measured], name: &str) -> Result<&'a Measured> {
    found.iter().find(|one| one.job == name).with_context(|| format!("no result of {name}"))
}

/// The kernel's account of programs that waited for a processor; zero where it keeps none.
struct Waiting {
    began: Instant,
    waited_us: u64,
}

impl Waiting {
    fn now() -> Waiting {
        Waiting { began: Instant::now(), waited_us: waited_us() }
    }

    fn share(&self) -> f64 {
        let waited_s = waited_us().saturating_sub(self.waited_us) as f64 / 1e6;
        waited_s / self.began.elapsed().as_secs_f64()
    }
}

fn waited_us() -> u64 {
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix("total="))
    });
    total.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Processors, memory and kernel, in words.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let release = read("/proc/sys/kernel/osrelease");
    let version: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    format!("{processors} × {model}, Linux {}", version.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_that_was_not_run_is_named() {
        let rate = json!({"value": 8.0, "low": 7.0, "high": 9.0});
        let result = json!({"job": "a", "block_bytes": 4096, "queue_depth": 8, "iops": rate,
            "bytes_per_second": rate,
            "cpu": {"user": 0.1, "system": 0.2, "irq": 0.0, "softirq": 0.1, "iowait": 0.5, "per_core_busy": [0.4, 0.4]}});
        let run = json!({"results": [result]});
        let wanted = |name: &str| Job::timed(name, "randread", 4096, 8);
        let found = results_of(&run, &[wanted("a")]).unwrap();
        assert_eq!((found[0].block_bytes, found[0].depth), (4096, 8));
        assert!((found[0].processors_s - 0.1).abs() < 1e-12, "{:?}", found[0]);
        let error = results_of(&run, &[wanted("a"), wanted("b")]).unwrap_err();
        assert_eq!(error.to_string(), "the job b was not measured");
    }

    /// Times that are so busy, one after the other, and how many of them there were in the end.
    fn of_times(
        starved: &[f64],
        measure: impl FnOnce(&mut dyn FnMut() -> Result<Time>) -> Result<Vec<Measured>>,
    ) -> (Measured, usize) {
        let mut times = starved.iter();
        let mut time = || {
            let starved = *times.next().context("measured too often")?;
            Ok(Time {
                began: UNIX_EPOCH,
                starved,
                found: vec![Measured::of_rate("a", Estimate::exact(1.0))],
            })
        };
        let found = measure(&mut time).unwrap().remove(0);
        (found, starved.len() - times.len())
    }

    #[test]
    fn a_time_in_which_programs_waited_is_measured_again_until_it_is_calm() {
        let of = |starved: &[f64]| of_times(starved, |time| calmest(2, time));
        let (found, times) = of(&[0.1, 0.0, 0.0]);
        assert_eq!((found.starved, found.again, times), (0.1, 0, 1));
        let (found, times) = of(&[0.9, 0.2, 0.0]);
        assert_eq!((found.starved, found.again, times), (0.2, 1, 2));
        assert!(!found.is_disturbed);
        let (found, times) = of(&[0.9, 0.5, 0.7]);
        assert_eq!((found.starved, found.again, times), (0.5, 1, 3));
        assert!(found.is_disturbed);
    }

    #[test]
    fn once_is_once_however_many_waited_for_a_processor() {
        let (found, times) = of_times(&[0.9, 0.0, 0.0], |time| once(time));
        assert_eq!((found.starved, found.again, times), (0.9, 0, 1));
        assert!(!found.is_disturbed);
    }

    #[test]
    fn jobs_run_one_after_the_other_and_the_last_of_two_values_counts() {
        let job = |name: &str| Job::timed(name, "randread", 4096, 8).with("runtime", "4s");
        let text = job_file(&[job("a"), job("b")]);
        assert_eq!(text.matches("stonewall\n").count(), 2, "{text}");
        let (first, last) = (text.find("runtime=2000ms"), text.find("runtime=4s"));
        assert!(first.is_some() && first < last, "{text}");
    }
}
