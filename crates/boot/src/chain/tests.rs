//! Starts that lead to a running system, and where others end.

use super::*;
use crate::initramfs::{Listing, Member};
use crate::modules::Modules;
use crate::proof::Kernel;
use crate::revision;

mod drivers;
mod interrupted;
mod systems;
mod tables;
mod trees;

const CONFIG: &str = "arm_64bit=1\ninitramfs initramfs8 followkernel\n";
const CMDLINE: &str = "console=tty1 root=PARTUUID=1a2b-02 rootfstype=ext4 rootwait\n";
const FSTAB: &str =
    "PARTUUID=1a2b-01 /boot/firmware vfat defaults 0 2\nPARTUUID=1a2b-02 / ext4 noatime 0 1\n";

fn volume(path: &str, partuuid: &str, filesystem: &str) -> NamedVolume {
    NamedVolume {
        path: path.into(),
        partuuid: Some(partuuid.into()),
        filesystem: Some(filesystem.into()),
        ..NamedVolume::default()
    }
}

/// A Raspberry Pi 4 with its system on a card.
fn board() -> ChainFacts {
    let mut partition = BootPartition::default();
    for name in ["start4.elf", "kernel8.img", "initramfs8"] {
        partition.add(name, 1000);
    }
    partition.put("config.txt", CONFIG);
    partition.put("cmdline.txt", CMDLINE);
    partition.add("fixup4.dat", 7000);
    partition.add("bcm2711-rpi-4-b.dtb", 50_000);
    ChainFacts {
        model: Model::of_revision(&revision::decode(0xc03114)),
        board: "Raspberry Pi 4 Model B".into(),
        serial: None,
        other_loader: None,
        bootloader: None,
        eeprom: Eeprom::default(),
        medium: Medium {
            disks: vec!["mmcblk0".into()],
            partition: Some("mmcblk0p1".into()),
            certainty: Certainty::Certain,
            why: "boot-mode is 1".into(),
        },
        mode: Some(Mode::Card),
        table: None,
        choice: Choice::default(),
        partition,
        is_whole: true,
        unread: None,
        encodings: BTreeMap::new(),
        images: Images::default(),
        loaders: BTreeMap::new(),
        faulty_kernels: BTreeMap::new(),
        volumes: vec![
            volume("/dev/mmcblk0p1", "1a2b-01", "vfat"),
            volume("/dev/mmcblk0p2", "1a2b-02", "ext4"),
        ],
        are_all_volumes: true,
        mounted_boot: None,
        kernels_are_elsewhere: false,
        updates_miss_mount: false,
        root: RootFiles { fstab: Some(FSTAB.into()), ..RootFiles::default() },
        running: None,
    }
}

fn outcome(facts: &ChainFacts) -> Outcome {
    StartChain::of(facts).outcome()
}

fn why(facts: &ChainFacts) -> String {
    let chain = StartChain::of(facts);
    let stop = chain.deciding().and_then(|link| link.stop.clone());
    stop.expect("it stops").why
}

#[test]
fn a_sound_card_starts() {
    let chain = StartChain::of(&board());
    assert_eq!(chain.outcome(), Outcome::Starts);
    let stages: Vec<Stage> = chain.links().iter().map(|link| link.stage).collect();
    assert!(stages.is_sorted() && stages.len() == 10, "{stages:?}");
}

#[test]
fn a_clone_that_kept_the_old_name_stops_at_its_root() {
    let mut board = board();
    board.volumes[1].partuuid = Some("3c4d-02".into());
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Root));
    assert_eq!(
        why(&board),
        "cmdline.txt names PARTUUID=1a2b-02; there is 3c4d-02 (/dev/mmcblk0p2)"
    );
}

#[test]
fn two_disks_with_one_identifier_are_not_certain() {
    let mut board = board();
    board.volumes.push(volume("/dev/sda2", "1a2b-02", "ext4"));
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::CommandLine));
}

#[test]
fn a_line_before_the_words_takes_the_root_away() {
    for text in [format!("\n{CMDLINE}"), format!("# mine\n{CMDLINE}"), String::new()] {
        let mut board = board();
        board.partition.put("cmdline.txt", &text);
        assert_eq!(outcome(&board), Outcome::StopsAt(Stage::CommandLine), "{text:?}");
    }
}

