//! The same move for a system that does not run: from an image of a card to a new image, prepared on another machine.
//!
//! What decides is what the image says. The new one has its own boot partition and identifiers, so that a disk with
//! it and the card of before can be in one board. The image of before is only read; it is the way back.

use rubus_boot::fstab::{Fstab, Hazard};
use rubus_boot::volume::{Name, NamedVolume};
use rubus_machine::not_copied::NotCopied;
use std::path::{Path, PathBuf};

use super::super::edits::on;
use super::super::moving::foreseen::{self, NextStart};
use super::super::moving::{
    self,
    steps::{WHY_NAMED, config_text, id_of, push, tree},
    table,
};
use super::super::{ImageFacts, PlanBuilder, PlanInput};
use super::checks;
use super::compression::choose;
use super::current::{self, FSTAB, Start, used_bytes};
use super::filesystem::RootFilesystem;
use super::kernels::{Kernel, modules_for_any};
use super::layout::{NewDisk, new_disk};
use super::options::{Choice, SwapKind};
use super::scene::Scene;
use super::steps;
use super::{gains, memory, root};
use rubus_change::plan::volume::{Volume, partition_path};
use rubus_change::plan::{Action, Effort, Pass, Step, TextFile};
use rubus_change::steps::{BuildInitramfs, FillBoot, KeepJournal, ProveBoot, WriteFile};
use rubus_vocabulary::units::{bytes_iec, rate_si};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The boot partition, the first gap and what the last whole piece may lack.
const AROUND_ROOT_BYTES: u64 = (512 + 3 * 8) * MIB;
/// Default room on the new root of an image.
const ROOM_BYTES: u64 = GIB;
/// Default swap size: twice the memory of a small board.
const SWAP_BYTES: u64 = GIB;
/// What an initial RAM filesystem with the drivers of all disks may take, and its follower while a kernel is updated.
const INITRAMFS_BYTES: u64 = 2 * 40 * MIB;
/// How many bytes of a boot partition of 512 MiB are for files.
const BOOT_ROOM_BYTES: u64 = 500 * MIB;
/// Where an initial RAM filesystem is made.
const RUNS_PROGRAMS: &str = "Programs of the image (mkinitramfs and all its hooks) run on this machine, shut in: the image is all that \
                             they see, without network and devices, as a user without rights here.";
/// What rubus changed on the old system is not the new one's to undo.
const OLD_CHANGES: &str = "/var/lib/rubus/changes";
/// What a copy may read and write per second on a machine that makes images.
const FAST_BYTES_PER_SECOND: f64 = 300e6;
const SLOW_BYTES_PER_SECOND: f64 = 20e6;
/// Programs that every image takes on the machine on which it is made, with their Debian packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("mkfs.vfat", "dosfstools"),
    ("mcopy", "mtools"),
    ("mkswap", "util-linux"),
    ("chroot", "coreutils"),
];

/// Programs that an image of any choice takes there.
pub fn image_programs() -> impl Iterator<Item = &'static str> {
    let kinds = RootFilesystem::ALL.into_iter();
    let made = kinds.flat_map(RootFilesystem::programs);
    made.chain(&PROGRAMS).map(|(program, _)| *program)
}

pub(super) fn draw_up(
    situation: &PlanInput<'_>,
    mut choice: Choice,
    image: &ImageFacts,
    draft: &mut PlanBuilder,
) {
    choice.boot_copy = true;
    let root = match choice.filesystem {
        RootFilesystem::Btrfs => "a compressed btrfs",
        RootFilesystem::Ext4 => "an ext4",
        RootFilesystem::F2fs => "an f2fs",
    };
    draft.title = Some(format!(
        "Make an image whose root is {root}{}, from the image of a card.",
        with_swap(&choice)
    ));
    wishes(situation, draft);
    let Some(scene) = look(situation, &choice, image, draft) else {
        return;
    };
    if draft.checks.iter().all(|check| check.is_met) {
        draw(situation, &choice, image, &scene, draft);
    }
}

/// The part of a title that says what the new system swaps to.
pub(super) fn with_swap(choice: &Choice) -> &'static str {
    match choice.swap {
        SwapKind::None => "",
        SwapKind::Partition | SwapKind::File => ", with zswap and swap",
    }
}

