//! Plans on boards whose start is not what their mounts suggest: each a captured board with a few files changed, after
//! reports of real ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const CAPTURE: &str = "../../captures/pi4b-usb3-ssd";
const MOUNTS: &str = "proc/self/mountinfo";
const CMDLINE: &str = "boot/firmware/cmdline.txt";
const CONFIG: &str = "boot/firmware/config.txt";
const TABLE: &str = "etc/fstab";
const BOOTLOADER: &str = "proc/device-tree/chosen/bootloader";
const CARD_ROOT: &str = "e6c1a9f4-02";
const SSD: &str = "4f1c2a3b-7d6e-4f5a-8b9c-0d1e2f3a4b5c";

/// A copy of a captured board that can be changed.
struct Board {
    home: TempDir,
}

struct Answer {
    status: Option<i32>,
    text: String,
}

impl Board {
    /// A Raspberry Pi 4 with its system on the card; the SSD `sda` and the stick `sdb` are free.
    fn on_card() -> Board {
        let board = Board { home: tempfile::tempdir().expect("a directory") };
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(CAPTURE);
        copy(&from, &board.home.path().join("capture"));
        let manifest = board.home.path().join("capture/manifest.json");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        // It lists the lengths of the files, which change here.
        value.as_object_mut().expect("an object").remove("files");
        fs::write(&manifest, value.to_string()).expect("it can be written");
        board.unmounted("/srv/data")
    }

    /// The card starts it, and its command line leads to the root on the SSD. The device tree says so.
    fn card_starts_the_ssd() -> Board {
        let board = Board::on_card();
        let mounts = board.read(MOUNTS).replace("179:2 / / ", "8:1 / / ");
        let board = board.with(MOUNTS, mounts.replace("/dev/mmcblk0p2", "/dev/sda1"));
        let line = board.read(CMDLINE).replace(CARD_ROOT, SSD);
        board.with(CMDLINE, line).started(1, 1)
    }

    fn started(self, boot_mode: u32, partition: u32) -> Board {
        self.with(&format!("{BOOTLOADER}/boot-mode"), boot_mode.to_be_bytes())
            .with(&format!("{BOOTLOADER}/partition"), partition.to_be_bytes())
            .with(&format!("{BOOTLOADER}/tryboot"), 0_u32.to_be_bytes())
    }

    fn file(&self, path: &str) -> PathBuf {
        self.home.path().join("capture/files").join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).expect("a file of the capture")
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Board {
        let file = self.file(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("it can be made");
        fs::write(file, content).expect("it can be written");
        self
    }

    fn unmounted(self, point: &str) -> Board {
        let mounts = self.read(MOUNTS);
        let kept = mounts.lines().filter(|line| line.split(' ').nth(4) != Some(point));
        let kept: Vec<&str> = kept.collect();
        let kept = format!("{}\n", kept.join("\n"));
        self.with(MOUNTS, kept)
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let output = Command::new(env!("CARGO_BIN_EXE_rubus"))
            .args(arguments)
            .arg("--machine")
            .arg(self.home.path().join("capture"))
            .env("XDG_DATA_HOME", self.home.path().join("data"))
            .env("COLUMNS", "200")
            .output()
            .expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        Answer { status: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() }
    }

    /// What fails in a plan, each with what follows it, line breaks taken out.
    fn failures(&self, arguments: &[&str]) -> Vec<String> {
        let answer = self.run(arguments);
        let words: Vec<&str> = answer.text.split_whitespace().collect();
        let text = words.join(" ");
        let failures: Vec<String> = text.split("FAIL ").skip(1).map(str::to_string).collect();
        assert_eq!(answer.status == Some(1), !failures.is_empty(), "{}", answer.text);
        failures
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory of the capture") {
        let entry = entry.expect("an entry");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("a kind");
        if kind.is_symlink() {
            let link = fs::read_link(&path).expect("a link");
            std::os::unix::fs::symlink(link, target).expect("a link");
        } else if kind.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).expect("a copy");
        }
    }
}

