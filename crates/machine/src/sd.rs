//! What SD cards and eMMCs say of themselves, and what their speed modes carry: the SD Status
//! register, names of makers, and the kernel's words for the modes. Reading files is not here.
//!
//! Sources: SD Physical Layer Simplified Specification 9.10, sections 3.9 (bus speed modes) and
//! 4.10.2 (SD Status); JEDEC JESD84-B51 (eMMC modes).

use rubus_vocabulary::machine::SdStatus;

/// Bytes of the SD Status register.
const SSR_BYTES: usize = 64;

/// Decodes the SD Status register as the kernel prints it (`ssr`: 128 hexadecimal digits).
///
/// # Errors
/// A sentence when the text has another length or is not hexadecimal.
pub fn decode_ssr(hex: &str) -> Result<SdStatus, String> {
    let bytes = hex_bytes(hex.trim()).ok_or("the register is not printed as hexadecimal bytes")?;
    if bytes.len() != SSR_BYTES {
        return Err(format!(
            "the SD Status register has {SSR_BYTES} bytes, this one {}",
            bytes.len()
        ));
    }
    Ok(SdStatus {
        speed_class: speed_class(bytes[8]),
        uhs_grade: bytes[14] >> 4,
        video_class: bytes[15],
        application_class: bytes[21] & 0x0f,
        allocation_unit_kib: allocation_unit_kib(bytes[10] >> 4),
        // 0 means no queue, n a queue of n + 1.
        queue_depth: match bytes[22] >> 3 {
            0 => 0,
            code => code + 1,
        },
        cache: bytes[22] & 0b100 != 0,
    })
}

/// Codes above 4 are reserved for classes that promise at least what class 10 does.
fn speed_class(code: u8) -> u8 {
    match code {
        0 => 0,
        1 => 2,
        2 => 4,
        3 => 6,
        _ => 10,
    }
}

/// Powers of two from 16 KiB to 8 MiB, then 12, 16, 24, 32, 64 MiB (table 4-47).
fn allocation_unit_kib(code: u8) -> u32 {
    match code {
        0 => 0,
        1..=0xa => 8 << code,
        0xb => 12 * 1024,
        0xc => 16 * 1024,
        0xd => 24 * 1024,
        0xe => 32 * 1024,
        _ => 64 * 1024,
    }
}

fn hex_bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    digits?
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some((high << 4 | low) as u8),
            _ => None,
        })
        .collect()
}

/// Who made a card, by the manufacturer id of its CID register. SD and eMMC number apart. The
/// lists are not public; these are the ids that card owners agree on.
pub fn manufacturer(id: u32, is_emmc: bool) -> Option<&'static str> {
    let table: &[(u32, &str)] = if is_emmc {
        &[
            (0x11, "Kioxia"),
            (0x13, "Micron"),
            (0x15, "Samsung"),
            (0x45, "SanDisk"),
            (0x70, "Kingston"),
            (0x88, "Foresee"),
            (0x90, "SK Hynix"),
            (0xd6, "Foresee"),
            (0xfe, "Micron"),
        ]
    } else {
        &[
            (0x01, "Panasonic"),
            (0x02, "Kioxia"),
            (0x03, "SanDisk"),
            (0x1b, "Samsung"),
            (0x1d, "ADATA"),
            (0x27, "Phison"),
            (0x28, "Lexar"),
            (0x41, "Kingston"),
            (0x6f, "STMicroelectronics"),
            (0x74, "Transcend"),
            (0x76, "Patriot"),
            (0x82, "Sony"),
            (0x9f, "Kingston"),
            (0xad, "Longsys"),
            (0xfe, "Micron"),
        ]
    };
    table.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

/// The OEM id of the CID register as its two characters: `0x5344` is "SD". Ids that are not
/// printable stay hexadecimal.
pub fn oem_text(oemid: &str) -> String {
    let digits = oemid.trim().trim_start_matches("0x");
    let Ok(id) = u16::from_str_radix(digits, 16) else {
        return oemid.trim().to_string();
    };
    let bytes = id.to_be_bytes();
    if bytes.iter().all(u8::is_ascii_graphic) {
        bytes.iter().map(|byte| *byte as char).collect()
    } else {
        format!("0x{id:04x}")
    }
}

