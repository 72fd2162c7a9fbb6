//! The machine's network link: a network disk over it, and what a storage node gives on through it.

use std::cmp::Reverse;

use rubus_core::advice::{Bases, Basis, Purpose, Visit};
use rubus_core::ceiling;
use rubus_core::machine::{Link as NetworkLink, Machine};
use rubus_core::units::{bit_rate, rate_si};

use super::inventory::{Is, Place, buses, partly};
use super::{Question, weigh};
use crate::stages::network::Link;
use crate::stages::raid::Member;

/// Behind a bus that carries more than this the cable is what limits.
const WIDE_BUS_BYTES: f64 = 200e6;

/// The link that carries most: a cable that is up, the fastest first and one that does not tell its rate last; else the radio.
pub(super) fn best(machine: &Machine) -> Option<&NetworkLink> {
    let links = machine.links.iter();
    let links = links.filter(|link| link.state.text() == Some("up") && link.kind != "virtual");
    links.min_by_key(|link| Reverse((link.bits_per_second.get(), !is_radio(link))))
}

/// Whether it says what it carries.
pub(super) fn tells(link: &NetworkLink) -> bool {
    !is_radio(link) && link.bits_per_second.get().is_some()
}

pub(super) fn is_radio(link: &NetworkLink) -> bool {
    link.kind == "wifi"
}

/// A link as the model has it.
fn modelled(link: &NetworkLink) -> Link {
    let behind = buses(&link.path)
        .into_iter()
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(_, usable)| *usable < WIDE_BUS_BYTES);
    match link.bits_per_second.get() {
        Some(bits) => Link::cable(&link.name, bits, behind),
        None if is_radio(link) => Link::wifi(&link.name),
        None => Link::untold(&link.name),
    }
}

/// What a storage node gives everything through.
pub(super) struct Port {
    pub link: Link,
    /// How it is known what it carries.
    pub basis: Basis,
}

/// The port of a storage node, where anything is known of what it carries.
pub(super) fn port(question: &Question<'_>) -> Option<Port> {
    let link = best(question.machine)?;
    let is_known = tells(link) || is_radio(link);
    (question.purpose == Purpose::StorageNode && is_known).then(|| Port {
        link: modelled(link),
        basis: match tells(link) {
            true => Basis::Published,
            false => Basis::Assumed,
        },
    })
}

/// One second of the work.
pub(super) fn visits(question: &Question<'_>) -> Vec<Visit> {
    match port(question) {
        Some(port) => {
            let rate = port.link.bytes_per_second.value;
            question.purpose.visits_through(rate)
        }
        None => question.purpose.visits(),
    }
}

/// The same in words, with the port that it fills.
pub(super) fn unit(question: &Question<'_>) -> String {
    let purpose = question.purpose;
    if let Some(Port { link, basis }) = port(question) {
        let rate = link.bytes_per_second.value;
        let behind = match &link.behind {
            Some((bus, usable)) if *usable <= rate => format!(" behind {bus}"),
            _ => String::new(),
        };
        let port = format!("{} ({}{}{behind})", link.name, basis.mark(), rate_si(rate));
        return purpose.unit_through(&port, rate);
    }
    match best(question.machine).filter(|_| purpose == Purpose::StorageNode) {
        Some(silent) => {
            let port = format!("1 Gbit/s port ({} does not tell its rate)", silent.name);
            let rate = ceiling::ethernet(1_000_000_000).bytes_per_second;
            purpose.unit_through(&port, rate)
        }
        None => purpose.unit(),
    }
}

/// A network disk; without an address one that could be.
///
/// # Errors
/// When there is no way to it, as a sentence.
pub(super) fn disk(question: &Question<'_>, address: &str) -> Result<Place, String> {
    let is_socket = address.starts_with("nbd+unix://");
    let link = best(question.machine).filter(|_| !is_socket);
    let (model, what) = match link {
        Some(link) => (modelled(link), over(link)),
        None if is_socket => (Link::socket(), "network disk behind a Unix socket".into()),
        None => {
            return Err(
                "this machine shows no network link that is up, and so no way to a network disk"
                    .into(),
            );
        }
    };
    let mut risks = vec!["It hangs while the server or the cable is away.".to_string()];
    if is_socket {
        risks = vec!["It hangs while the server is away.".into()];
    }
    if link.is_some_and(is_radio) {
        risks.push("A radio link loses its connection; do not put a root on it.".into());
    }
    let mut bases = Bases::all(Basis::Assumed);
    if link.is_some_and(tells) {
        (bases.sequential_read, bases.sequential_write) = (Basis::Published, Basis::Published);
    }
    let mut place = Place {
        name: if address.is_empty() {
            "nbd".into()
        } else {
            address.into()
        },
        what,
        source: format!("not measured; {}", model.source),
        is: Is::Network(model, address.into()),
        is_now: false,
        // A link is there; a server may be.
        is_here: !address.is_empty(),
        euros: (0, 0),
        risks,
        bases,
        directory: None,
        cpu_s: None,
    };
    if let Some(measured) = question.known.exports.get(address) {
        let mut figures = weigh::figures(&place);
        measured.lay_over(&mut figures, &mut place.bases);
        place.source = partly(measured, &place.bases, &place.source);
        place.cpu_s = measured.cpu_s;
        if measured.cpu_s.is_some() {
            place.bases.cpu_share = Basis::Measured;
        }
        place.is = Is::Disk(Member {
            name: address.into(),
            figures,
            buses: Vec::new(),
        });
    }
    Ok(place)
}

/// "network disk over eth0, 1.00 Gbit/s".
fn over(link: &NetworkLink) -> String {
    let speed = match link.bits_per_second.get() {
        Some(bits) => bit_rate(bits as f64),
        None if is_radio(link) => "Wi-Fi".into(),
        None => "which does not tell its rate".into(),
    };
    format!("network disk over {}, {speed}", link.name)
}
