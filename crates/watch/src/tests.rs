//! Known counters in, known rates out; and nothing that the kernel or a disk could say is too much for the parsers.

use proptest::prelude::*;

use super::*;
use rubus_fixtures as fixture;
use rubus_machine::parse::stat::CpuTimes;
use rubus_runs::history::{RunId, RunSummary};

const SECOND_NS: u64 = 1_000_000_000;

fn disk(name: &str) -> DiskCounters {
    DiskCounters { name: name.into(), ..DiskCounters::default() }
}

fn sample(at_s: u64) -> Sample {
    Sample {
        at: format!("2026-11-22T08:00:{:02}.000Z", at_s % 60),
        monotonic_ns: at_s * SECOND_NS,
        since_boot_ns: at_s * SECOND_NS,
        ..Sample::default()
    }
}

fn look(before: &Sample, now: &Sample) -> Look {
    Look::between(before, now, &[], 4096)
}

#[test]
fn a_disk_s_counters_become_rates_waits_and_a_queue() {
    let (mut before, mut now) = (sample(10), sample(12));
    before.disks = vec![disk("sda")];
    now.disks = vec![DiskCounters {
        reads: 200,
        read_sectors: 1600,
        read_ms: 1000,
        writes: 50,
        written_sectors: 4000,
        write_ms: 500,
        in_flight: 3,
        busy_ms: 1000,
        in_flight_ms: 3000,
        flushes: 4,
        flush_ms: 100,
        ..disk("sda")
    }];
    let look = look(&before, &now);
    let rates = look.disks[0].rates.unwrap();
    assert_eq!(rates.reads_per_second, 100.0);
    assert_eq!(rates.read_bytes_per_second, 409_600.0);
    assert_eq!(rates.written_bytes_per_second, 1_024_000.0);
    assert_eq!(rates.read_ms, Some(5.0));
    assert_eq!(rates.write_ms, Some(10.0));
    assert_eq!(rates.flush_ms, Some(25.0));
    assert_eq!(rates.queue, 1.5);
    assert_eq!(rates.busy, 0.5);
    assert_eq!(look.disks[0].in_flight, 3);
}

#[test]
fn without_reads_there_is_no_time_of_a_read() {
    let (mut before, mut now) = (sample(1), sample(2));
    before.disks = vec![disk("sda")];
    now.disks = vec![disk("sda")];
    let rates = look(&before, &now).disks[0].rates.unwrap();
    assert_eq!((rates.read_ms, rates.write_ms), (None, None));
    assert_eq!(rates.busy, 0.0);
}

#[test]
fn counters_of_32_bits_run_over_and_are_not_set_back() {
    assert_eq!(advance(7, 12), Some(5));
    assert_eq!(advance(u64::from(u32::MAX), 4), Some(5));
    // A stick that was taken out and put in again has done less than before.
    assert_eq!(advance(1_000, 3), None);
    assert_eq!(advance(1 << 40, 3), None);
    let (mut before, mut now) = (sample(1), sample(2));
    before.disks = vec![DiskCounters { busy_ms: (1 << 32) - 100, ..disk("sda") }];
    now.disks = vec![DiskCounters { busy_ms: 400, ..disk("sda") }];
    assert_eq!(look(&before, &now).disks[0].rates.unwrap().busy, 0.5);
}

#[test]
fn a_disk_that_came_has_no_rates_and_one_that_went_is_named() {
    let (mut before, mut now) = (sample(1), sample(2));
    before.disks = vec![disk("sda"), disk("sdb")];
    now.disks = vec![disk("sda"), DiskCounters { reads: 500, ..disk("sdc") }];
    let look = look(&before, &now);
    assert_eq!(look.vanished, ["sdb"]);
    assert!(look.disks[0].rates.is_some());
    assert_eq!((look.disks[1].name.as_str(), look.disks[1].rates), ("sdc", None));
}

#[test]
fn a_disk_that_was_put_in_again_is_a_new_one() {
    let (mut before, mut now) = (sample(1), sample(2));
    before.disks = vec![DiskCounters { reads: 5_000, read_sectors: 9_000, ..disk("sda") }];
    now.disks = vec![DiskCounters { reads: 30, read_sectors: 400, ..disk("sda") }];
    assert_eq!(look(&before, &now).disks[0].rates, None);
}

#[test]
fn rates_are_over_the_time_that_the_machine_was_awake() {
    let (mut before, mut now) = (sample(100), sample(102));
    now.since_boot_ns += 3_600 * SECOND_NS;
    before.disks = vec![disk("sda")];
    now.disks = vec![DiskCounters { writes: 20, ..disk("sda") }];
    let look = look(&before, &now);
    assert_eq!((look.seconds, look.slept_seconds), (2.0, 3600.0));
    assert_eq!(look.disks[0].rates.unwrap().writes_per_second, 10.0);
}

