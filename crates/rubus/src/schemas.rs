//! A JSON Schema for every JSON document that the program prints: `docs/reference/schemas` holds them, made from the types.
//!
//! `UPDATE_SCHEMAS=1 cargo test -p rubus schemas` writes them again. Only tests have this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;
use rubus_advise::advice::{Advice, Known, Purpose};
use rubus_advise::decide::{Question, advise};
use rubus_bench::cli::enough::EnoughDocument;
use rubus_fixtures as fixture;
use rubus_fixtures::validator;
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::settings;
use rubus_runs::run_document::RunDocument;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::figure::Named;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::verb::Document;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use self::shape::Shared;
use crate::args::Args;
use crate::commands::survey::document;
use crate::documents::{ExplainDocument, FleetBoard, FleetDocument, RuleDocument, SurveyDocument};

mod layout;
mod shape;

/// One document, or a list of them where a command was given several targets.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrList<T> {
    One(T),
    List(Vec<T>),
}

/// In the order of their names, so that the numbers of types with equal names do not depend on the order of this list.
fn all() -> Vec<Document> {
    let own = vec![
        Document::of::<OneOrList<RunDocument>>(
            "run",
            "rubus bench --json FILE, rubus bench cpu --json FILE, rubus bench memory --json FILE, rubus checkup --json, \
             rubus history show --json",
        ),
        Document::of::<OneOrList<SurveyDocument>>("survey", "rubus survey --json"),
        Document::of::<Advice>("advise", "rubus advise --json"),
        Document::of::<FleetDocument>(
            "fleet",
            "rubus checkup --on @FILE --json, rubus bench --on @FILE --json FILE, rubus survey --on @FILE --json, \
             rubus advise --on @FILE --json",
        ),
        Document::of::<ExplainDocument>("explain", "rubus explain --json"),
        Document::of::<Vec<RuleDocument>>("rules", "rubus survey --rules --json"),
    ];
    let mut all = [
        own,
        rubus_bench::cli::documents(),
        rubus_boot_check::cli::documents(),
        rubus_recipes::cli::documents(),
        rubus_cluster::cli::documents(),
        rubus_copy::cli::documents(),
        rubus_fleet::cli::documents(),
        rubus_memory::cli::documents(),
        rubus_nbd_tools::cli::documents(),
        rubus_processor::cli::documents(),
        rubus_runs::cli::documents(),
        rubus_tune::cli::documents(),
        rubus_watch::cli::documents(),
    ]
    .concat();
    all.sort_by_key(|document| document.name);
    all
}

/// The text of each file in `docs/reference/schemas` by its name.
fn files() -> BTreeMap<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let roots = all().into_iter().map(|document| {
        let schema = Value::from((document.schema)(&mut generator));
        (document.name, document.printed_by, schema)
    });
    let roots: Vec<_> = roots.collect();
    let definitions = generator.take_definitions(true);
    let shared = Shared::new(definitions, roots.iter().map(|(_, _, schema)| schema));
    let mut files: BTreeMap<String, Value> = roots
        .into_iter()
        .map(|(name, printed_by, schema)| {
            let mut schema = shared.document(schema);
            schema["title"] = json!(format!("Rubus: {name}"));
            schema["$comment"] = json!(format!("Printed by: {printed_by}"));
            (format!("{name}.schema.json"), schema)
        })
        .collect();
    files.insert(shape::SHARED_FILE.into(), shared.file());
    files
}

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schemas"))
}

#[test]
fn the_schemas_in_the_documentation_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value != "0");
    let mut expected: Vec<String> = Vec::new();
    for (file, schema) in files() {
        let text = layout::text(&schema);
        let path = directory().join(&file);
        if update {
            fs::create_dir_all(directory()).expect("the directory");
            fs::write(&path, &text).expect("it can be written");
        }
        let is_current = fs::read_to_string(&path).is_ok_and(|found| found == text);
        assert!(
            is_current,
            "docs/reference/schemas/{file} is not what the types say; see the changes with \
             UPDATE_SCHEMAS=1 cargo test -p rubus schemas"
        );
        expected.push(file);
    }
    let found = fs::read_dir(directory()).expect("the schemas");
    let names = found.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "a schema that nothing prints");
}

#[test]
fn the_layout_keeps_every_value() {
    for (file, schema) in files() {
        let text = layout::text(&schema);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read, schema, "{file}");
        assert_eq!(layout::text(&read), text, "{file}");
    }
}

#[test]
fn the_documentation_names_every_schema_and_what_prints_it() {
    let page = fs::read_to_string(directory().join("../json.md")).expect("docs/reference/json.md");
    for Document { name, printed_by, .. } in all() {
        let link = format!("[{name}](schemas/{name}.schema.json)");
        let row = page.lines().find(|line| line.contains(&link));
        let row = row.unwrap_or_else(|| panic!("docs/reference/json.md does not have {link}"));
        for command in printed_by.split(", ") {
            let command =
                command.trim_start_matches("a line of ").trim_start_matches("a change's ");
            assert!(row.contains(command), "{name}: {command}: {row}");
        }
    }
}

