//! How a machine starts, link by link: from its firmware to the mounts of the running system.
//!
//! Each link says what was found, where, and how sure that is; the chain ends at the first that does not hold. The order
//! is that of a start. Pure: the facts may be those of a running machine, of a capture, or of the files of a card.

mod bus;
mod choice;
mod device_tree;
mod drivers;
mod encoding;
mod firmware;
mod interrupted;
mod kernel;
mod keys;
mod link;
mod mounts;
mod namesakes;
mod naming;
mod remake;
mod resume;
mod root;
mod running;
mod settings;
mod start_files;
mod switched_off;
mod width;

use std::collections::{BTreeMap, BTreeSet};

use rubus_vocabulary::machine::Bootloader;

use crate::autoboot;
use crate::config_txt::{BootPath, ConfigTxt, FORMS, ReadPartition, Reader};
use crate::eeprom::{Ability, Eeprom};
use crate::medium::{Certainty, Medium, Mode};
use crate::model::{Kernels, Model};
use crate::proof::{BootPartition, Images};
use crate::tryboot;
use crate::volume::{Name, NamedVolume};

pub use choice::{Candidate, Choice, Walk, choose, lacks, reads_autoboot};
pub use device_tree::{has_own_tree, has_tree_of_board};
pub use encoding::Encoding;
pub use firmware::FAT_TYPES;
pub use link::{Doubt, Link, Note, Stage, Stop, Subject};
pub use mounts::missing_key;
pub use naming::{named_root, opened_from};
pub use settings::UNTRIED_SET_STATE;

/// What a chain is made from.
#[derive(Clone, Debug)]
pub struct ChainFacts {
    /// Model of the board.
    pub model: Model,
    /// Its name, as people write it.
    pub board: String,
    /// Its serial number, where it is known.
    pub serial: Option<u64>,
    /// Another loader than the firmware of a Raspberry Pi, where one starts the machine ("UEFI").
    pub other_loader: Option<String>,
    /// What the firmware says of the running start; absent for a card that is looked at elsewhere.
    pub bootloader: Option<Bootloader>,
    /// The program in the EEPROM, on boards that have one.
    pub eeprom: Eeprom,
    /// From where it starts.
    pub medium: Medium,
    /// What kind of medium that is, where it is known.
    pub mode: Option<Mode>,
    /// How the medium is divided, where that was looked at.
    pub table: Option<DiskTable>,
    /// How the firmware comes to the boot partition, where there are several.
    pub choice: Choice,
    /// The files of the boot partition, and its small texts.
    pub partition: BootPartition,
    /// Whether the list of its files is whole, so that what is not in it is not there.
    pub is_whole: bool,
    /// Why the boot partition could not be read, where it could not.
    pub unread: Option<String>,
    /// Texts of the boot partition that are not UTF-8, by name.
    pub encodings: BTreeMap<String, Encoding>,
    /// What kernels and initial RAM filesystems hold, as far as they were looked into.
    pub images: Images,
    /// Files named as kernels that are programs which load one in their turn ("U-Boot"), by name.
    pub loaders: BTreeMap<String, &'static str>,
    /// Files named as kernels that were read and are none, by name.
    pub faulty_kernels: BTreeMap<String, Fault>,
    /// The volumes that are there at the start.
    pub volumes: Vec<NamedVolume>,
    /// Whether there are no others. Of a card, nothing is known of the other disks of a board.
    pub are_all_volumes: bool,
    /// The partition that is mounted where the boot partition belongs, by its path; absent where none is.
    pub mounted_boot: Option<String>,
    /// Whether updates write kernels to another place, where a loader on the boot partition reads them.
    pub kernels_are_elsewhere: bool,
    /// Whether updates write kernels to /boot/firmware, while the boot partition is mounted at /boot.
    pub updates_miss_mount: bool,
    /// The files of the root.
    pub root: RootFiles,
    /// The system that runs, on a running machine.
    pub running: Option<Running>,
}

/// How a disk is divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskTable {
    pub kind: TableKind,
    pub partitions: Vec<TablePartition>,
}

