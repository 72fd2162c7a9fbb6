//! Running programs: those that only look, with a time limit, and those that change something.
//!
//! Programs are found in fixed directories, never through `PATH`, run with a bare environment and
//! without input, and are killed with everything they started when they take too long.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::files::ReadError;

/// Where programs are looked for, in this order.
pub const DIRECTORIES: [&str; 7] =
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/vc/bin"];

const TIME_LIMIT: Duration = Duration::from_secs(5);
/// More than this of a program's output is dropped.
pub(crate) const OUTPUT_LIMIT_BYTES: usize = 1 << 20;

/// Where a program is installed, if it is.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.is_empty() || program.contains('/') {
        return None;
    }
    DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(program))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Its standard output; see [`crate::files::Files::ask`].
pub(crate) fn ask(program: &str, arguments: &[&str]) -> Result<String, ReadError> {
    ask_within(program, arguments, TIME_LIMIT)
}

fn ask_within(program: &str, arguments: &[&str], limit: Duration) -> Result<String, ReadError> {
    let path = find(program).ok_or(ReadError::Absent)?;
    match spawn(&path, arguments, &Limit::within(limit)) {
        Ok(output) => output.into_answer(),
        Err(Failure::TooSlow | Failure::Stopped) => {
            Err(ReadError::Other(format!("no answer within {} s", limit.as_secs_f32())))
        }
        Err(Failure::Io(error)) => Err(error.into()),
    }
}

/// What came of waiting for a program.
pub(crate) enum Waited {
    /// It is not installed, or cannot be run.
    Missing,
    /// It took too long. It was killed, and left behind if that did not end it.
    TooLong,
    /// It ended: its output, or what it complained about.
    Ended(Result<Vec<u8>, String>),
}

/// Runs a program that changes nothing, for at most `limit`.
pub(crate) fn output_within(program: &str, arguments: &[&str], limit: Duration) -> Waited {
    let Some(path) = find(program) else {
        return Waited::Missing;
    };
    match spawn(&path, arguments, &Limit::within(limit)) {
        Ok(output) if output.status.success() => Waited::Ended(Ok(output.stdout)),
        Ok(output) => Waited::Ended(Err(last_words(&output.stderr))),
        Err(Failure::TooSlow | Failure::Stopped) => Waited::TooLong,
        Err(Failure::Io(_)) => Waited::Missing,
    }
}

/// Why a program that was to change something did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// It is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// Name of the program.
        program: String,
    },
    /// It ended with a status other than 0, or was killed.
    #[error("`{line}` ended with {how}{}{complaint}", if .complaint.is_empty() { "" } else { ": " })]
    Failed {
        /// The whole command.
        line: String,
        /// "status 1", "signal 9".
        how: String,
        /// The end of its error output, in one line.
        complaint: String,
    },
    /// The user wants everything to stop; it was killed with all that it had started.
    #[error("`{line}` was stopped, as asked for")]
    Stopped {
        /// The whole command.
        line: String,
    },
    /// It cannot be run.
    #[error("`{line}` cannot be run: {reason}")]
    Unable {
        /// The whole command.
        line: String,
        /// The system's error, or what is missing.
        reason: String,
    },
}

/// Runs a program that changes something until it ends, or until `stop` is raised, and gives its standard output.
/// It is found and run like those that only look, without a limit of time.
///
/// # Errors
/// [`RunError`]; what a stopped or failed program has left is the caller's business.
pub fn run(program: &str, arguments: &[&str], stop: &AtomicBool) -> Result<String, RunError> {
    let path = find(program).ok_or_else(|| RunError::Missing { program: program.into() })?;
    run_as(program, &path, arguments, stop)
}

/// Like [`run`], for a program that the user named by its file.
///
/// # Errors
/// As for [`run`], except [`RunError::Missing`].
pub fn run_file(file: &Path, arguments: &[&str], stop: &AtomicBool) -> Result<String, RunError> {
    run_as(&file.display().to_string(), file, arguments, stop)
}

fn run_as(
    name: &str,
    path: &Path,
    arguments: &[&str],
    stop: &AtomicBool,
) -> Result<String, RunError> {
    ended(spawn(path, arguments, &Limit::until(stop)), || shell_line(name, arguments))
}

/// What came of a program that was to change something.
pub(super) fn ended(
    ended: Result<Output, Failure>,
    line: impl Fn() -> String,
) -> Result<String, RunError> {
    match ended {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(RunError::Failed {
            line: line(),
            how: match output.status.signal() {
                Some(signal) => format!("signal {signal}"),
                None => format!("status {}", output.status.code().unwrap_or(-1)),
            },
            complaint: last_words(&output.stderr),
        }),
        Err(Failure::TooSlow | Failure::Stopped) => Err(RunError::Stopped { line: line() }),
        Err(Failure::Io(error)) => {
            Err(RunError::Unable { line: line(), reason: error.to_string() })
        }
    }
}

