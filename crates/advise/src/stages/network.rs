//! A network disk: the flight time of a message, the link, and the server.

use rubus_machine::ceiling;
use rubus_machine::purpose::What;
use rubus_stats::estimate::Estimate;

use super::{bus, usable};
use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step};

/// A link as far as its machine tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// "eth0".
    pub name: String,
    /// Payload that it carries in practice, bytes per second.
    pub bytes_per_second: Estimate,
    /// There and back of a small message through both kernels, seconds.
    pub round_trip_s: Estimate,
    /// The bus that the network chip sits on, and what it carries: USB on boards up to the 3.
    pub behind: Option<(String, f64)>,
    /// What is usual and what is known, in words.
    pub source: String,
}

/// Unmeasured Wi-Fi: from one wall away to beside the access point.
const WIFI_BYTES_PER_SECOND: (f64, f64, f64) = (5e6, 1.5e6, 15e6);

impl Link {
    /// A cable of this rate in bits per second; `behind` is the slowest bus before the chip.
    pub fn cable(name: &str, bits_per_second: u64, behind: Option<(String, f64)>) -> Link {
        let payload = ceiling::ethernet(bits_per_second).bytes_per_second;
        // USB 2 carries less than the cable of a Pi 3B+: about 300 Mbit/s.
        let through = behind.as_ref().map_or(payload, |(_, usable)| payload.min(*usable));
        let (value, low, high) = match (behind.is_some(), bits_per_second) {
            (true, _) => (450e-6, 250e-6, 1000e-6),
            (false, ..500_000_000) => (350e-6, 200e-6, 800e-6),
            (false, _) => (220e-6, 120e-6, 500e-6),
        };
        Link {
            name: name.into(),
            bytes_per_second: usable(through),
            round_trip_s: Estimate::new(value, low, high),
            behind,
            source: "the link's rate; round trip and server assumed".into(),
        }
    }

    /// A cable that does not tell its rate, as a paravirtual one: from that of a Pi 2 to what a host carries between its guests.
    pub fn untold(name: &str) -> Link {
        let rate = |bits: u64| ceiling::ethernet(bits).bytes_per_second;
        Link {
            name: name.into(),
            bytes_per_second: Estimate::new(
                rate(1_000_000_000),
                rate(100_000_000),
                rate(10_000_000_000),
            ),
            round_trip_s: Estimate::new(220e-6, 50e-6, 800e-6),
            behind: None,
            source: format!("{name} does not tell its rate: everything is assumed"),
        }
    }

    /// A socket of this machine instead of a link: two programs and the kernel between them.
    pub fn socket() -> Link {
        Link {
            name: "the socket".into(),
            bytes_per_second: Estimate::new(1e9, 0.3e9, 4e9),
            round_trip_s: Estimate::new(60e-6, 20e-6, 250e-6),
            behind: None,
            source: "a socket of this machine: everything is assumed".into(),
        }
    }

    /// A radio link, of which the kernel says nothing.
    pub fn wifi(name: &str) -> Link {
        let (value, low, high) = WIFI_BYTES_PER_SECOND;
        Link {
            name: name.into(),
            bytes_per_second: Estimate::new(value, low, high),
            round_trip_s: Estimate::new(4e-3, 1.5e-3, 15e-3),
            behind: None,
            source: "Wi-Fi: everything is assumed".into(),
        }
    }
}

/// Bytes of a request's head, and of an answer's (NBD, `doc/proto.md`).
const REQUEST_BYTES: f64 = 28.0;

/// The server's work on a request, where it was not measured: the program, and a read from its page cache or its SSD.
/// Writes are in its page cache until a flush.
const SERVER_READ_S: (f64, f64, f64) = (120e-6, 20e-6, 600e-6);
const SERVER_WRITE_S: (f64, f64, f64) = (40e-6, 15e-6, 150e-6);
/// A flush on the server's disk.
const SERVER_FLUSH_S: (f64, f64, f64) = (1.5e-3, 0.2e-3, 15e-3);
/// Requests that a server works on at the same time.
const SERVER_WORKERS: u32 = 4;

/// What one operation of a kind asks of a network disk.
pub fn steps(link: &Link, what: What) -> Vec<Step> {
    let estimate = |(value, low, high): (f64, f64, f64)| Estimate::new(value, low, high);
    let served = match what {
        What::RandomRead | What::SequentialRead => SERVER_READ_S,
        What::RandomWrite | What::SequentialWrite => SERVER_WRITE_S,
        What::Commit => SERVER_FLUSH_S,
    };
    // A commit is a write and a flush, each with its answer.
    let trips = if what == What::Commit { 2.0 } else { 1.0 };
    let bytes = what.bytes() as f64 + REQUEST_BYTES * trips;
    let mut steps = vec![
        Step::Stage(Stage {
            kind: Kind::Network,
            resource: None,
            cost: Cost::fixed(link.round_trip_s.scaled(trips)),
        }),
        Step::Stage(Stage {
            kind: Kind::Network,
            resource: Some(Resource::one(&link.name)),
            cost: Cost::seconds([(
                what.bytes(),
                super::device::seconds(link.bytes_per_second).scaled(bytes),
            )]),
        }),
    ];
    if let Some((name, usable)) = &link.behind {
        steps.push(bus(name, *usable));
    }
    steps.push(Step::Stage(Stage {
        kind: Kind::Server,
        resource: Some(Resource::many("the server", SERVER_WORKERS)),
        cost: Cost::fixed(estimate(served)),
    }));
    steps
}

/// What one operation asks of the link through which a storage node gives it on: its bytes, and those once more on the bus that the
/// network chip sits on. The way of a message is no part of it, since meanwhile others are served.
pub fn given_on(link: &Link) -> Vec<Step> {
    let cable = Step::Beside(Stage {
        kind: Kind::Network,
        resource: Some(Resource::one(format!("the link {}", link.name))),
        cost: Cost::rate(link.bytes_per_second),
    });
    match &link.behind {
        // The link was capped by it already.
        Some((name, usable)) if *usable <= link.bytes_per_second.value => vec![bus(name, *usable)],
        Some((name, usable)) => vec![cable, bus(name, *usable)],
        None => vec![cable],
    }
}
