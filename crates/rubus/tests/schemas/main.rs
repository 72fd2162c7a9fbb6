//! What the program prints is as the JSON Schemas in `docs/reference/schemas` say, and what is not is refused.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;

use assert_cmd::Command;
use rubus_fixtures as fixture;
use rubus_fixtures::validator::{Document, must_be_invalid, must_be_valid};
use rubus_vocabulary::result::Run;
use serde_json::{Value, json};

const CAPTURES: [&str; 6] = [
    "emulated-pi3",
    "pi2b-sd-usb-stick",
    "pi3bplus-usb-ssd",
    "pi4b-usb3-ssd",
    "pi5-nvme",
    "vm-virtio",
];
const PURPOSES: [&str; 5] = ["desktop", "server", "logger", "storage-node", "swap"];

/// What the program says in a home of its own.
fn said(home: &Path, line: &str) -> String {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = Command::cargo_bin("rubus")
        .expect("the program is built")
        .current_dir(home)
        .env("XDG_DATA_HOME", home)
        .args(&arguments)
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    // 1: it was answered, and the answer is no.
    let is_answered = matches!(output.status.code(), Some(0 | 1));
    assert!(is_answered, "rubus {line}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn printed(home: &Path, schema: &'static str, line: &str) -> Document {
    let text = said(home, line);
    let value = serde_json::from_str(&text);
    let value = value.unwrap_or_else(|why| panic!("rubus {line}: {why}: {text}"));
    (format!("rubus {line}"), schema, value)
}

/// The schemas of the verbs that judge, with where their next step is.
const JUDGES: [(&str, &str); 14] = [
    ("survey", "/next"),
    ("advise", "/next"),
    ("enough", "/next"),
    ("writers", "/next"),
    ("watch", "/next"),
    ("zswap", "/report/next"),
    ("compare", "/next"),
    ("cluster-size", "/next"),
    ("cluster-compare", "/next"),
    ("fleet", "/next"),
    ("fleet-compare", "/next"),
    ("verify", "/next"),
    ("boot", "/next"),
    ("tune", "/next"),
];

/// Programs that are not ours and may be a next step: `top` is that of a machine whose processors are busy, and `apt` installs what
/// a plan needs first.
const PROGRAMS_OF_OTHERS: [&str; 2] = ["top", "apt"];

/// That each document of a verb that judges says what to do next, and that the program takes the command.
fn must_say_what_to_do(home: &Path, all: &[Document]) {
    for (name, schema, document) in all {
        let Some((_, place)) = JUDGES.iter().find(|(judge, _)| judge == schema) else { continue };
        // Of several machines there is one document each.
        let first = document.get(0).unwrap_or(document);
        let next = first.pointer(place).unwrap_or_else(|| panic!("{name}: no next step"));
        let words = next["words"].as_str().expect("words");
        assert!(!words.is_empty() && !words.ends_with('.'), "{name}: {words:?}");
        let Some(command) = next["command"].as_array() else { continue };
        let command: Vec<&str> = command.iter().map(|word| word.as_str().expect("text")).collect();
        let arguments = match command.split_first() {
            Some((&"sudo", rest)) if rest.first() == Some(&"rubus") => &rest[1..],
            Some((&"rubus", rest)) => rest,
            Some((&"sudo", [program, _, ..])) if PROGRAMS_OF_OTHERS.contains(program) => continue,
            Some((program, _)) if PROGRAMS_OF_OTHERS.contains(program) => continue,
            _ => panic!("{name}: {command:?}"),
        };
        // What stands before --help is parsed, and is refused where it is wrong.
        let output = Command::cargo_bin("rubus")
            .expect("the program is built")
            .current_dir(home)
            .args(arguments)
            .arg("--help")
            .output()
            .expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}: {errors}", command.join(" "));
    }
}

