//! Captures as a whole: saved and opened, redacted, broken.

use std::path::Path;

use super::reading::read_everything_there;
use super::*;
use crate::files::{Files, ReadError};
use crate::shareable::Pseudonyms;
use crate::simulated::fake::FakeFiles;
use crate::simulated::recorder::Recorder;

mod broken;

const WHEN: &str = "2026-11-21T00:58:12Z";

/// Every identity that [`machine`] has, in lower case and in each spelling that could survive.
const SECRETS: [&str; 26] = [
    "10000000abcdef01",
    "abcdef01",
    "1a2b3c4d",
    "s4evnx0r123456",
    "my serial 42x",
    "my_serial_42x",
    "12345678",
    "77123456789",
    "5002538e40fedcba",
    "53344556",
    "3b614a3f-4a65-4480-876a-8a998e01ac9b",
    "3b614a3f4a654480876a8a998e01ac9b",
    "5df9-e225",
    "9b17c4a5",
    "a1b2c3d4e5f60718293a4b5c6d7e8f90",
    "ab:cd:ef",
    "ab-cd-ef",
    "abcdef",
    "workbench7",
    "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "3aaa0122:29827cfa:5331ad66:ca767371",
    "pzi0rs-m9if-ltbf-ocvp-gyfr-5hvl-1nqx8g",
    "pzi0rsm9ifltbfocvpgyfr5hvl1nqx8g",
    "0c9d8e7f",
    "c0ffee00-1111-4222-8333-444455556666",
    "q7w8e9",
];

/// A machine that shows its identities wherever a real one might.
fn machine() -> FakeFiles {
    let usb = "/sys/devices/soc/usb1/1-1";
    FakeFiles::new()
        .file("/etc/machine-id", "0f1e2d3c4b5a69788796a5b4c3d2e1f0\n")
        .file("/etc/hostname", "Workbench7\n")
        .file(
            "/proc/cpuinfo",
            "Hardware\t: BCM2835\nSerial\t\t: 10000000abcdef01\nModel\t: Raspberry Pi 4\n",
        )
        .file("/proc/device-tree/serial-number", "10000000abcdef01\0")
        .file(
            "/proc/cmdline",
            "bcm2709.serial=0xabcdef01 smsc95xx.macaddr=B8:27:EB:AB:CD:EF \
             root=PARTUUID=9b17c4a5-02 ip=::::workbench7:eth0 rootwait\n",
        )
        .file("/etc/fstab", "UUID=5DF9-E225 /boot vfat defaults 0 2\n")
        .files(
            "/sys/block/mmcblk0/device",
            [
                ("type", "SD\n"),
                ("serial", "0x1a2b3c4d\n"),
                ("cid", "035344534c333247801a2b3c4d015a5b\n"),
                ("name", "SL32G\n"),
            ],
        )
        .file("/sys/block/sda/size", "12345678\n")
        .file("/sys/block/sda/device/wwid", "naa.5002538e40fedcba\n")
        .file("/sys/block/sda/device/vpd_pg80", b"\0\x80\0\x0eS4EVNX0R123456")
        .file("/sys/block/nvme0n1/device/serial", "MY SERIAL 42X   \n")
        .file("/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-a1b2c3d4e5f60718293a4b5c6d7e8f90-cryptroot\n")
        .file("/sys/block/dm-1/dm/uuid", "LVM-Pzi0rSm9iFlTBFoCvPgYFR5hvL1NqX8g\n")
        .file(
            "/dev/superblock",
            [
                b"head".as_slice(),
                &[0x3b, 0x61, 0x4a, 0x3f, 0x4a, 0x65, 0x44, 0x80],
                &[0x87, 0x6a, 0x8a, 0x99, 0x8e, 0x01, 0xac, 0x9b],
                b"tail",
            ]
            .concat(),
        )
        .link("/sys/bus/usb/devices/1-1", usb)
        .file(format!("{usb}/serial"), "77123456789\n")
        .file("/sys/bus/usb/devices/2-1/serial", "12345678\n")
        .file("/sys/bus/usb/devices/3-1/serial", "Q7W8E9\n")
        .file("/sys/class/net/enxb827ebabcdef/address", "b8:27:eb:ab:cd:ef\n")
        .file("/sys/class/net/enxb827ebabcdef/speed", "100\n")
        .file(
            "/run/udev/data/b8:2",
            "S:disk/by-uuid/3b614a3f-4a65-4480-876a-8a998e01ac9b\n\
             S:disk/by-id/usb-Generic_Q7W8E9-0:0\n\
             E:ID_FS_UUID=3b614a3f-4a65-4480-876a-8a998e01ac9b\n\
             E:ID_SERIAL=Samsung_SSD_S4EVNX0R123456\nE:ID_SERIAL_SHORT=S4EVNX0R123456\n\
             E:ID_PART_ENTRY_TYPE=0fc63daf-8483-4772-8e79-3d69d8477de4\n\
             E:ID_PART_TABLE_UUID=0c9d8e7f\nE:ID_WWN=0x5002538e40fedcba\n",
        )
        .link("/dev/disk/by-partuuid/9b17c4a5-02", "../../mmcblk0p2")
        .link("/dev/disk/by-uuid/5DF9-E225", "../../mmcblk0p1")
        .link("/dev/disk/by-id/mmc-SL32G_0x1a2b3c4d-part2", "../../mmcblk0p2")
        .link("/dev/disk/by-id/usb-Maker_Disk_12345678-0:0", "../../sdb")
        .link("/dev/disk/by-id/lvm-pv-uuid-Pzi0rS-m9iF-lTBF-oCvP-gYFR-5hvL-1NqX8g", "../../sdb")
        .link("/dev/disk/by-id/nvme-nvme.144d-53344556-ssd-00000001", "../../nvme0n1")
        .dir("/dev/mmcblk0p1")
        .dir("/dev/mmcblk0p2")
        .dir("/dev/sdb")
        .dir("/dev/nvme0n1")
        .program(
            &["mdadm", "--detail", "--scan"],
            "ARRAY /dev/md/0 name=workbench7:0 UUID=3aaa0122:29827cfa:5331ad66:ca767371\n",
        )
        .failing_program(
            &["blkid"],
            ReadError::Failed {
                status: 2,
                complaint: "no C0FFEE00-1111-4222-8333-444455556666".to_string(),
                output: "serial S4EVNX0R123456".to_string(),
            },
        )
        .space("/media/workbench7", 10, 5)
        .failing("/mnt/S4EVNX0R123456", ReadError::Other("MY SERIAL 42X is gone".into()))
}

