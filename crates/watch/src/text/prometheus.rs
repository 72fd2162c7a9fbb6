//! A sample in the text format that the textfile collector of node_exporter reads (Prometheus documentation, "Exposition
//! formats" and "Metric and label naming"): base units, counters that end in `_total`, names of our own, because the
//! collector refuses a name that node_exporter itself has.

use std::fmt::{Display, Write};

use crate::diskstats::SECTOR_BYTES;
use crate::{DiskCounters, Look, Sample, Stall};
use rubus_machine::parse::stat::CpuTimes;

/// Ticks of the processors' times in a second: `USER_HZ`, which is 100 on every architecture that this program is built
/// for.
const TICKS_PER_SECOND: f64 = 100.0;

/// The whole file; `look` adds what takes two samples.
pub fn render(sample: &Sample, look: Option<&Look>) -> String {
    let mut file = File(String::with_capacity(8 << 10));
    processors(&mut file, sample);
    disks(&mut file, sample);
    links(&mut file, sample);
    memory(&mut file, sample);
    pressure(&mut file, sample);
    heat(&mut file, sample);
    pipes(&mut file, look);
    network_disks(&mut file, sample);
    file.0
}

struct File(String);

enum Kind {
    Counter,
    Gauge,
}

impl File {
    /// A metric with its values, each with its labels; nothing without values.
    fn metric<'a>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, f64)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP rubus_{name} {help}");
        let _ = writeln!(self.0, "# TYPE rubus_{name} {kind}");
        for (labels, value) in values {
            let _ = write!(self.0, "rubus_{name}");
            for (i, (label, text)) in labels.iter().enumerate() {
                let open = if i == 0 { '{' } else { ',' };
                let _ = write!(self.0, "{open}{label}=\"{}\"", Escaped(text));
            }
            let close = if labels.is_empty() { "" } else { "}" };
            let _ = writeln!(self.0, "{close} {value}");
        }
    }

    fn plain(&mut self, name: &str, kind: Kind, help: &str, value: Option<u64>) {
        let values = value.map(|value| (Vec::new(), value as f64));
        self.metric(name, kind, help, values);
    }
}

/// A label's text: backslash, quote and line feed have a meaning in it.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

