//! What is asked of the boot partition's files, and under which names they are kept.

use super::*;
use rubus_change::steps::{BuildInitramfs, On, WriteFile};

#[test]
fn a_kernel_that_starts_without_an_initial_ram_filesystem_gets_one() {
    let machine = machine();
    let mut facts = facts(&machine);
    let seen = &mut facts.seen;
    seen.insert("/boot/firmware/config.txt".into(), text("arm_64bit=1\n"));
    let files = names(&["config.txt", "cmdline.txt", "kernel8.img"]);
    seen.insert("/boot/firmware".into(), files);
    let plan = plan_of(&machine, &facts, &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    assert_eq!(written(&plan, "config.txt"), "arm_64bit=1\ninitramfs initramfs8 followkernel\n");
    assert_eq!(written(&plan, "config.txt.before-rubus"), "arm_64bit=1\n");
    let made = plan.steps.iter().find_map(|step| match &step.action {
        Action::BuildInitramfs(BuildInitramfs { path, kept, .. }) => {
            Some((path.clone(), kept.clone()))
        }
        _ => None,
    });
    assert_eq!(made, Some(("/boot/firmware/initramfs8".into(), None)));
}

/// Some of its bootloaders load `initramfs_2712` with `kernel8.img`.
#[test]
fn a_pi_5_with_another_kernel_is_told_which_initial_ram_filesystem_to_load() {
    let mut machine = machine();
    machine.board.revision = Fact::known(rubus_boot::revision::decode(0x00c0_4170), "test");
    let mut facts = facts(&machine);
    let seen = &mut facts.seen;
    let config = "auto_initramfs=1\nkernel=kernel8.img\n";
    seen.insert("/boot/firmware/config.txt".into(), text(config));
    let plan = plan_of(&machine, &facts, &[("trial", "no")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    assert_eq!(
        written(&plan, "config.txt"),
        "auto_initramfs=0\nkernel=kernel8.img\ninitramfs initramfs8 followkernel\n"
    );
    assert_eq!(written(&plan, "config.txt.before-rubus"), config);
    // Where it was off, turning it on would lead there.
    let seen = &mut facts.seen;
    seen.insert("/boot/firmware/config.txt".into(), text("kernel=kernel8.img\n"));
    let plan = plan_of(&machine, &facts, &[("trial", "no")]);
    assert_eq!(
        written(&plan, "config.txt"),
        "kernel=kernel8.img\ninitramfs initramfs8 followkernel\nauto_initramfs=0\n"
    );
}

/// Its next update would undo the switch, from the current root as from the new one.
#[test]
fn what_debian_writes_the_command_line_from_names_the_new_root() {
    let machine = machine();
    let mut facts = facts(&machine);
    with_trials(&mut facts);
    let seen = &mut facts.seen;
    let hook = "/etc/kernel/postinst.d/z50-raspi-firmware";
    // The package of Raspberry Pi OS only copies kernels.
    seen.insert(hook.into(), text("#!/bin/sh\ncp \"$kernel\" /boot/firmware/\n"));
    let settings = "/etc/default/raspi-firmware";
    let old = "#ROOTPART=/dev/mmcblk0p2\nROOTPART=LABEL=RASPIROOT\n#KERNEL=\"auto\"\n";
    seen.insert(settings.into(), text(old));
    let of = |plan: &Plan, id: &str| plan.steps.iter().position(|step| step.id == id);
    let plan = plan_of(&machine, &facts, &[("compress", "zstd:1")]);
    assert_eq!(of(&plan, "raspi-firmware-there"), None);

    facts.seen.insert(hook.into(), text(DEBIAN_HOOK));
    let plan = plan_of(&machine, &facts, &[("compress", "zstd:1")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let line = written(&plan, "cmdline.txt");
    let root = line.split_whitespace().find(|word| word.starts_with("root=PARTUUID="));
    let root = root.expect("a root").trim_start_matches("root=");
    let with = |root: &str| {
        TextFile::public(format!(
            "#ROOTPART=/dev/mmcblk0p2\nROOTPART=\"{root}\"\n#KERNEL=\"auto\"\n"
        ))
    };
    let old = with("PARTUUID=1f3c5a77-02 rootfstype=ext4");
    let new = with(&format!("{root} rootfstype=btrfs rootflags=subvol=@,compress=zstd:1"));
    let step = |id: &str| &plan.steps[of(&plan, id).expect("such a step")].action;
    let on_new_root = |id: &str| match step(id) {
        Action::On(On { action, is_undone, .. }) => match &**action {
            Action::WriteFile(WriteFile { was, becomes, .. }) => {
                (*is_undone, was.clone().expect("it is there"), becomes.clone())
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    // An update after undoing it, and before the restart, names the old root.
    assert_eq!(on_new_root("raspi-firmware-there").2, old);
    assert_eq!(on_new_root("raspi-firmware-switch"), (true, old, new));
    assert!(of(&plan, "raspi-firmware-switch") < of(&plan, "cmdline-txt"));
    // The current root is told only when the trial is passed.
    let here = of(&plan, "raspi-firmware-here");
    let begin = plan.trial.as_ref().map(|trial| trial.before_step);
    assert!(of(&plan, "raspi-firmware-there").is_some());
    assert!(here > begin && here < of(&plan, "cmdline-txt"), "{here:?}");
}

/// Debian's hook removes every `initrd.img-*` of the boot partition that /boot lacks.
#[test]
fn what_is_kept_has_no_name_that_debian_sweeps_away() {
    use super::super::super::moving::steps::kept_as;
    let kept = |name: &str| kept_as(&Path::new("/boot/firmware").join(name), "before-rubus");
    assert_eq!(kept("initramfs8"), Path::new("/boot/firmware/initramfs8.before-rubus"));
    assert_eq!(
        kept("initrd.img-6.12.1-arm64"),
        Path::new("/boot/firmware/before-rubus.initrd.img-6.12.1-arm64")
    );
}

#[test]
fn what_an_earlier_change_has_kept_stays_its_own() {
    let machine = machine();
    let mut facts = facts(&machine);
    let files = names(&[
        "config.txt",
        "cmdline.txt",
        "kernel8.img",
        "initramfs8",
        "INITRAMFS8.BEFORE-RUBUS",
    ]);
    facts.seen.insert("/boot/firmware".into(), files);
    let plan = plan_of(&machine, &facts, &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let kept = plan.steps.iter().find_map(|step| match &step.action {
        Action::BuildInitramfs(BuildInitramfs { kept, .. }) => kept.clone(),
        _ => None,
    });
    let wanted = "/boot/firmware/initramfs8.before-rubus-2";
    assert_eq!(kept, Some(wanted.into()));
    assert_eq!(written(&plan, "cmdline.txt.before-rubus-2"), CMDLINE);
    let says = |note: &String| note.contains("rename cmdline.txt.before-rubus-2 to cmdline.txt");
    assert!(plan.notes.iter().any(says), "{:?}", plan.notes);
}

/// `rpi-update` puts a kernel of its own in the place of a package's.
#[test]
fn the_kernels_file_says_its_release_and_its_name_is_asked_only_where_it_does_not() {
    let machine = machine();
    let mut facts = facts(&machine);
    let own = "6.12.50-v8+";
    facts.seen.insert("/lib/modules".into(), names(&[RELEASE, own]));
    let of_own: Vec<(PathBuf, PathState)> = facts
        .seen
        .iter()
        .filter_map(|(path, sight)| {
            let path = path.to_str()?.replace(RELEASE, own);
            path.contains(own).then(|| (path.into(), sight.clone()))
        })
        .collect();
    facts.seen.extend(of_own);
    let kernel = PathBuf::from("/boot/firmware/kernel8.img");
    let release = |facts: &Facts| {
        let plan = plan_of(&machine, facts, &[]);
        let built = plan.steps.iter().find_map(|step| match &step.action {
            Action::BuildInitramfs(BuildInitramfs { release, .. }) => Some(release.clone()),
            _ => None,
        });
        built.ok_or_else(|| obstacles(&plan).join("\n"))
    };
    assert_eq!(release(&facts).as_deref(), Ok(RELEASE));
    facts.kernels.insert(kernel.clone(), own.into());
    assert_eq!(release(&facts).as_deref(), Ok(own));
    facts.kernels.insert(kernel, "6.6.1-mine".into());
    let why = release(&facts).expect_err("it has no modules");
    assert!(why.contains("it is 6.6.1-mine"), "{why}");
}

#[test]
fn hooks_and_a_service_keep_the_copy_of_the_boot_partition_alike() {
    let machine = machine();
    let plan = plan_of(&machine, &facts(&machine), &[("boot-copy", "yes"), ("direct-boot", "yes")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let script = written(&plan, "postinst.d/zz-rubus-boot-copy");
    assert!(!script.contains('@'), "{script}");
    assert!(script.contains("point='/boot/firmware'"), "{script}");
    assert!(script.contains("first='/dev/disk/by-partuuid/1f3c5a77-01'"), "{script}");
    for hook in ["postrm.d/zz-rubus-boot-copy", "post-update.d/zz-rubus-boot-copy"] {
        assert!(written(&plan, hook).contains("exec /etc/kernel/postinst.d/"), "{hook}");
    }
    let unit = written(&plan, "rubus-boot-copy.service");
    assert!(unit.contains("After=local-fs.target boot-firmware.mount\n"), "{unit}");
    assert!(plan.steps.iter().any(|step| step.id == "boot-copy-enabled-there"));
    // Without a copy there is nothing to keep alike.
    let plan = plan_of(&machine, &facts(&machine), &[]);
    assert!(!plan.steps.iter().any(|step| step.id.starts_with("boot-copy")));
}
