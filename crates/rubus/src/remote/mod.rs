//! `--on`: the same command on other machines, over the system's ssh.
//!
//! Connect to one machine after the other (ssh may ask for passwords), then let all of them work in
//! parallel, each with its own live line; take their results as if they had been measured here.

mod candidates;
mod connection;
mod copy;
mod screen;
mod task;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use anyhow::Context;
use clap::ArgMatches;
use rubus_measure::verdict::verdict;
use rubus_remote::Destination;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use crate::args::{Args, Bench, Command, General, Remote, Survey};
use crate::commands::survey::document;
use crate::commands::{against, bench_options, checkup};
use crate::exit::Exit;
use crate::measuring::Measured;
use crate::outputs::{self, Outputs};
use crate::places;
use crate::signals;
use crate::world::Terminal;
use connection::Connection;
use screen::Screen;
use task::Task;

/// What a machine's thread tells.
enum Told {
    /// A finished run.
    Run(Box<Run>),
    /// A survey.
    Machine(Box<Machine>),
    /// It is done: the exit status there, or why there is none.
    Ended(anyhow::Result<u8>),
}

/// The same with the machine's number in the list.
type FromMachine = (usize, Told);

/// Runs the command on the machines of `--on`.
pub fn run(args: &Args, way: &Remote, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let general = &args.general;
    let machines = &way.on;
    check_names(machines)?;
    let task = Task::of(args, matches)?;
    let results = Results::new(args, task.targets * machines.len())?;
    signals::survive_closed_pipes();
    let cancel = signals::cancel_flag()?;
    let screen = Arc::new(Screen::new(Terminal::of(general), general.quiet, machines));
    let (connections, failures) = connect(way, &task, &screen, &cancel)?;
    if !matches!(args.command, Some(Command::Survey(_))) {
        warn_of_twins(&connections, &screen);
    }
    let (sender, receiver) = channel();
    for (number, failure) in failures {
        // The receiver is alive.
        let _ = sender.send((number, Told::Ended(Err(failure))));
    }
    std::thread::scope(|scope| {
        for (number, connection) in connections {
            let (sender, task, screen) = (sender.clone(), &task, &screen);
            scope.spawn(move || {
                let tell = |told| drop(sender.send((number, told)));
                let ended = work::on(connection, task, screen, &tell);
                screen.clear(number);
                tell(Told::Ended(ended));
            });
        }
        drop(sender);
        collect(&receiver, results, machines, &screen)
    })
}

fn check_names(machines: &[Destination]) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    for machine in machines {
        anyhow::ensure!(
            seen.insert(machine),
            "--on names {machine} twice, and it would measure itself twice at the same time"
        );
    }
    Ok(())
}

type Connected = (Vec<(usize, Connection)>, Vec<(usize, anyhow::Error)>);

/// One after the other: they may all ask something on the same terminal.
fn connect(
    way: &Remote,
    task: &Task,
    screen: &Screen,
    cancel: &Arc<AtomicBool>,
) -> anyhow::Result<Connected> {
    let candidates = candidates::Candidates::gather(way)?;
    let (mut connections, mut failures) = (Vec::new(), Vec::new());
    for (number, machine) in way.on.iter().enumerate() {
        // No live line: ssh may ask something on the terminal, and a line that is drawn again and again
        // would hide it.
        screen.done(number, "connecting");
        match Connection::open(number, machine, way, &candidates, task, screen, cancel) {
            Ok(connection) => connections.push((number, connection)),
            Err(error) => failures.push((number, error)),
        }
        anyhow::ensure!(
            !cancel.load(Ordering::Relaxed),
            "interrupted while connecting to {machine}"
        );
    }
    Ok((connections, failures))
}

/// Two names for one machine measure at the same time, and disturb each other.
fn warn_of_twins(connections: &[(usize, Connection)], screen: &Screen) {
    for (at, (_, one)) in connections.iter().enumerate() {
        let twin = connections[..at]
            .iter()
            .find(|(_, other)| one.place.boot.is_some() && one.place.boot == other.place.boot);
        if let Some((_, other)) = twin {
            screen.say(&format!(
                "rubus: {} and {} are the same machine, so their measurements disturb each other",
                other.destination, one.destination
            ));
        }
    }
}

/// Takes what the machines tell until all have ended.
fn collect(
    receiver: &Receiver<FromMachine>,
    mut results: Results<'_>,
    machines: &[Destination],
    screen: &Screen,
) -> anyhow::Result<Exit> {
    let mut worst = 0;
    for (number, told) in receiver {
        match told {
            Told::Run(run) => screen.around(|| results.run(number, run))?,
            Told::Machine(machine) => results.machine(number, machine),
            Told::Ended(Ok(status)) => worst = worst.max(status),
            // With one machine, its error is the program's own.
            Told::Ended(Err(error)) if machines.len() == 1 => {
                screen.around(|| results.finish(machines))?;
                return Err(error);
            }
            Told::Ended(Err(error)) => {
                screen.say(&format!("rubus: {error:#}"));
                worst = worst.max(2);
            }
        }
    }
    let ours = screen.around(|| results.finish(machines))?;
    Ok(match worst {
        0 => ours,
        worst => Exit::Status(worst),
    })
}

