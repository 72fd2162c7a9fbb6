//! The kernels that this board can be started with, and what has to be in their initial RAM filesystems.

use std::path::{Path, PathBuf};

use super::super::{PathState, PlanInput};
use super::current::Start;
use rubus_boot::config_txt::initramfs_of;
use rubus_vocabulary::machine::{BlockDevice, HopKind};

/// Where the modules of all installed kernels are.
const MODULES: &str = "/lib/modules";
/// Modules that a root may need: directory below `kernel`, name.
const KNOWN: [(&str, &str); 16] = [
    ("fs/btrfs", "btrfs"),
    ("fs/ext4", "ext4"),
    ("fs/f2fs", "f2fs"),
    ("fs/fat", "vfat"),
    ("fs/nls", "nls_cp437"),
    ("fs/nls", "nls_ascii"),
    ("drivers/usb/storage", "usb-storage"),
    ("drivers/usb/storage", "uas"),
    ("drivers/scsi", "sd_mod"),
    ("drivers/mmc/core", "mmc_block"),
    ("drivers/nvme/host", "nvme"),
    ("drivers/block", "virtio_blk"),
    ("drivers/block", "nbd"),
    ("crypto", "zstd"),
    ("crypto", "lz4"),
    ("crypto", "lzo-rle"),
];
/// Endings of the releases that Raspberry Pi's packages put under a name, newest naming first.
const FLAVOURS: [(&str, &[&str]); 5] = [
    ("kernel.img", &["-v6", "+"]),
    ("kernel7.img", &["-v7", "-v7+"]),
    ("kernel7l.img", &["-v7l", "-v7l+"]),
    ("kernel8.img", &["-v8", "-v8+"]),
    ("kernel_2712.img", &["-2712", "-v8-16k", "-v8-16k+"]),
];

/// A kernel that can be started, with the initial RAM filesystem that is loaded with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Its file in the boot partition.
    pub(crate) file: String,
    pub(crate) release: String,
    /// The initial RAM filesystem's file in the boot partition.
    pub(crate) initramfs: String,
    /// Whether that is there now.
    pub(crate) has_initramfs: bool,
    /// Whether `config.txt` lets it be loaded as it is.
    pub(crate) is_loaded: bool,
    /// Whether some bootloaders load the one of another kernel: those of a Raspberry Pi 5 where `kernel=` names another kernel
    /// than its usual one and `auto_initramfs` is on, or will be (raspberrypi/firmware, issue 1965).
    pub(crate) is_mistaken: bool,
}

/// Whether a module is in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    /// As a file.
    Module,
    /// Built into the kernel.
    BuiltIn,
    /// Not at all, or it could not be looked at.
    Not,
}

