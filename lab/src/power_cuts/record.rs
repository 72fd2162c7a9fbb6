//! Records one change and its undoing, so that any number of power cuts can be made from that later: the disks at the start, the log of
//! what each disk completed, and where in the logs the command was at each of its stops. Of a change with a trial, the `rubus verify` that keeps it
//! is recorded too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::kit::{self, Kit, UsbDisk};
use crate::session::Session;

use super::caches::Caches;
use super::pass::{CALLS, ended_well, short, step_of, stop_in, stopping, words};
use super::{Campaign, Export, Lab, Random, Way, look, trial};

/// How often the logs are measured while the command is at no stop, as when it copies a tree.
const BETWEEN: Duration = Duration::from_millis(500);

/// The file that describes a recording.
const LABEL: &str = "recording.json";

/// Where the disks are once a trial was kept.
const KEPT: &str = "kept";

/// A change that was applied and undone once, in a directory.
#[derive(Debug)]
pub struct Recording {
    directory: PathBuf,
    /// What was recorded.
    pub label: Label,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// What followed `rubus apply`.
    pub change: Vec<String>,
    /// The USB disks.
    pub usb: Vec<UsbDisk>,
    /// The network disk.
    #[serde(default)]
    pub export: Option<Served>,
    /// Device and filesystem of the root after applying.
    pub root: String,
    /// The recorded `rubus apply`.
    pub apply: RecordedRun,
    /// Undoing; of a change with a trial, while that is waited for.
    pub undo: RecordedRun,
    /// Keeping the trial, where the change has one.
    #[serde(default)]
    pub verify: Option<Kept>,
}

/// A network disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Size in bytes.
    pub bytes: u64,
    /// The port that its address names.
    pub port: u16,
}

/// A trial that came up and was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Device and filesystem of the root that was tried.
    pub root: String,
    /// Where the logs were.
    pub run: RecordedRun,
}

/// Where the logs were while a command ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// Its stops in their order; the first is before it began.
    pub marks: Vec<Mark>,
}

/// A moment at which the whole board stood still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The call that had just ended; empty while the command ran.
    pub call: String,
    /// The record of the journal that had just become durable, in words.
    pub record: String,
    /// The step that was under way: number and title.
    pub step: String,
    /// How many entries the log of each disk had: the card, then the USB disks.
    pub entries: Vec<usize>,
}

impl Label {
    /// A campaign with the disks and the change of the recording.
    #[must_use]
    pub fn campaign(&self, campaign: &Campaign) -> Campaign {
        Campaign {
            usb: self.usb.clone(),
            change: self.change.clone(),
            export: self.export.as_ref().map(|served| Export {
                bytes: served.bytes,
                port: served.port,
                rubus: campaign.rubus.clone(),
            }),
            ..campaign.clone()
        }
    }
}

impl Recording {
    /// Opens the recording in a directory.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(LABEL);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{directory:?} has no recording (no {LABEL})"))?;
        let label = serde_json::from_str(&text).with_context(|| format!("{path:?} is damaged"))?;
        Ok(Self { directory: directory.to_owned(), label })
    }

    fn save(&self) -> Result<()> {
        let path = self.directory.join(LABEL);
        fs::write(&path, serde_json::to_string_pretty(&self.label)?)
            .with_context(|| format!("cannot write {path:?}"))
    }

    /// The disks on which a way began, before the board was switched on.
    ///
    /// # Errors
    /// When they are not there.
    pub fn start(&self, board: crate::board::Board, way: Way) -> Result<Kit> {
        Kit::open(board, &place(&self.directory, way))
    }

    /// The logs of a way: the card's, then those of the USB disks.
    #[must_use]
    pub fn logs(&self, way: Way) -> Vec<PathBuf> {
        logs(&place(&self.directory, way), self.label.usb.len())
    }

    /// The log of what reached the server of the network disk on a way, where there is one.
    #[must_use]
    pub fn export_log(&self, way: Way) -> Option<PathBuf> {
        let export = self.label.export.as_ref();
        export.map(|_| export_log(&place(&self.directory, way)))
    }

    /// The disks once a trial was kept, where the change has one.
    ///
    /// # Errors
    /// When they are not there.
    pub fn kept(&self, board: crate::board::Board) -> Result<Option<Kit>> {
        let kept = self.label.verify.as_ref();
        kept.map(|_| Kit::open(board, &self.directory.join(KEPT))).transpose()
    }

    /// The ways that were recorded.
    #[must_use]
    pub fn ways(&self) -> Vec<Way> {
        let kept = self.label.verify.as_ref().map(|_| Way::Verify);
        [Way::Apply, Way::Undo].into_iter().chain(kept).collect()
    }

    /// Where the logs of a way were; nowhere where it was not recorded.
    #[must_use]
    pub fn marks(&self, way: Way) -> &[Mark] {
        match (way, &self.label.verify) {
            (Way::Apply, _) => &self.label.apply.marks,
            (Way::Undo, _) => &self.label.undo.marks,
            (Way::Verify, Some(kept)) => &kept.run.marks,
            (Way::Verify, None) => &[],
        }
    }
}

fn place(directory: &Path, way: Way) -> PathBuf {
    directory.join(way.word())
}

fn export_log(place: &Path) -> PathBuf {
    place.join("export.log")
}

fn logs(place: &Path, usb: usize) -> Vec<PathBuf> {
    let names = (0..usb).map(|number| format!("usb{number}.log"));
    let names = std::iter::once("sd.log".to_owned()).chain(names);
    names.map(|name| place.join(name)).collect()
}

