//! The journal of a copy, by which one that was interrupted goes on.
//!
//! A text. Its head says what is copied to where and how it is cut; each line after the head is a section
//! whose bytes are on stable storage at the destination, with its digest, and ends in a checksum of itself.
//! What a power cut has left of the last lines is no line, and what it stood for is copied again.

use rubus_vocabulary::checksum::crc32c;

use super::grid::Grid;

const MARK: &str = "rubus nbd copy 1";
const HEAD_LINES: usize = 4;
/// Longer lines are none.
const MAX_LINE_BYTES: usize = 8 << 10;

/// What is copied to where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What tells the source from everything else that could have its name.
    pub source: String,
    /// The same of the destination.
    pub target: String,
    /// How it is cut.
    pub grid: Grid,
}

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// What is copied, and how it is cut.
    pub head: Head,
    /// Sections that are done, with their digests. Each is one that there is.
    pub done: Vec<(usize, u64)>,
    /// The length of what could be understood; what is behind was left by an interruption.
    pub length: usize,
}

/// Why a journal cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAJournal {
    /// It is something else.
    #[error("it is no journal of a copy")]
    Other,
    /// Its head is damaged.
    #[error("its head is damaged")]
    Damaged,
    /// Its head ends early: nothing of a copy was recorded when writing it was interrupted.
    #[error("its head is not complete")]
    Unfinished,
}

impl Head {
    /// The head as it stands in the journal.
    pub fn encode(&self) -> String {
        let grid = &self.grid;
        let lines: [String; HEAD_LINES] = [
            MARK.to_string(),
            format!("source {}", self.source.escape_default()),
            format!("target {}", self.target.escape_default()),
            format!(
                "cut {} {} {} {}",
                grid.size_bytes, grid.cell_bytes, grid.piece_bytes, grid.section_bytes
            ),
        ];
        lines.iter().map(|line| sealed(line)).collect()
    }

    fn decode(lines: &mut Lines<'_>) -> Result<Head, NotAJournal> {
        match lines.next() {
            Some(MARK) => {}
            _ => return Err(NotAJournal::Other),
        }
        let mut value = |name: &str| {
            let line = lines.next().ok_or(NotAJournal::Damaged)?;
            let value = line.strip_prefix(name).and_then(|v| v.strip_prefix(' '));
            value.ok_or(NotAJournal::Damaged)
        };
        let (source, target) = (value("source")?, value("target")?);
        let cut = value("cut")?;
        let numbers: Option<Vec<u64>> = cut.split(' ').map(|n| n.parse().ok()).collect();
        let Some([size_bytes, cell_bytes, piece_bytes, section_bytes]) = numbers.as_deref() else {
            return Err(NotAJournal::Damaged);
        };
        let grid = Grid {
            size_bytes: *size_bytes,
            cell_bytes: *cell_bytes,
            piece_bytes: *piece_bytes,
            section_bytes: *section_bytes,
        };
        // No other program writes another cut.
        if i64::try_from(grid.size_bytes).is_err() || grid != Grid::new(*size_bytes, *piece_bytes) {
            return Err(NotAJournal::Damaged);
        }
        Ok(Head { source: source.into(), target: target.into(), grid })
    }

    /// Whether this is a head of the same copy; the texts are compared as they are written.
    pub fn is_of(&self, other: &Head) -> Result<(), (&'static str, String, String)> {
        let texts = |text: &str| text.escape_default().to_string();
        for (what, ours, theirs) in
            [("source", &self.source, &other.source), ("destination", &self.target, &other.target)]
        {
            if *ours != texts(theirs) {
                return Err((what, ours.clone(), texts(theirs)));
            }
        }
        if self.grid == other.grid {
            Ok(())
        } else {
            Err(("cut", format!("{:?}", self.grid), format!("{:?}", other.grid)))
        }
    }
}

/// A line about a section that is done.
pub fn record(section: usize, digest: u64) -> String {
    sealed(&format!("done {section} {digest:016x}"))
}

/// Reads a journal.
///
/// # Errors
/// If the bytes are no journal, or its head is damaged or incomplete.
pub fn parse(bytes: &[u8]) -> Result<Journal, NotAJournal> {
    let mut lines = Lines { bytes, used: 0 };
    let head = Head::decode(&mut lines)
        .map_err(|why| if ends_early(bytes, lines.used) { NotAJournal::Unfinished } else { why })?;
    let mut done = Vec::new();
    let mut length = lines.used;
    while let Some(line) = lines.next() {
        let Some(section) = section_of(line, &head.grid) else {
            break;
        };
        done.push(section);
        length = lines.used;
    }
    Ok(Journal { head, done, length })
}

