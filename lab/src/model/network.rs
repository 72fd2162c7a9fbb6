//! Network disks: the way there, a server's workers, a link of known width, and the program's own server.

use anyhow::{Context, Result};
use rubus_advise::{Bend, Kind as Pipe, Operation, Step};
use rubus_vocabulary::estimate::Estimate;

use super::Kind;
use super::case::{Case, Unit};
use super::parts::{fixed, of_pair, of_rounds, rate};
use super::rig::{Measured, Rig};
use crate::devices::needs::Need;
use crate::devices::{Listening, NbdServer, Serving};

pub(super) const ABOUT: &str = "Random reads of 4 KiB of a network disk, 1 to 256 in flight. Alone: a server in memory at depth 1 and at its best; \
     what its filters do is their parameters (every request takes so many milliseconds; so many workers; a link of so many Mbit/s). Predicted: server, \
     workers and link together. How sharply the curve goes round the knee was set by looking at depth 8 of the first set-up. Then servers \
     without any delay, which share the processors with their client: alone, depths 1 and 64; predicted, the depths between, on the bound where each \
     waits for all others of its round. `rubus serve` was looked at for that, nbdkit and qemu-nbd were not.";
pub(super) const NEEDS: &[Need] = &[
    Need::Program("nbdkit", "nbdkit"),
    Need::Program("qemu-nbd", "qemu-utils"),
];

const BLOCK: u64 = 4096;
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
    Slow {
        delay_ms: 5,
        workers: 16,
        mbit: None,
    },
    Slow {
        delay_ms: 5,
        workers: 4,
        mbit: None,
    },
    Slow {
        delay_ms: 5,
        workers: 16,
        mbit: Some(60),
    },
    Slow {
        delay_ms: 2,
        workers: 8,
        mbit: Some(100),
    },
];

pub(super) fn cases(rig: &Rig) -> Result<Vec<Case>> {
    let server = NbdServer::nbdkit(&["memory", "64M"])?;
    let alone = rig.sweep(server.address(), "queue-depth", &[])?;
    drop(server);
    let mut cases = slow_servers(rig, &server_of(&alone)?)?;
    cases.extend(rounds("nbdkit", &alone)?);
    let server = NbdServer::qemu(64 * MIB, &[])?;
    let alone = rig.sweep(server.address(), "queue-depth", &[])?;
    drop(server);
    cases.extend(rounds("qemu-nbd", &alone)?);
    let server = own_server(rig)?;
    let alone = rig.sweep(&server.address(), "queue-depth", &[])?;
    let own = rounds("rubus serve", &alone)?;
    cases.extend(own.into_iter().map(Case::chosen));
    Ok(cases)
}

fn slow_servers(rig: &Rig, server: &[Step]) -> Result<Vec<Case>> {
    // They hardly need a processor, so they are measured at the same time.
    let found: Vec<Result<Vec<Measured>>> = std::thread::scope(|scope| {
        let threads = SET_UPS.map(|slow| {
            scope.spawn(move || {
                let server = slow.start()?;
                rig.sweep(server.address(), "queue-depth", &[])
            })
        });
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<Measured>>>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let mut cases = Vec::new();
    for (number, (slow, found)) in SET_UPS.into_iter().zip(found).enumerate() {
        let mut path = server.to_vec();
        path.extend(slow.path());
        for found in found? {
            let case = case(&slow.title(), &path, bend(), &found);
            cases.push(match (number, found.depth) {
                (0, 8) => case.chosen(),
                _ => case,
            });
        }
    }
    Ok(cases)
}

fn case(title: &str, path: &[Step], bend: Bend, found: &Measured) -> Case {
    let operation = Operation {
        bytes: BLOCK,
        depth: found.depth,
        bend,
    };
    Case::new(
        Kind::Network,
        format!("{title}: {} in flight", found.depth),
        // A server with one in flight is no alternative to another one with 64.
        format!("4 KiB reads, {} in flight", found.depth),
        Unit::Iops,
        (path, operation),
        found,
    )
}

/// A stage from a sweep: what one at a time does, and the most.
fn server_of(alone: &[Measured]) -> Result<Vec<Step>> {
    let one = alone.iter().find(|found| found.depth == 1);
    let one = one.context("depth 1 was not measured")?;
    let best = alone
        .iter()
        .max_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    Ok(of_pair(Pipe::Server, "server", [one], best))
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

    fn path(self) -> Vec<Step> {
        let delay = Estimate::exact(f64::from(self.delay_ms) / 1e3);
        let workers = fixed(Pipe::Server, "workers", self.workers, delay);
        let link = self.mbit.map(|mbit| {
            let width = Estimate::exact(f64::from(mbit) * 1e6 / 8.0);
            rate(Pipe::Network, "link", width)
        });
        std::iter::once(workers).chain(link).collect()
    }

    fn title(self) -> String {
        let delayed = format!("{} ms, {} workers", self.delay_ms, self.workers);
        match self.mbit {
            Some(mbit) => format!("{delayed}, {mbit} Mbit/s"),
            None => delayed,
        }
    }
}

/// The depths between 1 and 64 of a server that shares the processors with its client.
fn rounds(name: &str, found: &[Measured]) -> Result<Vec<Case>> {
    let known = |depth: u32| {
        let mut found = found.iter();
        found
            .find(|found| found.depth == depth)
            .with_context(|| format!("{name}: depth {depth} was not measured"))
    };
    let path = of_rounds("server", known(1)?, known(64)?);
    let between = found.iter().filter(|found| (2..64).contains(&found.depth));
    Ok(between
        .map(|found| case(name, &path, bend_of_rounds(), found))
        .collect())
}

/// The program's server with an image of its own.
fn own_server(rig: &Rig) -> Result<Serving> {
    let image = rig.directory().join("disk.img");
    std::fs::write(&image, vec![0x5a; 64 * MIB as usize])?;
    let socket = rig.directory().join("server");
    let mut command = rig.command(None);
    command
        .args(["serve", "--quiet", "--read-only"])
        .arg(&image);
    command.arg("--unix").arg(&socket);
    Serving::start(command, Listening::Socket(socket))
}
