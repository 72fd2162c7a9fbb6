//! Advice as text: the answer, the candidates in a table, what to do, single subjects, what is not known.
//!
//! Nothing but ASCII is written, so that every terminal shows it.

use crate::advice::{Advice, Basis, Candidate, Curve, LEGEND, PaysUpTo, UNSETTLED, Unknown};
use rubus_machine::purpose::Purpose;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::{iops, percent, rate_si};

use rubus_draw::next_step;
use rubus_draw::quote::typed;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, capitalized, clean, hang, listed, shorten};

/// More rows are no help; the JSON has all.
const MAX_ROWS: usize = 8;
/// Letters of the first column, where there is room for all.
const NAME_COLUMNS: usize = 26;
/// Columns of the widest table.
const WIDEST: usize = 76;

/// What to draw besides the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Why, what else could be changed, and what is not known.
    pub everything: bool,
    /// All that, and where the time goes, which pipes are in the way, and the curve of compression.
    pub pipes: bool,
}

/// The whole text; ends in a line feed.
pub fn render(advice: &Advice, depth: Depth, style: Style) -> String {
    let mut lines = vec![style.paint(Tone::Strong, &title(advice, style))];
    let (recommendation, why) = advice.because.split_at(advice.because.len().min(1));
    for sentence in recommendation {
        lines.extend(paragraph(sentence, style, Tone::Good));
    }
    lines.extend(to_do(advice, style));
    let everything = depth.everything || depth.pipes;
    if everything {
        lines.push(String::new());
        for sentence in why {
            lines.extend(paragraph(sentence, style, Tone::Plain));
        }
        lines.extend(paragraph(&format!("Times are for {}.", advice.unit), style, Tone::Faint));
    }
    if !advice.candidates.is_empty() {
        lines.push(String::new());
        lines.extend(table(advice, style.columns).lines(style));
        lines.extend(passed_over(advice, style));
        lines.extend(legend(advice, everything, style));
    }
    if depth.pipes {
        lines.extend(pipes(advice, style));
    }
    if everything {
        lines.extend(subjects(advice, style));
    }
    if let (true, Some(curve)) = (depth.pipes, &advice.curve) {
        lines.extend(drawn_curve(curve, style));
    }
    if everything {
        lines.extend(unknown(advice, style));
    } else {
        lines.push(String::new());
        lines.extend(more(advice.purpose, style));
    }
    let lines: Vec<String> = lines.iter().map(|line| ascii(line)).collect();
    lines.join("\n") + "\n"
}

/// Where to find what is shown on request alone; the command stands whole. The purpose that need not be said is not said.
fn more(purpose: Purpose, style: Style) -> Vec<String> {
    let asked = match purpose {
        Purpose::Desktop => String::new(),
        Purpose::Server | Purpose::Logger | Purpose::StorageNode | Purpose::Swap => {
            format!(" {}", purpose.id())
        }
    };
    let words = "Why, what else could be changed, and what is not known:";
    let command = format!("rubus advise{asked} --verbose");
    if words.len() + 1 + command.len() <= style.columns {
        return paragraph(&format!("{words} {command}"), style, Tone::Faint);
    }
    let mut lines = paragraph(words, style, Tone::Faint);
    lines.push(style.paint(Tone::Faint, &format!("  {command}")));
    lines
}

fn title(advice: &Advice, style: Style) -> String {
    let title = format!("{}, for {}", capitalized(&advice.machine), advice.purpose.words());
    shorten(&clean(&title), style.columns)
}

fn paragraph(text: &str, style: Style, tone: Tone) -> Vec<String> {
    let lines = hang("", &bind_units(&clean(text)), style.columns);
    lines.iter().map(|line| style.paint(tone, line)).collect()
}

fn table(advice: &Advice, columns: usize) -> Table {
    match advice.purpose {
        Purpose::Swap => swap_table(advice, columns),
        _ => place_table(advice, columns),
    }
}

/// The rows that are drawn, the fastest first: the best ones, and always how it is now.
pub fn rows(advice: &Advice) -> Vec<&Candidate> {
    let mut rows: Vec<&Candidate> = advice.candidates.iter().take(MAX_ROWS).collect();
    if let Some(now) = advice.now() {
        if !rows.iter().any(|row| row.is_now) {
            rows.pop();
            rows.push(now);
        }
    }
    rows.sort_by(|a, b| a.time_s.value.total_cmp(&b.time_s.value));
    rows
}

