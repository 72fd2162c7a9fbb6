//! The text of `rubus boot`: one sentence, what to change, the links, and the ladder of media. At most 80 columns.

use rubus_boot::chain::{Link, Outcome, Stage};
use rubus_boot::medium::Certainty;
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, capitalized, clean, hang, pad_right, shorten, wrap};

use super::Start;
use super::ladder::{Reached, Rung};

/// Where the words of a link begin.
const LABEL_COLUMNS: usize = 15;
/// Lines of the whole, where not all is asked for.
const MAX_LINES: usize = 24;
const MAX_NOTES: usize = 3;
/// Words of a first sentence.
const MAX_WORDS: usize = 25;
/// How an outcome begins that does not follow from what was read.
const UNCERTAIN: &str = "It is not certain whether it starts. The trace ends";

/// The text, ending in a line feed; with sources and all notes where `all` is asked for.
pub fn render(start: &Start, all: bool, style: Style) -> String {
    let mut lines = head(start, style);
    lines.push(String::new());
    for link in start.chain.links() {
        lines.extend(link_lines(link, all, style));
    }
    let taken = lines.len();
    let notes_beside = |rungs: &[String]| {
        let room = MAX_LINES.saturating_sub(taken + rungs.len());
        note_lines(start, all, room, style.columns)
    };
    let mut rungs = ladder_lines(start, all, style.columns);
    let mut notes = notes_beside(&rungs);
    let whole = ladder_lines(start, true, style.columns);
    let notes_left = notes_beside(&whole);
    // The ends of the rungs say what to type; a note is worth more.
    if taken + whole.len() <= MAX_LINES && notes_left.len() >= notes.len() {
        (rungs, notes) = (whole, notes_left);
    }
    lines.extend(rungs);
    lines.extend(notes);
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The outcome, for people who know no stage by its name; without the last full stop.
pub fn first_line(start: &Start) -> String {
    let chain = &start.chain;
    let is_likely = chain.certainty() == Certainty::Likely;
    let it = if is_likely { "It probably" } else { "It" };
    match (chain.outcome(), chain.deciding()) {
        (Outcome::Starts, _) => match (chain.condition(), chain.likely().filter(|_| is_likely)) {
            (Some(condition), _) => format!("{it} starts if {condition}"),
            (None, Some(link)) => {
                to_check(&format!("{it} starts; check {}", link.stage), &link.found)
            }
            (None, None) => format!("{it} starts"),
        },
        (Outcome::StopsAt(stage), Some(link)) => {
            let why = link.stop.as_ref().map_or(&link.found, |stop| &stop.why);
            format!("{it} stops at {stage}: {why}")
        }
        (Outcome::NotCertainAfter(stage), Some(link)) => {
            format!("{UNCERTAIN} after {stage}: {}", link.found)
        }
        (Outcome::StopsAt(stage), None) => format!("{it} stops at {stage}"),
        (Outcome::NotCertainAfter(stage), None) => format!("{UNCERTAIN} after {stage}"),
    }
}

/// The answer and the one thing to check. What was found there stands in its link below, so it is left out where the sentence
/// would be long.
fn to_check(answer: &str, found: &str) -> String {
    let sentence = format!("{answer} ({found})");
    if sentence.split_whitespace().count() <= MAX_WORDS { sentence } else { answer.into() }
}

fn head(start: &Start, style: Style) -> Vec<String> {
    let tone = match start.chain.outcome() {
        Outcome::Starts => Tone::Good,
        Outcome::StopsAt(_) => Tone::Bad,
        Outcome::NotCertainAfter(_) => Tone::Warn,
    };
    let sentence = format!("{}.", clean(&first_line(start)));
    let mut lines: Vec<String> = wrap(&bind_units(&sentence), style.columns)
        .into_iter()
        .map(|line| style.paint(tone, &line))
        .collect();
    lines.extend(next_step::lines(&super::next(start), style));
    lines
}

fn mark(certainty: Certainty, is_stop: bool) -> &'static str {
    match (is_stop, certainty) {
        (true, _) => "x ",
        (false, Certainty::Certain) => "  ",
        (false, Certainty::Likely) => "~ ",
        (false, Certainty::NotKnown) => "? ",
    }
}

