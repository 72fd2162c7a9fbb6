//! What the rules found, as a list by weight, and the rules themselves.

use crate::rules::{self, Explained, Rule, RuleFinding, Weight};

use rubus_draw::style::{Style, Tone};
use rubus_draw::text::{bind_units, clean, hang, pad_right};

/// How much of the list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The first ones, and how many more there are.
    First {
        /// Number of findings shown.
        count: usize,
        /// Where the others are ("rubus survey --verbose").
        others: &'static str,
    },
    /// All findings.
    All,
    /// All, each with the place where it was read and the source of what is claimed.
    WithSources,
}

/// Columns of the weight, with the gap behind it.
const WEIGHT_COLUMNS: usize = 8;

/// The list with its title, in lines of at most `columns`; none where nothing was found.
pub fn lines(found: &[&RuleFinding], shown: Shown, columns: usize, style: Style) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    let title = format!("Findings: {}", counts(found));
    let mut lines = vec![style.paint(Tone::Strong, &title)];
    let told = match shown {
        // One more is told rather than counted.
        Shown::First { count, .. } if found.len() > count + 1 => count,
        _ => found.len(),
    };
    for finding in &found[..told] {
        lines.extend(entry(finding, shown, columns, style));
    }
    if let (Shown::First { others, .. }, 1..) = (shown, found.len() - told) {
        lines.push(
            style.paint(Tone::Faint, &format!("  and {} more: {others}", found.len() - told)),
        );
    }
    lines
}

