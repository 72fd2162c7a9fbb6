//! Disks that are kept: an SD card and USB disks as plain files in a directory, from which a board
//! boots again and again. What a board wrote is there at the next boot, and can be looked at from
//! outside while it is off.
//!
//! The files are sparse, so that a kit takes what is on its disks and not their size; making one
//! or copying one takes well under a second.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::board::{Board, Throttle};
use crate::cache::Cache;
use crate::drives::Drives;
use crate::image;
use crate::tools;
pub use crate::usb_disk::{Content, UsbDisk};

/// The most USB disks that a board takes.
pub const MAX_USB: usize = 3;

/// The disks of one board in a directory.
#[derive(Debug)]
pub struct Kit {
    board: Board,
    directory: PathBuf,
    usb: Vec<UsbDisk>,
    /// When its disks were written, if this process made them: they are those of every new kit then.
    made: Vec<Option<SystemTime>>,
    // Only a temporary kit has it.
    _temporary: Option<tempfile::TempDir>,
}

/// What a kit's directory says of itself.
#[derive(Serialize, Deserialize)]
struct Label {
    board: String,
    usb: Vec<UsbDisk>,
}

const LABEL: &str = "kit.json";

impl Kit {
    /// A kit that is removed when it is dropped: a fresh SD system and these USB disks.
    ///
    /// # Errors
    /// As [`Kit::make`].
    pub fn temporary(cache: &Cache, board: Board, usb: &[UsbDisk]) -> Result<Self> {
        let directory = cache.work_directory()?;
        let mut kit = Self::make(cache, board, directory.path(), usb)?;
        kit._temporary = Some(directory);
        Ok(kit)
    }

    /// Makes a kit in `directory`: a fresh SD system and these USB disks.
    ///
    /// # Errors
    /// When there is one already, the board does not take such disks, or its disks cannot be built.
    pub fn make(cache: &Cache, board: Board, directory: &Path, usb: &[UsbDisk]) -> Result<Self> {
        check(board, usb)?;
        let base = image::disks(cache, board)?;
        let mut kit = Self {
            board,
            directory: std::path::absolute(directory)?,
            usb: usb.to_vec(),
            made: Vec::new(),
            _temporary: None,
        };
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make the directory {directory:?}"))?;
        if Self::is_in(directory) {
            bail!("{directory:?} has a kit already");
        }
        copy(&base.sd, &kit.sd())?;
        for (number, disk) in usb.iter().enumerate() {
            match disk.content {
                Content::AsSold => copy(&base.usb, &kit.usb(number))?,
                Content::Blank => {
                    let file = File::create(kit.usb(number)).context("could not make a disk")?;
                    file.set_len(disk.bytes).with_context(|| {
                        format!("could not make a disk of {} bytes", disk.bytes)
                    })?;
                }
            }
        }
        kit.write_label()?;
        kit.made = kit.written();
        Ok(kit)
    }

    /// Whether a directory has kept disks.
    #[must_use]
    pub fn is_in(directory: &Path) -> bool {
        directory.join(LABEL).exists()
    }

    /// Opens the kit in a directory.
    ///
    /// # Errors
    /// When there is none, or it is of another board.
    pub fn open(board: Board, directory: &Path) -> Result<Self> {
        let path = directory.join(LABEL);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{directory:?} has no kept disks (no {LABEL})"))?;
        let label: Label =
            serde_json::from_str(&text).with_context(|| format!("{path:?} is damaged"))?;
        if label.board != board.name() {
            bail!("the disks in {directory:?} belong to the board {}", label.board);
        }
        Ok(Self {
            board,
            directory: std::path::absolute(directory)?,
            usb: label.usb,
            made: Vec::new(),
            _temporary: None,
        })
    }

