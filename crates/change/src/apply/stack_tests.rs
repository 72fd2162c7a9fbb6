//! Changes on top of changes, and files that something else has changed since.

use crate::fixture::plans::small_plan;
use crate::plan::journal::Receipt;
use crate::plan::{Plan, Step, TextFile};
use crate::steps::{BuildInitramfs, Format, KeepJournal, On, WriteFile};
use crate::volume::{FilesystemKind, NewFilesystem, Place, Volume};
use rubus_host::Hands;
use rubus_host::simulated::rehearsal::SimulatedMachine;

use super::super::{
    ASKED_FOR, ApplyContext, ChangeStore, Ending, Event, NoStepRunner, Site, StepError, StepRunner,
    go, turn,
};
use std::path::Path;

use super::*;

const STORE: &str = "/var/lib/rubus/changes";
const CMDLINE: &str = "/boot/firmware/cmdline.txt";
const OLD_LINE: &str = "root=PARTUUID=a-02 rootfstype=ext4 rootwait\n";
const NEW_LINE: &str = "root=PARTUUID=b-01 rootfstype=btrfs rootwait rootflags=subvol=@\n";

fn machine() -> SimulatedMachine {
    SimulatedMachine::new()
        .file("/etc/one.conf", "a", 0o644)
        .file("/etc/two.conf", "a", 0o644)
        .file(CMDLINE, OLD_LINE, 0o755)
        .directory(STORE)
}

fn writing(recipe: &str, path: &str, was: &str, becomes: &str) -> Plan {
    let mode = if path.starts_with("/boot") { 0o755 } else { 0o644 };
    let text = |text: &str| TextFile { text: text.into(), mode };
    Plan {
        recipe: recipe.into(),
        steps: vec![Step {
            id: "write".into(),
            why: String::new(),
            action: Action::WriteFile(WriteFile {
                path: path.into(),
                was: Some(text(was)),
                becomes: text(becomes),
            }),
        }],
        ..small_plan()
    }
}

