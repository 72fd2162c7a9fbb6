//! How long the rest will take, from how long the parts took.
//!
//! An entry costs some time whatever its length, and every byte costs some more. Both costs are fitted to what was
//! seen: least squares over the parts done so far, later parts counting more, neither cost below zero.

/// Parts seen before anything is said.
const ENOUGH_PARTS: u32 = 8;
/// What a part still counts when the next one has been seen. About the last 50 parts decide.
const FADING: f64 = 0.98;

/// The costs, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    parts: u32,
    entries_2: f64,
    entries_bytes: f64,
    bytes_2: f64,
    entries_time: f64,
    bytes_time: f64,
}

impl Pace {
    /// Notes that a part of `entries` entries and `bytes` bytes took `seconds`.
    pub fn add(&mut self, entries: u64, bytes: u64, seconds: f64) {
        let (entries, bytes) = (entries as f64, bytes as f64);
        for sum in [
            &mut self.entries_2,
            &mut self.entries_bytes,
            &mut self.bytes_2,
            &mut self.entries_time,
            &mut self.bytes_time,
        ] {
            *sum *= FADING;
        }
        self.parts += 1;
        self.entries_2 += entries * entries;
        self.entries_bytes += entries * bytes;
        self.bytes_2 += bytes * bytes;
        self.entries_time += entries * seconds;
        self.bytes_time += bytes * seconds;
    }

    /// Seconds that an entry and a byte cost, when enough was seen.
    pub fn costs(&self) -> Option<(f64, f64)> {
        if self.parts < ENOUGH_PARTS {
            return None;
        }
        let determinant = self.entries_2 * self.bytes_2 - self.entries_bytes.powi(2);
        // Parts that are all alike do not tell the two apart.
        let is_mixed = determinant > 1e-3 * self.entries_2 * self.bytes_2;
        if is_mixed {
            let entry = self.entries_time * self.bytes_2 - self.bytes_time * self.entries_bytes;
            let byte = self.bytes_time * self.entries_2 - self.entries_time * self.entries_bytes;
            if entry >= 0.0 && byte >= 0.0 {
                return Some((entry / determinant, byte / determinant));
            }
            if byte > 0.0 {
                return Some((0.0, self.bytes_time / self.bytes_2));
            }
        }
        if self.entries_2 > 0.0 {
            Some((self.entries_time / self.entries_2, 0.0))
        } else if self.bytes_2 > 0.0 {
            Some((0.0, self.bytes_time / self.bytes_2))
        } else {
            None
        }
    }

    /// Seconds that this many more entries and bytes will take, once enough was seen.
    pub fn left_s(&self, entries: u64, bytes: u64) -> Option<f64> {
        let (entry_s, byte_s) = self.costs()?;
        Some(entry_s * entries as f64 + byte_s * bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_before_enough_was_seen() {
        let mut pace = Pace::default();
        for _ in 0..ENOUGH_PARTS - 1 {
            pace.add(10, 1000, 0.1);
            assert_eq!(pace.left_s(1, 1), None);
        }
        pace.add(10, 1000, 0.1);
        assert!(pace.left_s(1, 1).is_some());
    }

    #[test]
    fn both_costs_are_found_in_mixed_parts() {
        let mut pace = Pace::default();
        for part in 0..100_u64 {
            let (entries, bytes) = (50 + part % 7 * 40, (part % 5) * 4_000_000);
            pace.add(entries, bytes, entries as f64 * 4e-4 + bytes as f64 * 5e-8);
        }
        let (entry_s, byte_s) = pace.costs().unwrap();
        assert!((entry_s / 4e-4 - 1.0).abs() < 1e-6, "{entry_s}");
        assert!((byte_s / 5e-8 - 1.0).abs() < 1e-6, "{byte_s}");
        assert!((pace.left_s(1000, 20_000_000).unwrap() - 1.4).abs() < 1e-3);
    }

    #[test]
    fn parts_that_are_all_alike_still_give_a_pace() {
        let mut pace = Pace::default();
        for _ in 0..20 {
            pace.add(100, 1_000_000, 0.5);
        }
        assert!((pace.left_s(1000, 10_000_000).unwrap() - 5.0).abs() < 1e-6);
    }

    #[test]
    fn no_cost_is_below_zero() {
        let mut pace = Pace::default();
        for part in 0..50_u64 {
            // More bytes took less time: a cache.
            pace.add(100, part * 1_000_000, 1.0 - part as f64 / 100.0);
        }
        let (entry_s, byte_s) = pace.costs().unwrap();
        assert!(entry_s >= 0.0 && byte_s >= 0.0);
    }
}
