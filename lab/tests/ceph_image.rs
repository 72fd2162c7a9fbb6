//! An image of a real cluster is measured: its rates are fio's, an OSD that was ended is told from one that hangs, with the times of
//! the dip, and what is wrong with an image or a cluster has words. Nothing is left in the pool.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rubus_lab::ceph::Cluster;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::common::cluster::{NEEDS, job, json, rubus, said, with_the_program};
use crate::common::run::started_unix_s;
use crate::common::{can_run, report};

/// The image, as the program is told of it.
const IMAGE: &str = "rbd:rbd/disk:conf=/ceph/ceph.conf";
const CONSENT: &str = "--i-will-lose-everything-on=rbd/disk";
/// Of the image; a job goes round it several times.
const IMAGE_BYTES: &str = "256M";

/// How far a rate may be from fio's on the same image.
const FROM_FIO: f64 = 0.10;
/// How far a moment may be from when it really was, in seconds.
const MOMENT_S: f64 = 1.5;

#[test]
fn an_image_is_measured_and_what_happens_to_its_cluster_is_told() {
    const TEST: &str = "an_image_is_measured_and_what_happens_to_its_cluster_is_told";
    if !can_run(TEST, &NEEDS) {
        return;
    }
    let cluster = with_the_program();
    cluster.ceph(&["osd", "pool", "application", "enable", "rbd", "rbd"]).expect("its use");
    cluster.run("rbd", &["create", "rbd/disk", "--size", IMAGE_BYTES]).expect("an image");
    cluster.wait_clean(Duration::from_secs(120)).expect("it becomes clean");
    what_is_wrong_has_words(&cluster);
    fill(&cluster);
    the_rates_are_those_of_fio(&cluster);
    an_image_in_use_is_only_read(&cluster);
    what_a_killed_run_left_goes_with_the_next(&cluster);
    let of = |trouble: &str, signal, pause_s, noticed: &str| {
        an_osd_is_lost(&cluster, trouble, signal, pause_s, noticed);
        cluster.wait_clean(Duration::from_secs(180)).expect("it becomes clean again");
    };
    of("an OSD that is killed", Signal::KILL, 15, "refused");
    of("an OSD that hangs", Signal::STOP, 40, "silence");
    nothing_is_left(&cluster);
}

/// Writes the whole image: the client answers for what was never written.
fn fill(cluster: &Cluster) {
    let words = [
        "bench",
        "rbd/disk",
        "--io-type=write",
        "--io-size=4M",
        "--io-threads=8",
        "--io-total=256M",
        "--io-pattern=seq",
    ];
    cluster.run("rbd", &words).expect("the image is written");
}

