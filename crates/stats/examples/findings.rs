//! Writes `knee.tsv`, `bend.tsv` and `cliff.tsv`: how often the intervals of findings hold the truth.
//!
//! `cargo run --release -p rubus-stats --example findings -- docs/data`, or without a directory to print them.

#[path = "../tests/simulate_findings/mod.rs"]
mod simulate;

use std::path::Path;

use simulate::{COURSES, LINES, QUEUES};

const TRIALS: usize = 1000;

fn main() -> std::io::Result<()> {
    let directory = std::env::args().nth(1);
    for (name, table) in [("knee", knees()), ("bend", bends()), ("cliff", cliffs())] {
        match &directory {
            Some(directory) => {
                std::fs::write(Path::new(directory).join(format!("{name}.tsv")), table)?
            }
            None => println!("{table}"),
        }
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn knees() -> String {
    let mut text =
        "simulated queue\tN*\tnoise of a point\tinterval holds N*\thalf width: median\tbias\t\
                    holds the ceiling\treached\tone at a time\n"
            .to_string();
    for (name, queue, deviation) in QUEUES {
        let got = simulate::knees(queue, deviation, TRIALS);
        text += &format!(
            "{name}\t{}\t{}\t{}\t±{}\t{:+.1} %\t{}\t{}\t{}\n",
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
    let mut text = "simulated sweep, 1 KiB to 16 MiB\tnoise of a point\tinterval holds the size\t\
                    half width: median\tbias\tholds the rate\n"
        .to_string();
    for (name, setup_s, rate, deviation) in LINES {
        let (size, rate) = simulate::bends(setup_s, rate, deviation, TRIALS);
        text += &format!(
            "{name}\t{}\t{}\t±{}\t{:+.1} %\t{}\n",
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
    let mut text =
        "simulated course\ta cliff is found\tinterval holds the burst\t95 % are within\n"
            .to_string();
    for (name, course) in &COURSES {
        let got = simulate::cliffs(course, TRIALS);
        let (coverage, worst) = if course.levels[0] > course.levels[1] {
            (percent(got.coverage), format!("±{}", percent(got.worst)))
        } else {
            ("–".into(), "–".into())
        };
        text += &format!("{name}\t{}\t{coverage}\t{worst}\n", percent(got.found));
    }
    text
}
