//! A rig in virtual time: a device of known behaviour, so that the truth is known and a whole
//! suite takes milliseconds.
//!
//! The real accounting of the workers is used, the real scheduler and the real stopping rule; only
//! the clock and the device are made up.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rubus_machine::parse::stat::CpuTimes;
use rubus_stats::Rng;
use rubus_vocabulary::spec::{Direction, FileStart};

use crate::completions::Completions;
use crate::mailbox::{Mailbox, WorkerEnd};
use crate::rig::{Choice, Rig, Running};
use crate::sample::Sample;
use crate::sim_shaped::ShapedRunning;
use crate::work::{Engine, Work};
use crate::worker::{Tally, WorkerOrder};
use rubus_host::process::schedstat::Account;

/// What a made-up device does.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// Nanoseconds that any read takes, and any write.
    pub(crate) base_ns: [f64; 2],
    /// Nanoseconds per byte on top, of reads and of writes.
    pub(crate) byte_ns: [f64; 2],
    /// Nanoseconds that a commit takes on top.
    pub(crate) commit_ns: f64,
    /// Share by which service times vary evenly to both sides.
    pub(crate) jitter: f64,
    /// Operations that it serves at the same time.
    pub(crate) servers: usize,
    /// Times in which it does nothing: start and length in nanoseconds.
    pub(crate) pauses: Vec<(u64, u64)>,
    /// After this many operations each fails.
    pub(crate) fails_after: Option<u64>,
    /// After this many operations none completes any more.
    pub(crate) hangs_after: Option<u64>,
    /// Nanoseconds of a flush.
    pub(crate) flush_ns: u64,
    /// A write cache, beyond which writes are slower.
    pub(crate) cache: Option<WriteCache>,
    /// Rests that writing brings about.
    pub(crate) hiccups: Option<Hiccups>,
    /// A speed that drifts.
    pub(crate) unrest: Option<Unrest>,
}

impl Device {
    /// Reads and writes at these operations per second, whatever their size, one at a time.
    pub(crate) fn of_iops(reads: f64, writes: f64) -> Self {
        Device {
            base_ns: [1e9 / reads, 1e9 / writes],
            byte_ns: [0.0, 0.0],
            commit_ns: 0.0,
            jitter: 0.1,
            servers: 1,
            pauses: Vec::new(),
            fails_after: None,
            hangs_after: None,
            flush_ns: 0,
            cache: None,
            hiccups: None,
            unrest: None,
        }
    }

    /// The same with at most these bytes per second.
    pub(crate) fn with_rates(mut self, read: f64, write: f64) -> Self {
        self.byte_ns = [1e9 / read, 1e9 / write];
        self
    }
}

/// What the device has to know of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) is_write: bool,
    pub(crate) is_commit: bool,
    pub(crate) bytes: u32,
}

/// A write cache that is emptied only while the device rests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteCache {
    /// Bytes that it takes.
    pub(crate) bytes: f64,
    /// Nanoseconds per byte of writes once it is full.
    pub(crate) byte_ns: f64,
    /// Bytes per second that it gets rid of in a rest of more than a second.
    pub(crate) empties: f64,
}

/// Now and then a write takes longer, since the device tidies up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hiccups {
    /// Mean number of bytes between two; random.
    pub(crate) every_bytes: f64,
    /// Mean length in nanoseconds; random.
    pub(crate) length_ns: f64,
}

/// Service times that drift around their mean: an Ornstein-Uhlenbeck process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrest {
    /// Standard deviation as a share of the mean.
    pub(crate) share: f64,
    /// Time in which the correlation falls to 1/e, in seconds.
    pub(crate) correlation_s: f64,
}

/// The device at work.
pub(crate) struct State {
    /// Jobs that have not ended.
    working: usize,
    pub(crate) device: Device,
    random: Rng,
    free_ns: Vec<u64>,
    served: u64,
    /// Bytes in the write cache.
    cached: f64,
    /// How far the service times are from their mean, in standard deviations, and since when.
    level: f64,
    level_ns: u64,
}

