//! `docs/reference/findings.md` names every rule, with its weight and when it speaks, and no other.

use rubus_machine::rules;

const DOCUMENT: &str = include_str!("../../../docs/reference/findings.md");

#[test]
fn every_rule_has_its_row_and_every_row_its_rule() {
    let rows: Vec<&str> = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("| `") && !line.starts_with("| `rubus"))
        .collect();
    let rules: Vec<String> = rules::all()
        .map(|rule| format!("| `{}` | {} | {} |", rule.name, rule.weight.word(), rule.when))
        .collect();
    assert_eq!(rows, rules);
}
