//! The machine that is meant: this one, or a recorded one.

use anyhow::Context;
use rubus_host::capture::Captured;
use rubus_host::clock;
use rubus_host::files::Files;
use rubus_host::live::Live;
use rubus_vocabulary::machine::{Machine, Origin, Power};

use crate::General;

/// The machine that the user means: this one, or a captured one.
pub enum World {
    /// The machine that this program runs on.
    Live(Live),
    /// A machine recorded in a capture.
    Captured(Captured),
}

impl World {
    /// The machine that `--machine` names, or this one.
    ///
    /// # Errors
    /// When the capture cannot be read or is broken; the text says what to do.
    pub fn of(general: &General) -> anyhow::Result<World> {
        match &general.machine {
            None => Ok(World::Live(Live::new())),
            Some(path) => {
                let captured = Captured::open(path).with_context(|| {
                    format!("cannot read the captured machine {}", path.display())
                })?;
                Ok(World::Captured(captured))
            }
        }
    }

    /// The read side of it.
    pub fn files(&self) -> &dyn Files {
        match self {
            World::Live(live) => live,
            World::Captured(captured) => captured,
        }
    }

    /// Its facts, read now.
    pub fn survey(&self) -> Machine {
        self.survey_through(self.files())
    }

    /// Its heat, throttling and supply voltage, read now.
    pub fn power(&self) -> Power {
        rubus_machine::probe::power(self.files())
    }

    /// Its facts, read through something that watches the reading (a recorder).
    pub fn survey_through(&self, files: &dyn Files) -> Machine {
        rubus_machine::probe::survey(files, &self.read_at(), self.origin())
    }

    fn read_at(&self) -> String {
        match self {
            World::Live(_) => clock::now_rfc3339(),
            World::Captured(captured) => captured.recorded_at().to_string(),
        }
    }

    fn origin(&self) -> Origin {
        match self {
            World::Live(_) => Origin::Live,
            World::Captured(captured) => Origin::Capture {
                path: captured.path().display().to_string(),
                label: captured.label().to_string(),
            },
        }
    }
}

/// Refuses to do something on a captured machine that needs a real one.
///
/// # Errors
/// If `--machine` was given.
pub fn must_be_live(general: &General, verb: &str, what: &str) -> anyhow::Result<()> {
    match &general.machine {
        None => Ok(()),
        Some(path) => anyhow::bail!(
            "{verb} measures {what}, and the captured machine {} has none to measure; \
             `rubus survey --machine FILE` shows what was captured",
            path.display()
        ),
    }
}
