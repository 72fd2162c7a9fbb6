//! A log as people paste it: what mail, Markdown, terminals and tools put around its lines is removed, and lines that were broken
//! or joined are put right.

use rubus_vocabulary::utf_16;

/// The text of a file: UTF-8, or UTF-16.
pub fn text(bytes: &[u8]) -> String {
    utf_16::decoded(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}

/// The lines of a log without what does not belong to them.
pub(super) fn lines(log: &str) -> Vec<String> {
    let clean = without_markup(log);
    clean.lines().flat_map(split_joined).filter_map(|line| without_frame(line.trim())).collect()
}

/// Without colours, marks, zero bytes, the spaces of pages and the entities of HTML.
fn without_markup(log: &str) -> String {
    let mut clean = String::with_capacity(log.len());
    let mut rest = log;
    while let Some(at) = rest.find(['\u{1b}', '\u{feff}', '\u{a0}', '\0', '&', '\\', '<']) {
        clean.push_str(&rest[..at]);
        let here = &rest[at..];
        let (text, length) = mark(here);
        clean.push_str(text);
        rest = &here[length..];
    }
    clean.push_str(rest);
    clean
}

/// What a mark at the start of a text stands for, and its length in bytes.
fn mark(text: &str) -> (&str, usize) {
    const MARKS: &[(&str, &str)] = &[
        ("\u{feff}", ""),
        ("\u{a0}", " "),
        ("\0", ""),
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
        ("\\[", "["),
        ("\\]", "]"),
        ("\\_", "_"),
        ("<br>", "\n"),
        ("<br/>", "\n"),
        ("<br />", "\n"),
    ];
    if let Some(rest) = text.strip_prefix("\u{1b}[") {
        let end = rest.find(|letter: char| letter.is_ascii_alphabetic());
        return ("", end.map_or(2, |end| end + 3));
    }
    if let Some((mark, meaning)) = MARKS.iter().find(|(mark, _)| text.starts_with(mark)) {
        return (meaning, mark.len());
    }
    let length = text.chars().next().map_or(0, char::len_utf8);
    (if text.starts_with('\u{1b}') { "" } else { &text[..length] }, length)
}

/// The messages that a page without line breaks ran together.
fn split_joined(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut from) = (0, 0);
    let mut is_first = true;
    while let Some((at, length)) = stamp_in(&line[from..], 6) {
        if !is_first && from + at > start {
            found.push(&line[start..from + at]);
            start = from + at;
        }
        is_first = false;
        from += at + length;
    }
    found.push(&line[start..]);
    found
}

/// Where the kernel's clock stands in a text, and its length: `[ 5432.123456]`, `[ 5432.123456@2]`.
pub(super) fn stamp_in(text: &str, min_decimals: usize) -> Option<(usize, usize)> {
    text.match_indices('[').find_map(|(at, _)| {
        let inside = text[at + 1..].split(']').next()?;
        let closes = text[at + 1..].len() > inside.len();
        let clock = inside.trim().split('@').next()?;
        let (seconds, decimals) = clock.split_once('.')?;
        let is_clock = is_digits(seconds) && is_digits(decimals) && decimals.len() >= min_decimals;
        (closes && is_clock).then_some((at, inside.len() + 2))
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A line without the quotes, list marks and numbers before it; none for a field of a record that is not its message.
fn without_frame(line: &str) -> Option<String> {
    if line.starts_with('{') || line.starts_with("\"msg\"") || line.starts_with("\"MESSAGE\"") {
        if let Some(found) = of_json(line) {
            return found;
        }
    }
    let mut line = line;
    loop {
        let bare = line.trim_start_matches(['>', '|', '*', '`', '"', '\u{2022}', '~', ' ', '\t']);
        let bare = bare.strip_prefix("- ").unwrap_or(bare);
        let bare = without_line_number(bare);
        if bare.len() == line.len() {
            break;
        }
        line = bare;
    }
    if let Some(message) = line.strip_prefix("MESSAGE=") {
        return Some(message.to_string());
    }
    (!is_field(line)).then(|| line.trim_end_matches(['`', '"', '*']).trim_end().to_string())
}

/// A line of `journalctl -o json`, `dmesg --json`, or what a container printed as Docker (`log`) or Loki (`line`) keeps it. The latter
/// is the kernel's where it has the kernel's clock. The inner one is none for a record of another program.
fn of_json(line: &str) -> Option<Option<String>> {
    let line = line.trim_end_matches(',');
    let object = if line.starts_with('{') { line.to_string() } else { format!("{{{line}}}") };
    let record: serde_json::Value = serde_json::from_str(&object).ok()?;
    let text = |key: &str| record.get(key).and_then(serde_json::Value::as_str);
    let of_container = || text("log").or(text("line")).filter(|log| stamp_in(log, 1).is_some());
    let message = text("MESSAGE").or_else(|| text("msg")).or_else(of_container);
    let message = message.map(|message| message.trim_end().to_string());
    let message = message.or_else(|| record.get("MESSAGE").and_then(in_bytes));
    let is_kernels =
        text("_TRANSPORT").or(text("SYSLOG_IDENTIFIER")).is_none_or(|from| from == "kernel");
    let Some(message) = message.filter(|_| is_kernels) else {
        return Some(None);
    };
    let seconds = record.get("time").and_then(serde_json::Value::as_f64);
    Some(Some(seconds.map_or_else(|| message.clone(), |at| format!("[{at:.6}] {message}"))))
}

/// A text with bytes that no terminal shows is a list of its bytes in the journal's JSON (systemd's `JOURNAL_EXPORT_FORMATS`).
fn in_bytes(value: &serde_json::Value) -> Option<String> {
    let bytes = value.as_array()?.iter().map(|byte| u8::try_from(byte.as_u64()?).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_string())
}

/// `120:` of `grep -n`, `120<tab>` of `cat -n`, `/var/log/kern.log:` and `kern.log.1-` of `grep` over files.
fn without_line_number(line: &str) -> &str {
    if let Some((number, rest)) = line.split_once(['\t', ':'])
        && is_digits(number)
        && !rest.starts_with(|letter: char| letter.is_ascii_digit())
        && !rest.is_empty()
    {
        return rest.trim_start();
    }
    if let Some((file, rest)) = line.split_once(':')
        && !file.contains(' ')
        && (file.contains("log") || file.contains("dmesg") || file.ends_with(".txt"))
        && (file.contains('/') || file.contains('.'))
    {
        return rest;
    }
    line
}

/// A field of a record of `journalctl -o export` and `-o verbose`: `_TRANSPORT=kernel`.
fn is_field(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| {
        name.len() > 2
            && name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    })
}
