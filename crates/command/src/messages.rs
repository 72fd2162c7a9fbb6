//! Messages on standard error: `message!` and `prompt!`, never the standard library's `eprintln!` and `eprint!`. Every
//! message passes one place where what a terminal would obey is taken out, line breaks in names are written as `\n`, and a
//! standard error that is closed or full loses the message and ends nothing.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::Context;
use rubus_draw::text::wrap;
use rubus_host::process::standard_error;

use crate::progress::terminal_columns;

/// Writes a line to standard error.
#[macro_export]
macro_rules! message {
    ($($words:tt)*) => {
        $crate::messages::write_line(&::std::format!($($words)*))
    };
}

/// Writes to standard error without ending the line: the answer follows.
#[macro_export]
macro_rules! prompt {
    ($($words:tt)*) => {
        $crate::messages::write(&::std::format!($($words)*))
    };
}

/// What `message!` does.
pub fn write_line(message: &str) {
    standard_error::write_line(&harmless(message));
}

/// What `prompt!` does.
pub fn write(message: &str) {
    standard_error::write(&harmless(message));
}

/// Whether the user agrees to what was announced; `yes` says so beforehand.
///
/// # Errors
/// Without a terminal to ask on.
pub fn agreed(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    anyhow::ensure!(
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        "not a terminal, cannot ask for confirmation; use --yes"
    );
    write(&format!("\n{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

/// Writes lines that are alike: the first few, and how many more there are. `rest` says where those stand.
pub fn write_few(lines: &[String], rest: &str) {
    for line in first_few(lines, rest) {
        write_line(&line);
    }
}

fn first_few(lines: &[String], rest: &str) -> Vec<String> {
    const NAMED: usize = 5;
    // A line in place of one other would say less.
    let named = if lines.len() <= NAMED + 1 { lines.len() } else { NAMED };
    let mut told: Vec<String> = lines.iter().take(named).cloned().collect();
    if named < lines.len() {
        told.push(format!("and {} more{rest}", lines.len() - named));
    }
    told
}

/// A message that moves no cursor and whose lines are its own. Names come from the command line and from the directory that
/// the program runs in.
fn harmless(message: &str) -> String {
    let mut names: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let here = std::env::current_dir().unwrap_or_default();
    names.push(Path::new(&here).to_string_lossy().into_owned());
    escaped(message, &names)
}

/// A message in lines that fit the terminal, where there is one.
pub fn in_columns(message: &str) -> String {
    let is_plain = !message.chars().any(char::is_control);
    if is_plain && std::io::stderr().is_terminal() {
        wrap(message, usize::from(terminal_columns())).join("\n")
    } else {
        message.to_owned()
    }
}

/// Parts of names that hold control characters are escaped where they stand in the message; of what is left, line breaks and
/// tabs are the message's own.
fn escaped(message: &str, names: &[String]) -> String {
    let mut parts: Vec<&str> = names
        .iter()
        .flat_map(|name| name.split(['/', '=']))
        .filter(|part| part.chars().any(char::is_control))
        .collect();
    // A part may be the beginning of another.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let mut text = message.to_string();
    for part in parts {
        // A name of nothing but a line break cannot be told from the message's own.
        if !part.trim().is_empty() {
            text = text.replace(part, &in_one_line(part));
        }
    }
    let lines = text.split('\n').map(|line| {
        let cells = line.split('\t').map(rubus_draw::text::clean);
        cells.collect::<Vec<_>>().join("\t")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn in_one_line(part: &str) -> String {
    let each = part
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_of_names_are_escaped_and_those_of_the_message_are_not() {
        let names = ["rubus".to_string(), "--data=/tmp/a\nb/c\u{1b}[31md".into()];
        let message = "cannot read /tmp/a\nb/c\u{1b}[31md/e: no such file\nMake it first.\n\tmkdir";
        assert_eq!(
            escaped(message, &names),
            "cannot read /tmp/a\\nb/c\\u{1b}[31md/e: no such file\nMake it first.\n\tmkdir"
        );
    }

    #[test]
    fn of_many_lines_the_first_few_are_told_and_the_rest_counted() {
        let lines = |count: usize| -> Vec<String> { (1..=count).map(|n| n.to_string()).collect() };
        assert_eq!(first_few(&lines(6), ""), lines(6));
        let told = first_few(&lines(102), " like these");
        assert_eq!(told, ["1", "2", "3", "4", "5", "and 97 more like these"]);
    }

    /// The model of a disk, or a file that was found on the way.
    #[test]
    fn what_no_argument_named_cannot_move_the_cursor_either() {
        let said = escaped("sda: \u{1b}[2JEvil\rdisk", &[]);
        assert!(!said.contains(['\u{1b}', '\r']), "{said:?}");
    }
}