/// Whether the text ends within a head, of which the lines up to `whole` are right. A power cut may have left zeros for
/// what was not written.
fn ends_early(bytes: &[u8], whole: usize) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (text, first) = (&bytes[..written], sealed(MARK));
    let begins_as_one = text.starts_with(first.as_bytes()) || first.as_bytes().starts_with(text);
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let is_cut = text.get(whole..).is_none_or(|rest| !rest.contains(&b'\n'));
    !text.is_empty() && begins_as_one && is_cut && lines < HEAD_LINES
}

fn section_of(line: &str, grid: &Grid) -> Option<(usize, u64)> {
    let (number, digest) = line.strip_prefix("done ")?.split_once(' ')?;
    let number: usize = number.parse().ok()?;
    let is_digest = digest.len() == 16 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    let digest = u64::from_str_radix(digest, 16).ok().filter(|_| is_digest)?;
    (number < grid.sections()).then_some((number, digest))
}

fn sealed(line: &str) -> String {
    format!("{line} {:08x}\n", crc32c(line.as_bytes()))
}

/// Lines whose checksum is right.
struct Lines<'a> {
    bytes: &'a [u8],
    used: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its checksum; nothing when it is damaged or not whole.
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.used..)?;
        let end = rest.iter().take(MAX_LINE_BYTES).position(|b| *b == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let (text, sum) = line.rsplit_once(' ')?;
        if sum != format!("{:08x}", crc32c(text.as_bytes())) {
            return None;
        }
        self.used += end + 1;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head() -> Head {
        Head {
            source: "nbd://pi/root [rubus …]\nsecond".into(),
            target: "/mnt/disk.img.partial".into(),
            grid: Grid::new(100 << 20, 256 << 10),
        }
    }

    #[test]
    fn a_journal_reads_as_it_looks() {
        insta::assert_snapshot!(head().encode() + &record(3, 0xabc), @r"
        rubus nbd copy 1 0e7ce7d0
        source nbd://pi/root [rubus \u{2026}]\nsecond b66cbf9e
        target /mnt/disk.img.partial e94f5be8
        cut 104857600 65536 262144 4194304 0a18f25e
        done 3 0000000000000abc 4b208d43
        ");
    }

    #[test]
    fn what_was_cut_off_is_not_done() {
        let mut text = head().encode();
        for section in [0, 7, 3] {
            text += &record(section, section as u64 + 1);
        }
        let whole = parse(text.as_bytes()).unwrap();
        assert_eq!(whole.done, [(0, 1), (7, 8), (3, 4)]);
        assert_eq!(whole.length, text.len());
        assert!(whole.head.is_of(&head()).is_ok());
        let start = head().encode().len();
        for end in 0..text.len() {
            let cut = parse(&text.as_bytes()[..end]);
            match cut {
                Err(why) => {
                    assert!(end < start);
                    let expected =
                        if end == 0 { NotAJournal::Other } else { NotAJournal::Unfinished };
                    assert_eq!(why, expected, "{end}");
                }
                Ok(cut) => {
                    assert!(cut.done.len() < 3 && whole.done.starts_with(&cut.done));
                    assert!(cut.length <= end);
                }
            }
        }
        // What a disk leaves of blocks that were never written.
        let zeros = [text.as_bytes(), &[0; 600]].concat();
        assert_eq!(parse(&zeros).unwrap().done.len(), 3);
        let zeros = [&text.as_bytes()[..start - 1], &[0; 600]].concat();
        assert_eq!(parse(&zeros), Err(NotAJournal::Unfinished));
        // A line of the head that is wrong and not the last is no interruption.
        let mut damaged = text.into_bytes();
        damaged[start - 30] ^= 1;
        assert_eq!(parse(&damaged), Err(NotAJournal::Damaged));
    }

    #[test]
    fn another_copy_is_told() {
        let text = head().encode();
        let read = parse(text.as_bytes()).unwrap().head;
        let other = Head { source: "nbd://pi/other".into(), ..head() };
        assert_eq!(read.is_of(&other).unwrap_err().0, "source");
        let other = Head { grid: Grid::new(101 << 20, 256 << 10), ..head() };
        assert_eq!(read.is_of(&other).unwrap_err().0, "cut");
        assert_eq!(parse(b""), Err(NotAJournal::Other));
        assert_eq!(parse(&[0; 4096]), Err(NotAJournal::Other));
        assert_eq!(parse(b"PNG"), Err(NotAJournal::Other));
    }

    proptest! {
        #[test]
        fn a_changed_byte_never_changes_what_is_done(
            sections in proptest::collection::vec((0_usize..25, any::<u64>()), 0..9),
            at: prop::sample::Index,
            to: u8,
        ) {
            let text = head().encode() + &sections.iter().map(|(s, d)| record(*s, *d)).collect::<String>();
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(journal) = parse(&bytes) {
                prop_assert!(sections.starts_with(&journal.done));
            }
        }
    }
}
