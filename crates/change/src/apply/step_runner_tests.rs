//! The change engine with works that consist of several operations, on a made-up machine with a second disk: whenever
//! the power goes, and whichever way one goes on, it ends in the old state or the new one, and what starts is whole.

use crate::steps::{CopyTree, Format, KeepJournal, On, PartitionDisk, SwapOff, WriteFile};
use std::path::PathBuf;

use crate::fixture::plans::small_plan;
use crate::plan::journal::{Next, Receipt, Way};
use crate::plan::{Pass, Plan, Step, TextFile};
use crate::volume::{
    DiskIdentity, FilesystemKind, NewFilesystem, Partition, PartitionRole, PartitionTable, Place,
    TableKind, Volume,
};
use rubus_host::simulated::rehearsal::SimulatedMachine;
use rubus_stats::Rng;

use super::*;

const STORE: &str = "/var/lib/rubus/changes";
const DISK: &str = "/disk";
const ROOT: &str = "/disk/root";
const CMDLINE: &str = "/boot/cmdline.txt";
/// Identifier of a filesystem that was there before the plan.
const OLD: &str = "old";
const SOURCE: [&str; 3] = ["/source/a", "/source/b", "/source/c"];

/// Works on a disk that is a directory, made of the operations that can be cut at: each needs what the one before
/// left, and none trusts that it was not begun before.
struct FakeStepRunner;

impl FakeStepRunner {
    fn put(path: &str, text: &str, hands: &mut dyn Hands) -> Result<(), StepError> {
        let fresh = format!("{path}.new");
        if hands.files().exists(Path::new(&fresh)) {
            hands.remove(Path::new(&fresh))?;
        }
        hands.write_new(Path::new(&fresh), text.as_bytes(), 0o644, None)?;
        hands.rename(Path::new(&fresh), Path::new(path))?;
        hands.sync_directory(Path::new(path).parent().unwrap())?;
        Ok(())
    }

    fn clear(directory: &str, hands: &mut dyn Hands) -> Result<(), StepError> {
        for name in hands.files().list(Path::new(directory)).unwrap_or_default() {
            let path = Path::new(directory).join(&name);
            if name == "root" {
                Self::clear(ROOT, hands)?;
                hands.remove_directory(&path)?;
            } else {
                hands.remove(&path)?;
            }
        }
        hands.sync_directory(Path::new(directory))?;
        Ok(())
    }

    fn needs(path: &str, hands: &dyn Hands) -> Result<(), StepError> {
        if hands.files().exists(Path::new(path)) {
            Ok(())
        } else {
            Err(StepError::Work { tried: "go on".into(), reason: format!("{path} is not there") })
        }
    }
}

fn told(words: &str) -> Receipt {
    Receipt { planned: words.into(), live: words.into() }
}

impl StepRunner for FakeStepRunner {
    fn apply(
        &mut self,
        action: &Action,
        site: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        match action {
            Action::Partition(_) => {
                Self::clear(DISK, hands)?;
                Self::put("/disk/table", "table", hands)?;
            }
            Action::Format(_) => {
                Self::needs("/disk/table", hands)?;
                if hands.files().exists(Path::new(ROOT)) {
                    Self::clear(ROOT, hands)?;
                } else {
                    hands.make_directory(Path::new(ROOT))?;
                }
                hands.sync_directory(Path::new(DISK))?;
                Self::put("/disk/root/super", "super", hands)?;
            }
            Action::CopyTree(_) => {
                Self::needs("/disk/root/super", hands)?;
                for path in SOURCE {
                    let text = hands.files().text(Path::new(path)).unwrap();
                    let name = Path::new(path).file_name().unwrap().to_string_lossy();
                    Self::put(&format!("{ROOT}/{name}"), &text, hands)?;
                }
            }
            Action::SwapOff(_) => hands.set_knob(Path::new("/proc/made-up"), "off")?,
            Action::KeepJournal(_) => {
                Self::needs("/disk/root/c", hands)?;
                let journal = hands.files().text(&site.directory.join("journal")).unwrap();
                Self::put("/disk/root/journal", &journal, hands)?;
            }
            other => panic!("{other:?}"),
        }
        Ok(told("done"))
    }

    fn undo(
        &mut self,
        action: &Action,
        _: &mut Site<'_>,
        hands: &mut dyn Hands,
    ) -> Result<Receipt, StepError> {
        if let Action::SwapOff(_) = action {
            hands.set_knob(Path::new("/proc/made-up"), "on")?;
        }
        Ok(told("left"))
    }

    fn mount(&mut self, volume: &Volume, _: &Site<'_>) -> Result<PathBuf, StepError> {
        Ok(if volume.uuid == OLD { "/old" } else { ROOT }.into())
    }

    fn unmount_all(&mut self, _: &str) -> Result<(), StepError> {
        Ok(())
    }

