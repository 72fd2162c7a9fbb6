//! A root on ext4: what depends on btrfs falls away, and what that costs is said.

use super::*;
use rubus_change::plan::promise::Look;
use rubus_change::plan::volume::FilesystemKind;
use rubus_change::steps::{BuildInitramfs, Format};

const EXT4: (&str, &str) = ("filesystem", "ext4");

fn with_tools(facts: &mut Facts) {
    let made = Path::new("/usr/sbin/mkfs.ext4");
    facts.seen.insert(made.into(), PathState::Something);
    for program in ["mkfs.btrfs", "btrfs"] {
        without_program(program, facts);
    }
}

fn ext4(wishes: &[(&str, &str)]) -> Plan {
    let machine = machine();
    let mut facts = facts(&machine);
    with_tools(&mut facts);
    let wishes: Vec<_> = wishes.iter().copied().chain([EXT4]).collect();
    plan_of(&machine, &facts, &wishes)
}

#[test]
fn nothing_of_btrfs_is_left_in_the_plan() {
    let plan = ext4(&[]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let mut rest = plan.clone();
    let notes = std::mem::take(&mut rest.notes);
    let json = serde_json::to_string(&rest).expect("a plan serialises");
    // But for what the disk holds now.
    let json = json.replace("btrfs \\\"data\\\"", "");
    assert!(!json.contains("btrfs"), "{json}");
    assert!(!json.contains("compress="), "{json}");
    let says = notes.iter().find(|note| note.starts_with("Compression:"));
    assert_eq!(
        says.map(String::as_str),
        Some(
            "Compression: ext4 has none here. A btrfs with zstd:3 would read 81.2 MB/s instead of 33.0 MB/s and write 75.9 MB/s \
             instead of 31.0 MB/s, and its files would take 40 % of the space."
        )
    );
    let formats = plan.steps.iter().find_map(|step| match &step.action {
        Action::Format(Format { filesystem, .. }) if step.id == "make-root" => {
            Some(filesystem.clone())
        }
        _ => None,
    });
    let root = formats.expect("the root is made");
    assert_eq!(root.kind, FilesystemKind::Ext4);
    assert!(root.subvolumes.is_empty() && root.mount_options.is_empty());
    let looks = plan.promises.iter().map(|promise| &promise.look);
    let mounted = looks.clone().find_map(|look| match look {
        Look::Mounted { kind, options, .. } => Some((*kind, options.clone())),
        _ => None,
    });
    assert_eq!(mounted, Some((FilesystemKind::Ext4, vec!["noatime".into()])));
    assert!(!looks.clone().any(|look| matches!(look, Look::Compressed { .. })));
}

#[test]
fn its_files_and_its_command_line() {
    let plan = ext4(&[("swap", "file")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let titles: Vec<String> = plan.steps.iter().map(|step| step.action.title()).collect();
    let shown = format!(
        "{}\n\n{}\n{}",
        titles.join("\n"),
        written(&plan, "fstab"),
        written(&plan, "/boot/firmware/cmdline.txt")
    );
    insta::assert_snapshot!(shown);
}

/// The old root's flags would keep the kernel from mounting the new one.
#[test]
fn flags_of_a_root_on_btrfs_do_not_follow_it() {
    let mut machine = machine();
    let root = &mut machine.mounts[0];
    root.filesystem = "btrfs".into();
    root.root = "/@".into();
    let mut facts = facts(&machine);
    with_tools(&mut facts);
    let line = CMDLINE.replace("rootfstype=ext4", "rootfstype=btrfs rootflags=subvol=@");
    let path = "/boot/firmware/cmdline.txt";
    facts.seen.insert(path.into(), text(&line));
    let plan = plan_of(&machine, &facts, &[EXT4]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let new = written(&plan, path);
    assert!(new.contains("rootfstype=ext4"), "{new}");
    assert!(!new.contains("rootflags"), "{new}");
    // Both roots are started with one initial RAM filesystem: the old one needs btrfs.
    let modules = plan.steps.iter().find_map(|step| match &step.action {
        Action::BuildInitramfs(BuildInitramfs { modules, .. }) => Some(modules.clone()),
        _ => None,
    });
    let modules = modules.expect("one is made");
    assert!(modules.iter().any(|module| module == "btrfs"), "{modules:?}");
}

#[test]
fn what_only_btrfs_can_is_refused_in_words() {
    let plan = ext4(&[("compress", "zstd:3")]);
    assert_eq!(
        obstacles(&plan),
        [
            "the new filesystem can compress: compress=zstd:3 with filesystem=ext4, which has no compression\n  -> leave \
             compress= out, or take filesystem=btrfs"
        ]
    );
    let plan = ext4(&[("compress", "none")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let machine = machine();
    let plan = plan_of(&machine, &facts(&machine), &[EXT4]);
    let found = obstacles(&plan).join("\n");
    assert!(found.contains("sudo apt install e2fsprogs"), "{found}");
}

#[test]
fn f2fs_is_made_where_the_kernel_can_mount_it() {
    let wish = ("filesystem", "f2fs");
    let machine = machine();
    let mut facts = facts(&machine);
    let seen = &mut facts.seen;
    seen.insert("/usr/sbin/mkfs.f2fs".into(), PathState::Something);
    let module = format!("/lib/modules/{RELEASE}/kernel/fs/f2fs");
    let without = plan_of(&machine, &facts, &[wish]);
    assert_eq!(
        obstacles(&without),
        [format!(
            "every kernel that can be started has f2fs: kernel8.img is {RELEASE} without f2fs\n  -> use the kernel of \
             Raspberry Pi OS or Debian, which have it; one of your own needs the line CONFIG_F2FS_FS=m"
        )]
    );
    facts.seen.insert(module.into(), names(&["f2fs.ko.xz"]));
    let plan = plan_of(&machine, &facts, &[wish]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
    let table = written(&plan, "fstab");
    assert!(table.contains(" f2fs"), "{table}");
    let in_file = plan_of(&machine, &facts, &[wish, ("swap", "file")]);
    let found = obstacles(&in_file).join("\n");
    assert!(found.contains("swap=file with filesystem=f2fs"), "{found}");
    let mut large = machine.clone();
    large.system.page_bytes = Fact::known(16_384, "test");
    let found = obstacles(&plan_of(&large, &facts, &[wish])).join("\n");
    assert!(found.contains("pages are larger than 4 KiB"), "{found}");
}

#[test]
fn without_compression_the_disk_has_to_be_larger() {
    let machine = machine();
    let mut facts = facts(&machine);
    with_tools(&mut facts);
    let sizes = |facts: &mut Facts, bytes| {
        if let Some(Ok(disk)) = facts.disks.get_mut(Path::new("/dev/sda")) {
            disk.size_bytes = bytes;
        }
    };
    // 6.4 GB of files: 7.6 GB with room to spare, and the swap beside it.
    sizes(&mut facts, 7_500_000_000);
    let plan = plan_of(&machine, &facts, &[EXT4, ("swap", "none")]);
    let found = obstacles(&plan).join("\n");
    assert!(found.starts_with("everything fits on it"), "{found}");
    sizes(&mut facts, 8_000_000_000);
    let plan = plan_of(&machine, &facts, &[EXT4, ("swap", "none")]);
    assert_eq!(obstacles(&plan), Vec::<String>::new());
}

#[test]
fn made_once_it_is_not_made_again_and_another_filesystem_is_another_wish() {
    let mut machine = machine();
    let facts = facts(&machine);
    let root = &mut machine.mounts[0];
    root.device = Some("sda1".into());
    root.source = "/dev/sda1".into();
    let again = plan_of(&machine, &facts, &[EXT4]);
    assert!(again.is_empty() && again.obstacles().count() == 0, "{again:?}");
    assert!(!again.notes[0].contains("compression"), "{:?}", again.notes);
    // A btrfs on the disk that the system runs from: not there.
    let other = plan_of(&machine, &facts, &[]);
    let found = obstacles(&other).join("\n");
    assert!(found.contains("the running system does not use it"), "{found}");
}
