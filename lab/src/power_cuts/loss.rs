//! What a power cut leaves of writes that a disk had completed into its write cache and that were not flushed. A pure
//! function of the disk's log: what is durable, and which pieces of the rest are on the disk.

use super::Random;
use super::write_log::{Entry, Kind};

/// What becomes of the writes since the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All are lost.
    Lost,
    /// All are on the disk.
    Kept,
    /// Those up to one of them are on the disk, and the first sectors of that one.
    Torn,
    /// Any of them are on the disk, and of some any sectors: the disk had chosen its own order.
    Reordered,
}

impl Fate {
    /// Its word in results.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Kept => "kept",
            Self::Torn => "torn",
            Self::Reordered => "reordered",
        }
    }

    /// One of the four.
    pub(super) fn drawn(random: &mut Random) -> Self {
        match random.number(4) {
            0 => Self::Lost,
            1 => Self::Kept,
            2 => Self::Torn,
            _ => Self::Reordered,
        }
    }
}

/// Sectors that are on the disk after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where on the disk, in sectors.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Where their data is in the log, in bytes; none for discarded ones, which read as zeros.
    pub data_at: Option<u64>,
}

/// How many of the entries are durable whatever happens: all up to the last flush. `is_real` says whether the flush with this number
/// was one of the board's; the emulator flushes too, when it is paused.
#[must_use]
pub fn durable(entries: &[Entry], is_real: &dyn Fn(usize) -> bool) -> usize {
    let is_flush = |number: &usize| entries[*number].kind == Kind::Flush && is_real(*number);
    (0..entries.len()).rev().find(is_flush).map_or(0, |flush| flush + 1)
}

/// An entry that is on the disk as a whole; none for a flush.
#[must_use]
pub fn whole(entry: &Entry) -> Option<Piece> {
    (entry.kind != Kind::Flush).then(|| part(entry, 0, entry.sectors))
}

/// What is on the disk of these entries, which come behind the last flush. Pieces are to be written in this order.
pub(super) fn left(volatile: &[Entry], fate: Fate, random: &mut Random) -> Vec<Piece> {
    let writes: Vec<&Entry> = volatile.iter().filter(|entry| entry.kind != Kind::Flush).collect();
    // Between 0 and their number: the one at which it tears.
    let tear = random.number(writes.len() as u64 + 1);
    let mut pieces = Vec::new();
    for (number, entry) in (0..).zip(writes) {
        let is_durable = entry.kind == Kind::Write { is_durable: true };
        match fate {
            _ if is_durable => pieces.push(part(entry, 0, entry.sectors)),
            Fate::Lost => {}
            Fate::Kept => pieces.push(part(entry, 0, entry.sectors)),
            Fate::Torn if number < tear => pieces.push(part(entry, 0, entry.sectors)),
            Fate::Torn if number == tear => {
                let sectors = random.number(entry.sectors);
                pieces.extend((sectors > 0).then(|| part(entry, 0, sectors)));
            }
            Fate::Torn => {}
            Fate::Reordered => match random.number(3) {
                0 => {}
                1 => pieces.push(part(entry, 0, entry.sectors)),
                _ => pieces.extend(scattered(entry, random)),
            },
        }
    }
    pieces
}

/// Any sectors of an entry, those next to each other together.
fn scattered(entry: &Entry, random: &mut Random) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < entry.sectors {
        // Runs of up to eight sectors, so that blocks of 4 KiB tear inside and in between.
        let sectors = (1 + random.number(8)).min(entry.sectors - from);
        if random.number(2) == 1 {
            pieces.push(part(entry, from, sectors));
        }
        from += sectors;
    }
    pieces
}