    fn tell_others(&mut self, site: &Site<'_>, hands: &mut dyn Hands) -> Result<(), StepError> {
        if hands.files().exists(Path::new("/disk/root/journal")) {
            let journal = hands.files().text(&site.directory.join("journal")).unwrap();
            Self::put("/disk/root/journal", &journal, hands)?;
        }
        Ok(())
    }
}

fn plan() -> Plan {
    let disk = DiskIdentity {
        path: "/dev/sda".into(),
        size_bytes: 1 << 30,
        model: None,
        serial: Some("S1".into()),
        wwn: None,
        diskseq: None,
        boot_id: None,
        contents: Vec::new(),
        confirmation: "S1".into(),
    };
    let partition = Partition {
        number: 1,
        start_bytes: 1 << 20,
        size_bytes: 1 << 29,
        role: PartitionRole::Linux,
        partuuid: "00000001-01".into(),
    };
    let volume = Volume {
        kind: FilesystemKind::Btrfs,
        uuid: "u".into(),
        mount_options: String::new(),
        title: "the new root".into(),
    };
    let copy = |pass| {
        Action::CopyTree(CopyTree {
            from: "/source".into(),
            to: volume.clone(),
            without_contents_of: Vec::new(),
            without: Vec::new(),
            pass,
        })
    };
    let text = |text: &str| TextFile { text: text.into(), mode: 0o644 };
    let actions = [
        Action::Partition(PartitionDisk {
            disk: disk.clone(),
            table: PartitionTable {
                kind: TableKind::Mbr { disk_id: 1 },
                partitions: vec![partition],
            },
        }),
        Action::Format(Format {
            place: Place::Partition { disk, number: 1, partuuid: "00000001-01".into() },
            filesystem: NewFilesystem {
                kind: FilesystemKind::Btrfs,
                uuid: "u".into(),
                label: String::new(),
                subvolumes: Vec::new(),
                mount_options: String::new(),
            },
        }),
        copy(Pass::First),
        Action::On(On {
            volume: volume.clone(),
            action: Box::new(Action::WriteFile(WriteFile {
                path: "/fstab".into(),
                was: None,
                becomes: text("new fstab"),
            })),
            is_undone: false,
        }),
        copy(Pass::Again),
        Action::On(On {
            volume: Volume { uuid: OLD.into(), ..volume.clone() },
            action: Box::new(Action::WriteFile(WriteFile {
                path: "/modules".into(),
                was: Some(text("old modules")),
                becomes: text("new modules"),
            })),
            is_undone: true,
        }),
        Action::SwapOff(SwapOff { what: "/swap".into(), priority: None }),
        Action::KeepJournal(KeepJournal { on: volume }),
        Action::WriteFile(WriteFile {
            path: CMDLINE.into(),
            was: Some(text("root=old")),
            becomes: text("root=new"),
        }),
    ];
    let steps = actions.into_iter().enumerate().map(|(number, action)| Step {
        id: format!("step-{number}"),
        why: "An example needs it.".into(),
        action,
    });
    Plan { steps: steps.collect(), ..small_plan() }
}

fn machine() -> SimulatedMachine {
    SimulatedMachine::new()
        .directory(STORE)
        .directory(DISK)
        .file("/disk/foreign", "what was on it", 0o644)
        .file(CMDLINE, "root=old", 0o644)
        .file("/old/modules", "old modules", 0o644)
        .file(SOURCE[0], "a", 0o644)
        .file(SOURCE[1], "b", 0o644)
        .file(SOURCE[2], "c", 0o644)
        .knob("/proc/made-up", "on")
}

