//! One worker of a copy: a connection to each end, and many pieces under way.
//!
//! A piece is read into a slot's memory and written from there, so its bytes are moved by the system alone.
//! Replies come in any order. What failed to be read is never written: only a read that was answered without
//! an error reaches [`Worker::settle`].

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rubus_host::block::image::Image;
use rubus_host::clock::monotonic_ns;
use rubus_host::net::wait_for_any;
use rubus_nbd::client::{Answer, Client, ClientError, Due, lost, refused};
use rubus_nbd::transport::Transport;
use rubus_nbd::wire::{AllocationFlags, Command, CommandFlags, ErrorCode, Extent};

use super::error::{is_of_the_disk, not_read, not_written, silent};
use super::grid::{MAX_SET_ASIDE, digest, split};
use super::work::{Job, Next, Silence, is_given_up};
use super::{CopyError, Keeper};

/// The journal is brought up to date as often.
pub(super) const CHECKPOINT_NS: u64 = 5_000_000_000;
/// A wait is interrupted as often, to look whether the copy is to end.
const LOOK_MS: u64 = 500;
/// Maximum length of one zeroing.
const MAX_ZEROS: u64 = 1 << 30;
/// With more parts to zero than this, a stretch is zeroed as a whole.
const MAX_PARTS: usize = 64;
/// Shorter zeros in data are written to a server, since each request costs something.
const MIN_HOLE_OF_EXPORT: usize = 32 << 10;
/// The unit of holes in files.
const UNIT_OF_FILE: usize = 4 << 10;

/// A connection to an export.
pub(super) struct Wired<T> {
    pub client: Client<T>,
    name: String,
    answers: Vec<Answer>,
    all_sent: bool,
    heard_ns: u64,
}

impl<T: Transport> Wired<T> {
    pub(super) fn new(client: Client<T>, name: &str) -> Self {
        Wired {
            client,
            name: name.into(),
            answers: Vec::new(),
            all_sent: true,
            heard_ns: monotonic_ns(),
        }
    }

    fn queue(&mut self, due: &Due, memory_bytes: usize) -> Result<(), CopyError> {
        if self.client.in_flight() == 0 {
            self.heard_ns = monotonic_ns();
        }
        self.all_sent = false;
        let queued = self.client.queue(due, memory_bytes);
        queued.map_err(|error| self.lost(&error))
    }

    fn queue_status(&mut self, slot: u32, from: u64, to: u64) -> Result<(), CopyError> {
        if self.client.in_flight() == 0 {
            self.heard_ns = monotonic_ns();
        }
        self.all_sent = false;
        let queued = self.client.queue_status(slot, from, to - from);
        queued.map_err(|error| self.lost(&error))
    }

    /// Moves what can be moved; the answers are in `self.answers`. True when something came.
    fn turn(&mut self, memory: &mut [u8], silence: &Silence) -> Result<bool, CopyError> {
        self.answers.clear();
        if self.client.in_flight() == 0 {
            return Ok(false);
        }
        let turned = self.client.turn(memory, &mut self.answers);
        let turn = turned.map_err(|error| self.lost(&error))?;
        self.all_sent = turn.all_sent;
        if turn.has_received {
            let now_ns = monotonic_ns();
            silence.saw(now_ns.saturating_sub(self.heard_ns));
            self.heard_ns = now_ns;
        }
        Ok(turn.has_received)
    }

    /// One request, when none is in flight; gives its answer if that is an error.
    pub(super) fn ask(
        &mut self,
        command: Command,
        offset: u64,
        memory: &mut [u8],
        cancel: &AtomicBool,
    ) -> Result<Option<Answer>, CopyError> {
        let due = Due {
            slot: 0,
            command,
            flags: CommandFlags::NONE,
            offset,
            length: memory.len() as u32,
            memory_at: 0,
        };
        let mut answers = Vec::new();
        let given_up = |silent| is_given_up(cancel, silent);
        let exchanged = self.client.exchange_unless(&[due], memory, &mut answers, &given_up);
        exchanged.map_err(|error| {
            let is_wanted = cancel.load(Ordering::Relaxed);
            if is_wanted { CopyError::Interrupted } else { self.lost(&error) }
        })?;
        let error = answers.into_iter().find(|a| a.error != ErrorCode::NONE);
        Ok(error)
    }

