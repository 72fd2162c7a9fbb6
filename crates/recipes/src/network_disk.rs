//! A filesystem on a network disk: attached and mounted now and at each boot, when the network is there.

use std::path::{Path, PathBuf};

use super::mounting::{self, MountRequest};
use super::{
    OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, network_address, programs, units,
    yes_or_no,
};
use rubus_change::plan::Action;
use rubus_change::plan::promise::{Look, Promise};
use rubus_change::steps::AttachDisk;
use rubus_vocabulary::machine::Machine;

pub(super) static RECIPE: Recipe = Recipe {
    name: "network-disk",
    title: "Attach a network disk (NBD) and mount it, now and at each boot.",
    guide: super::Guide {
        changes: "Writes a systemd unit and /etc/fstab, then mounts the disk.",
        needs: "An NBD server whose export holds a filesystem, systemd, and a kernel with the NBD driver.",
        example: "sudo rubus plan network-disk address=nbd://192.168.1.2/disk at=/mnt/network",
    },
    options: &[
        OptionSpec {
            name: "address",
            what: "the export, such as nbd://192.168.1.2/disk; it must hold a filesystem",
            default: None,
            check: network_address::check,
        },
        OptionSpec {
            name: "at",
            what: "where it is mounted, such as /mnt/network",
            default: None,
            check: mounting::place,
        },
        OptionSpec {
            name: "device",
            what: "the device that it becomes, /dev/nbd0 to /dev/nbd15",
            default: Some("/dev/nbd0"),
            check: |value| device(value).map(drop),
        },
        OptionSpec {
            name: "filesystem",
            what: "what it holds: ext4, btrfs or xfs",
            default: Some("ext4"),
            check: |value| match value {
                "ext4" | "btrfs" | "xfs" => Ok(()),
                _ => Err("write ext4, btrfs or xfs".into()),
            },
        },
        OptionSpec {
            name: "dead-timeout",
            what: "how many seconds reads and writes wait for a server that is gone, before they fail",
            default: Some("300"),
            check: |value| seconds(value).map(drop),
        },
        OptionSpec {
            name: "resume-unidentified",
            what: "yes: go on also with a server that does not say which disk it serves (nbdkit, nbd-server, qemu-nbd), \
                   which loses writes silently when its machine was restarted; no",
            default: Some("no"),
            check: yes_or_no,
        },
    ],
    look_at,
    draw_up,
};

/// How long a boot waits for a server that is late, in seconds.
const SERVER_LATE_S: u32 = 60;

pub(super) fn device(value: &str) -> Result<u32, String> {
    let number = value
        .strip_prefix("/dev/nbd")
        .and_then(|n| n.parse().ok())
        .filter(|n: &u32| *n < 16 && value == format!("/dev/nbd{n}"));
    number.ok_or_else(|| "write /dev/nbd0 to /dev/nbd15".into())
}

pub(super) fn seconds(value: &str) -> Result<u32, String> {
    match value.parse() {
        Ok(seconds @ 1..=31_536_000) => Ok(seconds),
        _ => Err("write seconds, such as 300".into()),
    }
}

fn look_at(machine: &Machine, wishes: &Wishes) -> Queries {
    let mut paths: Vec<PathBuf> = programs::INSTALLED.iter().map(PathBuf::from).collect();
    paths.extend(wishes.get("at").map_or(Vec::new(), |at| mounting::look_at(at)));
    let name = wishes.get("device").map_or("nbd0", |node| name(node));
    paths.push(unit_path(name));
    paths.extend(units::directories());
    paths.extend(units::first_programs());
    paths.push(backend(name));
    paths.extend(modules(machine));
    paths.extend(programs::paths(["mount", "umount"]));
    Queries::paths(paths)
}

/// Where the kernel's driver may be.
fn modules(machine: &Machine) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/sys/module/nbd")];
    if let Some(release) = machine.system.kernel_release.text() {
        let file = format!("/lib/modules/{release}/kernel/drivers/block/nbd.ko");
        let endings = ["", ".xz", ".zst", ".gz"];
        paths.extend(endings.map(|ending| PathBuf::from(format!("{file}{ending}"))));
    }
    paths
}

/// "nbd0".
pub(super) fn name(node: &str) -> &str {
    node.strip_prefix("/dev/").unwrap_or(node)
}

/// What the driver says that a device is attached to.
pub(super) fn backend(name: &str) -> PathBuf {
    format!("/sys/block/{name}/backend").into()
}

fn unit_path(name: &str) -> PathBuf {
    units::path(&format!("rubus-{name}.service"))
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let (Some(address), Some(at)) = (situation.option("address"), situation.option("at")) else {
        let remedy =
            "say both: rubus plan network-disk address=nbd://192.168.1.2/disk at=/mnt/network";
        return draft.check("the disk and its mount point are named", false, "no", remedy);
    };
    let node = situation.option("device").unwrap_or("/dev/nbd0");
    let kind = situation.option("filesystem").unwrap_or("ext4");
    let name = name(node);
    let program = programs::check_installed(situation, draft);
    check_driver(situation, draft);
    let remedy = "let what starts services here run `rubus attach` when the network is there, and mount the disk after that";
    units::check_running(remedy, situation, draft);
    let attached = format!("rubus {address}");
    let is_attached = situation.text(&backend(name)).trim() == attached;
    check_device(node, is_attached, situation, draft);
    let is_mounted = situation
        .machine
        .mounts
        .iter()
        .any(|mount| mount.point == at && mount.device.as_deref() == Some(name));
    if !is_mounted {
        mounting::check_place(Path::new(at), situation, draft);
    }
    let arguments = arguments(address, node, situation);
    draft.write(
        "unit",
        "Each boot attaches the disk when the network is there, before it is mounted, and detaches it after it was unmounted.",
        &unit_path(name),
        unit(&program, &arguments, node, address),
        situation,
    );
    if !is_attached {
        draft.step(
            "attach",
            "It is there at once, without a boot. A watcher stays and connects again when the server was restarted.",
            Action::AttachDisk(AttachDisk {
                address: address.into(),
                device: node.into(),
                arguments,
            }),
        );
    }
    let options = format!(
        "noatime,_netdev,nofail,x-systemd.requires=rubus-{name}.service,x-systemd.device-timeout={}s",
        SERVER_LATE_S + 30
    );
    let wanted = MountRequest { at: Path::new(at), what: node, kind, options: &options, pass: 0 };
    mounting::put(&wanted, "It is there at once, without a boot.", situation, draft);
    programs::check_each(&["mount", "umount"], situation, draft);
    words(address, at, node, kind, situation, draft);
    promises(attached, at, name, draft);
}

