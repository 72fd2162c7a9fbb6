//! Small parsers for the kernel's own text files that more than one room reads.
//!
//! One file per format, each a pure function from text to values. What only one room reads is
//! parsed in that room.

pub mod btrfs;
pub mod meminfo;
pub mod mountinfo;
pub mod mountstats;
pub mod network_mount;
pub mod route;
pub mod stat;
pub mod swaps;
pub mod wireless;

/// A device number as the kernel prints it, `major:minor`.
pub fn major_minor(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_two_numbers() {
        assert_eq!(major_minor("179:2\n"), Some((179, 2)));
        assert_eq!(major_minor("179"), None);
        assert_eq!(major_minor("a:b"), None);
    }
}
