//! The proof that a board will start: that the files of its boot partition, the command line, the initial
//! RAM filesystems, the volumes and the table of mounts agree with each other.
//!
//! Everything that the firmware may start is looked at: each kernel of [`ConfigTxt::boot_paths`] with its initial
//! RAM filesystem, in the words of [`Check`]. What was not looked at is no proof: a missing fact is a check
//! that is not met.

mod kernels;
mod mounts;
pub use mounts::{WAITED_FOR, WAITS_FOR_LITTLE};
mod root;

use std::collections::{BTreeMap, BTreeSet};

use super::config_txt::{BootPath, ConfigTxt, Reader};
use super::initramfs::Listing;
use super::model::Model;
use super::modules::Modules;
use crate::volume::NamedVolume;
use rubus_vocabulary::check::Check;

/// What the proof is made from: everything as it will be at the next start.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Model of the board.
    pub model: &'a Model,
    /// Its serial number, where it is known.
    pub serial: Option<u64>,
    /// Whether the start is the trial after `reboot '0 tryboot'`; the settings are those of `tryboot.txt` then.
    pub tryboot: bool,
    /// The settings that the firmware reads.
    pub config_txt: &'a str,
    /// The boot partition.
    pub partition: &'a BootPartition,
    /// What kernels and initial RAM filesystems hold, by their paths in the boot partition.
    pub images: &'a Images,
    /// All volumes that will be there at the next start, and no others.
    pub volumes: &'a [NamedVolume],
    /// Whether that is so. Of an image, nothing is known of the other disks that a board has.
    pub are_all_volumes: bool,
    /// The path of the volume that the firmware reads, as in `volumes`.
    pub firmware_volume: Option<&'a str>,
    /// `/etc/fstab` of the root that will be started.
    pub fstab: &'a str,
    /// Its `/etc/crypttab`; empty where there is none.
    pub crypttab: &'a str,
    /// Modules without which the root cannot be reached: of each group, one is enough. See [`way_to`].
    pub root_modules: &'a [Vec<String>],
    /// Further modules on the way to the root: of each kernel that has them as files they must be inside.
    pub drivers: &'a [String],
}

/// The files of a boot partition. FAT does not tell capitals from small letters; neither do the names
/// here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootPartition {
    files: BTreeMap<String, u64>,
    texts: BTreeMap<String, String>,
}

impl BootPartition {
    /// A file and its length in bytes.
    pub fn add(&mut self, path: &str, size_bytes: u64) {
        self.files.insert(folded(path), size_bytes);
    }

    /// A text and its contents, in place of what was there.
    pub fn put(&mut self, path: &str, text: &str) {
        self.add(path, text.len() as u64);
        self.texts.insert(folded(path), text.into());
    }

    /// How long a file is; absent where it is not.
    pub fn size_bytes(&self, path: &str) -> Option<u64> {
        self.files.get(&folded(path)).copied()
    }

    /// The paths of all files, in small letters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(&folded(path)).map(String::as_str)
    }
}

/// What kernels and initial RAM filesystems hold, by their paths in the boot partition.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// Of each kernel.
    pub kernels: BTreeMap<String, Kernel>,
    /// Of each initial RAM filesystem, or why it cannot be unpacked.
    pub initramfs: BTreeMap<String, Result<Listing, String>>,
    /// Of those that cannot be unpacked, the paths of those of which the kernel unpacks nothing and starts without.
    pub void: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Its release ("6.12.47+rpt-rpi-v8"), where it is known; see [`super::kernel_file`].
    pub release: Option<String>,
    /// Whether it is one for 64 bits by its header, where that says so.
    pub is_64_bit: Option<bool>,
    /// The modules of that release.
    pub modules: Modules,
}

/// Looks at everything. The order is that of a start: settings, kernel, initial RAM filesystem, root, mounts.
pub fn prove(facts: &Facts<'_>) -> Vec<Check> {
    let paths = paths(facts);
    let mut checks = images_of(facts, &paths);
    checks.extend(texts_of(facts, &paths));
    checks
}

/// Looks only at what texts and volumes say: command lines, the root that they name, the table of mounts. All of it is known
/// before anything is written.
pub fn prove_texts(facts: &Facts<'_>) -> Vec<Check> {
    let mut checks = vec![settings_are_whole(&ConfigTxt::parse(facts.config_txt))];
    checks.extend(texts_of(facts, &paths(facts)));
    checks
}

