//! The conversation with the agent on a board, over a serial port of its own (kernel messages go to
//! another). Lines, both ways; a lost or foreign line ends the conversation with an error.
//!
//! | harness | agent | meaning |
//! |---|---|---|
//! | | `@READY uptime` | once, when it listens |
//! | `PART base64` | `@PART` | append to the request |
//! | `RUN user seconds` | output, `@STATUS n` | run the request as a shell script |
//! | `PULL` | output, `@SUM sha256`, `@STATUS n` | send the paths named in the request as a tar archive |
//! | `OFF` | `@OFF` | switch off |
//!
//! Output is two sections: `o ` before each line of standard output (or of base64), an empty line
//! when the last one was complete, `@OUTPUT`; then the same with `e ` and `@COMPLAINT` for standard
//! error. A command's output reaches the harness while it runs, its complaints after it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How many characters of a request go into one line. A serial port's queue holds 4096.
const PART_CHARACTERS: usize = 1024;

/// How long the agent may take for something that is not a command.
const REPLY_LIMIT: Duration = Duration::from_secs(60);

/// The harness's end of the conversation.
#[derive(Debug)]
pub struct Channel {
    output: UnixStream,
    lines: Receiver<Vec<u8>>,
    /// What the followed script said so far.
    followed: Vec<u8>,
}

/// What a command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Exit status as a shell gives it: 124 when the command was ended by its time limit.
    pub status: i32,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub complaint: Vec<u8>,
    /// The agent's checksum of what it sent, when it gave one.
    pub sum: Option<String>,
}

impl Outcome {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn complaint_text(&self) -> String {
        String::from_utf8_lossy(&self.complaint).into_owned()
    }
}

