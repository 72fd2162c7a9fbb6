//! The start of a card or image that is put into a board.

use std::path::Path;

use rubus_boot::autoboot;
use rubus_boot::chain::{
    Candidate, ChainFacts, Choice, DiskTable, Outcome, RootFiles, StartChain, TableKind,
    TablePartition, choose, has_own_tree, has_tree_of_board, lacks, named_root, opened_from, paths,
    reads_autoboot,
};
use rubus_boot::eeprom::Eeprom;
use rubus_boot::medium::{Certainty, Medium};
use rubus_boot::model::Model;
use rubus_boot::proof::{BootPartition, Images};
use rubus_boot::volume::NamedVolume;
use rubus_host::{Files, ReadError};
use rubus_machine::signature::Table;

use super::Start;
use super::boot_files::BootFiles;
use super::ladder::rung;
use super::root_files::{absent, init_of, modules_into, root_files, unread};
use super::subvolume;
use crate::card::{Btrfs, Card, USUAL_BLOCK_BYTES};

/// The boards that a card is followed in where none is named, the newest first.
const BOARDS: [&str; 7] = ["pi5", "pi4", "pi3", "pi02", "pi2", "pi0", "pi1"];
/// Boards with trees of their own, each with the one in whose place it is followed where a card has its tree and not that one's.
const RELATIVES: [(&str, &str); 9] = [
    ("pi500", "pi5"),
    ("cm5", "pi5"),
    ("pi400", "pi4"),
    ("cm4", "pi4"),
    ("cm4s", "pi4"),
    ("pi3+", "pi3"),
    ("cm3", "pi3"),
    ("pi0w", "pi0"),
    ("cm0", "pi02"),
];
/// What a disk is called while it is no board's yet.
pub(super) const PARTITION: &str = "partition ";

/// A disk by its partitions.
pub struct CardParts<'a> {
    /// Path of the disk or image.
    pub name: String,
    pub kind: TableKind,
    pub parts: Vec<CardPart<'a>>,
}

/// A partition, and its files.
pub struct CardPart<'a> {
    /// Partition number, from 1.
    pub number: u32,
    /// `0x0c` in an MBR, a GUID in a GPT.
    pub type_id: String,
    /// The names under which it is found.
    pub volume: NamedVolume,
    /// Its files, or why they cannot be read.
    pub files: Result<Box<dyn Files + 'a>, ReadError>,
    /// Its subvolumes, where it is a btrfs that can be read.
    pub btrfs: Option<Btrfs<'a>>,
}

impl CardPart<'_> {
    /// What a partition is called, and the paths that it may have in a board.
    pub fn volume(number: u32) -> NamedVolume {
        let disks = ["mmcblk0p", "sda", "nvme0n1p"];
        NamedVolume {
            path: format!("{PARTITION}{number}"),
            links: disks.iter().map(|disk| format!("/dev/{disk}{number}")).collect(),
            ..NamedVolume::default()
        }
    }
}

impl<'a> CardParts<'a> {
    /// Of a disk or an image that is open.
    ///
    /// # Errors
    /// A sentence when it has no partition table, or is not whole.
    pub fn of(name: &str, card: &Card<'a>) -> Result<CardParts<'a>, String> {
        let Some(table) = &card.table else {
            return Err(format!(
                "{name} has no partition table, so it is no image of a card (a packed one, such as .img.xz, is unpacked \
                 first: `xz -dk` or `unzip`)"
            ));
        };
        if let Some(bytes) = card.foreign_blocks {
            return Err(foreign(name, bytes, card.block_bytes()));
        }
        if let Some(cut) = card.partitions.iter().find(|part| part.is_cut) {
            return Err(format!(
                "{name} ends before its partition {} does: it is not whole; copy or download it again",
                cut.entry.number
            ));
        }
        let parts = card.partitions.iter().map(|part| {
            let found = part.filesystem.as_ref();
            CardPart {
                number: part.entry.number,
                type_id: part.entry.type_id.clone(),
                volume: NamedVolume {
                    partuuid: part.entry.partuuid.clone(),
                    partlabel: part.entry.name.clone(),
                    uuid: found.and_then(|one| one.uuid.clone()),
                    label: found.and_then(|one| one.label.clone()),
                    filesystem: found.map(|one| one.kind.clone()),
                    ..CardPart::volume(part.entry.number)
                },
                files: card.files(part),
                btrfs: card.btrfs(part),
            }
        });
        let kind = match table.kind {
            Table::Mbr => TableKind::Mbr,
            Table::Gpt | Table::ProtectiveMbr if card.is_hybrid => TableKind::Hybrid,
            Table::Gpt | Table::ProtectiveMbr => TableKind::Gpt,
        };
        Ok(CardParts { name: name.into(), kind, parts: parts.collect() })
    }

    fn table(&self) -> DiskTable {
        let parts = self.parts.iter().map(|part| TablePartition {
            number: part.number,
            type_id: part.type_id.clone(),
            filesystem: part.volume.filesystem.clone(),
        });
        DiskTable { kind: self.kind, partitions: parts.collect() }
    }

    fn fat(&self) -> impl Iterator<Item = &CardPart<'a>> {
        self.parts.iter().filter(|part| part.volume.filesystem.as_deref() == Some("vfat"))
    }

