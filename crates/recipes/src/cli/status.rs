//! `rubus status`: what was applied, what stands in the middle, and whether it still holds. Only looks, and only at
//! what answers at once; `rubus verify` looks at all.

use std::path::Path;

use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, Terminal, World};
use rubus_host::{Files, Live};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::verb::{MISTAKE, Page};
use serde::Serialize;

use super::changes::{all_known, must_be_live};
use super::lost::Lost;
use crate::fallen_back;
use rubus_change::apply::{BOOT_ID, Change, differences, initramfs_answers, not_done, unrecorded};
use rubus_change::on_trial::{self, Stage};
use rubus_change::plan::journal::{Receipt, StepState, Way};
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::plan::verify::{Answer, PromiseState, verify};
use rubus_change::promises;
use rubus_change::text::{ChangeLine, StepLine, receipts, status as status_text};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-status",
    statuses: &[
        (0, "all changes hold"),
        (1, "a change is unfinished, or something it set has changed"),
        MISTAKE,
    ],
    examples: &[
        ("rubus status", "List the changes."),
        (
            "rubus status 0001-zswap",
            "Show each step of a change, with its planned and its live value.",
        ),
    ],
};

/// Show applied changes and whether they still hold.
#[derive(Debug, Args)]
pub struct Status {
    /// Show this change with every step [default: a summary of all]
    pub change: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

/// An applied change, and whether it still is as planned.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeStatus<'a> {
    /// Name of the change.
    pub name: &'a str,
    /// Recipe that drew up its plan.
    pub recipe: &'a str,
    /// What it does, as a sentence.
    pub title: &'a str,
    /// Whether it is being applied or undone.
    pub way: Way,
    /// All steps in that direction are done.
    pub is_finished: bool,
    /// Some steps are done and some are not.
    pub is_half_done: bool,
    /// It waits for a trial boot, or for `rubus verify` after it.
    pub is_on_trial: bool,
    /// Part of it takes effect only after a restart.
    pub waits_for_start: bool,
    /// Every step that the journal does not know of is as planned.
    pub is_ahead_of_journal: bool,
    /// Earlier changes that it builds on: it must be undone before them.
    pub lies_on: &'a [String],
    /// What is no longer as the change left it.
    pub differences: &'a [String],
    /// Broken promises.
    pub broken: &'a [Answer],
    /// What else there is to know.
    pub remarks: &'a [String],
    /// Its steps, in order.
    pub steps: Vec<StepStatus<'a>>,
}

/// Where a step of a change is.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStatus<'a> {
    /// Identifier of the step within the plan.
    pub id: &'a str,
    /// What it does.
    pub title: String,
    /// Where it is.
    pub state: StepState,
    /// What it should have given; null until it is done.
    pub planned: Option<&'a str>,
    /// What was read back; null until it is done.
    pub live: Option<&'a str>,
}

impl<'a> StepStatus<'a> {
    /// From its receipt, if it has one.
    pub fn new(id: &'a str, title: String, state: StepState, receipt: Option<&'a Receipt>) -> Self {
        StepStatus {
            id,
            title,
            state,
            planned: receipt.map(|receipt| &*receipt.planned),
            live: receipt.map(|receipt| &*receipt.live),
        }
    }
}