#[test]
fn two_samples_of_the_same_moment_have_no_rates() {
    let mut one = sample(5);
    one.disks = vec![disk("sda")];
    one.cpus = vec![CpuTimes::default(); 2];
    one.links = vec![LinkCounters::default()];
    one.events = Some(Events::default());
    let look = look(&one, &one);
    assert_eq!(look.disks[0].rates, None);
    assert_eq!((look.cpu, look.swap), (None, None));
    assert!(look.links.is_empty());
}

#[test]
fn a_core_that_went_takes_the_shares_of_each_with_it_but_not_that_of_all() {
    let (mut before, mut now) = (sample(1), sample(2));
    let ticks = |user: u64, idle: u64| CpuTimes { user, idle, ..CpuTimes::default() };
    before.cpus = vec![ticks(0, 0), ticks(0, 0), ticks(0, 0)];
    now.cpus = vec![ticks(50, 150), ticks(50, 50), ticks(0, 100)];
    assert_eq!(look(&before, &now).cpu.unwrap().per_core_busy, [0.5, 0.0]);
    now.cpus.pop();
    let cpu = look(&before, &now).cpu.unwrap();
    assert_eq!((cpu.user, cpu.per_core_busy.len()), (0.25, 0));
}

#[test]
fn pressure_is_a_share_of_the_time() {
    let (mut before, mut now) = (sample(0), sample(4));
    let stall = |some_us: u64, full_us: Option<u64>| Some(Stall { some_us, full_us });
    before.pressure.io = stall(1_000_000, Some(500_000));
    now.pressure.io = stall(2_000_000, Some(900_000));
    before.pressure.cpu = stall(0, None);
    now.pressure.cpu = stall(4_200_000, None);
    let shares = look(&before, &now).pressure;
    assert_eq!((shares.io_some, shares.io_full), (Some(0.25), Some(0.1)));
    assert_eq!(shares.cpu_some, Some(1.0));
    assert_eq!(shares.memory_some, None);
}

#[test]
fn zswap_is_read_from_the_kernel_s_lines_or_from_its_own_counters() {
    let mut now = sample(1);
    now.zswap = Some(Zswap { pool_bytes: 1000, stored_pages: 3, ..Zswap::default() });
    let seen = look(&sample(0), &now).zswap.unwrap();
    assert_eq!((seen.pool_bytes, seen.stored_bytes), (1000, 12_288));
    now.memory =
        Some(Memory { zswap_bytes: Some(77), zswapped_bytes: Some(200), ..Memory::default() });
    let seen = look(&sample(0), &now).zswap.unwrap();
    assert_eq!((seen.pool_bytes, seen.stored_bytes), (77, 200));
    assert_eq!(look(&sample(0), &sample(1)).zswap, None);
}

#[test]
fn a_disk_is_weighed_against_what_was_measured_of_it() {
    let machine = fixture::pi3_with_usb_ssd();
    let run = fixture::slow_sd_card_run();
    let mut line = RunSummary::of(RunId(7), &run, "slow");
    line.board = machine.board.model.text().map(str::to_string);
    let disk = machine
        .block_devices
        .iter()
        .find(|disk| disk.name.starts_with("mmcblk") && disk.parent.is_none())
        .unwrap();
    line.device = Some(format!("{}p2", disk.name));
    line.device_model = disk.model.text().map(str::to_string);
    let pipe = measured_pipe(&machine, &disk.name, &[line.clone()]).unwrap();
    assert_eq!(pipe.read_bytes_per_second, Some(22.6e6));
    let rates = DiskRates {
        read_bytes_per_second: 11.3e6,
        written_bytes_per_second: 2.85e6,
        ..DiskRates::default()
    };
    let disks = [DiskLook { name: disk.name.clone(), in_flight: 0, rates: Some(rates) }];
    let used = pipe.used(&disks, &[]).unwrap();
    assert!((used.used - 0.75).abs() < 1e-9, "{}", used.used);
    // Another card in the same slot was not measured.
    line.device_model = Some("another".into());
    assert_eq!(measured_pipe(&machine, &disk.name, &[line]), None);
}

#[test]
fn a_shared_bus_carries_disks_and_links() {
    let pipe = Pipe {
        name: "USB 2 hub".into(),
        members: vec!["sda".into(), "eth0".into()],
        read_bytes_per_second: Some(35e6),
        written_bytes_per_second: Some(35e6),
        basis: Basis::RuleOfThumb { why: "seen".into() },
    };
    let disks = [DiskLook {
        name: "sda".into(),
        in_flight: 0,
        rates: Some(DiskRates { read_bytes_per_second: 7e6, ..DiskRates::default() }),
    }];
    let links = [LinkRates {
        name: "eth0".into(),
        received_bytes_per_second: 0.0,
        sent_bytes_per_second: 7e6,
    }];
    let used = pipe.used(&disks, &links).unwrap();
    assert!((used.used - 0.4).abs() < 1e-9);
    assert_eq!(used.bytes_per_second, 14e6);
}

