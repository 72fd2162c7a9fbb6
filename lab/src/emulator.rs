//! The emulator as a process: started with a board's disks and boot files, its two serial ports in
//! hand, and ended for certain: it dies with the thread that started it.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::board::Board;
use crate::drives::Drives;
use crate::firmware::Boot;
use crate::monitor::Monitor;
use crate::tools;

/// How long the emulator may take to open its serial ports.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long its threads may take to stand still.
const FREEZE_LIMIT: Duration = Duration::from_secs(10);

/// What the harness adds to the kernel's command line: a kernel that panics ends the emulator; and no protection
/// against what an emulated processor does not do, which makes system calls several times slower.
const OWN_ARGUMENTS: &str = "panic=-1 mitigations=off";

/// The same for a PC. On a busy machine, too few timer interrupts arrive while the kernel counts them, and it gives up.
/// An idle board that waits for the one interrupt it has requested has been seen to wait forever; with a periodic tick,
/// another one follows. When the emulator is not scheduled, the kernel calibrates the TSC wrongly, once by a factor of
/// sixty: such a fast clock makes every timeout of the board expire at once. The board's other clock needs no
/// calibration. These words come first, so that the caller's own can override them: a timer measurement needs
/// `highres=on`.
const OWN_PC_ARGUMENTS: &str = "no_timer_check nohz=off highres=off tsc=unstable ";

/// The file in an emulator's directory with all that the board's console says.
pub const CONSOLE: &str = "console";

/// Everything that the emulator starts with.
#[derive(Debug)]
pub struct Start<'a> {
    /// The board to emulate.
    pub board: Board,
    /// The images and overlays that the board sees as its disks.
    pub drives: &'a Drives,
    /// What the firmware hands over.
    pub boot: &'a Boot,
    /// The initial RAM filesystem to use: the boot partition's, with the harness's files behind.
    pub initramfs: Option<&'a Path>,
    /// Whether it has a network card.
    pub network: bool,
    /// Whether its clock counts instructions.
    pub counts_instructions: bool,
    /// Arguments for devices of its own, behind all others.
    pub own_devices: &'a [String],
    /// Whether it does not start, but waits for the state of a board that was saved.
    pub resumes: bool,
}

/// How far the clock of a board that counts instructions advances with each one: 500 million instructions a second. The
/// emulator supports powers of two only.
pub const INSTRUCTION_NS: u32 = 2;

/// A running emulator. Dropping it kills it.
#[derive(Debug)]
pub struct Emulator {
    child: Child,
    console: PathBuf,
    complaint: PathBuf,
}

/// An emulator that runs, and the connections to it.
#[derive(Debug)]
pub struct Started {
    /// The emulator's process; dropping it kills the board.
    pub emulator: Emulator,
    /// The board's second serial port.
    pub port: UnixStream,
    /// The emulator's own controls.
    pub monitor: Monitor,
}

/// Starts the emulator without a screen; its console goes to a file in `directory`.
///
/// # Errors
/// When it cannot be started or ends at once.
pub fn start(start: &Start<'_>, directory: &Path) -> Result<Started> {
    // A socket's path has at most 107 characters, so it is not in `directory`. It is not needed after both sides have
    // connected.
    let meeting = tempfile::tempdir().context("no temporary directory")?;
    let listen = |name: &str| {
        let socket = meeting.path().join(name);
        let listener =
            UnixListener::bind(&socket).with_context(|| format!("no socket {socket:?}"))?;
        let device = format!("socket,id={name},path={}", socket.display());
        anyhow::Ok((listener, device))
    };
    let (port_listener, port_device) = listen("port")?;
    let (monitor_listener, monitor_device) = listen("monitor")?;
    let console = directory.join(CONSOLE);
    let complaint = directory.join("complaint");
    let mut command = command(start);
    command
        .args(["-display", "none", "-no-reboot", "-chardev"])
        // What a saved board had said before stands there already.
        .arg(format!(
            "file,id=console,append=on,path={}",
            console.display().to_string().replace(',', ",,")
        ))
        .args(["-serial", "chardev:console"])
        .args(["-chardev", &port_device, "-serial", "chardev:port"])
        .args(["-chardev", &monitor_device])
        .args(["-mon", "chardev=monitor,mode=control"])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&complaint)?);
    let child = command
        .spawn()
        .with_context(|| format!("could not start {}", start.board.emulator().program))?;
    let mut emulator = Emulator { child, console, complaint };
    let port = emulator.accept(&port_listener)?;
    let monitor = Monitor::over(emulator.accept(&monitor_listener)?)?;
    Ok(Started { emulator, port, monitor })
}

