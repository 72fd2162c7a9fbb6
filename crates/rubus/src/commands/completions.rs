//! `rubus completions`: a completion script, from the same definitions as the help.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory, ValueHint};
use clap_complete::Shell;
use rubus_machine::rules;
use rubus_measure::suites;

use crate::args::{Args, Completions};
use crate::exit::Exit;
use rubus_command::places::say_as_it_is;

/// Prints the script for the shell.
pub fn run(completions: &Completions) -> anyhow::Result<Exit> {
    say_as_it_is(&script(completions.shell))?;
    Ok(Exit::Fine)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    let mut command = completed(Args::command(), shell);
    clap_complete::generate(shell, &mut command, "rubus", &mut script);
    let mut script = without_hidden(&command, &String::from_utf8_lossy(&script));
    match shell {
        Shell::Fish => {
            script.push_str(&values_for_fish(&command));
            script.push_str(&recipe_options_for_fish());
        }
        Shell::Bash => script = with_recipe_options(&script),
        // The others tell the words of a command apart.
        _ => {}
    }
    script
}

/// The commands that take a recipe and then its options.
const OF_RECIPES: [&str; 2] = ["plan", "apply"];

/// clap's script for bash offers all values of a command at once. Options of a recipe follow its name, and are its own.
fn with_recipe_options(script: &str) -> String {
    let mut cases = String::new();
    for recipe in rubus_recipes::ALL.iter().filter(|recipe| !recipe.options.is_empty()) {
        cases.push_str(&format!(
            "                    {}) opts=\"${{own}} {}\"; compopt -o nospace 2>/dev/null ;;\n",
            recipe.name,
            option_words(recipe)
        ));
    }
    let choice = format!(
        "            local own=\"\"\n            for i in ${{opts}}; do\n                [[ ${{i}} == -* ]] && \
         own+=\" ${{i}}\"\n            done\n            for i in \"${{COMP_WORDS[@]:2:COMP_CWORD-2}}\"; \
         do\n                case \"${{i}}\" in\n{cases}                esac\n            done\n"
    );
    let mut text = String::new();
    let mut is_of_recipes = false;
    for line in script.lines() {
        let word = line.trim();
        if let Some(command) = word.strip_suffix(')') {
            is_of_recipes =
                OF_RECIPES.iter().any(|name| command == format!("rubus__subcmd__{name}"));
        }
        text.push_str(line);
        text.push('\n');
        if is_of_recipes && word.starts_with("opts=") {
            text.push_str(&choice);
            is_of_recipes = false;
        }
    }
    text
}

/// The same for fish.
fn recipe_options_for_fish() -> String {
    let mut lines = String::new();
    for verb in OF_RECIPES {
        for recipe in rubus_recipes::ALL.iter().filter(|recipe| !recipe.options.is_empty()) {
            lines.push_str(&format!(
                "complete -c rubus -n \"__fish_seen_subcommand_from {verb}; and __fish_seen_subcommand_from {}\" -f -a \
                 \"{}\"\n",
                recipe.name,
                option_words(recipe)
            ));
        }
    }
    lines
}

/// "max-pool-percent= compressor=".
fn option_words(recipe: &rubus_recipes::Recipe) -> String {
    let words: Vec<String> =
        recipe.options.iter().map(|option| format!("{}=", option.name)).collect();
    words.join(" ")
}

/// clap's script for fish knows the values of options, and not those that stand alone.
fn values_for_fish(command: &Command) -> String {
    let mut lines = String::new();
    for verb in command.get_subcommands() {
        for arg in verb.get_positionals() {
            let values = arg.get_possible_values();
            let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            if !values.is_empty() {
                let seen = format!("__fish_seen_subcommand_from {}", verb.get_name());
                lines.push_str(&format!(
                    "complete -c rubus -n \"{seen}\" -f -a \"{}\"\n",
                    values.join(" ")
                ));
            }
        }
    }
    lines
}