/// What only a machine that runs can be asked for.
fn wishes(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let is_set = |name: &&str| situation.option(name).is_some_and(|value| value != "no");
    let odd: Vec<&str> =
        ["device", "boot-copy", "direct-boot"].into_iter().filter(is_set).collect();
    draft.check(
        "every option is about an image",
        odd.is_empty(),
        if odd.is_empty() { "yes".into() } else { format!("not {}", odd.join(", ")) },
        "leave it out: the new image has everything in it, and is written to a disk afterwards",
    );
}

fn look<'a>(
    situation: &PlanInput<'a>,
    choice: &Choice,
    image: &ImageFacts,
    draft: &mut PlanBuilder,
) -> Option<Scene<'a>> {
    let machine = situation.machine;
    let root = current::root(machine)?;
    draft.check(
        "the image holds a system on ext4 that can be moved",
        root.filesystem == "ext4",
        format!("its root is {} ({})", root.filesystem, root.source),
        "this recipe moves a root on ext4, as Raspberry Pi OS has it; an image that it made has btrfs",
    );
    if root.filesystem != "ext4" {
        // Its system may be in a subvolume, whose files were not looked at.
        return None;
    }
    programs(image, choice, draft);
    let start = start(situation, draft);
    let kernels = start.as_ref().and_then(|start| {
        moving::checks::boot(situation, start, &choice.filesystem.needed(), draft)
    });
    let fstab = situation.file(Path::new(FSTAB));
    draft.check(
        "the table of mounts can be read",
        fstab.is_some(),
        situation.presence(Path::new(FSTAB)),
        "this system is set up in another way; the recipe needs /etc/fstab",
    );
    checks::compressed_swap(situation, choice, draft);
    let (start, kernels, fstab) = (start?, kernels?, fstab?);
    same_on_pi5(&start, &kernels, draft);
    let link = gains::link(situation, None);
    checks::suited(situation, choice, draft);
    let chosen = choose(choice, &link, situation);
    let new = divided(situation, choice, image, chosen.method.as_deref(), draft)?;
    let (cmdlines, removed) = checks::command_lines(situation, &start, &new, &chosen, draft)?;
    let device = current::disks(machine, root).into_iter().next()?;
    let table = root::image_fstab(&fstab.text, &new, machine, &start.point);
    let config_txt = config_of(situation, image, &start, &kernels, new.filesystem);
    next_start(situation, &start, &config_txt, &cmdlines, &table.text, &new, draft);
    left_behind(situation, &table.text, draft);
    let scene = Scene {
        start,
        device,
        old_disks: Vec::new(),
        kernels,
        table,
        chosen,
        link,
        new,
        cmdlines,
        removed,
        // The image of before is the way back.
        is_tried: false,
        trial_initramfs: None,
        fallback: None,
    };
    initramfs(situation, image, &scene, draft);
    first_start(&scene, draft);
    Some(scene)
}

/// What the final proof will ask is asked now, before the image is made.
fn next_start(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    config_txt: &str,
    cmdlines: &[(String, &TextFile, String)],
    fstab: &str,
    new: &NewDisk,
    draft: &mut PlanBuilder,
) {
    let boot = new.layout.boot.as_ref();
    let boot = boot.map(|boot| partition_path(&new.disk.path, boot.number));
    let next = NextStart {
        start,
        config_txt,
        cmdlines,
        fstab,
        volumes: &new.volumes(),
        firmware_volume: boot.as_deref(),
    };
    foreseen::check(&next, situation, draft);
    let table = Fstab::parse(fstab);
    let hazards = table.hazards(next.volumes, &["/"]);
    let elsewhere = hazards.iter().filter_map(|hazard| match hazard {
        // A swap that is missing only costs time.
        Hazard::NotThere(entry) if !entry.is_swap() => {
            Some(format!("{} at {}", entry.source, entry.target))
        }
        _ => None,
    });
    let elsewhere: Vec<String> = elsewhere.collect();
    if !elsewhere.is_empty() {
        draft.risks.push(format!(
            "/etc/fstab of the image names other disks of the board: {}. A board that lacks one of them ends in the emergency \
             shell; with nofail in its line it starts without.",
            elsewhere.join(", ")
        ));
    }
}

/// Partitions of the image that are neither its root nor its boot partition are not in the new one.
fn left_behind(situation: &PlanInput<'_>, fstab: &str, draft: &mut PlanBuilder) {
    let volumes = NamedVolume::all_of(situation.machine);
    let entries = Fstab::parse(fstab).entries().into_iter();
    let behind = entries.filter(|entry| !Name::of(entry).resolve(&volumes).is_empty());
    let behind: Vec<String> =
        behind.map(|entry| format!("{} at {}", entry.source, entry.target)).collect();
    if !behind.is_empty() {
        draft.check(
            "/etc/fstab needs no other partition of the image",
            false,
            behind.join(", "),
            "this recipe takes root and boot partition alone; move these files to the root, and take the lines out",
        );
    }
}

