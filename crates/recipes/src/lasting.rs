//! Whether what a plan writes stays: the filesystems of its files can be written to, lie on a disk, and belong to files that a
//! person edits on this system.

use std::path::Path;

use rubus_vocabulary::machine::{Machine, Mount};

use super::mounting::FSTAB;
use super::{PlanBuilder, PlanInput, VolatileRoot, distribution};

/// What is written there is for the running system alone; and the boot partition, which recipes check where they change it.
const NOT_JUDGED: [&str; 5] = ["/proc", "/sys", "/run", "/dev", "/boot"];
/// Filesystems that are written once, as a whole.
const IMAGES: [&str; 5] = ["squashfs", "erofs", "cramfs", "romfs", "iso9660"];
const MEMORY: [&str; 3] = ["tmpfs", "ramfs", "rootfs"];
const OVERLAYS: [&str; 3] = ["overlay", "overlayfs", "aufs"];
/// Where systems that start from an overlay keep its upper layer: overlayroot, raspi-config, live systems, Batocera, Volumio.
const UPPER_LAYERS: [&str; 5] = ["/media/root-rw", "/overlay", "/upper", "/cow", "/mnt/ext"];

/// The check that says whether what a plan writes stays.
const STAYS: &str = "what the plan writes stays";
/// Where plans and journals of changes are.
const RECORD: &str = "/var/lib/rubus/changes";

/// Why something does not stay, and what to do.
struct Obstacle {
    why: String,
    remedy: String,
}

/// Checks the files of the steps that are drawn up. A system in an image is not mounted yet.
pub(super) fn check(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    if situation.facts.image.is_some() {
        return;
    }
    let paths = draft.steps.iter().filter_map(|step| step.action.path());
    let machine = situation.machine;
    let is_judged = |path: &Path| !NOT_JUDGED.iter().any(|below| path.starts_with(below));
    let obstacle_of = |path| {
        if is_judged(path) { obstacle(machine, path) } else { made_by_the_system(machine, path) }
    };
    let mut paths = paths;
    let first = paths.find_map(|path| Some((path, obstacle_of(path)?)));
    if let Some((path, Obstacle { why, remedy })) = first {
        let found = format!("{why}; the plan writes {}", path.display());
        draft.check(STAYS, false, found, &remedy);
    }
}

/// The root of the next start keeps what is written before it, and nothing of what comes behind it: a change that is finished by
/// a start could note nothing of it.
pub(super) fn after_the_start(
    situation: &PlanInput<'_>,
    needs_boot: bool,
    draft: &mut PlanBuilder,
) {
    if draft.steps.is_empty() {
        return;
    }
    let Some(VolatileRoot { word, path }) = &situation.facts.volatile_root else {
        if needs_boot {
            record(situation, draft);
        }
        return;
    };
    let path = path.display();
    if needs_boot {
        let setting = "Performance Options, Overlay File System";
        draft.check(
            "the root of the next start keeps changes",
            false,
            format!(
                "{path} says {word}: what is written after that start is gone at the one behind it, the proof of this change, too"
            ),
            &format!(
                "take the word out{}, plan again, and put it back after the restart that proves the change",
                distribution::raspi_config(situation.machine, setting)
            ),
        );
    } else {
        draft.risks.push(format!(
            "{path} says {word}: the root keeps no changes from the next start on. This change stays; undo it before, or take the word \
             out first."
        ));
    }
}

/// A change of the boot partition alone stays; without its record, no later start could prove or undo it.
fn record(situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
    let machine = situation.machine;
    let is_told = draft.checks.iter().any(|check| !check.is_met && check.what == STAYS);
    let holding = machine.mount_holding(Path::new(RECORD));
    let obstacle = holding.and_then(|mount| {
        on_filesystem(machine, mount).or_else(|| {
            MEMORY.contains(&mount.filesystem.as_str()).then(|| Obstacle {
                why: format!("{} is in memory ({})", mount.point, mount.filesystem),
                remedy: format!("mount a filesystem at {} that keeps its files", mount.point),
            })
        })
    });
    let is_judged = !is_told && situation.facts.image.is_none();
    if let Some(Obstacle { why, remedy }) = obstacle.filter(|_| is_judged) {
        let found = format!("{why}; the record, by which it is proved and undone, is in {RECORD}");
        draft.check("the record of the change stays", false, found, &remedy);
    }
}

