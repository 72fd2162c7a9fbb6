//! `cmdline.txt`: the one line that the firmware hands to the kernel.
//!
//! Words are split as the kernel does (Linux, lib/cmdline.c, `next_arg`): at white space that is not between
//! double quotes. In names `-` and `_` are the same. Words after `--` are for the first program, not for the kernel.
//! Only the first line counts.

mod back;

use std::fmt;
use std::ops::Range;

pub use back::{is_command_line, taken_back};

/// How long the kernel's command line may be, in bytes with the zero at its end: arm (Linux,
/// arch/arm/include/uapi/asm/setup.h).
const MAX_BYTES_ARM: usize = 1024;
/// The same for arm64 and x86 (arch/arm64/include/uapi/asm/setup.h, arch/x86/include/asm/setup.h).
const MAX_BYTES_64_BIT: usize = 2048;
/// What the firmware of a Raspberry Pi adds of its own, at most; the longest seen in captures is some 250.
const FIRMWARE_OWN_BYTES: usize = 512;
/// One sector of an SD card: a file that fits can be overwritten in place all or nothing.
pub const SECTOR_BYTES: usize = 512;

/// The text of `cmdline.txt`, which can be asked and edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmdlineTxt {
    text: String,
}

/// One word of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    pub written: &'a str,
    /// What is before the first `=`, without quotes.
    pub name: &'a str,
    /// What is after it, without quotes; absent without `=`.
    pub value: Option<&'a str>,
}

/// Why an edit or a check failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmdlineError {
    /// A word that the kernel would read differently.
    #[error("'{0}' cannot be written as a word of the kernel's command line")]
    Unwritable(String),
    /// The line does not fit.
    #[error(
        "the kernel's command line would have {is} bytes, {most} fit beside the firmware's own words"
    )]
    TooLong {
        /// How long it is.
        is: usize,
        /// How long it may be.
        most: usize,
    },
}

impl CmdlineTxt {
    /// Any text; only its first line is looked at and edited.
    pub fn parse(text: impl Into<String>) -> Self {
        CmdlineTxt { text: text.into() }
    }

    /// The whole text, to be written back.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first line, without white space at its ends.
    pub fn line(&self) -> &str {
        self.text[..self.line_end()].trim()
    }

