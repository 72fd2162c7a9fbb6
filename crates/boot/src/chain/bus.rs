//! What a disk of a board hangs on, by how the kernel names it.

/// What a disk hangs on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bus {
    /// A card or eMMC.
    Card,
    Usb,
    Nvme,
    Other,
}

impl Bus {
    /// By the path of a node.
    pub(super) fn of(node: &str) -> Bus {
        const NODES: [(&str, Bus); 3] =
            [("/dev/mmcblk", Bus::Card), ("/dev/sd", Bus::Usb), ("/dev/nvme", Bus::Nvme)];
        let known = NODES.iter().find(|(start, _)| node.starts_with(start));
        known.map_or(Bus::Other, |(_, bus)| *bus)
    }
}