fn obstacle(machine: &Machine, path: &Path) -> Option<Obstacle> {
    made_by_the_system(machine, path)
        .or_else(|| on_filesystem(machine, machine.mount_holding(path)?))
}

/// Files that the system makes from settings of its own, or does not read.
fn made_by_the_system(machine: &Machine, path: &Path) -> Option<Obstacle> {
    let is = |id: &str| machine.system.os_ids.iter().any(|own| own == id);
    let of_nixos = ["/etc", "/boot"].into_iter().find(|below| path.starts_with(below));
    if let Some(below) = of_nixos.filter(|_| is("nixos")) {
        return Some(Obstacle {
            why: format!("NixOS makes {below} from its configuration"),
            remedy: "write the change into configuration.nix, then run nixos-rebuild switch".into(),
        });
    }
    if is("openwrt") && path == Path::new(FSTAB) {
        return Some(Obstacle {
            why: format!("OpenWrt does not read {FSTAB}"),
            remedy: "write the mount into /etc/config/fstab (package block-mount)".into(),
        });
    }
    None
}

fn on_filesystem(machine: &Machine, mount: &Mount) -> Option<Obstacle> {
    let (point, kind) = (&mount.point, mount.filesystem.as_str());
    if IMAGES.contains(&kind) {
        return Some(Obstacle {
            why: format!("{point} is {kind}, which cannot be written to"),
            remedy: "change this system by its own settings: its files are replaced as a whole at updates".into(),
        });
    }
    if mount.options.iter().any(|option| option == "ro") {
        return Some(Obstacle {
            why: format!("{point} is mounted read-only"),
            remedy: format!(
                "sudo mount -o remount,rw {point}; where the system is meant to be read-only, use its own settings"
            ),
        });
    }
    // A directory in memory below the root was asked for by its path.
    let is_fleeting = point == "/" && (MEMORY.contains(&kind) || hides_writes(machine, mount));
    is_fleeting.then(|| Obstacle {
        why: format!("{point} is {kind} ({}), and what is written there may be gone at the next start", mount.source),
        remedy: format!(
            "with an overlay switch that off{}; a system that runs from memory keeps changes by a command of its own",
            distribution::raspi_config(machine, "Performance Options, Overlay File System")
        ),
    })
}

