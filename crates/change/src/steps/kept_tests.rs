//! Files that steps replace: what is kept of them, and over what it is put back.

use crate::steps::FillBoot;
use rubus_host::simulated::rehearsal::SimulatedMachine;

use super::*;

const PATH: &str = "/boot/firmware/initramfs8";
const KEPT: &str = "/boot/firmware/initramfs8.before-rubus";
const KEPT_TOO: &str = "/boot/firmware/initramfs8.before-rubus-2";
const FIRST: &str = "0001-desktop";
const SECOND: &str = "0002-network-root";

fn machine() -> SimulatedMachine {
    SimulatedMachine::new()
        .file(PATH, "old", 0o644)
        .directory("/var/lib/rubus/changes/0001-desktop")
        .directory("/var/lib/rubus/changes/0002-network-root")
}

fn with_site<T>(change: &str, is_begun_again: bool, act: impl FnOnce(&mut Site<'_>) -> T) -> T {
    act(&mut Site {
        change,
        directory: &Path::new("/var/lib/rubus/changes").join(change),
        steps: &crate::fixture::plans::small_plan().steps,
        before_trial: None,
        step: 9,
        is_begun_again,
        consents: &[],
        top: "/".into(),
        tell: &mut |_| {},
    })
}

fn replace_in(
    change: &str,
    kept: &str,
    bytes: &str,
    is_begun_again: bool,
    machine: &mut SimulatedMachine,
) -> Result<(), StepError> {
    with_site(change, is_begun_again, |site| {
        let kept = Some(Path::new(kept));
        replace_keeping(Path::new(PATH), kept, bytes.as_bytes(), site, machine)
    })
}

fn back_in(change: &str, kept: &str, machine: &mut SimulatedMachine) -> Result<Receipt, StepError> {
    with_site(change, false, |site| put_back(Path::new(PATH), Some(Path::new(kept)), site, machine))
}

fn replace(machine: &mut SimulatedMachine) -> Result<(), StepError> {
    replace_in(FIRST, KEPT, "new", false, machine)
}

fn back(machine: &mut SimulatedMachine) -> Result<Receipt, StepError> {
    back_in(FIRST, KEPT, machine)
}

fn text(machine: &SimulatedMachine, path: &str) -> Option<String> {
    let contents = machine.everything().remove(Path::new(path))?;
    contents.map(|(text, _)| text)
}

/// What an update of the kernel does.
fn remade(machine: &mut SimulatedMachine) {
    machine.meddle(PATH, "made by an update");
}

fn events(act: impl Fn(&mut SimulatedMachine), machine: &SimulatedMachine) -> usize {
    let mut machine = machine.clone();
    let before = machine.events();
    act(&mut machine);
    machine.events() - before
}

#[test]
fn whenever_the_power_goes_there_is_the_old_or_the_new_one() {
    let mut changed = machine();
    replace(&mut changed).unwrap();
    assert_eq!(text(&changed, PATH).as_deref(), Some("new"));
    assert_eq!(text(&changed, KEPT).as_deref(), Some("old"));
    let forwards = |machine: &mut SimulatedMachine| drop(replace(machine));
    let backwards = |machine: &mut SimulatedMachine| drop(back(machine));
    type Way<'a> = (&'a SimulatedMachine, &'a dyn Fn(&mut SimulatedMachine));
    let ways: [Way<'_>; 2] = [(&machine(), &forwards), (&changed, &backwards)];
    let mut cases = 0;
    for (start, act) in ways {
        for event in 0..events(act, start) {
            for coins in 0..64_u32 {
                cases += 1;
                let mut cut = start.clone();
                // A number from now.
                cut.cut_power_at(event);
                act(&mut cut);
                let mut tossed = 0;
                cut.boot(&mut || {
                    tossed += 1;
                    coins >> (tossed % 6) & 1 == 1
                });
                let live = text(&cut, PATH);
                assert!(
                    matches!(live.as_deref(), Some("old" | "new")),
                    "{event} {coins:b}: {live:?}"
                );
                // Whichever way one goes on, it ends there.
                let mut on = cut.clone();
                replace_in(FIRST, KEPT, "newer", true, &mut on).unwrap();
                assert_eq!(text(&on, PATH).as_deref(), Some("newer"), "{event} {coins:b}");
                assert_eq!(text(&on, KEPT).as_deref(), Some("old"), "{event} {coins:b}");
                back(&mut on).unwrap();
                assert_eq!(text(&on, PATH).as_deref(), Some("old"), "{event} {coins:b}");
                back(&mut cut).unwrap();
                assert_eq!(text(&cut, PATH).as_deref(), Some("old"), "{event} {coins:b}");
                assert_eq!(text(&cut, KEPT), None, "{event} {coins:b}");
            }
        }
    }
    assert!(cases > 500, "{cases}");
}

#[test]
fn two_changes_get_back_what_each_has_replaced() {
    let mut machine = machine();
    replace(&mut machine).unwrap();
    // The same name again is the first one's: nothing is touched.
    let before = machine.everything();
    let refused = replace_in(SECOND, KEPT, "newest", false, &mut machine);
    assert!(matches!(refused, Err(StepError::Changed { .. })), "{refused:?}");
    assert_eq!(machine.everything(), before);
    replace_in(SECOND, KEPT_TOO, "newest", false, &mut machine).unwrap();
    back_in(SECOND, KEPT_TOO, &mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("new"));
    assert_eq!(text(&machine, KEPT).as_deref(), Some("old"));
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("old"));
}

#[test]
fn a_file_that_was_made_since_is_not_overwritten_and_both_ways_out_work() {
    let mut machine = machine();
    replace(&mut machine).unwrap();
    remade(&mut machine);
    let before = machine.everything();
    let why = back(&mut machine).unwrap_err().to_string();
    assert!(why.contains("`sudo rm /boot/firmware/initramfs8.before-rubus`"), "{why}");
    assert_eq!(machine.everything(), before);
    let obstacle = |machine: &SimulatedMachine| {
        let directory = Path::new("/var/lib/rubus/changes/0001-desktop");
        obstacle(Path::new(PATH), Some(Path::new(KEPT)), directory, 9, machine)
    };
    assert!(obstacle(&machine).is_some());
    let mut kept = machine.clone();
    kept.remove(Path::new(KEPT)).unwrap();
    assert_eq!(obstacle(&kept), None);
    let receipt = back(&mut kept).unwrap();
    assert!(receipt.live.contains("something else"), "{}", receipt.live);
    assert_eq!(text(&kept, PATH).as_deref(), Some("made by an update"));
    machine.rename(Path::new(KEPT), Path::new(PATH)).unwrap();
    assert_eq!(obstacle(&machine), None);
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("old"));
}

