//! One search under one set-up: who watches the load, steers its group, and ends it in time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::search::{Ask, Search};
use rubus_host::clock;
use rubus_host::files::own_files;
use rubus_host::process::memory_group::MemoryGroup;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::{Access, End, Group, Phase, Pressure, Rung, SetUpKind};

use super::counters;
use super::fence::{Fence, Guard, Scope};
use super::keeper::{Deed, Keeper};
use super::load_process::{Answer, Line, Silence, Wish};
use super::set_up::{self, Made, Pool, SetUpInputs, pools_now};
use crate::group::{ADVICE, Place};

/// How often the group is steered and the budget looked at.
const TICK: Duration = Duration::from_millis(10);
/// By how much the limit is lowered at once: the kernel swaps that out before it goes on.
const LOWERED_AT_ONCE: u64 = 4 << 20;
/// Of a machine whose pool leaves less than this share of memory to work in, nothing is left.
const MIN_LEFT: f64 = 1.0 / 8.0;
/// Swap of which less than this share is free is full: the rest goes too fast to be seen.
const FULL: f64 = 0.05;
/// How long the kernel may refuse to take memory away before there is none to be taken.
const STUBBORN: Duration = Duration::from_secs(3);
/// Touches of a phase at most: enough for the 99.9th percentile, few enough for a card's life.
const MAX_TOUCHES: u64 = 20_000;
/// Filling may take this many times the seconds of a phase, and at least `MIN_FILLING_S`.
const FILLING: f64 = 20.0;
const MIN_FILLING_S: f64 = 120.0;

/// What is to be found out, and how.
pub struct SearchPlan<'a> {
    /// Where it is done.
    pub scope: &'a Scope,
    /// Memory that is 1.0 times.
    pub memory_bytes: u64,
    /// Percent to which pages compress.
    pub content_percent: u32,
    /// A slower touch is slow.
    pub limit_ns: u64,
    /// Bytes that may be written to swap on disks.
    pub budget_bytes: u64,
    /// Seconds of a phase.
    pub seconds: f64,
    /// The largest working set over memory.
    pub most: f64,
    /// Of everything random.
    pub seed: u64,
    /// The user wants no more.
    pub cancel: &'a AtomicBool,
}

/// The set-up to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that the machine has.
    Own,
    /// One that is made for the measurement and removed.
    Temporary(SetUpKind),
}

/// Finds out whether a group can be made at all, and what it can do.
///
/// # Errors
/// When it cannot, with what to do.
pub fn try_group(place: &Place) -> anyhow::Result<bool> {
    let mut keeper = Keeper::start()?;
    let group = MemoryGroup::planned(place.version, &place.parent, place.is_own);
    keeper.promise(&Deed::group(&group))?;
    let tried = group.make().and_then(|()| group.limit(1 << 40));
    let counts_zswap = group.counts_zswap();
    keeper.finish()?;
    match tried {
        Ok(()) => Ok(counts_zswap),
        Err(error) => {
            anyhow::bail!("no group with limited memory can be made here ({error}); {ADVICE}")
        }
    }
}

/// Measures one set-up, and leaves nothing of it.
///
/// # Errors
/// If it could not begin, or could not be removed.
pub fn run(
    which: Which,
    course: &SearchPlan<'_>,
    inputs: &SetUpInputs<'_>,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Pressure> {
    let mut keeper = Keeper::start()?;
    let mut made = match which {
        Which::Own => set_up::own(inputs.machine),
        Which::Temporary(kind) => set_up::make(kind, inputs, &mut keeper)?,
    };
    let (fence, kernel_counts_pool) = match course.scope {
        Scope::Group(place) => group(place, course, &mut made, inputs.machine, &mut keeper)?,
        Scope::Machine(allowance) => {
            let guard = Guard::post(*allowance, &made)?;
            (Fence::Machine(Box::new(guard)), false)
        }
    };
    let mut pressure = search(course, &made, fence, kernel_counts_pool, tell)?;
    // What was measured holds all the same.
    if let Err(error) = keeper.finish() {
        pressure.remarks.push(format!("{error:#}"));
    }
    Ok(pressure)
}

/// A group for a set-up, and whether the kernel counts the compressed pool to it.
fn group(
    place: &Place,
    course: &SearchPlan<'_>,
    made: &mut Made,
    machine: &Machine,
    keeper: &mut Keeper,
) -> anyhow::Result<(Fence, bool)> {
    let group = MemoryGroup::planned(place.version, &place.parent, place.is_own);
    // Last, so that it is undone first: swap cannot be turned off while a program fills it.
    let has_zswap = made.pools.contains(&Pool::Zswap);
    if has_zswap && place.version == 1 {
        set_up::scale_pool(made, course.memory_bytes, machine, keeper);
    }
    keeper.promise(&Deed::group(&group))?;
    group.make()?;
    let kernel_counts_pool = has_zswap && made.pools.len() == 1 && group.counts_zswap();
    if made.set_up.kind == SetUpKind::None {
        group.forbid_swap()?;
    }
    if let (true, Some(share)) = (kernel_counts_pool, made.set_up.pool_share) {
        group.limit_zswap((share * course.memory_bytes as f64) as u64)?;
    } else if made.set_up.kind != SetUpKind::Zswap && group.counts_zswap() && !has_zswap {
        group.limit_zswap(0)?;
    }
    Ok((Fence::Group(group), kernel_counts_pool))
}

