//! What several machines gave, as one table and one document.

use std::path::Path;

use rubus_advise::advice::Advice;
use rubus_bench::outputs::{ResultOutputs, Taken};
use rubus_command::{Terminal, places};
use rubus_draw::quote::typed;
use rubus_draw::{Style, next_step};
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::inventory::Board;
use rubus_fleet::next::{Gave, next};
use rubus_fleet::page_names::page_names;
use rubus_fleet::settings;
use rubus_fleet::text::{self, Advised, Surveyed};
use rubus_runs::compare::facts;
use rubus_runs::run_document::RunDocument;
use rubus_runs::share::shared_reason;
use rubus_runs::shown::shown;
use rubus_vocabulary::figure::Named;
use rubus_vocabulary::machine::{BlockKind, Machine};
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::{Figures, Run};
use rubus_vocabulary::units::bytes_iec;
use serde::Serialize;

use crate::args::{Advise, General, Survey};
use crate::commands::survey::document;
use crate::documents::{FleetBoard, FleetDocument};
use crate::exit::Exit;

/// How a machine ended.
#[derive(Clone, Debug, Default)]
pub struct BoardEnd {
    /// Exit status of the command there; 2 where it did not run to its end.
    pub status: u8,
    /// Why it has no result, in a line.
    pub failure: Option<String>,
}

/// Several machines, all ended.
pub struct Fleet<'a> {
    pub general: &'a General,
    pub boards: &'a [Board],
    pub ends: &'a [BoardEnd],
}

/// What the runs of all boards say together.
struct Sums {
    table: figures::Table,
    outliers: figures::Outliers,
    differences: Vec<settings::Difference>,
}

