//! What smartctl says of a disk's wear, from its JSON.
//!
//! NVMe: the SMART / Health Information log (NVM Express Base Specification, log page 02h): Percentage Used, Data Units
//! Written (in thousands of 512 bytes), Critical Warning, Available Spare and its threshold. ATA: the Device Statistics log
//! (ACS-4, 9.5: Percentage Used Endurance Indicator, Logical Sectors Written), and attributes of the disks' makers, which
//! smartctl names from its database. SAS: the Solid State Media log page (SBC-4: percentage used endurance indicator).

mod attributes;
mod blank;
mod defects;
mod lenient;
mod reporting;
mod self_test;
#[cfg(test)]
mod tests;
mod written;

use rubus_machine::usb_ids::usb_chip_of_ids;
use serde_json::Value;

use self::attributes::{Attribute, Reading};
use self::lenient::{count, items, number, object, truth};
use self::written::Written;
use super::{Source, ToldUsed, Trouble, Used, Warning, Wear};

/// How smartctl is asked; the disk's node comes last. One that sleeps is left asleep.
pub const ARGUMENTS: [&str; 4] = ["--json=c", "--nocheck=standby", "--all", "--log=devstat"];

/// NVMe's critical warnings by their bits. Bit 1 is of the temperature, which wears nothing.
const NVME_WARNINGS: [(u32, Warning); 5] = [
    (0, Warning::SpareNearlyUsedUp),
    (2, Warning::Unreliable),
    (3, Warning::ReadOnly),
    (4, Warning::UnsafeCache),
    (5, Warning::ReadOnly),
];
/// A critical warning that no disk gives, since two of its bits are reserved: a bridge that does not hand the log through does.
const NVME_ALL_ONES: u64 = 0xff;
/// The bit of smartctl's exit status that says that the disk is failing (smartctl(8), bit 3).
const EXIT_FAILING: u64 = 1 << 3;
/// Turns per minute that disks have (ACS-4, 7.12.7.45: a rate is from 0x0401 to 0xFFFE; 0 and 1 are not reported and none).
const TURNS: std::ops::RangeInclusive<f64> = 1025.0..=65_534.0;
/// Attributes of disks that turn whose raw value counts the blocks that cannot be read (smartd.conf(5), -C and -U). SSDs have
/// other meanings for these names, and some of Crucial's firmwares raise and clear them at random.
const UNREADABLE: [&str; 7] = [
    "Current_Pending_Sector",
    "Pending_Sector_Count",
    "Offline_Uncorrectable",
    "Offline_UErr_Media_Scan",
    "Off-line_Scan_UNC_Sector_Ct",
    "Offline_Scan_UNC_SectCt",
    "Uncorrectable_Sector_Ct",
];
/// The same where the disk never lowers the count (drivedb.h: `197,increasing` and `198,increasing`).
const ONCE_UNREADABLE: [&str; 2] = ["Total_Pending_Sectors", "Total_Offl_Uncorrectabl"];
/// Statistics of blocks that cannot be read and wait for being written (ACS-4, 9.5.6).
const CANDIDATES: [&str; 2] = [
    "Number of Realloc. Candidate Logical Sectors",
    "Number of Reallocation Candidate Logical Sectors",
];
const REALLOCATED: &str = "Number of Reallocated Logical Sectors";
/// The attribute 5, whose count is in the lowest 16 bits (drivedb.h: raw16(raw16)).
const REALLOCATED_ID: u64 = 5;
/// From this number of blocks on, a turning disk has replaced many. Disks that have replaced some fail 3 to 6 times as often (Pinheiro
/// et al., "Failure Trends in a Large Disk Drive Population", FAST 2007, 3.5.2); a few are usual.
const MANY_REALLOCATED: u64 = 100;
/// Attributes that only disks that turn have, and that stay at 0 where a firmware of an SSD lists them.
const OF_SPINDLE_AND_ARM: [&str; 2] = ["Spin_Up_Time", "Seek_Error_Rate"];
/// Attributes of use: at their threshold, the time is over for which a disk was made (smartctl(8): Old_age).
const USE: [&str; 10] = [
    "Power_On_Hours",
    "Power_On_Minutes",
    "Power_On_Hours_and_Msec",
    "Power_Cycle_Count",
    "Start_Stop_Count",
    "Load_Cycle_Count",
    "Load_Retract_Count",
    "Loaded_Hours",
    "Head_Flying_Hours",
    "Power-Off_Retract_Count",
];
/// Names in drivedb.h of attributes whose raw value counts reads that failed for good: 187 of most disks; 160 and 195 of some of
/// ATP, Swissbit and SanDisk, 197 of OCZ.
const REPORTED_UNCORRECTABLE: [&str; 10] = [
    "Reported_Uncorrect",
    "Reported_Uncorr_Errors",
    "Reported_UE_Counts",
    "Uncorrectable_Error_Cnt",
    "Uncorrectable_ECC_Cnt",
    "Uncorrectable_ECC_Ct",
    "Uncorrectable_Err_Ct",
    "Uncorrectable_Sectors",
    "UECC_Sector_Count",
    "Total_Unc_Read_Failures",
];
/// More is no count, but something that the firmware has packed into the raw value of an attribute.
const MAX_COUNTED: u64 = 0xffff_ffff;
/// SCSI's warnings that say nothing of the disk: it is too warm, its enclosure is degraded (SPC-5, additional sense codes).
const OF_SURROUNDINGS: [(u64, u64); 2] = [(0x0b, 0x01), (0x0b, 0x02)];
/// The statistic of ATA's standard.
const ENDURANCE: &str = "Percentage Used Endurance Indicator";
/// A disk that was written over less often is nearly new.
const CAPACITIES_OF_A_NEW_DISK: f64 = 20.0;
/// One that was written over less often may be at any part of its life: consumer disks are promised 200 to 1,200 times (Crucial
/// MX500 1 TB: 360 TB; Samsung 870 EVO 1 TB: 600 TB; 860 PRO 1 TB: 1,200 TB).
const CAPACITIES_OF_A_USED_DISK: f64 = 600.0;
/// No maker promises more of flash: Intel SSD DC S3700, 10 times a day for 5 years.
const MAX_LIFE_IN_CAPACITIES: f64 = 18_250.0;

