//! Holds the rules of what others may see against the records' types: each field has one, and each rule a field.

use std::collections::{BTreeMap, BTreeSet};

use rubus_runs::compare::Comparison;
use rubus_runs::run_document::RunDocument;
use rubus_runs::share::{Record, Rule, Table};
use rubus_vocabulary::machine::Machine;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// What a type may hold, by its schema.
#[derive(Default)]
struct Shape {
    fields: BTreeMap<String, Vec<Value>>,
    words: BTreeSet<String>,
    is_text: bool,
    is_number: bool,
    has_map: bool,
}

fn shape(schemas: &[Value], definitions: &Value) -> Shape {
    let mut shape = Shape::default();
    let mut todo: Vec<Value> = schemas.to_vec();
    while let Some(schema) = todo.pop() {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap_or_default();
            todo.push(definitions[name].clone());
        }
        for several in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            todo.extend(schema[several].as_array().cloned().unwrap_or_default());
        }
        if schema["items"].is_object() {
            todo.push(schema["items"].clone());
        }
        for (field, of_field) in schema["properties"].as_object().into_iter().flatten() {
            shape.fields.entry(field.clone()).or_default().push(of_field.clone());
        }
        let words = schema["const"].as_str().map(str::to_string);
        let listed = schema["enum"].as_array().cloned().unwrap_or_default();
        let listed = listed.iter().filter_map(Value::as_str).map(str::to_string);
        let words: Vec<String> = words.into_iter().chain(listed).collect();
        let types = &schema["type"];
        let is_a = |kind: &str| {
            types == kind || types.as_array().is_some_and(|all| all.contains(&kind.into()))
        };
        shape.is_text |= is_a("string") && words.is_empty();
        shape.is_number |= ["integer", "number", "boolean"].into_iter().any(is_a);
        shape.words.extend(words);
        shape.has_map |= schema["additionalProperties"].is_object();
    }
    shape
}

struct Check<'a> {
    table: &'a Table,
    definitions: Value,
    faults: BTreeSet<String>,
    seen: BTreeSet<(String, String)>,
}

impl Check<'_> {
    fn object(&mut self, name: &str, schemas: &[Value]) {
        let key = (name.to_string(), Value::from(schemas.to_vec()).to_string());
        if !self.seen.insert(key) {
            return;
        }
        let of_type = shape(schemas, &self.definitions);
        // A type may be a number in one variant and an object in another; without a rule the number would be dropped.
        if !of_type.words.is_empty() || of_type.is_text || of_type.is_number {
            self.scalar(name, "=", &of_type);
        }
        for (field, schemas) in &of_type.fields {
            match self.table.rule(name, field).cloned() {
                None => {
                    let of_field = shape(schemas, &self.definitions);
                    let hint = if of_field.is_text { "a form" } else { "number" };
                    self.faults.insert(format!("[{name}] has no line: {field} = {hint}"));
                }
                Some(rule) => self.field(name, field, &rule, schemas),
            }
        }
    }

    fn field(&mut self, name: &str, field: &str, rule: &Rule, schemas: &[Value]) {
        match rule {
            Rule::Object(inner) => self.object(inner, schemas),
            Rule::Fact(inner) => {
                let of_fact = shape(schemas, &self.definitions);
                let expected = BTreeSet::from(["source", "unknown", "value"]);
                let found: BTreeSet<&str> = of_fact.fields.keys().map(String::as_str).collect();
                if found == expected {
                    self.field(name, field, inner, &of_fact.fields["value"]);
                } else {
                    self.faults.insert(format!("[{name}] {field} is no fact: {found:?}"));
                }
            }
            Rule::Drop => {}
            Rule::Number | Rule::Words(_) | Rule::Text(_) => {
                let of_field = shape(schemas, &self.definitions);
                if !of_field.fields.is_empty() {
                    self.faults.insert(format!("[{name}] {field} is an object"));
                }
                self.scalar(name, field, &of_field);
            }
        }
    }

    fn scalar(&mut self, name: &str, field: &str, shape: &Shape) {
        let fault = match self.table.rule(name, field) {
            Some(Rule::Text(_) | Rule::Drop) => None,
            Some(Rule::Fact(_) | Rule::Object(_)) => None,
            Some(Rule::Words(words)) => {
                let words: BTreeSet<String> = words.iter().cloned().collect();
                let listed: Vec<&str> = shape.words.iter().map(String::as_str).collect();
                (words != shape.words || shape.is_text)
                    .then(|| format!("[{name}] {field} = words {}", listed.join("|")))
            }
            Some(Rule::Number) if shape.is_text || shape.has_map || !shape.words.is_empty() => {
                Some(format!("[{name}] {field} is no number"))
            }
            Some(Rule::Number) => None,
            None if shape.is_number => Some(format!("[{name}] has no line: {field} = number")),
            None => {
                let listed: Vec<&str> = shape.words.iter().map(String::as_str).collect();
                Some(format!("[{name}] has no line: {field} = words {}", listed.join("|")))
            }
        };
        self.faults.extend(fault);
    }
}

fn faults<T: JsonSchema>(record: Record) -> BTreeSet<String> {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = Value::from(generator.into_root_schema_for::<T>());
    let definitions = schema["$defs"].clone();
    let table = record.table();
    let mut check = Check { table, definitions, faults: BTreeSet::new(), seen: BTreeSet::new() };
    check.object(table.root(), &[schema]);
    check.faults
}

#[test]
fn every_field_that_others_may_see_has_a_rule() {
    let mut all = faults::<RunDocument<'_>>(Record::Run);
    all.extend(faults::<Machine>(Record::Machine));
    all.extend(faults::<Comparison>(Record::Comparison));
    let list: Vec<String> = all.into_iter().collect();
    assert!(
        list.is_empty(),
        "fields without a rule are dropped from what others see; write them into \
         crates/runs/src/share/run.rules or comparison.rules:\n{}",
        list.join("\n")
    );
}
