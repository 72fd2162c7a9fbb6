//! Whether swap is where it belongs, by the facts alone: one answer for the findings of a survey, for `zswap`, and for advice.

use rubus_vocabulary::machine::device_index::DeviceIndex;
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine, SwapArea};
use rubus_vocabulary::platters::has_platters;

/// The command that weighs the set-ups of swap against each other.
pub const WEIGH: &str = "rubus advise swap";

/// Where swap is, seen from where it could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapPlace {
    /// On disks that take it: compressed memory goes before them.
    OnDisks,
    /// In compressed memory, and no disk of this machine takes swap.
    InMemory,
    /// To be weighed: there is none, it is on a card, a stick or the network, or in memory although a disk takes swap.
    Open,
}

impl SwapPlace {
    /// Of a machine.
    pub fn of(machine: &Machine) -> SwapPlace {
        let index = DeviceIndex::of(machine);
        let areas = &machine.swap.areas;
        let on_disks = areas.iter().filter(|area| !is_memory(&index, area)).count();
        if areas.is_empty() || (on_disks > 0 && on_disks < areas.len()) {
            return SwapPlace::Open;
        }
        if on_disks == 0 {
            let has_disk = machine.block_devices.iter().any(takes_swap);
            return if has_disk { SwapPlace::Open } else { SwapPlace::InMemory };
        }
        let is_bad = |area: &SwapArea| {
            let device = area.device.text().unwrap_or_default();
            index.disks_below(device).into_iter().any(|disk| !takes_swap(disk))
        };
        if areas.iter().any(is_bad) { SwapPlace::Open } else { SwapPlace::OnDisks }
    }

    /// The command of a finding: its own where swap stays where it is, else the one that weighs.
    pub(crate) fn command(machine: &Machine, own: &str) -> String {
        match SwapPlace::of(machine) {
            SwapPlace::OnDisks | SwapPlace::InMemory => own.into(),
            SwapPlace::Open => WEIGH.into(),
        }
    }
}

/// Whether swap on a disk neither stops it nor wears it out: cards, sticks, platters and network disks are none for swap.
pub fn takes_swap(disk: &BlockDevice) -> bool {
    let is_disk = disk.kind == BlockKind::Disk
        && disk.read_only.get() != Some(true)
        && disk.size_bytes.get() != Some(0);
    let is_stick = disk.usb_device().is_some() && disk.removable.get() == Some(true);
    let is_card = disk.mmc.is_some() || disk.name.starts_with("mmcblk");
    is_disk && !is_card && !is_stick && has_platters(disk) != Some(true)
}

/// The value of `vm.swappiness` (0 to 200) where it is meant for disks although all swap is compressed memory: below 100.
/// Advice names a value where this is one and its own is above 100.
pub fn swappiness_for_disks(machine: &Machine) -> Option<u32> {
    let index = DeviceIndex::of(machine);
    let areas = &machine.swap.areas;
    let is_in_memory = !areas.is_empty() && areas.iter().all(|area| is_memory(&index, area));
    let setting = machine.vm.iter().find(|setting| setting.name == "swappiness")?;
    let value = setting.value.text()?.parse::<u32>().ok()?;
    (is_in_memory && value < 100).then_some(value)
}

/// Whether an area is in the memory.
pub(crate) fn is_memory(index: &DeviceIndex<'_>, area: &SwapArea) -> bool {
    let device = area.device.text().and_then(|name| index.device(name));
    device.is_some_and(|device| matches!(device.kind, BlockKind::Zram | BlockKind::Ram))
        || area.path.starts_with("/dev/zram")
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::pi3_with_usb_ssd;
    use rubus_vocabulary::fact::Fact;

    use super::*;

    fn with_areas(devices: &[&str]) -> Machine {
        let mut machine = pi3_with_usb_ssd();
        machine.swap.areas = devices
            .iter()
            .map(|device| SwapArea {
                path: format!("/dev/{device}"),
                kind: "partition".into(),
                size_bytes: 1 << 30,
                used_bytes: 0,
                priority: -2,
                device: Fact::known((*device).into(), "/proc/swaps"),
            })
            .collect();
        machine
    }

    #[test]
    fn swap_in_memory_stays_only_where_no_disk_takes_it() {
        for (devices, place) in [
            (&["sda1"][..], SwapPlace::OnDisks),
            (&["zram0"], SwapPlace::Open),
            (&[], SwapPlace::Open),
            (&["mmcblk0p2"], SwapPlace::Open),
            (&["zram0", "sda1"], SwapPlace::Open),
        ] {
            assert_eq!(SwapPlace::of(&with_areas(devices)), place, "{devices:?}");
        }
        let mut machine = with_areas(&["zram0"]);
        machine.block_devices.retain(|device| !device.name.starts_with("sda"));
        assert_eq!(SwapPlace::of(&machine), SwapPlace::InMemory);
    }

    #[test]
    fn a_stick_and_platters_take_no_swap() {
        let mut machine = pi3_with_usb_ssd();
        let disk = machine.block_devices.iter_mut().find(|device| device.name == "sda");
        let disk = disk.expect("the SSD");
        assert!(takes_swap(disk));
        disk.removable = Fact::known(true, "a file");
        assert!(!takes_swap(disk));
        disk.removable = Fact::known(false, "a file");
        disk.model = Fact::known("ST1000LM035".into(), "a file");
        disk.rotational = Fact::known(true, "a file");
        assert!(!takes_swap(disk));
    }
}
