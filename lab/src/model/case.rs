//! What was predicted, and what was measured.

use std::time::SystemTime;

use rubus_advise::{Operation, Prediction, Step, predict};
use rubus_stats::estimate::Estimate;
use serde::{Deserialize, Serialize};

use super::Subject;
use super::rig::Measured;

/// What a case is worth: how much of what is predicted was known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What is predicted is held by its inputs, or one stage that was measured alone is all that counts.
    Identity,
    /// Between two sizes or depths of one sweep.
    Interpolation,
    /// Stages that were measured apart, with limits that the lab set itself.
    Composition,
    /// Stages that were measured alone, without any limit of the lab's, and the whole predicted before it is measured.
    Blind,
}

impl Kind {
    /// All of them, in the order of the page.
    pub const ALL: [Kind; 4] =
        [Kind::Blind, Kind::Composition, Kind::Interpolation, Kind::Identity];

    /// As it stands in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Identity => "identity",
            Kind::Interpolation => "interpolation",
            Kind::Composition => "composition",
            Kind::Blind => "blind",
        }
    }

    /// Whether the model is judged by it: it could be wrong there.
    pub fn is_judged(self) -> bool {
        matches!(self, Kind::Composition | Kind::Blind)
    }
}

/// Whether anybody looked at the case when the model's constants were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The model's constants for this subject were chosen with it.
    Chosen,
    /// Nothing was chosen with it.
    HeldOut,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// Touches of a page of memory per second.
    TouchesPerSecond,
}

/// What the model says of a case before the whole of it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// What is composed.
    pub subject: Subject,
    /// Which set-up, and which operation; no two of a subject have the same.
    pub name: String,
    /// What the case is worth.
    pub kind: Kind,
    /// Cases of one subject and group are alternatives for the same purpose: their order is judged.
    pub group: String,
    /// Whether it is held out.
    pub purpose: Purpose,
    /// Unit of the prediction and of the measurement.
    pub unit: Unit,
    /// What the model says.
    pub predicted: Estimate,
    /// The narrowest pipe, says the model.
    pub narrowest: String,
}

impl Forecast {
    /// What `path` gives for `operation`.
    pub fn new(
        subject: Subject,
        kind: Kind,
        name: impl Into<String>,
        group: impl Into<String>,
        unit: Unit,
        (path, operation): (&[Step], Operation),
    ) -> Forecast {
        let prediction = predict(path, &operation);
        Forecast {
            subject,
            name: name.into(),
            kind,
            group: group.into(),
            purpose: Purpose::HeldOut,
            unit,
            predicted: match unit {
                Unit::Iops | Unit::TouchesPerSecond => prediction.iops,
                Unit::BytesPerSecond => prediction.bytes_per_second,
            },
            narrowest: narrowest(&prediction),
        }
    }

    /// The same, but with something chosen by looking at it.
    pub fn chosen(mut self) -> Forecast {
        self.purpose = Purpose::Chosen;
        self
    }

    /// The whole, as it was measured.
    pub fn whole(&self, found: &Measured) -> Whole {
        Whole {
            subject: self.subject,
            name: self.name.clone(),
            began: found.began,
            measured: match self.unit {
                Unit::Iops | Unit::TouchesPerSecond => found.iops,
                Unit::BytesPerSecond => found.bytes_per_second,
            },
            starved: found.starved,
            again: found.again,
            is_disturbed: found.is_disturbed,
        }
    }
}

/// What was measured of a case. It says nothing of what was predicted: that is in the file of the predictions.
#[derive(Clone, Debug)]
pub struct Whole {
    /// What is composed.
    pub subject: Subject,
    /// The case's name.
    pub name: String,
    /// When measuring it began.
    pub began: SystemTime,
    /// What was measured.
    pub measured: Estimate,
    /// Share of the time in which programs waited for a processor meanwhile.
    pub starved: f64,
    /// How often it was measured again since something else disturbed it.
    pub again: u32,
    /// True when it was disturbed to the end.
    pub is_disturbed: bool,
}

/// A prediction and its measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// What was said before.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// What was measured.
    pub measured: Estimate,
    /// Share of the time in which programs waited for a processor meanwhile.
    pub starved: f64,
    /// How often it was measured again since something else disturbed it.
    pub again: u32,
    /// True when it was disturbed to the end.
    pub is_disturbed: bool,
    /// Why it misses, where that is known.
    pub note: Option<&'static str>,
}

impl Case {
    /// What was said, and what came out.
    pub fn new(forecast: Forecast, whole: &Whole) -> Case {
        Case {
            forecast,
            measured: whole.measured,
            starved: whole.starved,
            again: whole.again,
            is_disturbed: whole.is_disturbed,
            note: None,
        }
    }

    /// How far the prediction is from the measurement, as a share of it; negative when it is too low.
    pub fn error(&self) -> f64 {
        self.forecast.predicted.value / self.measured.value - 1.0
    }

    /// Whether the intervals of both have a number in common.
    pub fn overlaps(&self) -> bool {
        let predicted = &self.forecast.predicted;
        predicted.low <= self.measured.high && self.measured.low <= predicted.high
    }
}

/// How busy the second narrowest pipe is beside the narrowest, says the model: near 0 when nothing but one pipe counts.
pub(super) fn share_of_second(path: &[Step], operation: &Operation) -> f64 {
    match predict(path, operation).pipes.as_slice() {
        [first, second, ..] => second.utilisation / first.utilisation,
        _ => 0.0,
    }
}

fn narrowest(prediction: &Prediction) -> String {
    match prediction.pipes.first() {
        Some(pipe) if pipe.utilisation > 0.8 => pipe.name.clone(),
        // Nothing is full: a lone operation waits for one thing after the other.
        Some(_) => "waiting".into(),
        None => "delay".into(),
    }
}
