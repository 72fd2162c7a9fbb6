//! The bends of a run's block-size sweeps.

pub use rubus_stats::bend::{Fit, Size, fit};

use rubus_vocabulary::finding::{Bend, Finding};
use rubus_vocabulary::result::{Access, JobResult, Run};

/// The bends of all sweeps of a run: results that differ in nothing but their block size.
pub(super) fn of(run: &Run) -> Vec<Finding> {
    let mut sweeps: Vec<Vec<&JobResult>> = Vec::new();
    for result in run.results.iter().filter(|result| is_point(result)) {
        match sweeps.iter_mut().find(|sweep| is_alike(sweep[0], result)) {
            Some(sweep) => sweep.push(result),
            None => sweeps.push(vec![result]),
        }
    }
    let finding = |sweep| finding(run, sweep);
    sweeps.into_iter().filter_map(finding).collect()
}

fn is_point(result: &JobResult) -> bool {
    result.operation.is_block()
        && result.queue_depth == 1
        && result.copies.is_none()
        && result.operations > 0
}

fn is_alike(a: &JobResult, b: &JobResult) -> bool {
    let kind =
        |result: &JobResult| (result.direction, result.pattern, result.commit, result.access);
    kind(a) == kind(b) && a.on == b.on && a.content == b.content
}

fn finding(run: &Run, mut sweep: Vec<&JobResult>) -> Option<Finding> {
    sweep.sort_by_key(|result| result.block_bytes);
    sweep.dedup_by_key(|result| result.block_bytes);
    let sizes: Vec<Size> = sweep
        .iter()
        .map(|result| Size { block_bytes: result.block_bytes, iops: result.iops })
        .collect();
    let fit = fit(&sizes)?;
    let access = run.access_of(sweep[0]);
    Some(Finding::Bend(Bend {
        direction: sweep[0].direction,
        jobs: sweep.iter().map(|result| result.job.clone()).collect(),
        is_direct: access == Access::Direct,
        setup_ns: fit.setup_s.scaled(1e9),
        bytes_per_second: fit.bytes_per_second,
        block_bytes: fit.block_bytes,
        misfit: fit.misfit,
    }))
}
