//! Which journal is found on the other root, and when it may be used.

use crate::fixture::{long_plan::big_plan, plans::small_plan};
use crate::plan::journal::Way;
use crate::plan::{Step, TextFile};
use crate::steps::WriteFile;
use rubus_host::simulated::fake::FakeFiles;
use rubus_host::simulated::rehearsal::SimulatedMachine;

use super::*;

const CHANGES: &str = "/var/lib/rubus/changes";
const CARD: &str = "/run/card";
const OLD: &str = "console=tty1 root=PARTUUID=a-02 rootfstype=ext4 rootwait\n";
const NEW: &str = "root=PARTUUID=b-01 rootfstype=btrfs rootflags=noatime,subvol=@\n";
const KEPT_PATH: &str = "/boot/firmware/cmdline.txt.before-rubus";
const HERE: &str = "11111111-2222-3333-4444-555555555555";

fn boot_files() -> FakeFiles {
    FakeFiles::new().file("/boot/firmware/cmdline.txt", NEW).file("/boot/firmware/config.txt", "")
}

fn traces() -> Traces {
    lost_journal(&[], &boot_files().file(KEPT_PATH, OLD)).unwrap()
}

/// A move that has kept a command line.
fn moving(kept: &str) -> Plan {
    let mut plan = big_plan();
    plan.recipe = "desktop".into();
    plan.steps.push(Step {
        id: "keep".into(),
        why: "The way back.".into(),
        action: Action::WriteFile(WriteFile {
            path: KEPT_PATH.into(),
            was: None,
            becomes: TextFile::public(kept),
        }),
    });
    plan
}

/// A card that is mounted at [`CARD`] and knows a change, which moved the root to `uuid`.
fn card(plan: Plan, uuid: &str) -> SimulatedMachine {
    let mut machine = SimulatedMachine::new().directory(&format!("{CARD}{CHANGES}"));
    let store = ChangeStore::at(format!("{CARD}{CHANGES}"));
    let change = store.begin(plan, Vec::new(), "now", &mut machine).unwrap();
    let root = Volume {
        kind: FilesystemKind::Btrfs,
        uuid: uuid.into(),
        mount_options: "subvol=@".into(),
        title: "the new root".into(),
    };
    let roots = serde_json::to_string(&[root]).unwrap();
    machine.file(&format!("{}/roots.json", change.directory().display()), &roots, 0o644)
}

fn found(machine: &SimulatedMachine) -> (Vec<String>, String) {
    let (found, why_not) =
        known_there(Path::new(CARD), Path::new(CHANGES), HERE, &traces(), machine);
    let names = found.into_iter().map(|change| change.name).collect();
    (names, why_not.join("; "))
}

/// `usb-quirk` keeps the command line as well, and moves nothing.
#[test]
fn a_kept_command_line_with_the_same_root_is_no_trace_of_a_move() {
    let quirk = format!("{} usb-storage.quirks=152d:0578:u\n", OLD.trim_end());
    let files =
        |kept: &str| boot_files().file("/boot/firmware/cmdline.txt", &quirk).file(KEPT_PATH, kept);
    assert_eq!(lost_journal(&[], &files(OLD)), None);
    assert!(lost_journal(&[], &files(NEW)).is_some());
    // A root over the network is another one, too.
    let network = files("root=/dev/nbd0 rootwait\n");
    assert!(lost_journal(&[], &network).is_some());
}

#[test]
fn a_kept_command_line_without_a_change_is_a_trace_and_names_the_old_root_first() {
    assert_eq!(lost_journal(&[], &boot_files()), None);
    let traces = traces();
    assert_eq!(traces.kept, Path::new(KEPT_PATH));
    let named: Vec<(String, Option<&str>)> = traces
        .roots
        .iter()
        .map(|(name, subvolume)| (name.to_string(), subvolume.as_deref()))
        .collect();
    assert_eq!(
        named,
        [("PARTUUID=a-02".to_string(), None), ("PARTUUID=b-01".to_string(), Some("subvol=@"))]
    );
    // Of several moves the last one is looked for.
    let twice = boot_files().file(KEPT_PATH, OLD).file(format!("{KEPT_PATH}-2"), NEW);
    let last = lost_journal(&[], &twice).unwrap();
    assert_eq!(last.kept, Path::new(&format!("{KEPT_PATH}-2")));
}

