//! The line that says what to do next, alike in all verbs.

use rubus_vocabulary::next_step::NextStep;

use crate::quote::typed;
use crate::style::{Style, Tone};
use crate::text::{begins_with_command, bind_units, capitalized, clean, hang, width};

/// What the line begins with.
pub const TITLE: &str = crate::text::TO_DO;

/// "To do: rubus advise (it weighs every disk of this machine)".
pub fn lines(step: &NextStep, style: Style) -> Vec<String> {
    let Some(command) = &step.command else {
        return hang(TITLE, &bind_units(&sentence(step)), style.columns);
    };
    let command = clean(&typed(command));
    let reason = format!("({})", bind_units(&clean(&step.words)));
    // A command is not broken in the middle: pasted, its first line would be another command. A terminal that is too
    // narrow shows it on two lines, and copies it as one.
    let mut lines = if width(TITLE) + width(&command) <= style.columns {
        let bound = command.replace(' ', "\u{a0}");
        hang(TITLE, &format!("{bound} {reason}"), style.columns)
    } else {
        let mut lines = vec![format!("{TITLE}{command}")];
        lines.extend(hang(&" ".repeat(width(TITLE)), &reason, style.columns));
        lines
    };
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(&command, &style.paint(Tone::Strong, &command), 1);
    }
    lines
}

/// The same in one line, for markdown.
pub fn words(step: &NextStep) -> String {
    match &step.command {
        None => format!("{TITLE}{}", sentence(step)),
        Some(command) => format!("{TITLE}{} ({})", clean(&typed(command)), clean(&step.words)),
    }
}

/// The words as a sentence. A command at their beginning is typed as it is.
pub fn sentence(step: &NextStep) -> String {
    if begins_with_command(&step.words) {
        clean(&step.words)
    } else {
        clean(&capitalized(&step.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::fit;

    #[test]
    fn a_command_stays_in_one_line_and_its_reason_follows() {
        let command = ["rubus", "checkup", "/mnt/my disk"];
        let step = NextStep::command(&command, "stop other programs first, then measure again");
        let narrow = Style { columns: 40, ..Style::PLAIN };
        let lines = lines(&step, narrow);
        assert_eq!(lines[0], "To do: rubus checkup '/mnt/my disk'");
        assert!(lines[1..].join(" ").contains("(stop other programs first"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:?}");
        let narrower = Style { columns: 20, ..Style::PLAIN };
        let text = super::lines(&step, narrower).join("\n");
        assert_eq!(fit(&text, 20).lines().next(), Some("To do: rubus checkup '/mnt/my disk'"));
    }

    #[test]
    fn what_is_done_by_hand_is_a_sentence() {
        let step = NextStep::by_hand("nothing: it is fast enough.");
        assert_eq!(lines(&step, Style::PLAIN), ["To do: Nothing: it is fast enough"]);
        let step = NextStep::by_hand("sudo apt install example");
        assert_eq!(lines(&step, Style::PLAIN), ["To do: sudo apt install example"]);
    }
}
