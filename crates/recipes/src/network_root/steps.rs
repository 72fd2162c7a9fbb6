//! The steps, in their order: the filesystem on the export, the copy, its files, what the board starts with, and last the
//! words of the command line that have the network looked for.

use std::path::{Path, PathBuf};

use super::super::edits::{Edits, on};
use super::super::moving::steps::{
    INITRAMFS_MODULES, Initramfs, config, id_of, initramfs, keep_command_lines, paths_of, push,
    tree, with_modules, write,
};
use super::super::moving::table;
use super::super::{PlanBuilder, PlanInput, identifiers, swap_managers};
use super::current::FSTAB;
use super::kernels::modules_for;
use super::scene::Scene;
use super::{HELPER, IP_WORD, LABEL, ROOT_WORD, WAIT_WORD, initramfs_files};
use rubus_boot::cmdline_txt::{CmdlineError, CmdlineTxt};
use rubus_boot::fstab::{Entry, Fstab};
use rubus_change::plan::volume::{FilesystemKind, NewFilesystem, Place, Volume};
use rubus_change::plan::{Action, Pass, Step, TextFile};
use rubus_change::steps::{Format, KeepJournal, ProveBoot};
use rubus_vocabulary::machine::Machine;

const HOOK: &str = "/etc/initramfs-tools/hooks/rubus-network-root";
const SCRIPT: &str = "/etc/initramfs-tools/scripts/local-top/rubus-network-root";
const POLICY: &str = "/etc/initramfs-tools/conf.d/rubus-network-root.conf";
const POLICY_TEXT: &str = "# Made by rubus (network-root): drivers of all disks, so that network and card can be started from.\n\
                           MODULES=most\n";
const KIND: FilesystemKind = FilesystemKind::Ext4;
const FLAGS: &str = "noatime";
/// In fstab: what ends the network at shutdown is told that the root needs it.
const TABLE_OPTIONS: &str = "noatime,_netdev";

/// What to look at for the files of the new root.
pub(super) fn paths() -> Vec<PathBuf> {
    let files = [HOOK, SCRIPT, POLICY, INITRAMFS_MODULES].map(Path::new);
    let with_parents = files.iter().flat_map(|file| file.ancestors().take(4));
    let mut paths: Vec<PathBuf> = with_parents.map(PathBuf::from).collect();
    paths.retain(|path| path.starts_with("/etc/initramfs-tools"));
    paths.sort();
    paths.dedup();
    paths
}

/// Adds all steps to the draft.
pub(super) fn draw(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let new = filesystem(situation);
    let root = volume(&new, scene);
    push(
        draft,
        "make-root",
        "The export gets a filesystem; its identifier is what a start looks for, so that no other disk is taken for it.",
        Action::Format(Format { place: Place::Disk { disk: scene.disk.clone() }, filesystem: new }),
    );
    let files = files(situation, scene, &root);
    let changed = paths_of(&files);
    let left_out = table::left_out(situation);
    push(
        draft,
        "copy",
        "Everything on the running root, with all its attributes, goes over the network. Swap files and what only lives \
         while the system runs are left out.",
        tree(&root, Pass::First, &left_out),
    );
    draft.steps.extend(on(&root, files));
    push(
        draft,
        "copy-again",
        "What was changed since the first pass follows; the files that were just changed for the new root are left as they are.",
        tree(&root, Pass::Again, &left_out.and(changed)),
    );
    start(situation, scene, &root, draft);
    draft.needs_boot = true;
}

fn filesystem(situation: &PlanInput<'_>) -> NewFilesystem {
    NewFilesystem {
        kind: KIND,
        uuid: identifiers::uuid(&situation.facts.random, LABEL),
        label: LABEL.into(),
        subvolumes: Vec::new(),
        mount_options: FLAGS.into(),
    }
}

fn volume(new: &NewFilesystem, scene: &Scene<'_>) -> Volume {
    Volume {
        kind: new.kind,
        uuid: new.uuid.clone(),
        mount_options: FLAGS.into(),
        title: format!("the new root on {}", scene.address),
    }
}

/// The current root, which the board falls back to.
fn card(scene: &Scene<'_>) -> Volume {
    let is_btrfs = scene.card.filesystem == "btrfs";
    Volume {
        kind: if is_btrfs { FilesystemKind::Btrfs } else { FilesystemKind::Ext4 },
        uuid: scene.card_uuid.into(),
        mount_options: if is_btrfs { format!("subvol={}", scene.card.root) } else { String::new() },
        title: format!("from {} when the network is not there", scene.card.source),
    }
}

