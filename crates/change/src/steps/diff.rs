//! The difference of two small texts, line by line, as a unified diff without positions.
//!
//! Files that a plan changes have some tens of lines: the longest common subsequence by the plain
//! table (Wagner & Fischer 1974) is quick enough and gives the shortest answer.

/// One line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line of both texts.
    Same(&'a str),
    /// Only in the old text.
    Removed(&'a str),
    /// Only in the new text.
    Added(&'a str),
}

/// More lines than this are not compared but shown as replaced.
const MAX_LINES: usize = 2000;

/// The difference from `old` to `new`.
pub fn lines<'a>(old: &'a str, new: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len().max(new.len()) > MAX_LINES {
        let removed = old.into_iter().map(Line::Removed);
        return removed.chain(new.into_iter().map(Line::Added)).collect();
    }
    // common[i][j]: length of the longest common subsequence of old[i..] and new[j..].
    let mut common = vec![vec![0_u16; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            lines.push(Line::Removed(old[i]));
            i += 1;
        } else {
            lines.push(Line::Added(new[j]));
            j += 1;
        }
    }
    lines
}

/// The difference with `around` lines of what is the same before and after each change; longer runs
/// are left out, marked by a gap (`None`).
pub fn with_context<'a>(old: &'a str, new: &'a str, around: usize) -> Vec<Option<Line<'a>>> {
    let lines = lines(old, new);
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let near: Vec<bool> = (0..lines.len())
        .map(|i| {
            let from = i.saturating_sub(around);
            let to = (i + around + 1).min(lines.len());
            lines[from..to].iter().any(is_change)
        })
        .collect();
    let mut shown = Vec::new();
    for (line, near) in lines.into_iter().zip(near) {
        if near {
            shown.push(Some(line));
        } else if shown.last().is_some_and(Option::is_some) || shown.is_empty() {
            shown.push(None);
        }
    }
    // A gap at either end says nothing.
    if shown.first() == Some(&None) {
        shown.remove(0);
    }
    if shown.last() == Some(&None) {
        shown.pop();
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Line::{Added, Removed, Same};
    use super::*;

    #[test]
    fn one_changed_line() {
        let old = "a\nb\nc\n";
        let new = "a\nB\nc\n";
        assert_eq!(lines(old, new), [Same("a"), Removed("b"), Added("B"), Same("c")]);
        assert_eq!(
            with_context("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nsix\n", 1),
            [Some(Same("5")), Some(Removed("6")), Some(Added("six"))]
        );
        assert_eq!(with_context("same\n", "same\n", 3), []);
    }

    #[test]
    fn far_changes_have_a_gap_between_them() {
        let old = "a\n1\n2\n3\n4\nb\n";
        let new = "A\n1\n2\n3\n4\nB\n";
        let gaps = with_context(old, new, 1).iter().filter(|l| l.is_none()).count();
        assert_eq!(gaps, 1);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_off(
            old in prop::collection::vec("[abc]?", 0..12),
            new in prop::collection::vec("[abc]?", 0..12),
        ) {
            let text = |lines: &[String]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
            let (old_text, new_text) = (text(&old), text(&new));
            let difference = lines(&old_text, &new_text);
            let side = |skip_added: bool| -> Vec<&str> {
                difference
                    .iter()
                    .filter_map(|line| match line {
                        Same(text) => Some(*text),
                        Removed(text) => skip_added.then_some(*text),
                        Added(text) => (!skip_added).then_some(*text),
                    })
                    .collect()
            };
            prop_assert_eq!(side(true), old_text.lines().collect::<Vec<_>>());
            prop_assert_eq!(side(false), new_text.lines().collect::<Vec<_>>());
        }
    }
}
