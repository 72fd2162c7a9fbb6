//! `rubus cluster`: arguments and verbs. What has to be read or written goes through [`Outside`].

mod pages;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use rubus_draw::Style;
use rubus_vocabulary::result::Run;
use serde::Serialize;

use crate::beside::beside;
use crate::boards;
use crate::compare::{self, Comparison};
use crate::measured::Measured;
use crate::objects;
use crate::report::Report;
use crate::spec::{self, Clients, Deployer, Deployment, Host};
use crate::text;
use crate::wishes::Wishes;

pub use pages::PAGES;

/// What the verbs need of the machine.
pub trait Outside {
    /// The text of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, path: &Path) -> Result<String>;
    /// The sizes of all files below a directory; none when there is no such directory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn sizes_below(&self, directory: &Path) -> Result<Option<Vec<u64>>>;
    /// The run that a name means, by the rules of `rubus compare`.
    ///
    /// # Errors
    /// If there is no such run.
    fn run(&self, name: &str) -> Result<Run>;
    /// The page of a cluster that was sized.
    fn page_of(&self, report: &Report) -> String;
    /// The page of a comparison.
    fn page_of_comparison(&self, comparison: &Comparison) -> String;
    /// Writes a whole file; `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, path: &Path, text: &str) -> Result<()>;
    /// Prints to standard output what has its own layout, such as a script.
    ///
    /// # Errors
    /// If nothing can be written there.
    fn say_as_it_is(&self, text: &str) -> Result<()>;
    /// Prints to standard output.
    ///
    /// # Errors
    /// When it cannot be written.
    fn say(&self, text: &str) -> Result<()>;
    /// How texts are drawn.
    fn style(&self) -> Style;
}

/// Size a Ceph cluster of small boards before it is bought.
///
/// Nothing is contacted or changed. Figures that were not measured are assumed
/// and marked with ~; the page on clusters in the documentation has formulas and sources.
#[derive(Debug, Args)]
pub struct Cluster {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do about a cluster. Each verb is described where its arguments are.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Size(Box<Size>),
    Compare(Box<Compare>),
    Spec(Box<SpecOf>),
    Boards(Boards),
}

