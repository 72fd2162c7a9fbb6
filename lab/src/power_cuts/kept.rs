//! Reads in the journal of a new root how far `rubus verify` had come, which keeps a trial there.

use serde_json::Value;

use super::pass::words;

/// The record that says that a trial was passed: from it on, what was for the trial alone goes away.
pub(super) const COMMITTED: &str = "committed";

/// Whether a journal has a record, as [`words`] has it.
pub(super) fn has(journal: &str, record: &str) -> bool {
    records(journal).iter().any(|one| one == without_title(record))
}

/// Which of these records a journal has lost.
pub(super) fn lost(journal: &str, durable: &[&str]) -> Vec<String> {
    let lost = durable.iter().filter(|record| !has(journal, record));
    lost.map(|record| format!("the journal on the new root has lost: {record}")).collect()
}

/// The records of a journal, without titles of steps. A line that was being written says nothing.
fn records(journal: &str) -> Vec<String> {
    let lines = journal.lines();
    let records = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let records = records.map(|record| words(&record, &[]));
    records.map(|record| without_title(&record).to_owned()).collect()
}

fn without_title(record: &str) -> &str {
    record.split_once(" (").map_or(record, |(plain, _)| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_durable_is_in_the_journal() {
        let journal =
            "{\"record\":\"committed\",\"at\":\"now\"}\n{\"record\":\"begun\",\"step\":1}\n{\"rec";
        assert!(has(journal, COMMITTED) && has(journal, "begun 2 (a title)"));
        assert!(!has(journal, "done 2 (a title)") && !has(journal, "begun 1 (a title)"));
        let durable = ["committed", "begun 2 (x (y))", "done 2 (x (y))"];
        assert_eq!(
            lost(journal, &durable),
            ["the journal on the new root has lost: done 2 (x (y))"]
        );
        assert!(!has("", COMMITTED));
    }
}
