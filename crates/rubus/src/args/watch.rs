//! Arguments of `rubus watch`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Watch the machine while it works: disks, processors, memory, swap, heat.
///
/// Keys: q quits, space pauses the screen, p hides and shows programs; in a recording the arrows
/// step, + and - change the speed, Home goes to the start. An ordinary user sees only their own
/// programs, and not all of zswap.
#[derive(Debug, ClapArgs)]
pub struct Watch {
    /// Time between two samples, from 0.1 to 3600 seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: f64,
    /// Take two samples, print the result, and exit
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub json: Json,
    /// Record every sample in a new file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Show a recording instead of this machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "prometheus", "server_status", "interval"])]
    pub replay: Option<PathBuf>,
    /// Playback speed, as a multiple of real time
    #[arg(long, value_name = "FACTOR", requires = "replay", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Write a file for node_exporter's textfile collector, at most every 15 seconds; its name ends
    /// in .prom
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,
    /// Also show the clients of the `rubus serve` with this --status
    #[arg(long, alias = "nbd-status", value_name = "FILE or ADDRESS:PORT")]
    pub server_status: Option<String>,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.trim_end_matches('s').trim().parse().ok();
    seconds
        .filter(|seconds| (0.1..=3600.0).contains(seconds))
        .ok_or_else(|| "give seconds from 0.1 to 3600".into())
}

fn speed(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.trim_end_matches(['x', '×']).trim().parse().ok();
    factor
        .filter(|factor| (0.01..=1000.0).contains(factor))
        .ok_or_else(|| "give a factor from 0.01 to 1000".into())
}
