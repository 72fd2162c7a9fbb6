//! Memory and its pressure: `/proc/meminfo` and `/proc/pressure`.

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Memory, Pressure};

use crate::parse::meminfo;
use crate::probe::read;

const MEMINFO: &str = "/proc/meminfo";

pub(crate) fn memory(files: &dyn Files) -> Memory {
    let meminfo = read::text(files, MEMINFO);
    let sum = |names: &[&str]| sum_of_lines(&meminfo, names);
    Memory {
        total_bytes: sum(&["MemTotal"]),
        available_bytes: sum(&["MemAvailable"]),
        cached_bytes: sum(&["Cached", "Buffers"]),
        dirty_bytes: sum(&["Dirty", "Writeback"]),
        pressure: ["cpu", "io", "memory"]
            .iter()
            .map(|resource| pressure(files, resource))
            .collect(),
    }
}

/// The sum of some lines in bytes.
pub fn sum_of_lines(meminfo: &Fact<String>, names: &[&str]) -> Fact<u64> {
    meminfo.clone().and_then(|text| {
        let mut sum: u64 = 0;
        for name in names {
            let bytes = meminfo::size(&text, name);
            sum = sum.saturating_add(bytes.ok_or_else(|| format!("it has no line '{name}'"))?);
        }
        Ok(sum)
    })
}

fn pressure(files: &dyn Files, resource: &str) -> Pressure {
    let path = format!("/proc/pressure/{resource}");
    let text = match read::text(files, &path) {
        Fact::Unknown { unknown, source } => {
            let hint = "the kernel has no pressure information, or needs psi=1 on its command line";
            Fact::unknown(format!("{unknown}; {hint}"), source)
        }
        known => known,
    };
    Pressure {
        resource: resource.to_string(),
        some_avg10: average(&text, "some", "avg10"),
        some_avg300: average(&text, "some", "avg300"),
        full_avg10: average(&text, "full", "avg10"),
    }
}

/// One number of a line such as `some avg10=0.12 avg60=0.10 avg300=0.02 total=12345`.
fn average(text: &Fact<String>, line: &str, name: &str) -> Fact<f64> {
    text.clone().and_then(|text| {
        text.lines()
            .find_map(|candidate| candidate.strip_prefix(line))
            .and_then(|rest| {
                rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            })
            .ok_or_else(|| format!("it has no '{name}' in a line '{line}'"))
            .and_then(read::parse_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn sizes_are_in_bytes_and_add_up() {
        let files = FakeFiles::new().file(
            MEMINFO,
            "MemTotal:         944264 kB\nMemFree:          100 kB\nMemAvailable:     600000 kB\n\
             Buffers:           10 kB\nCached:           200 kB\nSwapCached:          7 kB\n\
             Dirty:               3 kB\nWriteback:           1 kB\nWritebackTmp:        9 kB\n",
        );
        let memory = memory(&files);
        assert_eq!(memory.total_bytes.get(), Some(944_264 * 1024));
        assert_eq!(memory.available_bytes.get(), Some(600_000 * 1024));
        assert_eq!(memory.cached_bytes.get(), Some(210 * 1024));
        assert_eq!(memory.dirty_bytes.get(), Some(4 * 1024));
    }

    #[test]
    fn pressure_is_read_per_resource_and_missing_lines_are_unknown() {
        let files = FakeFiles::new()
            .file(
                "/proc/pressure/io",
                "some avg10=0.22 avg60=0.16 avg300=0.87 total=22387346\n\
                 full avg10=0.11 avg60=0.08 avg300=0.59 total=19066927\n",
            )
            .file("/proc/pressure/cpu", "some avg10=1.50 avg60=0 avg300=0 total=1\n");
        let pressure = memory(&files).pressure;
        assert_eq!(pressure[1].resource, "io");
        assert_eq!(pressure[1].some_avg10.get(), Some(0.22));
        assert_eq!(pressure[1].some_avg300.get(), Some(0.87));
        assert_eq!(pressure[1].full_avg10.get(), Some(0.11));
        assert_eq!(pressure[0].some_avg10.get(), Some(1.5));
        assert!(pressure[0].full_avg10.value().is_none());
        let reason = pressure[2].some_avg10.reason().unwrap();
        assert!(reason.contains("psi=1"), "{reason}");
    }
}
