//! What a run of Rubus says of a board and its disk, in place of what is assumed of their kind.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::Basis;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::spec::{Direction, Pattern};
use serde::Serialize;

use crate::boards::{Board, DiskBus};
use crate::disks::Disk;

/// What was measured of a board and its disk; what is absent was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Where it comes from: "run of 2026-11-20 on Raspberry Pi 4".
    pub source: String,
    /// The board's name.
    pub board: Option<String>,
    /// Memory that the kernel has.
    pub memory_bytes: Option<u64>,
    pub cores: Option<u32>,
    /// Rate of the fastest cable that is up, bits per second.
    pub link_bits: Option<u64>,
    /// Sequential read, bytes per second.
    pub read_bytes_per_second: Option<Estimate>,
    /// Sequential write, bytes per second.
    pub write_bytes_per_second: Option<Estimate>,
    /// Random 4 KiB reads per second, the most at any queue depth.
    pub read_iops: Option<Estimate>,
    /// Random 4 KiB writes per second, the most at any queue depth.
    pub write_iops: Option<Estimate>,
    /// Commits of 4 KiB per second.
    pub commits_per_second: Option<Estimate>,
}

/// From this block size on a sequential job counts as one in large blocks.
pub(crate) const LARGE: u32 = 512 << 10;

/// Which run: "12, measured 2026-11-20 on rbd:rbd/disk".
pub(crate) fn source(run: &Run, name: &str) -> String {
    format!(
        "{name}, measured {} on {}",
        run.started.get(..10).unwrap_or(&run.started),
        run.target.named
    )
}

impl Measured {
    /// What a run says.
    ///
    /// # Errors
    /// When it has no figure of a disk.
    pub fn of(run: &Run, name: &str) -> Result<Measured, String> {
        let machine = &run.machine;
        let best = |like: &dyn Fn(&JobResult) -> bool, of: fn(&JobResult) -> Estimate| {
            let sound = |r: &&JobResult| {
                r.operation.is_block() && r.outcome != Outcome::Inconclusive && of(r).value > 0.0
            };
            let found = run.results.iter().filter(sound).filter(|r| like(r)).map(of);
            found.max_by(|a, b| a.value.total_cmp(&b.value))
        };
        let in_order = |direction: Direction| {
            let like = |r: &JobResult| {
                r.direction == direction
                    && r.pattern == Pattern::Sequential
                    && r.block_bytes >= LARGE
                    && !r.commit
            };
            best(&like, |r| r.bytes_per_second)
        };
        let small = |direction: Direction| {
            let like = |r: &JobResult| {
                r.direction == direction
                    && r.pattern == Pattern::Random
                    && r.block_bytes == 4096
                    && !r.commit
            };
            best(&like, |r| r.iops)
        };
        let measured = Measured {
            source: source(run, name),
            board: machine.board.model.text().map(str::to_string),
            memory_bytes: machine.memory.total_bytes.get(),
            cores: machine.cpu.cores.get(),
            link_bits: machine
                .links
                .iter()
                .filter(|link| link.kind == "ethernet" && link.state.text() == Some("up"))
                .filter_map(|link| link.bits_per_second.get())
                .filter(|bits| *bits > 0)
                .max(),
            read_bytes_per_second: in_order(Direction::Read),
            write_bytes_per_second: in_order(Direction::Write),
            read_iops: small(Direction::Read),
            write_iops: small(Direction::Write),
            commits_per_second: best(&|r| r.commit && r.block_bytes == 4096, |r| r.iops),
        };
        let figures = [
            measured.read_bytes_per_second,
            measured.write_bytes_per_second,
            measured.read_iops,
            measured.write_iops,
            measured.commits_per_second,
        ];
        if figures.iter().all(Option::is_none) {
            return Err(format!(
                "{name} has no figure of a disk\nMeasure the disk that will hold the data: rubus bench --suite quick DIRECTORY"
            ));
        }
        Ok(measured)
    }

