//! `rubus recipes`, `plan`, `apply`, `undo`, `resume` and `status`: changing the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rubus_change::apply::{
    ASKED_FOR, ApplyContext, Change, ChangeError, ChangeStore, Ending, Left, differences,
};
use rubus_change::apply::{commit, give_away, go, left, lying_on, obstacles, turn};
use rubus_change::losses::{questions, questions_again, refresh_contents};
use rubus_change::on_trial;
use rubus_change::plan::journal::Way;
use rubus_change::plan::volume::Volume;
use rubus_change::plan::{Action, Plan};
use rubus_change::recipe::{self, Fault, UserRecipe, Wishes};
use rubus_change::steps::{LiveStepRunner, is_running_root};
use rubus_change::text::{render, went_back};
use rubus_host::live_hands::{LiveHands, Lock, lock, make_directories};
use rubus_host::{Live, clock};

use super::lost::{self, Lost, Taken};
use super::plans::{agreed, find, show};
use crate::args::{Apply, General, PlanArgs, Recipes, Resume, Undo};
use crate::changing::{confirm_losses, facts};
use crate::documents::{OptionDocument, RecipeDocument};
use crate::exit::Exit;
use crate::teller::Teller;
use rubus_command::places::{self, say};
use rubus_command::signals;
use rubus_command::{Terminal, World};

/// Lists the recipes, or explains one.
pub fn recipes(general: &General, recipes: &Recipes) -> anyhow::Result<Exit> {
    let style = Terminal::of(general).style();
    let one = recipes.name.as_deref().map(find).transpose()?;
    if recipes.json.wanted {
        let option = |option: &recipe::OptionSpec| OptionDocument {
            name: option.name,
            what: option.what,
            default: option.default,
        };
        let asked_for =
            recipe::ALL.iter().filter(|recipe| one.is_none_or(|one| one.name == recipe.name));
        let list = asked_for.map(|recipe| RecipeDocument {
            name: recipe.name,
            title: recipe.title,
            changes: recipe.guide.changes,
            needs: recipe.guide.needs,
            example: recipe.guide.example,
            options: recipe.options.iter().map(option).collect(),
        });
        let list: Vec<_> = list.collect();
        say(&(serde_json::to_string_pretty(&list)? + "\n"))?;
    } else if let Some(one) = one {
        say(&rubus_change::text::recipe(one, style))?;
    } else {
        say(&rubus_change::text::recipes(&recipe::ALL, style))?;
    }
    Ok(Exit::Fine)
}

/// Shows what a recipe would do.
pub fn plan(general: &General, arguments: &PlanArgs) -> anyhow::Result<Exit> {
    if let Some(file) = &arguments.image {
        return super::image::plan(general, arguments, file);
    }
    let plan = draw_up(general, &arguments.recipe, &arguments.wishes)?;
    show(general, arguments, &plan)
}

/// Applies a recipe, or a plan that was saved, after showing it.
pub fn apply(general: &General, arguments: &Apply) -> anyhow::Result<Exit> {
    if let (Some(file), Some(out)) = (&arguments.image, &arguments.to) {
        return super::image::apply(general, arguments, file, out);
    }
    must_be_live(general, "apply")?;
    let plan = match saved(&arguments.recipe)? {
        Some(mut plan) => {
            anyhow::ensure!(
                arguments.wishes.is_empty(),
                "a saved plan has its options already; make a new plan to change them"
            );
            anyhow::ensure!(
                !plan.is_of_an_image(),
                "{} is a plan for an image; `rubus apply {} --image FILE --to OUT` makes it",
                arguments.recipe,
                plan.recipe
            );
            refresh_contents(&mut plan, &Live::new());
            plan
        }
        None => draw_up(general, &arguments.recipe, &arguments.wishes)?,
    };
    if plan.is_empty() && plan.obstacles().next().is_none() {
        if let Some(words) = other_options(&plan, &all_known()?.0) {
            eprintln!("{words}");
            return Ok(Exit::AnswerIsNo);
        }
    }
    let style = Terminal::of(general).style();
    if !general.quiet {
        say(&render(&plan, style))?;
    }
    if plan.obstacles().next().is_some() {
        eprintln!("rubus: nothing was changed, since a check failed");
        return Ok(Exit::AnswerIsNo);
    }
    if plan.is_empty() {
        return Ok(Exit::Fine);
    }
    let (store, _lock) = open_store()?;
    let hands = &mut LiveHands::new();
    let all = store.all(&Live::new())?;
    if let Some(tried) = all.iter().find(|change| change.state.is_on_trial()) {
        anyhow::bail!(
            "the change {} waits for its trial start; then `rubus verify` keeps it, or `rubus undo` reverts it",
            tried.name
        );
    }
    if let Some(half) = all.iter().find(|change| !change.state.is_finished) {
        anyhow::bail!(
            "the change {} is unfinished; finish it first with `rubus resume` or `rubus undo`",
            half.name
        );
    }
    let losses =
        confirm_losses(questions(&plan, &Live::new()), &arguments.i_will_lose_everything_on)?;
    if !agreed(arguments.yes, "Apply these steps?")? {
        return Ok(Exit::AnswerIsNo);
    }
    if let Some(directory) = &arguments.measure {
        super::before_after::before(general, directory, &plan.recipe)?;
    }
    let mut change = store.begin(plan, losses, &clock::now_rfc3339(), hands)?;
    finish(general, &mut change, hands)
}

