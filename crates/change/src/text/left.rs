//! The end of going back: how all is now, and what is not as it was.

use crate::apply::Left;
use rubus_draw::text::clean;

/// What is said of a change that was undone. `instead` takes the place of "everything is as it was" where another root still
/// runs.
pub fn undone(name: &str, left: &Left, instead: Option<&str>) -> String {
    let first = match (instead, left.found.is_empty(), left.is_nothing()) {
        (Some(instead), true, _) => format!("{name} is undone: {instead}"),
        (Some(instead), false, _) => format!("{name} is undone, but not everything: {instead}"),
        (None, _, true) => format!("{name} is undone: everything is as it was."),
        (None, true, false) => format!("{name} is undone, as far as that is possible."),
        (None, false, _) => format!("{name} is undone, but not all is as it was."),
    };
    let mut lines = vec![first];
    lines.extend(list("Not as it was:", &left.found));
    lines.extend(list("What undoing does not bring back:", &left.announced));
    lines.join("\n") + "\n"
}

/// What is said of a change that failed and went back, after why it did.
pub fn went_back(left: &Left, needs_boot: bool) -> String {
    let start =
        if needs_boot { ": the machine goes on, and starts, from its old root" } else { "" };
    let mut lines = match (left.found.is_empty(), left.announced.is_empty()) {
        (true, true) => vec![format!("everything is as it was before{start}")],
        (true, false) => vec![format!("everything else is as it was before{start}")],
        (false, _) => vec!["not all is as it was before".to_string()],
    };
    lines.extend(list("Not as it was:", &left.found));
    lines.extend(list("What undoing does not bring back:", &left.announced));
    lines.join("\n")
}

fn list(title: &str, items: &[String]) -> Vec<String> {
    if items.is_empty() {
        return Vec::new();
    }
    let items = items.iter().map(|item| format!("  - {}", clean(item)));
    std::iter::once(title.to_string()).chain(items).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(announced: &[&str], found: &[&str]) -> Left {
        let owned = |items: &[&str]| items.iter().map(|item| item.to_string()).collect();
        Left { announced: owned(announced), found: owned(found) }
    }

    #[test]
    fn only_what_is_as_it_was_is_called_so() {
        let lost = "what was on /dev/sda is lost";
        let foreign = "/etc/a.conf is neither as it was before nor as this change left it (gone: 'a'), and was not touched";
        let all =
            [left(&[], &[]), left(&[lost], &[]), left(&[], &[foreign]), left(&[lost], &[foreign])];
        let mut shown = String::new();
        for left in &all {
            shown += &undone("0001-example", left, None);
            shown += &undone("0001-example", left, Some("the next start is from the old root."));
            for needs_boot in [false, true] {
                shown += &went_back(left, needs_boot);
                shown += "\n";
            }
            shown += "---\n";
        }
        insta::assert_snapshot!(shown);
    }
}
