//! Why the best one is best, and what does it.

use crate::advice::{
    ALIKE, Basis, Candidate, Demand, NETWORK_DISK, WORTH_A_CHANGE, WORTH_SAYING, is_network,
    likely_faster,
};
use rubus_machine::purpose::{Purpose, What};
use rubus_stats::compare::ratio;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::two_digits;
use rubus_vocabulary::units::{iops, percent, rate_si};

use super::Question;
use super::phrases::{ToDo, list, seconds, times};
use super::place::{Is, Place};
use super::swapping;

/// What is recommended; then what it gives, why, and what is narrow after it.
pub(super) fn because(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> Vec<String> {
    let Some(best) = candidates.first() else {
        return vec!["This machine shows no disk, and so there is nothing to advise on.".into()];
    };
    let now = candidates.iter().find(|candidate| candidate.is_now);
    let purpose = question.purpose;
    let mut sentences = vec![
        recommendation(purpose, best, now, candidates),
        what_it_gives(purpose, best, now, candidates),
    ];
    let why = why(best, now);
    let after = why.is_some();
    sentences.extend(why);
    if question.purpose == Purpose::Swap {
        sentences.extend(swapping::why(question, places, best));
    }
    sentences.extend(what_is_next(best, after));
    sentences
}

/// "Move the system to sda (…): a desktop's work about 5.0 times faster (2.1 to 14 times), not measured here."
fn recommendation(
    purpose: Purpose,
    best: &Candidate,
    now: Option<&Candidate>,
    all: &[Candidate],
) -> String {
    let named = named(best);
    if best.is_now {
        return match likely_faster(all) {
            _ if best.is_enough(purpose) => {
                format!("Keep {named}: it is enough for {}.", purpose.words())
            }
            Some(other) => format!(
                "Keep {named}: {} is probably faster, but {}.",
                short(other),
                what_speaks_against(best, other)
            ),
            None if all.len() == 1 => format!("Keep {named}: no other disk was weighed."),
            None => format!("Keep {named}: nothing that was weighed is worth a change."),
        };
    }
    let change = change(purpose, best);
    let is_measured = best.is_measured;
    let is_unmeasured = best.measured(purpose, true).is_empty();
    let Some(now) = now else {
        let seen = if is_unmeasured { ", not measured here" } else { "" };
        return format!("{change}: the best that was weighed{seen}.");
    };
    match ratio(now.time_s, best.time_s).filter(Estimate::is_known) {
        Some(ratio) => {
            let seen = match (is_measured, is_unmeasured) {
                (true, _) => "",
                (false, true) => ", not measured here",
                (false, false) => ", measured here in part",
            };
            format!("{change}: {} {}{seen}.", work(purpose), faster(ratio))
        }
        None => {
            let why = match (is_measured, is_unmeasured) {
                (true, _) => "",
                (false, true) => ", since it was not measured here",
                (false, false) => ", since it was measured here only in part",
            };
            let is_sure = best.time_s.high < now.time_s.low;
            let worst = if has_shorter_worst_case(best, now) && !is_sure {
                ", and its worst case is shorter"
            } else {
                ""
            };
            format!(
                "{change}: probably faster for {}{worst}; how much is not known{why}.",
                purpose.words()
            )
        }
    }
}

/// Whether the worst case of one is shorter by as much as is worth a change.
fn has_shorter_worst_case(one: &Candidate, other: &Candidate) -> bool {
    one.time_s.high * WORTH_A_CHANGE < other.time_s.high
}

/// Why what is probably faster is not moved to, by what decides between places whose ranges overlap.
fn what_speaks_against(now: &Candidate, other: &Candidate) -> &'static str {
    if !has_shorter_worst_case(other, now) {
        "its worst case is no shorter"
    } else if other.is_bought() {
        "not surely enough to buy it"
    } else if other.is_network() {
        "not surely, and it needs another machine"
    } else {
        "not surely"
    }
}

/// What is to be changed, as an imperative.
fn change(purpose: Purpose, best: &Candidate) -> String {
    let disk = best.name.split('@').next().unwrap_or_default();
    match (purpose, best.euros) {
        _ if best.name.ends_with("@usb3") => format!("Put {disk} into a USB 3 port"),
        _ if best.name.ends_with("@gen3") => format!("Run {disk} at PCIe 3"),
        (Purpose::Swap, (low, high)) if high > 0 => {
            format!("Buy that disk ({low} to {high} EUR), and swap with {}", named(best))
        }
        (_, (low, high)) if high > 0 => format!("Buy {} ({low} to {high} EUR)", best.what),
        (Purpose::Swap, _) => format!("Swap with {}", named(best)),
        (Purpose::Desktop | Purpose::Server, _) => format!("Move the system to {}", named(best)),
        (Purpose::Logger | Purpose::StorageNode, _) => format!("Put the data on {}", named(best)),
    }
}

