//! A run as markdown, to be pasted into a forum or an issue: board, device, figures with their
//! intervals, doubts.

use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{bytes_iec, duration_ns, iops, rate_si};

use rubus_draw::markdown::escape;
use rubus_draw::words;
use rubus_verdict::text::disturbances;

/// The run, ending in a line feed.
pub fn render(run: &Run, verdict: &Verdict) -> String {
    if let Some(memory) = run.memory() {
        return rubus_memory::text::markdown(run, memory);
    }
    if let Some(processor) = run.processor() {
        return rubus_processor::text::markdown(run, processor);
    }
    let mut text = format!("### {}\n\n", escape(&verdict.headline));
    for (name, value) in facts(run) {
        text.push_str(&format!("- {name}: {}\n", escape(&value)));
    }
    if !run.results.is_empty() {
        text.push('\n');
        text.push_str(&results(run));
        text.push_str(&format!("\n{}\n", escape(&verdict.certainty)));
    }
    let groups = disturbances::disturbance_groups(run, verdict);
    if !groups.is_empty() {
        text.push_str("\nDoubts:\n\n");
    }
    for group in groups {
        let Some(first) = group.first() else { continue };
        let jobs: Vec<String> = group
            .iter()
            .flat_map(|disturbance| &disturbance.jobs)
            .map(|job| words::job_title_by_name(run, job))
            .collect();
        let during =
            if jobs.is_empty() { String::new() } else { format!(" ({})", jobs.join(", ")) };
        text.push_str(&format!("- {}{}\n", escape(&first.what), escape(&during)));
    }
    text
}

/// Board, kernel, device and settings, one line each.
fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let machine = &run.machine;
    let target = &run.target;
    let mut facts = Vec::new();
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push((name, value));
        }
    };
    let text = |value: Option<&str>| value.map(str::to_string);
    add("board", text(machine.board.model.text()));
    add("system", text(machine.system.os.text()));
    add("kernel", text(machine.system.kernel_release.text()));
    add("device", Some(words::measured_device(run)));
    add("filesystem", target.filesystem.clone());
    add("target", Some(run.place()));
    add(
        "measured",
        Some(format!(
            "{}, {} region, {}, {} content, rubus {}, {}",
            run.suite,
            bytes_iec(target.region_bytes),
            words::accesses(run),
            target.content,
            run.rubus_version,
            words::moment(&run.started)
        )),
    );
    facts
}

fn results(run: &Run) -> String {
    let mut text = String::from(
        "| job | rate | 95 % interval | per second | median | p99 | longest | |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for result in &run.results {
        let rate = &result.bytes_per_second;
        let range = if rate.high.is_finite() {
            format!("{} to {}", rate_si(rate.low), rate_si(rate.high))
        } else {
            format!("above {}", rate_si(rate.low))
        };
        let latency = |ns: Option<u64>| ns.map_or("–".into(), duration_ns);
        let cells = [
            words::job_title(result),
            rate_si(rate.value),
            range,
            iops(result.iops.value),
            latency(result.latency_ns.p50),
            latency(result.latency_ns.p99),
            latency(result.latency_ns.max),
            remarks(result),
        ];
        text.push_str(&row(&cells));
    }
    text
}

fn remarks(result: &JobResult) -> String {
    let mut remarks = Vec::new();
    if result.outcome != Outcome::Converged {
        remarks.push(words::outcome(result.outcome).to_string());
    }
    match result.stalls.len() {
        0 => {}
        1 => remarks.push("1 stall".into()),
        n => remarks.push(format!("{n} stalls")),
    }
    remarks.join(", ")
}

/// A row of a table, its cells escaped.
pub(crate) fn row(cells: &[String]) -> String {
    let escaped: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    format!("| {} |\n", escaped.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_verdict::verdict::verdict;
    use rubus_vocabulary::result::Access;

    #[test]
    fn a_run_to_paste() {
        let run = fixture::slow_sd_card_run();
        insta::assert_snapshot!(render(&run, &verdict(&run)));
    }

    #[test]
    fn buffered_jobs_are_said_to_be_buffered() {
        let mut run = fixture::slow_sd_card_run();
        run.results.iter_mut().for_each(|result| result.access = Some(Access::Buffered));
        let text = render(&run, &verdict(&run));
        assert!(text.contains("through the page cache") && !text.contains("direct I/O"), "{text}");
    }

    #[test]
    fn a_failed_run_to_paste() {
        let run = fixture::failed_run();
        let text = render(&run, &verdict(&run));
        assert!(!text.contains("<b>"), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_of_a_name_is_obeyed() {
        assert_eq!(
            escape("a|b `c` <i> *d* [x](y)\n"),
            "a\\|b \\`c\\` &lt;i&gt; \\*d\\* \\[x\\](y)\u{fffd}"
        );
    }
}
