//! Which FAT partition of several the firmware takes.
//!
//! It takes the one that `autoboot.txt` of the first names, else the first that it can start from (Raspberry Pi documentation,
//! `boot_partition`). Newer bootloaders go on to the others where the named one is none (`PARTITION_WALK`, rpi-eeprom pull requests
//! 659, 663, 736, 737 and 741); in which order is told differently there and in rpi-eeprom issue 738.

use super::link::Link;
use super::{ChainFacts, device_tree, setting, start_files};
use crate::eeprom::{Ability, RELEASE_NOTES, UPDATE};
use crate::medium::Certainty;
use crate::model::Kernels;

/// How the firmware came to the partition that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The files of the other partitions were not read.
    #[default]
    OthersUnread,
    /// It is the one that comes first.
    First,
    /// Another one comes first, which it cannot start from.
    Walked(Walk),
    /// It can start from none of them.
    NoneBootable,
}

/// The partition that comes first, and is passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    pub number: u32,
    /// Whether `autoboot.txt` names it.
    pub is_named: bool,
    /// Why the firmware cannot start from it: "holds no start4.elf".
    pub lacks: String,
    /// Another partition that it may take, where the order is not certain.
    pub or: Option<u32>,
}

/// A FAT partition as the firmware sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub number: u32,
    /// What it lacks, where the firmware cannot start from it.
    pub lacks: Option<String>,
}

/// The partition that is read, and how the firmware came to it. `named`: by `autoboot.txt`.
pub fn choose(candidates: &[Candidate], named: Option<u32>) -> Option<(u32, Choice)> {
    let first = candidates.first()?.number;
    let wanted = named.unwrap_or(first);
    let own = candidates.iter().find(|one| one.number == wanted);
    let lacks = match own.map(|own| &own.lacks) {
        Some(None) => return Some((wanted, Choice::First)),
        Some(Some(lacks)) => lacks.clone(),
        None => "is no FAT partition of this disk".into(),
    };
    let bootable = || candidates.iter().filter(|one| one.lacks.is_none()).map(|one| one.number);
    let Some(lowest) = bootable().next() else {
        return Some((own.map_or(first, |own| own.number), Choice::NoneBootable));
    };
    let next = bootable().find(|number| *number > wanted).unwrap_or(lowest);
    let or = (next != lowest).then_some(lowest);
    Some((next, Choice::Walked(Walk { number: wanted, is_named: named.is_some(), lacks, or })))
}

/// What the partition of these facts lacks, so that a firmware that looks into several passes it over. Boards without an EEPROM
/// look into one.
pub fn lacks(facts: &ChainFacts) -> Option<String> {
    if !facts.model.kernels.has_eeprom() || facts.unread.is_some() || start_files::has_menu(facts) {
        return None;
    }
    if let Some(file) = start_files::missing(facts) {
        return Some(format!("holds no {file}"));
    }
    let is_pi5 = facts.model.kernels == Kernels::Bcm2712;
    let is_checked = setting(facts, "os_check").is_none_or(|value| value != "0");
    let has_tree = device_tree::has_tree_of_board(facts) || setting(facts, "device_tree").is_some();
    (is_pi5 && is_checked && !has_tree).then(|| "holds no device tree for this board".into())
}

/// Whether `autoboot.txt` of the first partition counts: on boards without an EEPROM, the program that reads it has to be there.
pub fn reads_autoboot(facts: &ChainFacts) -> bool {
    facts.model.kernels.has_eeprom() || start_files::has_bootcode(facts)
}

/// What it means that the firmware has to pass over a partition.
pub(super) fn walked(facts: &ChainFacts, walk: &Walk, link: Link) -> Link {
    let kernels = facts.model.kernels;
    let since = Ability::WalkPartitions.since(kernels);
    let why = format!("partition {} {}", walk.number, walk.lacks);
    let own = link.found.clone();
    let remedy = format!(
        "put the boot files into partition {}, or make {own} the one that comes first",
        walk.number
    );
    if !kernels.has_eeprom() {
        let found = format!("{why}; whether this board then takes {own} is not certain");
        return link.not_known(found).noted(why, remedy);
    }
    let link = link.from(RELEASE_NOTES, since);
    let date = || facts.eeprom.date().unwrap_or_default();
    match (facts.eeprom.walks(kernels), walk.or) {
        (Some(true), Some(or)) => {
            link.not_known(format!("{why}; it takes {own} or partition {or}")).noted(why, remedy)
        }
        (Some(true), None) => {
            Link { found: format!("{own}, as {why}"), ..link }.with(Certainty::Likely)
        }
        (Some(false), _) if walk.is_named => link.with(Certainty::Likely).stopped(
            format!("{why}, and the bootloader of {} does not look into others", date()),
            format!("correct boot_partition= in autoboot.txt, or update the bootloader: {UPDATE}"),
        ),
        (Some(false), _) => link
            .not_known(format!("{why}; a bootloader of {} may not take {own}", date()))
            .noted(why, remedy),
        (None, _) => {
            let day = since.unwrap_or_default();
            link.not_known(format!("{why}; bootloaders since {day} take {own}, older ones may not"))
                .noted(why, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(of: &[(u32, bool)]) -> Vec<Candidate> {
        let candidate = |(number, is_bootable): &(u32, bool)| Candidate {
            number: *number,
            lacks: (!is_bootable).then(|| "holds no start4.elf".into()),
        };
        of.iter().map(candidate).collect()
    }

    fn walk(number: u32, is_named: bool, or: Option<u32>) -> Choice {
        Choice::Walked(Walk { number, is_named, lacks: "holds no start4.elf".into(), or })
    }

    #[test]
    fn the_first_that_can_start_is_taken() {
        let of = |list: &[(u32, bool)], named| choose(&candidates(list), named);
        assert_eq!(of(&[], None), None);
        assert_eq!(of(&[(1, true), (2, true)], None), Some((1, Choice::First)));
        assert_eq!(of(&[(1, false), (2, true)], Some(2)), Some((2, Choice::First)));
        assert_eq!(of(&[(1, false), (2, true)], None), Some((2, walk(1, false, None))));
        assert_eq!(of(&[(1, false), (2, false)], Some(2)), Some((2, Choice::NoneBootable)));
        // The order behind a named one is not certain.
        let three = [(1, true), (2, false), (3, true)];
        assert_eq!(of(&three, Some(2)), Some((3, walk(2, true, Some(1)))));
        let (number, choice) = of(&[(1, true)], Some(4)).expect("there is one");
        let Choice::Walked(walk) = choice else { panic!("{choice:?}") };
        assert_eq!((number, walk.lacks.as_str()), (1, "is no FAT partition of this disk"));
    }
}
