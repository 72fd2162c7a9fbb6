//! The Arm cores that can be named, and the expected figures of an unmeasured processor.
//!
//! One table names a core by its Main ID Register and says how fast it is, so a core with a name always has a row. Cores are
//! looked up by their whole name: "Cortex-A7" is also how "Cortex-A72" begins.

use std::borrow::Cow;

/// An Arm core, and how it compares with a Cortex-A72 at the clocks usual on boards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmCore {
    /// Designer in the Main ID Register, as the kernel writes it.
    pub designer: &'static str,
    /// Part number in the Main ID Register, as the kernel writes it.
    pub part: &'static str,
    /// Name of the core, such as "Cortex-A72".
    pub name: &'static str,
    /// How fast it compresses, in multiples of a Cortex-A72.
    pub compression: f64,
    /// Processor time of an operation, in multiples of a Cortex-A72.
    pub operation: f64,
    /// Where `compression` was published; `~` where it is estimated from the core's generation and clock.
    pub source: &'static str,
}

const fn arm(
    part: &'static str,
    name: &'static str,
    compression: f64,
    operation: f64,
    source: &'static str,
) -> ArmCore {
    ArmCore { designer: "0x41", part, name, compression, operation, source }
}

/// Every core that has a name here. Part numbers from the cores' Technical Reference Manuals.
pub const ARM_CORES: [ArmCore; 47] = [
    arm("0xb76", "ARM1176", 0.06, 8.0, "~"),
    arm("0xc05", "Cortex-A5", 0.15, 5.0, "~"),
    arm("0xc07", "Cortex-A7", 0.25, 3.5, "~"),
    arm("0xc08", "Cortex-A8", 0.2, 4.0, "~"),
    arm("0xc09", "Cortex-A9", 0.3, 3.0, "~"),
    arm("0xc0d", "Cortex-A12", 0.45, 2.0, "~"),
    arm("0xc0e", "Cortex-A17", 0.5, 1.8, "~"),
    arm("0xc0f", "Cortex-A15", 0.6, 1.6, "~"),
    arm("0xd01", "Cortex-A32", 0.35, 2.7, "~"),
    arm("0xd02", "Cortex-A34", 0.35, 2.7, "~"),
    arm("0xd03", "Cortex-A53", 0.5, 2.0, "~"),
    arm("0xd04", "Cortex-A35", 0.35, 2.7, "~"),
    arm("0xd05", "Cortex-A55", 0.65, 1.6, "~"),
    arm("0xd06", "Cortex-A65", 0.9, 1.2, "~"),
    arm("0xd07", "Cortex-A57", 0.9, 1.1, "~"),
    arm("0xd08", "Cortex-A72", 1.0, 1.0, "facebook/zstd pull request 2749"),
    arm("0xd09", "Cortex-A73", 1.2, 0.9, "~"),
    arm("0xd0a", "Cortex-A75", 1.7, 0.75, "~"),
    arm("0xd0b", "Cortex-A76", 2.7, 0.6, "~"),
    arm("0xd0c", "Neoverse-N1", 2.7, 0.6, "~"),
    arm("0xd0d", "Cortex-A77", 3.2, 0.55, "~"),
    arm("0xd0e", "Cortex-A76AE", 2.7, 0.6, "~"),
    arm("0xd40", "Neoverse-V1", 3.6, 0.5, "~"),
    arm("0xd41", "Cortex-A78", 3.4, 0.5, "~"),
    arm("0xd42", "Cortex-A78AE", 3.0, 0.55, "~"),
    arm("0xd43", "Cortex-A65AE", 0.9, 1.2, "~"),
    arm("0xd44", "Cortex-X1", 4.2, 0.45, "~"),
    arm("0xd46", "Cortex-A510", 0.8, 1.4, "~"),
    arm("0xd47", "Cortex-A710", 3.6, 0.5, "~"),
    arm("0xd48", "Cortex-X2", 4.6, 0.4, "~"),
    arm("0xd49", "Neoverse-N2", 3.4, 0.5, "~"),
    arm("0xd4a", "Neoverse-E1", 0.9, 1.2, "~"),
    arm("0xd4b", "Cortex-A78C", 3.4, 0.5, "~"),
    arm("0xd4c", "Cortex-X1C", 4.2, 0.45, "~"),
    arm("0xd4d", "Cortex-A715", 3.8, 0.45, "~"),
    arm("0xd4e", "Cortex-X3", 5.0, 0.4, "~"),
    arm("0xd4f", "Neoverse-V2", 4.4, 0.4, "~"),
    arm("0xd80", "Cortex-A520", 0.9, 1.3, "~"),
    arm("0xd81", "Cortex-A720", 4.0, 0.45, "~"),
    arm("0xd82", "Cortex-X4", 5.5, 0.35, "~"),
    arm("0xd84", "Neoverse-V3", 5.0, 0.4, "~"),
    arm("0xd85", "Cortex-X925", 6.0, 0.35, "~"),
    arm("0xd87", "Cortex-A725", 4.2, 0.45, "~"),
    arm("0xd8e", "Neoverse-N3", 4.0, 0.45, "~"),
    // What the kernel says where no part number is there.
    arm("", "ARMv6", 0.06, 8.0, "~"),
    arm("", "ARMv7", 0.25, 3.5, "~"),
    arm("", "AArch64", 0.5, 2.0, "~"),
];

/// The core with these numbers, if it has a name.
pub fn by_number(designer: &str, part: &str) -> Option<&'static ArmCore> {
    let cores = ARM_CORES.iter().filter(|core| !core.part.is_empty());
    cores.into_iter().find(|core| core.designer == designer && core.part == part)
}

