//! Objects in a pool of a real cluster are measured: the rates are the tool's own, what happens to the cluster is told, what is wrong
//! has words, and nothing is left in the pool, be the run interrupted or killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rubus_lab::ceph::Cluster;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::cluster::{NEEDS, job, json, rubus, said, with_the_program};
use crate::common::{can_run, report};

const POOL: &str = "rados:rbd:conf=/ceph/ceph.conf";
/// How far a rate may be from what the tool says of runs of its own, unless the rate's own interval holds that.
const FROM_THE_TOOL: f64 = 0.15;

#[test]
fn objects_are_measured_and_nothing_of_them_is_left() {
    const TEST: &str = "objects_are_measured_and_nothing_of_them_is_left";
    if !can_run(TEST, &NEEDS) {
        return;
    }
    let cluster = with_the_program();
    cluster.wait_clean(Duration::from_secs(120)).expect("it becomes clean");
    what_is_wrong_has_words(&cluster);
    the_rates_are_those_of_the_tool(&cluster);
    a_lost_osd_and_an_interrupt_are_told(&cluster);
    what_a_killed_run_left_goes_with_the_next(&cluster);
    a_full_cluster_is_spared(&cluster);
}

fn is_refused(cluster: &Cluster, words: &[&str], status: i32, wanted: &str) {
    let output = rubus(cluster, words).output().expect("it starts");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    assert!(said.contains(wanted), "{words:?}: {said}");
}

fn what_is_wrong_has_words(cluster: &Cluster) {
    // No host has the address 10.77.0.99.
    let conf = fs::read_to_string(cluster.place().join("ceph.conf")).expect("a configuration");
    let gone = conf.replace("10.77.0.100", "10.77.0.99");
    fs::write(cluster.place().join("gone.conf"), gone).expect("a configuration");
    for (words, wanted) in [
        (
            vec!["bench", "rados:none:conf=/ceph/ceph.conf"],
            "there is no pool 'none' in this cluster; it has: rbd",
        ),
        (
            vec!["bench", "rados:rbd:conf=/ceph/gone.conf"],
            "the cluster does not answer `ceph status`",
        ),
        (
            vec!["bench", "rados:rbd:conf=/ceph/ceph.conf:id=nobody"],
            "the key of the user (:id=USER)",
        ),
        (vec!["bench", POOL, "--budget", "100GiB"], "--budget has to be from 512 MiB to"),
        (vec!["bench", POOL, "--read-only"], "--read-only has no meaning"),
    ] {
        is_refused(cluster, &words, 2, wanted);
    }
    nothing_is_left(cluster);
}

fn measured(cluster: &Cluster, more: &[&str]) -> Command {
    let words = ["bench", POOL, "--no-history", "--no-html", "--json", "/ceph/run.json"];
    rubus(cluster, &[&words[..], more].concat())
}

/// Stands in for ssh: a machine `osd1` is the network that the OSD of that number is in. ssh itself has tests of its own.
const SSH: &str = r#"#!/bin/sh
case "$*" in *-V*) echo OpenSSH_9.2p1 >&2; exit;; *" -G "*) exit;; esac
while [ "$1" != -- ]; do shift; done
for process in /proc/[0-9]*; do
  [ "$(tr '\0' ' ' < $process/cmdline)" = "ceph-osd -i ${2#osd} " ] || continue
  exec nsenter --net=$process/ns/net sh -c "$3"
done
echo "ssh: connect to host $2 port 22: No route to host" >&2
exit 255
"#;

/// In bytes per second. Three runs: what the cluster still moves from its journals slows a single one by up to a fifth.
fn middle_rate_of_the_tool(cluster: &Cluster, verb: &str) -> f64 {
    let mut rates = [0; 3].map(|_| {
        let words = ["-p", "rbd", "bench", "20", verb, "--no-cleanup", "--run-name", "own"];
        let printed = cluster.run("rados", &words).expect("the tool runs");
        let line = printed.lines().find_map(|line| line.strip_prefix("Bandwidth (MB/sec):"));
        let mib: f64 = line.and_then(|mib| mib.trim().parse().ok()).expect("a rate");
        mib * 1_048_576.0
    });
    rates.sort_by(f64::total_cmp);
    rates[1]
}

fn the_rates_are_those_of_the_tool(cluster: &Cluster) {
    let programs = cluster.place().join("bin");
    fs::create_dir(&programs).expect("a directory");
    let ssh = programs.join("ssh");
    fs::write(&ssh, SSH).expect("a program");
    fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).expect("it is one");
    let output = measured(cluster, &["--nodes", "osd[0:3],gone"])
        .env("PATH", "/ceph/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    nothing_is_left(cluster);
    let run = json(cluster, "run.json");
    what_the_machines_spend_is_told(&run, &said(&output));
    for (name, verb) in [("object-write", "write"), ("object-read", "rand")] {
        let ours = job(&run, name);
        let rate = &ours["bytes_per_second"];
        let number = |name: &str| rate[name].as_f64().expect("a rate");
        let tools = middle_rate_of_the_tool(cluster, verb);
        report(&format!(
            "{name}: {:.2} MB/s ({:.2} to {:.2}) here, {:.2} with the tool alone",
            number("value") / 1e6,
            number("low") / 1e6,
            number("high") / 1e6,
            tools / 1e6
        ));
        let is_near = (number("value") / tools - 1.0).abs() <= FROM_THE_TOOL;
        assert!(
            is_near || (number("low")..=number("high")).contains(&tools),
            "{name}: {rate} here and {tools} with the tool"
        );
        assert!(number("low") < number("value") && number("value") < number("high"));
        assert!(ours["latency_ns"]["mean"].as_f64().expect("a mean") > 1e6, "{ours}");
    }
    cluster
        .run("rados", &["-p", "rbd", "cleanup", "--run-name", "own"])
        .expect("the tool's own objects go");
    let target = &run["target"];
    assert_eq!(target["kind"], "pool", "{target}");
    assert_eq!(target["cluster"]["layout"], "3 copies", "{target}");
    assert_eq!(target["cluster"]["changes"], Value::Array(Vec::new()), "{target}");
}

