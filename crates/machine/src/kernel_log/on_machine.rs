//! What the kernel's log comes to on a machine whose disks and supply are known.

use rubus_vocabulary::kernel_log::{KernelTrouble, TroubleKind};
use rubus_vocabulary::machine::{BlockDevice, BlockKind, Machine};

use super::judge::{Cause, Health, judge};

/// What the log since the last start comes to.
pub fn of_machine(machine: &Machine) -> Vec<Health> {
    let troubles = machine.kernel_log.value().map(Vec::as_slice).unwrap_or_default();
    of_log(machine, troubles)
}

/// What trouble in a log of this machine comes to, with the disks' own names where the log has a port or controller alone. The
/// firmware sees low voltage that the kernel was too busy to log: it counts beside trouble with a disk.
pub fn of_log(machine: &Machine, troubles: &[KernelTrouble]) -> Vec<Health> {
    let mut found = judge(troubles);
    if machine.power.has_sagged() && found.iter().any(|health| health.cause != Cause::Supply) {
        let mut with_firmware = troubles.to_vec();
        with_firmware.push(KernelTrouble {
            kind: TroubleKind::Undervoltage,
            part: String::new(),
            times: 1,
            first_s: None,
            last_s: None,
        });
        // A supply that is alone to blame is told by the rules of the supply.
        found = judge(&with_firmware).into_iter().filter(|one| !one.part.is_empty()).collect();
    }
    for health in &mut found {
        health.part = name(machine, &health.part);
    }
    found
}

/// How many errors the log has since the start of the PCI Express link to a disk, `link` by the PCI address of its lower end:
/// transfers that were repeated or lost on that domain, also those told by the name of an NVMe disk there, and answers that an NVMe
/// disk owes.
///
/// # Errors
/// Why the log is not known.
pub fn link_errors(machine: &Machine, disk: &BlockDevice, link: &str) -> Result<u64, String> {
    let log = &machine.kernel_log;
    let troubles = log.value().filter(|_| !log.source().starts_with("/sys/"));
    let troubles = troubles.ok_or_else(|| log.reason().unwrap_or("it was not read").to_string())?;
    let domain = link.split(':').next().unwrap_or_default();
    let number = disk.name.strip_prefix("nvme").and_then(|rest| rest.split('n').next());
    let controller = number.map(|number| format!("nvme{number}"));
    let is_its = |trouble: &&KernelTrouble| match trouble.kind {
        TroubleKind::PcieCorrected | TroubleKind::PcieUncorrected => {
            domain_of(machine, &trouble.part) == Some(domain)
                || controller.as_ref() == Some(&trouble.part)
        }
        TroubleKind::NvmeTimeout | TroubleKind::NvmeGone => {
            controller.as_ref() == Some(&trouble.part)
        }
        _ => false,
    };
    let its = troubles.iter().filter(is_its);
    Ok(its.map(|trouble| trouble.times).fold(0, u64::saturating_add))
}

/// The PCI domain of a function, or of the NVMe controller that has this name.
fn domain_of<'a>(machine: &'a Machine, part: &'a str) -> Option<&'a str> {
    if !part.starts_with("nvme") {
        return part.split(':').next();
    }
    let is_its = |disk: &&BlockDevice| {
        disk.name.strip_prefix(part).is_some_and(|rest| rest.starts_with('n'))
    };
    let hops = machine.block_devices.iter().filter(is_its).flat_map(|disk| &disk.path);
    hops.filter(|hop| hop.id.matches(':').count() == 2).find_map(|hop| hop.id.split(':').next())
}

/// The disk's name where the log has its port or controller alone.
fn name(machine: &Machine, part: &str) -> String {
    let is_of = |id: &str| {
        id == part
            || (part.starts_with("nvme")
                && id.strip_prefix(part).is_some_and(|rest| rest.starts_with('n')))
    };
    let disk =
        machine.block_devices.iter().filter(|device| device.kind == BlockKind::Disk).find(|disk| {
            is_of(&disk.name) || disk.path.iter().rev().take(2).any(|hop| hop.id == part)
        });
    disk.map_or_else(|| part.to_string(), |disk| disk.name.clone())
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::throttling::Throttling;

    use super::*;

    fn cause(word: u32, log: &str) -> Vec<(String, Cause)> {
        let mut machine = rubus_fixtures::pi3_with_usb_ssd();
        machine.power.throttling = Fact::known(Throttling::decode(word), "get_throttled");
        machine.power.undervoltage_alarm = Fact::known(false, "hwmon");
        let found = of_log(&machine, &crate::kernel_log::troubles(log));
        found.into_iter().map(|health| (health.part, health.cause)).collect()
    }

    #[test]
    fn low_voltage_that_only_the_firmware_saw_is_blamed_for_a_disk_that_went_away() {
        let log = "\
[  900.1] usb-storage 1-1.4:1.0: USB Mass Storage device detected
[  900.2] scsi host0: usb-storage 1-1.4:1.0
[  900.3] sd 0:0:0:0: [sda] Attached SCSI disk
[  980.1] usb 1-1.4: USB disconnect, device number 5
[  980.2] I/O error, dev sda, sector 4096 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2";
        assert_eq!(cause(0x0, log), [("sda".to_string(), Cause::WentAway)]);
        assert_eq!(cause(0x50000, log), [("sda".to_string(), Cause::Supply)]);
        assert_eq!(cause(0x50000, "[    1.0] scsi host0: uas"), [], "of a healthy disk");
    }

    #[test]
    fn errors_of_a_link_are_those_of_its_domain_and_of_its_disk() {
        let log = "\
[    5.1] pcieport 0001:00:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)
[    6.1] nvme 0001:01:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)
[    7.1] pcieport 0002:00:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)
[    8.1] nvme nvme0: I/O 5 QID 1 timeout, aborting
[    9.1] nvme nvme1: I/O 5 QID 1 timeout, aborting";
        let mut machine = rubus_fixtures::pi3_with_usb_ssd();
        let mut disk = machine.block_devices[0].clone();
        disk.name = "nvme0n1".into();
        machine.kernel_log = Fact::known(crate::kernel_log::troubles(log), "/dev/kmsg");
        assert_eq!(link_errors(&machine, &disk, "0001:01:00.0"), Ok(3));
        let found = format!("[    1.1] nvme nvme0: pci function 0001:01:00.0\n{log}");
        machine.kernel_log = Fact::known(crate::kernel_log::troubles(&found), "/dev/kmsg");
        assert_eq!(link_errors(&machine, &disk, "0001:01:00.0"), Ok(3), "by its own name");
        machine.kernel_log = Fact::known(Vec::new(), "/sys/fs/ext4");
        assert!(link_errors(&machine, &disk, "0001:01:00.0").is_err(), "counters are no log");
    }

    #[test]
    fn a_controller_is_told_by_the_name_of_its_disk() {
        let log = "\
[    2.1] ata1.00: status: { DRDY ERR }
[   20.1] mmc0: Card stuck in programming state! mmcblk0 card_busy_detect
[   20.2] mmcblk0: error -110 transferring data, sector 8, nr 8, cmd response 0x900, card status 0x0
[   20.3] I/O error, dev mmcblk0, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
        assert_eq!(cause(0x0, log), [("mmcblk0".to_string(), Cause::Disk)]);
    }
}
