//! What the other machine shall do, from what was typed: the same command, without what is done here.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory};
use rubus_fleet::remote::{CAPTURE, Task, Word};

use crate::args::{Args, Bench, Command};

/// Options that are followed here: where results go, and how the other machine is reached.
const FOLLOWED_HERE: [&str; 22] = [
    "at-once",
    "binary",
    "color",
    "csv",
    "fio-json",
    "html",
    "json",
    "label",
    "machine",
    "markdown",
    "no-history",
    "no-html",
    "on",
    "records",
    "remote-binary",
    "remote-sudo",
    "rules",
    "save",
    "ssh-config",
    "serials",
    "ssh-option",
    "verbose",
];

/// Options whose value is a file here that the other machine must have too.
const FILES: [&str; 2] = ["fio-job", "kernel-log"];

/// The task from what was typed.
///
/// # Errors
/// When the command does nothing on other machines, or has a word that no shell text can carry.
pub fn of(args: &Args, matches: &ArgMatches, machines: usize) -> anyhow::Result<Task> {
    let targets = match &args.command {
        None | Some(Command::Checkup(_)) => 1,
        Some(Command::Bench(bench)) => {
            anyhow::ensure!(
                bench.fio_job.as_deref() != Some(Path::new("-")),
                "--fio-job - reads the standard input, which the other machine does not have; write \
                 the job file and name it"
            );
            results_of(bench)
        }
        Some(Command::Survey(survey)) => {
            anyhow::ensure!(
                !survey.rules,
                "--rules lists what every machine is tried for; leave --on away"
            );
            1
        }
        // The advice is given here, where the history is.
        Some(Command::Advise(_)) => return Ok(survey()),
        Some(_) => anyhow::bail!("--on makes another machine measure or survey itself"),
    };
    let mut task = Task { words: Vec::new(), files: Vec::new(), targets, capture: None };
    let (name, given) = match matches.subcommand() {
        Some((name, given)) => (name, given),
        None => ("checkup", matches),
    };
    task.words.push(Word::Text(name.into()));
    task.words.push(Word::Text("--records".into()));
    add_words(&mut task, name, given, args.command.is_none())?;
    if let Some(Command::Survey(survey)) = &args.command {
        save_capture(&mut task, survey.save.as_ref(), machines)?;
    }
    Ok(task)
}

/// A survey and nothing else.
fn survey() -> Task {
    Task {
        words: ["survey", "--records"].map(|word| Word::Text(word.into())).into(),
        files: Vec::new(),
        targets: 1,
        capture: None,
    }
}

fn add_words(task: &mut Task, name: &str, given: &ArgMatches, is_bare: bool) -> anyhow::Result<()> {
    let mut command = Args::command();
    command.build();
    let known = if is_bare {
        &command
    } else {
        command.find_subcommand(name).context("a known command")?
    };
    let mut places = Vec::new();
    for argument in known.get_arguments() {
        let id = argument.get_id().as_str();
        if given.value_source(id) != Some(ValueSource::CommandLine) || is_followed_here(argument) {
            continue;
        }
        let values: Vec<&OsStr> = given.get_raw(id).into_iter().flatten().collect();
        match argument.get_long() {
            None => places.extend(values),
            Some(long) => add_option(task, argument, long, &values)?,
        }
    }
    if !places.is_empty() {
        task.words.push(Word::Text("--".into()));
    }
    for place in places {
        task.words.push(Word::Text(text(place)?));
    }
    Ok(())
}

fn add_option(
    task: &mut Task,
    argument: &Arg,
    long: &str,
    values: &[&OsStr],
) -> anyhow::Result<()> {
    if !argument.get_action().takes_values() || values.is_empty() {
        task.words.push(Word::Text(format!("--{long}")));
        return Ok(());
    }
    for value in values {
        if FILES.contains(&long) && *value != "-" {
            let name = name_there(task, Path::new(value));
            task.files.push((PathBuf::from(value), name.clone()));
            let option = format!("--{long}");
            task.words.push(Word::File { option, name });
            continue;
        }
        let mut word = format!("--{long}=");
        // Writing to a string cannot fail.
        let _ = write!(word, "{}", text(value)?);
        task.words.push(Word::Text(word));
    }
    Ok(())
}

/// The file's own name, which messages will have, behind a number, so that no two are the same.
fn name_there(task: &Task, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{name}", task.files.len() + 1)
}

fn save_capture(task: &mut Task, save: Option<&PathBuf>, machines: usize) -> anyhow::Result<()> {
    let Some(path) = save else { return Ok(()) };
    anyhow::ensure!(
        machines == 1,
        "--save names one file; save the captures of several machines one after the other"
    );
    anyhow::ensure!(
        !path.as_os_str().to_string_lossy().ends_with('/'),
        "--save {} names a directory; from another machine a capture comes as a tar file, so leave \
         out the / at the end",
        path.display()
    );
    rubus_command::places::must_be_writable(path)?;
    task.capture = Some(path.clone());
    task.words.push(Word::File { option: "--save".into(), name: CAPTURE.into() });
    Ok(())
}

/// How many runs a bench gives.
fn results_of(bench: &Bench) -> usize {
    match (&bench.against, bench.together) {
        (Some(_), _) => 2,
        (None, true) => 1,
        // A job file may say itself where it runs.
        (None, false) => bench.targets.len().max(1),
    }
}

fn is_followed_here(argument: &Arg) -> bool {
    let long = argument.get_long();
    long.is_some_and(|long| FOLLOWED_HERE.contains(&long))
}

