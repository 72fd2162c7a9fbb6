//! Advice: what a machine could be, what each would give, which is best for a purpose, and why.
//!
//! Plain values. The model makes them, the tables and pages draw them, JSON carries them.

mod bases;
mod known;
mod passed_over;
pub mod picture;

use serde::{Deserialize, Serialize};

use rubus_draw::quote::typed;
use rubus_draw::text::begins_with_command;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::iops;

use crate::device_classes::{DeviceClass, Severity};

pub use crate::wish::Wish;
pub use bases::Bases;
pub use known::{Carried, Known, KnownProcessor, MeasuredDisk};
pub use rubus_machine::purpose::{AHEAD, Purpose, Visit, What};
pub use rubus_vocabulary::basis::{Basis, LEGEND, UNSETTLED};

/// Times within this factor count as alike.
pub const ALIKE: f64 = 1.1;
/// What is not faster than now by more than this factor is not worth a change.
pub const WORTH_A_CHANGE: f64 = 1.2;
/// A part of the time below this share is not worth a word.
pub const WORTH_SAYING: f64 = 0.1;

/// Version of the structure; fields are only added within a version.
pub const FORMAT: u32 = 1;

/// What to do with a machine, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// [`FORMAT`].
    pub format: u32,
    /// The board, or what stands for it.
    pub machine: String,
    /// Where its facts come from, where it is not this machine.
    pub from: Option<String>,
    /// What for.
    pub purpose: Purpose,
    /// The work whose time ranks the candidates, in words.
    pub unit: String,
    /// What the machine could be, the best first.
    pub candidates: Vec<Candidate>,
    /// What to do next: the measurement that comes first, the command, or what is done by hand.
    #[serde(default)]
    pub next: NextStep,
    /// What is recommended, as a sentence; then what it gives, why, and what is narrow next.
    pub because: Vec<String>,
    /// The command that plans it, as words; absent where no recipe does it.
    pub command: Option<Vec<String>>,
    /// Why the command's plan would be refused as the system is, as sentences; also empty where no plan has been made yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
    /// What is to be done besides the command, or in place of it, as a sentence.
    pub to_do: Option<String>,
    /// Advice on single subjects.
    pub subjects: Vec<Subject>,
    /// Which compression is best for which link, where compression was weighed.
    pub curve: Option<Curve>,
    /// What is not known, and what settles it.
    pub unknown: Vec<Unknown>,
}

/// Something that a machine could be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// Short: "sda", "usb3-ssd", "nbd://nas/root".
    pub name: String,
    /// What it is, for people.
    pub what: String,
    /// Whether it is how the machine is now.
    pub is_now: bool,
    /// Whether everything that it needs is there.
    pub is_here: bool,
    /// What it gives.
    pub figures: Figures,
    /// Seconds that it takes for one second of the purpose's work.
    pub time_s: Estimate,
    /// Where that time goes, in the order of the purpose's work.
    pub demands: Vec<Demand>,
    /// The resources in its way while it does what takes most of the time, the narrowest first.
    pub pipes: Vec<Pipe>,
    /// Share of all cores that the work keeps busy, 0 to 1.
    pub cpu_share: Estimate,
    /// What happens beyond memory, with the swap on it.
    pub swap: Option<Swapping>,
    /// What it costs in euros, from and to.
    pub euros: (u32, u32),
    /// What may go wrong, as sentences.
    pub risks: Vec<String>,
    /// How bad the worst of them is.
    #[serde(default)]
    pub worst_risk: Option<Severity>,
    /// Candidates of the same number are alike: none is surely faster than another. 0 is the fastest.
    #[serde(default)]
    pub tier: u32,
    /// Whether all figures by which it is ranked were measured on this machine.
    pub is_measured: bool,
    /// How each figure is known.
    pub basis: Bases,
    /// Where the figures come from.
    pub source: String,
}

