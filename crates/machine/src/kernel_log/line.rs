//! One line of a log: its message and its time, without what the program that printed it puts before.

/// Longest prefix of a line (date, host, level) that is looked through for the kernel's tag, in bytes.
const MAX_PREFIX: usize = 120;

/// A message of the kernel.
pub(super) struct Line<'a> {
    /// Whether it has a clock or the kernel's tag, as in a log.
    has_mark: bool,
    /// Seconds since the kernel started, if the line has them.
    pub seconds: Option<f64>,
    pub message: &'a str,
}

impl<'a> Line<'a> {
    /// The message of a line; none for those of other programs.
    pub fn of_kernel(line: &'a str) -> Option<Line<'a>> {
        let line = line.trim();
        if let Some(found) = of_kmsg(line) {
            return Some(found);
        }
        let (tagged, rest) = match after_tag(line) {
            Some(Tag::Kernel(rest)) => (true, rest),
            Some(Tag::Other) => return None,
            None => (false, line),
        };
        // `journalctl -o short-monotonic` has the time before the tag.
        let before = line[..line.len() - rest.len()].trim_start();
        let mut seconds =
            if tagged { bracket(before).and_then(|(inside, _)| stamp(inside)) } else { None };
        let mut message = without_level(rest).trim_start();
        // Clocks and callers (`[T12]`) stand in brackets; so does the name of a disk, after a word.
        while let Some((inside, after)) = bracket(message) {
            seconds = seconds.or(stamp(inside));
            message = after.trim_start();
        }
        let has_mark = tagged || message.len() < line.len();
        (!message.is_empty()).then_some(Line { has_mark, seconds, message })
    }

    /// Whether the line has what only a log has before its message.
    pub fn is_stamped(&self) -> bool {
        self.has_mark
    }
}

/// `3,1234,5678901,-;message` (Linux documentation, ABI/testing/dev-kmsg): the third number is in microseconds.
fn of_kmsg(line: &str) -> Option<Line<'_>> {
    let (head, message) = line.split_once(';')?;
    let mut fields = head.split(',');
    let _priority: u32 = fields.next()?.parse().ok()?;
    let _number: u64 = fields.next()?.parse().ok()?;
    let microseconds: u64 = fields.next()?.parse().ok()?;
    Some(Line { has_mark: true, seconds: Some(microseconds as f64 / 1e6), message })
}

enum Tag<'a> {
    Kernel(&'a str),
    Other,
}

/// What comes after the name of the program in a line of syslog or of the journal.
fn after_tag(line: &str) -> Option<Tag<'_>> {
    let mut from = 0;
    while let Some(colon) = line[from..].find(": ").map(|at| from + at) {
        if colon > MAX_PREFIX {
            return None;
        }
        let word = line[..colon].rsplit([' ', '\t']).next().unwrap_or_default();
        let name = word.split('[').next().unwrap_or_default();
        if name == "kernel" {
            return Some(Tag::Kernel(&line[colon + 2..]));
        }
        let starts_with_date = line.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let is_program = word.ends_with(']') && word.contains('[');
        if is_program && starts_with_date && line[..colon].split_whitespace().count() > 2 {
            return Some(Tag::Other);
        }
        from = colon + 2;
    }
    None
}

/// `<3>` of `dmesg --raw`, `kern  :err   : ` of `dmesg --decode`.
fn without_level(line: &str) -> &str {
    let line = line.trim_start();
    if let Some((level, rest)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && level.len() <= 3
        && level.bytes().all(|byte| byte.is_ascii_digit())
    {
        return rest;
    }
    if let Some(rest) = line.strip_prefix("kern").filter(|rest| rest.starts_with([' ', ':'])) {
        let mut parts = rest.splitn(3, ':');
        if let (Some(_), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
            return rest;
        }
    }
    line
}

/// What stands in the brackets that a text begins with, and what comes after them.
fn bracket(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.split_once(']')
}

/// Seconds since the start; a date or the distance to the line before is none.
fn stamp(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number && text.contains('.') { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_in_every_form_that_logs_have() {
        let forms = [
            ("[   12.500000] mmc0: x", Some(12.5)),
            ("[   12.500000][   T45] mmc0: x", Some(12.5)),
            ("<3>[   12.500000] mmc0: x", Some(12.5)),
            ("kern  :err   : [   12.500000] mmc0: x", Some(12.5)),
            ("3,871,12500000,-;mmc0: x", Some(12.5)),
            ("[Tue Aug  3 12:00:00 2021] mmc0: x", None),
            ("[Aug28 17:07] mmc0: x", None),
            ("[  +8.063930] mmc0: x", None),
            ("[   12.500000] pi kernel: mmc0: x", Some(12.5)),
            ("Feb 11 13:27:33 pi kernel: [   12.500000] mmc0: x", Some(12.5)),
            ("Feb 11 13:27:33 pi kernel: mmc0: x", None),
            ("2026-03-02T10:30:36.123456+00:00 pi kernel: [   12.500000] mmc0: x", Some(12.5)),
            ("2026-03-02 10:30:36 err kernel[]: [   12.500000] mmc0: x", Some(12.5)),
            ("Jun 21 17:28:01 box user.err kernel: [   12.500000] mmc0: x", Some(12.5)),
            ("mmc0: x", None),
        ];
        for (text, seconds) in forms {
            let line = Line::of_kernel(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((line.message, line.seconds), ("mmc0: x", seconds), "{text}");
        }
    }

    #[test]
    fn lines_of_other_programs_are_not_the_kernels() {
        for text in [
            "Feb 11 13:27:33 pi smartd[512]: Device: /dev/sda, I/O error, dev sda, sector 5",
            "2026-03-02T10:30:36+00:00 pi udisksd[400]: mmc0: error -110 whilst initialising SD card",
            "",
            "[   12.5] ",
        ] {
            assert!(Line::of_kernel(text).is_none(), "{text}");
        }
    }
}