fn processors(file: &mut File, sample: &Sample) {
    let Some(all) = sample.cpus.first() else {
        return;
    };
    type Mode = (&'static str, fn(&CpuTimes) -> u64);
    let modes: [Mode; 7] = [
        ("user", |t| t.user),
        ("system", |t| t.system),
        ("idle", |t| t.idle),
        ("iowait", |t| t.iowait),
        ("irq", |t| t.irq),
        ("softirq", |t| t.softirq),
        ("steal", |t| t.steal),
    ];
    let values = modes.map(|(mode, of)| (vec![("mode", mode)], of(all) as f64 / TICKS_PER_SECOND));
    let help = "Time of all cores together by what it went into.";
    file.metric("cpu_seconds_total", Kind::Counter, help, values);
}

fn disks(file: &mut File, sample: &Sample) {
    type Field = (&'static str, &'static str, fn(&DiskCounters) -> f64);
    let counters: [Field; 10] = [
        ("disk_read_bytes_total", "Bytes read.", |d| d.read_sectors as f64 * SECTOR_BYTES as f64),
        ("disk_written_bytes_total", "Bytes written.", |d| {
            d.written_sectors as f64 * SECTOR_BYTES as f64
        }),
        ("disk_reads_completed_total", "Reads completed.", |d| d.reads as f64),
        ("disk_writes_completed_total", "Writes completed.", |d| d.writes as f64),
        ("disk_flushes_completed_total", "Flushes of the cache completed.", |d| d.flushes as f64),
        ("disk_read_time_seconds_total", "Time that all reads took.", |d| d.read_ms as f64 / 1e3),
        ("disk_write_time_seconds_total", "Time that all writes took.", |d| {
            d.write_ms as f64 / 1e3
        }),
        ("disk_flush_time_seconds_total", "Time that all flushes took.", |d| {
            d.flush_ms as f64 / 1e3
        }),
        ("disk_io_time_seconds_total", "Time with at least one request in flight.", |d| {
            d.busy_ms as f64 / 1e3
        }),
        (
            "disk_io_time_weighted_seconds_total",
            "Time that all requests were in flight, added up.",
            |d| d.in_flight_ms as f64 / 1e3,
        ),
    ];
    for (name, help, of) in counters {
        let values = sample.disks.iter();
        let values = values.map(|disk| (vec![("device", disk.name.as_str())], of(disk)));
        file.metric(name, Kind::Counter, help, values);
    }
    let now = sample.disks.iter();
    let now = now.map(|disk| (vec![("device", disk.name.as_str())], disk.in_flight as f64));
    file.metric("disk_io_now", Kind::Gauge, "Requests in flight.", now);
}

fn links(file: &mut File, sample: &Sample) {
    let values = sample.links.iter();
    let values = values.map(|l| (vec![("device", l.name.as_str())], l.received_bytes as f64));
    let help = "Bytes received.";
    file.metric("network_receive_bytes_total", Kind::Counter, help, values);
    let values = sample.links.iter();
    let values = values.map(|l| (vec![("device", l.name.as_str())], l.sent_bytes as f64));
    let help = "Bytes sent.";
    file.metric("network_transmit_bytes_total", Kind::Counter, help, values);
}

fn memory(file: &mut File, sample: &Sample) {
    use Kind::{Counter, Gauge};
    if let Some(memory) = sample.memory {
        let gauges = [
            ("memory_total_bytes", "What the kernel manages.", Some(memory.total_bytes)),
            (
                "memory_available_bytes",
                "What programs can have without swapping.",
                memory.available_bytes,
            ),
            ("memory_cached_bytes", "Page cache and buffers.", Some(memory.cached_bytes)),
            ("memory_dirty_bytes", "Not yet on a device.", Some(memory.dirty_bytes)),
            ("memory_writeback_bytes", "On the way to a device.", Some(memory.writeback_bytes)),
            ("swap_total_bytes", "Size of all swap areas.", Some(memory.swap_bytes)),
            ("swap_free_bytes", "Not used of them.", Some(memory.swap_free_bytes)),
        ];
        for (name, help, value) in gauges {
            file.plain(name, Gauge, help, value);
        }
        let counted = sample.zswap.map(|zswap| zswap.pool_bytes);
        let pool = memory.zswap_bytes.or(counted);
        file.plain("zswap_pool_bytes", Gauge, "Memory that zswap takes.", pool);
        let help = "What zswap holds, when expanded.";
        file.plain("zswap_stored_bytes", Gauge, help, memory.zswapped_bytes);
    }
    if let Some(zswap) = sample.zswap {
        let help = "Pages that zswap refused.";
        file.plain("zswap_refused_pages_total", Counter, help, Some(zswap.refused_pages));
        let help = "Times that zswap's pool was full.";
        file.plain("zswap_pool_full_total", Counter, help, Some(zswap.pool_full));
    }
    if let Some(events) = sample.events {
        let counters = [
            ("swap_in_pages_total", "Pages read from swap devices.", Some(events.swapped_in)),
            ("swap_out_pages_total", "Pages written to swap devices.", Some(events.swapped_out)),
            ("zswap_in_pages_total", "Pages that zswap gave back.", events.zswap_in),
            ("zswap_out_pages_total", "Pages that zswap took.", events.zswap_out),
            (
                "zswap_written_back_pages_total",
                "Pages that went from zswap to the disk.",
                events.zswap_written_back,
            ),
            ("major_faults_total", "Waits for a page from a disk.", Some(events.major_faults)),
            ("oom_kills_total", "Programs killed for lack of memory.", events.oom_kills),
        ];
        for (name, help, value) in counters {
            file.plain(name, Counter, help, value);
        }
    }
    let zrams = |of: fn(&crate::Zram) -> u64| {
        let all = sample.zrams.iter();
        all.map(move |zram| (vec![("device", zram.name.as_str())], of(zram) as f64))
    };
    let help = "What zram holds, when expanded.";
    file.metric("zram_stored_bytes", Gauge, help, zrams(|zram| zram.stored_bytes));
    let help = "Memory that zram takes.";
    file.metric("zram_memory_bytes", Gauge, help, zrams(|zram| zram.memory_bytes));
}

fn pressure(file: &mut File, sample: &Sample) {
    let pressure = sample.pressure;
    let all = [("cpu", pressure.cpu), ("memory", pressure.memory), ("io", pressure.io)];
    let of = |value: fn(Stall) -> Option<u64>| {
        all.into_iter().filter_map(move |(resource, stall)| {
            Some((vec![("resource", resource)], value(stall?)? as f64 / 1e6))
        })
    };
    let help = "Time in which at least one task stood still for want of a resource.";
    let name = "pressure_waiting_seconds_total";
    file.metric(name, Kind::Counter, help, of(|stall| Some(stall.some_us)));
    let help = "Time in which all tasks stood still for want of a resource.";
    let name = "pressure_stalled_seconds_total";
    file.metric(name, Kind::Counter, help, of(|stall| stall.full_us));
}

fn heat(file: &mut File, sample: &Sample) {
    let heat = &sample.heat;
    let zones = heat.zones.iter();
    let zones = zones.map(|z| (vec![("zone", z.name.as_str())], z.millicelsius as f64 / 1e3));
    file.metric("temperature_celsius", Kind::Gauge, "Temperature.", unique(zones));
    let clocks = heat.clocks.iter();
    let clocks = clocks.map(|c| (vec![("cores", c.cores.as_str())], c.hz as f64));
    file.metric("cpu_clock_hertz", Kind::Gauge, "Clock of the processor.", unique(clocks));
    if let Some(bits) = heat.throttled.map(rubus_vocabulary::machine::Throttling::decode) {
        let flags = [
            ("undervoltage", bits.undervoltage_now, bits.undervoltage_seen),
            ("clock_capped", bits.capped_now, bits.capped_seen),
            ("throttled", bits.throttled_now, bits.throttled_seen),
            ("soft_heat_limit", bits.soft_limit_now, bits.soft_limit_seen),
        ];
        let now = flags.map(|(what, now, _)| (vec![("what", what)], f64::from(u8::from(now))));
        file.metric("firmware_limit_now", Kind::Gauge, "1 while the firmware holds it down.", now);
        let seen = flags.map(|(what, _, seen)| (vec![("what", what)], f64::from(u8::from(seen))));
        let help = "1 if the firmware held it down since the start.";
        file.metric("firmware_limit_since_start", Kind::Gauge, help, seen);
    }
}

/// The first of those with the same labels: twice the same is an error that costs the whole file.
fn unique<'a>(
    values: impl Iterator<Item = (Vec<(&'a str, &'a str)>, f64)>,
) -> Vec<(Vec<(&'a str, &'a str)>, f64)> {
    let mut kept: Vec<(Vec<(&str, &str)>, f64)> = Vec::new();
    for (labels, value) in values {
        if !kept.iter().any(|(other, _)| *other == labels) {
            kept.push((labels, value));
        }
    }
    kept
}

