//! The pipe model against set-ups that were measured for real.
//!
//! Each case measures the stages of a path *alone*, lets the model say what they give together, writes that to a file, and then
//! measures the whole path with the program's own engine. What a stage was taken from is no case. Subjects whose constants were
//! chosen by looking at some depths or sizes are judged on others, which are marked as held out.
//!
//! Reading order: [`case`] (what a case is and what it is worth), [`rig`] (how something is measured), [`ledger`] (the file of the
//! predictions), one file per subject, [`judge`], [`table`] (every case), [`summary`] (the page)
//! and [`page`] (the cases as Markdown), [`reread`] (the page from the table).

pub mod again;
mod btrfs;
mod buses;
pub mod case;
mod cipher;
mod commits;
mod compressing;
mod decoding;
pub mod judge;
mod kernel;
pub mod ledger;
mod md;
mod network;
mod notes;
pub mod page;
mod parts;
pub mod reread;
pub mod rig;
mod sizes;
mod stacked;
mod stripes;
pub mod summary;
mod swap;
pub mod table;
mod titles;

use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::devices::needs::{Need, first_missing};
use case::{Case, Whole};
use judge::Judgement;
use ledger::{Joined, Ledger};
use rig::Rig;
use table::Row;

/// What is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
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
    /// Compression by btrfs where the processors are the limit
    Compressing,
    /// A network disk: the way, the server's workers, the link
    Network,
    /// A cipher in the path of a network disk
    Cipher,
    /// Network disks that are deciphered or decompressed for each read, and nothing limited
    Decoding,
    /// Devices and layers of the kernel, stacked on an emulated board
    Kernel,
    /// Disks behind USB bridges and an NVMe controller of an emulated board
    Buses,
    /// Memory that is less than what is touched
    Swap,
}

impl Subject {
    /// All of them, in the order of the page.
    pub const ALL: [Subject; 12] = [
        Subject::Sizes,
        Subject::Stripes,
        Subject::Md,
        Subject::Commits,
        Subject::Btrfs,
        Subject::Compressing,
        Subject::Network,
        Subject::Cipher,
        Subject::Decoding,
        Subject::Kernel,
        Subject::Buses,
        Subject::Swap,
    ];

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
    }

    /// A sentence on what is measured and what the model is told.
    pub fn about(self) -> &'static str {
        match self {
            Subject::Sizes => sizes::ABOUT,
            Subject::Stripes => stripes::ABOUT,
            Subject::Md => md::ABOUT,
            Subject::Commits => commits::ABOUT,
            Subject::Btrfs => btrfs::ABOUT,
            Subject::Compressing => compressing::ABOUT,
            Subject::Network => network::ABOUT,
            Subject::Cipher => cipher::ABOUT,
            Subject::Decoding => decoding::ABOUT,
            Subject::Kernel => kernel::ABOUT,
            Subject::Buses => buses::ABOUT,
            Subject::Swap => swap::ABOUT,
        }
    }

    fn needs(self) -> &'static [Need] {
        match self {
            Subject::Sizes => sizes::NEEDS,
            Subject::Stripes => stripes::NEEDS,
            Subject::Md => md::NEEDS,
            Subject::Commits => commits::NEEDS,
            Subject::Btrfs => btrfs::NEEDS,
            Subject::Compressing => compressing::NEEDS,
            Subject::Network => network::NEEDS,
            Subject::Cipher => cipher::NEEDS,
            Subject::Decoding => decoding::NEEDS,
            Subject::Kernel => kernel::NEEDS,
            Subject::Buses => buses::NEEDS,
            Subject::Swap => swap::NEEDS,
        }
    }

    fn wholes(self, rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
        match self {
            Subject::Sizes => sizes::wholes(rig, ledger),
            Subject::Stripes => stripes::wholes(rig, ledger),
            Subject::Md => md::wholes(rig, ledger),
            Subject::Commits => commits::wholes(rig, ledger),
            Subject::Btrfs => btrfs::wholes(rig, ledger),
            Subject::Compressing => compressing::wholes(rig, ledger),
            Subject::Network => network::wholes(rig, ledger),
            Subject::Cipher => cipher::wholes(rig, ledger),
            Subject::Decoding => decoding::wholes(rig, ledger),
            Subject::Kernel => kernel::wholes(rig, ledger),
            Subject::Buses => buses::wholes(rig, ledger),
            Subject::Swap => swap::wholes(rig, ledger),
        }
    }
}

/// Everything that came out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was predicted and measured, by subject.
    pub cases: Vec<Case>,
    /// Subjects that could not run here, and why.
    pub left_out: Vec<(Subject, String)>,
    /// Cases that cannot be judged, and why.
    pub refused: Vec<String>,
    /// The file with the predictions.
    pub predictions: String,
    /// The machine, in words.
    pub machine: String,
    /// Seconds that all of it took.
    pub elapsed_s: f64,
}

impl Report {
    /// The cases as rows of the table.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.cases.iter().map(Row::from).collect();
        rows.sort_by_key(|row| row.subject);
        rows
    }
}

/// Measures the subjects, one after the other. One that fails is left out with its reason; the others go on. `tell` gets a line for
/// each step.
///
/// # Errors
/// When the predictions cannot be read from their file again.
pub fn run(
    subjects: &[Subject],
    rig: &Rig,
    ledger: &Ledger,
    tell: &mut dyn FnMut(&str),
) -> Result<Report> {
    let began = Instant::now();
    let (mut wholes, mut left_out) = (Vec::new(), Vec::new());
    for &subject in subjects {
        let name = subject.name();
        if let Some(reason) = first_missing(subject.needs()) {
            tell(&format!("{name}: left out: {reason}"));
            left_out.push((subject, reason));
            continue;
        }
        let since = Instant::now();
        tell(&format!("{name} ..."));
        match subject.wholes(rig, ledger) {
            Ok(found) => {
                let judged = Judgement::of_cases(&cases(ledger, &found)?.cases);
                tell(&format!("{name}: {judged}; {:.0} s", since.elapsed().as_secs_f64()));
                wholes.extend(found);
            }
            Err(error) => {
                tell(&format!("{name}: failed: {error:#}"));
                left_out.push((subject, format!("it failed: {error:#}")));
            }
        }
    }
    let Joined { cases, refused } = cases(ledger, &wholes)?;
    Ok(Report {
        cases,
        left_out,
        refused,
        predictions: ledger.path().display().to_string(),
        machine: rig::machine(),
        elapsed_s: began.elapsed().as_secs_f64(),
    })
}

/// What was measured, with what the file says of it.
fn cases(ledger: &Ledger, wholes: &[Whole]) -> Result<Joined> {
    let mut joined = ledger::join(&ledger::read(ledger.path())?, wholes);
    for case in &mut joined.cases {
        case.note = notes::of(case);
    }
    Ok(joined)
}
