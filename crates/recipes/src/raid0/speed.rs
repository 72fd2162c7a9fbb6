//! How fast an array will be: what its disks were measured to do, and what the buses that they share carry.

use super::super::{PlanBuilder, PlanInput, TogetherSpeed, disks};
use rubus_change::plan::Gain;
use rubus_vocabulary::machine::{BlockDevice, HopKind};
use rubus_vocabulary::units::rate_si;

/// A bus that more than one of the disks is on.
struct Shared {
    name: String,
    bytes_per_second: f64,
    /// How many of the disks.
    disks: usize,
}

/// Says what the array is expected to give, and what its buses stand in the way of.
pub(super) fn predict(nodes: &[&str], situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let machine = situation.machine;
    let devices = nodes.iter().filter_map(|node| machine.device(disks::name(node)));
    let devices: Vec<&BlockDevice> = devices.collect();
    let shared = shared(&devices);
    if let Some(bus) = shared.iter().find(|bus| bus.disks == devices.len()) {
        draft.risks.push(format!(
            "{} on one bus ({}), which carries about {}: together they cannot be faster than that.",
            match bus.disks {
                2 => "Both disks are".to_string(),
                count => format!("All {count} disks are"),
            },
            bus.name,
            rate_si(bus.bytes_per_second)
        ));
    }
    let mut is_known = [false; 2];
    let ways = [("reading large files", true), ("writing large files", false)];
    for (number, (what, is_read)) in ways.into_iter().enumerate() {
        if let Some(measured) = at_once(&devices, is_read, situation) {
            is_known[number] = true;
            gain_at_once(what, measured, draft);
            continue;
        }
        let speeds: Vec<f64> = devices
            .iter()
            .filter_map(|device| {
                let speed = situation.facts.speeds.get(&device.name)?;
                if is_read { speed.read_bytes_per_second } else { speed.write_bytes_per_second }
            })
            .collect();
        if speeds.len() < devices.len() {
            continue;
        }
        is_known[number] = true;
        let best = speeds.iter().copied().fold(0.0, f64::max);
        let (then, limit) = together(&speeds, &shared);
        draft.gains.push(Gain {
            what: what.into(),
            now: rate_si(best),
            then: rate_si(then),
            ratio: then / best,
            source: source(situation, &devices, limit),
        });
    }
    let missing = match is_known {
        [true, true] => None,
        [false, false] => Some("How much faster it gets"),
        [false, true] => Some("How much faster reading gets"),
        [true, false] => Some("How much faster writing gets"),
    };
    if let Some(missing) = missing {
        draft.notes.push(format!(
            "{missing} is not known: not all disks were measured here. `rubus bench {}` measures one, `rubus bench {} --together` \
             all of them at once, and the plan made after that says.",
            nodes[0],
            nodes.join(" ")
        ));
    }
    draft.notes.push(
        "Single small accesses, one after the other, get no faster: each still waits for one disk."
            .into(),
    );
}

/// What was measured of just these disks at once.
fn at_once<'a>(
    devices: &[&BlockDevice],
    is_read: bool,
    situation: &PlanInput<'a>,
) -> Option<&'a TogetherSpeed> {
    let is_it = |measured: &&TogetherSpeed| {
        measured.is_read == is_read
            && measured.disks.len() == devices.len()
            && devices.iter().all(|device| measured.disks.contains(&device.name))
    };
    situation.facts.together.iter().find(is_it)
}

/// What all disks give at once is what the array gives, whatever they share and however they divide it; each gets the same
/// part of every file, so it is no faster than all of them would be at the speed of the slowest.
fn gain_at_once(what: &str, measured: &TogetherSpeed, draft: &mut PlanBuilder) {
    /// Less is within what measurements differ by.
    const WORTH_IT: f64 = 1.15;
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let now = most(&measured.alone_bytes_per_second);
    let slowest = measured.disks.len() as f64 * least(&measured.alone_bytes_per_second);
    let then = slowest.min(measured.together_bytes_per_second.iter().sum());
    let ratio = then / now;
    draft.gains.push(Gain {
        what: what.into(),
        now: rate_si(now),
        then: rate_si(then),
        ratio,
        source: measured.source.clone(),
    });
    if ratio < WORTH_IT {
        draft.risks.push(format!(
            "No gain in {what}: at once the disks give no more than one of them alone, so they share something that is full. \
             Plug them into different buses."
        ));
    }
}

fn source(situation: &PlanInput<'_>, devices: &[&BlockDevice], limit: Option<&Shared>) -> String {
    let first = devices.first().map(|device| device.name.as_str());
    let measured = first.and_then(|name| situation.facts.speeds.get(name));
    let measured = measured.map_or("", |speed| speed.source.as_str());
    match limit {
        Some(bus) => format!("{measured}; {} is the limit", bus.name),
        None => format!("{measured}; {} times the slowest of the disks", devices.len()),
    }
}

/// All of n disks get the same share, so together they are n times as fast as the slowest; and a bus with k of them
/// carries k of n parts of it.
fn together<'a>(speeds: &[f64], shared: &'a [Shared]) -> (f64, Option<&'a Shared>) {
    let count = speeds.len() as f64;
    let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
    let mut rate = count * slowest;
    let mut limit = None;
    for bus in shared {
        let most = bus.bytes_per_second * count / bus.disks as f64;
        if most < rate {
            (rate, limit) = (most, Some(bus));
        }
    }
    (rate, limit)
}

/// The hops that several of the disks have in common and of which it is known what they carry, the narrowest first.
fn shared(devices: &[&BlockDevice]) -> Vec<Shared> {
    let mut found: Vec<Shared> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for hop in devices.iter().flat_map(|device| &device.path) {
        if seen.contains(&hop.id.as_str()) || hop.kind == HopKind::Soc {
            continue;
        }
        seen.push(&hop.id);
        let disks =
            devices.iter().filter(|device| device.path.iter().any(|other| other.id == hop.id));
        let disks = disks.count();
        if let (true, Some(bytes_per_second)) = (disks > 1, hop.usable_bytes_per_second.get()) {
            found.push(Shared { name: hop.name.clone(), bytes_per_second, disks });
        }
    }
    found.sort_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(bytes_per_second: f64, disks: usize) -> Shared {
        Shared { name: "usb1".into(), bytes_per_second, disks }
    }

    #[test]
    fn an_array_is_as_fast_as_its_disks_or_its_bus() {
        assert_eq!(together(&[10e6, 10e6], &[]).0, 20e6);
        assert_eq!(together(&[10e6, 30e6], &[]).0, 20e6, "the slowest counts");
        assert_eq!(together(&[30e6, 30e6], &[bus(35e6, 2)]).0, 35e6);
        assert_eq!(together(&[10e6, 10e6], &[bus(35e6, 2)]).0, 20e6);
        // Two of three on a narrow bus: it carries two thirds of all.
        assert_eq!(together(&[30e6; 3], &[bus(40e6, 2)]).0, 60e6);
    }
}
