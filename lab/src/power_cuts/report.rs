//! A campaign's results for people: a line for each cut, and a page with the counts and all rows.

use std::fmt::Write;

use super::{Moment, Results, Row, Way};

/// How the names begin that a card in a reader has here.
pub(super) const CARD: &str = "/dev/card";

/// Whether a root is on the card.
pub(super) fn is_from_card(root: &str) -> bool {
    root.contains("mmcblk") || root.contains(CARD)
}

impl Moment {
    fn kind(&self) -> &'static str {
        match self {
            Self::Random(_) => "at a random moment",
            Self::Record(_) => "after a record of the journal",
            Self::Sync(_) => "after another durable change",
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Random(after) => format!("after {:.1} s", after.as_secs_f64()),
            Self::Record(record) => format!("record: {record}"),
            Self::Sync(call) => call.clone(),
        }
    }
}

impl Row {
    /// When it was, and what was lost.
    fn cut(&self) -> String {
        let moment = self.moment.words();
        if self.unflushed.is_empty() { moment } else { format!("{moment}; {}", self.unflushed) }
    }

    fn verdict(&self) -> String {
        if self.wrong.is_empty() {
            "good".to_owned()
        } else {
            format!("BAD: {}", self.wrong.join("; "))
        }
    }
}

/// A row for a terminal.
#[must_use]
pub fn line(row: &Row) -> String {
    format!(
        "{:<6} {:<58} {:<24} {:<16} {} ({:.0} s)",
        row.way.word(),
        row.cut(),
        row.booted,
        row.ended,
        row.verdict(),
        row.took.as_secs_f64()
    )
}

/// Counts by kind and way, and every row; with `ended`, how much there was to cut.
#[must_use]
pub fn markdown(rows: &[Row], ended: Option<&Results>) -> String {
    let mut page = String::from(
        "| power cut | while | cuts | started from the card | from the disk | ended by resume | by undo | \
         nothing to end | bad |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let kinds =
        ["after a record of the journal", "after another durable change", "at a random moment"];
    for kind in kinds {
        for way in [Way::Apply, Way::Undo, Way::Verify] {
            let these = rows.iter().filter(|row| row.moment.kind() == kind && row.way == way);
            count(&mut page, kind, doing(way), &these.collect::<Vec<_>>());
        }
    }
    count(&mut page, "all", "", &rows.iter().collect::<Vec<_>>());
    page.push_str(&ended.map(|ended| totals(rows, ended)).unwrap_or_default());
    page.push_str("\n| while | cut | started | ended by | |\n|---|---|---|---|---|\n");
    for row in rows {
        let cells = [
            doing(row.way).to_owned(),
            row.cut(),
            row.booted.clone(),
            row.ended.clone(),
            row.verdict(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " "));
        // Writing to a string does not fail.
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    page
}

fn totals(rows: &[Row], ended: &Results) -> String {
    let at_records = |way: Way| {
        let at = |row: &&Row| matches!(row.moment, Moment::Record(_)) && row.way == way;
        rows.iter().filter(at).count()
    };
    let [applied, undone] = ended.records;
    let [apply, undo] = ended.lengths;
    format!(
        "\nRecords written and cut at: {applied} and {} while applying, {undone} and {} while undoing. \
         Without the cuts: applied in {:.0} s, undone in {:.0} s.\n",
        at_records(Way::Apply),
        at_records(Way::Undo),
        apply.as_secs_f64(),
        undo.as_secs_f64(),
    )
}

fn doing(way: Way) -> &'static str {
    match way {
        Way::Apply => "applying",
        Way::Undo => "undoing",
        Way::Verify => "keeping the trial",
    }
}

fn count(page: &mut String, kind: &str, doing: &str, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    let of = |wanted: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).count();
    let _ = writeln!(
        page,
        "| {kind} | {doing} | {} | {} | {} | {} | {} | {} | {} |",
        rows.len(),
        of(&|row| is_from_card(&row.booted)),
        of(&|row| row.booted.starts_with("/dev/") && !is_from_card(&row.booted)),
        of(&|row| row.ended.starts_with("rubus resume")),
        of(&|row| row.ended.starts_with("rubus undo")),
        of(&|row| row.ended == "nothing to end"),
        of(&|row| !row.wrong.is_empty()),
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(way: Way, moment: Moment, booted: &str, wrong: &[&str]) -> Row {
        Row {
            way,
            moment,
            unflushed: String::new(),
            booted: booted.to_owned(),
            ended: "rubus undo".to_owned(),
            wrong: wrong.iter().map(|&one| one.to_owned()).collect(),
            took: Duration::from_secs(9),
        }
    }

    #[test]
    fn the_page_counts_good_and_bad_cuts_and_names_each() {
        let second = Duration::from_secs(1);
        let results = Results {
            rows: vec![
                row(Way::Apply, Moment::Record("begun 1 (x)".into()), "/dev/mmcblk0p2 ext4", &[]),
                row(
                    Way::Apply,
                    Moment::Record("done 1 (x)".into()),
                    "/dev/sda1 btrfs",
                    &["lost /a|b"],
                ),
                row(Way::Undo, Moment::Random(second), "nothing", &["no start"]),
            ],
            records: [3, 2],
            lengths: [second, second],
        };
        let page = markdown(&results.rows, Some(&results));
        assert!(
            page.contains(
                "| after a record of the journal | applying | 2 | 1 | 1 | 0 | 2 | 0 | 1 |"
            ),
            "{page}"
        );
        assert!(page.contains("| all |  | 3 | 1 | 1 | 0 | 3 | 0 | 2 |"), "{page}");
        assert!(page.contains("3 and 2 while applying, 2 and 0 while undoing"), "{page}");
        assert!(page.contains(
            "| applying | record: done 1 (x) | /dev/sda1 btrfs | rubus undo | BAD: lost /a\\|b |"
        ));
        assert!(line(&results.rows[2]).contains("BAD: no start (9 s)"));
    }
}
