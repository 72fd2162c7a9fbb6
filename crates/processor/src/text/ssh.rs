//! ssh from a machine to itself: a table of its ciphers, and which end is busy.

use rubus_vocabulary::processor::ssh::{End, Row, Ssh};
use rubus_vocabulary::units::rate_si;

use super::{mark, rate_cells};
use rubus_draw::layout::{heading, paragraph};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::clean;

/// An end that uses more of a core than this has none to spare.
const BUSY: f64 = 0.9;

/// "ssh 52.1 MB/s (chacha20-poly1305)".
pub(super) fn headline(ssh: &Ssh) -> Option<String> {
    let fastest = fastest(ssh)?;
    Some(format!("ssh {} ({})", rate_si(fastest.rate.per_second.value), short(&fastest.cipher)))
}

pub(super) fn part(ssh: &Ssh, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("Cipher", Left),
        ("one way", Right),
        ("±", Left),
        ("client", Right),
        ("server", Right),
    ]);
    for row in &ssh.rows {
        let mut cells = vec![Cell::from(short(&row.cipher))];
        cells.extend(rate_cells(Some(&row.rate)));
        for end in [&row.client, &row.server] {
            cells.push(cost(end.as_ref()));
        }
        table.row(cells);
    }
    let title = format!("ssh from this machine to itself ({})", clean(&ssh.version));
    let mut lines = vec![heading(&title, style)];
    lines.extend(table.lines(style));
    lines.extend(paragraph(&legend(ssh), "  "));
    lines.extend(mark(ssh.rows.iter().any(|row| !row.rate.doubts.is_empty())));
    lines.extend(fastest(ssh).iter().flat_map(|row| advice(ssh, row)));
    lines
}

/// "0.99 · 36.1 s/GB".
fn cost(end: Option<&End>) -> Cell {
    let Some(end) = end else {
        return "–".into();
    };
    let tone = if end.cores >= BUSY { Tone::Bad } else { Tone::Plain };
    let text = format!("{:.2} · {:.1} s/GB", end.cores, end.seconds_per_gb);
    Cell::toned(&text, tone)
}

fn legend(ssh: &Ssh) -> String {
    let mut text = String::from(
        "client enciphers and server deciphers, both here: cores that each kept busy · seconds of a core for \
         10^9 bytes.",
    );
    if let Some(mac) = ssh.mac.as_ref().filter(|_| ssh.rows.iter().any(Row::needs_mac)) {
        text.push_str(&format!(" Ciphers in CTR mode are authenticated with {}.", short(mac)));
    }
    text
}

/// What to write into ssh's settings, if the first choice is not the fastest.
fn advice(ssh: &Ssh, fastest: &Row) -> Vec<String> {
    let Some(first) = ssh.rows.first() else {
        return Vec::new();
    };
    // Only a certain gain is worth a change of the user's settings.
    if fastest.rate.per_second.low <= first.rate.per_second.high {
        return Vec::new();
    }
    let times = fastest.rate.per_second.value / first.rate.per_second.value;
    paragraph(
        &format!(
            "ssh chooses {} unasked; {} is {times:.1} times as fast here: `ssh -c {}`.",
            short(&first.cipher),
            short(&fastest.cipher),
            fastest.cipher
        ),
        "  ",
    )
}

fn fastest(ssh: &Ssh) -> Option<&Row> {
    let by_rate = |a: &&Row, b: &&Row| {
        let rate = |row: &Row| row.rate.per_second.value;
        rate(a).total_cmp(&rate(b))
    };
    ssh.rows.iter().max_by(by_rate)
}

/// Without whose invention it was.
fn short(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}
