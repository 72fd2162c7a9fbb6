//! Plans for an image instead of a machine that runs.

use super::*;
use crate::{ImageFacts, NextStart};
use rubus_boot::chain::Stop;
use rubus_boot::initramfs::{Listing, Member};
use rubus_change::plan::volume::{DiskIdentity, PartitionRole};
use rubus_change::steps::{BuildInitramfs, On, PartitionDisk, WriteFile};
use rubus_vocabulary::machine::Mount;

const GIB: u64 = 1 << 30;

/// What the survey says of an image with the same files: disks and memory of no machine.
fn image_machine() -> Machine {
    let mut machine = machine();
    machine.memory.total_bytes = Fact::unknown("an image does not say it", "test");
    machine.system.kernel_release = Fact::unknown("an image does not say it", "test");
    machine.swap.areas.clear();
    machine
}

fn listing(modules: &[&str]) -> Listing {
    let member = |module: &&str| Member {
        path: format!("usr/lib/modules/{RELEASE}/kernel/x/{module}.ko.xz"),
        mode: 0o100_644,
        size_bytes: 1,
    };
    Listing { members: modules.iter().map(member).collect(), ..Listing::default() }
}

fn image(modules: &[&str]) -> ImageFacts {
    ImageFacts {
        file: "/home/me/card.img".into(),
        out: DiskIdentity {
            path: "/home/me/new.img".into(),
            size_bytes: 0,
            model: None,
            serial: None,
            wwn: None,
            diskseq: Some(7),
            boot_id: None,
            contents: Vec::new(),
            confirmation: "/home/me/new.img".into(),
        },
        room_bytes: Some(100 * GIB),
        boot_bytes: 60 << 20,
        initramfs: [("initramfs8".to_string(), Ok(listing(modules)))].into(),
        runs_here: Err("its programs do not run on this machine's processor".into()),
        missing: Vec::new(),
    }
}

const WHOLE: [&str; 3] = ["btrfs", "usb-storage", "uas"];

fn plan_with(image: ImageFacts, wishes: &[(&str, &str)]) -> Plan {
    plan_where(image, wishes, &|_| {})
}

fn plan_where(image: ImageFacts, wishes: &[(&str, &str)], spoil: &dyn Fn(&mut Facts)) -> Plan {
    let machine = image_machine();
    let mut facts = facts(&machine);
    facts.compression.clear();
    facts.image = Some(image);
    // Another board than the one of the fixture names another kernel; it is not there.
    facts.seen.insert("/boot/firmware/config.txt".into(), text("arm_64bit=1\nauto_initramfs=1\n"));
    spoil(&mut facts);
    let mut all = Wishes::from([("swap".to_string(), "file".to_string())]);
    let wished = wishes.iter();
    all.extend(wished.map(|(name, value)| (name.to_string(), value.to_string())));
    RECIPE.plan(&machine, &facts, &all, "2026-11-21T01:02:03Z").expect("the wishes make sense")
}

