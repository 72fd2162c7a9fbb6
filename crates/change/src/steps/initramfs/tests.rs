//! New initial RAM filesystems: what is asked of them, and how they take the place of the old ones.

use crate::volume::FilesystemKind;
use rubus_boot::initramfs::Member;
use rubus_host::simulated::fake::FakeFiles;
use rubus_host::simulated::rehearsal::SimulatedMachine;

use super::*;

const RELEASE: &str = "6.12.1+rpt-rpi-v8";

fn root() -> Volume {
    Volume {
        kind: FilesystemKind::Btrfs,
        uuid: "0d9dd3e5-0000-4000-8000-000000000001".into(),
        mount_options: String::new(),
        title: "the new root".into(),
    }
}

fn proven(modules: &[&str], listed: &str) -> Result<String, String> {
    let directory = format!("/top/lib/modules/{RELEASE}");
    let files = FakeFiles::new()
        .file(
            format!("{directory}/modules.dep"),
            "kernel/fs/btrfs/btrfs.ko.xz: kernel/lib/raid6/raid6_pq.ko.xz kernel/crypto/xor.ko.xz\n\
             kernel/drivers/usb/storage/usb-storage.ko.xz:\n",
        )
        .file(
            format!("{directory}/modules.builtin"),
            "kernel/fs/ext4/ext4.ko\nkernel/crypto/xor.ko\n",
        );
    let root = root();
    let modules: Vec<String> = modules.iter().map(ToString::to_string).collect();
    let wanted = ImageRequest {
        root: &root,
        release: RELEASE,
        path: Path::new("/boot/firmware/initramfs8"),
        kept: None,
        modules: &modules,
        files: &[],
    };
    let member = |path: &str| Member { path: path.into(), mode: 0o100_644, size_bytes: 1 };
    let inside = Listing { members: listed.lines().map(member).collect(), ..Listing::default() };
    prove(&wanted, &inside, Path::new("/top"), &files)
}

#[test]
fn a_module_and_what_it_needs_must_be_inside_or_built_in() {
    let whole = "usr/lib/modules/6.12.1+rpt-rpi-v8/kernel/fs/btrfs/btrfs.ko.xz\n\
                 usr/lib/modules/6.12.1+rpt-rpi-v8/kernel/lib/raid6/raid6_pq.ko.xz\n\
                 usr/lib/modules/6.12.1+rpt-rpi-v8/kernel/drivers/usb/storage/usb-storage.ko.xz\n\
                 usr/bin/btrfs\n";
    let found = proven(&["btrfs", "ext4", "usb_storage", "usb-storage"], whole);
    assert_eq!(found.as_deref(), Ok("btrfs, ext4, usb_storage, usb-storage"));
    let lacking = whole.replace("raid6_pq", "other");
    let why = proven(&["btrfs"], &lacking).unwrap_err();
    assert!(why.contains("it lacks raid6_pq of 6.12.1"), "{why}");
    // The program is there, the module is not: what a careless hook leaves.
    let why = proven(&["btrfs"], "usr/bin/btrfs\n").unwrap_err();
    assert!(why.contains("it lacks btrfs, raid6_pq"), "{why}");
}

#[test]
fn a_full_root_is_told_what_to_do_about_it_and_nothing_else_is() {
    let said = |reason: &str| {
        let error = failed("run chroot", reason);
        in_a_full_root(error, Onto::Disk).to_string()
    };
    let full = said("cp: write error: No space left on device");
    let wanted = "No space left on device; the new disk is full: take a larger one";
    assert!(full.contains(wanted), "{full}");
    assert!(!said("status 1: E: hooks/btrfs failed").contains("full"));
}

