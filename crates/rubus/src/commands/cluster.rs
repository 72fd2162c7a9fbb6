//! `rubus cluster`: hands the room of clusters what it needs of this machine.

use std::path::Path;

use anyhow::Context;
use rubus_cluster::cli::{self, Cluster, Ended, Outside};
use rubus_cluster::compare::Comparison;
use rubus_cluster::report::Report;
use rubus_draw::Style;
use rubus_fleet::subjects;
use rubus_host::files::document;
use rubus_vocabulary::result::Run;

use crate::args::General;
use crate::exit::Exit;
use rubus_command::Terminal;
use rubus_command::places;

/// Files whose sizes are taken at most, so that a mistaken `/` ends.
const MAX_FILES: usize = 5_000_000;

/// Answers a question about a cluster.
pub fn run(general: &General, cluster: &Cluster) -> anyhow::Result<Exit> {
    let outside = Here { style: Terminal::of(general).style() };
    Ok(match cli::run(cluster, &outside)? {
        Ended::Fine => Exit::Fine,
        Ended::AnswerIsNo => Exit::AnswerIsNo,
    })
}

struct Here {
    style: Style,
}

impl Outside for Here {
    fn read(&self, path: &Path) -> anyhow::Result<String> {
        document::text(path, document::MAX_LIST_BYTES)
            .with_context(|| format!("cannot read {}", path.display()))
    }

    fn sizes_below(&self, directory: &Path) -> anyhow::Result<Option<Vec<u64>>> {
        if !directory.is_dir() {
            return Ok(None);
        }
        let mut sizes = Vec::new();
        let mut left = vec![directory.to_path_buf()];
        while let Some(directory) = left.pop() {
            let entries = std::fs::read_dir(&directory)
                .with_context(|| format!("cannot read the directory {}", directory.display()))?;
            for entry in entries {
                let entry = entry.with_context(|| {
                    format!("cannot read the directory {}", directory.display())
                })?;
                // Links are not followed: a loop would not end.
                let Ok(facts) = entry.metadata() else {
                    continue;
                };
                if facts.is_dir() {
                    left.push(entry.path());
                } else if facts.is_file() {
                    sizes.push(facts.len());
                }
            }
            anyhow::ensure!(
                sizes.len() <= MAX_FILES,
                "cannot take object sizes from {}: more than {MAX_FILES} files\nName a smaller directory, or give the sizes: --objects 4KiB:60%,4MiB:40%",
                directory.display()
            );
        }
        Ok(Some(sizes))
    }

    fn run(&self, name: &str) -> anyhow::Result<Run> {
        let found = subjects::resolve(name)?;
        let run = found.into_iter().find_map(|found| found.run);
        run.with_context(|| {
            format!("{name} is no run of rubus: give a run's number, label or JSON file")
        })
    }

    fn page_of(&self, report: &Report) -> String {
        rubus_page::cluster::size::render(report, env!("CARGO_PKG_VERSION"))
    }

    fn page_of_comparison(&self, comparison: &Comparison) -> String {
        rubus_page::cluster::comparison::render(comparison, env!("CARGO_PKG_VERSION"))
    }

    fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        places::must_be_writable(path)?;
        places::write_whole(path, text)
    }

    fn say_as_it_is(&self, text: &str) -> anyhow::Result<()> {
        places::say_as_it_is(text)
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        places::say(text)
    }

    fn style(&self) -> Style {
        self.style
    }
}