/// Whether a change to it is recommended.
pub fn is_recommended(advice: &Advice, candidate: &Candidate) -> bool {
    let best = advice.candidates.first();
    best.is_some_and(|best| !best.is_now && best.name == candidate.name)
}

fn first_cell(advice: &Advice, candidate: &Candidate, columns: usize) -> Cell {
    let is_best = is_recommended(advice, candidate);
    let mark = match (candidate.is_now, is_best) {
        (true, _) => "* ",
        (false, true) => "> ",
        (false, false) => "  ",
    };
    let words = match candidate.title() {
        (label, Some(what)) if !candidate.is_swap() => format!("{label}: {what}"),
        (label, _) => label.to_owned(),
    };
    let tone = if is_best { Tone::Good } else { Tone::Plain };
    let tone = if candidate.is_now { Tone::Strong } else { tone };
    Cell::toned(
        &format!("{mark}{}", cut(&words, NAME_COLUMNS - WIDEST.saturating_sub(columns))),
        tone,
    )
}

/// As [`shorten`], in ASCII; what was cut is two dots, since `~` has its meaning.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() > columns {
        text.chars().take(columns - 2).collect::<String>().trim_end().to_string() + ".."
    } else {
        text.to_string()
    }
}

fn place_table(advice: &Advice, columns: usize) -> Table {
    let titles = ["read", "write", "4K r/s", "4K w/s", "commits"];
    candidate_table((advice, columns), "  place", &titles, |candidate| {
        let (figures, basis) = (&candidate.figures, &candidate.basis);
        vec![
            marked(basis.sequential_read, mega(figures.sequential_read.value)),
            marked(basis.sequential_write, mega(figures.sequential_write.value)),
            marked(basis.random_read, count(&figures.random_read)),
            marked(basis.random_write, count(&figures.random_write)),
            marked(basis.commits, count(&figures.commits)),
        ]
    })
}

/// A row for each candidate: what it is, its time, figures of its own, and its price where any has one.
fn candidate_table(
    (advice, width): (&Advice, usize),
    first: &str,
    titles: &[&str],
    figures: impl Fn(&Candidate) -> Vec<Cell>,
) -> Table {
    let is_priced = is_priced(advice);
    let price = is_priced.then_some("~EUR");
    let right = ["time"].iter().chain(titles).copied().chain(price);
    let mut columns = vec![(first, Align::Left)];
    columns.extend(right.map(|title| (title, Align::Right)));
    let mut table = Table::new(&columns).close();
    for candidate in rows(advice) {
        let time = marked(candidate.basis.time_s, time(&candidate.time_s));
        let mut cells = vec![first_cell(advice, candidate, width), time];
        cells.extend(figures(candidate));
        cells.extend(is_priced.then(|| Cell::from(euros(candidate))));
        table.row(cells);
    }
    table
}

/// A figure with the mark of what is assumed.
fn marked(basis: Basis, words: String) -> Cell {
    Cell::from(basis.figure(&words))
}

fn swap_table(advice: &Advice, columns: usize) -> Table {
    let titles = ["in/s", "out/s", "carries", "beyond"];
    candidate_table((advice, columns), "  set-up", &titles, |candidate| {
        let (figures, basis) = (&candidate.figures, &candidate.basis);
        let swap = candidate.swap.as_ref();
        let carries = swap.map_or(Cell::from("?"), |swap| {
            marked(basis.carries, format!("{:.2}", swap.carries.value))
        });
        let beyond = match swap.map(|swap| swap.beyond_s) {
            None => Cell::from("?"),
            Some(None) => Cell::from("full"),
            Some(Some(beyond)) => marked(basis.beyond_s, seconds(beyond.value)),
        };
        vec![
            marked(basis.random_read, count(&figures.random_read)),
            marked(basis.random_write, count(&figures.random_write)),
            carries,
            beyond,
        ]
    })
}

fn time(time_s: &Estimate) -> String {
    seconds(time_s.value)
}

fn seconds(time_s: f64) -> String {
    match time_s {
        s if s >= 9.95 => format!("{s:.0} s"),
        s if s >= 0.095 => format!("{s:.1} s"),
        s if s >= 0.000_95 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.2} ms", s * 1e3),
    }
}

