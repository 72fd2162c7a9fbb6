//! What `--help` and the manual pages say beyond the options: details, examples, exit status.

mod pages;

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use rubus_draw::text::{hang, pad_right};

use super::Args;
use rubus_command::text_columns;
use rubus_vocabulary::verb::Page;

/// Details stand above the options, so that a reader sees them in `-h` and `--help` alike.
const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The commands by what they are for, in the order of docs/reference/commands.md.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Look", &["survey", "explain", "boot", "watch", "writers", "zswap", "compression"]),
    (
        "Measure",
        &["checkup", "bench", "enough", "suites", "compare", "history", "share", "gallery"],
    ),
    (
        "Decide and change",
        &[
            "advise", "tune", "cluster", "recipes", "plan", "apply", "undo", "resume", "status",
            "verify",
        ],
    ),
    ("Copy and share disks", &["copy", "serve", "nbd", "attach", "detach"]),
    ("Help", &["help", "completions", "manual"]),
];
/// Columns of a command's name.
const NAME_COLUMNS: usize = 13;

/// The definitions of all commands with everything that their help says.
pub fn command() -> Command {
    let mut program = complete(Args::command(), "rubus");
    // Adds the command `help`.
    program.build();
    let template = format!(
        "{{about-with-newline}}\n{{before-help}}{{usage-heading}} {{usage}}\n\n{}{{all-args}}{{after-help}}",
        groups(&program)
    );
    // They stand in their groups instead of one list.
    let names: Vec<String> =
        program.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let hidden = names
        .iter()
        .fold(program, |program, name| program.mut_subcommand(name, |below| below.hide(true)));
    hidden.help_template(template)
}

/// Each group with its commands, one line each.
fn groups(program: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for name in names {
            let about = program.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(
                || "Explain a command and all its options".to_owned(),
                |about| about.to_string().trim_end_matches('.').to_owned(),
            );
            let first = format!("  {}", pad_right(name, NAME_COLUMNS));
            text.push_str(&(hang(&first, &about, text_columns()).join("\n") + "\n"));
        }
        text.push('\n');
    }
    text
}

/// The pages of all commands: the roof's own, and each room's.
pub fn pages() -> impl Iterator<Item = &'static Page> {
    [
        pages::PAGES,
        rubus_bench::cli::PAGES,
        rubus_boot_check::cli::PAGES,
        rubus_recipes::cli::PAGES,
        rubus_cluster::cli::PAGES,
        rubus_copy::cli::PAGES,
        rubus_fleet::cli::PAGES,
        rubus_memory::cli::PAGES,
        rubus_nbd_tools::cli::PAGES,
        rubus_processor::cli::PAGES,
        rubus_runs::cli::PAGES,
        rubus_tune::cli::PAGES,
        rubus_watch::cli::PAGES,
    ]
    .into_iter()
    .flatten()
}

/// The page of a command, by the name of its manual page.
pub fn page(name: &str) -> Option<&'static Page> {
    pages().find(|page| page.name == name)
}

fn complete(command: Command, name: &str) -> Command {
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let mut command = with_details_above(command).help_template(TEMPLATE);
    if let Some(page) = page(name) {
        let own = command.get_after_help().map(ToString::to_string);
        command = command.after_help(foot(page, own.as_deref()));
    }
    for verb in below {
        let name = format!("{name}-{verb}");
        command = command.mut_subcommand(&verb, |below| complete(below, &name));
    }
    command
}

/// The paragraphs below the first one move from the long description, which only `--help` shows.
fn with_details_above(command: Command) -> Command {
    let long = command.get_long_about().map(ToString::to_string);
    match long.as_deref().and_then(|long| long.split_once("\n\n")) {
        Some((_, details)) => command.before_help(details.to_owned()).long_about(Resettable::Reset),
        None => command,
    }
}

fn foot(page: &Page, own: Option<&str>) -> String {
    let mut text = String::new();
    if !page.examples.is_empty() {
        text.push_str("Examples:\n");
    }
    for (line, does) in page.examples {
        text.push_str(&format!("  {line}\n      {does}\n"));
    }
    if let Some(own) = own {
        text.push_str(&format!("\n{own}\n"));
    }
    if !page.statuses.is_empty() {
        text.push_str("\nExit status:\n");
    }
    for (status, meaning) in page.statuses {
        text.push_str(&format!("  {status}  {meaning}\n"));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that do something themselves, by the names of their manual pages.
    fn leaves(command: &Command, name: &str) -> Vec<String> {
        let own = (!command.is_subcommand_required_set()).then(|| name.to_owned());
        let below = command.get_subcommands().flat_map(|below| {
            let name = format!("{name}-{}", below.get_name());
            leaves(below, &name)
        });
        own.into_iter().chain(below).collect()
    }

    #[test]
    fn every_command_has_an_example_and_its_statuses_and_nothing_else_has() {
        let leaves = leaves(&Args::command(), "rubus");
        assert!(leaves.len() > 30, "{leaves:?}");
        for leaf in &leaves {
            let page = page(leaf).unwrap_or_else(|| panic!("{leaf} has no examples"));
            assert!(!page.examples.is_empty() && !page.statuses.is_empty(), "{leaf}");
        }
        for page in pages() {
            assert!(leaves.iter().any(|leaf| leaf == page.name), "{}", page.name);
        }
    }

    /// The groups are those of the reference, and have every command once.
    #[test]
    fn the_help_has_every_command_in_the_group_of_the_reference() {
        let mut all: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        all.retain(|name| *name != "help");
        all.sort_unstable();
        let command = Args::command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(all, known);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
        let text = std::fs::read_to_string(file).expect("the reference");
        for (title, names) in &GROUPS[..4] {
            let section = text.split(&format!("\n## {title}\n")).nth(1).expect(title);
            let section = section.split("\n## ").next().unwrap_or_default();
            let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
            for name in *names {
                let is_it = |row: &&&str| row.contains(&format!("`rubus {name}"));
                assert!(rows.iter().any(|row| is_it(&row)), "{title}: {name}");
            }
        }
        let help = super::command().render_help().to_string();
        assert!(help.contains("\nLook:\n  survey       Read the machine"), "{help}");
        assert!(!help.contains("Commands:"), "{help}");
    }

    #[test]
    fn help_has_the_details_and_no_line_beyond_80_columns() {
        fn check(command: &mut Command, name: &str) {
            for text in [command.render_help(), command.render_long_help()] {
                for line in text.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{name}: {line}");
                }
            }
            for below in command.get_subcommands_mut() {
                let name = format!("{name} {}", below.get_name());
                check(below, &name);
            }
        }
        let mut command = command();
        command.build();
        check(&mut command, "rubus");
        let help_of = |verb: &str| {
            let mut command = super::command();
            let verb = command.find_subcommand_mut(verb).expect(verb);
            verb.render_help().to_string()
        };
        assert!(help_of("checkup").contains("at most 10 % of the free space"));
        assert!(help_of("copy").contains("access control lists"));
        assert!(help_of("cluster").contains("Nothing is contacted or changed"));
    }
}
