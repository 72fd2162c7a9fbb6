//! The values of options: numbers with units and arithmetic, times, ranges, splits, switches.
//!
//! After "Parameter types" and "Units" of fio's manual.

use rubus_vocabulary::spec::{BytePattern, Sizes};

/// What `k`, `kb` and `ki` mean: 1024 (fio's default) or 1000; `kib` is the other one (fio's `parse.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KbBase(pub u64);

impl Default for KbBase {
    fn default() -> Self {
        KbBase(1024)
    }
}

/// An amount of data, as it may be given: absolute or as a share of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Bytes(u64),
    /// Percent of the file's or device's size, 0 to 100.
    Percent(f64),
}

impl Amount {
    /// In bytes of a file of that size.
    pub fn of(self, file_bytes: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            // A share of a size is never above the size.
            Amount::Percent(percent) => (file_bytes as f64 * percent / 100.0) as u64,
        }
    }
}

/// A whole number: `4096`, `0x1000`, `4k`, `4KiB`, `(2+2)*1k`.
///
/// # Errors
/// In words, when it is none, is negative or does not fit 64 bits.
pub fn int(text: &str, base: KbBase) -> Result<u64, String> {
    let value = signed(text, base)?;
    u64::try_from(value).map_err(|_| format!("'{text}' must be from 0 to 2^64"))
}

/// As [`int`], at most `most`.
pub fn small(text: &str, base: KbBase, most: u32) -> Result<u32, String> {
    let value = int(text, base)?;
    let fits = u32::try_from(value).ok().filter(|&value| value <= most);
    fits.ok_or_else(|| format!("'{text}' is more than {most}"))
}

/// As [`int`], possibly negative.
pub fn signed(text: &str, base: KbBase) -> Result<i128, String> {
    let mut expression = Expression { rest: text.trim(), base, depth: 0 };
    let value = expression.sum().filter(|_| expression.rest.is_empty());
    value.ok_or_else(|| format!("invalid number '{text}'; write it like 4096, 4k or 1g"))
}

struct Expression<'a> {
    rest: &'a str,
    base: KbBase,
    depth: u32,
}

