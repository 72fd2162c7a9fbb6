//! The machine's network link: a network disk over it, and what a storage node gives on through it.

use std::cmp::Reverse;

use crate::advice::Basis;
use rubus_machine::ceiling;
use rubus_machine::purpose::{Purpose, Visit};
use rubus_vocabulary::machine::{Link as NetworkLink, Machine};
use rubus_vocabulary::units::rate_si;

use super::Question;
use super::place::buses;
use crate::stages::network::Link;

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
pub(super) fn modelled(link: &NetworkLink) -> Link {
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
        basis: if tells(link) { Basis::Published } else { Basis::Assumed },
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
        let port = format!("{} ({}{behind})", link.name, basis.figure(&rate_si(rate)));
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
