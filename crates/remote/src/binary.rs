//! Which program runs on which machine.

use crate::elf::{Built, Elf, machine};

/// What `uname -m` can say, and the programs that run there, best first.
struct Family {
    /// Beginnings of the machine's name.
    names: &'static [&'static str],
    /// What the programs that run there were built for.
    runs: &'static [Built],
    /// Endings of the names of programs for it, best first.
    suffixes: &'static [&'static str],
}

/// The machines that are known. A 64-bit Arm kernel runs 32-bit programs too on most processors, and a
/// static 64-bit program even under a 32-bit system: only the kernel matters.
const FAMILIES: [Family; 7] = [
    Family {
        names: &["aarch64", "arm64", "armv8"],
        runs: &[built(machine::AARCH64, 64), built(machine::ARM, 32)],
        suffixes: &["aarch64", "arm64", "armv7", "armhf", "armv6"],
    },
    Family {
        names: &["armv7"],
        runs: &[built(machine::ARM, 32)],
        suffixes: &["armv7", "armhf", "armv6"],
    },
    Family { names: &["arm"], runs: &[built(machine::ARM, 32)], suffixes: &["armv6", "arm"] },
    Family {
        names: &["x86_64", "amd64"],
        runs: &[built(machine::X86_64, 64), built(machine::X86, 32)],
        suffixes: &["x86_64", "amd64", "i686", "i386"],
    },
    Family {
        names: &["i686", "i586", "i486", "i386"],
        runs: &[built(machine::X86, 32)],
        suffixes: &["i686", "i386"],
    },
    Family { names: &["riscv64"], runs: &[built(machine::RISCV, 64)], suffixes: &["riscv64"] },
    Family { names: &["riscv32"], runs: &[built(machine::RISCV, 32)], suffixes: &["riscv32"] },
];

const fn built(machine: u16, bits: u8) -> Built {
    Built { bits, machine }
}

fn family(uname: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.names.iter().any(|name| uname.starts_with(name)))
}

/// Names of programs that may be for this machine, best first: `rubus-aarch64`, … Empty for a machine
/// that is not known.
pub fn file_names(uname: &str) -> Vec<String> {
    let suffixes = family(uname).map_or(&[][..], |family| family.suffixes);
    suffixes.iter().map(|end| format!("rubus-{end}")).collect()
}

/// A program that could be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where it is here.
    pub path: String,
    /// Whose idea it is.
    pub origin: Origin,
    /// What its head says, or why it is no program.
    pub elf: Result<Elf, String>,
}

/// Where a candidate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user named it with `--binary`.
    Named,
    /// The very program that runs here.
    Own,
    /// It lies beside that program and is called like the machine.
    Beside,
}

/// Those that the machine's processor can run, best first: what the user named; then static before
/// dynamic, the machine's own width before a narrower one, our own program before one beside it.
pub fn in_order(uname: &str, candidates: &[Candidate]) -> Vec<Candidate> {
    let runs = family(uname).map_or(&[][..], |family| family.runs);
    let mut fitting: Vec<_> = candidates
        .iter()
        .filter_map(|candidate| {
            let elf = candidate.elf.as_ref().ok()?;
            let width = runs.iter().position(|runs| *runs == elf.built)?;
            let is_dynamic = elf.interpreter.is_some();
            Some(((is_dynamic, width, candidate.origin != Origin::Own), candidate))
        })
        .collect();
    fitting.sort_by_key(|(rank, _)| *rank);
    fitting.into_iter().map(|(_, candidate)| candidate.clone()).collect()
}

/// Why nothing can be copied to a machine, and what to do, as sentences.
pub fn nothing_fits(
    destination: &str,
    uname: &str,
    candidates: &[Candidate],
    beside: &str,
) -> String {
    let mut text = format!("{destination} is a machine of the kind '{uname}'");
    for candidate in candidates {
        let what = match &candidate.elf {
            Ok(elf) => format!("for {}", architecture(elf)),
            Err(why) => why.clone(),
        };
        let path = &candidate.path;
        text.push_str(&match candidate.origin {
            Origin::Own => format!(", and this rubus ({path}) is {what}"),
            Origin::Named | Origin::Beside => format!(", and {path} is {what}"),
        });
    }
    let wanted = file_names(uname);
    let Some(best) = wanted.first() else {
        text.push_str(
            ", for which no rubus is known by name; give one with --binary FILE, or install rubus there \
             and give --remote-binary rubus",
        );
        return text;
    };
    text.push_str(&format!(
        "; put a static rubus for it at {beside}/{best}, name one with --binary FILE, or install rubus \
         there and give --remote-binary rubus"
    ));
    text
}

