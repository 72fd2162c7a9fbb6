//! Reads the findings out of a run.

pub mod bend;
pub mod class;
pub mod cliff;
pub mod compression;
pub mod knee;

use rubus_machine::rules;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::Run;

/// What the results of a run say together, in the order in which a reader wants it. Pure: the same
/// results give the same findings.
pub fn of(run: &Run) -> Vec<Finding> {
    let mut findings = knee::of(run);
    findings.extend(bend::of(run));
    findings.extend(cliff::of(run));
    findings.extend(class::of(run));
    findings.extend(compression::of(run));
    findings
}

/// Adds what the rules find, behind the findings that the run has already; called once, when they are all there.
pub fn add_rules(run: &mut Run) {
    let found = rules::of_run(run);
    run.findings.extend(found.into_iter().map(Finding::Rule));
}
