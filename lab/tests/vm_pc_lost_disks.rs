//! A disk that is gone, or another one in its place. It is pulled out while a filesystem is made on it. The power is
//! cut while it is partitioned or formatted, and afterwards its twin is plugged in: `rubus resume` never writes to the
//! twin, says what is wrong, and continues with the right disk.

use std::path::Path;
use std::process::Command;

use crate::common::desktop::{LONG, MAY_DIFFER, SOON, WAIT, must, root};
use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::channel::Outcome;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{Manifest, differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_lost_disks";
/// What the cheapest sticks say for a serial number, which is none.
const NO_NUMBER: &str = "000000000000";
/// What all enclosures of one make say.
const SAME_NUMBER: &str = "DD564198838F0";
/// The disk that is named, and its twin.
const NAMED: usize = 0;
const TWIN: usize = 1;
/// The step that makes the first filesystem; the one before it divides the disk.
const PARTITION: usize = 0;
const FORMAT: usize = 1;
/// Dividing the disk and making a filesystem take some seconds each at this rate.
const SLOW: Throttle = Throttle { bytes_per_second: 500_000, operations_per_second: 0 };

#[test]
fn a_disk_that_is_pulled_out_while_a_filesystem_is_made_costs_nothing() {
    let Some(lab) = Lab::new(NO_NUMBER) else {
        return;
    };
    let before = manifest(&lab.kit.sd()).unwrap();
    let mut board = lab.boot();
    pulled_out_while_the_new_root_is_made(&mut board);
    pulled_out_while_a_disk_is_formatted(&mut board);
    board.switch_off().unwrap();
    lab.nothing_is_lost(&before);
}

#[test]
fn a_disk_that_was_taken_out_meanwhile_may_be_another_one() {
    let Some(lab) = Lab::new(NO_NUMBER) else {
        return;
    };
    let mut board = lab.boot();
    pulled_out_and_rubus_killed(&mut board);
    board.switch_off().unwrap();
}

#[test]
fn a_twin_without_a_serial_number_is_not_written_to() {
    let Some(lab) = Lab::new(NO_NUMBER) else {
        return;
    };
    let before = manifest(&lab.kit.sd()).unwrap();
    let mut board = lab.boot();
    the_plan_says_that_there_may_be_twins(&mut board);
    let apply = Apply::desktop(&mut board);
    interrupted(&mut board, &apply, PARTITION, "");
    board.cut_power();

    let mut board = lab.boot();
    is_half_done(&mut board);
    neither_twin_is_touched(&mut board, &lab);
    plug_in_alone(&mut board, NAMED, TWIN);
    must(&mut board, "rubus undo --yes", SOON);
    is_undone(&mut board);
    board.plug_usb(TWIN).unwrap();
    let apply = Apply::format(&mut board);
    interrupted(&mut board, &apply, FORMAT, "");
    board.cut_power();

    let mut board = lab.boot();
    is_half_done(&mut board);
    unplug(&mut board, TWIN);
    // The table on the disk is this change's own.
    gone_on_with_the_right_disk(&mut board, "rubus resume");
    board.switch_off().unwrap();
    lab.nothing_is_lost(&before);
}

/// The twin was not plugged in when the disk was given up by its serial number, so the duplicate could not be noticed.
#[test]
fn a_twin_with_the_same_serial_number_is_not_written_to() {
    let Some(lab) = Lab::new(SAME_NUMBER) else {
        return;
    };
    let mut board = lab.boot();
    unplug(&mut board, TWIN);
    let apply = Apply::format(&mut board);
    assert_eq!(apply.words, SAME_NUMBER);
    interrupted(&mut board, &apply, PARTITION, "");
    board.cut_power();

    let mut board = lab.boot();
    is_half_done(&mut board);
    neither_twin_is_touched(&mut board, &lab);
    plug_in_alone(&mut board, NAMED, TWIN);
    let asked = refused(&mut board, "rubus resume");
    let resume = match asked {
        Some(said) => format!("rubus resume {}", confirmation(&said)),
        None => "true".into(),
    };
    gone_on_with_the_right_disk(&mut board, &resume);
    board.switch_off().unwrap();
    lab.twin_is_untouched();
}

/// On a blank twin nothing would be lost. But it is not the disk that was named, which may hold a part of the change.
#[test]
fn a_blank_twin_is_not_written_to_without_asking() {
    let Some(lab) = Lab::of(UsbDisk { serial: SAME_NUMBER.into(), ..UsbDisk::blank(0, 1 << 30) })
    else {
        return;
    };
    let mut board = lab.boot();
    unplug(&mut board, TWIN);
    // Nothing is lost, and so nothing is asked.
    let apply = Apply {
        recipe: "format",
        maker: "mkfs.ext4",
        script: Apply::format_script(&mut board),
        words: String::new(),
    };
    interrupted(&mut board, &apply, PARTITION, "");
    board.cut_power();

    let mut board = lab.boot();
    is_half_done(&mut board);
    unplug(&mut board, NAMED);
    let asked = refused(&mut board, "rubus resume").expect("it may be another disk");
    println!("{asked}");
    for words in ["is blank, and the machine was restarted", "plug in the one that was meant"] {
        assert!(asked.contains(words), "'{words}' in: {asked}");
    }
    lab.twin_is_untouched();
    is_half_done(&mut board);
    plug_in_alone(&mut board, NAMED, TWIN);
    let resume = match refused(&mut board, "rubus resume") {
        Some(said) => format!("rubus resume {}", confirmation(&said)),
        None => "true".into(),
    };
    gone_on_with_the_right_disk(&mut board, &resume);
    board.switch_off().unwrap();
    lab.twin_is_untouched();
}

/// Once the new root is made, nothing on the disk is overwritten any more. The rest of the change waits for that disk
/// all the same: it neither continues with the twin nor turns back because a cable is loose.
#[test]
fn a_change_waits_for_the_disk_that_its_new_root_is_on() {
    let Some(lab) = Lab::new(NO_NUMBER) else {
        return;
    };
    let mut board = lab.boot();
    let apply = Apply::desktop(&mut board);
    let copy = first_copy(&mut board);
    interrupted(&mut board, &apply, copy, "");
    board.cut_power();

    let mut board = lab.boot();
    is_half_done(&mut board);
    unplug(&mut board, NAMED);
    the_disk_is_waited_for(&mut board);
    unplug(&mut board, TWIN);
    the_disk_is_waited_for(&mut board);
    board.throttle_usb(NAMED, None).unwrap();
    board.plug_usb(NAMED).unwrap();
    device(&mut board, NAMED);
    must(&mut board, "rubus resume", LONG);
    let status = must(&mut board, "rubus status", SOON);
    assert!(status.contains("-desktop "), "{status}");
    assert!(!status.contains("undone"), "{status}");
    board.switch_off().unwrap();
    lab.twin_is_untouched();
}

/// The step of a plan that copies the system for the first time.
fn first_copy(board: &mut Session) -> usize {
    let device = device(board, NAMED);
    let plan = format!("rubus plan desktop device={device} compress=zstd:1 {WAIT} --json");
    let plan: serde_json::Value = serde_json::from_str(&must(board, &plan, SOON)).unwrap();
    let steps = plan["steps"].as_array().unwrap();
    let is_copy = |step: &serde_json::Value| step["action"]["do"] == "copy_tree";
    steps.iter().position(is_copy).expect("it copies the root")
}

fn the_disk_is_waited_for(board: &mut Session) {
    let said = refused(board, "rubus resume").expect("the new root is not there");
    println!("{said}");
    for words in [
        "was not resumed, and nothing was touched",
        "before the interruption is not there",
        "plug the disk in",
        "then run `rubus resume` again, or go back with `rubus undo",
    ] {
        assert!(said.contains(words), "'{words}' in: {said}");
    }
    is_half_done(board);
}

/// A card and two disks that are equal to the byte.
struct Lab {
    cache: Cache,
    kit: Kit,
    as_bought: Kit,
    options: Options,
}

impl Lab {
    fn new(serial: &str) -> Option<Self> {
        Self::of(UsbDisk { serial: serial.into(), ..UsbDisk::as_sold() })
    }

    fn of(disk: UsbDisk) -> Option<Self> {
        if !can_boot(TEST, Board::Pc) {
            return None;
        }
        let rubus = rubus_or_skip(TEST, Board::Pc)?;
        let cache = Cache::of_this_machine();
        let kit = Kit::temporary(&cache, Board::Pc, &[disk.clone(), disk]).unwrap();
        let as_bought = kit.temporary_copy(&cache).unwrap();
        let options = Options { push: vec![rubus], ..Options::default() };
        Some(Self { cache, kit, as_bought, options })
    }

    fn boot(&self) -> Session {
        Session::boot_kit(&self.cache, &self.kit, &self.options).unwrap()
    }

    fn nothing_is_lost(&self, before: &Manifest) {
        self.twin_is_untouched();
        let lost = differences(before, &manifest(&self.kit.sd()).unwrap(), MAY_DIFFER);
        assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
    }

    fn twin_is_untouched(&self) {
        assert!(
            are_equal(&self.as_bought.usb(TWIN), &self.kit.usb(TWIN)),
            "the twin was written to"
        );
    }
}

fn are_equal(one: &Path, other: &Path) -> bool {
    let compared = Command::new("cmp").arg("-s").arg(one).arg(other).status();
    compared.unwrap().success()
}

/// A change to the named disk, and its confirmation.
struct Apply {
    recipe: &'static str,
    /// The program that makes its first filesystem.
    maker: &'static str,
    script: String,
    words: String,
}

impl Apply {
    fn desktop(board: &mut Session) -> Self {
        let device = device(board, NAMED);
        let script = format!("rubus apply desktop device={device} compress=zstd:1 {WAIT} --yes");
        Self::of("desktop", "mkfs.btrfs", script, board)
    }

    fn format(board: &mut Session) -> Self {
        let script = Self::format_script(board);
        Self::of("format", "mkfs.ext4", script, board)
    }

    fn format_script(board: &mut Session) -> String {
        let device = device(board, NAMED);
        format!("rubus apply format device={device} filesystem=ext4 --yes")
    }

    fn of(recipe: &'static str, maker: &'static str, script: String, board: &mut Session) -> Self {
        let said = refused(board, &script).expect("it asks before anything is lost");
        let option = confirmation(&said);
        Self {
            recipe,
            maker,
            script: format!("{script} {option}"),
            words: option.split_once('=').unwrap().1.to_owned(),
        }
    }
}

/// What a script says that is refused, which touches nothing; nothing for one that is not.
fn refused(board: &mut Session, script: &str) -> Option<String> {
    let ended = board.run(script, "root", LONG).unwrap();
    let said = words(&ended);
    match ended.status {
        3 => Some(said),
        0 => None,
        status => panic!("{script}: {status}: {said}"),
    }
}

fn words(ended: &Outcome) -> String {
    let said = format!("{} {}", ended.text(), ended.complaint_text());
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The option that a refusal names.
fn confirmation(said: &str) -> String {
    let option = said.split(' ').find(|word| word.starts_with("--i-will-lose-everything-on="));
    option.unwrap_or_else(|| panic!("no option in: {said}")).to_owned()
}

/// The board's name of a disk, by the port that it is plugged into: nothing else tells twins apart.
fn device(board: &mut Session, number: usize) -> String {
    let port = number + 1;
    let script = format!(
        "until [ -n \"$disk\" ]; do for link in /sys/block/sd*; do case $(readlink -f $link) in */usb?/?-{port}/*) \
         disk=${{link##*/}};; esac; done; sleep 0.2; done; udevadm settle; echo /dev/$disk"
    );
    must(board, &script, SOON).trim().to_owned()
}

fn unplug(board: &mut Session, number: usize) {
    let name = device(board, number);
    board.unplug_usb(number).unwrap();
    let gone = format!("while [ -e {name} ]; do sleep 0.2; done; udevadm settle");
    must(board, &gone, SOON);
}

fn plug_in_alone(board: &mut Session, number: usize, other: usize) {
    unplug(board, other);
    board.plug_usb(number).unwrap();
    device(board, number);
}

/// Begins to apply a change, and waits until a step has begun, by its journal; of one that makes a filesystem, until the
/// program runs that makes it. Then the board does something.
fn interrupted(board: &mut Session, apply: &Apply, step: usize, act: &str) {
    board.throttle_usb(NAMED, Some(SLOW)).unwrap();
    let Apply { recipe, script, maker, .. } = apply;
    let wait = |is_there: &str, then: &str| {
        format!("until {is_there}; do kill -0 $apply || break; sleep 0.1; done; echo {then}")
    };
    let journals = format!("$(ls -d /var/lib/rubus/changes/*-{recipe} | tail -n 1)/journal");
    let begun = format!("grep -qs '\"record\":\"begun\",\"step\":{step}}}' {journals}");
    let made = match step {
        FORMAT => format!("pidof {maker} >/dev/null"),
        _ => "true".to_owned(),
    };
    // Those of changes before are no concern of this one.
    let script = format!(
        "before=$(ls /var/lib/rubus/changes 2>/dev/null | wc -l); {script} >/run/said 2>&1 & apply=$!
         {}; {}; {}
         {act}
         wait $apply; status=$?; cat /run/said; exit $status",
        wait("[ $(ls /var/lib/rubus/changes 2>/dev/null | wc -l) -gt $before ]", "new"),
        wait(&begun, "begun"),
        wait(&made, "made"),
    );
    board.begin(&script, "root", LONG).unwrap();
    let mut said = String::new();
    let mut until = |board: &mut Session, word: &str| {
        let mut see = |more: &[u8]| {
            said += &String::from_utf8_lossy(more);
            !said.contains(word)
        };
        let ended = board.follow(LONG, &mut see).unwrap();
        assert_eq!(ended, None, "it ended too early: {said}");
    };
    until(board, "begun\n");
    until(board, "made\n");
}

/// What was interrupted by pulling the disk out ends by itself.
fn pulled_out(board: &mut Session, apply: &Apply) -> String {
    interrupted(board, apply, FORMAT, "");
    board.unplug_usb(NAMED).unwrap();
    let ended = board.follow(LONG, &mut |_| true).unwrap().expect("no end");
    let said = words(&ended);
    println!("{said}");
    assert_eq!(ended.status, 4, "{said}");
    for words in ["step 2 of", "fails or was pulled out", "is as it was before"] {
        assert!(said.contains(words), "'{words}' in: {said}");
    }
    let status = is_undone(board);
    assert!(status.contains("It was turned back: step 2"), "{status}");
    board.throttle_usb(NAMED, None).unwrap();
    board.plug_usb(NAMED).unwrap();
    device(board, NAMED);
    assert_eq!(must(board, "rubus resume", SOON), "Nothing was interrupted.\n");
    said
}

fn pulled_out_while_the_new_root_is_made(board: &mut Session) {
    let apply = Apply::desktop(board);
    pulled_out(board, &apply);
    let left = must(board, "ls -A /boot/firmware | grep rubus || true", SOON);
    assert_eq!(left, "", "left in the boot partition");
}

/// Plugged in again, it can be formatted as if nothing had been.
fn pulled_out_while_a_disk_is_formatted(board: &mut Session) {
    let apply = Apply::format(board);
    pulled_out(board, &apply);
    let apply = Apply::format(board);
    let said = must(board, &apply.script, LONG);
    assert!(said.contains("is applied"), "{said}");
    must(board, "rubus undo --yes", SOON);
    is_undone(board);
}

/// Plugged in again during the same boot it may be another disk, and the two cannot be told apart.
fn pulled_out_and_rubus_killed(board: &mut Session) {
    let apply = Apply::format(board);
    interrupted(board, &apply, FORMAT, "kill -KILL $apply");
    let killed = board.follow(LONG, &mut |_| true).unwrap().expect("no end");
    assert_eq!(killed.status, 137, "{}", words(&killed));
    board.unplug_usb(NAMED).unwrap();
    is_half_done(board);
    board.throttle_usb(NAMED, None).unwrap();
    board.plug_usb(NAMED).unwrap();
    device(board, NAMED);
    let again = refused(board, "rubus resume").expect("it may be another one");
    println!("{again}");
    for words in [
        "was taken out since the plan was made",
        "start the machine again with it plugged in; then run `rubus resume` again",
    ] {
        assert!(again.contains(words), "'{words}' in: {again}");
    }
    is_half_done(board);
    must(board, "rubus undo --yes", SOON);
    is_undone(board);
}

fn the_plan_says_that_there_may_be_twins(board: &mut Session) {
    let device = device(board, NAMED);
    let plan = format!("rubus plan desktop device={device} compress=zstd:1 {WAIT}");
    let plan = words(&board.run(&plan, "root", SOON).unwrap());
    for words in [
        "of this boot alone: it has no serial number of its own",
        "another disk of its model looks the same: unplug such disks",
    ] {
        assert!(plan.contains(words), "'{words}' in: {plan}");
    }
}

/// With both, and with the twin alone, resuming does nothing and says what to do.
fn neither_twin_is_touched(board: &mut Session, lab: &Lab) {
    let goes_on = "then run `rubus resume` again, or go back with `rubus undo";
    let both = refused(board, "rubus resume").expect("it cannot tell which is meant");
    println!("{both}");
    for words in ["look alike", "unplug the one that is not meant", goes_on] {
        assert!(both.contains(words), "'{words}' in: {both}");
    }
    unplug(board, NAMED);
    let twin = refused(board, "rubus resume").expect("the twin was not given away");
    println!("{twin}");
    for words in [
        "it may be another disk than the one that was meant",
        "plug in the one that was meant",
        goes_on,
    ] {
        assert!(twin.contains(words), "'{words}' in: {twin}");
    }
    lab.twin_is_untouched();
    is_half_done(board);
}

fn gone_on_with_the_right_disk(board: &mut Session, resume: &str) {
    must(board, resume, LONG);
    let status = must(board, "rubus status", SOON);
    let last = status.lines().rfind(|line| line.contains("-format "));
    assert!(last.is_some_and(|line| line.ends_with("applied")), "{status}");
    let device = device(board, NAMED);
    let kind = format!("blkid -p -o value -s TYPE {device}1");
    assert_eq!(must(board, &kind, SOON), "ext4\n");
}

fn is_half_done(board: &mut Session) {
    let status = board.run("rubus status", "root", SOON).unwrap();
    assert_eq!(status.status, 1, "{}", status.text());
    assert!(status.text().contains("HALF DONE"), "{}", status.text());
}

/// The last change is undone, and the old root runs without anything of it mounted.
fn is_undone(board: &mut Session) -> String {
    let status = must(board, "rubus status", SOON);
    let names = |line: &&str| line.contains("-desktop ") || line.contains("-format ");
    let last = status.lines().rfind(names);
    assert!(last.is_some_and(|line| line.ends_with("undone")), "{status}");
    assert_eq!(root(board), "ext4 ");
    let mounts = must(board, "cat /proc/mounts", SOON);
    assert!(!mounts.contains("/run/rubus"), "{mounts}");
    status
}
