//! The text in a file or pipe that another program filled: compressed by gzip, in UTF-16 (as PowerShell's `>` writes), or with
//! a few bytes that are no UTF-8.

use std::io::Read;

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use rubus_host::files::document::MAX_RESULT_BYTES;
use rubus_vocabulary::utf_16;

/// No result is longer.
const MAX_TEXT_BYTES: u64 = MAX_RESULT_BYTES;
/// How formats begin that only their own programs unpack, and those programs.
const PACKED: [(&[u8], &str, &str); 4] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd -dc"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xz -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Where a tar says that it is one.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");

/// The text in these bytes; None where they are none, but perhaps a captured machine.
///
/// # Errors
/// When they are compressed in a way that is not read here, or damaged; the text says how to unpack them.
pub fn of_bytes(name: &str, bytes: Vec<u8>) -> anyhow::Result<Option<String>> {
    if let Some((_, format, program)) = PACKED.iter().find(|(mark, ..)| bytes.starts_with(mark)) {
        bail!(
            "{name} is compressed by {format}, which is not read here\n\
             Unpack it into a pipe, and give `-` for the file: {program} FILE | rubus ..."
        );
    }
    let bytes = if bytes.starts_with(&GZIP) { unpacked(name, &bytes)? } else { bytes };
    let (at, mark) = TAR_MARK;
    if bytes.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
        return Ok(None);
    }
    if let Some(text) = utf_16::decoded(&bytes) {
        return Ok(Some(text));
    }
    let is_binary = bytes.contains(&0);
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // Words of a program in a language of its own, beside its result.
        Err(error) if !is_binary => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        Err(_) => None,
    })
}

fn unpacked(name: &str, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut whole = Vec::new();
    let decoder = MultiGzDecoder::new(bytes);
    decoder.take(MAX_TEXT_BYTES + 1).read_to_end(&mut whole).with_context(|| {
        format!("{name} is compressed by gzip, and damaged or cut off; copy it again")
    })?;
    if whole.len() as u64 > MAX_TEXT_BYTES {
        bail!("{name} unpacks to more than {} MiB, which no result has", MAX_TEXT_BYTES >> 20);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const TEXT: &str = "{\r\n  \"fio version\" : \"fio-3.36\", \"ä\" : \"\u{1f600}\"\r\n}\r\n";

    fn of(bytes: impl Into<Vec<u8>>) -> Option<String> {
        of_bytes("x.json", bytes.into()).expect("readable")
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn in_utf_16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn a_text_is_the_same_in_each_form() {
        let marked = format!("\u{feff}{TEXT}");
        let forms = [
            TEXT.as_bytes().to_vec(),
            in_utf_16(&marked, u16::to_le_bytes),
            in_utf_16(&marked, u16::to_be_bytes),
            in_utf_16(TEXT, u16::to_le_bytes),
            in_utf_16(TEXT, u16::to_be_bytes),
        ];
        for form in forms {
            assert_eq!(of(packed(&form)).as_deref(), Some(TEXT));
            assert_eq!(of(form).as_deref(), Some(TEXT));
        }
        let two = [packed(b"{\"a\":"), packed(b"1}")].concat();
        assert_eq!(of(two).as_deref(), Some("{\"a\":1}"), "two members");
    }

    #[test]
    fn a_byte_that_is_no_utf_8_costs_nothing_but_itself() {
        assert_eq!(of(&b"caf\xe9\n{\"a\":1}"[..]).as_deref(), Some("caf\u{fffd}\n{\"a\":1}"));
        assert_eq!(of(""), Some(String::new()));
    }

    #[test]
    fn what_may_be_a_capture_is_no_text() {
        let mut tar = vec![b'{'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(of(packed(&tar)), None);
        assert_eq!(of(tar), None);
        assert_eq!(of(&b"\x7fELF\x00\xff\xfe{"[..]), None);
    }

    #[test]
    fn what_is_not_unpacked_here_is_told_how_to() {
        let why =
            |bytes: &[u8]| of_bytes("x.json", bytes.to_vec()).expect_err("refused").to_string();
        assert!(why(b"\x28\xb5\x2f\xfd0").contains("zstd -dc FILE | rubus"));
        assert!(why(b"BZh9").contains("compressed by bzip2"));
        let whole = packed(TEXT.as_bytes());
        assert!(why(&whole[..whole.len() / 2]).contains("damaged or cut off"));
    }
}
