//! What buses carry: line rates after coding, and what is left for storage in practice.
//!
//! The usable rates are rules of thumb with their evidence beside them. They are the width of a
//! pipe until something is measured, and the check against results that cannot be true.

use crate::sd::Timing;
use rubus_vocabulary::units::bit_rate;

/// A usable rate with its reason, in words that can stand behind a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    pub bytes_per_second: f64,
    pub why: &'static str,
}

/// Share of an SD or eMMC mode's rate that blocks get: 22.9 of 25 MB/s (high speed), 44 of 50
/// (DDR50), 90 of 100 (SDR104 at 200 MHz), 37 of 41.7 (high speed overclocked) were seen.
const MMC_SHARE: f64 = 0.9;

/// Share of a PCIe link's rate after coding that storage gets: about 450 of 500 MB/s on one
/// Gen 2 lane, 900 of 985 MB/s on one Gen 3 lane were seen.
const PCIE_SHARE: f64 = 0.9;

/// An SD or eMMC bus with this line rate.
pub fn mmc(line_bits_per_second: u64) -> Ceiling {
    Ceiling {
        bytes_per_second: (line_bits_per_second as f64 / 8.0 * MMC_SHARE).round(),
        why: "90 % of clock × lines: 22.9 of 25, 44 of 50 and 90 of 100 MB/s were seen",
    }
}

/// A USB connection by its signalling rate in Mbit/s (the kernel's `speed`); none for rates that
/// carry no storage worth the name.
pub fn usb(speed_mbit: u32) -> Option<Ceiling> {
    let (bytes_per_second, why) = match speed_mbit {
        12 => (1.0e6, "full-speed bulk: 1.2 MB/s at most, 1 MB/s in practice"),
        480 => (35e6, "USB 2 bulk in practice: 34 to 35 MB/s on Raspberry Pis (53 MB/s on paper)"),
        5_000 => (440e6, "USB 3 at 5 Gbit/s in practice: 430 to 450 MB/s (500 MB/s after coding)"),
        10_000 => (1.0e9, "USB 3 at 10 Gbit/s in practice: about 1 GB/s (1.2 GB/s after coding)"),
        20_000 => (2.0e9, "USB 3 at 20 Gbit/s in practice: about 2 GB/s (2.4 GB/s after coding)"),
        _ => return None,
    };
    Some(Ceiling { bytes_per_second, why })
}

/// A USB line rate in words: "USB 2, 480 Mbit/s".
pub fn usb_name(speed_mbit: u32) -> String {
    let generation = match speed_mbit {
        0..480 => "USB 1",
        480 => "USB 2",
        5_000..40_000 => "USB 3",
        _ => "USB",
    };
    let rate = match speed_mbit {
        // "5.00 Gbit/s" would claim digits that the standard's name does not have.
        1_000.. if speed_mbit % 1_000 == 0 => format!("{} Gbit/s", speed_mbit / 1_000),
        _ => format!("{speed_mbit} Mbit/s"),
    };
    format!("{generation}, {rate}")
}

/// One end's view of a PCI Express link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcieLink {
    /// Transfers per second and lane, in millions: 2500, 5000, 8000, 16000, 32000, 64000.
    pub megatransfers: u32,
    pub lanes: u32,
}

impl PcieLink {
    /// From the kernel's `current_link_speed` ("5.0 GT/s PCIe") and `current_link_width` ("1").
    /// None when the link is down or either file says something else.
    pub fn parse(speed: &str, width: &str) -> Option<PcieLink> {
        let number = speed.trim().split(' ').next()?;
        let gigatransfers: f64 = number.parse().ok()?;
        let lanes: u32 = width.trim().parse().ok()?;
        let is_sane = (1.0..1_000.0).contains(&gigatransfers) && (1..=64).contains(&lanes);
        is_sane
            .then_some(PcieLink { megatransfers: (gigatransfers * 1_000.0).round() as u32, lanes })
    }

    /// Generation: 1 for 2.5 GT/s, 2 for 5 GT/s, 3 for 8 GT/s, and so on.
    pub fn generation(self) -> u32 {
        match self.megatransfers {
            0..5_000 => 1,
            5_000..8_000 => 2,
            8_000..16_000 => 3,
            16_000..32_000 => 4,
            32_000..64_000 => 5,
            _ => 6,
        }
    }

    /// Line rate of all lanes after coding, in bits per second: 8b/10b up to generation 2,
    /// 128b/130b from 3 on, flits from 6 on (236 of 256 bytes).
    pub fn line_bits_per_second(self) -> u64 {
        let raw = u64::from(self.megatransfers) * 1_000_000 * u64::from(self.lanes);
        match self.generation() {
            1 | 2 => raw / 10 * 8,
            6 => raw / 256 * 236,
            _ => raw / 130 * 128,
        }
    }

    /// What it carries for storage.
    pub fn ceiling(self) -> Ceiling {
        Ceiling {
            bytes_per_second: (self.line_bits_per_second() as f64 / 8.0 * PCIE_SHARE).round(),
            why: "90 % of the PCIe line rate after coding: 450 of 500 and 900 of 985 MB/s were seen",
        }
    }

    /// "PCIe Gen 2 ×1".
    pub fn name(self) -> String {
        format!("PCIe Gen {} ×{}", self.generation(), self.lanes)
    }

    /// What two ends can agree on.
    pub fn common(self, other: PcieLink) -> PcieLink {
        PcieLink {
            megatransfers: self.megatransfers.min(other.megatransfers),
            lanes: self.lanes.min(other.lanes),
        }
    }
}

