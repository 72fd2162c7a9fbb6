//! Compression of files on their way to a disk, as btrfs does it: what comes through, which method is worth most, and up to which
//! link it pays. What recipes plan and what the model advises are both computed here.
//!
//! Processor and device work side by side on different extents, so that what comes through is the smaller of the two, and a little
//! less where they are alike (two stations of a closed path, by mean value analysis): data that shrinks to a third, zlib, a device
//! of 40 MiB/s gave 88 MiB/s where the processor alone made 92; the sum of both times would be 52.

#![deny(clippy::disallowed_methods)]

use rubus_machine::purpose::{Purpose, What};
use rubus_stats::estimate::Estimate;
use rubus_stats::propagation::carry;
use rubus_stats::queueing::Bend;
use rubus_stats::queueing::mean_value::Station;
use rubus_vocabulary::compression_speed::CompressionSpeed;
use rubus_vocabulary::processor::compression::{EXTENT_BYTES, Row, on_disk};

/// Extents under way: what is written back or read ahead at once.
const IN_FLIGHT: u32 = 8;
/// The kernel's ratio by that of a sample: it splits ranges, skips what looks hopeless, leaves the ends of files as
/// they are; 5 to 13 % less was seen.
const KERNEL_RATIO: (f64, f64, f64) = (0.88, 0.80, 1.0);
/// What is less than this better is not worth a processor's time.
const WORTH_IT: f64 = 1.05;
/// Links between which is looked for the one up to which compression pays, bytes per second.
const LINKS: (f64, f64) = (1e6, 1e11);

/// How a processor compresses with a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// As btrfs names it.
    pub name: String,
    /// Bytes of the original per second of one core.
    pub compress: Estimate,
    /// The same back.
    pub expand: Estimate,
    /// How many times one core all of them are together.
    pub cores: f64,
    /// Original size by size on the disk.
    pub ratio: Estimate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the disk.
    Write,
    /// From the disk.
    Read,
}

/// Bytes that are read and written in order, by which methods are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    pub read: f64,
    pub written: f64,
}

/// The fastest links on which a method still pays, bytes per second; absent where it pays on none. Each ends where the processor
/// becomes the narrower pipe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakEven {
    /// For writing alone.
    pub writes: Option<f64>,
    /// For reading alone.
    pub reads: Option<f64>,
    /// For the mix.
    pub mix: Option<f64>,
}

/// What a link carries, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bandwidth of reads.
    pub read: Estimate,
    /// Bandwidth of writes.
    pub write: Estimate,
}

impl Method {
    /// As it was measured on this processor and a sample of its data.
    pub fn measured(speed: &CompressionSpeed, cores: u32) -> Option<Method> {
        let near = |value: f64| Estimate::new(value, value * 0.9, value * 1.1);
        let rates = [speed.compress_bytes_per_second, speed.expand_bytes_per_second, speed.ratio];
        if !rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
            return None;
        }
        Some(Method {
            name: speed.method.clone(),
            compress: near(speed.compress_bytes_per_second),
            expand: near(speed.expand_bytes_per_second),
            cores: f64::from(cores.max(1)),
            ratio: of_the_kernel(Estimate::exact(speed.ratio)),
        })
    }

    /// As `rubus bench cpu` measured it; absent where btrfs does not have the method on every kernel.
    pub fn of_row(row: &Row) -> Option<Method> {
        use rubus_vocabulary::processor::compression::Method as Name;
        let is_usual = matches!(row.method, Name::Zstd(1..) | Name::Zlib(_));
        let one = &row.one;
        let expand = one.expand_bytes_per_second?;
        let compress = one.compress_bytes_per_second;
        let is_sound = row.wrong == 0 && compress.low > 0.0 && expand.low > 0.0;
        let all = row.all.as_ref();
        let times = |all: Estimate| (all.value / compress.value).max(1.0);
        (is_usual && is_sound && row.ratio.low > 0.0).then(|| Method {
            name: row.method.to_string(),
            compress,
            expand,
            cores: all.map_or(1.0, |all| times(all.compress_bytes_per_second)),
            ratio: of_the_kernel(row.ratio),
        })
    }

    /// Bytes of the original per second that get through to a link of this bandwidth.
    pub fn through(&self, link: Estimate, way: Way) -> Estimate {
        // A single stream of writes kept between one core and all of them busy.
        let (rate, busy_cores) = match way {
            Way::Write => (self.compress, Estimate::new(self.cores, 1.0, self.cores)),
            Way::Read => (self.expand, Estimate::exact(self.cores)),
        };
        let depth = IN_FLIGHT.max((self.cores * 2.0).ceil() as u32);
        let bytes = EXTENT_BYTES as f64;
        carry(|pick| {
            let compressed = (bytes / pick(&self.ratio)).ceil() as usize;
            let processor_s = bytes / pick(&rate);
            let device_s = on_disk(EXTENT_BYTES, compressed) as f64 / pick(&link);
            let processor = Station { seconds: processor_s, servers: pick(&busy_cores) };
            let stations = [processor, Station::one(device_s)];
            let alone_s = processor_s + device_s;
            f64::from(depth) * bytes / Bend::Stations.response_s(alone_s, &stations, depth, pick)
        })
    }

    /// Up to which link it pays.
    pub fn break_even(&self, mix: Mix) -> BreakEven {
        let read = Mix { read: 1.0, written: 0.0 };
        let written = Mix { read: 0.0, written: 1.0 };
        BreakEven {
            writes: self.pays_up_to(written),
            reads: self.pays_up_to(read),
            mix: self.pays_up_to(mix),
        }
    }

    /// The more a link carries, the less compression saves; the processor's time stays as it is.
    fn pays_up_to(&self, mix: Mix) -> Option<f64> {
        let pays = |link: f64| {
            let link = Link::alike(link);
            mix.seconds(Some(self), &link) < mix.seconds(None, &link)
        };
        let (mut low, mut high) = LINKS;
        if !pays(low) {
            return None;
        }
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if pays(middle) { low = middle } else { high = middle }
        }
        Some(low)
    }
}

