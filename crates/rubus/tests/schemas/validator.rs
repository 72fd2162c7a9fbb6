//! Validates documents against `docs/schemas` with Python's jsonschema, a validator that knows nothing of this program.
//!
//! `scripts/test` installs it in `target/tools`. Where it is missing, validation is skipped, and said so; with
//! `RUBUS_REQUIRE_ALL=1` that is a failure.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// A document: its name for people, the name of its schema, and itself.
pub type Document = (String, &'static str, Value);

fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A schema of the documentation.
fn schema(name: &str) -> Value {
    let path = workspace().join(format!("docs/schemas/{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no {}", path.display()));
    serde_json::from_str(&text).expect("JSON")
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
        let required = std::env::var("RUBUS_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "Python's jsonschema is not installed, and RUBUS_REQUIRE_ALL=1 forbids skipping"
        );
        eprintln!("SKIPPED: no document was validated: Python's jsonschema is not installed");
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
