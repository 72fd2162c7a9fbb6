//! The recipe `desktop` there and back by way of a start on trial, which prepares everything and does not switch. A trial
//! that comes up is kept by `rubus verify`, but not while a promise is broken, and undoing leaves the card as it was. A trial
//! that fails leaves the old system, which has lost nothing. Wrong disks are refused.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::common::desktop::{WAIT, ends_on_the_card, wrong_disks_are_refused};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::channel::Outcome;
use rubus_lab::firmware::Switches;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::mounted;
use rubus_lab::outside::{Manifest, differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_trial";
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(240);
/// Copying the system and making an initial RAM filesystem on an emulated processor.
const LONG: Duration = Duration::from_secs(900);

/// What may differ on the card afterwards: the plan and its journal, and what each boot writes.
const MAY_DIFFER: &[&str] = &["/var/lib/rubus", "/var/cache", "/etc/mtab"];

struct Lab {
    cache: Cache,
    options: Options,
}

impl Lab {
    fn boot(&self, kit: &Kit, tryboot: bool) -> anyhow::Result<Session> {
        let mut options = self.options.clone();
        options.switches = Switches { tryboot, ..Switches::default() };
        Session::boot_kit(&self.cache, kit, &options)
    }
}

#[test]
fn a_trial_that_comes_up_is_kept_and_one_that_fails_is_forgotten() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let lab = Lab {
        cache: Cache::of_this_machine(),
        options: Options { push: vec![rubus], ..Options::default() },
    };
    let kit = Kit::temporary(&lab.cache, Board::Pc, &[UsbDisk::as_sold()]).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let mut old = lab.boot(&kit, false).unwrap();
    wrong_disks_are_refused(&mut old);
    apply(&mut old, &kit.usb_disks()[0].serial);
    old.switch_off().unwrap();
    nothing_of_a_usual_start_has_changed(&kit, &before);

    let other = kit.temporary_copy(&lab.cache).unwrap();
    a_trial_fails(&lab, &other, &before);
    drop(other);
    a_trial_comes_up_and_is_kept(&lab, &kit);
    it_is_undone(&lab, &kit, &before);
}

fn run(board: &mut Session, script: &str) -> (Outcome, String) {
    let done = board.run(script, "root", SOON).unwrap();
    // Lines are broken where the terminal ends.
    let said = format!("{} {}", done.text(), done.complaint_text());
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    (done, said)
}

/// Runs a script that must end with this status and say this.
fn says(board: &mut Session, script: &str, status: i32, words: &str) {
    let (done, said) = run(board, script);
    assert_eq!(done.status, status, "{script}: {said}");
    assert!(said.contains(words), "{script}: {said}");
}

fn status(board: &mut Session) -> Value {
    let (done, said) = run(board, "rubus status --json");
    let list: Value = serde_json::from_str(&done.text()).unwrap_or_else(|_| panic!("{said}"));
    list[0].clone()
}

fn root(board: &mut Session) -> String {
    mounted::at(board, "/").unwrap().kind
}

/// The emulated firmware has no device tree to say that it knows trials, so the trial is asked for.
fn apply(board: &mut Session, serial: &str) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 trial=yes {WAIT} --yes --i-will-lose-everything-on={serial}"
    );
    let said = board.must(&script, "root", LONG).unwrap();
    assert!(said.contains("sudo reboot '0 tryboot'"), "{said}");
    assert_eq!(root(board), "ext4", "the running system has changed");
    assert_eq!(status(board)["is_on_trial"], true);
    says(board, "rubus status", 1, "It waits for its trial: `sudo reboot '0 tryboot'`");
    says(board, "rubus verify", 1, "It waits for its trial");
    says(board, "rubus apply zswap --yes", 2, "waits for its trial");
}

