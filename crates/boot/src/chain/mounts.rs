//! The table of mounts: which of its lines end a start.

use std::path::Path;

use super::ChainFacts;
use super::bus::Bus;
use super::keys::{self, Lacks};
use super::link::{Doubt, Link, Stage, Stop};
use super::naming::named_root;
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;
use crate::crypttab::Crypttab;
use crate::fstab::{Entry, Fstab, Hazard};
use crate::medium::Certainty;
use crate::volume::{Name, NamedVolume};

/// Where systems keep what the firmware reads, and the root: places that no start can do without.
const ESSENTIAL: [&str; 3] = ["/", "/boot/firmware", "/boot"];
const SOURCE: &str = "/etc/fstab";
const REMEDY: &str = "correct its line in /etc/fstab, or add nofail to the options there";
const CORRECT: &str = "correct its line in /etc/fstab";
const EMERGENCY: &str = "the start ends in the emergency shell";
const TAKE_OUT: &str = "take one of the lines out of /etc/fstab";

pub(super) fn mounts(facts: &ChainFacts, path: &BootPath) -> Link {
    let link = Link::new(Stage::Mounts, "no fstab", SOURCE);
    if let Some(why) = &facts.root.unread_table {
        let remedy = "write that table again, as plain text in UTF-8";
        return link.not_known(why.as_str()).in_doubt_of(Doubt::Other, remedy);
    }
    let Some(fstab) = &facts.root.fstab else {
        // Systems without a table have none to end in.
        let is_known = facts.root.init.is_some();
        return if is_known { link } else { link.not_known("the table of mounts was not read") };
    };
    let table = Fstab::parse(fstab.as_str());
    let lines = table.entries().len();
    let link = match lines {
        0 => link,
        1 => Link { found: "1 line of fstab".into(), ..link },
        lines => Link { found: format!("{lines} lines of fstab"), ..link },
    };
    let crypttab = Crypttab::parse(facts.root.crypttab.as_deref().unwrap_or_default());
    let volumes = crypttab.with_opened(&as_named(facts, path, &table));
    let hazards = table.hazards(&volumes, &ESSENTIAL);
    let link = hazards.iter().fold(link, |link, hazard| judge(facts, hazard, link));
    let root = named_root(facts, path).map(|volume| volume.path.as_str());
    let of_root = |entry: &&Entry| {
        let found = Name::of(entry).resolve(&facts.volumes);
        root.is_some() && found.first().map(|volume| volume.path.as_str()) == root
    };
    let entries = table.entries();
    let link = entries.iter().fold(link, |link, entry| by_key(facts, entry, link));
    let link = entries.iter().fold(link, |link, entry| by_place(facts, &table, entry, link));
    let link = entries.iter().fold(link, |link, entry| by_file(facts, &table, entry, link));
    entries.iter().filter(of_root).fold(link, |link, entry| by_subvolume(facts, entry, link))
}

/// The volumes of a card without the names that it has as another kind of disk, where something says which it is: a disk beside it
/// has those.
fn as_named(facts: &ChainFacts, path: &BootPath, table: &Fstab) -> Vec<NamedVolume> {
    let mut volumes = facts.volumes.clone();
    if facts.are_all_volumes {
        return volumes;
    }
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline).unwrap_or_default());
    let lines = ESSENTIAL.iter().filter_map(|place| Some(table.at(place)?.source));
    // In a reader, any disk is one of USB.
    let disks = facts.medium.disks.iter().filter(|disk| Bus::of(disk) != Bus::Usb);
    let mut named =
        line.get("root").map(str::to_string).into_iter().chain(lines).chain(disks.cloned());
    let bus_of = |node: &str| Some(Bus::of(node)).filter(|bus| *bus != Bus::Other);
    if let Some(own) = named.find_map(|node| bus_of(&node)) {
        for volume in &mut volumes {
            volume.links.retain(|link| bus_of(link).is_none_or(|bus| bus == own));
        }
    }
    volumes
}

/// Whether a line that fits a card badly is for a disk beside it, by a name that the card has only as some kinds of disk.
fn is_beside_card(facts: &ChainFacts, entry: &Entry) -> bool {
    let Name::Path(path) = Name::of(entry) else { return false };
    let is_own = facts.volumes.iter().any(|volume| volume.path == path);
    !facts.are_all_volumes && !is_own && !ESSENTIAL.contains(&entry.target.as_str())
}

