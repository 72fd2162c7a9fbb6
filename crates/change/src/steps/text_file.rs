//! A small text file that is made, changed or removed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::volume::DiskIdentity;
use rubus_boot::cmdline_txt::{is_command_line, taken_back};
use rubus_host::files::hands::{self, parent_of};
use rubus_host::{Files, Hands, ReadError};

use super::commands::{Command, Names};
use super::diff::{Line, lines};
use super::trace::is_there;
use super::{Behaviour, Detail, FileSite, FileStep, Receipt, StepError, Touches, Trace, TraceSite};

/// A text file gets new contents, or is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct WriteFile {
    /// Absolute path.
    pub path: PathBuf,
    /// What it holds now; absent when it does not exist.
    pub was: Option<TextFile>,
    /// What it will hold.
    pub becomes: TextFile,
}

/// A text file is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct RemoveFile {
    /// Absolute path.
    pub path: PathBuf,
    /// What it holds now.
    pub was: TextFile,
}

/// A small text file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextFile {
    /// Its contents. A byte that is not UTF-8 is the character of the same number above U+10FF00, which no text has.
    pub text: String,
    /// Its permission bits.
    pub mode: u32,
}

impl TextFile {
    /// A file with mode 0644: world-readable, writable by root.
    pub fn public(text: impl Into<String>) -> Self {
        TextFile { text: text.into(), mode: 0o644 }
    }

    /// From its bytes, whatever their encoding; nothing where they are no text that can be written back as it was.
    pub fn of_bytes(bytes: &[u8], mode: u32) -> Option<Self> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return (!text.contains(is_foreign)).then(|| TextFile { text: text.into(), mode });
        }
        let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
        for chunk in bytes.utf8_chunks() {
            if chunk.valid().contains(is_foreign) {
                return None;
            }
            text.push_str(chunk.valid());
            let stand_in = |byte: &u8| char::from_u32(FOREIGN + u32::from(*byte));
            text.extend(chunk.invalid().iter().filter_map(stand_in));
        }
        Some(TextFile { text, mode })
    }

    /// Its bytes, as they are in the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.text.len());
        let mut buffer = [0; 4];
        for character in self.text.chars() {
            match u8::try_from(u32::from(character).wrapping_sub(FOREIGN)) {
                Ok(byte) if is_foreign(character) => bytes.push(byte),
                _ => bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes()),
            }
        }
        bytes
    }

    /// Its text for people, with a sign in place of bytes that are not UTF-8.
    pub fn shown(&self) -> String {
        self.text.replace(is_foreign, "\u{fffd}")
    }

    /// Whether it is UTF-16, by the mark that it begins with.
    pub fn is_utf_16(&self) -> bool {
        let is_mark = |first: u32, second: u32| {
            let mut characters = self.text.chars().map(u32::from);
            characters.next() == Some(FOREIGN + first)
                && characters.next() == Some(FOREIGN + second)
        };
        is_mark(0xFF, 0xFE) || is_mark(0xFE, 0xFF)
    }

    /// The first line that is not UTF-8 and that another text does not have as it is, from 1: it would be edited.
    pub fn edited_foreign_line(&self, becomes: &TextFile) -> Option<usize> {
        let mut lines = self.text.lines().enumerate();
        lines
            .find(|(_, line)| {
                line.contains(is_foreign) && !becomes.text.lines().any(|kept| kept == *line)
            })
            .map(|(index, _)| index + 1)
    }
}

/// What stands for the byte 0; those from 0x80 are used. The last of the private characters of Unicode.
const FOREIGN: u32 = 0x10_FF00;

/// Whether a character stands for a byte that is not UTF-8.
fn is_foreign(character: char) -> bool {
    u32::from(character) >= FOREIGN + 0x80
}

impl Behaviour for WriteFile {
    fn title(&self) -> String {
        let verb = if self.was.is_none() { "make" } else { "change" };
        format!("{verb} {}", self.path.display())
    }

    fn proof_title(&self) -> String {
        "the file is read back and compared".into()
    }

    fn undo_title(&self) -> String {
        match self.was {
            None => format!("remove {}", self.path.display()),
            Some(_) => format!("put {} back as it was", self.path.display()),
        }
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        vec![Detail::Text { was: self.was.as_ref(), becomes: Some(&self.becomes) }]
    }

