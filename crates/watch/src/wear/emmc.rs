//! What an eMMC says of its wear, and a UFS disk in the same steps.
//!
//! JEDEC JESD84-B51, section 7.4 (extended CSD register): DEVICE_LIFE_TIME_EST_TYP_A (268) and _B (269) for its two kinds of
//! memory, and PRE_EOL_INFO (267) for its reserved blocks. The kernel has them in `life_time` ("0x01 0x02") and
//! `pre_eol_info` ("0x01") in the card's directory.
//!
//! UFS has the same steps in its health descriptor (JEDEC JESD220C, section 14.1.4.9): bPreEOLInfo, bDeviceLifeTimeEstA and B, which
//! the kernel has in `health_descriptor` of the controller.

use super::{Used, Warning};

/// Where a UFS disk's health descriptor is, from its directory: in that of the controller that it hangs on.
pub const UFS_HEALTH: &str = "device/../../../health_descriptor";

/// Values from this one on say that it is worn beyond what it was made for.
const EXCEEDED: u32 = 0x0b;

/// The share used, from `life_time`: that of the kind of memory that is worn more. None where neither is defined.
pub fn parse_life_time(text: &str) -> Option<Used> {
    let steps = text.split_whitespace().filter_map(hexadecimal);
    // 0 is "not defined"; what is beyond the last step is reserved.
    let most = steps.filter(|step| (1..=EXCEEDED).contains(step)).max()?;
    let tenths = f64::from(most);
    Some(match most {
        EXCEEDED => Used { min_percent: 100.0, max_percent: None },
        _ => Used { min_percent: (tenths - 1.0) * 10.0, max_percent: Some(tenths * 10.0) },
    })
}

/// What `pre_eol_info` warns of: 2 is said from 80 % of the reserved blocks on, 3 from 90 %.
pub fn parse_pre_eol_info(text: &str) -> Option<Warning> {
    match hexadecimal(text.trim())? {
        2 => Some(Warning::SpareLow),
        3 => Some(Warning::SpareNearlyUsedUp),
        _ => None,
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(text: &str) -> Option<(f64, Option<f64>)> {
        parse_life_time(text).map(|used| (used.min_percent, used.max_percent))
    }

    #[test]
    fn a_life_is_told_in_tenths_and_the_kind_that_is_worn_more_counts() {
        assert_eq!(used("0x01 0x01\n"), Some((0.0, Some(10.0))));
        assert_eq!(used("0x02 0x05\n"), Some((40.0, Some(50.0))));
        assert_eq!(used("0x0a 0x00\n"), Some((90.0, Some(100.0))));
        assert_eq!(used("0x0b 0x01\n"), Some((100.0, None)));
    }

    #[test]
    fn what_is_not_defined_says_nothing() {
        for text in ["0x00 0x00\n", "", "\n", "0xff 0x0c\n", "1 2", "0x 0x"] {
            assert_eq!(used(text), None, "{text:?}");
        }
        assert_eq!(used("0x00 0x03\n"), Some((20.0, Some(30.0))));
    }

    #[test]
    fn reserved_blocks_warn_from_80_percent_on() {
        assert_eq!(parse_pre_eol_info("0x00\n"), None);
        assert_eq!(parse_pre_eol_info("0x01\n"), None);
        assert_eq!(parse_pre_eol_info("0x02\n"), Some(Warning::SpareLow));
        assert_eq!(parse_pre_eol_info("0x03\n"), Some(Warning::SpareNearlyUsedUp));
        assert_eq!(parse_pre_eol_info("0x04\n"), None);
        assert_eq!(parse_pre_eol_info("what"), None);
    }
}
