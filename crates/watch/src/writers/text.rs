//! The report as text.

use rubus_draw::layout::{COLUMNS, heading, joined, paragraph};
use rubus_draw::next_step;
use rubus_draw::style::{Style, Tone};
use rubus_draw::table::{Align, Cell, Table};
use rubus_draw::text::{bind_units, hang, shorten};
use rubus_draw::words::{moment, span};
use rubus_vocabulary::units::{bytes_si, counted, percent};

use super::{DiskWear, ProgramWritten, Report, UnitWritten};
use crate::wear::text::{Years, lines};

/// Maximum number of programs with a row of their own.
const ROWS: usize = 15;
/// Fewer hours than this are not listed.
const MIN_HOURS: usize = 3;
/// Number of the latest hours that are listed; JSON has all.
const HOURS: usize = 48;
/// Places are cut to what is left of a line, but not below this.
const MIN_PLACE_COLUMNS: usize = 16;
/// Days of a year.
const YEAR_DAYS: f64 = 365.25;

/// The report, ending in a line feed.
pub fn render(report: &Report, style: Style) -> String {
    let mut answer = hang("", &bind_units(&report.answer()), style.columns);
    answer.iter_mut().for_each(|line| *line = style.paint(Tone::Strong, line));
    answer.extend(next_step::lines(&report.next(), style));
    joined([
        answer,
        title(report, style),
        disks(report, style),
        wear(report),
        programs(report, style),
        by_disk(report, style),
        balance(report),
        hours(report, style),
        hidden(report),
    ])
}

fn title(report: &Report, style: Style) -> Vec<String> {
    let mut lines = vec![heading("Who wrote to the disks", style)];
    let slept = match report.slept_seconds {
        slept if slept >= 1.0 => format!(", {} more asleep", span(slept)),
        _ => String::new(),
    };
    lines.push(format!(
        "{} to {} ({}{slept})",
        moment(&report.from),
        moment(&report.to),
        span(report.seconds)
    ));
    if !report.machine.is_empty() {
        lines.extend(paragraph(&report.machine, ""));
    }
    lines
}

fn disks(report: &Report, style: Style) -> Vec<String> {
    if report.disks_seen == 0 {
        let words = "The kernel lists no disk here (/proc/diskstats is empty), so what reached a disk is not known.";
        return paragraph(words, "");
    }
    if report.disks.is_empty() {
        return vec!["No disk wrote anything.".into()];
    }
    let mut table = Table::new(&[
        ("disk", Align::Left),
        ("written", Align::Right),
        ("writes", Align::Right),
        ("flushes", Align::Right),
        ("", Align::Left),
    ]);
    for disk in &report.disks {
        table.row(vec![
            disk.name.as_str().into(),
            bytes_si(disk.written_bytes).into(),
            disk.writes.to_string().into(),
            disk.flushes.to_string().into(),
            disk.what.as_deref().unwrap_or("").into(),
        ]);
    }
    let mut lines = table.lines(style);
    lines.push(String::new());
    lines.extend(paragraph(&rate(report), ""));
    lines
}

/// How worn they are, each in a paragraph of its own.
fn wear(report: &Report) -> Vec<String> {
    let of_disk = |disk: &DiskWear| {
        let years = match disk.per_day {
            None => Years::NoRate,
            Some(_) => Years::AtRate(disk.years_left),
        };
        lines(&disk.wear, years)
    };
    report.wear.iter().flat_map(of_disk).collect()
}

/// What it makes in a day and a year.
fn rate(report: &Report) -> String {
    let Some(day) = report.per_day else {
        return "How much this makes in a year takes at least 24 h to say: record them with `sudo rubus watch \
                --interval 30 --record FILE`."
            .into();
    };
    let size = |bytes: f64| bytes_si(bytes.max(0.0) as u64);
    format!(
        "At this rate {} in a day (95 % interval: {} to {}) and {} in a year.",
        size(day.value),
        size(day.low),
        size(day.high),
        size(day.value * YEAR_DAYS)
    )
}

