//! The arguments of `rubus-lab cut`, and the campaign that they mean.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use rubus_lab::board::Board;
use rubus_lab::devices::free_port;
use rubus_lab::power_cuts::{Campaign, Export, LeftOut, Stops, Way};
use rubus_lab::product;

use crate::{blank_disk, usb_disks};

#[derive(Debug, Args)]
pub(crate) struct CutArguments {
    /// Cuts at random moments
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) runs: usize,
    /// Cut after every record of the journal too
    #[arg(long)]
    pub(crate) every_record: bool,
    /// Cut after every record, and after every flush, rename and removal of a file
    #[arg(long)]
    pub(crate) every_sync: bool,
    /// Of these, cut only where the call or the record contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// End each N-th cut while applying with `resume`, the others with `undo`
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) resume_each: usize,
    /// How long applying and undoing take at least; saves the runs that measure it
    #[arg(long, value_name = "SECONDS,SECONDS", value_parser = two_lengths)]
    pub(crate) lengths: Option<[Duration; 2]>,
    /// How many cuts are looked at at the same time
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) jobs: usize,
    /// Write counts and rows to this file, as tables
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Which board
    #[arg(long, default_value = "pc")]
    pub(crate) board: Board,
    /// A static rubus for the board's processor; without it, one is built
    #[arg(long, value_name = "PATH")]
    pub(crate) rubus: Option<PathBuf>,
    /// What is applied
    #[arg(long, default_value = "zswap")]
    pub(crate) recipe: String,
    /// An option of the recipe; {usb0} stands for the board's name of the first USB disk
    #[arg(long, value_name = "OPTION=VALUE")]
    pub(crate) option: Vec<String>,
    /// One more USB disk, blank, on controller BUS [0]
    #[arg(long, value_name = "BYTES[,BUS]", value_parser = blank_disk)]
    pub(crate) usb: Vec<(u64, usize)>,
    /// Serve the board a network disk of BYTES; {export} in an option or argument stands for its address
    #[arg(long, value_name = "BYTES")]
    pub(crate) export: Option<u64>,
    /// Shell scripts that are run on the board first, as one
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Vec<PathBuf>,
    /// Starting value of the random moments
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Give the disks write caches, and lose, keep, tear or reorder what was not flushed at each cut, by random numbers from
    /// SEED on; the card is in a USB reader then
    #[arg(long, value_name = "SEED")]
    pub(crate) lossy: Option<u64>,
    /// Leave out the N-th call of this name while applying, to see whether its absence is found
    #[arg(long, value_name = "CALL,N", value_parser = left_out, requires = "lossy")]
    pub(crate) without_flush: Option<LeftOut>,
    /// Instead of this, leave out each flush of applying in turn and say which cuts find that; for changes of the card's files
    #[arg(long, requires = "lossy")]
    pub(crate) each_flush: bool,
    /// Instead of this, record the change and its undoing in this directory, for any number of cuts with --replay
    #[arg(long, requires = "lossy", value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Instead of this, make --runs cuts from the recording in this directory, and judge them without a board
    #[arg(long, requires = "lossy", value_name = "DIR", conflicts_with = "record")]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: start each N-th cut, and every one that looks bad, on a board too; 0 for none
    #[arg(long, default_value_t = 25, value_name = "N")]
    pub(crate) board_each: usize,
    /// With --replay: cut only while this command runs (apply, undo or verify); with --record: record undo or verify again
    #[arg(long = "while", value_name = "COMMAND", value_parser = way)]
    pub(crate) during: Option<Way>,
    /// With --replay: end no change without a board, for those that mount, swap or set the kernel
    #[arg(long, requires = "replay")]
    pub(crate) look_only: bool,
    /// Seconds that a change may take
    #[arg(long, default_value_t = 900, value_name = "SECONDS")]
    pub(crate) timeout: u64,
    /// Put the disks of bad cuts, as they were at the cut, into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) keep_failures: Option<PathBuf>,
    /// More arguments for `rubus apply`
    #[arg(last = true)]
    pub(crate) more: Vec<String>,
}

impl CutArguments {
    pub(crate) fn campaign(self) -> Result<Campaign> {
        if self.lossy.is_some() && self.board != Board::Pc {
            bail!("only the pc can have its card in a USB reader, which --lossy needs");
        }
        let rubus = match self.rubus {
            Some(path) => path,
            None => product::rubus_for(self.board)?,
        };
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("could not read {path:?}"))
        };
        let prepare: String = self.script.iter().map(read).collect::<Result<_>>()?;
        let prepare = (!prepare.is_empty()).then_some(prepare);
        let export = match self.export {
            Some(bytes) => Some(Export {
                bytes,
                port: free_port("127.0.0.1")?,
                // This machine is of the PC's kind.
                rubus: match self.board {
                    Board::Pc => rubus.clone(),
                    Board::Pi3 => product::rubus_for(Board::Pc)?,
                },
            }),
            None => None,
        };
        let mut change = vec![self.recipe];
        change.extend(self.option);
        change.extend(self.more);
        Ok(Campaign {
            board: self.board,
            usb: usb_disks(&self.usb),
            rubus,
            export,
            change,
            prepare,
            before: None,
            after: None,
            runs: self.runs,
            stops: match (self.every_sync, self.every_record) {
                (true, _) => Stops::Syncs,
                (false, true) => Stops::Records,
                (false, false) => Stops::No,
            },
            only: self.only,
            resume_each: self.resume_each,
            lengths: self.lengths,
            jobs: self.jobs,
            seed: self.seed,
            lossy: self.lossy,
            without_flush: self.without_flush,
            limit: Duration::from_secs(self.timeout),
            keep_failures: self.keep_failures,
        })
    }
}

/// A call and its number, as `fsync,3`.
fn left_out(text: &str) -> Result<LeftOut, String> {
    let split = text.split_once(',');
    let found = split.and_then(|(call, number)| Some((call, number.parse().ok()?)));
    let (call, number) = found.ok_or("a call and its number, as fsync,3")?;
    Ok(LeftOut { call: call.to_owned(), number })
}

/// The way that a command goes.
fn way(text: &str) -> Result<Way, String> {
    let all = [Way::Apply, Way::Undo, Way::Verify];
    let found = all.into_iter().find(|way| way.word() == text);
    found.ok_or_else(|| format!("'{text}' is not apply, undo or verify"))
}

/// Reads `SECONDS,SECONDS`.
fn two_lengths(text: &str) -> Result<[Duration; 2], String> {
    let seconds = |text: &str| Some(Duration::from_secs(text.parse().ok()?));
    let both = text.split_once(',');
    let both = both.and_then(|(apply, undo)| Some([seconds(apply)?, seconds(undo)?]));
    both.ok_or_else(|| format!("'{text}' is not SECONDS,SECONDS (for example 60,5)"))
}
