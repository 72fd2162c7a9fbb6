//! A booted board: files go in with the boot, commands are run, files come back, the board is
//! switched off. One session serves many commands, because starting a board is what costs time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};

use crate::board::Board;
use crate::cache::Cache;
use crate::channel::{Channel, Outcome};
use crate::cpio::Archive;
use crate::drives::Drives;
pub use crate::emulator::INSTRUCTION_NS;
use crate::emulator::{self, Emulator, Start};
use crate::firmware::Media;
use crate::kit::{Kit, UsbDisk};
use crate::monitor::Monitor;
pub use crate::options::Options;
use crate::snapshot::{self, Kept, Running, Snapshot, Untouched};
use crate::{firmware, image, tools};

const AGENT: &str = include_str!("../board/agent");
const KEEP_LAB: &str = include_str!("../board/keep-lab");

/// How long a board may take to start: seconds on a free machine, minutes on a loaded one.
const BOOT_LIMIT: Duration = Duration::from_secs(600);
const OFF_LIMIT: Duration = Duration::from_secs(60);

/// The address under which a board with a network reaches the servers on this machine's loopback.
pub const HOST_ADDRESS: &str = "10.0.2.2";

/// A board that is on. Dropping it cuts the power.
#[derive(Debug)]
pub struct Session {
    board: Board,
    emulator: Emulator,
    channel: Channel,
    pub(crate) monitor: Monitor,
    pub(crate) drives: Drives,
    boot: firmware::Boot,
    /// The one that was used, with the harness's files.
    initramfs: Option<PathBuf>,
    boot_s: f64,
    uptime_s: f64,
    // Last, so that it is removed after the emulator has ended.
    directory: tempfile::TempDir,
}

/// What running any command on a board needs of this machine; empty when all is there.
#[must_use]
pub fn missing_tools(cache: &Cache, board: Board) -> Vec<tools::Tool> {
    let mut needed = vec![board.emulator(), tools::KEEPER, tools::OVERLAY];
    needed.extend_from_slice(tools::FIRMWARE);
    if !image::built(cache, board) {
        needed.extend_from_slice(tools::BUILD);
    }
    tools::missing(&needed)
}

impl Session {
    /// Starts a board and waits until it takes commands. Its disks are built when the cache lacks
    /// them, and never changed: what the board writes is forgotten.
    ///
    /// # Errors
    /// When a tool is missing, the disks cannot be built, or the board does not start.
    pub fn boot(cache: &Cache, board: Board, options: &Options) -> Result<Self> {
        let prepared = || Prepared::forgetful(cache, board, options, Some(AGENT));
        if !snapshot::is_possible(board, options) {
            return Self::start(prepared()?);
        }
        complete(cache, board)?;
        let usb = [UsbDisk::as_sold()];
        let untouched = Untouched { board, usb: &usb };
        let snapshot = snapshot::of(cache, &untouched, options, AGENT, || {
            Ok(Self::start(prepared()?)?.into_running())
        })?;
        Self::resume(cache, &snapshot, &untouched, options, None)
    }

    /// Starts a board from exactly what is on the disks of a kit, and waits until it takes
    /// commands. What it writes stays there. A kit drives one board at a time.
    ///
    /// # Errors
    /// When a tool is missing, the firmware finds nothing to start, or the board does not start.
    pub fn boot_kit(cache: &Cache, kit: &Kit, options: &Options) -> Result<Self> {
        // The emulator saves no bridge that can do UAS.
        let has_uas = kit.usb_disks().iter().any(|disk| disk.has_uas);
        if has_uas || !kit.is_untouched() || !snapshot::is_possible(kit.board(), options) {
            return Self::start(Prepared::kept(cache, kit, options, Some(AGENT))?);
        }
        complete(cache, kit.board())?;
        let untouched = Untouched { board: kit.board(), usb: kit.usb_disks() };
        let snapshot = snapshot::of(cache, &untouched, options, AGENT, || {
            let prepared = Prepared::kept(cache, kit, options, Some(AGENT))?;
            Ok(Self::start(prepared.on_overlays()?)?.into_running())
        })?;
        Self::resume(cache, &snapshot, &untouched, options, Some(kit))
    }

