//! From a plan and what its files are to a suite that the engine runs.

use rubus_vocabulary::result::{JobFile, JobFileJob};
use rubus_vocabulary::spec::{
    Content, Direction, Durability, Ends, FileNeed, FileStart, Job, Limit, Pattern, Shape,
    StopSpec, Suite, Think,
};

use super::blocks::{block_bytes, longest_block, one_block, shortest_block, sizes};
use super::plan::{Note, NoteKind, Plan, PlannedJob};
use super::problem::{JobFileError, Problem};
use super::settings::{DEFAULT_BLOCK, Settings, Submission};
use super::value::Amount;

/// A job without a runtime may take as long as it needs: four weeks.
const NO_END_S: f64 = 28.0 * 86_400.0;
/// fio's own seed, where none is given.
const SEED: u64 = 0x89;
/// The precision that results are judged by; jobs of a job file are never stopped for it.
const WANTED: f64 = 0.10;

/// What one of [`Plan::files`] turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its number in the session's list of files. Several wanted files may be the same one.
    pub number: u32,
    /// Its size, where it exists; absent for a file of our own.
    pub size_bytes: Option<u64>,
}

/// A job file, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The stages as jobs, with the other jobs of a stage beside its first.
    pub suite: Suite,
    /// What has to be there before, by the numbers of [`FileFacts::number`].
    pub needs: Vec<FileNeed>,
    /// What goes into the run, so that its reader knows what was asked for.
    pub job_file: JobFile,
    /// Jobs ask for other places each time, and the file names no seed: the caller gives
    /// [`Suite::seed`] a new one.
    pub wants_fresh_seed: bool,
    /// Bytes that all jobs together write at most; absent where a job writes for a time and not an
    /// amount.
    pub max_written_bytes: Option<u64>,
    /// Seconds that the stages take together at most, preparation excluded; absent where a job ends
    /// by an amount.
    pub most_s: Option<f64>,
}

impl Plan {
    /// The suite, when each of [`Plan::files`] is what `facts` says.
    ///
    /// # Errors
    /// When the size of a job's region is not known, is nothing, or does not hold a block.
    pub fn lower(&self, facts: &[FileFacts]) -> Result<Lowered, JobFileError> {
        let mut lowering = Lowering {
            plan: self,
            facts,
            needs: Vec::new(),
            notes: self.notes.clone(),
            listed: Vec::new(),
            problems: Vec::new(),
        };
        let mut stages: Vec<(u32, Vec<Job>)> = Vec::new();
        for planned in &self.jobs {
            let jobs = lowering.jobs_of(planned);
            match stages.iter_mut().find(|(stage, _)| *stage == planned.stage) {
                Some((_, together)) => together.extend(jobs),
                None => stages.push((planned.stage, jobs)),
            }
        }
        if !lowering.problems.is_empty() {
            return Err(JobFileError { problems: lowering.problems });
        }
        stages.sort_by_key(|(stage, _)| *stage);
        let jobs = stages.into_iter().filter_map(|(_, jobs)| group(jobs, self.ends_with_any()));
        let jobs: Vec<Job> = jobs.collect();
        let suite = Suite {
            name: "job-file".into(),
            region_bytes: lowering.needs.first().map_or(0, |need| need.region_bytes),
            content: Content::Incompressible,
            seed: self.jobs.iter().find_map(|job| job.settings.seed).unwrap_or(SEED),
            max_seconds: None,
            jobs,
        };
        Ok(Lowered {
            max_written_bytes: max_written(&suite),
            most_s: max_seconds(&suite),
            wants_fresh_seed: self.jobs.iter().any(|job| job.settings.has_fresh_seed)
                && self.jobs.iter().all(|job| job.settings.seed.is_none()),
            suite,
            needs: lowering.needs,
            job_file: JobFile {
                path: self.file.clone(),
                global_options: self.global.clone(),
                jobs: lowering.listed,
                notes: told(&lowering.notes, false),
                ignored: told(&lowering.notes, true),
            },
        })
    }
}

