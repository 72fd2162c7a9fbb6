//! The text of a run of any suite: what it says in sentences, then its tables.
//!
//! The suites of the checkup look like the checkup. A sweep is a table with one row per step, the
//! records are iozone's table, a sustained write is a curve in a line; everything else is the list of
//! jobs. At most 80 columns.

mod classes;
pub mod csv;
mod curve;
pub mod markdown;
mod named;
mod records;
mod sweeps;
mod together;

use rubus_verdict::verdict::Verdict;
use rubus_vocabulary::finding::Finding;
use rubus_vocabulary::result::Run;
use rubus_vocabulary::rule_finding::Weight;
use rubus_vocabulary::units::bytes_iec;

use rubus_draw::ends;
use rubus_draw::layout::{heading, joined, paragraph};
use rubus_draw::network;
use rubus_draw::style::{Style, Tone};
use rubus_machine::rules_text::{self as rules, Shown};
use rubus_verdict::text::checkup::{self, Detail, disturbances, job_file, jobs, title};
use rubus_verdict::text::findings::sentences;

/// The suites that answer the checkup's questions.
const CHECKUPS: [&str; 2] = ["quick", "full"];

/// Whether the run answers the checkup's questions.
pub fn is_checkup(run: &Run) -> bool {
    CHECKUPS.contains(&run.suite.as_str())
}

/// The text of a run, ending in a line feed.
pub fn render(run: &Run, verdict: &Verdict, detail: Detail, style: Style) -> String {
    if let Some(memory) = run.memory() {
        return rubus_memory::text::render(run, memory, style) + &below(vec![found(run, style)]);
    }
    if let Some(processor) = run.processor() {
        return rubus_processor::text::render(run, processor, style)
            + &below(vec![found(run, style)]);
    }
    if is_checkup(run) {
        return checkup::render(run, verdict, detail, style) + &more(run, detail, style);
    }
    let mut parts = vec![title(run, style), said(run, style)];
    parts.extend(tables(run, style));
    parts.push(ends::table(run, style));
    parts.push(nodes(run, style));
    parts.push(disturbances(run, verdict, detail, style));
    parts.push(job_file(run, style));
    parts.push(found(run, style));
    parts.push(if is_of_course(run) {
        paragraph(&format!("{} were written.", bytes_iec(run.bytes_written)), "")
    } else {
        paragraph(&verdict.certainty, "")
    });
    joined(parts)
}

/// Whether it is the course of a job that counts and not its mean, which need not settle.
fn is_of_course(run: &Run) -> bool {
    let is_cliff = |finding: &Finding| matches!(finding, Finding::Cliff(_));
    run.findings.iter().any(is_cliff)
}

/// How many findings of the rules the text of a run shows.
const FOUND: Shown = Shown::First { count: 3, others: "on the page and in the JSON" };

/// The findings of a checkup, which come after its own sentences. Beside the answer only what is dangerous, and how many more.
fn more(run: &Run, detail: Detail, style: Style) -> String {
    if detail == Detail::Answer {
        return below(vec![nodes(run, style), dangers(run, style)]);
    }
    let mut together = Vec::new();
    for sentence in sentences(run) {
        together.extend(paragraph(&sentence, "  "));
    }
    if !together.is_empty() {
        together.insert(0, heading("What several figures say together", style));
    }
    below(vec![together, nodes(run, style), found(run, style)])
}

/// The dangers among the findings, and a line that counts the others.
fn dangers(run: &Run, style: Style) -> Vec<String> {
    let findings = run.rule_findings();
    let (dangers, others): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|found| found.weight == Weight::Danger);
    let all = Shown::First { count: dangers.len(), others: "" };
    let mut lines = rules::lines(&dangers, all, style.columns, style);
    if !others.is_empty() {
        let more =
            format!("Also found: {} (to read: rubus history show last)", rules::counts(&others));
        lines.push(style.paint(Tone::Faint, &more));
    }
    lines
}

/// What the machines of a cluster spent.
fn nodes(run: &Run, style: Style) -> Vec<String> {
    let loads = run.target.cluster.as_ref().map(network::loads);
    let mut lines = Vec::new();
    for sentence in loads.unwrap_or_default() {
        lines.extend(paragraph(&sentence, "  "));
    }
    if !lines.is_empty() {
        lines.insert(0, heading("The cluster's busiest machines", style));
    }
    lines
}

/// What the rules found.
fn found(run: &Run, style: Style) -> Vec<String> {
    rules::lines(&run.rule_findings(), FOUND, rubus_draw::layout::COLUMNS, style)
}

/// What comes after a text that is whole.
fn below(parts: Vec<Vec<String>>) -> String {
    match joined(parts) {
        text if text.is_empty() => text,
        text => format!("\n{text}"),
    }
}

/// The findings, the first in bold.
fn said(run: &Run, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (i, sentence) in sentences(run).iter().enumerate() {
        let tone = if i == 0 { Tone::Strong } else { Tone::Plain };
        let wrapped = paragraph(sentence, "");
        lines.extend(wrapped.iter().map(|line| style.paint(tone, line)));
    }
    lines
}

/// The tables that suit the run.
fn tables(run: &Run, style: Style) -> Vec<Vec<String>> {
    let has = |is: fn(&Finding) -> bool| run.findings.iter().any(is);
    if has(|finding| matches!(finding, Finding::SpeedClass(_))) {
        return vec![classes::table(run, style), jobs(run, style)];
    }
    if is_of_course(run) {
        return vec![curve::lines(run, style)];
    }
    match run.suite.as_str() {
        "queue-depth" => sweeps::depths(run, style),
        "block-size" => sweeps::sizes(run, style),
        "record" => records::tables(run, style),
        "together" => together::tables(run, style),
        "stream" => named::streams(run, style),
        "commit" => named::commits(run, style),
        _ => vec![jobs(run, style)],
    }
}