impl Sums {
    fn of(runs: &[OfBoard<'_>], names: &[&str]) -> Sums {
        let table = figures::table(runs);
        let facts: Vec<(&str, Vec<Named>)> =
            runs.iter().map(|of| (names[of.board], facts::of_run(of.run))).collect();
        Sums {
            outliers: figures::outliers(&table, names),
            differences: settings::differences(&facts),
            table,
        }
    }
}

impl Fleet<'_> {
    /// Runs, ordered by machine.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn runs<'a>(
        &self,
        command: &'static str,
        wanted: &ResultOutputs<'_>,
        all: &'a [Taken],
    ) -> anyhow::Result<()> {
        let of_board = |taken: &'a Taken| OfBoard {
            board: taken.machine,
            number: taken.number,
            run: &taken.measured.run,
        };
        let runs: Vec<OfBoard<'a>> = all.iter().map(of_board).collect();
        let names = self.names();
        let Sums { table, outliers, differences } = Sums::of(&runs, &names);
        let boards = self.shown();
        let next = next(&boards, &self.reached(), &Gave::Runs(&outliers));
        if let Some(path) = &wanted.keeping.html {
            self.page(path, command, wanted.keeping.with_serials, &runs)?;
        }
        if let Some(path) = wanted.json {
            let mut boards = self.documents();
            for taken in all {
                let run = &taken.measured.run;
                let board = &mut boards[taken.machine];
                board.runs.push(RunDocument {
                    run,
                    verdict: (run.figures == Figures::Disk).then_some(&taken.measured.verdict),
                });
                board.history.push(taken.number);
            }
            let document = FleetDocument {
                command,
                next: next.clone(),
                boards,
                differences: &differences,
                outliers: Some(&outliers),
            };
            write(path, &document)?;
        }
        let is_page_said = wanted.keeping.html.as_deref() == Some(Path::new("-"));
        if wanted.to_stdout() || is_page_said {
            return Ok(());
        }
        let style = Terminal::of(self.general).style();
        let text = text::heading(title(command), &boards, style)
            + &to_do(&next, style)
            + &text::differences(&differences, style)
            + &text::figures(&table, &outliers, &boards, style)
            + &text::outliers(&outliers, style);
        places::say(&text)
    }

    /// Writes the page of all boards.
    fn page(
        &self,
        path: &Path,
        command: &str,
        with_serials: bool,
        runs: &[OfBoard<'_>],
    ) -> anyhow::Result<()> {
        // Others may see it, so what they may not see is gone before anything is made of it.
        let shown_runs: Vec<Run> =
            runs.iter().map(|of| shown(of.run, with_serials)).collect::<anyhow::Result<_>>()?;
        let runs: Vec<OfBoard<'_>> = runs
            .iter()
            .zip(&shown_runs)
            .map(|(of, run)| OfBoard { board: of.board, number: of.number, run })
            .collect();
        let failures: Vec<Option<String>> = self
            .ends
            .iter()
            .map(|end| {
                let failure = end.failure.as_ref()?;
                Some(if with_serials { failure.clone() } else { shared_reason(failure) })
            })
            .collect();
        let public = page_names(&self.names());
        let (names, reached) = if with_serials {
            (self.names(), self.reached())
        } else {
            (public.iter().map(String::as_str).collect(), public.clone())
        };
        let boards: Vec<text::Board<'_>> = names
            .iter()
            .zip(&failures)
            .map(|(name, failure)| text::Board { name, failure: failure.as_deref() })
            .collect();
        let sums = Sums::of(&runs, &names);
        let next = next(&boards, &reached, &Gave::Runs(&sums.outliers));
        let page = rubus_page::fleet::Fleet {
            next: &next,
            title: title(command),
            boards: &boards,
            differences: &sums.differences,
            table: &sums.table,
            outliers: &sums.outliers,
        };
        let page = rubus_page::fleet::render(&page, env!("CARGO_PKG_VERSION"));
        places::write_whole(path, &page)?;
        if !self.general.quiet && path != Path::new("-") {
            rubus_command::message!("page of the fleet: {}", path.display());
        }
        Ok(())
    }

    /// Surveys, one per machine.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn surveys(&self, survey: &Survey, all: &[Option<Machine>]) -> anyhow::Result<Exit> {
        let differences = settings::differences(&self.facts(all));
        let known = all.iter().enumerate();
        let rows = known.filter_map(|(board, machine)| Some(surveyed(board, machine.as_ref()?)));
        let rows: Vec<Surveyed> = rows.collect();
        let shown = self.shown();
        let next = next(&shown, &self.reached(), &Gave::Surveys(&rows));
        if survey.json.wanted {
            let mut boards = self.documents();
            for (board, machine) in boards.iter_mut().zip(all) {
                board.survey = machine.as_ref().map(document);
            }
            let document = FleetDocument {
                command: "survey",
                next,
                boards,
                differences: &differences,
                outliers: None,
            };
            write(Path::new("-"), &document)?;
            return Ok(Exit::Fine);
        }
        let style = Terminal::of(self.general).style();
        let text = text::heading("Survey", &shown, style)
            + &to_do(&next, style)
            + &text::differences(&differences, style)
            + &text::surveys(&rows, &shown, style);
        places::say(&text)?;
        let pairs = self.boards.iter().zip(all).filter(|_| survey.verbose);
        for (board, machine) in pairs {
            let Some(machine) = machine else { continue };
            let survey = rubus_machine::text::render(machine, survey.extent(), style);
            places::say(&format!("\n=== {}\n{survey}", board.name))?;
        }
        Ok(Exit::Fine)
    }

    /// Advice, one per machine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn advice(
        &self,
        advise: &Advise,
        machines: &[Option<Machine>],
        all: &[Option<Advice>],
    ) -> anyhow::Result<()> {
        let differences = settings::differences(&self.facts(machines));
        let known = all.iter().enumerate();
        let rows = known.filter_map(|(board, advice)| advised(board, advice.as_ref()?));
        let rows: Vec<Advised> = rows.collect();
        let shown = self.shown();
        let next = next(&shown, &self.reached(), &Gave::Advice(&rows));
        if advise.json.wanted {
            let mut boards = self.documents();
            for (board, advice) in boards.iter_mut().zip(all) {
                board.advice = advice.as_ref();
            }
            let document = FleetDocument {
                command: "advise",
                next,
                boards,
                differences: &differences,
                outliers: None,
            };
            return write(Path::new("-"), &document);
        }
        let style = Terminal::of(self.general).style();
        let purpose = advise.purpose();
        let text = text::heading("Advice", &shown, style)
            + &to_do(&next, style)
            + &text::differences(&differences, style)
            + &text::advice(purpose.words(), &rows, &shown, style);
        places::say(&text)
    }

    /// How ssh reaches each board.
    fn reached(&self) -> Vec<String> {
        self.boards.iter().map(|board| board.destination.to_string()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.boards.iter().map(|board| board.name.as_str()).collect()
    }

    fn shown(&self) -> Vec<text::Board<'_>> {
        let pairs = self.boards.iter().zip(self.ends);
        pairs
            .map(|(board, end)| text::Board { name: &board.name, failure: end.failure.as_deref() })
            .collect()
    }

    fn facts<'a>(&'a self, all: &[Option<Machine>]) -> Vec<(&'a str, Vec<Named>)> {
        let pairs = self.boards.iter().zip(all);
        pairs
            .filter_map(|(board, machine)| {
                Some((board.name.as_str(), facts::of_machine(machine.as_ref()?)))
            })
            .collect()
    }

    /// The boards without results.
    fn documents<'a>(&'a self) -> Vec<FleetBoard<'a>> {
        let pairs = self.boards.iter().zip(self.ends);
        pairs
            .map(|(board, end)| FleetBoard {
                name: &board.name,
                address: board.address(),
                groups: &board.groups,
                status: end.status,
                failure: end.failure.as_deref(),
                runs: Vec::new(),
                history: Vec::new(),
                survey: None,
                advice: None,
            })
            .collect()
    }
}

