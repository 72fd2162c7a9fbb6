//! What was predicted, and what was measured.

use rubus_advise::{Operation, Prediction, Step, predict};
use rubus_vocabulary::estimate::Estimate;
use serde::Serialize;

use super::Kind;
use super::rig::Measured;

/// Whether anybody looked at the case when the model's constants were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The model's constants for this kind were chosen with it.
    Chosen,
    /// Nothing was chosen with it.
    HeldOut,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    BytesPerSecond,
    /// Touches of a page of memory per second.
    TouchesPerSecond,
}

/// A prediction and its measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// What is composed.
    pub kind: Kind,
    /// Which set-up, and which operation.
    pub name: String,
    /// Cases of one kind and group are alternatives for the same purpose: their order is judged.
    pub group: String,
    /// Whether it is held out.
    pub purpose: Purpose,
    /// Unit of both.
    pub unit: Unit,
    /// What the model says.
    pub predicted: Estimate,
    /// What was measured.
    pub measured: Estimate,
    /// The narrowest pipe, says the model.
    pub narrowest: String,
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
    /// A case of what `path` gives for `operation`.
    pub fn new(
        kind: Kind,
        name: impl Into<String>,
        group: impl Into<String>,
        unit: Unit,
        (path, operation): (&[Step], Operation),
        measured: &Measured,
    ) -> Case {
        let prediction = predict(path, &operation);
        let value = match unit {
            Unit::Iops | Unit::TouchesPerSecond => prediction.iops,
            Unit::BytesPerSecond => prediction.bytes_per_second,
        };
        Case {
            kind,
            name: name.into(),
            group: group.into(),
            purpose: Purpose::HeldOut,
            unit,
            predicted: value,
            measured: match unit {
                Unit::Iops | Unit::TouchesPerSecond => measured.iops,
                Unit::BytesPerSecond => measured.bytes_per_second,
            },
            narrowest: narrowest(&prediction),
            starved: measured.starved,
            again: measured.again,
            is_disturbed: measured.is_disturbed,
            note: None,
        }
    }

    /// The same, but with something chosen by looking at it.
    pub fn chosen(mut self) -> Case {
        self.purpose = Purpose::Chosen;
        self
    }

    /// How far the prediction is from the measurement, as a share of it; negative when it is too low.
    pub fn error(&self) -> f64 {
        self.predicted.value / self.measured.value - 1.0
    }

    /// Whether the intervals of both have a number in common.
    pub fn overlaps(&self) -> bool {
        self.predicted.low <= self.measured.high && self.measured.low <= self.predicted.high
    }
}

fn narrowest(prediction: &Prediction) -> String {
    let utilisation = prediction
        .pipes
        .first()
        .map_or(0.0, |pipe| pipe.utilisation);
    match prediction.pipes.first() {
        Some(pipe) if utilisation > 0.8 => pipe.name.clone(),
        // Nothing is full: a lone operation waits for one thing after the other.
        Some(_) => "waiting".into(),
        None => "delay".into(),
    }
}
