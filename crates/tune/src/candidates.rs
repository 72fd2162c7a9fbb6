//! Which settings are worth trying on a machine: those that a work can see, with the values that may be better.

use std::path::{Path, PathBuf};

use rubus_host::{Files, ReadError};
use rubus_vocabulary::machine::{BlockKind, Machine};

use crate::live::{Knob, word};
use crate::place::Place;
use crate::set_by::set_by;
use crate::setting::{Candidate, NotTried, Risk, Setting, Work};

/// Read-ahead that is tried, in KiB: multiples of any kernel's page.
const AHEAD_KIB: [u64; 2] = [512, 2048];
/// With a queue of at least this, no work here can fill it.
const ROOM_FOR_REQUESTS: u64 = 64;
/// The queue that is tried instead of a shorter one.
const REQUESTS: u64 = 128;
/// At most this many other schedulers are tried.
const MAX_SCHEDULERS: usize = 3;

/// What is tried, what promises most first; and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// What is tried.
    pub tried: Vec<Candidate>,
    /// What is not, with the reasons.
    pub not_tried: Vec<NotTried>,
}

/// The candidates for the disk of a place, for the works that matter.
pub fn candidates(place: &Place, works: &[Work], files: &dyn Files) -> Candidates {
    let mut found = Candidates::default();
    read_ahead(place, files, &mut found);
    scheduler(place, files, &mut found);
    requests(place, files, &mut found);
    governor(files, &mut found);
    for candidate in &mut found.tried {
        candidate.works.retain(|work| works.contains(work));
    }
    let (tried, blind) = found.tried.into_iter().partition(|one| !one.works.is_empty());
    found.tried = tried;
    let blind: Vec<Candidate> = blind;
    for candidate in blind {
        let setting = candidate.setting.title();
        if !found.not_tried.iter().any(|one| one.setting == setting) {
            found.refuse(setting, "none of the works asked for can see it");
        }
    }
    never_tried(place, files, &mut found);
    found
}

/// Reads what a survey does not show of the settings of each disk, so that a capture has it. A disk whose queue did not answer
/// the survey is not asked again.
pub fn look(files: &dyn Files, machine: &Machine) {
    let disks = machine.block_devices.iter().filter(|device| device.kind == BlockKind::Disk);
    for disk in disks.filter(|disk| disk.scheduler.value().is_some()) {
        let path = Path::new("/sys/block").join(&disk.name).join("queue/read_ahead_kb");
        // Without an answer the capture has none.
        let _ = files.text(&path);
    }
}

impl Candidates {
    fn refuse(&mut self, setting: &str, why: &str) {
        self.not_tried.push(NotTried { setting: setting.into(), why: why.into() });
    }
}

fn queue(place: &Place, name: &str) -> PathBuf {
    Path::new("/sys/block").join(&place.disk).join("queue").join(name)
}

fn unread(path: &Path, error: &ReadError) -> String {
    format!("its present value is not known: {}: {error}", path.display())
}

fn read_ahead(place: &Place, files: &dyn Files, found: &mut Candidates) {
    let title = Setting::ReadAhead.title();
    if place.filesystem == "btrfs" {
        return found.refuse(
            title,
            "btrfs has a read-ahead of its own, of 4 MiB at least; that of the disk does nothing for its files",
        );
    }
    if let Some(device) = &place.stacked_on {
        return found.refuse(
            title,
            &format!("the filesystem is on {device}, whose read-ahead counts, not the disk's"),
        );
    }
    let path = queue(place, "read_ahead_kb");
    let from = match files.text(&path).map(|text| text.trim().parse::<u64>()) {
        Ok(Ok(from)) => from,
        Ok(Err(_)) => return found.refuse(title, "its present value is no number"),
        Err(error) => return found.refuse(title, &unread(&path, &error)),
    };
    let set_by = set_by(Setting::ReadAhead, files);
    for to in AHEAD_KIB.into_iter().filter(|&to| to >= from.saturating_mul(2)) {
        found.tried.push(Candidate {
            setting: Setting::ReadAhead,
            from: from.to_string(),
            to: to.to_string(),
            knobs: vec![Knob {
                path: path.clone(),
                disk: Some(place.disk.clone()),
                resets: Vec::new(),
            }],
            works: vec![Work::LargeRead],
            does: "reads more of a file at once when it is read in order",
            source: "Linux Documentation/ABI/stable/sysfs-block, read_ahead_kb",
            risk: Risk::Latency,
            set_by: set_by.clone(),
        });
    }
    if !found.tried.iter().any(|one| one.setting == Setting::ReadAhead) {
        found.refuse(title, &format!("it is {from} KiB already"));
    }
}

/// The kernel gives a disk another queue length and no throttling of writeback with another scheduler.
fn reset_with_scheduler(place: &Place) -> Vec<PathBuf> {
    ["nr_requests", "wbt_lat_usec", "async_depth", "iosched"].map(|name| queue(place, name)).into()
}

