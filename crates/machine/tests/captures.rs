//! The survey of every capture in the repository, whole, as a golden text with one line for each
//! fact. Whatever changes in the survey is seen here.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rubus_host::capture::Captured;
use rubus_vocabulary::machine::{Machine, Origin};
use serde_json::Value;

/// Fields that say which item of a list it is, the best first.
const NAMING_FIELDS: [&str; 5] = ["id", "name", "point", "zone", "resource"];

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures")
}

/// The names of all captures.
fn names() -> Vec<String> {
    let mut names: Vec<String> = captures()
        .read_dir()
        .expect("the repository has captures")
        .map(|entry| entry.expect("the directory can be read"))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    names
}

fn survey(name: &str) -> Machine {
    let captured = Captured::open(&captures().join(name)).unwrap_or_else(|error| panic!("{error}"));
    let origin =
        Origin::Capture { path: format!("captures/{name}"), label: captured.label().to_string() };
    rubus_machine::probe::survey(&captured, captured.recorded_at(), origin)
}

/// One line per fact: its place, its value and where it was read, or why it is unknown.
fn told(machine: &Machine) -> String {
    let mut out = String::new();
    let value = serde_json::to_value(machine).expect("a machine is plain data");
    tell(&value, "", &mut out);
    out
}

fn tell(value: &Value, place: &str, out: &mut String) {
    match value {
        Value::Object(fields) if fields.contains_key("source") && fields.len() == 2 => {
            let source = fields["source"].as_str().unwrap_or_default();
            let (sign, said) = match (fields.get("value"), fields.get("unknown")) {
                (Some(value), _) => ('=', value),
                (_, Some(reason)) => ('?', reason),
                _ => panic!("{place} is neither known nor unknown"),
            };
            writeln!(out, "{place} {sign} {said} <- {source}").expect("strings do not fail");
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let dot = if place.is_empty() { "" } else { "." };
                tell(field, &format!("{place}{dot}{name}"), out);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                let mut item = item.clone();
                let key = take_name(&mut item).unwrap_or_else(|| at.to_string());
                tell(&item, &format!("{place}[{key}]"), out);
            }
        }
        Value::Null => {}
        other => writeln!(out, "{place} = {other}").expect("strings do not fail"),
    }
}

/// Takes the field out of an item that names it.
fn take_name(item: &mut Value) -> Option<String> {
    let fields = item.as_object_mut()?;
    let field =
        NAMING_FIELDS.iter().find(|field| fields.get(**field).is_some_and(Value::is_string))?;
    Some(fields.remove(*field)?.as_str()?.to_string())
}

#[test]
fn every_capture_has_its_golden_survey() {
    let names = names();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let text = told(&survey(&name));
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

#[test]
fn what_was_made_by_hand_says_so() {
    for name in names() {
        let captured = Captured::open(&captures().join(&name)).expect("it opens");
        let label = captured.label();
        assert!(
            label.starts_with("hand-built: ") || label.contains("recorded by rubus"),
            "{name}: {label}"
        );
    }
}

/// What the boards are here to show, in the words that a person reads.
#[test]
fn each_board_shows_its_narrow_place() {
    let link = |machine: &Machine, device: &str| {
        let device = machine.device(device).expect("the device is listed");
        let hops = device.path.iter().rev();
        hops.map(|hop| hop.link.clone()).collect::<Vec<_>>()
    };
    let pi2 = survey("pi2b-sd-usb-stick");
    assert_eq!(pi2.shared_buses[0].members, ["sda", "eth0"]);
    let pi3 = survey("pi3bplus-usb-ssd");
    assert_eq!(link(&pi3, "sda")[0], "USB 2, 480 Mbit/s (the device could do 5 Gbit/s)");
    let pi4 = survey("pi4b-usb3-ssd");
    assert_eq!(link(&pi4, "sda")[0], "USB 3, 5 Gbit/s");
    assert_eq!(link(&pi4, "mmcblk0")[0], "SD, UHS-I DDR50, 50 MHz × 4 lines");
    assert_eq!(pi4.shared_buses[0].members, ["sda", "sdb"]);
    let pi5 = survey("pi5-nvme");
    assert_eq!(link(&pi5, "nvme0n1")[1], "PCIe Gen 2 ×1 (of Gen 3 ×4)");
    let card = pi5.device("mmcblk0").and_then(|device| device.mmc.as_ref());
    assert_eq!(card.and_then(|card| card.command_queueing.get()), Some(true));
}
