//! Journals that end early, over the plans of every recipe on captured boards: wherever the journal ends and however far the
//! machine is, going back leaves it as it was, or says what it left.
#![allow(
    clippy::disallowed_methods,
    reason = "tests put links in the way of a change of this machine"
)]

use std::path::Path;

use rubus_host::capture::Captured;
use rubus_host::live::hands::LiveHands;
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_host::{Files, Live};
use rubus_machine::probe::survey;
use rubus_vocabulary::machine::Origin;

use super::super::{
    ASKED_FOR, ApplyContext, ChangeStore, Ending, commit, differences, do_step, go, obstacles, turn,
};
use super::*;
use crate::fixture::plans::small_plan;
use crate::plan::{Plan, TextFile};
use crate::recipe::testing::further_plans;
use crate::recipe::{ALL, Facts, Wishes, surveyed_disk};
use crate::steps::rehearsed::{RehearsedStepRunner, everything, machine};
use crate::steps::{RemoveFile, WriteFile};

const STORE: &str = "/var/lib/rubus/changes";
const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures");

/// Options besides those of each recipe's example.
const WISHES: [(&str, &[&str]); 8] = [
    ("format", &["device=/dev/sda", "at=/mnt/data"]),
    ("network-disk", &["address=nbd://192.168.1.2/disk", "at=/mnt/network"]),
    ("swap", &["to=file:/srv/swap", "size=1G"]),
    ("swap", &["to=zram", "size=1G"]),
    ("swap", &["to=none"]),
    ("swap", &["to=disk:/dev/sdb", "size=1G"]),
    ("usb-quirk", &["device=/dev/sda"]),
    ("usb-quirk", &["device=/dev/sdb"]),
];

/// The plans of every recipe on every captured board, each list of kinds of steps once.
fn plans() -> Vec<(String, Plan)> {
    let mut plans = BTreeMap::new();
    for name in
        ["emulated-pi3", "pi2b-sd-usb-stick", "pi3bplus-usb-ssd", "pi4b-usb3-ssd", "pi5-nvme"]
    {
        let files = Captured::open(&Path::new(CAPTURES).join(name)).expect("a capture");
        let origin = Origin::Capture { path: name.into(), label: String::new() };
        let board = survey(&files, files.recorded_at(), origin);
        let examples = ALL.iter().map(|recipe| {
            let options = recipe.guide.example.split(' ').skip(4).collect::<Vec<_>>();
            (recipe.name, options)
        });
        let further = WISHES.iter().map(|(recipe, options)| (*recipe, options.to_vec()));
        for (recipe, options) in examples.chain(further) {
            let pairs = options.iter().filter_map(|option| option.split_once('='));
            let wishes: Wishes =
                pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let recipe = crate::recipe::by_name(recipe).expect("a recipe");
            let look_at = (recipe.look_at)(&board, &wishes);
            let disk = |path: &PathBuf| (path.clone(), surveyed_disk(&board, path));
            let facts = Facts {
                seen: crate::sight::look(&files, &look_at.paths),
                disks: look_at.disks.iter().map(disk).collect(),
                ..Facts::default()
            };
            let plan = recipe.plan(&board, &facts, &wishes, "now").expect("a plan");
            let kinds: Vec<String> = plan
                .steps
                .iter()
                .map(|step| serde_json::to_value(&step.action).expect("it serialises"))
                .map(|action| format!("{}{}", action["do"], action["action"]["do"]))
                .collect();
            if !kinds.is_empty() {
                let title = format!("{name}: {} {}", recipe.name, options.join(" "));
                plans.entry((recipe.name, kinds)).or_insert((title, plan));
            }
        }
    }
    let further = further_plans().into_iter();
    let further = further.enumerate().map(|(i, plan)| (format!("{} {i}", plan.recipe), plan));
    plans.into_values().chain(further).collect()
}

fn store() -> ChangeStore {
    ChangeStore::at(STORE)
}

