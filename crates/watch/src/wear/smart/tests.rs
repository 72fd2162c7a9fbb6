//! Answers of smartctl, and what is taken from them.

use serde_json::{Value, json};

use super::*;

fn told(json: &Value) -> Wear {
    parse("sda", &json.to_string())
}

fn nvme(percentage_used: u32, critical_warning: u32) -> Value {
    json!({
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "smart_status": {"passed": critical_warning == 0, "nvme": {"value": critical_warning}},
        "nvme_smart_health_information_log": {
            "critical_warning": critical_warning,
            "temperature": 32,
            "available_spare": 100,
            "available_spare_threshold": 10,
            "percentage_used": percentage_used,
            "data_units_read": 4_000_000,
            "data_units_written": 2_000_000,
        },
    })
}

fn attribute(id: u32, name: &str, value: u32, raw: u64) -> Value {
    json!({"id": id, "name": name, "value": value, "worst": value, "thresh": 0, "raw": {"value": raw, "string": "x"}})
}

fn ata(attributes: &[Value], rotation_rate: u32) -> Value {
    json!({
        "smartctl": {"exit_status": 0},
        "rotation_rate": rotation_rate,
        "logical_block_size": 512,
        "smart_status": {"passed": true},
        "ata_smart_attributes": {"revision": 1, "table": attributes},
    })
}

fn statistics(rows: &[(&str, u64, bool)]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(name, value, valid)| json!({"offset": 8, "name": name, "size": 1, "value": value, "flags": {"valid": valid}}))
        .collect();
    json!({"pages": [{"number": 1, "table": []}, {"number": 7, "table": rows}]})
}

#[test]
fn an_nvme_disk_tells_percents_units_and_warnings() {
    let wear = told(&nvme(3, 0));
    assert_eq!(wear.source, Some(Source::Nvme));
    assert_eq!(wear.used, Some(Used::about(3.0)));
    assert_eq!(wear.written_bytes, Some(1_024_000_000_000));
    assert_eq!((wear.warnings, wear.trouble), (vec![], None));
    let full = told(&nvme(255, 0b1_1101)).warnings;
    let all =
        [Warning::ReadOnly, Warning::Unreliable, Warning::SpareNearlyUsedUp, Warning::UnsafeCache];
    assert_eq!(full, all);
    // It is too warm, which wears nothing.
    assert_eq!(told(&nvme(3, 0b10)).warnings, []);
    // No disk has more than all of its spare blocks.
    let mut odd = nvme(255, 0);
    odd["nvme_smart_health_information_log"]["available_spare_threshold"] = json!(255);
    assert_eq!(told(&odd).warnings, []);
}

#[test]
fn a_turning_disk_with_blocks_that_it_cannot_read_fails() {
    let rows = |pending, uncorrectable| {
        [
            attribute(197, "Current_Pending_Sector", 200, pending),
            attribute(198, "Offline_Uncorrectable", 200, uncorrectable),
        ]
    };
    let warnings =
        |pending, uncorrectable, turns| told(&ata(&rows(pending, uncorrectable), turns)).warnings;
    assert_eq!(warnings(0, 0, 7200), []);
    assert_eq!(warnings(8, 0, 7200), [Warning::UnreadableBlocks]);
    assert_eq!(warnings(8, 3, 5400), [Warning::UnreadableBlocks]);
    assert_eq!(warnings(1 << 40, 0, 5400), [], "packed, and no count");
    assert_eq!(warnings(1, 0, 0), [], "an SSD");
}

#[test]
fn errors_by_which_data_was_lost_at_some_time_are_told_of_every_kind_of_disk() {
    let mut of_nvme = nvme(3, 0);
    let log = "nvme_smart_health_information_log";
    of_nvme[log]["num_err_log_entries"] = json!(812);
    of_nvme[log]["media_errors"] = json!(0);
    assert_eq!(told(&of_nvme).warnings, [], "commands that failed lose nothing");
    of_nvme[log]["media_errors"] = json!(3);
    assert_eq!(told(&of_nvme).warnings, [Warning::DataErrors]);
    for name in ["Reported_Uncorrect", "Uncorrectable_ECC_Ct", "UECC_Sector_Count"] {
        for turns in [0, 7200] {
            let warnings = |raw| told(&ata(&[attribute(187, name, 100, raw)], turns)).warnings;
            assert_eq!(warnings(0), [], "{name}");
            assert_eq!(warnings(2), [Warning::DataErrors], "{name}");
            assert_eq!(warnings(1 << 40), [], "{name}: packed, and no count");
        }
    }
    let mut of_ata = ata(&[attribute(9, "Power_On_Hours", 99, 10)], 7200);
    of_ata["ata_device_statistics"] =
        statistics(&[("Number of Reported Uncorrectable Errors", 4, true)]);
    assert_eq!(told(&of_ata).warnings, [Warning::DataErrors]);
    let of_scsi = |errors: u64| {
        json!({"device": {"protocol": "SCSI"}, "smart_status": {"passed": true},
            "scsi_error_counter_log": {"read": {"total_uncorrected_errors": errors}}})
    };
    assert_eq!(told(&of_scsi(0)).warnings, []);
    assert_eq!(told(&of_scsi(1)).warnings, [Warning::DataErrors]);
}

