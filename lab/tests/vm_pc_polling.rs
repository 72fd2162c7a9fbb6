//! `--hipri` and `--lanes` on a device that completes by a timer of 100 µs or when it is polled: Debian's null_blk. A read that
//! waits for the interrupt cannot take less than the timer; one whose completion is polled for does, and each is counted by the
//! device. Without poll queues the device is refused.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_polling";
const SOON: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(900);
/// When the device's timer ends a request.
const TIMER_NS: f64 = 100e3;

#[test]
fn completions_are_polled_for_where_the_device_has_poll_queues() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let options = Options {
        push: vec![rubus],
        // Timers of less than a tick.
        kernel_words: "highres=on nohz=on".into(),
        ..Options::default()
    };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();
    board
        .must(
            "modprobe null_blk nr_devices=0 && mount -t configfs none /sys/kernel/config",
            "root",
            SOON,
        )
        .unwrap();
    for (name, poll_queues) in [("interrupts", 0), ("polled", 2)] {
        let make = format!(
            "cd /sys/kernel/config/nullb && mkdir {name} && cd {name} && echo 2 >queue_mode && echo 2 >irqmode &&
             echo 100000 >completion_nsec && echo {poll_queues} >poll_queues && echo 1024 >size && echo 1 >power &&
             until [ -b /dev/{name} ]; do sleep 0.1; done"
        );
        board.must(&make, "root", SOON).unwrap();
    }

    let refused =
        board.run("rubus bench /dev/interrupts --read-only --hipri", "root", LONG).unwrap();
    let said = format!("{}\n{}", refused.text(), refused.complaint_text());
    assert_ne!(refused.status, 0, "{said}");
    assert!(said.contains("poll queues"), "{said}");

    let waited = one_by_one(&reads(&mut board, "interrupts", ""));
    assert!(waited["polled"].is_null(), "{waited}");
    assert!(median_ns(&waited) >= TIMER_NS, "{waited}");

    let run = reads(&mut board, "polled", "--hipri --lanes 1");
    let polled = one_by_one(&run);
    assert_eq!(polled["polled"], true, "{polled}");
    assert!(median_ns(&polled) < TIMER_NS, "{polled}");
    let measured: f64 = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["operations"].as_f64().unwrap())
        .sum();
    let counted = board.must("awk '{ print $1 + $2 }' /sys/block/polled/stat", "root", SOON);
    let counted: f64 = counted.unwrap().trim().parse().unwrap();
    // Each job has a warm-up and one read that was tried; large reads may be cut.
    assert!(counted >= measured && measured > 0.0, "{counted} {measured}");
}

/// The suite `quick`, reads only, as JSON.
fn reads(board: &mut Session, name: &str, options: &str) -> Value {
    let script = format!(
        "rubus bench /dev/{name} --read-only --suite quick {options} --json - --no-history"
    );
    let text = board.must(&script, "root", LONG).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn one_by_one(run: &Value) -> Value {
    let results = run["results"].as_array().unwrap();
    let mut found = results.iter().filter(|result| result["job"] == "random-read");
    found.next().unwrap().clone()
}

fn median_ns(result: &Value) -> f64 {
    result["latency_ns"]["p50"].as_f64().unwrap()
}
