//! Kernels that have drivers, and the overlay, as modules.

use super::*;

const MODULES: &str = "kernel/drivers/mmc/core/mmc_block.ko:\nkernel/drivers/mmc/host/sdhci-iproc.ko:\n\
                       kernel/drivers/scsi/sd_mod.ko:\nkernel/drivers/usb/storage/usb-storage.ko.xz:\n\
                       kernel/drivers/usb/storage/uas.ko: kernel/drivers/usb/storage/usb-storage.ko.xz\n\
                       kernel/drivers/nvme/host/nvme.ko:\n";

/// With these modules in its initramfs, and its root at a node.
fn with(node: &str, dep: &str, inside: &[&str]) -> ChainFacts {
    let mut facts = board();
    let kernel = Kernel {
        release: Some("6.12.1".into()),
        modules: Modules::parse(dep, "kernel/fs/ext4/ext4.ko\n"),
        ..Kernel::default()
    };
    facts.images.kernels.insert("kernel8.img".into(), kernel);
    let members = inside.iter().map(|name| Member {
        path: format!("usr/lib/modules/6.12.1/kernel/drivers/{name}.ko"),
        mode: 0o100_644,
        size_bytes: 1000,
    });
    let listing = Listing { members: members.collect(), ..Listing::default() };
    facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
    facts.volumes[1].path = node.into();
    if node.starts_with("/dev/nvme") {
        in_module(&mut facts);
    }
    facts
}

/// A Compute Module 4, which has PCIe.
fn in_module(facts: &mut ChainFacts) {
    facts.model = Model::of_filter("cm4").expect("a board").0;
    facts.partition.add("bcm2711-rpi-cm4.dtb", 50_000);
}

#[test]
fn a_disk_that_no_driver_serves_is_not_reached() {
    let stops = Outcome::StopsAt(Stage::Initramfs);
    let card = ["mmc_block", "sdhci-iproc"];
    let usb = ["sd_mod", "usb-storage"];
    for (node, inside, ends) in [
        ("/dev/mmcblk0p2", &card[..], Outcome::Starts),
        ("/dev/sda2", &card[..], stops),
        ("/dev/sda2", &usb[..], Outcome::Starts),
        ("/dev/sda2", &usb[..1], stops),
        ("/dev/nvme0n1p2", &usb[..], stops),
        ("/dev/nvme0n1p2", &["nvme"][..], Outcome::Starts),
        // A card in a reader may be plugged in as either.
        ("partition 2", &card[..], Outcome::Starts),
        ("partition 2", &["ext4"][..], stops),
    ] {
        assert_eq!(outcome(&with(node, MODULES, inside)), ends, "{node} with {inside:?}");
    }
    assert_eq!(
        why(&with("/dev/sda2", MODULES, &card)),
        "neither the kernel nor an initramfs has the driver of a USB or SATA disk (sd_mod)"
    );
}

#[test]
fn a_controller_that_is_not_listed_serves_the_root_of_a_system_that_runs() {
    let stops = Outcome::StopsAt(Stage::Initramfs);
    let mut facts = with("/dev/sda2", MODULES, &["sd_mod", "mpt3sas"]);
    assert_eq!(outcome(&facts), stops);
    let mut told = |line: &str| {
        facts.running = Some(Running {
            root: Some("/dev/sda2".into()),
            command_line: Some(line.into()),
            release: Some("6.12.1".into()),
            ..Running::default()
        });
        outcome(&facts)
    };
    assert_ne!(told(CMDLINE), stops);
    // The line was changed since the start: it is about the next one.
    assert_eq!(told("root=/dev/mmcblk0p2 rootwait"), stops);
}

/// The kernel that runs found its root by this line. An initramfs of another kernel was made after it had started.
#[test]
fn an_initramfs_that_led_to_what_runs_is_doubted_and_one_made_since_is_not() {
    let stops = Outcome::StopsAt(Stage::Initramfs);
    let dep = format!("{MODULES}kernel/fs/btrfs/btrfs.ko:\n");
    let mut facts = with("/dev/mmcblk0p2", &dep, &["mmc_block", "sdhci-iproc"]);
    facts.volumes[1].filesystem = Some("btrfs".into());
    facts.root.fstab = Some(FSTAB.replace("ext4", "btrfs"));
    let line = CMDLINE.replace("ext4", "btrfs");
    facts.partition.put("cmdline.txt", &line);
    assert_eq!(outcome(&facts), stops);
    facts.running = Some(Running {
        root: Some("/dev/mmcblk0p2".into()),
        command_line: Some(line),
        release: Some("6.12.1".into()),
        ..Running::default()
    });
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Kernel));
    let chain = StartChain::of(&facts);
    let remedy = chain.doubt().and_then(|link| link.remedy.as_deref()).unwrap_or_default();
    assert!(remedy.starts_with("if the initramfs was made again since this start: "), "{remedy}");
    let mut subjects = chain.notes().map(|(_, note)| note.subject);
    assert!(subjects.any(|subject| subject == Subject::InitramfsInDoubt), "a survey tells it, too");
    let Some(Ok(listing)) = facts.images.initramfs.get_mut("initramfs8") else {
        panic!("the listing is there")
    };
    for member in &mut listing.members {
        member.path = member.path.replace("6.12.1", "6.6.1");
    }
    assert_eq!(outcome(&facts), stops);
}