impl Link {
    /// The same both ways, exactly.
    pub fn alike(bytes_per_second: f64) -> Link {
        Link { read: Estimate::exact(bytes_per_second), write: Estimate::exact(bytes_per_second) }
    }
}

impl Mix {
    /// What a purpose reads and writes in order, of each at least a tenth of the other: what is read was written once, and what
    /// is written is read some day.
    pub fn of(purpose: Purpose) -> Mix {
        let bytes = |what: What| -> f64 {
            let visits = purpose.visits().into_iter();
            let of_it = visits.filter(|visit| visit.what == what);
            of_it.map(|visit| visit.count).sum()
        };
        let (read, written) = (bytes(What::SequentialRead), bytes(What::SequentialWrite));
        Mix { read: read.max(written / 10.0), written: written.max(read / 10.0) }
    }

    /// Seconds that it takes, compressed or plain.
    pub fn seconds(&self, method: Option<&Method>, link: &Link) -> f64 {
        let rate = |link: Estimate, way: Way| {
            method.map_or(link.value, |method| method.through(link, way).value)
        };
        self.read / rate(link.read, Way::Read) + self.written / rate(link.write, Way::Write)
    }

    /// The method that is worth most on a link; none where plain is. A later one must be better by a twentieth, so give them
    /// [`cheapest_first`].
    pub fn best<'m>(&self, methods: &'m [Method], link: &Link) -> Option<&'m Method> {
        self.best_after(None, methods, link)
    }

    /// The same among the methods alone.
    pub fn best_method<'m>(&self, methods: &'m [Method], link: &Link) -> Option<&'m Method> {
        let (first, others) = methods.split_first()?;
        self.best_after(Some(first), others, link)
    }

    fn best_after<'m>(
        &self,
        first: Option<&'m Method>,
        methods: &'m [Method],
        link: &Link,
    ) -> Option<&'m Method> {
        let mut best = first;
        for method in methods {
            if self.seconds(Some(method), link) * WORTH_IT < self.seconds(best, link) {
                best = Some(method);
            }
        }
        best
    }
}

/// Methods in the order of what they cost the processor.
pub fn cheapest_first(mut methods: Vec<Method>) -> Vec<Method> {
    methods.sort_by(|a, b| b.compress.value.total_cmp(&a.compress.value));
    methods
}

