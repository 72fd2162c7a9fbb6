//! The board, the medium that it starts from, and the partition that its firmware reads.

use super::choice::{Choice, walked};
use super::link::{Doubt, Link, Stage, Subject};
use super::running::is_from_here;
use super::start_files;
use super::{ChainFacts, DiskTable, TableKind, TablePartition, is_trial};
use crate::autoboot;
use crate::eeprom::{Ability, NamedPartition, RELEASE_NOTES, UPDATE};
use crate::fstab::{Entry, Fstab};
use crate::medium::{Certainty, Mode};
use crate::model::Kernels;
use crate::volume::Name;
use rubus_vocabulary::machine::Bootloader;

const SETTINGS: &str = "settings of the bootloader";
const PUT_BACK: &str = "put the medium from which it started back in, or restart";
const START_FROM_DISK: &str = "start the board from the disk whose boot files are meant";
/// Types of an MBR entry that are FAT for every board.
pub const FAT_TYPES: [&str; 6] = ["0x01", "0x04", "0x06", "0x0b", "0x0c", "0x0e"];
/// The type of an EFI system partition: FAT since the bootloader of 2020-05-26, and not for a boot ROM (raspberrypi/firmware,
/// issue 1711).
const EFI_TYPE: &str = "0xef";

pub(super) fn firmware(facts: &ChainFacts) -> Link {
    let link = Link::new(Stage::Firmware, facts.board.as_str(), "revision code, device tree");
    if let Some(loader) = &facts.other_loader {
        return link
            .not_known(format!("{loader} starts this machine, which is not understood"))
            .last();
    }
    if facts.model.kernels == Kernels::Named {
        let found =
            "no Raspberry Pi that is known; U-Boot, UEFI and other loaders are not understood";
        return link.not_known(found).last();
    }
    let eeprom = match (facts.model.kernels.has_eeprom(), facts.eeprom.date()) {
        (true, Some(date)) => format!(", bootloader of {date}"),
        (true, None) => ", date of its bootloader not known".into(),
        (false, _) => String::new(),
    };
    Link { found: format!("{}{eeprom}", facts.board), ..link }
}

pub(super) fn medium(facts: &ChainFacts) -> Link {
    let disks = facts.medium.disks.join(" or ");
    let told = facts.bootloader.and_then(|told| told.boot_mode);
    let is_contradicted = facts.medium.certainty == Certainty::NotKnown && told.is_some();
    // Where the number was read is the link's source.
    let why = match (told, told.and_then(Mode::of)) {
        (Some(number), Some(mode)) if !is_contradicted => {
            format!("{} (boot-mode {number})", mode.words())
        }
        _ => facts.medium.why.clone(),
    };
    let found = if disks.is_empty() { why } else { format!("{disks}: {why}") };
    let found = match told.filter(|_| is_contradicted) {
        Some(mode) => format!("{found}, but boot-mode is {mode}, and no such disk is here"),
        None => found,
    };
    let link = Link::new(Stage::Medium, found, source(facts)).with(facts.medium.certainty);
    let link = if is_contradicted { link.in_doubt_of(Doubt::WhatIsRead, PUT_BACK) } else { link };
    let told = told.and_then(Mode::of).filter(|mode| matches!(mode, Mode::NoDisk(_)));
    let Some(mode) = facts.mode.or(told) else { return link };
    if let Mode::NoDisk(what) = mode {
        return link
            .not_known(format!("{what}, which is not understood"))
            .in_doubt_of(Doubt::WhatIsRead, START_FROM_DISK)
            .last();
    }
    let link = match too_old(facts, mode) {
        Some((since, date)) => link.from(RELEASE_NOTES, Some(since)).stopped(
            format!("the bootloader of {date} cannot start from {}", mode.words()),
            format!("update the bootloader to one of {since} or later: {UPDATE}"),
        ),
        None => in_boot_order(facts, mode, link),
    };
    link.unless_it_runs(is_from_here(facts))
}

/// What says from where the board starts.
fn source(facts: &ChainFacts) -> &'static str {
    let says = facts.bootloader.is_some_and(|told| told.boot_mode.is_some());
    match (says, &facts.running) {
        (true, _) => Bootloader::SOURCE,
        (false, Some(_)) => "/proc/self/mountinfo",
        (false, None) => "the table of the medium",
    }
}

/// Since when a bootloader can start from a medium, and the date of the one here, which cannot.
fn too_old(facts: &ChainFacts, mode: Mode) -> Option<(&'static str, String)> {
    let ability = match mode {
        Mode::Usb => Ability::StartFromUsb,
        Mode::Nvme => Ability::StartFromNvme,
        Mode::Card | Mode::NoDisk(_) => return None,
    };
    let since = ability.since(facts.model.kernels)?;
    let can = facts.eeprom.can(ability, facts.model.kernels)?;
    if can { None } else { Some((since, facts.eeprom.date()?)) }
}

