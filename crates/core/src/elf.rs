//! What a program file was built for, from its first bytes.
//!
//! The header is that of the ELF specification (System V ABI, chapter 4); the numbers of machines are those of Linux's
//! `include/uapi/linux/elf-em.h`.

/// So many bytes from the begin of a file are enough.
pub const HEADER_BYTES: usize = 20;

/// What a program was built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Bits of an address: 32 or 64.
    pub bits: u32,
    /// In Rust's words, such as "aarch64"; a number where the processor has no name here.
    pub architecture: String,
}

impl Built {
    /// From the begin of a file; absent if that is no ELF header.
    pub fn of(header: &[u8]) -> Option<Built> {
        let header: &[u8; HEADER_BYTES] = header.get(..HEADER_BYTES)?.try_into().ok()?;
        let (magic, rest) = header.split_first_chunk::<4>()?;
        if magic != b"\x7fELF" {
            return None;
        }
        let bits = match rest[0] {
            1 => 32,
            2 => 64,
            _ => return None,
        };
        let machine = [header[18], header[19]];
        let machine = match rest[1] {
            1 => u16::from_le_bytes(machine),
            2 => u16::from_be_bytes(machine),
            _ => return None,
        };
        let architecture = match (machine, bits) {
            (3, _) => "x86",
            (8, 32) => "mips",
            (8, _) => "mips64",
            (20, _) => "powerpc",
            (21, _) => "powerpc64",
            (22, _) => "s390x",
            (40, _) => "arm",
            (62, _) => "x86_64",
            (183, _) => "aarch64",
            (243, 32) => "riscv32",
            (243, _) => "riscv64",
            (258, _) => "loongarch64",
            (other, _) => {
                return Some(Built {
                    bits,
                    architecture: format!("machine {other}"),
                });
            }
        };
        Some(Built {
            bits,
            architecture: architecture.into(),
        })
    }
}

/// Whether there are processors that run programs for both by themselves: of 32 and 64 bits of the same family.
pub fn are_of_one_family(architecture: &str, other: &str) -> bool {
    let family = |name: &str| match name {
        "arm" | "aarch64" => "ARM".to_string(),
        "x86" | "x86_64" => "x86".to_string(),
        name => name
            .trim_end_matches("32")
            .trim_end_matches("64")
            .to_string(),
    };
    family(architecture) == family(other)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Some(format!("{} bits, {}", built.bits, built.architecture))
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
}
