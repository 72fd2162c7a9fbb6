//! Secrets of every kind in every field of a record: none is left, in any spelling.
//!
//! The record is made from its table, so that each field that there is holds the secret.

use serde_json::{Map, Value, json};

use super::table::{Rule, Table, TextRule};
use super::*;

/// A record in which each field that has a rule is there, and each text is the next one.
fn full(table: &Table, name: &str, next: &mut dyn FnMut() -> String, depth: usize) -> Value {
    let mut object = Map::new();
    for field in table.fields(name) {
        let rule = table.rule(name, field).expect("it has one");
        if field == "=" && table.fields(name).len() == 1 {
            return of_rule(table, rule, next, depth);
        }
        if field != "=" {
            object.insert(field.into(), of_rule(table, rule, next, depth));
        }
    }
    // Fields without a rule, in every object.
    object.insert("unheard_of".into(), json!([{ "name": next() }, next()]));
    Value::Object(object)
}

fn of_rule(table: &Table, rule: &Rule, next: &mut dyn FnMut() -> String, depth: usize) -> Value {
    match rule {
        Rule::Number | Rule::Words(_) | Rule::Drop => json!(next()),
        Rule::Object(_) if depth == 0 => Value::Null,
        Rule::Object(name) => json!([full(table, name, next, depth - 1)]),
        Rule::Fact(inner) => {
            let value = of_rule(table, inner, next, depth);
            json!({ "value": value, "source": next(), "unknown": next() })
        }
        Rule::Text(TextRule::JobOptions) => {
            let mut options = Map::new();
            for name in ["filename", "bs", "hostname", "description", "rate"] {
                options.insert(name.into(), next().into());
            }
            Value::Object(options)
        }
        Rule::Text(_) => json!([next(), format!("a {}", next()), format!("{},rw", next())]),
    }
}

#[path = "../../../host/src/shareable/planted.rs"]
mod planted;
#[path = "../../../host/src/shareable/spelt.rs"]
mod spelt;

use planted::{Text, planted};
use spelt::{left_of, spelt_otherwise};

#[test]
fn no_secret_of_any_kind_is_left_in_any_field() {
    /// Each field has as many of the texts, one after the other.
    const ROUNDS: usize = 12;
    let texts = planted();
    let mut leaks: Vec<String> = Vec::new();
    for record in [Record::Run, Record::Comparison] {
        let table = record.table();
        for round in 0..ROUNDS {
            let mut at = round * texts.len() / ROUNDS + round;
            let mut next = || {
                at += 1;
                texts[at % texts.len()].text.clone()
            };
            let mut value = full(table, table.root(), &mut next, 7);
            let counts = share(&mut value, record);
            assert!(counts.dropped > 10, "hardly anything was planted");
            let left = Text::of(&value.to_string());
            let secrets = texts.iter().flat_map(|one| &one.secrets);
            for secret in secrets {
                if let Some(spelling) = left.has(secret) {
                    leaks.push(format!("{record:?}: {secret} as {}", left.around(&spelling)));
                }
            }
        }
    }
    leaks.sort();
    leaks.dedup();
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// The forms that let a text through by what it is made of. A product's name and a board's are free texts of their makers.
fn forms() -> Vec<TextRule> {
    let free = [TextRule::Model, TextRule::Compatible];
    TextRule::all().into_iter().filter(|rule| !free.contains(rule)).collect()
}

fn alone(rule: TextRule, text: &str) -> String {
    let (mut names, public) = (Pseudonyms::default(), BTreeSet::new());
    let context = rule::Context { names: &mut names, public: &public };
    rule::text(rule, text, context).unwrap_or_default().to_lowercase()
}

/// In one text alone, where nothing else says that it is private.
#[test]
fn no_secret_is_left_where_it_stands_alone() {
    let mut leaks: Vec<String> = Vec::new();
    for rule in forms() {
        for one in planted() {
            let said = alone(rule, &one.text);
            let left = Text::of(&said);
            for secret in one.secrets.iter().filter(|secret| left.has(secret).is_some()) {
                leaks.push(format!("{rule:?}: {secret} of {}: {said}", one.text));
            }
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// Names that hang on a hardware address do not make words of it.
#[test]
fn no_hardware_address_with_letters_at_its_ends_is_let_through() {
    let mut leaks: Vec<String> = Vec::new();
    for mark in [":", "-", "_", ".", " "] {
        for pairs in ["B8 27 EB 44 B7 67", "b8 27 0b 3a 2b 1c", "00 11 22 33 44 55"] {
            let address = pairs.replace(' ', mark);
            for text in ["x{}", "MAC{}", "m{}", "{}s", "{}G", "g{}h", "12x{} gone", "at MAC{}, ok"]
            {
                let text = text.replace("{}", &address);
                for rule in TextRule::all() {
                    let said = alone(rule, &text);
                    if let Some(part) = left_of(&address, &said) {
                        leaks.push(format!("{rule:?}: {part} of {text}: {said}"));
                    }
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// A secret that others have written in another way.
#[test]
fn no_spelling_of_a_secret_is_let_through() {
    let mut leaks: Vec<String> = Vec::new();
    for spelling in spelt_otherwise(17) {
        for text in [
            spelling.clone(),
            format!("/home/{spelling}/x"),
            format!("username={spelling}"),
            format!("connect to host {spelling} port 22"),
        ] {
            for rule in forms() {
                let left = alone(rule, &text);
                if let Some(part) = left_of(&spelling, &left) {
                    leaks.push(format!("{rule:?}: {part} of {text}: {left}"));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{} are left:\n{}", leaks.len(), leaks.join("\n"));
}

/// Two figures could be a telephone number without its area code.
#[test]
fn no_local_telephone_number_is_let_through() {
    for number in ["555-1824", "387.8482", "555/1824"] {
        for text in [number.to_string(), format!("a {number}"), format!("{number},rw")] {
            for rule in forms() {
                let said = alone(rule, &text);
                assert!(!said.contains(number), "{rule:?}: {said}");
            }
        }
    }
}