/// Plans that would give the card a new content.
const ON_THE_CARD: [&[&str]; 3] = [
    &["plan", "format", "device=/dev/mmcblk0", "at=/mnt/data"],
    &["plan", "swap", "to=disk:/dev/mmcblk0"],
    &["plan", "raid0", "devices=/dev/mmcblk0,/dev/sdb", "at=/mnt/fast"],
];

#[test]
fn the_card_that_the_board_starts_from_is_in_use_though_it_is_not_mounted() {
    let board = Board::card_starts_the_ssd().unmounted("/boot/firmware");
    for plan in ON_THE_CARD {
        let failures = board.failures(plan);
        let is_told = |line: &String| line.contains("the board starts from it");
        assert!(failures.iter().any(is_told), "{plan:?}: {failures:#?}");
    }
    let advice = board.run(&["advise", "desktop"]);
    assert!(!advice.text.contains("raid0 devices"), "{}", advice.text);
}

#[test]
fn a_board_without_the_firmwares_word_keeps_its_card_where_nothing_else_can_start_it() {
    let board = Board::card_starts_the_ssd().unmounted("/boot/firmware");
    fs::remove_dir_all(board.file(BOOTLOADER)).expect("it was there");
    for plan in ON_THE_CARD {
        assert!(!board.failures(plan).is_empty(), "{plan:?}");
    }
}

#[test]
fn a_card_that_the_board_does_not_start_from_is_free() {
    // The firmware read a USB disk, whose boot partition is the mounted one.
    let board = Board::card_starts_the_ssd().unmounted("/boot/firmware");
    let udev = board.read("run/udev/data/b8:1").replace("ext4", "vfat");
    let board = board.with("run/udev/data/b8:1", udev).started(4, 1);
    let told = board.run(ON_THE_CARD[0]).text;
    assert!(!told.contains("starts from it") && !told.contains("may start from it"), "{told}");
}

#[test]
fn a_mounted_copy_of_the_boot_partition_is_not_taken_for_the_one_that_is_read() {
    let board = Board::card_starts_the_ssd();
    let mounts = board.read(MOUNTS).replace("179:1 / /boot/firmware", "8:17 / /boot/firmware");
    let board = board.with(MOUNTS, mounts.replace("/dev/mmcblk0p1", "/dev/sdb1"));
    for plan in [["plan", "desktop", "device=/dev/sdb"], ["plan", "usb-quirk", "device=/dev/sda"]] {
        let failures = board.failures(&plan).join("\n");
        assert!(failures.contains("the firmware reads /dev/mmcblk0p1"), "{plan:?}: {failures}");
    }
}

#[test]
fn the_root_of_the_next_start_has_to_be_the_one_that_runs() {
    let line = Board::on_card().read(CMDLINE);
    let with_another = line.replace(CARD_ROOT, SSD);
    for (text, says) in [
        (with_another.clone(), "is /dev/sda1, and the running root is /dev/mmcblk0p2"),
        (line.replace(CARD_ROOT, "deadbeef-02"), "is no volume of this machine"),
        (String::new(), "has no root= in its first line"),
        (format!("\n{line}"), "has no root= in its first line"),
        (format!("# old: {with_another}\n{line}"), "and the running root is"),
    ] {
        let board = Board::on_card().with(CMDLINE, &text);
        for filesystem in ["filesystem=btrfs", "filesystem=ext4"] {
            let failures = board.failures(&["plan", "desktop", "device=/dev/sda", filesystem]);
            assert!(failures.join("\n").contains(says), "{text:?}: {failures:#?}");
        }
    }
    for root in ["/dev/mmcblk0p2", "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8"] {
        let text = line.replace(&format!("PARTUUID={CARD_ROOT}"), root);
        let board = Board::on_card().with(CMDLINE, &text);
        let failures = board.failures(&["plan", "desktop", "device=/dev/sda"]);
        assert_eq!(failures, Vec::<String>::new(), "{root}");
    }
}