/// Runs the emulator with its console on this terminal, until it ends.
///
/// # Errors
/// When it cannot be started.
pub fn start_on_terminal(start: &Start<'_>) -> Result<ExitStatus> {
    let mut command = command(start);
    command
        .args(["-display", "none", "-no-reboot", "-serial", "mon:stdio"])
        .args(["-serial", "none"])
        .stdin(Stdio::inherit());
    command.status().with_context(|| format!("could not start {}", start.board.emulator().program))
}

/// The emulator's command line, without serial ports.
fn command(start: &Start<'_>) -> Command {
    let program = start.board.emulator().program;
    let mut command = tools::command(tools::KEEPER.program);
    command.args(["--pdeathsig", "KILL", program]);
    command.args(start.board.machine_arguments());
    command.args(start.drives.arguments(start.board));
    if start.counts_instructions {
        let shift = INSTRUCTION_NS.ilog2();
        // While all processors rest, the clock goes on as this machine's does.
        command.args(["-icount", &format!("shift={shift},sleep=on")]);
    }
    if start.resumes {
        command.args(["-incoming", "defer"]);
    }
    if start.network {
        command.args(["-netdev", "user,id=net", "-device"]);
        command.arg(start.board.network_card());
    }
    command.args(start.own_devices);
    command.arg("-kernel").arg(&start.boot.kernel);
    if let Some(initramfs) = start.initramfs {
        command.arg("-initrd").arg(initramfs);
    }
    if let Some(device_tree) = &start.boot.device_tree {
        command.arg("-dtb").arg(device_tree);
    }
    let pc = match start.board {
        Board::Pc => OWN_PC_ARGUMENTS,
        Board::Pi3 => "",
    };
    command.arg("-append").arg(format!("{pc}{} {OWN_ARGUMENTS}", start.boot.cmdline));
    command
}

impl Emulator {
    fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream> {
        listener.set_nonblocking(true)?;
        let end = Instant::now() + START_LIMIT;
        loop {
            if let Ok((connection, _)) = listener.accept() {
                connection.set_nonblocking(false)?;
                return Ok(connection);
            }
            self.alive()?;
            if Instant::now() > end {
                bail!("the emulator opened no port within {} s", START_LIMIT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fails when the emulator has ended.
    ///
    /// # Errors
    /// When it has ended.
    pub fn alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the emulator ended ({status})"),
        }
    }

    /// The end of the console, and what the emulator complained of.
    #[must_use]
    pub fn last_words(&self) -> String {
        let complaint = fs::read_to_string(&self.complaint).unwrap_or_default();
        let console = self.console_text();
        format!(
            "{}\n--- end of the board's console ---\n{}",
            tools::tail(&complaint, 10),
            tools::tail(&console, 60)
        )
    }

    /// All that the console said so far.
    #[must_use]
    pub fn console_text(&self) -> String {
        let bytes = fs::read(&self.console).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the emulator has ended by itself.
    ///
    /// # Errors
    /// When it has not after `limit`; it is killed then.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > end {
                let words = self.last_words();
                self.cut_power();
                bail!("the board did not switch off within {} s\n{words}", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops all its threads, and waits until they stand still.
    ///
    /// # Errors
    /// When it has ended, or does not stop within seconds.
    pub fn freeze(&mut self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let end = Instant::now() + FREEZE_LIMIT;
        while !self.is_frozen()? {
            self.alive()?;
            if Instant::now() > end {
                bail!("the emulator does not stand still");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn thaw(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        self.alive()?;
        kill_process(Pid::from_child(&self.child), signal).context("cannot reach the emulator")
    }

    fn is_frozen(&self) -> Result<bool> {
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread that ends meanwhile does nothing more.
            let stat = fs::read_to_string(task?.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            if !matches!(state.chars().next(), None | Some('T' | 'Z' | 'X')) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the emulator at once, as if the power were cut.
    pub fn cut_power(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.cut_power();
    }
}
