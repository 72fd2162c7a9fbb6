//! Which of Debian's kernel modules a board has: the drivers of what the boards consist of, of what their systems can hold
//! data on, and whatever those need. Of the other two thousand no board can use one, but each is copied by every change,
//! and packed into its initial RAM filesystem, on an emulated processor.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tools;

/// What stays, below `kernel/`: the beginnings of paths.
const KEPT: &[&str] = &[
    "arch/arm64/crypto/",
    "arch/x86/crypto/",
    "crypto/",
    "drivers/block/",
    "drivers/char/hw_random/",
    "drivers/clk/bcm/",
    "drivers/cpufreq/",
    "drivers/dma/bcm",
    "drivers/firmware/",
    "drivers/gpio/gpio-raspberrypi",
    "drivers/hwmon/raspberrypi",
    "drivers/i2c/busses/i2c-bcm",
    "drivers/md/",
    "drivers/mfd/",
    "drivers/mmc/",
    "drivers/net/ethernet/intel/e1000/",
    "drivers/net/mii.ko",
    "drivers/net/usb/cdc_ether.ko",
    "drivers/net/usb/usbnet.ko",
    "drivers/net/veth.ko",
    "drivers/nvme/host/nvme.ko",
    "drivers/nvme/target/nvmet.ko",
    "drivers/nvmem/",
    "drivers/phy/",
    "drivers/pwm/pwm-bcm",
    "drivers/regulator/",
    "drivers/scsi/scsi_",
    "drivers/scsi/sd_mod.ko",
    "drivers/scsi/sg.ko",
    "drivers/spi/spi-bcm",
    "drivers/target/target_core_file.ko",
    "drivers/thermal/broadcom/",
    "drivers/usb/common/",
    "drivers/usb/core/",
    "drivers/usb/dwc2/",
    "drivers/usb/gadget/function/usb_f_mass_storage.ko",
    "drivers/usb/gadget/libcomposite.ko",
    "drivers/usb/host/",
    "drivers/usb/phy/",
    "drivers/usb/roles/",
    "drivers/usb/storage/",
    "drivers/watchdog/bcm",
    "fs/btrfs/",
    "fs/exfat/",
    "fs/ext4/",
    "fs/f2fs/",
    "fs/fat/",
    "fs/fuse/",
    "fs/jbd2/",
    "fs/nls/",
    "fs/overlayfs/",
    "fs/squashfs/",
    "fs/xfs/",
    "lib/",
    "net/sched/sch_netem.ko",
];

/// Removes all other modules of the kernel of this release from a tree.
///
/// # Errors
/// When `depmod` fails or a file cannot be removed.
pub fn thin_out(tree: &Path, release: &str) -> Result<()> {
    let depmod = || tools::run(tools::command("depmod").arg("-b").arg(tree).arg(release));
    depmod()?;
    let directory = tree.join("usr/lib/modules").join(release);
    let list = directory.join("modules.dep");
    let list = fs::read_to_string(&list).with_context(|| format!("could not read {list:?}"))?;
    let kept = kept(&list);
    for path in modules(&list).filter(|path| !kept.contains(path)) {
        let path = directory.join(path);
        fs::remove_file(&path).with_context(|| format!("could not remove {path:?}"))?;
    }
    remove_empty(&directory.join("kernel"))?;
    depmod().map(drop)
}

/// What decides which modules stay, for the key of the cache.
pub fn ingredients() -> impl Iterator<Item = String> {
    KEPT.iter().map(|&path| path.to_owned())
}

/// The modules in a `modules.dep` of which each line is a module and all that it needs.
fn modules(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.split_once(':')).map(|(module, _)| module)
}

/// Those that stay, with what they need.
fn kept(list: &str) -> BTreeSet<&str> {
    let stays = |module: &str| {
        let below = module.strip_prefix("kernel/").unwrap_or(module);
        KEPT.iter().any(|start| below.starts_with(start))
    };
    list.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(module, _)| stays(module))
        .flat_map(|(module, needed)| std::iter::once(module).chain(needed.split_whitespace()))
        .collect()
}

/// Removes directories that hold nothing but such directories.
fn remove_empty(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_empty(&path)?;
        }
    }
    if fs::read_dir(directory)?.next().is_none() {
        fs::remove_dir(directory).with_context(|| format!("could not remove {directory:?}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_module_keeps_what_it_needs() {
        let list = "kernel/fs/btrfs/btrfs.ko.xz: kernel/lib/raid6/raid6_pq.ko.xz kernel/x/y.ko.xz\n\
                    kernel/lib/raid6/raid6_pq.ko.xz:\n\
                    kernel/x/y.ko.xz:\n\
                    kernel/x/z.ko.xz: kernel/x/y.ko.xz\n";
        let kept = kept(list);
        assert_eq!(modules(list).count(), 4);
        assert!(kept.contains("kernel/x/y.ko.xz"));
        assert!(!kept.contains("kernel/x/z.ko.xz"));
        assert_eq!(kept.len(), 3);
    }
}
