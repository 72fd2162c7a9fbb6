//! Texts of the new system: its table of mounts and the kernel's command line.

use std::path::Path;

use super::super::moving::table::{Renamed, swap_files_on_root, with_lasting_names};
use super::layout::{NewDisk, SWAP_POINT, SWAP_SUBVOLUME};
use super::memory::SWAP_PRIORITY;
use rubus_boot::cmdline_txt::{CmdlineError, CmdlineTxt};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_machine::in_use::is_on;
use rubus_vocabulary::machine::Machine;

/// The new system's `/etc/fstab`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewTable {
    pub(super) text: String,
    /// Names that may have meant another disk.
    pub(super) renamed: Vec<Renamed>,
}

/// The new system's `/etc/fstab`: root and swap are new, names that do not last are replaced, all else stays byte for byte.
pub(super) fn fstab(old: &str, new: &NewDisk, machine: &Machine) -> NewTable {
    let mut table = with_new_root(old, new, machine);
    let renamed = with_lasting_names(&mut table, machine);
    NewTable { text: table.text().to_string(), renamed }
}

fn with_new_root(old: &str, new: &NewDisk, machine: &Machine) -> Fstab {
    let mut table = Fstab::parse(old);
    let known = NamedVolume::all_of(machine);
    let old_disks: Vec<&str> = super::current::root(machine)
        .into_iter()
        .chain(super::current::boot(machine))
        .flat_map(|mount| super::current::disks(machine, mount))
        .map(|disk| disk.name.as_str())
        .collect();
    let files = swap_files_on_root(&table, machine);
    table.remove(|entry| {
        entry.is_swap()
            && (files.contains(&entry.source) || is_on_disks(entry, &known, machine, &old_disks))
    });
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
    table
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
pub(super) fn image_fstab(old: &str, new: &NewDisk, machine: &Machine, boot: &Path) -> NewTable {
    let mut table = with_new_root(old, new, machine);
    if let Some(partition) = &new.layout.boot {
        let point = boot.display().to_string();
        let source = format!("PARTUUID={}", partition.partuuid);
        // The only boot partition that an image has is on the new disk.
        let options = Fstab::parse(old).at(&point).map(|entry| entry.options);
        let options = options.unwrap_or_else(|| "defaults".into());
        table.set(&Entry::new(&source, &point, "vfat", &options).checked_in(2));
    }
    NewTable { text: table.text().to_string(), renamed: Vec::new() }
}

/// Whether a line names something on one of these disks.
fn is_on_disks(entry: &Entry, known: &[NamedVolume], machine: &Machine, disks: &[&str]) -> bool {
    Name::of(entry).resolve(known).into_iter().any(|volume| {
        let device = volume.path.strip_prefix("/dev/").unwrap_or_default();
        disks.iter().any(|disk| is_on(machine, device, disk))
    })
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
