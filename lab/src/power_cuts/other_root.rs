//! Finds the root that a command line names on the disks of a board that is off.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cache::Cache;
use crate::kit::Kit;
use crate::outside::{self, Manifest, Mounted, Sums};
use crate::tools;

use super::STATE_DIRECTORY;

/// What the recipes call the subvolume with the root.
pub(super) const SUBVOLUME: &str = "@";

/// A root that is not on the card.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherRoot {
    pub(super) files: Manifest,
    /// The journal of the last change that this root knows.
    pub(super) journal: String,
}

/// The roots of a kit that are not on the card. Each is looked at once.
pub(super) struct OtherRoots<'a> {
    cache: &'a Cache,
    kit: &'a Kit,
    seen: BTreeMap<String, Result<OtherRoot, String>>,
}

impl<'a> OtherRoots<'a> {
    pub(super) fn of(cache: &'a Cache, kit: &'a Kit) -> Self {
        Self { cache, kit, seen: BTreeMap::new() }
    }

    /// The root that a command line calls so, or what is wrong with it.
    pub(super) fn named(&mut self, named: &str) -> Result<OtherRoot, String> {
        let look = || other_root(self.cache, self.kit, named).map_err(|error| format!("{error:#}"));
        let seen = self.seen.entry(named.to_owned()).or_insert_with(look);
        seen.clone()
    }
}

/// The root that the command line names: by UUID or PARTUUID, on one of the USB disks; by an address, on the whole network disk.
pub(super) fn other_root(cache: &Cache, kit: &Kit, named: &str) -> Result<OtherRoot> {
    if is_on_network(named) {
        return root_at(cache, &kit.export(), 0).context("on the network disk");
    }
    let found = find(kit, named)?.with_context(|| format!("no disk has {named}"))?;
    root_at(cache, &kit.usb(found.0), found.1)
}

/// The USB disk with the root that a command line names by UUID or PARTUUID, and the byte at which its filesystem begins there.
pub(super) fn find(kit: &Kit, named: &str) -> Result<Option<(usize, u64)>> {
    let Some((tag, value)) = named.split_once('=') else {
        return Ok(None);
    };
    for number in 0..kit.usb_disks().len() {
        let disk = kit.usb(number);
        for Partition { start, uuid } in partitions(&disk)? {
            let found = match tag {
                "PARTUUID" => uuid,
                tag => {
                    let mut probe = tools::command("blkid");
                    probe.args(["-p", "-o", "value", "-s", tag, "-O", &start.to_string()]);
                    let said = probe.arg(&disk).output().context("no blkid")?;
                    String::from_utf8_lossy(&said.stdout).trim().to_owned()
                }
            };
            if found == value {
                return Ok(Some((number, start)));
            }
        }
    }
    Ok(None)
}

/// Whether a command line means a network disk by this.
pub(super) fn is_on_network(named: &str) -> bool {
    named.starts_with("nbd://")
}

/// The root whose filesystem begins at this byte of a disk.
fn root_at(cache: &Cache, disk: &Path, start: u64) -> Result<OtherRoot> {
    let place = cache.work_directory()?;
    let _mounted = Mounted::at(disk, start, place.path())?;
    let root = top_of(place.path());
    Ok(OtherRoot {
        files: outside::manifest_of(&root, None, &mut Sums::default())?,
        journal: last_journal(&root)?,
    })
}

/// The root in a filesystem that is mounted here. On btrfs it is a subvolume, which appears as a filesystem of its own
/// in a listing of files.
fn top_of(filesystem: &Path) -> PathBuf {
    let subvolume = filesystem.join(SUBVOLUME);
    if subvolume.is_dir() { subvolume } else { filesystem.to_owned() }
}

/// The journal of the last change on a mounted root; nothing where there is none.
fn last_journal(root: &Path) -> Result<String> {
    Ok(journals(root)?.pop().unwrap_or_default())
}

/// The journals of the changes that a mounted root knows, in their order.
pub(super) fn journals(root: &Path) -> Result<Vec<String>> {
    let changes = root.join(STATE_DIRECTORY.trim_start_matches('/')).join("changes");
    let mut journals = Vec::new();
    for entry in fs::read_dir(changes).into_iter().flatten() {
        journals.push(entry?.path().join("journal"));
    }
    journals.sort();
    let there = journals.iter().filter(|path| path.exists());
    there
        .map(|path| {
            let bytes = fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
        .collect()
}

/// A partition of a disk.
#[derive(Debug, PartialEq, Eq)]
struct Partition {
    /// Where it begins, in bytes.
    start: u64,
    /// What Linux calls its PARTUUID.
    uuid: String,
}

fn partitions(disk: &Path) -> Result<Vec<Partition>> {
    let said = tools::command("sfdisk").arg("--json").arg(disk).output()?;
    let table: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    Ok(partitions_in(&table["partitiontable"]))
}

/// The partitions of what `sfdisk --json` calls a partition table; none when there is none. In one of the old kind (MBR) they have no
/// names of their own, and Linux makes them of the disk's number and theirs.
fn partitions_in(table: &Value) -> Vec<Partition> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    let (disk, id) = (word(&table["device"]), word(&table["id"]));
    let partition = |partition: &Value| {
        let node = word(&partition["node"]);
        let number = node.strip_prefix(&disk)?.trim_start_matches('p');
        let number: u32 = number.parse().ok()?;
        Some(Partition {
            start: partition["start"].as_u64()? * 512,
            uuid: match partition.get("uuid") {
                Some(uuid) => word(uuid),
                None => format!("{}-{number:02x}", id.trim_start_matches("0x")),
            },
        })
    };
    let list = table["partitions"].as_array().into_iter().flatten();
    list.filter_map(partition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_in_a_subvolume_is_found_with_its_last_journal() {
        let filesystem = tempfile::tempdir().unwrap();
        assert_eq!(top_of(filesystem.path()), filesystem.path());
        let root = filesystem.path().join("@");
        for (change, text) in [("0001-a", "old"), ("0002-b", "new")] {
            let change = root.join("var/lib/rubus/changes").join(change);
            fs::create_dir_all(&change).unwrap();
            fs::write(change.join("journal"), text).unwrap();
        }
        assert_eq!(top_of(filesystem.path()), root);
        assert_eq!(last_journal(&root).unwrap(), "new");
        assert_eq!(last_journal(filesystem.path()).unwrap(), "");
    }

    #[test]
    fn partitions_have_the_names_by_which_a_root_is_called() {
        let old = serde_json::json!({"label": "dos", "id": "0xB1d2abcf", "device": "/k/usb0.img", "partitions": [
            {"node": "/k/usb0.img1", "start": 2048, "size": 9},
            {"node": "/k/usb0.img12", "start": 4096, "size": 9},
        ]});
        let partition = |start, uuid: &str| Partition { start, uuid: uuid.to_owned() };
        let two = [partition(1 << 20, "b1d2abcf-01"), partition(2 << 20, "b1d2abcf-0c")];
        assert_eq!(partitions_in(&old), two);
        let new = serde_json::json!({"label": "gpt", "id": "D678", "device": "/dev/loop0", "partitions": [
            {"node": "/dev/loop0p1", "start": 2048, "size": 9, "uuid": "AD7F-E1"},
        ]});
        assert_eq!(partitions_in(&new), [partition(1 << 20, "ad7f-e1")]);
        assert!(partitions_in(&Value::Null).is_empty());
    }
}
