//! Machines made up of the kernel's own files: who uses what is found in them.

use rubus_host::simulated::fake::FakeFiles;

use super::*;

/// A machine with a running system on an SD card and empty tables besides.
fn machine() -> FakeFiles {
    let files = FakeFiles::new()
        .file(
            "/proc/self/mountinfo",
            "24 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw\n\
             25 24 179:1 / /boot/firmware rw - vfat /dev/mmcblk0p1 rw\n\
             26 24 0:5 / /dev rw - devtmpfs udev rw\n",
        )
        .file("/proc/swaps", "Filename Type Size Used Priority\n")
        .dir("/sys/block");
    let files = disk(files, "mmcblk0", "179:0");
    let files = partition(files, "mmcblk0", 1, "179:1");
    partition(files, "mmcblk0", 2, "179:2")
}

fn disk(files: FakeFiles, name: &str, number: &str) -> FakeFiles {
    let directory = format!("/sys/devices/{name}");
    files
        .file(format!("{directory}/dev"), number)
        .dir(format!("{directory}/holders"))
        .dir(format!("{directory}/slaves"))
        .file(format!("/dev/{name}"), "")
        .link(format!("/sys/dev/block/{number}"), &directory)
        .link(format!("/sys/class/block/{name}"), &directory)
        .link(format!("/sys/block/{name}"), &directory)
}

fn partition(files: FakeFiles, disk: &str, index: u32, number: &str) -> FakeFiles {
    let infix = if disk.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
    let name = format!("{disk}{infix}{index}");
    let directory = format!("/sys/devices/{disk}/{name}");
    files
        .file(format!("{directory}/dev"), number)
        .file(format!("{directory}/partition"), index.to_string())
        .dir(format!("{directory}/holders"))
        .file(format!("/dev/{name}"), "")
        .link(format!("/sys/dev/block/{number}"), &directory)
        .link(format!("/sys/class/block/{name}"), &directory)
}

/// Puts `above` on `below` (paths of devices under /sys/devices).
fn stack(files: FakeFiles, below: &str, above: &str) -> FakeFiles {
    let leaf = |path: &str| path.rsplit('/').next().unwrap().to_string();
    files
        .link(
            format!("/sys/devices/{below}/holders/{}", leaf(above)),
            format!("/sys/devices/{above}"),
        )
        .link(
            format!("/sys/devices/{above}/slaves/{}", leaf(below)),
            format!("/sys/devices/{below}"),
        )
}

fn mounts(files: FakeFiles, lines: &str) -> FakeFiles {
    let root = "24 1 179:2 / / rw - ext4 /dev/mmcblk0p2 rw\n";
    files.file("/proc/self/mountinfo", format!("{root}{lines}"))
}

fn swaps(files: FakeFiles, lines: &str) -> FakeFiles {
    files.file("/proc/swaps", format!("Filename Type Size Used Priority\n{lines}"))
}

/// The uses of a device, one line each, and what was unreadable.
fn told_with(files: &FakeFiles, name: &str, loops: &[LoopFact]) -> Vec<String> {
    let sys = Sys::new(files);
    let found = find(&sys, &sys.by_name(name).unwrap(), loops);
    let words = |used: &Use| format!("{:?} {}: {:?}", used.relation, used.device, used.kind);
    let mut lines: Vec<String> = found.uses.iter().map(words).collect();
    lines.extend(found.unreadable.iter().map(|why| format!("unreadable: {why}")));
    lines
}

fn told(files: &FakeFiles, name: &str) -> Vec<String> {
    told_with(files, name, &[])
}

fn loop_on(name: &str, path: &str, backing: Option<LoopBacking>) -> LoopFact {
    LoopFact { name: name.into(), backing_path: path.into(), backing }
}

fn file_backing(major: u32, minor: u32, inode: u64) -> Option<LoopBacking> {
    Some(LoopBacking { on_device: DeviceNumber { major, minor }, inode, block: None })
}

fn block_backing(major: u32, minor: u32) -> Option<LoopBacking> {
    Some(LoopBacking {
        on_device: DeviceNumber { major: 0, minor: 5 },
        inode: 99,
        block: Some(DeviceNumber { major, minor }),
    })
}

