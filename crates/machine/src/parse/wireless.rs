//! `/proc/net/wireless`: how strongly a radio link is received.
//!
//! Format: `wireless_seq_printf_stats()` in the kernel's net/wireless/wext-proc.c: interface, status, quality, level and noise,
//! a dot behind each that was measured since the last look. A level below zero is in dBm.

/// The received level of an interface, in dBm; nothing where it is none of radio, or its driver counts in other units.
pub fn level_dbm(text: &str, interface: &str) -> Option<i32> {
    let mut lines = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let (_, rest) = lines.find(|(name, _)| *name == interface)?;
    let level = rest.split_whitespace().nth(2)?;
    let level: i32 = level.trim_end_matches('.').parse().ok()?;
    (-120..0).contains(&level).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
 wlan0: 0000   54.  -56.  -256        0      0      0      0      0        0
 wlan1: 0000   70   200   0        0      0      0      0      0        0
";

    #[test]
    fn the_level_is_read_where_it_is_one() {
        assert_eq!(level_dbm(TEXT, "wlan0"), Some(-56));
        assert_eq!(level_dbm(TEXT, "wlan1"), None);
        assert_eq!(level_dbm(TEXT, "eth0"), None);
        assert_eq!(level_dbm("", "wlan0"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n]{0,200}") {
            level_dbm(&text, "wlan0");
        }
    }
}
