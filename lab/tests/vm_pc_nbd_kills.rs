//! The kernel's NBD client on the quick board, under a filesystem and a raw area that are written
//! to all the time, while server, network and watcher are killed, frozen, cut off, restarted and
//! exchanged at random: nothing that was acknowledged is missing, and nothing goes on over lost
//! writes.
//!
//! `nbd_kills` does the same with a driver of its own and many more rounds in the same time. Here
//! the driver is the kernel's, and what a restarted machine loses is what its kernel had not
//! written to its disk.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::needs::Need;
use rubus_lab::power_cuts::Random;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::server_kills::events::{Event, Life, Outcome, Restored};
use rubus_lab::server_kills::writes::{Expected, Found, LINE_BYTES, Promises, found, found_in};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};

use crate::common::server_machine::ServerMachine;
use crate::common::{can_run, report, take_turns};

const TEST: &str = "vm_pc_nbd_kills";
const SOON: Duration = Duration::from_secs(400);

/// How many rounds, and the seed of the first of them.
const ROUNDS: &str = "RUBUS_LAB_KILLS";
const SEED: &str = "RUBUS_LAB_KILLS_SEED";
/// Everything happens in them once.
const USUAL_ROUNDS: u64 = 12;

const WRITER: &str = include_str!("server_kills/writer.pl");
const READER: &str = include_str!("server_kills/reader.pl");

/// Where the raw area is, in bytes, as `writer.pl` has it; the filesystem ends before.
const RAW_AT: u64 = 48 << 20;
const RAWS_APART: u64 = 64 << 10;
const RAWS: u64 = 8;
const FILESYSTEM_BLOCKS: u64 = 10240;
const BLOCK_BYTES: usize = 4096;

/// A write that was in flight when its server was killed has a timestamp at most this much later; a later one is known
/// to come from another writer.
const DATED_LATER: Duration = Duration::from_millis(10_500);
/// Files are dated in steps.
const DATED_APART: Duration = Duration::from_millis(60);

#[test]
fn nothing_acknowledged_is_missing_under_the_kernels_client() {
    let number = |name: &str, usual: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => usual,
    };
    let (rounds, seed) = (number(ROUNDS, USUAL_ROUNDS), number(SEED, 1));
    let _turn = take_turns();
    let Some(mut rig) = Rig::new(seed) else {
        return;
    };
    let mut tally = Tally::default();
    let mut deck = Vec::new();
    for round in 0..rounds {
        if deck.is_empty() {
            deck = Event::deck(&mut rig.random);
        }
        let event = deck.pop().unwrap();
        let begun = Instant::now();
        let life = rig.life;
        eprintln!("seed {seed}, round {round}: {event:?}, {life:?}");
        let outcome = rig.round(event);
        let took_s = begun.elapsed().as_secs_f64();
        report(&format!(
            "seed {seed}, round {round}: {event:?}, {life:?}: {outcome:?} after {took_s:.1} s"
        ));
        tally.count(event, &outcome);
        rig.next_life(&outcome);
    }
    report(&format!("{rounds} rounds from seed {seed} under the kernel's client: {tally:?}"));
    if rounds >= USUAL_ROUNDS {
        assert!(tally.went_on > 0 && tally.given_up > 0, "{tally:?}");
    }
    rig.board.switch_off().unwrap();
}

#[test]
fn a_server_that_loses_what_it_flushed_and_says_nothing_is_noticed() {
    let _turn = take_turns();
    let Some(mut rig) = Rig::new(7) else {
        return;
    };
    let old = rig.machine.bytes();
    rig.start_writers();
    rig.stop_writers();
    rig.machine.kill();
    rig.machine.forget(&old, RAW_AT);
    rig.machine.come_back();
    let found = rig.read();
    for expected in [Expected::Acknowledged, Expected::Durable] {
        let broken = rig.promises.broken(&found, expected, "raw");
        assert!(!broken.is_empty(), "lost writes are not seen: {found:?}");
    }
    let attached = rig.board_must("rubus attach");
    assert!(attached.contains("again"), "{attached}");
    rig.board.cut_power();
}

