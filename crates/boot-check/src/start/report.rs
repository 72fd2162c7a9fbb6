//! What `rubus boot --json` prints.

use rubus_boot::chain::{Doubt, Link, Note, Outcome, Stage, Stop};
use rubus_boot::medium::Certainty;
use rubus_vocabulary::next_step::NextStep;
use serde::Serialize;

use super::ladder::{Reached, Rung};
use super::{Start, THIS_MACHINE, text};

/// How a machine, or a card in a board, starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartReport {
    /// What was looked at: "this machine", or a path.
    pub of: String,
    /// The board that it was followed for.
    pub board: String,
    /// `starts`, `stops-at` or `not-certain-after`.
    pub outcome: &'static str,
    /// The stage that the outcome names: `firmware`, `medium`, `partition`, `settings`, `kernel`, `initramfs`,
    /// `command-line`, `root`, `init`, `mounts`; null: it starts.
    pub stage: Option<&'static str>,
    /// `certain`, `likely` or `not-known`.
    pub certainty: &'static str,
    /// The same as a sentence, the first line of the text.
    pub sentence: String,
    /// What to do next.
    pub next: NextStep,
    /// The links in their order, to the last that could be followed.
    pub links: Vec<LinkReport>,
    /// Each medium that the board may look at, in the order of its tries where that is known; of a card or image, each
    /// board that it may be put into, where none was named.
    pub ladder: Vec<RungReport>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkReport {
    /// Its stage.
    pub stage: &'static str,
    /// What was found.
    pub found: String,
    /// Where it was read, or the rule that it follows from.
    pub source: String,
    /// Since when firmware follows that rule; null: always, or not known.
    pub rule_since: Option<&'static str>,
    /// `certain`, `likely` or `not-known`.
    pub certainty: &'static str,
    /// Why the start ends here; null: it does not.
    pub stop: Option<NoteReport>,
    /// What does not end the start and matters.
    pub notes: Vec<NoteReport>,
}

/// Something to know, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoteReport {
    /// What is noticed, as a sentence.
    pub why: String,
    /// What to change, as a sentence.
    pub change: String,
}

/// A medium or board of the ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RungReport {
    /// The kernel's name of the disk, or the name of the board.
    pub name: String,
    /// Whether `links` are those of this one.
    pub is_followed: bool,
    /// `starts`, `stops` or `not-certain`.
    pub outcome: &'static str,
    /// The last stage that it reached.
    pub reached: &'static str,
    /// `certain`, `likely` or `not-known`.
    pub certainty: &'static str,
    /// One reason.
    pub reason: String,
}

/// What to do next: what to change where the start stops, and how to see more where it is not certain.
pub fn next(start: &Start) -> NextStep {
    let stop = start.chain.deciding().and_then(|link| link.stop.as_ref());
    let note = note_of_deciding(start);
    // What to do about another loader is for plans: here nothing is known to be wrong.
    let doubt = start.chain.doubt().filter(|link| link.doubt != Doubt::Loader);
    let remedy = doubt.and_then(|link| link.remedy.as_deref());
    let unmounted = unmounted_disk(start).filter(|_| stop.is_none() && !is_not_captured(start));
    if let Some(disk) = unmounted {
        let disk = format!("/dev/{disk}");
        let step = NextStep::command(
            &["sudo", "rubus", "boot", disk.as_str()],
            "it reads the boot files where they are",
        );
        return if start.of == THIS_MACHINE { step } else { step.on_that_machine() };
    }
    match (stop, start.chain.outcome()) {
        (Some(stop), _) => NextStep::by_hand(&stop.remedy),
        (None, Outcome::Starts) => NextStep::by_hand(where_it_starts(start)),
        (None, _) if is_not_captured(start) => NextStep::command(
            &["sudo", "rubus", "survey", "--save", "capture.tar"],
            "on that machine: the capture lacks what its start rests on",
        ),
        (None, _) if remedy.is_some() => NextStep::by_hand(remedy.unwrap_or_default()),
        (None, _) if note.is_some() => NextStep::by_hand(note.unwrap_or_default()),
        (None, _) if start.disk().is_some_and(is_image) => NextStep::by_hand(
            "nothing that is known is wrong; --verbose has where each link was read",
        ),
        (None, _) if start.disk().is_none() && start.of != THIS_MACHINE => {
            let command = ["rubus", "boot", "--verbose", "--machine", start.of.as_str()];
            NextStep::command(&command, "where each link was read")
        }
        (None, Outcome::NotCertainAfter(Stage::Firmware)) => NextStep::by_hand(
            "nothing: of a board whose start is not understood, nothing more can be said",
        ),
        (None, Outcome::StopsAt(_) | Outcome::NotCertainAfter(_)) => {
            let mut command = vec!["sudo", "rubus", "boot", "--verbose"];
            command.extend(start.disk());
            NextStep::command(&command, "where each link was read, as far as root may read it")
        }
    }
}

