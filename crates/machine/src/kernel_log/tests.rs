//! Whole logs and what they come to. The logs are written after public reports, with figures of their own.

use rubus_vocabulary::kernel_log::TroubleKind;

use super::judge::Cause;
use super::{judge, troubles};

/// What a log comes to: the part, the cause, and whether it is failing.
pub(super) fn judged(log: &str) -> Vec<(String, Cause, bool)> {
    let found = judge(&troubles(log));
    found.into_iter().map(|health| (health.part, health.cause, health.is_failing)).collect()
}

fn one(part: &str, cause: Cause, is_failing: bool) -> Vec<(String, Cause, bool)> {
    vec![(part.to_string(), cause, is_failing)]
}

#[test]
fn a_card_that_fails_is_named() {
    let log = "\
[  353.007873] mmcblk0: error -110 transferring data, sector 1870120, nr 8, cmd response 0x900, card status 0x80b00
[  353.009289] mmcblk0: retrying using single block read
[  353.107873] blk_update_request: I/O error, dev mmcblk0, sector 1870120 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0
[  353.207873] EXT4-fs error (device mmcblk0p2): __ext4_get_inode_loc:4801: inode #8278: block 32808: comm apt: unable to read itable block";
    assert_eq!(judged(log), one("mmcblk0", Cause::Disk, true));
    let read_only = "[    1.204211] mmcblk0: mmc0:aaaa SL16G 14.8 GiB (ro)";
    assert_eq!(judged(read_only), [], "its lock may be on");
    let was_writable = format!("[    1.1] mmcblk0: mmc0:aaaa SL16G 14.8 GiB\n{read_only}");
    assert_eq!(judged(&was_writable), one("mmcblk0", Cause::Disk, true));
    let slow: String = (0..8)
        .map(|n| {
            let at = 192 + 10 * n;
            format!(
                "[  {at}.866128] mmc0: final write to SD card still running\n[  {at}.874301] mmc0: Timeout waiting for hardware interrupt - cmd12.\n"
            )
        })
        .collect();
    assert_eq!(judged(&slow), one("mmcblk0", Cause::Disk, false));
    let gone: String = (0..5)
        .map(|n| {
            format!(
                "2026-03-02 10:30:3{n} err kernel[]: [   6{n}.1] mmc0: card never left busy state\n"
            )
        })
        .collect();
    assert_eq!(judged(&gone), one("mmcblk0", Cause::Disk, false));
}

const SSD_FOUND: &str = "\
[    2.100000] usb 2-1: new SuperSpeed Gen 1 USB device number 2 using xhci_hcd
[    2.130000] usb 2-1: New USB device found, idVendor=152d, idProduct=0578, bcdDevice= 1.00
[    2.140000] usb 2-1: SerialNumber: 0000AB1236AA
[    2.150000] scsi host0: uas
[    2.160000] scsi 0:0:0:0: Direct-Access     JMicron  Tech             0100 PQ: 0 ANSI: 6
[    2.170000] sd 0:0:0:0: [sda] 468862128 512-byte logical blocks: (240 GB/224 GiB)
[    2.180000] sd 0:0:0:0: [sda] Attached SCSI disk
";

