//! Clones on a made-up machine whose server can be killed, and whose power can be cut, before, in and after every write.
//!
//! The machine knows of each sector what programs see, what is on stable storage, and every state in between that a
//! cut could leave: whatever was written since the last sync may have reached the disk or not, sector by sector, in any
//! order. That is more than any filesystem allows itself.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::clone::CloneDisk;
use super::format::{GoldenId, Header, Kind, Layout, PAGE_BLOCKS};
use super::open::{OpenError, Surroundings, open, write_new};
use super::store::{Golden, Memory, Store, Words};
use crate::identity::{Identity, Uuid};
use crate::server::disk::{Disk, Zeroing};
use crate::server::place::Place;

mod damage;

pub(super) const SECTOR: u64 = 512;
type Sector = [u8; SECTOR as usize];
const ZEROS: Sector = [0; SECTOR as usize];

/// Numbers that look random (splitmix64).
pub(super) struct Dice(pub u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A golden image of any size: each byte is a function of its place, and never 0.
pub(super) struct Made(pub u64);

pub(super) fn golden_byte(at: u64) -> u8 {
    (Dice(at / 8).next() >> (at % 8 * 8)) as u8 | 1
}

impl Golden for Made {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for (at, byte) in (offset..).zip(into) {
            *byte = if at < self.0 { golden_byte(at) } else { 0 };
        }
        Ok(())
    }

    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, into)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        Ok((offset < self.0).then_some((offset, self.0)))
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}

    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct State {
    /// What programs see.
    seen: BTreeMap<u64, Sector>,
    durable: BTreeMap<u64, Sector>,
    /// What each sector has been since the last sync, the present included.
    since: BTreeMap<u64, Vec<Sector>>,
    events: u64,
    /// The server dies before this event; the write that it is may be done in part.
    dies_at: Option<u64>,
    is_dead: bool,
    /// This event fails.
    fails_at: Option<(u64, i32)>,
    torn: u64,
    /// The file was cut off there.
    length: Option<u64>,
}

impl State {
    /// Counts an event; how much of it is done, out of 256, or why nothing is.
    fn event(&mut self) -> io::Result<u64> {
        if self.is_dead {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.events += 1;
        if self.dies_at == Some(self.events) {
            self.is_dead = true;
            return Ok(self.torn % 256);
        }
        match self.fails_at {
            Some((event, number)) if event == self.events => {
                Err(io::Error::from_raw_os_error(number))
            }
            _ => Ok(256),
        }
    }

    fn put(&mut self, sector: u64, bytes: Sector) {
        self.seen.insert(sector, bytes);
        self.since.entry(sector).or_default().push(bytes);
    }
}

/// A file on the made-up machine, which stays when its server goes.
#[derive(Clone, Default)]
pub(super) struct Medium(Arc<Mutex<State>>);

impl Medium {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }

    /// How many writes and syncs there were.
    pub(super) fn events(&self) -> u64 {
        self.with(|state| state.events)
    }

    /// The server is gone, or the next one comes.
    fn restart_server(&self) {
        self.with(|state| {
            state.is_dead = false;
            state.dies_at = None;
            state.fails_at = None;
        });
    }

    /// The power is cut: of what was not synced each sector is any of its states.
    fn cut_power(&self, dice: &mut Dice) {
        self.restart_server();
        // All that was written, nothing, only the first sectors of the file (where the map is), only the others; and all
        // mixtures.
        let how = dice.below(6);
        self.with(|state| {
            for (sector, states) in std::mem::take(&mut state.since) {
                let is_map = sector * SECTOR < 1 << 20;
                let choice = match how {
                    0 => states.len(),
                    1 => 0,
                    2 if is_map => states.len(),
                    3 if !is_map => states.len(),
                    2 | 3 => 0,
                    _ => dice.below(states.len() as u64 + 1) as usize,
                };
                if let Some(state_then) = choice.checked_sub(1).map(|at| states[at]) {
                    state.durable.insert(sector, state_then);
                }
            }
            state.seen = state.durable.clone();
        });
    }

    fn for_each_sector(
        &self,
        offset: u64,
        bytes: u64,
        mut change: impl FnMut(u64, &mut [u8]),
    ) -> io::Result<()> {
        self.with(|state| {
            let part = state.event()?;
            let end = offset + bytes * part / 256;
            let mut at = offset;
            while at < end {
                let sector = at / SECTOR;
                let to = ((sector + 1) * SECTOR).min(end);
                let mut contents = state.seen.get(&sector).copied().unwrap_or(ZEROS);
                change(at - offset, &mut contents[(at % SECTOR) as usize..][..(to - at) as usize]);
                state.put(sector, contents);
                at = to;
            }
            if state.is_dead { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
        })
    }
}

impl Store for Medium {
    fn length(&self) -> io::Result<u64> {
        Ok(self.with(|state| state.length.unwrap_or(u64::MAX)))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.with(|state| {
            for (at, byte) in (offset..).zip(into) {
                let sector = state.seen.get(&(at / SECTOR)).unwrap_or(&ZEROS);
                *byte = sector[(at % SECTOR) as usize];
            }
            Ok(())
        })
    }