fn work(purpose: Purpose) -> String {
    match purpose {
        Purpose::Swap => "swapping".into(),
        _ => format!("{}'s work", purpose.words()),
    }
}

/// "about 5.6 times faster (2.1 to 14 times)".
fn faster(ratio: Estimate) -> String {
    let [value, low, high] =
        [ratio.value, ratio.low, ratio.high].map(|times| two_digits(&format!("{times:.2}")));
    if ratio.low > 1.0 {
        format!("about {value} times faster ({low} to {high} times)")
    } else {
        format!("perhaps {value} times faster (at best {high} times, at worst no faster)")
    }
}

/// A time with its range; without one where that says nothing.
fn time_range(candidate: &Candidate) -> String {
    let Estimate { low, high, .. } = candidate.time_s;
    if candidate.time_s.is_known() {
        format!("{} ({} to {})", time(candidate), seconds(low), seconds(high))
    } else {
        format!("{} (not known within a factor of 10)", time(candidate))
    }
}

fn what_it_gives(
    purpose: Purpose,
    best: &Candidate,
    now: Option<&Candidate>,
    all: &[Candidate],
) -> String {
    let range = time_range(best);
    let alone = on_assumptions(purpose, best);
    let work = match purpose {
        Purpose::Swap => "2000 pages in and out",
        _ => "one second of this work",
    };
    let Some(now) = now else {
        let alone = alone.map(|alone| format!(", {alone}")).unwrap_or_default();
        return format!("{} takes {range} for {work}{alone}.", short(best));
    };
    if best.is_now && best.is_enough(purpose) {
        return what_is_enough(best, work, &range, alone.as_deref(), all);
    }
    if let Some(other) = likely_faster(all) {
        let alone = alone.map(|alone| format!(", {alone}")).unwrap_or_default();
        return format!(
            "{} takes {range} for {work}{alone}; {} would take {}: measure before you decide.",
            short(best),
            short(other),
            time_range(other)
        );
    }
    if best.is_now {
        let second = all.get(1).map(|next| {
            let money = match next.euros {
                (0, 0) => String::new(),
                (low, high) => format!(" for {low} to {high} EUR"),
            };
            format!("; {}{money} would take {}", short(next), time(next))
        });
        let alone = alone.map(|alone| format!(", {alone}")).unwrap_or_default();
        return format!(
            "{} takes {range} for {work}{alone}{}.",
            short(best),
            second.unwrap_or_default()
        );
    }
    let is_sure = best.time_s.high < now.time_s.low;
    let overlap = (!is_sure).then(|| "the ranges overlap".to_string());
    let doubts: Vec<String> = alone.into_iter().chain(overlap).collect();
    if best.measured(purpose, true).is_empty() && is_owned(best) {
        let doubts =
            if doubts.is_empty() { String::new() } else { format!("; {}", doubts.join(", and ")) };
        return format!(
            "Others like {} need {range} for {work}, the current {} {}{doubts}.",
            short(best),
            short(now),
            time(now)
        );
    }
    let but = if doubts.is_empty() {
        String::new()
    } else {
        format!(", but {}: measure before you decide", doubts.join(", and "))
    };
    format!(
        "{} would need {range} for {work}; the current {} needs {}{but}.",
        short(best),
        short(now),
        time(now)
    )
}

/// Whether it is a disk of this machine, and so can be measured: not one to buy, and none over the network.
fn is_owned(candidate: &Candidate) -> bool {
    !candidate.is_bought() && !is_network(&candidate.name)
}

/// That nothing is to be changed, and what else would be faster.
fn what_is_enough(
    now: &Candidate,
    work: &str,
    range: &str,
    alone: Option<&str>,
    all: &[Candidate],
) -> String {
    let basis = now.basis.time_s;
    let alone = alone.map(|alone| format!(", {alone}")).unwrap_or_default();
    let by_time = |a: &&Candidate, b: &&Candidate| a.time_s.value.total_cmp(&b.time_s.value);
    let fastest = all.iter().min_by(by_time);
    let fastest = fastest.filter(|fastest| fastest.time_s.value * ALIKE < now.time_s.value);
    let faster = fastest.map_or(String::new(), |fastest| {
        format!(" The fastest that was weighed, {}, takes {}.", short(fastest), time(fastest))
    });
    format!(
        "{} does {work} in {range}, {} of the time and {} at most{alone}: nothing to change.{faster}",
        short(now),
        basis.figure(&percent(now.time_s.value)),
        match basis {
            Basis::Assumed => two_digits(&percent(now.time_s.high)),
            Basis::Measured | Basis::Published | Basis::Unsettled => percent(now.time_s.high),
        }
    )
}

