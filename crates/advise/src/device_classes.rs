//! Kinds of devices with the figures seen on such devices: the expected figures of a device that has not been measured
//! yet, or is not there yet.
//!
//! Each figure has the range in which others of its kind were seen, and that range is wide: two devices with the same
//! words on their boxes differ by as much. Where there is no published figure (commits), it is an assumption and marked
//! as one; `docs/explanation/advise.md` lists them.

use serde::{Deserialize, Serialize};

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::Basis;

/// A usual value, and the least and the most that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The usual one.
    pub value: f64,
    /// The lowest value seen.
    pub low: f64,
    /// The highest value seen.
    pub high: f64,
    /// Whether the value was published or is assumed.
    pub basis: Basis,
}

impl Seen {
    /// As an estimate: the range is its interval.
    pub fn estimate(self) -> Estimate {
        Estimate::new(self.value, self.low, self.high)
    }
}

/// How bad it is when a risk comes true, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Work before the change: data that has to be copied elsewhere.
    Effort,
    /// It gets slower, wears out, or needs a setting.
    Degradation,
    /// What runs on it stops, or data is lost.
    Failure,
}

/// What may go wrong with a kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindRisk {
    /// How bad it is.
    pub severity: Severity,
    /// What may go wrong, as a sentence.
    pub words: &'static str,
}

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeviceClass {
    /// For the command line: "usb3-ssd".
    pub id: &'static str,
    /// For people: "SSD on USB 3".
    pub what: &'static str,
    /// 4 KiB random reads per second, one at a time.
    pub random_read: Seen,
    /// The same with 32 in flight.
    pub random_read_deep: Seen,
    /// 4 KiB random writes per second, one at a time.
    pub random_write: Seen,
    /// The same with 32 in flight.
    pub random_write_deep: Seen,
    /// Reading in order, bytes per second.
    pub sequential_read: Seen,
    /// Writing in order, bytes per second.
    pub sequential_write: Seen,
    /// Small writes made durable per second. There are no published figures.
    pub commits: Seen,
    /// What one of a useful size costs, in euros, from and to.
    pub euros: (u32, u32),
    /// What may go wrong with it; nothing special where absent.
    pub risk: Option<KindRisk>,
    /// Where the figures come from.
    pub source: &'static str,
}

const fn seen(value: f64, low: f64, high: f64) -> Seen {
    Seen { value, low, high, basis: Basis::Published }
}

const fn mega(value: f64, low: f64, high: f64) -> Seen {
    seen(value * 1e6, low * 1e6, high * 1e6)
}

/// Marks a figure without a published source as assumed.
const fn assumed(seen: Seen) -> Seen {
    Seen { basis: Basis::Assumed, ..seen }
}

const fn degrades(words: &'static str) -> Option<KindRisk> {
    Some(KindRisk { severity: Severity::Degradation, words })
}

const CARDS_WEAR: Option<KindRisk> = degrades("Flash cards wear out by small writes.");