/// Reads everything that [`machine`] has, except the machine id and the host name, which a survey
/// does not read either.
fn read_everything(files: &dyn Files) {
    fn walk(files: &dyn Files, directory: &Path) {
        for name in files.list(directory).unwrap_or_default() {
            let path = directory.join(name);
            if ["/etc/machine-id", "/etc/hostname"].contains(&path.to_str().unwrap()) {
                continue;
            }
            files.real_path(&path).unwrap();
            let _ = files.text(&path);
            walk(files, &path);
        }
    }
    walk(files, Path::new("/"));
    let _ = files.ask("mdadm", &["--detail", "--scan"]);
    let _ = files.ask("blkid", &[]);
    let _ = files.space(Path::new("/media/workbench7"));
}

fn saved(machine: &FakeFiles, name: &str, identities: Identities) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let recorder = Recorder::new(machine);
    read_everything(&recorder);
    save(&recorder, &path, "recorded for a test", WHEN, identities).unwrap();
    (directory, path)
}

/// All bytes of a capture, names included.
fn all_bytes(path: &Path) -> Vec<u8> {
    if !path.is_dir() {
        return std::fs::read(path).unwrap();
    }
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        bytes.extend(entry.file_name().as_encoded_bytes());
        bytes.extend(all_bytes(&entry.path()));
    }
    bytes
}

#[test]
fn no_identity_survives_anywhere() {
    let machine = machine();
    for name in ["capture.tar", "directory/"] {
        let (_directory, path) = saved(&machine, name, Identities::Replace);
        let bytes = all_bytes(&path).to_ascii_lowercase();
        for secret in SECRETS {
            // One size in sectors has the digits of a serial number, and stays.
            let expected = if secret == "12345678" { 1 } else { 0 };
            let found =
                bytes.windows(secret.len()).filter(|window| *window == secret.as_bytes()).count();
            assert_eq!(found, expected, "{secret} in {name}");
        }
        let uuid = [0x3b, 0x61, 0x4a, 0x3f, 0x4a, 0x65, 0x44, 0x80, 0x87];
        assert!(!all_bytes(&path).windows(9).any(|window| window == uuid));
    }
}

