//! The health of disks in words.

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{clean, hang, pad_right};

use super::{DiskHealth, Word};

/// Where the words begin, as in the survey's sections.
const LABEL_COLUMNS: usize = 14;
/// The first column of what belongs to a disk.
const INDENT: usize = LABEL_COLUMNS + 2;

impl Word {
    /// "wearing out".
    pub fn words(self) -> &'static str {
        match self {
            Word::Failing => "failing",
            Word::WearingOut => "wearing out",
            Word::NotKnown => "not known",
            Word::Fine => "fine",
        }
    }

    /// How it is painted.
    pub(crate) fn tone(self) -> Tone {
        match self {
            Word::Failing => Tone::Bad,
            Word::WearingOut => Tone::Warn,
            Word::NotKnown => Tone::Faint,
            Word::Fine => Tone::Good,
        }
    }
}

impl DiskHealth {
    /// Whether its owner has something to do.
    pub fn needs_action(&self) -> bool {
        self.fix.is_some()
    }

    /// "failing, probably the power supply: 3 resets of the USB device".
    pub fn sentence(&self) -> String {
        let cause =
            self.cause.map_or(String::new(), |cause| format!(", probably {}", cause.words()));
        format!("{}{cause}: {}", self.word.words(), self.evidence.join("; "))
    }
}

/// A section of a survey: each disk with its word, why, and what to do.
pub fn section(health: &[DiskHealth], style: Style) -> String {
    let mut text = format!("\n{}\n", style.paint(Tone::Strong, "Health"));
    for one in health {
        for line in lines_of(one, style) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn lines_of(health: &DiskHealth, style: Style) -> Vec<String> {
    let first = format!("  {}", pad_right(&clean(&health.disk), LABEL_COLUMNS));
    let mut lines: Vec<String> = hang(&first, &clean(&health.sentence()), style.columns);
    let word = health.word.words();
    if let Some(line) = lines.first_mut() {
        *line = line.replacen(word, &style.paint(health.word.tone(), word), 1);
    }
    let indent = " ".repeat(INDENT);
    let mut say = |words: &str| lines.extend(hang(&indent, &clean(words), style.columns));
    match health.suspects.as_slice() {
        [] => {
            if let Some(fix) = &health.fix {
                say(fix);
            }
            if let Some(command) = &health.command {
                say(command);
            }
        }
        suspects => {
            if health.word == Word::Failing {
                say("Copy your data now. Then try, in this order:");
            } else {
                say("Try, in this order:");
            }
            for (at, one) in suspects.iter().enumerate() {
                let command =
                    one.command.as_ref().map_or(String::new(), |line| format!(" `{line}`"));
                say(&format!(
                    "{}. {}: {}. {}{command}",
                    at + 1,
                    one.cause.words(),
                    one.evidence,
                    one.fix
                ));
            }
        }
    }
    lines
}

/// One line for each disk that its owner has to do something about, as a program says before its own work.
pub fn warnings(health: &[DiskHealth]) -> Vec<String> {
    let bad = health.iter().filter(|one| one.needs_action());
    bad.map(|one| {
        let fix = one.fix.as_deref().unwrap_or_default();
        clean(&format!("{} is {}. {fix}", one.disk, one.sentence()))
    })
    .collect()
}
