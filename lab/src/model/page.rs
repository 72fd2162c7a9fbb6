//! Every case as Markdown: what was measured for it, what came out, and why it misses.

use std::fmt::Write as _;

use rubus_advise::seeds::{self, SeedCase};

use super::Subject;
use super::summary::percent;
use super::table::{DISTURBED, Row, number};
use super::titles::title;

/// The page of all cases, subject by subject, and of the published figures.
#[must_use]
pub fn every_case(rows: &[Row]) -> String {
    let mut page = String::from(
        "# Every case of the model\n\n\
         What the columns and the kinds of cases mean, and the summary: [How right the model is](MODEL.md). `!` marks a case that was \
         disturbed to the end, a number the reason of a miss.\n",
    );
    for subject in Subject::ALL {
        let cases: Vec<&Row> = rows.iter().filter(|row| row.subject == subject).collect();
        if !cases.is_empty() {
            table(&mut page, subject, &cases);
        }
    }
    published(&mut page, &seeds::cases());
    page
}

fn table(page: &mut String, subject: Subject, rows: &[&Row]) {
    let _ = writeln!(page, "\n## {}\n\n{}\n", title(subject), subject.about());
    page.push_str("| case | kind | alternatives | predicted | measured | unit | error | holds | narrowest pipe | starved | |\n|---|---|---|---:|---:|---|---:|---|---|---:|---|\n");
    let mut notes: Vec<&str> = Vec::new();
    for row in rows {
        let is_disturbed = |mark: &&String| *mark == DISTURBED;
        let mut marks: Vec<String> =
            row.marks.iter().filter(|mark| !is_disturbed(mark)).cloned().collect();
        if !row.why.is_empty() {
            marks.push(format!("({})", number_of(&row.why, &mut notes)));
        }
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} % | {} | {} | {} %{} | {} |",
            row.case,
            row.kind.name(),
            row.alternatives,
            row.predicted,
            row.measured,
            row.unit,
            row.error_percent,
            if row.holds { "yes" } else { "no" },
            row.narrowest_pipe,
            row.starved_percent,
            if row.marks.iter().any(|mark| is_disturbed(&mark)) { " !" } else { "" },
            marks.join(", ")
        );
    }
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(page, "\n({}) {}.", i + 1, sentence(note));
    }
}

/// The number of a note among those of its table, from 1.
fn number_of<'a>(note: &'a str, notes: &mut Vec<&'a str>) -> usize {
    let known = notes.iter().position(|other| *other == note);
    known.unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    }) + 1
}

fn published(page: &mut String, cases: &[SeedCase]) {
    let agree = cases.iter().filter(|case| case.agrees()).count();
    let _ = writeln!(
        page,
        "\n## Figures that others published\n\n\
         Nothing was measured for these: the stages come from some figures of an article and another one is predicted. {agree} of {} agree: \
         they differ by less than {}, or the interval of the prediction holds the figure. For those that do not, the last column begins \
         with \"Misses\".\n",
        cases.len(),
        percent(seeds::AGREES_WITHIN)
    );
    page.push_str("| figure | stages from | predicted | published | unit | error | why |\n|---|---|---:|---:|---|---:|---|\n");
    for case in cases {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {:+.1} % | {} |",
            case.what,
            case.stages,
            number(case.predicted.value),
            number(case.published),
            case.unit,
            case.error() * 100.0,
            case.why
        );
    }
    let mut sources: Vec<&str> = cases.iter().map(|case| case.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let _ = writeln!(page, "\nFrom {}.", sources.join("; "));
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::tests::case;

    #[test]
    fn each_row_has_its_kind_its_alternatives_and_its_note() {
        let mut three = case("three", 1e6, 1e6);
        three.is_disturbed = false;
        three.again = 1;
        three.note = None;
        let cases = [case("one", 1e6, 1.25e6), case("two", 2e6, 1e6), three];
        let rows: Vec<Row> = cases.iter().map(Row::from).collect();
        let page = every_case(&rows);
        let lines: Vec<&str> = page.lines().filter(|line| line.contains("| 4 KiB |")).collect();
        assert_eq!(
            lines,
            [
                "| one | composition | 4 KiB | 1.00 | 1.25 | MB/s | -20.0 % | no | port | 50 % ! | (1) |",
                "| two | composition | 4 KiB | 2.00 | 1.00 | MB/s | +100.0 % | no | port | 50 % ! | (1) |",
                "| three | composition | 4 KiB | 1.00 | 1.00 | MB/s | +0.0 % | yes | port | 50 % | measured 2 times |",
            ]
        );
        assert!(page.contains("\n(1) The port was slow.\n"), "{page}");
        assert!(page.contains("\n## Stripes, on ports of their own and on one\n"), "{page}");
        assert!(page.contains("\n## Figures that others published\n"), "{page}");
        assert!(!page.contains("\n## Swap\n"), "{page}");
    }
}
