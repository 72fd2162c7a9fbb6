//! What `rubus cluster size` says of capacity and network against a real cluster, and that nothing of that cluster outlives the test.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rubus_cluster::capacity::{stored_bytes, stripe_unit};
use rubus_cluster::layout::Layout;
use rubus_lab::cache::Cache;
use rubus_lab::ceph::{Cluster, Settings};

use crate::common::cluster::NEEDS;
use crate::common::{can_run, report};

/// The layouts that fit on four boards, those with codes legacy or fast.
fn layouts(fast: bool) -> [(&'static str, Layout); 4] {
    let code = |data, parity| Layout::Erasure { data, parity, fast };
    [
        ("copies3", Layout::Replica { copies: 3 }),
        ("ec21", code(2, 1)),
        ("ec22", code(2, 2)),
        ("ec31", code(3, 1)),
    ]
}

fn make_pool(cluster: &Cluster, name: &str, layout: Layout, groups: u32) {
    let made = match layout {
        Layout::Replica { copies } => cluster.replicated_pool(name, groups, copies),
        Layout::Erasure { data, parity, fast } => {
            cluster.coded_pool(name, groups, data, parity, fast)
        }
    };
    made.expect("the pool is made");
}

/// Writes objects of one size with `rados bench`; it leaves one small object of its own.
fn write(cluster: &Cluster, pool: &str, bytes: u64, objects: u64) {
    let (bytes, objects) = (bytes.to_string(), objects.to_string());
    cluster
        .run(
            "rados",
            &[
                "bench",
                "-p",
                pool,
                "120",
                "write",
                "-t",
                "16",
                "-b",
                &bytes,
                "--max-objects",
                &objects,
                "--no-cleanup",
                "--run-name",
                "rubus",
            ],
        )
        .expect("the objects are written");
}

/// Objects and bytes on disks of each pool, by name.
fn pools(cluster: &Cluster) -> Vec<(String, u64, u64)> {
    let found = cluster.json(&["df"]).expect("the cluster answers");
    let pools = found["pools"].as_array().expect("pools");
    let row = |pool: &serde_json::Value| {
        let stats = &pool["stats"];
        let name = pool["name"].as_str().expect("a name").to_owned();
        (name, stats["objects"].as_u64().unwrap_or(0), stats["bytes_used"].as_u64().unwrap_or(0))
    };
    pools.iter().map(row).collect()
}

#[test]
fn objects_take_the_space_that_is_predicted() {
    if can_run("objects_take_the_space_that_is_predicted", &NEEDS) {
        check_space("trixie", false);
    }
}

#[test]
fn objects_of_fast_ec_take_the_space_that_is_predicted() {
    if can_run("objects_of_fast_ec_take_the_space_that_is_predicted", &NEEDS) {
        check_space("forky", true);
    }
}

/// Objects of six sizes with four layouts on a cluster of that release of Debian.
fn check_space(suite: &str, fast: bool) {
    const SIZES: [(u64, u64); 6] = [
        (1 << 10, 300),
        (4 << 10, 300),
        (12 << 10, 300),
        (16 << 10, 300),
        (64 << 10, 200),
        // `rados bench` writes at least as many as it keeps in flight.
        (4 << 20, 20),
    ];
    let settings = Settings { suite: suite.into(), ..Settings::default() };
    let cluster = Cluster::start(&Cache::of_this_machine(), &settings).expect("the cluster starts");
    let mut wanted = Vec::new();
    for (name, layout) in layouts(fast) {
        for (bytes, objects) in SIZES {
            let pool = format!("{name}-{bytes}");
            make_pool(&cluster, &pool, layout, 4);
            wanted.push((pool, layout, bytes, objects));
        }
    }
    cluster.wait_clean(Duration::from_secs(120)).expect("it becomes clean");
    for (pool, _, bytes, objects) in &wanted {
        write(&cluster, pool, *bytes, *objects);
    }
    // OSDs report now and then: until every object is counted and the sum stands still.
    let start = Instant::now();
    let mut before = Vec::new();
    let found = loop {
        let now = pools(&cluster);
        let is_counted = |(pool, _, _, objects): &(String, Layout, u64, u64)| {
            now.iter().any(|(name, counted, _)| name == pool && counted > objects)
        };
        if now == before && wanted.iter().all(is_counted) {
            break now;
        }
        assert!(start.elapsed() < Duration::from_secs(600), "the figures do not settle: {now:?}");
        before = now;
        sleep(Duration::from_secs(6));
    };
    let mut worst: f64 = 0.0;
    report("layout    object   on disk per object: predicted, found, error");
    for (pool, layout, bytes, objects) in &wanted {
        let of = |bytes| stored_bytes(*layout, bytes, stripe_unit(*layout));
        let (_, counted, used) = found.iter().find(|(name, ..)| name == pool).expect("the pool");
        assert_eq!(*counted, objects + 1, "{pool}: the objects and one that says how the run was");
        let predicted = objects * of(*bytes) + of(1);
        let error = *used as f64 / predicted as f64 - 1.0;
        worst = worst.max(error.abs());
        report(&format!(
            "{:<8} {bytes:>8} {:>10.0} {:>10.0} {:>6.1} %",
            layout.name(),
            predicted as f64 / *counted as f64,
            *used as f64 / *counted as f64,
            error * 100.0
        ));
    }
    assert!(worst <= 0.02, "the worst prediction is off by {:.1} %", worst * 100.0);
}

#[test]
fn bytes_on_the_wire_are_what_is_predicted() {
    if !can_run("bytes_on_the_wire_are_what_is_predicted", &NEEDS) {
        return;
    }
    let cluster = Cluster::start(&Cache::of_this_machine(), &Settings::default())
        .expect("the cluster starts");
    for (name, layout) in layouts(false) {
        make_pool(&cluster, name, layout, 16);
    }
    cluster.wait_clean(Duration::from_secs(120)).expect("it becomes clean");
    const OBJECTS: u64 = 32;
    for (name, layout) in layouts(false) {
        let before = cluster.received_bytes().expect("counters");
        write(&cluster, name, 4 << 20, OBJECTS);
        let received = cluster.received_bytes().expect("counters") - before;
        let found = received as f64 / (OBJECTS << 22) as f64;
        // The client's bytes reach the primary, which sends (k + m - 1) / k of them on.
        let (k, w) = (f64::from(layout.data()), f64::from(layout.width()));
        let predicted = 1.0 + (w - 1.0) / k;
        let error = found / predicted - 1.0;
        report(&format!(
            "{:<10} received per byte written: predicted {predicted:.3}, found {found:.3}, {:+.1} %",
            layout.name(),
            error * 100.0
        ));
        assert!(error.abs() <= 0.05, "{}: {found:.3} instead of {predicted:.3}", layout.name());
    }
}

#[test]
fn nothing_of_a_cluster_outlives_its_holder() {
    if !can_run("nothing_of_a_cluster_outlives_its_holder", &NEEDS) {
        return;
    }
    let settings = Settings { osds: 1, ..Settings::default() };
    let mut cluster =
        Cluster::start(&Cache::of_this_machine(), &settings).expect("the cluster starts");
    let place = cluster.place().to_owned();
    // A filesystem's mounts are named by paths below it.
    let name = place.file_name().expect("a name").to_string_lossy().into_owned();
    let daemons = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let is_ours = |path: &Path| {
            std::fs::read_to_string(path.join("mountinfo"))
                .is_ok_and(|mounts| mounts.contains(&name))
        };
        all.filter(|entry| is_ours(&entry.path())).count()
    };
    assert!(daemons() >= 4, "holder, monitor, manager and OSD are there");
    let holder = rustix::process::Pid::from_raw(cluster.holder() as i32).expect("a process");
    rustix::process::kill_process(holder, rustix::process::Signal::KILL).expect("it is killed");
    cluster.wait_for_end().expect("it ends");
    let start = Instant::now();
    while daemons() > 0 {
        assert!(start.elapsed() < Duration::from_secs(300), "{} processes are left", daemons());
        sleep(Duration::from_millis(100));
    }
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    assert!(!mounts.contains(&name), "mounts are left");
    assert!(!Path::new("/run/netns/osd0").exists(), "a network is left");
    drop(cluster);
    assert!(!place.exists(), "files are left");
}
