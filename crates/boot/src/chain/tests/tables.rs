//! What the tables of the root ask for, and what is not there.

use super::*;

/// With an encrypted volume that is opened with a key, and mounted.
fn encrypted(key: &str, options: &str) -> ChainFacts {
    let mut facts = board();
    facts.volumes.push(volume("/dev/sda1", "cafe-01", "crypto_LUKS"));
    facts.root.crypttab = Some(format!("data PARTUUID=cafe-01 {key} {options}\n"));
    facts.root.fstab = Some(format!("{FSTAB}/dev/mapper/data /srv ext4 defaults 0 2\n"));
    facts.root.absent =
        ["/etc/gone.key", "/etc/cryptsetup-keys.d/data.key"].map(String::from).into();
    facts
}

#[test]
fn a_key_on_a_disk_that_is_not_beside_the_card_here_stops_nothing() {
    let mut facts = encrypted("/mnt/key/k.key", "luks");
    let table = facts.root.fstab.take().unwrap_or_default();
    facts.root.fstab = Some(format!("{table}UUID=dead-beef /mnt/key vfat defaults,nofail 0 0\n"));
    assert_ne!(outcome(&facts), Outcome::Starts);
    facts.are_all_volumes = false;
    assert_eq!(outcome(&facts), Outcome::Starts);
}

#[test]
fn a_volume_that_waits_for_its_key_keeps_the_board_from_coming_up() {
    for key in ["/etc/there.key", "/dev/urandom", "/gone.key:LABEL=keys"] {
        assert_eq!(outcome(&encrypted(key, "luks")), Outcome::Starts, "{key}");
    }
    assert_eq!(outcome(&encrypted("none", "luks,tpm2-device=auto")), Outcome::Starts);
    let asked = encrypted("none", "luks");
    assert_eq!(outcome(&asked), Outcome::NotCertainAfter(Stage::Init));
    assert_eq!(
        StartChain::of(&asked).doubt().map(|link| link.found.clone()).as_deref(),
        Some(
            "/dev/mapper/data for /srv waits for its password, unless a token in its header opens it"
        )
    );
    let gone = encrypted("/etc/gone.key", "luks");
    assert_eq!(outcome(&gone), Outcome::StopsAt(Stage::Mounts));
    assert_eq!(
        why(&gone),
        "/dev/mapper/data for /srv waits for a password, as /etc/gone.key is not there"
    );
    let mut optional = gone;
    optional.root.fstab = Some(format!("{FSTAB}/dev/mapper/data /srv ext4 nofail 0 2\n"));
    assert_eq!(outcome(&optional), Outcome::Starts);
}

#[test]
fn a_key_may_be_on_a_disk_that_is_not_there() {
    let mut facts = encrypted("/media/key/data.key", "luks");
    let table = facts.root.fstab.clone().unwrap_or_default();
    facts.root.fstab = Some(format!("{table}PARTUUID=dead-01 /media/key vfat nofail 0 0\n"));
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Mounts));
    facts.volumes.push(volume("/dev/sdb1", "dead-01", "vfat"));
    assert_eq!(outcome(&facts), Outcome::Starts);
}

/// Sentry-Six/Sentry-USB-Rusty#158.
#[test]
fn a_mount_point_is_not_made_on_a_root_that_is_read_only() {
    let mut facts = board();
    let seen_by_none = ["/dev/shm", "/run/foo", "/tmp", "/var/lock/x"];
    let absent = ["/root/.cache", "/mutable/log"].into_iter().chain(seen_by_none);
    facts.root.absent = absent.map(String::from).collect();
    let mut with = |root: &str, lines: &str| {
        let table = FSTAB.replace("/ ext4 noatime", &format!("/ ext4 {root}"));
        facts.root.fstab = Some(format!("{table}{lines}"));
        outcome(&facts)
    };
    let bind = "/srv/cache /root/.cache none bind 0 0\n";
    assert_eq!(with("noatime", bind), Outcome::Starts);
    assert_eq!(with("ro,noatime", bind), Outcome::StopsAt(Stage::Mounts));
    assert_eq!(with("ro", "/srv/cache /root/.cache none bind,nofail 0 0\n"), Outcome::Starts);
    let below = "tmpfs /mutable tmpfs defaults 0 0\ntmpfs /mutable/log tmpfs defaults 0 0\n";
    assert_eq!(with("ro", below), Outcome::Starts);
    for place in seen_by_none {
        let line = format!("tmpfs {place} tmpfs defaults 0 0\n");
        assert_eq!(with("ro", &line), Outcome::Starts, "{place}");
    }
}