fn mega(rate: f64) -> String {
    let mega = rate / 1e6;
    if mega >= 9.95 { format!("{mega:.0}") } else { format!("{mega:.1}") }
}

fn count(rate: &Estimate) -> String {
    match rate.value {
        rate if rate >= 9_999.5 => iops(rate).replace(' ', ""),
        rate => format!("{rate:.0}"),
    }
}

/// Whether any row costs money; a column of hyphens says nothing.
fn is_priced(advice: &Advice) -> bool {
    let rows = rows(advice);
    rows.iter().any(|candidate| candidate.is_bought())
}

fn euros(candidate: &Candidate) -> String {
    match candidate.euros {
        (0, 0) => "-".into(),
        (low, high) => format!("{low}-{high}"),
    }
}

/// Why what is likely to be faster is not advised; nothing where the answer says so already.
fn passed_over(advice: &Advice, style: Style) -> Vec<String> {
    let best = advice.candidates.first();
    if best.is_some_and(|best| best.is_now && best.is_enough(advice.purpose)) {
        return Vec::new();
    }
    let shown = rows(advice);
    let passed_over = advice.passed_over();
    let of_rows = passed_over.iter().filter(|(other, _)| shown.contains(other));
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (other, reason) in of_rows {
        let name = other.label();
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    let reasons = by_reason.iter().map(|(reason, names)| format!("{} ({reason})", listed(names)));
    let reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() {
        return Vec::new();
    }
    let has_trial = shown.iter().any(|row| {
        row.name.ends_with("@gen3") && passed_over.iter().any(|(other, _)| other.name == row.name)
    });
    let trial = if has_trial {
        "; to try PCIe Gen 3 all the same: rubus\u{a0}plan\u{a0}pcie-gen"
    } else {
        ""
    };
    let words = format!("Faster, but not advised: {}{trial}", reasons.join("; "));
    hang("  ", &bind_units(&clean(&words)), style.columns)
}

fn legend(advice: &Advice, everything: bool, style: Style) -> Vec<String> {
    let (work, _) = advice.unit.split_once(':').unwrap_or((&advice.unit, ""));
    let columns = match advice.purpose {
        Purpose::Swap => {
            "in/s, out/s: pages; carries: times the memory before it gets slow; beyond: wait for a page then, or full: programs are \
             ended; zswap: compressed in that share of the memory first"
        }
        Purpose::Desktop | Purpose::Server | Purpose::Logger | Purpose::StorageNode => {
            "read, write: MB/s in order; 4K: one at a time; commits: safe writes/s"
        }
    };
    let mut words =
        vec![format!("* now, > recommended; time: for {work}, less is better; {columns}")];
    let rows_of = rows(advice);
    if everything && rows_of.windows(2).any(|pair| pair[0].tier == pair[1].tier) {
        let order =
            "Where ranges of times overlap, the cheaper is recommended, then the milder risk.";
        words.push(order.into());
    }
    let is_unsettled = rows_of.iter().any(|row| row.basis.is_any_unsettled());
    let unsettled = if is_unsettled { format!("; {UNSETTLED}") } else { String::new() };
    words.push(format!("{LEGEND}{unsettled}; {}", what_was_measured(advice)));
    let all = rows(advice).len();
    let more = advice.candidates.len() - all;
    if more > 0 {
        words.push(format!("{more} more in --json."));
    }
    let words: Vec<String> =
        words.iter().flat_map(|words| hang("  ", words, style.columns)).collect();
    words.iter().map(|line| style.paint(Tone::Faint, line)).collect()
}

/// Which places were measured, which in part, and what of those.
fn what_was_measured(advice: &Advice) -> String {
    let rows = rows(advice);
    let of = |row: &&Candidate| {
        let seen = row.measured(advice.purpose, true);
        let seen: Vec<&str> = seen.iter().map(|what| what.words()).collect();
        match (row.is_measured, seen.is_empty()) {
            (true, _) => Some(row.label().to_owned()),
            (false, true) => None,
            (false, false) => Some(format!("of {} {}", row.label(), seen.join(", "))),
        }
    };
    let seen: Vec<String> = rows.iter().filter_map(of).collect();
    if seen.is_empty() {
        "nothing was measured.".into()
    } else if rows.iter().all(|row| row.is_measured) {
        "all measured here.".into()
    } else {
        format!("measured here: {}; all else is usual for its kind.", seen.join("; "))
    }
}

/// The command that settles it, as it is typed.
pub fn measurement(unknown: &Unknown) -> Option<String> {
    let words = typed(unknown.measurement.as_deref()?);
    Some(if unknown.needs_root { format!("sudo {words}") } else { words })
}

fn to_do(advice: &Advice, style: Style) -> Vec<String> {
    let mut lines = next_step::lines(&advice.next, style);
    // Of what stays there is no more to do than to measure it.
    let changes = advice.candidates.first().is_some_and(|best| !best.is_now);
    let besides = advice.to_do.as_ref().filter(|sentence| changes && !sentence.is_empty());
    if let (Some(_), Some(sentence)) = (&advice.next.command, besides) {
        lines.extend(hang("       ", &bind_units(&clean(sentence)), style.columns));
    }
    // The command that takes an obstacle away is not given twice.
    let is_told = |obstacle: &&String| {
        let command = obstacle.split('`').nth(1);
        command.is_some_and(|command| besides.is_some_and(|said| said.contains(command)))
    };
    let is_next = |obstacle: &&String| is_mended_by(&advice.next, obstacle);
    let left = advice.obstacles.iter().filter(|obstacle| !is_told(obstacle) && !is_next(obstacle));
    let left: Vec<String> = left.cloned().collect();
    if let Some(words) = obstacles(&left) {
        let words = format!("{REFUSED}: {words}");
        lines.extend(hang("But:   ", &bind_units(&clean(&words)), style.columns));
    }
    let risks = advice.candidates.first().map_or(&[][..], |best| &best.risks);
    // What the sentence above says is not said twice.
    let is_said =
        |risk: &String| advice.to_do.as_ref().is_some_and(|said| said.contains(risk.as_str()));
    let risks: Vec<&str> = risks.iter().filter(|risk| !is_said(risk)).map(String::as_str).collect();
    if !risks.is_empty() && changes {
        lines.extend(hang("Risk:  ", &bind_units(&clean(&risks.join(" "))), style.columns));
    }
    lines
}

/// Whether the next step is what takes an obstacle away: a sentence that ends in its remedy.
pub fn is_mended_by(next: &NextStep, obstacle: &str) -> bool {
    let obstacle = obstacle.trim_end_matches('.');
    match (&next.command, next.words.rsplit_once("; then: ")) {
        (Some(command), Some(_)) => obstacle.ends_with(&typed(command)),
        (None, Some((remedy, _))) => obstacle.ends_with(remedy),
        (_, None) => false,
    }
}

/// What is said before the reasons why a plan would be refused.
pub const REFUSED: &str = "Rubus refuses that plan as the system is now";

/// What is said of them where the plan stands behind.
pub const FIRST: &str = "First, for its plan";

/// What is in the way of a command: the first, and how many more.
pub fn obstacles(all: &[String]) -> Option<String> {
    let (first, more) = all.split_first()?;
    Some(match more.len() {
        0 => first.clone(),
        more => format!("{first} ({more} more: run the plan to see)"),
    })
}

fn subjects(advice: &Advice, style: Style) -> Vec<String> {
    if advice.subjects.is_empty() {
        return Vec::new();
    }
    let longest = advice.subjects.iter().map(|subject| subject.name.len()).max();
    let columns = longest.unwrap_or(0) + 2;
    let mut lines = vec![String::new(), style.paint(Tone::Strong, "Besides")];
    for subject in &advice.subjects {
        let first = format!("  {:columns$}", subject.name);
        let mut words = clean(&subject.advice);
        if let Some(command) = &subject.command {
            let command = clean(&typed(command));
            words.push_str(&match obstacles(&subject.obstacles) {
                Some(before) => format!(" {FIRST}: {}. Then: {command}", clean(&before)),
                None => format!(" To do: {command}"),
            });
        }
        lines.extend(hang(&first, &bind_units(&words), style.columns));
    }
    lines
}

fn unknown(advice: &Advice, style: Style) -> Vec<String> {
    const MAX: usize = 3;
    if advice.unknown.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        style.paint(Tone::Strong, "Not known, and what settles it (--measure runs it)"),
    ];
    for unknown in advice.unknown.iter().take(MAX) {
        let words = match measurement(unknown) {
            Some(command) => format!("{}: {command}", unknown.what),
            None => unknown.what.clone(),
        };
        lines.extend(hang("  ", &bind_units(&clean(&words)), style.columns));
    }
    lines
}