#[test]
fn what_the_kernel_exports_is_in_use() {
    let unit = "/sys/kernel/config/usb_gadget/g1/functions/mass_storage.0/lun.0/file";
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = disk(files, "loop3", "7:3").file(unit, "/dev/sda1\n");
    let exported = r#"Exported { by: "the USB gadget g1 (lun.0)" }"#;
    assert_eq!(told(&files, "sda"), [format!("Partition sda1: {exported}")]);
    assert_eq!(told(&files, "sda1"), [format!("Itself sda1: {exported}")]);
    let files = files.file(unit, "/srv/stick.img\n");
    assert_eq!(told(&files, "sda"), [""; 0]);
    let loops = [loop_on("loop3", "/srv/stick.img", None)];
    assert_eq!(told_with(&files, "loop3", &loops), [format!("Itself loop3: {exported}")]);
}

#[test]
fn a_free_disk_has_no_use() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    assert_eq!(told(&files, "sda"), [""; 0]);
    assert_eq!(told(&files, "sda1"), [""; 0]);
}

#[test]
fn the_disk_of_the_running_system_is_used_through_its_partitions() {
    let files = machine();
    assert_eq!(
        told(&files, "mmcblk0"),
        [
            r#"Partition mmcblk0p1: Mounted { filesystem: "vfat", points: ["/boot/firmware"] }"#,
            r#"Partition mmcblk0p2: Mounted { filesystem: "ext4", points: ["/"] }"#,
        ]
    );
    assert_eq!(told(&files, "mmcblk0p1").len(), 1, "only its own use");
}