/// "1 danger, 4 costs, 2 hints".
pub fn counts(found: &[&RuleFinding]) -> String {
    let count = |weight, name: &str| {
        let of_it = found.iter().filter(|finding| finding.weight == weight);
        match of_it.count() {
            0 => None,
            1 => Some(format!("1 {name}")),
            more => Some(format!("{more} {name}s")),
        }
    };
    let counts =
        [count(Weight::Danger, "danger"), count(Weight::Cost, "cost"), count(Weight::Hint, "hint")];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn entry(finding: &RuleFinding, shown: Shown, columns: usize, style: Style) -> Vec<String> {
    let tone = match finding.weight {
        Weight::Danger => Tone::Bad,
        Weight::Cost => Tone::Warn,
        Weight::Hint => Tone::Plain,
    };
    let word = finding.weight.word();
    let first = format!("  {}", pad_right(word, WEIGHT_COLUMNS));
    let below = " ".repeat(first.len());
    let clean = |text: &str| bind_units(&clean(text));
    let mut said = hang(&first, &clean(&statement(finding)), columns);
    if let Some(line) = said.first_mut() {
        *line = line.replacen(word, &style.paint(tone, word), 1);
    }
    let remedy = format!("{} [{}]", remedy(finding), finding.rule);
    said.extend(hang(&format!("{below}→ "), &clean(&remedy), columns));
    if shown == Shown::WithSources {
        let origin = format!("read from {}; source: {}", finding.read_from, finding.source);
        let origin = hang(&below, &clean(&origin), columns);
        said.extend(origin.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    said
}

/// What was seen and what follows from it: "sda: … . The link carries about 35 MB/s instead of …".
pub fn statement(finding: &RuleFinding) -> String {
    let evidence = finding.evidence.trim_end_matches('.');
    format!("{}: {evidence}. {}", finding.about, finding.consequence)
}

/// What to do, with the command that does it.
fn remedy(finding: &RuleFinding) -> String {
    match &finding.command {
        Some(command) => format!("{} `{command}`", finding.fix),
        None => finding.fix.clone(),
    }
}

/// A kind of finding: when it speaks, its source, how to disprove it, and what of it is found on this machine.
pub fn explanation(
    kind: &Explained,
    here: &[RuleFinding],
    columns: usize,
    style: Style,
) -> Vec<String> {
    let clean = |text: &str| bind_units(&clean(text));
    let mut lines =
        vec![format!("{}: {}", style.paint(Tone::Strong, kind.code), kind.weight.word())];
    for (label, words) in
        [("when", kind.when), ("source", kind.source), ("disprove", kind.disproof)]
    {
        lines.extend(hang(&format!("  {}", pad_right(label, 10)), &clean(words), columns));
    }
    let here_label = format!("  {}", pad_right("here", 10));
    if here.is_empty() {
        let words = if kind.needs_figures {
            "needs measured figures: `rubus checkup` has it where it holds"
        } else {
            "not found on this machine"
        };
        lines.extend(hang(&here_label, words, columns));
    }
    for (at, finding) in here.iter().enumerate() {
        let first = if at == 0 { here_label.clone() } else { " ".repeat(12) };
        lines.extend(hang(&first, &clean(&statement(finding)), columns));
        lines.extend(hang(&format!("{}→ ", " ".repeat(12)), &clean(&remedy(finding)), columns));
    }
    lines
}

/// All rules with what would fire each, in lines of at most `columns`.
pub fn list(columns: usize, has_sources: bool, style: Style) -> String {
    let mut text = String::new();
    let kinds = [
        (false, "Of the machine, in `rubus survey`, `rubus checkup` and every bench"),
        (true, "Of what was measured, in `rubus checkup` and every bench"),
    ];
    for (needs_figures, title) in kinds {
        let of_kind: Vec<&Rule> =
            rules::all().filter(|rule| rule.needs_figures() == needs_figures).collect();
        let title = format!("{title}: {} rules", of_kind.len());
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&style.paint(Tone::Strong, &title));
        text.push('\n');
        for rule in of_kind {
            for line in described(rule, columns, has_sources, style) {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    text
}

/// Columns of the longest name of a rule, with the gap behind it.
const NAME_COLUMNS: usize = 32;

fn described(rule: &Rule, columns: usize, has_sources: bool, style: Style) -> Vec<String> {
    let first = format!(
        "  {}{}",
        pad_right(rule.weight.word(), WEIGHT_COLUMNS),
        pad_right(rule.name, NAME_COLUMNS)
    );
    let mut lines = hang(&first, &bind_units(rule.when), columns);
    if has_sources {
        let below = " ".repeat(first.len());
        let source = hang(&below, &bind_units(rule.source), columns);
        lines.extend(source.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_draw::text::width;
    use rubus_fixtures as fixture;

    fn found() -> Vec<RuleFinding> {
        rules::of_run(&fixture::slow_sd_card_run())
    }

    fn shown(shown: Shown, columns: usize) -> String {
        let found = found();
        lines(&found.iter().collect::<Vec<_>>(), shown, columns, Style::PLAIN).join("\n")
    }

    #[test]
    fn the_first_and_how_many_more() {
        let others = "on the page and in the JSON";
        insta::assert_snapshot!(shown(Shown::First { count: 3, others }, 80));
    }

    #[test]
    fn all_with_their_sources() {
        insta::assert_snapshot!(shown(Shown::WithSources, 96));
    }

    #[test]
    fn nothing_found_is_nothing_said() {
        assert!(lines(&[], Shown::All, 80, Style::PLAIN).is_empty());
    }

    #[test]
    fn one_more_is_told_rather_than_counted() {
        let found = found();
        let four: Vec<&RuleFinding> = found.iter().take(4).collect();
        let others = "elsewhere";
        let text = lines(&four, Shown::First { count: 3, others }, 80, Style::PLAIN).join("\n");
        assert!(!text.contains("more: elsewhere"), "{text}");
    }

    #[test]
    fn the_list_of_rules_keeps_within_its_columns_and_names_all() {
        let text = list(96, true, Style::PLAIN);
        for rule in rules::all() {
            assert!(rule.name.len() < NAME_COLUMNS, "{}", rule.name);
            assert!(text.contains(&format!(" {} ", rule.name)), "{}", rule.name);
        }
        for line in text.lines() {
            assert!(width(line) <= 96, "{line}");
        }
    }

    #[test]
    fn a_hostile_name_moves_no_cursor() {
        let mut finding = found().remove(0);
        finding.about = "disk\x1b[2J\r".repeat(30);
        let text = lines(&[&finding], Shown::WithSources, 80, Style::PLAIN).join("\n");
        assert!(!text.contains(['\x1b', '\r']));
        assert!(text.lines().all(|line| width(line) <= 80));
    }
}
