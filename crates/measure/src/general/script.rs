//! The script of a shaped job: which operation comes next, where, how long, and not before when.
//!
//! Pure and repeatable: the same plan gives the same operations in the same order, however fast the
//! target is and however many operations are in flight. Only the times depend on the clock, which
//! comes as an argument. Each kind of choice has a stream of random numbers of its own.

use rubus_stats::Rng;
use rubus_vocabulary::spec::{FileOrder, Limit};
use rubus_vocabulary::spread::{Permutation, Spread};

use super::plan::{Plan, READS, WRITES};

/// The streams of random numbers, by what they decide.
mod stream {
    pub(super) const KIND: u64 = 0;
    pub(super) const LENGTH: u64 = 1;
    pub(super) const PLACE: u64 = 2;
    pub(super) const FILE: u64 = 3;
    pub(super) const TIME: u64 = 4;
    pub(super) const ORDER: u64 = 5;
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// This operation, not before its time.
    Do(Operation),
    /// First everything that is under way has to end; then ask again.
    Drain,
    /// The script has ended.
    Over,
}

/// One operation. Times are nanoseconds from the start of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Its number, from 0.
    pub(crate) number: u64,
    /// Write or read.
    pub(crate) is_write: bool,
    /// On which of the job's files.
    pub(crate) file: u32,
    /// Where in the file, in bytes.
    pub(crate) offset: u64,
    /// How many bytes.
    pub(crate) bytes: u32,
    /// Not to be issued before.
    pub(crate) due_ns: u64,
    /// When a rate limit had it due, whatever happened before it; absent where none limits it.
    pub(crate) scheduled_ns: Option<u64>,
    /// Of the time until then, so much is spent computing.
    pub(crate) spin_ns: u64,
    /// What makes it durable; it ends when that ends.
    pub(crate) flush: Option<Flush>,
    /// What of its file the page cache is to drop before.
    pub(crate) drops: Option<Stretch>,
}

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A flush after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    /// `fsync` instead of `fdatasync`.
    pub(crate) metadata_too: bool,
    /// Everything else under way has to end before.
    pub(crate) alone: bool,
}

/// Yields the operations of one plan.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    plan: Plan,
    kinds: Rng,
    lengths: Rng,
    places: Rng,
    order: Rng,
    times: Rng,
    spreads: [Spread; 2],
    parts: Vec<Part>,
    part: usize,
    /// Operations that are still to come on the current part.
    turn_left: u32,
    number: u64,
    bytes: u64,
    writes: u64,
    paces: [Pace; 2],
    /// Operations since the last pause.
    since_pause: u32,
    pause_due: bool,
    flush_under_way: bool,
    /// Reads back the writes of this many operations and does nothing else.
    replays: Option<u64>,
    /// Nothing before this time, after a pause.
    floor_ns: u64,
    /// When the last operation was due.
    scheduled_ns: u64,
    spin_ns: u64,
}

/// How far one part of the region has been visited, by reads and by writes.
#[derive(Clone, Debug, Default)]
struct Part {
    follow: [Option<u64>; 2],
    run_left: [u32; 2],
    /// Random visits so far, and the order of those of the current round.
    visits: [u64; 2],
    orders: [Option<(u64, Permutation)>; 2],
    bytes: u64,
}

/// The operations of one direction in time.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    operations: u64,
    bytes: u64,
    /// Sum of the random distances so far, in nanoseconds.
    poisson_ns: f64,
}

impl Script {
    /// The script of a plan, at its beginning.
    pub(crate) fn new(plan: Plan) -> Self {
        let random = |number| Rng::stream(plan.seed, number);
        let spread = |side: usize| {
            let seed = random(stream::ORDER).next_u64();
            Spread::new(plan.blocks(side), plan.distribution, &plan.zones, seed)
        };
        Script {
            kinds: random(stream::KIND),
            lengths: random(stream::LENGTH),
            places: random(stream::PLACE),
            order: random(stream::FILE),
            times: random(stream::TIME),
            spreads: [spread(READS), spread(WRITES)],
            parts: vec![Part::default(); plan.parts as usize * plan.files as usize],
            part: 0,
            turn_left: 0,
            number: 0,
            bytes: 0,
            writes: 0,
            paces: [Pace::default(); 2],
            since_pause: 0,
            pause_due: false,
            flush_under_way: false,
            replays: None,
            floor_ns: 0,
            scheduled_ns: 0,
            spin_ns: 0,
            plan,
        }
    }