impl State {
    /// When an operation that is issued at `issued_ns` ends; never if it hangs.
    pub(crate) fn serve(&mut self, issued_ns: u64, kind: Kind) -> Result<u64, String> {
        self.served += 1;
        if self.device.fails_after.is_some_and(|most| self.served > most) {
            return Err("input/output error".into());
        }
        if self.device.hangs_after.is_some_and(|most| self.served > most) {
            return Ok(u64::MAX);
        }
        let side = usize::from(kind.is_write);
        let mut service_ns =
            self.device.base_ns[side] + self.device.byte_ns[side] * f64::from(kind.bytes);
        if let Some(cache) = self.device.cache.filter(|_| kind.is_write) {
            let last_ns = self.free_ns.iter().copied().max().unwrap_or(0);
            let rested_s = issued_ns.saturating_sub(last_ns) as f64 / 1e9;
            if rested_s > 1.0 {
                self.cached = (self.cached - cache.empties * rested_s).max(0.0);
            }
            if self.cached >= cache.bytes {
                service_ns = cache.byte_ns * f64::from(kind.bytes);
            } else {
                self.cached += f64::from(kind.bytes);
            }
        }
        if kind.is_commit {
            service_ns += self.device.commit_ns;
        }
        service_ns *= 1.0 + self.device.jitter * (2.0 * self.random.unit() - 1.0);
        if let Some(unrest) = self.device.unrest {
            service_ns *= self.level_at(issued_ns, unrest);
        }
        if let Some(hiccups) = self.device.hiccups.filter(|_| kind.is_write) {
            if self.random.unit() < f64::from(kind.bytes) / hiccups.every_bytes {
                service_ns += hiccups.length_ns * self.random.exponential();
            }
        }
        let server = self.free_ns.iter_mut().min_by_key(|free_ns| **free_ns);
        let free_ns = server.expect("a device has a server");
        let mut start_ns = issued_ns.max(*free_ns);
        let mut end_ns = start_ns + service_ns as u64;
        for &(pause_ns, length_ns) in &self.device.pauses {
            if start_ns < pause_ns + length_ns && end_ns > pause_ns {
                start_ns = start_ns.max(pause_ns + length_ns);
                end_ns = start_ns + service_ns as u64;
            }
        }
        *free_ns = end_ns;
        Ok(end_ns)
    }
}

impl State {
    /// By what service times are longer than their mean at `now_ns`.
    fn level_at(&mut self, now_ns: u64, unrest: Unrest) -> f64 {
        let passed_s = now_ns.saturating_sub(self.level_ns) as f64 / 1e9;
        if passed_s > 0.0 {
            let kept = (-passed_s / unrest.correlation_s).exp();
            let fresh = (1.0 - kept * kept).sqrt();
            self.level = self.level * kept + fresh * self.random.normal();
            self.level_ns = now_ns;
        }
        (1.0 + unrest.share * self.level).max(0.1)
    }
}

/// The made-up world.
pub(crate) struct SimRig {
    clock_ns: Rc<Cell<u64>>,
    state: Rc<RefCell<State>>,
    samples: Vec<Sample>,
    /// What happens by itself at a moment: the user stops the program.
    alarm: Option<(u64, Box<dyn Fn()>)>,
}

impl SimRig {
    /// A world with one device, at the beginning of its time.
    pub(crate) fn new(device: Device) -> Self {
        SimRig::seeded(device, 1)
    }

    /// The same with other chances.
    pub(crate) fn seeded(device: Device, seed: u64) -> Self {
        let servers = device.servers;
        SimRig {
            clock_ns: Rc::new(Cell::new(0)),
            state: Rc::new(RefCell::new(State {
                working: 0,
                device,
                random: Rng::from_seed(seed),
                free_ns: vec![0; servers],
                served: 0,
                cached: 0.0,
                level: 0.0,
                level_ns: 0,
            })),
            samples: Vec::new(),
            alarm: None,
        }
    }

