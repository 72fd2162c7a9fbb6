//! Compression on the way to a disk: what is expected of a processor that nobody measured.

use rubus_core::compression::{Method, cheapest_first};
use rubus_core::estimate::Estimate;

/// What is expected of a processor that nobody measured, by its model's name; wide on purpose. Data of a root
/// filesystem, which shrinks to 35 to 65 % with zstd.
pub fn usual(processor: &str, cores: u32) -> (Vec<Method>, &'static str) {
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
            cores: f64::from(cores.max(1)),
            ratio: Estimate::new(ratio, (ratio * 0.7).max(1.0), ratio * 1.4),
        }
    };
    (cheapest_first(LEVELS.map(method).into()), source)
}
