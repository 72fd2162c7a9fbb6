//! A measurement in parts: each fills its place in the figures, or is left out with the reason.

use rubus_vocabulary::left_out::LeftOut;

/// What a part gave; one that failed is left out with the reason.
///
/// # Errors
/// Why it failed, where it alone was asked for.
pub fn taken<T, P>(
    gave: anyhow::Result<T>,
    part: P,
    is_alone: bool,
    left_out: &mut Vec<LeftOut<P>>,
) -> anyhow::Result<Option<T>> {
    match gave {
        Ok(figures) => Ok(Some(figures)),
        Err(error) if is_alone => Err(error),
        Err(error) => {
            let what = format!("{error:#}");
            left_out.push(LeftOut { part, what });
            Ok(None)
        }
    }
}