#[test]
fn a_kernel_that_is_not_there_stops_the_firmware() {
    let mut board = board();
    board.partition.put("config.txt", "kernel=vmlinuz\n");
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Kernel));
    board.partition.put("config.txt", "kernel=u-boot.bin\n");
    board.partition.add("u-boot.bin", 1000);
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Settings));
}

#[test]
fn a_file_without_a_kernel_is_not_taken_for_one() {
    let mut board = board();
    board.faulty_kernels = [("kernel8.img".to_string(), Fault::NoKernel)].into();
    let chain = StartChain::of(&board);
    assert_eq!(chain.outcome(), Outcome::NotCertainAfter(Stage::Settings));
    assert_eq!(chain.doubt().map(|link| link.doubt), Some(Doubt::Other));
    board.faulty_kernels = [("kernel8.img".to_string(), Fault::Cut)].into();
    assert_eq!(why(&board), "kernel8.img ends too early");
}

/// rsta2/circle#384: the firmware looks for that name, too, where config.txt names none.
#[test]
fn a_kernel_for_both_boards_may_be_the_one_that_is_taken() {
    let mut board = board();
    board.partition.put("config.txt", "arm_64bit=0\n");
    board.partition.add("kernel7l.img", 1000);
    assert_eq!(outcome(&board), Outcome::Starts);
    board.partition.add("kernel8-32.img", 1000);
    board.faulty_kernels = [("kernel8-32.img".to_string(), Fault::NoKernel)].into();
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Partition));
}

#[test]
fn a_stub_of_megabytes_is_uefi_and_needs_no_kernel() {
    let mut board = board();
    board.partition.put("config.txt", "kernel=none.img\narmstub=RPI_EFI.fd\n");
    board.partition.add("RPI_EFI.fd", 2 << 20);
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Settings));
    // A stub of the usual size goes on to the kernel.
    board.partition.put("config.txt", "kernel=none.img\narmstub=armstub8-gic.bin\n");
    board.partition.add("armstub8-gic.bin", 256);
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Kernel));
}

#[test]
fn a_system_that_names_its_root_by_another_word_is_not_certain() {
    for line in [
        "imgpart=UUID=1 bootpart=UUID=2 datapart=UUID=3",
        "label=BATOCERA console=tty3",
        "pmos_boot_uuid=1 pmos_root_uuid=2",
        "snapd_recovery_mode=install",
        "boot=live components",
        "root=/dev/ram0 tce=LABEL=pi",
    ] {
        let mut board = board();
        board.partition.put("cmdline.txt", line);
        let outcome = outcome(&board);
        assert!(matches!(outcome, Outcome::NotCertainAfter(_)), "{line}: {outcome:?}");
    }
}

#[test]
fn an_initramfs_of_another_make_may_find_its_root_by_itself() {
    let mut board = board();
    board.partition.put("config.txt", "arm_64bit=1\ninitramfs rescue.cpio\n");
    board.partition.add("rescue.cpio", 1000);
    board.partition.put("cmdline.txt", "console=tty1\n");
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Initramfs));
    // What Debian's packages make needs it.
    board.partition.put("config.txt", CONFIG);
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::CommandLine));
}

#[test]
fn without_an_initramfs_the_kernel_must_know_the_root() {
    let mut board = board();
    board.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!(outcome(&board), Outcome::Starts);
    board.partition.put("cmdline.txt", "root=UUID=77 rootwait\n");
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Initramfs));
}

#[test]
fn the_firmwares_program_has_to_be_on_the_card_of_a_pi_4_and_not_of_a_pi_5() {
    let mut board = board();
    let mut partition = BootPartition::default();
    for name in ["kernel8.img", "kernel_2712.img", "initramfs8", "bcm2712-rpi-5-b.dtb"] {
        partition.add(name, 1000);
    }
    partition.put("config.txt", CONFIG);
    partition.put("cmdline.txt", CMDLINE);
    board.partition = partition;
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Partition));
    // A capture lists a few of the files alone.
    board.is_whole = false;
    assert_eq!(outcome(&board), Outcome::Starts);
    board.is_whole = true;
    board.model = Model::of_revision(&revision::decode(0xa04171));
    assert_eq!(outcome(&board), Outcome::Starts);
}

