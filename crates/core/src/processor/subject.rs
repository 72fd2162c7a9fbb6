//! Figures of a processor as something to compare.

use super::{Ciphers, ProcessorRun, Rates};
use crate::compare::{Figure, Named, SubjectJob, Unit};
use crate::spec::{Direction, Operation, Pattern};
use crate::units::bytes_iec;

impl ProcessorRun {
    /// The jobs of a comparison, part after part.
    pub fn jobs(&self) -> Vec<SubjectJob> {
        let mut jobs = Vec::new();
        jobs.extend(self.ciphers.iter().flat_map(of_ciphers));
        jobs
    }

    /// What a comparison says about how it was measured.
    pub fn facts(&self) -> Vec<Named> {
        let named = |name: &str, value: Option<String>| Named {
            name: name.into(),
            value,
        };
        let clock = self.watched.clocks.iter().map(|clock| clock.mean_hz).max();
        vec![
            named("usable cores", Some(self.cores.to_string())),
            named(
                "user space",
                Some(format!("{} bits, {}", self.pointer_bits, self.architecture)),
            ),
            named(
                "mean clock",
                clock.map(|hz| format!("{:.2} GHz", hz as f64 / 1e9)),
            ),
        ]
    }
}

fn of_ciphers(ciphers: &Ciphers) -> Vec<SubjectJob> {
    let rows = ciphers.rows.iter().flat_map(|row| {
        let title = format!(
            "{} {} {}, {}",
            row.algorithm.name(),
            row.work.name(),
            bytes_iec(u64::from(row.block_bytes)),
            row.place.name()
        );
        both(&title, &row.rates, Unit::BytesPerSecond)
    });
    rows.collect()
}

/// A job for one core and one for all.
pub(super) fn both(title: &str, rates: &Rates, unit: Unit) -> Vec<SubjectJob> {
    let each = [
        ("one core", &rates.one_core),
        ("all cores", &rates.all_cores),
    ];
    let jobs = each.into_iter().filter_map(|(cores, rate)| {
        let rate = rate.as_ref()?;
        Some(job(
            format!("{title}, {cores}"),
            Figure::of(rate.per_second),
            unit,
        ))
    });
    jobs.collect()
}

/// A job of a comparison that is matched by its name alone.
pub(super) fn job(title: String, throughput: Figure, unit: Unit) -> SubjectJob {
    SubjectJob {
        name: title.to_lowercase().replace(' ', "-"),
        title,
        direction: Direction::Read,
        pattern: Pattern::Sequential,
        block_bytes: None,
        queue_depth: None,
        copies: 1,
        commit: false,
        access: None,
        content: None,
        on: None,
        is_shared: false,
        operation: Operation::Compute,
        throughput,
        unit,
        p50_ns: None,
        p99_ns: None,
        doubts: Vec::new(),
    }
}
