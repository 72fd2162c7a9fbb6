//! Options before the command: they count as if they stood behind it, and a command without such an
//! option refuses them.
//!
//! clap reads them as the program's own. A verb that looks only at its own arguments would ignore
//! them without a word.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};

use super::{Args, help};
use rubus_fio::command_line;
use rubus_fleet::remote;
use rubus_host::live::Live;
use rubus_measure::nas;

/// Reads a command line that begins with the program's name.
///
/// # Errors
/// As clap's, and when an option stands before a command that has none such.
pub fn parse(words: Vec<OsString>) -> Result<(Args, ArgMatches), clap::Error> {
    let mut program = help::command();
    program.build();
    let words = command_line::spelled_out(words, |name| {
        let bench = program.find_subcommand("bench");
        bench.is_some_and(|bench| with_long(bench, name.as_bytes()).is_some())
    });
    must_not_want_json_of_help(&mut program, &words)?;
    // A path that does not exist is a mistake in a path, not in a command. A share that does not
    // answer is a directory; the checkup says what is wrong.
    let words = with_checkup(&program, words, |word| {
        let path = Path::new(word);
        !nas::answers(&Live, path, nas::LOOK_WITHIN)
            || path.is_dir()
            || word.as_bytes().contains(&b'/') && !path.exists()
    });
    parse_as(program, words)
}

/// Help is for people. What programs read is a command's own.
fn must_not_want_json_of_help(
    program: &mut Command,
    words: &[OsString],
) -> Result<(), clap::Error> {
    let is_help = words.get(1).is_some_and(|word| word == "help");
    if !is_help || !words.iter().any(|word| word == "--json") {
        return Ok(());
    }
    let text = "`rubus help` has no option --json\nGive it to the command: rubus survey --json";
    Err(program.error(ErrorKind::UnknownArgument, text))
}

/// `rubus DIR` is `rubus checkup DIR`; a command's name is the command, whatever lies in the current directory.
fn with_checkup(
    program: &Command,
    mut words: Vec<OsString>,
    is_directory: impl Fn(&OsStr) -> bool,
) -> Vec<OsString> {
    let names_directory = |word: &OsString| {
        let is_option = word.as_bytes().starts_with(b"-");
        !is_option && program.find_subcommand(word).is_none() && is_directory(word)
    };
    if words.get(1).is_some_and(names_directory) {
        words.insert(1, "checkup".into());
    }
    words
}

fn parse_as(program: Command, words: Vec<OsString>) -> Result<(Args, ArgMatches), clap::Error> {
    let words = with_options_behind(&program, words)?;
    let matches = program.try_get_matches_from(words)?;
    Ok((Args::from_arg_matches(&matches)?, matches))
}

/// An option as it was typed: one word, or two with its value.
struct Typed<'c> {
    option: &'c Arg,
    words: Vec<OsString>,
}

/// The same command line with the options that stand before the command behind it. What clap will
/// refuse stays as it is.
fn with_options_behind(
    program: &Command,
    words: Vec<OsString>,
) -> Result<Vec<OsString>, clap::Error> {
    let Some((name, typed)) = words.split_first() else { return Ok(words) };
    let Some((options, first)) = leading_options(program, typed) else { return Ok(words) };
    let Some((verb, path)) = verb(program, &typed[first..]) else { return Ok(words) };
    let is_answered_here = |typed: &Typed<'_>| {
        matches!(
            typed.option.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
    };
    if typed[first] == "help" || options.iter().any(is_answered_here) {
        return Ok(words);
    }
    let (stay, move_behind): (Vec<_>, Vec<_>) =
        options.into_iter().partition(|typed| typed.option.is_global_set());
    for typed in &move_behind {
        check(verb, typed.option)?;
    }
    let (path, rest) = typed[first..].split_at(path);
    let mut ordered = vec![name.clone()];
    ordered.extend(stay.into_iter().flat_map(|typed| typed.words));
    ordered.extend_from_slice(path);
    ordered.extend(move_behind.into_iter().flat_map(|typed| typed.words));
    ordered.extend_from_slice(rest);
    Ok(ordered)
}

/// The options that a command line begins with, and how many words they are; nothing if one is
/// unknown or lacks its value.
fn leading_options<'c>(
    command: &'c Command,
    words: &[OsString],
) -> Option<(Vec<Typed<'c>>, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let bytes = word.as_bytes();
        at += 1;
        if let Some(long) = bytes.strip_prefix(b"--") {
            if long.is_empty() {
                return None;
            }
            let end = long.iter().position(|byte| *byte == b'=');
            let option = with_long(command, &long[..end.unwrap_or(long.len())])?;
            let mut typed = Typed { option, words: vec![word.clone()] };
            if end.is_none() && takes_next_word(option) {
                typed.words.push(words.get(at)?.clone());
                at += 1;
            }
            found.push(typed);
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            at += short_options(command, &bytes[1..], words.get(at), &mut found)?;
        } else {
            at -= 1;
            break;
        }
    }
    Some((found, at))
}

