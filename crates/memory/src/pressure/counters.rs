//! What the kernel counts while memory is short, read in a moment.

use std::path::Path;

use rubus_host::files::own_files;
use rubus_machine::parse::meminfo;
use rubus_vocabulary::memory::Counters;

const VMSTAT: &str = "/proc/vmstat";
const PRESSURE: &str = "/proc/pressure/memory";
const ZSWAP: &str = "/sys/kernel/debug/zswap";

/// Everything that is counted.
pub fn read() -> Counters {
    let vmstat = own_files::text(Path::new(VMSTAT)).unwrap_or_default();
    let event = |name: &str| event(&vmstat, name);
    let pressure = own_files::text(Path::new(PRESSURE)).unwrap_or_default();
    Counters {
        swapped_in: event("pswpin"),
        swapped_out: event("pswpout"),
        zswap_in: event("zswpin"),
        zswap_out: event("zswpout"),
        zswap_written_back: event("zswpwb").or_else(|| zswap_counter("written_back_pages")),
        zswap_refused: zswap_refused(),
        waited_some_us: waited_us(&pressure, "some "),
        waited_full_us: waited_us(&pressure, "full "),
    }
}

/// Microseconds of one line of PSI.
fn waited_us(pressure: &str, kind: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with(kind))?;
    let mut words = line.split_whitespace();
    words.find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

/// Microseconds in which every program that had something to do waited for memory.
pub fn waited_full_us() -> Option<u64> {
    waited_us(&own_files::text(Path::new(PRESSURE)).ok()?, "full ")
}

/// How often the kernel ended a program for want of memory (since Linux 4.13).
pub fn ended_for_want() -> Option<u64> {
    event(&own_files::text(Path::new(VMSTAT)).ok()?, "oom_kill")
}

/// One count of `vmstat`.
fn event(vmstat: &str, name: &str) -> Option<u64> {
    let mut lines = vmstat.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn zswap_counter(name: &str) -> Option<u64> {
    let text = own_files::text(&Path::new(ZSWAP).join(name)).ok()?;
    text.trim().parse().ok()
}

/// All reasons together; which there are differs between kernels. Without root nothing is told.
fn zswap_refused() -> Option<u64> {
    let entries = own_files::list(Path::new(ZSWAP)).ok()?;
    let names = entries.iter().filter_map(|path| path.file_name()?.to_str());
    let refusals = names.filter(|name| name.starts_with("reject_") || *name == "pool_limit_hit");
    Some(refusals.filter_map(zswap_counter).sum())
}

/// Memory that zswap's pool takes, and pages in it.
pub fn zswap_pool() -> Option<(u64, u64)> {
    let text = own_files::text(Path::new("/proc/meminfo")).ok()?;
    match (meminfo::size(&text, "Zswap"), meminfo::size(&text, "Zswapped")) {
        (Some(pool), Some(stored)) => Some((pool, stored)),
        // Before Linux 5.19 only root is told.
        _ => {
            let page = rustix::param::page_size() as u64;
            Some((zswap_counter("pool_total_size")?, zswap_counter("stored_pages")? * page))
        }
    }
}

/// Memory that a zram device takes, and bytes of the pages in it (`mm_stat`, columns 3 and 1).
pub fn zram_pool(name: &str) -> Option<(u64, u64)> {
    let text = own_files::text(&Path::new("/sys/block").join(name).join("mm_stat")).ok()?;
    let column = |number: usize| text.split_whitespace().nth(number)?.parse().ok();
    Some((column(2)?, column(0)?))
}

/// What programs can have without swapping, and free swap, in bytes.
pub fn available() -> Option<(u64, u64)> {
    let text = own_files::text(Path::new("/proc/meminfo")).ok()?;
    Some((meminfo::size(&text, "MemAvailable")?, meminfo::size(&text, "SwapFree")?))
}
