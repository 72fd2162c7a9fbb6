//! Colour on a terminal, or none. Colour never carries a meaning alone: the words say the same.

/// How to draw for the reader's terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colour and weight (ANSI escape sequences).
    pub colour: bool,
    /// Whether drawings are made of ASCII letters alone, for terminals that know no UTF-8.
    pub ascii: bool,
    /// Columns that texts may take: 80, or those of a narrower terminal.
    pub columns: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style::PLAIN
    }
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text without emphasis.
    #[default]
    Plain,
    /// What the eye should find first.
    Strong,
    /// What may be skipped.
    Faint,
    /// A good answer.
    Good,
    /// An answer with a but.
    Warn,
    /// A bad answer.
    Bad,
}

impl Style {
    /// No colour: for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: false, ascii: false, columns: 80 };

    /// The text with its tone, where the style has colour.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.colour || text.is_empty() => return text.to_string(),
            Tone::Plain => return text.to_string(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "1;31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_leaves_no_trace_without_colour() {
        assert_eq!(Style::PLAIN.paint(Tone::Bad, "poor"), "poor");
        let colour = Style { colour: true, ..Style::PLAIN };
        assert_eq!(colour.paint(Tone::Bad, "poor"), "\x1b[1;31mpoor\x1b[0m");
        assert_eq!(colour.paint(Tone::Plain, "x"), "x");
    }
}
