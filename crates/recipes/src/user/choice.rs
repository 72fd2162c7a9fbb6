//! The options of a user's recipe, and where they stand in its texts.

use super::table::{Fault, did_you_mean};
use crate::{Wishes, mounting};
use rubus_vocabulary::units::parse_size;

/// What values an option has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything in one line.
    Text,
    /// A whole number.
    Number,
    /// A size such as 200M; it stands in texts as a number of bytes.
    Size,
    /// An absolute path.
    Path,
    /// One of these.
    OneOf(Vec<String>),
}

impl Kind {
    pub(super) const NAMES: [&'static str; 4] = ["text", "number", "size", "path"];

    pub(super) fn parse(name: &str) -> Result<Kind, String> {
        match name {
            "text" => Ok(Kind::Text),
            "number" => Ok(Kind::Number),
            "size" => Ok(Kind::Size),
            "path" => Ok(Kind::Path),
            _ => Err(format!(
                "there is no kind of option '{name}'{}",
                did_you_mean(name, &Kind::NAMES)
            )),
        }
    }

    /// The value as it stands in texts.
    ///
    /// # Errors
    /// What would be right.
    pub(super) fn value(&self, text: &str) -> Result<String, String> {
        match self {
            Kind::Text => {
                if text.contains(char::is_control) {
                    Err("write one line without control characters".into())
                } else {
                    Ok(text.into())
                }
            }
            Kind::Number => match text.parse::<i64>() {
                Ok(number) => Ok(number.to_string()),
                Err(_) => Err("write a whole number".into()),
            },
            Kind::Size => parse_size(text).map(|bytes| bytes.to_string()),
            Kind::Path => mounting::place(text).map(|()| text.into()),
            Kind::OneOf(values) => {
                if values.iter().any(|value| value == text) {
                    Ok(text.into())
                } else {
                    Err(format!("write one of: {}", values.join(", ")))
                }
            }
        }
    }
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) what: String,
    pub(super) kind: Kind,
    /// Without one it has to be chosen.
    pub(super) default: Option<String>,
}

/// The chosen values, as they are written and as they stand in texts.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) written: Wishes,
    values: Wishes,
    /// Options that have to be chosen and were not, with what they are.
    pub(super) missing: Vec<(String, String)>,
}

impl Chosen {
    /// The wishes, checked, with the defaults.
    pub(super) fn of(recipe: &str, options: &[Choice], wishes: &Wishes) -> Result<Chosen, Fault> {
        let known: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
        let mut chosen = Chosen::default();
        if let Some(name) = wishes.keys().find(|name| !known.contains(&name.as_str())) {
            let hint =
                if known.is_empty() { "; it has none".into() } else { did_you_mean(name, &known) };
            return Err(Fault {
                line: 1,
                reason: format!("the recipe {recipe} has no option '{name}'{hint}"),
            });
        }
        for option in options {
            let text = wishes.get(&option.name).or(option.default.as_ref());
            let Some(text) = text else {
                chosen.missing.push((option.name.clone(), option.what.clone()));
                continue;
            };
            let value = option.kind.value(text).map_err(|reason| Fault {
                line: option.line,
                reason: format!("{}={text}: {reason}", option.name),
            })?;
            chosen.written.insert(option.name.clone(), text.clone());
            chosen.values.insert(option.name.clone(), value);
        }
        Ok(chosen)
    }

    /// A text with the values in the places of their names. What was not chosen stays as it is.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut out = String::new();
        for part in parts(text) {
            match part {
                Part::Plain(text) => out.push_str(text),
                Part::Name { name, whole } => {
                    out.push_str(self.values.get(name).map_or(whole, String::as_str));
                }
            }
        }
        out
    }
}

/// A part of a text.
pub(super) enum Part<'a> {
    Plain(&'a str),
    Name { name: &'a str, whole: &'a str },
}

/// A text in parts: what stands between `{{` and `}}` on one line is the name of an option.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let inside = &rest[start + 2..];
        let Some(end) = inside.find("}}").filter(|end| !inside[..*end].contains('\n')) else {
            parts.push(Part::Plain(&rest[..start + 2]));
            rest = inside;
            continue;
        };
        parts.push(Part::Plain(&rest[..start]));
        parts.push(Part::Name { name: inside[..end].trim(), whole: &rest[start..start + end + 4] });
        rest = &inside[end + 2..];
    }
    parts.push(Part::Plain(rest));
    parts
}