#[test]
fn a_line_of_fstab_for_a_disk_that_is_gone_ends_in_the_emergency_shell() {
    let mut board = board();
    board
        .root
        .fstab
        .get_or_insert_default()
        .push_str("UUID=gone /media/backup ext4 defaults 0 2\n");
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::Mounts));
    board.root.fstab =
        board.root.fstab.map(|text| text.replace("backup ext4 defaults", "backup ext4 nofail"));
    assert_eq!(outcome(&board), Outcome::Starts);
}

#[test]
fn a_link_of_a_kind_that_was_not_read_is_not_known_and_one_that_was_is_absent() {
    let mut facts = board();
    facts.root.fstab =
        Some(format!("{FSTAB}/dev/disk/by-id/usb-Stick-part1 /srv ext4 defaults 0 2\n"));
    facts.root.is_systemd = Some(true);
    let chain = StartChain::of(&facts);
    assert_eq!(chain.certainty(), Certainty::NotKnown);
    assert!(chain.links().iter().all(|link| link.stop.is_none()));

    facts.volumes[1].links = vec!["/dev/disk/by-id/mmc-Card-part2".into()];
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Mounts));

    let mut facts = board();
    facts.partition.put("cmdline.txt", "root=/dev/disk/by-path/platform-part2 rootwait\n");
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
}

#[test]
fn another_type_than_rootfstype_stops_a_card_and_is_a_reservation_of_the_system_that_was_told_so() {
    const TOLD: &str = "root=PARTUUID=1a2b-02 rootfstype=btrfs rootwait";
    let mut facts = board();
    facts.partition.put("cmdline.txt", TOLD);
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Root));
    let running = Running { root: Some("/dev/mmcblk0p2".into()), ..Running::default() };
    let told = |line: &str| Some(Running { command_line: Some(line.into()), ..running.clone() });
    // The line was changed since the start: it is about the next one.
    facts.running = told("bcm2708_fb.fbwidth=0 root=PARTUUID=1a2b-02 rootfstype=ext4 rootwait");
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Root));
    facts.running = told(&format!("bcm2708_fb.fbwidth=0 {TOLD}"));
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
    let chain = StartChain::of(&facts);
    let found = chain.deciding().map(|link| link.found.clone()).unwrap_or_default();
    assert!(found.starts_with("it runs, so something here is not understood: "), "{found}");

    facts.partition.put("cmdline.txt", "root=PARTUUID=1a2b-02 rootfstype=ext3 rootwait");
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
}

#[test]
fn a_kernel_that_is_a_loader_by_its_bytes_hands_on() {
    let mut facts = board();
    facts.loaders.insert("kernel8.img".into(), "U-Boot");
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Settings));
    // On a card, a loader that is not there is not loaded.
    facts.partition.put("config.txt", "arm_64bit=1\nkernel=u-boot.bin\n");
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Kernel));
    facts.running = Some(Running::default());
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Settings));
}

#[test]
fn what_only_the_board_knows_is_not_certain() {
    let mut board = board();
    board.partition.put("config.txt", &format!("{CONFIG}[gpio4=1]\ncmdline=other.txt\n"));
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Partition));
    board.partition.put("config.txt", &format!("{CONFIG}[pi5]\ncmdline=other.txt\n"));
    assert_eq!(outcome(&board), Outcome::Starts);
    board.model = Model::other();
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Firmware));
}

#[test]
fn settings_of_included_files_count() {
    let mut board = board();
    board.partition.put("config.txt", "include mine.txt\n");
    board.partition.put("mine.txt", "include config.txt\narm_64bit=1\ncmdline=own.txt\n");
    assert_eq!(outcome(&board), Outcome::StopsAt(Stage::CommandLine));
    board.partition.put("own.txt", CMDLINE);
    assert_eq!(outcome(&board), Outcome::Starts);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(config in "[a-z=\\[\\]#\n./0-9 ]{0,80}", line in "\\PC{0,60}") {
        let mut board = board();
        board.partition.put("config.txt", &config);
        board.partition.put("cmdline.txt", &line);
        outcome(&board);
    }
}

