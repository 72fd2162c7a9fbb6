//! Words that a repair leaves on the command line.

use super::*;

fn with(word: &str) -> Outcome {
    outcome(&board_with(word))
}

fn board_with(word: &str) -> ChainFacts {
    let mut board = board();
    board.partition.put("cmdline.txt", &format!("{} {word}\n", CMDLINE.trim_end()));
    board
}

#[test]
fn a_shell_or_a_rescue_mode_is_no_start() {
    let stops = Outcome::StopsAt(Stage::Init);
    for word in [
        "init=/bin/sh",
        "init=/usr/bin/bash",
        "break",
        "break=premount",
        "rd.break",
        "rdinit=/bin/sh",
        "single",
        "emergency",
        "systemd.unit=rescue.target",
        "5 1",
    ] {
        assert_eq!(with(word), stops, "{word}");
    }
    assert_eq!(
        why(&board_with("quiet systemd.unit=emergency.target")),
        "systemd.unit=emergency.target in cmdline.txt ends the start in a rescue shell"
    );
}

#[test]
fn words_that_only_look_like_it_start() {
    for word in [
        "init=/lib/systemd/systemd",
        "systemd.unit=multi-user.target",
        "single systemd.unit=multi-user.target",
        "1 5",
        "console=tty1",
        "emergency=no",
    ] {
        assert_eq!(with(word), Outcome::Starts, "{word}");
    }
}

#[test]
fn what_does_not_read_the_word_is_not_stopped_by_it() {
    let mut board = board_with("break");
    board.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!(outcome(&board), Outcome::Starts);
    let mut board = board_with("single");
    board.root.is_systemd = Some(false);
    assert_eq!(outcome(&board), Outcome::Starts);
}

#[test]
fn a_system_that_runs_with_the_word_is_not_understood() {
    let mut board = board_with("single");
    let line = board.partition.text("cmdline.txt").map(str::to_string);
    board.running = Some(Running {
        root: Some("/dev/mmcblk0p2".into()),
        command_line: line,
        ..Running::default()
    });
    assert_eq!(outcome(&board), Outcome::NotCertainAfter(Stage::Root));
}