/// The speed mode between host and card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// SD default speed, or eMMC's first mode: 25 MHz (26 MHz).
    Legacy,
    /// SD high speed: 50 MHz.
    SdHighSpeed,
    /// eMMC high speed: 52 MHz.
    MmcHighSpeed,
    /// UHS-I at 25 MHz.
    Sdr12,
    /// UHS-I at 50 MHz.
    Sdr25,
    /// UHS-I at 100 MHz.
    Sdr50,
    /// UHS-I at 208 MHz.
    Sdr104,
    /// UHS-I at 50 MHz, two transfers a clock.
    Ddr50,
    /// eMMC at 52 MHz, two transfers a clock.
    MmcDdr52,
    /// eMMC at 200 MHz.
    Hs200,
    /// eMMC at 200 MHz, two transfers a clock.
    Hs400,
}

impl Timing {
    /// The mode in the words of `/sys/kernel/debug/mmcN/ios` ("sd uhs SDR104").
    pub fn from_debugfs(words: &str) -> Option<Timing> {
        Some(match words.trim() {
            "legacy" => Timing::Legacy,
            "sd high-speed" => Timing::SdHighSpeed,
            "mmc high-speed" => Timing::MmcHighSpeed,
            "sd uhs SDR12" => Timing::Sdr12,
            "sd uhs SDR25" => Timing::Sdr25,
            "sd uhs SDR50" => Timing::Sdr50,
            "sd uhs SDR104" => Timing::Sdr104,
            "sd uhs DDR50" => Timing::Ddr50,
            "mmc DDR52" => Timing::MmcDdr52,
            "mmc HS200" => Timing::Hs200,
            "mmc HS400" | "mmc HS400 enhanced strobe" => Timing::Hs400,
            _ => return None,
        })
    }

    /// The mode from the kernel's message about a new card on the host `host` ("mmc0"). The words
    /// changed between kernels: "mmc0: new ultra high speed DDR50 SDHC card at address aaaa",
    /// "mmc0: new UHS-I speed SDR104 SDXC card at address aaaa",
    /// "mmc0: new high speed SDHC card at address 0007".
    pub fn from_kernel_log(line: &str, host: &str) -> Option<Timing> {
        let message = &line[line.find(&format!("{host}: new "))?..];
        let (_, words) = message.split_once(": new ")?;
        let (words, _) = words.split_once(" card")?;
        let has = |word: &str| words.split(' ').any(|found| found == word);
        // "new SDHC card on SPI": one line, at a clock that is not told.
        if message.contains(" card on SPI") || words.contains("UHS-II") {
            return None;
        }
        let is_emmc = has("MMC");
        Some(match words {
            _ if has("SDIO") => return None,
            _ if has("SDR104") => Timing::Sdr104,
            _ if has("DDR50") => Timing::Ddr50,
            _ if has("SDR50") => Timing::Sdr50,
            _ if has("SDR25") => Timing::Sdr25,
            _ if has("SDR12") => Timing::Sdr12,
            _ if has("HS400") => Timing::Hs400,
            _ if has("HS200") => Timing::Hs200,
            _ if has("DDR") && is_emmc => Timing::MmcDdr52,
            _ if words.contains("high speed") && is_emmc => Timing::MmcHighSpeed,
            _ if words.contains("high speed") => Timing::SdHighSpeed,
            // Without a word for its mode it is in its first one; other words are of a mode that is not known here.
            _ if words.split(' ').all(is_kind_of_card) => Timing::Legacy,
            _ => return None,
        })
    }

    /// The best mode of a host controller and its highest clock in Hz, by one entry of its device
    /// tree node's `compatible`: the SD slots of Raspberry Pis as their boards are wired.
    pub fn best_of_host(compatible: &str) -> Option<(Timing, u64)> {
        Some(match compatible {
            "brcm,bcm2835-sdhost" | "brcm,bcm2835-mmc" | "brcm,bcm2835-sdhci" => {
                (Timing::SdHighSpeed, 50_000_000)
            }
            "brcm,bcm2711-emmc2" => (Timing::Ddr50, 50_000_000),
            // The mode allows 208 MHz; the chip divides 200.
            "brcm,bcm2712-sdhci" => (Timing::Sdr104, 200_000_000),
            _ => return None,
        })
    }

