//! Network links, the loopback left out.

use std::path::Path;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Link;

use crate::probe::buses::hops_of;
use crate::probe::{read, sysfs};

const LINKS: &str = "/sys/class/net";
/// Hardware type of Ethernet, ARPHRD_ETHER; Wi-Fi has it as well.
const ETHERNET: &str = "1";

pub(crate) fn links(files: &dyn Files) -> Vec<Link> {
    files
        .list(Path::new(LINKS))
        .unwrap_or_default()
        .iter()
        .filter(|name| *name != "lo")
        // A file, not a link: the list of bonds.
        .filter(|name| *name != "bonding_masters")
        .map(|name| link(files, name))
        .collect()
}

fn link(files: &dyn Files, name: &str) -> Link {
    let directory = format!("{LINKS}/{name}");
    let kind = kind(files, &directory);
    let state = read::filled_text(files, &format!("{directory}/operstate"));
    Link {
        name: name.to_string(),
        bits_per_second: bits_per_second(files, &directory, &kind, &state),
        duplex: duplex(files, &directory, &kind),
        driver: sysfs::driver(files, &format!("{directory}/device")),
        path: hops_of(files, Path::new(&format!("{directory}/device"))),
        kind,
        state,
    }
}

fn kind(files: &dyn Files, directory: &str) -> String {
    let has = |name: &str| files.exists(Path::new(&format!("{directory}/{name}")));
    let is_ethernet = || read::text(files, &format!("{directory}/type")).text() == Some(ETHERNET);
    let kind = if has("wireless") || has("phy80211") {
        "wifi"
    } else if !has("device") {
        "virtual"
    } else if is_ethernet() {
        "ethernet"
    } else {
        "other"
    };
    kind.to_string()
}

/// The file is in Mbit/s; it says -1 or refuses to be read where there is no rate.
fn bits_per_second(
    files: &dyn Files,
    directory: &str,
    kind: &str,
    state: &Fact<String>,
) -> Fact<u64> {
    let path = format!("{directory}/speed");
    if kind == "wifi" {
        return Fact::unknown("the kernel does not tell the rate of Wi-Fi here", path);
    }
    let fact = read::number::<i64>(files, &path).and_then(|mbit| match u64::try_from(mbit) {
        Ok(mbit) if mbit > 0 => Ok(mbit.saturating_mul(1_000_000)),
        _ => Err(format!("it says {mbit}: no rate was negotiated")),
    });
    match fact {
        Fact::Unknown { source, .. } if state.text() == Some("down") => {
            Fact::unknown("the link is down", source)
        }
        fact => fact,
    }
}

fn duplex(files: &dyn Files, directory: &str, kind: &str) -> Fact<String> {
    let path = format!("{directory}/duplex");
    if kind == "wifi" {
        return Fact::unknown("does not apply to Wi-Fi", path);
    }
    read::filled_text(files, &path).and_then(|text| match text.as_str() {
        "unknown" => Err("the driver does not say".to_string()),
        _ => Ok(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn links_are_told_apart() {
        let usb = "/sys/devices/platform/soc/3f980000.usb/usb1/1-1/1-1.1/1-1.1:1.0";
        let files = FakeFiles::new()
            .link("/sys/class/net/eth0", format!("{usb}/net/eth0"))
            .files(
                format!("{usb}/net/eth0"),
                [("type", "1\n"), ("operstate", "up\n"), ("speed", "100\n"), ("duplex", "full\n")],
            )
            .link(format!("{usb}/net/eth0/device"), usb)
            .link(format!("{usb}/driver"), "/sys/bus/usb/drivers/smsc95xx")
            .dir("/sys/bus/usb/drivers/smsc95xx")
            .dir("/sys/class/net/wlan0/wireless")
            .file("/sys/class/net/wlan0/operstate", "up\n")
            .file("/sys/class/net/docker0/operstate", "down\n")
            .file("/sys/class/net/docker0/speed", "-1\n")
            .file("/sys/class/net/docker0/duplex", "unknown\n")
            .dir("/sys/class/net/lo")
            .file("/sys/class/net/bonding_masters", "\n");
        let links = links(&files);
        let seen: Vec<(&str, &str)> =
            links.iter().map(|link| (link.name.as_str(), link.kind.as_str())).collect();
        assert_eq!(seen, [("docker0", "virtual"), ("eth0", "ethernet"), ("wlan0", "wifi")]);
        let eth0 = &links[1];
        assert_eq!(eth0.bits_per_second.get(), Some(100_000_000));
        assert_eq!(eth0.duplex.text(), Some("full"));
        assert_eq!(eth0.driver.text(), Some("smsc95xx"));
        assert_eq!(eth0.state.text(), Some("up"));
        assert_eq!(links[0].bits_per_second.reason(), Some("the link is down"));
        assert_eq!(links[0].duplex.reason(), Some("the driver does not say"));
    }
}
