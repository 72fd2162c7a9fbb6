//! Where a server listens, and who may connect to it: addresses and networks as they are written.

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

/// The port of NBD, registered with IANA.
pub const NBD_PORT: u16 = 10809;

/// An address to listen on with its port, or without one for that of NBD: `192.168.1.5:10810`, `0.0.0.0`, `[::]`.
///
/// # Errors
/// A sentence that says what is right.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let read = text.parse().map_err(|error: ListenAddressError| error.to_string())?;
    let ListenAddress { address, zone } = read;
    match zone {
        None => Ok(address),
        Some(zone) => Err(format!("an interface (%{zone}) cannot be named here; leave it out")),
    }
}

/// Where to listen: an address of this machine. A link-local one (`fe80::1%eth0`) has the interface that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    pub address: SocketAddr,
    /// Name or number of an interface.
    pub zone: Option<String>,
}

/// Why a text is no [`ListenAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenAddressError {
    #[error(
        "write an address of this machine, such as 192.168.1.5:10809, 0.0.0.0 for all of IPv4 or [::] for all of IPv6"
    )]
    Address,
    #[error(
        "a link-local address belongs to an interface; name it behind the address, such as {0}%eth0"
    )]
    NoZone(IpAddr),
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<ListenAddress, ListenAddressError> {
        let (text, zone) = match text.split_once('%') {
            None => (text.to_string(), None),
            Some((address, rest)) => {
                let (zone, port) = rest.split_at(rest.find(']').unwrap_or(rest.len()));
                if !is_interface(zone) {
                    return Err(ListenAddressError::Address);
                }
                (format!("{address}{port}"), Some(zone.to_string()))
            }
        };
        let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let bare = bare.unwrap_or(&text).parse::<IpAddr>();
        let address = bare.map(|ip| SocketAddr::new(ip, NBD_PORT)).or_else(|_| text.parse());
        let address = address.map_err(|_| ListenAddressError::Address)?;
        match (address, &zone) {
            (SocketAddr::V4(_), Some(_)) => Err(ListenAddressError::Address),
            (SocketAddr::V6(v6), None) if is_of_a_link(&v6) => {
                Err(ListenAddressError::NoZone(address.ip()))
            }
            _ => Ok(ListenAddress { address, zone }),
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> ListenAddress {
        ListenAddress { address, zone: None }
    }
}

fn is_of_a_link(address: &SocketAddrV6) -> bool {
    address.ip().is_unicast_link_local() && address.scope_id() == 0
}

/// Whether an interface can have this name.
pub(crate) fn is_interface(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"/%:[]".contains(&byte);
    // The kernel has no longer ones.
    (1..16).contains(&name.len()) && name.bytes().all(is_part)
}

/// A network, or one address: "192.168.1.0/24", "2001:db8::/32", "10.0.0.7".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// Why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The address is none.
    #[error("invalid network address '{0}'; write 192.168.1.0/24, 2001:db8::/32 or one address")]
    Address(String),
    /// The prefix is none.
    #[error("invalid prefix length '/{0}'; use 0 to 32 for IPv4 and 0 to 128 for IPv6")]
    Prefix(String),
    /// Bits are set that the prefix does not cover: something was mistyped.
    #[error("{0} has bits beyond its prefix; write {1}")]
    Bits(String, Network),
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address(text.into()))?;
        let most = bits_of(address);
        let prefix = match prefix {
            None => most,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|bits| *bits <= most && prefix.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| NetworkError::Prefix(prefix.into()))?,
        };
        let network = Network { address: masked(address, prefix), prefix };
        if network.address == address {
            Ok(network)
        } else {
            Err(NetworkError::Bits(text.into(), network))
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits_of(self.address) {
            write!(f, "{}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.prefix)
        }
    }
}

impl Network {
    /// Whether an address is in it. One of version 4 in the clothes of version 6 is one of version 4.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }
}

fn bits_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with only its first bits.
fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.has(address.parse().unwrap())
    }

    #[test]
    fn bits_are_compared_and_not_letters() {
        // A server once compared the text up to the length of the prefix.
        assert!(has("10.1.2.0/24", "10.1.2.255"));
        assert!(!has("10.1.2.0/24", "10.1.20.1"));
        assert!(!has("10.1.2.3", "10.1.2.30"));
        assert!(has("10.1.2.3", "10.1.2.3"));
        assert!(has("10.1.2.128/25", "10.1.2.129"));
        assert!(!has("10.1.2.128/25", "10.1.2.127"));
        assert!(has("0.0.0.0/0", "203.0.113.9"));
        assert!(!has("0.0.0.0/0", "2001:db8::1"));
        assert!(has("10.1.2.0/24", "::ffff:10.1.2.9"));
        assert!(has("::/0", "2001:db8::1"));
        assert!(has("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!has("2001:db8::/33", "2001:db8:8000::1"));
    }

    #[test]
    fn an_address_has_the_usual_port() {
        for (text, address) in [
            ("192.168.1.5", "192.168.1.5:10809"),
            ("192.168.1.5:4", "192.168.1.5:4"),
            ("::1", "[::1]:10809"),
            ("[::]", "[::]:10809"),
            ("[::]:9", "[::]:9"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address);
        }
        for wrong in ["", "pi", "192.168.1.5:", "192.168.1:4", "1.2.3.4:70000", "fe80::1%eth0"] {
            assert!(listen_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_of_a_link_has_its_interface() {
        for (text, address, zone) in [
            ("fe80::1%eth0", "[fe80::1]:10809", "eth0"),
            ("[fe80::1%eth0.100]", "[fe80::1]:10809", "eth0.100"),
            ("[fe80::1%br-lan_2]:9", "[fe80::1]:9", "br-lan_2"),
            ("fe80::1%2", "[fe80::1]:10809", "2"),
            ("[ff02::1%wlan0]", "[ff02::1]:10809", "wlan0"),
        ] {
            let read: ListenAddress = text.parse().unwrap();
            let parts = (read.address.to_string(), read.zone.as_deref());
            assert_eq!(parts, (address.into(), Some(zone)));
        }
        for (wrong, error) in [
            ("fe80::1", ListenAddressError::NoZone("fe80::1".parse().unwrap())),
            ("[fe80::1]:9", ListenAddressError::NoZone("fe80::1".parse().unwrap())),
            ("fe80::1%", ListenAddressError::Address),
            ("[fe80::1%]:9", ListenAddressError::Address),
            ("fe80::1%eth0/1", ListenAddressError::Address),
            ("fe80::1%an-interface-too-long", ListenAddressError::Address),
            ("192.168.1.5%eth0", ListenAddressError::Address),
            ("%eth0", ListenAddressError::Address),
        ] {
            assert_eq!(wrong.parse::<ListenAddress>(), Err(error), "{wrong}");
        }
    }

    #[test]
    fn what_is_mistyped_is_not_guessed() {
        for bad in ["", "pi", "10.1.2.0/", "10.1.2.0/33", "::/129", "10.1.2.0/+8", "10.1/16"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        let error = "10.1.2.3/24".parse::<Network>().unwrap_err();
        assert_eq!(error.to_string(), "10.1.2.3/24 has bits beyond its prefix; write 10.1.2.0/24");
    }
}
