//! `rubus resume`: an interrupted change goes to the end of its way.

use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General};
use rubus_host::Live;
use rubus_host::live::hands::LiveHands;
use rubus_vocabulary::verb::Page;

use super::CHANGED;
use super::changes::{all_of, has_none, must_be_live, open_store};
use super::consent::confirm_losses;
use super::way::finish;
use rubus_change::apply::give_away;
use rubus_change::losses::questions_again;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-resume",
    statuses: CHANGED,
    examples: &[("sudo rubus resume", "Continue after a power cut.")],
};

/// Resume an interrupted change.
///
/// Continues in the direction it was going, forwards or back, which you confirmed at its start.
/// Asks again before overwriting a disk that may be a different one, or that was used since.
#[derive(Debug, Args)]
pub struct Resume {
    /// Allow everything on a disk that the change has yet to overwrite to be lost; takes the
    /// confirmation that the refusal names (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Do not ask for confirmation, as in `apply` and `undo`; a disk that may be a different one
    /// still needs its own
    #[arg(long, short)]
    pub yes: bool,
}

/// Continues what was interrupted.
pub fn run(general: &General, arguments: &Resume) -> anyhow::Result<Exit> {
    must_be_live(general, "resume")?;
    if has_none() {
        say("Nothing was interrupted.\n")?;
        return Ok(Exit::Fine);
    }
    let (store, _lock) = open_store()?;
    let mut exit = Exit::Fine;
    let mut is_any = false;
    let (changes, lost) = all_of(&store)?;
    for mut change in changes {
        if !change.state.is_finished {
            is_any = true;
            let hands = &mut LiveHands::new();
            let given = &arguments.i_will_lose_everything_on;
            for given in confirm_losses(questions_again(&change, &Live::new()), given)? {
                give_away(&mut change, given, hands)?;
            }
            exit = finish(general, &mut change, hands)?;
        }
    }
    match lost {
        Some(words) => anyhow::bail!(words),
        None if !is_any => say("Nothing was interrupted.\n")?,
        None => {}
    }
    Ok(exit)
}
