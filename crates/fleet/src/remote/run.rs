//! One command on many machines: a bounded number of them work in parallel, each with its own live line.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use rubus_command::{Exit, Terminal, signals};
use rubus_draw::text::listed;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use super::candidates::Candidates;
use super::connection::{Common, Connection, NotReached, Questions};
use super::machines::Machines;
use super::screen::Screen;
use super::task::Task;
use super::told::Told;
use super::way::Remote;
use super::work;
use crate::inventory::Board;

/// A command for other machines.
pub struct Order<'a> {
    /// How they are reached.
    pub way: &'a Remote,
    /// Which ones.
    pub machines: &'a Machines,
    /// What they shall do.
    pub task: &'a Task,
    /// What the user sees of it.
    pub terminal: Terminal,
    /// Only results are shown.
    pub quiet: bool,
    /// They measure, which two names for one machine would do at the same time.
    pub measures: bool,
}

/// Where what the machines give goes. Each is named by its number in the list.
pub trait Results {
    /// Takes a run of a machine.
    ///
    /// # Errors
    /// When it cannot be shown or written.
    fn run(&mut self, number: usize, run: Box<Run>) -> anyhow::Result<()>;
    /// Takes the facts of a machine.
    fn machine(&mut self, number: usize, machine: Box<Machine>);
    /// A machine's command ended with this status.
    fn ended(&mut self, number: usize, status: u8);
    /// A machine gave no result, or not all.
    fn failed(&mut self, number: usize, error: &anyhow::Error);
    /// Shows and writes what waits for all.
    ///
    /// # Errors
    /// When it cannot be written.
    fn finish(self) -> anyhow::Result<Exit>;
}

/// The same with the machine's number in the list.
type FromMachine = (usize, Told);

/// The machines that were reached, by the kernel's number for this start of each.
type Boots = Mutex<BTreeMap<String, Vec<usize>>>;

/// Runs a command on its machines.
///
/// # Errors
/// When no program can be copied, or a result cannot be written; where only one machine is meant, its own error.
pub fn run(order: &Order<'_>, results: impl Results) -> anyhow::Result<Exit> {
    let machines = order.machines;
    let boards = &machines.boards;
    signals::survive_closed_pipes();
    let cancel = signals::cancel_flag()?;
    let names: Vec<&str> = boards.iter().map(|board| board.name.as_str()).collect();
    let screen = Screen::new(order.terminal, order.quiet, &names, machines.is_fleet);
    for note in machines.notes.iter().filter(|_| !order.quiet) {
        screen.say(&format!("rubus: {note}"));
    }
    let common = Common {
        remote: order.way,
        candidates: &Candidates::gather(order.way)?,
        task: order.task,
        screen: &screen,
        cancel: &cancel,
        is_fleet: machines.is_fleet,
    };
    let (sender, receiver) = channel();
    let (next, boots) = (AtomicUsize::new(0), Boots::default());
    let exit = std::thread::scope(|scope| {
        for _ in 0..usize::from(order.way.at_once).clamp(1, boards.len()) {
            let (sender, common, next, boots) = (sender.clone(), &common, &next, &boots);
            scope.spawn(move || work_off(boards, next, common, boots, &sender));
        }
        drop(sender);
        collect(&receiver, results, machines, &screen)
    });
    if order.measures {
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
    mut results: impl Results,
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
