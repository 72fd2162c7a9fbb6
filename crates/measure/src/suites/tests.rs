//! Every suite keeps its promises, on targets from small to huge.

use super::*;

#[test]
fn quick_never_plans_more_than_a_gibibyte_or_a_tenth() {
    for room in [160 * MIB, 500 * MIB, 3 << 30, 10 << 30, 1 << 50] {
        let suite = quick("/x", room, true).unwrap();
        let planned = plan_writes(&suite, true);
        assert!(planned <= MAX_WRITTEN, "{planned} of {room}");
        assert!(planned <= room / SHARE_OF_FREE, "{planned} of {room}");
        assert!(suite.region_bytes >= MIN_REGION);
    }
    let suite = quick("/x", 1 << 50, true).unwrap();
    assert_eq!(suite.region_bytes, 256 * MIB);
}

#[test]
fn only_a_disk_that_is_made_for_writing_is_written_to_more() {
    use rubus_vocabulary::fact::Fact;
    let machine = rubus_fixtures::pi3_with_usb_ssd();
    let disk = |name: &str| machine.device(name).expect("in the example").clone();
    assert_eq!(Endurance::of(&disk("mmcblk0")), Endurance::Low);
    let known = |value: bool| Fact::known(value, "a test");
    let mut usb = disk("sda");
    let mut of = |model: &str, removable: Fact<bool>, rotational: Fact<bool>| {
        usb.model = Fact::known(model.into(), "a test");
        (usb.removable, usb.rotational) = (removable, rotational);
        Endurance::of(&usb)
    };
    assert_eq!(of("Samsung SSD 850", known(false), known(true)), Endurance::High);
    assert_eq!(of("WDC WD10SPZX", known(false), known(true)), Endurance::High);
    // A stick, and what does not say that it is none, or what it is.
    assert_eq!(of("Samsung SSD 850", known(true), known(false)), Endurance::Low);
    let silent = || Fact::unknown("not there", "a test");
    assert_eq!(of("Samsung SSD 850", silent(), known(false)), Endurance::Low);
    assert_eq!(of("Generic Disk", known(false), known(true)), Endurance::Low);
    usb.path.clear();
    assert_eq!(Endurance::of(&usb), Endurance::Low, "a virtual one");

    let room = |bytes| Room { endurance: Endurance::High, ..Room::new("/x", bytes, true) };
    for bytes in [3 << 30, 10 << 30, 1 << 50] {
        let suite = by_name("quick", &room(bytes)).expect("a suite").expect("room");
        let planned = plan_writes(&suite, true);
        assert!(planned <= quick::MAX_WRITTEN_HIGH && planned <= bytes / SHARE_OF_FREE);
        assert_eq!(suite.region_bytes, (bytes / 40 / MIB * MIB).min(256 * MIB));
    }
}

#[test]
fn a_small_device_is_used_whole_a_tiny_one_refused() {
    let suite = quick("/dev/x", 16 * MIB, false).unwrap();
    assert_eq!(suite.region_bytes, 16 * MIB);
    let error = quick("/dev/x", MIB, false).unwrap_err().to_string();
    assert!(error.contains("1.00 MiB in all"), "{error}");
    let error = quick("/home", 100 * MIB, true).unwrap_err().to_string();
    assert!(error.contains("100 MiB of free space"), "{error}");
}

/// Every suite on targets from small to huge.
fn every_suite() -> Vec<(Room, Suite)> {
    let mut all = Vec::new();
    for listed in LISTED.iter().filter(|listed| listed.runs_on != RunsOn::Memory) {
        for bytes in [2 * GIB, 20 * GIB, 1 << 50] {
            for is_free_space in [true, false] {
                let room = Room::new("/x", bytes, is_free_space);
                let suite = by_name(listed.name, &room).expect("it is listed");
                let suite = suite.expect("there is room");
                assert_eq!(suite.name, listed.name);
                all.push((room, suite));
            }
        }
    }
    all
}

