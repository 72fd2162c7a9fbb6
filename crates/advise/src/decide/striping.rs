//! Several spare disks as one: which of them, why these, and in what chunks.

use crate::advice::{Basis, Subject};
use rubus_boot::medium::starts_from;
use rubus_machine::purpose::What;
use rubus_vocabulary::units::rate_si;

use super::phrases::{list, times};
use super::place::{self, Is, Place};
use super::{Question, weigh};
use crate::stages::raid::Member;

/// What is less than this faster is not worth that one disk that fails takes everything.
const WORTH_IT: f64 = 1.25;
/// What one more disk has to bring.
const ONE_MORE: f64 = 1.1;
/// Sets of more disks than this are not tried: there are two to the power of it.
const MAX_DISKS: usize = 8;

/// A spare disk.
struct Spare<'p> {
    member: &'p Member,
    basis: Basis,
}

/// Some of them as one.
struct Set {
    /// By their numbers.
    numbers: Vec<usize>,
    bytes_per_second: f64,
    /// How it is known that they are so fast together.
    basis: Basis,
}

/// The best of all sets of spare disks, and what speaks for it; nothing where there are fewer than two.
pub(super) fn several_disks(question: &Question<'_>, places: &[Place]) -> Option<Subject> {
    let spares = spares(question, places);
    if spares.len() < 2 {
        return None;
    }
    let alone = (0..spares.len()).map(|number| set(question, &spares, vec![number]));
    let alone = alone.reduce(|a, b| if b.bytes_per_second > a.bytes_per_second { b } else { a })?;
    let best = best(question, &spares)?;
    let gain = best.bytes_per_second / alone.bytes_per_second;
    let names = names(&spares, &best.numbers);
    let rates = format!(
        "{} instead of {}",
        best.basis.figure(&rate_si(best.bytes_per_second)),
        alone.basis.figure(&rate_si(alone.bytes_per_second))
    );
    let shared = shared_bus(&spares, &best);
    if gain <= WORTH_IT {
        let why = match shared {
            Some(bus) => format!("they share {bus}"),
            None => "the slowest one limits them".into(),
        };
        let advice = format!(
            "{names} as a RAID-0: no gain worth it ({rates} of {} alone, the mean of reading and writing), since {why}.",
            spares[alone.numbers[0]].member.name
        );
        return Some(subject(advice, None));
    }
    let why = match shared {
        Some(bus) => format!("{bus}, which they share, carries no more"),
        None => "they share no bus that limits them".into(),
    };
    let chunk = "Chunks of 64 KiB: a small access stays on one disk, a large one reaches all.";
    let advice = format!(
        "{names} as a RAID-0: {rates} in order, the mean of reading and writing ({}), since {why}{}. {chunk} Single small accesses get no faster, and one disk that \
         fails takes all.",
        times(gain),
        left_out(question, &spares, &best)
    );
    let nodes: Vec<String> =
        best.numbers.iter().map(|number| format!("/dev/{}", spares[*number].member.name)).collect();
    let devices = format!("devices={}", nodes.join(","));
    let command = ["rubus", "plan", "raid0", &devices, "at=/mnt/fast"];
    Some(subject(advice, Some(command.map(str::to_string).into())))
}

fn subject(advice: String, command: Option<Vec<String>>) -> Subject {
    Subject { name: "raid".into(), advice, command, obstacles: Vec::new() }
}

/// The disks of this machine that are not the system's and that it does not start from, the fastest first.
fn spares<'p>(question: &Question<'_>, places: &'p [Place]) -> Vec<Spare<'p>> {
    let is_disk = |name: &str| {
        let is_known = place::disks(question.machine).any(|disk| disk.name == name);
        is_known && starts_from(question.machine, name).is_none()
    };
    let spare = |place: &'p Place| match &place.is {
        Is::Disk(member) if place.is_here && !place.is_now && is_disk(&place.name) => Some(Spare {
            member,
            basis: place.bases.sequential_read.max(place.bases.sequential_write),
        }),
        _ => None,
    };
    let mut spares: Vec<Spare<'p>> = places.iter().filter_map(spare).collect();
    let rate = |spare: &Spare<'_>| spare.member.figures.sequential_read.value;
    spares.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    spares.truncate(MAX_DISKS);
    spares
}

