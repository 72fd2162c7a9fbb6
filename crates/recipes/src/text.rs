//! The list of recipes and each of them as text.

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::hang;

use crate::Recipe;

const COLUMNS: usize = 80;

/// The recipes, each with what it does.
pub fn recipes(all: &[&Recipe], style: Style) -> String {
    let mut lines = Vec::new();
    for recipe in all {
        lines.push(style.paint(Tone::Strong, recipe.name));
        lines.extend(hang("  ", recipe.title, COLUMNS));
    }
    lines.push(String::new());
    lines.push(
        "`rubus recipes NAME` explains a recipe: its changes, needs, options, an example.".into(),
    );
    lines.push("`rubus plan NAME` shows what it would do here; nothing is changed.".into());
    lines.join("\n") + "\n"
}

/// One recipe: what it changes, what it needs, what can be chosen, and an example.
pub fn recipe(recipe: &Recipe, style: Style) -> String {
    let mut lines = vec![style.paint(Tone::Strong, recipe.name)];
    lines.extend(hang("  ", recipe.title, COLUMNS));
    for (title, text) in [("Changes", recipe.guide.changes), ("Needs", recipe.guide.needs)] {
        lines.push(String::new());
        lines.push(style.paint(Tone::Strong, title));
        lines.extend(hang("  ", text, COLUMNS));
    }
    lines.push(String::new());
    lines.push(style.paint(Tone::Strong, "Options"));
    for option in recipe.options {
        let default = option.default.map(|value| format!(" (default {value})"));
        lines.push(format!("  {}=…", option.name));
        let what = format!("{}{}", option.what, default.unwrap_or_default());
        lines.extend(hang("      ", &what, COLUMNS));
    }
    lines.push(String::new());
    lines.push(style.paint(Tone::Strong, "Example: show the plan, change nothing"));
    // Never wrapped: it is typed or copied as it is.
    lines.push(format!("  {}", recipe.guide.example));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_names_options_that_the_recipe_has() {
        for recipe in crate::ALL {
            let words: Vec<&str> = recipe.guide.example.split(' ').collect();
            assert_eq!(words[..4], ["sudo", "rubus", "plan", recipe.name]);
            for word in &words[4..] {
                let (name, value) = word.split_once('=').expect("NAME=VALUE");
                let option = recipe.options.iter().find(|option| option.name == name);
                let option = option.unwrap_or_else(|| panic!("{}: {name}", recipe.name));
                assert_eq!((option.check)(value), Ok(()), "{}: {word}", recipe.name);
            }
        }
    }

    #[test]
    fn recipes_are_listed() {
        let two = ["swap", "zswap"].map(|name| crate::by_name(name).expect("a recipe"));
        insta::assert_snapshot!(super::recipes(&two, Style::PLAIN));
    }

    #[test]
    fn a_recipe_is_explained() {
        let zswap = crate::by_name("zswap").expect("a recipe");
        insta::assert_snapshot!(super::recipe(zswap, Style::PLAIN));
    }
}
