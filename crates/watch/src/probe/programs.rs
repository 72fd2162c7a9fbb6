//! Which programs make the disks work: a walk over all processes every few seconds.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::INIT;
use crate::{
    Ledger, Moved, ProgramCounters, ProgramIo, Programs, Written, busiest, parse_parent,
    parse_process_io, parse_unit,
};
use rubus_host::files::polled_file::Processes;
use rubus_host::process::ended_tasks::EndedTasks;
use rubus_host::{Files, ReadError};

use super::groups::Groups;
use super::{Pace, Wanted};
use crate::writers::KERNEL;

/// Maximum number of programs in a sample.
const MAX: usize = 10;
/// Maximum number of writers whose files are looked at, which takes some system calls for each.
const MAX_PLACED: usize = 5;
/// Maximum number of descriptors of each, and the least that it must have written.
const MAX_DESCRIPTORS: usize = 64;
const MIN_PLACED_BYTES: u64 = 64 << 10;
/// Maximum number of directories of each.
const MAX_PLACES: usize = 4;

#[derive(Default)]
pub(super) struct Walker {
    processes: Option<Processes>,
    /// What the kernel tells of tasks that end, where it does and writers are wanted.
    ended: Option<EndedTasks>,
    ledger: Ledger,
    groups: Groups,
    last_ns: Option<u64>,
    last_count: usize,
    pace: Pace,
    looks: u32,
}

impl Walker {
    /// Programs are no longer wanted: forgets everything.
    pub(super) fn rest(&mut self) {
        *self = Walker::default();
    }

    /// The next walk is due now.
    pub(super) fn hurry(&mut self) {
        self.pace = Pace::default();
    }

    /// Walks if it is due, and compares with the walk before. The second walk comes right after the first, so that there
    /// is something to be seen soon.
    pub(super) fn look(
        &mut self,
        files: &dyn Files,
        at_ns: u64,
        wanted: Wanted,
    ) -> Option<Programs> {
        let is_second = self.looks == 1;
        if !self.pace.is_due(at_ns) && !is_second {
            return None;
        }
        self.looks = self.looks.saturating_add(1);
        if self.processes.is_none() {
            self.processes = Processes::open().ok();
        }
        if self.looks == 1 && wanted == Wanted::Writers {
            self.ended = EndedTasks::listen(files).ok();
        }
        let processes = self.processes.as_mut()?;
        // Before the walk: a task that has been reported is gone by then, or is still to be waited for.
        let ended = self.ended.as_mut().map(EndedTasks::since_last_time);
        let (programs, hidden) = walk(processes, self.last_count);
        self.last_count = programs.len();
        let ended = ended.unwrap_or_default();
        let moved = self
            .ledger
            .walk(&programs, &ended, |pid| parse_parent(processes.file_of(pid, "stat").ok()?));
        let unit_disks = match wanted {
            Wanted::Writers => self.groups.look(files),
            _ => None,
        };
        let before_ns = self.last_ns.replace(at_ns)?;
        let seconds = at_ns.saturating_sub(before_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return None;
        }
        let writers = (wanted == Wanted::Writers).then(|| writers(processes, &self.ledger, &moved));
        let named = busiest(&moved, MAX).into_iter().map(|program| ProgramIo {
            pid: program.pid,
            name: name_of(processes, program),
            read_bytes_per_second: program.traffic.read_bytes as f64 / seconds,
            written_bytes_per_second: program.traffic.written_bytes as f64 / seconds,
        });
        Some(Programs {
            seconds,
            seen: programs.len() as u32,
            hidden,
            busiest: named.collect(),
            writers,
            unit_disks,
        })
    }
}

/// All counters in the order of process numbers, and how many processes only root may look at.
fn walk(processes: &mut Processes, about: usize) -> (Vec<ProgramCounters>, u32) {
    let mut hidden = 0;
    let mut programs = Vec::with_capacity(about.max(120) + 8);
    // A walk that ends in the middle still has something to say.
    let _ = processes.walk("io", |pid, text| match text {
        Ok(text) => programs.extend(parse_process_io(pid, text)),
        Err(ReadError::Denied) => hidden += 1,
        Err(_) => {}
    });
    (programs, hidden)
}

fn name(processes: &mut Processes, pid: u32) -> String {
    match processes.file_of(pid, "comm") {
        Ok(text) => String::from_utf8_lossy(text).trim_end().to_string(),
        Err(_) => "(ended)".to_string(),
    }
}

