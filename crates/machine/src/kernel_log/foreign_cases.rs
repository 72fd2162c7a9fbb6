//! Logs that others wrote about: healthy disks whose logs look like trouble, each beside one with trouble that is close to it. The
//! messages are the kernel's, the sectors and the clocks' digits are not those of the reports.

use super::judge::Cause::{self, *};
use super::tests::judged;

/// What it is, the log of a healthy disk, one of a sick disk that is close to it, the part, and the cause.
type Pair = (&'static str, &'static str, &'static str, &'static str, Cause);

#[rustfmt::skip]
const PAIRS: &[Pair] = &[
    ("a card that is locked, and one that takes no writes any more since it was last used",
     "[ 2.1] mmcblk0: mmc0:59b4 SD16G 14.7 GiB (ro)\n[ 2.9] EXT4-fs (mmcblk0p2): mounted filesystem ro with ordered data mode",
     "[ 2.1] mmcblk0: mmc0:59b4 SD16G 14.7 GiB (ro)\n[ 2.9] EXT4-fs (mmcblk0p2): INFO: recovery required on readonly filesystem\n[ 3.0] EXT4-fs (mmcblk0p2): write access unavailable, cannot proceed (try mounting with noload)", "mmcblk0", Disk),
    ("a bridge that answers its first question under UAS, and one that never does",
     "[ 16.1] usb 2-1: new SuperSpeed USB device number 9 using xhci-hcd\n[ 16.2] scsi host0: uas\n[ 16.3] scsi 0:0:0:0: Direct-Access     JMicron  Generic          0106 PQ: 0 ANSI: 6",
     "[ 16.1] usb 2-1: new SuperSpeed USB device number 9 using xhci-hcd\n[ 16.2] scsi host0: uas\n[ 37.1] scsi 0:0:0:0: tag#0 uas_eh_abort_handler 0 uas-tag 1 inflight: CMD IN", "2-1", Uas),
    ("a USB disk below LUKS that was unplugged after its lock, and one under a mounted filesystem",
     "[ 9.2] usb-storage 2-2:1.0: USB Mass Storage device detected\n[ 9.3] scsi host1: usb-storage 2-2:1.0\n[ 9.4] sd 1:0:0:0: [sdb] Attached SCSI disk\n[ 900.1] usb 2-2: USB disconnect, device number 3\n[ 900.2] sd 1:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
     "[ 9.2] usb-storage 2-2:1.0: USB Mass Storage device detected\n[ 9.3] scsi host1: usb-storage 2-2:1.0\n[ 9.4] sd 1:0:0:0: [sdb] Attached SCSI disk\n[ 900.1] usb 2-2: USB disconnect, device number 3\n[ 900.2] sd 1:0:0:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK\n[ 900.3] EXT4-fs (dm-0): I/O error while writing superblock", "sdb", WentAway),
    ("a thin pool that is full, and one whose own data are damaged",
     "[ 50.1] device-mapper: thin: 253:2: switching pool to out-of-data-space (error IO) mode\n[ 50.2] EXT4-fs warning (device dm-4): ext4_end_bio:314: I/O error -28 writing to inode 52 starting block 25)\n[ 50.3] XFS (dm-5): writeback error on sector 1841",
     "[ 50.1] device-mapper: thin: 253:2: switching pool to read-only mode\n[ 50.2] EXT4-fs warning (device dm-4): ext4_end_bio:314: I/O error -5 writing to inode 52 starting block 25)", "dm-4", Filesystem),
    ("a pool that was full and has room again, and what fails in it later",
     "[ 50.1] device-mapper: thin: 253:2: switching pool to out-of-data-space (queue IO) mode\n[ 50.2] XFS (dm-5): writeback error on sector 1841\n[ 55.1] device-mapper: thin: 253:2: switching pool to write mode",
     "[ 50.1] device-mapper: thin: 253:2: switching pool to out-of-data-space (queue IO) mode\n[ 55.1] device-mapper: thin: 253:2: switching pool to write mode\n[ 90.2] XFS (dm-5): writeback error on sector 1841", "dm-5", Filesystem),
    ("a query for the disk's own report that the bridge refuses",
     "[ 12.1] sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_ERROR driverbyte=DRIVER_SENSE\n[ 12.2] sd 0:0:0:0: [sda] tag#0 Sense Key : Hardware Error [current]\n[ 12.3] sd 0:0:0:0: [sda] tag#0 Add. Sense: No additional sense information\n[ 12.4] sd 0:0:0:0: [sda] tag#0 CDB: ATA command pass through(16) 85 06 20 00 00 00 00 00 00 00 00 00 00 00 e5 00",
     "[ 12.1] sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE\n[ 12.2] sd 0:0:0:0: [sda] tag#0 Sense Key : Hardware Error [current]\n[ 12.3] sd 0:0:0:0: [sda] tag#0 Add. Sense: Internal target failure\n[ 12.4] sd 0:0:0:0: [sda] tag#0 CDB: Read(10) 28 00 00 00 08 00 00 00 08 00", "sda", Disk),
    ("the same of a kernel without names",
     "[ 12.1] sd 0:0:0:0: [sda] tag#0 Sense Key : 0x4 [current]\n[ 12.2] sd 0:0:0:0: [sda] tag#0 ASC=0x0 ASCQ=0x0\n[ 12.3] sd 0:0:0:0: [sda] tag#0 CDB: opcode=0x85 85 06 20 00 05 00 fe 00 00 00 00 00 00 40 ef 00",
     "[ 12.1] sd 0:0:0:0: [sda] tag#0 Sense Key : 0x4 [current]\n[ 12.2] sd 0:0:0:0: [sda] tag#0 ASC=0x0 ASCQ=0x0\n[ 12.3] sd 0:0:0:0: [sda] tag#0 CDB: opcode=0x28 28 00 00 00 08 00 00 00 08 00", "sda", Disk),
    ("a scratched disc, after a line of the disk",
     "[ 10.1] sd 0:0:0:0: [sda] Starting disk\n[ 11.1] sr 1:0:0:0: [sr0]\n[ 11.2] Sense Key : Medium Error [current]\n[ 11.3] Add. Sense: No seek complete",
     "[ 10.1] sr 1:0:0:0: [sr0] Attached SCSI CD-ROM\n[ 11.1] sd 0:0:0:0: [sda]\n[ 11.2] Sense Key : Medium Error [current]\n[ 11.3] Add. Sense: Unrecovered read error", "sda", Disk),
    ("a card that was pulled out",
     "[ 60.1] mmc1: new high speed SDHC card at address 0002\n[ 60.2] mmcblk1: mmc1:0002 SD16G 14.8 GiB\n[ 600.1] mmc1: card 0002 removed\n[ 600.2] I/O error, dev mmcblk1, sector 2 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
     "[ 60.1] mmc1: new high speed SDHC card at address 0002\n[ 60.2] mmcblk1: mmc1:0002 SD16G 14.8 GiB\n[ 600.2] I/O error, dev mmcblk1, sector 2 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2\n[ 601.1] mmc1: card 0002 removed", "mmcblk1", Disk),
    ("the card of a camera that was pulled out, and a root card that is gone",
     "[ 600.1] mmc1: card 0002 removed\n[ 600.2] Buffer I/O error on dev mmcblk1p1, logical block 0, async page read",
     "[ 600.1] mmc0: card aaaa removed\n[ 600.2] I/O error, dev mmcblk0, sector 40002 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2\n[ 600.3] EXT4-fs (mmcblk0p2): Remounting filesystem read-only", "mmcblk0", WentAway),
    ("a command queue that stalled once, and one that does so for ever",
     "[ 5.1] mmc0: new ultra high speed SDR104 SDXC card at address aaaa\n[ 900.1] mmc0: cqhci: timeout for tag 30, qcnt 1\n[ 900.2] mmc0: cqhci: ============ CQHCI REGISTER DUMP ===========\n[ 900.3] mmc0: running CQE recovery",
     "[ 5.1] mmc0: new ultra high speed SDR104 SDXC card at address aaaa\n[ 60.1] mmc0: running CQE recovery\n[ 61.1] mmc0: running CQE recovery\n[ 62.1] mmc0: running CQE recovery\n[ 63.1] mmc0: running CQE recovery\n[ 64.1] mmc0: running CQE recovery", "mmcblk0", CommandQueue),
    ("a card of a reader that was pulled out and left its filesystem clean, and one that went away under a write",
     "[ 9.1] mmcblk0: mmc0:b368 SD32G 29.7 GiB\n[ 600.1] mmc0: card b368 removed",
     "[ 9.1] mmcblk0: mmc0:b368 SD32G 29.7 GiB\n[ 600.1] mmc0: card b368 removed\n[ 600.2] EXT4-fs warning (device mmcblk0p2): ext4_end_bio:343: I/O error 10 writing to inode 5819 starting block 6990)\n[ 600.3] Aborting journal on device mmcblk0p2-8.\n[ 600.4] EXT4-fs error (device mmcblk0p2): ext4_journal_check_start:83: comm systemd: Detected aborted journal", "mmcblk0", WentAway),
    ("a SCSI disk that answers queries too late, and one that fails to read so",
     "[ 9.1] sd 3:0:0:0: [sdb] tag#0 timing out command, waited 20s\n[ 99.1] sd 3:0:0:0: [sdb] tag#1 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s\n[ 99.2] sd 3:0:0:0: [sdb] tag#1 CDB: ATA command pass through(16) 85 06 2c 00 00 00 00 00 00 00 00 00 00 00 e5 00",
     "[ 9.1] sd 3:0:0:0: [sdb] tag#0 timing out command, waited 180s\n[ 9.2] I/O error, dev sdb, sector 4096 op 0x0:(READ) flags 0x80700", "sdb", NoAnswer),
    ("a disk of iSCSI whose server was away, and one of this machine",
     "[ 1.1] scsi host3: iSCSI Initiator over TCP/IP\n[ 9.1] sd 3:0:0:0: [sdb] tag#0 timing out command, waited 180s\n[ 9.2] I/O error, dev sdb, sector 4096 op 0x0:(READ) flags 0x80700\n[ 199.1] sd 3:0:0:0: [sdb] tag#0 timing out command, waited 180s\n[ 199.2] I/O error, dev sdb, sector 4104 op 0x0:(READ) flags 0x80700",
     "[ 9.1] sd 3:0:0:0: [sdb] tag#0 timing out command, waited 180s\n[ 9.2] I/O error, dev sdb, sector 4096 op 0x0:(READ) flags 0x80700", "sdb", NoAnswer),
    ("a disk whose iSCSI session ended, in a log that begins later than it, and one that is offline for no such reason",
     "[ 1584.1]  connection4:0: detected conn error (1022)\n[ 1704.9]  session4: session recovery timed out after 120 secs\n[ 1704.9] sd 6:0:0:0: rejecting I/O to offline device\n[ 1704.9] I/O error, dev sdf, sector 401408 op 0x1:(WRITE) flags 0x2004000\n[ 1705.0] sd 6:0:0:0: [sdf] tag#1 CDB: Write(10) 2a 00",
     "[ 1704.9] sd 6:0:0:0: rejecting I/O to offline device\n[ 1704.9] I/O error, dev sdf, sector 401408 op 0x1:(WRITE) flags 0x2004000", "sdf", Disk),
    ("a SCSI disk that an old kernel names by its address",
     "[ 2.3] sd 9:0:0:0: [sdc] Attached SCSI disk\n[ 53836.9] sd 9:0:0:0: timing out command, waited 20s",
     "[ 2.3] sd 9:0:0:0: [sdc] Attached SCSI disk\n[ 53836.9] sd 9:0:0:0: timing out command, waited 180s\n[ 53836.9] end_request: I/O error, dev sdc, sector 66", "sdc", NoAnswer),
    ("an NVMe disk whose commands end with a reset and succeed then, and one whose command fails",
     "[ 9.1] nvme0n1: I/O Cmd(0x2) @ LBA 4711, 8 blocks, I/O Error (sct 0x3 / sc 0x71)\n[ 9.2] nvme0n1: I/O Cmd(0x2) @ LBA 4719, 8 blocks, I/O Error (sct 0x3 / sc 0x71)",
     "[ 9.1] nvme0n1: I/O Cmd(0x2) @ LBA 4711, 8 blocks, I/O Error (sct 0x3 / sc 0x71)\n[ 9.2] I/O error, dev nvme0n1, sector 4711 op 0x0:(READ) flags 0x80700", "nvme0", Connection),
    ("a port of PCI Express that cuts the link to an NVMe disk as it wakes, and one that does so under a read",
     "[ 90.3] nvme nvme0: frozen state error detected, reset controller\n[ 90.9] nvme nvme0: restart after slot reset",
     "[ 90.3] nvme nvme0: frozen state error detected, reset controller\n[ 91.3] I/O error, dev nvme0n1, sector 55 op 0x0:(READ) flags 0x0", "nvme0", Connection),
    ("a SATA command that found no answer once, and one that never does",
     "[ 9.1] ata2.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen\n[ 9.2] ata2.00: failed command: WRITE FPDMA QUEUED\n[ 9.3] ata2: hard resetting link\n[ 9.9] ata2: EH complete",
     "[ 9.1] ata2.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen\n[ 9.2] ata2.00: failed command: WRITE FPDMA QUEUED\n[ 9.3] ata2: hard resetting link\n[ 9.9] ata2: EH complete\n[ 99.1] ata2.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen\n[ 99.2] ata2.00: failed command: WRITE FPDMA QUEUED\n[ 99.3] I/O error, dev sdb, sector 4096 op 0x1:(WRITE) flags 0x800", "sdb", NoAnswer),
    ("a card that was replaced since",
     "[ 0.0] Linux version 6.6\n[ 1.1] mmcblk0: mmc0:aaaa SL16G 14.8 GiB\n[ 9.1] I/O error, dev mmcblk0, sector 8 op 0x0:(READ) flags 0x0\n[ 0.0] Linux version 6.6\n[ 1.1] mmcblk0: mmc0:1234 SR128 119 GiB",
     "[ 0.0] Linux version 6.6\n[ 1.1] mmcblk0: mmc0:aaaa SL16G 14.8 GiB\n[ 9.1] I/O error, dev mmcblk0, sector 8 op 0x0:(READ) flags 0x0\n[ 0.0] Linux version 6.6\n[ 1.1] mmcblk0: mmc0:1234 SL16G 14.8 GiB", "mmcblk0", Disk),
    ("a card that comes up after some tries",
     "[ 30.7] mmc0: error -110 whilst initialising SD card\n[ 33.7] mmc0: error -110 whilst initialising SD card\n[ 36.7] mmc0: error -110 whilst initialising SD card\n[ 39.7] mmc0: error -110 whilst initialising SD card\n[ 42.7] mmc0: error -110 whilst initialising SD card\n[ 54.6] mmc0: new ultra high speed SDR104 SDXC card at address aaaa",
     "[ 29.6] mmc0: new ultra high speed SDR104 SDXC card at address aaaa\n[ 30.7] mmc0: error -110 whilst initialising SD card\n[ 33.7] mmc0: error -110 whilst initialising SD card\n[ 36.7] mmc0: error -110 whilst initialising SD card\n[ 39.7] mmc0: error -110 whilst initialising SD card\n[ 42.7] mmc0: error -110 whilst initialising SD card", "mmcblk0", Disk),
    ("one reset at each of three starts",
     "[ 0.0] Linux version 6.6\n[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n[ 0.0] Linux version 6.6\n[ 2.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n[ 0.0] Linux version 6.6\n[ 2.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd",
     "[ 0.0] Linux version 6.6\n[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n[ 3.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd\n[ 4.9] usb 2-1: reset SuperSpeed USB device number 2 using xhci_hcd", "2-1", Connection),
    ("a card pulled out of a reader",
     "[ 61.1] sd 7:0:0:0: [sdc] 7788544 512-byte logical blocks: (3.98 GB/3.71 GiB)\n[ 61.2] sd 7:0:0:0: [sdc] Attached SCSI removable disk\n[ 900.2] sd 7:0:0:0: [sdc] tag#0 Sense Key : Not Ready [current]\n[ 900.3] sd 7:0:0:0: [sdc] tag#0 Add. Sense: Medium not present\n[ 900.4] I/O error, dev sdc, sector 2 op 0x0:(READ) flags 0x0\n[ 900.5] sdc: detected capacity change from 7788544 to 0",
     "[ 61.1] sd 7:0:0:0: [sdc] 7788544 512-byte logical blocks: (3.98 GB/3.71 GiB)\n[ 61.2] sd 7:0:0:0: [sdc] Attached SCSI disk\n[ 900.2] sd 7:0:0:0: [sdc] tag#0 Sense Key : Not Ready [current]\n[ 900.3] sd 7:0:0:0: [sdc] tag#0 Add. Sense: Medium not present\n[ 900.4] I/O error, dev sdc, sector 2 op 0x0:(READ) flags 0x0", "sdc", Disk),
    ("a card whose lock is on",
     "[ 24.7] sd 7:0:0:0: [sdb] Write Protect is on\n[ 24.8] sd 7:0:0:0: [sdb] Attached SCSI removable disk\n[ 50.2] sd 7:0:0:0: [sdb] tag#0 Sense Key : Data Protect [current]\n[ 50.4] critical target error, dev sdb, sector 0 op 0x1:(WRITE) flags 0x800",
     "[ 24.7] sd 7:0:0:0: [sdb] Write Protect is off\n[ 24.8] sd 7:0:0:0: [sdb] Attached SCSI removable disk\n[ 50.2] sd 7:0:0:0: [sdb] tag#0 Sense Key : Data Protect [current]\n[ 50.4] critical target error, dev sdb, sector 0 op 0x1:(WRITE) flags 0x800", "sdb", Disk),
    ("a stick with FAT that was pulled out",
     "[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host0: usb-storage 2-1:1.0\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI removable disk\n[ 900.1] usb 2-1: USB disconnect, device number 2\n[ 900.2] FAT-fs (sda1): unable to read boot sector to mark fs as dirty\n[ 900.3] Buffer I/O error on dev sda1, logical block 0, lost sync page write",
     "[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host0: usb-storage 2-1:1.0\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 900.1] usb 2-1: USB disconnect, device number 2\n[ 900.2] FAT-fs (sda1): unable to read boot sector to mark fs as dirty\n[ 900.3] Buffer I/O error on dev sda1, logical block 0, lost sync page write", "sda", WentAway),
    ("a socket without an eMMC module",
     "[ 1.3] mmc1: error -110 whilst initialising MMC card\n[ 2.3] mmc1: error -110 whilst initialising MMC card\n[ 3.3] mmc1: error -110 whilst initialising MMC card\n[ 4.3] mmc1: error -110 whilst initialising MMC card\n[ 5.3] mmc1: error -110 whilst initialising MMC card",
     "[ 1.2] mmc1: card never left busy state\n[ 1.3] mmc1: error -110 whilst initialising MMC card\n[ 2.3] mmc1: error -110 whilst initialising MMC card\n[ 3.3] mmc1: error -110 whilst initialising MMC card\n[ 4.3] mmc1: error -110 whilst initialising MMC card\n[ 5.3] mmc1: error -110 whilst initialising MMC card", "mmcblk1", Disk),
    ("a SATA port without a disk",
     "[ 11.1] ata1: COMRESET failed (errno=-16)\n[ 21.1] ata1: COMRESET failed (errno=-16)\n[ 21.5] ata1: SATA link down (SStatus 0 SControl 300)",
     "[ 1.1] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)\n[ 1.2] ata1.00: ATA-9: DISK, 01, max UDMA/133\n[ 11.1] ata1: COMRESET failed (errno=-16)\n[ 21.1] ata1: COMRESET failed (errno=-16)\n[ 21.5] ata1: SATA link down (SStatus 0 SControl 300)", "ata1", Connection),
    ("ports of a multiplier without disks",
     "[ 76.1] ata2.01: limiting SATA link speed to 1.5 Gbps\n[ 76.2] ata2.02: limiting SATA link speed to 1.5 Gbps\n[ 78.1] ata2.01: SATA link down (SStatus 0 SControl 0)\n[ 78.2] ata2.02: SATA link down (SStatus 0 SControl 0)",
     "[ 76.1] ata2.01: limiting SATA link speed to 1.5 Gbps\n[ 76.2] ata2.01: limiting SATA link speed to 1.5 Gbps\n[ 78.1] ata2.01: SATA link up 1.5 Gbps (SStatus 113 SControl 310)", "ata2", Connection),
    ("a disk that sleeps and is asked for its health",
     "[ 40.1] ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\n[ 40.2] ata1.00: failed command: SMART\n[ 80.1] ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\n[ 80.2] ata1.00: failed command: SMART",
     "[ 40.1] ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\n[ 40.2] ata1.00: failed command: READ DMA\n[ 80.1] ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen\n[ 80.2] ata1.00: failed command: READ DMA", "ata1", NoAnswer),
    ("a SATA disk that does not know a command",
     "[ 1.1] ata1.00: failed command: READ LOG DMA EXT\n[ 1.2] ata1.00: error: { ABRT }\n[ 2.1] ata1.00: failed command: READ LOG DMA EXT\n[ 2.2] ata1.00: error: { ABRT }\n[ 3.1] ata1.00: failed command: READ LOG DMA EXT\n[ 3.2] ata1.00: error: { ABRT }",
     "[ 1.1] ata1.00: failed command: WRITE FPDMA QUEUED\n[ 1.2] ata1.00: error: { ABRT }\n[ 2.1] ata1.00: failed command: WRITE FPDMA QUEUED\n[ 2.2] ata1.00: error: { ABRT }\n[ 3.1] ata1.00: failed command: WRITE FPDMA QUEUED\n[ 3.2] ata1.00: error: { ABRT }", "ata1", Disk),
    ("a USB disk that spins up slowly",
     "[ 1.9] usb 2-1: device descriptor read/8, error -110\n[ 2.0] usb 2-1: device descriptor read/8, error -110\n[ 2.4] usb-storage 2-1:1.0: USB Mass Storage device detected",
     "[ 1.4] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 900.1] usb 2-1: device descriptor read/8, error -110\n[ 905.1] usb 2-1: device descriptor read/8, error -110", "2-1", Connection),
    ("btrfs that is full",
     "[ 9.1] BTRFS: error (device sda1: state A) in __btrfs_run_delayed_items:1161: errno=-28 No space left\n[ 9.2] BTRFS info (device sda1: state EA): forced readonly",
     "[ 9.1] BTRFS: error (device sda1: state A) in __btrfs_run_delayed_items:1161: errno=-5 IO failure\n[ 9.2] BTRFS info (device sda1: state EA): forced readonly", "sda", Filesystem),
];