fn search(
    course: &SearchPlan<'_>,
    made: &Made,
    fence: Fence,
    kernel_counts_pool: bool,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Pressure> {
    let most = course.most.min(room(course, made));
    let mut search = Search::new(most, &Access::ALL);
    let mut watch = Watch::new(course, made, fence, kernel_counts_pool);
    let mut load: Option<Line> = None;
    while let Some(ask) = search.ask() {
        tell(&format!(
            "{}: {:.2} × {}",
            made.set_up.title,
            ask.overcommit,
            rubus_vocabulary::units::bytes_iec(course.memory_bytes)
        ));
        if ask.fresh || load.is_none() {
            drop(load.take());
            load = Some(watch.begin(most)?);
        }
        let rung = match &mut load {
            Some(line) => watch.rung(ask, line),
            None => break,
        };
        if rung.ended_by.is_some() {
            drop(load.take());
        }
        search.tell(rung);
    }
    drop(load);
    let written_bytes = watch.written_bytes();
    let mut remarks = made.remarks.clone();
    remarks.extend(watch.fence.remarks());
    if most < course.most && search.carries().iter().any(|found| found.beyond.is_none()) {
        let whose = if watch.fence.has_limit() { "the group's" } else { "that" };
        remarks.push(format!("the swap holds no more than {most:.2} times {whose} memory needs"));
    }
    Ok(Pressure {
        set_up: made.set_up.clone(),
        group: Group {
            version: watch.fence.version(),
            memory_bytes: course.memory_bytes,
            reserve_bytes: watch.fence.reserve_bytes(),
            // Of a whole machine everything is counted to it.
            kernel_counts_pool: kernel_counts_pool || !watch.fence.has_limit(),
            swappiness: swappiness(),
        },
        content_percent: course.content_percent,
        measured_ratio: watch.ratio,
        limit_ns: course.limit_ns,
        carries: search.carries(),
        rungs: search.into_rungs(),
        written_bytes,
        budget_bytes: if made.writes_to_disk() { course.budget_bytes } else { 0 },
        remarks,
    })
}

/// The largest working set that memory and free swap hold together, over memory.
fn room(course: &SearchPlan<'_>, made: &Made) -> f64 {
    let free = counters::available().unwrap_or_default().1;
    match made.set_up.kind {
        // One step too far, to see that it is.
        SetUpKind::None => 1.2,
        _ => {
            let swap = free.min(made.set_up.swap_bytes);
            // Some of it is kept for others, and for what the kernel rounds.
            let times = 1.0 + 0.95 * swap as f64 / course.memory_bytes as f64;
            (times * 100.0).floor() / 100.0
        }
    }
}

fn swappiness() -> Option<u32> {
    let text = own_files::text(Path::new("/proc/sys/vm/swappiness")).ok()?;
    text.trim().parse().ok()
}

/// Who looks after the group.
struct Watch<'a> {
    course: &'a SearchPlan<'a>,
    made: &'a Made,
    fence: Fence,
    kernel_counts_pool: bool,
    page_bytes: u64,
    pool_before: (u64, u64),
    fullest_pool: u64,
    /// Of the fullest pool.
    ratio: Option<f64>,
    pages_out_before: Option<u64>,
    /// What the group has besides pages of the working set.
    overhead_bytes: u64,
    limit_now: u64,
    refused_since: Option<Instant>,
    /// The least swap that was free since the program began.
    min_free_swap: u64,
    /// Pages that the program has.
    grown_pages: u64,
}

impl<'a> Watch<'a> {
    fn new(
        course: &'a SearchPlan<'a>,
        made: &'a Made,
        fence: Fence,
        kernel_counts_pool: bool,
    ) -> Self {
        Watch {
            course,
            made,
            fence,
            kernel_counts_pool,
            page_bytes: rustix::param::page_size() as u64,
            pool_before: pools_now(&made.pools),
            fullest_pool: 0,
            ratio: None,
            pages_out_before: counters::read().swapped_out,
            overhead_bytes: 0,
            limit_now: u64::MAX,
            refused_since: None,
            min_free_swap: u64::MAX,
            grown_pages: 0,
        }
    }

