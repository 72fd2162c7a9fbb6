//! What a change has brought: a run from before it, and one of the same suite on the same directory after it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use clap::Parser;
use rubus_apply::change::Change;
use rubus_core::doubt::Doubt;
use rubus_core::history::RunSummary;
use rubus_core::plan::journal::Record;
use rubus_core::result::{Access, Run};
use rubus_store::{Filter, History};

use crate::args::{Args, Command, General};
use crate::exit::Exit;
use crate::places;

/// How many runs are looked through for one from before the change.
const MOST_RUNS: u32 = 1_000;

/// Measures a directory before a recipe is applied, and keeps the run under a name by which it is found afterwards.
///
/// # Errors
/// As `rubus bench`; also when a measurement was cut short.
pub fn before(general: &General, directory: &Path, recipe: &str) -> anyhow::Result<()> {
    let measured = bench(general, directory, "quick", &label("before", recipe))?;
    anyhow::ensure!(
        measured == Exit::Fine,
        "nothing was changed, since it could not be measured before; apply it without --measure"
    );
    Ok(())
}

/// Measures again as before a change, and shows both side by side.
///
/// # Errors
/// When there is no run from before it, or as `rubus bench` and `rubus compare`.
pub fn after(general: &General, change: &Change) -> anyhow::Result<Exit> {
    let recipe = &change.plan.recipe;
    let before = run_before(change).with_context(|| {
        format!(
            "no run of the root filesystem from before {} was kept; `rubus apply --measure` makes one",
            change.name
        )
    })?;
    let directory = Path::new(&before.target);
    let measured = bench(general, directory, &before.suite, &label("after", recipe))?;
    if measured != Exit::Fine {
        return Ok(measured);
    }
    if let Some(words) = unlike_the_last(&before)? {
        eprintln!("rubus: {words}");
    }
    run(general, &["compare", &before.id.0.to_string(), "last"])
}

fn unlike_the_last(before: &RunSummary) -> anyhow::Result<Option<String>> {
    let path = places::present_history().context("there is no history")?;
    let history = History::open(&path)?;
    let last = history.list(1, 0)?;
    let last = last.first().context("the run was not kept")?;
    let (before, after) = (history.get(before.id)?.run, history.get(last.id)?.run);
    Ok(unlike(&before, &after))
}

/// Why two runs must not be read side by side without more: one went to the disk and the other through memory.
fn unlike(before: &Run, after: &Run) -> Option<String> {
    let is_cached = |run: &Run| {
        let of_jobs = run.results.iter().flat_map(|result| &result.doubts);
        let mut doubts = run.doubts.iter().chain(of_jobs);
        run.target.access == Access::Buffered
            || doubts.any(|doubt| {
                matches!(
                    doubt,
                    Doubt::ThroughPageCache { .. }
                        | Doubt::DirectIsBuffered { .. }
                        | Doubt::LoopThroughCache { .. }
                )
            })
    };
    let way = |is_cached: bool| match is_cached {
        true => "through memory (the page cache)",
        false => "past memory (direct I/O)",
    };
    let (first, second) = (is_cached(before), is_cached(after));
    (first != second).then(|| {
        format!(
            "these two are not alike: the run before the change went {}, the one after it {}. btrfs with compression has no \
             direct I/O. Reads faster than the disk's link come from memory; compare only random writes and commits, and \
             what you feel when programs start.",
            way(first),
            way(second)
        )
    })
}

fn label(when: &str, recipe: &str) -> String {
    format!("{when} {recipe}")
}

/// The last run before a change: one that was made for it, or else one of the quick suite on the root filesystem.
fn run_before(change: &Change) -> anyhow::Result<RunSummary> {
    let path = places::present_history().context("there is no history")?;
    let history = History::open(&path)?;
    let begun = change.records.iter().find_map(|record| match record {
        Record::Turned { at, .. } => Some(at.as_str()),
        _ => None,
    });
    let begun = begun.context("its journal does not say when it began")?;
    let filter = Filter {
        label: Some(label("before", &change.plan.recipe)),
        ..Filter::default()
    };
    let labelled = history.list_of(&filter, MOST_RUNS, 0)?;
    let all = history.list(MOST_RUNS, 0)?;
    let quick = all
        .into_iter()
        .filter(|run| run.suite == "quick" && is_on_root(&run.target));
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

fn bench(general: &General, directory: &Path, suite: &str, label: &str) -> anyhow::Result<Exit> {
    let directory = directory.to_str().context("its name is not text")?;
    run(
        general,
        &[
            "bench",
            directory,
            "--suite",
            suite,
            "--label",
            label,
            "--no-html",
        ],
    )
}

/// Runs a verb as if it had been typed.
fn run(general: &General, words: &[&str]) -> anyhow::Result<Exit> {
    let words = std::iter::once("rubus").chain(words.iter().copied());
    let parsed = Args::try_parse_from(words)?;
    match parsed.command {
        Some(Command::Bench(bench)) => super::bench::run(general, &bench),
        Some(Command::Compare(compare)) => super::compare::run(general, &compare),
        _ => anyhow::bail!("only a measurement or a comparison is run here"),
    }
}

#[cfg(test)]
mod tests {
    use rubus_core::fixture;

    use super::*;

    /// 289 MB/s "after" over a bus of 35 MB/s.
    #[test]
    fn direct_and_cached_runs_are_not_compared_without_a_word() {
        let before = fixture::slow_sd_card_run();
        assert_eq!(before.target.access, Access::Direct);
        assert_eq!(unlike(&before, &before), None);
        let mut after = before.clone();
        after.doubts.push(Doubt::DirectIsBuffered {
            filesystem: "btrfs with zstd".into(),
        });
        let words = unlike(&before, &after).expect("a word");
        assert!(
            words.contains("before the change went past memory"),
            "{words}"
        );
        assert_eq!(unlike(&after, &after), None);
    }
}
