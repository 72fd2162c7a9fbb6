//! A real Ceph cluster with the program inside of it.

use std::fs;
use std::process::{Command, Output};

use rubus_lab::cache::Cache;
use rubus_lab::ceph::{Cluster, Settings};
use rubus_lab::devices::needs::Need;
use serde_json::Value;

use super::program::binary;

/// What a cluster needs of this machine.
pub const NEEDS: [Need; 5] = [
    Need::Root,
    Need::Program("mmdebstrap", "mmdebstrap"),
    Need::Program("unshare", "util-linux"),
    Need::Program("ip", "iproute2"),
    Need::Program("setpriv", "util-linux"),
];

/// One with the program and a pool `rbd` of three copies. Its links are the limit, so that the processors of this machine are not.
pub fn with_the_program() -> Cluster {
    let settings = Settings { link: Some("100mbit".into()), ..Settings::default() };
    let cluster = Cluster::start(&Cache::of_this_machine(), &settings).expect("the cluster starts");
    fs::copy(binary(), cluster.place().join("rubus")).expect("the program goes in");
    cluster.replicated_pool("rbd", 16, 3).expect("a pool");
    cluster
}

/// The program inside of the cluster.
pub fn rubus(cluster: &Cluster, words: &[&str]) -> Command {
    let mut command = cluster.inside(None, "/ceph/rubus");
    command.args(words);
    command
}

/// All that it said, with a space for each gap and line break.
pub fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&all).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A JSON file in the cluster's place.
pub fn json(cluster: &Cluster, name: &str) -> Value {
    let text = fs::read_to_string(cluster.place().join(name)).expect("a result");
    serde_json::from_str(&text).expect("it is JSON")
}

/// A job of a run.
pub fn job<'a>(run: &'a Value, name: &str) -> &'a Value {
    let jobs = run["results"].as_array().expect("results");
    let job = jobs.iter().find(|job| job["job"] == name);
    job.unwrap_or_else(|| panic!("no {name} in {run}"))
}