/// The kind of partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    Mbr,
    Gpt,
    /// A GPT, and an MBR that names the first FAT partition first.
    Hybrid,
}

/// A partition of the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePartition {
    /// Number of the partition, from 1.
    pub number: u32,
    /// `0x0c` in an MBR, a GUID in a GPT.
    pub type_id: String,
    /// Its filesystem, where one is recognised.
    pub filesystem: Option<String>,
}

/// What is known of the files of the root.
#[derive(Clone, Debug, Default)]
pub struct RootFiles {
    /// Why they could not be read, where they could not.
    pub unread: Option<String>,
    /// Why a table that is there is not understood, as a clause ("/etc/fstab is UTF-16").
    pub unread_table: Option<String>,
    /// Text of `/etc/fstab`.
    pub fstab: Option<String>,
    /// Text of `/etc/crypttab`.
    pub crypttab: Option<String>,
    /// Of the paths that both tables name, mount points, keys and files with filesystems, those that are not in the root. Of a
    /// card; else empty.
    pub absent: BTreeSet<String>,
    /// The kernel releases that have modules there; absent where the directory could not be read.
    pub releases: Option<BTreeSet<String>>,
    /// The subvolumes of a btrfs, by their paths without a slash in front.
    pub subvolumes: Option<BTreeSet<String>>,
    /// Their numbers, with 0 and 5 for the top.
    pub subvolume_numbers: Option<BTreeSet<u64>>,
    /// Path of the one that is mounted where none is named; empty for the top.
    pub default_subvolume: Option<String>,
    /// The first program by its path, and whether it is there.
    pub init: Option<(String, bool)>,
    /// Why it cannot be run, where it is there and that is known.
    pub init_defect: Option<Defect>,
    /// The first program that is started where `init=` names one that is not there.
    pub usual_init: Option<String>,
    /// Bits of the programs: 32 or 64.
    pub program_bits: Option<u32>,
    /// Whether the first program is systemd.
    pub is_systemd: Option<bool>,
}

/// What is wrong with a file that is named as a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ends before what is packed in it does.
    Cut,
    /// It is damaged, or a program that needs no system.
    NoKernel,
}

/// Why a first program that is there cannot be run. Source: execve(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    Empty,
    /// None of its permission bits lets it run.
    NotExecutable,
    /// It begins as no program and no script does.
    NoProgram,
    /// It is a program for another kind of processor.
    OtherProcessor,
}

impl ChainFacts {
    /// Whether a name that is on no volume is on none: a link of udev's ("/dev/disk/by-id/…") says so only where links of its
    /// directory were read.
    fn are_links_seen(&self, name: &Name) -> bool {
        let Name::Path(path) = name else { return true };
        let Some((directory, _)) = path.rsplit_once('/') else { return true };
        let is_beside =
            |link: &String| link.rsplit_once('/').is_some_and(|(of, _)| of == directory);
        !directory.starts_with("/dev/disk/")
            || self.volumes.iter().any(|volume| volume.links.iter().any(is_beside))
    }
}

/// The system that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The path of the volume that is mounted at `/`, as in the volumes; absent where it is none of them.
    pub root: Option<String>,
    /// Which of its subvolumes that is, where it is a btrfs ("/@").
    pub subvolume: Option<String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The command line that it was given (`/proc/cmdline`).
    pub command_line: Option<String>,
    /// Whether the firmware gave it an initial RAM filesystem, where that is known.
    pub had_initramfs: Option<bool>,
}

/// What the whole comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Starts,
    StopsAt(Stage),
    /// What comes behind this stage does not follow from what is known.
    NotCertainAfter(Stage),
}

/// How a machine starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartChain {
    links: Vec<Link>,
}

type Look = fn(&ChainFacts, &BootPath) -> Link;
/// The links behind the settings, in their order.
const LATER: [Look; 6] = [
    kernel::kernel,
    kernel::initramfs,
    settings::command_line,
    root::root,
    root::init,
    mounts::mounts,
];

