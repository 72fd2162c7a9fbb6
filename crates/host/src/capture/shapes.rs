//! What identities look like: UUIDs, hardware addresses, serial numbers inside longer names.

/// Whether it is only hexadecimal digits, and at least one.
pub(crate) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether groups of hexadecimal digits of these lengths stand between separators.
fn is_grouped(text: &str, separator: char, lengths: &[usize]) -> bool {
    let groups: Vec<&str> = text.split(separator).collect();
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(group, length)| group.len() == *length && is_hex(group))
}

/// "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".
pub(crate) fn is_uuid(text: &str) -> bool {
    is_grouped(text, '-', &[8, 4, 4, 4, 12])
}

/// The UUID of an array as mdadm prints it: "3aaa0122:29827cfa:5331ad66:ca767371".
pub(crate) fn is_array_uuid(text: &str) -> bool {
    is_grouped(text, ':', &[8, 8, 8, 8])
}

/// The UUID of an LVM volume, any letters and digits: "Pzi0rS-m9iF-lTBF-oCvP-gYFR-5hvL-1NqX8g".
pub(crate) fn is_volume_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [6, 4, 4, 4, 4, 4, 6]
}

/// "b8:27:eb:12:34:56", also with dashes.
pub(crate) fn is_address(text: &str) -> bool {
    is_grouped(text, ':', &[2; 6]) || is_grouped(text, '-', &[2; 6])
}

/// Seven hexadecimal digits or more in groups, as telephone numbers, days of birth and FAT's volume numbers are written, or
/// eight as one number that is neither small nor round. Colons stand in numbers of devices and buses.
pub(crate) fn is_split_number(text: &str) -> bool {
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if let Some(digits) = text.strip_prefix("0x") {
        let is_plain = digits.starts_with('0') || digits.ends_with("00");
        return digits.len() == 8 && is_hex(digits) && !is_plain;
    }
    let groups: Vec<&str> = text.split(['-', '.', '/', ',']).collect();
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    // Megahertz: "2794.748".
    let is_decimal = groups.len() == 2 && text.contains('.') && groups[1].len() <= 3;
    // A day as SMBIOS writes it, "04/01/2014": of a board's firmware, no birth.
    let is_day = text.contains('/')
        && matches!(groups.as_slice(), [month, day, year] if month.len() == 2 && day.len() == 2 && year.starts_with("20"));
    groups.len() > 1
        && !is_decimal
        && !is_day
        && digits >= 7
        && groups.iter().all(|group| is_hex(group))
        && groups.iter().any(|group| group.len() > 2)
}

/// Two characters at a time.
pub(crate) fn pairs(digits: &str) -> Vec<&str> {
    (0..digits.len())
        .step_by(2)
        .filter_map(|at| digits.get(at..(at + 2).min(digits.len())))
        .collect()
}

/// The hardware address in the name of a network interface: "enxb827eb123456".
pub(crate) fn address_in_name(name: &str) -> Option<String> {
    let digits = name.get(3..).filter(|digits| digits.len() == 12 && is_hex(digits))?;
    let is_by_address = ["enx", "wlx", "wwx", "ibx", "slx"].contains(&&name[..3]);
    is_by_address.then(|| pairs(digits).join(":"))
}

/// Whether a serial number tells one device from another: makers who give none write zeros or
/// words, and emulators let people give names ("root").
pub(crate) fn identifies(serial: &str) -> bool {
    let mut characters: Vec<char> = serial.chars().filter(|c| c.is_alphanumeric()).collect();
    let length = characters.len();
    let has_digit = characters.iter().any(char::is_ascii_digit);
    characters.sort_unstable();
    characters.dedup();
    length >= 4 && characters.len() >= 3 && (has_digit || length >= 12)
}

