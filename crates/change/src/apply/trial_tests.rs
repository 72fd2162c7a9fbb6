//! A plan with a start on trial in its middle: it waits there, whenever the power goes, until it is committed or undone.

use crate::fixture::plans::small_plan;
use crate::plan::journal::{Receipt, Way};
use crate::plan::{Plan, Step, Trial};
use crate::steps::{RemoveFile, WriteFile};
use crate::volume::Volume;
use rubus_host::Files;
use rubus_host::files::hands::replace;
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_stats::Rng;

use super::*;

const STORE: &str = "/var/lib/rubus/changes";
/// The step that decides: everything before it is preparation.
const SWITCH: &str = "/etc/gone.conf";

/// Knobs are left out: what they are after a boot is not this test's business.
fn plan() -> Plan {
    let mut plan = small_plan();
    plan.steps.truncate(4);
    // What was for the trial only goes afterwards.
    let made = plan.steps[1].action.clone();
    if let Action::WriteFile(WriteFile { path, becomes: was, .. }) = made {
        plan.steps.push(Step {
            id: "goes-again".into(),
            why: "It was for the trial only.".into(),
            action: Action::RemoveFile(RemoveFile { path, was }),
        });
    }
    plan.trial = Some(Trial { before_step: 3, start: "sudo reboot '0 tryboot'".into() });
    plan
}

fn machine() -> SimulatedMachine {
    SimulatedMachine::new()
        .file("/etc/old.conf", "# old\nsize = 10\ncolour = red\n", 0o600)
        .file(SWITCH, "gone\n", 0o644)
        .file(BOOT_ID, "first boot", 0o444)
        .directory(STORE)
}

/// The root on which the change is not resumed, where there is one: the system of the card, while the new one runs.
const OTHER_ROOT: &str = "/other";

/// Has a copy of the journal there.
struct TwoRoots;

impl StepRunner for TwoRoots {
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        NoStepRunner.apply(action, site, hands)
    }

    fn undo(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        NoStepRunner.undo(action, site, hands)
    }

    fn mount(&mut self, volume: &Volume, site: &Site<'_>) -> Result<PathBuf, StepError> {
        NoStepRunner.mount(volume, site)
    }

    fn unmount_all(&mut self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn tell_others(&mut self, site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError> {
        if hands.files().exists(Path::new(OTHER_ROOT)) {
            let journal = hands.files().text(&site.directory.join("journal")).unwrap();
            let copy = Path::new(OTHER_ROOT).join("journal");
            let fresh = Path::new(OTHER_ROOT).join("journal.new");
            replace(&copy, &fresh, journal.as_bytes(), 0o644, hands)?;
        }
        Ok(())
    }
}

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Apply,
    Resume,
    Commit,
    Undo,
}

fn go_on(machine: &mut SimulatedMachine, wish: Wish) -> Result<Option<Ending>, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let store = ChangeStore::at(STORE);
    if wish == Wish::Apply {
        store.begin(plan(), Vec::new(), "now", machine).map_err(|e| words(&e))?;
    }
    let changes = store.all(machine).map_err(|e| words(&e))?;
    let Some(mut change) = changes.into_iter().next_back() else {
        return Ok(None);
    };
    let now = || "2026-11-21T01:02:03Z".to_string();
    let mut context = ApplyContext { now: &now, tell: &mut |_| {}, step_runner: &mut TwoRoots };
    let asked = match wish {
        Wish::Commit => commit(&mut change, machine, &mut context),
        Wish::Undo => turn(&mut change, Way::Undo, ASKED_FOR, machine, &mut context),
        Wish::Apply | Wish::Resume => Ok(()),
    };
    let ended = asked.and_then(|()| go(&mut change, machine, &mut context));
    ended.map(Some).map_err(|error| words(&error))
}

fn after(wishes: &[Wish]) -> SimulatedMachine {
    let mut machine = machine();
    for wish in wishes {
        go_on(&mut machine, *wish).unwrap();
    }
    machine
}

fn last(machine: &SimulatedMachine) -> Option<Change> {
    ChangeStore::at(STORE).all(machine).unwrap().pop()
}

fn is_switched(machine: &SimulatedMachine) -> bool {
    !machine.everything().contains_key(Path::new(SWITCH))
}

fn outside(machine: &SimulatedMachine) -> Vec<(PathBuf, Option<(String, u32)>)> {
    let all = machine.everything().into_iter();
    all.filter(|(path, _)| !path.starts_with("/var")).collect()
}

#[test]
fn it_waits_for_its_trial_and_goes_on_only_when_that_was_passed() {
    let mut machine = machine();
    assert_eq!(go_on(&mut machine, Wish::Apply), Ok(Some(Ending::OnTrial)));
    assert!(!is_switched(&machine));
    let change = last(&machine).unwrap();
    assert!(change.state.is_on_trial());
    assert!(!change.started_since(Some("first boot")));
    assert!(change.started_since(Some("another boot")));
    assert_eq!(not_done(&change, &machine), Vec::<String>::new());
    let events = machine.events();
    assert_eq!(go_on(&mut machine, Wish::Resume), Ok(Some(Ending::OnTrial)));
    assert_eq!(machine.events(), events, "resuming does not pass a trial");

    assert_eq!(go_on(&mut machine, Wish::Commit), Ok(Some(Ending::Applied)));
    assert!(is_switched(&machine));
    let change = last(&machine).unwrap();
    assert!(change.state.is_finished);
    assert_eq!(differences(&change, &[], &machine), Vec::<String>::new());
    // What the trial has started is in force.
    assert!(change.started_since(Some("another boot")));
    assert_eq!(go_on(&mut machine, Wish::Undo), Ok(Some(Ending::Undone)));
    assert_eq!(outside(&machine), outside(&self::machine()));
}

