//! What the user agrees to: the loss of what is on each disk.

use std::io::IsTerminal;

use anyhow::Context;
use rubus_command::prompt;
use rubus_vocabulary::refused::Refused;

use rubus_change::apply::GivenAway;
use rubus_change::losses::Question;

/// The user's word for the loss of what is on each disk that is asked about: from `given`, else typed. Gives what is to be
/// written down.
///
/// # Errors
/// [`Refused`] when a disk is not there or in use, or its loss is not confirmed.
pub(super) fn confirm_losses(
    questions: impl Iterator<Item = Result<Question, String>>,
    given: &[String],
) -> anyhow::Result<Vec<GivenAway>> {
    questions
        .map(|question| {
            let question = question.map_err(Refused)?;
            let is_given = given.iter().any(|words| question.is_confirmed_by(words));
            if is_given || is_typed(&question)? {
                return Ok(question.consent());
            }
            Err(Refused(question.refusal()).into())
        })
        .collect()
}

/// Whether the user types the confirmation; no without a terminal.
fn is_typed(question: &Question) -> anyhow::Result<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Ok(false);
    }
    prompt!("{}", question.prompt());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the confirmation")?;
    Ok(question.is_confirmed_by(&answer))
}
