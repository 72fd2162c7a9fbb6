//! `/proc/PID/mountinfo`: what is mounted where, as one process sees it.
//!
//! Format: proc_pid_mountinfo(5), Linux man-pages:
//! `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`

use std::path::Path;

use super::major_minor;
use rubus_vocabulary::mount_entry::unescape_octal;

/// One line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// Identifier of this mount.
    pub id: u64,
    /// Identifier of the mount that it is on top of.
    pub parent: u64,
    /// Device number of the filesystem, (major, minor). Major 0 is an anonymous number: btrfs,
    /// tmpfs and network filesystems have those, and it names no block device.
    pub device: (u32, u32),
    /// Which directory of the filesystem is mounted ("/", "/@home").
    pub root: String,
    /// Where, as this process sees it.
    pub point: String,
    /// Options of this mount.
    pub options: Vec<String>,
    /// "ext4", "btrfs", "fuse.sshfs".
    pub filesystem: String,
    /// What the filesystem calls its source ("/dev/mmcblk0p2", "tmpfs", "server:/export").
    pub source: String,
    /// Options of the filesystem itself.
    pub super_options: Vec<String>,
}

/// Reads the whole file. Lines that do not have the documented form are returned apart, so that
/// a careful caller can refuse to go on and a relaxed one can ignore them.
pub fn parse(text: &str) -> (Vec<MountLine>, Vec<String>) {
    let mut lines = Vec::new();
    let mut strange = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match parse_line(line) {
            Some(parsed) => lines.push(parsed),
            None => strange.push(line.to_string()),
        }
    }
    (lines, strange)
}

/// The mount that a path lies in: the one with the longest mount point that is a prefix of it
/// component by component, and of several on the same point the last, which hides the others.
/// The path must be absolute and free of symbolic links.
pub fn holding<'a>(
    mounts: impl IntoIterator<Item = &'a MountLine>,
    path: &str,
) -> Option<&'a MountLine> {
    // `max_by_key` returns the last of equal elements.
    mounts
        .into_iter()
        .filter(|mount| Path::new(path).starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len())
}

fn parse_line(line: &str) -> Option<MountLine> {
    // The optional fields between the options and the lone dash vary in number.
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let mut right = right.split(' ');
    Some(MountLine {
        id: left.next()?.parse().ok()?,
        parent: left.next()?.parse().ok()?,
        device: major_minor(left.next()?)?,
        root: unescape_octal(left.next()?),
        point: unescape_octal(left.next()?),
        options: comma_list(left.next()?),
        filesystem: unescape_octal(right.next()?),
        source: unescape_octal(right.next()?),
        super_options: comma_list(right.next().unwrap_or("")),
    })
}

fn comma_list(text: &str) -> Vec<String> {
    text.split(',').filter(|option| !option.is_empty()).map(unescape_octal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
24 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw
25 24 0:5 / /dev rw,relatime shared:2 - devtmpfs udev rw,size=1024k
40 24 8:1 / /mnt/my\\040disk rw shared:9 master:3 - vfat /dev/sda1 rw,fmask=0022
41 24 0:44 /@home /home rw - btrfs /dev/sdb1 rw,compress=zstd:3,subvol=/@home
42 24 0:50 / /srv ro - 9p  ro
";

    #[test]
    fn every_field_is_read_with_any_number_of_optional_fields() {
        let (mounts, strange) = parse(TEXT);
        assert_eq!(strange, Vec::<String>::new());
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[2].point, "/mnt/my disk");
        assert_eq!(mounts[2].device, (8, 1));
        assert_eq!(mounts[3].root, "/@home");
        assert_eq!(mounts[3].super_options[1], "compress=zstd:3");
        assert_eq!(mounts[4].source, "");
    }

    #[test]
    fn the_longest_mount_point_holds_a_path() {
        let (mounts, _) = parse(TEXT);
        assert_eq!(holding(&mounts, "/home/pi/x").map(|m| m.id), Some(41), "below a mount");
        assert_eq!(
            holding(&mounts, "/homework").map(|m| m.id),
            Some(24),
            "a name that only begins alike"
        );
        assert_eq!(holding(&mounts, "/home").map(|m| m.id), Some(41));
        assert_eq!(holding(&mounts, "/").map(|m| m.id), Some(24));
    }

    #[test]
    fn of_two_mounts_on_one_point_the_later_holds() {
        let text = "1 0 8:1 / /mnt rw - ext4 /dev/sda1 rw\n2 1 8:2 / /mnt rw - ext4 /dev/sda2 rw\n";
        let (mounts, _) = parse(text);
        assert_eq!(holding(&mounts, "/mnt/x").map(|m| m.id), Some(2));
    }

    #[test]
    fn strange_lines_are_told_and_not_swallowed() {
        let (mounts, strange) = parse("1 0 8:1 / / rw ext4 /dev/sda1 rw\n");
        assert!(mounts.is_empty());
        assert_eq!(strange.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n]{0,300}") {
            parse(&text);
        }
    }
}