/// Compute capacity, memory, ceilings, rebuild, risk and cost.
#[derive(Debug, Args)]
pub struct Size {
    #[command(flatten)]
    asked: Asked,
    /// Hold what is expected against a run of `rubus bench` on the cluster:
    /// its number, label or JSON file, or `last`
    #[arg(long, value_name = "RUN")]
    measured: Option<String>,
    /// Write a self-contained HTML page to this file, - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Compare layouts, other boards, and ways without Ceph in one table.
#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    asked: Asked,
    /// Write a self-contained HTML page to this file, - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Describe the cluster for cephadm or MicroCeph.
///
/// Prints the files, or writes them into a directory. Nothing is deployed.
#[derive(Debug, Args)]
pub struct SpecOf {
    #[command(flatten)]
    asked: Asked,
    /// What deploys it
    #[arg(long, value_name = "DEPLOYER", default_value = "cephadm")]
    deployer: Deployer,
    /// How clients reach images: librbd, or the kernel's rbd
    #[arg(long, value_name = "CLIENTS", default_value = "librbd")]
    clients: Clients,
    /// Name each board, with its address where the name does not resolve
    /// [default: node1, node2, ...]
    #[arg(long, value_name = "NAME[=ADDRESS]", value_delimiter = ',', value_parser = spec::host)]
    host: Vec<Host>,
    /// Name the disks of each board [default: /dev/sda, or /dev/nvme0n1 on PCIe]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', value_parser = spec::device)]
    device: Vec<String>,
    /// Write the files into this directory, which must exist
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    into: Option<PathBuf>,
}

/// List the kinds of boards.
#[derive(Debug, Args)]
pub struct Boards {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What every verb about a design takes.
#[derive(Debug, Args)]
struct Asked {
    /// Read the cluster from a TOML file, with the names of these options;
    /// options on the command line come first
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    wishes: Wishes,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The JSON documents that they print.
#[cfg(feature = "schema")]
pub fn documents() -> Vec<rubus_vocabulary::verb::Document> {
    use rubus_vocabulary::verb::Document;
    vec![
        Document::of::<Report>("cluster-size", "rubus cluster size --json"),
        Document::of::<Vec<boards::Board>>("cluster-boards", "rubus cluster boards --json"),
        Document::of::<Comparison>("cluster-compare", "rubus cluster compare --json"),
        Document::of::<Vec<spec::File>>("cluster-spec", "rubus cluster spec --json"),
    ]
}

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was answered.
    Fine,
    /// It was answered, and the answer is no.
    AnswerIsNo,
}

/// Does what was asked.
///
/// # Errors
/// Bad input and impossible layouts, with a remedy; output that cannot be written.
pub fn run(cluster: &Cluster, outside: &dyn Outside) -> Result<Ended> {
    match &cluster.verb {
        Verb::Size(size) => self::size(size, outside),
        Verb::Compare(compare) => self::compare(compare, outside),
        Verb::Spec(spec) => self::describe(spec, outside),
        Verb::Boards(list) => {
            let all = boards::known();
            if list.json {
                json(outside, &all)?
            } else {
                outside.say(&text::boards(&all, outside.style()))?
            }
            Ok(Ended::Fine)
        }
    }
}

fn size(size: &Size, outside: &dyn Outside) -> Result<Ended> {
    let (wishes, measured) = size.asked.read(outside)?;
    let mut report = report(&wishes, measured.as_ref())?;
    if let Some(name) = &size.measured {
        let run = outside.run(name)?;
        let beside = beside(&report.ceilings, measured.as_ref(), &run, name);
        report.beside = Some(beside.map_err(|error| anyhow!(error))?);
    }
    match (&size.html, size.asked.json) {
        (Some(path), _) => outside.write(path, &outside.page_of(&report))?,
        (None, true) => json(outside, &report)?,
        (None, false) => outside.say(&text::render(&report, outside.style()))?,
    }
    Ok(if report.fits() { Ended::Fine } else { Ended::AnswerIsNo })
}

fn compare(compare: &Compare, outside: &dyn Outside) -> Result<Ended> {
    let (wishes, measured) = compare.asked.read(outside)?;
    let found = compare::compare(&wishes, measured.as_ref()).map_err(|error| anyhow!(error))?;
    match (&compare.html, compare.asked.json) {
        (Some(path), _) => outside.write(path, &outside.page_of_comparison(&found))?,
        (None, true) => json(outside, &found)?,
        (None, false) => outside.say(&compare::render(&found, outside.style()))?,
    }
    Ok(Ended::Fine)
}

fn describe(of: &SpecOf, outside: &dyn Outside) -> Result<Ended> {
    let (wishes, measured) = of.asked.read(outside)?;
    let design = wishes.design(measured.as_ref()).map_err(|error| anyhow!(error))?;
    let deployment = Deployment {
        deployer: of.deployer,
        clients: of.clients,
        hosts: of.host.clone(),
        devices: of.device.clone(),
    };
    let files =
        spec::files(&design, measured.as_ref(), &deployment).map_err(|error| anyhow!(error))?;
    if let Some(directory) = &of.into {
        for file in &files {
            outside.write(&directory.join(&file.name), &file.text)?;
        }
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        outside.say(&format!("Written to {}: {}\n", directory.display(), names.join(", ")))?;
    } else if of.asked.json {
        json(outside, &files)?;
    } else {
        let parts = files.iter().map(|file| format!("# === {} ===\n{}", file.name, file.text));
        outside.say_as_it_is(&parts.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(Ended::Fine)
}

fn report(wishes: &Wishes, measured: Option<&Measured>) -> Result<Report> {
    let design = wishes.design(measured).map_err(|error| anyhow!(error))?;
    Report::of(design).map_err(|error| anyhow!(error))
}

fn json(outside: &dyn Outside, value: &impl Serialize) -> Result<()> {
    outside.say(&(serde_json::to_string_pretty(value)? + "\n"))
}

impl Asked {
    /// Flags over file, directories of objects as sizes, and the run of the board.
    fn read(&self, outside: &dyn Outside) -> Result<(Wishes, Option<Measured>)> {
        let mut wishes = self.wishes.clone();
        if let Some(path) = &self.file {
            let text = outside.read(path)?;
            let file = Wishes::parse(&text).map_err(|error| {
                anyhow!("cannot read a cluster from {}: {error}", path.display())
            })?;
            wishes = wishes.or(file);
        }
        if let Some(place) = &wishes.objects {
            if let Some(sizes) = outside.sizes_below(Path::new(place))? {
                let found = objects::of_sizes(sizes);
                if found.is_empty() {
                    return Err(anyhow!(
                        "cannot take object sizes from {place}: it has no files with data"
                    ));
                }
                wishes.objects = Some(objects::spelled(&found));
            }
        }
        let measured = match &wishes.node_from {
            Some(name) => {
                let run = outside.run(name)?;
                Some(Measured::of(&run, name).map_err(|error| anyhow!(error))?)
            }
            None => None,
        };
        Ok((wishes, measured))
    }
}

#[cfg(test)]
mod tests;
