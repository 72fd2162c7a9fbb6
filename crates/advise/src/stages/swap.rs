//! Swap in tiers: compressed in memory as far as that goes, then a disk.
//!
//! Memory M carries a working set W. Of it M − P stays as it is, where P is the share of the memory that may hold compressed pages;
//! the rest is W − (M − P), of which P · r fits compressed when r is what a page shrinks by. What is over goes to the disk, and where there
//! is none, programs' own pages are dropped and read again from where they came: the disk of the root.

use crate::advice::{Figures, Swapping};
use rubus_machine::purpose::What;
use rubus_stats::estimate::Estimate;

use super::device;
use crate::cost::Cost;
use crate::path::{Kind, Resource, Stage, Step, Tier};

/// Default compression ratio of programs' pages: 2.5 to 3 was published for desktops with zstd, 4 for idle pages.
pub fn usual_ratio() -> Estimate {
    Estimate::new(2.7, 2.0, 4.0)
}

/// What takes pages.
#[derive(Clone, Debug, PartialEq)]
pub struct SetUp {
    /// Bytes of memory that the machine has.
    pub memory_bytes: f64,
    /// Share of the memory that compressed pages may take; 0 for none. Of zram its size by what a page shrinks by.
    pub pool_share: f64,
    /// Whether what does not fit is written on to the disk; else there is no place for it.
    pub writes_on: bool,
    /// What a page shrinks by.
    pub ratio: Estimate,
    /// Seconds that one core takes to compress or expand a page.
    pub page_s: Estimate,
    pub cores: u32,
}

impl SetUp {
    /// As many times the memory as it carries before a page goes to a disk or nowhere.
    pub fn carries(&self) -> Estimate {
        let times = |ratio: f64| 1.0 + self.pool_share * (ratio - 1.0).max(0.0);
        Estimate::new(times(self.ratio.value), times(self.ratio.low), times(self.ratio.high))
    }

    /// Share of the swapped pages of a working set of `times` the memory that is found compressed in memory.
    pub fn hits(&self, times: f64) -> Estimate {
        let swapped = (times - (1.0 - self.pool_share)).max(0.0);
        let share = |ratio: f64| {
            if swapped > 0.0 { (self.pool_share * ratio / swapped).min(1.0) } else { 1.0 }
        };
        Estimate::new(share(self.ratio.value), share(self.ratio.low), share(self.ratio.high))
    }

    /// What one page asks for: `disk` takes what is over.
    pub fn steps(
        &self,
        times: f64,
        name: &str,
        disk: &Figures,
        what: What,
        depth: u32,
    ) -> Vec<Step> {
        let below = device::steps(name, disk, what, depth);
        if self.pool_share <= 0.0 {
            return below;
        }
        let hits = self.hits(times);
        let misses = Estimate::new(1.0 - hits.value, 1.0 - hits.high, 1.0 - hits.low);
        let memory = Step::Stage(Stage {
            kind: Kind::Swap,
            resource: Some(Resource::many(super::PROCESSOR, self.cores)),
            cost: Cost::fixed(self.page_s),
        });
        vec![Step::Tiers(vec![
            Tier { share: hits, below: vec![memory] },
            Tier { share: misses, below },
        ])]
    }

    /// For the table: what it carries, and how long a page takes beyond.
    pub fn swapping(&self, disk: Option<&Figures>) -> Swapping {
        Swapping {
            carries: self.carries(),
            beyond_s: disk.map(|disk| device::seconds(disk.random_read)),
        }
    }
}