#[test]
fn percents_go_beyond_a_hundred_and_stop_at_255() {
    let used = |percent| told(&nvme(percent, 0)).used.unwrap();
    assert_eq!(used(0).min_percent, 0.0);
    assert!(!used(99).is_over() && used(100).is_over() && used(101).is_over());
    assert_eq!(used(255).max_percent, None);
}

#[test]
fn an_ata_disk_tells_by_statistics_first_and_by_its_maker_s_attributes_else() {
    let attributes = [
        attribute(177, "Wear_Leveling_Count", 95, 61),
        attribute(241, "Total_LBAs_Written", 99, 1_000_000),
    ];
    let mut json = ata(&attributes, 0);
    let wear = told(&json);
    assert_eq!(wear.source, Some(Source::Ata));
    assert_eq!(wear.used, Some(Used::about(5.0)));
    assert_eq!(wear.written_bytes, Some(512_000_000));
    json["ata_device_statistics"] = statistics(&[
        ("Percentage Used Endurance Indicator", 7, true),
        ("Logical Sectors Written", 3_000_000, true),
    ]);
    let wear = told(&json);
    assert_eq!(wear.used, Some(Used::about(7.0)));
    assert_eq!(wear.told_used.len(), 2);
    assert_eq!(wear.written_bytes, Some(1_536_000_000));
}

#[test]
fn what_smartctl_makes_of_an_attribute_is_no_second_word_of_the_disk() {
    // 74 % left by the raw value; smartctl takes the value, which stays at 100.
    let mut stuck = ata(&[attribute(231, "SSD_Life_Left", 100, 74)], 0);
    stuck["endurance_used"] = json!({"current_percent": 0});
    let wear = told(&stuck);
    assert_eq!((about(&wear), wear.told_used.len()), (Some((25.0, Some(27.0))), 1));
    // Nothing is known, and smartctl says 0 or 100.
    for (value, raw, guess) in [(100, 401, 0), (0, 900, 100)] {
        let mut json = ata(&[attribute(177, "Wear_Leveling_Count", value, raw)], 0);
        json["endurance_used"] = json!({"current_percent": guess});
        assert_eq!(told(&json).used, None, "{value}");
    }
    // By the standard's statistic, which the answer may lack.
    let mut json = ata(&[attribute(5, "Reallocated_Sector_Ct", 100, 0)], 0);
    json["endurance_used"] = json!({"current_percent": 8});
    assert_eq!(told(&json).used, Some(Used::about(8.0)));
}

#[test]
fn cycles_count_where_the_disk_says_no_share() {
    let counts = [
        attribute(167, "Average_Erase_Count", 100, 1650),
        attribute(168, "Max_Erase_Count_of_Spec", 100, 3000),
    ];
    let wear = told(&ata(&counts, 0));
    assert_eq!(about(&wear), Some((54.0, Some(56.0))));
    assert_eq!(wear.told_used[0].name, "Average_Erase_Count");
    let [average, rated] = counts;
    let own = [average, rated, attribute(169, "Remaining_Lifetime_Perc", 60, 60)];
    assert_eq!(about(&told(&ata(&own, 0))), Some((39.0, Some(41.0))));
}

