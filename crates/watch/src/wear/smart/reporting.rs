//! Whether a SCSI disk says anything of its health where its own reports are off.

use serde_json::Value;

use super::lenient::{number, truth};

/// Whether a disk does not report its health and has counted nothing either. smartctl calls its status passed all the same: it asks
/// whether the page of such reports is there, not whether they are on (smartctl 7, `scsiprint.cpp`, scsiGetSmartData).
pub fn is_silent(answer: &Value) -> bool {
    let is_off = |what: &str| truth(&answer["smart_support"][what]) == Some(false);
    let log = &answer["scsi_error_counter_log"];
    let has_counted =
        |kind: &str| number(&log[kind]["gigabytes_processed"]).is_some_and(|amount| amount > 0.0);
    (is_off("available") || is_off("enabled"))
        && !["read", "write", "verify"].into_iter().any(has_counted)
        && answer["scsi_self_test_0"].is_null()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wear::Source;
    use crate::wear::smart::parse;

    #[test]
    fn a_status_without_reports_is_no_answer() {
        let source = |field: &str, value: Value| {
            let mut answer = json!({"device": {"protocol": "SCSI"}, "rotation_rate": 10_500,
                "smart_support": {"available": true, "enabled": false},
                "smart_status": {"passed": true}, "scsi_grown_defect_list": 0});
            answer[field] = value;
            let wear = parse("sda", &answer.to_string());
            assert_eq!(wear.source.is_none(), wear.trouble.is_some(), "{field}");
            wear.source
        };
        let is_on = json!({"available": true, "enabled": true});
        let counted = |gigabytes: &str| json!({"read": {"gigabytes_processed": gigabytes, "total_uncorrected_errors": 0}});
        let passed = json!({"code": {"value": 2}, "result": {"value": 0}});
        for (field, value, is_answer) in [
            ("rotation_rate", json!(0), false),
            ("smart_support", json!({"available": false}), false),
            ("scsi_error_counter_log", counted("0.000"), false),
            ("smart_support", is_on, true),
            ("smart_support", json!(null), true),
            ("scsi_error_counter_log", counted("5120.250"), true),
            ("scsi_self_test_0", passed, true),
            ("scsi_grown_defect_list", json!(4000), true),
            ("smart_status", json!({"passed": false}), true),
        ] {
            let expected = if is_answer { Some(Source::Scsi) } else { None };
            assert_eq!(source(field, value.clone()), expected, "{field}: {value}");
        }
    }
}
