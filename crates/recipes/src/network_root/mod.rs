//! network-root: the running system moves from its card to a network disk (NBD); the card only starts it, and is what the
//! board falls back to when the server does not answer.
//!
//! The card's root is never changed, and `root=` on the kernel's command line goes on naming it. One further word there,
//! `rubus.root=`, has a script in the initial RAM filesystem attach the network disk and take that as the root. Whatever
//! keeps the script from it, the board starts from the card as before: no cable, no server, another disk behind the
//! address, an initial RAM filesystem without the script. So there is no start on trial: each start is one.

mod checks;
mod scene;
mod steps;
mod words;

use std::path::{Path, PathBuf};

use super::moving::{self, current, kernels};
use super::{OptionSpec, PlanBuilder, PlanInput, Queries, Recipe, Wishes, network_disk, programs};
use rubus_vocabulary::machine::Machine;

pub(super) static RECIPE: Recipe = Recipe {
    name: NETWORK_ROOT,
    title: "Move the system to a network disk (NBD); the card only starts it, and is started from when the server does not answer.",
    guide: super::Guide {
        changes: "Copies the system to the network disk. On the card it changes the boot partition and /etc/initramfs-tools.",
        needs: "An attached network disk (`rubus attach`) that may lose everything, and wired Ethernet. Takes effect at the next start.",
        example: "sudo rubus plan network-root device=/dev/nbd0",
    },
    options: &[
        OptionSpec {
            name: "device",
            what: "the attached network disk, such as /dev/nbd0 (rubus attach ADDRESS /dev/nbd0); everything on it is lost",
            default: Some("/dev/nbd0"),
            check: |value| network_disk::device(value).map(drop),
        },
        OptionSpec {
            name: "wait",
            what: "how many seconds a start waits for network and server before it takes the card, 5 to 600",
            default: Some("30"),
            check: wait,
        },
        OptionSpec {
            name: "ip",
            what: "dhcp, or an address in the kernel's ip= format: 192.168.1.50::192.168.1.1:255.255.255.0::eth0:off",
            default: Some("dhcp"),
            check: ip,
        },
        OptionSpec {
            name: "dead-timeout",
            what: "how many seconds the running system waits for a server that is gone, before its root fails",
            default: Some("86400"),
            check: |value| network_disk::seconds(value).map(drop),
        },
        OptionSpec {
            name: "resume-unidentified",
            what: "yes: go on also with a server that does not say which disk it serves (nbdkit, nbd-server, qemu-nbd), \
                   which loses writes silently when its machine was restarted; no",
            default: Some("no"),
            check: super::yes_or_no,
        },
    ],
    look_at,
    draw_up,
};

fn wait(value: &str) -> Result<(), String> {
    match value.parse() {
        Ok(5..=600_u32) => Ok(()),
        _ => Err("write 5 to 600 seconds".into()),
    }
}

fn ip(value: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ':' || c == '.' || c == '-';
    if value == "dhcp" || value.contains(':') && value.chars().all(is_plain) {
        Ok(())
    } else {
        Err("write dhcp, or 192.168.1.50::192.168.1.1:255.255.255.0::eth0:off".into())
    }
}

fn look_at(machine: &Machine, wishes: &Wishes) -> Queries {
    let node = wishes.get("device").map_or("/dev/nbd0", String::as_str);
    let mut paths = current::boot_paths(&current::boot_point(machine));
    paths.extend(moving::checks::paths());
    paths.extend(kernels::paths());
    paths.extend(checks::paths(network_disk::name(node)));
    paths.extend(steps::paths());
    paths.extend(super::swap_managers::paths());
    let mut look_at = Queries::paths(paths);
    look_at.trees.push("/".into());
    look_at.disks.push(PathBuf::from(node));
    look_at.program_starts = true;
    look_at
}

fn draw_up(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let node = situation.option("device").unwrap_or("/dev/nbd0");
    let machine = situation.machine;
    let root = current::root(machine).and_then(|root| root.device.as_deref());
    if root == Some(network_disk::name(node)) {
        draft.check("the root can move to that disk", true, format!("it is {node} already"), "");
        draft.notes.push(
            "The root is on that network disk already; `rubus verify` looks whether everything is as promised.".into(),
        );
        return;
    }
    if !checks::makes_them_as_debian(situation, draft) {
        return;
    }
    let scene = checks::look(situation, node, draft);
    programs::check_each(&["mkinitramfs", "mkfs.ext4"], situation, draft);
    // With an obstacle there is nothing to promise.
    let Some(scene) = scene.filter(|_| draft.checks.iter().all(|check| check.is_met)) else {
        return;
    };
    steps::draw(situation, &scene, draft);
    words::all(situation, &scene, draft);
}

/// Name of the recipe.
pub const NETWORK_ROOT: &str = "network-root";
/// Whether this start is from the card because the network was not there: what the script noted.
pub const FROM_CARD: &str = "/run/rubus/root-from-card";

/// The words of a command line by which the root is taken from the network.
const ROOT_WORD: &str = "rubus.root";
const WAIT_WORD: &str = "rubus.wait";
const IP_WORD: &str = "rubus.ip";
/// The program in the initial RAM filesystem. A directory of its own: no link of a merged /usr is in its way.
const HELPER: &str = "/opt/rubus";
/// What the filesystem is.
const LABEL: &str = "network-root";

fn initramfs_files() -> [PathBuf; 2] {
    [HELPER, SCRIPT_INSIDE].map(|path| Path::new(path).into())
}

/// Where initramfs-tools puts the script.
const SCRIPT_INSIDE: &str = "/scripts/local-top/rubus-network-root";

#[cfg(test)]
pub(super) mod tests;
