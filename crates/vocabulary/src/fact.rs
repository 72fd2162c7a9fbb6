//! A fact is a value and where it was read, or the reason why it could not be read.

use serde::{Deserialize, Serialize};

/// One thing that is known, or is known to be unknown.
///
/// In JSON a known fact is `{"value": …, "source": "/sys/…"}` and an unknown one is
/// `{"unknown": "reason", "source": "/sys/…"}`. A value that could not be read is never guessed
/// and never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Fact_{T}"))]
#[serde(untagged)]
pub enum Fact<T> {
    /// The value was read.
    Known {
        /// What was read, converted to the unit in the field's name.
        value: T,
        /// The file, program or call that gave it.
        source: String,
    },
    /// The value could not be read.
    Unknown {
        /// Why, in words that a person can act on ("permission denied; try as root").
        unknown: String,
        /// Where it was looked for.
        source: String,
    },
}

impl<T> Fact<T> {
    /// A value with the place where it was read.
    pub fn known(value: T, source: impl Into<String>) -> Self {
        Fact::Known { value, source: source.into() }
    }

    /// A missing value with the reason and the place where it was looked for.
    pub fn unknown(reason: impl Into<String>, source: impl Into<String>) -> Self {
        Fact::Unknown { unknown: reason.into(), source: source.into() }
    }

    /// The value, if it is known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Fact::Known { value, .. } => Some(value),
            Fact::Unknown { .. } => None,
        }
    }

    /// Where it was read or looked for.
    pub fn source(&self) -> &str {
        match self {
            Fact::Known { source, .. } | Fact::Unknown { source, .. } => source,
        }
    }

    /// Why it is not known, if it is not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Fact::Known { .. } => None,
            Fact::Unknown { unknown, .. } => Some(unknown),
        }
    }

    /// The same fact with its value converted; the source stays.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known { value, source } => Fact::Known { value: f(value), source },
            Fact::Unknown { unknown, source } => Fact::Unknown { unknown, source },
        }
    }

    /// The same fact with its value parsed; a value that does not parse becomes unknown with the
    /// parser's reason.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Result<U, String>) -> Fact<U> {
        match self {
            Fact::Known { value, source } => match f(value) {
                Ok(value) => Fact::Known { value, source },
                Err(unknown) => Fact::Unknown { unknown, source },
            },
            Fact::Unknown { unknown, source } => Fact::Unknown { unknown, source },
        }
    }
}

impl<T: Copy> Fact<T> {
    /// A copy of the value, if it is known.
    pub fn get(&self) -> Option<T> {
        self.value().copied()
    }
}

impl Fact<String> {
    /// The text, if it is known.
    pub fn text(&self) -> Option<&str> {
        self.value().map(String::as_str)
    }
}

/// Reads a rate: what is known of it is above 0 and finite.
///
/// # Errors
/// If it is no fact, or a known one is zero, negative or without an end.
pub(crate) fn positive<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Fact<f64>, D::Error> {
    let fact = Fact::<f64>::deserialize(d)?;
    match fact.get() {
        Some(rate) if !(rate > 0.0 && rate.is_finite()) => {
            Err(serde::de::Error::custom(format!("a rate of {rate} carries nothing")))
        }
        Some(_) | None => Ok(fact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Carries {
        #[serde(deserialize_with = "positive")]
        rate: Fact<f64>,
    }

    #[test]
    fn a_rate_that_carries_nothing_is_refused() {
        let read = |rate: &str| serde_json::from_str::<Carries>(&format!("{{\"rate\": {rate}}}"));
        assert_eq!(read(r#"{"value": 4.5e7, "source": "a"}"#).unwrap().rate.get(), Some(45e6));
        assert_eq!(read(r#"{"unknown": "no file", "source": "a"}"#).unwrap().rate.get(), None);
        for value in ["0", "-0.0", "-1"] {
            let refused = read(&format!("{{\"value\": {value}, \"source\": \"a\"}}"));
            assert!(refused.unwrap_err().to_string().contains("carries nothing"), "{value}");
        }
    }
}
