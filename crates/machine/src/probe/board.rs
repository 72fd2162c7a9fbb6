//! The board: what it is, its revision code, its firmware and serial number.

use std::path::Path;

use rubus_boot::revision;
use rubus_host::{Files, ReadError};
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Board, Bootloader, Revision};

use crate::probe::cpuinfo::CpuInfo;
use crate::probe::read::{filled_text, first_known};
use crate::probe::{cpuinfo, device_tree};

const DMI: &str = "/sys/class/dmi/id";
/// Mailbox tag "get firmware revision": the time at which the firmware was built.
const FIRMWARE_REVISION: u32 = 0x0000_0001;

pub(crate) fn board(files: &dyn Files, cpuinfo: &CpuInfo) -> Board {
    let is_pi = device_tree::is_raspberry_pi(files);
    let compatible = device_tree::strings(files, "compatible");
    Board {
        model: model(files, cpuinfo),
        revision: if is_pi { revision(files, cpuinfo) } else { not_a_pi(&compatible) },
        soc: soc(&compatible),
        firmware: if is_pi { pi_firmware(files) } else { pc_firmware(files) },
        serial: serial(files, cpuinfo),
        bootloader: if is_pi { bootloader(files) } else { not_a_pi(&compatible) },
        compatible,
    }
}

/// How the firmware started this system. Boards before the Raspberry Pi 4 and old bootloaders say nothing of it.
fn bootloader(files: &dyn Files) -> Fact<Bootloader> {
    let number = |name: &str| device_tree::cell(files, &format!("chosen/bootloader/{name}"));
    let mode = number("boot-mode");
    let bootloader = Bootloader {
        boot_mode: mode.get(),
        partition: number("partition").get(),
        tryboot: number("tryboot").get(),
        built_unix_s: number("build-timestamp").get(),
    };
    if bootloader == Bootloader::default() {
        Fact::unknown(mode.reason().unwrap_or("it says nothing"), Bootloader::SOURCE)
    } else {
        Fact::known(bootloader, Bootloader::SOURCE)
    }
}

fn not_a_pi<T>(compatible: &Fact<Vec<String>>) -> Fact<T> {
    Fact::unknown("not a Raspberry Pi", compatible.source())
}

fn model(files: &dyn Files, cpuinfo: &CpuInfo) -> Fact<String> {
    first_known(&[
        &|| device_tree::string(files, "model"),
        &|| pc_model(files),
        // Kernels for the first boards had no device tree model.
        &|| cpuinfo.first("Model"),
    ])
}

/// Vendor and product from DMI. A product that was never named is called by its board.
fn pc_model(files: &dyn Files) -> Fact<String> {
    for (vendor, name) in [("sys_vendor", "product_name"), ("board_vendor", "board_name")] {
        match (dmi(files, vendor), dmi(files, name)) {
            (Fact::Known { value: vendor_name, .. }, Fact::Known { value: product, .. }) => {
                let source = format!("{DMI}/{vendor}, {DMI}/{name}");
                return Fact::known(format!("{vendor_name} {product}"), source);
            }
            (Fact::Unknown { .. }, product @ Fact::Known { .. }) => return product,
            (Fact::Known { .. } | Fact::Unknown { .. }, Fact::Unknown { .. }) => {}
        }
    }
    dmi(files, "sys_vendor")
}

/// The machine's serial number from DMI, or that of its board.
fn pc_serial(files: &dyn Files) -> Fact<String> {
    let of_machine = dmi(files, "product_serial");
    match (of_machine, dmi(files, "board_serial")) {
        (Fact::Unknown { .. }, of_board @ Fact::Known { .. }) => of_board,
        (of_machine, _) => of_machine,
    }
}

/// A text of DMI. Boards that were never named say so in many words.
fn dmi(files: &dyn Files, name: &str) -> Fact<String> {
    filled_text(files, &format!("{DMI}/{name}")).and_then(not_a_placeholder)
}

