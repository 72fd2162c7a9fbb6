//! What a server spends, as its machine says over ssh: any server, and nothing of ours there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use rubus_command::places;
use rubus_host::clock;
use rubus_host::net::ssh::{Options, Said, Session, Ssh};
use rubus_measure::Meter;
use rubus_remote::Destination;
use rubus_remote::meter::{Answers, Metered, Reading};
use rubus_vocabulary::result::ServerEnd;

/// How long one wait is; between waits, Ctrl-C is looked for.
const MOMENT: Duration = Duration::from_millis(100);
/// How long an answer may take, once there is a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// A machine that is connected and answers.
#[derive(Debug)]
pub struct OverSsh {
    metered: Metered,
    talk: Mutex<Talk>,
}

#[derive(Debug)]
struct Talk {
    session: Session,
    answers: Answers,
    /// Number of the last question.
    asked: u64,
    last: Option<Reading>,
    /// What ssh said besides.
    said: Vec<String>,
    /// Has the connection's socket, so it goes last.
    _ssh: Ssh,
}

impl OverSsh {
    /// Connects and asks once. The user may be asked for passwords meanwhile.
    ///
    /// # Errors
    /// In words, when the machine cannot be reached, or the program does not run there.
    pub fn connect(
        metered: Metered,
        options: &Options,
        cancel: &AtomicBool,
    ) -> anyhow::Result<OverSsh> {
        let destination = metered.destination.clone();
        let runtime = places::runtime_directory();
        let ssh = Ssh::new(destination.as_str(), options, runtime.as_deref())
            .with_context(|| format!("cannot ask {destination} what it spends"))?;
        let mut talk = Talk {
            session: ssh.open(&metered.command())?,
            answers: Answers::of(&metered),
            asked: 0,
            last: None,
            said: Vec::new(),
            _ssh: ssh,
        };
        let asked = talk.ask();
        let first = loop {
            match talk.answer(&asked, MOMENT) {
                Ok(Some(reading)) => break reading,
                Ok(None) if cancel.load(Ordering::Relaxed) => bail!("interrupted while connecting"),
                Ok(None) => {}
                Err(why) => bail!(
                    "cannot ask {destination} over ssh what it spends:\n  {why}\n\
                     When `ssh {destination} true` works, this works too."
                ),
            }
        };
        if let (Some(program), 0) = (&metered.program, first.processes()) {
            bail!(
                "no process called '{program}' is to be seen on {destination}: `ssh {destination} ps -e` shows the \
                 names; without a name (ssh://{}) all of that machine is counted",
                destination.as_str().trim_start_matches("ssh://")
            );
        }
        talk.last = Some(first);
        Ok(OverSsh { metered, talk: Mutex::new(talk) })
    }
}

impl OverSsh {
    /// What the machine says now.
    ///
    /// # Errors
    /// In words, when it does not answer in time, or not any more.
    pub fn reading(&self) -> Result<Reading, String> {
        self.talk().reading(&self.metered.destination)
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talk {
    fn ask(&mut self) -> std::io::Result<()> {
        self.asked += 1;
        self.session.say(&self.asked.to_string())
    }

    /// The answer to the last question; nothing if it does not come within that time.
    fn answer(
        &mut self,
        asked: &std::io::Result<()>,
        most: Duration,
    ) -> Result<Option<Reading>, String> {
        let end = clock::now() + most;
        loop {
            match self.session.next(end.saturating_duration_since(clock::now())) {
                Said::Out(line) => match self.answers.line(&line) {
                    Some((number, answer)) if number == self.asked => return answer.map(Some),
                    _ => {}
                },
                Said::Err(line) => self.said.push(line),
                Said::Nothing => return Ok(None),
                Said::End => {
                    self.said.retain(|line| !line.trim().is_empty());
                    return Err(match (self.said.is_empty(), asked) {
                        (false, _) => self.said.join("\n  "),
                        (true, Err(error)) => error.to_string(),
                        (true, Ok(())) => "the connection ended".into(),
                    });
                }
            }
        }
    }
}

impl Talk {
    /// What is read now.
    fn reading(&mut self, destination: &Destination) -> Result<Reading, String> {
        let asked = self.ask();
        match self.answer(&asked, PATIENCE) {
            Ok(Some(reading)) => Ok(reading),
            Ok(None) => {
                let limit = PATIENCE.as_secs();
                Err(format!("{destination} did not answer within {limit} s"))
            }
            Err(why) => Err(format!("{destination}: {why}")),
        }
    }
}

impl Meter for OverSsh {
    fn cpu_ns(&self) -> Result<u64, String> {
        let mut talk = self.talk();
        let destination = &self.metered.destination;
        let reading = talk.reading(destination)?;
        let earlier = talk.last.replace(reading.clone());
        let Some(program) = &self.metered.program else {
            return Ok(reading.machine_ns());
        };
        if earlier.is_some_and(|earlier| reading.has_lost(&earlier)) {
            Err(format!(
                "a process of {program} on {destination} ended, and what it had spent is lost"
            ))
        } else {
            Ok(reading.program_ns())
        }
    }

    fn counts(&self) -> ServerEnd {
        match &self.metered.program {
            Some(name) => ServerEnd::Program(name.clone()),
            None => ServerEnd::Machine,
        }
    }
}
