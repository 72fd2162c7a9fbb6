//! Whole numbers of YAML 1.1 (yaml.org/type/int.html), as PyYAML reads them for Ansible: `0022` is 18, `1:30:00` is 5400.

/// The number that a plain word is, in decimal. None if it is no whole number, or too large for any address.
pub fn decimal(word: &str) -> Option<String> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let number = magnitude(digits)?;
    let sign = if word.starts_with('-') && number > 0 { "-" } else { "" };
    Some(format!("{sign}{number}"))
}

fn magnitude(digits: &str) -> Option<u64> {
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let plain = digits.replace('_', "");
    for (prefix, base) in [("0b", 2), ("0x", 16)] {
        if let Some(rest) = plain.strip_prefix(prefix) {
            return of_base(rest, base);
        }
    }
    match plain.split_once(':') {
        Some((first, rest)) if !plain.starts_with('0') => sexagesimal(of_base(first, 10)?, rest),
        Some(_) => None,
        None if plain.starts_with('0') => of_base(&plain, 8),
        None => of_base(&plain, 10),
    }
}

fn of_base(digits: &str, base: u32) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    if is_number { u64::from_str_radix(digits, base).ok() } else { None }
}

fn sexagesimal(first: u64, rest: &str) -> Option<u64> {
    rest.split(':').try_fold(first, |number, part| {
        let digit = of_base(part, 10).filter(|digit| *digit < 60 && part.len() <= 2)?;
        number.checked_mul(60)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_numbers_that_pyyaml_makes_of_them() {
        for (word, number) in [
            ("0022", "18"),
            ("02000", "1024"),
            ("0", "0"),
            ("-0", "0"),
            ("007", "7"),
            ("-010", "-8"),
            ("+22", "22"),
            ("22_00", "2200"),
            ("0_022", "18"),
            ("0x16", "22"),
            ("-0x1F", "-31"),
            ("0b10110", "22"),
            ("10:30", "630"),
            ("190:20:30", "685230"),
        ] {
            assert_eq!(decimal(word).as_deref(), Some(number), "{word}");
        }
        for word in [
            "",
            "-",
            "_1",
            "08",
            "0800",
            "0o22",
            "0x",
            "0b",
            "0b+1",
            "1e3",
            "22.0",
            "01:30",
            "1:60",
            "1:030",
            "1:",
            "2001:db8::1",
            "10.0.0.1",
            "h1",
            "99999999999999999999",
        ] {
            assert_eq!(decimal(word), None, "{word}");
        }
    }
}
