//! A shelf of boards: as many SSH servers of our own on this machine, each with a port, a
//! directory and a disk of its own, listed in an Ansible inventory.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rubus_lab::devices::{Limits, ThrottledLoop, free_port, programs};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What is wrong with a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It takes connections and says nothing.
    Hangs,
    /// It does not let us in.
    Refuses,
    /// It has another host key than it had before.
    HasAnotherKey,
    /// Its processor is one for which there is no program.
    IsOfAnotherKind,
}

/// A board of the shelf.
pub struct Board {
    server: Child,
    _disk: Option<ThrottledLoop>,
}

/// Several boards behind SSH servers, and the inventory that lists them.
pub struct Shelf {
    directory: TempDir,
    boards: Vec<Board>,
    /// Lines of the inventory.
    lines: String,
    /// Lines of the client's list of known hosts.
    known: String,
}

impl Shelf {
    /// An empty shelf.
    pub fn new() -> Shelf {
        let directory = TempDir::with_prefix("lab-shelf-").expect("a temporary directory");
        // Where the package's own unit makes it.
        std::fs::create_dir_all("/run/sshd").expect("the servers' empty directory");
        for key in ["host", "user", "other"] {
            let file = directory.path().join(key).display().to_string();
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &file];
            programs::run("ssh-keygen", &words).expect("a key");
        }
        Shelf { directory, boards: Vec::new(), lines: "[shelf]\n".into(), known: String::new() }
    }

    /// Adds a board whose `disk` is limited to this number of reads per second.
    pub fn add(&mut self, name: &str, reads_per_second: u64) {
        let limits = Limits { read_iops: Some(reads_per_second), ..Limits::default() };
        let disk = ThrottledLoop::new(8 << 20, limits).expect("a throttled device");
        let own = self.own(name);
        std::os::unix::fs::symlink(disk.path(), own.join("disk")).expect("a link");
        let command = disk.command(programs::find("sshd").expect("it was looked for"));
        self.start(name, command, Some(disk), None);
    }

    /// Adds a board that gives no result.
    pub fn add_broken(&mut self, name: &str, fault: Fault) {
        self.own(name);
        let command = Command::new(programs::find("sshd").expect("it was looked for"));
        self.start(name, command, None, Some(fault));
    }

    fn own(&self, name: &str) -> PathBuf {
        let own = self.directory.path().join(name);
        std::fs::create_dir(&own).expect("a directory");
        own
    }

    fn start(
        &mut self,
        name: &str,
        command: Command,
        disk: Option<ThrottledLoop>,
        fault: Option<Fault>,
    ) {
        let (all, own) = (self.directory.path(), self.directory.path().join(name));
        let port = free_port("127.0.0.1").expect("a port");
        let mut path = String::new();
        if fault == Some(Fault::IsOfAnotherKind) {
            crate::common::script(&own.join("uname"), "[ \"$1\" = -m ] && echo vax || echo Linux");
            path = format!("PATH={}:$PATH ", own.display());
        }
        let key = match fault {
            Some(Fault::Refuses) => "other.pub",
            _ => "user.pub",
        };
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {all}/host\nPidFile none\n\
             AuthorizedKeysFile {all}/{key}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n\
             SetEnv XDG_RUNTIME_DIR={own}\n\
             ForceCommand cd {own} && {path}exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            all = all.display(),
            own = own.display(),
        );
        let file = own.join("sshd_config");
        std::fs::write(&file, settings).expect("a file");
        let mut command = command;
        let server = command
            .args(["-D", "-e", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(own.join("log")).expect("a file"))
            .spawn()
            .expect("the server starts");
        self.boards.push(Board { server, _disk: disk });
        wait_until_it_listens(port, &own);
        if fault == Some(Fault::Hangs) {
            self.signal_last(Signal::STOP);
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.lines, "{name} ansible_port={port}");
        let host = match fault {
            Some(Fault::HasAnotherKey) => "other.pub",
            _ => "host.pub",
        };
        let key = std::fs::read_to_string(all.join(host)).expect("a key");
        let _ = write!(self.known, "[127.0.0.1]:{port} {key}");
    }

    fn signal_last(&self, signal: Signal) {
        let board = self.boards.last().expect("a board");
        let pid = Pid::from_raw(board.server.id() as i32).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    /// Writes the inventory and the client's configuration; gives their paths.
    pub fn files(&self) -> (PathBuf, PathBuf) {
        let path = |name: &str| self.directory.path().join(name);
        let key = path("user");
        let inventory = format!(
            "{}\n[shelf:vars]\nansible_host=127.0.0.1\nansible_user=root\nansible_ssh_private_key_file={}\n",
            self.lines,
            key.display()
        );
        std::fs::write(path("hosts"), inventory).expect("a file");
        // One that hangs is given up soon.
        let config = format!(
            "ConnectTimeout 8\nIdentitiesOnly yes\nUserKnownHostsFile {}\n",
            path("known").display()
        );
        std::fs::write(path("config"), config).expect("a file");
        std::fs::write(path("known"), &self.known).expect("a file");
        (path("hosts"), path("config"))
    }

    /// The directory of everything.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn wait_until_it_listens(port: u16, own: &Path) {
    let give_up = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = std::fs::read_to_string(own.join("log")).unwrap_or_default();
        assert!(Instant::now() < give_up, "no server: {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        for board in &mut self.boards {
            // Also ends one that is stopped.
            let _ = board.server.kill();
            let _ = board.server.wait();
        }
    }
}
