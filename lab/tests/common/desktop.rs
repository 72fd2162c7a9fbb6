//! The way of the recipe `desktop` on any board: from a plain SD system to a compressed root on a USB disk
//! and back, with real boots between.

use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::mounted;
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

/// For what takes seconds on a free machine.
pub const SOON: Duration = Duration::from_secs(300);
/// Copying the system and making an initial RAM filesystem on an emulated processor, which takes up to
/// four minutes on a free machine.
pub const LONG: Duration = Duration::from_secs(2400);

/// What may differ on the card afterwards: the plan and its journal, and what each boot writes.
pub const MAY_DIFFER: &[&str] = &["/var/lib/rubus", "/var/cache", "/etc/mtab"];

/// How long a start waits for the new disk. On a busy machine an emulated board has found its disk later than within the
/// 30 s that are usual, and then starts the card's system, as it should.
pub const WAIT: &str = "wait=300";

/// Applies the recipe on the card's system by `apply`, starts the new one and looks at it under memory pressure, undoes
/// the change from there, starts the old one, and compares the card with what it was.
pub fn there_and_back(test: &str, board: Board, apply: impl FnOnce(&mut Session, &str)) {
    if !can_boot(test, board) {
        return;
    }
    let Some(rubus) = rubus_or_skip(test, board) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, board, &[UsbDisk::as_sold()]).unwrap();
    let options = Options { push: vec![rubus], ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let begun = Instant::now();
    let told = |what: &str| println!("{:4.0} s: {what}", begun.elapsed().as_secs_f64());

    let mut old = boot();
    told("the card's system runs");
    apply(&mut old, &kit.usb_disks()[0].serial);
    told("applied");
    old.switch_off().unwrap();

    let mut new = boot();
    told("the new root runs");
    runs_from_the_new_disk(&mut new);
    memory_pressure_reaches_the_disk_through_zswap(&mut new);
    told("memory was full");
    is_as_promised(&mut new);
    told("verified");
    must(&mut new, "rubus undo --yes", SOON);
    told("undone");
    new.switch_off().unwrap();

    let mut back = boot();
    told("the card's system runs again");
    ends_on_the_card(&mut back);
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// The first start of the card's system after undoing, which ends the change.
pub fn ends_on_the_card(board: &mut Session) {
    assert_eq!(root(board), "ext4 ");
    let swaps = must(board, "cat /proc/swaps", SOON);
    assert!(swaps.contains("/var/swap"), "{swaps}");
    must(board, "rubus resume", SOON);
}

/// Runs a script as root that must succeed; gives its standard output.
pub fn must(board: &mut Session, script: &str, limit: Duration) -> String {
    board.must(script, "root", limit).unwrap()
}

/// Type of the root filesystem and the subvolume that it is.
pub fn root(board: &mut Session) -> String {
    let root = mounted::at(board, "/").unwrap();
    let subvolume = root.options.iter().find(|word| word.starts_with("subvol="));
    format!("{} {}", root.kind, subvolume.map_or("", |word| word))
}

/// The root is the one on the new disk; else what the start has said of that is shown.
pub fn runs_from_the_new_disk(board: &mut Session) {
    let now = root(board);
    if now != "btrfs subvol=/@" {
        let told = must(board, "cat /proc/cmdline /run/motd.d/rubus || true", SOON);
        panic!("the root is {now}: {told}");
    }
}

/// The card itself, a disk that is not given away, and one that is in use.
pub fn wrong_disks_are_refused(board: &mut Session) {
    let usb = board.usb_device(0).unwrap();
    let before = must(board, &format!("sfdisk -d {usb}"), SOON);
    for (script, status, says) in [
        ("rubus apply desktop device=/dev/mmcblk0 --yes".to_string(), 1, "mmcblk0"),
        (format!("rubus apply desktop device={usb} --yes"), 3, "4C530001230914116022"),
        (
            format!(
                "mount {usb}1 /mnt && rubus apply desktop device={usb} --yes \
                 --i-will-lose-everything-on=4C530001230914116022"
            ),
            1,
            "mounted",
        ),
    ] {
        let done = board.run(&script, "root", SOON).unwrap();
        let said = format!("{}\n{}", done.text(), done.complaint_text());
        assert_eq!(done.status, status, "{script}: {said}");
        assert!(said.contains(says), "{script}: {said}");
    }
    must(board, "umount /mnt", SOON);
    assert_eq!(must(board, &format!("sfdisk -d {usb}"), SOON), before);
    let status = must(board, "rubus status", SOON);
    assert!(status.starts_with("No recipe has been applied on this machine.\n"), "{status}");
}

/// Applies the recipe to the first USB disk.
pub fn apply(board: &mut Session, serial: &str) {
    let usb = board.usb_device(0).unwrap();
    let script = format!(
        "rubus apply desktop device={usb} compress=zstd:1 {WAIT} --yes --i-will-lose-everything-on={serial}"
    );
    let said = must(board, &script, LONG);
    assert!(said.contains("is applied"), "{said}");
    assert_eq!(root(board), "ext4 ", "the running system has changed");
    let time = PlannedTime::of_the_last_change(board);
    println!("{time}");
    assert!(time.least_s > 0.0 && time.took_s > 0.0, "{time}");
}

/// The time that the plan of a change gave, and the one that applying it took by the board's own clock.
pub struct PlannedTime {
    pub least_s: f64,
    pub most_s: f64,
    /// From the first record of its journal to the last.
    pub took_s: f64,
    /// What the plan's time is based on.
    source: String,
    /// From record to record of the journal.
    each_s: Vec<f64>,
}

impl PlannedTime {
    /// How far a plan's time may be off.
    const FACTOR: f64 = 1.5;

    /// Beside other tests no time is that of a board, so that only a test which runs alone may judge by it.
    pub fn of_the_last_change(board: &mut Session) -> PlannedTime {
        const STAMPS: &str = "cd /var/lib/rubus/changes/*-desktop
for moment in $(grep -o '\"at\":\"[^\"]*\"' journal | cut -d'\"' -f4); do date -d $moment +%s.%N; done";
        let plan = must(board, "cat /var/lib/rubus/changes/*-desktop/plan.json", SOON);
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let [least_s, most_s] =
            ["least_s", "most_s"].map(|name| plan["effort"][name].as_f64().unwrap());
        let moments = must(board, STAMPS, SOON);
        let moments: Vec<f64> = moments.lines().map(|line| line.parse().unwrap()).collect();
        PlannedTime {
            least_s,
            most_s,
            took_s: moments.last().unwrap() - moments[0],
            source: plan["effort"]["source"].as_str().unwrap_or_default().into(),
            each_s: moments.windows(2).map(|two| two[1] - two[0]).collect(),
        }
    }

    /// Whether it took as long as was said, within the factor that the documentation names.
    pub fn is_right(&self) -> bool {
        self.least_s / Self::FACTOR <= self.took_s && self.took_s <= self.most_s * Self::FACTOR
    }
}

impl Display for PlannedTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let each: Vec<String> = self.each_s.iter().map(|s| format!("{s:.1}")).collect();
        write!(
            f,
            "the plan said {} to {} s, and it took {:.0} s ({})\nfrom record to record of its journal, in seconds: {}",
            self.least_s,
            self.most_s,
            self.took_s,
            self.source,
            each.join(" ")
        )
    }
}

