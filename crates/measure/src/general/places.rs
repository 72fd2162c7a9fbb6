//! The places that operations under way are at, so that none of a job that is checked begins where
//! another has not ended: a block that two write at once may hold some of each.

use std::sync::{Mutex, PoisonError};

/// The places of all operations under way, of all copies of a job.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Vec<Place>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: u32,
    start: u64,
    end: u64,
}

impl Places {
    /// Takes a place, if it does not touch one that is taken.
    pub(super) fn take(&self, file: u32, start: u64, bytes: u32) -> bool {
        let wanted = place(file, start, bytes);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let touches = |other: &Place| {
            other.file == wanted.file && other.start < wanted.end && wanted.start < other.end
        };
        let is_free = !taken.iter().any(touches);
        if is_free {
            taken.push(wanted);
        }
        is_free
    }

    /// Gives a place back.
    pub(super) fn give_back(&self, file: u32, start: u64, bytes: u32) {
        let given = place(file, start, bytes);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = taken.iter().position(|other| *other == given) {
            taken.swap_remove(index);
        }
    }
}

fn place(file: u32, start: u64, bytes: u32) -> Place {
    Place { file, start, end: start.saturating_add(u64::from(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_has_to_wait() {
        let places = Places::default();
        assert!(places.take(0, 4096, 4096));
        assert!(!places.take(0, 0, 4097));
        assert!(!places.take(0, 8191, 1));
        assert!(
            places.take(0, 0, 4096) && places.take(0, 8192, 4096) && places.take(1, 4096, 4096)
        );
        places.give_back(0, 4096, 4096);
        assert!(places.take(0, 4096, 4096));
    }
}
