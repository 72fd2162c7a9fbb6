//! The volumes of a machine and the ways in which boot files name them.

use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::mount_entry::Entry;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that can be mounted, or used as swap: a partition, an array, a whole disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedVolume {
    /// Its node ("/dev/sda2").
    pub path: String,
    /// Other paths that lead to it ("/dev/disk/by-id/...").
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Of the partition: "8a676486-02" in an MBR, a GUID in a GPT.
    pub partuuid: Option<String>,
    /// Of the partition, in a GPT.
    pub partlabel: Option<String>,
    /// Of the filesystem or the swap area. Members of an array have none of their own.
    pub uuid: Option<String>,
    /// Of the filesystem or the swap area.
    pub label: Option<String>,
    /// The type by its superblock, as it is mounted ("ext4", "vfat", "swap").
    pub filesystem: Option<String>,
}

impl NamedVolume {
    /// The volumes of a machine under all the names that its survey knows.
    pub fn all_of(machine: &Machine) -> Vec<NamedVolume> {
        let mounted_as = |name: &str| {
            let mut mounts = machine.mounts.iter();
            mounts.find(|mount| mount.device.as_deref() == Some(name))
        };
        let devices = machine.block_devices.iter();
        let volumes = devices.map(|device| NamedVolume {
            path: format!("/dev/{}", device.name),
            partuuid: device.identity.partuuid.clone(),
            uuid: device.identity.uuid.clone(),
            label: device.identity.label.clone(),
            partlabel: device.identity.partlabel.clone(),
            links: device.identity.links.clone(),
            filesystem: device
                .content
                .text()
                .map(str::to_string)
                .or_else(|| mounted_as(&device.name).map(|mount| mount.filesystem.clone())),
        });
        volumes.collect()
    }

    /// The disk that it is a partition of, as far as its name tells: "/dev/mmcblk0", "/dev/sda".
    pub fn disk(&self) -> Option<&str> {
        const WITH_P: [&str; 2] = ["mmcblk", "nvme"];
        const LETTERS: [&str; 3] = ["sd", "vd", "hd"];
        let name = self.path.strip_prefix("/dev/")?;
        let disk = self.path.trim_end_matches(|c: char| c.is_ascii_digit());
        if disk.len() == self.path.len() {
            return None;
        }
        if WITH_P.iter().any(|prefix| name.starts_with(prefix)) {
            return disk.strip_suffix('p');
        }
        LETTERS.iter().any(|prefix| name.starts_with(prefix)).then_some(disk)
    }
}

/// How a volume is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// `PARTUUID=`.
    PartUuid(String),
    /// `PARTLABEL=`.
    PartLabel(String),
    /// `UUID=`.
    Uuid(String),
    /// `LABEL=`.
    Label(String),
    /// A path below `/dev`. It may lead to another disk at the next start.
    Path(String),
    /// No volume: "tmpfs", "server:/export", a file.
    Other(String),
}

impl Name {
    /// How the source of a line of fstab is named.
    pub fn of(entry: &Entry) -> Name {
        Name::parse(&entry.source)
    }

    /// Reads the first column of an fstab line or the value of `root=`. Links that udev makes
    /// (`/dev/disk/by-uuid/...`) are the same as what they say.
    pub fn parse(text: &str) -> Name {
        let bare = |value: &str| {
            let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
            inner.unwrap_or(value).to_string()
        };
        type Make = fn(String) -> Name;
        const MAKERS: [(&str, &str, Make); 4] = [
            ("PARTUUID=", "/dev/disk/by-partuuid/", Name::PartUuid),
            ("PARTLABEL=", "/dev/disk/by-partlabel/", Name::PartLabel),
            ("UUID=", "/dev/disk/by-uuid/", Name::Uuid),
            ("LABEL=", "/dev/disk/by-label/", Name::Label),
        ];
        for (tag, directory, make) in MAKERS {
            if let Some(value) = text.strip_prefix(tag) {
                return make(bare(value));
            }
            if let Some(value) = text.strip_prefix(directory) {
                return make(unescape_hex(value));
            }
        }
        if text.starts_with("/dev/") { Name::Path(text.into()) } else { Name::Other(text.into()) }
    }

