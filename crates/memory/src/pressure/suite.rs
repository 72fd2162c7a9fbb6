//! All searches that are asked for: which set-ups, where there is room for them, and what is said before.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::bounds;
use anyhow::{Context, anyhow, bail, ensure};
use rubus_host::files::own_files;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::memory::{LeftOut, Part, Pressure, SetUpKind};
use rubus_vocabulary::units::bytes_iec;

use super::course::{self, SearchPlan, Which};
use super::fence::Scope;
use super::set_up::{self, SetUpInputs};
use crate::group::{self, Place};
use crate::in_memory;

/// The least group that means anything.
const MIN_GROUP: u64 = 16 << 20;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct PressureOptions {
    /// Other set-ups besides the machine's own.
    pub compare: bool,
    /// No group: the memory of the whole machine.
    pub whole_machine: bool,
    /// On the disk that stands for the swap disk.
    pub directory: PathBuf,
    /// A slower touch is slow.
    pub limit_ns: u64,
    /// Memory of the group.
    pub memory_bytes: Option<u64>,
    /// Percent to which pages compress.
    pub content_percent: u32,
    /// The most that is written to swap on disks under each set-up.
    pub budget_bytes: u64,
    /// Seconds of a phase.
    pub seconds: f64,
    /// The largest working set over memory.
    pub most: f64,
    /// Of everything random.
    pub seed: u64,
}

/// What the searches need.
pub struct PressureSuite<'a> {
    pub options: &'a PressureOptions,
    /// As surveyed before.
    pub machine: &'a Machine,
    /// The user wants no more.
    pub cancel: &'a AtomicBool,
    /// Says what is going to be done to the machine.
    pub announce: &'a dyn Fn(&str),
    /// Says what is measured now.
    pub says: &'a dyn Fn(&str),
}

impl PressureSuite<'_> {
    /// Runs all requested set-ups, one after the other. One that is not available is left out.
    ///
    /// # Errors
    /// When memory cannot be limited here, or nothing could be measured.
    pub fn run(&self, left_out: &mut Vec<LeftOut>) -> anyhow::Result<Vec<Pressure>> {
        let (args, machine, cancel) = (self.options, self.machine, self.cancel);
        let scope = scope_for(args, machine)?;
        let set_ups = wanted_set_ups(args, machine);
        let memory_bytes = match &scope {
            Scope::Group(place) => group_memory(args, machine, place, &set_ups)?,
            Scope::Machine(allowance) => allowance.memory_bytes,
        };
        (self.announce)(&announcement(args, &scope, memory_bytes, &set_ups, machine));
        let course = SearchPlan {
            scope: &scope,
            memory_bytes,
            content_percent: args.content_percent,
            limit_ns: args.limit_ns,
            budget_bytes: args.budget_bytes,
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
            match course::run(which, &course, &inputs, &mut |what| (self.says)(what)) {
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
            left_out.pop().map_or("nothing was measured".into(), |left| left.what)
        );
        Ok(all)
    }
}

fn called(which: Which) -> &'static str {
    match which {
        Which::Own => "own swap",
        Which::Temporary(kind) => kind.name(),
    }
}

/// The machine's own, and those of `--compare` that it is not itself.
fn wanted_set_ups(args: &PressureOptions, machine: &Machine) -> Vec<Which> {
    let own = set_up::own(machine).set_up.kind;
    let mut wanted = vec![Which::Own];
    if args.compare {
        use SetUpKind::{Disk, None, Zram, Zswap};
        for kind in [None, Disk, Zram, Zswap] {
            // Having no swap is the same set-up, whether the machine or the measurement arranges
            // it.
            if kind != None || own != None {
                wanted.push(Which::Temporary(kind));
            }
        }
    }
    wanted
}

/// A group where one can be made; the whole machine only where none can be and the user wants it.
fn scope_for(args: &PressureOptions, machine: &Machine) -> anyhow::Result<Scope> {
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
    let read = |path: &str| own_files::text(Path::new(path)).unwrap_or_default();
    group::place(
        &read("/proc/cgroups"),
        &read("/proc/self/cgroup"),
        &read("/proc/self/mountinfo"),
        rustix::process::geteuid().is_root(),
        |group| {
            let list = own_files::text(&group.join("cgroup.procs")).unwrap_or_default();
            list.trim() == std::process::id().to_string()
        },
    )
    .map_err(|why| anyhow!("memory cannot be limited for a measurement: {why}"))
}

fn group_memory(
    args: &PressureOptions,
    machine: &Machine,
    place: &Place,
    set_ups: &[Which],
) -> anyhow::Result<u64> {
    let has_zswap = set_ups.iter().any(|which| match which {
        Which::Own => set_up::own(machine).set_up.kind == SetUpKind::Zswap,
        Which::Temporary(kind) => *kind == SetUpKind::Zswap,
    });
    let usual = course::usual_memory(machine, Some(place.version), has_zswap);
    let wanted = args.memory_bytes.or(usual);
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
    args: &PressureOptions,
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
            bytes_iec(args.budget_bytes.saturating_mul(disks)),
            bytes_iec(args.budget_bytes),
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

/// Swap in a directory that is itself kept in memory makes no room, and can stop the kernel for good.
///
/// # Errors
/// When it is, with what to do.
pub fn must_be_on_a_disk(directory: &Path, machine: &Machine) -> anyhow::Result<()> {
    let real = own_files::real_path(directory).with_context(|| {
        format!("cannot find the directory {} of --compare", directory.display())
    })?;
    let mounts = own_files::text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    match in_memory::in_memory(machine, &mounts, &real.to_string_lossy()) {
        None => Ok(()),
        Some(why) => bail!(
            "{} is in memory ({why}): swap there would make no room, and the machine could stop for good once it is to \
             swap that out, too; name a directory on a disk with --directory, or leave --compare away",
            directory.display()
        ),
    }
}