impl Plan {
    /// Whether the first job of a stage to end ends the others. As in fio, one job that asks for it asks for
    /// all.
    fn ends_with_any(&self) -> bool {
        self.jobs.iter().any(|job| job.settings.exit_all)
    }
}

fn told(notes: &[Note], ignored: bool) -> Vec<String> {
    let notes = notes.iter().filter(|note| (note.kind == NoteKind::Ignored) == ignored);
    notes.map(Note::to_string).collect()
}

/// The jobs of a stage as one job with the others beside it.
fn group(mut jobs: Vec<Job>, ends_with_any: bool) -> Option<Job> {
    if jobs.is_empty() {
        return None;
    }
    let mut first = jobs.remove(0);
    first.ends = if ends_with_any { Ends::WithAny } else { Ends::EachByItself };
    first.beside = jobs;
    Some(first)
}

fn members(suite: &Suite) -> impl Iterator<Item = &Job> {
    suite.jobs.iter().flat_map(|job| std::iter::once(job).chain(&job.beside))
}

fn writes(job: &Job) -> bool {
    let mixes = job.shape.as_ref().and_then(|shape| shape.read_percent);
    job.direction == Direction::Write || mixes.is_some_and(|percent| percent < 100)
}

fn max_written(suite: &Suite) -> Option<u64> {
    let amounts = members(suite).filter(|job| writes(job)).map(|job| {
        let shape = job.shape.as_deref();
        let operations = shape.and_then(|shape| shape.max_operations);
        let by_count = operations.map(|count| count.saturating_mul(u64::from(job.block_bytes)));
        by_count.unwrap_or(u64::MAX).min(job.stop.max_bytes)
    });
    let sum = amounts.fold(0u64, u64::saturating_add);
    (sum < u64::MAX).then_some(sum)
}

fn max_seconds(suite: &Suite) -> Option<f64> {
    let of = |job: &Job| {
        let ramp_s = job.shape.as_ref().and_then(|shape| shape.ramp_s);
        job.stop.max_seconds + ramp_s.unwrap_or(0.0) + job.rest_before_s
    };
    let stages = suite.jobs.iter().map(|job| {
        let all = std::iter::once(job).chain(&job.beside);
        all.map(of).fold(0.0, f64::max)
    });
    let sum: f64 = stages.sum();
    (sum < NO_END_S).then_some(sum)
}

struct Lowering<'a> {
    plan: &'a Plan,
    facts: &'a [FileFacts],
    needs: Vec<FileNeed>,
    notes: Vec<Note>,
    listed: Vec<JobFileJob>,
    problems: Vec<Problem>,
}

/// Where a copy of a job works and how much it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Extent {
    /// Where its region begins in each of its files.
    offset_bytes: u64,
    /// How long the region is in each of its files.
    span_bytes: u64,
    /// How far the next copy's region is from there.
    step_bytes: u64,
    /// What it moves, over all of its files.
    amount_bytes: u64,
    /// In how many files it works, at least 1.
    files: u64,
}