fn to_do(step: &NextStep, style: Style) -> String {
    next_step::lines(step, Style { columns: text::COLUMNS, ..style }).join("\n") + "\n"
}

fn write(path: &Path, document: &impl Serialize) -> anyhow::Result<()> {
    places::write_whole(path, &(serde_json::to_string_pretty(document)? + "\n"))
}

fn title(command: &str) -> &'static str {
    match command {
        "checkup" => "Checkup",
        _ => "Bench",
    }
}

fn surveyed(board: usize, machine: &Machine) -> Surveyed {
    let known = |text: Option<&str>| text.unwrap_or("not known").to_string();
    let disks = machine.block_devices.iter();
    let disks = disks.filter(|device| device.kind == BlockKind::Disk);
    let names: Vec<&str> = disks.map(|disk| disk.name.as_str()).collect();
    let bytes = machine.memory.total_bytes.get();
    Surveyed {
        board,
        model: known(machine.board.model.text()),
        kernel: known(machine.system.kernel_release.text()),
        memory: bytes.map_or("not known".into(), bytes_iec),
        disks: names.join(" "),
        findings: rubus_machine::rules::of_machine(machine).len(),
    }
}

/// None where there is nothing to choose from.
fn advised(board: usize, advice: &Advice) -> Option<Advised> {
    let best = advice.candidates.first()?;
    let now = advice.candidates.iter().find(|candidate| candidate.is_now);
    let to_do = match (&advice.command, &advice.to_do) {
        (Some(command), _) => typed(command),
        (None, Some(sentence)) => sentence.clone(),
        (None, None) => "nothing to change".into(),
    };
    Some(Advised {
        board,
        now: now.map_or("not known".into(), |now| now.label().to_owned()),
        now_s: now.map(|now| now.time_s.value),
        best: best.label().to_owned(),
        best_s: best.time_s.value,
        is_measured: best.is_measured,
        to_do,
    })
}
