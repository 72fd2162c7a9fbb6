//! The health of arrays (md): whether one has all its disks, and what to do where it has not.

use super::{DiskHealth, Word};

/// What the kernel says of an array. Source: Linux documentation, admin-guide/md: `degraded`, `raid_disks`,
/// `sync_action`, `array_state`, `dev-*/state`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayState {
    /// Kernel name: "md0".
    pub name: String,
    /// "raid1".
    pub level: String,
    /// Number of disks that it should have.
    pub disks: u64,
    /// How many of them it lacks.
    pub lacking: u64,
    /// Whether it is being rebuilt onto another disk.
    pub is_rebuilding: bool,
    /// Whether it has no redundancy and lost a disk: what it holds cannot be read whole.
    pub is_broken: bool,
    /// The members that it has put out after an error, by kernel name: "sdb1".
    pub faulty: Vec<String>,
}

impl ArrayState {
    /// Its health where it is not whole.
    pub(super) fn health(&self) -> Option<DiskHealth> {
        let (word, evidence, fix) = if self.is_broken {
            let evidence =
                format!("{} has lost a disk, and has no copy of what was on it", self.kind());
            (
                Word::Failing,
                evidence,
                "Copy what can still be read, then create the array again and restore your backup.",
            )
        } else if self.lacking == 0 {
            return None;
        } else if self.is_rebuilding {
            let evidence = format!("{}, and is being rebuilt", self.lacks());
            (
                Word::WearingOut,
                evidence,
                "Let it finish (cat /proc/mdstat says how far it is), and have a backup until then.",
            )
        } else {
            let fix = "Add a disk in place of what it lacks: mdadm --manage ARRAY --add DISK.";
            let (word, next) = match self.more_losses() {
                Some(0) => (Word::Failing, "the next loss takes all data".to_string()),
                Some(more) => (Word::WearingOut, format!("it can lose {more} more")),
                None => (Word::Failing, "the next loss may take all data".to_string()),
            };
            (word, format!("{}: {next}", self.lacks()), fix)
        };
        let fix = fix.replace("ARRAY", &format!("/dev/{}", self.name));
        Some(DiskHealth {
            disk: self.name.clone(),
            word,
            cause: None,
            evidence: vec![evidence],
            fix: Some(super::of_disk::with_copy_first(word, fix)),
            command: None,
            suspects: Vec::new(),
        })
    }

    /// How many more disks it can lose, where that does not depend on which.
    fn more_losses(&self) -> Option<u64> {
        let redundancy = match self.level.as_str() {
            "raid1" => self.disks.saturating_sub(1),
            "raid4" | "raid5" => 1,
            "raid6" => 2,
            _ => return None,
        };
        Some(redundancy.saturating_sub(self.lacking))
    }

    fn kind(&self) -> String {
        format!("it ({}, {} disks)", self.level, self.disks)
    }

    fn lacks(&self) -> String {
        format!("it ({}) lacks {} of its {} disks", self.level, self.lacking, self.disks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> ArrayState {
        ArrayState { name: "md0".into(), level: "raid1".into(), disks: 2, ..ArrayState::default() }
    }

    #[test]
    fn a_whole_array_has_nothing_to_say() {
        assert_eq!(mirror().health(), None);
        assert_eq!(ArrayState { is_rebuilding: true, ..mirror() }.health(), None, "a first resync");
    }

    #[test]
    fn an_array_that_lacks_a_disk_fails_until_it_is_rebuilt() {
        let told = |array: ArrayState| {
            let health = array.health().expect("it lacks a disk");
            (health.word, health.sentence(), health.fix.unwrap_or_default())
        };
        let (word, sentence, fix) = told(ArrayState { lacking: 1, ..mirror() });
        assert_eq!(word, Word::Failing);
        assert_eq!(
            sentence,
            "failing: it (raid1) lacks 1 of its 2 disks: the next loss takes all data"
        );
        assert!(fix.starts_with("Copy your data now. Add a disk"), "{fix}");
        assert!(fix.ends_with("mdadm --manage /dev/md0 --add DISK."), "{fix}");
        let (word, sentence, _) = told(ArrayState { lacking: 1, is_rebuilding: true, ..mirror() });
        assert_eq!(word, Word::WearingOut);
        assert!(sentence.ends_with("and is being rebuilt"), "{sentence}");
        let six = ArrayState { level: "raid6".into(), disks: 5, lacking: 1, ..mirror() };
        let (word, sentence, _) = told(six);
        assert_eq!(word, Word::WearingOut);
        assert!(sentence.ends_with("it can lose 1 more"), "{sentence}");
        let ten = ArrayState { level: "raid10".into(), disks: 4, lacking: 1, ..mirror() };
        assert!(told(ten).1.ends_with("the next loss may take all data"));
        let broken = ArrayState { level: "raid0".into(), is_broken: true, ..mirror() };
        assert_eq!(
            told(broken).1,
            "failing: it (raid0, 2 disks) has lost a disk, and has no copy of what was on it"
        );
    }
}
