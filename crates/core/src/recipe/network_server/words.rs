//! What the user should know before it is served.

use super::{Server, unit};
use crate::callers::Network;
use crate::recipe::{Draft, NodeKind};

pub(super) fn say(server: &Server<'_>, draft: &mut Draft) {
    risks(server, draft);
    notes(server, draft);
}

fn risks(server: &Server<'_>, draft: &mut Draft) {
    let export = &server.export;
    let is_written = !export.is_read_only;
    let is_public = server.listen.iter().any(|at| !at.ip().is_loopback());
    if is_public {
        let who = match &server.allow[..] {
            [] => "Every machine that reaches this one".into(),
            networks => {
                let names: Vec<_> = networks.iter().map(Network::to_string).collect();
                format!("Every machine in {}", names.join(", "))
            }
        };
        let what = match (is_written, export.clones) {
            (true, None) => "read and overwrite it",
            (true, Some(_)) => "read it, and make and write clones of it,",
            (false, _) => "read it",
        };
        draft.risks.push(format!(
            "{who} can {what} without a password, and whoever is on the way can see and change what passes. Do so in a network \
             that you trust, or in a tunnel (WireGuard, ssh -L)."
        ));
    }
    if export.gives_away.is_some() {
        draft.risks.push(format!(
            "Nothing is overwritten by this, but clients may overwrite all of {}.",
            export.image
        ));
    }
    if is_written && export.clones.is_none() {
        draft.risks.push(
            "A filesystem that two machines mount at the same time is destroyed: one client for each image, read-only=yes, \
             or clones=DIRECTORY."
                .into(),
        );
    }
    if export.made_bytes.is_some() || export.clones.is_some() {
        draft.risks.push(
            "Room is taken as it is written: when the disk under it is full, clients' writes fail."
                .into(),
        );
    }
}

fn notes(server: &Server<'_>, draft: &mut Draft) {
    let export = &server.export;
    let unit = unit(&export.name);
    let name = match (export.kind, export.clones) {
        (NodeKind::Directory, _) => "IMAGE".into(),
        (_, Some(_)) => format!("{}/CLIENT", export.name),
        _ => export.name.clone(),
    };
    draft.notes.push(format!(
        "Clients: rubus bench nbd://THIS-MACHINE/{name}, or on a board rubus apply network-disk \
         address=nbd://THIS-MACHINE/{name} at=/mnt/network."
    ));
    draft.notes.push(format!(
        "Who comes and goes: journalctl -u {unit}. After a change of the image: systemctl stop {unit}.service, and the next client starts it."
    ));
    draft
        .notes
        .push("Undoing removes the units. The image and what clients wrote stay.".into());
}
