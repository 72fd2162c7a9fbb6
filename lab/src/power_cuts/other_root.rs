//! Finds the root that a command line names on the disks of a board that is off.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cache::Cache;
use crate::kit::Kit;
use crate::outside::{self, Manifest, Mounted, Sums};
use crate::tools;

/// The files of the root that the command line names by UUID or PARTUUID, on one of the USB disks.
pub(super) fn other_root(cache: &Cache, kit: &Kit, named: &str) -> Result<Manifest> {
    let (tag, value) = named
        .split_once('=')
        .with_context(|| format!("root={named:?}"))?;
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
            if found != value {
                continue;
            }
            let place = cache.work_directory()?;
            let _mounted = Mounted::at(&disk, start, place.path())?;
            return outside::manifest_of(place.path(), None, &mut Sums::default());
        }
    }
    anyhow::bail!("no disk has {named}")
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
    fn partitions_have_the_names_by_which_a_root_is_called() {
        let old = serde_json::json!({"label": "dos", "id": "0xB1d2abcf", "device": "/k/usb0.img", "partitions": [
            {"node": "/k/usb0.img1", "start": 2048, "size": 9},
            {"node": "/k/usb0.img12", "start": 4096, "size": 9},
        ]});
        let partition = |start, uuid: &str| Partition {
            start,
            uuid: uuid.to_owned(),
        };
        let two = [
            partition(1 << 20, "b1d2abcf-01"),
            partition(2 << 20, "b1d2abcf-0c"),
        ];
        assert_eq!(partitions_in(&old), two);
        let new = serde_json::json!({"label": "gpt", "id": "D678", "device": "/dev/loop0", "partitions": [
            {"node": "/dev/loop0p1", "start": 2048, "size": 9, "uuid": "AD7F-E1"},
        ]});
        assert_eq!(partitions_in(&new), [partition(1 << 20, "ad7f-e1")]);
        assert!(partitions_in(&Value::Null).is_empty());
    }
}