#[test]
fn a_virtual_disk_counts_where_the_kernel_knows_one() {
    let dep = format!("{MODULES}kernel/drivers/block/virtio_blk.ko:\n");
    let stops = Outcome::StopsAt(Stage::Initramfs);
    assert_eq!(outcome(&with("partition 2", &dep, &["virtio_blk"])), Outcome::Starts);
    assert_eq!(outcome(&with("partition 2", &dep, &["ext4"])), stops);
}

#[test]
fn what_the_lists_do_not_name_is_not_missed() {
    for dep in ["", "kernel/drivers/net/r8152.ko:\n"] {
        assert_eq!(outcome(&with("/dev/sda2", dep, &[])), Outcome::Starts, "{dep:?}");
    }
}

#[test]
fn without_an_initramfs_the_kernel_has_to_have_it() {
    let mut facts = with("/dev/mmcblk0p2", MODULES, &[]);
    facts.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Initramfs));
}

/// Modules in places of their own (NixOS) are not looked for.
#[test]
fn an_initramfs_with_modules_elsewhere_is_not_judged() {
    let mut facts = with("/dev/mmcblk0p2", MODULES, &[]);
    let path = "nix/store/0-shrunk/lib/modules/6.12.1/mmc_block.ko".into();
    let member = Member { path, mode: 0o100_644, size_bytes: 1000 };
    let listing = Listing { members: vec![member], ..Listing::default() };
    facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
    assert_eq!(outcome(&facts), Outcome::Starts);
}