#[test]
fn a_trial_is_not_offered_where_it_would_start_another_system() {
    let board = Board::on_card().started(1, 1);
    let tried = board.run(&["plan", "desktop", "device=/dev/sda"]);
    assert!(tried.text.contains("the new system can first be started on trial"), "{}", tried.text);
    // The first partition is for the choice between two systems; this one is the second.
    let mounts = board.read(MOUNTS).replace("179:1 / /boot/firmware", "179:2 / /boot/firmware");
    let mounts = mounts.replace("179:2 / / ", "8:17 / / ").replace("/dev/mmcblk0p2", "/dev/sdb1");
    let mounts = mounts.replace("vfat /dev/mmcblk0p1", "vfat /dev/mmcblk0p2");
    let udev = board.read("run/udev/data/b179:2").replace("ext4", "vfat");
    let board = board.with(MOUNTS, mounts).with("run/udev/data/b179:2", udev).started(1, 2);
    let told = board.run(&["plan", "desktop", "device=/dev/sda", "trial=yes"]).text;
    assert!(told.contains("reads /dev/mmcblk0p1"), "{told}");
}

#[test]
fn usb_quirk_changes_the_command_line_that_the_firmware_reads() {
    let board = Board::on_card();
    let line = board.read(CMDLINE);
    let config = format!("{}os_prefix=current/\n", board.read(CONFIG));
    let board = board
        .with(CONFIG, config)
        .with("boot/firmware/current/kernel8.img", "")
        .with("boot/firmware/current/initramfs8", "")
        .with("boot/firmware/current/cmdline.txt", line);
    let plan = board.run(&["plan", "usb-quirk", "device=/dev/sda"]);
    assert_eq!(plan.status, Some(0), "{}", plan.text);
    assert!(plan.text.contains("/boot/firmware/current/cmdline.txt"), "{}", plan.text);
    assert!(!plan.text.contains("/boot/firmware/cmdline.txt"), "{}", plan.text);
    // A set that piboot-try has not tried yet has a copy of the old line, and takes the place of this one.
    let board = board.with("boot/firmware/new/state", "unknown\n");
    let failures = board.failures(&["plan", "usb-quirk", "device=/dev/sda"]).join("\n");
    assert!(failures.contains("/boot/firmware/new/state says unknown"), "{failures}");
    let board = board.with("boot/firmware/new/state", "bad\n");
    assert_eq!(board.failures(&["plan", "usb-quirk", "device=/dev/sda"]), Vec::<String>::new());
    // A move would have to follow each update of the kernel there.
    let failures = board.failures(&["plan", "desktop", "device=/dev/sda"]).join("\n");
    assert!(failures.contains("/boot/firmware/current"), "{failures}");
    assert!(!failures.contains("there is no"), "nothing is missing there: {failures}");
}

#[test]
fn a_root_that_will_keep_nothing_is_told_and_not_relied_on() {
    let board = Board::on_card();
    let line = board.read(CMDLINE);
    let desktop = ["plan", "desktop", "device=/dev/sda"];
    for word in ["overlayroot=tmpfs", "boot=overlay", "systemd.volatile=overlay"] {
        let next = format!("{} {word}\n", line.trim_end());
        let overlaid = Board::on_card().with(CMDLINE, next);
        let failures = overlaid.failures(&desktop).join("\n");
        assert!(
            failures.contains(&format!("/boot/firmware/cmdline.txt says {word}")),
            "{failures}"
        );
        let plan = overlaid.run(&["plan", "swap", "to=zram"]).text;
        let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plan.contains("keeps no changes from the next start on"), "{plan}");
    }
    let kept = board.with(CMDLINE, format!("{} overlayroot=disabled\n", line.trim_end()));
    assert_eq!(kept.failures(&desktop), Vec::<String>::new());
}

