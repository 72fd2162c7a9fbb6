//! What real systems have in their boot files: each case changes a captured Raspberry Pi 4.

use rubus_boot::chain::Outcome::{self, NotCertainAfter, Starts, StopsAt};
use rubus_boot::chain::{Stage, Subject};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Bootloader, Mount};

use super::{CMDLINE, CONFIG, Case, FSTAB, LINE, SETTINGS, TABLE};

pub(super) type Change = fn(&mut Case);

/// All cases: those of each outcome, one after the other.
pub(super) const CASES: &[(&str, Change)] = &[
    ("nothing is changed", |_| {}),
    ("two lines", |c| c.write(CMDLINE, format!("{LINE}\nusb-storage.quirks=152d:0578:u\n"))),
    ("a comment first", |c| c.write(CMDLINE, format!("# old: root=/dev/mmcblk0p2\n{LINE}\n"))),
    ("a comment at the end", |c| c.write(CMDLINE, format!("{LINE}\n#{LINE}\n"))),
    ("a # in the line", |c| c.write(CMDLINE, format!("{LINE} #root=/dev/sda2\n"))),
    ("CRLF", |c| c.write(CMDLINE, format!("{LINE}\r\n\r\n"))),
    ("a mark before another word", |c| c.write(CMDLINE, format!("\u{feff}{LINE}\n"))),
    ("no line feed", |c| c.write(CMDLINE, LINE)),
    ("tabs", |c| c.write(CMDLINE, format!("\t{}\t \n", LINE.replace(' ', "\t")))),
    ("root by device", |c| root(c, "/dev/mmcblk0p2")),
    ("root by UUID", |c| root(c, "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8")),
    ("root by label", |c| root(c, "LABEL=rootfs")),
    ("two roots, the last counts", |c| c.write(CMDLINE, format!("root=/dev/sda2 {LINE}\n"))),
    ("overlayroot", |c| c.write(CMDLINE, format!("overlayroot=tmpfs {LINE}\n"))),
    ("boot=overlay", |c| c.write(CMDLINE, format!("boot=overlay {LINE}\n"))),
    ("the first start", |c| {
        c.write(CMDLINE, format!("{LINE} init=/usr/lib/raspberrypi-sys-mods/firstboot\n"))
    }),
    ("DietPi's line", |c| {
        c.write(
            CMDLINE,
            "root=PARTUUID=e6c1a9f4-02 rootfstype=ext4 rootwait net.ifnames=0 console=tty1\n",
        )
    }),
    ("a long line whose root is early", |c| {
        let words: Vec<String> = (0..120).map(|i| format!("x{i}.opt=value{i}")).collect();
        c.write(CMDLINE, format!("{LINE} {}\n", words.join(" ")));
    }),
    ("config.txt with CRLF", |c| c.write(CONFIG, SETTINGS.replace('\n', "\r\n"))),
    ("config.txt with a mark", |c| c.write(CONFIG, "\u{feff}auto_initramfs=1\narm_64bit=1\n")),
    ("a filter for another board at the end", |c| {
        c.write(CONFIG, format!("{SETTINGS}[cm4]\notg_mode=1\n"))
    }),
    ("an included file", |c| {
        c.write(CONFIG, format!("{SETTINGS}include usercfg.txt\n"));
        c.write("/boot/firmware/usercfg.txt", "[pi4]\narm_freq=2000\n");
    }),
    ("an included file that is not there", |c| {
        c.write(CONFIG, format!("{SETTINGS}include local.txt\n"))
    }),
    ("Kali's kernels", |c| {
        c.write(
            CONFIG,
            "[pi3]\nkernel=kernel8-alt.img\n[pi4]\nkernel=kernel8l-alt.img\n[all]\narm_64bit=1\n",
        );
        c.write("/boot/firmware/kernel8l-alt.img", "");
    }),
    ("Ubuntu 22.04", |c| {
        c.write(CONFIG, "[all]\nkernel=vmlinuz\ncmdline=cmdline.txt\ninitramfs initrd.img followkernel\n[pi4]\nmax_framebuffers=2\n[cm4]\ndtoverlay=dwc2\n[all]\narm_64bit=1\n");
        c.write("/boot/firmware/vmlinuz", "");
        c.write("/boot/firmware/initrd.img", "");
        c.device("mmcblk0p2").identity.label = Some("writable".into());
        root(c, "LABEL=writable");
    }),
    ("Ubuntu 25.10", |c| prefixed(c, "current/", "[tryboot]\nos_prefix=new/\n")),
    ("Ubuntu 25.10 without a line at the top", |c| {
        prefixed(c, "current/", "[tryboot]\nos_prefix=new/\n");
        c.remove(CMDLINE);
    }),
    ("os_prefix", |c| prefixed(c, "rescue/", "")),
    ("a trial's own line", |c| {
        c.write(CONFIG, format!("{SETTINGS}[tryboot]\ncmdline=cmdline-try.txt\n[all]\n"))
    }),
    ("initramfs with an address", |c| {
        c.write(CONFIG, "arm_64bit=1\ninitramfs initramfs8 0x00f00000\n")
    }),
    ("ramfsfile", |c| c.write(CONFIG, "arm_64bit=1\nramfsfile=initramfs8\nramfsaddr=-1\n")),
    ("Latin-1 in config.txt", |c| c.write(CONFIG, [SETTINGS.as_bytes(), b"# caf\xe9\n"].concat())),
    ("no initramfs", |c| c.write(CONFIG, "dtparam=audio=on\narm_64bit=1\n")),
    ("a kernel in a directory", |c| {
        c.write(
            CONFIG,
            "arm_64bit=1\nkernel=vmlinuz/6.6/Image\ninitramfs vmlinuz/6.6/initrd followkernel\n",
        );
        c.write("/boot/firmware/vmlinuz/6.6/Image", "");
        c.write("/boot/firmware/vmlinuz/6.6/initrd", "");
    }),
    ("a line of another name", |c| {
        c.write(CONFIG, format!("{SETTINGS}cmdline=cmdline-mine.txt\n"));
        c.write("/boot/firmware/cmdline-mine.txt", format!("{LINE}\n"));
    }),
    ("CONFIG.TXT", |c| {
        c.remove(CONFIG);
        c.write("/boot/firmware/CONFIG.TXT", SETTINGS);
    }),
    ("fstab with CRLF", |c| c.write(FSTAB, TABLE.replace('\n', "\r\n"))),
    ("fstab by device", |c| {
        c.write(
            FSTAB,
            "/dev/mmcblk0p1 /boot/firmware vfat defaults 0 2\n/dev/mmcblk0p2 / ext4 defaults 0 1\n",
        )
    }),
    ("fstab without /", |c| {
        c.write(FSTAB, "PARTUUID=e6c1a9f4-01 /boot/firmware vfat defaults 0 2\n")
    }),
    ("fstab without the boot partition", |c| {
        c.write(FSTAB, "PARTUUID=e6c1a9f4-02 / ext4 defaults 0 1\n")
    }),
    ("a missing disk with nofail", |c| {
        c.write(FSTAB, format!("{TABLE}UUID=3d343a73 /media/backup ext4 nofail 0 2\n"))
    }),
    ("a missing disk with an automount", |c| {
        c.write(FSTAB, format!("{TABLE}UUID=3d343a73 /media/backup ext4 x-systemd.automount 0 2\n"))
    }),
    ("a missing network disk", |c| {
        c.write(FSTAB, format!("{TABLE}UUID=3d343a73 /media/nas ext4 _netdev 0 2\n"))
    }),
    ("missing swap", |c| c.write(FSTAB, format!("{TABLE}UUID=aaaaaaaa none swap sw 0 0\n"))),
    ("binds", |c| c.write(FSTAB, format!("{TABLE}/storage/log /var/log none bind\n"))),
    ("encrypted data", |c| {
        let part = c.device("sda1");
        part.content = Fact::known("crypto_LUKS".into(), "a test");
        part.identity.uuid = Some("0d0d0d0d-1111".into());
        c.write("/etc/crypttab", "data UUID=0d0d0d0d-1111 /root/data.key luks\n");
        c.write(FSTAB, format!("{TABLE}/dev/mapper/data /srv/data ext4 defaults 0 2\n"));
    }),
    ("both mount points", |c| {
        let again = Mount { point: "/boot".into(), ..c.mount("/boot/firmware").clone() };
        c.machine.mounts.push(again);
    }),
    ("the boot partition at /flash", |c| {
        c.mount("/boot/firmware").point = "/flash".into();
        c.write("/flash/config.txt", SETTINGS);
        c.write("/flash/cmdline.txt", format!("{LINE}\n"));
        c.write("/flash/kernel8.img", "");
        c.write("/flash/initramfs8", "");
    }),
    ("btrfs in a subvolume that is mounted", |c| {
        c.device("mmcblk0p2").content = Fact::known("btrfs".into(), "a test");
        let root_mount = c.mount("/");
        (root_mount.filesystem, root_mount.root) = ("btrfs".into(), "/@".into());
        c.write(CMDLINE, LINE.replace("rootfstype=ext4", "rootfstype=btrfs rootflags=subvol=@"));
        c.write(FSTAB, TABLE.replace("/ ext4 defaults", "/ btrfs subvol=@"));
    }),
    ("the firmware's word", |c| firmware(c, 1, 1)),
    ("a 32-bit kernel that runs", |c| {
        c.write(CONFIG, "dtparam=audio=on\n");
        c.write("/boot/firmware/kernel7l.img", "");
        c.machine.system.kernel_release = Fact::known("5.10.103-v7l+".into(), "a test");
    }),
];

