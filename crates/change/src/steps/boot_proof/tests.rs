//! A made-up board: what is read from it is what is proven.

use crate::steps::{BuildInitramfs, InstallInitramfs, WriteFile};
use std::collections::BTreeMap;

use crate::plan::{Step, TextFile};
use crate::volume::{FilesystemKind, Volume};
use rubus_host::simulated::fake::FakeFiles;

use crate::plan::Plan;

use super::*;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";

fn member(path: &str, content: &[u8]) -> Vec<u8> {
    let mut fields = [0_u32; 13];
    (fields[1], fields[6], fields[11]) = (0o100_644, content.len() as u32, path.len() as u32 + 1);
    let mut bytes = b"070701".to_vec();
    bytes.extend(fields.iter().flat_map(|field| format!("{field:08X}").into_bytes()));
    bytes.extend(path.bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn initramfs(modules: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in modules {
        let path = format!("usr/lib/modules/{RELEASE}/kernel/{name}.ko.xz");
        bytes.extend(member(&path, b"module"));
    }
    bytes.extend(member("TRAILER!!!", b""));
    bytes
}

fn board(modules: &[&str]) -> FakeFiles {
    let lib = format!("/top/lib/modules/{RELEASE}");
    FakeFiles::new()
        .file("/proc/device-tree/system/linux,revision", [0, 0xa0, 0x20, 0x82])
        .file("/boot/firmware/config.txt", "arm_64bit=1\nauto_initramfs=1\n")
        .file("/boot/firmware/cmdline.txt", "root=PARTUUID=8a676486-02 rootfstype=ext4\n")
        .file("/boot/firmware/kernel8.img", format!("MZ..Linux version {RELEASE} (builder) {}", ".".repeat(100)))
        .file("/boot/firmware/initramfs8", initramfs(modules))
        .file(format!("{lib}/modules.dep"), "kernel/btrfs.ko.xz: kernel/xor.ko.xz\nkernel/xor.ko.xz:\nkernel/uas.ko.xz:\n")
        .file(format!("{lib}/modules.builtin"), "kernel/drivers/usb/storage/usb-storage.ko\nkernel/fs/ext4/ext4.ko\n")
        .file(
            "/top/etc/fstab",
            "/dev/disk/by-id/usb-1 / btrfs subvol=@ 0 0\nPARTUUID=8a676486-01 /boot/firmware vfat defaults 0 2\n",
        )
        .file("/dev/sda1", "")
        .link("/dev/disk/by-id/usb-1", "/dev/sda1")
}

fn plan() -> Plan {
    let mut plan = crate::fixture::plans::small_plan();
    let step = |id: &str, action: Action| Step { id: id.into(), why: "Because.".into(), action };
    plan.steps = vec![
        step(
            "initramfs",
            Action::BuildInitramfs(BuildInitramfs {
                root: Volume {
                    kind: FilesystemKind::Btrfs,
                    uuid: "12".into(),
                    mount_options: "subvol=@".into(),
                    title: "the new root".into(),
                },
                release: RELEASE.into(),
                path: "/boot/firmware/initramfs8".into(),
                kept: None,
                modules: vec!["uas".into(), "usb-storage".into()],
                files: Vec::new(),
            }),
        ),
        step(
            "cmdline-txt",
            Action::WriteFile(WriteFile {
                path: "/boot/firmware/cmdline.txt".into(),
                was: None,
                becomes: TextFile::public(
                    "root=PARTUUID=0badcafe-01 rootfstype=btrfs rootflags=subvol=@\n",
                ),
            }),
        ),
    ];
    plan
}

fn volume(path: &str, partuuid: &str, filesystem: &str) -> NamedVolume {
    NamedVolume {
        path: path.into(),
        partuuid: Some(partuuid.into()),
        filesystem: Some(filesystem.into()),
        ..NamedVolume::default()
    }
}

fn unmet(files: &FakeFiles, plan: &Plan) -> BTreeMap<String, String> {
    unmet_at(files, plan, 0)
}

fn unmet_at(files: &FakeFiles, plan: &Plan, step: usize) -> BTreeMap<String, String> {
    let scene = Scene {
        files,
        boot: Path::new("/boot/firmware"),
        top: Path::new("/top"),
        steps: &plan.steps,
        before_trial: plan.trial.as_ref().map(|trial| trial.before_step),
        step,
        volumes: vec![
            volume("/dev/mmcblk0p1", "8a676486-01", "vfat"),
            volume("/dev/mmcblk0p2", "8a676486-02", "ext4"),
            volume("/dev/sda1", "0badcafe-01", "btrfs"),
        ],
        firmware_volume: Some("/dev/mmcblk0p1".into()),
        filesystem: "btrfs",
        is_image: false,
    };
    let checks = scene.all_checks(&model(scene.files));
    assert!(checks.len() > 10, "{checks:?}");
    let unmet = checks.into_iter().filter(|check| !check.is_met);
    unmet.map(|check| (check.what, check.found)).collect()
}

#[test]
fn the_start_as_it_will_be_is_proven() {
    let files = board(&["btrfs", "xor", "uas"]);
    assert_eq!(unmet(&files, &plan()), BTreeMap::new());
}

#[test]
fn a_missing_module_and_the_old_command_line_are_found() {
    let files = board(&["btrfs", "uas"]);
    let found = unmet(&files, &plan());
    // The old root needs no btrfs, but the drivers of both.
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found.values().any(|found| found == "not inside: xor"), "{found:?}");
    // Without the plan's last step the board would start the old root, which fstab does not mean.
    let mut unfinished = plan();
    unfinished.steps.pop();
    let found = unmet(&board(&["btrfs", "xor", "uas"]), &unfinished);
    assert!(found.keys().any(|what| what.contains("mean the same root")), "{found:?}");
}

#[test]
fn a_driver_that_the_plan_wants_is_asked_for() {
    let found = unmet(&board(&["btrfs", "xor"]), &plan());
    assert!(found.values().any(|found| found == "not inside: uas"), "{found:?}");
}

#[test]
fn the_trial_is_proven_as_well_as_the_start_after_it() {
    let mut plan = plan();
    let switch = plan.steps.pop().expect("the last step is the switch");
    let Action::WriteFile(WriteFile { becomes, .. }) = &switch.action else {
        panic!("{switch:?}");
    };
    let write = |name: &str, text: &str| Step {
        id: name.into(),
        why: "Because.".into(),
        action: Action::WriteFile(WriteFile {
            path: Path::new("/boot/firmware").join(name),
            was: None,
            becomes: TextFile::public(text),
        }),
    };
    let config = "arm_64bit=1\nauto_initramfs=1\n";
    let settings = tryboot::text(config, "trial.txt", None);
    plan.steps.push(write("trial.txt", &becomes.text));
    plan.steps.push(write(tryboot::FILE, &settings));
    plan.trial = Some(crate::plan::Trial {
        before_step: plan.steps.len(),
        start: "sudo reboot '0 tryboot'".into(),
    });
    plan.steps.push(switch);
    let files = board(&["btrfs", "xor", "uas"]);
    assert_eq!(unmet(&files, &plan), BTreeMap::new());

    // A trial that names the old root's command line proves nothing for the new one.
    for step in &mut plan.steps {
        if step.id == tryboot::FILE {
            *step = write(tryboot::FILE, &tryboot::text(config, "gone.txt", None));
        }
    }
    let found = unmet(&files, &plan);
    assert!(!found.is_empty());
    assert!(found.keys().all(|what| what.starts_with("on trial, ")), "{found:?}");
    // A trial that has come up is not proven once more: its initial RAM filesystem has taken the usual one's place by then.
    let after = plan.trial.as_ref().map_or(0, |trial| trial.before_step);
    assert_eq!(unmet_at(&files, &plan, after), BTreeMap::new());
}

/// The power may go after the initial RAM filesystem was replaced, and before the command line is.
#[test]
fn the_old_root_must_start_with_what_will_be_in_the_boot_partition() {
    let whole = ["btrfs", "xor", "uas"];
    let builtin = format!("/top/lib/modules/{RELEASE}/modules.builtin");
    let dep = format!("/top/lib/modules/{RELEASE}/modules.dep");
    let files = |modules: &[&str]| {
        board(modules)
            .file(builtin.clone(), "kernel/drivers/usb/storage/usb-storage.ko\n")
            .file(
                dep.clone(),
                "kernel/btrfs.ko.xz: kernel/xor.ko.xz\nkernel/xor.ko.xz:\nkernel/uas.ko.xz:\nkernel/ext4.ko.xz:\n",
            )
    };
    let found = unmet(&files(&whole), &plan());
    let keys: Vec<&String> = found.keys().collect();
    assert_eq!(keys.len(), 1, "{found:?}");
    assert!(keys[0].starts_with("with the current command line, the module ext4"), "{keys:?}");
    let with_both = ["btrfs", "xor", "uas", "ext4"];
    assert_eq!(unmet(&files(&with_both), &plan()), BTreeMap::new());
}

/// Until the trial is passed, what every usual start reads lacks the new root's modules: what is proven is the start after it.
#[test]
fn an_initial_ram_filesystem_that_waits_is_proven_in_its_place() {
    let mut plan = plan();
    let Action::BuildInitramfs(BuildInitramfs { root, release, path, modules, .. }) =
        plan.steps[0].action.clone()
    else {
        panic!("the first step builds it");
    };
    let from = PathBuf::from("/boot/firmware/initramfs-rubus");
    let install = Action::InstallInitramfs(InstallInitramfs {
        root,
        release,
        from: from.clone(),
        path,
        kept: None,
        modules,
        files: Vec::new(),
    });
    let step = Step { id: "install".into(), why: "Because.".into(), action: install };
    plan.steps.insert(1, step);
    let old = || board(&["ext4"]);
    assert!(!unmet(&old(), &plan).is_empty());
    let waits = old().file(&from, initramfs(&["btrfs", "xor", "uas"]));
    assert_eq!(unmet(&waits, &plan), BTreeMap::new());
}