/// What it says of a disk; none where it says nothing of wear and health, as of a disk that is no flash and is well.
pub fn parse(disk: &str, answer: &str) -> Wear {
    let wear = |trouble| Wear { disk: disk.to_string(), trouble, ..Wear::default() };
    let answer = match object(answer) {
        Ok(answer) => answer,
        Err(error) => return wear(Some(not_json(answer, &error))),
    };
    let mut wear = wear(trouble(&answer));
    // A disk that turns does not wear by writing.
    let attributes = if blank::is_blank(&answer) { Vec::new() } else { attributes::read(&answer) };
    wear.is_turning = is_turning(&answer, &attributes);
    let log = &answer["nvme_smart_health_information_log"];
    let is_nvme = log.is_object() || answer["smart_status"]["nvme"].is_object();
    let has_statistics = !items(&answer["ata_device_statistics"]["pages"]).is_empty();
    if is_nvme {
        of_nvme(&mut wear, &answer);
    } else if !attributes.is_empty() || has_statistics {
        of_ata(&mut wear, &answer, &attributes);
    } else if is_scsi(&answer) {
        of_scsi(&mut wear, &answer);
    } else if blank::is_blank(&answer) {
        let words = || "its attributes could not be read".to_string();
        wear.trouble.get_or_insert_with(|| Trouble::Other(words()));
    }
    // An NVMe disk's status is that some critical warning is raised, and it may be its temperature alone.
    let is_nvme_warning = wear.source == Some(Source::Nvme) && nvme_warning(&answer).is_some();
    let is_made_up = wear.source.is_none() && nvme_status(&answer) == Some(NVME_ALL_ONES);
    if is_failing(&answer) && !is_nvme_warning && !is_made_up {
        wear.warnings.push(Warning::Failing);
    }
    wear.warnings.sort_unstable();
    wear.warnings.dedup();
    if wear.source.is_some() {
        wear.trouble = None;
    }
    wear
}

