//! What a job means on the files of a session: descriptors, engine, budget, doubts.

use std::sync::Arc;

use rubus_stats::Rng;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, TargetKind};
use rubus_vocabulary::spec::{Content, Direction, Durability, Job, Pattern, Shape, Verify};

use super::{FILL_BLOCK, Scheduler, direct_only_in, group, only_writes, regions_of};
use crate::course;
use crate::general::{Checks, Copy, General, Plan, unit_of};
use crate::runner::Task;
use crate::suites::fills;
use crate::target::CommitFile;
use crate::work::{Engine, Work};

/// The warm-up of every job, unless its write budget is short: half a second.
const WARM_UP_NS: u64 = 500_000_000;
/// A job that writes warms up with at most this part of its budget.
const WARM_UP_PART: u64 = 10;

impl Scheduler<'_> {
    /// What the job means here; the error is why it cannot be run.
    pub(super) fn task<'j>(
        &mut self,
        job: &'j Job,
        fills_region: bool,
        stream: u64,
        commit_file: Option<&CommitFile>,
    ) -> Result<Task<'j>, String> {
        let numbers = regions_of(job);
        let number = match numbers.iter().find(|&&number| number >= self.regions.len()) {
            Some(missing) => {
                return Err(format!("there is no file number {missing} in the session"));
            }
            None => numbers[0],
        };
        let region_bytes = self.region_for(job, number, fills_region);
        let way = self.regions[number].way(&mut *self.rig, job.through_cache);
        let mut work = self.plain_work(number, region_bytes);
        work.file = match commit_file {
            Some(commit_file) => Arc::clone(&commit_file.file),
            None => way.file,
        };
        work.direction = job.direction;
        work.pattern = job.pattern;
        work.block_bytes = job.block_bytes;
        work.queue_depth = job.queue_depth.max(1);
        work.durability = job.durability;
        work.append_from = commit_file.map(|_| 0);
        work.is_buffered = way.access == Access::Buffered;
        work.content = job.content.unwrap_or(self.suite.content);
        work.seed = Rng::stream(self.suite.seed, stream).next_u64();
        work.max_operations = operations(job, 0);
        if let Some(shape) = &job.shape {
            self.shape_work(job, shape, fills_region, commit_file, &mut work)?;
        }
        let waits = !job.through_cache && job.durability != Durability::Never;
        work.settles &= work.is_write() && waits;
        let choice = self.rig.choose_engine(&work, self.trial_operations(job));
        work.engine = choice.engine;
        self.bytes_written += choice.bytes_written;
        self.debt_bytes += choice.bytes_written;
        if work.is_write() && work.general.is_none() {
            let paid_bytes = self.debt_bytes.min(self.spare_bytes(job));
            self.debt_bytes -= paid_bytes;
            work.max_operations = operations(job, paid_bytes);
            work.warm_up_operations = work.max_operations / WARM_UP_PART;
        }
        if course::counts_from_the_start(job) && work.general.is_none() {
            work.warm_up_ns = u64::MAX;
            work.warm_up_operations = u64::MAX;
        }
        let region = &self.regions[number];
        let mut doubts = region.opened.doubts.clone();
        doubts.extend(choice.doubt);
        if region_bytes < region.wanted_bytes {
            doubts.push(Doubt::SmallRegion { bytes: region_bytes, wanted: region.wanted_bytes });
        }
        let is_unusual = job.through_cache || way.access != self.regions[0].opened.access;
        Ok(Task {
            job,
            work,
            title: None,
            access: way.access,
            unusual_access: is_unusual.then_some(way.access),
            is_switched: way.is_switched,
            on: self.names(&numbers),
            doubts,
        })
    }

    /// The names of the files that a job works on, where the session has several.
    fn names(&self, numbers: &[usize]) -> Option<String> {
        const MAX: usize = 3;
        if self.regions.len() < 2 {
            return None;
        }
        let name = |&number: &usize| self.regions[number].name.clone();
        let mut names: Vec<String> = numbers.iter().take(MAX).filter_map(name).collect();
        if numbers.len() > MAX {
            names.push(format!("{} more", numbers.len() - MAX));
        }
        Some(names.join(", ")).filter(|names| !names.is_empty())
    }

    /// Plans for all copies of a shaped job.
    fn shape_work(
        &mut self,
        job: &Job,
        shape: &Shape,
        fills_region: bool,
        commit_file: Option<&CommitFile>,
        work: &mut Work,
    ) -> Result<(), String> {
        let mut copies = Vec::new();
        for copy in 0..shape.copies.max(1) {
            let first = shape.file.unwrap_or(0);
            let members = std::iter::once(first).chain(shape.more_files.iter().copied());
            let mut files = Vec::new();
            let mut region_bytes = u64::MAX;
            for file in members {
                let number = file.saturating_add(copy.saturating_mul(shape.file_step)) as usize;
                region_bytes = region_bytes.min(self.region_for(job, number, fills_region));
                let way = self.regions[number].way(&mut *self.rig, job.through_cache);
                files.push(match commit_file {
                    Some(commit_file) => Arc::clone(&commit_file.file),
                    None => way.file,
                });
            }
            let plan = Plan::new(job, copy, files.len() as u32, region_bytes, work.seed)?;
            let align = self.regions[first as usize].opened.align_bytes;
            let is_aligned = plan.unit() % align == 0 && plan.start % u64::from(align) == 0;
            if !work.is_buffered && commit_file.is_none() && !is_aligned {
                return Err(direct_only_in(u64::from(align)));
            }
            let checks = self.checks(shape, &plan, copy)?;
            copies.push(Copy { plan, files, checks, replays: None });
        }
        // Of a mix that is checked nothing but its own writes may be in the region.
        let may_try = shape.verify.is_none() || only_writes(job);
        if let Some(ramp_s) = shape.ramp_s {
            work.warm_up_ns = (ramp_s.max(0.0) * 1e9) as u64;
        }
        if let Some(copy) = copies.first() {
            work.region_bytes = work.region_bytes.min(copy.plan.end());
        }
        let start = copies.first().map(|copy| copy.plan.start);
        work.trial_from = start.filter(|_| may_try);
        work.one_at_a_time = shape.one_at_a_time;
        work.is_mapped = shape.is_mapped;
        work.general = Some(Arc::new(General { copies, has_ramp: shape.ramp_s.is_some() }));
        Ok(())
    }

    /// What fills a file of our own: whole blocks, then what is left, each with where it ends. Where a
    /// job will check what it reads there, it finds what can be checked.
    pub(super) fn filling(&self, number: usize) -> Vec<(Work, u64)> {
        let region = &self.regions[number];
        let wanted_bytes = region.wanted_bytes;
        let block = u64::from(FILL_BLOCK);
        let whole = wanted_bytes / block * block;
        // A job that was cut short has left a part to begin with.
        let from = region.filled_bytes / block * block;
        let mut works = Vec::new();
        if whole > from {
            let work = match self.sum_for(number) {
                None => {
                    let mut work = self.plain_work(number, wanted_bytes);
                    work.append_from = Some(from);
                    work.max_operations = (whole - from) / block;
                    work
                }
                Some(_) => self.filling_part(number, from, whole - from, FILL_BLOCK),
            };
            works.push((work, whole));
        }
        // The file may become a little longer than what is used of it.
        let rest = (wanted_bytes - whole).next_multiple_of(4096) as u32;
        if rest > 0 {
            let work = self.filling_part(number, whole, u64::from(rest), rest);
            works.push((work, wanted_bytes));
        }
        works
    }

    fn filling_part(&self, number: usize, start: u64, bytes: u64, block_bytes: u32) -> Work {
        let mut work = self.plain_work(number, start + bytes);
        work.block_bytes = block_bytes;
        let plan = Plan::filling(start, bytes, block_bytes, self.suite.seed);
        let checks = self.sum_for(number).zip(self.check_unit).map(|(sum, unit_bytes)| Checks {
            sum,
            unit_bytes,
            files: vec![number as u32],
            seed: plan.seed,
            writers: Vec::new(),
            is_exact: false,
        });
        let copy = Copy { plan, files: vec![Arc::clone(&work.file)], checks, replays: None };
        work.general = Some(Arc::new(General { copies: vec![copy], has_ramp: true }));
        work
    }

    /// The sum by which a job of the suite will check what it reads in a file.
    fn sum_for(&self, number: usize) -> Option<Verify> {
        self.readers_of(number).find_map(|job| job.shape.as_ref()?.verify)
    }

    /// What a file holds for the jobs that read it: what the first of them asks for that asks for something.
    fn content_for(&self, number: usize) -> Content {
        self.readers_of(number).find_map(|job| job.content).unwrap_or(self.suite.content)
    }

    fn readers_of(&self, number: usize) -> impl Iterator<Item = &Job> {
        let jobs = self.suite.jobs.iter().flat_map(group);
        jobs.filter(move |job| !only_writes(job) && regions_of(job).contains(&number))
    }

    /// How the blocks of one copy are sealed and checked, if they are.
    fn checks(&self, shape: &Shape, plan: &Plan, copy: u32) -> Result<Option<Checks>, String> {
        let Some(sum) = shape.verify else {
            return Ok(None);
        };
        unit_of(plan.grid())?;
        let members =
            std::iter::once(shape.file.unwrap_or(0)).chain(shape.more_files.iter().copied());
        Ok(Some(Checks {
            sum,
            unit_bytes: self.check_unit.map_or_else(|| unit_of(plan.grid()), Ok)?,
            files: members.map(|file| file + copy * shape.file_step).collect(),
            seed: plan.seed,
            writers: Vec::new(),
            is_exact: false,
        }))
    }

    /// The length of what is sealed and checked as one, for all jobs of the session: so each can check
    /// what another has written.
    pub(super) fn session_unit(&self) -> Option<u32> {
        let jobs = self.suite.jobs.iter().flat_map(group);
        let checked = jobs.filter(|job| job.shape.as_ref().is_some_and(|s| s.verify.is_some()));
        let unit = |job: &Job| {
            let region = self.regions.get(*regions_of(job).first()?)?;
            let plan = Plan::new(job, 0, 1, region.wanted_bytes, 0).ok()?;
            let step = job.shape.as_ref().map_or(0, |shape| shape.copy_offset_bytes);
            unit_of(gcd(plan.grid(), step)).ok()
        };
        checked.filter_map(unit).min()
    }

    /// The work that reads back what `task` has written, where that is wanted; `handed_out` is how far
    /// each of its copies came.
    pub(super) fn read_back<'j>(
        &mut self,
        task: &Task<'_>,
        job: &'j Job,
        handed_out: &[u64],
    ) -> Option<Task<'j>> {
        let general = task.work.general.as_deref()?;
        let seeds: Vec<u64> = general.copies.iter().map(|copy| copy.plan.seed).collect();
        let copies = general.copies.iter().zip(handed_out).map(|(copy, &operations)| {
            let round = copy.plan.operations_per_round();
            let alone = general.copies.len() == 1;
            Copy {
                checks: copy.checks.clone().map(|checks| Checks {
                    writers: seeds.clone(),
                    is_exact: alone && round.is_some_and(|round| operations <= round),
                    ..checks
                }),
                // Later rounds went over the same blocks.
                replays: Some(operations.min(round.unwrap_or(u64::MAX))),
                ..copy.clone()
            }
        });
        let mut work = task.work.clone();
        work.direction = Direction::Read;
        work.warm_up_ns = 0;
        work.delay_ns = 0;
        work.settles = false;
        work.durability = Durability::AtEnd;
        work.general = Some(Arc::new(General { copies: copies.collect(), has_ramp: true }));
        let choice = self.rig.choose_engine(&work, self.trial_operations(job));
        work.engine = choice.engine;
        let mut doubts = self.regions[0].opened.doubts.clone();
        doubts.extend(choice.doubt);
        Some(Task {
            job,
            work,
            title: Some(format!("{}: read back", job.name)),
            access: task.access,
            unusual_access: task.unusual_access,
            is_switched: task.is_switched,
            on: task.on.clone(),
            doubts,
        })
    }

    /// How much of a writing job's budget may go to something else.
    fn spare_bytes(&self, job: &Job) -> u64 {
        let needed = if self.regions[0].filled_bytes == 0 && fills(self.suite, job) {
            self.suite.region_bytes
        } else {
            u64::from(job.block_bytes)
        };
        job.stop.max_bytes.saturating_sub(needed)
    }

    /// A sequential write of a region, to be changed into what is wanted.
    pub(super) fn plain_work(&self, number: usize, region_bytes: u64) -> Work {
        let opened = &self.regions[number].opened;
        Work {
            file: Arc::clone(&opened.file),
            remote: opened.remote.clone(),
            engine: Engine::Positional,
            direction: Direction::Write,
            pattern: Pattern::Sequential,
            block_bytes: FILL_BLOCK,
            queue_depth: 1,
            durability: Durability::AtEnd,
            region_bytes,
            append_from: None,
            // Memory has nothing behind it to wait for.
            settles: opened.access == Access::Buffered && opened.kind != TargetKind::Ram,
            is_buffered: opened.access == Access::Buffered,
            one_at_a_time: false,
            is_mapped: false,
            trial_from: Some(0),
            content: self.content_for(number),
            seed: self.suite.seed,
            max_operations: u64::MAX,
            warm_up_ns: WARM_UP_NS,
            warm_up_operations: u64::MAX,
            delay_ns: 0,
            general: None,
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How many operations the job's budget of bytes allows, at least one, after `debt_bytes` of it
/// have been spent otherwise.
fn operations(job: &Job, debt_bytes: u64) -> u64 {
    if job.stop.max_bytes == u64::MAX {
        return u64::MAX;
    }
    let bytes = job.stop.max_bytes.saturating_sub(debt_bytes);
    (bytes / u64::from(job.block_bytes)).max(1)
}
