//! The health of disks in words.

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{clean, hang, pad_right};

use super::{DiskHealth, POWER_SUPPLY, Word};
use rubus_machine::kernel_log::Cause;

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

    /// Its word for a reader: a disk that loses data by what is around it does not fail.
    fn state(&self) -> &'static str {
        let is_outside = self.cause.is_some_and(|cause| cause != Cause::Disk);
        match self.word {
            Word::Failing if self.disk == POWER_SUPPLY => "too weak",
            Word::Failing if is_outside => "losing data",
            Word::Failing | Word::WearingOut | Word::NotKnown | Word::Fine => self.word.words(),
        }
    }

    /// "losing data, probably because of the power supply: 3 resets of the USB device".
    pub fn sentence(&self) -> String {
        let cause = match self.cause {
            Some(cause) if self.disk != POWER_SUPPLY => {
                format!(", probably because of {}", cause.words())
            }
            Some(_) | None => String::new(),
        };
        format!("{}{cause}: {}", self.state(), self.evidence.join("; "))
    }
}

/// The health section of a survey: a state, the evidence and the fix for each disk. Identical entries are merged into one.
pub fn section(health: &[DiskHealth], style: Style) -> String {
    let mut text = format!("\n{}\n", style.paint(Tone::Strong, "Health"));
    let all = of_all(health);
    for one in all.as_ref().map_or(health, std::slice::from_ref) {
        for line in lines_of(one, style) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn of_all(health: &[DiskHealth]) -> Option<DiskHealth> {
    let (first, others) = health.split_first().filter(|(_, others)| !others.is_empty())?;
    let is_alike = |one: &DiskHealth| one.sentence() == first.sentence() && !one.needs_action();
    let are_alike = !first.needs_action() && others.iter().all(is_alike);
    are_alike.then(|| DiskHealth { disk: "all disks".into(), ..first.clone() })
}

fn lines_of(health: &DiskHealth, style: Style) -> Vec<String> {
    let first = format!("  {}", pad_right(&clean(&health.disk), LABEL_COLUMNS));
    let mut lines: Vec<String> = hang(&first, &clean(&health.sentence()), style.columns);
    let word = health.state();
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