fn with_context<T>(act: impl FnOnce(&mut ApplyContext<'_>) -> T) -> T {
    let now = || "2026-11-21T01:02:03Z".to_string();
    act(&mut ApplyContext { now: &now, tell: &mut |_| {}, step_runner: &mut FakeStepRunner })
}

fn go_on(machine: &mut SimulatedMachine, way: Option<Way>) -> Result<Option<Ending>, String> {
    let changes = ChangeStore::at(STORE).all(machine).map_err(|error| error.to_string())?;
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

fn apply_plan(machine: &mut SimulatedMachine) -> Result<Option<Ending>, String> {
    let begun = ChangeStore::at(STORE).begin(plan(), Vec::new(), "now", machine);
    begun.map_err(|error| error.to_string())?;
    go_on(machine, None)
}

fn applied() -> SimulatedMachine {
    let mut machine = machine();
    assert_eq!(apply_plan(&mut machine), Ok(Some(Ending::Applied)));
    machine
}

#[test]
fn the_other_root_knows_of_an_undo_before_anything_is_undone() {
    let mut machine = applied();
    let mut changes = ChangeStore::at(STORE).all(&machine).unwrap();
    let mut change = changes.pop().unwrap();
    with_context(|context| turn(&mut change, Way::Undo, ASKED_FOR, &mut machine, context)).unwrap();
    assert_eq!(text(&machine, CMDLINE).as_deref(), Some("root=new"));
    let here = change.directory().join("journal");
    let here = text(&machine, here.to_str().unwrap()).unwrap();
    assert!(here.lines().last().unwrap().contains("turned"), "{here}");
    let there = text(&machine, "/disk/root/journal").unwrap();
    assert_eq!(there.trim_end(), here.trim_end());
}

fn text(machine: &SimulatedMachine, path: &str) -> Option<String> {
    let contents = machine.everything().remove(Path::new(path))?;
    contents.map(|(text, _)| text)
}

/// What starts now is whole, and the old system has lost nothing.
fn check(machine: &SimulatedMachine, case: &str) {
    let cmdline = text(machine, CMDLINE);
    for (path, contents) in SOURCE.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(text(machine, path).as_deref(), Some(contents), "{case}: {path}");
    }
    match cmdline.as_deref() {
        Some("root=old") => {}
        Some("root=new") => {
            for (name, contents) in
                [("super", "super"), ("a", "a"), ("b", "b"), ("c", "c"), ("fstab", "new fstab")]
            {
                let there = text(machine, &format!("{ROOT}/{name}"));
                assert_eq!(there.as_deref(), Some(contents), "{case}: {name}");
            }
            assert!(text(machine, "/disk/root/journal").is_some(), "{case}");
        }
        other => panic!("{case}: the boot file is {other:?}"),
    }
}

fn cut_and_go_on(start: &SimulatedMachine, way: Way, event: usize, seed: u64) {
    let wish = [None, Some(Way::Apply), Some(Way::Undo)][seed as usize % 3];
    let case = format!("{way:?}, event {event}, seed {seed}, then {wish:?}");
    let mut random = Rng::stream(seed, event as u64);
    let mut coin = || random.next_u64() % 2 == 0;
    let mut machine = start.clone();
    machine.cut_power_at(event);
    let _ = match way {
        Way::Apply => apply_plan(&mut machine),
        Way::Undo => go_on(&mut machine, Some(Way::Undo)),
    };
    assert!(machine.is_dead(), "{case}");
    machine.boot(&mut coin);
    check(&machine, &case);
    // Once more while going on.
    machine.cut_power_at((seed as usize * 11) % 60);
    let _ = go_on(&mut machine, wish);
    machine.boot(&mut coin);
    check(&machine, &case);
    let ended = go_on(&mut machine, wish).unwrap_or_else(|error| panic!("{case}: {error}"));
    check(&machine, &case);
    let cmdline = text(&machine, CMDLINE);
    // What was changed on a filesystem that was there before is taken back, wherever that is mounted.
    let modules = match ended {
        Some(Ending::Applied) => "new modules",
        _ => "old modules",
    };
    assert_eq!(text(&machine, "/old/modules").as_deref(), Some(modules), "{case}");
    match ended {
        None => {
            assert_eq!(text(&machine, "/disk/foreign").as_deref(), Some("what was on it"), "{case}")
        }
        Some(Ending::Applied) => assert_eq!(cmdline.as_deref(), Some("root=new"), "{case}"),
        Some(_) => assert_eq!(cmdline.as_deref(), Some("root=old"), "{case}"),
    }
    let changes = ChangeStore::at(STORE).all(&machine).unwrap();
    for change in &changes {
        assert_eq!(change.state.next(), Next::Nothing, "{case}");
    }
}

#[test]
fn the_power_may_go_within_any_work() {
    let mut cases = 0;
    for (way, start) in [(Way::Apply, machine()), (Way::Undo, applied())] {
        let mut whole = start.clone();
        let before = whole.events();
        match way {
            Way::Apply => drop(apply_plan(&mut whole)),
            Way::Undo => drop(go_on(&mut whole, Some(Way::Undo))),
        }
        let events = whole.events() - before;
        assert!(events > 20, "{way:?}: {events}");
        for event in 0..events {
            for seed in 0..9 {
                cases += 1;
                cut_and_go_on(&start, way, event, seed);
            }
        }
    }
    assert!(cases > 900, "{cases}");
}

#[test]
fn an_error_within_any_work_is_rolled_back() {
    let (start, mut whole) = (machine(), machine());
    apply_plan(&mut whole).unwrap();
    for event in 0..whole.events() {
        let mut machine = start.clone();
        machine.fail_at(event);
        let _ = apply_plan(&mut machine);
        check(&machine, &format!("event {event}"));
        let ended = go_on(&mut machine, None).unwrap_or_else(|error| panic!("{event}: {error}"));
        check(&machine, &format!("event {event}, gone on"));
        let is_new = text(&machine, CMDLINE).as_deref() == Some("root=new");
        assert_eq!(is_new, ended == Some(Ending::Applied), "event {event}");
    }
}