/// `config.txt` as it will be. A kernel that has everything built in, and has no initial RAM filesystem now, gets none.
fn config_of(
    situation: &PlanInput<'_>,
    image: &ImageFacts,
    start: &Start<'_>,
    kernels: &[Kernel],
    filesystem: RootFilesystem,
) -> String {
    let with_one = kernels.iter().filter(|kernel| {
        kernel.has_initramfs || !lacks(situation, image, filesystem, kernel).is_empty()
    });
    let with_one: Vec<Kernel> = with_one.cloned().collect();
    config_text(start, &with_one)
}

/// Where a Raspberry Pi 5 has to be told which initial RAM filesystem to load, there must be one alone.
fn same_on_pi5(start: &Start<'_>, kernels: &[Kernel], draft: &mut PlanBuilder) {
    if !kernels.iter().any(|kernel| kernel.is_mistaken) {
        return;
    }
    let mut loaded: Vec<&str> = Vec::new();
    for path in &start.on_pi5 {
        if !loaded.contains(&path.kernel.as_str()) {
            loaded.push(&path.kernel);
        }
    }
    draft.check(
        "each Raspberry Pi 5 loads the same kernel",
        loaded.len() == 1,
        loaded.join(", "),
        "some of its bootloaders load the wrong initial RAM filesystem with another kernel than kernel_2712.img, and config.txt \
         can name one alone: write one kernel= under [pi5], or none",
    );
}

/// Settings that are made at the first start (user, Wi-Fi, ssh) would be lost with the program that makes them.
fn first_start(scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let program = scene.removed.iter().find(|word| word.starts_with("init="));
    let Some(program) = program.filter(|_| scene.start.has(CUSTOM)) else {
        return;
    };
    draft.check(
        "no settings wait for the first start",
        false,
        format!("{CUSTOM} is in the boot partition, and {program}, which would read it, is taken out since it grows an ext4"),
        "start the image once on a board and take an image of that; or take custom.toml out of its boot partition and set the \
         system up after its first start",
    );
}

fn programs(image: &ImageFacts, choice: &Choice, draft: &mut PlanBuilder) {
    let needed = choice.filesystem.programs().iter().chain(&PROGRAMS);
    let is_missing = |program: &str| image.missing.iter().any(|missing| missing == program);
    let (missing, all): (Vec<&str>, Vec<&str>) = (
        needed.clone().map(|one| one.0).filter(|program| is_missing(program)).collect(),
        needed.clone().map(|one| one.0).collect(),
    );
    let packages = needed.filter(|(program, _)| is_missing(program));
    let mut packages: Vec<&str> = packages.map(|(_, package)| *package).collect();
    packages.dedup();
    draft.check(
        "the programs are on this machine that it takes",
        missing.is_empty(),
        if missing.is_empty() {
            all.join(", ")
        } else {
            format!("there is no {}", missing.join(", no "))
        },
        &format!("install {} here; on Debian: sudo apt install {0}", packages.join(" ")),
    );
}

/// What Raspberry Pi Imager leaves for the first start.
const CUSTOM: &str = "custom.toml";

fn start<'a>(situation: &PlanInput<'a>, draft: &mut PlanBuilder) -> Option<Start<'a>> {
    let start = Start::of(situation);
    draft.check(
        "how a board starts from it is known",
        start.is_ok(),
        match &start {
            Ok(start) => {
                let mut ways: Vec<String> = Vec::new();
                for path in &start.paths {
                    let way = format!("{} with {}", path.kernel, path.cmdline);
                    if !ways.contains(&way) {
                        ways.push(way);
                    }
                }
                format!("config.txt leads to {}", ways.join(", ")).into()
            }
            Err(what) => what.clone(),
        },
        "take an image whose boot partition has config.txt and cmdline.txt, as Raspberry Pi OS has: the recipe changes both",
    );
    let start = start.ok()?;
    moving::checks::own_boot_files(&start, draft);
    moving::checks::would_start(situation, moving::checks::Edited::CommandLine, draft);
    Some(start)
}

