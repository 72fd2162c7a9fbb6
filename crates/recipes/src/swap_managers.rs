//! Programs that make swap at each boot, switched off so that a plan can make it instead.
//!
//! None is uninstalled: what they read at a boot says "no swap" afterwards, and undoing puts that back. The steps are
//! for the root that was looked at, or, through [`super::edits::on`], for a copy of it.

use std::path::{Path, PathBuf};

use super::Seen;
use super::edits::{Edits, with_assignment};
use super::units::UNITS;
use rubus_change::plan::Step;
use rubus_vocabulary::machine::SwapManager;

const DPHYS: &str = "/etc/dphys-swapfile";
const RPI_SWAP: &str = "/etc/rpi/swap.conf.d";
const ZRAM_GENERATOR: &str = "/etc/systemd/zram-generator.conf.d";
/// How many letters the name of a drop-in may begin with.
const MAX_LETTERS: usize = 8;
/// Services that switch swap on.
const SERVICES: [&str; 2] = ["dphys-swapfile.service", "zramswap.service"];

/// What [`switch_off`] wants to have been looked at.
pub(super) fn paths() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = vec![DPHYS.into()];
    for directory in [RPI_SWAP, ZRAM_GENERATOR].map(Path::new) {
        paths.extend([directory.join("*"), directory.join(file_name(2))]);
        // With the directories above, which may be missing.
        paths.extend(directory.ancestors().take(2).map(PathBuf::from));
    }
    paths.extend(SERVICES.map(|unit| Path::new(UNITS).join(unit)));
    paths.retain(|path| path != Path::new("/") && path != Path::new("/etc"));
    paths.sort();
    paths.dedup();
    paths
}

/// Where rpi-swap is told.
pub(super) fn rpi_swap_file(managers: &[SwapManager]) -> PathBuf {
    last_drop_in(RPI_SWAP, managers.iter().find(|manager| manager.name == "rpi-swap"))
}

/// Where zram-generator is told.
pub(super) fn zram_generator_file(managers: &[SwapManager]) -> PathBuf {
    last_drop_in(ZRAM_GENERATOR, managers.iter().find(|manager| manager.name == "zram-generator"))
}

/// Drop-ins of all directories are read in the order of their names, and the last one wins: a name behind those that there
/// are.
fn last_drop_in(directory: &str, manager: Option<&SwapManager>) -> PathBuf {
    let files = manager.map_or("", |manager| manager.settings.source()).split(", ");
    let drop_ins = files.filter_map(|file| {
        let (above, name) = file.rsplit_once('/')?;
        above.ends_with(".conf.d").then_some(name)
    });
    let last = drop_ins.max().unwrap_or_default();
    let mut names = (2..=MAX_LETTERS).map(file_name);
    let name = names.find(|name| name.as_str() >= last);
    Path::new(directory).join(name.unwrap_or_else(|| format!("{last}-rubus.conf")))
}

fn file_name(letters: usize) -> String {
    format!("{}-rubus.conf", "z".repeat(letters))
}

/// Steps after which none of these managers makes swap at the next boot. What is in use now stays in use.
pub(super) fn switch_off<'m>(
    managers: impl IntoIterator<Item = &'m SwapManager>,
    seen: &Seen,
) -> Vec<Step> {
    let mut edits = Edits::new(seen);
    for manager in managers {
        match manager.name.as_str() {
            "dphys-swapfile" => dphys(seen, &mut edits),
            "rpi-swap" => rpi_swap(manager, &mut edits),
            "zram-generator" => zram_generator(manager, &mut edits),
            "zram-tools" => edits.mask(
                "zram-tools-off",
                "zram-tools makes its compressed swap at each boot; a masked service is not started.",
                "zramswap.service",
            ),
            _ => {}
        }
    }
    edits.into_steps()
}

