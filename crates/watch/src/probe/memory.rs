//! Memory, its pressure, swap traffic, zswap and zram.

use std::path::Path;

use crate::{
    Events, Memory, Pressure, Stall, Zram, Zswap, number, parse_meminfo, parse_mm_stat,
    parse_pressure, parse_vmstat,
};
use rubus_host::Files;
use rubus_host::files::polled_file::PolledFile;
use rubus_vocabulary::machine::Machine;

use super::keep;

const ZSWAP: &str = "/sys/kernel/debug/zswap";

pub(super) struct MemoryFiles {
    meminfo: Option<PolledFile>,
    vmstat: Option<PolledFile>,
    cpu: Option<PolledFile>,
    memory: Option<PolledFile>,
    io: Option<PolledFile>,
    zrams: Vec<(String, PolledFile)>,
    zswap: Vec<(Counter, PolledFile)>,
    last_zswap: Option<Zswap>,
}

/// Which of zswap's counters a file is.
#[derive(Clone, Copy)]
enum Counter {
    Pool,
    Stored,
    WrittenBack,
    Full,
    Refused,
}

impl Counter {
    fn by_name(name: &str) -> Option<Counter> {
        Some(match name {
            "pool_total_size" => Counter::Pool,
            "stored_pages" => Counter::Stored,
            "written_back_pages" => Counter::WrittenBack,
            "pool_limit_hit" => Counter::Full,
            _ if name.starts_with("reject_") => Counter::Refused,
            _ => return None,
        })
    }
}

impl MemoryFiles {
    pub(super) fn new(files: &dyn Files, machine: &Machine) -> MemoryFiles {
        let names = files.list(Path::new(ZSWAP)).unwrap_or_default();
        let zswap = names.iter().filter_map(|name| {
            let counter = Counter::by_name(name)?;
            Some((counter, keep(&format!("{ZSWAP}/{name}"))?))
        });
        let zrams = machine.swap.zram.iter().filter_map(|zram| {
            let file = keep(&format!("/sys/block/{}/mm_stat", zram.name))?;
            Some((zram.name.clone(), file))
        });
        MemoryFiles {
            meminfo: keep("/proc/meminfo"),
            vmstat: keep("/proc/vmstat"),
            cpu: keep("/proc/pressure/cpu"),
            memory: keep("/proc/pressure/memory"),
            io: keep("/proc/pressure/io"),
            zrams: zrams.collect(),
            zswap: zswap.collect(),
            last_zswap: None,
        }
    }

    pub(super) fn memory(&self, buffer: &mut Vec<u8>) -> Option<Memory> {
        parse_meminfo(self.meminfo.as_ref()?.read(buffer).ok()?)
    }

    pub(super) fn events(&self, buffer: &mut Vec<u8>) -> Option<Events> {
        parse_vmstat(self.vmstat.as_ref()?.read(buffer).ok()?)
    }

    pub(super) fn pressure(&self, buffer: &mut Vec<u8>) -> Pressure {
        let mut stall = |file: &Option<PolledFile>| -> Option<Stall> {
            parse_pressure(file.as_ref()?.read(buffer).ok()?)
        };
        Pressure { cpu: stall(&self.cpu), memory: stall(&self.memory), io: stall(&self.io) }
    }

    pub(super) fn zrams(&self, buffer: &mut Vec<u8>) -> Vec<Zram> {
        let each = self.zrams.iter().filter_map(|(name, file)| {
            let zram = parse_mm_stat(file.read(buffer).ok()?)?;
            Some(Zram { name: name.clone(), ..zram })
        });
        each.filter(|zram| zram.stored_bytes > 0).collect()
    }

    /// Reads the counters if they are due, or returns the last ones.
    pub(super) fn zswap(&mut self, buffer: &mut Vec<u8>, is_due: bool) -> Option<Zswap> {
        if is_due && !self.zswap.is_empty() {
            let mut seen = Zswap::default();
            for (counter, file) in &self.zswap {
                let value = file.read(buffer).ok().and_then(number).unwrap_or(0);
                match counter {
                    Counter::Pool => seen.pool_bytes = value,
                    Counter::Stored => seen.stored_pages = value,
                    Counter::WrittenBack => seen.written_back_pages = value,
                    Counter::Full => seen.pool_full = value,
                    Counter::Refused => {
                        seen.refused_pages = seen.refused_pages.saturating_add(value);
                    }
                }
            }
            self.last_zswap = Some(seen);
        }
        self.last_zswap
    }
}