/// Records a change and its undoing in a directory, which may not have a recording yet.
///
/// # Errors
/// When the change fails, or the lab does.
pub fn record(cache: &Cache, campaign: &Campaign, directory: &Path) -> Result<Recording> {
    ensure!(campaign.lossy.is_some(), "only disks with write caches are recorded");
    ensure!(!directory.join(LABEL).exists(), "{directory:?} has a recording already");
    let lab = Lab { cache, campaign };
    let plain = Kit::temporary(cache, campaign.board, &campaign.usb)?;
    if let Some(export) = &campaign.export {
        plain.add_export(export.bytes)?;
    }
    let reference = lab.prepare(&plain)?;
    let start = plain.copy_to(&place(directory, Way::Apply))?;
    let (applied, _, apply) = lab.record(Way::Apply, &start, directory)?;
    let verify = if trial::is_in(&reference.home.manifest(&applied)?) {
        let start = applied.copy_to(&place(directory, Way::Verify))?;
        let (kept, root, run) = lab.record(Way::Verify, &start, directory)?;
        kept.copy_to(&directory.join(KEPT))?;
        Some(Kept { root, run })
    } else {
        None
    };
    let start = applied.copy_to(&place(directory, Way::Undo))?;
    let (_, root, undo) = lab.record(Way::Undo, &start, directory)?;
    let label = Label {
        change: campaign.change.clone(),
        usb: campaign.usb.clone(),
        export: campaign
            .export
            .as_ref()
            .map(|export| Served { bytes: export.bytes, port: export.port }),
        root,
        apply,
        undo,
        verify,
    };
    let recording = Recording { directory: directory.to_owned(), label };
    recording.save()?;
    Ok(recording)
}

/// Records one way of a recording again, as with another version of the product, from the disks with which it began.
///
/// # Errors
/// When it is the way forwards, from whose end the others begin, or one that was not recorded; as [`record`].
pub fn record_again(
    cache: &Cache,
    campaign: &Campaign,
    directory: &Path,
    way: Way,
) -> Result<Recording> {
    let mut recording = Recording::open(directory)?;
    ensure!(
        way != Way::Apply && recording.ways().contains(&way),
        "{} cannot be recorded again",
        way.word()
    );
    let campaign = recording.label.campaign(campaign);
    let lab = Lab { cache, campaign: &campaign };
    let start = recording.start(campaign.board, way)?;
    let (after, root, run) = lab.record(way, &start, directory)?;
    match way {
        Way::Verify => {
            after.copy_to(&directory.join(KEPT))?;
            recording.label.verify = Some(Kept { root, run });
        }
        Way::Apply | Way::Undo => recording.label.undo = run,
    }
    recording.save()?;
    Ok(recording)
}

impl Lab<'_> {
    /// Goes one way and keeps the logs; gives the disks afterwards, the root that it was gone from, and where the logs were.
    fn record(
        &self,
        way: Way,
        start: &Kit,
        directory: &Path,
    ) -> Result<(Kit, String, RecordedRun)> {
        let kit = start.temporary_copy(self.cache)?;
        let server = self.serve_logged(&kit)?;
        let mut board = self.boot_logged(&kit, way)?;
        let root = look::root(&mut board)?;
        let mut caches = Caches::of(self.cache, &mut board, start, Random::of(1), way)?;
        if let Some((_, log)) = &server {
            caches = caches.with_export(log)?;
        }
        if way == Way::Apply {
            self.attach(&mut board)?;
        }
        let command = self.command(&mut board, way)?;
        let titles = self.titles(&mut board, way)?;
        let mut course = RecordedRun::default();
        course.note(Mark::default(), &mut board, &mut caches)?;
        let script = stopping(&command, CALLS, None);
        board.begin(&script, "root", self.campaign.limit * 20)?;
        let mut step = String::new();
        let mut quiet = Duration::ZERO;
        loop {
            let mut stop = None;
            let ended = board.follow(BETWEEN, &mut |said| {
                stop = stop_in(said);
                stop.is_none()
            })?;
            if let Some(outcome) = ended {
                ended_well(&outcome).with_context(|| format!("could not {}", way.word()))?;
                break;
            }
            let mut mark = Mark::default();
            let is_stop = stop.is_some();
            if let Some(stop) = stop {
                if let Some(record) = &stop.record {
                    step = step_of(record, &titles).unwrap_or_default();
                    mark.record = words(record, &titles);
                }
                mark.call = short(&stop.call);
                quiet = Duration::ZERO;
            } else {
                quiet += BETWEEN;
            }
            if quiet > self.campaign.limit {
                bail!("{} did not end within {quiet:?}", way.word());
            }
            mark.step.clone_from(&step);
            course.note(mark, &mut board, &mut caches)?;
            if is_stop {
                board.answer("go")?;
            }
        }
        let end = Mark { call: "the end".to_owned(), ..Mark::default() };
        course.note(end, &mut board, &mut caches)?;
        let kept = logs(&place(directory, way), self.campaign.usb.len());
        for (log, kept) in board.write_logs().iter().zip(kept) {
            kit::copy(log, &kept)?;
        }
        if let Some((_, log)) = &server {
            kit::copy(log, &export_log(&place(directory, way)))?;
        }
        board.switch_off()?;
        Ok((kit, root, course))
    }
}

impl RecordedRun {
    /// Adds a mark with the lengths of the logs at this moment, unless nothing was written and nothing is said of it.
    fn note(&mut self, mark: Mark, board: &mut Session, caches: &mut Caches) -> Result<()> {
        let entries = caches.entries(board)?;
        let is_said = !mark.call.is_empty() || self.marks.is_empty();
        if is_said || self.marks.last().is_some_and(|last| last.entries != entries) {
            self.marks.push(Mark { entries, ..mark });
        }
        Ok(())
    }
}
