//! Reading a recording: where its lines are is found once, and each is read when it is shown, so that a day of samples
//! does not have to fit into memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context;
use rubus_host::files::document;

use crate::{Header, Look, Sample, parse_header, parse_sample};

/// How many samples to look back for programs, which are not in every sample.
const PROGRAMS_WITHIN: usize = 60;
/// No line is longer; what is has no end.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// Four months of one a second.
const MAX_SAMPLES: usize = 10_000_000;

/// A recording that is played back.
pub struct Replay {
    header: Header,
    file: BufReader<File>,
    /// Where each line begins that is a sample.
    lines: Vec<u64>,
    was_cut: bool,
}

impl Replay {
    /// Opens one. A last line that is not whole is left out.
    ///
    /// # Errors
    /// When it cannot be read, is no recording, or has fewer than the two samples that make a picture.
    pub fn open(path: &Path) -> anyhow::Result<Replay> {
        let file = document::open_regular(path)
            .with_context(|| format!("cannot open the recording {}", path.display()))?;
        let mut file = BufReader::new(file);
        let why = || format!("cannot show {}", path.display());
        let mut line = Vec::new();
        read_line(&mut file, &mut line).with_context(why)?;
        let header = parse_header(line.trim_ascii_end()).map_err(anyhow::Error::msg);
        let header = header.with_context(why)?;
        let mut lines = Vec::new();
        let mut at = line.len() as u64;
        loop {
            read_line(&mut file, &mut line).with_context(why)?;
            if line.is_empty() {
                break;
            }
            anyhow::ensure!(
                lines.len() < MAX_SAMPLES,
                "cannot show {}: it has more than {MAX_SAMPLES} samples; give a part of it",
                path.display()
            );
            lines.push(at);
            at += line.len() as u64;
        }
        let mut replay = Replay { header, file, lines, was_cut: false };
        while !replay.lines.is_empty() && replay.sample(replay.lines.len() - 1).is_none() {
            replay.lines.pop();
            replay.was_cut = true;
        }
        anyhow::ensure!(
            replay.lines.len() >= 2,
            "cannot show {}: it takes two samples to say anything, and it has {}",
            path.display(),
            replay.lines.len()
        );
        Ok(replay)
    }

    /// What does not change in it.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether its end was cut off.
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// How many samples there are.
    pub fn samples(&self) -> usize {
        self.lines.len()
    }

    /// One sample, from 0 on; none if its line is damaged.
    pub fn sample(&mut self, at: usize) -> Option<Sample> {
        let begin = *self.lines.get(at)?;
        let mut line = Vec::new();
        self.file.seek(SeekFrom::Start(begin)).ok()?;
        read_line(&mut self.file, &mut line).ok()?;
        parse_sample(line.trim_ascii_end()).ok()
    }

    /// What a sample and the one before it say, with the programs that were seen last; none for the first sample, and
    /// beside a damaged line.
    pub fn look(&mut self, at: usize) -> Option<Look> {
        let before = self.sample(at.checked_sub(1)?)?;
        let now = self.sample(at)?;
        let page_bytes = self.header.page_bytes;
        let mut look = Look::between(&before, &now, &self.header.pipes, page_bytes);
        let mut earlier = at;
        while look.programs.is_none() && earlier > 0 && at - earlier < PROGRAMS_WITHIN {
            earlier -= 1;
            look.programs = self.sample(earlier).and_then(|sample| sample.programs);
        }
        Some(look)
    }
}

fn read_line(file: &mut BufReader<File>, line: &mut Vec<u8>) -> std::io::Result<()> {
    line.clear();
    file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line)?;
    Ok(())
}
