//! The sum by which a copy is recognised.

use std::io::Read;

use sha2::{Digest, Sha256};

/// SHA-256 of everything that can still be read, in lower-case hexadecimal, and how many bytes that was.
///
/// # Errors
/// When reading fails.
pub fn sha256(source: &mut impl Read) -> std::io::Result<(String, u64)> {
    let mut sum = Sha256::new();
    let bytes = std::io::copy(source, &mut sum)?;
    let digest = sum.finalize();
    let hexadecimal = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hexadecimal, bytes))
}

/// SHA-256 of bytes.
pub fn sha256_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_known_text() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let (sum, bytes) = sha256(&mut &b"abc"[..]).unwrap();
        assert_eq!((sum.as_str(), bytes), (expected, 3));
    }
}