/// The expected figures of an unmeasured processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Whose figures these are: "a Cortex-A76".
    pub of: Cow<'static, str>,
    /// How fast a core compresses, in multiples of a Cortex-A72.
    pub compression: f64,
    /// Processor time of an operation, in multiples of a Cortex-A72.
    pub operation: f64,
    /// By how much more than usual either may be off, as a factor.
    pub doubt: f64,
}

/// What is expected of the processor that a survey calls `model`. Where it has several kinds of cores, the slowest counts: it is
/// not known which of them the work meets. An Arm core without a row may be anything.
pub fn expected(model: &str) -> Expected {
    let kinds = kinds(model);
    if kinds.contains(&None) {
        return Expected {
            of: "an unknown Arm core".into(),
            compression: 1.0,
            operation: 1.5,
            doubt: 4.0,
        };
    }
    let named = kinds.iter().flatten();
    match named.min_by(|a, b| a.compression.total_cmp(&b.compression)) {
        Some(core) => Expected {
            of: match kinds.len() {
                1 => format!("a {}", core.name).into(),
                _ => format!("a {}, its slower cores", core.name).into(),
            },
            compression: core.compression,
            operation: core.operation,
            doubt: 1.0,
        },
        None => Expected {
            of: "a processor of a desktop".into(),
            compression: 4.0,
            operation: 0.5,
            doubt: 1.0,
        },
    }
}

/// Whether all cores of a processor are small ones: those of a Raspberry Pi up to the 3, and what is no faster.
pub fn is_small(model: &str) -> bool {
    let kinds = kinds(model);
    let is_small = |kind: &Option<&ArmCore>| kind.is_some_and(|core| core.operation >= 2.0);
    !kinds.is_empty() && kinds.iter().all(is_small)
}

/// Whether one of a processor's cores is exactly this one.
pub fn has_core(model: &str, name: &str) -> bool {
    kinds(model).iter().flatten().any(|core| core.name == name)
}

/// The kinds of Arm cores in a survey's words, absent for one without a row. Empty: no Arm processor.
fn kinds(model: &str) -> Vec<Option<&'static ArmCore>> {
    let kind = |name: &str| {
        // "ARMv7 Processor rev 4 (v7l)", "ARM1176JZF-S".
        let first = name.split_whitespace().next().unwrap_or_default();
        let is_it = |core: &&ArmCore| {
            if core.name.starts_with("ARM") {
                first.starts_with(core.name)
            } else {
                first == core.name
            }
        };
        match ARM_CORES.iter().find(is_it) {
            Some(core) => Some(Some(core)),
            None if ["ARM", "Cortex-", "Neoverse-"].iter().any(|is| name.starts_with(is)) => {
                Some(None)
            }
            None => None,
        }
    };
    model.split(" and ").filter_map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_gets_its_own_figures_and_not_those_of_a_shorter_name() {
        for core in &ARM_CORES {
            let expected = expected(core.name);
            assert_eq!(expected.of, format!("a {}", core.name));
            assert_eq!(expected.compression, core.compression, "{}", core.name);
            assert!(has_core(core.name, core.name));
        }
        for fast in ["Cortex-A73", "Cortex-A75", "Cortex-A76", "Cortex-A78", "Cortex-A720"] {
            let (it, small) = (expected(fast), expected("Cortex-A7"));
            assert!(it.compression > 4.0 * small.compression, "{fast}: {it:?}");
            assert!(
                !is_small(fast) && !has_core(fast, "Cortex-A7") && !has_core(fast, "Cortex-A72")
            );
        }
        let desktop = expected("AMD EPYC");
        assert!(expected("Cortex-A55").compression < 0.25 * desktop.compression);
    }

    #[test]
    fn names_and_numbers_are_unique_and_each_row_has_a_source() {
        for (place, core) in ARM_CORES.iter().enumerate() {
            assert!(!core.source.is_empty(), "{core:?}");
            for other in &ARM_CORES[..place] {
                assert_ne!(core.name, other.name);
                assert!(core.part.is_empty() || core.part != other.part, "{core:?}");
            }
        }
        assert_eq!(by_number("0x41", "0xd0b").map(|core| core.name), Some("Cortex-A76"));
        assert_eq!(by_number("0x61", "0xd0b"), None);
        assert_eq!(by_number("0x41", ""), None);
    }

    #[test]
    fn of_several_kinds_the_slowest_counts_but_one_fast_kind_makes_no_small_processor() {
        let both = expected("Cortex-A53 and Cortex-A72");
        assert_eq!(both.compression, expected("Cortex-A53").compression);
        assert_eq!(both.of, "a Cortex-A53, its slower cores");
        assert!(!is_small("Cortex-A53 and Cortex-A72"));
        assert!(is_small("Cortex-A53") && is_small("Cortex-A35") && is_small("ARM1176"));
        assert!(is_small("ARMv7 Processor rev 4 (v7l)") && !is_small("AMD EPYC") && !is_small(""));
    }

    #[test]
    fn an_unknown_arm_core_is_no_desktop() {
        for unknown in ["ARM core, designer 0x61, part 0x022", "Cortex-A999"] {
            let it = expected(unknown);
            assert!(it.doubt > 2.0 && it.compression < 2.0, "{it:?}");
        }
        assert_eq!(expected("Intel(R) Core(TM) i5").doubt, 1.0);
    }

    #[test]
    fn the_table_has_a_row_for_every_core() {
        let text = include_str!("../../../../docs/data/arm-cores.tsv");
        for core in &ARM_CORES {
            let row = format!(
                "\n{}\t×{}\t×{}\t{}\n",
                core.name, core.compression, core.operation, core.source
            );
            assert!(text.contains(&row), "no row in docs/data/arm-cores.tsv: {row}");
        }
    }
}
