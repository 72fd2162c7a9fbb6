//! The text of a checkup: one screen, at most 80 columns, the verdict on top.
//!
//! Somebody with a slow board must understand the sentences; an engineer must find the numbers.
//! What does not fit here is on the page and in the JSON.

use crate::verdict::{Disturbance, Grade, Pipe, PipeKind, Verdict, WorkTime};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{bytes_si, duration_ns, iops, rate_si};

use crate::text::disturbances;
use rubus_draw::ends;
use rubus_draw::layout::{COLUMNS, board, heading, joined, paragraph};
use rubus_draw::network;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, clean, hang, pad_left, pad_right, shorten, width};
use rubus_draw::words;

/// Lines for the sentences beyond the headline, and for the disturbances; the page has all.
const SENTENCE_LINES: usize = 6;
const DISTURBANCE_LINES: usize = 4;

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 6;
/// Columns of the reference work of a kind of operation ("1.12 GB").
const WANTED_COLUMNS: usize = 7;

/// Columns of a time ("8.5 min"), and of an interval of times ("7.2 min to 10 min").
const TIME_COLUMNS: usize = 7;
const RANGE_COLUMNS: usize = 18;

/// The text of a checkup, ending in a line feed.
pub fn render(run: &Run, verdict: &Verdict, style: Style) -> String {
    let parts = [
        title(run, style),
        headline(verdict, style),
        jobs(run, style),
        ends::table(run, style),
        pipes(verdict, style),
        sentences(verdict, style),
        good_for(verdict, style),
        disturbances(run, verdict, style),
        paragraph(&verdict.certainty, ""),
    ];
    joined(parts)
}

/// What was measured, on what, when: three faint lines.
pub fn title(run: &Run, style: Style) -> Vec<String> {
    let before = format!("rubus {} · ", clean(&run.rubus_version));
    let after = format!(" · {} · {}", words::moment(&run.started), words::span(run.elapsed_s));
    let room = COLUMNS.saturating_sub(width(&before) + width(&after));
    let path = shorten(&clean(&run.place()), room);
    let device = match &run.target.network {
        Some(facts) => format!("the network disk, {}", network::network(facts)),
        None => format!("{}, {}", device(run), words::accesses(run)),
    };
    let mut lines = vec![format!("{before}{path}{after}")];
    lines.extend(paragraph(&board(run), ""));
    lines.extend(paragraph(&device, ""));
    if let Some(on) = &run.on {
        lines.extend(paragraph(&words::elsewhere(on), ""));
    }
    if let Some(queues) = words::queues(run) {
        lines.extend(paragraph(&queues, ""));
    }
    lines.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}

fn headline(verdict: &Verdict, style: Style) -> Vec<String> {
    paragraph(&verdict.headline, "")
        .into_iter()
        .map(|line| style.paint(Tone::Strong, &line))
        .collect()
}

/// "mmcblk0 (SC64G, 63.9 GB), ext4 on mmcblk0p2".
fn device(run: &Run) -> String {
    let target = &run.target;
    let mut parts = Vec::new();
    if let Some(name) = target.device.as_deref() {
        for disk in run.machine.disks_below(name) {
            let size = disk.size_bytes.get().map(bytes_si);
            let model = disk.model.text().map(|model| model.trim().to_string());
            let about: Vec<String> = [model, size].into_iter().flatten().collect();
            if about.is_empty() {
                parts.push(disk.name.clone());
            } else {
                parts.push(format!("{} ({})", disk.name, about.join(", ")));
            }
        }
    }
    match (&target.filesystem, &target.device) {
        (Some(filesystem), Some(device)) => parts.push(format!("{filesystem} on {device}")),
        (Some(filesystem), None) => parts.push(filesystem.clone()),
        (None, _) => {}
    }
    parts.push(words::target_kind(target.kind).to_string());
    parts.join(", ")
}

/// The table of jobs, a line each, with what disturbed them.
pub fn jobs(run: &Run, style: Style) -> Vec<String> {
    if run.results.is_empty() {
        return Vec::new();
    }
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("", Left),
        ("rate", Right),
        ("±", Right),
        ("per s", Right),
        ("p50", Right),
        ("p99", Right),
        ("CPU", Right),
        ("", Left),
    ]);
    let mut legend = Legend::default();
    for result in &run.results {
        let unsettled = result.outcome == Outcome::Inconclusive;
        let tone = if unsettled { Tone::Faint } else { Tone::Plain };
        let latency = |ns: Option<u64>| Cell::from(ns.map_or("–".into(), duration_ns));
        table.row(vec![
            Cell::toned(&words::job_title(result), tone),
            Cell::toned(&words::rate(result), tone),
            Cell::toned(&words::half_width(&result.iops), tone),
            Cell::toned(&iops(result.iops.value), tone),
            latency(result.latency_ns.p50),
            latency(result.latency_ns.p99),
            words::busy(&result.cpu).into(),
            Cell::toned(&legend.flags(result), Tone::Warn),
        ]);
    }
    let mut lines = table.lines(style);
    lines.extend(responses(run));
    lines.extend(legend.lines().into_iter().map(|line| style.paint(Tone::Faint, &line)));
    lines
}

