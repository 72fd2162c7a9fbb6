//! Compression of the user's files, and Linpack with HPL beside it.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use rubus_host::Live;
use rubus_host::files::own_files;
use rubus_host::process::affinity;
use rubus_host::process::programs;
use rubus_machine::not_copied::NotCopied;
use rubus_machine::probe::core_kinds;
use rubus_vocabulary::processor::compression::Compression;
use rubus_vocabulary::processor::linpack::{Linpack, hpl::Outcome};
use rubus_vocabulary::processor::{LeftOut, Part, ProcessorRun};

use super::{CpuSuite, hpl};
use crate::run::{CompressionPlan, Data, LinpackPlan};
use crate::solving;

/// Of the time of a figure: there are many of them, and each needs to see all data anyway.
const COMPRESSION_SHARE: f64 = 0.2;
/// Linpack without its stability test takes this many times the time of a figure.
const LINPACK_TIMES: f64 = 40.0;
/// Share of the free memory that a system of equations may take.
const MEMORY_SHARE: u64 = 4;
/// Where it is not known how much is free.
const LITTLE_MEMORY: u64 = 256 << 20;
/// What numbers are drawn from: the same on each machine.
const SEED: u64 = 1;

/// On the user's files, as far as there are enough, and on what is the same everywhere.
pub fn compression(
    suite: &CpuSuite<'_>,
    processor: &mut ProcessorRun,
) -> anyhow::Result<Compression> {
    let page_bytes = rustix::param::page_size() as u32;
    let methods = (suite.options.methods)(page_bytes);
    let methods = methods.map_err(|error| anyhow!("--methods: {error}"))?;
    (suite.says)("drawing a sample of files");
    let mut data = Vec::new();
    match Data::files(&suite.options.data, &NotCopied::of(suite.machine)) {
        Some(files) => data.push(files),
        None => processor.left_out.push(LeftOut {
            part: Part::Compression,
            what: format!(
                "the files below {}: too few that can be read; name a directory with more with --data",
                suite.options.data.display()
            ),
        }),
    }
    data.push(Data::corpus());
    let plan = CompressionPlan {
        methods,
        threads: suite.cores,
        seconds: suite.options.seconds * COMPRESSION_SHARE,
    };
    let says = &mut |what: &str| (suite.says)(what);
    Ok(Compression { samples: crate::run::compression(&plan, &data, says, suite.cancel) })
}

/// Ours, the stability test if it was asked for, and HPL's if it is there.
pub fn linpack(suite: &CpuSuite<'_>, processor: &mut ProcessorRun) -> anyhow::Result<Linpack> {
    let available = suite.machine.memory.available_bytes.get();
    let plan = LinpackPlan {
        n: suite.options.unknowns,
        max_bytes: available.map_or(LITTLE_MEMORY, |bytes| bytes / MEMORY_SHARE),
        seconds: suite.options.seconds * LINPACK_TIMES,
        blocks: suite.options.blocks.clone(),
        threads: suite.cores,
        kinds: core_kinds::kinds(&core_kinds::facts(&Live::new()), &affinity::allowed()),
        seed: SEED,
        stability_s: suite.options.stability,
    };
    if let (Some(n), Some(available)) = (plan.n, available) {
        anyhow::ensure!(
            solving::bytes(n) <= available / 10 * 9,
            "a system of {n} unknowns needs {} of the {} that are free; give less with --unknowns",
            rubus_vocabulary::units::bytes_iec(solving::bytes(n)),
            rubus_vocabulary::units::bytes_iec(available)
        );
    }
    let mut found = None;
    let looks = (suite.watched)(&mut || {
        let says = &mut |what: &str| (suite.says)(what);
        found = Some(crate::run::linpack(&plan, says, suite.cancel));
    });
    let found = found.context("it was not run")?;
    let found = found.context("there is not enough memory for a system of equations")?;
    let mut found = found.ok_or_else(|| anyhow!("it was interrupted before it had a result"))?;
    if let Some(stability) = &mut found.stability {
        solving::add_looks(stability, &looks);
    }
    let named = suite.options.hpl.clone();
    let xhpl = named.or_else(|| programs::find("xhpl"));
    if let Some(xhpl) = xhpl.filter(|_| !suite.options.alone) {
        (suite.says)("HPL solves the same size");
        match hpl_beside(&xhpl, &found, suite) {
            Ok(outcome) => found.hpl = Some(outcome),
            Err(error) => processor.left_out.push(LeftOut {
                part: Part::Linpack,
                what: format!("HPL with {}: {error:#}", xhpl.display()),
            }),
        }
    }
    Ok(found)
}

