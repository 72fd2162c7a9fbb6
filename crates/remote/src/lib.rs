//! What has to be known to measure on another machine over ssh: how arguments are quoted, which
//! program runs where, what is asked there and what the answers mean. Nothing here connects.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

pub mod answer;
pub mod binary;
pub mod elf;
pub mod meter;
pub mod quote;
pub mod script;

/// A machine as ssh knows it: `host`, `user@host`, `ssh://user@host:port` or a name of the user's own
/// ssh configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(String);

impl Destination {
    /// Takes what was typed.
    ///
    /// # Errors
    /// A sentence when it is empty, has white space or control characters, or begins with `-`, so that
    /// ssh would take it for an option and might run a program here.
    pub fn parse(typed: &str) -> Result<Destination, String> {
        if typed.is_empty() {
            return Err("a machine needs a name, such as pi@raspberrypi.local".into());
        }
        if typed.starts_with('-') {
            return Err(format!(
                "'{typed}' begins with '-', so ssh would take it for an option and not for a machine; \
                 options of ssh are given with --ssh-option"
            ));
        }
        if typed.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!(
                "'{}' has a space or a control character, which no machine's name has",
                typed.escape_debug()
            ));
        }
        Ok(Destination(typed.into()))
    }

    /// As it was typed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_would_take_for_an_option_is_no_machine() {
        for bad in ["-oProxyCommand=touch /tmp/x", "-p22", "-", "--"] {
            let error = Destination::parse(bad).unwrap_err();
            assert!(error.contains("--ssh-option"), "{error}");
        }
        for bad in ["", "a b", "a\nb", "a\u{1b}[2J"] {
            assert!(Destination::parse(bad).is_err(), "{bad:?}");
        }
        for good in ["pi", "pi@attic", "ssh://pi@attic:2222", "pi@fe80::1%eth0"] {
            assert_eq!(Destination::parse(good).unwrap().as_str(), good);
        }
    }
}
