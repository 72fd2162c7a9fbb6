//! Where the results of other machines go.

use rubus_bench::Measured;
use rubus_bench::cli::{against, bench_options, checkup};
use rubus_bench::outputs::{self, Outputs, ResultOutputs};
use rubus_command::{Terminal, places};
use rubus_fleet::remote::{self, Machines, NotReached};
use rubus_verdict::verdict::verdict;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::result::Run;

use super::advising;
use super::fleet::{self, BoardEnd};
use crate::args::{Advise, Args, Bench, Command, General, Survey};
use crate::commands::survey::document;
use crate::exit::Exit;

/// Maximum number of runs that fit beside one another, with all their jobs.
const MAX_SIDE_BY_SIDE: usize = 4;

/// The results of a command, until all machines have ended.
pub struct Results<'a> {
    general: &'a General,
    machines: &'a Machines,
    /// How each machine ended.
    ends: Vec<BoardEnd>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Runs: to the history, pages, files and the terminal.
    Runs {
        command: &'static str,
        wanted: ResultOutputs<'a>,
        outputs: Box<Outputs<'a>>,
        /// Each machine measures two targets in turns, and what counts is how they compare.
        against: Option<&'a Bench>,
    },
    /// Surveys: to standard output, in the order of the machines.
    Surveys { survey: &'a Survey, all: Vec<Option<Machine>> },
    /// Surveys, from which advice is made here.
    Advice { advise: &'a Advise, all: Vec<Option<Machine>> },
}

impl<'a> Results<'a> {
    /// Results of `expected` runs.
    ///
    /// # Errors
    /// When an output is impossible.
    pub fn new(args: &'a Args, machines: &'a Machines, expected: usize) -> anyhow::Result<Self> {
        let count = machines.boards.len();
        let kind = match &args.command {
            Some(Command::Bench(bench)) => {
                let against = Some(&**bench).filter(|bench| bench.against.is_some());
                let wanted = bench_options::wanted(bench);
                runs(args, "bench", wanted, against, machines, expected)?
            }
            Some(Command::Checkup(checkup)) => {
                let wanted = checkup::wanted(checkup);
                runs(args, "checkup", wanted, None, machines, expected)?
            }
            Some(Command::Survey(survey)) => Kind::Surveys { survey, all: vec![None; count] },
            Some(Command::Advise(advise)) => {
                anyhow::ensure!(
                    advise.html.is_none() || !machines.is_fleet,
                    "--html names one file, but each machine has its own advice; give one machine"
                );
                Kind::Advice { advise, all: vec![None; count] }
            }
            _ => anyhow::bail!("only what measures or surveys has results"),
        };
        Ok(Results {
            general: &args.general,
            machines,
            ends: vec![BoardEnd::default(); count],
            kind,
        })
    }
}

impl remote::Results for Results<'_> {
    fn run(&mut self, number: usize, run: Box<Run>) -> anyhow::Result<()> {
        match &mut self.kind {
            Kind::Runs { outputs, .. } => outputs.take_from(
                number,
                Measured {
                    verdict: verdict(&run),
                    run: *run,
                    ended_by: None,
                    left_out: Vec::new(),
                },
            ),
            _ => Ok(()),
        }
    }

    fn machine(&mut self, number: usize, machine: Box<Machine>) {
        match &mut self.kind {
            Kind::Surveys { all, .. } | Kind::Advice { all, .. } => all[number] = Some(*machine),
            Kind::Runs { .. } => {}
        }
    }

    fn ended(&mut self, number: usize, status: u8) {
        self.ends[number].status = status;
    }

    fn failed(&mut self, number: usize, error: &anyhow::Error) {
        let reason = match error.downcast_ref::<NotReached>() {
            Some(error) => error.reason.clone(),
            None => in_a_line(error, &self.machines.boards[number].name),
        };
        self.ends[number] = BoardEnd { status: 2, failure: Some(reason) };
    }

    fn finish(self) -> anyhow::Result<Exit> {
        let fleet =
            fleet::Fleet { general: self.general, boards: &self.machines.boards, ends: &self.ends };
        let is_fleet = self.machines.is_fleet;
        match self.kind {
            Kind::Runs { command, wanted, mut outputs, against } => {
                outputs.sort();
                if let Some(bench) = against {
                    show_turns(self.general, bench, &outputs, self.machines)?;
                }
                if is_fleet {
                    fleet.runs(command, &wanted, outputs.all())?;
                }
                if against.is_none() && outputs.all().len() <= MAX_SIDE_BY_SIDE {
                    outputs.compare()?;
                }
                outputs.finish()
            }
            Kind::Surveys { survey, all } if is_fleet => fleet.surveys(survey, &all),
            Kind::Surveys { survey, all } => show_survey(self.general, survey, &all),
            Kind::Advice { advise, all } => {
                let advice = advising::of_all(&self.machines.boards, &all, advise)?;
                match (is_fleet, &advice[..]) {
                    (true, _) => fleet.advice(advise, &all, &advice)?,
                    (false, [Some(only)]) => {
                        let mut page = None;
                        if advise.html.is_some() {
                            page = advising::for_others(&self.machines.boards, &all, advise)?;
                        }
                        crate::commands::advise::show(self.general, advise, only, page.as_ref())?
                    }
                    (false, _) => {}
                }
                Ok(Exit::Fine)
            }
        }
    }
}

fn runs<'a>(
    args: &'a Args,
    command: &'static str,
    wanted: ResultOutputs<'a>,
    against: Option<&'a Bench>,
    machines: &Machines,
    expected: usize,
) -> anyhow::Result<Kind<'a>> {
    outputs::check(&wanted)?;
    // A fleet has a page of its own; two targets in turns have one for each board.
    let has_one_page = expected == 1 || (machines.is_fleet && against.is_none());
    anyhow::ensure!(
        wanted.keeping.html.is_none() || has_one_page,
        "--html names one file, but there will be {expected} pages; leave it out, and each run's page \
         goes to the data directory"
    );
    let mut outputs = Outputs::new(&args.general, wanted, expected);
    if against.is_some() {
        outputs = outputs.without_text();
    }
    if machines.is_fleet {
        outputs = outputs.collecting();
    }
    Ok(Kind::Runs { command, wanted, outputs: Box::new(outputs), against })
}

/// The error without the name, which stands beside it.
fn in_a_line(error: &anyhow::Error, name: &str) -> String {
    let text = format!("{error:#}");
    let text = text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
    let bare = text.strip_prefix(name).unwrap_or(&text);
    bare.trim_start_matches([':', ' ']).to_string()
}

/// How the two targets of each machine compare.
fn show_turns(
    general: &General,
    bench: &Bench,
    outputs: &Outputs<'_>,
    machines: &Machines,
) -> anyhow::Result<()> {
    for (number, board) in machines.boards.iter().enumerate() {
        if let [baseline, subject] = outputs.runs_of(number)[..] {
            if machines.is_fleet {
                places::say(&format!("=== {}\n", board.name))?;
            }
            against::show(general, bench, [baseline, subject])?;
        }
    }
    Ok(())
}

fn show_survey(
    general: &General,
    survey: &Survey,
    all: &[Option<Machine>],
) -> anyhow::Result<Exit> {
    let Some(Some(machine)) = all.first() else {
        return Ok(Exit::Fine);
    };
    if survey.json.wanted {
        let text = serde_json::to_string_pretty(&document(machine))?;
        places::say(&(text + "\n"))?;
        return Ok(Exit::Fine);
    }
    let style = Terminal::of(general).style();
    places::say(&rubus_machine::text::render(machine, survey.extent(), style))?;
    Ok(Exit::Fine)
}