/// Initial RAM filesystems that do not hold what the new root needs have to be made, by the image's own programs.
fn initramfs(
    situation: &PlanInput<'_>,
    image: &ImageFacts,
    scene: &Scene<'_>,
    draft: &mut PlanBuilder,
) {
    let missing: Vec<String> = scene
        .kernels
        .iter()
        .filter_map(|kernel| {
            let lacks = lacks(situation, image, scene.new.filesystem, kernel);
            (!lacks.is_empty()).then(|| format!("{} lacks {}", kernel.initramfs, lacks.join(", ")))
        })
        .collect();
    let can_make = &image.runs_here;
    let filesystem = scene.new.filesystem;
    let package = filesystem.programs().first().map_or("", |(_, package)| package);
    let filesystem = filesystem.name();
    draft.check(
        &format!("initial RAM filesystems with {filesystem} are there, or can be made"),
        missing.is_empty() || can_make.is_ok(),
        match (missing.is_empty(), can_make) {
            (true, _) => "the current ones have it".into(),
            (false, Ok(())) => format!(
                "{}; they are made by the image's own mkinitramfs, which runs here",
                missing.join("; ")
            ),
            (false, Err(why)) => format!(
                "{}; and the image's own mkinitramfs cannot make them: {why}",
                missing.join("; ")
            ),
        },
        &format!(
            "let programs of other processors run on this machine (sudo apt install qemu-user-static), or on the board itself: \
             sudo apt install {package}, `echo {filesystem} | sudo tee -a /etc/initramfs-tools/modules`, \
             MODULES=most in /etc/initramfs-tools/initramfs.conf, sudo update-initramfs -u -k all, and take the image again"
        ),
    );
}

/// The modules that an initial RAM filesystem lacks; its own name where there is none.
fn lacks(
    situation: &PlanInput<'_>,
    image: &ImageFacts,
    filesystem: RootFilesystem,
    kernel: &Kernel,
) -> Vec<String> {
    let modules = modules_for_any(situation, &kernel.release, filesystem.name());
    let mut names = image.initramfs.iter();
    let found = names.find(|(name, _)| name.eq_ignore_ascii_case(&kernel.initramfs));
    match found {
        Some((_, Ok(inside))) => {
            let is_missing = |module: &String| inside.module(&kernel.release, module).is_none();
            modules.into_iter().filter(is_missing).collect()
        }
        // Built into the kernel, nothing is missing in it.
        None if modules.is_empty() && !kernel.is_loaded => Vec::new(),
        None => vec!["everything: it is not there".into()],
        Some((_, Err(why))) => vec![format!("what can be looked into: {why}")],
    }
}

/// The new image, divided; its size follows from what is in it.
fn divided(
    situation: &PlanInput<'_>,
    choice: &Choice,
    image: &ImageFacts,
    method: Option<&str>,
    draft: &mut PlanBuilder,
) -> Option<NewDisk> {
    let used = used_bytes(situation)?;
    let swap = match choice.swap {
        SwapKind::None => 0,
        _ => choice.swap_bytes.unwrap_or(SWAP_BYTES) / 4096 * 4096,
    };
    // How well it compresses is not known; it may not at all.
    let least = choice.filesystem.root_min_bytes(used, 1.0);
    let usual = (least + swap + AROUND_ROOT_BYTES + ROOM_BYTES).next_multiple_of(64 * MIB);
    let mut disk = image.out.clone();
    disk.size_bytes = choice.image_bytes.unwrap_or(usual) / MIB * MIB;
    let made = new_disk(situation, choice, &disk, least, swap, method);
    draft.check(
        "everything fits into the new image",
        made.is_ok(),
        format!(
            "{} are in use; with the boot partition, {} of swap and 15 % to spare it becomes {}{}",
            bytes_iec(used),
            bytes_iec(swap),
            bytes_iec(disk.size_bytes),
            match &made {
                Ok(_) => String::new(),
                Err(error) => format!(": {error}"),
            }
        ),
        "choose a larger size=, or less swap (swap-size=, swap=none)",
    );
    draft.check(
        "its boot partition has room",
        image.boot_bytes + INITRAMFS_BYTES <= BOOT_ROOM_BYTES,
        format!("{} in 512 MiB", bytes_iec(image.boot_bytes)),
        "remove kernels from the image that no board of yours starts",
    );
    let need = used + image.boot_bytes * 2 + INITRAMFS_BYTES;
    draft.check(
        "there is room where the new image is made",
        image.room_bytes.map(|room| room >= need),
        match image.room_bytes {
            Some(room) => format!(
                "{} free, {} are needed at most (what is empty in it takes nothing)",
                bytes_iec(room),
                bytes_iec(need)
            ),
            None => "not known".into(),
        },
        "make it on another disk, or remove something there",
    );
    made.ok().map(named)
}