    /// Bytes that went to swap devices since the beginning.
    fn written_bytes(&self) -> u64 {
        let now = counters::read().swapped_out;
        let pages = now.zip(self.pages_out_before);
        pages.map_or(0, |(now, before)| now.saturating_sub(before) * self.page_bytes)
    }

    /// A fresh load in the group, with nothing yet.
    fn begin(&mut self, most: f64) -> anyhow::Result<Line> {
        let mut line = Line::start()?;
        self.fence.take(line.process())?;
        self.pool_before = pools_now(&self.made.pools);
        self.refused_since = None;
        self.min_free_swap = u64::MAX;
        self.grown_pages = 0;
        let most_bytes = (most * self.course.memory_bytes as f64) as u64;
        line.wish(&Wish::Begin {
            most_bytes: most_bytes.next_multiple_of(self.page_bytes),
            page_bytes: self.page_bytes,
            content_percent: self.course.content_percent,
            seed: self.course.seed,
        });
        match line.answer(Duration::from_secs(10)) {
            Ok(Answer::Ready) => {}
            Ok(Answer::Unable(why)) => anyhow::bail!("{why}"),
            _ => anyhow::bail!("the program that takes memory does not answer"),
        }
        self.overhead_bytes = self.fence.usage_bytes();
        Ok(line)
    }

    /// One size of the working set, from filling it to touching it.
    fn rung(&mut self, ask: Ask, line: &mut Line) -> Rung {
        let wanted = ask.overcommit * self.course.memory_bytes as f64;
        let pages = (wanted / self.page_bytes as f64).round() as u64;
        let mut rung = Rung {
            overcommit: ask.overcommit,
            working_set_bytes: pages * self.page_bytes,
            grown_s: 0.0,
            pool_bytes: 0,
            stored_bytes: 0,
            phases: Vec::new(),
            ended_by: None,
        };
        rung.ended_by = self.fill(pages, line, &mut rung).err();
        if rung.ended_by.is_none() {
            for access in Access::ALL {
                match self.touch(access, line) {
                    Ok(phase) => rung.phases.push(phase),
                    Err(end) => {
                        rung.ended_by = Some(end);
                        break;
                    }
                }
            }
        }
        rung
    }

    fn fill(&mut self, pages: u64, line: &mut Line, rung: &mut Rung) -> Result<(), End> {
        let wanted = self.wanted_limit();
        self.set_limit(wanted)?;
        let begun = clock::now();
        self.grow(pages, line)?;
        self.settle()?;
        rung.grown_s = begun.elapsed().as_secs_f64();
        let now = pools_now(&self.made.pools);
        rung.stored_bytes = now.1.saturating_sub(self.pool_before.1);
        rung.pool_bytes = if self.kernel_counts_pool {
            self.fence.zswap_bytes()
        } else {
            now.0.saturating_sub(self.pool_before.0)
        };
        // Small pools are mostly rounding.
        if rung.pool_bytes > self.fullest_pool.max(self.course.memory_bytes / 50) {
            self.fullest_pool = rung.pool_bytes;
            self.ratio = Some(rung.stored_bytes as f64 / rung.pool_bytes as f64);
        }
        if self.grown_pages < pages {
            return Err(End::TooSlow);
        }
        Ok(())
    }

    /// Has `pages` pages filled, or as many as there is time for, and looks each time the allowance is used up: however
    /// late this program gets to look, the other one has not continued meanwhile.
    fn grow(&mut self, pages: u64, line: &mut Line) -> Result<(), End> {
        let most_s = (FILLING * self.course.seconds).max(MIN_FILLING_S);
        let patience = Duration::from_secs_f64(most_s * 2.0 + 10.0);
        let at_once = (self.fence.unseen_bytes() / self.page_bytes).max(1);
        let begun = clock::now();
        while self.grown_pages < pages {
            let wanted = self.grown_pages.saturating_add(at_once).min(pages);
            let left_s = (most_s - begun.elapsed().as_secs_f64()).max(0.0);
            line.wish(&Wish::Grow { pages: wanted, most_s: left_s });
            self.grown_pages = match self.wait(line, patience)? {
                Answer::Grown(grown) => grown,
                answer => return Err(unexpected(&answer)),
            };
            self.tick()?;
            if self.grown_pages < wanted {
                break;
            }
        }
        Ok(())
    }

    /// What the limit should be: memory, less what the pool has taken of it where the kernel does not count that.
    fn wanted_limit(&self) -> u64 {
        if !self.fence.has_limit() {
            return u64::MAX;
        }
        let full = self.full_limit();
        if self.kernel_counts_pool || self.made.pools.is_empty() {
            return full;
        }
        let pool = pools_now(&self.made.pools).0.saturating_sub(self.pool_before.0);
        full.saturating_sub(pool)
    }

