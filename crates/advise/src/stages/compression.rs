//! Compression on the way to a disk: the expected figures of an unmeasured processor.

use rubus_processor::compression::{Method, cheapest_first};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::processor::arm_cores;

/// The expected figures of an unmeasured processor, by its model's name; wide on purpose. Data of a root filesystem,
/// which shrinks to 35 to 65 % with zstd.
pub fn usual(processor: &str, cores: u32) -> (Vec<Method>, String) {
    // One core of a Cortex-A72 makes 102 to 113 MB/s with zstd at level 1 (facebook/zstd pull request 2749).
    let expected = arm_cores::expected(processor);
    let (times, doubt) = (expected.compression, expected.doubt);
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
            Estimate::new(rate, rate * 0.6 / doubt, rate * 1.6 * doubt)
        };
        Method {
            name: name.into(),
            compress: wide(compress),
            expand: wide(expand),
            cores: f64::from(cores.max(1)),
            ratio: Estimate::new(ratio, (ratio * 0.7).max(1.0), ratio * 1.4),
        }
    };
    let source = format!("usual for {}", expected.of);
    (cheapest_first(LEVELS.map(method).into()), source)
}