fn with_context<T>(act: impl FnOnce(&mut ApplyContext<'_>) -> T) -> T {
    act(&mut ApplyContext {
        now: &|| "2026-11-21T01:02:03Z".to_string(),
        tell: &mut |_| {},
        step_runner: &mut NoStepRunner,
    })
}

fn apply(plan: Plan, machine: &mut SimulatedMachine) {
    let change = ChangeStore::at(STORE).begin(plan, Vec::new(), "now", machine);
    let ending = with_context(|context| go(&mut change.unwrap(), machine, context));
    assert_eq!(ending, Ok(Ending::Applied));
}

fn all(machine: &SimulatedMachine) -> Vec<Change> {
    ChangeStore::at(STORE).all(machine).unwrap()
}

fn undo(number: usize, machine: &mut SimulatedMachine) -> Result<Ending, String> {
    let mut change = all(machine).swap_remove(number);
    with_context(|context| {
        turn(&mut change, Way::Undo, ASKED_FOR, machine, context)?;
        go(&mut change, machine, context)
    })
    .map_err(|error| error.to_string())
}

fn on(number: usize, machine: &SimulatedMachine) -> Vec<String> {
    let all = all(machine);
    let lying = lying_on(&all[number], &all[number + 1..]);
    lying.iter().map(|change| change.name.clone()).collect()
}

fn in_the_way(machine: &SimulatedMachine) -> Vec<String> {
    let all = all(machine);
    let (last, earlier) = all.split_last().unwrap();
    obstacles(last, earlier, machine)
}

fn text(machine: &SimulatedMachine, path: &str) -> String {
    let contents = machine.everything().remove(Path::new(path));
    contents.flatten().map(|(text, _)| text).unwrap_or_default()
}

#[test]
fn of_three_changes_each_is_undone_or_names_the_order_that_works() {
    let three = || {
        let mut machine = machine();
        apply(writing("first", "/etc/one.conf", "a", "b"), &mut machine);
        apply(writing("other", "/etc/two.conf", "a", "b"), &mut machine);
        apply(writing("again", "/etc/one.conf", "b", "c"), &mut machine);
        machine
    };
    let names = ["0001-first", "0002-other", "0003-again"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let in_force =
        |machine: &SimulatedMachine| ChangeStore::at(STORE).in_force(machine).expect("readable");
    let mut machine = three();
    assert_eq!(in_force(&machine), ["first", "other", "again"]);
    assert_eq!(undo(2, &mut machine), Ok(Ending::Undone));
    assert_eq!(in_force(&machine), ["first", "other"]);
    for order in orders {
        let mut machine = three();
        for number in order {
            for above in on(number, &machine) {
                let above = names.iter().position(|name| *name == above).unwrap();
                assert_eq!(undo(above, &mut machine), Ok(Ending::Undone), "{order:?}");
            }
            if !all(&machine)[number].is_undone() {
                assert_eq!(undo(number, &mut machine), Ok(Ending::Undone), "{order:?}");
            }
        }
        assert_eq!(text(&machine, "/etc/one.conf"), "a", "{order:?}");
        assert_eq!(text(&machine, "/etc/two.conf"), "a", "{order:?}");
    }
    let machine = three();
    assert_eq!(on(0, &machine), ["0003-again"]);
    assert!(on(1, &machine).is_empty());
}

#[test]
fn what_lies_on_what_lies_on_a_change_comes_first() {
    let mut machine = machine();
    apply(writing("first", "/etc/one.conf", "a", "b"), &mut machine);
    apply(writing("second", "/etc/one.conf", "b", "c"), &mut machine);
    apply(writing("third", "/etc/one.conf", "c", "d"), &mut machine);
    assert_eq!(on(0, &machine), ["0003-third", "0002-second"]);
}

#[test]
fn everything_after_a_move_of_the_root_lies_on_it() {
    let mut machine = machine();
    let mut moved = writing("desktop", CMDLINE, OLD_LINE, NEW_LINE);
    apply(moved.clone(), &mut machine);
    apply(writing("other", "/etc/two.conf", "a", "b"), &mut machine);
    assert!(on(0, &machine).is_empty());
    let on = Volume {
        kind: FilesystemKind::Btrfs,
        uuid: "u".into(),
        mount_options: String::new(),
        title: "the new root".into(),
    };
    moved.steps[0].action = Action::KeepJournal(KeepJournal { on });
    let mut all = all(&machine);
    all[0].plan = moved;
    assert!(all[1].lies_on(&all[0]));
}

#[test]
fn a_move_that_changes_a_file_again_on_the_new_root_lies_on_the_change_that_made_it() {
    let mut machine = machine();
    apply(writing("zswap", "/etc/one.conf", "a", "b"), &mut machine);
    apply(writing("desktop", "/etc/two.conf", "a", "b"), &mut machine);
    let mut all = all(&machine);
    assert!(!all[1].lies_on(&all[0]));
    all[1].plan.steps[0].action = Action::On(On {
        volume: Volume {
            kind: FilesystemKind::Btrfs,
            uuid: "u".into(),
            mount_options: String::new(),
            title: "the new root".into(),
        },
        action: Box::new(all[0].plan.steps[0].action.clone()),
        is_undone: false,
    });
    assert!(all[1].lies_on(&all[0]));
}

#[test]
fn words_that_another_tool_added_to_the_command_line_do_not_stop_going_back() {
    let mut machine = machine();
    apply(writing("desktop", CMDLINE, OLD_LINE, NEW_LINE), &mut machine);
    machine.meddle(CMDLINE, &NEW_LINE.replace('\n', " quiet cma=64M\n"));
    assert!(in_the_way(&machine).is_empty());
    let start = machine.clone();
    assert_eq!(undo(0, &mut machine), Ok(Ending::Undone));
    let back = OLD_LINE.replace('\n', " quiet cma=64M\n");
    assert_eq!(text(&machine, CMDLINE), back);
    // Whenever the power goes.
    for event in 0..machine.events() - start.events() {
        let mut cut = start.clone();
        cut.cut_power_at(event);
        let _ = undo(0, &mut cut);
        cut.boot(&mut || event % 2 == 0);
        assert_eq!(undo(0, &mut cut), Ok(Ending::Undone), "{event}");
        assert_eq!(text(&cut, CMDLINE), back, "{event}");
    }
}

/// Debian's raspi-firmware rewrites the line with each update, from its settings and in an order of its own.
#[test]
fn a_command_line_that_was_rewritten_with_the_words_of_the_change_is_as_planned() {
    let mut machine = machine();
    apply(writing("desktop", CMDLINE, OLD_LINE, NEW_LINE), &mut machine);
    let different = |machine: &SimulatedMachine| {
        let changes = all(machine);
        super::super::differences(&changes[0], &[], machine.files())
    };
    assert_eq!(different(&machine), [""; 0]);
    let anew = " console=tty0 root=PARTUUID=b-01 rootfstype=btrfs rootflags=subvol=@ rw cma=64M rootwait \n";
    machine.meddle(CMDLINE, anew);
    assert_eq!(different(&machine), [""; 0]);
    // The old root again, another one, and half of the words.
    for line in [
        OLD_LINE,
        "root=PARTUUID=c-01 rootfstype=btrfs rootflags=subvol=@ rootwait\n",
        "root=PARTUUID=b-01 rootfstype=btrfs rootwait\n",
    ] {
        machine.meddle(CMDLINE, line);
        let found = different(&machine);
        assert_eq!(found, [format!("{CMDLINE} was changed")], "{line}");
    }
    machine.meddle(CMDLINE, anew);
    assert_eq!(in_the_way(&machine), [""; 0]);
    undo(0, &mut machine).unwrap();
    let words = text(&machine, CMDLINE);
    let words: Vec<&str> = words.split_whitespace().collect();
    assert_eq!(
        words,
        ["console=tty0", "root=PARTUUID=a-02", "rootfstype=ext4", "rw", "cma=64M", "rootwait"]
    );
}

#[test]
fn what_cannot_be_undone_is_known_before_anything_is_touched() {
    let mut machine = machine();
    apply(writing("desktop", CMDLINE, OLD_LINE, NEW_LINE), &mut machine);
    machine.meddle(CMDLINE, &NEW_LINE.replace("b-01", "c-01"));
    let found = in_the_way(&machine).join("; ");
    assert!(
        found.contains("it says root=PARTUUID=c-01; this change wrote root=PARTUUID=b-01"),
        "{found}"
    );
    let mut machine = self::machine();
    machine.meddle("/etc/two.conf", "a\nb\n");
    apply(writing("other", "/etc/two.conf", "a\nb\n", "a\nc\n"), &mut machine);
    assert!(in_the_way(&machine).is_empty());
    machine.meddle("/etc/two.conf", "a\nc\nmine\n");
    let found = in_the_way(&machine).join("; ");
    assert!(found.contains("new: 'mine'"), "{found}");
    // An attempt to undo it all the same stops with the same words.
    let why = undo(0, &mut machine).unwrap_err();
    assert!(why.contains("new: 'mine'"), "{why}");
    assert_eq!(text(&machine, "/etc/two.conf"), "a\nc\nmine\n");
}

#[test]
fn an_original_that_two_changes_of_an_older_version_share_is_not_put_back_for_the_wrong_one() {
    let mut machine = machine();
    apply(writing("desktop", "/etc/one.conf", "a", "b"), &mut machine);
    apply(writing("desktop", "/etc/two.conf", "a", "b"), &mut machine);
    let build = Action::BuildInitramfs(BuildInitramfs {
        root: Volume {
            kind: FilesystemKind::Btrfs,
            uuid: "u".into(),
            mount_options: String::new(),
            title: "the new root".into(),
        },
        release: "6.12".into(),
        path: "/boot/firmware/initramfs8".into(),
        kept: Some("/boot/firmware/initramfs8.before-rubus".into()),
        modules: Vec::new(),
        files: Vec::new(),
    });
    let mut all = all(&machine);
    for change in &mut all {
        change.plan.steps[0].action = build.clone();
    }
    let (last, earlier) = all.split_last().unwrap();
    let found = obstacles(last, earlier, &machine).join("; ");
    assert!(found.contains("is what 0001-desktop has kept"), "{found}");
    assert!(obstacles(&all[0], &[], &machine).is_empty());
}

/// What is said of a filesystem that is made; nothing else is asked of this machine.
fn made(action: &Action) -> Receipt {
    assert!(matches!(action, Action::Format(_)), "{action:?}");
    Receipt { planned: "made".into(), live: "made".into() }
}

/// Has one filesystem elsewhere, or none.
struct WithCopy(Option<&'static str>);

impl StepRunner for WithCopy {
    fn apply(
        &mut self,
        action: &Action,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(made(action))
    }

    fn undo(
        &mut self,
        action: &Action,
        _: &mut Site<'_>,
        _: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        Ok(made(action))
    }

    fn mount(&mut self, _: &Volume, _: &Site<'_>) -> Result<PathBuf, StepError> {
        let why =
            StepError::Work { tried: "mount it".into(), reason: "there is no such disk".into() };
        self.0.map(PathBuf::from).ok_or(why)
    }

    fn unmount_all(&mut self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn tell_others(&mut self, _: &Site<'_>, _: &mut dyn Hands) -> Result<(), StepError> {
        Ok(())
    }
}

#[test]
fn a_copy_of_the_boot_partition_starts_the_old_root_again_and_one_that_is_gone_is_told() {
    undone_elsewhere(writing_to(FilesystemKind::Vfat));
}

/// Debian's settings on the new root name the old one again; where its disk is broken, that is no reason to stop.
#[test]
fn a_new_root_of_this_plan_is_changed_back_and_one_that_is_gone_is_told() {
    let mut plan = writing_to(FilesystemKind::Btrfs);
    let disk = crate::fixture::long_plan::big_plan().disks_lost()[0].clone();
    let made = Action::Format(Format {
        place: Place::Disk { disk },
        filesystem: NewFilesystem {
            kind: FilesystemKind::Btrfs,
            uuid: "1234-5678".into(),
            label: String::new(),
            subvolumes: Vec::new(),
            mount_options: String::new(),
        },
    });
    let mut step = plan.steps[0].clone();
    (step.id, step.action) = ("make".into(), made);
    plan.steps.insert(0, step);
    undone_elsewhere(plan);
}

fn writing_to(kind: FilesystemKind) -> Plan {
    let volume = Volume {
        kind,
        uuid: "1234-5678".into(),
        mount_options: String::new(),
        title: "the other filesystem".into(),
    };
    let mut plan = writing("desktop", "/cmdline.txt", OLD_LINE, NEW_LINE);
    plan.steps[0].action =
        Action::On(On { volume, action: Box::new(plan.steps[0].action.clone()), is_undone: true });
    plan
}

fn undone_elsewhere(plan: Plan) {
    const COPY: &str = "/boot/firmware/copy";
    const COPIED: &str = "/boot/firmware/copy/cmdline.txt";
    for is_there in [true, false] {
        let mut machine = machine().file(COPIED, OLD_LINE, 0o755);
        let change = ChangeStore::at(STORE).begin(plan.clone(), Vec::new(), "now", &mut machine);
        let mut change = change.unwrap();
        let mut told = Vec::new();
        let mut with = |copy: Option<&'static str>, way: Way, machine: &mut SimulatedMachine| {
            let context = &mut ApplyContext {
                now: &|| "now".to_string(),
                tell: &mut |event| {
                    if let Event::Remark { words } = event {
                        told.push(words.to_string());
                    }
                },
                step_runner: &mut WithCopy(copy),
            };
            turn(&mut change, way, ASKED_FOR, machine, context).unwrap();
            go(&mut change, machine, context).unwrap()
        };
        assert_eq!(with(Some(COPY), Way::Apply, &mut machine), Ending::Applied);
        assert_eq!(text(&machine, COPIED), NEW_LINE);
        let copy = is_there.then_some(COPY);
        assert_eq!(with(copy, Way::Undo, &mut machine), Ending::Undone);
        let wanted = if is_there { OLD_LINE } else { NEW_LINE };
        assert_eq!(text(&machine, COPIED), wanted);
        assert_eq!(told.len(), usize::from(!is_there), "{told:?}");
    }
}
