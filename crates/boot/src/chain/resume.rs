//! `resume=`: where a start looks for a system that was suspended to disk.
//!
//! Only programs of the initial RAM filesystem wait for that volume: scripts for up to half a minute, systemd without end in some
//! versions. Source: initramfs-tools, `scripts/local-premount/resume`; systemd, issue 35180.

use super::ChainFacts;
use super::kernel::has_initramfs;
use super::link::{Doubt, Link};
use super::running::has_this_line;
use crate::cmdline_txt::CmdlineTxt;
use crate::config_txt::BootPath;
use crate::initramfs::{Listing, Maker};
use crate::medium::Certainty;
use crate::volume::Name;

const WITHOUT_END: &str = "usr/lib/systemd/systemd-hibernate-resume";
const SCRIPT: &str = "scripts/local-premount/resume";

/// A volume that is not there costs time, mostly.
pub(super) fn check(facts: &ChainFacts, path: &BootPath, line: &CmdlineTxt, link: Link) -> Link {
    let Some(written) = line.get("resume").filter(|_| !line.has("noresume")) else { return link };
    let name = Name::parse(written);
    let is_gone = name.resolve(&facts.volumes).is_empty();
    let is_judged = is_disk(&name) && facts.are_links_seen(&name) && has_initramfs(facts, path);
    if !is_gone || !is_judged {
        return link;
    }
    let remedy = format!("take resume= out of {}, or correct it", link.source);
    let place = if facts.are_all_volumes { "machine" } else { "disk" };
    let what = format!("resume={} is on no volume of this {place}", Name::shown(written));
    let listings =
        path.initramfs.iter().map(|name| facts.images.initramfs.get(name)?.as_ref().ok());
    let known: Option<Vec<&Listing>> = listings.collect();
    let holds = |member: &str| known.iter().flatten().any(|listing| listing.has(member));
    if holds(WITHOUT_END) && !has_this_line(facts, path) {
        let ending = "systemd in the initramfs may wait for it without end";
        if facts.are_all_volumes {
            return link.not_known(format!("{what}: {ending}")).in_doubt_of(Doubt::Other, remedy);
        }
        return link
            .with(Certainty::Likely)
            .noted(format!("{what}: {ending}"), remedy)
            .only_if(format!("resume={} is plugged in, too", Name::shown(written)));
    }
    let made_by = |one: &Listing| one.maker() == Some(Maker::InitramfsTools);
    let is_read = known.as_ref().is_some_and(|known| known.iter().all(|one| made_by(one)));
    if is_read && !holds(SCRIPT) {
        return link;
    }
    link.noted(format!("{what}: each start may wait half a minute for it"), remedy)
}

/// Whether it is a disk by itself, and nothing that a start puts together.
fn is_disk(name: &Name) -> bool {
    match name {
        Name::Path(path) => {
            let node = path.trim_start_matches("/dev/");
            let is_made = node.starts_with("zram") || node.starts_with("dm-");
            !is_made && (!node.contains('/') || node.starts_with("disk/"))
        }
        Name::PartUuid(_) | Name::PartLabel(_) | Name::Uuid(_) | Name::Label(_) => true,
        Name::Other(_) => false,
    }
}
