//! The bootloader in the EEPROM of a Raspberry Pi 4 or 5: its settings, and what it can do by its date.
//!
//! Source: raspberrypi/rpi-eeprom, `firmware-2711/release-notes.md` and `firmware-2712/release-notes.md`; settings:
//! Raspberry Pi documentation, "Raspberry Pi bootloader configuration".

use crate::medium::Mode;
use crate::model::Kernels;

/// Where the dates are from.
pub(crate) const RELEASE_NOTES: &str = "raspberrypi/rpi-eeprom, release notes";
/// What brings a newer bootloader.
pub(crate) const UPDATE: &str = "sudo rpi-eeprom-update -a";

/// What is known of the bootloader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eeprom {
    /// When it was built, seconds since 1970, UTC.
    pub built_unix_s: Option<u64>,
    /// Its settings, as `vcgencmd bootloader_config` prints them.
    pub settings: Option<String>,
}

/// Something that bootloaders learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    StartFromUsb,
    StartFromNvme,
    ReadGpt,
    /// Looks into the next partitions where the first is none to start from.
    WalkPartitions,
    /// The same where `PARTITION_WALK=1` asks for it.
    WalkOnDemand,
    /// Knows the filter `[boot_partition=N]` of `config.txt`.
    FilterByPartition,
    /// Knows the setting `PARTITION=`.
    NamePartition,
    /// Knows `BOOT_WATCHDOG_TIMEOUT=` and `BOOT_WATCHDOG_PARTITION=`.
    Watch,
    /// Takes the initial RAM filesystem that belongs to a kernel named by `kernel=`, with `auto_initramfs`.
    MatchInitramfs,
}

/// Which partition `PARTITION=` asks for, where a restart names none and `autoboot.txt` neither. Source: Raspberry Pi
/// documentation, "PARTITION"; release notes of 2025-02-11 and 2025-08-27.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedPartition {
    /// None: the first one that can be started from.
    First,
    Number(u32),
    /// It stands below a filter (`[partition=62]`), and which of them apply is not known.
    Filtered,
}

/// `BOOT_ORDER` where the settings do not have it: the card, then USB, then from the start again.
const USUAL_ORDER: u32 = 0xf41;

impl Eeprom {
    /// Whether it can do something; absent where its date is not known.
    pub fn can(&self, ability: Ability, kernels: Kernels) -> Option<bool> {
        let Some(since) = ability.since(kernels) else { return Some(true) };
        self.built_unix_s.map(|built| built >= unix_s(since))
    }

    /// Whether it looks into the next partitions; absent where that depends on what is not known.
    pub fn walks(&self, kernels: Kernels) -> Option<bool> {
        let usual = self.can(Ability::WalkPartitions, kernels);
        let on_demand = self.can(Ability::WalkOnDemand, kernels);
        match self.get("PARTITION_WALK") {
            Some("0") => Some(false),
            // That of a Raspberry Pi 4 did so, and failed with some files.
            Some(_) if usual == Some(false) && on_demand == Some(true) => {
                (kernels != Kernels::Armv8Or7l).then_some(true)
            }
            Some(_) => on_demand,
            None if self.settings.is_none() && usual == Some(false) => on_demand.filter(|can| !can),
            None => usual,
        }
    }

    /// The day it was built, "2025-02-12".
    pub fn date(&self) -> Option<String> {
        self.built_unix_s.map(day)
    }

    /// A setting; of several lines the last counts. Sections (`[all]`, `[pi4]`) are passed over.
    pub fn get(&self, name: &str) -> Option<&str> {
        let lines = self.settings.as_deref()?.lines();
        let settings = lines.filter_map(|line| line.trim().split_once('='));
        settings.filter(|(own, _)| own.trim() == name).map(|(_, value)| value.trim()).next_back()
    }

    /// The partition that its settings name.
    pub fn partition(&self, kernels: Kernels) -> NamedPartition {
        if self.can(Ability::NamePartition, kernels) == Some(false) {
            return NamedPartition::First;
        }
        let (mut named, mut is_filtered, mut has_filtered) = (None, false, false);
        for line in self.settings.as_deref().unwrap_or_default().lines().map(str::trim) {
            if line.starts_with('[') {
                is_filtered = !line.eq_ignore_ascii_case("[all]");
            } else if let Some(("PARTITION", value)) = line.split_once('=') {
                has_filtered |= is_filtered;
                named = value.trim().parse::<u32>().ok();
            }
        }
        match named {
            _ if has_filtered => NamedPartition::Filtered,
            None | Some(0) => NamedPartition::First,
            Some(number) => NamedPartition::Number(number),
        }
    }

