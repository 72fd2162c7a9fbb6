//! Identifiers of 128 bits: as text, in the byte order of EFI, and from random bytes.

use rubus_vocabulary::checksum::xxh64;

/// Sixteen bytes in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid([u8; 16]);

impl Guid {
    /// From its hexadecimal digits as one number.
    pub const fn from_u128(value: u128) -> Guid {
        Guid(value.to_be_bytes())
    }

    /// Reads `8-4-4-4-12` hexadecimal digits.
    pub fn parse(text: &str) -> Option<Guid> {
        let has_form = text.len() == 36
            && text.bytes().enumerate().all(|(index, byte)| match index {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        if !has_form {
            return None;
        }
        let value = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
        Some(Guid::from_u128(value))
    }

    /// The `index`th of any number of different identifiers that follow from random bytes; of version 4 (RFC
    /// 9562, section 5.4).
    pub fn from_random(random: &[u8], index: u64) -> Guid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&xxh64(random, 2 * index).to_be_bytes());
        bytes[8..].copy_from_slice(&xxh64(random, 2 * index + 1).to_be_bytes());
        Guid::version_4(bytes)
    }

    /// From random bytes, with the bits that mark a random identifier (RFC 9562, version 4).
    pub fn version_4(mut random: [u8; 16]) -> Guid {
        random[6] = random[6] & 0x0F | 0x40;
        random[8] = random[8] & 0x3F | 0x80;
        Guid(random)
    }

    /// From its bytes in the order of its digits.
    pub const fn from_bytes(bytes: [u8; 16]) -> Guid {
        Guid(bytes)
    }

    /// As EFI stores it: the first three fields are little-endian (UEFI Specification 2.10, appendix A).
    pub fn efi_bytes(self) -> [u8; 16] {
        let mut bytes = self.0;
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        bytes
    }
}

/// In lower case, as the kernel and `blkid` print it.
impl std::fmt::Display for Guid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&rubus_machine::signature::uuid_text(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_type_is_stored_as_the_specification_says() {
        let text = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
        let guid = Guid::parse(&text.to_uppercase()).expect("a GUID");
        assert_eq!(guid.to_string(), text);
        assert_eq!(
            guid.efi_bytes(),
            [
                0x28, 0x73, 0x2A, 0xC1, 0x1F, 0xF8, 0xD2, 0x11, 0xBA, 0x4B, 0x00, 0xA0, 0xC9, 0x3E,
                0xC9, 0x3B
            ]
        );
    }

    #[test]
    fn random_ones_differ_and_say_what_they_are() {
        let first = Guid::from_random(&[7; 32], 0).to_string();
        let second = Guid::from_random(&[7; 32], 1).to_string();
        assert_ne!(first, second);
        assert_eq!(&first[14..15], "4");
        assert!("89ab".contains(&first[19..20]), "{first}");
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics_and_what_is_printed_is_read_back(text in ".{0,40}", random: [u8; 16]) {
            let _ = Guid::parse(&text);
            let guid = Guid::from_random(&random, 3);
            proptest::prop_assert_eq!(Guid::parse(&guid.to_string()), Some(guid));
        }
    }
}
