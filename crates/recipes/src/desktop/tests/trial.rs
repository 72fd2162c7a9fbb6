//! Which starts read what while the new root is on trial.

use super::*;
use rubus_change::steps::{InstallInitramfs, On};

#[test]
fn a_board_that_knows_trials_makes_one_before_the_step_that_decides() {
    let machine = machine();
    let mut facts = facts(&machine);
    assert_eq!(plan_of(&machine, &facts, &[]).trial, None);
    with_trials(&mut facts);
    assert_eq!(plan_of(&machine, &facts, &[("trial", "no")]).trial, None);
    let plan = plan_of(&machine, &facts, &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let trial = plan.trial.as_ref().expect("a trial");
    assert_eq!(trial.start, "sudo reboot '0 tryboot'");
    let (before, after) = plan.steps.split_at(trial.before_step);
    // What a usual start reads is as it was until the trial is passed.
    let path = |step: &rubus_change::plan::Step| step.action.path().cloned();
    for name in ["cmdline.txt", "config.txt", "initramfs8", "kernel8.img"] {
        let file = Some(Path::new("/boot/firmware").join(name));
        assert!(before.iter().all(|step| path(step) != file), "{name}");
    }
    let ids: Vec<&str> = after.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "install-initramfs",
            "prove-boot-again",
            "cmdline-txt",
            "trial-config-goes",
            "trial-cmdline-goes"
        ]
    );
    let Action::InstallInitramfs(InstallInitramfs { from, path, kept, .. }) = &after[0].action
    else {
        panic!("{:?}", after[0]);
    };
    assert_eq!(from, Path::new("/boot/firmware/initramfs-rubus"));
    assert_eq!(path, Path::new("/boot/firmware/initramfs8"));
    assert!(kept.is_some());
    assert!(written(&plan, "tryboot.txt").ends_with(
        "auto_initramfs=0\n[pi5]\nkernel=other.img\n[all]\ncmdline=cmdline-rubus.txt\n\
         initramfs initramfs-rubus followkernel\n"
    ));
    // A trial that finds no root ends by itself.
    assert_eq!(
        written(&plan, "cmdline-rubus.txt"),
        written(&plan, "cmdline.txt").replace('\n', " panic=30\n")
    );
}

/// Until the machine is started again, every update makes the initial RAM filesystem on the current root.
#[test]
fn an_update_before_the_next_start_makes_an_initial_ram_filesystem_that_starts_the_new_root() {
    for wishes in [&[("trial", "no")][..], &[("trial", "yes")]] {
        let plan = usual(wishes);
        let place = |end: &str| {
            let mut steps = plan.steps.iter();
            steps.position(|step| match &step.action {
                Action::On(On { volume, action, is_undone }) => {
                    let is_there = action.path().is_some_and(|path| path.ends_with(end));
                    is_there && *is_undone && volume.title.contains("current root")
                }
                _ => false,
            })
        };
        let built =
            plan.steps.iter().position(|step| matches!(step.action, Action::BuildInitramfs(_)));
        for end in ["initramfs-tools/modules", "conf.d/rubus-desktop.conf"] {
            let place = place(end);
            assert!(place.is_some() && place < built, "{end}: {place:?}");
        }
    }
    // Without its UUID, as a user who may not read it plans, the running root is changed as it is.
    let mut machine = machine();
    for device in &mut machine.block_devices {
        device.identity.uuid = None;
    }
    let plan = plan_of(&machine, &facts(&machine), &[]);
    let policy = Path::new("/etc/initramfs-tools/conf.d/rubus-desktop.conf");
    let mut paths = plan.steps.iter().map(|step| step.action.path());
    assert!(paths.any(|path| path.is_some_and(|path| path == policy)));
}

/// What it takes to load an initial RAM filesystem at all is changed after the trial as well, and the copy of the boot
/// partition is made of what was tried.
#[test]
fn a_trial_changes_nothing_of_a_start_without_an_initial_ram_filesystem() {
    let machine = machine();
    let mut facts = facts(&machine);
    with_trials(&mut facts);
    let seen = &mut facts.seen;
    seen.insert("/boot/firmware/config.txt".into(), text("arm_64bit=1\n"));
    let files = names(&["config.txt", "cmdline.txt", "kernel8.img"]);
    seen.insert("/boot/firmware".into(), files);
    let plan = plan_of(&machine, &facts, &[("boot-copy", "yes")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let place = |id: &str| plan.steps.iter().position(|step| step.id == id);
    let begin = plan.trial.as_ref().map(|trial| trial.before_step);
    assert!(begin.is_some());
    let order = ["install-initramfs", "config-txt", "copy-boot", "prove-boot-again", "cmdline-txt"];
    let places: Vec<_> = order.map(place).to_vec();
    assert!(places[0] >= begin && places.is_sorted(), "{begin:?} {places:?}");
    assert_eq!(
        written(&plan, "tryboot.txt"),
        "arm_64bit=1\ncmdline=cmdline-rubus.txt\ninitramfs initramfs-rubus followkernel\nauto_initramfs=0\n"
    );
}

/// Which of two kernels the firmware starts is not known, and one initial RAM filesystem is for one of them.
#[test]
fn a_trial_with_several_kernels_shares_their_initial_ram_filesystems() {
    let machine = machine();
    let mut facts = facts(&machine);
    with_trials(&mut facts);
    let seen = &mut facts.seen;
    seen.insert("/boot/firmware/config.txt".into(), text("auto_initramfs=1\n"));
    let files = names(&[
        "config.txt",
        "cmdline.txt",
        "kernel7.img",
        "initramfs7",
        "kernel8.img",
        "initramfs8",
    ]);
    seen.insert("/boot/firmware".into(), files);
    let plan = plan_of(&machine, &facts, &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    assert!(plan.trial.is_some());
    assert_eq!(written(&plan, "tryboot.txt"), "auto_initramfs=1\ncmdline=cmdline-rubus.txt\n");
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("share the initial RAM filesystem (initramfs7, initramfs8)")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn what_speaks_against_a_trial_is_told() {
    let machine = machine();
    let asked = |facts: &Facts, wish| plan_of(&machine, facts, &[("trial", wish)]);
    let told = |plan: &Plan, word: &str| plan.notes.iter().any(|note| note.contains(word));

    // Firmware that says nothing: only if asked for, with the risk.
    let silent = facts(&machine);
    let plan = asked(&silent, "auto");
    assert!(plan.trial.is_none() && told(&plan, "says nothing about trials"));
    let plan = asked(&silent, "yes");
    assert!(plan.trial.is_some());
    assert!(plan.risks.iter().any(|risk| risk.contains("trial=no")));

    for (path, text_of, word) in [
        ("/boot/firmware/config.txt", "arm_64bit=1\nauto_initramfs=1\nos_prefix=\n", "os_prefix"),
        ("/boot/firmware/tryboot.txt", "", "tryboot.txt already"),
        ("/boot/firmware/autoboot.txt", "[all]\n", "autoboot.txt already"),
    ] {
        let mut facts = facts(&machine);
        with_trials(&mut facts);
        facts.seen.insert(path.into(), text(text_of));
        let Some(PathState::Directory(names)) = facts.seen.get_mut(Path::new("/boot/firmware"))
        else {
            panic!("the boot partition is a directory");
        };
        let name = path.rsplit('/').next().expect("a name");
        names.push(name.into());
        assert!(asked(&facts, "auto").trial.is_none(), "{word}");
        let plan = asked(&facts, "yes");
        let found = obstacles(&plan);
        assert!(found.iter().any(|found| found.contains(word)), "{word}: {found:?}");
    }
}
