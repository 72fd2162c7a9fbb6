//! The figures of one direction of one of fio's jobs, in bytes, operations and nanoseconds whatever the
//! version that wrote them.
//!
//! | from | what is different |
//! |---|---|
//! | fio 1 and 2 | `io_bytes` counts KiB, latencies are microseconds in `clat` and `lat` |
//! | fio 2.1 | no `total_ios`: operations are `iops` × `runtime` |
//! | fio 3 | `io_bytes` counts bytes, latencies are nanoseconds in `clat_ns` and `lat_ns` |
//!
//! fio 2.99 wrote fio 3's format; `io_kbytes` came with it.

use serde_json::Value;

/// The unit of fio's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Units {
    /// KiB and microseconds.
    Kibibytes,
    /// Bytes and nanoseconds.
    Bytes,
}

impl Units {
    /// By the version of the program, `fio-2.2.10`; a version that is not told counts as new.
    pub(super) fn of(version: &str) -> Units {
        let number = version.strip_prefix("fio-").or(version.strip_prefix("fio "));
        let mut parts = number.unwrap_or(version).split(['.', '-']);
        let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
        match (next(), next()) {
            (Some(0 | 1), _) => Units::Kibibytes,
            (Some(2), minor) if minor < Some(99) => Units::Kibibytes,
            _ => Units::Bytes,
        }
    }
}

/// One direction of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    value: &'a Value,
    units: Units,
}

impl<'a> Part<'a> {
    /// Of the object under `read`, `write`, `trim` or `mixed`; nothing where it did nothing.
    pub(super) fn of(value: &'a Value, units: Units) -> Option<Part<'a>> {
        let units = match value.get("io_kbytes") {
            Some(_) => Units::Bytes,
            None => units,
        };
        let part = Part { value, units };
        let is_done = part.operations() > 0.0 || part.bytes() > 0.0 || part.has_rate_alone();
        is_done.then_some(part)
    }

    /// Whether no amount was kept of a result, and a rate was.
    fn has_rate_alone(&self) -> bool {
        let has_amount = ["io_bytes", "total_ios"].iter().any(|key| self.number(key).is_some());
        !has_amount && self.bytes_per_second() > 0.0
    }

    fn number(&self, key: &str) -> Option<f64> {
        number(&self.value[key])
    }

    pub(super) fn bytes(&self) -> f64 {
        let amount = self.number("io_bytes").unwrap_or(0.0);
        match self.units {
            Units::Kibibytes => amount * 1024.0,
            Units::Bytes => amount,
        }
    }

    /// How long it ran.
    pub(super) fn seconds(&self) -> f64 {
        self.number("runtime").unwrap_or(0.0) / 1e3
    }

    fn runtime(&self) -> Option<f64> {
        Some(self.seconds()).filter(|seconds| *seconds > 0.0)
    }

    pub(super) fn operations(&self) -> f64 {
        self.number("total_ios").unwrap_or_else(|| self.per_second() * self.seconds())
    }

    pub(super) fn per_second(&self) -> f64 {
        let counted = || Some(self.number("total_ios")? / self.runtime()?);
        self.number("iops").or_else(counted).unwrap_or(0.0)
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        let kib = self.number("bw").map(|kib| kib * 1024.0);
        let counted = || Some(self.bytes() / self.runtime()?);
        self.number("bw_bytes").or(kib).or_else(counted).unwrap_or(0.0)
    }

    /// Bytes per operation, on average. An average of estimates is rounded to what a block can be.
    pub(super) fn mean_block(&self) -> Option<u32> {
        const SECTOR: f64 = 512.0;
        let operations = self.operations();
        let exact = self.number("total_ios").is_some() && self.units == Units::Bytes;
        let mean = if exact {
            self.bytes() / operations
        } else {
            let mean = match self.number("total_ios") {
                Some(_) => self.bytes() / operations,
                None => self.bytes_per_second() / self.per_second(),
            };
            let sectors = (mean / SECTOR).round() * SECTOR;
            if (sectors / mean - 1.0).abs() < 0.01 { sectors } else { mean }
        };
        let is_block = mean.is_finite() && (1.0..=f64::from(u32::MAX)).contains(&mean);
        is_block.then(|| mean.round() as u32)
    }

    /// Seconds from the issue of an operation to its completion, on average.
    pub(super) fn mean_latency_s(&self) -> Option<f64> {
        let (key, factor) = self.latency("lat");
        number(&self.value[key]["mean"]).map(|mean| mean * factor / 1e9)
    }

    /// A percentile of the completion latency in nanoseconds.
    pub(super) fn percentile(&self, percent: &str) -> Option<f64> {
        let of = |kind: &str| {
            let (key, factor) = self.latency(kind);
            Some(number(&self.value[key]["percentile"][percent])? * factor)
        };
        of("clat").or_else(|| of("lat")).filter(|ns| *ns > 0.0)
    }

    /// Name of a latency and how many nanoseconds its unit has.
    fn latency(&self, kind: &str) -> (String, f64) {
        match self.units {
            Units::Kibibytes => (kind.into(), 1e3),
            Units::Bytes => (format!("{kind}_ns"), 1.0),
        }
    }

    /// Mean, deviation and count of fio's samples of operations or of bandwidth (`iops`, `bw`).
    pub(super) fn samples(&self, kind: &str) -> Option<Samples> {
        let deviation = match kind {
            "bw" => "bw_dev",
            _ => "iops_stddev",
        };
        Some(Samples {
            mean: self.number(&format!("{kind}_mean"))?,
            deviation: self.number(deviation)?,
            // fio 2 does not say how many there were.
            count: self.number(&format!("{kind}_samples")),
        })
    }
}

/// An amount, also as text, as programs around fio keep it. A counter that went below zero, and so to the end of 64 bits, is none.
pub(super) fn number(value: &Value) -> Option<f64> {
    const END: f64 = (1_u64 << 63) as f64;
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|number| (0.0..END).contains(number))
}

