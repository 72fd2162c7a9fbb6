//! RAID-0 of two throttled USB disks on one bus and on two: what the plan predicts from measurements, and what the array
//! then gives. The limits are far below what the emulated processor can move, so that they alone count.

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::raid_board::{MOUNTED_AT, RaidBoard};

const TEST: &str = "vm_pc_raid";
const MIB: f64 = 1_048_576.0;
/// What each disk gives, and what each bus carries: little for the processor, and enough that of the few seconds that two
/// disks are measured at once several large requests come to their end on each.
const RATE: u64 = 12 << 20;
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
    let rate = Throttle { bytes_per_second: RATE, operations_per_second: 0 };
    let mut board = RaidBoard::boot(&Cache::of_this_machine(), rubus).unwrap();
    board.limit(Some(rate), Some(rate)).unwrap();

    // What two disks share shows only when both are at work.
    let both = board.nodes(&[0, 1]).join(" ");
    board.must(&format!("rubus bench {both} --together --quiet")).unwrap();
    let one = array(&mut board, "one bus", [0, 1]);
    // Nothing is known to be shared: the speeds of both, added.
    for disk in board.nodes(&[0, 2]) {
        board.bench(READING, Some(&disk)).unwrap();
    }
    let two = array(&mut board, "two buses", [0, 2]);
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
    assert!((1.7..2.3).contains(&gain(&two)), "two buses: {}", gain(&two));
}

/// Plans the array, makes it, measures it, and takes it back.
fn array(board: &mut RaidBoard, title: &'static str, disks: [usize; 2]) -> Row {
    let plan = board.plan(&disks).unwrap();
    let gains = plan["gains"].as_array().unwrap();
    let reading = gains.iter().find(|gain| gain["what"] == "reading large files");
    let reading = reading.unwrap_or_else(|| panic!("nothing is predicted: {plan:#}"));
    let risks = plan["risks"].to_string();
    let is_warned = risks.contains("No gain in reading large files");
    assert_eq!(is_warned, title == "one bus", "{risks}");

    board.make_array(&disks, &plan).unwrap();
    let run = board.bench(READING, Some(MOUNTED_AT)).unwrap();
    let measured = run["results"][0]["bytes_per_second"]["value"].as_f64();
    board.take_back().unwrap();
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