#[test]
fn a_usb_disk_with_trouble_has_its_likely_cause() {
    let aborts = "\
[ 6382.291188] sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT
[ 6382.291214] sd 0:0:0:0: [sda] tag#5 CDB: opcode=0x2a 2a 00 19 56 48 00 00 04 00 00
[ 6382.315191] scsi host0: uas_eh_device_reset_handler start
[ 6382.643282] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd
[ 6382.668578] scsi host0: uas_eh_device_reset_handler success";
    assert_eq!(judged(&format!("{SSD_FOUND}{aborts}")), one("sda", Cause::Uas, false));
    assert_eq!(judged(aborts), one("sda", Cause::Uas, false), "without how it was found");

    let supply = format!("{SSD_FOUND}[ 6300.1] Under-voltage detected! (0x00050005)\n{aborts}");
    assert_eq!(judged(&supply), one("sda", Cause::Supply, false));

    let falls_off = "\
[  900.1] usb 2-1: USB disconnect, device number 2
[  900.2] blk_update_request: I/O error, dev sda, sector 123456 op 0x1:(WRITE) flags 0x800
[  900.3] Buffer I/O error on dev sda1, logical block 15176, lost async page write
[  900.4] EXT4-fs (sda1): Remounting filesystem read-only";
    assert_eq!(judged(&format!("{SSD_FOUND}{falls_off}")), one("sda", Cause::WentAway, true));

    let wobbles = "\
[  900.1] usb 2-1: USB disconnect, device number 2
[  901.2] usb 2-1: new SuperSpeed Gen 1 USB device number 3 using xhci_hcd
[  901.3] scsi host0: uas
[  901.4] sd 0:0:0:0: [sdb] Attached SCSI disk
[  950.1] usb 2-1: USB disconnect, device number 3
[  951.2] usb 2-1: new SuperSpeed Gen 1 USB device number 4 using xhci_hcd";
    assert_eq!(judged(&format!("{SSD_FOUND}{wobbles}")), one("sda", Cause::Connection, false));

    let cable = "\
[  500.1] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd
[  505.1] usb 2-1: device descriptor read/8, error -110
[  510.1] usb 2-1: device not accepting address 2, error -71
[  511.1] sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK cmd_age=30s
[  511.2] I/O error, dev sda, sector 976773 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
    assert_eq!(judged(&format!("{SSD_FOUND}{cable}")), one("sda", Cause::Connection, true));

    let medium = "\
[  600.1] sd 0:0:0:0: [sda] tag#0 Sense Key : Medium Error [current]
[  600.2] sd 0:0:0:0: [sda] tag#0 Add. Sense: Unrecovered read error
[  600.3] critical medium error, dev sda, sector 13578290 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
    assert_eq!(judged(&format!("{SSD_FOUND}{cable}\n{medium}")), one("sda", Cause::Disk, true));
}

#[test]
fn sata_nvme_and_filesystems_have_theirs() {
    let medium = "\
Feb 11 13:27:33 pc kernel: [ 3498.048486] ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0
Feb 11 13:27:33 pc kernel: [ 3498.048512] ata3.00: failed command: READ FPDMA QUEUED
Feb 11 13:27:33 pc kernel: [ 3498.048541] ata3.00: error: { UNC }";
    assert_eq!(judged(medium), one("ata3", Cause::Disk, true));
    let cable = "\
[ 7395.936692] ata4.00: exception Emask 0x10 SAct 0xe000 SErr 0x280100 action 0x6 frozen
[ 7395.936701] ata4.00: irq_stat 0x08000000, interface fatal error
[ 7395.936703] ata4: SError: { UnrecovData 10B8B BadCRC }
[ 7395.936719] ata4: hard resetting link";
    assert_eq!(judged(cable), one("ata4", Cause::Connection, false));
    let nvme = "\
[ 1000.1] nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10
[ 1000.2] nvme nvme0: Disabling device after reset failure: -19
[ 1000.3] I/O error, dev nvme0n1, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
    assert_eq!(judged(nvme), one("nvme0", Cause::Connection, true));
    let filesystem = "\
[    5.1] EXT4-fs (mmcblk0p2): warning: mounting fs with errors, running e2fsck is recommended
[  305.1] EXT4-fs (mmcblk0p2): error count since last fsck: 6";
    assert_eq!(judged(filesystem), one("mmcblk0", Cause::Filesystem, false));
    let supply = "[   33.271502] hwmon hwmon1: Undervoltage detected!\n[   37.3] hwmon hwmon1: Voltage normalised";
    assert_eq!(judged(supply), one("", Cause::Supply, false));
}