/// Names for an image, where the boot partition is no copy beside another one.
fn named(mut new: NewDisk) -> NewDisk {
    if let Some(boot) = &mut new.boot {
        boot.label = "bootfs".into();
    }
    if let Some(volume) = &mut new.boot_volume {
        volume.title = volume.title.replace("the copy of the boot partition", "the boot partition");
    }
    new
}

fn draw(
    situation: &PlanInput<'_>,
    choice: &Choice,
    image: &ImageFacts,
    scene: &Scene<'_>,
    draft: &mut PlanBuilder,
) {
    let Some(boot) = scene.new.boot_volume.clone() else {
        return;
    };
    steps::disk(scene, draft);
    for step in &mut draft.steps {
        if step.id == "make-boot-copy" {
            step.id = "make-boot".into();
            step.why = "What the firmware reads is on a FAT filesystem of its own.".into();
        }
    }
    let zswap = memory::zswap_settings(situation, choice);
    let sysctls = memory::sysctls(situation, choice, scene.link.write, &scene.link.source);
    let files = steps::files(situation, choice, scene, &zswap, &sysctls);
    let changed: Vec<PathBuf> = files
        .iter()
        .filter(|step| !matches!(step.action, Action::MakeDirectory(_)))
        .filter_map(|step| step.action.path().cloned())
        .collect();
    let mut left_out = table::left_out(situation);
    left_out.contents_of.push(OLD_CHANGES.into());
    copy(scene, Pass::First, &left_out, draft);
    draft.steps.extend(on(&scene.new.root_volume, files));
    steps::swap_file(scene, draft);
    copy(scene, Pass::Again, &left_out.and(changed), draft);
    boot_files(situation, image, scene, &boot, draft);
    last(scene, draft);
    gains::promises(situation.machine, &scene.new, &[], &scene.chosen, &zswap, &sysctls, draft);
    told(situation, image, scene, draft);
}

fn copy(scene: &Scene<'_>, pass: Pass, left_out: &NotCopied, draft: &mut PlanBuilder) {
    let (id, why) = match pass {
        Pass::First if scene.chosen.method.is_none() => (
            "copy",
            "Everything on the image's root, with all its attributes. Swap files, what only lives while a system runs, and \
             what rubus noted about changes of the old system are left out.",
        ),
        Pass::First => (
            "copy",
            "Everything on the image's root, with all its attributes, is compressed as it is written. Swap files, what only \
             lives while a system runs, and what rubus noted about changes of the old system are left out.",
        ),
        Pass::Again => (
            "compare",
            "Nothing changes in an image: this finds out whether the copy is like it, file by file. The files that were just \
             changed for the new root are left as they are.",
        ),
    };
    let action = tree(&scene.new.root_volume, pass, left_out);
    push(draft, id, why, action);
}

/// The boot partition as it will be: prepared, proven, and only then put into the image.
fn boot_files(
    situation: &PlanInput<'_>,
    image: &ImageFacts,
    scene: &Scene<'_>,
    boot: &Volume,
    draft: &mut PlanBuilder,
) {
    let mut steps: Vec<Step> = Vec::new();
    let mut add = |id: String, why: String, action: Action| steps.push(Step { id, why, action });
    let needing = scene
        .kernels
        .iter()
        .filter(|kernel| !lacks(situation, image, scene.new.filesystem, kernel).is_empty());
    for kernel in needing {
        if !draft.risks.iter().any(|risk| risk == RUNS_PROGRAMS) {
            draft.risks.push(RUNS_PROGRAMS.into());
        }
        add(
            format!("initramfs-{}", id_of(&kernel.file)),
            steps::why_initramfs(scene),
            Action::BuildInitramfs(BuildInitramfs {
                root: scene.new.root_volume.clone(),
                release: kernel.release.clone(),
                path: Path::new("/").join(&kernel.initramfs),
                kept: None,
                modules: steps::modules(situation, scene, &kernel.release),
                files: Vec::new(),
            }),
        );
    }
    let write = |name: &str, was: &TextFile, text: String| {
        Action::WriteFile(WriteFile {
            path: Path::new("/").join(name),
            was: Some(was.clone()),
            becomes: TextFile { text, mode: was.mode },
        })
    };
    let config = config_of(situation, image, &scene.start, &scene.kernels, scene.new.filesystem);
    if config != scene.start.config.text {
        let why = if scene.kernels.iter().any(|kernel| kernel.is_mistaken) {
            WHY_NAMED
        } else {
            "The firmware loads the initial RAM filesystem with its kernel only when it is told to."
        };
        add("config-txt".into(), why.into(), write("config.txt", scene.start.config, config));
    }
    for (name, file, text) in &scene.cmdlines {
        add(id_of(name), "The kernel takes the new root.".into(), write(name, file, text.clone()));
    }
    draft.steps.extend(on(boot, steps));
}

