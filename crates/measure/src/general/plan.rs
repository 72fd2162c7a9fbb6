//! What a shaped job means on its files, down to the last number: the input of a `Script`.
//!
//! Everything that depends on the target (its size) or on defaults is settled here, so that the script
//! only draws numbers.

use rubus_stats::Rng;
use rubus_vocabulary::spec::{
    Direction, Distribution, Durability, FileOrder, FlushEvery, Job, Limit, Pattern, Shape, Sizes,
    Think, Zone,
};

/// Reads, then writes: the order of all pairs in a [`Plan`].
pub(crate) const READS: usize = 0;
/// Index of writes; see [`READS`].
pub(crate) const WRITES: usize = 1;

/// One copy of a shaped job on its files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Share of reads in percent.
    pub(crate) read_percent: u8,
    /// Share of operations at random places, in percent.
    pub(crate) random_percent: [u8; 2],
    pub(crate) lengths: [Lengths; 2],
    /// Random offsets are multiples of this.
    pub(crate) align: [u64; 2],
    /// Where random operations go.
    pub(crate) distribution: Distribution,
    /// If there are any, they go before the distribution.
    pub(crate) zones: Vec<Zone>,
    /// Every block once before any is visited again.
    pub(crate) visits_once: bool,
    /// Where the region begins in each file.
    pub(crate) start: u64,
    /// Length of each part of the region.
    pub(crate) part_bytes: u64,
    /// Parts of the region in each file.
    pub(crate) parts: u32,
    pub(crate) files: u32,
    /// In which order parts are visited.
    pub(crate) order: FileOrder,
    /// Operations on a part before the next is chosen, at least 1.
    pub(crate) turn: u32,
    /// Bytes left out after each sequential operation.
    pub(crate) stride: i64,
    /// Operations that follow one another before the next random place, at least 1.
    pub(crate) run_length: u32,
    /// Offsets grow without end.
    pub(crate) appends: bool,
    /// At most so much a second.
    pub(crate) limits: [Limit; 2],
    /// Limited operations come at random times.
    pub(crate) poisson: bool,
    /// What is written will be read back by the same choices, so that none may depend on the time.
    pub(crate) is_replayed: bool,
    /// Pauses between operations.
    pub(crate) think: Option<Think>,
    /// Flushes between writes.
    pub(crate) flush_every: Option<FlushEvery>,
    /// Each write is a commit.
    pub(crate) commits: bool,
    /// What is cached of a part is dropped each time it begins again.
    pub(crate) drops_cache: bool,
    /// Bytes that may be moved.
    pub(crate) max_bytes: u64,
    /// Operations that may be made.
    pub(crate) max_operations: u64,
    /// Seed of every choice.
    pub(crate) seed: u64,
}

/// The lengths that operations of one direction may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// The same length for all operations, in bytes.
    Fixed(u32),
    /// Uniform over the multiples of a step between two bounds.
    Range {
        /// Shortest, a multiple of the step.
        least: u32,
        /// Longest, in bytes.
        most: u32,
        /// Step, at least 1.
        step: u32,
    },
    /// Each with its share in percent; ascending, at least one.
    Split(Vec<(u32, u8)>),
}

impl Lengths {
    fn of(block_bytes: u32, sizes: Option<&Sizes>, unaligned: bool) -> Result<Self, String> {
        let lengths = match sizes {
            None => Lengths::Fixed(block_bytes),
            Some(Sizes::Range(least, most)) if least == most => Lengths::Fixed(*least),
            Some(Sizes::Range(least, most)) => Lengths::Range {
                least: *least.min(most),
                most: *most.max(least),
                step: if unaligned { 1 } else { (*least.min(most)).max(1) },
            },
            Some(Sizes::Split(shares)) => {
                let mut shares: Vec<(u32, u8)> =
                    shares.iter().copied().filter(|share| share.1 > 0).collect();
                shares.sort_unstable();
                Lengths::Split(shares)
            }
        };
        match lengths.least() {
            0 => Err("an operation of no bytes moves nothing".into()),
            _ => Ok(lengths),
        }
    }