/// What fio says of its samples of a rate, two per second and copy by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Samples {
    /// Of a group: the sum of its copies' means.
    pub(super) mean: f64,
    /// Of a group: that of one copy.
    pub(super) deviation: f64,
    /// Of a group: of all copies.
    pub(super) count: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn units_go_by_the_version() {
        let old = ["fio-1.59", "fio-2.1.4", "fio-2.2.10", "fio 2.0.8", "fio-2.21-89-gb034"];
        for version in old {
            assert_eq!(Units::of(version), Units::Kibibytes, "{version}");
        }
        for version in ["fio-2.99", "fio-3.0", "fio-3.33", "fio-3.42-18-g0a1b2c3", "fio"] {
            assert_eq!(Units::of(version), Units::Bytes, "{version}");
        }
    }

    #[test]
    fn figures_of_fio_2_are_kibibytes_and_microseconds() {
        let value = json!({"io_bytes": 37_500_272, "bw": 62_499, "iops": 15_624.7,
            "runtime": 600_008, "total_ios": 9_374_944, "lat": {"mean": 8182.26},
            "clat": {"percentile": {"50.000000": 8160}}});
        let part = Part::of(&value, Units::Kibibytes).expect("it worked");
        assert_eq!(part.mean_block(), Some(4096));
        assert_eq!(part.percentile("50.000000"), Some(8_160_000.0));
        assert_eq!(part.mean_latency_s(), Some(8.18226e-3));
        assert_eq!(part.bytes_per_second(), 62_499.0 * 1024.0);
        let value = json!({"io_bytes": 36_244, "bw": 1269, "iops": 317, "runtime": 28_551});
        let part = Part::of(&value, Units::Kibibytes).expect("it worked");
        assert_eq!((part.mean_block(), part.operations().round()), (Some(4096), 9051.0));
        let odd = json!({"io_bytes": 8_192_000, "io_kbytes": 8000, "bw": null, "bw_bytes": null,
            "iops": null, "runtime": 2000, "total_ios": 2000});
        let part = Part::of(&odd, Units::Bytes).expect("it worked");
        assert_eq!((part.per_second(), part.bytes_per_second()), (1000.0, 4_096_000.0));
        let idle = json!({"io_bytes": 0, "bw": 0, "iops": 0, "runtime": 0});
        assert!(Part::of(&idle, Units::Kibibytes).is_none());
    }

    #[test]
    fn a_rate_is_a_result_without_its_amount() {
        let kept = json!({"bw_bytes": 2_097_152, "iops": 512.0});
        let part = Part::of(&kept, Units::Bytes).expect("a rate");
        assert_eq!((part.bytes_per_second(), part.mean_block()), (2_097_152.0, Some(4096)));
        for nothing in [json!({"iops": 512.0}), json!({"io_bytes": 0, "bw_bytes": 4096})] {
            assert!(Part::of(&nothing, Units::Bytes).is_none(), "{nothing}");
        }
    }

    #[test]
    fn amounts_may_be_text_and_are_never_below_zero() {
        let text = json!({"io_bytes": "8192000", "io_kbytes": "8000", "bw_bytes": "4096000",
            "iops": "1000.0", "runtime": "2000", "total_ios": "2000", "lat_ns": {"mean": "5e5"}});
        let part = Part::of(&text, Units::Bytes).expect("it worked");
        assert_eq!((part.per_second(), part.bytes_per_second()), (1000.0, 4_096_000.0));
        assert_eq!((part.mean_block(), part.mean_latency_s()), (Some(4096), Some(5e-4)));
        for wrapped in [json!(u64::MAX - 4095), json!(-4096), json!("-4096"), json!("many")] {
            let odd = json!({"io_bytes": wrapped, "io_kbytes": 8000, "bw_bytes": wrapped, "bw": 4000,
                "iops": 1000.0, "runtime": 2000, "total_ios": 2000});
            let part = Part::of(&odd, Units::Bytes).expect("it worked");
            assert_eq!((part.bytes(), part.bytes_per_second()), (0.0, 4_096_000.0), "{odd}");
        }
    }
}
