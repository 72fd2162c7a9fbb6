//! The answers of `rubus verify` as text.

use crate::plan::verify::{Answer, PromiseState};

use super::{COLUMNS, marked};
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, clean, hang};
use rubus_vocabulary::next_step::NextStep;

/// A change whose promises were looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<'a> {
    /// "0003-zswap".
    pub name: &'a str,
    /// What it does.
    pub title: &'a str,
    /// What is not right with the change itself, in words: half done, or finished from another root.
    pub remarks: &'a [String],
    /// An answer for each promise.
    pub answers: &'a [Answer],
    /// What else was seen, as a name and words.
    pub besides: &'a [(String, String)],
}

/// What to do next: what is broken comes before what cannot be seen, and that before what comes true later.
pub fn next(changes: &[Verified<'_>], has_half_undone: bool) -> NextStep {
    if has_half_undone {
        let words = "a change is half undone, and nothing of it can be looked at before";
        return NextStep::command(&["sudo", "rubus", "resume"], words);
    }
    let first = |wanted: PromiseState| {
        let mut changes = changes.iter();
        changes.find(|change| change.answers.iter().any(|answer| answer.standing == wanted))
    };
    if let Some(change) = first(PromiseState::Broken) {
        let words = "which step is no longer as it was applied";
        return NextStep::command(&["sudo", "rubus", "status", change.name], words);
    }
    let again = |change: &Verified<'_>, words| {
        NextStep::command(&["sudo", "rubus", "verify", change.name], words)
    };
    if let Some(change) = first(PromiseState::Unknown) {
        return again(change, "root sees what others may not");
    }
    if let Some(change) = first(PromiseState::AfterStart) {
        return again(change, "restart the machine first");
    }
    NextStep::by_hand(if changes.is_empty() {
        "nothing: no change is applied"
    } else {
        "nothing: everything holds that was promised"
    })
}

/// The changes with their promises.
pub fn verified(changes: &[Verified<'_>], style: Style) -> String {
    if changes.is_empty() {
        return "No recipe is applied on this machine, so nothing is promised.\n".into();
    }
    let mut lines = Vec::new();
    for (i, change) in changes.iter().enumerate() {
        if i > 0 {
            lines.push(String::new());
        }
        lines.extend(one(change, style));
    }
    lines.join("\n") + "\n"
}

fn one(change: &Verified<'_>, style: Style) -> Vec<String> {
    let mut lines = vec![style.paint(Tone::Strong, &clean(change.name))];
    lines.extend(hang("  ", &clean(change.title), COLUMNS));
    for remark in change.remarks {
        lines.extend(hang("  ! ", &clean(remark), COLUMNS));
    }
    for answer in change.answers {
        let (mark, tone) = match answer.standing {
            PromiseState::Holds => ("ok    ", Tone::Good),
            PromiseState::AfterStart => ("later ", Tone::Warn),
            PromiseState::Broken => ("NO    ", Tone::Bad),
            PromiseState::Unknown => ("?     ", Tone::Warn),
        };
        let what = hang("        ", &bind_units(&clean(&answer.what)), COLUMNS);
        lines.extend(marked(what, &format!("  {}", style.paint(tone, mark))));
        let found = match answer.standing {
            PromiseState::AfterStart => format!("after the next start; now: {}", answer.found),
            _ => answer.found.clone(),
        };
        let found = hang("        ", &bind_units(&clean(&found)), COLUMNS);
        lines.extend(found.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    for (name, words) in change.besides {
        lines.extend(hang(&format!("  {}: ", clean(name)), &bind_units(&clean(words)), COLUMNS));
    }
    lines.extend(hang("  ", &summary(change.answers), COLUMNS));
    lines
}

/// The answer to all promises in a sentence.
fn summary(answers: &[Answer]) -> String {
    let count = |standing| answers.iter().filter(|answer| answer.standing == standing).count();
    let (holds, broken, unknown) =
        (count(PromiseState::Holds), count(PromiseState::Broken), count(PromiseState::Unknown));
    let later = count(PromiseState::AfterStart);
    let of = answers.len();
    if of == 0 {
        return "It promises nothing that can be looked at.".into();
    }
    if holds == of {
        return match of {
            1 => "What was promised holds.".into(),
            _ => format!("All {of} promises hold."),
        };
    }
    let parts = [
        (holds, "holds", "hold"),
        (later, "comes true after the next start", "come true after the next start"),
        (broken, "does not hold", "do not hold"),
        (unknown, "cannot be seen", "cannot be seen"),
    ];
    let parts = parts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }));
    let parts: Vec<String> = parts.collect();
    format!("Of {of} promises, {}.", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_mark_and_its_finding() {
        let answer = |what: &str, standing, found: &str| Answer {
            what: what.into(),
            standing,
            found: found.into(),
        };
        let answers = [
            answer(
                "pages are compressed before they are swapped",
                PromiseState::Holds,
                "/sys/module/zswap/parameters/enabled is Y",
            ),
            answer(
                "the root filesystem is btrfs on the USB disk",
                PromiseState::AfterStart,
                "ext4 from /dev/mmcblk0p2",
            ),
            answer(
                "no swap lies on the SD card",
                PromiseState::Broken,
                "on mmcblk0: /var/swap, 105 MB, 0 B used, priority -2",
            ),
            answer(
                "what lies on it is compressed",
                PromiseState::Unknown,
                "cannot look into /: only root may; run it as root",
            ),
        ];
        let besides = [("zswap".to_string(), "on, nothing stored yet".to_string())];
        let remarks = ["It is half done: `rubus resume` goes on.".to_string()];
        let change = |answers, besides, remarks| Verified {
            name: "0003-desktop",
            title: "Move the root filesystem to a USB disk.",
            remarks,
            answers,
            besides,
        };
        let all = [change(&answers, &besides, &remarks), change(&answers[..1], &[], &[])];
        insta::assert_snapshot!(verified(&all, Style::PLAIN));
        assert!(verified(&[], Style::PLAIN).contains("nothing is promised"));
    }
}
