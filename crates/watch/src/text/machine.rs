//! Processors, heat, clock and supply.

use crate::Look;
use rubus_vocabulary::units::percent;

use super::fit::Section;
use super::line::{Row, gauge, items, tone_of_load};
use rubus_draw::style::Tone;
use rubus_draw::text::{clean, pad_left};

pub(super) fn processors(look: &Look, columns: usize) -> Section {
    let Some(cpu) = &look.cpu else {
        return Section::default();
    };
    let busy = cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal;
    let mut pieces = vec![gauge(busy, columns)];
    let share = |name: &str, share: f64| (Tone::Plain, format!("{name} {}", whole_percent(share)));
    pieces.push(share("user", cpu.user));
    pieces.push(share("system", cpu.system));
    pieces.push(share("iowait", cpu.iowait));
    pieces.push(share("irq", cpu.irq + cpu.softirq));
    // Only what a hypervisor takes is stolen; most machines have none.
    if cpu.steal > 0.005 {
        pieces.push(share("stolen", cpu.steal));
    }
    let mut rows = vec![items("CPU", pieces, columns)];
    rows.extend(cores(&cpu.per_core_busy, columns));
    Section::of(2, rows)
}

/// Each core by its own, where there are several and they fit one row.
fn cores(busy: &[f64], columns: usize) -> Option<Row> {
    if busy.len() < 2 {
        return None;
    }
    let each = busy.iter().enumerate().map(|(core, share)| {
        let words = format!("{core}: {}", pad_left(&whole_percent(*share), 5));
        (tone_of_load(*share), words)
    });
    Some(items("cores", each.collect(), columns))
}

/// "34 %": on a screen that changes every second a digit behind the point is noise.
pub(super) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub(super) fn heat(look: &Look, columns: usize) -> Section {
    let heat = &look.heat;
    let mut pieces = Vec::new();
    if let Some(bits) = look.throttling {
        let now = [
            (bits.undervoltage_now, "UNDERVOLTAGE NOW"),
            (bits.throttled_now, "THROTTLED NOW"),
            (bits.capped_now, "CLOCK CAPPED NOW"),
            (bits.soft_limit_now, "SOFT HEAT LIMIT NOW"),
        ];
        let seen = [
            (bits.undervoltage_seen && !bits.undervoltage_now, "undervoltage since the start"),
            (bits.throttled_seen && !bits.throttled_now, "throttled since the start"),
            (bits.capped_seen && !bits.capped_now, "capped since the start"),
        ];
        let said = now.iter().filter(|(is_so, _)| *is_so);
        pieces.extend(said.map(|(_, words)| (Tone::Bad, words.to_string())));
        let said = seen.iter().filter(|(is_so, _)| *is_so);
        pieces.extend(said.map(|(_, words)| (Tone::Warn, words.to_string())));
        if bits.word == 0 {
            pieces.push((Tone::Good, "supply and clock are fine".to_string()));
        }
    } else if heat.undervoltage == Some(true) {
        pieces.push((Tone::Warn, "undervoltage since the start".to_string()));
    }
    let mut before = Vec::new();
    if let Some(hottest) = heat.zones.iter().max_by_key(|zone| zone.millicelsius) {
        let celsius = hottest.millicelsius as f64 / 1000.0;
        let tone = match celsius {
            c if c >= 80.0 => Tone::Bad,
            c if c >= 70.0 => Tone::Warn,
            _ => Tone::Plain,
        };
        before.push((tone, format!("{celsius:.1} °C")));
    }
    before.extend(clock(look).map(|words| (Tone::Plain, words)));
    before.extend(pieces);
    if let Some(hottest) = heat.zones.iter().max_by_key(|zone| zone.millicelsius) {
        before.push((Tone::Faint, clean(&hottest.name)));
    }
    if before.is_empty() {
        return Section::default();
    }
    Section::of(5, vec![items("heat", before, columns)])
}

/// "1200 of 1400 MHz"; of several clocks all of them.
fn clock(look: &Look) -> Option<String> {
    let mhz = |hz: u64| (hz + 500_000) / 1_000_000;
    let all = &look.heat.clocks;
    let most = all.iter().filter_map(|clock| clock.max_hz).max();
    let mut now: Vec<u64> = all.iter().map(|clock| mhz(clock.hz)).collect();
    now.sort_unstable();
    let (lowest, highest) = (now.first()?, now.last()?);
    let now =
        if lowest == highest { format!("{highest}") } else { format!("{lowest} to {highest}") };
    Some(match most {
        Some(most) => format!("{now} of {} MHz", mhz(most)),
        None => format!("{now} MHz"),
    })
}

/// As [`percent`], and "-" for what is not known.
pub(super) fn maybe_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_string(), percent)
}