#[test]
fn firmware_older_than_its_board_does_not_start_it() {
    let mut facts = board();
    let chain = StartChain::of(&facts);
    assert_eq!(chain.outcome(), Outcome::Starts);
    assert!(chain.notes().any(|(_, note)| note.what.contains("start4.elf: is not compatible")));
    facts.model = Model::of_filter("pi400").expect("a board").0;
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Partition));
    facts.partition.add("bcm2711-rpi-400.dtb", 50_000);
    let chain = StartChain::of(&facts);
    assert_eq!(chain.outcome(), Outcome::Starts);
    assert_eq!(chain.notes().count(), 0);
}

/// The kernel compares without regard to case, the programs of an initial RAM filesystem letter by letter.
#[test]
fn capital_letters_in_a_name_matter_to_an_initramfs_and_to_fstab() {
    let mut facts = board();
    facts.partition.put("cmdline.txt", &CMDLINE.replace("1a2b-02", "1A2B-02"));
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Root));
    assert!(why(&facts).contains("letter by letter with 1a2b-02"), "{}", why(&facts));
    facts.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!(outcome(&facts), Outcome::Starts);
    let given =
        Running { command_line: Some(CMDLINE.replace("1a2b", "1A2B")), ..Running::default() };
    facts.partition.put("config.txt", CONFIG);
    facts.running = Some(given);
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));

    let mut facts = board();
    for (line, ends) in [
        ("PARTUUID=1A2B-01 /boot/firmware vfat defaults 0 2\n", Outcome::StopsAt(Stage::Mounts)),
        ("PARTUUID=1A2B-01 /boot/firmware vfat nofail 0 2\n", Outcome::Starts),
        ("PARTUUID=1A2B-02 / ext4 noatime 0 1\n", Outcome::Starts),
    ] {
        facts.root.fstab = Some(line.into());
        assert_eq!(outcome(&facts), ends, "{line}");
    }
    let chain = StartChain::of(&facts);
    let note = chain.notes().last().expect("a note").1.what.clone();
    assert!(note.ends_with("the root may stay read-only"), "{note}");
}

#[test]
fn what_only_programs_understand_needs_an_initramfs() {
    let mut facts = board();
    for named in ["/dev/disk/by-partuuid/1a2b-02", "PARTUUID=\"1a2b-02\""] {
        facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", named));
        facts.partition.put("config.txt", CONFIG);
        assert_eq!(outcome(&facts), Outcome::Starts, "{named}");
        facts.partition.put("config.txt", "arm_64bit=1\n");
        assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Initramfs), "{named}");
        assert!(why(&facts).ends_with(&format!("root={named}")), "{}", why(&facts));
    }
}

#[test]
fn an_encrypted_root_needs_an_encrypted_volume() {
    let mut facts = board();
    let line = "root=/dev/mapper/root cryptdevice=/dev/mmcblk0p2:root rootwait";
    facts.partition.put("cmdline.txt", line);
    assert_eq!(why(&facts), "root=/dev/mapper/root is encrypted, and no volume of this machine is");
    // Another disk of the board may be.
    facts.are_all_volumes = false;
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
    facts.root.crypttab = Some("root PARTUUID=1a2b-02 none luks,initramfs\n".into());
    let holds = "and /dev/mmcblk0p2, which it is opened from, holds ext4";
    assert_eq!(why(&facts), format!("root=/dev/mapper/root is encrypted, {holds}"));
    facts.volumes[1].filesystem = Some("crypto_LUKS".into());
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
}

#[test]
fn another_subvolume_than_the_running_one_is_another_root() {
    let mut facts = board();
    facts.volumes[1].filesystem = Some("btrfs".into());
    facts.root.fstab = Some(FSTAB.replace("ext4", "btrfs"));
    let line = CMDLINE.replace("rootfstype=ext4", "rootflags=noatime,subvol=@");
    facts.partition.put("cmdline.txt", &line);
    for (own, ends) in [
        ("/@", Outcome::Starts),
        ("/@snapshots/5/snapshot", Outcome::NotCertainAfter(Stage::CommandLine)),
        ("/", Outcome::NotCertainAfter(Stage::CommandLine)),
    ] {
        let root = Some("/dev/mmcblk0p2".into());
        facts.running = Some(Running { root, subvolume: Some(own.into()), ..Running::default() });
        assert_eq!(outcome(&facts), ends, "{own}");
    }
}

