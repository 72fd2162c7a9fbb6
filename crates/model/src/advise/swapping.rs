//! Set-ups of swap: what there is now, zram, and zswap before each disk.

use rubus_core::advice::{Candidate, Demand, Figures, Swapping, What};
use rubus_core::estimate::Estimate;
use rubus_core::machine::Machine;
use rubus_core::units::bytes_iec;

use super::Question;
use super::inventory::{Is, LOST, Place};
use super::weigh;
use super::words::ToDo;
use crate::predict::{Bend, Operation, Prediction, predict};
use crate::stages::compression;
use crate::stages::swap::{SetUp, usual_ratio};

/// The working set by which set-ups are ranked, as times the memory.
pub(super) const TIMES: f64 = 1.5;
/// The pool that is proposed, as percent of the memory; the recipe's default.
const POOL_PERCENT: u32 = 20;

/// What a set-up is.
struct SwapPlace {
    name: String,
    what: String,
    set_up: SetUp,
    /// The place that takes what is over; of zram the root's, whose programs' pages are read again.
    disk: Place,
    is_now: bool,
    risks: Vec<String>,
}

/// Memory, pages by pages compressed, and what a page costs.
fn base(question: &Question<'_>) -> Option<SetUp> {
    let machine = question.machine;
    let model = machine.cpu.model.text().unwrap_or_default();
    let (methods, _) = compression::usual(model);
    let method = methods.iter().find(|method| method.name == "zstd:1")?;
    let page = |rate: f64| 4096.0 / rate;
    let near = |ratio: f64| Estimate::new(ratio, ratio * 0.85, ratio * 1.15);
    Some(SetUp {
        memory_bytes: machine.memory.total_bytes.get()? as f64,
        pool_share: 0.0,
        writes_on: true,
        ratio: question.known.page_ratio.map_or(usual_ratio(), near),
        // Half of the pages go in and half come out; expanding takes less than half as long.
        page_s: Estimate::new(
            page(method.compress.value) * 0.75,
            page(method.compress.high) * 0.5,
            page(method.compress.low),
        ),
        cores: machine.cpu.cores.get().unwrap_or(1).max(1),
    })
}

/// With zswap before a disk of these figures.
pub(super) fn on(question: &Question<'_>, figures: &Figures) -> Option<Swapping> {
    let set_up = SetUp {
        pool_share: f64::from(POOL_PERCENT) / 100.0,
        ..base(question)?
    };
    Some(set_up.swapping(Some(figures)))
}

pub(super) fn candidates(question: &Question<'_>, places: &[Place]) -> Vec<Candidate> {
    options(question, places)
        .iter()
        .map(|option| candidate(question, option))
        .collect()
}