/// By its rate; a disk older than the standard that has it (ATA8-ACS) by its spindle and arm.
fn is_turning(answer: &Value, attributes: &[Attribute]) -> bool {
    if !answer["rotation_rate"].is_null() {
        return number(&answer["rotation_rate"]).is_some_and(|rate| TURNS.contains(&rate));
    }
    let is_moving = |one: &Attribute| {
        OF_SPINDLE_AND_ARM.contains(&one.name.as_str()) && one.raw.is_some_and(|raw| raw > 0)
    };
    attributes.iter().any(is_moving) && attributes.iter().all(|one| one.reading().is_none())
}

fn is_failing(answer: &Value) -> bool {
    let of_scsi = &answer["smart_status"]["scsi"];
    let warning = count(&of_scsi["asc"]).zip(count(&of_scsi["ascq"]));
    if warning.is_some_and(|warning| OF_SURROUNDINGS.contains(&warning)) {
        return false;
    }
    match truth(&answer["smart_status"]["passed"]) {
        Some(has_passed) => !has_passed,
        None => {
            count(&answer["smartctl"]["exit_status"]).is_some_and(|bits| bits & EXIT_FAILING != 0)
        }
    }
}

/// Why an answer is no JSON.
fn not_json(answer: &str, error: &serde_json::Error) -> Trouble {
    let version = answer.split_once("smartctl ").map(|(_, behind)| behind);
    let version = version.and_then(|behind| behind.split_whitespace().next());
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse().ok());
    match version.and_then(|version| Some((version, major(version)?))) {
        Some((version, ..7)) => Trouble::OldSmartctl(version.to_string()),
        Some((version, 7_u32..)) => {
            Trouble::Other(format!("smartctl {version} did not answer in JSON"))
        }
        None => Trouble::Other(format!("its answer: {error}")),
    }
}

fn trouble(answer: &Value) -> Option<Trouble> {
    let messages = items(&answer["smartctl"]["messages"]);
    let text = |message: &Value| message["string"].as_str().unwrap_or_default().trim().to_string();
    let sleeps = |words: &String| words.contains("STANDBY") || words.contains("SLEEP");
    if messages.iter().copied().map(text).any(|words| sleeps(&words)) {
        return Some(Trouble::Asleep);
    }
    let words = text(messages.iter().find(|message| message["severity"] == "error")?);
    Some(if words.contains("Permission denied") { Trouble::NotRoot } else { Trouble::Other(words) })
}

/// How smartctl calls the NVMe bridges of each maker (smartctl(8), `--device`), by the maker's USB id.
const NVME_BRIDGES: [(u16, &str); 3] =
    [(0x0bda, "sntrealtek"), (0x152d, "sntjmicron"), (0x174c, "sntasmedia")];
/// How it calls a SATA disk behind a bridge.
const SATA: &str = "sat";

/// As what smartctl should ask a disk again that it could not ask (`--device`); none where that is not known, since the commands of
/// one bridge may upset another. A bridge for both kinds, such as a JMS583, is asked as one for NVMe, also with a SATA disk
/// (smartmontools issue 547).
pub fn device_type(trouble: &Trouble) -> Option<&'static str> {
    let Trouble::Other(words) = trouble else {
        return None;
    };
    if words.contains("Read NVMe Identify Controller failed") {
        return Some(SATA);
    }
    let (_, ids) = words.split_once("Unknown USB bridge [")?;
    let chip = usb_chip_of_ids(ids.split([' ', ']']).next()?)?;
    if chip.name.ends_with("SATA bridge") {
        return Some(SATA);
    }
    let of_maker = NVME_BRIDGES.iter().find(|(vendor, _)| *vendor == chip.vendor);
    of_maker.filter(|_| chip.name.ends_with("NVMe bridge")).map(|(_, kind)| *kind)
}