    /// The board with what was read of it; one that is not named there stays what it was, since another machine's memory is not
    /// its own.
    pub fn board(&self, base: Board) -> Board {
        let mut board = base;
        if let Some(name) = &self.board {
            board.name = name.clone();
            if let Some(bytes) = self.memory_bytes {
                board.memory_bytes = bytes;
                board.memory_basis = Basis::Measured;
            }
            board.cores = self.cores.filter(|cores| *cores > 0).unwrap_or(board.cores);
            if let Some(bits) = self.link_bits {
                board.link_bits = bits;
                board.link_basis = Basis::Measured;
            }
        }
        // Where the disk is what it is here, its measured rate is that of the way to it too.
        if let (Some(read), DiskBus::Sata | DiskBus::Pcie { .. }) =
            (self.read_bytes_per_second, board.bus)
        {
            let carried = board.bus.bytes_per_second().max(read.high);
            board.bus = DiskBus::Pcie { bytes_per_second: carried };
        }
        board
    }

    /// The disk with what was measured of it.
    pub fn disk(&self, base: Disk) -> Disk {
        let mut disk = base;
        let figures = &mut disk.figures;
        let pairs = [
            (&mut figures.read_bytes_per_second, self.read_bytes_per_second),
            (&mut figures.write_bytes_per_second, self.write_bytes_per_second),
            (&mut figures.read_iops, self.read_iops),
            (&mut figures.write_iops, self.write_iops),
            (&mut figures.commits_per_second, self.commits_per_second),
        ];
        let mut missing = 0;
        for (figure, measured) in pairs {
            // An interval without an upper end says nothing of a ceiling.
            match measured.filter(|m| m.high.is_finite() && m.low > 0.0) {
                Some(measured) => *figure = measured,
                None => missing += 1,
            }
        }
        // What is partly assumed is marked as that: which of the figures decides is not known here.
        if missing == 0 {
            figures.basis = Basis::Measured;
        }
        figures.source = match missing {
            0 => self.source.clone(),
            n => format!(
                "{}; {n} of 5 figures were not measured or did not settle, and are assumed",
                self.source
            ),
        };
        disk
    }

    /// The kind of board that a model's name means.
    pub fn kind(&self) -> Option<&'static str> {
        let name = self.board.as_deref()?;
        let gib = self.memory_bytes.unwrap_or(0) >> 30;
        let kinds: [(&str, [&'static str; 3]); 3] = [
            ("Raspberry Pi 5", ["pi5-4gb", "pi5-8gb", "pi5-16gb"]),
            ("Raspberry Pi 4", ["pi4-2gb", "pi4-4gb", "pi4-8gb"]),
            ("Raspberry Pi 3", ["pi3b+", "pi3b+", "pi3b+"]),
        ];
        let (_, sizes) = kinds.iter().find(|(start, _)| name.starts_with(start))?;
        let at = match (sizes[0], gib) {
            ("pi5-4gb", ..4) | ("pi4-2gb", ..2) => 0,
            ("pi5-4gb", 4..8) | ("pi4-2gb", 2..4) => 1,
            _ => 2,
        };
        Some(sizes[at])
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;

    use super::*;

    #[test]
    fn a_run_replaces_what_is_assumed() {
        let run = fixture::slow_sd_card_run();
        let measured = Measured::of(&run, "run 3").unwrap();
        let disk = measured.disk(Disk::assumed(1_000_000_000_000, Default::default()));
        assert_eq!(disk.figures.basis, Basis::Measured);
        assert_eq!(disk.figures.read_bytes_per_second.value, 22.6e6);
        assert!(disk.figures.commits_per_second.value < 100.0);
        assert!(Measured::of(&fixture::failed_run(), "run 4").is_err());
    }

    #[test]
    fn boards_are_known_by_their_model_and_memory() {
        let mut measured = Measured::of(&fixture::slow_sd_card_run(), "x").unwrap();
        measured.board = Some("Raspberry Pi 4 Model B Rev 1.4".into());
        measured.memory_bytes = Some(3_900_000_000);
        assert_eq!(measured.kind(), Some("pi4-4gb"));
        measured.board = Some("Raspberry Pi 5 Model B".into());
        measured.memory_bytes = Some(8_200_000_000);
        assert_eq!(measured.kind(), Some("pi5-8gb"));
        measured.board = Some("something".into());
        assert_eq!(measured.kind(), None);
    }
}
