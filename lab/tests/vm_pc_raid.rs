//! RAID-0 of two throttled USB disks on one bus and on two: what the plan predicts from measurements, and what the array
//! then gives. The limits are far below what the emulated processor can move, so that they alone count.

use std::time::Duration;

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_raid";
/// For what takes seconds on a free machine.
const SOON: Duration = Duration::from_secs(300);
const MIB: f64 = 1_048_576.0;
/// What each disk gives, and what each bus carries: little for the processor, and enough that of the few seconds that two
/// disks are measured at once several large requests come to their end on each.
const RATE: u64 = 12 << 20;
const DISK_BYTES: u64 = 512 << 20;
/// Prediction and measurement may differ by so much: the emulator gives each disk its share in portions, and a busy machine
/// runs late.
const TOLERANCE: f64 = 0.3;

/// Reading in order, large blocks, several at once.
const READING: &str =
    "[sequential-read]\nrw=read\nbs=1M\niodepth=4\ndirect=1\nsize=16M\ntime_based\nruntime=6\n";

/// What came out for one pair of disks, in bytes per second.
struct Row {
    title: &'static str,
    one_disk: f64,
    predicted: f64,
    measured: f64,
}

#[test]
fn an_array_gives_what_was_predicted_on_one_bus_and_on_two() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let rate = Throttle {
        bytes_per_second: RATE,
        operations_per_second: 0,
    };
    let disk = |number| UsbDisk::blank(number, DISK_BYTES).limited(rate);
    let usb = [disk(0), disk(1), disk(2).on_bus(1)];
    let kit = Kit::temporary(&cache, Board::Pc, &usb).unwrap();
    let options = Options {
        push: vec![rubus],
        ..Options::default()
    };
    let mut board = Session::boot_kit(&cache, &kit, &options).unwrap();
    for bus in 0..2 {
        board.throttle_bus(bus, Some(rate)).unwrap();
    }
    let job = format!("cat >/run/read.fio <<'END'\n{READING}END\n");
    must(&mut board, &job);
    let disks = [0, 1, 2].map(|number| board.usb_device(number).unwrap());

    // What two disks share shows only when both are at work.
    let both = format!("rubus bench {} {} --together --quiet", disks[0], disks[1]);
    must(&mut board, &both);
    let one = array(&mut board, "one bus", [&disks[0], &disks[1]]);
    // Nothing is known to be shared: the speeds of both, added.
    for disk in [&disks[0], &disks[2]] {
        must(
            &mut board,
            &format!("rubus bench {disk} --fio-job /run/read.fio --quiet"),
        );
    }
    let two = array(&mut board, "two buses", [&disks[0], &disks[2]]);
    board.switch_off().unwrap();

    println!(
        "| RAID-0 of two disks on | one disk alone, MiB/s | predicted | measured | predicted gain | measured gain |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for row in [&one, &two] {
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            row.title,
            row.one_disk / MIB,
            row.predicted / MIB,
            row.measured / MIB,
            row.predicted / row.one_disk,
            row.measured / row.one_disk
        );
    }
    for row in [&one, &two] {
        let off = row.measured / row.predicted - 1.0;
        assert!(off.abs() < TOLERANCE, "{}: off by {off:.2}", row.title);
    }
    let gain = |row: &Row| row.predicted / row.one_disk;
    assert!((0.7..1.15).contains(&gain(&one)), "one bus: {}", gain(&one));
    assert!(
        (1.7..2.3).contains(&gain(&two)),
        "two buses: {}",
        gain(&two)
    );
}

fn must(board: &mut Session, script: &str) -> String {
    board.must(script, "root", SOON).unwrap()
}

fn json(board: &mut Session, script: &str) -> Value {
    let text = must(board, script);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{script}: {error}: {text}"))
}

/// Plans the array, makes it, measures it, and takes it back.
fn array(board: &mut Session, title: &'static str, disks: [&str; 2]) -> Row {
    let wishes = format!("devices={},{} at=/mnt/fast", disks[0], disks[1]);
    let plan = json(board, &format!("rubus plan raid0 {wishes} --json"));
    let gains = plan["gains"].as_array().unwrap();
    let reading = gains
        .iter()
        .find(|gain| gain["what"] == "reading large files");
    let reading = reading.unwrap_or_else(|| panic!("nothing is predicted: {plan:#}"));
    let risks = plan["risks"].to_string();
    let is_warned = risks.contains("No gain in reading large files");
    assert_eq!(is_warned, title == "one bus", "{risks}");

    must(board, "rm -f /run/plan.json /run/measured.json");
    // A disk that was in an array before holds its remains.
    let lost = plan["steps"].as_array().unwrap().iter();
    let lost = lost.filter_map(|step| step["action"]["disk"]["confirmation"].as_str());
    let lost: String = lost
        .map(|words| format!(" --i-will-lose-everything-on={words}"))
        .collect();
    must(board, &format!("rubus apply raid0 {wishes} --yes{lost}"));
    must(
        board,
        "cd /mnt/fast && rubus bench /mnt/fast --fio-job /run/read.fio --quiet --json /run/measured.json",
    );
    let run = json(board, "cat /run/measured.json");
    let measured = run["results"][0]["bytes_per_second"]["value"].as_f64();
    must(board, "rubus undo --yes");
    let ratio = reading["ratio"].as_f64().unwrap();
    let then = rate_of(reading["then"].as_str().unwrap());
    Row {
        title,
        one_disk: then / ratio,
        predicted: then,
        measured: measured.unwrap_or_else(|| panic!("nothing was measured: {run:#}")),
    }
}

/// A rate as a plan writes it: "8.39 MB/s".
fn rate_of(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap();
    let factor = match unit {
        "kB/s" => 1e3,
        "MB/s" => 1e6,
        "GB/s" => 1e9,
        other => panic!("{text}: the unit {other}"),
    };
    number.parse::<f64>().unwrap() * factor
}
