//! Advice on single subjects: compression, cipher, several disks as one, network against card, swap, the class of the card.

use rubus_core::advice::{Candidate, Curve, CurvePoint, Purpose, Rated, Subject};
use rubus_core::estimate::Estimate;
use rubus_core::machine::BlockDevice;
use rubus_core::units::rate_si;

use super::Question;
use super::inventory::{self, Is, Place};
use super::swapping;
use super::words::{seconds, times};
use crate::stages::compression::{Method, Way, through, usual};
use crate::stages::{cipher, raid};

/// Links for the curve, in bytes per second.
const LINKS: [f64; 7] = [5e6, 12e6, 23e6, 35e6, 118e6, 400e6, 900e6];
/// What is less than this better is not worth a processor's time.
const WORTH_IT: f64 = 1.05;
/// What is less than this faster is not worth that one disk that fails takes everything.
const RAID_WORTH_IT: f64 = 1.25;

pub(super) fn all(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> (Vec<Subject>, Option<Curve>) {
    if question.purpose == Purpose::Swap {
        let subjects = [swap(question, places), card(question)];
        return (subjects.into_iter().flatten().collect(), None);
    }
    let curve = curve(question);
    let best = candidates.first();
    let subjects = [
        compression(question, &curve, best),
        cipher_subject(question, best),
        several_disks(question, places),
        network(candidates),
        swap(question, places),
        card(question),
    ];
    (subjects.into_iter().flatten().collect(), Some(curve))
}

fn subject(name: &str, advice: String, command: Option<Vec<String>>) -> Option<Subject> {
    Some(Subject {
        name: name.into(),
        advice,
        command,
    })
}

fn cores(question: &Question<'_>) -> u32 {
    question.machine.cpu.cores.get().unwrap_or(1).max(1)
}

fn methods(question: &Question<'_>) -> (Vec<Method>, String, bool) {
    let measured: Vec<Method> = question
        .known
        .compression
        .iter()
        .filter_map(Method::measured)
        .collect();
    if !measured.is_empty() {
        return (
            measured,
            "measured on this processor and its data".into(),
            true,
        );
    }
    let model = question.machine.cpu.model.text().unwrap_or_default();
    let (methods, source) = usual(model);
    (
        methods,
        format!("{source}, data that shrinks to half"),
        false,
    )
}

fn curve(question: &Question<'_>) -> Curve {
    let (methods, source, is_measured) = methods(question);
    let cores = cores(question);
    let point = |&link: &f64| {
        let rated = |way: Way| {
            let rate = |method: Option<&Method>| Rated {
                method: method.map_or("none".into(), |method| method.name.clone()),
                bytes_per_second: through(method, cores, Estimate::exact(link), way),
            };
            let mut all = vec![rate(None)];
            all.extend(methods.iter().map(|method| rate(Some(method))));
            all
        };
        let (writes, reads) = (rated(Way::Write), rated(Way::Read));
        CurvePoint {
            link_bytes_per_second: link,
            best: best_of(&writes, &reads),
            writes,
            reads,
        }
    };
    Curve {
        points: LINKS.iter().map(point).collect(),
        source,
        is_measured,
        cores,
    }
}

/// What is read twice as often as written; of those that are alike the first, which costs the processor least.
fn best_of(writes: &[Rated], reads: &[Rated]) -> String {
    let worth = |i: usize| {
        let (write, read) = (
            writes[i].bytes_per_second.value,
            reads[i].bytes_per_second.value,
        );
        (read.powi(2) * write).cbrt()
    };
    let mut best = 0;
    for i in 1..writes.len() {
        if worth(i) > worth(best) * WORTH_IT {
            best = i;
        }
    }
    writes[best].method.clone()
}

fn compression(
    question: &Question<'_>,
    curve: &Curve,
    best: Option<&Candidate>,
) -> Option<Subject> {
    let best = best?;
    let link = best.figures.sequential_write;
    let (methods, _, _) = methods(question);
    let cores = cores(question);
    let rate = |method: Option<&Method>, way| through(method, cores, link, way).value;
    let worth = |method: Option<&Method>| {
        (rate(method, Way::Read).powi(2) * rate(method, Way::Write)).cbrt()
    };
    let plain = worth(None);
    let mut chosen: Option<&Method> = None;
    for method in &methods {
        if worth(Some(method)) > worth(chosen).max(plain) * WORTH_IT {
            chosen = Some(method);
        }
    }
    let ends = curve.points.iter().rev().find(|point| point.best != "none");
    let until = match ends {
        Some(_) if curve.points.last().is_some_and(|last| last.best != "none") => {
            "pays on any link".into()
        }
        Some(point) => format!("pays up to {}", rate_si(point.link_bytes_per_second)),
        None => "pays on no link here".into(),
    };
    let how = match curve.is_measured {
        true => "measured",
        false => "usual for this processor",
    };
    let advice = match chosen {
        Some(method) => {
            let writes = through(Some(method), cores, link, Way::Write);
            format!(
                "{} on {} writes {:.0} ({:.0} to {:.0}) instead of {:.0} MB/s if data shrinks to {:.0} %; it {until} ({how}).",
                method.name,
                best.name,
                writes.value / 1e6,
                writes.low / 1e6,
                writes.high / 1e6,
                link.value / 1e6,
                100.0 / method.ratio.value
            )
        }
        None => format!(
            "None for speed on {}, which writes {} plain; it saves space and wear, and {until} ({how}).",
            best.name,
            rate_si(link.value)
        ),
    };
    subject("compression", advice, None)
}

fn cipher_subject(question: &Question<'_>, best: Option<&Candidate>) -> Option<Subject> {
    let aes = cipher::aes(question.machine)?;
    let cores = cores(question);
    let all = |cipher: &cipher::Cipher| cipher.bytes_per_second.scaled(f64::from(cores));
    let best = best?;
    let disk = best.figures.sequential_read;
    let carried = all(&aes);
    let advice = match carried.low > disk.value {
        true => format!(
            "LUKS with AES carries about {} ({}), more than {} gives: it costs little.",
            rate_si(carried.value),
            aes.source,
            best.name
        ),
        false => {
            let other = cipher::adiantum(&aes);
            let kernel = &question.machine.kernel_config;
            let has = kernel.iter().any(|setting| {
                setting.name == "CRYPTO_ADIANTUM" && matches!(setting.value.text(), Some("y" | "m"))
            });
            let known = match has {
                true => "",
                false => " if the kernel has it",
            };
            format!(
                "No instructions for AES: LUKS carries {} of the {} of {}; Adiantum about {}{known}.",
                rate_si(carried.value),
                rate_si(disk.value),
                best.name,
                rate_si(all(&other).value)
            )
        }
    };
    subject("cipher", advice, None)
}

/// All disks of the machine in pairs that could work as one.
fn several_disks(question: &Question<'_>, places: &[Place]) -> Option<Subject> {
    let members: Vec<&raid::Member> = places
        .iter()
        .filter(|place| place.is_here && !place.is_now && !place.name.contains('@'))
        .filter_map(|place| match &place.is {
            Is::Disk(member) => Some(member),
            _ => None,
        })
        .filter(|member| inventory::disks(question.machine).any(|disk| disk.name == member.name))
        .collect();
    let [first, second, ..] = members[..] else {
        return None;
    };
    let pair = [first.clone(), second.clone()];
    let rate = |place: Is| {
        let place = Place {
            is: place,
            ..places[0].clone()
        };
        super::weigh::at(&place, rubus_core::advice::What::SequentialRead, 8).bytes_per_second
    };
    let together = rate(Is::Stripe(pair.to_vec()));
    let alone = [first, second].map(|member| rate(Is::Disk(member.clone())).value);
    let faster = alone[0].max(alone[1]);
    let shared = first
        .buses
        .iter()
        .filter(|(name, _)| second.buses.iter().any(|(other, _)| other == name))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let gain = together.value / faster;
    let names = format!("{} and {}", first.name, second.name);
    let is_worth_it = gain > RAID_WORTH_IT;
    let advice = match (is_worth_it, shared) {
        (false, Some((bus, usable))) if together.value > usable * 0.7 => format!(
            "{names} are on one bus ({bus}): as a RAID-0 no gain worth it ({} instead of {}), twice the risk.",
            rate_si(together.value),
            rate_si(faster)
        ),
        (false, _) => format!(
            "{names} as a RAID-0: {} together, {} alone: the slower one is in the way.",
            rate_si(together.value),
            rate_si(faster)
        ),
        (true, _) => format!(
            "{names} as a RAID-0 with chunks of 64 KiB: {} instead of {} in order ({}), single small accesses no faster, and one \
             that fails takes all.",
            rate_si(together.value),
            rate_si(faster),
            times(gain)
        ),
    };
    let command = is_worth_it.then(|| {
        let devices = format!("devices=/dev/{},/dev/{}", first.name, second.name);
        ["rubus", "plan", "raid0", &devices, "at=/mnt/fast"]
            .map(str::to_string)
            .into()
    });
    subject("raid", advice, command)
}

fn network(candidates: &[Candidate]) -> Option<Subject> {
    let net = candidates
        .iter()
        .find(|candidate| candidate.name.starts_with("nbd"))?;
    let now = candidates.iter().find(|candidate| candidate.is_now)?;
    let (a, b) = (&net.figures, &now.figures);
    let verdict = match net.time_s.value < now.time_s.value {
        true => format!("faster than {}", now.name),
        false => format!("slower than {}", now.name),
    };
    subject(
        "network",
        format!(
            "A network disk is {verdict}: {:.0} against {:.0} MB/s, {:.0} against {:.0} small writes per second.",
            a.sequential_read.value / 1e6,
            b.sequential_read.value / 1e6,
            a.random_write.value,
            b.random_write.value
        ),
        None,
    )
}

fn swap(question: &Question<'_>, places: &[Place]) -> Option<Subject> {
    if question.purpose == Purpose::Swap {
        let setting = question
            .machine
            .vm
            .iter()
            .find(|setting| setting.name == "swappiness");
        let now = setting?.value.text()?;
        return subject(
            "swappiness",
            format!(
                "Now {now}. With compressed memory first 100 to 180 is right, since a page from there is back sooner than a file from a disk; with a \
                 slow disk alone 10 to 60. `rubus plan swap` computes it from measured speeds."
            ),
            None,
        );
    }
    let swap = Question {
        purpose: Purpose::Swap,
        ..*question
    };
    let mut candidates = swapping::candidates(&swap, places);
    candidates.retain(|candidate| candidate.is_here);
    super::rank(&mut candidates);
    let best = candidates.first()?;
    let now = candidates.iter().find(|candidate| candidate.is_now)?;
    let carried = |candidate: &Candidate| candidate.swap.map_or(1.0, |swap| swap.carries.value);
    if best.is_now {
        return subject(
            "swap",
            format!(
                "{} is right: it carries about {:.1} times the memory before it gets slow.",
                best.what,
                carried(best)
            ),
            None,
        );
    }
    let to_do = swapping::to_do(&swap, places, best);
    subject(
        "swap",
        format!(
            "{}: 2000 pages in and out at 1.5 times the memory take {}, now ({}) {}.",
            best.name,
            seconds(best.time_s.value),
            now.name,
            seconds(now.time_s.value)
        ),
        to_do.command,
    )
}

fn card(question: &Question<'_>) -> Option<Subject> {
    let disk: &BlockDevice = inventory::disks(question.machine).find(|disk| disk.mmc.is_some())?;
    let mmc = disk.mmc.as_ref()?;
    let class = mmc.promises.get()?.application_class;
    let queueing = mmc.command_queueing.get();
    let name = &disk.name;
    let advice = match (class, queueing) {
        (2, Some(false)) => format!(
            "{name} is of class A2, but this board queues no commands for it: A1 is as good here."
        ),
        (2, Some(true)) => format!(
            "{name} is of class A2 and its queue is used: 4000 reads, 2000 writes per second promised."
        ),
        (1, _) => format!(
            "{name} is of class A1 (1500 reads, 500 writes per second promised); A2 needs a queue."
        ),
        (0, _) => format!(
            "{name} promises no application class; A1 would be 1500 reads, 500 writes per second."
        ),
        _ => return None,
    };
    subject("card", advice, None)
}