/// The fastest set, as long as each disk more brings a tenth.
fn best(question: &Question<'_>, spares: &[Spare<'_>]) -> Option<Set> {
    let of_size = |size: usize| {
        let sets = (0..1_usize << spares.len()).filter(|bits| bits.count_ones() as usize == size);
        let numbers = |bits: usize| (0..spares.len()).filter(|n| bits >> n & 1 == 1).collect();
        let sets = sets.map(|bits| set(question, spares, numbers(bits)));
        sets.reduce(|a, b| if b.bytes_per_second > a.bytes_per_second { b } else { a })
    };
    let mut best = of_size(2)?;
    for size in 3..=spares.len() {
        if let Some(more) = of_size(size) {
            let disks_more = (size - best.numbers.len()) as i32;
            if more.bytes_per_second > best.bytes_per_second * ONE_MORE.powi(disks_more) {
                best = more;
            }
        }
    }
    Some(best)
}

/// What a set gives in order, reading as much as writing: as it was measured at once, else as its disks and buses say.
fn set(question: &Question<'_>, spares: &[Spare<'_>], numbers: Vec<usize>) -> Set {
    let members = numbers.iter().map(|number| spares[*number].member.clone());
    let is = match numbers[..] {
        [only] => Is::Disk(spares[only].member.clone()),
        _ => Is::Stripe(members.collect()),
    };
    let rate = |what: What| {
        measured_at_once(question, spares, &numbers, what == What::SequentialRead)
            .map(|rate| (rate, Basis::Measured))
            .unwrap_or_else(|| {
                let all = numbers.iter().map(|number| spares[*number].basis);
                let basis = all.max().unwrap_or(Basis::Assumed);
                (weigh::of(&is, what, 8).bytes_per_second.value, basis)
            })
    };
    let (read, of_read) = rate(What::SequentialRead);
    let (write, of_write) = rate(What::SequentialWrite);
    Set {
        numbers,
        bytes_per_second: 2.0 / (1.0 / read + 1.0 / write),
        basis: of_read.max(of_write),
    }
}

/// Each disk gets the same part of every file, so all are as fast as the slowest lets them be, and no faster than they were at once.
fn measured_at_once(
    question: &Question<'_>,
    spares: &[Spare<'_>],
    numbers: &[usize],
    is_read: bool,
) -> Option<f64> {
    let names = || numbers.iter().map(|number| &spares[*number].member.name);
    let found = question.known.together.iter().find(|found| {
        let is_same = found.disks.len() == numbers.len();
        is_same && found.is_read == is_read && names().all(|name| found.disks.contains(name))
    })?;
    let alone = found.alone_bytes_per_second.iter().copied();
    let slowest = alone.fold(f64::INFINITY, f64::min) * numbers.len() as f64;
    Some(slowest.min(found.together_bytes_per_second.iter().sum()))
}

fn names(spares: &[Spare<'_>], numbers: &[usize]) -> String {
    let mut names: Vec<&str> =
        numbers.iter().map(|number| spares[*number].member.name.as_str()).collect();
    names.sort_unstable();
    list(names.into_iter())
}

/// The narrowest bus that all of a set are on, if what they give fills it.
fn shared_bus<'p>(spares: &'p [Spare<'_>], set: &Set) -> Option<&'p str> {
    /// What is carried in both directions falls short of the bus by as much.
    const FILLED: f64 = 0.7;
    let (first, others) = set.numbers.split_first()?;
    let has = |number: &usize, name: &str| {
        let mut buses = spares[*number].member.buses.iter();
        buses.any(|(other, _)| other == name)
    };
    let buses = spares[*first].member.buses.iter();
    let shared = buses.filter(|(name, _)| others.iter().all(|number| has(number, name)));
    let narrow = shared.filter(|(_, usable)| *usable * FILLED < set.bytes_per_second);
    narrow.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name.as_str())
}

/// What the best of the disks that are left out would make of it.
fn left_out(question: &Question<'_>, spares: &[Spare<'_>], best: &Set) -> String {
    let with = |number: usize| {
        let mut numbers = best.numbers.clone();
        numbers.push(number);
        numbers.sort_unstable();
        (number, set(question, spares, numbers))
    };
    let others = (0..spares.len()).filter(|number| !best.numbers.contains(number));
    let next =
        others.map(with).max_by(|a, b| a.1.bytes_per_second.total_cmp(&b.1.bytes_per_second));
    next.map_or(String::new(), |(number, set)| {
        format!(
            "; with {} too it would be {}",
            spares[number].member.name,
            set.basis.figure(&rate_si(set.bytes_per_second))
        )
    })
}