/// Three copies: what is written comes to a board once from the client and twice from another board; what is read only goes.
fn what_the_machines_spend_is_told(run: &Value, said: &str) {
    let nodes = run["target"]["cluster"]["nodes"].as_array().expect("a list");
    for (name, received, sent) in [("object-write", 3.0, 2.0), ("object-read", 0.0, 1.0)] {
        let of_job = || nodes.iter().filter(|node| node["job"] == name);
        assert_eq!(of_job().count(), 4, "{nodes:?}");
        assert!(of_job().all(|node| node["link"] == "eth0"), "{nodes:?}");
        let busy = |node: &Value| node["busy"].as_f64().expect("a share");
        assert!(of_job().all(|node| (0.0..=1.0).contains(&busy(node))));
        let rate = &job(run, name)["bytes_per_second"]["value"];
        let rate = rate.as_f64().expect("a rate");
        for (field, wanted) in
            [("received_bytes_per_second", received), ("sent_bytes_per_second", sent)]
        {
            let all: f64 = of_job().filter_map(|node| node[field].as_f64()).sum();
            report(&format!("{name}: {field} of all boards {:.2} times the rate", all / rate));
            assert!((all / rate - wanted).abs() < 0.15 + 0.1 * wanted, "{name}: {nodes:?}");
        }
    }
    let doubts = run["doubts"].to_string();
    assert!(doubts.contains("the machine gone"), "{doubts}");
    assert!(doubts.contains("No route to host"), "{doubts}");
    assert!(said.contains("of its processors' time; eth0 received"), "{said}");
}

fn begun(cluster: &Cluster) -> (Child, Pid) {
    // A precision that is not reached.
    let job = measured(cluster, &["--precision", "0.5%"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let has_objects = || Ok(objects(cluster).len() > 20);
    cluster.wait("objects are written", Duration::from_secs(60), has_objects).expect("they are");
    let own = cluster.process(|line| line.starts_with("/ceph/rubus\0bench"));
    (job, own.expect("it runs"))
}

/// Names of all objects, of all namespaces.
fn objects(cluster: &Cluster) -> Vec<String> {
    let printed = cluster.run("rados", &["-p", "rbd", "ls", "--all"]).expect("a list");
    printed.lines().map(str::to_owned).collect()
}

fn nothing_is_left(cluster: &Cluster) {
    assert_eq!(objects(cluster), [""; 0]);
}

fn a_lost_osd_and_an_interrupt_are_told(cluster: &Cluster) {
    const OSD: u32 = 2;
    let (job_run, own) = begun(cluster);
    is_refused(cluster, &["bench", POOL], 3, "measures the pool rbd");
    sleep(Duration::from_secs(15));
    kill_process(cluster.osd_process(OSD).expect("it runs"), Signal::KILL).expect("a signal");
    sleep(Duration::from_secs(12));
    cluster.restart_osd(OSD).expect("it starts again");
    sleep(Duration::from_secs(15));
    kill_process(own, Signal::INT).expect("a signal");
    let output = job_run.wait_with_output().expect("it ends");
    let said = said(&output);
    let run = json(cluster, "run.json");
    let changes = run["target"]["cluster"]["changes"].as_array().expect("changes");
    let down = changes
        .iter()
        .find(|change| change["trouble"] == "osd_down" && change["osd"] == OSD)
        .unwrap_or_else(|| panic!("osd.{OSD} was never down: {changes:?} {said}"));
    assert_eq!(down["noticed"], "refused", "{changes:?}");
    let [start_s, end_s] = ["started_s", "ended_s"].map(|name| down[name].as_f64());
    report(&format!("osd.{OSD} was down from {start_s:?} s to {end_s:?} s"));
    assert!(start_s.is_some() && end_s.is_some(), "{changes:?}");
    let results = run["results"].to_string();
    assert!(results.contains("cluster_troubled"), "{results}");
    assert!(run["doubts"].to_string().contains("interrupted"), "{}", run["doubts"]);
    nothing_is_left(cluster);
    cluster.wait_clean(Duration::from_secs(180)).expect("it becomes clean again");
}

fn what_a_killed_run_left_goes_with_the_next(cluster: &Cluster) {
    let (mut job, own) = begun(cluster);
    kill_process(own, Signal::KILL).expect("a signal");
    let _ = job.wait();
    // The tool goes with it.
    let is_tool = |line: &str| line.contains("rados\0") && line.contains("rubus-bench\0");
    cluster
        .wait("the tool has ended", Duration::from_secs(10), || {
            Ok(cluster.process(is_tool).is_err())
        })
        .expect("it ends");
    assert!(objects(cluster).len() > 20);
    let output = measured(cluster, &[]).output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    nothing_is_left(cluster);
}

fn a_full_cluster_is_spared(cluster: &Cluster) {
    cluster.ceph(&["osd", "set-nearfull-ratio", "0.0001"]).expect("a ratio");
    let is_near = || Ok(cluster.ceph(&["health", "detail"])?.contains("OSD_NEARFULL"));
    cluster.wait("an OSD is nearly full", Duration::from_secs(60), is_near).expect("it is");
    is_refused(cluster, &["bench", POOL], 3, "the cluster has little room left");
    nothing_is_left(cluster);
}
