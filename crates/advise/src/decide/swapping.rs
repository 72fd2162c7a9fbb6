//! Set-ups of swap: what there is now, zram, and zswap before each disk; which is right, how large, and how readily to swap.
//!
//! zswap writes what is not needed on to its disk; zram keeps all of it and has no place for more. So zswap comes first where a disk
//! takes small writes well, and zram where there is only a card or a stick, which swapping stops and wears out.

use crate::advice::{Bases, Basis, Candidate, Demand, Figures, Swapping};
use rubus_machine::purpose::What;
use rubus_machine::swap_place::swappiness_for_disks;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::SetUpKind;
use rubus_vocabulary::units::bytes_iec;

use super::phrases::{ToDo, times};
use super::place::{Is, Place};
use super::risk::{self, Risk};
use super::swap_costs::{POOL_PERCENT, TIMES, base, page_s, pool_percent, ratio_basis};
use super::{Question, weigh};
use crate::predict::{Bend, Operation, predict};
use crate::stages::swap::SetUp;

/// A disk that does at least this many random writes per second is good for swap.
const TAKES_SWAP: f64 = 1000.0;
/// The kernel's own limit of the pool of zswap, in percent of the memory.
const DEFAULT_POOL_PERCENT: f64 = 20.0;

/// What a set-up is.
struct SwapPlace {
    name: String,
    what: String,
    kind: SetUpKind,
    set_up: SetUp,
    /// The place that takes what is over; of zram the root's, whose programs' pages are read again.
    disk: Place,
    is_now: bool,
    risks: Vec<Risk>,
}

/// Whether a place is one to swap on: by its kind, as a survey and `zswap` see it, and by its figures.
fn takes_swap(machine: &Machine, place: &Place, figures: &Figures) -> bool {
    let is_of_kind = match machine.device(&place.name) {
        Some(disk) => rubus_machine::swap_place::takes_swap(disk),
        None => !place.name.contains("card") && !place.what.contains("USB stick"),
    };
    is_of_kind && figures.random_write.value >= TAKES_SWAP
}

pub(super) fn candidates(question: &Question<'_>, places: &[Place]) -> Vec<Candidate> {
    let options = options(question, places);
    let mut candidates: Vec<Candidate> =
        options.iter().map(|option| candidate(question, option)).collect();
    // Of those that are as fast the one that has a place for what is over comes first.
    super::order::rank(&mut candidates, question.purpose, |candidate| {
        let option = options.iter().find(|option| option.name == candidate.name);
        option.map_or(u8::MAX, |option| standing(question.machine, option))
    });
    candidates
}

/// Zswap before a disk that takes it, then what stays in memory, then disks that swapping stops or wears out.
fn standing(machine: &Machine, option: &SwapPlace) -> u8 {
    let is_good = takes_swap(machine, &option.disk, &weigh::figures(&option.disk));
    match (option.kind, is_good) {
        (SetUpKind::Zswap, true) => 0,
        (SetUpKind::Zram, _) => 1,
        (_, true) => 2,
        (_, false) => 3,
    }
}

fn options(question: &Question<'_>, places: &[Place]) -> Vec<SwapPlace> {
    let Some(base) = base(question) else {
        return Vec::new();
    };
    let machine = question.machine;
    let disks = places
        .iter()
        .filter(|place| matches!(place.is, Is::Disk(_)) && !place.name.contains('@'))
        // The network needs memory itself when memory is short.
        .filter(|place| !place.name.starts_with("nbd"));
    let disks: Vec<&Place> = disks.collect();
    let root = disks.iter().find(|place| place.is_now).or(disks.first());
    let Some(root) = root else {
        return Vec::new();
    };
    let now = now(machine, &base, root, &disks);
    let mut options: Vec<SwapPlace> = vec![now];
    let zram = zram(&base, base.memory_bytes);
    if !is_alike(&options[0], &zram) {
        options.push(SwapPlace {
            name: "zram".into(),
            what: format!(
                "zram of {} (as large as the memory)",
                bytes_iec(base.memory_bytes as u64)
            ),
            kind: SetUpKind::Zram,
            set_up: zram,
            disk: (*root).clone(),
            is_now: false,
            risks: vec![Risk::failure("What does not fit has no place: a program is ended.")],
        });
    }
    for place in disks {
        let name = format!("zswap+{}", place.name);
        let mut risks = place.risks.clone();
        // A swap file takes nothing from anybody.
        if place.directory.is_some() {
            risks.retain(|risk| !risk.is_loss);
        }
        let option = SwapPlace {
            what: zswap_before(pool_percent(&base).into(), place),
            kind: SetUpKind::Zswap,
            set_up: SetUp { pool_share: f64::from(pool_percent(&base)) / 100.0, ..base.clone() },
            disk: place.clone(),
            is_now: false,
            risks,
            name,
        };
        let now = &options[0];
        let is_so = now.name == option.name && now.set_up.pool_share >= option.set_up.pool_share;
        if !is_so {
            options.push(option);
        }
    }
    options
}

