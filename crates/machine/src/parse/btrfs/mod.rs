//! The trees of a btrfs filesystem, as far as they say what its files take.
//!
//! [`items()`] takes what a search of a tree returns apart; [`Tally`] adds extents up.
//! Formats: "On-disk Format" of the btrfs documentation (all little-endian) and `btrfs_ioctl_search_header` of
//! `linux/btrfs.h` (this machine's byte order).

mod items;
mod tally;

pub use items::{
    Child, DIRECTORY_INDEX, EXTENT_DATA, Extent, INODE_ITEM, Inode, Item, Key, METHODS, ROOT_REF,
    child, extent, inode, items,
};
pub use tally::{Compression, Counts, MethodShare, Share, Tally};
