//! Starts that other systems, other tables and other loaders lead to, and what a doubt is about.

use super::*;

fn doubt(facts: &ChainFacts) -> (Outcome, Doubt) {
    let chain = StartChain::of(facts);
    (chain.outcome(), chain.doubt().expect("it is not certain").doubt)
}

#[test]
fn a_doubt_says_whether_it_is_about_what_the_firmware_reads() {
    let mut facts = board();
    facts.partition.put("config.txt", &format!("{CONFIG}kernel=kernel8.img # mine\n"));
    let (outcome, about) = doubt(&facts);
    assert_eq!((outcome, about), (Outcome::NotCertainAfter(Stage::Partition), Doubt::WhatIsRead));

    let mut facts = board();
    facts.partition.put("autoboot.txt", "[all]\nboot_partition=2\n");
    assert_eq!(doubt(&facts), (Outcome::NotCertainAfter(Stage::Medium), Doubt::WhatIsRead));

    let mut facts = board();
    facts.partition.add("u-boot.bin", 1000);
    facts.partition.put("config.txt", "kernel=u-boot.bin\n");
    assert_eq!(doubt(&facts), (Outcome::NotCertainAfter(Stage::Settings), Doubt::Loader));

    let mut facts = board();
    facts.volumes.push(volume("/dev/sda2", "1a2b-02", "ext4"));
    assert_eq!(doubt(&facts), (Outcome::NotCertainAfter(Stage::CommandLine), Doubt::Other));
}

#[test]
fn a_start_over_the_network_is_not_one_from_the_mounted_partition() {
    let mut facts = board();
    facts.bootloader = Some(Bootloader { boot_mode: Some(2), ..Bootloader::default() });
    facts.medium =
        Medium { disks: Vec::new(), partition: None, why: "boot-mode is 2".into(), ..facts.medium };
    facts.mode = None;
    assert_eq!(doubt(&facts), (Outcome::NotCertainAfter(Stage::Firmware), Doubt::WhatIsRead));
}

#[test]
fn a_setting_of_an_initramfs_that_may_not_be_read_is_no_doubt_about_files() {
    let mut facts = board();
    facts.volumes[1].uuid = Some("5a".into());
    facts.partition.put("config.txt", "arm_64bit=1\nauto_initramfs = 1\n");
    facts.partition.put("cmdline.txt", "root=UUID=5a rootfstype=ext4 rootwait\n");
    assert_eq!(doubt(&facts), (Outcome::NotCertainAfter(Stage::Partition), Doubt::Other));
}

#[test]
fn a_root_on_a_disk_that_is_not_here_is_not_certain() {
    let mut card = board();
    card.are_all_volumes = false;
    let elsewhere = CMDLINE.replace("1a2b-02", "5555-02");
    card.partition.put("cmdline.txt", &elsewhere);
    // A root that is here is more likely meant, as after a clone.
    assert_eq!(outcome(&card), Outcome::StopsAt(Stage::Root));
    // Rubus moved it, and left the old one where it was.
    let mut moved = card.clone();
    moved.partition.put("cmdline.txt.before-rubus", CMDLINE);
    // A card that has the boot files alone.
    let mut small = card;
    small.volumes.pop();
    for facts in [moved, small] {
        let chain = StartChain::of(&facts);
        assert_eq!(chain.outcome(), Outcome::NotCertainAfter(Stage::CommandLine));
        let link = chain.doubt().expect("it is not certain");
        assert!(link.found.contains("PARTUUID=5555-02, which is on a disk that is not here"));
        assert!(link.remedy.as_deref().is_some_and(|remedy| remedy.contains("in the board")));
    }
}

#[test]
fn a_directory_that_is_named_like_its_partition_is_not_found() {
    let mut facts = board();
    facts.partition.put("config.txt", "kernel=boot/vmlinuz\ninitramfs initramfs8\n");
    facts.partition.add("boot/vmlinuz", 1000);
    assert_eq!(outcome(&facts), Outcome::Starts);
    facts.volumes[0].label = Some("BOOT".into());
    let chain = StartChain::of(&facts);
    assert_eq!(chain.outcome(), Outcome::StopsAt(Stage::Kernel));
    assert_eq!(chain.certainty(), Certainty::Likely);
    assert!(why(&facts).contains("nothing below boot/"), "{}", why(&facts));
}

