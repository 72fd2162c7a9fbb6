//! `rubus enough`: is the storage below a directory fast enough for a program?

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use rubus_command::messages::in_columns;
use rubus_command::places::say;
use rubus_command::values::seconds_within;
use rubus_command::{Exit, General, Json, Terminal, World, message, must_be_live, signals};
use rubus_measure::suites::plan_writes;
use rubus_measure::{BenchError, Queueing, Target};
use rubus_verdict::enough::text::{announcement, render};
use rubus_verdict::enough::{Evidence, JUDGED, Judgement, Measurement, Question, by_name, judge};
use rubus_verdict::enough::{SECONDS, names};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::verb::{GUARDED, MISTAKE, Page};
use serde::Serialize;

use crate::measuring::{self, Measured, Places};
use crate::target::{self, Allowance, OpenTarget};

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-enough",
    statuses: &[(0, "yes, or yes with a reservation"), (1, "no, or undecided"), MISTAKE, GUARDED],
    examples: &[
        ("rubus enough etcd /var/lib", "Say whether etcd can keep its data below /var/lib."),
        (
            "rubus enough etcd /mnt/ssd --time 10m --json",
            "Look longer, for rarer stalls, and print the result as JSON.",
        ),
        (
            "rubus enough home-assistant",
            "Say whether this directory's storage suits Home Assistant's recorder.",
        ),
    ],
};

/// Say whether storage is fast enough for a program.
///
/// Writes as the program does and judges the slowest commits, not the average: yes; yes, but; no;
/// or undecided, where too little was seen. Writes only to new, nameless files below the directory,
/// which are gone at the end, also after Ctrl-C; says how much before it begins. Runs are not kept
/// in the history.
#[derive(Debug, Args)]
pub struct Enough {
    /// Program that would use the storage
    #[arg(value_name = "PROGRAM", value_parser = PossibleValuesParser::new(names()))]
    pub program: String,
    /// Directory on the storage in question
    #[arg(default_value = ".", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// How long to measure, such as 90s or 10m; rare stalls need long measurements
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub time: f64,
    #[command(flatten)]
    pub json: Json,
}

/// Seconds, or minutes with an `m`.
fn time(text: &str) -> Result<f64, String> {
    let (least, most) = (*SECONDS.start(), *SECONDS.end());
    let minutes = text.strip_suffix('m').map(str::parse::<f64>);
    match minutes {
        None => seconds_within(text, least, most),
        Some(Ok(minutes)) if (least..=most).contains(&(minutes * 60.0)) => Ok(minutes * 60.0),
        Some(_) => Err(format!("write minutes up to {}", most / 60.0)),
    }
}

/// Whether storage is fast enough for a program, and the run that says so.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnoughDocument<'a> {
    #[serde(flatten)]
    pub judgement: Judgement,
    /// What was measured.
    pub run: &'a Run,
}

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
        message!("{}", in_columns(&words));
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

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_is_in_seconds_or_minutes() {
        assert_eq!(time("90s"), Ok(90.0));
        assert_eq!(time("90"), Ok(90.0));
        assert_eq!(time("10m"), Ok(600.0));
        for wrong in ["9s", "2h", "61m", "m", "-1m", "NaNm"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
