//! Texts of the new system: its table of mounts and the kernel's command line.

use std::path::Path;

use super::super::disks::volumes;
use super::layout::{NewDisk, SWAP_POINT, SWAP_SUBVOLUME};
use super::memory::SWAP_PRIORITY;
use rubus_boot::cmdline_txt::{CmdlineError, CmdlineTxt};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::Name;
use rubus_machine::in_use::is_on;
use rubus_vocabulary::machine::Machine;

/// The new system's `/etc/fstab`: root and swap are new, all other lines stay byte for byte.
pub(super) fn fstab(old: &str, new: &NewDisk, machine: &Machine) -> String {
    let mut table = Fstab::parse(old);
    let known = volumes(machine);
    let old_disks: Vec<&str> = super::current::root(machine)
        .into_iter()
        .chain(super::current::boot(machine))
        .flat_map(|mount| super::current::disks(machine, mount))
        .map(|disk| disk.name.as_str())
        .collect();
    table.remove(|entry| is_old_swap(entry, &known, machine, &old_disks));
    let source = format!("PARTUUID={}", new.layout.root.partuuid);
    let options = &new.root_volume.mount_options;
    let root = Entry::new(&source, "/", new.filesystem.name(), options);
    table.set(&root.checked_in(new.filesystem.check_pass()));
    if let Some(swap) = &new.swap {
        // The start does not wait for it: without its swap the system still comes up.
        let options = format!("nofail,pri={SWAP_PRIORITY}");
        table.set(&Entry::new(&format!("UUID={}", swap.uuid), "none", "swap", &options));
    }
    if new.layout.boot.is_some() {
        without_the_card(&mut table);
    }
    if new.swap_volume.is_some() {
        let options = format!("subvol={SWAP_SUBVOLUME},noatime,nofail");
        table.set(&Entry::new(&source, SWAP_POINT, "btrfs", &options));
    }
    if let Some(file) = new.swap_file() {
        let options = format!("nofail,pri={SWAP_PRIORITY}");
        table.set(&Entry::new(&file, "none", "swap", &options));
    }
    table.text().to_string()
}

/// A disk with a boot partition of its own starts without the card; the line of the card's must not end that start in the
/// emergency shell (systemd.mount(5): without `nofail` a missing disk fails local-fs.target).
fn without_the_card(table: &mut Fstab) {
    for point in ["/boot/firmware", "/boot"] {
        let Some(mut entry) = table.at(point) else { continue };
        let is_optional = ["nofail", "noauto"].iter().any(|option| entry.has_option(option));
        if entry.filesystem == "vfat" && !is_optional {
            entry.options = format!("{},nofail,x-systemd.device-timeout=10s", entry.options);
            table.set(&entry);
        }
    }
}

/// The same for an image: its boot partition is a new one too.
pub(super) fn image_fstab(old: &str, new: &NewDisk, machine: &Machine, boot: &Path) -> String {
    let mut table = Fstab::parse(fstab(old, new, machine));
    if let Some(partition) = &new.layout.boot {
        let point = boot.display().to_string();
        let source = format!("PARTUUID={}", partition.partuuid);
        // The only boot partition that an image has is on the new disk.
        let options = Fstab::parse(old).at(&point).map(|entry| entry.options);
        let options = options.unwrap_or_else(|| "defaults".into());
        table.set(&Entry::new(&source, &point, "vfat", &options).checked_in(2));
    }
    table.text().to_string()
}

/// Swap in a file of the old root, or on a disk that the system started from.
fn is_old_swap(
    entry: &Entry,
    known: &[rubus_boot::volume::NamedVolume],
    machine: &Machine,
    old_disks: &[&str],
) -> bool {
    if !entry.is_swap() {
        return false;
    }
    let name = Name::of(entry);
    if let Name::Other(path) = &name {
        return path.starts_with('/');
    }
    let mut found = name.resolve(known).into_iter();
    found.any(|volume| {
        let device = volume.path.strip_prefix("/dev/").unwrap_or_default();
        old_disks.iter().any(|disk| is_on(machine, device, disk))
    })
}

/// The lines of a table that name a volume on this disk, which will be gone.
pub(super) fn lines_about(table: &str, machine: &Machine, disk: &str) -> Vec<String> {
    let known = volumes(machine);
    let entries = Fstab::parse(table).entries().into_iter();
    let about = entries.filter(|entry| {
        let found = Name::of(entry).resolve(&known);
        found.iter().any(|volume| {
            let device = volume.path.strip_prefix("/dev/").unwrap_or_default();
            is_on(machine, device, disk)
        })
    });
    about.map(|entry| format!("{} at {}", entry.source, entry.target)).collect()
}

/// A kernel's command line for the new root; every other word stays. With the words of a first start that were
/// taken out.
///
/// # Errors
/// [`CmdlineError`] when the line would be too long for the kernel.
pub(super) fn cmdline(
    old: &str,
    new: &NewDisk,
    method: Option<&str>,
    is_32_bit_arm: bool,
) -> Result<(String, Vec<String>), CmdlineError> {
    let mut line = CmdlineTxt::parse(old);
    let removed = line.remove_first_start();
    line.set("root", &format!("PARTUUID={}", new.layout.root.partuuid))?;
    line.set("rootfstype", new.filesystem.name())?;
    match new.filesystem.root_flags(method) {
        Some(flags) => line.set("rootflags", &flags)?,
        // Those of the old root may be what another filesystem refuses.
        None => drop(line.remove("rootflags")),
    }
    line.set_flag("rootwait")?;
    line.fits(is_32_bit_arm)?;
    Ok((line.text().to_string(), removed))
}