#[test]
fn names_within_a_suite_are_unique() {
    for (_, suite) in every_suite() {
        let mut names: Vec<&str> = Vec::new();
        for job in &suite.jobs {
            names.push(&job.name);
            names.extend(job.beside.iter().map(|job| job.name.as_str()));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", suite.name);
    }
}

#[test]
fn no_suite_fills_a_disk_or_writes_without_bound() {
    for (room, suite) in every_suite() {
        let planned = plan_writes(&suite, room.is_free_space);
        // The test of the capacity writes to all of it, since it cannot be told otherwise.
        let fills = suite.name == "capacity" && room.is_free_space;
        assert!(fills || planned <= 50 * GIB, "{}: {planned}", suite.name);
        assert!(suite.region_bytes <= room.bytes, "{}", suite.name);
        if room.is_free_space && !fills {
            assert!(suite.region_bytes <= room.bytes / 2, "{}", suite.name);
        }
        for job in &suite.jobs {
            assert!(u64::from(job.block_bytes) <= suite.region_bytes);
            assert!(job.stop.min_seconds <= job.stop.max_seconds);
            let operations = job.stop.max_bytes / u64::from(job.block_bytes.max(1));
            assert!(operations > 0, "{}", job.name);
        }
    }
}

#[test]
fn a_budget_of_the_users_is_kept() {
    for listed in LISTED.iter().filter(|listed| listed.name != "ram") {
        for budget in [64 * MIB, 500 * MIB, 10 * GIB] {
            let mut room = Room::new("/x", 1 << 50, true);
            room.budget_bytes = Some(budget);
            let suite = by_name(listed.name, &room).expect("it is listed");
            let suite = suite.unwrap_or_else(|error| panic!("{}: {error}", listed.name));
            let planned = plan_writes(&suite, true);
            assert!(planned <= budget, "{}: {planned} of {budget}", listed.name);
        }
    }
}

#[test]
fn a_size_of_the_users_is_taken() {
    for listed in LISTED.iter().filter(|listed| listed.name != "ram") {
        let mut room = Room::new("/x", 1 << 50, true);
        room.region_bytes = Some(600 * MIB);
        let suite = by_name(listed.name, &room).expect("it is listed");
        assert_eq!(suite.expect("there is room").region_bytes, 600 * MIB);
    }
}

#[test]
fn what_a_suite_costs_is_told() {
    for listed in LISTED.iter().filter(|listed| listed.name != "ram") {
        let cost = listed.summary().expect("there is room");
        assert!(cost.writes_bytes > 0, "{cost:?}");
        assert!((20.0..1500.0).contains(&cost.about_s), "{cost:?}");
        assert!(cost.about_s <= cost.most_s, "{cost:?}");
    }
}

#[test]
fn a_suite_of_reads_must_fill_the_file_first() {
    let suite = only_reads(&quick("/x", 1 << 40, true).unwrap());
    assert_eq!(suite.jobs.len(), 3);
    assert_eq!(plan_writes(&suite, true), suite.region_bytes);
    assert_eq!(plan_writes(&suite, false), 0);
}

#[test]
fn a_misspelt_name_is_no_suite() {
    assert!(by_name("quik", &Room::new("/x", 1 << 40, true)).is_none());
    assert!(names().contains(&"quick"));
}

#[test]
fn every_suite_has_its_section_in_the_document() {
    let document = include_str!("../../../../docs/reference/suites.md");
    for listed in LISTED {
        let heading = format!("\n## {}\n", listed.name);
        assert!(document.contains(&heading), "{} has no section", listed.name);
    }
}

/// The names in backquotes that open the rows of the table about jobs.
fn jobs_in_the_document() -> Vec<&'static str> {
    let document = include_str!("../../../../docs/reference/suites.md");
    let section = document.split("\n## Adding a suite\n").nth(1);
    let rows = section.expect("the section is there").lines();
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect()
}

#[test]
fn the_document_says_what_the_names_of_jobs_set_off() {
    let documented = jobs_in_the_document();
    let jobs = |suite: &str| {
        let room = Room::new("/x", 1 << 50, true);
        let suite = by_name(suite, &room).expect("it is listed");
        suite.expect("there is room").jobs
    };
    let with_beside = |job: Job| {
        [vec![job.name.clone()], job.beside.iter().map(|job| job.name.clone()).collect()]
    };
    // Suites whose jobs findings, tables and rules look for by name.
    for suite in ["quick", "stream", "commit", "class", "sustained"] {
        for name in jobs(suite).into_iter().flat_map(with_beside).flatten() {
            assert!(
                documented.contains(&name.as_str()),
                "docs/reference/suites.md, \"Adding a suite\", has no row of the job {name} of {suite}"
            );
        }
    }
    let all: Vec<String> = names()
        .into_iter()
        .filter(|suite| *suite != "ram")
        .flat_map(jobs)
        .flat_map(with_beside)
        .flatten()
        .collect();
    for name in documented {
        assert!(all.iter().any(|job| job == name), "no suite has a job {name}");
    }
}
