//! Servers that decipher or decompress what they serve: nothing limits them but the processors, which their client shares.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rubus_advise::{Bend, Cost, Kind as Pipe, Operation, Resource, Stage, Step};
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Unit, Whole};
use super::cipher::{LUKS, SECRET, luks_image};
use super::ledger::Ledger;
use super::network::at as at_depth;
use super::parts::{even, size};
use super::rig::{Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{NbdServer, programs};

pub(super) const ABOUT: &str = "Servers that decipher (LUKS) or decompress (qcow2) each read, and nothing that the lab limits. Alone: the same server with \
     a plain image, by size (one at a time) and by depth (4 KiB); and decoding, which is what a lone read of 64 KiB takes longer than of the plain image. \
     Predicted: all other sizes, and all depths. A compressed cluster of 64 KiB is decompressed whole for each read in it, and those of one read one after \
     the other: that was learnt from reads of several clusters, which are marked. qemu-nbd deciphers in the thread that serves; nbdkit deciphers and \
     qemu-nbd decompresses in others, so that both processors work on several reads.";
pub(super) const NEEDS: &[Need] =
    &[Need::Program("nbdkit", "nbdkit"), Need::Program("qemu-img", "qemu-utils")];

const MIB: usize = 1 << 20;
const IMAGE_MIB: usize = 64;
/// What decoding takes is measured with reads of this size: a cluster of qcow2.
const KNOWN: u64 = 64 << 10;
/// A sector of LUKS.
const SECTOR: u32 = 512;
/// What client and servers share on this machine is at most this many processors, as far as the servers use them.
const PROCESSORS: u32 = 2;

/// How a server decodes.
#[derive(Clone, Copy, Debug)]
struct Decoder {
    title: &'static str,
    kind: Pipe,
    /// Decoded whole, however little of it is read.
    unit_bytes: u32,
    /// Threads that decode different requests at the same time. Units of one request are decoded one after the other: to an answer in
    /// pieces, qemu-nbd asks for the data extent by extent, and a compressed cluster is an extent (`qcow2_get_cluster_offset`).
    threads: u32,
}

const NBDKIT_LUKS: Decoder =
    Decoder { title: "nbdkit, LUKS", kind: Pipe::Cipher, unit_bytes: SECTOR, threads: PROCESSORS };
const QEMU_LUKS: Decoder = Decoder { title: "qemu-nbd, LUKS", threads: 1, ..NBDKIT_LUKS };
const QEMU_ZLIB: Decoder = Decoder {
    title: "qemu-nbd, zlib",
    kind: Pipe::Compression,
    unit_bytes: KNOWN as u32,
    threads: PROCESSORS,
};
const QEMU_ZSTD: Decoder = Decoder { title: "qemu-nbd, zstd", ..QEMU_ZLIB };

/// The images, all with the same bytes.
struct Images {
    plain: PathBuf,
    luks: PathBuf,
    zlib: PathBuf,
    zstd: PathBuf,
}

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let images = Images::new(rig.directory())?;
    let qemu_luks = format!(
        "driver=luks,key-secret=key,file.driver=file,file.filename={}",
        images.luks.display()
    );
    let plain = Sweeps::of(rig, || nbdkit(&[], &images.plain, &[]))?;
    let luks = || nbdkit(&["--filter=luks"], &images.luks, &["passphrase=rubus"]);
    let mut wholes = one(rig, ledger, NBDKIT_LUKS, &plain, luks)?;
    let plain = Sweeps::of(rig, || qemu(&["--format=raw"], &images.plain))?;
    let luks = || {
        let options = ["--read-only", "--object", SECRET, "--image-opts", &qemu_luks];
        NbdServer::qemu_of(&options)
    };
    wholes.extend(one(rig, ledger, QEMU_LUKS, &plain, luks)?);
    for (decoder, image) in [(QEMU_ZLIB, &images.zlib), (QEMU_ZSTD, &images.zstd)] {
        let coded = || qemu(&["--format=qcow2"], image);
        wholes.extend(one(rig, ledger, decoder, &plain, coded)?);
    }
    Ok(wholes)
}

/// All cases of one decoder, before which the same server was measured without it.
fn one(
    rig: &Rig,
    ledger: &Ledger,
    decoder: Decoder,
    plain: &Sweeps,
    coded: impl Fn() -> Result<NbdServer>,
) -> Result<Vec<Whole>> {
    let server = coded()?;
    let unit_s = {
        let known = sizes(rig, &server)?;
        decoder.unit_s(of_size(&plain.sizes, KNOWN)?, of_size(&known, KNOWN)?)?
    };
    drop(server);
    let mut said = Vec::new();
    for alone in &plain.sizes {
        if alone.block_bytes != KNOWN {
            said.push(decoder.of_a_size(alone, unit_s));
        }
    }
    let lone = at_depth(&plain.depths, 1)?;
    for alone in plain.depths.iter().filter(|alone| alone.depth > 1) {
        said.push(decoder.of_a_depth(lone, alone, unit_s));
    }
    ledger.write(&said)?;
    let found = Sweeps::of(rig, coded)?;
    let found = found.sizes.iter().chain(&found.depths);
    let with_names: Vec<_> = found.map(|found| (decoder.name(found), found)).collect();
    let whole = |forecast: &Forecast| {
        let mut found = with_names.iter();
        let found = found.find(|(name, _)| *name == forecast.name);
        let (_, found) = found.with_context(|| format!("{} was not measured", forecast.name))?;
        Ok(forecast.whole(found))
    };
    said.iter().map(whole).collect()
}