#[test]
fn it_is_undone_while_it_waits() {
    let mut machine = after(&[Wish::Apply, Wish::Undo]);
    assert_eq!(outside(&machine), outside(&self::machine()));
    // A trial that was taken back cannot be passed.
    assert_eq!(go_on(&mut machine, Wish::Commit), Ok(Some(Ending::Undone)));
    assert_eq!(outside(&machine), outside(&self::machine()));
}

#[test]
fn what_differs_while_it_waits_is_told() {
    let machine = after(&[Wish::Apply]);
    let change = last(&machine).unwrap();
    let differing = |files: &SimulatedMachine| differences(&change, &[], files);
    assert_eq!(differing(&machine), Vec::<String>::new());
    assert_eq!(
        differing(&self::machine()),
        ["/etc/example.d is gone", "/etc/example.d/new.conf is gone", "/etc/old.conf was changed"]
    );
}

/// The disk with the new root broke as the power went, or was removed: the card's system starts, and knows only its own
/// copy of the journal.
#[test]
fn what_was_begun_after_a_trial_is_undone_by_the_old_system_alone() {
    let mut start = machine().directory(OTHER_ROOT);
    go_on(&mut start, Wish::Apply).unwrap();
    let mut whole = start.clone();
    let events = whole.events();
    go_on(&mut whole, Wish::Commit).unwrap();
    let events = whole.events() - events;
    for event in 0..events {
        for seed in 0..6 {
            let case = format!("event {event}, seed {seed}");
            let mut random = Rng::stream(seed, event as u64);
            let mut machine = start.clone();
            machine.cut_power_at(event);
            let _ = go_on(&mut machine, Wish::Commit);
            machine.boot(&mut || random.next_u64() % 2 == 0);
            let journal = format!("{STORE}/{}/journal", last(&machine).unwrap().name);
            let copy = Path::new(OTHER_ROOT).join("journal");
            let copy = Files::text(&machine, &copy).unwrap();
            machine.meddle(&journal, &(copy + "\n"));
            go_on(&mut machine, Wish::Undo).unwrap();
            let mut left = outside(&machine);
            left.retain(|(path, _)| !path.starts_with(OTHER_ROOT));
            assert_eq!(left, outside(&self::machine()), "{case}");
        }
    }
}

/// A file that was edited while the trial waited was not touched, and is no reason to stop in the middle.
#[test]
fn a_step_that_refuses_after_a_trial_is_not_undone() {
    let mut machine = after(&[Wish::Apply]);
    machine.meddle(SWITCH, "mine\n");
    let ended = go_on(&mut machine, Wish::Commit).unwrap();
    assert!(matches!(ended, Some(Ending::RolledBack { .. })), "{ended:?}");
    let mut expected = self::machine();
    expected.meddle(SWITCH, "mine\n");
    assert_eq!(outside(&machine), outside(&expected));
}

#[test]
fn wherever_the_power_goes_only_a_commit_switches() {
    let cases = [
        (&[][..], Wish::Apply),
        (&[Wish::Apply][..], Wish::Commit),
        (&[Wish::Apply][..], Wish::Undo),
        (&[Wish::Apply, Wish::Commit][..], Wish::Undo),
    ];
    for (before, wish) in cases {
        let start = after(before);
        let mut whole = start.clone();
        let events = whole.events();
        go_on(&mut whole, wish).unwrap();
        let events = whole.events() - events;
        assert!(events > 3, "{wish:?}: {events}");
        for event in 0..events {
            for seed in 0..6 {
                let case = format!("{before:?}, {wish:?}, event {event}, seed {seed}");
                let mut random = Rng::stream(seed, event as u64);
                let mut machine = start.clone();
                machine.cut_power_at(event);
                let _ = go_on(&mut machine, wish);
                assert!(machine.is_dead(), "{case}");
                machine.boot(&mut || random.next_u64() % 2 == 0);
                if wish == Wish::Apply {
                    assert!(!is_switched(&machine), "{case}");
                }
                let ended = go_on(&mut machine, Wish::Resume).unwrap();
                let is_at_rest =
                    |change: &Change| change.state.is_finished != change.state.is_on_trial();
                assert!(last(&machine).as_ref().is_none_or(is_at_rest), "{case}");
                assert_eq!(is_switched(&machine), ended == Some(Ending::Applied), "{case}");
                go_on(&mut machine, Wish::Undo).unwrap();
                assert_eq!(outside(&machine), outside(&self::machine()), "{case}");
            }
        }
    }
}
