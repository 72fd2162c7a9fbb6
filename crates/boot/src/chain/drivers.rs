//! Drivers of disks: a root on a disk that no driver serves is not reached.
//!
//! Raspberry Pi OS has them in its kernels; Debian, Fedora and Arch have modules. An initial RAM filesystem that was made for one
//! kind of disk lacks those of the others. Source: initramfs.conf(5), `MODULES=dep`; dracut.conf(5), `hostonly`.

use super::ChainFacts;
use super::link::Link;
use super::naming::{RootKind, named_root, root_kind};
use super::remake::{Lacks, remake};
use crate::config_txt::BootPath;
use crate::initramfs::Listing;
use crate::medium::Certainty;
use crate::modules::{Known, Modules};

/// A kind of disk.
struct Disk {
    what: &'static str,
    /// How its nodes begin.
    node: &'static str,
    /// Of each group, one has to be there.
    drivers: &'static [&'static [&'static str]],
}

const DISKS: [Disk; 4] = [
    Disk {
        what: "a card",
        node: "/dev/mmcblk",
        // Upstream's drivers of the slots, then those of Raspberry Pi's own kernels.
        drivers: &[
            &["mmc_block"],
            &[
                "sdhci_iproc",
                "bcm2835",
                "sdhci_brcmstb",
                "sdhci_pci",
                "bcm2835_mmc",
                "bcm2835_sdhost",
            ],
        ],
    },
    Disk {
        what: "a USB or SATA disk",
        node: "/dev/sd",
        drivers: &[&["sd_mod"], &["usb_storage", "uas", "ahci", "ata_piix", "virtio_scsi"]],
    },
    Disk { what: "an NVMe drive", node: "/dev/nvme", drivers: &[&["nvme"]] },
    Disk { what: "a virtual disk", node: "/dev/vd", drivers: &[&[VIRTUAL]] },
];
/// What kernels for boards alone do not have.
const VIRTUAL: &str = "virtio_blk";

/// Whether the kernel gets to the disk of its root with what is in it and in these images. Of a card in a reader it is not known
/// as what it will be plugged in.
pub(super) fn check(
    facts: &ChainFacts,
    path: &BootPath,
    listings: &[&Listing],
    link: Link,
) -> Link {
    let is_judged = link.stop.is_some() || link.certainty == Certainty::NotKnown;
    if is_judged || root_kind(facts, path) == RootKind::Elsewhere {
        return link;
    }
    let Some(kernel) = facts.images.kernels.get(&path.kernel) else { return link };
    let Some(release) = kernel.release.as_deref() else { return link };
    // Of an image with modules in places of its own, those inside are not known.
    let has_others = |one: &&Listing| {
        let mut members = one.members.iter();
        one.releases().is_empty() && members.any(|member| member.path.contains(".ko"))
    };
    if listings.iter().any(has_others) {
        return link;
    }
    let is_inside = |module: &str| listings.iter().any(|one| one.module(release, module).is_some());
    let root = named_root(facts, path).map(|volume| volume.path.as_str());
    let of_root = |disk: &&Disk| root.is_some_and(|path| path.starts_with(disk.node));
    let own: Vec<&Disk> = DISKS.iter().filter(of_root).collect();
    let has_virtual = kernel.modules.find(VIRTUAL) != Known::No;
    let may_be_one = |disk: &&Disk| has_virtual || disk.node != "/dev/vd";
    let disks: Vec<&Disk> =
        if own.is_empty() { DISKS.iter().filter(may_be_one).collect() } else { own };
    let lacking: Option<Vec<&str>> =
        disks.iter().map(|disk| lacking(disk, &kernel.modules, &is_inside)).collect();
    let Some(module) = lacking.as_ref().and_then(|lacking| lacking.first().copied()) else {
        return link;
    };
    let what = match disks.as_slice() {
        [one] => one.what,
        _ => "any disk",
    };
    let remedy = if listings.is_empty() {
        format!("have config.txt load an initramfs with {module}")
    } else {
        remake(listings, Lacks::Module(module))
    };
    link.with(Certainty::Likely).stopped(
        format!("neither the kernel nor an initramfs has the driver of {what} ({module})"),
        remedy,
    )
}

/// A module without which disks of a kind are not seen, where it is one of the kernel's and not in the images.
fn lacking(
    disk: &Disk,
    modules: &Modules,
    is_inside: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let is_there = |module: &str| match modules.find(module) {
        Known::BuiltIn => Some(true),
        Known::Files(files) => Some(files.iter().all(|file| is_inside(file))),
        Known::No => None,
    };
    let missing = disk.drivers.iter().find(|group| {
        let known: Vec<bool> = group.iter().filter_map(|module| is_there(module)).collect();
        !known.is_empty() && !known.contains(&true)
    });
    missing?.first().copied()
}
