//! The other end of a network disk, as far as its processor time can be asked for.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use rubus_vocabulary::result::{BothEnds, ClientEnd, ServerEnd};

use crate::sample::{FarLook, Sample};

/// A server that says what it has spent.
pub trait Meter: Debug + Send + Sync {
    /// Processor time of the server until now, in nanoseconds. Only differences mean something.
    ///
    /// # Errors
    /// If the server's processor time cannot be read.
    fn cpu_ns(&self) -> Result<u64, String>;

    /// What that is the processor time of.
    fn counts(&self) -> ServerEnd;
}

/// The server of the target.
#[derive(Clone, Debug)]
pub struct FarEnd {
    meter: Arc<dyn Meter>,
    /// What the processor time of this end is that of.
    client: ClientEnd,
    trouble: Arc<Mutex<Option<String>>>,
}

impl PartialEq for FarEnd {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.meter, &other.meter)
    }
}

impl Eq for FarEnd {}

impl FarEnd {
    /// A server that this end speaks to.
    pub fn new(meter: Arc<dyn Meter>, client: ClientEnd) -> Self {
        FarEnd { meter, client, trouble: Arc::default() }
    }

    /// What the server has spent; nothing when it does not say, and why is remembered.
    pub(crate) fn look(&self) -> Option<FarLook> {
        match self.meter.cpu_ns() {
            Ok(cpu_ns) => {
                Some(FarLook { cpu_ns, client: self.client, server: self.meter.counts() })
            }
            Err(why) => {
                *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                None
            }
        }
    }

    /// Why the server did not say what it has spent, the last time that it did not.
    pub(crate) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }
}

/// What both ends spent between two samples; `moved`: operations and bytes in that time.
pub(crate) fn both_ends(first: &Sample, last: &Sample, moved: (u64, u64)) -> Option<BothEnds> {
    let (before, after) = (first.server.as_ref()?, last.server.as_ref()?);
    // A restarted server counts from 0 again.
    let server_ns = after.cpu_ns.checked_sub(before.cpu_ns)?;
    let seconds = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
    let client_s = match after.client {
        ClientEnd::Process => last.process_ns.saturating_sub(first.process_ns) as f64 / 1e9,
        ClientEnd::Machine => {
            let cpu = crate::attribution::cpu_shares(first, last);
            let cores = cpu.per_core_busy.len() as f64;
            (cpu.user + cpu.system + cpu.irq + cpu.softirq) * cores * seconds
        }
    };
    let spent = [client_s, server_ns as f64 / 1e9];
    let ends = (after.client, after.server.clone());
    Some(BothEnds::new(seconds, moved, ends, spent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Silent;

    impl Meter for Silent {
        fn cpu_ns(&self) -> Result<u64, String> {
            Err("nobody is there".into())
        }

        fn counts(&self) -> ServerEnd {
            ServerEnd::Process
        }
    }

    fn sample(at_s: u64, process_s: u64, server_s: Option<u64>) -> Sample {
        Sample {
            at_ns: at_s * 1_000_000_000,
            process_ns: process_s * 1_000_000_000,
            server: server_s.map(|s| FarLook {
                cpu_ns: s * 1_000_000_000,
                client: ClientEnd::Process,
                server: ServerEnd::Process,
            }),
            ..Sample::default()
        }
    }

    #[test]
    fn a_gib_and_a_million_requests_have_a_price_at_each_end() {
        let (first, last) = (sample(1, 0, Some(7)), sample(11, 4, Some(9)));
        let ends = both_ends(&first, &last, (500_000, 2 << 30)).unwrap();
        assert_eq!((ends.seconds, ends.client.cpu_s), (10.0, 4.0));
        assert_eq!(ends.client.cpu_s_per_gib, Some(2.0));
        assert_eq!(ends.server.cpu_s_per_gib, Some(1.0));
        assert_eq!(ends.client.cpu_s_per_million, Some(8.0));
        assert_eq!(ends.server.cpu_s_per_million, Some(4.0));
        let twice = BothEnds::sum([ends.clone(), ends]).unwrap();
        assert_eq!(twice.server.cpu_s, 4.0);
        assert_eq!(twice.server.cpu_s_per_gib, Some(1.0));
    }

    #[test]
    fn a_server_that_is_silent_or_was_restarted_has_no_price() {
        let far = FarEnd::new(Arc::new(Silent), ClientEnd::Process);
        assert_eq!((far.look(), far.trouble()), (None, Some("nobody is there".into())));
        for (before, after) in [(Some(7), None), (None, Some(7)), (Some(7), Some(6))] {
            let (first, last) = (sample(1, 0, before), sample(2, 0, after));
            assert_eq!(both_ends(&first, &last, (1, 1)), None);
        }
    }
}