#[test]
fn a_disk_whose_requests_in_flight_went_below_zero_is_kept() {
    for in_flight in ["-1", "4294967295", "18446744073709551615"] {
        let line = format!("   8  0 sda 5 0 40 3 7 0 56 2 {in_flight} 4 5\n");
        let found: Vec<_> = parse_diskstats(line.as_bytes()).collect();
        let counters: Vec<_> = found.iter().map(|(_, one)| (one.writes, one.in_flight)).collect();
        assert_eq!(counters, [(7, 0)], "{in_flight}");
    }
}

#[test]
fn lines_of_old_and_new_kernels_are_read() {
    let text = b" 179       0 mmcblk0 10 1 100 5 20 2 200 9 3 40 50\n   7 0 loop0 1 0 8 0\n 259 0 \
        nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 99\n 8 0 sda 1 2 x 4 5 6 7 8 9 10 11\n 8 16 sd";
    let found: Vec<_> = parse_diskstats(text).collect();
    assert_eq!(found.len(), 2);
    let (name, old) = &found[0];
    assert_eq!((*name, old.reads, old.read_sectors, old.in_flight), ("mmcblk0", 10, 100, 3));
    assert_eq!((old.busy_ms, old.in_flight_ms, old.flushes), (40, 50, 0));
    let (name, new) = &found[1];
    assert_eq!((*name, new.discards, new.discarded_sectors), ("nvme0n1", 12, 14));
    assert_eq!((new.flushes, new.flush_ms), (16, 17));
}

#[test]
fn memory_swap_and_zswap_are_read() {
    let memory = parse_meminfo(
        b"MemTotal:         944264 kB\nMemFree: 100 kB\nMemAvailable: 200 kB\nBuffers: 1 kB\nCached: 2 kB\n\
          Dirty: 3 kB\nHugePages_Total: 0\nSwapTotal: 10 kB\nSwapFree: 4 kB\nZswap: 5 kB\nZswapped: 9 kB\nMem",
    )
    .unwrap();
    assert_eq!(memory.total_bytes, 944_264 << 10);
    assert_eq!(memory.available_bytes, Some(200 << 10));
    assert_eq!(memory.cached_bytes, 3 << 10);
    assert_eq!(memory.zswapped_bytes, Some(9 << 10));
    assert_eq!(parse_meminfo(b"nothing of it\n"), None);
    let events =
        parse_vmstat(b"nr_free 7\npgmajfault 3\npswpin 1\npswpout 2\nzswpout 9\noom_kill 0\n")
            .unwrap();
    assert_eq!((events.swapped_in, events.swapped_out, events.major_faults), (1, 2, 3));
    assert_eq!((events.zswap_in, events.zswap_out, events.oom_kills), (None, Some(9), Some(0)));
    let text = b"some avg10=0.00 avg60=1.52 avg300=0.60 total=12345\nfull avg10=0.00 avg60=0 avg300=0 total=678\n";
    let stall = parse_pressure(text).unwrap();
    assert_eq!((stall.some_us, stall.full_us), (12_345, Some(678)));
    assert_eq!(parse_pressure(b""), None);
    let zram = parse_mm_stat(b"  4096   74   12288 0 12288 0 0 0 0\n").unwrap();
    assert_eq!((zram.stored_bytes, zram.compressed_bytes, zram.memory_bytes), (4096, 74, 12_288));
}

#[test]
fn links_are_read_with_and_without_a_space_behind_the_colon() {
    let text = b"Inter-|   Receive       |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n\
        \x20   lo:  70 1 0 0 0 0 0 0 71 1 0 0 0 0 0 0\neth0:123456 1 2 3 4 5 6 7 890 1 0 0 0 0 0 0\n";
    let found: Vec<_> = parse_net_dev(text).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[1].0, found[1].1.received_bytes, found[1].1.sent_bytes),
        ("eth0", 123_456, 890)
    );
}

#[test]
fn the_busiest_programs_come_first() {
    let text = b"rchar: 5\nwchar: 6\nsyscr: 1\nsyscw: 1\nread_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 512\n";
    let one = parse_process_io(7, text).unwrap();
    let wanted = Traffic { read_bytes: 8192, written_bytes: 4096, cancelled_bytes: 512 };
    assert_eq!((one.pid, one.traffic), (7, wanted));
    assert_eq!(parse_process_io(7, b"read_bytes: 5\n"), None);
    let of = |pid: u32, read_bytes: u64, written_bytes: u64| Moved {
        pid,
        traffic: Traffic { read_bytes, written_bytes, cancelled_bytes: 9 },
        ended: None,
    };
    let moved = [of(1, 0, 0), of(2, 10, 30), of(5, 0, 500), of(9, 10, 0)];
    let pids = |most: usize| -> Vec<u32> { busiest(&moved, most).iter().map(|m| m.pid).collect() };
    assert_eq!(pids(8), [5, 2, 9]);
    assert_eq!(pids(1), [5]);
}

