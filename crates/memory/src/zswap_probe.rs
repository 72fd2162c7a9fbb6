//! What zswap did since the start.

#![deny(clippy::disallowed_methods)]

use crate::zswap::Reading;
use rubus_host::Files;
use rubus_vocabulary::machine::Machine;

use rubus_machine::probe::memory::sum_of_lines;
use rubus_machine::probe::read;

const VMSTAT: &str = "/proc/vmstat";
const MEMINFO: &str = "/proc/meminfo";

/// Reads what the survey of the machine does not have.
pub fn zswap(files: &dyn Files, machine: &Machine) -> Reading {
    let meminfo = read::text(files, MEMINFO);
    let vmstat = read::text(files, VMSTAT);
    let event = |name: &str| {
        vmstat.clone().and_then(|text| {
            let mut lines = text.lines();
            let number = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let number = number.ok_or_else(|| format!("it has no line '{name}'"))?;
            read::parse_number::<u64>(number)
        })
    };
    Reading {
        zswap: machine.swap.zswap.clone(),
        areas: machine.swap.areas.clone(),
        page_bytes: machine.system.page_bytes.clone(),
        memory_bytes: machine.memory.total_bytes.clone(),
        pool_bytes: sum_of_lines(&meminfo, &["Zswap"]),
        stored_bytes: sum_of_lines(&meminfo, &["Zswapped"]),
        stored_pages: event("zswpout"),
        loaded_pages: event("zswpin"),
        written_back_pages: event("zswpwb"),
        read_pages: event("pswpin"),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::pi3_with_usb_ssd;
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn the_kernel_s_lines_are_told_apart() {
        let files = FakeFiles::new()
            .file(
                MEMINFO,
                "MemTotal: 944264 kB\nZswap:           1024 kB\nZswapped:         4096 kB\n",
            )
            .file(VMSTAT, "pswpin 7\npswpout 9\nzswpin 40\nzswpout 50\nzswpwb 3\n");
        let reading = zswap(&files, &pi3_with_usb_ssd());
        assert_eq!(reading.pool_bytes.get(), Some(1 << 20));
        assert_eq!(reading.stored_bytes.get(), Some(4 << 20));
        assert_eq!(reading.loaded_pages.get(), Some(40));
        assert_eq!(reading.stored_pages.get(), Some(50));
        assert_eq!(reading.written_back_pages.get(), Some(3));
        assert_eq!(reading.read_pages.get(), Some(7));
        let none = zswap(&FakeFiles::new(), &pi3_with_usb_ssd());
        assert!(none.stored_pages.get().is_none());
    }
}
