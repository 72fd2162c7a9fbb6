//! Does a number of operations on a device that does nothing, so that their cost can be counted
//! from outside: `engine-cost read|write DEVICE DEPTH OPERATIONS`; prints the processor time per
//! operation in nanoseconds. `engine-cost clock READINGS` reads the clock only.
//! `benches/engine_cost.sh` drives it.

use std::path::Path;

use rubus_measure::calibrate::{drive, read_clock};
use rubus_vocabulary::spec::Direction;

fn main() -> Result<(), String> {
    let usage = "usage: engine-cost read|write DEVICE DEPTH OPERATIONS, or clock READINGS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let ["clock", readings] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        read_clock(readings.parse().map_err(|_| usage)?);
        return Ok(());
    }
    let [direction, device, depth, operations] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let direction = match direction.as_str() {
        "read" => Direction::Read,
        "write" => Direction::Write,
        _ => return Err(usage.into()),
    };
    let depth = depth.parse().map_err(|_| usage)?;
    let operations = operations.parse().map_err(|_| usage)?;
    let cost = drive(Path::new(device), direction, depth, operations)?;
    println!("{:.1}", cost.cpu_ns_per_io());
    Ok(())
}
