//! Promises on a made-up machine: kept, broken, not yet due, and not to be seen.

use super::*;
use rubus_fixtures::pi3_with_usb_ssd;
use rubus_machine::parse::btrfs::{MethodShare, Share};
use rubus_vocabulary::fact::Fact;

const UUID: &str = "0b5c7e0e-4a46-4c1b-9a63-0d8c1e5b7a11";

/// A machine whose root is btrfs on sda2 and whose swap is on sda3 and on the card.
fn machine() -> Machine {
    let mut machine = pi3_with_usb_ssd();
    let template = machine.block_devices[0].clone();
    let device = |name: &str, parent: Option<&str>, uuid: Option<&str>| {
        let mut device = template.clone();
        device.name = name.into();
        device.parent = parent.map(String::from);
        device.below = Vec::new();
        device.identity.uuid = uuid.map(String::from);
        device
    };
    machine.block_devices = vec![
        device("sda", None, None),
        device("sda2", Some("sda"), Some(UUID)),
        device("sda3", Some("sda"), Some("5a5a")),
        device("mmcblk0", None, None),
        device("mmcblk0p2", Some("mmcblk0"), Some("c0de")),
    ];
    let mut root = machine.mounts[0].clone();
    root.point = "/".into();
    root.filesystem = "btrfs".into();
    root.device = Some("sda2".into());
    root.options = ["rw", "noatime", "compress=zstd:3", "subvol=/@"].map(String::from).into();
    machine.mounts = vec![root];
    let area = |path: &str, kind: &str, device: &str, priority| SwapArea {
        path: path.into(),
        kind: kind.into(),
        size_bytes: 1 << 30,
        used_bytes: 1 << 20,
        priority,
        device: Fact::known(device.to_string(), "/proc/swaps"),
    };
    machine.swap.areas = vec![area("/dev/sda3", "partition", "sda3", 10)];
    machine.swap.zram.clear();
    machine
}

fn see_one(look: Look, machine: &Machine, found: &Found) -> (PromiseState, String) {
    let promise = Promise { what: "it holds".into(), look, needs_boot: false };
    let answers = verify(&[promise], machine, found, true);
    (answers[0].standing, answers[0].found.clone())
}

fn root_look(uuid: &str, options: &[&str]) -> Look {
    Look::Mounted {
        at: "/".into(),
        kind: FilesystemKind::Btrfs,
        uuid: uuid.into(),
        options: options.iter().map(|text| (*text).into()).collect(),
    }
}

#[test]
fn a_root_is_known_by_its_uuid_and_its_options() {
    let (machine, found) = (machine(), Found::default());
    let wanted = ["compress=zstd", "subvol=@", "nofail", "x-rubus"];
    let (standing, words) = see_one(root_look(UUID, &wanted), &machine, &found);
    assert_eq!(standing, PromiseState::Holds, "{words}");
    let (standing, words) = see_one(root_look("ffff", &[]), &machine, &found);
    assert_eq!(standing, PromiseState::Broken);
    assert!(words.contains(UUID), "{words}");
    let (standing, words) = see_one(root_look(UUID, &["compress=zstd:9"]), &machine, &found);
    assert_eq!(standing, PromiseState::Broken);
    assert!(words.contains("without compress=zstd:9"), "{words}");
}

#[test]
fn a_superblock_is_believed_before_what_udev_remembers() {
    let mut found = Found::default();
    found.uuids.insert("sda2".into(), "ffff".into());
    let (standing, _) = see_one(root_look("ffff", &[]), &machine(), &found);
    assert_eq!(standing, PromiseState::Holds);
}

#[test]
fn an_unreadable_uuid_is_no_answer() {
    let mut machine = machine();
    machine.block_devices[1].identity.uuid = None;
    let (standing, words) = see_one(root_look(UUID, &[]), &machine, &Found::default());
    assert_eq!(standing, PromiseState::Unknown);
    assert!(words.contains("root"), "{words}");
}

#[test]
fn what_needs_a_start_is_not_broken_before_it() {
    let mut machine = machine();
    machine.mounts[0].filesystem = "ext4".into();
    let promise =
        Promise { what: "the root is btrfs".into(), look: root_look(UUID, &[]), needs_boot: true };
    let standing = |started| {
        let answers = verify(std::slice::from_ref(&promise), &machine, &Found::default(), started);
        answers[0].standing
    };
    assert_eq!(standing(false), PromiseState::AfterStart);
    assert_eq!(standing(true), PromiseState::Broken);
}