impl Expression<'_> {
    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        loop {
            self.skip_space();
            if self.takes('+') {
                value = value.checked_add(self.product()?)?;
            } else if self.takes('-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.factor()?;
        loop {
            self.skip_space();
            if self.takes('*') {
                value = value.checked_mul(self.factor()?)?;
            } else if self.takes('/') {
                value = value.checked_div(self.factor()?)?;
            } else if self.takes('%') {
                value = value.checked_rem(self.factor()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn factor(&mut self) -> Option<i128> {
        self.skip_space();
        self.depth += 1;
        // Deeper than any sane expression: an attack on the stack.
        if self.depth > 64 {
            return None;
        }
        let value = if self.takes('-') {
            self.factor()?.checked_neg()
        } else if self.takes('(') {
            let value = self.sum()?;
            self.skip_space();
            let closed = self.takes(')');
            let value = closed.then_some(value)?;
            self.unit().and_then(|factor| value.checked_mul(factor))
        } else {
            self.number()
        };
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Option<i128> {
        let hexadecimal = self.rest.strip_prefix("0x");
        if let Some(digits) = hexadecimal.or_else(|| self.rest.strip_prefix("0X")) {
            let length = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            let value = i128::from_str_radix(&digits[..length], 16).ok()?;
            self.rest = &digits[length..];
            return Some(value);
        }
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let length = self.rest.find(|c| !is_digit(c)).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let factor = self.unit()?;
        if digits.contains('.') {
            let value = digits.parse::<f64>().ok()? * factor as f64;
            return (value < 2f64.powi(64)).then(|| value.round() as i128);
        }
        digits.parse::<i128>().ok()?.checked_mul(factor)
    }

    /// The factor of the unit that follows, 1 where there is none.
    fn unit(&mut self) -> Option<i128> {
        let length = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (unit, rest) = self.rest.split_at(length);
        let unit = unit.to_ascii_lowercase();
        let (prefix, base) = match unit.strip_suffix("ib") {
            Some(prefix) => (prefix, if self.base.0 == 1024 { 1000 } else { 1024 }),
            None => (unit.strip_suffix(['b', 'i']).unwrap_or(&unit), self.base.0),
        };
        let power = match prefix {
            "" if unit.is_empty() || unit == "b" => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            _ => return None,
        };
        self.rest = rest;
        Some(i128::from(base).pow(power))
    }

    fn takes(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

/// An amount: a number, or a percentage such as `30%`.
pub fn amount(text: &str, base: KbBase) -> Result<Amount, String> {
    if text.trim().ends_with('%') {
        // Scripts that are templates double the sign, and fio takes it.
        let percent = float(text.trim().trim_end_matches('%'))?;
        return if (0.0..=100.0).contains(&percent) {
            Ok(Amount::Percent(percent))
        } else {
            Err(format!("'{text}' is not from 0 % to 100 %"))
        };
    }
    if text.trim().ends_with(['z', 'Z']) {
        return Err(format!("'{text}' counts zones of a zoned device; give bytes instead"));
    }
    int(text, base).map(Amount::Bytes)
}

/// A time in microseconds; `unit_us` is what a bare number counts.
pub fn time_us(text: &str, unit_us: u64) -> Result<u64, String> {
    let trimmed = text.trim();
    let bad = || format!("invalid duration '{text}'; write it like 30, 30s, 5m, 100ms or 50us");
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => unit_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(bad()),
    };
    let number = int(number, KbBase::default()).map_err(|_| bad())?;
    number.checked_mul(factor).ok_or_else(bad)
}

/// A switch: nothing, `1` or `0`.
pub fn switch(value: Option<&str>) -> Result<bool, String> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "1" | "true" | "on" | "yes") => Ok(true),
        Some("0" | "false" | "off" | "no") => Ok(false),
        Some(other) => match int(other, KbBase::default()) {
            Ok(number) => Ok(number != 0),
            Err(_) => Err(format!("'{other}' is neither 0 nor 1")),
        },
    }
}

/// A decimal number.
pub fn float(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok();
    let value = value.filter(|value| value.is_finite());
    value.ok_or_else(|| format!("invalid number '{text}'"))
}

/// Values for reads and for writes: `4k` is for both, `4k,8k` for each, `4k,` for reads only, `,8k`
/// for writes only. A third value is for trims, which do not exist here.
pub fn per_direction<T: Clone>(
    text: &str,
    mut parse: impl FnMut(&str) -> Result<T, String>,
) -> Result<[Option<T>; 2], String> {
    let mut parts = text.splitn(3, ',');
    let mut part = || -> Result<Option<Option<T>>, String> {
        let Some(part) = parts.next() else {
            return Ok(None);
        };
        match part.trim() {
            "" => Ok(Some(None)),
            part => parse(part).map(|value| Some(Some(value))),
        }
    };
    let read = part()?.flatten();
    let write = part()?;
    part()?;
    Ok([read.clone(), write.unwrap_or(read)])
}

/// A range of sizes such as `4k-16k` or `4k:16k`, the smaller first.
pub fn range(text: &str, base: KbBase) -> Result<(u64, u64), String> {
    let (low, high) = match text.split_once(['-', ':']) {
        Some((low, high)) => (int(low, base)?, int(high, base)?),
        None => {
            let only = int(text, base)?;
            (only, only)
        }
    };
    Ok((low.min(high), low.max(high)))
}

/// Sizes with their shares: `4k/10:64k/50:32k/40`. Those without a share, or with 0, divide what is left. Where none does,
/// it goes to the largest share, of equal ones to the last.
pub fn split(text: &str, base: KbBase) -> Result<Sizes, String> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, share) = match part.split_once('/') {
            None => (part, None),
            Some((size, share)) if share.trim().is_empty() => (size, None),
            Some((size, share)) => (size, Some(small(share.trim_end_matches('%'), base, 100)?)),
        };
        parts.push((block(size, base)?, share.filter(|share| *share > 0)));
    }
    let given: u32 = parts.iter().filter_map(|(_, share)| *share).sum();
    let open = parts.iter().filter(|(_, share)| share.is_none()).count() as u32;
    if given > 100 {
        return Err(format!("the shares of '{text}' add up to {given} %, more than 100 %"));
    }
    let left = 100 - given;
    let mut opened = 0;
    let sizes = parts.into_iter().map(|(size, share)| {
        let share = share.unwrap_or_else(|| {
            opened += 1;
            // The last ones get what the division leaves over, so that it adds up to 100.
            left * opened / open - left * (opened - 1) / open
        });
        (size, share as u8)
    });
    let mut sizes: Vec<(u32, u8)> = sizes.collect();
    if open == 0
        && let Some((_, largest)) = sizes.iter_mut().max_by_key(|(_, share)| *share)
    {
        *largest += left as u8;
    }
    sizes.retain(|(_, share)| *share > 0);
    Ok(Sizes::Split(sizes))
}

