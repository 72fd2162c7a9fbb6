//! The table of all cases, `MODEL.cases.tsv`: a line for each, which the summary is made from and `page` shows.

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum as _;
use rubus_stats::estimate::Estimate;

use super::Subject;
use super::case::{Case, Kind, Purpose, Unit};
use super::judge::Score;

/// The names of the columns, as the first line has them.
pub(super) const COLUMNS: [&str; 13] = [
    "subject",
    "case",
    "kind",
    "alternatives",
    "predicted",
    "measured",
    "unit",
    "error_percent",
    "holds",
    "narrowest_pipe",
    "starved_percent",
    "marks",
    "why",
];

/// A mark of a case with which something was chosen.
const CHOSEN: &str = "chosen";
/// A mark of a case in which programs waited too much for a processor to the end.
pub(super) const DISTURBED: &str = "disturbed";

/// A case as it is kept: in digits as they are printed, so that a reader of the table can reproduce the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is composed.
    pub subject: Subject,
    /// The set-up and the operation.
    pub case: String,
    /// What the case is worth.
    pub kind: Kind,
    /// Cases with the same text here serve the same purpose.
    pub alternatives: String,
    /// The predicted rate.
    pub predicted: String,
    /// The measured rate.
    pub measured: String,
    /// Unit of both.
    pub unit: String,
    /// How far the prediction is from the measurement, in percent of it, with its sign.
    pub error_percent: String,
    /// Whether the intervals of both have a number in common.
    pub holds: bool,
    /// The narrowest pipe, says the model.
    pub narrowest_pipe: String,
    /// Share of the time in which some program waited for a processor, in percent.
    pub starved_percent: String,
    /// `chosen`, `measured N times`, `disturbed`, where they apply.
    pub marks: Vec<String>,
    /// Why it misses; empty where it does not or that is not known.
    pub why: String,
}

impl From<&Case> for Row {
    fn from(case: &Case) -> Row {
        let forecast = &case.forecast;
        Row {
            subject: forecast.subject,
            case: forecast.name.clone(),
            kind: forecast.kind,
            alternatives: forecast.group.clone(),
            predicted: estimate(&forecast.predicted, forecast.unit),
            measured: estimate(&case.measured, forecast.unit),
            unit: unit(forecast.unit).into(),
            error_percent: format!("{:+.1}", case.error() * 100.0),
            holds: case.overlaps(),
            narrowest_pipe: forecast.narrowest.clone(),
            starved_percent: format!("{:.0}", case.starved * 100.0),
            marks: marks(case),
            why: case.note.unwrap_or_default().into(),
        }
    }
}

fn marks(case: &Case) -> Vec<String> {
    let mut marks = Vec::new();
    if case.forecast.purpose == Purpose::Chosen {
        marks.push(CHOSEN.into());
    }
    if case.again > 0 {
        marks.push(format!("measured {} times", case.again + 1));
    }
    if case.is_disturbed {
        marks.push(DISTURBED.into());
    }
    marks
}

impl Row {
    fn line(&self) -> String {
        let subject = self.subject.name();
        let marks = self.marks.join(", ");
        let cells = [
            &*subject,
            &self.case,
            self.kind.name(),
            &self.alternatives,
            &self.predicted,
            &self.measured,
            &self.unit,
            &self.error_percent,
            if self.holds { "yes" } else { "no" },
            &self.narrowest_pipe,
            &self.starved_percent,
            &marks,
            &self.why,
        ];
        cells.join("\t")
    }

    fn read(line: &str) -> Result<Row> {
        let cells: Vec<&str> = line.split('\t').collect();
        ensure!(cells.len() == COLUMNS.len(), "{} cells instead of {}", cells.len(), COLUMNS.len());
        let text = |name: &str| {
            let at = COLUMNS.iter().position(|column| *column == name).expect("a column");
            cells[at].to_string()
        };
        let (subject, kind, marks) = (text("subject"), text("kind"), text("marks"));
        let row = Row {
            subject: Subject::from_str(&subject, false)
                .ok()
                .with_context(|| format!("{subject:?} is no subject"))?,
            case: text("case"),
            kind: Kind::ALL
                .into_iter()
                .find(|known| known.name() == kind)
                .with_context(|| format!("{kind:?} is no kind"))?,
            alternatives: text("alternatives"),
            predicted: text("predicted"),
            measured: text("measured"),
            unit: text("unit"),
            error_percent: text("error_percent"),
            holds: match &*text("holds") {
                "yes" => true,
                "no" => false,
                other => bail!("{other:?} in the column \"holds\" is neither yes nor no"),
            },
            narrowest_pipe: text("narrowest_pipe"),
            starved_percent: text("starved_percent"),
            marks: marks.split(", ").filter(|mark| !mark.is_empty()).map(str::to_string).collect(),
            why: text("why"),
        };
        row.score().map(|_| row)
    }

    /// What of it is judged.
    ///
    /// # Errors
    /// When a column of numbers has something else.
    pub fn score(&self) -> Result<Score> {
        let number = |name: &str, text: &str| -> Result<f64> {
            text.parse().with_context(|| format!("{text:?} in the column {name:?} is no number"))
        };
        Ok(Score {
            subject: self.subject,
            kind: self.kind,
            group: self.alternatives.clone(),
            predicted: number("predicted", &self.predicted)?,
            measured: number("measured", &self.measured)?,
            error: number("error_percent", &self.error_percent)? / 100.0,
            overlaps: self.holds,
            is_held_out: !self.has(CHOSEN),
            is_disturbed: self.has(DISTURBED),
        })
    }

    fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|other| other == mark)
    }
}

/// The table's text.
pub fn text(rows: &[Row]) -> String {
    let lines = [COLUMNS.join("\t")].into_iter().chain(rows.iter().map(Row::line));
    lines.map(|line| line + "\n").collect()
}

/// The rows of such a text.
///
/// # Errors
/// When it has other columns, or a row is damaged.
pub fn read(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.lines();
    let columns = COLUMNS.join("\t");
    ensure!(lines.next() == Some(&*columns), "the first line is not {columns:?}");
    lines.map(|line| Row::read(line).with_context(|| format!("in the row {line:?}"))).collect()
}

/// What of the rows is judged.
///
/// # Errors
/// When a column of numbers has something else.
pub fn scores(rows: &[Row]) -> Result<Vec<Score>> {
    rows.iter().map(Row::score).collect()
}

/// The rows, of which these take the place of all older ones of their subjects.
pub fn replaced(before: Vec<Row>, again: Vec<Row>) -> Vec<Row> {
    let is_again = |row: &Row| again.iter().any(|new| new.subject == row.subject);
    let kept: Vec<Row> = before.into_iter().filter(|row| !is_again(row)).collect();
    let mut all: Vec<Row> = kept.into_iter().chain(again).collect();
    // In the order of the subjects; those of one subject stay as they are.
    all.sort_by_key(|row| row.subject);
    all
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Iops => "per s",
        Unit::BytesPerSecond => "MB/s",
        Unit::TouchesPerSecond => "touches/s",
    }
}

fn estimate(value: &Estimate, unit: Unit) -> String {
    match unit {
        Unit::BytesPerSecond => number(value.value / 1e6),
        Unit::Iops | Unit::TouchesPerSecond => number(value.value),
    }
}

/// Three digits that count.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::case::Forecast;

    pub(in crate::model) fn case(name: &str, predicted: f64, measured: f64) -> Case {
        Case {
            forecast: Forecast {
                subject: Subject::Stripes,
                name: name.into(),
                kind: Kind::Composition,
                group: "4 KiB".into(),
                purpose: Purpose::HeldOut,
                unit: Unit::BytesPerSecond,
                predicted: Estimate::exact(predicted),
                narrowest: "port".into(),
            },
            measured: Estimate::exact(measured),
            starved: 0.5,
            again: 0,
            is_disturbed: true,
            note: Some("the port was slow"),
        }
    }

    #[test]
    fn a_case_is_a_row_and_a_row_reads_back() {
        let mut two = case("two", 2e6, 1e6);
        two.forecast.kind = Kind::Identity;
        two.forecast.purpose = Purpose::Chosen;
        two.again = 1;
        two.is_disturbed = false;
        two.note = None;
        let rows = [Row::from(&case("one", 1e6, 1.25e6)), Row::from(&two)];
        let text = text(&rows);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "stripes\tone\tcomposition\t4 KiB\t1.00\t1.25\tMB/s\t-20.0\tno\tport\t50\tdisturbed\tthe port was slow",
                "stripes\ttwo\tidentity\t4 KiB\t2.00\t1.00\tMB/s\t+100.0\tno\tport\t50\tchosen, measured 2 times\t",
            ]
        );
        assert_eq!(read(&text).unwrap(), rows);
        let scores = scores(&rows).unwrap();
        assert_eq!((scores[0].error, scores[0].overlaps), (-0.2, false));
        assert!(scores[0].is_held_out && scores[0].is_disturbed);
        assert!(!scores[1].is_held_out && !scores[1].is_disturbed);
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error_and_no_case_less() {
        let good = text(&[Row::from(&case("one", 1e6, 1.25e6))]);
        for (from, to, why) in [
            ("\tcomposition", "\tsure", "\"sure\" is no kind"),
            ("stripes\t", "strips\t", "\"strips\" is no subject"),
            ("\tone", "", "12 cells instead of 13"),
            ("1.00", "one", "\"one\" in the column \"predicted\" is no number"),
            ("-20.0", "", "\"\" in the column \"error_percent\" is no number"),
            ("\tno\t", "\tmaybe\t", "is neither yes nor no"),
            ("subject\t", "", "the first line is not"),
        ] {
            let error = format!("{:#}", read(&good.replacen(from, to, 1)).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_was_measured_again_takes_the_place_of_what_was_there() {
        let row = |subject: Subject, predicted: f64| {
            let mut case = case("one", predicted * 1e6, 1e6);
            case.forecast.subject = subject;
            Row::from(&case)
        };
        let before = vec![row(Subject::Kernel, 1.0), row(Subject::Swap, 2.0)];
        let again = vec![row(Subject::Buses, 4.0), row(Subject::Kernel, 3.0)];
        assert_eq!(
            replaced(before, again),
            [row(Subject::Kernel, 3.0), row(Subject::Buses, 4.0), row(Subject::Swap, 2.0)]
        );
    }
}