    /// Number of the partition that `autoboot.txt` of the first FAT partition names.
    fn named(&self) -> Option<u32> {
        let files = self.fat().next()?.files.as_ref().ok()?;
        let text = files.text(Path::new("/autoboot.txt")).ok()?;
        autoboot::read(&text, false).boot_partition.filter(|number| *number > 0)
    }

    /// The partition that the firmware of a board reads, by its number, and how it comes to it.
    fn choice(&self, facts: &ChainFacts) -> Option<(u32, Choice)> {
        let with_texts = |part: &CardPart<'a>| {
            let mut facts = facts.clone();
            texts_into(part, &mut facts);
            (part.number, facts)
        };
        let parts: Vec<(u32, ChainFacts)> = self.fat().map(with_texts).collect();
        let candidate = |(number, facts): &(u32, ChainFacts)| Candidate {
            number: *number,
            lacks: lacks(facts),
        };
        let candidates: Vec<Candidate> = parts.iter().map(candidate).collect();
        let is_followed = parts.first().is_some_and(|(_, facts)| reads_autoboot(facts));
        choose(&candidates, self.named().filter(|_| is_followed))
    }

    fn at(&self, path: &str) -> Option<&CardPart<'a>> {
        self.parts.iter().find(|part| part.volume.path == path)
    }
}

/// What a partition table means that counts in another unit than its disk (raspberrypi/rpi-eeprom, issue 629).
fn foreign(name: &str, bytes: u32, own: u32) -> String {
    if own == USUAL_BLOCK_BYTES && !name.starts_with("/dev/") {
        return format!(
            "{name} counts its partitions in blocks of {bytes} bytes, as the disk that it is an image of; look at that disk itself: \
             sudo rubus boot /dev/NAME"
        );
    }
    format!(
        "{name} has blocks of {own} bytes, and its partition table counts in blocks of {bytes}, as after dd from another disk: no \
         system starts from it. Copy the files to new partitions (SD Card Copier, rpi-clone)"
    )
}

/// Follows the start of a card in a board, or in each kind of board.
pub fn of_card(parts: &CardParts<'_>, board: Option<&str>) -> Start {
    let mut starts = match board {
        Some(board) => in_boards(parts, &[board]),
        None => in_usual_boards(parts),
    };
    let chosen = chosen(&starts);
    let rungs = starts.iter().enumerate();
    let rungs = rungs.map(|(at, (name, _, chain))| rung(name, at == chosen, chain)).collect();
    let (_, facts, chain) = starts.swap_remove(chosen);
    Start { of: parts.name.clone(), facts, chain, rungs }
}

/// The starts of a card in the kinds of boards that it is for, as far as its device trees say.
pub fn in_its_boards(parts: &CardParts<'_>) -> Vec<Start> {
    let starts = in_usual_boards(parts).into_iter();
    let own = starts.filter(|(_, facts, chain)| has_tree_of_board(facts) && !chain.is_for_others());
    let starts = own.map(|(name, facts, chain)| Start {
        of: parts.name.clone(),
        rungs: vec![rung(name, true, &chain)],
        facts,
        chain,
    });
    starts.collect()
}

/// In each usual board, and behind one whose tree is not there in its relatives: an image may be for a module alone.
fn in_usual_boards(parts: &CardParts<'_>) -> Vec<(&'static str, ChainFacts, StartChain)> {
    let mut starts = in_boards(parts, &BOARDS);
    let lacks_own = |usual: &str| {
        let mut usual = starts.iter().filter(|(name, ..)| *name == usual);
        usual.any(|(_, facts, _)| has_tree_of_board(facts) && !has_own_tree(facts))
    };
    let relatives = RELATIVES.iter().filter(|(_, usual)| lacks_own(usual));
    let relatives: Vec<&'static str> = relatives.map(|(name, _)| *name).collect();
    for start in in_boards(parts, &relatives) {
        let usual = RELATIVES.iter().find(|(name, _)| *name == start.0).map(|(_, usual)| *usual);
        let place = starts.iter().position(|(name, ..)| Some(*name) == usual);
        if let Some(place) = place.filter(|_| has_own_tree(&start.1)) {
            starts.insert(place + 1, start);
        }
    }
    starts
}

