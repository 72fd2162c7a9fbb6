//! The shape of the schemas: closed against unknown fields, and each type that several documents have in one file.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The file of the types that several documents have.
pub const SHARED_FILE: &str = "types.schema.json";

/// Where a document refers to its own types.
const OWN: &str = "#/$defs/";

/// All types of all documents, and which of them several documents have.
pub struct Shared {
    /// Each type by its name, closed.
    definitions: Map<String, Value>,
    /// As they were, for merging.
    open: Value,
    /// Those that more than one document refers to.
    names: BTreeSet<String>,
}

impl Shared {
    /// Of the types of all documents, whose schemas are `roots`.
    pub fn new<'a>(
        definitions: Map<String, Value>,
        roots: impl Iterator<Item = &'a Value>,
    ) -> Self {
        let open = Value::from(definitions.clone());
        let mut definitions = definitions;
        definitions.values_mut().for_each(|definition| close(definition, &open));
        let mut shared = Shared { definitions, open, names: BTreeSet::new() };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for root in roots {
            let mut root = root.clone();
            close(&mut root, &shared.open);
            for name in shared.below(&root) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let several = counts.into_iter().filter(|(_, count)| *count > 1);
        shared.names = several.map(|(name, _)| name).collect();
        shared
    }

    /// The names of all types that a schema refers to, and that these refer to.
    fn below(&self, schema: &Value) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut todo = references(schema);
        while let Some(name) = todo.pop() {
            if names.insert(name.clone()) {
                todo.extend(references(&self.definitions[&name]));
            }
        }
        names
    }

    /// A document's schema with the types that only it has.
    pub fn document(&self, mut root: Value) -> Value {
        close(&mut root, &self.open);
        let mut own = self.below(&root);
        own.retain(|name| !self.names.contains(name));
        // A document that is a type of its own needs no name for it.
        if let Some(name) = root.get("$ref").and_then(Value::as_str) {
            let name = name.trim_start_matches(OWN).to_string();
            if own.remove(&name) {
                root = self.definitions[&name].clone();
            }
        }
        self.point(&mut root);
        if !own.is_empty() {
            let definitions = own.into_iter().map(|name| {
                let mut definition = self.definitions[&name].clone();
                self.point(&mut definition);
                (name, definition)
            });
            root["$defs"] = Value::Object(definitions.collect());
        }
        root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        root
    }

    /// Lets each reference to a shared type lead to their file.
    fn point(&self, schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if let Some(Value::String(path)) = object.get_mut("$ref") {
                    let name = path.trim_start_matches(OWN);
                    if self.names.contains(name) {
                        *path = format!("{SHARED_FILE}{path}");
                    }
                }
                object.values_mut().for_each(|value| self.point(value));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.point(value)),
            _ => {}
        }
    }

    /// The file of the shared types.
    pub fn file(&self) -> Value {
        let shared = self.names.iter().map(|name| (name.clone(), self.definitions[name].clone()));
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Rubus: types",
            "$comment": "Types that several documents have",
            "$defs": shared.collect::<Map<String, Value>>(),
        })
    }
}

/// The names of the types that a schema refers to directly.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(object) => {
            let own = object.get("$ref").and_then(Value::as_str);
            let own = own.map(|path| path.trim_start_matches(OWN).to_string());
            own.into_iter().chain(object.values().flat_map(references)).collect()
        }
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Keywords whose value is a schema for a part of the value.
const OF_PART: [&str; 2] = ["items", "additionalProperties"];
/// Keywords whose value is a list of schemas for the value itself.
const OF_SAME: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Allows no field that the type does not have, so that a new one without a schema fails the tests. `schemars` does so only
/// for types that refuse unknown fields when they are read.
pub fn close(schema: &mut Value, definitions: &Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    // The formats of numbers are not of the standard; what is printed has every field, so none has a default.
    object.remove("format");
    object.remove("default");
    if let Some(Value::String(words)) = object.get_mut("description") {
        *words = plain(words);
    }
    for keyword in ["properties", "$defs"] {
        let parts = object.get_mut(keyword).and_then(Value::as_object_mut);
        for part in parts.into_iter().flat_map(Map::values_mut) {
            close(part, definitions);
        }
    }
    for keyword in OF_PART {
        if let Some(part) = object.get_mut(keyword) {
            close(part, definitions);
        }
    }
    let prefix = object.get_mut("prefixItems").and_then(Value::as_array_mut);
    for part in prefix.into_iter().flatten() {
        close(part, definitions);
    }
    if !object.contains_key("properties") {
        for keyword in OF_SAME {
            let list = object.get_mut(keyword).and_then(Value::as_array_mut);
            for part in list.into_iter().flatten() {
                close(part, definitions);
            }
        }
        return;
    }
    // Fields of another type stand beside these: both have to be open, and what neither has is refused here.
    let is_merged = OF_SAME.iter().any(|keyword| object.contains_key(*keyword));
    if !is_merged && !object.contains_key("$ref") {
        object.entry("additionalProperties").or_insert(json!(false));
        return;
    }
    if let Some(name) = object.remove("$ref") {
        let definition = definition(&name, definitions);
        let same = object.entry("allOf").or_insert(json!([]));
        same.as_array_mut().expect("a list").push(definition);
    }
    for keyword in OF_SAME {
        let list = object.get_mut(keyword).and_then(Value::as_array_mut);
        for part in list.into_iter().flatten() {
            open(part, definitions);
        }
    }
    object.insert("unevaluatedProperties".into(), json!(false));
}

/// Closes what is in the fields, and leaves the fields themselves open.
fn open(schema: &mut Value, definitions: &Value) {
    if let Some(name) = schema.get("$ref") {
        *schema = definition(name, definitions);
    }
    close(schema, definitions);
    let object = schema.as_object_mut().expect("an object");
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        if object.get(keyword) == Some(&json!(false)) {
            object.remove(keyword);
        }
    }
    for keyword in OF_SAME {
        let list = object.get_mut(keyword).and_then(Value::as_array_mut);
        for part in list.into_iter().flatten() {
            open(part, definitions);
        }
    }
}

/// A doc comment without its line breaks and with bare names for its links, of which the last part is the field's name.
fn plain(comment: &str) -> String {
    let paragraphs = comment.split("\n\n");
    let paragraphs: Vec<String> = paragraphs.map(|text| text.replace('\n', " ")).collect();
    let mut words = String::new();
    let mut rest = &*paragraphs.join("\n\n");
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((link, after)) = after.split_once("`]") else {
            break;
        };
        let name = link.rsplit("::").next().unwrap_or(link);
        words += &format!("{before}`{name}`");
        rest = after;
    }
    words + rest
}

fn definition(name: &Value, definitions: &Value) -> Value {
    let name = name.as_str().expect("a text").rsplit('/').next();
    let found = &definitions[name.expect("a name")];
    assert!(found.is_object(), "no definition {name:?}");
    found.clone()
}