    /// Resumes a board that has started once, on the disks of a kit or on overlays.
    fn resume(
        cache: &Cache,
        snapshot: &Snapshot,
        untouched: &Untouched<'_>,
        options: &Options,
        kit: Option<&Kit>,
    ) -> Result<Self> {
        let started = Instant::now();
        let directory = cache.work_directory()?;
        let (mut drives, kept) = match kit {
            Some(kit) => (kit.drives(), Kept::InTheFiles),
            None => {
                let disks = image::disks(cache, untouched.board)?;
                (Drives::of_files(&disks.sd, &[(&disks.usb, UsbDisk::as_sold())]), Kept::InOverlays)
            }
        };
        drives.limits_sd = options.throttle_sd;
        snapshot.bring_disks(&mut drives, kept, directory.path())?;
        snapshot.bring_console(directory.path())?;
        let boot = snapshot.boot();
        let initramfs = boot.initramfs.clone();
        let start = Start {
            board: untouched.board,
            drives: &drives,
            boot: &boot,
            initramfs: initramfs.as_deref(),
            network: options.network,
            counts_instructions: false,
            own_devices: &[],
            resumes: true,
        };
        let running = emulator::start(&start, directory.path())?;
        let mut session = Self {
            board: untouched.board,
            emulator: running.emulator,
            channel: Channel::over(running.port)?,
            monitor: running.monitor,
            drives,
            boot,
            initramfs,
            boot_s: 0.0,
            uptime_s: snapshot.uptime_s(),
            directory,
        };
        snapshot.go_on(&mut session.monitor).map_err(|error| {
            let words = session.emulator.last_words();
            anyhow!("the {} could not be resumed: {error:#}\n{words}", untouched.board.title())
        })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        session.must(&format!("date -s @{now}"), "root", BOOT_LIMIT)?;
        session.boot_s = started.elapsed().as_secs_f64();
        Ok(session)
    }

    /// Gives what a snapshot is made of.
    fn into_running(self) -> Running {
        Running {
            board: self.board,
            monitor: self.monitor,
            emulator: self.emulator,
            drives: self.drives,
            boot: self.boot,
            initramfs: self.initramfs,
            directory: self.directory,
            uptime_s: self.uptime_s,
        }
    }

    fn start(prepared: Prepared) -> Result<Self> {
        let board = prepared.board;
        let started = Instant::now();
        let running = emulator::start(&prepared.start(), prepared.directory.path())?;
        let mut emulator = running.emulator;
        let channel = Channel::over(running.port)?;
        let ready = channel.wait_ready(prepared.patience, || {
            emulator.alive()?;
            let console = emulator.console_text();
            match prepared.hopeless.iter().find(|words| console.contains(**words)) {
                Some(words) => bail!("its console says \"{words}\""),
                None => Ok(()),
            }
        });
        let uptime_s = match ready {
            Ok(uptime_s) => uptime_s,
            Err(error) => {
                let words = emulator.last_words();
                bail!(
                    "the {} did not start: {error:#}\nits command line: {}\n{words}",
                    board.title(),
                    prepared.boot.cmdline
                );
            }
        };
        Ok(Self {
            board,
            emulator,
            channel,
            monitor: running.monitor,
            drives: prepared.drives,
            boot: prepared.boot,
            initramfs: prepared.initramfs,
            boot_s: started.elapsed().as_secs_f64(),
            uptime_s,
            directory: prepared.directory,
        })
    }

    /// The board that this session runs.
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

    /// The logs of what is written to the card and to each USB disk; empty when nothing is logged.
    #[must_use]
    pub fn write_logs(&self) -> Vec<PathBuf> {
        self.drives.logs()
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
        let begun = Instant::now();
        let outcome = self.channel.run(script, user, limit, show);
        // Seen in the log of a test that fails, or with --no-capture: what a board's time went into.
        eprintln!(
            "{:5.1} s on the board: {}",
            begun.elapsed().as_secs_f64(),
            script.lines().next().unwrap_or_default()
        );
        outcome.map_err(|error| self.lost(script, &error))
    }

