//! A stripe over loop devices: each with its own limits, all on one port, and one slower than the others.

use anyhow::{Context, Result};
use rubus_advise::{Kind as Pipe, Step, Stripe};

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{even, of_pair, rate, size};
use super::rig::{Job, Measured, Rig, job};
use crate::devices::needs::Need;
use crate::devices::{BlockGroup, Limits, LoopDevice};

pub(super) const ABOUT: &str = "Up to three loop devices of 800 reads and 12 MB per second each, of which every read meets one in turn (the \
     stripe is the engine's own: one job over several devices). Behind one port, one more throttle of 16 MB per second is below all. Alone: \
     one device, and the port. Predicted: two and three, separate and behind the port, and one that is half as fast beside two.";
pub(super) const NEEDS: &[Need] = &[Need::Root, Need::Loop, Need::BlockThrottle];

const MIB: u64 = 1 << 20;
const MEMBER: u64 = 64 * MIB;
const SIZES: [u64; 2] = [4 << 10, 64 << 10];
const DEPTH: u32 = 24;

fn limits(part: f64) -> Limits {
    Limits {
        read_iops: Some((800.0 * part) as u64),
        read_bytes_per_second: Some((12e6 * part) as u64),
        ..Limits::default()
    }
}

/// The devices and their throttle. Fields are dropped in this order: members lie on the port.
struct Members {
    group: BlockGroup,
    separate: Vec<LoopDevice>,
    behind: Vec<LoopDevice>,
    port: LoopDevice,
}

impl Members {
    fn new() -> Result<Members> {
        let group = BlockGroup::new()?;
        let port = LoopDevice::new(3 * MEMBER)?;
        let separate = (0..3).map(|_| LoopDevice::new(MEMBER));
        let separate = separate.collect::<Result<Vec<_>>>()?;
        let behind = (0..3).map(|n| LoopDevice::part_of(port.path(), n * MEMBER, MEMBER));
        let behind = behind.collect::<Result<Vec<_>>>()?;
        for device in separate.iter().chain(&behind) {
            group.limit(device.number()?, limits(1.0))?;
        }
        Ok(Members { group, separate, behind, port })
    }
}

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let members = Members::new()?;
    let stripe = |devices: &[LoopDevice], bytes: u64| {
        let names: Vec<_> =
            devices.iter().map(|device| device.path().display().to_string()).collect();
        let depth = DEPTH;
        Job::timed(name(devices.len(), bytes), "randread", bytes, depth)
            .with("filename", names.join(":"))
            .with("file_service_type", "roundrobin")
    };
    let run = |devices: &[LoopDevice], counts: &[usize]| {
        let jobs: Vec<Job> = counts
            .iter()
            .flat_map(|&count| SIZES.map(|bytes| stripe(&devices[..count], bytes)))
            .collect();
        rig.undisturbed(|| rig.jobs(Some(&members.group), None, &jobs))
    };
    let alone = run(&members.separate, &[1])?;
    let one: Vec<&Measured> = alone.iter().collect();
    let slow: Vec<Measured> = alone.iter().map(halved).collect();
    let slow: Vec<&Measured> = slow.iter().collect();
    let mut wholes = Vec::new();
    let several = [2, 3].map(|count| Stripes {
        title: format!("{count} on ports of their own"),
        kind: Kind::Composition,
        paths: (0..count).map(|n| member(n, &one)).collect(),
    });
    let said = Said::new(ledger, &several)?;
    wholes.extend(said.wholes(&run(&members.separate, &[2, 3])?)?);
    members.group.limit(members.separate[0].number()?, limits(0.5))?;
    let uneven = Stripes {
        title: "one member half as fast as two others".into(),
        kind: Kind::Composition,
        paths: vec![member(0, &slow), member(1, &one), member(2, &one)],
    };
    let said = Said::new(ledger, &[uneven])?;
    wholes.extend(said.wholes(&run(&members.separate, &[3])?)?);
    let limit = Limits { read_bytes_per_second: Some(16_000_000), ..Limits::default() };
    members.group.limit(members.port.number()?, limit)?;
    let alone = [Job::timed("port", "randread", 64 << 10, DEPTH)];
    let port =
        rig.undisturbed(|| rig.jobs(Some(&members.group), Some(members.port.path()), &alone))?;
    let port = port.first().context("the port was not measured")?;
    let behind = [1, 2, 3].map(|count| {
        let below = |n: usize| {
            let mut path = member(n, &one);
            path.push(rate(Pipe::Bus, "port", port.bytes_per_second));
            path
        };
        Stripes {
            title: format!("{count} behind one port"),
            // One that leaves room at the port is the member that was measured alone.
            kind: match count {
                1 => Kind::Identity,
                _ => Kind::Composition,
            },
            paths: (0..count).map(below).collect(),
        }
    });
    let said = Said::new(ledger, &behind)?;
    wholes.extend(said.wholes(&run(&members.behind, &[1, 2, 3])?)?);
    Ok(wholes)
}

/// A set-up, and the way to each of its members.
struct Stripes {
    title: String,
    kind: Kind,
    paths: Vec<Vec<Step>>,
}

/// What was predicted, and the name of the job that measures it.
struct Said(Vec<(Forecast, String)>);

impl Said {
    fn new(ledger: &Ledger, set_ups: &[Stripes]) -> Result<Said> {
        let mut said = Vec::new();
        for set_up in set_ups {
            for bytes in SIZES {
                let path = [Step::Stripe(Stripe {
                    chunk_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                    members: set_up.paths.clone(),
                })];
                let forecast = Forecast::new(
                    Subject::Stripes,
                    set_up.kind,
                    format!("{}, {} reads", set_up.title, size(bytes)),
                    size(bytes),
                    Unit::BytesPerSecond,
                    (&path, even(bytes, DEPTH)),
                );
                said.push((forecast, name(set_up.paths.len(), bytes)));
            }
        }
        ledger.write(said.iter().map(|(forecast, _)| forecast))?;
        Ok(Said(said))
    }

    fn wholes(&self, found: &[Measured]) -> Result<Vec<Whole>> {
        let whole = |(forecast, name): &(Forecast, String)| Ok(forecast.whole(job(found, name)?));
        self.0.iter().map(whole).collect()
    }
}

/// A member, as it does alone.
fn member(n: usize, found: &[&Measured]) -> Vec<Step> {
    let found = found.to_vec();
    of_pair(Pipe::Device, &format!("member {n}"), found.clone(), found)
}

fn name(count: usize, bytes: u64) -> String {
    format!("{count} of {bytes}")
}

/// What a device with half the limits does.
fn halved(found: &Measured) -> Measured {
    Measured {
        iops: found.iops.scaled(0.5),
        bytes_per_second: found.bytes_per_second.scaled(0.5),
        ..found.clone()
    }
}
