//! Files served by nbdkit and shown by nbdfuse: devices that pause, fail or vanish when told to.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::moment::{Moment, Span};
use super::{mark, programs};

/// A file in memory behind a server; the file is called `disk`.
#[derive(Debug)]
pub(super) struct NbdFile {
    directory: TempDir,
    server: Child,
    mount: Child,
}

impl NbdFile {
    /// Serves this many bytes of memory through a filter of nbdkit.
    fn serve(
        size_bytes: u64,
        filter: &str,
        parameters: &[String],
        directory: TempDir,
    ) -> Result<Self> {
        let mut arguments =
            vec![format!("--filter={filter}"), "memory".into(), format!("size={size_bytes}")];
        arguments.extend_from_slice(parameters);
        NbdFile::serve_with(&arguments, directory)
    }

    /// Serves what nbdkit makes of these arguments.
    pub(super) fn serve_with(arguments: &[String], directory: TempDir) -> Result<Self> {
        let socket = directory.path().join("server");
        let mut server = programs::nbdkit()
            .arg("--unix")
            .arg(&socket)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start nbdkit")?;
        if let Err(error) = wait_for(&socket, &mut server) {
            end(&mut server);
            return Err(error.context("nbdkit did not begin to serve"));
        }
        let point = directory.path().join("mount");
        std::fs::create_dir(&point)?;
        let spawned = programs::command("nbdfuse")
            .arg(point.join("disk"))
            .arg("--unix")
            .arg(&socket)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mount = match spawned {
            Ok(mount) => mount,
            Err(error) => {
                end(&mut server);
                return Err(error).context("could not start nbdfuse");
            }
        };
        // From here on dropping the guard cleans up.
        let mut file = NbdFile { directory, server, mount };
        let path = file.path();
        wait_for(&path, &mut file.mount).context("nbdfuse did not show its file")?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("mount/disk")
    }
}

impl Drop for NbdFile {
    fn drop(&mut self) {
        // The server first: waiting requests then fail, instead of waiting forever as a mount in use would let them.
        end(&mut self.server);
        let point = self.directory.path().join("mount");
        let point = point.to_string_lossy();
        if programs::run("umount", &[&point]).is_err() {
            if let Err(error) = programs::run("umount", &["--lazy", &point]) {
                eprintln!("could not unmount {point}: {error:#}");
            }
        }
        end(&mut self.mount);
    }
}

/// A file that pauses when told to.
#[derive(Debug)]
pub struct PausingDevice {
    file: NbdFile,
    control: UnixStream,
}

impl PausingDevice {
    /// A file of this size.
    ///
    /// # Errors
    /// When the servers cannot be started.
    pub fn new(size_bytes: u64) -> Result<Self> {
        let directory = mark::directory()?;
        let socket = directory.path().join("control");
        let parameter = format!("pause-control={}", socket.display());
        let file = NbdFile::serve(size_bytes, "pause", &[parameter], directory)?;
        let control = UnixStream::connect(&socket).context("could not reach the pause control")?;
        Ok(PausingDevice { file, control })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Pauses the device for this long and says when that was. The pause begins when the server has
    /// answered all that was under way, and ends when it is told to go on.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn pause(&mut self, length: Duration) -> Result<Span> {
        self.tell(b'p', b'P')?;
        let began = Moment::now();
        std::thread::sleep(length);
        let ended = Moment::now();
        self.tell(b'r', b'R')?;
        Ok(Span { began, ended })
    }

    fn tell(&mut self, order: u8, expected: u8) -> Result<()> {
        self.control.write_all(&[order]).context("the pause control is gone")?;
        let mut answer = [0];
        self.control.read_exact(&mut answer).context("the pause control is gone")?;
        if answer[0] != expected {
            bail!("the pause control answered {:?} to {:?}", answer[0] as char, order as char);
        }
        Ok(())
    }
}

/// A file that fails with EIO, or vanishes, when told to.
#[derive(Debug)]
pub struct FailingDevice {
    file: NbdFile,
    trigger: PathBuf,
}

impl FailingDevice {
    /// A file of this size that works until it is told not to.
    ///
    /// # Errors
    /// When the servers cannot be started.
    pub fn new(size_bytes: u64) -> Result<Self> {
        let directory = mark::directory()?;
        let trigger = directory.path().join("fail");
        let parameters = [
            "error=EIO".to_string(),
            "error-rate=100%".to_string(),
            format!("error-file={}", trigger.display()),
        ];
        let file = NbdFile::serve(size_bytes, "error", &parameters, directory)?;
        Ok(FailingDevice { file, trigger })
    }

    /// Where the file is.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// From now on every operation fails with EIO.
    ///
    /// # Errors
    /// When the trigger cannot be set.
    pub fn begin_to_fail(&self) -> Result<()> {
        std::fs::write(&self.trigger, "").context("could not set the trigger")
    }

    /// Takes the device away, as pulling its cable does.
    pub fn vanish(&mut self) {
        end(&mut self.file.mount);
        end(&mut self.file.server);
    }
}

/// Waits until a path is there, as long as the process that makes it lives.
fn wait_for(path: &Path, process: &mut Child) -> Result<()> {
    let give_up = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        if let Some(status) = process.try_wait()? {
            bail!("it ended with {status}");
        }
        if Instant::now() > give_up {
            bail!("{} did not appear within 20 s", path.display());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}
