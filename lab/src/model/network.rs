//! Network disks: the way there, a server's workers, a link of known width, and the program's own server.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rubus_core::estimate::Estimate;
use rubus_model::{Bend, Kind as Pipe, Operation, Step};

use super::Kind;
use super::case::{Case, Unit};
use super::parts::{fixed, of_pair, rate};
use super::rig::{Measured, Rig};
use crate::devices::NbdServer;
use crate::devices::needs::Need;

pub(super) const ABOUT: &str = "Random reads of 4 KiB of a network disk, 1 to 256 in flight. Alone: a server in memory at depth 1 and at its best; \
     what its filters do is their parameters (every request takes 5 ms; so many workers; a link of so many Mbit/s). Predicted: server, workers and \
     link together. Then `rubus serve`: alone, depths 1 and 64; predicted, the depths between. How the curve goes round the knee is a constant of \
     the model; depth 8 of the first set-up and depth 4 of the last were looked at when it was set.";
pub(super) const NEEDS: &[Need] = &[Need::Program("nbdkit", "nbdkit")];

const DELAY_S: f64 = 0.005;
const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// A server of even service times behind a delay follows the sharp lines nearly.
pub(super) fn bend() -> Bend {
    Bend(Estimate::new(0.1, 0.0, 0.3))
}

/// Two programs that share the processors: a softer curve.
fn bend_of_programs() -> Bend {
    Bend(Estimate::new(0.4, 0.1, 0.8))
}

pub(super) fn cases(rig: &Rig) -> Result<Vec<Case>> {
    let alone = NbdServer::nbdkit(&["memory", "64M"])?;
    let alone = rig.sweep(alone.address(), "queue-depth", &[])?;
    let server = server(&alone)?;
    let set_ups = [(16, None), (4, None), (16, Some(60_u32))];
    // They hardly need a processor, so they are measured at the same time.
    let found: Vec<Result<Vec<Measured>>> = std::thread::scope(|scope| {
        let threads = set_ups.map(|(workers, mbit)| {
            scope.spawn(move || {
                let server = delayed(workers, mbit)?;
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
    for ((workers, mbit), found) in set_ups.into_iter().zip(found) {
        let mut path = server.clone();
        let delay = Estimate::exact(DELAY_S);
        path.push(fixed(Pipe::Server, "workers", workers, delay));
        let mut title = format!("5 ms, {workers} workers");
        if let Some(mbit) = mbit {
            let width = Estimate::exact(f64::from(mbit) * 1e6 / 8.0);
            path.push(rate(Pipe::Network, "link", width));
            title = format!("{title}, {mbit} Mbit/s");
        }
        for found in found? {
            let case = case(&title, &path, bend(), &found);
            cases.push(match (workers, mbit, found.depth) {
                (16, None, 8) => case.chosen(),
                _ => case,
            });
        }
    }
    cases.extend(own_server(rig)?);
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
        "4 KiB reads",
        Unit::Iops,
        (path, operation),
        found,
    )
}

/// A stage from a sweep: what one at a time does, and the most.
pub(super) fn server(alone: &[Measured]) -> Result<Vec<Step>> {
    let one = alone.iter().find(|found| found.depth == 1);
    let one = one.context("depth 1 was not measured")?;
    let best = alone
        .iter()
        .max_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    Ok(of_pair(Pipe::Server, "server", [one], best))
}

fn delayed(workers: u32, mbit: Option<u32>) -> Result<NbdServer> {
    let threads = format!("--threads={workers}");
    let delay = format!("delay-read={}ms", DELAY_S * 1e3);
    let width = mbit.map(|mbit| format!("rate={mbit}M"));
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

fn own_server(rig: &Rig) -> Result<Vec<Case>> {
    let own = OwnServer::new(rig)?;
    let found = rig.fastest(1, || rig.sweep(&own.address, "queue-depth", &[]))?;
    let known = |depth: u32| found.iter().find(|found| found.depth == depth);
    let path = of_pair(Pipe::Server, "server", known(1), known(64));
    let between = found
        .iter()
        .filter(|found| (2..64).contains(&found.depth))
        .map(|found| {
            let case = case("rubus serve", &path, bend_of_programs(), found);
            match found.depth {
                4 => case.chosen(),
                _ => case,
            }
        });
    Ok(between.collect())
}

/// The program's server with an image of its own; ended when it is dropped.
struct OwnServer {
    server: Child,
    address: String,
}

impl OwnServer {
    fn new(rig: &Rig) -> Result<OwnServer> {
        let image = rig.directory().join("disk.img");
        std::fs::write(&image, vec![0x5a; 64 * MIB as usize])?;
        let socket = rig.directory().join("server");
        let mut command = rig.command(None);
        command
            .args(["serve", "--quiet", "--read-only"])
            .arg(&image);
        command.arg("--unix").arg(&socket);
        let server = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start the server")?;
        let address = format!("nbd+unix:///disk?socket={}", socket.display());
        let mut own = OwnServer { server, address };
        let give_up = Instant::now() + Duration::from_secs(20);
        while !socket.exists() {
            if own.server.try_wait()?.is_some() || Instant::now() > give_up {
                bail!("the server did not begin to serve");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(own)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
