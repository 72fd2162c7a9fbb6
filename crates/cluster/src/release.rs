//! Ceph's releases, and what depends on them.

use serde::{Serialize, Serializer};

/// A version of Ceph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(into = "String"))]
pub struct Release {
    /// 18 Reef, 19 Squid, 20 Tentacle, 21 Umbrella.
    pub major: u32,
    /// 2: stable.
    pub minor: u32,
    /// Point release.
    pub point: u32,
}

/// What is sized for when no release is named: the newest Tentacle (November 2026).
pub const DEFAULT: Release = Release::new(20, 2, 5);

/// First release with Fast EC that does not crash OSDs (tracker 74813 on 20.2.0).
pub const FAST_EC: Release = Release::new(20, 2, 4);

impl Release {
    /// From its three numbers.
    pub const fn new(major: u32, minor: u32, point: u32) -> Release {
        Release { major, minor, point }
    }

    /// From a version (`20.2.5`), a name (`tentacle`), or the Debian release that packages it.
    ///
    /// # Errors
    /// What is neither.
    pub fn parse(text: &str) -> Result<Release, String> {
        Ok(match text.trim().to_ascii_lowercase().as_str() {
            "bookworm" | "pacific" => Release::new(16, 2, 15),
            "trixie" | "reef" => Release::new(18, 2, 7),
            "squid" => Release::new(19, 2, 7),
            "forky" => FAST_EC,
            "tentacle" => DEFAULT,
            "umbrella" => Release::new(21, 2, 0),
            other => {
                let bad = || {
                    format!(
                        "'{text}' is not a release of Ceph; write a version such as 20.2.5, or squid, tentacle, \
                         umbrella, trixie, forky"
                    )
                };
                let numbers = other.split('.').map(str::parse::<u32>);
                let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().map_err(|_| bad())?;
                match numbers[..] {
                    [major @ 15..=40, minor, point] => Release::new(major, minor, point),
                    _ => return Err(bad()),
                }
            }
        })
    }

    /// Whether Fast EC may be switched on.
    pub fn has_fast_ec(self) -> bool {
        self >= FAST_EC
    }

    /// Whether new keys are `aes256k`, and CVE-2025-30156 is fixed upstream: 19.2.6, 20.2.4, 21.2.
    pub fn has_new_keys(self) -> bool {
        match self.major {
            ..=18 => false,
            19 => self >= Release::new(19, 2, 6),
            20 => self >= Release::new(20, 2, 4),
            _ => true,
        }
    }

    /// Its name, where it has one here.
    pub fn name(self) -> &'static str {
        match self.major {
            16 => "Pacific",
            17 => "Quincy",
            18 => "Reef",
            19 => "Squid",
            20 => "Tentacle",
            21 => "Umbrella",
            _ => "Ceph",
        }
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.point)
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_ec_and_new_keys_go_by_the_point_release() {
        let release = |text| Release::parse(text).unwrap();
        assert!(!release("20.2.3").has_fast_ec());
        assert!(release("forky").has_fast_ec());
        assert!(release("umbrella").has_fast_ec());
        assert!(!release("19.2.5").has_new_keys());
        assert!(release("19.2.6").has_new_keys());
        assert!(!release("20.2.3").has_new_keys());
        for bad in ["", "20", "20.2", "20.2.x", "14.2.0", "frobnitz", "20.2.5.1"] {
            assert!(Release::parse(bad).is_err(), "{bad}");
        }
    }
}