/// Changes after which the start ends, and where.
const STOPS: &[(&str, Change, Stage)] = &[
    ("an empty line first", |c| c.write(CMDLINE, format!("\n{LINE}\n")), Stage::CommandLine),
    ("an empty file", |c| c.write(CMDLINE, ""), Stage::CommandLine),
    (
        "a mark before root=",
        |c| c.write(CMDLINE, "\u{feff}root=PARTUUID=e6c1a9f4-02 rootwait\n"),
        Stage::CommandLine,
    ),
    ("UTF-16", |c| c.write(CMDLINE, b"\xff\xfer\0o\0o\0t\0=\0"), Stage::CommandLine),
    ("no cmdline.txt", |c| c.remove(CMDLINE), Stage::CommandLine),
    (
        "a long line whose root is late",
        |c| {
            let words: Vec<String> = (0..120).map(|i| format!("x{i}.opt=value{i}")).collect();
            c.write(CMDLINE, format!("{} {LINE}\n", words.join(" ")));
        },
        Stage::CommandLine,
    ),
    ("a root that is nowhere", |c| root(c, "PARTUUID=deadbeef-02"), Stage::Root),
    (
        "another filesystem",
        |c| c.write(CMDLINE, LINE.replace("rootfstype=ext4", "rootfstype=btrfs")),
        Stage::Root,
    ),
    (
        "no initramfs, and a root by UUID",
        |c| {
            c.write(CONFIG, "arm_64bit=1\n");
            root(c, "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8");
        },
        Stage::Initramfs,
    ),
    (
        "no initramfs, and no rootwait",
        |c| {
            c.write(CONFIG, "arm_64bit=1\n");
            c.write(CMDLINE, LINE.replace("rootwait", ""));
        },
        Stage::Initramfs,
    ),
    ("a kernel that is not there", |c| c.write(CONFIG, "kernel=vmlinuz\n"), Stage::Kernel),
    (
        "a missing disk in fstab",
        |c| c.write(FSTAB, format!("{TABLE}UUID=3d343a73 /media/backup ext4 defaults 0 2\n")),
        Stage::Mounts,
    ),
    (
        "a missing disk by its link, and links were read",
        |c| {
            c.device("sda1").identity.links = vec!["/dev/disk/by-id/ata-Y-part1".into()];
            c.write(FSTAB, format!("{TABLE}/dev/disk/by-id/ata-X-part1 /srv ext4 defaults 0 2\n"));
        },
        Stage::Mounts,
    ),
    (
        "a partition that is not there",
        |c| c.write(FSTAB, format!("{TABLE}/dev/mmcblk0p3 /storage ext4 defaults 0 1\n")),
        Stage::Mounts,
    ),
    (
        "BOOT_ORDER without the card, and the firmware does not say from where it started",
        |c| {
            c.write("/asked/vcgencmd/bootloader_config", "[all]\nBOOT_ORDER=0xf4\n");
        },
        Stage::Medium,
    ),
];

