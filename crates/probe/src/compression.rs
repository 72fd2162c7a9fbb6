//! How the files of a btrfs filesystem are compressed in fact: a walk through the tree of its subvolume.

use std::path::Path;
use std::time::Duration;

use rubus_core::parse::btrfs::{Compression, EXTENT_DATA, Extent, Key, Tally, extent, items};
use rubus_host::btrfs::{SearchError, Subvolume};
use rubus_host::clock;

/// Looks through the subvolume that is mounted at, or holds, a directory. Ends early after `most`, and says so. The
/// memory that it takes does not grow with the filesystem.
///
/// # Errors
/// [`SearchError`] where it is not btrfs, or without root.
pub fn compression(directory: &Path, most: Duration) -> Result<Compression, SearchError> {
    let begun_ns = clock::monotonic_ns();
    let mut subvolume = Subvolume::of(directory)?;
    let mut tally = Tally::new();
    let mut from = Some(Key {
        object: 0,
        kind: 0,
        offset: 0,
    });
    while let Some(key) = from {
        if u128::from(clock::monotonic_ns() - begun_ns) > most.as_nanos() {
            return Ok(tally.finish(false));
        }
        let (buffer, count) = subvolume.items_from((key.object, key.kind, key.offset))?;
        from = None;
        for item in items(buffer, count) {
            if item.key.kind == EXTENT_DATA {
                tally.take(extent(item.bytes).unwrap_or(Extent::Hole));
            }
            from = item.key.next();
        }
    }
    Ok(tally.finish(true))
}
