//! Which boards a fleet has: from the names of `--on`, a fleet file of our own (TOML), or an
//! Ansible inventory (INI or YAML) as it is.

mod ansible;
mod beside;
mod fleet_file;
mod ini;
mod range;
mod template;
mod words;
mod yaml;

use std::collections::BTreeMap;

use rubus_remote::Destination;

pub use beside::{Beside, ENDINGS, GROUP_VARIABLES, HOST_VARIABLES, is_of_variables};
pub use range::expand;

/// A fleet has at most this many boards: a slip in a range must not open a million connections.
pub const MAX_BOARDS: usize = 10_000;

/// What ssh takes in no name of a host.
const NOT_IN_HOSTS: &str = "'`\"$\\;&<>|(){},";

/// A machine of a fleet and how ssh reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// As its owner calls it.
    pub name: String,
    /// As ssh is to be told.
    pub destination: Destination,
    /// More settings for ssh, in the form of its configuration file.
    pub settings: Vec<String>,
    /// Groups that have it, those that contain these groups included.
    pub groups: Vec<String>,
    /// Host and port that it is told apart by.
    place: (String, Option<u16>),
    /// A file lists it, in which two names of one address are a slip.
    is_listed: bool,
}

/// How a machine is reached, as inventories say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reach {
    host: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    identity: Option<String>,
    settings: Vec<String>,
}

impl Board {
    /// A machine as it is typed after `--on`.
    ///
    /// # Errors
    /// When ssh would not take it for a machine.
    pub fn typed(name: &str) -> Result<Board, String> {
        let host = name.rsplit_once('@').map_or(name, |(_, host)| host);
        Ok(Board {
            name: name.into(),
            destination: Destination::parse(name)?,
            settings: Vec::new(),
            groups: Vec::new(),
            place: (host.to_lowercase(), None),
            is_listed: false,
        })
    }

    fn reached(name: &str, reach: &Reach, groups: Vec<String>) -> Result<Board, String> {
        if let Some(name) =
            [name].into_iter().chain(groups.iter().map(String::as_str)).find(has_control)
        {
            let name = name.escape_debug();
            return Err(format!("the name '{name}' has a control character\nGive it another name"));
        }
        let host = reach.host.as_deref().unwrap_or(name);
        let typed = match &reach.user {
            Some(user) => format!("{user}@{host}"),
            None => host.to_string(),
        };
        let cannot = |why| format!("cannot reach board {name}: {why}");
        if let Some(odd) = host.chars().find(|letter| NOT_IN_HOSTS.contains(*letter)) {
            let why = format!("'{host}' has '{odd}', which no machine's name has");
            return Err(cannot(why) + "\nWrite the name or address itself, one on each line");
        }
        let destination = Destination::parse(&typed).map_err(cannot)?;
        Destination::parse(host).map_err(cannot)?;
        // ssh takes the first value of a setting: what the inventory has a word of its own for stands before the arguments.
        let mut settings: Vec<String> =
            reach.port.map(|port| format!("Port={port}")).into_iter().collect();
        if let Some(file) = &reach.identity {
            if file.contains(['"', '\n']) {
                return Err(cannot(format!("'{}' is no file name", file.escape_debug())));
            }
            settings.push(format!("IdentityFile=\"{file}\""));
        }
        // The user is in the destination, before which ssh takes that of a setting.
        let is_overruled = |setting: &&String| reach.user.is_some() && is_of_user(setting);
        settings.extend(reach.settings.iter().filter(|one| !is_overruled(one)).cloned());
        Ok(Board {
            name: name.into(),
            destination,
            settings,
            groups,
            place: (host.to_lowercase(), reach.port),
            is_listed: true,
        })
    }

    /// Where ssh finds it, if its name does not say so: "10.0.0.7, Port=2222".
    pub fn address(&self) -> Option<String> {
        let is_said = self.destination.as_str() == self.name && self.settings.is_empty();
        let mut words = vec![self.destination.to_string()];
        let port = self.settings.iter().find(|one| one.starts_with("Port="));
        words.extend(port.cloned());
        (!is_said).then(|| words.join(", "))
    }
}

/// Whether a setting of ssh is its user.
fn is_of_user(setting: &str) -> bool {
    let name = setting.trim_start().split(['=', ' ', '\t']).next().unwrap_or_default();
    name.eq_ignore_ascii_case("user")
}

/// Whether a name would break the lines of what is printed.
fn has_control(name: &&str) -> bool {
    name.contains(char::is_control)
}

/// What a file lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Its boards, in the order of the file.
    pub boards: Vec<Board>,
    /// What of it is not followed, each as a sentence.
    pub notes: Vec<String>,
}

/// A value of `--on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// One machine, or a range of them.
    Boards(Vec<Board>),
    /// A file that lists them: what stands behind the `@`.
    File(String),
}

impl Named {
    /// Takes what was typed: `[USER@]HOST`, `pi[01:20]`, `@FILE`.
    ///
    /// # Errors
    /// When ssh would not take it for a machine, or the range is none.
    pub fn parse(typed: &str) -> Result<Named, String> {
        if let Some(file) = typed.strip_prefix('@') {
            return if file.is_empty() {
                Err("write a fleet file or an inventory after the @, such as @hosts.yml".into())
            } else {
                Ok(Named::File(file.into()))
            };
        }
        let names = expand(typed)?;
        let boards = names.iter().map(|name| Board::typed(name));
        Ok(Named::Boards(boards.collect::<Result<_, _>>()?))
    }
}