/// Shows what was applied, and whether it still is.
pub fn run(general: &General, arguments: &Status) -> anyhow::Result<Exit> {
    must_be_live(general, "status")?;
    let live = Live::new();
    let (mut changes, lost) = all_known()?;
    let machine = if changes.is_empty() { None } else { Some(World::of(general)?.survey()) };
    let mut lines: Vec<Line> = changes
        .iter()
        .enumerate()
        .map(|(i, change)| {
            let mut line = line(change, &changes[i + 1..], machine.as_ref(), &live);
            line.lies_on = lies_on(change, &changes[..i]);
            line.remarks.extend(stack_words(&line.lies_on));
            line.remarks.extend(lost_words(change, lost.as_ref()));
            line
        })
        .collect();
    if let Some(name) = &arguments.change {
        let place = changes.iter().position(|change| change.name == *name);
        let Some(place) = place else {
            anyhow::ensure!(!changes.is_empty(), "there is no change '{name}': none is applied");
            let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
            anyhow::bail!("there is no change '{name}'; there are: {}", names.join(", "));
        };
        changes = vec![changes.remove(place)];
        lines = vec![lines.remove(place)];
    }
    let shown: Vec<ChangeLine<'_>> = changes
        .iter()
        .zip(&lines)
        .map(|(change, line)| ChangeLine {
            name: &change.name,
            title: &change.plan.title,
            way: change.state.way,
            is_finished: change.state.is_finished,
            is_on_trial: change.state.is_on_trial(),
            is_ahead_of_journal: line.is_ahead_of_journal,
            steps: &change.state.steps,
            differences: line.differences.clone(),
            broken: line.broken.iter().map(words_of).collect(),
            remarks: line.remarks.clone(),
        })
        .collect();
    if arguments.json.wanted {
        let list: Vec<_> = changes.iter().zip(&lines).map(document).collect();
        say(&(serde_json::to_string_pretty(&list)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        say(&status_text(&shown, style))?;
        if let Some(lost) = lost.as_ref().filter(|lost| lost.found.is_empty()) {
            say(&format!("But {}.\n", lost.words))?;
        }
        if arguments.change.is_some() {
            say(&receipts(&steps_of(&changes[0]), style))?;
        }
    }
    let is_fine = |line: &ChangeLine<'_>| {
        line.is_finished && line.differences.is_empty() && line.broken.is_empty()
    };
    Ok(if lost.is_none() && shown.iter().all(is_fine) { Exit::Fine } else { Exit::AnswerIsNo })
}

/// What was found about a change.
struct Line {
    differences: Vec<String>,
    broken: Vec<Answer>,
    remarks: Vec<String>,
    waits_for_start: bool,
    is_ahead_of_journal: bool,
    /// Names of the changes that cannot be undone before this one.
    lies_on: Vec<String>,
}

/// The names of the earlier changes on which one lies.
fn lies_on(change: &Change, earlier: &[Change]) -> Vec<String> {
    if change.is_undone() {
        return Vec::new();
    }
    let below = earlier.iter().filter(|earlier| !earlier.is_undone() && change.lies_on(earlier));
    below.map(|earlier| earlier.name.clone()).collect()
}

fn stack_words(below: &[String]) -> Option<String> {
    (!below.is_empty())
        .then(|| format!("It builds on {}: undo it before that one.", below.join(" and ")))
}

/// Where a change is known from, if not from this root.
fn lost_words(change: &Change, lost: Option<&Lost>) -> Option<String> {
    let is_found = |lost: &&Lost| lost.found.iter().any(|found| found.name == change.name);
    lost.filter(is_found).map(|lost| lost.words.clone())
}

fn line(change: &Change, later: &[Change], machine: Option<&Machine>, live: &Live) -> Line {
    let boot = live.text(Path::new(BOOT_ID)).ok();
    let started_since = change.started_since(boot.as_deref());
    let is_applied = change.state.is_finished && change.state.way == Way::Apply;
    let is_on_trial = change.state.is_on_trial();
    let promises = quick_ones(&change.plan.promises);
    let answers = match machine {
        Some(machine) if is_applied || is_on_trial => {
            quick_answers(&promises, machine, started_since)
        }
        _ => Vec::new(),
    };
    let stage = on_trial::stage(change, &promises, &answers, live);
    // What a later change has changed again is that one's business, and is said there.
    let is_last_word = !later.iter().any(|later| later.state.way == Way::Apply);
    // The old system need not hold what the new one promises.
    let is_asked = is_last_word && matches!(stage, None | Some(Stage::Running));
    let broken =
        answers.into_iter().filter(|answer| answer.standing == PromiseState::Broken && is_asked);
    let mut images = Vec::new();
    if is_applied || is_on_trial {
        images = initramfs_answers(change, later, live);
    }
    let broken =
        broken.chain(images.into_iter().filter(|answer| answer.standing == PromiseState::Broken));
    let needs_start = change.plan.needs_boot && !started_since;
    let waits_for_start = (is_applied || is_on_trial) && needs_start;
    let mut remarks = remarks(change, live);
    remarks.extend(stage.map(|stage| on_trial::words(change, stage, None)));
    if is_applied && needs_start {
        remarks.push("Part of it takes effect only after a restart.".into());
    }
    Line {
        differences: differences(change, later, live),
        broken: broken.collect(),
        remarks,
        waits_for_start,
        is_ahead_of_journal: is_ahead_of_journal(change, live),
        lies_on: Vec::new(),
    }
}

/// Whether every step that the journal does not know of is as planned.
fn is_ahead_of_journal(change: &Change, live: &Live) -> bool {
    let state = &change.state;
    let is_under_way =
        state.is_half_done() || change.records.len() > 1 || unrecorded(change, live).is_in_sight;
    !state.is_finished
        && !state.is_on_trial()
        && state.way == Way::Apply
        && is_under_way
        && not_done(change, live).is_empty()
}

/// What has to be known of a change that stands in the middle, or was turned back.
pub(super) fn remarks(change: &Change, live: &Live) -> Vec<String> {
    let state = &change.state;
    if let Some(why) = fallen_back::of_change(change, live) {
        return vec![why];
    }
    if state.way == Way::Undo {
        let turned = change.went_back_because();
        let turned = turned.map(|why| format!("It was turned back: {why}."));
        return turned.into_iter().chain(still_to_undo(change)).collect();
    }
    if state.is_finished || state.is_on_trial() {
        return Vec::new();
    }
    if is_ahead_of_journal(change, live) {
        return vec![
            "The journal ends early: it was copied to this root before the last steps, or has lost its end. All steps after \
             that are in place; `rubus resume` records them."
                .into(),
        ];
    }
    let unrecorded = unrecorded(change, live);
    still_to_do(change, if unrecorded.is_in_sight { &unrecorded.steps } else { &[] })
}

/// What is left of a change that stands in the middle on its way forwards.
/// `unrecorded` are the steps that may be done without the journal's knowledge.
fn still_to_do(change: &Change, unrecorded: &[usize]) -> Vec<String> {
    let states = change.state.steps.iter().enumerate();
    let left = states.filter(|(number, state)| {
        **state != StepState::Done && !change.state.waits_for_trial(*number)
    });
    let (unknown, left): (Vec<_>, Vec<_>) = left
        .partition(|(number, state)| **state == StepState::NotDone && unrecorded.contains(number));
    let of = change.plan.steps.len();
    let (doubtful, untouched): (Vec<_>, Vec<_>) =
        left.into_iter().partition(|(_, state)| **state == StepState::InDoubt);
    let title = |number: usize| change.plan.steps[number].action.title();
    let interrupted = doubtful.into_iter().map(|(number, _)| {
        format!(
            "Step {} of {of} was interrupted: {}. `rubus resume` repeats it, `rubus undo` reverts it.",
            number + 1,
            title(number)
        )
    });
    let mut words: Vec<String> = interrupted.collect();
    if let (Some((first, _)), Some((last, _))) = (unknown.first(), unknown.last()) {
        words.push(format!(
            "The journal ends early: {} of the steps {} to {} of {of} are or may be in place although it does not say so. \
             `rubus resume` does what is missing, `rubus undo` reverts all.",
            unknown.len(),
            first + 1,
            last + 1
        ));
    }
    if let (Some((first, _)), Some((last, _))) = (untouched.first(), untouched.last()) {
        words.push(if first == last {
            format!("Not started: step {} of {of}: {}.", first + 1, title(*first))
        } else {
            format!(
                "Not started: steps {} to {} of {of}, from \"{}\" to \"{}\".",
                first + 1,
                last + 1,
                title(*first),
                title(*last)
            )
        });
    }
    words
}

/// What is left of a change that stands in the middle on its way back.
fn still_to_undo(change: &Change) -> Option<String> {
    let states = &change.state.steps;
    let next = states.iter().rposition(|state| *state != StepState::NotDone)?;
    let left = states.iter().filter(|state| **state != StepState::NotDone);
    Some(format!(
        "Still to be undone: {} of {} steps; the next one: {}.",
        left.count(),
        states.len(),
        change.plan.steps[next].action.undo_title()
    ))
}

/// The promises that can be looked at without waiting.
fn quick_ones(promises: &[Promise]) -> Vec<Promise> {
    let is_quick = |promise: &&Promise| {
        !matches!(
            promise.look,
            Look::QuietDisk { .. } | Look::Compressed { .. } | Look::Served { .. }
        )
    };
    promises.iter().filter(is_quick).cloned().collect()
}

fn quick_answers(promises: &[Promise], machine: &Machine, started_since: bool) -> Vec<Answer> {
    let found = promises::look(&Live::new(), machine, promises, &mut || 0.0);
    verify(promises, machine, &found, started_since)
}

fn words_of(answer: &Answer) -> String {
    format!("{} ({})", answer.what, answer.found)
}

fn steps_of(change: &Change) -> Vec<StepLine<'_>> {
    let steps = change.plan.steps.iter().zip(&change.state.steps).enumerate();
    let steps = steps.map(|(number, (step, state))| StepLine {
        title: step.action.title(),
        state: *state,
        receipt: change.receipt_of(number),
    });
    steps.collect()
}

