//! Values of options in one spelling: two that ask for the same are the same text.
//!
//! After "Parameter types" of fio's manual: a number has a unit, a time has one too, and a list has a value for each
//! direction. What is not understood here stays as it is.

use std::collections::BTreeSet;

use rubus_vocabulary::spec::Sizes;

use super::asked::is_of_trims_alone;
use super::settings::{DEFAULT_BLOCK, Settings, ranges};
use super::value::{self, Amount, KbBase, float, int, per_direction, time_us};

/// Values that tell large and small letters apart.
const AS_WRITTEN: [&str; 3] = ["cgroup", "merge_blktrace_file", "read_iolog"];
/// A list of processors that is longer stays as it is.
const MAX_LISTED: u64 = 4096;

/// The value of an option of the job that asks for `job`.
pub(super) fn spelled(name: &str, value: &str, job: &Settings, rw: &str, base: KbBase) -> String {
    // Of one that writes and discards, each part counts.
    if rw.contains("trimwrite") && value.matches(',').count() > 1 {
        return value.to_ascii_lowercase();
    }
    let number = |part: &str| int(part, base);
    let sided = Sided { job, value: sides(value, rw) };
    let found = match name {
        "rate" => sided.spelled(number, |_, rate: Option<u64>| size(rate.unwrap_or(0))),
        "rate_iops" => sided.spelled(number, |_, rate: Option<u64>| rate.unwrap_or(0).to_string()),
        "percentage_random" => sided.spelled(
            |part| int(part.trim_end_matches('%'), base),
            |_, percent: Option<u64>| percent.unwrap_or(100).to_string(),
        ),
        "ba" => sided.spelled(number, |side, align: Option<u64>| {
            let smallest = u64::from(smallest_block(job, side));
            let align = align.filter(|align| *align != smallest);
            size(align.unwrap_or(0))
        }),
        "bsrange" => ranges(sided.value, base).map(|all| sided.joined(all, |_, range| span(range))),
        "bssplit" => sided.spelled(|part| value::split(part, base), |_, sizes| shares(sizes)),
        "offset" | "offset_increment" => value::amount(value, base).map(amount),
        "thinktime" | "thinktime_spin" | "latency_target" => time_us(value, 1).map(time),
        "thinktime_iotime" => time_us(value, 1_000_000).map(time),
        "offset_align" | "lockmem" => number(value).map(size),
        "cpus_allowed" | "numa_cpu_nodes" => listed(value),
        "random_distribution" => distribution(value),
        "file_service_type" => Ok(match value.split_once(':') {
            Some((kind, "1")) => kind.to_ascii_lowercase(),
            _ => value.to_ascii_lowercase(),
        }),
        "fallocate" => Ok(one_of(value, &[("0", "none"), ("1", "posix")])),
        "verify" => Ok(one_of(value, &[("none", "0"), ("crc32c-intel", "crc32c")])),
        "buffer_pattern" | "verify_pattern" => Ok(pattern(value)),
        name if AS_WRITTEN.contains(&name) => Ok(value.to_string()),
        _ => number(value).map(|number| number.to_string()),
    };
    found.unwrap_or_else(|_| value.to_ascii_lowercase())
}

/// What a value of several directions says of a job: of one that discards and does nothing else, the last.
fn sides<'a>(value: &'a str, rw: &str) -> &'a str {
    match value.rsplit_once(',') {
        Some((_, of_trims)) if is_of_trims_alone(rw) => of_trims,
        _ => value,
    }
}

/// A value that may have a part for each direction.
struct Sided<'a> {
    job: &'a Settings,
    value: &'a str,
}

impl Sided<'_> {
    fn spelled<T: Clone>(
        &self,
        parse: impl FnMut(&str) -> Result<T, String>,
        spell: impl Fn(usize, Option<T>) -> String,
    ) -> Result<String, String> {
        per_direction(self.value, parse).map(|parts| self.joined(parts, spell))
    }

    /// What the job does not do, its value does not change.
    fn joined<T>(
        &self,
        parts: [Option<T>; 2],
        spell: impl Fn(usize, Option<T>) -> String,
    ) -> String {
        let [read, write] = parts;
        let (read, write) = (spell(0, read), spell(1, write));
        match (self.job.reads, self.job.writes) {
            (true, false) => read,
            (false, true) => write,
            _ if read == write => read,
            _ => format!("{read},{write}"),
        }
    }
}

fn smallest_block(job: &Settings, side: usize) -> u32 {
    let of_split = job.block_split[side].as_ref().and_then(|sizes| match sizes {
        Sizes::Range(low, _) => Some(*low),
        Sizes::Split(parts) => parts.iter().map(|(bytes, _)| *bytes).min(),
    });
    let of_range = job.block_range[side].map(|(low, _)| low);
    of_split.or(of_range).or(job.block[side]).unwrap_or(DEFAULT_BLOCK)
}

/// A range; one of a single size is told as the size of operations.
fn span(range: Option<(u32, u32)>) -> String {
    match range {
        Some((low, high)) if low != high => format!("{}-{}", size(low.into()), size(high.into())),
        _ => "0".into(),
    }
}

/// Sizes with their shares, the smallest first; a single one is told as the size of operations.
fn shares(sizes: Option<Sizes>) -> String {
    let mut parts = match sizes {
        Some(Sizes::Split(parts)) if parts.len() > 1 => parts,
        _ => return "0".into(),
    };
    parts.sort_unstable();
    let parts = parts.into_iter().map(|(bytes, share)| format!("{}/{share}", size(bytes.into())));
    parts.collect::<Vec<_>>().join(":")
}