    /// After how many seconds without a start the bootloader goes to another partition, and to which.
    pub fn watchdog(&self, kernels: Kernels) -> Option<(u32, u32)> {
        let number = |name: &str| self.get(name)?.parse().ok().filter(|number| *number > 0);
        let both = (number("BOOT_WATCHDOG_TIMEOUT")?, number("BOOT_WATCHDOG_PARTITION")?);
        (self.can(Ability::Watch, kernels) != Some(false)).then_some(both)
    }

    /// What is tried, in that order; absent where the settings are not known.
    pub fn boot_order(&self) -> Option<BootOrder> {
        self.settings.as_ref()?;
        let text = self.get("BOOT_ORDER").filter(|text| !text.is_empty());
        Some(BootOrder(match text {
            None => USUAL_ORDER,
            Some(text) => {
                let digits = text.trim_start_matches("0x").trim_start_matches("0X");
                u32::from_str_radix(digits, 16).ok()?
            }
        }))
    }
}

/// `BOOT_ORDER`: digits that are read from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootOrder(u32);

impl BootOrder {
    /// The media in the order of the tries, until the board stops or begins again.
    pub fn modes(self) -> Vec<Mode> {
        let mut modes = Vec::new();
        let mut rest = self.0;
        while rest != 0 {
            match rest & 0xf {
                0xe | 0xf => break,
                digit => modes.extend(Mode::of(digit)),
            }
            rest >>= 4;
        }
        modes
    }

    /// As it is written: "0xf41".
    pub fn text(self) -> String {
        format!("{:#x}", self.0)
    }

    /// The same with one more medium, tried before all others.
    #[must_use]
    pub fn with_first(self, mode: Mode) -> BootOrder {
        let digit = match mode {
            Mode::Card => 1,
            Mode::Usb => 4,
            Mode::Nvme => 6,
            Mode::NoDisk(_) => 2,
        };
        BootOrder((self.0 << 4) | digit)
    }
}

impl Ability {
    /// Since when a bootloader of these boards has it, as a day; absent where each has it.
    pub fn since(self, kernels: Kernels) -> Option<&'static str> {
        let is_pi4 = kernels == Kernels::Armv8Or7l;
        match self {
            Ability::StartFromUsb | Ability::ReadGpt if is_pi4 => Some("2020-09-03"),
            Ability::StartFromNvme if is_pi4 => Some("2021-07-06"),
            // Until then it forgot on a Raspberry Pi 4 to begin afresh with the next one (rpi-eeprom, pull request 741).
            Ability::WalkPartitions if is_pi4 => Some("2025-08-20"),
            Ability::WalkPartitions => Some("2025-08-13"),
            Ability::WalkOnDemand if is_pi4 => Some("2025-02-11"),
            Ability::WalkOnDemand => Some("2025-01-27"),
            Ability::MatchInitramfs => Some("2025-05-08"),
            // rpi-eeprom, release v2022.04.26.
            Ability::NamePartition if is_pi4 => Some("2022-04-26"),
            Ability::Watch => Some("2025-06-20"),
            Ability::FilterByPartition => Some("2025-03-10"),
            Ability::StartFromUsb
            | Ability::ReadGpt
            | Ability::StartFromNvme
            | Ability::NamePartition => None,
        }
    }
}

/// Midnight of a day, seconds since 1970; 0 where the text is no day.
pub fn unix_s(day: &str) -> u64 {
    let mut numbers = day.split('-').map(|part| part.parse::<i64>().unwrap_or_default());
    let (Some(year), Some(month), Some(day)) = (numbers.next(), numbers.next(), numbers.next())
    else {
        return 0;
    };
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    u64::try_from(days * 86_400).unwrap_or_default()
}