/// A pattern of bytes: `0xdeadbeef` in the order of its digits, `"text"`, or a decimal number with its
/// lowest byte first. Nothing for a pattern of fio's that is not done here.
///
/// # Errors
/// In words, when it is none.
pub fn pattern(text: &str) -> Result<Option<BytePattern>, String> {
    let text = text.trim();
    let bad = || format!("invalid pattern '{text}'; write it like 0xdeadbeef, \"text\" or 255");
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_string() };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return if digits.contains(['"', '\'', '-', '+']) { Ok(None) } else { Err(bad()) };
        }
        let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
        let bytes: Vec<u8> = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
        return Ok(BytePattern::new(&bytes));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        return match quoted.split_once('"') {
            Some(("", _)) | None => Err(bad()),
            Some((inner, "")) => Ok(BytePattern::new(inner.as_bytes())),
            Some(_) => Ok(None),
        };
    }
    if text.starts_with('\'') || text.starts_with('-') {
        return Ok(None);
    }
    let number: u64 = text.parse().map_err(|_| bad())?;
    let bytes = number.to_le_bytes();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    Ok(BytePattern::new(&bytes[..length]))
}

/// A size of operations: from 1 byte to 1 GiB.
pub fn block(text: &str, base: KbBase) -> Result<u32, String> {
    match small(text, base, 1 << 30) {
        Ok(0) => Err("an operation has at least 1 byte".into()),
        Err(_) if signed(text, base).is_ok_and(|bytes| bytes < 0) => {
            Err(format!("'{text}' is negative; a range is written as bsrange=4k-64k"))
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KB: KbBase = KbBase(1024);

    #[test]
    fn units_mean_what_fio_says() {
        for text in ["4096", "4096b", "4k", "4K", "4kb", "4KB", "0x1000", "(1+3)*1k", "8k/2"] {
            assert_eq!(int(text, KB), Ok(4096), "{text}");
        }
        for text in ["4kib", "4KiB"] {
            assert_eq!(int(text, KB), Ok(4000), "{text}");
            assert_eq!(int(text, KbBase(1000)), Ok(4096), "{text}");
        }
        // Without its last letter it is no other unit than `k`, though Kubernetes writes sizes so.
        for text in ["4ki", "4Ki"] {
            assert_eq!(int(text, KB), Ok(4096), "{text}");
            assert_eq!(int(text, KbBase(1000)), Ok(4000), "{text}");
        }
        assert_eq!(int("1m", KbBase(1000)), Ok(1_000_000));
        assert_eq!(int("1.5g", KB), Ok(3 << 29));
        assert_eq!(signed("-8k", KB), Ok(-8192));
        for bad in
            ["", "k", "4x", "4i", "4kbi", "4kbb", "-1", "1+", "(1", "1/0", "99999999999999t", "4k4"]
        {
            assert!(int(bad, KB).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_units_or_take_the_options_own() {
        assert_eq!(time_us("30", 1_000_000), Ok(30_000_000));
        assert_eq!(time_us("30", 1), Ok(30));
        assert_eq!(time_us("5m", 1), Ok(300_000_000));
        assert_eq!(time_us("100ms", 1), Ok(100_000));
        assert!(time_us("5x", 1).is_err());
        assert!(time_us("", 1).is_err());
    }

    #[test]
    fn values_for_each_direction() {
        let parse = |text: &str| int(text, KB);
        assert_eq!(per_direction("4k", parse), Ok([Some(4096), Some(4096)]));
        assert_eq!(per_direction("4k,8k,16k", parse), Ok([Some(4096), Some(8192)]));
        assert_eq!(per_direction("4k,", parse), Ok([Some(4096), None]));
        assert_eq!(per_direction(",8k", parse), Ok([None, Some(8192)]));
        assert!(per_direction("4k,8k,x", parse).is_err());
    }

    #[test]
    fn splits_add_up() {
        let sizes = |text| split(text, KB);
        assert_eq!(
            sizes("4k/10:64k/50:32k/40"),
            Ok(Sizes::Split(vec![(4096, 10), (65536, 50), (32768, 40)]))
        );
        assert_eq!(
            sizes("4k/50:8k/:16k"),
            Ok(Sizes::Split(vec![(4096, 50), (8192, 25), (16384, 25)]))
        );
        let split =
            |parts: &[(u32, u8)]| -> Result<Sizes, String> { Ok(Sizes::Split(parts.to_vec())) };
        assert_eq!(sizes("4k/0:8k/50"), split(&[(4096, 50), (8192, 50)]));
        assert_eq!(sizes("4k/0:8k/100"), split(&[(8192, 100)]));
        assert_eq!(sizes("4k/1"), split(&[(4096, 100)]));
        assert_eq!(sizes("4k/20:8k/10"), split(&[(4096, 90), (8192, 10)]));
        assert_eq!(sizes("4k/30:8k/30"), split(&[(4096, 30), (8192, 70)]));
        assert!(sizes("4k/90:8k/20").is_err());
        assert!(sizes("0/100").is_err());
    }

    #[test]
    fn patterns_are_bytes() {
        let bytes = |text| pattern(text).unwrap().map(|pattern| pattern.bytes().to_vec());
        assert_eq!(bytes("0xdeadbeef"), Some(vec![0xde, 0xad, 0xbe, 0xef]));
        assert_eq!(bytes("0xabc"), Some(vec![0x0a, 0xbc]));
        assert_eq!(bytes("\"abcd\""), Some(b"abcd".to_vec()));
        assert_eq!((bytes("0"), bytes("258")), (Some(vec![0]), Some(vec![2, 1])));
        for not_done in ["'file'", "-12", "\"a\"0x12", "\"more than sixteen bytes\""] {
            assert_eq!(bytes(not_done), None, "{not_done}");
        }
        assert!(pattern("").is_err() && pattern("0xzz").is_err() && pattern("abc").is_err());
    }

    #[test]
    fn an_amount_may_be_a_share() {
        assert_eq!(amount("30%", KB), Ok(Amount::Percent(30.0)));
        assert_eq!(amount("100%%", KB), Ok(Amount::Percent(100.0)));
        assert_eq!(Amount::Percent(50.0).of(1 << 30), 1 << 29);
        assert!(amount("130%", KB).is_err());
        assert!(amount("8z", KB).is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-+*/%()0-9a-zA-Z.,: ]{0,40}", base in prop_oneof![Just(1000), Just(1024)]) {
            let base = KbBase(base);
            let _ = (int(&text, base), amount(&text, base), time_us(&text, 1), range(&text, base));
            let _ = (split(&text, base), per_direction(&text, |part| block(part, base)), float(&text));
        }

        #[test]
        fn a_printed_size_reads_back(value in 0u64..(1 << 40), unit in 0usize..4) {
            let (suffix, factor) = [("", 1), ("k", 1024), ("MB", 1 << 20), ("g", 1 << 30)][unit];
            prop_assert_eq!(int(&format!("{value}{suffix}"), KB).ok(), value.checked_mul(factor));
        }

        #[test]
        fn a_printed_split_reads_back(shares in proptest::collection::vec(1u8..=20, 1..5)) {
            let last = 100 - shares.iter().sum::<u8>();
            let mut parts: Vec<(u32, u8)> = shares.iter().zip(1u32..).map(|(&s, i)| (i * 512, s)).collect();
            parts.push((1 << 20, last));
            let text: Vec<String> = parts.iter().map(|(size, share)| format!("{size}/{share}")).collect();
            prop_assert_eq!(split(&text.join(":"), KB), Ok(Sizes::Split(parts.into_iter().filter(|p| p.1 > 0).collect())));
        }
    }
}
