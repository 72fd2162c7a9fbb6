//! What a log tells of a disk, and what to do about it, in words.

use rubus_vocabulary::kernel_log::TroubleKind;
use rubus_vocabulary::units::counted;

use super::judge::{Cause, Health};

/// What to do about a supply that sags.
pub const BETTER_SUPPLY: &str = "Use the board's own power supply with a short, thick cable; give USB disks a supply of their own (a powered hub).";

/// What follows from what a log tells, and what to do.
pub struct Advice {
    /// What follows from it.
    pub consequence: &'static str,
    /// What to do.
    pub fix: String,
    /// The command that does it, where this program has one.
    pub command: Option<String>,
}

impl Cause {
    /// "the disk itself", "the power supply".
    pub fn words(self) -> &'static str {
        match self {
            Cause::Disk => "the disk itself",
            Cause::NoAnswer => "the disk, its cable or its link's power saving",
            Cause::CommandQueue => "the command queue of the card",
            Cause::Supply => "the power supply",
            Cause::Uas => "UAS on its USB bridge",
            Cause::Connection => "its cable, adapter or port",
            Cause::Controller => "the USB controller it is behind",
            Cause::WentAway => "a lost contact or too little power",
            Cause::Filesystem => "the filesystem, not the disk",
        }
    }
}

impl Health {
    /// "3 resets of the USB device", the weightiest first.
    pub fn evidence_words(&self) -> Vec<String> {
        self.evidence.iter().map(|(kind, times)| words(*kind, *times)).collect()
    }

    /// What to do.
    pub fn advice(&self) -> Advice {
        let disk = &self.part;
        let has = |kind: TroubleKind| self.evidence.iter().any(|(told, _)| *told == kind);
        let is_card = disk.starts_with("mmcblk");
        let (consequence, fix, command) = match self.cause {
        Cause::Disk if is_card => (
            "Cards that begin to fail lose files or become read-only, often within days.",
            "Copy your data now, then replace the card. Wipe its contacts first, if it is new.".into(),
            None,
        ),
        Cause::NoAnswer => (
            "Each time the disk stands still for half a minute; writes may fail.",
            format!("The log does not say why it does not answer. Try, in this order: another cable and port; on SATA the link without power management (`echo max_performance` into its `link_power_management_policy`); one command at a time (1 into its `queue_depth`); then ask the disk what it knows of itself (`smartctl -a {}`).", node(disk)),
            None,
        ),
        Cause::Disk => (
            "What was at these places is lost, and more may follow.",
            format!("Copy your data now; then ask the disk what it knows of itself (`smartctl -a {}`), and replace it.", node(disk)),
            None,
        ),
        Cause::Supply => (
            "The supply sags under load, just when a disk is written: USB disks drop off the bus, cards lose writes, filesystems are damaged.",
            BETTER_SUPPLY.into(),
            None,
        ),
        Cause::Uas => (
            "Each time, the disk stands still for half a minute; writes may fail.",
            "Let the older driver usb-storage serve the bridge, which is slower: one command at a time. If that does not end it, it is the cable or the supply.".into(),
            disk.starts_with("sd").then(|| format!("rubus plan usb-quirk device=/dev/{disk}")),
        ),
        Cause::Connection if has(TroubleKind::NvmeGone) => (
            "All that is on it is out of reach until the next start; what was being written is lost.",
            "First try it without power saving: `nvme_core.default_ps_max_latency_us=0 pcie_aspm=off` on the kernel's command line. If it still goes, seat its cable or adapter again, and stay with the generation of PCI Express that the board is made for.".into(),
            None,
        ),
        Cause::Connection if has(TroubleKind::AtaLink) => (
            "Transfers are repeated, which is slow, until one fails for good.",
            "Seat the disk's cable again at both ends, try another cable and another port; then the link without power management (`echo max_performance` into its `link_power_management_policy`).".into(),
            None,
        ),
        Cause::Connection => (
            "Transfers are repeated, which is slow, until one fails for good.",
            "Seat the disk's cable or adapter again, try another cable and another port, and do without extensions. On PCI Express stay with the generation that the board is made for.".into(),
            None,
        ),
        Cause::Controller => (
            "All disks behind it are gone until the next start; what was being written is lost.",
            "Start the machine again, then bring its firmware (`rpi-eeprom-update` on a Raspberry Pi 4 and later) and its kernel up to date. If it stops again: a powered hub, or another port.".into(),
            None,
        ),
        Cause::CommandQueue => (
            "Each time the card stands still for up to half a minute, and what is read may be wrong without a word.",
            "Copy your data now, and do without the queue. On a Raspberry Pi 5, 500 or Compute Module 5: the line `dtparam=sd_cqe=0` in config.txt, then a restart (newer kernels leave the queue off but for cards that are known to be good). On another board: a newer kernel. If it stalls without the queue, replace the card.".into(),
            None,
        ),
        Cause::WentAway if is_card => (
            "What was being written is lost; the filesystem may be damaged.",
            "If it was not pulled out: wipe its contacts, seat it again without an adapter or extension, and start the machine again. If it goes away again, replace the card, then look at the slot.".into(),
            None,
        ),
        Cause::WentAway => (
            "What was being written is lost; the filesystem may be damaged.",
            "If it was not pulled out: a disk that drops off without a word mostly lacks power. Give it a supply of its own (a powered hub), then try another cable.".into(),
            None,
        ),
        Cause::Filesystem if has(TroubleKind::Checksum) => (
            "What was read is not what was written; more may be damaged each day.",
            "Copy what matters. Then test the memory first (`memtester`, or memtest86+ from the start), next the controller and its cables, and the disks last; then look for what is damaged (`btrfs scrub` for btrfs).".into(),
            None,
        ),
        Cause::Filesystem => (
            "Files may be damaged, mostly by a power cut. Errors spread as long as it is written to.",
            "Copy what matters, then have it checked while it is not mounted (`fsck -f` for ext4 and FAT, `xfs_repair` for XFS, `btrfs scrub` for btrfs; of an ext4 root at the next start with `fsck.mode=force` on the kernel's command line).".into(),
            None,
        ),
        };
        Advice { consequence, fix, command }
    }
}