    fn read_ready_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.for_each_sector(offset, all.len() as u64, |from, into| {
            into.copy_from_slice(&all[from as usize..][..into.len()]);
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state| {
            let done = state.event();
            if done.is_err() && !state.is_dead {
                // What could not be written is dropped from memory by some filesystems, and clean in others.
                for (sector, states) in std::mem::take(&mut state.since) {
                    if states.len() % 2 == 0 {
                        let durable = state.durable.get(&sector).copied().unwrap_or(ZEROS);
                        state.seen.insert(sector, durable);
                    }
                }
            }
            done?;
            if state.is_dead {
                return Err(io::Error::from_raw_os_error(5));
            }
            for sector in std::mem::take(&mut state.since).into_keys() {
                let seen = state.seen.get(&sector).copied().unwrap_or(ZEROS);
                state.durable.insert(sector, seen);
            }
            Ok(())
        })
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.for_each_sector(offset, bytes, |_, into| into.fill(0))
    }

    fn zero_in_place(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_zeros(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.punch(offset, bytes)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(Some((offset, u64::MAX)))
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}

/// Memory that outlives the server and not the power.
pub(super) struct Ram {
    words: Mutex<HashMap<String, Arc<[AtomicU64]>>>,
    medium: Medium,
}

impl Ram {
    /// A server that is dead changes nothing more.
    fn change(&self, change: impl FnOnce(&mut HashMap<String, Arc<[AtomicU64]>>)) {
        if !self.medium.with(|state| state.is_dead) {
            change(&mut self.words.lock().unwrap());
        }
    }
}

impl Memory for Ram {
    fn create(&self, name: &str, count: usize, _: Option<&Place>) -> io::Result<Words> {
        let Words::Heap(words) = Words::zeros(count) else {
            return Err(io::ErrorKind::Other.into());
        };
        self.change(|all| drop(all.insert(name.into(), words.clone())));
        Ok(Words::Heap(words))
    }

    fn find(&self, name: &str, count: usize, _: Option<&Place>) -> Option<Words> {
        let words = self.words.lock().unwrap().get(name)?.clone();
        (words.len() == count).then_some(Words::Heap(words))
    }

    fn forget(&self, name: &str) {
        self.change(|all| drop(all.remove(name)));
    }
}

/// The machine, and what a client may rely on.
pub(super) struct Rig {
    pub(super) medium: Medium,
    ram: Arc<Ram>,
    size: u64,
    randoms: AtomicU64,
    /// What the client wrote, in its latest state; everything else is the golden image's.
    latest: BTreeMap<u64, u8>,
    /// All states of a byte since the last flush that was acknowledged, the one before included.
    since: BTreeMap<u64, Vec<u8>>,
}

impl Rig {
    pub(super) fn new(size: u64) -> Self {
        let medium = Medium::default();
        write_new(&medium, &header(size)).unwrap();
        medium.sync().unwrap();
        let ram = Ram { words: Mutex::default(), medium: medium.clone() };
        Rig {
            medium,
            ram: Arc::new(ram),
            size,
            randoms: AtomicU64::new(100),
            latest: BTreeMap::new(),
            since: BTreeMap::new(),
        }
    }

    pub(super) fn open(&self) -> Result<CloneDisk<Medium>, OpenError> {
        let random = || Ok(Uuid(u128::from(self.randoms.fetch_add(1, Ordering::Relaxed))));
        let golden_id = header(self.size).golden;
        let around = Surroundings {
            golden: Arc::new(Made(self.size)),
            golden_id: &golden_id,
            memory: self.ram.clone(),
            place: None,
            random: &random,
        };
        open(self.medium.clone(), &around)
    }

    fn byte(&self, at: u64) -> u8 {
        self.latest.get(&at).copied().unwrap_or_else(|| golden_byte(at))
    }

    /// These bytes may become this; they are it when it was acknowledged.
    fn wrote(&mut self, offset: u64, bytes: impl Iterator<Item = u8>, acknowledged: bool) {
        for (at, byte) in (offset..).zip(bytes) {
            let before = self.byte(at);
            let states = self.since.entry(at).or_insert_with(|| vec![before]);
            states.push(byte);
            if acknowledged {
                self.latest.insert(at, byte);
            }
        }
    }

    /// Compares all that was ever written, and what lies around it. After a kill everything acknowledged is there;
    /// after a cut or a failed sync each byte is one of its states since the last flush. Gives whether anything
    /// acknowledged is gone.
    fn verify(
        &mut self,
        disk: &CloneDisk<Medium>,
        unsure: Option<(u64, u64)>,
        may_lose: bool,
        what: &str,
    ) -> bool {
        let mut places: Vec<u64> = self.latest.keys().chain(self.since.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        let blocks: std::collections::BTreeSet<u64> = places.iter().map(|at| at / 4096).collect();
        let mut has_lost = false;
        for block in blocks {
            let from = block * 4096;
            let mut seen = vec![0; (self.size - from).min(4096) as usize];
            disk.read(from, &mut seen).unwrap();
            for (at, byte) in (from..).zip(seen) {
                let is_unsure = unsure.is_some_and(|(from, to)| (from..to).contains(&at));
                let states = self.since.get(&at);
                let is_state = states.is_some_and(|states| states.contains(&byte));
                if byte != self.byte(at) {
                    assert!(
                        (is_unsure || may_lose) && is_state,
                        "{what}: byte {at} is {byte} and was {} and {states:?}",
                        self.byte(at)
                    );
                    has_lost |= !is_unsure;
                    self.latest.insert(at, byte);
                }
            }
        }
        has_lost
    }

    /// One operation of a client, as the dice fall. Gives the bytes that are in doubt when it failed.
    fn operate(
        &mut self,
        disk: &CloneDisk<Medium>,
        dice: &mut Dice,
    ) -> Result<(), Option<(u64, u64)>> {
        if dice.below(5) == 0 {
            return match disk.flush() {
                Ok(()) => {
                    self.since.clear();
                    Ok(())
                }
                Err(_) => Err(None),
            };
        }
        // Around the beginning, a border between pages of the map, and the end.
        let places = [0, PAGE_BLOCKS * 4096 - 3 * 4096, self.size.saturating_sub(5 * 4096)];
        let from = places[dice.below(3) as usize] + dice.below(5 * 4096);
        let offset = match dice.below(3) {
            0 => from,
            1 => from / SECTOR * SECTOR,
            _ => from / 4096 * 4096,
        }
        .min(self.size - 1);
        let length = match dice.below(3) {
            0 => 1 + dice.below(3000),
            1 => SECTOR * (1 + dice.below(6)),
            _ => 4096 * (1 + dice.below(2)),
        }
        .min(self.size - offset);
        let doubt = Some((offset, offset + length));
        match dice.below(6) {
            0 => {
                let how = Zeroing { may_punch: dice.below(2) == 0, only_if_fast: false };
                let done = disk.zero(offset, length, how);
                self.wrote(offset, (0..length).map(|_| 0), done.is_ok());
                done.map_err(|_| doubt)
            }
            1 => {
                // It may become zeros, and need not.
                let done = disk.trim(offset, length);
                let mut seen = vec![0; length as usize];
                self.wrote(offset, seen.iter().copied(), false);
                if done.is_ok() {
                    disk.read(offset, &mut seen).unwrap();
                    for (at, byte) in (offset..).zip(seen) {
                        assert!(byte == 0 || byte == self.byte(at), "a trim made {at} {byte}");
                        self.latest.insert(at, byte);
                    }
                }
                done.map_err(|_| doubt)
            }
            _ => {
                let bytes: Vec<u8> = (0..length).map(|_| dice.next() as u8).collect();
                let done = disk.write(offset, &bytes);
                self.wrote(offset, bytes.into_iter(), done.is_ok());
                done.map_err(|_| doubt)
            }
        }
    }
}

pub(super) fn header(size: u64) -> Header {
    Header {
        clone: Uuid(1),
        generation: 1,
        epoch: Uuid(2),
        kind: Kind::Map,
        in_use: false,
        golden: GoldenId { size_bytes: size, changed_ns: None, fingerprint: [0; 32] },
        golden_path: Vec::new(),
        note: None,
    }
}

/// More than one page of the map, and a block at the end that is cut short.
const SIZE: u64 = PAGE_BLOCKS * 4096 + 40 * 4096 + 1536;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    /// Killed, and its memory was swept: its file seemed to be gone.
    Swept,
    PowerCut,
    Closed,
}

/// Runs a client until the server dies at an event of this run, or closes; then looks at what is left.
fn one_run(
    rig: &mut Rig,
    dice: &mut Dice,
    dies_at: Option<u64>,
    end: End,
    before: &mut Option<Identity>,
) {
    let what = format!("{end:?} at event {dies_at:?}");
    let torn = dice.next();
    rig.medium.with(|state| {
        state.dies_at = dies_at.map(|event| state.events + event);
        state.torn = torn;
    });
    let mut doubt = None;
    let mut served = *before;
    if let Ok(disk) = rig.open() {
        served = Some(disk.identity());
        for _ in 0..12 {
            if let Err(bytes) = rig.operate(&disk, dice) {
                doubt = bytes;
                break;
            }
        }
        if end == End::Closed && disk.close().is_ok() {
            rig.since.clear();
        }
    }
    match end {
        End::PowerCut => {
            rig.medium.cut_power(dice);
            rig.ram.words.lock().unwrap().clear();
        }
        End::Swept => {
            rig.medium.restart_server();
            rig.ram.words.lock().unwrap().clear();
        }
        End::Killed | End::Closed => rig.medium.restart_server(),
    }
    let may_lose = matches!(end, End::PowerCut | End::Swept);
    let disk = rig.open().expect("it can always be opened again");
    let has_lost = rig.verify(&disk, doubt, may_lose, &what);
    let now = disk.identity();
    if let Some(served) = served {
        assert_eq!((now.export, now.generation), (served.export, served.generation));
        assert!(!has_lost || now.boot != served.boot, "{what}: a loss that is not told");
        assert!(may_lose || now.boot == served.boot, "{what}: no loss was told");
    }
    *before = Some(now);
    // What is there now is where the next run starts from; make that sure.
    disk.flush().unwrap();
    rig.since.clear();
    if dice.below(2) == 0 {
        disk.close().unwrap();
    }
}

#[test]
fn a_crash_at_every_write_of_data_and_map_loses_nothing_that_was_flushed() {
    for (end, seeds) in [(End::Killed, 4), (End::Swept, 2), (End::PowerCut, 4)] {
        for seed in 0..seeds {
            for dies_at in 1..40 {
                let mut rig = Rig::new(SIZE);
                let mut dice = Dice(seed);
                one_run(&mut rig, &mut dice, Some(dies_at), end, &mut None);
            }
        }
    }
}

#[test]
fn crash_after_crash_loses_nothing_that_was_flushed() {
    for seed in 0..20 {
        let (mut rig, mut dice) = (Rig::new(SIZE), Dice(1000 + seed));
        let mut identity = None;
        for _ in 0..8 {
            let ends = [End::Killed, End::Swept, End::PowerCut, End::Closed];
            let end = ends[dice.below(4) as usize];
            let dies_at = (end != End::Closed).then(|| 1 + dice.below(40));
            one_run(&mut rig, &mut dice, dies_at, end, &mut identity);
        }
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    for seed in 0..3 {
        for fails_at in 1..40 {
            let (mut rig, mut dice) = (Rig::new(SIZE), Dice(seed));
            let disk = rig.open().unwrap();
            let before = disk.identity();
            rig.medium.with(|state| state.fails_at = Some((state.events + fails_at, 28)));
            let mut has_failed = false;
            for _ in 0..12 {
                match rig.operate(&disk, &mut dice) {
                    Ok(()) => {}
                    // A flush that failed ends it; a write that failed leaves everything else as it was.
                    Err(None) => {
                        has_failed = true;
                        break;
                    }
                    Err(doubt) => {
                        rig.verify(&disk, doubt, false, "full");
                    }
                }
            }
            let told = disk.identity();
            assert_eq!(
                told.boot != before.boot,
                has_failed,
                "clients that come back while it is broken are told"
            );
            if has_failed {
                assert!(disk.write(0, &[1]).is_err(), "a broken clone takes nothing more");
                assert!(disk.flush().is_err());
            }
            drop(disk);
            rig.medium.restart_server();
            let disk = rig.open().unwrap();
            let has_lost = rig.verify(&disk, None, has_failed, "after a full disk");
            assert!(!has_lost || disk.identity().boot != before.boot);
            assert_eq!(has_failed, disk.identity().boot != before.boot);
        }
    }
}

#[test]
fn what_is_not_written_in_one_piece_is_noticed() {
    let rig = Rig::new(SIZE);
    let disk = rig.open().unwrap();
    disk.write(0, &[7; 8192]).unwrap();
    disk.flush().unwrap();
    disk.write(8192, &[7; 4096]).unwrap();
    disk.close().unwrap();
    drop(disk);
    // A file that was closed has no torn page: this one is damage, and not taken for a crash.
    let at = Layout::of(SIZE, Kind::Map).page_at(0, 0) + 100;
    rig.medium.write_at(at, &mut [IoSlice::new(&[1])]).unwrap();
    let why = rig.open().unwrap_err().to_string();
    assert!(why.contains("page 0 of its map is not whole"), "{why}");
}
