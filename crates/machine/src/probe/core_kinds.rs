//! Kinds of cores: which CPUs are alike, and which kind is faster (Arm's big.LITTLE, Intel's performance and efficient cores).
//!
//! Sources: the Main ID Register of each CPU as `/proc/cpuinfo` has it; `cpu_capacity` of each CPU (kernel documentation,
//! "sysfs-devices-system-cpu": its speed at its highest clock, of 1024 for the fastest); on hybrid Intel processors the CPUs of the
//! performance counters `cpu_core` and `cpu_atom`.

use rubus_host::Files;
use rubus_vocabulary::processor::arm_cores;

use crate::probe::cpu::{arm_core, short_list};
use crate::probe::cpuinfo::CpuInfo;
use crate::probe::read;

/// Kinds of hybrid Intel processors, with the file that lists their CPUs.
const HYBRID: [(&str, &str); 2] =
    [("performance core", "/sys/devices/cpu_core/cpus"), (EFFICIENT, "/sys/devices/cpu_atom/cpus")];
const EFFICIENT: &str = "efficient core";
/// Cores of one design are one kind if their capacities differ by less than this share: clusters of a chip may have clocks that
/// differ a little.
const ALIKE: f64 = 0.1;

/// What is known of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreFacts {
    /// The kernel's number of the CPU.
    pub cpu: usize,
    /// Its design, such as "Cortex-A76"; absent where cores have no names.
    pub name: Option<String>,
    /// Its speed, of 1024 for the fastest of the machine; absent where the kernel does not say.
    pub capacity: Option<u32>,
}

/// Cores that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreKind {
    /// "Cortex-A76"; with its CPUs, as in "Cortex-A55 (CPUs 4-5)", where another kind has the same design. Empty where cores have
    /// no names.
    pub name: String,
    /// Numbers of its CPUs, ascending.
    pub cpus: Vec<usize>,
}

/// Reads what tells cores apart, of each CPU that is online.
pub fn facts(files: &dyn Files) -> Vec<CoreFacts> {
    let cpuinfo = CpuInfo::read(files);
    let hybrid: Vec<(&str, Vec<usize>)> = HYBRID
        .iter()
        .filter_map(|(name, path)| Some((*name, numbers(read::text(files, path).text()?)?)))
        .collect();
    let of_core = |core: &[(&str, &str)]| {
        let cpu: usize = field(core, "processor")?.parse().ok()?;
        let designed = field(core, "CPU implementer").zip(field(core, "CPU part"));
        let by_counter = hybrid.iter().find(|(_, cpus)| cpus.contains(&cpu));
        let name = designed
            .map(|(designer, part)| arm_core(designer, part))
            .or_else(|| by_counter.map(|(name, _)| (*name).to_string()))
            .or_else(|| field(core, "uarch").map(str::to_string));
        let capacity = format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let capacity = read::number::<u32>(files, &capacity).get();
        Some(CoreFacts { cpu, name, capacity })
    };
    let cores = cpuinfo.cores();
    cores.iter().filter_map(|core| of_core(core)).collect()
}

fn field<'a>(core: &[(&str, &'a str)], wanted: &str) -> Option<&'a str> {
    let found = core.iter().find(|(key, _)| *key == wanted);
    found.map(|(_, value)| *value)
}

/// The kinds among the CPUs `allowed`, the fastest first. A CPU without facts is of a kind without a name.
pub fn kinds(facts: &[CoreFacts], allowed: &[usize]) -> Vec<CoreKind> {
    let known = |cpu: usize| facts.iter().find(|facts| facts.cpu == cpu).cloned();
    let nameless = |cpu| CoreFacts { cpu, ..CoreFacts::default() };
    let mut cores: Vec<CoreFacts> =
        allowed.iter().map(|cpu| known(*cpu).unwrap_or_else(|| nameless(*cpu))).collect();
    cores.sort_by(|a, b| {
        let by_capacity = b.capacity.cmp(&a.capacity);
        by_capacity
            .then_with(|| expected(b).total_cmp(&expected(a)))
            .then_with(|| a.cpu.cmp(&b.cpu))
    });
    // With the capacity of the fastest of each.
    let mut kinds: Vec<(Option<u32>, CoreKind)> = Vec::new();
    for core in cores {
        let name = core.name.unwrap_or_default();
        let is_alike = |(fastest, kind): &&mut (Option<u32>, CoreKind)| {
            let share =
                |fastest: u32| f64::from(core.capacity.unwrap_or(fastest)) / f64::from(fastest);
            kind.name == name && fastest.is_none_or(|fastest| share(fastest) > 1.0 - ALIKE)
        };
        match kinds.iter_mut().find(is_alike) {
            Some((_, kind)) => kind.cpus.push(core.cpu),
            None => {
                let cpus = vec![core.cpu];
                kinds.push((core.capacity, CoreKind { name, cpus }));
            }
        }
    }
    let mut kinds: Vec<CoreKind> = kinds.into_iter().map(|(_, kind)| kind).collect();
    let names: Vec<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
    for kind in &mut kinds {
        kind.cpus.sort_unstable();
        if names.iter().filter(|name| **name == kind.name).count() > 1 {
            let cpus: Vec<String> = kind.cpus.iter().map(usize::to_string).collect();
            let cpus = format!("(CPUs {})", short_list(&cpus.join(" ")));
            kind.name = format!("{} {cpus}", kind.name).trim_start().to_string();
        }
    }
    kinds
}

