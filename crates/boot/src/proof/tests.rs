//! Boards that start and boards that do not: the whole proof in words.

use super::super::initramfs::Member;
use super::super::model::Model;
use super::*;
use crate::revision;

const RELEASE: &str = "6.12.47+rpt-rpi-v8";

/// A Raspberry Pi 3 whose new root is btrfs on a USB disk.
struct Board {
    model: Model,
    config_txt: String,
    partition: BootPartition,
    images: Images,
    volumes: Vec<NamedVolume>,
    fstab: String,
    crypttab: String,
    root_modules: Vec<Vec<String>>,
    drivers: Vec<String>,
}

fn volume(path: &str, partuuid: &str, filesystem: &str) -> NamedVolume {
    NamedVolume {
        path: path.into(),
        partuuid: Some(partuuid.into()),
        filesystem: Some(filesystem.into()),
        ..NamedVolume::default()
    }
}

fn listing(modules: &[&str]) -> Listing {
    let members = modules.iter().map(|name| Member {
        path: format!("usr/lib/modules/{RELEASE}/kernel/{name}.ko.xz"),
        mode: 0o100_644,
        size_bytes: 1000,
    });
    Listing { members: members.collect(), ..Listing::default() }
}

fn board() -> Board {
    let mut partition = BootPartition::default();
    partition.add("KERNEL8.IMG", 9_000_000);
    partition.add("initramfs8", 12_000_000);
    partition.put(
        "cmdline.txt",
        "console=tty1 root=PARTUUID=0badcafe-01 rootfstype=btrfs rootflags=subvol=@ rootwait\n",
    );
    let dep = "\
kernel/fs/btrfs/btrfs.ko.xz: kernel/crypto/xor.ko.xz kernel/lib/raid6/raid6_pq.ko.xz
kernel/crypto/xor.ko.xz:
kernel/lib/raid6/raid6_pq.ko.xz:
kernel/drivers/usb/host/xhci-pci.ko.xz:
";
    let builtin = "kernel/drivers/usb/storage/usb-storage.ko\nkernel/drivers/scsi/sd_mod.ko\n\
                   kernel/drivers/usb/dwc2/dwc2.ko\n";
    let kernel = Kernel {
        release: Some(RELEASE.into()),
        modules: Modules::parse(dep, builtin),
        ..Kernel::default()
    };
    let inside = listing(&["btrfs", "xor", "raid6_pq", "xhci-pci"]);
    Board {
        model: Model::of_revision(&revision::decode(0xa02082)),
        config_txt: "arm_64bit=1\nauto_initramfs=1\n".into(),
        partition,
        images: Images {
            kernels: BTreeMap::from([("kernel8.img".into(), kernel)]),
            initramfs: BTreeMap::from([("initramfs8".into(), Ok(inside))]),
            ..Images::default()
        },
        volumes: vec![
            volume("/dev/mmcblk0p1", "8a676486-01", "vfat"),
            volume("/dev/mmcblk0p2", "8a676486-02", "ext4"),
            volume("/dev/sda1", "0badcafe-01", "btrfs"),
            volume("/dev/sda2", "0badcafe-02", "swap"),
        ],
        fstab: "PARTUUID=8a676486-01 /boot/firmware vfat defaults 0 2\n\
                PARTUUID=0badcafe-01 / btrfs defaults,noatime,subvol=@ 0 0\n\
                PARTUUID=0badcafe-02 none swap sw 0 0\n"
            .into(),
        crypttab: String::new(),
        root_modules: way_to("btrfs", "usb", &[]),
        drivers: vec!["raid6-pq".into(), "sd_mod".into(), "uas".into()],
    }
}

impl Board {
    fn checks(&self) -> Vec<Check> {
        prove(&Facts {
            model: &self.model,
            serial: None,
            tryboot: false,
            config_txt: &self.config_txt,
            partition: &self.partition,
            images: &self.images,
            volumes: &self.volumes,
            are_all_volumes: true,
            firmware_volume: Some("/dev/mmcblk0p1"),
            fstab: &self.fstab,
            crypttab: &self.crypttab,
            root_modules: &self.root_modules,
            drivers: &self.drivers,
        })
    }

    fn unmet(&self) -> String {
        let checks = self.checks();
        words(checks.iter().filter(|check| !check.is_met))
    }
}

fn words<'a>(checks: impl Iterator<Item = &'a Check>) -> String {
    let line = |check: &Check| {
        let mark = if check.is_met { "yes" } else { "NO " };
        let remedy = check.remedy.as_ref();
        let remedy = remedy.map_or(String::new(), |remedy| format!("\n      -> {remedy}"));
        format!("{mark} {}\n      {}{remedy}\n", check.what, check.found)
    };
    checks.map(line).collect()
}

#[test]
fn a_sound_board_is_proven() {
    let board = board();
    assert_eq!(board.unmet(), "");
    insta::assert_snapshot!(words(board.checks().iter()));
}

#[test]
fn a_volume_that_crypttab_opens_of_one_that_is_there_is_there() {
    let mut board = board();
    board.volumes.push(volume("/dev/sdb1", "cafe-01", "crypto_LUKS"));
    board.fstab.push_str("/dev/mapper/data /srv ext4 defaults 0 2\n");
    let gone = "/dev/mapper/data for /srv is on no volume of this machine";
    for (crypttab, is_there) in [
        ("", false),
        ("data PARTUUID=gone-01 /etc/data.key luks\n", false),
        ("data PARTUUID=cafe-01 /etc/data.key luks\n", true),
    ] {
        board.crypttab = crypttab.into();
        assert_eq!(board.unmet().contains(gone), !is_there, "{crypttab}{}", board.unmet());
    }
}

