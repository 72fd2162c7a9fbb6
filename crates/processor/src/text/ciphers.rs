//! Ciphers and checksums: a table, and what it means for a disk.

use rubus_vocabulary::processor::ProcessorRun;
use rubus_vocabulary::processor::ciphers::{Algorithm, Ciphers, Place, Row, Work};
use rubus_vocabulary::units::{bytes_iec, duration_ns, rate_si};

use super::{mark, rate_cells};
use rubus_draw::layout::{heading, paragraph};
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};

/// "AES-XTS 512 88.2 MB/s a core".
pub(super) fn headline(ciphers: &Ciphers) -> Option<String> {
    let row = disk(ciphers)?;
    let rate = row.rates.one_core.as_ref()?;
    Some(format!("{} {} a core", row.algorithm.name(), rate_si(rate.per_second.value)))
}

/// What a disk is enciphered with: in the kernel if it was measured there.
fn disk(ciphers: &Ciphers) -> Option<&Row> {
    let at = |place| ciphers.row(Algorithm::AesXts512, Work::Encrypt, place);
    at(Place::Kernel).or_else(|| at(Place::Program))
}

pub(super) fn parts(ciphers: &Ciphers, processor: &ProcessorRun, style: Style) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    for place in [Place::Program, Place::Kernel] {
        let rows: Vec<&Row> = ciphers.rows.iter().filter(|row| row.place == place).collect();
        if !rows.is_empty() {
            parts.push(table(place, &rows, processor, style));
            parts.push(mark(rows.iter().any(|row| row.rates.is_disturbed())));
        }
    }
    parts.push(for_disks(ciphers));
    parts.push(peers(ciphers, style));
    parts
}

/// What the kernel's figures mean for a disk that it enciphers.
fn for_disks(ciphers: &Ciphers) -> Vec<String> {
    let mut lines = Vec::new();
    let cipher = Algorithm::AesXts512;
    if let Some(found) = ciphers.in_the_kernel(cipher) {
        let text = format!(
            "A message from a program takes two system calls and is copied there and back: {} each, besides its bytes. \
             dm-crypt, which LUKS uses, is in the kernel and spared that, but works sector by sector: expect {} to {} \
             from each core for {}.",
            duration_ns((found.calls_s * 1e9) as u64),
            rate_si(found.by_sectors),
            rate_si(found.without_calls),
            cipher.name()
        );
        lines.extend(paragraph(&text, "  "));
    }
    let one_core = |place| {
        let row = ciphers.row(cipher, Work::Encrypt, place)?;
        Some((row, row.rates.one_core.as_ref()?.per_second.value))
    };
    if let (Some((kernel, there)), Some((program, here))) =
        (one_core(Place::Kernel), one_core(Place::Program))
    {
        let text = format!(
            "{} in the kernel is {:.1} times as fast as in this program ({}, {}); for a disk the kernel counts.",
            cipher.name(),
            there / here,
            kernel.implementation.uses.words(),
            program.implementation.uses.words()
        );
        lines.extend(paragraph(&text, "  "));
    }
    if let Some(times) = ciphers.adiantum_times() {
        let text = format!(
            "Adiantum is {times:.1} times as fast for sectors as {}. For a new LUKS2 disk: `cryptsetup luksFormat \
             --cipher xchacha12,aes-adiantum-plain64 --key-size 256 --sector-size 4096`.",
            cipher.name()
        );
        lines.extend(paragraph(&text, "  "));
    }
    lines
}