    /// For people: "high speed", "UHS-I SDR104", "HS400".
    pub fn name(self) -> &'static str {
        match self {
            Timing::Legacy => "default speed",
            Timing::SdHighSpeed | Timing::MmcHighSpeed => "high speed",
            Timing::Sdr12 => "UHS-I SDR12",
            Timing::Sdr25 => "UHS-I SDR25",
            Timing::Sdr50 => "UHS-I SDR50",
            Timing::Sdr104 => "UHS-I SDR104",
            Timing::Ddr50 => "UHS-I DDR50",
            Timing::MmcDdr52 => "DDR52",
            Timing::Hs200 => "HS200",
            Timing::Hs400 => "HS400",
        }
    }

    /// Highest clock of the mode.
    pub fn max_clock_hz(self) -> u64 {
        match self {
            Timing::Legacy | Timing::Sdr12 => 25_000_000,
            Timing::SdHighSpeed | Timing::Sdr25 | Timing::Ddr50 => 50_000_000,
            Timing::MmcHighSpeed | Timing::MmcDdr52 => 52_000_000,
            Timing::Sdr50 => 100_000_000,
            Timing::Sdr104 => 208_000_000,
            Timing::Hs200 | Timing::Hs400 => 200_000_000,
        }
    }

    /// Line rate in bits per second at a clock over a number of data lines.
    pub fn line_bits_per_second(self, clock_hz: u64, width: u32) -> u64 {
        let per_clock = match self {
            Timing::Ddr50 | Timing::MmcDdr52 | Timing::Hs400 => 2,
            _ => 1,
        };
        clock_hz.saturating_mul(u64::from(width)).saturating_mul(per_clock)
    }
}

/// Whether a word of the kernel's message about a new card says what kind of card it is.
fn is_kind_of_card(word: &str) -> bool {
    ["SD", "SDSC", "SDHC", "SDXC", "SDUC", "SDcombo", "SDIO", "MMC", "eMMC"].contains(&word)
}

/// The state of an MMC host: the readable part of `/sys/kernel/debug/mmcN/ios`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ios {
    /// Clock that the host really makes, or the one that it was asked for.
    pub clock_hz: Option<u64>,
    /// Data lines: 1, 4 or 8.
    pub width: Option<u32>,
    /// Speed mode.
    pub timing: Option<Timing>,
}

/// Whether `ios` is that of a card that is powered down while nothing uses it: mode and width are then those of a start.
pub fn is_powered_off(ios: &str) -> bool {
    let mut lines = ios.lines().filter_map(|line| line.split_once(':'));
    lines.any(|(name, value)| name.trim() == "power mode" && value.trim() == "0 (off)")
}

