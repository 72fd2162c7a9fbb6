//! How each figure of a candidate is known.

use serde::{Deserialize, Serialize};

use crate::device_classes::DeviceClass;
use rubus_machine::purpose::What;
use rubus_vocabulary::basis::Basis;

/// How each figure of a candidate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bases {
    /// Of [`super::Figures::random_read`].
    pub random_read: Basis,
    /// Of [`super::Figures::random_read_deep`].
    pub random_read_deep: Basis,
    /// Of [`super::Figures::random_write`].
    pub random_write: Basis,
    /// Of [`super::Figures::random_write_deep`].
    pub random_write_deep: Basis,
    /// Of [`super::Figures::sequential_read`].
    pub sequential_read: Basis,
    /// Of [`super::Figures::sequential_write`].
    pub sequential_write: Basis,
    /// Of [`super::Figures::commits`].
    pub commits: Basis,
    /// Of the time for the work: assumed where a tenth of it or more rests on assumed figures.
    pub time_s: Basis,
    /// Of the processor's share.
    pub cpu_share: Basis,
    /// Of [`super::Swapping::carries`].
    pub carries: Basis,
    /// Of [`super::Swapping::beyond_s`].
    pub beyond_s: Basis,
    /// Of the price.
    pub euros: Basis,
}

impl Bases {
    /// Of a kind of device.
    pub fn of_class(class: &DeviceClass) -> Bases {
        Bases {
            random_read: class.random_read.basis,
            random_read_deep: class.random_read_deep.basis,
            random_write: class.random_write.basis,
            random_write_deep: class.random_write_deep.basis,
            sequential_read: class.sequential_read.basis,
            sequential_write: class.sequential_write.basis,
            commits: class.commits.basis,
            ..Bases::all(Basis::Assumed)
        }
    }

    /// The same basis for all figures, except for prices, which are always assumed.
    pub fn all(basis: Basis) -> Bases {
        Bases {
            random_read: basis,
            random_read_deep: basis,
            random_write: basis,
            random_write_deep: basis,
            sequential_read: basis,
            sequential_write: basis,
            commits: basis,
            time_s: basis,
            cpu_share: basis,
            carries: basis,
            beyond_s: basis,
            euros: Basis::Assumed,
        }
    }

    /// The basis of an operation's rate at this depth: depth 1 and depth 32 are figures, a depth between them rests on
    /// both.
    pub fn of(&self, what: What, depth: u32) -> Basis {
        let at = |alone: Basis, deep: Basis| match depth {
            0..=1 => alone,
            32.. => deep,
            _ => alone.max(deep),
        };
        match what {
            What::SequentialRead => self.sequential_read,
            What::SequentialWrite => self.sequential_write,
            What::RandomRead => at(self.random_read, self.random_read_deep),
            What::RandomWrite => at(self.random_write, self.random_write_deep),
            What::Commit => self.commits,
        }
    }

    /// Takes what another says was measured, in a run in which it did not settle.
    pub(super) fn unsettle(&mut self, measured: &Bases) {
        let all = [
            (&mut self.random_read, measured.random_read),
            (&mut self.random_read_deep, measured.random_read_deep),
            (&mut self.random_write, measured.random_write),
            (&mut self.random_write_deep, measured.random_write_deep),
            (&mut self.sequential_read, measured.sequential_read),
            (&mut self.sequential_write, measured.sequential_write),
            (&mut self.commits, measured.commits),
        ];
        for (own, measured) in all {
            if measured == Basis::Measured {
                *own = Basis::Unsettled;
            }
        }
    }

    /// Whether a figure of a device, or the time for the work, rests on what did not settle.
    pub fn is_any_unsettled(&self) -> bool {
        [
            self.random_read,
            self.random_write,
            self.sequential_read,
            self.sequential_write,
            self.commits,
            self.time_s,
        ]
        .contains(&Basis::Unsettled)
    }

    /// The worse of both, figure by figure: for what is made of several.
    pub fn worse(self, other: Bases) -> Bases {
        Bases {
            random_read: self.random_read.max(other.random_read),
            random_read_deep: self.random_read_deep.max(other.random_read_deep),
            random_write: self.random_write.max(other.random_write),
            random_write_deep: self.random_write_deep.max(other.random_write_deep),
            sequential_read: self.sequential_read.max(other.sequential_read),
            sequential_write: self.sequential_write.max(other.sequential_write),
            commits: self.commits.max(other.commits),
            time_s: self.time_s.max(other.time_s),
            cpu_share: self.cpu_share.max(other.cpu_share),
            carries: self.carries.max(other.carries),
            beyond_s: self.beyond_s.max(other.beyond_s),
            euros: self.euros.max(other.euros),
        }
    }
}
