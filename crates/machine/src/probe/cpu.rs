//! The processor: model, cores, clocks, and what helps ciphers and checksums.

use std::path::Path;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Clock, Cpu};
use rubus_vocabulary::processor::arm_cores;

use crate::probe::cpuinfo::{self, CpuInfo};
use crate::probe::read;

const ONLINE: &str = "/sys/devices/system/cpu/online";
const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

pub(crate) fn cpu(files: &dyn Files, cpuinfo: &CpuInfo) -> Cpu {
    let cores = cores(files, cpuinfo);
    Cpu {
        model: model(cpuinfo),
        clocks: clocks(files, cpuinfo, &cores),
        cores,
        crypto_features: crypto_features(cpuinfo),
    }
}

/// On ARM the designer and part numbers of every kind of core; the kernel's own "model name"
/// there is only the architecture.
fn model(cpuinfo: &CpuInfo) -> Fact<String> {
    let designers = cpuinfo.all("CPU implementer");
    let parts = cpuinfo.all("CPU part");
    let mut names: Vec<String> = Vec::new();
    for (designer, part) in designers.iter().zip(&parts) {
        let name = arm_core(designer, part);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        return Fact::known(
            names.join(" and "),
            format!("{}, CPU implementer and part", cpuinfo::PATH),
        );
    }
    read::first_known(&[&|| cpuinfo.first("model name"), &|| cpuinfo.first("uarch"), &|| {
        cpuinfo.first("cpu model")
    }])
}

/// Name of a core by the fields of its Main ID Register (Arm Architecture Reference Manual).
pub(super) fn arm_core(designer: &str, part: &str) -> String {
    match arm_cores::by_number(designer, part) {
        Some(core) => core.name.to_string(),
        None => format!("ARM core, designer {designer}, part {part}"),
    }
}

fn cores(files: &dyn Files, cpuinfo: &CpuInfo) -> Fact<u32> {
    let online = read::text(files, ONLINE).and_then(|text| {
        count_of_list(&text).ok_or_else(|| format!("it says '{text}', not a list of cores"))
    });
    if online.value().is_some() {
        return online;
    }
    match cpuinfo.all("processor").len() {
        0 => online,
        count => Fact::known(count as u32, cpuinfo::PATH),
    }
}