fn texts_of(facts: &Facts<'_>, paths: &[BootPath]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut lines: Vec<&str> = paths.iter().map(|path| path.cmdline.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    for name in lines {
        let starts: Vec<&BootPath> = paths.iter().filter(|path| path.cmdline == name).collect();
        root::look(facts, name, &starts, &mut checks);
    }
    mounts::look(facts, &mut checks);
    checks
}

/// Looks only at what the firmware loads: settings, kernels and initial RAM filesystems. For a root that is started now
/// already, of which nothing else changes.
pub fn prove_images(facts: &Facts<'_>) -> Vec<Check> {
    images_of(facts, &paths(facts))
}

fn paths(facts: &Facts<'_>) -> Vec<BootPath> {
    let config = ConfigTxt::parse(facts.config_txt);
    let includes = config.included(&|name| facts.partition.text(name).map(str::to_string));
    let reader = Reader {
        serial: facts.serial,
        tryboot: facts.tryboot,
        ..Reader::usual(facts.model, &includes)
    };
    let exists = |path: &str| facts.partition.size_bytes(path).is_some();
    config.boot_paths(&reader, &exists)
}

fn images_of(facts: &Facts<'_>, paths: &[BootPath]) -> Vec<Check> {
    let mut checks = vec![settings_are_whole(&ConfigTxt::parse(facts.config_txt))];
    if paths.is_empty() {
        checks.push(check(
            "config.txt names a kernel",
            Err((
                "it names none, and this board has no usual one".into(),
                "put kernel= with the name of the kernel's file into config.txt".into(),
            )),
        ));
    }
    for path in paths {
        kernels::look(facts, path, &mut checks);
    }
    checks
}

/// The modules on the way to a root, as groups for [`Facts::root_modules`]: those of its filesystem, of its
/// transport ("usb", "nvme", "mmc", "sata", "virtio") and of what lies between ("raid0", "nbd"). Unknown names stand
/// for themselves. Where the driver of the controller is known (its link in sysfs), the caller adds it as a group of
/// one; by itself "usb" asks for any of the usual ones.
pub fn way_to(filesystem: &str, transport: &str, between: &[&str]) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<&str>> = vec![vec![filesystem]];
    groups.extend(between.iter().map(|name| vec![*name]));
    match transport {
        "usb" => {
            groups.push(vec!["usb_storage"]);
            groups.push(vec!["sd_mod"]);
            groups.push(vec![
                "xhci_pci",
                "xhci_plat_hcd",
                "dwc2",
                "dwc_otg",
                "ehci_pci",
                "ehci_platform",
            ]);
        }
        "nvme" => groups.push(vec!["nvme"]),
        "mmc" => groups.push(vec!["mmc_block"]),
        "sata" | "scsi" => groups.push(vec!["sd_mod"]),
        "virtio" => groups.push(vec!["virtio_blk"]),
        "" => {}
        other => groups.push(vec![other]),
    }
    let owned = |group: Vec<&str>| group.into_iter().map(str::to_string).collect();
    groups.into_iter().map(owned).collect()
}

fn settings_are_whole(config: &ConfigTxt) -> Check {
    let what = "the firmware reads every line of config.txt that says what is loaded";
    let long = config.long_lines();
    let numbers: Vec<String> = long.iter().map(usize::to_string).collect();
    check(
        what,
        if long.is_empty() {
            Ok("none is longer than 98 characters".into())
        } else {
            Err((
                format!("longer than 98 characters: line {}", numbers.join(", ")),
                "shorten it".into(),
            ))
        },
    )
}

/// A check from what was found, or from what was found and what helps.
fn check(what: impl Into<String>, outcome: Result<String, (String, String)>) -> Check {
    let (found, is_met, remedy) = match outcome {
        Ok(found) => (found, true, None),
        Err((found, remedy)) => (found, false, Some(remedy)),
    };
    Check { what: what.into(), found, is_met, is_unknown: false, remedy }
}

/// When a case holds, for the end of a sentence.
fn condition(path: &BootPath) -> String {
    if path.only_if.is_empty() {
        return String::new();
    }
    let filters: Vec<&str> = path.only_if.iter().map(String::as_str).collect();
    format!(" (if {} applies)", filters.join(" and "))
}

fn folded(path: &str) -> String {
    path.trim_start_matches('/').to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
