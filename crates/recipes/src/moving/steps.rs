//! Steps that every move of a root has: the copy, the initial RAM filesystems, the boot partition's files.

use std::path::{Path, PathBuf};

use super::super::{PlanBuilder, PlanInput};
use super::current::{KEPT, Start};
use super::kernels::Kernel;
use rubus_boot::config_txt::ConfigTxt;
use rubus_change::plan::volume::Volume;
use rubus_change::plan::{Action, Pass, Step, TextFile};
use rubus_change::steps::{BuildInitramfs, CopyTree, InstallInitramfs, WriteFile};
use rubus_machine::not_copied::NotCopied;

/// Modules that every initial RAM filesystem gets.
pub(crate) const INITRAMFS_MODULES: &str = "/etc/initramfs-tools/modules";

pub(crate) fn push(draft: &mut PlanBuilder, id: &str, why: &str, action: Action) {
    draft.steps.push(Step { id: id.into(), why: why.into(), action });
}

/// The root is copied, without what is left out.
pub(crate) fn tree(to: &Volume, pass: Pass, left_out: &NotCopied) -> Action {
    Action::CopyTree(CopyTree {
        from: "/".into(),
        to: to.clone(),
        without_contents_of: left_out.contents_of.clone(),
        without: left_out.paths.clone(),
        pass,
    })
}

/// The list of modules with these in it too.
pub(crate) fn with_modules(old: &str, modules: &[String]) -> String {
    let mut text = old.to_owned();
    for module in modules {
        let is_there = |line: &str| line.split_whitespace().next() == Some(module.as_str());
        if text.lines().any(is_there) {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(module);
        text.push('\n');
    }
    text
}

/// The initramfs images to rebuild.
pub(crate) struct Initramfs<'a> {
    /// How the board starts.
    pub(crate) start: &'a Start<'a>,
    /// The kernels that it may start.
    pub(crate) kernels: &'a [Kernel],
    /// The root on which they are made.
    pub(crate) root: &'a Volume,
    /// Why they are rebuilt, in words.
    pub(crate) why: &'a str,
    /// What must be inside for a release.
    pub(crate) modules: &'a dyn Fn(&str) -> Vec<String>,
    /// Files that must be inside.
    pub(crate) files: &'a [PathBuf],
    /// A name of its own in the boot partition, where the current one stays until it is installed; for one kernel only.
    pub(crate) apart: Option<&'a str>,
}

/// One for each kernel; the current one is kept, or stays in its place.
pub(crate) fn initramfs(wanted: &Initramfs<'_>, draft: &mut PlanBuilder) {
    let several = wanted.kernels.len() > 1;
    for kernel in wanted.kernels {
        let path = wanted.start.point.join(&kernel.initramfs);
        let (path, kept) = match wanted.apart {
            Some(name) => (wanted.start.point.join(name), None),
            None => {
                let kept = kernel.has_initramfs.then(|| kept(wanted.start, &path));
                (path, kept)
            }
        };
        let id = if several {
            format!("initramfs-{}", kernel.file.replace(['.', '_'], "-"))
        } else {
            "initramfs".into()
        };
        push(
            draft,
            &id,
            wanted.why,
            Action::BuildInitramfs(BuildInitramfs {
                root: wanted.root.clone(),
                release: kernel.release.clone(),
                path,
                kept,
                modules: (wanted.modules)(&kernel.release),
                files: wanted.files.to_vec(),
            }),
        );
    }
}

/// The one that was made apart takes its place; the current one is kept.
pub(crate) fn install(wanted: &Initramfs<'_>, from: &str, why: &str, draft: &mut PlanBuilder) {
    for kernel in wanted.kernels {
        let path = wanted.start.point.join(&kernel.initramfs);
        push(
            draft,
            "install-initramfs",
            why,
            Action::InstallInitramfs(InstallInitramfs {
                root: wanted.root.clone(),
                release: kernel.release.clone(),
                from: wanted.start.point.join(from),
                kept: kernel.has_initramfs.then(|| kept(wanted.start, &path)),
                path,
                modules: (wanted.modules)(&kernel.release),
                files: wanted.files.to_vec(),
            }),
        );
    }
}

/// The current command lines, under second names.
pub(crate) fn keep_command_lines(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    draft: &mut PlanBuilder,
) {
    for (name, file) in &start.cmdlines {
        write(
            situation,
            draft,
            &format!("keep-{}", id_of(name)),
            "The current command line, to be renamed back on any PC if the board does not come up.",
            &kept(start, &start.point.join(name)),
            (*file).clone(),
        );
    }
}

