//! The titles of a table's rows in a column that is too narrow for some of them: what several rows share stands above
//! them, and nothing is cut.

use rubus_draw::text::width;

/// Columns by which the rows below a heading are moved to the right.
const INDENT: usize = 2;
/// Between what a title begins with and what it may share with others.
const COMMA: &str = ", ";

/// A line of a column of titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Stands alone: what the rows below it, which are moved to the right, have in common.
    Heading(String),
    /// The row with this index.
    Row {
        /// From 0, in the order of the titles that were given.
        index: usize,
        /// No wider than the column; empty where the whole title stands alone above it.
        title: String,
    },
}

/// Lays the titles out in `columns`, in their order as far as they all fit. Titles that go on alike after a first comma become a
/// group if one of them is too wide, be it the only one: their end is the heading, their beginnings are the rows, and the group stands
/// where its first title stood. What is too wide even then has a line to itself, above a row without words.
///
/// Two titles that differ are never laid out alike.
pub fn lay_out(titles: &[String], columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut is_done = vec![false; titles.len()];
    for (index, title) in titles.iter().enumerate() {
        if std::mem::replace(&mut is_done[index], true) {
            continue;
        }
        let group: Vec<usize> = (index..titles.len())
            .filter(|other| {
                *other == index || end(title).is_some_and(|own| end(&titles[*other]) == Some(own))
            })
            .collect();
        let is_tight = group.iter().any(|one| width(&titles[*one]) > columns);
        match end(title) {
            Some(shared) if is_tight => {
                lines.push(Line::Heading(shared.to_string()));
                for one in group {
                    is_done[one] = true;
                    lines.extend(row(one, beginning(&titles[one]), columns, INDENT));
                }
            }
            _ => lines.extend(row(index, title, columns, 0)),
        }
    }
    lines
}

/// A row, below a line of its own with the title if the column is too narrow for it.
fn row(index: usize, title: &str, columns: usize, indent: usize) -> Vec<Line> {
    let shown = " ".repeat(indent) + title;
    if width(&shown) <= columns {
        return vec![Line::Row { index, title: shown }];
    }
    let title = String::new();
    vec![Line::Heading(shown), Line::Row { index, title }]
}

fn beginning(title: &str) -> &str {
    title.split_once(COMMA).map_or(title, |(beginning, _)| beginning)
}

fn end(title: &str) -> Option<&str> {
    title.split_once(COMMA).map(|(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a reader sees it, with the row's number behind its title.
    fn seen(titles: &[&str], columns: usize) -> Vec<String> {
        let titles: Vec<String> = titles.iter().map(|title| title.to_string()).collect();
        let lines = lay_out(&titles, columns).into_iter();
        let seen = lines.map(|line| match line {
            Line::Heading(heading) => heading,
            Line::Row { index, title } => {
                assert!(width(&title) <= columns, "{title}");
                format!("{title}|{index}")
            }
        });
        seen.collect()
    }

    const TITLES: [&str; 5] = [
        "xxh3, digest, one core",
        "xxh3, digest, all cores",
        "linpack, one core",
        "crc32c, digest, one core",
        "reads",
    ];

    #[test]
    fn titles_that_fit_stand_as_they_are() {
        let plain: Vec<String> =
            (0..).zip(TITLES).map(|(i, title)| format!("{title}|{i}")).collect();
        assert_eq!(seen(&TITLES, 24), plain);
    }

    #[test]
    fn what_rows_share_stands_above_them_and_what_fits_stays() {
        assert_eq!(
            seen(&TITLES, 23),
            [
                "digest, one core",
                "  xxh3|0",
                "  crc32c|3",
                "xxh3, digest, all cores|1",
                "linpack, one core|2",
                "reads|4",
            ]
        );
    }

    #[test]
    fn what_is_too_wide_and_shares_nothing_has_a_line_to_itself() {
        assert_eq!(
            seen(&["a long name of a job", "reads"], 12),
            ["a long name of a job", "|0", "reads|1"]
        );
        assert_eq!(
            seen(&["a long name of a job, mixed", "reads, mixed"], 12),
            ["mixed", "  a long name of a job", "|0", "  reads|1"]
        );
    }
}
