//! Options that belong to another filesystem, or are misspelt: each filesystem refuses what it does not know, and is not mounted.
//!
//! Source: Linux, fs/ext4/super.c, fs/btrfs/super.c, fs/fat/inode.c; mount(8).

use rubus_vocabulary::spelling::edits;

const OF_BTRFS: [&str; 9] = [
    "subvol",
    "subvolid",
    "compress",
    "compress-force",
    "autodefrag",
    "space_cache",
    "degraded",
    "datasum",
    "nodatacow",
];
const OF_EXT4: [&str; 6] =
    ["data", "errors", "noload", "delalloc", "nodelalloc", "journal_checksum"];
/// For filesystems that keep no owners, as FAT.
const OF_OWNERS: [&str; 8] =
    ["uid", "gid", "umask", "dmask", "fmask", "iocharset", "codepage", "shortname"];
/// FAT has an `errors` of its own.
const NOT_OF_FAT: [&str; 6] =
    ["subvol", "subvolid", "compress", "compress-force", "data", "commit"];

/// Words that every filesystem may be mounted with: mount(8) and systemd know them, and pass a misspelt one on.
const COMMON: [&str; 5] = ["defaults", "noatime", "noauto", "nofail", "relatime"];

/// The first of some options that a filesystem refuses: it is another one's, or misspelt.
pub fn refused<'a>(options: &'a str, filesystem: &str) -> Option<&'a str> {
    let foreign: &[&[&str]] = match filesystem {
        "ext2" | "ext3" | "ext4" => &[&OF_BTRFS, &OF_OWNERS],
        "btrfs" => &[&OF_EXT4, &OF_OWNERS],
        "xfs" | "f2fs" => &[&OF_OWNERS],
        "vfat" | "msdos" => &[&NOT_OF_FAT],
        _ => return None,
    };
    let is_foreign = |option: &&str| {
        let name = option.split('=').next().unwrap_or(option);
        foreign.iter().any(|names| names.contains(&name)) || is_misspelt(name)
    };
    options.split(',').find(is_foreign)
}

/// Whether it is a common word but for one letter, or for their order.
fn is_misspelt(name: &str) -> bool {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_near = |word: &&str| edits(name, word) == 1 || letters(name) == letters(word);
    !COMMON.contains(&name) && COMMON.iter().any(is_near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_filesystem_takes_and_what_none_takes_is_refused() {
        for (options, filesystem, is_refused) in [
            ("defaults,noatime,commit=60,errors=remount-ro", "ext4", None),
            ("defaults,uid=1000,gid=1000,umask=000", "ext4", Some("uid=1000")),
            ("noatime,compress=zstd", "ext4", Some("compress=zstd")),
            ("subvol=@,compress=zstd:1,commit=120", "btrfs", None),
            ("subvol=@,errors=remount-ro", "btrfs", Some("errors=remount-ro")),
            ("umask=022", "xfs", Some("umask=022")),
            ("rw,uid=1000,errors=remount-ro,iocharset=utf8", "vfat", None),
            ("defaults,commit=600", "vfat", Some("commit=600")),
            ("uid=1000,subvol=x", "ntfs", None),
            ("", "ext4", None),
            ("defaults,nofial", "ext4", Some("nofial")),
            ("default", "vfat", Some("default")),
            ("realtime,nofail", "btrfs", Some("realtime")),
            ("noacl,noload,nodev,auto,atime,nodiratime,lazytime", "ext4", None),
        ] {
            assert_eq!(refused(options, filesystem), is_refused, "{options} on {filesystem}");
        }
    }
}
