//! `rubus apply`: a plan is shown and, when the user agrees, done step by step.

use std::path::PathBuf;

use clap::Args;
use rubus_command::messages::agreed;
use rubus_command::places::say;
use rubus_command::{Exit, General, Terminal, message};
use rubus_host::live::hands::LiveHands;
use rubus_host::{Live, clock};
use rubus_vocabulary::verb::Page;

use super::changes::{all_known, must_be_live, open_store};
use super::consent::confirm_losses;
use super::planning::{self, wish};
use super::way::finish;
use super::{CHANGED, Outside, image};
use rubus_change::apply::Change;
use rubus_change::losses::{questions, refresh_contents};
use rubus_change::plan::Plan;
use rubus_change::plan::journal::Way;
use rubus_change::text::render;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-apply",
    statuses: CHANGED,
    examples: &[
        (
            "sudo rubus apply zswap",
            "Show the steps, ask, and do them. `sudo rubus undo` takes them back.",
        ),
        (
            "sudo rubus apply desktop --image card.img --to new.img",
            "Change a card's image on a PC; card.img is only read.",
        ),
    ],
};

/// Show a recipe or a saved plan, ask, and apply it.
///
/// Each step is journaled first, so that it can be undone, and resumed after a power cut.
#[derive(Debug, Args)]
pub struct Apply {
    /// The recipe, one of your own, ending in .toml, or a plan saved by
    /// `rubus plan RECIPE --json`, ending in .json
    #[arg(value_name = "RECIPE|PLAN")]
    pub recipe: String,
    /// Options of the recipe, such as max-pool-percent=25 (see `rubus recipes RECIPE`)
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// Allow everything on a disk that the plan overwrites to be lost; takes its serial number
    /// (repeatable)
    #[arg(long, value_name = "SERIAL")]
    pub i_will_lose_everything_on: Vec<String>,
    /// Measure a directory with the suite quick before the change, so that `rubus verify --measure`
    /// can show the gain; without DIR, /
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    pub measure: Option<PathBuf>,
    /// Make a new image from a card's image instead of changing this machine (only desktop); FILE
    /// is only read
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["measure", "i_will_lose_everything_on"])]
    pub image: Option<PathBuf>,
    /// The new image; it must not exist, and gets its name only when it is complete
    #[arg(long, value_name = "OUT", requires = "image")]
    pub to: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Applies a recipe, or a plan that was saved, after showing it.
pub fn run(general: &General, arguments: &Apply, outside: &dyn Outside) -> anyhow::Result<Exit> {
    if let (Some(file), Some(out)) = (&arguments.image, &arguments.to) {
        let wanted = image::Wanted {
            recipe: &arguments.recipe,
            wishes: &arguments.wishes,
            out,
            is_agreed: arguments.yes,
        };
        return image::apply(general, &wanted, file);
    }
    must_be_live(general, "apply")?;
    let plan = match planning::saved(&arguments.recipe)? {
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
        None => planning::plan(general, &arguments.recipe, &arguments.wishes)?,
    };
    if plan.is_empty() && plan.obstacles().next().is_none() {
        if let Some(words) = other_options(&plan, &all_known()?.0) {
            message!("{words}");
            return Ok(Exit::AnswerIsNo);
        }
    }
    let style = Terminal::of(general).style();
    if !general.quiet {
        say(&render(&plan, style))?;
    }
    if plan.obstacles().next().is_some() {
        message!("rubus: nothing was changed, since a check failed");
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
        outside.measure_before(directory, &plan.recipe)?;
    }
    let mut change = store.begin(plan, losses, &clock::now_rfc3339(), hands)?;
    finish(general, &mut change, hands)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fixture::applied;
    use rubus_change::fixture::plans::small_plan;

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
}
