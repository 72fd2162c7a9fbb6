//! Ranges in names, as Ansible writes them: `pi[01:20]`, `rack-[a:d]-[1:9:2]`.

use std::net::Ipv6Addr;

use super::MAX_BOARDS;

/// A pattern and its port, as in `pi:2222` or `[2001:db8::1]:2222`, without the brackets of an address; the colons of a range
/// are in brackets, and an address of IPv6 has several.
pub fn with_port(pattern: &str) -> (&str, Option<&str>) {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = match pattern.rsplit_once(':') {
        Some((name, port))
            if is_port(port) && (name.ends_with(']') || !outside_brackets(name).contains(':')) =>
        {
            (name, Some(port))
        }
        _ => (pattern, None),
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let address = address.filter(|address| address.parse::<Ipv6Addr>().is_ok());
    (address.unwrap_or(name), port)
}

fn outside_brackets(name: &str) -> String {
    let parts = name.split('[').enumerate();
    let outside = parts.map(|(at, part)| match at {
        0 => part,
        _ => part.split_once(']').map_or(part, |(_, behind)| behind),
    });
    outside.collect()
}

/// All names that a pattern means; a name without a range is itself. Brackets around anything else,
/// such as an IPv6 address, stay.
///
/// # Errors
/// When a range runs backwards, has a step that is none, or has too many members.
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
    // An omitted beginning is 0.
    let first = if first.is_empty() { "0" } else { first };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let backwards = || format!("the range [{inside}] runs backwards");
    // Lower case comes before upper case, as in Python's string.ascii_letters.
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    let letter = |text: &str| {
        let mut of_text = text.chars();
        let only = of_text.next().filter(|_| of_text.as_str().is_empty())?;
        letters.iter().position(|letter| *letter == only)
    };
    let is_of_numbers = is_number(first) && is_number(last);
    let of_letters = letter(first).zip(letter(last));
    if !is_of_numbers && of_letters.is_none() {
        return Ok(None);
    }
    let Ok(step @ 1..) = step.parse::<usize>() else {
        return Err(format!(
            "the range [{inside}] has the step '{step}', which is no whole number from 1 on"
        ));
    };
    if is_of_numbers {
        let numbers = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        let (from, to) = numbers.ok_or_else(|| format!("the range [{inside}] is too large"))?;
        if to < from {
            return Err(backwards());
        }
        if (to - from) / step >= MAX_BOARDS {
            return Err(format!("the range [{inside}] is more than {MAX_BOARDS} boards"));
        }
        // A leading zero says that all have as many digits.
        let is_filled = first.starts_with('0') && first.len() > 1;
        if is_filled && first.len() != last.len() {
            return Err(format!(
                "the range [{inside}] has {first} and {last} of different lengths"
            ));
        }
        // The name of a host has at most 255 letters (RFC 1035), and a format's width ends at 65,535.
        let width = if is_filled { first.len().min(255) } else { 0 };
        let all = (from..=to).step_by(step);
        return Ok(Some(all.map(|number| format!("{number:0width$}")).collect()));
    }
    let Some((from, to)) = of_letters else {
        return Ok(None);
    };
    if to < from {
        return Err(backwards());
    }
    let all = (from..=to).step_by(step);
    Ok(Some(all.map(|at| letters[at].to_string()).collect()))
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
        assert_eq!(all("pi[:3]"), "pi0 pi1 pi2 pi3");
        assert_eq!(all("k[x:B]"), "kx ky kz kA kB");
        assert_eq!(all("pi@[fe80::1]"), "pi@[fe80::1]");
        let long = format!("pi[{}1:{}2]", "0".repeat(70_000), "0".repeat(70_000));
        assert!(expand(&long).unwrap().iter().all(|name| name.len() < 300));
        assert_eq!(all("pi["), "pi[");
        assert_eq!(all("pi[é:ü]"), "pi[é:ü]");
    }

    #[test]
    fn a_port_stands_behind_the_last_colon_outside_of_brackets() {
        for (pattern, name, port) in [
            ("pi:22", "pi", Some("22")),
            ("pi[1:3]:2222", "pi[1:3]", Some("2222")),
            ("pi[1:3]-x:2222", "pi[1:3]-x", Some("2222")),
            ("[2001:db8::1]:2222", "2001:db8::1", Some("2222")),
            ("[2001:db8::1]", "2001:db8::1", None),
            ("2001:db8::5", "2001:db8::5", None),
            ("pi[1:3]", "pi[1:3]", None),
            ("pi:ssh", "pi:ssh", None),
            ("pi:", "pi:", None),
        ] {
            assert_eq!(with_port(pattern), (name, port), "{pattern}");
        }
    }

    #[test]
    fn a_slip_is_no_million_of_boards() {
        for wrong in ["pi[20:1]", "pi[z:a]", "pi[08:100]", "pi[1:99999999]", "a[1:200]b[1:200]"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
        for wrong in ["pi[9:1:-2]", "pi[1:9:0]", "pi[1:9:x]", "pi[a:e:]", "pi[1:9: 2]"] {
            assert!(expand(wrong).unwrap_err().contains("has the step"), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-c\\[\\]:0-9é]{0,14}") {
            let _ = expand(&text);
        }
    }
}