    fn touches(&self) -> Touches<'_> {
        Touches::filling(&self.path)
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        match &self.was {
            Some(was) if is_command_line(&self.path) => {
                command_line_difference(&self.path, was, &self.becomes, files)
            }
            _ => file_difference(&self.path, &self.becomes, files),
        }
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, files: &dyn Files) -> Option<String> {
        way_back(&self.path, Some(&self.becomes), self.was.as_ref(), files)
            .err()
            .map(|error| error.to_string())
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        trace(&self.path, Some(&self.becomes), self.was.as_ref(), site, files)
    }
}

impl FileStep for WriteFile {
    fn apply(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        put(&path, self.was.as_ref(), Some(&self.becomes), site.temporary, hands)
    }

    fn undo(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        let path = site.place(&self.path)?;
        put_text_back(&path, Some(&self.becomes), self.was.as_ref(), site.temporary, hands)
    }
}

impl Behaviour for RemoveFile {
    fn title(&self) -> String {
        format!("remove {}", self.path.display())
    }

    fn proof_title(&self) -> String {
        "nothing of that name is there".into()
    }

    fn undo_title(&self) -> String {
        format!("make {} again", self.path.display())
    }

    fn commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn undo_commands(&self, _: Names<'_>) -> Vec<Command> {
        Vec::new()
    }

    fn details(&self) -> Vec<Detail<'_>> {
        vec![Detail::Text { was: Some(&self.was), becomes: None }]
    }

    fn touches(&self) -> Touches<'_> {
        Touches::path(&self.path)
    }

    fn disks_lost_mut(&mut self) -> Vec<&mut DiskIdentity> {
        Vec::new()
    }

    fn difference(&self, files: &dyn Files) -> Option<String> {
        is_there(&self.path, files).then(|| format!("{} is there again", self.path.display()))
    }

    fn shows_completion(&self) -> bool {
        true
    }

    fn obstacle(&self, _: &Path, _: usize, files: &dyn Files) -> Option<String> {
        way_back(&self.path, None, Some(&self.was), files).err().map(|error| error.to_string())
    }

    fn trace(&self, site: &TraceSite<'_>, files: &dyn Files) -> Trace {
        trace(&self.path, None, Some(&self.was), site, files)
    }
}

impl FileStep for RemoveFile {
    fn apply(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        put(&site.place(&self.path)?, Some(&self.was), None, site.temporary, hands)
    }

    fn undo(&self, site: &FileSite<'_>, hands: &mut dyn Hands) -> Result<Receipt, StepError> {
        put_text_back(&site.place(&self.path)?, None, Some(&self.was), site.temporary, hands)
    }
}

/// Brings a text back to what it was before the change. Words that others have added to a command line stay.
fn put_text_back(
    path: &Path,
    ours: Option<&TextFile>,
    was: Option<&TextFile>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let (from, to) = way_back(path, ours, was, hands.files())?;
    let mut receipt = put(path, from.as_ref(), to.as_ref(), temporary, hands)?;
    if to.as_ref() != was {
        receipt.live += ", with the words that others have added";
        receipt.planned.clone_from(&receipt.live);
    }
    Ok(receipt)
}

/// What the machine shows of a text's change.
fn trace(
    path: &Path,
    ours: Option<&TextFile>,
    was: Option<&TextFile>,
    site: &TraceSite<'_>,
    files: &dyn Files,
) -> Trace {
    if site.has_leftover(path, files) {
        return Trace::Made;
    }
    let keeps_modes = files.keeps_modes(&parent_of(path));
    let is_as_before = |now: &Option<TextFile>| is_same(now.as_ref(), was, keeps_modes);
    if read(path, files).is_ok_and(|now| is_as_before(&now)) {
        return Trace::Untouched;
    }
    match way_back(path, ours, was, files) {
        // A command line with nothing of this change in it.
        Ok((from, to)) if from == to => Trace::Untouched,
        Ok(_) => Trace::Made,
        Err(StepError::NotOurs { how, .. }) => Trace::Foreign(how),
        Err(error) => Trace::Foreign(error.to_string()),
    }
}

type FromTo = (Option<TextFile>, Option<TextFile>);

