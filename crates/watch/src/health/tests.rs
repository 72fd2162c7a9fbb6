//! Disks with trouble of each kind, and the word for each.

use rubus_draw::style::Style;
use rubus_fixtures::pi3_with_usb_ssd;
use rubus_machine::kernel_log::troubles;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::HopKind;
use rubus_vocabulary::throttling::Throttling;

use super::text::section;
use super::*;
use crate::wear::{Source, Used, Warning};

const MEDIUM: &str = "critical medium error, dev sda, sector 5 op 0x0:(READ) flags 0x0";
const ABORTS: &str = "sd 0:0:0:0: [sda] tag#5 uas_eh_abort_handler 0 uas-tag 3 inflight: CMD OUT";
const CARD: &str =
    "mmcblk0: error -110 transferring data, sector 8, nr 8, cmd response 0x900, card status 0x0";

fn machine(log: &str) -> Machine {
    let mut machine = pi3_with_usb_ssd();
    machine.power.throttling = Fact::known(Throttling::decode(0), "a test");
    machine.power.undervoltage_alarm = Fact::known(false, "a test");
    machine.kernel_log = Fact::known(troubles(log), "dmesg");
    machine
}

fn word(machine: &Machine, told: &Told, disk: &str) -> (Word, Option<Cause>) {
    let found = of_machine(machine, told);
    let one = found.iter().find(|one| one.disk == disk).expect("it has the disk");
    (one.word, one.cause)
}

fn nothing() -> Told {
    Told::default()
}

fn wear(disk: &str, change: impl Fn(&mut Wear)) -> Told {
    let mut wear = Wear { disk: disk.into(), source: Some(Source::Ata), ..Wear::default() };
    change(&mut wear);
    Told { wear: vec![wear], ..Told::default() }
}

#[test]
fn without_trouble_a_disk_is_fine_and_without_a_log_it_is_not_known() {
    assert_eq!(word(&machine(""), &nothing(), "sda"), (Word::Fine, None));
    let mut unread = machine("");
    unread.kernel_log = Fact::unknown("permission denied; root may read it", "dmesg");
    assert_eq!(word(&unread, &nothing(), "sda"), (Word::NotKnown, None));
    assert_eq!(word(&unread, &wear("sda", |_| ()), "sda"), (Word::Fine, None), "SMART answers");
}

#[test]
fn what_was_lost_fails_and_what_was_mended_wears() {
    assert_eq!(word(&machine(MEDIUM), &nothing(), "sda"), (Word::Failing, Some(Cause::Disk)));
    let mended = [CARD; 6].join("\n");
    let card = word(&machine(&mended), &nothing(), "mmcblk0");
    assert_eq!(card, (Word::WearingOut, Some(Cause::Disk)));
    assert_eq!(word(&machine(CARD), &nothing(), "mmcblk0"), (Word::Fine, None), "once");
    let aborts = word(&machine(ABORTS), &nothing(), "sda");
    assert_eq!(aborts, (Word::NotKnown, Some(Cause::Uas)), "nothing was lost yet");
    assert_eq!(
        word(&machine(ABORTS), &wear("sda", |_| ()), "sda"),
        (Word::Fine, Some(Cause::Uas)),
        "the disk itself says that it is well"
    );
}

#[test]
fn uas_is_suspected_without_evidence_only_where_the_log_is_the_machines_own() {
    const FOUND: &str =
        "[ 1.1] scsi host0: usb-storage 1-1.4:1.0\n[ 1.2] sd 0:0:0:0: [sda] Attached SCSI disk";
    const RESET: &str = "[ 9.1] usb 1-1.4: reset high-speed USB device number 5 using dwc_otg";
    let log = [FOUND, RESET, RESET, RESET].join("\n");
    let mut own = machine(&log);
    for hop in own.block_devices.iter_mut().flat_map(|disk| disk.path.iter_mut()) {
        if hop.kind == HopKind::UsbDevice {
            hop.driver = Fact::known("uas".to_string(), "a test");
        }
    }
    let suspects_uas = |machine: &Machine| {
        let found = of_machine(machine, &nothing());
        let disk = found.iter().find(|one| one.disk == "sda").expect("it has the disk");
        disk.suspects.iter().any(|one| one.cause == Cause::Uas)
    };
    assert!(suspects_uas(&own));
    own.kernel_log = Fact::known(troubles(&log), "other.log");
    assert!(!suspects_uas(&own), "the log does not say what drove it");
}

