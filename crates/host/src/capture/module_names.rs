//! Names of kernel modules: those that storage, its buses and its filesystems have pass; others may be an owner's.

use crate::shareable::words::spelt_words;
use crate::shareable::{Pseudonyms, options};

/// Pieces of the names and directories of modules, beside public words.
const PIECES: &str = "accel|acm|ahash|alias|altmode|am654|amba|arasan|authenc|ax88179|bam|blake2b|blake2s|blkfront|bnx2|brcmutil|brd|\
     btree|builtin|cadence|camellia|ccm|certs|cfg80211|chacha20poly1305|chipidea|clk|cmac|combphy|cqhci|crct10dif|\
     cryptd|ctr|dep|devname|dkms|dma|dummy|dwmmc|eem|esdhc|essiv|evdev|extra|fsl|geode|ghash|glue|gpio|gx|hcd|\
     helper|hid|hisi|hkdf|i2c|imx|inno|intf|iomap|ipc|isofs|ixgbe|joydev|ko|libahci|libata|libchacha|libcrc32c|\
     libdes|libsas|libsha256|lkey|lockd|lrw|mac80211|mailbox|mbcache|mdio|mii|mmci|mod|modinfo|mpi3mr|msm|mtd|mtk|\
     mv|mvebu|naneng|netfront|netfs|nfsv3|nfsv4|nls|nv|nvmem|optee|ospi|pcbc|pdc|piix|pl|plat|platdev|pltfm|pq|\
     pvscsi|pwrseq|qcom|regmap|regulator|rfkill|riscv|rmd160|rndis|rng|rpcrdma|rtc|rtsx|sch|sdhi|sdmmc|security|\
     seqiv|serpent|ses|sii|sil24|simple|smartpqi|snapshot|softdep|spi|spmi|staging|sunrpc|symbols|tg3|thunderbolt|\
     tmio|tpm|twofish|typec|uhci|ulpi|usbcore|usbhid|usbnet|vdso|vhost|virt|vmd|vmlinuz|vmw|wdt|weakdep|xctr|xenon|\
     xor|xz|zst|zynq";

/// What the kernel's modules call filesystems and schedulers, beside public words.
const GIVEN: &str = "adios|affs|anon_inodefs|aufs|balloon-kvm|bdev|befs|binfmt_misc|cgroup2|cpuset|dax|drm|functionfs|jffs2|nfsd|nodev|\
     omfs|orangefs|qnx4|rpc_pipefs|secretmem|sockfs|sysv|ufs|vxfs|zonefs";

/// Notes the words of a table of such names that are of no module of the kernel's: an owner's module may give them.
pub(super) fn note_given(text: &str, names: &mut Pseudonyms) {
    let words = text.split(|c: char| c.is_whitespace() || "[]".contains(c));
    let is_public = |word: &&str| word.is_empty() || is_given(word);
    words.filter(|word| !is_public(word)).for_each(|word| names.note(word));
}

/// Whether a filesystem or a scheduler is one of the kernel's.
pub(super) fn is_given(word: &str) -> bool {
    options::is_words(word) || GIVEN.split('|').any(|known| known == word)
}

/// A line of `modules.dep` or `modules.builtin` without the modules that are not known.
pub(super) fn line_of(line: &str) -> Option<String> {
    let Some((path, needs)) = line.split_once(':') else {
        return known_path(line.trim());
    };
    let path = known_path(path)?;
    let needs = needs.split_whitespace().filter_map(known_path);
    let needs: String = needs.map(|need| format!(" {need}")).collect();
    Some(format!("{path}:{needs}"))
}

/// The path of a known module; a directory that is not known is left out of it, since modules are found by their names.
fn known_path(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('/')?;
    let is_module = name.contains(".ko") && is_known(name);
    let directories = directory.split('/').filter(|part| is_known(part));
    let parts: Vec<&str> = directories.chain([name]).collect();
    is_module.then(|| parts.join("/"))
}

/// Whether the name of a module, or of a directory of modules, is made of known pieces.
pub(super) fn is_known(name: &str) -> bool {
    let is_piece = |piece: &str| {
        options::is_words(piece) || PIECES.split('|').any(|known| known.eq_ignore_ascii_case(piece))
    };
    name.len() <= 64
        && name.split(['-', '_', '.']).filter(|piece| !piece.is_empty()).all(is_piece)
        && spelt_words(name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the checks of a start look for, and what these need.
    const LOOKED_FOR: &str = "ext4|btrfs|xfs|f2fs|vfat|exfat|squashfs|overlay|nfs|nfsv4|cifs|uas|usb-storage|sd_mod|mmc_block|nvme|\
         nvme-core|virtio_blk|virtio_scsi|virtio_pci|xhci_pci|xhci-hcd|xhci_plat_hcd|dwc2|dwc3|dwc_otg|ehci_pci|ehci_platform|\
         ehci-hcd|ohci-platform|ahci|libahci|libata|scsi_mod|dm-mod|dm-crypt|dm_snapshot|raid0|raid1|raid456|raid6_pq|md-mod|xor|\
         xor-neon|nbd|loop|zram|zsmalloc|lz4|lz4_compress|zstd|zstd_compress|libcrc32c|crc32c_generic|blake2b_generic|jbd2|mbcache|\
         crc16|sunrpc|lockd|netfs|sdhci|sdhci-iproc|sdhci-pltfm|bcm2835|pcie-brcmstb|phy-generic|usbcore|bcmgenet|bcache";

    #[test]
    fn modules_that_a_start_needs_are_known_and_others_are_not() {
        let unknown: Vec<&str> =
            LOOKED_FOR.split('|').filter(|name| !is_known(&format!("{name}.ko.xz"))).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for name in ["qzcipher.ko", "qzcorp-nbd.ko.xz", "alice", "usb-qzanna.ko", "b827eb3a2b1c.ko"]
        {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn names_that_an_owners_module_gives_are_noted() {
        let mut names = Pseudonyms::noting();
        note_given("nodev\tsysfs\nnodev\tbinfmt_misc\n\text4\nnodev\tqzcorpfs\n", &mut names);
        note_given("none [mq-deadline] kyber bfq qzsched\n", &mut names);
        assert_eq!(names.noted(), ["qzcorpfs", "qzsched"]);
    }

    #[test]
    fn lines_keep_known_modules_alone() {
        for (line, said) in [
            ("kernel/fs/ext4/ext4.ko", Some("kernel/fs/ext4/ext4.ko")),
            ("kernel/drivers/qzcorp/nbd.ko", Some("kernel/drivers/nbd.ko")),
            ("updates/dkms/nbd.ko.xz:", Some("updates/dkms/nbd.ko.xz:")),
            ("kernel/drivers/qzcorp/qzdrv.ko", None),
            (
                "kernel/fs/btrfs/btrfs.ko.xz: kernel/crypto/xor.ko.xz extra/qzneed.ko kernel/lib/libcrc32c.ko.xz",
                Some(
                    "kernel/fs/btrfs/btrfs.ko.xz: kernel/crypto/xor.ko.xz kernel/lib/libcrc32c.ko.xz",
                ),
            ),
            ("qzalice", None),
            ("", None),
        ] {
            assert_eq!(line_of(line).as_deref(), said, "{line}");
        }
    }
}
