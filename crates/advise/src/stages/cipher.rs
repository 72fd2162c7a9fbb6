//! Encryption on the way to a disk (LUKS).

use crate::advice::{Basis, Known};
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::machine::Machine;
use rubus_vocabulary::processor::arm_cores;
use rubus_vocabulary::processor::ciphers::{Algorithm, Place, Work};
use rubus_vocabulary::published::figures::ASIDES;

/// What all cores do with a cipher, and how that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Cipher {
    /// As dm-crypt names it.
    pub name: &'static str,
    /// Bytes per second of all cores together.
    pub bytes_per_second: Estimate,
    /// Whether the processor has instructions for it.
    pub has_instructions: bool,
    /// Measured, published or assumed.
    pub basis: Basis,
    /// Source of the figure, in words.
    pub source: String,
}

/// AES as LUKS uses it on a machine: as measured, else by instructions where its processor has them, else as published for the
/// board that is nearest.
pub fn aes(machine: &Machine, known: &Known) -> Option<Cipher> {
    let features = machine.cpu.crypto_features.value()?;
    let has_instructions = features.iter().any(|feature| feature == "aes");
    let cores = f64::from(machine.cpu.cores.get().unwrap_or(1).max(1));
    let model = machine.cpu.model.text().unwrap_or_default();
    let name = "aes-xts-plain64";
    if let Some((rate, source)) = measured(known, Algorithm::AesXts512) {
        return Some(Cipher {
            name,
            bytes_per_second: rate,
            has_instructions,
            basis: Basis::Measured,
            source,
        });
    }
    if has_instructions {
        let one = if arm_cores::is_small(model) {
            Estimate::new(0.5e9, 0.25e9, 0.9e9)
        } else {
            Estimate::new(1.2e9, 0.5e9, 4e9)
        };
        return Some(Cipher {
            name,
            bytes_per_second: one.scaled(cores),
            has_instructions,
            basis: Basis::Assumed,
            source: "usual with AES instructions".into(),
        });
    }
    let (board, times, basis) = match model {
        m if arm_cores::has_core(m, "Cortex-A72") => ("Raspberry Pi 4B", 1.0, Basis::Published),
        m if arm_cores::has_core(m, "Cortex-A53") => ("Raspberry Pi 3B+", 1.0, Basis::Published),
        _ => ("Raspberry Pi 3B+", 0.5, Basis::Assumed),
    };
    let published: Vec<f64> = ASIDES
        .iter()
        .filter(|aside| aside.board == board && aside.what.starts_with(name))
        .map(|aside| aside.value * 1e6 * times)
        .collect();
    let low = published.iter().copied().fold(f64::INFINITY, f64::min);
    let high = published.iter().copied().fold(0.0, f64::max);
    let one = (low <= high && low > 0.0)
        .then(|| Estimate::new((low + high) / 2.0, low * 0.9, high * 1.1))?;
    Some(Cipher {
        name,
        bytes_per_second: one.scaled(cores),
        has_instructions,
        basis,
        source: match basis {
            Basis::Published => format!("published for a {board}"),
            _ => format!("half of what was published for a {board}"),
        },
    })
}

/// Adiantum, made for processors without AES instructions: a stream cipher (XChaCha12) and a hash. As measured, else from what AES
/// does: about five times as fast was published for a Cortex-A7 (Crowley and Biggers, 2018: 10.6 cycles per byte).
pub fn adiantum(aes: &Cipher, known: &Known) -> Cipher {
    let name = "xchacha12,aes-adiantum-plain64";
    if let Some((rate, source)) = measured(known, Algorithm::Adiantum) {
        return Cipher {
            name,
            bytes_per_second: rate,
            has_instructions: false,
            basis: Basis::Measured,
            source,
        };
    }
    let (value, low, high) = if aes.has_instructions { (0.5, 0.2, 1.0) } else { (3.5, 2.0, 5.5) };
    let rate = aes.bytes_per_second;
    Cipher {
        name,
        bytes_per_second: Estimate::new(rate.value * value, rate.low * low, rate.high * high),
        has_instructions: false,
        basis: Basis::Assumed,
        source: format!("{low} to {high} times AES"),
    }
}

/// The slower of both directions, in the kernel where that was measured, on all cores.
fn measured(known: &Known, algorithm: Algorithm) -> Option<(Estimate, String)> {
    let processor = known.processor.as_ref()?;
    let ciphers = processor.ciphers.as_ref()?;
    let rate = |work: Work| {
        let row = ciphers
            .row(algorithm, work, Place::Kernel)
            .or_else(|| ciphers.row(algorithm, work, Place::Program))?;
        let rates = &row.rates;
        let rate = rates.all_cores.as_ref().or(rates.one_core.as_ref())?;
        Some(rate.per_second)
    };
    let (encrypt, decrypt) = (rate(Work::Encrypt)?, rate(Work::Decrypt)?);
    let slower = if encrypt.value < decrypt.value { encrypt } else { decrypt };
    (slower.low > 0.0).then(|| (slower, processor.source.clone()))
}