    /// Whether it names a volume rather than something else.
    pub fn is_volume(&self) -> bool {
        !matches!(self, Name::Other(_))
    }

    /// Whether it stays true when disks are plugged in another order.
    pub fn is_lasting(&self) -> bool {
        match self {
            Name::Path(path) => path.starts_with("/dev/disk/by-id/"),
            Name::Other(_) => false,
            _ => true,
        }
    }

    /// Whether the kernel understands it in `root=` without an initial RAM filesystem. Source: Linux,
    /// block/early-lookup.c.
    pub fn is_known_to_kernel(&self) -> bool {
        match self {
            Name::PartUuid(_) | Name::PartLabel(_) => true,
            Name::Path(path) => !path["/dev/".len()..].contains('/'),
            _ => false,
        }
    }

    /// The volume's identifier, where this is it but for capital letters. The kernel finds that one; programs do not, as they
    /// compare identifiers letter by letter. Source: mount(8); util-linux, `blkid --match-token`.
    pub fn in_other_case<'a>(&self, volume: &'a NamedVolume) -> Option<&'a str> {
        let (wanted, own) = match self {
            Name::PartUuid(wanted) => (wanted, volume.partuuid.as_deref()?),
            Name::Uuid(wanted) => (wanted, volume.uuid.as_deref()?),
            Name::PartLabel(_) | Name::Label(_) | Name::Path(_) | Name::Other(_) => return None,
        };
        (own != wanted && own.eq_ignore_ascii_case(wanted)).then_some(own)
    }

    /// A name as people are shown it. Of what is on another machine only how it is reached: a user, a password and a server may
    /// follow (dracut.cmdline(7): `iscsi:USER:PASSWORD@SERVER`), and nothing of it has to be compared with a disk.
    pub fn shown(text: &str) -> String {
        if Name::parse(text).is_volume() {
            return text.to_string();
        }
        let of_server = text.strip_prefix("//").map(|_| "//…".to_string());
        let of_scheme = || {
            let (scheme, _) = text.split_once(':')?;
            let is_scheme = scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            Some(if is_scheme { format!("{scheme}:…") } else { "…".into() })
        };
        of_server.or_else(of_scheme).unwrap_or_else(|| text.to_string())
    }

    /// The volumes that it may mean, in the order of the list.
    pub fn resolve<'a>(&self, volumes: &'a [NamedVolume]) -> Vec<&'a NamedVolume> {
        let same = |own: &Option<String>, wanted: &str| {
            own.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(wanted))
        };
        let is_it = |volume: &NamedVolume| match self {
            Name::PartUuid(wanted) => same(&volume.partuuid, wanted),
            Name::Uuid(wanted) => same(&volume.uuid, wanted),
            Name::PartLabel(wanted) => volume.partlabel.as_ref() == Some(wanted),
            Name::Label(wanted) => volume.label.as_ref() == Some(wanted),
            Name::Path(path) => volume.path == *path || volume.links.contains(path),
            Name::Other(_) => false,
        };
        volumes.iter().filter(|volume| is_it(volume)).collect()
    }
}

/// Whether several volumes of one name are the members of one filesystem, which have its UUID in common. Copies of a whole
/// disk have their PARTUUIDs in common, too.
pub fn are_members(several: &[&NamedVolume]) -> bool {
    const POOLS: [&str; 2] = ["btrfs", "bcachefs"];
    let is_pool = |kind: &str| several.iter().all(|one| one.filesystem.as_deref() == Some(kind));
    let is_one =
        several.windows(2).all(|pair| pair[0].uuid.is_some() && pair[0].uuid == pair[1].uuid);
    let named: Vec<&str> = several.iter().filter_map(|one| one.partuuid.as_deref()).collect();
    let distinct: BTreeSet<&str> = named.iter().copied().collect();
    several.len() > 1
        && POOLS.iter().any(|kind| is_pool(kind))
        && is_one
        && distinct.len() == named.len()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::PartUuid(value) => write!(f, "PARTUUID={value}"),
            Name::PartLabel(value) => write!(f, "PARTLABEL={value}"),
            Name::Uuid(value) => write!(f, "UUID={value}"),
            Name::Label(value) => write!(f, "LABEL={value}"),
            Name::Path(value) | Name::Other(value) => f.write_str(value),
        }
    }
}

