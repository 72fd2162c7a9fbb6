//! Writes `docs/data/coverage.tsv`: how often the intervals of the stopping rule hold the truth, and what that costs.
//!
//! `cargo run --release -p rubus-stats --example coverage -- docs/data/coverage.tsv`, or without a file to print it.

#[path = "../tests/simulate/mod.rs"]
mod simulate;

use std::process::ExitCode;

const TRIALS: usize = 4000;

fn main() -> ExitCode {
    let mut table = simulate::COLUMNS.to_string();
    for (preset, spec) in simulate::PRESETS {
        for device in simulate::DEVICES {
            let summary = simulate::summarise(device.process, spec, TRIALS, 1);
            table += &simulate::table_row(preset, device, &summary);
        }
    }
    let Some(path) = std::env::args().nth(1) else {
        print!("{table}");
        return ExitCode::SUCCESS;
    };
    match std::fs::write(&path, &table) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