fn of_nvme(wear: &mut Wear, answer: &Value) {
    let log = &answer["nvme_smart_health_information_log"];
    let is_read = log.is_object() && !is_blank(log);
    if is_read {
        wear.source = Some(Source::Nvme);
        wear.used = share(&log["percentage_used"]);
        wear.set_written(written::of_nvme(answer, wear.used));
    } else if nvme_warning(answer).is_none_or(|bits| bits == 0) {
        let words = || "its health log could not be read".to_string();
        wear.trouble.get_or_insert_with(|| Trouble::Other(words()));
        return;
    } else {
        wear.source = Some(Source::Nvme);
    }
    let bits = nvme_warning(answer).unwrap_or(0);
    let raised = NVME_WARNINGS.iter().filter(|(bit, _)| bits >> bit & 1 == 1);
    wear.warnings.extend(raised.map(|(_, warning)| *warning));
    // A counter of 128 bits, which smartctl writes as text where it is large.
    if is_read && number(&log["media_errors"]).is_some_and(|errors| errors >= 1.0) {
        wear.warnings.push(Warning::DataErrors);
    }
    warn_of_spare(wear, &log["available_spare"], &log["available_spare_threshold"]);
    wear.warnings.extend(self_test::of_nvme(answer));
}

/// The critical warning of the log, else what the disk's status says of it.
fn nvme_warning(answer: &Value) -> Option<u64> {
    let log = &answer["nvme_smart_health_information_log"];
    let of_log = count(&log["critical_warning"]).filter(|_| !is_blank(log));
    of_log.or_else(|| nvme_status(answer).filter(|bits| *bits != NVME_ALL_ONES))
}

/// What smartctl copies from the log to the disk's status.
fn nvme_status(answer: &Value) -> Option<u64> {
    count(&answer["smart_status"]["nvme"]["value"])
}

/// Whether a log is none: all zeros or all ones, as a USB bridge gives that does not hand it through.
fn is_blank(log: &Value) -> bool {
    let byte = |field: &str| count(&log[field]);
    let bytes = ["critical_warning", "available_spare", "percentage_used"].map(byte);
    let counters = ["data_units_written", "data_units_read", "power_cycles", "power_on_hours"];
    let has_counted = counters.iter().any(|field| byte(field).is_some_and(|count| count > 0));
    bytes == [Some(0xff); 3] || (bytes == [Some(0); 3] && !has_counted)
}

fn of_scsi(wear: &mut Wear, answer: &Value) {
    wear.source = Some(Source::Scsi);
    let told = [
        &answer["endurance_used"]["current_percent"],
        &answer["scsi_percentage_used_endurance_indicator"],
    ];
    let used = told.into_iter().find_map(share);
    wear.used = used.filter(|_| !wear.is_turning);
    wear.set_written(written::of_scsi(answer, wear.used));
    let spare = &answer["spare_available"];
    warn_of_spare(wear, &spare["current_percent"], &spare["threshold_percent"]);
    let log = &answer["scsi_error_counter_log"];
    let of = |kind: &str| count(&log[kind]["total_uncorrected_errors"]);
    warn_of_errors(wear, ["read", "write", "verify"].map(of));
    wear.warnings.extend(self_test::of_scsi(answer));
    if wear.is_turning {
        warn_of_unreadable(wear, [count(&answer["scsi_pending_defects"]["count"])]);
        warn_of_reallocated(wear, [defects::grown(answer)]);
    }
    let has_spoken = wear.used.is_some() || !wear.warnings.is_empty() || is_failing(answer);
    if !has_spoken && reporting::is_silent(answer) {
        wear.source = None;
        let words = || "its reports of its own health are off".to_string();
        wear.trouble.get_or_insert_with(|| Trouble::Other(words()));
    }
}

fn is_scsi(answer: &Value) -> bool {
    let is_told = |field: &str| !answer[field].is_null();
    is_told("scsi_percentage_used_endurance_indicator")
        || is_told("endurance_used")
        || (answer["device"]["protocol"] == "SCSI" && is_told("smart_status"))
}

