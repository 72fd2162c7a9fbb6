//! The root that the command line names, and the first program on it.

use super::bus::Bus;
use super::interrupted::{self, Interruption};
use super::kernel::has_initramfs;
use super::link::{Doubt, Link, Stage, Subject};
use super::naming::{RootKind, root_kind};
use super::running::{has_this_line, is_this_kernel};
use super::width::{has_large_pages, is_32_bit};
use super::{ChainFacts, Defect, namesakes, switched_off};
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;
use crate::fstab::{Fstab, is_same_filesystem};
use crate::initramfs::{Listing, Maker};
use crate::medium::Certainty;
use crate::mount_options::refused;
use crate::volume::{Name, NamedVolume, are_members};

pub(super) fn root(facts: &ChainFacts, path: &BootPath) -> Link {
    let text = facts.partition.text(&path.cmdline).unwrap_or_default();
    let line = CmdlineTxt::parse(text);
    let written = line.get("root").unwrap_or_default();
    let (name, named) = (Name::parse(written), Name::shown(written));
    let link = Link::new(Stage::Root, format!("root={named}"), path.cmdline.as_str());
    if written.contains("/PARTNROFF=") {
        let found =
            format!("root={named} is counted from another partition, which is not followed");
        return link.not_known(found).last();
    }
    let is_quoted = line.is_quoted("root") && has_initramfs(facts, path);
    let link = if is_quoted { quoted(facts, path, link) } else { link };
    let link = switched_off::without_way(facts, path, link);
    let link = link.unless_it_runs(has_this_line(facts, path));
    if link.stop.is_some() || link.certainty == Certainty::NotKnown {
        return link;
    }
    let found = name.resolve(&facts.volumes);
    match (root_kind(facts, path), found.as_slice()) {
        (RootKind::Elsewhere, _) => link.not_known(elsewhere(&named)).last(),
        (RootKind::Encrypted(source), _) => {
            encrypted(facts, &named, source, link).unless_it_runs(has_this_line(facts, path))
        }
        (RootKind::Lvm, []) => link
            .not_known(format!("root={named} is a logical volume, which is not looked into"))
            .last(),
        (RootKind::Plain, []) => {
            not_there(facts, &name, path, link).unless_it_runs(has_this_line(facts, path))
        }
        (RootKind::Lvm | RootKind::Plain, [one]) => {
            let link = match name.in_other_case(one).filter(|_| has_initramfs(facts, path)) {
                Some(own) => other_case(&name, own, link),
                None => {
                    let link = mountable(facts, &line, one, path, link);
                    as_that_disk(facts, &name, switched_off::check(facts, path, one, link))
                }
            };
            with_running(facts, one, link.unless_it_runs(has_this_line(facts, path)))
        }
        (RootKind::Lvm | RootKind::Plain, several) => one_of(&name, &named, several, link),
    }
}

/// A disk in a reader is none of a board yet. It is taken for a card of that board, and for a USB disk or an NVMe drive only where
/// the root is named as one.
fn as_that_disk(facts: &ChainFacts, name: &Name, link: Link) -> Link {
    let Name::Path(node) = name else { return link };
    let is_judged = link.stop.is_some() || link.certainty == Certainty::NotKnown;
    let is_named_as_other = matches!(Bus::of(node), Bus::Usb | Bus::Nvme);
    if is_judged || !is_named_as_other || facts.are_all_volumes || facts.mode.is_some() {
        return link;
    }
    let condition =
        format!("the board has this disk as that of {node}; else its root is not there");
    link.with(Certainty::Likely).only_if(condition)
}

/// Why a root that no name of a volume leads to is not followed. Source: OpenZFS, contrib/initramfs and contrib/dracut.
fn elsewhere(named: &str) -> String {
    let is_dataset = ["ZFS=", "zfs:", "zfs="].iter().any(|word| named.starts_with(word));
    if is_dataset || named == "zfs" {
        format!("root={named} is a ZFS dataset, and pools are not looked into")
    } else {
        format!("root={named} is no disk of this board")
    }
}

/// The scripts of initramfs-tools split `/proc/cmdline` at white space, and look for a root whose name has the quotes in it.
/// Source: initramfs-tools, `init`. Those of dracut and mkinitcpio take them off, as the kernel does.
fn quoted(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    if is_made_by(facts, path, &[Maker::Dracut, Maker::Mkinitcpio]) {
        return link;
    }
    let source = link.source.clone();
    link.with(Certainty::Likely).stopped(
        format!(
            "the quotes around the value of root= in {source} become a part of it in the initramfs"
        ),
        format!("take the quotes around the value of root= out of {source}"),
    )
}