    /// The shortest; 0 when there is none.
    pub(crate) fn least(&self) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Range { least, .. } => *least,
            Lengths::Split(shares) => shares.first().map_or(0, |share| share.0),
        }
    }

    /// The longest length, in bytes.
    pub(crate) fn most(&self) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Range { most, .. } => *most,
            Lengths::Split(shares) => shares.last().map_or(0, |share| share.0),
        }
    }

    /// The length on average.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Lengths::Fixed(bytes) => f64::from(*bytes),
            Lengths::Range { least, most, step } => {
                let last = least + (most - least) / step * step;
                (f64::from(*least) + f64::from(last)) / 2.0
            }
            Lengths::Split(shares) => {
                let all: f64 = shares.iter().map(|share| f64::from(share.1)).sum();
                let weighted = shares.iter().map(|s| f64::from(s.0) * f64::from(s.1));
                weighted.sum::<f64>() / all.max(1.0)
            }
        }
    }

    /// All lengths are multiples of this.
    pub(crate) fn unit(&self) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Range { least, step, .. } => gcd(*least, *step),
            Lengths::Split(shares) => shares.iter().fold(0, |unit, share| gcd(unit, share.0)),
        }
    }

    /// A length from the random numbers.
    pub(super) fn draw(&self, random: &mut Rng) -> u32 {
        match self {
            Lengths::Fixed(bytes) => *bytes,
            Lengths::Range { least, most, step } => {
                let steps = u64::from((most - least) / step);
                least + step * random.below(steps + 1) as u32
            }
            Lengths::Split(shares) => {
                let all: u64 = shares.iter().map(|share| u64::from(share.1)).sum();
                let mut left = random.below(all);
                for &(bytes, percent) in shares {
                    match left.checked_sub(u64::from(percent)) {
                        Some(rest) => left = rest,
                        None => return bytes,
                    }
                }
                self.most()
            }
        }
    }

    /// The length, or the longest allowed one that fits into `room` bytes if it does not.
    pub(super) fn fit(&self, bytes: u32, room: u64) -> Option<u32> {
        if u64::from(bytes) <= room {
            return Some(bytes);
        }
        let room = u32::try_from(room).ok()?;
        match self {
            Lengths::Fixed(_) => None,
            Lengths::Range { least, step, .. } => {
                let steps = room.checked_sub(*least)? / step;
                Some(least + step * steps)
            }
            Lengths::Split(shares) => {
                let mut fitting = shares.iter().rev().map(|share| share.0);
                fitting.find(|&bytes| bytes <= room)
            }
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn gcd_64(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd_64(b, a % b) }
}

impl Plan {
    /// What copy number `copy` of `job` does on `files` files with regions of `region_bytes` each.
    ///
    /// # Errors
    /// In words without a full stop, when the job does not fit there.
    pub(crate) fn new(
        job: &Job,
        copy: u32,
        files: u32,
        region_bytes: u64,
        seed: u64,
    ) -> Result<Self, String> {
        let default = Shape::default();
        let shape = job.shape.as_deref().unwrap_or(&default);
        let read_percent = shape.read_percent.unwrap_or(match job.direction {
            Direction::Read => 100,
            Direction::Write => 0,
        });
        let of_pattern = match job.pattern {
            Pattern::Sequential => 0,
            Pattern::Random => 100,
        };
        let lengths =
            |side: usize| Lengths::of(job.block_bytes, shape.sizes[side].as_ref(), shape.unaligned);
        let lengths = [lengths(READS)?, lengths(WRITES)?];
        let align = |side: usize| {
            let of_length = lengths[side].least();
            u64::from(shape.align_bytes[side].unwrap_or(of_length).max(1))
        };
        let align = [align(READS), align(WRITES)];
        let mut plan = Plan {
            read_percent: read_percent.min(100),
            random_percent: shape.random_percent.map(|p| p.unwrap_or(of_pattern).min(100)),
            align,
            distribution: shape.distribution,
            zones: shape.zones.clone(),
            visits_once: shape.visits_once,
            start: shape.offset_bytes + u64::from(copy) * shape.copy_offset_bytes,
            part_bytes: 0,
            parts: shape.files.max(1),
            files: files.max(1),
            order: shape.file_order,
            turn: shape.operations_per_file.max(1),
            stride: shape.stride_bytes,
            run_length: shape.run_length.max(1),
            appends: job.durability == Durability::EachAppend,
            limits: shape.limits,
            poisson: shape.poisson,
            is_replayed: shape.verify.is_some(),
            think: shape.think,
            flush_every: shape.flush_every,
            commits: job.durability.is_each(),
            drops_cache: shape.drops_cache,
            max_bytes: u64::MAX,
            max_operations: shape.max_operations.unwrap_or(u64::MAX),
            seed: Rng::stream(seed, u64::from(copy)).next_u64(),
            lengths,
        };
        plan.set_region(shape, region_bytes)?;
        plan.set_budget(job, shape, copy);
        Ok(plan)
    }

    /// Writes of `bytes` bytes from `start` on in blocks of `block_bytes`, once.
    pub(crate) fn filling(start: u64, bytes: u64, block_bytes: u32, seed: u64) -> Self {
        let fixed = Lengths::Fixed(block_bytes);
        Plan {
            read_percent: 0,
            random_percent: [0; 2],
            lengths: [fixed.clone(), fixed],
            align: [u64::from(block_bytes); 2],
            distribution: Distribution::Uniform,
            zones: Vec::new(),
            visits_once: false,
            start,
            part_bytes: bytes,
            parts: 1,
            files: 1,
            order: FileOrder::RoundRobin,
            turn: 1,
            stride: 0,
            run_length: 1,
            appends: false,
            limits: [Limit::default(); 2],
            poisson: false,
            is_replayed: false,
            think: None,
            flush_every: None,
            commits: false,
            drops_cache: false,
            max_bytes: bytes,
            max_operations: u64::MAX,
            seed,
        }
    }

    fn set_region(&mut self, shape: &Shape, region_bytes: u64) -> Result<(), String> {
        let left = region_bytes.saturating_sub(self.start);
        let span = shape.span_bytes.map_or(left, |span| span.min(left));
        let longest = u64::from(self.longest());
        // Each part begins where a block of either direction may.
        let unit = longest.max(self.align[READS]).max(self.align[WRITES]);
        self.part_bytes = match self.parts {
            1 => span,
            parts => span / u64::from(parts) / unit * unit,
        };
        if self.part_bytes < longest && !self.appends {
            return Err(format!(
                "its {} hold no block of {longest} bytes from byte {} on",
                match self.parts {
                    1 => format!("{region_bytes} bytes"),
                    parts => format!("{region_bytes} bytes in {parts} files"),
                },
                self.start,
            ));
        }
        Ok(())
    }

    fn set_budget(&mut self, job: &Job, shape: &Shape, copy: u32) {
        let copies = u64::from(shape.copies.max(1));
        self.max_bytes = match job.stop.max_bytes {
            u64::MAX => u64::MAX,
            // The bytes that cannot be divided go to the first copies.
            bytes => bytes / copies + u64::from(u64::from(copy) < bytes % copies),
        };
        // Each part begins again where operations leave bytes out, until the amount is moved.
        let begins_again = self.stride > 0 && self.max_bytes < u64::MAX;
        if !shape.time_based && !self.appends && !begins_again {
            self.max_bytes = self.max_bytes.min(self.covering_bytes());
        }
    }

    /// Bytes that one round of the region moves.
    pub(crate) fn covering_bytes(&self) -> u64 {
        let least = u64::from(self.shortest());
        let parts = u64::from(self.parts) * u64::from(self.files);
        // Reads and writes in order have a place each: what is left of the region is moved as well.
        let are_apart = self.has(READS) && self.has(WRITES) && self.random_percent == [0, 0];
        let blocks = match parts {
            1 if are_apart => self.part_bytes.div_ceil(least),
            _ => self.part_bytes / least,
        };
        blocks.saturating_mul(least).saturating_mul(parts)
    }

    /// Where the region ends in each file.
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.parts) * self.part_bytes
    }

    /// Whether there are operations of that direction.
    pub(crate) fn has(&self, side: usize) -> bool {
        match side {
            READS => self.read_percent > 0,
            _ => self.read_percent < 100,
        }
    }

    /// The longest operation of all.
    pub(crate) fn longest(&self) -> u32 {
        self.over_sides(Lengths::most).max().unwrap_or(0)
    }

    /// The shortest operation of all.
    pub(crate) fn shortest(&self) -> u32 {
        self.over_sides(Lengths::least).min().unwrap_or(1).max(1)
    }

    /// All lengths, and all offsets within a part, are multiples of this.
    pub(crate) fn unit(&self) -> u32 {
        let of_lengths = self.over_sides(Lengths::unit).fold(0, gcd);
        let offsets = [READS, WRITES].into_iter().filter(|&side| self.has(side));
        let unit = offsets.fold(of_lengths, |unit, side| {
            gcd(unit, (self.align[side] % u64::from(unit.max(1))) as u32)
        });
        match u32::try_from(self.stride.unsigned_abs() % u64::from(unit.max(1))) {
            Ok(rest) => gcd(unit, rest),
            Err(_) => 1,
        }
    }

    /// Share of the operations of one direction, 0 to 1.
    pub(crate) fn share(&self, side: usize) -> f64 {
        let reads = f64::from(self.read_percent) / 100.0;
        if side == READS { reads } else { 1.0 - reads }
    }

    /// How many operations write every block once, where they do that in any case.
    pub(crate) fn operations_per_round(&self) -> Option<u64> {
        let Lengths::Fixed(bytes) = self.lengths[WRITES] else {
            return None;
        };
        let only_writes = self.read_percent == 0;
        let parts = u64::from(self.parts) * u64::from(self.files);
        let in_turn = parts == 1 || self.order != FileOrder::Random;
        let follows = self.random_percent[WRITES] == 0 && self.stride == 0;
        let visits = self.random_percent[WRITES] == 100
            && self.visits_every_block()
            && self.run_length == 1
            && self.align[WRITES] == u64::from(bytes);
        let is_even = only_writes && in_turn && !self.appends && (follows || visits);
        is_even.then(|| self.part_bytes / u64::from(bytes) * parts)
    }

    /// All its operations begin and end at multiples of this.
    pub(crate) fn grid(&self) -> u64 {
        let parts = match self.parts {
            1 => 0,
            _ => self.part_bytes,
        };
        gcd_64(gcd_64(u64::from(self.unit()), self.start), parts)
    }

    /// About how many operations of one direction there will be.
    pub(crate) fn expected_operations(&self, side: usize) -> f64 {
        let mean: f64 = [READS, WRITES]
            .into_iter()
            .map(|side| self.share(side) * self.lengths[side].mean())
            .sum();
        let by_bytes = self.max_bytes as f64 / mean.max(1.0);
        by_bytes.min(self.max_operations as f64) * self.share(side)
    }

    /// Whether it waits of its own will: for a limit or in a pause.
    pub(crate) fn is_paced(&self) -> bool {
        self.think.is_some() || self.limits.iter().any(Limit::is_any)
    }

    fn over_sides<'a, T: 'a>(
        &'a self,
        of: impl Fn(&Lengths) -> T + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        let sides = [READS, WRITES].into_iter().filter(|&side| self.has(side));
        sides.map(move |side| of(&self.lengths[side]))
    }
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::spec::StopSpec;

    use super::*;

    fn job(shape: Shape) -> Job {
        let mut job = Job::new("shaped", Direction::Write, Pattern::Random, 4096, 1);
        job.stop = StopSpec { max_bytes: u64::MAX, ..job.stop };
        job.shape = Some(Box::new(shape));
        job
    }

    #[test]
    fn a_region_is_divided_and_copies_move_on() {
        let shape = Shape {
            offset_bytes: 8192,
            copies: 2,
            copy_offset_bytes: 4096,
            files: 3,
            ..Shape::default()
        };
        let plan = Plan::new(&job(shape), 1, 1, 100_000, 1).expect("it fits");
        assert_eq!((plan.start, plan.part_bytes), (12_288, 28_672));
        assert_eq!(plan.max_bytes, 3 * 28_672);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let shape = Shape { offset_bytes: 8192, files: 3, ..Shape::default() };
        let error = Plan::new(&job(shape), 0, 1, 16_384, 1).expect_err("three files of 2 KiB");
        insta::assert_snapshot!(error, @"its 16384 bytes in 3 files hold no block of 4096 bytes from byte 8192 on");
    }

    #[test]
    fn copies_share_the_budget_to_the_last_byte() {
        let shape = Shape { copies: 3, time_based: true, ..Shape::default() };
        let mut job = job(shape);
        job.stop.max_bytes = 1_000_001;
        let bytes =
            (0..3).map(|copy| Plan::new(&job, copy, 1, 1 << 20, 1).expect("it fits").max_bytes);
        assert_eq!(bytes.sum::<u64>(), 1_000_001);
    }

    #[test]
    fn the_unit_divides_all_that_is_used() {
        let shape = Shape {
            sizes: [Some(Sizes::Split(vec![(65_536, 50), (6144, 50)])), None],
            ..Shape::default()
        };
        let mut job = job(shape);
        assert_eq!(Plan::new(&job, 0, 1, 1 << 20, 1).expect("it fits").unit(), 4096);
        if let Some(shape) = &mut job.shape {
            shape.read_percent = Some(50);
        }
        assert_eq!(Plan::new(&job, 0, 1, 1 << 20, 1).expect("it fits").unit(), 2048);
    }
}