/// Changes after which more would have to be known.
const NOT_CERTAIN: &[(&str, Change, Stage)] = &[
    (
        "boot_ramdisk",
        |c| {
            c.write(CONFIG, format!("{SETTINGS}boot_ramdisk=1\n"));
            c.write("/boot/firmware/boot.img", "x");
        },
        Stage::Partition,
    ),
    (
        "a pin that decides",
        |c| c.write(CONFIG, format!("{SETTINGS}[gpio4=1]\nkernel=other.img\n")),
        Stage::Partition,
    ),
    (
        "a line of more than 98 characters",
        |c| {
            c.write(
                CONFIG,
                format!("{SETTINGS}initramfs {} followkernel\n", "initramfs-part.img,".repeat(6)),
            );
        },
        Stage::Partition,
    ),
    (
        "a comment behind a value",
        |c| c.write(CONFIG, "kernel=kernel8.img # 64 bit\n"),
        Stage::Partition,
    ),
    (
        "a missing disk by a link of a kind that was not read",
        |c| c.write(FSTAB, format!("{TABLE}/dev/disk/by-id/ata-X-part1 /srv ext4 defaults 0 2\n")),
        Stage::Init,
    ),
    (
        "BOOT_ORDER without the card that it started from",
        |c| {
            firmware(c, 1, 1);
            c.write("/asked/vcgencmd/bootloader_config", "[all]\nBOOT_ORDER=0xf4\n");
        },
        Stage::Firmware,
    ),
    (
        "ext3 for an ext4 that runs",
        |c| c.write(CMDLINE, LINE.replace("rootfstype=ext4", "rootfstype=ext3")),
        Stage::CommandLine,
    ),
    (
        "another filesystem, and the kernel that runs was told the same",
        |c| {
            let line = LINE.replace("rootfstype=ext4", "rootfstype=f2fs");
            c.write(CMDLINE, &line);
            given(c, &line);
        },
        Stage::CommandLine,
    ),
    (
        "a root that is nowhere, and the kernel that runs was told the same",
        |c| {
            let line = LINE.replace("e6c1a9f4-02", "deadbeef-02");
            c.write(CMDLINE, &line);
            given(c, &line);
        },
        Stage::CommandLine,
    ),
    (
        "no root=, and the kernel that runs was told none",
        |c| {
            c.write(CMDLINE, "console=tty1 rootwait\n");
            given(c, "console=tty1 rootwait");
        },
        Stage::Initramfs,
    ),
    (
        "no initramfs and a root by UUID, and the kernel that runs was told the same",
        |c| {
            c.write(CONFIG, "arm_64bit=1\n");
            root(c, "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8");
            given(c, "root=UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8");
        },
        Stage::Kernel,
    ),
    (
        "Home Assistant OS",
        |c| boot_at(c, "/mnt/boot", "arm_64bit=1\nkernel=u-boot.bin\n"),
        Stage::Settings,
    ),
    ("Fedora", |c| boot_at(c, "/boot/efi", "[pi4]\nkernel=rpi4-u-boot.bin\n"), Stage::Settings),
    (
        "LibreELEC",
        |c| boot_at(c, "/flash", "kernel=kernel.img\narm_64bit=1\ninclude distroconfig.txt\n"),
        Stage::Settings,
    ),
    (
        "a kernel that is not there, and none that is there is the one that runs",
        |c| {
            boot_at(c, "/boot", "kernel=zImage\n");
            c.write("/boot/other.img", "x");
        },
        Stage::Settings,
    ),
    (
        "U-Boot",
        |c| {
            c.write(CONFIG, "[pi4]\nkernel=uboot_rpi_4.bin\n");
            c.write("/boot/firmware/uboot_rpi_4.bin", "");
        },
        Stage::Settings,
    ),
    ("a root over the network", |c| root(c, "/dev/nfs"), Stage::CommandLine),
    (
        "a root of another disk",
        |c| root(c, "PARTUUID=4f1c2a3b-7d6e-4f5a-8b9c-0d1e2f3a4b5c"),
        Stage::Root,
    ),
    (
        "LibreELEC's line",
        |c| c.write(CMDLINE, "boot=UUID=1234-5678 disk=UUID=66141b37 quiet\n"),
        Stage::Initramfs,
    ),
    (
        "two disks with one identifier",
        |c| {
            c.device("sda1").identity.partuuid = Some("e6c1a9f4-02".into());
        },
        Stage::CommandLine,
    ),
    (
        "a logical volume in fstab",
        |c| {
            c.device("sda1").content = Fact::known("LVM2_member".into(), "a test");
            c.write(FSTAB, format!("{TABLE}/dev/vgdata/media /srv/media ext4 defaults 0 2\n"));
        },
        Stage::Init,
    ),
    (
        "another boot partition is mounted",
        |c| {
            firmware(c, 1, 1);
            c.mount("/boot/firmware").device = Some("sda1".into());
        },
        Stage::Medium,
    ),
    (
        "the card is out, and the firmware started from it",
        |c| {
            firmware(c, 1, 1);
            c.machine.block_devices.retain(|device| !device.name.starts_with("mmcblk0"));
        },
        Stage::Firmware,
    ),
    (
        "no boot partition is mounted",
        |c| {
            c.machine.mounts.retain(|mount| mount.point != "/boot/firmware");
        },
        Stage::Firmware,
    ),
    (
        "another board",
        |c| {
            c.machine.board.revision = Fact::unknown("none", "a test");
            c.machine.board.compatible = Fact::known(vec!["pine64,rock64".into()], "a test");
            c.write("/boot/armbianEnv.txt", "rootdev=UUID=1\n");
        },
        Stage::Firmware,
    ),
];

