//! A rig in virtual time: a device of known behaviour, so that the truth is known and a whole
//! suite takes milliseconds.
//!
//! The real accounting of the lanes is used, the real conductor and the real stopping rule; only
//! the clock and the device are made up.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rubus_core::spec::Direction;
use rubus_core::stats::Rng;

use crate::harvest::Harvest;
use crate::lane::{LaneEnd, LaneOrder, Mailbox, Tally};
use crate::rig::{Choice, Rig, Running};
use crate::schedstat::Account;
use crate::watch::{CpuTimes, Sample};
use crate::work::{Engine, Work};

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
    /// After so many operations each fails.
    pub(crate) fails_after: Option<u64>,
    /// After so many operations none ends any more.
    pub(crate) hangs_after: Option<u64>,
    /// Nanoseconds of a flush.
    pub(crate) flush_ns: u64,
}

impl Device {
    /// Reads and writes of so many operations per second, whatever their size, one at a time.
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
        }
    }

    /// The same with at most so many bytes per second.
    pub(crate) fn with_rates(mut self, read: f64, write: f64) -> Self {
        self.byte_ns = [1e9 / read, 1e9 / write];
        self
    }
}

/// The device at work.
struct State {
    device: Device,
    random: Rng,
    free_ns: Vec<u64>,
    served: u64,
}

impl State {
    /// When an operation that is issued at `issued_ns` ends; never if it hangs.
    fn serve(&mut self, issued_ns: u64, work: &Work) -> Result<u64, String> {
        self.served += 1;
        if self
            .device
            .fails_after
            .is_some_and(|most| self.served > most)
        {
            return Err("input/output error".into());
        }
        if self
            .device
            .hangs_after
            .is_some_and(|most| self.served > most)
        {
            return Ok(u64::MAX);
        }
        let side = usize::from(work.direction == Direction::Write);
        let mut service_ns =
            self.device.base_ns[side] + self.device.byte_ns[side] * f64::from(work.block_bytes);
        if work.is_commit() {
            service_ns += self.device.commit_ns;
        }
        service_ns *= 1.0 + self.device.jitter * (2.0 * self.random.unit() - 1.0);
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
        let servers = device.servers;
        SimRig {
            clock_ns: Rc::new(Cell::new(0)),
            state: Rc::new(RefCell::new(State {
                device,
                random: Rng::from_seed(1),
                free_ns: vec![0; servers],
                served: 0,
            })),
            samples: Vec::new(),
            alarm: None,
        }
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
        let origin_ns = self.clock_ns.get();
        let order = LaneOrder {
            origin_ns,
            began_ns: origin_ns,
            most_operations: work.most_operations,
            warm_up_ns: work.warm_up_ns,
            warm_up_operations: work.warm_up_operations,
        };
        let mailbox = Arc::new(Mailbox::default());
        let mut running = SimRunning {
            clock_ns: Rc::clone(&self.clock_ns),
            state: Rc::clone(&self.state),
            work: work.clone(),
            tally: Some(Tally::new(
                Arc::clone(&mailbox),
                order,
                Account::of_nobody(),
            )),
            mailboxes: [mailbox],
            harvest: Harvest::new(origin_ns, 1),
            in_flight: Vec::new(),
            issued: 0,
        };
        let depth = u64::from(work.queue_depth).min(work.most_operations);
        for _ in 0..depth {
            running.issue(origin_ns);
        }
        Ok(Box::new(running))
    }

    fn flush(&mut self, _: &Work, _: Duration, _: &AtomicBool) -> Result<Option<u64>, String> {
        let flush_ns = self.state.borrow().device.flush_ns;
        self.clock_ns.set(self.clock_ns.get() + flush_ns);
        Ok(Some(flush_ns))
    }

    fn choose_engine(&mut self, work: &Work, _: u32) -> Choice {
        Choice {
            engine: if work.queue_depth == 1 {
                Engine::Positional
            } else {
                Engine::Ring
            },
            doubt: None,
            bytes_written: 0,
        }
    }

    fn settle(&mut self, _: &Work) {}

    fn cached_share(&mut self, _: &Work) -> Option<f64> {
        None
    }

    fn sample(&mut self) -> Sample {
        // One core, idle all the time.
        let cpu = CpuTimes {
            idle: self.clock_ns.get() / 10_000_000,
            ..CpuTimes::default()
        };
        let sample = Sample {
            at_ns: self.clock_ns.get(),
            cpus: vec![cpu, cpu],
            ..Sample::default()
        };
        self.samples.push(sample.clone());
        sample
    }

    fn samples(&mut self) -> Vec<Sample> {
        self.samples.clone()
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
        self.ends
            .as_ref()
            .map_or(self.issued_ns, |&ends_ns| ends_ns)
    }
}

struct SimRunning {
    clock_ns: Rc<Cell<u64>>,
    state: Rc<RefCell<State>>,
    work: Work,
    tally: Option<Tally>,
    mailboxes: [Arc<Mailbox>; 1],
    harvest: Harvest,
    in_flight: Vec<InFlight>,
    issued: u64,
}

impl SimRunning {
    fn issue(&mut self, now_ns: u64) {
        let ends = self.state.borrow_mut().serve(now_ns, &self.work);
        self.issued += 1;
        self.in_flight.push(InFlight {
            issued_ns: now_ns,
            ends,
        });
    }

    /// Completes the next operation if it ends by `until_ns`; gives when, or nothing.
    fn step(&mut self, until_ns: u64) -> Option<u64> {
        let next = self.in_flight.iter().enumerate();
        let (index, ends_ns) = next
            .map(|(i, op)| (i, op.ends_ns()))
            .min_by_key(|op| op.1)?;
        if ends_ns > until_ns {
            return None;
        }
        let operation = self.in_flight.swap_remove(index);
        let mut tally = self.tally.take()?;
        if let Err(error) = operation.ends {
            tally.finish(LaneEnd::Failed(error));
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
            if self.issued < self.work.most_operations {
                self.issue(ends_ns);
            }
            self.tally = Some(tally);
        } else {
            let end = tally.why_over();
            tally.finish(end);
        }
        Some(ends_ns)
    }
}

impl Running for SimRunning {
    fn poll(&mut self, most: Duration) -> bool {
        let now_ns = self.clock_ns.get();
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
        self.harvest.gather(&self.mailboxes);
        self.harvest.all_ended()
    }

    fn stop(&mut self) {
        self.mailboxes[0].stop();
    }

    fn harvest(&self) -> &Harvest {
        &self.harvest
    }
}
