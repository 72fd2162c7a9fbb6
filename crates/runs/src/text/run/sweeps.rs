//! Sweeps as tables: one row per queue depth or block size.

use rubus_vocabulary::finding::{Finding, Knee};
use rubus_vocabulary::result::{Access, JobResult, Run};
use rubus_vocabulary::spec::Direction;
use rubus_vocabulary::units::{duration_ns, iops, rate_si};

use rubus_draw::layout::heading;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::words::{block, half_width};
use rubus_verdict::text::checkup::Legend;
use rubus_verdict::text::findings::what;

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 24;

/// One table for each sweep of depths.
pub(super) fn depths(run: &Run, style: Style) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut legend = Legend::of(run);
    let mut sweeps: Vec<Vec<&JobResult>> = Vec::new();
    for result in &run.results {
        let kind = |r: &JobResult| (r.direction, r.pattern, r.block_bytes);
        match sweeps.iter_mut().find(|sweep| kind(sweep[0]) == kind(result)) {
            Some(sweep) => sweep.push(result),
            None => sweeps.push(vec![result]),
        }
    }
    for sweep in &sweeps {
        let first = sweep[0];
        let title = what(first.block_bytes, first.direction, first.pattern);
        let mut lines = vec![heading(&title, style)];
        lines.extend(depth_table(run, sweep, &mut legend).lines(style));
        parts.push(lines);
    }
    if !sweeps.is_empty() {
        parts.push(faint(
            &legend.after(
                "depth: operations in flight. ±: to the farther end of the 95 % interval. p50, p99: half and 99 % of \
                 the operations took no longer.",
                style,
            ),
            style,
        ));
    }
    parts
}

fn depth_table(run: &Run, sweep: &[&JobResult], legend: &mut Legend<'_>) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("depth", Right),
        ("per s", Right),
        ("±", Right),
        ("p50", Right),
        ("p99", Right),
        ("", Left),
        ("", Left),
    ]);
    let knee = run.findings.iter().find_map(|finding| match finding {
        Finding::Knee(knee) if knee.jobs.contains(&sweep[0].job) => Some(knee),
        _ => None,
    });
    let at_knee = knee.and_then(|knee| nearest(sweep, knee));
    let most = sweep.iter().map(|r| r.iops.value).fold(0.0, f64::max);
    for result in sweep {
        let latency = |ns: Option<u64>| Cell::from(ns.map_or("–".into(), duration_ns));
        let is_knee = at_knee == Some(result.queue_depth);
        let mark = if is_knee { " ← knee" } else { "" };
        let tone = if is_knee { Tone::Warn } else { Tone::Plain };
        table.row(vec![
            result.queue_depth.to_string().into(),
            iops(result.iops.value).into(),
            half_width(&result.iops).into(),
            latency(result.latency_ns.p50),
            latency(result.latency_ns.p99),
            Cell::toned(&legend.flags(result), Tone::Warn),
            Cell::toned(&format!("{}{mark}", bar(result.iops.value / most)), tone),
        ]);
    }
    table
}

/// The depth that was measured nearest to the knee; none where there is no gain or the knee was not
/// reached.
fn nearest(sweep: &[&JobResult], knee: &Knee) -> Option<u32> {
    if knee.is_one_at_a_time || !knee.is_reached {
        return None;
    }
    let distance = |depth: u32| (f64::from(depth) / knee.depth.value).ln().abs();
    let depths = sweep.iter().map(|result| result.queue_depth);
    depths.min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
}

fn bar(share: f64) -> String {
    let halves = (share.clamp(0.0, 1.0) * (2 * BAR_COLUMNS) as f64).round() as usize;
    let halves = halves.max(1);
    format!("{}{}", "█".repeat(halves / 2), if halves % 2 == 1 { "▌" } else { "" })
}

/// One table for all sweeps of sizes, the ways side by side.
pub(super) fn sizes(run: &Run, style: Style) -> Vec<Vec<String>> {
    let mut ways: Vec<(String, Vec<&JobResult>)> = Vec::new();
    for result in &run.results {
        let name = way(run, result);
        match ways.iter_mut().find(|(known, _)| *known == name) {
            Some((_, results)) => results.push(result),
            None => ways.push((name, vec![result])),
        }
    }
    let mut sizes: Vec<u32> = run.results.iter().map(|r| r.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut columns = vec![("block", Align::Right)];
    for (name, _) in &ways {
        columns.extend([(name.as_str(), Align::Right), ("±", Align::Right), ("", Align::Left)]);
    }
    let mut table = Table::new(&columns);
    let mut legend = Legend::of(run);
    for size in sizes {
        let mut row = vec![Cell::from(block(size))];
        for (_, results) in &ways {
            match results.iter().find(|result| result.block_bytes == size) {
                Some(result) => row.extend([
                    rate_si(result.bytes_per_second.value).into(),
                    half_width(&result.bytes_per_second).into(),
                    Cell::toned(legend.precision(result), Tone::Warn),
                ]),
                None => row.extend([Cell::from("–"), Cell::default(), Cell::default()]),
            }
        }
        table.row(row);
    }
    if table.is_empty() {
        return Vec::new();
    }
    vec![
        table.lines(style),
        faint(
            &legend.after(
                "direct: past the page cache. commits: written through it, each made durable. ±: to the farther end of \
                 the 95 % interval.",
                style,
            ),
            style,
        ),
    ]
}

/// "direct reads", "commits".
fn way(run: &Run, result: &JobResult) -> String {
    let verbs = match result.direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    };
    match (result.commit, run.access_of(result)) {
        (true, _) => "commits".into(),
        (false, Access::Direct) => format!("direct {verbs}"),
        (false, Access::Buffered) => format!("cached {verbs}"),
    }
}

fn faint(lines: &[String], style: Style) -> Vec<String> {
    lines.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}
