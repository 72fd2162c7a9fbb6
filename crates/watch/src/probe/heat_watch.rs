//! Looks at clock, heat and supply a few times a second while something is measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rubus_host::{Files, Live};
use rubus_machine::parse::stat;
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::machine::Machine;

use super::HeatSampler;
use crate::Heat;

/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(250);
/// Share of the processors' time that a hypervisor took, from which that is a doubt.
const STOLEN: f64 = 0.05;

/// A thread that looks until it is asked what it saw.
pub struct HeatWatch {
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Heat>>>,
    processors: Vec<stat::CpuTimes>,
}

/// What was seen.
pub struct Seen {
    /// In the order of looking.
    pub looks: Vec<Heat>,
    /// That a hypervisor took much of the processors' time.
    pub stolen: Option<Doubt>,
}

impl HeatWatch {
    /// Begins. Where there can be no thread, nothing is seen.
    pub fn start(machine: &Machine) -> HeatWatch {
        let enough = Arc::new(AtomicBool::new(false));
        let (until, machine) = (Arc::clone(&enough), machine.clone());
        let look = move || {
            let files = Live::new();
            let mut sampler = HeatSampler::new(&files, &machine);
            let mut looks = vec![sampler.look()];
            while !until.load(Ordering::Relaxed) {
                std::thread::park_timeout(PERIOD);
                looks.push(sampler.look());
            }
            looks
        };
        HeatWatch {
            enough,
            thread: std::thread::Builder::new().name("heat".into()).spawn(look).ok(),
            processors: processors(),
        }
    }

    /// Ends, and says what was seen.
    pub fn end(mut self) -> Seen {
        self.stop();
        let looks = self.thread.take().and_then(|thread| thread.join().ok());
        let steal = stat::shares(&self.processors, &processors()).steal;
        Seen {
            looks: looks.unwrap_or_default(),
            stolen: (steal >= STOLEN).then_some(Doubt::CpuStolen { share: steal }),
        }
    }

    fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for HeatWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

fn processors() -> Vec<stat::CpuTimes> {
    let text = Live::new().text(Path::new("/proc/stat"));
    stat::parse(&text.unwrap_or_default())
}
