//! What must hold before the root moves to a network disk, and what was found.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::super::moving::checks::{self as moving, Needed};
use super::super::moving::foreseen::{self, NextStart};
use super::super::moving::kernels::Kernel;
use super::super::moving::steps::config_text;
use super::super::{PlanBuilder, PlanInput, disks, distribution, network_disk, programs, tables};
use super::current::{self, FSTAB, Start, used_bytes};
use super::scene::Scene;
use super::steps::cmdline;
use rubus_change::plan::TextFile;
use rubus_change::plan::volume::DiskIdentity;
use rubus_vocabulary::machine::{Link, Mount};
use rubus_vocabulary::units::{bytes_iec, bytes_si};

/// What every kernel has to bring.
const NBD: Needed = Needed {
    module: "nbd",
    config: "BLK_DEV_NBD",
    remedy: "use the kernel of Raspberry Pi OS (sudo apt install linux-image-rpi-v8) or Debian, which have it; one of your \
             own needs the line CONFIG_BLK_DEV_NBD=m",
};
/// What gives the board its address before there is a root; it comes with initramfs-tools.
const IPCONFIG: &str = "/usr/lib/klibc/bin/ipconfig";
/// What is to be left over on the new root, as a share of what is copied, and what ext4 takes for itself.
const SPARE: f64 = 1.15;
const EXT4_OWN: f64 = 0.03;

/// What to look at for these checks.
pub(super) fn paths(name: &str) -> Vec<PathBuf> {
    let mut paths = vec![network_disk::backend(name), record(name), IPCONFIG.into()];
    paths.extend(tables::paths().map(PathBuf::from));
    paths.extend(programs::INSTALLED.map(PathBuf::from));
    paths.extend(programs::paths(["mkinitramfs", "mkfs.ext4"]));
    paths
}

/// What the watcher of a device says of it.
fn record(name: &str) -> PathBuf {
    format!("/run/rubus/attached/{name}.json").into()
}

/// Whether initial RAM filesystems are made here as this recipe makes them. Where they are not, an attached disk and the programs
/// that are missing would be of no use.
pub(super) fn makes_them_as_debian(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> bool {
    let machine = situation.machine;
    let Some(system) = machine.system.os.text() else { return true };
    if distribution::is_debian(machine) || situation.is_there(IPCONFIG.as_ref()) {
        return true;
    }
    draft.check(
        "initial RAM filesystems are made by Debian's initramfs-tools",
        false,
        format!("{system} makes them by other means"),
        "leave the root where it is: this recipe knows no other means. Data can be on a network disk here, too (rubus attach)",
    );
    false
}

pub(super) fn look<'a>(
    situation: &PlanInput<'a>,
    node: &str,
    draft: &mut PlanBuilder,
) -> Option<Scene<'a>> {
    let machine = situation.machine;
    let start = moving::system(situation, draft);
    let address = address(situation, node, draft);
    let disk = address.is_some().then(|| disks::take(node.as_ref(), situation, draft));
    let disk = disk.flatten();
    let link = link(situation, draft);
    let kernels = start.as_ref().and_then(|start| moving::boot(situation, start, &NBD, draft));
    moving::quiet(situation, draft);
    let program = programs::check_installed(situation, draft);
    let ipconfig = situation.presence(IPCONFIG.as_ref());
    draft.check(
        "the initial RAM filesystem can set the network up",
        situation.is_there(IPCONFIG.as_ref()),
        ipconfig,
        &if distribution::is_debian(machine) { distribution::install(machine, &["initramfs-tools", "klibc-utils"]) } else { "this recipe makes initial RAM filesystems with Debian's initramfs-tools, which this system does not have".into() },
    );
    let fstab = situation.file(FSTAB.as_ref());
    draft.check(
        "the table of mounts can be read",
        fstab.is_some(),
        situation.presence(FSTAB.as_ref()),
        "this system is set up in another way; the recipe needs /etc/fstab",
    );
    let (start, address, disk, kernels) = (start?, address?, disk?, kernels?);
    tables::check(current::disk_name(&disk.path), &|_| false, situation, draft);
    fits(situation, &disk, draft);
    let card = current::root(machine)?;
    let card_uuid = card_uuid(situation, card, draft)?;
    let cmdlines = moving::command_lines(&start, draft, |old| cmdline(situation, old, &address))?;
    next_start(situation, &start, &kernels, &cmdlines, &disk, draft);
    Some(Scene {
        is_identified: is_identified(situation, node),
        card_disks: current::old_disks(machine),
        link: link?,
        fstab: fstab?,
        start,
        kernels,
        disk,
        address,
        program,
        card,
        card_uuid,
        cmdlines,
    })
}

