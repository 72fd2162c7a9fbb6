//! How objects are spread: replicas or erasure coding, over which failure domain.

use serde::{Deserialize, Serialize};

/// How an object is spread over failure domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Layout {
    /// Whole copies.
    Replica {
        /// Number of copies, at least 2 (`size` of a pool).
        copies: u32,
    },
    /// Reed-Solomon code: `data` chunks, and `parity` chunks that replace any lost ones.
    Erasure {
        /// k, at least 2.
        data: u32,
        /// m, at least 1.
        parity: u32,
        /// With `allow_ec_optimizations` (Fast EC, from 20.2.4 on).
        fast: bool,
    },
}

/// What fails as one: no two chunks of an object share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FailureDomain {
    /// A board with all its disks.
    #[default]
    Host,
    /// A single disk: a board's loss takes several chunks at once.
    Osd,
}

/// Widest code that is taken. Ceph has no such limit; beyond it nothing here was checked.
pub const MAX_WIDTH: u32 = 64;

/// Allocation unit of BlueStore, bytes: `bluestore_min_alloc_size`, fixed when the OSD is created
/// (bluestore-config-ref).
pub const ALLOCATION_BYTES: u64 = 4096;

/// Stripe unit of a legacy EC pool, bytes: `osd_pool_erasure_code_stripe_unit` (pool-pg-config-ref).
pub const LEGACY_STRIPE_UNIT: u64 = 4096;

/// Stripe unit of a Fast EC pool, bytes (erasure-code.rst, 20.2).
pub const FAST_STRIPE_UNIT: u64 = 16384;

impl Layout {
    /// A layout of whole copies.
    ///
    /// # Errors
    /// Fewer than 2 or absurdly many copies, in words.
    pub fn replica(copies: u32) -> Result<Layout, String> {
        match copies {
            0 => Err("cannot keep 0 copies: a pool needs at least 1".into()),
            1 => Err(
                "cannot size 1 copy: every disk that fails loses data; use --replica 2 at least, better 3"
                    .into(),
            ),
            2..=10 => Ok(Layout::Replica { copies }),
            _ => Err(format!("cannot keep {copies} copies: Ceph takes at most 10")),
        }
    }

    /// An erasure code from its usual notation: `3+1`.
    ///
    /// # Errors
    /// What is not of that form or not a code, in words.
    pub fn erasure(text: &str, fast: bool) -> Result<Layout, String> {
        let bad = || format!("'{text}' is not an erasure code; write data+parity, such as 2+2");
        let (data, parity) = text.split_once('+').ok_or_else(bad)?;
        let data: u32 = data.trim().parse().map_err(|_| bad())?;
        let parity: u32 = parity.trim().parse().map_err(|_| bad())?;
        if data < 2 {
            return Err(format!(
                "cannot use EC {text}: Ceph wants at least 2 data chunks; for one use --replica {}",
                parity.saturating_add(1).max(2)
            ));
        }
        if parity == 0 {
            return Err(format!(
                "cannot use EC {text}: without parity every disk that fails loses data"
            ));
        }
        if data.saturating_add(parity) > MAX_WIDTH {
            return Err(format!("cannot use EC {text}: more than {MAX_WIDTH} chunks per object"));
        }
        Ok(Layout::Erasure { data, parity, fast })
    }

    /// Failure domains that an object needs: copies, or k + m.
    pub fn width(self) -> u32 {
        match self {
            Layout::Replica { copies } => copies,
            Layout::Erasure { data, parity, .. } => data + parity,
        }
    }

    /// Chunks that hold an object's bytes once: k, 1 for replicas.
    pub fn data(self) -> u32 {
        match self {
            Layout::Replica { .. } => 1,
            Layout::Erasure { data, .. } => data,
        }
    }

    /// Failure domains that may be lost without losing data: copies - 1, or m.
    pub fn survives(self) -> u32 {
        self.width() - self.data()
    }

    /// Chunks that must be there for I/O to go on. For codes k + min(1, m - 1) (OSDMonitor.cc); for
    /// copies size - size / 2 (`osd_pool_default_min_size` 0).
    pub fn min_size(self) -> u32 {
        match self {
            Layout::Replica { copies } => copies - copies / 2,
            Layout::Erasure { data, parity, .. } => data + parity.saturating_sub(1).min(1),
        }
    }

    /// Bytes on disks per byte stored, padding left out: (k + m) / k.
    pub fn factor(self) -> f64 {
        f64::from(self.width()) / f64::from(self.data())
    }

    /// Whether a Fast EC pool.
    pub fn is_fast(self) -> bool {
        matches!(self, Layout::Erasure { fast: true, .. })
    }

    /// `EC 3+1`, `EC 3+1 fast`, `3 replicas`.
    pub fn name(self) -> String {
        match self {
            Layout::Replica { copies } => format!("{copies} replicas"),
            Layout::Erasure { data, parity, fast } => {
                format!("EC {data}+{parity}{}", if fast { " fast" } else { "" })
            }
        }
    }

    /// Whether `domains` failure domains can hold it at all.
    ///
    /// # Errors
    /// That they cannot, with layouts that fit.
    pub fn must_fit(self, domains: u32, domain: FailureDomain) -> Result<(), String> {
        if self.width() <= domains {
            return Ok(());
        }
        let things = match domain {
            FailureDomain::Host => "board",
            FailureDomain::Osd => "disk",
        };
        let advice = match domains {
            0 | 1 => "add boards: one board is no cluster".to_string(),
            2 => "use --replica 2 and read its reservations, or add boards".to_string(),
            3 => "use --replica 3, or add boards".to_string(),
            n => format!("use --replica 3 or --ec 2+{}, or add boards", (n - 2).min(2)),
        };
        Err(format!(
            "cannot place {}: each object needs {} {things}s, and there {} {domains}\n{}{}",
            self.name(),
            self.width(),
            if domains == 1 { "is" } else { "are" },
            advice[..1].to_uppercase(),
            &advice[1..],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_layouts_are_refused_in_words() {
        for bad in ["", "3", "3+", "a+b", "1+1", "3+0", "60+9", "-3+1", "3+1+1"] {
            assert!(Layout::erasure(bad, false).is_err(), "{bad}");
        }
        assert!(Layout::replica(0).is_err());
        assert!(Layout::replica(1).is_err());
        assert!(Layout::replica(11).is_err());
        let wide = Layout::erasure("4+2", false).unwrap();
        let words = wide.must_fit(4, FailureDomain::Host).unwrap_err();
        insta::assert_snapshot!(words, @r"
        cannot place EC 4+2: each object needs 6 boards, and there are 4
        Use --replica 3 or --ec 2+2, or add boards
        ");
        for domains in 0..6 {
            assert!(wide.must_fit(domains, FailureDomain::Osd).is_err());
        }
        assert_eq!(wide.must_fit(6, FailureDomain::Host), Ok(()));
    }

    #[test]
    fn min_size_is_what_the_monitor_sets() {
        let size = |text| Layout::erasure(text, false).unwrap().min_size();
        assert_eq!([size("3+1"), size("2+2"), size("4+2")], [3, 3, 5]);
        let copies = |n| Layout::Replica { copies: n }.min_size();
        assert_eq!([copies(2), copies(3), copies(4)], [1, 2, 2]);
    }
}
