//! What keeps the program that takes memory from taking everything: a control group, or, where the kernel has none and the
//! user agreed, bounds on the whole machine.

use std::path::Path;
use std::time::{Duration, Instant};

use super::bounds::{Allowance, Bounds, Seen};
use anyhow::Context;
use rubus_host::WriteError;
use rubus_host::clock;
use rubus_host::files::own_files;
use rubus_host::process::memory_group::MemoryGroup;
use rubus_vocabulary::memory::End;

use super::counters;
use super::set_up::Made;
use crate::group::Place;

/// The most that a program can ask the kernel to be ended before all others (proc_pid_oom_score_adj(5)).
const FIRST_TO_BE_ENDED: &str = "1000";

/// Part of the reserve that is taken between two looks. It ends when half of the reserve is left; a program that is not
/// looked at for the tenth of a second that a busy machine takes would have the other half by then.
const UNSEEN_PART: u64 = 8;

/// Where there is room.
#[derive(Clone, Debug)]
pub enum Scope {
    /// In a group that is made here.
    Group(Place),
    /// In all of the machine.
    Machine(Allowance),
}

/// A fence that stands.
pub enum Fence {
    Group(MemoryGroup),
    /// The whole machine, watched by a guard.
    Machine(Box<Guard>),
}

/// Watches the memory of a whole machine.
pub struct Guard {
    allowance: Allowance,
    bounds: Bounds,
    begun: Instant,
    /// When it looked last, and was to look again at once.
    looked: Option<Instant>,
    /// How often the kernel had ended a program for want of memory before.
    ended_before: Option<u64>,
}

impl Guard {
    /// Keeps this program itself in memory and alive from now on: who is to end it must not wait for swap.
    ///
    /// # Errors
    /// When the kernel refuses that, as it does without root.
    pub fn post(allowance: Allowance, made: &Made) -> anyhow::Result<Guard> {
        let refused = rubus_host::process::mlocked::stay();
        anyhow::ensure!(
            refused.is_empty(),
            "this program could not be kept from waiting for memory itself ({}), so it would not be safe; run it as \
             root (sudo)",
            refused.join("; ")
        );
        Ok(Guard {
            allowance,
            bounds: Bounds::new(allowance, made.set_up.swap_bytes > 0),
            begun: clock::now(),
            looked: None,
            ended_before: counters::ended_for_want(),
        })
    }

    fn look(&mut self, tick: Duration) -> Result<(), End> {
        let now = clock::now();
        let since = self.looked.replace(now).map(|before| now - before);
        let available = counters::available();
        let seen = Seen {
            at_s: (now - self.begun).as_secs_f64(),
            late_s: since.map_or(0.0, |since| since.saturating_sub(tick).as_secs_f64()),
            available_bytes: available.map(|(available, _)| available),
            free_swap_bytes: available.map(|(_, swap)| swap),
            waited_full_us: counters::waited_full_us(),
        };
        match self.bounds.judge(&seen) {
            Some(end) => Err(end),
            None => Ok(()),
        }
    }
}

impl Fence {
    /// Lets it hold a program.
    ///
    /// # Errors
    /// If the kernel refuses to move the process.
    pub fn take(&mut self, process: u32) -> anyhow::Result<()> {
        match self {
            Fence::Group(group) => Ok(group.take(process)?),
            Fence::Machine(guard) => {
                guard.bounds.begin_again();
                guard.looked = None;
                let file = format!("/proc/{process}/oom_score_adj");
                own_files::write(Path::new(&file), FIRST_TO_BE_ENDED).with_context(|| {
                    format!(
                        "cannot have the kernel end the program that takes memory first ({file})"
                    )
                })
            }
        }
    }

    /// The most memory that it may have, where that can be said.
    ///
    /// # Errors
    /// If the kernel refuses the limit.
    pub fn limit(&self, bytes: u64) -> Result<(), WriteError> {
        match self {
            Fence::Group(group) => group.limit(bytes),
            Fence::Machine(_) => Ok(()),
        }
    }

    /// Whether there is a limit that follows the pool.
    pub fn has_limit(&self) -> bool {
        matches!(self, Fence::Group(_))
    }

    /// What may be taken between two looks: in a group the kernel itself looks at each page.
    pub fn unseen_bytes(&self) -> u64 {
        match self {
            Fence::Group(_) => u64::MAX,
            Fence::Machine(guard) => guard.allowance.reserve_bytes / UNSEEN_PART,
        }
    }

    /// The memory of the program besides the pages of its working set, as far as the kernel counts
    /// it.
    pub fn usage_bytes(&self) -> u64 {
        match self {
            Fence::Group(group) => group.usage_bytes().unwrap_or(0),
            Fence::Machine(_) => 0,
        }
    }

    /// What zswap takes, as the kernel counts it to the group.
    pub fn zswap_bytes(&self) -> u64 {
        match self {
            Fence::Group(group) => group.zswap_bytes().unwrap_or_default(),
            Fence::Machine(_) => 0,
        }
    }

    /// How often the kernel ended a program for want of memory.
    pub fn ended_for_want(&self) -> Option<u64> {
        match self {
            Fence::Group(group) => group.ended_for_want(),
            Fence::Machine(_) => counters::ended_for_want(),
        }
    }

    /// Restarts the clock after a justified pause in looking.
    pub fn begin_to_look(&mut self) {
        if let Fence::Machine(guard) = self {
            guard.looked = None;
        }
    }

    /// One look, `tick` after the one before it.
    ///
    /// # Errors
    /// What must be the end of it.
    pub fn look(&mut self, tick: Duration) -> Result<(), End> {
        match self {
            Fence::Group(_) => Ok(()),
            Fence::Machine(guard) => guard.look(tick),
        }
    }

    /// Version of groups.
    pub fn version(&self) -> Option<u32> {
        match self {
            Fence::Group(group) => Some(group.version),
            Fence::Machine(_) => None,
        }
    }

    /// Memory that is left to others.
    pub fn reserve_bytes(&self) -> Option<u64> {
        match self {
            Fence::Group(_) => None,
            Fence::Machine(guard) => Some(guard.allowance.reserve_bytes),
        }
    }

    /// What limits what was measured, as sentences without full stops.
    pub fn remarks(&self) -> Vec<String> {
        let Fence::Machine(guard) = self else {
            return Vec::new();
        };
        let mut remarks = Vec::new();
        if counters::waited_full_us().is_none() {
            remarks.push(
                "this kernel does not say how long programs wait for memory (PSI; `psi=1` on its command line), so only \
                 time and what was left were watched"
                    .into(),
            );
        }
        if counters::ended_for_want() > guard.ended_before {
            remarks
                .push("the kernel had to end a program for want of memory before rubus did".into());
        }
        remarks
    }
}
