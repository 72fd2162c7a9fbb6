//! What is inside an initial RAM filesystem: its files' names, read in one pass, without keeping their
//! contents.
//!
//! An image is a row of "newc" cpio archives, each plain or compressed as a whole, with zeros between them. Source:
//! Linux, Documentation/driver-api/early-userspace/buffer-format.rst, and lib/decompress.c for what the kernel
//! can unpack. Everything is held to what the kernel does: what it would not unpack is an error here.

mod lz4;
mod source;
mod unpack;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use source::Source;
use unpack::Compression;

/// More members than this are no initial RAM filesystem.
const MAX_MEMBERS: usize = 200_000;
/// The longest name that the kernel takes (Linux, PATH_MAX).
const MAX_NAME_BYTES: u64 = 4096;
/// Of a text that is kept, at most this much.
const MAX_TEXT_BYTES: u64 = 4 << 20;

const HEADER_BYTES: usize = 110;
const TYPE_MASK: u32 = 0o170_000;
const TYPE_FILE: u32 = 0o100_000;

/// What an image holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its members in order, those of all archives.
    pub members: Vec<Member>,
    /// Its pieces in order, plain archives and compressed runs of archives.
    pub parts: Vec<Part>,
    /// The texts that say what is loaded: lists of modules and their dependencies, by path.
    pub texts: BTreeMap<String, String>,
}

/// One file, directory, link or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its path without a slash in front.
    pub path: String,
    /// Its type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// A piece of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins, in bytes.
    pub offset_bytes: u64,
    /// "none", "gzip", "zstd", "xz", "lz4", "lzma".
    pub compression: &'static str,
}

/// The programs that make initial RAM filesystems, as far as what theirs do at a start is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Debian's and its descendants'.
    InitramfsTools,
    /// Fedora's, SUSE's and Void's.
    Dracut,
    /// Arch's.
    Mkinitcpio,
}

/// Why an image cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    /// It holds nothing but zeros, or nothing.
    #[error("it is empty")]
    Empty,
    /// What is at a place is no archive, and not compressed in a way that is known.
    #[error("what is at byte {offset_bytes} is neither a cpio archive nor compressed")]
    Unknown {
        /// Offset in the image, in bytes.
        offset_bytes: u64,
    },
    /// It is compressed in a way that cannot be looked into here.
    #[error(
        "it is compressed with {name}, which cannot be looked into; set COMPRESS=zstd in /etc/initramfs-tools/initramfs.conf"
    )]
    Unreadable {
        /// Name of the compression program.
        name: &'static str,
    },
    /// It ends too early, or its contents contradict themselves.
    #[error("the piece from byte {offset_bytes} on is damaged: {reason}")]
    Damaged {
        /// Where the piece begins.
        offset_bytes: u64,
        /// What is wrong.
        reason: String,
    },
}

impl InitramfsError {
    /// Whether an image with this fault is as none: the kernel unpacks nothing of it, and starts without. Source: Linux,
    /// init/initramfs.c, `unpack_to_rootfs`.
    pub fn is_as_none(&self) -> bool {
        match self {
            InitramfsError::Empty => true,
            InitramfsError::Unknown { offset_bytes } => *offset_bytes == 0,
            InitramfsError::Unreadable { .. } | InitramfsError::Damaged { .. } => false,
        }
    }
}

/// Reads an image to its end. At most the decompressor's window is held (8 MiB for what Debian's tools
/// write), besides the names.
///
/// # Errors
/// [`InitramfsError`] when it is empty, damaged, or the kernel could not unpack it; a failure to read counts as
/// damage.
pub fn list(image: impl Read) -> Result<Listing, InitramfsError> {
    let mut source = Source::new(image);
    let mut listing = Listing::default();
    loop {
        let start = source.skip_zeros().map_err(|error| damaged(0, &error))?;
        let damaged = |error: io::Error| damaged(start, &error);
        let head = source.peek(6).map_err(damaged)?;
        if head.is_empty() {
            break;
        }
        if is_archive(head) {
            listing.begin(start, "none");
            listing.archive(&mut source).map_err(damaged)?;
            continue;
        }
        let compression = Compression::of(head);
        let compression = compression.ok_or(InitramfsError::Unknown { offset_bytes: start })?;
        if let Compression::Unreadable(name) = compression {
            return Err(InitramfsError::Unreadable { name });
        }
        listing.begin(start, compression.name());
        unpack::run(compression, &mut source, |unpacked| {
            listing.archives(&mut Source::new(unpacked))
        })
        .map_err(damaged)?;
    }
    if listing.parts.is_empty() { Err(InitramfsError::Empty) } else { Ok(listing) }
}

/// Gives what is packed at the begin of some bytes to `look`, whatever follows behind it.
///
/// # Errors
/// When nothing that is known is packed there, it is damaged, or `look` fails.
pub(super) fn unpacked_at(
    bytes: &[u8],
    look: impl FnOnce(&mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    match Compression::of(bytes) {
        Some(compression) => unpack::run(compression, &mut Source::new(bytes), look),
        None => Err(wrong("nothing is packed there")),
    }
}

fn damaged(offset_bytes: u64, error: &io::Error) -> InitramfsError {
    InitramfsError::Damaged {
        offset_bytes,
        reason: match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".into(),
            _ => error.to_string(),
        },
    }
}

