//! Programs that run beside this one for as long as they are wanted: servers, and shells that answer line by line.
//!
//! They are found and started as in [`crate::process::programs`], and end with the value that stands for them. Should this
//! program be killed, a [`Conversation`] ends at end of file on its input, and the kernel sends the others SIGTERM.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::process::programs::{self, Limit, Pipe, RunError, Waited};

/// What a program answered that was given some time.
///
/// # Errors
/// In words: it is not installed, took longer, or failed with these last words.
pub fn answer(program: &str, arguments: &[&str], limit: Duration) -> Result<String, String> {
    match programs::output_within(program, arguments, limit) {
        Waited::Missing => Err(format!("{program} is not installed")),
        Waited::TooLong => Err(format!("no answer within {} s", limit.as_secs())),
        Waited::Ended(Ok(output)) => Ok(String::from_utf8_lossy(&output).into_owned()),
        Waited::Ended(Err(complaint)) => Err(complaint),
    }
}

/// How long a server may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// A server of which nothing is heard unless it ends.
#[derive(Debug)]
pub struct Server {
    child: Child,
    complaint: Option<ChildStderr>,
}

impl Server {
    /// Starts it; its output is dropped. It is asked to end when the thread that calls this does.
    ///
    /// # Errors
    /// If the program is not installed or cannot be started.
    pub fn start(program: &str, arguments: &[&str]) -> Result<Server, RunError> {
        let mut command = command(program, arguments)?;
        end_with_this_thread(&mut command);
        let (mut child, _) = spawn(command.stdin(Stdio::null()).stdout(Stdio::null()), program)?;
        let complaint = child.stderr.take();
        Ok(Server { child, complaint })
    }

    /// Its last words, if it has ended.
    pub fn last_words(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let mut said = Vec::new();
        if let Some(complaint) = self.complaint.take() {
            // It has ended, so this does too.
            let _ = complaint.take(64 << 10).read_to_end(&mut said);
        }
        let words = programs::last_words(&said);
        Some(if words.is_empty() { format!("it ended without a word ({status})") } else { words })
    }
}

/// It is asked to end, so that it can give back what it holds elsewhere; then it is killed.
impl Drop for Server {
    fn drop(&mut self) {
        programs::ask_to_end(&self.child);
        let asked = Instant::now();
        while asked.elapsed() < ENDING && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        programs::kill_group(&self.child);
        programs::reap_if_it_ends(&mut self.child);
    }
}

/// A program that answers each line with one.
#[derive(Debug)]
pub struct Conversation {
    child: Child,
    input: ChildStdin,
    output: Pipe<ChildStdout>,
}

impl Conversation {
    /// Starts the program.
    ///
    /// # Errors
    /// If the program is not installed or cannot be started.
    pub fn start(program: &str, arguments: &[&str]) -> Result<Conversation, RunError> {
        let mut command = command(program, arguments)?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // What is written in Python keeps answers to a pipe back until there are many.
        command.env("PYTHONUNBUFFERED", "1");
        // Its standard error is not read, and a full pipe would block it.
        let (mut child, line) = spawn(command.stderr(Stdio::null()), program)?;
        let (Some(input), output) = (child.stdin.take(), Pipe::new(child.stdout.take())) else {
            programs::kill_group(&child);
            let reason = "it has no input".into();
            return Err(RunError::Unable { line, reason });
        };
        Ok(Conversation { child, input, output })
    }