#[test]
fn the_words_of_the_disk_itself_count() {
    let fine = machine("");
    let failing = wear("sda", |wear| wear.warnings = vec![Warning::Failing]);
    assert_eq!(word(&fine, &failing, "sda").0, Word::Failing);
    let spare = wear("sda", |wear| wear.warnings = vec![Warning::SpareLow]);
    assert_eq!(word(&fine, &spare, "sda").0, Word::WearingOut);
    for of_age in [Warning::ReallocatedBlocks, Warning::DesignLifeOver] {
        let told = wear("sda", |wear| wear.warnings = vec![of_age]);
        assert_eq!(word(&fine, &told, "sda").0, Word::WearingOut, "{of_age:?}");
    }
    let used = |percent: f64| {
        let used = Used { min_percent: percent, max_percent: Some(percent + 2.0) };
        wear("sda", move |wear| wear.used = Some(used))
    };
    assert_eq!(word(&fine, &used(93.0), "sda").0, Word::WearingOut);
    assert_eq!(word(&fine, &used(40.0), "sda").0, Word::Fine);
}

#[test]
fn an_earlier_boot_counts_only_where_the_disk_itself_failed() {
    let fine = machine("");
    let earlier = |log: &str| Told { earlier_boots: vec![Vec::new(), troubles(log)], ..nothing() };
    assert_eq!(word(&fine, &earlier(MEDIUM), "sda"), (Word::Failing, Some(Cause::Disk)));
    let pulled = "[ 9.1] sd 0:0:0:0: [sda] Attached SCSI disk\n[ 9.2] I/O error, dev sdz, sector 8 op 0x0:(READ)";
    assert_eq!(word(&fine, &earlier(pulled), "sda").0, Word::Fine);
    let found = of_machine(&fine, &earlier(MEDIUM));
    assert_eq!(found[0].disk, "sda", "the worst first");
    assert_eq!(found[0].evidence, ["2 boots ago: 1 place that cannot be read or written"]);
}

#[test]
fn counters_of_a_lifetime_make_no_disk_fail() {
    let count = ErrorCount {
        devices: vec!["sda1".into(), "sda2".into()],
        counter: "btrfs".into(),
        what: "read errors".into(),
        times: 2,
        last_day: None,
    };
    let told = Told { counts: vec![count], ..nothing() };
    let found = of_machine(&machine(""), &told);
    let sda = found.iter().find(|one| one.disk == "sda").expect("sda");
    assert_eq!(sda.word, Word::NotKnown);
    assert_eq!(sda.evidence, ["btrfs on sda1 or sda2 has counted 2 read errors"]);
}

#[test]
fn a_disk_that_an_array_has_put_out_fails_and_so_does_the_array() {
    let array = ArrayState {
        name: "md0".into(),
        level: "raid1".into(),
        disks: 2,
        lacking: 1,
        faulty: vec!["sda1".into()],
        ..ArrayState::default()
    };
    let told = Told { arrays: vec![array], ..nothing() };
    let found = of_machine(&machine(""), &told);
    let failing: Vec<&str> =
        found.iter().filter(|one| one.word == Word::Failing).map(|one| one.disk.as_str()).collect();
    assert_eq!(failing, ["sda", "md0"]);
    assert_eq!(found[0].evidence, ["md0 has put it out after an error"]);
}

#[test]
fn every_kind_of_answer() {
    let log = format!("{MEDIUM}\n{}", [CARD; 6].join("\n"));
    let mut text = section(&of_machine(&machine(&log), &nothing()), Style::PLAIN);
    let drops = "\
[    2.1] usb-storage 1-1.4:1.0: USB Mass Storage device detected
[    2.2] scsi host0: usb-storage 1-1.4:1.0
[    2.3] sd 0:0:0:0: [sda] Attached SCSI disk
[  900.1] usb 1-1.4: reset high-speed USB device number 5 using dwc_otg
[  980.1] usb 1-1.4: USB disconnect, device number 5
[  980.2] I/O error, dev sda, sector 4096 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2";
    text += &section(&of_machine(&machine(drops), &nothing()), Style::PLAIN);
    text += &warnings(&of_machine(&machine(drops), &nothing())).join("\n");
    insta::assert_snapshot!(text);
}