/// Bytes in the largest unit of which they are a whole number, with `k` for 1024.
fn size(bytes: u64) -> String {
    let units = [("g", 30), ("m", 20), ("k", 10)];
    let whole = units.into_iter().find(|(_, bits)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    whole.map_or(bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

fn amount(amount: Amount) -> String {
    match amount {
        Amount::Bytes(bytes) => size(bytes),
        Amount::Percent(percent) if percent > 0.0 => format!("{percent}%"),
        Amount::Percent(_) => "0".into(),
    }
}

fn time(us: u64) -> String {
    let units = [("s", 1_000_000), ("ms", 1000), ("us", 1)];
    let whole = units.into_iter().find(|(_, factor)| us > 0 && us % factor == 0);
    whole.map_or("0".into(), |(unit, factor)| format!("{}{unit}", us / factor))
}

/// Numbers and ranges of numbers, each number once and in order.
fn listed(text: &str) -> Result<String, String> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (int(low, KbBase::default())?, int(high, KbBase::default())?);
        if high >= MAX_LISTED {
            return Err(format!("'{part}' is above {MAX_LISTED}"));
        }
        numbers.extend(low..=high);
    }
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    Ok(numbers.join(","))
}

/// A distribution without the parameter that it has by default.
fn distribution(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let (kind, argument) = text.split_once(':').unwrap_or((text.as_str(), ""));
    let (kind, usual) = match kind {
        "zipf" => (kind, 1.1),
        "pareto" => (kind, 0.2),
        "normal" | "gauss" => ("normal", 0.0),
        _ => return Ok(text),
    };
    let (parameter, centre) = argument.split_once(':').unwrap_or((argument, ""));
    let parameter = if parameter.is_empty() { usual } else { float(parameter)? };
    Ok(match centre {
        "" if parameter == usual => kind.into(),
        "" => format!("{kind}:{parameter}"),
        centre => format!("{kind}:{parameter}:{}", float(centre)?),
    })
}

fn one_of(value: &str, synonyms: &[(&str, &str)]) -> String {
    let value = value.to_ascii_lowercase();
    let synonym = synonyms.iter().find(|(synonym, _)| *synonym == value);
    synonym.map_or(value, |(_, main)| (*main).to_string())
}

/// A pattern as its bytes; in a text, large and small letters differ.
fn pattern(value: &str) -> String {
    match value::pattern(value) {
        Ok(Some(pattern)) => {
            let digits: String = pattern.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: &str) -> String {
        let job = Settings { writes: true, ..Settings::default() };
        spelled(name, value, &job, "randrw", KbBase::default())
    }

    #[test]
    fn what_asks_for_the_same_is_spelled_alike() {
        for (name, values) in [
            ("rate", &["10m", "10240k", "10485760", "10m,10m", "10M,10mb,1k"][..]),
            ("rate", &["0", "0,0", "0,0,0", "0k"]),
            ("rate_iops", &["100,0", "100,"]),
            ("percentage_random", &["100", "100,100", "100%,100"]),
            ("ba", &["0", "4k", "4096b,", "4096,4k"]),
            ("bsrange", &["4k-64k", "4096:64k", "64k-4k", "4k-64k,4k-65536"]),
            ("bssplit", &["4k/60:64k/40", "64k/40:4096/60", "4k/60:64k"]),
            ("offset", &["1g", "1024m", "0x40000000"]),
            ("thinktime", &["5ms", "5000", "5000us"]),
            ("latency_target", &["1s", "1000ms", "1000000"]),
            ("cpus_allowed", &["0-3", "0,1,2,3", "3,0-2,1"]),
            ("random_distribution", &["zipf", "zipf:1.1", "ZIPF:1.10"]),
            ("random_distribution", &["normal:20", "gauss:20.0"]),
            ("file_service_type", &["roundrobin", "roundrobin:1"]),
            ("fallocate", &["none", "0"]),
            ("buffer_pattern", &["0xdead", "0xDEAD"]),
            ("rwmixread", &["70", "0x46", "7*10"]),
        ] {
            let spellings: Vec<String> = values.iter().map(|value| of(name, value)).collect();
            assert!(spellings.iter().all(|other| *other == spellings[0]), "{spellings:?}");
        }
    }

    #[test]
    fn what_asks_for_something_else_is_not() {
        for (name, one, other) in [
            ("rate", "10m", "10mib"),
            ("rate", "10m,1m", "10m"),
            ("ba", "4k,8k", "4k"),
            ("bssplit", "4k/60:64k/40", "4k/40:64k/60"),
            ("offset", "1m", "1%"),
            ("latency_target", "1", "1ms"),
            ("cpus_allowed", "0-3", "0,3"),
            ("random_distribution", "zipf:1.2", "zipf"),
            ("random_distribution", "normal:20:0.5", "normal:20"),
            ("buffer_pattern", "\"abc\"", "\"ABC\""),
            ("read_iolog", "/a", "/A"),
            ("verify", "md5", "crc32c"),
        ] {
            assert_ne!(of(name, one), of(name, other), "{name}");
        }
        assert_eq!((of("rate", "10240k"), of("offset", "1536")), ("10m".into(), "1536".into()));
        assert_eq!((of("thinktime", "1500"), of("rate", "fast")), ("1500us".into(), "fast".into()));
    }

    #[test]
    fn a_job_has_values_of_what_it_does_alone() {
        let reads = Settings::default();
        let spelled = |value, rw| spelled("rate", value, &reads, rw, KbBase::default());
        assert_eq!(spelled("10m,1m", "read"), "10m");
        assert_eq!(spelled("10m,1m,2m", "randtrim"), "2m");
    }
}