/// Steps after which none of these managers makes swap on a disk at the next boot; compressed memory stays.
pub(super) fn memory_only<'m>(
    managers: impl IntoIterator<Item = &'m SwapManager>,
    seen: &Seen,
) -> Vec<Step> {
    let mut edits = Edits::new(seen);
    for manager in managers {
        match manager.name.as_str() {
            "dphys-swapfile" => dphys(seen, &mut edits),
            "rpi-swap" if says(manager, "[Main] Mechanism", "none") => {}
            "rpi-swap" => edits.write(
                "rpi-swap-memory",
                "rpi-swap makes the swap of Raspberry Pi OS at each boot; this tells it to make compressed memory, and no file.",
                &last_drop_in(RPI_SWAP, Some(manager)),
                "# Made by rubus: compressed memory, and no swap file.\n[Main]\nMechanism=zram\n".into(),
            ),
            _ => {}
        }
    }
    edits.into_steps()
}

fn dphys(seen: &Seen, edits: &mut Edits<'_>) {
    let text = match seen.get(Path::new(DPHYS)) {
        Some(super::PathState::Text(file)) => file.text.clone(),
        _ => String::new(),
    };
    edits.write(
        "dphys-swapfile-size",
        "dphys-swapfile reads here how large its swap file is; 0 is none.",
        Path::new(DPHYS),
        with_assignment(&text, "CONF_SWAPSIZE", "=", "0"),
    );
    edits.mask(
        "dphys-swapfile-off",
        "A masked service is not started, and so neither makes a swap file nor removes one.",
        "dphys-swapfile.service",
    );
}

fn rpi_swap(manager: &SwapManager, edits: &mut Edits<'_>) {
    if says(manager, "[Main] Mechanism", "none") {
        return;
    }
    edits.write(
        "rpi-swap-off",
        "rpi-swap makes the swap of Raspberry Pi OS at each boot; this tells it to make none.",
        &last_drop_in(RPI_SWAP, Some(manager)),
        "# Made by rubus: the swap of this machine is made by a recipe.\n[Main]\nMechanism=none\n"
            .into(),
    );
}

fn zram_generator(manager: &SwapManager, edits: &mut Edits<'_>) {
    // What rpi-swap has put into /run is not made again once that is switched off.
    let files = manager.settings.source().split(", ");
    let is_own = files.into_iter().any(|path| !path.starts_with("/run/"));
    let devices = devices(manager);
    let is_off = |device: &String| says(manager, &format!("[{device}] zram-size"), "0");
    if !is_own || devices.iter().all(is_off) {
        return;
    }
    let mut text = "# Made by rubus: a size of 0 is no device.\n".to_string();
    for device in devices {
        text.push_str(&format!("[{device}]\nzram-size = 0\n"));
    }
    edits.write(
        "zram-generator-off",
        "zram-generator makes compressed swap in memory at each boot; a size of 0 tells it to make none.",
        &last_drop_in(ZRAM_GENERATOR, Some(manager)),
        text,
    );
}

/// The devices that zram-generator is configured for, in order.
fn devices(manager: &SwapManager) -> Vec<String> {
    let settings = manager.settings.value().map(Vec::as_slice);
    let sections = settings.unwrap_or_default().iter().filter_map(|line| {
        let (section, _) = line.strip_prefix('[')?.split_once(']')?;
        section.starts_with("zram").then(|| section.to_string())
    });
    let mut devices: Vec<String> = sections.collect();
    devices.sort();
    devices.dedup();
    devices
}

