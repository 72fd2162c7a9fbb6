//! Ordinary runs keep what was measured.

use super::*;
use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::mount_entry::Entry;
use rubus_vocabulary::result::Run;

#[test]
fn an_ordinary_run_keeps_all_that_was_measured_and_every_sentence() {
    let run = fixture::slow_sd_card_run();
    let said = shared(&run).unwrap();
    assert_eq!(said.machine.board.model, run.machine.board.model);
    insta::assert_snapshot!(differences_of(&run, &said));
    assert_eq!(differences_of(&said, &shared(&said).unwrap()), "", "a second time changes nothing");
}

fn differences_of(a: &Run, b: &Run) -> String {
    let mut differing = Vec::new();
    let [a, b] = [a, b].map(|run| serde_json::to_value(run).unwrap());
    differences(&a, &b, "", &mut differing);
    differing.join("\n")
}

/// Each place in which two values differ, with both.
fn differences(a: &Value, b: &Value, at: &str, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for (field, one) in x {
                differences(
                    one,
                    y.get(field).unwrap_or(&Value::Null),
                    &format!("{at}.{field}"),
                    out,
                );
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (number, (one, other)) in x.iter().zip(y).enumerate() {
                differences(one, other, &format!("{at}[{number}]"), out);
            }
        }
        _ if a != b => out.push(format!("{at}: {a} -> {b}")),
        _ => {}
    }
}

/// Variants of a finding may have a field of one name, as the block of a knee, a number, and that of a bend, an estimate.
#[test]
fn a_run_of_each_suite_stays_readable_with_all_figures_of_its_findings() {
    for run in fixture::suite_runs() {
        let [before, after] =
            [&run, &shared(&run).unwrap()].map(|run| serde_json::to_value(&run.findings).unwrap());
        let blocks = |findings: &Value| {
            let findings = findings.as_array().into_iter().flatten();
            findings.map(|finding| finding["block_bytes"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(blocks(&before), blocks(&after), "{}", run.suite);
    }
}

/// A line of fstab without a single known option is still a line.
#[test]
fn a_run_stays_readable_whatever_its_fstab_has() {
    let mut run = fixture::slow_sd_card_run();
    let line = |options: &str| Entry::new("//nas/x", "/mnt/x", "cifs", options);
    let lines = vec![line("credentials=/home/alice/.smb"), line("rw,username=alice")];
    run.machine.fstab = Fact::known(lines, "/etc/fstab");
    let said = shared(&run).unwrap();
    let options = said.machine.fstab.value().unwrap().iter().map(|line| line.options.as_str());
    assert_eq!(options.collect::<Vec<_>>(), ["defaults", "rw"]);
}

#[test]
fn one_thing_has_one_pseudonym_in_all_fields() {
    let mut run = fixture::slow_sd_card_run();
    let line = "root=PARTUUID=4f2a9c1d-02 rootwait wifi.password=tr0ub4dor";
    run.machine.system.command_line = Fact::known(line.into(), "/proc/cmdline");
    run.machine.block_devices[1].identity.partuuid = Some("4f2a9c1d-02".into());
    run.target.path = "/home/alice/bench".into();
    let said = shared(&run).unwrap();
    let line = said.machine.system.command_line.text().unwrap();
    assert_eq!(line, "root=PARTUUID=uuid-1-02 rootwait …");
    assert_eq!(said.machine.block_devices[1].identity.partuuid.as_deref(), Some("uuid-1-02"));
    assert_eq!(said.target.path, "/home/name-1/bench");
}

#[test]
fn a_field_without_a_rule_is_dropped_with_all_below_it() {
    let mut value = serde_json::to_value(fixture::slow_sd_card_run()).unwrap();
    value["of_a_newer_version"] = serde_json::json!({"host": "attic", "count": 3});
    value["machine"]["owner"] = "alice".into();
    let counts = share(&mut value, Record::Run);
    assert!(value.get("of_a_newer_version").is_none() && value["machine"].get("owner").is_none());
    assert!(counts.dropped >= 3 && counts.facts > 500);
    assert!(serde_json::from_value::<Run>(value).is_ok());
}

#[test]
fn a_run_of_a_job_file_stays_readable_without_its_owners_words() {
    let mut run = fixture::slow_sd_card_run();
    let options = [
        ("bs", "4k"),
        ("description", "for alice"),
        ("filename", "/home/alice/x"),
        ("rate", "1m,2m"),
    ];
    run.job_file = Some(rubus_vocabulary::result::JobFile {
        path: "/home/alice/disk.fio".into(),
        global_options: options.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        jobs: Vec::new(),
        notes: vec!["iodepth is 1 here".into()],
        ignored: vec!["include ~alice/x".into()],
    });
    let said = shared(&run).unwrap().job_file.unwrap();
    let expected = [("bs", "4k"), ("filename", "/home/name-1/x"), ("rate", "1m,2m")];
    assert_eq!(
        said.global_options,
        expected.map(|(name, value)| (name.to_string(), value.to_string())).into()
    );
    assert!(said.ignored.is_empty() && said.path.starts_with("/home/name-1/"), "{said:?}");
}
