//! Writes the table of compared latencies into the document named on the command line:
//! `cargo run --release -p rubus-stats --example latency -- docs/explanation/statistics.md`.

#[path = "../tests/simulate_latency/mod.rs"]
mod simulate_latency;

use simulate_latency::{Device, Judged, devices, judge, name};

const PAIRS: usize = 500;
const BEGIN: &str = "<!-- begin: written by the example `latency` -->\n";
const END: &str = "<!-- end of latency -->";

/// The head of the table.
const HEAD: &str = "\
| level drifts by | correlation | tail | p50: interval holds | half width | wrong words, run alone | wrong words | p99: interval holds | half width | wrong words, run alone | wrong words | p99 has both ends |
|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut table = String::from(HEAD);
    for device in devices() {
        table += &row(device, &judge(device, PAIRS, 1));
    }
    let Some(path) = std::env::args().nth(1) else {
        print!("{table}");
        return Ok(());
    };
    let text = std::fs::read_to_string(&path)?;
    let (before, rest) = text.split_once(BEGIN).ok_or("no place for the table")?;
    let (_, after) = rest.split_once(END).ok_or("no end of the table")?;
    std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}"))?;
    Ok(())
}

/// A row of the table.
fn row(device: Device, [p50, p99]: &[Judged; 2]) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let cells = |judged: &Judged| {
        format!(
            " {} | ±{} | {} | {} |",
            percent(judged.coverage),
            percent(judged.median_half_width),
            percent(judged.wrong_alone),
            percent(judged.wrong)
        )
    };
    format!("{}{}{} {} |\n", name(device), cells(p50), cells(p99), percent(p99.judged))
}
