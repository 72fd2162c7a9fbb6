//! The program: arguments, wiring, one file per verb.
//!
//! Nothing here is worth testing on its own: what decides lives in `rubus-core`, what touches the
//! machine in the rooms below.

mod args;
mod commands;
mod exit;
mod measuring;
mod places;
mod progress;
mod signals;
mod target;
mod world;

use clap::Parser;

use args::{Args, Command};
use exit::Exit;

fn main() -> std::process::ExitCode {
    signals::die_quietly_on_a_closed_pipe();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::of_usage(&error),
    };
    match run(args) {
        Ok(exit) => exit.code(),
        Err(error) => exit::of_error(&error),
    }
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let general = args.general;
    match args.command {
        None => commands::checkup::run(&general, &args::Checkup::of_current_directory(args.json)),
        Some(Command::Checkup(checkup)) => commands::checkup::run(&general, &checkup),
        Some(Command::Survey(survey)) => commands::survey::run(&general, &survey),
        Some(Command::Bench(bench)) => commands::bench::run(&general, &bench),
        Some(Command::History(history)) => commands::history::run(&general, &history),
        Some(Command::Completions(completions)) => commands::completions::run(&completions),
        Some(Command::Manual(manual)) => commands::manual::run(&manual),
    }
}
