//! The predictions of a run in a file, each written before the whole that it predicts is measured.
//!
//! What is measured says nothing of what was predicted: a prediction is judged as it stands in the file.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::case::{Case, Forecast, Whole};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// When it was written, in milliseconds of Unix time.
    pub unix_ms: u64,
    /// What was predicted.
    #[serde(flatten)]
    pub forecast: Forecast,
}

/// The file of a run, to which lines are added only.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    /// A new file; one that is there is of another run and goes.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(path: &Path) -> Result<Ledger> {
        let unusable = || format!("could not make the file of predictions {}", path.display());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).with_context(unusable)?;
        }
        File::create(path).with_context(unusable)?;
        let file = File::options().append(true).open(path);
        Ok(Ledger { path: path.into(), file: file.with_context(unusable)? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line for each, and is back when they are on the disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write<'a>(&self, forecasts: impl IntoIterator<Item = &'a Forecast>) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = u64::try_from(now.unwrap_or_default().as_millis())?;
        let line = |forecast: &Forecast| Line { unix_ms, forecast: forecast.clone() };
        let text = text(forecasts.into_iter().map(line))?;
        let mut file = &self.file;
        let written = file.write_all(text.as_bytes());
        written
            .and_then(|()| file.sync_data())
            .with_context(|| format!("could not write predictions to {}", self.path.display()))
    }
}

/// Such a file with these lines.
///
/// # Errors
/// When a number cannot be written.
pub fn text(lines: impl IntoIterator<Item = Line>) -> Result<String> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(text)
}

/// The lines of such a file.
///
/// # Errors
/// When it cannot be read, or a line is none.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read the predictions in {}", path.display()))?;
    let line = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .with_context(|| format!("line {} of {}", number + 1, path.display()))
    };
    text.lines().enumerate().map(line).collect()
}

/// What became of the predictions of a run.
#[derive(Debug, Default)]
pub struct Joined {
    /// Predicted, and then measured.
    pub cases: Vec<Case>,
    /// What cannot be judged, and why.
    pub refused: Vec<String>,
}

/// Puts predictions and measurements together. A measurement is judged only when exactly one prediction of it was in the file before
/// it began.
pub fn join(lines: &[Line], wholes: &[Whole]) -> Joined {
    let mut joined = Joined::default();
    for whole in wholes {
        let mut of_it = lines.iter().filter(|line| is_of(line, whole));
        match (of_it.next(), of_it.next()) {
            (Some(line), None) if written(line) <= whole.began => {
                joined.cases.push(Case::new(line.forecast.clone(), whole));
            }
            (Some(_), None) => joined.refuse(whole, "measured before it was predicted"),
            (Some(_), Some(_)) => joined.refuse(whole, "predicted more than once"),
            (None, _) => joined.refuse(whole, "measured without a prediction"),
        }
    }
    for line in lines {
        if !wholes.iter().any(|whole| is_of(line, whole)) {
            let Forecast { subject, name, .. } = &line.forecast;
            let text = format!("{}, {name}: predicted and never measured", subject.name());
            joined.refused.push(text);
        }
    }
    joined
}

impl Joined {
    fn refuse(&mut self, whole: &Whole, why: &str) {
        let name = whole.subject.name();
        self.refused.push(format!("{name}, {}: {why}", whole.name));
    }
}

fn is_of(line: &Line, whole: &Whole) -> bool {
    (line.forecast.subject, &line.forecast.name) == (whole.subject, &whole.name)
}

fn written(line: &Line) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(line.unix_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Subject;
    use crate::model::case::{Kind, Purpose, Unit};
    use crate::model::rig::Measured;
    use rubus_stats::estimate::Estimate;

    fn forecast(name: &str) -> Forecast {
        Forecast {
            subject: Subject::Stripes,
            name: name.into(),
            kind: Kind::Composition,
            group: "4 KiB".into(),
            purpose: Purpose::HeldOut,
            unit: Unit::Iops,
            predicted: Estimate::new(100.0, 90.0, 110.0),
            narrowest: "port".into(),
        }
    }

    fn whole(name: &str, began: SystemTime) -> Whole {
        let found = Measured { began, ..Measured::of_rate("", Estimate::exact(50.0)) };
        forecast(name).whole(&found)
    }

    #[test]
    fn what_is_judged_is_what_stood_in_the_file_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/predictions.jsonl");
        let ledger = Ledger::new(&path).unwrap();
        let mut said = forecast("two");
        ledger.write([&said]).unwrap();
        // Too late: what was measured is known by now.
        said.predicted = Estimate::exact(50.0);
        let wholes = [said.whole(&Measured {
            began: SystemTime::now(),
            ..Measured::of_rate("", Estimate::exact(50.0))
        })];
        let joined = join(&read(&path).unwrap(), &wholes);
        assert_eq!(joined.cases[0].forecast, forecast("two"));
        assert_eq!(joined.cases[0].error(), 1.0);
        assert_eq!(joined.refused, [""; 0]);
        let text = std::fs::read_to_string(&path).unwrap();
        let line = text.split_once(',').unwrap().1;
        assert_eq!(
            line,
            "\"subject\":\"stripes\",\"name\":\"two\",\"kind\":\"composition\",\"group\":\"4 KiB\",\
             \"purpose\":\"held-out\",\"unit\":\"iops\",\"predicted\":{\"value\":100.0,\
             \"low\":90.0,\"high\":110.0},\"narrowest\":\"port\"}\n"
        );
    }

    #[test]
    fn lines_are_added_and_another_run_starts_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("predictions.jsonl");
        let ledger = Ledger::new(&path).unwrap();
        ledger.write([&forecast("a")]).unwrap();
        ledger.write(&[forecast("b"), forecast("c")]).unwrap();
        let names = |lines: Vec<Line>| {
            let names = lines.into_iter().map(|line| line.forecast.name);
            names.collect::<Vec<_>>().concat()
        };
        assert_eq!(names(read(&path).unwrap()), "abc");
        Ledger::new(&path).unwrap();
        assert_eq!(read(&path).unwrap(), []);
        std::fs::write(&path, "{}\n").unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        assert!(error.starts_with("line 1 of "), "{error}");
    }

    #[test]
    fn what_was_not_said_before_is_not_judged() {
        let at = |unix_ms: u64, name: &str| Line { unix_ms, forecast: forecast(name) };
        let lines = [
            at(1000, "in time"),
            at(1001, "late"),
            at(0, "twice"),
            at(0, "twice"),
            at(0, "forgotten"),
        ];
        let began = UNIX_EPOCH + Duration::from_secs(1);
        let wholes = ["in time", "late", "twice", "surprise"].map(|name| whole(name, began));
        let joined = join(&lines, &wholes);
        assert_eq!(joined.cases.len(), 1);
        assert_eq!(joined.cases[0].forecast.name, "in time");
        assert_eq!(
            joined.refused,
            [
                "stripes, late: measured before it was predicted",
                "stripes, twice: predicted more than once",
                "stripes, surprise: measured without a prediction",
                "stripes, forgotten: predicted and never measured",
            ]
        );
    }
}