#[test]
fn a_root_in_quotes_is_found_by_the_kernel_and_not_by_the_scripts_of_initramfs_tools() {
    for written in ["root=\"PARTUUID=1a2b-02\"", "\"root=PARTUUID=1a2b-02\""] {
        let mut facts = board();
        facts.partition.put("cmdline.txt", &CMDLINE.replace("root=PARTUUID=1a2b-02", written));
        assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Root), "{written}");
        assert!(why(&facts).starts_with("the quotes around the value of root="), "{}", why(&facts));
        facts.partition.put("config.txt", "arm_64bit=1\n");
        assert_eq!(outcome(&facts), Outcome::Starts, "{written}");
    }
}

#[test]
fn a_subvolume_that_is_no_longer_named_is_not_certain() {
    let mut facts = board();
    facts.volumes[1].filesystem = Some("btrfs".into());
    facts.root.fstab = Some(FSTAB.replace("ext4", "btrfs"));
    let line = CMDLINE.replace("rootfstype=ext4 ", "");
    let told = |own: &str, given: &str| {
        let root = Some("/dev/mmcblk0p2".into());
        let given = Some(given.to_string());
        Some(Running {
            root,
            subvolume: Some(own.into()),
            command_line: given,
            ..Running::default()
        })
    };
    let named = line.replace("rootwait", "rootflags=subvol=@ rootwait");
    let numbered = line.replace("rootwait", "rootflags=subvolid=256 rootwait");
    let unsure = Outcome::NotCertainAfter(Stage::CommandLine);
    for (text, own, given, ends) in [
        (&line, "/@", &named, unsure),
        // It came up so: the default subvolume is the one.
        (&line, "/@", &line, Outcome::Starts),
        (&line, "/", &named, Outcome::Starts),
        (&numbered, "/@", &named, unsure),
        (&numbered, "/", &line, unsure),
        (&numbered, "/@", &numbered, Outcome::Starts),
    ] {
        facts.partition.put("cmdline.txt", text);
        facts.running = told(own, given);
        assert_eq!(outcome(&facts), ends, "{text} on {own}, given {given}");
    }
}

#[test]
fn a_card_whose_root_is_a_subvolume_starts_from_one_that_is_there() {
    let mut board = board();
    board.volumes[1].filesystem = Some("btrfs".into());
    board.root.subvolumes = Some(BTreeSet::from(["@".to_string(), "@home".to_string()]));
    board.root.subvolume_numbers = Some(BTreeSet::from([0, 5, 256, 257]));
    board.root.default_subvolume = Some(String::new());
    let with = |flags: &str, table: &str| {
        let mut board = board.clone();
        let line = format!("root=PARTUUID=1a2b-02 rootfstype=btrfs rootwait {flags}\n");
        board.partition.put("cmdline.txt", &line);
        board.root.fstab = Some(table.into());
        outcome(&board)
    };
    let gone = Outcome::StopsAt(Stage::Root);
    for (flags, expected) in [
        ("", Outcome::Starts),
        ("rootflags=subvol=@", Outcome::Starts),
        ("rootflags=noatime,subvol=/@", Outcome::Starts),
        ("rootflags=subvolid=256", Outcome::Starts),
        ("rootflags=subvol=@root", gone),
        ("rootflags=subvolid=300", gone),
    ] {
        assert_eq!(with(flags, ""), expected, "{flags}");
    }
    let home = "PARTUUID=1a2b-02 /home btrfs subvol=@homes";
    let flags = "rootflags=subvol=@";
    assert_eq!(with(flags, &format!("{home} 0 0\n")), Outcome::StopsAt(Stage::Mounts));
    assert_eq!(with(flags, &format!("{home},nofail 0 0\n")), Outcome::Starts);
    assert_eq!(with(flags, "PARTUUID=1a2b-02 /home btrfs subvol=/@home 0 0\n"), Outcome::Starts);
    assert_eq!(with(flags, "PARTUUID=1a2b-02 / btrfs subvol=@old 0 0\n"), Outcome::Starts);
}