impl Channel {
    /// Takes over a connection to the board's port.
    ///
    /// # Errors
    /// When the connection cannot be shared with the thread that reads it.
    pub fn over(connection: UnixStream) -> Result<Self> {
        let input = connection.try_clone().context("could not share a socket")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                let mut line = Vec::new();
                match input.read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                let complete = line.pop() == Some(b'\n');
                if !complete || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { output: connection, lines, followed: Vec::new() })
    }

    /// Waits until the agent listens; gives the board's uptime in seconds. `alive` is asked every
    /// second and ends the wait with its error.
    ///
    /// # Errors
    /// When `limit` passes, or what `alive` says.
    pub fn wait_ready(
        &self,
        limit: Duration,
        mut alive: impl FnMut() -> Result<()>,
    ) -> Result<f64> {
        let end = Instant::now() + limit;
        loop {
            match self.lines.recv_timeout(Duration::from_secs(1)) {
                Ok(line) => {
                    // Before this line is whatever the kernel sent while it probed the port.
                    let text = String::from_utf8_lossy(&line);
                    if let Some(uptime) = text.strip_prefix("@READY ") {
                        return uptime.parse().context("the agent's uptime is no number");
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The reader ended: the emulator did too, and `alive` knows how.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(Duration::from_millis(200));
                    alive()?;
                    bail!("the board closed its port before it was ready");
                }
            }
            alive()?;
            if Instant::now() > end {
                bail!("the board was not ready after {} s", limit.as_secs());
            }
        }
    }

    /// Runs a shell script on the board as `user`, for at most `limit`. `show` sees each piece of
    /// output as it comes.
    ///
    /// # Errors
    /// When the agent does not answer as the protocol says.
    pub fn run(
        &mut self,
        script: &str,
        user: &str,
        limit: Duration,
        show: &mut dyn FnMut(&[u8]),
    ) -> Result<Outcome> {
        self.request(script)?;
        self.send(&format!("RUN {user} {}", limit.as_secs().max(1)))?;
        // The agent ends the command itself, 10 s later by force; a board can be slow to say so.
        self.outcome(limit + Duration::from_secs(40), show)
    }

    /// Starts a shell script that is followed with [`Channel::follow`]. Nothing else can be asked of
    /// the board until it has ended.
    ///
    /// # Errors
    /// When the agent does not answer as the protocol says.
    pub fn begin(&mut self, script: &str, user: &str, limit: Duration) -> Result<()> {
        self.request(script)?;
        self.send(&format!("RUN {user} {}", limit.as_secs().max(1)))?;
        self.followed = Vec::new();
        Ok(())
    }

    /// Shows `see` the output of what was begun, piece by piece, until `see` gives `false` or `limit`
    /// passes; the answer is `None` then, and it can be followed on. At its end, what it left.
    ///
    /// # Errors
    /// As [`Channel::begin`].
    pub fn follow(
        &mut self,
        limit: Duration,
        see: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<Outcome>> {
        let end = Instant::now() + limit;
        loop {
            let line = match self.lines.recv_timeout(left(end)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => bail!("the board went away"),
            };
            if let Some(text) = line.strip_prefix(b"o ") {
                let start = self.followed.len();
                self.followed.extend_from_slice(text);
                self.followed.push(b'\n');
                if !see(&self.followed[start..]) {
                    return Ok(None);
                }
            } else if line == b"@OUTPUT" {
                let output = std::mem::take(&mut self.followed);
                return self.ending(output, Instant::now() + REPLY_LIMIT).map(Some);
            }
        }
    }

    /// Gives a line to the script that is followed, which reads it from the port.
    ///
    /// # Errors
    /// When the emulator ended.
    pub fn answer(&mut self, line: &str) -> Result<()> {
        self.send(line)
    }

    /// Fetches files as a gzip-compressed tar archive with names relative to `/`.
    ///
    /// # Errors
    /// When a path does not exist on the board or the archive arrived damaged.
    pub fn pull(&mut self, paths: &[&str], limit: Duration) -> Result<Vec<u8>> {
        let list: String =
            paths.iter().map(|path| format!("{}\n", path.trim_start_matches('/'))).collect();
        self.request(&list)?;
        self.send("PULL")?;
        let outcome = self.outcome(limit, &mut |_| {})?;
        if outcome.status != 0 {
            bail!("could not pack {paths:?} on the board: {}", outcome.complaint_text().trim());
        }
        let archive = base64_decoded(&outcome.output).context("the archive arrived damaged")?;
        let sum = sha256(&archive);
        if outcome.sum.as_deref() != Some(&sum) {
            bail!("the archive arrived damaged: {sum} instead of {:?}", outcome.sum);
        }
        Ok(archive)
    }

    /// Asks the board to switch itself off.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub fn switch_off(&mut self) -> Result<()> {
        self.send("OFF")?;
        self.expect("@OFF")
    }

    fn request(&mut self, text: &str) -> Result<()> {
        let encoded = base64_encoded(text.as_bytes());
        for part in encoded.as_bytes().chunks(PART_CHARACTERS) {
            self.send(&format!("PART {}", String::from_utf8_lossy(part)))?;
            self.expect("@PART")?;
        }
        Ok(())
    }

    fn send(&mut self, line: &str) -> Result<()> {
        self.output
            .write_all(format!("{line}\n").as_bytes())
            .context("could not write to the board's port: the emulator ended")
    }

    fn expect(&self, wanted: &str) -> Result<()> {
        let line = self.next(REPLY_LIMIT)?;
        if line != wanted.as_bytes() {
            bail!("the agent said {:?} instead of {wanted}", String::from_utf8_lossy(&line));
        }
        Ok(())
    }

    fn next(&self, limit: Duration) -> Result<Vec<u8>> {
        self.lines.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                anyhow::anyhow!("the board did not answer within {} s", limit.as_secs())
            }
            RecvTimeoutError::Disconnected => anyhow::anyhow!("the board went away"),
        })
    }

    fn outcome(&self, limit: Duration, show: &mut dyn FnMut(&[u8])) -> Result<Outcome> {
        let end = Instant::now() + limit;
        let output = self.section(b"o ", "@OUTPUT", end, show)?;
        self.ending(output, end)
    }

    /// What comes after a command's output.
    fn ending(&self, output: Vec<u8>, end: Instant) -> Result<Outcome> {
        let complaint = self.section(b"e ", "@COMPLAINT", end, &mut |_| {})?;
        let mut sum = None;
        loop {
            let line = self.next(left(end))?;
            let text = String::from_utf8_lossy(&line);
            if let Some(value) = text.strip_prefix("@SUM ") {
                sum = Some(value.to_owned());
            } else if let Some(value) = text.strip_prefix("@STATUS ") {
                let status = value.parse().context("the agent's status is no number")?;
                return Ok(Outcome { status, output, complaint, sum });
            } else {
                bail!("the agent said {text:?} instead of a status");
            }
        }
    }

    fn section(
        &self,
        prefix: &[u8],
        end_mark: &str,
        end: Instant,
        show: &mut dyn FnMut(&[u8]),
    ) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut complete = false;
        loop {
            let line = self.next(left(end))?;
            if let Some(text) = line.strip_prefix(prefix) {
                let start = content.len();
                content.extend_from_slice(text);
                content.push(b'\n');
                show(&content[start..]);
            } else if line.is_empty() {
                complete = true;
            } else if line == end_mark.as_bytes() {
                // Without the empty line, the mark's own line break ended the last line.
                if !complete {
                    content.pop();
                }
                return Ok(content);
            } else {
                let text = String::from_utf8_lossy(&line);
                bail!("the agent said {text:?} in the middle of a command's output");
            }
        }
    }
}

