//! What smartctl says of a disk's wear, from its JSON.
//!
//! NVMe: the SMART / Health Information log (NVM Express Base Specification, log page 02h): Percentage Used, Data Units
//! Written (in thousands of 512 bytes), Critical Warning. ATA: the Device Statistics log (ACS-4, 9.5: Percentage Used
//! Endurance Indicator, Logical Sectors Written); disks without it have attributes of their makers, which smartctl names
//! from its database.

use serde::Deserialize;

use super::{Source, Trouble, Used, Warning, Wear};

/// How smartctl is asked; the disk's node comes last. One that sleeps is left asleep.
pub const ARGUMENTS: [&str; 4] = ["--json=c", "--nocheck=standby", "--all", "--log=devstat"];

/// NVMe's unit of data: a thousand of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// NVMe and ATA stop counting there.
const MAX_PERCENT: f64 = 255.0;
/// Attributes whose value falls from 100 as the flash wears, by the names that smartctl gives them.
const LIFE_LEFT: [&str; 7] = [
    "Wear_Leveling_Count",
    "Media_Wearout_Indicator",
    "SSD_Life_Left",
    "Percent_Lifetime_Remain",
    "Perc_Rated_Life_Remain",
    "Remaining_Lifetime_Perc",
    "Percent_Life_Remaining",
];
/// Attributes that count what was written, with the bytes of one.
const WRITTEN: [(&str, u64); 5] = [
    ("Total_LBAs_Written", 512),
    ("Host_Writes_32MiB", 32 << 20),
    ("Host_Writes_GiB", 1 << 30),
    ("Lifetime_Writes_GiB", 1 << 30),
    ("Total_Writes_GiB", 1 << 30),
];
/// NVMe's critical warnings by their bits. Bit 1 is of the temperature, which wears nothing.
const NVME_WARNINGS: [(u32, Warning); 4] = [
    (0, Warning::SpareNearlyUsedUp),
    (2, Warning::Unreliable),
    (3, Warning::ReadOnly),
    (4, Warning::UnsafeCache),
];

/// What it says of a disk; none where it says nothing of wear and health, as of a disk that is no flash and is well.
pub fn parse(disk: &str, json: &str) -> Wear {
    let wear = |trouble| Wear { disk: disk.to_string(), trouble, ..Wear::default() };
    let told: Told = match serde_json::from_str(json) {
        Ok(told) => told,
        Err(error) => return wear(Some(Trouble::Other(format!("its answer: {error}")))),
    };
    let mut wear = wear(told.trouble());
    if let Some(log) = &told.nvme_smart_health_information_log {
        wear.source = Some(Source::Nvme);
        wear.used = log.percentage_used.map(used);
        wear.written_bytes =
            log.data_units_written.map(|units| units.saturating_mul(DATA_UNIT_BYTES));
        let bits = log.critical_warning.unwrap_or(0);
        let raised = NVME_WARNINGS.iter().filter(|(bit, _)| bits >> bit & 1 == 1);
        wear.warnings.extend(raised.map(|(_, warning)| *warning));
    } else if !told.ata_smart_attributes.table.is_empty()
        || !told.ata_device_statistics.pages.is_empty()
    {
        wear.source = Some(Source::Ata);
        // A disk that turns does not wear by writing.
        let turns = told.rotation_rate.is_some_and(|rate| rate > 0);
        wear.used = told.ata_used().filter(|_| !turns);
        wear.written_bytes = told.ata_written_bytes();
    }
    // An NVMe disk's status is that some critical warning is raised, and it may be its temperature alone.
    if told.smart_status.passed == Some(false) && wear.source != Some(Source::Nvme) {
        wear.warnings.push(Warning::Failing);
    }
    wear.warnings.sort_unstable();
    if wear.source.is_some() {
        wear.trouble = None;
    }
    wear
}

