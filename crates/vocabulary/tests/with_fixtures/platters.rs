//! Which disks spin.

use rubus_fixtures as fixture;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::BlockKind;
use rubus_vocabulary::platters::has_platters;

#[test]
fn a_bridges_word_alone_does_not_make_an_ssd_spin() {
    let machine = fixture::pi3_with_usb_ssd();
    let mut disk = machine.device("sda").expect("the SSD").clone();
    let mut of = |model: &str, rotational: bool| {
        disk.model = Fact::known(model.into(), "test");
        disk.rotational = Fact::known(rotational, "test");
        has_platters(&disk)
    };
    assert_eq!(of("Generic Disk", true), None);
    assert_eq!(of("Generic Disk", false), Some(false));
    assert_eq!(of("Samsung SSD 850", true), Some(false));
    assert_eq!(of("WDC WDS500G2B0A", true), Some(false));
    assert_eq!(of("WDC WD10SPZX", true), Some(true));
    assert_eq!(of("ST1000LM035", true), Some(true));
    assert_eq!(of("STORE N GO", true), None);
    assert_eq!(of("QEMU HARDDISK", true), None, "it stands for any disk there");
    disk.path.clear();
    disk.model = Fact::known("anything".into(), "test");
    disk.rotational = Fact::known(true, "test");
    assert_eq!(has_platters(&disk), Some(true), "no bridge is in the way");
}

#[test]
fn a_disk_made_of_a_file_has_no_heads_whatever_its_flag_says() {
    let machine = fixture::pi3_with_usb_ssd();
    let mut disk = machine.device("sda").expect("the SSD").clone();
    disk.path.clear();
    disk.rotational = Fact::known(true, "test");
    disk.model = Fact::unknown("no such file", "test");
    assert_eq!(has_platters(&disk), Some(true));
    for (model, expected) in [
        ("QEMU HARDDISK", false),
        ("VBOX HARDDISK", false),
        ("Virtual Disk    ", false),
        ("VMware Virtual S", false),
        ("Virtual Disk Array", true),
    ] {
        disk.model = Fact::known(model.into(), "test");
        assert_eq!(has_platters(&disk), Some(expected), "{model}");
    }
    for kind in [BlockKind::Loop, BlockKind::Nbd, BlockKind::Zram, BlockKind::Ram] {
        disk.kind = kind;
        assert_eq!(has_platters(&disk), Some(false), "{kind:?}");
    }
}
