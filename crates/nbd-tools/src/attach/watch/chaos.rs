//! A simulated server, its machine and a client's kernel, with random failures: whatever happens, the watcher never
//! resumes with a disk that lacks an acknowledged write, and a successful flush was a real one.
//!
//! The watcher, what it knows of flushes, the comparison of identities and the server's decision about its image are
//! the real ones. `RUBUS_CHAOS_SEEDS` says how many runs there are.

use std::cell::RefCell;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use rubus_nbd::client::Style;
use rubus_nbd::identity::{Identity, Uuid};
use rubus_nbd::server::ledger::{Kept, Noted, Seen, Told, judge};

use super::*;

const BLOCKS: usize = 6;
const STEPS: u32 = 120;
const SECOND: i64 = 1_000_000_000;

type Blocks = [u32; BLOCKS];

/// Numbers that look random (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn is_one_of(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// What the export is.
#[derive(Clone, Copy, PartialEq)]
enum Nature {
    Image,
    SynchronousImage,
    /// A disk that can be unplugged.
    Device,
    /// Of another maker's server, which does not say who it is.
    Silent,
}

struct World {
    dice: Dice,
    nature: Nature,
    steps: u32,
    now_ns: i64,

    /// The server's machine: what programs see, and what is on the disk.
    seen: Blocks,
    durable: Blocks,
    boot: u128,
    diskseq: u64,
    times: (i64, i64),
    /// What the last server has kept, in memory and with the file.
    kept: Option<Kept>,
    noted: Option<Noted>,

    /// The server program.
    is_up: bool,
    told: Told,
    /// A flush of it has failed.
    is_broken: bool,
    /// Another program wrote to the image, and no server has seen it yet.
    is_replaced: bool,
    next_random: u128,

    /// The server can be reached over the network.
    is_reachable: bool,
    is_attached: bool,
    peer: Option<UnixStream>,
    dead: u32,
    written: u64,
    acknowledged: Blocks,
    next_value: u32,
    /// A write whose answer was lost; the kernel sends it again.
    pending: Option<(usize, u32)>,
    wants_stop: bool,
    flushes: Receiver<Counters>,
    flushing: Option<Counters>,
    flushed: SyncSender<(Counters, Result<(), FlushError>)>,

    /// Something may have been lost or replaced since the device was attached.
    has_reason: bool,
    resumed: u32,
    story: Vec<String>,
}

impl World {
    fn tell(&mut self, what: impl Into<String>) {
        self.story.push(what.into());
    }

    fn is_connected(&self) -> bool {
        self.is_up && self.is_reachable && self.peer.is_some()
    }

    fn random(&mut self) -> Uuid {
        self.next_random += 1;
        Uuid(self.next_random)
    }

    fn cut(&mut self) {
        if self.peer.take().is_some() {
            self.dead += 1;
        }
    }

    fn seen_now(&self) -> Seen {
        let is_device = self.nature == Nature::Device;
        Seen {
            boot: Uuid(self.boot),
            size_bytes: BLOCKS as u64,
            times: (!is_device).then_some(self.times),
            diskseq: is_device.then_some(self.diskseq),
        }
    }

    fn keep(&mut self, is_whole: bool) {
        self.kept = Some(Kept {
            seen: self.seen_now(),
            epoch: self.told.epoch,
            generation: self.told.generation,
            is_whole,
            is_under_way: false,
            written_ns: self.times.0,
        });
    }

    fn note(&mut self, ended: bool) {
        if self.nature != Nature::Device {
            self.noted = Some(Noted {
                boot: Uuid(self.boot),
                epoch: self.told.epoch,
                generation: self.told.generation,
                ended: ended.then_some((self.times.0, BLOCKS as u64)),
            });
        }
    }

    fn start(&mut self) {
        self.tell("the server starts");
        let fresh = self.random();
        let seen = self.seen_now();
        self.told = judge(&seen, self.kept.as_ref(), self.noted.as_ref(), fresh);
        self.note(false);
        self.keep(true);
        self.is_up = true;
        self.is_broken = false;
        self.is_replaced = false;
    }

