//! Every reason to distrust a result, with its remedy.
//!
//! A doubt is stored with the result that it concerns, so that a reader of the history knows what
//! disturbed the run. Adding one is adding a variant and its two sentences.

use rubus_stats::stop::Caveat;
use serde::{Deserialize, Serialize};

/// Something that may have disturbed a result or limits what it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// The interval is wider than wanted.
    NotPrecise {
        /// Reached half-width as a share of the value; infinite (in JSON `null`) when there was too
        /// little to make an interval of.
        #[serde(deserialize_with = "rubus_stats::estimate::null_is_infinite")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
        reached: f64,
        /// Wanted half-width.
        wanted: f64,
    },
    /// The filesystem refused `O_DIRECT`: reads may come from memory.
    ThroughPageCache {
        /// Name of the filesystem, as far as known.
        filesystem: String,
    },
    /// `O_DIRECT` was accepted, but this filesystem is known to go through the page cache anyway.
    DirectIsBuffered {
        /// Which and why.
        filesystem: String,
    },
    /// The target lies on a loop device that reaches its file through the page cache: direct I/O ends
    /// there, too.
    LoopThroughCache {
        /// Kernel name of the loop device.
        device: String,
    },
    /// The measuring threads waited for a processor.
    CpuStarved {
        /// Share of the elapsed time spent runnable but not running.
        share: f64,
    },
    /// The program itself was stopped meanwhile: Ctrl-Z, SIGSTOP, a frozen control group.
    Stopped {
        /// For how long.
        seconds: f64,
    },
    /// The hypervisor took the processor away.
    CpuStolen {
        /// Share of all processor time.
        share: f64,
    },
    /// The processor was the limit: a core was (nearly) fully used by the test itself.
    CpuBound {
        /// Busy share of the busiest core; of several lanes, of the one whose core was busy least.
        share: f64,
    },
    /// Other programs used the same device meanwhile.
    OtherTraffic {
        /// Bytes read and written by others.
        bytes: u64,
        /// Their share of all bytes on the device.
        share: f64,
    },
    /// The clock was throttled or capped because of heat.
    Throttled {
        /// What was seen ("soft temperature limit, frequency capped").
        what: String,
    },
    /// The supply voltage was too low during the run.
    Undervoltage,
    /// The rate changed during the run by more than its own noise.
    Drift {
        /// Rate in the last third over rate in the first third; infinite (in JSON `null`) when
        /// nothing moved in the first.
        #[serde(deserialize_with = "rubus_stats::estimate::null_is_infinite")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
        ratio: f64,
    },
    /// The test file is smaller than the suite wants.
    SmallRegion {
        /// Bytes actually used.
        bytes: u64,
        /// Bytes wanted.
        wanted: u64,
    },
    /// Everything was measured in a small part of the disk: a short stroke where heads seek, and where
    /// a map fits into a controller's memory or a fast (SLC) part holds all of it, that part.
    PartOfDisk {
        /// Bytes of the region.
        bytes: u64,
        /// Bytes of the disk.
        disk_bytes: u64,
        /// The disk has heads that seek.
        has_platters: bool,
    },
    /// Too few operations for the deepest percentiles that were asked for.
    FewOperations {
        /// How many there were.
        operations: u64,
    },
    /// io_uring is absent or forbidden: threads kept the queue full instead.
    NoRing {
        /// The kernel's answer.
        reason: String,
    },
    /// The result is above what the path to the device can carry: it comes from a cache.
    AboveCeiling {
        /// The measured rate in bytes per second.
        bytes_per_second: f64,
        /// The ceiling in bytes per second.
        ceiling: f64,
        /// Whose ceiling.
        what: String,
    },
    /// A network disk gave or took more than the link to its server carries: what was measured did not
    /// come over the wire.
    AboveLink {
        /// The measured rate in bytes per second.
        bytes_per_second: f64,
        /// What the link carries, in bits per second.
        link_bits_per_second: u64,
        /// Name of its interface.
        interface: String,
    },
    /// The final flush took a large share of the time: the device had accepted writes that were
    /// not yet durable. The reported rate includes the flush.
    LongFlush {
        /// Seconds of the flush.
        seconds: f64,
    },
    /// A server called parts of what was read zeros instead of sending them.
    Holes {
        /// Their share of the bytes read.
        share: f64,
    },
    /// A server offers no flush: nothing tells when a write is durable.
    NoFlush,
    /// The run was stopped by the user.
    Interrupted,
    /// The target failed in the middle.
    TargetFailed {
        /// The error in words.
        error: String,
    },
    /// What was to be found on the disk may have been in the kernel's memory, from which it cannot be
    /// removed without disturbing other programs.
    StillInMemory {
        /// What ("names and attributes of the files").
        what: String,
    },
    /// The server was asked for its processor time and did not say it.
    ServerSilent {
        /// Why not, in words.
        why: String,
    },
    /// The cluster behind an image was not as it should be meanwhile.
    ClusterTroubled {
        /// What was wrong, and when.
        what: String,
    },
    /// A watch file could not be read, so this disturbance cannot be excluded.
    NotWatched {
        /// What was not watched and why.
        what: String,
    },
}