/// What a place for data gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// 4 KiB random reads per second, one at a time.
    pub random_read: Estimate,
    /// The same with 32 in flight.
    pub random_read_deep: Estimate,
    /// 4 KiB random writes per second, one at a time.
    pub random_write: Estimate,
    /// The same with 32 in flight.
    pub random_write_deep: Estimate,
    /// Reading in order, bytes per second.
    pub sequential_read: Estimate,
    /// Writing in order, bytes per second.
    pub sequential_write: Estimate,
    /// Small writes made durable, per second.
    pub commits: Estimate,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Demand {
    /// The kind of operation.
    pub what: What,
    /// Time that this takes of the whole work.
    pub seconds: Estimate,
    /// Operations in flight meanwhile, at least 1.
    pub in_flight: u32,
    /// The rate at that depth: bytes per second where it is in order, else operations.
    pub per_second: Estimate,
}

impl Demand {
    /// The rate of what is asked for with a queue, for people: "12.9k/s with 8 in flight". What is asked one at a time or in order is
    /// among the figures.
    pub fn deep(&self) -> Option<String> {
        (self.in_flight > 1 && !self.what.is_in_order()).then(|| {
            let rate = iops(self.per_second.value).replace(' ', "");
            format!("{rate}/s with {} in flight", self.in_flight)
        })
    }
}

/// What kind of thing a stage of a storage path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StageKind {
    /// A disk, a card, a stick.
    Device,
    /// What devices are connected by, often shared: USB, PCIe, an SD host.
    Bus,
    /// Encryption by the processor.
    Cipher,
    /// Compression by the processor.
    Compression,
    /// The filesystem's own work.
    Filesystem,
    /// Where memory goes that does not fit.
    Swap,
    /// A cable between machines.
    Network,
    /// A program on another machine.
    Server,
    /// The processor, for anything else.
    Processor,
}

/// A resource on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipe {
    /// What it is called.
    pub name: String,
    /// What kind of stage asks the most of it.
    pub kind: StageKind,
    /// Operations per second that it would let through alone.
    pub capacity_iops: Estimate,
    /// How busy it is, 0 to 1.
    pub utilisation: f64,
}

/// What a set-up of swap carries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swapping {
    /// As many times the memory, before pages go to a disk.
    pub carries: Estimate,
    /// Seconds that a page takes to come back beyond that; absent where there is no place for it.
    pub beyond_s: Option<Estimate>,
}

/// Advice on one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// "compression", "cipher", "raid", "network", "swap", "card".
    pub name: String,
    /// What to do, with the numbers, in a sentence or two; assumed figures have `~` before them.
    pub advice: String,
    /// The command that plans it, as words.
    pub command: Option<Vec<String>>,
    /// As [`Advice::obstacles`], of that command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
}

/// Compression on links of different speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// What the speeds of the processor are from.
    pub source: String,
    /// Whether they were measured on this machine and its data.
    pub is_measured: bool,
    /// Cores that compress.
    pub cores: u32,
    /// How the speeds are known.
    pub basis: Basis,
    /// Up to which link each method pays.
    pub break_even: Vec<PaysUpTo>,
    /// One entry per speed, ascending.
    pub points: Vec<CurvePoint>,
}

/// The fastest links on which a method still pays, bytes per second; absent where it pays on none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaysUpTo {
    /// As btrfs names it.
    pub method: String,
    /// For writing alone.
    pub writes: Option<f64>,
    /// For reading alone.
    pub reads: Option<f64>,
    /// For what the purpose reads and writes in order.
    pub mix: Option<f64>,
}

/// Compression on one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// What the link carries, bytes per second.
    pub link_bytes_per_second: f64,
    /// The method that is worth most for the purpose's reads and writes in order, as btrfs names it; "none" where plain is.
    pub best: String,
    /// Bytes of the original written per second by method, plain first.
    pub writes: Vec<Rated>,
    /// Bytes of the original read per second by method, plain first.
    pub reads: Vec<Rated>,
}

/// A method of compression with a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rated {
    /// "none", "zstd:1".
    pub method: String,
    /// Bytes of the original per second.
    pub bytes_per_second: Estimate,
}

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// What, as a sentence without a full stop.
    pub what: String,
    /// The measurement that settles it, as the words of a command; absent where none can be made here.
    pub measurement: Option<Vec<String>>,
    /// The candidate that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Only root may run it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_root: bool,
}

