//! Keys, from what a terminal sends.

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// To end: q, Ctrl-C, Ctrl-D.
    Quit,
    /// To let the program stand still in the shell's background: Ctrl-Z.
    Suspend,
    /// To hold the screen, or go on.
    Pause,
    /// To hide programs, or show them.
    Programs,
    /// One sample on.
    Forward,
    /// One sample back.
    Back,
    /// To the first sample.
    Begin,
    /// To the last sample.
    End,
    /// Twice as fast.
    Faster,
    /// Half as fast.
    Slower,
    /// Redraw the screen: Ctrl-L.
    Redraw,
}

/// The keys in what was read at once; others are passed over. Arrows come as ESC [ C and ESC O C (ECMA-48, and a
/// terminal's application mode).
pub fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut found = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        bytes = rest;
        let key = match first {
            b'q' | b'Q' | 0x03 | 0x04 => Some(Key::Quit),
            0x1a => Some(Key::Suspend),
            b' ' => Some(Key::Pause),
            b'p' | b'P' => Some(Key::Programs),
            b'l' | b'.' => Some(Key::Forward),
            b'h' | b',' => Some(Key::Back),
            b'g' => Some(Key::Begin),
            b'G' => Some(Key::End),
            b'+' | b'=' => Some(Key::Faster),
            b'-' => Some(Key::Slower),
            0x0c => Some(Key::Redraw),
            0x1b => {
                let (key, rest) = sequence(bytes);
                bytes = rest;
                key
            }
            _ => None,
        };
        found.extend(key);
    }
    found
}

/// What follows an ESC. Alone it means nothing: it cannot be told from one whose rest is still to come.
fn sequence(bytes: &[u8]) -> (Option<Key>, &[u8]) {
    let Some((b'[' | b'O', rest)) = bytes.split_first() else {
        return (None, bytes);
    };
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (None, &[]);
    };
    let key = match (&rest[..end], rest[end]) {
        (_, b'C') => Some(Key::Forward),
        (_, b'D') => Some(Key::Back),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Begin),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        _ => None,
    };
    (key, &rest[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_arrows_are_known_in_both_of_a_terminal_s_modes() {
        assert_eq!(keys(b"q"), [Key::Quit]);
        assert_eq!(keys(b"\x03"), [Key::Quit]);
        assert_eq!(
            keys(b"\x1b[C\x1bOD\x1b[1~ "),
            [Key::Forward, Key::Back, Key::Begin, Key::Pause]
        );
        assert_eq!(keys(b"\x1b[1;5C+-"), [Key::Forward, Key::Faster, Key::Slower]);
    }

    #[test]
    fn what_is_no_key_is_passed_over() {
        assert_eq!(keys(b"\x1b"), []);
        assert_eq!(keys(b"\x1b[A\x1b[200~xyz\xff\x1b["), []);
    }
}
