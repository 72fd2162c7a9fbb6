//! The write caches that the disks of a campaign have: the emulator logs what each disk completed and when it was flushed, and a
//! cut leaves what was flushed, and of the rest what [`super::loss`] says.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cache::Cache;
use crate::kit::{self, Kit};
use crate::session::Session;

use super::home::Home;
use super::loss::{self, Fate, Piece};
use super::write_log::{Kind, SECTOR_BYTES, WriteLog, check_super};
use super::{Random, Way};

/// Makes the system flush the disks, and its own once: the emulator passes on no flush behind which there is no write. Without this
/// the system takes disks behind `usb-storage` for such without a cache.
const SWITCH_ON: &str = "for type in /sys/class/scsi_disk/*/cache_type; do \
     echo 'temporary write back' >$type || exit 1; done; sync; touch /.flush; sync; rm /.flush; sync";

/// At most so much is copied at once.
const CHUNK: usize = 1 << 20;

/// The caches of a board's disks, while a change goes one way.
pub(super) struct Caches {
    /// What is flushed of each disk.
    flushed: Kit,
    disks: Vec<Disk>,
    random: Random,
}

struct Disk {
    place: Place,
    log_file: File,
    log: WriteLog,
    /// Flushes that the emulator made when it was paused.
    not_of_the_board: BTreeSet<usize>,
    /// How many entries are in the flushed image.
    applied: usize,
    /// How many entries there were when the board was last stopped.
    seen: usize,
    /// How many entries there were when the power was cut.
    cut_at: usize,
}

/// What a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Card,
    Usb(usize),
    /// A network disk, whose server goes on when the board's power is cut: it loses nothing.
    Export,
}

impl Place {
    /// The card, which is the first, or a USB disk.
    fn numbered(number: usize) -> Self {
        match number {
            0 => Self::Card,
            number => Self::Usb(number - 1),
        }
    }

    /// Its file in a kit.
    fn image(self, kit: &Kit) -> PathBuf {
        match self {
            Self::Card => kit.sd(),
            Self::Usb(number) => kit.usb(number),
            Self::Export => kit.export(),
        }
    }

    fn word(self) -> String {
        match self {
            Self::Card => "card".to_owned(),
            Self::Usb(number) => format!("usb{number}"),
            Self::Export => "network disk".to_owned(),
        }
    }
}

impl Caches {
    /// Those of a board that has just started from a copy of `start`, and has not been changed since.
    pub(super) fn of(
        cache: &Cache,
        board: &mut Session,
        start: &Kit,
        random: Random,
        way: Way,
    ) -> Result<Self> {
        board.must(SWITCH_ON, "root", Duration::from_secs(300))?;
        let logs = board.write_logs();
        let disks = (0..).zip(&logs);
        let disks: Result<Vec<Disk>> =
            disks.map(|(number, log)| Disk::of(Place::numbered(number), log)).collect();
        let mut caches = Self { flushed: start.temporary_copy(cache)?, disks: disks?, random };
        caches.note()?;
        // Before another way the root may be on a network disk.
        if way == Way::Apply {
            let root = Home::of(cache, start)?.disk();
            let root = caches.disks.get(root).context("nothing is logged")?;
            root.check_flushes()?;
        }
        Ok(caches)
    }

    /// Those of a recording: `start` is what its disks held when its logs begin.
    pub(super) fn of_logs(
        cache: &Cache,
        start: &Kit,
        logs: &[PathBuf],
        random: Random,
    ) -> Result<Self> {
        let disks = (0..).zip(logs);
        let disks: Result<Vec<Disk>> =
            disks.map(|(number, log)| Disk::of(Place::numbered(number), log)).collect();
        let mut caches = Self { flushed: start.temporary_copy(cache)?, disks: disks?, random };
        caches.note()?;
        check_logs(&caches.disks)?;
        Ok(caches)
    }

    /// With the network disk of the board, whose server logs what reaches it.
    pub(super) fn with_export(mut self, log: &Path) -> Result<Self> {
        let mut export = Disk::of(Place::Export, log)?;
        export.seen = export.read_on()?;
        self.disks.push(export);
        Ok(self)
    }

    /// The disks as a cut leaves them when the logs have these numbers of entries, and what became of their writes. The
    /// numbers may only grow from cut to cut.
    pub(super) fn cut_at(&mut self, cache: &Cache, entries: &[usize]) -> Result<(Kit, String)> {
        for (disk, cut_at) in self.disks.iter_mut().zip(entries) {
            disk.cut_at = *cut_at;
        }
        self.left(cache)
    }

