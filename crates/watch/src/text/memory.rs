//! Memory, swap, what is compressed in memory, and pressure.

use crate::Look;
use rubus_vocabulary::units::bytes_iec;

use super::fit::Section;
use super::line::{gauge, items};
use super::machine::maybe_percent;
use rubus_draw::style::Tone;
use rubus_draw::text::clean;

pub(super) fn memory(look: &Look, columns: usize) -> Section {
    let Some(memory) = look.memory else {
        return Section::default();
    };
    // Without the kernel's own estimate: what is free, and the cache, most of which it would give back.
    let available = memory.available_bytes;
    let available = available.unwrap_or(memory.free_bytes.saturating_add(memory.cached_bytes));
    let used = memory.total_bytes.saturating_sub(available);
    let share = used as f64 / memory.total_bytes.max(1) as f64;
    let pieces = vec![
        gauge(share, columns),
        (Tone::Plain, format!("{} of {}", bytes_iec(used), bytes_iec(memory.total_bytes))),
        (Tone::Plain, format!("cache {}", bytes_iec(memory.cached_bytes))),
        (Tone::Plain, format!("dirty {}", bytes_iec(memory.dirty_bytes))),
        (Tone::Plain, format!("writeback {}", bytes_iec(memory.writeback_bytes))),
    ];
    Section::of(3, vec![items("memory", pieces, columns)])
}

pub(super) fn swap(look: &Look, columns: usize) -> Section {
    let Some(memory) = look.memory else {
        return Section::default();
    };
    let killed = look.swap.and_then(|swap| swap.oom_kills).filter(|&killed| killed > 0);
    let killed = killed.map(|killed| (Tone::Bad, format!("{killed} KILLED for lack of memory")));
    let mut pieces: Vec<(Tone, String)> = killed.into_iter().collect();
    if memory.swap_bytes == 0 {
        pieces.push((Tone::Faint, "none".to_string()));
    } else {
        let used = memory.swap_bytes.saturating_sub(memory.swap_free_bytes);
        let share = used as f64 / memory.swap_bytes as f64;
        pieces.push(gauge(share, columns));
        let words = format!("{} of {}", bytes_iec(used), bytes_iec(memory.swap_bytes));
        pieces.push((Tone::Plain, words));
        if let Some(swap) = look.swap {
            let both = swap.pages_in_per_second + swap.pages_out_per_second;
            // Beyond this a machine on a card is busy with nothing else.
            let tone = if both > 1000.0 { Tone::Warn } else { Tone::Plain };
            let words = format!(
                "pages in {:.0}/s, out {:.0}/s",
                swap.pages_in_per_second, swap.pages_out_per_second
            );
            pieces.push((tone, words));
        }
    }
    Section::of(4, vec![items("swap", pieces, columns)])
}

/// zswap and zram, where they hold something.
pub(super) fn compressed(look: &Look, columns: usize) -> Section {
    let mut rows = Vec::new();
    let holds = |stored: u64, memory: u64| {
        let ratio = stored as f64 / memory.max(1) as f64;
        format!("{} in {} ({ratio:.2}:1)", bytes_iec(stored), bytes_iec(memory))
    };
    if let Some(zswap) = look.zswap.filter(|zswap| zswap.stored_bytes > 0) {
        let mut pieces = vec![(Tone::Plain, holds(zswap.stored_bytes, zswap.pool_bytes))];
        if let Some(swap) = look.swap {
            let rate =
                |rate: Option<f64>| rate.map_or("-".to_string(), |rate| format!("{rate:.0}/s"));
            let taken = (rate(swap.zswap_in_per_second), rate(swap.zswap_out_per_second));
            pieces.push((Tone::Plain, format!("pages in {}, out {}", taken.0, taken.1)));
            if let Some(back) = swap.zswap_written_back_per_second.filter(|back| *back > 0.0) {
                pieces.push((Tone::Warn, format!("to the disk {back:.0}/s")));
            }
        }
        if let Some(counters) = zswap.counters.filter(|counters| counters.refused_pages > 0) {
            pieces.push((Tone::Faint, format!("{} refused so far", counters.refused_pages)));
        }
        rows.push(items("zswap", pieces, columns));
    }
    for zram in &look.zrams {
        let pieces = vec![(Tone::Plain, holds(zram.stored_bytes, zram.memory_bytes))];
        rows.push(items(&clean(&zram.name), pieces, columns));
    }
    Section::of(7, rows)
}

pub(super) fn pressure(look: &Look, columns: usize) -> Section {
    let pressure = look.pressure;
    let all = [pressure.cpu_some, pressure.memory_some, pressure.io_some];
    if all.iter().all(Option::is_none) {
        return Section::default();
    }
    let tone = |share: Option<f64>| match share {
        Some(share) if share >= 0.5 => Tone::Bad,
        Some(share) if share >= 0.1 => Tone::Warn,
        _ => Tone::Plain,
    };
    let piece = |name: &str, some: Option<f64>, full: Option<f64>| {
        let words = match full {
            Some(full) => {
                format!("{name} {} (all {})", maybe_percent(some), maybe_percent(Some(full)))
            }
            None => format!("{name} {}", maybe_percent(some)),
        };
        (tone(some), words)
    };
    let pieces = vec![
        piece("I/O", pressure.io_some, pressure.io_full),
        piece("memory", pressure.memory_some, pressure.memory_full),
        piece("CPU", pressure.cpu_some, None),
    ];
    // Shares of the time in which something stood still for it.
    Section::of(4, vec![items("waiting", pieces, columns)])
}