/// A share beyond 100 % is none: a firmware that says nothing has 255 there (NVMe and SPC-5 reserve such values).
fn warn_of_spare(wear: &mut Wear, spare: &Value, threshold: &Value) {
    let share = |value| number(value).filter(|percent| (0.0..=100.0).contains(percent));
    let below = share(spare).zip(share(threshold)).is_some_and(|(spare, least)| spare < least);
    if below {
        wear.warnings.push(Warning::SpareNearlyUsedUp);
    }
}

/// Counters of data that could not be read, at any time in the disk's life.
fn warn_of_errors(wear: &mut Wear, counters: impl IntoIterator<Item = Option<u64>>) {
    if counters.into_iter().flatten().any(|errors| errors > 0) {
        wear.warnings.push(Warning::DataErrors);
    }
}

fn warn_of_unreadable(wear: &mut Wear, counters: impl IntoIterator<Item = Option<u64>>) {
    if counters.into_iter().flatten().any(|blocks| blocks > 0) {
        wear.warnings.push(Warning::UnreadableBlocks);
    }
}

fn warn_of_reallocated(wear: &mut Wear, counters: impl IntoIterator<Item = Option<u64>>) {
    if counters.into_iter().flatten().any(|blocks| blocks >= MANY_REALLOCATED) {
        wear.warnings.push(Warning::ReallocatedBlocks);
    }
}

fn share(value: &Value) -> Option<Used> {
    number(value).filter(|percent| *percent >= 0.0).map(Used::of_percent)
}

fn of_ata(wear: &mut Wear, answer: &Value, attributes: &[Attribute]) {
    wear.source = Some(Source::Ata);
    warn_of_thresholds(wear, answer, attributes);
    wear.warnings.extend(self_test::of_ata(answer));
    let counts = |names: &[&str]| -> Vec<Option<u64>> {
        let named = attributes.iter().filter(|one| names.contains(&one.name.as_str()));
        named.map(|one| one.raw.filter(|raw| *raw <= MAX_COUNTED)).collect()
    };
    let told = |name: &str| statistic(answer, name).and_then(count);
    warn_of_errors(wear, counts(&REPORTED_UNCORRECTABLE));
    warn_of_errors(wear, [told("Number of Reported Uncorrectable Errors")]);
    if wear.is_turning {
        warn_of_errors(wear, counts(&ONCE_UNREADABLE));
        warn_of_unreadable(wear, counts(&UNREADABLE));
        warn_of_unreadable(wear, CANDIDATES.map(told));
        warn_of_unreadable(wear, [count(&answer["ata_pending_defects_log"]["count"])]);
        let of_attribute = attributes.iter().filter(|one| one.id == Some(REALLOCATED_ID));
        warn_of_reallocated(wear, of_attribute.map(|one| one.raw.map(|raw| raw & 0xffff)));
        warn_of_reallocated(wear, [told(REALLOCATED)]);
    }
    if !wear.is_turning {
        wear.told_used = told_used(answer, attributes);
        wear.used = wear.told_used.iter().map(|told| told.used).reduce(Used::worse);
    }
    let sectors = statistic(answer, "Logical Sectors Written").and_then(count);
    wear.set_written(written::of_ata(answer, sectors, attributes, wear.used));
}

fn warn_of_thresholds(wear: &mut Wear, answer: &Value, attributes: &[Attribute]) {
    let has_passed = truth(&answer["smart_status"]["passed"]) == Some(true);
    let is_temperature = |one: &&Attribute| {
        let name = one.name.to_ascii_lowercase();
        name.split(|letter: char| !letter.is_ascii_alphabetic())
            .any(|word| word.starts_with("temp"))
    };
    let is_of_use =
        |one: &&Attribute| has_passed && one.is_old_age && USE.contains(&one.name.as_str());
    let failing = attributes.iter().filter(|one| one.is_failing && !is_temperature(one));
    let (of_use, failing): (Vec<&Attribute>, Vec<&Attribute>) = failing.partition(is_of_use);
    let names = |of: &[&Attribute]| of.iter().map(|one| one.name.clone()).collect();
    wear.failing_attributes = names(&failing);
    wear.used_up_attributes = names(&of_use);
    if !failing.is_empty() {
        wear.warnings.push(Warning::AtThreshold);
    }
    if !of_use.is_empty() {
        wear.warnings.push(Warning::DesignLifeOver);
    }
}

