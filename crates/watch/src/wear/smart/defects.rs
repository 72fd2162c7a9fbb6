//! How many blocks a SCSI disk has put in place of bad ones since it was made: its grown defect list (SBC-4, READ DEFECT DATA).

use serde_json::Value;

use super::lenient::{count, items};

/// From this version on, smartctl counts the list's entries; before, it gave their length in bytes (its ChangeLog, 2020-06-18).
const COUNTS_ENTRIES: (u64, u64) = (7, 2);
/// An entry has 4 bytes or 8, which smartctl does not tell.
const MAX_ENTRY_BYTES: u64 = 8;

/// Blocks that were replaced, at least.
pub fn grown(answer: &Value) -> Option<u64> {
    let listed = count(&answer["scsi_grown_defect_list"])?;
    let version: Vec<Option<u64>> =
        items(&answer["smartctl"]["version"]).into_iter().map(count).collect();
    let is_in_bytes = match version[..] {
        [Some(major), Some(minor), ..] => (major, minor) < COUNTS_ENTRIES,
        _ => false,
    };
    Some(if is_in_bytes { listed / MAX_ENTRY_BYTES } else { listed })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_length_in_bytes_is_no_count_of_blocks() {
        let told = |version: Value| {
            grown(&json!({"smartctl": {"version": version}, "scsi_grown_defect_list": 240}))
        };
        assert_eq!((told(json!([7, 0])), told(json!([7, 1]))), (Some(30), Some(30)));
        assert_eq!((told(json!([7, 2])), told(json!([7, 5]))), (Some(240), Some(240)));
        assert_eq!((told(json!([8, 0])), told(json!(null))), (Some(240), Some(240)));
        assert_eq!(grown(&json!({})), None);
    }
}