#[test]
fn f2fs_does_not_mount_with_pages_of_16_kib() {
    let mut facts = board();
    facts.volumes[1].filesystem = Some("f2fs".into());
    facts.partition.put("cmdline.txt", &CMDLINE.replace("ext4", "f2fs"));
    facts.root.fstab = Some(FSTAB.replace("ext4", "f2fs"));
    facts.model = Model::of_revision(&revision::decode(0xa04171));
    for name in ["kernel_2712.img", "bcm2712-rpi-5-b.dtb"] {
        facts.partition.add(name, 1000);
    }
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Kernel));
    let path = &paths(&facts)[0];
    let release = Some("6.12.47+rpt-rpi-2712".to_string());
    assert_eq!(path.kernel, "kernel_2712.img");
    facts.running = Some(Running { release, ..Running::default() });
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Settings));
    facts.running = None;
    facts.partition.put("config.txt", &format!("{CONFIG}kernel=kernel8.img\n"));
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn a_partition_counted_from_another_is_not_followed() {
    let mut facts = board();
    let root = "PARTUUID=1a2b-01/PARTNROFF=1";
    facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", root));
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
}

#[test]
fn a_first_starts_program_at_the_other_mount_point_switches_the_board_off() {
    let mut facts = board();
    facts.partition.add("firstrun.sh", 10);
    for (point, ends) in
        [("/boot/firmware", Outcome::Starts), ("/boot", Outcome::StopsAt(Stage::Init))]
    {
        let run = format!("{} systemd.run={point}/firstrun.sh\n", CMDLINE.trim_end());
        facts.partition.put("cmdline.txt", &run);
        assert_eq!(outcome(&facts), ends, "{point}");
    }
    // Raspberry Pi OS has a script in its initramfs that corrects the place.
    let mut with = |script: &str| {
        let modules = "usr/lib/modules/6.12.1/kernel/fs/ext4/ext4.ko.xz";
        let member = |path: &str| Member { path: path.into(), mode: 0o100_644, size_bytes: 100 };
        let listing =
            Listing { members: vec![member(modules), member(script)], ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        outcome(&facts)
    };
    assert_eq!(with("scripts/local"), Outcome::StopsAt(Stage::Init));
    assert_eq!(with("scripts/local-bottom/imager_fixup"), Outcome::Starts);
}

#[test]
fn an_efi_partition_is_for_boards_with_an_eeprom() {
    let mut facts = board();
    let part = |number, type_id: &str, filesystem: &str| TablePartition {
        number,
        type_id: type_id.into(),
        filesystem: Some(filesystem.into()),
    };
    let partitions = vec![part(1, "0xef", "vfat"), part(2, "0x83", "ext4")];
    facts.table = Some(DiskTable { kind: TableKind::Mbr, partitions });
    assert_eq!(outcome(&facts), Outcome::Starts);
    facts.model = Model::of_revision(&revision::decode(0xa02082));
    assert_eq!(why(&facts), "partition 1 is FAT, but its type in the table is 0xef");
}

#[test]
fn a_card_with_a_menu_of_systems_is_not_certain() {
    let mut facts = board();
    facts.partition = BootPartition::default();
    facts.partition.put("config.txt", CONFIG);
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Partition));
    facts.partition.add("recover4.elf", 1000);
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Medium));
}