fn what_is_wrong_has_words(cluster: &Cluster) {
    for (words, status, wanted) in [
        (
            vec!["bench", "rbd:rbd/none:conf=/ceph/ceph.conf"],
            2,
            "`rbd ls rbd` lists the images there are",
        ),
        (
            vec!["bench", "rbd:none/disk:conf=/ceph/ceph.conf"],
            2,
            "there is no pool 'none' in this cluster; it has: rbd",
        ),
        (
            vec!["bench", "rbd:rbd/disk:conf=/ceph/none.conf"],
            2,
            "the cluster does not answer `ceph status`",
        ),
        (
            vec!["bench", "rbd:rbd/disk:conf=/ceph/ceph.conf:id=nobody"],
            2,
            "the key of the user (:id=USER)",
        ),
        (
            vec!["bench", IMAGE, "--i-will-lose-everything-on=rbd/other"],
            3,
            "but the target is rbd:rbd/disk",
        ),
    ] {
        let output = rubus(cluster, &words).output().expect("it starts");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

/// Measures the image with a suite, which may write so much.
fn measured(cluster: &Cluster, suite: &str, budget: &str) -> Command {
    rubus(
        cluster,
        &[
            "bench",
            IMAGE,
            CONSENT,
            "--suite",
            suite,
            "--budget",
            budget,
            "--no-history",
            "--no-html",
            "--json",
            "/ceph/run.json",
        ],
    )
}

/// The rate that fio reaches with the same job, in bytes per second.
fn with_fio(cluster: &Cluster, side: &str, ours: &Value) -> f64 {
    let (block, depth) = (&ours["block_bytes"], &ours["queue_depth"]);
    let text = format!(
        "[job]\nioengine=rbd\nclientname=admin\npool=rbd\nrbdname=disk\ndirect=1\nrw={side}\nbs={block}\niodepth={depth}\n\
         runtime=10\ntime_based\nsize={IMAGE_BYTES}\n"
    );
    fs::write(cluster.place().join("job.fio"), text).expect("a job file");
    let words = ["--output-format=json", "--output=/ceph/fio.json", "/ceph/job.fio"];
    cluster.run("fio", &words).expect("fio runs");
    let rate = json(cluster, "fio.json")["jobs"][0][side]["bw_bytes"].as_f64();
    rate.expect("a rate")
}

fn the_rates_are_those_of_fio(cluster: &Cluster) {
    let mut quick = measured(cluster, "quick", "1GiB");
    let output = quick.output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    let run = json(cluster, "run.json");
    for (name, side) in [("sequential-write", "write"), ("sequential-read", "read")] {
        let ours = job(&run, name);
        let rate = ours["bytes_per_second"]["value"].as_f64().expect("a rate");
        let fio = with_fio(cluster, side, ours);
        report(&format!("{name}: {:.2} MB/s here, {:.2} with fio", rate / 1e6, fio / 1e6));
        assert!((rate / fio - 1.0).abs() <= FROM_FIO, "{name}: {rate} here and {fio} with fio");
    }
    let facts = &run["target"]["cluster"];
    assert_eq!(facts["layout"], "3 copies", "{facts}");
    assert_eq!((&facts["osds"], &facts["osds_up"]), (&4.into(), &4.into()));
    assert_eq!(facts["changes"], Value::Array(Vec::new()), "{facts}");
    assert!(facts["not_watched"].is_null(), "{facts}");
}

fn an_image_in_use_is_only_read(cluster: &Cluster) {
    let mut other = cluster
        .inside(None, "rbd")
        .args(["watch", "rbd/disk"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("rbd starts");
    let watched = || {
        let status = cluster.run("rbd", &["status", "rbd/disk", "--format", "json"])?;
        Ok(status.contains("address"))
    };
    cluster.wait("the image is watched", Duration::from_secs(30), watched).expect("it is watched");
    let output = rubus(cluster, &["bench", IMAGE, CONSENT]).output().expect("it starts");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("rbd/disk is in use by"), "{said}");
    let _ = other.kill();
    let _ = other.wait();
    let free = || Ok(!watched()?);
    cluster.wait("nobody watches it", Duration::from_secs(60), free).expect("it is free");
}

/// The directories of sockets that are there.
fn places(cluster: &Cluster) -> usize {
    let all = fs::read_dir(cluster.root().join("tmp")).expect("a directory");
    let names = all.flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with("rubus-rbd-")).count()
}

fn what_a_killed_run_left_goes_with_the_next(cluster: &Cluster) {
    let mut job = measured(cluster, "sustained", "900MB")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let serves = |line: &str| line.contains("qemu-nbd\0");
    let has_begun = || Ok(cluster.process(serves).is_ok());
    cluster.wait("the image is served", Duration::from_secs(60), has_begun).expect("it is");
    let own = cluster.process(|line| line.starts_with("/ceph/rubus\0bench"));
    kill_process(own.expect("it runs"), Signal::KILL).expect("a signal");
    let _ = job.wait();
    let has_ended = || Ok(cluster.process(serves).is_err());
    cluster.wait("its server has ended", Duration::from_secs(20), has_ended).expect("it ends");
    assert_eq!(places(cluster), 1, "what a killed run cannot remove");
    let output = rubus(cluster, &["bench", IMAGE, "--suite", "journal", "--read-only"])
        .output()
        .expect("it starts");
    assert_eq!(places(cluster), 0, "{}", said(&output));
}

/// A long job during which an OSD is lost and comes back.
fn an_osd_is_lost(cluster: &Cluster, what: &str, signal: Signal, pause_s: u64, noticed: &str) {
    const OSD: u32 = 2;
    let job = measured(cluster, "sustained", "900MB")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Long enough for the rate before to be known.
    sleep(Duration::from_secs(25));
    let osd = cluster.osd_process(OSD).expect("it runs");
    kill_process(osd, signal).expect("a signal");
    let lost = SystemTime::now().duration_since(UNIX_EPOCH).expect("later");
    sleep(Duration::from_secs(pause_s));
    match signal {
        Signal::STOP => kill_process(osd, Signal::CONT).expect("a signal"),
        _ => cluster.restart_osd(OSD).expect("it starts again"),
    }
    let run = ended(cluster, job);
    let facts = &run["target"]["cluster"];
    let changes = facts["changes"].as_array().expect("changes");
    let down =
        changes.iter().find(|change| change["trouble"] == "osd_down" && change["osd"] == OSD);
    let down = down.unwrap_or_else(|| panic!("{what}: osd.{OSD} was never down: {facts}"));
    assert_eq!(down["noticed"], noticed, "{what}: {facts}");
    assert!(down["ended_s"].is_number(), "{what}: {facts}");
    let began = lost.as_secs_f64() - started_unix_s(&run);
    let dip = &facts["dips"][0];
    let [start_s, end_s] = ["started_s", "ended_s"].map(|name| dip[name].as_f64());
    report(&format!(
        "{what}: lost at {began:.1} s, marked down at {}, the dip from {start_s:?} s to {end_s:?} s",
        down["started_s"]
    ));
    let start_s = start_s.unwrap_or_else(|| panic!("{what}: no dip: {facts}"));
    assert!((start_s - began).abs() <= MOMENT_S, "{what}: lost at {began} s: {facts}");
    // It is back after the OSD was marked down, whenever that was.
    let down_s = down["started_s"].as_f64().expect("a moment");
    let end_s = end_s.unwrap_or_else(|| panic!("{what}: never back: {facts}"));
    assert!(end_s >= down_s - MOMENT_S, "{what}: {facts}");
    let doubts = run["results"][0]["doubts"].to_string();
    assert!(doubts.contains("cluster_troubled"), "{what}: {doubts}");
}

fn ended(cluster: &Cluster, job: Child) -> Value {
    let output = job.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    json(cluster, "run.json")
}

fn nothing_is_left(cluster: &Cluster) {
    let images = cluster.run("rbd", &["ls", "rbd"]).expect("a list");
    assert_eq!(images.trim(), "disk");
    let mut places = fs::read_dir(cluster.root().join("tmp")).expect("a directory").flatten();
    let ours = places.find(|entry| entry.file_name().to_string_lossy().starts_with("rubus-rbd-"));
    assert!(ours.is_none(), "{ours:?}");
}
