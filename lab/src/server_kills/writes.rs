//! What a writer was told of its writes, and whether what is found later keeps that.
//!
//! A writer fills places with numbers that grow from write to write. It says on a line of its own when a write begins,
//! when the kernel has acknowledged it, and when it is durable: `begun PLACE N`, `done PLACE N`, `durable PLACE N`, and
//! `failed PLACE N` when the kernel said so. Afterwards each place holds the numbers of one write, or of two when a
//! write has been cut off.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// Bytes of a line that a place is filled with.
pub const LINE_BYTES: usize = 16;

/// What was promised of the writes to one place, by their numbers; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Promised {
    begun: u64,
    done: u64,
    durable: u64,
}

/// Which writes must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Each that was acknowledged: nothing was lost.
    Acknowledged,
    /// Each that was durable: a machine was restarted, or a loss was reported.
    Durable,
}

/// The oldest and the newest number in each place.
pub type Found = BTreeMap<String, (u64, u64)>;

/// What was promised of all places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    places: BTreeMap<String, Promised>,
    failed: Vec<String>,
    /// The highest number that a write had, also one of which nothing is left.
    used: u64,
}

impl Promises {
    /// Takes in what a writer has said. A last line without its end was not said.
    ///
    /// # Errors
    /// When it is not what a writer says: a test by it would prove nothing.
    pub fn hear(&mut self, log: &str) -> Result<()> {
        for line in log.split_inclusive('\n') {
            if let Some(line) = line.strip_suffix('\n') {
                self.hear_line(line).with_context(|| format!("the writer said {line:?}"))?;
            }
        }
        Ok(())
    }

    fn hear_line(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, place, number] = words[..] else {
            bail!("this has not three words");
        };
        let number: u64 = number.parse().context("no number")?;
        let promised = self.places.entry(place.to_owned()).or_default();
        match what {
            "begun" => {
                ensure!(number > promised.begun, "this number was used already");
                promised.begun = number;
                self.used = self.used.max(number);
            }
            "done" => {
                ensure!(number == promised.begun, "this write had not begun");
                promised.done = number;
            }
            "durable" => {
                ensure!(number == promised.done, "this write was not done");
                promised.durable = number;
            }
            "failed" => self.failed.push(line.to_owned()),
            _ => bail!("{what} is unknown"),
        }
        Ok(())
    }

    /// A number that no write has had.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.used + 1
    }

    /// The writes of which the writer was told that they had failed, since the last call.
    pub fn take_failed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failed)
    }

    /// What is not as it was promised; empty when all is. Only places whose names begin with
    /// `prefix` are looked at.
    #[must_use]
    pub fn broken(&self, found: &Found, expected: Expected, prefix: &str) -> Vec<String> {
        let mut broken = Vec::new();
        let places = self.places.iter();
        for (place, promised) in places.filter(|(place, _)| place.starts_with(prefix)) {
            let least = match expected {
                Expected::Acknowledged => promised.done,
                Expected::Durable => promised.durable,
            };
            match found.get(place) {
                None if least > 0 => {
                    broken.push(format!("{place}: nothing is there, write {least} was"));
                }
                Some(&(oldest, _)) if oldest < least => {
                    broken.push(format!("{place}: write {oldest} is there, {least} was"));
                }
                Some(&(_, newest)) if newest > promised.begun => broken.push(format!(
                    "{place}: write {newest} is there, and the last that began is {}",
                    promised.begun
                )),
                _ => {}
            }
        }
        let strange = found.keys().filter(|place| place.starts_with(prefix));
        for place in strange.filter(|place| !self.places.contains_key(*place)) {
            broken.push(format!("{place}: nobody wrote there"));
        }
        broken
    }

    /// What was written after another moment is gone: a backup of then was put back.
    pub fn go_back_to(&mut self, then: Promises) {
        self.places = then.places;
    }

    /// What was found is on stable storage by now, and begins a new account.
    pub fn settle(&mut self, found: &Found) {
        let settled = |(place, &(oldest, newest)): (&String, &(u64, u64))| {
            let promised = Promised { begun: newest, done: oldest, durable: oldest };
            (place.clone(), promised)
        };
        self.places = found.iter().map(settled).collect();
    }
}