#[test]
fn a_setting_with_spaces_around_its_equals_sign_may_not_count() {
    let mut facts = board();
    facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", "UUID=77"));
    facts.volumes[1].uuid = Some("77".into());
    facts.partition.put("config.txt", "arm_64bit=1\nauto_initramfs = 1\n");
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Partition));
    // Both ways lead to the same end.
    facts.partition.put("config.txt", &format!("{CONFIG}arm_64bit = 1\narm_freq = 2000\n"));
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn the_small_firmware_has_to_be_there_beside_the_usual_one() {
    let mut facts = board();
    facts.partition.put("config.txt", &format!("{CONFIG}gpu_mem=16\n"));
    assert_eq!(why(&facts), "gpu_mem=16 asks for start4cd.elf, which is not there");
    facts.partition.add("start4cd.elf", 1000);
    assert_eq!(outcome(&facts), Outcome::Starts);
    facts.partition.put("config.txt", &format!("{CONFIG}[pi3]\nstart_x=1\n"));
    assert_eq!(outcome(&facts), Outcome::Starts);
    facts.partition.put("config.txt", &format!("{CONFIG}start_file=startcafe.elf\n"));
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Partition));
    // A capture lists a few of the files alone.
    facts.is_whole = false;
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn modules_in_an_initramfs_count_where_the_tools_of_distributions_put_them_and_may_be_elsewhere() {
    let mut facts = board();
    let kernel = Kernel {
        release: Some("6.12.1".into()),
        modules: Modules::parse("kernel/fs/ext4/ext4.ko.xz:\n", "kernel/fs/fat/vfat.ko\n"),
        ..Kernel::default()
    };
    facts.images.kernels.insert("kernel8.img".into(), kernel);
    let mut with = |path: &str| {
        let member = Member { path: path.into(), mode: 0o100_644, size_bytes: 1000 };
        let listing = Listing { members: vec![member], ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        let chain = StartChain::of(&facts);
        let link = chain.links().iter().find(|link| link.stage == Stage::Initramfs);
        (chain.outcome(), link.expect("it was looked at").certainty)
    };
    let stops = Outcome::StopsAt(Stage::Initramfs);
    assert_eq!(with("usr/lib/modules/6.12.1/kernel/fs/ext4/ext4.ko.xz").0, Outcome::Starts);
    assert_eq!(
        with("usr/lib/modules/6.6.1/kernel/fs/ext4/ext4.ko.xz"),
        (stops, Certainty::Certain)
    );
    assert_eq!(with("init"), (stops, Certainty::Likely));
    assert_eq!(with("modules/ext4.ko").0, Outcome::NotCertainAfter(Stage::Kernel));
}

#[test]
fn a_first_program_that_is_not_there_is_made_good_by_scripts_that_know_another() {
    let mut facts = board();
    facts.root.init = Some(("/opt/start".into(), false));
    facts.root.usual_init = Some("/sbin/init".into());
    let mut with = |path: &str| {
        let member = Member { path: path.into(), mode: 0o100_644, size_bytes: 1000 };
        let listing = Listing { members: vec![member], ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        outcome(&facts)
    };
    assert_eq!(with("scripts/local"), Outcome::Starts);
    assert_eq!(with("usr/lib/dracut/hooks"), Outcome::Starts);
    assert_eq!(with("init_functions"), Outcome::StopsAt(Stage::Init));
    facts.root.usual_init = None;
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Init));
}

/// RPi-Distro/raspi-config#117, hypriot/image-builder-rpi#352.
#[test]
fn a_first_program_that_cannot_be_run_is_none() {
    let mut facts = board();
    facts.root.init = Some(("/opt/start".into(), true));
    facts.root.usual_init = Some("/sbin/init".into());
    let member = Member { path: "scripts/local".into(), mode: 0o100_644, size_bytes: 1000 };
    let listing = Listing { members: vec![member], ..Listing::default() };
    for (defect, words) in [
        (Defect::Empty, "/opt/start is empty"),
        (Defect::NotExecutable, "/opt/start may not be executed"),
        (Defect::NoProgram, "/opt/start is neither a program nor a script"),
        (Defect::OtherProcessor, "/opt/start is for another processor"),
    ] {
        facts.root.init_defect = Some(defect);
        facts.images.initramfs.clear();
        assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Init), "{defect:?}");
        assert_eq!(why(&facts), words);
        // Scripts of initramfs-tools pass over what they may not execute.
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing.clone()));
        let is_passed_over = defect == Defect::NotExecutable;
        assert_eq!(outcome(&facts) == Outcome::Starts, is_passed_over, "{defect:?}");
    }
    facts.root.init_defect = None;
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn an_option_of_another_filesystem_is_refused_with_the_root() {
    let mut facts = board();
    let mut with = |flags: &str, filesystem: &str| {
        let line = CMDLINE.replace("rootfstype=ext4", &format!("rootflags={flags}"));
        facts.partition.put("cmdline.txt", &line);
        facts.volumes[1].filesystem = Some(filesystem.into());
        facts.root.fstab = Some(FSTAB.replace("ext4", filesystem));
        outcome(&facts)
    };
    for flags in ["subvol=@", "noatime,compress=zstd:1", "subvolid=5"] {
        assert_eq!(with(flags, "ext4"), Outcome::StopsAt(Stage::Root), "{flags}");
    }
    assert_eq!(with("noatime,commit=60,data=journal", "ext4"), Outcome::Starts);
    assert_eq!(with("data=ordered", "btrfs"), Outcome::StopsAt(Stage::Root));
    assert_eq!(with("noatime,commit=60,compress=zstd:1", "btrfs"), Outcome::Starts);
}