/// A word for the processor of a program: "64-bit Arm".
pub fn architecture(elf: &Elf) -> String {
    let family = match elf.built.machine {
        machine::X86 | machine::X86_64 => "x86",
        machine::ARM | machine::AARCH64 => "Arm",
        machine::RISCV => "RISC-V",
        other => return format!("processor {other} of the ELF standard"),
    };
    format!("{}-bit {family}", elf.built.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(
        path: &str,
        origin: Origin,
        machine: u16,
        bits: u8,
        loader: Option<&str>,
    ) -> Candidate {
        let interpreter = loader.map(str::to_string);
        Candidate {
            path: path.into(),
            origin,
            elf: Ok(Elf { built: built(machine, bits), interpreter }),
        }
    }

    fn paths(uname: &str, candidates: &[Candidate]) -> Vec<String> {
        in_order(uname, candidates).into_iter().map(|c| c.path).collect()
    }

    #[test]
    fn our_own_program_goes_where_the_processor_is_the_same() {
        let own = program("own", Origin::Own, machine::X86_64, 64, None);
        let arm = program("rubus-aarch64", Origin::Beside, machine::AARCH64, 64, None);
        let both = [own, arm];
        assert_eq!(paths("x86_64", &both), ["own"]);
        assert_eq!(paths("aarch64", &both), ["rubus-aarch64"]);
        assert_eq!(paths("armv7l", &both), [] as [&str; 0]);
        assert_eq!(paths("s390x", &both), [] as [&str; 0]);
    }

    #[test]
    fn a_64_bit_kernel_takes_the_64_bit_program_first_and_then_the_other() {
        let candidates = [
            program("rubus-armv7", Origin::Beside, machine::ARM, 32, None),
            program("rubus-aarch64", Origin::Beside, machine::AARCH64, 64, None),
        ];
        assert_eq!(paths("aarch64", &candidates), ["rubus-aarch64", "rubus-armv7"]);
        // A 32-bit personality on a 64-bit kernel.
        assert_eq!(paths("armv8l", &candidates), ["rubus-aarch64", "rubus-armv7"]);
        assert_eq!(paths("armv7l", &candidates), ["rubus-armv7"]);
        assert_eq!(paths("armv6l", &candidates), ["rubus-armv7"]);
    }

    #[test]
    fn a_static_program_beside_ours_is_better_than_our_own_that_needs_a_loader() {
        let own = program("own", Origin::Own, machine::X86_64, 64, Some("/lib64/ld-linux.so.2"));
        let beside = program("rubus-x86_64", Origin::Beside, machine::X86_64, 64, None);
        assert_eq!(paths("x86_64", &[own, beside]), ["rubus-x86_64", "own"]);
    }

    #[test]
    fn every_name_begins_with_the_program_and_the_best_comes_first() {
        assert_eq!(file_names("aarch64")[0], "rubus-aarch64");
        assert_eq!(file_names("armv7l")[0], "rubus-armv7");
        assert_eq!(file_names("armv6l")[0], "rubus-armv6");
        assert_eq!(file_names("x86_64")[0], "rubus-x86_64");
        assert!(file_names("vax").is_empty());
    }

    #[test]
    fn what_fits_nowhere_says_what_is_missing() {
        let own = program("/usr/bin/rubus", Origin::Own, machine::X86_64, 64, None);
        insta::assert_snapshot!(
            nothing_fits("pi@attic", "armv6l", &[own], "/usr/bin"),
            @"pi@attic is a machine of the kind 'armv6l', and this rubus (/usr/bin/rubus) is for 64-bit x86; put a static rubus for it at /usr/bin/rubus-armv6, name one with --binary FILE, or install rubus there and give --remote-binary rubus"
        );
        let script = Candidate {
            path: "/tmp/rubus.sh".into(),
            origin: Origin::Named,
            elf: Err("no program (it does not begin like an ELF file)".into()),
        };
        insta::assert_snapshot!(
            nothing_fits("old", "vax", &[script], "/usr/bin"),
            @"old is a machine of the kind 'vax', and /tmp/rubus.sh is no program (it does not begin like an ELF file), for which no rubus is known by name; give one with --binary FILE, or install rubus there and give --remote-binary rubus"
        );
    }
}
