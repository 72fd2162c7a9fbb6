//! Published figures of a processor's pipes beside one's own.

#![deny(clippy::disallowed_methods)]

use rubus_vocabulary::processor::ProcessorRun;
use rubus_vocabulary::processor::ciphers::{Algorithm, Place, Work};
use rubus_vocabulary::published::figures::ASIDES;

/// A published figure, and ours of the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// What was measured, in the words of the publication.
    pub what: &'static str,
    /// Bytes per second that were published.
    pub published: f64,
    /// Bytes per second here.
    pub ours: f64,
    /// Where and when it was published.
    pub source: &'static str,
}

/// The board whose figures were published, for one that calls itself so; and whether it is the same model.
pub fn board(model: &str) -> (&'static str, bool) {
    match model {
        model if model.starts_with("Raspberry Pi 4 Model B") => ("Raspberry Pi 4B", true),
        model if model.starts_with("Raspberry Pi 3 Model B Plus") => ("Raspberry Pi 3B+", true),
        model if model.starts_with("Raspberry Pi 3") => ("Raspberry Pi 3B+", false),
        model if model.starts_with("Raspberry Pi Zero 2") => ("Raspberry Pi 3B+", false),
        _ => ("Raspberry Pi 4B", false),
    }
}

/// All published figures of that board that were measured here too, with as many bits.
pub fn beside(processor: &ProcessorRun, board: &str) -> Vec<Beside> {
    let bits = format!("{}-bit", processor.pointer_bits);
    let of_board = ASIDES.iter().filter(|aside| {
        // What the publication varied besides is not varied here.
        let is_alike = aside.what.ends_with(&format!("{bits} kernel"))
            || aside.what.ends_with(&format!("{bits} user space"));
        aside.board == board && aside.unit == "MB/s" && is_alike
    });
    let both = of_board.filter_map(|aside| {
        Some(Beside {
            what: aside.what,
            published: aside.value * 1e6,
            ours: ours(processor, aside.what)?,
            source: aside.source,
        })
    });
    both.collect()
}

fn ours(processor: &ProcessorRun, what: &str) -> Option<f64> {
    let mut words = what.split(", ");
    let (first, second, third) = (words.next()?, words.next()?, words.next()?);
    match first {
        "aes-xts-plain64" => {
            let algorithm = match second {
                "256-bit key" => Algorithm::AesXts256,
                _ => Algorithm::AesXts512,
            };
            let work = match third {
                "encryption" => Work::Encrypt,
                _ => Work::Decrypt,
            };
            let row = processor.ciphers.as_ref()?.row(algorithm, work, Place::Kernel)?;
            Some(row.rates.one_core.as_ref()?.per_second.value)
        }
        "ssh to itself" => {
            let mut rows = processor.ssh.as_ref()?.rows.iter();
            let row = rows.find(|row| row.cipher.split('@').next() == Some(second))?;
            Some(row.rate.per_second.value)
        }
        "openssl speed" => {
            let (algorithm, _, _) = rubus_vocabulary::processor::peers::ASKED
                .iter()
                .find(|(_, name, _)| *name == second)?;
            let mut peers = processor.ciphers.as_ref()?.peers.iter();
            let peer = peers.find(|peer| peer.algorithm == *algorithm)?;
            Some(peer.bytes_per_second)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_has_the_figures_of_its_model_or_of_the_nearest() {
        assert_eq!(board("Raspberry Pi 4 Model B Rev 1.1"), ("Raspberry Pi 4B", true));
        assert_eq!(board("Raspberry Pi 3 Model B Plus Rev 1.3"), ("Raspberry Pi 3B+", true));
        assert_eq!(board("Raspberry Pi 3 Model B Rev 1.2"), ("Raspberry Pi 3B+", false));
        assert_eq!(board("QEMU"), ("Raspberry Pi 4B", false));
        for name in ["Raspberry Pi 4B", "Raspberry Pi 3B+"] {
            assert!(ASIDES.iter().any(|aside| aside.board == name), "{name}");
        }
    }

    #[test]
    fn only_what_was_measured_on_as_many_bits_stands_beside_it() {
        let run = rubus_fixtures::processor_run();
        let mut processor = run.processor().expect("there is one").clone();
        let found = beside(&processor, "Raspberry Pi 3B+");
        let what: Vec<&str> = found.iter().map(|beside| beside.what).collect();
        assert!(
            what.contains(&"aes-xts-plain64, 512-bit key, encryption, 64-bit kernel"),
            "{what:?}"
        );
        assert!(what.contains(&"ssh to itself, chacha20-poly1305, 64-bit user space"), "{what:?}");
        assert!(what.contains(&"openssl speed, aes-256-gcm, 64-bit user space"), "{what:?}");
        assert!(what.iter().all(|what| what.contains("64-bit ")), "{what:?}");
        processor.ssh = None;
        let without = beside(&processor, "Raspberry Pi 3B+");
        assert_eq!(without.iter().filter(|beside| beside.what.starts_with("ssh")).count(), 0);
    }
}
