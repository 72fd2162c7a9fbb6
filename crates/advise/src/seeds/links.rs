//! Links: a network port's ceiling, a network disk beside a card, sticks on one hub, and a bridge with one queue.

use rubus_stats::estimate::Estimate;

use super::{SeedCase, exact, operation, published, rate, reference};
use crate::path::{Kind, Resource, Stage, Step, Stripe};
use crate::predict::predict;

const MB: f64 = 1e6;
const KB: f64 = 1024.0;
/// Share of an Ethernet link that TCP's payload can have with frames of 1500 bytes and time stamps: 1448 of 1538 bytes on
/// the wire (preamble, header, checksum and gap counted).
const PAYLOAD: f64 = 1448.0 / 1538.0;
/// Bytes of a request's or an answer's header in the NBD protocol that go with the data.
const HEADER: u64 = 28;
/// Bytes per second that USB 2 carries in practice, as the article on RAID-0 has it.
const USB_2: f64 = 35e6;
const RAID: &str = "a university page on RAID-0 of USB sticks on a Raspberry Pi";
const NODE: &str = "an article of August 2019 on a Raspberry Pi 4B as a storage node";

pub(super) fn cases() -> Vec<SeedCase> {
    let mut cases = vec![gigabit()];
    cases.extend(
        ["sequential-write", "random-write", "sequential-read", "random-read"].map(over_100_mbit),
    );
    cases.push(gain());
    cases.extend([2, 4, 8].map(sticks));
    cases.extend([usb_2_elsewhere(), half_of_usb_2(), bridge()]);
    cases
}

/// Bytes per second of payload.
fn network(bits_per_second: f64) -> Step {
    let bytes_per_second = bits_per_second / 8.0 * PAYLOAD;
    rate(Kind::Network, Resource::one("Ethernet"), exact(bytes_per_second))
}

fn gigabit() -> SeedCase {
    let bytes = 8192 + HEADER;
    SeedCase {
        what: "8 KiB operations per second through a 1 Gbit/s port".into(),
        stages: "1 Gbit/s, 1448 of 1538 bytes of each frame, 28 bytes of header".into(),
        predicted: predict(&[network(1e9)], &operation(bytes, 64)).iops,
        published: 16_000.0,
        unit: "IOPS",
        source: NODE,
        why: "A ceiling. The article counts neither frames nor headers and rounds up: 10^9 / 8 / 8192 is 15 259.",
    }
}

fn over_100_mbit(job: &str) -> SeedCase {
    let of = reference("pi2-nbd");
    let block = 4096;
    let share = block as f64 / (block + HEADER) as f64;
    let predicted = predict(&[network(100e6)], &operation(block, 64)).bytes_per_second;
    SeedCase {
        what: format!("{job} over 100 Mbit/s, NBD on a {}", of.board),
        stages: "the link alone, 4 KiB, several in flight".into(),
        predicted: predicted.scaled(share / KB),
        published: published("pi2-nbd", job) / KB,
        unit: "kB/s",
        source: of.source,
        why: match job {
            "sequential-write" => {
                "The link is the narrowest; the rest is the client's processor, which the article saw half busy, and the \
                 Ethernet behind the board's USB."
            }
            "random-write" => {
                "Misses: the link is not the narrowest here but the server's disk, of which the article says nothing. The model \
                 gives the ceiling, and one measurement of that disk would settle it."
            }
            "sequential-read" => {
                "Misses: the published figure is more than 100 Mbit/s can carry at all, so part of the reads came from the page \
                 cache of the client. No model of the path may reach it."
            }
            _ => {
                "Agrees within bounds, yet the published figure is above the 12.5 MB/s of the wire: some reads were cached."
            }
        },
    }
}

fn gain() -> SeedCase {
    let card = published("pi2-card", "sequential-write");
    let found = predict(&[network(100e6)], &operation(1 << 20, 64)).bytes_per_second;
    SeedCase {
        what: "times as fast as the card: sequential writes to a network disk, Raspberry Pi 2"
            .into(),
        stages: "the link of 100 Mbit/s; the card's published rate".into(),
        predicted: found.scaled(1.0 / card),
        published: published("pi2-nbd", "sequential-write") / card,
        unit: "times",
        source: reference("pi2-nbd").source,
        why: "The gain is the link against the card; that needs no more than the speed of the link.",
    }
}

/// `count` sticks of 30 MB/s behind one USB 2 port.
fn sticks(count: u32) -> SeedCase {
    let member = |number: u32| {
        vec![
            rate(Kind::Device, Resource::one(format!("stick {number}")), exact(30e6)),
            rate(Kind::Bus, Resource::one("USB 2"), exact(USB_2)),
        ]
    };
    let path = [Step::Stripe(Stripe {
        chunk_bytes: 512 << 10,
        members: (0..count).map(member).collect(),
    })];
    let predicted = predict(&path, &operation(8 << 20, 16)).bytes_per_second;
    SeedCase {
        what: format!("RAID-0 of {count} sticks on one hub"),
        stages: "sticks that read 30 MB/s each, and one USB 2 bus of 35 MB/s".into(),
        predicted: predicted.scaled(1.0 / MB),
        published: USB_2 / MB,
        unit: "MB/s",
        source: RAID,
        why: "All members need the same bus: the second stick brings a sixth more, the fourth and the eighth nothing. The page \
              has its own rates in pictures only, so this is held against its rule.",
    }
}

fn usb_2_elsewhere() -> SeedCase {
    SeedCase {
        what: "the most that a SATA SSD gives behind USB 2, Raspberry Pi 3".into(),
        stages: "the USB 2 bus of the page on RAID-0 as the only narrow stage".into(),
        predicted: exact(USB_2 / MB),
        published: published("pi3-usb-ssd", "write-16m") / MB,
        unit: "MB/s",
        source: reference("pi3-usb-ssd").source,
        why: "Another article, another disk, the same bus.",
    }
}

fn half_of_usb_2() -> SeedCase {
    SeedCase {
        what: "what an SSD gives behind USB 2, Raspberry Pi 3B+".into(),
        stages: "the USB 2 bus of the page on RAID-0 as the only narrow stage".into(),
        predicted: exact(USB_2 / MB),
        published: 240e6 / 8.0 / MB,
        unit: "MB/s",
        source: NODE,
        why: "The article saw about half of 480 Mbit/s and wondered; its adapter carries one request at a time, so the bus \
              rests between two.",
    }
}

fn bridge() -> SeedCase {
    let bytes = 4096;
    let iops = exact(published("pi3-usb-ssd", "random-read-4k") / bytes as f64);
    let path =
        Stage::of_pair(Kind::Device, Resource::one("bridge"), &[(bytes, iops)], &[(bytes, iops)]);
    let at = |depth| predict(&path, &operation(bytes, depth)).iops.value;
    SeedCase {
        what: "gain of 64 in flight over one behind a bridge with one queue, Raspberry Pi 3B+"
            .into(),
        stages: "4 KiB random reads one at a time; a bridge that serves one at a time".into(),
        predicted: Estimate::exact(at(64) / at(1)),
        published: 1.0,
        unit: "times",
        source: NODE,
        why: "With one server the knee is at depth 1: more in flight only wait. The article's curve shows exactly that, in \
              a picture.",
    }
}
