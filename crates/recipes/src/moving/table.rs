//! The table of mounts on its way to another root: names that may mean another disk there, and swap that stays behind.

use std::path::{Path, PathBuf};

use super::super::mounting::FSTAB;
use super::super::{PlanInput, disks};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_machine::not_copied::NotCopied;
use rubus_vocabulary::machine::{BlockKind, Machine};

/// A name that was replaced, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Renamed {
    pub(crate) was: String,
    /// Nothing where the volume has no name that lasts, as far as is known.
    pub(crate) becomes: Option<String>,
}

/// Gives lines that name a disk as the kernel counts it a name that stays when another disk is added.
pub(crate) fn with_lasting_names(table: &mut Fstab, machine: &Machine) -> Vec<Renamed> {
    let mut renamed = Vec::new();
    for entry in table.entries() {
        if !is_counted(&Name::of(&entry), machine) {
            continue;
        }
        let becomes = lasting(&entry.source, machine);
        if let Some(name) = &becomes {
            let line = Entry { source: name.clone(), ..entry.clone() };
            table.set_where(&line, |old| *old == entry);
        }
        renamed.push(Renamed { was: entry.source, becomes });
    }
    renamed
}

/// Whether a name is one of those that the kernel gives disks in the order in which it finds them.
pub(crate) fn is_counted(name: &Name, machine: &Machine) -> bool {
    let Name::Path(path) = name else { return false };
    let own = path.strip_prefix("/dev/").unwrap_or_default();
    let device = machine.device(own);
    let disk = device.and_then(|device| match device.parent.as_deref() {
        Some(parent) => machine.device(parent),
        None => Some(device),
    });
    disk.is_some_and(|disk| disk.kind == BlockKind::Disk)
}

fn lasting(path: &str, machine: &Machine) -> Option<String> {
    let device = machine.device(disks::name(path))?;
    let partuuid = device.identity.partuuid.as_ref().filter(|_| device.parent.is_some());
    let uuid = device.identity.uuid.as_ref();
    let partuuid = partuuid.map(|value| format!("PARTUUID={value}"));
    let name = partuuid.or_else(|| uuid.map(|value| format!("UUID={value}")))?;
    // Of two disks with one identifier the kernel's name is the only one that tells them apart.
    let volumes = NamedVolume::all_of(machine);
    (Name::parse(&name).resolve(&volumes).len() == 1).then_some(name)
}

/// What is said of these names beside the step that writes the table, as sentences; nothing where there are none.
pub(crate) fn renamed_words(renamed: &[Renamed]) -> String {
    let (named, unnamed): (Vec<&Renamed>, Vec<&Renamed>) =
        renamed.iter().partition(|one| one.becomes.is_some());
    let mut words = String::new();
    if !named.is_empty() {
        let pairs = named.iter().map(|one| {
            format!("{} becomes {}", one.was, one.becomes.as_deref().unwrap_or_default())
        });
        words += &format!(
            " The kernel gives such names in the order in which it finds disks, and there is one more now: {}.",
            pairs.collect::<Vec<_>>().join(", ")
        );
    }
    if !unnamed.is_empty() {
        let names: Vec<&str> = unnamed.iter().map(|one| one.was.as_str()).collect();
        words += &format!(
            " {} may be another disk at the next start: no name that lasts is known for it here, write its UUID (blkid) there.",
            names.join(", ")
        );
    }
    words
}

/// What a copy of the root leaves out: with the swap files that the table lists and nothing uses now.
pub(crate) fn left_out(situation: &PlanInput<'_>) -> NotCopied {
    let table = Fstab::parse(situation.text(Path::new(FSTAB)));
    let files = swap_files_on_root(&table, situation.machine);
    let left_out = NotCopied::of(situation.machine);
    let files: Vec<PathBuf> =
        files.into_iter().map(PathBuf::from).filter(|file| !left_out.has(file)).collect();
    left_out.and(files)
}

/// The swap files of a table that lie on the root itself: they are no part of a copy of it.
pub(crate) fn swap_files_on_root(table: &Fstab, machine: &Machine) -> Vec<String> {
    let swaps = table.swaps().into_iter().map(|entry| entry.source);
    swaps
        .filter(|path| path.starts_with('/') && !path.starts_with("/dev/"))
        .filter(|path| is_on_root(path, table, machine))
        .collect()
}

/// Whether nothing else than the root is mounted above a path, now or by the table.
fn is_on_root(path: &str, table: &Fstab, machine: &Machine) -> bool {
    let mounted = machine.mounts.iter().map(|mount| mount.point.clone());
    let listed = table.entries().into_iter().filter(|entry| !entry.is_swap());
    let mut places = mounted.chain(listed.map(|entry| entry.target));
    !places
        .any(|place| place != "/" && place.starts_with('/') && Path::new(path).starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    fn machine() -> Machine {
        let mut machine = fixture::pi3_with_usb_ssd();
        for device in &mut machine.block_devices {
            if device.name == "sda1" {
                device.identity.partuuid = Some("4f1c-01".into());
            }
        }
        machine
    }

    #[test]
    fn counted_names_become_lasting_ones_and_all_else_stays() {
        let text = "/dev/sda1 /srv/data btrfs defaults 0 2\n\
                    # /dev/sda1 /old ext4\n\
                    UUID=1 /x ext4 nofail 0 0\n\
                    /dev/mapper/secret /y ext4 nofail 0 0\n\
                    /dev/disk/by-path/usb-1-part1 /z ext4 nofail 0 0\n\
                    /dev/zram0 none swap sw 0 0\n";
        let mut table = Fstab::parse(text);
        let renamed = with_lasting_names(&mut table, &machine());
        let becomes = Some("PARTUUID=4f1c-01".to_string());
        assert_eq!(renamed, [Renamed { was: "/dev/sda1".into(), becomes }]);
        let expected = text.replacen("/dev/sda1 /srv/data", "PARTUUID=4f1c-01 /srv/data", 1);
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn a_name_without_a_lasting_one_is_told() {
        let mut machine = machine();
        for device in &mut machine.block_devices {
            device.identity = Default::default();
        }
        let mut table = Fstab::parse("/dev/sda1 /srv/data btrfs defaults 0 2\n");
        let renamed = with_lasting_names(&mut table, &machine);
        assert_eq!(renamed, [Renamed { was: "/dev/sda1".into(), becomes: None }]);
        assert_eq!(table.text(), "/dev/sda1 /srv/data btrfs defaults 0 2\n");
    }

    #[test]
    fn swap_files_of_other_disks_are_none_of_the_roots() {
        let table = Fstab::parse(
            "/var/swap none swap sw 0 0\n/srv/data/swap none swap sw 0 0\n/mnt/nas/swap none swap sw 0 0\n\
             UUID=2 /mnt/nas ext4 nofail 0 0\n/dev/zram0 none swap sw 0 0\n",
        );
        assert_eq!(swap_files_on_root(&table, &machine()), ["/var/swap"]);
    }
}
