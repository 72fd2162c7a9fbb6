//! The word for one disk.

use rubus_machine::kernel_log::{Cause, Health, suspects};
use rubus_vocabulary::machine::{BlockDevice, Machine, Origin};

use super::{ArrayState, DiskHealth, ErrorCount, POWER_SUPPLY, PossibleCause, Told, Word};
use crate::wear::text::{of_used, of_warnings};
use crate::wear::{Trouble, Warning, Wear};

/// A disk that says that so much of its life is used is wearing out, in percent.
const WORN_PERCENT: f64 = 90.0;

/// Where the log of the running kernel is read from.
const OWN_LOG: &str = "dmesg";

const COPY_NOW: &str = "Copy your data now, then replace the disk.";
const REPLACE_SOON: &str = "Keep a backup, and replace it before it fails.";

/// A disk, and all that is known of its health.
pub(super) struct About<'a> {
    pub machine: &'a Machine,
    pub told: &'a Told,
    pub disk: &'a BlockDevice,
    pub now: &'a [Health],
    pub earlier: &'a [Vec<Health>],
}

impl About<'_> {
    pub fn health(&self) -> DiskHealth {
        let now = self.worst_of(self.now);
        let earlier = self.earlier();
        let word = self.word(now, earlier.map(|(_, health)| health));
        let log = now.or(earlier.map(|(_, health)| health));
        let advice = log.map(Health::advice);
        let fix = match (word, &advice) {
            (_, Some(advice)) => Some(advice.fix.clone()),
            (Word::Failing, None) => Some(COPY_NOW.to_string()),
            (Word::WearingOut, None) => Some(REPLACE_SOON.to_string()),
            (Word::NotKnown | Word::Fine, None) => None,
        };
        DiskHealth {
            disk: self.disk.name.clone(),
            word,
            cause: log.map(|health| health.cause),
            evidence: self.evidence(now, earlier),
            fix: fix.map(|fix| with_copy_first(word, fix)),
            command: advice.and_then(|advice| advice.command),
            suspects: log.map_or_else(Vec::new, |health| self.suspects(health)),
        }
    }

    fn word(&self, now: Option<&Health>, earlier: Option<&Health>) -> Word {
        let is_disk = |health: &&Health| may_be_disk(health.cause);
        let has_lost = now.is_some_and(|health| health.is_failing)
            || earlier.filter(is_disk).is_some_and(|health| health.is_failing);
        let wear = self.wear();
        let warns = |is_meant: fn(&Warning) -> bool| {
            wear.is_some_and(|wear| wear.warnings.iter().any(is_meant))
        };
        let is_put_out = self.arrays_without_it().next().is_some();
        if has_lost || is_put_out || warns(|warning| warning.is_danger()) {
            return Word::Failing;
        }
        let is_worn = wear
            .and_then(|wear| wear.used)
            .is_some_and(|used| used.is_at_end() || used.min_percent >= WORN_PERCENT);
        if is_worn || warns(|warning| !warning.is_danger()) || now.is_some_and(|one| is_disk(&one))
        {
            return Word::WearingOut;
        }
        let answers = wear.is_some_and(|wear| wear.source.is_some());
        let is_disturbed = now.is_some() || self.counts().next().is_some();
        let is_quiet = self.is_log_read() && !is_disturbed;
        if answers || is_quiet { Word::Fine } else { Word::NotKnown }
    }

    fn evidence(&self, now: Option<&Health>, earlier: Option<(usize, &Health)>) -> Vec<String> {
        let mut evidence = Vec::new();
        if let Some(health) = now {
            evidence.extend(health.evidence_words());
        }
        evidence.extend(
            self.arrays_without_it().map(|array| format!("{array} has put it out after an error")),
        );
        evidence.extend(self.of_wear());
        if let (None, Some((boots, health))) = (now, earlier) {
            let words = health.evidence_words().join(", ");
            evidence.push(format!("{}: {words}", boots_ago(boots)));
        }
        evidence.extend(self.counts().map(counted));
        if evidence.is_empty() {
            evidence.push(self.of_silence());
        }
        evidence
    }

    /// What the disk says of its wear where that is something to act on, or good to know.
    fn of_wear(&self) -> Vec<String> {
        let Some(wear) = self.wear() else {
            return Vec::new();
        };
        let mut said = of_warnings(wear, &wear.warnings);
        said.extend(wear.used.map(|used| format!("it has used {}", of_used(used))));
        said
    }

    /// Why nothing speaks against it, or nothing is known.
    fn of_silence(&self) -> String {
        let answers = self.wear().is_some_and(|wear| wear.source.is_some());
        match (self.is_log_read(), answers) {
            (true, true) => "no errors in the kernel's log, and none that it tells of".into(),
            (true, false) => {
                format!("no errors in the kernel's log; {}", self.of_no_answer())
            }
            (false, true) => "it tells of no errors".into(),
            (false, false) if self.is_captured() => {
                "this capture has neither the kernel's log nor what the disk says of itself".into()
            }
            (false, false) => {
                let reason = self.machine.kernel_log.reason().unwrap_or("as root");
                format!("the kernel's log cannot be read ({reason}), and {}", self.of_no_answer())
            }
        }
    }

    /// Without the log, the counters of ext4 may be known alone.
    fn is_log_read(&self) -> bool {
        let log = &self.machine.kernel_log;
        log.value().is_some() && !log.source().starts_with("/sys/")
    }

    fn is_captured(&self) -> bool {
        matches!(self.machine.origin, Origin::Capture { .. })
    }

    fn of_no_answer(&self) -> String {
        if self.is_captured() {
            return "a capture does not have what the disk says of itself".into();
        }
        let Some(wear) = self.wear() else {
            return "the disk itself was not asked".into();
        };
        match &wear.trouble {
            Some(Trouble::NoSmartctl) => "smartctl, which asks the disk, is not installed".into(),
            Some(Trouble::OldSmartctl(_)) => "smartctl is too old to ask the disk".into(),
            Some(Trouble::NotRoot) => "only root may ask the disk itself".into(),
            Some(Trouble::Asleep) => "the disk sleeps and was not asked".into(),
            Some(Trouble::Other(_)) => "smartctl cannot ask the disk".into(),
            None if self.disk.mmc.is_some() => "an SD card does not tell how it is".into(),
            None => "it does not tell how it is".into(),
        }
    }

    fn worst_of<'h>(&self, found: &'h [Health]) -> Option<&'h Health> {
        let of_it = found.iter().filter(|health| self.is_its(&health.part));
        of_it.max_by_key(|health| (health.is_failing, health.cause == Cause::Disk))
    }

    /// The newest earlier boot whose log has something of this disk, and how many boots ago.
    fn earlier(&self) -> Option<(usize, &Health)> {
        let boots = self.earlier.iter().enumerate();
        boots.into_iter().find_map(|(at, boot)| Some((at + 1, self.worst_of(boot)?)))
    }

    /// A log names a disk, or the controller of an NVMe disk.
    fn is_its(&self, part: &str) -> bool {
        let name = self.disk.name.as_str();
        name == part
            || (part.starts_with("nvme")
                && name.strip_prefix(part).is_some_and(|rest| rest.starts_with('n')))
    }

    fn wear(&self) -> Option<&Wear> {
        self.told.wear.iter().find(|wear| wear.disk == self.disk.name)
    }

    fn counts(&self) -> impl Iterator<Item = &ErrorCount> {
        self.told.counts.iter().filter(|count| {
            count.times > 0 && count.devices.iter().any(|device| self.is_below(device))
        })
    }

    /// The arrays that have put it, or a partition of it, out after an error.
    fn arrays_without_it(&self) -> impl Iterator<Item = &str> {
        let arrays = self.told.arrays.iter();
        let has_put_out =
            |array: &&ArrayState| array.faulty.iter().any(|member| self.is_below(member));
        arrays.filter(has_put_out).map(|array| array.name.as_str())
    }

    fn is_below(&self, device: &str) -> bool {
        self.machine.disks_below(device).iter().any(|disk| disk.name == self.disk.name)
    }

    fn suspects(&self, health: &Health) -> Vec<PossibleCause> {
        // A log in a file may be another machine's, with a disk of this name on another driver.
        let is_own = self.machine.kernel_log.source() == OWN_LOG;
        let driver = self.disk.usb_device().and_then(|hop| hop.driver.text());
        let is_uas = is_own && driver == Some("uas");
        suspects(health, is_uas).into_iter().map(PossibleCause::from).collect()
    }
}

