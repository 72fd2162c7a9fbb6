//! Advice: a board with a slow card, for a desktop and for swap.

use crate::advice::StageKind::{Bus, Device, Network, Server, Swap};
use crate::advice::{
    Advice, Bases, Basis, Candidate, Curve, CurvePoint, Demand, FORMAT, Figures, PaysUpTo, Pipe,
    Rated, StageKind, Subject, Swapping, Unknown,
};
use rubus_machine::purpose::{Purpose, Visit, What};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::next_step::NextStep;

/// Rates one at a time: bytes read and written in order, random reads and writes, commits, each per second.
struct Rates([f64; 5]);

impl Rates {
    fn of(&self, what: What) -> Estimate {
        let place = match what {
            What::SequentialRead => 0,
            What::SequentialWrite => 1,
            What::RandomRead => 2,
            What::RandomWrite => 3,
            What::Commit => 4,
        };
        around(self.0[place])
    }
}

fn around(value: f64) -> Estimate {
    Estimate::new(value, value * 0.7, value * 1.4)
}

fn words(words: &str) -> Option<Vec<String>> {
    Some(words.split(' ').map(str::to_string).collect())
}

/// For a desktop: an SSD on USB 2, a network disk, and the current card, which is measured.
pub fn advice() -> Advice {
    let published = Bases { commits: Basis::Assumed, ..Bases::all(Basis::Published) };
    let best = Candidate {
        risks: vec!["Applying the plan erases sda (/srv/data, 34.1 GB).".into()],
        ..candidate(
            ("sda", "SSD on USB 2 Samsung Portable T5"),
            &Rates([30e6, 31e6, 2400.0, 2450.0, 300.0]),
            &[("sda", Device, 300.0, 1.0), ("the USB 2 bus usb1", Bus, 8545.0, 0.04)],
            published,
        )
    };
    let network = candidate(
        ("nbd", "network disk over eth0, 100 Mbit/s"),
        &Rates([11.8e6, 11.8e6, 1086.0, 1190.0, 363.0]),
        &[
            ("eth0", Network, 2854.0, 0.13),
            ("the USB 2 bus usb1", Bus, 8545.0, 0.13),
            ("the server", Server, 33_333.0, 0.03),
        ],
        Bases::all(Basis::Assumed),
    );
    let bought = Candidate {
        is_here: false,
        euros: (8, 120),
        ..candidate(
            ("a1-card", "SD card of class A1"),
            &Rates([22.5e6, 22.5e6, 2300.0, 870.0, 100.0]),
            &[("a1-card", Device, 100.0, 1.0), ("the card slot mmc0", Bus, 5493.0, 0.02)],
            published,
        )
    };
    let now = Candidate {
        is_now: true,
        is_measured: true,
        ..candidate(
            ("mmcblk0", "SD card without A1 or A2, EB1QT"),
            &Rates([22.5e6, 15e6, 1300.0, 150.0, 40.0]),
            &[("mmcblk0", Device, 40.0, 1.0), ("the card slot mmc0", Bus, 5493.0, 0.01)],
            Bases::all(Basis::Measured),
        )
    };
    let mut advice = Advice {
        next: NextStep::default(),
        format: FORMAT,
        machine: "Raspberry Pi 3 Model B Rev 1.2".into(),
        from: Some("captures/pi3".into()),
        purpose: Purpose::Desktop,
        unit: Purpose::Desktop.unit(),
        candidates: vec![best, bought, network, now],
        because: vec![
            "Move the system to sda (SSD on USB 2): a desktop's work about 4.1 times faster (2.7 to 6.1 times), not measured here.".into(),
            "sda would need 2.9 s (2.0 s to 4.0 s) for one second of this work; the current mmcblk0 needs 12 s.".into(),
            "The largest part of the difference, 7.6 s, is in commits: 40/s now, 300/s then.".into(),
            "After that the narrowest pipe is sda at commits (41 % of the time).".into(),
        ],
        command: words("rubus plan desktop device=/dev/sda"),
        obstacles: Vec::new(),
        to_do: None,
        subjects: vec![Subject {
            name: "swap".into(),
            advice: "zram: 2000 pages in and out take ~0.4 s, now (swap on mmcblk0) 15 s.".into(),
            command: words("rubus plan swap to=zram size=922M swappiness=190"),
            obstacles: Vec::new(),
        }],
        curve: Some(curve()),
        unknown: vec![Unknown {
            what: "sda, 2.0 s to 4.0 s".into(),
            measurement: words("rubus checkup /srv/data"),
            of: Some("sda".into()),
            needs_root: false,
        }],
    };
    advice.next = advice.next_step();
    advice
}

