//! How long a move of the root takes: the copy, the comparison and the initial RAM filesystems, each as a range.
//!
//! What was measured on this machine counts, else what is usual for such a device or processor. The constants are fitted to
//! whole moves of the emulated boards and to what owners of real ones report; a plan's time is right within a factor of
//! 1.5 where the disk, the processor and the starting of programs were measured.

use std::path::Path;

use super::super::PlanInput;
use super::current::used_bytes;
use rubus_change::plan::Effort;
use rubus_vocabulary::machine::BlockDevice;
use rubus_vocabulary::units::{duration_ns, rate_si};

/// Bytes per file of a typical root, for one whose files were not counted.
const USUAL_FILE_BYTES: f64 = 30e3;
/// Programs that making one initial RAM filesystem starts, in starts of the one that is measured; half of its processes are
/// only copies of a shell, which are cheap. Some of them are there with any system, others come with drivers and scripts.
const INITRAMFS_STARTS: f64 = 900.0;
const INITRAMFS_STARTS_OF_A_WHOLE_SYSTEM: f64 = 850.0;
/// What the processor does besides for the one of a whole system, its scripts and the compression, in bytes that one core
/// compresses with zstd:3. With the programs that is a minute on a Raspberry Pi 3 and ten seconds on a 5.
const INITRAMFS_BYTES: f64 = 2.0e9;
/// A system with fewer files has fewer drivers and scripts to put in. The emulated `pc` has 3162: there mkinitramfs took 92 s,
/// where a program starts in 78 ms and zstd:3 compresses 12.6 MB/s, and the same files on a server 2.2 s of the processor,
/// with 0.95 ms and 150 MB/s.
const WHOLE_SYSTEM_ENTRIES: f64 = 30_000.0;
/// Programs that the other steps start: for partitions, filesystems and mounts, and udev's for each of these.
const BESIDES_STARTS: f64 = 100.0;
/// What starting a short program usually takes, in bytes that one core compresses meanwhile: some 130 kB on a Raspberry
/// Pi, 225 kB on a server, 1 MB on an emulated processor.
const START_BYTES: Range = Range { least: 0.1e6, most: 0.5e6 };
/// What the processor does for each file, in the same measure: 0.6 ms on a Raspberry Pi 3.
const ENTRY_BYTES: f64 = 23e3;
/// Reads of the disk for each file besides its contents.
const READS_PER_ENTRY: f64 = 1.0;
/// The second pass looks at each file once more, and so does the comparison, each at half the price of copying it: nothing is
/// made. On the emulated `pc` both took 127 s after a first pass of 155 s.
const SECOND_PASS: f64 = 1.0;
/// Bytes of contents that the comparison reads again from the old disk, at most (`apply`'s sample).
const COMPARED_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
/// Partitions, filesystems, small files and flushes, seconds.
const BESIDES_S: Range = Range { least: 5.0, most: 20.0 };
/// How far a time that rests on measurements may be off, either way.
const SPREAD: f64 = 1.25;

/// What zstd:3 usually does on one core, bytes per second, by class of processor.
const SMALL_PROCESSOR: Range = Range { least: 8e6, most: 45e6 };
const FAST_PROCESSOR: Range = Range { least: 45e6, most: 250e6 };
/// What an SD card usually reads, and what another disk does, bytes per second.
const CARD: Range = Range { least: 5e6, most: 22e6 };
const DISK: Range = Range { least: 20e6, most: 400e6 };
/// Random reads per second of them.
const CARD_IOPS: Range = Range { least: 300.0, most: 2_000.0 };
const DISK_IOPS: Range = Range { least: 1_000.0, most: 20_000.0 };

