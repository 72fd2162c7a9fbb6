//! Running fio, the reference, on the same device.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::pressure::Pressure;
use super::report;

/// One job of fio.
#[derive(Clone, Copy, Debug)]
pub struct FioJob<'a> {
    /// `read`, `randwrite`, … as fio calls it.
    pub pattern: &'a str,
    /// Bytes per operation.
    pub block_bytes: u64,
    /// Operations in flight; more than one takes io_uring.
    pub depth: u64,
    /// Bytes from the start of the target that are used.
    pub region_bytes: u64,
    /// Seconds of measuring, after one second of warm-up.
    pub seconds: u32,
}

/// What fio measured.
#[derive(Clone, Copy, Debug)]
pub struct FioResult {
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Operations per second.
    pub iops: f64,
}

/// Runs a job on a device whose truth is known, in bytes or operations per second as `figure` picks. fio
/// does not say when it was disturbed, so the test looks: when programs waited for the processors
/// and fio missed the truth by more than `share` too, it may try again up to two times.
pub fn run_undisturbed(
    fio: impl Fn() -> Command,
    target: &Path,
    job: FioJob,
    (truth, share): (f64, f64),
    figure: impl Fn(&FioResult) -> f64,
) -> FioResult {
    for _ in 0..2 {
        let since = Pressure::now();
        let result = run(fio(), target, job);
        let missed = (figure(&result) / truth - 1.0).abs() > share;
        match since.trouble().filter(|_| missed) {
            Some(reason) => report(&format!("fio disturbed: {reason}; measuring again")),
            None => return result,
        }
    }
    run(fio(), target, job)
}

/// Runs a job with direct I/O by a command that starts `fio`.
pub fn run(mut fio: Command, target: &Path, job: FioJob) -> FioResult {
    let engine = if job.depth > 1 { "io_uring" } else { "psync" };
    let output = fio
        .args(["--name=reference", "--direct=1", "--time_based", "--ramp_time=1"])
        .args(["--randrepeat=0", "--norandommap", "--output-format=json", "--allow_file_create=0"])
        .arg(format!("--runtime={}", job.seconds))
        .arg(format!("--filename={}", target.display()))
        .arg(format!("--rw={}", job.pattern))
        .arg(format!("--bs={}", job.block_bytes))
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--size={}", job.region_bytes))
        .arg(format!("--ioengine={engine}"))
        .output()
        .expect("fio starts");
    assert!(
        output.status.success(),
        "fio failed: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    // Notes may stand before the object.
    let object = text.find('{').map(|start| &text[start..]).unwrap_or_default();
    let result: Value = serde_json::from_str(object).expect("fio prints JSON");
    let direction = if job.pattern.contains("read") { "read" } else { "write" };
    let side = &result["jobs"][0][direction];
    FioResult {
        bytes_per_second: side["bw_bytes"].as_f64().expect("fio tells a rate"),
        iops: side["iops"].as_f64().expect("fio tells operations"),
    }
}
