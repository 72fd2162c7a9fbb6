//! The text of a checkup: the answer on top, on one screen of 24 lines where nothing disturbed it.
//!
//! The owner of a slow board must understand the sentences; an engineer must find the numbers. What does not fit here
//! is on the page and in the JSON.

use crate::verdict::{Conclusion, Disturbance, Grade, Pipe, PipeKind, Verdict, WorkTime};
use rubus_vocabulary::doubt::Doubt;
use rubus_vocabulary::result::{JobResult, Outcome, Run};
use rubus_vocabulary::units::{bytes_si, counted, duration_ns, iops, rate_si};

use crate::text::disturbances;
use crate::text::share;
use rubus_draw::ends;
use rubus_draw::layout::{COLUMNS, board, heading, joined, paragraph};
use rubus_draw::network;
use rubus_draw::next_step;
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

/// How much of a checkup is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The answer, what to do, the grades and the figures behind them.
    Answer,
    /// The answer and every figure.
    All,
}

/// The text of a checkup, ending in a line feed: the answer, what to do, the grades, the figures, and reservations once.
pub fn render(run: &Run, verdict: &Verdict, detail: Detail, style: Style) -> String {
    let mut parts = match detail {
        Detail::Answer => vec![heading_line(run, style)],
        Detail::All => vec![title(run, style)],
    };
    let mut answer = headline(verdict, style);
    answer.extend(next_step::lines(&verdict.next, style));
    parts.push(answer);
    parts.push(good_for(verdict, style));
    match detail {
        Detail::Answer if verdict.conclusion == Conclusion::Stopped => {
            parts.push(jobs(run, style));
        }
        Detail::Answer => {
            parts.push(share::stages(verdict, style));
            parts.push(figures(run, verdict, style));
            // What both ends of a network disk spent is there only where it was asked for.
            parts.push(ends::table(run, style));
        }
        Detail::All => {
            parts.push(share::stages(verdict, style));
            parts.push(share::notes(verdict, style));
            parts.push(jobs(run, style));
            parts.push(ends::table(run, style));
            parts.push(pipes(verdict, style));
            parts.push(sentences(verdict, style));
        }
    }
    parts.push(disturbances(run, verdict, detail, style));
    parts.push(in_columns(&verdict.certainty, "", style));
    joined(parts)
}

/// A paragraph within the columns of the terminal.
fn in_columns(text: &str, first: &str, style: Style) -> Vec<String> {
    hang(first, &bind_units(&clean(text)), style.columns)
}