/// Whether a name is that of a partition of this very disk: those of an MBR have its identifier in common.
fn is_of_this_disk(facts: &ChainFacts, name: &Name) -> bool {
    const DISK_CHARACTERS: usize = 8;
    let Name::PartUuid(wanted) = name else { return false };
    let disk = |id: &str| id.rsplit_once('-').map(|(disk, _)| disk.to_ascii_lowercase());
    let wanted = disk(wanted).filter(|disk| disk.len() == DISK_CHARACTERS);
    let mut own = facts.volumes.iter().filter_map(|volume| volume.partuuid.as_deref());
    wanted.is_some() && own.any(|id| disk(id) == wanted)
}

/// A volume that waits for a password keeps a board from coming up by itself.
fn by_key(facts: &ChainFacts, entry: &Entry, link: Link) -> Link {
    let Some((path, lacks)) = lacks_key(facts, entry).filter(|_| link.stop.is_none()) else {
        return link;
    };
    match lacks {
        Lacks::Password => {
            // Tokens in the header are tried before the question (TPM2, FIDO2), or answer it (Clevis). Source: systemd,
            // src/cryptsetup/cryptsetup.c, `use_token_plugins`; clevis-luks-unlockers(7).
            link.not_known(format!(
                "{path} for {} waits for its password, unless a token in its header opens it",
                entry.target
            ))
        }
        Lacks::Key(key) => {
            let Stop { why, remedy } = without_key(entry, &path, &key);
            link.with(Certainty::Likely).stopped(why, remedy)
        }
    }
}

/// The encrypted volume that a line of fstab ends a start without, and what it cannot be opened for.
fn lacks_key(facts: &ChainFacts, entry: &Entry) -> Option<(String, Lacks)> {
    let Name::Path(path) = Name::of(entry) else { return None };
    let is_essential = !entry.is_swap() && entry.target != "/" && ends_a_start(facts, entry);
    let lacks = keys::lacks(facts, &path).filter(|_| is_essential)?;
    Some((path, lacks))
}

fn without_key(entry: &Entry, path: &str, key: &str) -> Stop {
    Stop {
        why: format!("{path} for {} waits for a password, as {key} is not there", entry.target),
        remedy: "put the key back, or add nofail to the lines in /etc/crypttab and /etc/fstab"
            .into(),
    }
}

/// The first encrypted volume that the mounts of a start wait for, and whose key is not there.
pub fn missing_key(facts: &ChainFacts) -> Option<Stop> {
    let table = Fstab::parse(facts.root.fstab.as_deref()?);
    table.entries().iter().find_map(|entry| match lacks_key(facts, entry)? {
        (path, Lacks::Key(key)) => Some(without_key(entry, &path, &key)),
        (_, Lacks::Password) => None,
    })
}

/// Filesystems that are there before those of fstab, and `/tmp`, which is one in memory from Debian 13 on; what is below `/var/run`
/// and `/var/lock` is in `/run`. Source: systemd, src/shared/mount-setup.c.
const MOUNTED_FIRST: [&str; 7] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var/lock", "/var/run"];

/// A mount point that is not there is made, except on a root that is mounted read-only. Source: systemd.mount(5).
fn by_place(facts: &ChainFacts, table: &Fstab, entry: &Entry, link: Link) -> Link {
    let is_read_only = table.at("/").is_some_and(|root| root.has_option("ro"));
    let is_absent = facts.root.absent.contains(&entry.target);
    if link.stop.is_some() || !is_read_only || !is_absent || !ends_a_start(facts, entry) {
        return link;
    }
    // Neither is what is below another mount seen in the root, nor what the kernel and systemd mount before fstab is read.
    let target = Path::new(&entry.target);
    if MOUNTED_FIRST.iter().any(|place| target.starts_with(place)) {
        return link;
    }
    if is_below_mount(table, target) {
        return link;
    }
    link.with(Certainty::Likely).stopped(
        format!("{} is not there, and the root is read-only: {EMERGENCY}", entry.target),
        format!("make the directory on the root: mkdir -p {}", entry.target),
    )
}

/// Whether a path is below a mount other than the root, so that the files of the root do not tell whether it is there.
fn is_below_mount(table: &Fstab, path: &Path) -> bool {
    let is_above = |other: &Entry| {
        let other = Path::new(&other.target);
        other != Path::new("/") && other != path && path.starts_with(other)
    };
    table.entries().iter().any(is_above)
}