    fn identity(&self) -> Option<Identity> {
        (self.nature != Nature::Silent).then_some(Identity {
            boot: self.told.epoch,
            export: Uuid(7),
            generation: self.told.generation,
            sync: self.nature == Nature::SynchronousImage,
        })
    }

    fn write(&mut self, block: usize, value: u32) {
        self.times = (self.now_ns, self.now_ns);
        self.seen[block] = value;
        if self.nature == Nature::SynchronousImage {
            self.durable[block] = value;
        }
        if let Some(kept) = &mut self.kept {
            kept.is_whole = false;
            kept.written_ns = self.now_ns;
        }
    }

    /// A flush by any client, as the server answers it.
    fn flush(&mut self) -> bool {
        if self.is_broken {
            return false;
        }
        if self.seen != self.durable && self.dice.is_one_of(12) {
            self.tell("a flush fails, and what could not be written is dropped");
            for block in 0..BLOCKS {
                if self.dice.is_one_of(2) {
                    self.seen[block] = self.durable[block];
                }
            }
            self.has_reason = true;
            self.is_broken = true;
            self.told.epoch = self.random();
            if let Some(kept) = &mut self.kept {
                kept.epoch = self.told.epoch;
            }
            return false;
        }
        self.durable = self.seen;
        true
    }

    /// The server's machine loses power.
    fn lose_power(&mut self) {
        self.tell("the server's machine loses power");
        self.cut();
        self.is_up = false;
        for block in 0..BLOCKS {
            if self.dice.is_one_of(2) {
                self.durable[block] = self.seen[block];
            }
        }
        self.seen = self.durable;
        self.boot = self.random().0;
        self.kept = None;
        self.has_reason = true;
    }

    fn step(&mut self) {
        self.steps += 1;
        self.now_ns += SECOND;
        if self.steps > STEPS {
            self.is_attached = false;
            return;
        }
        self.answer_the_watchers_flush();
        match self.dice.below(20) {
            0..=5 => self.client_writes(),
            6..=7 if self.is_connected() => {
                self.tell("the filesystem flushes");
                if self.flush() {
                    for block in 0..BLOCKS {
                        assert_eq!(
                            self.durable[block], self.acknowledged[block],
                            "a flush succeeded and was none: {:#?}",
                            self.story
                        );
                    }
                } else {
                    // The flush failed and said so: the client gives the device up.
                    self.is_attached = false;
                }
            }
            8 if self.is_up => {
                self.tell("another client flushes");
                self.flush();
            }
            9..=10 if self.is_up => {
                self.tell("the server is killed");
                self.cut();
                self.is_up = false;
            }
            11 if self.is_up => {
                self.tell("the server ends");
                self.cut();
                if self.flush() {
                    self.note(true);
                    self.keep(true);
                }
                self.is_up = false;
            }
            12..=15 if !self.is_up => self.start(),
            // With the memory of a killed server goes what tells that the image was replaced.
            16 if !self.is_replaced => self.lose_power(),
            17 => {
                self.tell("the network fails or is back");
                self.cut();
                self.is_reachable = !self.is_reachable;
            }
            18 if !self.is_up => self.replace(),
            19 => {
                self.tell("the watcher is asked to stop");
                self.wants_stop = true;
            }
            _ => {}
        }
    }

    /// Another program writes while no server has the image open.
    fn replace(&mut self) {
        match self.nature {
            Nature::Device => {
                self.tell("the disk is unplugged and back");
                self.seen = self.durable;
                self.diskseq += 1;
                self.has_reason = true;
            }
            // After a power cut the time of the last write is unknown, so that would not be noticed.
            Nature::Image | Nature::SynchronousImage
                if self.kept.is_some() || self.noted.is_some_and(|noted| noted.ended.is_some()) =>
            {
                self.tell("a backup is copied into the image");
                self.seen = [0; BLOCKS];
                self.durable = [0; BLOCKS];
                self.times = (self.now_ns, self.now_ns);
                self.is_replaced = self.noted.is_none_or(|noted| noted.ended.is_none());
                self.has_reason = true;
            }
            _ => {}
        }
    }

