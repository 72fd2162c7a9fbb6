//! Paths, devices, and what is mounted.

use super::bus_ids::is_bus_id;
use super::identities;
use super::kernel_names::{is_device, is_interface, is_kernel_name};
use super::list::is_word;
use super::pseudonyms::{Kind, Pseudonyms};
use super::words::{HOMES, is_public_piece, spelt_words};

/// A block device or what else sits on a bus, or its pseudonym where its name was chosen.
pub fn device(text: &str, names: &mut Pseudonyms) -> String {
    if is_kernel_name(text) { text.to_string() } else { names.name(Kind::Device, text) }
}

/// A network interface, or its pseudonym where its name was chosen or holds a hardware address.
pub fn interface(text: &str, names: &mut Pseudonyms) -> String {
    if is_interface(text) { text.to_string() } else { names.name(Kind::Interface, text) }
}

/// A bus id, or its pseudonym.
pub fn bus(text: &str, names: &mut Pseudonyms) -> String {
    if is_bus_id(text) { text.to_string() } else { names.name(Kind::Device, text) }
}

/// A path in which each component that is not public has a pseudonym; what follows a directory of users always has one, but
/// for the user of every Raspberry Pi.
pub fn path(text: &str, names: &mut Pseudonyms) -> String {
    let decoded = percent_decoded(text);
    // The kernel's own paths are made of numbers.
    let is_kernels = ["/sys/", "/proc/"].iter().any(|start| decoded.starts_with(start));
    let spelt = if is_kernels { Vec::new() } else { spelt_words(&decoded.replace('/', " ")) };
    let mut parts: Vec<String> = Vec::new();
    let mut before = String::new();
    // A component with a blank in it is several words there.
    let mut word = 0;
    for part in decoded.split('/') {
        let words = word..=word + part.matches(' ').count();
        word = words.end() + 1;
        let is_spelt =
            spelt.iter().any(|row| row.start() <= words.end() && words.start() <= row.end());
        let is_user = HOMES.contains(&before.as_str()) && !["pi", ""].contains(&part);
        parts.push(match part {
            "" | "." | ".." | "pi" => part.to_string(),
            part if !is_user && !is_spelt && is_public_component(part) && !names.reveals(part) => {
                part.to_string()
            }
            part => names.name(Kind::Name, part),
        });
        // A doubled slash separates nothing.
        if !part.is_empty() {
            before = part.to_string();
        }
    }
    if names.is_noting() {
        // A name is looked for as it is written, too.
        let coded = text.split('/').filter(|part| percent_decoded(part) != **part);
        coded.for_each(|part| names.note(part));
        return text.to_string();
    }
    parts.join("/")
}

/// Whether a component of a path is a kernel's name or made of public words, with dots, dashes and underscores.
pub fn is_public_component(part: &str) -> bool {
    // Subvolumes are usually named so.
    let part = part.strip_prefix('@').unwrap_or(part);
    let is_bus = || part.bytes().any(|b| b.is_ascii_digit()) && is_bus_id(part);
    let pieces = || {
        part.split(|c: char| !c.is_alphanumeric()).filter(|p| !p.is_empty()).all(is_public_piece)
    };
    !identities::is_address(part)
        && !is_volume_number(part)
        && part.len() <= 64
        && !part.contains(['\\', '"', '\'', '&', ';'])
        && (is_kernel_name(part) || is_bus() || pieces() && !super::in_a_row::is_spelt(part))
}

/// "1234-5678": a directory of figures alone is named for a FAT filesystem.
fn is_volume_number(part: &str) -> bool {
    let groups: Vec<&str> = part.split('-').collect();
    let is_four = |group: &&str| group.len() == 4 && group.bytes().all(|b| b.is_ascii_hexdigit());
    groups.len() == 2 && groups.iter().all(is_four)
}

/// The text with `%2F` and the like as they are meant, so that an encoded path is seen as one.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = (*first == b'%')
            .then(|| behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is mounted or holds swap, as mountinfo, fstab and `root=` name it: a device by any of its names, a filesystem without
/// one, or something on a server.
pub fn volume(text: &str, names: &mut Pseudonyms) -> String {
    if let Some((key, value)) = text.split_once('=') {
        return match key {
            "UUID" | "PARTUUID" => format!("{key}={}", partition_identity(value, names)),
            "LABEL" | "PARTLABEL" => format!("{key}={}", label(value, names)),
            "ID" => format!("{key}={}", names.name(Kind::Uuid, value)),
            "ZFS" => format!("{key}={}", names.name(Kind::Volume, value)),
            _ => names.name(Kind::Volume, text),
        };
    }
    if let Some(share) = text.strip_prefix("//") {
        let (server, share) = share.split_once('/').unwrap_or((share, ""));
        let server = names.name(Kind::Server, server);
        return format!("//{server}/{}", names.name(Kind::Volume, share));
    }
    if let Some(node) = text.strip_prefix("/dev/") {
        return format!("/dev/{}", device_node(node, names));
    }
    if text.starts_with('/') {
        return path(text, names);
    }
    if text.contains("://") {
        return target(text, names);
    }
    if is_word(text) || is_device(text) {
        return text.to_string();
    }
    match text.rsplit_once(":/").map(|(server, below)| (server, format!("/{below}"))) {
        Some((server, below)) => {
            let server = names.name(Kind::Server, server);
            format!("{server}:{}", path(&below, names))
        }
        None => match text.split_once(':') {
            Some((server, below)) => {
                let below =
                    if below.is_empty() { String::new() } else { names.name(Kind::Volume, below) };
                format!("{}:{below}", names.name(Kind::Server, server))
            }
            None => names.name(Kind::Volume, text),
        },
    }
}

/// A filesystem's or partition's identity. The number of an MBR partition ("4f2a9c1d-02") stays.
fn partition_identity(text: &str, names: &mut Pseudonyms) -> String {
    match text.rsplit_once('-') {
        Some((disk, number))
            if disk.len() <= 8
                && number.len() == 2
                && number.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            format!("{}-{number}", names.name(Kind::Uuid, disk))
        }
        _ => names.name(Kind::Uuid, text),
    }
}

