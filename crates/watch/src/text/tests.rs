//! Screens as people see them, at the sizes that they have.

use crate::{
    Attached, Basis, Clock, DiskCounters, Events, Header, Heat, LinkCounters, Look, Memory, Nbd,
    NbdClient, NbdServer, Pipe, Pressure, ProgramIo, Programs, Sample, Stall, Zone, Zram, Zswap,
};
use rubus_machine::parse::stat::CpuTimes;

use super::*;
use rubus_draw::style::Style;

const SECOND_NS: u64 = 1_000_000_000;

fn header() -> Header {
    Header {
        rubus_watch: 1,
        machine: "Raspberry Pi 3 Model B Rev 1.2, Linux 6.12.47".into(),
        interval_seconds: 1.0,
        page_bytes: 4096,
        disks: vec![
            ("mmcblk0".into(), "SC64G, 64.0 GB".into()),
            ("sda".into(), "Samsung SSD 860 EVO, 500 GB".into()),
        ],
        pipes: vec![
            Pipe {
                name: "mmcblk0".into(),
                members: vec!["mmcblk0".into()],
                read_bytes_per_second: Some(22.6e6),
                written_bytes_per_second: Some(11.4e6),
                basis: Basis::Measured { run: 12, at: "2026-11-21T02:50:00Z".into() },
            },
            Pipe {
                name: "USB 2 controller".into(),
                members: vec!["sda".into(), "eth0".into()],
                read_bytes_per_second: Some(35e6),
                written_bytes_per_second: Some(35e6),
                basis: Basis::RuleOfThumb { why: "34 to 35 MB/s were seen".into() },
            },
        ],
        ..Header::default()
    }
}

fn before() -> Sample {
    let disk = |name: &str| DiskCounters { name: name.into(), ..DiskCounters::default() };
    Sample {
        at: "2026-11-22T08:12:30.100Z".into(),
        monotonic_ns: 1000 * SECOND_NS,
        since_boot_ns: 100_000 * SECOND_NS,
        cpus: vec![CpuTimes::default(); 5],
        disks: vec![disk("mmcblk0"), disk("sda"), disk("zram0")],
        links: vec![LinkCounters { name: "eth0".into(), ..LinkCounters::default() }],
        events: Some(Events {
            zswap_in: Some(0),
            zswap_out: Some(0),
            zswap_written_back: Some(0),
            oom_kills: Some(0),
            ..Events::default()
        }),
        pressure: Pressure {
            cpu: Some(Stall::default()),
            memory: Some(Stall { some_us: 0, full_us: Some(0) }),
            io: Some(Stall { some_us: 0, full_us: Some(0) }),
        },
        ..Sample::default()
    }
}

fn now() -> Sample {
    let core = |user: u64, iowait: u64| CpuTimes {
        user,
        iowait,
        idle: 100 - user - iowait,
        ..CpuTimes::default()
    };
    let mut now = before();
    now.at = "2026-11-22T08:12:31.100Z".into();
    now.monotonic_ns += SECOND_NS;
    now.since_boot_ns += SECOND_NS;
    now.cpus = vec![
        CpuTimes { user: 80, system: 40, irq: 4, softirq: 4, iowait: 90, idle: 182, steal: 0 },
        core(80, 10),
        core(5, 80),
        core(30, 0),
        core(0, 0),
    ];
    now.disks[0] = DiskCounters {
        reads: 120,
        read_sectors: 2400,
        read_ms: 1452,
        writes: 84,
        written_sectors: 8_000,
        write_ms: 10_080,
        in_flight: 6,
        busy_ms: 980,
        in_flight_ms: 7_400,
        flushes: 3,
        flush_ms: 240,
        ..now.disks[0].clone()
    };
    now.disks[1] = DiskCounters {
        reads: 2400,
        read_sectors: 38_400,
        read_ms: 1_320,
        busy_ms: 410,
        in_flight_ms: 1_320,
        ..now.disks[1].clone()
    };
    now.links[0].sent_bytes = 6_200_000;
    now.links[0].received_bytes = 91_000;
    now.memory = Some(Memory {
        total_bytes: 966_926_336,
        available_bytes: Some(310 << 20),
        free_bytes: 40 << 20,
        cached_bytes: 250 << 20,
        dirty_bytes: 12 << 20,
        writeback_bytes: 3 << 20,
        swap_bytes: 2 << 30,
        swap_free_bytes: (2 << 30) - (120 << 20),
        zswap_bytes: Some(31 << 20),
        zswapped_bytes: Some(85 << 20),
    });
    now.events = Some(Events {
        swapped_in: 3,
        swapped_out: 40,
        major_faults: 12,
        zswap_in: Some(310),
        zswap_out: Some(640),
        zswap_written_back: Some(40),
        oom_kills: Some(0),
    });
    now.pressure = Pressure {
        cpu: Some(Stall { some_us: 31_000, full_us: None }),
        memory: Some(Stall { some_us: 12_000, full_us: Some(4_000) }),
        io: Some(Stall { some_us: 640_000, full_us: Some(310_000) }),
    };
    now.zswap = Some(Zswap {
        pool_bytes: 31 << 20,
        stored_pages: 21_760,
        refused_pages: 67_240,
        written_back_pages: 32_420,
        pool_full: 12,
    });
    now.zrams = vec![Zram {
        name: "zram0".into(),
        stored_bytes: 40 << 20,
        compressed_bytes: 12 << 20,
        memory_bytes: 13 << 20,
    }];
    now.heat = Heat {
        zones: vec![Zone { name: "cpu-thermal".into(), millicelsius: 71_400 }],
        clocks: vec![Clock { cores: "0-3".into(), hz: 1_200_000_000, max_hz: Some(1_400_000_000) }],
        throttled: Some(0x5_0001),
        undervoltage: Some(true),
    };
    let program = |pid: u32, name: &str, read: f64, written: f64| ProgramIo {
        pid,
        name: name.into(),
        read_bytes_per_second: read,
        written_bytes_per_second: written,
    };
    now.programs = Some(Programs {
        seconds: 5.0,
        seen: 80,
        hidden: 41,
        busiest: vec![
            program(812, "postgres", 17_400_000.0, 0.0),
            program(4711, "apt\x1b[31mget", 1_200_000.0, 3_900_000.0),
            program(91, "jbd2/mmcblk0p2-", 0.0, 204_000.0),
        ],
        writers: None,
        unit_disks: None,
    });
    now.nbd = Some(Nbd {
        attached: vec![
            Attached {
                device: "nbd0".into(),
                address: "nbd://server/pi3".into(),
                alive: 4,
                connections: 4,
                replaced: 0,
                trouble: None,
            },
            Attached {
                device: "nbd1".into(),
                address: "nbd://other/data".into(),
                alive: 0,
                connections: 2,
                replaced: 3,
                trouble: Some("the server is gone (connection refused)".into()),
            },
        ],
        server: Some(NbdServer {
            place: "/run/rubus.sock".into(),
            trouble: None,
            cpu_share: Some(0.12),
            clients: vec![NbdClient {
                caller: "192.168.1.7:40312".into(),
                export: "golden/kitchen".into(),
                read_bytes_per_second: 6.1e6,
                written_bytes_per_second: 40_000.0,
                requests_per_second: 190.0,
                p50_us: Some(410),
                p99_us: Some(9_800),
            }],
        }),
    });
    now
}

