//! What the help of a command says beyond its options, and what the command prints as JSON. Each room has the pages and
//! documents of its own commands.

/// The page of a command: its exit statuses and its examples.
#[derive(Debug)]
pub struct Page {
    /// Name of the manual page.
    pub name: &'static str,
    /// Exit statuses with their meaning.
    pub statuses: Statuses,
    /// Command lines with what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

/// Exit statuses with their meaning.
pub type Statuses = &'static [(u8, &'static str)];

/// The status of a mistake.
pub const MISTAKE: (u8, &str) = (2, "wrong arguments, or the machine did not allow it");
/// The status of what the guard refuses.
pub const GUARDED: (u8, &str) = (3, "refused, because data could be lost");
/// The statuses of a command whose answer is never no.
pub const PLAIN: Statuses = &[(0, "done"), MISTAKE];

/// A JSON document that a command prints.
#[cfg(feature = "schema")]
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// Name of its schema in `docs/reference/schemas`.
    pub name: &'static str,
    /// The commands that print it, separated by commas.
    pub printed_by: &'static str,
    /// Makes its schema.
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

#[cfg(feature = "schema")]
impl Document {
    /// A document that is a value of this type.
    pub fn of<T: schemars::JsonSchema>(name: &'static str, printed_by: &'static str) -> Document {
        Document { name, printed_by, schema: |generator| generator.subschema_for::<T>() }
    }
}
