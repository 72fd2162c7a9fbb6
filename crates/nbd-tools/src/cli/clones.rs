//! `rubus nbd clones`: listing, resetting, merging and throwing away what clients of a golden image wrote.

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rubus_command::places::say;
use rubus_command::{Exit, General, Terminal, progress};
use rubus_nbd::server::overlay::{
    ClientName, CloneState, FleetError, Listed, list, merge, reset, throw_away,
};
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::verb::{MISTAKE, PLAIN, Page};

use crate::clones_text::{as_text, document};
use crate::documents::NbdClonesDocument;

/// Exit statuses and examples.
pub(super) const LIST_PAGE: Page = Page {
    name: "rubus-nbd-clones-list",
    statuses: &[(0, "all are usable"), (1, "a clone is not usable"), MISTAKE],
    examples: &[("rubus nbd clones list clones/", "Show what each client wrote.")],
};

/// Exit statuses and examples.
pub(super) const RESET_PAGE: Page = Page {
    name: "rubus-nbd-clones-reset",
    statuses: PLAIN,
    examples: &[(
        "rubus nbd clones reset clones/ board7",
        "Give board7 the golden image again. What it wrote is lost.",
    )],
};

/// Exit statuses and examples.
pub(super) const REMOVE_PAGE: Page = Page {
    name: "rubus-nbd-clones-remove",
    statuses: PLAIN,
    examples: &[(
        "rubus nbd clones remove clones/ board7",
        "Remove the clone of board7. What it wrote is lost.",
    )],
};

/// Exit statuses and examples.
pub(super) const MERGE_PAGE: Page = Page {
    name: "rubus-nbd-clones-merge",
    statuses: PLAIN,
    examples: &[(
        "rubus nbd clones merge clones/ board7 --to board7.img",
        "Write the disk that board7 sees to a new image.",
    )],
};

/// Manage the clones of a golden image.
///
/// They are made by `rubus serve --clone-per-client`.
#[derive(Debug, Subcommand)]
pub enum NbdClones {
    /// List the clones in a directory
    List {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Reset a clone to the current golden image; its client's writes are lost
    Reset {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The golden image, if it has moved
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
    /// Remove a clone; its client's writes are lost
    #[command(alias = "throw-away")]
    Remove {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
    },
    /// Write a client's disk into a new image; the clone stays
    Merge {
        /// Where the clones are
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
        /// The client
        #[arg(value_name = "NAME", value_parser = ClientName::asked)]
        name: ClientName,
        /// The new image; it must not exist, and gets its name only when it is complete
        #[arg(long, value_name = "OUT", value_hint = clap::ValueHint::FilePath)]
        to: PathBuf,
        /// The golden image, if it has moved
        #[arg(long, value_name = "IMAGE", value_hint = clap::ValueHint::FilePath)]
        golden: Option<PathBuf>,
    },
}

/// Does what was asked for.
pub fn run(general: &General, clones: &NbdClones) -> anyhow::Result<Exit> {
    let told = match clones {
        NbdClones::List { directory, json } => return show(directory, *json),
        NbdClones::Reset { directory, name, golden } => {
            let generation = reset(directory, name, golden.as_deref()).map_err(in_words)?;
            format!("{name} is the golden image again, generation {generation}\n")
        }
        NbdClones::Remove { directory, name } => {
            throw_away(directory, name).map_err(in_words)?;
            format!("the clone {name} is gone\n")
        }
        NbdClones::Merge { directory, name, to, golden } => {
            copy_out(general, directory, name, golden.as_deref(), to)?;
            format!("{} is the disk that {name} sees\n", to.display())
        }
    };
    if !general.quiet {
        say(&told)?;
    }
    Ok(Exit::Fine)
}

/// A clone that another program has is refused, since its client would lose data.
fn in_words(error: FleetError) -> anyhow::Error {
    match error {
        FleetError::InUse(_) => Refused(error.to_string()).into(),
        error => error.into(),
    }
}

fn copy_out(
    general: &General,
    directory: &Path,
    name: &ClientName,
    golden: Option<&Path>,
    to: &Path,
) -> anyhow::Result<()> {
    let bar =
        progress::counted(Terminal::of(general), "{spinner} merging: {binary_bytes} of the disk");
    let merged = merge(directory, name, golden, to, &mut |at| bar.set_position(at));
    bar.finish_and_clear();
    merged.map_err(in_words)
}

fn show(directory: &Path, json: bool) -> anyhow::Result<Exit> {
    let clones = list(directory).map_err(|error| not_listed(directory, error))?;
    if json {
        let all = NbdClonesDocument { clones: clones.iter().map(document).collect() };
        say(&(serde_json::to_string_pretty(&all)? + "\n"))?;
    } else if clones.is_empty() {
        say(&format!("{} has no clones\n", directory.display()))?;
    } else {
        say(&clones.iter().map(as_text).collect::<String>())?;
    }
    let is_usable = |clone: &Listed| !matches!(clone.state, CloneState::Unusable(_));
    Ok(if clones.iter().all(is_usable) { Exit::Fine } else { Exit::AnswerIsNo })
}

fn not_listed(directory: &Path, error: io::Error) -> anyhow::Error {
    let place = directory.display();
    let advice =
        "name the one that the server was given (rubus serve IMAGE --clone-per-client DIRECTORY)";
    match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("there is no directory {place}; {advice}"),
        io::ErrorKind::NotADirectory => anyhow::anyhow!("{place} is no directory; {advice}"),
        io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!(
                "{place} may not be read by this user; try again as its owner or as root"
            )
        }
        _ => anyhow::Error::from(error).context(format!("cannot read {place}")),
    }
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::validator::must_be_valid;

    use super::*;
    use crate::documents::NbdCloneDocument;

    #[test]
    fn the_json_is_as_its_schema_says() {
        let clones = NbdClonesDocument {
            clones: vec![NbdCloneDocument {
                name: "pi".into(),
                standing: "left",
                why: None,
                taken_bytes: 4096,
                generation: Some(0),
                size_bytes: Some(8192),
                own_bytes: Some(512),
                is_shared: Some(false),
                golden: Some("/srv/golden.img".into()),
            }],
        };
        let clones = serde_json::to_value(&clones).expect("JSON");
        must_be_valid(&[("clones".into(), "nbd-clones", clones)]);
    }
}
