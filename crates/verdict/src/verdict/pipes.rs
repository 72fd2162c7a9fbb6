//! The stages of a run with their capacities and demands, and which is the narrowest.

use super::{Pipe, PipeKind};
use rubus_machine::purpose::What;
use rubus_machine::reference_work::amount_of_all;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::job_names;
use rubus_vocabulary::machine::{BlockDevice, Hop, HopKind};
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{duration_ns, percent};

/// A measured rate at or above this share of a hop's usable rate means that the hop is the limit.
const BUS_IS_THE_LIMIT: f64 = 0.80;

/// A core this busy with the test is the limit.
const CPU_IS_THE_LIMIT: f64 = 0.90;

pub(super) fn bus_pipes(run: &Run) -> Vec<Pipe> {
    path(run)
        .iter()
        .filter_map(|hop| {
            let usable = hop.usable_bytes_per_second.get()?;
            Some(Pipe {
                name: format!("{}: {}", kind_of_bus(hop.kind), hop.link),
                kind: PipeKind::Bus,
                bytes_per_second: Some(Estimate::exact(usable)),
                operations_per_second: None,
                demand_s: None,
                measured: false,
                narrowest: false,
                note: hop.usable_bytes_per_second.source().to_string(),
            })
        })
        .collect()
}

fn kind_of_bus(kind: HopKind) -> &'static str {
    match kind {
        HopKind::Soc => "chip",
        HopKind::Pcie => "PCIe",
        HopKind::UsbController | HopKind::UsbHub | HopKind::UsbDevice => "USB",
        HopKind::MmcHost => "card slot",
        HopKind::Scsi => "SATA/SCSI",
        HopKind::Nvme => "NVMe",
        HopKind::Virtio => "virtual",
        HopKind::Network => "network",
    }
}

/// The kinds of operation in the reference work, with the job that measures each and the name of its pipe.
pub(super) const KINDS: [(What, &str, &str); 5] = [
    (What::SequentialRead, job_names::SEQUENTIAL_READ, "sequential reads"),
    (What::SequentialWrite, job_names::SEQUENTIAL_WRITE, "sequential writes"),
    (What::RandomRead, job_names::RANDOM_READ, "4 KiB random reads"),
    (What::RandomWrite, job_names::RANDOM_WRITE, "4 KiB random writes"),
    (What::Commit, job_names::COMMIT, "commits"),
];

impl Pipe {
    /// Name of the job that measured it; absent for a bus.
    pub fn job(&self) -> Option<&'static str> {
        self.operation().map(|(_, job, _)| *job)
    }

    /// The kind of operation; absent for a bus.
    pub fn what(&self) -> Option<What> {
        self.operation().map(|(what, _, _)| *what)
    }

    fn operation(&self) -> Option<&'static (What, &'static str, &'static str)> {
        let known = KINDS.iter();
        let mut known = known.filter(|_| self.kind == PipeKind::Operation);
        known.find(|(_, _, title)| *title == self.name)
    }

    /// The shortest and the longest demand that its interval allows, in seconds.
    pub fn demand_range(&self) -> Option<(f64, f64)> {
        let demand_s = self.time_for(amount_of_all(self.what()?))?;
        Some((demand_s.low, demand_s.high))
    }

    /// Seconds for an amount, in bytes where that is its measure, else operations; the upper end is unbounded where the rate may be 0.
    pub(super) fn time_for(&self, amount: f64) -> Option<Estimate> {
        let capacity = self.bytes_per_second.or(self.operations_per_second)?;
        let needs = |rate: f64| amount / rate.max(0.0);
        Some(Estimate::new(needs(capacity.value), needs(capacity.high), needs(capacity.low)))
    }
}

pub(super) fn operation_pipes(run: &Run) -> Vec<Pipe> {
    let mut pipes = Vec::new();
    for (what, name, title) in KINDS {
        let Some(result) = run.job(name).filter(|result| result.operations > 0) else {
            continue;
        };
        let rate = if what.is_in_order() { result.bytes_per_second } else { result.iops };
        let note = match result.outcome {
            Outcome::Inconclusive => {
                format!("{}, but it did not settle", limit(run, result).words())
            }
            _ => limit(run, result).words(),
        };
        pipes.extend(pipe_of(what, title, rate, note));
    }
    pipes
}

