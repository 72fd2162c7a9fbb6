//! `rubus bench memory`: how fast memory is, and how much more than itself it carries.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, anyhow, bail, ensure};
use rubus_memory::group::{self, Place};
use rubus_memory::in_memory;
use rubus_memory::run::{bandwidth, chase};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::bounds;
use rubus_vocabulary::memory::{LeftOut, Memory, Part, Pressure, SUITE, SetUpKind};
use rubus_vocabulary::result::{Figures, Run};
use rubus_vocabulary::units::bytes_iec;

use crate::args::{BenchMemory, General, Keeping};
use crate::exit::Exit;
use crate::parts::{self, PartsRun};
use crate::progress::Line;
use rubus_memory::pressure::course::{self, SearchPlan, Which};
use rubus_memory::pressure::fence::Scope;
use rubus_memory::pressure::set_up::{self, SetUpInputs};
use rubus_memory::pressure::{keeper, load_process};

/// What a thread goes through in order: larger than the caches of all boards that are known here, where there is so much.
const BUFFER: u64 = 64 << 20;
/// The largest that is walked through load after load.
const WALK: u64 = 128 << 20;
/// No part takes more than this share of what programs can have.
const SHARE: u64 = 4;
/// The least group that means anything.
const MIN_GROUP: u64 = 16 << 20;

/// Measures, keeps and shows.
pub fn run(general: &General, args: &BenchMemory) -> anyhow::Result<Exit> {
    if args.memory_load || args.keeper {
        let is_fine = if args.memory_load {
            load_process::serve()
        } else {
            keeper::serve()
        };
        return Ok(if is_fine {
            Exit::Fine
        } else {
            Exit::AnswerIsNo
        });
    }
    let keeping = Keeping::without_page(&args.kept);
    let frame = PartsRun::begin(general, args.json.as_deref(), &keeping, "the memory")?;
    let (machine, cancel, line) = (&frame.machine, &*frame.cancel, &frame.line);
    let mut memory = Memory {
        cores: std::thread::available_parallelism().map_or(1, usize::from) as u32,
        ..Memory::default()
    };
    let wanted = args.wanted_parts();
    if args.compare && wanted.contains(&Part::Pressure) {
        must_be_on_a_disk(&args.directory, machine)?;
    }
    if wanted.contains(&Part::Bandwidth) {
        line.says("reading, writing and copying in order");
        in_order(&mut memory, machine, cancel);
    }
    if wanted.contains(&Part::Latency) {
        line.says("one load after the other");
        let most = at_most(machine, WALK);
        match chase(most, args.seed, cancel) {
            Ok(points) => memory.chase = points,
            Err(error) => memory.left_out.push(LeftOut {
                part: Part::Latency,
                what: format!("cannot allocate {}: {error}", bytes_iec(most)),
            }),
        }
    }
    if wanted.contains(&Part::Pressure) {
        let all = pressure(general, args, machine, cancel, line, &mut memory.left_out);
        let is_alone = wanted.len() == 1;
        let all = parts::taken(all, Part::Pressure, is_alone, &mut memory.left_out)?;
        memory.pressure = all.unwrap_or_default();
    }
    let mut doubts = Vec::new();
    if frame.is_interrupted() {
        doubts.push(Doubt::Interrupted);
    }
    doubts.extend(frame.power_doubts());
    frame.end(SUITE, "memory", Figures::Memory(memory), doubts, |run| {
        complete(run, args)
    })
}

/// Swap in a directory that is itself kept in memory makes no room, and can stop the kernel for good.
fn must_be_on_a_disk(directory: &Path, machine: &Machine) -> anyhow::Result<()> {
    let real = std::fs::canonicalize(directory).with_context(|| {
        format!(
            "cannot find the directory {} of --compare",
            directory.display()
        )
    })?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match in_memory::in_memory(machine, &mounts, &real.to_string_lossy()) {
        None => Ok(()),
        Some(why) => bail!(
            "{} is in memory ({why}): swap there would make no room, and the machine could stop for good once it is to \
             swap that out, too; name a directory on a disk with --directory, or leave --compare away",
            directory.display()
        ),
    }
}

