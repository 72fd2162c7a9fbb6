//! Judges the start on trial that a cut has left beside the usual one: what `tryboot.txt` names, and the root that it starts.
//!
//! After a cut the firmware makes a usual start: its mark for a trial is on no disk, and goes with the power. A trial begins when
//! a user asks for it, as the product says to do once its journal says that all is ready. From that record on `tryboot.txt` must
//! be there and start the new system whole. Before it, and once an undoing has begun, nothing says to use it: what it names may be
//! incomplete, or gone.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::kit::Kit;
use crate::outside::{BOOT, Manifest};

use super::files::strange;
use super::other_root::other_root;
use super::start::{Start, start, unknown};

/// What the firmware reads for a trial.
const FILE: &str = "tryboot.txt";

/// What a start on trial begins, in a good state.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    start: Start,
    root: Manifest,
}

/// What a cut has left of it.
#[derive(Debug)]
pub(super) struct FoundTrial {
    /// Whether there is a `tryboot.txt`, whatever is in it.
    is_there: bool,
    /// What the firmware would start, or why it would not.
    start: Result<Start, String>,
    /// The root that is named, or what is wrong with it.
    root: Result<Manifest, String>,
}

/// Whether a card with these files has a `tryboot.txt`.
pub(super) fn is_in(card: &Manifest) -> bool {
    card.contains_key(&format!("{BOOT}/{FILE}"))
}

/// The trial of a good state.
pub(super) fn whole(cache: &Cache, kit: &Kit) -> Result<Trial> {
    let place = cache.work_directory()?;
    let start = start(kit, true, &place.path().join("trial")).context("on trial")?;
    let root = other_root(cache, kit, start.root()).context("the root of the trial")?;
    Ok(Trial { start, root })
}

/// What the firmware would start on trial; `place` is a directory that is not there yet. It reads the boot partition before anything
/// mends it. The root is not looked at yet.
pub(super) fn found(kit: &Kit, place: &Path) -> FoundTrial {
    FoundTrial {
        is_there: true,
        start: start(kit, true, place).map_err(|error| format!("{error:#}")),
        root: Err("nothing names it".to_owned()),
    }
}

impl FoundTrial {
    /// Looks at the root too, and at what of the trial is on the card, whose files these are.
    pub(super) fn look_further(&mut self, cache: &Cache, kit: &Kit, card: &Manifest) {
        self.is_there = is_in(card);
        if let Ok(start) = &self.start {
            let root = other_root(cache, kit, start.root());
            self.root = root.map_err(|error| format!("{error:#}"));
        }
    }

    /// What is wrong with it; nothing may be, once the trial is promised.
    pub(super) fn wrong(&self, whole: &Trial, is_promised: bool) -> Vec<String> {
        match is_promised {
            true => self.missing(whole),
            false => Vec::new(),
        }
    }

    /// For the row of a cut, behind the root that the usual start has.
    pub(super) fn words(&self, whole: &Trial) -> &'static str {
        match (self.is_there, self.missing(whole).is_empty()) {
            (false, _) => "",
            (true, true) => ", trial whole",
            (true, false) => ", trial incomplete",
        }
    }

    /// What keeps it from starting the new system whole.
    fn missing(&self, whole: &Trial) -> Vec<String> {
        let mut missing = match &self.start {
            Err(reason) => return vec![format!("on trial, does not start: {reason}")],
            Ok(start) => unknown(&[&whole.start], start),
        };
        match &self.root {
            Err(reason) => missing.push(format!("the root that is named: {reason}")),
            Ok(root) => {
                let lost = strange(&[&whole.root], root);
                missing.extend(lost.into_iter().map(|one| format!("{one} on the new root")));
            }
        }
        let missing = missing.into_iter();
        missing.map(|one| format!("on trial, {one}")).collect()
    }
}