fn one_of(name: &Name, named: &str, several: &[&NamedVolume], link: Link) -> Link {
    let paths: Vec<&str> = several.iter().map(|volume| volume.path.as_str()).collect();
    if are_members(several) {
        let kind = several[0].filesystem.as_deref().unwrap_or_default();
        let found = format!("a {kind} of {} disks ({}): {named}", several.len(), paths.join(", "));
        return Link { found, ..link }.with(Certainty::Likely);
    }
    let remedy = namesakes::remedy(name, several, &link.source);
    link.not_known(format!("{named} may be any of {}", paths.join(", ")))
        .noted(format!("{} have the same identifier", paths.join(" and ")), remedy)
}

/// Programs of the initial RAM filesystem look for the root; the kernel alone does not know capital letters.
fn other_case(name: &Name, own: &str, link: Link) -> Link {
    let source = link.source.clone();
    link.with(Certainty::Likely).stopped(
        format!("{source} names {name}, and the initramfs compares it letter by letter with {own}"),
        format!("write {own} into {source}"),
    )
}

fn encrypted(facts: &ChainFacts, named: &str, source: Option<String>, link: Link) -> Link {
    if let Some(why) = nothing_to_open(facts, source.as_deref()) {
        let remedy = format!("correct root= in {} on the boot partition", link.source);
        return link.stopped(format!("root={named} is encrypted, {why}"), remedy);
    }
    let from = source.map_or(String::new(), |source| format!(", opened from {source}"));
    if facts.running.is_some() {
        return Link { found: format!("root={named}{from}"), ..link };
    }
    link.not_known(format!("root={named}{from}; what is inside is not known")).last()
}

/// Why nothing can be opened for an encrypted root, where that is known.
fn nothing_to_open(facts: &ChainFacts, source: Option<&str>) -> Option<String> {
    let Some(source) = source else {
        let kinds: Vec<&str> =
            facts.volumes.iter().filter_map(|one| one.filesystem.as_deref()).collect();
        let may_be_there =
            !facts.are_all_volumes || kinds.is_empty() || kinds.contains(&"crypto_LUKS");
        return (!may_be_there).then(|| "and no volume of this machine is".into());
    };
    let volume = facts.volumes.iter().find(|one| one.path == source)?;
    let holds = volume.filesystem.as_deref().filter(|kind| *kind != "crypto_LUKS")?;
    Some(format!("and {source}, which it is opened from, holds {holds}"))
}

fn not_there(facts: &ChainFacts, name: &Name, path: &BootPath, link: Link) -> Link {
    let source = path.cmdline.as_str();
    // The running root may well have a name that was not seen.
    let own = facts.running.as_ref().map(|running| is_seen(facts, name, running.root.as_deref()));
    if own == Some(false) {
        return link.with(Certainty::Likely);
    }
    if !facts.are_links_seen(name) {
        return link.not_known(format!("{name}: links of this kind were not read")).last();
    }
    if !facts.are_all_volumes && is_moved(facts) {
        return link
            .not_known(format!("{source} names {name}, which is on a disk that is not here"))
            .in_doubt_of(
                Doubt::Other,
                "look at the disk that has it in the same way; it has to be in the board, too",
            )
            .last();
    }
    let (certainty, place) = if facts.are_all_volumes {
        (Certainty::Certain, "there is")
    } else {
        // Another disk of the board may have it.
        (Certainty::Likely, "this disk has")
    };
    link.with(certainty).stopped(
        format!("{source} names {name}; {place} {}", others(name, &facts.volumes)),
        root_to_write(facts, name, source),
    )
}

/// Whether a card is for a root on another disk: it has none itself, or Rubus has moved it and kept the old command line.
fn is_moved(facts: &ChainFacts) -> bool {
    const KEPT: &str = "cmdline.txt.before-rubus";
    let has_root = facts.volumes.iter().any(may_be_root);
    !has_root || facts.partition.names().any(|name| name.starts_with(KEPT))
}

