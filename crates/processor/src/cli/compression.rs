//! `rubus compression`: what files on btrfs take.

use std::path::PathBuf;

use clap::Args;
use rubus_command::places::say;
use rubus_command::progress::Line;
use rubus_command::{Exit, General, Json, Terminal};
use rubus_machine::parse::btrfs::{self, Counts, Share};
use rubus_vocabulary::verb::{PLAIN, Page};
use serde::Serialize;

use crate::compression_text;

/// Exit statuses and examples.
pub const PAGE: Page = Page {
    name: "rubus-compression",
    statuses: PLAIN,
    examples: &[("sudo rubus compression /home", "Show what compression saves below /home.")],
};

/// Show disk usage of files on btrfs, by compression method.
///
/// Reads every extent below the paths, subvolumes included, and opens no file; needs root. A shared
/// extent counts once, and so does a file with several hard links.
#[derive(Debug, Args)]
pub struct Compression {
    /// Directories or files of one btrfs filesystem
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Leave out subvolumes below the paths
    #[arg(long, short = 'x')]
    pub one_file_system: bool,
    #[command(flatten)]
    pub json: Json,
}

/// How files on btrfs are compressed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompressionDocument {
    /// The paths that were looked through.
    pub paths: Vec<String>,
    /// All of it together.
    pub total: Share,
    /// By method.
    pub compression: btrfs::Compression,
}

/// Looks, and shows the table.
pub fn run(general: &General, arguments: &Compression) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "compression looks at files of this machine; leave --machine out"
    );
    let terminal = Terminal::of(general);
    let line = Line::new(terminal);
    let mut tell = |counts: Counts| line.says(&format!("{} files", counts.files));
    let stays = arguments.one_file_system;
    let seen = rubus_machine::probe::compression::below(&arguments.paths, stays, &mut tell);
    drop(line);
    let seen = seen?;
    if arguments.json.wanted {
        let paths = arguments.paths.iter();
        let value = CompressionDocument {
            paths: paths.map(|path| path.display().to_string()).collect(),
            total: seen.total(),
            compression: seen,
        };
        say(&(serde_json::to_string_pretty(&value)? + "\n"))?;
    } else {
        say(&compression_text::render(&seen, terminal.style()))?;
    }
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use rubus_fixtures::validator::must_be_valid;

    use super::*;

    #[test]
    fn the_json_is_as_its_schema_says() {
        let compression = btrfs::Compression::default();
        let total = compression.total();
        let document = CompressionDocument { paths: vec!["/".into()], total, compression };
        let document = serde_json::to_value(document).expect("JSON");
        must_be_valid(&[("a compression".into(), "compression", document)]);
    }
}
