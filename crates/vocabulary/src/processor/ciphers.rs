//! Ciphers and checksums: how many bytes a second, in this program and in the kernel, and with which instructions.

use serde::{Deserialize, Serialize};

use super::Rates;
pub use super::algorithm::Algorithm;
use super::implementation::Implementation;
use super::peers::Peer;

/// What was measured of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ciphers {
    /// In the order of measuring.
    pub rows: Vec<Row>,
    /// Other programs beside this one.
    #[serde(default)]
    pub peers: Vec<Peer>,
}

/// One algorithm, one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Which; XTS by the bits of both its keys.
    pub algorithm: Algorithm,
    /// What is done with it.
    pub work: Work,
    /// Where it is computed.
    pub place: Place,
    /// Bytes of one message.
    pub block_bytes: u32,
    /// By whom, and with which instructions.
    pub implementation: Implementation,
    /// Bytes per second.
    pub rates: Rates,
}

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// It is enciphered.
    Encrypt,
    /// It is deciphered.
    Decrypt,
    /// Its sum is computed.
    Digest,
}

impl Work {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Work::Encrypt => "encrypt",
            Work::Decrypt => "decrypt",
            Work::Digest => "digest",
        }
    }
}

/// Where something is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In this program.
    Program,
    /// In the kernel, reached through a socket (AF_ALG).
    Kernel,
}

impl Place {
    /// In tables and names.
    pub fn name(self) -> &'static str {
        match self {
            Place::Program => "program",
            Place::Kernel => "kernel",
        }
    }
}

/// What one core of the kernel enciphers, without the way there that a program has to go and a disk has not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InTheKernel {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes per second when it is handed sector by sector, with the way there.
    pub by_sectors: f64,
    /// Bytes per second without what each message costs besides its bytes.
    pub without_calls: f64,
    /// Seconds that each message costs besides its bytes.
    pub calls_s: f64,
}

impl Ciphers {
    /// A row by what it is.
    pub fn row(&self, algorithm: Algorithm, work: Work, place: Place) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| (row.algorithm, row.work, row.place) == (algorithm, work, place))
    }

    /// What a cipher of disks does on one core of the kernel. A message takes a time of its own and a time for each byte;
    /// long and short messages tell both. Absent unless the short ones are certainly slower.
    pub fn in_the_kernel(&self, algorithm: Algorithm) -> Option<InTheKernel> {
        let of_disks = self.rows.iter().filter(|row| {
            (row.algorithm, row.work, row.place) == (algorithm, Work::Encrypt, Place::Kernel)
        });
        let (short, long) = (
            of_disks.clone().min_by_key(|row| row.block_bytes)?,
            of_disks.max_by_key(|row| row.block_bytes)?,
        );
        let rate = |row: &Row| Some(row.rates.one_core.as_ref()?.per_second);
        let (by_sectors, by_messages) = (rate(short)?, rate(long)?);
        if by_sectors.high >= by_messages.low || by_sectors.value <= 0.0 {
            return None;
        }
        let (short_bytes, long_bytes) = (f64::from(short.block_bytes), f64::from(long.block_bytes));
        let short_s = short_bytes / by_sectors.value;
        let byte_s = (long_bytes / by_messages.value - short_s) / (long_bytes - short_bytes);
        Some(InTheKernel {
            sector_bytes: short.block_bytes,
            by_sectors: by_sectors.value,
            without_calls: 1.0 / byte_s,
            calls_s: short_s - short_bytes * byte_s,
        })
    }

    /// How many times as fast Adiantum enciphers sectors in the kernel as AES with a key of 512 bits, if certainly faster.
    pub fn adiantum_times(&self) -> Option<f64> {
        let sectors = |algorithm| {
            let rows = self.rows.iter().filter(|row| {
                (row.algorithm, row.work, row.place) == (algorithm, Work::Encrypt, Place::Kernel)
            });
            let row = rows.min_by_key(|row| row.block_bytes)?;
            Some(row.rates.one_core.as_ref()?.per_second)
        };
        let (adiantum, aes) = (sectors(Algorithm::Adiantum)?, sectors(Algorithm::AesXts512)?);
        (adiantum.low > aes.high).then(|| adiantum.value / aes.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Rate;
    use crate::processor::implementation::Uses;
    use rubus_stats::estimate::Estimate;

    fn row(algorithm: Algorithm, block_bytes: u32, per_second: f64) -> Row {
        let rate = Rate {
            threads: 1,
            per_second: Estimate::new(per_second, 0.99 * per_second, 1.01 * per_second),
            passes: 10,
            doubts: Vec::new(),
        };
        Row {
            algorithm,
            work: Work::Encrypt,
            place: Place::Kernel,
            block_bytes,
            implementation: Implementation { name: "xts-aes-neonbs".into(), uses: Uses::Neon },
            rates: Rates { one_core: Some(rate), all_cores: None },
        }
    }

    /// 5 µs for a message and 10 ns for a byte.
    fn ciphers() -> Ciphers {
        let rate = |bytes: f64| bytes / (5e-6 + bytes * 1e-8);
        let of = |bytes: u32| row(Algorithm::AesXts512, bytes, rate(f64::from(bytes)));
        Ciphers { rows: vec![of(65536), of(4096)], peers: Vec::new() }
    }

    #[test]
    fn long_and_short_messages_tell_what_the_way_costs() {
        let found = ciphers().in_the_kernel(Algorithm::AesXts512);
        let found = found.expect("4 KiB are slower");
        assert!((found.without_calls / 1e8 - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.calls_s / 5e-6 - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.sector_bytes, 4096);
        let mut alike = ciphers();
        alike.rows[1].rates = alike.rows[0].rates.clone();
        assert_eq!(alike.in_the_kernel(Algorithm::AesXts512), None);
        alike.rows.truncate(1);
        assert_eq!(alike.in_the_kernel(Algorithm::AesXts512), None);
    }

    #[test]
    fn adiantum_is_told_of_only_where_it_is_certainly_faster() {
        let mut ciphers = ciphers();
        assert_eq!(ciphers.adiantum_times(), None);
        let sectors = 4096.0 / (5e-6 + 4.096e-5);
        let adiantum = |times: f64| row(Algorithm::Adiantum, 4096, times * sectors);
        ciphers.rows.push(adiantum(2.0));
        let times = ciphers.adiantum_times().expect("it is faster");
        assert!((times - 2.0).abs() < 1e-9);
        ciphers.rows.pop();
        ciphers.rows.push(adiantum(1.01));
        assert_eq!(ciphers.adiantum_times(), None);
    }
}
