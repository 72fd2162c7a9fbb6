//! The head of an ELF file: for which processor a program is, and whether it needs a loader. Format:
//! elf(5), Linux man-pages; System V ABI, "Object Files". Numbers of processors: Linux's `include/uapi/linux/elf-em.h`.

/// What a program was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// 32 or 64.
    pub bits: u8,
    /// `EM_…`, the processor's number.
    pub machine: u16,
}

/// How many bytes from the start of a file are enough for [`Built::of`].
pub const HEADER_BYTES: usize = 20;

/// What the head of a program says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf {
    /// What it was built for.
    pub built: Built,
    /// The loader that a dynamically linked program asks for ("/lib/ld-linux-aarch64.so.1"); absent:
    /// it is static.
    pub interpreter: Option<String>,
}

/// How many bytes from the start of a file are enough for [`parse`].
pub const HEAD_BYTES: usize = 64 << 10;

/// Processor numbers of the ELF specification and its supplements.
pub mod machine {
    /// Intel 80386 and later, 32 bits.
    pub const X86: u16 = 3;
    /// MIPS, 32 or 64 bits.
    pub const MIPS: u16 = 8;
    /// PowerPC, 32 bits.
    pub const POWERPC: u16 = 20;
    /// PowerPC, 64 bits.
    pub const POWERPC64: u16 = 21;
    /// IBM S/390.
    pub const S390: u16 = 22;
    /// Arm, 32 bits.
    pub const ARM: u16 = 40;
    /// x86-64.
    pub const X86_64: u16 = 62;
    /// Arm, 64 bits.
    pub const AARCH64: u16 = 183;
    /// RISC-V, 32 or 64 bits.
    pub const RISCV: u16 = 243;
    /// LoongArch.
    pub const LOONGARCH: u16 = 258;
}

/// Segment type of the loader's path.
const PT_INTERP: u32 = 3;
/// Object types: a program at a fixed place, or one that can be anywhere.
const PROGRAMS: [u16; 2] = [2, 3];

impl Built {
    /// From the begin of a file; absent if that is no ELF header.
    pub fn of(header: &[u8]) -> Option<Built> {
        Reader::of(header).ok()?.built()
    }

    /// In Rust's words, such as "aarch64"; a number where the processor has no name here.
    pub fn architecture(&self) -> String {
        let name = match (self.machine, self.bits) {
            (machine::X86, _) => "x86",
            (machine::MIPS, 32) => "mips",
            (machine::MIPS, _) => "mips64",
            (machine::POWERPC, _) => "powerpc",
            (machine::POWERPC64, _) => "powerpc64",
            (machine::S390, _) => "s390x",
            (machine::ARM, _) => "arm",
            (machine::X86_64, _) => "x86_64",
            (machine::AARCH64, _) => "aarch64",
            (machine::RISCV, 32) => "riscv32",
            (machine::RISCV, _) => "riscv64",
            (machine::LOONGARCH, _) => "loongarch64",
            (other, _) => return format!("machine {other}"),
        };
        name.into()
    }
}

/// Whether there are processors that run programs for both by themselves: of 32 and 64 bits of the same family.
pub fn are_of_one_family(architecture: &str, other: &str) -> bool {
    let family = |name: &str| match name {
        "arm" | "aarch64" => "ARM".to_string(),
        "x86" | "x86_64" => "x86".to_string(),
        name => name.trim_end_matches("32").trim_end_matches("64").to_string(),
    };
    family(architecture) == family(other)
}

/// Reads the head of a file.
///
/// # Errors
/// A phrase for "FILE is …" when it is no program in ELF format.
pub fn parse(head: &[u8]) -> Result<Elf, &'static str> {
    Reader::of(head)?.elf().ok_or("cut short")?
}