#[test]
fn logs_of_healthy_machines_raise_no_alarm() {
    let start = "\
[    0.742000] mmc-bcm2835 3f300000.mmc: mmc_debug:0 mmc_debug2:0
[    0.933043] mmc1: queuing unknown CIS tuple 0x80 (2 bytes)
[    1.041434] mmc0: sdhost-bcm2835 loaded - DMA enabled (>1)
[    1.050000] mmc0: host does not support reading read-only switch, assuming write-enable
[    1.060000] mmc0: new high speed SDHC card at address aaaa
[    1.070000] mmcblk0: mmc0:aaaa SL16G 14.8 GiB
[    1.080000]  mmcblk0: p1 p2
[    1.200000] EXT4-fs (mmcblk0p2): INFO: recovery required on readonly filesystem
[    1.300000] EXT4-fs (mmcblk0p2): orphan cleanup on readonly fs
[    1.400000] EXT4-fs (mmcblk0p2): recovery complete
[    9.400000] FAT-fs (mmcblk0p1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.
[    9.500000] blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0";
    let keyboard = "\
[  100.1] usb 1-1.3: USB disconnect, device number 5
[  160.1] usb 1-1.3: new low-speed USB device number 6 using xhci_hcd
[  170.1] usb 1-1.3: USB disconnect, device number 6
[  180.1] usb 1-1.3: new low-speed USB device number 7 using xhci_hcd";
    let unplugged = "[  900.1] sd 0:0:0:0: [sda] Synchronizing SCSI cache\n[  900.2] usb 2-1: USB disconnect, device number 2";
    let once = "[    1.1] mmc0: error -84 whilst initialising SD card\n[    2.1] mmc0: new high speed SDHC card at address aaaa";
    let reset_at_start = format!(
        "{SSD_FOUND}[    2.9] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd"
    );
    let no_trim = "[   50.1] critical target error, dev sda, sector 2048 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0";
    let corrected = "[    3.1] pcieport 0000:00:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)";
    let others = "Feb 11 13:27:33 pi backup[512]: Buffer I/O error on dev sda1, logical block 5 was the message";
    let unplugged = format!("{SSD_FOUND}{unplugged}");
    let logs: [&str; 8] =
        [start, keyboard, &unplugged, once, &reset_at_start, no_trim, corrected, others];
    for log in logs {
        assert_eq!(judged(log), [], "{log}");
    }
}

#[test]
fn times_are_those_of_the_first_and_the_last_line() {
    let log = "[   10.5] usb 1-1: device descriptor read/64, error -71\n[   20.5] usb 1-1: device descriptor read/64, error -71";
    let found = troubles(log);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].times, found[0].first_s, found[0].last_s), (2, Some(10.5), Some(20.5)));
}

#[test]
fn a_sata_port_and_the_only_failing_disk_are_one_and_two_ports_are_not_guessed() {
    let one_port = "ata3.00: error: { UNC }\nI/O error, dev sda, sector 9 op 0x0:(READ)";
    assert_eq!(judged(one_port), one("sda", Cause::Disk, true));
    let two_ports = format!("ata4.00: error: {{ UNC }}\n{one_port}");
    let parts: Vec<String> = judged(&two_ports).into_iter().map(|(part, ..)| part).collect();
    assert_eq!(parts, ["ata3", "ata4", "sda"]);
    let on_usb = "ata3.00: error: { UNC }\nsd 6:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT\n\
                  I/O error, dev sda, sector 9 op 0x0:(READ)";
    let parts: Vec<String> = judged(on_usb).into_iter().map(|(part, ..)| part).collect();
    assert_eq!(parts, ["ata3", "sda"]);
}

#[test]
fn no_advice_names_a_device_file_that_does_not_exist() {
    let log = "ata3.00: error: { UNC }\nmd/raid1:md0: Disk failure on sdb1, disabling device.";
    for health in judge(&troubles(log)) {
        let fix = health.advice().fix;
        assert!(!fix.contains("/dev/ata") && !fix.contains("/dev/md"), "{fix}");
    }
}