/// The address of the export that is attached, which the initial RAM filesystem has to understand.
fn address(situation: &PlanInput<'_>, node: &str, draft: &mut PlanBuilder) -> Option<String> {
    let backend = situation.text(&network_disk::backend(network_disk::name(node))).trim();
    let address = backend.strip_prefix("rubus ");
    draft.check(
        &format!("{node} is a network disk that rubus attached"),
        address.is_some(),
        match (address, backend) {
            (Some(address), _) => format!("it is {address}"),
            (None, "") => "it is not attached".into(),
            (None, other) => format!("it was attached by another program ({other})"),
        },
        &format!(
            "on the server: rubus serve root.img --size 16GiB --listen 0.0.0.0 --allow 192.168.1.0/24; here: sudo rubus attach nbd://192.168.1.2/root {node}, \
             with your network and the server's address"
        ),
    );
    let address = address?;
    draft.check(
        "its server is named by an IPv4 address",
        server(address).is_some(),
        match server(address) {
            Some(server) => server.to_string(),
            None => address.into(),
        },
        if address.starts_with("nbd://[") {
                "the network is set up with IPv4 before there is a root, and this is an IPv6 address: detach it (sudo rubus \
                 detach), and attach it by the server's IPv4 address, such as nbd://192.168.1.2/root"
            } else {
                "names cannot be looked up before there is a root: detach it (sudo rubus detach), and attach it by the number, \
                 such as nbd://192.168.1.2/root"
            },
    );
    server(address).map(|_| address.to_owned())
}

/// The IPv4 address in an address of an export.
pub(super) fn server(address: &str) -> Option<Ipv4Addr> {
    let rest = address.strip_prefix("nbd://")?;
    let host = rest.split(['/', '?']).next()?;
    host.split(':').next()?.parse().ok()
}

/// Whether the server says which disk it serves.
fn is_identified(situation: &PlanInput<'_>, node: &str) -> bool {
    let text = situation.text(&record(network_disk::name(node)));
    let record: Option<serde_json::Value> = serde_json::from_str(text).ok();
    record.is_some_and(|record| record["identity"].is_string())
}

/// A network card with a cable, which the initial RAM filesystem will find too.
fn link<'a>(situation: &PlanInput<'a>, draft: &mut PlanBuilder) -> Option<&'a Link> {
    let links = &situation.machine.links;
    // Some USB network cards do not know whether there is a cable.
    let is_up = |link: &&Link| {
        link.kind == "ethernet" && matches!(link.state.text(), Some("up" | "unknown"))
    };
    let found = links.iter().find(is_up);
    let all: Vec<String> = links
        .iter()
        .map(|link| {
            let state = link.state.text().unwrap_or("in an unknown state");
            format!("{} ({}) is {state}", link.name, link.kind)
        })
        .collect();
    draft.check(
        "the network is on a cable",
        found.is_some(),
        if all.is_empty() { "there is no network card".into() } else { all.join(", ") },
        "plug in a cable that leads to the server: the initial RAM filesystem knows no Wi-Fi",
    );
    found
}

fn fits(situation: &PlanInput<'_>, disk: &DiskIdentity, draft: &mut PlanBuilder) {
    let used = used_bytes(situation);
    let room = (disk.size_bytes as f64 * (1.0 - EXT4_OWN)) as u64;
    let need = used.map(|used| (used as f64 * SPARE) as u64);
    draft.check(
        "everything fits on it",
        need.is_some_and(|need| need <= room),
        match (used, need) {
            (Some(used), Some(need)) => format!(
                "{} are in use; with 15 % to spare {} are needed, it has {}",
                bytes_iec(used),
                bytes_iec(need),
                bytes_si(disk.size_bytes)
            ),
            _ => "it is unknown how much space the running system takes".into(),
        },
        "serve a larger image (rubus serve --size)",
    );
}

/// The identifier of the card's root, to which the board falls back.
fn card_uuid<'a>(
    situation: &PlanInput<'a>,
    card: &Mount,
    draft: &mut PlanBuilder,
) -> Option<&'a str> {
    let device = card.device.as_deref()?;
    let uuid = situation.machine.device(device)?.identity.uuid.as_deref();
    let is_known = matches!(card.filesystem.as_str(), "ext4" | "btrfs");
    draft.check(
        "the current root can be started again",
        uuid.is_some() && is_known,
        format!("{} with the UUID {}", card.filesystem, uuid.unwrap_or("that cannot be seen")),
        "run it as root, on a system whose root is ext4 or btrfs",
    );
    uuid.filter(|_| is_known)
}

/// What the final proof will ask of the start from the card is asked now, before the export is formatted.
fn next_start(
    situation: &PlanInput<'_>,
    start: &Start<'_>,
    kernels: &[Kernel],
    cmdlines: &[(String, &TextFile, String)],
    disk: &DiskIdentity,
    draft: &mut PlanBuilder,
) {
    let boot = current::boot(situation.machine).and_then(|boot| boot.device.as_ref());
    let boot = boot.map(|device| format!("/dev/{device}"));
    let next = NextStart {
        start,
        config_txt: &config_text(start, kernels),
        cmdlines,
        fstab: situation.text(FSTAB.as_ref()),
        volumes: &foreseen::staying(situation, Some(current::disk_name(&disk.path))),
        firmware_volume: boot.as_deref(),
    };
    foreseen::check(&next, situation, draft);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_number() {
        let two = Some(Ipv4Addr::new(192, 168, 1, 2));
        for (address, is) in [
            ("nbd://192.168.1.2/root", two),
            ("nbd://192.168.1.2:10810/", two),
            ("nbd://192.168.1.2", two),
            ("nbd://server/root", None),
            ("nbd://[::1]/root", None),
            ("nbd+unix:///x?socket=/run/nbd", None),
        ] {
            assert_eq!(server(address), is, "{address}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(address in "(nbd://)?[0-9./:?]{0,12}") {
            let _ = server(&address);
        }
    }
}
