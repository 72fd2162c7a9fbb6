//! Which machines `--on` means: those that are typed, and those that files list.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use rubus_command::file_text;
use rubus_host::files::document::{self, MAX_LIST_BYTES};
use rubus_host::files::own_files;

use super::way::Remote;
use crate::inventory::{
    self, Beside, Board, ENDINGS, GROUP_VARIABLES, HOST_VARIABLES, Inventory, Named,
};

/// The machines of a command.
pub struct Machines {
    pub boards: Vec<Board>,
    /// Whether there is more than one, or a file lists them: results come as one table and one
    /// document.
    pub is_fleet: bool,
    /// What of the files is not followed.
    pub notes: Vec<String>,
}

impl Machines {
    /// Those that are meant, each once.
    ///
    /// # Errors
    /// When a file cannot be read or is wrong, or a machine is there twice.
    pub fn of(way: &Remote) -> anyhow::Result<Machines> {
        Machines::named(&way.on, "--on")
    }

    /// Those that an option names, each once.
    ///
    /// # Errors
    /// As of [`Machines::of`].
    pub fn named(all: &[Named], option: &str) -> anyhow::Result<Machines> {
        let mut machines = Machines { boards: Vec::new(), is_fleet: false, notes: Vec::new() };
        for named in all {
            match named {
                Named::Boards(boards) => machines.boards.extend(boards.iter().cloned()),
                Named::File(typed) => {
                    let listed = listed(typed, option)?;
                    machines.boards.extend(listed.boards);
                    machines.notes.extend(listed.notes);
                    machines.is_fleet = true;
                }
            }
        }
        machines.is_fleet |= machines.boards.len() > 1;
        inventory::check(&machines.boards).map_err(|error| anyhow!("{option}: {error}"))?;
        Ok(machines)
    }
}

/// What a file, or one of its groups, lists.
fn listed(typed: &str, option: &str) -> anyhow::Result<Inventory> {
    let (file, group) = match typed.rsplit_once(':') {
        Some((file, group)) if !Path::new(typed).exists() => (file, Some(group)),
        _ => (typed, None),
    };
    let cannot = || format!("cannot read the machines of {option} from {file}");
    if Path::new(file).is_dir() {
        bail!(
            "{}: it is a directory\nName the inventory in it, or write the hosts of all to a file first: \
             ansible-inventory -i {file} --list --yaml --output hosts.yml",
            cannot()
        );
    }
    let bytes = document::bytes(Path::new(file), MAX_LIST_BYTES).with_context(cannot)?;
    let text = file_text::of_bytes(file, bytes)?
        .with_context(|| format!("{}: it is no text", cannot()))?;
    let beside = variables_beside(file)?;
    let mut inventory = inventory::read_with(file, &text, &beside).map_err(anyhow::Error::msg)?;
    if let Some(group) = group {
        inventory.boards = inventory::group(&inventory.boards, group)
            .map_err(|error| anyhow!("cannot take machines from {file}: {error}"))?;
    }
    Ok(inventory)
}

/// The files of `group_vars` and `host_vars` beside an inventory.
fn variables_beside(file: &str) -> anyhow::Result<Beside> {
    let mut beside = Beside::default();
    // All of them together are a list, too.
    let mut left = MAX_LIST_BYTES;
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let kinds = [
        (GROUP_VARIABLES, Beside::add_group as fn(&mut Beside, &str, &str, &str)),
        (HOST_VARIABLES, Beside::add_host),
    ];
    for (kind, add) in kinds {
        for (name, files) in files_of_variables(&directory.join(kind))? {
            for path in files {
                let shown = path.display().to_string();
                let bytes = document::bytes(&path, left)
                    .with_context(|| format!("cannot read the variables in {shown}"))?;
                left = left.saturating_sub(bytes.len() as u64);
                add(&mut beside, &name, &shown, &String::from_utf8_lossy(&bytes));
            }
        }
    }
    Ok(beside)
}

/// The files in a directory of variables, by the name of the group or host that they are of. What is a directory itself has
/// many.
fn files_of_variables(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let names = names_in(directory)?;
    for ending in ENDINGS {
        for name in &names {
            let stem = match ending {
                "" => Some(name.as_str()),
                ending => name.strip_suffix(ending),
            };
            if let Some(stem) = stem.filter(|stem| !found.contains_key(*stem)) {
                let mut files = Vec::new();
                collect_files(&directory.join(name), 0, &mut files)?;
                found.insert(stem.into(), files);
            }
        }
    }
    Ok(found)
}

fn collect_files(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    const MAX_DEPTH: usize = 16;
    if !path.is_dir() {
        files.push(path.into());
    } else if depth < MAX_DEPTH {
        for name in names_in(path)?.iter().filter(|name| inventory::is_of_variables(name)) {
            collect_files(&path.join(name), depth + 1, files)?;
        }
    }
    Ok(())
}

/// The sorted names in a directory; none where there is no such directory.
fn names_in(directory: &Path) -> anyhow::Result<Vec<String>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let cannot = || format!("cannot read the directory {}", directory.display());
    let paths = own_files::list(directory).with_context(cannot)?;
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_string());
    let mut names: Vec<String> = paths.iter().filter_map(name).collect();
    names.sort();
    Ok(names)
}
