//! The program that measures over there: chosen, copied, checked, and asked for its version.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rubus_core::elf;
use rubus_core::remote::answer::{self, Taken};
use rubus_core::remote::binary::{self, Candidate, Origin};
use rubus_core::remote::script;
use rubus_core::units::bytes_iec;
use rubus_host::digest::sha256;

use super::connection::{Completed, Connection};
use super::screen::Screen;
use crate::args::Remote;

const OWN: &str = "/proc/self/exe";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Names of programs for all machines that are known; what does not exist is passed over.
const MACHINES: [&str; 6] = ["aarch64", "armv7l", "armv6l", "x86_64", "i686", "riscv64"];

/// A program that can be run over there.
pub struct Program {
    /// Its words, `sudo` included.
    pub words: Vec<String>,
    /// Which one it is, for the result.
    pub described: String,
}

/// The programs here that could be copied.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    all: Vec<(Candidate, u64)>,
    /// Where ours lies, and those for other machines beside it.
    beside: PathBuf,
}

impl Candidates {
    /// Looks for them: the one that the user named; else our own and those beside it.
    ///
    /// # Errors
    /// When the named one cannot be read.
    pub fn gather(remote: &Remote) -> anyhow::Result<Self> {
        let mut candidates = Candidates::default();
        if remote.remote_binary.is_some() {
            return Ok(candidates);
        }
        if let Some(path) = &remote.binary {
            candidates.add(path, path, Origin::Named)?;
            return Ok(candidates);
        }
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        candidates.add(Path::new(OWN), &own, Origin::Own)?;
        candidates.beside = own.parent().map(Path::to_path_buf).unwrap_or_default();
        // Beside it, and where a package would put what is for other machines.
        let directories = [
            Some(candidates.beside.clone()),
            libraries(&candidates.beside),
        ];
        for directory in directories.into_iter().flatten() {
            let names = MACHINES
                .iter()
                .flat_map(|machine| binary::file_names(machine));
            let mut paths: Vec<_> = names.map(|name| directory.join(name)).collect();
            paths.sort();
            paths.dedup();
            for path in paths.iter().filter(|path| path.is_file()) {
                candidates.add(path, path, Origin::Beside)?;
            }
        }
        Ok(candidates)
    }

    fn add(&mut self, readable: &Path, shown: &Path, origin: Origin) -> anyhow::Result<()> {
        let file =
            File::open(readable).with_context(|| format!("cannot read {}", shown.display()))?;
        let bytes = file.metadata().map(|data| data.len());
        let bytes = bytes.with_context(|| format!("cannot read {}", shown.display()))?;
        let mut head = Vec::new();
        file.take(elf::HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .with_context(|| format!("cannot read {}", shown.display()))?;
        let candidate = Candidate {
            path: shown.display().to_string(),
            origin,
            elf: elf::parse(&head).map_err(str::to_string),
        };
        self.all.push((candidate, bytes));
        Ok(())
    }

    /// The length of the longest.
    pub fn most_bytes(&self) -> u64 {
        self.all.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    fn list(&self) -> Vec<Candidate> {
        self.all
            .iter()
            .map(|(candidate, _)| candidate.clone())
            .collect()
    }
}

/// `/usr/lib/rubus` for a program in `/usr/bin`.
fn libraries(beside: &Path) -> Option<PathBuf> {
    Some(beside.parent()?.join("lib/rubus"))
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
        let name = connection.destination.as_str();
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
        connection.destination,
        failures.join("\n  ")
    )
}

fn installed(connection: &Connection, command: &str) -> anyhow::Result<Program> {
    let words = with_sudo(&connection.remote, command);
    let version = ask_version(connection, &words)?;
    let name = &connection.destination;
    match version {
        Ok(version) if version == VERSION => Ok(Program {
            words,
            described: format!("installed there as {command}"),
        }),
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
    let bytes = send(connection, path, "rubus", screen).with_context(|| {
        format!(
            "cannot copy {} to {}",
            candidate.path, connection.destination
        )
    })?;
    let program = format!("{}/rubus", connection.directory());
    let words = with_sudo(&connection.remote, &program);
    match ask_version(connection, &words)? {
        Ok(version) if version == VERSION => {}
        Ok(version) => bail!(
            "{} is rubus {version}, and this is rubus {VERSION}",
            candidate.path
        ),
        Err(why) => bail!(
            "{} does not run there: {why}{}",
            candidate.path,
            loader_hint(candidate)
        ),
    }
    let away = connection.round_trip_ms.map(rubus_show::words::round_trip);
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
    Ok(Program {
        words,
        described: format!("copied {}", candidate.path),
    })
}

/// A program that needs a loader also needs that machine's C library to be as new as this one's.
fn loader_hint(candidate: &Candidate) -> String {
    let loader = candidate
        .elf
        .as_ref()
        .ok()
        .and_then(|elf| elf.interpreter.as_deref());
    loader.map_or_else(String::new, |loader| {
        format!(
            " (it is not static: it needs {loader} there and C libraries as new as the ones it was built \
             with)"
        )
    })
}

fn with_sudo(remote: &Remote, program: &str) -> Vec<String> {
    let sudo: &[&str] = if remote.remote_sudo {
        &["sudo", "-n"]
    } else {
        &[]
    };
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
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (sum, bytes) =
        sha256(&mut file).with_context(|| format!("cannot read {}", path.display()))?;
    file.rewind()
        .with_context(|| format!("cannot read {} twice", path.display()))?;
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
        match said.is_empty() {
            true => status,
            false => format!("{said} ({status})"),
        }
    }
}
