//! `rubus bench cpu compression` and `linpack` for real: ratios against the original programs, results that are right.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::program::Home;
use crate::common::{can_run, take_turns};
use rubus_lab::devices::needs::Need;
use serde_json::Value;

/// Pieces of 128 KiB that the bench takes all of.
const PIECES: u32 = 24;
const PIECE_BYTES: usize = 128 << 10;
const SECTOR_BYTES: usize = 4096;

/// Files of one piece each that shrink more and less.
fn fill(directory: &Path) {
    for number in 0..PIECES {
        let mut text = String::new();
        let mut state = u64::from(number) + 1;
        while text.len() < PIECE_BYTES {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // The more digits are drawn, the less is there to find.
            let digits = 10_u64.pow(1 + number % 6);
            let _ = write!(text, "pipe {:06} ", (state >> 33) % digits);
        }
        text.truncate(PIECE_BYTES);
        std::fs::write(directory.join(format!("{number:02}")), text).expect("it is written");
    }
}

/// The ratio as btrfs would have it of what a command makes of each file.
fn ratio_by(directory: &Path, command: &[&str]) -> f64 {
    let mut stored = 0;
    for number in 0..PIECES {
        let file = directory.join(format!("{number:02}"));
        let output =
            Command::new(command[0]).args(&command[1..]).arg(&file).output().expect("it runs");
        assert!(output.status.success(), "{command:?}");
        let sectors = output.stdout.len().next_multiple_of(SECTOR_BYTES);
        stored += if sectors < PIECE_BYTES { sectors } else { PIECE_BYTES };
    }
    (PIECES as usize * PIECE_BYTES) as f64 / stored as f64
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn ratios_are_those_of_the_original_programs() {
    let needs = [
        Need::Program("python3", "python3"),
        Need::Program("zstd", "zstd"),
        Need::Program("lz4", "lz4"),
    ];
    let _turn = take_turns();
    if !can_run("ratios_are_those_of_the_original_programs", &needs) {
        return;
    }
    let (home, data) = (Home::new(), tempfile::tempdir().expect("a directory"));
    fill(data.path());
    let place = data.path().display().to_string();
    let mut words = vec!["bench", "cpu", "compression", "--data", &place];
    words.extend(["--methods", "zlib:6,zstd:3,lz4", "--seconds", "0.05"]);
    words.extend(["--no-history", "--json", "-"]);
    let answer = home.run(&words);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    let run = run.get(0).unwrap_or(&run);
    let samples = &run["processor"]["compression"]["samples"];
    assert_eq!(samples[0]["source"]["kind"], "files", "{answer}");
    assert_eq!(samples[0]["pieces"], PIECES, "{answer}");
    assert_eq!(samples[1]["source"]["kind"], "corpus");
    for sample in samples.as_array().expect("a list") {
        let rows = sample["rows"].as_array().expect("a list");
        assert_eq!(rows.len(), 6, "{answer}");
        for row in rows {
            assert_eq!(row["wrong"], 0, "{row}");
            let rate = &row["one"]["compress_bytes_per_second"];
            assert!(number(&rate["value"]) > 1e5, "{row}");
        }
    }
    let ours = |name: &str| {
        let rows = samples[0]["rows"].as_array().expect("a list");
        let is_it = |row: &&Value| row["method"] == name && row["cut"] == "extents";
        number(&rows.iter().find(is_it).expect("it is there")["ratio"]["value"])
    };
    // As btrfs does it: a page at a time, with a flush after each.
    let program = "import os, sys, zlib; d = open(sys.argv[1], 'rb').read(); z = zlib.compressobj(6); n = os.sysconf('SC_PAGE_SIZE'); \
                   p = [z.compress(d[i:i + n]) + z.flush(zlib.Z_SYNC_FLUSH) for i in range(0, len(d), n)]; \
                   sys.stdout.buffer.write(b''.join(p) + z.flush())";
    let zlib = ratio_by(data.path(), &["python3", "-c", program]);
    assert!(zlib > 1.5, "{zlib}: too little shrinks to tell anything");
    // Of the same code the same; a version may find one match more or less.
    let near = |ours: f64, theirs: f64, share: f64| (ours / theirs - 1.0).abs() < share;
    assert!(near(ours("zlib:6"), zlib, 0.005), "{} {zlib}", ours("zlib:6"));
    let zstd = ratio_by(data.path(), &["zstd", "-3", "-q", "-c"]);
    assert!(near(ours("zstd:3"), zstd, 0.03), "{} {zstd}", ours("zstd:3"));
    // Another program for the same format.
    let lz4 = ratio_by(data.path(), &["lz4", "-1", "-q", "-c"]);
    assert!(near(ours("lz4"), lz4, 0.08), "{} {lz4}", ours("lz4"));
}

#[test]
fn equations_are_solved_rightly_and_each_time_the_same() {
    let _turn = take_turns();
    let home = Home::new();
    let mut words = vec!["bench", "cpu", "linpack", "--unknowns", "500"];
    words.extend(["--blocks", "32,96", "--stability", "3s", "--seconds", "0.05"]);
    words.extend(["--no-history", "--json", "-"]);
    let answer = home.run(&words);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    let run = run.get(0).unwrap_or(&run);
    let linpack = &run["processor"]["linpack"];
    assert_eq!(linpack["sweep"].as_array().map(Vec::len), Some(2));
    for rated in [&linpack["all"], &linpack["stability"]["all"]] {
        assert_eq!((&rated["failed"], &rated["different"]), (&0.into(), &0.into()));
        assert_eq!(rated["n"], 500);
        // None is exact, and none that is right comes near the threshold.
        let residual = number(&rated["residual"]);
        assert!(residual > 0.0 && residual < 1.0, "{residual}");
        assert!(number(&rated["flops_per_second"]["value"]) > 1e6);
    }
    assert!(number(&linpack["stability"]["all"]["times"]) >= 2.0);
    assert_eq!(linpack["stability"]["is_interrupted"], false);
}

#[test]
fn what_is_unavailable_is_said() {
    let _turn = take_turns();
    let home = Home::new();
    let answer = home.run(&["bench", "cpu", "compression", "--methods", "lzo"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("licence"), "{answer}");
    let answer = home.run(&["bench", "cpu", "linpack", "--unknowns", "100000"]);
    assert_eq!(answer.status, Some(2), "{answer}");
    assert!(answer.stderr.contains("--unknowns"), "{answer}");
    assert_eq!(home.runs(), 0);
}