#[test]
fn a_change_whose_record_lies_in_memory_is_refused() {
    let board = Board::on_card();
    let mounts = board.read(MOUNTS).replace(
        "179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw",
        "0:30 / / rw,relatime - overlay overlayroot rw,lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay",
    );
    let overlaid = board.with(MOUNTS, mounts);
    let failures = overlaid.failures(&["plan", "usb-quirk", "device=/dev/sda"]).join("\n");
    assert!(failures.contains("the record of the change stays"), "{failures}");
}

#[test]
fn a_key_that_is_missing_is_named_by_a_plan_as_by_the_start() {
    let with_key = |key: &str| {
        let board = Board::on_card();
        let table = board.read(TABLE);
        board
            .with(
                "run/udev/data/b8:17",
                "E:ID_FS_TYPE=crypto_LUKS\nE:ID_FS_UUID=0d0d0d0d-1111-4222-8333-444444444444\n",
            )
            .with(
                "etc/crypttab",
                format!("data UUID=0d0d0d0d-1111-4222-8333-444444444444 {key}\n"),
            )
            .with(
                TABLE,
                format!(
                    "{}\nUUID=AAAA-BBBB /media/key vfat nofail 0 0\n/dev/mapper/data /srv/y ext4 defaults 0 2\n",
                    table.trim_end()
                ),
            )
    };
    let lacks = "/dev/mapper/data for /srv/y waits for a password, as /media/key/k is not there";
    let desktop = ["plan", "desktop", "device=/dev/sda"];
    let gone = with_key("/media/key/k luks");
    let failures = gone.failures(&desktop);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains(lacks), "{failures:?}");
    let told = gone.run(&["boot"]).text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(lacks), "{told}");
    // What crypttab opens at the start is there then.
    let by_chip = with_key("none luks,tpm2-device=auto");
    assert_eq!(by_chip.failures(&desktop), Vec::<String>::new());
}

#[test]
fn files_that_config_txt_names_are_read() {
    let board = Board::on_card();
    let line = board.read(CMDLINE);
    let config = format!("{}include mine.txt\ncmdline=own.txt\n", board.read(CONFIG));
    let board = board
        .with(CONFIG, config)
        // In Latin-1, which does not matter where it is only read.
        .with("boot/firmware/mine.txt", b"# caf\xe9\narm_freq=2000\ninclude more.txt\n")
        .with("boot/firmware/more.txt", "gpu_mem=64\n")
        .with("boot/firmware/own.txt", line);
    let plan = board.run(&["plan", "desktop", "device=/dev/sda"]);
    assert_eq!(plan.status, Some(0), "{}", plan.text);
    assert!(plan.text.contains("/boot/firmware/own.txt"), "{}", plan.text);
    // The firmware passes over a file that is not there, as Alpine's usercfg.txt.
    let missing = board.with("boot/firmware/mine.txt", "include none.txt\n");
    let plan = missing.run(&["plan", "desktop", "device=/dev/sda"]);
    assert_eq!(plan.status, Some(0), "{}", plan.text);
}

#[test]
fn bytes_that_are_not_utf_8_are_kept_and_refused_only_in_a_line_that_is_edited() {
    let desktop = ["plan", "desktop", "device=/dev/sda"];
    let with = |path: &str, comment: &[u8]| {
        let text = Board::on_card().read(path);
        Board::on_card().with(path, [text.trim_end().as_bytes(), b"\n", comment, b"\n"].concat())
    };
    for comment in [&b"# caf\xe9"[..], b"#\xff\xfe \0c\0a\0f\0\xe9\0"] {
        let plan = with(CONFIG, comment).run(&desktop);
        assert_eq!(plan.status, Some(0), "{}", plan.text);
    }
    let plan = with("etc/fstab", b"# caf\xe9").run(&desktop);
    assert_eq!(plan.status, Some(0), "{}", plan.text);

    let line = Board::on_card().read(CMDLINE);
    let line = [line.trim_end().as_bytes(), b" note=caf\xe9\n"].concat();
    let failures = Board::on_card().with(CMDLINE, line).failures(&desktop);
    assert!(failures.join("\n").contains("cmdline.txt is not UTF-8 (line 1)"), "{failures:#?}");
    let utf_16: Vec<u8> =
        Board::on_card().read(CMDLINE).bytes().flat_map(|byte| [byte, 0]).collect();
    let board = Board::on_card().with(CMDLINE, [b"\xff\xfe", utf_16.as_slice()].concat());
    let failures = board.failures(&desktop);
    assert!(failures.join("\n").contains("not UTF-8"), "{failures:#?}");
}

