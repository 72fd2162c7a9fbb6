//! NBD servers that are not ours: nbdkit, qemu-nbd and the reference nbd-server, each with an export
//! of known content, size and speed.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::serving::{Listening, Serving};
use super::{mark, programs};

/// Where a server in the background tells its number, in its directory.
const PID_FILE: &str = "pid";

/// A running server. It is gone when this is dropped, and everything of it with it.
#[derive(Debug)]
pub struct NbdServer {
    // Before its directory, so that it has ended when that is removed.
    serving: Serving,
    directory: TempDir,
    address: String,
}

impl NbdServer {
    /// nbdkit on a Unix socket: filters, plugin and parameters as on its command line.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn nbdkit(arguments: &[&str]) -> Result<NbdServer> {
        let directory = mark::directory()?;
        let socket = directory.path().join("server");
        let mut command = programs::nbdkit();
        command.arg("--unix").arg(&socket).args(arguments);
        let address = unix_address(&socket, "");
        Self::start(directory, command, address, Listening::Socket(socket))
    }

    /// nbdkit on a port of 127.0.0.1, or of ::1.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn nbdkit_tcp(host: &str, arguments: &[&str]) -> Result<NbdServer> {
        let port = free_port(host)?;
        let mut command = programs::nbdkit();
        command.args(["--ipaddr", host, "--port", &port.to_string()]).args(arguments);
        let shown = if host.contains(':') { format!("[{host}]") } else { host.into() };
        let directory = mark::directory()?;
        let address = format!("nbd://{shown}:{port}/");
        Self::start(directory, command, address, Listening::Port(host.into(), port))
    }

    /// qemu-nbd with a raw image of this size, export `disk`, on a Unix socket.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn qemu(image_bytes: u64, arguments: &[&str]) -> Result<NbdServer> {
        let directory = mark::directory()?;
        let image = directory.path().join("image");
        std::fs::File::create(&image)?.set_len(image_bytes)?;
        let mut arguments = arguments.to_vec();
        let image = image.to_string_lossy();
        arguments.extend(["--format=raw", &image]);
        Self::qemu_in(directory, &arguments)
    }

    /// qemu-nbd with the image that its arguments name, export `disk`, on a Unix socket.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn qemu_of(arguments: &[&str]) -> Result<NbdServer> {
        Self::qemu_in(mark::directory()?, arguments)
    }

    fn qemu_in(directory: TempDir, arguments: &[&str]) -> Result<NbdServer> {
        let socket = directory.path().join("server");
        let mut command = programs::command("qemu-nbd");
        command
            .args(["--persistent", "--export-name=disk", "--socket"])
            .arg(&socket)
            .args(arguments);
        let address = unix_address(&socket, "disk");
        Self::start(directory, command, address, Listening::Socket(socket))
    }

    /// The reference server with an image of this size, export `disk`, on a port of 127.0.0.1.
    ///
    /// # Errors
    /// When it does not begin to serve.
    pub fn reference(image_bytes: u64) -> Result<NbdServer> {
        let directory = mark::directory()?;
        let image = directory.path().join("image");
        std::fs::File::create(&image)?.set_len(image_bytes)?;
        let port = free_port("127.0.0.1")?;
        let configuration = directory.path().join("config");
        let text = format!(
            "[generic]\nlistenaddr = 127.0.0.1\nport = {port}\nallowlist = true\n\
             [disk]\nexportname = {}\nflush = true\nfua = true\n",
            image.display()
        );
        std::fs::write(&configuration, text)?;
        let mut command = programs::command("nbd-server");
        command
            .arg("--config-file")
            .arg(&configuration)
            .arg("--pid-file")
            .arg(directory.path().join(PID_FILE));
        let address = format!("nbd://127.0.0.1:{port}/disk");
        let listening = Listening::Port("127.0.0.1".into(), port);
        Self::start(directory, command, address, listening)
    }

    fn start(
        directory: TempDir,
        command: Command,
        address: String,
        listening: Listening,
    ) -> Result<NbdServer> {
        Ok(NbdServer { serving: Serving::start(command, listening)?, directory, address })
    }

    /// The address of its export.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A directory of its own, gone with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        self.serving.kill();
        let background = std::fs::read_to_string(self.directory.path().join(PID_FILE));
        let number = background.ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = number.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn unix_address(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

/// A port that is unused now and that no other process of the lab gets at the same time: it is outside the kernel's
/// ephemeral range, and each process starts its search elsewhere.
///
/// # Errors
/// When there is none on that address.
pub fn free_port(host: &str) -> Result<u16> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    // From 32768 on the kernel gives them away (ip_local_port_range).
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    // Processes that were started one after the other begin far apart.
    let begin = std::process::id().wrapping_mul(7919);
    let mut refused = None;
    for _ in 0..1000 {
        let number = begin.wrapping_add(ASKED.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = (FIRST + number) as u16;
        match TcpListener::bind((host, port)) {
            Ok(_) => return Ok(port),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) => Err(error).with_context(|| format!("no free port on {host}")),
        None => bail!("no free port on {host}"),
    }
}
