//! The USB and PCI chips that matter for storage on small boards: their names, and which USB
//! bridges are known for trouble under UAS.
//!
//! A small table on purpose: a device's own strings name everything else. The trouble column has
//! only what is on record: the kernel's list of unusual UAS devices (`unusual_uas.h`) and the
//! quirks that distributions for Raspberry Pis ship or their users report.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsbChip {
    /// Vendor id.
    pub vendor: u16,
    /// Product id.
    pub product: u16,
    /// "JMicron JMS578 SATA bridge".
    pub name: &'static str,
    /// What happened with it under UAS, if it is on record.
    pub uas_trouble: Option<&'static str>,
}

const STALLS: &str = "some of these stall, reset or crawl under uas on Raspberry Pis";
const IGNORED: &str = "the kernel never uses uas with it";
const LOST_ROOT: &str = "a root disk was lost under uas on a Raspberry Pi";

const fn fine(vendor: u16, product: u16, name: &'static str) -> UsbChip {
    UsbChip { vendor, product, name, uas_trouble: None }
}

const fn troubled(
    vendor: u16,
    product: u16,
    name: &'static str,
    uas_trouble: &'static str,
) -> UsbChip {
    UsbChip { vendor, product, name, uas_trouble: Some(uas_trouble) }
}

/// All known chips, by id.
pub const USB_CHIPS: &[UsbChip] = &[
    fine(0x0424, 0x2514, "Microchip USB2514 hub"),
    fine(0x0424, 0x7800, "Microchip LAN7800/LAN7515 Gigabit Ethernet"),
    fine(0x0424, 0x9512, "Microchip LAN9512 hub"),
    fine(0x0424, 0x9514, "Microchip LAN9514 hub"),
    fine(0x0424, 0xec00, "Microchip LAN9512/LAN9514 Fast Ethernet"),
    fine(0x04e8, 0x4001, "Samsung portable SSD T7"),
    fine(0x04e8, 0x61f5, "Samsung portable SSD T5"),
    fine(0x05e3, 0x0608, "Genesys Logic hub"),
    fine(0x05e3, 0x0610, "Genesys Logic GL852G hub"),
    fine(0x05e3, 0x0626, "Genesys Logic GL3523 hub"),
    fine(0x0bda, 0x0411, "Realtek RTS5411 hub"),
    fine(0x0bda, 0x5411, "Realtek RTS5411 hub"),
    fine(0x0bda, 0x8152, "Realtek RTL8152 Fast Ethernet"),
    fine(0x0bda, 0x8153, "Realtek RTL8153 Gigabit Ethernet"),
    fine(0x0bda, 0x9201, "Realtek RTL9201 SATA bridge"),
    fine(0x0bda, 0x9210, "Realtek RTL9210 NVMe bridge"),
    fine(0x0b95, 0x1790, "ASIX AX88179 Gigabit Ethernet"),
    fine(0x13fd, 0x3940, "Initio SATA bridge"),
    troubled(0x152d, 0x0539, "JMicron JMS539 SATA bridge", STALLS),
    troubled(0x152d, 0x0561, "JMicron JMS561 SATA bridge", STALLS),
    troubled(0x152d, 0x0562, "JMicron JMS562 SATA bridge", STALLS),
    troubled(0x152d, 0x0567, "JMicron JMS567 SATA bridge", STALLS),
    troubled(0x152d, 0x0578, "JMicron JMS578 SATA bridge", STALLS),
    fine(0x152d, 0x0580, "JMicron JMS580 SATA bridge"),
    troubled(0x152d, 0x0583, "JMicron JMS583 NVMe bridge", STALLS),
    fine(0x152d, 0x0586, "JMicron JMS586 NVMe bridge"),
    troubled(0x152d, 0x1561, "JMicron JMS561 SATA bridge", STALLS),
    troubled(0x152d, 0xa578, "JMicron JMS578 SATA bridge", STALLS),
    troubled(0x152d, 0xa583, "JMicron JMS583 NVMe bridge", STALLS),
    troubled(0x174c, 0x1153, "ASMedia ASM1153 SATA bridge", STALLS),
    troubled(0x174c, 0x1156, "ASMedia ASM1156 SATA bridge", LOST_ROOT),
    fine(0x174c, 0x1351, "ASMedia ASM1351 SATA bridge"),
    fine(0x174c, 0x225c, "ASMedia ASM225CM SATA bridge"),
    fine(0x174c, 0x235c, "ASMedia ASM235CM SATA bridge"),
    fine(0x174c, 0x2362, "ASMedia ASM2362 NVMe bridge"),
    fine(0x174c, 0x2364, "ASMedia ASM2364 NVMe bridge"),
    troubled(0x174c, 0x5106, "ASMedia ASM1051 SATA bridge", IGNORED),
    troubled(0x174c, 0x55aa, "ASMedia ASM1051E/ASM1053E/ASM1153E SATA bridge", STALLS),
    fine(0x1a40, 0x0101, "Terminus hub"),
    fine(0x1a40, 0x0201, "Terminus hub"),
    fine(0x2109, 0x0711, "VIA VL711 SATA bridge"),
    fine(0x2109, 0x0715, "VIA VL715/VL716 SATA bridge"),
    fine(0x2109, 0x0817, "VIA VL817 hub"),
    fine(0x2109, 0x2817, "VIA VL817 hub"),
    fine(0x2109, 0x3431, "VIA hub inside the VL805"),
    fine(0x2537, 0x1066, "Norelsys NS1066 SATA bridge"),
    fine(0x2537, 0x1068, "Norelsys NS1068 SATA bridge"),
];