/// Reads `ios`: lines of `name: number (words)`.
pub fn parse_ios(text: &str) -> Ios {
    let mut ios = Ios::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        let words = value.split_once('(').map_or("", |(_, rest)| rest.trim_end_matches(')'));
        let number = value.split(' ').next().and_then(|word| word.parse().ok());
        match name.trim() {
            // "actual clock" comes after "clock" and wins; hosts that do not know it leave it out.
            "clock" | "actual clock" => ios.clock_hz = number.filter(|hz| *hz > 0).or(ios.clock_hz),
            "bus width" => {
                ios.width = words.split(' ').next().and_then(|word| word.parse().ok());
            }
            "timing spec" => ios.timing = Timing::from_debugfs(words),
            _ => {}
        }
    }
    ios
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a SanDisk card with the A1 mark (16 GB, 2017).
    const A1_CARD: &str = "0000000004000000040090000f050a00000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
    /// Of a Kingston card with the A2 mark (64 GB, 2023).
    const A2_CARD: &str = "000000000800000004009000011b391e000800000002ff0003000000000000000000000000000000000000000000000000000000000000000000000000000000";

    #[test]
    fn the_status_of_an_a1_card_is_decoded() {
        let expected = SdStatus {
            speed_class: 10,
            uhs_grade: 0,
            video_class: 0,
            application_class: 1,
            allocation_unit_kib: 4096,
            queue_depth: 0,
            cache: false,
        };
        assert_eq!(decode_ssr(A1_CARD), Ok(expected));
    }

    #[test]
    fn the_status_of_an_a2_card_offers_a_queue_and_a_cache() {
        let expected = SdStatus {
            speed_class: 10,
            uhs_grade: 3,
            video_class: 30,
            application_class: 2,
            allocation_unit_kib: 4096,
            queue_depth: 32,
            cache: true,
        };
        assert_eq!(decode_ssr(A2_CARD), Ok(expected));
    }

    #[test]
    fn a_short_or_garbled_register_is_refused() {
        for bad in ["", "00", &A1_CARD[1..], &A1_CARD.replace('9', "g"), "ää"] {
            assert!(decode_ssr(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn allocation_units_follow_the_table() {
        let units: Vec<u32> = (0..16).map(allocation_unit_kib).collect();
        assert_eq!(
            units,
            [
                0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768,
                65536
            ]
        );
    }

    #[test]
    fn the_host_state_of_a_raspberry_pi_4_is_read() {
        let text = "clock:\t\t50000000 Hz\nactual clock:\t50000000 Hz\nvdd:\t\t21 (3.3 ~ 3.4 V)\n\
                    bus mode:\t2 (push-pull)\nchip select:\t0 (don't care)\npower mode:\t2 (on)\n\
                    bus width:\t2 (4 bits)\ntiming spec:\t7 (sd uhs DDR50)\n\
                    signal voltage:\t1 (1.80 V)\ndriver type:\t0 (driver type B)\n";
        let ios = parse_ios(text);
        assert_eq!(
            ios,
            Ios { clock_hz: Some(50_000_000), width: Some(4), timing: Some(Timing::Ddr50) }
        );
        assert_eq!(Timing::Ddr50.line_bits_per_second(50_000_000, 4), 400_000_000);
    }

    #[test]
    fn the_actual_clock_wins_over_the_wanted_one() {
        let ios = parse_ios("clock:\t208000000 Hz\nactual clock:\t200000000 Hz\n");
        assert_eq!(ios.clock_hz, Some(200_000_000));
        assert_eq!(parse_ios("clock: 0 Hz\n").clock_hz, None);
    }

    #[test]
    fn kernel_messages_of_all_generations_name_the_mode() {
        let cases = [
            ("mmc0: new ultra high speed DDR50 SDHC card at address aaaa", Some(Timing::Ddr50)),
            ("mmc0: new UHS-I speed SDR104 SDXC card at address aaaa", Some(Timing::Sdr104)),
            ("[    1.9] mmc0: new high speed SDHC card at address 0007", Some(Timing::SdHighSpeed)),
            ("mmc0: new HS200 MMC card at address 0001", Some(Timing::Hs200)),
            ("mmc0: new HS400 Enhanced strobe MMC card at address 0001", Some(Timing::Hs400)),
            ("mmc0: new high speed DDR MMC card at address 0001", Some(Timing::MmcDdr52)),
            ("mmc0: new SD card at address 4567", Some(Timing::Legacy)),
            ("mmc0: new high speed SDIO card at address 0001", None),
            ("mmc1: new high speed SDHC card at address 0001", None),
            ("mmc0: error -110 whilst initialising SD card", None),
            ("mmc0: new UHS-II SDXC card at address 0001", None),
            ("mmc0: new SDHC card on SPI", None),
            ("mmc0: new hyper speed SDXC card at address 0001", None),
            ("mmc0: new SDXC card at address 0001", Some(Timing::Legacy)),
        ];
        for (line, expected) in cases {
            assert_eq!(Timing::from_kernel_log(line, "mmc0"), expected, "{line}");
        }
    }

    #[test]
    fn oem_ids_are_characters_where_they_can_be() {
        assert_eq!(oem_text("0x5344\n"), "SD");
        assert_eq!(oem_text("0x0100"), "0x0100");
        assert_eq!(oem_text("?"), "?");
        assert_eq!(manufacturer(0x15, true), Some("Samsung"));
        assert_eq!(manufacturer(0x15, false), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,200}") {
            let _ = decode_ssr(&text);
            parse_ios(&text);
            oem_text(&text);
            Timing::from_kernel_log(&text, "mmc0");
        }
    }
}