/// The kernel's ratio by that of a sample.
fn of_the_kernel(ratio: Estimate) -> Estimate {
    let (value, low, high) = KERNEL_RATIO;
    let times = |ratio: f64, factor: f64| (ratio * factor).max(1.0);
    Estimate::new(times(ratio.value, value), times(ratio.low, low), times(ratio.high, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1048576.0;

    fn near(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() <= share, "{found} is not {expected}");
    }

    fn zlib() -> Method {
        Method {
            name: "zlib:3".into(),
            compress: Estimate::exact(92.0 * MIB),
            expand: Estimate::exact(400.0 * MIB),
            cores: 1.0,
            ratio: Estimate::exact(3.0),
        }
    }

    /// Measured on btrfs with zlib over a device of 40 MiB/s, data that shrinks to a third: 88 MiB/s.
    #[test]
    fn processor_and_device_work_side_by_side() {
        let writes = |link: f64| zlib().through(Estimate::exact(link * MIB), Way::Write).value;
        near(writes(40.0), 88.0 * MIB, 0.06);
        // Far from the bend it is the smaller of the two; a third of 128 KiB is stored in whole pages: 44 KiB.
        near(writes(4.0), 4.0 * MIB * 128.0 / 44.0, 0.02);
        near(writes(4000.0), 92.0 * MIB, 0.02);
    }

    /// Single-core speeds and ratios of a test bed with two cores behind a throttled link, and what came through with the kernel's
    /// btrfs: writes and reads in MB/s, where it was 19.9 and 32.2 without compression.
    #[test]
    fn what_was_measured_on_a_test_bed_is_within() {
        let bed = [
            ("zstd:1", 115e6, 3.03, 46.1, 91.5),
            ("zstd:3", 123e6, 3.18, 46.7, 92.6),
            ("zstd:9", 23.9e6, 3.41, 27.7, 101.2),
            ("zstd:15", 2.6e6, 3.66, 5.45, 99.4),
        ];
        for (name, compress, ratio, writes, reads) in bed {
            let speed = CompressionSpeed {
                method: name.into(),
                compress_bytes_per_second: compress,
                expand_bytes_per_second: 600e6,
                ratio,
            };
            let method = Method::measured(&speed, 2).expect("whole numbers");
            // What was measured is known to about a twentieth itself.
            let is_within = |found: Estimate, mega: f64| {
                let (low, high) = (found.low / 1e6 * 0.95, found.high / 1e6 * 1.05);
                assert!(low <= mega && mega <= high, "{name}: {found:?}, {mega}");
            };
            is_within(method.through(Estimate::exact(19.9e6), Way::Write), writes);
            is_within(method.through(Estimate::exact(32.2e6), Way::Read), reads);
        }
    }

    #[test]
    fn it_pays_up_to_what_the_processor_does_and_no_further() {
        let mix = Mix { read: 1.0, written: 1.0 };
        let found = zlib().break_even(mix);
        let [writes, reads, both] =
            [found.writes, found.reads, found.mix].map(|link| link.expect("it pays somewhere"));
        near(writes, 92.0 * MIB, 0.03);
        near(reads, 400.0 * MIB, 0.03);
        assert!(writes < both && both < reads, "{found:?}");
        // At the end of the mix's range both ways take as long as plain.
        let link = Link::alike(both);
        near(mix.seconds(Some(&zlib()), &link), mix.seconds(None, &link), 1e-6);
        // Data that does not shrink never pays.
        let noise = Method { ratio: Estimate::exact(1.0), ..zlib() };
        assert_eq!(noise.break_even(mix).mix, None);
    }

    #[test]
    fn a_purpose_that_only_reads_does_not_forget_that_files_are_written() {
        let node = Mix::of(Purpose::StorageNode);
        assert!((node.written / node.read - 0.1).abs() < 1e-9);
        // A method that is too slow to write with is no good, however small its files.
        let strong = Method {
            name: "zstd:15".into(),
            compress: Estimate::exact(2.6 * MIB),
            ratio: Estimate::exact(3.2),
            ..zlib()
        };
        let methods = [zlib(), strong];
        let best = node.best(&methods, &Link::alike(40.0 * MIB));
        assert_eq!(best.map(|method| method.name.clone()), Some(zlib().name));
        let desktop = Mix::of(Purpose::Desktop);
        assert_eq!((desktop.read, desktop.written), (18e6, 32e6));
    }

    #[test]
    fn what_the_processor_was_measured_to_do_is_what_is_used() {
        let run = rubus_fixtures::processor_run();
        let part =
            run.processor().and_then(|part| part.compression.clone()).expect("it was measured");
        let rows = &part.samples[0].rows;
        let row = rows.iter().find(|row| row.method.to_string() == "zstd:3").expect("a row");
        let method = Method::of_row(row).expect("btrfs has it");
        assert_eq!(method.compress, row.one.compress_bytes_per_second);
        assert!(method.ratio.value <= row.ratio.value);
        let lz4 = rows.iter().find(|row| row.method.to_string() == "lz4");
        assert!(lz4.is_none_or(|row| Method::of_row(row).is_none()));
    }
}
