//! A network disk, by the link that it would come over.

use crate::advice::{Bases, Basis, NETWORK_DISK};
use rubus_vocabulary::machine::Link as NetworkLink;
use rubus_vocabulary::units::bit_rate;

use super::links::{best, is_radio, modelled, tells};
use super::place::{Is, Place, partly};
use super::risk::Risk;
use super::{Question, weigh};
use crate::stages::network::Link;
use crate::stages::raid::Member;

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
    let mut risks = vec![Risk::failure(if is_socket {
        "It hangs while the server is away."
    } else {
        "It hangs while the server or the cable is away."
    })];
    if link.is_some_and(is_radio) {
        risks.push(Risk::failure("A radio link loses its connection; do not put a root on it."));
    }
    let mut bases = Bases::all(Basis::Assumed);
    if link.is_some_and(tells) {
        (bases.sequential_read, bases.sequential_write) = (Basis::Published, Basis::Published);
    }
    let mut place = Place {
        name: if address.is_empty() { NETWORK_DISK.into() } else { address.into() },
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
        place.is = Is::Disk(Member { name: address.into(), figures, buses: Vec::new() });
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