/// Nothing has to be done; where the start is only likely, what would make it certain.
fn where_it_starts(start: &Start) -> &'static str {
    let has_notes = start.chain.notes().next().is_some();
    let is_likely = start.chain.certainty() == Certainty::Likely;
    let Some(link) = start.chain.likely().filter(|_| is_likely) else {
        return if has_notes {
            "nothing, but see what is noted below"
        } else {
            "nothing: it starts"
        };
    };
    let is_of_machine = start.disk().is_none();
    match link.stage {
        _ if has_notes => "nothing, but see what is noted below",
        Stage::Medium if is_of_machine && start.facts.medium.disks.len() > 1 => {
            "nothing: with one disk of that kind plugged in it would be certain"
        }
        Stage::Medium if is_of_machine && start.facts.model.kernels.has_eeprom() => {
            "nothing: this firmware does not say from which disk it starts"
        }
        Stage::Medium if is_of_machine => {
            "nothing: this board does not say from which disk it starts"
        }
        _ => "nothing: --verbose has where the links marked ~ were read",
    }
}

/// The disk whose boot partition would have to be mounted to be read in place; naming the disk reads it as it is.
fn unmounted_disk(start: &Start) -> Option<&str> {
    let facts = &start.facts;
    let partition = facts.medium.partition.as_deref()?;
    let is_it = start.chain.deciding().is_some_and(|link| link.stage == Stage::Partition);
    let is_unread = is_it && facts.unread.is_some() && facts.running.is_some();
    let mounted = facts.mounted_boot.as_deref().and_then(|path| path.strip_prefix("/dev/"));
    let is_mounted = mounted == Some(partition);
    facts.medium.disks.first().map(String::as_str).filter(|_| is_unread && !is_mounted)
}

/// What the link that decides says to change.
fn note_of_deciding(start: &Start) -> Option<&str> {
    let link = start.chain.deciding()?;
    link.notes.last().map(|note| note.remedy.as_str())
}

/// Whether root can read no more of it than others.
fn is_image(disk: &str) -> bool {
    !disk.starts_with("/dev/")
}

/// Whether what decides is missing in a capture, which root can make whole.
fn is_not_captured(start: &Start) -> bool {
    let deciding = start.chain.deciding();
    let is_of_capture = start.of != THIS_MACHINE && start.disk().is_none();
    deciding.is_some_and(|link| {
        link.found.contains("not in the capture")
            || is_of_capture && link.found.contains("no such file")
    })
}

impl StartReport {
    /// Of a start that was followed.
    pub fn of(start: &Start) -> StartReport {
        let (outcome, stage) = match start.chain.outcome() {
            Outcome::Starts => ("starts", None),
            Outcome::StopsAt(stage) => ("stops-at", Some(stage.name())),
            Outcome::NotCertainAfter(stage) => ("not-certain-after", Some(stage.name())),
        };
        StartReport {
            of: start.of.clone(),
            board: start.facts.board.clone(),
            outcome,
            stage,
            certainty: certainty(start.chain.certainty()),
            sentence: text::first_line(start),
            next: next(start),
            links: start.chain.links().iter().map(LinkReport::of).collect(),
            ladder: start.rungs.iter().map(RungReport::of).collect(),
        }
    }
}

impl LinkReport {
    fn of(link: &Link) -> LinkReport {
        let of_stop =
            |stop: &Stop| NoteReport { why: stop.why.clone(), change: stop.remedy.clone() };
        let of_note =
            |note: &Note| NoteReport { why: note.what.clone(), change: note.remedy.clone() };
        LinkReport {
            stage: link.stage.name(),
            found: link.found.clone(),
            source: link.source.clone(),
            rule_since: link.since,
            certainty: certainty(link.certainty),
            stop: link.stop.as_ref().map(of_stop),
            notes: link.notes.iter().map(of_note).collect(),
        }
    }
}

impl RungReport {
    fn of(rung: &Rung) -> RungReport {
        let (outcome, reached) = match rung.reached {
            Reached::Starts => ("starts", Stage::Mounts),
            Reached::StopsBehind(stage) => ("stops", stage),
            Reached::NotCertainBehind(stage) => ("not-certain", stage),
        };
        RungReport {
            name: rung.name.clone(),
            is_followed: rung.is_followed,
            outcome,
            reached: reached.name(),
            certainty: certainty(rung.certainty),
            reason: rung.reason.clone(),
        }
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Likely => "likely",
        Certainty::NotKnown => "not-known",
    }
}
