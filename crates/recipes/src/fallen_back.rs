//! Starts that fell back to the old system, because the disk or the server with the root did not answer.

use std::path::Path;

use crate::{FROM_CARD, NETWORK_ROOT, StartedFromOld};
use rubus_change::apply::Change;
use rubus_change::plan::journal::Way;
use rubus_host::Files;

/// What has to be known of this start, whichever change it is of; empty for a usual one.
pub fn of_machine(files: &dyn Files) -> Vec<String> {
    let network = files.text(Path::new(FROM_CARD)).ok();
    let network = network.map(|why| {
        format!("This start is FROM THE CARD, and not from the network root: {}", why.trim())
    });
    let disk = started_from_old(files).map(|started| {
        format!(
            "This start is FROM THE OLD SYSTEM, because {}. `rubus status` says what to do.",
            started.why
        )
    });
    network.into_iter().chain(disk).collect()
}

/// The same, of the start of a change.
pub fn of_change(change: &Change, files: &dyn Files) -> Option<String> {
    let is_in_force = change.state.is_finished || change.state.is_on_trial();
    if !is_in_force || change.state.way != Way::Apply {
        return None;
    }
    if change.plan.recipe == NETWORK_ROOT {
        let why = files.text(Path::new(FROM_CARD)).ok()?;
        return Some(format!(
            "This start is FROM THE CARD: {}. What is changed now is not on the network root. When the server is there again, \
             start the machine again; to stay on the card, `rubus undo`.",
            why.trim()
        ));
    }
    let started = started_from_old(files).filter(|started| started.is_of(&change.plan))?;
    Some(format!(
        "This start is FROM THE OLD SYSTEM, because {}. What is changed now is not on that disk: install nothing, a kernel least \
         of all. Check the disk's plug and power, then restart; each start tries it again. If it is broken, `rubus undo` makes \
         the old system the usual one.",
        started.why
    ))
}

fn started_from_old(files: &dyn Files) -> Option<StartedFromOld> {
    let text = files.text(Path::new(StartedFromOld::MARK)).ok()?;
    StartedFromOld::parse(&text)
}

#[cfg(test)]
mod tests {
    use rubus_change::apply::ChangeStore;
    use rubus_change::fixture::{long_plan::big_plan, plans::small_plan};
    use rubus_change::plan::volume::Place;
    use rubus_change::plan::{Action, Plan};
    use rubus_change::steps::Format;
    use rubus_host::Hands;
    use rubus_host::simulated::rehearsal::SimulatedMachine;

    use super::*;

    fn applied(plan: Plan) -> Change {
        let machine = &mut SimulatedMachine::new().directory("/changes");
        let store = ChangeStore::at("/changes");
        let mut change = store.begin(plan, Vec::new(), "now", machine).unwrap();
        change.state.is_finished = true;
        change
    }

    fn root_of(plan: &Plan) -> String {
        let mut actions = plan.steps.iter().map(|step| &step.action);
        let found = actions.find_map(|action| match action {
            Action::Format(Format { place: Place::Partition { partuuid, .. }, .. }) => {
                Some(partuuid.clone())
            }
            _ => None,
        });
        found.expect("the plan formats a partition")
    }

    #[test]
    fn a_start_without_the_disk_is_said_of_the_change_that_made_its_root() {
        let plan = big_plan();
        let note = format!("{}\nthe disk X did not answer within 30 s\n", root_of(&plan));
        let board = SimulatedMachine::new().directory("/run").directory("/run/rubus").file(
            StartedFromOld::MARK,
            &note,
            0o644,
        );
        let files = board.files();
        let said = of_change(&applied(plan.clone()), files).expect("it is said");
        assert!(
            said.contains("FROM THE OLD SYSTEM, because the disk X did not answer within 30 s."),
            "{said}"
        );
        assert!(said.contains("`rubus undo`"), "{said}");
        assert_eq!(of_machine(files).len(), 1);

        let mut undone = applied(plan.clone());
        undone.state.way = Way::Undo;
        assert_eq!(of_change(&undone, files), None);
        assert_eq!(of_change(&applied(small_plan()), files), None);
        let usual = SimulatedMachine::new();
        assert_eq!(of_change(&applied(plan), usual.files()), None);
        assert_eq!(of_machine(usual.files()), Vec::<String>::new());
    }
}
