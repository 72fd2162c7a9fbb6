//! Whether programs of another system run on this machine, found out without running one.

use std::path::{Path, PathBuf};

use rubus_host::Files;

/// Where the kernel says for which programs it calls an interpreter (Linux, Documentation/admin-guide/binfmt-misc.rst).
const INTERPRETERS: &str = "/proc/sys/fs/binfmt_misc";
const SHELL: &str = "/bin/sh";
const OWN: &str = "/proc/self/exe";
/// As many bytes as the kernel compares.
const HEADER_BYTES: usize = 128;

/// Whether the shell of a system, and so its programs, would run here.
///
/// # Errors
/// Why not, in words.
pub(super) fn runs_here(system: &dyn Files, here: &dyn Files) -> Result<(), String> {
    let program = system.read_prefix(Path::new(SHELL), HEADER_BYTES);
    let program = program.map_err(|why| format!("its {SHELL} cannot be read: {why}"))?;
    let own = here.read_prefix(Path::new(OWN), HEADER_BYTES);
    let is_own = own.is_ok_and(|own| kind(&own).is_some() && kind(&own) == kind(&program));
    if is_own || interpreters(here).iter().any(|one| one.takes(&program)) {
        return Ok(());
    }
    Err("its programs are for another processor, and nothing here runs those".into())
}

/// Word length, byte order and processor of an ELF file (elf(5)).
fn kind(program: &[u8]) -> Option<(u8, u8, [u8; 2])> {
    match program {
        [0x7f, b'E', b'L', b'F', class, order, rest @ ..] => {
            Some((*class, *order, rest.get(12..14)?.try_into().ok()?))
        }
        _ => None,
    }
}

/// A kind of programs for which the kernel calls an interpreter.
#[derive(Debug, Default, PartialEq, Eq)]
struct Interpreter {
    offset: usize,
    magic: Vec<u8>,
    mask: Vec<u8>,
}

impl Interpreter {
    /// From the kernel's description; none when it is switched off, goes by a file's name, or would look for its program in
    /// the other system (without the flag F).
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some("enabled") {
            return None;
        }
        let mut found = Interpreter::default();
        let mut is_fixed = false;
        for line in lines {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "flags:" => is_fixed = value.contains('F'),
                "offset" => found.offset = value.parse().ok()?,
                "magic" => found.magic = bytes(value)?,
                "mask" => found.mask = bytes(value)?,
                _ => {}
            }
        }
        (is_fixed && !found.magic.is_empty()).then_some(found)
    }

    fn takes(&self, program: &[u8]) -> bool {
        let end = self.offset + self.magic.len();
        let Some(found) = program.get(self.offset..end) else {
            return false;
        };
        let mut pairs = found.iter().zip(&self.magic).enumerate();
        pairs.all(|(at, (found, wanted))| {
            let mask = self.mask.get(at).copied().unwrap_or(0xff);
            found & mask == wanted & mask
        })
    }
}

fn interpreters(here: &dyn Files) -> Vec<Interpreter> {
    let names = here.list(Path::new(INTERPRETERS)).unwrap_or_default();
    let paths = names.iter().map(|name| PathBuf::from(INTERPRETERS).join(name));
    paths.filter_map(|path| Interpreter::parse(&here.text(&path).ok()?)).collect()
}

/// Bytes from hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.trim().as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_host::simulated::fake::FakeFiles;

    /// The first bytes of a program for a little-endian 64-bit processor.
    fn program(machine: u8) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([2, 0, machine, 0]);
        bytes.resize(200, 0);
        bytes
    }

    const X86: u8 = 62;
    const ARM64: u8 = 183;
    /// As qemu-user-static registers it.
    const QEMU: &str = "enabled\ninterpreter /usr/bin/qemu-aarch64-static\nflags: OCF\noffset 0\n\
                        magic 7f454c460201010000000000000000000200b700\n\
                        mask ffffffffffffff00fffffffffffffffffeffffff\n";

    fn system(machine: u8) -> FakeFiles {
        FakeFiles::new().file(SHELL, program(machine))
    }

    fn here() -> FakeFiles {
        FakeFiles::new().file(OWN, program(X86))
    }

    #[test]
    fn the_same_processor_or_an_interpreter_for_it() {
        assert_eq!(runs_here(&system(X86), &here()), Ok(()));
        assert!(runs_here(&system(ARM64), &here()).is_err());
        let registered = |text: &str| here().file(format!("{INTERPRETERS}/qemu"), text);
        assert_eq!(runs_here(&system(ARM64), &registered(QEMU)), Ok(()));
        // For yet another processor, switched off, or to be found in the other system, where it is not.
        for text in [
            &QEMU.replace("b700\n", "f300\n"),
            &QEMU.replace("enabled", "disabled"),
            &QEMU.replace("OCF", "OC"),
            &"enabled\ninterpreter /usr/bin/x\nflags: F\nextension .x\n".to_string(),
        ] {
            assert!(runs_here(&system(ARM64), &registered(text)).is_err(), "{text}");
        }
        assert!(runs_here(&FakeFiles::new(), &here()).is_err());
    }
}