/// A medium that `BOOT_ORDER` does not name is not looked at.
fn in_boot_order(facts: &ChainFacts, mode: Mode, link: Link) -> Link {
    let order = facts.eeprom.boot_order().filter(|_| facts.model.kernels.has_eeprom());
    let Some(order) = order.filter(|order| !order.modes().contains(&mode)) else { return link };
    link.from(SETTINGS, None).stopped(
        format!("BOOT_ORDER={} does not name {}", order.text(), mode.words()),
        format!(
            "write BOOT_ORDER={} with `sudo rpi-eeprom-config --edit`",
            order.with_first(mode).text()
        ),
    )
}

pub(super) fn partition(facts: &ChainFacts) -> Link {
    let name = facts.medium.partition.as_deref().unwrap_or("the first FAT partition");
    let mut link = Link::new(Stage::Partition, name, source(facts));
    if let Some(table) = &facts.table {
        let judged = by_table(facts, table, link);
        if judged.stop.is_some() {
            return judged;
        }
        link = judged.from(source(facts), None);
    }
    if let Some(why) = &facts.unread {
        return by_mount(facts, link).not_known(why.as_str()).last();
    }
    let link = match &facts.choice {
        Choice::OthersUnread => by_eeprom(facts, by_autoboot(facts, link)),
        Choice::Walked(walk) => walked(facts, walk, link),
        Choice::First | Choice::NoneBootable => link,
    };
    if link.is_last || link.stop.is_some() {
        return link;
    }
    let link = by_place(facts, link);
    if let Some(file) = start_files::missing(facts).filter(|_| facts.is_whole) {
        if start_files::has_menu(facts) {
            return link
                .not_known("a menu (NOOBS, PINN) starts from it, and its choice is not known")
                .last();
        }
        return not_bootable(facts, file, link);
    }
    let link = by_age(facts, link);
    let is_over = link.stop.is_some() || !facts.is_whole;
    let link = if is_over { link } else { start_files::check(facts, link) };
    if link.stop.is_some() {
        return link;
    }
    by_mount(facts, link)
}

/// `autoboot.txt` names another partition, in the first that the firmware can start from.
fn by_autoboot(facts: &ChainFacts, link: Link) -> Link {
    let Some(text) = facts.partition.text(autoboot::FILE) else { return link };
    let Some(number) = autoboot::read(text, is_trial(facts)).boot_partition else { return link };
    let own = facts.medium.partition.as_deref().and_then(number_of);
    if own == Some(number) {
        return link;
    }
    let found = format!("{} names partition {number}, which was not read", autoboot::FILE);
    let remedy = format!(
        "mount partition {number} at /boot/firmware, or take boot_partition= out of {}",
        autoboot::FILE
    );
    let link = link.from(autoboot::FILE, None).not_known(found);
    if facts.running.is_some() { link.in_doubt_of(Doubt::WhatIsRead, remedy) } else { link }.last()
}

/// What the settings of the bootloader say of the partition, on a machine that runs.
fn by_eeprom(facts: &ChainFacts, link: Link) -> Link {
    let kernels = facts.model.kernels;
    let own = facts.medium.partition.as_deref().and_then(number_of);
    let text = facts.partition.text(autoboot::FILE);
    let by_file = text.and_then(|text| autoboot::read(text, is_trial(facts)).boot_partition);
    if link.is_last || !kernels.has_eeprom() || facts.running.is_none() {
        return link;
    }
    let link = match facts.eeprom.partition(kernels) {
        _ if by_file.is_some() => link,
        NamedPartition::Number(number) if own != Some(number) => {
            let found = format!(
                "PARTITION={number} in the bootloader's settings names partition {number}, which was not read"
            );
            let remedy = format!(
                "mount partition {number} at /boot/firmware, or take PARTITION= out: sudo rpi-eeprom-config --edit"
            );
            link.from(SETTINGS, None)
                .not_known(found)
                .in_doubt_of(Doubt::WhatIsRead, remedy)
                .last()
        }
        NamedPartition::Filtered => link.with(Certainty::Likely).noted(
            "PARTITION= stands below a filter in the bootloader's settings, which may name another partition",
            "look at it: sudo rpi-eeprom-config",
        ),
        NamedPartition::First | NamedPartition::Number(_) => link,
    };
    match facts.eeprom.watchdog(kernels).filter(|(_, number)| own != Some(*number)) {
        Some((seconds, number)) if !link.is_last => link.noted(
            format!(
                "where the system is not started within {seconds} s, the bootloader goes to partition {number} (BOOT_WATCHDOG_PARTITION)"
            ),
            format!("see that partition {number} can be started from"),
        ),
        _ => link,
    }
}

