//! The new disk fails in the middle of `rubus apply desktop`: it gets full, it answers with input/output errors, it
//! is pulled out, early and late. Each time everything is put back, said clearly, and nothing on the card is lost. A disk
//! that is too small is refused beforehand.

use std::time::{Duration, Instant};

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, WAIT, must, root};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::channel::Outcome;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::live::Fault;
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_faults";
const MIB: u64 = 1 << 20;
/// Too small for the system on the card.
const SMALL_BYTES: u64 = 256 * MIB;
/// How the line of the step begins that copies the system.
const COPYING: &str = "] copy / to ";
/// And the one after the initial RAM filesystem was replaced, before the one that switches to the new root.
const LATE: &str = "] keep this plan and its journal";

#[test]
fn a_disk_that_fails_in_the_middle_costs_nothing_on_the_card() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let small = UsbDisk::blank(1, SMALL_BYTES).on_bus(1);
    let kit = Kit::temporary(&cache, Board::Pc, &[UsbDisk::as_sold(), small]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let begun = Instant::now();
    let told = |what: &str| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64());

    let mut board = boot();
    told("booted");
    a_disk_that_is_too_small_is_refused(&mut board);
    told("refused what is too small");
    the_target_gets_full(&mut board);
    told("full");
    the_disk_answers_with_errors(&mut board);
    told("errors");
    the_disk_is_pulled_out_and_rubus_killed(&mut board);
    told("killed and undone without the disk");
    the_disk_is_pulled_out_at_the_last_moment(&mut board);
    told("pulled out late");
    board.switch_off().unwrap();

    let mut again = boot();
    told("booted again");
    assert_eq!(root(&mut again), "ext4 ");
    assert_eq!(must(&mut again, "rubus resume", SOON), "Nothing was interrupted.\n");
    again.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

fn a_disk_that_is_too_small_is_refused(board: &mut Session) {
    let small = board.usb_device(1).unwrap();
    let script = format!("rubus apply desktop device={small} compress=zstd:1 --yes 2>&1");
    let refused = board.run(&script, "root", SOON).unwrap();
    let said = refused.text();
    assert_eq!(refused.status, 1, "{said}");
    for words in ["not enough", "take a larger disk", "nothing was changed"] {
        assert!(said.contains(words), "'{words}' in: {said}");
    }
    let status = must(board, "rubus status", SOON);
    assert!(status.starts_with("No recipe has been applied on this machine.\n"), "{status}");
}

/// Something else takes the space on the new filesystem while it is copied to, as files that grow on the card would. The
/// copying waits meanwhile, or on a busy machine it may be done before.
fn the_target_gets_full(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let fill = format!(
        "kill -STOP $(pidof rubus); mount {usb}1 /mnt; for size in 1G 256M 64M 16M; do \
         while fallocate -l $size /mnt/filler-$((n += 1)) 2>/dev/null; do :; done; done; kill -CONT $(pidof rubus)"
    );
    let script = format!(
        "{} 2>&1 | while IFS= read -r line; do printf '%s\\n' \"$line\"; \
         case $line in *'{COPYING}'*) {fill};; esac; done; status=${{PIPESTATUS[0]}}; umount /mnt; exit $status",
        apply(&usb)
    );
    let ended = board.run(&script, "root", LONG).unwrap();
    is_put_back(board, &ended, &["No space left on device", "take a larger one"]);
}

fn the_disk_answers_with_errors(board: &mut Session) {
    let ended = apply_until(board, COPYING, |board| {
        board.break_usb(0, Some(Fault::Writes)).unwrap();
    });
    is_put_back(board, &ended, &["fails or was pulled out"]);
    let said = ended.text();
    let is_named = ["I/O error", "Input/output error", "ead-only file system"];
    assert!(is_named.iter().any(|words| said.contains(words)), "{said}");
    board.break_usb(0, None).unwrap();
}

