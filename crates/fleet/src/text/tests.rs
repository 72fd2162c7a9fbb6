//! Fleets as text.

use super::*;
use crate::figures::tests::{of_boards, run};
use crate::figures::{self as numbers};
use rubus_vocabulary::result::Run;

fn boards<'a>(names: &'a [String], failed: &[(usize, &'a str)]) -> Vec<Board<'a>> {
    let one = |(number, name): (usize, &'a String)| Board {
        name,
        failure: failed.iter().find(|(of, _)| *of == number).map(|(_, why)| *why),
    };
    names.iter().enumerate().map(one).collect()
}

fn check_width(text: &str) {
    for line in text.lines() {
        assert!(width(line) <= COLUMNS, "{line}");
    }
}

#[test]
fn a_fleet_of_runs() {
    let names: Vec<String> = (1..=8).map(|at| format!("pi{at:02}")).collect();
    let failed = [
        (2, "ssh: connect to host 10.0.0.3 port 22: Connection refused"),
        (
            5,
            "no answer within 60 s; is its shell waiting for something, or its disk stuck, or \
             its network gone?",
        ),
    ];
    let boards = boards(&names, &failed);
    let mut runs: Vec<Run> = (0..8).map(|at| run(1.0 + f64::from(at) * 0.005)).collect();
    runs[3] = run(2.2);
    let mut all = of_boards(&runs);
    all.retain(|of| ![2, 5].contains(&of.board));
    let table = numbers::table(&all);
    let short: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = numbers::outliers(&table, &short);
    let text = heading("Checkup", &boards, Style::PLAIN)
        + &figures(&table, &found, &boards, Style::PLAIN)
        + &outliers(&found, Style::PLAIN);
    check_width(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn settings_are_counted_where_usual_and_named_where_not() {
    let value = |value: Option<&str>, boards: &[&str]| Value {
        value: value.map(str::to_string),
        boards: boards.iter().map(|name| name.to_string()).collect(),
    };
    let mut all = vec![
        Difference {
            what: "kernel".into(),
            values: vec![
                value(Some("6.12.47+rpt-rpi-v8"), &["a", "b", "c"]),
                value(Some("6.6.31"), &["d"]),
                value(None, &["e", "f", "g", "h", "i", "j", "k"]),
            ],
        },
        Difference {
            what: "a fact with a name that is longer than the column".into(),
            values: ["v", "w", "x", "y", "z"].map(|name| value(Some(name), &[name])).to_vec(),
        },
    ];
    let text = differences(&all, Style::PLAIN);
    check_width(&text);
    insta::assert_snapshot!(text);
    all.resize(20, all[0].clone());
    assert!(differences(&all, Style::PLAIN).contains("and 4 more settings"));
    assert_eq!(differences(&[], Style::PLAIN), "");
}

#[test]
fn a_fleet_of_surveys_and_of_advice() {
    let names: Vec<String> =
        ["attic", "cellar-with-a-very-long-name", "shed"].map(String::from).into();
    let boards = boards(&names, &[(1, "Host key verification failed.")]);
    let surveyed = |board| Surveyed {
        board,
        model: "Raspberry Pi 4 Model B Rev 1.4".into(),
        kernel: "6.12.47+rpt-rpi-v8".into(),
        memory: "3.71 GiB".into(),
        disks: "mmcblk0 (SC64G), sda (Extreme SSD)".into(),
        findings: 3,
    };
    let advised = |board, to_do: &str| Advised {
        board,
        now: "mmcblk0 (SD card)".into(),
        now_s: Some(2.1),
        best: "usb3-ssd (a SATA disk on USB 3)".into(),
        best_s: 0.2,
        is_measured: board == 0,
        to_do: to_do.into(),
    };
    let text = surveys(&[surveyed(0), surveyed(2)], &boards, Style::PLAIN)
        + &advice(
            "desktop",
            &[
                advised(0, "rubus plan desktop device=/dev/sda"),
                advised(2, "Nothing: it is as fast as it gets."),
            ],
            &boards,
            Style::PLAIN,
        );
    check_width(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn without_enough_boards_no_outliers_are_looked_for() {
    let runs = [run(1.0), run(2.0)];
    let found = numbers::outliers(&numbers::table(&of_boards(&runs)), &["a", "b"]);
    let text = outliers(&found, Style::PLAIN);
    assert!(text.contains("needs three boards of one kind"), "{text}");
}
