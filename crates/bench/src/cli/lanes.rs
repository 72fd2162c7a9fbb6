//! The value of `rubus bench --lanes`.

use std::fmt;

/// How many rings share a job's queue depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// As many as this process may use CPUs.
    Auto,
    /// This number of rings.
    Count(u32),
}

impl Lanes {
    /// From what was typed. Whether there are that many CPUs is asked where the lanes run, which may be
    /// another machine.
    pub fn parse(text: &str) -> Result<Lanes, String> {
        match (text, text.parse::<u32>()) {
            ("auto", _) => Ok(Lanes::Auto),
            (_, Ok(count @ 1..)) => Ok(Lanes::Count(count)),
            _ => Err("write a number from 1 to the number of CPUs, or auto".into()),
        }
    }

    /// Their number on a machine where the process may use `cpus` CPUs.
    ///
    /// # Errors
    /// In words, when that is too few.
    pub fn on(self, cpus: u32) -> anyhow::Result<u32> {
        let wanted = match self {
            Lanes::Auto => cpus,
            Lanes::Count(count) => count,
        };
        anyhow::ensure!(
            wanted <= cpus,
            "cannot use --lanes {self}: each lane keeps a CPU busy, and this process may use {cpus} here\nGive at most \
             {cpus}, or auto."
        );
        Ok(wanted)
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lanes::Auto => f.write_str("auto"),
            Lanes::Count(count) => write!(f, "{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_auto() {
        assert_eq!(Lanes::parse("auto"), Ok(Lanes::Auto));
        assert_eq!(Lanes::parse("4"), Ok(Lanes::Count(4)));
        for wrong in ["0", "-1", "two", "", "1.5", "4294967296"] {
            assert!(Lanes::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn there_are_no_more_lanes_than_cpus() {
        assert_eq!(Lanes::Auto.on(8).unwrap(), 8);
        assert_eq!(Lanes::Count(8).on(8).unwrap(), 8);
        let error = Lanes::Count(9).on(8).unwrap_err().to_string();
        assert!(error.starts_with("cannot use --lanes 9: "), "{error}");
        assert!(error.contains("Give at most 8"), "{error}");
    }
}
