//! The kernel's tables of routes, `/proc/net/route` and `/proc/net/ipv6_route`: over which interface an address is
//! reached. Formats: proc_pid_net(5), and `net/ipv4/fib_trie.c` and `net/ipv6/route.c` of the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The route is up; it refuses. Bits of a route's flags (`linux/route.h`).
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// The interface over which an address is reached: that of the longest prefix that holds it and, of equal ones, of the
/// least metric. `v4` and `v6` are the two tables. Nothing when no route holds it.
pub fn interface_to(address: IpAddr, v4: &str, v6: &str) -> Option<String> {
    let routes: Vec<Route> = match address {
        IpAddr::V4(address) => {
            let lines = v4.lines().filter_map(route_v4);
            lines.filter(|route| route.holds_v4(address)).collect()
        }
        IpAddr::V6(address) => {
            let lines = v6.lines().filter_map(route_v6);
            lines.filter(|route| route.holds_v6(address)).collect()
        }
    };
    let best = routes.into_iter().min_by_key(|route| (128 - route.prefix, route.metric))?;
    (best.interface != "lo").then_some(best.interface)
}

struct Route {
    interface: String,
    network: u128,
    /// Bits of the network that count.
    prefix: u32,
    metric: u32,
}

impl Route {
    fn holds_v4(&self, address: Ipv4Addr) -> bool {
        let differs = u32::from(address) ^ self.network as u32;
        self.prefix == 0 || differs >> (32 - self.prefix) == 0
    }

    fn holds_v6(&self, address: Ipv6Addr) -> bool {
        let differs = u128::from(address) ^ self.network;
        self.prefix == 0 || differs >> (128 - self.prefix) == 0
    }
}

fn is_way(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

/// A line of the table for IPv4; addresses are in the order of the network, printed as numbers of this machine,
/// which is a little-endian one wherever this program runs.
fn route_v4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| u32::from_str_radix(fields.get(index)?, 16).ok();
    let mask = number(7)?.swap_bytes();
    is_way(number(3)?).then_some(())?;
    Some(Route {
        interface: fields[0].to_string(),
        network: number(1)?.swap_bytes().into(),
        prefix: mask.leading_ones(),
        metric: fields[6].parse().ok()?,
    })
}

fn route_v6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| u32::from_str_radix(fields.get(index)?, 16).ok();
    is_way(number(8)?).then_some(())?;
    Some(Route {
        network: u128::from_str_radix(fields[0], 16).ok()?,
        prefix: number(1).filter(|&prefix| prefix <= 128)?,
        metric: number(5)?,
        interface: fields.get(9)?.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100A8C0\t0003\t0\t0\t202\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t303\t00000000\t0\t0\t0\n\
        eth0\t0000A8C0\t00000000\t0001\t0\t0\t202\t00FFFFFF\t0\t0\t0\n\
        usb0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n\
        eth0\t0000FEA9\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
    const V6: &str = "fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n\
        00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
        00000000000000000000000000000000 00000000 00000003 00000000 80200001       lo\n";

    #[test]
    fn the_longest_prefix_and_then_the_least_metric_wins() {
        let to = |text: &str| interface_to(text.parse().unwrap(), V4, V6);
        assert_eq!(to("192.168.0.7").as_deref(), Some("eth0"));
        assert_eq!(to("10.200.3.4").as_deref(), Some("usb0"));
        assert_eq!(to("203.0.113.9").as_deref(), Some("eth0"));
        assert_eq!(to("fe80::1").as_deref(), Some("eth0"));
        assert_eq!(to("2001:db8::1"), None);
        assert_eq!(to("::1"), None);
        assert_eq!(interface_to("10.0.0.1".parse().unwrap(), "", ""), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(v4 in "\\PC*", v6 in "\\PC*", n: u128, short: u32) {
            interface_to(IpAddr::V4(short.into()), &v4, &v6);
            interface_to(IpAddr::V6(n.into()), &v4, &v6);
        }
    }
}
