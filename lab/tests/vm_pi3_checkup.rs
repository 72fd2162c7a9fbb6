//! A whole checkup on an emulated Raspberry Pi 3, as an ordinary user, on an SD card whose speed is
//! known: the emulator lets no more through.

use std::time::Duration;

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pi3_checkup";

/// A checkup takes at most 90 s on a disk that does 10 MB/s; this card is slower, and the emulated
/// processor is too.
const LIMIT: Duration = Duration::from_secs(400);

/// What the card lets through. Unlimited, it does about 6 MB/s on an emulated processor. Operations
/// are not limited: the emulated card counts each block of 512 bytes as one.
const CARD: Throttle = Throttle { bytes_per_second: 2_000_000, operations_per_second: 0 };

#[test]
fn checkup_of_a_throttled_card() {
    if !can_boot(TEST, Board::Pi3) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let options = Options { throttle_sd: Some(CARD), push: vec![rubus], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pi3, &options).unwrap();
    let free_before = free_bytes(&mut board);

    let text = board.must("rubus --json", "pi", LIMIT).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();

    let jobs = run["results"].as_array().unwrap();
    assert!(jobs.len() >= 8, "{} jobs", jobs.len());
    for name in ["sequential-write", "sequential-read"] {
        let rate = rate(&run, name);
        // Above the limit there is only the throttle's own bucket of a tenth of a second; far
        // below it, the emulated processor when it shares a busy machine.
        assert!((400_000.0..=2_200_000.0).contains(&rate), "{name}: {rate} bytes/s");
    }
    for job in jobs {
        let rate = job["bytes_per_second"]["value"].as_f64().unwrap();
        assert!(rate <= 2_300_000.0, "{}: {rate} bytes/s", job["job"]);
    }
    let written = run["bytes_written"].as_u64().unwrap();
    assert!(written > 0 && written <= free_before / 10, "{written} of {free_before}");
    assert_eq!(run["machine"]["board"]["model"]["value"], "Raspberry Pi 3 Model B");

    leaves_a_history_a_page_and_nothing_else(&mut board);
    board.switch_off().unwrap();
}

fn leaves_a_history_a_page_and_nothing_else(board: &mut Session) {
    let history = board.must("rubus history", "pi", LIMIT).unwrap();
    assert!(history.contains("/home/pi"), "{history}");
    let files = board.must("find . -type f | sort", "pi", LIMIT).unwrap();
    for file in files.lines() {
        assert!(file.starts_with("./.local/share/rubus/"), "left behind: {files}");
    }
    assert!(files.contains(".html"), "no page: {files}");
}

fn rate(run: &Value, job: &str) -> f64 {
    let jobs = run["results"].as_array().unwrap();
    let found = jobs.iter().find(|result| result["job"] == job);
    let found = found.unwrap_or_else(|| panic!("no job {job}"));
    found["bytes_per_second"]["value"].as_f64().unwrap()
}

fn free_bytes(board: &mut Session) -> u64 {
    let command = "df --output=avail -B1 /home/pi | tail -n 1";
    let text = board.must(command, "pi", LIMIT).unwrap();
    text.trim().parse().unwrap()
}
