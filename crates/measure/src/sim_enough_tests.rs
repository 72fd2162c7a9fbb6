//! The answer on devices whose commits are known: their distribution decides what is right.
//!
//! A device takes a base time for each commit, even within ±10 %, and in a share of the commits a hiccup on top whose length is
//! exponential; some stand still for a while. From that the 99th percentile is known.

use std::sync::atomic::AtomicBool;

use rubus_vocabulary::result::Access;

use crate::event::Event;
use crate::region::Region;
use crate::scheduler::Scheduler;
use crate::sim::{Device, Hiccups, SimRig, Unrest};
use crate::target::Opened;

use rubus_verdict::enough::{
    Answer, Evidence, JUDGED, Question, USUAL_S, Workload, by_name, judge,
};

/// Each device is measured so often, with other chances each time.
const TIMES: u64 = 4;

/// Bytes of a commit on average.
const MEAN_BYTES: f64 = 5.0 * 1024.0;

struct Truth {
    name: &'static str,
    base_ms: f64,
    /// How long a write without a flush takes.
    write_ms: f64,
    /// Share of the commits with a hiccup, and how long one is on average.
    hiccups: Option<(f64, f64)>,
    /// It stands still: from, for, in seconds.
    pause_s: Option<(f64, f64)>,
    right: Answer,
}

const fn device(name: &'static str, base_ms: f64, right: Answer) -> Truth {
    Truth { name, base_ms, write_ms: 0.01, hiccups: None, pause_s: None, right }
}

const fn with_writes(mut truth: Truth, write_ms: f64) -> Truth {
    truth.write_ms = write_ms;
    truth
}

const fn with_tail(mut truth: Truth, share: f64, mean_ms: f64) -> Truth {
    truth.hiccups = Some((share, mean_ms));
    truth
}

const fn with_pause(mut truth: Truth, at_s: f64, length_s: f64) -> Truth {
    truth.pause_s = Some((at_s, length_s));
    truth
}

use Answer::{No, Undecided, Yes, YesBut};

const DEVICES: [Truth; 24] = [
    device("NVMe with power-loss protection", 0.05, Yes),
    device("NVMe", 0.8, Yes),
    device("USB SSD", 2.5, Yes),
    device("slow SATA SSD", 6.0, Yes),
    device("good card", 8.0, Yes),
    device("card at the edge", 13.0, YesBut),
    device("card near the edge's end", 16.0, YesBut),
    device("card beyond the edge", 26.0, No),
    device("hard disk", 35.0, No),
    device("old card", 120.0, No),
    device("stick", 400.0, No),
    with_tail(device("NVMe, rare short hiccups", 0.8, Yes), 0.002, 2.0),
    with_tail(device("SSD, 1 in 200 takes 80 ms", 2.0, YesBut), 0.005, 80.0),
    with_tail(device("SSD, 1 in 300 takes 100 ms", 1.0, YesBut), 0.0033, 100.0),
    with_tail(device("card, 1 in 20 takes 60 ms", 3.0, No), 0.05, 60.0),
    with_tail(device("card, 1 in 10 takes 100 ms", 5.0, No), 0.1, 100.0),
    with_tail(device("card, 1 in 33 takes 90 ms", 2.0, No), 0.03, 90.0),
    with_tail(device("SSD, 1 in 20 takes 6 ms", 2.0, YesBut), 0.05, 6.0),
    with_tail(device("1 in 100 takes 20 ms or longer", 2.0, Undecided), 0.012, 100.0),
    with_pause(device("NVMe with one stall", 0.8, No), 30.0, 1.6),
    with_pause(device("SSD with a long stall", 2.5, No), 11.0, 8.0),
    with_pause(device("SSD that stops for half a second", 2.5, Yes), 20.0, 0.5),
    with_pause(device("card at the edge with a stall", 13.0, No), 40.0, 2.0),
    with_pause(device("slow card with a stall", 120.0, No), 40.0, 3.0),
];

impl Truth {
    fn device(&self) -> Device {
        let mut device = Device::of_iops(1000.0, 1000.0);
        device.base_ns = [1e5, self.write_ms * 1e6];
        device.commit_ns = (self.base_ms - self.write_ms) * 1e6;
        device.hiccups = self.hiccups.map(|(share, mean_ms)| Hiccups {
            every_bytes: MEAN_BYTES / share,
            length_ns: mean_ms * 1e6,
        });
        device.unrest = Some(Unrest { share: 0.02, correlation_s: 1.0 });
        device.pauses = self
            .pause_s
            .map(|(at_s, length_s)| ((at_s * 1e9) as u64, (length_s * 1e9) as u64))
            .into_iter()
            .collect();
        device
    }
}

