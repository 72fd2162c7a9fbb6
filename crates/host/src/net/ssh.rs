//! Running things on another machine with the system's own `ssh`.
//!
//! Nothing here decides anything about trust: the user's configuration, agent, keys, known hosts and
//! prompts are ssh's own business and stay so. One connection carries everything (ssh calls that
//! multiplexing); its socket lies in a private directory. Unlike other programs, ssh is found
//! through `PATH` and gets the user's environment: it acts for the user, with the user's settings.
//!
//! No process of ours outlives us: everything hangs on standard inputs that close when we end, however
//! we end.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The longest line that is taken from the other end; a run is some hundred kilobytes. What is longer comes in pieces.
const LONGEST_LINE_BYTES: u64 = 16 << 20;
/// While this much is queued, the remote program's standard output is not read, and its standard error is discarded: a
/// machine that sends without end costs no more memory.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// Begins a record on standard output (RFC 7464), which is no text.
const RECORD_SEPARATOR: char = '\u{1e}';
/// `sun_path` has 108 bytes; ssh adds 18 to the name while it makes the socket.
const LONGEST_SOCKET_PATH: usize = 108 - 18 - 1;
/// How long an ssh that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long the questions may take that ssh answers without a connection.
const QUESTION_LIMIT: Duration = Duration::from_secs(20);

/// What the user adds to ssh's own configuration.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Another configuration file (`-F`).
    pub config: Option<PathBuf>,
    /// Options in the form of that file (`-o`), such as `Port=2222`.
    pub settings: Vec<String>,
}

/// What can go wrong here; what the other end says is no error of this room.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// There is no ssh.
    #[error(
        "there is no ssh program here (it was looked for in PATH); install OpenSSH's client, on Debian \
         and Raspberry Pi OS the package openssh-client"
    )]
    NotInstalled,
    /// It does not accept what it was given.
    #[error("ssh refuses its options: {0}")]
    Options(String),
    /// Something of the machine here.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        error: std::io::Error,
    },
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> SshError {
    let what = what.into();
    move |error| SshError::Io { what, error }
}

/// A machine and how ssh is called for it.
#[derive(Debug)]
pub struct Ssh {
    destination: String,
    /// What every call gets in front of the destination.
    arguments: Vec<OsString>,
    /// Options of the first call, which makes the connection.
    opening: Vec<OsString>,
    version: Option<String>,
    /// Removed when this is dropped.
    _socket: Option<SocketDirectory>,
}

impl Ssh {
    /// Prepares calls for a machine; connects to nothing. `runtime` is the user's runtime directory, if
    /// there is one, for the connection's socket. If the user's configuration shares connections and
    /// one to this machine is open, it is used.
    ///
    /// # Errors
    /// When there is no ssh here or it refuses the options.
    pub fn new(
        destination: &str,
        options: &Options,
        runtime: Option<&Path>,
    ) -> Result<Ssh, SshError> {
        let mut ssh = Ssh {
            destination: destination.into(),
            arguments: user_arguments(options),
            opening: Vec::new(),
            version: Some(version()?),
            _socket: None,
        };
        let settings = ssh.settings()?;
        ssh.arguments.extend(fixed_arguments(&settings));
        if ssh.has_open_connection(&settings) {
            return Ok(ssh);
        }
        let socket = SocketDirectory::new(runtime)?;
        let path = format!("ControlPath={}", socket.path.join("s").display());
        ssh.arguments.extend(["-o".into(), path.into()]);
        ssh.opening = ["ControlMaster=yes", "ControlPersist=no"]
            .iter()
            .flat_map(|setting| ["-o".into(), OsString::from(setting)])
            .collect();
        ssh._socket = Some(socket);
        Ok(ssh)
    }

    /// What the ssh program calls itself.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Makes the connection and runs the command through it, which must be the first one and outlive
    /// all others. ssh asks for passwords and the like on the terminal by itself.
    ///
    /// # Errors
    /// When ssh cannot be started; that the other end cannot be reached is seen on the session.
    pub fn open(&self, command: &str) -> Result<Session, SshError> {
        self.session(&self.opening, command, Stdio::piped(), Output::Lines)
    }