fn with_context<T>(plan: &Plan, act: impl FnOnce(&mut ApplyContext<'_>) -> T) -> T {
    act(&mut ApplyContext {
        now: &|| "2026-11-21T01:02:03Z".to_string(),
        tell: &mut |_| {},
        step_runner: &mut RehearsedStepRunner { plan },
    })
}

/// The machine with the first steps of a plan done, or with all of it where that ends it.
fn applied_to(plan: &Plan, steps: usize) -> SimulatedMachine {
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

fn journal_of(machine: &SimulatedMachine) -> String {
    let names = machine.list(Path::new(STORE)).expect("the store");
    format!("{STORE}/{}/journal", names.last().expect("a change"))
}

fn last(machine: &SimulatedMachine) -> Change {
    store().all(machine).expect("it is understood").pop().expect("a change")
}

/// What a user's `rubus undo` does, and what is left then; or what stops it.
fn undo(plan: &Plan, machine: &mut SimulatedMachine) -> Result<Left, String> {
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

#[test]
fn wherever_a_journal_ends_undo_leaves_the_machine_as_it_was() {
    let plans = plans();
    let recipes: BTreeSet<&str> = plans.iter().map(|(_, plan)| plan.recipe.as_str()).collect();
    let all: BTreeSet<&str> = ALL.iter().map(|recipe| recipe.name).collect();
    let missing: Vec<_> = all.difference(&recipes).collect();
    assert!(missing.is_empty(), "no plan of {missing:?}");
    let mut cases = 0;
    for (title, plan) in &plans {
        let before = everything(plan, &machine(plan).directory(STORE), STORE);
        for steps in 0..=plan.steps.len() + 1 {
            let applied = applied_to(plan, steps);
            let journal = journal_of(&applied);
            let text =
                String::from_utf8(applied.read_prefix(Path::new(&journal), 1 << 20).unwrap());
            let text = text.unwrap();
            let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
            // Of long journals every third line, and the last ones.
            let stride = if ends.len() > 40 { 3 } else { 1 };
            let is_taken = |place: &usize| place % stride == 0 || place + 3 > ends.len();
            let ends = (0..ends.len()).filter(is_taken).map(|place| ends[place]);
            for end in std::iter::once(0).chain(ends) {
                cases += 1;
                let case = format!("{title}: {steps} steps, {end} of {} bytes", text.len());
                let mut machine = applied.clone();
                machine.meddle(&journal, &text[..end]);
                let left = undo(plan, &mut machine).unwrap_or_else(|why| panic!("{case}: {why}"));
                assert_eq!(left.found, Vec::<String>::new(), "{case}");
                let now = everything(plan, &machine, STORE);
                let (gone, new) = differing(&before, &now);
                let is_said = |line: &String| {
                    let path = line.split(':').next().unwrap_or_default();
                    left.announced.iter().any(|words| words.contains(path))
                };
                let unsaid: Lines<'_> = new.into_iter().filter(|line| !is_said(line)).collect();
                assert_eq!((gone, unsaid), (vec![], vec![]), "{case}");
            }
        }
    }
    assert!(cases > 2000, "{cases}");
}

type Lines<'a> = Vec<&'a String>;

fn differing<'a>(before: &'a [String], now: &'a [String]) -> (Lines<'a>, Lines<'a>) {
    let only = |one: &'a [String], other: &[String]| {
        one.iter().filter(|line| !other.contains(line)).collect()
    };
    (only(before, now), only(now, before))
}

#[test]
fn wherever_a_journal_is_torn_within_a_line_undo_knows_the_same() {
    let plan = &small_plan();
    let before = everything(plan, &machine(plan).directory(STORE), STORE);
    let applied = applied_to(plan, plan.steps.len() + 1);
    let journal = journal_of(&applied);
    let text = applied.text(Path::new(&journal)).unwrap() + "\n";
    for end in 0..text.len() {
        let mut machine = applied.clone();
        machine.meddle(&journal, &text[..end]);
        let left = undo(plan, &mut machine).unwrap_or_else(|why| panic!("byte {end}: {why}"));
        assert!(left.is_nothing(), "byte {end}: {left:?}");
        assert_eq!(everything(plan, &machine, STORE), before, "byte {end}");
    }
}

#[test]
fn what_something_else_changed_beyond_the_journal_is_said_and_not_touched() {
    let plan = &small_plan();
    let old = "/etc/old.conf";
    for (steps, stops) in [(2, false), (3, false), (4, true), (7, true)] {
        let mut machine = applied_to(plan, steps);
        machine.meddle(&journal_of(&machine), "");
        machine.meddle(old, "mine\n");
        let undone = undo(plan, &mut machine);
        assert_eq!(machine.text(Path::new(old)).unwrap(), "mine", "{steps} steps");
        match (undone, stops) {
            // A later step is in place, so this one was, and something else has changed it since.
            (Err(why), true) => assert!(why.contains(old), "{why}"),
            (Ok(left), false) => {
                let [found] = &left.found[..] else { panic!("{steps} steps: {left:?}") };
                assert!(found.starts_with(old) && found.contains("was not touched"), "{found}");
            }
            other => panic!("{steps} steps: {other:?}"),
        }
    }
}

#[test]
fn a_directory_with_something_in_it_is_not_called_removed() {
    let plan = &small_plan();
    let mut machine = applied_to(plan, 7);
    machine = machine.file("/etc/example.d/mine.conf", "mine\n", 0o644);
    let left = undo(plan, &mut machine).unwrap();
    assert_eq!(left.announced, ["the directory /etc/example.d stays: something is in it"]);
    assert_eq!(left.found, Vec::<String>::new());
}

/// A change of one file in a directory of its own, on this machine.
fn applied_here(top: &Path, action: Action) -> Change {
    let hands = &mut LiveHands::new();
    let mut plan = small_plan();
    plan.steps.truncate(1);
    plan.steps[0].action = action;
    let store = ChangeStore::at(top.join("changes"));
    let mut change = store.begin(plan.clone(), Vec::new(), "now", hands).unwrap();
    with_context(&plan, |context| go(&mut change, hands, context)).unwrap();
    assert!(change.state.is_finished && change.state.way == Way::Apply);
    change
}

fn undone_here(change: &mut Change) -> Result<Ending, String> {
    let hands = &mut LiveHands::new();
    let plan = change.plan.clone();
    let ended = with_context(&plan, |context| {
        turn(change, Way::Undo, ASKED_FOR, hands, context)?;
        go(change, hands, context)
    });
    ended.map_err(|error| error.to_string())
}

#[test]
fn a_directory_that_was_replaced_by_a_link_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (own, other) = (top.join("own"), top.join("other"));
    std::fs::create_dir(&own).unwrap();
    let path = own.join("a.conf");
    let write = WriteFile { path: path.clone(), was: None, becomes: TextFile::public("new\n") };
    let mut change = applied_here(&top, write.into());
    std::fs::rename(&own, &other).unwrap();
    std::os::unix::fs::symlink(&other, &own).unwrap();
    let found = obstacles(&change, &[], &Live::new());
    assert!(found[0].contains("leads to"), "{found:?}");
    let why = undone_here(&mut change).unwrap_err();
    assert!(why.contains("its directory was"), "{why}");
    assert_eq!(std::fs::read(other.join("a.conf")).unwrap(), b"new\n");
    // Put right, it goes on.
    std::fs::remove_file(&own).unwrap();
    std::fs::rename(&other, &own).unwrap();
    assert_eq!(undone_here(&mut change), Ok(Ending::Undone));
    assert!(!path.exists());
}

