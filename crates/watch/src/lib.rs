//! Watching a machine: what its counters say at one moment, and what happened between two moments.
//!
//! A [`Sample`] is what was read, as plain counters; a [`Look`] is what two samples say together: rates, queues,
//! waits, shares of what a pipe can carry. The parsers here take the kernel's bytes and copy nothing but names.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod cli;
mod counters;
mod diskstats;
mod groups;
pub mod health;
mod ledger;
mod let_through;
pub mod live;
mod look;
mod memory;
mod net_dev;
pub mod next;
mod numbers;
mod pipes;
pub mod probe;
mod programs;
mod rates;
mod recording;
mod sample;
#[cfg(test)]
mod tests;
pub mod text;
mod unit;
pub mod wear;
pub mod writers;

pub use counters::advance;
pub use diskstats::{DiskCounters, parse_diskstats};
pub use groups::UnitDisk;
pub use ledger::{Ledger, Moved, busiest};
pub use let_through::LetThrough;
pub use look::{Look, PressureShares, SwapRates, ZswapLook};
pub use memory::{
    Events, Memory, Pressure, Stall, Zram, parse_meminfo, parse_mm_stat, parse_pressure,
    parse_vmstat,
};
pub use net_dev::{LinkCounters, parse_net_dev};
pub use numbers::number;
pub use pipes::{Basis, Pipe, PipeUse, measured_pipe};
pub use programs::{
    ProgramCounters, ProgramIo, Programs, Traffic, Written, parse_parent, parse_process_io,
};
pub use rates::{DiskLook, DiskRates, LinkRates};
pub use recording::{CutOff, FORMAT, Header, header_line, parse_header, parse_sample, sample_line};
pub use sample::{Attached, Clock, Heat, Nbd, NbdClient, NbdServer, Sample, Zone, Zswap};
pub use unit::parse_unit;
