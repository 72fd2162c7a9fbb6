//! Compressing and expanding single pieces, with the code that the kernel has or the nearest there is.
//!
//! zstd and zlib are the C libraries that the kernel's copies come from; lz4 is one in Rust with the same format and the same
//! trade. zlib gets an extent as btrfs gives it (`fs/btrfs/zlib.c`): a page at a time (a folio, where newer kernels use large ones),
//! each with a flush (`Z_SYNC_FLUSH`), so each has Huffman codes of its own. That takes longer than one stream, and more bytes.

use std::ffi::{c_char, c_int};
use std::mem::{MaybeUninit, size_of};

use rubus_vocabulary::processor::compression::{Cut, Method};

/// Buffer size for any method's output of a piece of this size, even if the output is larger.
pub(crate) fn max_compressed(original: usize) -> usize {
    original + original / 8 + 256
}

/// One method, ready to be used again and again by one thread.
pub(crate) enum Codec {
    /// Without anything to keep.
    Lz4,
    /// Compressor and decompressor.
    Zstd(Box<(zstd::bulk::Compressor<'static>, zstd::bulk::Decompressor<'static>)>),
    /// Compressor and decompressor.
    Zlib(Box<Deflate>, Box<Inflate>),
}

impl Codec {
    /// The method with the settings that the kernel has for such pieces. Nothing where the library has no memory for it.
    pub(crate) fn of(method: Method, cut: Cut) -> Option<Codec> {
        Some(match method {
            Method::Lz4 => Codec::Lz4,
            Method::Zstd(level) => Codec::Zstd(Box::new((
                zstd::bulk::Compressor::new(level).ok()?,
                zstd::bulk::Decompressor::new().ok()?,
            ))),
            Method::Zlib(level) => {
                let (window_bits, flush_each) = match cut {
                    Cut::Extents => (15, Some(rustix::param::page_size())),
                    // Without a header and with the small window of the kernel's crypto interface (`DEFLATE_DEF_WINBITS`).
                    Cut::Pages { .. } => (-11, None),
                };
                Codec::Zlib(
                    Box::new(Deflate::new(level, window_bits, flush_each)?),
                    Box::new(Inflate::new(window_bits)?),
                )
            }
        })
    }

    /// Bytes that the piece becomes; `out` must have room as [`max_compressed`] says.
    pub(crate) fn compress(&mut self, piece: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Codec::Lz4 => lz4_flex::block::compress_into(piece, out).ok(),
            Codec::Zstd(both) => both.0.compress_to_buffer(piece, out).ok(),
            Codec::Zlib(deflate, _) => deflate.all(piece, out),
        }
    }

    /// Bytes that it was before.
    pub(crate) fn expand(&mut self, compressed: &[u8], out: &mut [u8]) -> Option<usize> {
        match self {
            Codec::Lz4 => lz4_flex::block::decompress_into(compressed, out).ok(),
            Codec::Zstd(both) => both.1.decompress_to_buffer(compressed, out).ok(),
            Codec::Zlib(_, inflate) => inflate.all(compressed, out),
        }
    }
}

/// A stream of zlib in memory that does not move, since the library points back to it.
fn stream() -> Box<libz_sys::z_stream> {
    let stream = MaybeUninit::<libz_sys::z_stream>::zeroed();
    let mut stream = Box::new(stream);
    let fields = stream.as_mut_ptr();
    // SAFETY: the memory is zeroed and its own, and all fields that cannot be zero, the two functions, are written (without reading
    // what was there) before the value is taken for one.
    unsafe {
        (&raw mut (*fields).zalloc).write(allocate);
        (&raw mut (*fields).zfree).write(free);
        Box::from_raw(Box::into_raw(stream).cast())
    }
}

extern "C" fn allocate(
    _: *mut std::ffi::c_void,
    items: libz_sys::uInt,
    size: libz_sys::uInt,
) -> *mut std::ffi::c_void {
    // SAFETY: any two numbers may be given; the answer is memory or nothing, as zlib expects.
    unsafe { libc::calloc(items as usize, size as usize) }
}