/// The number at the end of a partition's name.
pub(super) fn number_of(name: &str) -> Option<u32> {
    let start = name.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    name.get(start..)?.parse().ok()
}

/// Whether the firmware finds a boot partition by the table of the medium.
fn by_table(facts: &ChainFacts, table: &DiskTable, link: Link) -> Link {
    let fat: Vec<&TablePartition> = fat_partitions(table).collect();
    let link = link.from("the table of the medium", None);
    if fat.is_empty() {
        return link.stopped(
            "there is no FAT partition on it, and the firmware reads no other filesystem",
            "write the image of an operating system to it, or make its first partition FAT32",
        );
    }
    match table.kind {
        TableKind::Gpt => by_gpt(facts, link),
        // Boards that know no GPT read the MBR.
        TableKind::Hybrid if !facts.model.kernels.has_eeprom() => link,
        TableKind::Hybrid => by_gpt(facts, link),
        TableKind::Mbr => by_type(facts, &fat, link),
    }
}

fn by_type(facts: &ChainFacts, fat: &[&TablePartition], link: Link) -> Link {
    let is_right = |part: &&TablePartition| {
        let kind = part.type_id.as_str();
        FAT_TYPES.contains(&kind) || kind == EFI_TYPE && facts.model.kernels.has_eeprom()
    };
    let has_right = fat.iter().any(is_right);
    let Some(wrong) = fat.first().filter(|_| !has_right) else { return link };
    let number = wrong.number;
    link.with(Certainty::Likely).stopped(
        format!("partition {number} is FAT, but its type in the table is {}", wrong.type_id),
        format!("set its type to 0x0c: sudo sfdisk --part-type DISK {number} c"),
    )
}

fn by_gpt(facts: &ChainFacts, link: Link) -> Link {
    let kernels = facts.model.kernels;
    if !kernels.has_eeprom() {
        return link.with(Certainty::Likely).stopped(
            "it has a GPT, and the boot ROM of this board looks for an MBR",
            "name its FAT partition first in an MBR, too (sgdisk --hybrid=NUMBER:EE), or write an image for this board",
        );
    }
    match facts.eeprom.can(Ability::ReadGpt, kernels) {
        Some(false) => {
            let date = facts.eeprom.date().unwrap_or_default();
            link.from(RELEASE_NOTES, Ability::ReadGpt.since(kernels)).stopped(
                format!("it has a GPT, which the bootloader of {date} does not read"),
                format!("update the bootloader: {UPDATE}"),
            )
        }
        Some(true) => link,
        // Neither the date of a bootloader nor that of the firmware's program is on a card (rpi-eeprom, issues 668 and 854).
        None => link.with(Certainty::Likely).noted(
            "it has a GPT: bootloaders before 2020-09-03 do not read it, and those since 2025-02-11 need a start4.elf since 2025-01-16",
            "take start4.elf and fixup4.dat of a newer system (package raspi-firmware), or divide the disk by an MBR",
        ),
    }
}

/// What a boot partition without the firmware's files means: bootloaders in an EEPROM look into the next one.
fn not_bootable(facts: &ChainFacts, file: &str, link: Link) -> Link {
    let why = format!("it holds no {file}, without which this board does not take it");
    let kernels = facts.model.kernels;
    let is_any = facts.choice != Choice::NoneBootable || !kernels.has_eeprom();
    let Some(next) = next_fat(facts).filter(|_| is_any) else {
        return link.stopped(why, start_files::COPY_FIRMWARE);
    };
    let remedy = format!(
        "if partition {next} is the boot partition, make it the first FAT one, or update the bootloader"
    );
    let since = Ability::WalkPartitions.since(kernels);
    match (kernels.has_eeprom(), facts.eeprom.walks(kernels)) {
        (true, Some(true) | None) => {
            let day = since.unwrap_or_default();
            let found = format!(
                "it holds no {file}; bootloaders since {day} try partition {next}, whose files were not read"
            );
            let what = format!("it holds no {file}");
            link.from(RELEASE_NOTES, since).not_known(found).noted(what, remedy).last()
        }
        (true, Some(false)) | (false, _) => link.with(Certainty::Likely).stopped(why, remedy),
    }
}

/// The number of the FAT partition behind the one that is read, the first one behind the last.
fn next_fat(facts: &ChainFacts) -> Option<u32> {
    let own = facts.medium.partition.as_deref().and_then(number_of)?;
    let fat: Vec<u32> = fat_partitions(facts.table.as_ref()?).map(|part| part.number).collect();
    let behind = fat.iter().copied().find(|number| *number > own);
    behind.or_else(|| fat.iter().copied().find(|number| *number != own))
}