/// Trouble of a disk beside that of another device on USB: the log, the part, and the cause.
type Case = (&'static str, &'static str, &'static str, Cause);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("a SATA disk, and a mouse that was plugged in again",
     "[  2.2] scsi 0:0:0:0: Direct-Access     ATA      DISK A    1A01 PQ: 0 ANSI: 5\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 300.1] usb 1-3: USB disconnect, device number 4\n[ 305.1] usb 1-3: new low-speed USB device number 5 using xhci_hcd\n[ 9040.2] I/O error, dev sda, sector 9000 op 0x0:(READ) flags 0x0", "sda", Disk),
    ("a SATA cable, and a device of another kind",
     "[ 300.1] usb 1-3: USB disconnect, device number 4\n[ 301.1] ata1.00: error: { ICRC ABRT }\n[ 302.1] ata1.00: error: { ICRC ABRT }\n[ 9040.2] I/O error, dev sda, sector 9000 op 0x0:(READ) flags 0x0", "sda", Connection),
    ("a SAS disk, and a device on USB that is reset",
     "[ 1.1] scsi 0:0:0:0: Direct-Access     SEAGATE  DISK 0004 PQ: 0 ANSI: 6\n[ 1.2] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 100.1] usb 1-2: reset high-speed USB device number 2 using xhci_hcd\n[ 101.1] usb 1-2: reset high-speed USB device number 2 using xhci_hcd\n[ 102.1] usb 1-2: reset high-speed USB device number 2 using xhci_hcd\n[ 900.2] I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0", "sda", Disk),
    ("a filesystem with errors, and a radio that is reset",
     "[ 5.1] EXT4-fs (sda8): warning: mounting fs with errors, running e2fsck is recommended\n[ 90.1] cp210x 1-1.2:1.0: cp210x converter detected\n[ 100.1] usb 1-1.2: reset high-speed USB device number 3 using xhci_hcd\n[ 200.1] usb 1-1.2: reset high-speed USB device number 3 using xhci_hcd\n[ 300.1] usb 1-1.2: reset high-speed USB device number 3 using xhci_hcd", "sda", Filesystem),
    ("a USB disk with old errors, and a device that was unplugged elsewhere",
     "[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host0: usb-storage 2-1:1.0\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 5.1] EXT4-fs (sda1): error count since last fsck: 1\n[ 300.1] usb 1-3: USB disconnect, device number 4", "sda", Filesystem),
    ("a dip of the supply days before, at the start",
     "[ 5.1] hwmon hwmon1: Undervoltage detected!\n[ 400000.1] I/O error, dev mmcblk0, sector 8 op 0x1:(WRITE) flags 0x800", "mmcblk0", Disk),
    ("a dip of the supply just before",
     "[ 399900.1] hwmon hwmon1: Undervoltage detected!\n[ 400000.1] I/O error, dev mmcblk0, sector 8 op 0x1:(WRITE) flags 0x800", "mmcblk0", Supply),
    ("a port with too much current a day before UAS gave up",
     "[ 2.1] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd\n[ 2.2] scsi host0: uas\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 20.1] usb 1-1-port4: over-current condition\n[ 20.2] usb 1-1.4: USB disconnect, device number 6\n[ 90600.1] sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT", "sda", Uas),
    ("a port with too much current just before",
     "[ 2.1] usb 2-1: new SuperSpeed USB device number 2 using xhci_hcd\n[ 2.2] scsi host0: uas\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 90590.1] usb 1-1-port4: over-current condition\n[ 90590.2] usb 1-1.4: USB disconnect, device number 6\n[ 90600.1] sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT", "sda", Supply),
    ("a filesystem on LUKS that became read-only",
     "[ 9.1] EXT4-fs error (device dm-0): ext4_lookup:1855: inode #131: comm bash: iget: checksum invalid\n[ 9.2] EXT4-fs (dm-0): Remounting filesystem read-only", "dm-0", Filesystem),
    ("a filesystem on LUKS whose disk fails",
     "[ 9.1] I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0\n[ 9.2] EXT4-fs (dm-0): Remounting filesystem read-only", "sda", Disk),
    ("btrfs on bcache",
     "[ 9.1] BTRFS error (device bcache0): bdev /dev/bcache0 errs: wr 5, rd 0, flush 0, corrupt 0, gen 0\n[ 9.2] BTRFS info (device bcache0 state E): forced readonly", "bcache0", Filesystem),
    ("btrfs names the member that has the errors",
     "[ 1.0] I/O error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x0\n[ 1.1] BTRFS error (device sda1): bdev /dev/sdb1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0", "sdb", Disk),
    ("btrfs that cannot write to its second member",
     "[ 1.0] I/O error, dev sdb, sector 2048 op 0x1:(WRITE) flags 0x0\n[ 1.1] BTRFS error (device sda1): bdev /dev/sdb1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0\n[ 1.3] BTRFS error (device sda1): error writing primary super block to device 2", "sdb", Disk),
    ("a USB controller that died under an idle disk",
     "[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host0: usb-storage 2-1:1.0\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 72.1] xhci_hcd 0000:01:00.0: HC died; cleaning up\n[ 72.2] usb 2-1: USB disconnect, device number 2", "sda", Controller),
    ("a member of an array that dropped off USB",
     "[ 2.1] usb-storage 2-3.1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host4: usb-storage 2-3.1:1.0\n[ 2.3] sd 4:0:0:0: [sdd] Attached SCSI disk\n[ 9000.1] usb 2-3.1: USB disconnect, device number 5\n[ 9000.2] md/raid1:md0: Disk failure on sdd1, disabling device.", "sdd", WentAway),
    ("writes to a disk that is gone",
     "[ 2.1] usb-storage 2-1:1.0: USB Mass Storage device detected\n[ 2.2] scsi host0: usb-storage 2-1:1.0\n[ 2.3] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 900.1] usb 2-1: USB disconnect, device number 2\n[ 900.2] device offline error, dev sda, sector 123456 op 0x1:(WRITE) flags 0x800", "sda", WentAway),
    ("a card that failed until the kernel gave it up",
     "[ 61.1] mmc0: Got data interrupt 0x00000002 even though no data operation was in progress.\n[ 62.1] mmc0: tried to HW reset card, got error -110\n[ 62.2] mmcblk0: recovery failed!\n[ 62.3] I/O error, dev mmcblk0, sector 59442 op 0x0:(READ) flags 0x80700\n[ 62.4] mmc0: card 59b4 removed\n[ 62.5] Buffer I/O error on dev mmcblk0p2, logical block 9, lost async page write", "mmcblk0", Disk),
    ("an array that put a silent disk out",
     "[ 9.1] ata2.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen\n[ 99.1] ata2.00: exception Emask 0x0 SAct 0x4 SErr 0x0 action 0x6 frozen\n[ 99.3] I/O error, dev sdb, sector 4096 op 0x1:(WRITE) flags 0x800\n[ 99.4] md/raid1:md0: Disk failure on sdb1, disabling device.", "sdb", NoAnswer),
    ("an array that could not mend a place",
     "[ 1.1] md/raid:md127: read error corrected (8 sectors at 1649026336 on sdc2)\n[ 2.1] md/raid:md127: read error NOT corrected!! (sector 1649026584 on sdc2).", "sdc", Disk),
];

