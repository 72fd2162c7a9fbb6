//! The way to one machine: connected, with a private place over there, and timed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rubus_command::places;
use rubus_host::clock;
use rubus_host::net::ssh::{Said, Session, Ssh};
use rubus_remote::answer::{KeeperAnswer, Place};
use rubus_remote::script;
use rubus_vocabulary::units::bytes_iec;

use super::candidates::Candidates;
use super::screen::Screen;
use super::task::Task;
use super::way::Remote;
use crate::inventory::Board;

/// How long one wait is; between waits, Ctrl-C is looked for.
pub const MOMENT: Duration = Duration::from_millis(100);
/// While connecting, ssh's output is shown after this pause: it may want something of the user.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the other end may take to clear up.
const CLEARING: Duration = Duration::from_secs(15);
/// The same after Ctrl-C: by itself, it clears up when the connection is closed.
const CLEARING_CANCELLED: Duration = Duration::from_secs(2);
/// How often the way is timed, and how long one time may take.
const ECHOES: u32 = 6;
const ECHO_LIMIT: Duration = Duration::from_secs(5);
/// How long a machine may take to answer where it cannot ask its user for anything.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How long a machine of a fleet may take for a copy or the like.
const COMPLETION_LIMIT: Duration = Duration::from_secs(600);
/// What a machine may say before its answer: a greeting, a motto of the day, ssh's complaints.
const MAX_SAID_BYTES: usize = 256 << 10;
/// What a command that copies or asks may say.
const MAX_COMPLETED_BYTES: usize = 16 << 20;
/// Room beside the program itself.
const SPARE_BYTES: u64 = 1 << 20;

/// A machine that is connected.
pub struct Connection {
    /// Its number in the list.
    pub number: usize,
    /// The machine's name.
    pub name: String,
    /// How to run things there.
    pub ssh: Ssh,
    /// What is known of it.
    pub place: Place,
    /// The least time there and back, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// What can be copied to it, or what it has.
    pub remote: Remote,
    /// Programs to choose from.
    pub candidates: Candidates,
    keeper: Session,
    cancel: Arc<AtomicBool>,
    /// For one command that copies or asks.
    limit: Option<Duration>,
}

/// Whether ssh may ask for passwords and the like on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Questions {
    Allowed,
    /// What would be asked is a failure.
    Forbidden,
}

/// What all connections of a command have in common.
pub struct Common<'a> {
    pub remote: &'a Remote,
    pub candidates: &'a Candidates,
    pub task: &'a Task,
    pub screen: &'a Screen,
    pub cancel: &'a Arc<AtomicBool>,
    /// Whether there is more than one machine, or a list of them.
    pub is_fleet: bool,
}

/// A machine that ssh did not reach.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub struct NotReached {
    words: String,
    /// ssh's last words.
    pub reason: String,
    /// ssh might have reached it if its user had been asked.
    pub wants_an_answer: bool,
}

/// What a command at the other end gave.
pub struct Completed {
    /// Its exit status; none when ssh was killed.
    pub status: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error, and ssh's.
    pub err: String,
}

impl Connection {
    /// Connects. The user may be asked for passwords meanwhile.
    ///
    /// # Errors
    /// When there is no ssh, the machine cannot be reached ([`NotReached`]) or is of another kind,
    /// or there is no place for the program; with ssh's own words.
    pub fn open(
        number: usize,
        board: &Board,
        common: &Common<'_>,
        questions: Questions,
    ) -> anyhow::Result<Connection> {
        let Common { remote, .. } = common;
        let name = &board.name;
        let options = remote.options(board, questions == Questions::Forbidden);
        let runtime = places::runtime_directory();
        let ssh = Ssh::new(board.destination.as_str(), &options, runtime.as_deref())
            .with_context(|| format!("cannot measure on {name}"))?;
        let needed = common.candidates.max_bytes() + common.task.files_bytes()? + SPARE_BYTES;
        let mut keeper = ssh.open(&script::keeper(needed))?;
        let place = match wait_for_place(&mut keeper, number, common, questions)? {
            Ok(place) => place,
            Err(said) => {
                let status = keeper.finish(MOMENT).and_then(|status| status.code());
                return Err(unreachable(board, remote, status, &said).into());
            }
        };
        if place.system != "Linux" {
            bail!("{name} runs {}, and rubus measures only Linux machines", place.system);
        }
        if place.directory.is_none() && !place.tried.is_empty() {
            bail!(place.no_directory(name, &bytes_iec(needed)));
        }
        let mut connection = Connection {
            number,
            name: name.clone(),
            ssh,
            place,
            round_trip_ms: None,
            remote: (*remote).clone(),
            candidates: common.candidates.clone(),
            keeper,
            cancel: Arc::clone(common.cancel),
            limit: common.is_fleet.then_some(COMPLETION_LIMIT),
        };
        connection.round_trip_ms = connection.time_the_way();
        Ok(connection)
    }

