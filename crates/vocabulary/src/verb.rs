//! What the help of a command says beyond its options. Each room has the pages of its own commands.

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