#[test]
fn a_start_waits_for_a_disk_of_fstab_as_long_as_its_line_says() {
    let with = |options: &str, filesystem: &str, are_all: bool| {
        let mut facts = board();
        facts.are_all_volumes = are_all;
        let line = format!("UUID=gone /srv {filesystem} {options} 0 2\n");
        facts.root.fstab = Some(format!("{FSTAB}{line}"));
        StartChain::of(&facts)
    };
    for (timeout, ending) in [
        ("0", "the start waits for it without end"),
        ("0min", "the start waits for it without end"),
        ("infinity", "the start waits for it without end"),
        ("10", "the start ends in the emergency shell after 10 s"),
        ("1min30s", "the start ends in the emergency shell after 1min30s"),
        ("soon", "the start ends in the emergency shell"),
    ] {
        let options = format!("defaults,x-systemd.device-timeout={timeout}");
        let here = with(&options, "ext4", true);
        assert_eq!(here.outcome(), Outcome::StopsAt(Stage::Mounts), "{timeout}");
        let why = here.deciding().and_then(|link| link.stop.clone()).expect("it stops").why;
        assert!(why.ends_with(&format!(": {ending}")), "{why}");
        // Of a card, the disk may be in the board.
        let card = with(&options, "ext4", false);
        assert_eq!(card.outcome(), Outcome::Starts, "{timeout}");
        let condition = format!("UUID=gone for /srv is plugged in, too; without it {ending}");
        assert_eq!(card.condition(), Some(condition.as_str()));
    }
    let optional = with("nofail,x-systemd.device-timeout=0", "ext4", true);
    assert_eq!((optional.outcome(), optional.condition()), (Outcome::Starts, None));
    // A swap area is no filesystem of the start, and is waited for before it goes on.
    assert_eq!(with("sw", "swap", true).outcome(), Outcome::Starts);
    let swap = with("sw,x-systemd.device-timeout=0", "swap", true);
    assert_eq!(swap.outcome(), Outcome::StopsAt(Stage::Mounts));
}

#[test]
fn a_table_that_is_not_understood_is_not_taken_for_an_empty_one() {
    let mut facts = board();
    facts.root.unread_table = Some("/etc/fstab is UTF-16".into());
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Init));
    let found = StartChain::of(&facts).doubt().map(|link| link.found.clone());
    assert_eq!(found.as_deref(), Some("/etc/fstab is UTF-16"));
}

/// systemd/systemd, issue 35180; initramfs-tools, scripts/local-premount/resume.
#[test]
fn a_volume_to_resume_from_that_is_gone_costs_time_and_stops_nothing() {
    let of = |words: &str, files: &[&str]| {
        let mut facts = board();
        let members = files.iter().map(|path| Member {
            path: (*path).to_string(),
            mode: 0o100_644,
            size_bytes: 1000,
        });
        let listing = Listing { members: members.collect(), ..Listing::default() };
        facts.images.initramfs.insert("initramfs8".into(), Ok(listing));
        facts.partition.put("cmdline.txt", &format!("{words} {CMDLINE}"));
        facts
    };
    let notes = |facts: &ChainFacts| {
        let chain = StartChain::of(facts);
        chain.notes().filter(|(_, note)| note.what.starts_with("resume=")).count()
    };
    let script = ["scripts/local", "scripts/local-premount/resume"];
    let gone = "resume=UUID=5a5a-dead";
    for (words, files, count) in [
        (gone, &script[..], 1),
        (gone, &script[..1], 0),
        (gone, &["hooks/resume"][..], 1),
        ("resume=UUID=5a5a-dead noresume", &script[..], 0),
        ("resume=PARTUUID=1a2b-02 resume_offset=34816", &script[..], 0),
        ("resume=/dev/mapper/vg-swap", &script[..], 0),
        ("resume=/dev/zram0", &script[..], 0),
    ] {
        let facts = of(words, files);
        assert_eq!(
            (outcome(&facts), notes(&facts)),
            (Outcome::Starts, count),
            "{words}, {files:?}"
        );
    }
    let mut alone = of(gone, &script);
    alone.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!((outcome(&alone), notes(&alone)), (Outcome::Starts, 0));
    let mut with_systemd = of(gone, &["usr/lib/systemd/systemd-hibernate-resume"]);
    assert_eq!(outcome(&with_systemd), Outcome::NotCertainAfter(Stage::Initramfs));
    with_systemd.are_all_volumes = false;
    let chain = StartChain::of(&with_systemd);
    assert_eq!(chain.outcome(), Outcome::Starts);
    assert_eq!(chain.condition(), Some("resume=UUID=5a5a-dead is plugged in, too"));
}