#[test]
fn swap_is_found_by_uuid_path_and_disk() {
    let (mut machine, found) = (machine(), Found::default());
    let on = |what: &str, priority| Look::SwapOn { what: what.into(), priority };
    for (look, wanted) in [
        (on("5a5a", Some(10)), PromiseState::Holds),
        (on("UUID=5A5A", None), PromiseState::Holds),
        (on("/dev/sda3", Some(10)), PromiseState::Holds),
        (on("5a5a", Some(5)), PromiseState::Broken),
        (on("/var/swap", None), PromiseState::Broken),
        (on(UUID, None), PromiseState::Broken),
    ] {
        let (standing, words) = see_one(look.clone(), &machine, &found);
        assert_eq!(standing, wanted, "{look:?}: {words}");
    }
    let none_on_card = || Look::NoSwapOnDisk { disk: "mmcblk0".into(), partuuid: None };
    assert_eq!(see_one(none_on_card(), &machine, &found).0, PromiseState::Holds);
    let mut file = machine.swap.areas[0].clone();
    file.path = "/var/swap".into();
    file.kind = "file".into();
    file.device = Fact::unknown("no mount holds its path", "x");
    machine.swap.areas.push(file);
    let (standing, words) = see_one(none_on_card(), &machine, &found);
    assert_eq!(standing, PromiseState::Unknown, "{words}");
    machine.swap.areas[1].device = Fact::known("mmcblk0p2".into(), "x");
    let (standing, words) = see_one(none_on_card(), &machine, &found);
    assert_eq!(standing, PromiseState::Broken);
    assert!(words.contains("/var/swap"), "{words}");
}

#[test]
fn devices_that_stand_on_each_other_in_a_circle_end_the_search() {
    let mut machine = machine();
    machine.block_devices[1].parent = Some("sda2".into());
    assert!(!stands_on("sda2", "mmcblk0", &machine));
}

#[test]
fn a_disk_is_quiet_by_its_rate() {
    let mut found = Found::default();
    let look = || Look::QuietDisk {
        disk: "mmcblk0".into(),
        partuuid: None,
        at_most_bytes_per_second: 4096,
    };
    let machine = machine();
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Unknown);
    let mut write = |bytes| {
        let writes = Writes { bytes, elapsed_s: 5.0 };
        found.writes.insert("mmcblk0".into(), Ok(writes));
        see_one(look(), &machine, &found)
    };
    assert_eq!(write(0).0, PromiseState::Holds);
    assert_eq!(write(20_480).0, PromiseState::Holds);
    let (standing, words) = write(1_000_000);
    assert_eq!(standing, PromiseState::Broken);
    assert!(words.contains("200 kB/s"), "{words}");
}

#[test]
fn an_array_is_known_by_its_uuid_however_it_is_written() {
    let mut found = Found::default();
    let look = || Look::Array { uuid: "3aaa0122:29827cfa:5331ad66:ca767371".into(), members: 2 };
    let machine = machine();
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Broken);
    found.arrays.push(ArrayState {
        name: "md127".into(),
        uuid: Some("3AAA0122-2982-7CFA-5331-AD66CA767371".into()),
        members: 2,
        state: "clean".into(),
    });
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Holds);
    found.arrays[0].members = 1;
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Broken);
    found.arrays[0].members = 2;
    found.arrays[0].state = "broken".into();
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Broken);
    found.arrays[0].uuid = None;
    assert_eq!(see_one(look(), &machine, &found).0, PromiseState::Unknown);
}

#[test]
fn compression_is_what_the_files_take() {
    let machine = machine();
    let share = |method: &str, stored_bytes, original_bytes| MethodShare {
        method: method.into(),
        share: Share { stored_bytes, original_bytes, referenced_bytes: original_bytes },
    };
    let look = || Look::Compressed { at: "/".into(), at_most: 0.7 };
    let with = |methods| {
        let seen = Compression { methods, is_whole: true, ..Compression::default() };
        let mut found = Found::default();
        found.compression.insert("/".into(), Ok(seen));
        see_one(look(), &machine, &found)
    };
    let good = with(vec![share("none", 100, 100), share("zstd", 400, 900)]);
    assert_eq!(good.0, PromiseState::Holds, "{}", good.1);
    let bad = with(vec![share("none", 800, 800), share("zstd", 100, 200)]);
    assert_eq!(bad.0, PromiseState::Broken, "{}", bad.1);
    let none = with(vec![share("none", 100, 1000)]);
    assert_eq!(none.0, PromiseState::Broken, "{}", none.1);
    assert_eq!(see_one(look(), &machine, &Found::default()).0, PromiseState::Unknown);
}

#[test]
fn knobs_answer_in_their_own_words() {
    let look = |value: &str| Look::Knob { path: "/sys/x".into(), value: value.into() };
    let mut found = Found::default();
    found.knobs.insert("/sys/x".into(), Ok("Y".into()));
    let machine = machine();
    assert_eq!(see_one(look("1"), &machine, &found).0, PromiseState::Holds);
    assert_eq!(see_one(look("0"), &machine, &found).0, PromiseState::Broken);
    found.knobs.insert("/sys/x".into(), Err("no such file".into()));
    assert_eq!(see_one(look("1"), &machine, &found).0, PromiseState::Unknown);
}

