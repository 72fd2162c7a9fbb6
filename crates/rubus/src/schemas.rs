//! A JSON Schema for every JSON document that the program prints: `docs/reference/schemas` holds them, made from the types.
//!
//! `UPDATE_SCHEMAS=1 cargo test -p rubus schemas` writes them again. Only tests have this file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rubus_advise::advice::{Advice, Known, Purpose};
use rubus_advise::decide::{Question, advise};
use rubus_change::fixture::long_plan::big_plan;
use rubus_change::fixture::plans::small_plan;
use rubus_change::plan::verify::{Answer, PromiseState};
use rubus_change::plan::{Plan, journal};
use rubus_fixtures as fixture;
use rubus_fleet::compare::FleetComparison;
use rubus_fleet::figures::{self, OfBoard};
use rubus_fleet::settings;
use rubus_machine::parse::btrfs::Compression;
use rubus_nbd::attach::records;
use rubus_nbd::disk_copy::DiskCopy;
use rubus_nbd::documents::{NbdCloneDocument, NbdClonesDocument, NbdInfoDocument, NbdListDocument};
use rubus_nbd::serving::lines::{EventLine, StatusLine};
use rubus_runs::compare::Comparison;
use rubus_runs::gallery::Entry;
use rubus_runs::history::RunSummary;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::figure::Named;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::published::Reference;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::spec::SuiteSummary;
use rubus_watch::{Header, Sample};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use self::shape::Shared;
use crate::commands::survey::document;
use crate::documents::{
    ChangeStatus, CompressionAt, CompressionDocument, CompressionSeen, CopyDocument,
    EnoughDocument, ExplainDocument, FleetBoard, FleetDocument, RecipeDocument, RuleDocument,
    RunDocument, SurveyDocument, VerifiedChange, VerifyDocument, WatchDocument, WritersDocument,
    ZswapCounters, ZswapDocument,
};

mod shape;
#[path = "../tests/schemas/validator.rs"]
pub mod validator;

/// One document, or a list of them where a command was given several targets.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrList<T> {
    One(T),
    List(Vec<T>),
}

/// A line of a recording: the first is the header, each further one a sample.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RecordingLine {
    Header(Header),
    Sample(Box<Sample>),
}

/// A schema: its name, what prints such documents, and how it is made.
type Printed = (&'static str, &'static str, fn(&mut SchemaGenerator) -> Schema);

fn all() -> Vec<Printed> {
    vec![
        of::<OneOrList<RunDocument>>(
            "run",
            "rubus bench --json FILE, rubus checkup --json, rubus history show --json",
        ),
        of::<OneOrList<SurveyDocument>>("survey", "rubus survey --json"),
        of::<rubus_machine::start::StartReport>("boot", "rubus boot --json"),
        of::<Plan>("plan", "rubus plan RECIPE --json"),
        of::<Vec<ChangeStatus>>("status", "rubus status --json"),
        of::<VerifyDocument>("verify", "rubus verify --json"),
        of::<journal::Record>("journal", "a line of a change's journal"),
        of::<Comparison>("compare", "rubus compare --json"),
        of::<Advice>("advise", "rubus advise --json"),
        of::<rubus_cluster::report::Report>("cluster-size", "rubus cluster size --json"),
        of::<Vec<rubus_cluster::boards::Board>>("cluster-boards", "rubus cluster boards --json"),
        of::<rubus_cluster::compare::Comparison>("cluster-compare", "rubus cluster compare --json"),
        of::<Vec<rubus_cluster::spec::File>>("cluster-spec", "rubus cluster spec --json"),
        of::<FleetDocument>(
            "fleet",
            "rubus checkup --on @FILE --json, rubus bench --on @FILE --json FILE, rubus survey --on @FILE --json, \
             rubus advise --on @FILE --json",
        ),
        of::<FleetComparison>("fleet-compare", "rubus compare FLEET FLEET --json"),
        of::<Vec<RunSummary>>("history", "rubus history --json"),
        of::<Vec<Entry>>("gallery", "rubus gallery --json"),
        of::<Vec<Reference>>("references", "rubus compare --list-references --json"),
        of::<Vec<SuiteSummary>>("suites", "rubus suites --json"),
        of::<EnoughDocument>("enough", "rubus enough --json"),
        of::<ExplainDocument>("explain", "rubus explain --json"),
        of::<Vec<RuleDocument>>("rules", "rubus survey --rules --json"),
        of::<Vec<RecipeDocument>>("recipes", "rubus recipes --json"),
        of::<WatchDocument>("watch", "rubus watch --once --json"),
        of::<WritersDocument>("writers", "rubus writers --json"),
        of::<RecordingLine>("recording", "a line of rubus watch --record FILE"),
        of::<ZswapDocument>("zswap", "rubus zswap --json"),
        of::<CompressionDocument>("compression", "rubus compression --json"),
        of::<CopyDocument>("copy", "rubus copy --json"),
        of::<NbdInfoDocument>("nbd-info", "rubus nbd info --json"),
        of::<NbdListDocument>("nbd-list", "rubus nbd list --json"),
        of::<NbdClonesDocument>("nbd-clones", "rubus nbd clones list --json"),
        of::<DiskCopy>("nbd-copy", "rubus nbd copy --json"),
        of::<OneOrList<records::Record>>("attach", "rubus attach --json"),
        of::<EventLine<'_>>("serve-event", "a line of rubus serve --json"),
        of::<StatusLine<'_>>("serve-status", "a line of rubus serve --status PLACE"),
    ]
}

