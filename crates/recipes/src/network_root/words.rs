//! What the change takes, risks and promises.

use super::super::moving::time;
use super::super::{PlanBuilder, PlanInput, network_disk};
use super::current;
use super::scene::Scene;
use rubus_change::plan::promise::{Look, Promise};
use rubus_machine::ceiling;
use rubus_vocabulary::units::rate_si;

/// Assumed where the link does not say its rate: 100 Mbit/s.
const ASSUMED_BITS_PER_SECOND: u64 = 100_000_000;
pub(super) fn all(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    effort(situation, scene, draft);
    risks(situation, scene, draft);
    notes(situation, scene, draft);
    promises(situation, scene, draft);
}

fn effort(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let bits = scene.link.bits_per_second.get().filter(|bits| *bits > 0);
    let rate = ceiling::ethernet(bits.unwrap_or(ASSUMED_BITS_PER_SECOND)).bytes_per_second;
    draft.effort = time::effort(
        situation,
        &time::Move {
            old: current::old_disks(situation.machine).first().copied(),
            write: rate,
            share: 1.0,
            kernels: scene.kernels.len(),
        },
    );
    draft.notes.push(format!(
        "{} carries {} at most{}: everything that the board reads and writes shares that. `rubus bench` on the mounted export \
         says beforehand whether it is worth it.",
        scene.link.name,
        rate_si(rate),
        match bits {
            Some(_) => "",
            None => " (assumed: it does not say its rate)",
        }
    ));
}

fn risks(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let dead = situation.option("dead-timeout").unwrap_or("86400");
    draft.risks.push(format!(
        "Everything that is on {} now is lost, and undoing does not bring it back.",
        scene.address
    ));
    draft.risks.push(format!(
        "While the server is gone, whatever reads or writes files stands still, and goes on when it is back. After {dead} s \
         reads and writes fail; the board then has to be started again."
    ));
    draft.risks.push(
        "There are two systems from then on. What is changed on the one is not on the other: a start that falls back to the \
         card finds it as it was when it was copied, and what is written there is missing on the network root. A kernel that is \
         installed on one replaces the one that both start with, and the other lacks its modules."
            .into(),
    );
    match (scene.is_identified, situation.option("resume-unidentified")) {
        (false, Some("yes")) => draft.risks.push(
            "The server does not say which disk it serves and is resumed all the same: when its machine was restarted, writes \
             that were not flushed are lost, and the root is damaged silently."
                .into(),
        ),
        (false, _) => draft.risks.push(
            "The server does not say which disk it serves (rubus serve does). When its connection ends after writes that were \
             not flushed, the root fails, and the board has to be started again; resume-unidentified=yes goes on instead."
                .into(),
        ),
        (true, _) => draft.risks.push(
            "When the server's machine was restarted (not only the program) and writes may be lost, the root fails instead of \
             going on over lost data, and the board has to be started again. `rubus serve --sync` never gets there."
                .into(),
        ),
    }
    draft.risks.push(
        "Nothing on the way is encrypted: anyone who can listen on the cable reads the files, and anyone who reaches \
         the server can write them. Let the server take this board's network only (rubus serve --allow)."
            .into(),
    );
    draft.risks.push(
        "Programs that write all the time (databases, containers) are copied while they run; stop them before, or their \
         copies may be torn."
            .into(),
    );
}

fn notes(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let wait = situation.option("wait").unwrap_or("30");
    draft.notes.push(format!(
        "When the server has not answered {wait} s after a start has begun to look for it, the board starts from the card, and \
         says so on the console, in the kernel's log and in `rubus status`. To have that on purpose: pull the cable."
    ));
    draft.notes.push(
        "The root has no swap on the network: under a lack of memory the network itself needs memory. Swap partitions and \
         compressed memory stay as they are; `rubus plan swap` makes compressed memory."
            .into(),
    );
    draft.notes.push(match situation.option("ip") {
        None | Some("dhcp") => format!(
            "The initial RAM filesystem asks for an address (DHCP), and NetworkManager and systemd-networkd leave {} alone while \
             the root is reached over it. The address is not renewed later: reserve it in your router.",
            scene.link.name
        ),
        Some(ip) => format!("The address is {ip}; keep it free of DHCP in your router."),
    });
    draft.notes.push(
        "It is in force from the next boot on; until then nothing but the boot partition has changed for the running system. \
         `rubus verify` then looks whether everything is as promised."
            .into(),
    );
    draft.notes.push(format!(
        "If the server gets another address: change rubus.root= in {}, here or on any PC.",
        scene.start.point.join("cmdline.txt").display()
    ));
}

fn promises(situation: &PlanInput<'_>, scene: &Scene<'_>, draft: &mut PlanBuilder) {
    let node = situation.option("device").unwrap_or("/dev/nbd0");
    let name = network_disk::name(node);
    let mut promise = |what: String, look: Look| {
        draft.promises.push(Promise { what, look, needs_boot: true });
    };
    promise(
        format!("the root is {node}"),
        Look::MountedFrom { at: "/".into(), device: name.into() },
    );
    promise(
        format!("{node} is {}", scene.address),
        Look::Knob { path: network_disk::backend(name), value: format!("rubus {}", scene.address) },
    );
}