/// What to write, where one volume alone can be meant. Of a card, another disk of the board may be the root.
fn root_to_write(facts: &ChainFacts, name: &Name, source: &str) -> String {
    let Some(root) = only_root(facts) else {
        return format!("correct root= in {source} on the boot partition");
    };
    let own = match name {
        Name::Uuid(_) => root.uuid.as_ref().map(|uuid| format!("UUID={uuid}")),
        Name::Label(_) => root.label.as_ref().map(|label| format!("LABEL={label}")),
        Name::PartUuid(_) | Name::PartLabel(_) | Name::Path(_) | Name::Other(_) => None,
    };
    let own = own.or_else(|| root.partuuid.as_ref().map(|id| format!("PARTUUID={id}")));
    let Some(own) = own else {
        return format!("correct root= in {source} on the boot partition");
    };
    let write = format!(
        "write root={own} into {source} on the boot partition, and see that /etc/fstab names it"
    );
    if facts.are_all_volumes {
        return write;
    }
    format!("if the root is on this disk, {write}")
}

/// The one volume that can be meant: the root that runs, or the only one that may be a root.
fn only_root(facts: &ChainFacts) -> Option<&NamedVolume> {
    let running = facts.running.as_ref().and_then(|running| running.root.as_deref());
    if let Some(root) = running {
        return facts.volumes.iter().find(|one| one.path == root);
    }
    let roots: Vec<&NamedVolume> = facts.volumes.iter().filter(|one| may_be_root(one)).collect();
    match roots.as_slice() {
        [root] => Some(root),
        _ => None,
    }
}

/// Whether the running root would show this kind of name if it had it.
fn is_seen(facts: &ChainFacts, name: &Name, running: Option<&str>) -> bool {
    let own = running.and_then(|path| facts.volumes.iter().find(|one| one.path == path));
    let Some(own) = own else { return false };
    match name {
        Name::PartUuid(_) => own.partuuid.is_some(),
        Name::Uuid(_) => own.uuid.is_some(),
        Name::Label(_) => own.label.is_some(),
        Name::PartLabel(_) => own.partlabel.is_some(),
        Name::Path(path) => name.is_known_to_kernel() && path != "/dev/root",
        Name::Other(_) => true,
    }
}

fn may_be_root(volume: &NamedVolume) -> bool {
    const NO_ROOTS: [&str; 10] = [
        "vfat",
        "exfat",
        "ntfs",
        "iso9660",
        "udf",
        "swap",
        "crypto_LUKS",
        "LVM2_member",
        "linux_raid_member",
        "zfs_member",
    ];
    volume.filesystem.as_deref().is_some_and(|kind| !NO_ROOTS.contains(&kind))
}

/// What could have been meant: identifiers of the same kind, and where they are.
fn others(name: &Name, volumes: &[NamedVolume]) -> String {
    let roots = volumes.iter().filter(|one| may_be_root(one));
    let same_kind = roots.filter_map(|volume| {
        let own = match name {
            Name::PartUuid(_) => &volume.partuuid,
            Name::PartLabel(_) => &volume.partlabel,
            Name::Uuid(_) => &volume.uuid,
            Name::Label(_) => &volume.label,
            Name::Path(_) | Name::Other(_) => return Some(volume.path.clone()),
        };
        own.as_ref().map(|own| format!("{own} ({})", volume.path))
    });
    let same_kind: Vec<String> = same_kind.collect();
    if same_kind.is_empty() { "no root".into() } else { same_kind.join(", ") }
}

fn with_running(facts: &ChainFacts, volume: &NamedVolume, link: Link) -> Link {
    let Some(running) = &facts.running else { return link };
    match running.root.as_deref() {
        Some(root) if root != volume.path => link.noted_of(
            Subject::OtherRoot,
            format!("root= names {}, and the running root is {root}", volume.path),
            "correct root= in the command line, or restart if the other root is meant",
        ),
        Some(_) | None => link,
    }
}

fn mountable(
    facts: &ChainFacts,
    line: &CmdlineTxt,
    volume: &NamedVolume,
    path: &BootPath,
    link: Link,
) -> Link {
    let named = line.get("root").unwrap_or_default();
    let link = Link { found: format!("{} ({named})", volume.path), ..link };
    let link = counted(facts, named, link);
    let Some(holds) = volume.filesystem.as_deref() else {
        return link.not_known(format!("nothing is recognised on {}", volume.path));
    };
    let wrong = line.get("rootfstype").filter(|wanted| !is_same_filesystem(wanted, holds));
    if let Some(wanted) = wrong {
        return other_type(facts, wanted, holds, volume, link);
    }
    if let Some(option) = line.get("rootflags").and_then(|flags| refused(flags, holds)) {
        return link.stopped(
            format!("rootflags= has {option}, which {holds} refuses, and the root is not mounted"),
            format!("take {option} out of rootflags= in {}", path.cmdline),
        );
    }
    if holds == "btrfs" { subvolume(facts, line, &volume.path, path, link) } else { link }
}