#[test]
fn xfs_that_a_user_shut_down_writes_no_more_and_is_well() {
    let error = "[ 39.2] XFS (sdb1): xfs_log_force: error -5 returned.";
    assert_eq!(judged(error), one("sdb", Cause::Filesystem, false));
    let down = "[ 9.1] XFS (sdb1): User initiated shutdown received. Shutting down filesystem";
    assert_eq!(judged(&format!("{down}\n{error}")), []);
    let other = error.replace("sdb1", "sdc1");
    assert_eq!(judged(&format!("{down}\n{other}")), one("sdc", Cause::Filesystem, false));
    let again = format!("{down}\n[ 20.1] XFS (sdb1): Mounting V5 Filesystem\n{error}");
    assert_eq!(judged(&again), one("sdb", Cause::Filesystem, false));
}

#[test]
fn a_link_that_damages_commands_is_to_blame_and_one_that_a_disk_was_plugged_into_is_not() {
    let change = "\
[ 5000.1] ata5.00: exception Emask 0x10 SAct 0x7e000 SErr 0x40d0000 action 0xe frozen
[ 5000.2] ata5.00: irq_stat 0x00000040, connection status changed
[ 5000.3] ata5: SError: { PHYRdyChg CommWake 10B8B DevExch }";
    assert_eq!(judged(change), [], "a disk that was plugged in");
    let failed = "\
[ 5000.4] ata5.00: failed command: WRITE FPDMA QUEUED
[ 5000.5]          res 40/00:68:98:7e:4c/00:00:00:00:00/40 Emask 0x10 (ATA bus error)";
    let twice = format!("{change}\n{failed}\n{}", failed.replace("5000", "5900"));
    assert_eq!(judged(&twice), one("ata5", Cause::Connection, false));
    let lost = "[ 5001.1] print_req_error: I/O error, dev sdf, sector 26643040 flags 700";
    assert_eq!(judged(&format!("{twice}\n{lost}")), one("sdf", Cause::Connection, true));
    let device = twice.replace("0x10 (ATA bus error)", "0x1 (device error)");
    assert_eq!(judged(&device), [], "not the wire");
    let words =
        "[ 21.1] ata2.01: SError: { HostInt 10B8B }\n[ 81.1] ata2.01: SError: { HostInt 10B8B }";
    assert_eq!(judged(words), one("ata2", Cause::Connection, false));
}

#[test]
fn a_broken_protocol_is_the_links_unless_the_disk_was_asked_for_its_health() {
    let violated = |command: &str| -> String {
        let once = |n: u32| {
            format!(
                "[ {n}00.1] ata3.00: exception Emask 0x2 SAct 0x0 SErr 0x0 action 0x6\n\
                 [ {n}00.2] ata3.00: failed command: {command}\n"
            )
        };
        (7..10).map(once).collect()
    };
    assert_eq!(judged(&violated("READ DMA")), one("ata3", Cause::Connection, false));
    assert_eq!(judged(&violated("SMART")), []);
}

#[test]
fn a_disk_that_the_kernel_gives_up_was_silent_and_one_that_was_pulled_was_not() {
    let given_up = "\
[ 866.1] ata1: limiting SATA link speed to 3.0 Gbps
[ 871.1] ata1.00: disabled
[ 871.2] blk_update_request: I/O error, dev sda, sector 2101312 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 0";
    assert_eq!(judged(given_up), one("sda", Cause::NoAnswer, true));
    let pulled = |at: u32, words: &str| {
        format!(
            "[ {at}.1] ata4: SATA link down (SStatus 0 SControl 300)\n[ {at}.2] ata4.00: {words}\n\
             [ {at}.9] ata4: SATA link up 6.0 Gbps (SStatus 133 SControl 300)\n"
        )
    };
    let both = format!("{}{}", pulled(900, "disabled"), pulled(1900, "disable device"));
    assert_eq!(judged(&both), []);
    let silent = both.replace("SATA link down (SStatus 0", "SATA link up 1.5 Gbps (SStatus 113");
    assert_eq!(judged(&silent), one("ata4", Cause::NoAnswer, false));
    let removed = |at: u32| {
        format!(
            "[ {at}.1] sd 3:0:0:0: [sdb] Synchronizing SCSI cache\n[ {at}.2] sd 3:0:0:0: [sdb] Stopping disk\n\
             [ {at}.8] ata4.00: disable device\n"
        )
    };
    assert_eq!(judged(&format!("{}{}", removed(900), removed(8900))), []);
}

