//! Absurd numbers and texts in every place of a run, a fleet, a survey: refused with a message or shown, but never a
//! panic.

mod strangers;

use rubus_fixtures::{job_file, memory, nas, network, processor, runs, sweeps};
use rubus_vocabulary::result::Run;
use serde_json::{Value, json};

fn fixtures() -> Vec<Run> {
    let mut all = vec![
        runs::slow_sd_card_run(),
        runs::remote_run(),
        runs::failed_run(),
        memory::memory_run(),
        processor::processor_run(),
        network::network_run(),
        nas::nas_run(),
        job_file::job_file_run(),
        sweeps::queue_depth_run(),
        sweeps::block_size_run(),
        sweeps::sustained_run(),
        sweeps::capacity_run(),
        sweeps::together_run(),
    ];
    all.extend(runs::runs_in_turns());
    all
}

const ODD: [fn() -> Value; 12] = [
    || json!(null),
    || json!(0),
    || json!(-1),
    || json!(1e308),
    || json!(1e29),
    || json!(u64::MAX),
    || json!(5e-324),
    || json!("\u{1b}[2Jx"),
    || json!([]),
    || json!({}),
    || json!(true),
    || json!(1),
];

/// Places of a document that are tried.
const MAX_PLACES: usize = 25;

/// Each leaf of a document replaced by two odd values, others for each leaf, and whole lists emptied.
fn each_odd(document: &Value, mut door: impl FnMut(&[u8])) -> usize {
    let mut places = Vec::new();
    all_places(document, String::new(), &mut places);
    // A fuzzer tries them all; here a share of the places is.
    let step = places.len().div_ceil(MAX_PLACES);
    for (at, place) in places.iter().enumerate().step_by(step) {
        for value in [ODD[at % ODD.len()](), ODD[(at / ODD.len() + 3) % ODD.len()]()] {
            let mut odd = document.clone();
            *odd.pointer_mut(place).expect("a place of it") = value;
            door(odd.to_string().as_bytes());
        }
    }
    places.len()
}

fn all_places(value: &Value, path: String, places: &mut Vec<String>) {
    let name = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| all_places(field, name(key), places));
        }
        Value::Array(items) => {
            // Of long lists the beginning is enough.
            let items = items.iter().take(3).enumerate();
            items.for_each(|(at, item)| all_places(item, name(&at.to_string()), places));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    places.push(path);
}

#[test]
fn odd_values_in_runs_are_refused_or_shown() {
    for run in fixtures() {
        let document = serde_json::to_value(&run).expect("JSON");
        let tried = each_odd(&document, strangers::run);
        assert!(tried > 100, "{tried}");
    }
}

#[test]
fn odd_values_in_galleries_fleets_and_surveys_are_refused_or_shown() {
    let run = serde_json::to_value(runs::slow_sd_card_run()).expect("JSON");
    let good = run.to_string();
    each_odd(&run, |bytes| {
        strangers::gallery(&[bytes, b"\n", good.as_bytes()].concat());
    });
    let board = |name: &str, run: &Value| json!({"name": name, "runs": [run], "history": [1]});
    each_odd(&run, |bytes| {
        let odd: Value = serde_json::from_slice(bytes).expect("JSON");
        let boards = [board("a", &run), board("b", &odd), board("c", &run)];
        strangers::fleet(json!({"command": "bench", "boards": boards}).to_string().as_bytes());
    });
    each_odd(&run["machine"], strangers::survey);
}

#[test]
fn every_door_takes_texts_that_are_cut_or_changed() {
    let run = serde_json::to_string(&runs::slow_sd_card_run()).expect("JSON");
    let smart = r#"{"rotation_rate": 0, "ata_smart_attributes": {"table": [{"id": 231, "name": "SSD_Life_Left", "value": 80, "raw": {"value": 80}}]}}"#;
    let seeds = [
        run.as_str(),
        smart,
        "[web]\npi[01:03]:22 ansible_user='pi' # x\n[web:vars]\nansible_port=1\n[a:children]\nweb\n",
        "all:\n  children:\n    web:\n      hosts: {h[1:3]: {ansible_port: 22}}\n",
        "boards = [\"pi[01:18]\"]\n[[board]]\nname = \"a\"\nport = 2\n",
        "{\"schema\":1}\n---\n{\"n\":1}\n{\"begun\":",
    ];
    let mut state = 1_u64;
    let mut below = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for seed in seeds {
        for (_, door) in strangers::ALL {
            for _ in 0..60 {
                let mut bytes = seed.as_bytes()[..=below(seed.len())].to_vec();
                for _ in 0..3 {
                    let at = below(bytes.len());
                    bytes[at] = b"[]{}:,\"#-0\n\xff e"[below(14)];
                }
                door(&bytes);
            }
        }
    }
}

/// What a terminal would obey, beside letters that are looked for in what is shown.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}\r";

/// The JSON of a run all of whose texts are hostile, as far as they are free texts, and how many these are.
fn with_hostile_texts(run: &Run) -> (String, usize) {
    let mut document = serde_json::to_value(run).expect("JSON");
    let mut places = Vec::new();
    all_places(&document, String::new(), &mut places);
    let mut hostile = 0;
    for place in places {
        let value = document.pointer_mut(&place).expect("a place of it");
        if !value.is_string() {
            continue;
        }
        let before = std::mem::replace(value, json!(HOSTILE));
        if serde_json::from_value::<Run>(document.clone()).is_ok() {
            hostile += 1;
        } else {
            *document.pointer_mut(&place).expect("a place of it") = before;
        }
    }
    (document.to_string(), hostile)
}

#[test]
fn no_text_of_a_run_reaches_a_terminal_raw() {
    for run in fixtures() {
        let (document, texts) = with_hostile_texts(&run);
        assert!(texts > 10, "{texts} in {}", run.suite);
        let hostile: Run = rubus_vocabulary::checked_json::from_str(&document).expect("a run");
        for (way, text) in strangers::shown(&hostile) {
            let raw = text.chars().find(|letter| letter.is_control() && *letter != '\n');
            let turned = text.contains('\u{202e}');
            let line =
                text.lines().find(|line| line.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']));
            assert!(raw.is_none() && !turned, "{way} of {}: {line:?}", run.suite);
        }
    }
}