    /// Starts a script that may take `limit`, and is followed with [`Session::follow`]. Until it has
    /// ended, nothing else can be asked of the board; its power may be cut.
    ///
    /// # Errors
    /// When the board does not answer.
    pub fn begin(&mut self, script: &str, user: &str, limit: Duration) -> Result<()> {
        let begun = self.channel.begin(script, user, limit);
        begun.map_err(|error| self.lost(script, &error))
    }

    /// Shows `see` the output of what was begun as it comes, until `see` gives `false` or `limit`
    /// passes; then the answer is `None`, and it can be followed on. At its end, what it left.
    ///
    /// # Errors
    /// When the board does not answer.
    pub fn follow(
        &mut self,
        limit: Duration,
        see: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<Outcome>> {
        let outcome = self.channel.follow(limit, see);
        outcome.map_err(|error| self.lost("what was begun", &error))
    }

    /// Gives a line to the script that was begun and reads it from the port named in `/run/lab/port`.
    ///
    /// # Errors
    /// When the emulator ended.
    pub fn answer(&mut self, line: &str) -> Result<()> {
        self.channel.answer(line)
    }

    fn lost(&self, script: &str, error: &anyhow::Error) -> anyhow::Error {
        let words = self.emulator.last_words();
        anyhow!("the board was lost while running {script:?}: {error:#}\n{words}")
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

    /// Stops the whole emulator at this moment, without the flush of its disks that [`Session::pause`] brings.
    ///
    /// # Errors
    /// When it has ended.
    pub fn freeze(&mut self) -> Result<()> {
        self.emulator.freeze()
    }

    /// Lets a frozen emulator go on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn thaw(&mut self) -> Result<()> {
        self.emulator.thaw()
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

    /// Cuts the power at this moment: the emulator is killed.
    ///
    /// What that models: processor and memory stop between two instructions. Every write that a disk
    /// had reported as done is on it, flushed or not, because the emulator had given it to this
    /// machine's kernel; a write that was under way is there in part, whole, or not at all; what
    /// the board held in memory is lost. It is a disk without a cache of its own; one that loses or reorders what was not
    /// flushed is in [`crate::power_cuts`].
    pub fn cut_power(mut self) {
        self.emulator.cut_power();
    }
}

/// Runs a board with its console on this terminal, for people. With a kit, what it writes is kept.
///
/// # Errors
/// As [`Session::boot`].
pub fn boot_on_terminal(
    cache: &Cache,
    board: Board,
    kit: Option<&Kit>,
    options: &Options,
) -> Result<()> {
    let prepared = match kit {
        Some(kit) => Prepared::kept(cache, kit, options, None)?,
        None => Prepared::forgetful(cache, board, options, None)?,
    };
    emulator::start_on_terminal(&prepared.start())?;
    Ok(())
}

/// A board's drives and what the firmware found on them.
struct Prepared {
    board: Board,
    drives: Drives,
    boot: firmware::Boot,
    initramfs: Option<PathBuf>,
    network: bool,
    counts_instructions: bool,
    own_devices: Vec<String>,
    patience: Duration,
    hopeless: &'static [&'static str],
    directory: tempfile::TempDir,
}

impl Prepared {
    fn forgetful(
        cache: &Cache,
        board: Board,
        options: &Options,
        agent: Option<&str>,
    ) -> Result<Self> {
        complete(cache, board)?;
        let disks = image::disks(cache, board)?;
        let directory = cache.work_directory()?;
        let drives = Drives::of_files(&disks.sd, &[(&disks.usb, UsbDisk::as_sold())]);
        let drives = snapshot::overlays(&drives, directory.path())?;
        let media = Media { card: Some(&disks.sd), usb: vec![&disks.usb] };
        Self::with(board, drives, &media, directory, options, agent)
    }

    fn kept(cache: &Cache, kit: &Kit, options: &Options, agent: Option<&str>) -> Result<Self> {
        complete(cache, kit.board())?;
        let drives = kit.drives();
        if options.network && kit.board().network_takes_the_plug() && !drives.usb.is_empty() {
            bail!("the {} has one USB plug: either a network card or disks", kit.board().title());
        }
        let card = kit.sd();
        let usb: Vec<PathBuf> = (0..drives.usb.len()).map(|n| kit.usb(n)).collect();
        let media = Media { card: Some(&card), usb: usb.iter().map(PathBuf::as_path).collect() };
        let directory = cache.work_directory()?;
        Self::with(kit.board(), drives, &media, directory, options, agent)
    }