    /// Another device in the same time.
    pub(crate) fn beside(&self, device: Device) -> Self {
        SimRig { clock_ns: Rc::clone(&self.clock_ns), ..SimRig::new(device) }
    }

    /// Calls `ring` once the clock has reached `at_ns`.
    pub(crate) fn at(mut self, at_ns: u64, ring: impl Fn() + 'static) -> Self {
        self.alarm = Some((at_ns, Box::new(ring)));
        self
    }
}

impl Rig for SimRig {
    fn now_ns(&self) -> u64 {
        let now_ns = self.clock_ns.get();
        if let Some((at_ns, ring)) = &self.alarm {
            if now_ns >= *at_ns {
                ring();
            }
        }
        now_ns
    }

    fn start(&mut self, work: &Work) -> Result<Box<dyn Running>, String> {
        let origin_ns = self.clock_ns.get() + work.delay_ns;
        if let Some(general) = &work.general {
            let state = Rc::clone(&self.state);
            let clock_ns = Rc::clone(&self.clock_ns);
            let running = ShapedRunning::new(clock_ns, state, work, general, origin_ns);
            return Ok(Box::new(running));
        }
        let order = WorkerOrder {
            origin_ns,
            began_ns: origin_ns,
            max_operations: work.max_operations,
            block_bytes: work.block_bytes,
            warm_up_ns: work.warm_up_ns,
            warm_up_operations: work.warm_up_operations,
        };
        let mailbox = Arc::new(Mailbox::default());
        self.state.borrow_mut().working += 1;
        let mut running = SimRunning {
            clock_ns: Rc::clone(&self.clock_ns),
            state: Rc::clone(&self.state),
            work: work.clone(),
            tally: Some(Tally::new(Arc::clone(&mailbox), order, Account::of_nobody())),
            mailboxes: [mailbox],
            completions: [Completions::new(origin_ns, 1)],
            in_flight: Vec::new(),
            issued: 0,
        };
        let depth = u64::from(work.queue_depth).min(work.max_operations);
        for _ in 0..depth {
            running.issue(origin_ns);
        }
        Ok(Box::new(running))
    }

    fn flush(
        &mut self,
        _: &Work,
        _: Duration,
        _: &AtomicBool,
        _: &mut dyn FnMut(u64),
    ) -> Result<Option<u64>, String> {
        let flush_ns = self.state.borrow().device.flush_ns;
        self.clock_ns.set(self.clock_ns.get() + flush_ns);
        Ok(Some(flush_ns))
    }

    fn choose_engine(&mut self, work: &Work, _: u32) -> Choice {
        Choice {
            engine: if work.queue_depth == 1 {
                Engine::Positional
            } else {
                Engine::Ring { lanes: 1, polled: false }
            },
            doubt: None,
            bytes_written: 0,
        }
    }

    fn settle(&mut self, _: &Work) {}

    fn cached_share(&mut self, _: &Work) -> Option<f64> {
        None
    }