extern "C" fn free(_: *mut std::ffi::c_void, address: *mut std::ffi::c_void) {
    // SAFETY: zlib gives back what `allocate` gave, once.
    unsafe { libc::free(address) }
}

fn version() -> (*const c_char, c_int) {
    // SAFETY: gives a constant of the library.
    (unsafe { libz_sys::zlibVersion() }, size_of::<libz_sys::z_stream>() as c_int)
}

/// One piece in, one out; `None` for pieces that zlib cannot count.
fn point(stream: &mut libz_sys::z_stream, from: &[u8], to: &mut [u8]) -> Option<()> {
    // The library reads it only, though its type does not say so.
    stream.next_in = from.as_ptr().cast_mut();
    stream.avail_in = from.len().try_into().ok()?;
    stream.next_out = to.as_mut_ptr();
    stream.avail_out = to.len().try_into().ok()?;
    Some(())
}

/// DEFLATE, with the memory that it needs.
pub(crate) struct Deflate {
    stream: Box<libz_sys::z_stream>,
    /// Bytes between two flushes; if none, it gets a piece at once.
    flush_each: Option<usize>,
}

// SAFETY: only the owner of this value uses the stream and its memory, and nothing of it belongs to a thread.
unsafe impl Send for Deflate {}

impl Deflate {
    fn new(level: u32, window_bits: c_int, flush_each: Option<usize>) -> Option<Deflate> {
        /// `DEF_MEM_LEVEL` of the kernel's zlib and the default elsewhere.
        const MEMORY_LEVEL: c_int = 8;
        let (version, size) = version();
        let mut stream = stream();
        // SAFETY: the stream is as zlib wants it, and stays where it is until it is given back.
        let status = unsafe {
            libz_sys::deflateInit2_(
                &mut *stream,
                level as c_int,
                libz_sys::Z_DEFLATED,
                window_bits,
                MEMORY_LEVEL,
                libz_sys::Z_DEFAULT_STRATEGY,
                version,
                size,
            )
        };
        (status == libz_sys::Z_OK).then_some(Deflate { stream, flush_each })
    }

    fn all(&mut self, piece: &[u8], out: &mut [u8]) -> Option<usize> {
        // SAFETY: the stream was made by `deflateInit2_`.
        unsafe { libz_sys::deflateReset(&mut *self.stream) };
        // The end of the stream comes after the last flush.
        let (flushed, last) = match self.flush_each {
            Some(_) => (piece, &[][..]),
            None => (&[][..], piece),
        };
        let mut written = 0;
        for page in flushed.chunks(self.flush_each.unwrap_or(1)) {
            let status = self.step(page, &mut out[written..], libz_sys::Z_SYNC_FLUSH)?;
            (status == libz_sys::Z_OK).then_some(())?;
            written = out.len() - self.stream.avail_out as usize;
        }
        let status = self.step(last, &mut out[written..], libz_sys::Z_FINISH)?;
        (status == libz_sys::Z_STREAM_END).then(|| out.len() - self.stream.avail_out as usize)
    }

    /// Takes the next bytes; gives zlib's answer.
    fn step(&mut self, from: &[u8], to: &mut [u8], flush: c_int) -> Option<c_int> {
        point(&mut self.stream, from, to)?;
        // SAFETY: the stream was made by `deflateInit2_`; both slices outlive the call, and their lengths are told.
        Some(unsafe { libz_sys::deflate(&mut *self.stream, flush) })
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        // SAFETY: the stream was made by `deflateInit2_` and is given back once.
        unsafe { libz_sys::deflateEnd(&mut *self.stream) };
    }
}

/// The way back.
pub(crate) struct Inflate(Box<libz_sys::z_stream>);

// SAFETY: as of `Deflate`.
unsafe impl Send for Inflate {}

