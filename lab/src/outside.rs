//! Looking at the disks of a board that is off, from outside: a fingerprint of each file on the SD
//! card, and what changed between two looks. Needs root.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::firmware;
use crate::tools;

/// Kind, permissions, owner and content of each file of a card, by its path on the board.
pub type Manifest = BTreeMap<String, String>;

/// What this program itself changes on a card when it looks at it, and what changes with every boot.
const RESTLESS: [&str; 2] = ["/var/swap", "/lost+found"];

/// Takes the fingerprints of all files in both partitions of a card. The root filesystem is mounted,
/// which replays its journal as the next boot would.
///
/// # Errors
/// When a partition cannot be read: a filesystem that cannot be mounted is a lost one.
pub fn manifest(card: &Path) -> Result<Manifest> {
    let place = tempfile::tempdir()?;
    let root = place.path().join("root");
    fs::create_dir(&root)?;
    let (boot_start, root_start) = firmware::partition_starts(card)?;
    let mut manifest = Manifest::new();
    let _mounted = Mounted::to_read(card, root_start, &root)?;
    fingerprints(&root, "", &mut manifest)?;
    let boot = place.path().join("boot");
    fs::create_dir(&boot)?;
    tools::run(
        tools::command("mcopy")
            .args(["-s", "-n", "-Q", "-i"])
            .arg(format!("{}@@{boot_start}", card.display()))
            .arg("::")
            .arg(&boot),
    )
    .context("the boot partition cannot be read")?;
    fingerprints(&boot, "/boot/firmware", &mut manifest)?;
    manifest.retain(|path, _| !RESTLESS.contains(&path.as_str()));
    Ok(manifest)
}

/// The texts of the files called `name` in the directories right below `directory` on the root filesystem of a card.
///
/// # Errors
/// When the filesystem cannot be mounted or a file cannot be read.
pub fn texts(card: &Path, directory: &str, name: &str) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let (_, root_start) = firmware::partition_starts(card)?;
    let _mounted = Mounted::to_read(card, root_start, place.path())?;
    let directory = place.path().join(directory.trim_start_matches('/'));
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        paths.push(entry?.path().join(name));
    }
    paths.sort();
    let there = paths.iter().filter(|path| path.exists());
    there
        .map(|path| fs::read_to_string(path).with_context(|| format!("cannot read {path:?}")))
        .collect()
}

/// Takes a file off the root filesystem of a card; its holes stay holes.
///
/// # Errors
/// When the filesystem cannot be mounted, or there is no such file.
pub fn take_file(card: &Path, path: &str, to: &Path) -> Result<()> {
    let place = tempfile::tempdir()?;
    let (_, root_start) = firmware::partition_starts(card)?;
    let _mounted = Mounted::at(card, root_start, place.path())?;
    let file = place.path().join(path.trim_start_matches('/'));
    let mut copy = tools::command("cp");
    tools::run(copy.arg("--sparse=always").arg(&file).arg(to))?;
    fs::remove_file(&file).with_context(|| format!("cannot remove {path} from the card"))
}

/// A filesystem inside an image, mounted until this is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn at(image: &Path, start: u64, point: &'a Path) -> Result<Self> {
        Self::with("rw", image, start, point)
    }

    /// Leaves the image as it is, unless its journal has to be replayed first.
    fn to_read(image: &Path, start: u64, point: &'a Path) -> Result<Self> {
        Self::with("ro", image, start, point).or_else(|_| Self::at(image, start, point))
    }

    fn with(access: &str, image: &Path, start: u64, point: &'a Path) -> Result<Self> {
        tools::run(
            tools::command("mount")
                .arg("-o")
                .arg(format!("{access},loop,noatime,offset={start}"))
                .arg(image)
                .arg(point),
        )
        .context("the root filesystem on the card cannot be mounted")?;
        Ok(Self(point))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Nothing can be done here when it is busy; the test machine's next boot mends it.
        let _ = tools::run(tools::command("umount").arg(self.0));
    }
}