    fn set_direct(&mut self, _: &Work, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn rest(&mut self, seconds: f64, _: &AtomicBool) -> bool {
        let now_ns = self.clock_ns.get();
        self.clock_ns.set(now_ns + (seconds * 1e9) as u64);
        true
    }

    fn reopen(&mut self, _: &OwnedFd, _: bool) -> Option<OwnedFd> {
        None
    }

    fn extend(&mut self, _: &OwnedFd, _: u64, _: FileStart) -> Result<(), String> {
        Ok(())
    }

    fn empty(&mut self, _: &OwnedFd) -> Result<(), String> {
        Ok(())
    }

    fn sample(&mut self) -> Sample {
        // One core, idle all the time.
        let cpu = CpuTimes { idle: self.clock_ns.get() / 10_000_000, ..CpuTimes::default() };
        let sample =
            Sample { at_ns: self.clock_ns.get(), cpus: vec![cpu, cpu], ..Sample::default() };
        self.samples.push(sample.clone());
        sample
    }

    fn samples(&mut self, from_ns: u64, to_ns: u64) -> Vec<Sample> {
        self.samples.retain(|sample| sample.at_ns >= from_ns);
        let until = self.samples.iter().filter(|sample| sample.at_ns <= to_ns);
        until.cloned().collect()
    }
}

/// One operation on its way.
struct InFlight {
    issued_ns: u64,
    ends: Result<u64, String>,
}

impl InFlight {
    fn ends_ns(&self) -> u64 {
        // A failure is seen at once.
        self.ends.as_ref().map_or(self.issued_ns, |&ends_ns| ends_ns)
    }
}

struct SimRunning {
    clock_ns: Rc<Cell<u64>>,
    state: Rc<RefCell<State>>,
    work: Work,
    tally: Option<Tally>,
    mailboxes: [Arc<Mailbox>; 1],
    completions: [Completions; 1],
    in_flight: Vec<InFlight>,
    issued: u64,
}

/// Of jobs that run beside one another the first is so far ahead of the others at most: what they ask the device for
/// meanwhile comes behind what the first has asked for.
const TOGETHER: Duration = Duration::from_millis(1);

impl SimRunning {
    fn is_alone(&self) -> bool {
        self.state.borrow().working <= 1
    }

    fn finish(&self, tally: Tally, end: WorkerEnd) {
        tally.finish(end);
        self.state.borrow_mut().working -= 1;
    }

    fn issue(&mut self, now_ns: u64) {
        let kind = Kind {
            is_write: self.work.direction == Direction::Write,
            is_commit: self.work.is_commit(),
            bytes: self.work.block_bytes,
        };
        let ends = self.state.borrow_mut().serve(now_ns, kind);
        self.issued += 1;
        self.in_flight.push(InFlight { issued_ns: now_ns, ends });
    }

    /// Completes the next operation if it ends by `until_ns`; gives when, or nothing.
    fn step(&mut self, until_ns: u64) -> Option<u64> {
        let next = self.in_flight.iter().enumerate();
        let (index, ends_ns) = next.map(|(i, op)| (i, op.ends_ns())).min_by_key(|op| op.1)?;
        if ends_ns > until_ns {
            return None;
        }
        let operation = self.in_flight.swap_remove(index);
        let mut tally = self.tally.take()?;
        if let Err(error) = operation.ends {
            self.finish(tally, WorkerEnd::Failed(error));
            return Some(ends_ns);
        }
        let go_on = if self.work.queue_depth == 1 {
            !tally.one(ends_ns) || tally.turn_one()
        } else {
            if tally.latency(ends_ns - operation.issued_ns) {
                tally.look_at(operation.issued_ns, ends_ns);
            }
            !tally.group(ends_ns, 1) || tally.turn(1)
        };
        if go_on {
            if self.issued < self.work.max_operations {
                self.issue(ends_ns);
            }
            self.tally = Some(tally);
        } else {
            let end = tally.why_over();
            self.finish(tally, end);
        }
        Some(ends_ns)
    }
}

impl Running for SimRunning {
    fn poll(&mut self, most: Duration) -> bool {
        let now_ns = self.clock_ns.get();
        let most = if self.is_alone() { most } else { most.min(TOGETHER) };
        let until_ns = now_ns + most.as_nanos() as u64;
        let mut reached_ns = now_ns;
        while self.tally.is_some() {
            match self.step(until_ns) {
                Some(ended_ns) => reached_ns = reached_ns.max(ended_ns),
                None => reached_ns = until_ns,
            }
            if reached_ns >= until_ns {
                break;
            }
        }
        self.clock_ns.set(reached_ns.max(now_ns));
        self.completions[0].gather(&self.mailboxes);
        self.completions[0].all_ended()
    }

    fn stop(&mut self) {
        self.mailboxes[0].stop();
    }

    fn completions(&self) -> &[Completions] {
        &self.completions
    }

    fn completions_mut(&mut self) -> &mut [Completions] {
        &mut self.completions
    }
}