    fn lost(&self, error: &ClientError) -> CopyError {
        CopyError::Trouble(format!("{}: {}", self.name, lost(error)))
    }

    pub(super) fn failed(&self, what: &str, at: u64, bytes: u64, answer: &Answer) -> CopyError {
        let why = refused(answer, self.client.words());
        CopyError::Trouble(format!(
            "{what} {bytes} bytes at byte {at} of {} failed: {why}",
            self.name
        ))
    }

    fn is_hanging(&self, silence: &Silence) -> bool {
        let silent_ns = monotonic_ns().saturating_sub(self.heard_ns);
        self.client.in_flight() > 0 && silence.is_hanging(silent_ns)
    }

    fn is_silent(&self, doing: &str, now_ns: u64) -> Option<CopyError> {
        let most = self.client.patience().server;
        let waited = u128::from(now_ns.saturating_sub(self.heard_ns));
        let is_silent = self.client.in_flight() > 0 && waited > most.as_nanos();
        is_silent.then(|| silent(doing, &self.name, &ClientError::Silent(most.as_secs())))
    }
}

/// One end, for one worker.
pub(super) enum Side<'a, T> {
    /// Nothing is written: the digests are what is wanted.
    Nowhere,
    /// A file or a device, with its name.
    File(&'a Image, &'a str),
    /// A connection to an export.
    Wire(Box<Wired<T>>),
}

/// What has to be known of a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// It reads as zeros where nothing was written by this copy.
    pub is_zero: bool,
    /// The server makes zeros itself.
    pub can_zero: bool,
    /// The server says what is zero already.
    pub tells: bool,
    /// The least that is written.
    pub unit_bytes: u32,
}

/// One piece or one stretch of zeros under way.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    from: u64,
    to: u64,
    is_zero: bool,
    digest: u64,
    data_bytes: u64,
    /// Requests to the destination that have not been answered.
    left: u32,
}

/// What a request to the destination does.
#[derive(Clone, Debug)]
enum Doing {
    Write { slot: usize, at: u64, bytes: u64 },
    Zero { slot: usize, at: u64, bytes: u64 },
    Ask { slot: usize },
    Flush(Vec<(usize, u64)>),
}

pub(super) struct Worker<'a, T> {
    pub job: &'a Job<'a>,
    pub source: Side<'a, T>,
    pub target: Side<'a, T>,
    /// Who keeps the journal, if this worker is to tell it what has been flushed.
    pub keeper: Option<&'a dyn Keeper>,
    about: Target,
    memory: Vec<u8>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// What the source was asked about.
    asked: Option<(u64, u64)>,
    doing: Vec<Option<Doing>>,
    ranges: Vec<(Range<usize>, bool)>,
    checkpoint_ns: u64,
    is_flushing: bool,
}

impl<'a, T: Transport> Worker<'a, T> {
    pub(super) fn new(
        job: &'a Job<'a>,
        (source, target): (Side<'a, T>, Side<'a, T>),
        about: Target,
        depth: usize,
        keeper: Option<&'a dyn Keeper>,
    ) -> Self {
        let piece = job.grid.piece_bytes as usize;
        Worker {
            job,
            source,
            target,
            keeper,
            about,
            // The last is for zeros and stays so.
            memory: vec![0; (depth + 1) * piece],
            slots: vec![Slot::default(); depth],
            free: (0..depth).rev().collect(),
            asked: None,
            doing: Vec::new(),
            ranges: Vec::new(),
            checkpoint_ns: monotonic_ns(),
            is_flushing: false,
        }
    }

