//! What the kernel calls devices of buses.

use super::identities;
use super::in_a_row;
use super::list::is_word;

/// Whether a text is what the kernel calls a device of a bus: "1-1.3", "0000:01:00.0", "152d:0578", "usb1", "mmc0",
/// "fe340000.mmc", "1-1.3:1.0".
pub fn is_bus_id(text: &str) -> bool {
    let parts = text.split([':', '-', '.', ',', '@', '_']);
    let is_part = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_hex = part.len() <= 8 && part.bytes().all(|b| b.is_ascii_hexdigit());
        // The address of a chip's registers.
        let is_round = part.len() <= 4 || part.ends_with("00");
        is_hex && is_round || is_word(letters) && part.len() - letters.len() <= 4
    };
    let count = text.split([':', '-', '.']).count();
    !text.is_empty()
        && !identities::is_address(text)
        && text.len() <= 40
        && count <= 6
        && parts.into_iter().all(is_part)
        && !holds_hex(text)
        && !in_a_row::is_spelt(text)
}

/// Twelve or more hexadecimal digits, however they are separated, that are not an address of a device tree or PCI.
fn holds_hex(text: &str) -> bool {
    let groups: Vec<&str> = text.split([':', '-']).collect();
    groups.len() >= 5 && groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_ids_are_known_and_addresses_are_not() {
        for id in [
            "1-1.3",
            "0000:01:00.0",
            "152d:0578",
            "usb1",
            "mmc0",
            "fe340000.mmc",
            "soc",
            "1-1.3:1.0",
            "virtio1",
            "3f202000.mmc",
            "2:0:0:0",
        ] {
            assert!(is_bus_id(id), "{id}");
        }
        for id in [
            "naa.5002538e40abcdef",
            "b8:27:eb:3a:2b:1c",
            "alice",
            "S4EVNX0R123456",
            "192_168_1_5",
            "c0,a8,1,5",
            "c0a8b22a",
            "19216815",
        ] {
            assert!(!is_bus_id(id), "{id}");
        }
    }
}
