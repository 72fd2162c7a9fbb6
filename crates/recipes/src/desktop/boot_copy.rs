//! Two boot partitions that stay alike: that of the old disk, and its copy on the new one.
//!
//! Kernels are installed to the one that is mounted. A hook of the kernel's packages and one of the initial RAM filesystem's
//! bring what they wrote to the other; at each start a service does so for what was installed while one of them was out, and
//! mounts the copy where the old disk is out. Source: Debian Linux Kernel Handbook, "Kernel hooks"; initramfs-tools(7).

use std::path::{Path, PathBuf};

use super::super::edits::Edits;
use super::super::units;
use super::scene::Scene;
use super::trial;
use rubus_boot::cmdline_txt::CmdlineTxt;
use rubus_vocabulary::machine::Machine;

use super::super::moving::current;

/// Behind those of raspi-firmware and flash-kernel, which write to the boot partition.
const KERNEL_HOOK: &str = "/etc/kernel/postinst.d/zz-rubus-boot-copy";
const HOOKS: [(&str, &str, &str); 2] = [
    ("boot-copy-removal-hook", "/etc/kernel/postrm.d/zz-rubus-boot-copy", ""),
    (
        "boot-copy-initramfs-hook",
        "/etc/initramfs/post-update.d/zz-rubus-boot-copy",
        // A package of a kernel builds it before its kernel is in the boot partition, and the two belong together. Source:
        // dpkg(1), environment of maintainer scripts.
        "# The hook of the kernel follows, and brings both.\n\
         case $DPKG_MAINTSCRIPT_PACKAGE in linux-image-*) exit 0 ;; esac\n",
    ),
];
const UNIT: &str = "rubus-boot-copy.service";
const TARGET: &str = "multi-user.target";

/// What to look at.
pub(super) fn paths() -> Vec<PathBuf> {
    let hooks = HOOKS.iter().map(|(_, hook, _)| *hook).chain([KERNEL_HOOK]);
    let hooks = hooks.flat_map(|hook| Path::new(hook).ancestors().take(3).map(PathBuf::from));
    hooks.chain(units::look_at(UNIT, TARGET)).collect()
}

/// The files on the new root that keep both alike; nothing where there is no copy, or where the script could not tell them apart.
pub(super) fn files(machine: &Machine, scene: &Scene<'_>, edits: &mut Edits<'_>) {
    let Some(script) = script(machine, scene) else { return };
    let point = scene.start.point.display().to_string();
    edits.write_program(
        "boot-copy-kernel-hook",
        "Kernels that are installed later go to the boot partition that is mounted; this brings them to the other one, so that \
         the board goes on starting with the old disk in and with it out.",
        Path::new(KERNEL_HOOK),
        script,
    );
    for (id, hook, first) in HOOKS {
        edits.write_program(
            id,
            "The same when a kernel is removed or an initial RAM filesystem is rebuilt.",
            Path::new(hook),
            format!(
                "#!/bin/sh\n# Made by rubus (desktop, boot-copy=yes).\n{first}exec {KERNEL_HOOK} \"$@\"\n"
            ),
        );
    }
    let mount = format!("{}.mount", point.trim_start_matches('/').replace('/', "-"));
    edits.write(
        "boot-copy-service",
        "At each start: where the old disk is out, the copy is mounted in its place, so that updates reach it; where it is back, \
         it gets what it missed.",
        &units::path(UNIT),
        format!(
            "# Made by rubus (desktop, boot-copy=yes).\n[Unit]\nDescription=Keep two boot partitions alike\n\
             After=local-fs.target {mount}\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
             ExecStart={KERNEL_HOOK} start\n\n[Install]\nWantedBy={TARGET}\n"
        ),
    );
    edits.enable("boot-copy-enabled", "The service is started at each start.", UNIT, TARGET);
}

/// Whether both stay alike.
pub(super) fn are_kept_alike(machine: &Machine, scene: &Scene<'_>) -> bool {
    script(machine, scene).is_some()
}

/// The script with what it was made for: both partitions, and the root that they start.
fn script(machine: &Machine, scene: &Scene<'_>) -> Option<String> {
    let names: Vec<&str> = scene.cmdlines.iter().map(|(name, ..)| name.as_str()).collect();
    let (_, _, line) = scene.cmdlines.first()?;
    let root = CmdlineTxt::parse(line.as_str()).all("root").last()?.to_ascii_lowercase();
    let trial = trial::NAMES.join(" ");
    let values = [
        ("@POINT@", scene.start.point.display().to_string()),
        ("@FIRST@", first(machine)?),
        ("@COPY@", copy(scene)?),
        ("@ROOT@", format!("root={root}")),
        ("@CMDLINES@", names.join(" ")),
        ("@TRIAL@", trial),
    ];
    // They stand between a shell's quotes, the names of command lines as words.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -/_.=".contains(c);
    let are_plain = values.iter().all(|(_, value)| value.chars().all(is_plain));
    if !are_plain || names.iter().any(|name| name.contains(' ')) {
        return None;
    }
    let text = include_str!("boot-copy.sh").to_string();
    Some(values.iter().fold(text, |text, (mark, value)| text.replace(mark, value)))
}

/// The copy's node; an image's boot partition is the only one.
fn copy(scene: &Scene<'_>) -> Option<String> {
    let partition = scene.new.layout.boot.as_ref().filter(|_| !scene.start.is_for_any)?;
    Some(format!("/dev/disk/by-partuuid/{}", partition.partuuid))
}

/// A node of the mounted boot partition that each start finds again.
fn first(machine: &Machine) -> Option<String> {
    let mount = current::boot(machine)?;
    let identity = &machine.device(mount.device.as_deref()?)?.identity;
    let by =
        |kind: &str, id: &Option<String>| Some(format!("/dev/disk/by-{kind}/{}", id.as_ref()?));
    by("partuuid", &identity.partuuid).or_else(|| by("uuid", &identity.uuid))
}