#[test]
fn with_serials_every_identity_is_there() {
    let (_directory, path) = saved(&machine(), "capture.tar", Identities::Keep);
    let bytes = all_bytes(&path).to_ascii_lowercase();
    for secret in ["10000000abcdef01", "s4evnx0r123456", "9b17c4a5-02"] {
        let found = bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
        assert!(found, "{secret}");
    }
}

#[test]
fn pseudonyms_agree_with_each_other_and_keep_their_form() {
    let (_directory, path) = saved(&machine(), "capture.tar", Identities::Replace);
    let captured = Captured::open(&path).unwrap();
    let text = |path: &str| captured.text(Path::new(path)).unwrap();
    // The partition that the command line names is the one under /dev/disk.
    let cmdline = text("/proc/cmdline");
    let root = cmdline.split("root=PARTUUID=").nth(1).unwrap();
    let root = root.split(' ').next().unwrap();
    assert!(root.ends_with("-02") && root.len() == 11, "{root}");
    assert_eq!(
        captured.real_path(Path::new(&format!("/dev/disk/by-partuuid/{root}"))).unwrap(),
        Path::new("/dev/mmcblk0p2")
    );
    // A card's register keeps what is no serial number, and has the same one as the file.
    let register = text("/sys/block/mmcblk0/device/cid");
    let serial = text("/sys/block/mmcblk0/device/serial");
    assert!(register.starts_with("035344534c33324780"));
    assert_eq!(&register[18..26], serial.strip_prefix("0x").unwrap());
    assert_eq!(&register[26..], "015a00");
    // Addresses keep their maker, also where they are part of a name.
    let name = captured.list(Path::new("/sys/class/net")).unwrap().remove(0);
    assert!(name.starts_with("enxb827eb"), "{name}");
    let address = text(&format!("/sys/class/net/{name}/address"));
    assert_eq!(address.replace(':', ""), name["enx".len()..]);
    assert!(!cmdline.contains("macaddr"), "{cmdline}");
    // A binary page keeps its length, and says what udev says.
    let page = captured.read_prefix(Path::new("/sys/block/sda/device/vpd_pg80"), 99).unwrap();
    let serial = String::from_utf8(page[4..].to_vec()).unwrap();
    assert_eq!(serial.len(), 14);
    assert!(serial.starts_with("serial-"), "{serial}");
    assert!(text("/run/udev/data/b8:2").contains(&format!("ID_SERIAL_SHORT={serial}\n")));
    // What is the same on every machine stays.
    assert!(text("/run/udev/data/b8:2").contains("0fc63daf-8483-4772-8e79-3d69d8477de4"));
    assert!(text("/proc/cpuinfo").contains("Raspberry Pi 4"));
    assert_eq!(text("/sys/block/sda/size"), "12345678");
}

#[test]
fn pseudonyms_are_counted_and_tell_nothing_of_the_machine() {
    let serial = |machine: &FakeFiles| {
        let (_directory, path) = saved(machine, "capture.tar", Identities::Replace);
        let captured = Captured::open(&path).unwrap();
        captured.text(Path::new("/proc/device-tree/serial-number")).unwrap()
    };
    let first = serial(&machine());
    assert_eq!(first, serial(&machine()));
    let other = machine().file("/etc/machine-id", "1f1e2d3c4b5a69788796a5b4c3d2e1f0\n");
    assert_eq!(first, serial(&other));
}

#[test]
fn the_controller_that_a_root_hub_gives_as_its_serial_number_is_no_secret() {
    let hub = "/sys/devices/platform/soc/3f980000.usb/usb1";
    let machine = machine()
        .link("/sys/bus/usb/devices/usb1", hub)
        .file(format!("{hub}/serial"), "3f980000.usb\n")
        .file(
            "/run/udev/data/c189:0",
            "E:ID_SERIAL_SHORT=3f980000.usb\nE:ID_PATH=platform-3f980000.usb\n",
        );
    let (_directory, path) = saved(&machine, "capture.tar", Identities::Replace);
    let captured = Captured::open(&path).unwrap();
    let text = |path: &str| captured.text(Path::new(path)).unwrap();
    assert_eq!(text(&format!("{hub}/serial")), "3f980000.usb");
    assert!(text("/run/udev/data/c189:0").contains("ID_PATH=platform-3f980000.usb"));
    // The device at the hub has a serial number of its own, and keeps its pseudonym.
    let usb = text("/sys/devices/soc/usb1/1-1/serial");
    assert!(usb.starts_with("serial-"), "{usb}");
}

