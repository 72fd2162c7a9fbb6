//! Tables of attributes that a USB bridge made up instead of handing the disk's through.

use serde_json::Value;

use super::attributes::raw;
use super::lenient::{items, number};

/// The raw value of an attribute has six bytes.
const RAW_ONES: u64 = (1 << 48) - 1;

/// Whether all values and raw values are zeros, or all are ones. Some disks' firmware sets no values, but every disk has counted
/// that it was started.
pub fn is_blank(answer: &Value) -> bool {
    let rows = items(&answer["ata_smart_attributes"]["table"]);
    let is_all = |value: f64, raw_value: u64| {
        rows.iter().all(|row| {
            number(&row["value"]) == Some(value)
                && raw(&row["raw"]).is_none_or(|told| told == raw_value)
        })
    };
    rows.len() > 1 && (is_all(0.0, 0) || is_all(255.0, RAW_ONES))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse;
    use super::*;
    use crate::wear::{Source, Trouble, Warning};

    fn answer(value: u32, raw: u64) -> Value {
        let row = |id: u32, name: &str| json!({"id": id, "name": name, "value": value, "worst": value, "thresh": 0, "raw": {"value": raw}});
        let rows =
            [row(9, "Power_On_Hours"), row(231, "SSD_Life_Left"), row(241, "Lifetime_Writes_GiB")];
        json!({"smart_status": {"passed": true}, "ata_smart_attributes": {"table": rows}})
    }

    #[test]
    fn a_table_that_a_bridge_made_up_tells_nothing() {
        for (value, raw) in [(0, 0), (255, RAW_ONES)] {
            let wear = parse("sda", &answer(value, raw).to_string());
            assert_eq!((wear.source, wear.used, wear.written_bytes), (None, None, None));
            assert!(matches!(wear.trouble, Some(Trouble::Other(_))), "{wear:?}");
        }
        let mut failing = answer(0, 0);
        failing["smart_status"] = json!({"passed": false});
        assert_eq!(parse("sda", &failing.to_string()).warnings, [Warning::Failing]);
        // A firmware that sets no values.
        let mut started = answer(0, 0);
        started["ata_smart_attributes"]["table"][0]["raw"]["value"] = json!(7);
        assert_eq!(parse("sda", &started.to_string()).source, Some(Source::Ata));
        // Statistics are read by other commands.
        let mut with_statistics = answer(0, 0);
        with_statistics["ata_device_statistics"] = json!({"pages": [{"number": 7, "table": [
            {"name": "Percentage Used Endurance Indicator", "value": 12, "flags": {"valid": true}},
        ]}]});
        let wear = parse("sda", &with_statistics.to_string());
        assert_eq!(wear.used.map(|used| used.min_percent), Some(11.0));
    }
}
