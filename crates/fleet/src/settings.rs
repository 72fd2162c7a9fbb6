//! Settings and parts that are not the same on all boards of a fleet.

use std::collections::HashMap;

use rubus_vocabulary::figure::Named;
use serde::Serialize;

/// A fact that is another in every run by its nature.
pub(crate) const OF_EACH_RUN: &str = "seed";
/// Facts that are another on every board by their nature: a target's name begins with its board's,
/// and the tables have what was asked for.
const OF_EACH: [&str; 2] = [OF_EACH_RUN, "target"];

/// A fact that is not the same on all boards.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// "board", "kernel", "vm.dirty_ratio".
    pub what: String,
    /// Its values, the most frequent first.
    pub values: Vec<Value>,
}

/// A value and the boards that have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Value {
    /// In words; null where it is not known or does not exist.
    pub value: Option<String>,
    /// The boards, by name.
    pub boards: Vec<String>,
}

/// What differs between boards, in the order of the facts; boards are in the order given.
pub fn differences(boards: &[(&str, Vec<Named>)]) -> Vec<Difference> {
    let mut order: Vec<&str> = Vec::new();
    let mut known: HashMap<&str, Values> = HashMap::new();
    for (number, (_, facts)) in boards.iter().enumerate() {
        for fact in facts {
            let values = known.entry(&fact.name).or_insert_with(|| {
                order.push(&fact.name);
                Values::default()
            });
            values.add(fact.value.as_deref(), number);
        }
    }
    let name = |number: &usize| boards[*number].0.to_string();
    let wanted = order.into_iter().filter(|what| !OF_EACH.contains(what));
    let all = wanted.filter_map(|what| {
        let mut values = known.remove(what)?;
        values.complete(boards.len());
        let several = values.all.len() > 1;
        // A stable sort: of two values of as many boards, the one of the earlier board comes first.
        values.all.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
        let values = values.all.into_iter().map(|(value, of)| Value {
            value: value.map(str::to_string),
            boards: of.iter().map(name).collect(),
        });
        several.then(|| Difference { what: what.into(), values: values.collect() })
    });
    all.collect()
}

/// The values of one fact, in the order in which they appear, with the boards that have them.
#[derive(Default)]
struct Values<'a> {
    all: Vec<(Option<&'a str>, Vec<usize>)>,
    places: HashMap<Option<&'a str>, usize>,
    /// The board that was added last, and how many were.
    last: Option<usize>,
    count: usize,
}

impl<'a> Values<'a> {
    /// Of a fact that a board has twice, the first counts.
    fn add(&mut self, value: Option<&'a str>, board: usize) {
        if self.last == Some(board) {
            return;
        }
        self.last = Some(board);
        self.count += 1;
        self.put(value, board);
    }

    fn put(&mut self, value: Option<&'a str>, board: usize) {
        let place = *self.places.entry(value).or_insert(self.all.len());
        if place == self.all.len() {
            self.all.push((value, Vec::new()));
        }
        self.all[place].1.push(board);
    }

    /// Boards that do not have the fact at all have it unknown.
    fn complete(&mut self, boards: usize) {
        if self.count == boards {
            return;
        }
        let mut has = vec![false; boards];
        for (_, of) in &self.all {
            of.iter().for_each(|board| has[*board] = true);
        }
        for board in (0..boards).filter(|board| !has[*board]) {
            self.put(None, board);
        }
        if let Some(place) = self.places.get(&None) {
            self.all[*place].1.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, Option<&str>)]) -> Vec<Named> {
        let named = |(name, value): &(&str, Option<&str>)| Named {
            name: (*name).into(),
            value: value.map(str::to_string),
        };
        all.iter().map(named).collect()
    }

    #[test]
    fn the_usual_value_comes_first_and_what_is_the_same_is_left_out() {
        let boards = [
            (
                "a",
                facts(&[
                    ("board", Some("Pi 4")),
                    ("kernel", Some("6.6")),
                    ("seed", Some("1")),
                    ("target", Some("a:/srv")),
                ]),
            ),
            ("b", facts(&[("board", Some("Pi 4")), ("kernel", Some("6.12"))])),
            (
                "c",
                facts(&[
                    ("board", Some("Pi 4")),
                    ("kernel", Some("6.12")),
                    ("swap", Some("x")),
                    ("target", Some("c:/srv")),
                ]),
            ),
        ];
        let found = differences(&boards);
        let words: Vec<String> = found
            .iter()
            .map(|one| {
                let values = one.values.iter();
                let values = values.map(|value| format!("{:?} {:?}", value.value, value.boards));
                format!("{}: {}", one.what, values.collect::<Vec<_>>().join(", "))
            })
            .collect();
        assert_eq!(
            words,
            [
                r#"kernel: Some("6.12") ["b", "c"], Some("6.6") ["a"]"#,
                r#"swap: None ["a", "b"], Some("x") ["c"]"#,
            ]
        );
    }

    #[test]
    fn boards_that_are_alike_differ_in_nothing() {
        let one = facts(&[("board", Some("Pi 4")), ("swap", None)]);
        assert_eq!(differences(&[("a", one.clone()), ("b", one)]), []);
        assert_eq!(differences(&[]), []);
    }
}
