//! What every screen of results is made of: headings, paragraphs of at most 80 columns, and the board in one line.

use rubus_vocabulary::result::Run;
use rubus_vocabulary::units::bytes_iec;

use crate::style::{Style, Tone};
use crate::text::{bind_units, clean, hang};

/// No line is wider.
pub const COLUMNS: usize = 80;

/// The parts that are not empty, with an empty line between them.
pub fn joined(parts: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = String::new();
    for lines in parts.into_iter().filter(|lines| !lines.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// A heading: the text in bold where the terminal can.
pub fn heading(text: &str, style: Style) -> String {
    style.paint(Tone::Strong, text)
}

/// A machine- or program-made text, cleaned, wrapped, its lines below one another.
pub fn paragraph(text: &str, first: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    hang(first, &bind_units(&clean(text)), COLUMNS)
}

/// "Raspberry Pi 3 Model B Rev 1.2, 4 × Cortex-A53, 905 MiB of memory, Linux 6.12".
pub fn board(run: &Run) -> String {
    let machine = &run.machine;
    let cores = machine.cpu.cores.get().map(|n| format!("{n} × ")).unwrap_or_default();
    let parts = [
        machine.board.model.text().map(str::to_string),
        machine.cpu.model.text().map(|model| format!("{cores}{model}")),
        machine.memory.total_bytes.get().map(|b| format!("{} memory", bytes_iec(b))),
        machine
            .system
            .kernel_release
            .text()
            .map(|release| format!("Linux {}", short_release(release))),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "a machine that says nothing of itself".into() } else { known.join(", ") }
}

/// "6.12.47" of "6.12.47+rpt-rpi-v8".
fn short_release(release: &str) -> &str {
    release.split(['+', '-']).next().unwrap_or(release)
}