#[test]
fn a_parent_is_told_whatever_its_child_is_called() {
    assert_eq!(parse_parent(b"42 (cat) R 7 42 1 0 -1"), Some(7));
    assert_eq!(parse_parent(b"42 (a) S 9 (b) S 3 42 1"), Some(3));
    assert_eq!(parse_parent(b"42 (cut"), None);
    assert_eq!(parse_parent(b"42 (cat) R -1 4"), None);
}

#[test]
fn a_recording_is_read_back_and_a_cut_line_is_told_from_a_whole_one() {
    let header = Header {
        rubus_watch: FORMAT,
        rubus_version: "0.1.0".into(),
        interval_seconds: 1.0,
        page_bytes: 4096,
        ..Header::default()
    };
    let line = header_line(&header);
    assert_eq!(parse_header(line.trim_end().as_bytes()), Ok(header));
    let mut one = sample(3);
    one.disks = vec![disk("sda")];
    one.heat.throttled = Some(0x50005);
    let line = sample_line(&one);
    assert_eq!(line.matches('\n').count(), 1);
    let whole = line.trim_end().as_bytes();
    assert_eq!(parse_sample(whole), Ok(one));
    for end in 0..whole.len() {
        assert_eq!(parse_sample(&whole[..end]), Err(CutOff), "{end}");
    }
}

#[test]
fn what_is_no_recording_is_said_in_words() {
    let no = parse_header(b"{\"schema\":1}").unwrap_err();
    assert!(no.contains("--record"), "{no}");
    let later = parse_header(b"{\"rubus_watch\":2,\"more\":true}").unwrap_err();
    assert!(later.contains("version 2"), "{later}");
    assert!(parse_header(b"\x00\xff").is_err());
}

proptest! {
    #[test]
    fn nothing_makes_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        parse_diskstats(&bytes).for_each(drop);
        parse_net_dev(&bytes).for_each(drop);
        let _ = (parse_meminfo(&bytes), parse_vmstat(&bytes), parse_pressure(&bytes));
        let _ = (parse_mm_stat(&bytes), parse_process_io(1, &bytes), number(&bytes));
            let _ = (parse_parent(&bytes), parse_unit(&bytes));
        let _ = (parse_header(&bytes), parse_sample(&bytes));
    }

    #[test]
    fn what_the_kernel_prints_is_read_back(fields in proptest::collection::vec(any::<u64>(), 11..20), name in "[a-z]{2,6}[0-9]{0,2}") {
        let numbers: Vec<String> = fields.iter().map(u64::to_string).collect();
        let text = format!("   8       0 {name} {}\n", numbers.join(" "));
        let found: Vec<_> = parse_diskstats(text.as_bytes()).collect();
        prop_assert_eq!(found.len(), 1);
        let (seen, counters) = &found[0];
        prop_assert_eq!(*seen, name.as_str());
        prop_assert_eq!(counters.reads, fields[0]);
        prop_assert_eq!(counters.in_flight_ms, fields[10]);
        prop_assert_eq!(counters.flush_ms, fields.get(16).copied().unwrap_or(0));
    }

    #[test]
    fn numbers_are_read_as_the_library_reads_them(text in "[0-9]{0,22}") {
        prop_assert_eq!(number(text.as_bytes()), text.parse::<u64>().ok());
    }

    #[test]
    fn rates_are_finite_and_never_negative(before in proptest::array::uniform11(any::<u64>()), now in proptest::array::uniform11(any::<u64>()), apart_ns in 0_u64..10_000_000_000) {
        let counters = |f: [u64; 11]| DiskCounters {
            reads: f[0], read_sectors: f[1], read_ms: f[2], writes: f[3], written_sectors: f[4], write_ms: f[5],
            in_flight: f[6], busy_ms: f[7], in_flight_ms: f[8], flushes: f[9], flush_ms: f[10], ..disk("sda")
        };
        let mut first = sample(1);
        first.disks = vec![counters(before)];
        let mut second = sample(1);
        second.monotonic_ns += apart_ns;
        second.disks = vec![counters(now)];
        if let Some(rates) = look(&first, &second).disks[0].rates {
            for value in [rates.read_bytes_per_second, rates.queue, rates.busy, rates.read_ms.unwrap_or(0.0)] {
                prop_assert!(value.is_finite() && value >= 0.0);
            }
            prop_assert!(rates.busy <= 1.0);
        }
    }
}
