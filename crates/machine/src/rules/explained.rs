//! Every kind of finding by its code: when it speaks, how that is known, and how it is disproved.

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

/// A finding that needs more than the facts of a survey or a run: code, weight, when, source, disproof.
type Beside = (&'static str, Weight, &'static str, &'static str, &'static str);

const START: &str =
    "Raspberry Pi documentation, config.txt and boot flow: what each version of the firmware does";

const WEAR_READ: &str = "`smartctl --all` (NVMe, ATA) or `mmc extcsd read` (eMMC): the figure that the disk gives is \
    lower.";
const COUNT_STANDS: &str =
    "`smartctl --all` in a month: the same count, and nothing has happened since.";

const BESIDE: [Beside; 10] = [
    (
        "next-start-stops",
        Weight::Danger,
        "the files of the boot partition stop the next start",
        START,
        "`rubus boot --verbose` says where the link that stops was read: the file says otherwise, and the finding is wrong.",
    ),
    (
        "next-root-is-another",
        Weight::Danger,
        "the kernel's command line names another root than the one that runs",
        START,
        "Read root= in the command line that `rubus boot` names: the root that runs now, and the finding is wrong.",
    ),
    (
        "kernel-without-modules",
        Weight::Danger,
        "the root that starts next has no modules for the kernel",
        START,
        "`ls /lib/modules` of the root that starts: the kernel's release is there, and the finding is wrong.",
    ),
    (
        "updated-boot-files-failed",
        Weight::Hint,
        "Ubuntu's boot files of the last update were tried and did not start",
        "Canonical, A/B boot on Ubuntu for Raspberry Pi: piboot-try",
        "Read `new/state` on the boot partition: it does not say bad, and the finding is wrong.",
    ),
    (
        "kernel-updates-go-elsewhere",
        Weight::Hint,
        "the boot partition is mounted at /boot, and the system's packages write kernels to /boot/firmware",
        "RPi-Distro/repo, issue 355; the package raspi-firmware, kernel/postinst.d/z50-raspi-firmware",
        "`ls -l /boot/*.img` after an update of the kernel: the files are new, and the finding is wrong.",
    ),
    (
        "initramfs-in-doubt",
        Weight::Hint,
        "the initial RAM filesystem seems to lack a driver or program by which the running system came to its root",
        START,
        "`lsinitramfs` of the file that `rubus boot` names: what is missed is in it, and the finding is wrong.",
    ),
    (
        "disk-worn-out",
        Weight::Danger,
        "a disk says that it has used up what it was made for",
        "NVM Express Base Specification, log page 02h: Percentage Used; JEDEC JESD84-B51: \
         DEVICE_LIFE_TIME_EST; smartmontools, drivedb.h",
        WEAR_READ,
    ),
    (
        "disk-data-errors",
        Weight::Hint,
        "a disk counts errors by which data could not be read",
        "NVM Express Base Specification, log page 02h: Media and Data Integrity Errors; ACS-4, 9.5: Number of Reported \
         Uncorrectable Errors; smartmontools, drivedb.h: attribute 187, of some SSDs 160, 195 or 197; SPC-5: error counter log pages; \
         ACS-4, 9.20: self-test log",
        COUNT_STANDS,
    ),
    (
        "disk-blocks-replaced",
        Weight::Hint,
        "a disk that turns has put a hundred spare blocks and more in place of bad ones",
        "Pinheiro et al., \"Failure Trends in a Large Disk Drive Population\", FAST 2007, 3.5.2; smartmontools, drivedb.h: \
         attribute 5; ACS-4, 9.5: Number of Reallocated Logical Sectors; SBC-4: grown defect list",
        COUNT_STANDS,
    ),
    (
        "disk-spare-low",
        Weight::Hint,
        "an eMMC says that its spare blocks run low",
        "JEDEC JESD84-B51: PRE_EOL_INFO",
        WEAR_READ,
    ),
];

/// Where the claims of a finding come from that is none of a rule.
///
/// # Panics
/// For a code that is not listed, which is a mistake of this program.
pub fn beside(code: &str) -> &'static str {
    let found = BESIDE.iter().find(|(known, ..)| *known == code);
    found.map(|(.., source, _)| *source).expect("a listed code")
}

/// All kinds, those of the rules first.
pub fn explained() -> impl Iterator<Item = Explained> {
    let of_rules = all().map(|rule| Explained {
        code: rule.name,
        weight: rule.weight,
        when: rule.when,
        source: rule.source,
        needs_figures: rule.needs_figures(),
        disproof: rule.disproof,
    });
    let others = BESIDE.iter().map(|&(code, weight, when, source, disproof)| Explained {
        code,
        weight,
        when,
        source,
        needs_figures: false,
        disproof,
    });
    of_rules.chain(others)
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
    }
}
