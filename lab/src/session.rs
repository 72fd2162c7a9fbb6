//! A booted board: files go in with the boot, commands are run, files come back, the board is
//! switched off. One session serves many commands, because starting a board is what costs time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};

use crate::board::{Board, Throttle};
use crate::cache::Cache;
use crate::channel::{Channel, Outcome};
use crate::cpio::Archive;
use crate::emulator::{self, Emulator, Start};
use crate::image::{self, Disks};
use crate::{firmware, tools};

const AGENT: &str = include_str!("../board/agent");

/// How long a board may take to start: seconds on a free machine, minutes on a loaded one.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
const OFF_LIMIT: Duration = Duration::from_secs(60);

/// How a board is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Limits of the SD card.
    pub throttle_sd: Option<Throttle>,
    /// Files for the board: each one is put into `/run/lab/push`, which is in the `PATH` of every
    /// command, under its own name and with its permissions.
    pub push: Vec<PathBuf>,
}

/// A board that is on. Dropping it cuts the power.
#[derive(Debug)]
pub struct Session {
    board: Board,
    emulator: Emulator,
    channel: Channel,
    boot_s: f64,
    uptime_s: f64,
    // Last, so that it is removed after the emulator has ended.
    _directory: tempfile::TempDir,
}

/// What running any command on a board needs of this machine; empty when all is there.
#[must_use]
pub fn missing_tools(cache: &Cache, board: Board) -> Vec<tools::Tool> {
    let mut needed = vec![board.emulator(), tools::KEEPER];
    needed.extend_from_slice(tools::FIRMWARE);
    if !image::built(cache, board) {
        needed.extend_from_slice(tools::BUILD);
    }
    tools::missing(&needed)
}

impl Session {
    /// Starts a board and waits until it takes commands. Its disks are built when the cache lacks
    /// them, and never changed.
    ///
    /// # Errors
    /// When a tool is missing, the disks cannot be built, or the board does not start.
    pub fn boot(cache: &Cache, board: Board, options: &Options) -> Result<Self> {
        let prepared = Prepared::new(cache, board, options, Some(AGENT))?;
        let started = Instant::now();
        let start = prepared.start(board, options);
        let (mut emulator, connection) = emulator::start(&start, prepared.directory.path())?;
        let channel = Channel::over(connection)?;
        let ready = channel.wait_ready(BOOT_LIMIT, || emulator.alive());
        let uptime_s = match ready {
            Ok(uptime_s) => uptime_s,
            Err(error) => {
                let words = emulator.last_words();
                bail!(
                    "the {} did not start: {error:#}
{words}",
                    board.title()
                );
            }
        };
        Ok(Self {
            board,
            emulator,
            channel,
            boot_s: started.elapsed().as_secs_f64(),
            uptime_s,
            _directory: prepared.directory,
        })
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> Board {
        self.board
    }

    /// Seconds from switching on to the first command, on the clock of this machine.
    #[must_use]
    pub fn boot_s(&self) -> f64 {
        self.boot_s
    }

    /// The board's own uptime at the first command, in seconds.
    #[must_use]
    pub fn uptime_s(&self) -> f64 {
        self.uptime_s
    }

    /// Runs a shell script on the board as `user`, for at most `limit`.
    ///
    /// # Errors
    /// When the board does not answer; a script that fails is no error here.
    pub fn run(&mut self, script: &str, user: &str, limit: Duration) -> Result<Outcome> {
        self.run_showing(script, user, limit, &mut |_| {})
    }

    /// As [`Session::run`]; `show` sees the standard output as it comes.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_showing(
        &mut self,
        script: &str,
        user: &str,
        limit: Duration,
        show: &mut dyn FnMut(&[u8]),
    ) -> Result<Outcome> {
        let outcome = self.channel.run(script, user, limit, show);
        outcome.map_err(|error| {
            let words = self.emulator.last_words();
            anyhow!(
                "the board was lost while running {script:?}: {error:#}
{words}"
            )
        })
    }