fn last(scene: &Scene<'_>, draft: &mut PlanBuilder) {
    push(
        draft,
        "prove-boot",
        "Before the boot partition is filled, everything that the firmware of any board may load from it is looked at. If \
         anything does not fit, there will be no image.",
        Action::ProveBoot(ProveBoot {
            root: scene.new.root_volume.clone(),
            boot: scene.start.point.clone(),
        }),
    );
    push(
        draft,
        "keep-journal",
        "So that `rubus verify` on the board knows what was promised.",
        Action::KeepJournal(KeepJournal { on: scene.new.root_volume.clone() }),
    );
    if let Some(partition) = &scene.new.layout.boot {
        push(
            draft,
            "fill-boot",
            "The files of the boot partition, as they were proven, are put there with mcopy; without them nothing starts.",
            Action::FillBoot(FillBoot { place: scene.new.place(partition) }),
        );
    }
}

fn told(situation: &PlanInput<'_>, image: &ImageFacts, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let out = image.out.path.display();
    let new = &scene.new;
    let written = used_bytes(situation).unwrap_or_default();
    draft.effort = Effort {
        written_bytes: written,
        least_s: (written as f64 / FAST_BYTES_PER_SECOND).round(),
        most_s: (2.0 * written as f64 / SLOW_BYTES_PER_SECOND + 300.0 * scene.kernels.len() as f64)
            .round(),
        source: "The disk and the processor of this machine were not measured.".into(),
    };
    draft.risks.push(
        "Everything on the disk that the new image is written to is lost; look twice at its name then.".into(),
    );
    draft.notes.push(format!("Compression: {}", scene.chosen.why));
    let mut parts = vec![format!("root {}", bytes_iec(new.layout.root.size_bytes))];
    parts.extend(new.layout.swap.iter().map(|swap| format!("swap {}", bytes_iec(swap.size_bytes))));
    parts.extend(
        new.swap_file_bytes.map(|bytes| format!("of it a swap file of {}", bytes_iec(bytes))),
    );
    draft.notes.push(format!(
        "{out} becomes {}: boot 512 MiB, {}.",
        bytes_iec(new.disk.size_bytes),
        parts.join(", ")
    ));
    draft.notes.push(format!(
        "{} is only read. The new image is made in {out}.unfinished and gets its name at the very end; whatever has that \
         ending is not to be used.",
        image.file.display()
    ));
    let number = new.layout.root.number;
    draft.notes.push(match new.layout.swap {
        None => format!(
            "Written to a larger disk, it is grown on the board: sudo parted /dev/DISK resizepart {number} 100%, then \
             sudo {}.",
            match new.filesystem {
                RootFilesystem::Btrfs => "btrfs filesystem resize max /".to_string(),
                RootFilesystem::Ext4 => format!("resize2fs /dev/DISK{number}"),
                // It is not grown while it is mounted.
                RootFilesystem::F2fs => format!("resize.f2fs /dev/DISK{number} on another machine"),
            }
        ),
        Some(_) => "A swap partition is behind the root, which cannot grow therefore; with swap=file it could.".into(),
    });
    if !scene.removed.is_empty() {
        draft.notes.push(format!(
            "What grows an ext4 at a first start is taken out of the command line ({}). If it would have done more, such as \
             setting up a user from custom.toml, start the old image once and take an image of that.",
            scene.removed.join(", ")
        ));
    }
    draft.notes.push(
        "Every disk that this image is written to has the same PARTUUIDs: two of them in one board cannot be told apart."
            .into(),
    );
    draft.notes.push(format!(
        "Limits of unwritten data are for a disk with {}; `rubus` on the board measures its own.",
        rate_si(scene.link.write)
    ));
    draft.notes.push(
        "After the first start, `rubus verify` on the board looks whether everything is as promised. The way back is the \
         old image; there is nothing to undo on the new one."
            .into(),
    );
}
