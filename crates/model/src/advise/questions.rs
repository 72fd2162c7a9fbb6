//! What is not known and would change the order, and the measurement that settles it.

use rubus_core::advice::{Candidate, Purpose, Unknown};

use super::Question;
use super::inventory::{self, Is, Place};
use super::words::seconds;

/// The most important first.
pub(super) fn unknown(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> Vec<Unknown> {
    let mut unknown: Vec<Unknown> = Vec::new();
    let is_swap = question.purpose == Purpose::Swap;
    for candidate in candidates {
        let name = candidate
            .name
            .trim_start_matches("zswap+")
            .trim_start_matches("swap on ");
        let place = places.iter().find(|place| place.name == name);
        let Some(place) = place.filter(|place| !place.is_measured) else {
            continue;
        };
        let Some(measurement) = measurement(question, place) else {
            continue;
        };
        if unknown
            .iter()
            .any(|known| known.measurement.as_ref() == Some(&measurement))
        {
            continue;
        }
        unknown.push(Unknown {
            what: match is_swap {
                true => format!("speed of {name}"),
                false => format!(
                    "{name}, {} to {}",
                    seconds(candidate.time_s.low),
                    seconds(candidate.time_s.high)
                ),
            },
            measurement: Some(measurement),
        });
    }
    if is_swap && question.known.page_ratio.is_none() {
        unknown.push(Unknown {
            what: "how far pages shrink here".into(),
            measurement: Some(["rubus", "bench", "memory"].map(str::to_string).into()),
        });
    }
    if candidates.iter().any(|candidate| candidate.name == "nbd") {
        unknown.push(Unknown {
            what: "the network disk: start a server, then --with nbd://SERVER/NAME".into(),
            measurement: None,
        });
    }
    unknown
}

fn measurement(question: &Question<'_>, place: &Place) -> Option<Vec<String>> {
    let target = match &place.is {
        Is::Network(_, address) if !address.is_empty() => address.clone(),
        Is::Network(..) => return None,
        Is::Stripe(_) => return None,
        Is::Disk(_) if !place.is_here || place.name.contains('@') => return None,
        Is::Disk(_) => match &place.directory {
            Some(directory) => directory.clone(),
            None => format!("/dev/{}", place.name),
        },
    };
    // A bus that was found on it must be one of this machine's disks.
    let is_disk = inventory::disks(question.machine).any(|disk| disk.name == place.name);
    if matches!(place.is, Is::Disk(_)) && !is_disk {
        return None;
    }
    Some(vec!["rubus".into(), "bench".into(), target])
}