#[test]
fn a_dangling_link_in_the_place_of_a_removed_file_stays() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let path = top.join("gone.conf");
    std::fs::write(&path, "gone\n").unwrap();
    let mode = Live::new().mode(&path).unwrap();
    let was = TextFile { text: "gone\n".into(), mode };
    let mut change = applied_here(&top, RemoveFile { path: path.clone(), was }.into());
    std::os::unix::fs::symlink(top.join("nowhere"), &path).unwrap();
    let found = obstacles(&change, &[], &Live::new());
    assert!(found[0].contains("a symbolic link to"), "{found:?}");
    assert_eq!(differences(&change, &[], &Live::new()).len(), 1);
    assert!(undone_here(&mut change).is_err());
    assert_eq!(std::fs::read_link(&path).unwrap(), top.join("nowhere"));
}

#[test]
fn an_honest_interruption_looks_nowhere_else() {
    let plan = &small_plan();
    for steps in 0..plan.steps.len() {
        let machine = applied_to(plan, steps);
        assert_eq!(
            unrecorded(&last(&machine), &machine).steps,
            Vec::<usize>::new(),
            "{steps} steps"
        );
    }
}

/// Takes the last change to the end of its way; nothing where none has begun.
fn go_on(
    plan: &Plan,
    machine: &mut SimulatedMachine,
    way: Option<Way>,
) -> Option<Result<Ending, String>> {
    let mut change = store().all(machine).expect("it is understood").pop()?;
    let ended = with_context(plan, |context| {
        if let Some(way) = way {
            turn(&mut change, way, ASKED_FOR, machine, context)?;
        }
        go(&mut change, machine, context)
    });
    Some(ended.map_err(|error| error.to_string()))
}

