//! What boards are like: memory, processor, network port, way to the disk, power, price.

use rubus_machine::ceiling;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::basis::Basis;
use serde::Serialize;

/// How a board reaches its disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DiskBus {
    /// A USB bridge; all disks of the board share the controller.
    Usb {
        /// Signalling rate in Mbit/s.
        mbit: u32,
        /// Whether the network port sits behind the same bus, as up to the Pi 3B+.
        is_shared_with_network: bool,
    },
    /// PCI Express lanes: NVMe.
    Pcie {
        /// What they carry, bytes per second.
        bytes_per_second: f64,
    },
    /// A SATA port per disk.
    Sata,
}

impl DiskBus {
    /// What it carries for all disks of a board, bytes per second.
    pub fn bytes_per_second(self) -> f64 {
        match self {
            DiskBus::Usb { mbit, .. } => ceiling::usb(mbit).map_or(1e6, |c| c.bytes_per_second),
            DiskBus::Pcie { bytes_per_second } => bytes_per_second,
            DiskBus::Sata => ceiling::sata(6_000_000_000).bytes_per_second,
        }
    }

    /// Whether a bridge stands before the disk.
    pub fn is_usb(self) -> bool {
        matches!(self, DiskBus::Usb { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Board {
    /// Its name on the command line.
    pub kind: String,
    /// Its name for people.
    pub name: String,
    /// Memory that the kernel has, bytes.
    pub memory_bytes: u64,
    /// How the memory is known.
    pub memory_basis: Basis,
    /// Processor cores.
    pub cores: u32,
    /// Processor time of a piece of work against a core of a current mini PC (Intel N100), times.
    pub slower: Estimate,
    /// Rate of the network port, bits per second.
    pub link_bits: u64,
    /// How the rate is known.
    pub link_basis: Basis,
    /// The way to the disks.
    pub bus: DiskBus,
    /// Power under a storage node's load without disks, watts.
    pub watts: Estimate,
    /// Price where none is given, euros with tax.
    pub price: f64,
    /// Power supply of its own, euros with tax.
    pub supply_price: f64,
    /// Whether an ARM board, with the settings that Ceph needs there.
    pub is_arm: bool,
    /// Where the figures come from.
    pub source: &'static str,
}

const RASPBERRY_PI: &str = "memory, cores, ports: product brief; MemTotal 94 % of the label as the kernel \
                            reports it; price: list price, ~; power: assumed from published 3 to 8 W";

/// Share of the label's memory that the kernel reports as MemTotal: 3.7 of 4 GiB on a Pi 4 (captures/).
const MEMORY_SHARE: f64 = 0.94;

/// All kinds that have a name here.
pub fn known() -> Vec<Board> {
    let usb2 = DiskBus::Usb { mbit: 480, is_shared_with_network: true };
    let usb3 = DiskBus::Usb { mbit: 5000, is_shared_with_network: false };
    // One Gen 2 lane on a Pi 5: 450 of 500 MB/s (core's ceiling::PcieLink).
    let lane = DiskBus::Pcie { bytes_per_second: 450e6 };
    let pc_bus = DiskBus::Pcie { bytes_per_second: 1.77e9 };
    // Against an N100 core: A53 1.4 GHz, A72 1.5 GHz, A76 2.4 GHz; from published single-core results, rounded.
    let (a53, a72, a76) = ((7.0, 4.5, 10.0), (3.5, 2.5, 5.0), (1.5, 1.2, 2.2));
    let board =
        |kind: &str, name: &str, gib: f64, slower: (f64, f64, f64), bus, price: f64| Board {
            kind: kind.into(),
            name: name.into(),
            memory_bytes: (gib * MEMORY_SHARE * 1024.0) as u64 * (1 << 20),
            memory_basis: Basis::Published,
            cores: 4,
            slower: Estimate::new(slower.0, slower.1, slower.2),
            link_bits: 1_000_000_000,
            link_basis: Basis::Published,
            bus,
            watts: Estimate::new(4.5, 3.0, 6.5),
            price,
            supply_price: 8.0,
            is_arm: true,
            source: RASPBERRY_PI,
        };
    let mut boards = vec![
        board("pi3b+", "Raspberry Pi 3B+, 1 GB", 1.0, a53, usb2, 35.0),
        board("pi4-2gb", "Raspberry Pi 4, 2 GB", 2.0, a72, usb3, 45.0),
        board("pi4-4gb", "Raspberry Pi 4, 4 GB", 4.0, a72, usb3, 60.0),
        board("pi4-8gb", "Raspberry Pi 4, 8 GB", 8.0, a72, usb3, 85.0),
        board("pi5-4gb", "Raspberry Pi 5, 4 GB", 4.0, a76, lane, 70.0),
        board("pi5-8gb", "Raspberry Pi 5, 8 GB", 8.0, a76, lane, 95.0),
        board("pi5-16gb", "Raspberry Pi 5, 16 GB", 16.0, a76, lane, 145.0),
    ];
    // USB 2 carries about 300 Mbit/s of the 3B+'s gigabit port (product brief).
    boards[0].link_bits = 300_000_000;
    for pi5 in &mut boards[4..] {
        pi5.watts = Estimate::new(6.0, 4.0, 9.0);
        pi5.supply_price = 12.0;
    }
    let pc = |kind: &str, gib: f64, link_bits: u64, price: f64| Board {
        name: format!("mini PC (N100), {gib} GB"),
        slower: Estimate::new(1.0, 0.8, 1.3),
        link_bits,
        watts: Estimate::new(12.0, 8.0, 20.0),
        supply_price: 0.0,
        is_arm: false,
        source: "typical of the class; everything ~ except the processor's cores",
        ..board(kind, "", gib, (1.0, 1.0, 1.0), pc_bus, price)
    };
    boards.push(pc("mini-pc", 16.0, 2_500_000_000, 200.0));
    boards.push(pc("mini-pc-8gb", 8.0, 1_000_000_000, 160.0));
    boards
}

/// The board of a kind.
///
/// # Errors
/// That there is none, with those that there are.
pub fn find(kind: &str) -> Result<Board, String> {
    let all = known();
    let kinds: Vec<&str> = all.iter().map(|board| board.kind.as_str()).collect();
    let unknown = format!(
        "there is no board '{kind}'; there are {}. For another one give its measured run with --node-from",
        kinds.join(", ")
    );
    let wanted = kind.to_ascii_lowercase();
    let found = all.into_iter().find(|board| board.kind == wanted);
    found.ok_or(unknown)
}