/// The new root is damaged, so that the trial ends in a panic.
fn a_trial_fails(lab: &Lab, kit: &Kit, before: &Manifest) {
    let disk = OpenOptions::new().read(true).write(true).open(kit.usb(0));
    let disk = disk.unwrap();
    // The first superblock of the btrfs in the first partition of the MBR.
    let mut sector = [0_u8; 4];
    disk.read_exact_at(&mut sector, 446 + 8).unwrap();
    let superblock = u64::from(u32::from_le_bytes(sector)) * 512 + (64 << 10);
    let mut magic = [0_u8; 8];
    disk.read_exact_at(&mut magic, superblock + 64).unwrap();
    assert_eq!(&magic, b"_BHRfS_M");
    disk.write_all_at(&[0; 4096], superblock).unwrap();
    let failed = lab.boot(kit, true).map(|_| ()).unwrap_err();
    println!("the trial failed: {failed:#}");

    let mut old = lab.boot(kit, false).unwrap();
    assert_eq!(root(&mut old), "ext4");
    says(&mut old, "rubus status", 1, "runs the old system");
    says(&mut old, "rubus verify", 1, "runs the old system");
    assert_eq!(status(&mut old)["is_on_trial"], true, "a failed trial was kept");
    says(&mut old, "rubus undo --yes", 0, "is undone");
    old.switch_off().unwrap();
    nothing_is_lost(kit, before);
}

/// While a change is on trial, the firmware reads exactly what it read before.
fn nothing_of_a_usual_start_has_changed(kit: &Kit, before: &Manifest) {
    let changed = differences(before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    let read = ["/config.txt", "/cmdline.txt", Board::Pc.initramfs_file()];
    for line in &changed {
        let ends = |name: &&str| {
            line.split_whitespace().any(|word| word.trim_end_matches(':').ends_with(*name))
        };
        assert!(!read.iter().any(ends), "{line}");
    }
}

fn nothing_is_lost(kit: &Kit, before: &Manifest) {
    let lost = differences(before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

fn a_trial_comes_up_and_is_kept(lab: &Lab, kit: &Kit) {
    let before = manifest(&kit.sd()).unwrap();
    let mut new = lab.boot(kit, true).unwrap();
    assert_eq!(root(&mut new), "btrfs");
    the_other_roots_journal_is_read(&mut new);

    new.must("swapoff -a", "root", SOON).unwrap();
    says(&mut new, "rubus verify", 1, "it was not kept");
    assert_eq!(status(&mut new)["is_on_trial"], true);
    new.must("swapon -a", "root", SOON).unwrap();
    says(&mut new, "rubus verify", 0, "The trial succeeded");
    says(&mut new, "rubus status", 0, "applied");
    says(&mut new, "rubus verify", 0, "promises hold");
    new.switch_off().unwrap();
    // The command line and the initial RAM filesystem are others, the latter's old one is kept, and the trial's files are gone.
    let changed = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    let names = [
        "cmdline.txt",
        "tryboot.txt",
        "cmdline-rubus.txt",
        "initramfs-rubus",
        Board::Pc.initramfs_file(),
    ];
    assert!(changed.iter().all(|line| names.iter().any(|name| line.contains(name))), "{changed:?}");
    assert_eq!(changed.len(), 6, "{changed:?}");

    let mut new = lab.boot(kit, false).unwrap();
    assert_eq!(root(&mut new), "btrfs", "a usual start is not the new one");
    says(&mut new, "rubus verify", 0, "promises hold");
    says(&mut new, "rubus undo --yes", 0, "is undone");
    new.switch_off().unwrap();
}

fn it_is_undone(lab: &Lab, kit: &Kit, before: &Manifest) {
    let mut old = lab.boot(kit, false).unwrap();
    ends_on_the_card(&mut old);
    old.switch_off().unwrap();
    nothing_is_lost(kit, before);
}

/// As if the power had gone before the new root's copy of the journal was brought up to date.
fn the_other_roots_journal_is_read(board: &mut Session) {
    let journal = "/var/lib/rubus/changes/0001-desktop/journal";
    let cut = format!("sed -i '/on_trial/,$d' {journal} && grep -c on_trial {journal} || true");
    assert_eq!(board.must(&cut, "root", SOON).unwrap().trim(), "0");
    assert_eq!(status(board)["is_on_trial"], true);
    says(board, "rubus status", 1, "`rubus verify` keeps it");
    // Looking writes nothing.
    let still = format!("grep -c on_trial {journal} || true");
    assert_eq!(board.must(&still, "root", SOON).unwrap().trim(), "0");
}