/// What answers another rubus is for no person; clap's scripts have it all the same: as a word in a line of bash, in a line of its own
/// elsewhere.
fn without_hidden(command: &Command, script: &str) -> String {
    let hidden = command.get_arguments().filter(|arg| arg.is_hide_set());
    let hidden: Vec<String> = hidden.filter_map(|arg| Some(arg.get_long()?.to_owned())).collect();
    let mut lines = Vec::new();
    for line in script.lines() {
        let mut line = line.to_owned();
        if line.trim_start().starts_with("opts=") {
            for name in &hidden {
                line = line.replace(&format!(" --{name} "), " ");
            }
        }
        let is_hidden = |name: &String| {
            [format!("'--{name}["), format!("-l {name} "), format!("'--{name}'")]
                .iter()
                .any(|option| line.contains(option))
        };
        if !hidden.iter().any(is_hidden) {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

/// The definitions with the names that this program knows where the parser takes more than those: recipes of one's own, and runs by
/// number.
fn completed(command: Command, shell: Shell) -> Command {
    let recipes = || rubus_recipes::ALL.iter().map(|recipe| recipe.name);
    let options = rubus_recipes::ALL.iter().flat_map(|recipe| recipe.options.iter());
    // Few, and the program ends when they are printed.
    let mut options: Vec<&str> =
        options.map(|option| &*format!("{}=", option.name).leak()).collect();
    options.sort_unstable();
    options.dedup();
    // Their scripts have them behind each recipe.
    if matches!(shell, Shell::Bash | Shell::Fish) {
        options.clear();
    }
    let runs = ["last", "last~1", "last~2"];
    let named = |names: &[&'static str]| PossibleValuesParser::new(names.to_vec());
    let recipe_names = || PossibleValuesParser::new(recipes());
    command
        .mut_subcommand("bench", |verb| {
            verb.mut_arg("suite", |arg| arg.value_parser(named(&suites::names())))
        })
        .mut_subcommand("recipes", |verb| {
            verb.mut_arg("name", |arg| arg.value_parser(recipe_names()))
        })
        .mut_subcommand("plan", |verb| with_recipes(verb, recipe_names(), &options))
        .mut_subcommand("apply", |verb| with_recipes(verb, recipe_names(), &options))
        .mut_subcommand("explain", |verb| {
            let codes = PossibleValuesParser::new(rules::explained().map(|kind| kind.code));
            verb.mut_arg("code", |arg| arg.value_parser(codes))
        })
        .mut_subcommand("share", |verb| verb.mut_arg("run", |arg| arg.value_parser(named(&runs))))
        .mut_subcommand("history", |verb| {
            let of_run = |verb: Command| verb.mut_arg("run", |arg| arg.value_parser(named(&runs)));
            verb.mut_subcommand("show", of_run)
        })
        .mut_subcommand("boot", |verb| {
            verb.mut_arg("disk", |arg| arg.value_hint(ValueHint::FilePath))
        })
}

fn with_recipes(verb: Command, recipes: PossibleValuesParser, options: &[&'static str]) -> Command {
    let verb = verb.mut_arg("recipe", |arg| arg.value_parser(recipes));
    match options {
        // An argument that is touched moves behind the others.
        [] => verb.mut_arg("wishes", |arg| arg),
        options => {
            let options = PossibleValuesParser::new(options.to_vec());
            verb.mut_arg("wishes", |arg| arg.value_parser(options))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_suites_recipes_their_options_and_runs() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for wanted in ["small-files", "logs-to-memory", "max-pool-percent=", "last~1"] {
                assert!(script.contains(wanted), "{shell}: {wanted}");
            }
            assert!(!script.contains("--records"), "{shell}");
        }
    }

    /// What bash offers for a line, by its own reckoning. The script is longer than an argument may be.
    fn offered(words: &[&str]) -> Vec<String> {
        let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let ask = format!(
            "{}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_rubus rubus '{}' '{}' 2>/dev/null\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            script(Shell::Bash),
            line.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = assert_cmd::Command::new("bash")
            .args(["--norc", "-s"])
            .write_stdin(ask)
            .output()
            .expect("bash runs");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_offers_recipes_first_and_then_the_options_of_the_one_that_was_named() {
        let first = offered(&["rubus", "plan", ""]);
        assert!(first.contains(&"zswap".into()) && first.contains(&"--json".into()), "{first:?}");
        assert!(!first.iter().any(|word| word.ends_with('=')), "{first:?}");
        let then = offered(&["rubus", "plan", "zswap", ""]);
        assert!(then.contains(&"max-pool-percent=".into()), "{then:?}");
        assert!(then.contains(&"--json".into()), "{then:?}");
        assert!(!then.contains(&"device=".into()) && !then.contains(&"desktop".into()), "{then:?}");
        let other = offered(&["rubus", "apply", "desktop", "dev"]);
        assert_eq!(other, ["device="]);
    }
}
