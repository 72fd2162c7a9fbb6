//! Ranges in names, as Ansible writes them: `pi[01:20]`, `rack-[a:d]-[1:9:2]`.

use super::MAX_BOARDS;

/// All names that a pattern means; a name without a range is itself. Brackets around anything else,
/// such as an IPv6 address, stay.
///
/// # Errors
/// When a range runs backwards or has too many members.
pub fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some(start) = rest.find('[') {
        let (before, bracket) = rest.split_at(start);
        let end = bracket.find(']');
        let inside = end.map(|end| &bracket[1..end]);
        let members = inside.map_or(Ok(None), members)?;
        let (Some(end), Some(members)) = (end, members) else {
            names.iter_mut().for_each(|name| name.push_str(&rest[..=start]));
            rest = &rest[start + 1..];
            continue;
        };
        if names.len().saturating_mul(members.len()) > MAX_BOARDS {
            return Err(format!("{pattern} is more than {MAX_BOARDS} boards"));
        }
        let with = |name: &String| {
            let name = format!("{name}{before}");
            let all: Vec<_> = members.iter().map(|one| format!("{name}{one}")).collect();
            all
        };
        names = names.iter().flat_map(with).collect();
        rest = &bracket[end + 1..];
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// The members of `01:20`, `1:9:2` or `a:d`; none where it is no range.
fn members(inside: &str) -> Result<Option<Vec<String>>, String> {
    let parts: Vec<&str> = inside.split(':').collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Ok(None),
    };
    let Ok(step @ 1..) = step.parse::<usize>() else {
        return Ok(None);
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let backwards = || format!("the range [{inside}] runs backwards");
    if is_number(first) && is_number(last) {
        let numbers = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        let (from, to) = numbers.ok_or_else(|| format!("the range [{inside}] is too large"))?;
        if to < from {
            return Err(backwards());
        }
        if (to - from) / step >= MAX_BOARDS {
            return Err(format!("the range [{inside}] is more than {MAX_BOARDS} boards"));
        }
        // A leading zero says that all have as many digits.
        let width = if first.starts_with('0') { first.len() } else { 0 };
        let all = (from..=to).step_by(step);
        return Ok(Some(all.map(|number| format!("{number:0width$}")).collect()));
    }
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    let Some((from, to)) = letter(first).zip(letter(last)) else {
        return Ok(None);
    };
    if to < from {
        return Err(backwards());
    }
    let all = (from..=to).step_by(step);
    Ok(Some(all.map(|letter| char::from(letter).to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_ansible() {
        let all = |pattern: &str| expand(pattern).unwrap().join(" ");
        assert_eq!(all("pi"), "pi");
        assert_eq!(all("pi[08:11]"), "pi08 pi09 pi10 pi11");
        assert_eq!(all("pi[8:10].lan"), "pi8.lan pi9.lan pi10.lan");
        assert_eq!(all("r[a:b]n[1:5:2]"), "ran1 ran3 ran5 rbn1 rbn3 rbn5");
        assert_eq!(all("pi@[fe80::1]"), "pi@[fe80::1]");
        assert_eq!(all("pi["), "pi[");
        assert_eq!(all("pi[é:ü]"), "pi[é:ü]");
    }

    #[test]
    fn a_slip_is_no_million_of_boards() {
        for wrong in ["pi[20:1]", "pi[z:a]", "pi[1:99999999]", "a[1:200]b[1:200]"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-c\\[\\]:0-9é]{0,14}") {
            let _ = expand(&text);
        }
    }
}