    /// The lines behind the first that hold something. The firmware does not pass them on.
    pub fn ignored_lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().skip(1).filter(|line| !line.trim().is_empty())
    }

    /// The kernel's words in order; those behind `--` are left out.
    pub fn words(&self) -> impl Iterator<Item = Word<'_>> {
        self.spans()
            .into_iter()
            .map(|span| Word::of(&self.text[span]))
            .take_while(|word| word.written != "--")
    }

    /// The value that counts: that of the last word of this name that has one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).pop()
    }

    /// The values of all words of this name, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.words()
            .filter(|word| same_name(word.name, name))
            .filter_map(|word| word.value)
            .collect()
    }

    /// The subvolume that `rootflags=` names, without slashes around it.
    pub fn subvolume(&self) -> Option<&str> {
        let mut options = self.get("rootflags")?.split(',').rev();
        let named = options.find_map(|option| option.strip_prefix("subvol="))?;
        Some(named.trim_matches('/')).filter(|name| !name.is_empty())
    }

    /// The word by which a root of a disk keeps nothing from start to start: what is written lies in memory or below a key that is
    /// forgotten. Source: overlayroot.conf; RPi-Distro/raspi-config (`boot=overlay`); kernel-command-line(7), `systemd.volatile=`.
    pub fn volatile_root(&self) -> Option<Word<'_>> {
        const NO: [&str; 4] = ["0", "false", "no", "off"];
        let is_volatile = |word: &Word<'_>| match word.name {
            "overlayroot" => word
                .value
                .is_some_and(|value| ["tmpfs", "crypt"].iter().any(|kind| value.starts_with(kind))),
            "boot" => word.value == Some("overlay"),
            "systemd.volatile" => word.value.is_none_or(|value| !NO.contains(&value)),
            _ => false,
        };
        let is_last = |word: &Word<'_>| {
            let same = self.words().filter(|other| other.name == word.name);
            same.last().is_some_and(|last| last.written == word.written)
        };
        self.words().find(|word| is_volatile(word) && is_last(word))
    }

    /// Whether quotes stand around the value that counts, or around its whole word. The kernel takes them off; programs that
    /// split `/proc/cmdline` at white space keep them.
    pub fn is_quoted(&self, name: &str) -> bool {
        let words = self.words().filter(|word| same_name(word.name, name) && word.value.is_some());
        words.last().is_some_and(|word| {
            let value = word.written.split_once('=').map_or("", |(_, value)| value);
            word.written.starts_with('"') || value.starts_with('"')
        })
    }

    /// The number of the subvolume that `rootflags=` names.
    pub fn subvolume_id(&self) -> Option<&str> {
        self.get("rootflags")?.split(',').rev().find_map(|option| option.strip_prefix("subvolid="))
    }

    /// Whether there is a word of this name, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.words().any(|word| same_name(word.name, name))
    }

    /// Gives a name one value: the first word of that name gets it in its place, others of that name
    /// go; without any, the word is put behind the others. Not for names that may come more than once (`console`).
    ///
    /// # Errors
    /// When the kernel could not read the word back.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), CmdlineError> {
        let written = written(name, value)?;
        let mut spans = self.spans_of(name).into_iter();
        let Some(first) = spans.next() else {
            self.append(&written);
            return Ok(());
        };
        for span in spans.rev() {
            self.cut(span);
        }
        self.text.replace_range(first, &written);
        Ok(())
    }

    /// Puts a word without value behind the others unless it is there.
    ///
    /// # Errors
    /// When the kernel could not read the word back.
    pub fn set_flag(&mut self, name: &str) -> Result<(), CmdlineError> {
        check_name(name)?;
        if !self.has(name) {
            self.append(name);
        }
        Ok(())
    }

    /// Removes every word of this name, with or without a value. How many there were.
    pub fn remove(&mut self, name: &str) -> usize {
        let spans = self.spans_of(name);
        for span in spans.iter().rev() {
            self.cut(span.clone());
        }
        spans.len()
    }

    /// Removes every word of this name that has exactly this value. How many there were.
    pub fn remove_value(&mut self, name: &str, value: &str) -> usize {
        let spans: Vec<Range<usize>> = self
            .spans_of(name)
            .into_iter()
            .filter(|span| Word::of(&self.text[span.clone()]).value == Some(value))
            .collect();
        for span in spans.iter().rev() {
            self.cut(span.clone());
        }
        spans.len()
    }

    /// Removes the words by which an image grows its root filesystem at its first start: `resize` and the
    /// two forms of `init=` that Raspberry Pi OS has used. Which there were.
    pub fn remove_first_start(&mut self) -> Vec<String> {
        let found: Vec<String> =
            self.first_start_words().iter().map(|word| word.written.to_string()).collect();
        let spans = self.kernel_spans();
        for span in spans.into_iter().rev() {
            if is_first_start(&Word::of(&self.text[span.clone()])) {
                self.cut(span);
            }
        }
        found
    }

    /// The words by which an image grows its root filesystem at its first start.
    pub fn first_start_words(&self) -> Vec<Word<'_>> {
        self.words().filter(is_first_start).collect()
    }

    /// The text with spaces put before the end of the first line until the whole has `bytes` bytes, so that
    /// later changes need not change its length. What was behind the first line is left out.
    ///
    /// # Errors
    /// When it is longer than that already.
    pub fn padded(&self, bytes: usize) -> Result<String, CmdlineError> {
        let line = self.text[..self.line_end()].trim_end();
        let is = line.len() + 1;
        let spaces = bytes.checked_sub(is).ok_or(CmdlineError::TooLong { is, most: bytes })?;
        Ok(format!("{line}{}\n", " ".repeat(spaces)))
    }

    /// How many bytes fit beside what the firmware adds of its own.
    pub const fn room(is_32_bit_arm: bool) -> usize {
        let most = if is_32_bit_arm { MAX_BYTES_ARM } else { MAX_BYTES_64_BIT };
        most - FIRMWARE_OWN_BYTES
    }

    /// # Errors
    /// [`CmdlineError::TooLong`] when the kernel would cut the line, with what the firmware adds.
    pub fn fits(&self, is_32_bit_arm: bool) -> Result<(), CmdlineError> {
        let (is, most) = (self.kernel_bytes(), CmdlineTxt::room(is_32_bit_arm));
        if is <= most { Ok(()) } else { Err(CmdlineError::TooLong { is, most }) }
    }

    /// How many bytes the line takes in the kernel, with the zero at its end.
    pub fn kernel_bytes(&self) -> usize {
        self.line().len() + 1
    }

    fn line_end(&self) -> usize {
        self.text.find('\n').unwrap_or(self.text.len())
    }

    fn append(&mut self, word: &str) {
        let behind_kernel = self.spans().into_iter().find(|span| &self.text[span.clone()] == "--");
        if let Some(dashes) = behind_kernel {
            self.text.insert_str(dashes.start, &format!("{word} "));
            return;
        }
        let end = self.text[..self.line_end()].trim_end().len();
        let gap = if end == 0 { "" } else { " " };
        self.text.insert_str(end, &format!("{gap}{word}"));
    }

    /// Cuts a word out together with the white space before it, or behind it if it is the first.
    fn cut(&mut self, span: Range<usize>) {
        let before = self.text[..span.start].trim_end().len();
        if before > 0 {
            self.text.replace_range(before..span.end, "");
            return;
        }
        let rest = &self.text[span.end..self.line_end()];
        let behind = rest.len() - rest.trim_start().len();
        self.text.replace_range(span.start..span.end + behind, "");
    }

    fn spans_of(&self, name: &str) -> Vec<Range<usize>> {
        let mut spans = self.kernel_spans();
        spans.retain(|span| same_name(Word::of(&self.text[span.clone()]).name, name));
        spans
    }

    fn kernel_spans(&self) -> Vec<Range<usize>> {
        let mut spans = self.spans();
        let dashes = spans.iter().position(|span| &self.text[span.clone()] == "--");
        spans.truncate(dashes.unwrap_or(spans.len()));
        spans
    }

    /// Where the words of the first line are.
    fn spans(&self) -> Vec<Range<usize>> {
        let line = &self.text[..self.line_end()];
        let mut spans = Vec::new();
        let mut start = None;
        let mut quoted = false;
        for (at, c) in line.char_indices() {
            quoted ^= c == '"';
            match (is_space(c) && !quoted, start) {
                (true, Some(begin)) => {
                    spans.push(begin..at);
                    start = None;
                }
                (false, None) => start = Some(at),
                _ => {}
            }
        }
        if let Some(begin) = start {
            spans.push(begin..line.trim_end().len().max(begin));
        }
        spans
    }
}