/// HPL on a system as large as ours, in a directory of its own.
fn hpl_beside(xhpl: &Path, found: &Linpack, suite: &CpuSuite<'_>) -> anyhow::Result<Outcome> {
    let xhpl = xhpl.canonicalize().context("it is not there")?;
    let scratch = ScratchDirectory::new()?;
    let dat = hpl::dat(found.all.n, &[found.block]);
    own_files::create_new(&scratch.0.join("HPL.dat"), 0o600)?.write_all(dat.as_bytes())?;
    let threads = format!("OMP_NUM_THREADS={}", suite.cores);
    let blis = format!("BLIS_NUM_THREADS={}", suite.cores);
    let (place, xhpl) = (scratch.0.to_string_lossy(), xhpl.to_string_lossy());
    let words = ["-C", &*place, &*threads, &*blis, &*xhpl];
    let said = programs::run("env", &words, suite.cancel)?;
    let outcome = hpl::parse(&said).into_iter().next();
    outcome.ok_or_else(|| anyhow!("it ended without a result that rubus can read"))
}

/// A private directory, deleted on drop. The directory of a killed process is removed by the next one.
struct ScratchDirectory(PathBuf);

/// How the names of such directories begin; the number of their process follows.
const SCRATCH_PREFIX: &str = "rubus-hpl-";

impl ScratchDirectory {
    fn new() -> std::io::Result<ScratchDirectory> {
        ScratchDirectory::below(&std::env::temp_dir())
    }

    fn below(directory: &Path) -> std::io::Result<ScratchDirectory> {
        use std::os::unix::fs::DirBuilderExt;
        sweep(directory);
        let path = directory.join(format!("{SCRATCH_PREFIX}{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(ScratchDirectory(path))
    }
}

/// Removes this user's directories of processes that are no more. One that cannot be removed stays for the next time.
fn sweep(directory: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for path in own_files::list(directory).unwrap_or_default() {
        let name = path.file_name().and_then(|name| name.to_str());
        let owner = name.and_then(|name| name.strip_prefix(SCRATCH_PREFIX));
        let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok()) else {
            continue;
        };
        // The entry itself, and not what a link leads to.
        let is_ours =
            path.symlink_metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        let is_alive = Path::new("/proc").join(owner.to_string()).exists();
        // This process makes one at a time, so one with its number is of an earlier process.
        if is_ours && (!is_alive || owner == std::process::id()) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_bench_left_for_hpl_is_removed_by_the_next() {
        let place = tempfile::tempdir().expect("a directory");
        let make = |name: &str| {
            let path = place.path().join(name);
            std::fs::create_dir(&path).expect("a directory");
            std::fs::write(path.join("HPL.dat"), "x").expect("a file");
            path
        };
        // No process has a number this high; the first one is always there.
        let left = make("rubus-hpl-4194999999");
        let in_use = make("rubus-hpl-1");
        let of_another = make("rubus-hpl-notes");
        let own = make(&format!("rubus-hpl-{}", std::process::id()));
        let scratch = ScratchDirectory::below(place.path()).expect("a directory");
        assert!(!left.exists() && in_use.exists() && of_another.exists());
        assert_eq!(scratch.0, own);
        assert_eq!(std::fs::read_dir(&own).expect("it is there").count(), 0);
        drop(scratch);
        assert!(!own.exists());
    }
}