/// Everything that can be wrong alone, and what is said of it.
#[test]
fn every_single_fault_is_found() {
    type Fault = (&'static str, fn(&mut Board));
    let faults: [Fault; 20] = [
        ("kernel missing", |b| b.config_txt.push_str("kernel=other.img\n")),
        ("kernel empty", |b| b.partition.add("kernel8.img", 0)),
        ("device tree missing", |b| b.config_txt.push_str("device_tree=x.dtb\n")),
        ("initramfs missing", |b| b.config_txt.push_str("initramfs none.img followkernel\n")),
        ("no initramfs", |b| b.config_txt = "arm_64bit=1\n".into()),
        ("initramfs damaged", |b| {
            b.images.initramfs.insert("initramfs8".into(), Err("it ends too early".into()));
        }),
        ("initramfs not looked into", |b| b.images.initramfs.clear()),
        ("initramfs of another kernel", |b| {
            if let Some(kernel) = b.images.kernels.get_mut("kernel8.img") {
                kernel.release = Some("6.18.1".into());
            }
        }),
        ("module missing", |b| {
            let without = listing(&["btrfs", "xor", "xhci-pci"]);
            b.images.initramfs.insert("initramfs8".into(), Ok(without));
        }),
        ("kernel without the driver", |b| b.root_modules = way_to("f2fs", "usb", &[])),
        ("driver missing", |b| {
            let without = listing(&["btrfs", "xor", "raid6_pq"]);
            b.images.initramfs.insert("initramfs8".into(), Ok(without));
            b.drivers = vec!["xhci-pci".into()];
        }),
        ("root on two disks", |b| b.volumes.push(volume("/dev/sdb1", "0badcafe-01", "btrfs"))),
        ("root on none", |b| {
            b.partition.put("cmdline.txt", "root=PARTUUID=gone-01 rootfstype=btrfs")
        }),
        ("other filesystem", |b| b.volumes[2].filesystem = Some("ext4".into())),
        ("other subvolume", |b| b.fstab = b.fstab.replace("subvol=@", "subvol=@root")),
        ("fstab of the old root", |b| b.fstab = b.fstab.replace("0badcafe-01 /", "8a676486-02 /")),
        ("still grows", |b| {
            b.partition.put(
                "cmdline.txt",
                "root=PARTUUID=0badcafe-01 rootfstype=btrfs rootflags=subvol=@ resize\nmore\n",
            );
        }),
        ("extra disk that is not there", |b| {
            b.fstab.push_str("PARTUUID=cafe-01 /data ext4 defaults 0 2\n");
        }),
        ("boot files elsewhere", |b| {
            b.volumes.push(volume("/dev/sdc1", "cafe-01", "vfat"));
            b.fstab = b.fstab.replace("8a676486-01 /boot", "cafe-01 /boot");
        }),
        ("no command line", |b| b.config_txt.push_str("cmdline=none.txt\n")),
    ];
    let mut said = String::new();
    for (name, fault) in faults {
        let mut board = board();
        fault(&mut board);
        let unmet = board.unmet();
        assert!(!unmet.is_empty(), "{name} is not found");
        said.push_str(&format!("== {name}\n{unmet}"));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_disk_that_the_start_waits_for_is_told_and_forbids_nothing() {
    let mut board = board();
    board.volumes.push(volume("/dev/sdc1", "cafe-01", "ext4"));
    board.fstab.push_str("PARTUUID=cafe-01 /data ext4 defaults 0 2\n");
    assert_eq!(board.unmet(), "");
    let all = words(board.checks().iter());
    assert!(all.contains("PARTUUID=cafe-01 at /data; without nofail"), "{all}");
}

#[test]
fn of_two_lines_for_one_place_one_is_taken_out() {
    let mut board = board();
    board.fstab.push_str("PARTUUID=8a676486-01 /boot/firmware vfat defaults 0 2\n");
    let unmet = board.unmet();
    assert!(unmet.contains("-> take one of the lines out"), "{unmet}");
    assert!(!unmet.contains("nofail"), "{unmet}");
}

#[test]
fn every_kernel_that_may_start_is_looked_at() {
    let mut board = board();
    // Without a mode both may start; the second has no initial RAM filesystem.
    board.config_txt = "auto_initramfs=1\n".into();
    board.partition.add("kernel7.img", 6_000_000);
    let unmet = board.unmet();
    assert!(unmet.contains("there is no initramfs7"), "{unmet}");
    // A filter that only the board can answer counts as well.
    board.config_txt = "arm_64bit=1\nauto_initramfs=1\n[gpio4=1]\ncmdline=other.txt\n".into();
    let unmet = board.unmet();
    assert!(unmet.contains("there is no other.txt"), "{unmet}");
}

#[test]
fn a_kernel_with_everything_built_in_needs_nothing_else() {
    let mut board = board();
    board.config_txt = "arm_64bit=1\n".into();
    board.root_modules = way_to("usb_storage", "usb", &[]);
    assert_eq!(board.unmet(), "");
    let line = "root=UUID=12 rootfstype=btrfs rootflags=subvol=@\n";
    board.partition.put("cmdline.txt", line);
    board.volumes[2].uuid = Some("12".into());
    let unmet = board.unmet();
    assert!(unmet.contains("the kernel alone does not find UUID=12"), "{unmet}");
}