/// Time left until a moment.
fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

/// SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    format!("{:x}", Sha256::digest(bytes))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            if at > group.len() {
                text.push('=');
            } else {
                text.push(char::from(BASE64[(bits >> (18 - 6 * at)) as usize & 63]));
            }
        }
    }
    text
}

fn base64_decoded(text: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for &character in text {
        if matches!(character, b'\n' | b'=') {
            continue;
        }
        let value = BASE64.iter().position(|&known| known == character);
        let value = value.with_context(|| format!("{character:#04x} is not base64"))?;
        bits = bits << 6 | u32::try_from(value)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel whose board has already said all this.
    fn said(text: &[u8]) -> Channel {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(text).unwrap();
        // The board stays connected: a test that waits for more must time out, not end.
        std::mem::forget(theirs.try_clone().unwrap());
        Channel::over(ours).unwrap()
    }

    fn outcome(text: &[u8]) -> Result<Outcome> {
        said(text).outcome(Duration::from_secs(5), &mut |_| {})
    }

    #[test]
    fn last_line_break_is_kept_exactly() {
        let with = outcome(b"o a\no \no b\n\n@OUTPUT\n\n@COMPLAINT\n@STATUS 3\n").unwrap();
        assert_eq!((with.status, with.output.as_slice()), (3, b"a\n\nb\n".as_slice()));
        let without = outcome(b"o a\n@OUTPUT\ne x\n@COMPLAINT\n@STATUS 0\n").unwrap();
        assert_eq!(without.output, b"a");
        assert_eq!(without.complaint, b"x");
        let empty = outcome(b"\n@OUTPUT\n\n@COMPLAINT\n@STATUS 0\n").unwrap();
        assert_eq!((empty.output.len(), empty.complaint.len()), (0, 0));
    }

    #[test]
    fn output_may_look_like_the_protocol_and_need_not_be_text() {
        let outcome = outcome(b"o @STATUS 0\no \xff\0\r\n\n@OUTPUT\n\n@COMPLAINT\n@STATUS 1\n");
        let outcome = outcome.unwrap();
        assert_eq!(outcome.output, b"@STATUS 0\n\xff\0\r\n");
        assert_eq!(outcome.status, 1);
    }

    #[test]
    fn a_foreign_line_is_an_error() {
        let error = outcome(b"o a\n[ 3.1] oops\n@OUTPUT\n").unwrap_err().to_string();
        assert!(error.contains("[ 3.1] oops"), "{error}");
    }

    #[test]
    fn a_script_can_be_followed_piece_by_piece() {
        let mut board = said(b"@PART\no 1\no 2\no 3\n\n@OUTPUT\n\n@COMPLAINT\n@STATUS 7\n");
        let limit = Duration::from_secs(5);
        board.begin("x", "root", limit).unwrap();
        let mut seen = Vec::new();
        let mut see = |piece: &[u8]| {
            seen.extend_from_slice(piece);
            seen.len() < 4
        };
        assert_eq!(board.follow(limit, &mut see).unwrap(), None);
        assert_eq!(seen, b"1\n2\n");
        let outcome = board.follow(limit, &mut |_| true).unwrap().unwrap();
        assert_eq!((outcome.status, outcome.output.as_slice()), (7, b"1\n2\n3\n".as_slice()));
    }

    #[test]
    fn following_ends_when_time_is_over() {
        let mut silent = said(b"@PART\n");
        silent.begin("x", "root", Duration::from_secs(5)).unwrap();
        let outcome = silent.follow(Duration::from_millis(50), &mut |_| true);
        assert_eq!(outcome.unwrap(), None);
    }

    #[test]
    fn base64_is_the_usual_one() {
        for (plain, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64_encoded(plain.as_bytes()), encoded);
            assert_eq!(base64_decoded(encoded.as_bytes()).unwrap(), plain.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(base64_decoded(base64_encoded(&all).as_bytes()).unwrap(), all);
        assert!(base64_decoded(b"a*bc").is_err());
    }
}
