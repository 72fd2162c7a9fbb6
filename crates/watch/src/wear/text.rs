//! How worn a disk is, in words.

use rubus_draw::layout::paragraph;
use rubus_vocabulary::units::bytes_si;

use super::{Trouble, Used, Warning, Wear, YearsLeft};

/// Longer times are not told apart: by then a disk dies of other things.
const MAX_YEARS: f64 = 100.0;
const YEAR_MONTHS: f64 = 12.0;
/// An interval that begins with months and is wider than this says nothing, unless all of it is within a month.
const MAX_FACTOR: f64 = 10.0;

/// What is said of one disk; `years` if its rate of writes is known.
pub fn lines(wear: &Wear, years: Years) -> Vec<String> {
    let is_at_end = wear.used.is_some_and(Used::is_at_end);
    let mut lines = paragraph(&sentence(wear, years), if is_at_end { DANGER } else { "" });
    for warning in &wear.warnings {
        let sign = if warning.is_danger() { DANGER } else { "! " };
        let says = of_warnings(wear, &[*warning]).join("");
        let words = format!("{} {says}. {}", wear.disk, what_to_do(*warning));
        lines.extend(paragraph(&words, sign));
    }
    lines
}

/// What stands before a sentence that its reader has to act on at once.
const DANGER: &str = "! danger: ";

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
        let then = if used.is_at_end() {
            " Make a backup, and replace it before it fails.".into()
        } else {
            of_years(wear, years)
        };
        let doubts = of_disagreement(wear) + of_counter(wear);
        return format!("{disk} has used {}{written}.{doubts}{then}", of_used(used));
    }
    let written = wear.filesystems_written_bytes.map_or(String::new(), |bytes| {
        format!(
            " The ext4 filesystems on it have counted {} of writes since they were made.",
            bytes_si(bytes)
        )
    });
    let why = match &wear.trouble {
        _ if wear.source.is_some() && wear.is_turning => return String::new(),
        _ if wear.source.is_some() => return silent(wear, &written),
        None if disk.starts_with("mmcblk") => {
            return format!("{disk} does not tell how worn it is; few cards do.{written}");
        }
        None => return format!("{disk} does not tell how worn it is.{written}"),
        Some(Trouble::NoSmartctl) => {
            "smartctl asks that, and is not installed: `sudo apt install smartmontools`.".into()
        }
        Some(Trouble::OldSmartctl(version)) => format!(
            "smartctl {version} is too old, since only 7.0 and later have `--json`. Upgrade smartmontools."
        ),
        Some(Trouble::NotRoot) => "only root may ask it.".into(),
        Some(Trouble::Asleep) => "it sleeps, and was not woken.".into(),
        Some(Trouble::Other(words)) => format!("smartctl could not ask it ({words})."),
    };
    format!("How worn {disk} is, is not known: {why}{written}")
}

/// A disk that answered, but says nothing of its wear that can be relied on.
fn silent(wear: &Wear, filesystems: &str) -> String {
    let counted = match wear.written_bytes {
        Some(bytes) => format!("; {} were written to it so far", bytes_si(bytes)),
        None => String::new(),
    };
    let counter = of_counter(wear);
    format!("{} does not tell how worn it is{counted}.{counter}{filesystems}", wear.disk)
}

fn of_disagreement(wear: &Wear) -> String {
    wear.disagreement().map_or(String::new(), |(best, worst)| {
        format!(
            " Its values contradict each other: {} says {}, {} says {}; the worse one counts.",
            worst.name,
            of_share(worst.used),
            best.name,
            of_share(best.used)
        )
    })
}

fn of_counter(wear: &Wear) -> &'static str {
    if wear.is_written_counter_implausible {
        " Its counter of written bytes cannot be right, and is left out."
    } else {
        ""
    }
}

pub(crate) fn of_used(used: Used) -> String {
    if used.is_over() {
        format!("up the life that it was made for ({})", of_share(used))
    } else {
        format!("{} of the life that it was made for", of_share(used))
    }
}

