//! What the boards are: processor, kernel, drivers, names of boot files, and the arguments with
//! which the emulator builds them. Adding a board is adding a variant here.

use std::path::Path;

use clap::ValueEnum;

use crate::tools::Tool;

/// An emulated board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Board {
    /// Raspberry Pi 3 Model B: aarch64, four Cortex-A53, 1 GiB, SD card, one USB 2 disk
    Pi3,
    /// A quick x86-64 board of the same layout: SD card through sdhci, USB disk through xhci
    Pc,
}

/// Limits of a drive, as the emulator enforces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second, reads and writes together; 0 is no limit.
    pub bytes_per_second: u64,
    /// Operations per second, reads and writes together; 0 is no limit.
    pub operations_per_second: u64,
}

impl std::str::FromStr for Throttle {
    type Err = String;

    /// Reads `BYTES,IOPS`, for example `20000000,1500`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not BYTES,IOPS (for example 20000000,1500)");
        let (bytes, operations) = text.split_once(',').ok_or_else(wrong)?;
        Ok(Self {
            bytes_per_second: bytes.trim().parse().map_err(|_| wrong())?,
            operations_per_second: operations.trim().parse().map_err(|_| wrong())?,
        })
    }
}

impl Board {
    /// Short name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pi3 => "pi3",
            Self::Pc => "pc",
        }
    }

    /// What it is called in texts for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Pi3 => "emulated Raspberry Pi 3 Model B",
            Self::Pc => "emulated x86-64 board with an SD card",
        }
    }

    /// Debian's name of its processor.
    #[must_use]
    pub fn debian_architecture(self) -> &'static str {
        match self {
            Self::Pi3 => "arm64",
            Self::Pc => "amd64",
        }
    }

    /// The Rust target whose static binaries run on it.
    #[must_use]
    pub fn rust_target(self) -> &'static str {
        match self {
            Self::Pi3 => "aarch64-unknown-linux-musl",
            Self::Pc => "x86_64-unknown-linux-musl",
        }
    }

    /// The emulator.
    #[must_use]
    pub fn emulator(self) -> Tool {
        match self {
            Self::Pi3 => Tool {
                program: "qemu-system-aarch64",
                package: "qemu-system-arm",
            },
            Self::Pc => Tool {
                program: "qemu-system-x86_64",
                package: "qemu-system-x86",
            },
        }
    }

    /// Kernel modules that the initial RAM filesystem loads: what it takes to reach the card, the
    /// USB disk and the root filesystem, and to switch the board off.
    #[must_use]
    pub fn boot_modules(self) -> &'static [&'static str] {
        match self {
            Self::Pi3 => &[
                "bcm2835",
                "sdhci-iproc",
                "bcm2835_wdt",
                "phy-generic",
                "dwc2",
                "usb-storage",
                "uas",
                "sd_mod",
                "ext4",
            ],
            Self::Pc => &[
                "sdhci-pci",
                "mmc_block",
                "xhci-pci",
                "usb-storage",
                "uas",
                "sd_mod",
                "ext4",
            ],
        }
    }

    /// Debian packages that only this board has.
    #[must_use]
    pub fn own_packages(self) -> &'static [&'static str] {
        match self {
            Self::Pi3 => &[],
            // Its many runs try what can hold a device: qemu-nbd is one of them.
            Self::Pc => &["qemu-utils"],
        }
    }

    /// `config.txt` of the boot partition, in the words of Raspberry Pi OS.
    #[must_use]
    pub fn config_txt(self) -> &'static str {
        match self {
            Self::Pi3 => include_str!("../board/pi3/config.txt"),
            Self::Pc => include_str!("../board/pc/config.txt"),
        }
    }

    /// Name of the kernel in the boot partition.
    #[must_use]
    pub fn kernel_file(self) -> &'static str {
        match self {
            Self::Pi3 => "kernel8.img",
            Self::Pc => "vmlinuz",
        }
    }

    /// Name of the initial RAM filesystem in the boot partition.
    #[must_use]
    pub fn initramfs_file(self) -> &'static str {
        match self {
            Self::Pi3 => "initramfs8",
            Self::Pc => "initrd.img",
        }
    }

    /// The device tree in the boot partition, and where Debian's kernel package has it (below the
    /// package's directory of device trees).
    #[must_use]
    pub fn device_tree(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Pi3 => Some(("bcm2837-rpi-3-b.dtb", "broadcom/bcm2837-rpi-3-b.dtb")),
            Self::Pc => None,
        }
    }

    /// Device-tree overlays of the boot partition: name and source.
    #[must_use]
    pub fn overlays(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Pi3 => &[(
                "disable-bt",
                include_str!("../board/pi3/disable-bt-overlay.dts"),
            )],
            Self::Pc => &[],
        }
    }

    /// Identifier in the card's partition table; partitions are `PARTUUID=<this>-01` and so on.
    #[must_use]
    pub fn disk_id(self) -> u32 {
        match self {
            Self::Pi3 => 0x3b0a_02d1,
            Self::Pc => 0x7c0a_02d1,
        }
    }

    /// The serial port of the system console, as the kernel on this board names it.
    #[must_use]
    pub fn console(self) -> &'static str {
        match self {
            Self::Pi3 => "ttyAMA0",
            Self::Pc => "ttyS0",
        }
    }

    /// The serial port over which commands reach the board. The Pi's second UART is number 1 to
    /// Debian's kernel, because the device tree's aliases say so.
    #[must_use]
    pub fn data_port(self) -> &'static str {
        "ttyS1"
    }

    /// Emulator arguments for the board itself, without disks, serial ports and boot files.
    #[must_use]
    pub fn machine_arguments(self) -> Vec<String> {
        let arguments: &[&str] = match self {
            Self::Pi3 => &["-M", "raspi3b"],
            // No hardware acceleration: a run must be the same on every machine. One core: with
            // more, the emulator now and then executes code that the kernel has just patched. With
            // `rdrand`, the kernel has random numbers at once and no program waits for them.
            Self::Pc => &[
                "-M",
                "q35,accel=tcg,sata=off",
                "-cpu",
                "Westmere,+rdrand",
                "-m",
                "1G",
                "-nodefaults",
            ],
        };
        arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect()
    }

    /// Emulator arguments for the SD card and the USB disk. The image files stay unchanged: writes
    /// go to a nameless temporary file.
    #[must_use]
    pub fn disk_arguments(self, sd: &Path, usb: &Path, limits: Option<Throttle>) -> Vec<String> {
        let drive = |start: &str, path: &Path, limits: Option<Throttle>| {
            let path = path.display().to_string().replace(',', ",,");
            let mut text = format!("{start},file={path},format=raw,snapshot=on,discard=unmap");
            if let Some(limits) = limits {
                for (name, value) in [
                    ("bps-total", limits.bytes_per_second),
                    ("iops-total", limits.operations_per_second),
                ] {
                    if value > 0 {
                        text.push_str(&format!(",throttling.{name}={value}"));
                    }
                }
            }
            text
        };
        let usb_drive = drive("if=none,id=usb", usb, None);
        // Port 1 is the Pi's only root port; unnamed, the emulator would put a full-speed hub
        // (12 Mbit/s) before the disk.
        let usb_disk = "usb-storage,drive=usb,port=1,serial=4C530001230914116022";
        let arguments: Vec<String> = match self {
            Self::Pi3 => vec![
                "-drive".into(),
                drive("if=sd", sd, limits),
                "-drive".into(),
                usb_drive,
                "-device".into(),
                usb_disk.into(),
            ],
            Self::Pc => vec![
                "-drive".into(),
                drive("if=none,id=sd", sd, limits),
                "-device".into(),
                "sdhci-pci".into(),
                "-device".into(),
                "sd-card,drive=sd".into(),
                "-drive".into(),
                usb_drive,
                "-device".into(),
                "qemu-xhci".into(),
                "-device".into(),
                usb_disk.into(),
            ],
        };
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttle_reads_bytes_and_operations() {
        let throttle: Throttle = "20000000,1500".parse().unwrap();
        assert_eq!(throttle.bytes_per_second, 20_000_000);
        assert_eq!(throttle.operations_per_second, 1500);
        assert!(
            "20M,1500"
                .parse::<Throttle>()
                .unwrap_err()
                .contains("BYTES,IOPS")
        );
        assert!("20".parse::<Throttle>().is_err());
    }

    #[test]
    fn only_the_card_is_throttled_and_commas_in_paths_are_kept() {
        let limits = Throttle {
            bytes_per_second: 5,
            operations_per_second: 0,
        };
        for board in [Board::Pi3, Board::Pc] {
            let arguments = board.disk_arguments(Path::new("/a,b"), Path::new("/u"), Some(limits));
            let card = arguments.iter().find(|a| a.contains("/a,,b")).unwrap();
            assert!(card.contains(",throttling.bps-total=5"), "{card}");
            assert!(!card.contains("iops"), "{card}");
            let usb = arguments.iter().find(|a| a.contains("file=/u")).unwrap();
            assert!(!usb.contains("throttling"), "{usb}");
        }
    }
}
