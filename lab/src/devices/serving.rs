//! A server as a process: started, waited for until it listens, killed, started again, and gone in the end.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::tools;

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end.
const ENDS: Duration = Duration::from_secs(60);

/// How it is seen that a server listens.
#[derive(Clone, Debug)]
pub enum Listening {
    /// On a Unix socket.
    Socket(PathBuf),
    /// On a port of an address.
    Port(String, u16),
}

impl Listening {
    /// Connecting would use up the only client that some servers take, so the kernel's list is read.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Listening::Socket(path) => {
                let path = path.display().to_string();
                // The fourth column holds a socket's flags: this one means that it listens.
                any_line("/proc/thread-self/net/unix", |columns| {
                    columns.get(3) == Some(&"00010000") && columns.get(7) == Some(&path.as_str())
                })
            }
            Listening::Port(host, port) => {
                let table = if host.contains(':') {
                    "/proc/thread-self/net/tcp6"
                } else {
                    "/proc/thread-self/net/tcp"
                };
                let wanted = format!(":{port:04X}");
                any_line(table, |columns| {
                    let is_local = columns.get(1).is_some_and(|at| at.ends_with(&wanted));
                    // "0A" is LISTEN.
                    is_local && columns.get(3) == Some(&"0A")
                })
            }
        }
    }
}

fn any_line(table: &str, is_it: impl Fn(&[&str]) -> bool) -> bool {
    let text = std::fs::read_to_string(table).unwrap_or_default();
    let mut lines = text.lines();
    lines.any(|line| is_it(&line.split_whitespace().collect::<Vec<_>>()))
}

/// A server that runs, or has been killed and may come back. Killed when this is dropped.
#[derive(Debug)]
pub struct Serving {
    command: Command,
    listening: Listening,
    running: Option<Child>,
    /// Its standard error, in a file: it is not read while the server runs, and a pipe would fill up.
    said: File,
}

impl Serving {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn start(command: Command, listening: Listening) -> Result<Serving> {
        let said = tempfile::tempfile().context("no file for what a server says")?;
        let mut command = tied(&command);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(said.try_clone()?);
        let mut serving = Serving { command, listening, running: None, said };
        serving.come_back()?;
        Ok(serving)
    }

    /// Starts it again as it was started.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn come_back(&mut self) -> Result<()> {
        let child = self.command.spawn();
        let child = child.with_context(|| format!("could not start {:?}", self.command))?;
        let child = self.running.insert(child);
        let start = Instant::now();
        while !self.listening.is_there() {
            // Some go to the background when they are ready, and end well in front.
            let status = child.try_wait()?;
            if let Some(status) = status.filter(|status| !status.success()) {
                bail!("{:?} ended ({status}): {}", self.command, text_of(&self.said).trim());
            }
            if start.elapsed() > PATIENCE {
                bail!("{:?} does not listen", self.command);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Whether it runs.
    pub fn is_alive(&mut self) -> bool {
        let running = self.running.as_mut();
        running.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The address of its default export.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.listening {
            Listening::Socket(path) => format!("nbd+unix:///?socket={}", path.display()),
            Listening::Port(host, port) => format!("nbd://{host}:{port}/"),
        }
    }

    /// The number of its process, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.running.as_ref().context("the server does not run")?;
        kill_process(Pid::from_child(child), signal).context("the server cannot be signalled")
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end; gives its status.
    ///
    /// # Errors
    /// When it does not run, or does not end; then it is killed.
    pub fn end(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let start = Instant::now();
        while self.is_alive() {
            if start.elapsed() > ENDS {
                self.kill();
                bail!("{:?} does not end", self.command);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut child = self.running.take().context("the server does not run")?;
        Ok(child.wait()?)
    }

    /// What it has written to standard error so far.
    #[must_use]
    pub fn said(&self) -> String {
        text_of(&self.said)
    }
}

/// The same command, which ends with the thread that starts it: a killed test leaves no server behind.
fn tied(command: &Command) -> Command {
    let mut tied = Command::new(tools::KEEPER.program);
    tied.args(["--pdeathsig", "KILL"]).arg(command.get_program());
    tied.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        tied.current_dir(directory);
    }
    tied
}

fn text_of(file: &File) -> String {
    let length = file.metadata().map_or(0, |file| file.len());
    let mut bytes = vec![0; length as usize];
    // At a place, since the server writes where this file is at.
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the listener is gone soon: a program that another test has just forked keeps all descriptors open until
    /// it calls exec.
    fn has_gone(listening: &Listening) -> bool {
        (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !listening.is_there()
        })
    }

    #[test]
    fn a_listener_is_seen_and_one_that_has_gone_is_not() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let socket = Listening::Socket(path.clone());
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(socket.is_there());
        drop(listener);
        assert!(path.exists() && has_gone(&socket));
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = Listening::Port("127.0.0.1".into(), listener.local_addr().unwrap().port());
        assert!(port.is_there());
        drop(listener);
        assert!(has_gone(&port));
    }

    #[test]
    fn a_server_ends_with_the_thread_that_started_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let start = || {
            let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let mut command = super::super::programs::command("sleep");
            command.arg("600");
            let serving = Serving::start(command, Listening::Socket(path.clone())).unwrap();
            let name = format!("/proc/{}/comm", serving.id().unwrap());
            while std::fs::read_to_string(&name).unwrap() != "sleep\n" {
                std::thread::sleep(Duration::from_millis(5));
            }
            serving
        };
        let mut serving = std::thread::scope(|threads| threads.spawn(start).join().unwrap());
        let begin = Instant::now();
        while serving.is_alive() {
            assert!(begin.elapsed() < PATIENCE, "it goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_server_that_ends_at_once_says_why() {
        let mut command = super::super::programs::command("sh");
        command.args(["-c", "echo no such disk >&2; exit 3"]);
        let never = Listening::Socket("/nonexistent/socket".into());
        let error = Serving::start(command, never).unwrap_err().to_string();
        assert!(error.contains("no such disk") && error.contains('3'), "{error}");
    }
}