/// For each candidate where its time goes, and what is in the way.
fn pipes(advice: &Advice, style: Style) -> Vec<String> {
    let mut lines = vec![String::new(), style.paint(Tone::Strong, "Where the time goes")];
    for candidate in rows(advice) {
        let parts: Vec<String> = candidate
            .demands
            .iter()
            .map(|demand| {
                let visits = advice.purpose.visits();
                let visit = visits.iter().find(|visit| visit.what == demand.what);
                let basis = visit.map(|visit| candidate.basis.of(visit.what, visit.depth));
                let basis = basis.unwrap_or(Basis::Published);
                let deep = demand.deep().map(|deep| format!(" ({})", basis.figure(&deep)));
                format!(
                    "{} {}{}",
                    demand.what.words(),
                    basis.figure(&seconds(demand.seconds.value)),
                    deep.unwrap_or_default()
                )
            })
            .collect();
        let pipes: Vec<String> = candidate
            .pipes
            .iter()
            .map(|pipe| format!("{} {}", pipe.name, percent(pipe.utilisation)))
            .collect();
        let title = format!(
            "  {}, {} to {}",
            candidate.label(),
            seconds(candidate.time_s.low),
            seconds(candidate.time_s.high)
        );
        lines.push(style.paint(Tone::Strong, &shorten(&clean(&title), style.columns)));
        let words = format!(
            "{}. Busy at what takes most: {}. Processor: {} of all cores. Figures: {}.",
            parts.join(", "),
            pipes.join(", "),
            candidate.basis.cpu_share.figure(&percent(candidate.cpu_share.value)),
            candidate.source
        );
        lines.extend(hang("    ", &bind_units(&clean(&words)), style.columns));
    }
    lines
}