impl Lowering<'_> {
    /// One job for all copies, or one for each where they are reported apart.
    fn jobs_of(&mut self, planned: &PlannedJob) -> Vec<Job> {
        let copies = planned.settings.copies;
        let extents: Result<Vec<Extent>, _> =
            (0..copies).map(|copy| self.extent(planned, copy)).collect();
        let extents = match extents {
            Ok(extents) => extents,
            Err((what, remedy)) => {
                self.problem(planned, what, remedy);
                return Vec::new();
            }
        };
        let numbers: Vec<Vec<u32>> = planned
            .files
            .iter()
            .map(|copy| copy.iter().map(|&file| self.facts[file].number).collect())
            .collect();
        for (extent, copy) in extents.iter().zip(0..) {
            self.need(planned, extent, copy);
        }
        self.note_service_time(planned);
        let step = steady_step(&numbers);
        // When one copy ends, so do the others: each has to be a job of its own.
        let ends_alone = !self.plan.ends_with_any();
        let together = planned.settings.group_reporting && copies > 1 && ends_alone;
        // Up to the end of a file, later copies have less.
        let are_alike = extents.windows(2).all(|pair| pair[0] == pair[1]);
        if let (true, Some(step), [extent, ..]) = (together && are_alike, step, &extents[..]) {
            self.list(planned, planned.name.clone());
            let mut job = lowered(planned, &planned.name, extent, &numbers[0], 0);
            if let Some(shape) = &mut job.shape {
                shape.copies = copies;
                shape.file_step = step;
                shape.copy_offset_bytes = extent.step_bytes;
            }
            if job.stop.max_bytes < u64::MAX {
                job.stop.max_bytes = job.stop.max_bytes.saturating_mul(u64::from(copies));
                job.stop.min_bytes = job.stop.max_bytes;
            }
            return vec![job];
        }
        let apart = numbers.iter().zip(&extents).zip(0u32..);
        apart
            .map(|((files, extent), copy)| {
                let name = match copy {
                    0 => planned.name.clone(),
                    copy => format!("{} #{}", planned.name, copy + 1),
                };
                self.list(planned, name.clone());
                lowered(planned, &name, extent, files, copy)
            })
            .collect()
    }

    /// The extent of a copy of the job; the error is what is wrong and what to do.
    fn extent(
        &mut self,
        planned: &PlannedJob,
        copy: u32,
    ) -> Result<Extent, (String, &'static str)> {
        let settings = &planned.settings;
        let files = planned.files.first().map_or(1, Vec::len).max(1) as u64;
        let sizes = planned.files.iter().flatten().map(|&file| self.facts[file].size_bytes);
        let existing = sizes.flatten().min();
        let parts = u64::from(settings.files);
        // How long each file is: as it says, else as it is.
        let whole = settings.file_size.map(|bytes| bytes.saturating_mul(parts)).or(existing);
        let given = settings.size.map(|size| size.of(whole.unwrap_or(0).saturating_mul(files)));
        let given = given.filter(|&bytes| bytes > 0);
        let is_amount = matches!(settings.size, Some(Amount::Bytes(_)));
        let grain = u64::from(shortest_block(settings)).max(1);
        let offset_bytes = settings.offset.of(existing.unwrap_or(0));
        // A share begins and ends with a block.
        let offset_bytes = match settings.offset {
            Amount::Percent(_) => offset_bytes.div_ceil(grain).saturating_mul(grain),
            Amount::Bytes(_) => offset_bytes,
        };
        let step_bytes = settings.offset_increment.of(existing.unwrap_or(0));
        let shared = shares_files(planned);
        let steps_bytes = if shared { step_bytes.saturating_mul(u64::from(copy)) } else { 0 };
        let before_bytes = offset_bytes.saturating_add(steps_bytes);
        let left_of = |bytes: u64| bytes.saturating_sub(before_bytes);
        let per_file = match (given, whole, settings.file_size) {
            // An amount in files that are longer, unless it is a part of their size.
            (Some(_), Some(whole), Some(_)) if is_amount => left_of(whole),
            (Some(bytes), Some(whole), Some(_)) => (bytes / files).min(left_of(whole)),
            (Some(bytes), _, _) => bytes / files,
            (None, Some(whole), _) => left_of(whole),
            (None, None, _) => {
                return Err((
                    "it says neither size= nor filesize=, and its file does not exist yet".into(),
                    "add size=, or name a file or device that exists",
                ));
            }
        };
        let per_file = if matches!(settings.size, Some(Amount::Percent(percent)) if percent < 100.0)
        {
            let grain = grain.saturating_mul(parts);
            whole.map_or(per_file, |whole| per_file.min(left_of(whole))) / grain * grain
        } else {
            per_file
        };
        let span_bytes = self.fitted(planned, per_file, before_bytes, existing);
        let left = existing.map(|bytes| bytes.saturating_sub(before_bytes));
        let with_last = with_last_block(span_bytes, left, settings);
        let span_bytes = with_last.unwrap_or(span_bytes);
        if span_bytes < u64::from(longest_block(settings)) {
            return Err((
                format!("its region of {span_bytes} bytes holds no block"),
                "make it larger, or lower the block size",
            ));
        }
        let region_bytes = per_file.min(span_bytes).saturating_mul(files);
        // A share of io_size is one of the files' size where that is said.
        let whole_bytes = match settings.file_size {
            Some(bytes) => bytes.saturating_mul(parts).saturating_mul(files),
            None => region_bytes,
        };
        let once = match with_last {
            _ if settings.is_random && !settings.visits_once() => {
                rounded_up(region_bytes, settings)
            }
            Some(_) => region_bytes,
            None if settings.stride_bytes != 0 => rounded_up(region_bytes, settings),
            // As many blocks as each file holds. Reads and writes in order have a place each, so that there is room for
            // a block where less is left to move.
            None => match one_block(settings) {
                Some(_) if settings.reads && settings.writes && files == 1 => {
                    rounded_up(region_bytes, settings)
                }
                Some(block) => span_bytes / block * block * files,
                None => region_bytes,
            },
        };
        let is_to_the_end = existing.is_none_or(|bytes| before_bytes == 0 && span_bytes >= bytes);
        // Each part ends by itself.
        let (part_bytes, all_parts) = (span_bytes / parts, files.saturating_mul(parts));
        let round_bytes = with_stride(once, part_bytes, all_parts, is_to_the_end, settings);
        // A size beside the size of each file.
        let given = given.filter(|_| is_amount && settings.file_size.is_some());
        let round_bytes = match given {
            Some(bytes) => round_bytes.min(rounded_up(bytes, settings)),
            None => round_bytes,
        };
        let amount_bytes = match settings.io_size {
            Some(amount) => {
                let of_whole = amount.of(whole_bytes);
                let round_bytes = match with_last {
                    Some(_) => rounded_up(round_bytes, settings),
                    None => round_bytes,
                };
                let amount_bytes = match (amount, given) {
                    // fio takes the share for the size of all, which a size of its own still limits.
                    (Amount::Percent(_), Some(bytes)) => of_whole.min(bytes),
                    (Amount::Percent(_), None) | (Amount::Bytes(_), _) => of_whole,
                };
                in_rounds(amount_bytes, round_bytes, settings)
            }
            None => round_bytes.saturating_mul(u64::from(settings.loops)),
        };
        let amount_bytes = match with_last {
            Some(_) => rounded_up(amount_bytes, settings),
            None => amount_bytes,
        };
        Ok(Extent {
            offset_bytes,
            span_bytes,
            step_bytes: if shared { step_bytes } else { 0 },
            amount_bytes,
            files,
        })
    }

    /// The region as far as an existing file holds it; a note says so where it does not.
    fn fitted(
        &mut self,
        planned: &PlannedJob,
        wanted_bytes: u64,
        before_bytes: u64,
        existing: Option<u64>,
    ) -> u64 {
        let Some(left_bytes) = existing.map(|bytes| bytes.saturating_sub(before_bytes)) else {
            return wanted_bytes;
        };
        if wanted_bytes <= left_bytes {
            return wanted_bytes;
        }
        let note = Note {
            kind: NoteKind::Otherwise,
            at: planned.at.clone(),
            option: format!("[{}]", planned.section),
            text: format!(
                "{wanted_bytes} bytes were asked for, but the file or device holds only {left_bytes} there"
            ),
        };
        // One copy for all: each may have another rest.
        let is_of_it = |other: &Note| other.at == note.at && other.option == note.option;
        if !self.notes.iter().any(is_of_it) {
            self.notes.push(note);
        }
        left_bytes
    }

    /// Says of a job with a rate what its latencies leave out: what waited because a stall held it up.
    fn note_service_time(&mut self, planned: &PlannedJob) {
        let settings = &planned.settings;
        let mut rates = settings.rate.iter().chain(&settings.rate_iops).flatten();
        if rates.any(|&rate| rate > 0) {
            self.notes.push(Note {
                kind: NoteKind::Otherwise,
                at: planned.at.clone(),
                option: format!("[{}]", planned.section),
                text: "latency counts from when an operation is issued, not from when its rate made it due; \
                       percentiles understate stalls, so read the stalls and the maximum"
                    .into(),
            });
        }
    }

    /// Enters what the job's files must be before the first job.
    fn need(&mut self, planned: &PlannedJob, extent: &Extent, copy: u32) {
        let settings = &planned.settings;
        let end_bytes = extent
            .offset_bytes
            .saturating_add(extent.step_bytes.saturating_mul(u64::from(copy)))
            .saturating_add(extent.span_bytes);
        let start = match (settings.reads || settings.overwrite, settings.reserve) {
            (true, _) => FileStart::Filled,
            (false, true) => FileStart::Reserved,
            (false, false) => FileStart::Hollow,
        };
        for &file in planned.files.get(copy as usize).into_iter().flatten() {
            let number = self.facts[file].number as usize;
            while self.needs.len() <= number {
                self.needs.push(FileNeed {
                    name: String::new(),
                    region_bytes: 0,
                    start: FileStart::Hollow,
                });
            }
            let is_first = self.needs[number].name.is_empty();
            let need = &mut self.needs[number];
            need.region_bytes = need.region_bytes.max(end_bytes);
            if is_first {
                need.name = self.plan.files[file].name.clone();
                need.start = start;
            } else if start == FileStart::Filled && !self.is_written_before(file, planned) {
                self.needs[number].start = FileStart::Filled;
            }
        }
    }

    /// Whether a job of an earlier stage writes the file: what it leaves is what is read.
    fn is_written_before(&self, file: usize, planned: &PlannedJob) -> bool {
        self.plan.jobs.iter().any(|job| {
            job.stage < planned.stage
                && job.settings.writes
                && job.files.iter().flatten().any(|&f| f == file)
        })
    }

    fn list(&mut self, planned: &PlannedJob, name: String) {
        self.listed.push(JobFileJob {
            name,
            section: planned.section.clone(),
            group: planned.group,
            group_reporting: planned.settings.group_reporting,
            description: planned.settings.description.clone(),
            options: planned.options.clone(),
        });
    }

    fn problem(&mut self, planned: &PlannedJob, what: String, remedy: &str) {
        self.problems.push(Problem {
            at: planned.at.clone(),
            section: Some(planned.section.clone()),
            option: None,
            what,
            remedy: remedy.into(),
            is_unsupported: false,
        });
    }
}

