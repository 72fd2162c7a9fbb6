//! Real servers that are killed, restarted, "rebooted" and given other images at random under the watcher of `rubus
//! attach`: nothing that was acknowledged is missing, and nothing is resumed over lost writes.
//!
//! The watcher, the handshake, the server and what it keeps about its image are the product's. Made up are the kernel's
//! driver (a client in this program, which sends again what was not answered) and the machine of the server: its
//! boot id and `/dev/shm` are a file and a directory of this test, and a reboot puts the image back to what was flushed.

use std::fs::{File, FileTimes};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use crate::common::program::binary;
use crate::common::served::{Random, directory};
use crate::common::{can_run, report, take_turns};
use rubus_host::net::Stream;
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{Listening, Serving, programs};
use rubus_nbd::client::{Client, Due, Offer};
use rubus_nbd::identity::Appearance;
use rubus_nbd::uri::Uri;
use rubus_nbd::wire::{Command as Order, CommandFlags, ErrorCode};
use rubus_nbd_tools::attach::{
    Attached, Counters, DriverError, End, Kernel, Pace, Remote, Server as _, Watcher,
};
use tempfile::TempDir;

const BLOCK: usize = 4096;
const BLOCKS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(20);

/// The first number of each block.
type Values = [u64; BLOCKS];

/// The server's machine.
struct Machine {
    place: TempDir,
    serving: Serving,
    boots: u32,
    /// What is on stable storage, and when it was written.
    durable: (Vec<u8>, SystemTime),
}

impl Machine {
    fn new(is_sync: bool) -> Machine {
        let place = directory();
        let image = place.path().join("disk.img");
        std::fs::write(&image, vec![0; BLOCK * BLOCKS]).expect("an image");
        std::fs::create_dir(place.path().join("shm")).expect("a directory");
        boot(&place, 1);
        let at = |name: &str| place.path().join(name).display().to_string();
        let script = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && mount --bind \"$2\" /dev/shm && \
                      rm -f \"$4\" && exec \"$0\" serve \"$3\" --quiet --unix \"$4\" $5";
        let mut command: Command = programs::command("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(binary());
        command.args([at("boot"), at("shm"), at("disk.img"), at("socket")]);
        command.arg(if is_sync { "--sync" } else { "" });
        let listening = Listening::Socket(place.path().join("socket"));
        let serving = Serving::start(command, listening).expect("it serves");
        let mut machine =
            Machine { place, serving, boots: 1, durable: (Vec::new(), SystemTime::UNIX_EPOCH) };
        machine.flushed();
        machine
    }

    fn image(&self) -> PathBuf {
        self.place.path().join("disk.img")
    }

    /// Everything that was written is on stable storage.
    fn flushed(&mut self) {
        let bytes = std::fs::read(self.image()).expect("the image");
        let written = std::fs::metadata(self.image()).and_then(|about| about.modified());
        self.durable = (bytes, written.expect("a time"));
    }

    fn come_back(&mut self) {
        self.serving.come_back().expect("it serves again");
    }

    /// Power is cut, and comes back: what was not flushed is gone, and what lives in memory.
    fn reboot(&mut self) {
        self.boots += 1;
        boot(&self.place, self.boots);
        let shm = self.place.path().join("shm");
        for kept in std::fs::read_dir(&shm).expect("it is there").flatten() {
            std::fs::remove_file(kept.path()).expect("a file");
        }
        let (bytes, written) = &self.durable;
        self.overwrite(bytes);
        let file = File::options().write(true).open(self.image());
        let times = FileTimes::new().set_modified(*written);
        file.and_then(|file| file.set_times(times)).expect("a time");
    }

    fn overwrite(&self, bytes: &[u8]) {
        let file = File::options().write(true).open(self.image());
        file.and_then(|file| file.write_all_at(bytes, 0)).expect("it is written");
    }
}

fn boot(place: &TempDir, number: u32) {
    // In place: the file is bound to another one's place.
    let mut file = File::create(place.path().join("boot")).expect("a file");
    writeln!(file, "00000000-0000-4000-8000-{number:012x}").expect("it is written");
}

/// What the made-up driver and the watcher share.
#[derive(Default)]
struct Shared {
    client: Option<Client<Stream>>,
    /// How often there was a new connection.
    replaced: u32,
    is_gone: bool,
    dead: u32,
    written_sectors: u64,
}

struct Device {
    shared: Mutex<Shared>,
    changed: Condvar,
    offer: Offer,
}

impl Device {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics")
    }