/// Other programs beside this one.
fn peers(ciphers: &Ciphers, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let Some(first) = ciphers.peers.first() else {
        return Vec::new();
    };
    let mut table = Table::new(&[
        ("One core", Left),
        ("rubus", Right),
        ("with", Left),
        ("OpenSSL", Right),
        ("with", Left),
        ("", Right),
    ]);
    for peer in &ciphers.peers {
        let ours = peer.ours.as_ref();
        let ours = ours.map_or("–".into(), |ours| rate_si(ours.value));
        let times = peer.times().map_or(String::new(), |times| format!("{times:.2} ×"));
        table.row(vec![
            peer.algorithm.name().into(),
            ours.into(),
            Cell::toned(peer.our_uses.words(), Tone::Faint),
            rate_si(peer.bytes_per_second).into(),
            Cell::toned(peer.uses.words(), Tone::Faint),
            times.into(),
        ]);
    }
    let mut lines = vec![heading(&format!("{} beside it", first.tool), style)];
    lines.extend(table.lines(style));
    for peer in &ciphers.peers {
        let text = format!("{}: {}.", peer.algorithm.name(), peer.remark());
        lines.extend(paragraph(&text, "  "));
    }
    lines
}

fn table(place: Place, rows: &[&Row], processor: &ProcessorRun, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    let first = match place {
        Place::Program => "In a program",
        Place::Kernel => "In the kernel",
    };
    let all = format!("all {}", processor.cores);
    let mut columns = vec![(first, Left), ("", Left), ("one core", Right), ("±", Left)];
    if processor.cores > 1 {
        columns.extend([(all.as_str(), Right), ("±", Left)]);
    }
    columns.push(("with", Left));
    let mut table = Table::new(&columns);
    let mut last = None;
    for row in rows {
        // A name is said once for all that is done with it.
        let name = match last {
            Some(known) if known == (row.algorithm, row.block_bytes) => String::new(),
            Some((algorithm, _)) if algorithm == row.algorithm => {
                format!("  {}", bytes_iec(u64::from(row.block_bytes)))
            }
            _ => row.algorithm.name().to_string(),
        };
        last = Some((row.algorithm, row.block_bytes));
        let mut cells = vec![Cell::from(name), row.work.name().into()];
        cells.extend(rate_cells(row.rates.one_core.as_ref()));
        if processor.cores > 1 {
            cells.extend(rate_cells(row.rates.all_cores.as_ref()));
        }
        cells.push(Cell::toned(row.implementation.uses.words(), Tone::Faint));
        table.row(cells);
    }
    let mut lines = vec![heading(what(place), style)];
    lines.extend(table.lines(style));
    lines.extend(messages(rows));
    lines.extend(libraries(place, rows));
    lines
}

fn what(place: Place) -> &'static str {
    match place {
        Place::Program => "Ciphers and checksums of this program",
        Place::Kernel => "Ciphers and checksums of the kernel",
    }
}

/// How long the messages are.
fn messages(rows: &[&Row]) -> Vec<String> {
    let mut sizes: Vec<(u32, Vec<&str>)> = Vec::new();
    for row in rows {
        let name = row.algorithm.name();
        match sizes.iter_mut().find(|(bytes, _)| *bytes == row.block_bytes) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => sizes.push((row.block_bytes, vec![name])),
        }
    }
    let each: Vec<String> = sizes
        .iter()
        .map(|(bytes, names)| format!("{}: {}", bytes_iec(u64::from(*bytes)), names.join(", ")))
        .collect();
    paragraph(&format!("Messages of {}.", each.join("; of ")), "  ")
}

/// Whose code it was.
fn libraries(place: Place, rows: &[&Row]) -> Vec<String> {
    let mut by: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let name = row.implementation.name.as_str();
        let algorithm = row.algorithm.name();
        match by.iter_mut().find(|(known, _)| *known == name) {
            Some((_, algorithms)) if algorithms.contains(&algorithm) => {}
            Some((_, algorithms)) => algorithms.push(algorithm),
            None => by.push((name, vec![algorithm])),
        }
    }
    let each: Vec<String> =
        by.iter().map(|(name, algorithms)| format!("{name}: {}", algorithms.join(", "))).collect();
    let whose = match place {
        Place::Program => "Libraries",
        Place::Kernel => "Drivers",
    };
    paragraph(&format!("{whose}: {}.", each.join("; ")), "  ")
}
