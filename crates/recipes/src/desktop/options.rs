//! What can be chosen, and how it is written.

use std::path::PathBuf;

use super::super::{OptionSpec, PlanInput, yes_or_no};
use super::filesystem::RootFilesystem;
use rubus_vocabulary::units::parse_size;

const MIB: u64 = 1 << 20;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "device",
        what: "the disk that becomes the new root, such as /dev/sda; everything on it is lost",
        default: None,
        check: device,
    },
    OptionSpec {
        name: "filesystem",
        what: "btrfs, or for a root without compression, checksums of files and snapshots ext4 or f2fs",
        default: Some("btrfs"),
        check: |value| RootFilesystem::parse(value).map(drop),
    },
    OptionSpec {
        name: "compress",
        what: "only for btrfs: auto, zstd:1 to zstd:15, lzo, zlib:1 to zlib:9, or none",
        default: Some("auto"),
        check: |value| compress(value).map(drop),
    },
    OptionSpec {
        name: "swap",
        what: "partition, file (on the new root) or none",
        default: Some("partition"),
        check: |value| one_of(value, &["partition", "file", "none"]),
    },
    OptionSpec {
        name: "swap-size",
        what: "such as 2G; else twice the memory, at most 4 GiB and an eighth of the disk",
        default: None,
        check: swap_size,
    },
    OptionSpec {
        name: "size",
        what: "only for an image: how large it becomes, such as 8G; else 1 GiB to spare",
        default: None,
        check: |value| parse_size(value).map(drop),
    },
    OptionSpec {
        name: "zswap-percent",
        what: "the most memory that compressed pages may take, 1 to 50 percent; else 20, or what it is now where that is more",
        default: None,
        check: super::super::zswap::pool_percent,
    },
    OptionSpec {
        name: "zswap-compressor",
        what: "a compressor of the kernel; else zstd if the kernel has it",
        default: None,
        check: super::super::zswap::compressor,
    },
    OptionSpec {
        name: "table",
        what: "auto, mbr or gpt; auto is MBR, which every board's firmware reads, up to 2 TiB",
        default: Some("auto"),
        check: |value| one_of(value, &["auto", "mbr", "gpt"]),
    },
    OptionSpec {
        name: "boot-copy",
        what: "yes: the new disk also gets a copy of the boot partition",
        default: Some("no"),
        check: yes_or_no,
    },
    OptionSpec {
        name: "trial",
        what: "auto, yes or no: the new system is first started once on trial, and `rubus verify` there keeps it; auto is \
               yes where the firmware says that it can",
        default: Some("auto"),
        check: |value| one_of(value, &["auto", "yes", "no"]),
    },
    OptionSpec {
        name: "wait",
        what: "how many seconds a start waits for the new disk before it starts the old system, 5 to 600; or no: it waits, and \
               the board does not come up without that disk",
        default: Some("30"),
        check: |value| wait(value).map(drop),
    },
    OptionSpec {
        name: "direct-boot",
        what: "yes: say what it takes to start without the SD card (only advice)",
        default: Some("no"),
        check: yes_or_no,
    },
];

/// Compression of the new root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Compress {
    /// To be chosen.
    Auto,
    None,
    /// As btrfs names it.
    Method(String),
}

/// Where the swap is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwapKind {
    Partition,
    File,
    None,
}

/// Whether the new system is first started on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialWish {
    /// Where the firmware says that it can.
    Auto,
    Yes,
    No,
}

/// The options, read. They were checked before, so that what cannot be read has its default.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) device: Option<PathBuf>,
    pub(super) filesystem: RootFilesystem,
    pub(super) compress: Compress,
    pub(super) swap: SwapKind,
    pub(super) swap_bytes: Option<u64>,
    pub(super) image_bytes: Option<u64>,
    pub(super) zswap_percent: Option<u8>,
    pub(super) zswap_compressor: Option<String>,
    pub(super) table: rubus_change::disk::layout::Scheme,
    pub(super) boot_copy: bool,
    pub(super) trial: TrialWish,
    /// Seconds after which a start without the new disk is one of the old system.
    pub(super) wait_s: Option<u32>,
    pub(super) direct_boot: bool,
}