/// The day of a moment; civil_from_days of the same source.
pub fn day(unix_s: u64) -> String {
    let days = (unix_s / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &str) -> Eeprom {
        Eeprom { built_unix_s: None, settings: Some(settings.into()) }
    }

    #[test]
    fn the_order_is_read_from_the_right() {
        let modes = |settings: &str| with(settings).boot_order().map(BootOrder::modes);
        let nvme_first = Some(vec![Mode::Nvme, Mode::Card, Mode::Usb]);
        assert_eq!(modes("[all]\nBOOT_ORDER=0xf416\n"), nvme_first);
        assert_eq!(modes("BOOT_UART=1\n"), Some(vec![Mode::Card, Mode::Usb]));
        assert_eq!(modes("BOOT_ORDER=0x4e1"), Some(vec![Mode::Card]));
        assert_eq!(modes("BOOT_ORDER=usb"), None);
        assert_eq!(Eeprom::default().boot_order(), None);
        let order = with("BOOT_ORDER=0xf41").boot_order().expect("it is there");
        assert_eq!(order.with_first(Mode::Nvme).text(), "0xf416");
    }

    #[test]
    fn the_partition_is_named_by_a_setting_that_no_filter_holds_back() {
        let of = |settings: &str| with(settings).partition(Kernels::Bcm2712);
        for (settings, expected) in [
            ("BOOT_UART=1\n", NamedPartition::First),
            ("[all]\nPARTITION=0\n", NamedPartition::First),
            ("[all]\nPARTITION=2\nPARTITION_WALK=1\n", NamedPartition::Number(2)),
            ("PARTITION=2\n[partition=62]\nPARTITION=1\n[all]\n", NamedPartition::Filtered),
            ("[partition=62]\nBOOT_ORDER=0x1\n[all]\nPARTITION=3\n", NamedPartition::Number(3)),
        ] {
            assert_eq!(of(settings), expected, "{settings}");
        }
        let built = |day: &str| Eeprom { built_unix_s: Some(unix_s(day)), ..with("PARTITION=2") };
        let pi4 = Kernels::Armv8Or7l;
        assert_eq!(built("2022-03-10").partition(pi4), NamedPartition::First);
        assert_eq!(built("2022-04-26").partition(pi4), NamedPartition::Number(2));
        let watching = "BOOT_WATCHDOG_TIMEOUT=60\nBOOT_WATCHDOG_PARTITION=3\n";
        assert_eq!(with(watching).watchdog(pi4), Some((60, 3)));
        assert_eq!(with("BOOT_WATCHDOG_PARTITION=3\n").watchdog(pi4), None);
    }

    #[test]
    fn what_it_can_do_follows_from_its_date() {
        let of = |date: &str| Eeprom { built_unix_s: Some(unix_s(date)), settings: None };
        let pi4 = Kernels::Armv8Or7l;
        assert_eq!(of("2020-04-16").can(Ability::StartFromUsb, pi4), Some(false));
        assert_eq!(of("2020-09-03").can(Ability::StartFromUsb, pi4), Some(true));
        assert_eq!(of("2021-04-29").can(Ability::StartFromNvme, pi4), Some(false));
        assert_eq!(of("2023-09-13").can(Ability::StartFromNvme, Kernels::Bcm2712), Some(true));
        assert_eq!(of("2025-06-09").can(Ability::WalkPartitions, Kernels::Bcm2712), Some(false));
        assert_eq!(Eeprom::default().can(Ability::WalkPartitions, pi4), None);
    }

    #[test]
    fn whether_it_walks_follows_from_its_date_and_its_settings() {
        let walks = |date: &str, settings: Option<&str>, kernels| {
            let built_unix_s = Some(unix_s(date));
            Eeprom { built_unix_s, settings: settings.map(str::to_string) }.walks(kernels)
        };
        let (pi4, pi5) = (Kernels::Armv8Or7l, Kernels::Bcm2712);
        assert_eq!(walks("2025-08-13", Some("A=1"), pi5), Some(true));
        assert_eq!(walks("2025-08-13", Some("A=1"), pi4), Some(false));
        assert_eq!(walks("2025-08-20", None, pi4), Some(true));
        assert_eq!(walks("2025-12-08", Some("PARTITION_WALK=0"), pi5), Some(false));
        assert_eq!(walks("2025-06-09", Some("PARTITION_WALK=1"), pi5), Some(true));
        assert_eq!(walks("2025-06-09", Some("PARTITION_WALK=1"), pi4), None);
        assert_eq!(walks("2025-06-09", Some("A=1"), pi5), Some(false));
        // Its settings may ask for it.
        assert_eq!(walks("2025-06-09", None, pi5), None);
        assert_eq!(walks("2024-06-09", None, pi5), Some(false));
        assert_eq!(Eeprom::default().walks(pi5), None);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for date in ["1970-01-01", "2000-02-29", "2020-09-03", "2024-12-31", "2025-08-13"] {
            assert_eq!(day(unix_s(date)), date);
        }
        assert_eq!(unix_s("2025-08-13"), 1_755_043_200);
    }
}
