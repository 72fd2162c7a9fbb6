//! Bandwidth on one core and on all, and the time from load to load, as far as there is memory for it.

use std::sync::atomic::AtomicBool;

use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::{LeftOut, Memory, Part};
use rubus_vocabulary::units::bytes_iec;

use crate::run::{bandwidth, chase};

/// What a thread goes through in order: larger than the caches of all boards that are known here, where there is so much.
const BUFFER: u64 = 64 << 20;
/// The largest that is walked through load after load.
const WALK: u64 = 128 << 20;
/// No part takes more than this share of what programs can have.
const SHARE: u64 = 4;

/// Reads, writes and copies in order.
pub fn in_order(memory: &mut Memory, machine: &Machine, cancel: &AtomicBool) {
    let cores = memory.cores;
    let threads: &[(u32, bool)] = match cores {
        1 => &[(1, false)],
        _ => &[(1, false), (cores, true)],
    };
    for &(threads, all_cores) in threads {
        let each = at_most(machine, BUFFER * u64::from(threads)) / u64::from(threads);
        match bandwidth(threads, all_cores, each.max(1 << 20), cancel) {
            Ok(rows) => memory.bandwidth.extend(rows),
            Err(error) => memory.left_out.push(LeftOut {
                part: Part::Bandwidth,
                what: format!("cannot allocate {threads} times {}: {error}", bytes_iec(each)),
            }),
        }
    }
}

/// Walks through memory load after load.
pub fn load_to_load(memory: &mut Memory, machine: &Machine, seed: u64, cancel: &AtomicBool) {
    let most = at_most(machine, WALK);
    match chase(most, seed, cancel) {
        Ok(points) => memory.chase = points,
        Err(error) => memory.left_out.push(LeftOut {
            part: Part::Latency,
            what: format!("cannot allocate {}: {error}", bytes_iec(most)),
        }),
    }
}

/// At most `bytes` bytes, and no more than fits without making the machine swap.
fn at_most(machine: &Machine, bytes: u64) -> u64 {
    let available = machine.memory.available_bytes.get().unwrap_or(bytes * SHARE);
    bytes.min(available / SHARE).max(1 << 20)
}