/// Commands below this one that take `--json`, as they are typed.
fn with_json(command: &clap::Command, typed: &str) -> Vec<String> {
    let own = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
    let below = command.get_subcommands().flat_map(|each| {
        let name = each.get_name();
        if name == "help" { Vec::new() } else { with_json(each, &format!("{typed} {name}")) }
    });
    own.then(|| typed.to_string()).into_iter().chain(below).collect()
}

#[test]
fn whatever_prints_json_has_a_schema() {
    let all = all();
    let printed = || all.iter().flat_map(|document| document.printed_by.split(", "));
    let has_schema = |typed: &String| printed().any(|line| line.contains(typed.as_str()));
    let mut typed = with_json(&Args::command(), "rubus");
    assert!(typed.len() > 20, "{typed:?}");
    typed.retain(|typed| !has_schema(typed));
    assert_eq!(typed, Vec::<String>::new());
}

/// What a fleet gives: a board with runs, one with a survey and advice, one that failed.
fn fleet() -> Value {
    let runs: Vec<Run> = [1.0, 1.0, 3.0]
        .map(|slower| {
            let mut run = fixture::remote_run();
            for result in &mut run.results {
                result.iops = result.iops.scaled(1.0 / slower);
            }
            run
        })
        .into();
    let of_board = |(board, run)| OfBoard { board, number: Some(7), run };
    let of_boards: Vec<OfBoard> = runs.iter().enumerate().map(of_board).collect();
    let outliers = figures::outliers(&figures::table(&of_boards), &["a", "b", "c"]);
    assert!(!outliers.outliers.is_empty());
    let named = |value: &str| Named { name: "kernel".into(), value: Some(value.into()) };
    let differences = settings::differences(&[
        ("a", vec![named("6.12")]),
        ("b", vec![named("6.6")]),
        ("c", Vec::new()),
    ]);
    let groups = ["shelf".to_string()];
    let board = |name| FleetBoard {
        name,
        address: Some("pi@10.0.0.7, Port=2222".into()),
        groups: &groups,
        status: 0,
        failure: None,
        runs: Vec::new(),
        history: Vec::new(),
        survey: None,
        advice: None,
    };
    let judged = rubus_verdict::verdict::verdict(&runs[0]);
    let measured = FleetBoard {
        runs: vec![RunDocument { run: &runs[0], verdict: Some(&judged) }],
        history: vec![Some(7)],
        ..board("a")
    };
    let known = Known::of(&runs[0].machine, &[]);
    let question =
        Question { machine: &runs[0].machine, known: &known, purpose: Purpose::Desktop, with: &[] };
    let advice = advise(&question).expect("advice");
    let surveyed = FleetBoard {
        survey: Some(document(&runs[0].machine)),
        advice: Some(&advice),
        ..board("b")
    };
    let failed = FleetBoard {
        status: 2,
        failure: Some("Connection refused"),
        address: None,
        groups: &[],
        ..board("c")
    };
    let document = FleetDocument {
        command: "bench",
        next: NextStep::command(&["rubus", "survey", "--on", "c"], "why"),
        boards: vec![measured, surveyed, failed],
        differences: &differences,
        outliers: Some(&outliers),
    };
    serde_json::to_value(&document).expect("JSON")
}

/// The fleet at two times: a board that is compared, one that failed, one that is new.
fn two_fleets() -> Value {
    let before = serde_json::from_value(fleet()).expect("what is printed is read");
    let mut after: rubus_fleet::compare::Document =
        serde_json::from_value(fleet()).expect("what is printed is read");
    after.boards[1].name = "new".into();
    after.boards[0].runs[0].machine.system.kernel_release = Fact::known("7".into(), "a test");
    let [before, after] = [("before", &before), ("after", &after)]
        .map(|(name, document)| rubus_fleet::compare::Fleet { name, document });
    let compared = rubus_fleet::compare::compare(before, after);
    assert!(!compared.rows.is_empty() && !compared.changes.is_empty());
    assert!(compared.missing.len() >= 3, "{:?}", compared.missing);
    serde_json::to_value(&compared).expect("JSON")
}

#[test]
fn what_no_command_prints_without_root_is_as_its_schema_says() {
    let value = |it: &dyn Fn() -> serde_json::Result<Value>| it().expect("JSON");
    let mut all: Vec<validator::Document> = Vec::new();
    all.push(("a fleet".into(), "fleet", fleet()));
    all.push(("a comparison of fleets".into(), "fleet-compare", two_fleets()));
    let run = fixture::slow_sd_card_run();
    let etcd = rubus_verdict::enough::by_name("etcd").expect("it is listed");
    let seen = rubus_verdict::enough::Evidence::of(&run.results[0]);
    let question = rubus_verdict::enough::Question { workload: etcd, place: "/", seconds: 60.0 };
    let judgement = rubus_verdict::enough::judge(&question, &seen);
    let enough = EnoughDocument { judgement, run: &run };
    let enough = value(&|| serde_json::to_value(&enough));
    all.push(("an answer".into(), "enough", enough));
    validator::must_be_valid(&all);
}
