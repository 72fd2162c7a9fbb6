//! Disks and cards: a size between two that were published, and the same card on another bus.

use rubus_stats::estimate::Estimate;

use super::{SeedCase, exact, operation, published, rate, reference};
use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step};
use crate::predict::predict;

const KB: f64 = 1024.0;
const MB: f64 = 1e6;
const SMALL: u64 = 4 << 10;
const MIDDLE: u64 = 512 << 10;
const LARGE: u64 = 16 << 20;

pub(super) fn cases() -> Vec<SeedCase> {
    let mut cases = Vec::new();
    for id in ["pi3-usb-ssd", "pi3-card-f2fs"] {
        for pass in ["write", "rewrite", "read", "reread", "random-read", "random-write"] {
            cases.push(middle_size(id, pass));
        }
    }
    let boards = [
        ("pi4-card-a1", "pi3-card-a1"),
        ("pi4-card-a1", "pi3-overclocked-card-a1"),
        ("pi4-card-a2", "pi3plus-card-a2"),
        ("pi4-card-a2", "pi3plus-overclocked-card-a2"),
    ];
    for (from, to) in boards {
        for job in ["random-read", "random-write"] {
            cases.push(other_bus(from, to, job));
        }
    }
    cases
}

/// 512 KiB from the smallest and the largest record of the same table.
fn middle_size(id: &str, pass: &str) -> SeedCase {
    let of = reference(id);
    let known = |size: &str| published(id, &format!("{pass}-{size}"));
    let seconds = |bytes: u64, size: &str| (bytes, exact(bytes as f64 / known(size)));
    let path = [Step::Stage(Stage {
        kind: Kind::Device,
        resource: Some(Resource::one(of.device)),
        cost: Cost::seconds([seconds(SMALL, "4k"), seconds(LARGE, "16m")]),
    })];
    let predicted = predict(&path, &operation(MIDDLE, 1)).bytes_per_second;
    SeedCase {
        what: format!("{pass} of 512 KiB, {}, {}", of.board, short(of.device)),
        stages: "its 4 KiB and 16 MiB records: a fixed cost and a cost per byte".into(),
        predicted: predicted.scaled(1.0 / KB),
        published: known("512k") / KB,
        unit: "kB/s",
        source: of.source,
        why: match (id, pass) {
            ("pi3-card-f2fs", "random-write") => {
                "Misses: a card writes 16 MiB in whole erase blocks, and 512 KiB at random places in parts of them, \
                 which it has to merge. No line through two sizes knows that; a sweep over sizes does."
            }
            ("pi3-usb-ssd", _) => {
                "A fixed cost and a cost per byte, a little too fast: the kernel cuts 512 KiB into several requests, and at one record at a \
                 time the last one of each leaves the bridge idle, which the line through the two ends does not count."
            }
            _ => "A fixed cost and a cost per byte add up.",
        },
    }
}

/// 4 KiB at random of the same card behind a narrower or wider host: what a lone operation takes on one, less its time on that bus,
/// plus its time on the other.
fn other_bus(from: &str, to: &str, job: &str) -> SeedCase {
    let (there, here) = (reference(from), reference(to));
    let bytes = SMALL as f64;
    let bus = |id: &str| published(id, "sequential-read");
    let card_s = bytes / published(from, job) - bytes / bus(from);
    let path = [
        Step::Stage(Stage {
            kind: Kind::Device,
            resource: Some(Resource::one("card")),
            cost: Cost::fixed(Estimate::exact(card_s)),
        }),
        rate(Kind::Bus, Resource::one("SD host"), exact(bus(to))),
    ];
    let predicted = predict(&path, &operation(SMALL, 1)).bytes_per_second;
    let class = if from.ends_with("a1") { "A1" } else { "A2" };
    SeedCase {
        what: format!("{job} of the {class} card on a {}, from the Pi 4's figures", here.board),
        stages: format!(
            "{job} and sequential reads on the {}; sequential reads here as the width of the bus; 4 KiB assumed",
            there.board
        ),
        predicted: predicted.scaled(1.0 / MB),
        published: published(to, job) / MB,
        unit: "MB/s",
        source: here.source,
        why: match job {
            "random-read" => {
                "The card's own time stays, and the bus adds its own: a sum, no maximum."
            }
            _ => {
                "The sum again; writes keep part of the card's time to themselves that differs from run to run, which shows in \
                 an overclocked bus that gains nothing."
            }
        },
    }
}

fn short(device: &str) -> &str {
    device.split(',').next().unwrap_or(device)
}
