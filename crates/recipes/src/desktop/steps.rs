//! The steps, in their order: the new disk, the copy, its files, what the board starts with, and last the one file that
//! says where the root is.

use std::path::{Path, PathBuf};

use super::super::edits::{Edits, on};
use super::super::moving::steps::{
    INITRAMFS_MODULES, Initramfs, config, config_text, id_of, initramfs, install,
    keep_command_lines, paths_of, push, tree, with_modules, write,
};
use super::super::moving::table;
use super::super::{PlanBuilder, PlanInput, swap_managers, zswap};
use super::current::{self, FSTAB};
use super::debian::Named;
use super::kernels::{Has, has, modules_for, modules_for_any};
use super::layout::{SWAP_FILE, SWAP_POINT};
use super::options::{Choice, SwapKind};
use super::scene::Scene;
use super::{boot_copy, debian, fallback, gains, memory, trial};
use rubus_change::plan::volume::{NewFilesystem, Partition};
use rubus_change::plan::{Action, Pass, Step, TextFile};
use rubus_change::steps::{
    CopyTree, Format, KeepJournal, MakeSwapFile, On, PartitionDisk, ProveBoot, WriteFile,
};
use rubus_machine::not_copied::NotCopied;

const INITRAMFS_POLICY: &str = "/etc/initramfs-tools/conf.d/rubus-desktop.conf";
const SYSCTLS: &str = "/etc/sysctl.d/90-rubus-desktop.conf";
const SYSCTLS_NAME: &str = "90-rubus-desktop.conf";
/// What to look at for the files of the new root.
pub(super) fn paths() -> Vec<PathBuf> {
    let files = [INITRAMFS_MODULES, INITRAMFS_POLICY, SYSCTLS, SWAP_POINT];
    let mut paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    paths.extend(files[..3].iter().filter_map(|file| Path::new(file).parent().map(PathBuf::from)));
    paths
}

/// All steps, and what is told beside them.
pub(super) fn draw(
    situation: &PlanInput<'_>,
    choice: &Choice,
    scene: &Scene<'_>,
    draft: &mut PlanBuilder,
) {
    disk(scene, draft);
    let zswap = memory::zswap_settings(situation, choice);
    let link = &scene.link;
    let mut sysctls = memory::sysctls(situation, choice, link.write, &link.source);
    let others = memory::give_way(&situation.facts.seen, &mut sysctls, SYSCTLS_NAME);
    draft.notes.extend(others);
    let files = files(situation, choice, scene, &zswap, &sysctls);
    let changed = paths_of(&files);
    let left_out = table::left_out(situation);
    copy(scene, Pass::First, &left_out, draft);
    draft.steps.extend(on(&scene.new.root_volume, files));
    swap_file(scene, draft);
    copy(scene, Pass::Again, &left_out.and(changed), draft);
    start(situation, scene, draft);
    draft.needs_boot = true;
    let old = scene.old_disks.first().copied();
    gains::gains(situation, old, scene.device, &scene.chosen, link, draft);
    let kernels = scene.kernels.len();
    draft.effort = gains::effort(situation, old, &scene.chosen, link, kernels);
    gains::promises(
        situation.machine,
        &scene.new,
        &scene.old_disks,
        &scene.chosen,
        &zswap,
        &sysctls,
        draft,
    );
    gains::risks(situation, scene, draft);
    gains::notes(situation, &scene.new, &scene.chosen, &scene.start, draft);
    gains::stays(situation, &scene.old_disks, draft);
    if choice.swap != SwapKind::None {
        gains::foreign_zram(situation, draft);
    }
    if choice.direct_boot {
        gains::direct_boot(situation, draft);
    }
}

