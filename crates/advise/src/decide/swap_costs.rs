//! What a page costs on its way into compressed memory, and zswap before a disk of given figures.

use crate::advice::{Basis, Figures, Swapping};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::processor::compression::{Cut, Row};

use super::Question;
use crate::stages::compression;
use crate::stages::swap::{SetUp, usual_ratio};

/// The working set by which set-ups are ranked, as times the memory.
pub(super) const TIMES: f64 = 1.5;

/// Limits of the pool that is proposed, percent of the memory: the kernel's default, and what leaves more than half for pages at work.
pub(super) const POOL_PERCENT: (f64, f64) = (20.0, 40.0);

/// Memory, pages by pages compressed, and what a page costs.
pub(super) fn base(question: &Question<'_>) -> Option<SetUp> {
    let machine = question.machine;
    let near = |ratio: f64| Estimate::new(ratio, ratio * 0.85, ratio * 1.15);
    Some(SetUp {
        memory_bytes: machine.memory.total_bytes.get()? as f64,
        pool_share: 0.0,
        writes_on: true,
        ratio: question.known.page_ratio.map_or(usual_ratio(), near),
        page_s: page_s(question)?.0,
        cores: cores(machine),
    })
}

fn cores(machine: &Machine) -> u32 {
    machine.cpu.cores.get().unwrap_or(1).max(1)
}

/// What a page costs one core on its way into compressed memory or out of it: as programs saw it under pressure, else as the
/// processor compressed pages, else as usual for it.
pub(super) fn page_s(question: &Question<'_>) -> Option<(Estimate, Basis)> {
    let known = question.known;
    if let Some(seen) = known.page_s {
        return Some((Estimate::new(seen, seen * 0.7, seen * 1.4), Basis::Measured));
    }
    // Half of the pages go in and half come out.
    let of = |compress: f64, expand: f64| 4096.0 * (1.0 / compress + 1.0 / expand) / 2.0;
    let sample = known.processor.as_ref().and_then(|known| known.compression.as_ref());
    let mut rows = sample.iter().flat_map(|sample| &sample.rows);
    let is_it =
        |row: &&Row| matches!(row.cut, Cut::Pages { .. }) && row.method.to_string() == "zstd:1";
    if let Some((row, expand)) =
        rows.find(is_it).and_then(|row| Some((row, row.one.expand_bytes_per_second?)))
    {
        let compress = row.one.compress_bytes_per_second;
        if compress.low > 0.0 && expand.low > 0.0 {
            let page = Estimate::new(
                of(compress.value, expand.value),
                of(compress.high, expand.high),
                of(compress.low, expand.low),
            );
            return Some((page, Basis::Measured));
        }
    }
    let machine = question.machine;
    let model = machine.cpu.model.text().unwrap_or_default();
    let (methods, _) = compression::usual(model, cores(machine));
    let method = methods.iter().find(|method| method.name == "zstd:1")?;
    let (compress, expand) = (method.compress, method.expand);
    let page = Estimate::new(
        of(compress.value, expand.value),
        of(compress.high, expand.high),
        of(compress.low, expand.low),
    );
    Some((page, Basis::Assumed))
}

/// Percent of the memory that the pool needs so that a working set of [`TIMES`] the memory stays in memory, in steps of five.
pub(super) fn pool_percent(base: &SetUp) -> u32 {
    let needed = 100.0 * (TIMES - 1.0) / (base.ratio.value - 1.0).max(0.01);
    let (least, most) = POOL_PERCENT;
    ((needed / 5.0).ceil() * 5.0).clamp(least, most) as u32
}

/// With zswap before a disk of these figures.
pub(super) fn on(question: &Question<'_>, figures: &Figures) -> Option<Swapping> {
    let base = base(question)?;
    let set_up = SetUp { pool_share: f64::from(pool_percent(&base)) / 100.0, ..base };
    Some(set_up.swapping(Some(figures)))
}

/// How it is known what a page shrinks by.
pub(super) fn ratio_basis(question: &Question<'_>) -> Basis {
    match question.known.page_ratio {
        Some(_) => Basis::Measured,
        None => Basis::Published,
    }
}
