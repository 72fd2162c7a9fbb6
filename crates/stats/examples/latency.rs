//! Writes the table of compared latencies into the file named on the command line, or prints it:
//! `cargo run --release -p rubus-stats --example latency -- docs/data/latency.tsv`.

#[path = "../tests/simulate_latency/mod.rs"]
mod simulate_latency;

use simulate_latency::{Device, Judged, devices, judge, name};

const PAIRS: usize = 500;
/// The columns of the table.
const COLUMNS: &str = "level drifts by\tcorrelation\ttail\t\
    p50: interval holds\tp50: half width\tp50: wrong words, run alone\tp50: wrong words\t\
    p99: interval holds\tp99: half width\tp99: wrong words, run alone\tp99: wrong words\tp99 has both ends\n";

fn main() -> std::io::Result<()> {
    let mut table = String::from(COLUMNS);
    for device in devices() {
        table += &row(device, &judge(device, PAIRS, 1));
    }
    match std::env::args().nth(1) {
        Some(path) => std::fs::write(path, table)?,
        None => print!("{table}"),
    }
    Ok(())
}

/// A row of the table.
fn row(device: Device, [p50, p99]: &[Judged; 2]) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let cells = |judged: &Judged| {
        format!(
            "{}\t±{}\t{}\t{}",
            percent(judged.coverage),
            percent(judged.median_half_width),
            percent(judged.wrong_alone),
            percent(judged.wrong)
        )
    };
    format!("{}\t{}\t{}\t{}\n", name(device), cells(p50), cells(p99), percent(p99.judged))
}
