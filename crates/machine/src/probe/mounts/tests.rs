//! Tests of the mounts, on made-up mount tables.

use super::*;
use proptest::prelude::*;
use rubus_host::simulated::fake::FakeFiles;

const TABLE: &str = "\
21 26 0:19 / /sys rw,nosuid - sysfs sysfs rw
22 26 0:20 / /proc rw,relatime - proc proc rw
23 26 0:5 / /dev rw,nosuid - devtmpfs udev rw,size=1895308k
26 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw
27 23 0:23 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw
28 26 0:40 / /run/credentials/a.service ro - tmpfs none rw,size=1024k
29 26 0:41 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw,fd=30
30 26 179:1 / /boot/firmware rw,relatime shared:30 - vfat /dev/mmcblk0p1 rw,fmask=0022
31 26 0:42 /@data /srv/my\\040data rw,noatime - btrfs /dev/mapper/crypt rw,compress=zstd:3,subvol=/@data
32 26 0:43 / /mnt/nas rw - nfs4 nas:/export rw,vers=4.2
33 26 0:44 / /home/pi/.cache/doc rw - fuse.portal portal rw
34 26 8:1 / /media/usb rw - fuseblk /dev/sda1 rw,user_id=0
35 26 179:2 /var/data /data ro,noatime - ext4 /dev/mmcblk0p2 rw
36 26 0:45 / /mnt/hidden rw - tmpfs first rw
37 26 8:1 / /mnt/hidden rw - vfat /dev/sda1 rw
";

fn numbers() -> Vec<(String, String)> {
    [("179:1", "mmcblk0p1"), ("179:2", "mmcblk0p2"), ("8:1", "sda1"), ("253:0", "dm-0")]
        .iter()
        .map(|(number, name)| (number.to_string(), name.to_string()))
        .collect()
}

fn machine() -> FakeFiles {
    FakeFiles::new()
        .file(MOUNTINFO, TABLE)
        .file("/dev/dm-0", "")
        .link("/dev/mapper/crypt", "../dm-0")
        .space("/", 1000, 400)
}

#[test]
fn what_holds_files_is_listed_with_its_device() {
    let files = machine();
    let table = MountTable::read(&files, &numbers());
    let listed: Vec<String> = table
        .lines
        .iter()
        .zip(&table.devices)
        .filter(|(line, device)| matters(line, device.is_some()))
        .map(|(line, device)| format!("{} {}", line.point, device.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        listed,
        [
            "/ mmcblk0p2",
            "/dev/shm -",
            "/boot/firmware mmcblk0p1",
            "/srv/my data dm-0",
            "/mnt/nas -",
            "/media/usb sda1",
            "/data mmcblk0p2",
            "/mnt/hidden -",
            "/mnt/hidden sda1",
        ]
    );
}

#[test]
fn of_two_mounts_on_one_point_the_visible_one_is_listed() {
    let found = mounts(&machine(), &[]);
    let hidden: Vec<&str> = found
        .iter()
        .filter(|mount| mount.point == "/mnt/hidden")
        .map(|mount| mount.source.as_str())
        .collect();
    assert_eq!(hidden, ["/dev/sda1"]);
}

#[test]
fn a_file_is_on_the_device_of_the_mount_that_holds_it() {
    let files = machine();
    let table = MountTable::read(&files, &numbers());
    assert_eq!(table.device_holding("/srv/my data/disk.img"), Some("dm-0"));
    assert_eq!(table.device_holding("/home/disk.img"), Some("mmcblk0p2"));
    assert_eq!(table.device_holding("/dev/shm/disk.img"), None);
    assert_eq!(table.filesystem_on("dm-0"), Some("btrfs"));
}

#[test]
fn a_read_only_bind_mount_of_a_writable_filesystem_is_read_only() {
    let found = mounts(&machine(), &[]);
    let data = found.iter().find(|mount| mount.point == "/data").unwrap();
    assert_eq!(data.options, ["ro", "noatime"]);
    assert_eq!(data.root, "/var/data");
}

#[test]
fn compression_is_the_last_word_of_the_options() {
    let of = |options: &str| {
        let options: Vec<String> = options.split(',').map(str::to_string).collect();
        compression(&options)
    };
    assert_eq!(of("rw,compress=zstd:3,ssd"), Some("zstd:3".into()));
    assert_eq!(of("rw,compress-force=lzo"), Some("lzo".into()));
    assert_eq!(of("rw,compress_algorithm=lz4"), Some("lz4".into()));
    assert_eq!(of("rw,compress=no"), None);
    assert_eq!(of("rw,ssd"), None);
}

#[test]
fn servers_are_not_asked_for_their_space_and_the_rest_is() {
    let found = mounts(&machine(), &[]);
    let at = |point: &str| found.iter().find(|mount| mount.point == point).unwrap();
    assert_eq!(at("/").available_bytes.get(), Some(400));
    assert_eq!(at("/").size_bytes.source(), "statvfs /");
    let reason = at("/mnt/nas").size_bytes.reason().unwrap();
    assert!(reason.contains("would block"), "{reason}");
    assert_eq!(at("/boot/firmware").size_bytes.reason(), Some("no such file"));
}

proptest! {
    #[test]
    fn no_table_makes_it_panic(lines in "([ -~]{0,80}\n){0,6}") {
        let files = FakeFiles::new().file(MOUNTINFO, lines);
        mounts(&files, &[]);
    }
}
