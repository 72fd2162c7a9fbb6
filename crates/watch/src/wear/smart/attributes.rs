//! What the attributes of an ATA disk's maker say of its wear.
//!
//! No standard defines them. smartctl names them from its database (smartmontools, drivedb.h), by which this table goes;
//! where models or firmwares of one name differ, the source of the exception stands beside it.

use serde_json::Value;

use super::lenient::{count, items, number, truth};
use crate::wear::{MAX_PERCENT, Used};

/// What an attribute's value and raw value mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The value falls from 100; the raw value counts erase cycles.
    Cycles,
    /// The value is the share left; the raw value is the same, or the share used, or 0. A value that stays at 100 beside a raw
    /// value of 1 to 99 is not kept up to date, and the raw value is the share left.
    Left,
    /// The value is the share left, the raw value the share used, which goes on beyond 100.
    LeftOfUsed,
    /// The raw value is the share used; the value is the same or what is left of 100.
    Used,
    /// The value counts down on some models and up on others.
    EitherWay,
    /// The raw value is the share left, in hundredths of a percent.
    HundredthsLeft,
}

/// Names without case and punctuation, with what they mean and the families that the database has them for.
const TABLE: [(&str, Meaning); 31] = [
    // Samsung (177), Crucial and Micron m4 and C300, SK hynix, STEC (173). The database's default for 177, so that Silicon
    // Motion disks have it too, whose value stays at 100.
    ("wearlevelingcount", Meaning::Cycles),
    // Crucial and Micron (173), whose value is that of 202.
    ("aveblockerasecount", Meaning::Cycles),
    ("avgblockerasecount", Meaning::Cycles),
    ("averageblockerasect", Meaning::Cycles),
    // Intel (233, down). WD and SanDisk (230): up in zbx-smartctl#148, down in smartmontools#642. The database's default for
    // 233, so that unknown disks have it, too; SK hynix SC311 counts up there (QDiskInfo#69).
    ("mediawearoutindicator", Meaning::EitherWay),
    // Marvell based SanDisk (230, 234): the same as WD's.
    ("percwriteerasecount", Meaning::EitherWay),
    ("percwriteerasectbc", Meaning::EitherWay),
    // Phison and Kingston (stays at 100 on KC400), SandForce (raw value 0), Silicon Motion, Maxio, SK hynix, Seagate.
    ("ssdlifeleft", Meaning::Left),
    ("ssdlifeleftperc", Meaning::Left), // Seagate Nytro XF1230
    ("lifetimeleft", Meaning::Left),    // Apacer
    ("liferemainingpercent", Meaning::Left), // Swissbit X-7x
    ("ssdremaininglifeperc", Meaning::Left), // Swissbit X-7x
    ("remaininglife", Meaning::Left),   // Swissbit X-8x, Innodisk
    ("pctliferemaining", Meaning::Left), // ATP
    ("percentliferemaining", Meaning::Left), // Intel for Dell
    ("percratedliferemain", Meaning::Left), // Swissbit, SMART Modular
    ("lifetimeremaining", Meaning::Left), // StorFly, SanDisk Cloudspeed, Marvell based SanDisk
    ("driveliferemaining", Meaning::Left), // SanDisk Cloudspeed, CS1K
    ("syspercentliferemain", Meaning::Left), // SSSTC, of the part for its own tables
    ("ssdlifeleft001", Meaning::HundredthsLeft), // SanDisk Cloudspeed: SSD_LifeLeft(0.01%)
    // Silicon Motion (stays at 100 on TS32GMTS400), Innodisk, Indilinx, OCZ.
    ("remaininglifetimeperc", Meaning::Left),
    // Crucial and Micron: value = max(100 - raw, 0), raw = share used. ATP, SSSTC, SK hynix, Xmore: raw = share left.
    ("percentlifetimeremain", Meaning::LeftOfUsed),
    // Crucial and Micron m4 and C400, SMART Modular: value = 100 - raw.
    ("percratedlifeused", Meaning::Used),
    ("percentlifetimeused", Meaning::Used), // Crucial and Micron C300, ATP
    ("percentlifeused", Meaning::Used),     // SanDisk Cloudspeed, XITC
    ("drivelifeused", Meaning::Used),       // SanDisk CS1K
    // In the databases of other programs, for disks of the same makers.
    ("ssdliferemaining", Meaning::Left),
    ("percentlifetimeleft", Meaning::Left),
    ("remaininglifepercent", Meaning::Left),
    ("lifetimeused", Meaning::Used),
    ("percentageused", Meaning::Used),
];

