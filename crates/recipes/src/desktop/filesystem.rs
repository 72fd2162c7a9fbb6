//! The filesystem of the new root, and all that follows from which one it is.

use super::super::moving::checks::Needed;
use rubus_change::plan::volume::FilesystemKind;

/// The subvolume of a btrfs that becomes the root.
pub(super) const ROOT_SUBVOLUME: &str = "@";
const MIB: u64 = 1 << 20;
/// What is to be left over on the new root, as a share of what is copied.
const SPARE: f64 = 1.15;
/// What btrfs wants for itself.
const BTRFS_OWN_BYTES: u64 = 256 * MIB;
/// What ext4 takes for itself: tables of inodes, 256 bytes for each 16 KiB, and a journal of 64 MiB to 1 GiB by size
/// (e2fsprogs, mke2fs.conf(5) and `ext2fs_get_journal_size`).
const EXT4_OWN_SHARE: f64 = 0.03;
const EXT4_OWN_BYTES: u64 = 64 * MIB;

/// What f2fs takes for itself: room to clean segments, of small disks more, and its tables (f2fs-tools, mkfs.f2fs(8)
/// `-o`; 6 % at 8 GiB, 10 % at 2 GiB).
const F2FS_OWN_SHARE: f64 = 0.10;
const F2FS_OWN_BYTES: u64 = 256 * MIB;
/// The only size of block that f2fs has had for most of its life, which has to be that of the kernel's pages.
const F2FS_PAGE_BYTES: u64 = 4096;

/// A filesystem that the new root can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootFilesystem {
    Btrfs,
    Ext4,
    F2fs,
}

impl RootFilesystem {
    pub(super) const ALL: [RootFilesystem; 3] =
        [RootFilesystem::Btrfs, RootFilesystem::Ext4, RootFilesystem::F2fs];

