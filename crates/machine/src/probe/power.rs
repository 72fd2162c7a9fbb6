//! Heat, throttling and supply voltage.

use std::path::Path;

use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Power, Temperature, Throttling};

use crate::probe::device_tree;
use crate::probe::read;

const ZONES: &str = "/sys/class/thermal";
const MONITORS: &str = "/sys/class/hwmon";
const FIRMWARE_DRIVER: &str = "/sys/bus/platform/drivers/raspberrypi-firmware";
/// Mailbox tag "get throttled".
const GET_THROTTLED: u32 = 0x0003_0046;

/// Heat, throttling and supply voltage alone, as a survey has them.
pub fn power(files: &dyn Files) -> Power {
    let is_pi = device_tree::is_raspberry_pi(files);
    Power {
        temperatures: temperatures(files),
        throttling: if is_pi {
            throttling(files)
        } else {
            Fact::unknown("not a Raspberry Pi", "/proc/device-tree/compatible")
        },
        undervoltage_alarm: undervoltage_alarm(files),
    }
}

/// Thermal zones; where there are none, the hardware monitors.
fn temperatures(files: &dyn Files) -> Vec<Temperature> {
    let zones: Vec<Temperature> = names(files, ZONES, "thermal_zone")
        .iter()
        .map(|directory| Temperature {
            zone: label(files, &format!("{directory}/type"), directory),
            millicelsius: read::number(files, &format!("{directory}/temp")),
        })
        .collect();
    if !zones.is_empty() {
        return zones;
    }
    names(files, MONITORS, "hwmon")
        .iter()
        .flat_map(|directory| monitored(files, directory))
        .collect()
}

/// The temperatures of one hardware monitor (`temp1_input` …), named "monitor label".
fn monitored(files: &dyn Files, directory: &str) -> Vec<Temperature> {
    let monitor = label(files, &format!("{directory}/name"), directory);
    files
        .list(Path::new(directory))
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.strip_suffix("_input"))
        .filter(|name| name.starts_with("temp"))
        .map(|sensor| {
            let own = read::filled_text(files, &format!("{directory}/{sensor}_label"));
            Temperature {
                zone: format!("{monitor} {}", own.text().unwrap_or(sensor)),
                millicelsius: read::number(files, &format!("{directory}/{sensor}_input")),
            }
        })
        .collect()
}

/// What a file calls it, or else the directory's name.
fn label(files: &dyn Files, path: &str, directory: &str) -> String {
    let named = read::filled_text(files, path);
    let last = directory.rsplit('/').next().unwrap_or(directory);
    named.text().unwrap_or(last).to_string()
}

/// Paths of the entries of a directory that begin with a prefix, in numeric order of the rest.
fn names(files: &dyn Files, directory: &str, prefix: &str) -> Vec<String> {
    let mut numbered: Vec<(u32, String)> = files
        .list(Path::new(directory))
        .unwrap_or_default()
        .iter()
        .filter_map(|name| {
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            Some((number, format!("{directory}/{name}")))
        })
        .collect();
    numbered.sort_unstable();
    numbered.into_iter().map(|(_, path)| path).collect()
}

/// The kernel's file first, since every user may read it; then the firmware itself; then the
/// vendor's program, which may be set up to be allowed more.
fn throttling(files: &dyn Files) -> Fact<Throttling> {
    read::first_known(&[
        &|| throttling_from_kernel(files),
        &|| throttling_from_mailbox(files),
        &|| throttling_from_vcgencmd(files),
    ])
    .map(Throttling::decode)
}

fn throttling_from_kernel(files: &dyn Files) -> Fact<u32> {
    let device = files
        .list(Path::new(FIRMWARE_DRIVER))
        .unwrap_or_default()
        .into_iter()
        .find(|name| name.ends_with("firmware"));
    match device {
        Some(device) => read::text(files, &format!("{FIRMWARE_DRIVER}/{device}/get_throttled"))
            .and_then(|text| parse_word(&text)),
        None => Fact::unknown("the firmware's driver is not loaded", FIRMWARE_DRIVER),
    }
}

fn throttling_from_mailbox(files: &dyn Files) -> Fact<u32> {
    const SOURCE: &str = "/dev/vcio, property 0x00030046";
    match files.firmware_word(GET_THROTTLED) {
        Ok(word) => Fact::known(word, SOURCE),
        Err(ReadError::Denied) => Fact::unknown(
            "permission denied; root or a member of the group video may read it",
            SOURCE,
        ),
        Err(error) => Fact::unknown(error.to_string(), SOURCE),
    }
}