#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    fn exact(value: f64) -> Self {
        Range { least: value, most: value }
    }

    fn at_most(self, limit: f64) -> Self {
        Range { least: self.least.min(limit), most: self.most.min(limit) }
    }

    /// Seconds for an amount at this rate: the most rate takes the least time.
    fn seconds(self, amount: f64) -> Range {
        Range { least: amount / self.most, most: amount / self.least }
    }

    fn and(self, other: Range) -> Range {
        Range { least: self.least + other.least, most: self.most + other.most }
    }

    fn times(self, factor: f64) -> Range {
        Range { least: self.least * factor, most: self.most * factor }
    }

    /// Whichever of two that run side by side takes longer.
    fn beside(self, other: Range) -> Range {
        Range { least: self.least.max(other.least), most: self.most.max(other.most) }
    }
}

/// What is moved, and onto what.
pub(crate) struct Move<'a> {
    /// The disk that is read.
    pub(crate) old: Option<&'a BlockDevice>,
    /// Bytes of files per second that the new place takes, compressed on the way.
    pub(crate) write: f64,
    /// Share of the files' bytes that is written.
    pub(crate) share: f64,
    /// Initial RAM filesystems that are made.
    pub(crate) kernels: usize,
}

/// What a move takes. Nothing where it is not known how much there is.
pub(crate) fn effort(situation: &PlanInput<'_>, moved: &Move<'_>) -> Effort {
    let Some(used) = used_bytes(situation).map(|bytes| bytes as f64) else {
        return Effort::default();
    };
    let counted = situation.facts.trees.get(Path::new("/"));
    let entries = counted.map_or(used / USUAL_FILE_BYTES, |size| size.entries as f64);
    let (read, iops, read_source) = source(situation, moved.old);
    let (processor, processor_source) = processor(situation);
    let bytes = read.seconds(used).beside(Range::exact(used / moved.write));
    let entry = iops.seconds(READS_PER_ENTRY).and(processor.seconds(ENTRY_BYTES));
    let files = entry.times(entries);
    let (start, start_source) = start(situation, processor);
    let whole = (entries / WHOLE_SYSTEM_ENTRIES).min(1.0);
    let made = start
        .times(INITRAMFS_STARTS + whole * INITRAMFS_STARTS_OF_A_WHOLE_SYSTEM)
        .and(processor.seconds(whole * INITRAMFS_BYTES))
        .times(moved.kernels as f64);
    let besides = BESIDES_S.and(start.times(BESIDES_STARTS));
    let compared = read.seconds(used.min(COMPARED_BYTES));
    let all = bytes.and(compared).and(files.times(1.0 + SECOND_PASS)).and(made).and(besides);
    Effort {
        written_bytes: (used * moved.share) as u64,
        least_s: (all.least / SPREAD).round(),
        most_s: (all.most * SPREAD).round(),
        source: format!(
            "The copy: {read_source}. The initial RAM {}: {processor_source}; {start_source}.",
            match moved.kernels {
                1 => "filesystem",
                _ => "filesystems",
            }
        ),
    }
}

/// How fast the old disk is read, bytes and random reads per second, and where that is known from.
fn source(situation: &PlanInput<'_>, old: Option<&BlockDevice>) -> (Range, Range, String) {
    let is_card = old.is_some_and(|old| old.name.starts_with("mmcblk"));
    let (mut usual, usual_iops) = if is_card { (CARD, CARD_IOPS) } else { (DISK, DISK_IOPS) };
    if let Some((bus, _)) = old.and_then(super::current::bus_bytes_per_second) {
        usual = usual.at_most(bus);
    }
    let name = old.map_or("the old disk", |old| old.name.as_str());
    let speed = old.and_then(|old| situation.facts.speeds.get(&old.name));
    let iops = speed.and_then(|speed| speed.random_read_iops);
    let iops = iops.filter(|iops| *iops > 0.0).map_or(usual_iops, Range::exact);
    let read = speed.and_then(|speed| Some((speed.read_bytes_per_second?, &speed.source)));
    if let Some((read, source)) = read.filter(|(read, _)| *read > 0.0) {
        let words = format!("{name} reads {} ({source})", rate_si(read));
        return (Range::exact(read), iops, words);
    }
    if let Some(read) = situation.facts.sample_bytes_per_second {
        // A file's name is looked up and the file opened within that time already.
        let words = format!("a sample of the files was read with {} just now", rate_si(read));
        return (Range::exact(read), iops, words);
    }
    let words = format!(
        "{name} was not measured; such devices read {} to {}",
        rate_si(usual.least),
        rate_si(usual.most)
    );
    (usual, iops, words)
}

