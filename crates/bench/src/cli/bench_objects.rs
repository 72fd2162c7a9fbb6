//! `rubus bench rados:POOL`: objects of a pool, written and read with Ceph's own `rados bench`.

use rubus_cluster::live::now_s;
use rubus_cluster::live::objects::Objects;
use rubus_cluster::rados::{FILL_OBJECTS, OBJECT_BYTES, SUITE, budget, jobs};
use rubus_cluster::watch::pool_name::PoolName;
use rubus_command::messages::in_columns;
use rubus_command::{Exit, General, message};
use rubus_vocabulary::access::Access;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{Figures, TargetFacts, TargetKind};
use rubus_vocabulary::spec::{Content, Direction};
use rubus_vocabulary::units::bytes_iec;

use super::bench_args::Bench;
use super::far_end::ask_nodes;
use crate::parts::PartsRun;
use crate::target_name::TargetName;

/// The pool that is to be measured, if it is one.
///
/// # Errors
/// When there is something else beside it, or an option that has no meaning for it.
pub fn pool(bench: &Bench) -> anyhow::Result<Option<&PoolName>> {
    let all = bench.targets.iter().chain(&bench.against);
    let mut pools = all.filter_map(|target| match target {
        TargetName::Rados(pool) => Some(pool),
        _ => None,
    });
    let Some(pool) = pools.next() else {
        return Ok(None);
    };
    anyhow::ensure!(
        bench.targets.len() == 1 && bench.against.is_none(),
        "the objects of a pool are measured alone: give {} in a command of its own",
        pool.address()
    );
    if let Some(suite) = bench.suite.as_deref().filter(|suite| *suite != SUITE) {
        anyhow::bail!(
            "the suite '{suite}' is for disks; objects have the suite '{SUITE}' (measure an image in the pool instead: \
             rbd:{pool}/IMAGE)"
        );
    }
    let others = [
        (bench.fio_job.is_some(), "--fio-job"),
        (bench.fio_json.is_some(), "--fio-json"),
        (bench.together, "--together"),
        (bench.read_only, "--read-only"),
        (bench.size.is_some(), "--size"),
        (bench.seed.is_some(), "--seed"),
        (bench.full, "--full"),
        (bench.drop_caches, "--drop-caches"),
        (bench.content != Content::Incompressible, "--content"),
        (bench.connections.is_some(), "--connections"),
        (bench.server_status.is_some(), "--server-status"),
        (bench.lanes.is_some(), "--lanes"),
        (bench.hipri, "--hipri"),
        (bench.threads, "--threads"),
    ];
    for (is_given, option) in others {
        anyhow::ensure!(
            !is_given,
            "{option} has no meaning for the objects of a pool ({}): leave it out",
            pool.address()
        );
    }
    Ok(Some(pool))
}

/// Measures, keeps and shows.
pub fn run(general: &General, bench: &Bench, name: &PoolName) -> anyhow::Result<Exit> {
    let what = "the objects of a pool";
    let frame = PartsRun::begin(general, bench.json.as_deref(), &bench.keeping, what)?;
    let began_s = now_s();
    let mut objects = Objects::open(name)?;
    ask_nodes(bench, std::iter::once(&objects.watcher))?;
    let budget = budget(bench.budget, objects.available).map_err(anyhow::Error::msg)?;
    if !general.quiet {
        message!(
            "{}",
            in_columns(&format!(
                "Measuring the pool {name}: writes {} at most, in objects of {} in a namespace of their own, and \
                 removes them at the end.",
                bytes_iec(budget),
                bytes_iec(u64::from(OBJECT_BYTES))
            ))
        );
    }
    objects.claim()?;
    let stop = &*std::sync::Arc::clone(&frame.cancel);
    let mut results = Vec::new();
    let mut bytes_written = FILL_OBJECTS * u64::from(OBJECT_BYTES);
    frame.line.says("writing the objects that will be read");
    let mut trouble = objects.fill(stop).err();
    for job in jobs(bench.precision, budget) {
        if trouble.is_some() || frame.is_interrupted() {
            break;
        }
        match objects.measure(&job, began_s, stop, &|what| frame.line.says(what)) {
            Ok((result, bytes)) => {
                if job.direction == Direction::Write {
                    bytes_written += bytes;
                }
                results.push(result);
            }
            Err(why) => trouble = Some(why),
        }
    }
    frame.line.says("removing the objects");
    objects.remove().map_err(anyhow::Error::msg)?;
    let mut doubts = frame.power_doubts();
    match (frame.is_interrupted(), trouble) {
        (true, _) => doubts.push(Doubt::Interrupted),
        (false, Some(why)) => anyhow::bail!("cannot measure on {}: {why}", name.address()),
        (false, None) => {}
    }
    frame.end(SUITE, "", Figures::Disk, doubts, |mut run| {
        run.target = target(name);
        run.results = results;
        run.bytes_written = bytes_written;
        objects.watcher.tell(&mut run, began_s);
        run
    })
}

fn target(name: &PoolName) -> TargetFacts {
    TargetFacts {
        named: name.address(),
        kind: TargetKind::Pool,
        path: name.address(),
        filesystem: None,
        device: None,
        region_bytes: FILL_OBJECTS * u64::from(OBJECT_BYTES),
        access: Access::Direct,
        content: "zeros".into(),
        network: None,
        link: None,
        cluster: None,
        nas: None,
    }
}
