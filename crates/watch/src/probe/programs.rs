//! Which programs make the disks work: a walk over all processes every few seconds.

use crate::{ProgramCounters, ProgramIo, Programs, busiest, parse_process_io};
use rubus_host::ReadError;
use rubus_host::polled_file::Processes;

use super::Pace;

/// So many programs are named at most.
const MAX: usize = 10;

#[derive(Default)]
pub(super) struct Walker {
    processes: Option<Processes>,
    before: Option<Walk>,
    pace: Pace,
    looks: u32,
}

struct Walk {
    at_ns: u64,
    programs: Vec<ProgramCounters>,
}

impl Walker {
    /// Nobody wants to know any more.
    pub(super) fn rest(&mut self) {
        *self = Walker::default();
    }

    /// Walks if it is due, and compares with the walk before. The second walk comes right after the first, so that there
    /// is something to be seen soon.
    pub(super) fn look(&mut self, at_ns: u64) -> Option<Programs> {
        let is_second = self.looks == 1;
        if !self.pace.is_due(at_ns) && !is_second {
            return None;
        }
        self.looks = self.looks.saturating_add(1);
        if self.processes.is_none() {
            self.processes = Processes::open().ok();
        }
        let processes = self.processes.as_mut()?;
        let (walk, hidden) = walk(processes, at_ns, self.before.as_ref());
        let seen = walk.programs.len() as u32;
        let before = self.before.replace(walk);
        let (before, now) = (before?, self.before.as_ref()?);
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return None;
        }
        let moved = busiest(&before.programs, &now.programs, MAX);
        let named = moved.into_iter().map(|(pid, read, written)| ProgramIo {
            pid,
            name: name(processes, pid),
            read_bytes_per_second: read as f64 / seconds,
            written_bytes_per_second: written as f64 / seconds,
        });
        Some(Programs {
            seconds,
            seen,
            hidden,
            busiest: named.collect(),
        })
    }
}

/// All counters in the order of process numbers, and how many processes only root may look at.
fn walk(processes: &mut Processes, at_ns: u64, before: Option<&Walk>) -> (Walk, u32) {
    let mut hidden = 0;
    let mut programs = Vec::with_capacity(before.map_or(128, |walk| walk.programs.len() + 8));
    // A walk that ends in the middle still has something to say.
    let _ = processes.walk("io", |pid, text| match text {
        Ok(text) => programs.extend(parse_process_io(pid, text)),
        Err(ReadError::Denied) => hidden += 1,
        Err(_) => {}
    });
    (Walk { at_ns, programs }, hidden)
}

fn name(processes: &mut Processes, pid: u32) -> String {
    match processes.file_of(pid, "comm") {
        Ok(text) => String::from_utf8_lossy(text).trim_end().to_string(),
        Err(_) => "(ended)".to_string(),
    }
}