    /// Runs a script that must succeed; gives its standard output.
    ///
    /// # Errors
    /// When it ends with a status other than 0, with what it said.
    pub fn must(&mut self, script: &str, user: &str, limit: Duration) -> Result<String> {
        let outcome = self.run(script, user, limit)?;
        if outcome.status != 0 {
            bail!(
                "{script:?} ended with status {} on the board\n{}\n{}",
                outcome.status,
                tools::tail(&outcome.text(), 40),
                tools::tail(&outcome.complaint_text(), 40)
            );
        }
        Ok(outcome.text())
    }

    /// Brings files and directories of the board into `directory`, with their paths from `/` on.
    ///
    /// # Errors
    /// When one does not exist there or cannot be written here.
    pub fn pull(&mut self, paths: &[&str], directory: &Path) -> Result<()> {
        let archive = self.channel.pull(paths, Duration::from_secs(600))?;
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make the directory {directory:?}"))?;
        let packed = tempfile::NamedTempFile::new()?;
        fs::write(packed.path(), archive)?;
        tools::run(
            tools::command("tar")
                .args(["-xz", "--no-same-owner", "-C"])
                .arg(directory)
                .arg("-f")
                .arg(packed.path()),
        )?;
        Ok(())
    }

    /// All that the board's console said.
    #[must_use]
    pub fn console(&self) -> String {
        self.emulator.console_text()
    }

    /// Switches the board off in the proper way.
    ///
    /// # Errors
    /// When it does not go off by itself; the power is cut then.
    pub fn switch_off(mut self) -> Result<()> {
        self.channel.switch_off()?;
        self.emulator.wait(OFF_LIMIT)?;
        Ok(())
    }
}

/// Runs a board with its console on this terminal, for people.
///
/// # Errors
/// As [`Session::boot`].
pub fn boot_on_terminal(cache: &Cache, board: Board, options: &Options) -> Result<()> {
    let prepared = Prepared::new(cache, board, options, None)?;
    emulator::start_on_terminal(&prepared.start(board, options))?;
    Ok(())
}

/// A board's disks and what the firmware found on them.
struct Prepared {
    disks: Disks,
    boot: firmware::Boot,
    initramfs: Option<PathBuf>,
    directory: tempfile::TempDir,
}

impl Prepared {
    fn new(cache: &Cache, board: Board, options: &Options, agent: Option<&str>) -> Result<Self> {
        let absent = missing_tools(cache, board);
        if !absent.is_empty() {
            bail!("{}", tools::remedy(&absent));
        }
        let disks = image::disks(cache, board)?;
        let directory = cache.work_directory()?;
        let boot = firmware::read(board, &disks.sd, directory.path())?;
        let initramfs = match &boot.initramfs {
            Some(own) => {
                let joined = directory.path().join("initramfs-and-lab");
                let mut bytes = fs::read(own)?;
                bytes.extend(harness_files(board, options, agent)?);
                fs::write(&joined, bytes)?;
                Some(joined)
            }
            None => None,
        };
        Ok(Self {
            disks,
            boot,
            initramfs,
            directory,
        })
    }

    fn start<'a>(&'a self, board: Board, options: &Options) -> Start<'a> {
        Start {
            board,
            disks: &self.disks,
            boot: &self.boot,
            initramfs: self.initramfs.as_deref(),
            throttle_sd: options.throttle_sd,
        }
    }
}

/// What the harness adds behind the boot partition's initial RAM filesystem, so that the disks need
/// not be touched: the time, the files to push, and the agent.
fn harness_files(board: Board, options: &Options, agent: Option<&str>) -> Result<Vec<u8>> {
    use std::os::unix::fs::PermissionsExt;
    let mut archive = Archive::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    archive.file("lab/time", 0o644, format!("{now}\n").as_bytes());
    archive.file(
        "lab/port",
        0o644,
        format!("{}\n", board.data_port()).as_bytes(),
    );
    archive.directory("lab/push");
    for path in &options.push {
        let context = || format!("could not read {path:?} to push it");
        let content = fs::read(path).with_context(context)?;
        let permissions = fs::metadata(path)
            .with_context(context)?
            .permissions()
            .mode();
        let name = path.file_name().with_context(context)?.to_string_lossy();
        archive.file(&format!("lab/push/{name}"), permissions & 0o777, &content);
    }
    if let Some(agent) = agent {
        archive.file("lab/agent", 0o755, agent.as_bytes());
    }
    Ok(archive.finish())
}
