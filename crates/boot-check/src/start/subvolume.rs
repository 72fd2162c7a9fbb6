//! The subvolume of a btrfs that a command line takes as the root.

use rubus_boot::chain::ChainFacts;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_boot::config_txt::BootPath;
use rubus_host::{Files, ReadError};

use crate::card::{Btrfs, Subvolumes};

/// The files of the subvolume that the command line names, else of the default one.
pub(super) fn files<'a>(
    btrfs: &Btrfs<'a>,
    all: &Subvolumes,
    facts: &ChainFacts,
    path: &BootPath,
) -> Result<Box<dyn Files + 'a>, ReadError> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let number = match (line.subvolume(), line.subvolume_id()) {
        (Some(named), _) => all.number_of(named),
        (None, Some(number)) => number.parse().ok(),
        (None, None) => Some(all.default),
    };
    number.ok_or(ReadError::Absent).and_then(|number| btrfs.files(number))
}

/// Which subvolumes there are.
pub(super) fn names_into(all: &Subvolumes, facts: &mut ChainFacts) {
    facts.root.subvolumes = Some(all.by_path.keys().cloned().collect());
    facts.root.subvolume_numbers = Some(all.numbers());
    facts.root.default_subvolume = all.path_of(all.default).map(str::to_string);
}
