//! The kernel's ways to compress, as readers that take exactly their own bytes, so that what follows can
//! be read next.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use lzma_rust2::{LzmaReader, XzReader};
use zstd::stream::read::Decoder;

use super::lz4::Lz4Legacy;
use super::source::Source;
use super::wrong;

/// More than this is not given to one decompressor, in KiB: four times what `xz -9` needs.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
/// No window of zstd is larger than two to this many bytes: what `zstd --ultra -22` needs.
const MAX_WINDOW_LOG: u32 = 27;

/// How a piece is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Lz4,
    Lzma,
    /// The kernel may know it; it cannot be looked into here.
    Unreadable(&'static str),
}

impl Compression {
    /// By the first bytes. Source: Linux, lib/decompress.c.
    pub(super) fn of(head: &[u8]) -> Option<Compression> {
        const MAGICS: [(&[u8], Compression); 10] = [
            (&[0x1F, 0x8B], Compression::Gzip),
            (&[0x1F, 0x9E], Compression::Gzip),
            (&[0x28, 0xB5, 0x2F, 0xFD], Compression::Zstd),
            (&[0xFD, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
            (&[0x02, 0x21, 0x4C, 0x18], Compression::Lz4),
            (&[0x5D, 0, 0], Compression::Lzma),
            (b"BZh", Compression::Unreadable("bzip2")),
            (&[0x89, b'L', b'Z', b'O'], Compression::Unreadable("lzop")),
            // The kernel does not know lz4's newer frame.
            (
                &[0x04, 0x22, 0x4D, 0x18],
                Compression::Unreadable("lz4 in a frame that no kernel reads"),
            ),
            (&[0x50, 0x2A, 0x4D, 0x18], Compression::Unreadable("zstd in pieces")),
        ];
        let found = MAGICS.iter().find(|(magic, _)| head.starts_with(magic));
        found.map(|(_, compression)| *compression)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
            Compression::Lz4 => "lz4",
            Compression::Lzma => "lzma",
            Compression::Unreadable(name) => name,
        }
    }
}

/// Gives what is packed to `look`, which reads to the end, and leaves the source behind the piece.
pub(super) fn run<R: Read>(
    compression: Compression,
    source: &mut Source<R>,
    look: impl FnOnce(&mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    match compression {
        Compression::Gzip => look(&mut GzDecoder::new(source)),
        Compression::Xz => look(&mut XzReader::new(source, false)),
        Compression::Lz4 => look(&mut Lz4Legacy::new(source)?),
        Compression::Lzma => look(&mut LzmaReader::new_mem_limit(source, MAX_MEMORY_KIB, None)?),
        Compression::Zstd => {
            let mut decoder = Decoder::with_buffer(source)?.single_frame();
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            look(&mut decoder)
        }
        Compression::Unreadable(name) => Err(wrong(name)),
    }
}