/// What is found in places, by lines of a number of equal lines that follow each other, the place,
/// and the number in it, as `uniq -c` gives: `256 raw03 00000017`. A place has `lines` of them.
///
/// # Errors
/// When a place holds something that no write leaves.
pub fn found(text: &str, lines: impl Fn(&str) -> u64) -> Result<Found> {
    let mut found = Found::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [count, place, number] = words[..] else {
            bail!("{line:?} is of no write");
        };
        let read = |word: &str| {
            let number: Result<u64, _> = word.parse();
            number.with_context(|| format!("{line:?} is of no write"))
        };
        let (count, number) = (read(count)?, read(number)?);
        *counts.entry(place.to_owned()).or_default() += count;
        let seen = found.entry(place.to_owned()).or_insert((number, number));
        *seen = (seen.0.min(number), seen.1.max(number));
    }
    for (place, count) in counts {
        let whole = lines(&place);
        ensure!(count == whole, "{place} has {count} lines instead of {whole}");
    }
    Ok(found)
}

/// The same of one place whose bytes are here; none when nothing was ever written to it.
///
/// # Errors
/// As [`found`].
pub fn found_in(bytes: &[u8], place: &str) -> Result<Option<(u64, u64)>> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let mut seen: Option<(u64, u64)> = None;
    for line in bytes.chunks(LINE_BYTES) {
        let line = std::str::from_utf8(line).ok();
        let line = line.and_then(|line| line.strip_suffix('\n')?.strip_prefix(place));
        let number = line.and_then(|line| line.strip_prefix(' ')?.parse().ok());
        let number: u64 =
            number.with_context(|| format!("{place} holds something that nobody wrote"))?;
        let (oldest, newest) = seen.unwrap_or((number, number));
        seen = Some((oldest.min(number), newest.max(number)));
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "begun raw0 1\ndone raw0 1\ndurable raw0 1\nbegun raw0 2\ndone raw0 2\n\
                       begun raw0 3\n\
                       begun file 4\ndone file 4\ndurable file 4\n";

    fn promises() -> Promises {
        let mut promises = Promises::default();
        promises.hear(LOG).unwrap();
        promises
    }

    fn places(all: &[(&str, u64, u64)]) -> Found {
        let place =
            |&(name, oldest, newest): &(&str, u64, u64)| (name.to_owned(), (oldest, newest));
        all.iter().map(place).collect()
    }

    #[test]
    fn what_was_promised_may_be_newer_and_never_older() {
        let promises = promises();
        let broken = |raw: (u64, u64), expected| {
            let found = places(&[("raw0", raw.0, raw.1), ("file", 4, 4)]);
            promises.broken(&found, expected, "").len()
        };
        for fine in [(2, 2), (2, 3), (3, 3)] {
            assert_eq!(broken(fine, Expected::Acknowledged), 0, "{fine:?}");
        }
        for lost in [(1, 1), (1, 3), (0, 2)] {
            assert_eq!(broken(lost, Expected::Acknowledged), 1, "{lost:?}");
        }
        assert_eq!(broken((1, 1), Expected::Durable), 0);
        assert_eq!(broken((0, 0), Expected::Durable), 1);
        assert_eq!(broken((3, 9), Expected::Durable), 1, "from the future");
    }

    #[test]
    fn what_is_missing_or_was_never_written_is_told_by_its_place() {
        let promises = promises();
        let broken = promises.broken(&places(&[("raw0", 2, 2)]), Expected::Durable, "");
        assert_eq!(broken, ["file: nothing is there, write 4 was"]);
        let found = places(&[("raw0", 2, 2), ("file", 4, 4), ("raw7", 1, 1)]);
        let broken = promises.broken(&found, Expected::Durable, "");
        assert_eq!(broken, ["raw7: nobody wrote there"]);
        assert!(promises.broken(&found, Expected::Durable, "file").is_empty());
    }

    #[test]
    fn the_tail_of_a_disk_that_is_dropped_is_noticed() {
        // Places as on a disk, one behind the other, and all durable; then the disk ends earlier
        // and earlier.
        let names: Vec<String> = (0..8).map(|number| format!("raw{number}")).collect();
        let mut promises = Promises::default();
        for (name, number) in names.iter().zip(1..) {
            let log = ["begun", "done", "durable"].map(|what| format!("{what} {name} {number}\n"));
            promises.hear(&log.concat()).unwrap();
        }
        let all: Found = names.iter().cloned().zip((1..).map(|n| (n, n))).collect();
        assert!(promises.broken(&all, Expected::Acknowledged, "").is_empty());
        for kept in 0..names.len() {
            let found = all.clone().into_iter().take(kept).collect();
            let broken = promises.broken(&found, Expected::Durable, "");
            assert_eq!(broken.len(), names.len() - kept);
        }
    }

    #[test]
    fn a_new_account_begins_with_what_was_found() {
        let mut promises = promises();
        let found = places(&[("raw0", 1, 3), ("file", 4, 4)]);
        let then = promises.clone();
        promises.hear("begun raw0 7\n").unwrap();
        promises.settle(&found);
        assert_eq!(promises.next(), 8, "a number is used once");
        assert!(promises.broken(&found, Expected::Durable, "").is_empty());
        let older = places(&[("raw0", 0, 0), ("file", 4, 4)]);
        assert_eq!(promises.broken(&older, Expected::Durable, "").len(), 1);
        promises.go_back_to(then);
        assert_eq!(promises.next(), 8);
        let found = places(&[("raw0", 1, 1), ("file", 4, 4)]);
        assert!(promises.broken(&found, Expected::Durable, "").is_empty());
    }

    #[test]
    fn a_writer_who_contradicts_itself_is_not_believed() {
        for wrong in [
            "done raw0 3\ndone raw0 2\n",
            "begun raw0 2\n",
            "durable raw0 1\n",
            "done file\n",
            "said raw0 9\n",
            "begun raw0 nine\n",
        ] {
            let mut promises = promises();
            assert!(promises.hear(wrong).is_err(), "{wrong:?}");
        }
        let mut promises = promises();
        promises.hear("begun raw0 5\nfailed raw0 5\nbegun ra").unwrap();
        assert_eq!(promises.take_failed(), ["failed raw0 5"]);
        assert!(promises.take_failed().is_empty());
        assert_eq!(promises.next(), 6);
    }

    #[test]
    fn places_are_read_from_lines_and_from_bytes() {
        let lines = |_: &str| 256;
        let text = "    256 raw0 00000007\n    100 file 00000008\n    156 file 00000009\n";
        let expected = places(&[("raw0", 7, 7), ("file", 8, 9)]);
        assert_eq!(found(text, lines).unwrap(), expected);
        for wrong in ["255 raw0 00000007\n", "256 raw0\n", "256 raw0 x\n"] {
            assert!(found(wrong, lines).is_err(), "{wrong:?}");
        }
        let block = |number: u64| format!("raw007 {number:08}\n").repeat(4);
        let whole = block(17);
        assert_eq!(whole.len(), 4 * LINE_BYTES);
        let read = |text: &str| found_in(text.as_bytes(), "raw007");
        assert_eq!(read(&whole).unwrap(), Some((17, 17)));
        assert_eq!(read(&(block(17) + &block(18))).unwrap(), Some((17, 18)));
        assert_eq!(read("\0\0\0").unwrap(), None);
        assert!(read(&whole.replace("007", "008")).is_err());
        assert!(read(&whole[1..]).is_err());
    }
}