fn part(entry: &Entry, from: u64, sectors: u64) -> Piece {
    let has_data = entry.kind != Kind::Discard;
    Piece {
        sector: entry.sector + from,
        sectors,
        data_at: has_data.then(|| entry.data_at + from * super::write_log::SECTOR_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_cuts::write_log::SECTOR_BYTES;

    const DISK: u64 = 24;

    /// A disk on which each sector says which entry has written it last; 0 is the beginning.
    type Disk = Vec<usize>;

    fn drawn_log(random: &mut Random) -> Vec<Entry> {
        let mut data_at = SECTOR_BYTES;
        let count = random.number(20);
        let mut entry = |_| {
            let kind = match random.number(8) {
                0 | 1 => Kind::Flush,
                2 => Kind::Discard,
                3 => Kind::Write { is_durable: true },
                _ => Kind::Write { is_durable: false },
            };
            let sector = random.number(DISK);
            let sectors = match kind {
                Kind::Flush => 0,
                _ => 1 + random.number(DISK - sector),
            };
            data_at += (1 + sectors) * SECTOR_BYTES;
            Entry { kind, sector, sectors, data_at: data_at - sectors * SECTOR_BYTES }
        };
        (0..count).map(&mut entry).collect()
    }

    /// The number of an entry from 1 on; all discarded sectors are the same.
    fn mark(entries: &[Entry], number: usize) -> usize {
        match entries[number].kind {
            Kind::Discard => 1000,
            _ => number + 1,
        }
    }

    fn write(disk: &mut Disk, piece: &Piece, mark: usize) {
        let from = usize::try_from(piece.sector).unwrap();
        let to = from + usize::try_from(piece.sectors).unwrap();
        disk[from..to].fill(mark);
    }

    /// The disk that pieces make of another one. A piece belongs to the entry that holds its data.
    fn replayed(start: &Disk, entries: &[Entry], first: usize, pieces: &[Piece]) -> Disk {
        let mut disk = start.clone();
        let mut number = first;
        for piece in pieces {
            let holds = |entry: &Entry| match piece.data_at {
                Some(at) => {
                    let end = entry.data_at + entry.sectors * SECTOR_BYTES;
                    (entry.data_at..end).contains(&at) && entry.kind != Kind::Discard
                }
                None => {
                    entry.kind == Kind::Discard
                        && entry.sector <= piece.sector
                        && piece.sector + piece.sectors <= entry.sector + entry.sectors
                }
            };
            // In the order of the log, each within an entry.
            while !holds(&entries[number]) {
                number += 1;
            }
            let entry = &entries[number];
            assert!(piece.sector + piece.sectors <= entry.sector + entry.sectors);
            if let Some(at) = piece.data_at {
                let offset = (at - entry.data_at) / SECTOR_BYTES;
                assert_eq!(entry.sector + offset, piece.sector, "data of its own sectors");
            }
            write(&mut disk, piece, mark(entries, number));
        }
        disk
    }

    fn all(entries: &[Entry], first: usize, start: &Disk) -> Disk {
        let mut disk = start.clone();
        for (number, entry) in entries.iter().enumerate().skip(first) {
            if let Some(piece) = whole(entry) {
                write(&mut disk, &piece, mark(entries, number));
            }
        }
        disk
    }

    #[test]
    fn every_sector_is_as_it_was_flushed_or_as_a_later_write_made_it() {
        let mut random = Random::of(1);
        for _ in 0..3000 {
            let entries = drawn_log(&mut random);
            let first = durable(&entries, &|_| true);
            let flushed = all(&entries[..first], 0, &vec![0; DISK as usize]);
            let volatile = &entries[first..];
            assert!(volatile.iter().all(|entry| entry.kind != Kind::Flush));
            let fate = Fate::drawn(&mut random);
            let pieces = left(volatile, fate, &mut random);
            let disk = replayed(&flushed, &entries, first, &pieces);
            for sector in 0..DISK as usize {
                let touches = |entry: &Entry| {
                    (entry.sector..entry.sector + entry.sectors).contains(&(sector as u64))
                };
                let mut allowed = vec![flushed[sector]];
                for (number, entry) in entries.iter().enumerate().skip(first) {
                    if !touches(entry) {
                        continue;
                    }
                    if entry.kind == (Kind::Write { is_durable: true }) {
                        allowed.clear();
                    }
                    allowed.push(mark(&entries, number));
                }
                let found = disk[sector];
                assert!(allowed.contains(&found), "{fate:?} {sector}: {entries:?}");
            }
            let kept = left(volatile, Fate::Kept, &mut random);
            let kept = replayed(&flushed, &entries, first, &kept);
            assert_eq!(kept, all(&entries, 0, &vec![0; DISK as usize]));
        }
    }

    #[test]
    fn every_write_since_the_flush_is_sometimes_lost_kept_and_torn() {
        let one = |sector| Entry {
            kind: Kind::Write { is_durable: false },
            sector,
            sectors: 4,
            data_at: 512 * (sector + 1),
        };
        let volatile: Vec<Entry> = (0..6).map(|number| one(number * 5)).collect();
        for fate in [Fate::Torn, Fate::Reordered] {
            // For each write: seen lost, whole, in part.
            let mut seen = [[false; 3]; 6];
            let mut is_later_kept_without_earlier = false;
            for seed in 0..400 {
                let pieces = left(&volatile, fate, &mut Random::of(seed));
                let there = |entry: &Entry| {
                    let of = pieces
                        .iter()
                        .filter(|piece| (entry.sector..entry.sector + 4).contains(&piece.sector));
                    of.map(|piece| piece.sectors).sum::<u64>()
                };
                let amounts: Vec<u64> = volatile.iter().map(there).collect();
                for (seen, amount) in seen.iter_mut().zip(&amounts) {
                    let kind = match amount {
                        0 => 0,
                        4 => 1,
                        _ => 2,
                    };
                    seen[kind] = true;
                }
                let falls = amounts.windows(2).all(|pair| pair[0] >= pair[1]);
                is_later_kept_without_earlier |= !falls;
            }
            assert_eq!(seen, [[true; 3]; 6], "{fate:?}");
            // What a disk does that keeps the order of its writes.
            assert_eq!(is_later_kept_without_earlier, fate == Fate::Reordered);
        }
        assert!(left(&volatile, Fate::Lost, &mut Random::of(1)).is_empty());
    }

    #[test]
    fn a_flush_of_the_emulator_makes_nothing_durable() {
        let flush = Entry { kind: Kind::Flush, sector: 0, sectors: 0, data_at: 0 };
        let write = Entry { kind: Kind::Write { is_durable: false }, sectors: 1, ..flush };
        let entries = [write, flush, write, flush, write];
        assert_eq!(durable(&entries, &|_| true), 4);
        assert_eq!(durable(&entries, &|number| number != 3), 2);
        assert_eq!(durable(&entries, &|_| false), 0);
    }
}