/// Adds the files below `top`, named by their path there behind `prefix`.
fn fingerprints(top: &Path, prefix: &str, manifest: &mut Manifest) -> Result<()> {
    let list = tools::run(tools::command("find").arg(top).args([
        "-xdev",
        "-mindepth",
        "1",
        "-printf",
        "%y %m %U:%G %l\\0%P\\0",
    ]))?;
    let mut fields = list.split(|&byte| byte == 0);
    while let (Some(kind), Some(path)) = (fields.next(), fields.next()) {
        let path = format!("{prefix}/{}", String::from_utf8_lossy(path));
        manifest.insert(path, String::from_utf8_lossy(kind).into_owned());
    }
    let script = "find . -xdev -type f -print0 | xargs -0 -r sha256sum -z --";
    let sums = tools::run(tools::command("sh").args(["-c", script]).current_dir(top))?;
    for entry in sums
        .split(|&byte| byte == 0)
        .filter(|entry| !entry.is_empty())
    {
        let entry = String::from_utf8_lossy(entry);
        let Some((sum, path)) = entry.split_once("  .") else {
            bail!("sha256sum said {entry:?}");
        };
        if let Some(kind) = manifest.get_mut(&format!("{prefix}{path}")) {
            kind.push_str(sum);
        }
    }
    Ok(())
}

/// Whether a file is what `fsck.vfat -a` makes of clusters on the boot partition that belong to no file: those that a power
/// cut took from an old or a new file while one was replaced by the other.
fn is_salvage(path: &str) -> bool {
    let name = path.strip_prefix("/boot/firmware/FSCK");
    name.and_then(|name| name.strip_suffix(".REC"))
        .is_some_and(|number| number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// How a look differs from an earlier one, file by file, without what lies below `ignored` and without new files that
/// `fsck.vfat` has made.
#[must_use]
pub fn differences(before: &Manifest, after: &Manifest, ignored: &[&str]) -> Vec<String> {
    let below = |path: &str, top: &str| {
        path.strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let counts = |path: &&String| !ignored.iter().any(|top| below(path, top));
    let mut found = Vec::new();
    for (path, old) in before.iter().filter(|(path, _)| counts(path)) {
        match after.get(path) {
            None => found.push(format!("lost {path}")),
            Some(new) if new != old => found.push(format!("changed {path}")),
            Some(_) => {}
        }
    }
    let new = after
        .keys()
        .filter(|path| !before.contains_key(*path) && !is_salvage(path));
    found.extend(new.filter(counts).map(|path| format!("new {path}")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(files: &[(&str, &str)]) -> Manifest {
        let owned = |&(path, seen): &(&str, &str)| (path.to_owned(), seen.to_owned());
        files.iter().map(owned).collect()
    }

    #[test]
    fn differences_are_named_and_what_lies_below_an_ignored_directory_is_not() {
        let before = looked(&[("/a", "1"), ("/b", "1"), ("/var/x/y", "1")]);
        let after = looked(&[("/b", "2"), ("/c", "1"), ("/var/xx", "1")]);
        let found = differences(&before, &after, &["/var/x"]);
        assert_eq!(found, ["lost /a", "changed /b", "new /c", "new /var/xx"]);
        let salvaged = looked(&[("/boot/firmware/FSCK0000.REC", "1"), ("/FSCK0000.REC", "1")]);
        let found = differences(&looked(&[]), &salvaged, &[]);
        assert_eq!(found, ["new /FSCK0000.REC"]);
    }

    #[test]
    fn fingerprints_have_content_permissions_and_targets() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("a b\nc"), "x").unwrap();
        std::os::unix::fs::symlink("else\u{3bb}", top.path().join("link")).unwrap();
        fs::create_dir(top.path().join("empty")).unwrap();
        let mut manifest = Manifest::new();
        fingerprints(top.path(), "/p", &mut manifest).unwrap();
        let names: Vec<&String> = manifest.keys().collect();
        assert_eq!(names, ["/p/a b\nc", "/p/empty", "/p/link"]);
        assert!(
            manifest["/p/a b\nc"]
                .ends_with("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")
        );
        assert!(manifest["/p/link"].ends_with("else\u{3bb}"));
        let before = manifest.clone();
        fs::write(top.path().join("a b\nc"), "y").unwrap();
        fingerprints(top.path(), "/p", &mut manifest).unwrap();
        assert_eq!(differences(&before, &manifest, &[]), ["changed /p/a b\nc"]);
    }
}
