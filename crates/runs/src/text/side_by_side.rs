//! Runs of several machines beside one another: one row per job, one column per run. What is faster
//! for certain is for a comparison to say; this only puts the figures where the eye can go from one to
//! the next.

use rubus_vocabulary::result::{CpuShares, JobResult, Outcome, Run};
use rubus_vocabulary::units::{iops, rate_si};

use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{clean, hang, shorten, width};
use rubus_draw::words;

/// No line is wider.
const COLUMNS: usize = 80;
/// Space between two columns of a table.
const GAP: usize = 2;
/// A name is cut to this.
const NAME: usize = 24;
/// Up to this size, operations per second say more than bytes per second.
const SMALL_BLOCK_BYTES: u32 = 16 << 10;

/// The runs beside one another, ending in a line feed; as many tables below one another as the width
/// needs.
pub fn render(runs: &[&Run], style: Style) -> String {
    let titles = titles(runs);
    let first = titles.iter().map(|(_, title)| width(title)).max().unwrap_or(0);
    let mut lines = vec![style.paint(Tone::Strong, "Side by side")];
    let mut rest = runs;
    while !rest.is_empty() {
        let count = fitting(rest, &titles, first);
        let (now, later) = rest.split_at(count);
        lines.extend(table(now, &titles).lines(style));
        rest = later;
        if !rest.is_empty() {
            lines.push(String::new());
        }
    }
    let legend = "± as above; ? did not settle. CPU there: of the busiest job. Round trip: of the way over ssh.";
    lines.extend(hang("", legend, COLUMNS).iter().map(|line| style.paint(Tone::Faint, line)));
    lines.join("\n") + "\n"
}

/// Names and titles of all jobs, in the order in which they first appear.
fn titles(runs: &[&Run]) -> Vec<(String, String)> {
    let mut titles: Vec<(String, String)> = Vec::new();
    for result in runs.iter().flat_map(|run| &run.results) {
        if !titles.iter().any(|(name, _)| *name == result.job) {
            titles.push((result.job.clone(), words::job_title(result)));
        }
    }
    let plain: Vec<String> = titles.iter().map(|(_, title)| title.clone()).collect();
    for (job, title) in &mut titles {
        // Jobs that differ in something that the title leaves out are told apart by their names.
        if plain.iter().filter(|other| *other == title).count() > 1 {
            *title = format!("{title} ({job})");
        }
    }
    titles
}

/// How many runs fit beside one another; at least one.
fn fitting(runs: &[&Run], titles: &[(String, String)], first: usize) -> usize {
    let mut used = first;
    let widths = runs.iter().map(|run| {
        let cells = titles.iter().map(|(name, _)| width(&figure(run.job(name)).0));
        cells.max().unwrap_or(0).max(width(&name(run)))
    });
    let fitting = widths.take_while(|width| {
        used += GAP + width;
        used <= COLUMNS
    });
    fitting.count().max(1)
}

/// Something short about a run, where it is known.
type FactOf = fn(&Run) -> Option<String>;

fn table(runs: &[&Run], titles: &[(String, String)]) -> Table {
    let names: Vec<String> = runs.iter().map(|run| name(run)).collect();
    let mut columns = vec![("", Align::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for (job, title) in titles {
        let figures = runs.iter().map(|run| {
            let (text, tone) = figure(run.job(job));
            Cell::toned(&text, tone)
        });
        table.row([Cell::from(title)].into_iter().chain(figures).collect());
    }
    let facts: [(&str, FactOf); 3] = [
        ("CPU there", |run| run.results.iter().map(|r| &r.cpu).max_by(busier).map(words::busy)),
        ("CPU here", |run| run.on.as_ref()?.local_cpu.as_ref().map(words::busy)),
        ("round trip", |run| run.on.as_ref()?.round_trip_ms.map(words::round_trip)),
    ];
    for (title, fact) in facts {
        let cells = runs.iter().map(|run| fact(run).unwrap_or("–".into()));
        let cells = cells.map(|text| Cell::toned(&text, Tone::Faint));
        table.row([Cell::toned(title, Tone::Faint)].into_iter().chain(cells).collect());
    }
    table
}

fn busier(one: &&CpuShares, other: &&CpuShares) -> std::cmp::Ordering {
    let busy = |cpu: &CpuShares| cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal;
    busy(one).total_cmp(&busy(other))
}

/// "90.0 /s ±17 %", "12.1 MB/s ±12 %".
fn figure(result: Option<&JobResult>) -> (String, Tone) {
    let Some(result) = result else {
        return ("–".into(), Tone::Faint);
    };
    let (value, estimate) = if result.block_bytes <= SMALL_BLOCK_BYTES {
        (format!("{} /s", iops(result.iops.value)), &result.iops)
    } else {
        (rate_si(result.bytes_per_second.value), &result.bytes_per_second)
    };
    let unsettled = result.outcome == Outcome::Inconclusive;
    let (mark, tone) = if unsettled { (" ?", Tone::Faint) } else { ("", Tone::Plain) };
    (format!("{value} {}{mark}", words::plus_minus(estimate)), tone)
}

/// The machine's name, and what was measured there if it was named.
fn name(run: &Run) -> String {
    let machine = run.on.as_ref().map_or("here", |on| on.destination.as_str());
    let target = match run.target.named.as_str() {
        "." => String::new(),
        named => format!(":{named}"),
    };
    shorten(&clean(&format!("{machine}{target}")), NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures as fixture;
    use rubus_stats::estimate::Estimate;

    fn of(destination: &str, slower: f64) -> Run {
        let mut run = fixture::remote_run();
        run.on.as_mut().expect("measured elsewhere").destination = destination.into();
        for result in &mut run.results {
            for estimate in [&mut result.iops, &mut result.bytes_per_second] {
                let Estimate { value, low, high } = *estimate;
                *estimate = Estimate::new(value / slower, low / slower, high / slower);
            }
        }
        run
    }

    #[test]
    fn machines_stand_beside_one_another_and_wrap_when_they_are_many() {
        let runs = [of("pi@attic", 1.0), of("pi@cellar", 2.5), of("root@nas.example", 0.01)];
        let runs: Vec<&Run> = runs.iter().collect();
        let text = render(&runs, Style::PLAIN);
        assert!(text.lines().all(|line| width(line) <= COLUMNS));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_job_that_only_one_run_has_leaves_a_gap() {
        let mut short = of("pi@attic", 1.0);
        short.results.truncate(1);
        let whole = of("pi@cellar", 1.0);
        let text = render(&[&short, &whole], Style::PLAIN);
        assert!(text.lines().any(|line| line.contains(" –  ")), "{text}");
    }

    #[test]
    fn jobs_of_the_same_title_are_told_apart() {
        let mut run = of("pi@attic", 1.0);
        run.results.truncate(2);
        run.results[1] = run.results[0].clone();
        run.results[1].job = "again".into();
        let text = render(&[&run, &run], Style::PLAIN);
        assert!(text.contains("1 MiB sequential reads (again)"), "{text}");
    }
}