fn used(percent: f64) -> Used {
    match percent >= MAX_PERCENT {
        true => Used { min_percent: MAX_PERCENT, max_percent: None },
        false => Used::about(percent),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    smartctl: Program,
    smart_status: Status,
    rotation_rate: Option<u32>,
    logical_block_size: Option<u64>,
    endurance_used: Endurance,
    nvme_smart_health_information_log: Option<NvmeLog>,
    ata_smart_attributes: Attributes,
    ata_device_statistics: Statistics,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Program {
    messages: Vec<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    string: String,
    severity: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    passed: Option<bool>,
}

/// What newer programs (from 7.5 on) make of the makers' values themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Endurance {
    current_percent: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NvmeLog {
    critical_warning: Option<u32>,
    percentage_used: Option<f64>,
    data_units_written: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attributes {
    table: Vec<Attribute>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute {
    name: String,
    value: Option<f64>,
    raw: Raw,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    value: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Statistics {
    pages: Vec<Page>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    table: Vec<Statistic>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Statistic {
    name: String,
    value: Option<u64>,
    flags: Flags,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Flags {
    valid: Option<bool>,
}

impl Told {
    fn trouble(&self) -> Option<Trouble> {
        let messages = &self.smartctl.messages;
        let sleeps = |message: &&Message| {
            message.string.contains("STANDBY") || message.string.contains("SLEEP")
        };
        if messages.iter().any(|message| sleeps(&message)) {
            return Some(Trouble::Asleep);
        }
        let error = messages.iter().find(|message| message.severity == "error")?;
        let words = error.string.trim().to_string();
        Some(match words.contains("Permission denied") {
            true => Trouble::NotRoot,
            false => Trouble::Other(words),
        })
    }

    fn statistic(&self, name: &str) -> Option<u64> {
        let mut all = self.ata_device_statistics.pages.iter().flat_map(|page| &page.table);
        let found = all.find(|one| one.name == name && one.flags.valid != Some(false))?;
        found.value
    }

    fn ata_used(&self) -> Option<Used> {
        let whole = self
            .endurance_used
            .current_percent
            .or_else(|| Some(self.statistic("Percentage Used Endurance Indicator")? as f64));
        if let Some(percent) = whole {
            return Some(used(percent));
        }
        let attributes = self.ata_smart_attributes.table.iter();
        let mut left = attributes.filter(|one| LIFE_LEFT.contains(&one.name.as_str()));
        let left = left.find_map(|one| one.value.filter(|left| (1.0..=100.0).contains(left)))?;
        // Such a value stops at 1.
        Some(match left <= 1.0 {
            true => Used { min_percent: 98.0, max_percent: None },
            false => Used::about(100.0 - left),
        })
    }

    fn ata_written_bytes(&self) -> Option<u64> {
        let sector_bytes = self.logical_block_size.unwrap_or(512);
        if let Some(sectors) = self.statistic("Logical Sectors Written") {
            return Some(sectors.saturating_mul(sector_bytes));
        }
        let counted = |(name, bytes): &(&str, u64)| {
            let attribute = self.ata_smart_attributes.table.iter().find(|one| one.name == *name)?;
            Some(attribute.raw.value.saturating_mul(*bytes))
        };
        WRITTEN.iter().find_map(counted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(json: &Value) -> Wear {
        parse("sda", &json.to_string())
    }

    fn nvme(percentage_used: u32, critical_warning: u32) -> Value {
        json!({
            "smartctl": {"version": [7, 3], "exit_status": 0},
            "smart_status": {"passed": critical_warning == 0, "nvme": {"value": critical_warning}},
            "nvme_smart_health_information_log": {
                "critical_warning": critical_warning,
                "temperature": 32,
                "available_spare": 100,
                "available_spare_threshold": 10,
                "percentage_used": percentage_used,
                "data_units_read": 4_000_000,
                "data_units_written": 2_000_000,
            },
        })
    }

    fn attribute(id: u32, name: &str, value: u32, raw: u64) -> Value {
        json!({"id": id, "name": name, "value": value, "worst": value, "thresh": 0, "raw": {"value": raw, "string": "x"}})
    }

    fn ata(attributes: &[Value], rotation_rate: u32) -> Value {
        json!({
            "smartctl": {"exit_status": 0},
            "rotation_rate": rotation_rate,
            "logical_block_size": 512,
            "smart_status": {"passed": true},
            "ata_smart_attributes": {"revision": 1, "table": attributes},
        })
    }

    fn statistics(rows: &[(&str, u64, bool)]) -> Value {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(name, value, valid)| json!({"offset": 8, "name": name, "size": 1, "value": value, "flags": {"valid": valid}}))
            .collect();
        json!({"pages": [{"number": 1, "table": []}, {"number": 7, "table": rows}]})
    }

    #[test]
    fn an_nvme_disk_tells_percents_units_and_warnings() {
        let wear = told(&nvme(3, 0));
        assert_eq!(wear.source, Some(Source::Nvme));
        assert_eq!(wear.used, Some(Used::about(3.0)));
        assert_eq!(wear.written_bytes, Some(1_024_000_000_000));
        assert_eq!((wear.warnings, wear.trouble), (vec![], None));
        let full = told(&nvme(255, 0b1_1101)).warnings;
        let all = [
            Warning::ReadOnly,
            Warning::Unreliable,
            Warning::SpareNearlyUsedUp,
            Warning::UnsafeCache,
        ];
        assert_eq!(full, all);
        // It is too warm, which wears nothing.
        assert_eq!(told(&nvme(3, 0b10)).warnings, []);
    }

    #[test]
    fn percents_go_beyond_a_hundred_and_stop_at_255() {
        let used = |percent| told(&nvme(percent, 0)).used.unwrap();
        assert_eq!(used(0).min_percent, 0.0);
        assert!(!used(100).is_over() && used(101).is_over());
        assert_eq!(used(255).max_percent, None);
    }

    #[test]
    fn an_ata_disk_tells_by_statistics_first_and_by_its_maker_s_attributes_else() {
        let attributes = [
            attribute(177, "Wear_Leveling_Count", 95, 61),
            attribute(241, "Total_LBAs_Written", 99, 1_000_000),
        ];
        let mut json = ata(&attributes, 0);
        let wear = told(&json);
        assert_eq!(wear.source, Some(Source::Ata));
        assert_eq!(wear.used, Some(Used::about(5.0)));
        assert_eq!(wear.written_bytes, Some(512_000_000));
        json["ata_device_statistics"] = statistics(&[
            ("Percentage Used Endurance Indicator", 7, true),
            ("Logical Sectors Written", 3_000_000, true),
        ]);
        let wear = told(&json);
        assert_eq!(wear.used, Some(Used::about(7.0)));
        assert_eq!(wear.written_bytes, Some(1_536_000_000));
        json["endurance_used"] = json!({"current_percent": 8});
        assert_eq!(told(&json).used, Some(Used::about(8.0)));
    }

    #[test]
    fn what_a_disk_calls_not_valid_is_not_taken() {
        let mut json = ata(&[attribute(231, "SSD_Life_Left", 80, 80)], 0);
        json["ata_device_statistics"] =
            statistics(&[("Percentage Used Endurance Indicator", 0, false)]);
        assert_eq!(told(&json).used, Some(Used::about(20.0)));
        // 0 and values above 100 are of another meaning than life left.
        for value in [0, 200] {
            let json = ata(&[attribute(177, "Wear_Leveling_Count", value, 0)], 0);
            assert_eq!(told(&json).used, None, "{value}");
        }
        let json = ata(&[attribute(177, "Wear_Leveling_Count", 1, 0)], 0);
        assert_eq!(told(&json).used.unwrap().max_percent, None);
    }

    #[test]
    fn each_way_to_count_what_was_written_has_its_unit() {
        let written = |name| told(&ata(&[attribute(241, name, 100, 3)], 0)).written_bytes;
        assert_eq!(written("Host_Writes_32MiB"), Some(96 << 20));
        assert_eq!(written("Host_Writes_GiB"), Some(3 << 30));
        assert_eq!(written("Lifetime_Writes_GiB"), Some(3 << 30));
        assert_eq!(written("Power_On_Hours"), None);
    }

    #[test]
    fn a_disk_that_turns_does_not_wear_but_may_fail() {
        let mut json = ata(&[attribute(177, "Wear_Leveling_Count", 95, 61)], 5400);
        assert_eq!(told(&json).used, None);
        json["smart_status"]["passed"] = json!(false);
        assert_eq!(told(&json).warnings, [Warning::Failing]);
    }

    #[test]
    fn why_it_could_not_ask_is_told() {
        let message = |string: &str| {
            let messages = json!([{"string": string, "severity": "error"}]);
            told(&json!({"smartctl": {"exit_status": 2, "messages": messages}})).trouble
        };
        assert_eq!(
            message("Smartctl open device: /dev/sda failed: Permission denied"),
            Some(Trouble::NotRoot)
        );
        let words = "/dev/sda: Unknown USB bridge [0x152d:0x0583 (0x209)]";
        assert_eq!(message(words), Some(Trouble::Other(words.into())));
        assert_eq!(message("Device is in STANDBY mode, exit(2)"), Some(Trouble::Asleep));
        assert_eq!(told(&json!({"smartctl": {}})).trouble, None);
        let broken = parse("sda", "smartctl 6.6").trouble;
        assert!(matches!(broken, Some(Trouble::Other(_))));
    }
}