/// Starts this program once more with these arguments, with a pipe to it and one from it.
///
/// # Errors
/// If the program cannot be started.
pub fn this_one_again(arguments: &[&str]) -> std::io::Result<Child> {
    let mut again = Command::new("/proc/self/exe");
    let again = again.args(arguments).stdin(Stdio::piped());
    again.stdout(Stdio::piped()).spawn()
}

/// A command as a shell would have to be given it.
pub fn shell_line(program: &str, arguments: &[&str]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=^".contains(c);
    let quoted = |word: &&str| {
        if !word.is_empty() && word.chars().all(plain) {
            (*word).to_string()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let mut words = vec![program.to_string()];
    words.extend(arguments.iter().map(quoted));
    words.join(" ")
}

/// The last lines of an error output, which say why; what came before is mostly chatter.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    const LINES: usize = 4;
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

/// A program with a bare environment and a pipe for its complaints.
pub(crate) fn bare(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", DIRECTORIES.join(":"))
        .env("LC_ALL", "C")
        .stderr(Stdio::piped())
        // Its own group, so that what it starts can be killed with it.
        .process_group(0);
    command
}

fn spawn(path: &Path, arguments: &[&str], limit: &Limit<'_>) -> Result<Output, Failure> {
    let child = bare(path, arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    wait(child, limit)
}

/// What a program says until it ends; at its limit it is killed with all that it started.
pub(super) fn wait(mut child: Child, limit: &Limit<'_>) -> Result<Output, Failure> {
    let collected = collect(&mut child, limit);
    if collected.is_err() {
        kill_group(&child);
        reap_if_it_ends(&mut child);
    }
    collected
}

/// Waits a moment for a program that was killed. One that waits for a disk in the kernel does not end until the disk answers:
/// it is left to init.
pub(crate) fn reap_if_it_ends(child: &mut Child) {
    const MOMENT: Duration = Duration::from_millis(500);
    let killed = Instant::now();
    while killed.elapsed() < MOMENT {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
}

/// How often it is looked whether the user wants everything to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long a program may run.
pub(crate) struct Limit<'a> {
    deadline: Option<Instant>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Limit<'a> {
    pub(crate) fn within(time: Duration) -> Self {
        Limit { deadline: Some(Instant::now() + time), stop: None }
    }

    /// The same, and until this is raised.
    pub(crate) fn or_until(self, stop: &'a AtomicBool) -> Self {
        Limit { stop: Some(stop), ..self }
    }

    fn until(stop: &'a AtomicBool) -> Self {
        Limit { deadline: None, stop: Some(stop) }
    }

    /// How long to wait before looking again.
    fn left(&self) -> Result<Duration, Failure> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Failure::Stopped);
        }
        let Some(deadline) = self.deadline else {
            return Ok(LOOK_AGAIN);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(Failure::TooSlow)
        } else if self.stop.is_some() {
            Ok(left.min(LOOK_AGAIN))
        } else {
            Ok(left)
        }
    }
}

pub(crate) enum Failure {
    TooSlow,
    Stopped,
    Io(std::io::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::TooSlow => f.write_str("no answer in time"),
            Failure::Stopped => f.write_str("stopped, as asked for"),
            Failure::Io(error) => error.fmt(f),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Io(error)
    }
}

pub(super) struct Output {
    status: std::process::ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    fn into_answer(self) -> Result<String, ReadError> {
        let stdout = String::from_utf8_lossy(&self.stdout).into_owned();
        if self.status.success() {
            return Ok(stdout);
        }
        if let Some(signal) = self.status.signal() {
            return Err(ReadError::Other(format!("killed by signal {signal}")));
        }
        let stderr = String::from_utf8_lossy(&self.stderr);
        Err(ReadError::Failed {
            status: self.status.code().unwrap_or(-1),
            complaint: stderr.lines().next().unwrap_or("").trim().to_string(),
            output: stdout,
        })
    }
}

/// Reads both pipes until the program closes them and ends, or until its limit.
fn collect(child: &mut Child, limit: &Limit<'_>) -> Result<Output, Failure> {
    let mut stdout = Pipe::new(child.stdout.take());
    let mut stderr = Pipe::new(child.stderr.take());
    while stdout.is_open() || stderr.is_open() {
        wait_for_data(&[&stdout, &stderr], limit)?;
        stdout.read_available()?;
        stderr.read_available()?;
    }
    // Both pipes are closed: the program is ending, or it went on without them.
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Output { status, stdout: stdout.bytes, stderr: stderr.bytes });
        }
        limit.left()?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn wait_for_data(pipes: &[&dyn AsPollFd], limit: &Limit<'_>) -> Result<(), Failure> {
    let left = limit.left()?;
    let mut waiting: Vec<PollFd<'_>> = pipes.iter().filter_map(|pipe| pipe.poll_fd()).collect();
    let timeout = rustix::event::Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(&mut waiting, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Failure::Io(error.into())),
    }
}