impl From<Caveat> for Doubt {
    fn from(caveat: Caveat) -> Doubt {
        match caveat {
            Caveat::NotPrecise { reached, wanted } => Doubt::NotPrecise { reached, wanted },
            Caveat::Drift { ratio } => Doubt::Drift { ratio },
        }
    }
}

impl Doubt {
    /// Whether another is of the same kind, however different its figures are.
    pub fn is_like(&self, other: &Doubt) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Whether it may have changed a rate. The others limit something else: percentiles, what was watched, how much of the
    /// disk was seen.
    pub fn may_change_a_rate(&self) -> bool {
        match self {
            Doubt::ThroughPageCache { .. }
            | Doubt::DirectIsBuffered { .. }
            | Doubt::LoopThroughCache { .. }
            | Doubt::CpuStarved { .. }
            | Doubt::Stopped { .. }
            | Doubt::CpuStolen { .. }
            | Doubt::OtherTraffic { .. }
            | Doubt::Throttled { .. }
            | Doubt::Undervoltage
            | Doubt::Drift { .. }
            | Doubt::AboveCeiling { .. }
            | Doubt::AboveLink { .. }
            | Doubt::Holes { .. }
            | Doubt::NoFlush
            | Doubt::StillInMemory { .. }
            | Doubt::ClusterTroubled { .. } => true,
            Doubt::NotPrecise { .. }
            | Doubt::CpuBound { .. }
            | Doubt::SmallRegion { .. }
            | Doubt::PartOfDisk { .. }
            | Doubt::FewOperations { .. }
            | Doubt::NoRing { .. }
            | Doubt::LongFlush { .. }
            | Doubt::Interrupted
            | Doubt::TargetFailed { .. }
            | Doubt::ServerSilent { .. }
            | Doubt::NotWatched { .. } => false,
        }
    }

    /// What happened, as one sentence without a full stop.
    pub fn what(&self) -> String {
        use crate::units::{bit_rate, bytes_iec, bytes_si, percent, rate_si};
        match self {
            Doubt::NotPrecise { reached, wanted } if reached.is_finite() => {
                format!("reached ±{} instead of ±{}", percent(*reached), percent(*wanted))
            }
            Doubt::NotPrecise { .. } => "too few samples for any interval".into(),
            Doubt::ThroughPageCache { filesystem } => {
                format!(
                    "{filesystem} refuses or ignores direct I/O, so this went through the page cache"
                )
            }
            Doubt::DirectIsBuffered { filesystem } => {
                format!("direct I/O goes through the page cache here: {filesystem}")
            }
            Doubt::LoopThroughCache { device } => {
                format!("{device} reads and writes its file through the page cache")
            }
            Doubt::CpuStarved { share } => {
                format!("the test waited for a processor {} of the time", percent(*share))
            }
            Doubt::Stopped { seconds } => {
                format!("rubus itself was stopped for {seconds:.1} s (Ctrl-Z or SIGSTOP)")
            }
            Doubt::CpuStolen { share } => {
                format!("the hypervisor took {} of the processor time away", percent(*share))
            }
            Doubt::CpuBound { share } => {
                format!("a core was {} busy: the processor may be the limit", percent(*share))
            }
            Doubt::OtherTraffic { bytes, share } => format!(
                "other programs moved {} on this device meanwhile ({} of its traffic)",
                bytes_iec(*bytes),
                percent(*share)
            ),
            Doubt::Throttled { what } => format!("the clock was held down: {what}"),
            Doubt::Undervoltage => "the supply voltage was too low".into(),
            Doubt::Drift { ratio } if *ratio < 1.0 => {
                format!("the rate fell to {} of its start during the run", percent(*ratio))
            }
            Doubt::Drift { ratio } => {
                format!("the rate rose to {} of its start during the run", percent(*ratio))
            }
            Doubt::SmallRegion { bytes, wanted } => {
                format!("the test file is {} instead of {}", bytes_iec(*bytes), bytes_iec(*wanted))
            }
            Doubt::PartOfDisk { bytes, disk_bytes, has_platters } => format!(
                "measured within {} of {}: {}",
                bytes_iec(*bytes),
                bytes_si(*disk_bytes),
                if *has_platters {
                    "the heads hardly moved, and over the whole disk they seek farther"
                } else {
                    "it may be faster than the whole device (a map in the controller's memory, an SLC cache)"
                }
            ),
            Doubt::FewOperations { operations } => {
                format!("only {operations} operations, too few for the deep percentiles")
            }
            Doubt::NoRing { reason } => format!("threads instead of io_uring: {reason}"),
            Doubt::AboveCeiling { bytes_per_second, ceiling, what } => format!(
                "{} is more than {what} can carry ({}): this came from a cache",
                rate_si(*bytes_per_second),
                rate_si(*ceiling)
            ),
            Doubt::AboveLink { bytes_per_second, link_bits_per_second, interface } => format!(
                "{} is more than the link {interface} carries ({}, {} at best): this is a page cache, not the wire",
                rate_si(*bytes_per_second),
                bit_rate(*link_bits_per_second as f64),
                rate_si(*link_bits_per_second as f64 / 8.0)
            ),
            Doubt::LongFlush { seconds } => {
                format!("the final flush took {seconds:.1} s; the rate includes it")
            }
            Doubt::Holes { share } => format!(
                "{} of what was read was never written, and the server said so instead of sending it",
                percent(*share)
            ),
            Doubt::NoFlush => {
                "the server offers no flush, so nothing tells when the writes were durable".into()
            }
            Doubt::Interrupted => "stopped by the user".into(),
            Doubt::TargetFailed { error } => format!("the target failed: {error}"),
            Doubt::StillInMemory { what } => format!("still in memory: {what}"),
            Doubt::ServerSilent { why } => {
                format!("the server did not say what it had spent: {why}")
            }
            Doubt::ClusterTroubled { what } => format!("the cluster was not whole: {what}"),
            Doubt::NotWatched { what } => format!("not watched: {what}"),
        }
    }