/// Undoes udev's escapes in the names of links: `\x20` is a space.
fn unescape_hex(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.strip_prefix(b"x").and_then(|tail| tail.get(..2));
        let byte = digits
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(path: &str, partuuid: &str, uuid: &str, label: &str) -> NamedVolume {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
        NamedVolume {
            path: path.into(),
            partuuid: some(partuuid),
            uuid: some(uuid),
            label: some(label),
            ..NamedVolume::default()
        }
    }

    #[test]
    fn of_a_root_on_another_machine_only_its_kind_is_shown() {
        for (text, expected) in [
            ("iscsi:anna:secret@nas::::iqn.x:disk", "iscsi:…"),
            ("nbd:nas:disk", "nbd:…"),
            ("anna@nas:/x", "…"),
            ("//nas/share", "//…"),
            ("ZFS=tank/root", "ZFS=tank/root"),
            ("PARTUUID=8a676486-02", "PARTUUID=8a676486-02"),
            ("/dev/disk/by-uuid/5de4-665c", "/dev/disk/by-uuid/5de4-665c"),
            ("", ""),
        ] {
            assert_eq!(Name::shown(text), expected);
        }
    }

    #[test]
    fn every_way_to_name_a_volume_leads_to_it() {
        let volumes = [
            volume("/dev/mmcblk0p1", "8a676486-01", "5DE4-665C", "bootfs"),
            volume("/dev/mmcblk0p2", "8a676486-02", "aabb-cc", "my root"),
        ];
        for (text, expected) in [
            ("PARTUUID=8A676486-02", "/dev/mmcblk0p2"),
            ("UUID=\"5de4-665c\"", "/dev/mmcblk0p1"),
            ("LABEL=bootfs", "/dev/mmcblk0p1"),
            ("/dev/disk/by-label/my\\x20root", "/dev/mmcblk0p2"),
            ("/dev/disk/by-uuid/aabb-cc", "/dev/mmcblk0p2"),
            ("/dev/mmcblk0p1", "/dev/mmcblk0p1"),
        ] {
            let found = Name::parse(text).resolve(&volumes);
            let paths: Vec<&str> = found.iter().map(|volume| volume.path.as_str()).collect();
            assert_eq!(paths, [expected], "{text}");
        }
        for text in ["PARTUUID=", "LABEL=Bootfs", "tmpfs", "server:/x", "/dev/sda"] {
            assert!(Name::parse(text).resolve(&volumes).is_empty(), "{text}");
        }
    }

    #[test]
    fn capital_letters_make_another_identifier_for_programs() {
        let volume = volume("/dev/mmcblk0p1", "8a676486-01", "5DE4-665C", "bootfs");
        for (text, own) in [
            ("PARTUUID=8A676486-01", Some("8a676486-01")),
            ("PARTUUID=8a676486-01", None),
            ("PARTUUID=8A676486-02", None),
            ("/dev/disk/by-uuid/5de4-665c", Some("5DE4-665C")),
            ("UUID=5DE4-665C", None),
            ("LABEL=BOOTFS", None),
        ] {
            assert_eq!(Name::parse(text).in_other_case(&volume), own, "{text}");
        }
    }

    #[test]
    fn what_the_kernel_finds_alone_is_known() {
        for (text, alone, lasting) in [
            ("PARTUUID=8a676486-02", true, true),
            ("PARTLABEL=root", true, true),
            ("/dev/sda2", true, false),
            ("/dev/mapper/root", false, false),
            ("UUID=1", false, true),
            ("LABEL=x", false, true),
            ("/dev/nfs", true, false),
        ] {
            let name = Name::parse(text);
            assert_eq!(name.is_known_to_kernel(), alone, "{text}");
            assert_eq!(name.is_lasting(), lasting, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "(/dev/disk/by-label/)?[a-z=\"\\\\x0-9\u{e4}]{0,12}") {
            let name = Name::parse(&text);
            name.resolve(&[]);
            let _ = name.is_known_to_kernel();
        }
    }
}