/// A kind of operation with its rate, bytes per second where that is its measure, else operations; none without a rate.
pub(super) fn pipe_of(what: What, title: &str, rate: Estimate, note: String) -> Option<Pipe> {
    let in_bytes = what.is_in_order();
    (rate.value > 0.0).then(|| Pipe {
        name: title.to_string(),
        kind: PipeKind::Operation,
        bytes_per_second: in_bytes.then_some(rate),
        operations_per_second: (!in_bytes).then_some(rate),
        demand_s: Some(amount_of_all(what) / rate.value),
        measured: true,
        narrowest: false,
        note,
    })
}

pub(super) fn mark_narrowest(pipes: &mut [Pipe]) {
    let demand = |pipe: &Pipe| pipe.demand_s.unwrap_or(f64::NEG_INFINITY);
    let widest_demand = pipes.iter().map(demand).fold(f64::NEG_INFINITY, f64::max);
    if let Some(pipe) = pipes.iter_mut().find(|p| p.demand_s == Some(widest_demand)) {
        pipe.narrowest = true;
    }
}

/// Operations that need longer than the narrowest pipe within what the intervals allow, so that they may be it.
pub(super) fn rivals<'a>(narrowest: &Pipe, pipes: &'a [Pipe]) -> Vec<&'a Pipe> {
    let Some((shortest_s, _)) = narrowest.demand_range() else {
        return Vec::new();
    };
    let may_be_narrower =
        |pipe: &&Pipe| pipe.demand_range().is_some_and(|(_, long_s)| long_s > shortest_s);
    pipes
        .iter()
        .filter(|pipe| pipe.kind == PipeKind::Operation && !pipe.narrowest)
        .filter(may_be_narrower)
        .collect()
}

/// What holds a job's rate down.
enum Limit {
    /// A hop of the path is full.
    Bus { link: String, share: f64 },
    /// The processor is busy with it.
    Processor,
    /// Each operation waits for the one before, and the device takes its time.
    ServiceTime { each_ns: u64 },
    /// The device's own rate, or a core that polled for it and was busy in any case.
    DeviceOrPoller,
    /// The device's own rate.
    Device,
}

impl Limit {
    fn words(&self) -> String {
        match self {
            Limit::Bus { link, share } => {
                format!("the bus is the limit: {} of what {link} carries", percent(*share))
            }
            Limit::Processor => "the processor is the limit".into(),
            Limit::ServiceTime { each_ns } => format!("{} each on average", duration_ns(*each_ns)),
            Limit::DeviceOrPoller => "the device or the core that polls it is the limit".into(),
            Limit::Device => "the device itself is the limit".into(),
        }
    }
}

fn limit(run: &Run, result: &JobResult) -> Limit {
    if let Some((hop, ceiling)) = lowest_ceiling(run) {
        let share = result.bytes_per_second.value / ceiling;
        if share >= BUS_IS_THE_LIMIT {
            return Limit::Bus { link: hop.link.clone(), share };
        }
    }
    let cpu_bound =
        |doubt: &Doubt| matches!(doubt, Doubt::CpuBound { share } if *share >= CPU_IS_THE_LIMIT);
    // The kernel's two accounts must agree: a driver that waits in a loop may look like work in the
    // thread's own account while the processors are idle in the machine's.
    let busy_cores: f64 = result.cpu.per_core_busy.iter().sum();
    if result.doubts.iter().any(cpu_bound) && busy_cores >= CPU_IS_THE_LIMIT / 2.0 {
        return Limit::Processor;
    }
    match (result.queue_depth, result.block_bytes < 1 << 20, result.iops.value > 0.0) {
        (1, true, true) => Limit::ServiceTime { each_ns: (1e9 / result.iops.value) as u64 },
        _ if result.polled => Limit::DeviceOrPoller,
        _ => Limit::Device,
    }
}

/// The hops between the processor and the (single) disk under the target.
pub(super) fn path(run: &Run) -> &[Hop] {
    disk(run).map(|disk| disk.path.as_slice()).unwrap_or(&[])
}

/// The physical disk under the target, where there is exactly one.
pub(super) fn disk(run: &Run) -> Option<&BlockDevice> {
    let disks = run.machine.disks_below(run.target.device.as_deref()?);
    match disks[..] {
        [only] => Some(only),
        _ => None,
    }
}

pub(super) fn lowest_ceiling(run: &Run) -> Option<(&Hop, f64)> {
    path(run)
        .iter()
        .filter_map(|hop| Some((hop, hop.usable_bytes_per_second.get()?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}