    /// The private directory over there.
    pub fn directory(&self) -> &str {
        self.place.directory.as_deref().unwrap_or_default()
    }

    /// Whether the user wants to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Waits for a command's end and gives what it said.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn complete(&self, mut session: Session) -> anyhow::Result<Completed> {
        let (mut out, mut err) = (String::new(), String::new());
        let begun = clock::now();
        loop {
            match session.next(MOMENT) {
                Said::Out(line) => out.extend([&line, "\n"]),
                Said::Err(line) => err.extend([&line, "\n"]),
                Said::Nothing => {}
                Said::End => break,
            }
            if out.len() + err.len() > MAX_COMPLETED_BYTES {
                bail!(
                    "{} sent more than {} instead of an answer",
                    self.name,
                    bytes_iec(MAX_COMPLETED_BYTES as u64)
                );
            }
            if self.is_cancelled() {
                bail!("{}: interrupted before anything was measured", self.name);
            }
            if let Some(limit) = self.limit.filter(|limit| begun.elapsed() > *limit) {
                bail!("{} did not take a copy within {} s", self.name, limit.as_secs());
            }
        }
        let status = session.finish(self.clearing()).and_then(|status| status.code());
        Ok(Completed { status, out, err })
    }

    /// What ssh says of the connection while something runs.
    pub fn complaints(&mut self) -> Vec<String> {
        const MAX_LINES: usize = 20;
        let mut lines = Vec::new();
        while lines.len() < MAX_LINES
            && let Said::Err(line) | Said::Out(line) = self.keeper.next(Duration::ZERO)
        {
            lines.push(line);
        }
        lines
    }

    /// Ends the connection; the keeper over there removes its directory.
    ///
    /// # Errors
    /// When it did not say so in time, with what may be left.
    pub fn close(self) -> anyhow::Result<()> {
        let limit = self.clearing();
        let status = self.keeper.finish(limit);
        if status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        bail!(
            "{} did not confirm that it cleared up; if the directory {} is still there, it can be removed",
            self.name,
            self.place.directory.as_deref().unwrap_or_default()
        )
    }

    fn clearing(&self) -> Duration {
        if self.is_cancelled() { CLEARING_CANCELLED } else { CLEARING }
    }

    /// The least of a few times there and back through the connection that stands.
    fn time_the_way(&self) -> Option<f64> {
        let mut session = self.ssh.run(&script::echo()).ok()?;
        let mut times = Vec::new();
        for number in 0..ECHOES {
            let sent = format!("rubus-echo {number}");
            let since = clock::now();
            session.say(&sent).ok()?;
            loop {
                // Where lines come without end, none of them is waited for.
                let left = ECHO_LIMIT.checked_sub(since.elapsed())?;
                match session.next(left.min(MOMENT)) {
                    Said::Out(line) if line == sent => break,
                    Said::End => return None,
                    // A greeting.
                    Said::Nothing | Said::Out(_) | Said::Err(_) => {}
                }
                if self.is_cancelled() {
                    return None;
                }
            }
            // The first one also waits for the start of the command.
            if number > 0 {
                times.push(since.elapsed().as_secs_f64() * 1e3);
            }
        }
        times.into_iter().min_by(f64::total_cmp)
    }
}

/// What was said instead of an answer.
struct Instead {
    ssh: Vec<String>,
    shell: Vec<String>,
}

