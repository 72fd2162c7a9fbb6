//! The kernel's messages about trouble: a table. Each row has a message that it is for, and one that looks like it and is harmless.
//!
//! Source: the messages of Linux 3.x to 6.18 in `drivers/mmc`, `drivers/usb`, `drivers/ata`, `drivers/scsi`, `drivers/nvme`,
//! `drivers/pci/pcie/aer.c`, `drivers/md`, `block`, `fs`, and of Raspberry Pi's `raspberrypi-hwmon` and `bcm2835-sdhost`.

use rubus_vocabulary::kernel_log::TroubleKind;
use rubus_vocabulary::kernel_log::TroubleKind::*;

/// Where a message names the part.
#[derive(Clone, Copy)]
enum Place {
    /// `mmc0: …`, `ata3.00: …`: the word before the first colon.
    Head,
    /// `…, dev sda, sector 5`.
    Dev,
    /// `sd 0:0:0:0: [sda] …`; before the disk has a name, the host: `sd 14:0:0:0: tag#16 …`.
    Scsi,
    /// `(device sda1)`, `device sda1-8`.
    Device,
    /// `EXT4-fs (sda1): …`.
    Parentheses,
    /// `BTRFS: lost page write due to I/O error on /dev/sda1`.
    ErrorOn,
    /// `usb 1-1.4: …`, `usb-storage 1-1.4:1.0: …`, `usb 1-1-port4: …`.
    UsbPort,
    /// `pcieport 0000:00:00.0: …`.
    PciFunction,
    /// `md/raid1:md0: Disk failure on sdb1, …`.
    Member,
    /// `… (8 sectors at 800 on sdb1)`, `… file data on sda1-8`.
    On,
    /// `md: kicking non-fresh sdb1 from array!`.
    NonFresh,
    /// The member that a message of btrfs ends with, else the one it begins with: `(device sda1): bdev /dev/sdb1 errs: …`.
    BtrfsMember,
    /// `zio pool=tank vdev=/dev/sda1 error=5 …`.
    Vdev,
    /// `ntfs3: sda1: …`, `device-mapper: integrity: dm-0: …`.
    SecondHead,
    /// `Read-error on swap-device (179:2:55440)`.
    Swap,
    /// A host of cards by its address alone: `sdhost-bcm2835 3f202000.mmc: …`.
    AnyCard,
    /// The message is about the board.
    Board,
}

struct Pattern {
    kind: TroubleKind,
    place: Place,
    /// Each has to be in the message.
    all: &'static [&'static str],
    /// None may be.
    none: &'static [&'static str],
    /// A message that it is for.
    #[cfg_attr(not(test), allow(dead_code))]
    fires: (&'static str, &'static str),
    /// One that must not be taken for it.
    #[cfg_attr(not(test), allow(dead_code))]
    quiet: &'static str,
}

/// The trouble that a message tells of, and the part as it names it.
pub(super) fn trouble(message: &str) -> Option<(TroubleKind, String)> {
    all().find_map(|pattern| pattern.part(message).map(|part| (pattern.kind, part)))
}

fn all() -> impl Iterator<Item = &'static Pattern> {
    cards::PATTERNS.iter().chain(PATTERNS).chain(filesystems::PATTERNS)
}

impl Pattern {
    fn part(&self, message: &str) -> Option<String> {
        let is_one = self.all.iter().all(|words| message.contains(words))
            && !self.none.iter().any(|words| message.contains(words));
        if !is_one {
            return None;
        }
        part(self.place, message).filter(|part| !is_beside_the_point(part))
    }
}

/// The parts of an eMMC that answer no ordinary read.
fn is_beside_the_point(part: &str) -> bool {
    let parts = ["boot", "rpmb", "gp"];
    part.starts_with("mmcblk") && parts.iter().any(|name| part.contains(name))
}

fn part(place: Place, message: &str) -> Option<String> {
    match place {
        Place::Head => {
            let head = message.split(':').next()?.rsplit(' ').next()?;
            Some(head.split('.').next()?.to_string()).filter(|name| is_disk_name(name))
        }
        Place::Dev => name_after(message, "dev ").or_else(|| name_after(message, "device ")),
        Place::Scsi => scsi_disk(message),
        Place::Device => name_after(message, "device ").or_else(|| name_after(message, "for ")),
        Place::Parentheses => name_after(message, "(\"").or_else(|| name_after(message, "(")),
        Place::ErrorOn => name_after(message, "error on "),
        Place::UsbPort => usb_port(message),
        Place::PciFunction => {
            let mut words = message.split(' ');
            words
                .find(|word| word.matches(':').count() == 3)
                .map(|word| word.trim_end_matches(':').to_string())
        }
        Place::Member => name_after(message, "failure on "),
        Place::On => name_after(message, " on "),
        Place::NonFresh => name_after(message, "non-fresh "),
        Place::BtrfsMember => ["bdev ", "on dev "]
            .iter()
            .find_map(|words| name_after(message, words))
            .or_else(|| name_after(message, "device ")),
        Place::Vdev => name_after(message, "vdev="),
        Place::SecondHead => message
            .split(": ")
            .find_map(|word| Some(word).filter(|word| is_disk_name(word)).map(str::to_string)),
        Place::Swap => swap_device(message),
        Place::AnyCard => Some("mmc".to_string()),
        Place::Board => Some(String::new()),
    }
}

/// The kernel's name of a device that follows these words.
fn name_after(message: &str, words: &str) -> Option<String> {
    let (_, rest) = message.split_once(words)?;
    let rest = rest.strip_prefix("/dev/").unwrap_or(rest);
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(rest.len());
    // `dm-0` has its number after a hyphen; what comes after that of `sda1-8` is the journal's inode.
    let number = rest.strip_prefix("dm-").map(|digits| {
        3 + digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len())
    });
    let name = &rest[..number.unwrap_or(end)];
    is_disk_name(name).then(|| name.to_string())
}

/// Whether a word is the kernel's name of a disk, a partition, an array, or the controller or port of a disk. Flash without a
/// controller (`mtdblock5`), network disks (`rbd0`), images and optical drives are none: their errors are others' matter.
fn is_disk_name(name: &str) -> bool {
    const WITH_LETTERS: [&str; 5] = ["sd", "hd", "vd", "xvd", "dasd"];
    const WITH_NUMBER: [&str; 8] = ["mmcblk", "mmc", "nvme", "ata", "md", "dm-", "nbd", "bcache"];
    let starts_with_digit = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    let is_lettered = |rest: &str| {
        let letters = rest.trim_end_matches(|letter: char| letter.is_ascii_digit());
        (1..=3).contains(&letters.len()) && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let lettered = WITH_LETTERS.iter().filter_map(|start| name.strip_prefix(start));
    let mut numbered = WITH_NUMBER.iter().filter_map(|start| name.strip_prefix(start));
    is_word && (lettered.into_iter().any(is_lettered) || numbered.any(starts_with_digit))
}

/// The disk that a message of SCSI names, or its host.
fn scsi_disk(message: &str) -> Option<String> {
    // What is asked before the disk has a driver is told of `scsi 0:0:0:0`.
    let Some(rest) = message.strip_prefix("sd ").or_else(|| message.strip_prefix("scsi ")) else {
        return name_after(message, "[");
    };
    let (address, rest) = rest.split_once(": ")?;
    if rest.starts_with('[') {
        return name_after(rest, "[");
    }
    let host = address.split(':').next()?;
    let is_number = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("host{host}"))
}

