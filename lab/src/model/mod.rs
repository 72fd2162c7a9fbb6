//! The pipe model against set-ups that were measured for real.
//!
//! Each case measures the stages of a path *alone*, lets the model say what they give together, and then measures the whole path with
//! the program's own engine. What a stage was taken from is no case. Kinds whose constants were chosen by looking at some depths or
//! sizes are judged on others, which are marked as held out.
//!
//! Reading order: [`case`] (what a case is), [`rig`] (how something is measured), one file per kind, [`judge`] and [`page`] (what
//! comes out).

mod btrfs;
pub mod case;
mod cipher;
mod commits;
pub mod judge;
mod md;
mod network;
mod notes;
pub mod page;
mod parts;
pub mod rig;
mod sizes;
mod stripes;
mod swap;

use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

use crate::devices::needs::{Need, first_missing};
use case::Case;
use rig::Rig;

/// What is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A device that limits operations and bytes, by size and depth
    Sizes,
    /// Members of a stripe, each on its own port or all on one
    Stripes,
    /// RAID-0 by the kernel on an emulated board, over disks on one bus and on two
    Md,
    /// Filesystems' commits on a slow device, by one writer and by several at once
    Commits,
    /// Compression by btrfs before a slow device
    Btrfs,
    /// A network disk: the way, the server's workers, the link
    Network,
    /// A cipher in the path of a network disk
    Cipher,
    /// Memory that is less than what is touched
    Swap,
}

impl Kind {
    /// All of them, in the order of the page.
    pub const ALL: [Kind; 8] = [
        Kind::Sizes,
        Kind::Stripes,
        Kind::Md,
        Kind::Commits,
        Kind::Btrfs,
        Kind::Network,
        Kind::Cipher,
        Kind::Swap,
    ];

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_string())
    }

    /// A sentence on what is measured and what the model is told.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Sizes => sizes::ABOUT,
            Kind::Stripes => stripes::ABOUT,
            Kind::Md => md::ABOUT,
            Kind::Commits => commits::ABOUT,
            Kind::Btrfs => btrfs::ABOUT,
            Kind::Network => network::ABOUT,
            Kind::Cipher => cipher::ABOUT,
            Kind::Swap => swap::ABOUT,
        }
    }

    fn needs(self) -> &'static [Need] {
        match self {
            Kind::Sizes => sizes::NEEDS,
            Kind::Stripes => stripes::NEEDS,
            Kind::Md => md::NEEDS,
            Kind::Commits => commits::NEEDS,
            Kind::Btrfs => btrfs::NEEDS,
            Kind::Network => network::NEEDS,
            Kind::Cipher => cipher::NEEDS,
            Kind::Swap => swap::NEEDS,
        }
    }

    fn cases(self, rig: &Rig) -> Result<Vec<Case>> {
        match self {
            Kind::Sizes => sizes::cases(rig),
            Kind::Stripes => stripes::cases(rig),
            Kind::Md => md::cases(rig),
            Kind::Commits => commits::cases(rig),
            Kind::Btrfs => btrfs::cases(rig),
            Kind::Network => network::cases(rig),
            Kind::Cipher => cipher::cases(rig),
            Kind::Swap => swap::cases(rig),
        }
    }
}

/// Everything that came out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was measured, by kind.
    pub cases: Vec<Case>,
    /// Kinds that could not run here, and why.
    pub left_out: Vec<(Kind, String)>,
    /// The machine, in words.
    pub machine: String,
    /// Seconds that all of it took.
    pub elapsed_s: f64,
}

/// Measures the kinds, one after the other. A kind that fails is left out with its reason; the others go on. `tell` gets a line for each
/// step.
pub fn run(kinds: &[Kind], rig: &Rig, tell: &mut dyn FnMut(&str)) -> Report {
    let began = Instant::now();
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for &kind in kinds {
        if let Some(reason) = first_missing(kind.needs()) {
            tell(&format!("{}: left out: {reason}", kind.name()));
            left_out.push((kind, reason));
            continue;
        }
        let since = Instant::now();
        tell(&format!("{} ...", kind.name()));
        match kind.cases(rig) {
            Ok(found) => {
                let judged = judge::Judgement::of(&found);
                let seconds = since.elapsed().as_secs_f64();
                tell(&format!("{}: {judged}; {seconds:.0} s", kind.name()));
                cases.extend(found);
            }
            Err(error) => {
                tell(&format!("{}: failed: {error:#}", kind.name()));
                left_out.push((kind, format!("it failed: {error:#}")));
            }
        }
    }
    for case in &mut cases {
        case.note = notes::of(case);
    }
    Report {
        cases,
        left_out,
        machine: rig::machine(),
        elapsed_s: began.elapsed().as_secs_f64(),
    }
}