fn zram(base: &SetUp, size_bytes: f64) -> SetUp {
    SetUp {
        pool_share: size_bytes / base.memory_bytes / base.ratio.value,
        writes_on: false,
        ..base.clone()
    }
}

fn is_alike(now: &SwapPlace, other: &SetUp) -> bool {
    !now.set_up.writes_on && (now.set_up.pool_share - other.pool_share).abs() < 0.02
}

/// Two of one disk are told apart by their pools, which is what one of them would change.
fn zswap_before(pool_percent: f64, place: &Place) -> String {
    format!(
        "zswap {pool_percent:.0} %, then {} (compressed in {pool_percent:.0} % of the memory, then on {})",
        place.name, place.what
    )
}

/// How the machine swaps now.
fn now(machine: &Machine, base: &SetUp, root: &Place, disks: &[&Place]) -> SwapPlace {
    let areas = &machine.swap.areas;
    let first = areas.iter().max_by_key(|area| area.priority);
    let Some(area) = first else {
        return SwapPlace {
            name: "none".into(),
            what: "no swap".into(),
            kind: SetUpKind::None,
            set_up: SetUp { writes_on: false, ..base.clone() },
            disk: root.clone(),
            is_now: true,
            risks: vec![Risk::failure("When memory is full a program is ended.")],
        };
    };
    if area.path.starts_with("/dev/zram") {
        let size = area.size_bytes;
        let name = area.path.trim_start_matches("/dev/");
        return SwapPlace {
            name: name.into(),
            what: format!("zram of {}", bytes_iec(size)),
            kind: SetUpKind::Zram,
            set_up: zram(base, size as f64),
            disk: root.clone(),
            is_now: true,
            risks: vec![Risk::failure("What does not fit has no place: a program is ended.")],
        };
    }
    let device = area.device.text().unwrap_or_default();
    let below = machine.disks_below(device);
    let disk = disks.iter().find(|place| below.iter().any(|disk| disk.name == place.name));
    let disk = disk.unwrap_or(&root);
    let is_zswap = machine.swap.zswap.enabled.get() == Some(true);
    let percent = machine
        .swap
        .zswap
        .parameters
        .iter()
        .find(|setting| setting.name == "max_pool_percent")
        .and_then(|setting| setting.value.text()?.parse::<f64>().ok());
    let pool_share = if is_zswap { percent.unwrap_or(DEFAULT_POOL_PERCENT) / 100.0 } else { 0.0 };
    SwapPlace {
        name: if is_zswap {
            format!("zswap+{}", disk.name)
        } else {
            format!("swap on {}", disk.name)
        },
        what: if is_zswap {
            zswap_before(percent.unwrap_or(DEFAULT_POOL_PERCENT), disk)
        } else {
            format!("swap on {} ({}, without zswap)", disk.name, disk.what)
        },
        kind: if is_zswap { SetUpKind::Zswap } else { SetUpKind::Disk },
        set_up: SetUp { pool_share, ..base.clone() },
        disk: (*disk).clone(),
        is_now: true,
        risks: disk.risks.iter().filter(|risk| !risk.is_loss).cloned().collect(),
    }
}

fn candidate(question: &Question<'_>, option: &SwapPlace) -> Candidate {
    let place = &option.disk;
    let mut figures = weigh::figures(place);
    let page = |what: What, depth: u32| {
        let steps = option.set_up.steps(TIMES, &place.name, &figures, what, depth);
        let operation = Operation { bytes: what.bytes(), depth, bend: Bend::Stations };
        predict(&steps, &operation)
    };
    let (read, write) = (page(What::RandomRead, 1), page(What::RandomWrite, 1));
    let (read_deep, write_deep) = (page(What::RandomRead, 32), page(What::RandomWrite, 32));
    let demands: Vec<Demand> = question
        .purpose
        .visits()
        .iter()
        .map(|visit| {
            let prediction = if visit.what == What::RandomRead { &read } else { &write };
            weigh::demand(visit, prediction)
        })
        .collect();
    let swapping = Swapping {
        beyond_s: option
            .set_up
            .writes_on
            .then(|| option.set_up.swapping(Some(&figures)).beyond_s)
            .flatten(),
        carries: measured(question, option).unwrap_or(option.set_up.carries()),
    };
    let basis = bases(question, option);
    let narrow = if read.iops.value < write.iops.value { &read } else { &write };
    let pipes = weigh::pipes(narrow);
    let busy = option.set_up.page_s.scaled(4000.0 / f64::from(option.set_up.cores));
    let busy = if option.set_up.pool_share > 0.0 { busy } else { Estimate::new(0.02, 0.0, 0.1) };
    (figures.random_read, figures.random_write) = (read.iops, write.iops);
    (figures.random_read_deep, figures.random_write_deep) = (read_deep.iops, write_deep.iops);
    Candidate {
        name: option.name.clone(),
        what: option.what.clone(),
        is_now: option.is_now,
        is_here: place.is_here,
        figures,
        time_s: weigh::sum(demands.iter().map(|demand| demand.seconds)),
        demands,
        pipes,
        cpu_share: Estimate::new(busy.value.min(1.0), busy.low.min(1.0), busy.high.min(1.0)),
        swap: Some(swapping),
        euros: place.euros,
        risks: risk::sentences(&option.risks),
        worst_risk: risk::worst(&option.risks),
        tier: 0,
        is_measured: basis.time_s.is_measured(),
        basis,
        source: place.source.clone(),
    }
}

