//! Encryption on the way to a disk (LUKS).

use rubus_core::estimate::Estimate;
use rubus_core::machine::Machine;
use rubus_core::reference::ASIDES;

use super::by_processor;
use crate::path::{Kind, Step};

/// What one core does with a cipher, and how that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Cipher {
    /// As dm-crypt names it.
    pub name: &'static str,
    /// Bytes per second of one core.
    pub bytes_per_second: Estimate,
    /// In words.
    pub source: String,
}

/// The work of the processor.
pub fn step(cipher: &Cipher, cores: u32) -> Step {
    by_processor(Kind::Cipher, cores, cipher.bytes_per_second)
}

/// AES as LUKS uses it on a machine: by instructions where its processor has them, else as published for the board that is nearest.
pub fn aes(machine: &Machine) -> Option<Cipher> {
    let features = machine.cpu.crypto_features.value()?;
    let model = machine.cpu.model.text().unwrap_or_default();
    let name = "aes-xts-plain64";
    if features.iter().any(|feature| feature == "aes") {
        return Some(Cipher {
            name,
            bytes_per_second: match model.contains("A53") {
                true => Estimate::new(0.5e9, 0.25e9, 0.9e9),
                false => Estimate::new(1.2e9, 0.5e9, 4e9),
            },
            source: "usual with AES instructions".into(),
        });
    }
    let (board, times) = match model {
        m if m.contains("A72") => ("Raspberry Pi 4B", 1.0),
        m if m.contains("A53") => ("Raspberry Pi 3B+", 1.0),
        _ => ("Raspberry Pi 3B+", 0.5),
    };
    let published: Vec<f64> = ASIDES
        .iter()
        .filter(|aside| aside.board == board && aside.what.starts_with(name))
        .map(|aside| aside.value * 1e6 * times)
        .collect();
    let low = published.iter().copied().fold(f64::INFINITY, f64::min);
    let high = published.iter().copied().fold(0.0, f64::max);
    (low <= high && low > 0.0).then(|| Cipher {
        name,
        bytes_per_second: Estimate::new((low + high) / 2.0, low * 0.9, high * 1.1),
        source: format!("published for a {board}"),
    })
}

/// Adiantum, made for processors without AES instructions: a stream cipher (XChaCha12) and a hash. Published: about five times as
/// fast as AES-256-XTS on a Cortex-A7 (Crowley and Biggers, 2018: 10.6 cycles per byte).
pub fn adiantum(aes: &Cipher) -> Cipher {
    let times = |value: f64, factor: f64| value * factor;
    let rate = aes.bytes_per_second;
    Cipher {
        name: "xchacha12,aes-adiantum-plain64",
        bytes_per_second: Estimate::new(
            times(rate.value, 3.5),
            times(rate.low, 2.0),
            times(rate.high, 5.5),
        ),
        source: "2 to 5.5 times AES without instructions for it (Crowley and Biggers 2018)".into(),
    }
}
