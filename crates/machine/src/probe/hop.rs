//! What all kinds of hops have in common.

use crate::ceiling::Ceiling;
use rubus_vocabulary::fact::Fact;
use rubus_vocabulary::machine::{Hop, HopKind};

/// A hop of which no rate is known, with the reason.
pub(crate) fn without_rate(kind: HopKind, id: &str, name: &str, link: &str, why: &str) -> Hop {
    let source = format!("path of {id}");
    Hop {
        kind,
        id: id.to_string(),
        name: name.to_string(),
        chip: None,
        line_bits_per_second: Fact::unknown(why, &source),
        max_line_bits_per_second: Fact::unknown(why, &source),
        link: link.to_string(),
        driver: Fact::unknown("no driver is named", &source),
        usable_bytes_per_second: Fact::unknown(why, &source),
        speaks_bulk_only: None,
    }
}

/// What a hop of this rate carries, by a rule; unknown where the rate or the rule is.
pub(crate) fn usable<T: Copy>(
    rate: &Fact<T>,
    rule: impl FnOnce(T) -> Option<Ceiling>,
) -> Fact<f64> {
    match rate {
        Fact::Known { value, source } => match rule(*value) {
            Some(ceiling) if ceiling.bytes_per_second > 0.0 => {
                Fact::known(ceiling.bytes_per_second, ceiling.why)
            }
            Some(_) | None => Fact::unknown("there is no rule for this rate", source),
        },
        Fact::Unknown { unknown, source } => Fact::unknown(unknown, source),
    }
}
