//! The exit status: 0 fine; 1 the answer is no; 2 usage or machine error; 3 refused by the guard;
//! 4 applied in part and rolled back; 5 roll-back failed.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use rubus_host::live::Live;
use rubus_measure::nas;
use rubus_vocabulary::spelling::nearest;

use crate::args::{Args, Command};

pub use rubus_command::Exit;
pub use rubus_vocabulary::refused::Refused;

/// A status as the system wants it.
pub fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit.status())
}

/// Prints a usage error, help or version as clap does, and gives its status. If the arguments are right for a checkup,
/// a tip suggests that.
pub fn of_usage(error: clap::Error) -> ExitCode {
    let error = without_far_guesses(error);
    let has_controls =
        |argument: OsString| argument.to_string_lossy().chars().any(char::is_control);
    if error.use_stderr() && std::env::args_os().any(has_controls) {
        rubus_command::message!("{}", error.to_string().trim_end());
    } else {
        // Printing can only fail when the output is closed; an error message would have no reader either.
        let _ = error.print();
    }
    if let Some(line) = meant_a_checkup(std::env::args_os().skip(1)) {
        if error.use_stderr() {
            rubus_command::message!("\n  tip: for a checkup with these arguments: {line}");
        }
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// Without the parser's guesses at what was meant where nothing is near, as for all other names.
fn without_far_guesses(mut error: clap::Error) -> clap::Error {
    for (typed, guess) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ] {
        let Some(ContextValue::String(typed)) = error.get(typed) else { continue };
        let guesses: Vec<&str> = match error.get(guess) {
            Some(ContextValue::String(guess)) => vec![guess],
            Some(ContextValue::Strings(guesses)) => guesses.iter().map(String::as_str).collect(),
            _ => continue,
        };
        let bare = |text: &str| text.trim_start_matches('-').to_owned();
        let is_near = guesses.iter().any(|guess| nearest(&bare(typed), &[&bare(guess)]).is_some());
        if !is_near {
            error.remove(guess);
            // It is made of the guess.
            error.remove(ContextKind::Usage);
        }
    }
    error
}

/// The command line of a checkup with these arguments, if there is such a one.
fn meant_a_checkup(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let arguments: Vec<OsString> = arguments.collect();
    let line = ["rubus", "checkup"].map(OsString::from);
    let line: Vec<OsString> = line.into_iter().chain(arguments).collect();
    let parsed = Args::try_parse_from(&line).ok()?;
    let words = line.iter().map(|word| word.to_string_lossy().into_owned());
    let says_more = match parsed.command? {
        Command::Checkup(checkup) => {
            nas::answers(&Live, &checkup.path, nas::LOOK_WITHIN) && checkup.path.exists()
        }
        _ => false,
    };
    says_more.then(|| words.collect::<Vec<_>>().join(" "))
}

/// Prints an error with its causes and gives its status.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    if let Some(refused) = error.downcast_ref::<Refused>() {
        rubus_command::message!("rubus: refused: {refused}");
        return ExitCode::from(3);
    }
    rubus_command::message!("rubus: {error:#}");
    if is_of_too_large_a_file(error) {
        rubus_command::message!(
            "Allow larger files first: `ulimit -f unlimited`, or fsize in /etc/security/limits.conf; on FAT the limit is 4 GiB."
        );
    }
    ExitCode::from(2)
}

/// Whether a file would have become larger than this user, or its filesystem, allows.
fn is_of_too_large_a_file(error: &anyhow::Error) -> bool {
    let is_it = |cause: &(dyn std::error::Error + 'static)| {
        let told = cause.downcast_ref::<std::io::Error>();
        told.and_then(std::io::Error::raw_os_error) == Some(libc::EFBIG)
    };
    // Some errors carry the system's words only.
    let words = std::io::Error::from_raw_os_error(libc::EFBIG).to_string();
    error.chain().any(is_it) || format!("{error:#}").contains(&words)
}