/// A label that distributions give, or the pseudonym of one that was chosen.
pub fn label(text: &str, names: &mut Pseudonyms) -> String {
    if super::words::is_phrase(text) { text.to_string() } else { names.name(Kind::Label, text) }
}

/// The identity of a filesystem or partition.
pub fn uuid(text: &str, names: &mut Pseudonyms) -> String {
    partition_identity(text, names)
}

fn device_node(node: &str, names: &mut Pseudonyms) -> String {
    if is_device(node)
        || ["root", "shm", "pts", "mqueue", "hugepages", "fuse", "null", "zero", "vcio"]
            .contains(&node)
    {
        return node.to_string();
    }
    match node.split('/').collect::<Vec<_>>().as_slice() {
        ["disk", by, name] if by.starts_with("by-") && is_public_component(by) => {
            let kind = if by.ends_with("label") { Kind::Label } else { Kind::Uuid };
            let name = if is_device(name) {
                (*name).to_string()
            } else if *by == "by-id" {
                names.name_by_id(name)
            } else {
                names.name(kind, name)
            };
            format!("disk/{by}/{name}")
        }
        ["mapper", name] => format!("mapper/{}", names.name(Kind::Volume, name)),
        [] => String::new(),
        parts => {
            parts.iter().map(|part| names.name(Kind::Volume, part)).collect::<Vec<_>>().join("/")
        }
    }
}

/// What a user names to measure or to connect to: a path, a device, or an address of a network disk or a server.
pub fn target(text: &str, names: &mut Pseudonyms) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return if text.starts_with('/') || is_word(text) || is_device(text) {
            if text.starts_with("/dev/") { volume(text, names) } else { path(text, names) }
        } else if text.contains('@') || text.contains(':') {
            volume(text, names)
        } else {
            path(text, names)
        };
    };
    let scheme = scheme.to_lowercase();
    if ![
        "nbd",
        "nbds",
        "nbd+unix",
        "nbds+unix",
        "ssh",
        "http",
        "https",
        "rbd",
        "rados",
        "nfs",
        "smb",
    ]
    .contains(&scheme.as_str())
    {
        return names.name(Kind::Server, text);
    }
    let (server, below) = rest.split_once('/').unwrap_or((rest, ""));
    let (below, query) = below.split_once('?').unwrap_or((below, ""));
    names.remember(query);
    let server = if server.is_empty() { String::new() } else { names.name(Kind::Server, server) };
    if below.is_empty() {
        return format!("{scheme}://{server}");
    }
    let below = if is_word(below) { below.to_string() } else { names.name(Kind::Volume, below) };
    format!("{scheme}://{server}/{below}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_what_every_machine_has() {
        let mut names = Pseudonyms::default();
        for same in [
            "/boot/firmware",
            "/home/pi",
            "/var/lib/docker",
            "/",
            "/sys/block/mmcblk0/queue/nr_requests",
            "/dev/shm",
        ] {
            assert_eq!(path(same, &mut names), same);
        }
        assert_eq!(path("/home/alice/bench", &mut names), "/home/name-1/bench");
        assert_eq!(path("/home//alice/x1y2z3", &mut names), "/home//name-1/name-2");
        assert_eq!(path("%2Fhome%2Falice%2Fdata", &mut names), "/home/name-1/data");
        assert_eq!(path("/media/backup/disk", &mut names), "/media/name-3/disk");
        assert!(!is_public_component("dev-disk-by-uuid-5DF9-E225"));
        assert!(!is_public_component("1234-5678") && !is_public_component("d061234"));
        assert_eq!(
            path("/sys/class/net/enxb827eb112233/speed", &mut names),
            "/sys/class/net/name-4/speed"
        );
    }

    #[test]
    fn volumes_are_the_same_thing_in_each_of_their_names() {
        let mut names = Pseudonyms::default();
        let mut of = |text: &str| volume(text, &mut names);
        assert_eq!(of("PARTUUID=4f2a9c1d-02"), "PARTUUID=uuid-1-02");
        assert_eq!(of("/dev/disk/by-partuuid/4F2A9C1D"), "/dev/disk/by-partuuid/uuid-1");
        assert_eq!(of("/dev/mmcblk0p2"), "/dev/mmcblk0p2");
        assert_eq!(of("/dev/mapper/alicebox--vg-root"), "/dev/mapper/volume-1");
        assert_eq!(of("//nas/music"), "//server-1/volume-2");
        assert_eq!(of("nas:/export/x"), "server-1:/export/x");
        assert_eq!(of("[fd00:aaaa::1]:/x"), "server-2:/x");
        assert_eq!(of("bob@nas2:"), "server-3:");
        assert_eq!(of("tank/alice"), "volume-3");
        assert_eq!(of("tmpfs"), "tmpfs");
        assert_eq!(
            target("NBDS://u@host.lan:10809/disk?tls=/home/x", &mut names),
            "nbds://server-4/disk"
        );
    }
}
