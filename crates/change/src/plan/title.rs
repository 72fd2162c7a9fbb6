//! Actions in one line each, for the list of steps.

use super::volume::{FilesystemKind, NewFilesystem, TableKind};
use super::{Action, Pass, When};
use rubus_vocabulary::units::bytes_iec;

/// What an action does.
pub(super) fn forwards(action: &Action) -> String {
    match action {
        Action::MakeDirectory { path } => format!("make the directory {}", path.display()),
        Action::WriteFile { path, was: None, .. } => format!("make {}", path.display()),
        Action::WriteFile { path, .. } => format!("change {}", path.display()),
        Action::RemoveFile { path, .. } => format!("remove {}", path.display()),
        Action::SetKnob { path, was, becomes } => {
            format!("set {} from {was} to {becomes}", path.display())
        }
        Action::SetLink { path, becomes, .. } => match becomes {
            Some(target) => format!("let {} point to {}", path.display(), target.display()),
            None => format!("remove the link {}", path.display()),
        },
        Action::On { volume, action, .. } => format!("on {}: {}", volume.title, forwards(action)),
        Action::Partition { disk, table } => {
            let kind = match table.kind {
                TableKind::Mbr { .. } => "MBR",
                TableKind::Gpt { .. } => "GPT",
            };
            let count = table.partitions.len();
            let plural = if count == 1 { "" } else { "s" };
            format!(
                "write a new partition table to {} ({kind}, {count} partition{plural})",
                disk.path.display()
            )
        }
        Action::MakeArray { name, level, members, .. } => {
            let members: Vec<String> = members.iter().map(super::Place::title).collect();
            format!("make the RAID-{level} array {name} of {}", members.join(" and "))
        }
        Action::Format { place, filesystem } => {
            format!("make {} on {}", noun(filesystem), place.title())
        }
        Action::CopyTree { from, to, pass, .. } => match pass {
            Pass::First => format!("copy {} to {}", from.display(), to.title),
            Pass::Again => {
                format!("copy again what has changed in {} meanwhile, and compare", from.display())
            }
        },
        Action::BuildInitramfs { path, release, .. } => {
            format!("make a new initial RAM filesystem for {release}, as {}", path.display())
        }
        Action::InstallInitramfs { from, path, .. } => format!(
            "put the initial RAM filesystem {} in place, as {}",
            from.display(),
            path.display()
        ),
        Action::MakeSwapFile { path, size_bytes } => {
            format!("make the swap file {} of {}", path.display(), bytes_iec(*size_bytes))
        }
        Action::SwapOn { what, .. } => format!("use the swap {what}"),
        Action::SwapOff { what, .. } => format!("stop using the swap {what}"),
        Action::Mount { what, at, .. } => format!("mount {what} at {}", at.display()),
        Action::AttachDisk { address, device, .. } => {
            format!("attach {address} as {}", device.display())
        }
        Action::MakeImage { path, size_bytes } => {
            format!("make the disk image {} of {}", path.display(), bytes_iec(*size_bytes))
        }
        Action::ReadUnits => "let systemd read its units".into(),
        Action::RestartService { unit, when } => match when {
            When::Applied => format!("restart {unit}"),
            When::Undone => format!("nothing yet: undoing restarts {unit} here"),
        },
        Action::StartServer { unit, .. } => {
            format!("start {unit}.socket, and the server behind it with a question")
        }
        Action::ProveBoot { root, .. } => format!("prove that the board will start {}", root.title),
        Action::KeepJournal { on } => format!("keep this plan and its journal on {} too", on.title),
        Action::FillBoot { place } => format!("put the boot files on {}", place.title()),
    }
}

