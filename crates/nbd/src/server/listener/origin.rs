//! Where clients come from, and how many may come from there.

use std::net::IpAddr;

/// What counts as one address. For IPv6 it is the /64, since a host owns all addresses of it.
pub(super) fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

/// Maximum number of clients from one remote address.
pub(super) fn max_of_one(max_clients: usize) -> usize {
    (max_clients / 4).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let of = |text: &str| origin(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert!(of("127.0.0.1").is_loopback());
    }

    #[test]
    fn one_address_has_a_quarter_of_the_clients() {
        assert_eq!(max_of_one(1024), 256);
        assert_eq!(max_of_one(4), 16);
    }
}
