//! Compares the files that a cut has left with those of good states.

use std::collections::{BTreeMap, BTreeSet};

use crate::outside::{self, BOOT, Manifest, is_below};

use super::STATE_DIRECTORY;

/// BLAKE2b of nothing.
const EMPTY: &str = "786a02f742015903c6c6fd852552d272912f4740e15847618a86e217f71f5419\
                     d25e1031afee585313896444934eb04b903a685b1448b755d56f701afe9be2ce";

/// Files that are in none of the states as they were found. Names that no state has are those of files under way, and no loss.
pub(super) fn strange(states: &[&Manifest], found: &Manifest) -> Vec<String> {
    let mut known: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
    let paths: BTreeSet<&String> = states.iter().flat_map(|state| state.keys()).collect();
    for path in paths {
        let versions = states.iter().map(|state| version(path, state));
        known.insert(path, versions.collect());
    }
    let counts = |path: &str| !is_below(path, STATE_DIRECTORY);
    let known = known.into_iter().filter(|(path, _)| counts(path));
    let mut strange = Vec::new();
    for (path, versions) in known {
        let now = version(path, found);
        // FAT shows a new name before it knows where the file begins, and the product takes that for none.
        let is_begun = is_below(path, BOOT) && versions.contains(&None) && now == Some(EMPTY);
        if !versions.contains(&now) && !is_begun {
            let word = now.map_or("lost", |_| "neither old nor new:");
            strange.push(format!("{word} {path}"));
        }
    }
    strange
}

/// What a state says of a file. FAT knows no permissions and owners.
fn version<'a>(path: &str, state: &'a Manifest) -> Option<&'a str> {
    let seen = state.get(path)?;
    Some(if is_below(path, BOOT) && seen.starts_with("f ") {
        seen.rsplit(' ').next().unwrap_or(seen)
    } else if path == BOOT || is_below(path, BOOT) {
        "d"
    } else {
        seen
    })
}

/// As [`outside::differences`], with what FAT does not know left out.
pub(super) fn differences(before: &Manifest, after: &Manifest) -> Vec<String> {
    let plain = |state: &Manifest| -> Manifest {
        let entries = state.keys().filter_map(|path| {
            let seen = version(path, state)?;
            Some((path.clone(), seen.to_owned()))
        });
        entries.collect()
    };
    outside::differences(&plain(before), &plain(after), &[STATE_DIRECTORY])
}

/// Files with what is seen of them.
#[cfg(test)]
pub(super) fn manifest(files: &[(&str, &str)]) -> Manifest {
    let owned = |&(path, seen): &(&str, &str)| (path.to_owned(), seen.to_owned());
    files.iter().map(owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_on_fat_may_be_empty_and_an_old_one_may_not() {
        let file = |path: &str, sum: &str| manifest(&[(path, &format!("f 644 0:0 {sum}"))]);
        let (new, old) = (manifest(&[]), file("/boot/firmware/a", "old"));
        let after = file("/boot/firmware/a", "new");
        let empty = file("/boot/firmware/a", EMPTY);
        assert!(strange(&[&new, &after], &empty).is_empty());
        assert_eq!(strange(&[&old, &after], &empty).len(), 1);
        let elsewhere = [manifest(&[]), file("/etc/a", "new")];
        assert_eq!(strange(&elsewhere.each_ref(), &file("/etc/a", EMPTY)).len(), 1);
    }

    #[test]
    fn permissions_on_fat_do_not_count_and_contents_do() {
        let before = manifest(&[("/boot/firmware/a", "f 755 0:0 s1")]);
        let after = |seen| manifest(&[("/boot/firmware/a", seen)]);
        assert!(differences(&before, &after("f 644 0:0 s1")).is_empty());
        assert_eq!(differences(&before, &after("f 755 0:0 s2")), ["changed /boot/firmware/a"]);
        let elsewhere = manifest(&[("/a", "f 755 0:0 s1")]);
        let changed = manifest(&[("/a", "f 644 0:0 s1")]);
        assert_eq!(differences(&elsewhere, &changed), ["changed /a"]);
    }
}