/// The serial number in a name such as "Generic_Flash_Disk_8A2F9C01-0:0" or
/// "Samsung_SSD_980_S64ENX0T123456_1": the last part that is not a unit number.
pub(crate) fn serial_in_name(name: &str) -> &str {
    let is_unit = |unit: &str| {
        unit.contains(':') && unit.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    };
    let name = match name.rsplit_once('-') {
        Some((device, unit)) if is_unit(unit) => device,
        _ => name,
    };
    let mut rest = name;
    loop {
        match rest.rsplit_once('_') {
            Some((before, last)) if last.len() <= 2 => rest = before,
            Some((_, last)) => return last,
            None => return rest,
        }
    }
}

/// Whether no letter or digit touches it; "0x" before it does not count.
pub(crate) fn stands_alone(bytes: &[u8], at: usize, length: usize) -> bool {
    let before = &bytes[..at];
    let starts = before.ends_with(b"0x") || !before.last().is_some_and(u8::is_ascii_alphanumeric);
    let ends = !bytes.get(at + length).is_some_and(u8::is_ascii_alphanumeric);
    starts && ends
}

/// Which digits of a card identification register of 32 are the serial number: 18 to 25 on an SD
/// card ("SD"), 20 to 27 on an eMMC ("MMC"), both together where the kind is not known (SD
/// Physical Layer Simplified Specification, section 5.2; JESD84-B51, section 7.2).
pub(crate) fn serial_in_cid(kind: Option<&str>) -> (usize, usize) {
    match kind {
        Some("SD") => (18, 26),
        Some("MMC") => (20, 28),
        _ => (18, 28),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        assert!(is_uuid("0a1b2c3d-4E5F-6071-8293-a4b5c6d7e8f9"));
        assert!(!is_uuid("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fg"));
        assert!(is_address("b8:27:eb:12:34:56") && is_address("B8-27-EB-12-34-56"));
        assert!(!is_address("b8:27:eb:12:34") && !is_address("0000:01:00.0"));
        assert!(is_array_uuid("3aaa0122:29827cfa:5331ad66:ca767371"));
        assert!(is_volume_uuid("Pzi0rS-m9iF-lTBF-oCvP-gYFR-5hvL-1NqX8g"));
        assert_eq!(pairs("b827e"), ["b8", "27", "e"]);
    }

    #[test]
    fn numbers_in_groups_are_told_from_the_kernels() {
        for private in [
            "555-1234",
            "[475.575.6538]",
            "484-17-9444",
            "1968-08-19",
            "16.05.1981",
            "05/24/1971",
            "5742-2729",
            "76ef,9931",
            "250a/0821",
            "0x12c532d1",
        ] {
            assert!(is_split_number(private), "{private}");
        }
        for known in [
            "179:2",
            "0-3,5-7",
            "0,2,4,6,8,10,12",
            "2794.748",
            "10000.00",
            "08/2020",
            "04/01/2014",
            "6.12.107",
            "0x010802",
            "0x00000041",
            "0xfe201000",
            "152d:0578",
            "mq-deadline",
        ] {
            assert!(!is_split_number(known), "{known}");
        }
    }

    #[test]
    fn zeros_and_names_identify_nothing() {
        for plain in ["", "0", "00000000", "0000-0001", "none", "root", "rootdisk"] {
            assert!(!identifies(plain), "{plain}");
        }
        for serial in ["1234", "S4EVNX0R123456", "0xdeadbeef", "ABCDEFGHIJKLMN"] {
            assert!(identifies(serial), "{serial}");
        }
    }

    #[test]
    fn serials_are_found_in_longer_names() {
        for (name, serial) in [
            ("Generic_Flash_Disk_8A2F9C01-0:0", "8A2F9C01"),
            ("Samsung_SSD_980_S64ENX0T123456_1", "S64ENX0T123456"),
            ("SC16G_0x1a2b3c4d", "0x1a2b3c4d"),
            ("360014056f6d8b5c4", "360014056f6d8b5c4"),
            ("nqn.2019-08.org.x:nvme:y_1", "nqn.2019-08.org.x:nvme:y"),
        ] {
            assert_eq!(serial_in_name(name), serial);
        }
    }
}
