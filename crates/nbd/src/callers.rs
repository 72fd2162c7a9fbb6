//! Where a server listens, and who may connect to it: addresses and networks as they are written.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of NBD, registered with IANA.
pub const NBD_PORT: u16 = 10809;

/// An address to listen on with its port, or without one for that of NBD: `192.168.1.5:10810`, `0.0.0.0`, `[::]`.
///
/// # Errors
/// A sentence that says what is right.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(address) => Ok(SocketAddr::new(address, NBD_PORT)),
        Err(_) => Err(
            "write an address of this machine, such as 192.168.1.5:10809, or 0.0.0.0 for all of them"
                .into(),
        ),
    }
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
        match network.address == address {
            true => Ok(network),
            false => Err(NetworkError::Bits(text.into(), network)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix == bits_of(self.address) {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.prefix),
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
        for wrong in ["", "pi", "192.168.1.5:", "192.168.1:4", "1.2.3.4:70000"] {
            assert!(listen_address(wrong).is_err(), "{wrong}");
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
