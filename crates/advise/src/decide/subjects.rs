//! Advice on single subjects: compression, cipher, several disks as one, network against card, swap, the class of the card.

use crate::advice::{ALIKE, Basis, Candidate, Curve, CurvePoint, PaysUpTo, Rated, Subject};
use rubus_machine::purpose::{Purpose, Visit, What};
use rubus_processor::compression::{Link, Method, Mix, Way, cheapest_first};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::BlockDevice;
use rubus_vocabulary::processor::compression::Cut;
use rubus_vocabulary::units::rate_si;

use super::links::Port;
use super::place::{self, Place};
use super::words::{rate, time};
use super::{Question, links, striping, swapping};
use crate::stages::cipher;
use crate::stages::compression::usual;

/// Links for the curve, in bytes per second.
const LINKS: [f64; 7] = [5e6, 12e6, 23e6, 35e6, 118e6, 400e6, 900e6];

pub(super) fn all(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> (Vec<Subject>, Option<Curve>) {
    if question.purpose == Purpose::Swap {
        let subjects = [swappiness(question, places, candidates), card(question)];
        return (subjects.into_iter().flatten().collect(), None);
    }
    let curve = curve(question);
    let best = candidates.first();
    let subjects = [
        compression(question, best),
        cipher_subject(question, best),
        striping::several_disks(question, places),
        network(question, candidates).or_else(|| port(question, places, candidates)),
        swap(question, places),
        card(question),
    ];
    (subjects.into_iter().flatten().collect(), Some(curve))
}

fn subject(name: &str, advice: String, command: Option<Vec<String>>) -> Option<Subject> {
    Some(Subject { name: name.into(), advice, command, obstacles: Vec::new() })
}

fn cores(question: &Question<'_>) -> u32 {
    question.machine.cpu.cores.get().unwrap_or(1).max(1)
}

/// How the processor compresses, as it was measured if it was.
struct Speeds {
    methods: Vec<Method>,
    source: String,
    basis: Basis,
}

fn speeds(question: &Question<'_>) -> Speeds {
    let cores = cores(question);
    let now = question.known.compression.iter();
    let now: Vec<Method> = now.filter_map(|speed| Method::measured(speed, cores)).collect();
    if !now.is_empty() {
        return Speeds {
            methods: cheapest_first(now),
            source: "measured on this processor and its data".into(),
            basis: Basis::Measured,
        };
    }
    if let Some(known) = &question.known.processor {
        let rows = known.compression.iter().flat_map(|sample| &sample.rows);
        let rows = rows.filter(|row| row.cut == Cut::Extents);
        let before: Vec<Method> = rows.filter_map(Method::of_row).collect();
        if !before.is_empty() {
            return Speeds {
                methods: cheapest_first(before),
                source: known.source.clone(),
                basis: Basis::Measured,
            };
        }
    }
    let model = question.machine.cpu.model.text().unwrap_or_default();
    let (methods, source) = usual(model, cores);
    Speeds {
        methods,
        source: format!("{source}, data that shrinks to half"),
        basis: Basis::Assumed,
    }
}

fn curve(question: &Question<'_>) -> Curve {
    let speeds = speeds(question);
    let mix = Mix::of(question.purpose);
    let point = |&bytes_per_second: &f64| {
        let link = Link::alike(bytes_per_second);
        let rated = |way: Way| {
            let mut all = vec![Rated {
                method: "none".into(),
                bytes_per_second: Estimate::exact(bytes_per_second),
            }];
            all.extend(speeds.methods.iter().map(|method| Rated {
                method: method.name.clone(),
                bytes_per_second: method.through(Estimate::exact(bytes_per_second), way),
            }));
            all
        };
        let best = mix.best(&speeds.methods, &link);
        CurvePoint {
            link_bytes_per_second: bytes_per_second,
            best: best.map_or("none".into(), |method| method.name.clone()),
            writes: rated(Way::Write),
            reads: rated(Way::Read),
        }
    };
    let pays = |method: &Method| {
        let found = method.break_even(mix);
        PaysUpTo {
            method: method.name.clone(),
            writes: found.writes,
            reads: found.reads,
            mix: found.mix,
        }
    };
    Curve {
        points: LINKS.iter().map(point).collect(),
        break_even: speeds.methods.iter().map(pays).collect(),
        is_measured: speeds.basis == Basis::Measured,
        source: speeds.source,
        basis: speeds.basis,
        cores: cores(question),
    }
}

fn compression(question: &Question<'_>, best: Option<&Candidate>) -> Option<Subject> {
    let best = best?;
    let speeds = speeds(question);
    let mix = Mix::of(question.purpose);
    let link = Link { read: best.figures.sequential_read, write: best.figures.sequential_write };
    if let Some(port) = narrower_port(question, best) {
        let advice = format!(
            "None for speed on {}: {} carries less than it gives without; it saves space and wear.",
            best.name, port.link.name
        );
        return subject("compression", advice, None);
    }
    let basis = speeds.basis;
    let plain = |rate: Estimate, basis: Basis| basis.figure(&format!("{:.0}", rate.value / 1e6));
    let mega = |rate: Estimate| plain(rate, basis);
    let how = match speeds.basis {
        Basis::Measured => format!(" ({})", speeds.source),
        _ => String::new(),
    };
    // On a new root, ext4 is the other choice.
    let is_new_root =
        !best.is_now && matches!(question.purpose, Purpose::Desktop | Purpose::Server);
    let without = if is_new_root { " With `filesystem=ext4`, none of it." } else { "" };
    let advice = match mix.best(&speeds.methods, &link) {
        Some(method) => format!(
            "{} on {}: writes {} instead of {} MB/s, reads {} instead of {}, if data shrinks to {}; {}{how}.{without}",
            method.name,
            best.name,
            mega(method.through(link.write, Way::Write)),
            plain(link.write, best.basis.sequential_write),
            mega(method.through(link.read, Way::Read)),
            plain(link.read, best.basis.sequential_read),
            basis.figure(&format!("{:.0} %", 100.0 / method.ratio.value)),
            up_to(question, method, basis)
        ),
        None => {
            let cheapest = speeds.methods.first()?;
            format!(
                "None for speed on {}; it saves space and wear. {} {}{how}.",
                best.name,
                cheapest.name,
                up_to(question, cheapest, basis)
            )
        }
    };
    subject("compression", advice, None)
}

/// The port of a storage node that carries less than the disk behind it gives in order.
fn narrower_port(question: &Question<'_>, best: &Candidate) -> Option<Port> {
    let own = best.figures.sequential_read.value;
    let own = own.min(best.figures.sequential_write.value);
    links::port(question).filter(|port| port.link.bytes_per_second.value <= own)
}

/// "worth it on disks up to 400 MB/s writing, 1.0 GB/s reading, 560 MB/s mixed": what a disk carries, mixed as the purpose does.
fn up_to(question: &Question<'_>, method: &Method, basis: Basis) -> String {
    let mix = Mix::of(question.purpose);
    let found = method.break_even(mix);
    let link = |rate: Option<f64>| match rate {
        Some(rate) => basis.figure(&rate_si(rate)),
        None => "no speed".into(),
    };
    format!(
        "worth it on disks up to {} writing, {} reading, {} mixed",
        link(found.writes),
        link(found.reads),
        link(found.mix)
    )
}

fn cipher_subject(question: &Question<'_>, best: Option<&Candidate>) -> Option<Subject> {
    let aes = cipher::aes(question.machine, question.known)?;
    let best = best?;
    // What the cipher has to keep up with.
    let (needed, basis, name) = match narrower_port(question, best) {
        Some(Port { link, basis }) => (link.bytes_per_second.value, basis, link.name),
        None => {
            let read = best.figures.sequential_read.value;
            (read, best.basis.sequential_read, best.name.clone())
        }
    };
    let rate =
        |cipher: &cipher::Cipher| cipher.basis.figure(&rate_si(cipher.bytes_per_second.value));
    let advice = if aes.bytes_per_second.low > needed {
        format!(
            "LUKS with AES carries {} ({}), more than {name} gives: it costs little.",
            rate(&aes),
            aes.source,
        )
    } else {
        let other = cipher::adiantum(&aes, question.known);
        let kernel = &question.machine.kernel_config;
        let has = kernel.iter().any(|setting| {
            setting.name == "CRYPTO_ADIANTUM" && matches!(setting.value.text(), Some("y" | "m"))
        });
        let known =
            if has || other.basis == Basis::Measured { "" } else { " if the kernel has it" };
        let why = if aes.has_instructions { "" } else { "No AES instructions: " };
        let is_better = other.bytes_per_second.value > aes.bytes_per_second.value * 1.1;
        let instead =
            if is_better { format!("; Adiantum {}{known}", rate(&other)) } else { String::new() };
        format!(
            "{why}LUKS carries {} ({}) of the {} of {name}{instead}.",
            rate(&aes),
            aes.source,
            basis.figure(&rate_si(needed)),
        )
    };
    subject("cipher", advice, None)
}

fn network(question: &Question<'_>, candidates: &[Candidate]) -> Option<Subject> {
    let net = candidates.iter().find(|candidate| candidate.is_network())?;
    let now = candidates.iter().find(|candidate| candidate.is_now)?;
    let verdict = if net.time_s.value < now.time_s.value {
        format!("Faster than {}", now.name)
    } else {
        format!("Slower than {}", now.name)
    };
    let if_so = match (net.basis.time_s, net.basis.sequential_read) {
        (Basis::Assumed, Basis::Assumed) => " if link, round trip and server are as assumed",
        (Basis::Assumed, _) => " if round trip and server are as assumed",
        _ => "",
    };
    let parts = question.purpose.visits();
    let against = |visit: &Visit| {
        let deep = if visit.depth > 1 && !visit.what.is_in_order() {
            format!(" with {} in flight", visit.depth)
        } else {
            String::new()
        };
        format!(
            "{} {} against {}{deep}",
            visit.what.words(),
            rate(net, visit.what),
            rate(now, visit.what)
        )
    };
    // One part in order, and the slowest of the small ones now.
    let in_order = parts.iter().find(|visit| visit.what.is_in_order());
    let now_s = |visit: &&Visit| now.demand(visit.what).map_or(0.0, |demand| demand.seconds.value);
    let small = parts.iter().filter(|visit| !visit.what.is_in_order());
    let small = small.max_by(|a, b| now_s(a).total_cmp(&now_s(b)));
    let parts: Vec<String> = in_order.into_iter().chain(small).map(against).collect();
    subject(
        "network",
        format!(
            "{verdict}{if_so}: {} against {} for one second of this work; {}.",
            time(net),
            time(now),
            parts.join(", ")
        ),
        None,
    )
}

/// What a storage node's link lets through, beside what the best disk gives.
fn port(question: &Question<'_>, places: &[Place], candidates: &[Candidate]) -> Option<Subject> {
    let Port { link, basis } = links::port(question)?;
    let best = candidates.first()?;
    let carries = link.bytes_per_second.value;
    let is_behind = |candidate: &Candidate, bus: &str| {
        let place = places.iter().find(|place| place.name == candidate.name);
        place.is_some_and(|place| place.buses().any(|other| other == bus))
    };
    let bus = link.behind.as_ref().map(|(bus, _)| bus.as_str());
    let seen = match bus.filter(|bus| is_behind(best, bus)) {
        Some(bus) => {
            let others = candidates.iter();
            let others = others.filter(|other| other.is_here && !is_behind(other, bus));
            on_the_same_bus(best, bus, others)
        }
        None => {
            let own = best.figures.sequential_read.value;
            format!(
                "{} reads {} in order, so the {} is the narrower one",
                best.name,
                best.basis.sequential_read.figure(&rate_si(own)),
                if own > carries { "network" } else { "disk" }
            )
        }
    };
    let advice = format!("{} carries {}; {seen}.", link.name, basis.figure(&rate_si(carries)));
    subject("network", advice, None)
}

/// What a disk gives that shares its bus with the network, and which one would give more since it does not.
fn on_the_same_bus<'c>(
    best: &Candidate,
    bus: &str,
    others: impl Iterator<Item = &'c Candidate>,
) -> String {
    let in_order = |candidate: &Candidate| {
        let demand = candidate.demand(What::SequentialRead);
        demand.map_or(0.0, |demand| demand.per_second.value)
    };
    let faster = others
        .filter(|other| in_order(other) > in_order(best) * ALIKE)
        .max_by(|a, b| in_order(a).total_cmp(&in_order(b)));
    let faster = faster.map_or(String::new(), |other| {
        format!(
            "; {}, which is not on it, gives {}: serve large files from there",
            other.name,
            rate(other, What::SequentialRead)
        )
    });
    format!(
        "what is read from {} and sent passes {bus} twice, and in order {} come through{faster}",
        best.name,
        rate(best, What::SequentialRead)
    )
}

