//! The verbs of changes with what they need of the engine that measures: a run from before a change, and one of the same
//! suite on the same directory after it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use clap::Parser;
use rubus_change::apply::Change;
use rubus_change::plan::journal::Record;
use rubus_command::messages::in_columns;
use rubus_command::places;
use rubus_fleet::cli::compare as compare_verb;
use rubus_recipes::cli::{self, Outside, Verb};
use rubus_runs::compare::alike::alike;
use rubus_runs::compare::{Subject, compare};
use rubus_runs::history::RunSummary;
use rubus_runs::store::{Filter, History};
use rubus_tune::trial_left;
use rubus_vocabulary::result::Run;

use crate::args::{Args, Command, General};
use crate::commands::pages::Drawn;
use crate::exit::Exit;

/// How many runs are looked through for one from before the change.
const MAX_RUNS: u32 = 1_000;

/// Does what was asked.
///
/// # Errors
/// Those of the verb.
pub fn run(general: &General, verb: &Verb) -> anyhow::Result<Exit> {
    let done = cli::run(general, verb, &Bench { general })?;
    if let (Verb::Status(_), Some(words)) = (verb, trial_left::words()) {
        rubus_command::message!("{}", in_columns(&format!("rubus: {words}")));
    }
    Ok(done)
}

/// Measures around a change.
struct Bench<'a> {
    general: &'a General,
}

impl Outside for Bench<'_> {
    fn measure_before(&self, directory: &Path, recipe: &str) -> anyhow::Result<()> {
        before(self.general, directory, recipe)
    }

    fn measure_after(&self, change: &Change) -> anyhow::Result<Exit> {
        after(self.general, change)
    }
}

fn before(general: &General, directory: &Path, recipe: &str) -> anyhow::Result<()> {
    let measured = bench(general, directory, "quick", &label("before", recipe), &[])?;
    anyhow::ensure!(
        measured == Exit::Fine,
        "nothing was changed, since it could not be measured before; apply it without --measure"
    );
    Ok(())
}

fn after(general: &General, change: &Change) -> anyhow::Result<Exit> {
    let recipe = &change.plan.recipe;
    let before = run_before(change).with_context(|| {
        format!(
            "no run of the root filesystem from before {} was kept; `rubus apply --measure` makes one",
            change.name
        )
    })?;
    let directory = Path::new(&before.target);
    let history = history()?;
    let before = history.get(before.id)?.run;
    let label = label("after", recipe);
    let measured = bench(general, directory, &before.suite, &label, &same_way(&before))?;
    if measured != Exit::Fine {
        return Ok(measured);
    }
    let last = history.list(1, 0)?;
    let last = last.first().context("the run was not kept")?;
    side_by_side(general, &before, &history.get(last.id)?.run)
}

/// The options with which a run is measured as one before it was, whatever room there is now.
fn same_way(before: &Run) -> Vec<String> {
    let mut options = vec!["--size".to_string(), before.target.region_bytes.to_string()];
    // As the run's record has it: "zeros", "compressible to about 50 %".
    let content = before.target.content.as_str();
    let content = match content.strip_prefix("compressible to about ") {
        Some(percent) => percent.replace(' ', ""),
        None => content.to_string(),
    };
    options.extend(["--content".to_string(), content]);
    options
}

/// Shows what was measured alike as ratios, and says what was not.
fn side_by_side(general: &General, before: &Run, after: &Run) -> anyhow::Result<Exit> {
    let found = alike(before, after);
    for difference in &found.differences {
        rubus_command::message!("rubus: {difference}");
    }
    if found.is_empty() {
        rubus_command::message!(
            "rubus: nothing was measured alike, so nothing is called faster or slower; both runs are in `rubus history`"
        );
        return Ok(Exit::AnswerIsNo);
    }
    let subjects =
        [Subject::of_run("before", &found.before), Subject::of_run("after", &found.after)];
    let parsed = Args::try_parse_from(["rubus", "compare", "before", "after"])?;
    match parsed.command {
        Some(Command::Compare(arguments)) => {
            compare_verb::show(general, &arguments, &compare(&subjects), &Drawn)?;
            Ok(Exit::Fine)
        }
        _ => anyhow::bail!("only a comparison is shown here"),
    }
}

fn history() -> anyhow::Result<History> {
    let path = places::present_history().context("there is no history")?;
    Ok(History::open(&path)?)
}

fn label(when: &str, recipe: &str) -> String {
    format!("{when} {recipe}")
}

/// The last run before a change: one that was made for it, or else one of the quick suite on the root filesystem.
fn run_before(change: &Change) -> anyhow::Result<RunSummary> {
    let history = history()?;
    let begun = change.records.iter().find_map(|record| match record {
        Record::Turned { at, .. } => Some(at.as_str()),
        _ => None,
    });
    let begun = begun.context("its journal does not say when it began")?;
    let filter = Filter { label: Some(label("before", &change.plan.recipe)), ..Filter::default() };
    let labelled = history.list_of(&filter, MAX_RUNS, 0)?;
    let all = history.list(MAX_RUNS, 0)?;
    let quick = all.into_iter().filter(|run| run.suite == "quick" && is_on_root(&run.target));
    // Both are written the same way, to the millisecond and in UTC, so that they can be compared as texts.
    let found = labelled
        .into_iter()
        .chain(quick)
        .find(|run| run.started.as_str() <= begun && Path::new(&run.target).is_dir());
    found.context("the history has none")
}

fn is_on_root(target: &str) -> bool {
    let device = |path: &str| std::fs::metadata(path).map(|metadata| metadata.dev()).ok();
    device(target).is_some_and(|found| device("/") == Some(found))
}

/// Runs `rubus bench` as if it had been typed.
fn bench(
    general: &General,
    directory: &Path,
    suite: &str,
    label: &str,
    options: &[String],
) -> anyhow::Result<Exit> {
    let directory = directory.to_str().context("its name is not text")?;
    let words = ["rubus", "bench", directory, "--suite", suite, "--label", label, "--no-html"];
    let words = words.into_iter().chain(options.iter().map(String::as_str));
    match Args::try_parse_from(words)?.command {
        Some(Command::Bench(bench)) => rubus_bench::cli::bench::run(general, &bench),
        _ => anyhow::bail!("only a measurement is run here"),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures as fixture;

    use super::*;

    #[test]
    fn it_is_measured_again_with_the_size_and_the_content_of_before() {
        let mut run = fixture::slow_sd_card_run();
        run.target.region_bytes = 1 << 28;
        for (recorded, given) in [
            ("incompressible", "incompressible"),
            ("zeros", "zeros"),
            ("compressible to about 50 %", "50%"),
        ] {
            run.target.content = recorded.into();
            let options = same_way(&run);
            assert_eq!(options, ["--size", "268435456", "--content", given]);
            let words = ["rubus", "bench", "/"].map(String::from);
            let parsed = Args::try_parse_from(words.iter().chain(&options)).unwrap();
            assert!(
                matches!(parsed.command, Some(Command::Bench(bench)) if bench.size == Some(1 << 28))
            );
        }
    }
}