/// `/dev/sda`; a SATA port and an array have no disk's answer: the disk has to be found.
fn node(part: &str) -> String {
    let is_disk = ["sd", "hd", "vd", "nvme", "mmcblk"].iter().any(|name| part.starts_with(name));
    if is_disk { format!("/dev/{part}") } else { "/dev/DISK".into() }
}

fn words(kind: TroubleKind, times: u64) -> String {
    let (one, several) = match kind {
        TroubleKind::CardTransfer => {
            ("failed transfer of the card", "failed transfers of the card")
        }
        TroubleKind::CardStart => ("failed start of the card", "failed starts of the card"),
        TroubleKind::CardReadOnly => return "that the card is read-only".into(),
        TroubleKind::CardQueue => {
            ("stall of the card's command queue", "stalls of the card's command queue")
        }
        TroubleKind::CardGone => ("loss of the card", "losses of the card"),
        TroubleKind::Io => ("failed read or write", "failed reads or writes"),
        TroubleKind::Medium => (
            "place that cannot be read or written",
            "reports of places that cannot be read or written",
        ),
        TroubleKind::Hardware => {
            ("report that the disk is broken", "reports that the disk is broken")
        }
        TroubleKind::AtaLink => {
            ("transfer damaged on the disk's cable", "transfers damaged on the disk's cable")
        }
        TroubleKind::AtaTimeout => ("command without an answer", "commands without an answer"),
        TroubleKind::UasAbort => ("command that UAS gave up", "commands that UAS gave up"),
        TroubleKind::UsbReset => ("reset of the USB device", "resets of the USB device"),
        TroubleKind::UsbEnumeration => (
            "address that the USB device did not take",
            "addresses that the USB device did not take",
        ),
        TroubleKind::UsbDisconnect => ("disconnect from USB", "disconnects from USB"),
        TroubleKind::UsbConnect => ("connect to USB", "connects to USB"),
        TroubleKind::UsbDisk => ("disk found on USB", "disks found on USB"),
        TroubleKind::UsbController => return "that the USB controller stopped".into(),
        TroubleKind::OverCurrent => {
            ("port with too much current", "reports of ports with too much current")
        }
        TroubleKind::Undervoltage => ("spell of low voltage", "spells of low voltage"),
        TroubleKind::NvmeTimeout => {
            ("NVMe command without an answer", "NVMe commands without an answer")
        }
        TroubleKind::NvmeGone => ("loss of the NVMe controller", "losses of the NVMe controller"),
        TroubleKind::NvmeFatal => ("fatal error of the NVMe disk", "fatal errors of the NVMe disk"),
        TroubleKind::PcieCorrected => {
            ("repeated transfer on PCI Express", "repeated transfers on PCI Express")
        }
        TroubleKind::PcieUncorrected => {
            ("lost transfer on PCI Express", "lost transfers on PCI Express")
        }
        TroubleKind::Filesystem => ("filesystem error", "filesystem errors"),
        TroubleKind::FilesystemReadOnly => {
            ("filesystem that became read-only", "filesystems that became read-only")
        }
        TroubleKind::Checksum => ("wrong checksum", "wrong checksums"),
        TroubleKind::ArrayMember => ("lost member of the array", "lost members of the array"),
        TroubleKind::ServerSilent => (
            "report of a file server that did not answer",
            "reports of a file server that did not answer",
        ),
    };
    counted(times, one, several)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(part: &str, cause: Cause, evidence: &[(TroubleKind, u64)]) -> String {
        let evidence = evidence.to_vec();
        Health { part: part.into(), cause, is_failing: false, evidence }.advice().fix
    }

    #[test]
    fn the_cure_fits_what_the_log_has() {
        let silent = fix("sda", Cause::NoAnswer, &[(TroubleKind::AtaTimeout, 3)]);
        assert!(silent.starts_with("The log does not say why"), "{silent}");
        let bad =
            fix("sda", Cause::Disk, &[(TroubleKind::AtaTimeout, 3), (TroubleKind::Medium, 1)]);
        assert!(bad.ends_with("and replace it."), "{bad}");
        let queue = fix("mmcblk0", Cause::CommandQueue, &[(TroubleKind::CardQueue, 9)]);
        assert!(queue.contains("`dtparam=sd_cqe=0`"), "{queue}");
        let card = fix("mmcblk0", Cause::WentAway, &[(TroubleKind::CardGone, 1)]);
        assert!(card.contains("contacts") && !card.contains("hub"), "{card}");
        let gone = fix("nvme0", Cause::Connection, &[(TroubleKind::NvmeGone, 1)]);
        assert!(gone.starts_with("First try it without power saving"), "{gone}");
        let link = fix("sda", Cause::Connection, &[(TroubleKind::AtaLink, 9)]);
        assert!(link.contains("link_power_management_policy"), "{link}");
        let replays = fix("nvme0", Cause::Connection, &[(TroubleKind::PcieCorrected, 50)]);
        assert!(replays.starts_with("Seat"), "{replays}");
        let sums = fix("sda", Cause::Filesystem, &[(TroubleKind::Checksum, 4)]);
        assert!(sums.contains("memory first"), "{sums}");
        let files = fix("sda", Cause::Filesystem, &[(TroubleKind::Filesystem, 4)]);
        assert!(files.contains("xfs_repair") && files.contains("btrfs scrub"), "{files}");
    }
}
