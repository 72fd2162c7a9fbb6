//! One machine at work: from the copied program to its last result.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rubus_host::clock;
use rubus_host::files::{kept_file, own_files};
use rubus_host::net::ssh::{Said, Session};
use rubus_machine::parse::stat::{self, CpuTimes};
use rubus_remote::script::{self, ABANDONED, BEAT, STOP};
use rubus_runs::record::{self, Record};
use rubus_vocabulary::result::{RemoteFacts, Run};
use rubus_vocabulary::units::bytes_iec;

use super::connection::{Connection, MOMENT};
use super::copy::{self, Program};
use super::screen::Screen;
use super::task::{CAPTURE, Task};
use super::told::Told;

/// How long a machine may take to stop when it is asked to. Over there, what hangs is cut off after some seconds.
const STOPPING: Duration = Duration::from_secs(10);

/// A machine of a fleet is given up after this silence: its disk may never answer.
const SILENCE: Duration = Duration::from_secs(600);

/// What a machine may send in all, and what of it may be something else than records.
const MAX_SENT_BYTES: u64 = 1 << 30;
const MAX_NOISE_BYTES: u64 = 1 << 20;
/// Results of one target, and further lines of an answer, at most.
const MAX_RESULTS: usize = 16;

/// Does the task on a connected machine and clears up.
///
/// # Errors
/// When no program runs there, or the connection is lost.
pub fn on(
    mut connection: Connection,
    task: &Task,
    screen: &Screen,
    tell: &dyn Fn(Told),
) -> anyhow::Result<u8> {
    let done = in_order(&mut connection, task, screen, tell);
    screen.status(connection.number, "clearing up");
    let number = connection.number;
    if let Err(error) = connection.close() {
        // Where the connection is gone, the error above says so already.
        if done.is_ok() {
            screen.from(number, &format!("{error:#}"));
        }
    }
    done
}