/// A file that is mounted like a disk, and is gone. What is bound to another place is made where it is not there. Source:
/// mount(8), "Loop-device support"; systemd, src/core/mount.c.
fn by_file(facts: &ChainFacts, table: &Fstab, entry: &Entry, link: Link) -> Link {
    const IN_FILES: [&str; 8] =
        ["btrfs", "erofs", "ext2", "ext3", "ext4", "iso9660", "squashfs", "vfat"];
    let is_of_disks = IN_FILES.contains(&entry.filesystem.as_str()) || entry.has_option("loop");
    let is_bound = ["bind", "rbind"].iter().any(|option| entry.has_option(option));
    let is_absent = facts.root.absent.contains(&entry.source);
    let file = Path::new(&entry.source);
    let is_elsewhere =
        is_below_mount(table, file) || MOUNTED_FIRST.iter().any(|place| file.starts_with(place));
    let is_judged = link.stop.is_none() && is_of_disks && !is_bound && !entry.is_swap();
    if !is_judged || !is_absent || is_elsewhere || !ends_a_start(facts, entry) {
        return link;
    }
    link.with(Certainty::Likely)
        .stopped(format!("{} for {} is not there: {EMERGENCY}", entry.source, entry.target), REMEDY)
}

/// A line for a subvolume that the root's filesystem does not have. Of a system that runs, not all of them are known.
fn by_subvolume(facts: &ChainFacts, entry: &Entry, link: Link) -> Link {
    let named = entry.option("subvol").map(|named| named.trim_matches('/'));
    let Some(named) = named.filter(|named| !named.is_empty()) else { return link };
    let there = facts.root.subvolumes.as_ref().filter(|_| facts.running.is_none());
    if there.is_none_or(|there| there.contains(named)) {
        return link;
    }
    let sentence = format!("{}: there is no subvolume {named}", entry.target);
    if entry.target == "/" {
        return root_line(link, &sentence);
    }
    if ends_a_start(facts, entry) {
        emergency(facts, entry, &format!("{sentence}: {EMERGENCY}"), link)
    } else {
        link.noted(sentence, REMEDY)
    }
}

fn judge(facts: &ChainFacts, hazard: &Hazard, link: Link) -> Link {
    let absent = match hazard {
        Hazard::OtherFilesystem(entry, _) | Hazard::RefusedOption(entry, ..) => {
            is_beside_card(facts, entry).then(|| Hazard::NotThere(entry.clone()))
        }
        Hazard::NotThere(_)
        | Hazard::OtherCase(..)
        | Hazard::Ambiguous(..)
        | Hazard::NotOptional(_)
        | Hazard::Twice(_) => None,
    };
    let hazard = absent.as_ref().unwrap_or(hazard);
    let mut sentence = hazard.sentence();
    if !facts.are_all_volumes {
        sentence = sentence.replace("of this machine", "of this disk");
    }
    match hazard {
        Hazard::NotThere(entry) if entry.is_swap() => match Wait::of(entry) {
            Wait::Ever if ends_a_start(facts, entry) => gone(facts, entry, sentence, link),
            Wait::Usual | Wait::Ever => {
                link.noted(format!("{sentence}; each start waits 90 s for it"), REMEDY)
            }
            Wait::For(time) => {
                link.noted(format!("{sentence}; each start waits {time} for it"), REMEDY)
            }
        },
        Hazard::NotThere(entry)
        | Hazard::OtherCase(entry, _)
        | Hazard::OtherFilesystem(entry, _)
        | Hazard::RefusedOption(entry, ..) => {
            if entry.is_swap() || !ends_a_start(facts, entry) {
                return link.noted(sentence, remedy(entry));
            }
            match hazard {
                Hazard::NotThere(_) => gone(facts, entry, sentence, link),
                Hazard::OtherCase(..) | Hazard::RefusedOption(..) if entry.target == "/" => {
                    root_line(link, &sentence)
                }
                _ => emergency(facts, entry, &format!("{sentence}: {EMERGENCY}"), link),
            }
        }
        Hazard::Ambiguous(entry, _) => link.with(Certainty::Likely).noted(sentence, remedy(entry)),
        Hazard::NotOptional(_) => link.noted(sentence, REMEDY),
        Hazard::Twice(_) => link.noted(sentence, TAKE_OUT),
    }
}