    /// What was ever written to the card, or discarded: the first sector, and the one behind the last.
    pub(super) fn card_writes(&self) -> Vec<(u64, u64)> {
        let entries = self.disks[0].log.entries().iter();
        let writes = entries.filter(|entry| entry.kind != Kind::Flush);
        writes.map(|entry| (entry.sector, entry.sector + entry.sectors)).collect()
    }

    /// Notes where the board was stopped and not cut.
    pub(super) fn note(&mut self) -> Result<()> {
        for disk in &mut self.disks {
            disk.seen = disk.read_on()?;
        }
        Ok(())
    }

    /// Pauses the board and gives the disks as a cut would have left them, and what became of their writes. `kit` is what the
    /// board runs on. At an exact stop, the cut comes anywhere since the stop before.
    pub(super) fn cut(
        &mut self,
        cache: &Cache,
        board: &mut Session,
        kit: &Kit,
        is_stop: bool,
    ) -> Result<(Kit, String)> {
        let before: Vec<usize> = self.disks.iter().map(|disk| disk.seen).collect();
        self.pause(board)?;
        if is_stop {
            let now: Vec<usize> = self.disks.iter().map(|disk| disk.cut_at).collect();
            let drawn = moment(&before, &now, &mut self.random);
            for (disk, cut_at) in self.disks.iter_mut().zip(drawn) {
                disk.cut_at = cut_at;
            }
        }
        let (left, said) = self.left(cache)?;
        if kit.export().exists() {
            // The server of a network disk goes on.
            kit::copy(&kit.export(), &left.export())?;
        }
        Ok((left, said))
    }

    /// The disks as a cut at `cut_at` would have left them.
    fn left(&mut self, cache: &Cache) -> Result<(Kit, String)> {
        for disk in &mut self.disks {
            disk.flush_into(&disk.place.image(&self.flushed))?;
        }
        let left = self.flushed.temporary_copy(cache)?;
        let mut said = Vec::new();
        for disk in &mut self.disks {
            let image = disk.place.image(&left);
            said.extend(disk.lose(&image, &mut self.random)?);
        }
        Ok((left, said.join(", ")))
    }

    /// How many entries the log of each disk has at this moment.
    pub(super) fn entries(&mut self, board: &mut Session) -> Result<Vec<usize>> {
        board.freeze()?;
        let entries = self.disks.iter_mut().map(Disk::read_on).collect();
        board.thaw()?;
        entries
    }

    /// How many entries the log of the card has at this moment.
    pub(super) fn card_entries(&mut self, board: &mut Session) -> Result<usize> {
        board.freeze()?;
        let entries = self.disks[0].read_on();
        board.thaw()?;
        entries
    }

    /// Brings the first entries of the card's log into the flushed image, as if all were flushed.
    pub(super) fn flush_card_until(&mut self, entries: usize) -> Result<()> {
        let card = &mut self.disks[0];
        let pieces = card.log.entries()[card.applied..entries].iter();
        let pieces: Vec<Piece> = pieces.filter_map(loss::whole).collect();
        card.write(&self.flushed.sd(), &pieces)?;
        card.applied = entries;
        Ok(())
    }

    /// What is flushed of the disks.
    pub(super) fn flushed(&self) -> &Kit {
        &self.flushed
    }

    /// The same logs from their beginning, over the disks with which they began.
    pub(super) fn again(self, cache: &Cache, start: &Kit) -> Result<Self> {
        let disks = self.disks.into_iter().map(|disk| Disk { applied: 0, cut_at: 0, ..disk });
        Ok(Self {
            flushed: start.temporary_copy(cache)?,
            disks: disks.collect(),
            random: self.random,
        })
    }

    /// The numbers of the card's flushes in a part of its log.
    pub(super) fn card_flushes(&self, from: usize, to: usize) -> Vec<usize> {
        let entries = self.disks[0].log.entries();
        let flushes = (from..to).filter(|number| entries[*number].kind == Kind::Flush);
        flushes.collect()
    }

    /// Takes these flushes of the card, and no others, for none.
    pub(super) fn ignore_card_flushes(&mut self, numbers: &[usize]) {
        self.disks[0].not_of_the_board = numbers.iter().copied().collect();
    }

    /// The disks with the card as a cut before this entry of its log would have left it, and how many writes were not flushed.
    pub(super) fn card_cut_at(
        &mut self,
        cache: &Cache,
        entry: usize,
        fate: Fate,
        random: &mut Random,
    ) -> Result<(Kit, usize)> {
        let card = &mut self.disks[0];
        card.cut_at = entry;
        let durable = card.durable().max(card.applied);
        let left = self.flushed.temporary_copy(cache)?;
        let entries = card.log.entries();
        let flushed = entries[card.applied..durable].iter();
        let mut pieces: Vec<Piece> = flushed.filter_map(loss::whole).collect();
        let volatile = &entries[durable..entry];
        pieces.extend(loss::left(volatile, fate, random));
        card.write(&left.sd(), &pieces)?;
        Ok((left, volatile.len()))
    }

