//! The copy of a tree: its receipt, a comparison, and the line while it runs.

use std::fmt::Write;

use crate::receipt::{
    Comparison, Contents, CopyReceipt, Entries, Listing, Progress, Remark, Stage,
};
use rubus_vocabulary::units::{bytes_si, percent, rate_si};

use rubus_draw::style::{Style, Tone};

/// Examples of one sort that are shown; `--json` has more.
const SHOWN: usize = 10;
/// Columns of a line about an entry; paths may have thousands.
const LONGEST: usize = 160;

/// What was copied, and what went otherwise than planned.
pub fn receipt(receipt: &CopyReceipt, style: Style) -> String {
    let verdict = match (receipt.has_losses(), receipt.is_complete()) {
        (true, _) => style.paint(Tone::Bad, "with losses"),
        (false, true) => style.paint(Tone::Good, "complete"),
        (false, false) => style.paint(Tone::Warn, "complete but for what changed meanwhile"),
    };
    let (source, target) = (&receipt.source, &receipt.target);
    let how = match (receipt.pass, receipt.is_resumed) {
        (1, false) => format!("Copied {source} to {target}"),
        (1, true) => format!("Went on with the copy of {source} to {target}"),
        (pass, _) => format!("Brought {target} up to date with {source} (pass {pass})"),
    };
    let moved = receipt.copied_bytes + receipt.shared_bytes;
    let mut text = format!(
        "{how}: {verdict}\n  {}\n  {} copied in {} ({}), {} threads",
        entries(&receipt.entries),
        bytes_si(receipt.copied_bytes),
        rubus_draw::words::waited(receipt.elapsed_s),
        rate_si(moved as f64 / receipt.elapsed_s.max(1e-9)),
        receipt.workers,
    );
    let mut more = Vec::new();
    let mut also = |count: u64, what: &str| {
        if count > 0 {
            more.push(format!("{count} {what}"));
        }
    };
    also(receipt.unchanged, "as the last pass left them");
    also(receipt.deleted, "removed that are gone from the source");
    also(
        receipt.hard_links,
        match receipt.hard_links {
            1 => "additional hard link",
            _ => "additional hard links",
        },
    );
    also(receipt.attributes, "extended attributes");
    also(receipt.flagged, "with flags");
    if receipt.shared_bytes > 0 {
        more.push(format!("{} shared with the source", bytes_si(receipt.shared_bytes)));
    }
    if receipt.hole_bytes > 0 {
        more.push(format!("{} of holes", bytes_si(receipt.hole_bytes)));
    }
    if !more.is_empty() {
        let _ = write!(text, "\n  {}", more.join(", "));
    }
    text.push('\n');
    let mut remarks = |title: &str, tone, listing: &Listing<Remark>| {
        let lines = listing.examples.iter().map(|r| format!("{}: {}", named(&r.path), r.what));
        list(&mut text, style.paint(tone, title), listing.count, lines);
    };
    remarks("lost", Tone::Bad, &receipt.lost);
    remarks("left out", Tone::Plain, &receipt.skipped);
    let mut paths = |title: &str, listing: &Listing<String>| {
        let lines = listing.examples.iter().map(|path| named(path).to_string());
        list(&mut text, style.paint(Tone::Warn, title), listing.count, lines);
    };
    paths("changed while they were copied", &receipt.changed);
    paths("gone before they were copied", &receipt.vanished);
    text
}

/// What a comparison found.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let share = comparison.compared_bytes as f64 / comparison.content_bytes.max(1) as f64;
    let read = match comparison.contents {
        Contents::None => "contents not read".to_string(),
        _ if comparison.content_bytes == 0 => "no contents to read".to_string(),
        Contents::Sample => format!(
            "{} of {} of contents read ({}, a sample)",
            bytes_si(comparison.compared_bytes),
            bytes_si(comparison.content_bytes),
            percent(share.min(1.0)),
        ),
        Contents::All => format!("all {} of contents read", bytes_si(comparison.compared_bytes)),
    };
    let verdict = if comparison.is_same() {
        style.paint(Tone::Good, "no difference")
    } else {
        style.paint(
            Tone::Bad,
            &match comparison.differences.count {
                1 => "1 difference".to_string(),
                count => format!("{count} differences"),
            },
        )
    };
    let mut text = format!(
        "Compared in {}: {verdict}\n  {}; {read}\n",
        rubus_draw::words::waited(comparison.elapsed_s),
        entries(&comparison.entries),
    );
    let lines = comparison.differences.examples.iter();
    let lines = lines.map(|r| format!("{} {}", named(&r.path), r.what));
    let title = style.paint(Tone::Bad, "differences");
    list(&mut text, title, comparison.differences.count, lines);
    text
}