impl StartChain {
    /// Follows a start as far as it leads.
    pub fn of(facts: &ChainFacts) -> StartChain {
        let mut chain = StartChain { links: Vec::new() };
        for look in [firmware::firmware, firmware::medium, firmware::partition] {
            if !chain.push(look(facts)) {
                return chain;
            }
        }
        let paths = paths(facts);
        if !chain.push(settings::settings(facts, &paths)) {
            return chain;
        }
        // Of several ways only the board knows which: where all lead to the same end, that does not matter.
        let tails: Vec<StartChain> =
            paths.iter().map(|path| StartChain::tail(facts, path)).collect();
        let Some(first) = tails.first() else { return chain };
        let is_unsure = tails.iter().any(|tail| tail.outcome() != first.outcome());
        if let Some(settings) = chain.links.last_mut().filter(|_| is_unsure) {
            settings.certainty = Certainty::NotKnown;
            // Which initial RAM filesystem is loaded is no matter of where the line with the root is.
            let files = |path: &BootPath| (path.kernel.clone(), path.cmdline.clone());
            if paths.iter().any(|path| files(path) != files(&paths[0])) {
                settings.doubt = Doubt::WhatIsRead;
            }
        }
        chain.links.extend(first.links.iter().cloned());
        chain
    }

    fn tail(facts: &ChainFacts, path: &BootPath) -> StartChain {
        let mut tail = StartChain { links: Vec::new() };
        for look in LATER {
            if !tail.push(look(facts, path)) {
                break;
            }
        }
        tail
    }

    /// The links in their order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// What the whole comes to: the first link that does not hold or is not known decides.
    pub fn outcome(&self) -> Outcome {
        match self.deciding() {
            Some(link) if link.certainty == Certainty::NotKnown => {
                Outcome::NotCertainAfter(link.stage.before())
            }
            Some(link) if link.stop.is_some() => Outcome::StopsAt(link.stage),
            Some(link) => Outcome::NotCertainAfter(link.stage),
            None => Outcome::Starts,
        }
    }

    /// The link that decides: the first that stops the start or is not known, or the last of a chain that ends before the
    /// mounts.
    pub fn deciding(&self) -> Option<&Link> {
        let mut links = self.links.iter();
        let decides = |link: &&Link| link.stop.is_some() || link.certainty == Certainty::NotKnown;
        let last = self.links.last().filter(|link| link.stage < Stage::Mounts);
        links.find(decides).or(last)
    }

    /// How sure the outcome is: as its least sure link up to the one that decides.
    pub fn certainty(&self) -> Certainty {
        if let Outcome::NotCertainAfter(_) = self.outcome() {
            return Certainty::NotKnown;
        }
        let end = self.deciding().map_or(Stage::Mounts, |link| link.stage);
        let links = self.links.iter().filter(|link| link.stage <= end);
        links.map(|link| link.certainty).min().unwrap_or(Certainty::NotKnown)
    }

    /// The first link that is likely and not certain: why the whole is no more than likely.
    pub fn likely(&self) -> Option<&Link> {
        self.links.iter().find(|link| link.certainty == Certainty::Likely)
    }

    /// What has to be true of the board, where a link depends on it, as a clause behind "if".
    pub fn condition(&self) -> Option<&str> {
        self.links.iter().find_map(|link| link.condition.as_deref())
    }

    /// The link that is not known and decides, where one does.
    pub fn doubt(&self) -> Option<&Link> {
        let is_unsure = matches!(self.outcome(), Outcome::NotCertainAfter(_));
        self.deciding().filter(|link| is_unsure && link.certainty == Certainty::NotKnown)
    }

    /// Whether the start stops because the system is for other boards.
    pub fn is_for_others(&self) -> bool {
        self.deciding().is_some_and(|link| link.stop.is_some() && link.is_for_others)
    }

    /// What does not end the start and matters, in the order of the links.
    pub fn notes(&self) -> impl Iterator<Item = (&Link, &Note)> {
        self.links.iter().flat_map(|link| link.notes.iter().map(move |note| (link, note)))
    }

    /// Appends a link; whether the start can be followed behind it.
    fn push(&mut self, link: Link) -> bool {
        let goes_on = link.stop.is_none() && !link.is_last;
        self.links.push(link);
        goes_on
    }
}