/// What to look at.
pub(crate) fn paths() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(MODULES), Path::new(MODULES).join("*/modules.builtin")];
    for (directory, _) in KNOWN {
        let path = Path::new(MODULES).join("*/kernel").join(directory);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The kernels that can be started, the usual one first.
///
/// # Errors
/// What cannot be told, as a sentence.
pub(crate) fn kernels(situation: &PlanInput<'_>, start: &Start<'_>) -> Result<Vec<Kernel>, String> {
    let releases = releases(situation);
    let running = situation.machine.system.kernel_release.text();
    let mut kernels: Vec<Kernel> = Vec::new();
    for path in &start.paths {
        let place = start.point.join(&path.kernel);
        let release = match situation.facts.kernels.get(&place) {
            Some(told) if releases.contains(told) => told.clone(),
            Some(told) => {
                return Err(format!(
                    "the modules of {}: it is {told}, and {MODULES} has none of that",
                    place.display()
                ));
            }
            None => by_name(&place, &path.kernel, &releases, running)?,
        };
        let (initramfs, is_loaded) = match &path.initramfs[..] {
            [one] => (Some(one.clone()), true),
            [] => (initramfs_of(&path.kernel), false),
            several => {
                return Err(format!(
                    "which of {} to rebuild: config.txt joins them",
                    several.join(", ")
                ));
            }
        };
        let Some(initramfs) = initramfs else {
            return Err(format!("the name of the initial RAM filesystem of {}", path.kernel));
        };
        let kernel = Kernel {
            file: path.kernel.clone(),
            has_initramfs: start.has(&initramfs),
            release,
            initramfs,
            is_loaded,
            is_mistaken: start.on_pi5.contains(path)
                && (path.is_auto_initramfs || !is_loaded)
                && path.kernel != "kernel_2712.img",
        };
        let mut known = kernels.iter_mut();
        match known.find(|known| known.initramfs == kernel.initramfs) {
            // Another board may load the same.
            Some(known) => known.is_mistaken |= kernel.is_mistaken,
            None => kernels.push(kernel),
        }
    }
    Ok(kernels)
}

/// The release of a kernel whose file was not read, as in a capture.
fn by_name(
    place: &Path,
    file: &str,
    releases: &[String],
    running: Option<&str>,
) -> Result<String, String> {
    let Some(release) = release_of(file, releases, running) else {
        return Err(format!("which of the kernels in {MODULES} is {}", place.display()));
    };
    match running.filter(|running| is_other_naming(file, running, &release)) {
        None => Ok(release),
        Some(running) => Err(format!(
            "which kernel {} is: {running} runs, as rpi-update installs it, and {release} is the newest of a package",
            place.display()
        )),
    }
}

/// Whether a kernel has a module.
pub(crate) fn has(situation: &PlanInput<'_>, release: &str, module: &str) -> Has {
    let Some((directory, _)) = KNOWN.iter().find(|(_, name)| *name == module) else {
        return Has::Not;
    };
    let home = Path::new(MODULES).join(release);
    if let Some(PathState::Text(list)) = situation.facts.seen.get(&home.join("modules.builtin")) {
        let file = format!("kernel/{directory}/{module}.ko");
        if list.text.lines().any(|line| line.trim() == file) {
            return Has::BuiltIn;
        }
    }
    let file = format!("{module}.ko");
    match situation.facts.seen.get(&home.join("kernel").join(directory)) {
        Some(PathState::Directory(names)) if names.iter().any(|name| name.starts_with(&file)) => {
            Has::Module
        }
        _ => Has::Not,
    }
}

/// The modules that the kernel needs for a root on one of these disks with this filesystem, as far as it has
/// them as modules.
pub(crate) fn modules_for(
    situation: &PlanInput<'_>,
    release: &str,
    disks: &[&BlockDevice],
    filesystem: &str,
) -> Vec<String> {
    let mut names: Vec<&str> = vec![filesystem];
    for disk in disks {
        let is_by = |kind: HopKind| disk.path.iter().any(|hop| hop.kind == kind);
        if is_by(HopKind::UsbDevice) || is_by(HopKind::UsbController) || is_by(HopKind::UsbHub) {
            names.extend(["usb-storage", "uas", "sd_mod"]);
        }
        if is_by(HopKind::Scsi) || disk.name.starts_with("sd") {
            names.push("sd_mod");
        }
        if is_by(HopKind::Nvme) || disk.name.starts_with("nvme") {
            names.push("nvme");
        }
        if is_by(HopKind::MmcHost) || disk.name.starts_with("mmcblk") {
            names.push("mmc_block");
        }
        if disk.name.starts_with("vd") {
            names.push("virtio_blk");
        }
    }
    let mut wanted: Vec<String> = Vec::new();
    for name in names {
        let is_new = !wanted.iter().any(|known| known == name);
        if is_new && has(situation, release, name) == Has::Module {
            wanted.push(name.into());
        }
    }
    wanted
}

/// The modules for a root with this filesystem on whatever disk an image is written to: a card, USB, NVMe.
pub(crate) fn modules_for_any(
    situation: &PlanInput<'_>,
    release: &str,
    filesystem: &str,
) -> Vec<String> {
    let names = [filesystem, "usb-storage", "uas", "sd_mod", "mmc_block", "nvme"];
    let is_module = |name: &&str| has(situation, release, name) == Has::Module;
    let wanted = names.into_iter().filter(is_module);
    wanted.map(str::to_string).collect()
}

/// The installed kernels.
pub(crate) fn releases(situation: &PlanInput<'_>) -> Vec<String> {
    match situation.facts.seen.get(Path::new(MODULES)) {
        Some(PathState::Directory(names)) => names.clone(),
        _ => Vec::new(),
    }
}

/// Which release a file in the boot partition is: by its name, by the flavour that Raspberry Pi's packages put there
/// (the newest, as they do), else the only one or the running one.
fn release_of(file: &str, releases: &[String], running: Option<&str>) -> Option<String> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let named = releases.iter().find(|release| {
        let rest = name.strip_suffix(release.as_str());
        rest.is_some_and(|rest| rest.ends_with('-'))
    });
    if let Some(named) = named {
        return Some(named.clone());
    }
    let endings = FLAVOURS.iter().find(|(known, _)| *known == name);
    for ending in endings.map_or(&[][..], |(_, endings)| endings) {
        let is_it = |release: &&String| is_named(release, ending);
        let newest = releases.iter().filter(is_it).max_by_key(|r| version_key(r));
        if let Some(newest) = newest {
            return Some(newest.clone());
        }
    }
    match releases {
        [only] => Some(only.clone()),
        several => several.iter().find(|release| Some(release.as_str()) == running).cloned(),
    }
}