fn member(path: &str) -> Vec<u8> {
    let mut fields = [0_u32; 13];
    (fields[1], fields[6], fields[11]) = (0o100_644, 6, path.len() as u32 + 1);
    let mut bytes = b"070701".to_vec();
    let fields = fields.iter();
    bytes.extend(fields.flat_map(|field| format!("{field:08X}").into_bytes()));
    bytes.extend(path.bytes());
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(b"module");
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An initial RAM filesystem with modules of a release.
fn image(release: &str, modules: &[&str]) -> String {
    let mut bytes = Vec::new();
    for module in modules {
        bytes.extend(member(&format!("usr/lib/modules/{release}/kernel/{module}.ko")));
    }
    bytes.extend(member("TRAILER!!!"));
    String::from_utf8(bytes).unwrap()
}

const PATH: &str = "/boot/firmware/initramfs8";
const KEPT: &str = "/boot/firmware/initramfs8.before-rubus";
const FROM: &str = "/boot/firmware/initramfs-rubus";
const NEWER: &str = "6.12.9+rpt-rpi-v8";

/// A machine on which the tried one waits, with this in its place.
fn with_waiting(usual: &str) -> SimulatedMachine {
    let mut machine = SimulatedMachine::new()
        .file(PATH, usual, 0o644)
        .file(FROM, &image(RELEASE, &["btrfs"]), 0o644)
        .directory("/var/lib/rubus/changes/0001-desktop");
    for release in [RELEASE, NEWER] {
        let directory = format!("/lib/modules/{release}");
        machine = machine
            .file(&format!("{directory}/modules.dep"), "kernel/btrfs.ko:\n", 0o644)
            .file(&format!("{directory}/modules.builtin"), "", 0o644);
    }
    machine
}

fn with_wanted<T>(act: impl FnOnce(&ImageRequest<'_>) -> T) -> T {
    let (root, modules) = (root(), ["btrfs".to_string()]);
    act(&ImageRequest {
        root: &root,
        release: RELEASE,
        path: Path::new(PATH),
        kept: Some(Path::new(KEPT)),
        modules: &modules,
        files: &[],
    })
}

fn with_site<T>(is_begun_again: bool, act: impl FnOnce(&mut Site<'_>) -> T) -> T {
    act(&mut Site {
        change: "0001-desktop",
        directory: Path::new("/var/lib/rubus/changes/0001-desktop"),
        steps: &crate::fixture::plans::small_plan().steps,
        before_trial: None,
        step: 9,
        is_begun_again,
        consents: &[],
        top: "/".into(),
        tell: &mut |_| {},
    })
}

fn install_in(machine: &mut SimulatedMachine, is_begun_again: bool) -> Result<Receipt, StepError> {
    with_wanted(|wanted| {
        with_site(is_begun_again, |site| {
            install(wanted, Path::new(FROM), Path::new("/"), site, machine)
        })
    })
}

fn put_in_place(machine: &mut SimulatedMachine) -> Result<Receipt, StepError> {
    install_in(machine, false)
}

fn back(machine: &mut SimulatedMachine) -> Result<Receipt, StepError> {
    with_site(false, |site| kept::put_back(Path::new(PATH), Some(Path::new(KEPT)), site, machine))
}

fn text(machine: &SimulatedMachine, path: &str) -> Option<String> {
    let contents = machine.everything().remove(Path::new(path))?;
    contents.map(|(text, _)| text)
}

fn events(act: impl Fn(&mut SimulatedMachine), machine: &SimulatedMachine) -> usize {
    let mut machine = machine.clone();
    let before = machine.events();
    act(&mut machine);
    machine.events() - before
}

#[test]
fn the_tried_one_takes_the_place_of_the_usual_one_whenever_the_power_goes() {
    let tried = image(RELEASE, &["btrfs"]);
    let start = with_waiting("old");
    for event in 0..events(|machine| drop(put_in_place(machine)), &start) {
        for coins in 0..16_u32 {
            let mut cut = start.clone();
            cut.cut_power_at(cut.events() + event);
            let _ = put_in_place(&mut cut);
            let mut tossed = 0;
            cut.boot(&mut || {
                tossed += 1;
                coins >> (tossed % 4) & 1 == 1
            });
            let live = text(&cut, PATH).unwrap_or_default();
            assert!(live == "old" || live == tried, "{event} {coins:b}: {live:?}");
            install_in(&mut cut, true).unwrap();
            assert_eq!(text(&cut, PATH), Some(tried.clone()), "{event} {coins:b}");
            assert_eq!(text(&cut, FROM), None, "{event} {coins:b}");
            assert_eq!(text(&cut, KEPT).as_deref(), Some("old"), "{event} {coins:b}");
        }
    }
    let mut machine = start;
    put_in_place(&mut machine).unwrap();
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH).as_deref(), Some("old"));
}

#[test]
fn a_kernel_that_was_updated_on_trial_keeps_its_own() {
    let newer = image(NEWER, &["btrfs"]);
    let mut machine = with_waiting(&newer);
    let receipt = put_in_place(&mut machine).unwrap();
    assert!(receipt.live.contains("with btrfs"), "{receipt:?}");
    assert_eq!(text(&machine, PATH).as_ref(), Some(&newer));
    assert_eq!(text(&machine, FROM), None);
    back(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH), Some(newer), "nothing was replaced");
    // One without btrfs is no such one: the tried one starts the root.
    let mut machine = with_waiting(&image(NEWER, &["ext4"]));
    put_in_place(&mut machine).unwrap();
    assert_eq!(text(&machine, PATH), Some(image(RELEASE, &["btrfs"])));
}

#[test]
fn one_that_something_else_has_rebuilt_is_looked_into() {
    let mut machine = with_waiting("old");
    let receipt = put_in_place(&mut machine).unwrap();
    let look = |machine: &SimulatedMachine| {
        with_wanted(|wanted| look_again(wanted, Some(&receipt), machine))
    };
    let proven = ImageState::Starts("it is the one that was proven".into());
    assert_eq!(look(&machine), proven);
    let mut remade = |bytes: String| {
        machine.remove(Path::new(PATH)).unwrap();
        machine.write_new(Path::new(PATH), bytes.as_bytes(), 0o644, None).unwrap();
        look(&machine)
    };
    let newer = "something else has rebuilt it since, for 6.12.9+rpt-rpi-v8, and it has btrfs";
    assert_eq!(remade(image(NEWER, &["btrfs", "ext4"])), ImageState::Starts(newer.into()));
    let ImageState::Broken(found) = remade(image(RELEASE, &["ext4"])) else {
        panic!("it lacks btrfs");
    };
    assert!(found.contains("it lacks btrfs of 6.12.1"), "{found}");
    assert!(found.contains("update-initramfs"), "{found}");
    assert!(matches!(remade("torn".into()), ImageState::Broken(_)));
}