/// All kinds of devices that `rubus advise` knows.
pub const CLASSES: [DeviceClass; 13] = [
    DeviceClass {
        id: "card",
        what: "SD card without A1 or A2",
        random_read: seen(1300.0, 600.0, 2200.0),
        random_read_deep: assumed(seen(1400.0, 600.0, 2400.0)),
        random_write: seen(150.0, 30.0, 840.0),
        random_write_deep: assumed(seen(160.0, 30.0, 900.0)),
        sequential_read: mega(40.0, 16.0, 90.0),
        sequential_write: mega(15.0, 8.0, 25.0),
        commits: assumed(seen(40.0, 8.0, 150.0)),
        euros: (5, 15),
        risk: CARDS_WEAR,
        source: "1315 random reads (Pi 2) to 2180 (Pi 3) in published tables; an average card writes 33 times per second (T. Kaiser)",
    },
    DeviceClass {
        id: "a1-card",
        what: "SD card of class A1",
        random_read: seen(2300.0, 1500.0, 2900.0),
        random_read_deep: assumed(seen(2500.0, 1500.0, 3300.0)),
        random_write: seen(870.0, 500.0, 1000.0),
        random_write_deep: assumed(seen(900.0, 500.0, 1100.0)),
        sequential_read: mega(80.0, 44.0, 95.0),
        sequential_write: mega(25.0, 19.0, 60.0),
        commits: assumed(seen(100.0, 20.0, 300.0)),
        euros: (8, 20),
        risk: CARDS_WEAR,
        source: "1880 to 2310 random reads of a SanDisk Extreme A1 on Pi 3 and 4; 2883 reads and 793 writes of an Evo+ on a Pi 4 \
                 (turing-pi-cluster issue 11); at least what the class promises",
    },
    DeviceClass {
        id: "a2-card",
        what: "SD card of class A2, without command queueing",
        random_read: seen(2050.0, 1700.0, 3200.0),
        random_read_deep: assumed(seen(2300.0, 1700.0, 3300.0)),
        random_write: seen(790.0, 500.0, 1200.0),
        random_write_deep: assumed(seen(850.0, 500.0, 1250.0)),
        sequential_read: mega(80.0, 43.0, 95.0),
        sequential_write: mega(32.0, 20.0, 70.0),
        commits: assumed(seen(100.0, 20.0, 300.0)),
        euros: (12, 30),
        risk: CARDS_WEAR,
        source: "1730 to 2050 random reads of a SanDisk Extreme A2 on Pi 3+ and 4, fewer than its A1 sibling; 3200 and 1200 of \
                 Raspberry Pi's own A2 card on a Pi 4",
    },
    DeviceClass {
        id: "a2-card-queued",
        what: "SD card of class A2, with command queueing",
        random_read: assumed(seen(3000.0, 2000.0, 4000.0)),
        random_read_deep: seen(5000.0, 4000.0, 6000.0),
        random_write: assumed(seen(1200.0, 800.0, 2000.0)),
        random_write_deep: seen(2000.0, 1200.0, 3500.0),
        sequential_read: assumed(mega(88.0, 70.0, 95.0)),
        sequential_write: assumed(mega(50.0, 30.0, 75.0)),
        commits: assumed(seen(150.0, 30.0, 400.0)),
        euros: (12, 30),
        risk: CARDS_WEAR,
        source: "5000 random reads and 2000 writes of Raspberry Pi's own A2 card on a Pi 5",
    },
    DeviceClass {
        id: "emmc",
        what: "eMMC",
        random_read: seen(2200.0, 1800.0, 4000.0),
        random_read_deep: assumed(seen(3500.0, 2000.0, 8000.0)),
        random_write: seen(2250.0, 1000.0, 4000.0),
        random_write_deep: assumed(seen(3000.0, 1500.0, 8000.0)),
        sequential_read: assumed(mega(80.0, 20.0, 180.0)),
        sequential_write: assumed(mega(30.0, 5.0, 90.0)),
        commits: assumed(seen(200.0, 50.0, 600.0)),
        euros: (0, 0),
        risk: None,
        source: "8.99 MB/s of random reads and 9.20 of writes on a CM3+ (turing-pi-cluster issue 11)",
    },
    DeviceClass {
        id: "usb-stick",
        what: "USB stick",
        random_read: seen(1000.0, 500.0, 2250.0),
        random_read_deep: assumed(seen(1050.0, 500.0, 2400.0)),
        random_write: assumed(seen(100.0, 5.0, 2270.0)),
        random_write_deep: assumed(seen(100.0, 5.0, 2400.0)),
        sequential_read: assumed(mega(80.0, 20.0, 150.0)),
        sequential_write: assumed(mega(20.0, 5.0, 60.0)),
        commits: assumed(seen(15.0, 2.0, 100.0)),
        euros: (8, 30),
        risk: degrades("Many sticks stop for seconds while they write."),
        source: "a Cruzer and an Extreme stick on a Pi 3B+ (4.0 and 7.3 MB/s of random reads, J. Chambers 2018); sticks differ most of all",
    },
    DeviceClass {
        id: "usb2-ssd",
        what: "SSD on USB 2",
        random_read: seen(2400.0, 1140.0, 2760.0),
        random_read_deep: assumed(seen(2700.0, 1300.0, 3500.0)),
        random_write: seen(2450.0, 1200.0, 2600.0),
        random_write_deep: assumed(seen(2700.0, 1300.0, 3500.0)),
        sequential_read: mega(30.0, 26.0, 35.0),
        sequential_write: mega(31.0, 27.0, 35.0),
        commits: assumed(seen(300.0, 60.0, 900.0)),
        euros: (25, 50),
        risk: None,
        source: "published tables of a Pi 3 (2756 random reads, 30 MB/s) and a CM3+ (2166, turing-pi-cluster issue 11)",
    },
    DeviceClass {
        id: "usb3-ssd",
        what: "SSD on USB 3",
        random_read: seen(5000.0, 3500.0, 7500.0),
        random_read_deep: assumed(seen(30_000.0, 15_000.0, 60_000.0)),
        random_write: seen(7000.0, 5700.0, 8500.0),
        random_write_deep: assumed(seen(30_000.0, 10_000.0, 55_000.0)),
        sequential_read: mega(380.0, 280.0, 440.0),
        sequential_write: mega(300.0, 150.0, 420.0),
        commits: assumed(seen(500.0, 100.0, 2000.0)),
        euros: (30, 60),
        risk: degrades("Some USB adapters fail with UAS: see `rubus survey`."),
        source: "20.6 MB/s of random reads and 28.5 of writes under uas on a Pi 4 (turing-pi-cluster issue 11); 334 to 439 MB/s in order of a SATA \
                 SSD (raspberry-pi-pcie-devices issue 559)",
    },
    DeviceClass {
        id: "usb3-ssd-storage",
        what: "SSD on USB 3 under usb-storage",
        random_read: seen(3500.0, 2800.0, 5000.0),
        random_read_deep: assumed(seen(3800.0, 2800.0, 5500.0)),
        random_write: seen(5700.0, 4000.0, 7000.0),
        random_write_deep: assumed(seen(6000.0, 4000.0, 7500.0)),
        sequential_read: assumed(mega(300.0, 220.0, 400.0)),
        sequential_write: assumed(mega(250.0, 120.0, 380.0)),
        commits: assumed(seen(400.0, 80.0, 1500.0)),
        euros: (30, 60),
        risk: None,
        source: "14.4 MB/s of random reads and 23.3 of writes without uas on a Pi 4 (turing-pi-cluster issue 11)",
    },
    DeviceClass {
        id: "usb-disk",
        what: "spinning disk on USB",
        random_read: assumed(seen(90.0, 60.0, 150.0)),
        random_read_deep: assumed(seen(180.0, 90.0, 300.0)),
        random_write: assumed(seen(120.0, 60.0, 250.0)),
        random_write_deep: assumed(seen(200.0, 90.0, 400.0)),
        sequential_read: assumed(mega(120.0, 80.0, 200.0)),
        sequential_write: assumed(mega(110.0, 70.0, 190.0)),
        commits: assumed(seen(40.0, 15.0, 100.0)),
        euros: (50, 90),
        risk: None,
        source: "half a turn at 5400 per minute takes 5.6 ms, and a seek about as long",
    },
    DeviceClass {
        id: "usb-unknown",
        what: "USB disk (SSD or platters, its bridge does not tell)",
        random_read: assumed(seen(1500.0, 60.0, 6000.0)),
        random_read_deep: assumed(seen(4000.0, 90.0, 30_000.0)),
        random_write: assumed(seen(1500.0, 60.0, 10_000.0)),
        random_write_deep: assumed(seen(3000.0, 90.0, 30_000.0)),
        sequential_read: assumed(mega(150.0, 80.0, 400.0)),
        sequential_write: assumed(mega(130.0, 70.0, 400.0)),
        commits: assumed(seen(150.0, 15.0, 2000.0)),
        euros: (20, 90),
        risk: None,
        source: "from the least of a spinning disk to the most of an SSD; measuring tells which it is",
    },
    DeviceClass {
        id: "nvme",
        what: "NVMe SSD",
        random_read: seen(12_000.0, 3600.0, 15_000.0),
        random_read_deep: seen(90_000.0, 40_000.0, 200_000.0),
        random_write: seen(20_000.0, 6200.0, 58_000.0),
        random_write_deep: seen(80_000.0, 30_000.0, 200_000.0),
        sequential_read: mega(800.0, 410.0, 900.0),
        sequential_write: mega(700.0, 380.0, 750.0),
        commits: assumed(seen(1500.0, 200.0, 10_000.0)),
        euros: (40, 80),
        risk: None,
        source: "56 to 59 MB/s of random reads and 730 to 800 MB/s in order on a Pi 5 with PCIe Gen 3, 14.8 and 416 MB/s on a CM4 \
                 (raspberry-pi-pcie-devices issues 631, 679, 355); 103000 reads and 82000 writes per second with many in flight (issue 632)",
    },
    DeviceClass {
        id: "virtual-disk",
        what: "virtual disk",
        random_read: assumed(seen(5000.0, 300.0, 50_000.0)),
        random_read_deep: assumed(seen(30_000.0, 1000.0, 300_000.0)),
        random_write: assumed(seen(5000.0, 300.0, 50_000.0)),
        random_write_deep: assumed(seen(30_000.0, 1000.0, 300_000.0)),
        sequential_read: assumed(mega(500.0, 50.0, 5000.0)),
        sequential_write: assumed(mega(300.0, 40.0, 3000.0)),
        commits: assumed(seen(500.0, 20.0, 20_000.0)),
        euros: (0, 0),
        risk: None,
        source: "anything may be behind it",
    },
];