    /// A script that reads back what the first `operations` of the plan's script have written, in the
    /// same order and as fast as it can.
    pub(crate) fn replay(plan: Plan, operations: u64) -> Self {
        let mut script = Script::new(plan);
        script.replays = Some(operations);
        script
    }

    /// The next step, when `in_flight` of the operations so far have not ended at `now_ns`.
    pub(crate) fn next(&mut self, now_ns: u64, in_flight: u32) -> Step {
        match self.replays {
            Some(operations) => self.next_replayed(operations),
            None => self.next_of_plan(now_ns, in_flight),
        }
    }

    fn next_replayed(&mut self, operations: u64) -> Step {
        while self.number < operations {
            match self.next_of_plan(0, 0) {
                Step::Do(operation) if !operation.is_write => {}
                Step::Do(operation) => {
                    return Step::Do(Operation {
                        is_write: false,
                        due_ns: 0,
                        scheduled_ns: None,
                        spin_ns: 0,
                        flush: None,
                        drops: None,
                        ..operation
                    });
                }
                step => return step,
            }
        }
        Step::Over
    }

    fn next_of_plan(&mut self, now_ns: u64, in_flight: u32) -> Step {
        if (self.pause_due || self.flush_under_way) && in_flight > 0 {
            return Step::Drain;
        }
        self.flush_under_way = false;
        let Some((side, part, bytes)) = self.choose(now_ns) else {
            return Step::Over;
        };
        if let (true, Some(think)) = (self.pause_due, self.plan.think) {
            self.floor_ns = now_ns.saturating_add(think.microseconds.saturating_mul(1000));
            self.spin_ns = think.spin_microseconds.saturating_mul(1000);
        }
        self.pause_due = false;
        let place = self.place(side, part, bytes);
        let by_limit_ns = self.due_ns(side, place.bytes).max(self.floor_ns);
        // The other kind of a mix may be held up by a stricter limit: nothing is due before what comes before it.
        self.scheduled_ns = self.scheduled_ns.max(by_limit_ns);
        let files_part = part as u64 % u64::from(self.plan.parts);
        let begin = self.plan.start + files_part * self.plan.part_bytes;
        let whole_part = Stretch { offset: begin, bytes: self.plan.part_bytes };
        let operation = Operation {
            number: self.number,
            is_write: side == WRITES,
            file: (part / self.plan.parts as usize) as u32,
            offset: begin + place.offset,
            bytes: place.bytes,
            due_ns: by_limit_ns,
            scheduled_ns: self.plan.limits[side].is_any().then_some(self.scheduled_ns),
            spin_ns: std::mem::take(&mut self.spin_ns),
            flush: self.flush_after(side),
            drops: (self.plan.drops_cache && place.begins_again).then_some(whole_part),
        };
        self.book(part, &operation);
        Step::Do(operation)
    }

    /// Operations that have been handed out.
    pub(crate) fn handed_out(&self) -> u64 {
        self.number
    }

    /// Direction, part and length of the next operation; nothing when the budget is spent.
    fn choose(&mut self, now_ns: u64) -> Option<(usize, usize, u32)> {
        if self.number >= self.plan.max_operations {
            return None;
        }
        let side = match self.plan.read_percent {
            0 => WRITES,
            100 => READS,
            percent => {
                let drawn = usize::from(self.kinds.below(100) >= u64::from(percent));
                self.due_side(drawn, now_ns)
            }
        };
        let bytes = self.plan.lengths[side].draw(&mut self.lengths);
        let room = self.plan.max_bytes.saturating_sub(self.bytes);
        let bytes = match self.plan.lengths[side].fit(bytes, room) {
            Some(bytes) => bytes,
            // At least one operation, whatever the budget.
            None if self.number == 0 => bytes,
            None => return None,
        };
        Some((side, self.choose_part(), bytes))
    }