#[test]
fn a_change_that_moves_the_root_and_is_known_is_not_lost() {
    let files = boot_files().file(KEPT_PATH, OLD);
    let mut machine = SimulatedMachine::new().directory(CHANGES);
    let begin = |plan, machine: &mut SimulatedMachine| {
        ChangeStore::at(CHANGES).begin(plan, Vec::new(), "now", machine).unwrap()
    };
    let other = begin(small_plan(), &mut machine);
    assert!(lost_journal(std::slice::from_ref(&other), &files).is_some());
    let mut moved = begin(moving(OLD), &mut machine);
    assert_eq!(lost_journal(&[other, moved.clone()], &files), None);
    moved.state.is_finished = true;
    moved.state.way = Way::Undo;
    assert!(lost_journal(&[moved], &files).is_some());
}

#[test]
fn only_the_change_that_made_this_system_is_taken() {
    assert_eq!(found(&card(moving(OLD), HERE)), (vec!["0001-desktop".into()], String::new()));
    let none = |machine: &SimulatedMachine, why: &str| {
        let (names, why_not) = found(machine);
        assert!(names.is_empty() && why_not.contains(why), "{names:?} {why_not}");
    };
    none(&card(moving(OLD), "another"), "did not move the root that runs");
    none(&card(moving(NEW), HERE), "kept another command line");
    none(&card(big_plan(), HERE), "did not write /boot/firmware/cmdline.txt.before-rubus");
    none(&card(small_plan(), HERE), "no change there moved a root");
    none(&SimulatedMachine::new().directory(CARD), "there is no journal in");
}

#[test]
fn what_is_taken_over_can_be_opened_here_like_there() {
    let mut machine = card(moving(OLD), HERE);
    let there = ChangeStore::at(format!("{CARD}{CHANGES}")).all(&machine).unwrap();
    take_over(&there[0], &Path::new(CHANGES).join("0001-desktop"), &mut machine).unwrap();
    let here = ChangeStore::at(CHANGES).all(&machine).unwrap();
    assert_eq!(here.len(), 1);
    assert_eq!(here[0].records, there[0].records);
    assert_eq!(here[0].plan, there[0].plan);
    assert_eq!(roots_of(here[0].directory(), &machine).unwrap()[0].uuid, HERE);
}

#[test]
fn a_root_that_is_mounted_whole_already_is_read_there() {
    let text = "30 1 179:2 / /media/card rw - ext4 /dev/mmcblk0p2 rw\n\
                31 1 179:2 /home /home rw - ext4 /dev/mmcblk0p2 rw\n\
                32 1 0:40 /@ /mnt/old ro - btrfs /dev/sda2 rw,subvol=/@\n";
    let (lines, _) = mountinfo::parse(text);
    let node_of = |line: &MountLine| PathBuf::from(&line.source);
    let at = |node: &str, subvolume: Option<&str>| {
        mounted_at(Path::new(node), subvolume, &lines, &node_of)
    };
    assert_eq!(at("/dev/mmcblk0p2", None), Some("/media/card".into()));
    assert_eq!(at("/dev/sda2", Some("subvol=@")), Some("/mnt/old".into()));
    assert_eq!(at("/dev/sda2", None), None);
    assert_eq!(at("/dev/sdb2", None), None);
}

#[test]
fn a_root_that_is_not_plugged_in_or_twice_there_is_not_read() {
    let volume = |path: &str| NamedVolume {
        path: path.into(),
        partuuid: Some("a-02".into()),
        uuid: Some("u".into()),
        filesystem: Some("ext4".into()),
        ..NamedVolume::default()
    };
    let name = Name::parse("PARTUUID=a-02");
    let read = |volumes: &[NamedVolume]| to_read(&name, None, volumes);
    let (root, node) = read(&[volume("/dev/mmcblk0p2")]).unwrap();
    assert_eq!((root.mount_options.as_str(), node), ("ro", "/dev/mmcblk0p2".into()));
    assert!(read(&[]).unwrap_err().contains("plug it in"));
    let twice = [volume("/dev/sda2"), volume("/dev/sdb2")];
    assert!(read(&twice).unwrap_err().contains("unplug the copy"));
}