/// RPi-Distro/raspi-config#212: the kernel was updated, and the initramfs with the overlay was not.
#[test]
fn an_overlay_needs_its_module() {
    let mut facts = board();
    let kernel = Kernel {
        release: Some("6.1.21".into()),
        modules: Modules::parse("kernel/fs/overlayfs/overlay.ko:\n", "kernel/fs/ext4/ext4.ko\n"),
        ..Kernel::default()
    };
    facts.images.kernels.insert("kernel8.img".into(), kernel);
    let mut with = |line: &str, release: &str| {
        facts.partition.put("cmdline.txt", &format!("{line} {CMDLINE}"));
        let module = format!("lib/modules/{release}/kernel/fs/overlayfs/overlay.ko");
        let member = |path: String| Member { path, mode: 0o100_644, size_bytes: 1000 };
        let members = vec![member(module), member("scripts/overlay".into())];
        let listing = Listing { members, ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        outcome(&facts)
    };
    assert_eq!(with("boot=overlay", "6.1.21"), Outcome::Starts);
    assert_eq!(with("boot=overlay", "5.15.84"), Outcome::StopsAt(Stage::Initramfs));
    // Debian's overlayroot starts without it.
    assert_eq!(with("overlayroot=tmpfs", "5.15.84"), Outcome::Starts);
}

/// raspberrypi/linux, issues 5181 and 5285.
#[test]
fn a_root_on_a_card_is_not_reached_where_config_txt_switches_cards_off() {
    let stops = Outcome::StopsAt(Stage::Root);
    let unsure = Outcome::NotCertainAfter(Stage::CommandLine);
    let mut facts = board();
    for (setting, ends) in [
        ("dtoverlay=disable-emmc2", stops),
        ("dtparam=audio=on,sd=off", stops),
        ("dtparam=sd=off\ndtparam=sd=on", Outcome::Starts),
        ("[gpio4=1]\ndtoverlay=disable-emmc2", unsure),
        ("[cm4]\ndtoverlay=disable-emmc2", Outcome::Starts),
        ("#dtoverlay=disable-emmc2", Outcome::Starts),
        ("dtoverlay=sdhost", Outcome::Starts),
        ("dtparam=sd_poll_once=on", Outcome::Starts),
    ] {
        facts.partition.put("config.txt", &format!("{CONFIG}{setting}\n"));
        assert_eq!(outcome(&facts), ends, "{setting}");
    }
    facts.partition.put("config.txt", &format!("{CONFIG}dtoverlay=disable-emmc2\n"));
    let mut of_image = facts.clone();
    of_image.volumes[1].path = "partition 2".into();
    of_image.volumes[1].links = vec!["/dev/mmcblk0p2".into(), "/dev/sda2".into()];
    for (named, ends) in
        [("PARTUUID=1a2b-02", unsure), ("/dev/mmcblk0p2", stops), ("/dev/sda2", Outcome::Starts)]
    {
        of_image.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", named));
        assert_eq!(outcome(&of_image), ends, "{named}");
    }
    // The system was moved off the card, and the overlay followed.
    facts.volumes[1].path = "/dev/sda2".into();
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn a_root_on_nvme_or_usb_is_not_reached_where_config_txt_switches_pcie_off() {
    let stops = Outcome::StopsAt(Stage::Root);
    let unsure = Outcome::NotCertainAfter(Stage::CommandLine);
    let on = |model: &str, node: &str, setting: &str| {
        let mut facts = board();
        facts.model = Model::of_filter(model).expect("a board").0;
        for tree in ["bcm2711-rpi-cm4.dtb", "bcm2712-rpi-5-b.dtb", "bcm2712d0-rpi-5-b.dtb"] {
            facts.partition.add(tree, 50_000);
        }
        facts.volumes[1].path = node.into();
        facts.partition.put("config.txt", &format!("{CONFIG}{setting}\n"));
        facts
    };
    let (card, usb, nvme, image) = ("/dev/mmcblk0p2", "/dev/sda2", "/dev/nvme0n1p2", "partition 2");
    for (model, node, setting, ends) in [
        ("cm4", nvme, "dtparam=pcie=off", stops),
        ("cm4", nvme, "dtparam=pcie=off\ndtparam=pcie", Outcome::Starts),
        ("cm4", usb, "dtparam=pcie=off", Outcome::Starts),
        ("cm4", image, "dtparam=pcie=off", unsure),
        ("pi4", usb, "dtparam=pcie=off", stops),
        ("pi4", card, "dtparam=pcie=off", Outcome::Starts),
        ("pi4", image, "dtparam=pcie=off", unsure),
        ("pi4", usb, "dtparam=pciex1=off", Outcome::Starts),
        ("pi5", nvme, "dtparam=pciex1=off", stops),
        ("pi5", nvme, "dtparam=nvme=off", stops),
        ("pi5", nvme, "dtparam=nvme", Outcome::Starts),
        ("pi5", nvme, "dtparam=pcie=off", Outcome::Starts),
        ("pi5", usb, "dtparam=pciex1=off", Outcome::Starts),
    ] {
        assert_eq!(outcome(&on(model, node, setting)), ends, "{model}, {node}, {setting}");
    }
    // A bootloader that starts from NVMe switches it on by itself; which of the two wins is not known.
    let mut facts = on("pi5", nvme, "dtparam=pciex1=off");
    facts.mode = Some(Mode::Nvme);
    assert_eq!(outcome(&facts), unsure);
}

#[test]
fn a_root_on_nvme_needs_a_board_that_has_a_place_for_one() {
    let mut facts = board();
    let line = CMDLINE.replace("PARTUUID=1a2b-02", "/dev/nvme0n1p2");
    facts.partition.put("cmdline.txt", &line);
    facts.volumes[1].path = "partition 2".into();
    facts.volumes[1].links = vec!["/dev/nvme0n1p2".into()];
    facts.are_all_volumes = false;
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Root));
    assert_eq!(
        why(&facts),
        "cmdline.txt names an NVMe drive, and this board has no PCIe connector"
    );
    let mut of_module = facts.clone();
    in_module(&mut of_module);
    assert_eq!(outcome(&of_module), Outcome::Starts);
    // One that was changed by hand, and runs.
    facts.running = Some(Running { command_line: Some(line), ..Running::default() });
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::CommandLine));
}

/// A disk in a slot for cards will be a card in the board, too.
#[test]
fn the_disk_that_is_looked_at_says_what_it_is() {
    let mut facts = board();
    facts.volumes[1].path = "partition 2".into();
    for (setting, disk, ends) in [
        ("dtparam=sd=off", "/dev/mmcblk0", Outcome::StopsAt(Stage::Root)),
        ("dtparam=pcie=off", "/dev/mmcblk0", Outcome::Starts),
        ("dtparam=sd=off", "/dev/sdb", Outcome::NotCertainAfter(Stage::CommandLine)),
    ] {
        facts.medium.disks = vec![disk.into()];
        facts.partition.put("config.txt", &format!("{CONFIG}{setting}\n"));
        assert_eq!(outcome(&facts), ends, "{setting}, {disk}");
    }
}