/// Of each job with a rate limit, how long what was due waited and took.
fn responses(run: &Run) -> Vec<String> {
    let line = |result: &JobResult| {
        let response = result.response_ns?;
        let shown = |ns: Option<u64>| ns.map_or("–".into(), duration_ns);
        let words = format!(
            "from due to done, waiting included: p50 {}, p99 {}, longest {}",
            shown(response.p50),
            shown(response.p99),
            shown(response.max)
        );
        let title = shorten(&clean(&words::job_title(result)), COLUMNS / 2);
        Some(hang(&format!("{title}: "), &words, COLUMNS))
    };
    run.results.iter().filter_map(line).flatten().collect()
}

/// The flags behind a row and, below the table, what those that were used mean.
#[derive(Default)]
pub struct Legend {
    used: Vec<char>,
}

impl Legend {
    const MEANINGS: [(char, &'static str); 4] = [
        ('?', "? did not settle, do not rely on it"),
        ('~', "~ imprecise"),
        ('s', "s stalled"),
        ('!', "! disturbed"),
    ];

    /// The signs behind a result; the legend below a table names those that were given.
    pub fn flags(&mut self, result: &JobResult) -> String {
        let disturbed = result.doubts.iter().any(|d| !matches!(d, Doubt::NotPrecise { .. }));
        let set = [
            ('?', result.outcome == Outcome::Inconclusive),
            ('~', result.outcome == Outcome::Capped),
            ('s', !result.stalls.is_empty()),
            ('!', disturbed),
        ];
        let flags: Vec<char> = set.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect();
        self.used.extend(&flags);
        flags.into_iter().collect()
    }

    fn lines(&self) -> Vec<String> {
        self.after(
            "±: to the farther end of the 95 % interval. p50, p99: half and 99 % of the operations took no longer. ×32: 32 at once. CPU: whole machine.",
        )
    }

    /// The flag that says how precise a result is, where there is no room for more.
    pub fn precision(&mut self, result: &JobResult) -> &'static str {
        let (flag, text) = match result.outcome {
            Outcome::Converged => return "",
            Outcome::Capped => ('~', "~"),
            Outcome::Inconclusive => ('?', "?"),
        };
        self.used.push(flag);
        text
    }

    /// A text about a table with the meanings of the flags that were used in it.
    pub fn after(&self, text: &str) -> Vec<String> {
        let used = Self::MEANINGS.iter().filter(|(flag, _)| self.used.contains(flag));
        let mut text = text.to_string();
        for (_, meaning) in used {
            text.push(' ');
            text.push_str(&meaning.replace(' ', "\u{a0}"));
            text.push('.');
        }
        hang("", &bind_units(&text), COLUMNS)
    }
}

fn pipes(verdict: &Verdict, style: Style) -> Vec<String> {
    let operations: Vec<(&Pipe, f64)> =
        verdict.pipes.iter().filter_map(|pipe| Some((pipe, pipe.demand_s?))).collect();
    let longest = operations.iter().map(|(_, demand)| *demand).fold(0.0, f64::max);
    if longest <= 0.0 {
        return Vec::new();
    }
    let mut lines = vec![heading(
        "What the reference work needs (a start, an installation, a browser, …)",
        style,
    )];
    let title_columns = operations.iter().map(|(pipe, _)| width(&pipe.name)).max().unwrap_or(0);
    for (pipe, demand) in &operations {
        let (tone, mark) =
            if pipe.narrowest { (Tone::Warn, "  ← narrowest") } else { (Tone::Plain, "") };
        let range = pipe.demand_range();
        let range = range.map_or(String::new(), |(low_s, high_s)| words::between(low_s, high_s));
        lines.push(format!(
            "  {}  {}  {}  {}  {}{mark}",
            pad_left(&wanted(pipe, *demand), WANTED_COLUMNS),
            pad_right(&clean(&pipe.name), title_columns),
            pad_left(&words::roughly(*demand), TIME_COLUMNS),
            pad_right(&range, RANGE_COLUMNS),
            style.paint(tone, &bar(demand / longest)),
        ));
    }
    if let Some(pieces) = pieces(verdict) {
        lines.extend(paragraph(&pieces, "  "));
    }
    let path: Vec<String> = verdict.pipes.iter().filter_map(bus).collect();
    if !path.is_empty() {
        lines.extend(paragraph(&format!("Way there: {}.", path.join("; ")), "  "));
    }
    lines
}

