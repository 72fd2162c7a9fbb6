//! Figures of a memory as something to compare.

use super::{Memory, Pressure, SetUpKind};
use crate::figure::{Figure, Named, Unit};
use crate::subject_job::SubjectJob;

impl Memory {
    /// The jobs of a comparison: rates, loads per second, how often its own size the memory carries, and what touching
    /// pages was like at the sizes that every search begins with.
    pub fn jobs(&self) -> Vec<SubjectJob> {
        let mut jobs = Vec::new();
        for row in &self.bandwidth {
            let cores = if row.all_cores { "all cores" } else { "one core" };
            let title = format!("memory {}, {cores}", row.work.name());
            let figure = Figure::of(row.bytes_per_second);
            jobs.push(SubjectJob::computed(title, figure, Unit::BytesPerSecond));
        }
        for point in &self.chase {
            let size = crate::units::bytes_iec(point.working_set_bytes);
            let per_second = rubus_stats::estimate::Estimate::new(
                1e9 / point.ns.value,
                1e9 / point.ns.high,
                1e9 / point.ns.low,
            );
            jobs.push(SubjectJob {
                p50_ns: Some(Figure::of(point.ns)),
                ..SubjectJob::computed(
                    format!("loads in {size}"),
                    Figure::of(per_second),
                    Unit::OperationsPerSecond,
                )
            });
        }
        for pressure in &self.pressure {
            jobs.extend(of_pressure(pressure));
        }
        jobs
    }

    /// What a comparison says about how it was measured.
    pub fn facts(&self) -> Vec<Named> {
        let named = |name: &str, value: String| Named { name: name.into(), value: Some(value) };
        let mut facts = vec![named("usable cores", self.cores.to_string())];
        if let Some(first) = self.pressure.first() {
            let memory = crate::units::bytes_iec(first.group.memory_bytes);
            let name = match first.group.version {
                Some(_) => "memory of the group",
                None => "memory that programs could have",
            };
            facts.push(named(name, memory));
            facts.push(named("pages compress to", format!("{} %", first.content_percent)));
            let limit = crate::units::duration_ns(first.limit_ns);
            facts.push(named("a touch is slow from", limit));
        }
        facts
    }
}

/// Of the machine's own set-up the name is not its kind: what it was before and what it is now are to be compared.
fn name(pressure: &Pressure) -> &'static str {
    match (pressure.set_up.is_temporary, pressure.set_up.kind) {
        (false, _) => "own swap",
        (true, SetUpKind::None) => "no swap",
        (true, kind) => kind.name(),
    }
}

fn of_pressure(pressure: &Pressure) -> Vec<SubjectJob> {
    let name = name(pressure);
    let mut jobs = Vec::new();
    for found in &pressure.carries {
        if let Some(within) = found.within {
            let figure = match found.beyond {
                Some(beyond) => {
                    Figure::of(rubus_stats::estimate::Estimate::new(within, within, beyond))
                }
                None => Figure::bare(within),
            };
            let title = format!("{name}: carries, {}", found.access.name());
            jobs.push(SubjectJob::computed(title, figure, Unit::TimesMemory));
        }
    }
    for rung in &pressure.rungs {
        for phase in rung.phases.iter().filter(|phase| phase.touches > 0) {
            let title = format!("{name}: {:.2}× {}", rung.overcommit, phase.access.name());
            let bare = |ns: Option<u64>| Some(Figure::bare(ns? as f64));
            jobs.push(SubjectJob {
                p50_ns: bare(phase.latency_ns.p50),
                p99_ns: bare(phase.latency_ns.p99),
                ..SubjectJob::computed(title, Figure::bare(phase.rate()), Unit::OperationsPerSecond)
            });
        }
    }
    jobs
}
