//! The program that measures over there: chosen, copied, checked, and asked for its version.

use std::io::Seek;
use std::path::Path;

use anyhow::{Context, bail};
use rubus_host::files::digest::sha256;
use rubus_host::files::document;
use rubus_remote::answer::{self, Taken};
use rubus_remote::binary::{self, Candidate, Origin};
use rubus_remote::script;
use rubus_vocabulary::units::bytes_iec;

use super::candidates::{OWN, loader_hint};
use super::connection::{Completed, Connection};
use super::screen::Screen;
use super::way::Remote;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A program that can be run over there.
pub struct Program {
    /// Its words, `sudo` included.
    pub words: Vec<String>,
    /// Which one it is, for the result.
    pub described: String,
}

/// Brings a program there, or finds the one that is there.
///
/// # Errors
/// When none runs there; the text says what was tried, and what to do.
pub fn install(connection: &Connection, screen: &Screen) -> anyhow::Result<Program> {
    if let Some(command) = &connection.remote.remote_binary {
        return installed(connection, command);
    }
    let candidates = connection.candidates.list();
    let machine = &connection.place.machine;
    let fitting = binary::in_order(machine, &candidates);
    if fitting.is_empty() {
        let beside = connection.candidates.beside.display().to_string();
        let name = connection.name.as_str();
        bail!(binary::nothing_fits(name, machine, &candidates, &beside));
    }
    let mut failures = Vec::new();
    for candidate in fitting {
        match copied(connection, &candidate, screen) {
            Ok(program) => return Ok(program),
            Err(error) if connection.is_cancelled() => return Err(error),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    bail!(
        "{} ({machine}) runs none of the programs that fit it:\n  {}\nName a static rubus {VERSION} for it \
         with --binary FILE, or install one there and give --remote-binary rubus.",
        connection.name,
        failures.join("\n  ")
    )
}

fn installed(connection: &Connection, command: &str) -> anyhow::Result<Program> {
    let words = with_sudo(&connection.remote, command);
    let version = ask_version(connection, &words)?;
    let name = &connection.name;
    match version {
        Ok(version) if version == VERSION => {
            Ok(Program { words, described: format!("installed there as {command}") })
        }
        Ok(version) => bail!(
            "{name} has rubus {version}, and this is rubus {VERSION}: results of two versions are not \
             comparable; update one of them, or leave out --remote-binary and this one is copied"
        ),
        Err(why) => bail!(
            "{name} cannot run `{command}`: {why}; give the full path with --remote-binary (ssh's commands \
             see a shorter PATH than a login), or leave it out and this rubus is copied"
        ),
    }
}

fn copied(
    connection: &Connection,
    candidate: &Candidate,
    screen: &Screen,
) -> anyhow::Result<Program> {
    let path = match candidate.origin {
        Origin::Own => Path::new(OWN),
        Origin::Named | Origin::Beside => Path::new(&candidate.path),
    };
    let bytes = send(connection, path, "rubus", screen)
        .with_context(|| format!("cannot copy {} to {}", candidate.path, connection.name))?;
    let program = format!("{}/rubus", connection.directory());
    let words = with_sudo(&connection.remote, &program);
    match ask_version(connection, &words)? {
        Ok(version) if version == VERSION => {}
        Ok(version) => bail!("{} is rubus {version}, and this is rubus {VERSION}", candidate.path),
        Err(why) => bail!("{} does not run there: {why}{}", candidate.path, loader_hint(candidate)),
    }
    let away = connection.round_trip_ms.map(rubus_draw::words::round_trip);
    let away = away.map(|time| format!(", {time} away"));
    let file = Path::new(&candidate.path).file_name().unwrap_or_default();
    screen.note(
        connection.number,
        &format!(
            "{}{}; {} ({}) is in {} until the end",
            connection.place.machine,
            away.unwrap_or_default(),
            file.to_string_lossy(),
            bytes_iec(bytes),
            connection.directory()
        ),
    );
    Ok(Program { words, described: format!("copied {}", candidate.path) })
}

fn with_sudo(remote: &Remote, program: &str) -> Vec<String> {
    let sudo: &[&str] = if remote.remote_sudo { &["sudo", "-n"] } else { &[] };
    let words = sudo.iter().copied().chain([program]);
    words.map(str::to_string).collect()
}

/// Copies a file into the private directory and checks that it arrived whole; gives its length.
///
/// # Errors
/// When it cannot be read, there is no room for it, or it arrived damaged.
pub fn send(
    connection: &Connection,
    path: &Path,
    name: &str,
    screen: &Screen,
) -> anyhow::Result<u64> {
    let mut file =
        document::open_regular(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (sum, bytes) =
        sha256(&mut file).with_context(|| format!("cannot read {}", path.display()))?;
    file.rewind().with_context(|| format!("cannot read {} twice", path.display()))?;
    screen.status(connection.number, &format!("copying {}", bytes_iec(bytes)));
    let command = script::take(connection.directory(), name);
    let done = connection.complete(connection.ssh.run_from(&command, file)?)?;
    if done.status != Some(0) {
        bail!(done.why());
    }
    if let Err(why) = Taken::parse(&done.out).check(bytes, &sum) {
        bail!("the copy {why}; try again");
    }
    Ok(bytes)
}

/// The version that a program says, or why it says none.
fn ask_version(
    connection: &Connection,
    words: &[String],
) -> anyhow::Result<Result<String, String>> {
    let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
    all.push("--version");
    let command = script::run("", &all);
    let done = connection.complete(connection.ssh.run(&command)?)?;
    Ok(match answer::version(&done.out) {
        Some(version) if done.status == Some(0) => Ok(version.to_string()),
        _ => Err(done.why()),
    })
}

impl Completed {
    /// Why a command failed, as a phrase.
    pub fn why(&self) -> String {
        let said = self.err.trim().replace('\n', "; ");
        let status = match self.status {
            Some(132) => "it uses instructions that the processor there does not have".into(),
            Some(139) => "it crashed there".into(),
            Some(255) | None => "the connection was lost".into(),
            Some(status) => format!("exit status {status}"),
        };
        if said.is_empty() { status } else { format!("{said} ({status})") }
    }
}
