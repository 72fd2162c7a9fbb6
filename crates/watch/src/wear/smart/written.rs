//! How much a disk was given to write, by its own counter, and whether that can be.
//!
//! The unit of a counter is in its name, or it is a name that several firmwares use with another unit: `Total_LBAs_Written`
//! counted 32 MiB on Intel S3520 and Toshiba HK4R, and GiB on Phison.

use serde_json::Value;

use super::attributes::Attribute;
use super::lenient::{count, number};
use crate::wear::Used;

/// NVMe's unit of data: a thousand of 512 bytes.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Names with their unit in bytes, from smartmontools, drivedb.h. What went to the flash (NAND, Flash, SLC, TLC) is not what
/// the disk was given.
const NAMED_UNITS: [(&str, u64); 9] = [
    (OF_32_MIB, 32 << 20),
    ("Host_Writes_MiB", 1 << 20),
    ("Host_Writes_GiB", 1 << 30),
    ("Lifetime_Writes_GiB", 1 << 30),
    ("Total_Writes_GiB", 1 << 30),
    ("Total_Writes_GB", 1_000_000_000),
    ("Lifetime_Wts_Frm_Hst_GB", 1_000_000_000),
    ("Device_Sectors_Written", 512),
    ("Sectors_Written_to_SSD", 512),
];
/// Names of counters of sectors that some firmwares count in another unit with.
const SECTORS: [&str; 3] = ["Total_LBAs_Written", "Total_Host_LBA_Written", "Write_Sectors_Tot_Ct"];
/// The name of a counter of 32 MiB.
const OF_32_MIB: &str = "Host_Writes_32MiB";
/// Sectors in 32 MiB.
const SECTORS_OF_32_MIB: u64 = (32 << 20) / SECTOR_BYTES;
const SECTOR_BYTES: u64 = 512;
/// Firmwares of Silicon Motion keep the lower 32 bits of their statistic of sectors.
const WRAP_SECTORS: u64 = 1 << 32;
/// That statistic and the attribute beside it may differ by this: one counts whole units, and both are read apart.
const MAX_UNITS_APART: u64 = 8;
/// A counter beside which another one has its exponent: Swissbit X-7x.
const EXPONENT: &str = "Host_LBA_Write_Exp";
/// No disk writes faster for its whole life.
const MAX_BYTES_PER_HOUR: f64 = 16e9 * 3600.0;
/// A disk in use is given more.
const MIN_BYTES_PER_HOUR: f64 = 1e6;
/// From this number of hours on, that is certain. Less than in that many does not tell a counter's unit.
const MIN_HOURS: f64 = 100.0;
/// No flash is worn out by being written fewer times over.
const MIN_LIFE_IN_CAPACITIES: f64 = 5.0;
/// From so large a share on, in percent, that can be told.
const MIN_USED_PERCENT: f64 = 2.0;

/// What a disk says of what it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub bytes: Option<u64>,
    /// It counts, but the number cannot be true.
    pub is_implausible: bool,
}

/// A counter's bytes, and whether its unit is only assumed.
struct Counter {
    bytes: u64,
    is_unit_assumed: bool,
}

impl Written {
    /// A count of too little for so much wear is not true.
    fn checked(self, answer: &Value, used: Option<Used>) -> Written {
        match self.bytes {
            Some(bytes) if is_too_little_for_its_wear(bytes, answer, used) => {
                Written { bytes: None, is_implausible: true }
            }
            Some(_) | None => self,
        }
    }
}

