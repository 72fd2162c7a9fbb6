//! What the boards are: processor, kernel, drivers, names of boot files, and the arguments with
//! which the emulator builds them. Adding a board is adding a variant here.

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

    /// Whether its processor is of this machine's kind.
    #[must_use]
    pub fn runs_programs_of_this_machine(self) -> bool {
        self.rust_target().starts_with(std::env::consts::ARCH)
    }

    /// The QEMU program that emulates the board.
    #[must_use]
    pub fn emulator(self) -> Tool {
        match self {
            Self::Pi3 => Tool { program: "qemu-system-aarch64", package: "qemu-system-arm" },
            Self::Pc => Tool { program: "qemu-system-x86_64", package: "qemu-system-x86" },
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
            Self::Pc => {
                &["sdhci-pci", "mmc_block", "xhci-pci", "usb-storage", "uas", "sd_mod", "ext4"]
            }
        }
    }

    /// Debian packages that only this board has.
    #[must_use]
    pub fn own_packages(self) -> &'static [&'static str] {
        match self {
            // What watches a machine beside rubus (top is there anyway), `script`, which gives each a terminal, and what is known of terminals.
            Self::Pi3 => &["bsdutils", "ncurses-base", "sysstat"],
            // Its many runs try what can hold a device: qemu-nbd is one of them. strace stops a program at
            // the call after which the power is cut. cryptsetup measures the kernel's ciphers too.
            Self::Pc => &["cryptsetup-bin", "qemu-utils", "strace"],
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
            Self::Pi3 => &[("disable-bt", include_str!("../board/pi3/disable-bt-overlay.dts"))],
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

    /// Its network card, as the emulator calls it, on the network `net`.
    #[must_use]
    pub fn network_card(self) -> &'static str {
        match self {
            Self::Pi3 => "usb-net,netdev=net,port=1",
            Self::Pc => "e1000,netdev=net,romfile=",
        }
    }

    /// Whether its network card is in the plug of its USB disk: the emulator's hub is a full-speed one,
    /// and a disk behind it would be another disk.
    #[must_use]
    pub fn network_takes_the_plug(self) -> bool {
        self == Self::Pi3
    }

    /// How many USB controllers it has.
    #[must_use]
    pub fn usb_buses(self) -> usize {
        match self {
            Self::Pi3 => 1,
            Self::Pc => 2,
        }
    }

    /// Whether this number of USB disks shares one plug: the Pi has one root port, and the emulator's hub is a
    /// full-speed one (12 Mbit/s).
    #[must_use]
    pub fn shares_plug(self, disks: usize) -> bool {
        self == Self::Pi3 && disks > 1
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
        arguments.iter().map(|&argument| argument.to_owned()).collect()
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
        assert!("20M,1500".parse::<Throttle>().unwrap_err().contains("BYTES,IOPS"));
        assert!("20".parse::<Throttle>().is_err());
    }
}
