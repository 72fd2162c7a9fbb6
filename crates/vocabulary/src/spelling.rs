//! The known name that was probably meant by one that does not exist.

/// How many characters have to be inserted, deleted or replaced to make one word of another (Levenshtein distance).
pub fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// The name with the fewest [`edits`] from what was typed; none where that is more than half of the letters, or more than two
/// and a quarter of them, since a guess at something else misleads.
pub fn nearest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    let (edits, name) = names.iter().map(|name| (edits(typed, name), *name)).min()?;
    let letters = typed.chars().count();
    (2 * edits <= letters && edits <= 2.max(letters / 4)).then_some(name)
}

/// "there is no suite 'qiuck'; did you mean 'quick'?", or without the question where nothing is near.
pub fn no_such(kind: &str, typed: &str, names: &[&str]) -> String {
    match nearest(typed, names) {
        Some(name) => format!("there is no {kind} '{typed}'; did you mean '{name}'?"),
        None => format!("there is no {kind} '{typed}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "über"), 4);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        let names = ["full", "quick", "commit", "ram", "format"];
        assert_eq!(nearest("qiuck", &names), Some("quick"));
        assert_eq!(nearest("comit", &names), Some("commit"));
        assert_eq!(nearest("qiuck", &[]), None);
    }

    #[test]
    fn where_nothing_is_near_nothing_is_guessed() {
        let names = ["full", "quick", "commit", "ram", "format", "raid0"];
        for typed in ["zz", "foo", "x", "", "benchmark"] {
            assert_eq!(nearest(typed, &names), None, "{typed}");
        }
        assert_eq!(nearest("purpose", &["verbose"]), None);
        assert_eq!(no_such("suite", "zz", &names), "there is no suite 'zz'");
        assert_eq!(
            no_such("suite", "ful", &names),
            "there is no suite 'ful'; did you mean 'full'?"
        );
    }
}
