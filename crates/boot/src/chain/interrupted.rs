//! Words of the command line with which a start ends in a shell or in a rescue mode, as a repair leaves them behind.
//!
//! Source: initramfs-tools(7) and dracut.cmdline(7), `break`; kernel-command-line(7) of systemd.

use super::ChainFacts;
use super::kernel::has_initramfs;
use crate::cmdline_txt::{CmdlineTxt, Word};
use crate::config_txt::BootPath;
use crate::medium::Certainty;

const SHELLS: [&str; 6] = ["ash", "bash", "busybox", "dash", "sh", "zsh"];
const RESCUE_UNITS: [&str; 2] = ["emergency.target", "rescue.target"];

/// A word that keeps the board from coming up.
pub(super) struct Interruption {
    /// As it is written.
    pub(super) word: String,
    /// What it does, as a clause without its subject.
    pub(super) what: &'static str,
    pub(super) certainty: Certainty,
}

/// The first of these words that counts.
pub(super) fn by_word(facts: &ChainFacts, path: &BootPath) -> Option<Interruption> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline)?);
    if let Some(shell) = line.get("init").filter(|program| is_shell(program)) {
        return Some(Interruption {
            word: format!("init={shell}"),
            what: "starts a shell in place of the system",
            certainty: Certainty::Certain,
        });
    }
    let halts = |word: &Word<'_>| has_initramfs(facts, path) && halts_initramfs(*word);
    if let Some(word) = line.words().find(halts) {
        return Some(Interruption {
            word: word.written.into(),
            what: "ends the start in a shell of the initramfs",
            // Which of the two words is known there depends on who made it.
            certainty: Certainty::Likely,
        });
    }
    if facts.root.is_systemd == Some(false) {
        return None;
    }
    // The last one counts.
    let units = line.words().filter_map(|word| Some((word, unit_of(word)?)));
    let (word, unit) = units.last()?;
    RESCUE_UNITS.contains(&unit).then(|| Interruption {
        word: word.written.into(),
        what: "ends the start in a rescue shell",
        certainty: Certainty::Certain,
    })
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program.rsplit('/').next().unwrap_or_default())
}

fn halts_initramfs(word: Word<'_>) -> bool {
    let is_shell = word.name == "rdinit" && word.value.is_some_and(is_shell);
    is_shell || matches!(word.name, "break" | "rd.break")
}

/// The unit that systemd starts, where a word names one.
fn unit_of(word: Word<'_>) -> Option<&str> {
    match (word.name, word.value) {
        ("systemd.unit", unit) => unit,
        ("emergency" | "-b", None) => Some("emergency.target"),
        ("rescue" | "single" | "-s" | "s" | "S" | "1", None) => Some("rescue.target"),
        ("2" | "3" | "4", None) => Some("multi-user.target"),
        ("5", None) => Some("graphical.target"),
        _ => None,
    }
}