/// How it is made sure that an action was done.
pub(super) fn proof(action: &Action) -> String {
    match action {
        Action::MakeDirectory { .. } => "it is there".into(),
        Action::WriteFile { .. } => "the file is read back and compared".into(),
        Action::RemoveFile { .. } => "nothing of that name is there".into(),
        Action::SetKnob { becomes, .. } => format!("the kernel, asked again, says {becomes}"),
        Action::SetLink { .. } => "the link is read back".into(),
        Action::On { action, .. } => proof(action),
        Action::Partition { .. } => {
            "the table is read back, and the kernel has every partition where it should be".into()
        }
        Action::MakeArray { members, .. } => format!(
            "the kernel runs the array with {} of {} members",
            members.len(),
            members.len()
        ),
        Action::Format { filesystem, .. } => format!(
            "its superblock is read back: {} with the identifier {}",
            filesystem.kind.name(),
            filesystem.uuid
        ),
        Action::CopyTree { pass, .. } => match pass {
            Pass::First => "every file is there, or named as changed or gone meanwhile".into(),
            Pass::Again => "source and copy are compared".into(),
        },
        Action::BuildInitramfs { modules, .. } | Action::InstallInitramfs { modules, .. }
            if modules.is_empty() =>
        {
            "it is unpacked and looked into".into()
        }
        Action::BuildInitramfs { modules, .. } | Action::InstallInitramfs { modules, .. } => format!(
            "it is unpacked and looked into; these modules must be in it or in the kernel: {}",
            modules.join(", ")
        ),
        Action::MakeSwapFile { .. } => "its size and its mark are read back".into(),
        Action::SwapOn { .. } => "the kernel lists it in /proc/swaps".into(),
        Action::SwapOff { .. } => "the kernel does not list it in /proc/swaps any more".into(),
        Action::Mount { .. } => "the kernel lists it in /proc/self/mountinfo".into(),
        Action::AttachDisk { .. } => "the kernel's driver says to what it is attached".into(),
        Action::MakeImage { .. } => "its size is read back".into(),
        Action::ReadUnits => "systemd says that it has".into(),
        Action::RestartService { when, .. } => match when {
            When::Applied => "systemd says that it is active".into(),
            When::Undone => "not needed: nothing is done".into(),
        },
        Action::StartServer { .. } => "the server answers with what it serves".into(),
        Action::ProveBoot { .. } => {
            "kernels, initial RAM filesystems, command line, volumes and fstab are read and must agree".into()
        }
        Action::KeepJournal { .. } => "both are read back from there".into(),
        Action::FillBoot { .. } => "every file is read back and compared".into(),
    }
}

/// What undoing an action does.
pub(super) fn back(action: &Action) -> String {
    match action {
        Action::MakeDirectory { path } => {
            format!("remove the directory {} if it is empty", path.display())
        }
        Action::WriteFile { path, was: None, .. } => format!("remove {}", path.display()),
        Action::WriteFile { path, .. } => format!("put {} back as it was", path.display()),
        Action::RemoveFile { path, .. } => format!("make {} again", path.display()),
        Action::SetKnob { path, was, .. } => format!("set {} to {was}", path.display()),
        Action::SetLink { path, was, .. } => match was {
            Some(target) => format!("let {} point to {} again", path.display(), target.display()),
            None => format!("remove the link {}", path.display()),
        },
        Action::On { volume, action, is_undone: true } => {
            format!("on {}: {}", volume.title, back(action))
        }
        Action::On { volume, .. } => format!("not needed: {} is no longer used", volume.title),
        Action::Partition { disk, .. } => {
            format!("not possible: what was on {} is lost", disk.path.display())
        }
        Action::MakeArray { name, .. } => {
            format!("stop the array {name} and take its marks from the members")
        }
        Action::Format { place, .. } => {
            format!("not possible: what was on {} is lost", place.title())
        }
        Action::CopyTree { to, .. } => format!("not needed: the copy stays on {}", to.title),
        Action::BuildInitramfs { path, kept, .. } | Action::InstallInitramfs { path, kept, .. } => {
            match kept {
                Some(kept) => format!("put {} back as {}", kept.display(), path.display()),
                None => format!("remove {}", path.display()),
            }
        }
        Action::MakeSwapFile { path, .. } => format!("remove {}", path.display()),
        Action::SwapOn { what, .. } => format!("stop using the swap {what}"),
        Action::SwapOff { what, .. } => format!("use the swap {what} again"),
        Action::Mount { at, .. } => format!("unmount {}", at.display()),
        Action::AttachDisk { device, .. } => format!("detach {}", device.display()),
        Action::MakeImage { path, .. } => {
            format!("not needed: {} stays, with what is on it", path.display())
        }
        Action::ReadUnits => "let systemd read its units, without those that are gone".into(),
        Action::RestartService { unit, when } => match when {
            When::Applied => format!("not needed: {unit} is restarted later"),
            When::Undone => format!("restart {unit}"),
        },
        Action::StartServer { unit, .. } => format!("stop {unit}.socket and {unit}.service"),
        Action::ProveBoot { .. } => "not needed: it only looks".into(),
        Action::KeepJournal { on } => format!("not needed: they stay on {}", on.title),
        Action::FillBoot { place } => format!("not needed: they stay on {}", place.title()),
    }
}

/// A filesystem with its article.
fn noun(filesystem: &NewFilesystem) -> &'static str {
    match filesystem.kind {
        FilesystemKind::Btrfs => "a btrfs filesystem",
        FilesystemKind::Ext4 => "an ext4 filesystem",
        FilesystemKind::F2fs => "an f2fs filesystem",
        FilesystemKind::Vfat => "a FAT32 filesystem",
        FilesystemKind::Swap => "a swap area",
    }
}