fn link_lines(link: &Link, all: bool, style: Style) -> Vec<String> {
    let label = capitalized(label(link.stage));
    let is_stop = link.stop.is_some();
    let first = format!("{}{}", mark(link.certainty, is_stop), pad_right(&label, LABEL_COLUMNS));
    let found = clean(&link.found);
    if !all {
        let room = style.columns - 2 - LABEL_COLUMNS;
        return vec![format!("{first}{}", shorten(&found, room))];
    }
    let mut lines = hang(&first, &bind_units(&found), style.columns);
    let since = link.since.map_or(String::new(), |date| format!(", since {date}"));
    let source = format!("from {}{since}", clean(&link.source));
    let indent = " ".repeat(2 + LABEL_COLUMNS);
    let source = hang(&indent, &source, style.columns).into_iter();
    lines.extend(source.map(|line| style.paint(Tone::Faint, &line)));
    lines
}

fn label(stage: Stage) -> &'static str {
    match stage {
        Stage::Firmware => "board",
        Stage::Medium => "medium",
        Stage::Partition => "partition",
        Stage::Settings => "settings",
        Stage::Kernel => "kernel",
        Stage::Initramfs => "initramfs",
        Stage::CommandLine => "command line",
        Stage::Root => "root",
        Stage::Init => "first program",
        Stage::Mounts => "mounts",
    }
}

fn ladder_lines(start: &Start, all: bool, columns: usize) -> Vec<String> {
    let is_alone = start.rungs.len() < 2;
    if is_alone {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    let longest = start.rungs.iter().map(|rung| rung.name.len()).max().unwrap_or_default();
    for rung in &start.rungs {
        let first = format!("  {} ", pad_right(&clean(&rung.name), longest + 1));
        let words = format!("{}: {}", reached(rung), clean(&rung.reason));
        if all {
            lines.extend(hang(&first, &words, columns));
        } else {
            let room = columns.saturating_sub(first.len());
            lines.push(format!("{first}{}", shorten(&words, room)));
        }
    }
    lines
}

fn reached(rung: &Rung) -> String {
    match rung.reached {
        Reached::Starts => "starts".into(),
        Reached::StopsBehind(Stage::Medium) => "no boot disk".into(),
        Reached::StopsBehind(stage) => format!("stops after {stage}"),
        Reached::NotCertainBehind(stage) => format!("not certain after {stage}"),
    }
}

/// What does not end the start; what already stands in the first line is not said twice.
fn note_lines(start: &Start, all: bool, room: usize, columns: usize) -> Vec<String> {
    let said = first_line(start);
    let notes = start.chain.notes().filter(|(_, note)| !said.contains(&note.what));
    let notes: Vec<(&Link, String)> = notes
        .map(|(link, note)| (link, format!("{}. Change: {}.", note.what, note.remedy)))
        .collect();
    let shown = if all { notes.len() } else { notes.len().min(MAX_NOTES) };
    let mut lines = Vec::new();
    for (_, words) in notes.iter().take(shown) {
        let more = hang("Note: ", &capitalized(&clean(words)), columns);
        if !all && lines.len() + more.len() + 2 > room {
            break;
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(more);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_checked_stays_within_the_words_of_a_sentence() {
        let answer = "It probably starts; check the initramfs";
        assert_eq!(to_check(answer, "initramfs8"), format!("{answer} (initramfs8)"));
        let words_left = MAX_WORDS - answer.split(' ').count();
        let longest = vec!["word"; words_left].join(" ");
        assert_eq!(to_check(answer, &longest), format!("{answer} ({longest})"));
        assert_eq!(to_check(answer, &format!("{longest} more")), answer);
    }
}
