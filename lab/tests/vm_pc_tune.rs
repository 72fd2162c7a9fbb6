//! `rubus tune --apply` on a board: what helps on a slow disk is made to last by the disk's own identity, is proven, holds
//! after a restart under another name of the disk, and is gone after undoing it.
//!
//! The disk lets few commands pass in a second, so that large files come faster in larger pieces. It is an NVMe disk: what
//! the emulator reads for a USB disk is cut into pieces of 128 KiB, and no read-ahead helps there.

use std::fs::File;
use std::path::Path;

use crate::common::desktop::{LONG, SOON, must};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::Kit;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_tune";
const COMMANDS_PER_SECOND: u64 = 150;
const SIZE_BYTES: u64 = 3 << 30;
/// The kernel's read-ahead of a new disk, in KiB.
const USUAL_KIB: u64 = 128;
const TUNED: &str = "tuned-one";
const OTHER: &str = "other-one";

#[test]
fn a_larger_read_ahead_is_made_to_last_and_undone() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[]).unwrap();
    let images = tempfile::tempdir().unwrap();
    for serial in [TUNED, OTHER] {
        File::create(images.path().join(serial)).unwrap().set_len(SIZE_BYTES).unwrap();
    }
    let boot = |order: [&str; 2]| {
        let own_devices = order.iter().flat_map(|serial| nvme(images.path(), serial)).collect();
        let options = Options { push: vec![rubus.clone()], own_devices, ..Options::default() };
        Session::boot_kit(&cache, &kit, &options).unwrap()
    };

    let mut board = boot([TUNED, OTHER]);
    let disk = disk(&mut board, TUNED);
    must(&mut board, &format!("mkfs.ext4 -q {disk} && mount {disk} /mnt"), SOON);
    assert_eq!(read_ahead_kib(&mut board, TUNED), USUAL_KIB);
    let said = must(&mut board, "rubus tune /mnt --for files --time 10m --apply --yes", LONG);
    println!("{said}");
    assert!(said.contains("It holds: "), "{said}");
    let found_kib = read_ahead_kib(&mut board, TUNED);
    assert!(found_kib > USUAL_KIB, "{said}");
    assert_eq!(read_ahead_kib(&mut board, OTHER), USUAL_KIB, "the other disk has its own");
    let rule = must(&mut board, "cat /etc/udev/rules.d/90-rubus-tune.rules", SOON);
    println!("{rule}");
    let named = disk.trim_start_matches("/dev/");
    let rules: Vec<&str> = rule.lines().filter(|line| line.starts_with("ACTION")).collect();
    assert_eq!(rules.len(), 1, "{rule}");
    assert!(rules.iter().all(|line| !line.contains(named)), "{rule}");
    board.switch_off().unwrap();

    let mut board = boot([OTHER, TUNED]);
    assert_eq!(read_ahead_kib(&mut board, TUNED), found_kib);
    assert_eq!(read_ahead_kib(&mut board, OTHER), USUAL_KIB);
    must(&mut board, "rubus undo --yes", SOON);
    must(&mut board, "! test -e /etc/udev/rules.d/90-rubus-tune.rules", SOON);
    board.switch_off().unwrap();

    let mut back = boot([TUNED, OTHER]);
    assert_eq!(read_ahead_kib(&mut back, TUNED), USUAL_KIB);
    back.switch_off().unwrap();
}

/// The emulator's arguments for an NVMe disk of this serial number.
fn nvme(images: &Path, serial: &str) -> [String; 4] {
    let file = images.join(serial);
    let limit = if serial == TUNED {
        format!(",throttling.iops-total={COMMANDS_PER_SECOND}")
    } else {
        String::new()
    };
    let drive = format!("if=none,id={serial},format=raw,file={}{limit}", file.display());
    ["-drive".into(), drive, "-device".into(), format!("nvme,drive={serial},serial={serial}")]
}

/// The node of the disk of this serial number.
fn disk(board: &mut Session, serial: &str) -> String {
    let look = format!(
        "modprobe nvme; for try in $(seq 60); do lsblk -dno SERIAL,PATH | grep -q '^{serial} ' && break; \
         sleep 0.5; done; lsblk -dno SERIAL,PATH"
    );
    let disks = must(board, &look, SOON);
    let found = disks.lines().find_map(|line| line.strip_prefix(serial));
    found.unwrap_or_else(|| panic!("no disk {serial}: {disks}")).trim().into()
}

/// The read-ahead that the kernel has for a disk now.
fn read_ahead_kib(board: &mut Session, serial: &str) -> u64 {
    let disk = disk(board, serial);
    let file = disk.replace("/dev/", "/sys/block/") + "/queue/read_ahead_kb";
    let text = must(board, &format!("udevadm settle; cat {file}"), SOON);
    text.trim().parse().unwrap()
}