    /// Works until nothing is left to be done, or the job was stopped and what is under way has ended, or an end hangs after the
    /// job was cancelled.
    pub(super) fn run(&mut self) -> Result<(), CopyError> {
        loop {
            let is_over = self.fill()?;
            self.checkpoint()?;
            if self.in_flight() == 0 {
                if is_over {
                    return Ok(());
                }
                self.job.wait();
                continue;
            }
            let from_source = self.turn_source()?;
            let from_target = self.turn_target()?;
            if !from_source && !from_target {
                if self.job.is_cancelled() && (self.source_hangs() || self.target_hangs()) {
                    return Ok(());
                }
                self.wait()?;
            }
        }
    }

    /// Whether the source has not answered for longer than it ever took.
    pub(super) fn source_hangs(&self) -> bool {
        matches!(&self.source, Side::Wire(wired) if wired.is_hanging(&self.job.of_source))
    }

    /// The same of the destination.
    pub(super) fn target_hangs(&self) -> bool {
        matches!(&self.target, Side::Wire(wired) if wired.is_hanging(&self.job.of_target))
    }

    /// Whether requests are left unanswered.
    pub(super) fn is_left(&self) -> bool {
        self.in_flight() > 0
    }

    fn in_flight(&self) -> usize {
        let of = |side: &Side<'_, T>| match side {
            Side::Wire(wired) => wired.client.in_flight(),
            _ => 0,
        };
        of(&self.source) + of(&self.target)
    }

    /// Begins what there is room for; true when there will be nothing more.
    fn fill(&mut self) -> Result<bool, CopyError> {
        while let Some(&slot) = self.free.last() {
            match self.job.next() {
                Next::Piece(from, to) => {
                    self.free.pop();
                    self.read(slot, from, to)?;
                }
                Next::Zeros(from, to) => {
                    self.free.pop();
                    self.zeros(slot, from, to)?;
                }
                Next::Ask(from, to) => {
                    let slot = self.slots.len() as u32;
                    match &mut self.source {
                        Side::Wire(wired) => wired.queue_status(slot, from, to)?,
                        _ => self.job.learnt(from, to, None),
                    }
                    self.asked = Some((from, to));
                }
                Next::Wait => return Ok(false),
                Next::Over => return Ok(true),
            }
        }
        Ok(false)
    }

    fn memory_of(&self, slot: usize) -> usize {
        slot * self.job.grid.piece_bytes as usize
    }

    fn read(&mut self, slot: usize, from: u64, to: u64) -> Result<(), CopyError> {
        self.slots[slot] = Slot { from, to, ..Slot::default() };
        let (at, bytes) = (self.memory_of(slot), (to - from) as usize);
        let memory_bytes = self.memory.len();
        match &mut self.source {
            Side::Wire(wired) => wired.queue(
                &Due {
                    slot: slot as u32,
                    command: Command::Read,
                    flags: CommandFlags::NONE,
                    offset: from,
                    length: bytes as u32,
                    memory_at: at,
                },
                memory_bytes,
            ),
            Side::File(image, name) => {
                match image.read(from, &mut self.memory[at..at + bytes]) {
                    Ok(()) => self.settle(slot)?,
                    Err(error) if self.job.skips && is_of_the_disk(&error) => {
                        self.set_aside(slot)?;
                    }
                    Err(error) => {
                        let why = not_read(name, from, bytes as u64, &error);
                        return Err(self.of_source(is_of_the_disk(&error), why));
                    }
                }
                // What is to be sent is sent while the next piece is read.
                self.turn_target().map(drop)
            }
            Side::Nowhere => Ok(()),
        }
    }

    fn turn_source(&mut self) -> Result<bool, CopyError> {
        let Side::Wire(wired) = &mut self.source else {
            return Ok(false);
        };
        let has_received = wired.turn(&mut self.memory, &self.job.of_source)?;
        let answers = std::mem::take(&mut wired.answers);
        for answer in &answers {
            self.came(answer)?;
        }
        if let Side::Wire(wired) = &mut self.source {
            wired.answers = answers;
        }
        Ok(has_received)
    }

    /// An answer of the source.
    fn came(&mut self, answer: &Answer) -> Result<(), CopyError> {
        let Side::Wire(wired) = &mut self.source else {
            return Ok(());
        };
        let slot = answer.slot as usize;
        if slot == self.slots.len() {
            let extents = wired.client.take_extents(answer.slot);
            if let Some((from, to)) = self.asked.take() {
                let told = (answer.error == ErrorCode::NONE).then_some(&extents[..]);
                self.job.learnt(from, to, told);
            }
            return Ok(());
        }
        let Slot { from, to, .. } = self.slots[slot];
        match answer.error {
            ErrorCode::NONE => self.settle(slot),
            ErrorCode::IO if self.job.skips => self.set_aside(slot),
            error => {
                let why = wired.failed("reading", from, to - from, answer);
                Err(self.of_source(error == ErrorCode::IO, why))
            }
        }
    }

    /// Why a read failed; of the disk that is copied, one could do without these bytes.
    fn of_source(&self, is_of_the_disk: bool, why: CopyError) -> CopyError {
        if is_of_the_disk && !matches!(self.target, Side::Nowhere) {
            CopyError::Unreadable(why.to_string())
        } else {
            why
        }
    }

    /// What the disk of the source does not give is looked at again when all else is copied.
    fn set_aside(&mut self, slot: usize) -> Result<(), CopyError> {
        let Slot { from, to, .. } = self.slots[slot];
        self.free.push(slot);
        if self.job.ledger.set_aside(from, to) {
            return Ok(());
        }
        Err(CopyError::Trouble(format!(
            "more than {MAX_SET_ASIDE} places of the source cannot be read, the last at byte {from}: \
             look whether the disk is still there"
        )))
    }

    /// What was read goes to the destination.
    fn settle(&mut self, slot: usize) -> Result<(), CopyError> {
        let Slot { from, to, .. } = self.slots[slot];
        let at = self.memory_of(slot);
        let bytes = &self.memory[at..at + (to - from) as usize];
        if self.job.has_digests {
            self.slots[slot].digest = digest(&self.job.grid, from, bytes);
        }
        let (unit, least) = match &self.target {
            Side::Nowhere => return self.end_if_done(slot),
            Side::File(..) => (UNIT_OF_FILE, UNIT_OF_FILE),
            Side::Wire(_) => {
                let unit = UNIT_OF_FILE.max(self.about.unit_bytes as usize);
                (unit, MIN_HOLE_OF_EXPORT.max(unit))
            }
        };
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.clear();
        split(bytes, unit, least, |range, is_zero| {
            ranges.push((range, is_zero));
        });
        for (range, is_zero) in &ranges {
            let place = from + range.start as u64;
            if !is_zero {
                self.slots[slot].data_bytes += range.len() as u64;
                self.write(slot, place, at + range.start, range.len())?;
            } else if !self.about.is_zero {
                self.make_zero(slot, place, place + range.len() as u64)?;
            }
        }
        self.ranges = ranges;
        self.end_if_done(slot)
    }

    fn write(&mut self, slot: usize, at: u64, from: usize, bytes: usize) -> Result<(), CopyError> {
        match &mut self.target {
            Side::Nowhere => Ok(()),
            Side::File(image, name) => {
                let written = image.write(at, &self.memory[from..from + bytes]);
                written.map_err(|error| not_written(name, "writing", at, bytes as u64, &error))?;
                // The disk is at work during the copy, and not only in the flush at its end.
                image.start_write_back(at, bytes as u64);
                Ok(())
            }
            Side::Wire(_) => {
                let bytes = bytes as u64;
                let doing = Doing::Write { slot, at, bytes };
                self.send(Command::Write, at, bytes, from, doing)?;
                self.slots[slot].left += 1;
                Ok(())
            }
        }
    }

    /// A stretch of which the source says that it is zeros.
    fn zeros(&mut self, slot: usize, from: u64, to: u64) -> Result<(), CopyError> {
        self.slots[slot] = Slot { from, to, is_zero: true, ..Slot::default() };
        let is_there = self.about.is_zero || matches!(self.target, Side::Nowhere);
        if !is_there && self.about.tells {
            let number = self.number(Doing::Ask { slot });
            self.slots[slot].left += 1;
            if let Side::Wire(wired) = &mut self.target {
                wired.queue_status(number, from, to)?;
            }
        } else if !is_there {
            self.make_zero(slot, from, to)?;
        }
        self.end_if_done(slot)
    }

    fn make_zero(&mut self, slot: usize, from: u64, to: u64) -> Result<(), CopyError> {
        if let Side::File(image, name) = &self.target {
            let made = image.zero(from, to - from, true, false);
            return made.map_err(|error| not_written(name, "zeroing", from, to - from, &error));
        }
        let mut at = from;
        while at < to {
            let zeros_at = self.memory_of(self.slots.len());
            let bytes = if self.about.can_zero {
                (to - at).min(MAX_ZEROS)
            } else {
                (to - at).min(self.job.grid.piece_bytes)
            };
            if self.about.can_zero {
                let doing = Doing::Zero { slot, at, bytes };
                self.send(Command::WriteZeroes, at, bytes, 0, doing)?;
            } else {
                let doing = Doing::Write { slot, at, bytes };
                self.send(Command::Write, at, bytes, zeros_at, doing)?;
            }
            self.slots[slot].left += 1;
            at += bytes;
        }
        Ok(())
    }

    /// The number under which a request goes to the destination.
    fn number(&mut self, doing: Doing) -> u32 {
        let free = self.doing.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.doing.push(None);
            self.doing.len() - 1
        });
        self.doing[number] = Some(doing);
        number as u32
    }

    fn send(
        &mut self,
        command: Command,
        offset: u64,
        bytes: u64,
        memory_at: usize,
        doing: Doing,
    ) -> Result<(), CopyError> {
        let slot = self.number(doing);
        let memory_bytes = self.memory.len();
        let Side::Wire(wired) = &mut self.target else {
            return Ok(());
        };
        let due = Due {
            slot,
            command,
            flags: CommandFlags::NONE,
            offset,
            length: bytes as u32,
            memory_at,
        };
        wired.queue(&due, memory_bytes)
    }

    fn turn_target(&mut self) -> Result<bool, CopyError> {
        let Side::Wire(wired) = &mut self.target else {
            return Ok(false);
        };
        let has_received = wired.turn(&mut self.memory, &self.job.of_target)?;
        let answers = std::mem::take(&mut wired.answers);
        for answer in &answers {
            self.went(answer)?;
        }
        if let Side::Wire(wired) = &mut self.target {
            wired.answers = answers;
        }
        Ok(has_received)
    }

    /// An answer of the destination.
    fn went(&mut self, answer: &Answer) -> Result<(), CopyError> {
        let doing = self.doing.get_mut(answer.slot as usize);
        let (Some(doing), Side::Wire(wired)) = (doing.and_then(Option::take), &mut self.target)
        else {
            return Ok(());
        };
        let is_fine = answer.error == ErrorCode::NONE;
        let slot = match doing {
            Doing::Write { at, bytes, .. } if !is_fine => {
                return Err(wired.failed("writing", at, bytes, answer));
            }
            Doing::Zero { slot, at, bytes } if !is_fine => {
                // Some servers cannot zero that many bytes at once, or none.
                let cannot = [ErrorCode::INVALID, ErrorCode::OVERFLOW, ErrorCode::UNSUPPORTED];
                if !cannot.contains(&answer.error) {
                    return Err(wired.failed("zeroing", at, bytes, answer));
                }
                self.about.can_zero = false;
                self.make_zero(slot, at, at + bytes)?;
                slot
            }
            Doing::Flush(_) if !is_fine => {
                return Err(CopyError::NotDurable(format!(
                    "{} cannot make durable what was written: {}",
                    wired.name,
                    refused(answer, wired.client.words())
                )));
            }
            Doing::Flush(sections) => {
                self.is_flushing = false;
                self.checkpoint_ns = monotonic_ns();
                return self.keeper.map_or(Ok(()), |keeper| keeper.keep(&sections));
            }
            Doing::Ask { slot } => {
                let extents = wired.client.take_extents(answer.slot);
                let Slot { from, to, .. } = self.slots[slot];
                for (from, to) in not_zero(from, to, &extents) {
                    self.make_zero(slot, from, to)?;
                }
                slot
            }
            Doing::Write { slot, .. } | Doing::Zero { slot, .. } => slot,
        };
        self.slots[slot].left -= 1;
        self.end_if_done(slot)
    }

    fn end_if_done(&mut self, slot: usize) -> Result<(), CopyError> {
        let done = self.slots[slot];
        if done.left > 0 {
            return Ok(());
        }
        let ledger = self.job.ledger;
        if done.is_zero {
            ledger.zeros_done(done.from, done.to)
        } else {
            ledger.data_done(done.from, done.to, done.digest, done.data_bytes)
        }
        self.free.push(slot);
        Ok(())
    }

    /// Has the destination make durable what was written, and the journal say so, now and then.
    fn checkpoint(&mut self) -> Result<(), CopyError> {
        let now_ns = monotonic_ns();
        let is_time = now_ns - self.checkpoint_ns >= CHECKPOINT_NS;
        if self.keeper.is_none() || self.is_flushing || !is_time {
            return Ok(());
        }
        // What was answered before the flush is sent is what it makes durable.
        let sections = self.job.ledger.take_finished();
        if sections.is_empty() {
            return Ok(());
        }
        self.is_flushing = true;
        self.send(Command::Flush, 0, 0, 0, Doing::Flush(sections))
    }

    /// Waits until one of the ends can go on.
    fn wait(&mut self) -> Result<(), CopyError> {
        let now_ns = monotonic_ns();
        let mut sockets = Vec::with_capacity(2);
        for (side, doing) in [(&mut self.source, "reading from"), (&mut self.target, "writing to")]
        {
            let Side::Wire(wired) = side else {
                continue;
            };
            if let Some(silent) = wired.is_silent(doing, now_ns) {
                return Err(silent);
            }
            if wired.client.in_flight() == 0 {
                continue;
            }
            let (or_room, name) = (!wired.all_sent, wired.name.clone());
            match wired.client.awaited(or_room) {
                Ok(None) => return Ok(()),
                Ok(Some(awaited)) => sockets.push((awaited.socket, awaited.or_room)),
                Err(error) => {
                    return Err(CopyError::Trouble(format!("{name}: {}", lost(&error))));
                }
            }
        }
        let most = std::time::Duration::from_millis(LOOK_MS);
        wait_for_any(&sockets, most)
            .map(drop)
            .map_err(|error| CopyError::Trouble(format!("cannot wait for the network: {error}")))
    }
}

/// The parts of a destination that do not read as zeros, or of which it is not known.
fn not_zero(from: u64, to: u64, extents: &[Extent]) -> Vec<(u64, u64)> {
    let (mut at, mut parts) = (from, Vec::new());
    for extent in extents {
        let stop = at.saturating_add(extent.length).min(to);
        let is_zero = AllocationFlags(extent.flags).has(AllocationFlags::ZERO);
        if !is_zero && at < stop {
            parts.push((at, stop));
        }
        at = stop;
    }
    if at < to {
        parts.push((at, to));
    }
    if parts.len() > MAX_PARTS { vec![(from, to)] } else { parts }
}
