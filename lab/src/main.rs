//! `rubus-lab`: builds, boots and drives emulated boards. See README.md beside this crate.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::session::{self, Options, Session};
use rubus_lab::{capture, image};

/// Emulated boards that boot unattended.
#[derive(Debug, Parser)]
#[command(name = "rubus-lab", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a board's disks, unless they are in the cache (needs root)
    Build {
        /// Which board
        board: Board,
        /// Build anew, with the newest packages
        #[arg(long)]
        fresh: bool,
    },
    /// Boot a board to a shell on this terminal (Ctrl-A X ends it by force)
    Boot {
        /// Which board
        board: Board,
        #[command(flatten)]
        start: StartArguments,
    },
    /// Boot a board, run a command on it, and switch it off
    ///
    /// The exit status is the command's (124: its time was over), or 125 when
    /// the board failed.
    Run {
        /// Which board
        board: Board,
        #[command(flatten)]
        start: StartArguments,
        /// Run as this user (root or pi)
        #[arg(long, default_value = "root")]
        user: String,
        /// Seconds that the command may take
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        timeout: u64,
        /// Bring a file or directory back
        #[arg(long, value_name = "PATH")]
        pull: Vec<String>,
        /// Where to put what is brought back
        #[arg(long, default_value = ".", value_name = "DIR")]
        out: PathBuf,
        /// The command; one word is taken as a shell script
        #[arg(last = true, required = true)]
        script: Vec<String>,
    },
    /// Boot a board and record it with `rubus survey --save`
    Capture {
        /// Which board
        board: Board,
        /// A static rubus for the board's processor
        #[arg(long, value_name = "PATH")]
        rubus: PathBuf,
        /// Directory of the capture; replaced when it exists
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
struct StartArguments {
    /// Limit the SD card: bytes and operations per second
    #[arg(long, value_name = "BYTES,IOPS")]
    throttle_sd: Option<Throttle>,
    /// Put a file into the board, in a directory of its PATH
    #[arg(long, value_name = "FILE")]
    push: Vec<PathBuf>,
}

impl StartArguments {
    fn options(self) -> Options {
        Options {
            throttle_sd: self.throttle_sd,
            push: self.push,
        }
    }
}

/// Exit status when the lab failed and not the command.
const LAB_FAILED: u8 = 125;

fn main() -> ExitCode {
    match perform(Arguments::parse().command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(stderr(), "rubus-lab: {error:#}");
            ExitCode::from(LAB_FAILED)
        }
    }
}

fn perform(command: Command) -> Result<u8> {
    let cache = Cache::of_this_machine();
    match command {
        Command::Build { board, fresh } => {
            if fresh {
                image::forget(&cache, board)?;
            }
            let started = Instant::now();
            let disks = image::disks(&cache, board)?;
            let seconds = started.elapsed().as_secs_f64();
            writeln!(stdout(), "{}\n{}", disks.sd.display(), disks.usb.display())?;
            writeln!(stderr(), "ready after {seconds:.1} s")?;
            Ok(0)
        }
        Command::Boot { board, start } => {
            session::boot_on_terminal(&cache, board, &start.options())?;
            Ok(0)
        }
        Command::Run {
            board,
            start,
            user,
            timeout,
            pull,
            out,
            script,
        } => {
            let mut session = Session::boot(&cache, board, &start.options())?;
            writeln!(stderr(), "booted in {:.1} s", session.boot_s())?;
            let mut show = |text: &[u8]| {
                let _ = stdout().write_all(text).and_then(|()| stdout().flush());
            };
            let limit = Duration::from_secs(timeout);
            let outcome = session.run_showing(&quoted(&script), &user, limit, &mut show)?;
            stderr().write_all(&outcome.complaint)?;
            if !pull.is_empty() {
                let paths: Vec<&str> = pull.iter().map(String::as_str).collect();
                session.pull(&paths, &out)?;
            }
            session.switch_off()?;
            Ok(u8::try_from(outcome.status).unwrap_or(LAB_FAILED))
        }
        Command::Capture { board, rubus, out } => {
            capture::record(&cache, board, &rubus, &out)?;
            Ok(0)
        }
    }
}

/// One word is a script as it stands; several are words of one command.
fn quoted(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        words => words
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
