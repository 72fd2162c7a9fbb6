//! How much a memory carries before touching a page becomes slow.

use serde::{Deserialize, Serialize};

use super::{Access, End, Pressure, Rung};

/// How much a memory carries with one access: sizes of the working set over the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "ToldCarries")]
pub struct Carries {
    /// Which pages were touched.
    pub access: Access,
    /// The largest that answered in time and below which nothing was slow; absent when even the smallest was slow.
    pub within: Option<f64>,
    /// The smallest that did not; absent when all did.
    pub beyond: Option<f64>,
    /// Why that one, or the search, ended otherwise than by slow touches.
    pub because: Option<End>,
}

/// The same from outside, before it is known to be in order.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ToldCarries {
    access: Access,
    within: Option<f64>,
    beyond: Option<f64>,
    because: Option<End>,
}

impl TryFrom<ToldCarries> for Carries {
    type Error = String;

    fn try_from(told: ToldCarries) -> Result<Carries, String> {
        let ToldCarries { access, within, beyond, because } = told;
        let ends = [within, beyond];
        if !ends.iter().flatten().all(|times| (0.0..1e6).contains(times)) {
            return Err(format!("memory is not carried {within:?} to {beyond:?} times"));
        }
        if let (Some(within), Some(beyond)) = (within, beyond)
            && within >= beyond
        {
            return Err(format!("{within} times is carried, but already {beyond} times is not"));
        }
        Ok(Carries { access, within, beyond, because })
    }
}

impl Pressure {
    /// What it carries with that access.
    pub fn carried(&self, access: Access) -> Option<&Carries> {
        self.carries.iter().find(|found| found.access == access)
    }

    /// Mean time of a touch over that in memory, for a working set of the given multiple of the memory
    /// as with the smallest one that was measured, if that one fits into memory.
    ///
    /// The limit of [`Carries`] is a time; a fast disk never reaches it, however much slower than
    /// memory it is.
    pub fn slowdown(&self, access: Access, overcommit: f64) -> Option<f64> {
        let base = self.rungs.iter().min_by(by_size);
        let base = base.filter(|rung| rung.overcommit <= 1.0)?;
        let rung = self.rungs.iter().find(|rung| rung.overcommit == overcommit)?;
        let (base, mean) = (base.mean_touch_ns(access)?, rung.mean_touch_ns(access)?);
        (base > 0.0).then(|| mean / base)
    }

    /// Between which two sizes that were measured a touch comes to take twice as long: the largest below
    /// which none does, and the smallest that does. Nothing where none does.
    pub fn half_speed(&self, access: Access) -> Option<(f64, f64)> {
        let sizes = self.rungs.iter().map(|rung| rung.overcommit);
        let is_slow = |size: &f64| self.slowdown(access, *size).is_some_and(|x| x >= 2.0);
        let beyond = sizes.clone().filter(is_slow).min_by(f64::total_cmp)?;
        let within = sizes.filter(|size| *size < beyond).max_by(f64::total_cmp)?;
        Some((within, beyond))
    }

    /// What the whole machine would carry: as many times its memory, but no more than the swap that it has can
    /// hold besides. A prediction, since a whole machine also has the kernel's own memory and its caches to feed.
    pub fn machine_carries(&self, access: Access, memory_bytes: u64) -> Option<u64> {
        let times = self.carried(access)?.within?;
        let by_speed = times * memory_bytes as f64;
        let by_room = memory_bytes.saturating_add(self.set_up.swap_bytes) as f64;
        // What was made for the measurement would be made as large as is wanted.
        let least = if self.set_up.is_temporary { by_speed } else { by_speed.min(by_room) };
        Some(least as u64)
    }
}

fn by_size(a: &&Rung, b: &&Rung) -> std::cmp::Ordering {
    a.overcommit.total_cmp(&b.overcommit)
}

impl Rung {
    /// The mean touch in nanoseconds.
    pub fn mean_touch_ns(&self, access: Access) -> Option<f64> {
        let phase = self.phases.iter().find(|phase| phase.access == access)?;
        phase.latency_ns.mean
    }
}
