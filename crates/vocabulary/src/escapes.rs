//! Bytes in an address (URI), of which some are written as `%` and two hexadecimal digits (RFC 3986, section 2.1).

use std::fmt::Write;

/// Escapes everything but the characters that need it nowhere (section 2.3), and those in `also`.
pub fn escaped(bytes: &[u8], also: &str) -> String {
    let mut text = String::new();
    for &byte in bytes {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-._~".contains(c) || also.contains(c) {
            text.push(c);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}