/// What such a set-up was found to carry on this machine.
fn measured(question: &Question<'_>, option: &SwapPlace) -> Option<Estimate> {
    let is_alike = |found: &&crate::advice::Carried| {
        let shares = found.pool_share.map(|share| share - option.set_up.pool_share);
        let is_same_pool = match option.kind {
            SetUpKind::Zswap => shares.is_some_and(|apart| apart.abs() < 0.02),
            _ => true,
        };
        found.kind == option.kind && is_same_pool && option.is_now
    };
    let found = question.known.carried.iter().find(is_alike)?;
    Some(found.times)
}

/// Pages meet the processor, whose speed is that of its kind, and the disk as far as they do not fit.
fn bases(question: &Question<'_>, option: &SwapPlace) -> Bases {
    let set_up = &option.set_up;
    let memory = if set_up.pool_share > 0.0 {
        page_s(question).map_or(Basis::Assumed, |(_, basis)| basis)
    } else {
        Basis::Measured
    };
    let is_all_in_memory = set_up.pool_share > 0.0 && set_up.hits(TIMES).value >= 1.0;
    let met = |disk: Basis| if is_all_in_memory { memory } else { memory.max(disk) };
    let disk = option.disk.bases;
    let (read, write) = (met(disk.random_read), met(disk.random_write));
    Bases {
        random_read: read,
        random_read_deep: met(disk.random_read_deep),
        random_write: write,
        random_write_deep: met(disk.random_write_deep),
        time_s: read.max(write),
        cpu_share: Basis::Assumed,
        carries: match measured(question, option) {
            Some(_) => Basis::Measured,
            None => ratio_basis(question),
        },
        beyond_s: disk.random_read,
        ..disk
    }
}

/// What does it.
pub(super) fn to_do(question: &Question<'_>, places: &[Place], best: &Candidate) -> ToDo {
    let words = |words: &[&str]| Some(words.iter().map(|word| word.to_string()).collect());
    if best.is_now {
        return match eager(question, places, best) {
            Some(command) => ToDo { command: Some(command), sentence: None },
            None => ToDo::nothing("Nothing: it is set up like that."),
        };
    }
    if best.name == "zram" {
        let memory = question.machine.memory.total_bytes.get().unwrap_or_default();
        let size = format!("size={}M", memory >> 20);
        let swappiness = swappiness(question, places, best);
        let swappiness = swappiness.map(|found| format!("swappiness={}", found.value));
        let mut command = vec!["rubus", "plan", "swap", "to=zram", &size];
        command.extend(swappiness.as_deref());
        return ToDo { command: words(&command), sentence: None };
    }
    let name = best.name.trim_start_matches("zswap+");
    let percent = base(question).map_or(POOL_PERCENT.0 as u32, |base| pool_percent(&base));
    let percent = format!("max-pool-percent={percent}");
    let zswap = format!("rubus plan zswap {percent}");
    let swappiness = swappiness(question, places, best);
    let swappiness = swappiness.map(|found| format!("swappiness={}", found.value));
    let place = places.iter().find(|place| place.name == name);
    let Some(place) = place.filter(|place| place.is_here && !name.contains('@')) else {
        return ToDo::nothing(&format!(
            "When it is there: rubus plan swap to=disk:/dev/NAME (the NAME that `rubus survey` shows), then {zswap}."
        ));
    };
    let is_there = question.machine.swap.areas.iter().any(|area| {
        let below = area.device.text().map(|device| question.machine.disks_below(device));
        below.is_some_and(|disks| disks.iter().any(|disk| disk.name == name))
    });
    if is_there {
        return ToDo { command: words(&["rubus", "plan", "zswap", &percent]), sentence: None };
    }
    let (to, size) = match &place.directory {
        Some(directory) => {
            let to = format!("to=file:{}/swapfile", directory.trim_end_matches('/'));
            (to, file_gib(question, best).map(|gib| format!("size={gib}G")))
        }
        None => (format!("to=disk:/dev/{name}"), None),
    };
    let mut command = vec!["rubus", "plan", "swap", &to];
    command.extend(size.as_deref());
    command.extend(swappiness.as_deref());
    ToDo { command: words(&command), sentence: Some(format!("After it: {zswap}")) }
}

