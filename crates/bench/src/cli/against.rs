//! `rubus bench TARGET --against BASELINE`: two targets measured in turns and compared.

use std::path::Path;

use rubus_command::messages::in_columns;
use rubus_command::{Exit, General, Keeping, Terminal, World, message, places, signals};
use rubus_measure::{for_turns, suites, turn_seconds};
use rubus_runs::compare::{Subject, compare};
use rubus_runs::shown::shown;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::spec::Suite;
use rubus_watch::live::terminal;

use super::bench_args::Bench;
use super::bench_options::{allowance, queueing, suite_of, wanted};
use crate::measuring;
use crate::outputs::{self, Outputs, ResultOutputs};
use crate::target::{self, Allowance, OpenTarget};
use crate::target_name::TargetName;

/// Measures both, keeps both runs, and shows how they compare.
pub fn run(general: &General, bench: &Bench, baseline: &TargetName) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        bench.fio_job.is_none(),
        "a job file says itself when and where its jobs run, so they are not run in turns; measure \
         it on both and compare the runs (`rubus compare last~1 last`)"
    );
    let [name] = bench.targets.as_slice() else {
        anyhow::bail!("--against compares one target with another; name one target");
    };
    outputs::check(&wanted(bench))?;
    let queueing = queueing(bench)?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    let allowed = Allowance {
        may_lose: Vec::from_iter(bench.against_i_will_lose_everything_on.clone()),
        ..allowance(bench)
    };
    let first = target::resolve(baseline, &machine, world.files(), &allowed)?;
    let second = target::resolve(name, &machine, world.files(), &allowance(bench))?;
    let targets = [first, second];
    // Until here, nothing has to be ended in order: a server may be waited for.
    let cancel = signals::cancel_flag()?;
    let suite = common_suite(bench, &targets)?;
    if !general.quiet {
        for target in &targets {
            message!("{}", in_columns(&measuring::announce(&suite, target)));
        }
        let (least_s, most_s) = turn_seconds(&suite);
        message!(
            "In turns, so that a drift of this machine hits both: {} to {} for {} jobs.",
            rubus_draw::words::span(least_s),
            rubus_draw::words::span(most_s),
            suite.jobs.len()
        );
    }
    let both = measuring::measure_in_turns(
        targets, &suite, &world, &machine, &cancel, queueing, terminal,
    )?;
    let runs = both.each_ref().map(|measured| measured.run.clone());
    // The page is the comparison's; each run has its own in the data directory.
    let keeping = Keeping { html: None, ..bench.keeping.clone() };
    let wanted = ResultOutputs { keeping: &keeping, ..wanted(bench) };
    let mut outputs = Outputs::new(general, wanted, both.len()).without_text();
    for measured in both {
        outputs.take(measured)?;
    }
    if !general.records {
        show(general, bench, runs.each_ref())?;
    }
    outputs.finish()
}

/// Shows how the two runs, the baseline first, compare: on the terminal and, if wanted, on a page.
///
/// # Errors
/// When the page or standard output cannot be written.
pub fn show(general: &General, bench: &Bench, runs: [&Run; 2]) -> anyhow::Result<()> {
    let subjects = runs.map(|run| Subject::of_run(&run.target.named, run));
    let comparison = compare(&subjects);
    if let Some(path) = &bench.keeping.html {
        let theirs = shown(&comparison, bench.keeping.with_serials)?;
        places::write_whole(path, &rubus_page::compare::render(&theirs))?;
    }
    if !wanted(bench).files().any(|path| path == Path::new("-")) {
        let style = Terminal::of(general).style();
        let columns = terminal::size().0.into();
        places::say(&rubus_runs::text::compare::render(&comparison, style, columns))?;
    }
    Ok(())
}

/// The suite for both: the one that writes less, with the smaller region, and only its reads where one
/// of them may not be written.
fn common_suite(bench: &Bench, targets: &[OpenTarget; 2]) -> anyhow::Result<Suite> {
    let all_memory = targets.iter().all(OpenTarget::is_memory);
    let usual = if all_memory { "ram" } else { "quick" };
    let mut region_bytes = bench.size;
    for target in targets {
        let suite = suite_of(bench, target, usual, bench.size)?;
        let most = region_bytes.unwrap_or(u64::MAX);
        region_bytes = Some(most.min(suite.region_bytes));
    }
    let mut chosen: Option<(u64, Suite)> = None;
    for target in targets {
        let suite = suite_of(bench, target, usual, region_bytes)?;
        let writes = suites::plan_writes(&suite, target.target.is_own_file());
        if chosen.as_ref().is_none_or(|(least, _)| writes < *least) {
            chosen = Some((writes, suite));
        }
    }
    let Some((_, suite)) = chosen else {
        anyhow::bail!("there is no suite for these targets");
    };
    anyhow::ensure!(
        suite.jobs.iter().all(|job| job.operation.is_block()),
        "the suite {} cannot be run in turns: run it on each target and compare the two runs with `rubus compare`",
        suite.name
    );
    Ok(for_turns(&suite))
}