/// What came of all rounds.
#[derive(Debug, Default)]
struct Tally {
    went_on: u32,
    went_on_after_reboot: u32,
    given_up: u32,
    attached_again: u32,
}

impl Tally {
    fn count(&mut self, event: Event, outcome: &Outcome) {
        let is_reboot = matches!(event, Event::Rebooted { .. } | Event::RebootedWhenDurable);
        match outcome {
            Outcome::GoesOn => self.went_on += 1,
            Outcome::GivenUp(_) => self.given_up += 1,
            Outcome::AttachedAgain => self.attached_again += 1,
        }
        self.went_on_after_reboot += u32::from(is_reboot && *outcome == Outcome::GoesOn);
    }
}

/// A board with its disk, and the machine that serves it.
struct Rig {
    board: Session,
    machine: ServerMachine,
    random: Random,
    life: Life,
    promises: Promises,
    /// How many bytes of the writers' logs are taken in.
    heard: [usize; 2],
}

impl Rig {
    /// A board with a mounted filesystem on the disk, and something written to each place.
    fn new(seed: u64) -> Option<Rig> {
        if !can_boot(TEST, Board::Pc) || !can_run(TEST, &[Need::Root]) {
            return None;
        }
        let options = Options {
            push: vec![rubus_or_skip(TEST, Board::Pc)?],
            network: true,
            ..Options::default()
        };
        let board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
        let mut random = Random::of(seed);
        let life = Life::drawn(&mut random);
        let mut rig = Rig {
            board,
            machine: ServerMachine::new(life.is_sync),
            random,
            life,
            promises: Promises::default(),
            heard: [0, 0],
        };
        rig.board_must(&format!(
            "card=$(ls /sys/class/net | grep -v '^lo$'); ip link set $card up
             ip addr add 10.0.2.15/24 dev $card; ip route add default via 10.0.2.2
             mkdir -p /run/kills
             cat >/run/kills/writer.pl <<'END'\n{WRITER}END
             cat >/run/kills/reader.pl <<'END'\n{READER}END"
        ));
        rig.attach();
        rig.board_must(&format!(
            "mkfs.ext4 -q -b {BLOCK_BYTES} -J size=4 -E lazy_itable_init=0,lazy_journal_init=0 \
               /dev/nbd0 {FILESYSTEM_BLOCKS} && mount /dev/nbd0 /mnt
             for kind in raw file; do perl /run/kills/writer.pl $kind 1 1 once; done"
        ));
        rig.hear();
        Some(rig)
    }

    fn board_must(&mut self, script: &str) -> String {
        self.board.must(script, "root", SOON).unwrap()
    }

    fn attach(&mut self) {
        let (port, life) = (self.machine.port(), self.life);
        self.board_must(&format!(
            "dmesg -C; rubus attach nbd://{HOST_ADDRESS}:{port}/ /dev/nbd0 --connections {} \
               --timeout {} --dead-timeout 200 >&2",
            life.connections, life.timeout_s
        ));
    }

    /// Something happens while the disk is written to. Gives how the disk is after it, when all
    /// that must be there is there.
    fn round(&mut self, event: Event) -> Outcome {
        let before = self.promises.clone();
        let backup = match event {
            Event::Restored(_) => Some(self.machine.bytes()),
            _ => None,
        };
        self.start_writers();
        let moment_ms = self.random.number(700);
        std::thread::sleep(Duration::from_millis(moment_ms));
        let (is_lost, left) = self.happen(event, backup.as_deref());
        let (outcome, mut expected) = match event {
            Event::WatcherKilled => (self.detach_in_order(), Expected::Acknowledged),
            Event::WatcherAndServerKilled => (self.detach_by_force(), Expected::Durable),
            _ => (self.observe(), Expected::Durable),
        };
        event.may_end(&outcome, self.life, is_lost).unwrap();
        if outcome == Outcome::GoesOn {
            self.board_must("sync");
            let found = self.read();
            self.must_hold(&found, Expected::Acknowledged, "");
            return outcome;
        }
        if let (Outcome::GivenUp(_), Some(left)) = (&outcome, left) {
            assert!(
                self.machine.bytes() == left,
                "something was written to the disk on which nothing may go on"
            );
        }
        if backup.is_some() {
            // The disk is what it was then.
            self.promises.go_back_to(before);
            expected = Expected::Acknowledged;
        }
        let is_in_order = event == Event::WatcherKilled;
        let found = self.attach_again(is_in_order);
        self.must_hold(&found, expected, "");
        if event == Event::WatcherAndServerKilled {
            // No machine has lost anything, and no cache of the board is above the raw area.
            self.must_hold(&found, Expected::Acknowledged, "raw");
        }
        self.settle(&found);
        outcome
    }