/// Numbers of a file in its own width and byte order.
struct Reader<'a> {
    bytes: &'a [u8],
    wide: bool,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8]) -> Result<Reader<'a>, &'static str> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("no program (it does not begin like an ELF file)");
        }
        Ok(Reader {
            bytes,
            wide: match bytes.get(4) {
                Some(1) => false,
                Some(2) => true,
                _ => return Err("broken (neither 32 nor 64 bits)"),
            },
            big_endian: match bytes.get(5) {
                Some(1) => false,
                Some(2) => true,
                _ => return Err("broken (neither byte order)"),
            },
        })
    }

    fn built(&self) -> Option<Built> {
        Some(Built { bits: if self.wide { 64 } else { 32 }, machine: self.half(18)? })
    }

    fn elf(&self) -> Option<Result<Elf, &'static str>> {
        if !PROGRAMS.contains(&self.half(16)?) {
            return Some(Err("no program (an object file or a core dump)"));
        }
        Some(Ok(Elf { built: self.built()?, interpreter: self.interpreter()? }))
    }

    /// The path in the segment of the loader; the inner option is absent when there is none.
    fn interpreter(&self) -> Option<Option<String>> {
        let (table, entry_bytes, entries) = if self.wide {
            (self.long(32)?, self.half(54)?, self.half(56)?)
        } else {
            (u64::from(self.word(28)?), self.half(42)?, self.half(44)?)
        };
        for entry in 0..u64::from(entries) {
            let at = table.checked_add(entry * u64::from(entry_bytes))?;
            let at = usize::try_from(at).ok()?;
            if self.word(at)? != PT_INTERP {
                continue;
            }
            let (offset, length) = if self.wide {
                (self.long(at.checked_add(8)?)?, self.long(at.checked_add(32)?)?)
            } else {
                let short = |plus: usize| Some(u64::from(self.word(at.checked_add(plus)?)?));
                (short(4)?, short(16)?)
            };
            let from = usize::try_from(offset).ok()?;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            let path = String::from_utf8_lossy(self.bytes.get(from..to)?);
            return Some(Some(path.trim_end_matches('\0').to_string()));
        }
        Some(None)
    }

    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn half(&self, at: usize) -> Option<u16> {
        let bytes = self.array(at)?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.array(at)?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn long(&self, at: usize) -> Option<u64> {
        let bytes = self.array(at)?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with one or two segments, written by hand after elf(5).
    fn head(wide: bool, big_endian: bool, machine: u16, loader: Option<&str>) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.push(if wide { 2 } else { 1 });
        bytes.push(if big_endian { 2 } else { 1 });
        bytes.resize(if wide { 64 } else { 52 }, 0);
        let put = |bytes: &mut Vec<u8>, at: usize, size: usize, value: u64| {
            if bytes.len() < at + size {
                bytes.resize(at + size, 0);
            }
            let all = if big_endian {
                value.to_be_bytes()[8 - size..].to_vec()
            } else {
                value.to_le_bytes()[..size].to_vec()
            };
            bytes[at..at + size].copy_from_slice(&all);
        };
        let start = bytes.len();
        let (entry, pointer) = if wide { (56, 8) } else { (32, 4) };
        put(&mut bytes, 16, 2, 3);
        put(&mut bytes, 18, 2, machine.into());
        put(&mut bytes, if wide { 32 } else { 28 }, pointer, start as u64);
        put(&mut bytes, if wide { 54 } else { 42 }, 2, entry as u64);
        put(&mut bytes, if wide { 56 } else { 44 }, 2, 1 + u64::from(loader.is_some()));
        put(&mut bytes, start, 4, 1);
        bytes.resize(start + entry, 0);
        if let Some(loader) = loader {
            let at = start + entry;
            let text = at + entry;
            put(&mut bytes, at, 4, 3);
            let (offset, size) = if wide { (8, 32) } else { (4, 16) };
            put(&mut bytes, at + offset, pointer, text as u64);
            put(&mut bytes, at + size, pointer, loader.len() as u64 + 1);
            bytes.resize(text, 0);
            bytes.extend_from_slice(loader.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    #[test]
    fn every_width_and_byte_order_is_read() {
        for wide in [false, true] {
            for big_endian in [false, true] {
                for loader in [None, Some("/lib/ld-linux-armhf.so.3")] {
                    let elf = parse(&head(wide, big_endian, machine::ARM, loader)).unwrap();
                    let expected = Elf {
                        built: Built { bits: if wide { 64 } else { 32 }, machine: machine::ARM },
                        interpreter: loader.map(str::to_string),
                    };
                    assert_eq!(elf, expected);
                }
            }
        }
    }

    #[test]
    fn what_is_no_program_says_why() {
        let mut object = head(true, false, machine::X86_64, None);
        object[16] = 1;
        let cases: [(&[u8], &str); 5] = [
            (b"#!/bin/sh\n", "does not begin like an ELF file"),
            (b"", "does not begin like an ELF file"),
            (b"\x7fELF\x02\x01", "cut short"),
            (b"\x7fELF\x07\x01", "neither 32 nor 64"),
            (&object, "an object file"),
        ];
        for (bytes, phrase) in cases {
            let error = parse(bytes).unwrap_err();
            assert!(error.contains(phrase), "{error}");
        }
    }

    /// A header with these in it.
    fn header(class: u8, order: u8, machine: [u8; 2]) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(b"\x7fELF");
        header[4] = class;
        header[5] = order;
        header[18..].copy_from_slice(&machine);
        header
    }

    #[test]
    fn what_a_program_was_built_for_stands_in_its_header() {
        let built = |class, order, machine| {
            let built = Built::of(&header(class, order, machine))?;
            Some(format!("{} bits, {}", built.bits, built.architecture()))
        };
        assert_eq!(built(1, 1, [40, 0]).as_deref(), Some("32 bits, arm"));
        assert_eq!(built(2, 1, [183, 0]).as_deref(), Some("64 bits, aarch64"));
        assert_eq!(built(2, 1, [62, 0]).as_deref(), Some("64 bits, x86_64"));
        assert_eq!(built(2, 1, [243, 0]).as_deref(), Some("64 bits, riscv64"));
        assert_eq!(built(2, 2, [0, 22]).as_deref(), Some("64 bits, s390x"));
        assert_eq!(built(1, 2, [0, 40]).as_deref(), Some("32 bits, arm"));
        assert_eq!(built(1, 1, [0, 1]).as_deref(), Some("32 bits, machine 256"));
        assert_eq!(built(3, 1, [40, 0]), None);
        assert_eq!(built(1, 0, [40, 0]), None);
    }

    #[test]
    fn what_is_no_program_has_no_header() {
        assert_eq!(Built::of(b"#!/bin/sh\nexec rubus \"$@\"\n"), None);
        assert_eq!(Built::of(&header(2, 1, [62, 0])[..19]), None);
        assert_eq!(Built::of(b""), None);
    }

    #[test]
    fn a_processor_runs_its_own_family() {
        for (one, other) in [
            ("arm", "aarch64"),
            ("x86_64", "x86"),
            ("riscv32", "riscv64"),
            ("powerpc", "powerpc64"),
            ("s390x", "s390x"),
        ] {
            assert!(are_of_one_family(one, other), "{one}, {other}");
        }
        assert!(!are_of_one_family("arm", "x86_64"));
        assert!(!are_of_one_family("aarch64", "riscv64"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            wide: bool, big: bool, at in 0_usize..160, byte: u8, cut in 0_usize..200,
        ) {
            let mut bytes = head(wide, big, 62, Some("/lib/ld.so"));
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            let _ = parse(&bytes);
        }
    }
}
