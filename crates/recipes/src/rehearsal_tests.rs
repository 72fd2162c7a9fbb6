//! Journals that end early, over the plans of every recipe on captured boards: wherever the journal ends and however far the
//! machine is, going back leaves it as it was, or says what it left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rubus_change::apply::rehearsal::{
    STORE, applied_to, everything, journal_of, machine, store, undo, with_context,
};
use rubus_change::apply::{ASKED_FOR, Ending, go, left, turn};
use rubus_change::plan::journal::Way;
use rubus_change::plan::{Action, Plan};
use rubus_host::Files;
use rubus_host::capture::Captured;
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_machine::probe::survey;
use rubus_vocabulary::machine::Origin;

use super::testing::further_plans;
use super::{ALL, Facts, Wishes, by_name, sight, surveyed_disk};

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
            let recipe = by_name(recipe).expect("a recipe");
            let look_at = (recipe.look_at)(&board, &wishes);
            let disk = |path: &PathBuf| (path.clone(), surveyed_disk(&board, path));
            let facts = Facts {
                seen: sight::look(&files, &look_at.paths),
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

/// Kinds of steps that no plan here has, with what tries them instead.
const TRIED_ELSEWHERE: [(&str, &str); 1] = [(
    "FillBoot",
    "of an image alone, which is left as it is or removed: `desktop/tests/image.rs`",
)];

#[test]
fn every_kind_of_step_is_rehearsed() {
    let mut seen = BTreeSet::new();
    for (_, plan) in &plans() {
        for step in &plan.steps {
            seen.insert(step.action.kind());
            if let Action::On(on) = &step.action {
                seen.insert(on.action.kind());
            }
        }
    }
    let elsewhere = TRIED_ELSEWHERE.iter().map(|(kind, _)| *kind);
    let all: BTreeSet<&str> = Action::KINDS.iter().copied().collect();
    assert_eq!(seen.into_iter().chain(elsewhere).collect::<BTreeSet<_>>(), all);
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
