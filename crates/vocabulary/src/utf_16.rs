//! Text in UTF-16, as PowerShell's `>` writes it.

/// The first bytes of a text without a mark that decide whether it is in UTF-16.
const PROBED_BYTES: usize = 256;

/// The text in bytes that are UTF-16, in either order, without its mark; none where they are not. Halves of pairs become the
/// replacement character.
pub fn decoded(bytes: &[u8]) -> Option<String> {
    let pair: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => order_without_mark(bytes)?,
    };
    let (pairs, _) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|bytes| pair(*bytes));
    let text: String =
        char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some(text.trim_start_matches('\u{feff}').to_string())
}

/// The order of bytes of a text of mostly ASCII letters: every other byte is zero.
fn order_without_mark(bytes: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    let (pairs, _) = bytes[..bytes.len().min(PROBED_BYTES)].as_chunks::<2>();
    let count = |is_it: fn(&[u8; 2]) -> bool| pairs.iter().filter(|pair| is_it(pair)).count();
    let little = count(|pair| pair[0] != 0 && pair[1] == 0);
    let big = count(|pair| pair[0] == 0 && pair[1] != 0);
    match pairs.len() {
        0 | 1 => None,
        all if little * 10 >= all * 9 => Some(u16::from_le_bytes),
        all if big * 10 >= all * 9 => Some(u16::from_be_bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn both_orders_are_read_with_a_mark_and_without() {
        for text in ["mmc0: error", "\u{feff}\u{e4}\u{1f600}"] {
            for order in [u16::to_le_bytes, u16::to_be_bytes] {
                let expected = text.trim_start_matches('\u{feff}');
                assert_eq!(decoded(&bytes(text, order)).as_deref(), Some(expected));
            }
        }
    }

    #[test]
    fn other_bytes_are_not_taken_for_it() {
        for other in [&b""[..], b"x", b"plain text", b"caf\xe9", "\u{feff}text".as_bytes()] {
            assert_eq!(decoded(other), None);
        }
    }
}
