//! What is said of machines that are set up in a way of their own.

use super::*;

/// What is said of lines without `_netdev`: place and consequence.
fn unannounced(machine: &Machine) -> Vec<(String, String)> {
    let found = of_machine(machine).into_iter();
    let found = found.filter(|finding| finding.rule == "network-disk-without-netdev");
    found.map(|finding| (finding.about, finding.consequence)).collect()
}

#[test]
fn a_network_disk_is_known_by_its_uuid_too_and_a_start_waits_for_it() {
    let mut machine = pi3_with_usb_ssd();
    network_root(&mut machine);
    // The root is still the card; the network disk is there and not mounted.
    mount(&mut machine, "/").device = Some("mmcblk0p2".into());
    device(&mut machine, "nbd0").identity.uuid = Some("0a1b-2c3d".into());
    fstab(&mut machine, "UUID=0A1B-2C3D", "/mnt/network", "defaults");
    let found = unannounced(&machine);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("emergency shell"), "{found:?}");
    let mut lines = machine.fstab.value().cloned().unwrap_or_default();
    lines.retain(|line| line.target != "/mnt/network");
    lines.push(Entry::new("/dev/nbd0", "none", "swap", "sw"));
    machine.fstab = is(lines);
    assert_eq!(unannounced(&machine), [], "swap has a rule of its own");
}

#[test]
fn of_a_network_root_only_the_shutdown_is_told() {
    let mut machine = pi3_with_usb_ssd();
    network_root(&mut machine);
    // The card's own line, which the initial RAM filesystem passed over.
    device(&mut machine, "mmcblk0p2").identity.partuuid = Some("1f3c5a77-02".into());
    assert_eq!(unannounced(&machine), []);
    machine.fstab = is(vec![
        Entry::new("UUID=1-2", "/", "btrfs", "subvol=@"),
        Entry::new("UUID=1-2", "/home", "btrfs", "subvol=@home"),
    ]);
    device(&mut machine, "nbd0").identity.uuid = Some("1-2".into());
    let found = unannounced(&machine);
    // With the option, what lies on the same disk would wait for the network.
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "/");
    assert!(!found[0].1.contains("emergency"), "{found:?}");
    assert!(found[0].1.contains("systemd-networkd"), "{found:?}");
}

#[test]
fn a_root_whose_disk_was_pulled_is_a_danger() {
    let mut machine = pi3_with_usb_ssd();
    mount(&mut machine, "/").device = None;
    mount(&mut machine, "/").source = "/dev/sdb2".into();
    let found = of_machine(&machine);
    let gone = found.iter().find(|finding| finding.rule == "disk-gone");
    let gone = gone.expect("a finding");
    assert_eq!((gone.about.as_str(), gone.weight), ("/", Weight::Danger));
    assert!(gone.fix.contains("start the machine again"), "{}", gone.fix);
    let by_label = |m: &mut Machine| mount(m, "/").source = "/dev/root".into();
    by_label(&mut machine);
    assert!(of_machine(&machine).iter().all(|finding| finding.rule != "disk-gone"));
}

/// A disk that is no card, a root that nothing is written to, and times that stay in memory cost no write on a card.
#[test]
fn access_times_cost_something_only_where_they_reach_a_card() {
    let fires = |change: fn(&mut Machine)| {
        let mut machine = pi3_with_usb_ssd();
        option(&mut machine, "/", &["rw", "relatime"]);
        change(&mut machine);
        let found = of_machine(&machine);
        found.iter().any(|finding| finding.rule == "access-times-on-card")
    };
    assert!(fires(|_| {}));
    // An eMMC is flash on the same bus.
    assert!(fires(|m| device(m, "mmcblk0").mmc.as_mut().unwrap().kind = text("MMC")));
    assert!(!fires(|m| mount(m, "/").device = Some("sda1".into())));
    assert!(!fires(|m| option(m, "/", &["ro", "relatime"])));
    assert!(!fires(|m| option(m, "/", &["rw", "relatime", "lazytime"])));
}

/// Who compresses already has that third back.
#[test]
fn a_compressed_filesystem_is_not_told_to_compress() {
    let fix = |compression: Option<&str>| {
        let mut machine = pi3_with_usb_ssd();
        let data = mount(&mut machine, "/srv/data");
        data.filesystem = "btrfs".into();
        data.compression = compression.map(Into::into);
        data.size_bytes = is(4_000_000_000);
        data.available_bytes = is(100_000_000);
        let found = of_machine(&machine).into_iter();
        let mut full = found.filter(|finding| finding.rule == "filesystem-nearly-full");
        full.next().expect("it is nearly full").fix
    };
    assert!(fix(None).contains("a third"));
    assert!(!fix(Some("zstd:3")).contains("a third"));
}

#[test]
fn a_free_disk_beside_the_card_is_named_with_the_command_that_takes_it() {
    let mut machine = pi3_with_usb_ssd();
    machine.mounts.retain(|mount| mount.point != "/srv/data");
    let commands = |machine: &Machine| -> Vec<String> {
        let found = of_machine(machine).into_iter();
        found.filter_map(|finding| finding.command).collect()
    };
    let wanted = "rubus plan desktop device=/dev/sda".to_string();
    assert!(commands(&machine).contains(&wanted));
    // A member of an array is not free.
    array(&mut machine, 1 << 36);
    assert!(!commands(&machine).contains(&wanted));
}

/// A card with swap needs compressed memory in one way, not in two.
#[test]
fn zram_and_zswap_are_not_recommended_together() {
    let mut machine = pi3_with_usb_ssd();
    machine.swap.areas.clear();
    swap_on(&mut machine, "/var/swap", "mmcblk0p2", -2);
    let found = of_machine(&machine).into_iter();
    let commands: Vec<String> = found.filter_map(|finding| finding.command).collect();
    assert!(commands.contains(&crate::swap_place::WEIGH.to_string()), "{commands:?}");
    assert!(!commands.contains(&"rubus plan zswap".to_string()), "{commands:?}");
}

#[test]
fn a_measurement_does_not_recommend_itself() {
    let mut run = rubus_fixtures::slow_sd_card_run();
    let promises = |m: &mut Machine| {
        let mmc = device(m, "mmcblk0").mmc.as_mut().expect("a card");
        mmc.promises =
            mmc.promises.clone().map(|promises| SdStatus { application_class: 0, ..promises });
    };
    promises(&mut run.machine);
    let of_its_machine = of_machine(&run.machine);
    let is_it = |finding: &RuleFinding| finding.command.as_deref() == Some("rubus checkup");
    assert!(of_its_machine.iter().any(is_it), "a survey does");
    assert!(!of_run(&run).iter().any(is_it));
}