/// The schema of what a type prints.
fn of<T: JsonSchema>(name: &'static str, printed_by: &'static str) -> Printed {
    (name, printed_by, |generator| generator.subschema_for::<T>())
}

/// The text of each file in `docs/reference/schemas` by its name.
fn files() -> BTreeMap<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let roots = all().into_iter().map(|(name, printed_by, schema)| {
        let schema = Value::from(schema(&mut generator));
        (name, printed_by, schema)
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
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
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
fn the_documentation_names_every_schema_and_what_prints_it() {
    let page = fs::read_to_string(directory().join("../json.md")).expect("docs/reference/json.md");
    for (name, printed_by, _) in all() {
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

/// Every kind of line of a journal.
fn journal_lines() -> Vec<journal::Record> {
    use journal::{Receipt, Record, Way};
    let now = || "2026-11-21T01:02:03Z".to_string();
    let receipt = Receipt { planned: "as planned".into(), live: "as found".into() };
    let (way, step) = (Way::Apply, 0);
    let (at, boot) = (now(), Some("a boot".into()));
    let (disk, words) = ("/dev/sda".into(), "SERIAL".into());
    let ends = Some("a sum".into());
    let why = "asked for".into();
    vec![
        Record::Turned { way, why, at },
        Record::Confirmed { disk, words, ends, boot: boot.clone() },
        Record::Begun { step },
        Record::Done { step, receipt },
        Record::Refused { step },
        Record::OnTrial { at: now(), boot },
        Record::Committed { at: now() },
        Record::Finished { way: Way::Undo, at: now(), boot: None },
    ]
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
    for plan in [small_plan(), big_plan()] {
        let plan = value(&|| serde_json::to_value(&plan));
        all.push((format!("plan {}", plan["recipe"]), "plan", plan));
    }
    for line in journal_lines() {
        let line = value(&|| serde_json::to_value(&line));
        all.push((format!("journal {}", line["record"]), "journal", line));
    }
    all.push(("a fleet".into(), "fleet", fleet()));
    all.push(("a comparison of fleets".into(), "fleet-compare", two_fleets()));
    let compression = Compression::default();
    let seen = CompressionSeen::Known { share: 0.5, files: &compression };
    let unknown = CompressionSeen::Unknown { unknown: "busy" };
    let at = |seen| CompressionAt { at: "/".into(), seen };
    let promises = [Answer {
        what: "swap is on".into(),
        standing: PromiseState::Holds,
        found: "it is".into(),
    }];
    let words = ["a remark".to_string()];
    let verified = VerifyDocument {
        holds: true,
        next: NextStep::by_hand("nothing"),
        changes: vec![VerifiedChange {
            name: "swap-1",
            title: "Swap",
            is_finished: true,
            is_on_trial: false,
            is_kept_now: false,
            started_since: true,
            holds: true,
            promises: &promises,
            compression: vec![at(seen), at(unknown)],
            zswap: ZswapCounters { enabled: Some(true), counters: [("stored_pages", 7)].into() },
            remarks: &words,
        }],
        half_undone: &words,
    };
    let verified = value(&|| serde_json::to_value(&verified));
    all.push(("a verification".into(), "verify", verified));
    let clones = NbdClonesDocument {
        clones: vec![NbdCloneDocument {
            name: "pi".into(),
            standing: "left",
            why: None,
            taken_bytes: 4096,
            generation: Some(0),
            size_bytes: Some(8192),
            own_bytes: Some(512),
            is_shared: Some(false),
            golden: Some("/srv/golden.img".into()),
        }],
    };
    let clones = value(&|| serde_json::to_value(&clones));
    all.push(("clones".into(), "nbd-clones", clones));
    let compression =
        CompressionDocument { paths: vec!["/".into()], total: compression.total(), compression };
    let compression = value(&|| serde_json::to_value(&compression));
    all.push(("a compression".into(), "compression", compression));
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
