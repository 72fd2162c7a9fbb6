//! Pipes, network links, network disks and programs.

use crate::health::DiskHealth;
use crate::{Basis, Look, NbdServer, PipeUse};
use rubus_vocabulary::units::{counted, iops, rate_si};

use super::fit::Section;
use super::line::{Column, Row, bar, items, table, text, tone_of_load};
use super::machine::whole_percent;
use rubus_draw::style::Tone;
use rubus_draw::text::clean;

fn column<T>(
    name: &'static str,
    rank: u8,
    is_left: bool,
    all: &[T],
    cell: impl Fn(&T) -> (Tone, String),
) -> Column {
    Column { name, rank, is_left, cells: all.iter().map(cell).collect() }
}

/// Disks that their owner has to do something about.
pub(super) fn health(health: &[DiskHealth], columns: usize) -> Section {
    let bad = health.iter().filter(|one| one.needs_action());
    let rows = bad.map(|one| {
        let pieces = vec![
            (Tone::Strong, clean(&one.disk)),
            (one.word.tone(), clean(&one.sentence())),
            (Tone::Plain, clean(one.fix.as_deref().unwrap_or_default())),
        ];
        items("health", pieces, columns)
    });
    Section::of(1, rows.collect())
}

/// How full pipes are whose capacity is known.
pub(super) fn pipes(look: &Look, columns: usize) -> Section {
    let all: Vec<&PipeUse> = look.pipes.iter().collect();
    if all.is_empty() {
        return Section::default();
    }
    let drawn = table(
        vec![
            column("pipe", 0, true, &all, |pipe| (Tone::Strong, clean(&pipe.name))),
            column("used", 1, false, &all, |pipe| {
                (tone_of_load(pipe.used), whole_percent(pipe.used))
            }),
            column("", 4, true, &all, |pipe| (tone_of_load(pipe.used), bar(pipe.used, 10))),
            column("through it", 2, false, &all, |pipe| {
                (Tone::Plain, rate_si(pipe.bytes_per_second))
            }),
            column("of what", 5, true, &all, |pipe| (Tone::Faint, basis(pipe))),
        ],
        columns,
    );
    Section::list(6, drawn)
}

fn basis(pipe: &PipeUse) -> String {
    match &pipe.basis {
        Basis::Measured { run, at } => {
            format!("measured {}, run {run}", at.get(..10).unwrap_or(at))
        }
        Basis::RuleOfThumb { .. } => format!("rule of thumb: {}", clean(&pipe.members.join(" + "))),
    }
}

pub(super) fn links(look: &Look, columns: usize) -> Section {
    let pieces: Vec<(Tone, String)> = look
        .links
        .iter()
        .map(|link| {
            let words = format!(
                "{} in {} out {}",
                clean(&link.name),
                rate_si(link.received_bytes_per_second),
                rate_si(link.sent_bytes_per_second)
            );
            (Tone::Plain, words)
        })
        .collect();
    if pieces.is_empty() {
        Section::default()
    } else {
        Section::of(8, vec![items("network", pieces, columns)])
    }
}

/// Disks that come over the network, and those that go out.
pub(super) fn nbd(look: &Look, columns: usize) -> Section {
    let Some(nbd) = &look.nbd else {
        return Section::default();
    };
    let mut rows = Vec::new();
    // One that waits comes first: it must not be what there is no room for.
    let mut all: Vec<_> = nbd.attached.iter().collect();
    all.sort_by_key(|attached| attached.trouble.is_none());
    for attached in all {
        let mut pieces = Vec::new();
        match &attached.trouble {
            Some(trouble) => pieces.push((Tone::Bad, format!("WAITS: {}", clean(trouble)))),
            None => pieces.push((Tone::Good, "connected".to_string())),
        }
        let words = format!("{} of {} connections", attached.alive, attached.connections);
        pieces.push((Tone::Plain, words));
        pieces.push((Tone::Faint, clean(&attached.address)));
        if attached.replaced > 0 {
            pieces.push((Tone::Warn, format!("{} replaced", attached.replaced)));
        }
        rows.push(items(&clean(&attached.device), pieces, columns));
    }
    if let Some(server) = &nbd.server {
        rows.extend(serving(server, columns));
    }
    let mut section = Section::list(6, rows);
    section.least = section.least.min(1);
    section
}

fn serving(server: &NbdServer, columns: usize) -> Vec<Row> {
    if let Some(trouble) = &server.trouble {
        let words = format!("{}: {}", clean(&server.place), clean(trouble));
        return vec![items("serving", vec![(Tone::Bad, words)], columns)];
    }
    let mut pieces = vec![(Tone::Plain, counted(server.clients.len() as u64, "client", "clients"))];
    if let Some(share) = server.cpu_share {
        pieces.push((Tone::Plain, format!("{} of a core", whole_percent(share))));
    }
    pieces.push((Tone::Faint, clean(&server.place)));
    let mut rows = vec![items("serving", pieces, columns)];
    let all = &server.clients;
    if all.is_empty() {
        return rows;
    }
    let us = |us: Option<u64>| us.map_or("-".to_string(), |us| format!("{:.2}", us as f64 / 1e3));
    rows.extend(table(
        vec![
            column("client", 0, true, all, |c| (Tone::Strong, clean(&c.caller))),
            column("export", 3, true, all, |c| (Tone::Plain, clean(&c.export))),
            column("reads", 1, false, all, |c| (Tone::Plain, rate_si(c.read_bytes_per_second))),
            column("writes", 1, false, all, |c| (Tone::Plain, rate_si(c.written_bytes_per_second))),
            column("requests/s", 4, false, all, |c| (Tone::Plain, iops(c.requests_per_second))),
            column("p50 ms", 5, false, all, |c| (Tone::Plain, us(c.p50_us))),
            column("p99 ms", 5, false, all, |c| (Tone::Plain, us(c.p99_us))),
        ],
        columns,
    ));
    rows
}

pub(super) fn programs(look: &Look, columns: usize) -> Section {
    let Some(programs) = &look.programs else {
        return Section::default();
    };
    let hidden = match programs.hidden {
        0 => String::new(),
        hidden => format!("  {hidden} could not be read"),
    };
    let all = &programs.busiest;
    if all.is_empty() {
        let words =
            format!("no program read from or wrote to a disk in {:.0} s{hidden}", programs.seconds);
        return Section::of(9, vec![text(Tone::Faint, &words)]);
    }
    let mut rows = table(
        vec![
            column("program", 0, true, all, |p| (Tone::Strong, clean(&p.name))),
            column("process", 3, false, all, |p| (Tone::Faint, p.pid.to_string())),
            column("read", 1, false, all, |p| (Tone::Plain, rate_si(p.read_bytes_per_second))),
            column("written", 1, false, all, |p| {
                (Tone::Plain, rate_si(p.written_bytes_per_second))
            }),
        ],
        columns,
    );
    if let (Some(heading), false) = (rows.first_mut(), hidden.is_empty()) {
        heading.0.push((Tone::Faint, hidden));
    }
    Section::list(9, rows)
}