/// Disks that the log has and the machine has not any more, and the board's supply.
/// Whether the cause is the disk, or may be: of what does not answer nothing better is known.
fn may_be_disk(cause: Cause) -> bool {
    match cause {
        Cause::Disk | Cause::NoAnswer | Cause::CommandQueue => true,
        Cause::Supply
        | Cause::Uas
        | Cause::Connection
        | Cause::Controller
        | Cause::WentAway
        | Cause::Filesystem => false,
    }
}

pub(super) fn gone(machine: &Machine, now: &[Health]) -> Vec<DiskHealth> {
    let is_there = |part: &str| {
        machine.device(part).is_some()
            || machine.block_devices.iter().any(|device| {
                part.starts_with("nvme")
                    && device.name.strip_prefix(part).is_some_and(|rest| rest.starts_with('n'))
            })
    };
    let left = now.iter().filter(|health| !is_there(&health.part));
    left.map(|health| {
        let advice = health.advice();
        let is_board = health.part.is_empty();
        let word = match (health.is_failing, health.cause) {
            (true, _) => Word::Failing,
            (false, cause) if may_be_disk(cause) => Word::WearingOut,
            (false, _) => Word::NotKnown,
        };
        DiskHealth {
            disk: if is_board { POWER_SUPPLY.into() } else { health.part.clone() },
            word: if is_board { Word::Failing } else { word },
            cause: Some(health.cause),
            evidence: health.evidence_words(),
            fix: Some(if is_board { advice.fix } else { with_copy_first(word, advice.fix) }),
            command: advice.command,
            suspects: suspects(health, false).into_iter().map(PossibleCause::from).collect(),
        }
    })
    .collect()
}

/// Whatever the cause is: where data was lost, saving the rest comes first.
pub(super) fn with_copy_first(word: Word, fix: String) -> String {
    let says_so = fix.starts_with("Copy ");
    if word == Word::Failing && !says_so { format!("Copy your data now. {fix}") } else { fix }
}

fn boots_ago(boots: usize) -> String {
    match boots {
        1 => "in the boot before this one".into(),
        more => format!("{more} boots ago"),
    }
}

fn counted(count: &ErrorCount) -> String {
    let ErrorCount { devices, counter, what, times, last_day } = count;
    let last = last_day.as_ref().map_or(String::new(), |day| format!(", the last on {day}"));
    let devices = devices.join(" or ");
    format!("{counter} on {devices} has counted {times} {what}{last}")
}