    /// Runs a command at the other end, through the open connection.
    ///
    /// # Errors
    /// When ssh cannot be started.
    pub fn run(&self, command: &str) -> Result<Session, SshError> {
        self.session(&[], command, Stdio::piped(), Output::Lines)
    }

    /// The same, with a file as its standard input.
    ///
    /// # Errors
    /// When ssh cannot be started.
    pub fn run_from(&self, command: &str, file: File) -> Result<Session, SshError> {
        self.session(&[], command, file.into(), Output::Lines)
    }

    /// The same, with its standard output into a file, which gets at most `max_bytes`. What sends more is ended, and the
    /// session says so.
    ///
    /// # Errors
    /// When ssh cannot be started.
    pub fn run_into(&self, command: &str, file: File, max_bytes: u64) -> Result<Session, SshError> {
        self.session(&[], command, Stdio::null(), Output::File { file, max_bytes })
    }

    fn session(
        &self,
        more: &[OsString],
        command: &str,
        stdin: Stdio,
        output: Output,
    ) -> Result<Session, SshError> {
        let mut ssh = Command::new("ssh");
        ssh.args(&self.arguments).args(more);
        ssh.arg("--").arg(&self.destination).arg(command);
        ssh.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn_deaf(ssh)?;
        let (sender, lines) = channel();
        let queue = Arc::new(Queue::default());
        let mut readers = 0;
        if let Some(stdout) = child.stdout.take() {
            match output {
                Output::Lines => {
                    read_lines(stdout, sender.clone(), Arc::clone(&queue), Stream::Out)?
                }
                Output::File { file, max_bytes } => {
                    keep(stdout, file, max_bytes, sender.clone())?;
                }
            }
            readers += 1;
        }
        if let Some(stderr) = child.stderr.take() {
            read_lines(stderr, sender, Arc::clone(&queue), Stream::Err)?;
            readers += 1;
        }
        Ok(Session { stdin: child.stdin.take(), child, lines, queue, readers })
    }

    /// The settings that hold for this machine after all of the user's configuration (`ssh -G`). An ssh
    /// too old to tell gives none.
    fn settings(&self) -> Result<Vec<(String, String)>, SshError> {
        let mut ssh = Command::new("ssh");
        ssh.args(&self.arguments).args(["-G", "--"]).arg(&self.destination);
        let output = answer(ssh)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("usage:") || said.contains("unknown option") {
                return Ok(Vec::new());
            }
            return Err(SshError::Options(said.trim().replace('\n', "; ")));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs.map(|(name, value)| (name.to_lowercase(), value.to_string())).collect())
    }

    /// Whether the user's own shared connection to this machine is open.
    fn has_open_connection(&self, settings: &[(String, String)]) -> bool {
        if setting(settings, "controlpath").is_none_or(|path| path == "none") {
            return false;
        }
        let mut ssh = Command::new("ssh");
        ssh.args(&self.arguments).args(["-O", "check", "--"]).arg(&self.destination);
        answer(ssh).is_ok_and(|output| output.status.success())
    }
}

fn setting<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = settings.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn user_arguments(options: &Options) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    if let Some(config) = &options.config {
        arguments.extend(["-F".into(), config.into()]);
    }
    for setting in &options.settings {
        arguments.extend(["-o".into(), setting.into()]);
    }
    arguments
}

/// No terminal, no forwardings, no command of the configuration: what a program that copies files sets
/// too. Time limits only where the user has none: a machine that vanishes is to be noticed.
fn fixed_arguments(settings: &[(String, String)]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-T", "-x", "-a"].map(OsString::from).into();
    let mut set = |setting: &str| arguments.extend(["-o".into(), setting.into()]);
    set("ClearAllForwardings=yes");
    set("PermitLocalCommand=no");
    if setting(settings, "remotecommand").is_some_and(|command| command != "none") {
        set("RemoteCommand=none");
    }
    if setting(settings, "connecttimeout").is_none_or(|limit| limit == "none") {
        set("ConnectTimeout=20");
    }
    if setting(settings, "serveraliveinterval").is_none_or(|interval| interval == "0") {
        set("ServerAliveInterval=15");
        set("ServerAliveCountMax=4");
    }
    arguments
}

