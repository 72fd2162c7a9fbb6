//! Every kind of finding, in every state that has words of its own.

use crate::findings::add_rules;
use rubus_fixtures::{
    block_size_run, capacity_run, queue_depth_run, slow_sd_card_run, sustained_run, together_run,
};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::finding::*;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::suite_jobs as job;

/// Findings with every field filled in at least once, and those that say "no" or "not known".
pub fn every_finding() -> Vec<Finding> {
    let mut all = Vec::new();
    for run in
        [queue_depth_run(), block_size_run(), sustained_run(), together_run(), capacity_run()]
    {
        all.extend(run.findings);
    }
    all.extend(other_states(&all));
    all.extend(classes());
    all.extend([
        compression(Estimate::new(4.1, 3.9, 4.3)),
        compression(Estimate::new(1.01, 0.97, 1.05)),
        compression(Estimate::new(1.1, 0.8, 1.5)),
        compression(Estimate::new(1.0, 0.0, f64::INFINITY)),
    ]);
    // One with a command and one without.
    let rules = rubus_machine::rules::of_run(&slow_sd_card_run());
    let with = |has: bool| rules.iter().find(move |found| found.command.is_some() == has);
    all.extend([with(true), with(false)].into_iter().flatten().cloned().map(Finding::Rule));
    all
}

/// A slow card with what the rules find in its run, as it is stored.
pub fn slow_sd_card_run_with_rules() -> Run {
    let mut run = slow_sd_card_run();
    add_rules(&mut run);
    run
}

/// What the runs of the other fixtures do not have.
fn other_states(all: &[Finding]) -> Vec<Finding> {
    let mut others = Vec::new();
    for finding in all {
        match finding {
            Finding::Knee(knee) if !knee.is_one_at_a_time => others.push(Finding::Knee(Knee {
                depth: Estimate::new(300.0, 214.0, f64::INFINITY),
                ceiling_iops: Estimate::new(396_000.0, 282_000.0, f64::INFINITY),
                gain: Estimate::new(214.0, 190.0, 240.0),
                is_reached: false,
                enough_depth: None,
                misfit: 0.31,
                ..knee.clone()
            })),
            Finding::Cliff(cliff) => {
                others.push(Finding::Cliff(Cliff {
                    burst_bytes: None,
                    sustained_bytes_per_second: None,
                    recovery: None,
                    ..cliff.clone()
                }));
                others.push(Finding::Cliff(Cliff {
                    recovery: Some(Recovery { rest_s: 30.0, burst_bytes: 0, share: 0.0 }),
                    ..cliff.clone()
                }));
            }
            Finding::Capacity(capacity) => others.push(Finding::Capacity(Capacity {
                tested_bytes: capacity.announced_bytes,
                good_bytes: capacity.announced_bytes,
                overwritten_bytes: 0,
                corrupted_bytes: 0,
                first_bad_offset: None,
                wraps_at_bytes: None,
                ..capacity.clone()
            })),
            Finding::SharedPipe(pipe) => others.push(Finding::SharedPipe(SharedPipe {
                share: Estimate::new(0.99, 0.96, 1.02),
                is_shared: Some(false),
                suspect: None,
                ..pipe.clone()
            })),
            _ => {}
        }
    }
    others
}

fn classes() -> Vec<Finding> {
    let random = |what: &str, job: &str, least: f64, value: f64| Threshold {
        what: what.into(),
        job: job.into(),
        least,
        unit: "IOPS".into(),
        measured: Estimate::new(value, value * 0.96, value * 1.04),
    };
    let writing = |least: f64| Threshold {
        what: "writing in order".into(),
        job: job::CLASS_WRITE.into(),
        least,
        unit: "bytes per second".into(),
        measured: Estimate::new(21.4e6, 20.1e6, 22.7e6),
    };
    let class = |name: &str, thresholds: Vec<Threshold>, is_met| {
        Finding::SpeedClass(SpeedClass { class: name.into(), thresholds, is_met })
    };
    vec![
        class(
            "A1",
            vec![
                random("random reads", job::CLASS_READ, 1500.0, 2210.0),
                random("random writes", job::CLASS_RANDOM_WRITE, 500.0, 620.0),
                writing(10e6),
            ],
            Some(true),
        ),
        class(
            "A2",
            vec![
                random("random reads", job::CLASS_READ_DEEP, 4000.0, 2390.0),
                random("random writes", job::CLASS_RANDOM_WRITE_DEEP, 2000.0, 1990.0),
                writing(10e6),
            ],
            Some(false),
        ),
        class("U1 (V10, C10)", vec![writing(10e6)], None),
        class("V30 (U3)", vec![writing(30e6)], Some(false)),
    ]
}

fn compression(ratio: Estimate) -> Finding {
    let incompressible = Estimate::new(29.8e6, 29.1e6, 30.5e6);
    Finding::Compression(Compression {
        incompressible_bytes_per_second: incompressible,
        zeros_bytes_per_second: incompressible.scaled(ratio.value),
        ratio,
    })
}
