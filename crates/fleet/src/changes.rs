//! Settings and parts that changed on boards between two times, each change once.

use std::collections::HashMap;

use rubus_runs::compare::Difference;
use serde::Serialize;

use crate::settings::OF_EACH_RUN;

/// A fact that changed in the same way on some boards.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// "board", "kernel", "vm.dirty_ratio".
    pub what: String,
    /// In words; null where it is not known or did not exist.
    pub before: Option<String>,
    /// The same, now.
    pub after: Option<String>,
    /// The boards, by name.
    pub boards: Vec<String>,
}

/// The changes of all boards: by fact, in the order in which facts appear, then those of most
/// boards first. What two runs differ in has two values each.
pub(crate) fn grouped(boards: &[(&str, &[Difference])]) -> Vec<Change> {
    let mut facts: HashMap<&str, usize> = HashMap::new();
    let mut places: HashMap<(&str, Option<&str>, Option<&str>), usize> = HashMap::new();
    let mut changes: Vec<(usize, Change)> = Vec::new();
    for (board, differences) in boards {
        for difference in *differences {
            let [before, after] = &difference.values[..] else {
                continue;
            };
            let what = difference.what.as_str();
            if what == OF_EACH_RUN {
                continue;
            }
            let count = facts.len();
            let fact = *facts.entry(what).or_insert(count);
            let key = (what, before.as_deref(), after.as_deref());
            let place = *places.entry(key).or_insert(changes.len());
            if place == changes.len() {
                let change = Change {
                    what: what.into(),
                    before: before.clone(),
                    after: after.clone(),
                    boards: Vec::new(),
                };
                changes.push((fact, change));
            }
            // A board with several runs has it once.
            let named = &mut changes[place].1.boards;
            if named.last().is_none_or(|last| last != board) {
                named.push((*board).into());
            }
        }
    }
    changes.sort_by_key(|(fact, change)| (*fact, std::cmp::Reverse(change.boards.len())));
    changes.into_iter().map(|(_, change)| change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(what: &str, before: &str, after: &str) -> Difference {
        let value = |words: &str| Some(words.to_string()).filter(|words| !words.is_empty());
        Difference { what: what.into(), values: vec![value(before), value(after)] }
    }

    #[test]
    fn the_same_change_of_many_boards_is_one() {
        let kernel = difference("kernel", "6.6", "6.12");
        let a = [difference("kernel", "6.1", "6.12"), difference("seed", "1", "2")];
        let b = [kernel.clone(), kernel.clone(), difference("swap", "", "zram")];
        let c = [difference("cores", "4", "3"), kernel];
        let found = grouped(&[("a", &a), ("b", &b), ("c", &c), ("d", &[])]);
        let words: Vec<String> = found
            .iter()
            .map(|one| format!("{} {:?} {:?} {:?}", one.what, one.before, one.after, one.boards))
            .collect();
        assert_eq!(
            words,
            [
                r#"kernel Some("6.6") Some("6.12") ["b", "c"]"#,
                r#"kernel Some("6.1") Some("6.12") ["a"]"#,
                r#"swap None Some("zram") ["b"]"#,
                r#"cores Some("4") Some("3") ["c"]"#,
            ]
        );
    }
}