impl DeviceClass {
    /// The kind of that name.
    pub fn by_id(id: &str) -> Option<&'static DeviceClass> {
        CLASSES.iter().find(|class| class.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_in_their_ranges_and_a_queue_costs_nothing() {
        for (i, class) in CLASSES.iter().enumerate() {
            assert!(CLASSES[..i].iter().all(|other| other.id != class.id));
            let all = [
                class.random_read,
                class.random_read_deep,
                class.random_write,
                class.random_write_deep,
                class.sequential_read,
                class.sequential_write,
                class.commits,
            ];
            for figure in all {
                // Panics where a value is outside.
                assert!(figure.estimate().low > 0.0, "{}", class.id);
            }
            assert!(class.random_read_deep.value >= class.random_read.value);
            assert!(class.random_write_deep.value >= class.random_write.value);
            assert!(class.euros.0 <= class.euros.1 && !class.source.is_empty());
        }
    }

    #[test]
    fn every_assumption_is_in_the_documentation() {
        let text = include_str!("../../../docs/data/assumed-devices.tsv");
        for class in &CLASSES {
            let start = format!("{}\t", class.id);
            let row = text.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("no row of {}", class.id));
            let figures = [
                ("random reads", 1.0, class.random_read),
                ("random reads ×32", 1.0, class.random_read_deep),
                ("random writes", 1.0, class.random_write),
                ("random writes ×32", 1.0, class.random_write_deep),
                ("MB/s read", 1e6, class.sequential_read),
                ("MB/s written", 1e6, class.sequential_write),
                ("commits", 1.0, class.commits),
            ];
            for (name, unit, seen) in figures {
                let [value, low, high] = [seen.value, seen.low, seen.high].map(|one| one / unit);
                let words = format!("{name} {value} ({low} to {high})");
                let is_assumed = seen.basis == Basis::Assumed;
                assert_eq!(row.contains(&words), is_assumed, "{}: {words}", class.id);
            }
        }
    }

    #[test]
    fn what_this_programs_tables_say_of_cards_is_in_the_ranges() {
        let aside = |board: &str, what: &str| {
            let mut all = rubus_vocabulary::published::figures::ASIDES.iter();
            all.find(|a| a.board == board && a.what.contains(what))
                .map(|a| a.value)
                .expect("it was published")
        };
        for (id, board, what) in [
            ("a1-card", "Raspberry Pi 4", "Extreme 64 GB A1"),
            ("a1-card", "Raspberry Pi 3", "Extreme 64 GB A1"),
            ("a2-card", "Raspberry Pi 4", "Extreme 64 GB A2"),
            ("a2-card", "Raspberry Pi 3+", "Extreme 64 GB A2"),
        ] {
            let range = DeviceClass::by_id(id).expect("a kind").random_read;
            let published = aside(board, what);
            assert!((range.low..=range.high).contains(&published), "{id}: {published}");
        }
    }
}