#[test]
fn a_health_log_that_a_bridge_made_up_tells_nothing() {
    let log = |byte: u32, counter: u64| {
        json!({
            "smart_status": {"passed": byte == 0, "nvme": {"value": byte}},
            "nvme_smart_health_information_log": {"critical_warning": byte, "available_spare": byte,
                "available_spare_threshold": byte, "percentage_used": byte, "data_units_written": counter,
                "power_on_hours": counter, "power_cycles": counter},
        })
    };
    for blank in [log(0, 0), log(255, u64::MAX)] {
        let wear = told(&blank);
        assert_eq!((wear.used, wear.source, wear.warnings), (None, None, vec![]));
        assert!(matches!(wear.trouble, Some(Trouble::Other(_))));
    }
    // A new disk that has started once.
    let mut new = log(0, 0);
    new["nvme_smart_health_information_log"]["power_cycles"] = json!(1);
    assert_eq!(about(&told(&new)), Some((0.0, Some(1.0))));
    let mut status = log(0, 0);
    status["smart_status"] = json!({"passed": false, "nvme": {"value": 4}});
    assert_eq!(told(&status).warnings, [Warning::Unreliable]);
    status["nvme_smart_health_information_log"] = json!(null);
    assert_eq!(told(&status).warnings, [Warning::Unreliable]);
}

#[test]
fn a_sas_disk_that_is_too_warm_does_not_fail() {
    let status = |asc: u32, ascq: u32| {
        let scsi = json!({"asc": asc, "ascq": ascq, "ie_string": "x"});
        let json = json!({"device": {"protocol": "SCSI"}, "smart_status": {"passed": false, "scsi": scsi}});
        told(&json).warnings
    };
    assert_eq!(status(0x0b, 0x01), []);
    assert_eq!(status(0x5d, 0x10), [Warning::Failing]);
}

#[test]
fn a_sas_disk_that_failed_its_own_test_is_not_fine() {
    let failed = json!({"code": {"value": 1}, "result": {"value": 7}, "sense_key": {"value": 3}});
    let json = json!({"device": {"protocol": "SCSI"}, "smart_status": {"passed": true}, "scsi_self_test_0": failed});
    assert_eq!(told(&json).warnings, [Warning::UnreadableBlocks]);
}

#[test]
fn what_a_disk_calls_not_valid_is_not_taken() {
    let mut json = ata(&[attribute(231, "SSD_Life_Left", 80, 80)], 0);
    json["ata_device_statistics"] =
        statistics(&[("Percentage Used Endurance Indicator", 0, false)]);
    assert_eq!(told(&json).used, Some(Used::about(20.0)));
}

#[test]
fn each_way_to_count_what_was_written_has_its_unit() {
    let written = |name| told(&ata(&[attribute(241, name, 100, 3)], 0)).written_bytes;
    assert_eq!(written("Host_Writes_32MiB"), Some(96 << 20));
    assert_eq!(written("Host_Writes_GiB"), Some(3 << 30));
    assert_eq!(written("Lifetime_Writes_GiB"), Some(3 << 30));
    assert_eq!(written("Power_On_Hours"), None);
}

#[test]
fn a_disk_that_turns_does_not_wear_but_may_fail() {
    let mut json = ata(&[attribute(177, "Wear_Leveling_Count", 95, 61)], 5400);
    assert_eq!(told(&json).used, None);
    json["smart_status"]["passed"] = json!(false);
    assert_eq!(told(&json).warnings, [Warning::Failing]);
}

#[test]
fn why_it_could_not_ask_is_told() {
    let message = |string: &str| {
        let messages = json!([{"string": string, "severity": "error"}]);
        told(&json!({"smartctl": {"exit_status": 2, "messages": messages}})).trouble
    };
    assert_eq!(
        message("Smartctl open device: /dev/sda failed: Permission denied"),
        Some(Trouble::NotRoot)
    );
    let words = "/dev/sda: Unknown USB bridge [0x152d:0x0583 (0x209)]";
    assert_eq!(message(words), Some(Trouble::Other(words.into())));
    assert_eq!(message("Device is in STANDBY mode, exit(2)"), Some(Trouble::Asleep));
    assert_eq!(told(&json!({"smartctl": {}})).trouble, None);
    let old = "smartctl 6.6 2017-11-05 r4594 [armv7l-linux-4.19.66-v7+] (local build)\n\n\
               =======> UNRECOGNIZED OPTION: json=c\n\nUse smartctl -h to get a usage summary\n";
    assert_eq!(parse("sda", old).trouble, Some(Trouble::OldSmartctl("6.6".into())));
    for broken in ["", "{\"a\"", "smartctl 7.4 2023-08-01 r5530", "smartctl"] {
        assert!(matches!(parse("sda", broken).trouble, Some(Trouble::Other(_))), "{broken}");
    }
}