/// Partitions and filesystems.
pub(super) fn disk(scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let new = &scene.new;
    push(
        draft,
        "partition",
        "The new root and its swap get partitions of their own, aligned to what flash erases at once.",
        Action::Partition(PartitionDisk {
            disk: new.disk.clone(),
            table: new.layout.table.clone(),
        }),
    );
    let mut format = |id: &str, why: &str, partition: &Partition, filesystem: &NewFilesystem| {
        push(
            draft,
            id,
            why,
            Action::Format(Format { place: new.place(partition), filesystem: filesystem.clone() }),
        );
    };
    format("make-root", new.filesystem.why(), &new.layout.root, &new.root);
    if let Some((partition, filesystem)) = new.layout.swap.as_ref().zip(new.swap.as_ref()) {
        let why = "Pages that do not fit into memory go to this disk and not to the card.";
        format("make-swap", why, partition, filesystem);
    }
    if let Some((partition, filesystem)) = new.layout.boot.as_ref().zip(new.boot.as_ref()) {
        let why = "You asked for a copy of the boot partition on the new disk.";
        format("make-boot-copy", why, partition, filesystem);
    }
}

pub(super) fn copy(scene: &Scene<'_>, pass: Pass, left_out: &NotCopied, draft: &mut PlanBuilder) {
    let (id, why) = match pass {
        Pass::First if scene.chosen.method.is_none() => (
            "copy",
            "Everything on the running root, with all its attributes. Swap files and what only lives while the system runs \
             are left out.",
        ),
        Pass::First => (
            "copy",
            "Everything on the running root, with all its attributes, is compressed as it is written. Swap files and what \
             only lives while the system runs are left out.",
        ),
        Pass::Again => (
            "copy-again",
            "What was changed since the first pass follows; the files that were just changed for the new root are left as they are.",
        ),
    };
    push(draft, id, why, tree(&scene.new.root_volume, pass, left_out));
}

pub(super) fn swap_file(scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let new = &scene.new;
    let Some(size_bytes) = new.swap_file_bytes else {
        return;
    };
    let why = match new.swap_volume {
        Some(_) => {
            "Swap in a subvolume of its own: one with an active swap file cannot be snapshotted."
        }
        None => "Pages that do not fit into memory go to a file on this disk and not to the card.",
    };
    push(
        draft,
        "swap-file",
        why,
        Action::On(On {
            volume: new.swap_volume.as_ref().unwrap_or(&new.root_volume).clone(),
            action: Box::new(Action::MakeSwapFile(MakeSwapFile {
                path: SWAP_FILE.into(),
                size_bytes,
            })),
            is_undone: false,
        }),
    );
}