/// Makers all of whose SSDs let the value of an attribute fall from 100, those that the database lacks included.
const FALLING: [(&str, &str); 2] =
    [("samsung", "Wear_Leveling_Count"), ("intel", "Media_Wearout_Indicator")];
/// Firmwares of the Kingston A400, by how their versions begin, with where the share left stands. CrystalDiskInfo takes the raw value
/// except with 03070009 (`IsSsdKingston`; issue 178: value 14, raw 86, and Kingston's own program says 87 % left). With SBFK62C3 it
/// took a good disk for a bad one by that (issue 201).
const A400: [(&str, Option<LeftIn>); 3] =
    [("SBFK62C3", None), ("S", Some(LeftIn::Raw)), ("03070009", Some(LeftIn::Value))];
/// A disk that wrote its capacity this often has used more than 1 % of its erase cycles: a value of 100 beside more is not kept up to date.
const MAX_CYCLES_OF_A_NEW_DISK: u64 = 50;
/// A share left that small beside a value of 100 may as well be a share used.
const MAX_DOUBTFUL_LEFT: u64 = 10;

/// Averages of erase cycles, with the attribute that has the cycles that the flash is made for: Silicon Motion, Swissbit,
/// Indilinx.
const CYCLES_OF_RATED: [(&str, &str); 5] = [
    ("averageerasecount", "maxerasecountofspec"),
    ("averageerasecount", "ratederasecount"),
    ("averageerasecount", "maxratedpecount"),
    ("averageerasecount", "maxpecountspec"),
    ("avgerasecountpslc", "ratederasecountpslc"),
];
/// Erase cycles that flash is made for.
const RATED_CYCLES: std::ops::RangeInclusive<u64> = 100..=200_000;
/// What only SandForce controllers have. Their value of life left is 10 when all erase cycles are used that the flash was
/// made for, and 0 when no spare blocks are left (Kingston MKP_306, attribute 231).
const OF_SANDFORCE: [&str; 3] = ["lifecurvestatus", "drvlifeprotectstatus", "sandforceinternal"];
const SANDFORCE_END: f64 = 10.0;

/// Where an attribute has the share left, of models of which that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftIn {
    Value,
    Raw,
}

/// What an attribute says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// This share of its life is used.
    Used(Used),
    /// This share is either used or left.
    Either(f64),
}

/// An attribute, as far as it is of the kind that it should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribute {
    pub id: Option<u64>,
    pub name: String,
    pub value: Option<f64>,
    /// The lowest that the value was.
    pub worst: Option<f64>,
    pub raw: Option<u64>,
    /// The disk's firmware sets no values: all are 0.
    pub is_of_disk_without_values: bool,
    pub is_of_sandforce: bool,
    /// It is at or below its maker's threshold.
    pub is_failing: bool,
    /// It is of use and age, which its maker says nothing of a failure by (smartctl(8): Old_age).
    pub is_old_age: bool,
    /// Whether smartctl's database has the disk; else the name is a default, and the disk may mean something else.
    pub is_in_database: bool,
    /// The value falls, whatever the name is: its maker lets it fall to a threshold, or has this of all its disks.
    pub is_falling: bool,
    /// Where the share left stands, if that is known of its model and firmware.
    pub left_in: Option<LeftIn>,
}