/// The progress line of a terminal, at most `columns` columns wide.
pub fn line(progress: &Progress, columns: usize) -> String {
    let verb = match progress.stage {
        Stage::Copying => "copying",
        Stage::Settling => "waiting until the disk has written everything",
        Stage::Comparing => "comparing",
    };
    let of = |done: String, all: Option<String>| match all {
        Some(all) => format!("{done} of {all}"),
        None => done,
    };
    let entries_all = progress.entries_expected.map(|all| all.to_string());
    let mut parts = vec![
        verb.to_string(),
        of(bytes_si(progress.bytes), progress.bytes_expected.map(bytes_si)),
        format!("{} entries", of(progress.entries.to_string(), entries_all)),
        rate_si(progress.bytes as f64 / progress.elapsed_s.max(1e-9)),
    ];
    match progress.left_s {
        Some(left_s) => parts.push(format!("about {} left", rubus_draw::words::waited(left_s))),
        None => parts.push(format!("{} so far", rubus_draw::words::waited(progress.elapsed_s))),
    }
    let line = parts.join("  ");
    line.chars().take(columns).collect()
}

fn entries(entries: &Entries) -> String {
    let parts = [
        (entries.files, "file", "files"),
        (entries.directories, "directory", "directories"),
        (entries.links, "symbolic link", "symbolic links"),
        (entries.nodes, "device, pipe or socket", "devices, pipes and sockets"),
    ];
    let parts = parts.iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    if parts.is_empty() { "nothing".to_string() } else { parts.join(", ") }
}

fn list(text: &mut String, title: String, count: u64, lines: impl Iterator<Item = String>) {
    if count == 0 {
        return;
    }
    let _ = writeln!(text, "{title}: {count}");
    let mut shown = 0;
    for line in lines.take(SHOWN) {
        let line = rubus_draw::text::clean(&line);
        let _ = writeln!(text, "  {}", rubus_draw::text::shorten(&line, LONGEST));
        shown += 1;
    }
    if count > shown {
        let _ = writeln!(text, "  and {} more (--json lists up to 1000)", count - shown);
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the root" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> CopyReceipt {
        let mut example = CopyReceipt {
            source: "/mnt/old".into(),
            target: "/mnt/new".into(),
            pass: 1,
            entries: Entries { files: 41_250, directories: 5_120, links: 1, nodes: 0 },
            copied_bytes: 1_250_000_000,
            hole_bytes: 1 << 30,
            hard_links: 99,
            attributes: 12,
            elapsed_s: 62.5,
            workers: 4,
            ..CopyReceipt::default()
        };
        for number in 0..12 {
            example.lost.add(Remark {
                path: format!("var/bad-{number}"),
                what: "cannot read: Input/output error (os error 5)".into(),
            });
        }
        example.vanished.add("tmp/gone".into());
        example
    }

    #[test]
    fn a_receipt_with_losses() {
        insta::assert_snapshot!(receipt(&example(), Style::PLAIN));
    }

    #[test]
    fn a_comparison_with_a_difference() {
        let mut found = Comparison {
            compared_bytes: 1 << 20,
            content_bytes: 1 << 30,
            elapsed_s: 3.0,
            ..Comparison::default()
        };
        found
            .differences
            .add(Remark { path: "etc/passwd".into(), what: "has mode 0600 and not 0644".into() });
        insta::assert_snapshot!(comparison(&found, Style::PLAIN));
    }

    #[test]
    fn the_line_keeps_within_its_columns() {
        let progress = Progress {
            stage: Stage::Copying,
            entries: 1200,
            bytes: 45_000_000,
            entries_expected: Some(50_000),
            bytes_expected: Some(2_000_000_000),
            elapsed_s: 3.0,
            left_s: Some(131.0),
        };
        insta::assert_snapshot!(line(&progress, 120));
        assert_eq!(line(&progress, 20).chars().count(), 20);
    }
}