/// Whether all copies work on the same files.
fn shares_files(planned: &PlannedJob) -> bool {
    planned.files.iter().all(|files| Some(files) == planned.files.first())
}

/// By how much the number of the file grows from copy to copy; nothing where it does not evenly.
fn steady_step(numbers: &[Vec<u32>]) -> Option<u32> {
    let firsts: Option<Vec<u32>> = numbers.iter().map(|files| files.first().copied()).collect();
    let firsts = firsts?;
    let step = match firsts[..] {
        [first, second, ..] => second.checked_sub(first)?,
        _ => 0,
    };
    let even = firsts.windows(2).all(|pair| pair[0].checked_add(step) == Some(pair[1]));
    let alone = numbers.iter().all(|files| files.len() == 1);
    (even && (alone || step == 0)).then_some(step)
}

/// An amount that does not end with a block: fio begins a block as long as anything is left.
fn rounded_up(bytes: u64, settings: &Settings) -> u64 {
    match settings.fixed_block(usize::from(!settings.reads)) {
        Some(block) => bytes.div_ceil(u64::from(block)).saturating_mul(u64::from(block)),
        None => bytes,
    }
}

/// The region with its last block, where that goes beyond the region: fio begins a block of a sequential job as long
/// as anything is left, if the file holds it. `left` is what an existing file holds from the start of the
/// region on; no file grows.
fn with_last_block(span_bytes: u64, left: Option<u64>, settings: &Settings) -> Option<u64> {
    let block = one_block(settings)?;
    let stride = u64::try_from(settings.stride_bytes).ok()?;
    let way = block.saturating_add(stride);
    let whole = (span_bytes.div_ceil(way).saturating_sub(1)).saturating_mul(way) + block;
    let is_plain = !settings.is_random && settings.files == 1;
    let goes_beyond = stride == 0 || whole > span_bytes;
    (is_plain && goes_beyond && left.is_some_and(|left| whole <= left)).then_some(whole)
}

