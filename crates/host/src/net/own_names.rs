//! What other machines may call this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The machine's own name.
pub fn machine() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The addresses of all network interfaces, loopback included, without those that mean something on
/// one cable only (`fe80::`). Empty when the system does not tell.
pub fn addresses() -> Vec<IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is valid for the call, which fills it in or fails.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: the system made the list; no entry changes before it is freed below.
        let entry = unsafe { &*at };
        // SAFETY: the address, if there is one, belongs to the list and has the size of its family.
        found.extend(unsafe { address(entry.ifa_addr) });
        at = entry.ifa_next;
    }
    // SAFETY: it came from `getifaddrs`, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    found.sort();
    found.dedup();
    found
}

/// # Safety
/// The pointer is null or that of a whole socket address of the family that it names.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every socket address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one of these.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let bits = u32::from_be(address.sin_addr.s_addr);
            Some(IpAddr::V4(Ipv4Addr::from(bits)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
            let is_local = address.segments()[0] & 0xffc0 == 0xfe80;
            (!is_local).then_some(IpAddr::V6(address))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_a_loopback() {
        assert!(!machine().is_empty());
        let addresses = addresses();
        assert!(addresses.contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)), "{addresses:?}");
    }
}