fn check_driver(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let paths = modules(situation.machine);
    let there = paths.iter().find(|path| situation.is_there(path));
    draft.check(
        "the kernel has the NBD driver",
        there.is_some(),
        match there {
            Some(path) => format!("{} is there", path.display()),
            None => "the module nbd is neither loaded nor among the kernel's modules".into(),
        },
        "take a kernel with CONFIG_BLK_DEV_NBD=m: those of Raspberry Pi OS and Debian have it",
    );
}

fn check_device(node: &str, is_attached: bool, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let name = name(node);
    let other = situation.text(&backend(name)).trim();
    let is_free = other.is_empty() || is_attached;
    draft.check(
        "the device is free",
        is_free,
        match (is_attached, is_free) {
            (true, _) => format!("{node} is attached to this very export"),
            (_, true) => format!("{node} is not attached"),
            _ => format!("{node} is attached to {other}"),
        },
        "take another one, such as device=/dev/nbd1, or detach it: sudo rubus detach",
    );
}

/// Behind `rubus attach`.
fn arguments(address: &str, node: &str, situation: &PlanInput<'_>) -> Vec<String> {
    let dead = situation.option("dead-timeout").unwrap_or("300");
    let mut arguments = vec![address.to_owned(), node.to_owned()];
    arguments.push(format!("--wait={SERVER_LATE_S}"));
    arguments.push(format!("--dead-timeout={dead}"));
    if situation.option("resume-unidentified") == Some("yes") {
        arguments.push("--resume-unidentified".into());
    }
    arguments
}

/// The systemd service. Stopping it with the disk in use does not end the watcher: it refuses, and is not killed.
fn unit(program: &str, arguments: &[String], node: &str, address: &str) -> String {
    // Of the characters of an address only % means something to systemd.
    let line = units::text(&arguments.join(" "));
    let address = units::text(address);
    format!(
        "# Made by rubus (network-disk).\n\
         [Unit]\n\
         Description=Network disk {address} as {node}\n\
         DefaultDependencies=no\n\
         Wants=network-online.target\n\
         After=network.target network-online.target systemd-modules-load.service\n\
         Before=remote-fs-pre.target shutdown.target\n\
         Conflicts=shutdown.target\n\
         \n\
         [Service]\n\
         Type=forking\n\
         RemainAfterExit=yes\n\
         ExecStart={program} attach {line}\n\
         ExecStop={program} detach {node}\n\
         TimeoutStartSec={}\n\
         SendSIGKILL=no\n",
        SERVER_LATE_S + 30
    )
}

fn words(
    address: &str,
    at: &str,
    node: &str,
    kind: &str,
    situation: &PlanInput<'_>,
    draft: &mut PlanBuilder,
) {
    let dead = situation.option("dead-timeout").unwrap_or("300");
    draft.risks.push(format!(
        "When the server is gone for longer than {dead} s, what reads and writes below {at} gets errors, and the filesystem \
         must be unmounted and looked at with fsck."
    ));
    if situation.option("resume-unidentified") == Some("yes") {
        draft.risks.push(
            "A server that does not say which disk it serves is resumed all the same: when its machine was restarted, \
             writes that were not flushed are lost, and the filesystem is damaged silently."
                .into(),
        );
    } else {
        draft.notes.push(
            "The disk fails instead of being resumed where writes may be lost: when the server's machine was restarted, or when \
             something was not flushed and the server does not say which disk it serves (nbdkit, nbd-server, qemu-nbd)."
                .into(),
        );
    }
    draft.notes.push(format!(
        "The export must hold a filesystem ({kind}) already. To make one, which loses what is on it: sudo rubus attach {address} {node}; \
         sudo mkfs.{kind} {node}; sudo rubus detach {node}."
    ));
    draft.notes.push(format!(
        "A boot without the server goes on after {} seconds, and {at} is empty then.",
        SERVER_LATE_S + 30
    ));
    draft.notes.push(
        "Keep no swap on it: under a lack of memory the network itself needs memory. Compressed memory (rubus plan swap) is \
         better."
            .into(),
    );
}

fn promises(attached: String, at: &str, name: &str, draft: &mut PlanBuilder) {
    draft.promises.push(Promise {
        what: format!("/dev/{name} is the network disk"),
        look: Look::Knob { path: backend(name), value: attached },
        needs_boot: false,
    });
    draft.promises.push(Promise {
        what: format!("it is mounted at {at}"),
        look: Look::MountedFrom { at: at.into(), device: name.into() },
        needs_boot: false,
    });
}

#[cfg(test)]
mod tests;
