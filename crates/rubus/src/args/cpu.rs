//! `rubus bench cpu`: what the user typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use rubus_core::processor::{Part, USUAL_SECONDS};

use super::{Keeping, history};

/// Measure the processor as a pipe: ciphers and checksums.
///
/// Each figure on one core and on all, with the instructions that were used, and
/// what clock, heat and supply did meanwhile. Needs no root and writes nothing.
#[derive(Debug, ClapArgs)]
pub struct BenchCpu {
    /// Which parts; without any, all
    #[arg(value_name = "PART", value_enum)]
    pub parts: Vec<PartName>,
    /// Seconds that each figure takes
    #[arg(long, value_name = "SECONDS", default_value_t = USUAL_SECONDS, value_parser = seconds)]
    pub seconds: f64,
    /// Write the result as JSON to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Keep no row in the history
    #[arg(long)]
    pub no_history: bool,
    /// Name of the run in the history, for finding and comparing it
    #[arg(long, value_name = "TEXT", conflicts_with = "no_history", value_parser = history::label)]
    pub label: Option<String>,
    /// Write CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write markdown, for a forum or an issue, to a file, or to standard
    /// output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// A part by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartName {
    /// Ciphers and checksums
    Ciphers,
}

impl BenchCpu {
    /// The parts in the order of measuring, each once.
    pub fn wanted_parts(&self) -> Vec<Part> {
        let is_named = |part: &Part| {
            let mut names = self.parts.iter().filter_map(ValueEnum::to_possible_value);
            self.parts.is_empty() || names.any(|name| name.get_name() == part.name())
        };
        Part::ALL.into_iter().filter(is_named).collect()
    }

    /// Where the result goes besides the terminal.
    pub fn keeping(&self) -> Keeping {
        Keeping {
            html: None,
            no_html: true,
            no_history: self.no_history,
            label: self.label.clone(),
            csv: self.csv.clone(),
            markdown: self.markdown.clone(),
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(seconds) if (0.05..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("write seconds from 0.05 to 60".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_name_on_the_command_line() {
        let names: Vec<String> = PartName::value_variants()
            .iter()
            .filter_map(|name| Some(name.to_possible_value()?.get_name().to_string()))
            .collect();
        assert_eq!(names, Part::ALL.map(Part::name));
    }

    #[test]
    fn seconds_are_between_a_moment_and_a_minute() {
        assert_eq!(seconds("0.3"), Ok(0.3));
        assert_eq!(seconds("2s"), Ok(2.0));
        for wrong in ["0", "-1", "61", "x", "nan"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