/// All attributes of an answer.
pub fn read(answer: &Value) -> Vec<Attribute> {
    let is_in_database = answer["in_smartctl_database"] != Value::Bool(false);
    let rows = items(&answer["ata_smart_attributes"]["table"]);
    let makers: Vec<String> = ["model_name", "model_family"]
        .iter()
        .filter_map(|field| answer[*field].as_str().map(str::to_ascii_lowercase))
        .collect();
    let is_falling = |row: &Value| {
        let is_of_maker = |maker: &str| makers.iter().any(|name| name.starts_with(maker));
        has_threshold(row)
            || FALLING.iter().any(|(maker, known)| row["name"] == *known && is_of_maker(maker))
    };
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_string();
    let is_of_disk_without_values =
        rows.len() > 1 && rows.iter().all(|row| number(&row["value"]) == Some(0.0));
    let is_of_sandforce = rows.iter().any(|row| OF_SANDFORCE.contains(&plain(&name(row)).as_str()));
    let left_in = left_in(answer);
    let attribute = |row: &Value| Attribute {
        id: count(&row["id"]),
        name: name(row),
        value: number(&row["value"]),
        worst: number(&row["worst"]),
        raw: raw(&row["raw"]),
        is_of_disk_without_values,
        is_of_sandforce,
        is_failing: row["when_failed"].as_str().is_some_and(is_now),
        is_old_age: truth(&row["flags"]["prefailure"]) == Some(false),
        is_in_database,
        is_falling: is_falling(row),
        left_in,
    };
    rows.into_iter().map(attribute).collect()
}

/// Where a Kingston A400 has the share left, by its firmware.
fn left_in(answer: &Value) -> Option<LeftIn> {
    let word = |field: &str| answer[field].as_str().unwrap_or_default().to_ascii_uppercase();
    let (model, firmware) = (word("model_name"), word("firmware_version"));
    if !(model.starts_with("KINGSTON") && model.contains("SA400")) {
        return None;
    }
    let (_, left_in) = A400.iter().find(|(start, _)| firmware.starts_with(*start))?;
    *left_in
}

/// Whether the value is above a threshold to which it may fall.
fn has_threshold(row: &Value) -> bool {
    let threshold = number(&row["thresh"]).filter(|threshold| (1.0..100.0).contains(threshold));
    threshold.zip(number(&row["value"])).is_some_and(|(threshold, value)| value > threshold)
}

pub fn raw(raw: &Value) -> Option<u64> {
    count(&raw["value"]).or_else(|| count(raw)).or_else(|| {
        let text = raw["string"].as_str().or(raw.as_str())?;
        text.split_whitespace().next()?.parse().ok()
    })
}

fn is_now(words: &str) -> bool {
    words.eq_ignore_ascii_case("now") || words.eq_ignore_ascii_case("FAILING_NOW")
}

impl Attribute {
    /// What it says of the wear; None if it is not about that, or says nothing that can be relied on.
    pub fn reading(&self) -> Option<Reading> {
        let name = plain(&self.name);
        let (_, meaning) = TABLE.iter().find(|(known, _)| *known == name)?;
        match meaning {
            Meaning::Cycles => self.cycles(),
            Meaning::Left => self.left_by_model().or_else(|| self.left(false)),
            Meaning::LeftOfUsed => self.left(true),
            Meaning::Used => self.used(),
            Meaning::EitherWay => self.either_way(),
            Meaning::HundredthsLeft => self.hundredths_left(),
        }
    }

    /// Whether smartctl guesses its `endurance_used` by this attribute: 100 less the value.
    pub fn is_what_smartctl_guesses_by(&self) -> bool {
        self.name.starts_with("SSD_Life_Left") || self.name.starts_with("Wear_Leveling")
    }

    /// Whether the firmware keeps the value up to date: no value is below the lowest that it was.
    fn is_kept(&self) -> bool {
        let is_below = self.value.zip(self.worst).is_some_and(|(value, worst)| value < worst);
        !(self.value == Some(0.0) && (is_below || self.is_of_disk_without_values))
    }