    fn must_hold(&self, found: &Found, expected: Expected, prefix: &str) {
        let broken = self.promises.broken(found, expected, prefix);
        assert!(broken.is_empty(), "{expected:?}: {broken:#?}");
    }

    /// Begins to write, and waits until something of each kind is durable.
    fn start_writers(&mut self) {
        let (next, seed) = (self.promises.next(), self.random.number(1 << 31));
        self.heard = [0, 0];
        self.board_must(&format!(
            "cd /run/kills; rm -f stop *.log *.ended; touch raw.log file.log
             for kind in raw file; do
               {{ perl writer.pl $kind {next} {seed} 2>>said; touch $kind.ended; }} \
                 </dev/null >/dev/null 2>&1 &
             done
             until grep -q durable raw.log && grep -q durable file.log; do
               [ ! -e raw.ended ] && [ ! -e file.ended ] || {{ cat said >&2; exit 1; }}
               sleep 0.1
             done"
        ));
    }

    /// Takes in what the writers have said since they were started.
    fn hear(&mut self) {
        let [raw, file] = self.heard.map(|bytes| bytes + 1);
        let logs = self.board_must(&format!(
            "cd /run/kills; tail -c +{raw} raw.log; printf '\\n=\\n'; tail -c +{file} file.log"
        ));
        let (raw, file) = logs.split_once("\n=\n").unwrap();
        for (log, heard) in [raw, file].into_iter().zip(&mut self.heard) {
            let whole = log.rfind('\n').map_or("", |end| &log[..=end]);
            self.promises.hear(whole).unwrap();
            *heard += whole.len();
        }
    }

    /// Waits until both writers have gone on from here, or have been told of a failure.
    fn hear_more(&mut self) {
        self.board_must(
            "cd /run/kills; count() { wc -l <$1.log; }; raw=$(count raw); file=$(count file)
             until [ -e raw.ended ] && [ -e file.ended ]; do
               [ $(count raw) -lt $((raw + 12)) ] || [ $(count file) -lt $((file + 9)) ] || break
               sleep 0.1
             done",
        );
    }

    fn stop_writers(&mut self) {
        self.board_must(
            "cd /run/kills; touch stop
             until [ -e raw.ended ] && [ -e file.ended ]; do sleep 0.1; done",
        );
        self.hear();
    }

    fn pull_the_plug(&mut self) {
        self.board.plug_network(false).unwrap();
    }

    fn plug_in(&mut self) {
        self.board.plug_network(true).unwrap();
    }

    fn pause(&mut self, most_ms: u64) {
        let time = Duration::from_millis(200 + self.random.number(most_ms));
        std::thread::sleep(time);
    }