fn text(word: &OsStr) -> anyhow::Result<String> {
    let text = word.to_str();
    let text = text.with_context(|| {
        format!("'{}' is not UTF-8, and so no word for another machine", word.to_string_lossy())
    })?;
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::before;

    /// Options that mean the same over there.
    const PASSED_ON: [&str; 23] = [
        "against",
        "against-i-will-lose-everything-on",
        "budget",
        "connections",
        "content",
        "drop-caches",
        "fio-option",
        "full",
        "hipri",
        "i-will-lose-everything-on",
        "ignore-unsupported",
        "lanes",
        "nodes",
        "precision",
        "quiet",
        "read-only",
        "seed",
        "server-status",
        "size",
        "suite",
        "threads",
        "together",
        "with-serials",
    ];

    fn task(words: &[&str]) -> anyhow::Result<Task> {
        let all = ["rubus"].iter().chain(words).map(Into::into).collect();
        let (args, matches) = before::parse(all)?;
        let machines = args.remote().unwrap().map_or(0, |way| {
            let boards = way.on.iter().map(|named| match named {
                rubus_fleet::inventory::Named::Boards(boards) => boards.len(),
                rubus_fleet::inventory::Named::File(_) => 2,
            });
            boards.sum()
        });
        of(&args, &matches, machines)
    }

    fn words(typed: &[&str]) -> String {
        task(typed).unwrap().words("/tmp/rubus.x").join(" ")
    }

    #[test]
    fn the_same_command_without_what_is_done_here() {
        assert_eq!(words(&["--on", "pi"]), "checkup --records");
        assert_eq!(
            words(&["checkup", "/srv", "--json", "--on=pi", "--no-html", "-q"]),
            "checkup --records --quiet -- /srv"
        );
        assert_eq!(
            words(&[
                "bench",
                "--on",
                "pi,pa",
                "-o",
                "Port=2222",
                "--size",
                "64MiB",
                "--json",
                "x.json",
                "a b",
                "--i-will-lose-everything-on=S 1",
                "--",
                "-dash"
            ]),
            "bench --records --size=64MiB --i-will-lose-everything-on=S 1 -- a b -dash"
        );
        assert_eq!(words(&["survey", "--on", "pi", "--json"]), "survey --records");
    }

    #[test]
    fn a_job_file_is_copied_and_needs_no_target() {
        let task = task(&["bench", "--fio-job", "jobs/random read.fio", "--on", "pi"]).unwrap();
        assert_eq!(task.targets, 1);
        let there = "1-random read.fio";
        assert_eq!(task.files, [(PathBuf::from("jobs/random read.fio"), there.into())]);
        assert_eq!(
            task.words("/tmp/rubus.x").join("|"),
            format!("bench|--records|--fio-job=/tmp/rubus.x/{there}")
        );
    }

    #[test]
    fn a_job_file_from_standard_input_cannot_be_copied() {
        let words = ["bench", "--fio-job", "-", "--on", "pi"];
        let error = task(&words).unwrap_err().to_string();
        assert!(error.contains("standard input"), "{error}");
    }

    #[test]
    fn how_many_results_are_awaited_depends_on_how_targets_are_measured() {
        let targets = |words: &[&str]| task(words).unwrap().targets;
        assert_eq!(targets(&["bench", "/a", "/b", "--on", "pi"]), 2);
        assert_eq!(targets(&["bench", "/a", "/b", "--together", "--on", "pi"]), 1);
        assert_eq!(targets(&["bench", "/a", "--against", "/b", "--on", "pi"]), 2);
        let words = words(&["bench", "/a", "--against", "/b", "--on", "pi"]);
        assert_eq!(words, "bench --records --against=/b -- /a");
    }

    #[test]
    fn a_capture_is_saved_there_and_fetched() {
        let typed = ["survey", "--on", "pi", "--save", "x.tar", "--with-serials"];
        assert_eq!(
            words(&typed),
            "survey --records --with-serials --save=/tmp/rubus.x/capture.tar"
        );
        assert!(task(&["survey", "--on", "pi", "--save", "x/"]).is_err());
        assert!(task(&["survey", "--on", "pi,pa", "--save", "x.tar"]).is_err());
        assert!(task(&["survey", "--on", "@hosts", "--save", "x.tar"]).is_err());
    }

    #[test]
    fn advice_about_another_machine_takes_its_survey() {
        let typed = ["advise", "--on", "pi", "swap", "--pipes"];
        assert_eq!(words(&typed), "survey --records");
        for wrong in ["--measure", "--from=last"] {
            assert!(
                Args::command()
                    .try_get_matches_from(["rubus", "advise", "--on", "pi", wrong])
                    .is_err()
            );
        }
    }

    #[test]
    fn commands_about_this_machine_are_refused() {
        assert!(task(&["--on", "pi", "history"]).is_err());
        assert!(task(&["--on", "pi", "bench", "cpu"]).is_err());
    }

    #[test]
    fn machines_before_the_command_and_behind_it_are_all_meant() {
        assert_eq!(words(&["--on", "pi", "bench", "x", "--on", "pa"]), "bench --records -- x");
    }

    #[test]
    fn of_every_option_it_is_known_where_it_is_followed() {
        let mut command = Args::command();
        command.build();
        let known = [&FOLLOWED_HERE[..], &FILES, &PASSED_ON].concat();
        for verb in ["checkup", "bench", "survey"] {
            let verb = command.find_subcommand(verb).unwrap();
            let longs = verb.get_arguments().filter_map(|argument| argument.get_long());
            for long in longs.filter(|long| *long != "help" && *long != "version") {
                assert!(
                    known.contains(&long),
                    "is --{long} for this machine or for the one of --on? Say so in FOLLOWED_HERE, \
                     FILES (a file that is copied there) or PASSED_ON"
                );
            }
        }
    }
}
