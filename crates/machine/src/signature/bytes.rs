//! Looking at bytes by their place on the device: bounds-checked, either end.

/// The first and the last bytes of a device of known size. Both slices may cover the whole
/// device; they may overlap.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    device_bytes: u64,
    first: &'a [u8],
    last: &'a [u8],
    logical_block_bytes: Option<u32>,
}

impl<'a> Window<'a> {
    /// A window on a device of `device_bytes`, from its first bytes and its last bytes. Slices
    /// longer than the device are cut.
    pub fn new(device_bytes: u64, first: &'a [u8], last: &'a [u8]) -> Self {
        let limit = usize::try_from(device_bytes).unwrap_or(usize::MAX);
        let last = &last[last.len().saturating_sub(limit)..];
        Window {
            device_bytes,
            first: &first[..first.len().min(limit)],
            last,
            logical_block_bytes: None,
        }
    }

    /// A window on the whole content of a small image.
    pub fn whole(image: &'a [u8]) -> Self {
        Window::new(image.len() as u64, image, image)
    }

    /// The same window, of a device whose logical block is known. An MBR counts in that unit;
    /// where it is not known, 512 is assumed.
    pub fn with_logical_block(mut self, bytes: u32) -> Self {
        self.logical_block_bytes = (bytes >= 512 && bytes.is_power_of_two()).then_some(bytes);
        self
    }

    /// The device's logical block, 512 by default.
    pub fn logical_block_bytes(&self) -> u32 {
        self.logical_block_bytes.unwrap_or(512)
    }

    /// Size of the device.
    pub fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// The bytes from `offset` on, if all of them are in the window.
    pub fn at(&self, offset: u64, length: usize) -> Option<&'a [u8]> {
        let end = offset.checked_add(length as u64)?;
        if end <= self.first.len() as u64 {
            let start = offset as usize;
            return Some(&self.first[start..start + length]);
        }
        let last_begins = self.device_bytes - self.last.len() as u64;
        if offset >= last_begins && end <= self.device_bytes {
            let start = (offset - last_begins) as usize;
            return Some(&self.last[start..start + length]);
        }
        None
    }

    /// Whether exactly these bytes are at `offset`.
    pub fn is(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    /// The byte at `offset`.
    pub(crate) fn u8(&self, offset: u64) -> Option<u8> {
        self.at(offset, 1).map(|bytes| bytes[0])
    }

    /// Little-endian 16 bits.
    pub(crate) fn le16(&self, offset: u64) -> Option<u16> {
        let bytes = self.at(offset, 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// Little-endian 32 bits.
    pub(crate) fn le32(&self, offset: u64) -> Option<u32> {
        let bytes = self.at(offset, 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Little-endian 64 bits.
    pub(crate) fn le64(&self, offset: u64) -> Option<u64> {
        let low = self.le32(offset)?;
        let high = self.le32(offset.checked_add(4)?)?;
        Some(u64::from(low) | u64::from(high) << 32)
    }

    /// Big-endian 16 bits.
    pub(crate) fn be16(&self, offset: u64) -> Option<u16> {
        self.le16(offset).map(u16::swap_bytes)
    }

    /// Big-endian 32 bits.
    pub(crate) fn be32(&self, offset: u64) -> Option<u32> {
        self.le32(offset).map(u32::swap_bytes)
    }

    /// Big-endian 64 bits.
    pub(crate) fn be64(&self, offset: u64) -> Option<u64> {
        self.le64(offset).map(u64::swap_bytes)
    }

    /// Text of at most `length` bytes, up to the first NUL, without spaces at its end.
    pub(super) fn text(&self, offset: u64, length: usize) -> Option<String> {
        self.at(offset, length).map(text)
    }

    /// UTF-16 text in little-endian order of at most `units` code units, up to the first NUL.
    pub(super) fn text_utf16(&self, offset: u64, units: usize) -> Option<String> {
        let bytes = self.at(offset, units.checked_mul(2)?)?;
        let units = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .take_while(|unit| *unit != 0);
        Some(
            char::decode_utf16(units)
                .map(|unit| printable(unit.unwrap_or(char::REPLACEMENT_CHARACTER)))
                .collect(),
        )
    }

    /// A UUID whose sixteen bytes are stored in the order in which they are printed; none when
    /// they are all zero.
    pub(crate) fn uuid(&self, offset: u64) -> Option<String> {
        let bytes = self.at(offset, 16)?;
        (!all_zero(bytes)).then(|| uuid_text(bytes))
    }

    /// A GUID in the mixed order of EFI: the first three fields are little-endian.
    pub(super) fn guid(&self, offset: u64) -> Option<String> {
        let b = self.at(offset, 16)?;
        let ordered = [
            b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
            b[14], b[15],
        ];
        (!all_zero(b)).then(|| uuid_text(&ordered))
    }
}

/// Whether every byte is zero; true for no bytes at all.
pub fn all_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Text up to the first NUL, without white space at its end; what is no text is replaced, so that
/// a hostile label cannot move the cursor of a terminal.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8_lossy(bytes).trim_end().chars().map(printable).collect()
}

fn printable(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

/// Sixteen bytes as `8-4-4-4-12` digits.
pub fn uuid_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// CRC-32 of IEEE 802.3 (reflected, polynomial 0xEDB88320, start and end inverted), as GPT uses.
pub fn crc32(parts: &[&[u8]]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| sum.update(part));
    sum.finalize()
}