type Change = fn(Board) -> Board;

/// Boards after public reports of moved roots and of clones that did not start.
const MOVED: [(&str, Change); 23] = [
    // rugix/rugix#107, util-linux/util-linux#1014
    ("a PARTUUID in capital letters", |board| {
        let text = board.read(CMDLINE).replace(CARD_ROOT, &CARD_ROOT.to_uppercase());
        board.with(CMDLINE, text)
    }),
    ("a PARTUUID in capital letters, without an initramfs", |board| {
        let text = board.read(CMDLINE).replace(CARD_ROOT, &CARD_ROOT.to_uppercase());
        let config = board.read(CONFIG).replace("auto_initramfs=1\n", "");
        board.with(CMDLINE, text).with(CONFIG, config)
    }),
    ("the boot partition by its UUID in small letters", |board| {
        let text = board.read(TABLE).replace("PARTUUID=e6c1a9f4-01", "UUID=ec4e-d3e6");
        board.with(TABLE, text)
    }),
    // geerlingguy/rpi-clone#31
    ("another root in fstab", |board| {
        let text = board.read(TABLE).replace(CARD_ROOT, "deadbeef-02");
        board.with(TABLE, text)
    }),
    // billw2/rpi-clone#100
    ("a label that two disks have", |board| {
        let text = board.read(CMDLINE).replace(&format!("PARTUUID={CARD_ROOT}"), "LABEL=rootfs");
        let udev = board.read("run/udev/data/b8:1").replace("=data", "=rootfs");
        board.with(CMDLINE, text).with("run/udev/data/b8:1", udev)
    }),
    // MichaIng/DietPi#7315, keks24/raspberry-pi-luks#1
    ("an encrypted root that is not there", |board| {
        let root = "root=/dev/mapper/root cryptdevice=/dev/mmcblk0p2:root";
        let text = board.read(CMDLINE).replace(&format!("root=PARTUUID={CARD_ROOT}"), root);
        board.with(CMDLINE, text)
    }),
    ("a crypttab for a volume that is not encrypted", |board| {
        let text =
            board.read(CMDLINE).replace(&format!("PARTUUID={CARD_ROOT}"), "/dev/mapper/root");
        board.with(CMDLINE, text).with("etc/crypttab", "root /dev/mmcblk0p2 none luks,initramfs\n")
    }),
    // Antynea/grub-btrfs#61
    ("another subvolume than the one that runs", |board| {
        let mounts = board.read(MOUNTS).replace("179:2 / / ", "179:2 /@snapshots/5/snapshot / ");
        let mounts = mounts.replace("ext4 /dev/mmcblk0p2", "btrfs /dev/mmcblk0p2");
        let text =
            board.read(CMDLINE).replace("rootfstype=ext4", "rootfstype=btrfs rootflags=subvol=@");
        let table = board.read(TABLE).replace("ext4    defaults", "btrfs   defaults");
        let udev = board.read("run/udev/data/b179:2").replace("ext4", "btrfs");
        board
            .with(MOUNTS, mounts)
            .with(CMDLINE, text)
            .with(TABLE, table)
            .with("run/udev/data/b179:2", udev)
    }),
    // raspberrypi/firmware#948
    ("a command line in config.txt itself", |board| {
        let line = format!("cmdline=root=PARTUUID={CARD_ROOT} rootfstype=ext4 rootwait\n");
        let text = format!("{}{line}", board.read(CONFIG));
        board.with(CONFIG, text)
    }),
    // raspberrypi/firmware#450
    ("initramfs with an equals sign, and a root by UUID", |board| {
        let text =
            board.read(CONFIG).replace("auto_initramfs=1", "initramfs=initramfs8 followkernel");
        root_by_uuid(board.with(CONFIG, text))
    }),
    ("auto_initramfs below a filter, and a root by UUID", |board| {
        let text = board.read(CONFIG).replace("auto_initramfs=1\n", "");
        root_by_uuid(board.with(CONFIG, text.replace("[cm4]\n", "[cm4]\nauto_initramfs=1\n")))
    }),
    ("32 bits wanted, and no such kernel", |board| {
        let text = board.read(CONFIG).replace("arm_64bit=1", "arm_64bit=0");
        board.with(CONFIG, text)
    }),
    ("the root in quotes", |board| {
        let text = board.read(CMDLINE);
        let named = format!("PARTUUID={CARD_ROOT}");
        board.with(CMDLINE, text.replace(&named, &format!("\"{named}\"")))
    }),
    ("the root in quotes, without an initramfs", |board| {
        let text = board.read(CMDLINE);
        let named = format!("PARTUUID={CARD_ROOT}");
        let config = board.read(CONFIG).replace("auto_initramfs=1\n", "");
        board.with(CMDLINE, text.replace(&named, &format!("\"{named}\""))).with(CONFIG, config)
    }),
    ("an empty device_tree=", |board| {
        let text = format!("{}device_tree=\n", board.read(CONFIG));
        board.with(CONFIG, text)
    }),
    ("auto_initramfs with spaces, and a root by UUID", |board| {
        let text = board.read(CONFIG).replace("auto_initramfs=1", "auto_initramfs = 1");
        root_by_uuid(board.with(CONFIG, text))
    }),
    ("a subvolume that is no longer named", |board| {
        let mounts = board.read(MOUNTS).replace("179:2 / / ", "179:2 /@ / ");
        let mounts = mounts.replace("ext4 /dev/mmcblk0p2", "btrfs /dev/mmcblk0p2");
        let text = board.read(CMDLINE).replace("rootfstype=ext4", "rootfstype=btrfs");
        let table = board.read(TABLE).replace("ext4    defaults", "btrfs   defaults");
        let udev = board.read("run/udev/data/b179:2").replace("ext4", "btrfs");
        let given = board.read("proc/cmdline");
        let given = given.replace("rootfstype=ext4", "rootfstype=btrfs rootflags=subvol=@");
        board
            .with("proc/cmdline", given)
            .with(MOUNTS, mounts)
            .with(CMDLINE, text)
            .with(TABLE, table)
            .with("run/udev/data/b179:2", udev)
    }),
    // remusmp/rpi-rt-kernel#20
    ("a program of the first start at the other mount point", |board| {
        let text = format!("{} systemd.run=/boot/firstrun.sh\n", board.read(CMDLINE).trim_end());
        board.with(CMDLINE, text)
    }),
    ("a partition counted from another", |board| {
        let counted = "e6c1a9f4-01/PARTNROFF=1";
        let text = board.read(CMDLINE).replace(CARD_ROOT, counted);
        board.with(CMDLINE, text)
    }),
    ("a shell as the first program", |board| with_word(board, "init=/bin/sh")),
    // raspberrypi/linux#6307
    ("a rescue mode that was left on the line", |board| with_word(board, "single")),
    ("a break that was left on the line", |board| with_word(board, "break=premount")),
    // marcone/teslausb#350
    ("words that a script added at each run, before root=", |board| {
        let text = format!("{} {}", "fastboot noswap ro ".repeat(130), board.read(CMDLINE));
        board.with(CMDLINE, text)
    }),
];

