//! How worn a disk is, in words.

use rubus_draw::layout::paragraph;
use rubus_vocabulary::units::bytes_si;

use super::{Trouble, Used, Warning, Wear, YearsLeft};

/// More years than these are not told apart: nobody knows what else a disk dies of by then.
const MAX_YEARS: f64 = 100.0;
const YEAR_MONTHS: f64 = 12.0;

/// What is said of one disk; `years` if its rate of writes is known.
pub fn lines(wear: &Wear, years: Years) -> Vec<String> {
    let mut lines = paragraph(&sentence(wear, years), "");
    for warning in &wear.warnings {
        let words = format!("{} warns: {}", wear.disk, of_warning(*warning));
        lines.extend(paragraph(&words, "! "));
    }
    lines
}

/// What is known of the time that a disk has left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Years {
    /// Its rate of writes is not known yet.
    NoRate,
    /// What a rate makes of it, as far as the disk tells enough.
    AtRate(Option<YearsLeft>),
}

fn sentence(wear: &Wear, years: Years) -> String {
    let disk = &wear.disk;
    if let Some(used) = wear.used {
        let written = wear.written_bytes.map_or(String::new(), |bytes| {
            format!("; {} were written to it so far", bytes_si(bytes))
        });
        let then = match used.is_over() {
            true => " Make a backup, and replace it before it fails.".into(),
            false => of_years(wear, years),
        };
        return format!("{disk} has used {}{written}.{then}", of_used(used));
    }
    let written = wear.filesystems_written_bytes.map_or(String::new(), |bytes| {
        format!(
            " The ext4 filesystems on it have counted {} of writes since they were made.",
            bytes_si(bytes)
        )
    });
    let why = match &wear.trouble {
        _ if wear.source.is_some() => return String::new(),
        None if disk.starts_with("mmcblk") => {
            return format!("{disk} does not say how worn it is; few cards do.{written}");
        }
        None => return format!("{disk} does not say how worn it is.{written}"),
        Some(Trouble::NoSmartctl) => {
            "smartctl asks that, and is not installed: `sudo apt install smartmontools`.".into()
        }
        Some(Trouble::NotRoot) => "only root may ask it.".into(),
        Some(Trouble::Asleep) => "it sleeps, and was not woken.".into(),
        Some(Trouble::Other(words)) => format!("smartctl could not ask it ({words})."),
    };
    format!("How worn {disk} is, is not known: {why}{written}")
}

fn of_used(used: Used) -> String {
    let share = match used.max_percent {
        Some(max) => format!("{:.0} to {max:.0} %", used.min_percent),
        None => format!("{:.0} % or more", used.min_percent),
    };
    match used.is_over() {
        true => format!("up the life that it was made for ({share})"),
        false => format!("{share} of the life that it was made for"),
    }
}

fn of_years(wear: &Wear, years: Years) -> String {
    let left = match years {
        Years::NoRate => return String::new(),
        Years::AtRate(None) => {
            return " It does not count what is written to it, so how long it lasts cannot be told.".into();
        }
        Years::AtRate(Some(left)) => left,
    };
    // A filesystem's counter comes along with a copy of it.
    let condition = match wear.written_bytes {
        Some(_) => "",
        None => ", if its filesystems were made on it and not copied there as an image",
    };
    let max = left.max_years.filter(|max| *max <= MAX_YEARS);
    let time = match max {
        _ if left.min_years > MAX_YEARS => format!("more than {MAX_YEARS:.0} more years"),
        None => format!("at least {}", span(left.min_years, f64::floor)),
        Some(max) if max < 1.0 => format!(
            "{:.0} to {} more months",
            (left.min_years * YEAR_MONTHS).floor(),
            (max * YEAR_MONTHS).ceil()
        ),
        Some(max) => format!("{} to {}", number(left.min_years, f64::floor), span(max, f64::ceil)),
    };
    format!(" At this rate it lasts {time}{condition}.")
}