#[cfg(test)]
mod memory_and_processor_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_draw::text::width;
    use rubus_fixtures as fixture;
    use rubus_verdict::verdict::verdict;
    use rubus_vocabulary::suite_jobs as job;

    fn shown(run: &Run) -> String {
        render(run, &verdict(run), Detail::All, Style::PLAIN)
    }

    #[test]
    fn a_checkup_with_what_to_change() {
        let run = rubus_verdict::fixture::slow_sd_card_run_with_rules();
        let all = shown(&run);
        let start = all.find("Findings:").expect("it has findings");
        insta::assert_snapshot!(&all[start..]);
    }

    /// Other benches say what the rules found too, in as few lines.
    #[test]
    fn every_bench_says_what_the_rules_found() {
        let with_rules = rubus_verdict::fixture::slow_sd_card_run_with_rules();
        let found: Vec<Finding> = with_rules
            .findings
            .into_iter()
            .filter(|finding| matches!(finding, Finding::Rule(_)))
            .collect();
        for mut run in [fixture::queue_depth_run(), fixture::memory_run(), fixture::processor_run()]
        {
            run.findings.retain(|finding| !matches!(finding, Finding::Rule(_)));
            assert!(!shown(&run).contains("Findings:"), "{}", run.suite);
            run.findings.extend(found.clone());
            let all = shown(&run);
            assert!(all.contains("Findings:"), "{all}");
            assert!(all.contains("more: on the page and in the JSON"), "{all}");
        }
    }

    #[test]
    fn a_sweep_of_depths() {
        insta::assert_snapshot!(shown(&fixture::queue_depth_run()));
    }

    #[test]
    fn a_sweep_of_sizes() {
        insta::assert_snapshot!(shown(&fixture::block_size_run()));
    }

    #[test]
    fn the_table_of_records() {
        insta::assert_snapshot!(shown(&fixture::record_run()));
    }

    #[test]
    fn small_files() {
        insta::assert_snapshot!(shown(&fixture::small_files_run()));
    }

    #[test]
    fn a_capacity_that_is_not_there() {
        insta::assert_snapshot!(shown(&fixture::capacity_run()));
    }

    #[test]
    fn a_sustained_write() {
        insta::assert_snapshot!(shown(&fixture::sustained_run()));
    }

    #[test]
    fn machines_of_a_cluster() {
        let mut run = fixture::network_run();
        run.suite = "objects".into();
        run.target.cluster = Some(fixture::troubled_cluster());
        let text = shown(&run);
        let start = text.find("The cluster's busiest").expect("a heading");
        let lines: Vec<&str> = text[start..].lines().take(5).collect();
        insta::assert_snapshot!(lines.join("\n"));
        run.suite = "quick".into();
        assert!(shown(&run).contains("The cluster's busiest machines"));
    }

    #[test]
    fn a_job_file() {
        insta::assert_snapshot!(shown(&fixture::job_file_run()));
    }

    #[test]
    fn of_many_ignored_options_the_first_few_are_named() {
        let mut run = fixture::job_file_run();
        let file = run.job_file.as_mut().expect("a job file");
        file.ignored = (1..=102).map(|job| format!("left out: job {job}")).collect();
        let text = shown(&run);
        assert!(text.contains("left out: job 5\n") && !text.contains("job 6\n"), "{text}");
        assert!(text.contains("  and 97 more: see job_file.ignored in the JSON\n"), "{text}");
    }

    #[test]
    fn classes() {
        let mut run = fixture::slow_sd_card_run();
        run.suite = "class".into();
        run.findings = rubus_verdict::fixture::every_finding()
            .into_iter()
            .filter(|finding| matches!(finding, Finding::SpeedClass(_)))
            .collect();
        insta::assert_snapshot!(shown(&run));
    }

    /// A run with the results of another under other names.
    fn renamed(suite: &str, names: &[&str]) -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.suite = suite.into();
        run.results.truncate(names.len());
        for (result, name) in run.results.iter_mut().zip(names) {
            result.job = (*name).into();
        }
        run
    }

    #[test]
    fn targets_together() {
        insta::assert_snapshot!(shown(&fixture::together_run()));
    }

    #[test]
    fn streams() {
        let names = [job::STREAM_ZEROS, job::STREAM_WRITE, job::STREAM_READ];
        let mut run = renamed("stream", &names);
        run.results.iter_mut().for_each(|r| r.passes = Some(3));
        run.findings = rubus_verdict::findings::of(&run);
        insta::assert_snapshot!(shown(&run));
    }

    #[test]
    fn commits() {
        let names = [job::COMMIT_APPEND, job::COMMIT_IN_PLACE, job::COMMIT_LOGGER];
        insta::assert_snapshot!(shown(&renamed("commit", &names)));
    }

    #[test]
    fn a_checkup_looks_like_one() {
        let mut run = fixture::slow_sd_card_run();
        let usual = checkup::render(&run, &verdict(&run), Detail::All, Style::PLAIN);
        assert_eq!(shown(&run), usual);
        run.findings = fixture::queue_depth_run().findings;
        assert!(shown(&run).starts_with(&usual));
        assert!(shown(&run).len() > usual.len());
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        for mut run in fixture::suite_runs() {
            run.findings.extend(rubus_verdict::fixture::every_finding());
            for line in shown(&run).lines() {
                assert!(width(line) <= rubus_draw::layout::COLUMNS, "{line}");
            }
        }
    }
}
