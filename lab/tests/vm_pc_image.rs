//! An image of a card that is prepared on another machine: what `rubus apply desktop --image` makes of the quick board's
//! card starts that board from a compressed btrfs, keeps what it promised, and leaves the image of before as it was.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rubus_fixtures::skipped;
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{FilesystemKind, SmallFilesystem};
use rubus_lab::kit::Kit;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_image";
const NEEDS: [Need; 6] = [
    Need::Root,
    Need::Loop,
    Need::Filesystem("btrfs"),
    Need::Program("mkfs.btrfs", "btrfs-progs"),
    Need::Program("mkfs.vfat", "dosfstools"),
    Need::Program("mcopy", "mtools"),
];
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(180);
/// A card larger than the image, as they are; the emulated ones have sizes that are powers of two.
const CARD_BYTES: u64 = 4 << 30;

#[test]
fn a_new_image_starts_the_board_from_btrfs() {
    let Some(rubus) = rubus_or_nothing() else {
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
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot_kit(&cache, &kit, &options).unwrap();
    let mut must = |script: &str| board.must(script, "root", SOON).unwrap();
    let mounts = must("cat /proc/mounts");
    let root = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some("/"));
    let root = root.unwrap_or_default().to_string();
    assert!(root.starts_with("/dev/mmcblk0p2 / btrfs"), "{mounts}");
    assert!(root.contains("compress=zstd:1"), "{mounts}");
    assert!(mounts.contains("/dev/mmcblk0p1 /boot/firmware vfat"), "{mounts}");
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

/// The program, where everything that it takes is here.
fn rubus_or_nothing() -> Option<PathBuf> {
    let missing: Vec<String> = NEEDS.into_iter().filter_map(Need::missing).collect();
    if !missing.is_empty() {
        skipped(TEST, &missing.join(", "));
        return None;
    }
    can_boot(TEST, Board::Pc).then(|| rubus_or_skip(TEST, Board::Pc)).flatten()
}

#[test]
fn an_image_that_cannot_be_made_whole_leaves_nothing() {
    let Some(rubus) = rubus_or_nothing() else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[]).unwrap();
    let card = kit.sd();
    let before = sum(&card);

    // The filesystem of the new image becomes full while it is made.
    let room = SmallFilesystem::new(FilesystemKind::Ext4, 4 << 30).unwrap();
    let new = room.path().join("new.img");
    let failed = make_disturbed(&rubus, &card, &new, "[1/", || {
        let bytes = room.free_bytes().unwrap() - (16 << 20);
        let filling = room.path().join("filling").display().to_string();
        let mut fallocate = Command::new("fallocate");
        let filled = fallocate.args(["-l", &bytes.to_string(), &filling]).status();
        assert!(filled.unwrap().success());
    });
    assert_given_up(&failed, &new);
    assert!(failed.1.contains("is full, and the image takes up to 2."), "{}", failed.1);
    fs::remove_file(room.path().join("filling")).unwrap();
    assert_eq!(sum(&card), before, "the image that was only to be read");
    assert_nothing_is_attached(&kit);

    // The card's image becomes shorter while it is read, and was so before.
    let shorten = || {
        let file = fs::OpenOptions::new().write(true).open(&card).unwrap();
        file.set_len(600 << 20).unwrap();
    };
    let failed = make_disturbed(&rubus, &card, &new, "[4/", shorten);
    assert_given_up(&failed, &new);
    assert!(failed.1.contains("cannot be copied"), "{}", failed.1);
    assert_nothing_is_attached(&kit);
    let refused = make(&rubus, &card, &new);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("ends before its partition 2 does"));
    assert_eq!(fs::read_dir(room.path()).unwrap().count(), 1, "lost+found");
}

/// Makes an image, and does something when a line of its progress begins so; status and what was said.
fn make_disturbed(
    rubus: &Path,
    card: &Path,
    new: &Path,
    line: &str,
    disturb: impl FnOnce(),
) -> (Option<i32>, String) {
    let mut making =
        command(rubus, card, new).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut disturb = Some(disturb);
    let mut said = String::new();
    for one in BufReader::new(making.stderr.take().unwrap()).lines() {
        let one = one.unwrap();
        if one.starts_with(line) {
            disturb.take().unwrap()();
        }
        said += &(one + "\n");
    }
    assert!(disturb.is_none(), "there was no {line}: {said}");
    (making.wait().unwrap().code(), said)
}

/// It says why, once, and nothing of it is left.
fn assert_given_up((status, said): &(Option<i32>, String), new: &Path) {
    println!("{said}");
    assert_eq!(*status, Some(4), "{said}");
    assert_eq!(said.matches(") failed: ").count(), 1, "{said}");
    assert!(said.contains("giving the new image up"), "{said}");
    assert!(said.contains("was not made, and nothing of it is left"), "{said}");
    assert!(!new.exists());
    assert!(!new.with_extension("img.unfinished").exists());
}

fn make(rubus: &Path, card: &Path, new: &Path) -> Output {
    command(rubus, card, new).output().unwrap()
}

fn command(rubus: &Path, card: &Path, new: &Path) -> Command {
    let mut command = Command::new(rubus);
    command
        .args(["apply", "desktop", "compress=zstd:1", "swap-size=256M", "--yes", "--image"])
        .arg(card)
        .arg("--to")
        .arg(new);
    command
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
