//! What files on btrfs take, by method.

#![deny(clippy::disallowed_methods)]

use rubus_machine::parse::btrfs::{Compression, METHODS, Share};
use rubus_vocabulary::units::{bytes_si, percent};

use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang};

/// No line is wider.
const COLUMNS: usize = 80;

/// The table, what was counted, and what it means; ends in a line feed.
pub fn render(seen: &Compression, style: Style) -> String {
    let mut lines = Vec::new();
    let total = seen.total();
    if total == Share::default() {
        lines.push("There is nothing here that takes space on the disk.".to_string());
    } else {
        lines.extend(table(seen, &total).lines(style));
        lines.push(String::new());
        lines.extend(hang("", &bind_units(&meaning(seen)), COLUMNS));
    }
    let counted = hang("", &counted(seen), COLUMNS);
    lines.extend(counted.iter().map(|line| style.paint(Tone::Faint, line)));
    lines.join("\n") + "\n"
}

fn table(seen: &Compression, total: &Share) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("method", Left),
        ("on the disk", Right),
        ("expanded", Right),
        ("to", Right),
        ("referenced", Right),
    ]);
    let mut row = |name: &str, share: &Share, tone| {
        table.row(vec![
            Cell::toned(name, tone),
            Cell::toned(&bytes_si(share.stored_bytes), tone),
            Cell::toned(&bytes_si(share.original_bytes), tone),
            Cell::toned(&percent(share.ratio()), tone),
            Cell::toned(&bytes_si(share.referenced_bytes), tone),
        ]);
    };
    row("all", total, Tone::Strong);
    for method in &seen.methods {
        row(&method.method, &method.share, Tone::Plain);
    }
    if seen.preallocated != Share::default() {
        row("set aside", &seen.preallocated, Tone::Plain);
    }
    table
}

fn meaning(seen: &Compression) -> String {
    let files = seen.files();
    if files.original_bytes == 0 {
        return "All of it is set aside and holds nothing yet.".into();
    }
    let compressed = seen.compressed_share();
    if compressed == 0.0 {
        return "Nothing is compressed: the filesystem is mounted without compress=, or was when \
                the files were written."
            .into();
    }
    let saved = files.original_bytes.saturating_sub(files.stored_bytes);
    let mut words = format!(
        "Compression saves {} of {}; ratio {:.2}:1.",
        bytes_si(saved),
        bytes_si(files.original_bytes),
        files.original_bytes as f64 / files.stored_bytes.max(1) as f64,
    );
    let as_is = seen.methods.iter().find(|method| method.method == METHODS[0]);
    if let Some(as_is) = as_is {
        words.push_str(&format!(
            " {} of the bytes are stored as they are.",
            percent(as_is.share.original_bytes as f64 / files.original_bytes as f64)
        ));
    }
    words
}

fn counted(seen: &Compression) -> String {
    let counts = &seen.counts;
    let mut words = format!(
        "{}, {} in {}, {} in the tree itself, {}.",
        plural(counts.files, "file"),
        plural(counts.references, "piece"),
        plural(counts.extents, "extent"),
        plural(counts.inline, "piece"),
        plural(counts.fragments, "fragment"),
    );
    if counts.unknown > 0 {
        words.push_str(&format!(
            " {} not understood and left out: damaged, or of a method newer than this program.",
            match counts.unknown {
                1 => "1 piece was".into(),
                n => format!("{n} pieces were"),
            }
        ));
    }
    if !seen.is_whole {
        words.push_str(" Not everything was looked through.");
    }
    words
}

fn plural(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use rubus_machine::parse::btrfs::{Counts, MethodShare};

    use super::*;

    /// The published table of the desktop on a Raspberry Pi 3.
    fn desktop() -> Compression {
        let gib = |gib: f64| (gib * f64::from(1 << 30)) as u64;
        let method = |name: &str, stored, original, referenced| MethodShare {
            method: name.into(),
            share: Share {
                stored_bytes: gib(stored),
                original_bytes: gib(original),
                referenced_bytes: gib(referenced),
            },
        };
        Compression {
            methods: vec![method("none", 3.2, 3.2, 3.2), method("zlib", 2.3, 5.5, 5.6)],
            counts: Counts {
                files: 235_209,
                extents: 156_121,
                references: 157_169,
                inline: 112_601,
                fragments: 190_000,
                unknown: 0,
            },
            is_whole: true,
            ..Compression::default()
        }
    }

    #[test]
    fn a_desktop() {
        insta::assert_snapshot!(render(&desktop(), Style::PLAIN));
    }

    #[test]
    fn nothing_compressed_and_something_set_aside() {
        let mut seen = desktop();
        seen.methods.truncate(1);
        seen.preallocated =
            Share { stored_bytes: 8 << 20, original_bytes: 8 << 20, referenced_bytes: 4 << 20 };
        seen.counts.unknown = 1;
        insta::assert_snapshot!(render(&seen, Style::PLAIN));
    }

    #[test]
    fn nothing_at_all() {
        let seen = Compression { is_whole: true, ..Compression::default() };
        insta::assert_snapshot!(render(&seen, Style::PLAIN));
    }
}
