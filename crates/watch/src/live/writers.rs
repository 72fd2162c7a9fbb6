//! Watching for a while who writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rubus_host::clock;

use crate::Header;
use crate::probe::{Sampler, Wanted};
use crate::writers::Account;

/// Time between two walks over all processes.
pub const EVERY: Duration = Duration::from_secs(5);

/// An account of this machine over some time, or until it is asked to end.
pub fn account(
    mut sampler: Sampler<'_>,
    header: Header,
    time: Duration,
    is_asked: &AtomicBool,
) -> Account {
    let mut account = Account::new(header);
    let begin = clock::now();
    // What the second walk and all others are compared with.
    account.add(sampler.sample(Wanted::Writers));
    let (mut at, mut is_last) = (Duration::ZERO, false);
    while !is_last {
        at = (at + EVERY).min(time);
        while begin.elapsed() < at && !is_asked.load(Ordering::Relaxed) {
            let left = at.saturating_sub(begin.elapsed());
            clock::sleep(left.min(Duration::from_millis(500)));
        }
        is_last = at >= time || is_asked.load(Ordering::Relaxed);
        if is_last {
            sampler.hurry();
        }
        account.add(sampler.sample(Wanted::Writers));
    }
    account
}
