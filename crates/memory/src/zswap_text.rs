//! What zswap holds and did.

use crate::zswap::{Explained, Report, ZswapState};
use rubus_vocabulary::units::{bytes_iec, percent};

use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang};

/// The verdict, the figures, every parameter and counter with its meaning; ends in a line feed.
pub fn render(report: &Report, style: Style) -> String {
    let tone = match report.standing {
        ZswapState::Helps => Tone::Good,
        ZswapState::Full => Tone::Bad,
        ZswapState::HelpsLittle | ZswapState::WithoutSwap => Tone::Warn,
        ZswapState::DoesNotHelp => Tone::Bad,
        ZswapState::Absent | ZswapState::Off | ZswapState::Idle | ZswapState::Unknown => {
            Tone::Strong
        }
    };
    let mut lines: Vec<String> = hang("", &bind_units(&report.verdict), style.columns)
        .iter()
        .map(|line| style.paint(tone, line))
        .collect();
    lines.extend(next_step::lines(&report.next, style));
    let figures = figures(report);
    for (title, table) in [
        ("", figures),
        ("Parameters", explained(&report.parameters)),
        ("Counters since the start", explained(&report.counters)),
    ] {
        if table.is_empty() {
            continue;
        }
        lines.push(String::new());
        if !title.is_empty() {
            lines.push(style.paint(Tone::Strong, title));
        }
        lines.extend(table.lines_wrapped(style));
    }
    if let (Some(why), false) = (&report.counters_unknown, report.standing == ZswapState::Absent) {
        lines.push(String::new());
        let words = format!("There are no counters: {why}.");
        let words = hang("", &words, style.columns);
        lines.extend(words.iter().map(|line| style.paint(Tone::Faint, line)));
    }
    lines.join("\n") + "\n"
}

fn figures(report: &Report) -> Table {
    let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let mut row = |name: &str, value: Option<String>, words: String| {
        if let Some(value) = value {
            table.row(vec![name.into(), value.into(), Cell::toned(&words, Tone::Faint)]);
        }
    };
    let most = if report.shares_are_upper_ends { "at most " } else { "" };
    row("holds", report.stored_bytes.map(bytes_iec), "when expanded".into());
    let of_limit = report.pool_bytes.zip(report.limit_bytes);
    let of_limit = of_limit.filter(|(_, limit)| *limit > 0).map(|(pool, limit)| {
        format!(
            "{} of the {} that it may take",
            percent(pool as f64 / limit as f64),
            bytes_iec(limit)
        )
    });
    row("in memory", report.pool_bytes.map(bytes_iec), of_limit.unwrap_or_default());
    let ratio = report.ratio.map(|ratio| format!("{ratio:.2}"));
    row("ratio", ratio, "bytes held by bytes taken".into());
    let hits = report.hit_share.map(percent);
    row("hits", hits, "of the pages needed again came out of memory".into());
    let refused = report.refused_share.map(|share| format!("{most}{}", percent(share)));
    row("refused", refused, "of the pages offered".into());
    let back = report.written_back_share.map(|share| format!("{most}{}", percent(share)));
    row("written back", back, "of the pages taken went on to the disk".into());
    table
}

fn explained(all: &[Explained]) -> Table {
    let mut table =
        Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]).indented(2);
    for one in all {
        table.row(vec![
            one.name.as_str().into(),
            one.value.as_str().into(),
            Cell::toned(&one.meaning, Tone::Faint),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_vocabulary::next_step::NextStep;

    fn report() -> Report {
        let one = |name: &str, value: &str| Explained {
            name: name.into(),
            value: value.into(),
            meaning: crate::zswap::meaning(name).into(),
        };
        Report {
            standing: ZswapState::Helps,
            verdict: "It helps: it holds 296 MiB in 110 MiB of memory.".into(),
            next: NextStep::by_hand("nothing: it keeps the disk from most of the work"),
            pool_bytes: Some(115_769_344),
            stored_bytes: Some(310_038_528),
            ratio: Some(2.678),
            limit_bytes: Some(145_039_000),
            hit_share: Some(0.97),
            refused_share: Some(0.384),
            written_back_share: None,
            shares_are_upper_ends: true,
            parameters: vec![one("enabled", "Y"), one("max_pool_percent", "15")],
            counters: vec![
                one("stored_pages", "75693"),
                one("reject_compress_poor", "67240"),
                one("pool_limit_hit", "12045"),
            ],
            counters_unknown: None,
        }
    }

    #[test]
    fn one_that_helps() {
        let text = render(&report(), Style::PLAIN);
        assert!(text.lines().all(|line| rubus_draw::text::width(line) <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn one_that_is_off_and_of_which_only_root_is_told() {
        let off = Report {
            standing: ZswapState::Off,
            verdict: "zswap is off.".into(),
            next: NextStep::command(&["rubus", "plan", "zswap"], "to turn it on"),
            pool_bytes: None,
            stored_bytes: None,
            ratio: None,
            limit_bytes: None,
            hit_share: None,
            refused_share: None,
            written_back_share: None,
            counters: Vec::new(),
            counters_unknown: Some("only root may read it".into()),
            ..report()
        };
        insta::assert_snapshot!(render(&off, Style::PLAIN));
    }
}