#[test]
fn zswap_says_whether_it_is_used() {
    let mut machine = machine();
    let setting = |name: &str, value: &str| rubus_vocabulary::machine::Setting {
        name: name.into(),
        value: Fact::known(value.to_string(), "x"),
    };
    machine.system.page_bytes = Fact::known(4096, "x");
    let zswap = &mut machine.swap.zswap;
    zswap.enabled = Fact::known(true, "x");
    zswap.counters_unknown = None;
    zswap.counters = vec![setting("stored_pages", "0"), setting("written_back_pages", "0")];
    assert_eq!(zswap_words(&machine).as_deref(), Some("on, nothing stored yet"));
    machine.swap.zswap.counters = vec![
        setting("stored_pages", "10000"),
        setting("pool_total_size", "10240000"),
        setting("written_back_pages", "500"),
    ];
    assert_eq!(
        zswap_words(&machine).as_deref(),
        Some("on; 41.0 MB in 10.2 MB of memory (25 %), 2.05 MB written back to disk so far")
    );
    machine.swap.zswap.enabled = Fact::known(false, "x");
    assert_eq!(zswap_words(&machine), None);
}

#[test]
fn a_server_has_to_list_what_was_promised() {
    let look = |export: Option<&str>| Look::Served {
        address: "nbd://127.0.0.1/".into(),
        export: export.map(String::from),
    };
    let machine = machine();
    let mut found = Found::default();
    let asked = |found: &Found, export| see_one(look(export), &machine, found);
    assert_eq!(asked(&found, None).0, PromiseState::Unknown);
    let mut answer = |names| found.exports.insert("nbd://127.0.0.1/".into(), names);
    answer(Ok(vec!["disk".into(), "other".into()]));
    let (standing, words) = see_one(look(Some("disk")), &machine, &found);
    assert_eq!(standing, PromiseState::Holds);
    assert_eq!(words, "the server answers, and has disk, other");
    assert_eq!(asked(&found, Some("disc")).0, PromiseState::Broken);
    assert_eq!(asked(&found, None).0, PromiseState::Holds);
    let silent = Unheard::Silent("connection refused".into());
    for names in [Ok(Vec::new()), Err(silent)] {
        found.exports.insert("nbd://127.0.0.1/".into(), names);
        assert_eq!(asked(&found, None).0, PromiseState::Broken);
    }
    let forbidden = Unheard::Forbidden("cannot read client-key.pem".into());
    found.exports.insert("nbd://127.0.0.1/".into(), Err(forbidden));
    let words = "cannot read client-key.pem; run it as root".to_string();
    assert_eq!(asked(&found, None), (PromiseState::Unknown, words));
}

/// Two USB disks change their names at a start.
#[test]
fn a_disk_that_has_got_another_name_is_found_by_its_partition() {
    let mut machine = rubus_fixtures::pi3_with_usb_ssd();
    for device in &mut machine.block_devices {
        if device.name == "mmcblk0p1" {
            device.identity.partuuid = Some("8a676486-01".into());
        }
        if device.name == "sda1" {
            device.identity.partuuid = Some("0badcafe-01".into());
        }
    }
    let now = |partuuid| disk_now("sda", partuuid, &machine);
    assert_eq!(now(Some("8A676486-01")), Some("mmcblk0"));
    assert_eq!(now(Some("0badcafe-01")), Some("sda"));
    assert_eq!(now(Some("00000000-01")), None);
    assert_eq!(now(None), Some("sda"));
    let look = Look::NoSwapOnDisk { disk: "sda".into(), partuuid: Some("8a676486-01".into()) };
    machine.swap.areas.truncate(1);
    machine.swap.areas[0].device = Fact::known("sda1".into(), "x");
    let (standing, words) = see_one(look, &machine, &Found::default());
    assert_eq!(standing, PromiseState::Holds, "{words}");
}

#[test]
fn a_bridge_is_served_by_the_driver_that_was_promised_or_is_not_there() {
    let mut machine = rubus_fixtures::pi3_with_usb_ssd();
    let mut hops = machine.block_devices.iter_mut().flat_map(|disk| &mut disk.path);
    let bridge = hops.find(|hop| hop.kind == rubus_vocabulary::machine::HopKind::UsbDevice);
    bridge.expect("the fixture has one").chip = Some("152d:0578".into());
    let state = |chip: &str, driver: &str| {
        let promise = Promise {
            what: "the bridge".into(),
            look: Look::UsbDriver { chip: chip.into(), driver: driver.into() },
            needs_boot: true,
        };
        let answers = verify(&[promise], &machine, &Found::default(), true);
        (answers[0].standing, answers[0].found.clone())
    };
    let (holds, found) = state("152d:0578", "usb-storage");
    assert_eq!(holds, PromiseState::Holds, "{found}");
    assert_eq!(state("152d:0578", "uas").0, PromiseState::Broken);
    let (unknown, why) = state("174c:55aa", "usb-storage");
    assert_eq!(unknown, PromiseState::Unknown);
    assert!(why.contains("no disk is behind a bridge 174c:55aa"), "{why}");
}
