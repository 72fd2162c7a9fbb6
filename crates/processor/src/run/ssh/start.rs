//! Starting ssh and its server so that they use nothing of this machine's settings and leave nothing on it.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rubus_vocabulary::processor::ssh;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Files, HOST, Programs};

/// What is needed to start them.
pub(super) struct Start<'a> {
    programs: &'a Programs,
    files: &'a Files,
    /// A directory that root's server requires and does not have: it gets one in a private mount namespace.
    missing: Option<PathBuf>,
}

impl<'a> Start<'a> {
    /// Finds out whether the server would start.
    ///
    /// # Errors
    /// In the server's words, when it would not.
    pub(super) fn new(programs: &'a Programs, files: &'a Files) -> Result<Start<'a>, String> {
        let mut start = Start { programs, files, missing: None };
        let first = start.ask_server()?;
        if !first.status.success() {
            let complaint = String::from_utf8_lossy(&first.stderr).into_owned();
            let Some(missing) = ssh::missing_directory(&complaint) else {
                return Err(refusal(&complaint));
            };
            start.missing = Some(PathBuf::from(missing));
        }
        Ok(start)
    }

    /// What the client offers, as it prints its settings.
    pub(super) fn client_settings(&self) -> Result<String, String> {
        let mut command = self.client();
        command.args(["-G", HOST]);
        let output =
            command.output().map_err(|error| self.cannot_start(&self.programs.ssh, &error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the server offers.
    pub(super) fn server_settings(&self) -> Result<String, String> {
        let output = self.ask_server()?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(refusal(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// "OpenSSH_9.2p1".
    pub(super) fn version(&self) -> String {
        let output = self.client().arg("-V").output();
        let text = output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        let words = text.split([' ', ',']);
        words.into_iter().next().unwrap_or_default().trim().into()
    }

    /// A connection that swallows what is sent: ssh, the way into it, and what both ends complain about.
    pub(super) fn connection(&self, cipher: &str) -> Result<(Child, OwnedFd, Complaints), String> {
        let io = |error: std::io::Error| format!("there is no way into ssh: {error}");
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(|error| io(error.into()))?;
        let complaints = memfd_create("complaints", MemfdFlags::CLOEXEC);
        let complaints = File::from(complaints.map_err(|error| io(error.into()))?);
        let server = format!(
            "ProxyCommand={} -i -e -f {} -o AuthorizedKeysFile={}",
            quoted(&self.programs.sshd),
            self.files.settings.path(),
            self.files.authorized.path()
        );
        let mut command = self.client();
        command
            .args(["-T", "-c", cipher, "-l", &self.programs.user, "-o", &server])
            .args(["-o", &format!("IdentityFile={}", self.files.key.path())])
            .args(["-o", &format!("UserKnownHostsFile={}", self.files.known.path())])
            .args(OPTIONS)
            .args([HOST, "cat > /dev/null"])
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(complaints.try_clone().map_err(io)?);
        self.with_directory(&mut command)?;
        let ssh = command.spawn().map_err(|error| self.cannot_start(&self.programs.ssh, &error))?;
        Ok((ssh, ours, Complaints(complaints)))
    }

    fn ask_server(&self) -> Result<Output, String> {
        let mut command = Command::new(&self.programs.sshd);
        command
            .args(["-T", "-f", &self.files.settings.path()])
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", PATH)
            .stdin(Stdio::null());
        self.with_directory(&mut command)?;
        command.output().map_err(|error| self.cannot_start(&self.programs.sshd, &error))
    }

    fn client(&self) -> Command {
        let mut command = Command::new(&self.programs.ssh);
        command
            .args(["-F", "none"])
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", PATH)
            // It runs the server through this.
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null());
        command
    }

    /// Ends the command with this process, and gives it the directory that is missing: in a view of the filesystem that
    /// it shares with its children only, and that is gone with them.
    fn with_directory(&self, command: &mut Command) -> Result<(), String> {
        let path = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let missing = match &self.missing {
            None => None,
            Some(missing) => {
                let parent = missing.parent().unwrap_or(Path::new("/"));
                let both = (path(parent), path(missing));
                let (Ok(parent), Ok(missing)) = both else {
                    return Err(format!("{} is no path", missing.display()));
                };
                Some((parent, missing))
            }
        };
        // SAFETY: between fork and exec only system calls are made, on memory that was allocated before.
        unsafe {
            command.pre_exec(move || {
                // A session of its own: Ctrl-C is for us, who then end it in order.
                libc::setsid();
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                let Some((parent, missing)) = &missing else {
                    return Ok(());
                };
                check(libc::unshare(libc::CLONE_NEWNS))?;
                let (none, no_data) = (std::ptr::null(), std::ptr::null());
                check(libc::mount(
                    none,
                    c"/".as_ptr(),
                    none,
                    libc::MS_REC | libc::MS_PRIVATE,
                    no_data,
                ))?;
                check(libc::mount(
                    c"rubus".as_ptr(),
                    parent.as_ptr(),
                    c"tmpfs".as_ptr(),
                    libc::MS_NOSUID | libc::MS_NODEV,
                    c"mode=755,size=64k".as_ptr().cast(),
                ))?;
                check(libc::mkdir(missing.as_ptr(), 0o755))
            });
        }
        Ok(())
    }

    fn cannot_start(&self, program: &Path, error: &std::io::Error) -> String {
        match &self.missing {
            None => format!("cannot start {}: {error}", program.display()),
            Some(missing) => format!(
                "sshd wants the directory {0}, which this machine does not have, and it cannot be given one of its \
                 own ({error}); make it with `mkdir -m 755 {0}`, or run this as an ordinary user",
                missing.display()
            ),
        }
    }
}

/// What both ends wrote to their standard error.
pub(super) struct Complaints(File);

impl Complaints {
    /// All of it: writing has moved the place where it would be read.
    pub(super) fn text(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.0.seek(SeekFrom::Start(0));
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// What keeps the client from everything that its user has set or stored.
const OPTIONS: [&str; 22] = [
    "-o",
    "HostKeyAlias=rubus",
    "-o",
    "GlobalKnownHostsFile=/dev/null",
    "-o",
    "StrictHostKeyChecking=yes",
    "-o",
    "UpdateHostKeys=no",
    "-o",
    "IdentitiesOnly=yes",
    "-o",
    "IdentityAgent=none",
    "-o",
    "PreferredAuthentications=publickey",
    "-o",
    "BatchMode=yes",
    "-o",
    "ControlPath=none",
    "-o",
    "Compression=no",
    "-o",
    "LogLevel=ERROR",
];

fn check(result: libc::c_int) -> std::io::Result<()> {
    match result {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn refusal(complaint: &str) -> String {
    match ssh::reason(complaint) {
        Some(reason) => format!("sshd does not start: {reason}"),
        None => "sshd does not start, and does not say why".into(),
    }
}

/// For the shell, and for ssh, which replaces what stands behind a percent sign.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("'{}'", text.replace('\'', "'\\''").replace('%', "%%"))
}