fn programs(report: &Report, style: Style) -> Vec<String> {
    let mut all: Vec<(&UnitWritten, &ProgramWritten)> = report
        .units
        .iter()
        .flat_map(|unit| unit.programs.iter().map(move |program| (unit, program)))
        .filter(|(_, program)| program.written_bytes > 0)
        .collect();
    if all.is_empty() {
        return vec!["No program had anything written.".into()];
    }
    all.sort_by_key(|(_, program)| std::cmp::Reverse(program.written_bytes));
    let mut table = Table::new(&[
        ("program", Align::Left),
        ("unit", Align::Left),
        ("wrote", Align::Right),
        ("of all", Align::Right),
        ("to files in", Align::Left),
    ]);
    let together: u64 = all.iter().map(|(_, program)| program.written_bytes).sum();
    let share = |bytes: u64| percent(bytes as f64 / together as f64);
    let shown = &all[..all.len().min(ROWS)];
    let cells = |place: &dyn Fn(&str) -> String| {
        let rows = shown.iter().map(|(unit, program)| -> Vec<Cell> {
            let place = program.places.first().map_or(String::new(), |p| place(p));
            vec![
                program.program.as_str().into(),
                unit.unit.as_str().into(),
                bytes_si(program.written_bytes).into(),
                share(program.written_bytes).into(),
                place.into(),
            ]
        });
        rows.collect::<Vec<_>>()
    };
    // What is left of the line beside the other columns.
    let mut without = table.clone();
    cells(&|_| String::new()).into_iter().for_each(|row| without.row(row));
    let taken = without.lines(Style::default()).iter().map(|line| line.chars().count()).max();
    let titles = "to files in".len();
    let room = COLUMNS.saturating_sub(taken.unwrap_or(0).saturating_sub(titles));
    let room = room.max(MIN_PLACE_COLUMNS);
    cells(&|place| shorten(place, room)).into_iter().for_each(|row| table.row(row));
    let mut lines = table.lines(style);
    if let Some(more) = all.len().checked_sub(ROWS).filter(|more| *more > 0) {
        let rest: u64 = all[ROWS..].iter().map(|(_, program)| program.written_bytes).sum();
        lines.push(format!(
            "{} wrote {}.",
            counted(more as u64, "further program", "further programs"),
            bytes_si(rest)
        ));
    }
    lines
}

/// Which disks units wrote to; with one disk there is nothing to tell.
fn by_disk(report: &Report, style: Style) -> Vec<String> {
    let units = report.units.iter();
    let mut all: Vec<_> =
        units.flat_map(|unit| unit.disks.iter().map(move |disk| (unit, disk))).collect();
    if report.disks.len() < 2 || all.is_empty() {
        return Vec::new();
    }
    all.sort_by_key(|(_, disk)| std::cmp::Reverse(disk.written_bytes));
    let mut table =
        Table::new(&[("unit", Align::Left), ("to disk", Align::Left), ("wrote", Align::Right)]);
    for (unit, disk) in all.into_iter().take(ROWS) {
        table.row(vec![
            unit.unit.as_str().into(),
            disk.disk.as_str().into(),
            bytes_si(disk.written_bytes).into(),
        ]);
    }
    table.lines(style)
}

/// How what programs gave and what disks wrote go together.
fn balance(report: &Report) -> Vec<String> {
    let mut words = format!("Programs had {} written", bytes_si(report.programs_written_bytes));
    if report.disks_seen == 0 {
        return paragraph(&(words + "."), "");
    }
    let cancelled: u64 = report.units.iter().map(|unit| unit.cancelled_bytes).sum();
    if cancelled > 0 {
        words += &format!(" (without {} deleted before they reached a disk)", bytes_si(cancelled));
    }
    match report.swap_written_bytes {
        Some(swap) if swap > 0 => words += &format!(", swap {}", bytes_si(swap)),
        _ => {}
    }
    words += &format!("; the disks wrote {}.", bytes_si(report.disks_written_bytes));
    let difference = report.added_bytes.unsigned_abs();
    let share = match report.disks_written_bytes {
        0 => String::new(),
        written => format!(" ({})", percent(difference as f64 / written as f64)),
    };
    words += &match report.added_bytes {
        ..0 => format!(
            " {} did not reach these disks: compressed, overwritten in memory, or on other \
             machines.",
            bytes_si(difference)
        ),
        0 => String::new(),
        1.. => format!(
            " {} of that{share} are what filesystems add: journal, metadata, whole blocks, copies.",
            bytes_si(difference)
        ),
    };
    let waiting = report.waiting_bytes.unsigned_abs();
    if waiting > report.disks_written_bytes / 100 {
        let which = if report.waiting_bytes < 0 { "less" } else { "more" };
        words += &format!(
            " {} {which} waited in memory at the end than at the beginning.",
            bytes_si(waiting)
        );
    }
    paragraph(&words, "")
}