/// The piece of the reference work that takes longest, and the longest of those that another kind of operation holds up.
fn pieces(verdict: &Verdict) -> Option<String> {
    let mut works: Vec<&WorkTime> = verdict.works.iter().collect();
    works.sort_by(|a, b| b.busy_s.value.total_cmp(&a.busy_s.value));
    let longest = works.first()?;
    let other = works.iter().find(|work| work.mostly != longest.mostly);
    let words = |work: &WorkTime| {
        let time = words::roughly(work.busy_s.value);
        format!("{} takes up to {time}, mostly {}", work.work, work.mostly)
    };
    let parts: Vec<String> =
        [Some(longest), other].into_iter().flatten().map(|work| words(work)).collect();
    Some(format!("Of that, {}.", parts.join("; ")))
}

/// How much of a kind of operation the reference work has: what takes `demand_s` seconds
/// at the pipe's capacity.
pub fn wanted(pipe: &Pipe, demand_s: f64) -> String {
    match (pipe.bytes_per_second, pipe.operations_per_second) {
        (Some(rate), _) => bytes_si((rate.value * demand_s).round() as u64),
        (None, Some(rate)) => format!("{:.0}", rate.value * demand_s),
        (None, None) => String::new(),
    }
}

fn bus(pipe: &Pipe) -> Option<String> {
    let rate = pipe.bytes_per_second.filter(|_| pipe.kind == PipeKind::Bus)?.value;
    let how = if pipe.measured { "measured" } else { "about" };
    Some(format!("{} ({how} {})", pipe.name, rate_si(rate)))
}

/// A bar in halves of a column; never empty, since a demand is never nothing.
fn bar(share: f64) -> String {
    let halves = (share.clamp(0.0, 1.0) * (2 * BAR_COLUMNS) as f64).round() as usize;
    let halves = halves.max(1);
    format!("{}{}", "█".repeat(halves / 2), if halves % 2 == 1 { "▌" } else { "" })
}

fn sentences(verdict: &Verdict, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for sentence in &verdict.sentences {
        let wrapped = paragraph(sentence, "  ");
        if lines.len() + wrapped.len() > SENTENCE_LINES {
            break;
        }
        lines.extend(wrapped);
    }
    if !lines.is_empty() {
        lines.insert(0, heading("What it behaves like", style));
    }
    lines
}

fn good_for(verdict: &Verdict, style: Style) -> Vec<String> {
    let all_unknown = verdict.good_for.iter().all(|s| s.grade == Grade::Unknown);
    if all_unknown {
        return Vec::new();
    }
    let mut lines = vec![heading("Good for", style)];
    let columns = verdict.good_for.iter().map(|s| width(&s.purpose)).max().unwrap_or(0);
    for suitability in &verdict.good_for {
        let (word, tone) = disturbances::grade(suitability.grade);
        let first = format!(
            "  {}  {}  ",
            pad_right(&clean(&suitability.purpose), columns),
            pad_right(word, 7)
        );
        let mut wrapped = paragraph(&suitability.reason, &first).into_iter();
        let line = wrapped.next().unwrap_or(first);
        lines.push(line.replacen(word, &style.paint(tone, word), 1));
        lines.extend(wrapped);
    }
    lines
}