/// An answer of a disk with these hours and bytes.
fn disk(attributes: &[Value], hours: u64, bytes: u64) -> Value {
    let mut json = ata(attributes, 0);
    json["power_on_time"] = json!({"hours": hours});
    json["user_capacity"] = json!({"bytes": bytes});
    json
}

fn about(wear: &Wear) -> Option<(f64, Option<f64>)> {
    wear.used.map(|used| (used.min_percent, used.max_percent))
}

#[test]
fn the_worse_of_contradicting_attributes_counts() {
    let two = ata(
        &[attribute(177, "Wear_Leveling_Count", 99, 20), attribute(231, "SSD_Life_Left", 60, 60)],
        0,
    );
    let wear = told(&two);
    assert_eq!(about(&wear), Some((39.0, Some(41.0))));
    let (best, worst) = wear.disagreement().unwrap();
    assert_eq!((best.name.as_str(), worst.name.as_str()), ("Wear_Leveling_Count", "SSD_Life_Left"));
    let alike = ata(
        &[attribute(177, "Wear_Leveling_Count", 96, 20), attribute(231, "SSD_Life_Left", 95, 95)],
        0,
    );
    assert_eq!(told(&alike).disagreement(), None);
}

#[test]
fn an_indicator_without_direction_goes_by_what_else_the_disk_says() {
    let hynix = |cycles: u32| {
        let attributes = [
            attribute(177, "Wear_Leveling_Count", cycles, 20),
            attribute(233, "Media_Wearout_Indicator", 3, 3),
        ];
        about(&told(&ata(&attributes, 0)))
    };
    assert_eq!(hynix(98), Some((2.0, Some(4.0))));
    assert_eq!(hynix(4), Some((96.0, Some(98.0))));
    let alone = |gib: u64| {
        let attributes = [
            attribute(230, "Media_Wearout_Indicator", 2, 2),
            attribute(241, "Host_Writes_GiB", 100, gib),
        ];
        about(&told(&disk(&attributes, 9000, 1 << 39)))
    };
    assert_eq!(alone(1800), Some((1.0, Some(3.0))));
    assert_eq!(alone(400_000), Some((97.0, Some(99.0))));
    assert_eq!(alone(18_000), None);
    assert_eq!(alone(180_000), None, "makers promise 360 capacities and more");
    assert_eq!(alone(0), None, "a counter that does not count");
}

#[test]
fn a_kingston_a400_has_its_share_left_where_its_firmware_puts_it() {
    let used = |firmware: Option<&str>, value: u32, raw: u64| {
        let mut json = disk(
            &[
                attribute(231, "SSD_Life_Left", value, raw),
                attribute(241, "Lifetime_Writes_GiB", 100, 5597),
            ],
            4089,
            120_034_123_776,
        );
        json["model_name"] = json!("KINGSTON SA400S37120G");
        json["firmware_version"] = json!(firmware);
        about(&told(&json)).map(|(min, _)| min)
    };
    assert_eq!(used(Some("SBFKB1H5"), 14, 86), Some(13.0));
    assert_eq!(used(Some("SBFKB1H5"), 95, 5), None, "5 % left or used");
    assert_eq!(used(Some("SBFKB1E1"), 100, 97), Some(2.0));
    assert_eq!(used(Some("SAI20102"), 97, 97), Some(2.0));
    assert_eq!(used(Some("SBFKB1H5"), 100, 0), Some(0.0), "no share in the raw value");
    assert_eq!(used(Some("03070009"), 96, 4), Some(3.0));
    assert_eq!(used(Some("03070009"), 100, 1), Some(0.0));
    // A firmware of which nothing is known, written over 50 times.
    for unknown in [Some("03180000"), Some("SBFK62C3"), Some(""), None] {
        assert_eq!(used(unknown, 14, 86), None, "{unknown:?}");
    }
}

