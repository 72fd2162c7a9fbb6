//! The list of suites.

use rubus_vocabulary::spec::{RunsOn, SuiteSummary};
use rubus_vocabulary::units::bytes_iec;

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, hang, pad_right, width};
use rubus_draw::words::span;

/// No line is wider.
const COLUMNS: usize = 80;

/// The suites with what each answers and costs, in the order given, ending in a line feed.
pub fn render(suites: &[SuiteSummary], style: Style) -> String {
    let names = suites.iter().map(|suite| width(&suite.name) + " *".len());
    let name_columns = names.max().unwrap_or(0);
    let mut lines = Vec::new();
    for suite in suites {
        let device = match suite.runs_on {
            RunsOn::Device => " *",
            RunsOn::Anything | RunsOn::Directory | RunsOn::Memory => "",
        };
        let name = pad_right(&format!("{}{device}", suite.name), name_columns + 2);
        lines.extend(hang(&name, &suite.answers, COLUMNS));
        let costs = format!(
            "writes {}{}, takes {} ({} at most)",
            writes(suite),
            if suite.writes_bytes > 0 { " at most" } else { "" },
            span(round(suite.about_s)),
            span(round(suite.most_s))
        );
        let indent = " ".repeat(name_columns + 2);
        let costs = hang(&indent, &bind_units(&costs), COLUMNS);
        lines.extend(costs.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    let mut legend = "Slow disks write far less than the most, since the time is limited too; a directory with little \
                      free space is used less. --budget and --size change what is written and the size of the file."
        .to_string();
    if suites.iter().any(|suite| suite.runs_on == RunsOn::Device) {
        legend.push_str(" * only on a block device whose loss you confirm.");
    }
    legend.push_str(" Run one: rubus bench DIRECTORY --suite NAME");
    lines.push(String::new());
    let legend = hang("", &legend, COLUMNS);
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.join("\n") + "\n"
}

/// How much it writes at most.
fn writes(suite: &SuiteSummary) -> String {
    match suite.writes_bytes {
        0 => "nothing".into(),
        bytes => bytes_iec(bytes),
    }
}

/// Rounds a duration: a minute's work needs no exact seconds.
fn round(seconds: f64) -> f64 {
    match seconds {
        s if s < 100.0 => (s / 5.0).round() * 5.0,
        s => (s / 30.0).round() * 30.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_measure::suites::{Cost, Endurance, LISTED, Listed, Room, by_name, names};

    const DOCUMENT: &str = include_str!("../../../../docs/reference/suites.md");

    /// What a suite writes to a disk that is made for writing, where that is more than to a card.
    fn writes_to_durable(suite: &SuiteSummary) -> Option<String> {
        let mut room = Room::new("", 1 << 50, true);
        room.endurance = Endurance::High;
        let durable = by_name(&suite.name, &room)?.ok()?;
        let bytes = Cost::of(&durable, true).writes_bytes;
        let is_more = suite.writes_bytes > 0 && bytes > suite.writes_bytes;
        is_more.then(|| format!("; {} on an SSD or hard disk", bytes_iec(bytes)))
    }

    /// The row of a suite in the table of the page.
    fn row(suite: &SuiteSummary) -> String {
        // What it writes depends on the target.
        let (of_what, how) = match suite.name.as_str() {
            "capacity" => (" of a device; a directory's free space".into(), " for a sample"),
            _ => (writes_to_durable(suite).unwrap_or_default(), ""),
        };
        format!(
            "| `{}` | {} | {}{of_what} | {}{how} | {} |",
            suite.name,
            suite.answers,
            writes(suite),
            span(round(suite.about_s)),
            span(round(suite.most_s))
        )
    }

    #[test]
    fn the_page_of_suites_has_the_figures_of_the_program() {
        let table = DOCUMENT.split("\n## ").next().expect("a first part");
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
        let suites = LISTED.iter().filter_map(Listed::summary);
        let expected: Vec<String> = suites.map(|suite| row(&suite)).collect();
        let missing: Vec<&str> =
            expected.iter().map(String::as_str).filter(|row| !rows.contains(row)).collect();
        assert!(
            missing.is_empty(),
            "docs/reference/suites.md lacks these rows:\n{}",
            missing.join("\n")
        );
        let listed = rows.iter().map(|row| row.split('`').nth(1));
        let listed: Vec<&str> = listed.flatten().collect();
        assert_eq!(listed, names(), "the rows of docs/reference/suites.md");
    }

    #[test]
    fn a_list_says_what_each_costs() {
        let suite = |name: &str, about_s, writes_bytes, runs_on| SuiteSummary {
            name: name.into(),
            answers: "Which pipe is the narrowest?".into(),
            writes_bytes,
            about_s,
            most_s: about_s * 2.0,
            runs_on,
        };
        let list = [
            suite("quick", 62.0, 1 << 30, RunsOn::Anything),
            suite("whole", 1234.0, 7 << 30, RunsOn::Device),
            suite("ram", 20.0, 0, RunsOn::Memory),
        ];
        insta::assert_snapshot!(render(&list, Style::PLAIN));
    }
}