impl Inflate {
    fn new(window_bits: c_int) -> Option<Inflate> {
        let (version, size) = version();
        let mut stream = stream();
        // SAFETY: the stream is as zlib wants it, and stays where it is until it is given back.
        let status = unsafe { libz_sys::inflateInit2_(&mut *stream, window_bits, version, size) };
        (status == libz_sys::Z_OK).then_some(Inflate(stream))
    }

    fn all(&mut self, compressed: &[u8], out: &mut [u8]) -> Option<usize> {
        // SAFETY: the stream was made by `inflateInit2_`; both slices outlive the call, and their lengths are told.
        let status = unsafe {
            libz_sys::inflateReset(&mut *self.0);
            point(&mut self.0, compressed, out)?;
            libz_sys::inflate(&mut *self.0, libz_sys::Z_FINISH)
        };
        (status == libz_sys::Z_STREAM_END).then(|| out.len() - self.0.avail_out as usize)
    }
}

impl Drop for Inflate {
    fn drop(&mut self) {
        // SAFETY: the stream was made by `inflateInit2_` and is given back once.
        unsafe { libz_sys::inflateEnd(&mut *self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_stats::Rng;

    #[test]
    fn what_goes_in_comes_out_whatever_it_is() {
        let mut noise = vec![0; 128 << 10];
        Rng::from_seed(3).fill(&mut noise);
        let text = b"narrow pipe ".repeat(4000);
        for cut in [Cut::Extents, Cut::Pages { bytes: 4096 }] {
            for method in cut.all_methods() {
                let mut codec = Codec::of(method, cut).expect("memory");
                for piece in [
                    &noise[..],
                    &noise[..4096],
                    &noise[..4097],
                    &noise[..130_000],
                    &text[..4096],
                    &text,
                    b"x",
                ] {
                    let mut out = vec![0; max_compressed(piece.len())];
                    let mut back = vec![0; piece.len()];
                    let length = codec.compress(piece, &mut out).expect("room");
                    assert_eq!(
                        codec.expand(&out[..length], &mut back),
                        Some(piece.len()),
                        "{method}"
                    );
                    assert!(back == piece, "{method}");
                }
            }
        }
    }

    #[test]
    fn what_is_broken_is_not_taken_for_something() {
        let text = b"narrow pipe ".repeat(400);
        for method in [Method::Lz4, Method::Zlib(6), Method::Zstd(3)] {
            let mut codec = Codec::of(method, Cut::Extents).expect("memory");
            let mut out = vec![0; max_compressed(text.len())];
            let length = codec.compress(&text, &mut out).expect("room");
            let mut back = vec![0; text.len()];
            assert_ne!(codec.expand(&out[..length / 2], &mut back), Some(text.len()), "{method}");
            assert_eq!(codec.expand(&out[..length], &mut back[..10]), None, "{method}");
        }
    }

    #[test]
    fn higher_levels_make_less_of_it_and_zlib_is_the_original() {
        let text: Vec<u8> = (0..40_000_u32)
            .flat_map(|i| (i * i % 1009).to_string().into_bytes())
            .take(128 << 10)
            .collect();
        let length = |method: Method| {
            let mut codec = Codec::of(method, Cut::Extents).expect("memory");
            codec.compress(&text, &mut vec![0; max_compressed(text.len())]).expect("room")
        };
        assert!(length(Method::Zlib(9)) <= length(Method::Zlib(1)));
        assert!(length(Method::Zstd(9)) <= length(Method::Zstd(-5)));
        let zlib = |flush_each: Option<usize>| {
            [1, 6, 9].map(|level| {
                let mut deflate = Deflate::new(level, 15, flush_each).expect("memory");
                deflate.all(&text, &mut vec![0; max_compressed(text.len())])
            })
        };
        // Python's `zlib.compressobj`, flushed with `Z_SYNC_FLUSH` after each 4096 bytes, and at once.
        assert_eq!(zlib(Some(4096)), [5472, 2755, 2755].map(Some));
        assert_eq!(zlib(None), [3305, 2332, 2332].map(Some));
        assert!(zlib(Some(16 << 10)) < zlib(Some(4096)), "fewer flushes");
    }
}