/// The new root's own files, as steps that would change the running one.
pub(super) fn files(
    situation: &PlanInput<'_>,
    choice: &Choice,
    scene: &Scene<'_>,
    zswap: &[(String, String)],
    sysctls: &[(&'static str, String, String)],
) -> Vec<Step> {
    let seen = &situation.facts.seen;
    let machine = situation.machine;
    let mut edits = Edits::new(seen);
    let why = match situation.facts.image {
        None => {
            "The new system mounts the new root by its PARTUUID, uses its own swap, and still mounts the boot partition of before."
        }
        Some(_) => {
            "The new system mounts the new root and the new boot partition by their PARTUUIDs, and uses its own swap."
        }
    };
    let why = format!("{why}{}", table::renamed_words(&scene.table.renamed));
    edits.write("fstab", &why, Path::new(FSTAB), scene.table.text.clone());
    if scene.new.swap_volume.is_some() {
        let why = "The subvolume with the swap file is mounted here.";
        edits.directory("swap-directory", why, Path::new(SWAP_POINT));
    }
    initramfs_files(situation, scene, &mut edits);
    boot_copy::files(machine, scene, &mut edits);
    let (named, until) = match situation.facts.image {
        None => (Named::Old, ": the old one, until the switch"),
        Some(_) => (Named::New, ""),
    };
    if let Some(text) = debian::settings(situation, scene, named) {
        let why = &format!(
            "raspi-firmware rewrites cmdline.txt with each update, for the root that is named here{until}."
        );
        edits.write("raspi-firmware", why, Path::new(debian::SETTINGS), text);
    }
    if !zswap.is_empty() {
        edits.write(
            "zswap-at-boot",
            "zswap keeps swapped pages compressed in memory and writes only the rest; systemd-tmpfiles switches it on at each \
             boot, when the compressor's module can be loaded.",
            Path::new(zswap::BOOT_FILE),
            zswap::boot_text(zswap),
        );
    }
    edits.write(
        "sysctls",
        "Limits of unwritten data in seconds of this disk, and how eagerly memory is swapped.",
        Path::new(SYSCTLS),
        memory::sysctl_text(sysctls),
    );
    let mut steps = edits.into_steps();
    let with_zram = choice.swap == SwapKind::None;
    let managers = machine.swap.managers.iter().filter(|manager| {
        // Without a swap on the disk compressed memory is what is left.
        !(with_zram && matches!(manager.name.as_str(), "zram-generator" | "zram-tools"))
    });
    steps.extend(swap_managers::switch_off(managers, seen));
    steps
}

/// What later updates of the kernel have to know.
fn initramfs_files(situation: &PlanInput<'_>, scene: &Scene<'_>, edits: &mut Edits<'_>) {
    let old = situation.text(Path::new(INITRAMFS_MODULES));
    let text = with_modules(old, &all_modules(situation, scene));
    if text != old {
        let why = match situation.facts.image {
            None => {
                "The kernel finds its root only with these modules, also after it is updated. The old root's are kept, so \
                 that one initial RAM filesystem starts both."
            }
            Some(_) => {
                "The kernel finds its root only with these modules, also after it is updated, whatever disk the image is \
                 written to."
            }
        };
        edits.write("initramfs-modules", why, Path::new(INITRAMFS_MODULES), text);
    }
    let (why, text) = match situation.facts.image {
        None => (
            "Raspberry Pi OS puts only the drivers of the present root inside (MODULES=dep); with those of all disks the \
             board starts from either root.",
            "# Made by rubus (desktop): drivers of all disks, so that old and new root can be started.\nMODULES=most\n",
        ),
        Some(_) => (
            "Raspberry Pi OS puts only the drivers of the present root inside (MODULES=dep); with those of all disks the \
             board starts from whatever the image is written to. No hibernated memory is looked for: the machine that makes \
             the image may have a swap, which the board has not.",
            "# Made by rubus (desktop): drivers of all disks, whichever this is written to.\nMODULES=most\nRESUME=none\n",
        ),
    };
    edits.write("initramfs-policy", why, Path::new(INITRAMFS_POLICY), text.into());
    if let Some(fallback) = &scene.fallback {
        edits.write_program(
            "fallback",
            &format!(
                "If the new disk does not answer within {} s, the board starts the old system from {}, and says so.",
                fallback.wait_s, fallback.old
            ),
            Path::new(fallback::SCRIPT),
            fallback.script(&scene.new),
        );
    }
}

/// The same files on the current root. Until the machine is started again every initial RAM filesystem is made there: without
/// them, an update would put one that cannot mount the new root in the place of the one that was proven.
fn initramfs_files_of_now(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let mut edits = Edits::new(&situation.facts.seen);
    initramfs_files(situation, scene, &mut edits);
    let why = "Until the machine is started again, updates make the initial RAM filesystem here; theirs has to start the new \
               root too.";
    let steps = edits.into_steps().into_iter().map(|step| Step { why: why.into(), ..step });
    draft.steps.extend(on_root_of_now(situation, steps.collect()));
}

/// Why the initramfs images are rebuilt.
pub(super) fn why_initramfs(scene: &Scene<'_>) -> String {
    if scene.new.filesystem.is_btrfs() {
        "btrfs is a module of the kernel, and the kernel cannot read its modules from a root that it cannot mount."
            .into()
    } else {
        "What the kernel needs for the new disk may be modules of its own, which it cannot read from a root that it \
                  cannot mount."
            .into()
    }
}

/// Steps on the current root, which undoing takes back from whichever root runs then.
fn on_root_of_now(situation: &PlanInput<'_>, steps: Vec<Step>) -> Vec<Step> {
    let volume = current::root_volume(situation.machine);
    let steps = steps.into_iter().map(|step| Step {
        id: format!("{}-here", step.id),
        why: step.why,
        action: match &volume {
            Some(volume) => Action::On(On {
                volume: volume.clone(),
                action: Box::new(step.action),
                is_undone: true,
            }),
            None => step.action,
        },
    });
    steps.collect()
}

/// The modules of all kernels together.
fn all_modules(situation: &PlanInput<'_>, scene: &Scene<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for kernel in &scene.kernels {
        for module in modules(situation, scene, &kernel.release) {
            if !all.contains(&module) {
                all.push(module);
            }
        }
    }
    all
}

/// The modules of one kernel that the new root and the old one need.
pub(super) fn modules(situation: &PlanInput<'_>, scene: &Scene<'_>, release: &str) -> Vec<String> {
    if situation.facts.image.is_some() {
        return modules_for_any(situation, release, scene.new.filesystem.name());
    }
    let filesystem = scene.new.filesystem.name();
    let mut modules = modules_for(situation, release, &[scene.device], filesystem);
    let old = current::root(situation.machine).map_or("ext4", |root| &root.filesystem);
    for module in modules_for(situation, release, &scene.old_disks, old) {
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    if scene.fallback.is_some() {
        let boot = fallback::BOOT_PARTITION.into_iter();
        modules.extend(
            boot.filter(|module| has(situation, release, module) == Has::Module)
                .map(str::to_string),
        );
    }
    modules
}

/// What the board starts with. The command line is last: it alone decides which root it is. What a usual start reads
/// is changed after the trial, where there is one.
fn start(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    initramfs_files_of_now(situation, scene, draft);
    let apart = scene.trial_initramfs;
    let modules = |release: &str| modules(situation, scene, release);
    let files = fallback::files(scene.fallback.as_ref());
    let wanted = Initramfs {
        start: &scene.start,
        kernels: &scene.kernels,
        root: &scene.new.root_volume,
        why: &why_initramfs(scene),
        modules: &modules,
        files: &files,
        apart,
    };
    initramfs(&wanted, draft);
    if apart.is_none() {
        config(situation, &scene.start, &scene.kernels, draft);
    }
    keep_command_lines(situation, &scene.start, draft);
    if apart.is_none() {
        copy_boot(situation, scene, draft);
    }
    if scene.is_tried {
        trial::command_line(situation, scene, draft);
    }
    push(
        draft,
        "keep-journal",
        "So that the change can be verified and undone from the new system.",
        Action::KeepJournal(KeepJournal { on: scene.new.root_volume.clone() }),
    );
    prove(
        "prove-boot",
        "Before the one step that decides, everything that the firmware may load is looked at as it will be then, and whether \
         the old root still starts with it. If anything does not fit, all is undone and the board starts as before.",
        scene,
        draft,
    );
    let usual = match apart {
        Some(_) => scene.start.config.text.clone(),
        None => config_text(&scene.start, &scene.kernels),
    };
    if scene.is_tried {
        trial::begin(situation, scene, &usual, draft);
    }
    if let Some(from) = apart {
        let why = "The new system has come up with it: from now on every start reads it. The old root starts with it too.";
        install(&wanted, from, why, draft);
        config(situation, &scene.start, &scene.kernels, draft);
        copy_boot(situation, scene, draft);
        let why = "A kernel may have been updated since the first look. If anything does not fit, all is undone.";
        prove("prove-boot-again", why, scene, draft);
    }
    switch(situation, scene, draft);
    boot_copy_switch(scene, draft);
    if scene.is_tried {
        trial::end(scene, &usual, draft);
    }
}

fn prove(id: &str, why: &str, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let action = Action::ProveBoot(ProveBoot {
        root: scene.new.root_volume.clone(),
        boot: scene.start.point.clone(),
    });
    push(draft, id, why, action);
}

/// The one file that says where the root is.
fn switch(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let point = &scene.start.point;
    let decides = if scene.is_tried {
        "The new system has come up and everything holds: from now on every start is the new one. This is the only step \
                 that decides."
    } else {
        "From the next boot on the kernel takes the new root. This is the last step and the only one that decides."
    };
    let taken_out = if scene.removed.is_empty() {
        String::new()
    } else {
        format!(
            " What grows the root at a first start is taken out ({}).",
            scene.removed.join(", ")
        )
    };
    if let Some(text) = debian::settings(situation, scene, Named::New) {
        let mut edits = Edits::new(&situation.facts.seen);
        let why = "raspi-firmware would write the old root into cmdline.txt again with the next update that is made here.";
        edits.write("raspi-firmware", why, Path::new(debian::SETTINGS), text);
        draft.steps.extend(on_root_of_now(situation, edits.into_steps()));
    }
    if let Some(action) = debian::switch(situation, scene) {
        let why = "The new root names itself from now on. Undoing has it name the old one, so that an update before the \
                   restart does not take that back.";
        push(draft, "raspi-firmware-switch", why, action);
    }
    for (name, file, text) in &scene.cmdlines {
        write(
            situation,
            draft,
            &id_of(name),
            &format!("{decides}{taken_out}"),
            &point.join(name),
            TextFile { text: text.clone(), mode: file.mode },
        );
    }
}

/// The boot partition's copy on the new disk. Until the change is kept it starts the old root, as the card does: a board
/// that looks at the new disk first must not start the new root untried.
fn copy_boot(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let Some(volume) = &scene.new.boot_volume else {
        return;
    };
    let trials =
        if scene.is_tried { trial::files(&scene.start.point).to_vec() } else { Vec::new() };
    push(
        draft,
        "copy-boot",
        "The same files as on the card, with the new initial RAM filesystems. Its command line still names the old root.",
        Action::CopyTree(CopyTree {
            from: scene.start.point.clone(),
            to: volume.clone(),
            without_contents_of: Vec::new(),
            without: trials,
            pass: Pass::First,
        }),
    );
    boot_copy_note(situation, scene, draft);
}

/// Which of the two boot partitions a kernel that is installed goes to.
fn boot_copy_note(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let Some(partition) = &scene.new.layout.boot else { return };
    if scene.start.is_for_any {
        return;
    }
    let point = scene.start.point.display();
    let starts = "The copy of the boot partition starts the new system without the card.";
    draft.notes.push(if boot_copy::are_kept_alike(situation.machine, scene) { format!(
            "{starts} Kernels that are installed later go to the partition that is mounted at {point}, and hooks bring them to \
             the other one; without the card the copy is mounted there. Kernels that are installed while the card is out reach \
             it at the next start with it in: start from the new disk then."
        ) } else { format!(
            "{starts} Kernels that are installed later go to the partition that is mounted at {point}, the card's, and not to \
             the copy: before you take the card out for good, name the copy in /etc/fstab of the new system (PARTUUID={} \
             {point} vfat defaults 0 2) and restart without the card.",
            partition.partuuid
        ) });
}

/// The copy's command line follows that of the card.
fn boot_copy_switch(scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let Some(volume) = &scene.new.boot_volume else {
        return;
    };
    for (name, file, text) in &scene.cmdlines {
        if file.text == *text {
            continue;
        }
        push(
            draft,
            &format!("boot-copy-{}", id_of(name)),
            "The copy starts the new root too, now that the card does. Undoing has it start the old one again.",
            Action::On(On {
                volume: volume.clone(),
                action: Box::new(Action::WriteFile(WriteFile {
                    path: Path::new("/").join(name),
                    was: Some((*file).clone()),
                    becomes: TextFile { text: text.clone(), mode: file.mode },
                })),
                is_undone: true,
            }),
        );
    }
}
