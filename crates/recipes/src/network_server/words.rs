//! What the user should know before it is served.

use super::tls::Tls;
use super::{Server, unit};
use crate::{NodeKind, PlanBuilder};
use rubus_nbd::callers::Network;

pub(super) fn say(server: &Server<'_>, draft: &mut PlanBuilder) {
    risks(server, draft);
    notes(server, draft);
}

fn risks(server: &Server<'_>, draft: &mut PlanBuilder) {
    let export = &server.export;
    let is_written = !export.is_read_only;
    let is_public = server.listen.iter().any(|at| !at.ip().is_loopback());
    if is_public {
        draft.risks.push(risk_of_the_public(server));
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

/// What others may do who reach the server, and those on the way.
fn risk_of_the_public(server: &Server<'_>) -> String {
    let who = match &server.allow[..] {
        [] => "Every machine that reaches this one".into(),
        networks => {
            let names: Vec<_> = networks.iter().map(Network::to_string).collect();
            format!("Every machine in {}", names.join(", "))
        }
    };
    let export = &server.export;
    let what = match (export.is_read_only, export.clones) {
        (false, None) => "read and overwrite it",
        (false, Some(_)) => "read it, and make and write clones of it,",
        (true, _) => "read it",
    };
    match &server.tls {
        None => format!(
            "{who} can {what} without a password, and anyone on the path can see and change what passes. Do so in a network \
             that you trust, with TLS (certificates=DIRECTORY), or in a tunnel (WireGuard, ssh -L)."
        ),
        Some(tls) if !tls.is_required => format!(
            "{who} can {what} without a password, and where a client does without TLS, anyone on the path can see and change \
             what passes. Do so in a network that you trust, or with tls=require."
        ),
        Some(tls) if !tls.verifies_clients => format!(
            "{who} can {what} without a password or a proof of who it is; the connection is encrypted. \
             verify-clients=yes lets in only who has a certificate."
        ),
        Some(tls) => format!(
            "{who} can {what} with a copy of client-cert.pem and client-key.pem from {}, and anyone with ca-key.pem \
             can make more such pairs; the connection is encrypted.",
            tls.directory
        ),
    }
}

fn notes(server: &Server<'_>, draft: &mut PlanBuilder) {
    let export = &server.export;
    let unit = unit(&export.name);
    let name = match (export.kind, export.clones) {
        (NodeKind::Directory, _) => "IMAGE".into(),
        (_, Some(_)) => format!("{}/CLIENT", export.name),
        _ => export.name.clone(),
    };
    draft.notes.push(clients(server.tls.as_ref(), &name));
    let changed = match server.tls {
        None => "the image",
        Some(_) => "the image or of the certificates",
    };
    draft.notes.push(format!(
        "Who comes and goes: journalctl -u {unit}. After a change of {changed}: systemctl stop {unit}.service, and the next client \
         starts it."
    ));
    draft.notes.push("Undoing removes the units. The image and what clients wrote stay.".into());
}

/// How clients reach an export of this name.
fn clients(tls: Option<&Tls>, name: &str) -> String {
    let plain = format!(
        "rubus bench nbd://THIS-MACHINE/{name}, or on a board rubus apply network-disk address=nbd://THIS-MACHINE/{name} \
         at=/mnt/network"
    );
    let Some(tls) = tls else {
        return format!("Clients: {plain}.");
    };
    let files = if tls.verifies_clients {
        "copies of ca-cert.pem, client-cert.pem and client-key.pem"
    } else {
        "a copy of ca-cert.pem"
    };
    let encrypted = format!(
        "rubus bench 'nbds://THIS-MACHINE/{name}?tls-certificates=DIR' with {files} in DIR, and a name of THIS-MACHINE that the \
         certificate is for"
    );
    if tls.is_required {
        format!(
            "Clients: {encrypted}. The kernel's client has no TLS, so rubus attach, network-disk and network-root cannot be used \
             with it."
        )
    } else {
        format!("Clients: {encrypted}; in the clear {plain}.")
    }
}