fn name_of(processes: &mut Processes, moved: &Moved) -> String {
    match &moved.ended {
        Some((name, _)) => name.clone(),
        None => name(processes, moved.pid),
    }
}

/// The unit of a process; that of one that has ended is its parent's, unless that is the one that starts all units.
fn unit_of(processes: &mut Processes, ledger: &Ledger, moved: &Moved) -> String {
    let of = match &moved.ended {
        Some((_, INIT)) => return String::new(),
        Some((_, parent)) => *parent,
        None => moved.pid,
    };
    if ledger.is_kernel_thread(of) {
        return KERNEL.to_string();
    }
    parse_unit(processes.file_of(of, "cgroup").unwrap_or_default())
}

/// All that wrote or deleted, by name and unit, with the places of those that wrote most.
fn writers(processes: &mut Processes, ledger: &Ledger, moved: &[Moved]) -> Vec<Written> {
    let mut all: Vec<&Moved> = moved
        .iter()
        .filter(|program| program.traffic.written_bytes + program.traffic.cancelled_bytes > 0)
        .collect();
    all.sort_by_key(|program| std::cmp::Reverse(program.traffic.written_bytes));
    let mut by_name: BTreeMap<(String, String), Written> = BTreeMap::new();
    for (rank, program) in all.into_iter().enumerate() {
        let (pid, traffic) = (program.pid, program.traffic);
        let unit = unit_of(processes, ledger, program);
        let has_places = program.ended.is_none()
            && unit != KERNEL
            && rank < MAX_PLACED
            && traffic.written_bytes >= MIN_PLACED_BYTES;
        let program = name_of(processes, program);
        let entry = by_name.entry((unit.clone(), program.clone())).or_insert_with(|| Written {
            program,
            unit,
            ..Written::default()
        });
        entry.written_bytes = entry.written_bytes.saturating_add(traffic.written_bytes);
        entry.cancelled_bytes = entry.cancelled_bytes.saturating_add(traffic.cancelled_bytes);
        if has_places {
            entry.places.extend(places(processes, pid));
        }
    }
    let mut all: Vec<Written> = by_name.into_values().collect();
    for written in &mut all {
        written.places = first_of_each(std::mem::take(&mut written.places));
    }
    all
}

/// Directories of the files that a process has open for writing, the likeliest first.
fn places(processes: &mut Processes, pid: u32) -> Vec<String> {
    let stat = processes.file_of(pid, "stat").ok();
    let parent = stat.and_then(parse_parent);
    let files = processes.written_files(pid, parent, MAX_DESCRIPTORS);
    let files = files.unwrap_or_default().into_iter();
    let directories = files.filter_map(|file| {
        let (directory, _) = file.rsplit_once('/')?;
        Some(match directory {
            "" => "/".to_string(),
            _ => directory.to_string(),
        })
    });
    first_of_each(directories.collect())
}

/// Each place once, where it came first, and no more of them than are kept.
fn first_of_each(places: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let places = places.into_iter().filter(|place| seen.insert(place.clone()));
    places.take(MAX_PLACES).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rubus_host::Live;

    use super::*;

    /// A walk after the one that is compared with.
    const LATER_NS: u64 = 7_000_000_000;

    #[test]
    #[allow(clippy::disallowed_methods)] // It is the one that writes.
    fn what_this_process_writes_is_told_with_its_place() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().canonicalize().unwrap();
        let mut walker = Walker::default();
        assert_eq!(walker.look(&Live, 0, Wanted::Writers), None);
        let mut file = std::fs::File::create(path.join("file")).unwrap();
        file.write_all(&[7; 3 << 20]).unwrap();
        let programs = walker.look(&Live, LATER_NS, Wanted::Writers).unwrap();
        let writers = programs.writers.unwrap();
        let own = name(&mut Processes::open().unwrap(), std::process::id());
        let own = writers.iter().find(|w| w.program == own);
        let own = own.expect("this process wrote");
        assert!(own.written_bytes >= 3 << 20, "{own:?}");
        assert!(own.places.contains(&path.display().to_string()), "{own:?}");
        let programs = walker.look(&Live, 2 * LATER_NS, Wanted::Programs).unwrap();
        assert_eq!(programs.writers, None);
    }
}