#[test]
fn bytes_that_any_disk_may_be_written_in_its_life_condemn_none() {
    // 150 capacities in 9000 hours.
    let told_of = |model: &str, name: &str, threshold: u32, value: u32, raw: u64| {
        let mut row = attribute(177, name, value, raw);
        row["thresh"] = json!(threshold);
        let sectors = attribute(241, "Total_LBAs_Written", 99, 140_000_000_000);
        let mut json = disk(&[row, sectors], 9000, 480_103_981_056);
        json["model_name"] = json!(model);
        json["in_smartctl_database"] = json!(false);
        about(&told(&json))
    };
    let leveling = "Wear_Leveling_Count";
    assert_eq!(told_of("SAMSUNG MZ7L3480HCHQ-00A07", leveling, 0, 95, 180), Some((4.0, Some(6.0))));
    assert_eq!(told_of("NoName SSD", leveling, 0, 93, 70), None);
    assert_eq!(told_of("NoName SSD", leveling, 5, 93, 70), Some((6.0, Some(8.0))), "it falls");
    assert_eq!(told_of("NoName SSD", leveling, 5, 4, 70), None, "it is below, and may rise");
}

#[test]
fn an_indicator_by_its_default_name_condemns_no_disk_alone() {
    let told_of = |model: &str, value: u32, gib: u64| {
        let rows = [
            attribute(233, "Media_Wearout_Indicator", value, 0),
            attribute(241, "Host_Writes_GiB", 100, gib),
        ];
        let mut json = disk(&rows, 9000, 500_107_862_016);
        json["model_name"] = json!(model);
        json["in_smartctl_database"] = json!(false);
        about(&told(&json))
    };
    assert_eq!(told_of("NoName SSD", 3, 60_000), None);
    assert_eq!(told_of("NoName SSD", 3, 5000), Some((2.0, Some(4.0))));
    assert_eq!(told_of("INTEL SSDSC2KB480G8", 3, 60_000), Some((96.0, Some(98.0))));
}

#[test]
fn a_share_that_is_used_or_left_goes_by_the_bytes_if_they_tell() {
    let kingston = |value: u32, raw: u64, gib: u64| {
        let rows = [
            attribute(231, "SSD_Life_Left", value, raw),
            attribute(241, "Lifetime_Writes_GiB", 100, gib),
        ];
        about(&told(&disk(&rows, 20_000, 120_034_123_776)))
    };
    assert_eq!(kingston(2, 98, 1100), Some((1.0, Some(3.0))));
    assert_eq!(kingston(96, 4, 1100), Some((3.0, Some(5.0))));
    assert_eq!(kingston(2, 98, 15_000), None);
    assert_eq!(kingston(2, 98, 200_000), Some((97.0, Some(99.0))));
    assert_eq!(kingston(42, 58, 200), None, "so little wears neither");
    assert_eq!(kingston(2, 2, 1100), Some((97.0, Some(99.0))), "both say the same");
}

#[test]
fn a_counter_that_has_too_little_for_the_wear_is_no_counter() {
    let mut of_nvme = nvme(44, 0);
    of_nvme["user_capacity"] = json!({"bytes": 500_107_862_016_u64});
    let log = "nvme_smart_health_information_log";
    let written = |json: &Value| {
        let wear = told(json);
        (wear.written_bytes, wear.is_written_counter_implausible)
    };
    of_nvme[log]["data_units_written"] = json!(0);
    assert_eq!(written(&of_nvme), (None, true));
    of_nvme[log]["data_units_written"] = json!(4_000_000);
    assert_eq!(written(&of_nvme), (Some(2_048_000_000_000), false));
    let rows = [
        attribute(231, "SSD_Life_Left", 40, 40),
        attribute(241, "Lifetime_Writes_GiB", 100, 300_000),
    ];
    let mut wrapped = disk(&rows, 30_000, 500_107_862_016);
    wrapped["ata_device_statistics"] = statistics(&[("Logical Sectors Written", 2_000_000, true)]);
    assert_eq!(written(&wrapped), (Some(300_000 << 30), false));
}

#[test]
fn a_disk_older_than_rotation_rates_turns_if_its_arm_has_moved() {
    let old = |name: &str, raw: u64| {
        let rows = [attribute(7, name, 97, raw), attribute(197, "Current_Pending_Sector", 99, 87)];
        let mut json = ata(&rows, 0);
        json["rotation_rate"].take();
        told(&json)
    };
    assert_eq!(old("Seek_Error_Rate", 600_000_000).warnings, [Warning::UnreadableBlocks]);
    assert_eq!(old("Spin_Up_Time", 4925).warnings, [Warning::UnreadableBlocks]);
    assert!(!old("Spin_Up_Time", 0).is_turning, "a name that a firmware of an SSD may list");
    assert!(!old("Unknown_Attribute", 4925).is_turning);
    let rows = [attribute(3, "Spin_Up_Time", 100, 9), attribute(231, "SSD_Life_Left", 80, 80)];
    let mut json = ata(&rows, 0);
    assert!(!told(&json).is_turning);
    json["rotation_rate"].take();
    assert_eq!(about(&told(&json)), Some((19.0, Some(21.0))));
    json["rotation_rate"] = json!("5400 rpm");
    assert!(told(&json).is_turning);
}

