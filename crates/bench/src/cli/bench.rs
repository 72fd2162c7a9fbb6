//! `rubus bench`: a suite on one or several targets, one after the other.

use std::sync::atomic::Ordering;

use rubus_command::messages::in_columns;
use rubus_command::{Exit, General, Terminal, World, message, must_be_live, signals};
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::spec::Suite;
use rubus_vocabulary::verb::Page;

use super::bench_args::Bench;
use super::bench_objects;
use super::bench_options::{allowance, queueing, suite_of, wanted};
use super::far_end::{ask_nodes, ask_server};
use crate::measuring;
use crate::outputs::{self, Outputs};
use crate::target::{self, OpenTarget};
use crate::target_name::TargetName;

/// Exit statuses and examples.
pub(super) const PAGE: Page = Page {
    name: "rubus-bench",
    statuses: super::MEASURED,
    examples: &[
        (
            "rubus bench . /mnt/ssd --json both.json",
            "Measure two disks one after the other, and keep the figures as JSON.",
        ),
        ("rubus bench /dev/sda --read-only", "Measure how fast a device is read; writes nothing."),
        (
            "rubus bench /dev/sda --i-will-lose-everything-on SERIAL",
            "Measure reads and writes; everything on the device is lost.",
        ),
        ("rubus bench . --suite queue-depth", "Find how many requests in flight are worth it."),
        ("rubus bench /mnt/a /mnt/b --together", "Find out whether two disks share a pipe."),
        (
            "rubus bench /home/pi --on pi@raspberrypi",
            "Measure a directory of another machine, over ssh.",
        ),
    ],
};

/// Measures every target with the suite.
pub fn run(general: &General, bench: &Bench) -> anyhow::Result<Exit> {
    if let Some(pool) = bench_objects::pool(bench)? {
        return bench_objects::run(general, bench, pool);
    }
    if let Some(path) = &bench.fio_job {
        return super::job_file::run(general, bench, path);
    }
    if bench.together {
        return super::together::run(general, bench);
    }
    must_be_live(general, "a bench", "a disk")?;
    if let Some(baseline) = &bench.against {
        return super::against::run(general, bench, baseline);
    }
    outputs::check(&wanted(bench))?;
    let queueing = queueing(bench)?;
    let terminal = Terminal::of(general);
    let world = World::of(general)?;
    let machine = world.survey();
    // Every target is checked before the first is touched: a misspelt last one must not cost the
    // minutes of the others.
    let mut planned = Vec::new();
    for name in &bench.targets {
        planned.push(plan(bench, name, &machine, &world)?);
    }
    // Until here, nothing has to be ended in order: a server may be waited for.
    let cancel = signals::cancel_flag()?;
    let targets = planned.iter_mut().map(|(target, _)| target);
    ask_server(bench, targets, &cancel)?;
    let clusters = planned.iter();
    let clusters = clusters.filter_map(|(target, _)| target.identity.cluster.as_deref());
    ask_nodes(bench, clusters)?;
    let mut outputs = Outputs::new(general, wanted(bench), planned.len());
    for (target, suite) in planned {
        if !general.quiet {
            message!("{}", in_columns(&measuring::announce(&suite, &target)));
        }
        let measured = measuring::measure(
            target,
            &suite,
            &world,
            machine.clone(),
            &cancel,
            queueing,
            terminal,
        )?;
        outputs.take(measured)?;
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }
    outputs.finish()
}

fn plan(
    bench: &Bench,
    name: &TargetName,
    machine: &Machine,
    world: &World,
) -> anyhow::Result<(OpenTarget, Suite)> {
    let target = target::resolve(name, machine, world.files(), &allowance(bench))?;
    let usual = if target.is_memory() { "ram" } else { "quick" };
    let suite = suite_of(bench, &target, usual, bench.size)?;
    Ok((target, suite))
}