    fn cycles(&self) -> Option<Reading> {
        let value = self.value?;
        if value == 0.0 && self.is_failing {
            return Some(used_up());
        }
        if value == 100.0 && self.raw.is_none_or(|raw| raw > MAX_CYCLES_OF_A_NEW_DISK) {
            return None;
        }
        // Silicon Motion's disks have 100 and 0 for life, in what their firmware does not count.
        if value == 100.0 && self.raw == Some(0) && !self.is_in_database {
            return None;
        }
        // By its default name it may count anything.
        if !self.is_in_database && !self.is_falling && (1.0..100.0).contains(&value) {
            return Some(Reading::Either(value));
        }
        (1.0..=100.0).contains(&value).then(|| left(value))
    }

    /// The share left of a model that is known to have it in the value or in the raw value. A small raw value may be another thing.
    fn left_by_model(&self) -> Option<Reading> {
        let share = match self.left_in? {
            LeftIn::Value => self.value.filter(|value| *value >= 1.0),
            LeftIn::Raw => self.raw.filter(|raw| *raw > MAX_DOUBTFUL_LEFT).map(|raw| raw as f64),
        };
        share.filter(|share| *share <= 100.0).map(left)
    }

    fn left(&self, is_raw_used: bool) -> Option<Reading> {
        if !self.is_kept() && !self.is_failing {
            return match self.raw? {
                0 => None,
                raw @ 1..=MAX_DOUBTFUL_LEFT => Some(Reading::Either(raw as f64)),
                raw @ ..=100 => Some(left(raw as f64)),
                _ => None,
            };
        }
        if self.is_of_sandforce
            && let Some(value) = self.value
        {
            return (0.0..=100.0).contains(&value).then(|| left_of_sandforce(value));
        }
        let value = self.value.filter(|value| (0.0..=100.0).contains(value))?;
        let raw = self.raw.unwrap_or(0);
        let share = raw as f64;
        if raw == 0 || share == value {
            return Some(left(value));
        }
        // One is the share used and the other the share left, and makers differ in which.
        if !is_raw_used && !self.is_falling && share + value == 100.0 {
            return Some(Reading::Either(value));
        }
        let tolerance = if is_raw_used { 1.0 } else { 0.0 };
        if ((100.0 - share).max(0.0) - value).abs() <= tolerance {
            return Some(used(share.max(100.0 - value)));
        }
        let is_share = raw < 100;
        Some(if is_share && value == 100.0 && raw <= MAX_DOUBTFUL_LEFT {
            Reading::Either(share)
        } else if is_share && (value == 100.0 || value == 0.0) {
            left(share)
        } else {
            left(value)
        })
    }

    fn used(&self) -> Option<Reading> {
        match self.raw {
            Some(raw) if raw as f64 <= MAX_PERCENT => Some(used(raw as f64)),
            _ => self.value.filter(|value| (1.0..100.0).contains(value)).map(Reading::Either),
        }
    }

    fn hundredths_left(&self) -> Option<Reading> {
        let raw = self.raw? as f64;
        (0.0..=10_000.0).contains(&raw).then(|| left((raw / 100.0).round()))
    }

    fn either_way(&self) -> Option<Reading> {
        let value = self.value.filter(|value| (0.0..=100.0).contains(value))?;
        let is_of_wd = matches!(self.id, Some(230 | 234));
        if is_of_wd && let Some(share) = self.raw.and_then(packed_share) {
            return Some(used(share));
        }
        let is_moving = (1.0..100.0).contains(&value);
        if self.is_falling && is_moving {
            return Some(left(value));
        }
        match self.raw {
            Some(0) if !is_of_wd && value > 0.0 && self.is_in_database => Some(left(value)),
            // By its default name it may count either way.
            Some(0) if !is_of_wd && is_moving => Some(Reading::Either(value)),
            Some(raw) if is_moving && raw as f64 + value == 100.0 => Some(Reading::Either(value)),
            Some(raw) if raw as f64 != value && !is_of_wd && self.is_in_database && is_moving => {
                Some(left(value))
            }
            _ if self.is_in_database => is_moving.then_some(Reading::Either(value)),
            _ => None,
        }
    }
}