/// What a job moves whose amount is `io_size`, when once through its region is `round_bytes`. As in fio
/// that is the amount for each of its `loops`, but no more than all rounds hold; and there are more
/// rounds than `loops` until the amount itself is moved or less than a block of it is left.
fn in_rounds(io_bytes: u64, round_bytes: u64, settings: &Settings) -> u64 {
    let loops = u64::from(settings.loops);
    let all_bytes = rounded_up(io_bytes.saturating_mul(loops), settings);
    // Backwards there is no end of a round: the next one begins at the end of the file. Nor is there one where blocks are
    // visited more than once.
    let has_no_end = settings.stride_bytes < 0 || (settings.is_random && !settings.visits_once());
    if has_no_end || round_bytes == 0 {
        return all_bytes;
    }
    let without_rest = io_bytes.saturating_sub(u64::from(longest_block(settings)) - 1);
    let rounds = without_rest.div_ceil(round_bytes).max(loops);
    all_bytes.min(rounds.saturating_mul(round_bytes))
}

/// What is moved of an amount when bytes are left out after each operation. As in fio, a job that comes
/// to the very end of its region, or to a rest that holds no block, ends; one that would go beyond the
/// end of its file begins again, until all is moved.
fn with_stride(
    bytes: u64,
    span_bytes: u64,
    files: u64,
    is_to_the_end: bool,
    settings: &Settings,
) -> u64 {
    let block = u64::from(settings.block[usize::from(!settings.reads)].unwrap_or(DEFAULT_BLOCK));
    let (Ok(stride), true) = (u64::try_from(settings.stride_bytes), span_bytes >= block) else {
        return bytes;
    };
    if stride == 0 {
        return bytes;
    }
    let way = block.saturating_add(stride);
    let operations = (span_bytes - block) / way + 1;
    let end = (operations - 1) * way + block;
    let next = operations.saturating_mul(way);
    let ends = !is_to_the_end || end == span_bytes || next < span_bytes;
    if ends { bytes.min((operations * block).saturating_mul(files)) } else { bytes }
}