fn in_boards<'b>(
    parts: &CardParts<'_>,
    boards: &[&'b str],
) -> Vec<(&'b str, ChainFacts, StartChain)> {
    let boards = boards.iter().copied();
    let known = boards.filter_map(|name| Some((name, Model::of_filter(name)?)));
    let mut facts = facts(parts);
    let mut starts: Vec<(&'b str, ChainFacts, StartChain)> = Vec::new();
    for (name, (model, words)) in known {
        facts.model = model;
        facts.board = words;
        if let Some((number, choice)) = parts.choice(&facts) {
            facts.choice = choice;
            if let Some(boot) = parts.parts.iter().find(|part| part.number == number) {
                let path = Some(boot.volume.path.clone());
                if facts.medium.partition != path {
                    // Files of the same name are others there.
                    facts.images = Images::default();
                    facts.loaders.clear();
                    facts.faulty_kernels.clear();
                }
                facts.medium.partition = path;
                boot_into(boot, &mut facts);
            }
        }
        root_into(parts, &mut facts);
        starts.push((name, facts.clone(), StartChain::of(&facts)));
    }
    starts
}

/// The newest board in which the card starts, else the newest in which it comes furthest.
fn chosen(starts: &[(&str, ChainFacts, StartChain)]) -> usize {
    let length = |at: &usize| {
        let chain = &starts[*at].2;
        let does_start = chain.outcome() == Outcome::Starts;
        (does_start, chain.links().len(), std::cmp::Reverse(*at))
    };
    (0..starts.len()).max_by_key(length).unwrap_or_default()
}

fn facts(parts: &CardParts<'_>) -> ChainFacts {
    ChainFacts {
        model: Model::other(),
        board: String::new(),
        serial: None,
        other_loader: None,
        bootloader: None,
        eeprom: Eeprom::default(),
        medium: Medium {
            disks: vec![parts.name.clone()],
            partition: None,
            certainty: Certainty::Certain,
            why: "the disk that was named".into(),
        },
        mode: None,
        table: Some(parts.table()),
        choice: Choice::First,
        partition: BootPartition::default(),
        is_whole: true,
        unread: None,
        encodings: Default::default(),
        images: Images::default(),
        loaders: Default::default(),
        faulty_kernels: Default::default(),
        volumes: parts.parts.iter().map(|part| part.volume.clone()).collect(),
        are_all_volumes: false,
        mounted_boot: None,
        kernels_are_elsewhere: false,
        updates_miss_mount: false,
        root: RootFiles::default(),
        running: None,
    }
}

fn boot_into(boot: &CardPart<'_>, facts: &mut ChainFacts) {
    if let Some(files) = texts_into(boot, facts) {
        files.images_into(facts);
    }
}

/// Names and texts of a boot partition alone.
fn texts_into<'p>(boot: &'p CardPart<'_>, facts: &mut ChainFacts) -> Option<BootFiles<'p>> {
    facts.partition = BootPartition::default();
    facts.encodings.clear();
    facts.unread = None;
    let read = boot.files.as_ref().map_err(ReadError::clone);
    match read.and_then(|files| BootFiles::at(&**files, Path::new("/"))) {
        Ok(mut files) => {
            files.texts_into(facts);
            Some(files)
        }
        Err(why) => {
            facts.unread = Some(format!("{} cannot be read: {why}", boot.volume.path));
            None
        }
    }
}

fn root_into(parts: &CardParts<'_>, facts: &mut ChainFacts) {
    facts.root = RootFiles::default();
    let Some(path) = paths(facts).into_iter().next() else { return };
    if opened_from(facts, &path).is_some() {
        return;
    }
    let named = named_root(facts, &path).map(|volume| volume.path.clone());
    let Some(part) = named.and_then(|named| parts.at(&named)) else { return };
    let subvolumes = part.btrfs.as_ref().and_then(|btrfs| Some((btrfs, btrfs.subvolumes().ok()?)));
    let own = subvolumes.as_ref().map(|(btrfs, all)| subvolume::files(btrfs, all, facts, &path));
    match own.as_ref().unwrap_or(&part.files) {
        Ok(files) => {
            let init = init_of(facts, &path);
            facts.root = root_files(&**files, true, init.as_deref());
            facts.root.absent = absent(&**files, &facts.root);
            modules_into(&**files, facts);
        }
        Err(why) => {
            facts.root = unread(format!("the root on {} cannot be read: {why}", part.volume.path))
        }
    }
    if let Some((_, all)) = subvolumes {
        subvolume::names_into(&all, facts);
    }
}