/// All that a disk says of its wear, in the order in which it says it.
fn told_used(answer: &Value, attributes: &[Attribute]) -> Vec<ToldUsed> {
    let told = |name: &str, used| ToldUsed { name: name.to_string(), used };
    let standard = statistic(answer, ENDURANCE).and_then(share);
    // smartctl has it from that statistic, or makes it of an attribute's value (7.3, ataprint.cpp).
    let is_guess = attributes.iter().any(Attribute::is_what_smartctl_guesses_by);
    let is_told_apart = standard.is_none() && !is_guess;
    let endurance = share(&answer["endurance_used"]["current_percent"]).filter(|_| is_told_apart);
    let mut all: Vec<ToldUsed> = Vec::new();
    all.extend(endurance.map(|used| told("endurance_used", used)));
    all.extend(standard.map(|used| told(ENDURANCE, used)));
    let mut doubtful: Vec<(&str, f64)> = Vec::new();
    for attribute in attributes {
        match attribute.reading() {
            Some(Reading::Used(used)) => all.push(told(&attribute.name, used)),
            Some(Reading::Either(share)) => doubtful.push((&attribute.name, share)),
            None => {}
        }
    }
    // Cycles that are counted do not stand against a share that the disk itself makes of them.
    if all.is_empty()
        && let Some((name, used)) = attributes::cycles_used(attributes)
    {
        all.push(told(name, used));
    }
    let worst = all.iter().map(|told| told.used).reduce(Used::worse);
    let capacities = capacities_written(answer, attributes);
    for (name, share) in doubtful {
        let used = direction(share, worst, capacities);
        all.extend(used.map(|percent| told(name, Used::of_percent(percent))));
    }
    all
}

/// What a share that is used or left is taken for: what is nearer to what else the disk says, else what fits the bytes that
/// it was given. None where neither is known, or neither fits.
fn direction(share: f64, worst: Option<Used>, capacities: Option<f64>) -> Option<f64> {
    let (less, more) = (share.min(100.0 - share), share.max(100.0 - share));
    if let Some(worst) = worst {
        let distance = |percent: f64| (percent - worst.min_percent).abs();
        return Some(if distance(more) < distance(less) { more } else { less });
    }
    let capacities = capacities?;
    if capacities < CAPACITIES_OF_A_NEW_DISK {
        let min_percent = Used::about(less).min_percent;
        (!written::is_too_little_for(capacities, min_percent)).then_some(less)
    } else if capacities >= CAPACITIES_OF_A_USED_DISK
        && capacities > MAX_LIFE_IN_CAPACITIES * (less + 1.0) / 100.0
    {
        Some(more)
    } else {
        None
    }
}

/// How often a disk was written over.
fn capacities_written(answer: &Value, attributes: &[Attribute]) -> Option<f64> {
    let sectors = statistic(answer, "Logical Sectors Written").and_then(count);
    let written =
        written::of_ata(answer, sectors, attributes, None).bytes.filter(|bytes| *bytes > 0)?;
    let capacity = number(&answer["user_capacity"]["bytes"]).filter(|bytes| *bytes > 0.0)?;
    Some(written as f64 / capacity)
}

/// The value of one of ATA's statistics that the disk calls valid.
fn statistic<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let pages = items(&answer["ata_device_statistics"]["pages"]).into_iter();
    let mut rows = pages.flat_map(|page| items(&page["table"]));
    let is_valid = |row: &Value| truth(&row["flags"]["valid"]) != Some(false);
    let row = rows.find(|row| row["name"] == name && is_valid(row))?;
    Some(&row["value"])
}

impl Wear {
    fn set_written(&mut self, written: Written) {
        self.written_bytes = written.bytes;
        self.is_written_counter_implausible = written.is_implausible;
    }
}
