//! `rubus bench cpu`: what the processor does for ciphers, ssh, compression and arithmetic.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use rubus_command::values::{is_wanted, seconds_within, time_within};
use rubus_command::{Kept, parts};
use rubus_vocabulary::heat::Heat;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::processor::compression::{Cut, Method};
use rubus_vocabulary::processor::{MIN_SECONDS, Part, ProcessorRun, USUAL_SECONDS};
use rubus_vocabulary::verb::{MISTAKE, Page};

use crate::solving::{BLOCKS, MAX_SIZE, MIN_SIZE};
use crate::suite::{CpuOptions, CpuSuite};

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-bench-cpu",
    statuses: &[(0, "measured"), (1, "cut short, or a result was wrong or changed"), MISTAKE],
    examples: &[
        (
            "rubus bench cpu ciphers",
            "Say whether an encrypted disk would be slowed by the processor.",
        ),
        (
            "rubus bench cpu linpack --stability 10m",
            "Check for ten minutes that the processor calculates correctly.",
        ),
    ],
};

/// Measure the processor: ciphers, ssh, compression, Linpack.
///
/// Each figure on one core and on all, with the instructions used, and with clock, temperature and
/// supply voltage during the run. Needs no root and writes nothing. ssh runs from this machine to
/// itself, with a temporary server and keys.
#[derive(Debug, Args)]
pub struct BenchCpu {
    /// Parts to measure [default: all]
    #[arg(value_name = "PART", value_enum)]
    pub parts: Vec<PartName>,
    /// Seconds per figure
    #[arg(long, value_name = "SECONDS", default_value_t = USUAL_SECONDS, value_parser = seconds)]
    pub seconds: f64,
    /// Compress a sample of the files below this directory (reads at most 8 MiB, writes nothing)
    #[arg(long, value_name = "DIRECTORY", default_value = "/")]
    pub data: PathBuf,
    /// Compression methods: `all` levels, or a list such as zstd:3,zlib:6,lz4
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Unknowns of Linpack's system [default: what fits a few seconds and a quarter of the free
    /// memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(MIN_SIZE)..=i64::from(MAX_SIZE)))]
    pub unknowns: Option<u32>,
    /// Columns that Linpack eliminates at once: the block sizes to try, such
    /// as 64,128
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub blocks: Vec<u32>,
    /// Solve the same system repeatedly for this long, and check that each result is correct and
    /// identical: 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = long_time)]
    pub stability: Option<f64>,
    /// Path of HPL's `xhpl`, to show its result too [default: the installed one, if any]
    #[arg(long, value_name = "FILE")]
    pub hpl: Option<PathBuf>,
    /// Run no other programs for comparison (OpenSSL, HPL)
    #[arg(long, conflicts_with = "hpl")]
    pub alone: bool,
    /// Alternate with this other rubus, such as a 32-bit one, and compare the two; nothing goes
    /// into the history
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["stability", "hpl", "label"])]
    pub against_binary: Option<PathBuf>,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub kept: Kept,
}

/// A part by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartName {
    /// Ciphers and checksums
    Ciphers,
    /// ssh from this machine to itself, with every cipher that both ends offer
    Ssh,
    /// Compression and decompression of your files and known data, as btrfs and compressed swap do
    /// it
    Compression,
    /// Solving a dense system of linear equations, with a check of the result
    Linpack,
}

impl BenchCpu {
    /// What to compress with, for each way to cut data into pieces.
    ///
    /// # Errors
    /// When a name is none.
    pub fn wanted_methods(&self, page_bytes: u32) -> Result<Vec<(Cut, Vec<Method>)>, String> {
        let cuts = [Cut::Extents, Cut::Pages { bytes: page_bytes }];
        let named: Vec<&str> = self.methods.iter().map(String::as_str).collect();
        let methods = |cut: Cut| match named[..] {
            [] => Ok(cut.usual_methods()),
            ["all"] => Ok(cut.all_methods()),
            _ => named.iter().map(|name| name.parse()).collect(),
        };
        cuts.into_iter().map(|cut| Ok((cut, methods(cut)?))).collect()
    }

    /// Block sizes to try.
    pub fn wanted_blocks(&self) -> Vec<u32> {
        if self.blocks.is_empty() { BLOCKS.to_vec() } else { self.blocks.clone() }
    }

    /// The parts in the order of measuring, each once.
    pub fn wanted_parts(&self) -> Vec<Part> {
        let parts = Part::ALL.into_iter();
        parts.filter(|part| is_wanted(&self.parts, part.name())).collect()
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    seconds_within(text, MIN_SECONDS, 60.0)
}

fn long_time(text: &str) -> Result<f64, String> {
    time_within(text, 1.0..=604_800.0)
        .ok_or_else(|| "write a time from 1s to 168h, such as 10m".into())
}

/// What is around the measurement.
pub struct Around<'a> {
    /// As surveyed before the run.
    pub machine: &'a Machine,
    /// Set when the user has had enough.
    pub cancel: &'a AtomicBool,
    /// Says what is measured now.
    pub says: &'a dyn Fn(&str),
    /// Does something and gives what was seen of clock and heat meanwhile.
    pub watched: &'a dyn Fn(&mut dyn FnMut()) -> Vec<Heat>,
}

/// Measures the parts; each fills its place in the result, or is left out with the reason.
///
/// # Errors
/// Why a part failed, where it alone was asked for.
pub fn measure(args: &BenchCpu, around: &Around<'_>) -> anyhow::Result<ProcessorRun> {
    let mut processor = ProcessorRun {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        pointer_bits: usize::BITS,
        architecture: std::env::consts::ARCH.into(),
        seconds: args.seconds,
        ..ProcessorRun::default()
    };
    let options = options(args);
    let suite = CpuSuite {
        machine: around.machine,
        options: &options,
        cores: processor.cores,
        cancel: around.cancel,
        says: around.says,
        watched: around.watched,
    };
    let is_alone = args.parts.len() == 1;
    for part in args.wanted_parts() {
        if around.cancel.load(Ordering::Relaxed) {
            break;
        }
        let measured = suite.measure(part, &mut processor);
        parts::taken(measured, part, is_alone, &mut processor.left_out)?;
    }
    Ok(processor)
}

fn options(args: &BenchCpu) -> CpuOptions<'_> {
    CpuOptions {
        seconds: args.seconds,
        data: args.data.clone(),
        methods: Box::new(|page_bytes| args.wanted_methods(page_bytes)),
        unknowns: args.unknowns,
        blocks: args.wanted_blocks(),
        stability: args.stability,
        hpl: args.hpl.clone(),
        alone: args.alone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_methods_names() {
        assert_eq!(
            (long_time("10m"), long_time("1h"), long_time("90")),
            (Ok(600.0), Ok(3600.0), Ok(90.0))
        );
        for wrong in ["0", "x", "10d", "nan", "m"] {
            assert!(long_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_part_has_its_name_on_the_command_line() {
        let names: Vec<String> = PartName::value_variants()
            .iter()
            .filter_map(|name| Some(name.to_possible_value()?.get_name().to_string()))
            .collect();
        assert_eq!(names, Part::ALL.map(Part::name));
    }

    #[test]
    fn seconds_are_between_a_moment_and_a_minute() {
        assert_eq!(seconds("0.3"), Ok(0.3));
        assert_eq!(seconds("2s"), Ok(2.0));
        for wrong in ["0", "-1", "61", "x", "nan"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
