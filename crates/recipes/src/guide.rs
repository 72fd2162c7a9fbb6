//! What a recipe says about itself before anything is planned.

/// What a reader wants to know besides the title and the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guide {
    /// What it changes on the machine, as a sentence.
    pub changes: &'static str,
    /// What it needs, as a sentence.
    pub needs: &'static str,
    /// A command that shows its plan, as it can be typed.
    pub example: &'static str,
}