fn apply(plan: &Plan, machine: &mut SimulatedMachine) {
    if let Ok(mut change) = store().begin(plan.clone(), Vec::new(), "now", machine) {
        let _ = with_context(plan, |context| go(&mut change, machine, context));
    }
}

#[test]
fn whenever_the_power_goes_or_an_operation_fails_every_recipe_can_go_on_and_back() {
    let mut cases = 0;
    for (title, plan) in &plans() {
        let start = machine(plan).directory(STORE);
        let before = everything(plan, &start, STORE);
        let is_as_before = |machine: &SimulatedMachine, case: &str| {
            let now = everything(plan, machine, STORE);
            let (gone, new) = differing(&before, &now);
            // What the plan says that it leaves.
            let left = store().all(machine).unwrap().pop().map(|change| left(&change, machine));
            let left = left.unwrap_or_default();
            assert_eq!(left.found, Vec::<String>::new(), "{case}");
            let is_said = |line: &&String| {
                let path = line.split(':').next().unwrap_or_default();
                left.announced.iter().any(|words| words.contains(path))
            };
            let unsaid: Lines<'_> = new.into_iter().filter(|line| !is_said(line)).collect();
            assert_eq!((gone, unsaid), (vec![], vec![]), "{case}");
        };
        let mut applied = start.clone();
        apply(plan, &mut applied);
        let forwards = applied.events();
        let mut undone = applied.clone();
        assert!(go_on(plan, &mut undone, Some(Way::Undo)).unwrap().is_ok(), "{title}");
        let backwards = undone.events() - forwards;
        const POINTS: usize = 12;
        for (way, events) in [(Way::Apply, forwards), (Way::Undo, backwards)] {
            for point in 0..POINTS {
                let event = point * events / POINTS;
                let begin = || match way {
                    Way::Apply => start.clone(),
                    Way::Undo => applied.clone(),
                };
                let act = |machine: &mut SimulatedMachine| match way {
                    Way::Apply => apply(plan, machine),
                    Way::Undo => drop(go_on(plan, machine, Some(Way::Undo))),
                };
                let case = format!("{title}: {way:?}, event {event}");
                cases += 3;
                let mut failed = begin();
                failed.fail_at(event);
                act(&mut failed);
                // Going on ends the way that it is on; then back.
                let ended = go_on(plan, &mut failed, None);
                assert!(ended.is_none_or(|ended| ended.is_ok()), "{case}");
                go_on(plan, &mut failed, Some(Way::Undo));
                is_as_before(&failed, &case);
                let mut cut = begin();
                cut.cut_power_at(event);
                act(&mut cut);
                let mut coins = point;
                cut.boot(&mut || {
                    coins = coins.wrapping_mul(5).wrapping_add(3) % 257;
                    coins % 2 == 0
                });
                for first in [None, Some(Way::Undo)] {
                    let mut machine = cut.clone();
                    let ended = go_on(plan, &mut machine, first);
                    assert!(ended.is_none_or(|ended| ended.is_ok()), "{case}, {first:?}");
                    go_on(plan, &mut machine, Some(Way::Undo));
                    is_as_before(&machine, &format!("{case}, power, {first:?}"));
                }
            }
        }
    }
    assert!(cases > 1000, "{cases}");
}