#[test]
fn wrong_checksums_on_two_disks_at_once_are_no_disks_fault() {
    let line = |disk: &str| {
        format!(
            "BTRFS warning (device {disk}): csum failed root 5 ino 257 off 0 csum 0x89 expected csum 0x98 mirror 1\n"
        )
    };
    assert_eq!(judged(&line("sda1")), [("sda".to_string(), Disk, true)]);
    let both = judged(&format!("{}{}", line("sda1"), line("sdb1")));
    assert!(both.iter().all(|(_, cause, _)| *cause == Filesystem), "{both:?}");
}

#[test]
fn three_disks_that_fall_silent_share_what_is_to_blame() {
    let lines = |disk: &str| {
        format!(
            "sd 3:0:0:0: [{disk}] tag#0 timing out command, waited 180s\nI/O error, dev {disk}, sector 4096 op 0x0:(READ) flags 0x80700\n"
        )
    };
    let found = judged(&["sda", "sdb", "sdc"].map(lines).concat());
    assert!(found.iter().all(|(_, cause, _)| *cause == Connection), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_few_places_that_an_array_mended_are_common() {
    let mended = "md/raid1:md0: read error corrected (8 sectors at 800 on sdb1)\n";
    assert_eq!(judged(mended), []);
    assert_eq!(judged(&mended.repeat(3)), [("sdb".to_string(), Disk, true)]);
}

#[test]
fn a_healthy_disk_raises_no_alarm_and_a_sick_one_that_is_close_to_it_does() {
    let mut wrong = Vec::new();
    for (what, healthy, sick, part, cause) in PAIRS {
        let (calm, told) = (judged(healthy), judged(sick));
        let is_named = told.iter().any(|(of, cause_told, _)| of == part && cause_told == cause);
        if !calm.is_empty() || !is_named {
            wrong.push(format!("{what}: {calm:?}, {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn trouble_is_told_of_its_disk_with_its_cause() {
    let mut wrong = Vec::new();
    for (what, log, part, cause) in CASES {
        let mut found = judged(log);
        // What is told of the board is no disk's.
        found.retain(|(of, ..)| !of.is_empty());
        let is_it = matches!(found.as_slice(), [(of, told, _)] if of == part && told == cause);
        if !is_it {
            wrong.push(format!("{what}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
