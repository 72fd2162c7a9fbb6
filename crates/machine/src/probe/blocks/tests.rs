//! Tests of the block devices, on made-up machines.

use super::*;
use proptest::prelude::*;
use rubus_host::simulated::fake::FakeFiles;

/// A block device's directory under `/sys/block`, with its number and size in sectors.
fn disk(files: FakeFiles, name: &str, number: &str, sectors: &str) -> FakeFiles {
    let directory = format!("/sys/devices/virtual/block/{name}");
    files
        .files(
            &directory,
            [("dev", number), ("size", sectors), ("ro", "0\n"), ("removable", "0\n")],
        )
        .files(
            format!("{directory}/queue"),
            [
                ("logical_block_size", "512\n"),
                ("physical_block_size", "4096\n"),
                ("rotational", "0\n"),
                ("scheduler", "none [mq-deadline] kyber\n"),
                ("write_cache", "write back\n"),
                ("discard_max_bytes", "0\n"),
                ("nr_requests", "64\n"),
            ],
        )
        .link(format!("/sys/block/{name}"), &directory)
}

fn partition(files: FakeFiles, disk: &str, name: &str, number: &str, sectors: &str) -> FakeFiles {
    files.files(
        format!("/sys/block/{disk}/{name}"),
        [("partition", "1\n"), ("dev", number), ("size", sectors), ("ro", "0\n")],
    )
}

/// `upper` stands on `lower`, as sysfs shows it from both sides.
fn stack(files: FakeFiles, lower: &str, upper: &str) -> FakeFiles {
    let name = base_name(lower).to_string();
    files
        .dir(format!("/sys/block/{lower}/holders/{upper}"))
        .dir(format!("/sys/block/{upper}/slaves/{name}"))
}

fn names_of(devices: &[BlockDevice]) -> Vec<&str> {
    devices.iter().map(|device| device.name.as_str()).collect()
}

fn by_name<'a>(devices: &'a [BlockDevice], name: &str) -> &'a BlockDevice {
    devices.iter().find(|device| device.name == name).unwrap()
}

#[test]
fn kinds_follow_names() {
    for (name, kind) in [
        ("sda", BlockKind::Disk),
        ("sr0", BlockKind::Rom),
        ("srx", BlockKind::Disk),
        ("loop12", BlockKind::Loop),
        ("md127", BlockKind::Md),
        ("md_d0", BlockKind::Md),
        ("dm-3", BlockKind::Dm),
        ("zram0", BlockKind::Zram),
        ("nbd1", BlockKind::Nbd),
        ("ram7", BlockKind::Ram),
        ("mmcblk0", BlockKind::Disk),
        ("mmcblk0boot1", BlockKind::MmcArea),
        ("mmcblk12rpmb", BlockKind::MmcArea),
        ("nvme0n1", BlockKind::Disk),
        ("", BlockKind::Disk),
    ] {
        assert_eq!(kind_of(name), kind, "{name}");
    }
    assert_eq!(mmc_area_parent("mmcblk0gp2"), Some("mmcblk0"));
    assert_eq!(mmc_area_parent("mmcblk0"), None);
    assert_eq!(mmc_area_parent("mmcblkboot0"), None);
}

#[test]
fn partitions_follow_their_disk_in_natural_order_and_share_its_queue() {
    let mut files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n");
    for part in ["sda10", "sda2", "sda1"] {
        files = partition(files, "sda", part, "8:1\n", "100\n");
    }
    let devices = block_devices(&files);
    assert_eq!(names_of(&devices), ["sda", "sda1", "sda2", "sda10"]);
    let part = by_name(&devices, "sda2");
    assert_eq!(part.kind, BlockKind::Partition);
    assert_eq!(part.parent.as_deref(), Some("sda"));
    assert_eq!(part.size_bytes.get(), Some(51_200));
    assert_eq!(part.scheduler.text(), Some("mq-deadline"));
    assert_eq!(part.scheduler.source(), "/sys/block/sda/queue/scheduler");
    assert_eq!(by_name(&devices, "sda").content.text(), Some("partition table"));
}