/// So many bytes, or as many as can be had without making the machine swap.
fn at_most(machine: &Machine, bytes: u64) -> u64 {
    let available = machine
        .memory
        .available_bytes
        .get()
        .unwrap_or(bytes * SHARE);
    bytes.min(available / SHARE).max(1 << 20)
}

fn in_order(memory: &mut Memory, machine: &Machine, cancel: &AtomicBool) {
    let cores = memory.cores;
    let threads: &[(u32, bool)] = match cores {
        1 => &[(1, false)],
        _ => &[(1, false), (cores, true)],
    };
    for &(threads, all_cores) in threads {
        let each = at_most(machine, BUFFER * u64::from(threads)) / u64::from(threads);
        match bandwidth(threads, all_cores, each.max(1 << 20), cancel) {
            Ok(rows) => memory.bandwidth.extend(rows),
            Err(error) => memory.left_out.push(LeftOut {
                part: Part::Bandwidth,
                what: format!(
                    "cannot allocate {threads} times {}: {error}",
                    bytes_iec(each)
                ),
            }),
        }
    }
}

/// All set-ups that are wanted, one after the other. One that cannot be had is left out.
fn pressure(
    general: &General,
    args: &BenchMemory,
    machine: &Machine,
    cancel: &AtomicBool,
    line: &Line,
    left_out: &mut Vec<LeftOut>,
) -> anyhow::Result<Vec<Pressure>> {
    let scope = scope_for(args, machine)?;
    let set_ups = wanted_set_ups(args, machine);
    let memory_bytes = match &scope {
        Scope::Group(place) => group_memory(args, machine, place, &set_ups)?,
        Scope::Machine(allowance) => allowance.memory_bytes,
    };
    if !general.quiet {
        eprintln!(
            "{}",
            announcement(args, &scope, memory_bytes, &set_ups, machine)
        );
    }
    let course = SearchPlan {
        scope: &scope,
        memory_bytes,
        content_percent: args.content,
        limit_ns: args.limit,
        budget_bytes: args.budget,
        seconds: args.seconds,
        most: args.most,
        seed: args.seed,
        cancel,
    };
    let inputs = SetUpInputs {
        machine,
        directory: &args.directory,
        swap_bytes: (memory_bytes * 2).next_multiple_of(1 << 20),
        cancel,
    };
    let mut all = Vec::new();
    for which in set_ups {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        match course::run(which, &course, &inputs, &mut |what| line.says(what)) {
            Ok(pressure) => all.push(pressure),
            Err(error) => left_out.push(LeftOut {
                part: Part::Pressure,
                what: format!("{}: {error:#}", called(which)),
            }),
        }
    }
    ensure!(
        !all.is_empty() || cancel.load(Ordering::Relaxed),
        "{}",
        left_out
            .pop()
            .map_or("nothing was measured".into(), |left| left.what)
    );
    Ok(all)
}

fn called(which: Which) -> &'static str {
    match which {
        Which::Own => "own swap",
        Which::Temporary(kind) => kind.name(),
    }
}

/// The machine's own, and those of `--compare` that it is not itself.
fn wanted_set_ups(args: &BenchMemory, machine: &Machine) -> Vec<Which> {
    let own = set_up::own(machine).set_up.kind;
    let mut wanted = vec![Which::Own];
    if args.compare {
        use SetUpKind::{Disk, None, Zram, Zswap};
        for kind in [None, Disk, Zram, Zswap] {
            // Having no swap is the same whoever arranges it.
            if kind != None || own != None {
                wanted.push(Which::Temporary(kind));
            }
        }
    }
    wanted
}

/// A group where one can be made; the whole machine only where none can be and the user wants it.
fn scope_for(args: &BenchMemory, machine: &Machine) -> anyhow::Result<Scope> {
    let grouped = place().and_then(|place| course::try_group(&place).map(|_| place));
    match (grouped, args.whole_machine) {
        (Ok(place), false) => Ok(Scope::Group(place)),
        (Ok(_), true) => bail!(
            "memory can be limited for a measurement here, so the rest of the machine need not suffer: leave \
             --whole-machine away"
        ),
        (Err(why), false) => Err(anyhow!(
            "{why:#}. Or have the memory of the whole machine taken, which makes everything on it slow meanwhile: sudo \
             rubus bench memory pressure --whole-machine"
        )),
        (Err(why), true) => {
            ensure!(
                rustix::process::geteuid().is_root(),
                "{why}; and only root may take the memory of the whole machine"
            );
            bounds::allowance(machine)
                .map(Scope::Machine)
                .map_err(|why| anyhow!("the memory of the whole machine cannot be taken: {why}"))
        }
    }
}