/// The name of a network disk that has no address yet.
pub const NETWORK_DISK: &str = "nbd";

/// Whether the place of this name is a network disk.
pub fn is_network(name: &str) -> bool {
    name == NETWORK_DISK || name.contains("://")
}

impl Figures {
    /// The figures of a kind of device.
    pub fn of_class(class: &DeviceClass) -> Figures {
        Figures {
            random_read: class.random_read.estimate(),
            random_read_deep: class.random_read_deep.estimate(),
            random_write: class.random_write.estimate(),
            random_write_deep: class.random_write_deep.estimate(),
            sequential_read: class.sequential_read.estimate(),
            sequential_write: class.sequential_write.estimate(),
            commits: class.commits.estimate(),
        }
    }
}

/// Where the best one is the current place, and stays since others are alike: the one of them that is most likely to be faster.
pub fn likely_faster(candidates: &[Candidate]) -> Option<&Candidate> {
    let best = candidates.first().filter(|best| best.is_now)?;
    let is_it = |other: &&Candidate| {
        other.tier == best.tier && other.time_s.value * WORTH_A_CHANGE < best.time_s.value
    };
    let by_time = |a: &&Candidate, b: &&Candidate| a.time_s.value.total_cmp(&b.time_s.value);
    candidates.iter().filter(is_it).min_by(by_time)
}

impl Advice {
    /// How the machine is now.
    pub fn now(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.is_now)
    }

    /// The measurement that comes before a change: of the best place, where it is one to move to, stays although another may be
    /// faster, or is the only one; of the current one, where the best is to be bought. Absent where that place was measured.
    pub fn measure_first(&self) -> Option<&Unknown> {
        let best = self.candidates.first()?;
        let is_alone = self.candidates.len() == 1;
        let is_settled = !is_alone && likely_faster(&self.candidates).is_none();
        let stays = best.is_now && (best.is_enough(self.purpose) || is_settled);
        let place = if best.is_bought() { self.now()? } else { best };
        let is_wanted = !stays && place.measured(self.purpose, true).is_empty();
        let mut its = self.unknown.iter().filter(|one| one.of.as_ref() == Some(&place.name));
        its.find(|one| one.measurement.is_some()).filter(|_| is_wanted)
    }

    /// What to do next.
    pub fn next_step(&self) -> NextStep {
        let then = self.command.as_ref().map(|command| typed(command));
        if let Some(unknown) = self.measure_first() {
            let best = self.candidates.first();
            let words = match then {
                Some(then) => format!("measure it first; then: {then}"),
                None if best.is_some_and(Candidate::is_bought) => {
                    "measure what you have before you buy".into()
                }
                None if best.is_some_and(|best| best.is_now) => match self.candidates.len() {
                    1 => "measure it; no other disk is here to compare it with".into(),
                    _ => "measure it before you decide".into(),
                },
                None => "measure it first".into(),
            };
            let root = unknown.needs_root.then(|| "sudo".to_string());
            let measurement = unknown.measurement.iter().flatten().cloned();
            let command = root.into_iter().chain(measurement).collect();
            return NextStep { command: Some(command), words };
        }
        let words = match (&self.command, &self.to_do) {
            (Some(_), _) => "it shows each step, and changes nothing",
            (None, Some(sentence)) if !sentence.is_empty() => sentence.trim_end_matches('.'),
            (None, _) => "nothing",
        };
        NextStep { command: self.command.clone(), words: words.into() }
    }

    /// Puts before the plan what it would be refused for: what must hold, and how it comes to hold. A measurement stays first,
    /// since it may change the plan.
    pub fn mend_first(&mut self, what: &str, remedy: &str) {
        let plan = self.command.as_ref().map(|command| typed(command));
        let Some(plan) = plan.filter(|_| self.measure_first().is_none()) else {
            return;
        };
        let remedy = remedy.trim_end_matches('.');
        let is_command = begins_with_command(remedy) && !remedy.contains([',', ';', ':', '(', '`']);
        let step = if is_command {
            let command: Vec<&str> = remedy.split(' ').collect();
            NextStep::command(&command, &format!("so that {what}; then: {plan}"))
        } else {
            NextStep::by_hand(&format!("{remedy}; then: {plan}"))
        };
        self.next = if self.from.is_some() { step.on_that_machine() } else { step };
    }

    /// The best of what is there.
    pub fn best_here(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.is_here)
    }
}

