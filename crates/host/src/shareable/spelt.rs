//! Secrets as programs and people write them otherwise, for tests that plant them.

use super::planted::{base64, values};

/// A secret as programs and people write it otherwise.
pub(crate) fn otherwise(secret: &str) -> Vec<String> {
    let each = |write: &dyn Fn(char) -> String| secret.chars().map(write).collect::<String>();
    let bytes = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
    let is_mark = |c: char| !c.is_alphanumeric();
    let between = |mark: &str| secret.chars().map(String::from).collect::<Vec<String>>().join(mark);
    let separated = |mark: &str| secret.split(is_mark).collect::<Vec<&str>>().join(mark);
    let marks = |write: &dyn Fn(char) -> String| {
        each(&|c| if is_mark(c) { write(c) } else { c.to_string() })
    };
    let half = secret.char_indices().nth(secret.chars().count() / 2).map_or(0, |(at, _)| at);
    let (start, end) = secret.split_at(half);
    let hex = bytes(&|b| format!("{b:02x}"));
    let spaced_hex = bytes(&|b| format!("{b:02x} "));
    let mut all = vec![
        secret.to_uppercase(),
        secret.to_lowercase(),
        secret.chars().rev().collect(),
        hex.to_uppercase(),
        format!("0x{hex}"),
        hex,
        spaced_hex.trim_end().to_string(),
        bytes(&|b| format!("0x{b:02X} ")).trim_end().to_string(),
        bytes(&|b| format!("x{b:02x} ")).trim_end().to_string(),
        bytes(&|b| format!("{b} ")).trim_end().to_string(),
        bytes(&|b| format!("{b},")).trim_end_matches(',').to_string(),
        bytes(&|b| format!("{b:03o} ")).trim_end().to_string(),
        base64(secret),
        bytes(&|b| format!("%{b:02X}")),
        bytes(&|b| format!("%25{b:02X}")),
        bytes(&|b| format!("\\x{b:02x}")),
        bytes(&|b| format!("\\{b:03o}")),
        each(&|c| format!("\\u{:04x}", u32::from(c))),
        each(&|c| format!("U+{:04X}", u32::from(c))),
        each(&|c| format!("&#{};", u32::from(c))),
        each(&|c| format!("&#x{:x};", u32::from(c))),
        marks(&|c| format!("&#{};", u32::from(c))),
        marks(&|c| format!("%{:02X}", u32::from(c))),
        marks(&|c| format!("\\x{:02x}", u32::from(c))),
        marks(&|c| format!("[{c}]")),
        marks(&|c| format!("{c}{c}")),
        between(" "),
        between(" . "),
        between("-"),
        between("_"),
        between("\u{200b}"),
        between("\u{ad}"),
        format!("{start}\"{end}\""),
        format!("{start}'{end}'"),
        format!("{start}\\{end}"),
        format!("{start}\u{200d}{end}"),
        secret.chars().filter(|c| !is_mark(*c)).collect(),
    ];
    all.extend(["_", " ", "-", ".", ",", ", ", "|", " dot ", "/", ":"].map(separated));
    if let Ok(address) = secret.parse::<std::net::Ipv4Addr>() {
        let number = u32::from(address);
        let quads = |write: &dyn Fn(u8) -> String| address.octets().map(write).join(".");
        all.extend([
            number.to_string(),
            format!("{number:#x}"),
            format!("{number:08X}"),
            quads(&|octet| format!("0{octet:o}")),
            quads(&|octet| format!("0{octet:o}")).replace('.', " "),
            quads(&|octet| format!("{octet:#x}")),
            quads(&|octet| format!("{octet:#x}")).replace('.', " "),
            quads(&|octet| format!("{octet:02x}")).replace('.', " "),
            quads(&|octet| format!("{octet:02x}")).replace('.', "-"),
        ]);
    }
    all
}

/// Every `step`th spelling of all secrets, since there are thousands. A step that is prime meets each way to write.
pub(crate) fn spelt_otherwise(step: usize) -> Vec<String> {
    values().into_iter().flat_map(otherwise).step_by(step).collect()
}

/// What of a text is left of a spelling: six letters and digits of it in a row, whatever stands between them.
pub(crate) fn left_of(spelling: &str, text: &str) -> Option<String> {
    const CHARS: usize = 6;
    // How keys begin is no secret.
    const PUBLIC: [&str; 3] = ["sklive", "sha256", "inaddr"];
    let bare = |text: &str| -> Vec<char> {
        let is_kept = |c: &char| c.is_alphanumeric() || *c == '…';
        text.chars().filter(is_kept).flat_map(char::to_lowercase).collect()
    };
    let (spelling, text) = (bare(spelling), bare(text));
    let parts: std::collections::HashSet<&[char]> = spelling.windows(CHARS).collect();
    // Zeros are in every file.
    let is_one = |part: &&[char]| {
        part.iter().filter(|c| **c == '0').count() + 1 >= CHARS
            || part.iter().all(|c| c == &part[0])
    };
    let left = text.windows(CHARS).filter(|part| parts.contains(part) && !is_one(part));
    let mut left = left.map(|part| part.iter().collect::<String>());
    left.find(|part| !PUBLIC.contains(&part.as_str()))
}