    /// The emulator flushes its disks when it is paused, which no board has asked for. So the logs are read while all of it stands
    /// still, and what is flushed between that and the pause does not count.
    fn pause(&mut self, board: &mut Session) -> Result<()> {
        board.freeze()?;
        let seen: Result<()> = self.disks.iter_mut().try_for_each(|disk| {
            disk.cut_at = disk.read_on()?;
            Ok(())
        });
        board.thaw()?;
        seen?;
        board.pause()?;
        for disk in &mut self.disks {
            let now = disk.read_on()?;
            disk.seen = now;
            let entries = disk.log.entries();
            let flushes = (disk.cut_at..now).filter(|number| entries[*number].kind == Kind::Flush);
            disk.not_of_the_board.extend(flushes);
        }
        Ok(())
    }
}

/// Whether the log of each disk that was flushed is one: the emulator writes the super block as it flushes. One must have been flushed.
fn check_logs(disks: &[Disk]) -> Result<()> {
    let mut flushed = disks.iter().filter(|disk| disk.is_flushed()).peekable();
    ensure!(flushed.peek().is_some(), "no disk was flushed");
    flushed.try_for_each(Disk::check_super)
}

/// Where the logs are cut, whose lengths were `before` at the last stop and are `now`. Within what happened in between, where a
/// call has written a part and flushed nothing yet: but only when it was one disk's doing. What two disks did has an order that
/// their logs do not tell.
pub(super) fn moment(before: &[usize], now: &[usize], random: &mut Random) -> Vec<usize> {
    let grown = before.iter().zip(now).filter(|(before, now)| before != now);
    if grown.count() != 1 {
        return now.to_vec();
    }
    let draw = |(&before, &now): (&usize, &usize)| {
        let length = (now - before) as u64 + 1;
        before + random.number(length) as usize
    };
    before.iter().zip(now).map(draw).collect()
}

impl Disk {
    fn of(place: Place, log: &Path) -> Result<Self> {
        Ok(Self {
            place,
            log_file: File::open(log).with_context(|| format!("cannot open {log:?}"))?,
            log: WriteLog::default(),
            not_of_the_board: BTreeSet::new(),
            applied: 0,
            seen: 0,
            cut_at: 0,
        })
    }

    fn check_super(&self) -> Result<()> {
        let mut sector = vec![0; usize::try_from(SECTOR_BYTES)?];
        self.log_file.read_at(&mut sector, 0)?;
        check_super(&sector).with_context(|| format!("the log of {}", self.place.word()))
    }

    /// Whether it was ever flushed.
    fn is_flushed(&self) -> bool {
        let mut entries = self.log.entries().iter();
        entries.any(|entry| entry.kind == Kind::Flush)
    }

    /// Whether the board flushes it. Else nothing would ever be durable, and every cut would lose all.
    fn check_flushes(&self) -> Result<()> {
        self.check_super()?;
        ensure!(self.is_flushed(), "the board does not flush its {}", self.place.word());
        Ok(())
    }

    fn read_on(&mut self) -> Result<usize> {
        let file = &self.log_file;
        self.log
            .read_on(&|buffer, at| file.read_at(buffer, at))
            .with_context(|| format!("the log of {}", self.place.word()))
    }

    fn durable(&self) -> usize {
        if self.place == Place::Export {
            return self.cut_at;
        }
        let entries = &self.log.entries()[..self.cut_at];
        loss::durable(entries, &|number| !self.not_of_the_board.contains(&number))
    }

    /// Brings what was flushed since the last cut into the image that has what was flushed before.
    fn flush_into(&mut self, image: &Path) -> Result<()> {
        let durable = self.durable();
        let entries = &self.log.entries()[self.applied..durable];
        let pieces: Vec<Piece> = entries.iter().filter_map(loss::whole).collect();
        self.write(image, &pieces)?;
        self.applied = durable;
        Ok(())
    }

    /// Brings into an image what is left of the writes since then; gives what became of them, if there were any.
    fn lose(&self, image: &Path, random: &mut Random) -> Result<Option<String>> {
        let volatile = &self.log.entries()[self.applied..self.cut_at];
        let writes = volatile.iter().filter(|entry| entry.kind != Kind::Flush);
        let writes = writes.count();
        let fate = Fate::drawn(random);
        self.write(image, &loss::left(volatile, fate, random))?;
        let said = format!("{} unflushed writes of {} {}", writes, self.place.word(), fate.word());
        Ok((writes > 0).then_some(said))
    }