/// A name within a sentence.
fn short(candidate: &Candidate) -> &str {
    match candidate.name.as_str() {
        NETWORK_DISK => "a network disk",
        _ => candidate.label(),
    }
}

/// A time with its mark: "~85 ms".
pub(super) fn time(candidate: &Candidate) -> String {
    candidate.basis.time_s.figure(&seconds(candidate.time_s.value))
}

/// What an assumed time rests on: "on assumed figures alone (commits)".
fn on_assumptions(purpose: Purpose, candidate: &Candidate) -> Option<String> {
    if candidate.basis.time_s != Basis::Assumed {
        return None;
    }
    let assumed = candidate.assumed(purpose);
    let what = match purpose {
        Purpose::Swap => "what a page costs".into(),
        _ if assumed.is_empty() => "what the network carries".into(),
        _ => list(assumed.iter().map(|what| what.words())),
    };
    Some(if candidate.assumed_share(purpose) > 1.0 - WORTH_SAYING {
        format!("on assumed figures alone ({what})")
    } else {
        format!("partly on assumed figures ({what})")
    })
}

/// "sda, SSD on USB 3 X".
fn named(candidate: &Candidate) -> String {
    let is_all_in_what = candidate.is_swap() || candidate.name == NETWORK_DISK;
    if is_all_in_what || candidate.what.starts_with(&candidate.name) {
        candidate.what.clone()
    } else {
        format!("{} ({})", candidate.name, candidate.what)
    }
}

/// The rate behind a part of the time, in the words of its kind.
pub(super) fn rate(candidate: &Candidate, what: What) -> String {
    let Some(demand) = candidate.demand(what) else {
        return "unknown".into();
    };
    let rate = demand.per_second.value;
    let basis = candidate.basis.of(what, demand.in_flight);
    if what.is_in_order() {
        basis.figure(&rate_si(rate))
    } else {
        basis.figure(&format!("{}/s", iops(rate).replace(' ', "")))
    }
}

/// Where the difference is, if the other one is slower.
fn why(best: &Candidate, now: Option<&Candidate>) -> Option<String> {
    // What stays is compared with nothing: there is no "then".
    let other = now.filter(|now| now.name != best.name)?;
    if other.time_s.value < best.time_s.value {
        return None;
    }
    let saved = |what: What| -> Option<f64> {
        let of = |candidate: &Candidate| Some(candidate.demand(what)?.seconds.value);
        Some(of(other)? - of(best)?)
    };
    let most = best.demands.iter().max_by(|a, b| {
        let of = |demand: &Demand| saved(demand.what).unwrap_or(0.0);
        of(a).total_cmp(&of(b))
    })?;
    let saved_s = saved(most.what).filter(|saved| *saved > 0.0)?;
    Some(format!(
        "The largest part of the difference, {}, is in {}: {} now, {} then.",
        seconds(saved_s),
        most.what.words(),
        rate(other, most.what),
        rate(best, most.what)
    ))
}

fn what_is_next(best: &Candidate, after: bool) -> Option<String> {
    let largest = best.largest()?;
    let share = largest.seconds.value / best.time_s.value.max(f64::MIN_POSITIVE);
    let pipe = best.pipes.first()?;
    // A pipe that is this much wider does not limit.
    const FAR_WIDER: f64 = 20.0;
    let next = best.pipes.get(1).and_then(|next| {
        let ratio = next.capacity_iops.value / pipe.capacity_iops.value;
        let is_near = next.capacity_iops.low < pipe.capacity_iops.high;
        match (is_near, ratio < FAR_WIDER) {
            (true, _) => Some(format!(", and {} is about as narrow", next.name)),
            (false, true) => {
                Some(format!(", then {}, which could carry {} as much", next.name, times(ratio)))
            }
            (false, false) => None,
        }
    });
    let first = if after { "After that the" } else { "The" };
    Some(format!(
        "{first} narrowest pipe is {} at {} ({:.0} % of the time){}.",
        pipe.name,
        largest.what.words(),
        share * 100.0,
        next.unwrap_or_default()
    ))
}

