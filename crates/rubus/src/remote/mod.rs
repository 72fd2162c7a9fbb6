//! `--on`: the same command on other machines, over the system's ssh.
//!
//! A bounded number of machines work in parallel, each with its own live line; their results are
//! taken as
//! if they had been measured here. One machine's result is shown as always; several are a fleet,
//! with one
//! table and one document.

mod advising;
mod candidates;
mod connection;
mod copy;
mod fleet;
mod page_names;
mod results;
mod screen;
mod task;
mod work;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use clap::ArgMatches;
use rubus_draw::text::listed;
use rubus_fleet::inventory::Board;
use rubus_fleet::remote::Machines;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use crate::args::{Args, Command, Remote};
use crate::exit::Exit;
use connection::{Common, Connection, NotReached, Questions};
use results::Results;
use rubus_command::Terminal;
use rubus_command::signals;
use screen::Screen;
use task::Task;

/// What a machine's thread tells.
enum Told {
    /// A finished run.
    Run(Box<Run>),
    /// The machine's survey.
    Machine(Box<Machine>),
    /// It is done: the exit status there, or why there is none.
    Ended(anyhow::Result<u8>),
}

/// The same with the machine's number in the list.
type FromMachine = (usize, Told);

/// The machines that were reached, by the kernel's number for this start of each.
type Boots = Mutex<BTreeMap<String, Vec<usize>>>;

/// Runs the command on the machines of `--on`.
pub fn run(args: &Args, way: &Remote, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let general = &args.general;
    let machines = Machines::of(way)?;
    let boards = &machines.boards;
    let task = Task::of(args, matches, boards.len())?;
    let results = Results::new(args, &machines, task.targets * boards.len())?;
    signals::survive_closed_pipes();
    let cancel = signals::cancel_flag()?;
    let names: Vec<&str> = boards.iter().map(|board| board.name.as_str()).collect();
    let terminal = Terminal::of(general);
    let screen = Screen::new(terminal, general.quiet, &names, machines.is_fleet);
    for note in machines.notes.iter().filter(|_| !general.quiet) {
        screen.say(&format!("rubus: {note}"));
    }
    let common = Common {
        remote: way,
        candidates: &candidates::Candidates::gather(way)?,
        task: &task,
        screen: &screen,
        cancel: &cancel,
        is_fleet: machines.is_fleet,
    };
    let (sender, receiver) = channel();
    let (next, boots) = (AtomicUsize::new(0), Boots::default());
    let exit = std::thread::scope(|scope| {
        for _ in 0..usize::from(way.at_once).clamp(1, boards.len()) {
            let (sender, common, next, boots) = (sender.clone(), &common, &next, &boots);
            scope.spawn(move || work_off(boards, next, common, boots, &sender));
        }
        drop(sender);
        collect(&receiver, results, &machines, &screen)
    });
    if !matches!(args.command, Some(Command::Survey(_) | Command::Advise(_))) {
        warn_of_twins(&boots, &names, &screen);
    }
    exit
}

/// Takes one machine after the other from the list until it is at its end.
fn work_off(
    boards: &[Board],
    next: &AtomicUsize,
    common: &Common<'_>,
    boots: &Boots,
    sender: &Sender<FromMachine>,
) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(board) = boards.get(number) else {
            return;
        };
        let tell = |told| drop(sender.send((number, told)));
        common.screen.begin();
        let ended = on_board(number, board, common, boots, &tell);
        common.screen.end(number, ended.is_err());
        tell(Told::Ended(ended));
    }
}

fn on_board(
    number: usize,
    board: &Board,
    common: &Common<'_>,
    boots: &Boots,
    tell: &dyn Fn(Told),
) -> anyhow::Result<u8> {
    anyhow::ensure!(
        !common.cancel.load(Ordering::Relaxed),
        "{}: interrupted before anything was measured",
        board.name
    );
    let connection = connect(number, board, common)?;
    if let Some(boot) = &connection.place.boot {
        let mut boots = boots.lock().unwrap_or_else(PoisonError::into_inner);
        boots.entry(boot.clone()).or_default().push(number);
    }
    work::on(connection, common.task, common.screen, tell)
}

/// Connects. Of several machines, only those that need it may ask something, one after the other.
fn connect(number: usize, board: &Board, common: &Common<'_>) -> anyhow::Result<Connection> {
    let screen = common.screen;
    if !common.is_fleet {
        // No live line: ssh may ask something on the terminal, and a line that is drawn again and again
        // would hide it.
        screen.done(number, "connecting");
        return Connection::open(number, board, common, Questions::Allowed);
    }
    screen.status(number, "connecting");
    let opened = Connection::open(number, board, common, Questions::Forbidden);
    let wants_an_answer = |error: &anyhow::Error| {
        let not_reached = error.downcast_ref::<NotReached>();
        not_reached.is_some_and(|error| error.wants_an_answer)
    };
    match opened {
        Err(error) if wants_an_answer(&error) && std::io::stdin().is_terminal() => {
            screen.clear(number);
            screen.while_asking(|| {
                screen.done(number, "connecting");
                Connection::open(number, board, common, Questions::Allowed)
            })
        }
        opened => opened,
    }
}

/// Two names for one machine measure at the same time, and disturb each other.
fn warn_of_twins(boots: &Boots, names: &[&str], screen: &Screen) {
    let boots = boots.lock().unwrap_or_else(PoisonError::into_inner);
    for twins in boots.values().filter(|twins| twins.len() > 1) {
        let mut twins = twins.clone();
        twins.sort_unstable();
        let twins: Vec<&str> = twins.iter().map(|number| names[*number]).collect();
        screen.say(&format!(
            "rubus: {} are the same machine, so their measurements disturb each other",
            listed(&twins)
        ));
    }
}

/// Takes what the machines tell until all have ended.
fn collect(
    receiver: &Receiver<FromMachine>,
    mut results: Results<'_>,
    machines: &Machines,
    screen: &Screen,
) -> anyhow::Result<Exit> {
    let mut worst = 0;
    for (number, told) in receiver {
        match told {
            Told::Run(run) => screen.around(|| results.run(number, run))?,
            Told::Machine(machine) => results.machine(number, machine),
            Told::Ended(Ok(status)) => {
                results.ended(number, status);
                worst = worst.max(status);
            }
            // One machine's error is the program's own.
            Told::Ended(Err(error)) if !machines.is_fleet => {
                screen.around(|| results.finish())?;
                return Err(error);
            }
            Told::Ended(Err(error)) => {
                screen.say(&format!("rubus: {error:#}"));
                results.failed(number, &error);
                worst = worst.max(2);
            }
        }
    }
    screen.finish();
    let ours = screen.around(|| results.finish())?;
    Ok(match worst {
        0 => ours,
        worst => Exit::Status(worst),
    })
}