/// The new root's own files, as steps that would change the running one.
fn files(situation: &PlanInput<'_>, scene: &Scene<'_>, root: &Volume) -> Vec<Step> {
    let seen = &situation.facts.seen;
    let mut edits = Edits::new(seen);
    edits.write(
        "fstab",
        "The new system's root is the network disk, and no swap file lies on it. All other lines stay.",
        Path::new(FSTAB),
        fstab(&scene.fstab.text, root, situation.machine),
    );
    edits.write_program(
        "hook",
        "Each initial RAM filesystem that is made on the new root, also after an update of the kernel, gets what it takes to \
         reach the network disk.",
        Path::new(HOOK),
        hook(scene),
    );
    edits.write_program(
        "script",
        "It attaches the network disk before the root is mounted. What it cannot do in time leaves the card's root in force.",
        Path::new(SCRIPT),
        script(situation, root),
    );
    let modules =
        with_modules(situation.text(Path::new(INITRAMFS_MODULES)), &all_modules(situation, scene));
    edits.write(
        "initramfs-modules",
        "The drivers of the card stay in, so that one initial RAM filesystem starts both.",
        Path::new(INITRAMFS_MODULES),
        modules,
    );
    edits.write(
        "initramfs-policy",
        "Raspberry Pi OS puts only the drivers of the present root inside (MODULES=dep), and finds none for a network disk.",
        Path::new(POLICY),
        POLICY_TEXT.into(),
    );
    let mut steps = edits.into_steps();
    let managers = &situation.machine.swap.managers;
    steps.extend(swap_managers::memory_only(managers, seen));
    steps
}

fn fstab(old: &str, root: &Volume, machine: &Machine) -> String {
    let mut table = Fstab::parse(old);
    let files = table::swap_files_on_root(&table, machine);
    table.remove(|entry| entry.is_swap() && files.contains(&entry.source));
    let source = format!("UUID={}", root.uuid);
    table.set(&Entry::new(&source, "/", KIND.name(), TABLE_OPTIONS).checked_in(1));
    table.text().to_string()
}

fn hook(scene: &Scene<'_>) -> String {
    include_str!("hook.sh")
        .replace("@PROGRAM@", &scene.program)
        .replace("@HELPER@", HELPER)
        .replace("@KIND@", KIND.name())
}

fn script(situation: &PlanInput<'_>, root: &Volume) -> String {
    let node = situation.option("device").unwrap_or("/dev/nbd0");
    let dead = situation.option("dead-timeout").unwrap_or("86400");
    let mut options = format!("--dead-timeout={dead}");
    if situation.option("resume-unidentified") == Some("yes") {
        options += " --resume-unidentified";
    }
    include_str!("local-top.sh")
        .replace("@HELPER@", HELPER)
        .replace("@DEVICE@", node)
        .replace("@OPTIONS@", &options)
        .replace("@UUID@", &root.uuid)
        .replace("@KIND@", KIND.name())
        .replace("@FLAGS@", FLAGS)
}

/// The modules of one kernel that network root and card need.
fn modules(situation: &PlanInput<'_>, scene: &Scene<'_>, release: &str) -> Vec<String> {
    let mut modules = modules_for(situation, release, &[], "nbd");
    let card = modules_for(situation, release, &scene.card_disks, &scene.card.filesystem);
    for module in modules_for(situation, release, &[], KIND.name()).into_iter().chain(card) {
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    modules
}

/// Those of all kernels together.
fn all_modules(situation: &PlanInput<'_>, scene: &Scene<'_>) -> Vec<String> {
    let each = scene.kernels.iter();
    let mut all: Vec<String> =
        each.flat_map(|kernel| modules(situation, scene, &kernel.release)).collect();
    all.sort();
    all.dedup();
    all
}

/// What the board starts with. The command line is last.
fn start(situation: &PlanInput<'_>, scene: &Scene<'_>, root: &Volume, draft: &mut PlanBuilder) {
    initramfs(
        &Initramfs {
            start: &scene.start,
            kernels: &scene.kernels,
            root,
            why: "What reaches the network disk has to be there before there is a root.",
            modules: &|release| modules(situation, scene, release),
            files: &initramfs_files(),
            apart: None,
        },
        draft,
    );
    config(situation, &scene.start, &scene.kernels, draft);
    keep_command_lines(situation, &scene.start, draft);
    push(
        draft,
        "keep-journal",
        "So that the change can be verified and undone from the new system.",
        Action::KeepJournal(KeepJournal { on: root.clone() }),
    );
    push(
        draft,
        "prove-boot",
        "Before the command line is changed, everything that the firmware may load is looked at as it will be then: the board \
         has to come up from the card whatever the network does. If anything does not fit, all is undone.",
        Action::ProveBoot(ProveBoot { root: card(scene), boot: scene.start.point.clone() }),
    );
    for (name, file, text) in &scene.cmdlines {
        write(
            situation,
            draft,
            &id_of(name),
            "From the next boot on the network disk is looked for. root= stays: it names the card, which is taken when the \
             server does not answer. This is the last step and the only one that decides.",
            &scene.start.point.join(name),
            TextFile { text: text.clone(), mode: file.mode },
        );
    }
}

/// A command line that has the network disk looked for; every other word stays.
///
/// # Errors
/// [`CmdlineError`] when the line would be too long for the kernel.
pub(super) fn cmdline(
    situation: &PlanInput<'_>,
    old: &str,
    address: &str,
) -> Result<String, CmdlineError> {
    let mut line = CmdlineTxt::parse(old);
    // What grows the card's root at a first start would grow it under the feet of the copy.
    line.remove_first_start();
    line.set(ROOT_WORD, address)?;
    line.set(WAIT_WORD, situation.option("wait").unwrap_or("30"))?;
    match situation.option("ip") {
        None | Some("dhcp") => drop(line.remove(IP_WORD)),
        Some(ip) => line.set(IP_WORD, ip)?,
    }
    line.fits(situation.has_32_bit_arm_kernel())?;
    Ok(line.text().to_string())
}