/// A boot partition that is not the first one: the oldest boards look no further.
fn by_place(facts: &ChainFacts, link: Link) -> Link {
    let Some(table) = &facts.table else { return link };
    let own = facts.medium.partition.as_deref().and_then(number_of);
    let Some(first) = table.partitions.first().filter(|first| Some(first.number) < own) else {
        return link;
    };
    let Some(kind) = first.filesystem.as_deref().filter(|kind| *kind != "vfat") else {
        return link;
    };
    let what =
        format!("partition {} is {kind}; the firmware reads the first FAT one", first.number);
    let link = if facts.model.kernels.has_eeprom() { link } else { link.with(Certainty::Likely) };
    link.noted(what, "make the boot partition the first one where the board does not find it")
}

fn fat_partitions(table: &DiskTable) -> impl Iterator<Item = &TablePartition> {
    table.partitions.iter().filter(|part| part.filesystem.as_deref() == Some("vfat"))
}

/// Boards that came with a device tree of their own, of which older firmware says "start4.elf: is not compatible".
const YOUNGER: [(&str, &str); 3] = [
    ("pi400", "bcm2711-rpi-400.dtb"),
    ("cm4", "bcm2711-rpi-cm4.dtb"),
    ("cm4s", "bcm2711-rpi-cm4s.dtb"),
];

/// Firmware older than its board does not start it. How old it is follows from the boards that came with it.
fn by_age(facts: &ChainFacts, link: Link) -> Link {
    let has = |tree: &str| facts.partition.size_bytes(tree).is_some();
    let is_of_pi4 = facts.model.kernels == Kernels::Armv8Or7l && has("bcm2711-rpi-4-b.dtb");
    if !facts.is_whole || facts.running.is_some() || !is_of_pi4 {
        return link;
    }
    const NEWER: &str = "take start4.elf and fixup4.dat of a newer system (package raspi-firmware), or a newer image";
    // Upstream's kernel has one for each carrier: `bcm2711-rpi-cm4-io.dtb`.
    let has_kind = |tree: &str| {
        let stem = tree.trim_end_matches(".dtb");
        let is_it = |name: &str| {
            let rest = name.strip_prefix(stem).unwrap_or_default();
            rest.starts_with('-') && rest.ends_with(".dtb")
        };
        has(tree) || facts.partition.names().any(is_it)
    };
    let own = YOUNGER.iter().find(|(filter, _)| facts.model.filters.contains(filter));
    if let Some((_, tree)) = own.filter(|(_, tree)| !has_kind(tree)) {
        return link.with(Certainty::Likely).stopped(
            format!("start4.elf is older than this board, whose {tree} is not there"),
            NEWER,
        );
    }
    let is_old = own.is_none() && !YOUNGER.iter().any(|(_, tree)| has_kind(tree));
    if !is_old {
        return link;
    }
    link.with(Certainty::Likely).noted(
        "the firmware is of before November 2020; boards of revision 1.4 and later say \"start4.elf: is not compatible\"",
        NEWER,
    )
}

/// Whether updates reach what the firmware reads.
fn by_mount(facts: &ChainFacts, link: Link) -> Link {
    let (Some(_), Some(read)) = (&facts.running, &facts.medium.partition) else { return link };
    let path = format!("/dev/{read}");
    let remedy = match line_for(facts, &path) {
        Some(line) => format!("mount it before an update: sudo mount {}", line.target),
        None => format!("mount {path} at /boot/firmware in /etc/fstab"),
    };
    let is_sure = facts.medium.certainty == Certainty::Certain;
    match &facts.mounted_boot {
        Some(mounted) if *mounted != path && !is_sure => link.noted(
            format!("{mounted} is mounted, and the firmware may read {path}"),
            "look which of them has the boot files: sudo rubus boot with the path of the disk",
        ),
        Some(mounted) if *mounted != path => link.noted_of(
            Subject::OtherPartitionMounted,
            format!("{mounted} is mounted in its place: kernel updates do not reach {path}"),
            remedy,
        ),
        None if facts.kernels_are_elsewhere => link,
        None => link.noted_of(
            Subject::UpdatesDoNotReach,
            format!("{path} is not mounted: kernel updates do not reach it"),
            remedy,
        ),
        Some(_) if facts.updates_miss_mount => link.noted_of(
            Subject::UpdatesGoElsewhere,
            format!("kernel updates go to /boot/firmware and do not reach {path}, which is mounted at /boot"),
            "mount it at /boot/firmware in /etc/fstab in place of /boot, then install the kernel again",
        ),
        Some(_) => link,
    }
}

/// What the table of mounts says of a volume.
fn line_for(facts: &ChainFacts, path: &str) -> Option<Entry> {
    let table = Fstab::parse(facts.root.fstab.as_deref()?);
    let is_it = |entry: &Entry| {
        Name::of(entry).resolve(&facts.volumes).first().is_some_and(|volume| volume.path == path)
    };
    table.entries().into_iter().find(is_it)
}