fn shown(width: u16, height: u16, view: &View<'_>) -> String {
    let mut buffer = Grid::empty(width, height);
    draw(view, &mut buffer);
    words(&buffer)
}

/// The cells as text, with a mark at the end of each line, so that its width is seen.
fn words(grid: &Grid) -> String {
    let row = |y: u16| {
        let mut row = String::new();
        grid.line(y).iter().for_each(|cell| cell.tell(&mut row));
        row
    };
    let rows = (0..grid.height).map(|y| format!("{}|", row(y)));
    rows.collect::<Vec<_>>().join("\n")
}

fn view<'a>(header: &'a Header, look: &'a Look, trail: &'a Trail) -> View<'a> {
    View {
        header,
        look: Some(look),
        trail,
        mode: Mode::Live { is_paused: false, recording: None },
        with_programs: true,
        notice: None,
    }
}

fn with_view(test: impl FnOnce(&View<'_>)) {
    let header = header();
    let look = Look::between(&before(), &now(), &header.pipes, header.page_bytes);
    let mut trail = Trail::default();
    for share in 0..30 {
        let mut earlier = look.clone();
        if let Some(rates) = &mut earlier.disks[0].rates {
            rates.busy = f64::from(share) / 29.0;
        }
        trail.push(&earlier);
    }
    test(&view(&header, &look, &trail));
}

/// The root's disk was pulled out, and its row was gone with the next look.
#[test]
fn a_disk_that_was_pulled_keeps_its_row_and_is_marked() {
    let header = header();
    let mut look = Look::between(&before(), &now(), &header.pipes, header.page_bytes);
    let name = look.disks.remove(0).name;
    let mut trail = Trail::default();
    let gone_row = |look: &Look, trail: &Trail| {
        let screen = shown(100, 40, &view(&header, look, trail));
        let row = screen.lines().find(|line| line.contains("GONE"));
        row.map(str::to_string)
    };
    look.vanished = vec![name.clone()];
    trail.push(&look);
    let at_once = gone_row(&look, &trail).expect("a row");
    assert!(at_once.contains(&name), "{at_once}");
    look.vanished.clear();
    trail.push(&look);
    let later = gone_row(&look, &trail).expect("the row stays");
    assert!(later.contains(&name), "{later}");
    let back = Look::between(&before(), &now(), &header.pipes, header.page_bytes);
    trail.push(&back);
    assert_eq!(gone_row(&back, &trail), None);
}

#[test]
fn a_terminal_of_80_by_24() {
    with_view(|view| insta::assert_snapshot!(shown(80, 24, view)));
}

#[test]
fn a_small_one_of_40_by_12() {
    with_view(|view| insta::assert_snapshot!(shown(40, 12, view)));
}

#[test]
fn a_large_one_of_200_by_60() {
    with_view(|view| insta::assert_snapshot!(shown(200, 60, view)));
}

#[test]
fn once_for_a_pipe_without_utf8() {
    with_view(|view| {
        let view = View { mode: Mode::Once, ..view.clone() };
        let text = lines(&view, 80, false, Style::PLAIN);
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(text);
    });
}

#[test]
fn a_replay_says_where_it_is_and_a_notice_takes_the_last_line() {
    with_view(|view| {
        let mut view = view.clone();
        view.mode = Mode::Replay { at: 17, of: 900, speed: 4.0, is_paused: false };
        let screen = shown(80, 24, &view);
        let last = screen.lines().last().unwrap();
        assert!(last.contains("sample 17 of 900, 4× as fast"), "{last}");
        view.notice = Some("sdb is gone");
        let screen = shown(80, 24, &view);
        assert!(screen.lines().last().unwrap().starts_with("sdb is gone"));
    });
}

#[test]
fn no_size_is_too_small_and_nothing_is_ever_wider() {
    with_view(|view| {
        for width in 0..90 {
            for height in [0, 1, 2, 3, 4, 5, 8, 13, 21, 34] {
                // A cell outside the buffer would panic.
                shown(width, height, view);
            }
        }
    });
}

#[test]
fn before_the_second_sample_there_are_no_figures() {
    let (header, trail) = (header(), Trail::default());
    let look = Look::between(&before(), &before(), &[], 4096);
    let mut view = view(&header, &look, &trail);
    let screen = shown(80, 24, &view);
    assert!(screen.contains("new"), "{screen}");
    view.look = None;
    let screen = shown(80, 24, &view);
    assert!(screen.contains("the first figures come"), "{screen}");
}

#[test]
fn a_name_cannot_command_the_terminal() {
    with_view(|view| {
        let mut screen = Screen::new(Letters { utf8: true, colour: false });
        let told = screen.update(view, 80, 40);
        assert!(!told.contains("\x1b[31m"), "{told:?}");
        assert!(told.contains("apt"));
    });
}

#[test]
fn only_what_changed_is_told_and_without_colour_no_weight_either() {
    with_view(|view| {
        let mut plain = Screen::new(Letters { utf8: true, colour: false });
        let first = plain.update(view, 80, 24);
        assert!(first.starts_with("\x1b[0m\x1b[2J") && first.len() > 800);
        assert_eq!(plain.update(view, 80, 24), "");
        let mut later = view.look.unwrap().clone();
        later.at = "2026-11-22T08:12:32.100Z".into();
        let later = View { look: Some(&later), ..view.clone() };
        let told = plain.update(&later, 80, 24);
        assert!(told.ends_with('2') && told.len() < 16, "{told:?}");
        assert!(!first[8..].contains('m') || !first[8..].contains("\x1b[1m"));
        // Another size is redrawn in full.
        assert!(plain.update(&later, 81, 24).len() > 800);
        plain.forget();
        assert!(plain.update(&later, 81, 24).len() > 800);
        let mut colourful = Screen::new(Letters { utf8: true, colour: true });
        let told = colourful.update(view, 80, 24);
        assert!(told.contains("\x1b[0;1m") && told.contains("\x1b[0;33m"));
        assert!(told.ends_with("\x1b[0m") || told.ends_with(|c: char| !c.is_control()));
    });
}

/// What a terminal makes of what it is told, as far as the view uses it: places, and letters of one column.
fn obey(told: &str, screen: &mut Grid) {
    let (mut x, mut y) = (0_u16, 0_u16);
    let mut rest = told;
    while let Some(next) = rest.chars().next() {
        if let Some(command) = rest.strip_prefix("\x1b[") {
            let end = command.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let numbers = &command[..end];
            match &command[end..=end] {
                "H" => {
                    let (row, column) = numbers.split_once(';').unwrap();
                    (y, x) = (row.parse::<u16>().unwrap() - 1, column.parse::<u16>().unwrap() - 1);
                }
                "J" => screen.clear(),
                "m" => {}
                other => panic!("unknown command {other}"),
            }
            rest = &command[end + 1..];
        } else {
            screen.put(x, y, next.encode_utf8(&mut [0; 4]), Tone::Plain);
            x += 1;
            rest = &rest[next.len_utf8()..];
        }
    }
}

#[test]
fn what_the_terminal_is_told_makes_the_screen_that_was_drawn() {
    with_view(|view| {
        let mut screen = Screen::new(Letters { utf8: true, colour: true });
        let mut terminal = Grid::empty(100, 30);
        obey(&screen.update(view, 100, 30), &mut terminal);
        assert_eq!(words(&terminal), shown(100, 30, view));
        let other = View {
            mode: Mode::Live { is_paused: true, recording: Some("x.jsonl") },
            with_programs: false,
            ..view.clone()
        };
        obey(&screen.update(&other, 100, 30), &mut terminal);
        assert_eq!(words(&terminal), shown(100, 30, &other));
    });
}