fn says(manager: &SwapManager, name: &str, value: &str) -> bool {
    let settings = manager.settings.value().map(Vec::as_slice);
    let mut settings = settings.unwrap_or_default().iter();
    settings.any(|line| *line == format!("{name} = {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathState;
    use rubus_change::plan::{Action, TextFile};
    use rubus_change::steps::WriteFile;
    use rubus_vocabulary::fact::Fact;

    fn manager(name: &str, settings: &[&str], source: &str) -> SwapManager {
        let settings = settings.iter().map(|line| line.to_string()).collect();
        SwapManager { name: name.into(), settings: Fact::known(settings, source) }
    }

    fn nothing_there() -> Seen {
        paths().into_iter().map(|path| (path, PathState::Absent)).collect()
    }

    fn shown(steps: &[Step]) -> String {
        let lines = steps.iter().map(|step| {
            let text = match &step.action {
                Action::WriteFile(WriteFile { becomes, .. }) => becomes.text.clone(),
                _ => String::new(),
            };
            format!("{}: {}\n{text}", step.id, step.action.title())
        });
        lines.collect::<Vec<_>>().join("")
    }

    #[test]
    fn every_manager_is_told_in_its_own_words() {
        let mut seen = nothing_there();
        let dphys = "# mine\nCONF_SWAPSIZE=512\nCONF_MAXSWAP=2048\n";
        seen.insert(DPHYS.into(), PathState::Text(TextFile::public(dphys)));
        seen.insert("/etc/rpi".into(), PathState::Directory(Vec::new()));
        seen.insert("/etc/systemd".into(), PathState::Directory(Vec::new()));
        seen.insert(UNITS.into(), PathState::Directory(Vec::new()));
        let managers = [
            manager("dphys-swapfile", &["CONF_SWAPSIZE = 512"], DPHYS),
            manager("rpi-swap", &["[Main] Mechanism = auto"], "/etc/rpi/swap.conf"),
            manager(
                "zram-generator",
                &["[zram0] zram-size = ram / 2", "[zram1] mount-point = /tmp"],
                "/usr/lib/systemd/zram-generator.conf",
            ),
            manager("zram-tools", &["PERCENT = 50"], "/etc/default/zramswap"),
        ];
        insta::assert_snapshot!(shown(&switch_off(&managers, &seen)));
    }

    #[test]
    fn compressed_memory_stays_where_only_disks_are_to_be_left_alone() {
        let seen = nothing_there();
        let managers = [
            manager("rpi-swap", &["[Main] Mechanism = auto"], "/etc/rpi/swap.conf"),
            manager("zram-tools", &["PERCENT = 50"], "/etc/default/zramswap"),
        ];
        let steps = shown(&memory_only(&managers, &seen));
        assert!(steps.ends_with("[Main]\nMechanism=zram\n"), "{steps}");
        let off = manager("rpi-swap", &["[Main] Mechanism = none"], "/etc/rpi/swap.conf");
        assert_eq!(shown(&memory_only(&[off], &seen)), "");
    }

    #[test]
    fn a_drop_in_is_named_behind_those_that_there_are() {
        for (source, name) in [
            ("/etc/rpi/swap.conf", "zz-rubus.conf"),
            ("/etc/rpi/swap.conf, /etc/rpi/swap.conf.d/20-mine.conf", "zz-rubus.conf"),
            ("/etc/rpi/swap.conf, /etc/rpi/swap.conf.d/zz-rubus.conf", "zz-rubus.conf"),
            ("/run/rpi/swap.conf.d/zzz-local.conf", "zzz-rubus.conf"),
            ("/etc/rpi/swap.conf.d/zzzz-rubus.conf", "zzzz-rubus.conf"),
            ("/etc/rpi/swap.conf.d/~last.conf", "~last.conf-rubus.conf"),
        ] {
            let managers = [manager("rpi-swap", &[], source)];
            let expected = Path::new(RPI_SWAP).join(name);
            assert_eq!(rpi_swap_file(&managers), expected, "{source}");
        }
        assert_eq!(zram_generator_file(&[]), Path::new(ZRAM_GENERATOR).join("zz-rubus.conf"));
    }

    #[test]
    fn what_is_off_already_is_left_alone() {
        let mut seen = nothing_there();
        let off = PathState::Text(TextFile::public("CONF_SWAPSIZE=0\n"));
        seen.insert(DPHYS.into(), off);
        for unit in SERVICES {
            let masked = PathState::Text(TextFile::public(""));
            seen.insert(Path::new(UNITS).join(unit), masked);
        }
        let managers = [
            manager("dphys-swapfile", &["CONF_SWAPSIZE = 0"], DPHYS),
            manager("rpi-swap", &["[Main] Mechanism = none"], "/etc/rpi/swap.conf"),
            manager("zram-generator", &["[zram0] zram-size = 0"], "/etc/x"),
            manager("zram-generator", &[], "/etc/x (absent: defaults)"),
            manager("zram-generator", &["[zram0] zram-size = 9"], "/run/x"),
            manager("zram-tools", &[], "/etc/default/zramswap"),
        ];
        assert_eq!(shown(&switch_off(&managers, &seen)), "");
    }
}
