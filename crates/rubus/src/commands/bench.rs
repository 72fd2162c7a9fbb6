//! `rubus bench`: a suite on one or several targets, one after the other.

use std::path::Path;

use rubus_bench::suites;
use rubus_core::machine::Machine;
use rubus_core::spec::Suite;

use crate::args::{Bench, General};
use crate::exit::Exit;
use crate::measuring::{self, Measured};
use crate::places;
use crate::signals;
use crate::target::{self, Allowance, Resolved};
use crate::world::{self, Terminal, World};

/// Measures every target with the suite.
pub fn run(general: &General, bench: &Bench) -> anyhow::Result<Exit> {
    world::must_be_live(general, "a bench")?;
    check_outputs(bench)?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    // Every target is checked before the first is touched: a misspelt last one must not cost the
    // minutes of the others.
    let mut planned = Vec::new();
    for path in &bench.targets {
        planned.push(plan(bench, path, &machine, &world)?);
    }
    let to_stdout = to_stdout(bench);
    let mut all: Vec<Measured> = Vec::new();
    let mut exit = Exit::Fine;
    for (target, suite) in planned {
        if !general.quiet {
            eprintln!("{}", measuring::announce(&suite, &target));
        }
        let ring = !bench.threads;
        let measured = measuring::measure(
            target,
            &suite,
            &world,
            machine.clone(),
            &cancel,
            ring,
            terminal,
        )?;
        let kept = measuring::keep(&measured, &bench.keeping);
        if !to_stdout {
            let style = terminal.style();
            places::say(&rubus_show::checkup::render(
                &measured.run,
                &measured.verdict,
                style,
            ))?;
        }
        if super::checkup::end(general, &measured, &kept) != Exit::Fine {
            exit = Exit::AnswerIsNo;
        }
        all.push(measured);
        // Written after every target, so that a later failure loses nothing.
        write_files(bench, &all)?;
        if cancel.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    Ok(exit)
}

fn plan(
    bench: &Bench,
    path: &Path,
    machine: &Machine,
    world: &World,
) -> anyhow::Result<(Resolved, Suite)> {
    let allowance = Allowance {
        read_only: bench.read_only,
        may_lose: bench.i_will_lose_everything_on.clone(),
    };
    let target = target::resolve(path, machine, world.files(), &allowance)?;
    let mut suite = measuring::suite_for(&bench.suite, &target)?;
    if let Some(size) = bench.size {
        suite = measuring::with_region(suite, size, &target)?;
    }
    suite.content = bench.content;
    if let Some(seed) = bench.seed {
        suite.seed = seed;
    }
    if bench.read_only || !target.target.may_write() {
        suite = suites::only_reads(&suite);
    }
    Ok((target, suite))
}

/// Minutes of measuring must not end at an output that was never possible.
fn check_outputs(bench: &Bench) -> anyhow::Result<()> {
    let outputs = [&bench.json, &bench.fio_json, &bench.keeping.html];
    for path in outputs.into_iter().flatten() {
        places::must_be_writable(path)?;
    }
    let both = [&bench.json, &bench.fio_json].map(|path| path.as_deref() == Some(Path::new("-")));
    anyhow::ensure!(
        both != [true, true],
        "--json and --fio-json cannot both go to standard output; give one of them a file"
    );
    Ok(())
}

fn to_stdout(bench: &Bench) -> bool {
    [&bench.json, &bench.fio_json]
        .into_iter()
        .flatten()
        .any(|path| path == Path::new("-"))
}

/// One object for one target, a list for several.
fn write_files(bench: &Bench, all: &[Measured]) -> anyhow::Result<()> {
    // Standard output takes the whole at the end and not a growing prefix.
    let complete = all.len() == bench.targets.len();
    let due = |path: &&std::path::PathBuf| complete || *path != Path::new("-");
    if let Some(path) = bench.json.as_ref().filter(due) {
        places::write_whole(path, &json_of(bench, all)?)?;
    }
    if let Some(path) = bench.fio_json.as_ref().filter(due) {
        let runs: Vec<_> = all.iter().map(|measured| &measured.run).collect();
        places::write_whole(path, &(rubus_show::fio_json::render(&runs) + "\n"))?;
    }
    Ok(())
}

fn json_of(bench: &Bench, all: &[Measured]) -> anyhow::Result<String> {
    let mut objects = Vec::new();
    for measured in all {
        objects.push(super::checkup::json(&measured.run, &measured.verdict)?);
    }
    Ok(match (&objects[..], bench.targets.len()) {
        ([only], 1) => format!("{only}\n"),
        _ => format!("[{}]\n", objects.join(",\n")),
    })
}
