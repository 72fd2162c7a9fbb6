//! Partition tables compared with an independent program: `sfdisk` must read what we build as we meant
//! it, and find no fault; and we must read what it builds. On image files; needs no root.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rubus_change::disk::layout::{Layout, Scheme, Wishes, divide};
use rubus_change::disk::table;
use rubus_change::plan::volume::{PartitionRole, TableKind};
use rubus_fixtures::skipped;
use rubus_machine::signature::{self, END_BYTES, Window};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// `sfdisk`, where it is installed; where everything is required its absence is a failure.
fn sfdisk() -> Option<PathBuf> {
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let mut paths = places.iter().map(|place| Path::new(place).join("sfdisk"));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        skipped("partition tables", "sfdisk is not installed (package fdisk)");
    }
    found
}

fn blank(path: &Path, bytes: u64) -> File {
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
    file
}

fn run(sfdisk: &Path, arguments: &[&str], image: &Path) -> String {
    let output =
        Command::new(sfdisk).args(arguments).arg(image).env("LC_ALL", "C").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text}{errors}");
    text
}

fn layouts(device_bytes: u64) -> Vec<Layout> {
    let mut layouts = Vec::new();
    for scheme in [Scheme::Mbr, Scheme::Gpt] {
        for (boot, swap, root) in [
            (None, None, PartitionRole::Linux),
            (Some(64 * MIB), Some(32 * MIB), PartitionRole::Linux),
            (None, Some(9 * MIB + 1), PartitionRole::Raid),
        ] {
            let wishes = Wishes {
                scheme,
                boot_bytes: boot,
                root,
                swap_bytes: swap,
                align_bytes: 8 * MIB,
                ..Wishes::default()
            };
            let random = [layouts.len() as u8 + 1; 32];
            layouts.push(divide(device_bytes, 512, &wishes, &random).unwrap());
        }
    }
    layouts
}

#[test]
fn sfdisk_reads_what_we_build_and_finds_no_fault() {
    let Some(sfdisk) = sfdisk() else { return };
    let scratch = TempDir::new().unwrap();
    // Not a multiple of the alignment.
    let device_bytes = 3 * 1024 * MIB + 512 * 7;
    for (index, layout) in layouts(device_bytes).iter().enumerate() {
        let image = scratch.path().join(format!("ours-{index}.img"));
        let file = blank(&image, device_bytes);
        for extent in table::extents(&layout.table, device_bytes, 512).unwrap() {
            file.write_all_at(&extent.bytes, extent.offset_bytes).unwrap();
        }
        let verified = run(&sfdisk, &["--verify"], &image);
        assert!(verified.contains("No errors detected"), "{verified}");
        let json: serde_json::Value =
            serde_json::from_str(&run(&sfdisk, &["--json"], &image)).unwrap();
        compare(layout, &json["partitiontable"], &image);
    }
}

fn compare(layout: &Layout, found: &serde_json::Value, image: &Path) {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_lowercase();
    let (label, id) = match &layout.table.kind {
        TableKind::Mbr { disk_id } => ("dos", format!("0x{disk_id:08x}")),
        TableKind::Gpt { disk_guid } => ("gpt", disk_guid.clone()),
    };
    assert_eq!((text(&found["label"]), text(&found["id"])), (label.into(), id));
    let listed = found["partitions"].as_array().unwrap();
    assert_eq!(listed.len(), layout.table.partitions.len());
    for (ours, theirs) in layout.table.partitions.iter().zip(listed) {
        let node = format!("{}{}", image.display(), ours.number);
        assert_eq!(theirs["node"].as_str(), Some(&*node));
        assert_eq!(theirs["start"].as_u64(), Some(ours.start_bytes / 512));
        assert_eq!(theirs["size"].as_u64(), Some(ours.size_bytes / 512));
        let kind = text(&theirs["type"]);
        let (mbr, gpt) = match ours.role {
            PartitionRole::Boot => ("c", "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"),
            PartitionRole::Linux => ("83", "0fc63daf-8483-4772-8e79-3d69d8477de4"),
            PartitionRole::Swap => ("82", "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"),
            PartitionRole::Raid => ("fd", "a19d880f-05fc-4d3b-a006-743f0f84911e"),
        };
        assert_eq!(kind, if label == "dos" { mbr } else { gpt });
        if label == "gpt" {
            assert_eq!(text(&theirs["uuid"]), ours.partuuid);
        }
    }
}

#[test]
fn we_read_what_sfdisk_builds_with_the_names_that_blkid_gives() {
    let Some(sfdisk) = sfdisk() else { return };
    let scratch = TempDir::new().unwrap();
    for (name, script) in [
        (
            "dos",
            "label: dos\nlabel-id: 0x0badcafe\nstart=16384, size=65536, type=c\nsize=4096, type=82\ntype=83\n",
        ),
        (
            "gpt",
            "label: gpt\nstart=2048, size=65536, type=U, name=\"EFI\"\nsize=8192, type=S\ntype=L\n",
        ),
    ] {
        let image = scratch.path().join(name);
        blank(&image, 96 * MIB);
        let mut child = Command::new(&sfdisk)
            .args(["-q", "--no-reread", "--no-tell-kernel"])
            .arg(&image)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(script.as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
        let json: serde_json::Value =
            serde_json::from_str(&run(&sfdisk, &["--json"], &image)).unwrap();
        let bytes = fs::read(&image).unwrap();
        let end = END_BYTES;
        let window = Window::new(bytes.len() as u64, &bytes[..end], &bytes[bytes.len() - end..]);
        let found = signature::partition_table(&window).unwrap();
        let theirs = json["partitiontable"]["partitions"].as_array().unwrap();
        assert_eq!(found.partitions.len(), theirs.len());
        for (ours, theirs) in found.partitions.iter().zip(theirs) {
            assert_eq!(theirs["start"].as_u64(), Some(ours.start_bytes / 512));
            assert_eq!(theirs["size"].as_u64(), Some(ours.size_bytes / 512));
            let expected = match theirs["uuid"].as_str() {
                Some(uuid) => uuid.to_lowercase(),
                None => format!("0badcafe-{:02x}", ours.number),
            };
            assert_eq!(ours.partuuid.as_deref(), Some(&*expected));
        }
    }
}