/// Where a group can be made.
fn place() -> anyhow::Result<Place> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    group::place(
        &read("/proc/cgroups"),
        &read("/proc/self/cgroup"),
        &read("/proc/self/mountinfo"),
        rustix::process::geteuid().is_root(),
        |group| {
            let list = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            list.trim() == std::process::id().to_string()
        },
    )
    .map_err(|why| anyhow!("memory cannot be limited for a measurement: {why}"))
}

fn group_memory(
    args: &BenchMemory,
    machine: &Machine,
    place: &Place,
    set_ups: &[Which],
) -> anyhow::Result<u64> {
    let has_zswap = set_ups.iter().any(|which| match which {
        Which::Own => set_up::own(machine).set_up.kind == SetUpKind::Zswap,
        Which::Temporary(kind) => *kind == SetUpKind::Zswap,
    });
    let usual = course::usual_memory(machine, Some(place.version), has_zswap);
    let wanted = args.memory.or(usual);
    let memory = wanted
        .ok_or_else(|| anyhow!("cannot tell how much memory this machine has; use --memory"))?;
    ensure!(
        memory >= MIN_GROUP,
        "--memory {} is too little for a program to live in: at least {}",
        bytes_iec(memory),
        bytes_iec(MIN_GROUP)
    );
    let available = machine.memory.available_bytes.get().unwrap_or(u64::MAX);
    // What is in the pool or in zram may not be counted to the group, but is memory all the same.
    ensure!(
        memory <= available / 2,
        "a group of {} is more than half of the {} that are available; give less with --memory, or end some programs",
        bytes_iec(memory),
        bytes_iec(available)
    );
    Ok(memory)
}

/// What is going to be done to the machine, before it is.
fn announcement(
    args: &BenchMemory,
    scope: &Scope,
    memory_bytes: u64,
    set_ups: &[Which],
    machine: &Machine,
) -> String {
    let (most, memory) = (args.most, bytes_iec(memory_bytes));
    let mut text = match scope {
        Scope::Group(_) => {
            format!("A program takes up to {most:.1} times the {memory} of a control group.")
        }
        Scope::Machine(allowance) => format!(
            "A program takes up to {most:.1} times the {memory} that programs can have, of the whole machine; {} are left \
             to the others. Everything is slow meanwhile. It is ended before memory and swap are used up, when the \
             machine does not answer, and after {:.0} minutes; if memory should be out all the same, the kernel ends it \
             first. Ctrl-C ends it at any time.",
            bytes_iec(allowance.reserve_bytes),
            bounds::MAX_S / 60.0
        ),
    };
    let own = set_up::own(machine);
    let writes = own.writes_to_disk();
    let disks = u64::from(writes)
        + set_ups
            .iter()
            .filter(|which| matches!(which, Which::Temporary(SetUpKind::Disk | SetUpKind::Zswap)))
            .count() as u64;
    if disks > 0 {
        text.push_str(&format!(
            " Writes {} at most to swap on disks ({} under each of {disks} set-up{}).",
            bytes_iec(args.budget.saturating_mul(disks)),
            bytes_iec(args.budget),
            if disks == 1 { "" } else { "s" }
        ));
    }
    if set_ups.len() > 1 {
        text.push_str(&format!(
            " Makes swap in {} and in memory, one after the other, and takes each away again, also if it is killed.",
            args.directory.display()
        ));
    }
    text
}

/// What a run of memory says of itself besides its figures.
fn complete(mut run: Run, args: &BenchMemory) -> Run {
    let pressure = run.memory().map_or(&[][..], |memory| &memory.pressure);
    let bytes_written = pressure.iter().map(|one| one.written_bytes).sum();
    let first = pressure.first();
    let region_bytes = first.map_or(0, |first| first.group.memory_bytes);
    run.bytes_written = bytes_written;
    run.target.region_bytes = region_bytes;
    run.target.content = format!("compressible to {} %", args.content);
    run.seed = args.seed;
    run
}