    fn with(
        board: Board,
        mut drives: Drives,
        media: &Media<'_>,
        directory: tempfile::TempDir,
        options: &Options,
        agent: Option<&str>,
    ) -> Result<Self> {
        let mut media = media.clone();
        drives.limits_sd = options.throttle_sd;
        drives.card_in_reader = options.card_in_reader;
        if options.logs_writes {
            drives.log_directory = Some(directory.path().to_path_buf());
            for log in drives.logs() {
                fs::File::create(&log).with_context(|| format!("cannot make {log:?}"))?;
            }
        }
        if options.without_card {
            drives.sd = None;
            media.card = None;
        }
        let is_plug_taken = options.network && board.network_takes_the_plug();
        if options.without_usb || is_plug_taken {
            drives.usb.clear();
            media.usb.clear();
        }
        let mut boot = firmware::read(board, &media, options.switches, directory.path())?;
        if !options.kernel_words.is_empty() {
            boot.cmdline = format!("{} {}", boot.cmdline, options.kernel_words);
        }
        let initramfs = match &boot.initramfs {
            Some(own) => {
                let joined = directory.path().join("lab-and-initramfs");
                let mut bytes = harness_files(board, options, agent)?;
                bytes.extend(fs::read(own)?);
                fs::write(&joined, bytes)?;
                Some(joined)
            }
            None => None,
        };
        Ok(Self {
            board,
            drives,
            boot,
            initramfs,
            network: options.network,
            counts_instructions: options.counts_instructions,
            own_devices: options.own_devices.clone(),
            patience: options.patience.unwrap_or(BOOT_LIMIT),
            hopeless: options.hopeless,
            directory,
        })
    }

    fn start(&self) -> Start<'_> {
        Start {
            board: self.board,
            drives: &self.drives,
            boot: &self.boot,
            initramfs: self.initramfs.as_deref(),
            network: self.network,
            counts_instructions: self.counts_instructions,
            own_devices: &self.own_devices,
            resumes: false,
        }
    }

    /// The same with overlays over its drives, so that these stay as they are.
    fn on_overlays(mut self) -> Result<Self> {
        self.drives = snapshot::overlays(&self.drives, self.directory.path())?;
        Ok(self)
    }
}

/// Fails when this machine lacks a tool that booting needs.
fn complete(cache: &Cache, board: Board) -> Result<()> {
    let absent = missing_tools(cache, board);
    if !absent.is_empty() {
        bail!("{}", tools::remedy(&absent));
    }
    Ok(())
}

/// What the harness puts before the boot partition's initial RAM filesystem, so that the disks need
/// not be touched: the time, the files to push, and the agent. It stands before and not behind,
/// because the kernel reads on after an archive that is not compressed, but not after every kind of
/// compressed one.
fn harness_files(board: Board, options: &Options, agent: Option<&str>) -> Result<Vec<u8>> {
    use std::os::unix::fs::PermissionsExt;
    let mut archive = Archive::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    archive.file("lab/time", 0o644, format!("{now}\n").as_bytes());
    archive.file("lab/port", 0o644, format!("{}\n", board.data_port()).as_bytes());
    archive.directory("lab/push");
    for path in &options.push {
        let context = || format!("could not read {path:?} to push it");
        let content = fs::read(path).with_context(context)?;
        let permissions = fs::metadata(path).with_context(context)?.permissions().mode();
        let name = path.file_name().with_context(context)?.to_string_lossy();
        archive.file(&format!("lab/push/{name}"), permissions & 0o777, &content);
    }
    if let Some(agent) = agent {
        archive.file("lab/agent", 0o755, agent.as_bytes());
    }
    // An archive in an archive, because not every initial RAM filesystem has a program that copies a
    // tree, but each one that initramfs-tools makes has cpio.
    let mut outer = Archive::new();
    outer.file("lab.cpio", 0o644, &archive.finish());
    // Read by the first program that initramfs-tools provides; the lab's own needs none.
    outer.file("conf/conf.d/rubus-lab", 0o644, KEEP_LAB.as_bytes());
    Ok(outer.finish())
}
