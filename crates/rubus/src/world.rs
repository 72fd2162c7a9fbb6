//! What the arguments mean on this machine: which machine is meant, whether there is a terminal.

use anyhow::Context;
use rubus_host::capture::Captured;
use rubus_host::clock;
use rubus_host::files::Files;
use rubus_host::live::Live;
use rubus_vocabulary::machine::{Machine, Origin, Power};
use rubus_watch::live::terminal;

use crate::args::{General, When};

/// The machine that the user means: this one, or a captured one.
pub enum World {
    /// This machine.
    Live(Live),
    /// A recorded machine.
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
/// When `--machine` was given.
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

/// Whether a screen can be drawn here; if not, why.
pub fn can_draw() -> Result<(), &'static str> {
    terminal::can_draw(std::env::var_os("TERM").as_deref())
}

/// Whether the terminal knows UTF-8 and the blocks of which bars are made.
pub fn knows_utf8() -> bool {
    terminal::has_blocks(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
}

/// Columns of texts on standard output. Longer lines than 80 are hard to read, and no table fits into fewer than 60.
fn text_columns() -> usize {
    const MOST: usize = 80;
    const LEAST: usize = 60;
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { MOST } else { columns.clamp(LEAST, MOST) }
}

/// How to draw on standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Colour in the text on standard output.
    pub colour: bool,
    /// A live progress line on standard error.
    pub live: bool,
    /// Drawings of ASCII letters alone.
    pub ascii: bool,
    /// Columns of texts on standard output: 80, or those of a narrower terminal.
    pub columns: usize,
    /// No terminal at all, but another rubus that reads records from standard output.
    pub records: bool,
}

impl Terminal {
    /// What the user and the environment want.
    pub fn of(general: &General) -> Terminal {
        use std::io::IsTerminal;
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let out = std::io::stdout().is_terminal();
        let err = std::io::stderr().is_terminal();
        let (colour, live) = match general.color {
            When::Always => (true, err),
            When::Never => (false, err),
            When::Auto => (out && !plain, err),
        };
        Terminal {
            colour,
            ascii: !knows_utf8(),
            columns: text_columns(),
            live: live && !general.quiet && !general.records,
            records: general.records,
        }
    }

    /// How texts on standard output are drawn.
    pub fn style(self) -> rubus_draw::Style {
        rubus_draw::Style { colour: self.colour, ascii: self.ascii, columns: self.columns }
    }
}