fn scheduler(place: &Place, files: &dyn Files, found: &mut Candidates) {
    let title = Setting::Scheduler.title();
    let path = queue(place, "scheduler");
    let text = match files.text(&path) {
        Ok(text) => text,
        Err(error) => return found.refuse(title, &unread(&path, &error)),
    };
    let from = word(&text).to_string();
    let names = text.split_whitespace().map(|name| name.trim_matches(['[', ']']));
    let others: Vec<&str> = names.filter(|name| *name != from).take(MAX_SCHEDULERS).collect();
    if others.is_empty() {
        return found.refuse(title, &format!("the kernel has only {from} loaded for this disk"));
    }
    let set_by = set_by(Setting::Scheduler, files);
    for to in others {
        found.tried.push(Candidate {
            setting: Setting::Scheduler,
            from: from.clone(),
            to: to.to_string(),
            knobs: vec![Knob {
                path: path.clone(),
                disk: Some(place.disk.clone()),
                resets: reset_with_scheduler(place),
            }],
            works: vec![Work::DeepRead, Work::MixedRead, Work::Commit],
            does: "orders and merges the requests of the disk in another way",
            source: "Linux Documentation/block/switching-sched.rst",
            risk: Risk::Latency,
            set_by: set_by.clone(),
        });
    }
}

fn requests(place: &Place, files: &dyn Files, found: &mut Candidates) {
    let title = Setting::Requests.title();
    let path = queue(place, "nr_requests");
    let from = match files.text(&path).map(|text| text.trim().parse::<u64>()) {
        Ok(Ok(from)) => from,
        Ok(Err(_)) => return found.refuse(title, "its present value is no number"),
        Err(error) => return found.refuse(title, &unread(&path, &error)),
    };
    if from >= ROOM_FOR_REQUESTS {
        return found.refuse(
            title,
            &format!("there is room for {from}, more than a work here keeps in flight"),
        );
    }
    if files.text(&queue(place, "scheduler")).is_ok_and(|text| word(&text) == "none") {
        return found.refuse(title, "without a scheduler the disk's own limit holds");
    }
    let resets = ["async_depth", "iosched"].map(|name| queue(place, name)).into();
    found.tried.push(Candidate {
        setting: Setting::Requests,
        from: from.to_string(),
        to: REQUESTS.to_string(),
        knobs: vec![Knob { path, disk: Some(place.disk.clone()), resets }],
        works: vec![Work::DeepRead, Work::MixedRead],
        does: "gives the scheduler more requests to order and merge",
        source: "Linux Documentation/ABI/stable/sysfs-block, nr_requests",
        risk: Risk::Latency,
        set_by: set_by(Setting::Requests, files),
    });
}

fn governor(files: &dyn Files, found: &mut Candidates) {
    const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
    const TO: &str = "performance";
    let title = Setting::Governor.title();
    let names = files.list(Path::new(POLICIES)).unwrap_or_default();
    let policies = names.iter().filter(|name| {
        name.strip_prefix("policy").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    let mut from: Option<String> = None;
    let mut knobs = Vec::new();
    for name in policies {
        let directory = Path::new(POLICIES).join(name);
        let path = directory.join("scaling_governor");
        let now = match files.text(&path) {
            Ok(text) => text.trim().to_string(),
            Err(error) => return found.refuse(title, &unread(&path, &error)),
        };
        if from.as_ref().is_some_and(|from| *from != now) {
            return found
                .refuse(title, "the processors have different ones, as set by their owner");
        }
        let offered = files.text(&directory.join("scaling_available_governors"));
        if !offered.is_ok_and(|text| text.split_whitespace().any(|name| name == TO)) {
            return found.refuse(title, &format!("the kernel has no governor {TO} here"));
        }
        // The settings of a governor go with it.
        let own = [directory.join(&now), Path::new(POLICIES).join(&now)];
        let mut resets: Vec<PathBuf> =
            own.into_iter().filter(|directory| files.list(directory).is_ok()).collect();
        let preference = directory.join("energy_performance_preference");
        if files.exists(&preference) {
            resets.push(preference);
        }
        knobs.push(Knob { path, disk: None, resets });
        from = Some(now);
    }
    let Some(from) = from else {
        return found
            .refuse(title, "the clock of this machine's processors is not the kernel's to choose");
    };
    if from == TO {
        return found.refuse(title, &format!("it is {TO} already"));
    }
    found.tried.push(Candidate {
        setting: Setting::Governor,
        from,
        to: TO.into(),
        knobs,
        works: vec![Work::SmallRead, Work::Commit],
        does: "keeps the processor at its highest clock",
        source: "Linux Documentation/admin-guide/pm/cpufreq.rst",
        risk: Risk::Heat,
        set_by: set_by(Setting::Governor, files),
    });
}

/// What would be expected here and is never tried, with the reason.
fn never_tried(place: &Place, files: &dyn Files, found: &mut Candidates) {
    let has = |option: &str| place.options.iter().any(|one| one == option);
    match (has("noatime"), has("relatime")) {
        (true, _) => found.refuse("noatime", "the filesystem is mounted so already"),
        (_, true) => found.refuse(
            "noatime",
            "relatime writes a file's time of access at most once a day, which no work here can see",
        ),
        _ => found.refuse("noatime", "it is a mount option; set it in /etc/fstab and mount again"),
    }
    if place.filesystem == "ext4" {
        found.refuse(
            "commit",
            "more data would be lost by a power cut; see `rubus recipes commit-interval`",
        );
    }
    if place.filesystem == "btrfs" {
        found.refuse(
            "compression",
            "it depends on your files, not on the disk; see `rubus compression`",
        );
    }
    if files.exists(&queue(place, "wbt_lat_usec")) {
        found.refuse(
            "wbt_lat_usec",
            "it acts on writeback of the page cache, which no work here does",
        );
    }
    if place.is_usb {
        found.refuse(
            "UAS",
            "it cannot be changed safely while the disk is in use; see `rubus recipes usb-quirk`",
        );
    }
}