/// How many numbers are in a list such as "0-3,5".
fn count_of_list(text: &str) -> Option<u32> {
    let mut count: u32 = 0;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

fn clocks(files: &dyn Files, cpuinfo: &CpuInfo, cores: &Fact<u32>) -> Vec<Clock> {
    let policies: Vec<Clock> = files
        .list(Path::new(POLICIES))
        .unwrap_or_default()
        .iter()
        .filter(|name| name.starts_with("policy"))
        .map(|name| clock_of_policy(files, &format!("{POLICIES}/{name}")))
        .collect();
    if !policies.is_empty() {
        return policies;
    }
    clock_without_scaling(cpuinfo, cores).into_iter().collect()
}

fn clock_of_policy(files: &dyn Files, directory: &str) -> Clock {
    // The kernel counts in kHz.
    let hertz = |name: &str| {
        read::number::<u64>(files, &format!("{directory}/{name}"))
            .map(|khz| khz.saturating_mul(1000))
    };
    Clock {
        cores: read::text(files, &format!("{directory}/affected_cpus"))
            .text()
            .map(short_list)
            .unwrap_or_default(),
        current_hz: hertz("scaling_cur_freq"),
        min_hz: hertz("cpuinfo_min_freq"),
        max_hz: hertz("cpuinfo_max_freq"),
        governor: read::filled_text(files, &format!("{directory}/scaling_governor")),
    }
}

/// Without frequency scaling only x86 tells the clock, per core; the first stands for all.
fn clock_without_scaling(cpuinfo: &CpuInfo, cores: &Fact<u32>) -> Option<Clock> {
    let current_hz = cpuinfo
        .first("cpu MHz")
        .and_then(|text| read::parse_number::<f64>(&text))
        .map(|mhz| (mhz * 1e6) as u64);
    current_hz.value()?;
    let unknown = || "this kernel does not scale the clock here".to_string();
    Some(Clock {
        cores: match cores.get() {
            Some(1) => "0".to_string(),
            Some(count) => format!("0-{}", count.saturating_sub(1)),
            None => String::new(),
        },
        current_hz,
        min_hz: Fact::unknown(unknown(), POLICIES),
        max_hz: Fact::unknown(unknown(), POLICIES),
        governor: Fact::unknown(unknown(), POLICIES),
    })
}

/// "0 1 2 3" becomes "0-3"; "0 2" becomes "0,2".
pub(super) fn short_list(text: &str) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in text.split_whitespace().filter_map(|word| word.parse().ok()) {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let parts: Vec<String> = ranges
        .iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    parts.join(",")
}

fn crypto_features(cpuinfo: &CpuInfo) -> Fact<Vec<String>> {
    const THAT_MATTER: [&str; 23] = [
        "aes",
        "pmull",
        "sha1",
        "sha2",
        "sha3",
        "sha512",
        "crc32",
        "neon",
        "asimd",
        "sve",
        "sve2",
        "vaes",
        "vpclmulqdq",
        "pclmulqdq",
        "sha_ni",
        "gfni",
        "ssse3",
        "sse4_1",
        "sse4_2",
        "avx",
        "avx2",
        "avx512f",
        "avx512bw",
    ];
    read::first_known(&[&|| cpuinfo.first("flags"), &|| cpuinfo.first("Features"), &|| {
        cpuinfo.first("isa")
    }])
    .map(|text| {
        text.split_whitespace()
            .filter(|word| THAT_MATTER.contains(word))
            .map(str::to_string)
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn read(files: &FakeFiles) -> Cpu {
        cpu(files, &CpuInfo::read(files))
    }

    const A72: &str = "processor\t: 0\nBogoMIPS\t: 108.00\n\
        Features\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n\
        CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n\n";

    #[test]
    fn a_raspberry_pi_core_is_named_by_its_part_number() {
        let files =
            FakeFiles::new().file("/proc/cpuinfo", A72.repeat(4)).file(ONLINE, "0-3\n").files(
                format!("{POLICIES}/policy0"),
                [
                    ("affected_cpus", "0 1 2 3\n"),
                    ("scaling_cur_freq", "600000\n"),
                    ("cpuinfo_min_freq", "600000\n"),
                    ("cpuinfo_max_freq", "1800000\n"),
                    ("scaling_governor", "ondemand\n"),
                ],
            );
        let cpu = read(&files);
        assert_eq!(cpu.model.text(), Some("Cortex-A72"));
        assert_eq!(cpu.cores.get(), Some(4));
        assert_eq!(cpu.clocks.len(), 1);
        assert_eq!(cpu.clocks[0].cores, "0-3");
        assert_eq!(cpu.clocks[0].max_hz.get(), Some(1_800_000_000));
        assert_eq!(cpu.clocks[0].governor.text(), Some("ondemand"));
        assert_eq!(cpu.crypto_features.value().unwrap(), &["asimd", "crc32"]);
    }

    #[test]
    fn two_kinds_of_cores_are_both_named() {
        let little = A72.replace("0xd08", "0xd03");
        let files = FakeFiles::new().file("/proc/cpuinfo", format!("{little}{little}{A72}"));
        let cpu = read(&files);
        assert_eq!(cpu.model.text(), Some("Cortex-A53 and Cortex-A72"));
        assert_eq!(cpu.cores.get(), Some(3));
    }

    #[test]
    fn an_unknown_core_keeps_its_numbers() {
        assert_eq!(arm_core("0x61", "0x022"), "ARM core, designer 0x61, part 0x022");
    }

    #[test]
    fn x86_has_a_model_name_and_a_clock() {
        let files = FakeFiles::new()
            .file(
                "/proc/cpuinfo",
                "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2599.998\n\
                 flags\t\t: fpu sse2 ssse3 aes avx2 sha_ni vaes hypervisor\n",
            )
            .file(ONLINE, "0,2\n");
        let cpu = read(&files);
        assert_eq!(cpu.model.text(), Some("AMD EPYC"));
        assert_eq!(cpu.cores.get(), Some(2));
        assert_eq!(cpu.clocks[0].current_hz.get(), Some(2_599_998_000));
        assert!(cpu.clocks[0].max_hz.value().is_none());
        assert_eq!(
            cpu.crypto_features.value().unwrap(),
            &["ssse3", "aes", "avx2", "sha_ni", "vaes"]
        );
    }

    #[test]
    fn lists_of_cores_are_counted_and_shortened() {
        assert_eq!(count_of_list("0-3,5\n"), Some(5));
        for bad in ["", "x", "3-1", "0-4294967295"] {
            assert_eq!(count_of_list(bad), None, "{bad}");
        }
        assert_eq!(short_list("0 1 2 5 7 8"), "0-2,5,7-8");
        assert_eq!(short_list(""), "");
    }
}