/// "4.5 more years" or "7 more months", rounded to the safe side.
fn span(years: f64, round: fn(f64) -> f64) -> String {
    match years < 1.0 {
        true => format!("{} more months", round(years * YEAR_MONTHS)),
        false => format!("{} more years", number(years, round)),
    }
}

fn number(years: f64, round: fn(f64) -> f64) -> String {
    match years < 10.0 {
        true => format!("{:.1}", round(years * 10.0) / 10.0),
        false => format!("{:.0}", round(years)),
    }
}

fn of_warning(warning: Warning) -> &'static str {
    match warning {
        Warning::Failing => "it expects to fail soon. Make a backup now, and replace it.",
        Warning::ReadOnly => "it cannot be written any more. Copy what is on it, and replace it.",
        Warning::Unreliable => "it has become unreliable. Make a backup now, and replace it.",
        Warning::SpareNearlyUsedUp => {
            "nearly all of its spare blocks are used up. Make a backup now, and replace it."
        }
        Warning::SpareLow => {
            "most of its spare blocks are used up. Keep a backup, and plan to replace it."
        }
        Warning::UnsafeCache => {
            "what it keeps in its memory is lost when the power is. Use it for nothing that matters."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wear::Source;

    fn wear(used: Option<(f64, Option<f64>)>) -> Wear {
        Wear {
            disk: "nvme0n1".into(),
            source: Some(Source::Nvme),
            used: used.map(|(min_percent, max_percent)| Used { min_percent, max_percent }),
            written_bytes: Some(12_300_000_000_000),
            ..Wear::default()
        }
    }

    fn left(min_years: f64, max_years: Option<f64>) -> Years {
        Years::AtRate(Some(YearsLeft { min_years, max_years }))
    }

    fn card(trouble: Option<Trouble>) -> Wear {
        Wear {
            disk: "mmcblk0".into(),
            filesystems_written_bytes: Some(812_000_000_000),
            trouble,
            ..Wear::default()
        }
    }

    #[test]
    fn every_kind_of_answer() {
        let three = wear(Some((2.0, Some(4.0))));
        let emmc = Wear {
            disk: "mmcblk0".into(),
            source: Some(Source::Emmc),
            written_bytes: None,
            filesystems_written_bytes: Some(812_000_000_000),
            warnings: vec![Warning::SpareLow],
            ..wear(Some((10.0, Some(20.0))))
        };
        let all = [
            (&three, Years::NoRate),
            (&three, left(31.23, Some(88.01))),
            (&three, left(3.18, Some(7.01))),
            (&three, left(0.21, Some(0.43))),
            (&three, left(0.21, Some(1.43))),
            (&three, left(31.23, Some(131.0))),
            (&three, left(0.55, None)),
            (&three, left(131.0, None)),
            (&wear(Some((0.0, Some(1.0)))), left(31.23, None)),
            (&wear(Some((98.0, None))), left(0.0, Some(0.31))),
            (&wear(Some((102.0, Some(104.0)))), Years::AtRate(None)),
            (&wear(Some((255.0, None))), Years::AtRate(None)),
            (&emmc, left(4.2, None)),
            (&emmc, Years::NoRate),
            (&Wear { filesystems_written_bytes: None, ..emmc.clone() }, Years::AtRate(None)),
            (&card(None), Years::NoRate),
            (&Wear { disk: "sda".into(), ..card(None) }, Years::NoRate),
            (&card(Some(Trouble::NoSmartctl)), Years::NoRate),
            (&card(Some(Trouble::NotRoot)), Years::NoRate),
            (&card(Some(Trouble::Asleep)), Years::NoRate),
            (
                &card(Some(Trouble::Other("Unknown USB bridge [0x152d:0x0583]".into()))),
                Years::NoRate,
            ),
            (
                &Wear {
                    warnings: vec![
                        Warning::Failing,
                        Warning::ReadOnly,
                        Warning::Unreliable,
                        Warning::SpareNearlyUsedUp,
                        Warning::UnsafeCache,
                    ],
                    ..wear(None)
                },
                Years::NoRate,
            ),
        ];
        let text: Vec<String> =
            all.iter().map(|(wear, years)| lines(wear, *years).join("\n")).collect();
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
