//! The recipe `desktop` with what is not its default: a GPT, a swap file on the new btrfs and a copy of the boot partition. It
//! is applied, started, verified, undone after its journal was lost on the new root, and started again, and the card is as before.

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, WAIT, must, root, runs_from_the_new_disk};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_desktop_options";

#[test]
fn a_card_moves_to_a_gpt_disk_with_a_swap_file_and_boot_files_and_back() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold()]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();

    let mut old = boot();
    let usb = old.usb_device(0).unwrap();
    let serial = &kit.usb_disks()[0].serial;
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 swap=file swap-size=256M boot-copy=yes table=gpt {WAIT} --yes \
         --i-will-lose-everything-on={serial}"
    );
    let said = must(&mut old, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
    old.switch_off().unwrap();

    let mut new = boot();
    runs_from_the_new_disk(&mut new);
    is_as_chosen(&mut new);
    let verified = new.run("rubus verify", "root", SOON).unwrap();
    let said = format!("{}\n{}", verified.text(), verified.complaint_text());
    assert_eq!(verified.status, 0, "{said}");
    a_lost_journal_is_found_on_the_card(&mut new);
    // It reads the card, which a busy machine does slowly.
    must(&mut new, "rubus undo --yes", LONG);
    new.switch_off().unwrap();

    let mut back = boot();
    assert_eq!(root(&mut back), "ext4 ");
    let swaps = must(&mut back, "cat /proc/swaps", SOON);
    assert!(swaps.contains("/var/swap"), "{swaps}");
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// Looking writes nothing and leaves nothing mounted; undoing goes on from what the card knows.
fn a_lost_journal_is_found_on_the_card(board: &mut Session) {
    must(board, "rm -r /var/lib/rubus/changes", SOON);
    let status = board.run("rubus status", "root", SOON).unwrap();
    let said = format!("{}\n{}", status.text(), status.complaint_text());
    assert_eq!(status.status, 1, "{said}");
    // The title may be broken over lines.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "This root has lost the journal of 0001-desktop. The root on /dev/mmcblk0p2 has a copy."
        ),
        "{said}"
    );
    let nothing = "! test -e /var/lib/rubus/changes && ! grep mmcblk0p2 /proc/mounts";
    must(board, nothing, SOON);
}

fn is_as_chosen(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let table = must(board, &format!("sfdisk -d {usb}"), SOON);
    assert!(table.contains("label: gpt"), "{table}");
    let checked = must(board, &format!("sfdisk --verify {usb} 2>&1"), SOON);
    assert!(checked.contains("No errors detected"), "{checked}");
    let swaps = must(board, "cat /proc/swaps", SOON);
    let used: Vec<&str> = swaps.lines().skip(1).collect();
    assert_eq!(used.len(), 1, "{swaps}");
    assert!(used[0].starts_with("/swap/swapfile"), "{swaps}");

    // What the card's boot partition has, the copy has too; each starts the new root.
    must(board, &format!("mount -o ro {usb}1 /mnt"), SOON);
    let [card, copy] = ["/boot/firmware", "/mnt"].map(|place| {
        let sums = "find . -type f ! -name '*.before-rubus' -exec sha256sum {} + | sort -k 2";
        must(board, &format!("cd {place} && {sums}"), SOON)
    });
    assert!(copy.contains("./cmdline.txt"), "{copy}");
    assert_eq!(copy, card);
    must(board, "umount /mnt", SOON);
}