/// "OpenSSH_9.2p1 Debian-2+deb12u10".
fn version() -> Result<String, SshError> {
    let mut ssh = Command::new("ssh");
    ssh.arg("-V");
    let output = answer(ssh)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    Ok(first.split(',').next().unwrap_or_default().trim().into())
}

/// The output of an ssh that connects to nothing.
fn answer(mut ssh: Command) -> Result<std::process::Output, SshError> {
    ssh.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn_deaf(ssh)?;
    let deadline = Instant::now() + QUESTION_LIMIT;
    // Its answers fit into a pipe, so it can end before they are read.
    while child.try_wait().map_err(io("wait for ssh"))?.is_none() {
        if Instant::now() > deadline {
            end(&mut child);
            let limit = QUESTION_LIMIT.as_secs();
            return Err(SshError::Options(format!("no answer within {limit} s")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().map_err(io("read ssh's answer"))
}

/// Starts ssh deaf to Ctrl-C and to the end of the terminal: those are for us, who then end the other
/// side in order and still take its result. It stays in the terminal's foreground, or it could not
/// ask for a password.
fn spawn_deaf(mut ssh: Command) -> Result<Child, SshError> {
    // SAFETY: between fork and exec only functions are called that are async-signal-safe.
    unsafe {
        ssh.pre_exec(|| {
            // An ssh that uses an open connection installs handlers whatever it inherits, so ignoring is
            // not enough; what is blocked stays blocked.
            let mut blocked = std::mem::MaybeUninit::uninit();
            libc::sigemptyset(blocked.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                libc::sigaddset(blocked.as_mut_ptr(), signal);
                if libc::signal(signal, libc::SIG_IGN) == libc::SIG_ERR {
                    return Err(std::io::Error::last_os_error());
                }
            }
            match libc::sigprocmask(libc::SIG_BLOCK, blocked.as_ptr(), std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    ssh.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => SshError::NotInstalled,
        _ => SshError::Io { what: "start ssh".into(), error },
    })
}

/// Asks a process to end (an ssh that is asking for a password then gives the terminal its echo back),
/// kills it if it does not, and reaps it.
fn end(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A line from the other end, or from ssh itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// On standard output.
    Out(String),
    /// On standard error.
    Err(String),
    /// Nothing more will come.
    End,
    /// Nothing within the time.
    Nothing,
}

/// A command that runs at the other end.
#[derive(Debug)]
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Option<Said>>,
    queue: Arc<Queue>,
    /// Pipes that are still open.
    readers: usize,
}

/// What is between the threads that read and who takes the lines.
#[derive(Debug, Default)]
struct Queue {
    waiting_bytes: AtomicUsize,
    /// Lines have no reader any more: they are discarded, so that the remote program can end.
    is_closed: AtomicBool,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.waiting_bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

impl Session {
    /// The next line of either kind; waits at most `limit`.
    pub fn next(&mut self, limit: Duration) -> Said {
        let deadline = Instant::now() + limit;
        while self.readers > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(Some(said)) => {
                    let (Said::Out(line) | Said::Err(line)) = &said else {
                        return said;
                    };
                    self.queue.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                    return said;
                }
                Ok(None) => self.readers -= 1,
                Err(RecvTimeoutError::Timeout) => return Said::Nothing,
                Err(RecvTimeoutError::Disconnected) => self.readers = 0,
            }
        }
        Said::End
    }

    /// Writes a line to its standard input.
    ///
    /// # Errors
    /// When it does not read any more.
    pub fn say(&mut self, line: &str) -> std::io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        stdin.write_all(format!("{line}\n").as_bytes())?;
        stdin.flush()
    }

    /// Closes its standard input, at which everything of ours at the other end goes away.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Hangs up and waits for its end; what takes longer than that is ended here.
    pub fn finish(mut self, limit: Duration) -> Option<ExitStatus> {
        self.hang_up();
        self.queue.is_closed.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + limit;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return None,
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stdin = None;
        self.queue.is_closed.store(true, Ordering::Relaxed);
        if matches!(self.child.try_wait(), Ok(None)) {
            end(&mut self.child);
        }
    }
}

/// A line without its end and without anything that a terminal obeys: control characters become replacement characters. The
/// separator of records stays on standard output.
fn harmless(line: &str, stream: Stream) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let is_kept = |letter: char| {
        !letter.is_control()
            || letter == '\t'
            || (stream == Stream::Out && letter == RECORD_SEPARATOR)
    };
    line.chars().map(|letter| if is_kept(letter) { letter } else { '\u{fffd}' }).collect()
}

/// Where a session's standard output goes.
enum Output {
    /// To the one who waits for its lines.
    Lines,
    /// Into a file, up to a limit.
    File { file: File, max_bytes: u64 },
}

/// Copies a pipe into a file until it closes, then sends [`None`]. What is longer than the limit is not read any more.
fn keep(
    source: impl std::io::Read + Send + 'static,
    mut file: File,
    max_bytes: u64,
    sender: Sender<Option<Said>>,
) -> Result<(), SshError> {
    let copy = move || {
        let mut source = source;
        let mut limited = std::io::Read::take(&mut source, max_bytes);
        let copied = std::io::copy(&mut limited, &mut file);
        let trouble = match copied {
            Ok(bytes) if bytes < max_bytes => None,
            Ok(_) => Some(format!("it sent more than {max_bytes} bytes")),
            Err(error) => Some(format!("what it sent cannot be written: {error}")),
        };
        // With the pipe closed, ssh ends.
        drop(source);
        // The receiver may be gone.
        if let Some(trouble) = trouble {
            let _ = sender.send(Some(Said::Err(trouble)));
        }
        let _ = sender.send(None);
    };
    let thread = std::thread::Builder::new().name("ssh".into());
    thread.spawn(copy).map(drop).map_err(io("start a thread"))
}

/// Sends a pipe's lines until it closes, then [`None`].
fn read_lines(
    source: impl std::io::Read + Send + 'static,
    sender: Sender<Option<Said>>,
    queue: Arc<Queue>,
    stream: Stream,
) -> Result<(), SshError> {
    let read = move || {
        let mut source = BufReader::new(source);
        loop {
            let mut line = Vec::new();
            let limited =
                std::io::Read::take(&mut source, LONGEST_LINE_BYTES).read_until(b'\n', &mut line);
            if limited.is_err() || line.is_empty() {
                break;
            }
            if queue.is_closed() {
                continue;
            }
            if stream == Stream::Err && queue.is_full() {
                continue;
            }
            while queue.is_full() && !queue.is_closed() {
                std::thread::sleep(Duration::from_millis(2));
            }
            let text = harmless(&String::from_utf8_lossy(&line), stream);
            queue.waiting_bytes.fetch_add(text.len(), Ordering::Relaxed);
            let said = match stream {
                Stream::Out => Said::Out(text),
                Stream::Err => Said::Err(text),
            };
            if sender.send(Some(said)).is_err() {
                break;
            }
        }
        // The receiver may be gone.
        let _ = sender.send(None);
    };
    let thread = std::thread::Builder::new().name("ssh".into());
    thread.spawn(read).map(drop).map_err(io("start a thread"))
}

/// A directory unchanged for this long is not about to be used.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// A private directory for a connection's socket.
#[derive(Debug)]
struct SocketDirectory {
    path: PathBuf,
}

impl SocketDirectory {
    /// In the runtime directory, which is in memory and the user's own, or else in `/tmp`.
    fn new(runtime: Option<&Path>) -> Result<SocketDirectory, SshError> {
        let fits =
            |base: &&Path| base.is_absolute() && base.as_os_str().len() + 32 <= LONGEST_SOCKET_PATH;
        let bases = [runtime, Some(Path::new("/tmp"))];
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for base in bases.into_iter().flatten().filter(fits) {
            sweep(base);
            for number in 0..100 {
                let path = base.join(format!("rubus-{}-{number}", std::process::id()));
                // Fails if anything of that name exists, so another user cannot have prepared it.
                match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => return Ok(SocketDirectory { path }),
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        last = error;
                        break;
                    }
                }
            }
        }
        Err(io("make a private directory for ssh's socket in /tmp")(last))
    }
}