    /// Copies all disks into another directory, replacing what a kit left there.
    ///
    /// # Errors
    /// When they cannot be copied.
    pub fn copy_to(&self, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("could not make the directory {directory:?}"))?;
        let other = Self {
            board: self.board,
            directory: std::path::absolute(directory)?,
            usb: self.usb.clone(),
            made: Vec::new(),
            _temporary: None,
        };
        copy(&self.sd(), &other.sd())?;
        for number in 0..self.usb.len() {
            copy(&self.usb(number), &other.usb(number))?;
        }
        if self.export().exists() {
            copy(&self.export(), &other.export())?;
        }
        other.write_label()?;
        Ok(other)
    }

    /// A copy that is removed when it is dropped.
    ///
    /// # Errors
    /// As [`Kit::copy_to`].
    pub fn temporary_copy(&self, cache: &Cache) -> Result<Self> {
        let directory = cache.work_directory()?;
        let mut other = self.copy_to(directory.path())?;
        other._temporary = Some(directory);
        Ok(other)
    }

    /// The board for which the kit's disks were made.
    #[must_use]
    pub fn board(&self) -> Board {
        self.board
    }

    /// Where the disks are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The SD card's bytes.
    #[must_use]
    pub fn sd(&self) -> PathBuf {
        self.directory.join("sd.img")
    }

    /// The bytes of a USB disk, counted from 0.
    #[must_use]
    pub fn usb(&self, number: usize) -> PathBuf {
        self.directory.join(format!("usb{number}.img"))
    }

    /// The bytes of the network disk, where the kit has one: no drive of the board, but a file that a server gives
    /// it, and that is copied with the drives.
    #[must_use]
    pub fn export(&self) -> PathBuf {
        self.directory.join("export.img")
    }

    /// Gives the kit an empty network disk of this size.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn add_export(&self, bytes: u64) -> Result<()> {
        let made = File::create(self.export()).and_then(|file| file.set_len(bytes));
        made.with_context(|| format!("could not make a network disk of {bytes} bytes"))
    }

    /// The USB disks, as they were bought.
    #[must_use]
    pub fn usb_disks(&self) -> &[UsbDisk] {
        &self.usb
    }

    /// Sets the limits that a USB disk has from the next boot on.
    pub fn limit_usb(&mut self, number: usize, limits: Option<Throttle>) {
        self.usb[number].limits = limits;
    }

    /// The drives for the emulator.
    pub(crate) fn drives(&self) -> Drives {
        let paths: Vec<PathBuf> = (0..self.usb.len()).map(|number| self.usb(number)).collect();
        let usb = self.usb.iter().zip(&paths);
        let usb: Vec<_> = usb.map(|(disk, path)| (path.as_path(), disk.clone())).collect();
        Drives::of_files(&self.sd(), &usb)
    }

    /// Whether its disks are unmodified since they were made, by boards and by anything else.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        !self.made.is_empty() && self.written() == self.made
    }

    /// When each disk was written last.
    fn written(&self) -> Vec<Option<SystemTime>> {
        let paths = (0..self.usb.len()).map(|number| self.usb(number)).chain([self.sd()]);
        let written = |path: PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
        paths.map(written).collect()
    }

    fn write_label(&self) -> Result<()> {
        let label = Label { board: self.board.name().to_owned(), usb: self.usb.clone() };
        let path = self.directory.join(LABEL);
        fs::write(&path, serde_json::to_string_pretty(&label)?)
            .with_context(|| format!("could not write {path:?}"))
    }
}

fn check(board: Board, usb: &[UsbDisk]) -> Result<()> {
    if usb.len() > MAX_USB {
        bail!("a board takes at most {MAX_USB} USB disks");
    }
    let buses = board.usb_buses();
    if usb.iter().any(|disk| disk.bus >= buses) {
        bail!("the {} has {buses} USB controller(s)", board.title());
    }
    Ok(())
}

/// Copies a disk with its holes; where the filesystem can, both share their blocks.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    tools::run(
        tools::command("cp")
            .args(["--sparse=auto", "--reflink=auto", "--no-preserve=mode"])
            .arg(from)
            .arg(to),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_differ_and_the_first_is_the_usual_one() {
        assert_eq!(UsbDisk::as_sold().serial, "4C530001230914116022");
        assert_eq!(UsbDisk::blank(1, 5).serial, "4C530001230914116023");
    }

    #[test]
    fn disks_that_the_board_does_not_take_are_refused() {
        let far = UsbDisk::blank(0, 1 << 20).on_bus(1);
        assert!(check(Board::Pc, std::slice::from_ref(&far)).is_ok());
        let text = check(Board::Pi3, &[far]).unwrap_err().to_string();
        assert!(text.contains("1 USB controller"), "{text}");
        let many: Vec<_> = (0..4).map(|n| UsbDisk::blank(n, 1)).collect();
        assert!(check(Board::Pc, &many).is_err());
    }

    #[test]
    fn an_empty_directory_is_no_kit() {
        let directory = tempfile::tempdir().unwrap();
        let text = Kit::open(Board::Pc, directory.path()).unwrap_err().to_string();
        assert!(text.contains("no kept disks"), "{text}");
    }
}
