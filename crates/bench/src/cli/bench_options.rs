//! What the options of `rubus bench` mean: the suite, the outputs, and what may be done to a target.

use rubus_measure::{Queueing, Target, suites};
use rubus_vocabulary::spec::{Job, Operation, Suite};

use super::bench_args::Bench;
use crate::measuring;
use crate::outputs::ResultOutputs;
use crate::target::{Allowance, OpenTarget};

/// Where the results go besides the terminal.
pub fn wanted(bench: &Bench) -> ResultOutputs<'_> {
    ResultOutputs {
        json: bench.json.as_deref(),
        fio_json: bench.fio_json.as_deref(),
        keeping: &bench.keeping,
    }
}

/// What the user allows to be done to the target.
pub fn allowance(bench: &Bench) -> Allowance {
    Allowance {
        read_only: bench.read_only,
        may_lose: bench.i_will_lose_everything_on.clone(),
        connections: bench.connections,
    }
}

/// How the suite's deep queues are to be kept full.
///
/// # Errors
/// In words, when there are fewer CPUs than lanes are wanted.
pub fn queueing(bench: &Bench) -> anyhow::Result<Queueing> {
    let usual = Queueing { may_use_ring: !bench.threads, polled: bench.hipri, ..Queueing::USUAL };
    let Some(lanes) = bench.lanes else {
        return Ok(usual);
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(Queueing { lanes: lanes.on(u32::try_from(cpus).unwrap_or(u32::MAX))?, ..usual })
}

/// The suite as the options want it, or the usual one.
pub fn suite_of(
    bench: &Bench,
    target: &OpenTarget,
    usual: &str,
    region_bytes: Option<u64>,
) -> anyhow::Result<Suite> {
    let suite_name = bench.suite.as_deref().unwrap_or(usual);
    let wanted =
        measuring::SuiteLimits { region_bytes, budget_bytes: bench.budget, is_whole: bench.full };
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

/// What only one suite has: its options, and what does not go with them.
fn special(bench: &Bench, target: &OpenTarget, suite: &mut Suite) -> anyhow::Result<()> {
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
    queueing_fits(bench, target, suite)?;
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
            target.identity.named,
            target.identity.path.display()
        );
        // What an earlier run has left must not be taken for this one's.
        suite.seed = u64::from(random_seed());
    }
    Ok(())
}

/// Whether lanes and polling, where they are asked for, mean something for this suite on this target.
fn queueing_fits(bench: &Bench, target: &OpenTarget, suite: &Suite) -> anyhow::Result<()> {
    let is_plain =
        |job: &&Job| job.operation.is_block() && job.shape.is_none() && !job.durability.is_each();
    let mut plain = suite.jobs.iter().filter(is_plain);
    anyhow::ensure!(
        !bench.hipri || plain.clone().next().is_some(),
        "cannot use --hipri with the suite {}: none of its jobs can poll for completions\nTry --suite queue-depth.",
        suite.name
    );
    anyhow::ensure!(
        bench.lanes.is_none() || plain.any(|job| job.queue_depth > 1),
        "cannot use --lanes with the suite {}: none of its jobs has a queue that could be shared\nTry --suite queue-depth.",
        suite.name
    );
    anyhow::ensure!(
        bench.lanes.is_none() || !matches!(target.target, Target::Remote { .. }),
        "cannot use --lanes on {}: no io_uring serves a network disk that is not attached\nGive --connections N instead: \
         each connection has a thread of its own.",
        target.identity.named
    );
    Ok(())
}

/// A number that no other run is likely to have.
pub fn random_seed() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}