/// Seconds for starting a short program on this processor, and where that is known from.
fn start(situation: &PlanInput<'_>, processor: Range) -> (Range, String) {
    if let Some(start_s) = situation.facts.program_start_s {
        let time = duration_ns((start_s * 1e9) as u64);
        let words = format!("starting a short program took {time} just now");
        return (Range::exact(start_s), words);
    }
    let usual = Range {
        least: START_BYTES.least / processor.most,
        most: START_BYTES.most / processor.least,
    };
    (usual, "starting a program takes what is usual".into())
}

/// Bytes per second that one core compresses with zstd:3, and where that is known from.
fn processor(situation: &PlanInput<'_>) -> (Range, String) {
    let speeds = &situation.facts.compression;
    if let Some(speed) = speeds.iter().find(|speed| speed.method == "zstd:3") {
        let words = "by how fast this processor compressed just now".to_string();
        return (Range::exact(speed.compress_bytes_per_second), words);
    }
    let model = situation.machine.cpu.model.text();
    let words = format!(
        "{} was not measured; the time is that of such processors",
        model.unwrap_or("the processor")
    );
    if super::is_slow_processor(situation.machine) {
        (SMALL_PROCESSOR, words)
    } else {
        (FAST_PROCESSOR, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiskSpeed, Facts, TreeSize, Wishes};
    use rubus_vocabulary::compression_speed::CompressionSpeed;

    fn facts(bytes: u64, entries: u64, zstd: Option<f64>, card: Option<(f64, f64)>) -> Facts {
        let compression = zstd.map(|rate| CompressionSpeed {
            method: "zstd:3".into(),
            compress_bytes_per_second: rate,
            expand_bytes_per_second: 4.0 * rate,
            ratio: 2.0,
        });
        let speed = card.map(|(read, iops)| DiskSpeed {
            read_bytes_per_second: Some(read),
            random_read_iops: Some(iops),
            source: "measured here on 2026-11-20, run 3".into(),
            ..DiskSpeed::default()
        });
        Facts {
            trees: [("/".into(), TreeSize { bytes, entries })].into(),
            compression: compression.into_iter().collect(),
            // As a Raspberry Pi 3 does.
            program_start_s: zstd.map(|_| 3.5e-3),
            speeds: speed.map(|speed| ("mmcblk0".into(), speed)).into_iter().collect(),
            ..Facts::default()
        }
    }

    fn of(facts: &Facts, kernels: usize) -> Effort {
        let machine = rubus_fixtures::pi3_with_usb_ssd();
        let options = Wishes::new();
        let situation = PlanInput { machine: &machine, facts, options: &options };
        let moved = Move {
            old: machine.block_devices.iter().find(|disk| disk.name == "mmcblk0"),
            write: 35e6,
            share: 0.5,
            kernels,
        };
        effort(&situation, &moved)
    }

    /// A Raspberry Pi 3 makes one in a minute, and a scared owner pulls the plug after two.
    #[test]
    fn the_initial_ram_filesystem_and_the_slow_card_count() {
        let measured = |kernels, read| {
            of(&facts(1_000_000_000, 30_000, Some(38e6), Some((read, 1500.0))), kernels)
        };
        let none = measured(0, 22e6);
        let one = measured(1, 22e6);
        assert!(one.least_s - none.least_s > 40.0, "{one:?} {none:?}");
        let slow = measured(1, 4e6);
        assert!(slow.least_s > one.least_s + 100.0, "{slow:?}");
        assert!(slow.source.contains("mmcblk0 reads 4.00 MB/s (measured here"), "{}", slow.source);
    }

    /// 148 MiB in 3162 files, a card of 3.96 MB/s, with Debian's own initramfs-tools: 170 s, of which 92 s were the initial RAM
    /// filesystem. The rate of the processor is that of an optimised build there.
    #[test]
    fn the_emulated_board_takes_as_long_as_was_said_within_a_factor() {
        let mut facts = facts(155_000_000, 3_162, Some(12.6e6), None);
        facts.sample_bytes_per_second = Some(3.96e6);
        facts.program_start_s = Some(78e-3);
        let said = of(&facts, 1);
        assert!(said.least_s < 170.0 * 1.2 && said.least_s > 170.0 / 1.5, "{said:?}");
        assert!(said.most_s > 170.0 && said.most_s < 170.0 * 1.75, "{said:?}");
        let made_s = (said.least_s - of(&facts, 0).least_s) * SPREAD;
        assert!((92.0 / 1.5..92.0 * 1.5).contains(&made_s), "{made_s}");
    }

    /// A processor that compresses as fast as another, and is slow at starting programs, as an emulated one is.
    #[test]
    fn starting_programs_counts_for_each_initial_ram_filesystem() {
        let mut facts = facts(155_000_000, 3_162, Some(12.6e6), Some((20e6, 1500.0)));
        let quick = of(&facts, 1);
        facts.program_start_s = Some(80e-3);
        let slow = of(&facts, 1);
        assert!(
            slow.least_s > quick.least_s + 50.0 && slow.most_s > quick.most_s + 80.0,
            "{quick:?} {slow:?}"
        );
        assert!(
            slow.source.contains("starting a short program took 80.0 ms just now"),
            "{}",
            slow.source
        );
        let two = of(&facts, 2);
        assert!(two.least_s > slow.least_s + 60.0, "{slow:?} {two:?}");
    }

    /// A captured machine has no such figure, nor has one without a shell.
    #[test]
    fn what_starting_programs_takes_is_a_wide_guess_where_it_was_not_measured() {
        let mut facts = facts(1_000_000_000, 30_000, Some(38e6), Some((20e6, 1500.0)));
        let measured = of(&facts, 1);
        facts.program_start_s = None;
        let guessed = of(&facts, 1);
        assert!(
            guessed.least_s <= measured.least_s && guessed.most_s > measured.most_s + 10.0,
            "{measured:?} {guessed:?}"
        );
        assert!(
            guessed.source.contains("starting a program takes what is usual"),
            "{}",
            guessed.source
        );
    }

    /// The hooks and drivers of a small system are few.
    #[test]
    fn a_whole_system_puts_more_into_it_than_a_small_one() {
        let made_s = |entries| {
            let facts = facts(1_000_000_000, entries, Some(38e6), Some((20e6, 1500.0)));
            of(&facts, 1).least_s - of(&facts, 0).least_s
        };
        assert!(made_s(30_000) > 2.0 * made_s(3_000));
        assert!((made_s(30_000) - made_s(300_000)).abs() <= 1.0);
    }

    #[test]
    fn what_was_measured_is_narrow_and_what_was_not_says_so() {
        let measured = of(&facts(1_000_000_000, 30_000, Some(38e6), Some((20e6, 1500.0))), 1);
        assert!(measured.most_s / measured.least_s < 2.0, "{measured:?}");
        let not = of(&facts(1_000_000_000, 30_000, None, None), 1);
        assert!(not.least_s < measured.least_s && not.most_s > measured.most_s, "{not:?}");
        assert_eq!(not.source.matches("was not measured").count(), 2, "{}", not.source);
    }

    #[test]
    fn a_sample_that_was_read_just_now_stands_in_for_a_run() {
        let mut facts = facts(1_000_000_000, 30_000, Some(38e6), None);
        facts.sample_bytes_per_second = Some(2e6);
        let slow = of(&facts, 1);
        assert!(slow.least_s > 400.0, "{slow:?}");
        assert!(slow.source.contains("just now"), "{}", slow.source);
    }
}
