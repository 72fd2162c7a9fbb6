//! A cipher in the path: LUKS, done by a server's filter, before what takes its time.

use anyhow::{Context, Result};
use rubus_advise::{Kind as Pipe, Operation};
use rubus_vocabulary::estimate::Estimate;

use super::Kind;
use super::case::{Case, Unit};
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

const DELAY_S: f64 = 0.002;
const WORKERS: u32 = 16;
const SUITES: [&str; 2] = ["queue-depth", "block-size"];

pub(super) fn cases(rig: &Rig) -> Result<Vec<Case>> {
    let image = rig.directory().join("luks.img");
    let name = image.to_string_lossy().into_owned();
    let arguments = ["create", "-q", "-f", "luks", "--object"];
    let options = [
        "secret,data=rubus,id=key",
        "-o",
        "key-secret=key,iter-time=200",
    ];
    let arguments = [&arguments[..], &options, &[&name, "64M"]].concat();
    // It measures the processor first, and fails when it gets too little of it.
    let made = (0..10).map(|_| programs::run("qemu-img", &arguments));
    let mut failed: Vec<_> = Vec::new();
    for made in made {
        match made {
            Ok(_) => {
                failed.clear();
                break;
            }
            Err(error) => failed.push(error),
        }
    }
    if let Some(error) = failed.pop() {
        return Err(error).context("could not make a LUKS image");
    }
    let plain = serve(&name, false)?;
    let mut alone = Vec::new();
    for suite in SUITES {
        alone.push(rig.sweep(plain.address(), suite, &[])?);
    }
    drop(plain);
    let slow = serve(&name, true)?;
    let mut both = Vec::new();
    for suite in SUITES {
        both.push(rig.sweep(slow.address(), suite, &[])?);
    }
    let disk = fixed(Pipe::Device, "disk", WORKERS, Estimate::exact(DELAY_S));
    let mut cases = Vec::new();
    let best = alone[0]
        .iter()
        .max_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    let mut deep = of_pair(
        Pipe::Cipher,
        "cipher",
        alone[0].iter().filter(|found| found.depth == 1),
        best,
    );
    deep.push(disk.clone());
    for found in &both[0] {
        let operation = Operation {
            bytes: found.block_bytes,
            depth: found.depth,
            bend: bend(),
        };
        let title = format!("4 KiB reads, {} in flight", found.depth);
        let path = (deep.as_slice(), operation);
        cases.push(Case::new(
            Kind::Cipher,
            title,
            "by depth",
            Unit::Iops,
            path,
            found,
        ));
    }
    let by_size: Vec<&Measured> = alone[1].iter().collect();
    let mut one = of_pair(Pipe::Cipher, "cipher", by_size.clone(), by_size);
    one.push(disk);
    for found in &both[1] {
        cases.push(Case::new(
            Kind::Cipher,
            format!("{} reads, one at a time", size(found.block_bytes)),
            "by size",
            Unit::BytesPerSecond,
            (one.as_slice(), even(found.block_bytes, 1)),
            found,
        ));
    }
    Ok(cases)
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