/// By an ATA disk's statistics, else by its maker's attributes; the first that can be true.
pub fn of_ata(
    answer: &Value,
    sectors: Option<u64>,
    attributes: &[Attribute],
    used: Option<Used>,
) -> Written {
    let sector_bytes = count(&answer["logical_block_size"]).filter(|bytes| *bytes > 0);
    let sector_bytes = sector_bytes.unwrap_or(SECTOR_BYTES);
    let known = |count: u64, unit: u64| {
        Some(Counter { bytes: count.checked_mul(unit)?, is_unit_assumed: false })
    };
    let raw_of =
        |name: &str| attributes.iter().filter(|one| one.name == name).find_map(|one| one.raw);
    let mut counters: Vec<Option<Counter>> = Vec::new();
    if let Some(wrapped) = sectors.filter(|_| sector_bytes == SECTOR_BYTES) {
        let mut units = [OF_32_MIB].iter().chain(&SECTORS).filter_map(|name| raw_of(name));
        let units = units.find(|units| is_rest_of(wrapped, *units));
        counters.extend(units.map(|units| known(units, 32 << 20)));
    }
    counters.extend(sectors.map(|sectors| known(sectors, sector_bytes)));
    let named = NAMED_UNITS.iter().filter_map(|(name, unit)| Some(known(raw_of(name)?, *unit)));
    counters.extend(named);
    if raw_of(EXPONENT).is_none() {
        let assumed = SECTORS.iter().filter_map(|name| raw_of(name));
        counters.extend(assumed.map(|sectors| {
            Some(Counter { bytes: sectors.checked_mul(SECTOR_BYTES)?, is_unit_assumed: true })
        }));
    }
    let hours = number(&answer["power_on_time"]["hours"]).or_else(|| hours(attributes));
    let is_telling = |counter: &Counter| {
        counter.tells_its_unit(hours) || is_too_little_for_its_wear(counter.bytes, answer, used)
    };
    counters.retain(|counter| counter.as_ref().is_none_or(&is_telling));
    let is_plausible = |counter: &Counter| counter.is_plausible(answer, hours, used);
    let is_counted = !counters.is_empty();
    let bytes = counters.into_iter().flatten().find(is_plausible).map(|counter| counter.bytes);
    Written { bytes, is_implausible: is_counted && bytes.is_none() }
}

/// Whether a statistic of sectors is what 32 bits hold of a count of 32 MiB.
fn is_rest_of(sectors: u64, units: u64) -> bool {
    let Some(whole) = units.checked_mul(SECTORS_OF_32_MIB) else { return false };
    let is_wrapped = sectors < WRAP_SECTORS && whole >= WRAP_SECTORS;
    let apart = (whole % WRAP_SECTORS).abs_diff(sectors);
    let is_near = apart.min(WRAP_SECTORS.abs_diff(apart)) <= MAX_UNITS_APART * SECTORS_OF_32_MIB;
    // Both may count sectors.
    let is_same = units.abs_diff(sectors) <= sectors / 10;
    is_wrapped && is_near && !is_same
}

/// By an NVMe disk's log.
pub fn of_nvme(answer: &Value, used: Option<Used>) -> Written {
    let log = &answer["nvme_smart_health_information_log"];
    let units = &log["data_units_written"];
    let bytes = count(units).and_then(|units| units.checked_mul(DATA_UNIT_BYTES));
    let hours = number(&log["power_on_hours"]);
    let bytes = bytes.filter(|bytes| is_possible(*bytes, hours));
    Written { bytes, is_implausible: bytes.is_none() && !units.is_null() }.checked(answer, used)
}

/// By a SAS disk's log: gigabytes, as text.
pub fn of_scsi(answer: &Value, used: Option<Used>) -> Written {
    let gigabytes = number(&answer["scsi_error_counter_log"]["write"]["gigabytes_processed"]);
    let bytes = gigabytes.filter(|gigabytes| (0.0..1e10).contains(gigabytes));
    Written { bytes: bytes.map(|gigabytes| (gigabytes * 1e9) as u64), is_implausible: false }
        .checked(answer, used)
}

impl Counter {
    fn tells_its_unit(&self, hours: Option<f64>) -> bool {
        let is_young = hours.is_none_or(|hours| hours < MIN_HOURS);
        let is_little = (self.bytes as f64) < MIN_HOURS * MIN_BYTES_PER_HOUR;
        !(self.is_unit_assumed && is_young && is_little)
    }

