//! An image of a card that is prepared on another machine: what `rubus apply desktop --image` makes of the quick board's
//! card starts that board from a compressed btrfs, keeps what it promised, and leaves the image of before as it was.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::needs::Need;
use rubus_lab::kit::Kit;
use rubus_lab::product::{can_boot, rubus_or_skip, skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_image";
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(180);
/// A card larger than the image, as they are; the emulated ones have sizes that are powers of two.
const CARD_BYTES: u64 = 4 << 30;

#[test]
fn a_new_image_starts_the_board_from_btrfs() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let needs = [
        Need::Root,
        Need::Loop,
        Need::Filesystem("btrfs"),
        Need::Program("mkfs.btrfs", "btrfs-progs"),
        Need::Program("mkfs.vfat", "dosfstools"),
        Need::Program("mcopy", "mtools"),
    ];
    let missing: Vec<String> = needs.into_iter().filter_map(Need::missing).collect();
    if !missing.is_empty() {
        return skip(TEST, &missing.join(", "));
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[]).unwrap();
    let (card, new) = (kit.sd(), kit.directory().join("new.img"));
    let before = sum(&card);

    let made = make(&rubus, &card, &new);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    assert_eq!(sum(&card), before, "the image that was only to be read");
    assert!(!kit.directory().join("new.img.unfinished").exists());
    let again = make(&rubus, &card, &new);
    assert_eq!(again.status.code(), Some(3), "{}", said(&again));
    assert_nothing_is_attached(&kit);

    fs::rename(&new, &card).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&card).unwrap();
    file.set_len(CARD_BYTES).unwrap();
    let options = Options {
        push: vec![rubus],
        ..Options::default()
    };
    let mut board = Session::boot_kit(&cache, &kit, &options).unwrap();
    let mut must = |script: &str| board.must(script, "root", SOON).unwrap();
    let mounts = must("cat /proc/mounts");
    let root = mounts
        .lines()
        .rfind(|line| line.split(' ').nth(1) == Some("/"));
    let root = root.unwrap_or_default().to_string();
    assert!(root.starts_with("/dev/mmcblk0p2 / btrfs"), "{mounts}");
    assert!(root.contains("compress=zstd:1"), "{mounts}");
    assert!(
        mounts.contains("/dev/mmcblk0p1 /boot/firmware vfat"),
        "{mounts}"
    );
    let swaps = must("cat /proc/swaps");
    assert!(swaps.contains("/swap/swapfile"), "{swaps}");
    assert!(!swaps.contains("/var/swap"), "{swaps}");
    let verified = must("rubus verify");
    assert!(verified.contains("zstd"), "{verified}");
    // There is nothing on the board that could be put back.
    let undone = board.run("rubus undo --yes", "root", SOON).unwrap();
    assert_eq!(undone.status, 2, "{}", undone.complaint_text());
    board.switch_off().unwrap();
}

fn make(rubus: &Path, card: &Path, new: &Path) -> Output {
    Command::new(rubus)
        .args([
            "apply",
            "desktop",
            "compress=zstd:1",
            "swap-size=256M",
            "--yes",
            "--image",
        ])
        .arg(card)
        .arg("--to")
        .arg(new)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

fn sum(path: &Path) -> Vec<u8> {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// No loop device is left over a file of the kit.
fn assert_nothing_is_attached(kit: &Kit) {
    let directory = kit.directory().display().to_string();
    for entry in fs::read_dir("/sys/block").unwrap() {
        let file = entry.unwrap().path().join("loop/backing_file");
        let backing = fs::read_to_string(file).unwrap_or_default();
        assert!(!backing.starts_with(&directory), "{backing}");
    }
}