/// Nothing can be restored at once: that is for `rubus undo`, with the disk still gone.
fn the_disk_is_pulled_out_and_rubus_killed(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "{} 2>&1 | while IFS= read -r line; do printf '%s\\n' \"$line\"; \
         case $line in *'{COPYING}'*) sleep 3; kill -KILL $(pidof rubus);; esac; done; exit ${{PIPESTATUS[0]}}",
        apply(&usb)
    );
    let killed = board.run(&script, "root", LONG).unwrap();
    assert_eq!(killed.status, 137, "{}", killed.text());
    board.unplug_usb(0).unwrap();
    let status = board.run("rubus status", "root", SOON).unwrap();
    assert_eq!(status.status, 1, "{}", status.text());
    assert!(status.text().contains("HALF DONE"), "{}", status.text());
    let undone = board.run("rubus undo --yes 2>&1", "root", SOON).unwrap();
    assert_eq!(undone.status, 0, "{}", undone.text());
    is_as_before(board);
    plug_in(board);
}

/// The initial RAM filesystem on the card is replaced already, the command line not yet.
fn the_disk_is_pulled_out_at_the_last_moment(board: &mut Session) {
    let ended = apply_until(board, LATE, |board| {
        board.pause().unwrap();
        board.unplug_usb(0).unwrap();
        board.go_on().unwrap();
    });
    is_put_back(board, &ended, &[]);
}

/// Begins to apply the recipe, does something as soon as a step begins, and waits for the end.
fn apply_until(board: &mut Session, step: &str, act: impl FnOnce(&mut Session)) -> Outcome {
    let usb = board.usb_device(0).unwrap();
    let script = format!("{} 2>&1", apply(&usb));
    board.begin(&script, "root", LONG).unwrap();
    let mut is_before = |said: &[u8]| !String::from_utf8_lossy(said).contains(step);
    let ended = board.follow(LONG, &mut is_before).unwrap();
    assert_eq!(ended, None, "it ended before the step '{step}'");
    act(board);
    let ended = board.follow(LONG + Duration::from_secs(60), &mut |_| true);
    ended.unwrap().expect("no end")
}

fn apply(usb: &str) -> String {
    format!(
        "rubus apply desktop device={usb} compress=zstd:1 {WAIT} --yes \
         --i-will-lose-everything-on=4C530001230914116022"
    )
}

/// It says what failed and why, it is undone, and the journal says so too.
fn is_put_back(board: &mut Session, ended: &Outcome, says: &[&str]) {
    let said = ended.text();
    let tail: Vec<&str> = said.lines().filter(|line| line.starts_with("rubus:")).collect();
    println!("{}", tail.join("\n"));
    assert_eq!(ended.status, 4, "{said}");
    assert!(said.contains("is as it was before"), "{said}");
    for words in says {
        assert!(said.contains(words), "'{words}' in: {said}");
    }
    let status = is_as_before(board);
    assert!(status.contains("It was turned back: step"), "{status}");
}

/// The last change is undone, the old root runs, and nothing of the change is left in the boot partition.
fn is_as_before(board: &mut Session) -> String {
    let status = must(board, "rubus status", SOON);
    let last = status.lines().rfind(|line| line.contains("-desktop "));
    assert!(last.is_some_and(|line| line.ends_with("undone")), "{status}");
    assert_eq!(root(board), "ext4 ");
    let mounts = must(board, "cat /proc/mounts", SOON);
    assert!(!mounts.contains("/run/rubus"), "{mounts}");
    let left = must(board, "ls -A /boot/firmware | grep rubus || true", SOON);
    assert_eq!(left, "", "left in the boot partition");
    status
}

fn plug_in(board: &mut Session) {
    board.plug_usb(0).unwrap();
    must(
        board,
        "until [ $(lsblk -dno NAME | grep -c ^sd) = 2 ]; do sleep 0.2; done; udevadm settle",
        SOON,
    );
}
