//! Writes the tables of `docs/explanation/statistics.md`: how often the intervals of the stopping rule hold the
//! truth, and what that costs.
//!
//! `cargo run --release -p rubus-stats --example coverage -- docs/explanation/statistics.md`, or without a file
//! to print them.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

use std::process::ExitCode;

const TRIALS: usize = 4000;
const BEGIN: &str = "<!-- begin: written by the example `coverage` -->\n";
const END: &str = "<!-- end -->\n";

fn main() -> ExitCode {
    let tables = format!(
        "{TRIALS} simulated measurements for each row.\n\n{}\n{}",
        table("quick: ±10 %, 3 to 8 s", simulate::QUICK),
        table("normal: ±5 %, 10 to 120 s", simulate::NORMAL),
    );
    let Some(path) = std::env::args().nth(1) else {
        print!("{tables}");
        return ExitCode::SUCCESS;
    };
    match replace(&path, &tables) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the tables into {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Puts the tables between the two marks of the file.
fn replace(path: &str, tables: &str) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path)?;
    let (before, rest) = text.split_once(BEGIN).ok_or("the first mark is missing")?;
    let (_, after) = rest.split_once(END).ok_or("the second mark is missing")?;
    std::fs::write(path, format!("{before}{BEGIN}{tables}{END}{after}"))?;
    Ok(())
}

fn table(title: &str, spec: rubus_stats::stop::StopSpec) -> String {
    let mut text = format!("### {title}\n\n{}", simulate::TABLE_HEAD);
    for device in simulate::DEVICES {
        let summary = simulate::summarise(device.process, spec, TRIALS, 1);
        text += &simulate::table_row(device, &summary);
    }
    text
}
