//! Takes a record apart by its table and lets through what has a rule.

use std::collections::BTreeSet;

use rubus_host::shareable::{LEFT_OUT, Pseudonyms};
use serde_json::{Map, Value};

use super::rule::{self, Context};
use super::table::{Rule, Table, TextRule};

/// What a record holds for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values that stayed as they were.
    pub facts: u64,
    /// Values that became pseudonyms or lost a part.
    pub replaced: u64,
    /// Values that were dropped.
    pub dropped: u64,
}

impl Counts {
    /// Adds those of another record.
    pub fn add(&mut self, other: Counts) {
        self.facts += other.facts;
        self.replaced += other.replaced;
        self.dropped += other.dropped;
    }
}

/// Makes a record shareable in place.
pub(super) fn walk(value: &mut Value, table: &Table, names: &mut Pseudonyms) -> Counts {
    let mut public = BTreeSet::new();
    collect_public(value, table, &Rule::Object(table.root().into()), &mut public, names);
    let mut walker = Walker { table, names, public, counts: Counts::default() };
    walker.object(value, table.root());
    walker.counts
}

/// Names of products and versions, which texts may repeat.
fn collect_public(
    value: &Value,
    table: &Table,
    rule: &Rule,
    public: &mut BTreeSet<String>,
    names: &Pseudonyms,
) {
    match (value, rule) {
        (Value::Array(list), rule) => {
            list.iter().for_each(|one| collect_public(one, table, rule, public, names));
        }
        (Value::Object(fields), Rule::Object(name)) => {
            for (field, one) in fields {
                if let Some(rule) = table.rule(name, field) {
                    collect_public(one, table, rule, public, names);
                }
            }
        }
        (Value::Object(fields), Rule::Fact(inner)) => {
            fields
                .get("value")
                .iter()
                .for_each(|one| collect_public(one, table, inner, public, names));
        }
        (Value::String(text), Rule::Text(TextRule::Model)) if rule::is_model(text, names) => {
            let is_alone = |word: &&str| word.chars().any(|c| c.is_ascii_digit());
            public.insert(text.clone());
            public.extend(text.split(' ').filter(is_alone).map(str::to_string));
        }
        _ => {}
    }
}

struct Walker<'a> {
    table: &'a Table,
    names: &'a mut Pseudonyms,
    public: BTreeSet<String>,
    counts: Counts,
}

impl Walker<'_> {
    fn object(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|one| self.object(one, name)),
            Value::Object(fields) => self.fields(fields, name),
            scalar => match self.table.rule(name, "=").cloned() {
                Some(rule) => {
                    if !self.value(scalar, &rule) {
                        *scalar = Value::String(LEFT_OUT.into());
                    }
                }
                None => self.drop_scalar(scalar),
            },
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>, name: &str) {
        let table = self.table;
        fields.retain(|field, value| match table.rule(name, field) {
            Some(rule) => self.value(value, rule),
            None => {
                self.forget(value);
                false
            }
        });
    }

    /// Whether the value, as it is afterwards, stays.
    fn value(&mut self, value: &mut Value, rule: &Rule) -> bool {
        match rule {
            Rule::Object(name) => self.object(value, name),
            Rule::Fact(inner) => self.fact(value, inner),
            Rule::Drop => {
                self.forget(value);
                // A list may not be absent; it can be empty.
                let Value::Array(list) = value else {
                    return false;
                };
                list.clear();
            }
            Rule::Text(TextRule::JobOptions) => self.job_options(value),
            Rule::Number | Rule::Words(_) | Rule::Text(_) => return self.scalar(value, rule),
        }
        true
    }

    fn fact(&mut self, value: &mut Value, inner: &Rule) {
        let Value::Object(fields) = value else {
            self.drop_scalar(value);
            return;
        };
        let reason = Rule::Text(TextRule::Reason);
        let source = Rule::Text(TextRule::Source);
        fields.retain(|field, value| match field.as_str() {
            "value" => self.value(value, inner),
            "source" => self.value(value, &source),
            "unknown" => self.value(value, &reason),
            _ => {
                self.forget(value);
                false
            }
        });
        // A value that no rule lets through was known, and no reader may take it for absent.
        if !fields.contains_key("value") && !fields.contains_key("unknown") {
            fields.insert("unknown".into(), Value::String(LEFT_OUT.into()));
        }
        fields.entry("source").or_insert_with(|| Value::String(LEFT_OUT.into()));
    }

    fn scalar(&mut self, value: &mut Value, rule: &Rule) -> bool {
        match value {
            Value::Number(_) if *rule != Rule::Number => {
                self.forget(value);
                false
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.counts.facts += 1;
                true
            }
            Value::Array(list) => {
                list.retain_mut(|one| self.scalar(one, rule));
                true
            }
            Value::String(text) => {
                let said = match rule {
                    Rule::Words(words) => words.contains(text).then(|| text.clone()),
                    Rule::Text(rule) => {
                        let context = Context { names: self.names, public: &self.public };
                        rule::text(*rule, text, context)
                    }
                    Rule::Number | Rule::Object(_) | Rule::Fact(_) | Rule::Drop => None,
                };
                match said {
                    Some(said) if said == *text => self.counts.facts += 1,
                    Some(said) => {
                        self.counts.replaced += 1;
                        *text = said;
                    }
                    None => {
                        self.counts.dropped += 1;
                        self.names.remember(text);
                        // A word of a closed set that this version does not know; an element of a list goes.
                        return false;
                    }
                }
                true
            }
            Value::Object(_) => {
                self.forget(value);
                false
            }
        }
    }

    fn job_options(&mut self, value: &mut Value) {
        let Value::Object(options) = value else {
            self.drop_scalar(value);
            return;
        };
        options.retain(|name, value| {
            let context = Context { names: self.names, public: &self.public };
            match value.as_str().and_then(|text| rule::job_option(name, text, context)) {
                Some(said) => {
                    *value = Value::String(said);
                    true
                }
                None => {
                    self.forget(value);
                    false
                }
            }
        });
    }

    fn drop_scalar(&mut self, value: &mut Value) {
        self.forget(value);
        *value = Value::Null;
    }

    /// What is dropped may stand in other fields, too.
    fn forget(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.counts.dropped += 1;
                self.names.remember(text);
            }
            Value::Array(list) => list.iter().for_each(|one| self.forget(one)),
            Value::Object(fields) => fields.values().for_each(|one| self.forget(one)),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.counts.dropped += 1,
        }
    }
}
