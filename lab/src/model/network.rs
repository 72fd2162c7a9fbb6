//! Network disks: the way there, a server's workers, a link of known width, and the program's own server.

use anyhow::{Context, Result};
use rubus_advise::{Bend, Kind as Pipe, Operation, Step};
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::{Forecast, Kind, Purpose, Unit, Whole};
use super::ledger::Ledger;
use super::parts::{beside, best, fixed, longer, of_pair, of_rounds, rate};
use super::rig::{Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{Listening, NbdServer, Serving};

pub(super) const ABOUT: &str = "Random reads of 4 KiB of a network disk, 1 to 256 in flight. Alone: a server in memory at depth 1 and at its best; \
     what a filter that delays makes a lone request take longer; how many workers there are and how wide the link is are parameters (the link is a bucket of \
     tokens: it limits the rate, and a lone request does not wait for it). Predicted: server, delay, workers and link together. How sharply the curve goes round \
     the knee, and that the delay must be measured, was learnt from the first set-up. Then servers \
     without any delay, which share the processors with their client: alone, depths 1 and 64; predicted, the depths between, on the bound where each \
     waits for all others of its round. `rubus serve` was looked at for that, nbdkit and qemu-nbd were not.";
pub(super) const NEEDS: &[Need] =
    &[Need::Program("nbdkit", "nbdkit"), Need::Program("qemu-nbd", "qemu-utils")];

const BLOCK: u64 = 4096;
/// What a sweep over depths measures.
pub(super) const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const MIB: u64 = 1 << 20;

/// A server of even service times behind a delay follows the sharp lines nearly.
pub(super) fn bend() -> Bend {
    Bend::Known(Estimate::new(0.1, 0.0, 0.3))
}

/// Two programs that take turns: what is there is answered together, so each waits for all others of its round.
fn bend_of_rounds() -> Bend {
    Bend::Known(Estimate::new(1.0, 0.7, 1.0))
}

/// nbdkit that takes its time.
#[derive(Clone, Copy)]
struct Slow {
    delay_ms: u32,
    workers: u32,
    mbit: Option<u32>,
}

const SET_UPS: [Slow; 4] = [
    Slow { delay_ms: 5, workers: 16, mbit: None },
    Slow { delay_ms: 3, workers: 6, mbit: None },
    Slow { delay_ms: 5, workers: 12, mbit: Some(40) },
    Slow { delay_ms: 3, workers: 10, mbit: Some(80) },
];
/// Of all set-ups, in milliseconds.
const DELAYS: [u32; 2] = [3, 5];

pub(super) fn wholes(rig: &Rig, ledger: &Ledger) -> Result<Vec<Whole>> {
    let mut wholes = Vec::new();
    let server = NbdServer::nbdkit(&["memory", "64M"])?;
    let alone = sweep(rig, server.address())?;
    let said = rounds("nbdkit", &alone, Purpose::HeldOut)?;
    ledger.write(said.iter().map(|(forecast, _)| forecast))?;
    wholes.extend(measured(&said, &sweep(rig, server.address())?)?);
    drop(server);
    wholes.extend(slow_servers(rig, ledger, &alone)?);
    let server = NbdServer::qemu(64 * MIB, &[])?;
    let said = rounds("qemu-nbd", &sweep(rig, server.address())?, Purpose::HeldOut)?;
    ledger.write(said.iter().map(|(forecast, _)| forecast))?;
    wholes.extend(measured(&said, &sweep(rig, server.address())?)?);
    drop(server);
    let server = own_server(rig)?;
    let alone = sweep(rig, &server.address())?;
    let said = rounds("rubus serve", &alone, Purpose::Chosen)?;
    ledger.write(said.iter().map(|(forecast, _)| forecast))?;
    wholes.extend(measured(&said, &sweep(rig, &server.address())?)?);
    Ok(wholes)
}

fn sweep(rig: &Rig, address: &str) -> Result<Vec<Measured>> {
    rig.sweep(address, "queue-depth", &[])
}

/// What a sweep gave for each of these predictions.
fn measured(said: &[(Forecast, u32)], found: &[Measured]) -> Result<Vec<Whole>> {
    let whole = |(forecast, depth): &(Forecast, u32)| Ok(forecast.whole(at(found, *depth)?));
    said.iter().map(whole).collect()
}

/// What a sweep gave at a depth.
pub(super) fn at(found: &[Measured], depth: u32) -> Result<&Measured> {
    let mut found = found.iter();
    found
        .find(|found| found.depth == depth)
        .with_context(|| format!("depth {depth} was not measured"))
}

/// Set-ups of servers that take their time, from what the same server did without.
fn slow_servers(rig: &Rig, ledger: &Ledger, bare: &[Measured]) -> Result<Vec<Whole>> {
    let server = server_of(bare)?;
    let delays = delays(rig, bare)?;
    let mut said = Vec::new();
    for (number, slow) in SET_UPS.into_iter().enumerate() {
        let mut path = server.clone();
        path.extend(slow.path(&delays)?);
        let of = |depth: u32| {
            let forecast = forecast(slow.kind(depth), &slow.title(), depth, &path, bend());
            // The first was looked at.
            match number {
                0 => (forecast.chosen(), depth),
                _ => (forecast, depth),
            }
        };
        said.push(DEPTHS.map(of));
    }
    ledger.write(said.iter().flatten().map(|(forecast, _)| forecast))?;
    let mut wholes = Vec::new();
    for (said, found) in said.iter().zip(together(rig, &SET_UPS)?) {
        wholes.extend(measured(said, &found)?);
    }
    Ok(wholes)
}

/// What a lone request takes longer before each delay.
fn delays(rig: &Rig, bare: &[Measured]) -> Result<Vec<(u32, Estimate)>> {
    let one_worker = DELAYS.map(|delay_ms| Slow { delay_ms, workers: 1, mbit: None });
    let bare = [at(bare, 1)?.clone()];
    let longer = |(slow, found): (&Slow, Vec<Measured>)| {
        let cost = longer(&[at(&found, 1)?.clone()], &bare);
        Ok((slow.delay_ms, cost.at(BLOCK as f64)))
    };
    let found = together(rig, &one_worker)?;
    one_worker.iter().zip(found).map(longer).collect()
}

/// Sweeps of servers that hardly need a processor, so that they can be measured at the same time.
fn together(rig: &Rig, servers: &[Slow]) -> Result<Vec<Vec<Measured>>> {
    std::thread::scope(|scope| {
        let start = |&slow: &Slow| {
            scope.spawn(move || {
                let server = slow.start()?;
                sweep(rig, server.address())
            })
        };
        let threads: Vec<_> = servers.iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<Measured>>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

fn forecast(kind: Kind, title: &str, depth: u32, path: &[Step], bend: Bend) -> Forecast {
    let operation = Operation { bytes: BLOCK, depth, bend };
    Forecast::new(
        Subject::Network,
        kind,
        format!("{title}: {depth} in flight"),
        // A server with one in flight is no alternative to another one with 64.
        format!("4 KiB reads, {depth} in flight"),
        Unit::Iops,
        (path, operation),
    )
}

/// A stage from a sweep: what one at a time does, and the most.
fn server_of(alone: &[Measured]) -> Result<Vec<Step>> {
    let one = at(alone, 1)?;
    Ok(of_pair(Pipe::Server, "server", [one], best(alone)))
}

impl Slow {
    fn start(self) -> Result<NbdServer> {
        let threads = format!("--threads={}", self.workers);
        let delay = format!("delay-read={}ms", self.delay_ms);
        // In bits: nbdkit's M is 2^20.
        let width = self.mbit.map(|mbit| format!("rate={}", mbit * 1_000_000));
        let mut arguments = vec![threads.as_str(), "--filter=delay"];
        if width.is_some() {
            arguments.push("--filter=rate");
        }
        arguments.extend(["memory", "64M", &delay]);
        if let Some(width) = &width {
            arguments.extend([width.as_str(), "burstiness=0.05"]);
        }
        NbdServer::nbdkit(&arguments)
    }

    fn path(self, delays: &[(u32, Estimate)]) -> Result<Vec<Step>> {
        let delay = delays.iter().find(|(ms, _)| *ms == self.delay_ms);
        let (_, delay) = delay.context("a delay that was not measured")?;
        let workers = fixed(Pipe::Server, "workers", self.workers, *delay);
        let link = self.mbit.map(|mbit| {
            let width = Estimate::exact(f64::from(mbit) * 1e6 / 8.0);
            beside(rate(Pipe::Network, "link", width))
        });
        Ok(std::iter::once(workers).chain(link).collect())
    }

    /// A lone request before the delay alone is what the delay was taken from.
    fn kind(self, depth: u32) -> Kind {
        match (depth, self.mbit) {
            (1, None) => Kind::Identity,
            _ => Kind::Composition,
        }
    }

    fn title(self) -> String {
        let delayed = format!("{} ms, {} workers", self.delay_ms, self.workers);
        match self.mbit {
            Some(mbit) => format!("{delayed}, {mbit} Mbit/s"),
            None => delayed,
        }
    }
}

/// The depths between 1 and 64 of a server that shares the processors with its client. Nothing limits it but itself.
fn rounds(name: &str, alone: &[Measured], purpose: Purpose) -> Result<Vec<(Forecast, u32)>> {
    let known = |depth: u32| at(alone, depth).with_context(|| name.to_string());
    let path = of_rounds("server", known(1)?, known(64)?);
    let of = |depth: u32| {
        let forecast = forecast(Kind::Blind, name, depth, &path, bend_of_rounds());
        match purpose {
            Purpose::HeldOut => (forecast, depth),
            Purpose::Chosen => (forecast.chosen(), depth),
        }
    };
    let between = DEPTHS.into_iter().filter(|depth| (2..64).contains(depth));
    Ok(between.map(of).collect())
}

/// The program's server with an image of its own.
fn own_server(rig: &Rig) -> Result<Serving> {
    let image = rig.directory().join("disk.img");
    std::fs::write(&image, vec![0x5a; 64 * MIB as usize])?;
    let socket = rig.directory().join("server");
    let mut command = rig.command(None);
    command.args(["serve", "--quiet", "--read-only"]).arg(&image);
    command.arg("--unix").arg(&socket);
    Serving::start(command, Listening::Socket(socket))
}