impl Choice {
    pub(super) fn of(situation: &PlanInput<'_>) -> Choice {
        use rubus_change::disk::layout::Scheme;
        let option = |name: &str| situation.option(name);
        let is_yes = |name: &str| option(name) == Some("yes");
        Choice {
            device: option("device").map(PathBuf::from),
            filesystem: option("filesystem")
                .and_then(|value| RootFilesystem::parse(value).ok())
                .unwrap_or(RootFilesystem::Btrfs),
            compress: option("compress")
                .and_then(|value| compress(value).ok())
                .unwrap_or(Compress::Auto),
            swap: match option("swap") {
                Some("file") => SwapKind::File,
                Some("none") => SwapKind::None,
                _ => SwapKind::Partition,
            },
            swap_bytes: option("swap-size").and_then(|value| parse_size(value).ok()),
            image_bytes: option("size").and_then(|value| parse_size(value).ok()),
            zswap_percent: option("zswap-percent").and_then(|value| value.parse().ok()),
            zswap_compressor: option("zswap-compressor").map(str::to_string),
            table: match option("table") {
                Some("mbr") => Scheme::Mbr,
                Some("gpt") => Scheme::Gpt,
                _ => Scheme::Fitting,
            },
            boot_copy: is_yes("boot-copy"),
            trial: match option("trial") {
                Some("yes") => TrialWish::Yes,
                Some("no") => TrialWish::No,
                _ => TrialWish::Auto,
            },
            wait_s: wait(option("wait").unwrap_or("30")).unwrap_or_default(),
            direct_boot: is_yes("direct-boot"),
        }
    }
}

fn device(value: &str) -> Result<(), String> {
    let name = value.strip_prefix("/dev/").unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_graphic();
    if !name.is_empty() && name.chars().all(is_plain) && !value.contains("..") {
        Ok(())
    } else {
        Err("write the path of a disk, such as /dev/sda or /dev/nvme0n1".into())
    }
}

/// Levels: btrfs(5), "Compression": zstd 1 to 15, zlib 1 to 9; lzo has none.
fn compress(value: &str) -> Result<Compress, String> {
    let (method, level) = match value.split_once(':') {
        Some((method, level)) => (method, Some(level)),
        None => (value, None),
    };
    let most = match (method, level) {
        ("auto", None) => return Ok(Compress::Auto),
        ("none", None) => return Ok(Compress::None),
        ("lzo", None) => return Ok(Compress::Method(value.into())),
        ("zstd", _) => 15,
        ("zlib", _) => 9,
        _ => 0,
    };
    // Without a level btrfs takes 3 for both.
    match level.map_or(Ok(3), str::parse::<u32>) {
        Ok(level) if (1..=most).contains(&level) => {
            Ok(Compress::Method(format!("{method}:{level}")))
        }
        _ => Err("write auto, zstd:1 to zstd:15, lzo, zlib:1 to zlib:9, or none".into()),
    }
}

fn swap_size(value: &str) -> Result<(), String> {
    match parse_size(value)? {
        bytes if bytes < 16 * MIB => Err("less than 16 MiB of swap is no help".into()),
        _ => Ok(()),
    }
}

fn one_of(value: &str, all: &[&str]) -> Result<(), String> {
    if all.contains(&value) { Ok(()) } else { Err(format!("write one of: {}", all.join(", "))) }
}

/// Seconds that a start waits for the new disk; nothing is for ever.
///
/// # Errors
/// What may be written.
pub(super) fn wait(value: &str) -> Result<Option<u32>, String> {
    match value.parse() {
        _ if value == "no" => Ok(None),
        Ok(seconds @ 5..=600_u32) => Ok(Some(seconds)),
        _ => Err("write 5 to 600 seconds, or no".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_read_as_btrfs_writes_it() {
        for (text, is) in [
            ("auto", Compress::Auto),
            ("none", Compress::None),
            ("lzo", Compress::Method("lzo".into())),
            ("zstd", Compress::Method("zstd:3".into())),
            ("zstd:15", Compress::Method("zstd:15".into())),
            ("zlib:9", Compress::Method("zlib:9".into())),
        ] {
            assert_eq!(compress(text), Ok(is), "{text}");
        }
        for text in ["zstd:16", "zstd:0", "zstd:-5", "zlib:10", "lzo:1", "lz4", "zstd:", ""] {
            assert!(compress(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_device_is_a_path_below_dev() {
        for text in ["/dev/sda", "/dev/nvme0n1", "/dev/disk/by-id/usb-x-0:0"] {
            assert_eq!(device(text), Ok(()));
        }
        for text in ["sda", "/dev/", "/dev/../etc/passwd", "/dev/a b", "/tmp/x"] {
            assert!(device(text).is_err(), "{text}");
        }
    }
}