fn in_order(
    connection: &mut Connection,
    task: &Task,
    screen: &Screen,
    tell: &dyn Fn(Told),
) -> anyhow::Result<u8> {
    let program = copy::install(connection, screen)?;
    for (path, name) in &task.files {
        copy::send(connection, path, name, screen)?;
    }
    let mut words = program.words.clone();
    words.extend(task.words(connection.directory()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let session = connection.ssh.run(&script::run(connection.directory(), &words))?;
    screen.status(connection.number, "beginning");
    let status = Follow {
        connection,
        program: &program,
        screen,
        tell,
        task,
        results: 0,
        records: 0,
        sent_bytes: 0,
        noise_bytes: 0,
        cpus: cpus(),
        begun: clock::now(),
    }
    .until_the_end(session)?;
    if let (Some(path), 0) = (&task.capture, status) {
        fetch_capture(connection, &program, path)?;
    }
    Ok(status)
}

/// Listens to a running task.
struct Follow<'a> {
    connection: &'a mut Connection,
    program: &'a Program,
    screen: &'a Screen,
    tell: &'a dyn Fn(Told),
    task: &'a Task,
    /// How many came.
    results: usize,
    /// How many records came, results included.
    records: u64,
    /// Bytes that came, and those of them that were no records.
    sent_bytes: u64,
    noise_bytes: u64,
    /// The processors here when the last result came, or at the start.
    cpus: Vec<CpuTimes>,
    begun: Instant,
}

impl Follow<'_> {
    fn until_the_end(mut self, mut session: Session) -> anyhow::Result<u8> {
        let mut last_beat = clock::now();
        let mut last_word = clock::now();
        let mut stopping: Option<Instant> = None;
        loop {
            let said = session.next(MOMENT);
            let before = self.records;
            if self.screen.is_of_fleet() && last_word.elapsed() > SILENCE {
                let _ = session.say(STOP);
                bail!(
                    "{} said nothing for {} s, and was given up; it ends by itself when the \
                     connection is closed",
                    self.connection.name,
                    SILENCE.as_secs()
                );
            }
            self.count(&said)?;
            match said {
                Said::Out(line) => self.take(&line)?,
                Said::Err(line) if line.trim().is_empty() => {}
                Said::Err(line) => self.screen.from(self.connection.number, &line),
                Said::Nothing => {}
                Said::End => break,
            }
            if self.records > before {
                last_word = clock::now();
            }
            if last_beat.elapsed() >= BEAT {
                // Whether it is still read is seen at its end.
                let _ = session.say("");
                last_beat = clock::now();
            }
            if stopping.is_none() && self.connection.is_cancelled() {
                let _ = session.say(STOP);
                stopping = Some(clock::now());
                if self.records == 0 {
                    bail!("{}: interrupted before anything was measured", self.connection.name);
                }
            }
            if stopping.is_some_and(|since| since.elapsed() > STOPPING) {
                bail!(
                    "{} did not stop within {} s; it ends by itself when the connection is closed",
                    self.connection.name,
                    STOPPING.as_secs()
                );
            }
        }
        let status = session.finish(Duration::from_secs(5));
        self.judge(status.and_then(|status| status.code()))
    }

    /// Counts what came.
    ///
    /// # Errors
    /// When it is more than any measurement has to say.
    fn count(&mut self, said: &Said) -> anyhow::Result<()> {
        let (Said::Out(line) | Said::Err(line)) = said else {
            return Ok(());
        };
        let bytes = line.len() as u64 + 1;
        self.sent_bytes += bytes;
        let name = &self.connection.name;
        if matches!(said, Said::Err(_)) {
            self.noise_bytes += bytes;
        }
        if self.noise_bytes > MAX_NOISE_BYTES || self.sent_bytes > MAX_SENT_BYTES {
            bail!("{name} sent {} and does not end, and was given up", bytes_iec(self.sent_bytes));
        }
        if self.results > self.task.targets.saturating_mul(MAX_RESULTS) + MAX_RESULTS {
            bail!("{name} sent {} results, more than were asked for", self.results);
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> anyhow::Result<()> {
        let number = self.connection.number;
        let name = &self.connection.name;
        let record = record::parse(line);
        match &record {
            Some(_) => self.records += 1,
            None => self.noise_bytes += line.len() as u64 + 1,
        }
        match record {
            // A login script, or a motto of the day.
            None => {}
            Some(Err(error)) => bail!("{name} sent something that this rubus cannot read: {error}"),
            Some(Ok(Record::Live(at))) => self.screen.progress(number, &at),
            Some(Ok(Record::Line(line))) => self.screen.done(number, &line),
            Some(Ok(Record::Run(run))) => {
                let run = self.with_facts(*run);
                self.results += 1;
                (self.tell)(Told::Run(Box::new(run)));
            }
            Some(Ok(Record::Machine(machine))) => {
                self.results += 1;
                (self.tell)(Told::Machine(machine));
            }
        }
        Ok(())
    }

    /// The run with the way to it and how busy this end was.
    fn with_facts(&mut self, run: Run) -> Run {
        let now = cpus();
        let before = std::mem::replace(&mut self.cpus, now);
        let known = !before.is_empty() && !self.cpus.is_empty();
        Run {
            on: Some(RemoteFacts {
                destination: self.connection.name.to_string(),
                ssh_version: self.connection.ssh.version().map(str::to_string),
                binary: self.program.described.clone(),
                round_trip_ms: self.connection.round_trip_ms,
                local_cpu: known.then(|| stat::shares(&before, &self.cpus)),
            }),
            ..run
        }
    }

    /// How it ended. Its own words, if it failed, are already on the screen.
    fn judge(&mut self, status: Option<i32>) -> anyhow::Result<u8> {
        let name = self.connection.name.to_string();
        match status {
            Some(0 | 1) if self.results == 0 => {
                bail!("{name} ended without a result; what it said is above")
            }
            Some(status @ 0..=5) => Ok(status as u8),
            Some(255) | None => {
                let said = self.connection.complaints();
                let said =
                    if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
                let kept = match self.results {
                    0 => "nothing was kept".to_string(),
                    _ => format!("{} of {} results came", self.results, self.task.targets),
                };
                bail!(
                    "the connection to {name} was lost after {:.0} s{said}; {kept}. What ran there ends by \
                     itself and removes what was copied",
                    self.begun.elapsed().as_secs_f64()
                )
            }
            Some(status) if status == i32::from(ABANDONED) => bail!(
                "{name} heard nothing from here for too long (did this machine sleep?) and ended the \
                 measurement"
            ),
            Some(137) => bail!(
                "the measurement on {name} was killed, perhaps because its memory ran out (`dmesg` there \
                 tells)"
            ),
            Some(status) => bail!("the measurement on {name} ended with status {status}"),
        }
    }
}

/// The most that a capture of another machine may have: as much as one may have when it is read, with room for its headers.
const MAX_CAPTURE_BYTES: u64 = 256 << 20;

/// Brings the capture back.
fn fetch_capture(connection: &Connection, program: &Program, path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot save the capture of {}", connection.name);
    // What is there stays, and a link is not followed.
    let file = own_files::create_new(path, 0o666)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let there = format!("{}/{CAPTURE}", connection.directory());
    // With sudo it belongs to root.
    let mut words: Vec<&str> = program.words.iter().map(String::as_str).collect();
    words.pop();
    words.extend(["cat", &there]);
    let command = script::run("", &words);
    let session = connection.ssh.run_into(&command, file, MAX_CAPTURE_BYTES)?;
    let done = connection.complete(session).and_then(|done| {
        anyhow::ensure!(done.status == Some(0), "{}", done.why());
        Ok(())
    });
    // A part of a capture is none; if it cannot be removed, the error is told anyway.
    done.inspect_err(|_| drop(kept_file::remove(path))).with_context(cannot)
}

/// The processors here; empty where they cannot be read.
fn cpus() -> Vec<CpuTimes> {
    let text = own_files::text(Path::new("/proc/stat")).unwrap_or_default();
    stat::parse(&text)
}
