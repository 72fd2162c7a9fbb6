//! Recordings and printed looks in which names of people, machines and disks are planted.

use rubus_vocabulary::heat::Zone;

use super::*;
use crate::LinkCounters;
use crate::wear::{ToldUsed, Used};

const SECRETS: [&str; 6] = ["qz", "b827eb", "10.1.2.3", "S4EVNX0R", "fd12:", "0a1b2c3d"];

fn is_secret_free(text: &str) {
    for secret in SECRETS {
        assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret}: {text}");
    }
}

fn header() -> Header {
    let health = |disk: &str, evidence: &str| DiskHealth {
        disk: disk.into(),
        word: crate::health::Word::Failing,
        cause: None,
        evidence: vec![evidence.into()],
        fix: Some("Copy your data now.".into()),
        command: Some("rubus plan usb-quirk device=/dev/sda".into()),
        suspects: Vec::new(),
    };
    Header {
        machine: "Raspberry Pi 4 Model B Rev 1.5, Linux 6.12.47+rpt-rpi-v8".into(),
        disks: vec![
            ("mmcblk0".into(), "SC64G, 64.0 GB".into()),
            ("loop0".into(), "/home/qzalice/disk.img, 1.0 GB".into()),
            ("md_qzattic".into(), "ACME 0a1b2c3d4e5f6071, 2.0 TB".into()),
        ],
        pipes: vec![
            Pipe {
                name: "USB 2 hub".into(),
                members: vec!["sda".into(), "enxb827eb3a2b1c".into()],
                read_bytes_per_second: Some(35e6),
                written_bytes_per_second: None,
                basis: Basis::RuleOfThumb { why: "USB 2 in practice".into() },
            },
            Pipe {
                name: "wg-qzalice".into(),
                members: Vec::new(),
                read_bytes_per_second: None,
                written_bytes_per_second: None,
                basis: Basis::RuleOfThumb { why: "qzalice says so".into() },
            },
        ],
        wear: vec![Wear {
            disk: "sda".into(),
            told_used: ["SSD_Life_Left", "SSD_LifeLeft(0.01%)", "Lifetime_Remaining%"]
                .map(|name| ToldUsed {
                    name: name.into(),
                    used: Used { min_percent: 3.0, max_percent: None },
                })
                .into(),
            failing_attributes: [
                "Perc_Write/Erase_Count",
                "Available_Reservd_Space",
                "Used_Rsvd_Blk_Cnt_Tot",
                "Spin_Retry_Count",
                "qzalice",
            ]
            .map(String::from)
            .into(),
            used_up_attributes: vec!["Power_On_Hours".into(), "qzbob".into()],
            trouble: Some(Trouble::Other(
                "its health log could not be read: /dev/disk/by-id/ata-qzS4EVNX0R123456".into(),
            )),
            ..Wear::default()
        }],
        health: vec![
            health("sda", "3 read errors"),
            health("md_qzattic", "3 read errors"),
            health("sdb", "ext4 on md_qzattic has counted 3 read errors"),
        ],
        ..Header::default()
    }
}