    /// Does a request, over one connection after the other until it is answered. False when the device is failed.
    fn ask(&self, order: Order, block: usize, memory: &mut [u8]) -> bool {
        let is_flush = order == Order::Flush;
        let due = Due {
            slot: 0,
            command: order,
            flags: CommandFlags::NONE,
            offset: if is_flush { 0 } else { (block * BLOCK) as u64 },
            length: if is_flush { 0 } else { BLOCK as u32 },
            memory_at: 0,
        };
        loop {
            let Some(mut client) = self.connection() else {
                return false;
            };
            let mut answers = Vec::new();
            let done = client.exchange_within(&[due], memory, &mut answers, PATIENCE);
            let mut shared = self.lock();
            match done {
                Ok(()) if answers.first().is_some_and(|answer| answer.error == ErrorCode::NONE) => {
                    if order == Order::Write {
                        shared.written_sectors += (BLOCK / 512) as u64;
                    }
                    shared.client = Some(client);
                    return true;
                }
                // A server that ends says so in place of an answer.
                Ok(()) | Err(_) => {
                    shared.dead += 1;
                    client.transport().end();
                }
            }
        }
    }

    /// The connection, when there is one.
    fn connection(&self) -> Option<Client<Stream>> {
        let shared = self.lock();
        let waits = |shared: &mut Shared| shared.client.is_none() && !shared.is_gone;
        let waited = self.changed.wait_timeout_while(shared, PATIENCE, waits);
        let (mut shared, waited) = waited.expect("nobody panics");
        assert!(!waited.timed_out(), "neither resumed nor failed");
        shared.client.take().filter(|_| !shared.is_gone)
    }
}

struct Driver {
    device: Arc<Device>,
    tells: UnixStream,
}

impl Kernel for Driver {
    fn reconnect(&mut self, socket: BorrowedFd<'_>) -> Result<(), DriverError> {
        let socket = socket.try_clone_to_owned()?;
        let stream = Stream::connected(socket, "again".into());
        let mut shared = self.device.lock();
        shared.client = Some(Client::new(stream, &self.device.offer));
        shared.replaced += 1;
        self.device.changed.notify_all();
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), DriverError> {
        self.device.lock().is_gone = true;
        self.device.changed.notify_all();
        Ok(())
    }

    fn is_connected(&mut self) -> bool {
        !self.device.lock().is_gone
    }

    fn take_dead(&mut self) -> u32 {
        std::mem::take(&mut self.device.lock().dead)
    }

    fn tells(&self) -> BorrowedFd<'_> {
        self.tells.as_fd()
    }

    fn counters(&mut self) -> Option<Counters> {
        let written = self.device.lock().written_sectors;
        Counters::parse(&format!("0 0 0 0 0 0 {written} 0 0 0 0 0"))
    }
}

/// A device from when it is attached until it is detached or failed.
struct Life {
    device: Arc<Device>,
    watcher: std::thread::JoinHandle<End>,
    /// What the program on top relies on.
    acknowledged: Values,
    has_written: bool,
}

impl Life {
    fn attach(machine: &Machine) -> Life {
        let address = Uri::parse(&machine.serving.address()).expect("an address");
        let mut remote = Remote::find(&address).expect("the server");
        let (stream, offer) = remote.connect(0, &[]).expect("they agree");
        assert!(offer.fenced);
        let own = stream.as_fd().try_clone_to_owned().expect("a descriptor");
        let own = Client::new(Stream::connected(own, "first".into()), &offer);
        let appearance = Appearance::of(&offer);
        assert!(appearance.identity.is_some());
        let device = Arc::new(Device {
            shared: Mutex::new(Shared { client: Some(own), ..Shared::default() }),
            changed: Condvar::new(),
            offer,
        });
        let attached = Attached {
            name: "nbd0".into(),
            lines: vec![stream],
            appearance,
            counters: Some(Counters::default()),
            read_only: false,
            vouched_for: false,
            fenced: true,
        };
        let known = Arc::clone(&device);
        let watcher = std::thread::spawn(move || {
            let (_keep, tells) = UnixStream::pair().expect("a pair of sockets");
            let mut driver = Driver { device: known, tells };
            let stop = AtomicBool::new(false);
            let leave = Arc::new(|| Ok(()));
            let (mut log, mut tell) = (|_, _: &str| (), |_: &_| ());
            Watcher::new(attached, &mut driver, &mut remote, &mut log, &mut tell, &stop, leave)
                .at(Pace {
                    first: Duration::from_millis(5),
                    most: Duration::from_millis(20),
                    look: Duration::from_millis(20),
                    notice: Duration::from_millis(20),
                })
                .run()
        });
        let mut life = Life { device, watcher, acknowledged: [0; BLOCKS], has_written: false };
        life.acknowledged = life.read().expect("it was just attached");
        life
    }