    /// The direction of the next operation of a mix with rates, as in fio: the drawn one if it is due, else
    /// the other if that is due, else the one that is due sooner. So the rates say how many of each there
    /// are as far as the target keeps up, and the share of the reads beyond.
    fn due_side(&self, drawn: usize, now_ns: u64) -> usize {
        if self.plan.is_replayed || !self.plan.limits.iter().any(Limit::is_any) {
            return drawn;
        }
        let other = WRITES - drawn;
        let (due_ns, other_ns) = (self.next_due_ns(drawn), self.next_due_ns(other));
        let is_drawn = due_ns <= now_ns as f64 || due_ns <= other_ns;
        if is_drawn { drawn } else { other }
    }

    /// When the next operation of this direction is due by its limits, in nanoseconds.
    fn next_due_ns(&self, side: usize) -> f64 {
        let (limit, pace) = (self.plan.limits[side], self.paces[side]);
        if self.plan.poisson {
            return pace.poisson_ns;
        }
        let by_operations_s = seconds_of(pace.operations as f64, limit.iops);
        by_operations_s.max(seconds_of(pace.bytes as f64, limit.bytes_per_second)) * 1e9
    }

    fn choose_part(&mut self) -> usize {
        let parts = self.parts.len();
        if parts == 1 {
            return 0;
        }
        match self.plan.order {
            FileOrder::Sequential => {
                if self.parts[self.part].bytes >= self.plan.covering_part_bytes() {
                    self.parts[self.part].bytes = 0;
                    self.part = (self.part + 1) % parts;
                }
                return self.part;
            }
            _ if self.turn_left > 0 => {}
            FileOrder::RoundRobin if self.number == 0 => {}
            FileOrder::RoundRobin => self.part = (self.part + 1) % parts,
            FileOrder::Random => self.part = self.order.below(parts as u64) as usize,
        }
        if self.turn_left == 0 {
            self.turn_left = self.plan.turn;
        }
        self.turn_left -= 1;
        self.part
    }

    /// Where in its part an operation of that length goes; it is made shorter at the end of the part.
    fn place(&mut self, side: usize, part: usize, bytes: u32) -> Place {
        let (offset, begins_again) = if self.plan.appends {
            (self.bytes, false)
        } else if self.is_random(side, part) {
            self.random_offset(side, part)
        } else {
            self.following_offset(side, part, bytes)
        };
        if self.plan.appends {
            return Place { offset, bytes, begins_again };
        }
        let room = self.plan.part_bytes - offset;
        let lengths = &self.plan.lengths[side];
        let bytes = lengths.fit(bytes, room).unwrap_or_else(|| lengths.least());
        let after = i128::from(offset) + i128::from(bytes) + i128::from(self.plan.stride);
        self.parts[part].follow[side] = u64::try_from(after).ok();
        Place { offset, bytes, begins_again }
    }

    fn is_random(&mut self, side: usize, part: usize) -> bool {
        let percent = u64::from(self.plan.random_percent[side]);
        if percent == 0 {
            return false;
        }
        let run_left = &mut self.parts[part].run_left[side];
        if *run_left > 0 {
            *run_left -= 1;
            return false;
        }
        let random = percent == 100 || self.places.below(100) < percent;
        if random {
            *run_left = self.plan.run_length - 1;
        }
        random
    }

