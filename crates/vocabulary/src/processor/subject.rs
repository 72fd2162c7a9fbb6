//! Figures of a processor as something to compare.
//!
//! A title begins with what varies (the algorithm, the method), followed by what the titles have in common, after a
//! comma: tables group titles with the same ending and print that ending above them.

use super::compression::{Compression, Cut, Source};
use super::linpack::Linpack;
use super::{Ciphers, ProcessorRun, Rates, Ssh};
use crate::figure::{Figure, Named, Unit};
use crate::subject_job::SubjectJob;
use crate::units::block;

impl ProcessorRun {
    /// The jobs of a comparison, part after part.
    pub fn jobs(&self) -> Vec<SubjectJob> {
        let mut jobs = Vec::new();
        jobs.extend(self.ciphers.iter().flat_map(of_ciphers));
        jobs.extend(self.ssh.iter().flat_map(of_ssh));
        jobs.extend(self.compression.iter().flat_map(of_compression));
        jobs.extend(self.linpack.iter().flat_map(of_linpack));
        jobs
    }

    /// What a comparison says about how it was measured.
    pub fn facts(&self) -> Vec<Named> {
        let named = |name: &str, value: Option<String>| Named { name: name.into(), value };
        let clock = self.watched.clocks.iter().map(|clock| clock.mean_hz).max();
        vec![
            named("usable cores", Some(self.cores.to_string())),
            named(
                // What the machine's own programs are built for is another fact.
                "program",
                Some(format!("{} bits, {}", self.pointer_bits, self.architecture)),
            ),
            named("mean clock", clock.map(|hz| format!("{:.2} GHz", hz as f64 / 1e9))),
        ]
    }
}

fn of_ciphers(ciphers: &Ciphers) -> Vec<SubjectJob> {
    let rows = ciphers.rows.iter().flat_map(|row| {
        let title = format!(
            "{}, {} {}, {}",
            row.algorithm.name(),
            row.work.name(),
            block(row.block_bytes),
            row.place.name()
        );
        both(&title, &row.rates, Unit::BytesPerSecond)
    });
    rows.collect()
}

fn of_ssh(ssh: &Ssh) -> Vec<SubjectJob> {
    let rows = ssh.rows.iter().map(|row| {
        let name = row.cipher.split('@').next().unwrap_or_default();
        SubjectJob::computed(
            format!("ssh, {name}"),
            Figure::of(row.rate.per_second),
            Unit::BytesPerSecond,
        )
    });
    rows.collect()
}

/// Rates only: what a ratio is, is a matter of the data.
fn of_compression(compression: &Compression) -> Vec<SubjectJob> {
    let mut jobs = Vec::new();
    for sample in &compression.samples {
        let of = match sample.source {
            Source::Files { .. } => "files",
            Source::Corpus => "corpus",
        };
        for row in &sample.rows {
            let cut = match row.cut {
                Cut::Extents => "extents".to_string(),
                Cut::Pages { bytes } => format!("{} pages", block(bytes)),
            };
            for (cores, speed) in [("one core", Some(&row.one)), ("all cores", row.all.as_ref())] {
                let Some(speed) = speed else { continue };
                let mut add = |work: &str, rate| {
                    let title = format!("{}, {work} {cut}, {of}, {cores}", row.method);
                    jobs.push(SubjectJob::computed(title, Figure::of(rate), Unit::BytesPerSecond));
                };
                add("compress", speed.compress_bytes_per_second);
                if let Some(rate) = speed.expand_bytes_per_second {
                    add("expand", rate);
                }
            }
        }
    }
    jobs
}

/// Without the size and the block: the best of each machine is what is compared.
fn of_linpack(linpack: &Linpack) -> Vec<SubjectJob> {
    let one = linpack.one.iter().map(|rated| ("one core".into(), rated));
    let others = linpack.other_kinds.iter().map(|rated| {
        let kind = rated.core.as_deref().unwrap_or("other core");
        (format!("one {kind}"), rated)
    });
    let all = [("all cores".to_string(), &linpack.all)];
    let jobs = one.chain(others).chain(all).map(|(cores, rated)| {
        SubjectJob::computed(
            format!("linpack, {cores}"),
            Figure::of(rated.flops_per_second),
            Unit::OperationsPerSecond,
        )
    });
    jobs.collect()
}

/// A job for one core and one for all.
pub(super) fn both(title: &str, rates: &Rates, unit: Unit) -> Vec<SubjectJob> {
    let each = [("one core", &rates.one_core), ("all cores", &rates.all_cores)];
    let jobs = each.into_iter().filter_map(|(cores, rate)| {
        let rate = rate.as_ref()?;
        Some(SubjectJob::computed(format!("{title}, {cores}"), Figure::of(rate.per_second), unit))
    });
    jobs.collect()
}
