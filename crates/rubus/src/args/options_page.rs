//! The help of every command on one page of the book, made from the definitions. Only tests have this file.
//!
//! `OPTIONS_PAGE=FILE cargo test -p rubus options_page` writes it; `scripts/book` does so.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::help;

const TOP: &str = "\
# Every option

What `rubus COMMAND --help` prints, for every command. The options under *On another machine* and
*For every command* are listed once, here at the top.
";

/// Headings of options that many commands share.
const SHARED: [&str; 2] = ["On another machine", "For every command"];

fn page() -> String {
    let mut command = help::command().term_width(80);
    command.build();
    let mut text = TOP.to_owned();
    add(&command, "rubus", &mut text);
    text
}

fn add(command: &Command, name: &str, text: &mut String) {
    let is_top = name == "rubus";
    let mut shown = command.clone().mut_args(|arg| {
        let is_shared = arg.get_help_heading().is_some_and(|h| SHARED.contains(&h));
        let is_hidden = (is_shared && !is_top) || arg.is_hide_set();
        arg.hide(is_hidden)
    });
    // `--help` is the longer form where that says more.
    let is_long = shown.get_arguments().any(says_more_at_length);
    let help = if is_long {
        shown.render_long_help().to_string()
    } else {
        shown.render_help().to_string()
    };
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(text, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()).expect("text");
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            add(below, &format!("{name} {}", below.get_name()), text);
        }
    }
}

fn says_more_at_length(arg: &Arg) -> bool {
    let mut values = arg.get_possible_values().into_iter();
    let has_explained_values =
        !arg.is_hide_possible_values_set() && values.any(|value| value.get_help().is_some());
    arg.get_long_help().is_some() || has_explained_values
}

#[test]
fn the_page_of_options_has_every_command_as_it_is() {
    let page = page();
    for words in
        ["## rubus bench memory\n", "--i-will-lose-everything-on", "## rubus nbd clones merge\n"]
    {
        assert!(page.contains(words), "{words}");
    }
    if let Some(file) = std::env::var_os("OPTIONS_PAGE") {
        std::fs::write(&file, &page).unwrap_or_else(|why| panic!("cannot write {file:?}: {why}"));
    }
}
