//! What the kernel itself exports: USB mass storage gadgets, NVMe targets, SCSI targets (LIO). They hold devices without a
//! claim, and no process has them open; configfs and sysfs say which.

use std::path::{Path, PathBuf};

use rubus_host::Files;

const GADGETS: &str = "/sys/kernel/config/usb_gadget";
const NVME_SUBSYSTEMS: &str = "/sys/kernel/config/nvmet/subsystems";
const SCSI_BACKSTORES: &str = "/sys/kernel/config/target/core";
/// Controllers of the USB's device side, for the module `g_mass_storage`, which is not set up through configfs.
const DEVICE_CONTROLLERS: &str = "/sys/class/udc";

/// A device or file that the kernel exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exported {
    /// By what, for a sentence: "the USB gadget g1 (lun.0)".
    pub by: String,
    /// The device or file, as it was set up.
    pub path: PathBuf,
}

/// Everything that the kernel exports now. Where nothing can be read, nothing is set up.
pub(super) fn all(files: &dyn Files) -> Vec<Exported> {
    let mut found = Vec::new();
    for (gadget, directory) in below(files, Path::new(GADGETS)) {
        for (function, directory) in below(files, &directory.join("functions")) {
            if function.starts_with("mass_storage.") {
                units(files, &directory, &format!("the USB gadget {gadget}"), &mut found);
            }
        }
    }
    for (_, controller) in below(files, Path::new(DEVICE_CONTROLLERS)) {
        for (name, directory) in below(files, &controller.join("device")) {
            if name.starts_with("gadget") {
                units(files, &directory, "the USB gadget of g_mass_storage", &mut found);
            }
        }
    }
    for (subsystem, directory) in below(files, Path::new(NVME_SUBSYSTEMS)) {
        for (number, directory) in below(files, &directory.join("namespaces")) {
            let is_off = files.text(&directory.join("enable")).is_ok_and(|text| text.trim() == "0");
            let by = format!("the NVMe target {subsystem} (namespace {number})");
            if !is_off {
                found.extend(named_in(files, &directory.join("device_path"), by));
            }
        }
    }
    for (adapter, directory) in below(files, Path::new(SCSI_BACKSTORES)) {
        for (name, directory) in below(files, &directory) {
            let by = format!("the SCSI target {adapter}/{name}");
            found.extend(named_in(files, &directory.join("udev_path"), by));
        }
    }
    found
}

/// The logical units of a mass storage function.
fn units(files: &dyn Files, function: &Path, gadget: &str, found: &mut Vec<Exported>) {
    for (unit, directory) in below(files, function) {
        if unit.starts_with("lun") {
            let by = format!("{gadget} ({unit})");
            found.extend(named_in(files, &directory.join("file"), by));
        }
    }
}

fn below(files: &dyn Files, directory: &Path) -> Vec<(String, PathBuf)> {
    let names = files.list(directory).unwrap_or_default().into_iter();
    names.map(|name| (name.clone(), directory.join(name))).collect()
}

/// What an attribute names; nothing while it is empty.
fn named_in(files: &dyn Files, attribute: &Path, by: String) -> Option<Exported> {
    let text = files.text(attribute).ok()?;
    let path = text.trim_end_matches(['\n', '\0']);
    path.starts_with('/').then(|| Exported { by, path: path.into() })
}

#[cfg(test)]
mod tests {
    use rubus_host::simulated::fake::FakeFiles;

    use super::*;

    #[test]
    fn what_the_kernel_exports_is_found() {
        let config = "/sys/kernel/config";
        let files = FakeFiles::new()
            .file(
                format!("{config}/usb_gadget/g1/functions/mass_storage.0/lun.0/file"),
                "/dev/sda\n",
            )
            .file(format!("{config}/usb_gadget/g1/functions/mass_storage.0/lun.1/file"), "\n")
            .file(format!("{config}/usb_gadget/g1/functions/ecm.0/ifname"), "usb0\n")
            .file("/sys/class/udc/fe980000.usb/device/gadget.0/lun0/file", "/srv/stick.img\n")
            .file(format!("{config}/nvmet/subsystems/disk/namespaces/1/device_path"), "/dev/sdb\n")
            .file(format!("{config}/nvmet/subsystems/disk/namespaces/1/enable"), "1\n")
            .file(format!("{config}/nvmet/subsystems/disk/namespaces/2/device_path"), "/dev/sdc\n")
            .file(format!("{config}/nvmet/subsystems/disk/namespaces/2/enable"), "0\n")
            .file(format!("{config}/target/core/iblock_0/root/udev_path"), "/dev/sdd\n");
        let mut found: Vec<String> = all(&files)
            .into_iter()
            .map(|exported| format!("{}: {}", exported.path.display(), exported.by))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "/dev/sda: the USB gadget g1 (lun.0)",
                "/dev/sdb: the NVMe target disk (namespace 1)",
                "/dev/sdd: the SCSI target iblock_0/root",
                "/srv/stick.img: the USB gadget of g_mass_storage (lun0)",
            ]
        );
        assert_eq!(all(&FakeFiles::new()), []);
    }
}