/// From what to what a text is brought by undoing.
fn way_back(
    path: &Path,
    ours: Option<&TextFile>,
    was: Option<&TextFile>,
    files: &dyn Files,
) -> Result<FromTo, StepError> {
    let keeps_modes = files.keeps_modes(&parent_of(path));
    let now = read(path, files)?;
    let is_emptied = !keeps_modes && now.as_ref().is_some_and(|file| file.text.is_empty());
    let is_known = is_emptied
        || is_same(now.as_ref(), ours, keeps_modes)
        || is_same(now.as_ref(), was, keeps_modes);
    if is_known {
        return Ok((ours.cloned(), was.cloned()));
    }
    let not_ours = |how: String| StepError::NotOurs { path: path.display().to_string(), how };
    match (now, ours, was) {
        (Some(now), Some(ours), Some(was)) if is_command_line(path) => {
            let text = taken_back(&was.text, &ours.text, &now.text).map_err(not_ours)?;
            let back = TextFile { text, mode: now.mode };
            Ok((Some(now), Some(back)))
        }
        (now, ours, _) => Err(not_ours(how_it_differs(ours, now.as_ref(), keeps_modes))),
    }
}

/// In what a file is not as the change left it, in a few words.
fn how_it_differs(ours: Option<&TextFile>, now: Option<&TextFile>, keeps_modes: bool) -> String {
    const MAX_LINES: usize = 4;
    let (ours, now) = match (ours, now) {
        (Some(ours), Some(now)) => (ours, now),
        (None, Some(_)) => return "this change removed it, and it is there again".into(),
        (_, None) => return "it is gone".into(),
    };
    if ours.text == now.text && keeps_modes {
        return format!("its mode is {:o} and was {:o}", now.mode, ours.mode);
    }
    let all = lines(&ours.text, &now.text);
    let changed: Vec<String> = all
        .into_iter()
        .filter_map(|line| match line {
            Line::Same(_) => None,
            Line::Removed(text) => Some(format!("gone: '{}'", text.trim())),
            Line::Added(text) => Some(format!("new: '{}'", text.trim())),
        })
        .collect();
    let mut words = changed[..changed.len().min(MAX_LINES)].join(", ");
    if changed.len() > MAX_LINES {
        words += &format!(" and {} more lines", changed.len() - MAX_LINES);
    }
    words
}

/// Brings a path from one text to another, or from or to nothing. What is neither was written by
/// another program and stays.
fn put(
    path: &Path,
    from: Option<&TextFile>,
    to: Option<&TextFile>,
    temporary: &str,
    hands: &mut dyn Hands,
) -> Result<Receipt, StepError> {
    let directory = parent_of(path);
    let temporary = directory.join(temporary);
    hands::remove_leftover(&temporary, hands)?;
    let keeps_modes = hands.files().keeps_modes(&directory);
    let now = read(path, hands.files()).map_err(|error| match error {
        StepError::NotOurs { path, .. } => StepError::Changed { path },
        error => error,
    })?;
    if !is_same(now.as_ref(), to, keeps_modes) {
        // On FAT a power cut, or `fsck.vfat -a` after one, may leave the name without contents: no work is lost by
        // overwriting that.
        let is_emptied = !keeps_modes && now.as_ref().is_some_and(|file| file.text.is_empty());
        if !is_emptied && !is_same(now.as_ref(), from, keeps_modes) {
            return Err(StepError::Changed { path: path.display().to_string() });
        }
        match to {
            None => hands.remove(path)?,
            Some(file) => {
                let like = from.map(|_| path);
                hands.write_new(&temporary, &file.bytes(), file.mode, like)?;
                hands.rename(&temporary, path)?;
            }
        }
    }
    // Also where nothing had to be done: what an interrupted step did may not be durable yet.
    if hands.files().exists(&directory) {
        hands.sync_directory(&directory)?;
    }
    let live = read(path, hands.files())?;
    if !is_same(live.as_ref(), to, keeps_modes) {
        return Err(StepError::NotAsWritten {
            path: path.display().to_string(),
            wanted: describe(to),
            live: describe(live.as_ref()),
        });
    }
    Ok(Receipt { planned: describe(to), live: describe(live.as_ref()) })
}

/// Whether two are the same as far as their filesystem can tell.
fn is_same(one: Option<&TextFile>, other: Option<&TextFile>, keeps_modes: bool) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.text == other.text && (!keeps_modes || one.mode == other.mode)
        }
        (one, other) => one.is_none() == other.is_none(),
    }
}

