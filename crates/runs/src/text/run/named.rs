//! Tables of suites whose jobs differ in what their titles do not say: streams and commits.

use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::suite_jobs as job;
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::words::half_width;
use rubus_verdict::text::checkup::Legend;

/// Streams: the rate of whole passes, with how many there were.
pub(super) fn streams(run: &Run, style: Style) -> Vec<Vec<String>> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("1 MiB blocks, through the page cache", Left),
        ("rate", Right),
        ("±", Right),
        ("passes", Right),
        ("a pass", Right),
        ("", Left),
    ]);
    let mut legend = Legend::of(run);
    for result in &run.results {
        let what = match result.job.as_str() {
            job::STREAM_WRITE => "written: data that does not compress",
            job::STREAM_ZEROS => "written: zeros",
            job::STREAM_READ => "read again with a cold cache",
            other => other,
        };
        let passes = result.passes.unwrap_or(1);
        let each_ns = result.elapsed_s / f64::from(passes.max(1)) * 1e9;
        table.row(vec![
            what.into(),
            rate_si(result.bytes_per_second.value).into(),
            half_width(&result.bytes_per_second).into(),
            passes.to_string().into(),
            duration_ns(each_ns as u64).into(),
            Cell::toned(&legend.flags(result), Tone::Warn),
        ]);
    }
    let about = "Each pass writes a new file from its start and ends with the flush, which counts, as with \
                 dd bs=1M conv=fsync. ±: to the farther end of the 95 % interval over the passes.";
    with_legend(&table, &legend, about, style)
}

/// Commits: how long until a small write is safe.
pub(super) fn commits(run: &Run, style: Style) -> Vec<Vec<String>> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("4 KiB, each made durable", Left),
        ("per s", Right),
        ("±", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("longest", Right),
        ("", Left),
    ]);
    let mut legend = Legend::of(run);
    for result in &run.results {
        let latency = |ns: Option<u64>| Cell::from(ns.map_or("–".into(), duration_ns));
        // The rate of a logger is what it was told.
        let (rate, width) = match result.job.as_str() {
            job::COMMIT_LOGGER => ("1".into(), Cell::default()),
            _ => (iops(result.iops.value), half_width(&result.iops).into()),
        };
        table.row(vec![
            commit(result).into(),
            rate.into(),
            width,
            latency(result.latency_ns.p50),
            latency(result.latency_ns.p90),
            latency(result.latency_ns.p99),
            latency(result.latency_ns.max),
            Cell::toned(&legend.flags(result), Tone::Warn),
        ]);
    }
    let about = "p50, p90, p99: half, 90 and 99 % took no longer. ±: to the farther end of the 95 % interval. A lone \
                 commit may find the device asleep; one of many may wait for the one before.";
    with_legend(&table, &legend, about, style)
}

fn commit(result: &JobResult) -> &str {
    match result.job.as_str() {
        job::COMMIT_APPEND => "at the end, back to back",
        job::COMMIT_IN_PLACE => "in place, back to back",
        job::COMMIT_LOGGER => "at the end, one per second",
        other => other,
    }
}

fn with_legend(table: &Table, legend: &Legend<'_>, about: &str, style: Style) -> Vec<Vec<String>> {
    if table.is_empty() {
        return Vec::new();
    }
    let lines = legend.after(about, style);
    let faint = lines.iter().map(|line| style.paint(Tone::Faint, line));
    vec![table.lines(style), faint.collect()]
}
