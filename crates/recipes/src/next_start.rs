//! What `rubus boot` says of the next start if nothing were changed, as far as a plan rests on it.

use rubus_boot::chain::{Doubt, Link, Outcome, Stage, StartChain, Stop};

/// How the next start would end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NextStart {
    /// It was not looked at: the plan does not rest on it.
    #[default]
    NotAsked,
    Starts,
    /// Something is not certain that the plan does not rest on, as a clause.
    Unsure(String),
    /// Another loader than the firmware decides what the kernel is told.
    ByLoader(Stop),
    /// The firmware may read another disk, partition or file than the one that a plan changes.
    Elsewhere(Stop),
    /// It would stop, and is no way back.
    Stops(Stop),
}

impl NextStart {
    /// Of a machine that runs. From which medium it started may be a guess, and of the mounts a plan looks at its own.
    pub fn of_machine(chain: &StartChain) -> NextStart {
        NextStart::of(chain, Stage::Settings)
    }

    /// Of an image, whose boot partition is known.
    pub fn of_image(chain: &StartChain) -> NextStart {
        NextStart::of(chain, Stage::Partition)
    }

    /// The larger, the worse.
    pub fn severity(&self) -> u8 {
        match self {
            NextStart::NotAsked | NextStart::Starts => 0,
            NextStart::Unsure(_) => 1,
            NextStart::ByLoader(_) => 2,
            NextStart::Elsewhere(_) => 3,
            NextStart::Stops(_) => 4,
        }
    }

    /// A stop before the stage `from` is a caution.
    fn of(chain: &StartChain, from: Stage) -> NextStart {
        let Some(link) = chain.deciding() else { return NextStart::Starts };
        match (chain.outcome(), &link.stop) {
            (Outcome::Starts, _) => NextStart::Starts,
            (Outcome::StopsAt(Stage::Mounts), _) => NextStart::Starts,
            (Outcome::StopsAt(stage), Some(stop)) if stage >= from => {
                NextStart::Stops(stop.clone())
            }
            (Outcome::StopsAt(_), Some(stop)) => NextStart::Unsure(stop.why.clone()),
            (Outcome::StopsAt(_), None) => NextStart::Unsure(link.found.clone()),
            (Outcome::NotCertainAfter(_), _) if chain.doubt().is_some() => in_doubt(link),
            (Outcome::NotCertainAfter(_), _) => NextStart::Unsure(link.found.clone()),
        }
    }
}

fn in_doubt(link: &Link) -> NextStart {
    let remedy = || match (&link.remedy, link.notes.last()) {
        (Some(remedy), _) => remedy.clone(),
        (None, Some(note)) => note.remedy.clone(),
        (None, None) => "look at `rubus boot --verbose`, which says where it was read".into(),
    };
    let stop = || Stop { why: format!("not certain: {}", link.found), remedy: remedy() };
    match link.doubt {
        Doubt::WhatIsRead => NextStart::Elsewhere(stop()),
        Doubt::Loader => NextStart::ByLoader(stop()),
        Doubt::Other => NextStart::Unsure(link.found.clone()),
    }
}
