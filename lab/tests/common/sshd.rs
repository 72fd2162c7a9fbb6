//! An SSH server of our own on this machine: own port, own keys, own configuration, reached under made-up
//! names. The machine's own server and the user's own keys are left alone.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{free_port, programs};
use tempfile::TempDir;

/// What these tests need.
pub const NEEDS: [Need; 4] = [
    Need::Root,
    Need::Program("sshd", "openssh-server"),
    Need::Program("ssh", "openssh-client"),
    Need::Program("ssh-keygen", "openssh-client"),
];

/// The names under which the server is reached.
pub const HOSTS: [&str; 2] = ["attic", "cellar"];
/// A name behind which no server listens.
pub const NOBODY: &str = "nobody";

/// A running server.
pub struct Server {
    directory: TempDir,
    server: Child,
}

impl Server {
    /// Starts one. `environment` is set for everything that runs over it, which otherwise has a runtime
    /// directory of its own.
    pub fn start(environment: &[(&str, &Path)]) -> Server {
        let mut more = String::new();
        for (name, value) in environment {
            // Writing to a string cannot fail.
            let _ = write!(more, " {name}={}", value.display());
        }
        if !more.is_empty() {
            // Only the first such line counts, so all stand on one.
            more = format!("SetEnv{more}\n");
        }
        Server::with_settings(&more)
    }

    /// Starts one that puts this directory in front of the PATH of everything that runs over it.
    pub fn with_programs(programs: &Path) -> Server {
        let directory = programs.display();
        let command = format!("PATH={directory}:$PATH exec sh -c \"$SSH_ORIGINAL_COMMAND\"");
        Server::with_settings(&format!("ForceCommand {command}\n"))
    }

    fn with_settings(more: &str) -> Server {
        let directory = TempDir::with_prefix("lab-sshd-").expect("a temporary directory");
        // Where the package's own unit makes it.
        std::fs::create_dir_all("/run/sshd").expect("the server's empty directory");
        for key in ["host", "user"] {
            let file = directory.path().join(key).display().to_string();
            programs::run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file])
                .expect("a key");
        }
        let port = free_port("127.0.0.1").expect("a port");
        let own = directory.path().display();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {own}/host\nPidFile none\n\
             AuthorizedKeysFile {own}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n{more}\
             SetEnv XDG_RUNTIME_DIR={own}/runtime\n"
        );
        std::fs::create_dir(directory.path().join("runtime")).expect("a directory");
        std::fs::write(directory.path().join("sshd_config"), settings).expect("a file");
        let client = |host: &str, port: u16| {
            format!(
                "Host {host}\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {own}/user\n \
                 IdentitiesOnly yes\n UserKnownHostsFile {own}/known\n HostKeyAlias lab\n"
            )
        };
        let nobody = client(NOBODY, free_port("127.0.0.1").expect("a port"));
        let config = client(&HOSTS.join(" "), port) + &nobody;
        std::fs::write(directory.path().join("config"), config).expect("a file");
        let host_key = std::fs::read_to_string(directory.path().join("host.pub")).expect("a key");
        std::fs::write(directory.path().join("known"), format!("lab {host_key}")).expect("a file");
        let log = std::fs::File::create(directory.path().join("log")).expect("a file");
        // It starts itself again for each connection, so it must know where it is.
        let program = programs::find("sshd").expect("it was looked for");
        let server = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(directory.path().join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the server starts");
        let server = Server { directory, server };
        server.wait_until_it_listens(port);
        server
    }

    fn wait_until_it_listens(&self, port: u16) {
        let give_up = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(self.directory.path().join("log"));
            assert!(Instant::now() < give_up, "no server: {}", log.unwrap_or_default());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The runtime directory of what runs over it.
    pub fn runtime(&self) -> PathBuf {
        self.directory.path().join("runtime")
    }

    /// The client's configuration that knows the names.
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    /// Makes the client believe that another machine was there before.
    pub fn forget_host_key(&self) {
        let other = std::fs::read_to_string(self.directory.path().join("user.pub")).expect("a key");
        std::fs::write(self.directory.path().join("known"), format!("lab {other}"))
            .expect("a file");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