#[test]
fn nothing_outside_the_new_image_is_touched() {
    let plan = plan_with(image(&WHOLE), &[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    assert!(plan.is_of_an_image());
    assert!(plan.disks_lost().is_empty());
    for step in &plan.steps {
        // Paths of bare actions would be those of the machine that makes the image.
        let is_inside = matches!(
            step.action,
            Action::On(_)
                | Action::Partition(_)
                | Action::Format(_)
                | Action::CopyTree(_)
                | Action::ProveBoot(_)
                | Action::KeepJournal(_)
                | Action::FillBoot(_)
        );
        assert!(is_inside, "{}: {:?}", step.id, step.action);
        for disk in step.action.disks_lost() {
            assert_eq!(disk.path, Path::new("/home/me/new.img"));
        }
    }
    let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    assert!(ids.ends_with(&["prove-boot", "keep-journal", "fill-boot"]), "{ids:?}");
}

#[test]
fn the_new_image_has_names_of_its_own_for_everything() {
    let plan = plan_with(image(&WHOLE), &[]);
    let Action::Partition(PartitionDisk { table, disk }) = &plan.steps[0].action else {
        panic!("{:?}", plan.steps[0]);
    };
    let roles: Vec<PartitionRole> = table.partitions.iter().map(|one| one.role).collect();
    assert_eq!(roles, [PartitionRole::Boot, PartitionRole::Linux]);
    assert_eq!(plan.image_bytes(), Some(disk.size_bytes));
    // 6.4 GB with 15 % to spare, what btrfs wants, 1 GiB of swap, 1 GiB more, and around it.
    assert_eq!(disk.size_bytes, (9 * GIB + 704 * (1 << 20)) / (64 << 20) * (64 << 20));
    let texts: Vec<&str> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::On(On { action, .. }) => match &**action {
                Action::WriteFile(WriteFile { becomes, .. }) => Some(becomes.text.as_str()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(texts.iter().all(|text| !text.contains("1f3c5a77")), "{texts:?}");
    let boot = format!("PARTUUID={}  /boot/firmware  vfat", table.partitions[0].partuuid);
    assert!(texts.iter().any(|text| text.contains(&boot)), "{texts:?}");
    let root = format!("root=PARTUUID={} rootfstype=btrfs", table.partitions[1].partuuid);
    assert!(texts.iter().any(|text| text.contains(&root)), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("RESUME=none")));
    let cmdline = texts.iter().find(|text| text.contains("root=")).expect("there is one");
    assert!(!cmdline.contains("resize"), "{cmdline}");
}

#[test]
fn without_btrfs_inside_the_images_own_programs_have_to_run() {
    let refused = obstacles(&plan_with(image(&["uas"]), &[]));
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("initramfs8 lacks btrfs, usb-storage"), "{refused:?}");
    assert!(refused[0].contains("qemu-user-static"), "{refused:?}");
    let mut facts = image(&["uas"]);
    facts.runs_here = Ok(());
    let plan = plan_with(facts, &[]);
    let built = plan.steps.iter().any(|step| match &step.action {
        Action::On(On { action, .. }) => {
            matches!(&**action, Action::BuildInitramfs(BuildInitramfs { path, kept: None, .. })
            if path == Path::new("/initramfs8"))
        }
        _ => false,
    });
    assert!(built, "{:?}", plan.steps);
    let warns =
        |plan: &Plan| plan.risks.iter().any(|risk| risk.contains("run on this machine, shut in"));
    assert!(warns(&plan), "{:?}", plan.risks);
    let nothing_runs = plan_with(image(&WHOLE), &[]);
    assert!(!nothing_runs.is_empty() && !warns(&nothing_runs), "{:?}", nothing_runs.risks);
}

#[test]
fn each_obstacle_is_said() {
    let words = |image: ImageFacts, wishes: &[(&str, &str)]| {
        let plan = plan_with(image, wishes);
        assert!(plan.steps.is_empty(), "a plan with an obstacle has no steps");
        obstacles(&plan).join("\n")
    };
    assert!(words(image(&WHOLE), &[("device", "/dev/sda")]).contains("not device"));
    assert!(words(image(&WHOLE), &[("size", "4G")]).contains("larger size="));
    let mut full = image(&WHOLE);
    full.room_bytes = Some(GIB);
    assert!(words(full, &[]).contains("on another disk"));
    let mut bare = image(&WHOLE);
    bare.missing = vec!["mcopy".into(), "mkfs.btrfs".into()];
    let said = words(bare, &[]);
    assert!(said.contains("mtools") && said.contains("btrfs-progs"), "{said}");
    let mut large = image(&WHOLE);
    large.boot_bytes = 500 << 20;
    assert!(words(large, &[]).contains("its boot partition has room"));
    let mut strange = image(&[]);
    strange.initramfs.clear();
    assert!(words(strange, &[]).contains("it is not there"));
}

#[test]
fn the_size_of_an_image_is_none_of_a_machines() {
    let said = obstacles(&usual(&[("size", "8G")])).join("\n");
    assert!(said.contains("size= is about an image"), "{said}");
}

#[test]
fn a_root_that_is_btrfs_already_stays() {
    let mut machine = image_machine();
    let root: &mut Mount =
        machine.mounts.iter_mut().find(|mount| mount.point == "/").expect("the fixture has it");
    root.filesystem = "btrfs".into();
    let mut facts = facts(&machine);
    facts.image = Some(image(&WHOLE));
    // Its system is in a subvolume that was not looked at.
    facts.seen.remove(Path::new("/etc/fstab"));
    let plan = RECIPE.plan(&machine, &facts, &Wishes::new(), "now");
    let said = obstacles(&plan.expect("there is nothing to wish"));
    assert_eq!(said.len(), 1, "{said:?}");
    let said = said.join("\n");
    assert!(said.contains("an image that it made has btrfs"), "{said}");
}

/// The user, the Wi-Fi and ssh settings from Raspberry Pi Imager would be missing on the board, and login would be
/// impossible.
#[test]
fn settings_that_wait_for_the_first_start_are_not_lost() {
    const FIRST_BOOT: &str = "init=/usr/lib/raspberrypi-sys-mods/firstboot";
    let plan = |settings: &'static str, word: &'static str| {
        plan_where(image(&WHOLE), &[], &|facts| {
            let seen = &mut facts.seen;
            let files = ["config.txt", "cmdline.txt", "kernel8.img", "initramfs8"];
            let files: Vec<&str> = files.into_iter().chain([settings]).collect();
            seen.insert("/boot/firmware".into(), names(&files));
            let line = CMDLINE.replace("resize", word);
            seen.insert("/boot/firmware/cmdline.txt".into(), text(&line));
        })
    };
    // FAT does not know capital letters.
    for settings in ["custom.toml", "CUSTOM.TOML"] {
        let refused = plan(settings, FIRST_BOOT);
        let found = obstacles(&refused);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(
                "no settings wait for the first start: custom.toml is in the boot partition"
            ),
            "{found:?}"
        );
        assert!(found[0].contains("start the image once on a board"), "{found:?}");
        assert!(refused.steps.is_empty(), "{:?}", refused.steps);
    }
    // What starts them stays on the command line, or there are none.
    for (settings, word) in
        [("custom.toml", "quiet"), ("custom.toml", "resize"), ("overlays", FIRST_BOOT)]
    {
        let found = obstacles(&plan(settings, word));
        assert_eq!(found, Vec::<String>::new(), "{settings} {word}");
    }
    let told = plan("overlays", FIRST_BOOT);
    let mut notes = told.notes.iter();
    assert!(notes.any(|note| note.contains(FIRST_BOOT)), "{:?}", told.notes);
}

/// The plan for an image with this `config.txt` and these kernels, and `config.txt` as it will be.
fn with_config(config: &'static str, kernels: &[&str]) -> (Plan, Option<String>) {
    let mut facts = image(&WHOLE);
    for kernel in kernels {
        let name = rubus_boot::config_txt::initramfs_of(kernel);
        facts.initramfs.insert(name.expect("a name"), Ok(listing(&WHOLE)));
    }
    let plan = plan_where(facts, &[], &|facts| {
        let seen = &mut facts.seen;
        let initramfs: Vec<String> = kernels
            .iter()
            .filter_map(|kernel| rubus_boot::config_txt::initramfs_of(kernel))
            .collect();
        let mut files = vec!["config.txt", "cmdline.txt"];
        files.extend(kernels);
        files.extend(initramfs.iter().map(String::as_str));
        seen.insert("/boot/firmware".into(), names(&files));
        seen.insert("/boot/firmware/config.txt".into(), text(config));
    });
    let written = plan.steps.iter().find_map(|step| match &step.action {
        Action::On(On { action, .. }) => match &**action {
            Action::WriteFile(WriteFile { path, becomes, .. })
                if path == Path::new("/config.txt") =>
            {
                Some(becomes.text.clone())
            }
            _ => None,
        },
        _ => None,
    });
    (plan, written)
}

/// Some of its bootloaders load `initramfs_2712` with `kernel8.img` (raspberrypi/firmware, issue 1965), and the image may be put
/// into one.
#[test]
fn a_pi_5_that_starts_an_image_loads_the_initial_ram_filesystem_of_its_kernel() {
    const NAMED: &str = "[pi5]\nauto_initramfs=0\ninitramfs initramfs8 followkernel\n[all]\n";
    let both = ["kernel8.img", "kernel_2712.img"];
    for (config, kernels) in [
        ("auto_initramfs=1\nkernel=kernel8.img\n", &both[..]),
        ("auto_initramfs=1\n[pi5]\nkernel=kernel8.img\n[all]\n", &both),
        // The same follows where its own kernel is not there.
        ("auto_initramfs=1\narm_64bit=1\n", &both[..1]),
    ] {
        let (plan, written) = with_config(config, kernels);
        assert_eq!(obstacles(&plan), Vec::<String>::new(), "{config}");
        assert_eq!(written, Some(format!("{config}{NAMED}")), "{config}");
    }
    // Turning it on must not lead there either.
    let (plan, written) = with_config("kernel=kernel8.img\n", &both);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let on = format!("kernel=kernel8.img\nauto_initramfs=1\n{NAMED}");
    assert_eq!(written, Some(on));
}

#[test]
fn a_pi_5_with_its_own_kernel_and_other_boards_need_not_be_told() {
    for config in [
        "auto_initramfs=1\narm_64bit=1\n",
        "auto_initramfs=1\narm_64bit=1\n[pi4]\nkernel=kernel8.img\n[all]\n",
        "kernel=kernel8.img\ninitramfs initramfs8 followkernel\n",
    ] {
        let (plan, written) = with_config(config, &["kernel8.img", "kernel_2712.img"]);
        assert_eq!(obstacles(&plan), Vec::<String>::new(), "{config}");
        assert_eq!(written, None, "{config}");
    }
}

#[test]
fn a_pi_5_with_several_kernels_cannot_be_told_and_there_is_no_image() {
    for config in [
        "auto_initramfs=1\narm_64bit=1\n[cm5]\nkernel=kernel8.img\n[all]\n",
        "auto_initramfs=1\narm_64bit=1\n[gpio4=1]\nkernel=kernel8.img\n[all]\n",
    ] {
        let (plan, _) = with_config(config, &["kernel8.img", "kernel_2712.img"]);
        let said = obstacles(&plan).join("\n");
        assert!(said.contains("each Raspberry Pi 5 loads the same kernel"), "{config}: {said}");
        assert!(plan.steps.is_empty(), "{config}");
    }
}

#[test]
fn a_set_of_boot_files_that_updates_switch_is_no_image_to_move() {
    let refused = plan_where(image(&WHOLE), &[], &|facts| {
        let at = |name: &str| Path::new("/boot/firmware").join(name);
        let config = "arm_64bit=1\nauto_initramfs=1\nos_prefix=current/\n";
        facts.seen.insert(at("config.txt"), text(config));
        let line = facts.seen[&at("cmdline.txt")].clone();
        facts.seen.insert(at("current/cmdline.txt"), line);
        let names = ["kernel8.img", "initramfs8", "cmdline.txt"].map(str::to_string);
        facts.seen.insert(at("current"), PathState::Directory(names.to_vec()));
        let Some(PathState::Directory(names)) = facts.seen.get_mut(Path::new("/boot/firmware"))
        else {
            panic!("no boot partition");
        };
        names.push("current".into());
        facts.kernels.insert(at("current/kernel8.img"), RELEASE.into());
    });
    let refused = obstacles(&refused).join("\n");
    assert!(refused.contains("loads a set of files below /boot/firmware/current"), "{refused}");
}

#[test]
fn what_boot_says_of_an_image_is_asked_before_one_is_made_of_it() {
    let stop = || Stop { why: "the root has no modules".into(), remedy: "install them".into() };
    for next in
        [NextStart::Stops(stop()), NextStart::Elsewhere(stop()), NextStart::ByLoader(stop())]
    {
        let plan = plan_where(image(&WHOLE), &[], &|facts| facts.next_start = next.clone());
        let refused = obstacles(&plan).join("\n");
        assert!(refused.contains("the root has no modules"), "{next:?}: {refused}");
    }
    let unsure = NextStart::Unsure("its initramfs has modules in places of its own".into());
    let plan = plan_where(image(&WHOLE), &[], &|facts| facts.next_start = unsure.clone());
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let is_told = |risk: &String| risk.contains("modules in places of its own");
    assert!(plan.risks.iter().any(is_told), "{:?}", plan.risks);
}

#[test]
fn a_proof_that_has_nothing_to_ask_is_none() {
    // Its only kernel is one that no board starts by itself, and the file is not there.
    let plan = plan_where(image(&WHOLE), &[], &|facts| {
        let Some(PathState::Directory(names)) = facts.seen.get_mut(Path::new("/boot/firmware"))
        else {
            panic!("no boot partition");
        };
        names.retain(|name| !name.starts_with("kernel"));
    });
    let refused = obstacles(&plan).join("\n");
    assert!(!refused.is_empty(), "{plan:?}");
    assert!(plan.checks.iter().all(|check| !check.found.starts_with("0 questions")), "{plan:?}");
}