/// Each of them has it in every document, and the test above can fail.
#[test]
fn every_verb_that_judges_has_a_next_step() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schemas");
    let read = |name: &str| -> Value {
        let file = Path::new(directory).join(format!("{name}.schema.json"));
        let text = std::fs::read_to_string(&file).expect("a schema");
        serde_json::from_str(&text).expect("JSON")
    };
    let types = read("types");
    let has_next_step = |name: &String| {
        let schema = read(name);
        // The type of a whole document may be one that others use, too.
        let text = schema.to_string();
        let links = text.split("types.schema.json#/$defs/").skip(1);
        let mut links = links.filter_map(|link| link.split('"').next());
        let is_there = |schema: &Value| schema.to_string().contains("/NextStep");
        is_there(&schema) || links.any(|shared| is_there(&types["$defs"][shared]))
    };
    let files = std::fs::read_dir(directory).expect("the schemas");
    let names = files.filter_map(|file| {
        let file = file.expect("a file").file_name().into_string().expect("a name");
        file.strip_suffix(".schema.json").filter(|name| *name != "types").map(str::to_string)
    });
    let found: BTreeSet<String> = names.filter(has_next_step).collect();
    assert_eq!(found, JUDGES.iter().map(|(name, _)| name.to_string()).collect());
    for wrong in [json!({}), json!({"next": {"words": "", "command": ["rubus", "survey"]}})] {
        let document = ("wrong".to_string(), "boot", wrong);
        let tried = std::panic::catch_unwind(|| must_say_what_to_do(home.path(), &[document]));
        assert!(tried.is_err());
    }
    let wrong = json!({"next": {"words": "look", "command": ["rubus", "survey", "--deep"]}});
    let document = ("wrong".to_string(), "boot", wrong);
    let tried = std::panic::catch_unwind(|| must_say_what_to_do(home.path(), &[document]));
    assert!(tried.is_err());
}

fn capture(name: &str) -> String {
    format!("{}/../../captures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs with everything that a run can have.
fn runs() -> Vec<Run> {
    let mut runs = fixture::suite_runs();
    runs.extend([
        fixture::slow_sd_card_run_a_day_later(),
        fixture::remote_run(),
        fixture::failed_run(),
        fixture::job_file_run(),
        fixture::network_run(),
        fixture::nas_run(),
        fixture::memory_run(),
        fixture::processor_run(),
    ]);
    runs.extend(fixture::runs_in_turns());
    let mut all_doubts = fixture::slow_sd_card_run();
    all_doubts.doubts = fixture::every_doubt();
    all_doubts.findings = rubus_verdict::fixture::every_finding();
    runs.push(all_doubts);
    // The history keeps one run of a moment.
    for (number, run) in runs.iter_mut().enumerate() {
        run.started = format!("2026-11-21T01:{number:02}:03.000Z");
    }
    runs
}

/// A home whose history has all these runs; returns how many.
fn home() -> (tempfile::TempDir, usize) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let runs = runs();
    let text = serde_json::to_string(&runs).expect("JSON");
    std::fs::write(home.path().join("runs.json"), text).expect("a file");
    said(home.path(), "history import runs.json");
    (home, runs.len())
}

#[test]
fn runs_and_what_is_made_of_them() {
    let (home, count) = home();
    let home = home.path();
    let show = |number| printed(home, "run", &format!("history show {number} --json"));
    let mut all: Vec<Document> = (1..=count).map(show).collect();
    let list = all.iter().take(2).map(|(_, _, run)| run.clone());
    all.push(("runs of two targets".into(), "run", list.collect()));
    all.extend([
        printed(home, "history", "history --json"),
        printed(home, "gallery", "gallery runs.json --json"),
        printed(home, "compare", "compare 1 2 --json"),
        printed(home, "compare", "compare last last~1 3 --json"),
        printed(home, "compare", "compare 1 --reference --json"),
        printed(home, "references", "compare --list-references --json"),
        printed(home, "suites", "suites --json"),
    ]);
    must_be_valid(&all);
    must_say_what_to_do(home, &all);
}

#[test]
fn what_is_said_of_captured_machines() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path();
    let mut all = vec![
        printed(home, "rules", "survey --rules --json"),
        printed(home, "recipes", "recipes --json"),
    ];
    for name in CAPTURES {
        let machine = capture(name);
        let of = |schema, line: &str| printed(home, schema, &format!("{line} --machine {machine}"));
        all.push(of("survey", "survey --json"));
        all.push(of("boot", "boot --json"));
        all.push(of("explain", "explain usb3-disk-at-usb2 --json"));
        all.push(of("zswap", "zswap --json"));
        for purpose in PURPOSES {
            all.push(of("advise", &format!("advise --json {purpose}")));
        }
        all.push(of("plan", "plan swap to=none --json"));
        all.push(of("plan", "plan ramdisk at=/mnt/ram --json"));
    }
    let pi4 = capture("pi4b-usb3-ssd");
    for recipe in [
        "desktop device=/dev/sdb",
        "swap to=disk:/dev/sdb size=1G",
        "raid0 devices=/dev/sda,/dev/sdb at=/mnt/fast",
        "format device=/dev/sda at=/mnt/data filesystem=btrfs",
    ] {
        let line = format!("plan {recipe} --json --machine {pi4}");
        all.push(printed(home, "plan", &line));
    }
    let surveys = all.iter().filter(|(_, schema, _)| *schema == "survey");
    let surveys = surveys.map(|(_, _, survey)| survey.clone()).collect();
    all.push(("several surveys".into(), "survey", surveys));
    must_be_valid(&all);
    must_say_what_to_do(home, &all);
}