/// Removes the empty directories of programs that were killed before they could do it.
fn sweep(base: &Path) {
    // Its owner may live in another process namespace, where we do not see it. Its ssh makes a socket in it once the
    // password has been typed.
    let is_old = |entry: &std::fs::DirEntry| {
        let changed = entry.metadata().and_then(|about| about.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        age.is_some_and(|age| age > ABANDONED)
    };
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("rubus-"));
        let owner = owner.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        let is_gone = |pid: u32| !Path::new("/proc").join(pid.to_string()).exists();
        if owner.is_some_and(is_gone) && is_old(&entry) {
            // One that is in use after all has a socket and stays.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        // ssh removes its socket by itself, but may be slower than we are.
        let _ = std::fs::remove_file(self.path.join("s"));
        let _ = std::fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_no_more_than_its_limit() {
        for (sent, expected, said) in [(10_u64, 10, 0), (100, 64, 1), (u64::MAX, 64, 1)] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("x");
            let (sender, lines) = channel();
            let source = std::io::Read::take(std::io::repeat(b'x'), sent);
            keep(source, File::create_new(&path).unwrap(), 64, sender).unwrap();
            let messages: Vec<Option<Said>> = lines.iter().collect();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), expected);
            assert_eq!(messages.iter().flatten().count(), said);
            assert!(messages.last().unwrap().is_none());
        }
    }

    #[test]
    fn a_socket_directory_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let first = SocketDirectory::new(Some(base.path())).unwrap();
        let second = SocketDirectory::new(Some(base.path())).unwrap();
        assert_ne!(first.path, second.path);
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(first.path.starts_with(base.path()));
        drop((first, second));
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_program_left_is_swept_up_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        // No process has a number beyond the kernel's greatest.
        let names = [
            "rubus-4194305-0",
            "rubus-4194305-1",
            "rubus-4194305-2/s",
            "rubus-lab-x",
            "rubus-1-0",
            "else",
        ];
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
        for name in names {
            std::fs::create_dir_all(base.path().join(name)).unwrap();
            let top = name.split('/').next().unwrap();
            let directory = File::open(base.path().join(top)).unwrap();
            directory.set_modified(long_ago).unwrap();
        }
        // One of a program in another process namespace, whose ssh has yet to make its socket.
        let new = File::open(base.path().join(names[1])).unwrap();
        new.set_modified(std::time::SystemTime::now()).unwrap();
        sweep(base.path());
        let left = names.map(|name| base.path().join(name).exists());
        assert_eq!(left, [false, true, true, true, true, true]);
    }

    #[test]
    fn a_long_runtime_directory_is_passed_over() {
        let base = tempfile::tempdir().unwrap();
        let long = base.path().join("x".repeat(90));
        std::fs::create_dir(&long).unwrap();
        let socket = SocketDirectory::new(Some(&long)).unwrap();
        assert!(socket.path.starts_with("/tmp"), "{:?}", socket.path);
    }

    #[test]
    fn time_limits_are_only_set_where_the_user_has_none() {
        let words = |settings: &[(&str, &str)]| {
            let owned: Vec<_> = settings
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            let arguments = fixed_arguments(&owned);
            let all: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
            all.join(" ")
        };
        let none = words(&[]);
        assert!(none.contains("ConnectTimeout=20") && none.contains("ServerAliveInterval=15"));
        assert!(!none.contains("RemoteCommand"), "older ssh does not know it");
        let own = words(&[
            ("connecttimeout", "5"),
            ("serveraliveinterval", "60"),
            ("remotecommand", "tmux attach"),
        ]);
        assert!(!own.contains("ConnectTimeout") && !own.contains("ServerAlive"));
        assert!(own.contains("RemoteCommand=none"));
    }
}
