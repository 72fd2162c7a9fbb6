//! What a disk's own words say that its owner has to know at once: that it fails, or is worn out.

use rubus_machine::rules::beside;
use rubus_vocabulary::rule_finding::{RuleFinding, Weight};

use super::emmc::UFS_HEALTH;
use super::text::{of_used, of_warnings};
use super::{Source, Warning, Wear};

/// What is found in what disks say of themselves: dangers first.
pub fn findings(wear: &[Wear]) -> Vec<RuleFinding> {
    let mut found: Vec<RuleFinding> = wear.iter().flat_map(of_disk).collect();
    found.sort_by_key(|finding| finding.weight);
    found
}

fn of_disk(wear: &Wear) -> Vec<RuleFinding> {
    let finding =
        |rule: &str, weight, evidence: String, consequence: &str, fix: &str, source: &str| {
            RuleFinding {
                rule: rule.into(),
                weight,
                about: wear.disk.clone(),
                evidence,
                read_from: read_from(wear),
                consequence: consequence.into(),
                fix: fix.into(),
                command: None,
                source: source.into(),
            }
        };
    let (warned, dangers): (Vec<Warning>, Vec<Warning>) =
        wear.warnings.iter().partition(|warning| !warning.is_danger());
    let mut found = Vec::new();
    if !dangers.is_empty() {
        found.push(finding(
            "disk-fails",
            Weight::Danger,
            of_warnings(wear, &dangers).join(", "),
            "It may stop or lose data at any time",
            "Make a backup now, and replace it",
            "NVM Express Base Specification, log page 02h: Critical Warning; ATA/ATAPI Command Set: SMART RETURN STATUS; \
             smartd.conf(5): attributes 197 and 198; \
             JEDEC JESD84-B51: PRE_EOL_INFO",
        ));
    }
    if let Some(used) = wear.used.filter(|used| used.is_at_end()) {
        found.push(finding(
            "disk-worn-out",
            Weight::Danger,
            format!("has used {}", of_used(used)),
            "Its maker promises nothing any more: it may lose data, first while it is without power",
            "Make a backup, and replace it before it fails",
            beside("disk-worn-out"),
        ));
    }
    if warned.contains(&Warning::DataErrors) {
        found.push(finding(
            "disk-data-errors",
            Weight::Hint,
            of_warnings(wear, &[Warning::DataErrors]).join(", "),
            "What it could not give back is lost; a count that grows says that more will follow",
            "Keep a backup, look at the count again in a month, and replace the disk when it has grown",
            beside("disk-data-errors"),
        ));
    }
    if warned.contains(&Warning::ReallocatedBlocks) {
        found.push(finding(
            "disk-blocks-replaced",
            Weight::Hint,
            of_warnings(wear, &[Warning::ReallocatedBlocks]).join(", "),
            "Nothing is lost by that, but disks that have replaced many blocks fail sooner",
            "Keep a backup, look at the count again in a month, and replace the disk when it has grown",
            beside("disk-blocks-replaced"),
        ));
    }
    if warned.contains(&Warning::SpareLow) {
        found.push(finding(
            "disk-spare-low",
            Weight::Hint,
            of_warnings(wear, &[Warning::SpareLow]).join(", "),
            "It goes on until these are used up, and then writes no more",
            "Keep a backup, and plan to replace it",
            beside("disk-spare-low"),
        ));
    }
    found
}

fn read_from(wear: &Wear) -> String {
    let disk = &wear.disk;
    match wear.source {
        Some(Source::Emmc) => format!("/sys/block/{disk}/device/life_time, pre_eol_info"),
        Some(Source::Ufs) => format!("/sys/block/{disk}/{UFS_HEALTH}"),
        Some(Source::Nvme | Source::Ata | Source::Scsi) | None => {
            format!("smartctl --all /dev/{disk}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wear::Used;

    fn found(wear: Wear) -> Vec<(String, Weight)> {
        findings(&[wear]).into_iter().map(|finding| (finding.rule, finding.weight)).collect()
    }

    fn used(min_percent: f64, max_percent: Option<f64>) -> Wear {
        Wear { used: Some(Used { min_percent, max_percent }), ..Wear::default() }
    }

    fn warns(warning: Warning) -> Wear {
        Wear { warnings: vec![warning], ..Wear::default() }
    }

    #[test]
    fn a_disk_that_fails_or_is_used_up_is_a_danger() {
        for warning in [
            Warning::Failing,
            Warning::AtThreshold,
            Warning::ReadOnly,
            Warning::Unreliable,
            Warning::UnreadableBlocks,
            Warning::SpareNearlyUsedUp,
            Warning::UnsafeCache,
        ] {
            let expected = [("disk-fails".to_string(), Weight::Danger)];
            assert_eq!(found(warns(warning)), expected, "{warning:?}");
        }
        for worn in [used(100.0, None), used(100.0, Some(101.0)), used(98.0, None)] {
            let expected = [("disk-worn-out".to_string(), Weight::Danger)];
            assert_eq!(found(worn.clone()), expected, "{worn:?}");
        }
        let low = [("disk-spare-low".to_string(), Weight::Hint)];
        assert_eq!(found(warns(Warning::SpareLow)), low);
        let errors = [("disk-data-errors".to_string(), Weight::Hint)];
        assert_eq!(found(warns(Warning::DataErrors)), errors);
        let replaced = [("disk-blocks-replaced".to_string(), Weight::Hint)];
        assert_eq!(found(warns(Warning::ReallocatedBlocks)), replaced, "no data was lost");
        let both = Wear {
            warnings: vec![Warning::DataErrors, Warning::ReallocatedBlocks],
            ..Wear::default()
        };
        assert_eq!(found(both), [errors, replaced].concat());
        assert_eq!(found(warns(Warning::DesignLifeOver)), [], "of age alone, no fault");
        assert_eq!(found(used(97.0, Some(99.0))), []);
        assert_eq!(found(Wear::default()), []);
    }
}