fn hours(report: &Report, style: Style) -> Vec<String> {
    if report.hours.len() < MIN_HOURS {
        return Vec::new();
    }
    let mut table = Table::new(&[
        ("hour (UTC)", Align::Left),
        ("disks", Align::Right),
        ("most by", Align::Left),
        ("", Align::Right),
    ]);
    let first = report.hours.len().saturating_sub(HOURS);
    for hour in &report.hours[first..] {
        let (unit, bytes) = match &hour.most {
            Some(most) if most.unit.is_empty() => ("(no unit)", bytes_si(most.written_bytes)),
            Some(most) => (most.unit.as_str(), bytes_si(most.written_bytes)),
            None => ("", String::new()),
        };
        let from = hour.from.get(..16).unwrap_or(&hour.from);
        table.row(vec![
            from.replace('T', " ").into(),
            bytes_si(hour.disks_written_bytes).into(),
            unit.into(),
            bytes.into(),
        ]);
    }
    let mut lines = table.lines(style);
    if first > 0 {
        lines.push(format!("{first} earlier hours are in the JSON."));
    }
    lines
}

fn hidden(report: &Report) -> Vec<String> {
    if report.hidden == 0 {
        return Vec::new();
    }
    let words = format!(
        "{} could not be looked at, and what was written there counts as added by filesystems. Root \
         sees those of all users.",
        counted(u64::from(report.hidden), "process", "processes")
    );
    paragraph(&words, "! ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wear::Wear;
    use crate::writers::{DiskWritten, HourWritten, MostWritten, UnitDiskWritten};
    use rubus_stats::estimate::Estimate;

    fn program(program: &str, written_bytes: u64, place: &str) -> ProgramWritten {
        ProgramWritten {
            program: program.into(),
            written_bytes,
            places: vec![place.into()].into_iter().filter(|p: &String| !p.is_empty()).collect(),
            ..ProgramWritten::default()
        }
    }

    fn unit(unit: &str, programs: Vec<ProgramWritten>) -> UnitWritten {
        UnitWritten {
            unit: unit.into(),
            written_bytes: programs.iter().map(|program| program.written_bytes).sum(),
            cancelled_bytes: 0,
            programs,
            disks: Vec::new(),
        }
    }

    fn a_day() -> Report {
        let hour = |hour: u32, bytes: u64| HourWritten {
            from: format!("2026-11-22T{hour:02}:00:00Z"),
            seconds: 3600.0,
            disks_written_bytes: bytes,
            most: Some(MostWritten {
                unit: "home-assistant.service".into(),
                written_bytes: bytes / 2,
            }),
        };
        Report {
            machine: "Raspberry Pi 3 Model B Rev 1.2, Linux 6.12.47".into(),
            from: "2026-11-22T08:00:00.000Z".into(),
            to: "2026-11-23T08:00:00.000Z".into(),
            seconds: 86_400.0,
            slept_seconds: 0.0,
            disks: vec![DiskWritten {
                name: "mmcblk0".into(),
                what: Some("SC64G, 64.0 GB".into()),
                written_bytes: 1_620_000_000,
                writes: 91_000,
                flushes: 14_400,
            }],
            disks_seen: 1,
            disks_written_bytes: 1_620_000_000,
            programs_written_bytes: 1_180_000_000,
            swap_written_bytes: Some(40_000_000),
            waiting_bytes: -1_000_000,
            added_bytes: 399_000_000,
            per_day: Some(Estimate::new(1.62e9, 1.31e9, 1.99e9)),
            wear: vec![DiskWear {
                wear: Wear {
                    disk: "mmcblk0".into(),
                    filesystems_written_bytes: Some(912_000_000_000),
                    ..Wear::default()
                },
                per_day: Some(Estimate::new(1.62e9, 1.31e9, 1.99e9)),
                years_left: None,
            }],
            findings: Vec::new(),
            units: vec![
                unit(
                    "home-assistant.service",
                    vec![program("python3", 812_000_000, "/var/lib/home-assistant")],
                ),
                unit(
                    "systemd-journald.service",
                    vec![program(
                        "systemd-journal",
                        301_000_000,
                        "/var/log/journal/6f1d5c1c1f4e4a4f8a1c5b7a7d2c9e11",
                    )],
                ),
                unit("kernel", vec![program("jbd2/mmcblk0p2-", 204_000_000, "")]),
                unit("", vec![program("sh", 67_000_000, "")]),
            ],
            hidden: 0,
            hours: vec![hour(8, 70_000_000), hour(9, 68_000_000), hour(10, 65_000_000)],
        }
    }

    #[test]
    fn a_day_of_a_card() {
        insta::assert_snapshot!(render(&a_day(), Style::default()));
    }

    #[test]
    fn with_several_disks_units_are_told_by_disk() {
        let mut report = a_day();
        report.units[0].disks = vec![
            UnitDiskWritten { disk: "sda".into(), written_bytes: 700_000_000 },
            UnitDiskWritten { disk: "mmcblk0".into(), written_bytes: 90_000_000 },
        ];
        let one_disk = render(&report, Style::default());
        assert!(!one_disk.contains("to disk"), "{one_disk}");
        report.disks.push(DiskWritten {
            name: "sda".into(),
            written_bytes: 700_000_000,
            ..DiskWritten::default()
        });
        let text = render(&report, Style::default());
        let rows = "unit                    to disk    wrote\n\
                    home-assistant.service  sda       700 MB\n\
                    home-assistant.service  mmcblk0  90.0 MB\n";
        assert!(text.contains(rows), "{text}");
    }

    #[test]
    fn a_minute_of_an_ordinary_user() {
        let report = Report {
            seconds: 60.0,
            to: "2026-11-22T08:01:00.000Z".into(),
            per_day: None,
            hidden: 41,
            hours: Vec::new(),
            added_bytes: -380_000_000,
            swap_written_bytes: None,
            waiting_bytes: 900_000_000,
            ..a_day()
        };
        insta::assert_snapshot!(render(&report, Style::default()));
    }

    #[test]
    fn nothing_at_all() {
        let report = Report {
            disks: Vec::new(),
            disks_written_bytes: 0,
            programs_written_bytes: 0,
            swap_written_bytes: Some(0),
            waiting_bytes: 0,
            added_bytes: 0,
            per_day: None,
            wear: Vec::new(),
            units: Vec::new(),
            hours: Vec::new(),
            ..a_day()
        };
        insta::assert_snapshot!(render(&report, Style::default()));
    }

    #[test]
    fn without_a_list_of_disks_nothing_is_said_of_them() {
        let report = Report {
            disks: Vec::new(),
            disks_seen: 0,
            disks_written_bytes: 0,
            added_bytes: 819_200,
            per_day: None,
            hours: Vec::new(),
            wear: Vec::new(),
            ..a_day()
        };
        let text = render(&report, Style::default());
        assert!(text.contains("The kernel lists no disk"), "{text}");
        assert!(text.contains("Programs had 1.18 GB written.\n"), "{text}");
        let idle = render(&Report { disks_seen: 1, ..report }, Style::default());
        assert!(idle.contains("No disk wrote anything."), "{idle}");
        let (_, balance) = idle.split_once("Programs had").expect("a balance");
        let balance = balance.split("\n\n").next().unwrap_or_default();
        assert!(!balance.contains('%'), "{idle}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut report = a_day();
        report.units[0].programs = (0..40)
            .map(|n| program(&format!("fifteen-letters{n}"), 1_000_000, &"/deep".repeat(30)))
            .collect();
        let text = render(&report, Style::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("further programs wrote"), "{text}");
    }
}
