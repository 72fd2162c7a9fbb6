//! The change engine on a made-up machine: done, undone, failed at every point, cut off from its power
//! at every point.

use std::path::PathBuf;

use crate::fixture::plans::small_plan;
use crate::plan::journal::{Next, Way};
use crate::plan::{Action, Plan, TextFile};
use crate::steps::WriteFile;
use rubus_host::Files;
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_stats::Rng;

use super::*;

const STORE: &str = "/var/lib/rubus/changes";

/// The machine for which the plan was made.
fn machine() -> SimulatedMachine {
    SimulatedMachine::new()
        .file("/etc/old.conf", "# old\nsize = 10\ncolour = red\n", 0o600)
        .file("/etc/gone.conf", "gone\n", 0o644)
        .directory(STORE)
        .knob("/sys/example/size", "10")
        .knob("/sys/example/enabled", "N")
}

fn store() -> ChangeStore {
    ChangeStore::at(STORE)
}

fn with_context<T>(act: impl FnOnce(&mut ApplyContext<'_>) -> T) -> T {
    let now = || "2026-11-21T01:02:03Z".to_string();
    act(&mut ApplyContext { now: &now, tell: &mut |_| {}, step_runner: &mut NoStepRunner })
}

fn apply_plan(machine: &mut SimulatedMachine) -> Result<Ending, String> {
    let change = store().begin(small_plan(), Vec::new(), "now", machine);
    let mut change = change.map_err(|error| error.to_string())?;
    with_context(|context| go(&mut change, machine, context)).map_err(|error| error.to_string())
}

fn go_on(machine: &mut SimulatedMachine, way: Option<Way>) -> Result<Option<Ending>, String> {
    let changes = store().all(machine).map_err(|error| error.to_string())?;
    let Some(mut change) = changes.into_iter().next_back() else {
        return Ok(None);
    };
    with_context(|context| {
        if let Some(way) = way {
            turn(&mut change, way, ASKED_FOR, machine, context)?;
        }
        go(&mut change, machine, context)
    })
    .map(Some)
    .map_err(|error: ChangeError| error.to_string())
}

/// Everything but the store.
fn outside(machine: &SimulatedMachine) -> Vec<(String, Option<(String, u32)>)> {
    let all = machine.everything().into_iter();
    all.map(|(path, contents)| (path.display().to_string(), contents))
        .filter(|(path, _)| !path.starts_with("/var"))
        .collect()
}

fn applied() -> SimulatedMachine {
    let mut machine = machine();
    assert_eq!(apply_plan(&mut machine), Ok(Ending::Applied));
    machine
}

#[test]
fn a_plan_is_applied_and_undone() {
    let mut machine = applied();
    let files = machine.everything();
    let text = |path: &str| files.get(std::path::Path::new(path)).cloned().flatten();
    let new = text("/etc/example.d/new.conf");
    assert_eq!(new, Some(("size = 20\n".into(), 0o644)));
    let changed = text("/etc/old.conf");
    assert_eq!(changed, Some(("# old\nsize = 20\ncolour = red\n".into(), 0o600)));
    assert_eq!(text("/etc/gone.conf"), None);
    assert_eq!(machine.value("/sys/example/size"), Some("20"));
    assert_eq!(machine.value("/sys/example/enabled"), Some("Y"));
    assert_eq!(go_on(&mut machine, Some(Way::Undo)), Ok(Some(Ending::Undone)));
    assert_eq!(outside(&machine), outside(&self::machine()));
    assert_eq!(machine.value("/sys/example/size"), Some("10"));
    // And once more, as users will.
    assert_eq!(go_on(&mut machine, Some(Way::Undo)), Ok(Some(Ending::Undone)));
    assert_eq!(outside(&machine), outside(&self::machine()));
}

#[test]
fn going_on_with_a_finished_change_touches_nothing() {
    let mut machine = applied();
    let events = machine.events();
    assert_eq!(go_on(&mut machine, None), Ok(Some(Ending::Applied)));
    assert_eq!(machine.events(), events);
}

#[test]
fn a_knob_that_ignores_its_value_turns_the_change_round() {
    let mut machine = machine().ignoring("/sys/example/enabled", "Y");
    let Ok(Ending::RolledBack { why }) = apply_plan(&mut machine) else {
        panic!("it was not rolled back");
    };
    assert!(why.contains("still says N"), "{why}");
    assert_eq!(outside(&machine), outside(&self::machine()));
    assert_eq!(machine.value("/sys/example/size"), Some("10"));
}

#[test]
fn a_value_that_does_not_hold_to_the_end_turns_the_change_round() {
    // Set once more at the end it holds, since nothing else is set after it.
    let mut machine = machine().forgetting("/sys/example/size", "20");
    assert_eq!(apply_plan(&mut machine), Ok(Ending::Applied));
    assert_eq!(machine.value("/sys/example/size"), Some("20"));
    // Here each takes the other's value away.
    let mut machine = self::machine()
        .forgetting("/sys/example/size", "20")
        .forgetting("/sys/example/enabled", "Y");
    let Ok(Ending::RolledBack { why }) = apply_plan(&mut machine) else {
        panic!("it was not rolled back");
    };
    assert!(why.contains("/sys/example/size is 10 instead of 20"), "{why}");
    assert_eq!(outside(&machine), outside(&self::machine()));
}

#[test]
fn what_something_else_changed_is_kept() {
    let mut machine = machine();
    machine.meddle("/etc/old.conf", "mine\n");
    let Ok(Ending::RolledBack { why }) = apply_plan(&mut machine) else {
        panic!("it was not rolled back");
    };
    assert!(why.contains("changed by something else"), "{why}");
    let mut machine = applied();
    machine.meddle("/etc/old.conf", "mine\n");
    let error = go_on(&mut machine, Some(Way::Undo)).unwrap_err();
    assert!(error.contains("neither as this change left it"), "{error}");
    let files = machine.everything();
    let kept = files[std::path::Path::new("/etc/old.conf")].clone();
    assert_eq!(kept.map(|(text, _)| text).as_deref(), Some("mine\n"));
    // The reason gone, undoing goes on.
    machine.meddle("/etc/old.conf", "# old\nsize = 20\ncolour = red\n");
    assert_eq!(go_on(&mut machine, None), Ok(Some(Ending::Undone)));
    assert_eq!(outside(&machine), outside(&self::machine()));
}

#[test]
fn a_filesystem_without_permission_bits_is_no_obstacle() {
    let path = std::path::PathBuf::from("/boot/firmware/cmdline.txt");
    let mut plan = small_plan();
    plan.steps.truncate(1);
    plan.steps[0].action = crate::plan::Action::WriteFile(WriteFile {
        path: path.clone(),
        was: Some(TextFile::public("root=old\n")),
        becomes: TextFile::public("root=new\n"),
    });
    let mut machine = machine().file("/boot/firmware/cmdline.txt", "root=old\n", 0o600);
    let mut change = store().begin(plan, Vec::new(), "now", &mut machine).unwrap();
    let ended = with_context(|context| go(&mut change, &mut machine, context));
    assert_eq!(ended, Ok(Ending::Applied));
    assert_eq!(differences(&change, &[], &machine), Vec::<String>::new());
    let ended = go_on(&mut machine, Some(Way::Undo));
    assert_eq!(ended, Ok(Some(Ending::Undone)));
    assert_eq!(machine.text(&path), Ok("root=old".to_string()));
}

const CARD: &str = "/boot/firmware";

/// A plan that changes one file of the card's boot partition and makes another.
fn card_plan() -> Plan {
    let mut plan = small_plan();
    plan.steps.truncate(2);
    let place = |name: &str| PathBuf::from(CARD).join(name);
    plan.steps[0].action = Action::WriteFile(WriteFile {
        path: place("tryboot.txt"),
        was: None,
        becomes: TextFile::public("cmdline=new.txt\n"),
    });
    plan.steps[1].action = Action::WriteFile(WriteFile {
        path: place("cmdline.txt"),
        was: Some(TextFile::public("root=old\n")),
        becomes: TextFile::public("root=new\n"),
    });
    plan
}

fn card() -> SimulatedMachine {
    machine().file(&format!("{CARD}/cmdline.txt"), "root=old\n", 0o755)
}

fn texts_of_card(machine: &SimulatedMachine) -> (Option<String>, Option<String>) {
    let text = |name: &str| machine.text(&PathBuf::from(CARD).join(name)).ok();
    (text("cmdline.txt"), text("tryboot.txt"))
}

#[test]
fn a_power_cut_leaves_the_boot_file_of_a_card_whole_and_the_change_goes_on() {
    let begin =
        |machine: &mut SimulatedMachine| store().begin(card_plan(), Vec::new(), "now", machine);
    let mut machine = card();
    let mut change = begin(&mut machine).unwrap();
    let before = machine.events();
    with_context(|context| go(&mut change, &mut machine, context)).unwrap();
    let (applied, events) = (machine.clone(), machine.events() - before);
    let (mut emptied, mut whole) = (0, 0);
    for way in [Way::Apply, Way::Undo] {
        for (event, seed) in (0..events).flat_map(|event| (0..6).map(move |seed| (event, seed))) {
            let case = format!("{way:?}, event {event}, seed {seed}");
            let mut random = Rng::stream(seed, event as u64);
            let mut machine = match way {
                Way::Apply => card(),
                Way::Undo => applied.clone(),
            };
            let begun = (way == Way::Apply).then(|| begin(&mut machine).unwrap());
            machine.cut_power_at(event);
            let _ = match begun {
                Some(mut change) => {
                    with_context(|context| go(&mut change, &mut machine, context)).is_ok()
                }
                None => go_on(&mut machine, Some(Way::Undo)).is_ok(),
            };
            machine.boot(&mut || random.next_u64() % 2 == 0);
            let (start, new) = texts_of_card(&machine);
            let start = start.unwrap_or_default();
            assert!(start == "root=old" || start == "root=new", "{case}: {start}");
            emptied += usize::from(new.as_deref() == Some(""));
            whole += usize::from(new.as_deref() == Some("cmdline=new.txt"));
            let wish = [None, Some(Way::Apply), Some(Way::Undo)][seed as usize % 3];
            let ended = go_on(&mut machine, wish).unwrap_or_else(|error| panic!("{case}: {error}"));
            let expected = match ended {
                Some(Ending::Applied) => texts_of_card(&applied),
                _ => texts_of_card(&card()),
            };
            assert_eq!(texts_of_card(&machine), expected, "{case}");
            let names = machine.list(std::path::Path::new(CARD)).unwrap();
            assert!(!names.iter().any(|name| name.starts_with('.')), "{case}");
        }
    }
    assert!(emptied > 0 && whole > 0, "{emptied} and {whole}");
}

#[test]
fn a_leftover_on_the_clusters_of_a_boot_file_is_not_removed() {
    let mut machine = card();
    let change = store().begin(card_plan(), Vec::new(), "now", &mut machine);
    let mut change = change.unwrap();
    with_context(|context| go(&mut change, &mut machine, context)).unwrap();
    let left = format!("{CARD}/{}", change.temporary(1));
    let mut machine = machine.cross_linked(&left, &format!("{CARD}/cmdline.txt"));
    let error = go_on(&mut machine, Some(Way::Undo)).unwrap_err();
    for words in ["cmdline.txt", "fsck.vfat -a /dev/mmcblk0p1", "rubus resume"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(texts_of_card(&machine).0.as_deref(), Some("root=new"));
    // What fsck.vfat makes of it: one of the two is empty, in the worst case the file that counts.
    let emptied = |name: &str| {
        let mut machine = card().file(&left, "root=new\n", 0o755);
        machine = machine.file(&format!("{CARD}/cmdline.txt"), "root=new\n", 0o755);
        machine.meddle(name, "");
        let change = store().begin(card_plan(), Vec::new(), "now", &mut machine);
        assert_eq!(change.unwrap().name, "0001-example");
        go_on(&mut machine, None).map(|_| texts_of_card(&machine).0)
    };
    for name in [left.clone(), format!("{CARD}/cmdline.txt")] {
        assert_eq!(emptied(&name), Ok(Some("root=new".to_string())), "{name}");
    }
}

/// How many changing operations an application and an undoing have.
fn events_of_all() -> (usize, usize) {
    let mut machine = machine();
    apply_plan(&mut machine).unwrap();
    let forwards = machine.events();
    go_on(&mut machine, Some(Way::Undo)).unwrap();
    (forwards, machine.events() - forwards)
}

#[test]
fn an_error_at_any_point_leaves_the_old_state_or_a_change_that_can_go_on() {
    let (forwards, _) = events_of_all();
    assert!(forwards > 40, "{forwards}");
    for event in 0..forwards {
        let mut machine = machine();
        machine.fail_at(event);
        let _ = apply_plan(&mut machine);
        let ended = go_on(&mut machine, None);
        let state = outside(&machine);
        match ended {
            Ok(None) | Ok(Some(Ending::RolledBack { .. } | Ending::Undone)) => {
                assert_eq!(state, outside(&self::machine()), "event {event}");
            }
            Ok(Some(Ending::Applied)) => assert_eq!(state, outside(&applied()), "event {event}"),
            Ok(Some(Ending::OnTrial)) => panic!("event {event}: the plan has no trial"),
            Err(error) => panic!("event {event}: {error}"),
        }
    }
}

/// The boot-relevant file is one of its two texts at every moment, never torn or missing.
fn is_old_or_new(machine: &SimulatedMachine) -> bool {
    let (old, new) = (self::machine().everything(), applied().everything());
    let path = std::path::Path::new("/etc/old.conf");
    let now = machine.everything().remove(path);
    now == old.get(path).cloned() || now == new.get(path).cloned()
}

#[test]
fn a_power_cut_at_any_point_is_survived_whichever_way_one_goes_on() {
    let (forwards, backwards) = events_of_all();
    let mut cases = 0;
    for (way, events) in [(Way::Apply, forwards), (Way::Undo, backwards)] {
        for event in 0..events {
            for seed in 0..24 {
                cases += 1;
                let wish = [None, Some(Way::Apply), Some(Way::Undo)][seed as usize % 3];
                cut_and_go_on(way, event, seed, wish);
            }
        }
    }
    assert!(cases > 1500, "{cases}");
}

fn cut_and_go_on(way: Way, event: usize, seed: u64, wish: Option<Way>) {
    let case = format!("{way:?}, event {event}, seed {seed}, then {wish:?}");
    let mut random = Rng::stream(seed, event as u64);
    let mut coin = || random.next_u64() % 2 == 0;
    let mut machine = match way {
        Way::Apply => machine(),
        Way::Undo => applied(),
    };
    machine.cut_power_at(event);
    let _ = match way {
        Way::Apply => apply_plan(&mut machine).map(Some),
        Way::Undo => go_on(&mut machine, Some(Way::Undo)),
    };
    assert!(machine.is_dead(), "{case}");
    machine.boot(&mut coin);
    assert!(is_old_or_new(&machine), "{case}");
    // The power goes again while going on, then nothing disturbs any more.
    machine.cut_power_at((seed as usize * 7) % 40);
    let _ = go_on(&mut machine, wish);
    machine.boot(&mut coin);
    assert!(is_old_or_new(&machine), "{case}");
    // A finished change sets nothing again: after a boot that is what its files are for.
    let size = |machine: &SimulatedMachine| machine.value("/sys/example/size").map(str::to_string);
    let is_over = |change: &Change| {
        wish.is_none_or(|way| way == change.state.way) && change.state.is_finished
    };
    let was_over = store().all(&machine).unwrap().iter().any(is_over);
    let ended = go_on(&mut machine, wish).unwrap_or_else(|error| panic!("{case}: {error}"));
    let state = outside(&machine);
    match ended {
        None => assert_eq!(state, outside(&self::machine()), "{case}"),
        Some(Ending::Applied) => {
            assert_eq!(state, outside(&applied()), "{case}");
            assert!(was_over || size(&machine).as_deref() == Some("20"), "{case}");
            assert_ne!(wish, Some(Way::Undo), "{case}");
        }
        Some(Ending::OnTrial) => panic!("{case}: the plan has no trial"),
        Some(Ending::Undone | Ending::RolledBack { .. }) => {
            assert_eq!(state, outside(&self::machine()), "{case}");
            assert_eq!(size(&machine).as_deref(), Some("10"), "{case}");
            assert_ne!(wish, Some(Way::Apply), "{case}");
        }
    }
    let changes = store().all(&machine).unwrap();
    assert!(changes.iter().all(|change| change.state.next() == Next::Nothing));
}

#[test]
fn a_change_that_is_there_after_a_cut_knows_which_disks_were_given_away() {
    let given = vec![GivenAway {
        disk: "/dev/sda".into(),
        words: "S123".into(),
        ends: Some("5e1f".into()),
        boot: Some("one".into()),
    }];
    let (mut none, mut whole) = (0, 0);
    for event in 0.. {
        let mut machine = machine();
        machine.cut_power_at(event);
        let begun = store().begin(small_plan(), given.clone(), "now", &mut machine);
        let is_through = !machine.is_dead();
        machine.boot(&mut || event % 2 == 0);
        match &store().all(&machine).unwrap()[..] {
            [] => none += 1,
            [change] => {
                whole += 1;
                assert_eq!(change.consents(), given, "event {event}");
            }
            several => panic!("{} changes", several.len()),
        }
        if is_through {
            assert_eq!(begun.unwrap().consents(), given);
            break;
        }
    }
    assert!(none > 2 && whole > 1, "{none} without, {whole} with");
}

#[test]
fn the_journal_is_durable_before_a_step_touches_anything() {
    let machine = applied();
    let log = &machine.log;
    let at = |text: &str| log.iter().position(|line| line == text);
    let first = at("mkdir /etc/example.d").expect("the first step");
    assert!(log[..first].iter().any(|line| line.ends_with("/journal")));
    let touched = log.iter().enumerate().filter(|(_, line)| line.starts_with("set "));
    for (i, _) in touched {
        assert!(log[i - 1].starts_with("append "), "{}", log[i - 1]);
    }
}

#[test]
fn what_is_damaged_in_the_store_is_named_with_what_to_do() {
    let cases = [
        ("journal", "{\"way\n{}\n", "cannot read the journal of the change 0001-"),
        ("plan.json", "{\"way", "cannot read the plan of the change 0001-"),
    ];
    for (file, text, begins) in cases {
        let mut machine = applied();
        let name = store().all(&machine).expect("changes").remove(0).name;
        let path = PathBuf::from(format!("{STORE}/{name}/{file}"));
        machine.remove(&path).expect("removed");
        machine.write_new(&path, text.as_bytes(), 0o644, None).expect("written");
        let error = store().all(&machine).expect_err("it is damaged").to_string();
        assert!(error.starts_with(begins), "{error}");
        let (_, remedy) = error.split_once('\n').expect("a second line");
        assert!(remedy.starts_with(&format!("Put a whole copy of {}", path.display())), "{error}");
    }
}
