//! The work of a shaped job: its copies with their plans and files.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rubus_host::files::shared_mapping::{SharedMapping, TouchOrder};
use rubus_vocabulary::units::bytes_iec;

use super::checks::Checks;
use super::plan::{Lengths, Plan, READS, WRITES};
use super::script::Script;

/// What a worker of a shaped job needs besides the plain work.
#[derive(Clone, Debug)]
pub(crate) struct General {
    /// At least one.
    pub(crate) copies: Vec<Copy>,
    /// The job says itself how long its warm-up is.
    pub(crate) has_ramp: bool,
}

/// One copy of the job.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// What it does.
    pub(crate) plan: Plan,
    /// On which files, in the numbering of its plan.
    pub(crate) files: Vec<Arc<OwnedFd>>,
    /// How what it writes is sealed and what it reads is checked.
    pub(crate) checks: Option<Checks>,
    /// It reads back the writes of this many of its operations.
    pub(crate) replays: Option<u64>,
}

impl Copy {
    /// How many blocks of memory each operation in flight needs: one to read into and one to write
    /// from, where there are both.
    pub(crate) fn blocks(&self) -> usize {
        usize::from(self.has(READS)) + usize::from(self.has(WRITES))
    }

    /// Whether there are operations of that direction.
    fn has(&self, side: usize) -> bool {
        match self.replays {
            Some(_) => side == READS,
            None => self.plan.has(side),
        }
    }

    /// Its files as shared memory, as far as its operations reach.
    ///
    /// # Errors
    /// In words, when one cannot be mapped.
    pub(crate) fn mapped(&self) -> Result<Vec<SharedMapping>, String> {
        let order = match self.plan.random_percent {
            [0, 0] => TouchOrder::Sequential,
            _ => TouchOrder::Random,
        };
        let bytes = self.plan.end();
        let mapping =
            |file: &Arc<OwnedFd>| SharedMapping::new(file.as_fd(), bytes, self.has(WRITES), order);
        self.files.iter().map(mapping).collect::<Result<_, _>>().map_err(|errno| {
            let error = std::io::Error::from(errno);
            format!("cannot map {} of a file into memory: {error}", bytes_iec(bytes))
        })
    }

    /// Its script, at the beginning.
    pub(crate) fn script(&self) -> Script {
        match self.replays {
            Some(operations) => Script::replay(self.plan.clone(), operations),
            None => Script::new(self.plan.clone()),
        }
    }
}

impl General {
    /// Whether there are operations of that direction.
    pub(crate) fn has(&self, side: usize) -> bool {
        self.copies.iter().any(|copy| copy.has(side))
    }

    /// How many operations of one direction are at most warm-up in each of `workers` workers.
    pub(crate) fn warm_up_operations(&self, side: usize, workers: u32) -> u64 {
        /// As of the lean engines: a tenth of the budget.
        const PART: f64 = 10.0;
        let expected = |copy: &Copy| match copy.replays {
            Some(operations) => operations as f64,
            None => copy.plan.expected_operations(side),
        };
        let expected: f64 = self.copies.iter().map(expected).sum();
        if self.has_ramp { u64::MAX } else { (expected / PART / f64::from(workers.max(1))) as u64 }
    }

    /// Whether the job waits of its own will.
    pub(crate) fn is_paced(&self) -> bool {
        let paced = |copy: &Copy| copy.replays.is_none() && copy.plan.is_paced();
        self.copies.iter().any(paced)
    }

    /// About how many bytes the copies have to read back after they handed out these numbers of
    /// operations.
    pub(crate) fn written_bytes(&self, handed_out: &[u64]) -> u64 {
        let of_copies = self.copies.iter().zip(handed_out).map(|(copy, &operations)| {
            let plan = &copy.plan;
            let operations = operations.min(plan.operations_per_round().unwrap_or(u64::MAX));
            operations as f64 * plan.share(WRITES) * plan.lengths[WRITES].mean()
        });
        of_copies.sum::<f64>() as u64
    }

    /// Bytes of every operation of one direction, where they are all alike.
    pub(crate) fn block_bytes(&self, side: usize) -> Option<u32> {
        let copy = self.copies.first()?;
        let side = if copy.replays.is_some() { WRITES } else { side };
        match &copy.plan.lengths[side] {
            Lengths::Fixed(bytes) => Some(*bytes),
            Lengths::Range { .. } | Lengths::Split(_) => None,
        }
    }
}
