//! Arguments of `rubus enough`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use rubus_verdict::enough::{SECONDS, names};

use rubus_command::values::seconds_within;

use super::Json;

/// Say whether storage is fast enough for a program.
///
/// Writes as the program does and judges the slowest commits, not the average: yes; yes, but; no;
/// or undecided, where too little was seen. Writes only to new, nameless files below the directory,
/// which are gone at the end, also after Ctrl-C; says how much before it begins. Runs are not kept
/// in the history.
#[derive(Debug, ClapArgs)]
pub struct Enough {
    /// Program that would use the storage
    #[arg(value_name = "PROGRAM", value_parser = PossibleValuesParser::new(names()))]
    pub program: String,
    /// Directory on the storage in question
    #[arg(default_value = ".", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub directory: PathBuf,
    /// How long to measure, such as 90s or 10m; rare stalls need long measurements
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub time: f64,
    #[command(flatten)]
    pub json: Json,
}

/// Seconds, or minutes with an `m`.
fn time(text: &str) -> Result<f64, String> {
    let (least, most) = (*SECONDS.start(), *SECONDS.end());
    let minutes = text.strip_suffix('m').map(str::parse::<f64>);
    match minutes {
        None => seconds_within(text, least, most),
        Some(Ok(minutes)) if (least..=most).contains(&(minutes * 60.0)) => Ok(minutes * 60.0),
        Some(_) => Err(format!("write minutes up to {}", most / 60.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn a_time_is_in_seconds_or_minutes() {
        assert_eq!(time("90s"), Ok(90.0));
        assert_eq!(time("90"), Ok(90.0));
        assert_eq!(time("10m"), Ok(600.0));
        for wrong in ["9s", "2h", "61m", "m", "-1m", "NaNm"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