/// A start without its root is none, whatever the options say.
fn remedy(entry: &Entry) -> &'static str {
    if entry.target == "/" { CORRECT } else { REMEDY }
}

fn gone(facts: &ChainFacts, entry: &Entry, sentence: String, link: Link) -> Link {
    if is_put_together(facts, entry) {
        let found = format!("{} for {} is put together at the start", entry.source, entry.target);
        return link.not_known(found);
    }
    if !facts.are_links_seen(&Name::of(entry)) {
        let found =
            format!("{} for {}: links of this kind were not read", entry.source, entry.target);
        return link.not_known(found);
    }
    if entry.target == "/" {
        return root_line(link, &sentence);
    }
    let ending: String = match Wait::of(entry) {
        Wait::Usual => EMERGENCY.into(),
        Wait::For(time) => format!("{EMERGENCY} after {time}"),
        Wait::Ever => "the start waits for it without end".into(),
    };
    // A disk of the board that is not here.
    let name = Name::of(entry);
    let is_essential = ESSENTIAL.contains(&entry.target.as_str());
    let may_be_beside = !is_essential || matches!(name, Name::Path(_));
    if !facts.are_all_volumes && may_be_beside && !is_of_this_disk(facts, &name) {
        let place = if entry.is_swap() { "swap" } else { entry.target.as_str() };
        let source = &entry.source;
        return link
            .with(Certainty::Likely)
            .noted(format!("{sentence}: without that disk {ending}"), REMEDY)
            .only_if(format!("{source} for {place} is plugged in, too; without it {ending}"));
    }
    emergency(facts, entry, &format!("{sentence}: {ending}"), link)
}

/// How long a start waits for the disk of a line. Source: systemd.mount(5), `x-systemd.device-timeout=`; 0 is no limit
/// (systemd, src/shared/generator.c).
enum Wait {
    Usual,
    For(String),
    Ever,
}

impl Wait {
    fn of(entry: &Entry) -> Wait {
        let Some(value) = entry.option("x-systemd.device-timeout") else { return Wait::Usual };
        let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = &value[..value.len() - unit.len()];
        match number.parse::<f64>() {
            _ if value == "infinity" => Wait::Ever,
            Ok(0.0) => Wait::Ever,
            Ok(_) if unit.is_empty() => Wait::For(format!("{value} s")),
            Ok(_) if unit.chars().all(|c| c.is_ascii_alphanumeric()) => Wait::For(value.into()),
            Ok(_) | Err(_) => Wait::Usual,
        }
    }
}

/// The root is mounted already, mostly read-only; its line only mounts it once more, for writing. Source:
/// systemd-remount-fs.service(8).
fn root_line(link: Link, sentence: &str) -> Link {
    let what = format!("{sentence}: the root may stay read-only");
    link.with(Certainty::Likely).noted(what, "correct the line of /")
}

/// Source: systemd.mount(5): a required unit that fails takes local-fs.target with it.
fn emergency(facts: &ChainFacts, entry: &Entry, why: &str, link: Link) -> Link {
    if link.stop.is_some() {
        return link;
    }
    let names_labels = matches!(Name::of(entry), Name::Label(_) | Name::PartLabel(_));
    let is_unsure = facts.running.is_some() && names_labels;
    let certainty = if is_unsure { Certainty::Likely } else { Certainty::Certain };
    link.with(certainty).stopped(why, REMEDY)
}

/// Source: systemd-fstab-generator(8). Other first programs go on without.
fn ends_a_start(facts: &ChainFacts, entry: &Entry) -> bool {
    let is_spared = entry.has_option("nofail") || entry.has_option("noauto") || entry.is_late();
    !is_spared && facts.root.is_systemd != Some(false)
}

/// Arrays, logical volumes and the like come from members that were not looked into.
fn is_put_together(facts: &ChainFacts, entry: &Entry) -> bool {
    let has = |kind: &str| facts.volumes.iter().any(|one| one.filesystem.as_deref() == Some(kind));
    let Name::Path(path) = Name::of(entry) else {
        return has("crypto_LUKS") || has("LVM2_member") || has("linux_raid_member");
    };
    let rest = path.trim_start_matches("/dev/");
    let is_mapped = rest.starts_with("mapper/");
    let is_group = rest.contains('/') && !rest.starts_with("disk/");
    (is_mapped && has("crypto_LUKS"))
        || (is_group && has("LVM2_member"))
        || (rest.starts_with("md") && has("linux_raid_member"))
}
