//! The program: arguments, wiring, one file per verb.
//!
//! Nothing here is worth testing on its own: what decides lives in its room, what touches the
//! machine in the rooms below.
#![forbid(unsafe_code)]

mod args;
mod build_facts;
mod commands;
mod documents;
mod exit;
mod guarding;
mod remote;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod share_rules;

use args::{Args, Command};
use clap::ArgMatches;
use commands::pages::Drawn;
use exit::Exit;
use rubus_bench::cli;
use rubus_command::{places, signals};
use rubus_fleet::cli::{compare, gallery};
use rubus_fleet::remote::life_line;

fn main() -> std::process::ExitCode {
    signals::die_quietly_on_a_closed_pipe();
    signals::survive_large_files();
    if let Some(text) = build_facts::asked_for(std::env::args_os().skip(1)) {
        return match places::say(&text) {
            Ok(()) => exit::code(Exit::Fine),
            Err(error) => exit::of_error(&error),
        };
    }
    let (args, matches) = match args::before::parse(std::env::args_os().collect()) {
        Ok(parsed) => parsed,
        Err(error) => return exit::of_usage(error),
    };
    if args.general.records {
        life_line::hold();
    }
    let code = match run(args, &matches) {
        Ok(exit) => exit::code(exit),
        Err(error) => exit::of_error(&error),
    };
    life_line::abandoned().unwrap_or(code)
}

fn run(args: Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    args.must_read_machine().map_err(anyhow::Error::msg)?;
    if let Some(way) = args.remote().map_err(anyhow::Error::msg)? {
        let way = way.clone();
        return remote::run(&args.or_checkup(), &way, matches);
    }
    let general = args.general;
    match args.command {
        None => cli::checkup::run(&general, &args::Checkup::of_current_directory(args.json)),
        Some(Command::Checkup(checkup)) => cli::checkup::run(&general, &checkup),
        Some(Command::Survey(survey)) => commands::survey::run(&general, &survey),
        Some(Command::Explain(explain)) => commands::explain::run(&general, &explain),
        Some(Command::Boot(boot)) => rubus_boot_check::cli::run(&general, &boot),
        Some(Command::Bench(bench)) => match &bench.of {
            Some(args::BenchOf::Cpu(cpu)) => cli::cpu::run(&general, cpu),
            Some(args::BenchOf::Memory(memory)) => cli::memory::run(&general, memory),
            None => cli::bench::run(&general, &bench),
        },
        Some(Command::Enough(enough)) => cli::enough::run(&general, &enough),
        Some(Command::Suites(suites)) => cli::suites::run(&general, &suites),
        Some(Command::Compare(verb)) => compare::run(&general, &verb, &Drawn),
        Some(Command::Gallery(verb)) => gallery::run(&general, &verb, &Drawn),
        Some(Command::Runs(verb)) => rubus_runs::cli::run(&general, &verb, &Drawn),
        Some(Command::Copy(copy)) => rubus_copy::cli::run(&general, &copy),
        Some(Command::Nbd(verb)) => commands::nbd::run(&general, &verb),
        Some(Command::Change(verb)) => commands::change::run(&general, &verb),
        Some(Command::Compression(files)) => {
            rubus_processor::cli::compression::run(&general, &files)
        }
        Some(Command::Zswap(zswap)) => rubus_memory::cli::zswap::run(&general, &zswap),
        Some(Command::Advise(advise)) => commands::advise::run(&general, &advise),
        Some(Command::Tune(tune)) => commands::tune::run(&general, &tune),
        Some(Command::Cluster(cluster)) => commands::cluster::run(&general, &cluster),
        Some(Command::Watch(verb)) => rubus_watch::cli::run(&general, &verb),
        Some(Command::Completions(completions)) => commands::completions::run(&completions),
        Some(Command::Manual(manual)) => commands::manual::run(&manual),
    }
}
