//! What a place gives: figures, time for the purpose's work, pipes, and load of the processor.

use crate::advice::{Bases, Basis, Candidate, Demand, Figures, Pipe, WORTH_SAYING};
use rubus_machine::purpose::{Purpose, Visit, What};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::processor::arm_cores;

use super::links::Port;
use super::place::{Is, Place};
use super::risk::{self, Risk};
use super::{Question, links, swap_costs};
use crate::path::Step;
use crate::predict::{Bend, Operation, Prediction, predict};
use crate::stages::{bus, device, network, raid};

/// Bytes of one member of an array before the next one's turn, as the recipe has it.
const CHUNK_BYTES: u32 = 65536;

/// What one operation of a kind asks of a place.
fn path(is: &Is, what: What, depth: u32) -> Vec<Step> {
    match is {
        Is::Disk(member) => {
            let mut steps = device::steps(&member.name, &member.figures, what, depth);
            let buses = member.buses.iter();
            steps.extend(buses.map(|(name, usable)| bus(name, *usable)));
            steps
        }
        Is::Stripe(members) => match what {
            // A commit waits for what it touched, and sooner or later it touches the slowest.
            What::Commit => slowest(members).map_or(Vec::new(), |member| {
                device::steps(&member.name, &member.figures, what, depth)
            }),
            _ => raid::steps(members, CHUNK_BYTES, what, depth),
        },
        Is::Network(link, _) => network::steps(link, what),
    }
}

fn slowest(members: &[raid::Member]) -> Option<&raid::Member> {
    let commits = |member: &&raid::Member| member.figures.commits.value;
    members.iter().min_by(|a, b| commits(a).total_cmp(&commits(b)))
}

fn at(place: &Place, what: What, depth: u32) -> Prediction {
    of(&place.is, what, depth)
}

/// What something gives.
pub(super) fn of(is: &Is, what: What, depth: u32) -> Prediction {
    predicted(&path(is, what, depth), what, depth)
}

/// What a place gives of a part of the work, through the port where it goes out by one.
fn at_work(place: &Place, port: Option<&Port>, visit: &Visit) -> Prediction {
    let mut steps = port.map_or(Vec::new(), |port| network::given_on(&port.link));
    steps.extend(path(&place.is, visit.what, visit.depth));
    predicted(&steps, visit.what, visit.depth)
}

fn predicted(path: &[Step], what: What, depth: u32) -> Prediction {
    let operation = Operation {
        bytes: what.bytes(),
        depth,
        // In order there is always more under way than one; what overlaps does so by the read-ahead's design.
        bend: if what.is_in_order() {
            Bend::Known(Estimate::new(0.1, 0.0, 0.4))
        } else {
            Bend::Stations
        },
    };
    predict(path, &operation)
}

/// The figures of a place.
pub(super) fn figures(place: &Place) -> Figures {
    let iops = |what, depth| at(place, what, depth).iops;
    let rate = |what| at(place, what, rubus_machine::purpose::AHEAD).bytes_per_second;
    Figures {
        random_read: iops(What::RandomRead, 1),
        random_read_deep: iops(What::RandomRead, 32),
        random_write: iops(What::RandomWrite, 1),
        random_write_deep: iops(What::RandomWrite, 32),
        sequential_read: rate(What::SequentialRead),
        sequential_write: rate(What::SequentialWrite),
        commits: iops(What::Commit, 1),
    }
}

pub(super) fn candidate(question: &Question<'_>, place: &Place) -> Candidate {
    let figures = figures(place);
    let (visits, port) = (links::visits(question), links::port(question));
    let predictions: Vec<(Visit, Prediction)> =
        visits.iter().map(|visit| (*visit, at_work(place, port.as_ref(), visit))).collect();
    let demands: Vec<Demand> =
        predictions.iter().map(|(visit, prediction)| demand(visit, prediction)).collect();
    let longest = |a: &&Demand, b: &&Demand| a.seconds.value.total_cmp(&b.seconds.value);
    let largest = demands.iter().max_by(longest).map(|demand| demand.what);
    let pipes = predictions
        .iter()
        .find(|(visit, _)| Some(visit.what) == largest)
        .map(|(_, prediction)| pipes(prediction));
    let time_s = sum(demands.iter().map(|demand| demand.seconds));
    let risks = risks(question, place);
    let is_port_assumed = port.is_some_and(|port| port.basis == Basis::Assumed);
    let basis = Bases {
        time_s: if is_port_assumed {
            Basis::Assumed
        } else {
            time_basis(&place.bases, &visits, &demands, time_s.value)
        },
        carries: swap_costs::ratio_basis(question),
        beyond_s: place.bases.random_read,
        ..place.bases
    };
    Candidate {
        name: place.name.clone(),
        what: place.what.clone(),
        is_now: place.is_now,
        is_here: place.is_here,
        time_s,
        demands,
        pipes: pipes.unwrap_or_default(),
        cpu_share: cpu_share(question, place, &visits),
        swap: swap_costs::on(question, &figures),
        figures,
        euros: place.euros,
        risks: risk::sentences(&risks),
        worst_risk: risk::worst(&risks),
        tier: 0,
        is_measured: basis.time_s.is_measured(),
        basis,
        source: place.source.clone(),
    }
}

