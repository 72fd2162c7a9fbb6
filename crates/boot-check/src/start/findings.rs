//! What a followed start adds to the findings of a survey: what needs the files of the boot partition.

use rubus_boot::chain::{Outcome, Stage, Subject};
use rubus_boot::medium::Certainty;
use rubus_machine::rules;
use rubus_vocabulary::rule_finding::{RuleFinding, Weight};

use super::Start;

/// What of a start endangers the next one or holds up an update, in the order of the links. What the firmware reads and what is
/// mounted are rules of the facts alone and stand there.
pub fn findings(start: &Start) -> Vec<RuleFinding> {
    let mut found = Vec::new();
    for (link, note) in start.chain.notes() {
        let Some((rule, weight, consequence)) = told(note.subject) else { continue };
        found.push(RuleFinding {
            rule: rule.into(),
            weight,
            about: link.stage.to_string(),
            evidence: note.what.clone(),
            read_from: link.source.clone(),
            consequence: consequence.into(),
            fix: format!("{}.", note.remedy),
            command: Some("rubus boot".into()),
            source: rules::beside(rule).into(),
        });
    }
    found.extend(next_start(start));
    found
}

/// The rule that a kind of note is told under, its weight, and what follows.
fn told(subject: Subject) -> Option<(&'static str, Weight, &'static str)> {
    match subject {
        Subject::OtherRoot => Some((
            "next-root-is-another",
            Weight::Danger,
            "The next start leads to another system than the one that runs now.",
        )),
        Subject::NoModules => Some((
            "kernel-without-modules",
            Weight::Danger,
            "Drivers that are no part of the kernel are missing: no network, and perhaps no login.",
        )),
        Subject::FilesDidNotStart => Some((
            "updated-boot-files-failed",
            Weight::Hint,
            "The board starts with the files before the update, without the fixes of the newer kernel.",
        )),
        Subject::UpdatesGoElsewhere => Some((
            "kernel-updates-go-elsewhere",
            Weight::Hint,
            "The board stays with its old kernel, whatever is updated, and its modules may be removed one day.",
        )),
        Subject::InitramfsInDoubt => Some((
            "initramfs-in-doubt",
            Weight::Hint,
            "If it was made again since this start, the machine does not come up after the next one.",
        )),
        Subject::OtherPartitionMounted | Subject::UpdatesDoNotReach | Subject::Other => None,
    }
}

/// The next start would stop, and nothing of the above says so.
fn next_start(start: &Start) -> Option<RuleFinding> {
    let Outcome::StopsAt(stage) = start.chain.outcome() else { return None };
    let link = start.chain.deciding()?;
    // From which medium the board starts may be a guess; what its files come to is none.
    let of_files = start.chain.links().iter();
    let mut of_files = of_files.filter(|one| (Stage::Settings..=stage).contains(&one.stage));
    let is_certain = of_files.all(|one| one.certainty == Certainty::Certain);
    let is_medium_certain = start.chain.certainty() == Certainty::Certain;
    let stop = link.stop.as_ref()?;
    let is_told = link.notes.iter().any(|note| note.what == stop.why);
    if !is_certain || is_told || stage < Stage::Settings {
        return None;
    }
    Some(RuleFinding {
        rule: "next-start-stops".into(),
        weight: Weight::Danger,
        about: stage.to_string(),
        evidence: stop.why.clone(),
        read_from: link.source.clone(),
        consequence: if is_medium_certain {
            "The machine does not come up after the next restart.".into()
        } else {
            "If it starts from this partition, as is likely, it does not come up after the next restart.".into()
        },
        fix: format!("{}.", stop.remedy),
        command: Some("rubus boot".into()),
        source: rules::beside("next-start-stops").into(),
    })
}