#[test]
fn each_name_for_blocks_that_cannot_be_read_counts() {
    let turning = |name: &str, raw| told(&ata(&[attribute(197, name, 100, raw)], 5400)).warnings;
    for name in UNREADABLE {
        assert_eq!(turning(name, 16), [Warning::UnreadableBlocks], "{name}");
        assert_eq!(turning(name, 0), [], "{name}");
    }
    for name in ONCE_UNREADABLE {
        assert_eq!(turning(name, 16), [Warning::DataErrors], "{name}");
        assert_eq!(turning(name, 0), [], "{name}");
    }
    let mut json = ata(&[attribute(9, "Power_On_Hours", 99, 10)], 7200);
    json["ata_device_statistics"] = statistics(&[(CANDIDATES[0], 240, true)]);
    assert_eq!(told(&json).warnings, [Warning::UnreadableBlocks]);
    json["ata_device_statistics"].take();
    json["ata_pending_defects_log"] = json!({"count": 24});
    assert_eq!(told(&json).warnings, [Warning::UnreadableBlocks]);
    let sas = |pending: u64| {
        json!({"device": {"protocol": "SCSI"}, "rotation_rate": 7200,
            "smart_status": {"passed": true}, "scsi_pending_defects": {"count": pending}})
    };
    assert_eq!(told(&sas(57)).warnings, [Warning::UnreadableBlocks]);
    assert_eq!(told(&sas(0)).warnings, []);
}

#[test]
fn a_turning_disk_that_has_replaced_many_blocks_is_not_fine() {
    let name = "Reallocated_Sector_Ct";
    let of_attribute = |raw, turns| told(&ata(&[attribute(5, name, 71, raw)], turns)).warnings;
    assert_eq!(of_attribute(37_528, 7200), [Warning::ReallocatedBlocks]);
    assert_eq!(of_attribute(12, 7200), []);
    assert_eq!(of_attribute(12 | 9000 << 32, 7200), [], "packed");
    assert_eq!(of_attribute(37_528, 0), [], "an SSD");
    let mut json = ata(&[attribute(9, "Power_On_Hours", 99, 10)], 7200);
    json["ata_device_statistics"] = statistics(&[(REALLOCATED, 5120, true)]);
    assert_eq!(told(&json).warnings, [Warning::ReallocatedBlocks]);
    let sas = |defects: u64| {
        json!({"device": {"protocol": "SCSI"}, "rotation_rate": 7200,
            "smart_status": {"passed": true}, "scsi_grown_defect_list": defects})
    };
    assert_eq!(told(&sas(3211)).warnings, [Warning::ReallocatedBlocks]);
    assert_eq!(told(&sas(3)).warnings, []);
}

#[test]
fn large_counts_of_errors_count() {
    let mut of_nvme = nvme(3, 0);
    for errors in [json!(5_000_000), json!("340282366920938463463374607431768211455")] {
        of_nvme["nvme_smart_health_information_log"]["media_errors"] = errors;
        assert_eq!(told(&of_nvme).warnings, [Warning::DataErrors]);
    }
    let samsung = [attribute(187, "Uncorrectable_Error_Cnt", 98, 2_200_000)];
    assert_eq!(told(&ata(&samsung, 0)).warnings, [Warning::DataErrors]);
}

