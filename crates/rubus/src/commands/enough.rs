//! `rubus enough`: is the storage below a directory fast enough for a program?

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rubus_measure::suites::plan_writes;
use rubus_measure::{BenchError, Queueing, Target};
use rubus_verdict::enough::text::{announcement, render};
use rubus_verdict::enough::{Evidence, JUDGED, Measurement, Question, by_name, judge};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::JobResult;

use crate::args::{Enough, General};
use crate::documents::EnoughDocument;
use crate::exit::Exit;
use crate::measuring::{self, Measured, Places};
use crate::target::{self, Allowance, OpenTarget};
use rubus_command::messages::in_columns;
use rubus_command::places::say;
use rubus_command::signals;
use rubus_command::{Terminal, World, must_be_live};

/// Measures as the program writes, and answers.
pub fn run(general: &General, arguments: &Enough) -> anyhow::Result<Exit> {
    must_be_live(general, "this measurement", "a disk")?;
    let workload = by_name(&arguments.program).context("no such program")?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let target = directory(arguments, &World::of(general)?)?;
    let place = target.identity.path.display().to_string();
    let measurement = workload.measurement(arguments.time);
    if !general.quiet {
        let most_bytes = plan_writes(&measurement.suite, false);
        let words = announcement(workload, &place, most_bytes, arguments.time);
        eprintln!("{}", in_columns(&words));
    }
    let measured = measured(general, target, &measurement, &cancel)?;
    let (judged, is_cut_short) = judged(&measured)?;
    let evidence = judged.map_or_else(Evidence::default, Evidence::of);
    let question = Question { workload, place: &place, seconds: arguments.time };
    let judgement = judge(&question, &Evidence { is_cut_short, ..evidence });
    let answer = judgement.answer;
    if arguments.json.wanted {
        let document = EnoughDocument { judgement, run: &measured.run };
        say(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let doubts = doubts(&measured, judged);
        let style = terminal.style();
        say(&render(workload, &place, &judgement, &doubts, style))?;
    }
    Ok(if answer.is_yes() { Exit::Fine } else { Exit::AnswerIsNo })
}

/// The directory, which must be one: nothing that exists is written to.
fn directory(arguments: &Enough, world: &World) -> anyhow::Result<OpenTarget> {
    let path = &arguments.directory;
    let machine = world.survey();
    let allowance = Allowance::default();
    let target = target::resolve(&path.clone().into(), &machine, world.files(), &allowance)?;
    anyhow::ensure!(
        matches!(target.target, Target::Directory { .. }),
        "cannot measure {}: it is not a directory\nName a directory on the storage in question.",
        path.display()
    );
    let in_memory = target.identity.filesystem.as_deref();
    if let Some(filesystem) = in_memory.filter(|name| ["tmpfs", "ramfs"].contains(name)) {
        anyhow::bail!(
            "cannot measure {}: {filesystem} keeps files in memory, where nothing is durable\n\
             Name a directory on a disk.",
            path.display()
        );
    }
    Ok(target)
}

fn measured(
    general: &General,
    target: OpenTarget,
    measurement: &Measurement,
    cancel: &AtomicBool,
) -> anyhow::Result<Measured> {
    let world = World::of(general)?;
    let path = target.identity.path.clone();
    let further = measurement.needs.iter().skip(1);
    let places = Places {
        target,
        more_files: further.map(|_| Target::Directory { path: path.clone() }).collect(),
        needs: measurement.needs.clone(),
    };
    let (machine, terminal) = (world.survey(), Terminal::of(general));
    measuring::measure(
        places,
        &measurement.suite,
        &world,
        machine,
        cancel,
        Queueing::USUAL,
        terminal,
    )
}

/// The result that decides, if there is one, and whether the user stopped it.
fn judged(measured: &Measured) -> anyhow::Result<(Option<&JobResult>, bool)> {
    let is_cut_short = match &measured.ended_by {
        None => false,
        Some(BenchError::Interrupted { .. }) => true,
        Some(error) => anyhow::bail!("{error}"),
    };
    if let Some(reason) = measured.left_out.first() {
        anyhow::bail!("cannot measure this: {reason}");
    }
    Ok((measured.run.job(JUDGED), is_cut_short))
}

/// What disturbed the measurement. Left out is what is no news here: the program sets the rate, commits go through the page
/// cache, and a log is a small part of the disk.
fn doubts<'a>(measured: &'a Measured, judged: Option<&'a JobResult>) -> Vec<&'a Doubt> {
    let is_no_news = |doubt: &Doubt| {
        matches!(
            doubt,
            Doubt::NotPrecise { .. }
                | Doubt::Drift { .. }
                | Doubt::FewOperations { .. }
                | Doubt::SmallRegion { .. }
                | Doubt::PartOfDisk { .. }
                | Doubt::ThroughPageCache { .. }
                | Doubt::Interrupted
        )
    };
    let of_job = judged.into_iter().flat_map(|result| &result.doubts);
    let mut doubts: Vec<&Doubt> = Vec::new();
    for doubt in measured.run.doubts.iter().chain(of_job) {
        if !is_no_news(doubt) && !doubts.iter().any(|known| known.is_like(doubt)) {
            doubts.push(doubt);
        }
    }
    doubts
}
