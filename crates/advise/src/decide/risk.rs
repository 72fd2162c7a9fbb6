//! What may go wrong with a place or a set-up, and how bad it is.

use crate::device_classes::{DeviceClass, Severity};

/// What may go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Risk {
    pub severity: Severity,
    /// Whether it is that the change loses what is on the disk now.
    pub is_loss: bool,
    /// What may go wrong, as a sentence.
    pub words: String,
}

impl Risk {
    /// What runs on it stops, or data is lost.
    pub fn failure(words: &str) -> Risk {
        Risk { severity: Severity::Failure, is_loss: false, words: words.into() }
    }

    /// It gets slower, wears out, or needs a setting.
    pub fn degradation(words: &str) -> Risk {
        Risk { severity: Severity::Degradation, ..Risk::failure(words) }
    }

    /// It takes a step of its own before.
    pub fn effort(words: &str) -> Risk {
        Risk { severity: Severity::Effort, ..Risk::failure(words) }
    }

    /// What is on the disk has to be copied elsewhere before.
    pub fn loss(words: String) -> Risk {
        Risk { severity: Severity::Effort, is_loss: true, words }
    }

    /// Of a kind of device.
    pub fn of_class(class: &DeviceClass) -> Option<Risk> {
        class.risk.map(|risk| Risk { severity: risk.severity, ..Risk::failure(risk.words) })
    }
}

pub(super) fn worst(risks: &[Risk]) -> Option<Severity> {
    risks.iter().map(|risk| risk.severity).max()
}

pub(super) fn sentences(risks: &[Risk]) -> Vec<String> {
    risks.iter().map(|risk| risk.words.clone()).collect()
}
