//! `rubus undo`: a change is taken back.

use anyhow::Context;
use clap::Args;
use rubus_command::messages::agreed;
use rubus_command::places::say;
use rubus_command::{Exit, General, message};
use rubus_host::Live;
use rubus_host::live::hands::LiveHands;
use rubus_vocabulary::verb::Page;

use super::CHANGED;
use super::changes::{all_of, has_none, must_be_live, open_store};
use super::way::{finish, moved_to, with_context};
use rubus_change::apply::{ASKED_FOR, Change, lying_on, obstacles, turn};
use rubus_change::plan::journal::Way;
use rubus_change::steps::is_running_root;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-undo",
    statuses: CHANGED,
    examples: &[("sudo rubus undo", "Show what would be undone, ask, and undo it.")],
};

/// Undo a change.
#[derive(Debug, Args)]
pub struct Undo {
    /// The change (see `rubus status`) [default: the last one]
    pub change: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Undoes the last change, or a named one.
pub fn run(general: &General, arguments: &Undo) -> anyhow::Result<Exit> {
    must_be_live(general, "undo")?;
    let named = arguments.change.as_deref();
    if has_none() && to_be_undone(&[], named, None)?.is_none() {
        return nothing();
    }
    let (store, _lock) = open_store()?;
    let (changes, lost) = all_of(&store)?;
    let Some(place) = to_be_undone(&changes, named, lost.as_deref())? else {
        return nothing();
    };
    let mut change = changes[place].clone();
    anyhow::ensure!(
        !change.plan.is_of_an_image(),
        "{} was made as an image from another one; to go back, use that image",
        change.name
    );
    // What stands in the middle of going back goes on, and is stopped where something is in the way.
    let in_the_way = match change.state.way {
        Way::Apply => obstacles(&change, &changes[..place], &Live::new()),
        Way::Undo => Vec::new(),
    };
    if !in_the_way.is_empty() {
        message!("{}", cannot_be_undone(&change.name, &in_the_way));
        return Ok(Exit::AnswerIsNo);
    }
    if !general.quiet {
        message!("Undoing {}: {}", change.name, change.plan.title);
    }
    let stays = moved_to(&change.plan)
        .filter(|root| is_running_root(root, &Live::new()))
        .map(|root| stays_behind(&root.title, &change));
    if let Some(words) = &stays {
        message!("\n{words}");
    }
    if !agreed(arguments.yes, "Put everything back as it was?")? {
        return Ok(Exit::AnswerIsNo);
    }
    let hands = &mut LiveHands::new();
    with_context(general, |context| turn(&mut change, Way::Undo, ASKED_FOR, hands, context))??;
    finish(general, &mut change, hands)
}

fn nothing() -> anyhow::Result<Exit> {
    say("There is nothing to undo.\n")?;
    Ok(Exit::Fine)
}

/// What has to be known before a move is undone while its root runs.
fn stays_behind(title: &str, change: &Change) -> String {
    format!(
        "This system runs from {title}. Everything that was written since the move ({}) is there and nowhere else: documents, \
         installed packages, settings. After the restart the old root runs as it was then, and does not have it. Copy what you \
         need to another disk first. Nothing on {title} is deleted.",
        change.plan.made
    )
}

/// Which of the changes is undone: the last one that is not, or the named one; none where all are. `lost` says what is known of
/// a change whose journal is lost.
fn to_be_undone(
    changes: &[Change],
    named: Option<&str>,
    lost: Option<&str>,
) -> anyhow::Result<Option<usize>> {
    let Some(named) = named else {
        let last = changes.iter().rposition(|change| !change.is_undone());
        return match (last, lost) {
            (None, Some(lost)) => Err(anyhow::anyhow!("{lost}")),
            (last, _) => Ok(last),
        };
    };
    let found = changes.iter().position(|change| change.name == named);
    let place =
        found.with_context(|| format!("there is no change '{named}'; see `rubus status`"))?;
    anyhow::ensure!(!changes[place].is_undone(), "{named} is undone already");
    let above = lying_on(&changes[place], &changes[place + 1..]);
    let order = above.iter().map(|change| change.name.as_str());
    let order: Vec<String> =
        order.chain([named]).map(|name| format!("`rubus undo {name}`")).collect();
    match above.first() {
        None => Ok(Some(place)),
        Some(_) => anyhow::bail!(
            "{} builds on {named}, so nothing was undone; undo in this order: {}",
            above.iter().map(|change| change.name.as_str()).collect::<Vec<_>>().join(", "),
            order.join(", ")
        ),
    }
}

/// The message for a change that cannot be undone.
fn cannot_be_undone(name: &str, obstacles: &[String]) -> String {
    let list: Vec<String> = obstacles.iter().map(|why| format!("  - {why}")).collect();
    format!(
        "rubus: cannot undo {name}; nothing was undone:\n{}\nFix this, then run `rubus undo` again.",
        list.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::applied;

    #[test]
    fn a_change_below_another_one_is_refused_with_the_order_that_works() {
        let (below, mut above) = (applied(), applied());
        above.name = "0002-example".into();
        let changes = [below, above];
        assert_eq!(to_be_undone(&changes, None, None).unwrap(), Some(1));
        let why = to_be_undone(&changes, Some("0001-example"), None).unwrap_err().to_string();
        let order = "`rubus undo 0002-example`, `rubus undo 0001-example`";
        assert!(why.contains("nothing was undone") && why.contains(order), "{why}");
    }

    #[test]
    fn a_lost_journal_is_not_called_nothing_to_undo() {
        assert_eq!(to_be_undone(&[], None, None).unwrap(), None);
        let lost = to_be_undone(&[], None, Some("its journal is lost")).unwrap_err();
        assert_eq!(lost.to_string(), "its journal is lost");
    }
}
