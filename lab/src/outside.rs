//! Looking at the disks of a board that is off, from outside: a fingerprint of each file on the SD
//! card, and what changed between two looks. Needs root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::firmware;
use crate::tools;

/// Kind, permissions, owner and content of each file of a card, by its path on the board.
pub type Manifest = BTreeMap<String, String>;

/// Where the board mounts its boot partition.
pub(crate) const BOOT: &str = "/boot/firmware";

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
    let mut sums = Sums::default();
    fingerprints(&root, "", &mut manifest, &mut sums)?;
    let boot = place.path().join("boot");
    fs::create_dir(&boot)?;
    copy_boot_files(card, boot_start, &boot)?;
    fingerprints(&boot, BOOT, &mut manifest, &mut sums)?;
    manifest.retain(|path, _| !RESTLESS.contains(&path.as_str()));
    Ok(manifest)
}

/// The same of a root filesystem that is mounted and of the files of its boot partition, wherever both are. What is in `sums` is not
/// read, and what is read comes there.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn manifest_of(root: &Path, boot: Option<&Path>, sums: &mut Sums) -> Result<Manifest> {
    let mut manifest = Manifest::new();
    fingerprints(root, "", &mut manifest, sums)?;
    if let Some(boot) = boot {
        fingerprints(boot, BOOT, &mut manifest, sums)?;
    }
    manifest.retain(|path, _| !RESTLESS.contains(&path.as_str()));
    Ok(manifest)
}

/// Copies the files of the FAT partition that begins at this byte of a card into a directory.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn copy_boot_files(card: &Path, start: u64, to: &Path) -> Result<()> {
    let mut copy = tools::command("mcopy");
    copy.args(["-s", "-n", "-Q", "-i"]);
    copy.arg(format!("{}@@{start}", card.display()));
    tools::run(copy.arg("::").arg(to)).context("the boot partition cannot be read")?;
    Ok(())
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
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    pub(crate) fn at(image: &Path, start: u64, point: &'a Path) -> Result<Self> {
        Self::with("rw", image, start, point)
    }

    /// Leaves the image as it is, unless its journal has to be replayed first.
    fn to_read(image: &Path, start: u64, point: &'a Path) -> Result<Self> {
        Self::with("ro", image, start, point).or_else(|_| Self::at(image, start, point))
    }

    /// A subvolume of a btrfs filesystem.
    pub(crate) fn subvolume(image: &Path, start: u64, name: &str, point: &'a Path) -> Result<Self> {
        Self::with(&format!("rw,subvol={name}"), image, start, point)
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

/// Sums of contents by the path of a file, its inode, size and times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums(BTreeMap<(String, String), String>);

impl Sums {
    /// Forgets the sums of these files.
    pub(crate) fn forget(&mut self, paths: &BTreeSet<String>) {
        self.0.retain(|(path, _), _| !paths.contains(path));
    }
}

/// Adds the files below `top`, named by their path there behind `prefix`.
fn fingerprints(top: &Path, prefix: &str, manifest: &mut Manifest, sums: &mut Sums) -> Result<()> {
    let list = tools::run(tools::command("find").arg(top).args([
        "-xdev",
        "-mindepth",
        "1",
        "-printf",
        "%y %m %U:%G %l\\0%P\\0%i %s %T@ %C@\\0",
    ]))?;
    let mut fields = list.split(|&byte| byte == 0);
    let mut unread = BTreeMap::new();
    let mut names = Vec::new();
    while let (Some(kind), Some(path), Some(state)) = (fields.next(), fields.next(), fields.next())
    {
        let name = format!("{prefix}/{}", String::from_utf8_lossy(path));
        let mut seen = String::from_utf8_lossy(kind).into_owned();
        if kind.starts_with(b"f") {
            let key = (name.clone(), String::from_utf8_lossy(state).into_owned());
            match sums.0.get(&key) {
                Some(sum) => seen.push_str(sum),
                None => {
                    names.extend([b"./", path, b"\0"].concat());
                    unread.insert(name.clone(), key);
                }
            }
        }
        manifest.insert(name, seen);
    }
    let to_read = tempfile::NamedTempFile::new()?;
    fs::write(to_read.path(), names)?;
    let mut read = tools::command("xargs");
    read.args(["-0", "-r", "-a"]).arg(to_read.path());
    read.args(["b2sum", "-z", "--"]).current_dir(top);
    let said = tools::run(&mut read)?;
    for entry in said.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        let Some((sum, path)) = entry.split_once("  .") else {
            bail!("b2sum said {entry:?}");
        };
        let path = format!("{prefix}{path}");
        if let Some(kind) = manifest.get_mut(&path) {
            kind.push_str(sum);
        }
        if let Some(key) = unread.remove(&path) {
            sums.0.insert(key, sum.to_owned());
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

/// Whether a path is this one or lies below it.
pub(crate) fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How a look differs from an earlier one, file by file, without what lies below `ignored` and without new files that
/// `fsck.vfat` has made.
#[must_use]
pub fn differences(before: &Manifest, after: &Manifest, ignored: &[&str]) -> Vec<String> {
    let counts = |path: &&String| !ignored.iter().any(|top| is_below(path, top));
    let mut found = Vec::new();
    for (path, old) in before.iter().filter(|(path, _)| counts(path)) {
        match after.get(path) {
            None => found.push(format!("lost {path}")),
            Some(new) if new != old => found.push(format!("changed {path}")),
            Some(_) => {}
        }
    }
    let new = after.keys().filter(|path| !before.contains_key(*path) && !is_salvage(path));
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
        let (mut manifest, mut sums) = (Manifest::new(), Sums::default());
        fingerprints(top.path(), "/p", &mut manifest, &mut sums).unwrap();
        let names: Vec<&String> = manifest.keys().collect();
        assert_eq!(names, ["/p/a b\nc", "/p/empty", "/p/link"]);
        // BLAKE2b of `x`.
        let sum = "0909377ad35110cafb2909e185672b7f2728d1f5094f8ad68d6fac6274bf1f49\
                   9485a80ea364c04ed006d29459ea3cb7c600280e2f83e032529906f88ae30d0a";
        assert!(manifest["/p/a b\nc"].ends_with(sum));
        assert!(manifest["/p/link"].ends_with("else\u{3bb}"));
        let before = manifest.clone();
        fs::write(top.path().join("a b\nc"), "y").unwrap();
        fingerprints(top.path(), "/p", &mut manifest, &mut sums).unwrap();
        assert_eq!(differences(&before, &manifest, &[]), ["changed /p/a b\nc"]);
        // What is known is not read again, until it is forgotten.
        let changed = manifest.clone();
        for sum in sums.0.values_mut() {
            "known".clone_into(sum);
        }
        fingerprints(top.path(), "/p", &mut manifest, &mut sums).unwrap();
        assert!(manifest["/p/a b\nc"].ends_with(" known"));
        sums.forget(&BTreeSet::from(["/p/a b\nc".to_owned()]));
        fingerprints(top.path(), "/p", &mut manifest, &mut sums).unwrap();
        assert_eq!(manifest, changed);
    }
}
