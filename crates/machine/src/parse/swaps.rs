//! `/proc/swaps`: the active swap areas. Format: proc_swaps(5), Linux man-pages.

use rubus_vocabulary::mount_entry::unescape_octal;

/// One active swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapLine {
    /// Path of the file or device; the kernel's mark for a deleted file is taken off.
    pub path: String,
    /// "partition" or "file".
    pub kind: String,
    /// Size in bytes (the kernel prints KiB).
    pub size_bytes: u64,
    pub used_bytes: u64,
    /// The higher is used first.
    pub priority: i32,
}

/// Reads the whole file. Lines after the heading that do not have the documented form are
/// returned apart, so that a careful caller can refuse to go on.
pub fn parse(text: &str) -> (Vec<SwapLine>, Vec<String>) {
    let mut areas = Vec::new();
    let mut strange = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with("Filename") {
            continue;
        }
        match parse_line(line) {
            Some(area) => areas.push(area),
            None => strange.push(line.to_string()),
        }
    }
    (areas, strange)
}

fn parse_line(line: &str) -> Option<SwapLine> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [path, kind, size, used, priority] = fields[..] else {
        return None;
    };
    let path = unescape_octal(path);
    Some(SwapLine {
        path: path.strip_suffix(" (deleted)").unwrap_or(&path).to_string(),
        kind: kind.to_string(),
        size_bytes: size.parse::<u64>().ok()?.checked_mul(1024)?,
        used_bytes: used.parse::<u64>().ok()?.checked_mul(1024)?,
        priority: priority.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_in_bytes() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                    /var/swap                               file\t\t102396\t\t512\t\t-2\n\
                    /dev/zram0                              partition\t1048572\t\t0\t\t100\n\
                    /my\\040swap\\040(deleted)  file 8 0 -3\n";
        let (areas, strange) = parse(text);
        assert!(strange.is_empty());
        assert_eq!(areas.len(), 3);
        assert_eq!(areas[0].size_bytes, 102_396 * 1024);
        assert_eq!(areas[0].used_bytes, 512 * 1024);
        assert_eq!(areas[1].priority, 100);
        assert_eq!(areas[2].path, "/my swap");
    }

    #[test]
    fn strange_lines_are_told_and_not_swallowed() {
        let (areas, strange) = parse("Filename Type Size Used Priority\n/x file many 0 -2\n");
        assert!(areas.is_empty());
        assert_eq!(strange.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n]{0,300}") {
            parse(&text);
        }
    }
}
