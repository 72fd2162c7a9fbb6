//! Letters that are not seen but change what is read around them.

/// Marks that turn the writing direction (Unicode, annex 9, the property `Bidi_Control`): words behind one are shown in another
/// order than they are kept.
pub fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Marks that take no room and belong to no letter beside them (general categories Cf, Zl and Zp). Two names that differ in one
/// look the same, and tags can hold a whole text. Joiners of letters (U+200C, U+200D) are part of scripts and pictures.
pub fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2028}'..='\u{2029}' | '\u{2060}'..='\u{2064}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a letter is obeyed or hidden where it should be shown: a control character, or one of those above.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || turns_direction(c) || is_unseen(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_told_from_what_is() {
        for hidden in "\n\u{7}\u{7f}\u{9b}\u{ad}\u{61c}\u{200b}\u{200e}\u{2028}\u{202e}\u{2060}\u{2067}\u{206f}\u{feff}\u{e0041}".chars() {
            assert!(is_hidden(hidden), "{hidden:?}");
        }
        for seen in "aß \u{a0}µ漢e\u{301}…\u{200c}\u{200d}\u{fe0f}😀".chars() {
            assert!(!is_hidden(seen), "{seen:?}");
        }
    }
}