/// What one server does by size, one at a time, and by depth with 4 KiB.
struct Sweeps {
    sizes: Vec<Measured>,
    depths: Vec<Measured>,
}

impl Sweeps {
    fn of(rig: &Rig, serve: impl Fn() -> Result<NbdServer>) -> Result<Sweeps> {
        let server = serve()?;
        let depths = rig.sweep_once(server.address(), "queue-depth", &[])?;
        Ok(Sweeps { sizes: sizes(rig, &server)?, depths })
    }
}

fn sizes(rig: &Rig, server: &NbdServer) -> Result<Vec<Measured>> {
    rig.sweep_once(server.address(), "block-size", &[])
}

fn of_size(found: &[Measured], bytes: u64) -> Result<&Measured> {
    let mut found = found.iter();
    found
        .find(|found| found.block_bytes == bytes)
        .with_context(|| format!("{bytes} bytes were not measured"))
}

impl Decoder {
    fn name(&self, found: &Measured) -> String {
        match found.depth {
            1 => format!("{}: {}, one at a time", self.title, size(found.block_bytes)),
            depth => format!("{}: 4 KiB, {depth} in flight", self.title),
        }
    }

    /// Seconds that a thread decodes a unit: what a lone read of [`KNOWN`] bytes takes longer for it.
    fn unit_s(&self, plain: &Measured, coded: &Measured) -> Result<Estimate> {
        let units = KNOWN as f64 / f64::from(self.unit_bytes);
        let longer_s = |coded: f64, plain: f64| (1.0 / coded - 1.0 / plain) / units;
        let (coded, plain) = (coded.iops, plain.iops);
        let value = longer_s(coded.value, plain.value);
        ensure!(value > 0.0, "{}: decoding takes no time", self.title);
        let low = longer_s(coded.high, plain.low).max(0.0);
        Ok(Estimate::new(value, low, longer_s(coded.low, plain.high)))
    }

    /// Reads of a size one at a time: each waits for the server, and then for decoding.
    fn of_a_size(&self, alone: &Measured, unit_s: Estimate) -> Forecast {
        let units = alone.block_bytes.div_ceil(u64::from(self.unit_bytes));
        let decoding_s = unit_s.scaled(units as f64);
        let path = [
            stage(Pipe::Server, Some(Resource::one("server")), seconds(alone.iops)),
            stage(self.kind, Some(Resource::one("decoder")), decoding_s),
        ];
        let forecast = Forecast::new(
            Subject::Decoding,
            Kind::Blind,
            self.name(alone),
            format!("{}, one at a time", size(alone.block_bytes)),
            Unit::BytesPerSecond,
            (&path, even(alone.block_bytes, 1)),
        );
        // That clusters follow one another was chosen by looking at such reads.
        match self.kind {
            Pipe::Compression if units > 1 => forecast.chosen(),
            _ => forecast,
        }
    }

    /// Several reads of 4 KiB at a time. The plain server kept the processors that decode busy as long as it was from one read to the
    /// next; what a lone read takes beyond that is waiting.
    fn of_a_depth(&self, lone: &Measured, alone: &Measured, unit_s: Estimate) -> Forecast {
        let units = alone.block_bytes.div_ceil(u64::from(self.unit_bytes));
        let decoding_s = unit_s.scaled(units as f64);
        let processors = || Some(Resource::many("processors", self.threads));
        let busy_s = seconds(alone.iops).scaled(f64::from(self.threads));
        let left = |seconds: f64| (seconds - busy_s.value).max(0.0);
        let lone_s = seconds(lone.iops);
        let waiting_s = Estimate::new(left(lone_s.value), left(lone_s.low), left(lone_s.high));
        let path = [
            stage(Pipe::Server, processors(), busy_s),
            stage(Pipe::Server, None, waiting_s),
            stage(self.kind, processors(), decoding_s),
        ];
        let operation =
            Operation { bytes: alone.block_bytes, depth: alone.depth, bend: Bend::Stations };
        Forecast::new(
            Subject::Decoding,
            Kind::Blind,
            self.name(alone),
            format!("4 KiB, {} in flight", alone.depth),
            Unit::Iops,
            (&path, operation),
        )
    }
}