    fn is_plausible(&self, answer: &Value, hours: Option<f64>, used: Option<Used>) -> bool {
        if !is_possible(self.bytes, hours) || is_too_little_for_its_wear(self.bytes, answer, used) {
            return false;
        }
        if !self.is_unit_assumed {
            return true;
        }
        let bytes = self.bytes as f64;
        let is_too_little_for_its_hours =
            hours.is_some_and(|hours| hours >= MIN_HOURS && bytes < hours * MIN_BYTES_PER_HOUR);
        !is_too_little_for_its_hours
    }
}

fn is_too_little_for_its_wear(bytes: u64, answer: &Value, used: Option<Used>) -> bool {
    let capacity = ["user_capacity", "nvme_total_capacity"]
        .map(|field| number(&answer[field]["bytes"]).or_else(|| number(&answer[field])));
    let capacity = capacity.into_iter().flatten().next().unwrap_or(0.0);
    let share = used.map_or(0.0, |used| used.min_percent);
    let least = capacity * share / 100.0 * MIN_LIFE_IN_CAPACITIES;
    share >= MIN_USED_PERCENT && (bytes == 0 || (bytes as f64) < least)
}

/// Whether flash that was written over this often cannot have used this share of its life, in percent.
pub fn is_too_little_for(capacities: f64, percent: f64) -> bool {
    percent >= MIN_USED_PERCENT && capacities < percent / 100.0 * MIN_LIFE_IN_CAPACITIES
}

fn hours(attributes: &[Attribute]) -> Option<f64> {
    let hours = attributes.iter().find(|one| one.name == "Power_On_Hours")?.raw?;
    // Some firmwares have minutes or milliseconds above these bits.
    Some((hours & 0xffff_ffff) as f64)
}

fn is_possible(bytes: u64, hours: Option<f64>) -> bool {
    hours.is_none_or(|hours| bytes as f64 <= (hours.max(0.0) + 1.0) * MAX_BYTES_PER_HOUR)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::attributes;
    use super::*;

    #[test]
    fn a_small_count_of_a_new_disk_does_not_tell_its_unit() {
        let written = |name: &str, raw: u64, hours: Option<u64>| {
            let json = json!({
                "power_on_time": {"hours": hours},
                "user_capacity": {"bytes": 120_034_123_776_u64},
                "ata_smart_attributes": {"table": [
                    {"id": 241, "name": name, "value": 100, "raw": {"value": raw}},
                ]},
            });
            let written = of_ata(&json, None, &attributes::read(&json), None);
            (written.bytes, written.is_implausible)
        };
        let sectors = "Total_LBAs_Written";
        // 25,071 of 32 MiB, as a ZOZT G3000 counts; its statistics have 841 GB.
        for hours in [None, Some(3), Some(99)] {
            assert_eq!(written(sectors, 25_071, hours), (None, false), "{hours:?}");
        }
        assert_eq!(written(sectors, 25_071, Some(900)), (None, true));
        assert_eq!(written(sectors, 300_000, Some(3)), (Some(153_600_000), false));
        assert_eq!(written("Host_Writes_32MiB", 1, Some(3)), (Some(32 << 20), false));
    }

    #[test]
    fn a_statistic_that_wrapped_is_told_by_the_attribute_beside_it() {
        let written = |units: u64, sectors: u64| {
            let json = json!({
                "power_on_time": {"hours": 14_223},
                "ata_smart_attributes": {"table": [
                    {"id": 241, "name": "Total_LBAs_Written", "value": 100, "raw": {"value": units}},
                ]},
            });
            of_ata(&json, Some(sectors), &attributes::read(&json), None).bytes
        };
        // A Netac S535N8, a KingSpec ACSC2M128mSA, and a Netac of 120 GB.
        for (units, sectors) in
            [(1_559_684, 3_431_254_159), (176_733, 2_992_457_636), (94_508, 1_898_760_349)]
        {
            assert_eq!(written(units, sectors), Some(units << 25), "{units}");
        }
        // Two that have not wrapped, and one whose attribute counts sectors as well.
        for (units, sectors) in
            [(48_033, 3_147_924_798), (95_395, 6_251_829_869), (3_431_254_100, 3_431_254_159)]
        {
            assert_eq!(written(units, sectors), Some(sectors * 512), "{units}");
        }
    }
}