/// The place, the device and the day, in one faint line.
fn heading_line(run: &Run, style: Style) -> Vec<String> {
    let device = words::measured_device(run);
    let day = words::moment(&run.started);
    let place = clean(&run.place());
    let parts = [place, device, day, words::span(run.elapsed_s)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let lines = in_columns(&parts.join(" · "), "", style);
    lines.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}

/// The operations of the reference work: their rates, and how long each takes.
fn figures(run: &Run, verdict: &Verdict, style: Style) -> Vec<String> {
    use Align::{Left, Right};
    // On a share, the stages above say what is narrow.
    let is_share = verdict.nas.is_some();
    let mut columns = vec![("", Left), ("rate", Right), ("±", Right)];
    if !is_share {
        columns.push(("real work", Right));
    }
    columns.push(("", Left));
    let mut table = Table::new(&columns);
    let mut legend = Legend::of(run);
    let mut has_commits = false;
    for pipe in &verdict.pipes {
        let (Some(result), Some(demand)) = (pipe.job().and_then(|job| run.job(job)), pipe.demand_s)
        else {
            continue;
        };
        has_commits |= pipe.name == "commits";
        let is_narrow = pipe.narrowest && !is_share;
        let arrow = if is_narrow { "←" } else { "" };
        let rate = match pipe.bytes_per_second {
            Some(bytes) => rate_si(bytes.value),
            None => format!("{} /s", iops(result.iops.value)),
        };
        let tone = if is_narrow { Tone::Warn } else { Tone::Plain };
        let mut row = vec![
            Cell::toned(&pipe.name, tone),
            rate.into(),
            words::half_width(&result.iops).into(),
        ];
        if !is_share {
            row.push(words::roughly(demand).into());
        }
        row.push(Cell::toned(&format!("{arrow}{}", legend.flags(result)), Tone::Warn));
        table.row(row);
    }
    if table.is_empty() {
        return jobs(run, style);
    }
    let mut lines = table.lines(style);
    let mut about = String::from("±: to the farther end of the 95 % interval.");
    if has_commits {
        about.push_str(" Commit: a write that is safe on the disk.");
    }
    if !is_share {
        about.push_str(" Real work: a start, an installation, a browser. ← narrowest.");
    }
    lines.extend(legend.after(&about, style).iter().map(|line| style.paint(Tone::Faint, line)));
    lines
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
    let reservation = verdict.reservation.iter();
    let said: Vec<&str> =
        std::iter::once(&verdict.headline).chain(reservation).map(String::as_str).collect();
    let lines = in_columns(&said.join(" "), "", style);
    lines.into_iter().map(|line| style.paint(Tone::Strong, &line)).collect()
}

/// "mmcblk0 (SC64G, 63.9 GB), ext4 on mmcblk0p2".
fn device(run: &Run) -> String {
    let target = &run.target;
    let measured = words::measured_device(run);
    let mut parts: Vec<String> = (!measured.is_empty()).then_some(measured).into_iter().collect();
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
    let mut legend = Legend::of(run);
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
    lines.extend(legend.lines(style).into_iter().map(|line| style.paint(Tone::Faint, &line)));
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

/// The marks behind a row and, below the table, what those that were used mean.
#[derive(Default)]
pub struct Legend<'r> {
    used: Vec<char>,
    /// What concerns every row stands once, and is no mark on each.
    of_all: Vec<&'r Doubt>,
}

impl<'r> Legend<'r> {
    const MEANINGS: [(char, &'static str); 3] =
        [('?', "? did not settle, do not rely on it"), ('s', "s stalled"), ('!', "! disturbed")];

    /// The marks of a run's table.
    pub fn of(run: &'r Run) -> Legend<'r> {
        let Some((first, others)) = run.results.split_first().filter(|(_, more)| !more.is_empty())
        else {
            return Legend::default();
        };
        let has =
            |result: &JobResult, doubt: &Doubt| result.doubts.iter().any(|own| own.is_like(doubt));
        let is_of_all = |doubt: &&Doubt| others.iter().all(|result| has(result, doubt));
        Legend { used: Vec::new(), of_all: first.doubts.iter().filter(is_of_all).collect() }
    }

    /// The marks behind a result; the legend below a table names those that were given.
    pub fn flags(&mut self, result: &JobResult) -> String {
        let is_own = |doubt: &&Doubt| !self.of_all.iter().any(|all| all.is_like(doubt));
        let is_disturbed = result.doubts.iter().filter(is_own).any(Doubt::may_change_a_rate);
        let set = [
            ('?', result.outcome == Outcome::Inconclusive),
            ('s', !result.stalls.is_empty()),
            ('!', is_disturbed),
        ];
        let flags: Vec<char> = set.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect();
        self.used.extend(&flags);
        flags.into_iter().collect()
    }

    fn lines(&self, style: Style) -> Vec<String> {
        let about = "±: to the farther end of the 95 % interval. p50, p99: half and 99 % of the operations took no longer. \
                     ×32: 32 at once. CPU: whole machine.";
        self.after(about, style)
    }

    /// The mark of a result that did not settle, where there is no room for more.
    pub fn precision(&mut self, result: &JobResult) -> &'static str {
        match result.outcome {
            Outcome::Converged | Outcome::Capped => "",
            Outcome::Inconclusive => {
                self.used.push('?');
                "?"
            }
        }
    }

    /// A text about a table with the meanings of the marks that were used in it.
    pub fn after(&self, text: &str, style: Style) -> Vec<String> {
        let used = Self::MEANINGS.iter().filter(|(flag, _)| self.used.contains(flag));
        let mut text = text.to_string();
        for (_, meaning) in used {
            text.push(' ');
            text.push_str(&meaning.replace(' ', "\u{a0}"));
            text.push('.');
        }
        hang("", &bind_units(&text), style.columns)
    }
}

fn pipes(verdict: &Verdict, style: Style) -> Vec<String> {
    let operations: Vec<(&Pipe, f64)> =
        verdict.pipes.iter().filter_map(|pipe| Some((pipe, pipe.demand_s?))).collect();
    let longest = operations.iter().map(|(_, demand)| *demand).fold(0.0, f64::max);
    if longest <= 0.0 || verdict.nas.is_some() {
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
        format!("{} takes about {time}, mostly {}", work.work, work.mostly)
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
    let mut lines = Vec::new();
    let columns = verdict.good_for.iter().map(|s| width(&s.purpose)).max().unwrap_or(0);
    for suitability in &verdict.good_for {
        let (word, tone) = disturbances::grade(suitability.grade);
        let first = format!(
            "{}  {}  ",
            pad_right(&clean(&suitability.purpose), columns),
            pad_right(word, 7)
        );
        let mut wrapped = in_columns(&suitability.reason, &first, style).into_iter();
        let line = wrapped.next().unwrap_or(first);
        lines.push(line.replacen(word, &style.paint(tone, word), 1));
        lines.extend(wrapped);
    }
    lines
}

/// What disturbed the run, grouped by kind, the weightiest first, as a section of lines. What is in the answer, and to be done
/// about it, is not said again.
pub fn disturbances(run: &Run, verdict: &Verdict, detail: Detail, style: Style) -> Vec<String> {
    let mut groups = disturbances::disturbance_groups(run, verdict);
    // Each job has a share of its own; the answer has one of them.
    let is_said = |group: &Vec<&Disturbance>| {
        let answer = verdict.reservation.as_ref().unwrap_or(&verdict.headline);
        group.iter().any(|one| answer.contains(&one.what))
    };
    groups.retain(|group| detail == Detail::All || !is_said(group));
    groups.sort_by_key(|group| group.first().map(|first| rank(run, first)));
    let mut lines = Vec::new();
    let mut left_out = 0;
    for group in &groups {
        let wrapped = in_columns(&disturbance_words(run, group), "  ", style);
        if detail == Detail::All || lines.len() + wrapped.len() <= DISTURBANCE_LINES {
            lines.extend(wrapped);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        lines.push(format!("  and {left_out} that change less: rubus history show last"));
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
        // Each has a share of its own.
        (Some(job), more) if group.len() > 1 => {
            let more = counted(more as u64, "more job", "more jobs");
            format!(" ({}; {more}, too)", words::job_title_by_name(run, job))
        }
        (Some(job), 1) => format!(" ({} and 1 more job)", words::job_title_by_name(run, job)),
        (Some(job), more) => {
            format!(" ({} and {more} more jobs)", words::job_title_by_name(run, job))
        }
    };
    format!("{}{during}: {}", first.what, first.remedy)
}

/// How many ignored options are named.
const MAX_IGNORED: usize = 5;

/// What the job file says and was not done, or not so; what has no effect here is only counted.
pub fn job_file(run: &Run, style: Style) -> Vec<String> {
    let Some(job_file) = &run.job_file else {
        return Vec::new();
    };
    let mut lines = vec![heading("Ignored job-file options", style)];
    if job_file.ignored.is_empty() {
        lines.clear();
    }
    // One more line would say less than what it counts.
    let named = match job_file.ignored.len() {
        few if few <= MAX_IGNORED + 1 => few,
        _ => MAX_IGNORED,
    };
    for text in job_file.ignored.iter().take(named) {
        lines.extend(paragraph(text, "  "));
    }
    if named < job_file.ignored.len() {
        let more = job_file.ignored.len() - named;
        let text = format!("and {more} more: see job_file.ignored in the JSON");
        lines.extend(paragraph(&text, "  "));
    }
    let notes = match job_file.notes.len() {
        0 => return lines,
        1 => "1 option is".to_string(),
        count => format!("{count} options are"),
    };
    let text = format!(
        "{notes} handled differently or without effect here: see job_file.notes in the JSON."
    );
    lines.extend(paragraph(&text, if lines.is_empty() { "" } else { "  " }));
    lines
}

/// How far up a disturbance belongs, 0 first: what cut the run short, what was not the disk, what may have changed a rate, the rest.
fn rank(run: &Run, disturbance: &Disturbance) -> u8 {
    match disturbances::doubt_of(run, disturbance) {
        Some(Doubt::TargetFailed { .. } | Doubt::Interrupted | Doubt::Holes { .. }) => 0,
        Some(
            Doubt::AboveCeiling { .. }
            | Doubt::AboveLink { .. }
            | Doubt::ClusterTroubled { .. }
            | Doubt::ThroughPageCache { .. }
            | Doubt::DirectIsBuffered { .. }
            | Doubt::LoopThroughCache { .. },
        ) => 1,
        Some(doubt) if doubt.may_change_a_rate() => 2,
        Some(
            Doubt::NotWatched { .. } | Doubt::ServerSilent { .. } | Doubt::FewOperations { .. },
        ) => 4,
        Some(_) | None => 3,
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
        let text = render(&run, &verdict(&run), Detail::All, Style::PLAIN);
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 64, "{} lines", text.lines().count());
    }

    #[test]
    fn buffered_jobs_are_said_to_be_buffered() {
        let mut run = fixture::slow_sd_card_run();
        run.results.iter_mut().for_each(|result| result.access = Some(Access::Buffered));
        let heading = title(&run, Style::PLAIN).join(" ");
        assert!(heading.contains("through the page cache"), "{heading}");
        assert!(!heading.contains("direct I/O"), "{heading}");
    }

    fn quiet_run() -> Run {
        let mut run = fixture::slow_sd_card_run();
        run.machine.power.throttling = Fact::known(Throttling::decode(0), "");
        run.doubts.clear();
        for result in &mut run.results {
            result.doubts.clear();
            result.stalls.clear();
            result.outcome = Outcome::Converged;
        }
        run
    }

    #[test]
    fn a_quiet_run_in_full() {
        let run = quiet_run();
        let text = render(&run, &verdict(&run), Detail::All, Style::PLAIN);
        insta::assert_snapshot!(text);
        assert!(text.lines().count() <= 48, "{} lines", text.lines().count());
    }

    #[test]
    fn a_clean_answer_fits_24_lines_of_80_columns_and_breaks_no_word_in_60() {
        let run = quiet_run();
        for columns in [60, 80, 120] {
            let style = Style { columns, ..Style::PLAIN };
            let text = render(&run, &verdict(&run), Detail::Answer, style);
            insta::assert_snapshot!(format!("answer_{columns}"), text);
            let widest = text.lines().map(width).max().unwrap_or(0);
            assert!(widest <= columns, "{widest} in {columns}: {text}");
            assert!(columns < 80 || text.lines().count() <= 24, "{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            let wide =
                render(&run, &verdict(&run), Detail::Answer, Style { columns: 200, ..style });
            assert!(words.iter().all(|word| wide.contains(word)), "{columns}");
        }
    }

    #[test]
    fn a_disturbed_answer_says_so_once_and_the_weightiest_first() {
        let run = fixture::slow_sd_card_run();
        let text = render(&run, &verdict(&run), Detail::Answer, Style::PLAIN);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_failed_run_says_what_failed() {
        let run = fixture::failed_run();
        insta::assert_snapshot!(render(&run, &verdict(&run), Detail::All, Style::PLAIN));
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut run = fixture::slow_sd_card_run();
        run.target.path = "/home/somebody/with/a/very/long/path/".repeat(5);
        run.machine.board.model =
            Fact::known("Board\x1b[31m of a vendor with many words ".repeat(4), "");
        for run in [run, fixture::failed_run()] {
            let text = render(&run, &verdict(&run), Detail::All, Style::PLAIN);
            for line in text.lines() {
                assert!(width(line) <= COLUMNS, "{}: {line}", width(line));
            }
            assert!(!text.contains('\x1b'));
        }
    }
}
