//! What is not known and would change the order, and the measurement that settles it.

use crate::advice::{Candidate, NETWORK_DISK, Unknown};
use rubus_machine::purpose::{Purpose, Visit};

use super::Question;
use super::phrases::{list, seconds};
use super::place::{self, Is, Place};

/// The most important first.
pub(super) fn unknown(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> Vec<Unknown> {
    let mut unknown: Vec<Unknown> = Vec::new();
    let is_swap = question.purpose == Purpose::Swap;
    for candidate in candidates {
        let name = candidate.name.trim_start_matches("zswap+").trim_start_matches("swap on ");
        let place = places.iter().find(|place| place.name == name);
        let Some(place) = place.filter(|place| is_open(question, place)) else {
            continue;
        };
        let Some(measurement) = measurement(question, place) else {
            continue;
        };
        if unknown.iter().any(|known| known.measurement.as_ref() == Some(&measurement)) {
            continue;
        }
        unknown.push(Unknown {
            of: Some(candidate.name.clone()),
            needs_root: matches!(&measurement[..], [_, _, at, ..] if at.starts_with("/dev/")),
            what: if is_swap {
                format!("speed of {name}")
            } else {
                format!(
                    "{name}, {} to {}{}",
                    seconds(candidate.time_s.low),
                    seconds(candidate.time_s.high),
                    what_is_left(question.purpose, candidate)
                )
            },
            measurement: Some(measurement),
        });
    }
    if is_swap && question.known.page_ratio.is_none() {
        unknown.push(Unknown {
            what: "how far pages shrink here".into(),
            measurement: Some(["rubus", "bench", "memory"].map(str::to_string).into()),
            of: None,
            needs_root: false,
        });
    }
    if candidates.iter().any(|candidate| candidate.name == NETWORK_DISK) {
        unknown.push(Unknown {
            what: "the network disk: start a server, then --with nbd://SERVER/NAME".into(),
            measurement: None,
            of: None,
            needs_root: false,
        });
    }
    unknown
}

/// Whether a kind of operation by which it is ranked was not measured.
fn is_open(question: &Question<'_>, place: &Place) -> bool {
    let visits = question.purpose.visits();
    let of = |visit: &Visit| place.bases.of(visit.what, visit.depth);
    visits.iter().any(|visit| !of(visit).is_measured())
}

/// Of a disk that was measured in part: what was, and what not.
fn what_is_left(purpose: Purpose, candidate: &Candidate) -> String {
    let seen = candidate.measured(purpose, true);
    let left = candidate.measured(purpose, false);
    if seen.is_empty() {
        String::new()
    } else {
        format!(
            "; measured: {}; not: {}",
            list(seen.iter().map(|what| what.words())),
            list(left.iter().map(|what| what.words()))
        )
    }
}

fn measurement(question: &Question<'_>, place: &Place) -> Option<Vec<String>> {
    let address = match &place.is {
        Is::Network(_, address) if !address.is_empty() => Some(address),
        Is::Network(..) | Is::Stripe(_) => return None,
        Is::Disk(_) if !place.is_here || place.name.contains('@') => return None,
        Is::Disk(_) => None,
    };
    // A bus that was found on it must be one of this machine's disks.
    let is_disk = place::disks(question.machine).any(|disk| disk.name == place.name);
    if matches!(place.is, Is::Disk(_)) && !is_disk {
        return None;
    }
    let node = format!("/dev/{}", place.name);
    // On an encrypted volume or an array the measured device would be that volume or array.
    let is_of_disk = |directory: &&String| {
        let mount = question.machine.mounts.iter().find(|mount| mount.point == **directory);
        let device = mount.and_then(|mount| mount.device.as_deref());
        let measured = device.and_then(|name| question.machine.measured_device(name));
        measured.is_some_and(|device| device.name == place.name)
    };
    let words: &[&str] = match (address, place.directory.as_ref().filter(is_of_disk)) {
        (Some(address), _) => &["rubus", "bench", address],
        (None, Some(directory)) => &["rubus", "checkup", directory],
        // Without a mounted filesystem only reading needs no confirmation of a loss.
        (None, None) => &["rubus", "bench", &node, "--read-only"],
    };
    Some(words.iter().map(|word| word.to_string()).collect())
}