/// The device of a swap area by its numbers: a SCSI disk, and a card. A card's numbers are those of the first one where the log
/// has no other.
/// Source: Linux documentation, admin-guide/devices.txt; drivers/mmc/core/block.c.
fn swap_device(message: &str) -> Option<String> {
    let (_, numbers) = message.split_once("on swap-device (")?;
    let mut numbers = numbers.split(':').map(str::parse::<u8>);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let partition = |disk: &str, number: u8| match number {
        0 => disk.to_string(),
        number => format!("{disk}{number}"),
    };
    match (major, minor) {
        (8, minor) => {
            let letter = char::from(b'a' + minor / 16);
            Some(partition(&format!("sd{letter}"), minor % 16))
        }
        (179, 0) => Some("mmcblk0".to_string()),
        // A kernel gives each card 8 numbers or more.
        (179, minor @ 1..8) => Some(format!("mmcblk0p{minor}")),
        _ => None,
    }
}

/// `1-1.4`, of a device, of an interface, or of a hub and the number of its port.
fn usb_port(message: &str) -> Option<String> {
    let mut words = message.split(' ');
    let first = words.next()?;
    if !["usb", "usb-storage", "uas", "hub"].contains(&first) {
        return None;
    }
    let name = words.next()?;
    let name = name.split(':').next()?;
    let (device, port) = match name.split_once("-port") {
        Some((device, port)) => (device, Some(port)),
        None => {
            let ports = [" on port ", "Cannot enable port "];
            let port = ports.iter().find_map(|words| message.split_once(words));
            (name, port.map(|(_, rest)| rest))
        }
    };
    let port = port.and_then(|text| text.split(|c: char| !c.is_ascii_digit()).next());
    let path = match (device.strip_prefix("usb"), port) {
        (Some(bus), Some(port)) => format!("{bus}-{port}"),
        (None, Some(port)) if device.ends_with("-0") => {
            format!("{}{port}", device.trim_end_matches('0'))
        }
        (None, Some(port)) => format!("{device}.{port}"),
        (_, None) => device.to_string(),
    };
    let is_path = path.contains('-')
        && path.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'.');
    is_path.then_some(path)
}

macro_rules! pattern {
    ($kind:ident, $place:ident, $all:expr, none: $none:expr, fires: $part:literal in $fires:literal, quiet: $quiet:literal) => {
        Pattern {
            kind: $kind,
            place: Place::$place,
            all: &$all,
            none: &$none,
            fires: ($part, $fires),
            quiet: $quiet,
        }
    };
}

mod cards;
mod filesystems;

