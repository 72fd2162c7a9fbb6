//! `rubus bench`: a suite on one or several targets, one after the other.

use std::sync::atomic::Ordering;

use rubus_bench::suites;
use rubus_core::machine::Machine;
use rubus_core::spec::{Operation, Suite};

use crate::args::{Bench, General};
use crate::exit::Exit;
use crate::measuring;
use crate::outputs::{self, Outputs, Wanted};
use crate::signals;
use crate::target::{self, Allowance, Resolved};
use crate::target_name::TargetName;
use crate::world::{self, Terminal, World};

/// Measures every target with the suite.
pub fn run(general: &General, bench: &Bench) -> anyhow::Result<Exit> {
    if let Some(path) = &bench.fio_job {
        return super::job_file::run(general, bench, path);
    }
    if bench.together {
        return super::together::run(general, bench);
    }
    world::must_be_live(general, "a bench", "a disk")?;
    if let Some(baseline) = &bench.against {
        return super::against::run(general, bench, baseline);
    }
    outputs::check(&wanted(bench))?;
    let cancel = signals::cancel_flag()?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    // Every target is checked before the first is touched: a misspelt last one must not cost the
    // minutes of the others.
    let mut planned = Vec::new();
    for name in &bench.targets {
        planned.push(plan(bench, name, &machine, &world)?);
    }
    let targets = planned.iter_mut().map(|(target, _)| target);
    target::ask_server(bench, targets, &cancel)?;
    let mut outputs = Outputs::new(general, wanted(bench), planned.len());
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
        outputs.take(measured)?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    outputs.finish()
}

/// What only one suite has: its options, and what does not go with them.
fn special(bench: &Bench, target: &Resolved, suite: &mut Suite) -> anyhow::Result<()> {
    let is_capacity = suite.name == "capacity";
    let is_small_files = suite.name == "small-files";
    anyhow::ensure!(
        is_capacity || !bench.full,
        "--full is for --suite capacity; the suite {} has nothing to leave out",
        suite.name
    );
    anyhow::ensure!(
        is_small_files || !bench.drop_caches,
        "--drop-caches is for --suite small-files; the suite {} goes past the caches by itself",
        suite.name
    );
    if bench.drop_caches {
        anyhow::ensure!(
            rustix::process::geteuid().is_root(),
            "--drop-caches empties the caches of the whole machine, which only root may do; run it with sudo"
        );
        for job in &mut suite.jobs {
            job.drop_caches = matches!(job.operation, Operation::StatFile | Operation::ReadFile);
        }
    }
    if is_capacity && bench.read_only {
        anyhow::ensure!(
            bench.seed.is_some() && !target.target.is_own_file(),
            "--read-only looks again at what an earlier run has written to a device or a file: name that, and give \
             the run's --seed, which it told"
        );
    }
    if is_capacity {
        anyhow::ensure!(
            bench.read_only || target.target.may_write(),
            "the suite capacity overwrites {}: name a directory instead, whose free space is tested, or allow the loss \
             with --i-will-lose-everything-on={}",
            target.named,
            target.path.display()
        );
        // What an earlier run has left must not be taken for this one's.
        suite.seed = u64::from(random_seed());
    }
    Ok(())
}

/// A number that no other run is likely to have.
fn random_seed() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Where the results go besides the terminal.
pub fn wanted(bench: &Bench) -> Wanted<'_> {
    Wanted {
        json: bench.json.as_deref(),
        fio_json: bench.fio_json.as_deref(),
        keeping: &bench.keeping,
    }
}

fn plan(
    bench: &Bench,
    name: &TargetName,
    machine: &Machine,
    world: &World,
) -> anyhow::Result<(Resolved, Suite)> {
    let target = target::resolve(name, machine, world.files(), &allowance(bench))?;
    let usual = if target.is_memory() { "ram" } else { "quick" };
    let suite = suite_of(bench, &target, usual, bench.size)?;
    Ok((target, suite))
}

/// What the user allows to be done to the target.
pub fn allowance(bench: &Bench) -> Allowance {
    Allowance {
        read_only: bench.read_only,
        may_lose: bench.i_will_lose_everything_on.clone(),
        connections: bench.connections,
    }
}

/// The suite as the options want it, or the usual one.
pub fn suite_of(
    bench: &Bench,
    target: &Resolved,
    usual: &str,
    region_bytes: Option<u64>,
) -> anyhow::Result<Suite> {
    let suite_name = bench.suite.as_deref().unwrap_or(usual);
    let wanted = measuring::Wanted {
        region_bytes,
        budget_bytes: bench.budget,
        is_whole: bench.full,
    };
    let mut suite = measuring::suite_for(suite_name, target, wanted)?;
    special(bench, target, &mut suite)?;
    if let Some(precision) = bench.precision {
        suite = measuring::with_precision(suite, precision);
    }
    suite.content = bench.content;
    if let Some(seed) = bench.seed {
        suite.seed = seed;
    }
    if bench.read_only || !target.target.may_write() {
        suite = suites::only_reads(&suite);
    }
    Ok(suite)
}