/// Nodes of a card depend on how it is plugged in; the partitions of one MBR are all on one disk.
#[test]
fn a_line_for_a_disk_beside_a_card_is_told_from_one_for_the_card() {
    let of = |root: &str, line: &str| {
        let mut facts = board();
        facts.are_all_volumes = false;
        for (number, volume) in (1..).zip(&mut facts.volumes) {
            volume.partuuid = Some(format!("1a2b3c4d-0{number}"));
            volume.path = format!("partition {number}");
            volume.links = vec![format!("/dev/mmcblk0p{number}"), format!("/dev/sda{number}")];
        }
        facts.partition.put("cmdline.txt", &CMDLINE.replace("PARTUUID=1a2b-02", root));
        facts.root.fstab = Some(format!("{line}\n"));
        facts
    };
    let (by_id, by_node) = ("PARTUUID=1a2b3c4d-02", "/dev/mmcblk0p2");
    let stops = Outcome::StopsAt(Stage::Mounts);
    let beside = |root: &str, line: &str| {
        let chain = StartChain::of(&of(root, line));
        (chain.outcome(), chain.condition().is_some())
    };
    for (root, line, expected) in [
        (by_id, "/dev/sda1 /mnt/usb ntfs-3g defaults 0 0", (Outcome::Starts, true)),
        (by_id, "/dev/sda1 /mnt/usb vfat defaults 0 0", (Outcome::Starts, false)),
        (by_node, "/dev/sda1 /mnt/usb vfat defaults 0 0", (Outcome::Starts, true)),
        (by_node, "/dev/sda1 /boot/firmware vfat defaults 0 0", (Outcome::Starts, true)),
        (by_node, "/dev/mmcblk0p1 /boot/firmware vfat defaults 0 0", (Outcome::Starts, false)),
        (by_node, "/dev/mmcblk0p1 /boot/firmware ext4 defaults 0 0", (stops, false)),
        (by_id, "PARTUUID=1a2b3c4d-05 /data ext4 defaults 0 2", (stops, false)),
        (by_id, "PARTUUID=5e6f7a8b-01 /data ext4 defaults 0 2", (Outcome::Starts, true)),
    ] {
        assert_eq!(beside(root, line), expected, "{root}, {line}");
    }
}

#[test]
fn a_first_program_on_a_volume_of_its_own_is_not_missed_where_an_initramfs_mounts_it() {
    let mut facts = board();
    facts.root.init = Some(("/sbin/init".into(), false));
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Init));
    facts.volumes.push(volume("/dev/mmcblk0p3", "1a2b-03", "ext4"));
    facts.root.fstab = Some(format!("{FSTAB}PARTUUID=1a2b-03 /usr ext4 ro 0 2\n"));
    assert_eq!(outcome(&facts), Outcome::NotCertainAfter(Stage::Root));
    facts.partition.put("config.txt", "arm_64bit=1\n");
    assert_eq!(outcome(&facts), Outcome::StopsAt(Stage::Init));
}
