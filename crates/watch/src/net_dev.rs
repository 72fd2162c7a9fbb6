//! `/proc/net/dev`: what went over the network's links since the start.

use serde::{Deserialize, Serialize};

use super::numbers::{lines, number, words};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkCounters {
    /// "eth0".
    pub name: String,
    /// Bytes that came.
    pub received_bytes: u64,
    /// Bytes that went.
    pub sent_bytes: u64,
}

/// The links in the kernel's order, by name, with an empty name in the counters (proc_pid_net(5)).
pub fn parse_net_dev(text: &[u8]) -> impl Iterator<Item = (&str, LinkCounters)> {
    lines(text).filter_map(|line| {
        // A name may have a colon in it (an alias), and a number may follow it without a space.
        let colon = line.iter().rposition(|&byte| byte == b':')?;
        let name = std::str::from_utf8(&line[..colon]).ok()?.trim();
        let mut numbers = words(&line[colon + 1..]).map(number);
        let received_bytes = numbers.next()??;
        let sent_bytes = numbers.nth(7)??;
        (!name.is_empty())
            .then_some((name, LinkCounters { name: String::new(), received_bytes, sent_bytes }))
    })
}