    /// What to do about it, as one sentence without a full stop.
    pub fn remedy(&self) -> &'static str {
        match self {
            Doubt::NotPrecise { .. } => {
                "measure when the machine and the device are quiet; what is very fast spends the write budget too soon"
            }
            Doubt::ThroughPageCache { .. } | Doubt::DirectIsBuffered { .. } => {
                "compare with a result on a filesystem with direct I/O before you trust the reads"
            }
            Doubt::LoopThroughCache { .. } => {
                "attach it with `losetup --direct-io=on`, or read the figures as those of memory"
            }
            Doubt::CpuStarved { .. } | Doubt::CpuStolen { .. } => {
                "stop other programs and measure again"
            }
            Doubt::Stopped { .. } => "measure again and let it run to its end",
            Doubt::CpuBound { .. } => {
                "read the result as a limit of this processor, not the device"
            }
            Doubt::OtherTraffic { .. } => "stop the other programs and measure again",
            Doubt::Throttled { .. } => {
                "let the board cool down or give it a heat sink, then repeat"
            }
            Doubt::Undervoltage => "use a stronger supply or a shorter cable, then repeat",
            Doubt::Drift { .. } => "measure longer to see where it settles",
            Doubt::SmallRegion { .. } => "free some space, or read the result as the best case",
            Doubt::PartOfDisk { .. } => "use a larger region (--size), or read it as the best case",
            Doubt::FewOperations { .. } => "measure longer for p99.9",
            Doubt::NoRing { .. } => "read deep-queue results as a lower bound",
            Doubt::AboveCeiling { .. } => "do not trust this number; use a larger region",
            Doubt::AboveLink { .. } => {
                "measure past the cache (direct I/O, and a final flush for writes), with data that was not read before"
            }
            Doubt::LongFlush { .. } => {
                "trust the rate with the flush, not the device's first answer"
            }
            Doubt::Holes { .. } => "fill the export with data, then measure again",
            Doubt::NoFlush => "read the write rates as those of the server's memory",
            Doubt::Interrupted => "run it again to the end",
            Doubt::TargetFailed { .. } => "look at the kernel log and at the cable",
            Doubt::StillInMemory { .. } => {
                "read it as the kernel's speed; on a disk, --drop-caches as root measures it cold"
            }
            Doubt::ServerSilent { .. } => {
                "look whether the server still runs, and where its --status is"
            }
            Doubt::ClusterTroubled { .. } => {
                "wait until `ceph status` is well, then measure again; or read it as the speed of a cluster that lost something"
            }
            Doubt::NotWatched { .. } => "run as root, or accept that this cannot be excluded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_width_or_ratio_survives_json() {
        for doubt in [
            Doubt::NotPrecise { reached: f64::INFINITY, wanted: 0.1 },
            Doubt::Drift { ratio: f64::INFINITY },
        ] {
            let text = serde_json::to_string(&doubt).expect("a doubt is always JSON");
            let back: Doubt = serde_json::from_str(&text).expect("and reads back");
            assert_eq!(back, doubt);
        }
    }
}