/// One copy of a section (or all of them, when the caller adds the copies) as a job.
fn lowered(planned: &PlannedJob, name: &str, extent: &Extent, files: &[u32], copy: u32) -> Job {
    let settings = &planned.settings;
    let direction = if settings.reads { Direction::Read } else { Direction::Write };
    let pattern =
        if settings.is_random_in_effect() { Pattern::Random } else { Pattern::Sequential };
    let mut job = Job::new(name, direction, pattern, block_bytes(settings), settings.depth);
    job.durability = match (settings.each_durable, settings.end_flush) {
        (true, _) => Durability::EachInPlace,
        (false, true) => Durability::AtEnd,
        (false, false) => Durability::Never,
    };
    let runtime_s = settings.runtime_us as f64 / 1e6;
    let bytes = if settings.time_based { u64::MAX } else { extent.amount_bytes };
    job.stop = StopSpec {
        relative_half_width: WANTED,
        // A job of a job file ends when the file says so, never for its precision.
        min_seconds: if runtime_s > 0.0 { runtime_s } else { NO_END_S },
        max_seconds: if runtime_s > 0.0 { runtime_s } else { NO_END_S },
        min_bytes: bytes,
        max_bytes: bytes,
    };
    job.through_cache = settings.is_buffered;
    job.content = content(settings);
    job.rest_before_s = settings.start_delay_us as f64 / 1e6;
    let mut shape = shape(settings, extent, job.block_bytes);
    let before_bytes = extent.step_bytes.saturating_mul(u64::from(copy));
    shape.offset_bytes = shape.offset_bytes.saturating_add(before_bytes);
    shape.file = files.first().copied();
    shape.more_files = files.iter().skip(1).copied().collect();
    job.shape = Some(Box::new(shape));
    job
}

