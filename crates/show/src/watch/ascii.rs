//! What a terminal that knows no UTF-8 shows instead.

use ratatui::buffer::Buffer;

/// Replaces every cell that is not ASCII.
pub(super) fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let symbol = instead(cell.symbol());
            cell.set_symbol(symbol);
        }
    }
}

fn instead(symbol: &str) -> &'static str {
    match symbol {
        "█" | "▉" | "▊" => "#",
        "▋" | "▌" | "▍" | "▆" | "▇" => "=",
        "▎" | "▏" | "▃" | "▄" | "▅" => "-",
        "▁" | "▂" => "_",
        "·" => "-",
        "×" => "x",
        "µ" => "u",
        "°" => " ",
        "…" => "~",
        "←" => "<",
        "→" => ">",
        "–" | "−" => "-",
        "\u{a0}" => " ",
        _ => "?",
    }
}