/// What does the best one: a recipe where there is one.
pub(super) fn to_do(question: &Question<'_>, places: &[Place], candidates: &[Candidate]) -> ToDo {
    let Some(best) = candidates.first() else {
        return ToDo { command: None, sentence: None };
    };
    if question.purpose == Purpose::Swap {
        return swapping::to_do(question, places, best);
    }
    if best.is_now {
        let is_enough = best.is_enough(question.purpose);
        return ToDo::nothing(match likely_faster(candidates) {
            _ if is_enough => "Nothing: what you have is enough.",
            Some(_) => "Nothing until it is measured.",
            None => "Nothing: the system is there already.",
        });
    }
    let place = places.iter().find(|place| place.name == best.name);
    place.map_or(ToDo::nothing(""), |place| of_place(question, place))
}

fn of_place(question: &Question<'_>, place: &Place) -> ToDo {
    let words = |words: &[&str]| -> Option<Vec<String>> {
        Some(words.iter().map(|word| word.to_string()).collect())
    };
    let is_system = matches!(question.purpose, Purpose::Desktop | Purpose::Server);
    match &place.is {
        Is::Stripe(members) => {
            let nodes: Vec<String> =
                members.iter().map(|member| format!("/dev/{}", member.name)).collect();
            let devices = format!("devices={}", nodes.join(","));
            ToDo {
                command: words(&["rubus", "plan", "raid0", &devices, "at=/mnt/fast"]),
                sentence: None,
            }
        }
        _ if place.is_network() && is_system => {
            let address = match place.name.as_str() {
                NETWORK_DISK => "nbd://SERVER/root",
                address => address,
            };
            ToDo {
                command: words(&["rubus", "plan", "network-root"]),
                sentence: Some(format!(
                    "Before that: on the other machine `rubus serve root.img --size 32GiB --listen 0.0.0.0 --allow NETWORK` (NETWORK: who \
                     may read and write it, such as 192.168.1.0/24), here `sudo rubus attach {address} /dev/nbd0`."
                )),
            }
        }
        _ if place.is_network() => match place.name.as_str() {
            NETWORK_DISK => ToDo::nothing(
                "On the other machine `rubus serve disk.img --size 32GiB --listen 0.0.0.0 --allow NETWORK` (NETWORK: who may read and \
                 write it, such as 192.168.1.0/24), then here `rubus plan network-disk address=nbd://SERVER/disk at=/mnt/network`.",
            ),
            address => ToDo {
                command: words(&[
                    "rubus",
                    "plan",
                    "network-disk",
                    &format!("address={address}"),
                    "at=/mnt/network",
                ]),
                sentence: None,
            },
        },
        _ if place.name.ends_with("@usb3") => {
            ToDo::nothing(&then(question, place, "Put it into a USB 3 port (blue)"))
        }
        _ if place.name.ends_with("@gen3") => {
            ToDo { command: words(&["rubus", "plan", "pcie-gen"]), sentence: None }
        }
        _ if !place.is_here && place.name.contains("card") => ToDo::nothing(
            "Buy it, and copy the whole card to it with an imager on another computer; keep the old one until the new one starts.",
        ),
        _ if !place.is_here => ToDo::nothing(&format!(
            "When it is plugged in: {} (the NAME that `rubus survey` shows).",
            if is_system {
                "rubus plan desktop device=/dev/NAME"
            } else {
                "rubus plan format device=/dev/NAME at=/srv/data"
            }
        )),
        _ => match (&place.directory, is_system) {
            (_, true) => ToDo {
                command: words(&[
                    "rubus",
                    "plan",
                    "desktop",
                    &format!("device=/dev/{}", place.name),
                ]),
                sentence: lost(place),
            },
            (Some(directory), false) => ToDo::nothing(&format!(
                "Put the data below {directory}, which is on {}.",
                place.name
            )),
            (None, false) => ToDo {
                command: words(&[
                    "rubus",
                    "plan",
                    "format",
                    &format!("device=/dev/{}", place.name),
                    "at=/srv/data",
                ]),
                sentence: lost(place),
            },
        },
    }
}

fn lost(place: &Place) -> Option<String> {
    let risk = place.risks.iter().find(|risk| risk.is_loss);
    risk.map(|risk| risk.words.clone())
}

fn then(question: &Question<'_>, place: &Place, first: &str) -> String {
    let is_system = matches!(question.purpose, Purpose::Desktop | Purpose::Server);
    let name = place.name.split('@').next().unwrap_or_default();
    let root = place.directory.as_deref() == Some("/");
    match (is_system && !root, &place.directory) {
        (true, _) => format!("{first}, then rubus plan desktop device=/dev/{name}."),
        (false, Some(directory)) => format!("{first}; the data stays below {directory}."),
        (false, None) => {
            format!("{first}, then rubus plan format device=/dev/{name} at=/srv/data.")
        }
    }
}
