//! Switches of the kernel configuration that matter for storage and swap.

use std::io::Read;
use std::path::Path;

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::Setting;

use crate::probe::read;

const RUNNING: &str = "/proc/config.gz";
/// A configuration is about 250 KB long, 60 KB compressed.
const COMPRESSED_LIMIT_BYTES: usize = 1 << 20;
const TEXT_LIMIT_BYTES: u64 = 4 << 20;

/// Names without `CONFIG_`, grouped by subject.
const NAMES: [&str; 52] = [
    // Compressed memory and swap.
    "SWAP",
    "ZSWAP",
    "ZSWAP_DEFAULT_ON",
    "ZSWAP_COMPRESSOR_DEFAULT",
    "ZSWAP_ZPOOL_DEFAULT",
    "ZSWAP_SHRINKER_DEFAULT_ON",
    "ZSMALLOC",
    "ZRAM",
    "ZRAM_DEF_COMP",
    "ZRAM_WRITEBACK",
    "ZRAM_MULTI_COMP",
    "LRU_GEN",
    "LRU_GEN_ENABLED",
    // Filesystems.
    "EXT4_FS",
    "BTRFS_FS",
    "F2FS_FS",
    "XFS_FS",
    "VFAT_FS",
    "FUSE_FS",
    // Devices and stacking.
    "BLK_DEV_NBD",
    "BLK_DEV_LOOP",
    "BLK_DEV_MD",
    "MD_RAID0",
    "MD_RAID1",
    "DM_RAID",
    "DM_CRYPT",
    "BLK_DEV_NVME",
    "USB_UAS",
    "MMC_BLOCK",
    // The block layer.
    "IO_URING",
    "BLK_WBT",
    "BLK_WBT_MQ",
    "BLK_CGROUP",
    "MQ_IOSCHED_DEADLINE",
    "IOSCHED_BFQ",
    // Accounting.
    "PSI",
    "PSI_DEFAULT_DISABLED",
    "MEMCG",
    // Memory.
    "TRANSPARENT_HUGEPAGE",
    "ARM64_4K_PAGES",
    "ARM64_16K_PAGES",
    // Ciphers and compressors.
    "CRYPTO_ZSTD",
    "CRYPTO_LZ4",
    "CRYPTO_LZO",
    "CRYPTO_DEFLATE",
    "CRYPTO_AES_NI_INTEL",
    "CRYPTO_AES_ARM64",
    "CRYPTO_AES_ARM64_CE",
    "CRYPTO_AES_ARM64_CE_BLK",
    "CRYPTO_AES_ARM64_NEON_BLK",
    "CRYPTO_AES_ARM_BS",
    "CRYPTO_ADIANTUM",
];

pub(crate) fn kernel_config(files: &dyn Files, release: &Fact<String>) -> Vec<Setting> {
    let config = read::first_known(&[
        &|| running(files),
        &|| installed(files, release, "/boot/config-", ""),
        &|| installed(files, release, "/lib/modules/", "/config"),
    ]);
    NAMES
        .iter()
        .map(|name| Setting {
            name: name.to_string(),
            value: config.clone().map(|text| switch(&text, name)),
        })
        .collect()
}

fn running(files: &dyn Files) -> Fact<String> {
    let packed = match files.read_prefix(Path::new(RUNNING), COMPRESSED_LIMIT_BYTES) {
        Ok(packed) => packed,
        Err(error) => return Fact::unknown(error.to_string(), RUNNING),
    };
    let mut text = Vec::new();
    let mut unpacker = flate2::read::GzDecoder::new(&packed[..]).take(TEXT_LIMIT_BYTES);
    match unpacker.read_to_end(&mut text) {
        Ok(_) => Fact::known(String::from_utf8_lossy(&text).into_owned(), RUNNING),
        Err(error) => Fact::unknown(format!("it does not unpack: {error}"), RUNNING),
    }
}

/// The file that a distribution installs beside the kernel of this release.
fn installed(files: &dyn Files, release: &Fact<String>, before: &str, after: &str) -> Fact<String> {
    match release.text() {
        Some(release) => read::text(files, &format!("{before}{release}{after}")),
        None => {
            Fact::unknown("the release of the kernel is not known", format!("{before}*{after}"))
        }
    }
}

/// "y", "m", a text without its quotes, or "not set". A name that the file does not have at all
/// is not set either: the kernel has no such switch, or its parent is off.
fn switch(config: &str, name: &str) -> String {
    config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(name)?.strip_prefix('='))
        .map_or("not set", |value| value.trim().trim_matches('"'))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;
    use std::io::Write;

    const CONFIG: &str = "# Linux/arm64 6.12.47 Kernel Configuration\nCONFIG_ZSWAP=y\n\
        CONFIG_ZSWAP_COMPRESSOR_DEFAULT=\"lzo\"\nCONFIG_BTRFS_FS=m\n# CONFIG_PSI is not set\n";

    fn packed() -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(CONFIG.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    fn value(settings: &[Setting], name: &str) -> Fact<String> {
        let setting = settings.iter().find(|setting| setting.name == name);
        setting.unwrap().value.clone()
    }

    #[test]
    fn the_running_configuration_is_unpacked() {
        let files = FakeFiles::new().file(RUNNING, packed());
        let settings = kernel_config(&files, &Fact::unknown("-", "-"));
        for (name, expected) in [
            ("ZSWAP", "y"),
            ("ZSWAP_COMPRESSOR_DEFAULT", "lzo"),
            ("BTRFS_FS", "m"),
            ("PSI", "not set"),
            ("MD_RAID0", "not set"),
        ] {
            assert_eq!(
                value(&settings, name),
                Fact::known(expected.to_string(), RUNNING),
                "{name}"
            );
        }
    }

    #[test]
    fn the_file_beside_the_kernel_stands_in() {
        let files = FakeFiles::new().file("/boot/config-6.12.47", CONFIG);
        let release = Fact::known("6.12.47".to_string(), "/proc/sys/kernel/osrelease");
        let settings = kernel_config(&files, &release);
        assert_eq!(value(&settings, "ZSWAP").text(), Some("y"));
        assert_eq!(value(&settings, "ZSWAP").source(), "/boot/config-6.12.47");
    }

    #[test]
    fn without_a_file_and_with_a_broken_one_nothing_is_claimed() {
        let release = Fact::known("6.12.47".to_string(), "/proc/sys/kernel/osrelease");
        let mut broken = packed();
        broken.truncate(30);
        for files in [FakeFiles::new(), FakeFiles::new().file(RUNNING, broken)] {
            let fact = value(&kernel_config(&files, &release), "ZSWAP");
            assert!(fact.reason().unwrap().contains("/boot/config-6.12.47"));
        }
    }
}
