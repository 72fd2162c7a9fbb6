//! What sizes the stored objects have: from the command line or from the files of a directory.

use rubus_vocabulary::units::{bytes_iec, parse_size};
use serde::Serialize;

/// A size of objects, and the share of them that has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectShare {
    /// Size, bytes.
    pub bytes: u64,
    /// Share of the number of objects, 0 to 1.
    pub share: f64,
}

/// Reads `4KiB:60%,64KiB:30%,4MiB:10%`: shares of the number of objects, not of their bytes.
///
/// # Errors
/// What is not of that form, and shares that are not 100 % together.
pub fn parse(text: &str) -> Result<Vec<ObjectShare>, String> {
    let mut found = Vec::new();
    for part in text.split(',') {
        let bad = || {
            format!(
                "'{part}' is not a size and a share; write --objects 4KiB:60%,64KiB:30%,4MiB:10%"
            )
        };
        let (size, share) = part.split_once(':').ok_or_else(bad)?;
        let bytes = parse_size(size)?;
        let share = share.trim().strip_suffix('%').ok_or_else(bad)?;
        let share: f64 = share.trim().parse().map_err(|_| bad())?;
        if !(0.0..=100.0).contains(&share) || bytes == 0 || bytes > 1 << 50 {
            return Err(bad());
        }
        found.push(ObjectShare { bytes, share: share / 100.0 });
    }
    let sum: f64 = found.iter().map(|object| object.share).sum();
    if (sum - 1.0).abs() > 0.005 {
        return Err(format!(
            "the shares of --objects are {:.1} % together, not 100 %",
            sum * 100.0
        ));
    }
    Ok(found)
}

/// The sizes of files as shares, in classes of powers of two: each class is represented by the mean of its files.
/// Empty files become objects without data and are left out.
pub fn of_sizes(sizes: impl IntoIterator<Item = u64>) -> Vec<ObjectShare> {
    let mut classes = [(0u64, 0.0f64); 64];
    for bytes in sizes.into_iter().filter(|bytes| *bytes > 0) {
        let class = &mut classes[bytes.ilog2() as usize];
        class.0 += 1;
        class.1 += bytes as f64;
    }
    let total: u64 = classes.iter().map(|class| class.0).sum();
    let used = classes.iter().filter(|class| class.0 > 0);
    used.map(|(count, bytes)| ObjectShare {
        bytes: (bytes / *count as f64).round().max(1.0) as u64,
        share: *count as f64 / total as f64,
    })
    .collect()
}

/// As [`parse`] reads it, with enough digits to come back as the same.
pub fn spelled(objects: &[ObjectShare]) -> String {
    let part = |o: &ObjectShare| format!("{}:{:.6}%", o.bytes, o.share * 100.0);
    objects.iter().map(part).collect::<Vec<_>>().join(",")
}

/// In words: `60 % of 4.00 KiB, …`.
pub fn words(objects: &[ObjectShare]) -> String {
    let part = |o: &ObjectShare| format!("{:.0} % of {}", o.share * 100.0, bytes_iec(o.bytes));
    objects.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_must_be_whole() {
        let found = parse("4KiB:60%,64KiB:30%,4MiB:10%").unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[2].bytes, 4 << 20);
        for bad in
            ["", "4KiB", "4KiB:60", "4KiB:60%", "0:100%", "4KiB:-1%", "4KiB:50%,8KiB:60%", "x:100%"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_are_grouped_by_powers_of_two() {
        let found = of_sizes([0, 4096, 5000, 1 << 20, u64::MAX]);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].bytes, found[0].share), (4548, 0.5));
        assert!(of_sizes([]).is_empty());
    }
}
