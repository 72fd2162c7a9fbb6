//! The sum by which a copy is recognised.

use std::io::{ErrorKind, Read};

use ring::digest::{Context, SHA256, digest};

/// SHA-256 of everything that can still be read, in lower-case hexadecimal, and how many bytes that was.
///
/// # Errors
/// When reading fails.
pub fn sha256(source: &mut impl Read) -> std::io::Result<(String, u64)> {
    let mut sum = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        sum.update(&buffer[..read]);
        bytes += read as u64;
    }
    let sum = sum.finish();
    let hexadecimal = sum.as_ref().iter().map(|byte| format!("{byte:02x}"));
    Ok((hexadecimal.collect(), bytes))
}

/// SHA-256 of bytes.
pub fn sha256_of(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
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
