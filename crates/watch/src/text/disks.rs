//! The table of disks.

use crate::{DiskLook, DiskRates, Look};
use rubus_vocabulary::units::{iops, rate_si};

use super::View;
use super::fit::Section;
use super::line::{Column, bar, table};
use super::machine::whole_percent;
use rubus_draw::style::Tone;
use rubus_draw::text::clean;

pub(super) fn disks(view: &View<'_>, look: &Look, columns: usize) -> Section {
    let lost: Vec<DiskLook> = lost(view, look);
    let is_lost = |disk: &DiskLook| lost.iter().any(|gone| gone.name == disk.name);
    let mut disks: Vec<&DiskLook> = look.disks.iter().chain(&lost).collect();
    // Where the list is cut, what is gone is at its beginning and what does nothing at its end; else every disk keeps its
    // place.
    disks.sort_by_key(|disk| (!is_lost(disk), is_idle(disk)));
    if disks.is_empty() {
        return Section::default();
    }
    let column = |name: &'static str, rank: u8, cell: &dyn Fn(&DiskLook) -> (Tone, String)| {
        Column { name, rank, is_left: false, cells: disks.iter().map(|disk| cell(disk)).collect() }
    };
    let rated = |name: &'static str, rank: u8, cell: &dyn Fn(&DiskRates) -> Option<String>| {
        column(name, rank, &|disk: &DiskLook| {
            let words = disk.rates.as_ref().map(cell);
            let tone = if is_idle(disk) { Tone::Faint } else { Tone::Plain };
            match words {
                Some(Some(words)) => (tone, words),
                // Nothing happened, so there is no time of it.
                Some(None) => (Tone::Faint, "-".to_string()),
                None if is_lost(disk) => (Tone::Bad, "-".to_string()),
                None => (Tone::Faint, "new".to_string()),
            }
        })
    };
    let ms = |ms: Option<f64>| ms.map(milliseconds);
    let mut all = vec![
        column("disk", 0, &|disk| (Tone::Strong, clean(&disk.name))),
        rated("read", 1, &|r| Some(rate_si(r.read_bytes_per_second))),
        rated("written", 1, &|r| Some(rate_si(r.written_bytes_per_second))),
        rated("reads/s", 4, &|r| Some(iops(r.reads_per_second))),
        rated("writes/s", 4, &|r| Some(iops(r.writes_per_second))),
        rated("queue", 3, &|r| Some(format!("{:.1}", r.queue))),
        rated("read ms", 5, &|r| ms(r.read_ms)),
        rated("write ms", 5, &|r| ms(r.write_ms)),
        column("busy", 2, &|disk| match &disk.rates {
            Some(rates) => (busy_tone(rates), whole_percent(rates.busy)),
            None if is_lost(disk) => (Tone::Bad, "GONE".to_string()),
            None => (Tone::Faint, "new".to_string()),
        }),
        rated("flushes/s", 7, &|r| Some(iops(r.flushes_per_second))),
        rated("flush ms", 8, &|r| ms(r.flush_ms)),
        rated("discards/s", 9, &|r| Some(iops(r.discards_per_second))),
    ];
    all[0].is_left = true;
    if columns >= 110 {
        all.push(left("busy, before", 6, &disks, &|disk| {
            (Tone::Faint, view.trail.line(&disk.name, 24))
        }));
    } else if columns >= 90 {
        all.push(left("", 6, &disks, &|disk| {
            let busy = disk.rates.map_or(0.0, |rates| rates.busy);
            (Tone::Faint, bar(busy, 8))
        }));
    }
    all.push(left("what", 10, &disks, &|disk| {
        let words = view.header.disks.iter().find(|(name, _)| *name == disk.name);
        (Tone::Faint, words.map_or(String::new(), |(_, words)| clean(words)))
    }));
    let mut section = Section::list(1, table(all, columns));
    // A disk is what this is about: more of them stay than of any other list.
    section.least = section.rows.len().min(3);
    section
}

/// Disks that were taken out while it was watched, as rows without figures.
fn lost(view: &View<'_>, look: &Look) -> Vec<DiskLook> {
    let before = view.trail.gone();
    let now = look.vanished.iter().filter(|name| !before.contains(name));
    let is_gone = |name: &&String| look.disks.iter().all(|disk| disk.name != **name);
    let names = before.iter().chain(now).filter(is_gone);
    names.map(|name| DiskLook { name: name.clone(), in_flight: 0, rates: None }).collect()
}

fn left(
    name: &'static str,
    rank: u8,
    disks: &[&DiskLook],
    cell: &dyn Fn(&DiskLook) -> (Tone, String),
) -> Column {
    Column { name, rank, is_left: true, cells: disks.iter().map(|disk| cell(disk)).collect() }
}

fn is_idle(disk: &DiskLook) -> bool {
    let is_quiet = |rates: &DiskRates| {
        rates.reads_per_second + rates.writes_per_second + rates.flushes_per_second == 0.0
            && rates.queue == 0.0
    };
    disk.in_flight == 0 && disk.rates.as_ref().is_some_and(is_quiet)
}

/// A disk that has something to do all the time, and more than it takes at once.
fn busy_tone(rates: &DiskRates) -> Tone {
    match (rates.busy, rates.queue) {
        (busy, _) if busy < 0.6 => Tone::Good,
        (busy, queue) if busy >= 0.9 && queue >= 4.0 => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// Three digits: "0.12", "1.53", "12.1", "1234".
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2}"),
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}