/// A USB chip by its ids.
pub fn usb_chip(vendor: u16, product: u16) -> Option<&'static UsbChip> {
    USB_CHIPS.iter().find(|chip| (chip.vendor, chip.product) == (vendor, product))
}

/// A USB chip by the ids of a hop ("152d:0578", [`rubus_vocabulary::machine::Hop::chip`]).
pub fn usb_chip_of_ids(ids: &str) -> Option<&'static UsbChip> {
    let (vendor, product) = ids.split_once(':')?;
    usb_chip(parse_id(vendor)?, parse_id(product)?)
}

/// PCI chips on the way to storage: vendor, device, name.
const PCI_CHIPS: &[(u16, u16, &str)] = &[
    (0x1106, 0x3483, "VIA VL805 USB 3 controller"),
    (0x1912, 0x0014, "Renesas uPD720201 USB 3 controller"),
    (0x1912, 0x0015, "Renesas uPD720202 USB 3 controller"),
    (0x197b, 0x0585, "JMicron JMB585 SATA controller"),
    (0x1b21, 0x0612, "ASMedia ASM1061 SATA controller"),
    (0x1b21, 0x1064, "ASMedia ASM1064 SATA controller"),
    (0x1b21, 0x1142, "ASMedia ASM1042A USB 3 controller"),
    (0x1b21, 0x1166, "ASMedia ASM1166 SATA controller"),
    (0x1b21, 0x1182, "ASMedia ASM1182 PCIe switch"),
    (0x1b21, 0x1184, "ASMedia ASM1184 PCIe switch"),
    (0x1b21, 0x1242, "ASMedia ASM1142 USB 3 controller"),
    (0x1b21, 0x1806, "ASMedia ASM1806 PCIe switch"),
    (0x1b21, 0x2142, "ASMedia ASM2142 USB 3 controller"),
    (0x1de4, 0x0001, "Raspberry Pi RP1 I/O controller"),
];

/// A PCI chip's name by its ids.
pub fn pci_chip(vendor: u16, device: u16) -> Option<&'static str> {
    PCI_CHIPS
        .iter()
        .find(|(known_vendor, known_device, _)| (*known_vendor, *known_device) == (vendor, device))
        .map(|(_, _, name)| *name)
}

/// Reads an id as the kernel prints it: four hexadecimal digits, with or without `0x`.
pub fn parse_id(text: &str) -> Option<u16> {
    u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_is_listed_once() {
        let mut ids: Vec<_> = USB_CHIPS.iter().map(|chip| (chip.vendor, chip.product)).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn chips_are_found_by_their_ids() {
        assert_eq!(
            usb_chip(0x152d, 0x0578).map(|chip| (chip.name, chip.uas_trouble.is_some())),
            Some(("JMicron JMS578 SATA bridge", true))
        );
        assert_eq!(usb_chip(1, 1), None);
        assert_eq!(usb_chip_of_ids("152d:0578"), usb_chip(0x152d, 0x0578));
        assert_eq!(usb_chip_of_ids("152d"), None);
        assert_eq!(pci_chip(0x1106, 0x3483), Some("VIA VL805 USB 3 controller"));
        assert_eq!(parse_id("0x1106\n"), Some(0x1106));
        assert_eq!(parse_id("152d"), Some(0x152d));
        assert_eq!(parse_id("x"), None);
    }
}
