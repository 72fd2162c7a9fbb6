//! Changes of a made-up machine: a plan taken as far as a test wants, and back. For tests of this room and of those above it.

use std::path::Path;

use rubus_host::Files;
use rubus_host::simulated::rehearsal::SimulatedMachine;

use super::{
    ASKED_FOR, ApplyContext, Change, ChangeStore, Ending, Left, commit, do_step, go, left,
    obstacles, turn,
};
use crate::plan::Plan;
use crate::plan::journal::{Record, StepState, Way};
use crate::steps::rehearsed::{self, RehearsedStepRunner};

/// Where the machine keeps its changes.
pub const STORE: &str = "/var/lib/rubus/changes";

/// The machine for which a plan was made, as far as the plan says.
pub fn machine(plan: &Plan) -> SimulatedMachine {
    rehearsed::machine(&plan.steps)
}

/// Everything that a change may alter, for comparing, without the change's own places.
pub fn everything(plan: &Plan, machine: &SimulatedMachine, store: &str) -> Vec<String> {
    rehearsed::everything(&plan.steps, machine, store)
}

/// Its changes.
pub fn store() -> ChangeStore {
    ChangeStore::at(STORE)
}

/// Does something with a plan's steps as the made-up machine runs them.
pub fn with_context<T>(plan: &Plan, act: impl FnOnce(&mut ApplyContext<'_>) -> T) -> T {
    act(&mut ApplyContext {
        now: &|| "2026-11-21T01:02:03Z".to_string(),
        tell: &mut |_| {},
        step_runner: &mut RehearsedStepRunner { steps: &plan.steps },
    })
}

/// The machine with the first steps of a plan done, or with all of it where that ends it.
pub fn applied_to(plan: &Plan, steps: usize) -> SimulatedMachine {
    let mut machine = machine(plan).directory(STORE);
    let mut change =
        store().begin(plan.clone(), Vec::new(), "now", &mut machine).expect("it begins");
    with_context(plan, |context| {
        for step in 0..steps.min(plan.steps.len()) {
            if plan.trial.as_ref().is_some_and(|trial| trial.before_step == step) {
                let waiting = Record::OnTrial { at: "now".into(), boot: None };
                change.write(&mut machine, waiting).expect("it is written");
                commit(&mut change, &mut machine, context).expect("it is written");
            }
            do_step(&mut change, step, &mut machine, context).expect("the journal can be written");
            assert_eq!(
                change.state.steps[step],
                StepState::Done,
                "step {step}: {:?}",
                change.went_back_because()
            );
        }
        if steps > plan.steps.len() {
            go(&mut change, &mut machine, context).expect("it ends");
        }
    });
    machine
}

/// Where the journal of its last change is.
pub fn journal_of(machine: &SimulatedMachine) -> String {
    let names = machine.list(Path::new(STORE)).expect("the store");
    format!("{STORE}/{}/journal", names.last().expect("a change"))
}

/// Its last change.
pub fn last(machine: &SimulatedMachine) -> Change {
    store().all(machine).expect("it is understood").pop().expect("a change")
}

/// What a user's `rubus undo` does, and what is left then; or what stops it.
pub fn undo(plan: &Plan, machine: &mut SimulatedMachine) -> Result<Left, String> {
    let mut change = last(machine);
    let in_the_way = obstacles(&change, &[], machine);
    if !in_the_way.is_empty() {
        return Err(in_the_way.join("\n"));
    }
    let ended = with_context(plan, |context| {
        turn(&mut change, Way::Undo, ASKED_FOR, machine, context)?;
        go(&mut change, machine, context)
    });
    match ended.map_err(|error| error.to_string())? {
        Ending::Undone => Ok(left(&change, machine)),
        other => Err(format!("{other:?}")),
    }
}