/// What the last column goes by.
const BEST: &str = "best: for what the purpose reads and writes in order";

/// The end of a method's range for one kind of work, where it has one.
type Ends = fn(&PaysUpTo) -> Option<f64>;

/// The rows that say up to which link a method pays.
pub const PAYS: [(&str, Ends); 3] = [
    ("pays writing to", |pays| pays.writes),
    ("reading to", |pays| pays.reads),
    ("mixed to", |pays| pays.mix),
];

/// Writes by link and method, the best marked; then up to which link each pays.
fn drawn_curve(curve: &Curve, style: Style) -> Vec<String> {
    let Some(first) = curve.points.first() else {
        return Vec::new();
    };
    let mut columns = vec![("  link", Align::Right)];
    let names: Vec<String> = first.writes.iter().map(|rated| rated.method.clone()).collect();
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    columns.push(("best", Align::Left));
    let mut table = Table::new(&columns).indented(2);
    for point in &curve.points {
        let mut cells = vec![Cell::from(rate_si(point.link_bytes_per_second))];
        cells.extend(point.writes.iter().map(|rated| {
            let tone = if rated.method == point.best { Tone::Good } else { Tone::Plain };
            let rate = mega(rated.bytes_per_second.value);
            let is_plain = rated.method == "none";
            Cell::toned(&if is_plain { rate } else { curve.basis.figure(&rate) }, tone)
        }));
        cells.push(Cell::from(&point.best));
        table.row(cells);
    }
    for (title, of) in PAYS {
        let mut cells = vec![Cell::from(title), Cell::from("")];
        cells.extend(curve.break_even.iter().map(|pays| match of(pays) {
            Some(link) => marked(curve.basis, mega(link)),
            None => Cell::from("-"),
        }));
        cells.push(Cell::from(""));
        table.row(cells);
    }
    let title = format!("Compression by link, MB/s ({} cores; {})", curve.cores, curve.source);
    let mut lines = vec![String::new(), style.paint(Tone::Strong, &cut(&title, style.columns))];
    lines.extend(table.lines(style));
    let legend = format!("  MB/s are of writing; {BEST}");
    lines.push(style.paint(Tone::Faint, &legend));
    lines
}

/// What a terminal without UTF-8 shows: the few other letters that facts bring become near ones.
fn ascii(line: &str) -> String {
    let near = |c: char| match c {
        c if c.is_ascii() => c,
        '×' => 'x',
        'µ' => 'u',
        '–' | '−' => '-',
        '…' => '.',
        '\u{a0}' => ' ',
        _ => '?',
    };
    line.chars().map(near).collect()
}