#[test]
fn what_is_said_of_clusters() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path();
    let size = "--nodes 4 --disk 1TB --ec 3+1 --node-price 100 --disk-price 100 --power-price 25";
    let all = [
        printed(home, "cluster-size", &format!("cluster size {size} --json")),
        printed(
            home,
            "cluster-size",
            "cluster size --nodes 5 --board pi4-8gb --disk 1TB --replica 3 --json",
        ),
        printed(home, "cluster-compare", "cluster compare --nodes 4 --disk 1TB --json"),
        printed(
            home,
            "cluster-spec",
            "cluster spec --nodes 5 --board pi4-8gb --disk 1TB --ec 2+2 --fast-ec --json",
        ),
        printed(home, "cluster-boards", "cluster boards --json"),
    ];
    must_be_valid(&all);
    must_say_what_to_do(home, &all);
}

#[test]
fn what_is_said_of_this_machine() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path();
    let once = "watch --once --interval 0.2 --record night.jsonl --json";
    let mut all = vec![
        printed(home, "survey", "survey --json"),
        printed(home, "watch", once),
        printed(home, "watch", "watch --replay night.jsonl --once --json"),
    ];
    let recording = std::fs::read_to_string(home.join("night.jsonl")).expect("a recording");
    assert!(recording.lines().count() > 2, "{recording}");
    for (number, line) in recording.lines().enumerate() {
        let value = serde_json::from_str(line).expect("JSON");
        all.push((format!("line {number} of a recording"), "recording", value));
    }
    all.push(printed(home, "writers", "writers night.jsonl --json"));
    std::fs::create_dir(home.join("from")).expect("a directory");
    std::fs::write(home.join("from/file"), "words").expect("a file");
    std::fs::write(home.join("disk.img"), [7; 8192]).expect("a file");
    all.extend([
        printed(home, "copy", "copy from to --verify all --json"),
        printed(home, "nbd-copy", "nbd copy disk.img other.img --json"),
    ]);
    must_be_valid(&all);
    must_say_what_to_do(home, &all);
}

#[test]
fn what_is_said_of_storage_and_nothing_is_left_there() {
    // Where the tests are built is a disk, which the temporary directory need not be.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let home = home.path();
    std::fs::create_dir(home.join("storage")).expect("a directory");
    let answer = printed(home, "enough", "enough etcd storage --time 10s --json");
    assert!(answer.2["commits"].as_u64() > Some(0), "{}", answer.2);
    must_be_valid(std::slice::from_ref(&answer));
    must_say_what_to_do(home, &[answer]);
    let left = std::fs::read_dir(home.join("storage")).expect("the directory");
    assert_eq!(left.count(), 0);
}

