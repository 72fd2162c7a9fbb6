//! What to do next about a fleet.

use rubus_vocabulary::next_step::NextStep;

use crate::figures::Outliers;
use crate::text::{Advised, Board, Surveyed};

/// What a fleet gave besides failures.
pub enum Gave<'a> {
    /// Figures of runs, with the boards that stand apart.
    Runs(&'a Outliers),
    /// The results of surveys.
    Surveys(&'a [Surveyed]),
    /// The advice for each board.
    Advice(&'a [Advised]),
}

/// A board without a result first, then the one to look at. `on` says how ssh reaches each board, in the order of the boards.
pub fn next(boards: &[Board<'_>], on: &[String], gave: &Gave<'_>) -> NextStep {
    let failed = boards.iter().find_map(|board| Some((board.name, board.failure?)));
    if let Some((name, failure)) = failed {
        let why = failure.lines().next().unwrap_or_default().trim_end_matches('.');
        return NextStep::by_hand(&format!("see why {name} gave no result: {why}"));
    }
    let look = |board: usize, verb: &str, words: String| {
        let on = on.get(board).map_or("", String::as_str);
        NextStep::command(&["rubus", verb, "--on", on], &words)
    };
    match gave {
        Gave::Runs(found) => {
            let slow = found.outliers.iter().filter(|one| one.ratio.value < 1.0);
            let slowest = slow.min_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
            let place = slowest.and_then(|one| boards.iter().position(|b| b.name == one.board));
            match (slowest, place) {
                (Some(one), Some(place)) => {
                    let words = format!("why {} is slower than its kind", one.board);
                    look(place, "survey", words)
                }
                _ if found.comparisons == 0 => {
                    NextStep::by_hand("nothing: too few boards of a kind to hold beside each other")
                }
                _ => NextStep::by_hand("nothing: no board is slower than its kind"),
            }
        }
        Gave::Surveys(all) => match all.iter().max_by_key(|one| one.findings) {
            Some(most) if most.findings > 0 => {
                let name = boards.get(most.board).map_or("", |board| board.name);
                look(most.board, "survey", format!("the findings of {name}, which has most"))
            }
            _ => NextStep::by_hand("nothing: no board has a finding"),
        },
        Gave::Advice(all) => {
            let gain = |one: &&Advised| one.now_s.map_or(0.0, |now| now / one.best_s);
            let changes = all.iter().filter(|one| one.now != one.best);
            match changes.max_by(|a, b| gain(a).total_cmp(&gain(b))) {
                Some(most) => {
                    let name = boards.get(most.board).map_or("", |board| board.name);
                    look(most.board, "advise", format!("{name} gains most; with risks and needs"))
                }
                None => NextStep::by_hand("nothing: every board works from its best place"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(board: usize, now_s: f64) -> Advised {
        Advised {
            board,
            now: "mmcblk0".into(),
            now_s: Some(now_s),
            best: "sda".into(),
            best_s: 1.0,
            is_measured: false,
            to_do: String::new(),
        }
    }

    #[test]
    fn what_failed_comes_first_and_then_the_board_that_gains_most() {
        let board = |name, failure| Board { name, failure };
        let on = ["pi01".to_string(), "pi@10.0.0.7".to_string()];
        let boards = [board("pi01", None), board("shed", None)];
        let all = [advised(0, 2.0), advised(1, 5.0)];
        let step = next(&boards, &on, &Gave::Advice(&all));
        let command = step.command.expect("a command").join(" ");
        assert_eq!(command, "rubus advise --on pi@10.0.0.7");
        let failed = [boards[0], board("shed", Some("Connection refused"))];
        let step = next(&failed, &on, &Gave::Advice(&all));
        assert_eq!(step.words, "see why shed gave no result: Connection refused");
    }
}
