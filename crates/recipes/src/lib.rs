//! The recipes: from facts and wishes to a plan; and the verbs that show plans, apply and undo them ([`cli`]).
//!
//! Recipes are pure; adding one is adding a file and a line in [`ALL`].
//!
//! A recipe first says what it has to look at besides the surveyed machine ([`Recipe::look_at`]), then
//! plans from what was found. It asks for nothing else and never writes, so a plan can be made for a captured machine
//! too.
#![deny(clippy::disallowed_methods)]
#![forbid(unsafe_code)]

mod answer;
pub mod cli;
mod commit_interval;
mod desktop;
mod disks;
mod distribution;
mod edits;
mod facts;
pub mod fallen_back;
mod format;
mod guide;
mod identifiers;
mod image_facts;
mod journal_to_memory;
mod lasting;
mod logs_to_memory;
mod mounting;
mod moving;
pub mod network_address;
mod network_disk;
mod network_root;
mod network_server;
mod next_start;
mod pcie_gen;
mod plan_builder;
mod plan_input;
mod programs;
mod raid0;
mod ramdisk;
mod recipe;
#[cfg(test)]
mod rehearsal_tests;
pub mod sight;
mod speeds;
mod surveyed;
mod swap;
mod swap_managers;
mod tables;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod usb_quirk;
mod user;
mod zswap;

pub use desktop::{StartedFromOld, image_programs};
pub use facts::{
    DiskSpeed, Facts, Node, NodeKind, PathState, Queries, Seen, TogetherSpeed, TreeSize,
    VolatileRoot,
};
pub use guide::Guide;
pub use image_facts::ImageFacts;
pub use network_root::{FROM_CARD, NETWORK_ROOT};
pub use next_start::NextStart;
pub use recipe::{OptionSpec, Recipe, RecipeError, Wishes};
pub use speeds::{measured_speeds, measured_together, runs_of_disks};
pub use surveyed::surveyed_disk;
pub use units::SYSTEMD_RUNS;
pub use user::{Fault, UserRecipe};

use answer::{Answer, Found};
use plan_builder::PlanBuilder;
use plan_input::PlanInput;
use recipe::yes_or_no;

/// All recipes, by name.
pub const ALL: [&Recipe; 14] = [
    &commit_interval::RECIPE,
    &desktop::RECIPE,
    &format::RECIPE,
    &journal_to_memory::RECIPE,
    &logs_to_memory::RECIPE,
    &network_disk::RECIPE,
    &network_root::RECIPE,
    &network_server::RECIPE,
    &pcie_gen::RECIPE,
    &raid0::RECIPE,
    &ramdisk::RECIPE,
    &swap::RECIPE,
    &usb_quirk::RECIPE,
    &zswap::RECIPE,
];

/// The recipe of that name.
pub fn by_name(name: &str) -> Option<&'static Recipe> {
    ALL.into_iter().find(|recipe| recipe.name == name)
}
