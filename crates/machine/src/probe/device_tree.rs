//! Reading properties of the flattened device tree below `/proc/device-tree`.
//!
//! Format: Devicetree Specification, chapter 2: strings end with a NUL, lists of strings follow
//! one another, numbers are 32-bit cells in big-endian order.

use std::path::Path;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;

const ROOT: &str = "/proc/device-tree";
/// More than any property that is read here.
const PROPERTY_LIMIT_BYTES: usize = 64 * 1024;

/// A property of one string.
pub(crate) fn string(files: &dyn Files, property: &str) -> Fact<String> {
    strings(files, property).and_then(|strings| {
        strings.into_iter().next().ok_or_else(|| "the property is empty".to_string())
    })
}

/// A property that is a list of strings.
pub(crate) fn strings(files: &dyn Files, property: &str) -> Fact<Vec<String>> {
    bytes(files, property).map(|bytes| {
        bytes
            .split(|byte| *byte == 0)
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8_lossy(part).trim_end().to_string())
            .collect()
    })
}

/// A property of one 32-bit cell.
pub(crate) fn cell(files: &dyn Files, property: &str) -> Fact<u32> {
    bytes(files, property).and_then(|bytes| match bytes[..] {
        [a, b, c, d] => Ok(u32::from_be_bytes([a, b, c, d])),
        _ => Err(format!("it has {} bytes, not 4", bytes.len())),
    })
}

/// Whether the board calls itself a Raspberry Pi.
pub(crate) fn is_raspberry_pi(files: &dyn Files) -> bool {
    strings(files, "compatible")
        .value()
        .is_some_and(|list| list.iter().any(|entry| entry.starts_with("raspberrypi,")))
}

fn bytes(files: &dyn Files, property: &str) -> Fact<Vec<u8>> {
    let path = format!("{ROOT}/{property}");
    match files.read_prefix(Path::new(&path), PROPERTY_LIMIT_BYTES) {
        Ok(bytes) => Fact::known(bytes, path),
        Err(error) => Fact::unknown(error.to_string(), path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    #[test]
    fn properties_are_strings_lists_and_cells() {
        let files = FakeFiles::new()
            .file("/proc/device-tree/compatible", "raspberrypi,3-model-b\0brcm,bcm2837\0")
            .file("/proc/device-tree/model", "Raspberry Pi 3 Model B Rev 1.2\0")
            .file("/proc/device-tree/system/linux,revision", [0x00, 0xa0, 0x20, 0x82])
            .file("/proc/device-tree/empty", "")
            .file("/proc/device-tree/short", [1, 2]);
        assert_eq!(
            strings(&files, "compatible").value().unwrap(),
            &["raspberrypi,3-model-b", "brcm,bcm2837"]
        );
        assert_eq!(string(&files, "model").text(), Some("Raspberry Pi 3 Model B Rev 1.2"));
        assert_eq!(cell(&files, "system/linux,revision").get(), Some(0xa02082));
        assert_eq!(string(&files, "empty").reason(), Some("the property is empty"));
        assert_eq!(cell(&files, "short").reason(), Some("it has 2 bytes, not 4"));
        assert!(is_raspberry_pi(&files));
        assert!(!is_raspberry_pi(&FakeFiles::new()));
    }
}