    /// Says a line and gives the next one that is not empty.
    ///
    /// # Errors
    /// In words, when none comes in time, it has ended, or `stop` is raised. What it says later would be taken for another
    /// answer, so it is of no more use then.
    pub fn ask(
        &mut self,
        line: &str,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<String, String> {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| format!("it has ended: {error}"))?;
        let limit = Limit::within(limit).or_until(stop);
        loop {
            if let Some(line) = self.output.take_line() {
                match String::from_utf8_lossy(&line).trim() {
                    "" => continue,
                    answer => return Ok(answer.to_owned()),
                }
            }
            if !self.output.is_open() {
                return Err("it has ended".into());
            }
            programs::wait_for_data(&[&self.output], &limit)
                .and_then(|()| self.output.read_available())
                .map_err(|failure| failure.to_string())?;
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        programs::kill_group(&self.child);
        programs::reap_if_it_ends(&mut self.child);
    }
}

/// A program whose lines are read as they come.
#[derive(Debug)]
pub struct Lines {
    child: Child,
    output: Pipe<ChildStdout>,
    complaint: Pipe<ChildStderr>,
}

impl Lines {
    /// Starts it. It is asked to end when the thread that calls this does.
    ///
    /// # Errors
    /// If the program is not installed or cannot be started.
    pub fn start(program: &str, arguments: &[&str]) -> Result<Lines, RunError> {
        let mut command = command(program, arguments)?;
        end_with_this_thread(&mut command);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let (mut child, _) = spawn(command, program)?;
        let (output, complaint) = (Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take()));
        Ok(Lines { child, output, complaint })
    }

    /// The next line; nothing when it has ended well.
    ///
    /// # Errors
    /// In words, when none comes in time, it failed with these last words, or `stop` is raised.
    pub fn next(&mut self, limit: Duration, stop: &AtomicBool) -> Result<Option<String>, String> {
        let limit = Limit::within(limit).or_until(stop);
        loop {
            if let Some(line) = self.output.take_line() {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if !self.output.is_open() && !self.complaint.is_open() {
                return self.ended();
            }
            programs::wait_for_data(&[&self.output, &self.complaint], &limit)
                .and_then(|()| self.output.read_available())
                .and_then(|()| self.complaint.read_available())
                .map_err(|failure| failure.to_string())?;
        }
    }

    fn ended(&mut self) -> Result<Option<String>, String> {
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() {
            return Ok(None);
        }
        let words = programs::last_words(self.complaint.so_far());
        Err(if words.is_empty() { format!("it ended without a word ({status})") } else { words })
    }

    /// Processor seconds that it has used so far; absent when it has ended.
    pub fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let ticks = crate::process::process_stat::cpu_ticks(&stat)?;
        Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        programs::kill_group(&self.child);
        programs::reap_if_it_ends(&mut self.child);
    }
}

fn command(program: &str, arguments: &[&str]) -> Result<Command, RunError> {
    let missing = || RunError::Missing { program: program.into() };
    let path: PathBuf = programs::find(program).ok_or_else(missing)?;
    Ok(programs::bare(&path, arguments))
}

/// Lets the kernel ask the program to end when the thread that starts it has ended, be it by a kill of the whole process.
fn end_with_this_thread(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The parent died before that took effect: no signal would come any more.
            if u32::try_from(libc::getppid()) == Ok(parent) {
                Ok(())
            } else {
                Err(std::io::ErrorKind::Interrupted.into())
            }
        });
    }
}