pub(crate) trait AsPollFd {
    fn poll_fd(&self) -> Option<PollFd<'_>>;
}

/// One end of a pipe and what came through it, up to [`OUTPUT_LIMIT_BYTES`]; the rest is dropped.
#[derive(Debug)]
pub(crate) struct Pipe<R> {
    source: Option<R>,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Pipe<R> {
    pub(crate) fn new(source: Option<R>) -> Self {
        Pipe { source, bytes: Vec::new() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// The next whole line that has come, without its end.
    pub(crate) fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// What has come and was not taken.
    pub(crate) fn so_far(&self) -> &[u8] {
        &self.bytes
    }

    /// One read, if there is something to read; notices the end.
    pub(crate) fn read_available(&mut self) -> Result<(), Failure> {
        let Some(source) = self.source.as_mut() else {
            return Ok(());
        };
        let mut ready = [PollFd::new(source, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut ready, Some(&now)).unwrap_or(0) == 0 {
            return Ok(());
        }
        let mut chunk = [0_u8; 8192];
        match source.read(&mut chunk) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let room = OUTPUT_LIMIT_BYTES.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&chunk[..count.min(room)]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl<R: Read + AsFd> AsPollFd for Pipe<R> {
    fn poll_fd(&self) -> Option<PollFd<'_>> {
        self.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN))
    }
}

pub(crate) fn ask_to_end(child: &Child) {
    signal_group(child, rustix::process::Signal::TERM);
}

pub(crate) fn kill_group(child: &Child) {
    signal_group(child, rustix::process::Signal::KILL);
}

fn signal_group(child: &Child, signal: rustix::process::Signal) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended meanwhile; then there is nothing to kill.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_output_and_nothing_of_the_environment() {
        assert_eq!(ask("echo", &["one", "two"]).unwrap(), "one two\n");
        let environment = ask("env", &[]).unwrap();
        let names: Vec<&str> =
            environment.lines().filter_map(|line| line.split('=').next()).collect();
        assert!(names.iter().all(|name| ["PATH", "LC_ALL"].contains(name)), "{names:?}");
    }

    #[test]
    fn a_program_that_changes_something_says_why_it_failed() {
        let go = AtomicBool::new(false);
        assert_eq!(run("echo", &["one"], &go).unwrap(), "one\n");
        let script = "for i in 1 2 3 4 5 6; do echo line $i >&2; done; exit 3";
        let error = run("sh", &["-c", script], &go).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`sh -c '{script}'` ended with status 3: line 3; line 4; line 5; line 6")
        );
        let error = run("no-such-program-here", &[], &go).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program-here is not installed");
        let stop = AtomicBool::new(true);
        let error = run("sleep", &["1000"], &stop).unwrap_err();
        assert!(matches!(error, RunError::Stopped { .. }), "{error}");
    }

    #[test]
    fn only_names_in_the_fixed_directories_are_programs() {
        assert_eq!(ask("no-such-program-here", &[]), Err(ReadError::Absent));
        assert_eq!(ask("/bin/echo", &[]), Err(ReadError::Absent));
        assert_eq!(ask("../bin/echo", &[]), Err(ReadError::Absent));
        assert_eq!(ask("", &[]), Err(ReadError::Absent));
    }

    #[test]
    fn a_failing_program_keeps_its_status_and_its_output() {
        let error = ask("sh", &["-c", "echo out; echo why >&2; exit 3"]).unwrap_err();
        assert_eq!(
            error,
            ReadError::Failed {
                status: 3,
                complaint: "why".to_string(),
                output: "out\n".to_string(),
            }
        );
        assert_eq!(error.to_string(), "exit status 3: why");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let error = ask_within("sh", &["-c", &script], Duration::from_millis(500)).unwrap_err();
        assert!(error.to_string().contains("no answer within"), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        // The child of the child dies with it (it may be a zombie for a moment).
        let status = Path::new("/proc").join(pid.trim()).join("stat");
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z "))
        });
        assert!(gone, "process {} still runs", pid.trim());
    }

    #[test]
    fn long_output_is_cut_and_does_not_block_the_program() {
        let output = ask("head", &["-c", "3000000", "/dev/zero"]).unwrap();
        assert_eq!(output.len(), OUTPUT_LIMIT_BYTES);
    }
}