/// Undoes the last change, or a named one.
pub fn undo(general: &General, arguments: &Undo) -> anyhow::Result<Exit> {
    must_be_live(general, "undo")?;
    let (store, _lock) = open_store()?;
    let (changes, lost) = all_of(&store)?;
    let place = to_be_undone(&changes, arguments.change.as_deref(), lost.as_deref())?;
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
        eprintln!("{}", cannot_be_undone(&change.name, &in_the_way));
        return Ok(Exit::AnswerIsNo);
    }
    if !general.quiet {
        eprintln!("Undoing {}: {}", change.name, change.plan.title);
    }
    let stays = moved_to(&change.plan)
        .filter(|root| is_running_root(root, &Live::new()))
        .map(|root| stays_behind(&root.title, &change));
    if let Some(words) = &stays {
        eprintln!("\n{words}");
    }
    if !agreed(arguments.yes, "Put everything back as it was?")? {
        return Ok(Exit::AnswerIsNo);
    }
    let hands = &mut LiveHands::new();
    with_context(general, |context| turn(&mut change, Way::Undo, ASKED_FOR, hands, context))??;
    finish(general, &mut change, hands)
}

/// The root that a plan moves the system to.
fn moved_to(plan: &Plan) -> Option<&Volume> {
    plan.steps.iter().find_map(|step| match &step.action {
        Action::KeepJournal(step) => Some(&step.on),
        _ => None,
    })
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

/// All changes, with what was written down about them on other roots that they have, and with those whose journal is lost
/// here and was found on another root. The text says what is known of a lost journal that was not found.
fn all_of(store: &ChangeStore) -> anyhow::Result<(Vec<Change>, Option<String>)> {
    let mut changes = store.all(&Live::new())?;
    let lost = lost::seek(&changes, Taken::Yes)?;
    let mut not_found = None;
    let mut is_new = false;
    match lost {
        Some(lost) if lost.found.is_empty() => not_found = Some(lost.words),
        Some(lost) => {
            eprintln!("{}", lost.words);
            changes = store.all(&Live::new())?;
        }
        None => {}
    }
    let mut step_runner = LiveStepRunner::default();
    for change in &changes {
        is_new |= step_runner.catch_up(change, &mut LiveHands::new())?;
    }
    if is_new {
        changes = store.all(&Live::new())?;
    }
    Ok((changes, not_found))
}

/// All changes as whichever root knows most of each; nothing is written. Another root is looked at only where this one
/// does not know the end, or something is not as it knows it, or where the journal is lost here: the text says so.
pub(super) fn all_known() -> anyhow::Result<(Vec<Change>, Option<Lost>)> {
    let live = Live::new();
    let mut changes = ChangeStore::at(places::changes()).all(&live)?;
    let mut step_runner = LiveStepRunner::default();
    for i in 0..changes.len() {
        let is_certain = changes[i].state.is_finished
            && differences(&changes[i], &changes[i + 1..], &live).is_empty();
        if is_certain {
            continue;
        }
        if let Some(known) = step_runner.as_told_elsewhere(&changes[i], &LiveHands::new()) {
            changes[i] = known;
        }
    }
    let lost = lost::seek(&changes, Taken::No)?;
    changes.extend(lost.iter().flat_map(|lost| lost.found.clone()));
    changes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((changes, lost))
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

/// Goes on with what was interrupted.
pub fn resume(general: &General, arguments: &Resume) -> anyhow::Result<Exit> {
    must_be_live(general, "resume")?;
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

fn draw_up(general: &General, name: &str, wishes: &[(String, String)]) -> anyhow::Result<Plan> {
    let wishes: Wishes = wishes.iter().cloned().collect::<BTreeMap<_, _>>();
    if name.ends_with(".toml") {
        return draw_up_own(general, name, &wishes);
    }
    let recipe = find(name)?;
    let world = World::of(general)?;
    let machine = world.survey();
    let look_at = (recipe.look_at)(&machine, &wishes);
    let facts = facts(&world, &machine, &look_at)?;
    Ok(recipe.plan(&machine, &facts, &wishes, &clock::now_rfc3339())?)
}

/// The plan of a recipe that the user wrote.
fn draw_up_own(general: &General, path: &str, wishes: &Wishes) -> anyhow::Result<Plan> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the recipe {path}"))?;
    let at = |fault: Fault| format!("{path}:{}: {}", fault.line, fault.reason);
    let recipe = UserRecipe::parse(&text).map_err(|faults| {
        let lines: Vec<String> = faults.into_iter().map(at).collect();
        anyhow::anyhow!("the recipe cannot be used:\n{}", lines.join("\n"))
    })?;
    let world = World::of(general)?;
    let machine = world.survey();
    let fault = |fault: Fault| anyhow::anyhow!(at(fault));
    let look_at = recipe.look_at(&machine, wishes).map_err(fault)?;
    let facts = facts(&world, &machine, &look_at)?;
    let made = clock::now_rfc3339();
    recipe.plan(&machine, &facts, wishes, &made).map_err(fault)
}

/// A plan in a file, where the name is that of one.
fn saved(name: &str) -> anyhow::Result<Option<Plan>> {
    if recipe::by_name(name).is_some() || !name.ends_with(".json") {
        return Ok(None);
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the plan {}", path.display()))?;
    let plan: Plan = serde_json::from_str(&text).with_context(|| {
        format!("{} is not a plan (`rubus plan RECIPE --json` makes one)", path.display())
    })?;
    anyhow::ensure!(
        plan.format == rubus_change::plan::FORMAT,
        "{} has format {}, and this program knows {}; make the plan again",
        path.display(),
        plan.format,
        rubus_change::plan::FORMAT
    );
    Ok(Some(plan))
}

/// Which of the changes is undone: the last one that is not, or the named one. `lost` says what is known of a change whose
/// journal is lost.
fn to_be_undone(
    changes: &[Change],
    named: Option<&str>,
    lost: Option<&str>,
) -> anyhow::Result<usize> {
    let Some(named) = named else {
        let last = changes.iter().rposition(|change| !change.is_undone());
        return last.with_context(|| lost.unwrap_or("there is nothing to undo").to_string());
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
        None => Ok(place),
        Some(_) => anyhow::bail!(
            "{} builds on {named}, so nothing was undone; undo in this order: {}",
            above.iter().map(|change| change.name.as_str()).collect::<Vec<_>>().join(", "),
            order.join(", ")
        ),
    }
}

/// What is said of a plan with nothing to do, where the same recipe is applied with other options alone: applying again
/// does not change them. A recipe may be applied several times, to each disk or image once.
fn other_options(plan: &Plan, changes: &[Change]) -> Option<String> {
    let is_applied = |change: &&Change| {
        change.state.is_finished
            && change.state.way == Way::Apply
            && change.plan.recipe == plan.recipe
    };
    let applied: Vec<&Change> = changes.iter().filter(is_applied).collect();
    if applied.iter().any(|change| differing(plan, change).is_empty()) {
        return None;
    }
    let last = applied.last()?;
    let name = &last.name;
    Some(format!(
        "rubus: {name} is applied already, and applying {} again does not change its options ({}); nothing was changed.\n\
         To change them: `rubus undo {name}`, start the machine again, then apply it with the new ones.",
        plan.recipe,
        differing(plan, last).join(", ")
    ))
}

/// The options of a plan that a change was applied with otherwise, with both values.
fn differing(plan: &Plan, change: &Change) -> Vec<String> {
    let then = |name: &String| change.plan.options.get(name);
    plan.options
        .iter()
        .filter_map(|(name, value)| Some((name, value, then(name)?)))
        .filter(|(_, value, then)| value != then)
        .map(|(name, value, then)| format!("{name}={value} instead of {then}"))
        .collect()
}

/// What is said where something is in the way of going back.
fn cannot_be_undone(name: &str, obstacles: &[String]) -> String {
    let list: Vec<String> = obstacles.iter().map(|why| format!("  - {why}")).collect();
    format!(
        "rubus: cannot undo {name}; nothing was undone:\n{}\nFix this, then run `rubus undo` again.",
        list.join("\n")
    )
}

/// The store, for this program alone.
fn open_store() -> anyhow::Result<(ChangeStore, Lock)> {
    // The reader of a pipe may end; a change that has begun goes on.
    signals::survive_closed_pipes();
    let directory: PathBuf = places::changes();
    let hands = &mut LiveHands::new();
    make_directories(hands, &directory)?;
    let held = lock(&directory.join("lock"))?;
    let held = held.context("another rubus is changing this machine; wait for it to end")?;
    Ok((ChangeStore::at(directory), held))
}

fn with_context<T>(
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
fn finish(general: &General, change: &mut Change, hands: &mut LiveHands) -> anyhow::Result<Exit> {
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
            Ok(match left.found.is_empty() {
                true => Exit::Fine,
                false => Exit::AnswerIsNo,
            })
        }
        Ok(Ending::RolledBack { why }) => {
            let left = left(change, &Live::new());
            let now = went_back(&left, change.plan.needs_boot);
            eprintln!("{}", teller.went_back(&why, &now));
            Ok(match left.found.is_empty() {
                true => Exit::RolledBack,
                false => Exit::RollBackFailed,
            })
        }
        Err(error @ ChangeError::UndoFailed { .. }) => {
            eprintln!(
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

/// A change is made to this machine and not to a recorded one; a plan can be made for both.
pub(super) fn must_be_live(general: &General, verb: &str) -> anyhow::Result<()> {
    match &general.machine {
        None => Ok(()),
        Some(path) => anyhow::bail!(
            "{verb} needs the running machine, and {} is a captured one: leave out --machine; of changes, \
             `rubus plan` alone works on a capture",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use rubus_change::fixture::plans::small_plan;
    use rubus_host::rehearsal::Rehearsal;

    use super::*;

    fn applied() -> Change {
        let machine = &mut Rehearsal::new().directory("/changes");
        let change = ChangeStore::at("/changes").begin(small_plan(), Vec::new(), "now", machine);
        let mut change = change.unwrap();
        change.state.is_finished = true;
        change
    }

    #[test]
    fn an_applied_recipe_with_other_options_is_refused_with_words() {
        let (change, mut plan) = (applied(), small_plan());
        let said = |plan: &Plan, changes: &[Change]| other_options(plan, changes);
        assert_eq!(said(&plan, &[]), None);
        assert_eq!(said(&plan, std::slice::from_ref(&change)), None);
        plan.options.insert("size".into(), "30".into());
        let words = said(&plan, std::slice::from_ref(&change)).unwrap();
        assert!(words.contains("0001-example is applied already"), "{words}");
        assert!(words.contains("size=30 instead of 20"), "{words}");
        let mut undone = applied();
        undone.state.way = Way::Undo;
        assert_eq!(said(&plan, &[undone]), None);
        // Applied twice, once with just these.
        let mut same = applied();
        same.plan.options.clone_from(&plan.options);
        assert_eq!(said(&plan, &[same, change]), None);
    }

    #[test]
    fn a_change_below_another_one_is_refused_with_the_order_that_works() {
        let (below, mut above) = (applied(), applied());
        above.name = "0002-example".into();
        let changes = [below, above];
        assert_eq!(to_be_undone(&changes, None, None).unwrap(), 1);
        let why = to_be_undone(&changes, Some("0001-example"), None).unwrap_err().to_string();
        let order = "`rubus undo 0002-example`, `rubus undo 0001-example`";
        assert!(why.contains("nothing was undone") && why.contains(order), "{why}");
    }

    #[test]
    fn a_lost_journal_is_not_called_nothing_to_undo() {
        let said = |lost| to_be_undone(&[], None, lost).unwrap_err().to_string();
        assert_eq!(said(None), "there is nothing to undo");
        assert_eq!(said(Some("its journal is lost")), "its journal is lost");
    }
}
