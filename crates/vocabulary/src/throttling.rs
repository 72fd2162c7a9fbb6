//! What a Raspberry Pi's firmware says of its supply and heat, and what that means for what was measured meanwhile.
//!
//! Source: Raspberry Pi documentation, "vcgencmd get_throttled".

use serde::{Deserialize, Serialize};

use crate::doubt::Doubt;

/// The firmware's throttling word (`get_throttled`): bits 0–3 now, bits 16–19 since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throttling {
    /// The word as read.
    pub word: u32,
    /// Bit 0: the supply voltage is too low now.
    pub undervoltage_now: bool,
    /// Bit 1: the clock is capped now.
    pub capped_now: bool,
    /// Bit 2: the clock is throttled now.
    pub throttled_now: bool,
    /// Bit 3: the soft temperature limit is active now.
    pub soft_limit_now: bool,
    /// Bit 16: the supply voltage was too low since boot.
    pub undervoltage_seen: bool,
    /// Bit 17: the clock was capped since boot.
    pub capped_seen: bool,
    /// Bit 18: the clock was throttled since boot.
    pub throttled_seen: bool,
    /// Bit 19: the soft temperature limit was active since boot.
    pub soft_limit_seen: bool,
}

impl Throttling {
    /// Decodes the word. Other bits are kept in `word` and ignored.
    pub fn decode(word: u32) -> Self {
        let bit = |n: u32| word & (1 << n) != 0;
        Throttling {
            word,
            undervoltage_now: bit(0),
            capped_now: bit(1),
            throttled_now: bit(2),
            soft_limit_now: bit(3),
            undervoltage_seen: bit(16),
            capped_seen: bit(17),
            throttled_seen: bit(18),
            soft_limit_seen: bit(19),
        }
    }

    /// What happened since an earlier word: what is the case now, and what the firmware has remembered since.
    pub fn events_since(self, before: Throttling) -> PowerEvents {
        let is_new = |now: bool, seen: bool, seen_before: bool| now || (seen && !seen_before);
        PowerEvents {
            undervoltage: is_new(
                self.undervoltage_now,
                self.undervoltage_seen,
                before.undervoltage_seen,
            ),
            capped: is_new(self.capped_now, self.capped_seen, before.capped_seen),
            throttled: is_new(self.throttled_now, self.throttled_seen, before.throttled_seen),
            soft_limit: is_new(self.soft_limit_now, self.soft_limit_seen, before.soft_limit_seen),
        }
    }
}

/// What the firmware did, or saw, in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerEvents {
    /// The supply voltage was too low.
    pub undervoltage: bool,
    /// The clock was capped.
    pub capped: bool,
    /// The clock was throttled.
    pub throttled: bool,
    /// The soft temperature limit was active.
    pub soft_limit: bool,
}

impl PowerEvents {
    /// What happened in either of two spans.
    #[must_use]
    pub fn or(self, other: PowerEvents) -> PowerEvents {
        PowerEvents {
            undervoltage: self.undervoltage || other.undervoltage,
            capped: self.capped || other.capped,
            throttled: self.throttled || other.throttled,
            soft_limit: self.soft_limit || other.soft_limit,
        }
    }

    /// Whether anything held the clock down.
    pub fn is_clock_held_down(self) -> bool {
        self.capped || self.throttled || self.soft_limit
    }

    /// The doubts about what was measured meanwhile; `details` follow what held the clock down.
    pub fn doubts(self, details: impl IntoIterator<Item = String>) -> Vec<Doubt> {
        let held_down = [
            (self.throttled, "throttled"),
            (self.capped, "frequency capped"),
            (self.soft_limit, "soft temperature limit"),
        ];
        let held_down = held_down.iter().filter(|(happened, _)| *happened);
        let what: Vec<String> =
            held_down.map(|(_, words)| words.to_string()).chain(details).collect();
        let throttled = (!what.is_empty()).then(|| Doubt::Throttled { what: what.join(", ") });
        self.undervoltage.then_some(Doubt::Undervoltage).into_iter().chain(throttled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_or_the_case_now_is_held_against_a_run() {
        let doubts = |before, after| {
            Throttling::decode(after).events_since(Throttling::decode(before)).doubts([])
        };
        assert_eq!(doubts(0x50000, 0x50000), []);
        assert_eq!(doubts(0, 0x10000), [Doubt::Undervoltage]);
        let held_down = Doubt::Throttled { what: "throttled, frequency capped".into() };
        assert_eq!(doubts(0x40000, 0x60004), [held_down]);
    }
}