#[test]
fn a_temperature_is_told_from_attempts_and_a_use_from_a_fault() {
    let failing = |name: &str, is_prefailure: bool, has_passed: bool| {
        let mut row = attribute(213, name, 1, 9);
        row["when_failed"] = json!("now");
        row["flags"] = json!({"prefailure": is_prefailure});
        let mut json = ata(&[row], 5400);
        json["smart_status"]["passed"] = json!(has_passed);
        told(&json)
    };
    for warm in ["Airflow_Temperature_Cel", "I-Temp", "Drive_Temp_Warning"] {
        assert_eq!(failing(warm, true, true).warnings, [], "{warm}");
    }
    for fault in ["Snmple_Retry_Attempts", "Adaptv_Rd_Rtry_Attempts", "Reallocate_NAND_Blk_Cnt"] {
        assert_eq!(failing(fault, false, true).warnings, [Warning::AtThreshold], "{fault}");
    }
    for of_use in ["Power_On_Hours", "Load_Cycle_Count"] {
        let wear = failing(of_use, false, true);
        assert_eq!(wear.warnings, [Warning::DesignLifeOver], "{of_use}");
        assert_eq!(wear.used_up_attributes, [of_use]);
        assert_eq!(failing(of_use, true, true).warnings, [Warning::AtThreshold], "{of_use}");
        let status = failing(of_use, false, false).warnings;
        assert_eq!(status, [Warning::Failing, Warning::AtThreshold], "{of_use}");
    }
}

#[test]
fn a_used_up_disk_says_so() {
    let phison = disk(
        &[
            attribute(169, "Remaining_Lifetime_Perc", 0, 0),
            attribute(231, "SSD_Life_Left", 0, 0),
            attribute(241, "Lifetime_Writes_GiB", 100, 60_000),
        ],
        20_000,
        240_057_409_536,
    );
    assert!(told(&phison).used.unwrap().is_over());
    let mut crucial = attribute(202, "Percent_Lifetime_Remain", 0, 106);
    crucial["when_failed"] = json!("now");
    let wear = told(&ata(&[crucial], 0));
    assert_eq!(about(&wear), Some((105.0, Some(107.0))));
    assert_eq!(wear.warnings, [Warning::AtThreshold]);
    assert_eq!(wear.failing_attributes, ["Percent_Lifetime_Remain"]);
    // Too warm now, which wears nothing.
    let mut warm = attribute(190, "Airflow_Temperature_Cel", 40, 60);
    warm["when_failed"] = json!("now");
    assert_eq!(told(&ata(&[warm], 7200)).warnings, []);
}

#[test]
fn the_unit_of_a_counter_is_in_its_name_or_has_to_fit_the_disk() {
    let written = |attributes: &[Value], hours| {
        let wear = told(&disk(attributes, hours, 240_057_409_536));
        (wear.written_bytes, wear.is_written_counter_implausible)
    };
    let intel = [
        attribute(225, "Host_Writes_32MiB", 100, 129_493),
        attribute(241, "Total_LBAs_Written", 100, 129_493),
    ];
    assert_eq!(written(&intel, 20_000), (Some(129_493 << 25), false));
    // 631 MB in 20,000 hours: the unit is not a sector.
    let toshiba = [attribute(241, "Total_LBAs_Written", 100, 1_232_421)];
    assert_eq!(written(&toshiba, 20_000), (None, true));
    assert_eq!(written(&toshiba, 10), (Some(1_232_421 * 512), false));
    let swissbit = [
        attribute(231, "Life_Remaining_Percent", 64, 64),
        attribute(241, "Total_LBAs_Written", 100, 1000),
    ];
    assert_eq!(written(&swissbit, 10), (None, true));
    let wrapped = [attribute(241, "Host_Writes_GiB", 100, 0xffff_ffff_ffff)];
    assert_eq!(written(&wrapped, 20_000), (None, true));
    let flash = [attribute(233, "Flash_Writes_GiB", 100, 840_007)];
    assert_eq!(written(&flash, 20_000), (None, false));
}

#[test]
fn filesystems_that_wrote_more_than_the_disk_s_counter_has_refute_it() {
    let wear = || Wear { written_bytes: Some(66_300_000), ..Wear::default() };
    let refuted = wear().with_filesystems(Some(4_100_000_000_000));
    assert_eq!((refuted.written_bytes, refuted.is_written_counter_implausible), (None, true));
    let kept = wear().with_filesystems(Some(70_000_000));
    assert_eq!(
        (kept.written_bytes, kept.is_written_counter_implausible),
        (Some(66_300_000), false)
    );
}

#[test]
fn a_disk_that_smartctl_does_not_know_is_not_guessed_at() {
    let attributes = [
        attribute(231, "Unknown_SSD_Attribute", 100, 74),
        attribute(233, "Media_Wearout_Indicator", 100, 840_007),
        attribute(241, "Total_LBAs_Written", 100, 391_741),
    ];
    let mut json = disk(&attributes, 20_000, 1_024_209_543_168);
    json["in_smartctl_database"] = json!(false);
    let wear = told(&json);
    assert_eq!((wear.used, wear.written_bytes, wear.source), (None, None, Some(Source::Ata)));
}

