//! The way to one machine: connected, with a private place over there, and timed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rubus_host::ssh::{Options, Said, Session, Ssh};
use rubus_remote::answer::{KeeperAnswer, Place};
use rubus_remote::{Destination, script};
use rubus_vocabulary::units::bytes_iec;

use super::candidates::Candidates;
use super::screen::Screen;
use super::task::Task;
use crate::args::Remote;

/// How long one wait is; between waits, Ctrl-C is looked for.
pub const MOMENT: Duration = Duration::from_millis(100);
/// While connecting, what ssh says is shown after so long a pause: it may want something of the user.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the other end may take to clear up.
const CLEARING: Duration = Duration::from_secs(15);
/// How often the way is timed, and how long one time may take.
const ECHOES: u32 = 6;
const ECHO_LIMIT: Duration = Duration::from_secs(5);
/// Room beside the program itself.
const SPARE_BYTES: u64 = 1 << 20;

/// A machine that is connected.
pub struct Connection {
    /// Its number in the list.
    pub number: usize,
    /// Its name.
    pub destination: Destination,
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
    /// When there is no ssh, the machine cannot be reached or is of another kind, or there is no place
    /// for the program; with ssh's own words.
    pub fn open(
        number: usize,
        destination: &Destination,
        remote: &Remote,
        candidates: &Candidates,
        task: &Task,
        screen: &Screen,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Connection> {
        let options = Options {
            config: remote.ssh_config.clone(),
            settings: remote.ssh_option.clone(),
        };
        let runtime = std::env::var_os("XDG_RUNTIME_DIR");
        let ssh = Ssh::new(
            destination.as_str(),
            &options,
            runtime.as_deref().map(Path::new),
        )
        .with_context(|| format!("cannot measure on {destination}"))?;
        let needed = candidates.max_bytes() + task.files_bytes()? + SPARE_BYTES;
        let mut keeper = ssh.open(&script::keeper(needed))?;
        let place = match wait_for_place(&mut keeper, number, screen, cancel)? {
            Ok(place) => place,
            Err(said) => {
                let status = keeper.finish(MOMENT).and_then(|status| status.code());
                bail!(unreachable(destination, remote, status, &said));
            }
        };
        if place.system != "Linux" {
            bail!(
                "{destination} runs {}, and rubus measures only Linux machines",
                place.system
            );
        }
        if place.directory.is_none() && !place.tried.is_empty() {
            bail!(place.no_directory(destination.as_str(), &bytes_iec(needed)));
        }
        let mut connection = Connection {
            number,
            destination: destination.clone(),
            ssh,
            place,
            round_trip_ms: None,
            remote: remote.clone(),
            candidates: candidates.clone(),
            keeper,
            cancel: Arc::clone(cancel),
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
        loop {
            match session.next(MOMENT) {
                Said::Out(line) => out.extend([&line, "\n"]),
                Said::Err(line) => err.extend([&line, "\n"]),
                Said::Nothing => {}
                Said::End => break,
            }
            if self.is_cancelled() {
                bail!(
                    "{}: interrupted before anything was measured",
                    self.destination
                );
            }
        }
        let status = session.finish(CLEARING).and_then(|status| status.code());
        Ok(Completed { status, out, err })
    }

    /// What ssh says of the connection while something runs.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Said::Err(line) | Said::Out(line) = self.keeper.next(Duration::ZERO) {
            lines.push(line);
        }
        lines
    }

    /// Ends the connection; the keeper over there removes its directory.
    ///
    /// # Errors
    /// When it did not say so in time, with what may be left.
    pub fn close(self) -> anyhow::Result<()> {
        let status = self.keeper.finish(CLEARING);
        if status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        bail!(
            "{} did not confirm that it cleared up; if the directory {} is still there, it can be removed",
            self.destination,
            self.place.directory.as_deref().unwrap_or_default()
        )
    }

    /// The least of a few times there and back through the connection that stands.
    fn time_the_way(&self) -> Option<f64> {
        let mut session = self.ssh.run(&script::echo()).ok()?;
        let mut times = Vec::new();
        for number in 0..ECHOES {
            let sent = format!("rubus-echo {number}");
            let since = Instant::now();
            session.say(&sent).ok()?;
            loop {
                match session.next(ECHO_LIMIT.saturating_sub(since.elapsed())) {
                    Said::Out(line) if line == sent => break,
                    Said::End | Said::Nothing => return None,
                    // A greeting.
                    Said::Out(_) | Said::Err(_) => {}
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
    screen: &Screen,
    cancel: &AtomicBool,
) -> anyhow::Result<Result<Place, Instead>> {
    let mut answer = KeeperAnswer::default();
    let (mut said, mut shown) = (Vec::new(), 0);
    let mut last = Instant::now();
    loop {
        let next = keeper.next(MOMENT);
        if next != Said::Nothing {
            last = Instant::now();
        }
        match next {
            Said::Out(line) => {
                if let Some(place) = answer.line(&line) {
                    said.drain(shown..)
                        .for_each(|line: String| screen.note(number, &line));
                    return Ok(Ok(place));
                }
            }
            Said::Err(line) => said.push(line),
            Said::Nothing if last.elapsed() >= PAUSE => {
                said[shown..]
                    .iter()
                    .for_each(|line| screen.note(number, line));
                shown = said.len();
            }
            Said::Nothing => {}
            Said::End => {
                return Ok(Err(Instead {
                    ssh: said,
                    shell: answer.noise().to_vec(),
                }));
            }
        }
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted while connecting");
        }
    }
}

/// The words for a machine that gave no answer.
fn unreachable(
    destination: &Destination,
    remote: &Remote,
    status: Option<i32>,
    said: &Instead,
) -> String {
    let mut lines: Vec<&str> = said.ssh.iter().map(String::as_str).collect();
    lines.retain(|line| !line.trim().is_empty());
    // ssh itself ends with 255; anything else is the status of what it ran.
    if status == Some(255) || status.is_none() {
        let why = match lines.is_empty() {
            true => "it said nothing".to_string(),
            false => lines.join("\n  "),
        };
        return format!(
            "cannot reach {destination} with ssh:\n  {why}\nWhen `{}` works, this works too.",
            try_command(destination, remote)
        );
    }
    lines.extend(said.shell.iter().map(String::as_str));
    format!(
        "{destination} lets us in, but did not run a POSIX shell for us:\n  {}\nIt needs an account whose \
         login shell may run commands (`{}`).",
        lines.join("\n  "),
        try_command(destination, remote)
    )
}

fn try_command(destination: &Destination, remote: &Remote) -> String {
    let mut command = String::from("ssh");
    if let Some(config) = &remote.ssh_config {
        command.push_str(&format!(" -F {}", config.display()));
    }
    for option in &remote.ssh_option {
        command.push_str(&format!(" -o {option}"));
    }
    format!("{command} {destination} true")
}