/// Reads the keeper's answer, however long the user needs for a password.
fn wait_for_place(
    keeper: &mut Session,
    number: usize,
    common: &Common<'_>,
    questions: Questions,
) -> anyhow::Result<Result<Place, Instead>> {
    let Common { screen, cancel, .. } = common;
    let begun = clock::now();
    let mut answer = KeeperAnswer::default();
    let (mut said, mut shown) = (Vec::new(), 0);
    let mut last = clock::now();
    // Who says something on standard output has let us in, and waits for no password.
    let (mut let_in, mut said_bytes) = (None, 0);
    loop {
        let next = keeper.next(MOMENT);
        if let Said::Out(line) | Said::Err(line) = &next {
            last = clock::now();
            said_bytes += line.len() + 1;
        }
        if matches!(next, Said::Out(_)) {
            let_in.get_or_insert(last);
        }
        if let Some(why) = limit_passed(questions, begun, let_in, said_bytes) {
            said.push(why);
            return Ok(Err(Instead { ssh: said, shell: answer.noise().to_vec() }));
        }
        match next {
            Said::Out(line) => {
                if let Some(place) = answer.line(&line) {
                    said.drain(shown..).for_each(|line: String| screen.note(number, &line));
                    return Ok(Ok(place));
                }
            }
            // ssh ends its own lines with CR LF.
            Said::Err(line) => said.push(line.trim_end().into()),
            Said::Nothing if last.elapsed() >= PAUSE => {
                said[shown..].iter().for_each(|line| screen.note(number, line));
                shown = said.len();
            }
            Said::Nothing => {}
            Said::End => {
                return Ok(Err(Instead { ssh: said, shell: answer.noise().to_vec() }));
            }
        }
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted while connecting");
        }
    }
}

/// Which limit of the way to an answer is passed.
fn limit_passed(
    questions: Questions,
    begun: Instant,
    let_in: Option<Instant>,
    said_bytes: usize,
) -> Option<String> {
    let since = match questions {
        Questions::Forbidden => Some(begun),
        Questions::Allowed => let_in,
    };
    if said_bytes > MAX_SAID_BYTES {
        Some(format!("it said more than {} and gave no answer", bytes_iec(MAX_SAID_BYTES as u64)))
    } else {
        let is_over = since.is_some_and(|since| since.elapsed() > ANSWER_LIMIT);
        is_over.then(|| format!("no answer within {} s", ANSWER_LIMIT.as_secs()))
    }
}

/// The words for a machine that gave no answer.
fn unreachable(board: &Board, remote: &Remote, status: Option<i32>, said: &Instead) -> NotReached {
    let name = &board.name;
    // The last words of each say why.
    let mut lines: Vec<&str> = last_words(&said.ssh);
    lines.retain(|line| !line.trim().is_empty());
    let is_asking = |line: &&str| {
        let questions = ["Permission denied", "Host key verification failed"];
        questions.iter().any(|words| line.contains(words))
    };
    let wants_an_answer = lines.iter().any(is_asking);
    let last = lines.iter().rev().map(|line| line.trim()).next();
    // ssh itself ends with 255; anything else is the status of what it ran.
    if status == Some(255) || status.is_none() {
        let why = if lines.is_empty() { "it said nothing".to_string() } else { lines.join("\n  ") };
        return NotReached {
            words: format!(
                "cannot reach {name} with ssh:\n  {why}\nWhen `{}` works, this works too.",
                try_command(board, remote)
            ),
            reason: last.unwrap_or("ssh said nothing").into(),
            wants_an_answer,
        };
    }
    lines.extend(last_words(&said.shell));
    NotReached {
        words: format!(
            "{name} lets us in, but did not run a POSIX shell for us:\n  {}\nIt needs an account whose \
             login shell may run commands (`{}`).",
            lines.join("\n  "),
            try_command(board, remote)
        ),
        reason: "its login shell runs no commands".into(),
        wants_an_answer: false,
    }
}

fn last_words(lines: &[String]) -> Vec<&str> {
    const MAX_LINES: usize = 20;
    let first = lines.len().saturating_sub(MAX_LINES);
    lines[first..].iter().map(String::as_str).collect()
}

fn try_command(board: &Board, remote: &Remote) -> String {
    let mut command = String::from("ssh");
    if let Some(config) = &remote.ssh_config {
        command.push_str(&format!(" -F {}", config.display()));
    }
    for option in remote.ssh_option.iter().chain(&board.settings) {
        command.push_str(&format!(" -o {option}"));
    }
    format!("{command} {} true", board.destination)
}
