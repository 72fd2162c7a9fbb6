//! A shaped job in virtual time: the real scripts and ledgers on a made-up device.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::completions::Completions;
use crate::general::{General, Ledger, Operation, READS, Script, Step, WRITES};
use crate::mailbox::{Mailbox, WorkerEnd};
use crate::rig::Running;
use crate::sim::{Kind, State};
use crate::work::Work;
use crate::worker::{Tally, WorkerOrder};
use rubus_host::process::schedstat::Account;

/// The copies of a shaped job, each in a worker of its own.
pub(crate) struct ShapedRunning {
    clock_ns: Rc<Cell<u64>>,
    workers: Vec<Worker>,
    accounts: Vec<Vec<Arc<Mailbox>>>,
    completions: Vec<Completions>,
}

struct Worker {
    state: Rc<RefCell<State>>,
    script: Script,
    ledger: Option<Ledger>,
    origin_ns: u64,
    depth: usize,
    next: Option<Operation>,
    is_over: bool,
    in_flight: Vec<Flying>,
    before_flush: Option<Flying>,
}

#[derive(Clone, Copy)]
struct Flying {
    operation: Operation,
    began_ns: u64,
    ends_ns: u64,
    is_flushed: bool,
}

impl ShapedRunning {
    /// The work on a device; it begins at `origin_ns`.
    pub(crate) fn new(
        clock_ns: Rc<Cell<u64>>,
        state: Rc<RefCell<State>>,
        work: &Work,
        general: &General,
        origin_ns: u64,
    ) -> Self {
        let sides: Vec<usize> = [READS, WRITES].into_iter().filter(|&s| general.has(s)).collect();
        let mut accounts: Vec<Vec<Arc<Mailbox>>> = vec![Vec::new(); sides.len()];
        let worker = |copy: &crate::general::Copy| {
            let mut tallies = [None, None];
            for (&side, mailboxes) in sides.iter().zip(&mut accounts) {
                let mailbox = Arc::new(Mailbox::default());
                mailboxes.push(Arc::clone(&mailbox));
                let order = WorkerOrder {
                    origin_ns,
                    began_ns: origin_ns,
                    max_operations: u64::MAX,
                    block_bytes: 0,
                    warm_up_ns: work.warm_up_ns,
                    warm_up_operations: general.warm_up_operations(side, work.workers()),
                };
                tallies[side] = Some(Tally::new(mailbox, order, Account::of_nobody()));
            }
            Worker {
                state: Rc::clone(&state),
                script: copy.script(),
                ledger: Some(Ledger::new(tallies, work.queue_depth == 1, origin_ns)),
                origin_ns,
                depth: work.queue_depth as usize,
                next: None,
                is_over: false,
                in_flight: Vec::new(),
                before_flush: None,
            }
        };
        let workers: Vec<Worker> = general.copies.iter().map(worker).collect();
        let completions = |mailboxes: &Vec<_>| Completions::new(origin_ns, mailboxes.len());
        ShapedRunning {
            clock_ns,
            workers,
            completions: accounts.iter().map(completions).collect(),
            accounts,
        }
    }
}

impl Worker {
    /// Issues what is due.
    fn issue(&mut self, now_ns: u64) -> Result<(), String> {
        let Some(ledger) = &mut self.ledger else {
            return Ok(());
        };
        while !ledger.is_stopped() && !self.is_over && self.in_flight.len() < self.depth {
            let held = usize::from(self.before_flush.is_some());
            let in_flight = (self.in_flight.len() + held) as u32;
            let operation = match self.next.take() {
                Some(operation) => operation,
                None => match self.script.next(now_ns - self.origin_ns, in_flight) {
                    Step::Do(operation) => operation,
                    Step::Drain => break,
                    Step::Over => {
                        self.is_over = true;
                        break;
                    }
                },
            };
            let due_ns = self.origin_ns + operation.due_ns;
            if due_ns > now_ns {
                ledger.rest(now_ns, due_ns);
                self.next = Some(operation);
                break;
            }
            if in_flight == 0 {
                ledger.busy_from(now_ns);
            }
            let kind = Kind {
                is_write: operation.is_write,
                is_commit: operation.flush.is_some_and(|flush| !flush.alone),
                bytes: operation.bytes,
            };
            let ends_ns = self.state.borrow_mut().serve(now_ns, kind)?;
            self.in_flight.push(Flying { operation, began_ns: now_ns, ends_ns, is_flushed: false });
        }
        Ok(())
    }

