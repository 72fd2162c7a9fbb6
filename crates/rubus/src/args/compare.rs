//! Arguments of `rubus compare`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Json;

/// Compare runs, fio's results, captures or published figures.
///
/// Each is a run in the history (its number, its label, last, last~1), a JSON file of rubus or fio
/// (`-` is standard input), or a captured machine. The first is the baseline. Jobs are matched by
/// what they do. A ratio counts as faster or slower only if its interval excludes 1.
///
/// Two fleet documents (of `rubus bench --on @FILE --json FILE`, or checkup) are compared board by
/// board: changed settings, a table of ratios, and which boards became faster or slower.
#[derive(Debug, ClapArgs)]
pub struct Compare {
    /// What to compare, the baseline first
    #[arg(value_name = "RUN", required_unless_present = "list_references")]
    pub subjects: Vec<String>,
    /// Use published figures as the baseline: those named, or the most similar to the first run
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = "")]
    pub reference: Option<String>,
    /// List the published figures
    #[arg(long)]
    pub list_references: bool,
    #[command(flatten)]
    pub json: Json,
    /// Write CSV to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write markdown to a file, or to standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page to a file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Keep serial numbers, addresses, and names of users and servers in the page and the markdown
    #[arg(long)]
    pub with_serials: bool,
    /// Exit with status 1 when anything is slower than the baseline, by more than PERCENT over the
    /// whole interval
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true,
        default_missing_value = "0", value_parser = percentage)]
    pub fail_on_regression: Option<f64>,
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("write a percentage from 0 to below 100".into()),
    }
}
