//! Names of the links below `/dev/disk`, which udev makes of makers, products and serial numbers, and owners of their own words.

use std::path::Path;

use super::Secrets;
use crate::capture::shapes;
use crate::files::Files;
use crate::shareable::products::is_product;
use crate::simulated::recorder::Record;

const DISK_LINKS: [(&str, LinkKind); 3] = [
    ("/dev/disk/by-id", LinkKind::Id),
    ("/dev/disk/by-uuid", LinkKind::Uuid),
    ("/dev/disk/by-partuuid", LinkKind::Uuid),
];

/// How udev's links by identity begin.
const BUSES: [&str; 10] =
    ["ata", "usb", "nvme", "scsi", "mmc", "virtio", "ieee1394", "cciss", "memstick", "edd"];

#[derive(Clone, Copy)]
pub(super) enum LinkKind {
    Id,
    Uuid,
}

impl Secrets {
    /// What the links of the machine and of the record tell.
    pub(super) fn add_disk_links(&mut self, files: &dyn Files, record: &Record) {
        for (directory, kind) in DISK_LINKS {
            for name in files.list(Path::new(directory)).unwrap_or_default() {
                self.add_link_name(kind, &name);
            }
            for name in record.directories.get(directory).into_iter().flatten() {
                self.add_link_name(kind, name);
            }
        }
    }

    pub(super) fn add_link_name(&mut self, kind: LinkKind, name: &str) {
        match kind {
            LinkKind::Uuid => self.add_volume_id(name),
            LinkKind::Id => {
                // "ata-…", "usb-…", "wwn-0x…", "nvme-eui.…", each perhaps with "-part2".
                let name = match name.rsplit_once("-part") {
                    Some((disk, number)) if number.parse::<u32>().is_ok() => disk,
                    _ => name,
                };
                let Some((bus, rest)) = name.split_once('-') else {
                    self.add_name(name);
                    return;
                };
                match bus {
                    "wwn" => self.add_id(rest.strip_prefix("0x").unwrap_or(rest)),
                    // Names that people gave.
                    "dm" | "md" if rest.starts_with("name-") => {}
                    "dm" | "md" | "lvm" => self.add_wide_id(rest),
                    _ if rest.starts_with("eui.") || rest.starts_with("nvme.") => {
                        self.add_wide_id(rest);
                    }
                    _ => {
                        // Owners write rules for udev that make links, too.
                        if !BUSES.contains(&bus) {
                            self.add_name(name);
                        }
                        let last = shapes::serial_in_name(rest);
                        // One word alone: an owner's gadget has what its owner called it.
                        if !rest.contains('_') && !shapes::identifies(last) && !is_product(last) {
                            self.add_name(last);
                        }
                        self.add_serial(last);
                        self.add_makers_names(rest);
                    }
                }
            }
        }
    }

    /// What udev makes of a maker, a product and a serial number ("Generic_Flash_Disk_8A2F9C01"): words before the number that
    /// are of no product are names that an owner gave.
    pub(super) fn add_makers_names(&mut self, name: &str) {
        let serial = shapes::serial_in_name(name);
        let end =
            if shapes::identifies(serial) { name.rfind(serial).unwrap_or(0) } else { name.len() };
        let product = name[..end].trim_end_matches('_');
        if !product.contains('_') && end == name.len() || is_product(&product.replace('_', " ")) {
            return;
        }
        let is_known = |piece: &str| is_product(piece) || is_product(&piece[1..]);
        for piece in product.split('_').filter(|piece| !piece.is_empty()) {
            if piece.is_ascii() && is_known(piece) {
                continue;
            }
            self.add_name(piece);
        }
    }
}
