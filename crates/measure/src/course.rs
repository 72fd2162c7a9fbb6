//! Jobs that count from their first byte on: their stopping rule, and the end at a cliff.

use rubus_stats::StopRule;
use rubus_stats::cliff;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::JobResult;
use rubus_vocabulary::spec::{Direction, Durability, Job};

/// A series is searched for a cliff each time this many bins are added: every two seconds.
const BINS_PER_LOOK: usize = 20;

/// Whether all of the job counts, from its first byte on.
pub(crate) fn counts_from_the_start(job: &Job) -> bool {
    job.until_cliff || is_in_passes(job)
}

/// Whether only whole passes of the job say anything of its rate: what has gone into the page cache,
/// or is to be repeated, is not done before its flush.
pub(crate) fn is_in_passes(job: &Job) -> bool {
    let is_cached = job.through_cache && !job.durability.is_each();
    // A job of a job file says itself how much it moves, and whether there is a flush.
    job.shape.is_none() && (job.passes > 1 || is_cached)
}

/// The stopping rule of a job whose bins are `bin_s` seconds long.
pub(crate) fn rule(job: &Job, bin_s: f64) -> StopRule {
    let rule = StopRule::new(job.stop, bin_s);
    if counts_from_the_start(job) { rule.with_ramp_s(0.0) } else { rule }
}

/// Whether the job is to end at a cliff and has, so that the rate below it is known. Looks only when
/// enough has come since `before` bins, of `now`.
pub(crate) fn is_beyond_the_cliff(job: &Job, rule: &StopRule, before: usize, now: usize) -> bool {
    if !job.until_cliff || before / BINS_PER_LOOK == now / BINS_PER_LOOK {
        return false;
    }
    let series = rule.finish().series;
    let fall = cliff::fall(&series, f64::from(job.block_bytes));
    fall.is_some_and(|fall| fall.is_settled())
}

/// Takes back the doubts that a fall raises where a fall is what is looked for: the mean of such a job
/// says nothing, and it need not fill its file.
pub(crate) fn expects_a_fall(result: &mut JobResult) {
    let is_expected = |doubt: &Doubt| {
        matches!(doubt, Doubt::Drift { .. } | Doubt::NotPrecise { .. } | Doubt::SmallRegion { .. })
    };
    result.doubts.retain(|doubt| !is_expected(doubt));
}

/// Whether each operation of the job is a commit.
pub(crate) fn is_commit(job: &Job) -> bool {
    is_commit_job(job.direction, job.durability)
}

/// The same by what a job is made of.
pub(crate) fn is_commit_job(direction: Direction, durability: Durability) -> bool {
    direction == Direction::Write && durability.is_each()
}
