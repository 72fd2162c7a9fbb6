//! Entries are read as mount reads them; an edit leaves every other byte.

use proptest::prelude::*;

use super::*;

const PI_OS: &str = "\
proc            /proc           proc    defaults          0       0
PARTUUID=8a676486-01  /boot/firmware  vfat    defaults          0       2
PARTUUID=8a676486-02  /               ext4    defaults,noatime  0       1
# a swapfile is not a swap partition, no line here
#   use  dphys-swapfile swap[on|off]  for that
";

fn volume(path: &str, partuuid: &str, filesystem: &str) -> NamedVolume {
    NamedVolume {
        path: path.into(),
        partuuid: Some(partuuid.into()),
        filesystem: Some(filesystem.into()),
        ..NamedVolume::default()
    }
}

#[test]
fn entries_are_found_by_their_place() {
    let fstab = Fstab::parse(PI_OS);
    assert_eq!(fstab.entries().len(), 3);
    let root = fstab.at("/").expect("there is a root");
    assert_eq!(root.source, "PARTUUID=8a676486-02");
    assert_eq!((root.dump, root.pass), (0, 1));
    assert!(root.has_option("noatime"));
    assert!(fstab.at("/boot/firmware/").is_some());
    assert!(fstab.at("/boot").is_none());
}

#[test]
fn a_directory_that_is_bound_to_another_place_is_no_disk() {
    for options in ["bind", "defaults,rbind"] {
        let line = format!("/dev/shm /srv/tmp none {options} 0 0\n");
        assert_eq!(Fstab::parse(line).hazards(&[], &["/"]), []);
    }
    let device = Fstab::parse("/dev/sdc1 /srv/tmp ext4 defaults 0 0\n");
    assert_eq!(device.hazards(&[], &["/"]).len(), 1);
}

#[test]
fn a_replaced_line_keeps_its_columns_and_the_others_every_byte() {
    let mut fstab = Fstab::parse(PI_OS);
    let entry = Entry::new("UUID=12", "/", "btrfs", "defaults,noatime,subvol=@");
    fstab.set(&entry);
    let expected = PI_OS.replace(
        "PARTUUID=8a676486-02  /               ext4    defaults,noatime  0       1",
        "UUID=12               /               btrfs   defaults,noatime,subvol=@ 0       0",
    );
    assert_eq!(fstab.text(), expected);
    assert_eq!(fstab.at("/"), Some(entry));
}

#[test]
fn a_new_entry_comes_last_and_can_go_again() {
    for text in [PI_OS, PI_OS.trim_end(), ""] {
        let mut fstab = Fstab::parse(text);
        fstab.set(&Entry::new("UUID=9", "none", "swap", "sw,pri=10"));
        assert!(
            fstab.text().ends_with("\nUUID=9  none  swap  sw,pri=10  0  0\n") || text.is_empty()
        );
        assert_eq!(fstab.swaps()[0].option("pri"), Some("10"));
        assert_eq!(fstab.remove(Entry::is_swap), 1);
        assert_eq!(fstab.text().trim_end(), text.trim_end());
    }
}

#[test]
fn swap_areas_are_told_apart_by_their_source() {
    let mut fstab = Fstab::parse("UUID=1 none swap sw 0 0\nUUID=2\tswap\tswap\tdefaults\n");
    fstab.set(&Entry::new("UUID=2", "none", "swap", "pri=5"));
    assert_eq!(fstab.text(), "UUID=1 none swap sw 0 0\nUUID=2\tnone\tswap\tpri=5\n");
}

#[test]
fn escapes_and_comments_behind_are_understood() {
    let mut fstab = Fstab::parse("LABEL=my\\040disk /mnt/a\\011b auto defaults # old\n");
    let entry = fstab.at("/mnt/a\tb").expect("is there");
    assert_eq!(entry.source, "LABEL=my disk");
    assert_eq!(entry.options, "defaults");
    fstab.set(&Entry::new("LABEL=x y", "/mnt/a\tb", "ext4", "nofail").checked_in(2));
    assert_eq!(fstab.text(), "LABEL=x\\040y     /mnt/a\\011b ext4 nofail   0 2 # old\n");
}

