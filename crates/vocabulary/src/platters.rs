//! Whether a disk has platters that turn.

use crate::machine::{BlockDevice, HopKind};

/// Beginnings and parts of the names that makers give to disks with platters.
const NAMES: [&str; 11] = [
    "HDD",
    "WDC WD",
    "HGST",
    "Hitachi",
    "TOSHIBA MQ",
    "TOSHIBA DT",
    "TOSHIBA HD",
    "Expansion",
    "Elements",
    "My Passport",
    "My Book",
];
/// Parts of the names of SSDs that look like one of the others.
const SSD_NAMES: [&str; 2] = ["SSD", "WDC WDS"];

/// True and false where that is known. A bridge from USB to SATA that says nothing about the disk behind it makes the kernel
/// say that it turns: that alone is not believed, only together with a name.
pub fn has_platters(disk: &BlockDevice) -> Option<bool> {
    let model = disk.model.text().unwrap_or_default().trim();
    if SSD_NAMES.iter().any(|name| model.contains(name)) {
        return Some(false);
    }
    let said = disk.rotational.get()?;
    let is_behind_usb = disk.path.iter().any(|hop| hop.kind == HopKind::UsbDevice);
    match (said, is_behind_usb) {
        (true, true) => is_named_so(model).then_some(true),
        (said, _) => Some(said),
    }
}

fn is_named_so(model: &str) -> bool {
    // Seagate: "ST1000LM035".
    let seagate = model.strip_prefix("ST").unwrap_or_default();
    NAMES.iter().any(|name| model.contains(name))
        || seagate.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::fixture;

    #[test]
    fn a_bridges_word_alone_does_not_make_an_ssd_spin() {
        let machine = fixture::pi3_with_usb_ssd();
        let mut disk = machine.device("sda").expect("the SSD").clone();
        let mut of = |model: &str, rotational: bool| {
            disk.model = Fact::known(model.into(), "test");
            disk.rotational = Fact::known(rotational, "test");
            has_platters(&disk)
        };
        assert_eq!(of("Generic Disk", true), None);
        assert_eq!(of("Generic Disk", false), Some(false));
        assert_eq!(of("Samsung SSD 850", true), Some(false));
        assert_eq!(of("WDC WDS500G2B0A", true), Some(false));
        assert_eq!(of("WDC WD10SPZX", true), Some(true));
        assert_eq!(of("ST1000LM035", true), Some(true));
        assert_eq!(of("STORE N GO", true), None);
        disk.path.clear();
        disk.model = Fact::known("anything".into(), "test");
        disk.rotational = Fact::known(true, "test");
        assert_eq!(has_platters(&disk), Some(true), "no bridge is in the way");
    }
}
