//! Whether writes may be unflushed: the data goes through the kernel alone, so it is told from the
//! device's counters.

/// What a device has written, as its file `stat` in sysfs counts it
/// (`Documentation/block/stat.rst`). It counts when requests are answered. Sectors and not requests: to the kernel a
/// flush is a write request, too, of no sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    written_sectors: u64,
    discarded_sectors: u64,
}

impl Counters {
    /// Reads the file. Kernels before 4.18 do not count discards.
    pub fn parse(stat: &str) -> Option<Counters> {
        let fields: Vec<u64> =
            stat.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Counters {
            written_sectors: *fields.get(6)?,
            discarded_sectors: fields.get(13).copied().unwrap_or(0),
        })
    }
}

/// What is known of a device's writes. What isn't known counts as unflushed.
#[derive(Clone, Debug)]
pub struct Durability {
    /// Everything that was answered up to these counters is on stable storage.
    durable: Option<Counters>,
    last: Option<Counters>,
    can_flush: bool,
    is_flushing: bool,
}

impl Durability {
    /// Of a device that was just attached, with what it had counted before that. `can_flush`: the
    /// server knows FLUSH, without which the kernel flushes nothing.
    pub fn at_start(now: Option<Counters>, can_flush: bool) -> Durability {
        Durability { durable: now, last: now, can_flush, is_flushing: false }
    }

    /// Whether writes may have been answered that no flush has covered.
    pub fn is_unflushed(&self, now: Option<Counters>) -> bool {
        now.is_none() || now != self.durable
    }

    /// Looks at the counters from time to time. Gives them when now is a good moment for a flush:
    /// something was written, and nothing since the last look.
    pub fn look(&mut self, now: Option<Counters>) -> Option<Counters> {
        if now.is_none() {
            // Not counting, now or meanwhile: nothing is known for good.
            self.durable = None;
            self.can_flush = false;
        }
        let is_quiet = self.last == now;
        self.last = now;
        let wanted = self.can_flush && is_quiet && !self.is_flushing && self.is_unflushed(now);
        self.is_flushing |= wanted;
        now.filter(|_| wanted)
    }

    /// A flush has ended that was begun after `at` had been read.
    pub fn flushed(&mut self, at: Counters, flushed: Flushed) {
        self.is_flushing = false;
        match flushed {
            Flushed::Well if self.can_flush => self.durable = Some(at),
            Flushed::Well | Flushed::NotBegun => {}
            Flushed::Badly => {
                // Servers, and systems below them, report a loss once: a later success proves nothing.
                self.durable = None;
                self.can_flush = false;
            }
        }
    }
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Everything that was written before is on stable storage.
    Well,
    /// It could not be begun, and may be tried again.
    NotBegun,
    /// It failed: writes that were acknowledged may be lost for good.
    Badly,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(written_sectors: u64) -> Option<Counters> {
        Some(Counters { written_sectors, discarded_sectors: 0 })
    }

    #[test]
    fn the_kernels_file_is_read() {
        let new = " 10 1 80 5 42 7 336 9 0 14 14 3 0 24 1 6 2\n";
        let expected = Counters { written_sectors: 336, discarded_sectors: 24 };
        assert_eq!(Counters::parse(new), Some(expected));
        let old = "10 1 80 5 42 7 336 9 0 14 14";
        assert_eq!(Counters::parse(old), at(336));
        let flushed = " 10 1 80 5 43 7 336 9 0 14 14 3 0 24 1 7 2\n";
        assert_eq!(Counters::parse(flushed), Counters::parse(new));
        assert_eq!(Counters::parse("10 1 80"), None);
        assert_eq!(Counters::parse("10 1 80 5 x 7 336 9 0 14 14"), None);
    }

    #[test]
    fn a_flush_is_due_when_writing_has_paused() {
        let mut durability = Durability::at_start(at(5), true);
        assert_eq!(durability.look(at(5)), None, "nothing was written");
        assert_eq!(durability.look(at(6)), None, "just written");
        assert!(durability.is_unflushed(at(6)));
        assert_eq!(durability.look(at(6)), at(6));
        assert_eq!(durability.look(at(6)), None, "one flush at a time");
        durability.flushed(at(6).unwrap(), Flushed::Well);
        assert!(!durability.is_unflushed(at(6)));
        assert!(durability.is_unflushed(at(7)), "written since");
    }

    #[test]
    fn what_was_written_during_a_flush_is_not_covered() {
        let mut durability = Durability::at_start(at(0), true);
        durability.look(at(1));
        assert_eq!(durability.look(at(1)), at(1));
        durability.flushed(at(1).unwrap(), Flushed::Well);
        assert!(durability.is_unflushed(at(2)));
        durability.look(at(2));
        assert_eq!(durability.look(at(2)), at(2));
        durability.flushed(at(2).unwrap(), Flushed::NotBegun);
        assert!(durability.is_unflushed(at(2)));
        assert_eq!(durability.look(at(2)), at(2), "it is tried again");
    }

    #[test]
    fn a_failed_flush_is_final() {
        let mut durability = Durability::at_start(at(0), true);
        durability.look(at(1));
        assert_eq!(durability.look(at(1)), at(1));
        durability.flushed(at(1).unwrap(), Flushed::Badly);
        for _ in 0..3 {
            assert_eq!(durability.look(at(1)), None, "no second one could repair it");
            assert!(durability.is_unflushed(at(1)));
        }
        durability.flushed(at(1).unwrap(), Flushed::Well);
        assert!(durability.is_unflushed(at(1)));
        assert!(durability.is_unflushed(at(0)));
    }

    #[test]
    fn a_server_without_flush_is_never_clean_again() {
        let mut durability = Durability::at_start(at(0), false);
        assert!(!durability.is_unflushed(at(0)));
        assert_eq!(durability.look(at(1)), None);
        assert_eq!(durability.look(at(1)), None);
        assert!(durability.is_unflushed(at(1)));
    }

    #[test]
    fn counters_that_stood_still_meanwhile_prove_nothing() {
        let mut durability = Durability::at_start(at(3), true);
        assert_eq!(durability.look(None), None);
        assert!(durability.is_unflushed(at(3)));
        assert_eq!(durability.look(at(3)), None);
        assert_eq!(durability.look(at(3)), None);
        durability.flushed(at(3).unwrap(), Flushed::Well);
        assert!(durability.is_unflushed(at(3)));
        assert!(Durability::at_start(None, true).is_unflushed(at(0)));
    }
}