/// Whether the upper layer of an overlay is in memory, as far as is known. OpenWrt keeps it on a partition that is mounted.
fn hides_writes(machine: &Machine, mount: &Mount) -> bool {
    if !OVERLAYS.contains(&mount.filesystem.as_str()) {
        return false;
    }
    let mut options = mount.options.iter();
    let Some(upper) = options.find_map(|option| option.strip_prefix("upperdir=")) else {
        return false;
    };
    let upper = Path::new(upper);
    // A container's layers lie where it does not see them, and stay as long as it does.
    if !UPPER_LAYERS.iter().any(|place| upper.starts_with(place)) {
        return false;
    }
    let below = machine.mount_holding(upper);
    below.is_none_or(|below| below.point == "/" || MEMORY.contains(&below.filesystem.as_str()))
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::fact::Fact;

    use super::*;
    use crate::{Facts, Wishes};

    fn mount(point: &str, source: &str, filesystem: &str, options: &str) -> Mount {
        Mount {
            point: point.into(),
            source: source.into(),
            device: None,
            root: "/".into(),
            filesystem: filesystem.into(),
            options: options.split(',').map(Into::into).collect(),
            compression: None,
            size_bytes: Fact::known(1 << 30, "statfs"),
            available_bytes: Fact::known(1 << 29, "statfs"),
        }
    }

    fn machine(mounts: Vec<Mount>, ids: &[&str]) -> Machine {
        let mut machine = rubus_fixtures::machines::pi3_with_usb_ssd();
        machine.mounts = mounts;
        machine.system.os_ids = ids.iter().map(|id| (*id).into()).collect();
        machine
    }

    fn stays(mounts: Vec<Mount>, path: &str) -> bool {
        obstacle(&machine(mounts, &["debian"]), Path::new(path)).is_none()
    }

    #[test]
    fn a_root_that_is_read_only_or_in_memory_keeps_nothing() {
        let root = |filesystem: &str, options: &str| vec![mount("/", "root", filesystem, options)];
        assert!(stays(root("ext4", "rw,relatime"), FSTAB));
        for (filesystem, options) in [
            ("squashfs", "ro"),
            ("erofs", "ro"),
            ("ext4", "ro,relatime"),
            ("tmpfs", "rw"),
            ("rootfs", "rw"),
            ("overlay", "rw,lowerdir=/a,upperdir=/media/root-rw/overlay"),
        ] {
            assert!(!stays(root(filesystem, options), FSTAB), "{filesystem} {options}");
        }
    }

    #[test]
    fn an_overlay_stays_where_its_upper_layer_does() {
        let overlay = mount("/", "overlayfs:/overlay", "overlay", "rw,upperdir=/overlay/upper");
        let on = |upper: Mount| vec![upper, overlay.clone()];
        assert!(stays(on(mount("/overlay", "/dev/loop0", "f2fs", "rw")), FSTAB));
        assert!(!stays(on(mount("/overlay", "tmpfs", "tmpfs", "rw")), FSTAB));
        let container = "rw,lowerdir=l,upperdir=/var/lib/docker/overlay2/x/diff";
        assert!(stays(vec![mount("/", "overlay", "overlay", container)], FSTAB));
    }

    #[test]
    fn the_mount_nearest_to_the_file_counts() {
        let mounts = vec![
            mount("/", "/dev/sda2", "squashfs", "ro"),
            mount("/etc", "/dev/sda3", "ext4", "rw"),
            mount("/tmp", "tmpfs", "tmpfs", "rw"),
        ];
        assert!(stays(mounts.clone(), FSTAB));
        assert!(stays(mounts.clone(), "/tmp/chosen"));
        assert!(!stays(mounts, "/usr/local/sbin/tool"));
    }

    #[test]
    fn a_file_that_the_system_makes_or_does_not_read_is_an_obstacle() {
        let root = || vec![mount("/", "/dev/mmcblk0p2", "ext4", "rw")];
        let is_refused =
            |id: &str, path: &str| obstacle(&machine(root(), &[id]), Path::new(path)).is_some();
        assert!(is_refused("nixos", FSTAB));
        assert!(is_refused("nixos", "/boot/firmware/cmdline.txt"));
        assert!(is_refused("openwrt", FSTAB));
        assert!(!is_refused("openwrt", "/etc/rc.local"));
        assert!(!is_refused("debian", FSTAB));
    }

    #[test]
    fn a_root_that_keeps_nothing_after_the_next_start_refuses_what_a_start_finishes() {
        let machine = machine(vec![mount("/", "/dev/mmcblk0p2", "ext4", "rw")], &["debian"]);
        let options = Wishes::new();
        let told = |volatile: bool, needs_boot: bool| {
            let root = VolatileRoot {
                word: "overlayroot=tmpfs".into(),
                path: "/boot/firmware/cmdline.txt".into(),
            };
            let facts = Facts { volatile_root: volatile.then_some(root), ..Facts::default() };
            let situation = PlanInput { machine: &machine, facts: &facts, options: &options };
            let mut draft = PlanBuilder::default();
            draft.set_knob("knob", "", "/proc/sys/vm/swappiness", "60", "10");
            after_the_start(&situation, needs_boot, &mut draft);
            (draft.checks.iter().filter(|check| !check.is_met).count(), draft.risks.len())
        };
        assert_eq!(told(false, true), (0, 0));
        assert_eq!(told(true, true), (1, 0));
        assert_eq!(told(true, false), (0, 1));
    }

    #[test]
    fn a_change_of_the_boot_partition_alone_is_refused_where_its_record_is_lost() {
        let options = Wishes::new();
        let facts = Facts::default();
        let told = |filesystem: &str, options_of_root: &str, needs_boot: bool| {
            let root = mount("/", "root", filesystem, options_of_root);
            let machine = machine(vec![root], &["debian"]);
            let situation = PlanInput { machine: &machine, facts: &facts, options: &options };
            let mut draft = PlanBuilder::default();
            draft.set_knob("knob", "", "/proc/sys/vm/swappiness", "60", "10");
            after_the_start(&situation, needs_boot, &mut draft);
            draft.checks.iter().filter(|check| !check.is_met).count()
        };
        assert_eq!(told("ext4", "rw", true), 0);
        let overlay = "rw,lowerdir=/media/root-ro,upperdir=/media/root-rw/overlay";
        assert_eq!(told("overlay", overlay, true), 1);
        assert_eq!(told("ext4", "ro", true), 1);
        // What is set for the running system alone is gone at the next start anyway.
        assert_eq!(told("overlay", overlay, false), 0);
    }
}
