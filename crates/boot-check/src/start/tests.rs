//! Starts of captured machines, each with one thing changed, and of cards that a generator made.

mod cards;
mod machines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rubus_boot::chain::Outcome;
use rubus_draw::Style;
use rubus_host::capture::Captured;
use rubus_host::files::not_kept;
use rubus_host::{Files, ReadError, Space};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{BlockDevice, Bootloader, Machine, Mount, Origin};
use rubus_vocabulary::mount_entry::Entry;
use rubus_vocabulary::rule_finding::Weight;

use super::*;

const CONFIG: &str = "/boot/firmware/config.txt";
const CMDLINE: &str = "/boot/firmware/cmdline.txt";
const FSTAB: &str = "/etc/fstab";
const LINE: &str = "console=serial0,115200 console=tty1 root=PARTUUID=e6c1a9f4-02 rootfstype=ext4 fsck.repair=yes rootwait quiet";
const SETTINGS: &str = "dtparam=audio=on\nauto_initramfs=1\narm_64bit=1\n";
const TABLE: &str = "proc /proc proc defaults 0 0\nPARTUUID=e6c1a9f4-01 /boot/firmware vfat defaults 0 2\nPARTUUID=e6c1a9f4-02 / ext4 defaults,noatime 0 1\n";

/// A captured machine with some of its files and facts changed.
struct Case {
    captured: Captured,
    machine: Machine,
    /// Files that are other, or gone.
    changed: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Case {
    /// A Raspberry Pi 4 with its system on a card, and an SSD.
    fn new() -> Case {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures/pi4b-usb3-ssd");
        let captured = Captured::open(&place).expect("the capture");
        let origin = Origin::Capture { path: "a capture".into(), label: String::new() };
        let machine = rubus_machine::probe::survey(&captured, captured.recorded_at(), origin);
        let mut case = Case { captured, machine, changed: BTreeMap::new() };
        case.machine.mounts.retain(|mount| mount.point != "/srv/data");
        case
    }

    fn write(&mut self, path: &str, text: impl AsRef<[u8]>) {
        self.changed.insert(path.into(), Some(text.as_ref().to_vec()));
    }

    fn remove(&mut self, path: &str) {
        self.changed.insert(path.into(), None);
    }

    fn device(&mut self, name: &str) -> &mut BlockDevice {
        let mut devices = self.machine.block_devices.iter_mut();
        devices.find(|device| device.name == name).expect("a device of the capture")
    }

    fn mount(&mut self, point: &str) -> &mut Mount {
        let mut mounts = self.machine.mounts.iter_mut();
        mounts.find(|mount| mount.point == point).expect("a mount of the capture")
    }

    fn start(&self) -> Start {
        of_machine(self, &self.machine)
    }

    fn outcome(&self) -> Outcome {
        self.start().chain.outcome()
    }
}

impl Files for Case {
    fn read_prefix(&self, path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
        match self.changed.get(path) {
            Some(Some(bytes)) => Ok(bytes[..bytes.len().min(limit)].to_vec()),
            Some(None) => Err(ReadError::Absent),
            None => self.captured.read_prefix(path, limit),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, ReadError> {
        let mut names = self.captured.list(path).unwrap_or_default();
        names.retain(|name| self.changed.get(&path.join(name)) != Some(&None));
        for changed in self.changed.iter().filter(|(_, bytes)| bytes.is_some()) {
            let Ok(rest) = changed.0.strip_prefix(path) else { continue };
            let Some(first) = rest.components().next() else { continue };
            let name = first.as_os_str().to_string_lossy().into_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { Err(ReadError::Absent) } else { Ok(names) }
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, ReadError> {
        match self.changed.get(path) {
            Some(Some(_)) => Ok(path.into()),
            Some(None) => Err(ReadError::Absent),
            None => self.captured.real_path(path),
        }
    }

    fn space(&self, path: &Path) -> Result<Space, ReadError> {
        self.captured.space(path)
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ReadError> {
        let call = Path::new("/asked").join(program).join(arguments.join(" "));
        match self.changed.get(&call) {
            Some(Some(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Some(None) => Err(ReadError::Absent),
            None => self.captured.ask(program, arguments),
        }
    }

    fn mode(&self, path: &Path) -> Result<u32, ReadError> {
        not_kept(self, path)
    }

    fn keeps_modes(&self, _: &Path) -> bool {
        true
    }

    fn link(&self, path: &Path) -> Result<PathBuf, ReadError> {
        not_kept(self, path)
    }

    fn firmware_word(&self, tag: u32) -> Result<u32, ReadError> {
        self.captured.firmware_word(tag)
    }
}

#[test]
fn the_text_has_one_sentence_what_to_change_the_links_and_the_ladder() {
    let mut case = Case::new();
    insta::assert_snapshot!("starts", text::render(&case.start(), false, Style::PLAIN));
    case.write(FSTAB, format!("{TABLE}UUID=3d343a73 /media/backup ext4 defaults 0 2\n"));
    case.write(CMDLINE, format!("{LINE}\nusb-storage.quirks=152d:0578:u\n"));
    insta::assert_snapshot!("stops", text::render(&case.start(), false, Style::PLAIN));
    insta::assert_snapshot!("stops_verbose", text::render(&case.start(), true, Style::PLAIN));
}

/// A start that is likely is not told as one that is certain; and what was looked for is named.
#[test]
fn the_first_line_says_probably_and_what_to_do_no_more_than_it() {
    let to_do = |case: &Case| {
        let step = next(&case.start());
        format!("{} ({})", step.command.unwrap_or_default().join(" "), step.words)
    };
    let mut case = Case::new();
    assert!(to_do(&case).contains("nothing: this firmware does not say"), "{}", to_do(&case));
    assert_eq!(
        text::first_line(&case.start()),
        "It probably starts; check the medium (mmcblk0: /boot/firmware is on it)"
    );
    let told = Bootloader { boot_mode: Some(1), partition: Some(1), ..Bootloader::default() };
    case.machine.board.bootloader = Fact::known(told, "a test");
    assert_eq!(text::first_line(&case.start()), "It starts");
    assert!(to_do(&case).contains("nothing: it starts"), "{}", to_do(&case));
    let medium = case.start().chain.links()[1].found.clone();
    assert_eq!(medium, "mmcblk0: the SD card or eMMC (boot-mode 1)");

    let mut bare = Case::new();
    for path in ["config.txt", "cmdline.txt", "kernel8.img", "kernel_2712.img", "initramfs8"] {
        bare.remove(&format!("/boot/firmware/{path}"));
    }
    bare.remove("/boot/firmware/initramfs_2712");
    assert_eq!(
        text::first_line(&bare.start()),
        "It is not certain whether it starts. The trace ends after the medium: the boot files of mmcblk0p1 (/boot/firmware) are not in the capture"
    );
    case.machine.mounts.retain(|mount| mount.point != "/boot/firmware");
    assert!(to_do(&case).contains("sudo rubus boot /dev/mmcblk0"), "{}", to_do(&case));
}

/// The root that runs is the one that is meant, and a stick is no root.
#[test]
fn a_missing_root_is_told_once_and_with_what_to_write() {
    let mut case = Case::new();
    case.write(CMDLINE, LINE.replace("e6c1a9f4-02", "deadbeef-02"));
    case.write(FSTAB, TABLE.replace("e6c1a9f4", "deadbeef"));
    let start = case.start();
    assert_eq!(start.chain.outcome(), Outcome::StopsAt(rubus_boot::chain::Stage::Root));
    assert_eq!(start.chain.notes().count(), 0);
    let stop = start.chain.deciding().and_then(|link| link.stop.clone()).expect("it stops");
    assert!(!stop.why.contains("00000000-01"), "{}", stop.why);
    assert!(stop.why.contains("e6c1a9f4-02 (/dev/mmcblk0p2)"), "{}", stop.why);
    assert!(stop.remedy.contains("write root=PARTUUID=e6c1a9f4-02"), "{}", stop.remedy);
}

#[test]
fn no_text_is_longer_or_wider_than_a_terminal() {
    for (name, change) in machines::CASES {
        let mut case = Case::new();
        change(&mut case);
        let text = text::render(&case.start(), false, Style::PLAIN);
        let widest = text.lines().map(rubus_draw::text::width).max().unwrap_or_default();
        assert!(text.lines().count() <= 24 && widest <= 80, "{name}:\n{text}");
    }
}

#[test]
fn the_survey_hears_of_the_next_start() {
    let rules = |case: &Case| -> Vec<String> {
        findings::findings(&case.start()).into_iter().map(|finding| finding.rule).collect()
    };
    let mut case = Case::new();
    assert!(rules(&case).is_empty());
    let other = LINE.replace("e6c1a9f4-02", "4f1c2a3b-7d6e-4f5a-8b9c-0d1e2f3a4b5c");
    case.write(CMDLINE, other);
    assert_eq!(rules(&case), ["next-root-is-another"]);
}

#[test]
fn the_survey_hears_of_boot_files_that_were_tried_and_did_not_start() {
    let found = |state: &str| {
        let mut case = Case::new();
        case.write(CONFIG, format!("{SETTINGS}os_prefix=current/\n"));
        case.write("/boot/firmware/current/cmdline.txt", LINE);
        for file in ["kernel8.img", "initramfs8"] {
            case.write(&format!("/boot/firmware/current/{file}"), "");
        }
        case.write("/boot/firmware/new/state", state);
        let start = case.start();
        assert_eq!(start.chain.outcome(), Outcome::Starts, "{state}");
        let found = findings::findings(&start).into_iter();
        found.map(|finding| (finding.rule, finding.weight)).collect::<Vec<_>>()
    };
    assert_eq!(found("bad\n"), [("updated-boot-files-failed".to_string(), Weight::Hint)]);
    for state in ["good\n", "unknown\n"] {
        assert!(found(state).is_empty(), "{state}");
    }
}

/// Alpine mounts the partition at a place of its own, and binds its directory with the kernels to /boot.
#[test]
fn a_directory_of_the_boot_partition_is_not_taken_for_all_of_it() {
    let mut case = Case::new();
    let whole = case.mount("/boot/firmware").clone();
    case.mount("/boot/firmware").point = "/boot".into();
    case.mount("/boot").root = "/boot".into();
    case.machine.mounts.push(Mount { point: "/media/mmcblk0p1".into(), ..whole });
    case.write("/media/mmcblk0p1/config.txt", SETTINGS);
    case.write("/media/mmcblk0p1/cmdline.txt", LINE);
    case.write("/media/mmcblk0p1/kernel8.img", "");
    case.write("/media/mmcblk0p1/initramfs8", "");
    assert_eq!(case.outcome(), Outcome::Starts);
}

/// nixpkgs, sd-image.nix: U-Boot lies on the FAT partition, which is mounted on demand; kernels are written to /boot.
#[test]
fn kernels_of_nixos_are_not_missed_on_the_partition_of_its_firmware() {
    let mut case = Case::new();
    let told = Bootloader { boot_mode: Some(1), partition: Some(1), ..Bootloader::default() };
    case.machine.board.bootloader = Fact::known(told, "a test");
    case.machine.mounts.retain(|mount| mount.point != "/boot/firmware");
    assert_eq!(case.start().chain.notes().count(), 1);
    case.machine.system.os_ids = vec!["nixos".into()];
    assert_eq!(case.start().chain.notes().count(), 0);
}

#[test]
fn boot_files_on_a_server_are_not_missed_on_the_card() {
    let mut case = Case::new();
    let boot = case.mount("/boot/firmware");
    (boot.filesystem, boot.device) = ("nfs".into(), None);
    assert_eq!(case.start().chain.notes().count(), 0);
    case.mount("/boot/firmware").filesystem = "tmpfs".into();
    assert_eq!(case.start().chain.notes().count(), 1);
}

#[test]
fn a_boot_partition_that_is_mounted_on_demand_is_read() {
    let mut case = Case::new();
    case.machine.mounts.retain(|mount| mount.point != "/boot/firmware");
    assert_ne!(case.outcome(), Outcome::Starts);
    let line = |target: &str, options: &str| Entry::new("/dev/mmcblk0p1", target, "vfat", options);
    let on_demand = line("/boot/firmware", "noauto,x-systemd.automount");
    case.machine.fstab = Fact::known(vec![on_demand], "/etc/fstab");
    let start = case.start();
    assert_eq!(start.chain.outcome(), Outcome::Starts);
    assert_eq!(start.chain.notes().count(), 0);
    // A line for another place says how it is mounted.
    case.write(
        FSTAB,
        format!("{TABLE}/dev/mmcblk0p1 /mnt/card vfat noauto 0 0\n")
            .replace("PARTUUID=e6c1a9f4-01", "#"),
    );
    case.machine.fstab = Fact::known(vec![line("/mnt/card", "noauto")], "/etc/fstab");
    let start = case.start();
    let remedies: Vec<&str> = start.chain.notes().map(|(_, note)| note.remedy.as_str()).collect();
    assert_eq!(remedies, ["mount it before an update: sudo mount /mnt/card"]);
}

/// A capture that may be shared keeps of most files that they are there.
#[test]
fn images_of_which_a_capture_keeps_no_more_than_their_names_are_not_damaged() {
    let mut case = Case::new();
    for name in ["kernel8.img", "initramfs8"] {
        case.write(&format!("/boot/firmware/{name}"), rubus_host::capture::FILE_IS_THERE);
    }
    assert_eq!(case.outcome(), Outcome::Starts);
    case.write("/boot/firmware/kernel8.img", [0_u8; 100]);
    assert_ne!(case.outcome(), Outcome::Starts);
}
