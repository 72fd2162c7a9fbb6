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
        let writes = match suite.writes_bytes {
            0 => "nothing".into(),
            bytes => bytes_iec(bytes),
        };
        let name = pad_right(&format!("{}{device}", suite.name), name_columns + 2);
        lines.extend(hang(&name, &suite.answers, COLUMNS));
        let costs = format!(
            "writes {writes}{}, takes {} ({} at most)",
            if suite.writes_bytes > 0 {
                " at most"
            } else {
                ""
            },
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

/// Nobody wants to know seconds of what takes minutes.
fn round(seconds: f64) -> f64 {
    match seconds {
        s if s < 100.0 => (s / 5.0).round() * 5.0,
        s => (s / 30.0).round() * 30.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
