//! What a disk's own tests of itself found (`smartctl --test`).
//!
//! ATA: the self-test log (ACS-4, 9.20), whose outcome is in the upper four bits of a status. smartctl counts the tests that failed,
//! and those of them that a passed extended test has outdated. NVMe: the Device Self-test log (log page 06h). SCSI: the Self-Test
//! Results log page (SPC-4, 7.3.19).

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

/// Tests that SCSI's page has; the one with the number 0 is the newest.
const SCSI_TESTS: usize = 20;
/// An error of the disk by which a test ended, and segments that failed.
const SCSI_FAILED: RangeInclusive<u64> = 3..=7;
/// How smartctl's words for these begin; it has no numbers before its 7.5.
const SCSI_FAILED_WORDS: [&str; 3] = ["Unknown error", "Completed, segment failed", "Failed in"];
/// The codes of extended tests, in the background and in the foreground.
const SCSI_EXTENDED: [u64; 2] = [2, 6];
/// The sense key of a medium that could not be read.
const MEDIUM_ERROR: u64 = 3;

/// What the newest failed test of an ATA disk says, unless a passed one came after it.
pub fn of_ata(answer: &Value) -> Option<Warning> {
    let logs = &answer["ata_smart_self_test_log"];
    let log = [&logs["extended"], &logs["standard"]].into_iter().find(|log| log.is_object());
    let Some(log) = log else {
        // Bridges hand the disk's data through, and its logs not always.
        let newest = count(&answer["ata_smart_data"]["self_test"]["status"]["value"])?;
        return of_ata_outcome(newest >> 4);
    };
    let told = |field: &str| count(&log[field]).unwrap_or(0);
    if told("error_count_total") <= told("error_count_outdated") {
        return None;
    }
    let rows = items(&log["table"]).into_iter();
    let mut outcomes = rows.filter_map(|row| Some(count(&row["status"]["value"])? >> 4));
    outcomes.find_map(of_ata_outcome)
}

fn of_ata_outcome(outcome: u64) -> Option<Warning> {
    match outcome {
        ATA_FAILED_READING => Some(Warning::UnreadableBlocks),
        _ if ATA_FAILED.contains(&outcome) => Some(Warning::Failing),
        _ => None,
    }
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

/// The same of a SCSI disk, whose tests are fields of their own.
pub fn of_scsi(answer: &Value) -> Option<Warning> {
    for number in 0..SCSI_TESTS {
        let row = &answer[format!("scsi_self_test_{number}")];
        let words = |field: &str| row[field]["string"].as_str().unwrap_or_default();
        let (has_failed, has_passed) = match count(&row["result"]["value"]) {
            Some(result) => (SCSI_FAILED.contains(&result), result == 0),
            None => {
                let result = words("result");
                let is_failure = SCSI_FAILED_WORDS.iter().any(|known| result.starts_with(*known));
                (is_failure, result == "Completed")
            }
        };
        if has_failed {
            let is_of_medium = count(&row["sense_key"]["value"]) == Some(MEDIUM_ERROR);
            return Some(if is_of_medium { Warning::UnreadableBlocks } else { Warning::Failing });
        }
        let is_extended = match count(&row["code"]["value"]) {
            Some(code) => SCSI_EXTENDED.contains(&code),
            None => words("code").ends_with(" long"),
        };
        if is_extended && has_passed {
            return None;
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
        let without_log = |status: u64| {
            of_ata(&json!({"ata_smart_data": {"self_test": {"status": {"value": status}}}}))
        };
        assert_eq!(without_log(0x79), Some(Warning::UnreadableBlocks));
        assert_eq!(without_log(0x31), Some(Warning::Failing));
        assert_eq!((without_log(0), without_log(0x19), without_log(0xf5)), (None, None, None));
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

    #[test]
    fn a_failed_test_of_a_scsi_disk_warns_until_an_extended_one_passes() {
        let told = |tests: &[Value]| {
            let mut answer = json!({});
            for (number, test) in tests.iter().enumerate() {
                answer[format!("scsi_self_test_{number}")] = test.clone();
            }
            of_scsi(&answer)
        };
        let test =
            |code: u64, result: u64| json!({"code": {"value": code}, "result": {"value": result}});
        let mut unreadable = test(1, 7);
        unreadable["sense_key"] = json!({"value": 3, "string": "Medium Error"});
        assert_eq!(told(&[test(2, 2), unreadable.clone()]), Some(Warning::UnreadableBlocks));
        assert_eq!(told(&[test(1, 0), test(2, 4)]), Some(Warning::Failing), "a short one passed");
        for extended in [2, 6] {
            assert_eq!(told(&[test(extended, 0), unreadable.clone()]), None);
        }
        assert_eq!(told(&[test(1, 15), test(2, 1)]), None, "one runs, one was stopped");
        assert_eq!(told(&[]), None);
        // smartctl 7.3 and 7.4 have words alone.
        let worded = |code: &str, result: &str| json!({"code": {"string": code}, "result": {"string": result}});
        let failed = worded("Background short", "Completed, segment failed");
        assert_eq!(told(std::slice::from_ref(&failed)), Some(Warning::Failing));
        assert_eq!(told(&[worded("Background long", "Completed"), failed.clone()]), None);
        let passed = worded("Background short", "Completed");
        assert_eq!(told(&[passed, failed]), Some(Warning::Failing));
        assert_eq!(told(&[worded("Background long", "Failed in segment")]), Some(Warning::Failing));
    }
}