    fn client_writes(&mut self) {
        if !self.is_connected() || self.pending.is_some() {
            return;
        }
        let block = self.dice.below(BLOCKS as u64) as usize;
        self.next_value += 1;
        let value = self.next_value;
        if self.dice.is_one_of(8) {
            self.tell("a write's answer is lost");
            if self.dice.is_one_of(2) {
                self.write(block, value);
            }
            self.pending = Some((block, value));
            return self.cut();
        }
        self.tell("a write");
        self.write(block, value);
        self.acknowledge(block, value);
    }

    fn acknowledge(&mut self, block: usize, value: u32) {
        self.acknowledged[block] = value;
        self.written += 8;
    }

    fn answer_the_watchers_flush(&mut self) {
        if self.flushing.is_none() {
            self.flushing = self.flushes.try_recv().ok();
        }
        if !self.is_connected() || self.dice.is_one_of(3) {
            return;
        }
        if let Some(at) = self.flushing.take() {
            self.tell("the watcher's flush");
            let flushed = if self.flush() {
                Ok(())
            } else {
                Err(FlushError::Failed(std::io::Error::from_raw_os_error(5)))
            };
            self.flushed.send((at, flushed)).expect("one at a time");
        }
    }

    /// The kernel resumes with a new connection.
    fn resume(&mut self) {
        self.tell("resumed");
        self.resumed += 1;
        for block in 0..BLOCKS {
            let is_there = self.seen[block] == self.acknowledged[block]
                || self.pending == Some((block, self.seen[block]));
            assert!(
                is_there,
                "block {block} has {} and should have {}: {:#?}",
                self.seen[block], self.acknowledged[block], self.story
            );
        }
        if let Some((block, value)) = self.pending.take() {
            self.write(block, value);
            self.acknowledge(block, value);
        }
    }

    fn offer(&self) -> Offer {
        Offer {
            style: Style::Fixed,
            size_bytes: BLOCKS as u64,
            flags: TransmissionFlags::HAS_FLAGS.with(TransmissionFlags::SEND_FLUSH),
            block_sizes: None,
            structured_replies: false,
            extended_headers: false,
            allocation: None,
            fenced: true,
            description: self.identity().map(|identity| identity.to_string()),
        }
    }
}

#[derive(Clone)]
struct Client {
    world: Rc<RefCell<World>>,
    tells: Rc<UnixStream>,
    stop: Arc<AtomicBool>,
}

impl Kernel for Client {
    fn reconnect(&mut self, _: BorrowedFd<'_>) -> Result<(), DriverError> {
        let mut world = self.world.borrow_mut();
        if world.is_connected() {
            world.resume();
        }
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), DriverError> {
        self.world.borrow_mut().is_attached = false;
        Ok(())
    }

    fn is_connected(&mut self) -> bool {
        self.world.borrow().is_attached
    }

    fn take_dead(&mut self) -> u32 {
        let mut world = self.world.borrow_mut();
        // The end of a connection is seen before the driver tells of it.
        let dead = std::mem::take(&mut world.dead);
        world.step();
        if std::mem::take(&mut world.wants_stop) {
            self.stop.store(true, Ordering::Relaxed);
        }
        dead
    }

    fn tells(&self) -> BorrowedFd<'_> {
        self.tells.as_fd()
    }

    fn counters(&mut self) -> Option<Counters> {
        let written = self.world.borrow().written;
        Counters::parse(&format!("0 0 0 0 0 0 {written} 0 0 0 0 0"))
    }
}

impl Server for Client {
    fn connect(&mut self, _: usize, _: &[usize]) -> Result<(Stream, Offer), String> {
        let mut world = self.world.borrow_mut();
        world.step();
        if !world.is_up || !world.is_reachable {
            return Err("nobody answers".into());
        }
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        world.peer = Some(theirs);
        let stream = Stream::connected(ours.into(), "pair".into());
        Ok((stream, world.offer()))
    }
}