    /// Memory, and what the group has besides: the program itself, page tables of twice its memory, and what each core
    /// takes ahead.
    fn full_limit(&self) -> u64 {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        self.course.memory_bytes
            + self.overhead_bytes
            + cores * (256 << 10)
            + self.course.memory_bytes / 256
    }

    fn set_limit(&mut self, bytes: u64) -> Result<(), End> {
        match self.fence.limit(bytes) {
            Ok(()) => {
                self.limit_now = bytes;
                self.refused_since = None;
                Ok(())
            }
            Err(error) => {
                let since = *self.refused_since.get_or_insert_with(clock::now);
                if since.elapsed() <= STUBBORN {
                    Ok(())
                } else if error.reason.contains("reclaimed") {
                    Err(End::OutOfMemory)
                } else {
                    Err(End::Failed { why: error.to_string() })
                }
            }
        }
    }

    /// One look: the limit follows the pool, and what must not go on is ended.
    fn tick(&mut self) -> Result<(), End> {
        if self.course.cancel.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        if self.made.writes_to_disk() && self.written_bytes() > self.course.budget_bytes {
            return Err(End::Budget);
        }
        self.fence.look(TICK)?;
        if let Some((_, free)) = counters::available() {
            self.min_free_swap = self.min_free_swap.min(free);
        }
        let wanted = self.wanted_limit();
        if (wanted as f64) < MIN_LEFT * self.course.memory_bytes as f64 {
            return Err(End::OutOfMemory);
        }
        if wanted == self.limit_now {
            return Ok(());
        }
        self.set_limit(wanted.max(self.limit_now.saturating_sub(LOWERED_AT_ONCE)))
    }

    /// Until the limit has come where the pool wants it.
    fn settle(&mut self) -> Result<(), End> {
        let give_up = clock::now() + Duration::from_secs(30);
        self.fence.begin_to_look();
        loop {
            self.tick()?;
            let apart = self.wanted_limit().abs_diff(self.limit_now);
            if apart < self.course.memory_bytes / 200 {
                return Ok(());
            }
            if clock::now() > give_up {
                return Err(End::TooSlow);
            }
            clock::sleep(TICK);
        }
    }

    /// The answer to the last wish, with an eye on everything meanwhile.
    fn wait(&mut self, line: &mut Line, patience: Duration) -> Result<Answer, End> {
        let give_up = clock::now() + patience;
        let killed_before = self.fence.ended_for_want();
        self.fence.begin_to_look();
        loop {
            match line.answer(TICK) {
                Ok(Answer::Unable(why)) => return Err(End::Failed { why }),
                Ok(answer) => return Ok(answer),
                Err(Silence::NotYet) => self.tick()?,
                Err(Silence::Gone) => {
                    let killed = self.fence.ended_for_want();
                    let is_full = self.made.set_up.swap_bytes > 0
                        && (self.min_free_swap as f64) < FULL * self.made.set_up.swap_bytes as f64;
                    let is_for_want = killed > killed_before || killed.is_none();
                    return Err(if !is_for_want {
                        let why = "the program that takes memory was ended from outside".into();
                        End::Failed { why }
                    } else if is_full {
                        End::SwapFull
                    } else {
                        End::OutOfMemory
                    });
                }
            }
            if clock::now() > give_up {
                return Err(End::TooSlow);
            }
        }
    }

    fn touch(&mut self, access: Access, line: &mut Line) -> Result<Phase, End> {
        let before = counters::read();
        line.wish(&Wish::Touch {
            access,
            warm_up_s: self.course.seconds / 5.0,
            seconds: self.course.seconds,
            most: MAX_TOUCHES,
            limit_ns: self.course.limit_ns,
            seed: self.course.seed,
        });
        let patience = Duration::from_secs_f64(self.course.seconds * 10.0 + 60.0);
        match self.wait(line, patience)? {
            Answer::Touched(mut phase) => {
                phase.counters = counters::read().since(&before);
                Ok(*phase)
            }
            answer => Err(unexpected(&answer)),
        }
    }
}

fn unexpected(answer: &Answer) -> End {
    End::Failed { why: format!("the program that takes memory answered {answer:?}") }
}

/// Memory of the group that suits this machine: an eighth of its memory, at most 256 MiB; more where zswap's pool is
/// limited in whole percents of the machine's memory and must be a share of the group's.
pub fn usual_memory(machine: &Machine, version: Option<u32>, has_zswap: bool) -> Option<u64> {
    let total = machine.memory.total_bytes.get()?;
    let usual = (total / 8).min(256 << 20);
    let least = match (has_zswap && version == Some(1), set_up::pool_percent(machine)) {
        (true, Some(percent)) if percent > 0.0 => (total as f64 / percent) as u64,
        _ => 0,
    };
    let whole = 1 << 20;
    Some(usual.max(least).div_ceil(whole) * whole)
}