/// `config.txt` loads the initial RAM filesystems, where it does not yet.
pub(crate) fn config(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    kernels: &[Kernel],
    draft: &mut PlanBuilder,
) {
    let text = config_text(start, kernels);
    if text == start.config.text {
        return;
    }
    let is_automatic = kernels.len() > 1 || start.is_for_any;
    let os = situation.machine.system.os.text();
    if is_automatic && !kernels.iter().all(|kernel| kernel.is_loaded) && !is_of_2023(os) {
        draft.check(
            "the firmware loads an initial RAM filesystem with each kernel",
            false,
            format!(
                "{} kernels may be started, and the firmware of {} may be from before auto_initramfs=1 (2023)",
                kernels.len(),
                os.unwrap_or("this system")
            ),
            "name one kernel in config.txt (kernel=), or install a system of 2023 or later",
        );
    }
    let path = start.point.join("config.txt");
    let why = "The current file, to be renamed back on any PC.";
    write(situation, draft, "keep-config-txt", why, &kept(start, &path), start.config.clone());
    let why = if kernels.iter().any(|kernel| kernel.is_mistaken) {
        WHY_NAMED
    } else {
        "The firmware loads the initial RAM filesystem with its kernel only when it is told to; the old root starts with it too."
    };
    write(situation, draft, "config-txt", why, &path, TextFile { text, mode: start.config.mode });
}

/// Whether a system is as new as the firmware's `auto_initramfs` (raspberrypi/documentation#3090, with Debian 12).
fn is_of_2023(os: Option<&str>) -> bool {
    const FIRST: [(&str, u32); 2] = [("GNU/Linux ", 12), ("Ubuntu ", 24)];
    let Some(os) = os else { return false };
    FIRST.iter().any(|(name, first)| {
        let rest = os.split_once(name).map_or("", |(_, rest)| rest);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().is_ok_and(|version| version >= *first)
    })
}

/// Why `config.txt` names the initial RAM filesystem of a kernel.
pub(crate) const WHY_NAMED: &str = "With auto_initramfs=1 some bootloaders of the Raspberry Pi 5 load the \
     initial RAM filesystem of another kernel than the one that kernel= names; a line of its own names the right one.";

/// The text of `config.txt` as it will be.
pub(crate) fn config_text(start: &Start<'_>, kernels: &[Kernel]) -> String {
    let mut text = ConfigTxt::parse(start.config.text.as_str());
    if !kernels.iter().all(|kernel| kernel.is_loaded) {
        match kernels {
            // Which firmware was the first to know auto_initramfs (2023) is not known, and an older one ignores it; all
            // know a line that names the file.
            [kernel] if !start.is_for_any => {
                text.set("initramfs", &format!("{} followkernel", kernel.initramfs));
            }
            _ => text.set("auto_initramfs", "1"),
        }
    }
    let mistaken = kernels.iter().find(|kernel| kernel.is_mistaken);
    match (mistaken, kernels) {
        (Some(kernel), _) if start.is_for_any => {
            let named = format!("{} followkernel", kernel.initramfs);
            // What the other boards load follows from their kernel.
            text.set_under("pi5", &[("auto_initramfs", "0"), ("initramfs", &named)]);
        }
        (Some(_), [kernel]) => {
            text.set("initramfs", &format!("{} followkernel", kernel.initramfs));
            text.set("auto_initramfs", "0");
        }
        _ => {}
    }
    text.text().to_string()
}

/// A file of the boot partition. FAT keeps no modes: every file has the one that the mount gives it, so that a new one
/// gets that of its neighbours.
pub(crate) fn write(
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
    id: &str,
    why: &str,
    path: &Path,
    becomes: TextFile,
) {
    let was = situation.file(path).cloned();
    if was.as_ref() == Some(&becomes) {
        return;
    }
    push(draft, id, why, Action::WriteFile(WriteFile { path: path.into(), was, becomes }));
}

pub(crate) fn id_of(name: &str) -> String {
    name.replace(['.', '/', '_'], "-").to_lowercase()
}

/// Where a file of the boot partition is kept.
pub(crate) fn kept(start: &Start<'_>, path: &Path) -> PathBuf {
    kept_as(path, &kept_ending(start))
}

/// Debian's raspi-firmware removes each `initrd.img-*` and `vmlinuz-*` from the boot partition that `/boot` lacks, so that
/// these get another beginning and not another end.
pub(crate) fn kept_as(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_swept = ["initrd.img-", "vmlinuz-"].iter().any(|begin| name.starts_with(begin));
    path.with_file_name(if is_swept {
        format!("{ending}.{name}")
    } else {
        format!("{name}.{ending}")
    })
}

/// The ending of what this change keeps: one that nothing in the boot partition has. What an earlier change has kept is
/// that one's way back.
pub(crate) fn kept_ending(start: &Start<'_>) -> String {
    let endings = std::iter::once(KEPT.to_string());
    let mut endings = endings.chain((2..).map(|number| format!("{KEPT}-{number}")));
    let is_taken = |ending: &String| {
        let (end, begin) = (format!(".{ending}"), format!("{ending}."));
        start.names.iter().any(|name| {
            let name = name.to_ascii_lowercase();
            name.ends_with(&end) || name.starts_with(&begin)
        })
    };
    endings.find(|ending| !is_taken(ending)).unwrap_or_else(|| KEPT.into())
}

/// The files, directories and links that steps change.
pub(crate) fn paths_of(steps: &[Step]) -> Vec<PathBuf> {
    let paths = steps.iter().filter(|step| !matches!(step.action, Action::MakeDirectory(_)));
    paths.filter_map(|step| step.action.path().cloned()).collect()
}
