//! Logs of machines whose trouble found its cause, and logs of healthy machines with lines that look alarming.
//!
//! Each log is written by hand after what a public report told (forums and trackers of Raspberry Pi, Home Assistant OS, Armbian, DietPi,
//! umbrel, Arch Linux, OpenWrt, Gentoo, Bela): the messages are the kernel's, the numbers, names and times are not those of the reports.

use super::judge::Cause::{self, *};
use super::tests::judged;

/// The smallest share of the logs whose cause must be named rightly.
const MIN_RIGHT: f64 = 0.9;

/// What it was, the log, the part, and the cause.
type Case = (&'static str, &'static str, &'static str, Cause);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("a card that needed a fresh image every other day",
     "mmcblk0: error -110 transferring data, sector 4711, nr 64, cmd response 0x900, card status 0xb00\n\
      end_request: I/O error, dev mmcblk0, sector 4711\n\
      mmcblk0: error -110 sending stop command, original cmd response 0x900, card status 0xe00", "mmcblk0", Disk),
    ("a card whose commands timed out every few minutes until it was replaced",
     "mmcblk0: r/w command failed, status = 0x80000900\nmmc0: tried to reset card\nmmcblk0: r/w command failed, status = 0x80000900\n\
      mmc0: tried to reset card\nmmcblk0: r/w command failed, status = 0x80000900\nmmc0: tried to reset card", "mmcblk0", Disk),
    ("a dead card in a router that came back only after power-off",
     "mmc0: card never left busy state\nmmc0: error -110 whilst initialising SD card\nmmc0: card never left busy state\n\
      mmc0: error -110 whilst initialising SD card\nmmc0: card never left busy state\nmmc0: error -110 whilst initialising SD card", "mmcblk0", Disk),
    ("a card that switched itself to read-only", "mmcblk0: mmc0:1234 SD32G 29.1 GiB\nmmcblk0: mmc0:1234 SD32G 29.1 GiB (ro)", "mmcblk0", Disk),
    ("bad blocks of an old card under ext4",
     "blk_update_request: I/O error, dev mmcblk0, sector 812345 op 0x0:(READ) flags 0x80700 phys_seg 4 prio class 0\n\
      EXT4-fs error (device mmcblk0p2): __ext4_find_entry:1536: inode #1201: comm cron: reading directory lblock 0", "mmcblk0", Disk),
    ("an external card of a compute module after days of small writes",
     "mmcblk1: error -110 sending stop command, original cmd response 0x900, card status 0x400e00\n\
      I/O error, dev mmcblk1, sector 99 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "mmcblk1", Disk),
    ("a worn card under btrfs",
     "BTRFS warning (device mmcblk0p2): csum failed root 5 ino 300 off 4096 csum 0x11223344 expected csum 0x55667788 mirror 1", "mmcblk0", Disk),
    ("a card that reads with CRC errors",
     "mmcblk0: error -84 transferring data, sector 5, nr 3, cmd response 0x900, card status 0x0\n\
      I/O error, dev mmcblk0, sector 5 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "mmcblk0", Disk),
    ("a card that hung on long writes",
     "mmc0: Timeout waiting for hardware interrupt.\nmmc0: Card stuck in programming state! mmcblk0 card_busy_detect\n\
      mmc0: Timeout waiting for hardware interrupt.\nmmc0: Card stuck in programming state! mmcblk0 card_busy_detect\n\
      mmc0: Timeout waiting for hardware interrupt.", "mmcblk0", Disk),
    ("a weak supply beside a card",
     "Under-voltage detected! (0x00050005)\nmmcblk0: error -110 transferring data, sector 9, nr 8, cmd response 0x900, card status 0x0\n\
      I/O error, dev mmcblk0, sector 9 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "mmcblk0", Supply),
    ("a disk without a supply of its own on a Pi 3",
     "[   31.2] Under-voltage detected! (0x00050000)\n[   90.1] usb 1-1.3: reset high-speed USB device number 6 using dwc_otg\n\
      [   90.2] usb-storage 1-1.3:1.0: USB Mass Storage device detected\n[   95.1] usb 1-1.3: USB disconnect, device number 6\n\
      [   95.2] I/O error, dev sda, sector 77 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "sda", Supply),
    ("a Pi whose lightning bolt came with every spin-up",
     "hwmon hwmon1: Undervoltage detected!\nhwmon hwmon1: Voltage normalised\nhwmon hwmon1: Undervoltage detected!", "", Supply),
    ("three disks on one port", "[  5.0] usb-storage 1-1.3.1:1.0: USB Mass Storage device detected\n[  9.0] usb 1-1-port3: over-current change #4", "", Supply),
    ("a portable SSD that no UAS helped until usb-storage served it",
     "sd 0:0:0:0: [sda] tag#12 uas_eh_abort_handler 0 uas-tag 13 inflight: CMD OUT\n\
      sd 0:0:0:0: [sda] tag#11 uas_eh_abort_handler 0 uas-tag 12 inflight: CMD OUT\n\
      I/O error, dev sda, sector 1024 op 0x1:(WRITE) flags 0x4000 phys_seg 32 prio class 2\n\
      EXT4-fs (sda1): Remounting filesystem read-only", "sda", Uas),
    ("a JMicron bridge that stood still for 30 seconds at a time",
     "sd 0:0:0:0: [sda] tag#2 data cmplt err -75 uas-tag 1 inflight: CMD\nscsi host0: uas_eh_device_reset_handler start\n\
      usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd", "sda", Uas),
    ("a Realtek enclosure behind a hub",
     "sd 1:0:0:0: [sdb] tag#25 uas_eh_abort_handler 0 uas-tag 7 inflight: CMD OUT\nusb 2-2: reset SuperSpeed USB device number 4 using xhci_hcd", "sdb", Uas),
    ("an extension cable",
     "[ 1.0] usb 2-1: new SuperSpeed Gen 1 USB device number 2 using xhci_hcd\n[ 1.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n\
      [ 1.2] scsi host0: usb-storage 2-1:1.0\n[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk\n\
      [ 60.1] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd\n[ 61.1] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd\n\
      [ 62.1] usb 2-1: reset SuperSpeed Gen 1 USB device number 2 using xhci_hcd", "sda", Connection),
    ("a loose plug",
     "[ 1.0] usb 1-1.2: new high-speed USB device number 4 using xhci_hcd\n[ 1.1] usb-storage 1-1.2:1.0: USB Mass Storage device detected\n\
      [ 1.2] scsi host0: usb-storage 1-1.2:1.0\n[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk\n\
      [ 50.1] usb 1-1.2: USB disconnect, device number 4\n[ 51.0] usb 1-1.2: new high-speed USB device number 5 using xhci_hcd\n\
      [ 70.1] usb 1-1.2: USB disconnect, device number 5\n[ 71.0] usb 1-1.2: new high-speed USB device number 6 using xhci_hcd", "sda", Connection),
    ("a cable that could not carry the disk's answers",
     "[ 1.1] usb-storage 2-2:1.0: USB Mass Storage device detected\n[ 1.2] scsi host0: usb-storage 2-2:1.0\n[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk\n\
      [ 9.1] usb 2-2: device descriptor read/8, error -110\n[ 9.2] usb 2-2: device not accepting address 7, error -71\n\
      [ 9.3] usb 2-2: device descriptor read/8, error -110", "sda", Connection),
    ("a hard disk in an enclosure with unreadable sectors",
     "sd 0:0:0:0: [sda] tag#0 Sense Key : Medium Error [current]\ncritical medium error, dev sda, sector 246810 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "sda", Disk),
    ("a NAS disk after two years", "sd 2:0:0:0: [sdc] tag#9 Sense Key : Hardware Error [current]", "sdc", Disk),
    ("a bad sector on SATA", "ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0\nata3.00: error: { UNC }", "ata3", Disk),
    ("a SATA cable", "ata4.00: irq_stat 0x08000000, interface fatal error\nata4: SError: { UnrecovData 10B8B BadCRC }", "ata4", Connection),
    ("a SATA cable with CRC errors", "ata2.00: error: { ICRC ABRT }\nata2.00: error: { ICRC ABRT }\nata2: limiting SATA link speed to 1.5 Gbps", "ata2", Connection),
    ("a disk of a port multiplier that answered no more",
     "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\nata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen", "ata1", NoAnswer),
    ("a flat cable at Gen 3", "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10\nnvme nvme0: Disabling device after reset failure: -19", "nvme0", Connection),
    ("a flat cable that repeats", "nvme nvme0: I/O 17 QID 2 timeout, aborting\nnvme nvme0: I/O 18 QID 2 timeout, aborting", "nvme0", Connection),
    ("a Pi 5 hat that lost its disk", "nvme nvme0: Device not ready; aborting reset, CSTS=0x1", "nvme0", Connection),
    ("a power cut", "EXT4-fs (sda2): warning: mounting fs with errors, running e2fsck is recommended\nEXT4-fs (sda2): error count since last fsck: 12", "sda", Filesystem),
    ("bad bitmaps after a power cut", "EXT4-fs error (device mmcblk0p2): ext4_mb_generate_buddy:747: group 12, block bitmap and bg descriptor inconsistent", "mmcblk0", Filesystem),
    ("a member of an array", "md/raid1:md0: Disk failure on sdb1, disabling device.", "sdb", Disk),
    ("a card in a reader of a Chromebook that took no writes any more",
     "mmcblk1: retrying write for general error\nmmcblk1: card_busy_detect: error sending status cmd, status 0x80900\n\
      VFS: Dirty inode writeback failed for block device mmcblk1p1 (err=-5).\nmmcblk1: retrying write for general error", "mmcblk1", Disk),
    ("a card that was busy for ever under a newer kernel",
     "mmc0: Card stuck being busy! __mmc_poll_for_busy\nmmc0: Card stuck being busy! __mmc_poll_for_busy\n\
      I/O error, dev mmcblk0, sector 31 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "mmcblk0", Disk),
    ("a root filesystem whose journal could not be read after a power cut",
     "EXT4-fs (mmcblk0p2): INFO: recovery required on readonly filesystem\nJBD2: Invalid checksum recovering block 7 in log\n\
      JBD2: recovery failed\nEXT4-fs (mmcblk0p2): error loading journal", "mmcblk0", Filesystem),
    ("a USB stick on a Pi 3 B+ that came back with changed media",
     "usb 1-1.1.2: reset high-speed USB device number 5 using dwc_otg\nsd 0:0:0:0: [sda] tag#0 Sense Key : 0x6 [current]\n\
      print_req_error: I/O error, dev sda, sector 88\nusb 1-1.1.2: reset high-speed USB device number 5 using dwc_otg", "sda", Connection),
    ("a large disk on a Pi 5 that a cable lost",
     "[Sat Mar  2 10:00:50 2024] usb 2-1.3: cmd cmplt err -71\n[Sat Mar  2 10:01:21 2024] sd 4:0:0:0: [sdf] tag#1 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD IN\n\
      [Sat Mar  2 10:01:22 2024] sd 4:0:0:0: Device offlined - not ready after error recovery\n\
      [Sat Mar  2 10:01:22 2024] I/O error, dev sdf, sector 44 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2", "sdf", Uas),
    ("a USB controller that died under load",
     "xhci_hcd 0000:01:00.0: xHCI host controller not responding, assume dead\nxhci_hcd 0000:01:00.0: HC died; cleaning up\n\
      usb 2-2: USB disconnect, device number 2\nprint_req_error: I/O error, dev sda, sector 66\n\
      Buffer I/O error on dev sda, logical block 66, lost async page write", "sda", Controller),
    ("a bad sector on SATA whose port has no disk in the log",
     "ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0\nata3.00: error: { UNC }\nsd 2:0:0:0: [sda]  Sense Key : Medium Error [current] [descriptor]\n\
      end_request: I/O error, dev sda, sector 99", "sda", Disk),
    ("a mirror that lost a disk with bad sectors",
     "ata2.00: error: { UNC }\nI/O error, dev sdb, sector 12 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n\
      md/raid1:md0: Disk failure on sdb1, disabling device.\nmd/raid1:md0: Operation continuing on 1 devices.", "sdb", Disk),
    ("an NVMe disk that could not read a place",
     "nvme0n1: I/O Cmd(0x2) @ LBA 4711, 8 blocks, I/O Error (sct 0x2 / sc 0x81) MORE DNR", "nvme0", Disk),
    ("a port that a hub overloaded",
     "usb usb2-port1: over-current condition\nusb 2-1: USB disconnect, device number 2\nI/O error, dev sda, sector 5 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "sda", Supply),
    ("a bridge whose disk is broken",
     "sd 0:0:0:0: [sda] tag#3 Sense Key : Hardware Error [current]\nsd 0:0:0:0: [sda] tag#3 Add. Sense: Internal target failure\n\
      critical target error, dev sda, sector 3 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "sda", Disk),
    ("an undersized supply of a Pi 4 with an SSD",
     "hwmon hwmon1: Undervoltage detected!\nusb 2-1: USB disconnect, device number 2\nsd 0:0:0:0: [sda] Synchronize Cache(10) failed: Result: hostbyte=0x01 driverbyte=0x00", "", Supply),
    ("btrfs that could not write a transaction out", "BTRFS: error (device sda2) in btrfs_commit_transaction:2271: errno=-5 IO failure (Error while writing out transaction)", "sda", Filesystem),
    ("F2FS on a card after a power cut", "F2FS-fs (mmcblk0p2): access invalid blkaddr:4294967295", "mmcblk0", Filesystem),
    ("a disk that was pulled while it was written to",
     "[ 1.1] usb-storage 1-1.4:1.0: USB Mass Storage device detected\n[ 1.2] scsi host0: usb-storage 1-1.4:1.0\n[ 1.3] sd 0:0:0:0: [sda] Attached SCSI disk\n\
      [ 80.1] usb 1-1.4: USB disconnect, device number 5\n[ 80.2] Buffer I/O error on dev sda1, logical block 0, lost sync page write", "sda", WentAway),
];

#[rustfmt::skip]
const HEALTHY: &[&str] = &[
    "mmc0: problem reading SD Status register.\nmmc0: error -84 whilst initialising SD card\nmmc0: error -84 whilst initialising SD card\nmmc0: error -84 whilst initialising SD card\nmmc0: new high speed SDHC card at address 59b4",
    "mmc1: queuing unknown CIS tuple 0x80 (7 bytes)\nmmc1: new high speed SDIO card at address 0001",
    "mmc1: error -110 whilst initialising SDIO card",
    "brcmfmac: brcmf_c_process_txcap_blob: no txcap_blob available (err=-2)\nbrcmfmac mmc1:0001:1: Direct firmware load for brcm/x.bin failed with error -2",
    "brcmfmac: CONSOLE: sp+2c4 0082f215\nieee80211 phy0: brcmf_cfg80211_get_tx_power: error (-5)\nmmc1: card 0001 removed",
    "Bluetooth: hci0: Frame reassembly failed (-84)",
    "EXT4-fs (mmcblk0p2): INFO: recovery required on readonly filesystem\nEXT4-fs (mmcblk0p2): write access will be enabled during recovery\nEXT4-fs (mmcblk0p2): orphan cleanup on readonly fs\nEXT4-fs (mmcblk0p2): 3 orphan inodes deleted\nEXT4-fs (mmcblk0p2): recovery complete",
    "EXT4-fs (sda1): warning: maximal mount count reached, running e2fsck is recommended",
    "EXT4-fs (sda1): mounting ext3 file system using the ext4 subsystem",
    "EXT4-fs (sda1): VFS: Can't find ext4 filesystem",
    "FAT-fs (mmcblk0p1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
    "GPT:Primary header thinks Alt. header is not at the end of the disk.\nGPT:Alternate GPT header not at the end of the disk.\nGPT: Use GNU Parted to correct GPT errors.",
    "usb 2-1: UAS is ignored for this device, using usb-storage instead\nusb-storage 2-1:1.0: Quirks match for vid 152d pid 0578: 1800000",
    "sd 0:0:0:0: [sda] No Caching mode page found\nsd 0:0:0:0: [sda] Assuming drive cache: write through",
    "sd 0:0:0:0: [sda] Optimal transfer size 33553920 bytes not a multiple of preferred minimum block size (4096 bytes)",
    "critical target error, dev sdb, sector 377802 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0",
    "sd 0:0:0:0: [sda] tag#20 Sense Key : Illegal Request [current]\nsd 0:0:0:0: [sda] tag#20 Add. Sense: Logical block address out of range",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0\nBuffer I/O error on dev fd0, logical block 0, async page read",
    "Buffer I/O error on dev sr0, logical block 0, async page read",
    "usb 1-1.3: new low-speed USB device number 4 using xhci_hcd\nusb 1-1.3: USB disconnect, device number 4\nusb 1-1.3: new low-speed USB device number 5 using xhci_hcd\nusb 1-1.3: USB disconnect, device number 5",
    "usb 1-1.2: reset full-speed USB device number 3 using xhci_hcd\ncp210x ttyUSB0: cp210x converter now disconnected from ttyUSB0",
    "hub 1-0:1.0: individual port over-current protection\nhub 1-0:1.0: power on to power good time: 20ms",
    "thermal thermal_zone0: trip point 0 reached\ncpu cpu0: dev_pm_opp_set_rate: failed",
    "i915 0000:00:02.0: [drm] *ERROR* CPU pipe A FIFO underrun",
    "vc4-drm gpu: swiotlb buffer is full (sz: 4096 bytes)",
    "xhci_hcd 0000:01:00.0: hcc params 0x002841eb hci version 0x100 quirks 0x0000030000000890",
    "nvme nvme0: missing or invalid SUBNQN field.\nnvme nvme0: Ignoring bogus Namespace Identifiers\nnvme nvme0: 4/0/0 default/read/poll queues",
    "nvme nvme0: I/O 9 QID 3 timeout, completion polled",
    "pcieport 0000:00:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "ata1: SATA link down (SStatus 0 SControl 300)\nata2.00: configured for UDMA/133\nata2.00: Security Log not supported",
    "ata5: SError: { PHYRdyChg CommWake DevExch }\nata5: hard resetting link\nata5: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "BTRFS info (device sda2): bdev /dev/sda2 errs: wr 0, rd 3, flush 0, corrupt 0, gen 0\nBTRFS info (device sda2): enabling ssd optimizations",
    "BTRFS warning (device sda2): block group 4194304 has wrong amount of free space\nBTRFS warning (device sda2): failed to load free space cache for block group 4194304, rebuilding it now",
    "XFS (sda1): Starting recovery (logdev: internal)\nXFS (sda1): Ending recovery (logdev: internal)",
    "md: requested-resync of RAID array md0\nmd: md0: requested-resync done.",
    "I/O error, dev loop7, sector 0 op 0x0:(READ) flags 0x80700",
    "mmc1: new high speed SDIO card at address 0001\nmmc1: timeout waiting for hardware interrupt.\nmmc1: timeout waiting for hardware interrupt.\nmmc1: timeout waiting for hardware interrupt.\nmmc1: timeout waiting for hardware interrupt.\nmmc1: timeout waiting for hardware interrupt.",
    "ata5.00: ATAPI: DVD_RW, 2.18, max UDMA/33\nata5.00: qc timeout (cmd 0xa0)\nata5.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\nata5: soft resetting link",
    "usb 5-1: device descriptor read/64, error -71\nusb 5-1: device descriptor read/64, error -71\nusb 5-1: device not accepting address 31, error -71\nhub 5-0:1.0: unable to enumerate USB device on port 1",
    "sd 1:0:0:0: [sdb] Media removed, stopped polling\nsd 1:0:0:0: [sdb] tag#0 Sense Key : Not Ready [current]\nsd 1:0:0:0: [sdb] tag#0 Add. Sense: Medium not present",
    "loop3: detected capacity change from 0 to 131072\nI/O error, dev loop3, sector 0 op 0x0:(READ) flags 0x80700\nSQUASHFS error: Failed to read block 0x0: -5",
    "F2FS-fs (mmcblk0p2): Mismatch start address, segment0(0) cp_blkaddr(65536)\nF2FS-fs (mmcblk0p2): Can't find valid F2FS filesystem in 1th superblock",
    "smsc95xx 1-1.1:1.0 eth0: Failed to read reg index 0x00000114: -110\nmmc1: Controller never released inhibit bit(s).",
    "usb 2-1: Disable of device-initiated U1 failed.\nusb 2-1: Disable of device-initiated U2 failed.",
    "sd 0:0:0:0: [sda] Synchronizing SCSI cache\nsd 0:0:0:0: [sda] Synchronize Cache(10) failed: Result: hostbyte=0x01 driverbyte=0x00",
    "INFO: task jbd2/mmcblk0p2-:88 blocked for more than 120 seconds.\n\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.",
    "EXT4-fs (mmcblk0p2): mounted filesystem without journal. Opts: (null)\nJBD2: Invalid checksum recovering data block 9 in log",
    "systemd-journald[160]: File /var/log/journal/x/system.journal corrupted or uncleanly shut down, renaming and replacing.",
];

#[test]
fn nine_of_ten_logs_with_trouble_are_named_by_their_cause() {
    let wrong: Vec<String> = CASES
        .iter()
        .filter_map(|(what, log, part, cause)| {
            let found = judged(log);
            let is_named = found.iter().any(|(of, told, _)| of == part && told == cause);
            (!is_named).then(|| format!("{what}: {found:?}"))
        })
        .collect();
    let right = 1.0 - wrong.len() as f64 / CASES.len() as f64;
    assert!(right >= MIN_RIGHT, "{right:.2} of {}: {wrong:#?}", CASES.len());
}

#[test]
fn no_healthy_log_alarms() {
    let alarmed: Vec<_> = HEALTHY
        .iter()
        .map(|log| (log, judged(log)))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert!(alarmed.is_empty(), "{alarmed:#?}");
}
