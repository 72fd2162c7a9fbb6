//! The machine at one moment, as far as it says what disturbs.

use rubus_machine::parse::stat::CpuTimes;
use rubus_vocabulary::result::{ClientEnd, ServerEnd};

/// The machine at one moment. All times count from the start of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// When, on the monotonic clock.
    pub(crate) at_ns: u64,
    /// Processor time of this process, without that of the watcher and of the session's own thread,
    /// which decide and draw but do not measure.
    pub(crate) process_ns: u64,
    /// Processor time of the server of a network disk, if it was asked and said it.
    pub(crate) server: Option<FarLook>,
    /// How long this process was stopped so far: not waiting for a processor, but not running at all.
    pub(crate) stopped_ns: u64,
    /// Processor times: all cores together, then each core.
    pub(crate) cpus: Vec<CpuTimes>,
    /// Traffic of the device below the target.
    pub(crate) traffic: Option<Traffic>,
    /// The firmware's throttling bits.
    pub(crate) throttled: Option<u32>,
    /// Whether the supply voltage was too low in that moment.
    pub(crate) undervoltage: Option<bool>,
    /// Sum of the throttling counters.
    pub(crate) throttle_events: Option<u64>,
    /// The highest temperature in thousandths of a degree Celsius.
    pub(crate) hottest_millidegrees: Option<i64>,
}

/// Bytes that a block device has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Read from it.
    pub(crate) read_bytes: u64,
    /// Written to it.
    pub(crate) written_bytes: u64,
}

/// What the server had spent at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FarLook {
    pub(crate) cpu_ns: u64,
    pub(crate) client: ClientEnd,
    pub(crate) server: ServerEnd,
}