/// What disturbed the run, grouped by kind, as a section of lines.
pub fn disturbances(run: &Run, verdict: &Verdict, style: Style) -> Vec<String> {
    let mut groups = disturbances::disturbance_groups(run, verdict);
    groups.sort_by_key(|group| group.first().map(|first| rank(run, first)));
    let mut lines = Vec::new();
    let mut left_out = 0;
    for group in &groups {
        let wrapped = paragraph(&disturbance_words(run, group), "  ");
        if lines.len() + wrapped.len() <= DISTURBANCE_LINES {
            lines.extend(wrapped);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        lines.push(format!("  and {left_out} more, on the page and in the JSON"));
    }
    if !lines.is_empty() {
        lines.insert(0, heading("What disturbed it", style));
    }
    lines
}

/// "a core was 97 % busy … (4 KiB random reads and 3 more jobs): read the result as …".
fn disturbance_words(run: &Run, group: &[&Disturbance]) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let mut jobs = group.iter().flat_map(|disturbance| &disturbance.jobs);
    let during = match (jobs.next(), jobs.count()) {
        (None, _) => String::new(),
        (Some(job), 0) => format!(" ({})", words::job_title_by_name(run, job)),
        (Some(job), 1) => format!(" ({} and 1 more job)", words::job_title_by_name(run, job)),
        (Some(job), more) => {
            format!(" ({} and {more} more jobs)", words::job_title_by_name(run, job))
        }
    };
    format!("{}{during}: {}", first.what, first.remedy)
}

/// What the job file says and was not done, or not so; what has no effect here is only counted.
pub fn job_file(run: &Run, style: Style) -> Vec<String> {
    let Some(job_file) = &run.job_file else {
        return Vec::new();
    };
    let mut lines = vec![heading("Ignored job-file options", style)];
    if job_file.ignored.is_empty() {
        lines.clear();
    }
    for text in &job_file.ignored {
        lines.extend(paragraph(text, "  "));
    }
    let notes = match job_file.notes.len() {
        0 => return lines,
        1 => "1 option is".to_string(),
        count => format!("{count} options are"),
    };
    let text = format!(
        "{notes} handled differently or without effect here: see job_file.notes in the JSON, or docs/how-to/fio.md."
    );
    lines.extend(paragraph(&text, if lines.is_empty() { "" } else { "  " }));
    lines
}

/// How far up a disturbance belongs, 0 first.
fn rank(run: &Run, disturbance: &Disturbance) -> u8 {
    match disturbances::doubt_of(run, disturbance) {
        Some(Doubt::TargetFailed { .. } | Doubt::Interrupted) => 0,
        Some(
            Doubt::AboveCeiling { .. }
            | Doubt::AboveLink { .. }
            | Doubt::ClusterTroubled { .. }
            | Doubt::ThroughPageCache { .. }
            | Doubt::DirectIsBuffered { .. }
            | Doubt::LoopThroughCache { .. },
        ) => 1,
        Some(
            Doubt::NotWatched { .. } | Doubt::ServerSilent { .. } | Doubt::FewOperations { .. },
        ) => 4,
        Some(Doubt::LongFlush { .. } | Doubt::NoRing { .. }) => 3,
        Some(_) | None => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::verdict;
    use rubus_fixtures as fixture;
    use rubus_vocabulary::fact::Fact;
    use rubus_vocabulary::machine::Throttling;
    use rubus_vocabulary::result::Access;

    #[test]
    fn a_slow_and_disturbed_card() {
        let run = fixture::slow_sd_card_run();
        let text = render(&run, &verdict(&run), Style::PLAIN);
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 58, "{} lines", text.lines().count());
    }

    #[test]
    fn buffered_jobs_are_said_to_be_buffered() {
        let mut run = fixture::slow_sd_card_run();
        run.results.iter_mut().for_each(|result| result.access = Some(Access::Buffered));
        let heading = title(&run, Style::PLAIN).join(" ");
        assert!(heading.contains("through the page cache"), "{heading}");
        assert!(!heading.contains("direct I/O"), "{heading}");
    }

    #[test]
    fn a_quiet_run_on_one_screen() {
        let mut run = fixture::slow_sd_card_run();
        run.machine.power.throttling = Fact::known(Throttling::decode(0), "");
        run.doubts.clear();
        for result in &mut run.results {
            result.doubts.clear();
            result.stalls.clear();
            result.outcome = Outcome::Converged;
        }
        let text = render(&run, &verdict(&run), Style::PLAIN);
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 48, "{} lines", text.lines().count());
    }

    #[test]
    fn a_failed_run_says_what_failed() {
        let run = fixture::failed_run();
        insta::assert_snapshot!(render(&run, &verdict(&run), Style::PLAIN));
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut run = fixture::slow_sd_card_run();
        run.target.path = "/home/somebody/with/a/very/long/path/".repeat(5);
        run.machine.board.model =
            Fact::known("Board\x1b[31m of a vendor with many words ".repeat(4), "");
        for run in [run, fixture::failed_run()] {
            let text = render(&run, &verdict(&run), Style::PLAIN);
            for line in text.lines() {
                assert!(width(line) <= COLUMNS, "{}: {line}", width(line));
            }
            assert!(!text.contains('\x1b'));
        }
    }
}
