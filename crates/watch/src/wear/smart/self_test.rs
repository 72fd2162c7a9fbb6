//! What a disk's own tests of itself found (`smartctl --test`).
//!
//! ATA: the self-test log (ACS-4, 9.20), whose outcome is in the upper four bits of a status. smartctl counts the tests that failed,
//! and those of them that a passed extended test has outdated. NVMe: the Device Self-test log (log page 06h).

use std::ops::RangeInclusive;

use serde_json::Value;

use super::lenient::{count, items};
use crate::wear::Warning;

/// Outcomes by which the disk is bad: a fatal error, an unknown part, its electronics, its arm, reading, damage by handling.
const ATA_FAILED: RangeInclusive<u64> = 3..=8;
const ATA_FAILED_READING: u64 = 7;
/// A fatal error, an unknown part, a part that is named.
const NVME_FAILED: RangeInclusive<u64> = 5..=7;

/// What the newest failed test of an ATA disk says, unless a passed one came after it.
pub fn of_ata(answer: &Value) -> Option<Warning> {
    let logs = &answer["ata_smart_self_test_log"];
    let log = [&logs["extended"], &logs["standard"]].into_iter().find(|log| log.is_object())?;
    let told = |field: &str| count(&log[field]).unwrap_or(0);
    if told("error_count_total") <= told("error_count_outdated") {
        return None;
    }
    let rows = items(&log["table"]).into_iter();
    let mut outcomes = rows.filter_map(|row| Some(count(&row["status"]["value"])? >> 4));
    let failed = outcomes.find(|outcome| ATA_FAILED.contains(outcome))?;
    Some(if failed == ATA_FAILED_READING { Warning::DataErrors } else { Warning::Failing })
}

/// The same of an NVMe disk, by its newest test that came to an end.
pub fn of_nvme(answer: &Value) -> Option<Warning> {
    let rows = items(&answer["nvme_self_test_log"]["table"]).into_iter();
    let mut results = rows.filter_map(|row| count(&row["self_test_result"]["value"]));
    let newest = results.find(|result| *result == 0 || NVME_FAILED.contains(result))?;
    (newest != 0).then_some(Warning::Failing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_test_warns_until_a_passed_one_outdates_it() {
        let told = |outcomes: &[u64], total: u64, outdated: u64| {
            let row = |outcome: &u64| json!({"status": {"value": outcome << 4 | 1}});
            let rows: Vec<Value> = outcomes.iter().map(row).collect();
            let log = json!({"table": rows, "count": rows.len(), "error_count_total": total,
                "error_count_outdated": outdated});
            of_ata(&json!({"ata_smart_self_test_log": {"standard": log}}))
        };
        assert_eq!(told(&[7, 0], 1, 0), Some(Warning::DataErrors));
        assert_eq!(told(&[1, 2, 6], 1, 0), Some(Warning::Failing), "two were stopped");
        assert_eq!(told(&[0, 7], 1, 1), None);
        assert_eq!(told(&[0, 1, 2, 15], 0, 0), None);
        assert_eq!(of_ata(&json!({"ata_smart_self_test_log": {"standard": null}})), None);
        assert_eq!(of_ata(&json!({})), None);
    }

    #[test]
    fn of_an_nvme_disk_the_newest_test_that_ended_counts() {
        let told = |results: &[u64]| {
            let row = |result: &u64| json!({"self_test_result": {"value": result}});
            let rows: Vec<Value> = results.iter().map(row).collect();
            of_nvme(&json!({"nvme_self_test_log": {"table": rows}}))
        };
        assert_eq!(told(&[1, 7, 0]), Some(Warning::Failing));
        assert_eq!(told(&[0, 7]), None);
        assert_eq!(told(&[2]), None);
        assert_eq!(told(&[]), None);
    }
}