impl fmt::Display for CmdlineTxt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line())
    }
}

impl<'a> Word<'a> {
    fn of(written: &'a str) -> Self {
        // The kernel takes a quote off either end of the whole word, or of its value.
        let bare = written.strip_prefix('"').unwrap_or(written);
        let opened = bare.len() < written.len();
        let unclosed = |text: &'a str| text.strip_suffix('"').unwrap_or(text);
        match bare.split_once('=') {
            Some((name, value)) => {
                let inner = value.strip_prefix('"');
                let value = match (inner, opened) {
                    (Some(inner), _) => unclosed(inner),
                    (None, true) => unclosed(value),
                    (None, false) => value,
                };
                Word { written, name, value: Some(value) }
            }
            None => Word { written, name: if opened { unclosed(bare) } else { bare }, value: None },
        }
    }
}

/// The kernel's idea of white space; a file from a PC may end its line with a carriage return.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\x0b' | '\x0c')
}

fn same_name(one: &str, other: &str) -> bool {
    let dash = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.len() == other.len() && one.bytes().map(dash).eq(other.bytes().map(dash))
}

fn is_first_start(word: &Word<'_>) -> bool {
    const PROGRAMS: [&str; 2] =
        ["/usr/lib/raspi-config/init_resize.sh", "/usr/lib/raspberrypi-sys-mods/firstboot"];
    match word.value {
        None => word.name == "resize",
        Some(program) => word.name == "init" && PROGRAMS.contains(&program),
    }
}

fn check_name(name: &str) -> Result<(), CmdlineError> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '=' | '"');
    if name.is_empty() || name == "--" || name.contains(odd) {
        return Err(CmdlineError::Unwritable(name.into()));
    }
    Ok(())
}

fn written(name: &str, value: &str) -> Result<String, CmdlineError> {
    check_name(name)?;
    let whole = format!("{name}={value}");
    if value.contains(|c: char| c == '"' || c.is_control()) {
        return Err(CmdlineError::Unwritable(whole));
    }
    if value.contains(char::is_whitespace) { Ok(format!("{name}=\"{value}\"")) } else { Ok(whole) }
}

#[cfg(test)]
mod tests;
