//! Validates documents against `docs/reference/schemas` with Python's jsonschema, a validator that knows nothing of this program.
//!
//! `scripts/test` installs it in `target/tools`. Where it is missing, validation is skipped, and said so; with
//! `RUBUS_REQUIRE_ALL=1` that is a failure.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rubus_fixtures::skipped;
use serde_json::{Value, json};

/// A document: its name for people, the name of its schema, and itself.
pub type Document = (String, &'static str, Value);

fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file of the documentation's schemas.
fn file(name: &str) -> String {
    let path = workspace().join(format!("docs/reference/schemas/{name}.schema.json"));
    fs::read_to_string(&path).unwrap_or_else(|_| panic!("no {}", path.display()))
}

/// A schema of the documentation with the types that it shares with others, as old validators need it.
fn schema(name: &str) -> Value {
    let own = file(name).replace("\"types.schema.json#/", "\"#/");
    let mut schema: Value = serde_json::from_str(&own).expect("JSON");
    let types: Value = serde_json::from_str(&file("types")).expect("JSON");
    let types = types["$defs"].as_object().expect("types").clone();
    let definitions = schema.as_object_mut().expect("an object").entry("$defs");
    let definitions = definitions.or_insert(json!({})).as_object_mut().expect("types");
    for (name, definition) in types {
        assert!(definitions.insert(name, definition).is_none(), "a type has two definitions");
    }
    schema
}

/// A Python that has jsonschema.
fn python() -> Option<PathBuf> {
    let own = workspace().join("target/tools/bin/python3");
    let has_it = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import jsonschema"]);
        command.stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    [own, "python3".into()].into_iter().find(has_it)
}

/// The errors of each document, by its name; `None` where there is no validator.
fn errors(documents: &[Document]) -> Option<Vec<(String, Vec<String>)>> {
    let Some(python) = python() else {
        skipped("validation by the schemas", "Python's jsonschema is not installed");
        return None;
    };
    let names: BTreeSet<&str> = documents.iter().map(|(_, of, _)| *of).collect();
    let schemas = names.into_iter().map(|of| (of.to_string(), schema(of)));
    let schemas: Value = schemas.collect();
    let question = json!({"schemas": schemas, "documents": documents}).to_string();
    let mut child = Command::new(python)
        .arg(workspace().join("crates/rubus/tests/schemas/validate.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    // It reads everything before it writes.
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(question.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the validator failed");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Fails if a document is not as its schema says.
pub fn must_be_valid(documents: &[Document]) {
    let wrong = errors(documents).unwrap_or_default();
    let wrong: Vec<_> = wrong.iter().filter(|(_, why)| !why.is_empty()).collect();
    assert!(wrong.is_empty(), "not as the schema says: {wrong:#?}");
}

/// Fails if a document is as its schema says.
#[allow(dead_code, reason = "only the tests of the program itself need it")]
pub fn must_be_invalid(documents: &[Document]) {
    let answers = errors(documents).unwrap_or_default();
    let fine = answers.iter().filter(|(_, why)| why.is_empty());
    let fine: Vec<_> = fine.map(|(name, _)| name).collect();
    assert!(fine.is_empty(), "the schema accepts {fine:?}");
}