fn with_word(board: Board, word: &str) -> Board {
    let text = format!("{} {word}\n", board.read(CMDLINE).trim_end());
    board.with(CMDLINE, text)
}

fn root_by_uuid(board: Board) -> Board {
    let uuid = "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8";
    let text = board.read(CMDLINE).replace(&format!("PARTUUID={CARD_ROOT}"), uuid);
    board.with(CMDLINE, text)
}

/// What a plan knows of the start that it changes, and what `rubus boot` says of it, come from the same files.
#[test]
fn a_plan_and_boot_never_contradict_each_other() {
    const LONG: &str = "initramfs initramfs-1.img,initramfs-2.img,initramfs-3.img,initramfs-4.img,initramfs-5.img,initramfs-6.img\n";
    let append = |board: Board, path: &str, text: &str| {
        let text = format!("{}{text}", board.read(path));
        board.with(path, text)
    };
    let cases: [(&str, Change); 15] = [
        ("nothing is changed", |board| board),
        ("an empty line first", |board| {
            let text = format!("\n{}", board.read(CMDLINE));
            board.with(CMDLINE, text)
        }),
        ("an empty command line", |board| board.with(CMDLINE, "")),
        ("a root that is nowhere", |board| {
            let text = board.read(CMDLINE).replace(CARD_ROOT, "deadbeef-02");
            board.with(CMDLINE, text)
        }),
        ("another filesystem", |board| {
            let text = board.read(CMDLINE).replace("rootfstype=ext4", "rootfstype=btrfs");
            board.with(CMDLINE, text)
        }),
        ("a kernel that is not there", |board| board.with(CONFIG, "kernel=vmlinuz\n")),
        ("U-Boot", |board| board.with(CONFIG, "kernel=u-boot.bin\n")),
        ("a comment behind the kernel's name", |board| {
            let text = format!("{}kernel=kernel8.img # mine\n", board.read(CONFIG));
            board.with(CONFIG, text)
        }),
        ("a comment behind auto_initramfs=1", |board| {
            let text = board.read(CONFIG).replace("auto_initramfs=1", "auto_initramfs=1 # mine");
            board.with(CONFIG, text)
        }),
        ("an autoboot.txt that names another partition", |board| {
            board.with("boot/firmware/autoboot.txt", "[all]\nboot_partition=2\n")
        }),
        ("a start from a disk that is not here", |board| board.started(6, 1)),
        ("a start over the network", |board| board.started(2, 0)),
        ("UEFI as armstub", |board| {
            let text = format!("{}armstub=RPI_EFI.fd\n", board.read(CONFIG));
            board.with(CONFIG, text).with("boot/firmware/RPI_EFI.fd", "UEFI")
        }),
        ("a mark in config.txt", |board| {
            board.with(CONFIG, "\u{feff}auto_initramfs=1\narm_64bit=1\n")
        }),
        ("a root by device", |board| {
            let text =
                board.read(CMDLINE).replace(&format!("PARTUUID={CARD_ROOT}"), "/dev/mmcblk0p2");
            board.with(CMDLINE, text)
        }),
    ];
    let mut boards: Vec<(&str, Board)> = cases
        .into_iter()
        .chain(MOVED)
        .map(|(name, change)| (name, change(Board::on_card())))
        .collect();
    for (name, path, text) in [
        ("an included file that is not there", CONFIG, "include local.txt\n"),
        ("a filter for another board", CONFIG, "[cm4]\nkernel=none.img\n"),
        ("a filter for this board, and no such kernel", CONFIG, "[pi4]\nkernel=none.img\n"),
        ("a line of more than 98 characters", CONFIG, LONG),
        ("another command line", CONFIG, "cmdline=own.txt\n"),
        ("Latin-1", CONFIG, "# \u{e9}\n"),
        ("two lines", CMDLINE, "quiet\n"),
        ("a missing disk", TABLE, "UUID=3d343a73 /media/backup ext4 defaults 0 2\n"),
        // MichaIng/DietPi#3511
        (
            "disks by the names that they once had",
            TABLE,
            "/dev/sdc2 /mnt/ssd ntfs-3g defaults 0 0\n",
        ),
        // The options of a FAT disk, on a disk that was given ext4.
        (
            "an option of another filesystem",
            TABLE,
            "UUID=66141b37-4ab5-4c34-9e5c-0f6ae6bd9fd8 /srv/x ext4 defaults,uid=1000 0 2\n",
        ),
        ("a directory bound to another place", TABLE, "/dev/shm /srv/tmp none bind 0 0\n"),
        ("a missing disk with nofail", TABLE, "UUID=3d343a73 /media/backup ext4 nofail 0 2\n"),
    ] {
        boards.push((name, append(Board::on_card(), path, text)));
    }
    boards.push(("UTF-16", Board::on_card().with(CMDLINE, b"\xff\xfer\0o\0o\0t\0=\0")));
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/boot.md");
    let document = fs::read_to_string(document).expect("the document");
    let mut missing = Vec::new();
    for (name, board) in boards {
        let boot = board.run(&["boot"]).text;
        let plan = board.run(&["plan", "desktop", "device=/dev/sda", "trial=no"]);
        let is_refused = plan.status == Some(1);
        let outcome = outcome(&boot);
        assert!(!outcome.starts_with("stops") || is_refused, "{name}: {boot}\n{}", plan.text);
        let is_start = plan.text.contains("FAIL how the board starts");
        assert!(!(outcome == "starts" && is_start), "{name}: {boot}\n{}", plan.text);
        let judged = if is_refused { "refused" } else { "taken" };
        let row = format!("| {name} | {outcome} | {judged} |");
        if !document.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "docs/how-to/boot.md lacks:\n{}", missing.join("\n"));
}

