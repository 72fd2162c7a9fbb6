//! Every kind of finding by its code: when it speaks, how that is known, and how it is disproved.

use super::disproof::disproof;
use super::{Weight, all};

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// What stands behind each such finding: lower case with hyphens. It stays the same.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// When it speaks, in words.
    pub when: &'static str,
    /// Where its claims come from.
    pub source: &'static str,
    /// Whether it needs measured figures; else a survey is enough.
    pub needs_figures: bool,
    /// What would come out otherwise if it were wrong.
    pub disproof: &'static str,
}

/// A finding that needs more than the facts of a survey or a run: code, weight, when, source.
type Beside = (&'static str, Weight, &'static str, &'static str);

const START: &str =
    "Raspberry Pi documentation, config.txt and boot flow: what each version of the firmware does";

const BESIDE: [Beside; 7] = [
    (
        "next-start-stops",
        Weight::Danger,
        "the files of the boot partition stop the next start",
        START,
    ),
    (
        "next-root-is-another",
        Weight::Danger,
        "the kernel's command line names another root than the one that runs",
        START,
    ),
    (
        "kernel-without-modules",
        Weight::Danger,
        "the root that starts next has no modules for the kernel",
        START,
    ),
    (
        "disk-worn-out",
        Weight::Danger,
        "a disk says that it has used up what it was made for",
        "NVM Express Base Specification, log page 02h: Percentage Used; JEDEC JESD84-B51: \
         DEVICE_LIFE_TIME_EST; smartmontools, drivedb.h",
    ),
    (
        "disk-data-errors",
        Weight::Hint,
        "a disk counts errors by which data could not be read",
        "NVM Express Base Specification, log page 02h: Media and Data Integrity Errors; ACS-4, 9.5: Number of Reported \
         Uncorrectable Errors; smartmontools, drivedb.h: attribute 187; SPC-5: error counter log pages; \
         ACS-4, 9.20: self-test log",
    ),
    (
        "disk-blocks-replaced",
        Weight::Hint,
        "a disk that turns has put a hundred spare blocks and more in place of bad ones",
        "Pinheiro et al., \"Failure Trends in a Large Disk Drive Population\", FAST 2007, 3.5.2; smartmontools, drivedb.h: \
         attribute 5; ACS-4, 9.5: Number of Reallocated Logical Sectors; SBC-4: grown defect list",
    ),
    (
        "disk-spare-low",
        Weight::Hint,
        "an eMMC says that its spare blocks run low",
        "JEDEC JESD84-B51: PRE_EOL_INFO",
    ),
];

/// Where the claims of a finding come from that is none of a rule.
///
/// # Panics
/// For a code that is not listed, which is a mistake of this program.
pub fn beside(code: &str) -> &'static str {
    let found = BESIDE.iter().find(|(known, ..)| *known == code);
    found.map(|(.., source)| *source).expect("a listed code")
}

/// All kinds, those of the rules first.
pub fn explained() -> impl Iterator<Item = Explained> {
    let of_rules =
        all().map(|rule| (rule.name, rule.weight, rule.when, rule.source, rule.needs_figures()));
    let others = BESIDE.iter().map(|(code, weight, when, source)| {
        let needs_figures = false;
        (*code, *weight, *when, *source, needs_figures)
    });
    of_rules.chain(others).map(|(code, weight, when, source, needs_figures)| Explained {
        code,
        weight,
        when,
        source,
        needs_figures,
        disproof: disproof(code).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_none_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for one in explained() {
            assert!(seen.insert(one.code), "{} twice", one.code);
            assert!(one.disproof.len() > 10, "{} cannot be disproved", one.code);
            assert!(!one.when.is_empty() && !one.source.is_empty(), "{}", one.code);
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(one.code.chars().all(is_plain), "{}", one.code);
        }
        assert!(seen.len() > 80, "{}", seen.len());
        assert_eq!(disproof("no-such-code"), None);
    }
}