/// The size that a swap file behind zswap needs for what the set-up is said to carry, in GiB, where the recipe's own size is too
/// small. Each page in the pool has its place in the file, too.
fn file_gib(question: &Question<'_>, best: &Candidate) -> Option<u64> {
    /// What the recipe makes at most unless it is told.
    const USUAL_GIB: f64 = 2.0;
    let memory_bytes = question.machine.memory.total_bytes.get()? as f64;
    let outside_the_pool = 1.0 - f64::from(pool_percent(&base(question)?)) / 100.0;
    let swapped = best.swap.as_ref()?.carries.value - outside_the_pool;
    let needed_gib = swapped * memory_bytes / f64::from(1 << 30);
    (needed_gib > USUAL_GIB).then_some(needed_gib.ceil() as u64)
}

/// The plan that leaves swap where it is, in compressed memory, and lets the kernel use it sooner: where the finding
/// `swappiness-for-disks` sends here.
fn eager(question: &Question<'_>, places: &[Place], best: &Candidate) -> Option<Vec<String>> {
    swappiness_for_disks(question.machine)?;
    let area = question.machine.swap.areas.iter().max_by_key(|area| area.priority)?;
    let found = swappiness(question, places, best).filter(|found| found.value > 100)?;
    let size = format!("size={}M", area.size_bytes.div_ceil(1 << 20));
    let swappiness = format!("swappiness={}", found.value);
    let command = ["rubus", "plan", "swap", "to=zram", &size, &swappiness];
    Some(command.map(String::from).to_vec())
}

/// How readily programs' pages should go to swap rather than files out of the cache.
pub(super) struct Swappiness {
    pub value: u32,
    /// Why this value, in words.
    pub why: String,
}

/// By the kernel's rule: with swap that is r times as fast at random access as the files' disk, 200 r / (1 + r) (Linux,
/// Documentation/admin-guide/sysctl/vm.rst), to the nearest ten.
pub(super) fn swappiness(
    question: &Question<'_>,
    places: &[Place],
    best: &Candidate,
) -> Option<Swappiness> {
    let disks = places.iter().filter(|place| matches!(place.is, Is::Disk(_)));
    let root = disks.clone().find(|place| place.is_now);
    let files = root.or(disks.clone().next())?;
    let of_files = weigh::figures(files);
    let both = |figures: &Figures| {
        2.0 / (1.0 / figures.random_read.value + 1.0 / figures.random_write.value)
    };
    let ratio = both(&best.figures) / both(&of_files);
    let value = (20.0 * ratio / (1.0 + ratio)).round() * 10.0;
    let basis = best.basis.time_s;
    let basis = basis.max(files.bases.random_read.max(files.bases.random_write));
    let now = question.machine.vm.iter();
    let mut now = now.filter(|setting| setting.name == "swappiness");
    let now = now.next().and_then(|setting| setting.value.text());
    Some(Swappiness {
        value: value.clamp(10.0, 200.0) as u32,
        why: format!(
            "{}{}: a page from {} is back {} as fast as a file from {} (the kernel's rule 200 r / (1 + r)).",
            basis.figure(&format!("{value:.0}")),
            now.map_or(String::new(), |now| format!(", now {now}")),
            best.name,
            basis.figure(&times(ratio)),
            files.name
        ),
    })
}

/// Why zswap before a disk, or why not.
pub(super) fn why(question: &Question<'_>, places: &[Place], best: &Candidate) -> Option<String> {
    let base = base(question)?;
    let has_disk = places.iter().find(|place| {
        place.is_here
            && matches!(place.is, Is::Disk(_))
            && takes_swap(question.machine, place, &weigh::figures(place))
    });
    match (best.name.as_str(), has_disk) {
        (name, _) if name.starts_with("zswap+") => Some(format!(
            "zram would be as fast while all fits, and end a program when it does not; behind zswap what is not needed goes to {}. \
             A pool of {} % holds {TIMES} times the memory if pages shrink to {}.",
            name.trim_start_matches("zswap+"),
            pool_percent(&base),
            ratio_basis(question).figure(&format!("{:.0} %", 100.0 / base.ratio.value))
        )),
        (name, None) if name.starts_with("zram") => Some(
            "There is no disk here to swap on: small writes stop cards and sticks and wear them out, so all stays in memory."
                .into(),
        ),
        _ => None,
    }
}