    /// As it is written for `filesystem=`.
    ///
    /// # Errors
    /// What may be written.
    pub(super) fn parse(value: &str) -> Result<RootFilesystem, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == value);
        found.ok_or_else(|| "write btrfs, ext4 or f2fs".into())
    }

    pub(super) fn kind(self) -> FilesystemKind {
        match self {
            RootFilesystem::Btrfs => FilesystemKind::Btrfs,
            RootFilesystem::Ext4 => FilesystemKind::Ext4,
            RootFilesystem::F2fs => FilesystemKind::F2fs,
        }
    }

    /// As `mount -t` says it.
    pub(super) fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Whether it compresses, and has subvolumes and checksums of data.
    pub(super) fn is_btrfs(self) -> bool {
        self == RootFilesystem::Btrfs
    }

    /// What every kernel has to bring.
    pub(super) fn needed(self) -> Needed {
        match self {
            RootFilesystem::Btrfs => Needed {
                module: "btrfs",
                config: "BTRFS_FS",
                remedy: "use the kernel of Raspberry Pi OS (sudo apt install linux-image-rpi-v8) or Debian, which have it; \
             one of your own needs the lines CONFIG_BTRFS_FS=m and CONFIG_ZSWAP=y",
            },
            RootFilesystem::Ext4 => Needed {
                module: "ext4",
                config: "EXT4_FS",
                remedy: "use the kernel of Raspberry Pi OS or Debian, which have it; one of your own needs the line \
                         CONFIG_EXT4_FS=y",
            },
            RootFilesystem::F2fs => Needed {
                module: "f2fs",
                config: "F2FS_FS",
                remedy: "use the kernel of Raspberry Pi OS or Debian, which have it; one of your own needs the line \
                         CONFIG_F2FS_FS=m",
            },
        }
    }

    /// Programs that make it, with their Debian packages.
    pub(super) fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            RootFilesystem::Btrfs => &[("mkfs.btrfs", "btrfs-progs"), ("btrfs", "btrfs-progs")],
            RootFilesystem::Ext4 => &[("mkfs.ext4", "e2fsprogs")],
            RootFilesystem::F2fs => &[("mkfs.f2fs", "f2fs-tools")],
        }
    }

    /// The least size of a root for `used_bytes` of files, each of which takes `share` of its size.
    pub(super) fn root_min_bytes(self, used_bytes: u64, share: f64) -> u64 {
        let files = used_bytes as f64 * share * SPARE;
        match self {
            RootFilesystem::Btrfs => files as u64 + BTRFS_OWN_BYTES,
            RootFilesystem::Ext4 => (files / (1.0 - EXT4_OWN_SHARE)) as u64 + EXT4_OWN_BYTES,
            RootFilesystem::F2fs => (files / (1.0 - F2FS_OWN_SHARE)) as u64 + F2FS_OWN_BYTES,
        }
    }

    /// Options of the new root in fstab and wherever it is mounted.
    pub(super) fn mount_options(self, method: Option<&str>) -> String {
        match self {
            RootFilesystem::Btrfs => {
                let compress = method.map(|method| format!("compress={method},"));
                format!("subvol={ROOT_SUBVOLUME},{}noatime", compress.unwrap_or_default())
            }
            RootFilesystem::Ext4 | RootFilesystem::F2fs => "noatime".into(),
        }
    }

    /// `rootflags=` of the kernel's command line; none where the filesystem needs none.
    pub(super) fn root_flags(self, method: Option<&str>) -> Option<String> {
        let compress = method.map(|method| format!(",compress={method}"));
        match self {
            RootFilesystem::Btrfs => {
                Some(format!("subvol={ROOT_SUBVOLUME}{}", compress.unwrap_or_default()))
            }
            RootFilesystem::Ext4 | RootFilesystem::F2fs => None,
        }
    }

    /// The round in which fsck(8) looks at it at a boot; 0: not at all, since it repairs itself as it is mounted.
    pub(super) fn check_pass(self) -> u32 {
        match self {
            RootFilesystem::Btrfs | RootFilesystem::F2fs => 0,
            RootFilesystem::Ext4 => 1,
        }
    }

    /// Why it cannot be the root of a kernel with pages of this size, or have the swap file that was asked for: what was
    /// found, and what to do.
    pub(super) fn obstacle(
        self,
        page_bytes: Option<u64>,
        in_file: bool,
    ) -> Option<(&'static str, &'static str)> {
        match self {
            RootFilesystem::F2fs if page_bytes.is_some_and(|bytes| bytes != F2FS_PAGE_BYTES) => {
                Some((
                    "this kernel's pages are larger than 4 KiB, and it mounts an f2fs only where they are not",
                    "take filesystem=ext4, or a kernel with pages of 4 KiB (kernel=kernel8.img in config.txt)",
                ))
            }
            RootFilesystem::F2fs if in_file => Some((
                "swap=file with filesystem=f2fs, which has to keep such a file in one place",
                "leave swap= out: a partition beside it needs none of that",
            )),
            _ => None,
        }
    }

    /// Why it is made, as sentences.
    pub(super) fn why(self) -> &'static str {
        match self {
            RootFilesystem::Btrfs => {
                "btrfs compresses what is written and sees damage by its checksums. The root lies in the subvolume @, so that \
                 it can be snapshotted and replaced as a whole."
            }
            RootFilesystem::Ext4 => {
                "You asked for ext4: every tool and every rescue system reads it. It neither compresses nor sees damage in \
                 files, and has no snapshots."
            }
            RootFilesystem::F2fs => {
                "You asked for f2fs, which writes to flash in order. It is made without compression, does not see damage in \
                 files, and has no snapshots."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_a_filesystem_takes_for_itself_is_counted() {
        let of = |kind: RootFilesystem, share| kind.root_min_bytes(4 * GIB, share) as f64;
        let files = 4.0 * GIB as f64 * 1.15;
        let btrfs = of(RootFilesystem::Btrfs, 0.5);
        assert!((btrfs - files / 2.0 - 256e6).abs() < 20e6, "{btrfs}");
        // mke2fs 1.47 on 5 GiB: 4.85 GiB for files, so that 4.6 GiB fit.
        let ext4 = of(RootFilesystem::Ext4, 1.0);
        assert!(ext4 > files + 100e6 && ext4 < 5.0 * GIB as f64, "{ext4}");
    }

    #[test]
    fn each_is_mounted_in_its_own_way() {
        let (btrfs, ext4) = (RootFilesystem::Btrfs, RootFilesystem::Ext4);
        let method = Some("zstd:3");
        assert_eq!(btrfs.mount_options(method), "subvol=@,compress=zstd:3,noatime");
        assert_eq!(btrfs.mount_options(None), "subvol=@,noatime");
        assert_eq!(btrfs.root_flags(method).as_deref(), Some("subvol=@,compress=zstd:3"));
        assert_eq!((ext4.mount_options(None).as_str(), ext4.root_flags(None)), ("noatime", None));
        assert_eq!(RootFilesystem::parse("f2fs"), Ok(RootFilesystem::F2fs));
        assert!(RootFilesystem::parse("xfs").is_err());
    }
}
