//! Sessions on memory: no disk, no commits, no doubts that only a disk can raise.

use std::sync::atomic::AtomicBool;

use rubus_measure::{Queueing, Session, Target, WatchPaths, run, suites};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Access, TargetKind};

const MIB: u64 = 1 << 20;

#[test]
fn memory_is_a_target_like_any_other() {
    let mut suite = suites::ram(8 * MIB);
    for job in &mut suite.jobs {
        job.stop.min_seconds = 0.1;
        job.stop.max_seconds = 0.3;
    }
    let cancel = AtomicBool::new(false);
    let session = Session {
        target: Target::Ram { size_bytes: 8 * MIB },
        suite: &suite,
        watch: WatchPaths::default(),
        cancel: &cancel,
        queueing: Queueing::USUAL,
        more_files: Vec::new(),
        needs: Vec::new(),
    };
    let outcome = run(session, &mut |_: &rubus_measure::Event<'_>| {}).expect("there is memory");
    assert_eq!(outcome.ended_by, None);
    assert_eq!(outcome.results.len(), suite.jobs.len());
    assert_eq!(outcome.target.kind, TargetKind::Ram);
    assert_eq!(outcome.target.access, Access::Buffered);
    assert_eq!(outcome.target.path, "memory");
    assert_eq!(outcome.target.region_bytes, 8 * MIB);
    for result in &outcome.results {
        assert!(result.iops.value > 0.0, "{}", result.job);
        let of_disks = |doubt: &Doubt| {
            matches!(
                doubt,
                Doubt::ThroughPageCache { .. }
                    | Doubt::DirectIsBuffered { .. }
                    | Doubt::CpuBound { .. }
            )
        };
        assert!(!result.doubts.iter().any(of_disks), "{:?}", result.doubts);
    }
    let of_devices = |doubt: &Doubt| doubt.what().contains("block device");
    assert!(!outcome.doubts.iter().any(of_devices), "{:?}", outcome.doubts);
}
