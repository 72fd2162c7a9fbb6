//! What does not change while a machine is watched: what its disks are, and what they can carry.

use std::path::Path;

use rubus_runs::store::History;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::units::bytes_si;

use crate::{FORMAT, Header, Pipe, measured_pipe};

/// Maximum number of runs in the history to search for what disks were measured to carry.
const RUNS: u32 = 500;

/// From the survey and the history, where there is one; the second is a word about a history that cannot be read.
pub fn context(
    machine: &Machine,
    history: Option<&Path>,
    interval_s: f64,
) -> (Header, Option<String>) {
    let (measured, trouble) = measured(machine, history);
    let mut pipes = measured;
    pipes.extend(Pipe::buses(machine));
    let header = Header {
        rubus_watch: FORMAT,
        rubus_version: env!("CARGO_PKG_VERSION").to_string(),
        started: machine.read_at.clone(),
        interval_seconds: interval_s,
        machine: name(machine),
        page_bytes: machine.system.page_bytes.get().unwrap_or(4096),
        disks: machine
            .block_devices
            .iter()
            .filter(|device| device.parent.is_none())
            .map(|device| {
                let size = device.size_bytes.get().map(bytes_si);
                let model = device.model.text().map(|model| model.trim().to_string());
                let file = device.backing_file.clone();
                let words: Vec<String> = [model.or(file), size].into_iter().flatten().collect();
                (device.name.clone(), words.join(", "))
            })
            .collect(),
        pipes,
        wear: Vec::new(),
        health: Vec::new(),
    };
    (header, trouble)
}

fn name(machine: &Machine) -> String {
    let board = machine.board.model.text().or(machine.cpu.model.text());
    let kernel = machine.system.kernel_release.text();
    let words = [board.map(str::to_string), kernel.map(|release| format!("Linux {release}"))];
    let words: Vec<String> = words.into_iter().flatten().collect();
    words.join(", ")
}

fn measured(machine: &Machine, history: Option<&Path>) -> (Vec<Pipe>, Option<String>) {
    let Some(path) = history else {
        return (Vec::new(), None);
    };
    let runs = History::open(path).and_then(|history| history.list(RUNS, 0));
    match runs {
        Ok(runs) => {
            let disks = machine.block_devices.iter();
            let pipes = disks.filter_map(|disk| measured_pipe(machine, &disk.name, &runs));
            (pipes.collect(), None)
        }
        Err(error) => (Vec::new(), Some(format!("without what was measured: {error}"))),
    }
}