/// `rootfstype=` names another filesystem than the one that is there.
fn other_type(
    facts: &ChainFacts,
    wanted: &str,
    holds: &str,
    volume: &NamedVolume,
    link: Link,
) -> Link {
    const EXTENDED: [&str; 3] = ["ext2", "ext3", "ext4"];
    let running = facts.running.as_ref().and_then(|running| running.root.as_deref());
    let why = format!("rootfstype={wanted}, but {} holds {holds}", volume.path);
    // One driver has the three, and takes an older name for a filesystem without features of the newer. Images of Kali say
    // ext3. Source: Linux, fs/ext4/super.c.
    let are_kin = EXTENDED.contains(&wanted) && EXTENDED.contains(&holds);
    if are_kin && running == Some(volume.path.as_str()) {
        return link.not_known(format!("{why}, which mounts only without newer features"));
    }
    let remedy = if may_be_root(volume) {
        format!("write rootfstype={holds} into {}", link.source)
    } else {
        format!("correct root= in {} on the boot partition: a root is no {holds}", link.source)
    };
    link.stopped(why, remedy)
}

/// Names that the kernel counts move when another disk is plugged in.
fn counted(facts: &ChainFacts, named: &str, link: Link) -> Link {
    let name = Name::parse(named);
    if name.is_lasting() {
        return link;
    }
    let link = if facts.are_all_volumes { link } else { link.with(Certainty::Likely) };
    if named.starts_with("/dev/sd") {
        let what = format!("{named} may be another disk at the next start");
        return link.noted(what, "name the root by its PARTUUID");
    }
    link
}

/// A subvolume of a btrfs that is not there ends the start.
fn subvolume(
    facts: &ChainFacts,
    line: &CmdlineTxt,
    volume: &str,
    path: &BootPath,
    link: Link,
) -> Link {
    let source = path.cmdline.as_str();
    let running = facts.running.as_ref().filter(|one| one.root.as_deref() == Some(volume));
    let own = running.and_then(|running| running.subvolume.as_deref());
    let Some(named) = line.subvolume() else {
        return default_subvolume(facts, line, own, path, link);
    };
    if let Some(own) = own.map(|own| own.trim_matches('/')).filter(|own| *own != named) {
        let own = if own.is_empty() { "the top of it" } else { own };
        return link
            .not_known(format!(
                "subvolume {named} is not the running root; its files were not read"
            ))
            .noted_of(
                Subject::OtherRoot,
                format!(
                    "the subvolume {named} is named by rootflags=, and the running root is {own}"
                ),
                "correct rootflags= in the command line, or restart if the other root is meant",
            )
            .last();
    }
    let Some(there) = &facts.root.subvolumes else { return link.with(Certainty::Likely) };
    if there.contains(named) {
        return link;
    }
    if facts.running.is_some() {
        // Only the mounted ones are seen.
        return link.with(Certainty::Likely);
    }
    let names: Vec<&str> = there.iter().map(String::as_str).collect();
    let there = if names.is_empty() { "none".into() } else { names.join(", ") };
    link.stopped(
        format!("rootflags=subvol={named}, and there is no such subvolume (there: {there})"),
        format!("correct rootflags= in {source}"),
    )
}

/// Without a name, the subvolume that the filesystem itself calls its default is mounted, mostly the top. Source: btrfs(5),
/// `btrfs subvolume set-default`.
fn default_subvolume(
    facts: &ChainFacts,
    line: &CmdlineTxt,
    own: Option<&str>,
    path: &BootPath,
    link: Link,
) -> Link {
    let own = own.map(|own| own.trim_matches('/'));
    let is_by_number = line.subvolume_id().is_some();
    // The line is the one that led to the running root, or that root is the top, which is the usual default.
    let given = facts.running.as_ref().and_then(|running| running.command_line.as_deref());
    let has_these_flags = given
        .is_some_and(|given| CmdlineTxt::parse(given).get("rootflags") == line.get("rootflags"));
    let is_known =
        has_these_flags && has_this_line(facts, path) || own == Some("") && !is_by_number;
    match own {
        Some(_) if is_known => link,
        Some(own) => {
            let (shown, named) = if own.is_empty() { ("the top of it", "/") } else { (own, own) };
            let what = match line.subvolume_id() {
                Some(number) => format!("rootflags= names the subvolume of number {number}"),
                None => "rootflags= names no subvolume, and the default one is not known".into(),
            };
            link.not_known(format!("{what}; the running root is {shown}")).noted_of(
                Subject::OtherRoot,
                format!("{what}, while the running root is {shown}"),
                format!("put rootflags=subvol={named} into {}", path.cmdline),
            )
        }
        None => of_card(facts, line, path, link),
    }
}

