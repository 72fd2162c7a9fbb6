//! Compression on the way to a disk, as btrfs does it.
//!
//! Processor and device work side by side on different extents, so that what comes through is the smaller of the two, with a soft
//! bend where they are alike: data that shrinks to a third, zlib, a device of 40 MiB/s gave 88 MiB/s where one core alone made 92;
//! the sum of both times would be 52.

use rubus_core::estimate::Estimate;
use rubus_core::recipe::CompressionSpeed;

use super::by_processor;
use crate::path::{Kind, Step};
use crate::predict::{Bend, Operation, predict};

/// btrfs compresses at most so much at once.
pub const EXTENT_BYTES: u64 = 128 << 10;
/// Extents under way: what is written back or read ahead at once.
const IN_FLIGHT: u32 = 8;
/// The kernel's ratio by that of a sample: it splits ranges, skips what looks hopeless, leaves the ends of files as
/// they are; 5 to 13 % less was seen.
const KERNEL_RATIO: (f64, f64, f64) = (0.88, 0.80, 1.0);

/// How one core compresses with a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// As btrfs names it.
    pub name: String,
    /// Bytes of the original per second of one core.
    pub compress: Estimate,
    /// The same back.
    pub expand: Estimate,
    /// Original size by size on the disk.
    pub ratio: Estimate,
}

impl Method {
    /// As it was measured on this processor and a sample of its data.
    pub fn measured(speed: &CompressionSpeed) -> Option<Method> {
        let rates = [
            speed.compress_bytes_per_second,
            speed.expand_bytes_per_second,
            speed.ratio,
        ];
        if !rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
            return None;
        }
        let near = |value: f64| Estimate::new(value, value * 0.9, value * 1.1);
        let (value, low, high) = KERNEL_RATIO;
        let ratio = |factor: f64| (speed.ratio * factor).max(1.0);
        Some(Method {
            name: speed.method.clone(),
            compress: near(speed.compress_bytes_per_second),
            expand: near(speed.expand_bytes_per_second),
            ratio: Estimate::new(ratio(value), ratio(low), ratio(high)),
        })
    }
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the disk.
    Write,
    /// From the disk.
    Read,
}

/// The work of the processor and what is left for those below.
pub fn steps(method: &Method, cores: u32, way: Way) -> Vec<Step> {
    let rate = match way {
        Way::Write => method.compress,
        Way::Read => method.expand,
    };
    let left = Estimate::new(
        1.0 / method.ratio.value,
        1.0 / method.ratio.high,
        1.0 / method.ratio.low,
    );
    vec![
        by_processor(Kind::Compression, cores, rate),
        Step::Bytes {
            factor: left,
            whole_bytes: 4096,
        },
    ]
}

/// Bytes of the original per second through compression onto a link of so many bytes per second; no method is plain.
pub fn through(method: Option<&Method>, cores: u32, link: Estimate, way: Way) -> Estimate {
    let Some(method) = method else {
        return link;
    };
    let mut path = steps(method, cores, way);
    path.push(Step::Stage(crate::path::Stage {
        kind: Kind::Device,
        resource: Some(crate::path::Resource::one("link")),
        cost: crate::cost::Cost::rate(link),
    }));
    let operation = Operation {
        bytes: EXTENT_BYTES,
        depth: IN_FLIGHT.max(cores * 2),
        bend: Bend::unknown(),
    };
    predict(&path, &operation).bytes_per_second
}

/// What is expected of a processor that nobody measured, by its model's name; wide on purpose. Data of a root
/// filesystem, which shrinks to 35 to 65 % with zstd.
pub fn usual(processor: &str) -> (Vec<Method>, &'static str) {
    // One core of a Cortex-A72 makes 102 to 113 MB/s with zstd at level 1 (facebook/zstd pull request 2749); the others by their
    // cores and clocks.
    let (times, source) = match processor {
        p if p.contains("A76") => (2.7, "usual for a Cortex-A76"),
        p if p.contains("A72") => (1.0, "usual for a Cortex-A72"),
        p if p.contains("A53") => (0.5, "usual for a Cortex-A53"),
        p if p.contains("A7") || p.contains("ARMv7") => (0.25, "usual for a Cortex-A7"),
        p if p.contains("ARM11") || p.contains("ARMv6") => (0.06, "usual for an ARM11"),
        _ => (4.0, "usual for a processor of a desktop"),
    };
    // Method, compressing and expanding of one core of a Cortex-A72 in MB/s, ratio.
    const LEVELS: [(&str, f64, f64, f64); 5] = [
        ("lzo", 150.0, 350.0, 1.75),
        ("zstd:1", 105.0, 260.0, 2.15),
        ("zstd:3", 75.0, 250.0, 2.25),
        ("zstd:9", 18.0, 250.0, 2.4),
        ("zlib:3", 26.0, 110.0, 2.15),
    ];
    let method = |(name, compress, expand, ratio): (&str, f64, f64, f64)| {
        let wide = |mega: f64| {
            let rate = mega * 1e6 * times;
            Estimate::new(rate, rate * 0.6, rate * 1.6)
        };
        Method {
            name: name.into(),
            compress: wide(compress),
            expand: wide(expand),
            ratio: Estimate::new(ratio, (ratio * 0.7).max(1.0), ratio * 1.4),
        }
    };
    (LEVELS.map(method).into(), source)
}
