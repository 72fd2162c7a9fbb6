//! Writes the tables of `docs/explanation/statistics.md` about findings: how often their intervals hold the truth.
//!
//! `cargo run --release -p rubus-stats --example findings -- docs/explanation/statistics.md`, or without a file to
//! print them.

#[path = "../tests/simulate_findings/mod.rs"]
mod simulate;

use std::process::ExitCode;

use simulate::{COURSES, LINES, QUEUES};

const TRIALS: usize = 1000;
const BEGIN: &str = "<!-- begin: written by the example `findings` -->\n";
const END: &str = "<!-- end of findings -->\n";

fn main() -> ExitCode {
    let tables = format!(
        "{TRIALS} simulated sweeps or courses for each row.\n\n{}\n{}\n{}",
        knees(),
        bends(),
        cliffs()
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

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn knees() -> String {
    let mut text = "### The knee\n\n| simulated queue | N* | noise of a point | interval holds N* | half width: median | bias | \
                    holds the ceiling | reached | one at a time |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_string();
    for (name, queue, deviation) in QUEUES {
        let got = simulate::knees(queue, deviation, TRIALS);
        text += &format!(
            "| {name} | {} | {} | {} | ±{} | {:+.1} % | {} | {} | {} |\n",
            queue.knee(),
            percent(deviation),
            percent(got.knee.coverage),
            percent(got.knee.median_half_width),
            (got.knee.bias - 1.0) * 100.0,
            percent(got.ceiling.coverage),
            percent(got.reached),
            percent(got.one_at_a_time),
        );
    }
    text
}

fn bends() -> String {
    let mut text = "### The bend\n\n| simulated sweep, 1 KiB to 16 MiB | noise of a point | interval holds the size | half width: \
                    median | bias | holds the rate |\n|---|---:|---:|---:|---:|---:|\n"
        .to_string();
    for (name, setup_s, rate, deviation) in LINES {
        let (size, rate) = simulate::bends(setup_s, rate, deviation, TRIALS);
        text += &format!(
            "| {name} | {} | {} | ±{} | {:+.1} % | {} |\n",
            percent(deviation),
            percent(size.coverage),
            percent(size.median_half_width),
            (size.bias - 1.0) * 100.0,
            percent(rate.coverage),
        );
    }
    text
}

fn cliffs() -> String {
    let mut text = "### The cliff\n\n| simulated course | a cliff is found | interval holds the burst | 95 % are within |\n\
                    |---|---:|---:|---:|\n"
        .to_string();
    for (name, course) in &COURSES {
        let got = simulate::cliffs(course, TRIALS);
        let (coverage, worst) = if course.levels[0] > course.levels[1] {
            (percent(got.coverage), format!("±{}", percent(got.worst)))
        } else {
            ("–".into(), "–".into())
        };
        text += &format!("| {name} | {} | {coverage} | {worst} |\n", percent(got.found));
    }
    text
}