/// What the kernel that runs was told, behind the words that firmware adds.
fn given(case: &mut Case, line: &str) {
    let told = format!("coherent_pool=1M {LINE} {line}");
    case.machine.system.command_line = Fact::known(told, "/proc/cmdline");
}

/// Another system's boot partition at its own place, with the texts alone, as a capture has them.
fn boot_at(case: &mut Case, point: &str, settings: &str) {
    case.mount("/boot/firmware").point = point.into();
    case.write(&format!("{point}/config.txt"), settings);
    case.write(&format!("{point}/cmdline.txt"), "rootwait systemd.machine_id=f\n");
}

fn root(case: &mut Case, name: &str) {
    case.write(CMDLINE, LINE.replace("PARTUUID=e6c1a9f4-02", name));
}

/// Everything that is loaded is in a directory.
fn prefixed(case: &mut Case, prefix: &str, more: &str) {
    case.write(CONFIG, format!("{SETTINGS}os_prefix={prefix}\n{more}"));
    for file in ["kernel8.img", "initramfs8"] {
        case.write(&format!("/boot/firmware/{prefix}{file}"), "");
    }
    case.write(&format!("/boot/firmware/{prefix}cmdline.txt"), format!("{LINE}\n"));
}

fn firmware(case: &mut Case, boot_mode: u32, partition: u32) {
    let bootloader = Bootloader {
        boot_mode: Some(boot_mode),
        partition: Some(partition),
        ..Bootloader::default()
    };
    case.machine.board.bootloader = Fact::known(bootloader, Bootloader::SOURCE);
}

