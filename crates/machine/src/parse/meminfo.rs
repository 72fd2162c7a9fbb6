//! `/proc/meminfo` (proc_meminfo(5)).

/// Each line's name and size in bytes. The file counts in KiB and calls them kB; lines without a unit are counts, not sizes, and
/// are left out.
pub fn sizes(text: &[u8]) -> impl Iterator<Item = (&str, u64)> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, size) = std::str::from_utf8(line).ok()?.split_once(':')?;
        let kib: u64 = size.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        Some((name, kib.saturating_mul(1024)))
    })
}

/// The size that a line has, in bytes.
pub fn size(text: &str, name: &str) -> Option<u64> {
    sizes(text.as_bytes()).find_map(|(line, bytes)| (line == name).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_bytes_and_counts_are_none() {
        let text = "MemTotal:         948 kB\nHugePages_Total:       3\nSwapFree: 18446744073709551615 kB\nBad: x kB\n";
        assert_eq!(size(text, "MemTotal"), Some(948 * 1024));
        assert_eq!(size(text, "SwapFree"), Some(u64::MAX));
        for none in ["HugePages_Total", "Bad", "Mem", "Cached"] {
            assert_eq!(size(text, none), None, "{none}");
        }
    }
}