fn of_share(used: Used) -> String {
    match used.max_percent {
        Some(max) => format!("{:.0} to {max:.0} %", used.min_percent),
        None => format!("{:.0} % or more", used.min_percent),
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
    let is_too_wide = left.min_years < 1.0
        && max.is_none_or(|max| max > left.min_years * MAX_FACTOR && max >= 1.0 / YEAR_MONTHS);
    let time = match max {
        _ if is_too_wide => {
            return " How long it lasts at this rate cannot be told from that.".into();
        }
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
    if years < 1.0 {
        format!("{} more months", round(years * YEAR_MONTHS))
    } else {
        format!("{} more years", number(years, round))
    }
}

fn number(years: f64, round: fn(f64) -> f64) -> String {
    if years < 10.0 {
        format!("{:.1}", round(years * 10.0) / 10.0)
    } else {
        format!("{:.0}", round(years))
    }
}

/// What a disk says of itself, a clause for each warning.
pub(crate) fn of_warnings(wear: &Wear, warnings: &[Warning]) -> Vec<String> {
    let clause = |warning: &Warning| match warning {
        Warning::Failing => "expects to fail soon".to_string(),
        Warning::AtThreshold => {
            let names = wear.failing_attributes.join(", ");
            format!("has values at their maker's threshold ({names})")
        }
        Warning::ReadOnly => "cannot be written any more".into(),
        Warning::Unreliable => "has become unreliable".into(),
        Warning::UnreadableBlocks => "has blocks that it cannot read".into(),
        Warning::SpareNearlyUsedUp => "has used up nearly all of its spare blocks".into(),
        Warning::SpareLow => "has used up most of its spare blocks".into(),
        Warning::DataErrors => "counts errors in its life by which data could not be read".into(),
        Warning::ReallocatedBlocks => "has put many spare blocks in place of bad ones".into(),
        Warning::DesignLifeOver => {
            let names = wear.used_up_attributes.join(", ");
            format!("is at the end of the use that it was made for ({names})")
        }
        Warning::UnsafeCache => "loses what is in its cache with the power".into(),
    };
    warnings.iter().map(clause).collect()
}

fn what_to_do(warning: Warning) -> &'static str {
    match warning {
        Warning::Failing
        | Warning::AtThreshold
        | Warning::Unreliable
        | Warning::UnreadableBlocks
        | Warning::SpareNearlyUsedUp => "Make a backup now, and replace it.",
        Warning::ReadOnly => "Copy what is on it, and replace it.",
        Warning::SpareLow | Warning::DesignLifeOver => "Keep a backup, and plan to replace it.",
        Warning::DataErrors | Warning::ReallocatedBlocks => {
            "Keep a backup, and replace it when the count grows."
        }
        Warning::UnsafeCache => "Use it for nothing that matters.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wear::{Source, ToldUsed};

    fn wear(used: Option<(f64, Option<f64>)>) -> Wear {
        Wear {
            disk: "nvme0n1".into(),
            source: Some(Source::Nvme),
            used: used.map(|(min_percent, max_percent)| Used { min_percent, max_percent }),
            written_bytes: Some(12_300_000_000_000),
            ..Wear::default()
        }
    }

    fn told(name: &str, percent: f64) -> ToldUsed {
        let used = Used { min_percent: percent, max_percent: Some(percent + 2.0) };
        ToldUsed { name: name.into(), used }
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
                        Warning::UnreadableBlocks,
                        Warning::SpareNearlyUsedUp,
                        Warning::UnsafeCache,
                    ],
                    ..wear(None)
                },
                Years::NoRate,
            ),
            (&wear(None), left(1.0, None)),
            (&Wear { is_turning: true, ..wear(None) }, Years::NoRate),
            (&three, left(0.02, Some(1.43))),
            (&card(Some(Trouble::OldSmartctl("6.6".into()))), Years::NoRate),
            (
                &Wear {
                    told_used: vec![told("Wear_Leveling_Count", 0.0), told("SSD_Life_Left", 39.0)],
                    written_bytes: None,
                    is_written_counter_implausible: true,
                    warnings: vec![Warning::AtThreshold],
                    failing_attributes: vec!["SSD_Life_Left".into()],
                    ..wear(Some((39.0, Some(41.0))))
                },
                Years::NoRate,
            ),
            (
                &Wear {
                    is_turning: true,
                    warnings: vec![Warning::ReallocatedBlocks, Warning::DesignLifeOver],
                    used_up_attributes: vec!["Power_On_Hours".into()],
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
