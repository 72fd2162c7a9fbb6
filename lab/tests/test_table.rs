//! The table of tests, `lab/tests.tsv`, has every test of this program, and nothing that is not there.

use std::process::Command;

use rubus_lab::test_table::Table;

/// The names of all tests of this program.
fn tests() -> Vec<String> {
    let own = std::env::current_exe().unwrap();
    let output = Command::new(own).args(["--list", "--format", "terse"]).output().unwrap();
    assert!(output.status.success());
    let list = String::from_utf8(output.stdout).unwrap();
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

#[test]
fn every_test_has_a_row_and_every_row_a_test() {
    let table = Table::of_this_tree().unwrap();
    let tests = tests();
    assert!(tests.len() > 100, "{tests:?}");
    let without: Vec<&String> = tests.iter().filter(|test| table.row_of(test).is_none()).collect();
    assert!(without.is_empty(), "in no tier, so never run: {without:?}");
    let is_used = |name: &str| {
        tests.iter().any(|test| table.row_of(test).is_some_and(|row| row.name == name))
    };
    let unused: Vec<&str> =
        table.rows().iter().map(|row| row.name.as_str()).filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "rows without a test: {unused:?}");
}
