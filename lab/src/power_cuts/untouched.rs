//! Finds the files of the card that no logged write can have changed, so that they need not be read again for each cut.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::cache::Cache;
use crate::firmware;
use crate::outside::{self, Mounted, Sums};
use crate::tools;

/// Sums of the files of the card's root filesystem on which none of these writes lies: pairs of the first sector of the card and the one
/// behind the last. A file that is still the same by inode, size and times holds the same then.
pub(super) fn sums(cache: &Cache, card: &Path, written: &[(u64, u64)]) -> Result<Sums> {
    let (_, start) = firmware::partition_starts(card)?;
    let place = cache.work_directory()?;
    let _mounted = Mounted::at(card, start, place.path())?;
    let mut sums = Sums::default();
    outside::manifest_of(place.path(), None, &mut sums)?;
    let mut list = tools::command("bash");
    let script = "find . -xdev -type f -print0 | xargs -0 -r filefrag -v -b512";
    let said = tools::run(list.args(["-c", script]).current_dir(place.path()))?;
    let touched = touched(&String::from_utf8_lossy(&said), start / 512, written);
    sums.forget(&touched);
    Ok(sums)
}

/// The files on which a write lies, by what `filefrag -v -b512` says of them; the filesystem begins at sector `start`.
fn touched(said: &str, start: u64, written: &[(u64, u64)]) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    let mut file = String::new();
    for line in said.lines() {
        if let Some(rest) = line.strip_prefix("File size of .") {
            let name = rest.rsplit_once(" is ").map_or(rest, |(name, _)| name);
            name.clone_into(&mut file);
        }
        // Number, logical, physical, length and more, with colons between them.
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let is_extent = fields.len() > 4 && fields[0].parse::<u64>().is_ok();
        let range = fields.get(2).and_then(|range| range.split_once(".."));
        let ends = range.and_then(|(first, last)| {
            Some((first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?))
        });
        let (true, Some((first, last))) = (is_extent, ends) else {
            continue;
        };
        let (first, end) = (first + start, last + start + 1);
        if written.iter().any(|(from, to)| *from < end && first < *to) {
            touched.insert(file.clone());
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_touched_by_a_write_on_one_of_its_extents() {
        let said = "Filesystem type is: ef53\n\
             File size of ./a is b is 9000 (24 blocks of 512 bytes)\n \
             ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
             0:        0..       7:        100..       107:      8:\n   \
             1:        8..      23:        200..       215:     16:        108: last,eof\n\
             ./a is b: 2 extents found\n\
             File size of ./c is 10 (8 blocks of 512 bytes)\n   \
             0:        0..       7:        300..       307:      8:             last,eof\n";
        let found = |written: &[(u64, u64)]| -> Vec<String> {
            touched(said, 1000, written).into_iter().collect()
        };
        assert!(found(&[(0, 1100), (1108, 1200), (1216, 1300), (1308, 9999)]).is_empty());
        assert_eq!(found(&[(1215, 1216)]), ["/a is b"]);
        assert_eq!(found(&[(1107, 1108), (1300, 1301)]), ["/a is b", "/c"]);
    }
}