/// What is seen of a workload on a device.
fn seen(workload: &Workload, device: Device, seconds: f64, seed: u64) -> Evidence {
    let measurement = workload.measurement(seconds);
    let mut rig = SimRig::seeded(device, seed);
    let cancel = AtomicBool::new(false);
    let needs = measurement.needs.iter();
    let region = |need| {
        let mut opened = Opened::pretended(None);
        // As the file that commits are appended to; what is not flushed goes past the cache.
        opened.access = if measurement.suite.jobs[0].durability.is_each() {
            Access::Buffered
        } else {
            Access::Direct
        };
        Region::of_several(opened, need)
    };
    let regions = needs.map(region).collect();
    let mut scheduler = Scheduler::new(&mut rig, &measurement.suite, regions, &cancel, 0);
    let ended_by = scheduler.run_all(&mut |event: &Event<'_>| {
        if let Event::JobSkipped { reason, .. } = event {
            panic!("{reason}");
        }
    });
    assert!(ended_by.is_none(), "{ended_by:?}");
    let (results, bytes_written) = scheduler.into_results();
    let planned = crate::suites::plan_writes(&measurement.suite, false);
    assert!(bytes_written <= planned, "{bytes_written} of {planned}");
    let judged = results.iter().find(|result| result.job == JUDGED);
    Evidence::of(judged.expect("it was measured"))
}

/// The measurements of which the answer is not the right one.
fn wrong(workload: &str, devices: &[Truth]) -> Vec<String> {
    let workload = by_name(workload).expect("it is listed");
    let mut wrong = Vec::new();
    for (truth, seed) in devices.iter().flat_map(|truth| (0..TIMES).map(move |n| (truth, n))) {
        let seen = seen(workload, truth.device(), USUAL_S, 1 + seed);
        let question = Question { workload, place: "/", seconds: USUAL_S };
        let found = judge(&question, &seen);
        if found.answer != truth.right {
            wrong.push(format!("{}: {}", truth.name, found.sentence));
        }
    }
    wrong
}

#[test]
fn sim_the_answer_is_right_on_devices_of_known_truth() {
    let wrong = wrong("etcd", &DEVICES);
    let measurements = DEVICES.len() * TIMES as usize;
    assert!(20 * wrong.len() <= measurements, "{wrong:#?}");
    // What is not right is undecided, not the opposite.
    let is_undecided = |words: &String| words.contains(": undecided");
    assert!(wrong.iter().all(is_undecided), "{wrong:#?}");
}

#[test]
fn sim_a_database_waits_for_its_log_alone() {
    let devices = [
        device("NVMe", 0.8, Yes),
        device("USB SSD", 2.5, Yes),
        device("card at the edge", 13.0, YesBut),
        device("slow card at the edge", 60.0, YesBut),
        device("old card", 140.0, No),
        with_tail(device("SSD, 1 in 20 takes 300 ms", 2.0, No), 0.05 * 8.0 / 5.0, 300.0),
        with_pause(device("SSD with a long stall", 2.5, No), 11.0, 8.0),
    ];
    assert_eq!(wrong("database", &devices), [""; 0]);
}

#[test]
fn sim_home_assistant_bears_a_slow_card_and_no_long_stall() {
    let devices = [
        device("NVMe", 0.8, Yes),
        device("card", 20.0, Yes),
        device("old card", 80.0, Yes),
        // Two flushes in a row, as in a checkpoint, take more than a second.
        device("stick", 600.0, No),
        device("stick that is nearly dead", 1500.0, No),
        with_pause(device("card that stops for two seconds", 20.0, Yes), 20.0, 2.0),
        with_pause(device("card with a long stall", 20.0, No), 20.0, 6.0),
    ];
    assert_eq!(wrong("home-assistant", &devices), [""; 0]);
}

#[test]
fn sim_a_git_server_waits_for_three_flushes_and_no_longer_than_attention_lasts() {
    let devices = [
        device("NVMe", 0.8, Yes),
        device("card", 20.0, Yes),
        device("old card", 80.0, Yes),
        // A minute has too few commits for their slowest 1 %.
        device("stick", 900.0, Undecided),
        device("stick that is nearly dead", 5000.0, No),
        with_tail(device("card, 1 in 20 takes 300 ms", 20.0, YesBut), 0.05 * 5.0 / 130.0, 300.0),
        with_pause(device("card that stops for two seconds", 20.0, Yes), 20.0, 2.0),
        with_pause(device("card that stops for five", 20.0, YesBut), 20.0, 5.0),
        with_pause(device("card that stops for twelve", 20.0, No), 20.0, 12.0),
    ];
    assert_eq!(wrong("git-server", &devices), [""; 0]);
}

#[test]
fn sim_a_camera_recorder_needs_a_disk_that_keeps_up_and_flushes_nothing() {
    let writes = |name, write_ms, right| with_writes(device(name, write_ms, right), write_ms);
    let devices = [
        writes("NVMe", 0.8, Yes),
        writes("card", 20.0, Yes),
        writes("card, half busy", 30.0, Yes),
        with_writes(device("card with slow flushes", 200.0, Yes), 10.0),
        writes("old card that falls behind", 80.0, No),
        writes("stick", 900.0, No),
        with_pause(writes("card that stops for a moment", 20.0, Yes), 20.0, 0.8),
        with_pause(writes("card with a stall", 20.0, No), 20.0, 3.0),
    ];
    assert_eq!(wrong("camera-recorder", &devices), [""; 0]);
}