impl Candidate {
    /// Whether it has to be bought.
    pub fn is_bought(&self) -> bool {
        self.euros != (0, 0)
    }

    /// What people call it: the disk where it is here as it is, else what it is. Its name is how `--with` and JSON call it.
    pub fn label(&self) -> &str {
        match self.name.as_str() {
            NETWORK_DISK => "network disk",
            _ if self.is_swap() => self.set_up().0,
            name if self.is_bought() || name.contains('@') => &self.what,
            name => name,
        }
    }

    /// What people call it, and what it is where that says more.
    pub fn title(&self) -> (&str, Option<&str>) {
        if self.is_swap() {
            return self.set_up();
        }
        let label = self.label();
        if self.what.contains(label) { (&self.what, None) } else { (label, Some(&self.what)) }
    }

    /// Whether it is a way to swap, by its name, and no place.
    pub fn is_swap(&self) -> bool {
        self.name == "none"
            || ["zram", "zswap+", "swap on "].iter().any(|start| self.name.starts_with(start))
    }

    /// Of a set-up of swap: its words for a row, and what they mean, which stands in brackets behind them.
    fn set_up(&self) -> (&str, Option<&str>) {
        match self.what.split_once(" (") {
            Some((label, more)) => (label, Some(more.strip_suffix(')').unwrap_or(more))),
            None => (&self.what, None),
        }
    }

    /// Whether a network is in the way.
    pub fn is_network(&self) -> bool {
        is_network(&self.name)
    }

    /// Whether it does the work in a time that is enough, going by the longest that is likely.
    pub fn is_enough(&self, purpose: Purpose) -> bool {
        self.time_s.high <= purpose.enough_s()
    }

    /// The demands that were measured, or those that were not.
    pub fn measured(&self, purpose: Purpose, is_measured: bool) -> Vec<What> {
        self.by_basis(purpose, |basis| basis.is_measured() == is_measured)
    }

    /// Share of its time that rests on assumed figures, 0 to 1.
    pub fn assumed_share(&self, purpose: Purpose) -> f64 {
        let assumed = self.by_basis(purpose, |basis| basis == Basis::Assumed);
        let of_it = self.demands.iter();
        let of_it = of_it.filter(|demand| assumed.contains(&demand.what));
        let assumed_s: f64 = of_it.map(|demand| demand.seconds.value).sum();
        assumed_s / self.time_s.value.max(f64::MIN_POSITIVE)
    }

    /// What of its work is assumed and takes a tenth of the time or more; where no part does, all that is assumed.
    pub fn assumed(&self, purpose: Purpose) -> Vec<What> {
        let assumed = self.by_basis(purpose, |basis| basis == Basis::Assumed);
        let is_large = |what: &What| {
            let demand = self.demand(*what);
            demand.is_some_and(|demand| demand.seconds.value >= self.time_s.value * WORTH_SAYING)
        };
        let large: Vec<What> = assumed.iter().copied().filter(is_large).collect();
        if large.is_empty() { assumed } else { large }
    }

    fn by_basis(&self, purpose: Purpose, is_it: impl Fn(Basis) -> bool) -> Vec<What> {
        let visits = purpose.visits().into_iter();
        let of_it = visits.filter(|visit| is_it(self.basis.of(visit.what, visit.depth)));
        of_it.map(|visit| visit.what).collect()
    }

    /// What a part of its work takes.
    pub fn demand(&self, what: What) -> Option<&Demand> {
        self.demands.iter().find(|demand| demand.what == what)
    }

    /// The demand that takes most of the time.
    pub fn largest(&self) -> Option<&Demand> {
        let largest = |a: &&Demand, b: &&Demand| a.seconds.value.total_cmp(&b.seconds.value);
        self.demands.iter().max_by(largest)
    }
}
