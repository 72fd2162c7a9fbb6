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
/// The code of an extended test.
const NVME_EXTENDED: u64 = 2;

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
    Some(match failed {
        ATA_FAILED_READING => Warning::UnreadableBlocks,
        _ => Warning::Failing,
    })
}

/// The same of an NVMe disk: the newest failed test, unless an extended one has passed since. The log begins with the newest.
pub fn of_nvme(answer: &Value) -> Option<Warning> {
    for row in items(&answer["nvme_self_test_log"]["table"]) {
        match count(&row["self_test_result"]["value"]) {
            Some(result) if NVME_FAILED.contains(&result) => return Some(Warning::Failing),
            Some(0) if count(&row["self_test_code"]["value"]) == Some(NVME_EXTENDED) => {
                return None;
            }
            _ => {}
        }
    }
    None
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
        assert_eq!(told(&[7, 0], 1, 0), Some(Warning::UnreadableBlocks));
        assert_eq!(told(&[1, 2, 6], 1, 0), Some(Warning::Failing), "two were stopped");
        assert_eq!(told(&[0, 7], 1, 1), None);
        assert_eq!(told(&[0, 1, 2, 15], 0, 0), None);
        assert_eq!(of_ata(&json!({"ata_smart_self_test_log": {"standard": null}})), None);
        assert_eq!(of_ata(&json!({})), None);
    }

    #[test]
    fn a_failed_test_of_an_nvme_disk_warns_until_an_extended_one_passes() {
        let told = |tests: &[(u64, u64)]| {
            let row = |(code, result): &(u64, u64)| json!({"self_test_code": {"value": code}, "self_test_result": {"value": result}});
            let rows: Vec<Value> = tests.iter().map(row).collect();
            of_nvme(&json!({"nvme_self_test_log": {"table": rows}}))
        };
        assert_eq!(told(&[(1, 1), (2, 7), (2, 0)]), Some(Warning::Failing));
        assert_eq!(told(&[(1, 0), (2, 7)]), Some(Warning::Failing), "a short one proves little");
        assert_eq!(told(&[(2, 0), (2, 7)]), None);
        assert_eq!(told(&[(2, 2)]), None);
        assert_eq!(told(&[]), None);
    }
}