    /// What is on the disk; nothing when the device is failed.
    fn read(&self) -> Option<Values> {
        let mut values = [0; BLOCKS];
        let mut memory = vec![0; BLOCK];
        for (block, value) in values.iter_mut().enumerate() {
            if !self.device.ask(Order::Read, block, &mut memory) {
                return None;
            }
            let first: [u8; 8] = memory[..8].try_into().expect("eight bytes");
            *value = u64::from_le_bytes(first);
            assert!(memory.chunks(8).all(|word| word == first), "a torn block");
        }
        Some(values)
    }

    /// Writes one block; false when the device is failed.
    fn write(&mut self, block: usize, value: u64) -> bool {
        let mut memory = value.to_le_bytes().repeat(BLOCK / 8);
        let done = self.device.ask(Order::Write, block, &mut memory);
        if done {
            self.acknowledged[block] = value;
            self.has_written = true;
        }
        done
    }

    /// Ends the connection as a network does that is cut.
    fn cut(&self) {
        if let Some(client) = &self.device.lock().client {
            client.transport().end();
        }
    }

    fn end(self) -> End {
        self.device.lock().is_gone = true;
        self.watcher.join().expect("the watcher does not panic")
    }
}

/// What came of all rounds.
#[derive(Debug, Default)]
struct Tally {
    resumed: u32,
    resumed_after_reboot: u32,
    given_up: u32,
}

/// Runs this number of rounds, with an image of which every write is durable or not.
fn run(seed: u64, rounds: u32, is_sync: bool) -> Tally {
    let mut random = Random(seed);
    let mut machine = Machine::new(is_sync);
    let mut life = Life::attach(&machine);
    let mut tally = Tally::default();
    let mut next = 1;
    for round in 0..rounds {
        let at = |what: &str| format!("seed {seed}, round {round}, sync {is_sync}: {what}");
        for _ in 0..random.below(4) {
            assert!(life.write(random.below(BLOCKS), next), "{}", at("a write failed"));
            next += 1;
            if is_sync {
                machine.flushed();
            }
        }
        if random.below(3) == 0 {
            assert!(life.device.ask(Order::Flush, 0, &mut vec![0; BLOCK]));
            machine.flushed();
        }
        // What there is to say when the device is failed.
        let (mut is_reason, mut is_reboot) = (false, false);
        let what = random.below(6);
        match what {
            0 => life.cut(),
            1 => {
                let status = machine.serving.end().expect("it ends");
                assert!(status.success());
                machine.flushed();
                machine.come_back();
            }
            2 => {
                machine.serving.kill();
                machine.reboot();
                is_reboot = true;
                is_reason = life.has_written && !is_sync;
                machine.come_back();
            }
            3 => {
                machine.serving.kill();
                // Files are dated in steps.
                std::thread::sleep(Duration::from_millis(60));
                machine.overwrite(&next.to_le_bytes().repeat(BLOCK / 8 * BLOCKS));
                machine.flushed();
                is_reason = true;
                machine.come_back();
                next += 1;
            }
            _ => {
                machine.serving.kill();
                machine.come_back();
            }
        }
        let replaced = life.device.lock().replaced;
        match life.read() {
            Some(found) => {
                assert_eq!(found, life.acknowledged, "{}", at("acknowledged writes are missing"));
                assert!(what != 3, "{}", at("resumed on another image"));
                let is_new = life.device.lock().replaced > replaced || replaced > 0;
                tally.resumed += u32::from(is_new);
                tally.resumed_after_reboot += u32::from(is_reboot);
            }
            None => {
                let end = life.end();
                assert!(matches!(end, End::GivenUp(_)), "{}: {end:?}", at("it ended"));
                assert!(is_reason, "{}: {end:?}", at("failed without a reason"));
                tally.given_up += 1;
                life = Life::attach(&machine);
            }
        }
    }
    assert_eq!(life.end(), End::Detached);
    tally
}

fn rounds(number: u32, seed: u64) {
    let _turn = take_turns();
    let image = run(seed, number * 3 / 5, false);
    let synchronous = run(seed + 1, number * 2 / 5, true);
    assert!(image.resumed > 0 && image.given_up > 0, "{image:?}");
    assert!(synchronous.resumed_after_reboot > 0, "{synchronous:?}");
    report(&format!("{number} rounds of kills: an image {image:?}; with --sync {synchronous:?}"));
}

#[test]
fn nothing_is_missing_and_nothing_is_resumed_over_lost_writes() {
    if can_run("nbd_kills", &[Need::Root]) {
        rounds(50, 1);
    }
}

#[test]
fn the_same_five_hundred_times() {
    if can_run("nbd_kills_many", &[Need::Root]) {
        rounds(500, 100);
    }
}