#[rustfmt::skip]
static PATTERNS: &[Pattern] = &[
    // Supply.
    pattern!(Undervoltage, Board, ["nder-voltage detected!"], none: [],
        fires: "" in "Under-voltage detected! (0x00050005)", quiet: "Voltage normalised (0x00000000)"),
    pattern!(Undervoltage, Board, ["ndervoltage detected!"], none: [],
        fires: "" in "hwmon hwmon1: Undervoltage detected!", quiet: "hwmon hwmon1: Voltage normalised"),
    pattern!(OverCurrent, UsbPort, ["over-current"], none: ["over-current protection", "no over-current"],
        fires: "1-1.4" in "usb 1-1-port4: over-current condition", quiet: "hub 1-0:1.0: individual port over-current protection"),

    // Disks of any kind.
    pattern!(Medium, Dev, ["critical medium error"], none: [],
        fires: "sda" in "blk_update_request: critical medium error, dev sda, sector 5 op 0x0:(READ) flags 0x0", quiet: "sd 0:0:0:0: [sda] Attached SCSI disk"),
    pattern!(Io, Dev, ["critical target error", " op 0x"], none: ["(DISCARD)", "(WRITE_ZEROES)", "(WRITE_SAME)", "(FLUSH)"],
        fires: "sda" in "critical target error, dev sda, sector 5 op 0x1:(WRITE) flags 0x800", quiet: "critical target error, dev sda, sector 5 op 0x3:(DISCARD) flags 0x800"),
    pattern!(Io, Dev, ["I/O error, dev "], none: ["(DISCARD)", "(WRITE_ZEROES)", "(SECURE_ERASE)"],
        fires: "sda" in "I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        quiet: "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0"),
    pattern!(Io, Dev, ["Buffer I/O error on dev"], none: [],
        fires: "sda1" in "Buffer I/O error on device sda1, logical block 4544114", quiet: "Buffer I/O error on dev sr0, logical block 0, async page read"),
    pattern!(Io, Swap, ["-error on swap-device ("], none: [],
        fires: "mmcblk0p2" in "Write-error on swap-device (179:2:55440)", quiet: "Read-error on swap-device (254:0:1234)"),
    pattern!(Io, Device, ["Dirty inode writeback failed for block device"], none: [],
        fires: "mmcblk1p1" in "VFS: Dirty inode writeback failed for block device mmcblk1p1 (err=-5).", quiet: "VFS: Mounted root (ext4 filesystem) readonly on device 179:2."),
    pattern!(Medium, Scsi, ["Sense Key", "Medium Error"], none: [],
        fires: "sda" in "sd 2:0:0:0: [sda] tag#0 Sense Key : Medium Error [current]", quiet: "sd 2:0:0:0: [sda] tag#0 Sense Key : Illegal Request [current]"),
    pattern!(Hardware, Scsi, ["Sense Key", "Hardware Error"], none: [],
        fires: "sda" in "sd 2:0:0:0: [sda] tag#0 Sense Key : Hardware Error [current]", quiet: "sd 2:0:0:0: [sda] tag#0 Sense Key : Unit Attention [current]"),

    // What SMART expects, as SAS disks and some bridges tell it unasked.
    pattern!(Hardware, Scsi, ["Add. Sense: ", "ailure prediction threshold exceeded"], none: ["(false)"],
        fires: "sda" in "sd 0:0:0:0: [sda] tag#1 Add. Sense: Failure prediction threshold exceeded",
        quiet: "sd 0:0:0:0: [sda] tag#1 Add. Sense: Failure prediction threshold exceeded (false)"),
    pattern!(Hardware, Scsi, ["Add. Sense: ", " impending failure"], none: [],
        fires: "sda" in "sd 0:0:0:0: [sda] tag#1 Add. Sense: Hardware impending failure general hard drive failure",
        quiet: "sd 0:0:0:0: [sda] tag#1 Add. Sense: ATA pass through information available"),

    // Without CONFIG_SCSI_CONSTANTS the kernel has the numbers alone.
    pattern!(Medium, Scsi, ["Sense Key : 0x3 "], none: [],
        fires: "sdb" in "sd 1:0:0:0: [sdb] tag#0 Sense Key : 0x3 [current]", quiet: "sd 1:0:0:0: [sdb] tag#0 Sense Key : 0x5 [current]"),
    pattern!(Hardware, Scsi, ["Sense Key : 0x4 "], none: [],
        fires: "sdb" in "sd 1:0:0:0: [sdb] tag#0 Sense Key : 0x4 [current]", quiet: "sd 1:0:0:0: [sdb] tag#0 Sense Key : 0x2 [current]"),
    pattern!(Medium, Head, ["sd", ": Current: sense key", "0x3"], none: [],
        fires: "sdb" in "sdb: Current: sense key=0x3", quiet: "sdb: Current: sense key=0x5"),
    // drivers/scsi/constants.c of Linux 2.6 with its words.
    pattern!(Medium, Head, ["sd", ": Current: sense key: Medium Error"], none: [],
        fires: "sda" in "sda: Current: sense key: Medium Error", quiet: "sda: Current: sense key: Recovered Error"),
    pattern!(Io, Scsi, ["Device offlined - not ready after error recovery"], none: [],
        fires: "sda" in "sd 0:0:0:0: [sda] Device offlined - not ready after error recovery", quiet: "sd 0:0:0:0: [sda] Stopping disk"),
    pattern!(Io, Scsi, ["FAILED Result: hostbyte=DID_BAD_TARGET"], none: [],
        fires: "sdd" in "sd 9:0:0:0: [sdd] tag#25 FAILED Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK",
        quiet: "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s"),
    // drivers/scsi/scsi_lib.c, `scsi_complete`: as long as a command may take with all its tries.
    pattern!(AtaTimeout, Scsi, ["timing out command, waited "], none: [],
        fires: "sda" in "sd 0:0:9:0: [sda] tag#12 timing out command, waited 180s", quiet: "sd 0:0:9:0: Power-on or device reset occurred"),
    // drivers/scsi/scsi_error.c, `scsi_eh_flush_done_q`: given up without a result.
    pattern!(AtaTimeout, Scsi, ["FAILED Result: hostbyte=DID_TIME_OUT"], none: [],
        fires: "sdb" in "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s",
        quiet: "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s"),
    pattern!(Io, Scsi, ["Read Capacity(", "failed: ", "DID_ERROR"], none: [],
        fires: "sdf" in "sd 11:0:0:0: [sdf] Read Capacity(16) failed: Result: hostbyte=DID_ERROR driverbyte=DRIVER_OK",
        quiet: "sd 6:0:0:0: [sdc] Read Capacity(10) failed: Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE"),

    // SATA.
    pattern!(Medium, Head, ["ata", "error: {", "UNC"], none: ["SError"],
        fires: "ata3" in "ata3.00: error: { UNC }", quiet: "ata3.00: status: { DRDY }"),
    pattern!(AtaLink, Head, ["ata", "error: {", "ICRC"], none: [],
        fires: "ata3" in "ata3.00: error: { ICRC ABRT }", quiet: "ata3.00: status: { DRDY ERR }"),
    pattern!(AtaLink, Head, ["ata", "interface fatal error"], none: [],
        fires: "ata4" in "ata4.00: irq_stat 0x08000000, interface fatal error", quiet: "ata4.00: irq_stat 0x40000008"),
    pattern!(AtaLink, Head, ["ata", "SError: {", "BadCRC"], none: [],
        fires: "ata4" in "ata4: SError: { UnrecovData 10B8B BadCRC }", quiet: "ata4: SError: { PHYRdyChg CommWake DevExch }"),
    pattern!(AtaLink, Head, ["ata", "limiting SATA link speed"], none: [],
        fires: "ata4" in "ata4: limiting SATA link speed to 1.5 Gbps", quiet: "ata4: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"),
    pattern!(AtaLink, Head, ["ata", "COMRESET failed"], none: [],
        fires: "ata4" in "ata4: COMRESET failed (errno=-16)", quiet: "ata4: SATA link down (SStatus 0 SControl 300)"),
    pattern!(AtaLink, Head, ["ata", "found unknown device (class"], none: [],
        fires: "ata1" in "ata1: found unknown device (class 0)", quiet: "ata1: softreset failed (device not ready)"),
    pattern!(AtaLink, Head, ["ata", "exception Emask 0x10 ", "frozen"], none: [],
        fires: "ata1" in "ata1.00: exception Emask 0x10 SAct 0x7 SErr 0x4050000 action 0xe frozen",
        quiet: "ata1.00: exception Emask 0x10 SAct 0x0 SErr 0x0 action 0x0"),
    pattern!(AtaLink, Head, ["ata", "exception Emask 0x50 ", "frozen"], none: [],
        fires: "ata2" in "ata2: exception Emask 0x50 SAct 0x0 SErr 0x4090800 action 0xe frozen", quiet: "ata2: hard resetting link"),
    // A command that failed on the wire: no disk was being plugged in.
    pattern!(AtaLink, Head, ["ata", "res ", "(ATA bus error)"], none: [],
        fires: "ata8" in "ata8.00: res 50/00:08:50:88:96/00:02:01:00:00/40 Emask 0x10 (ATA bus error)",
        quiet: "ata8.00: res 50/00:08:50:88:96/00:02:01:00:00/40 Emask 0x1 (device error)"),
    // Damaged words on a link that stays up.
    pattern!(AtaLink, Head, ["ata", "SError: {", "10B8B"], none: ["PHYRdyChg", "CommWake", "DevExch"],
        fires: "ata2" in "ata2.01: SError: { HostInt 10B8B }", quiet: "ata2: SError: { PHYRdyChg CommWake 10B8B DevExch }"),
    pattern!(AtaLink, Head, ["ata", "SError: {", "Dispar"], none: ["PHYRdyChg", "CommWake", "DevExch"],
        fires: "ata1" in "ata1: SError: { Dispar }", quiet: "ata1: SError: { PHYRdyChg Dispar DevExch }"),
    pattern!(AtaLink, Head, ["ata", "SError: {", "UnrecovData"], none: ["PHYRdyChg", "CommWake", "DevExch"],
        fires: "ata1" in "ata1: SError: { UnrecovData HostInt }", quiet: "ata1: SError: { UnrecovData PHYRdyChg DevExch }"),
    // Bit 1: what the port saw is not the protocol ("HSM violation").
    pattern!(AtaLink, Head, ["ata", "exception Emask 0x2 "], none: [],
        fires: "ata3" in "ata3.00: exception Emask 0x2 SAct 0x0 SErr 0x0 action 0x6", quiet: "ata3.00: exception Emask 0x20 SAct 0x0 SErr 0x0 action 0x6"),
    pattern!(AtaLink, Head, ["ata", "exception Emask 0x3 "], none: [],
        fires: "ata2" in "ata2.00: exception Emask 0x3 SAct 0x8001ffff SErr 0x0 action 0x6 frozen",
        quiet: "ata2.00: exception Emask 0x1 SAct 0x1 SErr 0x0 action 0x0"),
    pattern!(AtaTimeout, Head, ["ata", "exception Emask 0x0 ", "frozen"], none: [],
        fires: "ata1" in "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen", quiet: "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0"),
    pattern!(AtaLink, Scsi, ["Add. Sense: Information unit", "CRC error detected"], none: [],
        fires: "sdc" in "sd 0:0:2:0: [sdc] tag#1 Add. Sense: Information unit iuCRC error detected", quiet: "sd 0:0:2:0: [sdc] tag#1 Add. Sense: Invalid field in cdb"),
    pattern!(AtaLink, Scsi, ["Add. Sense: Scsi parity error"], none: [],
        fires: "sdc" in "sd 0:0:2:0: [sdc] tag#1 Add. Sense: Scsi parity error", quiet: "sd 0:0:2:0: [sdc] tag#1 Add. Sense: Power on, reset, or bus device reset occurred"),
    pattern!(AtaLink, Head, ["dma_intr: error=", "BadCRC"], none: [],
        fires: "hda" in "hda: dma_intr: error=0x84 { DriveStatusError BadCRC }", quiet: "hda: dma_intr: status=0x51 { DriveReady SeekComplete Error }"),
    pattern!(Medium, Head, ["dma_intr: error=", "UncorrectableError"], none: [],
        fires: "hda" in "hda: dma_intr: error=0x40 { UncorrectableError }, LBAsect=3344, sector=3344", quiet: "hda: dma_intr: error=0x04 { DriveStatusError }"),

    // USB.
    pattern!(UasAbort, Scsi, ["uas_eh_abort_handler"], none: [],
        fires: "sda" in "sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT", quiet: "scsi host0: uas"),
    pattern!(UasAbort, Scsi, ["uas_zap_pending"], none: [],
        fires: "sdb" in "sd 1:0:0:0: [sdb] tag#1 uas_zap_pending 0 uas-tag 1 inflight: CMD", quiet: "scsi host1: uas_eh_device_reset_handler success"),
    pattern!(UasAbort, Scsi, ["cmplt err -"], none: [],
        fires: "sda" in "sd 0:0:0:0: [sda] tag#2 data cmplt err -75 uas-tag 1 inflight: CMD", quiet: "sd 0:0:0:0: [sda] tag#2 CDB: opcode=0x28 28 00 0a 8d f1 07 00 00 10 00"),
    pattern!(UasAbort, UsbPort, ["usb ", "cmplt err -"], none: [],
        fires: "2-1.3" in "usb 2-1.3: cmd cmplt err -71", quiet: "usb 2-1.3: Product: USB to SATA bridge"),
    pattern!(UsbReset, UsbPort, ["usb ", ": reset ", "USB device number"], none: [],
        fires: "2-1.4" in "usb 2-1.4: reset SuperSpeed USB device number 3 using xhci-hcd", quiet: "usb 2-1: SerialNumber: reset"),
    pattern!(UsbReset, UsbPort, ["usb ", ": reset ", " USB device using ", " and address "], none: [],
        fires: "1-2.2" in "usb 1-2.2: reset full speed USB device using uhci_hcd and address 3", quiet: "usb 1-2.2: configuration #1 chosen from 1 choice"),
    pattern!(UsbEnumeration, UsbPort, ["device descriptor read/"], none: [],
        fires: "1-1" in "usb 1-1: device descriptor read/64, error -71", quiet: "usb 1-1: New USB device found, idVendor=0424, idProduct=9514"),
    pattern!(UsbEnumeration, UsbPort, ["device not accepting address"], none: [],
        fires: "2-1.2" in "usb 2-1.2: device not accepting address 26, error -71", quiet: "usb 2-1.2: not running at top speed; connect to a high speed hub"),
    pattern!(UsbEnumeration, UsbPort, ["not responding to setup address"], none: [],
        fires: "2-1.2" in "usb 2-1.2: Device not responding to setup address.", quiet: "usb 2-1.2: Product: USB3.0 External HDD"),
    pattern!(UsbEnumeration, UsbPort, ["unable to enumerate USB device"], none: [],
        fires: "1-2" in "usb usb1-port2: unable to enumerate USB device", quiet: "hub 1-0:1.0: 2 ports detected"),
    pattern!(UsbEnumeration, UsbPort, ["Maybe the USB cable is bad"], none: [],
        fires: "1-2" in "usb usb1-port2: Cannot enable. Maybe the USB cable is bad?", quiet: "usb usb1-port2: peered to usb2-port1"),
    pattern!(UsbEnumeration, UsbPort, ["can't set config"], none: [],
        fires: "1-1" in "usb 1-1: can't set config #1, error -110", quiet: "usb 1-1: config 1 has an invalid interface number: 2 but max is 1"),
    pattern!(UsbEnumeration, UsbPort, ["can't read configurations, error"], none: [],
        fires: "2-1" in "usb 2-1: can't read configurations, error -71", quiet: "usb 2-1: config 1 interface 0 altsetting 0 has 2 endpoint descriptors"),
    pattern!(UsbEnumeration, UsbPort, ["cannot reset (err"], none: [],
        fires: "1-1.1" in "usb 1-1-port1: cannot reset (err = -71)", quiet: "usb 1-1: rejected 1 configuration due to insufficient available bus power"),
    pattern!(UsbDisconnect, UsbPort, ["USB disconnect, "], none: [],
        fires: "1-1.4" in "usb 1-1.4: USB disconnect, device number 5", quiet: "usbcore: deregistering interface driver usbhid"),
    pattern!(UsbController, Board, ["controller not responding, assume dead"], none: [],
        fires: "" in "xhci_hcd 0000:01:00.0: xHCI host controller not responding, assume dead", quiet: "xhci_hcd 0000:01:00.0: xHCI Host Controller"),
    pattern!(UsbController, Board, ["HC died; cleaning up"], none: [],
        fires: "" in "xhci-hcd xhci-hcd.0: HC died; cleaning up", quiet: "xhci-hcd xhci-hcd.0: remove, state 4"),
    pattern!(UsbConnect, UsbPort, [": new ", "USB device number"], none: [],
        fires: "1-1.4" in "usb 1-1.4: new high-speed USB device number 5 using dwc_otg", quiet: "usb 1-1.4: New USB device strings: Mfr=1, Product=2, SerialNumber=3"),
    pattern!(UsbConnect, UsbPort, [": new ", " USB device using ", " and address "], none: [],
        fires: "4-6" in "usb 4-6: new high speed USB device using ehci_hcd and address 6", quiet: "usb 4-6: configuration #1 chosen from 1 choice"),
    pattern!(UsbDisk, UsbPort, ["usb-storage ", "USB Mass Storage device detected"], none: [],
        fires: "1-1.4" in "usb-storage 1-1.4:1.0: USB Mass Storage device detected", quiet: "usbcore: registered new interface driver usb-storage"),

    // NVMe and PCI Express.
    pattern!(NvmeTimeout, Head, ["nvme nvme", "QID", "timeout"], none: ["completion polled"],
        fires: "nvme0" in "nvme nvme0: I/O 5 QID 1 timeout, aborting", quiet: "nvme nvme0: I/O 5 QID 1 timeout, completion polled"),
    // drivers/nvme/host/core.c, `nvme_log_error`: status 371h is the kernel's own, for a command that it ended with the controller's reset.
    pattern!(NvmeTimeout, Head, ["nvme", " @ LBA ", "(sct 0x3 / sc 0x71)"], none: [],
        fires: "nvme0n1" in "nvme0n1: I/O Cmd(0x2) @ LBA 4711, 8 blocks, I/O Error (sct 0x3 / sc 0x71)",
        quiet: "nvme1: Async Event(0xc), Host Aborted Command (sct 0x3 / sc 0x71)"),
    // Of the status, bit 1 is the controller's own report of a fatal error; all bits set are no answer.
    pattern!(NvmeFatal, Head, ["nvme nvme", "CSTS=0x3"], none: [],
        fires: "nvme0" in "nvme nvme0: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x10", quiet: "nvme nvme0: Shutdown timeout set to 8 seconds"),
    pattern!(NvmeFatal, Head, ["nvme nvme", "due to persistent internal error"], none: [],
        fires: "nvme0" in "nvme nvme0: resetting controller due to persistent internal error", quiet: "nvme nvme0: resetting controller"),
    pattern!(NvmeFatal, Head, ["nvme nvme", "resetting controller due to AER"], none: [],
        fires: "nvme0" in "nvme nvme0: resetting controller due to AER", quiet: "nvme nvme0: D3 entry latency set to 8 seconds"),
    pattern!(NvmeGone, Head, ["nvme nvme", "controller is down"], none: [],
        fires: "nvme0" in "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", quiet: "nvme nvme0: 4/0/0 default/read/poll queues"),
    pattern!(NvmeGone, Head, ["nvme nvme", "Device not ready"], none: [],
        fires: "nvme0" in "nvme nvme0: Device not ready; aborting reset, CSTS=0x1", quiet: "nvme nvme0: pci function 0000:01:00.0"),
    pattern!(NvmeGone, Head, ["nvme nvme", "IO queues not created"], none: [],
        fires: "nvme0" in "nvme nvme0: IO queues not created", quiet: "nvme nvme0: Shutdown timeout set to 10 seconds"),
    pattern!(NvmeGone, Head, ["nvme nvme", "IO queues lost"], none: [],
        fires: "nvme0" in "nvme nvme0: IO queues lost", quiet: "nvme nvme0: 4/0/0 default/read/poll queues"),
    pattern!(NvmeGone, Head, ["nvme nvme", "device after reset failure"], none: [],
        fires: "nvme0" in "nvme nvme0: Disabling device after reset failure: -19", quiet: "nvme nvme0: allocated 32 MiB host memory buffer."),
    pattern!(NvmeGone, Head, ["nvme nvme", "emoving after probe failure"], none: [],
        fires: "nvme0" in "nvme nvme0: Removing after probe failure status: -19", quiet: "nvme nvme0: missing or invalid SUBNQN field."),
    // Of status code type 2, a fault in writing is 80h and a read that could not be mended 81h.
    pattern!(Medium, Head, ["nvme", "(sct 0x2 / sc 0x80)"], none: [],
        fires: "nvme0n1" in "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Write Fault (sct 0x2 / sc 0x80) DNR", quiet: "nvme0n1: p1 p2"),
    pattern!(Medium, Head, ["nvme", "(sct 0x2 / sc 0x81)"], none: [],
        fires: "nvme0n1" in "nvme0n1: Read(0x2) @ LBA 4711, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) MORE DNR",
        quiet: "nvme0n1: I/O Cmd(0x2) @ LBA 4711, 8 blocks, I/O Error (sct 0x0 / sc 0x2) DNR"),
    // Generic status 6h is the controller's own internal error, 20h a namespace that takes no writes any more; 1h / 82h is the same of
    // its range. An SSD at its end answers so.
    pattern!(Hardware, Head, ["nvme", " @ LBA ", "(sct 0x0 / sc 0x6)"], none: [],
        fires: "nvme0n1" in "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Internal Error (sct 0x0 / sc 0x6) DNR", quiet: "nvme0: Get Log Page(0x2), Internal Error (sct 0x0 / sc 0x6) DNR"),
    pattern!(Hardware, Head, ["nvme", " @ LBA ", "(sct 0x0 / sc 0x20)"], none: [],
        fires: "nvme0n1" in "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Namespace is Write Protected (sct 0x0 / sc 0x20) DNR",
        quiet: "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Command Interrupted (sct 0x0 / sc 0x21)"),
    pattern!(Hardware, Head, ["nvme", " @ LBA ", "(sct 0x1 / sc 0x82)"], none: [],
        fires: "nvme0n1" in "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Attempted Write to Read Only Range (sct 0x1 / sc 0x82) DNR",
        quiet: "nvme0n1: Write(0x1) @ LBA 4711, 8 blocks, Conflicting Attributes (sct 0x1 / sc 0x80) DNR"),
    pattern!(PcieCorrected, PciFunction, ["PCIe Bus Error: severity=Correct"], none: [],
        fires: "0000:01:00.0" in "nvme 0000:01:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
        quiet: "pcieport 0000:00:00.0: AER: enabled with IRQ 38"),
    pattern!(PcieUncorrected, PciFunction, ["PCIe Bus Error: severity=Uncorrect"], none: [],
        fires: "0000:00:00.0" in "pcieport 0000:00:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer",
        quiet: "pcieport 0000:00:00.0: PME: Signaling with IRQ 39"),
    // drivers/pci/pcie/dpc.c: the port cut the link after a fatal error.
    pattern!(PcieUncorrected, PciFunction, ["pcieport ", ": DPC: containment event"], none: [],
        fires: "0000:00:00.0" in "pcieport 0000:00:00.0: DPC: containment event, status:0x1f01 source:0x0000",
        quiet: "pcieport 0000:00:00.0: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+ SwTrigger+ RP PIO Log 4"),
    // drivers/nvme/host/pci.c, `nvme_error_detected`: the port above found a fatal error and cut the link.
    pattern!(PcieUncorrected, Head, ["nvme nvme", "frozen state error detected"], none: [],
        fires: "nvme0" in "nvme nvme0: frozen state error detected, reset controller", quiet: "nvme nvme0: restart after slot reset"),
    pattern!(PcieUncorrected, PciFunction, ["ahci ", "AHCI controller unavailable!"], none: [],
        fires: "0000:01:00.0" in "ahci 0000:01:00.0: AHCI controller unavailable!", quiet: "ahci 0000:01:00.0: SSS flag set, parallel bus scan disabled"),

    // Filesystems and arrays.
    pattern!(FilesystemReadOnly, Parentheses, ["EXT4-fs (", "Remounting filesystem read-only"], none: [],
        fires: "sda1" in "EXT4-fs (sda1): Remounting filesystem read-only", quiet: "EXT4-fs (sda1): re-mounted. Opts: (null)"),
    pattern!(FilesystemReadOnly, Parentheses, ["FAT-fs (", "has been set read-only"], none: [],
        fires: "sda6" in "exFAT-fs (sda6): Filesystem has been set read-only", quiet: "FAT-fs (sda1): unable to read boot sector to mark fs as dirty"),
    pattern!(Io, Parentheses, ["FAT-fs (", "FAT read failed"], none: [],
        fires: "sda6" in "FAT-fs (sda6): FAT read failed (blocknr 4)", quiet: "FAT-fs (sda6): Can't find a valid FAT filesystem"),
    pattern!(Filesystem, Parentheses, ["I/O error in filesystem (\""], none: [],
        fires: "sda2" in "I/O error in filesystem (\"sda2\") meta-data dev sda2 block 0xf054f4 (\"xlog_iodone\") error 5 buf count 32768",
        quiet: "XFS mounting filesystem sda2"),
    pattern!(FilesystemReadOnly, Parentheses, ["xfs_force_shutdown("], none: [],
        fires: "sda2" in "xfs_force_shutdown(sda2,0x2) called from line 956 of file fs/xfs/xfs_log.c.", quiet: "XFS (sda2): Unmounting Filesystem"),
    pattern!(Io, ErrorOn, ["lost page write due to "], none: ["Buffer I/O"],
        fires: "sda1" in "BTRFS: lost page write due to I/O error on /dev/sda1", quiet: "BTRFS: bdev /dev/sda1 errs: wr 3, rd 0, flush 0, corrupt 0, gen 0"),
    pattern!(FilesystemReadOnly, Device, ["BTRFS", "forced readonly"], none: [],
        fires: "sda2" in "BTRFS info (device sda2 state EA): forced readonly", quiet: "BTRFS info (device sda2): disk space caching is enabled"),
    pattern!(FilesystemReadOnly, Parentheses, ["XFS (", "hutting down filesystem"], none: ["User initiated"],
        fires: "sda1" in "XFS (sda1): log I/O error -5. Shutting down filesystem", quiet: "XFS (sda1): Ending clean mount"),
    pattern!(Filesystem, Device, ["EXT4-fs error (device"], none: [],
        fires: "sda1" in "EXT4-fs error (device sda1): ext4_find_entry:1438: inode #2: comm ls: reading directory lblock 0",
        quiet: "EXT4-fs (sda1): mounted filesystem with ordered data mode"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "error count"], none: [],
        fires: "sda1" in "EXT4-fs (sda1): error count since last fsck: 6", quiet: "EXT4-fs (sda1): orphan cleanup on readonly fs"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "mounting fs with errors"], none: [],
        fires: "sda1" in "EXT4-fs (sda1): warning: mounting fs with errors, running e2fsck is recommended",
        quiet: "EXT4-fs (sda1): warning: maximal mount count reached, running e2fsck is recommended"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "I/O error while"], none: [],
        fires: "mmcblk0p2" in "EXT4-fs (mmcblk0p2): I/O error while writing superblock", quiet: "EXT4-fs (mmcblk0p2): recovery complete"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "error loading journal"], none: [],
        fires: "mmcblk0p2" in "EXT4-fs (mmcblk0p2): error loading journal", quiet: "EXT4-fs (mmcblk0p2): mounted filesystem without journal"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "group descriptors corrupted"], none: [],
        fires: "sda1" in "EXT4-fs (sda1): group descriptors corrupted!", quiet: "EXT4-fs (sda1): bad geometry: block count 7 exceeds size of device (6 blocks)"),
    pattern!(Filesystem, Parentheses, ["EXT4-fs (", "get root inode failed"], none: [],
        fires: "sda1" in "EXT4-fs (sda1): get root inode failed", quiet: "EXT4-fs (sda1): couldn't mount as ext3 due to feature incompatibilities"),
    // What lies on LUKS or LVM has no disk of its own to blame.
    pattern!(Filesystem, Device, ["EXT4-fs warning (device dm-", "I/O error "], none: [],
        fires: "dm-1" in "EXT4-fs warning (device dm-1): ext4_end_bio:316: I/O error -19 writing to inode 102 starting block 144)",
        quiet: "EXT4-fs warning (device dm-1): ext4_dx_add_entry:2510: inode #2: comm rsync: index full, reach max htree level :2"),
    pattern!(Io, Device, ["EXT4-fs warning (device", "I/O error "], none: [],
        fires: "sda1" in "EXT4-fs warning (device sda1): ext4_end_bio:349: I/O error 10 writing to inode 131 starting block 9)",
        quiet: "EXT4-fs warning (device sda1): ext4_multi_mount_protect:328: MMP interval 42 higher than expected, please wait."),
    pattern!(Filesystem, Parentheses, ["F2FS-fs (", "nvalid blkaddr"], none: [],
        fires: "mmcblk0p2" in "F2FS-fs (mmcblk0p2): access invalid blkaddr:4294967295",
        quiet: "F2FS-fs (mmcblk0p2): Can't find valid F2FS filesystem in 1th superblock"),
    pattern!(Filesystem, Parentheses, ["F2FS-fs (", "nconsistent node block"], none: [],
        fires: "sda1" in "F2FS-fs (sda1): inconsistent node block, nid:7, node_footer[nid:0,ino:0,ofs:0,cpver:0,blkaddr:0]",
        quiet: "F2FS-fs (sda1): Mounted with checkpoint version = 3b2c"),
    pattern!(Filesystem, Device, ["Aborting journal on device"], none: [],
        fires: "sda1" in "Aborting journal on device sda1-8.", quiet: "EXT4-fs (sda1): write access will be enabled during recovery"),
    pattern!(Filesystem, Device, ["JBD2: Error"], none: [],
        fires: "sda1" in "JBD2: Error -5 detected when updating journal superblock for sda1-8.", quiet: "JBD2: journal checksum v3"),
    pattern!(Filesystem, Parentheses, ["FAT-fs (", "error"], none: ["Some data may be corrupt", "mount option"],
        fires: "mmcblk0p1" in "FAT-fs (mmcblk0p1): error, fat_get_cluster: invalid cluster chain (i_pos 0)",
        quiet: "FAT-fs (mmcblk0p1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck."),
    pattern!(Filesystem, Parentheses, ["XFS (", "metadata I/O error"], none: [],
        fires: "sda1" in "XFS (sda1): metadata I/O error in \"xfs_buf_ioend\" at daddr 0x80 len 8 error 5", quiet: "XFS (sda1): Mounting V5 Filesystem"),
    pattern!(Filesystem, Parentheses, ["XFS (", "orruption"], none: [],
        fires: "sda1" in "XFS (sda1): Metadata corruption detected at xfs_agf_read_verify", quiet: "XFS (sda1): Unmounting Filesystem"),
    pattern!(Checksum, Device, ["BTRFS", "csum failed"], none: [],
        fires: "sda2" in "BTRFS warning (device sda2): csum failed root 5 ino 257 off 0 csum 0x8941f998 expected csum 0x98f94189 mirror 1",
        quiet: "BTRFS info (device sda2): using crc32c (crc32c-generic) checksum algorithm"),
    pattern!(Checksum, Device, ["BTRFS", "checksum verify failed"], none: [],
        fires: "sda2" in "BTRFS warning (device sda2): checksum verify failed on logical 30408704 mirror 1 wanted 0x1 found 0x2",
        quiet: "BTRFS info (device sda2): bdev /dev/sda2 errs: wr 0, rd 0, flush 0, corrupt 1, gen 0"),
    pattern!(Filesystem, BtrfsMember, ["BTRFS error (device", "errs: wr"], none: [],
        fires: "sdb1" in "BTRFS error (device sda1): bdev /dev/sdb1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
        quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, BtrfsMember, ["BTRFS error (device", "errs: wr"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): bdev /dev/sda2 errs: wr 0, rd 5, flush 0, corrupt 0, gen 0", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "parent transid verify failed"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): parent transid verify failed on 30507008 wanted 12 found 9", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "bad tree block"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): bad tree block start, want 30507008 have 0", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "bad fsid"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): bad fsid on block 30507008", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "orrupt"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): block=30507008 read time tree block corruption detected", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "failed to read"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): failed to read chunk root", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "IO failure"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): Transaction aborted (error -5): errno=-5 IO failure", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "lost page write"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): error writing primary super block to device 1, lost page write", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS error (device", "super block to device"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): error writing primary super block to device 1", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, BtrfsMember, ["BTRFS error (device", "unable to fixup"], none: [],
        fires: "sda2" in "BTRFS error (device sda2): unable to fixup (regular) error at logical 1 on dev /dev/sda2", quiet: "BTRFS error (device sda2): unrecognized mount option 'foo'"),
    pattern!(Filesystem, Device, ["BTRFS: error (device"], none: [],
        fires: "sda2" in "BTRFS: error (device sda2) in btrfs_commit_transaction:2271: errno=-5 IO failure (Error while writing out transaction)",
        quiet: "BTRFS: device fsid 6a7c devid 1 transid 12 /dev/sda2 scanned by mount (301)"),
    pattern!(Filesystem, Device, ["BTRFS critical (device"], none: [],
        fires: "sda2" in "BTRFS critical (device sda2): corrupt leaf: root=5 block=1 slot=2", quiet: "BTRFS warning (device sda2): 'recovery' is deprecated"),
    pattern!(ArrayMember, Member, ["md/", "Disk failure on"], none: [],
        fires: "sdb1" in "md/raid1:md0: Disk failure on sdb1, disabling device.", quiet: "md/raid1:md0: active with 2 out of 2 mirrors"),

    // Arrays, pools and what lies on others.
    pattern!(Medium, On, ["md/raid", "read error NOT corrected"], none: [],
        fires: "sdc2" in "md/raid:md127: read error NOT corrected!! (sector 1649026584 on sdc2).", quiet: "md/raid:md127: raid level 5 active with 3 out of 3 devices, algorithm 2"),
    pattern!(Medium, On, ["md/raid", "read error not correctable"], none: [],
        fires: "sdb6" in "md/raid:md2: read error not correctable (sector 800 on sdb6).", quiet: "md/raid:md2: not clean -- starting background reconstruction"),
    pattern!(Medium, On, ["md/raid", ": read error corrected ("], none: [],
        fires: "sdb1" in "md/raid1:md0: read error corrected (8 sectors at 800 on sdb1)", quiet: "md/raid1:md0: redirecting sector 800 to other mirror: sdb1"),
    pattern!(Medium, SecondHead, ["md/raid", "exceeded read_error threshold"], none: [],
        fires: "sdb1" in "md/raid10:md0: sdb1: Raid device exceeded read_error threshold [cur 21:max 20]", quiet: "md/raid10:md0: active with 2 out of 2 devices"),
    pattern!(Medium, Device, ["md/raid", "Too many read errors, failing device "], none: [],
        fires: "sdb1" in "md/raid:md0: Too many read errors, failing device sdb1.", quiet: "md/raid:md0: device sdb1 operational as raid disk 1"),
    pattern!(ArrayMember, NonFresh, ["md: kicking non-fresh "], none: [],
        fires: "sdb1" in "md: kicking non-fresh sdb1 from array!", quiet: "md: md0: recovery done."),
    pattern!(Io, Vdev, ["zio pool=", " error=5 "], none: [],
        fires: "sda1" in "zio pool=tank vdev=/dev/sda1 error=5 type=2 offset=270336 size=8192 flags=b08c1",
        quiet: "zio pool=tank vdev=/dev/sda1 error=95 type=6 offset=270336 size=8192 flags=b08c1"),
    // Status 6 is that the disk is gone.
    pattern!(Io, Vdev, ["zio pool=", " error=6 "], none: [],
        fires: "sda1" in "zio pool=tank vdev=/dev/sda1 error=6 type=1 offset=270336 size=8192 flags=b08c1",
        quiet: "zio pool=tank vdev=/dev/sda1 error=95 type=6 offset=270336 size=8192 flags=b08c1"),
    pattern!(Checksum, SecondHead, ["device-mapper: integrity: ", "Checksum failed"], none: [],
        fires: "dm-0" in "device-mapper: integrity: dm-0: Checksum failed at sector 0x1234", quiet: "device-mapper: crypt: xts(aes) using implementation \"xts-aes-ce\""),
    pattern!(Checksum, SecondHead, ["device-mapper: crypt: ", "INTEGRITY AEAD ERROR"], none: ["sector 0"],
        fires: "dm-0" in "device-mapper: crypt: dm-0: INTEGRITY AEAD ERROR, sector 4096", quiet: "device-mapper: crypt: xts(aes) using implementation \"xts-aes-ce\""),
    pattern!(Checksum, BtrfsMember, ["BTRFS", "checksum error at logical"], none: [],
        fires: "sdb1" in "BTRFS warning (device sda1): checksum error at logical 100 on dev /dev/sdb1, physical 100, root 5, inode 257",
        quiet: "BTRFS info (device sda1): scrub: started on devid 1"),
    pattern!(Checksum, Parentheses, ["bcachefs (", "checksum error"], none: [],
        fires: "sda1" in "bcachefs (sda1 inum 402653184 offset 4096): data checksum error: got 8a1b should be 99c2 type crc32c",
        quiet: "bcachefs (sda1): mounting version 1.7"),
    pattern!(Filesystem, SecondHead, ["ntfs3: ", "Mark volume as dirty due to NTFS errors"], none: [],
        fires: "sdb1" in "ntfs3: sdb1: Mark volume as dirty due to NTFS errors", quiet: "ntfs3: sdb1: It is recommened to use chkdsk."),
    pattern!(Filesystem, Parentheses, ["ntfs3(", "Mark volume as dirty due to NTFS errors"], none: [],
        fires: "sdb1" in "ntfs3(sdb1): Mark volume as dirty due to NTFS errors", quiet: "ntfs3(sdb1): It is recommened to use chkdsk."),
    pattern!(Filesystem, SecondHead, ["ntfs3: ", "corrupted"], none: [],
        fires: "sda1" in "ntfs3: sda1: ino=5, \"x\" directory corrupted", quiet: "ntfs3: sda1: volume is dirty and \"force\" flag is not set!"),
    pattern!(Medium, SecondHead, ["md/raid", "unrecoverable I/O read error"], none: [],
        fires: "sda1" in "md/raid1:md0: sda1: unrecoverable I/O read error for block 31232", quiet: "md/raid1:md0: sda1: rescheduling sector 31232"),
    pattern!(Io, Dev, ["timeout error, dev "], none: [],
        fires: "sdc" in "timeout error, dev sdc, sector 99 op 0x1:(WRITE) flags 0x800", quiet: "reservation conflict error, dev sdc, sector 0 op 0x1:(WRITE) flags 0x0"),
    pattern!(Io, Dev, ["device offline error, dev "], none: ["(DISCARD)", "(WRITE_ZEROES)"],
        fires: "sda" in "device offline error, dev sda, sector 123456 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        quiet: "device offline error, dev sda, sector 8 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 2"),
    pattern!(UsbController, Board, ["xhci", "Host Controller Error"], none: [],
        fires: "" in "xhci_hcd 0000:01:00.0: WARNING: Host Controller Error", quiet: "xhci_hcd 0000:01:00.0: xHCI Host Controller"),
    pattern!(UsbController, Board, ["xhci", "Host System Error"], none: [],
        fires: "" in "xhci_hcd 0000:01:00.0: WARNING: Host System Error", quiet: "xhci_hcd 0000:01:00.0: Host supports USB 3.0 SuperSpeed"),
    pattern!(UsbController, Board, ["host not responding to stop endpoint command"], none: [],
        fires: "" in "xhci_hcd 0000:01:00.0: xHCI host not responding to stop endpoint command.", quiet: "xhci_hcd 0000:01:00.0: new USB bus registered, assigned bus number 2"),

    // File servers. Their names are not kept.
    pattern!(ServerSilent, Board, ["nfs: server ", " not responding"], none: [],
        fires: "" in "nfs: server 192.0.2.10 not responding, still trying", quiet: "nfs: server 192.0.2.10 OK"),
    pattern!(ServerSilent, Board, ["CIFS", " has not responded in "], none: [],
        fires: "" in "CIFS: VFS: \\\\nas has not responded in 180 seconds. Reconnecting...", quiet: "CIFS: Attempting to mount \\\\nas\\media"),

    // SATA disks that give up, and cards that answer out of turn.
    pattern!(Hardware, Head, ["ata", "status: {", " DF "], none: [],
        fires: "ata1" in "ata1.00: status: { DRDY DF ERR }", quiet: "ata1.00: status: { DRDY ERR }"),
    pattern!(Medium, Head, ["ata", "error: {", " IDNF "], none: ["ICRC", "SError"],
        fires: "ata1" in "ata1.00: error: { IDNF }", quiet: "ata1.00: status: { DRDY }"),
    pattern!(Medium, Head, ["ata", "error: {", " AMNF "], none: ["ICRC", "SError"],
        fires: "ata1" in "ata1.00: error: { AMNF }", quiet: "ata1.00: error: { }"),
    pattern!(Hardware, Head, ["ata", "error: { ABRT }"], none: [],
        fires: "ata1" in "ata1.00: error: { ABRT }", quiet: "ata1.00: error: { }"),
    pattern!(AtaTimeout, Head, ["ata", "failed to IDENTIFY"], none: [],
        fires: "ata3" in "ata3.00: failed to IDENTIFY (I/O error, err_mask=0x4)", quiet: "ata3.00: ATA-10: ST2000DM008-2FR102, 0001, max UDMA/133"),
    pattern!(AtaTimeout, Head, ["ata", ": disabled"], none: [],
        fires: "ata1" in "ata1.00: disabled", quiet: "ata1.00: detaching (SCSI 0:0:0:0)"),
    pattern!(AtaTimeout, Head, ["ata", ": disable device"], none: [],
        fires: "ata4" in "ata4.00: disable device", quiet: "ata4.00: NCQ disabled due to excessive errors"),
    pattern!(AtaTimeout, Head, ["ata", "revalidation failed"], none: [],
        fires: "ata1" in "ata1.00: revalidation failed (errno=-5)", quiet: "ata1.00: supports DRM functions and may not be fully accessible"),
    pattern!(CardTransfer, Head, ["mmc", "Got data interrupt", "even though no data operation"], none: [],
        fires: "mmc0" in "mmc0: Got data interrupt 0x00000002 even though no data operation was in progress.", quiet: "mmc0: SDHCI controller on 3f300000.mmc [3f300000.mmc] using PIO"),
    pattern!(CardTransfer, Head, ["mmc", "error -", " doing runtime resume"], none: [],
        fires: "mmc1" in "mmc1: error -110 doing runtime resume", quiet: "mmc1: cannot resume the SDIO card"),
    pattern!(CardTransfer, Head, ["mmcblk", "error -", " requesting status"], none: [],
        fires: "mmcblk0" in "mmcblk0: error -84 requesting status", quiet: "mmcblk0: mmc0:aaaa SL16G 14.8 GiB"),
    pattern!(CardStart, Head, ["mmc", "reading general info of SD ext reg"], none: [],
        fires: "mmc1" in "mmc1: error -110 reading general info of SD ext reg", quiet: "mmc1: SD Status: Invalid Allocation Unit size."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pattern_knows_its_message_and_not_the_harmless_one() {
        for pattern in all() {
            let (part, message) = pattern.fires;
            assert_eq!(trouble(message), Some((pattern.kind, part.to_string())), "{message}");
            let quiet = trouble(pattern.quiet);
            assert!(quiet.is_none(), "{}: {quiet:?}", pattern.quiet);
        }
    }

    #[test]
    fn a_swap_area_is_named_by_numbers_that_mean_one_device() {
        let named =
            |numbers: &str| swap_device(&format!("Read-error on swap-device ({numbers}:8)"));
        assert_eq!(named("8:0").as_deref(), Some("sda"));
        assert_eq!(named("8:33").as_deref(), Some("sdc1"));
        assert_eq!(named("8:255").as_deref(), Some("sdp15"));
        assert_eq!(named("179:0").as_deref(), Some("mmcblk0"));
        for unknown in ["179:8", "254:0", "259:2", "8:256", ""] {
            assert_eq!(named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_port_is_named_by_its_path_in_every_form() {
        let forms = [
            ("usb 1-1.4: x", "1-1.4"),
            ("usb-storage 1-1.4:1.0: x", "1-1.4"),
            ("usb 1-1-port4: x", "1-1.4"),
            ("usb usb2-port1: x", "2-1"),
            ("hub 1-1:1.0: over-current condition on port 3", "1-1.3"),
            ("hub 2-0:1.0: over-current change on port 1", "2-1"),
            ("hub 4-0:1.0: Cannot enable port 4.  Maybe the USB cable is bad?", "4-4"),
            ("hub 4-0:1.0: unable to enumerate USB device on port 7", "4-7"),
        ];
        for (message, path) in forms {
            assert_eq!(usb_port(message).as_deref(), Some(path), "{message}");
        }
        assert_eq!(usb_port("usb usb1: x"), None);
    }
}