fn sample() -> Sample {
    let link = |name: &str| LinkCounters { name: name.into(), received_bytes: 1, sent_bytes: 2 };
    let written = |unit: &str, places: &[&str]| Written {
        program: "postgres".into(),
        unit: unit.into(),
        places: places.iter().map(ToString::to_string).collect(),
        ..Written::default()
    };
    Sample {
        disks: vec![DiskCounters { name: "md_qzattic".into(), ..DiskCounters::default() }],
        links: vec![link("eth0"), link("enxb827eb3a2b1c"), link("wg-qzalice")],
        heat: Heat {
            zones: vec![
                Zone { name: "cpu-thermal".into(), millicelsius: 1 },
                Zone { name: "qzalice".into(), millicelsius: 2 },
            ],
            ..Heat::default()
        },
        programs: Some(Programs {
            writers: Some(vec![
                written("postgresql@16-main.service", &["/home/qzalice/db", "/var/lib/docker"]),
                written("openvpn-client@qzacme.service", &[]),
                written("media-qzalice-QZSTICK.mount", &["/media/qzalice"]),
                written("user@1000.service", &["/home/pi"]),
                written("machine-qemu\\x2d1\\x2dqzvm.scope", &[]),
                written("lxc.payload.qzbox", &[]),
                written("qzgroup", &[]),
                written("docker", &[]),
                Written { program: "10.1.2.3-manager".into(), ..Written::default() },
            ]),
            unit_disks: Some(vec![UnitDisk {
                unit: "cron.service".into(),
                disk: "md_qzattic".into(),
                written_bytes: 1,
            }]),
            ..Programs::default()
        }),
        nbd: Some(Nbd {
            attached: vec![Attached {
                device: "nbd0".into(),
                address: "nbds://qznas:10809/qzdisk".into(),
                trouble: Some("cannot connect to qznas at fd12:3456::7: no route to host".into()),
                ..Attached::default()
            }],
            server: Some(NbdServer {
                place: "/home/qzalice/status".into(),
                clients: vec![NbdClient {
                    caller: "10.1.2.3:4000".into(),
                    export: "qzdisk".into(),
                    ..NbdClient::default()
                }],
                ..NbdServer::default()
            }),
        }),
        ..Sample::default()
    }
}

#[test]
fn names_of_people_and_servers_have_pseudonyms_and_programs_stay() {
    let mut rules = LetThrough::default();
    let first = rules.sample(sample());
    let text = serde_json::to_string(&first).unwrap();
    is_secret_free(&text);
    for kept in [
        "postgres",
        "postgresql@16-main.service",
        "user@1000.service",
        "eth0",
        "/home/pi",
        "/var/lib/docker",
        "no route to host",
        "cpu-thermal",
        "cron.service",
        "lxc.payload.host-",
        "machine-host-",
        "\"docker\"",
        "media-name\\\\x2d1-name\\\\x2d4.mount",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(rules.sample(sample()), first, "one name for one thing");
    assert_eq!(LetThrough::default().sample(first.clone()).links, first.links, "twice is once");
}

#[test]
fn a_header_keeps_products_and_what_this_program_said_of_known_disks() {
    let text = serde_json::to_string(&LetThrough::default().header(header())).unwrap();
    is_secret_free(&text);
    for kept in [
        "Raspberry Pi 4 Model B Rev 1.5, Linux 6.12.47+rpt-rpi-v8",
        "SC64G, 64.0 GB",
        "1.0 GB",
        "USB 2 hub",
        "USB 2 in practice",
        "SSD_Life_Left",
        "SSD_LifeLeft(0.01%)",
        "Lifetime_Remaining%",
        "Perc_Write/Erase_Count",
        "Available_Reservd_Space",
        "Used_Rsvd_Blk_Cnt_Tot",
        "Spin_Retry_Count",
        "Power_On_Hours",
        "its health log could not be read",
        "3 read errors",
        "Copy your data now.",
        "rubus plan usb-quirk device=/dev/sda",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn what_is_printed_passes_the_same_rules() {
    let (header, sample) = (header(), sample());
    let look = Look::between(&sample, &sample, &header.pipes, 4096);
    is_secret_free(&serde_json::to_string(&LetThrough::default().look(look)).unwrap());
    let mut account = crate::writers::Account::new(header);
    let mut first = sample.clone();
    first.programs = Some(Programs::default());
    account.add(first);
    let mut second = sample;
    second.monotonic_ns = 5_000_000_000;
    let written = second.programs.as_mut().unwrap().writers.as_mut().unwrap();
    written.iter_mut().for_each(|one| one.written_bytes = 4096);
    account.add(second);
    let report = account.report().unwrap();
    let printed = LetThrough::default().report(report.clone());
    is_secret_free(&serde_json::to_string(&printed).unwrap());
    assert!(!printed.units.is_empty());
    // By this, the reader is told where all names are.
    assert_ne!(printed, report);
    let note = replaced("rubus writers --json", Style::PLAIN);
    assert!(note.ends_with("rubus writers --json\n"), "{note}");
}