fn throttling_from_vcgencmd(files: &dyn Files) -> Fact<u32> {
    const CALL: &str = "vcgencmd get_throttled";
    match files.ask("vcgencmd", &["get_throttled"]) {
        Ok(output) => match output.trim().strip_prefix("throttled=") {
            Some(word) => Fact::known(word.to_string(), CALL).and_then(|word| parse_word(&word)),
            None => Fact::unknown(format!("it printed '{}'", output.trim()), CALL),
        },
        Err(ReadError::Absent) => Fact::unknown("not installed", CALL),
        Err(error) => Fact::unknown(error.to_string(), CALL),
    }
}

/// A hexadecimal number with or without "0x".
fn parse_word(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16)
        .map_err(|_| format!("it says '{text}', not a hexadecimal number"))
}

/// The kernel keeps the alarm until the next boot.
fn undervoltage_alarm(files: &dyn Files) -> Fact<bool> {
    let monitor = names(files, MONITORS, "hwmon")
        .into_iter()
        .find(|path| read::text(files, &format!("{path}/name")).text() == Some("rpi_volt"));
    match monitor {
        Some(path) => read::flag(files, &format!("{path}/in0_lcrit_alarm")),
        None => Fact::unknown("there is no monitor named rpi_volt", MONITORS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn pi() -> FakeFiles {
        FakeFiles::new().file("/proc/device-tree/compatible", "raspberrypi,4-model-b\0")
    }

    #[test]
    fn temperatures_are_named_by_zone_and_stay_apart() {
        let files = pi()
            .file("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n")
            .file("/sys/class/thermal/thermal_zone0/temp", "48686\n")
            .file("/sys/class/thermal/thermal_zone10/type", "nvme\n")
            .file("/sys/class/thermal/thermal_zone2/temp", "-1500\n")
            .dir("/sys/class/thermal/cooling_device0");
        let temperatures = power(&files).temperatures;
        let zones: Vec<&str> = temperatures.iter().map(|one| one.zone.as_str()).collect();
        assert_eq!(zones, ["cpu-thermal", "thermal_zone2", "nvme"]);
        assert_eq!(temperatures[0].millicelsius.get(), Some(48_686));
        assert_eq!(temperatures[1].millicelsius.get(), Some(-1_500));
        assert_eq!(temperatures[2].millicelsius.reason(), Some("no such file"));
    }

    #[test]
    fn hardware_monitors_stand_in_where_there_are_no_zones() {
        let files = FakeFiles::new().files(
            "/sys/class/hwmon/hwmon1",
            [
                ("name", "k10temp\n"),
                ("temp1_input", "45250\n"),
                ("temp1_label", "Tctl\n"),
                ("temp3_input", "41000\n"),
            ],
        );
        let temperatures = power(&files).temperatures;
        let zones: Vec<&str> = temperatures.iter().map(|one| one.zone.as_str()).collect();
        assert_eq!(zones, ["k10temp Tctl", "k10temp temp3"]);
    }

    #[test]
    fn the_throttling_word_is_looked_for_in_three_places() {
        let from_kernel = pi()
            .link(
                format!("{FIRMWARE_DRIVER}/soc:firmware"),
                "/sys/devices/platform/soc/soc:firmware",
            )
            .file("/sys/devices/platform/soc/soc:firmware/get_throttled", "50005\n")
            .firmware_word(GET_THROTTLED, 1);
        let from_mailbox = pi().firmware_word(GET_THROTTLED, 0x50005);
        let from_program = pi().program(&["vcgencmd", "get_throttled"], "throttled=0x50005\n");
        for files in [from_kernel, from_mailbox, from_program] {
            let throttling = power(&files).throttling;
            let seen = throttling.value().unwrap();
            assert!(seen.undervoltage_now && seen.undervoltage_seen);
            assert!(seen.throttled_now && seen.throttled_seen);
            assert!(!seen.capped_now && !seen.soft_limit_seen);
            assert_eq!(seen.word, 0x50005);
        }
    }

    #[test]
    fn without_an_answer_all_reasons_are_told() {
        let files = pi().program(&["vcgencmd", "get_throttled"], "error=1\n");
        let throttling = power(&files).throttling;
        let reason = throttling.reason().unwrap();
        assert!(reason.contains("driver is not loaded"), "{reason}");
        assert!(reason.contains("it printed 'error=1'"), "{reason}");
        let elsewhere = power(&FakeFiles::new()).throttling;
        assert_eq!(elsewhere.reason(), Some("not a Raspberry Pi"));
    }

    #[test]
    fn the_undervoltage_alarm_is_found_by_the_monitors_name() {
        let files = pi()
            .file("/sys/class/hwmon/hwmon0/name", "cpu_thermal\n")
            .file("/sys/class/hwmon/hwmon1/name", "rpi_volt\n")
            .file("/sys/class/hwmon/hwmon1/in0_lcrit_alarm", "1\n");
        assert_eq!(power(&files).undervoltage_alarm.get(), Some(true));
        assert!(power(&pi()).undervoltage_alarm.value().is_none());
    }
}