fn options(question: &Question<'_>, places: &[Place]) -> Vec<SwapPlace> {
    let Some(base) = base(question) else {
        return Vec::new();
    };
    let machine = question.machine;
    let disks = places
        .iter()
        .filter(|place| matches!(place.is, Is::Disk(_)) && !place.name.contains('@'));
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
                "zram as large as the memory, {}",
                bytes_iec(base.memory_bytes as u64)
            ),
            set_up: zram,
            disk: (*root).clone(),
            is_now: false,
            risks: vec!["What does not fit has no place: a program is ended.".into()],
        });
    }
    for place in disks {
        let name = format!("zswap+{}", place.name);
        let mut risks = place.risks.clone();
        // A swap file takes nothing from anybody.
        if place.directory.is_some() {
            risks.retain(|risk| !risk.starts_with(LOST));
        }
        let option = SwapPlace {
            what: format!("zswap before a swap on {}", place.what),
            set_up: SetUp {
                pool_share: f64::from(POOL_PERCENT) / 100.0,
                ..base.clone()
            },
            disk: place.clone(),
            is_now: false,
            risks,
            name,
        };
        if options[0].name != option.name {
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

/// How the machine swaps now.
fn now(machine: &Machine, base: &SetUp, root: &Place, disks: &[&Place]) -> SwapPlace {
    let areas = &machine.swap.areas;
    let first = areas.iter().max_by_key(|area| area.priority);
    let Some(area) = first else {
        return SwapPlace {
            name: "none".into(),
            what: "no swap".into(),
            set_up: SetUp {
                writes_on: false,
                ..base.clone()
            },
            disk: root.clone(),
            is_now: true,
            risks: vec!["When memory is full a program is ended.".into()],
        };
    };
    if area.path.starts_with("/dev/zram") {
        let size = area.size_bytes;
        let name = area.path.trim_start_matches("/dev/");
        return SwapPlace {
            name: name.into(),
            what: format!("zram of {}", bytes_iec(size)),
            set_up: zram(base, size as f64),
            disk: root.clone(),
            is_now: true,
            risks: vec!["What does not fit has no place: a program is ended.".into()],
        };
    }
    let device = area.device.text().unwrap_or_default();
    let below = machine.disks_below(device);
    let disk = disks
        .iter()
        .find(|place| below.iter().any(|disk| disk.name == place.name));
    let disk = disk.unwrap_or(&root);
    let is_zswap = machine.swap.zswap.enabled.get() == Some(true);
    let percent = machine
        .swap
        .zswap
        .parameters
        .iter()
        .find(|setting| setting.name == "max_pool_percent")
        .and_then(|setting| setting.value.text()?.parse::<f64>().ok());
    let pool_share = match is_zswap {
        true => percent.unwrap_or(20.0) / 100.0,
        false => 0.0,
    };
    SwapPlace {
        name: match is_zswap {
            true => format!("zswap+{}", disk.name),
            false => format!("swap on {}", disk.name),
        },
        what: match is_zswap {
            true => format!("zswap before a swap on {}", disk.what),
            false => format!("swap on {} without zswap", disk.what),
        },
        set_up: SetUp {
            pool_share,
            ..base.clone()
        },
        disk: (*disk).clone(),
        is_now: true,
        risks: disk
            .risks
            .iter()
            .filter(|risk| !risk.starts_with(LOST))
            .cloned()
            .collect(),
    }
}

fn candidate(question: &Question<'_>, option: &SwapPlace) -> Candidate {
    let place = &option.disk;
    let mut figures = weigh::figures(place);
    let page = |what: What, depth: u32| {
        let steps = option
            .set_up
            .steps(TIMES, &place.name, &figures, what, depth);
        let operation = Operation {
            bytes: what.bytes(),
            depth,
            bend: Bend::unknown(),
        };
        predict(&steps, &operation)
    };
    let (read, write) = (page(What::RandomRead, 1), page(What::RandomWrite, 1));
    let (read_deep, write_deep) = (page(What::RandomRead, 32), page(What::RandomWrite, 32));
    let demands: Vec<Demand> = question
        .purpose
        .visits()
        .iter()
        .map(|visit| {
            let prediction = if visit.what == What::RandomRead {
                &read
            } else {
                &write
            };
            Demand {
                what: visit.what,
                seconds: over(visit.count, prediction),
            }
        })
        .collect();
    let swapping = Swapping {
        beyond_s: option
            .set_up
            .writes_on
            .then(|| option.set_up.swapping(Some(&figures)).beyond_s)
            .flatten(),
        carries: option.set_up.carries(),
    };
    let narrow = match read.iops.value < write.iops.value {
        true => &read,
        false => &write,
    };
    let pipes = weigh::pipes(narrow);
    let busy = option
        .set_up
        .page_s
        .scaled(4000.0 / f64::from(option.set_up.cores));
    let busy = match option.set_up.pool_share > 0.0 {
        true => busy,
        false => Estimate::new(0.02, 0.0, 0.1),
    };
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
        risks: option.risks.clone(),
        is_measured: place.is_measured && question.known.page_ratio.is_some(),
        source: place.source.clone(),
    }
}

fn over(count: f64, prediction: &Prediction) -> Estimate {
    let rate = prediction.iops;
    let seconds = |seen: f64| count / seen.max(rate.value / 50.0).max(f64::MIN_POSITIVE);
    Estimate::new(seconds(rate.value), seconds(rate.high), seconds(rate.low))
}

/// What does it.
pub(super) fn to_do(question: &Question<'_>, places: &[Place], best: &Candidate) -> ToDo {
    let words = |words: &[&str]| Some(words.iter().map(|word| word.to_string()).collect());
    if best.is_now {
        return ToDo::nothing("Nothing: it is set up like that.");
    }
    if best.name == "zram" {
        let memory = question
            .machine
            .memory
            .total_bytes
            .get()
            .unwrap_or_default();
        let size = format!("size={}M", memory >> 20);
        return ToDo {
            command: words(&["rubus", "plan", "swap", "to=zram", &size]),
            sentence: None,
        };
    }
    let name = best.name.trim_start_matches("zswap+");
    let zswap = format!("rubus plan zswap max-pool-percent={POOL_PERCENT}");
    let place = places.iter().find(|place| place.name == name);
    let Some(place) = place.filter(|place| place.is_here && !name.contains('@')) else {
        return ToDo::nothing(&format!(
            "When it is there: rubus plan swap to=disk:/dev/NAME (the NAME that `rubus survey` shows), then {zswap}."
        ));
    };
    let is_there = question.machine.swap.areas.iter().any(|area| {
        let below = area
            .device
            .text()
            .map(|device| question.machine.disks_below(device));
        below.is_some_and(|disks| disks.iter().any(|disk| disk.name == name))
    });
    if is_there {
        return ToDo {
            command: words(&[
                "rubus",
                "plan",
                "zswap",
                &format!("max-pool-percent={POOL_PERCENT}"),
            ]),
            sentence: None,
        };
    }
    let to = match &place.directory {
        Some(directory) => format!("to=file:{}/swapfile", directory.trim_end_matches('/')),
        None => format!("to=disk:/dev/{name}"),
    };
    ToDo {
        command: words(&["rubus", "plan", "swap", &to]),
        sentence: Some(format!("Then {zswap}, which keeps most pages in memory.")),
    }
}