/// For swap: three set-ups, of which the last is the current one.
pub fn swap_advice() -> Advice {
    let set_up = |name: &str, what: &str, rate: f64, pipe: &str, kind: StageKind| Candidate {
        demands: demands(Purpose::Swap, &Rates([30e6, 31e6, rate, rate, 300.0])),
        swap: Some(Swapping { carries: around(1.51), beyond_s: Some(around(420e-6)) }),
        time_s: around(4000.0 / rate),
        ..candidate(
            (name, what),
            &Rates([30e6, 31e6, rate, rate, 300.0]),
            &[(pipe, kind, rate, 1.0)],
            Bases::all(Basis::Assumed),
        )
    };
    let mut advice = Advice {
        purpose: Purpose::Swap,
        unit: Purpose::Swap.unit(),
        candidates: vec![
            set_up(
                "zswap+sda",
                "zswap 30 %, then sda (compressed in 30 % of the memory, then on SSD on USB 2 INTENSO SSD)",
                18_300.0,
                "the processor",
                Swap,
            ),
            set_up(
                "zram",
                "zram of 922 MiB (as large as the memory)",
                18_250.0,
                "the processor",
                Swap,
            ),
            Candidate {
                is_now: true,
                swap: None,
                ..set_up("swap on mmcblk0", "swap on mmcblk0 (without zswap)", 270.0, "mmcblk0", Device)
            },
        ],
        because: vec![
            "Swap with zswap 30 %, then sda: swapping about 68 times faster (50 to 90 times), not measured here.".into(),
            "zswap 30 %, then sda would need ~0.2 s (0.2 s to 0.3 s) for 2000 pages in and out; the current swap on mmcblk0 needs ~15 s.".into(),
            "After that the narrowest pipe is the processor at random writes (50 % of the time).".into(),
        ],
        command: words("rubus plan zswap max-pool-percent=30"),
        subjects: Vec::new(),
        curve: None,
        ..advice()
    };
    advice.next = advice.next_step();
    advice
}

fn candidate(
    (name, what): (&str, &str),
    rates: &Rates,
    pipes: &[(&str, StageKind, f64, f64)],
    basis: Bases,
) -> Candidate {
    let demands = demands(Purpose::Desktop, rates);
    let time_s = demands.iter().map(|demand| demand.seconds.value).sum();
    let pipes = pipes.iter().map(|(name, kind, capacity, utilisation)| Pipe {
        name: (*name).into(),
        kind: *kind,
        capacity_iops: around(*capacity),
        utilisation: *utilisation,
    });
    Candidate {
        name: name.into(),
        what: what.into(),
        is_now: false,
        is_here: true,
        figures: Figures {
            random_read: rates.of(What::RandomRead),
            random_read_deep: rates.of(What::RandomRead),
            random_write: rates.of(What::RandomWrite),
            random_write_deep: rates.of(What::RandomWrite),
            sequential_read: rates.of(What::SequentialRead),
            sequential_write: rates.of(What::SequentialWrite),
            commits: rates.of(What::Commit),
        },
        time_s: around(time_s),
        demands,
        pipes: pipes.collect(),
        cpu_share: around(0.05),
        swap: None,
        euros: (0, 0),
        risks: Vec::new(),
        worst_risk: None,
        tier: 0,
        is_measured: false,
        basis,
        source: "published tables of other boards".into(),
    }
}

fn demands(purpose: Purpose, rates: &Rates) -> Vec<Demand> {
    let demand = |visit: Visit| {
        let rate = rates.of(visit.what);
        let over = |rate: f64| visit.count / rate;
        Demand {
            what: visit.what,
            seconds: Estimate::new(over(rate.value), over(rate.high), over(rate.low)),
            in_flight: visit.depth,
            per_second: rate,
        }
    };
    purpose.visits().into_iter().map(demand).collect()
}

fn curve() -> Curve {
    let methods = ["none", "lzo", "zstd:1", "zstd:3", "zlib:3", "zstd:9"];
    let rated = |link: f64| -> Vec<Rated> {
        let each = methods.iter().enumerate();
        each.map(|(i, method)| Rated {
            method: (*method).into(),
            bytes_per_second: around(link * (1.0 + i as f64 / 5.0)),
        })
        .collect()
    };
    let point = |link: f64| CurvePoint {
        link_bytes_per_second: link,
        best: "zstd:9".into(),
        writes: rated(link),
        reads: rated(link),
    };
    let pays = methods[1..].iter().map(|method| PaysUpTo {
        method: (*method).into(),
        writes: Some(104e6),
        reads: Some(258e6),
        mix: (*method != "zstd:9").then_some(146e6),
    });
    Curve {
        source: "usual for a Cortex-A53, data that shrinks to 47 %".into(),
        is_measured: false,
        cores: 4,
        basis: Basis::Assumed,
        break_even: pays.collect(),
        points: [5e6, 35e6, 400e6].map(point).to_vec(),
    }
}
