//! Numbers for people: sizes, rates, times, shares. MB is 10^6 bytes, MiB is 2^20, always labelled.

/// A size in binary units with three significant digits: `256 MiB`, `1.50 GiB`, `512 B`.
pub fn bytes_iec(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// A size in decimal units, as vendors print it: `64.0 GB`.
pub fn bytes_si(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A rate in decimal units: `22.6 MB/s`.
pub fn rate_si(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// A line rate in bits: `480 Mbit/s`, `1.00 Gbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A number with what is counted: "1 entry", "12 entries".
pub fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

/// A share as a percentage: 0.05 is `5 %`, 0.005 is `0.5 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 9.95 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A time span in the unit that fits: `850 ns`, `42.0 µs`, `1.25 ms`, `3.40 s`.
pub fn duration_ns(nanoseconds: u64) -> String {
    scaled(nanoseconds as f64, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A count of operations per second with three significant digits: `83.0`, `1500`, `12.9 k`.
pub fn iops(operations_per_second: f64) -> String {
    if operations_per_second < 9_999.5 {
        return three_digits(operations_per_second);
    }
    scaled(operations_per_second, 1000.0, &["", "k", "M", "G"])
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // 999.6 would print as "1000", so the step is taken where rounding takes it.
    while unit + 1 < units.len() && value >= base - 0.5 {
        value /= base;
        unit += 1;
    }
    let number =
        if unit == 0 && value.fract() == 0.0 { format!("{value:.0}") } else { three_digits(value) };
    format!("{number} {}", units[unit]).trim_end().to_string()
}

fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Reads a size such as `4096`, `4k`, `4KiB`, `1.5G`, `10MB`. As in fio, a bare `k`, `M`, `G`
/// is binary; `kB`, `MB`, `GB` are decimal and `KiB`, `MiB`, `GiB` binary.
///
/// # Errors
/// A sentence that names the text when it is not a size, is negative or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let bad = || format!("'{text}' is not a size; write it like 4096, 4KiB, 256M or 1.5GB");
    let number: f64 = number.parse().map_err(|_| bad())?;
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0_f64.powi(4),
        "tb" => 1e12,
        _ => return Err(bad()),
    };
    let bytes = number * factor;
    if !bytes.is_finite() || bytes >= u64::MAX as f64 {
        return Err(format!("'{text}' is larger than any device"));
    }
    Ok(bytes.round() as u64)
}

/// A block size without needless digits: "4 KiB", "1 MiB".
pub fn block(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => bytes_iec(b.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_three_digits_and_their_label() {
        assert_eq!(bytes_iec(512), "512 B");
        assert_eq!(bytes_iec(4096), "4.00 KiB");
        assert_eq!(bytes_iec(268_435_456), "256 MiB");
        assert_eq!(bytes_si(64_000_000_000), "64.0 GB");
        assert_eq!(rate_si(22_600_000.0), "22.6 MB/s");
        assert_eq!(bit_rate(480e6), "480 Mbit/s");
        assert_eq!(duration_ns(1_250_000), "1.25 ms");
        assert_eq!(duration_ns(999_900), "1.00 ms");
    }

    #[test]
    fn operations_switch_to_thousands_at_ten_thousand() {
        assert_eq!(iops(83.04), "83.0");
        assert_eq!(iops(9_999.0), "9999");
        assert_eq!(iops(12_900.0), "12.9 k");
    }

    #[test]
    fn bare_letters_are_binary_and_b_makes_them_decimal() {
        assert_eq!(parse_size("4k"), Ok(4096));
        assert_eq!(parse_size("10MB"), Ok(10_000_000));
        assert_eq!(parse_size("1.5 GiB"), Ok(1_610_612_736));
        for bad in ["", "k", "-1", "4x", "1e99G", "99999999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
