//! Targets alone and all together: a row for each kind of job and target.

use rubus_vocabulary::finding::{Finding, SharedPipe};
use rubus_vocabulary::result::{JobResult, Run};
use rubus_vocabulary::title::job_title;
use rubus_vocabulary::units::{percent, rate_si};

use rubus_draw::layout::heading;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::shorten;
use rubus_draw::words::half_width;
use rubus_verdict::text::checkup::Legend;

/// Columns of a target's name; the end of a path says more than its start.
const NAME_COLUMNS: usize = 16;

/// The table of all kinds, and what its signs mean.
pub(super) fn tables(run: &Run, style: Style) -> Vec<Vec<String>> {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("on", Align::Left),
        ("alone", Align::Right),
        ("±", Align::Right),
        ("together", Align::Right),
        ("±", Align::Right),
        ("left", Align::Right),
        ("", Align::Left),
    ]);
    let mut legend = Legend::of(run);
    for finding in &run.findings {
        let Finding::SharedPipe(found) = finding else {
            continue;
        };
        for (i, target) in found.targets.iter().enumerate() {
            let of = |way: &str| result(run, found, way, target);
            let (alone, together) = (&found.alone[i], &found.together[i]);
            let title = of("alone").map_or(found.job.clone(), job_title);
            let flags: Vec<char> = [of("alone"), of("together")]
                .into_iter()
                .flatten()
                .flat_map(|result| legend.flags(result).chars().collect::<Vec<char>>())
                .collect();
            table.row(vec![
                match i {
                    0 => title.into(),
                    _ => Cell::default(),
                },
                end_of(target).into(),
                rate_si(alone.value).into(),
                half_width(alone).into(),
                rate_si(together.value).into(),
                half_width(together).into(),
                percent(together.value / alone.value.max(1.0)).into(),
                Cell::toned(&distinct(flags), Tone::Warn),
            ]);
        }
    }
    if table.is_empty() {
        return vec![rubus_verdict::text::checkup::jobs(run, style)];
    }
    let mut lines = vec![heading("Alone and all together", style)];
    lines.extend(table.lines(style));
    let legend = legend.after(
        "±: to the farther end of the 95 % interval. left: what is left of the rate alone while all run.",
        style,
    );
    lines.extend(legend.iter().map(|line| style.paint(Tone::Faint, line)));
    vec![lines]
}

fn result<'a>(run: &'a Run, found: &SharedPipe, way: &str, target: &str) -> Option<&'a JobResult> {
    let name = format!("{}-{way}", found.job);
    let on_target = |result: &&JobResult| result.on.as_deref() == Some(target);
    run.results.iter().filter(on_target).find(|result| result.job == name)
}

fn distinct(mut flags: Vec<char>) -> String {
    flags.sort_unstable();
    flags.dedup();
    flags.into_iter().collect()
}

/// A name, cut at its start where it is too long.
fn end_of(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME_COLUMNS {
        return shorten(name, NAME_COLUMNS);
    }
    let end: String = name.chars().skip(count - NAME_COLUMNS + 1).collect();
    format!("…{end}")
}