/// The subvolumes of a card, as far as they were read.
fn of_card(facts: &ChainFacts, line: &CmdlineTxt, path: &BootPath, link: Link) -> Link {
    let is_read = |is_known: bool| if is_known { Certainty::Certain } else { Certainty::Likely };
    let Some(number) = line.subvolume_id() else {
        return link.with(is_read(facts.root.default_subvolume.is_some()));
    };
    let Some(there) = &facts.root.subvolume_numbers else { return link.with(is_read(false)) };
    if number.parse().is_ok_and(|number: u64| there.contains(&number)) {
        return link;
    }
    link.stopped(
        format!("rootflags=subvolid={number}, and there is no such subvolume"),
        format!("name the subvolume by its path in {}: rootflags=subvol=PATH", path.cmdline),
    )
}

pub(super) fn init(facts: &ChainFacts, path: &BootPath) -> Link {
    let link = Link::new(Stage::Init, "the usual one", "files of the root");
    if let Some(why) = &facts.root.unread {
        return link.not_known(why.as_str()).last();
    }
    let link = first_program(facts, path, link);
    if link.stop.is_some() || link.certainty == Certainty::NotKnown {
        return link;
    }
    if let Some(Interruption { word, what, certainty }) = interrupted::by_word(facts, path) {
        return link
            .with(certainty)
            .stopped(
                format!("{word} in {} {what}", path.cmdline),
                format!("take {word} out of {}", path.cmdline),
            )
            .unless_it_runs(has_this_line(facts, path));
    }
    let link = match program_of_first_start(facts, path) {
        Some((program, why, certainty)) => {
            return link
                .with(certainty)
                .stopped(
                    format!(
                        "systemd.run={program} in {} {why}: the board switches itself off",
                        path.cmdline
                    ),
                    format!("take the words that begin with systemd. out of {}", path.cmdline),
                )
                .unless_it_runs(has_this_line(facts, path));
        }
        None => link,
    };
    if is_this_kernel(facts, &path.kernel) {
        // The programs run on it.
        return link;
    }
    match (facts.root.program_bits, is_32_bit(facts, path)) {
        (Some(64), Some(true)) => link.stopped(
            format!("the programs are 64-bit, and {} is a 32-bit kernel", path.kernel),
            "load a 64-bit kernel: arm_64bit=1 in config.txt",
        ),
        // Source: Raspberry Pi documentation, "kernel": kernel_2712.img has pages of 16 KiB.
        (Some(32), Some(false)) if has_large_pages(facts, path) => {
            link.with(Certainty::Likely).stopped(
                format!("{} has pages of 16 KiB, and the programs are 32-bit", path.kernel),
                "write kernel=kernel8.img into config.txt, whose pages are 4 KiB",
            )
        }
        _ => link,
    }
}

fn first_program(facts: &ChainFacts, path: &BootPath, link: Link) -> Link {
    let Some((program, is_there)) = &facts.root.init else { return link };
    let defect = facts.root.init_defect.filter(|_| *is_there);
    let why = match (is_there, defect) {
        (true, None) => return Link { found: program.clone(), ..link },
        (true, Some(Defect::Empty)) => format!("{program} is empty"),
        (true, Some(Defect::NotExecutable)) => format!("{program} may not be executed"),
        (true, Some(Defect::NoProgram)) => format!("{program} is neither a program nor a script"),
        (true, Some(Defect::OtherProcessor)) => format!("{program} is for another processor"),
        (false, _) => format!("there is no {program} in the root"),
    };
    // The scripts look whether it is there and may be executed, and not what it holds.
    let is_passed_over = matches!(defect, None | Some(Defect::NotExecutable));
    let usual = facts.root.usual_init.as_ref().filter(|usual| *usual != program);
    if let Some(usual) = usual.filter(|_| is_passed_over && falls_back(facts, path)) {
        let what = format!("{why}, and the initramfs starts {usual}");
        return Link { found: usual.clone(), ..link }
            .with(Certainty::Likely)
            .noted(what, format!("correct init= in {}", path.cmdline));
    }
    if !is_there && is_usr_elsewhere(facts, path) {
        return link
            .not_known(format!("{why}; /usr is on a volume of its own, which was not read"));
    }
    let remedy = match defect {
        Some(Defect::NotExecutable) => format!("make it executable: chmod 755 {program}"),
        Some(Defect::OtherProcessor) => {
            "write a system for this board, or name another root: this one is not for ARM".into()
        }
        Some(Defect::Empty | Defect::NoProgram) | None => {
            "the root is empty or damaged: write the system again, or name another root".into()
        }
    };
    let is_unsure = defect == Some(Defect::NoProgram);
    let link = if is_unsure { link.with(Certainty::Likely) } else { link };
    link.stopped(why, remedy).unless_it_runs(defect.is_some() && has_this_line(facts, path))
}

