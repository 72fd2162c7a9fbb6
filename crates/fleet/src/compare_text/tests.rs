//! Comparisons of fleets as text.

use super::*;
use crate::compare::tests::{between, document};
use rubus_vocabulary::fact::Fact;

fn check_width(text: &str) {
    for line in text.lines() {
        assert!(width(line) <= COLUMNS, "{line}");
    }
}

#[test]
fn a_fleet_before_and_after() {
    let mut before = document(&[1.0; 20]);
    let mut slower: Vec<f64> = (0..20).map(|at| 1.0 + f64::from(at % 5) * 0.01).collect();
    slower[6] = 2.4;
    slower[9] = 0.45;
    let mut after = document(&slower);
    for board in &mut after.boards[..18] {
        board.runs[0].machine.system.kernel_release = Fact::known("6.12.99".into(), "a test");
    }
    after.boards[6].runs[0].target.filesystem = Some("vfat".into());
    before.boards[2].runs.clear();
    before.boards[2].failure =
        Some("ssh: connect to host 10.0.0.3 port 22: Connection refused".into());
    for board in &mut after.boards[11..14] {
        board.name += "-new";
    }
    after.boards[15].runs[0].suite = "journal".into();
    let text = render(&between(&before, &after), Style::PLAIN);
    check_width(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_fleet_that_became_slower_has_a_line_per_figure() {
    let text = render(&between(&document(&[1.0; 12]), &document(&[2.2; 12])), Style::PLAIN);
    check_width(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn two_boards_that_did_not_change() {
    let one = document(&[1.0; 2]);
    let text = render(&between(&one, &one), Style::PLAIN);
    check_width(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn names_cannot_take_over_the_terminal() {
    let mut before = document(&[1.0; 3]);
    before.boards[1].name = "a\u{1b}[2Jb".into();
    before.boards[2].failure = Some("\u{1b}]0;x\u{7}".into());
    let mut after = before.clone();
    after.boards[1].name = "c\u{1b}[2J".into();
    let text = render(&between(&before, &after), Style::PLAIN);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text}");
}