#[test]
fn an_encrypted_array_is_followed_down_to_its_members() {
    let mut files = FakeFiles::new();
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        files = disk(files, name, number, "4096\n");
        let part = format!("{name}1");
        files = partition(files, name, &part, "8:99", "2048\n");
    }
    files = disk(files, "md0", "9:0", "4096\n")
        .file("/sys/block/md0/md/level", "raid0\n")
        .file("/sys/block/md0/md/raid_disks", "2\n")
        .file("/sys/block/md0/md/array_state", "clean\n");
    files = disk(files, "dm-0", "253:0", "4000\n")
        .file("/sys/block/dm-0/dm/name", "cryptdata\n")
        .file("/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123456789-cryptdata\n");
    files = stack(files, "sda/sda1", "md0");
    files = stack(files, "sdb/sdb1", "md0");
    files = stack(files, "md0", "dm-0");
    let devices = block_devices(&files);
    assert_eq!(by_name(&devices, "sda1").holders, ["md0"]);
    assert_eq!(by_name(&devices, "md0").below, ["sda1", "sdb1"]);
    assert_eq!(by_name(&devices, "md0").model.text(), Some("raid0, 2 members, clean"));
    assert_eq!(by_name(&devices, "dm-0").below, ["md0"]);
    assert_eq!(by_name(&devices, "dm-0").model.text(), Some("LUKS2 cryptdata"));
}

#[test]
fn a_loop_device_stands_on_the_disk_that_holds_its_file() {
    let files = disk(FakeFiles::new(), "vda", "254:0\n", "4096\n").file(
        "/proc/self/mountinfo",
        "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:9 / /tmp rw - tmpfs tmpfs rw\n",
    );
    let files = disk(files, "loop0", "7:0", "8\n")
        .file("/sys/block/loop0/loop/backing_file", "/srv/disk.img (deleted)\n");
    let files = disk(files, "loop1", "7:1", "8\n")
        .file("/sys/block/loop1/loop/backing_file", "/tmp/disk.img\n");
    let devices = block_devices(&files);
    let on_disk = by_name(&devices, "loop0");
    assert_eq!(on_disk.below, ["vda"]);
    assert_eq!(on_disk.backing_file.as_deref(), Some("/srv/disk.img (deleted)"));
    assert!(by_name(&devices, "loop1").below.is_empty(), "on a tmpfs");
    assert_eq!(by_name(&devices, "vda").content.text(), Some("ext4"));
}

#[test]
fn devices_that_are_not_set_up_are_left_out() {
    let mut files = FakeFiles::new();
    for (name, sectors) in [
        ("loop0", "0\n"),
        ("nbd0", "0\n"),
        ("zram0", "0\n"),
        ("ram0", "8192\n"),
        ("ram1", "8192\n"),
        ("md127", "0\n"),
        ("zram1", "64\n"),
    ] {
        files = disk(files, name, "1:0", sectors);
    }
    files = files
        .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/ram1 partition 4096 0 -2\n");
    let devices = block_devices(&files);
    assert_eq!(names_of(&devices), ["ram1", "zram1"]);
    assert_eq!(devices[0].content.text(), Some("swap"));
}

#[test]
fn what_udev_found_as_root_is_told_to_every_user() {
    let files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n");
    let files = partition(files, "sda", "sda1", "8:1\n", "100\n")
        .file("/run/udev/data/b8:0", "E:ID_SERIAL_SHORT=0123\nE:ID_PART_TABLE_TYPE=gpt\n")
        .file(
            "/run/udev/data/b8:1",
            "E:ID_PART_TABLE_TYPE=gpt\nE:ID_FS_TYPE=ext4\nE:ID_FS_LABEL=My_Disk\n\
             E:ID_FS_LABEL_ENC=My\\x20Disk\nE:ID_FS_UUID=11-22\nE:ID_PART_ENTRY_UUID=33-01\n",
        );
    let devices = block_devices(&files);
    let (whole, part) = (&devices[0], &devices[1]);
    assert_eq!(whole.content.text(), Some("partition table (gpt)"));
    assert_eq!(whole.serial.text(), Some("0123"));
    assert_eq!(part.content.text(), Some("ext4"));
    assert_eq!(part.identity.label.as_deref(), Some("My Disk"));
    assert_eq!(part.identity.uuid.as_deref(), Some("11-22"));
    assert_eq!(part.identity.partuuid.as_deref(), Some("33-01"));
}

