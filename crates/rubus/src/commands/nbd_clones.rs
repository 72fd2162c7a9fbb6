//! `rubus nbd clones`: listing, resetting, merging and throwing away what clients of a golden image wrote.

use std::io;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rubus_nbd::cli::NbdClones;
use rubus_nbd::clones_text::{as_text, document};
use rubus_nbd::documents::NbdClonesDocument;
use rubus_nbd::server::overlay::{
    ClientName, CloneState, FleetError, Listed, list, merge, reset, throw_away,
};

use crate::args::General;
use crate::exit::{Exit, Refused};
use rubus_command::Terminal;
use rubus_command::places::say;

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
    let target = if Terminal::of(general).live {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    // A template that is a constant; were it wrong, the usual one would do.
    if let Ok(style) = ProgressStyle::with_template("{spinner} merging: {binary_bytes} of the disk")
    {
        bar.set_style(style);
    }
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