fn stage(kind: Pipe, resource: Option<Resource>, seconds: Estimate) -> Step {
    Step::Stage(Stage { kind, resource, cost: Cost::fixed(seconds) })
}

/// Seconds for each operation at this rate per second.
fn seconds(per_second: Estimate) -> Estimate {
    let of = |per_second: f64| 1.0 / per_second;
    Estimate::new(of(per_second.value), of(per_second.high), of(per_second.low))
}

impl Images {
    fn new(directory: &Path) -> Result<Images> {
        let at = |name: &str| directory.join(name);
        let images = Images {
            plain: at("plain.img"),
            luks: at("luks.img"),
            zlib: at("zlib.qcow2"),
            zstd: at("zstd.qcow2"),
        };
        std::fs::write(&images.plain, half_random(IMAGE_MIB * MIB))?;
        let from = images.plain.to_string_lossy();
        let convert = |options: &[&str], to: &Path, make: fn(&[&str]) -> Result<()>| {
            let common = ["convert", "-q", "-f", "raw"];
            make(&[&common[..], options, &[&from, &to.to_string_lossy()]].concat())
        };
        for (method, image) in [("zlib", &images.zlib), ("zstd", &images.zstd)] {
            let method = format!("compression_type={method}");
            let options = ["-c", "-O", "qcow2", "-o", &method];
            convert(&options, image, |arguments| programs::run("qemu-img", arguments).map(drop))?;
        }
        let options = ["--object", SECRET, "-O", "luks", "-o", LUKS];
        convert(&options, &images.luks, luks_image)?;
        Ok(images)
    }
}

/// Bytes of which compression leaves about half: words of random bytes and as many zeros, in turns.
fn half_random(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut image = Vec::with_capacity(bytes);
    while image.len() < bytes {
        image.extend(next().to_le_bytes());
        image.extend([0; 8]);
    }
    image
}

fn nbdkit(filters: &[&str], image: &Path, parameters: &[&str]) -> Result<NbdServer> {
    let image = image.to_string_lossy();
    let arguments = [filters, &["file", &image], parameters].concat();
    NbdServer::nbdkit(&arguments)
}

fn qemu(options: &[&str], image: &Path) -> Result<NbdServer> {
    let image = image.to_string_lossy();
    NbdServer::qemu_of(&[&["--read-only"], options, &["--", &image]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::case::Purpose;

    fn measured(bytes: u64, depth: u32, iops: f64) -> Measured {
        Measured { block_bytes: bytes, depth, ..Measured::of_rate("", Estimate::exact(iops)) }
    }

    /// 10 µs for a read and 10 ns for a byte, and 1 µs for each sector: a lone read of 64 KiB takes 128 µs longer.
    #[test]
    fn what_a_read_takes_longer_is_decoding() {
        let plain_s = 10e-6 + 65536.0 * 10e-9;
        let (plain, coded) = (1.0 / plain_s, 1.0 / (plain_s + 128e-6));
        let unit_s =
            QEMU_LUKS.unit_s(&measured(KNOWN, 1, plain), &measured(KNOWN, 1, coded)).unwrap();
        assert!((unit_s.value - 1e-6).abs() < 1e-12, "{unit_s:?}");
        let alone_s = 10e-6 + 4096.0 * 10e-9;
        let forecast = QEMU_LUKS.of_a_size(&measured(4096, 1, 1.0 / alone_s), unit_s);
        let predicted = 4096.0 / (alone_s + 8e-6);
        assert!((forecast.predicted.value / predicted - 1.0).abs() < 1e-6, "{forecast:?}");
    }

    #[test]
    fn a_cluster_is_decompressed_whole_and_several_one_after_the_other() {
        let unit_s = Estimate::exact(100e-6);
        let of = |bytes: u64| QEMU_ZLIB.of_a_size(&measured(bytes, 1, 1e5), unit_s);
        let per_second = |bytes: u64| of(bytes).predicted.value / bytes as f64;
        let (one, four) = (per_second(4096), per_second(4 * KNOWN));
        assert!((one - 1.0 / 110e-6).abs() < 1.0, "{one}");
        assert!((four - 1.0 / 410e-6).abs() < 1.0, "{four}");
        let purposes = [4096, 4 * KNOWN].map(|bytes| of(bytes).purpose);
        assert_eq!(purposes, [Purpose::HeldOut, Purpose::Chosen]);
    }

    #[test]
    fn two_threads_decode_twice_as_much() {
        let (lone, many) = (measured(4096, 1, 50e3), measured(4096, 64, 100e3));
        let unit_s = Estimate::exact(1e-3);
        let one_thread = Decoder { threads: 1, ..QEMU_ZLIB };
        let of = |decoder: Decoder| decoder.of_a_depth(&lone, &many, unit_s).predicted.value;
        let ratio = of(QEMU_ZLIB) / of(one_thread);
        assert!((1.9..=2.0).contains(&ratio), "{ratio}");
    }
}