/// Splits the short options of one word; gives how many of the following words belong to it.
fn short_options<'c>(
    command: &'c Command,
    letters: &[u8],
    next: Option<&OsString>,
    found: &mut Vec<Typed<'c>>,
) -> Option<usize> {
    for (index, letter) in letters.iter().enumerate() {
        let is_it = |option: &&Arg| option.get_short() == Some(char::from(*letter));
        let option = command.get_arguments().find(is_it)?;
        let mut words = vec![OsString::from_vec(vec![b'-', *letter])];
        let value = &letters[index + 1..];
        if !option.get_action().takes_values() {
            found.push(Typed { option, words });
        } else if value.is_empty() {
            words.push(next?.clone());
            found.push(Typed { option, words });
            return Some(1);
        } else {
            words[0].push(OsStr::from_bytes(value));
            found.push(Typed { option, words });
            return Some(0);
        }
    }
    Some(0)
}

fn with_long<'c>(command: &'c Command, name: &[u8]) -> Option<&'c Arg> {
    let name = std::str::from_utf8(name).ok()?;
    command.get_arguments().find(|option| {
        let aliases = option.get_all_aliases().unwrap_or_default();
        option.get_long() == Some(name) || aliases.contains(&name)
    })
}

fn takes_next_word(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.is_require_equals_set()
}

/// The innermost command that these words name, and behind how many of them its options may stand.
fn verb<'c>(program: &'c Command, words: &[OsString]) -> Option<(&'c Command, usize)> {
    let mut verb = program.find_subcommand(words.first()?)?;
    let mut path = 1;
    while let Some((_, options)) = leading_options(verb, &words[path..]) {
        let Some(word) = words.get(path + options) else { break };
        let Some(below) = verb.find_subcommand(word) else { break };
        verb = below;
        path += options + 1;
    }
    Some((verb, path))
}

/// Whether a command has an option of this name that takes a value, or none, as this one.
fn has(verb: &Command, option: &Arg) -> bool {
    own(verb, option)
        .is_some_and(|own| own.get_action().takes_values() == option.get_action().takes_values())
}

fn own<'c>(verb: &'c Command, option: &Arg) -> Option<&'c Arg> {
    with_long(verb, option.get_long()?.as_bytes())
}

