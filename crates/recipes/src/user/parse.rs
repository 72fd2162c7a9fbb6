//! From the text of a user's recipe to the recipe, or to all its faults.

use toml::de::DeTable;

use super::UserRecipe;
use super::choice::{Choice, Kind, Part, parts};
use super::entries::{Entry, Texts, need, pledge, work};
use super::table::{Fault, Keys, Reading, did_you_mean};

pub(super) fn recipe(text: &str) -> Result<UserRecipe, Vec<Fault>> {
    let mut reading = Reading { text, faults: Vec::new() };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| reading.line(&span));
            let reason = error.message().to_string();
            return Err(vec![Fault { line, reason }]);
        }
    };
    let recipe = whole(table.get_ref(), &mut reading);
    if let Some(recipe) = &recipe {
        check_names(recipe, &mut reading);
    }
    match recipe {
        Some(recipe) if reading.faults.is_empty() => Ok(recipe),
        _ => {
            reading.faults.sort_by_key(|fault| fault.line);
            Err(reading.faults)
        }
    }
}

fn whole(table: &DeTable<'_>, reading: &mut Reading<'_>) -> Option<UserRecipe> {
    let mut keys = Keys::new(table, "the recipe", 1);
    let name = keys.must("name", reading);
    let title = keys.must("title", reading);
    let options = keys.named_tables("options", reading);
    let options = options.into_iter();
    let options: Vec<Choice> =
        options.filter_map(|(line, name, table)| choice(line, name, table, reading)).collect();
    let checks = keys.tables("check", reading).into_iter();
    let checks = checks
        .filter_map(|(line, table)| need(Keys::new(table, "a check", line), reading))
        .collect();
    let steps = keys.tables("step", reading).into_iter();
    let steps: Vec<_> =
        steps.filter_map(|(line, table)| work(Keys::new(table, "a step", line), reading)).collect();
    let promises = keys.tables("promise", reading).into_iter();
    let promises =
        promises.filter_map(|(line, table)| pledge(Keys::new(table, "a promise", line), reading));
    let promises = promises
        .map(|(mut entry, needs_boot)| {
            entry.extra = needs_boot.then(String::new);
            entry
        })
        .collect();
    let (notes, risks) = (keys.texts("notes", reading), keys.texts("risks", reading));
    let needs_boot = keys.flag("needs_boot", reading);
    keys.finish(reading);
    if steps.is_empty() && reading.faults.is_empty() {
        reading.fault(1, "the recipe has no [[step]]");
    }
    let name = name?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_name) {
        reading.fault(1, "a recipe's name has small letters, digits and hyphens, up to 40");
    }
    Some(UserRecipe {
        name,
        title: title?,
        options,
        checks,
        steps,
        promises,
        notes,
        risks,
        needs_boot,
    })
}

fn choice(
    line: usize,
    name: String,
    table: &DeTable<'_>,
    reading: &mut Reading<'_>,
) -> Option<Choice> {
    let mut keys = Keys::new(table, "an option", line);
    let what = keys.must("what", reading);
    let default = keys.text("default", reading);
    let values = keys.texts("one_of", reading);
    let kind = match (keys.text("kind", reading), values.is_empty()) {
        (None, false) => Ok(Kind::OneOf(values)),
        (None, true) => Ok(Kind::Text),
        (Some(kind), true) => Kind::parse(&kind),
        (Some(_), false) => Err("an option has 'kind' or 'one_of', not both".into()),
    };
    keys.finish(reading);
    let kind = kind.map_err(|reason| reading.fault(line, reason)).ok()?;
    if let Some(Err(reason)) = default.as_ref().map(|default| kind.value(default)) {
        reading.fault(line, format!("the default of '{name}' cannot be: {reason}"));
    }
    Some(Choice { line, name, what: what?, kind, default })
}

/// Every name between braces is that of an option, and every option stands somewhere.
fn check_names(recipe: &UserRecipe, reading: &mut Reading<'_>) {
    let known: Vec<&str> = recipe.options.iter().map(|option| option.name.as_str()).collect();
    let mut used: Vec<String> = Vec::new();
    let mut look = |text: &str, line: usize, reading: &mut Reading<'_>| {
        for part in parts(text) {
            let Part::Name { name, .. } = part else {
                continue;
            };
            used.push(name.into());
            if !known.contains(&name) {
                let hint = if known.is_empty() {
                    "; the recipe has no options".into()
                } else {
                    did_you_mean(name, &known)
                };
                reading.fault(line, format!("there is no option '{name}'{hint}"));
            }
        }
    };
    fn each<T: Texts>(
        entries: &[Entry<T>],
        reading: &mut Reading<'_>,
        look: &mut impl FnMut(&str, usize, &mut Reading<'_>),
    ) {
        for entry in entries {
            let mut texts = entry.what.texts();
            texts.push(&entry.words);
            texts.extend(entry.extra.as_deref());
            texts.into_iter().for_each(|text| look(text, entry.line, reading));
        }
    }
    each(&recipe.checks, reading, &mut look);
    each(&recipe.steps, reading, &mut look);
    each(&recipe.promises, reading, &mut look);
    for text in recipe.notes.iter().chain(&recipe.risks) {
        look(text, 1, reading);
    }
    for option in &recipe.options {
        if !used.contains(&option.name) {
            let name = &option.name;
            reading.fault(
                option.line,
                format!("the option '{name}' stands nowhere: write {{{{{name}}}}}"),
            );
        }
    }
}