#[test]
fn common_host_names_are_no_secret() {
    let files = FakeFiles::new()
        .file("/etc/hostname", "raspberrypi\n")
        .file("/proc/device-tree/compatible", "raspberrypi,3-model-b\0brcm,bcm2837\0");
    let (_directory, path) = saved(&files, "capture.tar", Identities::Replace);
    let captured = Captured::open(&path).unwrap();
    let compatible = captured.text(Path::new("/proc/device-tree/compatible"));
    assert!(compatible.unwrap().starts_with("raspberrypi,3-model-b"));
}

#[test]
fn every_shape_of_capture_answers_the_same() {
    let machine = machine();
    for name in ["a.tar", "a.tar.gz", "a.tgz", "directory/"] {
        let (_directory, path) = saved(&machine, name, Identities::Keep);
        let captured = Captured::open(&path).unwrap();
        assert_eq!(captured.label(), "recorded for a test");
        assert_eq!(captured.recorded_at(), WHEN);
        let live = Recorder::new(&machine);
        read_everything(&live);
        let again = Recorder::new(&captured);
        read_everything(&again);
        let (live, again) = (live.record(), again.record());
        assert_eq!(live.files, again.files, "{name}");
        assert_eq!(live.directories, again.directories, "{name}");
        assert_eq!(live.links, again.links, "{name}");
        assert_eq!(live.programs, again.programs, "{name}");
        assert_eq!(live.spaces, again.spaces, "{name}");
        // Directories differ in the words for being no file.
        assert_eq!(
            live.errors.keys().collect::<Vec<_>>(),
            again.errors.keys().collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn the_same_machine_makes_the_same_bytes() {
    let machine = machine();
    let (_first, first) = saved(&machine, "a.tar", Identities::Replace);
    let (_second, second) = saved(&machine, "a.tar", Identities::Replace);
    assert_eq!(all_bytes(&first), all_bytes(&second));
}

#[test]
fn a_saved_capture_can_be_moved_through_tar_by_hand() {
    let (directory, path) = saved(&machine(), "mycapture/", Identities::Keep);
    let packed = directory.path().join("packed.tar");
    for arguments in [["-C", ".", "mycapture"], ["-C", "mycapture", "."]] {
        let status = std::process::Command::new("tar")
            .current_dir(directory.path())
            .arg("-cf")
            .arg(&packed)
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success());
        let captured = Captured::open(&packed).unwrap();
        let original = Captured::open(&path).unwrap();
        for file in ["/proc/cpuinfo", "/sys/bus/usb/devices/1-1/serial"] {
            assert_eq!(captured.text(Path::new(file)), original.text(Path::new(file)));
        }
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left_behind() {
    let machine = machine();
    let (directory, path) = saved(&machine, "a.tar", Identities::Keep);
    let before = all_bytes(&path);
    let recorder = Recorder::new(&machine);
    let again = save(&recorder, &path, "-", WHEN, Identities::Keep).unwrap_err();
    assert!(matches!(again, CaptureError::Exists(_)), "{again}");
    assert!(again.to_string().contains("give another name"), "{again}");
    assert_eq!(all_bytes(&path), before);
    let occupied = save(&recorder, directory.path(), "-", WHEN, Identities::Keep);
    assert!(matches!(occupied, Err(CaptureError::Exists(_))));
    let missing = directory.path().join("missing/a.tar");
    let error = save(&recorder, &missing, "-", WHEN, Identities::Keep).unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_release_of_a_distribution_or_a_board_has_no_name_of_a_person() {
    for release in [
        "6.1.115-vendor-rk35xx",
        "5.19.17-Unraid",
        "5.4.35-BPI-Kernel",
        "6.12.25+rpt-rpi-v7l",
        "6.12.15-production+truenas",
        "6.9.3-x64v3-xanmod1",
        "6.12.1-2-cachyos",
        "5.15.0-300.163.18.el9uek.x86_64",
        "6.1.79-99.164.amzn2023.x86_64",
        "6.1.31-sun50iw9",
        "6.12.48-haos",
    ] {
        let mut names = Pseudonyms::noting();
        kernel_forms::note_release(release, &mut names);
        assert_eq!(names.noted(), Vec::<String>::new(), "{release}");
    }
}