#[test]
fn a_sas_disk_tells_its_endurance_and_its_spares() {
    let json = json!({
        "device": {"protocol": "SCSI"},
        "rotation_rate": 0,
        "smart_status": {"passed": true},
        "scsi_percentage_used_endurance_indicator": 12,
        "scsi_error_counter_log": {"write": {"gigabytes_processed": "41234.5"}},
        "spare_available": {"current_percent": 3, "threshold_percent": 10},
    });
    let wear = told(&json);
    assert_eq!((wear.source, about(&wear)), (Some(Source::Scsi), Some((11.0, Some(13.0)))));
    assert_eq!(wear.written_bytes, Some(41_234_500_000_000));
    assert_eq!(wear.warnings, [Warning::SpareNearlyUsedUp]);
    let worn = json!({"device": {"protocol": "SCSI"}, "endurance_used": {"current_percent": 100}});
    assert!(told(&worn).used.unwrap().is_over());
    let platters = json!({"device": {"protocol": "SCSI"}, "rotation_rate": 7200, "smart_status": {"passed": false}});
    assert_eq!(told(&platters).warnings, [Warning::Failing]);
}

#[test]
fn nvme_spares_below_their_threshold_warn_whatever_the_bits_say() {
    let mut json = nvme(3, 0);
    json["nvme_smart_health_information_log"]["available_spare"] = json!(3);
    assert_eq!(told(&json).warnings, [Warning::SpareNearlyUsedUp]);
}

/// Puts each odd value in the place of each field in turn: what the other fields say stays.
#[test]
fn one_odd_field_never_loses_the_rest() {
    let odd = [
        json!(null),
        json!(-1),
        json!(1.5e19),
        json!(1e300),
        json!("text"),
        json!(""),
        json!([]),
        json!([[null]]),
        json!({}),
        json!({"value": null}),
        json!(true),
        json!(u64::MAX),
        json!(0.5),
    ];
    let mut sata = disk(
        &[attribute(5, "Reallocated_Sector_Ct", 100, 0), attribute(231, "SSD_Life_Left", 80, 80)],
        20_000,
        1 << 40,
    );
    sata["ata_device_statistics"] = statistics(&[(ENDURANCE, 20, true)]);
    for (whole, min_percent) in [(nvme(20, 0), 19.0), (sata, 19.0)] {
        let mut paths = Vec::new();
        leaves(&whole, String::new(), &mut paths);
        assert!(paths.len() > 8, "{paths:?}");
        for path in &paths {
            for value in &odd {
                let mut json = whole.clone();
                *json.pointer_mut(path).unwrap() = value.clone();
                let wear = told(&json);
                assert!(wear.source.is_some() && wear.trouble.is_none(), "{path} {value}");
                let is_wear = ["used", "flags", "name", "value", "raw", "log", "table", "pages"];
                let is_own = is_wear.iter().any(|word| path.contains(word));
                let min = wear.used.map(|used| used.min_percent);
                assert!(is_own || min == Some(min_percent), "{path} {value} {min:?}");
            }
        }
    }
    // Numbers that JSON does not have.
    let text = nvme(20, 0).to_string().replace("2000000", "1e999");
    assert_eq!(parse("sda", &text).used, Some(Used::about(20.0)));
}

fn leaves(value: &Value, path: String, all: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| leaves(field, format!("{path}/{name}"), all));
        }
        Value::Array(rows) => {
            (0..)
                .zip(rows)
                .for_each(|(at, row): (usize, _)| leaves(row, format!("{path}/{at}"), all));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => all.push(path),
    }
}

#[test]
fn lists_in_another_form_are_read() {
    let json = json!({
        "rotation_rate": "0",
        "ata_smart_attributes": {"table": {"231": {"id": 231, "name": "SSD_Life_Left", "value": "80", "raw": "80"}}},
    });
    assert_eq!(told(&json).used, Some(Used::about(20.0)));
    let nulls = json!({
        "ata_smart_attributes": {"table": [null, attribute(231, "SSD_Life_Left", 80, 80)]},
        "ata_device_statistics": {"pages": [null, {"table": [null]}]},
    });
    assert_eq!(told(&nulls).used, Some(Used::about(20.0)));
}
