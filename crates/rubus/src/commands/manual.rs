//! `rubus manual`: manual pages in roff, from the same definitions as the help.
//!
//! What the definitions do not know (exit status, files, environment, examples) is added here.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, Manual};
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
    std::fs::write(&path, page(command)?)
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
    let command = command
        .clone()
        .after_help(Resettable::Reset)
        .after_long_help(Resettable::Reset);
    let man = Man::new(command.clone());
    man.render(&mut roff)?;
    let name = command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_string();
    let examples: Vec<_> = EXAMPLES
        .iter()
        .filter(|example| example.page == name)
        .collect();
    if !examples.is_empty() {
        roff.extend_from_slice(b".SH EXAMPLES\n");
    }
    for example in examples {
        write!(
            roff,
            ".TP\n\\fB{}\\fR\n{}\n",
            escape(example.line),
            escape(example.does)
        )?;
    }
    roff.extend_from_slice(REST.as_bytes());
    Ok(roff)
}

/// Keeps roff from reading options as hyphenation and dots as requests.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

struct Example {
    page: &'static str,
    line: &'static str,
    does: &'static str,
}

const EXAMPLES: &[Example] = &[
    Example {
        page: "rubus",
        line: "rubus",
        does: "Measure the disk under the current directory and say which pipe is the narrowest.",
    },
    Example {
        page: "rubus-checkup",
        line: "rubus checkup /mnt/ssd --html ssd.html",
        does: "Measure the disk under /mnt/ssd and write the page to ssd.html.",
    },
    Example {
        page: "rubus-survey",
        line: "rubus survey --save board.tar",
        does: "Show the machine, and save what was read without serial numbers, to be looked at elsewhere.",
    },
    Example {
        page: "rubus-survey",
        line: "rubus --machine board.tar survey",
        does: "Show the machine that was saved.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench . /mnt/ssd --json both.json",
        does: "Measure two disks one after the other and keep the figures as JSON.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench /dev/sda --read-only",
        does: "Measure how fast a device is read; nothing is written.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench /dev/sda --i-will-lose-everything-on=SERIAL",
        does: "Measure reading and writing; what is on the device is lost.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench . --suite queue-depth",
        does: "Find how many operations at once are worth it.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench /mnt/a /mnt/b --together",
        does: "Find out whether two disks share a pipe.",
    },
    Example {
        page: "rubus-bench",
        line: "rubus bench /home/pi --on pi@raspberrypi",
        does: "Measure a directory of another machine, reached with ssh.",
    },
    Example {
        page: "rubus-compare",
        line: "rubus compare before.json after.json",
        does: "Say what became faster or slower, and how sure that is.",
    },
    Example {
        page: "rubus-compare",
        line: "rubus compare last --reference",
        does: "Put the last run beside published figures of a similar disk.",
    },
    Example {
        page: "rubus-copy",
        line: "rubus copy / /mnt/new --system --exclude /swapfile --verify sample",
        does: "Copy the running system to an empty filesystem, and compare.",
    },
    Example {
        page: "rubus-copy",
        line: "rubus copy / /mnt/new --system --exclude /swapfile --again --last",
        does: "Bring that copy up to date, once the services are stopped.",
    },
    Example {
        page: "rubus-serve",
        line: "rubus serve root.img --size 32GiB --listen 192.168.1.5 --allow 192.168.1.0/24",
        does: "Make an image if there is none, and let the machines of this network read and write it.",
    },
    Example {
        page: "rubus-serve",
        line: "rubus serve images/ --read-only --unix /run/images.sock",
        does: "Let programs on this machine read each image of a directory.",
    },
    Example {
        page: "rubus-plan",
        line: "rubus plan zswap max-pool-percent=25",
        does: "Show what the recipe would change here; nothing is changed.",
    },
    Example {
        page: "rubus-apply",
        line: "rubus apply zswap",
        does: "Show the steps, ask, and do them; `rubus undo` puts everything back.",
    },
    Example {
        page: "rubus-verify",
        line: "rubus verify",
        does: "Look whether everything holds that the last change promises.",
    },
    Example {
        page: "rubus-verify",
        line: "rubus verify --measure",
        does: "Also measure again what `rubus apply --measure` measured, and compare.",
    },
    Example {
        page: "rubus-status",
        line: "rubus status 0001-zswap",
        does: "Show every step of a change with its planned and its live value.",
    },
    Example {
        page: "rubus-history",
        line: "rubus history",
        does: "List the latest runs.",
    },
    Example {
        page: "rubus-history-show",
        line: "rubus history show 12 --html run12.html",
        does: "Show run 12 again and write its page.",
    },
];

/// The sections that every page ends with.
const REST: &str = "\
.SH EXIT STATUS
.TP
\\fB0\\fR
Everything that was asked for was done.
.TP
\\fB1\\fR
It was done and the answer is no: a measurement failed or was cut short, or a comparison found a regression.
.TP
\\fB2\\fR
A wrong argument, or the machine did not allow it.
.TP
\\fB3\\fR
Refused, because data could be lost.
.TP
\\fB4\\fR
A change failed in the middle, and everything was put back.
.TP
\\fB5\\fR
A change failed in the middle, and could not be put back.
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