fn content(settings: &Settings) -> Option<Content> {
    if let Some(pattern) = settings.pattern {
        return Some(Content::Pattern(pattern));
    }
    match (settings.zeros, settings.compress_percent) {
        (true, _) | (_, Some(100)) => Some(Content::Zeros),
        // What fio compresses away, we keep: 30 % compressible is 70 % of the size.
        (_, Some(percent @ 1..=99)) => Some(Content::Compressible(100 - percent)),
        _ => None,
    }
}

fn shape(settings: &Settings, extent: &Extent, block_bytes: u32) -> Shape {
    let covering = extent.span_bytes / u64::from(block_bytes) * u64::from(block_bytes);
    let limit = |side: usize| Limit {
        bytes_per_second: settings.rate[side].filter(|&rate| rate > 0).map(|rate| rate as f64),
        iops: settings.rate_iops[side].filter(|&rate| rate > 0).map(|rate| rate as f64),
    };
    Shape {
        read_percent: (settings.reads && settings.writes).then_some(settings.read_percent),
        random_percent: if settings.is_random {
            settings.random_percent.map(|p| p.filter(|&percent| percent < 100))
        } else {
            [None; 2]
        },
        sizes: sizes(settings, block_bytes),
        unaligned: settings.unaligned,
        distribution: settings.distribution,
        visits_once: settings.is_random && settings.visits_once(),
        span_bytes: Some(extent.span_bytes),
        offset_bytes: extent.offset_bytes,
        limits: [limit(0), limit(1)],
        think: (settings.think_us > 0).then_some(Think {
            microseconds: settings.think_us,
            every: settings.think_every,
            spin_microseconds: settings.think_spin_us.min(settings.think_us),
        }),
        flush_every: settings.flush_every.filter(|_| settings.writes),
        verify: settings.verify,
        skips_read_back: !settings.reads_back,
        copies: 1,
        files: settings.files,
        file_order: settings.file_order,
        operations_per_file: settings.operations_per_file,
        stride_bytes: settings.stride_bytes,
        run_length: settings.run_length,
        align_bytes: settings.block_align,
        zones: settings.zones.clone(),
        max_operations: settings
            .max_operations
            .map(|count| count.saturating_mul(u64::from(settings.loops))),
        poisson: settings.poisson,
        ramp_s: Some(settings.ramp_us as f64 / 1e6),
        // More than one round of the region is going round it again.
        time_based: settings.time_based
            || extent.amount_bytes > covering.saturating_mul(extent.files),
        one_at_a_time: settings.submission == Submission::Synchronous,
        is_mapped: settings.is_mapped(),
        // fio invalidates a file each time it has gone through it.
        drops_cache: settings.is_buffered && !settings.keeps_cache && !settings.is_mapped(),
        ..Shape::default()
    }
}
