//! A cipher in the path: LUKS, done by a server's filter, before what takes its time.

use anyhow::{Context, Result, bail};
use rubus_advise::{Kind as Pipe, Operation, Step};
use rubus_vocabulary::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::network::bend;
use super::parts::{even, fixed, of_pair, size};
use super::rig::{Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{NbdServer, programs};

pub(super) const ABOUT: &str = "A LUKS image (AES-256-XTS) behind a server that deciphers it. Alone: deciphering an image in memory, by depth and by size. \
     Predicted: the same before a disk that takes 2 ms for each of 16 requests at a time, by depth (4 KiB) and by size (one at a time).";
pub(super) const NEEDS: &[Need] = &[
    Need::Program("nbdkit", "nbdkit"),
    Need::Program("qemu-img", "qemu-utils"),
];

/// The key of the images, as QEMU's programs are told.
pub(super) const SECRET: &str = "secret,data=rubus,id=key";
/// How they are made with it.
pub(super) const LUKS: &str = "key-secret=key,iter-time=200";
const DELAY_S: f64 = 0.002;
const WORKERS: u32 = 16;
const SUITES: [&str; 2] = ["queue-depth", "block-size"];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let image = rig.directory().join("luks.img");
    let name = image.to_string_lossy().into_owned();
    let options = ["-f", "luks", "--object", SECRET, "-o", LUKS];
    luks_image(&[&["create", "-q"], &options[..], &[&name, "64M"]].concat())?;
    let plain = serve(&name, false)?;
    let mut alone = Vec::new();
    for suite in SUITES {
        alone.push(rig.sweep(plain.address(), suite, &[])?);
    }
    drop(plain);
    let [by_depth, by_size] = &alone[..] else {
        bail!("not every sweep was made");
    };
    let mut said = depths(by_depth);
    said.extend(sizes(by_size));
    ledger.write(said.iter().map(|(forecast, _)| forecast))?;
    let slow = serve(&name, true)?;
    let mut found = Vec::new();
    for suite in SUITES {
        found.push(rig.sweep(slow.address(), suite, &[])?);
    }
    let whole = |(forecast, wanted): &(Forecast, Wanted)| {
        let mut found = found[wanted.suite].iter();
        let is_it = |one: &&Measured| (one.block_bytes, one.depth) == (wanted.bytes, wanted.depth);
        let one = found.find(is_it);
        Ok(forecast.whole(one.with_context(|| format!("{} was not measured", forecast.name))?))
    };
    said.iter().map(whole).collect()
}

/// What measures a case: which of the sweeps, and where in it.
struct Wanted {
    suite: usize,
    bytes: u64,
    depth: u32,
}

fn disk() -> Step {
    fixed(Pipe::Device, "disk", WORKERS, Estimate::exact(DELAY_S))
}

fn depths(alone: &[Measured]) -> Vec<(Forecast, Wanted)> {
    let best = alone
        .iter()
        .max_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    let one = alone.iter().filter(|found| found.depth == 1);
    let mut path = of_pair(Pipe::Cipher, "cipher", one, best);
    path.push(disk());
    let of = |found: &Measured| {
        let operation = Operation {
            bytes: found.block_bytes,
            depth: found.depth,
            bend: bend(),
        };
        let forecast = Forecast::new(
            Subject::Cipher,
            Kind::Composition,
            format!("4 KiB reads, {} in flight", found.depth),
            "by depth",
            Unit::Iops,
            (&path, operation),
        );
        (forecast, Wanted::like(found, 0))
    };
    alone.iter().map(of).collect()
}

fn sizes(alone: &[Measured]) -> Vec<(Forecast, Wanted)> {
    let mut path = of_pair(Pipe::Cipher, "cipher", alone, alone);
    path.push(disk());
    let of = |found: &Measured| {
        let forecast = Forecast::new(
            Subject::Cipher,
            Kind::Composition,
            format!("{} reads, one at a time", size(found.block_bytes)),
            "by size",
            Unit::BytesPerSecond,
            (&path, even(found.block_bytes, 1)),
        );
        (forecast, Wanted::like(found, 1))
    };
    alone.iter().map(of).collect()
}

impl Wanted {
    fn like(found: &Measured, suite: usize) -> Wanted {
        Wanted {
            suite,
            bytes: found.block_bytes,
            depth: found.depth,
        }
    }
}

/// Makes a LUKS image with qemu-img. That measures the processor first, and fails when it gets too little of it.
pub(super) fn luks_image(arguments: &[&str]) -> Result<()> {
    const TRIES: u32 = 10;
    let mut made = programs::run("qemu-img", arguments);
    for _ in 1..TRIES {
        if made.is_ok() {
            break;
        }
        made = programs::run("qemu-img", arguments);
    }
    made.map(drop).context("could not make a LUKS image")
}

fn serve(image: &str, is_slow: bool) -> Result<NbdServer> {
    let threads = format!("--threads={WORKERS}");
    let mut arguments = vec![threads.as_str()];
    let delay = format!("delay-read={}ms", DELAY_S * 1e3);
    // Behind the cipher it would delay each sector, since that is how the filter deciphers.
    if is_slow {
        arguments.push("--filter=delay");
    }
    arguments.push("--filter=luks");
    arguments.extend(["file", image, "passphrase=rubus"]);
    if is_slow {
        arguments.push(&delay);
    }
    NbdServer::nbdkit(&arguments)
}
