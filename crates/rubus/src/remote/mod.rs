//! `--on`: the same command on other machines, over the system's ssh.
//!
//! Their results are taken as if they had been measured here. One machine's result is shown as always; several are a
//! fleet, with one table and one document.

mod advising;
mod fleet;
mod results;
mod task;

use clap::ArgMatches;
use rubus_command::{Exit, Terminal};
use rubus_fleet::remote::{self, Machines, Order, Remote};

use crate::args::{Args, Command};
use results::Results;

/// Runs the command on the machines of `--on`.
pub fn run(args: &Args, way: &Remote, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let machines = Machines::of(way)?;
    let boards = machines.boards.len();
    let task = task::of(args, matches, boards)?;
    let results = Results::new(args, &machines, task.targets * boards)?;
    let order = Order {
        way,
        machines: &machines,
        task: &task,
        terminal: Terminal::of(&args.general),
        quiet: args.general.quiet,
        measures: !matches!(args.command, Some(Command::Survey(_) | Command::Advise(_))),
    };
    remote::run(&order, results)
}
