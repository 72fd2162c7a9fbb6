//! Which disk an image is: what clients compare before they go on after a lost connection.

use std::path::Path;

use rubus_host::digest::sha256;
use rubus_host::image::Image;
use rubus_nbd::identity::{Identity, Uuid};

/// Where the image keeps a number that nothing else has, if its filesystem can keep one.
const LABEL: &str = "user.rubus.export";

/// The identity of an export of the image at that path.
pub fn of(image: &Image, path: &Path, sync: bool) -> Option<Identity> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let (sum, _) = sha256(&mut marks(image, path)?.as_bytes()).ok()?;
    let export = u128::from_str_radix(sum.get(..32)?, 16).ok()?;
    Some(Identity {
        boot: Uuid::parse(boot.trim())?,
        export: Uuid(export),
        generation: 0,
        sync,
    })
}

/// What tells the image from all others, after a restart of the machine, too. A copy takes the label
/// along, and then its inode and its birth tell it from the original: a backup that was put back is
/// not the disk that a client had.
fn marks(image: &Image, path: &Path) -> Option<String> {
    if image.is_device() {
        let path = std::fs::canonicalize(path).ok()?;
        return Some(format!("{} {}", path.display(), image.size_bytes()));
    }
    if image.label(LABEL).is_none() && image.is_writable() {
        let fresh = std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?;
        // Where nothing can be kept there is no label, and the device's number has to do.
        let _ = image.set_label(LABEL, fresh.trim());
    }
    Some(match image.label(LABEL) {
        Some(label) => format!("{label} {}", image.mark(false).ok()?),
        None => image.mark(true).ok()?,
    })
}
