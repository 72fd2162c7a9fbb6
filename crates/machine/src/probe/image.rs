//! The facts of a system that does not run, from the image of its card: what is in its files is known, what only a running
//! machine could say is not.

use std::path::{Path, PathBuf};

use rubus_host::Files;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{
    BlockDevice, BlockKind, Identity, Machine, Mount, Origin, Setting,
};

use crate::probe::survey;

const REASON: &str = "an image does not say it";
/// Where kernels' packages put their configurations.
const BOOT: &str = "/boot";
/// What the kernel calls the disk in an image; it is none of this machine's.
const DISK: &str = "image";
const MAX_CONFIG_BYTES: usize = 4 << 20;

/// An image of a card with a boot partition and a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageParts {
    pub file: PathBuf,
    pub size_bytes: u64,
    /// The boot partition.
    pub boot: Part,
    pub root: Part,
    /// Where the boot partition is mounted in that system.
    pub boot_point: PathBuf,
}

/// A partition of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// Where it begins, bytes.
    pub start_bytes: u64,
    pub size_bytes: u64,
    /// Its filesystem, as `blkid` says it.
    pub filesystem: String,
    pub partuuid: Option<String>,
    /// The UUID of its filesystem.
    pub uuid: Option<String>,
    /// The label of its filesystem.
    pub label: Option<String>,
}

/// What is known of the system in an image. `files` shows that system from its own root.
pub fn survey_image(files: &dyn Files, now_rfc3339: &str, parts: &ImageParts) -> Machine {
    let path = parts.file.display().to_string();
    let origin = Origin::Capture { path: path.clone(), label: "the image of a card".into() };
    let mut machine = survey(files, now_rfc3339, origin);
    let mut disk = device(DISK.into(), parts.size_bytes, &path);
    disk.kind = BlockKind::Disk;
    machine.block_devices = vec![disk, part(&parts.boot, &path), part(&parts.root, &path)];
    machine.mounts = vec![
        mount("/", &parts.root, &path),
        mount(&parts.boot_point.display().to_string(), &parts.boot, &path),
    ];
    machine.swap.areas.clear();
    machine.swap.zswap.parameters = zswap(files);
    machine.kernel_config = vec![Setting {
        name: "ZSWAP".into(),
        value: if machine.swap.zswap.parameters.is_empty() {
            Fact::unknown("no configuration of every kernel says so", BOOT)
        } else {
            Fact::known("y".into(), BOOT)
        },
    }];
    machine
}

/// The parameters that zswap has in every kernel of the image, off as kernels are delivered.
fn zswap(files: &dyn Files) -> Vec<Setting> {
    let names = files.list(Path::new(BOOT)).unwrap_or_default();
    let names = names.iter().filter(|name| name.starts_with("config-"));
    let configs: Vec<String> = names
        .filter_map(|name| {
            let bytes = files.read_prefix(&Path::new(BOOT).join(name), MAX_CONFIG_BYTES);
            Some(String::from_utf8_lossy(&bytes.ok()?).into_owned())
        })
        .collect();
    let all_have = |line: &str| {
        let mut all = configs.iter();
        !configs.is_empty() && all.all(|config| config.lines().any(|l| l.starts_with(line)))
    };
    if !all_have("CONFIG_ZSWAP=y") {
        return Vec::new();
    }
    let mut parameters = vec![("compressor", "lzo"), ("enabled", "N"), ("max_pool_percent", "20")];
    let has_shrinker = all_have("# CONFIG_ZSWAP_SHRINKER_DEFAULT_ON")
        || all_have("CONFIG_ZSWAP_SHRINKER_DEFAULT_ON");
    if has_shrinker {
        parameters.push(("shrinker_enabled", "N"));
    }
    let setting = |(name, value): (&str, &str)| Setting {
        name: name.into(),
        value: Fact::known(value.into(), BOOT),
    };
    parameters.into_iter().map(setting).collect()
}

fn name_of(part: &Part) -> String {
    format!("{DISK}{}", part.number)
}

