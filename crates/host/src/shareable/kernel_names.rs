//! Names that the kernel and udev give to devices of any machine.

/// Prefixes of the kernel's names for block devices that are followed by letters, and by a partition's number.
const LETTERED: [&str; 5] = ["sd", "vd", "hd", "xvd", "ubd"];
/// Those that are followed by a number.
const NUMBERED: [&str; 16] = [
    "mmcblk", "nvme", "loop", "dm-", "md", "zram", "nbd", "ram", "sr", "fd", "rbd", "nullb",
    "pmem", "bcache", "mtdblock", "ublkb",
];
/// Kernel and udev names of network interfaces, before their number or slot.
const INTERFACES: [&str; 17] = [
    "eth", "wlan", "end", "usb", "br", "bond", "team", "wwan", "docker", "wg", "tun", "tap", "ib",
    "ifb", "dummy", "virbr", "can",
];

/// Whether a text is a name that the kernel or udev gives to a block device or network interface of any machine.
pub fn is_kernel_name(text: &str) -> bool {
    is_device(text) || is_interface(text)
}

/// "mmcblk0p2", "sda1", "nvme0n1p3", "md127", "dm-0".
pub fn is_device(text: &str) -> bool {
    let lettered = LETTERED.iter().any(|prefix| {
        text.strip_prefix(prefix).is_some_and(|rest| {
            let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit());
            let digits = rest.len() - letters.len();
            (1..=3).contains(&letters.len())
                && digits <= 3
                && letters.bytes().all(|b| b.is_ascii_lowercase())
        })
    });
    let numbered = || {
        NUMBERED.iter().any(|prefix| {
            text.strip_prefix(prefix).is_some_and(|rest| {
                // Floppy disks have one digit; with more, an address of version 6 begins so.
                rest.starts_with(|c: char| c.is_ascii_digit())
                    && rest.split(['n', 'p']).all(is_short_number)
                    && (*prefix != "fd" || rest.len() == 1)
            })
        })
    };
    lettered || numbered() || is_mmc_area(text)
}

fn is_short_number(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// "mmcblk0boot0", "mmcblk0rpmb".
fn is_mmc_area(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("mmcblk") else {
        return false;
    };
    ["boot0", "boot1", "rpmb", "gp0", "gp1", "gp2", "gp3"]
        .iter()
        .any(|area| rest.strip_suffix(area).is_some_and(is_short_number))
}

/// "eth0", "wlan0", "enp1s0", "end0", "eth0.100". Names that hold a hardware address ("enx…") are none.
pub fn is_interface(text: &str) -> bool {
    let (name, vlan) = text.split_once('.').unwrap_or((text, "0"));
    let numbered =
        || INTERFACES.iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_short_number));
    is_short_number(vlan) && (name == "lo" || numbered() || is_slot_name(name))
}

/// systemd's names by slot: "eno1", "ens3", "enp1s0f0", "wlp2s0", "enP4p65s0", "enu1u2".
fn is_slot_name(name: &str) -> bool {
    let Some(rest) = ["en", "wl", "ww", "ib"].iter().find_map(|kind| name.strip_prefix(kind))
    else {
        return false;
    };
    let slots = rest.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
    let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    rest.starts_with(['o', 's', 'p', 'P', 'u'])
        && rest.ends_with(|c: char| c.is_ascii_digit())
        && slots
            .clone()
            .all(|part| ["o", "s", "p", "P", "u", "f", "d", "n", "np", "i", "c"].contains(&part))
        && numbers.clone().all(is_short_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_names_are_known_and_chosen_ones_are_not() {
        for name in [
            "sda",
            "sdab12",
            "mmcblk0p2",
            "mmcblk0boot1",
            "nvme0n1p3",
            "dm-0",
            "md127",
            "loop0",
            "vda1",
            "eth0",
            "enp1s0f0",
            "end0",
            "wlan0",
            "wlp2s0",
            "eth0.10",
            "enP4p65s0",
            "lo",
            "zram0",
            "nbd0p1",
            "enu1u2",
        ] {
            assert!(is_kernel_name(name), "{name}");
        }
        for name in [
            "enxb827eb112233",
            "wlx001122aabbcc",
            "wg-alice",
            "md_alice",
            "sdalice",
            "veth1a2b3c",
            "enalice0",
            "eth12345",
        ] {
            assert!(!is_kernel_name(name), "{name}");
        }
    }
}
