//! A cipher in the path: LUKS, done by a server's filter, before what takes its time.

use anyhow::{Context, Result};
use rubus_advise::{Cost, Kind as Pipe, Operation, Resource, Stage, Step};

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::ledger::Ledger;
use super::network::{at, bend};
use super::parts::{best, by_size, even, longer, size};
use super::rig::{Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{NbdServer, programs};

pub(super) const ABOUT: &str = "A LUKS image (AES-256-XTS) behind a server that deciphers it, before a disk that takes 3 ms for each of 12 requests at a time. \
     Alone, by depth (4 KiB) and by size (one at a time): the server with a plain image; with the LUKS image; and with a plain image before the disk. Predicted: \
     both together, in which a worker of the server is held by a request from its coming to its answer.";
pub(super) const NEEDS: &[Need] =
    &[Need::Program("nbdkit", "nbdkit"), Need::Program("qemu-img", "qemu-utils")];

/// The key of the images, as QEMU's programs are told.
pub(super) const SECRET: &str = "secret,data=rubus,id=key";
/// How they are made with it.
pub(super) const LUKS: &str = "key-secret=key,iter-time=200";
const DELAY_MS: u32 = 3;
const WORKERS: u32 = 12;
/// What a request holds from its coming to its answer.
const HELD: &str = "workers";
const SUITES: [&str; 2] = ["queue-depth", "block-size"];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let images = Images::new(rig)?;
    let sweeps = |is_luks: bool, is_slow: bool| -> Result<Sweeps> {
        let server = images.serve(is_luks, is_slow)?;
        let sweep = |suite: &str| rig.sweep(server.address(), suite, &[]);
        let [by_depth, by_size] = SUITES.map(sweep);
        Ok(Sweeps([by_depth?, by_size?]))
    };
    let alone = Alone {
        bare: sweeps(false, false)?,
        deciphered: sweeps(true, false)?,
        slow: sweeps(false, true)?,
    };
    let mut said = alone.depths()?;
    said.extend(alone.sizes());
    ledger.write(said.iter().map(|(forecast, _)| forecast))?;
    let found = sweeps(true, true)?;
    let whole = |(forecast, wanted): &(Forecast, Wanted)| {
        let mut found = found.0[wanted.suite].iter();
        let is_it = |one: &&Measured| (one.block_bytes, one.depth) == (wanted.bytes, wanted.depth);
        let one = found.find(is_it);
        Ok(forecast.whole(one.with_context(|| format!("{} was not measured", forecast.name))?))
    };
    said.iter().map(whole).collect()
}

/// By depth and by size, as [`SUITES`].
struct Sweeps([Vec<Measured>; 2]);

/// What each part gives without the others.
struct Alone {
    bare: Sweeps,
    deciphered: Sweeps,
    slow: Sweeps,
}

/// What measures a case: which of the sweeps, and where in it.
struct Wanted {
    suite: usize,
    bytes: u64,
    depth: u32,
}

impl Alone {
    fn depths(&self) -> Result<Vec<(Forecast, Wanted)>> {
        let one = |sweeps: &Sweeps| Ok::<_, anyhow::Error>([at(&sweeps.0[0], 1)?.clone()]);
        let slow = &self.slow.0[0];
        let workers = Resource::many(HELD, WORKERS);
        let lone: Vec<_> = by_size(&one(&self.slow)?);
        let best = best(slow).map(std::slice::from_ref).unwrap_or_default();
        let mut path = Stage::of_pair(Pipe::Device, workers, &lone, &by_size(best));
        path.push(deciphering(longer(&one(&self.deciphered)?, &one(&self.bare)?)));
        let of = |found: &Measured| {
            let operation =
                Operation { bytes: found.block_bytes, depth: found.depth, bend: bend() };
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
        Ok(slow.iter().map(of).collect())
    }

    fn sizes(&self) -> Vec<(Forecast, Wanted)> {
        let [bare, deciphered, slow] =
            [&self.bare, &self.deciphered, &self.slow].map(|sweeps| &sweeps.0[1]);
        let path = [
            Step::Stage(Stage {
                kind: Pipe::Device,
                resource: Some(Resource::many(HELD, WORKERS)),
                cost: Cost::measured(&by_size(slow)),
            }),
            deciphering(longer(deciphered, bare)),
        ];
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
        slow.iter().map(of).collect()
    }
}

fn deciphering(cost: Cost) -> Step {
    Step::Stage(Stage { kind: Pipe::Cipher, resource: Some(Resource::many(HELD, WORKERS)), cost })
}

impl Wanted {
    fn like(found: &Measured, suite: usize) -> Wanted {
        Wanted { suite, bytes: found.block_bytes, depth: found.depth }
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

/// Two images of the same size.
struct Images {
    plain: String,
    luks: String,
}

impl Images {
    fn new(rig: &Rig) -> Result<Images> {
        let at = |name: &str| rig.directory().join(name).to_string_lossy().into_owned();
        let (plain, luks) = (at("plain.img"), at("luks.img"));
        let options = ["-f", "luks", "--object", SECRET, "-o", LUKS];
        luks_image(&[&["create", "-q"], &options[..], &[&luks, "64M"]].concat())?;
        programs::run("qemu-img", &["create", "-q", "-f", "raw", &plain, "64M"])?;
        Ok(Images { plain, luks })
    }

    fn serve(&self, is_luks: bool, is_slow: bool) -> Result<NbdServer> {
        let threads = format!("--threads={WORKERS}");
        let delay = format!("delay-read={DELAY_MS}ms");
        let mut arguments = vec![threads.as_str()];
        // Behind the cipher it would delay each sector, since that is how the filter deciphers.
        if is_slow {
            arguments.push("--filter=delay");
        }
        if is_luks {
            arguments.extend(["--filter=luks", "file", &self.luks, "passphrase=rubus"]);
        } else {
            arguments.extend(["file", &self.plain])
        }
        if is_slow {
            arguments.push(&delay);
        }
        NbdServer::nbdkit(&arguments)
    }
}