/// What makers leave where a name or number should be.
const PLACEHOLDERS: [&str; 22] = [
    "asset tag",
    "base board product name",
    "chassis serial number",
    "default",
    "default string",
    "empty",
    "invalid",
    "n/a",
    "na",
    "none",
    "not applicable",
    "not available",
    "not specified",
    "null",
    "o.e.m.",
    "oem",
    "system manufacturer",
    "system name",
    "system product name",
    "system serial number",
    "undefined",
    "unknown",
];

fn not_a_placeholder(text: String) -> Result<String, String> {
    let lower = text.trim().to_lowercase();
    let letters: Vec<char> = lower.chars().filter(|letter| letter.is_alphanumeric()).collect();
    // "0000000", "xxxxxxxx", "...": one sign again and again.
    let is_one_sign = letters.len() != 1 && letters.iter().all(|letter| *letter == letters[0]);
    let is_counted = ["0123456789", "1234567890"].iter().any(|digits| digits.starts_with(&lower));
    let is_placeholder = PLACEHOLDERS.contains(&lower.as_str())
        || lower.starts_with("to be filled")
        || is_one_sign
        || (is_counted && lower.len() > 4);
    if is_placeholder { Err(format!("it says '{text}'")) } else { Ok(text) }
}

fn revision(files: &dyn Files, cpuinfo: &CpuInfo) -> Fact<Revision> {
    let code = first_known(&[&|| device_tree::cell(files, "system/linux,revision"), &|| {
        cpuinfo.first("Revision").and_then(|text| {
            u32::from_str_radix(&text, 16)
                .map_err(|_| format!("it says '{text}', not a hexadecimal number"))
        })
    }]);
    code.and_then(|code| match code {
        0 => Err("the firmware gave the kernel none".to_string()),
        code => Ok(revision::decode(code)),
    })
}

/// The chip: `brcm,bcm2711`. Boards come first, the chip then; the family of the chip, or a platform, may follow.
fn soc(compatible: &Fact<Vec<String>>) -> Fact<String> {
    compatible.clone().and_then(|list| {
        let parts = |entry: &String| {
            entry.split_once(',').map(|(vendor, name)| (vendor.to_string(), name.to_string()))
        };
        let last = list.last().and_then(parts).filter(|(vendor, _)| vendor != "linux");
        let (vendor, last) = last.ok_or("the list names no chip")?;
        let before = list.iter().rev().skip(1).take(usize::from(list.len() > 2)).find_map(parts);
        let is_chip = |(of, name): &(String, String)| {
            *of == vendor
                && name.chars().all(|letter| letter.is_ascii_alphanumeric())
                && name.contains(|letter: char| letter.is_ascii_digit())
        };
        let chip = before.filter(is_chip).map_or(last, |(_, name)| name);
        Ok(chip.to_uppercase())
    })
}

fn serial(files: &dyn Files, cpuinfo: &CpuInfo) -> Fact<String> {
    first_known(&[
        &|| device_tree::string(files, "serial-number").and_then(not_a_placeholder),
        &|| cpuinfo.first("Serial").and_then(not_a_placeholder),
        &|| pc_serial(files),
    ])
}

/// The bootloader of a Pi 4 or 5, or the start file of an older board.
fn pi_firmware(files: &dyn Files) -> Fact<String> {
    first_known(&[
        &|| bootloader_in_device_tree(files),
        &|| bootloader_from_update_tool(files),
        &|| start_file_from_mailbox(files),
        &|| start_file_from_vcgencmd(files),
    ])
}

fn bootloader_in_device_tree(files: &dyn Files) -> Fact<String> {
    let built = device_tree::cell(files, "chosen/bootloader/build-timestamp");
    let version = device_tree::string(files, "chosen/bootloader/version");
    match (built, version) {
        (Fact::Known { value, source }, version) => {
            let short = version.text().map(|version| version.chars().take(8).collect::<String>());
            Fact::known(described("bootloader", value.into(), short.as_deref()), source)
        }
        (_, Fact::Known { value, source }) => Fact::known(format!("bootloader {value}"), source),
        (unknown, _) => unknown.map(|_| String::new()),
    }
}

