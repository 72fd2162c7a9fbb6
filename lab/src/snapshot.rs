//! Boards that have started once and are resumed from then on: the emulator's memory and devices in a file, and what the start
//! has written to the disks as overlays. Resuming takes a second where starting takes ten to thirty.
//!
//! A snapshot is made the first time a board of its kind starts from untouched disks. It is kept in the cache and named
//! by the hash of all that such a start depends on: disks, pushed files, kernel words, emulator.
//!
//! Not everything can be resumed: not the Pi ([`is_possible`]), and a clock that counts instructions, a start without the card or on
//! trial are rare enough to be done each time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::cache::{Cache, Key};
use crate::drives::{CARD_READER, Drive, Drives, Format, UsbDrive};
use crate::emulator::{CONSOLE, Emulator};
use crate::firmware::{Boot, Switches};
use crate::kit::{UsbDisk, copy};
use crate::monitor::Monitor;
use crate::options::Options;
use crate::{image, tools};

/// Changes when snapshots of before are of no use any more.
const FORMAT: &str = "3";
const ABOUT: &str = "about.json";
const STATE: &str = "state";

/// The untouched disks that a board starts from.
#[derive(Clone, Debug)]
pub struct Untouched<'a> {
    /// The board that starts from these disks.
    pub board: Board,
    /// The USB disks, as they were bought.
    pub usb: &'a [UsbDisk],
}

/// A board that has started.
#[derive(Debug)]
pub struct Snapshot {
    directory: PathBuf,
    about: About,
}

/// What a snapshot says of itself beside its files.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    cmdline: String,
    has_initramfs: bool,
    has_device_tree: bool,
    uptime_s: f64,
    /// The configuration of the PC's card reader, which the emulator forgets ([`Monitor::pci_configuration`]).
    card_reader: Vec<u32>,
}

/// Whether a board that starts like this can be resumed instead.
#[must_use]
pub fn is_possible(board: Board, options: &Options) -> bool {
    let can_be_saved = match board {
        Board::Pc => true,
        // The emulator forgets what its SD host and DMA controller were doing, and the resumed kernel stumbles over that.
        Board::Pi3 => false,
    };
    let is_bare = options.without_card || options.without_usb;
    let has_more = options.card_in_reader || !options.own_devices.is_empty();
    let is_rare = is_bare || options.counts_instructions || has_more;
    let is_off = std::env::var_os("RUBUS_LAB_SNAPSHOTS").is_some_and(|value| value == "0");
    can_be_saved && options.switches == Switches::default() && !is_rare && !is_off
}

/// The snapshot for such a start. When there is none, `start` starts the board on overlays in the directory that it gets, and gives
/// what is running there once it takes commands.
///
/// # Errors
/// What `start` reports, or that the board cannot be saved.
pub fn of(
    cache: &Cache,
    untouched: &Untouched<'_>,
    options: &Options,
    agent: &str,
    start: impl FnOnce() -> Result<Running>,
) -> Result<Snapshot> {
    let name = format!("{}-started", untouched.board.name());
    let key = key(cache, untouched, options, agent)?;
    // Of two who want it at the same time, one makes it and the other waits.
    let lock = cache.root().join(format!("{name}-{}.lock", key.short()));
    fs::create_dir_all(cache.root())?;
    let lock = File::create(&lock).with_context(|| format!("cannot make {lock:?}"))?;
    flock(&lock, FlockOperation::LockExclusive).context("cannot wait for another process")?;
    let directory = cache.entry(&name, &key, |directory| start()?.save(directory))?;
    let path = directory.join(ABOUT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let about = serde_json::from_str(&text).with_context(|| format!("{path:?} is damaged"))?;
    Ok(Snapshot { directory, about })
}

/// A board that runs on overlays and is to be saved.
pub struct Running {
    /// The board to be saved.
    pub board: Board,
    /// The emulator's controls.
    pub monitor: Monitor,
    /// The emulator's process, ended once the state is saved.
    pub emulator: Emulator,
    /// Its drives, which are overlays.
    pub drives: Drives,
    /// What the firmware had found.
    pub boot: Boot,
    /// The initial RAM filesystem with which it was started.
    pub initramfs: Option<PathBuf>,
    /// Where its console is.
    pub directory: tempfile::TempDir,
    /// The board's own uptime, in seconds.
    pub uptime_s: f64,
}

impl Running {
    fn save(mut self, directory: &Path) -> Result<()> {
        self.monitor.command("stop", serde_json::json!({}))?;
        let card_reader = match self.board {
            Board::Pc => self.monitor.pci_configuration(CARD_READER)?,
            Board::Pi3 => Vec::new(),
        };
        self.monitor.save(&directory.join(STATE))?;
        self.emulator.cut_power();
        if let Some(card) = &self.drives.sd {
            keep_overlay(&card.path, &directory.join("sd.qcow2"))?;
        }
        for (number, usb) in self.drives.usb.iter().enumerate() {
            keep_overlay(&usb.drive.path, &directory.join(usb_name(number)))?;
        }
        copy(&self.directory.path().join(CONSOLE), &directory.join(CONSOLE))?;
        copy(&self.boot.kernel, &directory.join("kernel"))?;
        if let Some(initramfs) = &self.initramfs {
            copy(initramfs, &directory.join("initramfs"))?;
        }
        if let Some(device_tree) = &self.boot.device_tree {
            copy(device_tree, &directory.join("device-tree"))?;
        }
        let about = About {
            cmdline: self.boot.cmdline.clone(),
            has_initramfs: self.initramfs.is_some(),
            has_device_tree: self.boot.device_tree.is_some(),
            uptime_s: self.uptime_s,
            card_reader,
        };
        fs::write(directory.join(ABOUT), serde_json::to_string_pretty(&about)?)?;
        Ok(())
    }
}

impl Snapshot {
    /// Puts memory and devices into an emulator that waits for them, and lets the board go on.
    ///
    /// # Errors
    /// When the emulator does not take them.
    pub fn go_on(&self, monitor: &mut Monitor) -> Result<()> {
        monitor.load(&self.directory.join(STATE))?;
        if !self.about.card_reader.is_empty() {
            monitor.set_pci_configuration(CARD_READER, &self.about.card_reader)?;
        }
        monitor.command("cont", serde_json::json!({}))?;
        Ok(())
    }

    /// The board's own uptime when it was saved, in seconds.
    #[must_use]
    pub fn uptime_s(&self) -> f64 {
        self.about.uptime_s
    }

    /// What the firmware had found, with the initial RAM filesystem that was used.
    #[must_use]
    pub fn boot(&self) -> Boot {
        let file = |is_there: bool, name: &str| is_there.then(|| self.directory.join(name));
        Boot {
            kernel: self.directory.join("kernel"),
            initramfs: file(self.about.has_initramfs, "initramfs"),
            device_tree: file(self.about.has_device_tree, "device-tree"),
            cmdline: self.about.cmdline.clone(),
        }
    }

    /// Brings untouched disks to where the start had brought its own: into the files themselves (`Format::Raw`), or in overlays in
    /// `directory` over them.
    ///
    /// # Errors
    /// When a disk cannot be written.
    pub fn bring_disks(&self, drives: &mut Drives, kept: Kept, directory: &Path) -> Result<()> {
        if let Some(card) = &mut drives.sd {
            bring(&self.directory.join("sd.qcow2"), card, kept, &directory.join("sd.qcow2"))?;
        }
        for (number, UsbDrive { drive, .. }) in drives.usb.iter_mut().enumerate() {
            let name = usb_name(number);
            bring(&self.directory.join(&name), drive, kept, &directory.join(&name))?;
        }
        Ok(())
    }

    /// Puts the console's output up to the snapshot where the emulator appends to it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn bring_console(&self, directory: &Path) -> Result<()> {
        copy(&self.directory.join(CONSOLE), &directory.join(CONSOLE))
    }
}