/// A SATA link by its signalling rate in bits per second (1.5, 3 or 6 Gbit/s), coded 8b/10b.
pub fn sata(signalling_bits_per_second: u64) -> Ceiling {
    Ceiling {
        bytes_per_second: (signalling_bits_per_second as f64 / 10.0 * 0.92).round(),
        why: "92 % of the SATA line rate after coding: 550 of 600 MB/s were seen",
    }
}

/// TCP over Ethernet of this rate: 1448 of 1538 bytes on the wire are payload with 1500-byte
/// frames, 11.8 MB/s at 100 Mbit/s and 118 MB/s at 1 Gbit/s.
pub fn ethernet(bits_per_second: u64) -> Ceiling {
    Ceiling {
        bytes_per_second: (bits_per_second as f64 / 8.0 * 1448.0 / 1538.0).round(),
        why: "TCP payload in 1500-byte Ethernet frames: 94 % of the line rate",
    }
}

/// An SD or eMMC mode in words: "SD, UHS-I DDR50, 50 MHz × 4 lines". What is unknown is left out.
pub fn mmc_name(
    kind: &str,
    timing: Option<Timing>,
    clock_hz: Option<u64>,
    width: Option<u32>,
) -> String {
    let mut words = vec![kind.to_string()];
    match timing {
        Some(timing) => words.push(timing.name().to_string()),
        None => words.push("speed mode unknown".to_string()),
    }
    if let (Some(clock_hz), Some(width)) = (clock_hz, width) {
        let plural = if width == 1 { "" } else { "s" };
        let clock = format!("{:.1}", clock_hz as f64 / 1e6);
        let clock = clock.trim_end_matches(".0");
        words.push(format!("{clock} MHz × {width} line{plural}"));
    }
    words.join(", ")
}

/// A SATA rate in words: "SATA, 6.00 Gbit/s".
pub fn sata_name(signalling_bits_per_second: u64) -> String {
    format!("SATA, {}", bit_rate(signalling_bits_per_second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn megabytes(ceiling: &Ceiling) -> f64 {
        (ceiling.bytes_per_second / 1e6).round()
    }

    #[test]
    fn pcie_rates_lose_their_coding() {
        let cases = [
            ("2.5 GT/s PCIe", "1", 1, 2_000_000_000),
            ("5.0 GT/s PCIe", "1", 2, 4_000_000_000),
            ("5.0 GT/s PCIe", "4", 2, 16_000_000_000),
            ("8.0 GT/s PCIe", "1", 3, 7_876_923_008),
            ("16.0 GT/s PCIe", "4", 4, 63_015_384_576),
        ];
        for (speed, width, generation, bits) in cases {
            let link = PcieLink::parse(speed, width).unwrap();
            assert_eq!(link.generation(), generation, "{speed}");
            let error = link.line_bits_per_second().abs_diff(bits);
            assert!(error < 1_000, "{speed} ×{width}: {error}");
        }
        let lane = |speed| PcieLink::parse(speed, "1").unwrap().ceiling();
        assert_eq!(megabytes(&lane("5.0 GT/s PCIe")), 450.0);
        assert_eq!(megabytes(&lane("8.0 GT/s PCIe")), 886.0);
    }

    #[test]
    fn a_link_that_is_down_is_no_link() {
        for (speed, width) in [
            ("Unknown", "0"),
            ("Unknown speed", "1"),
            ("5.0 GT/s PCIe", "0"),
            ("5.0 GT/s PCIe", "255"),
            ("", ""),
        ] {
            assert_eq!(PcieLink::parse(speed, width), None, "{speed} {width}");
        }
    }

    #[test]
    fn mmc_modes_give_what_was_seen() {
        let rate = |timing: Timing, clock| mmc(timing.line_bits_per_second(clock, 4));
        assert_eq!(megabytes(&rate(Timing::SdHighSpeed, 50_000_000)), 23.0);
        assert_eq!(megabytes(&rate(Timing::Ddr50, 50_000_000)), 45.0);
        assert_eq!(megabytes(&rate(Timing::Sdr104, 200_000_000)), 90.0);
    }

    #[test]
    fn rates_are_named_as_people_name_them() {
        assert_eq!(usb_name(480), "USB 2, 480 Mbit/s");
        assert_eq!(usb_name(5_000), "USB 3, 5 Gbit/s");
        assert_eq!(usb_name(12), "USB 1, 12 Mbit/s");
        assert_eq!(
            mmc_name("SD", Some(Timing::SdHighSpeed), Some(50_000_000), Some(4)),
            "SD, high speed, 50 MHz × 4 lines"
        );
        assert_eq!(mmc_name("SD", None, None, None), "SD, speed mode unknown");
        let link = PcieLink::parse("8.0 GT/s PCIe", "4").unwrap();
        assert_eq!(link.name(), "PCIe Gen 3 ×4");
        assert_eq!(sata_name(6_000_000_000), "SATA, 6.00 Gbit/s");
    }

    #[test]
    fn a_hundred_megabit_is_under_twelve_megabytes() {
        assert_eq!(format!("{:.1}", ethernet(100_000_000).bytes_per_second / 1e6), "11.8");
        assert_eq!(megabytes(&sata(6_000_000_000)), 552.0);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_link_panic(speed in "\\PC{0,20}", width in "\\PC{0,8}") {
            if let Some(link) = PcieLink::parse(&speed, &width) {
                link.line_bits_per_second();
            }
        }
    }
}
