//! One line of a log: its message and its time, without what the program that printed it puts before.

use std::borrow::Cow;

use super::paste::stamp_in;

/// Longest prefix of a line (date, host, level) that is looked through for the kernel's tag, in bytes.
const MAX_PREFIX: usize = 120;

/// A message of the kernel.
pub(super) struct Line<'a> {
    /// Whether it has a clock or the kernel's tag, as in a log.
    has_mark: bool,
    /// Seconds since the kernel started, if the line has them.
    pub seconds: Option<f64>,
    /// The time of day in seconds, and what stands before it (the date).
    clock: Option<(&'a str, u32)>,
    pub message: Cow<'a, str>,
}

impl<'a> Line<'a> {
    /// The message of a line; none for those of other programs.
    pub fn of_kernel(line: &'a str) -> Option<Line<'a>> {
        let line = line.trim();
        if let Some(found) = of_kmsg(line) {
            return Some(found);
        }
        let (tagged, rest) = match after_rfc5424(line).or_else(|| after_tag(line)) {
            Some(Tag::Kernel(rest)) => (true, rest),
            Some(Tag::Other) => return None,
            None => (false, line),
        };
        let (is_logcat, rest) = match after_logcat(rest) {
            Some(Tag::Kernel(rest)) => (true, rest),
            Some(Tag::Other) => return None,
            None => (false, rest),
        };
        // `journalctl -o short-monotonic` has the time before the tag.
        let before = line[..line.len() - rest.len()].trim_start();
        let mut seconds =
            if tagged { bracket(before).and_then(|(inside, _)| stamp(inside)) } else { None };
        let rest = from_stamp(without_level(rest).trim_start());
        let (bare, message) = without_bare_clock(rest);
        seconds = seconds.or(bare);
        let (bracketed, message) = without_brackets(message);
        seconds = seconds.or(bracketed);
        let message = without_caller(message);
        let has_mark = tagged || message.len() < line.len();
        let clock = clock(&line[..line.len() - message.len()]);
        let message = if is_logcat { without_padding(message) } else { message.into() };
        (!message.is_empty()).then_some(Line { has_mark, seconds, clock, message })
    }

    /// How long after this line another was logged, in seconds; none where one of them has no time.
    pub fn gap_s(&self, later: &Line<'_>) -> Option<f64> {
        if let (Some(from), Some(to)) = (self.seconds, later.seconds) {
            return Some((to - from).abs());
        }
        let ((day, from), (later_day, to)) = (self.clock?, later.clock?);
        let is_same_day = day == later_day;
        Some(if is_same_day { f64::from(from.abs_diff(to)) } else { f64::INFINITY })
    }

    /// Whether the line has what only a log has before its message.
    pub fn is_stamped(&self) -> bool {
        self.has_mark
    }
}

/// The time of day in the head of a line, and what stands before it.
fn clock(head: &str) -> Option<(&str, u32)> {
    const FORM: &[u8] = b"00:00:00";
    let is_clock = |text: &[u8]| {
        text.iter().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        })
    };
    let at = head.as_bytes().windows(FORM.len()).position(is_clock)?;
    let mut parts = head[at..at + FORM.len()].split(':').map(str::parse);
    let mut next = || parts.next()?.ok();
    let (hours, minutes, seconds): (u32, u32, u32) = (next()?, next()?, next()?);
    Some((&head[..at], 3600 * hours + 60 * minutes + seconds))
}

/// A text from the kernel's clock on, where a terminal, a prompt or a tool put something before it.
fn from_stamp(text: &str) -> &str {
    let clock = stamp_in(text, 4).map(|(at, _)| at);
    let date =
        text.match_indices('[').map(|(at, _)| at).find(|at| starts_with_iso(&text[at + 1..]));
    let starts: Vec<usize> = [clock, date].into_iter().flatten().collect();
    match starts.into_iter().min() {
        Some(at) if at <= MAX_PREFIX => &text[at..],
        Some(_) | None => text,
    }
}