#[test]
fn a_drive_behind_a_bridge_has_its_own_model() {
    let files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n")
        .file("/sys/block/sda/device/vendor", "CT240BX5\n")
        .file("/sys/block/sda/device/model", "00SSD1          \n");
    let bare = &block_devices(&files)[0];
    assert_eq!(bare.vendor.text(), Some("CT240BX5"));
    assert_eq!(bare.model.text(), Some("00SSD1"));
    let files = files.file("/run/udev/data/b8:0", "E:ID_BUS=ata\nE:ID_MODEL=CT240BX500_SSD1\n");
    let asked = &block_devices(&files)[0];
    assert_eq!(asked.vendor.value(), None);
    assert_eq!(asked.model.text(), Some("CT240BX500 SSD1"));
}

#[test]
fn without_udev_the_links_under_dev_disk_name_devices() {
    let files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n");
    let files = partition(files, "sda", "sda1", "8:1\n", "100\n")
        .file("/dev/sda1", "")
        .link("/dev/disk/by-label/My\\x20Disk", "../../sda1")
        .link("/dev/disk/by-uuid/11-22", "../../sda1");
    let devices = block_devices(&files);
    assert_eq!(devices[1].identity.label.as_deref(), Some("My Disk"));
    assert_eq!(devices[1].identity.uuid.as_deref(), Some("11-22"));
    assert_eq!(
        devices[1].content.reason(),
        Some("there is no udev database; root can read the device")
    );
}

#[test]
fn the_serial_number_page_is_read_where_udev_is_silent() {
    let page = [b"\0\x80\0\x08".as_slice(), b"S3R1AL  ", b"rest"].concat();
    let files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n")
        .file("/sys/block/sda/device/vpd_pg80", page);
    assert_eq!(block_devices(&files)[0].serial.text(), Some("S3R1AL"));
    let files = disk(FakeFiles::new(), "sda", "8:0\n", "2000\n")
        .file("/sys/block/sda/device/vpd_pg80", [0_u8, 0x80, 0]);
    assert_eq!(block_devices(&files)[0].serial.value(), None);
}

#[test]
fn hidden_paths_of_a_drive_are_left_out() {
    let files = disk(FakeFiles::new(), "nvme0c0n1", "259:1\n", "8\n")
        .file("/sys/block/nvme0c0n1/hidden", "1\n");
    assert!(block_devices(&files).is_empty());
    assert!(block_devices(&FakeFiles::new()).is_empty());
}

proptest! {
    /// Whatever the files say, whichever of them are missing.
    #[test]
    fn no_contents_make_it_panic(
        contents in "\\PC{0,40}",
        name in prop_oneof!["sda", "mmcblk0", "nvme0n1", "loop0", "dm-0", "md0", "vda", "nbd0", "ram0"],
        missing in 0_usize..14,
    ) {
        let directory = format!("/sys/devices/platform/{name}");
        let mut files = FakeFiles::new().link(format!("/sys/block/{name}"), &directory);
        let leaves = [
            "dev", "size", "queue/scheduler", "queue/logical_block_size", "device/type",
            "device/manfid", "device/oemid", "device/ssr", "device/vpd_pg80", "md/level",
            "dm/uuid", "dm/name", "loop/backing_file", "mq/0/nr_tags",
        ];
        for leaf in leaves.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, leaf)| leaf) {
            files = files.file(format!("{directory}/{leaf}"), &contents);
        }
        files = files
            .file("/proc/swaps", &contents)
            .file("/proc/self/mountinfo", &contents)
            .file(format!("/run/udev/data/b{}", contents.trim().replace(['/', '\0'], "")), &contents);
        block_devices(&files);
    }
}