/// Whether the running kernel and this release are of one flavour, but by different makers: the file may be either.
fn is_other_naming(file: &str, running: &str, release: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let endings = FLAVOURS.iter().find(|(known, _)| *known == name);
    let endings = endings.map_or(&[][..], |(_, endings)| endings);
    let naming = |release: &str| {
        let mut all = endings.iter();
        all.position(|ending| is_named(release, ending))
    };
    matches!((naming(running), naming(release)), (Some(one), Some(other)) if one != other)
}

/// Whether a release has this ending. The oldest ends with a plus alone, which others do too.
fn is_named(release: &str, ending: &str) -> bool {
    release.ends_with(ending) && (ending != "+" || !release.contains("-v"))
}

/// The numbers of a release in order: 6.12.62 comes after 6.12.9.
fn version_key(release: &str) -> Vec<u64> {
    let numbers = release.split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_another_maker_may_be_in_the_place_of_a_packages() {
        for (file, running, release, is_other) in [
            ("kernel8.img", "6.12.50-v8+", "6.12.47+rpt-rpi-v8", true),
            ("kernel8.img", "6.12.40+rpt-rpi-v8", "6.12.47+rpt-rpi-v8", false),
            ("kernel8.img", "6.12.50-v8+", "6.12.50-v8+", false),
            ("kernel_2712.img", "6.12.50-v8-16k+", "6.12.47+rpt-rpi-2712", true),
            // Another board's file.
            ("kernel_2712.img", "6.12.50-v8+", "6.12.47+rpt-rpi-2712", false),
            ("vmlinuz", "6.1", "6.12", false),
        ] {
            assert_eq!(is_other_naming(file, running, release), is_other, "{file} {running}");
        }
    }

    #[test]
    fn a_file_is_the_newest_release_of_its_flavour() {
        let releases = [
            "6.12.9+rpt-rpi-v8",
            "6.12.47+rpt-rpi-v8",
            "6.12.47+rpt-rpi-2712",
            "6.1.21-v7+",
            "6.1.21+",
        ]
        .map(String::from);
        for (file, release) in [
            ("kernel8.img", Some("6.12.47+rpt-rpi-v8")),
            ("kernel_2712.img", Some("6.12.47+rpt-rpi-2712")),
            ("kernel7.img", Some("6.1.21-v7+")),
            ("kernel.img", Some("6.1.21+")),
            ("vmlinuz-6.12.9+rpt-rpi-v8", Some("6.12.9+rpt-rpi-v8")),
            ("vmlinuz", Some("6.1.21-v7+")),
        ] {
            let found = release_of(file, &releases, Some("6.1.21-v7+"));
            assert_eq!(found.as_deref(), release, "{file}");
        }
        assert_eq!(release_of("vmlinuz", &releases, None), None);
        assert_eq!(release_of("vmlinuz", &[], Some("6.1")), None);
        let only = ["6.12.107+deb13-arm64".to_string()];
        assert_eq!(release_of("kernel8.img", &only, None).as_ref(), only.first());
    }
}