/// WD and SanDisk (230): three numbers of 16 bits, the first the same as the last, in hundredths above the lowest byte
/// (CrystalDiskInfo takes the second byte for the percentage; smartmontools#457 formats them as raw16).
fn packed_share(raw: u64) -> Option<f64> {
    let word = |at: u32| raw >> (16 * at) & 0xffff;
    let is_packed = raw > 0xffff && word(0) == word(2);
    is_packed.then(|| (word(0) >> 8) as f64)
}

/// The share of the erase cycles that the flash is made for, where the disk counts both, and the name of its count. The most
/// of all pairs.
pub fn cycles_used(attributes: &[Attribute]) -> Option<(&str, Used)> {
    let of = |name: &str| attributes.iter().find(|one| plain(&one.name) == name);
    let pairs = CYCLES_OF_RATED.iter().filter_map(|(average, rated)| {
        let average = of(average)?;
        let rated = of(rated)?.raw.filter(|cycles| RATED_CYCLES.contains(cycles))?;
        let percent = (average.raw? as f64 * 100.0 / rated as f64).round();
        (percent <= MAX_PERCENT).then(|| (average.name.as_str(), Used::of_percent(percent)))
    });
    pairs.reduce(|one, other| if one.1.worse(other.1) == one.1 { one } else { other })
}

/// From 100 to 10 all erase cycles are used that the flash is made for.
fn left_of_sandforce(percent: f64) -> Reading {
    if percent <= SANDFORCE_END {
        return used_up();
    }
    let used = 100.0 - percent;
    let max_percent = (used / (1.0 - SANDFORCE_END / 100.0) + 1.0).ceil();
    Reading::Used(Used { min_percent: (used - 1.0).max(0.0), max_percent: Some(max_percent) })
}

fn left(percent: f64) -> Reading {
    Reading::Used(match percent {
        0.0 => return used_up(),
        // Such a value stops at 1.
        ..=1.0 => Used { min_percent: 98.0, max_percent: None },
        _ => Used::about(100.0 - percent),
    })
}

fn used(percent: f64) -> Reading {
    Reading::Used(Used::of_percent(percent))
}

fn used_up() -> Reading {
    Reading::Used(Used { min_percent: 100.0, max_percent: None })
}

fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(id: u64, name: &str, value: f64, raw: u64) -> Option<Reading> {
        let attribute = Attribute {
            id: Some(id),
            name: name.into(),
            value: Some(value),
            raw: Some(raw),
            is_in_database: true,
            ..Attribute::default()
        };
        attribute.reading()
    }

    /// The shares used that an attribute allows.
    fn shares(id: u64, name: &str, value: f64, raw: u64) -> Option<(f64, Option<f64>)> {
        told(id, name, value, raw).map(|reading| match reading {
            Reading::Used(used) => (used.min_percent, used.max_percent),
            Reading::Either(share) => (share.min(100.0 - share), Some(share.max(100.0 - share))),
        })
    }

    #[test]
    fn each_name_of_the_database_tells_the_share() {
        let left = [
            "SSD_Life_Left",
            "Lifetime_Left",
            "Life_Remaining_Percent",
            "Remaining_Life",
            "PCT_Life_Remaining",
            "Lifetime_Remaining%",
            "DriveLife_Remaining%",
            "Drive_Life_Remaining%",
            "SSD_Remaining_Life_Perc",
            "SSD_Life_Left_Perc",
            "Perc_Rated_Life_Remain",
            "Percent_Life_Remaining",
            "Percent_Lifetime_Remain",
            "Remaining_Lifetime_Perc",
        ];
        for name in left {
            assert_eq!(shares(231, name, 64.0, 64), Some((35.0, Some(37.0))), "{name}");
            assert_eq!(shares(231, name, 64.0, 0), Some((35.0, Some(37.0))), "{name}");
            assert_eq!(shares(231, name, 0.0, 0), Some((100.0, None)), "{name}");
        }
        let used = [
            "Perc_Rated_Life_Used",
            "Percent_Lifetime_Used",
            "Percent_Life_Used",
            "Drive_Life_Used%",
            "DriveLife_Used%",
        ];
        for name in used {
            assert_eq!(shares(202, name, 43.0, 57), Some((56.0, Some(58.0))), "{name}");
            assert_eq!(shares(202, name, 57.0, 57), Some((56.0, Some(58.0))), "{name}");
            assert_eq!(shares(202, name, 100.0, 57), Some((56.0, Some(58.0))), "{name}");
        }
    }

    #[test]
    fn a_value_and_a_raw_value_of_100_together_are_used_and_left_either_way() {
        let told = |value, raw| told(231, "SSD_Life_Left", value, raw);
        assert_eq!(told(2.0, 98), Some(Reading::Either(2.0)));
        assert_eq!(told(96.0, 4), Some(Reading::Either(96.0)));
        assert_eq!(told(96.0, 96), Some(left(96.0)));
        assert_eq!(told(96.0, 5), Some(left(96.0)));
        assert_eq!(shares(202, "Percent_Lifetime_Remain", 96.0, 4), Some((3.0, Some(5.0))));
        let indicator = |value, raw| self::told(233, "Media_Wearout_Indicator", value, raw);
        assert_eq!(indicator(3.0, 97), Some(Reading::Either(3.0)));
        assert_eq!(indicator(97.0, 840), Some(left(97.0)));
    }

    #[test]
    fn a_value_that_stays_at_100_gives_way_to_the_raw_value() {
        assert_eq!(shares(231, "SSD_Life_Left", 100.0, 74), Some((25.0, Some(27.0))));
        assert_eq!(shares(169, "Remaining_Lifetime_Perc", 100.0, 96), Some((3.0, Some(5.0))));
        // A new SandForce, whose raw value is always 0, and a new Seagate, whose raw value is packed.
        assert_eq!(shares(231, "SSD_Life_Left", 100.0, 0), Some((0.0, Some(1.0))));
        assert_eq!(shares(231, "SSD_Life_Left", 93.0, 0x64_5d00), Some((6.0, Some(8.0))));
        // 3 % left or 3 % used.
        assert_eq!(told(231, "SSD_Life_Left", 100.0, 3), Some(Reading::Either(3.0)));
    }

    #[test]
    fn a_value_that_no_firmware_sets_gives_way_to_the_raw_value() {
        let told = |value, worst, raw, is_of_disk_without_values| {
            let attribute = Attribute {
                name: "SSD_Life_Left".into(),
                value: Some(value),
                worst: Some(worst),
                raw: Some(raw),
                is_of_disk_without_values,
                is_in_database: true,
                ..Attribute::default()
            };
            attribute.reading()
        };
        // 0 now, though it was never below 100.
        assert_eq!(told(0.0, 100.0, 100, false), Some(left(100.0)));
        assert_eq!(told(0.0, 100.0, 93, false), Some(left(93.0)));
        assert_eq!(told(0.0, 0.0, 100, true), Some(left(100.0)));
        assert_eq!(told(0.0, 100.0, 0, false), None);
        assert_eq!(told(0.0, 100.0, 4, false), Some(Reading::Either(4.0)));
        assert_eq!(told(0.0, 0.0, 0, false), Some(used_up()));
    }

    #[test]
    fn sandforce_s_value_is_10_when_all_cycles_are_used() {
        let told = |value: u32| {
            let table = serde_json::json!({"ata_smart_attributes": {"table": [
                {"id": 230, "name": "Life_Curve_Status", "value": 100, "raw": {"value": 100}},
                {"id": 231, "name": "SSD_Life_Left", "value": value, "worst": value, "raw": {"value": 0}},
            ]}});
            read(&table)[1].reading()
        };
        let share =
            |min_percent, max_percent| Some(Reading::Used(Used { min_percent, max_percent }));
        assert_eq!(told(100), share(0.0, Some(1.0)));
        assert_eq!(told(55), share(44.0, Some(51.0)));
        for end in [0, 1, 10] {
            assert_eq!(told(end), share(100.0, None), "{end}");
        }
    }

    #[test]
    fn cycles_beside_what_the_flash_is_made_for_are_a_share() {
        let told = |average: u64, rated: u64| {
            let attribute = |name: &str, raw| Attribute {
                name: name.into(),
                raw: Some(raw),
                ..Attribute::default()
            };
            let both = [
                attribute("Average_Erase_Count", average),
                attribute("Max_Erase_Count_of_Spec", rated),
            ];
            cycles_used(&both).map(|(_, used)| (used.min_percent, used.max_percent))
        };
        assert_eq!(told(120, 3000), Some((3.0, Some(5.0))));
        assert_eq!(told(3300, 3000), Some((109.0, Some(111.0))));
        assert_eq!(told(120, 0), None);
        assert_eq!(told(u64::MAX, 3000), None);
    }

    #[test]
    fn hundredths_of_a_percent_are_told_from_percent() {
        assert_eq!(shares(178, "SSD_LifeLeft(0.01%)", 97.0, 9731), Some((2.0, Some(4.0))));
        assert_eq!(shares(178, "SSD_LifeLeft(0.01%)", 97.0, 70_000), None);
    }

    #[test]
    fn a_name_by_default_says_a_share_either_way() {
        let unknown = Attribute {
            id: Some(177),
            name: "Wear_Leveling_Count".into(),
            value: Some(42.0),
            raw: Some(1700),
            ..Attribute::default()
        };
        assert_eq!(unknown.reading(), Some(Reading::Either(42.0)));
        let silent =
            Attribute { value: Some(100.0), raw: Some(0), is_falling: true, ..unknown.clone() };
        assert_eq!(silent.reading(), None);
        let new = Attribute { is_in_database: true, ..silent };
        assert_eq!(new.reading(), Some(left(100.0)));
    }

    #[test]
    fn erase_cycles_beside_a_value_of_100_are_of_a_new_disk_only_while_they_are_few() {
        assert_eq!(shares(177, "Wear_Leveling_Count", 100.0, 3), Some((0.0, Some(1.0))));
        assert_eq!(told(177, "Wear_Leveling_Count", 100.0, 401), None);
        assert_eq!(shares(177, "Wear_Leveling_Count", 96.0, 61), Some((3.0, Some(5.0))));
        assert_eq!(shares(177, "Wear_Leveling_Count", 1.0, 2981), Some((98.0, None)));
        for odd in [0.0, 200.0, 255.0] {
            assert_eq!(told(177, "Wear_Leveling_Count", odd, 10), None, "{odd}");
        }
    }

    #[test]
    fn crucial_s_raw_value_goes_on_beyond_100() {
        assert_eq!(shares(202, "Percent_Lifetime_Remain", 0.0, 106), Some((105.0, Some(107.0))));
        assert_eq!(shares(202, "Percent_Lifetime_Remain", 1.0, 99), Some((98.0, Some(100.0))));
        assert_eq!(shares(202, "Percent_Lifetime_Remain", 100.0, 1), Some((0.0, Some(2.0))));
    }

    #[test]
    fn a_wd_tells_by_its_packed_raw_value_whichever_way_its_value_counts() {
        let told = |value, raw| shares(230, "Media_Wearout_Indicator", value, raw);
        assert_eq!(told(1.0, 1_108_103_201_026), Some((0.0, Some(2.0))));
        assert_eq!(told(99.0, 1_108_103_201_026), Some((0.0, Some(2.0))));
        assert_eq!(told(100.0, 0x2f24_2314_2f24), Some((46.0, Some(48.0))));
        assert_eq!(told(7.0, 7), Some((7.0, Some(93.0))), "used or left");
        assert_eq!(told(100.0, 100), None);
    }

    #[test]
    fn intel_s_indicator_counts_down_and_an_unknown_disk_s_tells_nothing() {
        let told = |value, raw| shares(233, "Media_Wearout_Indicator", value, raw);
        assert_eq!(told(97.0, 0), Some((2.0, Some(4.0))));
        assert_eq!(told(1.0, 0), Some((98.0, None)));
        assert_eq!(told(100.0, 840_007), None);
        let unknown = Attribute {
            id: Some(233),
            name: "Media_Wearout_Indicator".into(),
            value: Some(42.0),
            raw: Some(840_007),
            ..Attribute::default()
        };
        assert_eq!(unknown.reading(), None);
    }
}