#[test]
fn hazards_are_found_and_a_sound_table_has_none() {
    let volumes = [
        volume("/dev/mmcblk0p1", "8a676486-01", "vfat"),
        volume("/dev/mmcblk0p2", "8a676486-02", "ext4"),
        volume("/dev/sda1", "cafe-01", "btrfs"),
        volume("/dev/sdb1", "cafe-01", "btrfs"),
        volume("/dev/sdc1", "beef-01", "vfat"),
    ];
    let essential = ["/", "/boot/firmware"];
    assert_eq!(Fstab::parse(PI_OS).hazards(&volumes, &essential), []);
    let text = "\
PARTUUID=8a676486-02 / btrfs defaults 0 1
PARTUUID=gone-01 /data ext4 defaults 0 2
PARTUUID=gone-02 /more ext4 nofail 0 2
PARTUUID=cafe-01 /both btrfs nofail 0 0
PARTUUID=8a676486-01 /other ntfs nofail 0 0
/dev/zram0 none swap defaults 0 0
/dev/mmcblk0p1 /boot/firmware msdos defaults 0 2
/dev/mmcblk0p1 /boot/firmware/ auto noauto 0 2
/dev/sdc1 /mnt vfat defaults 0 2
/dev/sdc1 /odd vfat defaults,commit=600 0 2
/dev/sdc1 /odd/optional vfat nofail,commit=600 0 2
/dev/sdc1 /far vfat _netdev 0 0
PARTUUID=gone-03 /farther ext4 _netdev 0 0
PARTUUID=gone-04 /door ext4 x-systemd.automount 0 2
";
    let hazards = Fstab::parse(text).hazards(&volumes, &essential);
    let sentences: Vec<String> = hazards.iter().map(Hazard::sentence).collect();
    assert_eq!(
        sentences,
        [
            "PARTUUID=8a676486-02 at / is to be mounted as btrfs, but holds ext4",
            "PARTUUID=gone-01 for /data is on no volume of this machine",
            "PARTUUID=cafe-01 for /both may be any of /dev/sda1, /dev/sdb1",
            "/boot/firmware/ is mounted by two lines",
            "the start waits for /dev/sdc1 at /mnt: without nofail, a missing disk ends in the emergency shell",
            "/dev/sdc1 at /odd has the option commit=600, which vfat refuses, and is not mounted",
        ]
    );
}

/// Fedora, Manjaro and openSUSE mount subvolumes of the root; and the members of one btrfs share its UUID.
#[test]
fn what_is_beside_the_root_or_a_part_of_it_is_no_hazard() {
    let pool = |path: &str, partuuid: &str, filesystem: &str| NamedVolume {
        uuid: Some("0b2c71a8".into()),
        ..volume(path, partuuid, filesystem)
    };
    let table = Fstab::parse(
        "UUID=0b2c71a8 / btrfs subvol=@ 0 0\nUUID=0b2c71a8 /home btrfs subvol=@home 0 0\n\
         PARTUUID=e6c1-03 /srv ext4 defaults 0 2\nPARTUUID=cafe-01 /more ext4 defaults 0 2\n",
    );
    let hazards = |volumes: &[NamedVolume]| -> Vec<String> {
        table.hazards(volumes, &["/"]).iter().map(Hazard::sentence).collect()
    };
    let mut volumes = vec![
        pool("/dev/mmcblk0p2", "e6c1-02", "btrfs"),
        volume("/dev/mmcblk0p3", "e6c1-03", "ext4"),
        volume("/dev/sda1", "cafe-01", "ext4"),
    ];
    let waited = "the start waits for PARTUUID=cafe-01 at /more: without nofail, a missing disk ends in the emergency shell";
    assert_eq!(hazards(&volumes), [waited]);
    for kind in ["btrfs", "bcachefs"] {
        volumes[0].filesystem = Some(kind.into());
        let mut of_two = volumes.clone();
        of_two.push(pool("/dev/sdb1", "5eed-01", kind));
        assert!(hazards(&of_two).iter().all(|what| !what.contains("any of")), "{kind}");
        of_two.push(pool("/dev/sdc2", "e6c1-02", kind));
        let copied = [&of_two[0], &of_two[4]].map(Clone::clone);
        assert!(hazards(&copied)[0].contains("any of"), "{kind}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_removing_nothing_changes_nothing(text in "[ -~\\t\\n\\r\u{a0}\u{e4}]{0,100}") {
        let mut fstab = Fstab::parse(text.clone());
        fstab.hazards(&[], &["/"]);
        fstab.remove(|_| false);
        prop_assert_eq!(fstab.text(), &text);
    }

    #[test]
    fn what_is_set_is_read_back_and_other_lines_stay(
        lines in prop::collection::vec(
            "(# [a-z ]{0,8}|[a-z]{1,3}[ \\t]{1,3}/[b-z]{1,3} {1,3}[a-z]{1,3}( {1,2}[a-z,]{1,4}( 0( [0-2])?)?)?( # x)?)",
            0..6,
        ),
        at in 0_usize..6,
        source in "[A-Z]{1,3}=[a-z \\\\#]{0,6}",
        options in "[a-z,=]{1,8}",
        pass in 0_u32..3,
    ) {
        let target = lines.get(at).and_then(|line| entry_of(line)).map_or("/a".into(), |old| old.target);
        let before = Fstab::parse(lines.join("\n"));
        let mut fstab = before.clone();
        let entry = Entry::new(&source, &target, "btrfs", &options).checked_in(pass);
        fstab.set(&entry);
        prop_assert_eq!(fstab.at(&target), Some(entry));
        let others = |fstab: &Fstab| -> Vec<String> {
            let lines = fstab.text().lines();
            lines.filter(|line| entry_of(line).is_none_or(|e| e.target != target)).map(str::to_string).collect()
        };
        prop_assert_eq!(others(&fstab), others(&before));
    }
}