/// `rpi-eeprom-update` exits with status 1 when an update is available and 3 when updates are frozen; its output is the
/// same.
fn bootloader_from_update_tool(files: &dyn Files) -> Fact<String> {
    const PROGRAM: &str = "rpi-eeprom-update";
    let output = match files.ask(PROGRAM, &[]) {
        Ok(output) | Err(ReadError::Failed { status: 1 | 3, output, .. }) => output,
        Err(error) => return Fact::unknown(program_reason(&error), PROGRAM),
    };
    let current = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("CURRENT:"))
        .and_then(|line| line.rsplit_once('('))
        .and_then(|(_, number)| number.trim_end_matches(')').parse::<i64>().ok());
    match current {
        Some(built) => Fact::known(described("bootloader", built, None), PROGRAM),
        None => Fact::unknown("its output has no line CURRENT with a time", PROGRAM),
    }
}

fn start_file_from_mailbox(files: &dyn Files) -> Fact<String> {
    const SOURCE: &str = "/dev/vcio, property 0x00000001";
    match files.firmware_word(FIRMWARE_REVISION) {
        Ok(0) => Fact::unknown("the firmware tells no date", SOURCE),
        Ok(built) => Fact::known(described("firmware", built.into(), None), SOURCE),
        Err(error) => Fact::unknown(error.to_string(), SOURCE),
    }
}

/// Three lines: a date, a copyright, and "version" with a commit.
fn start_file_from_vcgencmd(files: &dyn Files) -> Fact<String> {
    const CALL: &str = "vcgencmd version";
    match files.ask("vcgencmd", &["version"]) {
        Ok(output) => {
            let date = output.lines().next().unwrap_or("").trim();
            if date.is_empty() {
                Fact::unknown("it printed nothing", CALL)
            } else {
                Fact::known(format!("firmware of {date}"), CALL)
            }
        }
        Err(error) => Fact::unknown(program_reason(&error), CALL),
    }
}

fn program_reason(error: &ReadError) -> String {
    match error {
        ReadError::Absent => "not installed".to_string(),
        other => other.to_string(),
    }
}

/// "bootloader of 2024-09-23 (b6a0d4a8)".
fn described(what: &str, built_unix_s: i64, version: Option<&str>) -> String {
    let date = jiff::Timestamp::from_second(built_unix_s)
        .map(|time| time.strftime("%Y-%m-%d").to_string())
        .unwrap_or_else(|_| format!("time {built_unix_s}"));
    match version {
        Some(version) => format!("{what} of {date} ({version})"),
        None => format!("{what} of {date}"),
    }
}

