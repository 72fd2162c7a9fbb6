//! `autoboot.txt`: which partition the firmware reads, before any other file.
//!
//! Source: Raspberry Pi documentation, "autoboot.txt": at most 512 bytes; the filters `[all]`, `[none]` and `[tryboot]`
//! alone; `boot_partition=` names the partition, `tryboot_a_b=1` has a trial read `config.txt` of the other partition in
//! place of `tryboot.txt`.

/// The file, in the first partition that the firmware can start from.
pub const FILE: &str = "autoboot.txt";
/// What is behind these bytes is not read.
const MAX_BYTES: usize = 512;

/// What the file says for one kind of start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Autoboot {
    /// The partition to read; absent: the one that the firmware takes by itself.
    pub boot_partition: Option<u32>,
    /// Whether a trial reads `config.txt`.
    pub tryboot_a_b: bool,
}

/// Reads the text for a usual start, or for the one on trial.
pub fn read(text: &str, is_trial: bool) -> Autoboot {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut said = Autoboot::default();
    let mut is_meant = true;
    for line in text[..end].lines().map(str::trim) {
        if let Some(filter) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_meant = match filter {
                "all" => true,
                "tryboot" => is_trial,
                // Others are not known there, and apply to nothing.
                _ => false,
            };
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| is_meant) else { continue };
        match name.trim() {
            "boot_partition" => said.boot_partition = value.trim().parse().ok(),
            "tryboot_a_b" => said.tryboot_a_b = value.trim() == "1",
            _ => {}
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_SYSTEMS: &str =
        "[all]\ntryboot_a_b=1\nboot_partition=2\n[tryboot]\nboot_partition=3\n";

    #[test]
    fn a_trial_reads_the_other_partition() {
        let usual = Autoboot { boot_partition: Some(2), tryboot_a_b: true };
        assert_eq!(read(TWO_SYSTEMS, false), usual);
        assert_eq!(read(TWO_SYSTEMS, true), Autoboot { boot_partition: Some(3), ..usual });
    }

    #[test]
    fn other_filters_and_comments_say_nothing() {
        let text = "# boot_partition=4\n[pi4]\nboot_partition=5\n[none]\nboot_partition=6\n";
        assert_eq!(read(text, false), Autoboot::default());
    }

    #[test]
    fn what_is_behind_the_first_sector_is_not_read() {
        let text = format!("{}\nboot_partition=2\n", "#".repeat(MAX_BYTES));
        assert_eq!(read(&text, false), Autoboot::default());
        // A letter of two bytes lies across the end.
        assert_eq!(read(&format!("{}ä", "#".repeat(MAX_BYTES - 1)), false), Autoboot::default());
    }
}