fn pipes(file: &mut File, look: Option<&Look>) {
    let Some(look) = look else {
        return;
    };
    let pipes = look.pipes.iter();
    let used = unique(pipes.map(|pipe| (vec![("pipe", pipe.name.as_str())], pipe.used)));
    let help = "Traffic by what the pipe was measured, or is known, to carry.";
    file.metric("pipe_used_ratio", Kind::Gauge, help, used);
}

fn network_disks(file: &mut File, sample: &Sample) {
    let Some(nbd) = &sample.nbd else {
        return;
    };
    let each = |of: fn(&crate::Attached) -> f64| {
        let all = nbd.attached.iter();
        all.map(move |one| (vec![("device", one.device.as_str())], of(one)))
    };
    let help = "Connections to the server that work.";
    file.metric("nbd_connections_alive", Kind::Gauge, help, each(|one| one.alive as f64));
    let help = "Connections that were replaced.";
    let name = "nbd_connections_replaced_total";
    file.metric(name, Kind::Counter, help, each(|one| f64::from(one.replaced)));
    let clients = nbd.server.as_ref().filter(|server| server.trouble.is_none());
    let clients = clients.map(|server| server.clients.len() as u64);
    file.plain("nbd_server_clients", Kind::Gauge, "Clients of the server.", clients);
}

#[cfg(test)]
mod tests {
    use crate::{Heat, Zone};

    use super::*;

    fn sample() -> Sample {
        let zone = |name: &str| Zone { name: name.into(), millicelsius: 48_250 };
        Sample {
            cpus: vec![CpuTimes { user: 250, idle: 1000, ..CpuTimes::default() }],
            disks: vec![
                DiskCounters {
                    name: "mmcblk0".into(),
                    reads: 7,
                    read_sectors: 16,
                    read_ms: 1500,
                    in_flight: 2,
                    ..DiskCounters::default()
                },
                DiskCounters { name: "sda".into(), ..DiskCounters::default() },
            ],
            heat: Heat {
                zones: vec![zone("cpu \"big\"\\\n"), zone("cpu \"big\"\\\n")],
                throttled: Some(0x1),
                ..Heat::default()
            },
            ..Sample::default()
        }
    }

    #[test]
    fn what_the_collector_reads() {
        insta::assert_snapshot!(render(&sample(), None));
    }

    /// What the collector asks of a file, without which it takes nothing of it: each metric in one piece, with its help and
    /// type before it, no two values with the same labels, names and numbers in their forms.
    #[test]
    fn every_line_is_one_that_the_collector_takes() {
        let text = render(&sample(), None);
        let mut told: Vec<&str> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut name = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                name = rest.split(' ').next().unwrap();
                assert!(!told.contains(&name), "{name} twice");
                told.push(name);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (of, kind) = rest.split_once(' ').unwrap();
                assert_eq!(of, name);
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert_eq!(series.split('{').next(), Some(name));
                assert!(!seen.contains(&series), "{series} twice");
                seen.push(series);
                value.parse::<f64>().unwrap();
            }
        }
        assert!(seen.len() > 20);
        assert!(text.ends_with('\n'));
    }
}