/// Whether the initramfs mounts another volume at /usr before the first program is started. Source: initramfs-tools, `init`;
/// dracut, modules.d/98usrmount.
fn is_usr_elsewhere(facts: &ChainFacts, path: &BootPath) -> bool {
    let table = Fstab::parse(facts.root.fstab.as_deref().unwrap_or_default());
    has_initramfs(facts, path) && table.at("/usr").is_some()
}

/// Whether the initramfs is one whose scripts start the usual first program where the named one is not there. Source:
/// initramfs-tools, `init`; dracut, `init.sh`. That of mkinitcpio ends in its shell, and the kernel panics.
fn falls_back(facts: &ChainFacts, path: &BootPath) -> bool {
    is_made_by(facts, path, &[Maker::InitramfsTools, Maker::Dracut])
}

fn is_made_by(facts: &ChainFacts, path: &BootPath, makers: &[Maker]) -> bool {
    path.initramfs.iter().any(|name| {
        let listing = facts.images.initramfs.get(name).and_then(|listing| listing.as_ref().ok());
        listing.and_then(Listing::maker).is_some_and(|maker| makers.contains(&maker))
    })
}

/// Whether the initramfs has the script of Raspberry Pi OS that corrects the place of that program before systemd reads it, where
/// it was read. Source: raspberrypi-sys-mods, `imager_fixup`.
fn is_place_corrected(facts: &ChainFacts, path: &BootPath) -> Option<bool> {
    let listings =
        path.initramfs.iter().map(|name| facts.images.initramfs.get(name)?.as_ref().ok());
    let has_script =
        listings.map(|listing| Some(listing?.has("scripts/local-bottom/imager_fixup")));
    has_script.reduce(|one, other| Some(one? || other?)).unwrap_or(Some(false))
}

/// A program of the boot partition that the command line has systemd run in place of a usual start, as Raspberry Pi Imager's
/// firstrun.sh: its path, why it cannot be run, and how sure that is. Source: systemd-run-generator(8): where it fails, the machine is switched off.
fn program_of_first_start(
    facts: &ChainFacts,
    path: &BootPath,
) -> Option<(String, String, Certainty)> {
    const POINTS: [&str; 2] = ["/boot/firmware/", "/boot/"];
    if facts.root.is_systemd == Some(false) {
        return None;
    }
    let line = CmdlineTxt::parse(facts.partition.text(&path.cmdline)?);
    let program = line.get("systemd.run")?.split_whitespace().next()?.to_string();
    let (point, name) =
        POINTS.iter().find_map(|point| Some((*point, program.strip_prefix(point)?)))?;
    let is_there = facts.partition.size_bytes(name).is_some();
    if facts.is_whole && !is_there {
        return Some((program.clone(), "is not in the boot partition".into(), Certainty::Certain));
    }
    let table = Fstab::parse(facts.root.fstab.as_deref()?);
    let is_mounted = |place: &str| table.at(place).is_some_and(|entry| !entry.has_option("noauto"));
    if is_mounted(point.trim_end_matches('/')) {
        return None;
    }
    let mut places = POINTS.iter().map(|point| point.trim_end_matches('/'));
    let other = places.find(|place| is_mounted(place))?;
    let is_corrected = is_place_corrected(facts, path);
    let why = format!("is not at that path: the boot partition is mounted at {other}");
    let certainty = if is_corrected.is_some() { Certainty::Certain } else { Certainty::Likely };
    (is_corrected != Some(true)).then_some((program, why, certainty))
}
