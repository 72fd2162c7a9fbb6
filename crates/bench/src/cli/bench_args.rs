//! Arguments of `rubus bench`.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use rubus_command::Keeping;
use rubus_fleet::inventory::Named;
use rubus_fleet::remote::Remote;

use super::lanes::Lanes;
use crate::target_name::TargetName;

/// What a bench is of, when it is not of a disk.
#[derive(Debug, Subcommand)]
pub enum BenchOf {
    Cpu(Box<rubus_processor::cli::cpu::BenchCpu>),
    Memory(Box<rubus_memory::cli::memory::BenchMemory>),
}

/// Measure targets with a suite of jobs.
///
/// A target is a directory (measures a nameless file in it), a file or a block device (both
/// read-only unless you confirm their loss). ram:SIZE is memory: the upper limit for any disk on
/// this machine. Put ./ before a path that begins with ram:, rbd: or rados:, or that is named like a subcommand.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    #[command(subcommand)]
    pub of: Option<BenchOf>,
    /// What to measure: directories, files, block devices, network disks (nbd://…), images of a Ceph
    /// cluster (rbd:POOL/IMAGE), objects in a pool of one (rados:POOL), or memory as ram:SIZE
    #[arg(required_unless_present = "fio_job", value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub targets: Vec<TargetName>,
    /// Which suite of jobs (`rubus suites` lists them) [default: quick; of
    /// memory, ram]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Measure each target alone and all at once, and find the pipe they share
    #[arg(long, conflicts_with_all = ["fio_job", "precision"])]
    pub together: bool,
    /// Run the jobs of a fio job file (`-`: standard input), on TARGET or else on the files and
    /// devices it names
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["suite", "read_only", "budget", "precision", "content", "full", "drop_caches", "against"])]
    pub fio_job: Option<PathBuf>,
    /// Set an option for all jobs that do not set it themselves, such as runtime=10; fio's own
    /// form (--runtime=10) works as well
    #[arg(long, requires = "fio_job", value_name = "NAME=VALUE", value_parser = fio_option)]
    pub fio_option: Vec<(String, String)>,
    /// Run a job file without its unsupported options, and list them in the result
    #[arg(long, requires = "fio_job")]
    pub ignore_unsupported: bool,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write fio's JSON format to a file, to standard output with `-`, or one file per job to a
    /// directory (for fio-plot)
    #[arg(long, value_name = "FILE")]
    pub fio_json: Option<PathBuf>,
    /// Measure only reads (in a directory, a test file is still written once, to have something to
    /// read)
    #[arg(long)]
    pub read_only: bool,
    /// Size of the test file or region, such as 256MiB [default: the suite's]
    #[arg(long, value_name = "SIZE", value_parser = rubus_vocabulary::units::parse_size)]
    pub size: Option<u64>,
    /// Limit for all data written, such as 2GiB, instead of the suite's limit
    #[arg(long, value_name = "SIZE", value_parser = rubus_vocabulary::units::parse_size)]
    pub budget: Option<u64>,
    /// End a job at this precision (half the width of its 95 % interval), such as 5% [default: the
    /// suite's]
    #[arg(long, value_name = "PERCENT", value_parser = precision)]
    pub precision: Option<f64>,
    /// Seed of the random offsets and contents [default: 1; suite capacity: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Suite capacity: test every block of a device, not just a sample
    #[arg(long)]
    pub full: bool,
    /// Suite small-files: drop the kernel's caches before each stat pass; needs root and slows
    /// other programs for a while
    #[arg(long)]
    pub drop_caches: bool,
    /// Data to write: incompressible, zeros, or the percentage it compresses to
    #[arg(long, value_name = "WHAT", default_value = "incompressible", value_parser = content)]
    pub content: rubus_vocabulary::spec::Content,
    /// Number of connections to an NBD export [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub connections: Option<u32>,
    /// Also measure the server of a network disk: HOST:PORT or socket of its `rubus serve
    /// --status`, or for any other server `ssh://[USER@]HOST[:PORT][/PROGRAM]`; without PROGRAM,
    /// its whole machine
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["together", "against"])]
    pub server_status: Option<String>,
    /// Also measure processors and network of a Ceph cluster's machines, over ssh: a list, ranges or
    /// files, as for --on
    #[arg(long, value_name = "[USER@]HOST|@FILE", value_delimiter = ',',
        value_parser = Named::parse, conflicts_with_all = ["together", "against", "on"])]
    pub nodes: Vec<Named>,
    /// Number of io_uring rings, each with a thread of its own, that share a job's queue depth: for
    /// disks that one CPU cannot keep busy; auto: as many as there are CPUs [default: 1]
    #[arg(long, value_name = "N|auto", value_parser = Lanes::parse,
        conflicts_with_all = ["threads", "together"])]
    pub lanes: Option<Lanes>,
    /// Poll for completions instead of waiting for interrupts; needs a device with poll queues, such
    /// as NVMe with nvme.poll_queues=N
    #[arg(long, conflicts_with_all = ["threads", "together"])]
    pub hipri: bool,
    /// Use threads instead of io_uring to reach the queue depth
    #[arg(long)]
    pub threads: bool,
    /// Allow everything on the target to be overwritten; takes the device's serial number, or a
    /// file's path (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Baseline to compare with; both are measured in turns
    #[arg(long, value_name = "TARGET", value_hint = clap::ValueHint::AnyPath,
        value_parser = OsStringValueParser::new().try_map(TargetName::parse))]
    pub against: Option<TargetName>,
    /// Also allow everything on the target of --against to be overwritten
    #[arg(long, value_name = "SERIAL", requires = "against")]
    pub against_i_will_lose_everything_on: Option<String>,
    #[command(flatten)]
    pub keeping: Keeping,
    #[command(flatten)]
    pub remote: Remote,
}

fn precision(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("write a percentage from 0.1 to 50, such as 5%".into()),
    }
}

fn fio_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}

fn content(text: &str) -> Result<rubus_vocabulary::spec::Content, String> {
    use rubus_vocabulary::spec::Content;
    match text {
        "incompressible" | "random" => return Ok(Content::Incompressible),
        "zeros" | "zeroes" => return Ok(Content::Zeros),
        _ => {}
    }
    match text.trim_end_matches('%').parse::<u8>() {
        Ok(percent @ 1..=99) => Ok(Content::Compressible(percent)),
        _ => Err("write incompressible, zeros, or a percentage from 1 to 99".into()),
    }
}