/// The child, and its command for messages.
fn spawn(command: &mut Command, program: &str) -> Result<(Child, String), RunError> {
    let words: Vec<String> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let line = programs::shell_line(program, &words);
    match command.spawn() {
        Ok(child) => Ok((child, line)),
        Err(error) => Err(RunError::Unable { line, reason: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::skipped;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn each_line_is_answered_and_empty_ones_are_passed_over() {
        let never = AtomicBool::new(false);
        let script = "while read line; do echo; echo \"you said $line\"; done";
        let mut shell = Conversation::start("sh", &["-c", script]).expect("a shell");
        for word in ["one", "two"] {
            let answer = shell.ask(word, SOON, &never).expect("an answer");
            assert_eq!(answer, format!("you said {word}"));
        }
    }

    #[test]
    fn a_program_in_python_answers_at_once() {
        let Some(python) = crate::process::programs::find("python3") else {
            return skipped("a program in Python", "python3 is not installed");
        };
        let never = AtomicBool::new(false);
        let script = "while True: print(input())";
        let python = python.file_name().and_then(|name| name.to_str());
        let mut shell =
            Conversation::start(python.expect("a name"), &["-c", script]).expect("python");
        assert_eq!(shell.ask("one", SOON, &never), Ok("one".into()));
    }

    #[test]
    fn one_that_has_ended_or_says_nothing_is_not_waited_for_for_ever() {
        let never = AtomicBool::new(false);
        let mut gone = Conversation::start("sh", &["-c", "read line"]).expect("a shell");
        assert_eq!(gone.ask("x", SOON, &never), Err("it has ended".into()));
        let mut silent = Conversation::start("sh", &["-c", "cat >/dev/null"]).expect("a shell");
        let error = silent.ask("x", Duration::from_millis(50), &never).unwrap_err();
        assert!(error.contains("no answer"), "{error}");
        assert!(silent.ask("x", SOON, &AtomicBool::new(true)).is_err());
    }

    #[test]
    fn a_server_that_ended_says_why() {
        let mut server =
            Server::start("sh", &["-c", "echo no such image >&2; exit 3"]).expect("a shell");
        let words = loop {
            match server.last_words() {
                Some(words) => break words,
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        assert_eq!(words, "no such image");
        let error = Server::start("no-such-program", &[]).unwrap_err();
        assert_eq!(error.to_string(), "no-such-program is not installed");
    }

    /// One that writes the file `mark` there when it is asked to end, and is ready for that.
    fn that_marks_its_end(place: &std::path::Path) -> Server {
        let (ready, mark) = (place.join("ready"), place.join("mark"));
        let script = format!(
            "trap 'echo gone >{}; exit' TERM; echo >{}; while :; do sleep 0.01; done",
            mark.display(),
            ready.display()
        );
        let server = Server::start("sh", &["-c", &script]).expect("a shell");
        while !ready.exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
        server
    }

    #[test]
    fn a_server_is_asked_to_end_before_it_is_killed() {
        let place = tempfile::tempdir().expect("a directory");
        let mark = place.path().join("mark");
        drop(that_marks_its_end(place.path()));
        assert!(mark.exists());
    }

    #[test]
    fn lines_come_one_by_one_and_an_end_says_whether_it_was_good() {
        let never = AtomicBool::new(false);
        let run = |script: &str| Lines::start("sh", &["-c", script]).expect("a shell");
        let mut good = run("echo one; echo two");
        for line in [Some("one".to_owned()), Some("two".into()), None] {
            assert_eq!(good.next(SOON, &never), Ok(line));
        }
        let mut bad = run("echo one; echo why >&2; exit 1");
        assert_eq!(bad.next(SOON, &never), Ok(Some("one".into())));
        assert_eq!(bad.next(SOON, &never), Err("why".into()));
        let mut silent = run("exec sleep 60");
        assert!(silent.cpu_s().is_some_and(|seconds| seconds < 60.0));
        assert_eq!(silent.next(Duration::from_millis(20), &never), Err("no answer in time".into()));
        assert!(silent.next(SOON, &AtomicBool::new(true)).is_err());
    }

    #[test]
    fn a_server_ends_with_whoever_started_it() {
        let place = tempfile::tempdir().expect("a directory");
        let (mark, within) = (place.path().join("mark"), place.path().to_owned());
        let started = std::thread::spawn(move || {
            // As a kill does: nothing is dropped.
            std::mem::ManuallyDrop::new(that_marks_its_end(&within))
        });
        let mut server = started.join().expect("it started");
        while server.last_words().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(mark.exists());
    }

    #[test]
    fn an_answer_has_a_time_limit_and_a_failure_its_last_words() {
        assert_eq!(answer("sh", &["-c", "echo 7"], SOON), Ok("7\n".into()));
        assert_eq!(answer("sh", &["-c", "echo why >&2; exit 1"], SOON), Err("why".into()));
        let slow = answer("sleep", &["60"], Duration::from_millis(20));
        assert_eq!(slow, Err("no answer within 0 s".into()));
    }
}