fn pc_firmware(files: &dyn Files) -> Fact<String> {
    let part = |name: &str| filled_text(files, &format!("{DMI}/{name}"));
    let parts: Vec<String> = ["bios_vendor", "bios_version", "bios_date"]
        .iter()
        .filter_map(|name| part(name).text().map(str::to_string))
        .collect();
    if !parts.is_empty() {
        return Fact::known(parts.join(" "), format!("{DMI}/bios_*"));
    }
    if files.exists(Path::new(DMI)) {
        return part("bios_version");
    }
    Fact::unknown(
        "neither a Raspberry Pi's firmware nor DMI is there",
        format!("{DMI}, {}", cpuinfo::PATH),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn read(files: &FakeFiles) -> Board {
        board(files, &CpuInfo::read(files))
    }

    fn pi4() -> FakeFiles {
        FakeFiles::new()
            .file("/proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")
            .file("/proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711\0")
            .file("/proc/device-tree/system/linux,revision", 0x00c0_3114_u32.to_be_bytes())
            .file("/proc/device-tree/serial-number", "10000000abcdef01\0")
    }

    #[test]
    fn a_raspberry_pi_is_known_by_its_device_tree() {
        let board = read(&pi4());
        assert_eq!(board.model.text(), Some("Raspberry Pi 4 Model B Rev 1.4"));
        assert_eq!(board.soc.text(), Some("BCM2711"));
        assert_eq!(board.serial.text(), Some("10000000abcdef01"));
        let revision = board.revision.value().unwrap();
        assert_eq!(revision.board_type, "4B");
        assert_eq!(revision.memory_mib, Some(4096));
        assert_eq!(board.revision.source(), "/proc/device-tree/system/linux,revision");
    }

    #[test]
    fn the_firmware_tells_from_what_it_started() {
        assert_eq!(read(&pi4()).bootloader.reason(), Some("no such file"));
        let node = Bootloader::SOURCE;
        let files = pi4()
            .file(format!("{node}/boot-mode"), 6_u32.to_be_bytes())
            .file(format!("{node}/partition"), 2_u32.to_be_bytes());
        let told = read(&files).bootloader.get().expect("it is told");
        assert_eq!(
            told,
            Bootloader { boot_mode: Some(6), partition: Some(2), ..Bootloader::default() }
        );
        let pc = FakeFiles::new().file(format!("{node}/boot-mode"), 1_u32.to_be_bytes());
        assert_eq!(read(&pc).bootloader.reason(), Some("not a Raspberry Pi"));
    }

    #[test]
    fn the_revision_falls_back_to_cpuinfo_and_zero_is_no_code() {
        let tree = "raspberrypi,3-model-b\0brcm,bcm2837\0";
        let files = FakeFiles::new()
            .file("/proc/device-tree/compatible", tree)
            .file("/proc/cpuinfo", "Hardware\t: BCM2835\nRevision\t: a02082\n");
        assert_eq!(read(&files).revision.value().unwrap().code, 0xa02082);
        let files = files.file("/proc/cpuinfo", "Revision\t: 0000\n");
        assert_eq!(read(&files).revision.reason(), Some("the firmware gave the kernel none"));
    }

    #[test]
    fn firmware_is_asked_for_in_four_places() {
        let with_update_tool = pi4().failing_program(
            &["rpi-eeprom-update"],
            ReadError::Failed {
                status: 1,
                complaint: String::new(),
                output: "*** UPDATE AVAILABLE ***\nBOOTLOADER: update available\n   \
                         CURRENT: Thu 11 Jan 17:40:52 UTC 2024 (1704994852)\n    \
                         LATEST: Mon 15 Apr 13:12:14 UTC 2024 (1713186734)\n"
                    .to_string(),
            },
        );
        let with_mailbox = pi4().firmware_word(1, 1_700_000_000);
        let with_vcgencmd = pi4().program(
            &["vcgencmd", "version"],
            "Mar 17 2023 10:50:39 \nCopyright (c) 2012 Broadcom\nversion 82f3750 (clean)\n",
        );
        let with_tree = pi4()
            .file(
                "/proc/device-tree/chosen/bootloader/build-timestamp",
                1_727_080_000_u32.to_be_bytes(),
            )
            .file(
                "/proc/device-tree/chosen/bootloader/version",
                "b6a0d4a8c0ffee00b6a0d4a8c0ffee00b6a0d4a8\0",
            );
        for (files, expected) in [
            (with_update_tool, "bootloader of 2024-01-11"),
            (with_mailbox, "firmware of 2023-11-14"),
            (with_vcgencmd, "firmware of Mar 17 2023 10:50:39"),
            (with_tree, "bootloader of 2024-09-23 (b6a0d4a8)"),
        ] {
            assert_eq!(read(&files).firmware.text(), Some(expected));
        }
        let nothing = read(&pi4()).firmware;
        let reason = nothing.reason().unwrap();
        assert!(reason.contains("rpi-eeprom-update: not installed"), "{reason}");
        assert!(reason.contains("/dev/vcio"), "{reason}");
    }

    #[test]
    fn a_pc_is_known_by_dmi_and_placeholders_are_not_names() {
        let files = FakeFiles::new()
            .file("/sys/class/dmi/id/sys_vendor", "LENOVO\n")
            .file("/sys/class/dmi/id/product_name", "20XW\n")
            .file("/sys/class/dmi/id/bios_vendor", "LENOVO\n")
            .file("/sys/class/dmi/id/bios_version", "N32ET95W\n")
            .denied("/sys/class/dmi/id/product_serial");
        let board = read(&files);
        assert_eq!(board.model.text(), Some("LENOVO 20XW"));
        assert_eq!(board.firmware.text(), Some("LENOVO N32ET95W"));
        assert_eq!(board.revision.reason(), Some("not a Raspberry Pi"));
        assert!(board.serial.reason().unwrap().contains("root may read it"));
        let files = files.file("/sys/class/dmi/id/sys_vendor", "To be filled by O.E.M.\n");
        assert_eq!(read(&files).model.text(), Some("20XW"));
    }

    #[test]
    fn the_board_s_name_stands_in_for_a_product_without_one() {
        let model = |texts: &[(&str, &str)]| {
            let mut files = FakeFiles::new();
            for (name, text) in texts {
                files = files.file(format!("{DMI}/{name}"), format!("{text}\n"));
            }
            read(&files).model.text().map(str::to_string)
        };
        let asus = [
            ("sys_vendor", "ASUS"),
            ("product_name", "System Product Name"),
            ("board_vendor", "ASUSTeK COMPUTER INC."),
            ("board_name", "PRIME N100I-D D4"),
        ];
        assert_eq!(model(&asus).as_deref(), Some("ASUSTeK COMPUTER INC. PRIME N100I-D D4"));
        let oem = "To Be Filled By O.E.M. To Be Filled By O.E.M.";
        assert_eq!(model(&[("sys_vendor", "O.E.M."), ("product_name", oem)]), None);
        assert_eq!(model(&[("sys_vendor", "OEM"), ("product_name", "OEM")]), None);
        assert_eq!(model(&[("product_name", "0000000")]), None);
        let mini = [("sys_vendor", "AZW"), ("product_name", "MINI S")];
        assert_eq!(model(&mini).as_deref(), Some("AZW MINI S"));
    }

    #[test]
    fn the_chip_is_told_from_boards_before_it_and_families_behind_it() {
        for (list, chip) in [
            (&["raspberrypi,4-model-b", "brcm,bcm2711"][..], "BCM2711"),
            (&["hardkernel,odroid-n2-plus", "amlogic,s922x", "amlogic,g12b"], "S922X"),
            (&["hardkernel,odroid-xu4", "samsung,exynos5800", "samsung,exynos5"], "EXYNOS5800"),
            (&["apple,j274", "apple,t8103", "apple,arm-platform"], "T8103"),
            (
                &["nvidia,p3768-0000+p3767-0005-super", "nvidia,p3767-0005", "nvidia,tegra234"],
                "TEGRA234",
            ),
            (&["ti,am335x-bone-black", "ti,am335x-bone", "ti,am33xx"], "AM33XX"),
            (&["fsl,imx8mm-evk", "fsl,imx8mm"], "IMX8MM"),
            (&["spacemit,k1-x"], "K1-X"),
        ] {
            let list = list.iter().map(|entry| (*entry).to_string()).collect();
            assert_eq!(soc(&Fact::known(list, "x")).text(), Some(chip), "{chip}");
        }
        let virt = Fact::known(vec!["linux,dummy-virt".to_string()], "x");
        assert_eq!(soc(&virt).reason(), Some("the list names no chip"));
    }

    #[test]
    fn where_nothing_is_everything_is_unknown_with_a_reason() {
        let board = read(&FakeFiles::new());
        for reason in [
            board.model.reason(),
            board.soc.reason(),
            board.firmware.reason(),
            board.serial.reason(),
            board.revision.reason(),
            board.compatible.reason(),
        ] {
            assert!(reason.is_some_and(|reason| !reason.is_empty()));
        }
    }
}