#[test]
fn an_original_that_is_gone_is_not_said_to_be_back() {
    let mut machine = machine();
    replace(&mut machine).unwrap();
    machine.remove(Path::new(KEPT)).unwrap();
    let why = back(&mut machine).unwrap_err().to_string();
    assert!(why.contains("update-initramfs"), "{why}");
    assert_eq!(text(&machine, PATH).as_deref(), Some("new"));
    remade(&mut machine);
    back(&mut machine).unwrap();
}

#[test]
fn a_change_of_a_version_without_notes_is_undone_and_resumed() {
    let older = || machine().file(KEPT, "old", 0o644).file(PATH, "new", 0o644);
    let mut undone = older();
    back(&mut undone).unwrap();
    assert_eq!(text(&undone, PATH).as_deref(), Some("old"));
    assert_eq!(text(&undone, KEPT), None);
    let mut on = older();
    replace_in(FIRST, KEPT, "newer", true, &mut on).unwrap();
    assert_eq!(text(&on, KEPT).as_deref(), Some("old"));
    back(&mut on).unwrap();
    assert_eq!(text(&on, PATH).as_deref(), Some("old"));
}

#[test]
fn a_full_boot_partition_does_not_stop_going_back() {
    let mut machine = machine();
    replace(&mut machine).unwrap();
    machine = machine.with_available(2);
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("old"));
    assert_eq!(text(&machine, KEPT), None);
}

#[test]
fn where_there_was_no_file_only_ours_is_removed() {
    let start = || {
        SimulatedMachine::new()
            .directory("/boot/firmware")
            .directory("/var/lib/rubus/changes/0001-desktop")
    };
    let replace = |machine: &mut SimulatedMachine| {
        with_site(FIRST, false, |site| {
            replace_keeping(Path::new(PATH), None, b"new", site, machine)
        })
    };
    let back = |machine: &mut SimulatedMachine| {
        with_site(FIRST, false, |site| put_back(Path::new(PATH), None, site, machine))
    };
    let mut machine = start();
    replace(&mut machine).unwrap();
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH), None);
    let mut machine = start();
    replace(&mut machine).unwrap();
    remade(&mut machine);
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("made by an update"));
}

#[test]
fn in_an_image_nothing_is_kept_and_on_a_machine_what_was_not_there_is_not_replaced() {
    let replace = |plan: &crate::plan::Plan, machine: &mut SimulatedMachine| {
        let site = &Site {
            change: FIRST,
            directory: Path::new("/var/lib/rubus/changes/0001-desktop"),
            steps: &plan.steps,
            before_trial: None,
            step: 9,
            is_begun_again: false,
            consents: &[],
            top: "/".into(),
            tell: &mut |_| {},
        };
        replace_keeping(Path::new(PATH), None, b"new", site, machine)
    };
    let mut plan = crate::fixture::plans::small_plan();
    let refused = replace(&plan, &mut machine());
    assert!(matches!(refused, Err(StepError::Changed { .. })), "{refused:?}");
    plan.steps[0].action = crate::plan::Action::FillBoot(FillBoot {
        place: crate::plan::volume::Place::Disk {
            disk: crate::plan::volume::DiskIdentity {
                path: "/dev/loop0".into(),
                size_bytes: 1 << 30,
                model: None,
                serial: None,
                wwn: None,
                diskseq: None,
                boot_id: None,
                contents: Vec::new(),
                confirmation: String::new(),
            },
        },
    });
    assert!(plan.is_of_an_image());
    let mut machine = machine();
    replace(&plan, &mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("new"));
}
