//! `rubus compression`: what files on btrfs take.

use indicatif::{ProgressBar, ProgressDrawTarget};
use rubus_machine::parse::btrfs::Counts;

use crate::args::{Compression, General};
use crate::documents::CompressionDocument;
use crate::exit::Exit;
use rubus_command::Terminal;
use rubus_command::places::say;

/// Looks, and shows the table.
pub fn run(general: &General, arguments: &Compression) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        general.machine.is_none(),
        "compression looks at files of this machine; leave --machine out"
    );
    let terminal = Terminal::of(general);
    let target = if terminal.live {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    let mut tell = |counts: Counts| {
        bar.set_message(format!("{} files", counts.files));
        bar.tick();
    };
    let stays = arguments.one_file_system;
    let seen = rubus_machine::probe::compression::below(&arguments.paths, stays, &mut tell);
    bar.finish_and_clear();
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
        say(&rubus_processor::compression_text::render(&seen, terminal.style()))?;
    }
    Ok(Exit::Fine)
}
