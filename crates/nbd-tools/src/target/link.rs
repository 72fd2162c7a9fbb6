//! The link between here and a server: which interface, and what it carries.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use rubus_host::files::Files;
use rubus_host::net::{addresses, own_address_towards};
use rubus_machine::parse::route::interface_to;
use rubus_nbd::uri::{Server, Uri};
use rubus_vocabulary::result::NetworkLink;

use crate::attach::records::Records;

/// The link to what is connected at that address with its port. Nothing for a socket, for this machine itself, and
/// where the rate is not known (radio, tunnels, cards of virtual machines).
pub fn link_to(files: &dyn Files, peer: &str) -> Option<NetworkLink> {
    let peer: SocketAddr = peer.parse().ok()?;
    link_to_address(files, peer.ip())
}

/// The link to the server of an attached device (`nbd0`) or of a partition of it (`nbd0p1`).
pub fn link_of_device(files: &dyn Files, device: &str) -> Option<NetworkLink> {
    let whole = device.split('p').next()?;
    let records = Records::all();
    let record = records.iter().find(|record| record.device == format!("/dev/{whole}"))?;
    let Server::Tcp { host, port } = Uri::parse(&record.address).ok()?.server else {
        return None;
    };
    link_to_address(files, addresses(&host, port).ok()?.first()?.ip())
}

/// Whether a block device is one of the kernel's network disks, or a partition of one.
pub fn is_network_device(device: &str) -> bool {
    let number = device.strip_prefix("nbd");
    number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn link_to_address(files: &dyn Files, peer: IpAddr) -> Option<NetworkLink> {
    if peer.is_loopback() || own_address_towards(peer) == Some(peer) {
        return None;
    }
    let table = |path: &str| files.text(Path::new(path)).unwrap_or_default();
    let interface = interface_to(peer, &table("/proc/net/route"), &table("/proc/net/ipv6_route"))?;
    // In Mbit/s; -1 where there is no telling.
    let speed = files.text(&Path::new("/sys/class/net").join(&interface).join("speed"));
    let mbit: i64 = speed.ok()?.trim().parse().ok()?;
    let bits_per_second = u64::try_from(mbit).ok().filter(|&mbit| mbit > 0)? * 1_000_000;
    Some(NetworkLink { interface, bits_per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_devices_are_told_by_their_names() {
        for (name, is) in [("nbd0", true), ("nbd15p2", true), ("nbdkit", false), ("sda", false)] {
            assert_eq!(is_network_device(name), is, "{name}");
        }
    }
}
