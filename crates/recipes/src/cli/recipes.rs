//! `rubus recipes`: which recipes there are, and what each needs.

use clap::Args;
use rubus_command::places::say;
use rubus_command::{Exit, General, Json, Terminal};
use rubus_vocabulary::verb::{PLAIN, Page};
use serde::Serialize;

use super::planning::find;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-recipes",
    statuses: PLAIN,
    examples: &[
        ("rubus recipes", "List the recipes."),
        ("rubus recipes desktop", "Explain one: what it changes, its options."),
    ],
};

/// List the recipes for changing this machine, or explain one.
///
/// With a name: what the recipe changes, what it needs, its options and an example.
#[derive(Debug, Args)]
pub struct Recipes {
    /// Explain this recipe [default: list all]
    #[arg(value_name = "RECIPE")]
    pub name: Option<String>,
    #[command(flatten)]
    pub json: Json,
}

/// A recipe for a change.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecipeDocument {
    /// Its name: lower case with hyphens.
    pub name: &'static str,
    /// What it does for its user, as a sentence.
    pub title: &'static str,
    /// What it changes on the machine, as a sentence.
    pub changes: &'static str,
    /// What it needs, as a sentence.
    pub needs: &'static str,
    /// A command that shows its plan.
    pub example: &'static str,
    /// Its options.
    pub options: Vec<OptionDocument>,
}

/// An option of a recipe.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptionDocument {
    /// Its name: lower case with hyphens.
    pub name: &'static str,
    /// What it is, with its range.
    pub what: &'static str,
    /// Its default; null: the recipe decides.
    pub default: Option<&'static str>,
}

/// Lists the recipes, or explains one.
pub fn run(general: &General, recipes: &Recipes) -> anyhow::Result<Exit> {
    let style = Terminal::of(general).style();
    let one = recipes.name.as_deref().map(find).transpose()?;
    if recipes.json.wanted {
        let option = |option: &crate::OptionSpec| OptionDocument {
            name: option.name,
            what: option.what,
            default: option.default,
        };
        let asked_for =
            crate::ALL.iter().filter(|recipe| one.is_none_or(|one| one.name == recipe.name));
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
        say(&crate::text::recipe(one, style))?;
    } else {
        say(&crate::text::recipes(&crate::ALL, style))?;
    }
    Ok(Exit::Fine)
}