/// What the first line of `rubus boot` comes to, in the words of the table.
fn outcome(boot: &str) -> String {
    let line = boot.lines().next().unwrap_or_default();
    let said = line.replace("It is not certain whether it starts. The trace ends", "not certain");
    let said = said.trim_start_matches("It ").trim_start_matches("probably ");
    if said.starts_with("starts") {
        return "starts".into();
    }
    said.split([':', '(']).next().unwrap_or_default().trim().into()
}

#[test]
fn firmware_that_may_not_know_auto_initramfs_is_given_the_files_name() {
    let board = Board::on_card();
    let config = board.read(CONFIG).replace("auto_initramfs=1\n", "");
    let plan = board.with(CONFIG, config.as_str()).run(&["plan", "desktop", "device=/dev/sda"]);
    assert_eq!(plan.status, Some(0), "{}", plan.text);
    assert!(plan.text.contains("initramfs initramfs8 followkernel"), "{}", plan.text);
    assert!(!plan.text.contains("+auto_initramfs=1"), "{}", plan.text);
    // With a choice of kernels no single line would do, and a system of 2021 has a firmware of that time.
    let old = Board::on_card()
        .with(CONFIG, config.replace("arm_64bit=1\n", ""))
        .with("boot/firmware/kernel7l.img", "")
        .with("etc/os-release", "PRETTY_NAME=\"Raspbian GNU/Linux 10 (buster)\"\nID=raspbian\n");
    assert!(!old.failures(&["plan", "desktop", "device=/dev/sda"]).is_empty());
}

#[test]
fn a_disk_with_its_own_boot_partition_does_not_wait_for_the_card() {
    let wishes =
        ["plan", "desktop", "device=/dev/sda", "boot-copy=yes", "direct-boot=yes", "--json"];
    let plan = Board::on_card().run(&wishes);
    assert_eq!(plan.status, Some(0), "{}", plan.text);
    let plan: serde_json::Value = serde_json::from_str(&plan.text).expect("JSON");
    let text = plan.to_string();
    let line = "/boot/firmware  vfat    defaults,nofail,x-systemd.device-timeout=10s";
    assert!(text.contains(line), "{text}");
}