/// How fast a core of this design is, where its capacity does not tell: device trees may give all the same.
fn expected(core: &CoreFacts) -> f64 {
    match core.name.as_deref() {
        None => 0.0,
        Some(EFFICIENT) => 0.5,
        Some(name) => arm_cores::expected(name).compression,
    }
}

/// The numbers of a list such as "0-3,5".
fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // A kernel has no more of them.
        if last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn core(cpu: usize, name: &str, capacity: u32) -> CoreFacts {
        CoreFacts {
            cpu,
            name: (!name.is_empty()).then(|| name.to_string()),
            capacity: (capacity > 0).then_some(capacity),
        }
    }

    fn kind(name: &str, cpus: impl IntoIterator<Item = usize>) -> CoreKind {
        CoreKind { name: name.into(), cpus: cpus.into_iter().collect() }
    }

    fn rk3588(cpu: usize) -> CoreFacts {
        match cpu {
            0..4 => core(cpu, "Cortex-A55", 530),
            // Its two fast clusters differ by a step of the clock.
            4..6 => core(cpu, "Cortex-A76", 1004),
            _ => core(cpu, "Cortex-A76", 1024),
        }
    }

    #[test]
    fn big_and_little_cores_are_told_apart_the_fast_ones_first() {
        let facts: Vec<CoreFacts> = (0..8).map(rk3588).collect();
        let all: Vec<usize> = (0..8).collect();
        let (big, little) = (kind("Cortex-A76", 4..8), kind("Cortex-A55", 0..4));
        assert_eq!(kinds(&facts, &all), [big, little]);
        // Only what the program may use.
        let (big, little) = (kind("Cortex-A76", [7]), kind("Cortex-A55", [0, 2]));
        assert_eq!(kinds(&facts, &[0, 2, 7]), [big, little.clone()]);
        assert_eq!(kinds(&facts, &[0, 2]), [little]);
    }

    #[test]
    fn cores_of_one_design_at_quite_other_clocks_are_two_kinds() {
        let cores = [core(0, "Cortex-A55", 300), core(1, "Cortex-A55", 1024)];
        let expected = [kind("Cortex-A55 (CPUs 1)", [1]), kind("Cortex-A55 (CPUs 0)", [0])];
        assert_eq!(kinds(&cores, &[0, 1]), expected);
        let nameless = [core(0, "", 300), core(1, "", 1024), core(2, "", 1024)];
        let expected = [kind("(CPUs 1-2)", [1, 2]), kind("(CPUs 0)", [0])];
        assert_eq!(kinds(&nameless, &[0, 1, 2]), expected);
    }

    #[test]
    fn without_capacities_the_faster_design_comes_first() {
        for capacity in [0, 1024] {
            let little = (0..4).map(|cpu| core(cpu, "Cortex-A53", capacity));
            let big = (4..6).map(|cpu| core(cpu, "Cortex-A72", capacity));
            let facts: Vec<CoreFacts> = little.chain(big).collect();
            let expected = [kind("Cortex-A72", 4..6), kind("Cortex-A53", 0..4)];
            assert_eq!(kinds(&facts, &[0, 1, 2, 3, 4, 5]), expected);
        }
    }

    #[test]
    fn alike_cores_are_one_kind_also_where_nothing_is_known() {
        assert_eq!(kinds(&[], &[0, 1, 5]), [kind("", [0, 1, 5])]);
        assert!(kinds(&[], &[]).is_empty());
        let four: Vec<CoreFacts> = (0..4).map(|cpu| core(cpu, "Cortex-A72", 1024)).collect();
        assert_eq!(kinds(&four, &[0, 1, 2, 3]), [kind("Cortex-A72", 0..4)]);
    }

    #[test]
    fn facts_of_a_board_are_read_per_core() {
        let core = |number: usize, part: &str| {
            format!("processor\t: {number}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        let capacity = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let cpuinfo = [core(0, "0xd05"), core(4, "0xd0b")].concat() + "Hardware\t: a board\n";
        let files = FakeFiles::new()
            .file("/proc/cpuinfo", cpuinfo)
            .file(capacity(0), "530\n")
            .file(capacity(4), "1024\n");
        let expected = [self::core(0, "Cortex-A55", 530), self::core(4, "Cortex-A76", 1024)];
        assert_eq!(facts(&files), expected);
        assert!(facts(&FakeFiles::new()).is_empty());
    }

    #[test]
    fn a_hybrid_processor_names_its_cores_by_their_counters() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Intel N\n\nprocessor\t: 1\nmodel name\t: Intel N\n\n\
            processor\t: 2\nmodel name\t: Intel N\n\n";
        let plain = FakeFiles::new().file("/proc/cpuinfo", cpuinfo);
        assert_eq!(kinds(&facts(&plain), &[0, 1, 2]), [kind("", 0..3)]);
        let hybrid = FakeFiles::new()
            .file("/proc/cpuinfo", cpuinfo)
            .file(HYBRID[0].1, "2\n")
            .file(HYBRID[1].1, "0-1\n");
        let expected = [kind("performance core", [2]), kind("efficient core", [0, 1])];
        assert_eq!(kinds(&facts(&hybrid), &[0, 1, 2]), expected);
    }

    #[test]
    fn lists_that_are_none_name_nothing() {
        assert_eq!(numbers("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        for bad in ["", "x", "1-", "0-4294967295"] {
            assert_eq!(numbers(bad), None, "{bad}");
        }
    }
}
