//! `rubus plan`: what a recipe would do. Changes nothing.

use std::path::PathBuf;

use clap::Args;
use rubus_command::places::{say, say_as_it_is};
use rubus_command::{Exit, General, Json, Terminal};
use rubus_host::process::programs::shell_line;
use rubus_vocabulary::verb::{MISTAKE, Page};

use super::image;
use super::planning::{self, wish};
use rubus_change::plan::Plan;
use rubus_change::text::render;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-plan",
    statuses: &[
        (0, "the recipe can be applied"),
        (1, "a check failed; the plan says which"),
        MISTAKE,
    ],
    examples: &[(
        "rubus plan zswap max-pool-percent=25",
        "Show what the recipe would change here.",
    )],
};

/// Show what a recipe would do, without changing anything.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The recipe (see `rubus recipes`), or one of your own, ending in .toml
    pub recipe: String,
    /// Options of the recipe, such as max-pool-percent=25 (see `rubus recipes RECIPE`)
    #[arg(value_name = "OPTION=VALUE", value_parser = wish)]
    pub wishes: Vec<(String, String)>,
    /// Plan for a card's image instead of this machine (only desktop; as root)
    #[arg(long, value_name = "FILE")]
    pub image: Option<PathBuf>,
    #[command(flatten)]
    pub json: Json,
}

/// Shows what a recipe would do.
pub fn run(general: &General, arguments: &PlanArgs) -> anyhow::Result<Exit> {
    let plan = match &arguments.image {
        Some(file) => image::plan(general, &arguments.recipe, &arguments.wishes, file)?,
        None => planning::plan(general, &arguments.recipe, &arguments.wishes)?,
    };
    show(general, arguments, &plan)
}

/// The command that applies what was asked for.
fn apply_line(arguments: &PlanArgs) -> String {
    let wishes = arguments.wishes.iter();
    let mut words = vec!["rubus".into(), "apply".into(), arguments.recipe.clone()];
    words.extend(wishes.map(|(name, value)| format!("{name}={value}")));
    if let Some(image) = &arguments.image {
        words.extend(["--image".into(), image.display().to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shell_line("sudo", &words)
}

/// Shows a plan; the answer is no where something is in its way.
fn show(general: &General, arguments: &PlanArgs, plan: &Plan) -> anyhow::Result<Exit> {
    if arguments.json.wanted {
        say(&(serde_json::to_string_pretty(plan)? + "\n"))?;
    } else {
        say(&render(plan, Terminal::of(general).style()))?;
        if plan.obstacles().next().is_none() && !plan.is_empty() {
            let there = if general.machine.is_some() { ", on that machine" } else { "" };
            say(&format!("\nNothing was changed so far. To apply{there}:\n"))?;
            // A command that is broken over lines would be another command where it is pasted.
            say_as_it_is(&format!("  {}\n", apply_line(arguments)))?;
        }
    }
    Ok(match plan.obstacles().next() {
        None => Exit::Fine,
        Some(_) => Exit::AnswerIsNo,
    })
}