/// Whether the running start is a trial.
fn is_trial(facts: &ChainFacts) -> bool {
    facts.bootloader.and_then(|told| told.tryboot).is_some_and(|value| value != 0)
}

/// What the firmware reads as its settings.
fn config_name(facts: &ChainFacts) -> &'static str {
    let has_slots = |text: &str| autoboot::read(text, true).tryboot_a_b;
    let is_slot = facts.partition.text(autoboot::FILE).is_some_and(has_slots);
    let has_own = facts.partition.text(tryboot::FILE).is_some();
    if is_trial(facts) && has_own && !is_slot { tryboot::FILE } else { "config.txt" }
}

/// What the firmware may load, the usual case first.
pub fn paths(facts: &ChainFacts) -> Vec<BootPath> {
    let (config, includes) = config(facts);
    let exists = |path: &str| facts.partition.size_bytes(path).is_some();
    let paths = config.boot_paths(&reader(facts, &includes), &exists);
    with_running_line(facts, with_running_kernel(facts, paths))
}

/// The value of a setting, as far as it does not depend on what only the board knows.
fn setting(facts: &ChainFacts, name: &str) -> Option<String> {
    let (config, includes) = config(facts);
    config.get(name, &reader(facts, &includes))
}

/// The settings, and the files that they include.
fn config(facts: &ChainFacts) -> (ConfigTxt, BTreeMap<String, String>) {
    let text = facts.partition.text(config_name(facts)).unwrap_or_default();
    let config = ConfigTxt::parse(text);
    let includes = config.included(&|name| facts.partition.text(name).map(str::to_string));
    (config, includes)
}

fn reader<'a>(facts: &'a ChainFacts, includes: &'a BTreeMap<String, String>) -> Reader<'a> {
    Reader {
        model: &facts.model,
        serial: facts.serial,
        tryboot: is_trial(facts),
        partition: read_partition(facts),
        includes,
    }
}

/// The partition by its number, for filters of that name.
fn read_partition(facts: &ChainFacts) -> Option<ReadPartition> {
    let kernels = facts.model.kernels;
    let number = firmware::number_of(facts.medium.partition.as_deref()?)?;
    // Earlier boards read config.txt with a program of the boot partition, whose date is not known.
    let is_in_eeprom = kernels == Kernels::Bcm2712;
    let can = facts.eeprom.can(Ability::FilterByPartition, kernels) == Some(true);
    let is_filter_known = is_in_eeprom && can;
    Some(ReadPartition { number, is_filter_known })
}

/// Of several ways that the files and the firmware alone decide about, the one whose command line the running kernel was given is
/// taken again.
fn with_running_line(facts: &ChainFacts, mut paths: Vec<BootPath>) -> Vec<BootPath> {
    let is_form = |doubt: &String| FORMS.iter().any(|form| form.doubt == doubt);
    let is_decided = |doubt: &String| is_form(doubt) || doubt.starts_with("[boot_partition=");
    let given: BTreeSet<String> = paths
        .iter()
        .filter(|path| running::has_this_line(facts, path))
        .map(|path| path.cmdline.clone())
        .collect();
    if given.len() == 1 && paths.iter().flat_map(|path| &path.only_if).all(is_decided) {
        paths.retain(|path| given.contains(&path.cmdline));
    }
    paths
}

/// Of several kernels that are there, the one that runs is the one that is loaded.
fn with_running_kernel(facts: &ChainFacts, mut paths: Vec<BootPath>) -> Vec<BootPath> {
    let is_it = |path: &BootPath| running::is_this_kernel(facts, &path.kernel);
    let usual: Vec<&BootPath> = paths.iter().filter(|path| path.only_if.is_empty()).collect();
    let running: Vec<BootPath> =
        usual.iter().filter(|path| is_it(path)).copied().cloned().collect();
    if let ([one], true) = (running.as_slice(), usual.len() > 1) {
        paths.retain(|path| !path.only_if.is_empty());
        paths.insert(0, one.clone());
    }
    paths
}

#[cfg(test)]
mod tests;