fn part(part: &Part, path: &str) -> BlockDevice {
    let mut found = device(name_of(part), part.size_bytes, path);
    found.parent = Some(DISK.into());
    found.content = Fact::known(part.filesystem.clone(), path);
    found.identity = Identity {
        label: part.label.clone(),
        uuid: part.uuid.clone(),
        partuuid: part.partuuid.clone(),
        ..Identity::default()
    };
    found
}

fn mount(point: &str, part: &Part, path: &str) -> Mount {
    Mount {
        point: point.into(),
        source: format!("partition {} of {path}", part.number),
        device: Some(name_of(part)),
        root: "/".into(),
        filesystem: part.filesystem.clone(),
        options: Vec::new(),
        compression: None,
        size_bytes: Fact::known(part.size_bytes, path),
        available_bytes: Fact::unknown(REASON, path),
    }
}

fn device(name: String, size_bytes: u64, path: &str) -> BlockDevice {
    fn none<T>(path: &str) -> Fact<T> {
        Fact::unknown(REASON, path)
    }
    BlockDevice {
        name,
        major_minor: String::new(),
        kind: BlockKind::Partition,
        parent: None,
        holders: Vec::new(),
        below: Vec::new(),
        backing_file: None,
        size_bytes: Fact::known(size_bytes, path),
        logical_block_bytes: Fact::known(512, path),
        physical_block_bytes: none(path),
        read_only: none(path),
        removable: none(path),
        rotational: none(path),
        scheduler: none(path),
        write_cache: none(path),
        discard_max_bytes: none(path),
        queue_requests: none(path),
        device_queue_depth: none(path),
        vendor: none(path),
        model: none(path),
        serial: none(path),
        content: none(path),
        identity: Identity::default(),
        path: Vec::new(),
        mmc: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    fn parts() -> ImageParts {
        let part = |number, filesystem: &str| Part {
            number,
            start_bytes: 8 << 20,
            size_bytes: 512 << 20,
            filesystem: filesystem.into(),
            partuuid: Some(format!("3b0a02d1-0{number}")),
            uuid: None,
            label: None,
        };
        ImageParts {
            file: "/home/me/card.img".into(),
            size_bytes: 2 << 30,
            boot: part(1, "vfat"),
            root: part(2, "ext4"),
            boot_point: "/boot/firmware".into(),
        }
    }

    #[test]
    fn what_the_image_says_is_known_and_nothing_else() {
        let files = FakeFiles::new()
            .file("/etc/os-release", "PRETTY_NAME=\"Raspberry Pi OS\"\n")
            .file("/etc/dphys-swapfile", "CONF_SWAPSIZE=200\n")
            .file("/boot/config-6.12-rpi-v8", "CONFIG_ZSWAP=y\n");
        let machine = survey_image(&files, "2026-11-21T01:02:03Z", &parts());
        assert_eq!(machine.system.os.text(), Some("Raspberry Pi OS"));
        assert_eq!(machine.swap.managers.len(), 1);
        assert_eq!(machine.mounts.len(), 2);
        let root = machine.disks_below("image2");
        assert_eq!(root.len(), 1, "{root:?}");
        assert_eq!(root[0].name, "image");
        assert!(machine.memory.total_bytes.value().is_none());
        assert!(machine.system.kernel_release.value().is_none());
        let names = machine.swap.zswap.parameters.iter();
        let names: Vec<&str> = names.map(|setting| setting.name.as_str()).collect();
        assert_eq!(names, ["compressor", "enabled", "max_pool_percent"]);
    }

    #[test]
    fn one_kernel_without_zswap_is_enough_to_have_none() {
        let files = FakeFiles::new()
            .file("/boot/config-1", "CONFIG_ZSWAP=y\n")
            .file("/boot/config-2", "# CONFIG_ZSWAP is not set\n");
        assert!(zswap(&files).is_empty());
        assert!(zswap(&FakeFiles::new()).is_empty());
    }
}