fn swap(question: &Question<'_>, places: &[Place]) -> Option<Subject> {
    let swap = Question { purpose: Purpose::Swap, ..*question };
    let mut candidates = swapping::candidates(&swap, places);
    candidates.retain(|candidate| candidate.is_here);
    let best = candidates.first()?;
    let now = candidates.iter().find(|candidate| candidate.is_now)?;
    let carried = |candidate: &Candidate| candidate.swap.map_or(1.0, |swap| swap.carries.value);
    if best.is_now {
        return subject(
            "swap",
            format!(
                "{} is right: it carries about {:.1} times the memory before it gets slow.",
                best.label(),
                carried(best)
            ),
            None,
        );
    }
    let to_do = swapping::to_do(&swap, places, best);
    let is_one_step = to_do.sentence.is_none();
    subject(
        "swap",
        format!(
            "{}: 2000 pages in and out at 1.5 times the memory take {}, now ({}) {}{}",
            best.label(),
            time(best),
            now.label(),
            time(now),
            if is_one_step { "." } else { "; how: rubus advise swap" }
        ),
        to_do.command.filter(|_| is_one_step),
    )
}

fn swappiness(
    question: &Question<'_>,
    places: &[Place],
    candidates: &[Candidate],
) -> Option<Subject> {
    let found = swapping::swappiness(question, places, candidates.first()?)?;
    subject("swappiness", found.why, None)
}

fn card(question: &Question<'_>) -> Option<Subject> {
    let disk: &BlockDevice = place::disks(question.machine).find(|disk| disk.mmc.is_some())?;
    let mmc = disk.mmc.as_ref()?;
    let class = mmc.promises.get()?.application_class;
    let queueing = mmc.command_queueing.get();
    let name = &disk.name;
    let advice = match (class, queueing) {
        (2, Some(false)) => {
            format!("{name} is A2, but this board queues no commands: A1 is as good.")
        }
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
