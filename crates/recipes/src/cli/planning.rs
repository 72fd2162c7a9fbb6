//! A recipe by its name, and the plan that it makes of this machine or of a captured one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rubus_boot::medium::idle_boot_point;
use rubus_command::{General, World};
use rubus_host::clock;
use rubus_host::files::document;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::spelling::{nearest, no_such};

use super::facts::facts;
use crate::{Fault, Queries, Recipe, UserRecipe, Wishes};
use rubus_change::plan::Plan;

/// An option of a recipe as it is typed.
pub(super) fn wish(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as OPTION=VALUE, such as max-pool-percent=25".into()),
    }
}

/// The plan of a recipe, built in or in a file.
///
/// # Errors
/// An unknown recipe, wrong options, faults in the file.
pub(super) fn plan(
    general: &General,
    name: &str,
    wishes: &[(String, String)],
) -> anyhow::Result<Plan> {
    let wishes: Wishes = wishes.iter().cloned().collect::<BTreeMap<_, _>>();
    if name.ends_with(".toml") {
        return plan_of_own(general, name, &wishes);
    }
    let recipe = find(name)?;
    recipe.check_wishes(&wishes)?;
    let world = World::of(general)?;
    let (machine, look_at) = surveyed(&world, recipe, &wishes);
    let facts = facts(&world, &machine, &look_at)?;
    Ok(recipe.plan(&machine, &facts, &wishes, &clock::now_rfc3339())?)
}

/// The machine that a plan is for, and what the recipe wants to know of it. A boot partition that is mounted on demand is mounted
/// by a look into it, which a plan that reads it takes anyway: the survey has to come behind that look.
fn surveyed(world: &World, recipe: &Recipe, wishes: &Wishes) -> (Machine, Queries) {
    let machine = world.survey();
    let look_at = (recipe.look_at)(&machine, wishes);
    let is_read = look_at.paths.iter().any(|path| path.starts_with("/boot"));
    let is_live = matches!(world, World::Live(_));
    let idle = idle_boot_point(&machine).filter(|_| is_read && is_live);
    match idle.map(|point| world.files().list(Path::new(point))) {
        Some(Ok(_)) => {
            let machine = world.survey();
            let look_at = (recipe.look_at)(&machine, wishes);
            (machine, look_at)
        }
        Some(Err(_)) | None => (machine, look_at),
    }
}

/// The plan of a recipe that the user wrote.
fn plan_of_own(general: &General, path: &str, wishes: &Wishes) -> anyhow::Result<Plan> {
    let text = document::text(Path::new(path), document::MAX_LIST_BYTES)
        .with_context(|| format!("cannot read the recipe {path}"))?;
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
pub(super) fn saved(name: &str) -> anyhow::Result<Option<Plan>> {
    if crate::by_name(name).is_some() || !name.ends_with(".json") {
        return Ok(None);
    }
    let path = Path::new(name);
    let text = document::text(path, document::MAX_LIST_BYTES)
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

/// The built-in recipe of this name.
///
/// # Errors
/// When there is none, with the name that was probably meant.
pub(super) fn find(name: &str) -> anyhow::Result<&'static Recipe> {
    crate::by_name(name).with_context(|| no_recipe(name))
}

/// That there is none of this name: with the one that was probably meant, else with those that are about its words.
fn no_recipe(name: &str) -> String {
    let names: Vec<&str> = crate::ALL.iter().map(|recipe| recipe.name).collect();
    let told = no_such("recipe", name, &names);
    let about = about(name);
    if about.is_empty() || nearest(name, &names).is_some() {
        return format!("{told} (there are: {})", names.join(", "));
    }
    format!("{told}; about it: {}\nEach explained: rubus recipes NAME", about.join(", "))
}

/// The recipes whose words have one of these: "zram-swap" is about swap.
fn about(name: &str) -> Vec<&'static str> {
    let words = |text: &'static str| text.split(|c: char| !c.is_alphanumeric());
    let is_about = |recipe: &&Recipe| {
        let options = recipe.options.iter().map(|option| option.what);
        let mut texts = [recipe.title, recipe.guide.changes].into_iter().chain(options);
        texts.any(|text| words(text).any(|word| is_of(name, word)))
    };
    crate::ALL.iter().copied().filter(is_about).map(|recipe| recipe.name).collect()
}

/// Whether a typed name has a word. Short ones, as "to", say nothing.
fn is_of(name: &str, word: &str) -> bool {
    word.len() > 2 && name.split(['-', '_']).any(|part| part.eq_ignore_ascii_case(word))
}
