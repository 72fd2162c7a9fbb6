//! Sampling a machine once in every interval, as cheaply as possible: files stay open, buffers are used again, and what
//! changes slowly or costs much (zswap's own counters, temperatures, all processes) is looked at every few seconds.

mod arrays;
mod disks;
mod groups;
pub mod health;
mod heat;
mod heat_watch;
mod memory;
mod programs;
mod sysfs;
pub mod wear;

use crate::{LinkCounters, Programs, Sample, parse_net_dev};
use rubus_host::Files;
use rubus_host::clock::{monotonic_ns, now_rfc3339, since_boot_ns};
use rubus_host::files::polled_file::PolledFile;
use rubus_machine::parse::stat;
use rubus_vocabulary::machine::Machine;

use disks::Disks;
use heat::HeatFiles;
pub use heat::HeatSampler;
pub use heat_watch::{HeatWatch, Seen};
use memory::MemoryFiles;
use programs::Walker;

/// Time between two looks at what changes slowly.
const SLOW_NS: u64 = 5_000_000_000;
/// Two intervals of 5 s by a clock that is a little early must not become one of 6 s.
const EARLY_NS: u64 = 100_000_000;

/// What is wanted of programs. Anything but nothing costs a walk over all processes every few seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// No programs.
    #[default]
    Nothing,
    /// Which ones make the disks work.
    Programs,
    /// All that wrote, with their units and places, too.
    Writers,
}

/// Takes samples of this machine.
pub struct Sampler<'a> {
    files: &'a dyn Files,
    stat: Option<PolledFile>,
    net: Option<PolledFile>,
    disks: Disks<'a>,
    memory: MemoryFiles,
    heat: HeatFiles<'a>,
    walker: Walker,
    slow: Pace,
    buffer: Vec<u8>,
}

/// When something was done last that is not due in every interval.
#[derive(Debug, Default)]
struct Pace {
    last_ns: Option<u64>,
}

impl Pace {
    fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.last_ns.is_none_or(|last| now_ns + EARLY_NS >= last + SLOW_NS);
        if is_due {
            self.last_ns = Some(now_ns);
        }
        is_due
    }
}

/// A file that may not be there: it is then not looked for again.
fn keep(path: &str) -> Option<PolledFile> {
    PolledFile::open(std::path::Path::new(path)).ok()
}

impl<'a> Sampler<'a> {
    /// Opens what there is on this machine, by what its survey has found.
    pub fn new(files: &'a dyn Files, machine: &Machine) -> Sampler<'a> {
        Sampler {
            files,
            stat: keep("/proc/stat"),
            net: keep("/proc/net/dev"),
            disks: Disks::new(files),
            memory: MemoryFiles::new(files, machine),
            heat: HeatFiles::new(files, machine),
            walker: Walker::default(),
            slow: Pace::default(),
            buffer: Vec::new(),
        }
    }

    /// Takes one, with what is wanted of programs if a walk is due.
    pub fn sample(&mut self, wanted: Wanted) -> Sample {
        let at_ns = monotonic_ns();
        let since_boot_ns = since_boot_ns();
        let is_slow_due = self.slow.is_due(at_ns);
        let buffer = &mut self.buffer;
        Sample {
            at: now_rfc3339(),
            monotonic_ns: at_ns,
            since_boot_ns,
            disks: self.disks.read(buffer, is_slow_due),
            cpus: processors(self.stat.as_ref(), buffer),
            links: links(self.net.as_ref(), buffer),
            memory: self.memory.memory(buffer),
            events: self.memory.events(buffer),
            pressure: self.memory.pressure(buffer),
            zrams: self.memory.zrams(buffer),
            zswap: self.memory.zswap(buffer, is_slow_due),
            heat: self.heat.read(buffer, is_slow_due),
            programs: self.programs(wanted, at_ns),
            nbd: None,
        }
    }

    /// Lets the next sample walk over all processes, whether it is due or not: it is to be the last.
    pub fn hurry(&mut self) {
        self.walker.hurry();
    }

    fn programs(&mut self, wanted: Wanted, at_ns: u64) -> Option<Programs> {
        if wanted == Wanted::Nothing {
            self.walker.rest();
            return None;
        }
        self.walker.look(self.files, at_ns, wanted)
    }
}

fn processors(file: Option<&PolledFile>, buffer: &mut Vec<u8>) -> Vec<stat::CpuTimes> {
    let text = file.and_then(|file| file.read(buffer).ok());
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    text.map(stat::parse).unwrap_or_default()
}

/// All links but the one that leaves no machine, as far as anything ever went over them.
fn links(file: Option<&PolledFile>, buffer: &mut Vec<u8>) -> Vec<LinkCounters> {
    let Some(text) = file.and_then(|file| file.read(buffer).ok()) else {
        return Vec::new();
    };
    parse_net_dev(text)
        .filter(|(name, link)| *name != "lo" && link.received_bytes + link.sent_bytes > 0)
        .map(|(name, link)| LinkCounters { name: name.to_string(), ..link })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::Look;
    use rubus_host::Live;

    use super::*;

    #[test]
    fn this_machine_can_be_sampled_twice_and_compared() {
        let machine = rubus_machine::probe::survey(
            &Live,
            "2026-11-22T08:00:00.000Z",
            rubus_vocabulary::machine::Origin::Live,
        );
        let mut sampler = Sampler::new(&Live, &machine);
        let first = sampler.sample(Wanted::Programs);
        assert!(first.cpus.len() >= 2, "all cores together, and each");
        assert!(first.memory.is_some_and(|memory| memory.total_bytes > 0));
        assert_eq!(first.programs, None, "there is nothing to compare with yet");
        let second = sampler.sample(Wanted::Programs);
        assert!(second.monotonic_ns > first.monotonic_ns);
        assert!(second.programs.is_some());
        let look = Look::between(&first, &second, &[], 4096);
        assert!(look.seconds > 0.0 && look.vanished.is_empty());
    }

    #[test]
    fn what_is_slow_is_due_every_five_seconds() {
        let mut pace = Pace::default();
        let due: Vec<u64> = (0..12).filter(|s| pace.is_due(s * 1_000_000_000)).collect();
        assert_eq!(due, [0, 5, 10]);
    }
}