    /// Makes it happen. Gives whether a write that was acknowledged is gone, and how the image was
    /// when its server came back to it, where the disk may be failed.
    fn happen(&mut self, event: Event, backup: Option<&[u8]>) -> (bool, Option<Vec<u8>>) {
        match event {
            Event::Killed { times } => {
                for _ in 0..times {
                    self.machine.kill();
                    self.pause(2000);
                    self.machine.come_back();
                    self.pause(1000);
                }
            }
            Event::Ended => {
                self.machine.end();
                self.pause(2000);
                self.machine.come_back();
            }
            Event::Frozen => {
                let time = Duration::from_millis(500 + self.random.number(7000));
                self.machine.freeze_for(time);
            }
            Event::Cut => {
                self.pull_the_plug();
                self.pause(6000);
                self.plug_in();
            }
            Event::CutAndKilled => {
                self.pull_the_plug();
                self.pause(1000);
                self.machine.kill();
                self.pause(1000);
                self.machine.come_back();
                self.pause(1000);
                self.plug_in();
            }
            Event::WatcherKilled => self.kill_the_watcher(),
            Event::WatcherAndServerKilled => {
                self.kill_the_watcher();
                self.machine.kill();
                self.pause(1000);
                self.machine.come_back();
            }
            Event::Rebooted { is_silent, is_stop_asked } => {
                return self.reboot(is_silent, is_stop_asked);
            }
            Event::RebootedWhenDurable => {
                self.stop_writers();
                self.wait_until_durable();
                self.machine.cut_power();
                self.all_on_the_servers_disk(Expected::Acknowledged);
                self.machine.come_back();
                self.start_writers();
            }
            Event::Restored(how) => {
                let backup = backup.unwrap();
                self.restore(how, backup);
                return (false, Some(backup.to_vec()));
            }
        }
        (false, None)
    }

    /// Nothing is left to be written, and the watcher has flushed what was written last.
    fn wait_until_durable(&mut self) {
        self.board_must(
            "flushes() { awk '{ print $16 }' /sys/block/nbd0/stat; }
             sync; n=$(flushes)
             dd if=/dev/zero of=/dev/nbd0 bs=4k count=1 seek=15k oflag=direct conv=notrunc \
               status=none
             until [ $(flushes) -gt $n ]; do sleep 0.1; done
             while rubus attach --json | grep -q '\"unflushed\": true'; do sleep 0.1; done",
        );
    }

    fn kill_the_watcher(&mut self) {
        self.board_must(
            "watcher=$(rubus attach --json | awk '/\"watcher\"/ { print $2 + 0 }')
             kill -9 $watcher; while kill -0 $watcher 2>/dev/null; do sleep 0.1; done
             rubus attach | grep -q 'NOT watched'",
        );
    }

    fn reboot(&mut self, is_silent: bool, is_stop_asked: bool) -> (bool, Option<Vec<u8>>) {
        if is_stop_asked {
            self.board_must(
                "kill $(rubus attach --json | awk '/\"watcher\"/ { print $2 + 0 }')
                 until dmesg | grep -q 'stays attached'; do sleep 0.1; done",
            );
        }
        // From here on nothing more is acknowledged, and what was is known.
        self.pull_the_plug();
        std::thread::sleep(Duration::from_millis(200));
        self.hear();
        self.machine.cut_power();
        let is_lost = !self.all_on_the_servers_disk(Expected::Durable);
        let left = self.machine.bytes();
        if !is_silent {
            self.plug_in();
            self.pause(500);
        }
        self.machine.come_back();
        if is_silent {
            self.pause(1000);
            self.plug_in();
        }
        (is_lost, Some(left))
    }

    /// Looks at the raw area of the image, of which so much must be there; gives whether all is
    /// there that was acknowledged.
    fn all_on_the_servers_disk(&self, expected: Expected) -> bool {
        let image = std::fs::File::open(self.machine.image()).unwrap();
        let mut all = Found::new();
        for number in 0..RAWS {
            let mut bytes = [0; BLOCK_BYTES];
            let at = RAW_AT + number * RAWS_APART;
            image.read_exact_at(&mut bytes, at).unwrap();
            let place = format!("raw{number:03}");
            let seen = found_in(&bytes, &place).unwrap();
            all.extend(seen.map(|seen| (place, seen)));
        }
        self.must_hold(&all, expected, "raw");
        let broken = self.promises.broken(&all, Expected::Acknowledged, "raw");
        broken.is_empty()
    }