fn check(verb: &Command, option: &Arg) -> Result<(), clap::Error> {
    if has(verb, option) {
        return Ok(());
    }
    let name = verb.get_bin_name().unwrap_or_else(|| verb.get_name());
    let long = option.get_long().unwrap_or_else(|| option.get_id().as_str());
    let text = match own(verb, option) {
        Some(own) => format!(
            "`{name}` takes no --{long} before it\nGive it behind the command: {name} {own}"
        ),
        None if option.get_help_heading() == Some(remote::HEADING) => format!(
            "`{name}` has no option --{long}: it measures and surveys no other machine\n\
             Run the command there: ssh HOST {name}"
        ),
        None => format!("`{name}` has no option --{long}\nSee its options: {name} --help"),
    };
    Err(verb.clone().error(ErrorKind::UnknownArgument, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::help::page;

    /// A command that does something itself, with an example of its arguments.
    struct Leaf {
        command: Command,
        path: Vec<String>,
        rest: Vec<String>,
    }

    fn leaves(command: &Command, path: &[String], found: &mut Vec<Leaf>) {
        let name = [&["rubus".to_owned()], path].concat().join("-");
        if let (Some(page), false) = (page(&name), path.is_empty()) {
            let rest = example(page.examples[0].0, path);
            found.push(Leaf { command: command.clone(), path: path.to_vec(), rest });
        }
        for below in command.get_subcommands() {
            leaves(below, &[path, &[below.get_name().to_owned()]].concat(), found);
        }
    }

    /// What follows the command in an example of its help.
    fn example(line: &str, path: &[String]) -> Vec<String> {
        let (line, _) = line.split_once([';', '|', '>']).unwrap_or((line, ""));
        let words = line.split_whitespace().map(|word| word.replace(['\'', '"'], ""));
        let words = words.skip_while(|word| word != "rubus").skip(1);
        let path = &mut path.iter();
        words
            .skip_while(|word| path.as_slice().first() == Some(word) && path.next().is_some())
            .collect()
    }

    fn program() -> Command {
        let mut program = help::command();
        program.build();
        program
    }

    fn parsed(program: &Command, words: &[&[String]]) -> Result<String, clap::Error> {
        let words = words.concat().into_iter().map(OsString::from);
        let words = [OsString::from("rubus")].into_iter().chain(words).collect();
        parse_as(program.clone(), words).map(|(args, _)| format!("{args:?}"))
    }

    /// An option with an example of its value.
    fn typed(option: &Arg) -> Vec<String> {
        let long = format!("--{}", option.get_long().expect("options have long names"));
        let value = match option.get_id().as_str() {
            _ if !option.get_action().takes_values() => return vec![long],
            "at_once" => "3",
            "color" => "never",
            _ => "x",
        };
        vec![long, value.into()]
    }

    #[test]
    fn a_directory_alone_is_a_checkup_of_it_and_a_command_stays_one() {
        let program = help::command();
        let read = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect();
            with_checkup(&program, words, |word| word == "/mnt/ssd" || word == "boot")
        };
        assert_eq!(read(&["rubus", "/mnt/ssd", "-q"]), ["rubus", "checkup", "/mnt/ssd", "-q"]);
        assert_eq!(read(&["rubus", "boot"]), ["rubus", "boot"]);
        assert_eq!(read(&["rubus", "hsitory"]), ["rubus", "hsitory"]);
        assert_eq!(read(&["rubus"]), ["rubus"]);
    }

    #[test]
    fn an_option_before_any_command_means_what_it_means_behind_it_or_is_refused() {
        let program = program();
        let mut all = Vec::new();
        leaves(&program, &[], &mut all);
        assert!(all.len() > 30, "{}", all.len());
        let (mut honoured, mut refused) = (0, 0);
        for option in program.get_arguments() {
            if matches!(option.get_action(), ArgAction::Help | ArgAction::Version) {
                continue;
            }
            let is_remote = option.get_help_heading() == Some(remote::HEADING);
            // What needs --on beside it comes with it.
            let on = is_remote.then(|| vec!["--on".to_owned(), "pi".to_owned()]);
            for beside in [Vec::new()].into_iter().chain(on) {
                for leaf in &all {
                    let option_words = [beside.clone(), typed(option)].concat();
                    let before = parsed(&program, &[&option_words, &leaf.path, &leaf.rest]);
                    let behind = parsed(&program, &[&leaf.path, &option_words, &leaf.rest]);
                    let line = format!("{option_words:?} {:?} {:?}", leaf.path, leaf.rest);
                    let is_taken = (option.is_global_set() || has(&leaf.command, option))
                        && (beside.is_empty() || own_named(leaf, "on"));
                    match (before, behind) {
                        (Ok(before), Ok(behind)) if is_taken => {
                            assert_eq!(before, behind, "{line}");
                            honoured += 1;
                        }
                        (Err(before), Err(behind)) if is_taken => {
                            assert_eq!(before.kind(), behind.kind(), "{line}");
                        }
                        (Err(before), _) if !is_taken => {
                            assert_eq!(before.kind(), ErrorKind::UnknownArgument, "{line}");
                            assert!(before.to_string().contains(&leaf.path.join(" ")), "{before}");
                            refused += 1;
                        }
                        (before, behind) => panic!("{line}: {before:?}, behind: {behind:?}"),
                    }
                }
            }
        }
        assert!(honoured > 100 && refused > 100, "{honoured} honoured, {refused} refused");
    }

    fn own_named(leaf: &Leaf, long: &str) -> bool {
        with_long(&leaf.command, long.as_bytes()).is_some()
    }

    #[test]
    fn short_options_and_values_move_in_their_order() {
        let moved = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = with_options_behind(&program(), words).unwrap();
            words.join(OsStr::new(" ")).into_string().unwrap()
        };
        for (typed, meant) in [
            ("rubus --json survey", "rubus survey --json"),
            ("rubus --json -q history -q show last", "rubus -q history -q show --json last"),
            ("rubus -qoPort=2 --on=pi checkup .", "rubus -q checkup -oPort=2 --on=pi ."),
            ("rubus -qo Port=2 bench -- cpu", "rubus -q bench -o Port=2 -- cpu"),
            ("rubus --machine survey --json suites", "rubus --machine survey suites --json"),
            ("rubus --json", "rubus --json"),
            ("rubus --json --unknown survey", "rubus --json --unknown survey"),
            ("rubus --json -- survey", "rubus --json -- survey"),
            ("rubus --json --help survey", "rubus --json --help survey"),
            ("rubus --json help survey", "rubus --json help survey"),
        ] {
            assert_eq!(moved(typed), meant, "{typed}");
        }
    }

    #[test]
    fn a_refusal_says_where_the_option_belongs() {
        let said = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            parse(words).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [
                "--json bench .",
                "--on pi bench cpu",
                "--on pi history",
                "--json nbd clones reset d n"
            ]
            .map(|line| format!("$ rubus {line}\n{}", said(&format!("rubus {line}"))))
            .join("\n")
        );
    }
}