#[test]
fn an_encrypted_root_needs_modules_of_its_kernel() {
    let of = |release: &str| {
        let module = format!("usr/lib/modules/{release}/kernel/drivers/md/dm-crypt.ko");
        let member = |path: &str| Member { path: path.into(), mode: 0o100_755, size_bytes: 1 };
        let mut facts = board();
        facts.volumes[1].filesystem = Some("crypto_LUKS".into());
        let line = "root=/dev/mapper/root cryptdevice=/dev/mmcblk0p2:root rootwait";
        facts.partition.put("cmdline.txt", line);
        let members = vec![member(&module), member("usr/sbin/cryptsetup")];
        let listing = Listing { members, ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        let kernel = Kernel { release: Some("6.12.47+rpt-rpi-v8".into()), ..Kernel::default() };
        facts.images.kernels.insert("kernel8.img".into(), kernel);
        facts
    };
    let inside = of("6.12.47+rpt-rpi-v8");
    assert_eq!(outcome(&inside), Outcome::NotCertainAfter(Stage::CommandLine));
    let other = of("6.6.31+rpt-rpi-v8");
    assert_eq!(outcome(&other), Outcome::StopsAt(Stage::Initramfs));
    assert!(why(&other).contains("has modules of 6.6.31+rpt-rpi-v8"), "{}", why(&other));
}

#[test]
fn an_initramfs_is_made_again_by_the_program_that_made_it() {
    let of = |script: &str| {
        let member = |path: &str| Member { path: path.into(), mode: 0o100_755, size_bytes: 1 };
        let members = vec![member(script), member("usr/lib/modules/6.1.0/kernel/fs/ext4.ko")];
        let mut facts = board();
        let listing = Listing { members, ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        let kernel = Kernel { release: Some("6.12.47-v8".into()), ..Kernel::default() };
        facts.images.kernels.insert("kernel8.img".into(), kernel);
        let remedies = |facts: &ChainFacts| {
            let chain = StartChain::of(facts);
            chain.deciding().and_then(|link| link.stop.clone()).expect("it stops").remedy
        };
        let old = remedies(&facts);
        facts.volumes[1].filesystem = Some("crypto_LUKS".into());
        (old, remedies(&facts))
    };
    for (script, old, encrypted) in [
        ("scripts/local", "update-initramfs", "cryptsetup-initramfs"),
        ("usr/lib/dracut/x", "dracut", "--add crypt"),
        ("init_functions", "mkinitcpio -P", "encrypt into HOOKS"),
        ("init", "by the program of its system", "cryptsetup in it"),
    ] {
        let (of_old, of_encrypted) = of(script);
        assert!(of_old.contains(old), "{script}: {of_old}");
        assert!(of_encrypted.contains(encrypted), "{script}: {of_encrypted}");
    }
}

#[test]
fn a_volume_that_libreelec_looks_for_and_is_not_here_is_told() {
    let mut facts = board();
    facts.volumes[0].label = Some("LIBREELEC".into());
    facts.partition.put("cmdline.txt", "boot=LABEL=LIBREELEC disk=LABEL=STORAGE quiet\n");
    let chain = StartChain::of(&facts);
    assert_eq!(chain.outcome(), Outcome::NotCertainAfter(Stage::Initramfs));
    let found = &chain.doubt().expect("it is not certain").found;
    assert!(found.contains("disk=LABEL=STORAGE, which the initramfs looks for"), "{found}");
    facts.volumes[1].label = Some("STORAGE".into());
    let chain = StartChain::of(&facts);
    let found = &chain.doubt().expect("it is not certain").found;
    assert!(found.contains("by words of its own"), "{found}");
}

#[test]
fn a_board_without_an_eeprom_starts_from_a_gpt_beside_an_mbr() {
    let mut facts = board();
    facts.model = Model::of_revision(&revision::decode(0xa0_2082));
    for name in ["bootcode.bin", "start.elf", "fixup.dat", "bcm2710-rpi-3-b.dtb"] {
        facts.partition.add(name, 1000);
    }
    let part = |number: u32, filesystem: &str| TablePartition {
        number,
        type_id: "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7".into(),
        filesystem: Some(filesystem.into()),
    };
    let partitions = vec![part(1, "vfat"), part(2, "ext4")];
    for (kind, expected) in
        [(TableKind::Gpt, Outcome::StopsAt(Stage::Partition)), (TableKind::Hybrid, Outcome::Starts)]
    {
        facts.table = Some(DiskTable { kind, partitions: partitions.clone() });
        assert_eq!(outcome(&facts), expected, "{kind:?}");
    }
    // One with an EEPROM reads it, if that is not too old.
    let mut later = board();
    later.table = Some(DiskTable { kind: TableKind::Gpt, partitions });
    let chain = StartChain::of(&later);
    assert_eq!((chain.outcome(), chain.certainty()), (Outcome::Starts, Certainty::Likely));
    assert!(chain.notes().any(|(_, note)| note.what.starts_with("it has a GPT")));
}

#[test]
fn a_root_is_never_made_optional() {
    let mut facts = board();
    facts.root.fstab = Some(format!("{FSTAB}PARTUUID=1a2b-02 / ext4 defaults 0 1\n"));
    let chain = StartChain::of(&facts);
    let remedies: Vec<&str> = chain.notes().map(|(_, note)| note.remedy.as_str()).collect();
    assert!(remedies.contains(&"take one of the lines out of /etc/fstab"), "{remedies:?}");
    let root = NamedVolume { partuuid: Some("1a2b-02".into()), ..facts.volumes[1].clone() };
    facts.volumes.push(NamedVolume { path: "/dev/sda2".into(), ..root });
    facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", "/dev/mmcblk0p2"));
    let chain = StartChain::of(&facts);
    let remedies: Vec<&str> = chain.notes().map(|(_, note)| note.remedy.as_str()).collect();
    assert!(remedies.iter().all(|remedy| !remedy.contains("nofail")), "{remedies:?}");
}

#[test]
fn a_slot_that_runs_is_started_again_by_its_own_line() {
    let config =
        "arm_64bit=1\n[boot_partition=1]\ncmdline=a.txt\n[boot_partition=2]\ncmdline=b.txt\n";
    let mut facts = board();
    facts.partition.put("config.txt", config);
    facts.partition.put("a.txt", CMDLINE);
    facts.partition.put("cmdline.txt", "console=ttyS0\n");
    // Of a card it is not known whether the firmware knows the filter.
    assert_eq!(doubt(&facts).1, Doubt::WhatIsRead);
    facts.running = Some(Running {
        root: Some("/dev/mmcblk0p2".into()),
        command_line: Some(format!("coherent_pool=1M {CMDLINE}")),
        ..Running::default()
    });
    facts.mounted_boot = Some("/dev/mmcblk0p1".into());
    assert_eq!(outcome(&facts), Outcome::Starts);
    assert_eq!(paths(&facts)[0].cmdline, "a.txt");
}

#[test]
fn a_partition_that_may_be_read_is_not_said_to_be_the_one() {
    let mut board = board();
    board.running = Some(Running::default());
    board.mounted_boot = Some("/dev/mmcblk0p2".into());
    let subjects = |board: &ChainFacts| -> Vec<Subject> {
        StartChain::of(board).notes().map(|(_, note)| note.subject).collect()
    };
    assert_eq!(subjects(&board), [Subject::OtherPartitionMounted]);
    board.medium.certainty = Certainty::Likely;
    assert_eq!(subjects(&board), [Subject::Other]);
}

#[test]
fn a_partition_that_the_bootloader_is_set_to_is_the_one_that_is_read() {
    let mut board = board();
    board.running = Some(Running::default());
    board.mounted_boot = Some("/dev/mmcblk0p1".into());
    let set =
        |board: &mut ChainFacts, settings: &str| board.eeprom.settings = Some(settings.into());
    let words = |board: &ChainFacts| {
        let chain = StartChain::of(board);
        chain.doubt().map(|link| link.found.clone())
    };
    let plain = words(&board);
    set(&mut board, "[all]\nPARTITION=1\n");
    assert_eq!(words(&board), plain);
    set(&mut board, "[all]\nPARTITION=2\n");
    assert_eq!(doubt(&board).1, Doubt::WhatIsRead);
    let found = "PARTITION=2 in the bootloader's settings names partition 2, which was not read";
    assert_eq!(words(&board).as_deref(), Some(found));
    // A file of the boot partition comes first.
    board.partition.put("autoboot.txt", "[all]\nboot_partition=1\n");
    assert_eq!(words(&board), plain);
    set(&mut board, "[all]\nBOOT_WATCHDOG_TIMEOUT=60\nBOOT_WATCHDOG_PARTITION=3\n");
    let chain = StartChain::of(&board);
    assert!(chain.notes().any(|(_, note)| note.what.contains("within 60 s")));
}

/// Ubuntu since 25.10.
#[test]
fn boot_files_that_wait_to_be_tried_are_told() {
    let mut facts = board();
    let config = "arm_64bit=1\nos_prefix=current/\ninitramfs initramfs8 followkernel\n";
    facts.partition.put("config.txt", config);
    facts.partition.put("current/cmdline.txt", CMDLINE);
    for name in ["kernel8.img", "initramfs8", "bcm2711-rpi-4-b.dtb"] {
        facts.partition.add(&format!("current/{name}"), 1000);
    }
    let mut with = |state: &str| {
        facts.partition.put("new/state", state);
        let chain = StartChain::of(&facts);
        assert_eq!(chain.outcome(), Outcome::Starts, "{state}");
        chain.notes().filter(|(_, note)| note.what.contains("new/")).count()
    };
    for (state, notes) in [("unknown\n", 1), ("trying", 1), ("bad\n", 1), ("good\n", 0), ("", 0)] {
        assert_eq!(with(state), notes, "{state}");
    }
}

#[test]
fn partitions_of_one_disk_with_one_name_are_told_apart_there() {
    let of = |path: &str, named: &str| {
        let mut facts = board();
        facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", named));
        let twin = NamedVolume {
            label: Some("root".into()),
            uuid: Some("5a".into()),
            ..volume(path, "1a2b-03", "ext4")
        };
        facts.volumes[1] = NamedVolume {
            path: facts.volumes[1].path.clone(),
            partuuid: Some("1a2b-02".into()),
            ..twin.clone()
        };
        facts.volumes.push(twin);
        let chain = StartChain::of(&facts);
        assert_eq!(chain.outcome(), Outcome::NotCertainAfter(Stage::CommandLine), "{path}");
        let remedy =
            chain.notes().map(|(_, note)| note.remedy.clone()).find(|one| one.contains("give the"));
        remedy.expect("a note")
    };
    let label = of("/dev/mmcblk0p3", "LABEL=root");
    let own = "1a2b-02 is /dev/mmcblk0p2, 1a2b-03 is /dev/mmcblk0p3";
    assert!(label.starts_with("name the root by its PARTUUID in cmdline.txt and"), "{label}");
    assert!(
        label.contains(own) && label.ends_with("another label: sudo e2label DEVICE NAME"),
        "{label}"
    );
    let uuid = of("/dev/mmcblk0p3", "UUID=5a");
    assert!(uuid.ends_with("another UUID: sudo tune2fs -U random DEVICE"), "{uuid}");
    let copy = of("/dev/sda2", "UUID=5a");
    assert!(copy.starts_with("take one of the disks off"), "{copy}");
}

#[test]
fn a_remedy_is_about_the_line_that_is_wrong() {
    let remedy = |facts: &ChainFacts| {
        let chain = StartChain::of(facts);
        chain.deciding().and_then(|link| link.stop.clone()).expect("it stops").remedy
    };
    // Home Assistant OS named a file that its update had renamed.
    let mut facts = board();
    facts.partition.put("config.txt", &format!("{CONFIG}cmdline=/cmdline-tryboot.txt\n"));
    assert_eq!(
        remedy(&facts),
        "take cmdline=/cmdline-tryboot.txt out of config.txt: cmdline.txt has a root"
    );
    facts.partition.put("cmdline.txt", "console=tty1\n");
    assert!(remedy(&facts).starts_with("put root="), "{}", remedy(&facts));
    // The root is named by the number of the swap area.
    let mut facts = board();
    facts.volumes[1].filesystem = Some("swap".into());
    let wrong = "correct root= in cmdline.txt on the boot partition: a root is no swap";
    assert_eq!(remedy(&facts), wrong);
    facts.volumes[1].filesystem = Some("btrfs".into());
    assert_eq!(remedy(&facts), "write rootfstype=btrfs into cmdline.txt");
}