fn read(path: &Path, files: &dyn Files) -> Result<Option<TextFile>, StepError> {
    const MAX_BYTES: usize = 1 << 20;
    let unreadable = |reason| StepError::Unreadable { path: path.display().to_string(), reason };
    let bytes = match files.read_prefix(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(ReadError::Absent) => {
            return match files.link(path) {
                Ok(target) => Err(dangling(path, &target)),
                Err(_) => Ok(None),
            };
        }
        Err(reason) => return Err(unreadable(reason)),
    };
    Ok(Some(text_of(&bytes, files.mode(path).map_err(unreadable)?)))
}

/// A link that leads nowhere is something that another program has put there.
fn dangling(path: &Path, target: &Path) -> StepError {
    StepError::NotOurs {
        path: path.display().to_string(),
        how: format!("a symbolic link to {} is in its place", target.display()),
    }
}

fn describe(file: Option<&TextFile>) -> String {
    match file {
        None => "absent".into(),
        Some(file) => format!("{} bytes, mode {:o}", file.bytes().len(), file.mode),
    }
}

/// A program that rewrites a command line or adds words to it, as Debian's raspi-firmware does with each update, has changed
/// nothing of a change whose words are all there.
fn command_line_difference(
    path: &Path,
    was: &TextFile,
    becomes: &TextFile,
    files: &dyn Files,
) -> Option<String> {
    let difference = file_difference(path, becomes, files)?;
    let live = live(path, files).ok()?;
    // Making the change on what is there changes nothing.
    let made = taken_back(&becomes.text, &was.text, &live.text);
    (made.as_ref() != Ok(&live.text)).then_some(difference)
}

fn file_difference(path: &Path, becomes: &TextFile, files: &dyn Files) -> Option<String> {
    let shown = path.display();
    match live(path, files) {
        Ok(live) if live == *becomes => None,
        Ok(live) if live.text == becomes.text && !files.keeps_modes(path) => None,
        Ok(live) if live.text == becomes.text => {
            Some(format!("{shown} has mode {:o} instead of {:o}", live.mode, becomes.mode))
        }
        Ok(_) => Some(format!("{shown} was changed")),
        Err(error) => Some(missing(path, &error)),
    }
}

pub(super) fn missing(path: &Path, error: &ReadError) -> String {
    match error {
        ReadError::Absent => format!("{} is gone", path.display()),
        error => format!("{} cannot be read: {error}", path.display()),
    }
}

fn live(path: &Path, files: &dyn Files) -> Result<TextFile, ReadError> {
    const MAX_BYTES: usize = 1 << 20;
    let bytes = files.read_prefix(path, MAX_BYTES)?;
    Ok(text_of(&bytes, files.mode(path)?))
}

/// What is there now, to be compared. A text that could not be written back is none that a plan knows.
fn text_of(bytes: &[u8], mode: u32) -> TextFile {
    TextFile::of_bytes(bytes, mode)
        .unwrap_or_else(|| TextFile { text: String::from_utf8_lossy(bytes).into_owned(), mode })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_in_another_encoding_is_kept_and_seen_where_it_is_edited() {
        let was = TextFile::of_bytes(b"# caf\xe9\na=1\n", 0o644).expect("a text");
        assert_eq!(was.shown(), "# caf\u{fffd}\na=1\n");
        let kept = TextFile { text: was.text.replace("a=1", "a=2"), ..was.clone() };
        assert_eq!(kept.bytes(), b"# caf\xe9\na=2\n");
        assert_eq!(was.edited_foreign_line(&kept), None);
        let edited = TextFile { text: was.text.replace("caf", "tea"), ..was.clone() };
        assert_eq!(was.edited_foreign_line(&edited), Some(1));
        assert!(!was.is_utf_16());
        assert!(TextFile::of_bytes(b"\xff\xfea\0", 0o644).is_some_and(|file| file.is_utf_16()));
        // Its own stand-ins could not be told from bytes.
        assert_eq!(TextFile::of_bytes("\u{10ffe9}".as_bytes(), 0o644), None);
    }

    proptest! {
        #[test]
        fn bytes_come_back_as_they_were(bytes: Vec<u8>) {
            if let Some(file) = TextFile::of_bytes(&bytes, 0o644) {
                prop_assert_eq!(file.bytes(), bytes);
            }
        }
    }
}