/// Reads a file: ours if its name ends in `.toml`, Ansible's YAML if it ends in `.yml`, `.yaml` or
/// `.json` or looks like it, else Ansible's INI.
///
/// # Errors
/// What is wrong with it, as a sentence that begins with the file and the line, if it is one
/// line's.
pub fn read(file: &str, text: &str) -> Result<Inventory, String> {
    read_with(file, text, &Beside::default())
}

/// The same, with variables from files beside an Ansible inventory. A fleet file of ours has all that it needs.
///
/// # Errors
/// As of [`read`].
pub fn read_with(file: &str, text: &str, beside: &Beside) -> Result<Inventory, String> {
    let of_file = |error: String| format!("cannot read the inventory {file}: {error}");
    // Editors of Windows put a mark before the first letter.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with("$ANSIBLE_VAULT") {
        return Err(of_file(format!(
            "it is encrypted with Ansible Vault, which Rubus does not open\nDecrypt it to a file \
             first: ansible-vault decrypt --output hosts.yml {file}"
        )));
    }
    if text.starts_with("#!") {
        return Err(of_file(format!(
            "it is a program, which Rubus does not run\nWrite its hosts to a file first: \
             ansible-inventory -i {file} --list --yaml --output hosts.yml"
        )));
    }
    let boards = |listed: ansible::Listed| {
        let variables =
            beside.read(|group| listed.has_group(group), |host| listed.has_host(host))?;
        listed.boards(variables)
    };
    let inventory = match format(file, text) {
        Format::Fleet => fleet_file::read(text),
        Format::Yaml => yaml::read(text).and_then(boards),
        Format::Ini => ini::read(text).and_then(boards),
    };
    let inventory = inventory.map_err(of_file)?;
    check_names(&inventory.boards).map_err(of_file)?;
    Ok(inventory)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Fleet,
    Yaml,
    Ini,
}

fn format(file: &str, text: &str) -> Format {
    let end = file.rsplit('/').next().unwrap_or_default();
    match end.rsplit_once('.').map_or("", |(_, end)| end) {
        "toml" => Format::Fleet,
        "yml" | "yaml" | "json" => Format::Yaml,
        "ini" | "cfg" => Format::Ini,
        _ => {
            let mut lines = text.lines().map(str::trim_end);
            let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
            match first {
                Some(line) if line == "---" || line.starts_with('{') || line.ends_with(':') => {
                    Format::Yaml
                }
                _ => Format::Ini,
            }
        }
    }
}

/// The boards of a group; `all` is every board, as Ansible has it.
///
/// # Errors
/// When there is no such group, with those that there are.
pub fn group(boards: &[Board], wanted: &str) -> Result<Vec<Board>, String> {
    if wanted == "all" {
        return Ok(boards.to_vec());
    }
    let of_group = |board: &&Board| board.groups.iter().any(|group| group == wanted);
    let found: Vec<Board> = boards.iter().filter(of_group).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut known: Vec<&str> =
        boards.iter().flat_map(|board| board.groups.iter().map(String::as_str)).collect();
    known.sort_unstable();
    known.dedup();
    Err(if known.is_empty() {
        format!("no group {wanted}: the file has no groups")
    } else {
        format!("no board is in the group {wanted}: its groups are {}", known.join(", "))
    })
}

/// Refuses a list that has a board twice: it would be measured twice at the same time.
///
/// # Errors
/// If the list is empty, too long, or has a board or an address twice. Of the boards that files list the address counts regardless
/// of the user.
pub fn check(boards: &[Board]) -> Result<(), String> {
    check_names(boards)?;
    check_places(boards.iter().filter(|board| board.is_listed))?;
    let mut places = BTreeMap::new();
    for board in boards {
        if let Some(other) = places.insert((&board.destination, &board.place), &board.name) {
            return Err(same_place(other, board));
        }
    }
    Ok(())
}

fn check_names(boards: &[Board]) -> Result<(), String> {
    if boards.is_empty() {
        return Err("it lists no boards".into());
    }
    if boards.len() > MAX_BOARDS {
        return Err(format!("{} boards, more than {MAX_BOARDS}", boards.len()));
    }
    let mut names = BTreeMap::new();
    for board in boards {
        if names.insert(&board.name, ()).is_some() {
            return Err(format!(
                "{0} is listed twice, and would be measured twice at the same time\nRemove one \
                 of the two {0}",
                board.name
            ));
        }
    }
    Ok(())
}

/// Refuses two names for one address, regardless of the user.
///
/// # Errors
/// If two boards have one address.
fn check_places<'a>(boards: impl IntoIterator<Item = &'a Board>) -> Result<(), String> {
    let mut places = BTreeMap::new();
    for board in boards {
        if let Some(other) = places.insert(&board.place, &board.name) {
            return Err(same_place(other, board));
        }
    }
    Ok(())
}

fn same_place(other: &str, board: &Board) -> String {
    let (host, port) = &board.place;
    let port = port.map_or(String::new(), |port| format!(", port {port}"));
    format!(
        "{other} and {} have the same address ({host}{port}), and would disturb each \
         other\nRemove one of them, or correct its address",
        board.name
    )
}

#[cfg(test)]
mod tests;