/// `2024-05-01T12:00:00`.
fn starts_with_iso(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    text.len() >= FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

/// A clock without brackets: `5432.123456 `, the rest `123456] ` of one that was cut, `2024-05-01T12:00:00,123456+02:00 `.
fn without_bare_clock(text: &str) -> (Option<f64>, &str) {
    let Some((word, rest)) = text.split_once([' ', '\t']) else {
        return (None, text);
    };
    if starts_with_iso(word) && word.contains([',', '.']) {
        return (None, rest.trim_start());
    }
    let number = word.strip_suffix(']').unwrap_or(word);
    let decimals = number.split_once('.').map(|(_, decimals)| decimals.len());
    let is_cut = number.len() < word.len() && number.bytes().all(|byte| byte.is_ascii_digit());
    match stamp(number) {
        Some(seconds) if decimals.is_some_and(|decimals| decimals >= 4) => {
            (Some(seconds), rest.trim_start())
        }
        None if is_cut => (None, rest.trim_start()),
        Some(_) | None => (None, text),
    }
}

/// A message without the clocks and callers (`[T12]`) that stand in brackets before it; so does the name of a disk, after a word.
fn without_brackets(text: &str) -> (Option<f64>, &str) {
    let (mut seconds, mut message) = (None, text);
    while let Some((inside, after)) = bracket(message) {
        seconds = seconds.or(stamp(inside));
        message = after.trim_start_matches(['*', '`', ':', ' ', '\t']);
    }
    (seconds, message)
}

/// A message without the processor that printed it: `c2 `, `C2 `, `(0)`, and `-(0)` or `.(0)` where its interrupts are off.
fn without_caller(message: &str) -> &str {
    let is_number = |text: &str| {
        (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let marked = message.strip_prefix(['-', '.']).unwrap_or(message);
    if let Some((number, rest)) = marked.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        && is_number(number)
    {
        return without_brackets(rest.trim_start()).1;
    }
    match message.split_once(' ') {
        Some((word, rest)) if word.strip_prefix(['c', 'C']).is_some_and(is_number) => {
            rest.trim_start()
        }
        Some(_) | None => message,
    }
}

/// `<3>1 2024-05-01T12:00:00Z pi kernel - - - message` (RFC 5424).
fn after_rfc5424(line: &str) -> Option<Tag<'_>> {
    let (level, rest) = line.strip_prefix('<')?.split_once(">1 ")?;
    let _: u32 = level.parse().ok()?;
    let mut fields = rest.splitn(7, ' ');
    let program = fields.nth(2)?;
    let message = fields.nth(3)?;
    Some(if program == "kernel" { Tag::Kernel(message) } else { Tag::Other })
}

/// `05-01 12:00:00.123     0     0 E mmcblk0 : message` (Android): the kernel is process and thread 0, and what it says before a
/// colon is taken for a program's name. With `-v uid` a user stands before the numbers.
fn after_logcat(line: &str) -> Option<Tag<'_>> {
    let mut rest = line;
    let mut next = || {
        let text = rest.trim_start();
        let (word, after) = text.split_at(text.find(char::is_whitespace)?);
        rest = after;
        Some(word)
    };
    let (date, clock) = (next()?, next()?);
    // With `-v year` the year stands before month and day.
    let is_date =
        date.split('-').rev().map(str::len).take(2).eq([2, 2]) && matches!(date.len(), 5 | 10);
    let is_clock = clock.len() >= 12 && clock.matches(':').count() == 2;
    if !is_date || !is_clock {
        return None;
    }
    let first = next()?;
    let process = first.parse::<u32>().or_else(|_| next().unwrap_or_default().parse()).ok()?;
    let thread: u32 = next()?.parse().ok()?;
    let level = next()?;
    if level.len() != 1 || !level.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return None;
    }
    let named = rest.trim_start();
    Some(match named.strip_prefix(": ") {
        Some(message) => Tag::Kernel(message),
        None if process == 0 && thread == 0 => Tag::Kernel(named),
        None => Tag::Other,
    })
}

/// `mmcblk0: message` of `mmcblk0 : message`: Android pads names to eight letters.
fn without_padding(message: &str) -> Cow<'_, str> {
    match message.split_once(": ") {
        Some((name, text)) if name.ends_with(' ') => format!("{}: {text}", name.trim_end()).into(),
        Some(_) | None => message.into(),
    }
}

/// `3,1234,5678901,-;message` (Linux documentation, ABI/testing/dev-kmsg): the third number is in microseconds.
fn of_kmsg(line: &str) -> Option<Line<'_>> {
    let (head, message) = line.split_once(';')?;
    let mut fields = head.split(',');
    let _priority: u32 = fields.next()?.parse().ok()?;
    let _number: u64 = fields.next()?.parse().ok()?;
    let microseconds: u64 = fields.next()?.parse().ok()?;
    let seconds = Some(microseconds as f64 / 1e6);
    Some(Line { has_mark: true, seconds, clock: None, message: message.into() })
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
        let is_program = word.ends_with(']') && word.contains('[') && !name.is_empty();
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
    let text = text.trim().split('@').next()?.trim();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_number && text.contains('.') { text.parse().ok() } else { None }
}

/// Whether a line is the start of a machine.
pub(super) fn is_start(message: &str) -> bool {
    message.starts_with("Linux version ") || message.starts_with("Booting Linux ")
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
            ("05-01 12:00:00.123     0     0 E mmc0    : x", None),
            ("05-01 12:00:00.123  root     0     0 E mmc0    : x", None),
            ("mmc0: x", None),
        ];
        for (text, seconds) in forms {
            let line = Line::of_kernel(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((line.message.as_ref(), line.seconds), ("mmc0: x", seconds), "{text}");
        }
    }

    #[test]
    fn lines_of_other_programs_are_not_the_kernels() {
        for text in [
            "Feb 11 13:27:33 pi smartd[512]: Device: /dev/sda, I/O error, dev sda, sector 5",
            "2026-03-02T10:30:36+00:00 pi udisksd[400]: mmc0: error -110 whilst initialising SD card",
            "05-01 12:00:00.123   100   101 E mmc0    : error -110 whilst initialising SD card",
            "",
            "[   12.5] ",
        ] {
            assert!(Line::of_kernel(text).is_none(), "{text}");
        }
    }
}