impl Listing {
    /// Whether a file is inside, by its path without a slash in front.
    pub fn has(&self, path: &str) -> bool {
        self.members.iter().any(|member| member.path == path)
    }

    /// Whether it has a file of this path, or any below it.
    fn has_below(&self, path: &str) -> bool {
        self.members.iter().any(|member| {
            let rest = member.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Who made it, by scripts that only that program brings along.
    pub fn maker(&self) -> Option<Maker> {
        const SCRIPTS: [(&str, Maker); 4] = [
            ("scripts/local", Maker::InitramfsTools),
            ("usr/lib/dracut", Maker::Dracut),
            ("lib/dracut", Maker::Dracut),
            ("init_functions", Maker::Mkinitcpio),
        ];
        SCRIPTS.iter().find(|(script, _)| self.has_below(script)).map(|(_, maker)| *maker)
    }

    /// The kernel releases for which modules are inside.
    pub fn releases(&self) -> BTreeSet<&str> {
        let members = self.members.iter();
        members.filter_map(|member| super::modules::release_of(&member.path)).collect()
    }

    /// Where a module of a kernel release is inside; names with `-` and `_` are the same. Empty files do
    /// not count.
    pub fn module(&self, release: &str, name: &str) -> Option<&str> {
        let wanted = super::modules::normal(name);
        let members = self.members.iter();
        let mut found = members
            .filter(|member| member.mode & TYPE_MASK == TYPE_FILE && member.size_bytes > 0)
            .filter(|member| super::modules::release_of(&member.path) == Some(release))
            .map(|member| member.path.as_str());
        found.find(|path| super::modules::name_of(path).as_ref() == Some(&wanted))
    }

    fn begin(&mut self, offset_bytes: u64, compression: &'static str) {
        self.parts.push(Part { offset_bytes, compression });
    }

    /// Archives one after the other, to the end.
    fn archives<R: Read>(&mut self, source: &mut Source<R>) -> io::Result<()> {
        loop {
            source.skip_zeros()?;
            let head = source.peek(6)?;
            if head.is_empty() {
                return Ok(());
            }
            if !is_archive(head) {
                return Err(wrong("what is packed is no cpio archive"));
            }
            self.archive(source)?;
        }
    }

    /// One archive, to its trailer.
    fn archive<R: Read>(&mut self, source: &mut Source<R>) -> io::Result<()> {
        loop {
            let header = Header::read(source)?;
            let name = source.exactly(header.name_bytes)?;
            source.skip(padding(HEADER_BYTES as u64 + header.name_bytes))?;
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if name == b"TRAILER!!!" {
                return source.skip(header.size_bytes);
            }
            self.member(source, &header, &String::from_utf8_lossy(name))?;
            source.skip(padding(header.size_bytes))?;
        }
    }

    fn member<R: Read>(
        &mut self,
        source: &mut Source<R>,
        header: &Header,
        name: &str,
    ) -> io::Result<()> {
        if self.members.len() == MAX_MEMBERS {
            return Err(wrong("it has more members than any real one"));
        }
        let path = name.strip_prefix("./").unwrap_or(name);
        let path = path.trim_start_matches('/').to_string();
        let is_text = header.mode & TYPE_MASK == TYPE_FILE && is_telling(&path);
        if is_text && header.size_bytes <= MAX_TEXT_BYTES {
            let text = source.exactly(header.size_bytes)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            self.texts.insert(path.clone(), text);
        } else {
            source.skip(header.size_bytes)?;
        }
        self.members.push(Member { path, mode: header.mode, size_bytes: header.size_bytes });
        Ok(())
    }
}

/// Whether a text is kept.
fn is_telling(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match super::modules::release_of(path) {
        Some(_) => matches!(name, "modules.dep" | "modules.builtin"),
        None => path == "conf/modules",
    }
}

struct Header {
    mode: u32,
    size_bytes: u64,
    name_bytes: u64,
}

impl Header {
    fn read<R: Read>(source: &mut Source<R>) -> io::Result<Header> {
        let bytes = source.exactly(HEADER_BYTES as u64)?;
        if !is_archive(&bytes) {
            return Err(wrong("a member has no header"));
        }
        let field = |index: usize| -> io::Result<u32> {
            let digits = &bytes[6 + 8 * index..14 + 8 * index];
            let text = std::str::from_utf8(digits).ok();
            text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .and_then(|text| u32::from_str_radix(text, 16).ok())
                .ok_or_else(|| wrong("a member's header is not made of digits"))
        };
        let header =
            Header { mode: field(1)?, size_bytes: field(6)?.into(), name_bytes: field(11)?.into() };
        if (1..=MAX_NAME_BYTES).contains(&header.name_bytes) {
            Ok(header)
        } else {
            Err(wrong("a member has no name, or one that is too long"))
        }
    }
}

/// "newc", without and with checksums.
fn is_archive(head: &[u8]) -> bool {
    head.starts_with(b"070701") || head.starts_with(b"070702")
}

/// Bytes up to the next multiple of four.
fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(4) - bytes
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
