//! Messages to the user. The standard library's macros panic where standard error is closed or full, which would end a change in
//! its middle; here such a message is lost and nothing else.

use std::io::Write;

/// Writes a text to standard error as it is. What cannot be written is lost.
pub fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a line to standard error. What cannot be written is lost.
pub fn write_line(text: &str) {
    write(&format!("{text}\n"));
}