const CONTROLLER_STOPS: &str = "\
[ 600.1] xhci_hcd 0000:02:00.0: xHCI host not responding to stop endpoint command
[ 600.2] xhci_hcd 0000:02:00.0: xHCI host controller not responding, assume dead
[ 600.3] xhci_hcd 0000:02:00.0: HC died; cleaning up
";

#[test]
fn a_disk_that_fails_when_a_usb_controller_stops_is_behind_it_unless_it_is_known_elsewhere() {
    let lost = |at: u32| {
        format!(
            "[ {at}.4] I/O error, dev sda, sector 27943 op 0x0:(READ) flags 0x84700 phys_seg 3 prio class 2\n"
        )
    };
    let stops = CONTROLLER_STOPS;
    assert_eq!(judged(&format!("{stops}{}", lost(600))), one("sda", Cause::Controller, true));
    assert_eq!(judged(&format!("{}{stops}", lost(595))), one("sda", Cause::Controller, true));
    assert_eq!(judged(&format!("{stops}{}", lost(9000))), one("sda", Cause::Disk, true));
    let directory = "[ 603.7] EXT4-fs warning (device sda1): htree_dirblock_to_tree:1082: inode #2: lblock 0: comm rsync: error -5 reading directory block";
    assert_eq!(judged(&format!("{stops}{directory}")), one("sda", Cause::Controller, true));
    let elsewhere = "\
[ 1.1] scsi host0: ahci
[ 1.2] scsi 0:0:0:0: Direct-Access     ATA      WDC WD10EZEX    1A01 PQ: 0 ANSI: 5
[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk
";
    let known = format!("{elsewhere}{stops}{}", lost(600));
    assert_eq!(judged(&known), one("sda", Cause::Disk, true));
    let ports = "[ 9.2] ata2.00: error: { UNC }\n[ 9.3] ata3.00: error: { UNC }\n";
    let on_port = format!("{ports}{stops}{}", lost(600));
    assert!(judged(&on_port).contains(&("sda".to_string(), Cause::Disk, true)), "disks on SATA");
}

#[test]
fn a_command_that_uas_lost_at_a_port_is_the_only_failing_disks() {
    let lost = "[ 595.4] I/O error, dev sda, sector 67153 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2";
    let port = "[ 590.2] usb 4-1: cmd cmplt err -71";
    assert_eq!(judged(&format!("{port}\n{lost}")), one("sda", Cause::Uas, true));
    let two = format!("{port}\n{lost}\n{}", lost.replace("sda", "sdb"));
    let causes: Vec<Cause> = judged(&two).into_iter().map(|(_, cause, _)| cause).collect();
    assert_eq!(causes, [Cause::Disk, Cause::Disk], "which of the two is not known");
}

#[test]
fn too_much_current_of_a_mouse_once_is_no_fault_and_again_and_again_it_is() {
    let mouse = "\
[ 176.2] hub 3-0:1.0: over-current change on port 1
[ 176.3] usb 3-1: USB disconnect, address 3
[ 176.5] usb 3-1: new low speed USB device using uhci_hcd and address 4
";
    assert_eq!(judged(mouse), []);
    assert_eq!(judged(&mouse.replace("low speed", "high speed")), one("", Cause::Supply, false));
    assert_eq!(judged(&mouse.repeat(3)), one("", Cause::Supply, false));
}

#[test]
fn a_card_that_did_not_resume_is_in_its_slot() {
    let timeouts: String = (0..6)
        .map(|n| format!("[ 11{n}.1] mmc1: Timeout waiting for hardware interrupt.\n"))
        .collect();
    assert_eq!(judged(&timeouts), [], "an empty slot");
    let resume = "[ 101.9] mmc1: error -110 doing runtime resume\n";
    assert_eq!(judged(&format!("{resume}{timeouts}")), one("mmcblk1", Cause::Disk, false));
    assert_eq!(judged(resume), [], "once");
}

#[test]
fn writes_that_a_filesystem_on_luks_or_lvm_lost_are_its_own() {
    let lost = "[ 20.1] EXT4-fs warning (device dm-1): ext4_end_bio:316: I/O error -19 writing to inode 102 starting block 144)";
    assert_eq!(judged(lost), one("dm-1", Cause::Filesystem, false));
    let below =
        "[ 20.2] I/O error, dev sda, sector 8 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2";
    assert_eq!(judged(&format!("{lost}\n{below}")), one("sda", Cause::Disk, true));
    assert_eq!(
        judged("[ 9.1] Buffer I/O error on dev dm-5, logical block 99, async page read"),
        []
    );
}

#[test]
fn a_sata_disk_that_loses_its_link_while_it_is_written_has_a_bad_connection() {
    let gone = "\
[  900.1] ata2: exception Emask 0x10 SAct 0x0 SErr 0x4090000 action 0xe frozen
[  900.2] ata2: SATA link down (SStatus 0 SControl 300)
[  905.3] ata2.00: disabled
";
    let lost = "[  905.4] I/O error, dev sdb, sector 128 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2\n";
    assert_eq!(judged(&format!("{gone}{lost}")), one("sdb", Cause::Connection, true));
    assert_eq!(judged(gone), [], "pulled out in peace");
    let late = lost.replace("905.4", "2905.4");
    assert_eq!(judged(&format!("{gone}{late}")), one("sdb", Cause::Disk, true), "another matter");
}

#[test]
fn a_link_with_errors_has_the_name_of_its_disk_where_the_log_has_it() {
    let found = "[    1.1] nvme nvme0: pci function 0000:01:00.0\n";
    let errors: String = (0..30)
        .map(|n| {
            format!(
                "[   {n}.5] nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
            )
        })
        .collect();
    let gone = "[   40.1] nvme nvme0: Disabling device after reset failure: -19\n";
    assert_eq!(judged(&errors), one("0000:01:00.0", Cause::Connection, false));
    assert_eq!(judged(&format!("{found}{errors}")), one("nvme0", Cause::Connection, false));
    assert_eq!(judged(&format!("{found}{errors}{gone}")), one("nvme0", Cause::Connection, true));
}

#[test]
fn an_nvme_disk_that_fails_when_its_slot_loses_the_link_has_a_bad_connection() {
    let down = "\
[  700.1] pcieport 0000:00:1c.4: pciehp: Slot(12): Link Down
[  700.2] pcieport 0000:00:1c.4: pciehp: Slot(12): Card not present
";
    let failed = "[  700.3] I/O error, dev nvme0n1, sector 8 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2\n";
    assert_eq!(judged(&format!("{down}{failed}")), one("nvme0", Cause::Connection, true));
    assert_eq!(judged(down), [], "unplugged in peace");
    let late = failed.replace("700.3", "900.3");
    assert_eq!(judged(&format!("{down}{late}")), one("nvme0", Cause::Disk, true), "another matter");
    let other = failed.replace("nvme0n1", "sda");
    assert_eq!(judged(&format!("{down}{other}")), one("sda", Cause::Disk, true), "another disk");
}

#[test]
fn what_waits_for_one_silence_of_a_server_counts_once() {
    let silences = |log: &str| {
        let silent = troubles(log).into_iter().filter(|it| it.kind == TroubleKind::ServerSilent);
        silent.map(|it| it.times).sum::<u64>()
    };
    let at = |seconds: u32| format!("[ {seconds}.0] nfs: server nas not responding, still trying");
    let log = |times: &[u32]| times.iter().map(|s| at(*s)).collect::<Vec<_>>().join("\n");
    assert_eq!(silences(&log(&[300, 301, 302, 360])), 1);
    assert_eq!(silences(&log(&[300, 2000, 4000])), 3);
}