/// One run. Gives how often the device was resumed, and whether it was given up.
fn run(seed: u64) -> (u32, bool) {
    let mut dice = Dice(seed);
    let natures = [Nature::Image, Nature::SynchronousImage, Nature::Device, Nature::Silent];
    let nature = natures[dice.below(4) as usize];
    let (begin, flushes) = sync_channel(1);
    let (flushed, ended) = sync_channel(1);
    let mut world = World {
        dice,
        nature,
        steps: 0,
        now_ns: 1000 * SECOND,
        seen: [0; BLOCKS],
        durable: [0; BLOCKS],
        boot: 1,
        diskseq: 1,
        times: (SECOND, SECOND),
        kept: None,
        noted: None,
        is_up: false,
        told: Told { epoch: Uuid(0), generation: 0 },
        is_broken: false,
        is_replaced: false,
        next_random: 1000,
        is_reachable: true,
        is_attached: true,
        peer: None,
        dead: 0,
        written: 0,
        acknowledged: [0; BLOCKS],
        next_value: 0,
        pending: None,
        wants_stop: false,
        flushes,
        flushing: None,
        flushed,
        has_reason: false,
        resumed: 0,
        story: Vec::new(),
    };
    world.start();
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    world.peer = Some(theirs);
    let appearance = Appearance::of(&world.offer());
    let (mut always, tells) = UnixStream::pair().expect("a pair of sockets");
    // Waits return at once in the simulation.
    std::io::Write::write_all(&mut always, b"x").expect("a byte");
    let stop = Arc::new(AtomicBool::new(false));
    let mut kernel = Client {
        world: Rc::new(RefCell::new(world)),
        tells: Rc::new(tells),
        stop: Arc::clone(&stop),
    };
    let mut server = kernel.clone();
    let world = Rc::clone(&kernel.world);
    let attached = Attached {
        name: "nbd0".into(),
        lines: vec![Stream::connected(ours.into(), "pair".into())],
        appearance,
        counters: Some(Counters::default()),
        read_only: false,
        vouched_for: false,
        fenced: true,
    };
    let (mut log, mut tell) = (|_: Urgency, _: &str| {}, |_: &AttachmentState| {});
    let leave: Leave = Arc::new(|| Err("it is mounted".into()));
    let mut watcher =
        Watcher::new(attached, &mut kernel, &mut server, &mut log, &mut tell, &stop, leave).at(
            Pace {
                first: Duration::ZERO,
                most: Duration::ZERO,
                look: Duration::ZERO,
                notice: Duration::from_millis(50),
            },
        );
    watcher.flusher = Some(Flusher { begin, ended });
    let end = watcher.run();
    let world = world.borrow();
    let is_given_up = matches!(end, End::GivenUp(_));
    // One that says who it is is never given up without a reason.
    assert!(
        !is_given_up || world.has_reason || nature == Nature::Silent,
        "seed {seed}: {end:?} for nothing: {:#?}",
        world.story
    );
    (world.resumed, is_given_up)
}

#[test]
#[allow(clippy::disallowed_methods)] // A longer run is asked for from outside.
fn whatever_goes_wrong_nothing_is_resumed_over_lost_writes() {
    let seeds = std::env::var("RUBUS_CHAOS_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(400);
    let (mut resumed, mut given_up) = (0, 0);
    for seed in 0..seeds {
        let ended = std::panic::catch_unwind(|| run(seed));
        let (times, was_given_up) = ended.unwrap_or_else(|_| panic!("seed {seed} fails"));
        resumed += u64::from(times);
        given_up += u64::from(was_given_up);
    }
    // A world in which nothing happens shows nothing.
    assert!(resumed > seeds / 2, "{resumed} resumed");
    assert!(given_up > seeds / 10, "{given_up} given up");
    assert!(given_up < seeds, "{given_up} given up");
}
