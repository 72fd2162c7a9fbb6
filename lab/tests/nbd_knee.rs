//! The knee of a network disk whose truth can be computed: a server in which at most K requests are
//! in service at a time and each takes D seconds completes min(N, K) / D per second with N in flight.

use crate::common::program::Home;
use crate::common::run::measure_undisturbed;
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::NbdServer;
use rubus_lab::devices::needs::Need;
use serde_json::Value;

/// What each read is delayed by, in seconds.
const DELAY_S: f64 = 0.005;

/// Measures a server with this number of workers.
fn measure(workers: u32) -> Value {
    let server = NbdServer::nbdkit(&[
        &format!("--threads={workers}"),
        "--filter=delay",
        "memory",
        "64M",
        &format!("delay-read={}ms", DELAY_S * 1e3),
    ])
    .expect("nbdkit serves");
    let home = Home::new();
    let answer = home.run(&[
        "bench",
        server.address(),
        "--suite=queue-depth",
        "--json=-",
        "--no-html",
        "--quiet",
    ]);
    assert_eq!(answer.status, Some(0), "{answer}");
    answer.json()
}

fn knee(run: &Value) -> &Value {
    let findings = run["findings"].as_array().expect("findings are a list");
    let knee = findings.iter().find(|finding| finding["kind"] == "knee");
    knee.unwrap_or_else(|| panic!("no knee in {findings:?}"))
}

fn estimate(value: &Value) -> (f64, f64, f64) {
    let number = |key: &str| value[key].as_f64().expect("an estimate has three numbers");
    (number("low"), number("value"), number("high"))
}

/// What is wrong with the knee, given the truth.
fn wrong(knee: &Value, workers: u32) -> Option<&'static str> {
    let truth = f64::from(workers);
    let (low, depth, high) = estimate(&knee["depth"]);
    if !(low..=high).contains(&truth) && (depth / truth - 1.0).abs() > 0.10 {
        return Some("the depth");
    }
    let (_, ceiling, _) = estimate(&knee["ceiling_iops"]);
    if (ceiling / (truth / DELAY_S) - 1.0).abs() > 0.05 {
        return Some("the ceiling");
    }
    if knee["is_reached"] != true {
        return Some("that the ceiling was not reached");
    }
    (knee["is_one_at_a_time"] != (workers == 1)).then_some("whether it works one at a time")
}

fn check(test: &str, workers: u32) {
    if !can_run(test, &[Need::Program("nbdkit", "nbdkit")]) {
        return;
    }
    let _turn = take_turns();
    let is_good = |run: &Value| wrong(knee(run), workers).is_none();
    let run = measure_undisturbed(&["cpu_starved", "cpu_stolen"], is_good, || measure(workers));
    assert_eq!(run["target"]["kind"], "network");
    let knee = knee(&run);
    let (low, depth, high) = estimate(&knee["depth"]);
    let (_, ceiling, _) = estimate(&knee["ceiling_iops"]);
    report(&format!(
        "{workers} workers: knee {depth:.2} ({low:.2} to {high:.2}), ceiling {ceiling:.0} of {:.0} per second",
        f64::from(workers) / DELAY_S
    ));
    assert_eq!(wrong(knee, workers), None, "{knee}");
}

#[test]
fn a_server_that_works_one_at_a_time_gains_nothing_from_a_queue() {
    check("nbd_knee_1", 1);
}

#[test]
fn a_server_with_sixteen_workers_has_its_knee_at_sixteen() {
    check("nbd_knee_16", 16);
}
