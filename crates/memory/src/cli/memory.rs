//! `rubus bench memory`: how fast memory is, and how much more than itself it carries.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use rubus_command::values::{is_wanted, seconds_within};
use rubus_command::{Exit, Kept, parts};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::{Memory, Part, USUAL_LIMIT_NS};
use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::parse_size;
use rubus_vocabulary::verb::{MISTAKE, Page};

use crate::pressure::suite::{self, PressureOptions, PressureSuite};
use crate::pressure::{keeper, load_process};
use crate::sequence;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-bench-memory",
    statuses: &[(0, "measured"), (1, "cut short or failed"), MISTAKE],
    examples: &[(
        "sudo rubus bench memory pressure --compare",
        "Compare no swap, swap on a disk, zram and zswap.",
    )],
};

/// Measure memory, and how far beyond its size it works with swap.
///
/// First measures sequential bandwidth and load-to-load latency. Then a program in a
/// memory-limited control group uses more and more memory until touching a page takes too
/// long; the rest of the machine stays usable. Pages go to the machine's swap; writes to a
/// disk are limited. Needs root, or a delegated control group:
/// systemd-run --user --scope -p Delegate=yes rubus bench memory
#[derive(Debug, Args)]
pub struct BenchMemory {
    /// Parts to measure [default: all]
    #[arg(value_name = "PART", value_enum)]
    pub parts: Vec<PartName>,
    /// Also measure these swap set-ups: no swap, a disk, zram, zswap with a disk. They are created
    /// and removed (as root)
    #[arg(long)]
    pub compare: bool,
    /// Where the kernel has no memory control groups (Raspberry Pi OS by default): use the whole
    /// machine's memory, as root. Everything else is slow meanwhile; it stops before memory and
    /// swap run out
    #[arg(long, conflicts_with_all = ["compare", "memory"])]
    pub whole_machine: bool,
    /// Directory on the disk for --compare; its file is nameless
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", requires = "compare",
        value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Touching a page counts as slow when it takes longer, such as 5ms
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = limit)]
    pub limit: u64,
    /// Memory of the group [default: an eighth of the machine's, at most
    /// 256MiB; with zswap in groups of version 1 more]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Size of a compressed page, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 33, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub content: u32,
    /// Maximum written to swap on disks per set-up
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    pub budget: u64,
    /// Seconds per working-set size and access pattern
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Largest working set to try, as a multiple of memory
    #[arg(long, alias = "most", value_name = "TIMES", default_value_t = 4.0, value_parser = most)]
    pub max_working_set: f64,
    /// Seed of the random order and contents
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub kept: Kept,
    /// The program that takes memory
    #[arg(long = "eater", hide = true)]
    pub memory_load: bool,
    /// The program that takes away what was made
    #[arg(long, hide = true, conflicts_with = "memory_load")]
    pub keeper: bool,
}

/// A part by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartName {
    /// Reading, writing and copying in order
    Bandwidth,
    /// Load-to-load latency by working-set size
    Latency,
    /// More than fits: how far memory goes with swap
    Pressure,
}

impl BenchMemory {
    /// The parts in the order of measuring, each once.
    pub fn wanted_parts(&self) -> Vec<Part> {
        let parts = Part::ALL.into_iter();
        parts.filter(|part| is_wanted(&self.parts, part.name())).collect()
    }
}

fn limit(text: &str) -> Result<u64, String> {
    let units = [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0), ("s", 1e9)];
    let found = units.iter().find_map(|(unit, factor)| {
        Some((text.strip_suffix(unit)?.trim().parse::<f64>().ok()?, factor))
    });
    match found.map(|(number, factor)| number * factor) {
        Some(ns) if (1e3..=1e11).contains(&ns) => Ok(ns as u64),
        _ => {
            Err(format!("write a time from 1us to 100s, such as {}ms", USUAL_LIMIT_NS / 1_000_000))
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    seconds_within(text, 0.2, 600.0)
}

fn most(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if (1.0..=16.0).contains(&times) => Ok(times),
        _ => Err("write a number from 1 to 16".into()),
    }
}

/// What is around the measurement.
pub struct Around<'a> {
    /// As surveyed before the run.
    pub machine: &'a Machine,
    /// Set when the user has had enough.
    pub cancel: &'a AtomicBool,
    /// Says on the terminal what is measured now.
    pub says: &'a dyn Fn(&str),
    /// Announces what will be written.
    pub announce: &'a dyn Fn(&str),
}

/// The work of a process that `rubus bench memory` started itself, where this is one.
pub fn serve(args: &BenchMemory) -> Option<Exit> {
    if !(args.memory_load || args.keeper) {
        return None;
    }
    let is_fine = if args.memory_load { load_process::serve() } else { keeper::serve() };
    Some(if is_fine { Exit::Fine } else { Exit::AnswerIsNo })
}

/// Measures the parts; each fills its place in the result, or is left out with the reason.
///
/// # Errors
/// A directory that is on no disk; why a part failed, where it alone was asked for.
pub fn measure(args: &BenchMemory, around: &Around<'_>) -> anyhow::Result<Memory> {
    let Around { machine, cancel, says, announce } = *around;
    let mut memory = Memory {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        ..Memory::default()
    };
    let wanted = args.wanted_parts();
    if args.compare && wanted.contains(&Part::Pressure) {
        suite::must_be_on_a_disk(&args.directory, machine)?;
    }
    if wanted.contains(&Part::Bandwidth) {
        says("reading, writing and copying in order");
        sequence::in_order(&mut memory, machine, cancel);
    }
    if wanted.contains(&Part::Latency) {
        says("one load after the other");
        sequence::load_to_load(&mut memory, machine, args.seed, cancel);
    }
    if wanted.contains(&Part::Pressure) {
        let suite = PressureSuite { options: &options(args), machine, cancel, announce, says };
        let all = suite.run(&mut memory.left_out);
        let is_alone = wanted.len() == 1;
        let all = parts::taken(all, Part::Pressure, is_alone, &mut memory.left_out)?;
        memory.pressure = all.unwrap_or_default();
    }
    Ok(memory)
}

fn options(args: &BenchMemory) -> PressureOptions {
    PressureOptions {
        compare: args.compare,
        whole_machine: args.whole_machine,
        directory: args.directory.clone(),
        limit_ns: args.limit,
        memory_bytes: args.memory,
        content_percent: args.content,
        budget_bytes: args.budget,
        seconds: args.seconds,
        most: args.max_working_set,
        seed: args.seed,
    }
}

/// What a run of memory says of itself besides its figures.
pub fn complete(mut run: Run, args: &BenchMemory) -> Run {
    let pressure = run.memory().map_or(&[][..], |memory| &memory.pressure);
    let bytes_written = pressure.iter().map(|one| one.written_bytes).sum();
    let first = pressure.first();
    let region_bytes = first.map_or(0, |first| first.group.memory_bytes);
    run.bytes_written = bytes_written;
    run.target.region_bytes = region_bytes;
    run.target.content = format!("compressible to {} %", args.content);
    run.seed = args.seed;
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(limit("5ms"), Ok(5_000_000));
        assert_eq!(limit("100us"), Ok(100_000));
        assert_eq!(limit("2 s"), Ok(2_000_000_000));
        for wrong in ["5", "ms", "0ms", "-1ms", "1h"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
