//! How a machine starts, read from its files: the facts that [`rubus_boot::chain`] follows, what comes of them, and its text.
//!
//! The facts are those of this machine, of a captured one, or of a card or image that is looked at elsewhere.

mod boot_files;
mod card;
pub mod findings;
mod ladder;
mod machine;
mod report;
mod root_files;
mod subvolume;
pub mod text;

pub use card::{CardPart, CardParts, in_its_boards, of_card};
pub use ladder::{Reached, Rung};
pub use machine::{command_lines, of_machine};
pub use report::{LinkReport, NoteReport, StartReport, next};

use rubus_boot::chain::{ChainFacts, StartChain};

/// What was looked at, where it is the running machine.
const THIS_MACHINE: &str = "this machine";

/// A start that was followed.
#[derive(Clone, Debug)]
pub struct Start {
    /// What was looked at: "this machine", the path of an image.
    pub of: String,
    pub facts: ChainFacts,
    pub chain: StartChain,
    /// Each medium that the board may look at, or each board that a card may be put into.
    pub rungs: Vec<Rung>,
}

impl Start {
    /// The disk or image that was looked at; none for a running or captured machine.
    pub fn disk(&self) -> Option<&str> {
        let is_machine = self.facts.running.is_some();
        (!is_machine).then_some(&self.of)
    }

    /// Number of the partition that the firmware reads, where it is one of a card or image.
    pub fn boot_partition(&self) -> Option<u32> {
        let name = self.facts.medium.partition.as_deref()?;
        name.strip_prefix(card::PARTITION)?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