/// How a time is known: measured where all of it was, assumed where what is assumed takes a part that is worth a word.
fn time_basis(bases: &Bases, visits: &[Visit], demands: &[Demand], time_s: f64) -> Basis {
    let of = |visit: &Visit| bases.of(visit.what, visit.depth);
    let is_worth_saying = |basis: Basis| {
        let all = visits.iter().zip(demands);
        let with_it = all.filter(|(visit, _)| of(visit) == basis);
        let seconds: f64 = with_it.map(|(_, demand)| demand.seconds.value).sum();
        seconds >= time_s * WORTH_SAYING
    };
    if visits.iter().all(|visit| of(visit) == Basis::Measured) {
        return Basis::Measured;
    }
    if is_worth_saying(Basis::Assumed) {
        return Basis::Assumed;
    }
    if is_worth_saying(Basis::Unsettled) {
        return Basis::Unsettled;
    }
    let is_measured = visits.iter().all(|visit| of(visit).is_measured());
    if is_measured { Basis::Measured } else { Basis::Published }
}

/// Data can be put beside what is there; a system cannot. A supply that sags is worst where much is written.
fn risks(question: &Question<'_>, place: &Place) -> Vec<Risk> {
    let moves_system = matches!(question.purpose, Purpose::Desktop | Purpose::Server);
    let moves = moves_system || place.directory.is_none();
    let mut risks = place.risks.clone();
    risks.retain(|risk| moves || !risk.is_loss);
    if moves_system && !place.is_now && question.machine.power.has_sagged() {
        risks.insert(0, Risk::effort(
            "The supply voltage was too low since the last boot: use a stronger power supply first.",
        ));
    }
    risks
}

/// What a part of the work takes.
pub(super) fn demand(visit: &Visit, prediction: &Prediction) -> Demand {
    let rate = if visit.what.is_in_order() { prediction.bytes_per_second } else { prediction.iops };
    // An interval that reaches down to nothing says that nothing is known, not that it takes for ever.
    let over = |seen: f64| visit.count / seen.max(rate.value / 50.0).max(f64::MIN_POSITIVE);
    Demand {
        what: visit.what,
        seconds: Estimate::new(over(rate.value), over(rate.high), over(rate.low)),
        in_flight: visit.depth,
        per_second: rate,
    }
}

pub(super) fn pipes(prediction: &Prediction) -> Vec<Pipe> {
    let pipe = |pipe: &crate::predict::Pipe| Pipe {
        name: pipe.name.clone(),
        kind: pipe.kind,
        capacity_iops: pipe.capacity_iops,
        utilisation: pipe.utilisation,
    };
    prediction.pipes.iter().map(pipe).collect()
}

/// Independent deviations add in squares.
pub(super) fn sum(parts: impl Iterator<Item = Estimate>) -> Estimate {
    let (mut value, mut below, mut above) = (0.0, 0.0_f64, 0.0_f64);
    for part in parts {
        value += part.value;
        below += (part.value - part.low).powi(2);
        above += (part.high - part.value).powi(2);
    }
    Estimate::new(value, (value - below.sqrt()).max(0.0), value + above.sqrt())
}

/// Processor seconds of one core for a small operation and for a byte in order, and by how much more than usual they may be off;
/// assumed from counts of instructions, and wide.
fn cpu_costs(machine: &Machine) -> (f64, f64, f64) {
    let expected = arm_cores::expected(machine.cpu.model.text().unwrap_or_default());
    let slow = expected.operation;
    (25e-6 * slow, 0.5e-9 * slow, expected.doubt)
}

fn cpu_share(question: &Question<'_>, place: &Place, visits: &[Visit]) -> Estimate {
    let machine = question.machine;
    let cores = f64::from(machine.cpu.cores.get().unwrap_or(1).max(1));
    let (mut operation_s, mut byte_s, doubt) = cpu_costs(machine);
    // Each byte is checked and copied on its way through TCP, and each request wakes two threads more.
    if place.is_network() || question.purpose == Purpose::StorageNode {
        operation_s *= 2.0;
        byte_s *= 5.0;
    }
    let wide = match place.cpu_s {
        Some(measured) => {
            operation_s = measured;
            (0.7, 1.5)
        }
        None => (0.4 / doubt, 2.5 * doubt),
    };
    let busy: f64 = visits
        .iter()
        .map(|visit| match visit.what {
            what if what.is_in_order() => visit.count * byte_s,
            What::Commit => visit.count * operation_s * 3.0,
            _ => visit.count * operation_s,
        })
        .sum();
    let share = |times: f64| (busy * times / cores).min(1.0);
    Estimate::new(share(1.0), share(wide.0), share(wide.1))
}