    fn restore(&mut self, how: Restored, backup: &[u8]) {
        match how {
            Restored::IntoItAfterItsEnd => {
                self.machine.end();
                std::thread::sleep(DATED_APART);
                self.machine.overwrite(backup);
            }
            Restored::IntoItAfterAKill => {
                self.machine.kill();
                std::thread::sleep(DATED_LATER);
                self.machine.overwrite(backup);
            }
            Restored::UnderItsName => {
                self.machine.kill();
                self.machine.replace(backup);
            }
        }
        self.machine.come_back();
    }

    /// Waits until the disk goes on or has failed, and says which.
    fn observe(&mut self) -> Outcome {
        self.hear_more();
        self.stop_writers();
        let failed = self.promises.take_failed();
        if failed.is_empty() {
            let attached = self.board_must("rubus attach --json");
            assert!(attached.contains("/dev/nbd0"), "{attached}");
            return Outcome::GoesOn;
        }
        let why = self.board_must(
            "until rubus attach | grep -q 'Nothing is attached'; do sleep 0.1; done
             dmesg | grep 'NOT resumed' || { dmesg | tail -n 40; cat /run/kills/said; } >&2
             umount /mnt; until [ $(cat /sys/block/nbd0/size) = 0 ]; do sleep 0.1; done",
        );
        assert!(!why.is_empty(), "writes have failed: {failed:?}");
        Outcome::GivenUp(why.trim().to_owned())
    }

    /// Without a watcher the disk is used on, and detached as any other.
    fn detach_in_order(&mut self) -> Outcome {
        self.hear_more();
        self.stop_writers();
        assert_eq!(self.promises.take_failed(), [""; 0]);
        self.board_must("umount /mnt && rubus detach >&2");
        Outcome::AttachedAgain
    }

    /// The connection will not come back, and writes wait: giving up loses what was not written.
    fn detach_by_force(&mut self) -> Outcome {
        self.board_must("umount -l /mnt && rubus detach --give-up >&2");
        self.stop_writers();
        assert_ne!(self.promises.take_failed(), [""; 0]);
        self.board_must(
            "until [ $(cat /sys/block/nbd0/size) = 0 ]; do sleep 0.1; done
             [ -z \"$(ls -A /mnt)\" ] || { echo 'something was written beside the disk'; exit 1; } >&2",
        );
        Outcome::AttachedAgain
    }

    /// Attaches and mounts it in another life, and reads all of it. Only where it was not unmounted
    /// may there be something to replay; after that its filesystem is without a fault.
    fn attach_again(&mut self, was_unmounted: bool) -> Found {
        let life = Life::drawn(&mut self.random);
        if life.is_sync != self.life.is_sync {
            self.machine.serve_anew(life.is_sync);
        }
        self.life = life;
        self.attach();
        let replay =
            "e2fsck -p /dev/nbd0 >/run/fsck 2>&1 || [ $? = 1 ] || { cat /run/fsck >&2; exit 1; }";
        let replay = if was_unmounted { "" } else { replay };
        self.board_must(&format!(
            "{replay}
             e2fsck -fn /dev/nbd0 >/run/fsck 2>&1 || {{ cat /run/fsck >&2; exit 1; }}
             mount /dev/nbd0 /mnt"
        ));
        self.read()
    }

    /// What is in all places, past every cache of the board.
    fn read(&mut self) -> Found {
        let text = self.board_must("echo 3 >/proc/sys/vm/drop_caches; perl /run/kills/reader.pl");
        let block_lines = (BLOCK_BYTES / LINE_BYTES) as u64;
        let lines =
            |place: &str| if place.starts_with("raw") { block_lines } else { 3 * block_lines };
        found(&text, lines).unwrap()
    }

    /// What was found is durable from now on.
    fn settle(&mut self, found: &Found) {
        self.board_must("sync /dev/nbd0");
        self.promises.settle(found);
    }

    /// Now and then the disk is detached and attached in another way.
    fn next_life(&mut self, outcome: &Outcome) {
        if *outcome != Outcome::GoesOn || self.random.number(3) > 0 {
            return;
        }
        self.board_must("umount /mnt && rubus detach >&2");
        let found = self.attach_again(true);
        self.must_hold(&found, Expected::Acknowledged, "");
        self.settle(&found);
    }
}