    /// Where a random operation begins, and whether all blocks were visited before it.
    fn random_offset(&mut self, side: usize, part: usize) -> (u64, bool) {
        let align = self.plan.align[side];
        if !self.plan.visits_every_block() {
            return (self.spreads[side].draw(&mut self.places) * align, false);
        }
        // Reads and writes visit the blocks together where their blocks are the same.
        let shared = self.plan.align[READS] == self.plan.align[WRITES]
            && self.plan.blocks(READS) == self.plan.blocks(WRITES);
        let slot = if shared { READS } else { side };
        let blocks = self.plan.blocks(side);
        let visited = &mut self.parts[part];
        let (round, place) = (visited.visits[slot] / blocks, visited.visits[slot] % blocks);
        visited.visits[slot] += 1;
        let seed = self.plan.seed ^ round;
        let order = match &mut visited.orders[slot] {
            Some((known, order)) if *known == round => order,
            other => {
                let seed = Rng::stream(seed, stream::ORDER + 1 + part as u64).next_u64();
                &mut other.insert((round, Permutation::new(blocks, seed))).1
            }
        };
        (order.at(place) * align, place == 0 && round > 0)
    }

    /// Where an operation that follows begins, and whether the part begins again with it.
    fn following_offset(&self, side: usize, part: usize, bytes: u32) -> (u64, bool) {
        let span = self.plan.part_bytes;
        let least = u64::from(self.plan.lengths[side].least());
        let is_backward = self.plan.stride < -i64::from(bytes);
        // As in fio: the first operation is at the start, and one before the start is as far before the end
        // as it goes back from where the last one ended.
        let again =
            if is_backward { span.saturating_sub(self.plan.stride.unsigned_abs()) } else { 0 };
        let part = &self.parts[part];
        match part.follow[side] {
            Some(next) if next.saturating_add(least) <= span => (next, false),
            None if part.bytes == 0 => (0, false),
            Some(_) => (again, true),
            // It would go before the start, or is the first of its direction.
            None => (again, is_backward),
        }
    }

    /// When the next operation of this direction is due by its limits, of which the stricter holds.
    fn due_ns(&mut self, side: usize, bytes: u32) -> u64 {
        let due_ns = self.next_due_ns(side);
        let limit = self.plan.limits[side];
        let pace = &mut self.paces[side];
        if self.plan.poisson {
            let mean_s = seconds_of(1.0, limit.iops)
                .max(seconds_of(f64::from(bytes), limit.bytes_per_second));
            pace.poisson_ns += self.times.exponential() * mean_s * 1e9;
        }
        pace.operations += 1;
        pace.bytes += u64::from(bytes);
        due_ns as u64
    }

    fn flush_after(&mut self, side: usize) -> Option<Flush> {
        if side == READS {
            return None;
        }
        self.writes += 1;
        match self.plan.flush_every {
            Some(every) if self.writes % u64::from(every.writes.max(1)) == 0 => {
                self.flush_under_way = true;
                Some(Flush { metadata_too: every.metadata_too, alone: true })
            }
            _ => self.plan.commits.then_some(Flush { metadata_too: false, alone: false }),
        }
    }

    fn book(&mut self, part: usize, operation: &Operation) {
        self.number += 1;
        self.bytes += u64::from(operation.bytes);
        self.parts[part].bytes += u64::from(operation.bytes);
        if let Some(think) = self.plan.think {
            self.since_pause += 1;
            if self.since_pause >= think.every.max(1) {
                self.since_pause = 0;
                self.pause_due = true;
            }
        }
    }
}

fn seconds_of(amount: f64, rate: Option<f64>) -> f64 {
    match rate {
        Some(rate) if rate > 0.0 => amount / rate,
        _ => 0.0,
    }
}

struct Place {
    offset: u64,
    bytes: u32,
    /// All of the part has been visited before.
    begins_again: bool,
}

impl Plan {
    /// Places in a part where a random operation may begin.
    fn blocks(&self, side: usize) -> u64 {
        let least = u64::from(self.lengths[side].least());
        match self.part_bytes.checked_sub(least) {
            Some(room) => room / self.align[side] + 1,
            None => 1,
        }
    }

    /// Whether random operations visit every block once; no uneven distribution can.
    pub(super) fn visits_every_block(&self) -> bool {
        let even = self.distribution == rubus_vocabulary::spec::Distribution::Uniform;
        self.visits_once && even && self.zones.is_empty()
    }

    fn covering_part_bytes(&self) -> u64 {
        let least = u64::from(self.shortest());
        self.part_bytes / least * least
    }
}