#[test]
fn every_mount_point_is_told_and_bind_mounts_are_mounts() {
    let lines = "30 24 8:1 / /mnt rw - ext4 /dev/sda1 rw\n\
                 31 24 8:1 /www /srv/www rw - ext4 /dev/sda1 rw\n";
    let files = mounts(partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1"), lines);
    assert_eq!(
        told(&files, "sda1"),
        [r#"Itself sda1: Mounted { filesystem: "ext4", points: ["/mnt", "/srv/www"] }"#]
    );
}

#[test]
fn a_partition_of_a_disk_that_is_mounted_as_a_whole_is_used() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = mounts(files, "30 24 8:0 / /mnt rw - ext4 /dev/sda rw\n");
    assert_eq!(
        told(&files, "sda1"),
        [r#"WholeDisk sda: Mounted { filesystem: "ext4", points: ["/mnt"] }"#]
    );
}

#[test]
fn a_sibling_partition_is_no_concern() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = partition(files, "sda", 2, "8:2");
    let files = mounts(files, "30 24 8:2 / /mnt rw - ext4 /dev/sda2 rw\n");
    assert_eq!(told(&files, "sda1"), [""; 0]);
}

#[test]
fn the_source_counts_where_the_number_is_anonymous() {
    let files = disk(machine(), "sda", "8:0").link("/dev/disk/by-label/x", "../../sda");
    let lines = "30 24 0:61 / /mnt rw - fuse.fuse2fs /dev/disk/by-label/x rw\n";
    assert_eq!(told(&mounts(files, lines), "sda").len(), 1);
}

#[test]
fn an_array_and_what_is_mounted_on_it_are_uses_of_its_members() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = stack(disk(files, "md0", "9:0"), "sda/sda1", "md0");
    let files = mounts(files, "30 24 9:0 / /srv rw - ext4 /dev/md0 rw\n");
    let expected_above = r#"Above md0: Mounted { filesystem: "ext4", points: ["/srv"] }"#;
    assert_eq!(
        told(&files, "sda"),
        [r#"Partition sda1: Holder { what: "the RAID array md0" }"#, expected_above]
    );
    assert_eq!(
        told(&files, "sda1"),
        [r#"Itself sda1: Holder { what: "the RAID array md0" }"#, expected_above]
    );
    assert_eq!(
        told(&files, "md0"),
        [r#"Itself md0: Mounted { filesystem: "ext4", points: ["/srv"] }"#]
    );
}

#[test]
fn root_on_lvm_on_luks_is_found_from_the_disk() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 3, "8:3");
    let files = disk(disk(files, "dm-0", "253:0"), "dm-1", "253:1")
        .file("/sys/devices/dm-0/dm/name", "cryptdisk\n")
        .file("/sys/devices/dm-1/dm/name", "vg-root\n");
    let files = stack(stack(files, "sda/sda3", "dm-0"), "dm-0", "dm-1");
    let files =
        files.file("/proc/self/mountinfo", "24 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw\n");
    assert_eq!(
        told(&files, "sda"),
        [
            r#"Partition sda3: Holder { what: "the device-mapper volume cryptdisk (dm-0)" }"#,
            r#"Above dm-0: Holder { what: "the device-mapper volume vg-root (dm-1)" }"#,
            r#"Above dm-1: Mounted { filesystem: "ext4", points: ["/"] }"#,
        ]
    );
}

#[test]
fn a_volume_beside_a_mounted_one_on_the_same_disk_is_free() {
    let files = disk(disk(disk(machine(), "sda", "8:0"), "dm-0", "253:0"), "dm-1", "253:1");
    let files = stack(stack(files, "sda", "dm-0"), "sda", "dm-1");
    let files = mounts(files, "30 24 253:0 / /mnt rw - ext4 /dev/mapper/a rw\n");
    assert_eq!(told(&files, "dm-1"), [""; 0]);
    assert_eq!(told(&files, "sda").len(), 3, "two holders and a mount");
}

#[test]
fn a_holder_of_the_whole_disk_is_a_use_of_its_partitions() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = stack(disk(files, "dm-0", "253:0"), "sda", "dm-0");
    assert_eq!(told(&files, "sda1"), [r#"WholeDisk sda: Holder { what: "the device dm-0" }"#]);
}

#[test]
fn swap_on_a_partition_and_in_a_file_are_uses() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = partition(files, "sda", 2, "8:2");
    let files = mounts(files, "30 24 8:1 / /data rw - ext4 /dev/sda1 rw\n");
    let files = swaps(files, "/dev/sda2 partition 8 0 -2\n/data/swap file 8 0 -3\n");
    assert_eq!(
        told(&files, "sda"),
        [
            r#"Partition sda1: Mounted { filesystem: "ext4", points: ["/data"] }"#,
            r#"Partition sda1: SwapFile { path: "/data/swap" }"#,
            "Partition sda2: Swap",
        ]
    );
}

#[test]
fn every_device_of_a_mounted_btrfs_is_used() {
    let files = disk(disk(machine(), "sda", "8:0"), "sdb", "8:16");
    let files = files
        .dir("/sys/fs/btrfs/features")
        .file("/sys/fs/btrfs/uuid-1/label", "pool\n")
        .link("/sys/fs/btrfs/uuid-1/devices/sda", "/sys/devices/sda")
        .link("/sys/fs/btrfs/uuid-1/devices/sdb", "/sys/devices/sdb");
    let mounted = mounts(files.clone(), "30 24 0:44 /@ /pool rw - btrfs /dev/sda rw\n");
    for name in ["sda", "sdb"] {
        let expected = format!(r#"Itself {name}: Btrfs {{ name: "pool", points: ["/pool"] }}"#);
        assert_eq!(told(&mounted, name), [expected]);
    }
    let elsewhere = r#"Itself sdb: Btrfs { name: "pool", points: [] }"#;
    assert_eq!(told(&files, "sdb"), [elsewhere], "mounted in another namespace");
}

#[test]
fn btrfs_is_found_by_its_source_when_sysfs_does_not_list_it() {
    let files = disk(machine(), "sda", "8:0");
    let files = mounts(files, "30 24 0:44 / /pool rw - btrfs /dev/sda rw\n");
    assert_eq!(
        told(&files, "sda"),
        [r#"Itself sda: Mounted { filesystem: "btrfs", points: ["/pool"] }"#]
    );
}

#[test]
fn a_loop_device_over_a_device_is_a_use_of_it_and_of_its_disk() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = disk(files, "loop0", "7:0");
    let loops = [loop_on("loop0", "/dev/sda1", block_backing(8, 1))];
    let expected = r#"Loop { name: "loop0", backing: "/dev/sda1" }"#;
    assert_eq!(told_with(&files, "sda1", &loops), [format!("Itself sda1: {expected}")]);
    assert_eq!(told_with(&files, "sda", &loops), [format!("Partition sda1: {expected}")]);
    let unasked = [loop_on("loop0", "/dev/sda1", None)];
    assert_eq!(told_with(&files, "sda1", &unasked).len(), 1, "by its path alone");
}

#[test]
fn a_loop_device_is_the_device_below_under_another_name() {
    let files = partition(disk(machine(), "sda", "8:0"), "sda", 1, "8:1");
    let files = disk(files, "loop0", "7:0");
    let loops = [loop_on("loop0", "/dev/sda", block_backing(8, 0))];
    assert_eq!(told_with(&files, "loop0", &loops), [""; 0]);
    let files = mounts(files, "30 24 8:1 / /mnt rw - ext4 /dev/sda1 rw\n");
    assert_eq!(
        told_with(&files, "loop0", &loops),
        [r#"Below sda1: Mounted { filesystem: "ext4", points: ["/mnt"] }"#]
    );
}

#[test]
fn a_loop_device_over_a_file_uses_the_device_of_the_file_and_not_the_other_way() {
    let files = disk(machine(), "loop0", "7:0");
    for backing in [file_backing(179, 2, 12), None] {
        let loops = [loop_on("loop0", "/srv/disk.img", backing)];
        assert_eq!(told_with(&files, "loop0", &loops), [""; 0]);
        let told = told_with(&files, "mmcblk0p2", &loops);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("/srv/disk.img"), "{told:?}");
    }
}

#[test]
fn the_file_of_a_loop_device_counts_when_its_filesystem_is_out_of_sight() {
    let files = disk(disk(machine(), "sda", "8:0"), "loop0", "7:0");
    let loops = [loop_on("loop0", "/gone/disk.img (deleted)", file_backing(8, 0, 12))];
    assert_eq!(
        told_with(&files, "sda", &loops),
        [r#"Itself sda: Loop { name: "loop0", backing: "/gone/disk.img (deleted)" }"#]
    );
}

#[test]
fn a_loop_device_over_a_loop_device_is_the_file_below_both() {
    let files = disk(disk(disk(machine(), "loop0", "7:0"), "loop1", "7:1"), "loop2", "7:2");
    let mounted = mounts(files, "30 24 7:0 / /mnt rw - ext4 /dev/loop0 rw\n");
    let loops = [
        loop_on("loop0", "/srv/disk.img", file_backing(179, 2, 12)),
        loop_on("loop1", "/srv/disk.img", file_backing(179, 2, 12)),
        loop_on("loop2", "/dev/loop1", block_backing(7, 1)),
    ];
    assert_eq!(
        told_with(&mounted, "loop2", &loops),
        [
            r#"Twin loop0: SameBacking { backing: "/srv/disk.img" }"#,
            r#"Twin loop0: Mounted { filesystem: "ext4", points: ["/mnt"] }"#,
        ]
    );
    let files = disk(disk(machine(), "loop1", "7:1"), "loop2", "7:2");
    let swapped = swaps(files, "/srv/disk.img file 8 0 -3\n");
    let told = told_with(&swapped, "loop2", &loops[1..]);
    assert_eq!(told, [r#"Itself loop1: BackingIsSwap { path: "/srv/disk.img" }"#]);
}

#[test]
fn two_loop_devices_over_one_file_are_one_device() {
    let files = disk(disk(machine(), "loop0", "7:0"), "loop1", "7:1");
    let files = mounts(files, "30 24 7:1 / /mnt rw - ext4 /dev/loop1 rw\n");
    let loops = [
        loop_on("loop0", "/srv/disk.img", file_backing(179, 2, 12)),
        loop_on("loop1", "/srv/same.img", file_backing(179, 2, 12)),
        loop_on("loop2", "/srv/other.img", file_backing(179, 2, 13)),
    ];
    assert_eq!(
        told_with(&files, "loop0", &loops),
        [
            r#"Twin loop1: SameBacking { backing: "/srv/disk.img" }"#,
            r#"Twin loop1: Mounted { filesystem: "ext4", points: ["/mnt"] }"#,
        ]
    );
}

#[test]
fn a_backing_file_that_is_swap_is_a_use() {
    let files = swaps(disk(machine(), "loop0", "7:0"), "/srv/swap file 8 0 -3\n");
    let loops = [loop_on("loop0", "/srv/swap", file_backing(179, 2, 12))];
    assert_eq!(
        told_with(&files, "loop0", &loops),
        [r#"Itself loop0: BackingIsSwap { path: "/srv/swap" }"#]
    );
}

#[test]
fn tables_that_cannot_be_read_are_told() {
    let bare = || disk(FakeFiles::new(), "sda", "8:0");
    let unreadable = |files: FakeFiles| {
        let told = told(&files, "sda");
        assert!(told.iter().all(|line| line.starts_with("unreadable: ")), "{told:?}");
        told.len()
    };
    assert_eq!(unreadable(swaps(mounts(bare(), ""), "")), 0);
    assert_eq!(unreadable(mounts(bare(), "")), 0, "a kernel without swap");
    assert_eq!(unreadable(swaps(bare(), "")), 1, "no mount table");
    assert_eq!(unreadable(swaps(bare().denied("/proc/self/mountinfo"), "")), 1);
    assert_eq!(unreadable(mounts(bare().denied("/proc/swaps"), "")), 1);
    assert_eq!(unreadable(mounts(bare().denied("/sys/fs/btrfs"), "")), 1);
    assert_eq!(unreadable(mounts(bare().denied("/sys/devices/sda/holders"), "")), 1);
    assert_eq!(unreadable(mounts(bare(), "nonsense\n")), 1);
    assert_eq!(unreadable(swaps(mounts(bare(), ""), "nonsense\n")), 1);
}

#[test]
fn programs_count_when_they_write_or_serve() {
    let number = DeviceNumber { major: 8, minor: 1 };
    let opener = |pid, name: &str, writes| Opener { pid, name: name.into(), number, writes };
    let own = std::process::id();
    let files = machine();
    let openers = [
        opener(1, "dd", true),
        opener(2, "udevd", false),
        opener(3, "qemu-nbd", false),
        opener(own, "rubus", true),
    ];
    let counted = |claimed_by_us| {
        let mut found = Found {
            numbers: vec![("sda1".into(), Relation::Partition, number)],
            ..Found::default()
        };
        add_openers(&Sys::new(&files), &mut found, &openers, claimed_by_us);
        found.uses.len()
    };
    assert_eq!(counted(true), 2);
    assert_eq!(counted(false), 3, "an earlier opening of its own counts");
}

#[test]
fn the_process_behind_a_network_device_is_no_user_of_it() {
    let number = DeviceNumber { major: 43, minor: 0 };
    let opener = |pid| Opener { pid, name: "qemu-nbd".into(), number, writes: true };
    let files = disk(machine(), "nbd0", "43:0")
        .file("/sys/devices/nbd0/pid", "814\n")
        .dir("/proc/812/task/812")
        .dir("/proc/812/task/814")
        .dir("/proc/900/task/900");
    let mut found =
        Found { numbers: vec![("nbd0".into(), Relation::Itself, number)], ..Found::default() };
    add_openers(&Sys::new(&files), &mut found, &[opener(812), opener(900)], false);
    let pids: Vec<_> = found.uses.iter().map(|used| &used.kind).collect();
    assert_eq!(pids.len(), 1);
    assert!(matches!(pids[0], UseKind::Open { pid: 900, .. }), "{pids:?}");
}

#[test]
fn the_card_that_the_board_starts_from_is_used_without_a_mount() {
    let told = |files: FakeFiles, mode: u32, read: u32| {
        let node = Path::new(Bootloader::SOURCE);
        let files = files.file("/proc/self/mountinfo", "26 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        let files = partition(disk(files, "sda", "8:0"), "sda", 1, "8:1");
        files
            .file(node.join("boot-mode"), mode.to_be_bytes())
            .file(node.join("partition"), read.to_be_bytes())
    };
    let uses = |files: &FakeFiles, name: &str| {
        let sys = Sys::new(files);
        let node = sys.by_name(name).expect("it is there");
        let found = find(&sys, &node, &[]);
        let starts = |used: &&Use| matches!(used.kind, UseKind::StartsBoard { .. });
        found.uses.iter().filter(starts).count()
    };
    let card = told(machine(), 1, 1);
    for (name, count) in [("mmcblk0", 1), ("mmcblk0p1", 1), ("mmcblk0p2", 0), ("sda", 0)] {
        assert_eq!(uses(&card, name), count, "{name}");
    }
    assert_eq!(uses(&told(machine(), 4, 1), "mmcblk0"), 0);
    assert_eq!(uses(&told(machine(), 1, 0), "mmcblk0p1"), 1);
}