fn must_be(name: &str, change: Change, expected: Outcome) {
    let mut case = Case::new();
    change(&mut case);
    let start = case.start();
    assert_eq!(start.chain.outcome(), expected, "{name}: {}", super::text::first_line(&start));
}

#[test]
fn what_real_systems_have_starts() {
    for (name, change) in CASES {
        must_be(name, *change, Starts);
    }
}

#[test]
fn what_does_not_start_says_where_it_stops() {
    for (name, change, stage) in STOPS {
        must_be(name, *change, StopsAt(*stage));
    }
}

#[test]
fn what_is_not_known_is_not_told_as_certain() {
    for (name, change, stage) in NOT_CERTAIN {
        must_be(name, *change, NotCertainAfter(*stage));
    }
}

#[test]
fn a_boot_partition_that_updates_do_not_reach_is_noted() {
    let mut case = Case::new();
    firmware(&mut case, 1, 1);
    case.mount("/boot/firmware").device = Some("sda1".into());
    let start = case.start();
    let subjects: Vec<Subject> = start.chain.notes().map(|(_, note)| note.subject).collect();
    assert_eq!(subjects, [Subject::OtherPartitionMounted]);
}

#[test]
fn a_boot_partition_is_noted_where_updates_no_longer_go() {
    let is_noted = |hook: &str| {
        let mut case = Case::new();
        firmware(&mut case, 1, 1);
        boot_at(&mut case, "/boot", SETTINGS);
        case.write(hook, "#!/bin/sh\n");
        let found = crate::start::findings::findings(&case.start());
        found.iter().any(|finding| finding.rule == "kernel-updates-go-elsewhere")
    };
    assert!(is_noted("/etc/kernel/postinst.d/z50-raspi-firmware"));
    assert!(!is_noted("/etc/kernel/postinst.d/initramfs-tools"));
}

#[test]
fn disks_come_in_the_order_of_the_bootloader() {
    let mut case = Case::new();
    case.write("/asked/vcgencmd/bootloader_config", "BOOT_ORDER=0xf14\n");
    let names: Vec<String> = case.start().rungs.into_iter().map(|rung| rung.name).collect();
    assert_eq!(names, ["sda", "sdb", "mmcblk0"]);
    assert_eq!(case.outcome(), Starts);
}
