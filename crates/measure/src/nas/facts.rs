//! What is known of the way to a file server before a run: the link, the round trip, and what its disk costs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rubus_host::Files;
use rubus_host::clock;
use rubus_host::files::reread;
use rubus_host::net::{Stream, own_address_towards};
use rubus_machine::parse::route::interface_to;
use rubus_machine::parse::wireless;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Link, Machine};
use rubus_vocabulary::nas::{ColdRead, ConnectTimes, NasLink};

use super::Share;

/// How often it is connected before the run.
const SAMPLES: usize = 9;
/// How long a connection may take.
pub(super) const CONNECTS_WITHIN: Duration = Duration::from_secs(3);
/// What a file has to have to be read, and what of it is.
const MIN_FILE_BYTES: u64 = 32 << 20;
pub const MAX_READ_BYTES: u64 = 64 << 20;
const MAX_FIRST_PASS: Duration = Duration::from_secs(5);

const ROUTES: &str = "/proc/net/route";
const CONNECTING: &str = "TCP connections to the server's port";
const EXISTING: &str = "an existing file of the share, read twice";

/// The interface over which the server is reached, with what limits it.
pub(super) fn link(files: &dyn Files, machine: &Machine, share: &Share) -> Fact<NasLink> {
    let Some(server) = share.server else {
        return Fact::unknown("the mount does not say the server's address", ROUTES);
    };
    if server.is_loopback() || own_address_towards(server) == Some(server) {
        return Fact::unknown("the server is this machine", ROUTES);
    }
    let table = |path: &str| files.text(Path::new(path)).unwrap_or_default();
    let Some(name) = interface_to(server, &table(ROUTES), &table("/proc/net/ipv6_route")) else {
        return Fact::unknown("no route of this machine leads to the server", ROUTES);
    };
    match machine.links.iter().find(|link| link.name == name) {
        Some(link) => {
            let level = wireless::level_dbm(&table("/proc/net/wireless"), &name);
            Fact::known(NasLink { signal_dbm: level, ..nas_link(link) }, ROUTES)
        }
        None => Fact::unknown("the survey did not see the interface of the route", ROUTES),
    }
}

fn nas_link(link: &Link) -> NasLink {
    let usable = |hop: &rubus_vocabulary::machine::Hop| {
        Some((hop.link.clone(), hop.usable_bytes_per_second.get()?))
    };
    let narrowest = link.path.iter().filter_map(usable).min_by(|a, b| a.1.total_cmp(&b.1));
    let (bus, bus_bytes_per_second) = narrowest.unzip();
    NasLink {
        interface: link.name.clone(),
        kind: link.kind.clone(),
        bits_per_second: link.bits_per_second.get(),
        duplex: link.duplex.text().map(str::to_string),
        signal_dbm: None,
        bus,
        bus_bytes_per_second,
    }
}

/// The round trip while nothing else is under way.
pub(super) fn idle(share: &Share) -> Fact<ConnectTimes> {
    let Some(address) = share.address() else {
        return Fact::unknown("the mount does not say the server's address", CONNECTING);
    };
    let mut took_ns = Vec::new();
    for _ in 0..SAMPLES {
        match connect_ns(address) {
            Ok(ns) => took_ns.push(ns),
            Err(error) => return Fact::unknown(error, CONNECTING),
        }
        clock::sleep(Duration::from_millis(20));
    }
    match times(took_ns) {
        Some(times) => Fact::known(times, CONNECTING),
        None => Fact::unknown("no connection was made", CONNECTING),
    }
}

/// How long one connection to the server takes.
pub(super) fn connect_ns(address: SocketAddr) -> Result<u64, String> {
    // Not what it says of the address, which would be kept.
    let stream = Stream::tcp_at(address, CONNECTS_WITHIN)
        .map_err(|_| "the server's port takes no connection".to_string())?;
    Ok(stream.connect_ns)
}

/// Their least and their median; nothing without any.
pub(super) fn times(mut took_ns: Vec<u64>) -> Option<ConnectTimes> {
    took_ns.sort_unstable();
    Some(ConnectTimes {
        samples: u32::try_from(took_ns.len()).unwrap_or(u32::MAX),
        least_ns: *took_ns.first()?,
        median_ns: took_ns[took_ns.len() / 2],
    })
}

/// What the server's disk costs: a part of an existing file, read twice. It only reads.
pub(super) fn cold(directory: &Path) -> Fact<ColdRead> {
    let Some(file) = reread::large_file(directory, MIN_FILE_BYTES) else {
        return Fact::unknown("the directory has no file of 32 MiB or more to read", EXISTING);
    };
    // Another part each time: what was read last time may be in the server's memory still.
    let place = (clock::date_ns().unsigned_abs() % 1000) as f64 / 1000.0;
    let passes = match reread::read_twice(&file, place, MAX_READ_BYTES, MAX_FIRST_PASS) {
        Ok(passes) => passes,
        Err(_) => return Fact::unknown("the file that it has cannot be read", EXISTING),
    };
    let bytes = passes.bytes as f64;
    let read = ColdRead {
        bytes: passes.bytes,
        first_bytes_per_second: bytes / passes.first_s.max(1e-9),
        again_bytes_per_second: bytes / passes.again_s.max(1e-9),
    };
    Fact::known(read, EXISTING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_connections_is_told_with_their_least() {
        let found = times(vec![400, 100, 200, 900, 300]).unwrap();
        assert_eq!((found.samples, found.least_ns, found.median_ns), (5, 100, 300));
        assert!(times(vec![]).is_none());
    }

    #[test]
    fn a_link_behind_usb_has_the_bus_that_limits_it() {
        let machine = rubus_fixtures::pi3_with_usb_ssd();
        let link = nas_link(&machine.links[0]);
        assert_eq!(link.interface, machine.links[0].name);
        assert!(link.bus_bytes_per_second.is_some(), "{link:?}");
    }
}