fn document<'a>((change, line): (&'a Change, &'a Line)) -> ChangeStatus<'a> {
    let steps = change.plan.steps.iter().zip(&change.state.steps);
    let steps = steps.enumerate().map(|(number, (step, state))| {
        let receipt = change.receipt_of(number);
        StepStatus::new(&step.id, step.action.title(), *state, receipt)
    });
    ChangeStatus {
        name: &change.name,
        recipe: &change.plan.recipe,
        title: &change.plan.title,
        way: change.state.way,
        is_finished: change.state.is_finished,
        is_half_done: change.state.is_half_done(),
        is_on_trial: change.state.is_on_trial(),
        waits_for_start: line.waits_for_start,
        is_ahead_of_journal: line.is_ahead_of_journal,
        lies_on: &line.lies_on,
        differences: &line.differences,
        broken: &line.broken,
        remarks: &line.remarks,
        steps: steps.collect(),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::validator::must_be_valid;
    use rubus_host::simulated::rehearsal::SimulatedMachine;

    use super::*;
    use rubus_change::apply::ChangeStore;
    use rubus_change::fixture::plans::small_plan;
    use rubus_change::plan::journal::Record;

    /// A change whose power went in the second of six steps.
    fn interrupted(way: Way) -> Change {
        let machine = &mut SimulatedMachine::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(small_plan(), Vec::new(), "now", machine).unwrap();
        change.state.steps[0] = StepState::Done;
        change.state.steps[1] = StepState::InDoubt;
        change.state.way = way;
        change
    }

    #[test]
    fn steps_that_have_not_begun_are_not_called_damaged() {
        let said = remarks(&interrupted(Way::Apply), &Live::new()).join("\n");
        assert!(
            said.contains("Step 2 of 6 was interrupted: make /etc/example.d/new.conf."),
            "{said}"
        );
        assert!(said.contains("Not started: steps 3 to 6 of 6"), "{said}");
        assert!(!said.contains("is gone") && !said.contains("was changed"), "{said}");
    }

    #[test]
    fn what_is_still_to_be_undone_is_said() {
        let said = remarks(&interrupted(Way::Undo), &Live::new()).join("\n");
        assert!(
            said.contains(
                "Still to be undone: 2 of 6 steps; the next one: remove /etc/example.d/new.conf."
            ),
            "{said}"
        );
    }

    #[test]
    fn the_json_is_as_its_schema_says() {
        let mut documents = Vec::new();
        for way in [Way::Apply, Way::Undo] {
            let mut change = interrupted(way);
            let receipt = Receipt { planned: "planned".into(), live: "found".into() };
            change.records.push(Record::Done { step: 0, receipt });
            let line = Line {
                differences: vec!["/etc/example.d/new.conf was changed".into()],
                broken: vec![Answer {
                    what: "the disk is mounted".into(),
                    standing: PromiseState::Broken,
                    found: "it is not".into(),
                }],
                ..line(&change, &[], None, &Live::new())
            };
            let list = serde_json::to_value([document((&change, &line))]).unwrap();
            documents.push((format!("{way:?}"), "status", list));
        }
        must_be_valid(&documents);
    }
}
