//! `rubus manual`: manual pages in roff, from the same definitions as the help.
//!
//! What the definitions do not know (exit status, files, environment, examples) is added here.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, Manual, help};
use crate::exit::Exit;

/// Prints the main page, or writes one page per command into a directory.
pub fn run(manual: &Manual) -> anyhow::Result<Exit> {
    let mut command = Args::command();
    command.build();
    match &manual.dir {
        None => std::io::stdout().write_all(&page(&command)?)?,
        Some(directory) => {
            anyhow::ensure!(
                directory.is_dir(),
                "cannot write manual pages to {}: there is no such directory; make it first",
                directory.display()
            );
            write_all(&command, directory)?;
        }
    }
    Ok(Exit::Fine)
}

/// One page for the command, and one for each command below it.
fn write_all(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let man = Man::new(command.clone());
    let path = directory.join(man.get_filename());
    rubus_host::files::output_file::write_output(&path, &page(command)?)
        .with_context(|| format!("cannot write the manual page {}", path.display()))?;
    for below in command.get_subcommands() {
        // The page of "help" would say nothing that the others do not.
        if below.get_name() != "help" {
            write_all(below, directory)?;
        }
    }
    Ok(())
}

/// A page: what the definitions say, then what they do not know.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut roff = Vec::new();
    // The text after the help is said better by sections of their own.
    let command = command.clone().after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let man = Man::new(command.clone());
    man.render(&mut roff)?;
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let page = help::page(&name);
    if let Some(page) = page {
        roff.extend_from_slice(b".SH EXAMPLES\n");
        for (line, does) in page.examples {
            entry(&mut roff, line, does)?;
        }
    }
    // A group of commands has those of all.
    if let Some(page) = page.or_else(|| help::page("rubus")) {
        roff.extend_from_slice(b".SH EXIT STATUS\n");
        for (status, meaning) in page.statuses {
            entry(&mut roff, &status.to_string(), meaning)?;
        }
    }
    roff.extend_from_slice(REST.as_bytes());
    Ok(roff)
}

/// A term in bold, and what it means.
fn entry(roff: &mut Vec<u8>, term: &str, meaning: &str) -> std::io::Result<()> {
    write!(roff, ".TP\n\\fB{}\\fR\n{}\n", escape(term), escape(meaning))
}

/// Keeps roff from reading options as hyphenation and dots as requests.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// The sections that every page ends with.
const REST: &str = "\
.SH ENVIRONMENT
.TP
\\fBXDG_DATA_HOME\\fR
Where the history and the pages are kept, in a directory \\fBrubus\\fR; without it, ~/.local/share.
.TP
\\fBRUBUS_CHANGES\\fR
Where the plans and journals of changes are kept, instead of /var/lib/rubus/changes.
.TP
\\fBNO_COLOR\\fR, \\fBTERM\\fR
With NO_COLOR set to anything, or TERM=dumb, texts have no colour.
.TP
\\fBLC_ALL\\fR, \\fBLC_CTYPE\\fR, \\fBLANG\\fR
Where the first of them that is set names no UTF-8, or TERM is dumb or linux, pipes and the screen of watch are drawn in ASCII.
.SH FILES
.TP
\\fI~/.local/share/rubus/history.db\\fR
Every run, with the facts of the machine at that time.
.TP
\\fI~/.local/share/rubus/pages/\\fR
The page of each run.
.TP
\\fI/var/lib/rubus/changes/\\fR
The plan and the journal of every change that was applied to this machine.
";