/// Where a board's writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is in the disks' files.
    InTheFiles,
    /// It is in overlays, and the files stay as they are.
    InOverlays,
}

/// The drives of a start that is to be saved: overlays in `directory` over untouched disks.
///
/// # Errors
/// When an overlay cannot be made.
pub fn overlays(drives: &Drives, directory: &Path) -> Result<Drives> {
    let mut drives = drives.clone();
    if let Some(card) = &mut drives.sd {
        *card = overlay(&card.path, &directory.join("sd.qcow2"))?;
    }
    for (number, usb) in drives.usb.iter_mut().enumerate() {
        usb.drive = overlay(&usb.drive.path, &directory.join(usb_name(number)))?;
    }
    Ok(drives)
}

/// A file that holds what differs from `base`, which stays as it is.
///
/// # Errors
/// When it cannot be made.
pub fn overlay(base: &Path, path: &Path) -> Result<Drive> {
    tools::run(
        tools::command("qemu-img")
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(base)
            .arg(path),
    )?;
    Ok(Drive { path: path.to_path_buf(), format: Format::Overlay })
}

/// Keeps an overlay without the name of what it lies over.
fn keep_overlay(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    tools::run(tools::command("qemu-img").args(["rebase", "-u", "-f", "qcow2", "-b", ""]).arg(to))?;
    Ok(())
}

fn bring(saved: &Path, drive: &mut Drive, kept: Kept, place: &Path) -> Result<()> {
    copy(saved, place)?;
    let base = drive.path.clone();
    tools::run(
        tools::command("qemu-img")
            .args(["rebase", "-u", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(&base)
            .arg(place),
    )?;
    match kept {
        Kept::InTheFiles => {
            tools::run(
                tools::command("qemu-img").args(["commit", "-q", "-f", "qcow2"]).arg(place),
            )?;
            fs::remove_file(place)?;
        }
        Kept::InOverlays => {
            *drive = Drive { path: place.to_path_buf(), format: Format::Overlay };
        }
    }
    Ok(())
}

fn usb_name(number: usize) -> String {
    format!("usb{number}.qcow2")
}

/// The hash of all that a start depends on.
fn key(cache: &Cache, untouched: &Untouched<'_>, options: &Options, agent: &str) -> Result<Key> {
    let board = untouched.board;
    let disks = image::disks(cache, board)?;
    // Rebuilt disks have the old name.
    let built = fs::metadata(&disks.sd)?.modified()?;
    let version = tools::run(tools::command(board.emulator().program).arg("--version"))?;
    let mut ingredients = vec![
        FORMAT.to_owned(),
        format!("{:?} {built:?}", disks.sd),
        serde_json::to_string(untouched.usb)?,
        board.machine_arguments().join(" "),
        String::from_utf8_lossy(&version).into_owned(),
        agent.to_owned(),
        options.network.to_string(),
        options.kernel_words.clone(),
    ];
    for path in &options.push {
        let sum = tools::run(tools::command("sha256sum").arg(path))?;
        ingredients.push(String::from_utf8_lossy(&sum).into_owned());
    }
    Ok(Key::of(ingredients.iter().map(String::as_str)))
}