/// Where the results go.
enum Results<'a> {
    /// Runs: to the history, pages, files and the terminal.
    Runs {
        general: &'a General,
        outputs: Box<Outputs<'a>>,
        /// Each machine measures two targets in turns, and what counts is how they compare.
        against: Option<&'a Bench>,
    },
    /// Surveys: to standard output, in the order of the machines.
    Machines {
        general: &'a General,
        survey: &'a Survey,
        all: Vec<Option<Machine>>,
    },
}

impl<'a> Results<'a> {
    fn new(args: &'a Args, expected: usize) -> anyhow::Result<Self> {
        let wanted = match &args.command {
            Some(Command::Bench(bench)) => bench_options::wanted(bench),
            Some(Command::Checkup(checkup)) => checkup::wanted(checkup),
            Some(Command::Survey(survey)) => {
                return Ok(Results::Machines {
                    general: &args.general,
                    survey,
                    all: vec![None; expected],
                });
            }
            _ => anyhow::bail!("only what measures or surveys has results"),
        };
        let against = match &args.command {
            Some(Command::Bench(bench)) => Some(&**bench).filter(|bench| bench.against.is_some()),
            _ => None,
        };
        outputs::check(&wanted)?;
        anyhow::ensure!(
            wanted.keeping.html.is_none() || expected == 1,
            "--html names one file, but there will be {expected} pages; leave it out, and each run's page \
             goes to the data directory"
        );
        let mut outputs = Outputs::new(&args.general, wanted, expected);
        if against.is_some() {
            outputs = outputs.without_text();
        }
        Ok(Results::Runs {
            general: &args.general,
            outputs: Box::new(outputs),
            against,
        })
    }

    fn run(&mut self, number: usize, run: Box<Run>) -> anyhow::Result<()> {
        match self {
            Results::Runs { outputs, .. } => outputs.take_from(
                number,
                Measured {
                    verdict: verdict(&run),
                    run: *run,
                    ended_by: None,
                    left_out: Vec::new(),
                },
            ),
            Results::Machines { .. } => Ok(()),
        }
    }

    fn machine(&mut self, number: usize, machine: Box<Machine>) {
        if let Results::Machines { all, .. } = self {
            all[number] = Some(*machine);
        }
    }

    fn finish(self, machines: &[Destination]) -> anyhow::Result<Exit> {
        match self {
            Results::Runs {
                general,
                outputs,
                against,
            } => {
                match against {
                    None => outputs.compare()?,
                    Some(bench) => show_turns(general, bench, &outputs, machines)?,
                }
                outputs.finish()
            }
            Results::Machines {
                general,
                survey,
                all,
            } => show(general, survey, &all, machines),
        }
    }
}

/// How the two targets of each machine compare.
fn show_turns(
    general: &General,
    bench: &Bench,
    outputs: &Outputs<'_>,
    machines: &[Destination],
) -> anyhow::Result<()> {
    for (number, name) in machines.iter().enumerate() {
        if let [baseline, subject] = outputs.runs_of(number)[..] {
            if machines.len() > 1 {
                places::say(&format!("=== {name}\n"))?;
            }
            against::show(general, bench, [baseline, subject])?;
        }
    }
    Ok(())
}

/// The surveys: one object or a list, one text or several with the machine's name above.
fn show(
    general: &General,
    survey: &Survey,
    all: &[Option<Machine>],
    machines: &[Destination],
) -> anyhow::Result<Exit> {
    let known: Vec<&Machine> = all.iter().flatten().collect();
    if survey.json.wanted && !known.is_empty() {
        let objects: Vec<_> = known.iter().map(|machine| document(machine)).collect();
        let text = match &objects[..] {
            [only] if machines.len() == 1 => serde_json::to_string_pretty(only),
            several => serde_json::to_string_pretty(several),
        };
        let text = text.context("cannot write the machines as JSON")?;
        places::say(&(text + "\n"))?;
        return Ok(Exit::Fine);
    }
    let style = Terminal::of(general).style();
    for (machine, name) in all.iter().zip(machines) {
        let Some(machine) = machine else { continue };
        if machines.len() > 1 {
            places::say(&format!("=== {name}\n"))?;
        }
        places::say(&rubus_machine::text::render(machine, survey.verbose, style))?;
        if machines.len() > 1 {
            places::say("\n")?;
        }
    }
    Ok(Exit::Fine)
}
