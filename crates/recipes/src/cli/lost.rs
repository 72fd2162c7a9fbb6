//! A change whose journal is lost on the root that runs: what the boot partition and the other root say of it.

use rubus_command::places;
use rubus_draw::text::capitalized;
use rubus_host::Live;
use rubus_host::live::hands::LiveHands;

use rubus_change::apply::Change;
use rubus_change::other_roots::{Search, Traces, lost_journal};
use rubus_change::steps::LiveStepRunner;

/// Whether what is found is written to this root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is written.
    Yes,
    /// It is only looked at.
    No,
}

/// A lost journal.
pub(super) struct Lost {
    /// The changes that another root tells of, oldest first.
    pub(super) found: Vec<Change>,
    /// What the user should know.
    pub(super) words: String,
}

/// Looks for the journal that is lost here on the other root; nothing where none of the `known` changes' traces is without
/// its journal.
///
/// # Errors
/// When what was found cannot be written to this root.
pub(super) fn seek(known: &[Change], taken: Taken) -> anyhow::Result<Option<Lost>> {
    let Some(traces) = lost_journal(known, &Live::new()) else {
        return Ok(None);
    };
    if !rustix::process::geteuid().is_root() {
        let why = ["only root can read it; run this again with sudo".to_string()];
        return Ok(Some(Lost { found: Vec::new(), words: not_found(&traces, &why) }));
    }
    let mut step_runner = LiveStepRunner::default();
    let hands = &mut LiveHands::new();
    let is_taken = taken == Taken::Yes;
    let search = step_runner.seek_lost_journal(&traces, &places::changes(), is_taken, hands)?;
    Ok(Some(Lost { words: words(&traces, &search, taken), found: search.found }))
}

fn words(traces: &Traces, search: &Search, taken: Taken) -> String {
    if search.found.is_empty() {
        return not_found(traces, &search.why_not);
    }
    let names: Vec<&str> = search.found.iter().map(|change| change.name.as_str()).collect();
    let what = match taken {
        Taken::Yes => "It was copied from there",
        Taken::No => "This is what it says; `rubus undo` and `rubus resume` go on from there",
    };
    format!(
        "This root has lost the journal of {}. {} has a copy. {what}. Changes made since the move were recorded on this root \
         only: they stay in force, and Rubus no longer knows them.",
        names.join(" and "),
        capitalized(&search.on)
    )
}

/// What is said where the other root gave nothing: the way by hand.
fn not_found(traces: &Traces, why_not: &[String]) -> String {
    let kept = traces.kept.display();
    let line = traces.kept.with_file_name("cmdline.txt");
    let line = line.display();
    let looked = match why_not {
        [] => String::new(),
        why_not => format!(" Looked for a copy on the other root: {}.", why_not.join("; ")),
    };
    format!(
        "there is no journal in {}, but {kept} shows that a change moved the root: this root has lost its journal.{looked}\n\
         To go back by hand, start the old root, which has a copy: `sudo cp {kept} {line}`, then `sudo reboot`. There, \
         `rubus undo` takes back the rest",
        places::changes().display()
    )
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    fn traces() -> Traces {
        let files = FakeFiles::new()
            .file("/boot/firmware/cmdline.txt", "root=c")
            .file("/boot/firmware/cmdline.txt.before-rubus", "root=a")
            .file("/boot/firmware/cmdline.txt.before-rubus-2", "root=b");
        lost_journal(&[], &files).unwrap()
    }

    #[test]
    fn a_lost_journal_that_is_nowhere_names_the_way_by_hand() {
        let search = Search {
            why_not: vec!["no disk has PARTUUID=b; plug it in".into()],
            ..Search::default()
        };
        let said = words(&traces(), &search, Taken::Yes);
        let way = "`sudo cp /boot/firmware/cmdline.txt.before-rubus-2 /boot/firmware/cmdline.txt`";
        assert!(said.contains(way), "{said}");
        assert!(said.contains("plug it in."), "{said}");
    }
}
