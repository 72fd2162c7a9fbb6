//! The list of recipes, and the page that names them.

use super::ALL;

const DOCUMENT: &str = include_str!("../../../../docs/commands.md");

/// The names in backquotes in a text.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn recipes_stand_in_the_order_of_their_names() {
    assert!(
        ALL.is_sorted_by_key(|recipe| recipe.name),
        "{:?}",
        ALL.map(|recipe| recipe.name)
    );
}

#[test]
fn the_page_of_commands_names_every_recipe_and_no_other() {
    let row = DOCUMENT
        .lines()
        .find(|line| line.starts_with("| `rubus recipes`"));
    let named = row.and_then(|row| row.split("example): ").nth(1));
    let mut named = quoted(named.expect("docs/commands.md has a row that names the recipes"));
    named.sort_unstable();
    let missing: Vec<&str> = ALL
        .iter()
        .map(|recipe| recipe.name)
        .filter(|name| !named.contains(name))
        .collect();
    assert_eq!(missing, [""; 0], "not in docs/commands.md");
    assert_eq!(named, ALL.map(|recipe| recipe.name));
}