/// A server that ends with the test.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_said_of_a_network_disk() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path();
    std::fs::write(home.join("disk.img"), [0; 8192]).expect("a file");
    let server = std::process::Command::new(env!("CARGO_BIN_EXE_rubus"))
        .current_dir(home)
        .args(["serve", "disk.img", "--unix", "socket", "--quiet"])
        .spawn();
    let _server = Server(server.expect("it starts"));
    until("the server does not listen", || home.join("socket").exists());
    std::fs::create_dir(home.join("clones")).expect("a directory");
    must_be_valid(&[
        printed(home, "nbd-info", "nbd info nbd+unix:///disk?socket=socket --json"),
        printed(home, "nbd-list", "nbd list nbd+unix:///?socket=socket --json"),
        printed(home, "nbd-clones", "nbd clones list clones --json"),
    ]);
}

/// The event lines of a server about clients that use it, query it and are refused, and about readers of its status.
#[test]
fn what_a_server_prints_while_it_serves() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let home = home.path();
    std::fs::write(home.join("disk.img"), [0; 8192]).expect("a file");
    let events = std::fs::File::create(home.join("events")).expect("a file");
    let server = std::process::Command::new(env!("CARGO_BIN_EXE_rubus"))
        .current_dir(home)
        .args(["serve", "disk.img", "--unix", "socket"])
        .args(["--status", "status", "--json"])
        .stderr(events)
        .spawn();
    let mut server = Server(server.expect("it starts"));
    until("the server does not listen", || {
        home.join("socket").exists() && home.join("status").exists()
    });
    let status = UnixStream::connect(home.join("status")).expect("the status");
    let mut lines = BufReader::new(status).lines();
    let mut all = vec![line_of("serve-status", &lines.next().unwrap().unwrap())];

    said(home, "nbd list nbd+unix:///?socket=socket --json");
    said(home, "nbd copy nbd+unix:///disk?socket=socket copy.img --json");
    let client = UnixStream::connect(home.join("socket")).expect("the server");
    drop(client);
    let text = || std::fs::read_to_string(home.join("events")).expect("events");
    let has = |event: &str| text().contains(&format!("\"event\":\"{event}\""));
    for event in ["said", "came", "went", "asked", "left"] {
        until(event, || has(event));
    }
    all.push(line_of("serve-status", &lines.next().unwrap().unwrap()));
    assert!(!all[1].2["rates"].is_null(), "{all:?}");
    drop(lines);
    let id = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    server.0.wait().expect("it ends");
    all.extend(text().lines().map(|line| line_of("serve-event", line)));
    assert!(all.len() > 7, "{all:?}");
    must_be_valid(&all);
}

fn line_of(schema: &'static str, line: &str) -> Document {
    let value = serde_json::from_str(line);
    let value = value.unwrap_or_else(|why| panic!("{why}: {line}"));
    (format!("a line: {line}"), schema, value)
}

/// Waits until something is so that takes another process.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let since = std::time::Instant::now();
    while !is_so() {
        assert!(since.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Else the tests above would prove nothing.
#[test]
fn a_broken_document_is_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let run = fixture::slow_sd_card_run();
    let text = serde_json::to_string(&run).expect("JSON");
    std::fs::write(home.path().join("run.json"), text).expect("a file");
    said(home.path(), "history import run.json");
    let (_, _, good) = printed(home.path(), "run", "history show 1 --json");
    let broken = |name: &str, break_it: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        break_it(&mut document);
        assert_ne!(document, good, "{name}");
        (name.to_string(), "run", document)
    };
    must_be_valid(&[("the run".into(), "run", good.clone())]);
    must_be_invalid(&[
        broken("a field that no type has", &|run| run["speed"] = json!(1)),
        broken("such a field deeper down", &|run| {
            run["results"][0]["bytes_per_second"]["middle"] = json!(1);
        }),
        broken("such a field of a fact", &|run| {
            run["machine"]["board"]["model"]["guess"] = json!("a board");
        }),
        broken("no start", &|run| {
            run.as_object_mut().expect("an object").remove("started");
        }),
        broken("a text instead of a number", &|run| run["seed"] = json!("7")),
        broken("a kind of target that there is not", &|run| {
            run["target"]["kind"] = json!("cloud");
        }),
        broken("a doubt of an unknown kind", &|run| {
            run["doubts"] = json!([{"kind": "moon_phase"}]);
        }),
        ("an empty object".into(), "run", json!({})),
        ("nothing".into(), "run", Value::Null),
    ]);
}
