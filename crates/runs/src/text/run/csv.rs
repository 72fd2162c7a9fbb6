//! Runs as CSV (RFC 4180): one row per job, units in the names of the columns, what is not known
//! left empty.

use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::{Access, JobResult, Outcome, Run};
use rubus_vocabulary::spec::{Direction, Pattern};

use rubus_draw::csv::cell;
use rubus_draw::words;

/// The columns, in order.
const COLUMNS: [&str; 43] = [
    "started_utc",
    "rubus_version",
    "board",
    "kernel",
    "device",
    "filesystem",
    "target",
    "region_bytes",
    "content",
    "suite",
    "seed",
    "job",
    "title",
    "direction",
    "pattern",
    "block_bytes",
    "queue_depth",
    "copies",
    "commit",
    "access",
    "on",
    "engine",
    "elapsed_s",
    "operations",
    "bytes_per_second",
    "bytes_per_second_low",
    "bytes_per_second_high",
    "iops",
    "iops_low",
    "iops_high",
    "latency_min_ns",
    "latency_mean_ns",
    "latency_stddev_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "latency_max_ns",
    "cpu_busy_share",
    "cpu_ns_per_io",
    "stalls_ms",
    "outcome",
    "doubts",
];

/// The runs, with a line of column names.
pub fn render(runs: &[&Run]) -> String {
    if runs.iter().any(|run| run.memory().is_some()) {
        return rubus_memory::text::csv(runs);
    }
    if runs.iter().any(|run| run.processor().is_some()) {
        return rubus_processor::text::csv(runs);
    }
    let mut text = line(COLUMNS.map(String::from).as_slice());
    for run in runs {
        for result in &run.results {
            text.push_str(&line(&row(run, result)));
        }
    }
    text
}

fn row(run: &Run, result: &JobResult) -> Vec<String> {
    let target = &run.target;
    let text = |value: Option<&str>| value.unwrap_or_default().to_string();
    let whole = |value: Option<u64>| value.map_or(String::new(), |v| v.to_string());
    let latency = &result.latency_ns;
    let cpu = &result.cpu;
    let stalls: Vec<String> = result.stalls.iter().map(|s| number(s.length_ms)).collect();
    let doubts = run.doubts.iter().chain(&result.doubts);
    let doubts: Vec<String> = doubts.map(|doubt| doubt.what()).collect();
    let mut cells = vec![
        run.started.clone(),
        run.rubus_version.clone(),
        text(run.machine.board.model.text()),
        text(run.machine.system.kernel_release.text()),
        words::measured_device(run),
        text(target.filesystem.as_deref()),
        run.place(),
        target.region_bytes.to_string(),
        result.content.clone().unwrap_or_else(|| target.content.clone()),
        run.suite.clone(),
        run.seed.to_string(),
        result.job.clone(),
        words::job_title(result),
        match result.direction {
            Direction::Read => "read".into(),
            Direction::Write => "write".into(),
        },
        match result.pattern {
            Pattern::Sequential => "sequential".into(),
            Pattern::Random => "random".into(),
        },
        result.block_bytes.to_string(),
        result.queue_depth.to_string(),
        result.copies.unwrap_or(1).to_string(),
        result.commit.to_string(),
        match result.access.unwrap_or(target.access) {
            Access::Direct => "direct".into(),
            Access::Buffered => "buffered".into(),
        },
        text(result.on.as_deref()),
        result.engine.clone(),
        number(result.elapsed_s),
        result.operations.to_string(),
    ];
    cells.extend(estimate(&result.bytes_per_second));
    cells.extend(estimate(&result.iops));
    cells.extend([
        whole(latency.min),
        latency.mean.map_or(String::new(), number),
        latency.stddev.map_or(String::new(), number),
        whole(latency.p50),
        whole(latency.p90),
        whole(latency.p99),
        whole(latency.p99_9),
        whole(latency.max),
        number(cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal),
        number(result.cpu_ns_per_io),
        stalls.join(" "),
        match result.outcome {
            Outcome::Converged => "converged".into(),
            Outcome::Capped => "capped".into(),
            Outcome::Inconclusive => "inconclusive".into(),
        },
        doubts.join("; "),
    ]);
    cells
}

/// Value, lower and upper end; an infinite end is empty.
fn estimate(estimate: &Estimate) -> [String; 3] {
    [estimate.value, estimate.low, estimate.high].map(number)
}

/// A number with a point; nothing for what is not finite.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        String::new()
    } else if value.abs() >= 1000.0 {
        // Six digits are more than any measurement has, and fewer than a reader fears.
        format!("{value:.1}")
    } else {
        format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_string()
    }
}

/// A line with its end. Quoted is what holds a separator, a quote or a line end.
pub(crate) fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    cells.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;

    #[test]
    fn every_row_has_every_column() {
        let run = fixture::slow_sd_card_run();
        for result in &run.results {
            assert_eq!(row(&run, result).len(), COLUMNS.len());
        }
        let text = render(&[&run, &fixture::failed_run()]);
        assert_eq!(text.lines().count(), 1 + run.results.len());
        insta::assert_snapshot!(text.replace('\r', ""));
    }

    #[test]
    fn separators_quotes_and_line_ends_are_quoted() {
        let cells = ["a,b", "say \"x\"", "plain", "two\nlines", ""].map(String::from);
        assert_eq!(line(&cells), "\"a,b\",\"say \"\"x\"\"\",plain,\"two\nlines\",\r\n");
    }

    #[test]
    fn what_is_not_finite_is_empty() {
        let cells = estimate(&Estimate::new(1.5, 0.0, f64::INFINITY));
        assert_eq!(cells, ["1.5", "0", ""]);
    }
}