    /// When something happens next.
    fn next_ns(&self) -> Option<u64> {
        let ends = self.in_flight.iter().map(|flying| flying.ends_ns).min();
        let due = self.next.map(|operation| self.origin_ns + operation.due_ns);
        let due = due.filter(|_| self.in_flight.len() < self.depth);
        match (ends, due) {
            (Some(ends), Some(due)) => Some(ends.min(due)),
            (ends, due) => ends.or(due),
        }
    }

    /// Completes what ends at `now_ns`.
    fn complete(&mut self, now_ns: u64) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let (ended, left) = self.in_flight.iter().partition(|flying| flying.ends_ns <= now_ns);
        let ended: Vec<Flying> = ended;
        self.in_flight = left;
        for flying in ended {
            let waits = flying.operation.flush.is_some_and(|flush| flush.alone);
            if waits && !flying.is_flushed {
                self.before_flush = Some(flying);
                continue;
            }
            ledger.done(&flying.operation, flying.began_ns, now_ns);
        }
        ledger.close(now_ns);
        if let Some(flying) = self.before_flush.take_if(|_| self.in_flight.is_empty()) {
            self.in_flight.push(Flying {
                ends_ns: now_ns + self.state.borrow().device.flush_ns.max(1),
                is_flushed: true,
                ..flying
            });
        }
    }

    /// Ends the worker when there is nothing left to do.
    fn end_if_done(&mut self) {
        let is_stopped = self.ledger.as_ref().is_some_and(Ledger::is_stopped);
        let is_idle = self.in_flight.is_empty();
        let end = match (is_idle, is_stopped, self.is_over && self.next.is_none()) {
            (true, true, _) => WorkerEnd::Stopped,
            (true, false, true) => WorkerEnd::Spent,
            _ => return,
        };
        if let Some(ledger) = self.ledger.take() {
            ledger.finish(&end);
        }
    }

    fn step(&mut self, now_ns: u64) {
        self.complete(now_ns);
        if let Err(error) = self.issue(now_ns) {
            if let Some(ledger) = self.ledger.take() {
                ledger.finish(&WorkerEnd::Failed(error));
            }
        }
        self.end_if_done();
    }
}

impl Running for ShapedRunning {
    fn poll(&mut self, most: Duration) -> bool {
        let now_ns = self.clock_ns.get();
        let until_ns = now_ns + most.as_nanos() as u64;
        for worker in self.workers.iter_mut().filter(|worker| worker.origin_ns <= until_ns) {
            worker.step(now_ns.max(worker.origin_ns));
        }
        let mut reached_ns = now_ns;
        loop {
            let running = self.workers.iter_mut().filter(|worker| worker.ledger.is_some());
            let next = running.min_by_key(|worker| worker.next_ns().unwrap_or(u64::MAX));
            let Some(worker) = next else { break };
            match worker.next_ns() {
                Some(next_ns) if next_ns <= until_ns => {
                    reached_ns = reached_ns.max(next_ns);
                    worker.step(next_ns);
                }
                _ => {
                    reached_ns = until_ns;
                    break;
                }
            }
        }
        self.clock_ns.set(reached_ns);
        for (completions, mailboxes) in self.completions.iter_mut().zip(&self.accounts) {
            completions.gather(mailboxes);
        }
        self.completions.iter().all(Completions::all_ended)
    }

    fn stop(&mut self) {
        for mailbox in self.accounts.iter().flatten() {
            mailbox.stop();
        }
    }

    fn completions(&self) -> &[Completions] {
        &self.completions
    }

    fn completions_mut(&mut self) -> &mut [Completions] {
        &mut self.completions
    }
}
