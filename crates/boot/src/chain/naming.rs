//! Which root a way to start names, and what has to be done before it is one.

use super::ChainFacts;
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;
use crate::crypttab::Crypttab;
use crate::volume::{Name, NamedVolume};

/// What has to be done to a root before it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RootKind {
    /// Nothing: it is mounted as it is.
    Plain,
    /// It is opened from this volume, where that is known.
    Encrypted(Option<String>),
    /// A volume group is put together.
    Lvm,
    /// It is no disk of the board.
    Elsewhere,
}

/// The volume that a chain's root is on, to read its files from.
pub fn named_root<'a>(facts: &'a ChainFacts, path: &BootPath) -> Option<&'a NamedVolume> {
    match root_name(facts, path)?.resolve(&facts.volumes).as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// The path of the encrypted volume that a chain's root is opened from.
pub fn opened_from(facts: &ChainFacts, path: &BootPath) -> Option<String> {
    match root_kind(facts, path) {
        RootKind::Encrypted(source) => source,
        RootKind::Plain | RootKind::Lvm | RootKind::Elsewhere => None,
    }
}

pub(super) fn root_kind(facts: &ChainFacts, path: &BootPath) -> RootKind {
    let Some(name) = root_name(facts, path) else { return RootKind::Elsewhere };
    /// A server's directory, and the files of the initramfs themselves. Source: Linux, nfsroot.rst and initrd.rst.
    const NO_DISKS: [&str; 4] = ["/dev/nfs", "/dev/ram", "/dev/ram0", "/dev/cifs"];
    let is_no_disk = NO_DISKS.iter().any(|path| name == Name::Path((*path).into()));
    if !name.is_volume() || is_no_disk {
        return RootKind::Elsewhere;
    }
    if let [one] = name.resolve(&facts.volumes).as_slice() {
        match one.filesystem.as_deref() {
            Some("crypto_LUKS") => return RootKind::Encrypted(Some(one.path.clone())),
            Some("LVM2_member") => return RootKind::Lvm,
            Some(_) | None => {}
        }
    }
    let Name::Path(node) = &name else { return RootKind::Plain };
    let table = facts.root.crypttab.as_deref().unwrap_or_default();
    let entries = Crypttab::parse(table).entries();
    if let Some(entry) = entries.iter().find(|entry| entry.path() == *node) {
        let source = entry.volume().resolve(&facts.volumes).first().map(|one| one.path.clone());
        return RootKind::Encrypted(source);
    }
    of_mapped(facts, path, node)
}

/// What a path below `/dev/mapper` is made of, as far as the volumes say.
fn of_mapped(facts: &ChainFacts, path: &BootPath, node: &str) -> RootKind {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let of_kind = |kind: &str| -> Vec<&NamedVolume> {
        facts.volumes.iter().filter(|one| one.filesystem.as_deref() == Some(kind)).collect()
    };
    let is_mapped = node.starts_with("/dev/mapper/");
    let luks = of_kind("crypto_LUKS");
    let says_so = ["cryptdevice", "cryptopts", "rd.luks.name"].iter().any(|word| line.has(word));
    if is_mapped && (says_so || !luks.is_empty()) {
        let only = if luks.len() == 1 { luks.first() } else { None };
        return RootKind::Encrypted(only.map(|one| one.path.clone()));
    }
    let is_below =
        node.trim_start_matches("/dev/").contains('/') && !node.starts_with("/dev/disk/");
    if is_below && !of_kind("LVM2_member").is_empty() { RootKind::Lvm } else { RootKind::Plain }
}

/// What `root=` of a way to start names.
pub(super) fn root_name(facts: &ChainFacts, path: &BootPath) -> Option<Name> {
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline)?);
    line.get("root").map(Name::parse)
}

/// The filesystem of the one volume that a name means.
pub(super) fn root_filesystem(facts: &ChainFacts, name: &Name) -> Option<String> {
    match name.resolve(&facts.volumes).as_slice() {
        [one] => one.filesystem.clone(),
        _ => None,
    }
}