    fn write(&self, image: &Path, pieces: &[Piece]) -> Result<()> {
        let context = || format!("cannot write {image:?}");
        let to = OpenOptions::new().write(true).open(image);
        let to = to.with_context(context)?;
        let mut buffer = vec![0; CHUNK];
        for piece in pieces {
            let bytes = piece.sectors * SECTOR_BYTES;
            let mut done = 0;
            while done < bytes {
                let chunk = (bytes - done).min(CHUNK as u64);
                let part = &mut buffer[..usize::try_from(chunk)?];
                match piece.data_at {
                    Some(at) => self.log_file.read_exact_at(part, at + done)?,
                    None => part.fill(0),
                }
                to.write_all_at(part, piece.sector * SECTOR_BYTES + done).with_context(context)?;
                done += chunk;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_log::of_writes;
    use super::*;

    #[test]
    fn a_cut_comes_anywhere_in_what_one_disk_did_and_behind_what_two_did() {
        let mut random = Random::of(3);
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            let drawn = moment(&[4, 10], &[8, 10], &mut random);
            assert_eq!(drawn[1], 10);
            seen.insert(drawn[0]);
            assert_eq!(moment(&[4, 10], &[8, 11], &mut random), [8, 11]);
        }
        assert_eq!(seen, BTreeSet::from([4, 5, 6, 7, 8]));
    }

    #[test]
    fn the_disk_of_the_root_must_have_been_flushed_and_another_may_be_idle() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        // A write, with no flush and no super block yet.
        let mut idle = vec![0; 3 * 512];
        idle[512 + 8] = 1;
        std::fs::write(&log, &idle).unwrap();
        let mut card = Disk::of(Place::Card, &log).unwrap();
        assert_eq!(card.read_on().unwrap(), 1);
        assert!(card.check_flushes().is_err());
        std::fs::write(place.path().join("disk"), of_writes(&[None])).unwrap();
        let mut disk = Disk::of(Place::Usb(0), &place.path().join("disk")).unwrap();
        disk.read_on().unwrap();
        assert!(disk.check_flushes().is_ok());
        let mut logs = vec![card, disk];
        assert!(check_logs(&logs).is_ok());
        logs.pop();
        assert!(check_logs(&logs).is_err());
    }

    #[test]
    fn a_network_disk_has_all_that_reached_its_server_and_a_card_what_was_flushed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let label = "{\"board\": \"pc\", \"usb\": []}";
        std::fs::write(at("kit.json"), label).unwrap();
        for (image, log) in [("sd.img", "sd.log"), ("export.img", "export.log")] {
            std::fs::write(at(image), [0; 4 * 512]).unwrap();
            let write = |sector| Some((sector, vec![7; 512]));
            let writes = [write(0), None, write(1), write(2)];
            std::fs::write(at(log), of_writes(&writes)).unwrap();
        }
        let start = Kit::open(crate::board::Board::Pc, place.path()).unwrap();
        let images = Cache::at(at("images"));
        let mut losses = BTreeSet::new();
        for seed in 0..40 {
            let random = Random::of(seed);
            let caches = Caches::of_logs(&images, &start, &[at("sd.log")], random).unwrap();
            let mut caches = caches.with_export(&at("export.log")).unwrap();
            let (left, said) = caches.cut_at(&images, &[3, 3]).unwrap();
            let sectors = |image: PathBuf| -> Vec<u8> {
                let bytes = std::fs::read(image).unwrap();
                bytes.chunks(512).map(|sector| sector[0]).collect()
            };
            assert_eq!(sectors(left.export()), [7, 7, 0, 0], "{said}");
            assert!(!said.contains("network disk"), "{said}");
            losses.insert(sectors(left.sd()));
        }
        assert!(losses.contains(&vec![7, 0, 0, 0]), "{losses:?}");
    }

    #[test]
    fn an_image_gets_the_data_that_the_log_has_for_its_sectors() {
        let place = tempfile::tempdir().unwrap();
        let (log, image) = (place.path().join("log"), place.path().join("image"));
        let data: Vec<u8> = (0..8).flat_map(|sector| [sector; 512]).collect();
        std::fs::write(&log, &data).unwrap();
        std::fs::write(&image, [0xFF; 6 * 512]).unwrap();
        let disk = Disk::of(Place::Card, &log).unwrap();
        let piece = |sector, sectors, data_at| Piece { sector, sectors, data_at };
        let pieces = [piece(1, 2, Some(512 * 5)), piece(4, 1, None)];
        disk.write(&image, &pieces).unwrap();
        let found = std::fs::read(&image).unwrap();
        let firsts: Vec<u8> = found.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(firsts, [0xFF, 5, 6, 0xFF, 0, 0xFF]);
    }
}
