//! The way of a change to its end, forwards or back, told to the user.

use anyhow::Context;
use rubus_command::places::say;
use rubus_command::{Exit, General, Terminal, message, signals};
use rubus_host::live::hands::LiveHands;
use rubus_host::{Live, clock};

use super::changes::{all_of, open_store};
use super::teller::Teller;
use rubus_change::apply::{ApplyContext, Change, ChangeError, Ending, Left, commit, go, left};
use rubus_change::on_trial;
use rubus_change::plan::volume::Volume;
use rubus_change::plan::{Action, Plan};
use rubus_change::steps::{LiveStepRunner, is_running_root};
use rubus_change::text::went_back;

/// The root that a plan moves the system to.
pub(super) fn moved_to(plan: &Plan) -> Option<&Volume> {
    plan.steps.iter().find_map(|step| match &step.action {
        Action::KeepJournal(step) => Some(&step.on),
        _ => None,
    })
}

/// Keeps a change whose trial was passed: does the steps that have waited for it.
pub(super) fn keep(general: &General, name: &str) -> anyhow::Result<(Change, Ending)> {
    let (store, _lock) = open_store()?;
    let (changes, _) = all_of(&store)?;
    let found = changes.into_iter().find(|change| change.name == name);
    let mut change = found.with_context(|| format!("{name} is not there any more"))?;
    let hands = &mut LiveHands::new();
    let ended = with_context(general, |context| {
        commit(&mut change, hands, context)?;
        go(&mut change, hands, context)
    })?;
    let ended = ended
        .with_context(|| format!("{name} is unfinished; fix that, then run `rubus resume`"))?;
    Ok((change, ended))
}

/// Takes a step on the way of a change, with what it needs of this machine.
pub(super) fn with_context<T>(
    general: &General,
    act: impl FnOnce(&mut ApplyContext<'_>) -> T,
) -> anyhow::Result<T> {
    with_teller(general, act).map(|(done, _)| done)
}

/// The same, with the one who has told of it.
fn with_teller<T>(
    general: &General,
    act: impl FnOnce(&mut ApplyContext<'_>) -> T,
) -> anyhow::Result<(T, Teller)> {
    let mut teller = Teller::new(Terminal::of(general), general.quiet);
    let mut step_runner = LiveStepRunner::new(signals::cancel_flag()?);
    let done = act(&mut ApplyContext {
        now: &clock::now_rfc3339,
        tell: &mut |event| teller.tell(event),
        step_runner: &mut step_runner,
    });
    teller.close();
    Ok((done, teller))
}

/// Goes to the end of the way and says how it ended.
pub(super) fn finish(
    general: &General,
    change: &mut Change,
    hands: &mut LiveHands,
) -> anyhow::Result<Exit> {
    let (ended, teller) = with_teller(general, |context| go(change, hands, context))?;
    let name = &change.name;
    match ended {
        Ok(Ending::Applied) => {
            say(&rubus_change::text::applied(name, &change.plan))?;
            Ok(Exit::Fine)
        }
        Ok(Ending::OnTrial) => {
            say(&on_trial::next(change))?;
            Ok(Exit::Fine)
        }
        Ok(Ending::Undone) => {
            let left = left(change, &Live::new());
            say(&undone(change, &left, &Live::new()))?;
            Ok(if left.found.is_empty() { Exit::Fine } else { Exit::AnswerIsNo })
        }
        Ok(Ending::RolledBack { why }) => {
            let left = left(change, &Live::new());
            let now = went_back(&left, change.plan.needs_boot);
            message!("{}", teller.went_back(&why, &now));
            Ok(if left.found.is_empty() { Exit::RolledBack } else { Exit::RollBackFailed })
        }
        Err(error @ ChangeError::UndoFailed { .. }) => {
            message!(
                "rubus: {error}\nrubus: {name} is unfinished; fix that, then run `rubus resume`"
            );
            Ok(Exit::RollBackFailed)
        }
        Err(error) => Err(error)
            .with_context(|| format!("{name} is unfinished; fix that, then run `rubus resume`")),
    }
}

/// What is said in the end of going back.
fn undone(change: &Change, left: &Left, live: &Live) -> String {
    let running = moved_to(&change.plan).filter(|root| is_running_root(root, live));
    let instead = running.map(|root| {
        format!(
            "the next start is from the old root. This system still runs from {}: what is written now stays there. Restart: \
             `sudo reboot`.",
            root.title
        )
    });
    rubus_change::text::undone(&change.name, left, instead.as_deref())
}