pub fn is_as_promised(board: &mut Session) {
    let verified = board.run("rubus verify", "root", SOON).unwrap();
    let said = format!("{}\n{}", verified.text(), verified.complaint_text());
    assert_eq!(verified.status, 0, "{said}");
    assert!(said.contains("zstd"), "{said}");
    assert!(said.contains("written back to disk"), "{said}");
}

/// Fills the memory with pages that compress by half (half random, half zeros; the same in each file) until
/// the pool is full and older pages leave it for the disk, then reads back those that were swapped out first.
///
/// The pool is made small meanwhile, 5 % of the memory: with the 20 % of the recipe three times as many pages would have
/// to be compressed, which an emulated processor does slowly. And once full it is emptied by half: a full pool is emptied
/// only down to the threshold, and with the usual 90 % a tenth of it is all that may ever be written back here. Pages that come meanwhile
/// go to the disk past the pool, so a full one is given a moment, which on a busy emulated processor it needs.
const PRESSURE: &str = "set -e
percent=/sys/module/zswap/parameters/max_pool_percent
threshold=/sys/module/zswap/parameters/accept_threshold_percent
planned=$(cat $percent)
usual=$(cat $threshold)
echo 5 >$percent
echo 50 >$threshold
mkdir -p /run/full
mount -t tmpfs -o size=1200M tmpfs /run/full
cd /sys/kernel/debug/zswap
perl -e 'for (1..4096) { read STDIN, $half, 2048; print $half, \"\\0\" x 2048 }' </dev/urandom >/run/full/0
for file in $(seq 70); do
  cp /run/full/0 /run/full/$file
  [ $(cat written_back_pages) -lt 2000 ] || break
  [ $(cat pool_limit_hit) -eq 0 ] || sleep 1
done
cat stored_pages written_back_pages
awk 'NR > 1 { used += $4 } END { print used }' /proc/swaps
sum=$(cksum </run/full/0)
for file in 1 2; do [ \"$(cksum </run/full/$file)\" = \"$sum\" ]; done
umount /run/full
echo $usual >$threshold
echo $planned >$percent";

pub fn memory_pressure_reaches_the_disk_through_zswap(board: &mut Session) {
    let said = must(board, PRESSURE, LONG);
    let numbers: Vec<u64> = said.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let [stored, written_back, used_kib] = numbers[..] else {
        panic!("no three numbers: {said}");
    };
    println!(
        "zswap: {stored} pages stored, {written_back} written back, {used_kib} KiB of swap used"
    );
    assert!(stored > 1000, "{said}");
    assert!(written_back >= 2000, "{said}");
    // What was written back and what is in the pool have their places in the swap.
    assert!(used_kib >= 4 * (stored + written_back) / 2, "{said}");
}
