//! The knees of a run's queue-depth sweeps.

use rubus_stats::enough::enough;
use rubus_stats::knee::curve_iops;
pub use rubus_stats::knee::{Depth, Fit, fit};

use rubus_vocabulary::finding::{Finding, Knee};
use rubus_vocabulary::result::{JobResult, Run};

/// The knees of all sweeps of a run: results that differ in nothing but their depth.
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
        && !result.commit
        && result.copies.is_none()
        && result.operations > 0
}

fn is_alike(a: &JobResult, b: &JobResult) -> bool {
    let kind =
        |result: &JobResult| (result.direction, result.pattern, result.block_bytes, result.access);
    kind(a) == kind(b) && a.on == b.on && a.content == b.content
}

fn finding(run: &Run, mut sweep: Vec<&JobResult>) -> Option<Finding> {
    sweep.sort_by_key(|result| result.queue_depth);
    sweep.dedup_by_key(|result| result.queue_depth);
    let depths: Vec<Depth> =
        sweep.iter().map(|result| Depth { depth: result.queue_depth, iops: result.iops }).collect();
    let fit = fit(&depths)?;
    let most = near_the_most(&sweep);
    let is_busy = |result: &&&JobResult| result.is_cpu_bound() || result.polled;
    let busy = most.iter().filter(is_busy);
    Some(Finding::Knee(Knee {
        direction: sweep[0].direction,
        pattern: sweep[0].pattern,
        block_bytes: sweep[0].block_bytes,
        jobs: sweep.iter().map(|result| result.job.clone()).collect(),
        service_ns: fit.service_s.scaled(1e9),
        ceiling_iops: fit.ceiling_iops,
        depth: fit.depth,
        gain: fit.gain,
        is_reached: fit.is_reached,
        softness: fit.softness,
        enough_depth: enough(&depths),
        is_one_at_a_time: fit.is_one_at_a_time,
        is_cpu_bound: most.iter().any(|result| result.is_cpu_bound()),
        is_polled: most.iter().any(|result| result.polled),
        lanes_at_limit: busy.filter_map(|result| run.lanes_below_cores(result)).max(),
        misfit: fit.misfit,
    }))
}

/// The points that give nearly the most: where the processor limited one of them, the ceiling is perhaps its own.
fn near_the_most<'a>(sweep: &[&'a JobResult]) -> Vec<&'a JobResult> {
    const NEARLY: f64 = 0.9;
    let rates = sweep.iter().map(|result| result.iops.value);
    let most = rates.fold(0.0, f64::max);
    let is_near = |result: &&&JobResult| result.iops.value >= NEARLY * most;
    sweep.iter().filter(is_near).copied().collect()
}

/// Operations per second that the fitted curve gives with `depth` in flight, at least 1.
pub fn fitted_iops(knee: &Knee, depth: u32) -> f64 {
    let service_s = knee.service_ns.value / 1e9;
    curve_iops(service_s, knee.depth.value, knee.softness, depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::doubt::Doubt;

    #[test]
    fn a_ceiling_that_the_processor_sets_is_marked() {
        let mut run = rubus_fixtures::queue_depth_run();
        let marks = |run: &Run| -> Vec<bool> {
            let knees = of(run).into_iter().map(|finding| match finding {
                Finding::Knee(knee) => knee.is_cpu_bound,
                other => panic!("{other:?}"),
            });
            knees.collect()
        };
        assert_eq!(marks(&run), [false, false]);
        let bound = Doubt::CpuBound { share: 0.97 };
        // Not where it is far from the ceiling, and no other sweep.
        run.results[0].doubts.push(bound.clone());
        assert_eq!(marks(&run), [false, false]);
        run.results[8].doubts.push(bound);
        assert_eq!(marks(&run), [true, false]);
    }

    #[test]
    fn a_ceiling_that_was_polled_for_is_marked() {
        let mut run = rubus_fixtures::queue_depth_run();
        let marks = |run: &Run| -> Vec<bool> {
            let knees = of(run).into_iter().map(|finding| match finding {
                Finding::Knee(knee) => knee.is_polled,
                other => panic!("{other:?}"),
            });
            knees.collect()
        };
        assert_eq!(marks(&run), [false, false]);
        run.results[8].polled = true;
        assert_eq!(marks(&run), [true, false]);
    }

    #[test]
    fn more_lanes_are_proposed_where_there_are_cores_for_them() {
        let lanes = |engine: &str, lanes: Option<u32>, cores: u32| {
            let mut run = rubus_fixtures::queue_depth_run();
            run.machine.cpu.cores = rubus_vocabulary::fact::Fact::known(cores, "a test");
            let result = &mut run.results[8];
            result.engine = engine.into();
            result.lanes = lanes;
            result.doubts.push(Doubt::CpuBound { share: 0.97 });
            match of(&run).into_iter().next() {
                Some(Finding::Knee(knee)) => knee.lanes_at_limit,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(lanes("ring", None, 4), Some(1));
        assert_eq!(lanes("ring", Some(2), 4), Some(2));
        assert_eq!(lanes("ring", Some(4), 4), None, "there is no core left");
        assert_eq!(lanes("ring", None, 1), None);
        assert_eq!(lanes("threads", None, 4), None, "no ring could be divided");
    }

    #[test]
    fn the_curve_of_a_knee_goes_through_its_points() {
        let mut run = rubus_fixtures::queue_depth_run();
        for finding in of(&run).into_iter().take(1) {
            let Finding::Knee(knee) = finding else {
                panic!("a sweep of depths has a knee");
            };
            run.results.truncate(9);
            for result in &run.results {
                let curve = fitted_iops(&knee, result.queue_depth);
                let off = (curve / result.iops.value - 1.0).abs();
                assert!(off <= knee.misfit * 1.001 + 1e-6, "{}: {off} of {knee:?}", result.job);
            }
        }
    }
}
